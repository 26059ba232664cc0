import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ranktrees import growing, parallel
from ranktrees._core import scoring
from ranktrees._core.dtypes import LEAF
from ranktrees.growing import BestLeaf, RoundedRows, WholeLayers
from reference import growing as slow


def data_of(seed, n_rows, n_bins, *, kind="ties", missing=0.15):
    """Codes, gradients and hessians; "ties" are small whole numbers, "wide" ones span 14 decimal powers."""
    rng = np.random.default_rng(seed)
    codes = slow.random_codes(rng, n_rows, n_bins, missing)
    if kind == "ties":
        return codes, rng.integers(-3, 4, n_rows).astype(float), rng.integers(0, 3, n_rows).astype(float)
    weights = 10 ** rng.uniform(-7, 7, n_rows) if kind == "wide" else np.ones(n_rows)
    signal = codes[:, 0] * 0.3 - (codes[:, -1] % 3)
    return codes, (rng.normal(size=n_rows) + signal) * weights, rng.uniform(0.1, 1, n_rows) * weights


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 60),
    n_bins=st.lists(st.integers(1, 7), min_size=1, max_size=5),
    kind=st.sampled_from(["ties", "plain", "wide"]),
    max_leaf_nodes=st.sampled_from([None, 2, 3, 9]),
    max_depth=st.sampled_from([None, 1, 3]),
    min_samples_leaf=st.integers(1, 5),
    l2=st.sampled_from([0.0, 0.5, 10.0]),
    min_gain=st.sampled_from([0.0, 1.0]),
    min_hessian=st.sampled_from([0.0, 2.5]),
    categorical=st.booleans(),
    bounded=st.booleans(),
)
def test_grows_the_tree_of_the_slow_twin(
    seed, n_rows, n_bins, kind, max_leaf_nodes, max_depth, min_samples_leaf, l2, min_gain, min_hessian,
    categorical, bounded,
):  # fmt: skip
    codes, gradients, hessians = data_of(seed, n_rows, n_bins, kind=kind)
    categories = {0} if categorical else set()
    mapper = slow.mapper_of(n_bins, categories)
    monotone = None
    if bounded:
        monotone = np.random.default_rng(seed).integers(-1, 2, len(n_bins)).astype(np.int8)
        monotone[list(categories)] = 0
    grown, rows = slow.grown_on(
        codes,
        mapper,
        gradients,
        hessians,
        monotone=monotone,
        max_leaf_nodes=max_leaf_nodes,
        max_depth=max_depth,
        min_samples_leaf=min_samples_leaf,
        l2_regularization=l2,
        min_gain=min_gain,
        min_hessian=min_hessian,
    )
    rules = slow.Rules(
        rows.gradient_unit, rows.hessian_unit, l2, min_gain, min_samples_leaf, min_hessian, monotone
    )
    nodes = slow.grow(
        codes,
        rows,
        np.arange(n_rows),
        mapper,
        rules,
        max_leaf_nodes=max_leaf_nodes,
        max_depth=max_depth,
    )
    slow.agrees(grown, nodes, codes, mapper)


POLICIES = {
    "as set": {},
    "no histograms": {"HISTOGRAM_BYTES": 0},
    "histograms of every leaf": {"FEW_ROWS": 1},
    "one histogram": {"FEW_ROWS": 1, "HISTOGRAM_BYTES": "one"},
    "three histograms": {"FEW_ROWS": 1, "HISTOGRAM_BYTES": "three"},
    "histograms of some leaves": {"FEW_ROWS": 40},
    "a histogram of the root": {"FEW_ROWS": 350},
    "all from rows": {"FEW_ROWS": 10**9},
    "every thread": {"VALUES_PER_THREAD": 1},
    "every thread and histograms of some leaves": {"VALUES_PER_THREAD": 1, "FEW_ROWS": 40},
    "every thread, from rows": {"VALUES_PER_THREAD": 1, "FEW_ROWS": 10**9},
}


def set_policy(monkeypatch, policy, mapper):
    for name, value in POLICIES[policy].items():
        lines = {"one": 1, "three": 3}.get(value)
        owner = parallel if name == "VALUES_PER_THREAD" else growing
        monkeypatch.setattr(owner, name, value if lines is None else lines * int(mapper.offsets[-1]) * 16)


