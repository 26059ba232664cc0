import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktrees._core import histogram
from ranktrees._core.dtypes import BIN, LEAF
from ranktrees.growing import RoundedRows
from reference import growing as slow

STRIPE = 16384


def bins_of(rng, n_rows):
    bins = np.empty(n_rows, BIN)
    bins["gradient"] = rng.integers(-(2**30), 2**30, n_rows)
    bins["hessian"] = rng.integers(0, 2**32 // max(n_rows, 1), n_rows)
    bins["count"] = 1
    return bins


def leaves_of(*ranges):
    """One LEAF per (start, stop, histogram line)."""
    leaves = np.zeros(len(ranges), LEAF)
    leaves["start"], leaves["stop"], leaves["histogram"] = np.array(ranges).T
    return leaves


def ids(*numbers):
    return np.array(numbers, np.int32)


def rubbish(*shape):
    return np.full(shape, np.array((7, 7, 7), BIN))


def built(codes, mapper, bins, order, n_threads=1):
    """The histogram of all rows in ``order``, in a line full of rubbish."""
    histograms = rubbish(2, int(mapper.offsets[-1]))
    leaves = leaves_of((0, len(order), 1))
    histogram.build(leaves, ids(0), codes, order, bins, None, mapper.offsets, None, histograms, n_threads)
    assert (histograms[0] == rubbish(1)).all()
    return histograms[1]


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("n_rows", [1, 40, 5000])
def test_packed_sums_are_the_same_sums(n_rows, n_threads):
    rng = np.random.default_rng(n_rows)
    n_bins = [255, 2, 30, 1, *[17] * 20]
    codes, mapper = slow.random_codes(rng, n_rows, n_bins, 0.2), slow.mapper_of(n_bins)
    rows = RoundedRows(n_rows).round(rng.normal(size=n_rows) ** 3, np.full(n_rows, 0.3), n_threads)
    order = rng.permutation(n_rows)[: n_rows // 2 + 1].astype(np.uint32)
    histograms = rubbish(2, int(mapper.offsets[-1]))
    cells = np.full((n_threads, histograms.shape[1]), 7, np.int64)
    leaves = leaves_of((0, len(order), 1))
    histogram.build(
        leaves, ids(0), codes, order, rows.bins, rows.packed, mapper.offsets, cells, histograms, n_threads
    )
    assert (histograms[1] == built(codes, mapper, rows.bins, order)).all()


def test_gradients_are_packed_only_where_all_hessians_are_the_same():
    gradients = np.array([1.0, -2.0, 0.5])
    rows = RoundedRows(3).round(gradients, np.ones(3), 1)
    assert (rows.packed == rows.bins["gradient"] * 2**24 + 1).all()
    assert RoundedRows(3).round(gradients, np.array([1.0, 1.0, 2.0]), 1).packed is None


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 100),
    n_bins=st.lists(st.sampled_from([1, 2, 7, 255]), min_size=1, max_size=40),
    n_threads=st.integers(1, 4),
)
def test_builds_what_the_slow_twin_counts(seed, n_rows, n_bins, n_threads):
    rng = np.random.default_rng(seed)
    n_bins = n_bins if sum(n_bins) < 1500 else n_bins[:4]
    codes, bins = slow.random_codes(rng, n_rows, n_bins, 0.2), bins_of(rng, n_rows)
    order = rng.permutation(n_rows)[: rng.integers(1, n_rows + 1)].astype(np.uint32)
    cells = built(codes, slow.mapper_of(n_bins), bins, order, n_threads)
    assert (cells == slow.histogram(codes, bins, order, n_bins)).all()


@pytest.mark.parametrize("n_features", [1, 15, 16, 17, 33])
def test_many_rows_by_threads_and_order(n_features):
    rng = np.random.default_rng(n_features)
    n_rows, n_bins = 9000, [255, 3, 40] * 11
    n_bins = n_bins[:n_features]
    codes, bins = slow.random_codes(rng, n_rows, n_bins), bins_of(rng, n_rows)
    mapper = slow.mapper_of(n_bins)
    order = np.arange(n_rows, dtype=np.uint32)
    seen = {built(codes, mapper, bins, order, n_threads).tobytes() for n_threads in (1, 2, 3, 4)}
    seen |= {built(codes, mapper, bins, rng.permutation(order), 2).tobytes() for _ in range(3)}
    assert len(seen) == 1
    cells = np.frombuffer(seen.pop(), BIN)
    for f in range(n_features):
        own = cells[mapper.offsets[f] : mapper.offsets[f + 1]]
        for name in ("gradient", "hessian", "count"):
            assert own[name].astype(np.int64).sum() == bins[name].astype(np.int64).sum()


def test_lanes_do_not_carry_into_each_other():
    """Negative gradients, and hessians and counts up to the very limit of their 32 bits."""
    bins = np.array([(-1, 2**31, 1), (-(2**62), 2**31 - 1, 2**31), (-(2**62) + 1, 0, 2**31 - 2)], BIN)
    codes = np.zeros((3, 1), np.uint8)
    cells = built(codes, slow.mapper_of([1]), bins, np.arange(3, dtype=np.uint32))
    assert cells[0].tolist() == (-(2**63), 2**32 - 1, 2**32 - 1)
    assert cells[1].tolist() == (0, 0, 0)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_rows=st.integers(2, 80), n_threads=st.integers(1, 4))