@pytest.mark.parametrize(
    ("max_leaf_nodes", "kind", "bounded"),
    [(None, "ties", False), (31, "wide", False), (31, "ties", True), (None, "wide", True)],
)
def test_neither_policy_nor_threads_show_in_the_tree(monkeypatch, max_leaf_nodes, kind, bounded):
    n_bins = [9, 255, 40, 3, 17, 1, 64, 5, 2, 30, 8, 8, 8, 8, 8, 8, 8, 100, 4]
    codes, gradients, hessians = data_of(3, 400, n_bins, kind=kind)
    mapper = slow.mapper_of(n_bins, {2, 3})
    monotone = np.zeros(len(n_bins), np.int8)
    monotone[[0, 4]] = 1, -1
    seen = {}
    for policy in POLICIES:
        with monkeypatch.context() as patch:
            set_policy(patch, policy, mapper)
            for n_threads in {"every thread": (2, 3, 4), "every thread, from rows": (2, 4)}.get(policy, (2,)):
                grown, _ = slow.grown_on(
                    codes,
                    mapper,
                    gradients,
                    hessians,
                    n_threads=n_threads,
                    max_leaf_nodes=max_leaf_nodes,
                    min_samples_leaf=3,
                    l2_regularization=0.25,
                    monotone=monotone if bounded else None,
                )
                seen[policy, n_threads] = slow.tree_bytes(grown, mapper)
    assert len(grown.leaves) > 40
    assert len(set(seen.values())) == 1


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 400),
    n_bins=st.lists(st.sampled_from([1, 2, 3, 20, 255]), min_size=1, max_size=20),
    policy=st.sampled_from(list(POLICIES)),
    max_leaf_nodes=st.sampled_from([None, 4, 40]),
    max_depth=st.sampled_from([None, 2]),
    few_rows=st.booleans(),
)
def test_no_policy_shows_in_any_tree(seed, n_rows, n_bins, policy, max_leaf_nodes, max_depth, few_rows):
    codes, gradients, hessians = data_of(seed, n_rows, n_bins)
    mapper = slow.mapper_of(n_bins, {0})
    rows = np.flatnonzero(np.random.default_rng(seed).random(n_rows) < 0.6) if few_rows else np.arange(n_rows)
    rows = rows if len(rows) else np.array([0])
    rules = {"max_leaf_nodes": max_leaf_nodes, "max_depth": max_depth, "rows": rows, "min_samples_leaf": 2}
    trees = []
    for name in ("as set", policy):
        with pytest.MonkeyPatch.context() as patch:
            set_policy(patch, name, mapper)
            grown, _ = slow.grown_on(codes, mapper, gradients, hessians, n_threads=2, **rules)
        trees.append(slow.tree_bytes(grown, mapper))
    assert trees[0] == trees[1]


@pytest.mark.parametrize("kind", ["ties", "wide"])
def test_order_of_rows_does_not_matter(kind):
    n_bins = [12, 255, 3, 30]
    codes, gradients, hessians = data_of(5, 900, n_bins, kind=kind)
    mapper = slow.mapper_of(n_bins, {3})
    shuffled = np.random.default_rng(0).permutation(900)
    trees = []
    for rows in (np.arange(900), shuffled):
        grown, _ = slow.grown_on(codes[rows], mapper, gradients[rows], hessians[rows], max_leaf_nodes=20)
        nodes, bit_sets = grown.tree(grown.values, mapper)
        trees.append(nodes.tobytes() + bit_sets.tobytes())
    assert trees[0] == trees[1]


@pytest.mark.parametrize("max_leaf_nodes", [None, 2, 13])
@pytest.mark.parametrize("max_depth", [None, 1, 4])
@pytest.mark.parametrize("min_samples_leaf", [1, 7, 200, 1500])
def test_limits_are_kept(max_leaf_nodes, max_depth, min_samples_leaf):
    n_bins = [20, 255, 5]
    codes, gradients, hessians = data_of(1, 700, n_bins, kind="plain")
    mapper = slow.mapper_of(n_bins)
    grown, _ = slow.grown_on(
        codes,
        mapper,
        gradients,
        hessians,
        max_leaf_nodes=max_leaf_nodes,
        max_depth=max_depth,
        min_samples_leaf=min_samples_leaf,
        l2_regularization=0.5,
    )
    leaves = grown.leaves[grown.is_leaf]
    assert len(leaves) <= (max_leaf_nodes or 700)
    assert leaves["depth"].max() <= (700 if max_depth is None else max_depth)
    if len(leaves) > 1:
        assert leaves["total"]["count"].min() >= min_samples_leaf
    assert leaves["total"]["count"].sum() == 700
    assert sorted(grown.order.tolist()) == list(range(700))
    for leaf in leaves:
        inside = grown.order[leaf["start"] : leaf["stop"]]
        expected = -gradients[inside].sum() / (hessians[inside].sum() + 0.5)
        assert leaf["value"] == pytest.approx(expected, rel=1e-6, abs=1e-8)
    # as many leaves as were asked for, where there are splits for them
    if max_leaf_nodes == 13 and max_depth is None and min_samples_leaf == 1:
        assert len(leaves) == 13


def test_layers_are_whole_without_a_limit():
    codes, gradients, hessians = data_of(1, 300, [255, 255], kind="plain", missing=0)
    grown, _ = slow.grown_on(codes, slow.mapper_of([255, 255]), gradients, hessians, max_depth=4)
    assert (np.diff(grown.leaves["depth"]) >= 0).all()
    assert grown.leaves["depth"].max() == 4


@pytest.mark.parametrize("max_leaf_nodes", [None, 25])
def test_every_row_ends_where_its_codes_lead(max_leaf_nodes):
    n_bins = [20, 255, 5, 33]
    codes, gradients, hessians = data_of(2, 800, n_bins, kind="plain")
    mapper = slow.mapper_of(n_bins, {3})
    sampled = np.arange(0, 800, 3)
    grown, _ = slow.grown_on(codes, mapper, gradients, hessians, rows=sampled, max_leaf_nodes=max_leaf_nodes)
    assert sorted(grown.order.tolist()) == sampled.tolist()
    walked = np.array([slow.walk(grown, mapper.missing_codes, line) for line in codes])
    for i in np.flatnonzero(grown.is_leaf):
        leaf = grown.leaves[i]
        assert (walked[grown.order[leaf["start"] : leaf["stop"]]] == i).all()
    found = np.empty(800, np.int32)
    scoring.leaves_of_codes(grown.leaves, codes, mapper.missing_codes, None, found, 2)
    assert found.tolist() == walked.tolist()


def test_finished_tree_says_what_was_grown():
    n_bins = [20, 40, 33]
    codes, gradients, hessians = data_of(4, 500, n_bins, kind="plain")
    mapper = slow.mapper_of(n_bins, {2})
    grown, _ = slow.grown_on(codes, mapper, gradients, hessians, max_leaf_nodes=30)
    nodes, bit_sets = grown.tree(0.5 * grown.values, mapper)
    assert (nodes["value"] == 0.5 * grown.leaves["value"]).all()
    assert (nodes["count"] == grown.leaves["total"]["count"]).all()
    assert ((nodes["feature"] < 0) == grown.is_leaf).all()
    assert (nodes["gain"][grown.is_leaf] == 0).all()
    assert (nodes["gain"][~grown.is_leaf] > 0).all()
    categorical = nodes["categories"] >= 0
    assert nodes["categories"][categorical].tolist() == list(range(len(bit_sets)))
    assert (nodes["feature"][categorical] == 2).all()
    assert categorical.any()
    numeric = ~grown.is_leaf & ~categorical
    for node, leaf in zip(nodes[numeric], grown.leaves[numeric], strict=True):
        feature, code = leaf["split"]["feature"], leaf["split"]["code"]
        expected = np.inf if code == n_bins[feature] - 1 else code + 0.5
        assert node["cut"] == expected


# ---- odd data ---------------------------------------------------------------------------------------


def test_single_row_is_a_leaf():
    grown, _ = slow.grown_on(np.zeros((1, 2), np.uint8), slow.mapper_of([1, 1]), [3.0], [2.0])
    assert len(grown.leaves) == 1
    assert grown.values.tolist() == [-1.5]


def test_constant_and_empty_features_do_not_split():
    codes = np.zeros((50, 3), np.uint8)
    codes[:, 1] = 1  # the missing code of a feature with one bin
    grown, _ = slow.grown_on(codes, slow.mapper_of([1, 1, 5]), np.arange(50.0))
    assert len(grown.leaves) == 1