def test_parent_minus_left_is_right(seed, n_rows, n_threads):
    rng = np.random.default_rng(seed)
    n_bins = [5, 255, 1, 2]
    codes, bins, mapper = slow.random_codes(rng, n_rows, n_bins), bins_of(rng, n_rows), slow.mapper_of(n_bins)
    order = rng.permutation(n_rows).astype(np.uint32)
    middle = int(rng.integers(1, n_rows))
    parent, left, right = (
        built(codes, mapper, bins, rows) for rows in (order, order[:middle], order[middle:])
    )
    histograms = np.array([left, rubbish(len(left)), parent])
    histogram.subtract(ids(2), ids(0), histograms, n_threads)
    assert histograms[2].tobytes() == right.tobytes()
    assert histograms[0].tobytes() == left.tobytes()
    histograms = np.array([parent, rubbish(len(left))])
    leaves = leaves_of((0, n_rows, 0), (0, middle, -1), (middle, n_rows, 0))
    histogram.remove_rows(leaves, ids(1), ids(0), codes, order, bins, mapper.offsets, histograms)
    assert histograms[0].tobytes() == right.tobytes()
    assert (histograms[1] == rubbish(1)).all()


def test_a_batch_of_leaves_at_once():
    rng = np.random.default_rng(0)
    n_bins = [30] * 20
    codes, bins, mapper = slow.random_codes(rng, 3000, n_bins), bins_of(rng, 3000), slow.mapper_of(n_bins)
    order = rng.permutation(3000).astype(np.uint32)
    leaves = leaves_of((0, 3000, -1), (0, 100, 2), (100, 2500, 0), (2500, 3000, 1))
    for n_threads in (1, 3):
        histograms = rubbish(4, int(mapper.offsets[-1]))
        histogram.build(
            leaves, ids(3, 1, 2), codes, order, bins, None, mapper.offsets, None, histograms, n_threads
        )
        for leaf in leaves[1:]:
            own = built(codes, mapper, bins, order[leaf["start"] : leaf["stop"]])
            assert histograms[leaf["histogram"]].tobytes() == own.tobytes()
        assert (histograms[3] == rubbish(1)).all()


def test_no_leaves_no_work():
    histograms = rubbish(1, 3)
    codes, order, bins = np.zeros((1, 1), np.uint8), np.zeros(1, np.uint32), np.ones(1, BIN)
    offsets = np.array([0, 3])
    histogram.build(leaves_of((0, 1, 0)), ids(), codes, order, bins, None, offsets, None, histograms, 2)
    histogram.subtract(ids(), ids(), histograms, 2)
    histogram.remove_rows(leaves_of((0, 1, 0)), ids(), ids(), codes, order, bins, offsets, histograms)
    assert (histograms == rubbish(1)).all()


# ---- sums over rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, STRIPE, STRIPE + 1, 3 * STRIPE - 1])
@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_largest(n, n_threads):
    values = np.random.default_rng(n).normal(size=n)
    partial = np.empty(n // STRIPE + 1)
    assert histogram.largest(values, partial, n_threads) == np.abs(values).max(initial=0)
    for place in {0, n // 2, n - 1} if n else ():
        odd = values.copy()
        odd[place] = -1e300
        assert histogram.largest(odd, partial, n_threads) == 1e300
        odd[place] = -np.inf
        assert histogram.largest(odd, partial, n_threads) == np.inf
        odd[place] = np.nan
        assert math.isnan(histogram.largest(odd, partial, n_threads))


@pytest.mark.parametrize("n", [0, 1, STRIPE, STRIPE + 1, 3 * STRIPE - 1])
def test_total_rounds_each_value_half_to_even(n):
    values = np.round(np.random.default_rng(n).uniform(0, 9, n) * 4) / 4
    partial = np.empty(n // STRIPE + 1, np.int64)
    for scale in (1.0, 2.0, 2.0**28):
        expected = int(np.rint(values * scale).sum())
        assert {histogram.total(values, scale, partial, n_threads) for n_threads in (1, 2, 3)} == {expected}


def test_a_positive_hessian_stays_positive():
    hessians = np.array([0.0, 1e-300, 0.4, 0.5, 1.5, 2.5, 2.0**32 - 1])
    gradients = np.array([-0.5, 0.5, -1.5, 1.5, 2.5, -(2.0**30), 2.0**30])
    rows = np.empty(7, BIN)
    histogram.round_rows(gradients, hessians, 1.0, 1.0, rows, 1)
    assert rows["hessian"].tolist() == [0, 1, 1, 1, 2, 2, 2**32 - 1]
    assert rows["gradient"].tolist() == [0, 0, -2, 2, 2, -(2**30), 2**30]
    assert (rows["count"] == 1).all()


def test_sum_rows():
    rng = np.random.default_rng(0)
    bins, total = bins_of(rng, 500), np.empty(1, BIN)
    order = rng.permutation(500)[:300].astype(np.uint32)
    histogram.sum_rows(bins, order, total)
    assert total[0].tolist() == slow.total(bins, order)
    histogram.sum_rows(bins, order[:0], total)
    assert total[0].tolist() == (0, 0, 0)