def test_missing_or_not_is_a_split():
    codes = np.zeros((50, 1), np.uint8)
    codes[:20] = 1
    for mapper in (slow.mapper_of([1]), slow.mapper_of([1], {0})):
        grown, _ = slow.grown_on(codes, mapper, np.arange(50.0) >= 20)
        assert len(grown.leaves) == 3
        assert sorted(grown.leaves["total"]["count"].tolist()) == [20, 30, 50]


@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_nothing_to_learn_is_a_leaf(l2):
    codes, gradients, hessians = data_of(0, 100, [20, 30])
    mapper = slow.mapper_of([20, 30])
    for g, h in ((0 * gradients, hessians), (0 * gradients, 0 * hessians), (np.ones(100), 0 * hessians)):
        grown, _ = slow.grown_on(codes, mapper, g, h, l2_regularization=l2)
        assert len(grown.leaves) == 1
        assert np.isfinite(grown.values).all()


@pytest.mark.parametrize("size", [1e-250, 1e-40, 1e40, 1e120])
def test_scale_of_the_loss_does_not_change_the_splits(size):
    codes, gradients, hessians = data_of(6, 300, [20, 30], kind="plain")
    size = 2.0 ** np.round(np.log2(size))
    mapper = slow.mapper_of([20, 30])
    plain, _ = slow.grown_on(codes, mapper, gradients, hessians, max_leaf_nodes=15)
    scaled, _ = slow.grown_on(codes, mapper, gradients * size, hessians * size, max_leaf_nodes=15)
    for name in ("left", "start", "stop"):
        assert plain.leaves[name].tolist() == scaled.leaves[name].tolist()
    assert np.allclose(plain.values, scaled.values, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e110, 1e140])
def test_gains_stay_finite(scale):
    """A gain that overflows on its way would be infinite in the tree; nothing reads such a model."""
    codes, gradients, hessians = data_of(6, 300, [20, 30], kind="plain")
    mapper = slow.mapper_of([20, 30])
    for g, h in ((gradients * scale, hessians), (gradients, hessians * scale), (gradients * scale,) * 2):
        grown, _ = slow.grown_on(codes, mapper, g, np.abs(h), max_leaf_nodes=15)
        assert np.isfinite(grown.leaves["split"]["gain"][~grown.is_leaf]).all()


# ---- rounding ---------------------------------------------------------------------------------------

numbers = st.floats(-1e300, 1e300) | st.floats(-4, 4) | st.sampled_from([0.0, 5e-324, -2.5, 1e-310])


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(numbers, numbers.map(abs)), min_size=1, max_size=30))
@example([(0.0, 0.0)])
@example([(1.0, 1.0)] * 2)
@example([(1e-320, 5e-324)] * 3)
@example([(1.0, 1e300)] + [(1.0, 5e-324)] * 29)
def test_rounds_as_fractions_do(rows):
    gradients, hessians = np.array(rows).T.copy()
    whole, steps, gradient_unit, hessian_unit = slow.rounded(gradients.tolist(), hessians.tolist())
    try:
        rounded = RoundedRows(len(rows)).round(gradients, hessians, 1)
    except ValueError:  # too large to add up
        largest = float(len(rows) * max(map(abs, gradients.tolist())))
        assert not math.isfinite(largest * (largest / hessian_unit))
        return
    assert (rounded.gradient_unit, rounded.hessian_unit) == (gradient_unit, hessian_unit)
    assert rounded.bins["gradient"].tolist() == whole
    assert rounded.bins["hessian"].tolist() == steps
    assert rounded.bins["count"].tolist() == [1] * len(rows)
    assert sum(steps) < 2**32


@pytest.mark.parametrize("shape", ["equal", "one large", "tiny beside large", "half steps", "wide"])
@pytest.mark.parametrize("n_rows", [1, 2, 3, 1000, 70_000])
def test_hessians_never_overflow_and_keep_their_bits(shape, n_rows):
    rng = np.random.default_rng(n_rows)
    hessians = {
        "equal": np.full(n_rows, 0.7),
        "one large": np.r_[1.0, np.full(n_rows - 1, 1e-12)],
        "tiny beside large": np.where(np.arange(n_rows) % 2, 1e-30, 1.0),
        "half steps": np.full(n_rows, 1 - 2.0**-31),
        "wide": 10 ** rng.uniform(-7, 7, n_rows),
    }[shape]
    rows = RoundedRows(n_rows).round(rng.normal(size=n_rows), hessians, 2)
    steps = rows.bins["hessian"].astype(np.int64)
    assert steps.sum() < 2**32
    assert steps.sum() >= 2**29 or n_rows == 1
    assert (steps[hessians > 0] > 0).all()
    assert np.abs(steps * rows.hessian_unit - hessians).max() <= rows.hessian_unit
    bits = 30 if rows.packed is None else min(30, 38 - n_rows.bit_length())  # 38 for all rows together
    assert 2 ** (bits - 1) <= np.abs(rows.bins["gradient"]).max() <= 2**bits


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("place", [0, 17_000, 39_999])
def test_diverged_scores_are_refused(bad, place):
    for which in (0, 1):
        arrays = [np.ones(40_000), np.ones(40_000)]
        arrays[which][place] = bad
        with pytest.raises(ValueError, match="the scores have diverged"):
            RoundedRows(40_000).round(*arrays, 2)


def test_too_many_rows_are_refused():
    with pytest.raises(ValueError, match="at most"):
        RoundedRows(1 << 30)


def test_rounding_does_not_depend_on_threads():
    rng = np.random.default_rng(0)
    gradients = rng.normal(size=50_000) * 10 ** rng.uniform(-7, 7, 50_000)
    hessians = 10 ** rng.uniform(-7, 7, 50_000)
    seen = set()
    for n_threads in (1, 2, 3, 4):
        rows = RoundedRows(50_000).round(gradients, hessians, n_threads)
        seen.add((rows.gradient_unit, rows.hessian_unit, rows.bins.tobytes()))
    assert len(seen) == 1


# ---- queues -----------------------------------------------------------------------------------------


def gains_of(*gains):
    return lambda: np.array(gains)


def test_best_leaf_first_and_the_oldest_of_equals():
    queue = BestLeaf(gains_of(1.0, 3.0, 2.0, 3.0))
    queue.push(np.array([0, 3], np.int32))
    queue.push(np.array([1, 2], np.int32))
    assert [queue.pop(9).tolist() for _ in range(5)] == [[1], [3], [2], [0], []]


def test_best_leaf_keeps_to_the_limit():
    queue = BestLeaf(gains_of(1.0))
    queue.push(np.array([0], np.int32))
    assert queue.pop(0).tolist() == []
    assert queue.pop(1).tolist() == [0]


def test_whole_layer_or_its_best():
    queue = WholeLayers(gains_of(1.0, 3.0, 2.0, 3.0, 0.5))
    queue.push(np.arange(5, dtype=np.int32))
    assert queue.pop(5).tolist() == [0, 1, 2, 3, 4]
    assert queue.pop(5).tolist() == []
    queue.push(np.arange(5, dtype=np.int32))
    assert queue.pop(2).tolist() == [1, 3]
    queue.push(np.arange(5, dtype=np.int32))
    assert queue.pop(1).tolist() == [1]


def test_trees_do_not_share_memory():
    codes, gradients, hessians = data_of(0, 200, [20, 30], kind="plain")
    mapper = slow.mapper_of([20, 30])
    grower = slow.grower_of(codes, mapper, max_leaf_nodes=8)
    rows = RoundedRows(200).round(gradients, hessians, 1)
    first = grower.grow(rows, np.arange(200, dtype=np.uint32))
    before = slow.tree_bytes(first, mapper)
    grower.grow(rows, np.arange(100, dtype=np.uint32))
    again = grower.grow(rows, np.arange(200, dtype=np.uint32))
    assert slow.tree_bytes(first, mapper) == before == slow.tree_bytes(again, mapper)


def test_more_leaves_than_room_was_made_for():
    codes = np.arange(6000, dtype=np.int64)
    codes = np.column_stack([codes % 250, codes // 250]).astype(np.uint8)
    gradients = np.random.default_rng(0).normal(size=6000)
    mapper = slow.mapper_of([250, 24])
    grown, _ = slow.grown_on(codes, mapper, gradients)
    assert grown.is_leaf.sum() == 6000
    assert grown.leaves.dtype == LEAF
    assert np.allclose(
        grown.values[grown.is_leaf], -gradients[grown.order[grown.leaves["start"][grown.is_leaf]]]
    )
