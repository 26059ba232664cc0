from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import together

from ranktrees._core.rows import sampling as kernels
from ranktrees.processes.sharing import Share
from ranktrees.rows import FitData
from ranktrees.rows.sampling import (
    FEATURES,
    HELD_OUT,
    QUERIES,
    ROUNDING,
    ROWS,
    Bootstrap,
    RowSampler,
    hold_out,
    rows_to_cut,
    stream,
)
from reference.sampling import random
from widths import outputs_of

seeds = st.integers(0, 2**64 - 1)


def uniforms_of(seed, number, n):
    uniforms = np.empty(n)
    kernels.uniforms(seed, number, uniforms)
    return uniforms


@settings(deadline=None)
@given(seed=seeds, number=seeds, n=st.integers(0, 20))
def test_uniforms_are_a_function_of_seed_stream_and_counter(seed, number, n):
    expected = [(random(seed, number, i) >> 11) / 2**53 for i in range(n)]
    assert uniforms_of(seed, number, n).tolist() == expected


def test_uniforms_are_uniform():
    uniforms = np.array([uniforms_of(seed, number, 1000) for seed in range(10) for number in range(10)])
    assert uniforms.min() >= 0
    assert uniforms.max() < 1
    assert abs(uniforms.mean() - 0.5) < 0.005
    counts = np.histogram(uniforms, bins=20, range=(0, 1))[0]
    assert ((counts - 5000) ** 2 / 5000).sum() < 50  # chi squared, 19 degrees of freedom
    for neighbours in (uniforms[:, 1:], uniforms[1:], uniforms[10:]):  # counter, stream, seed
        others = uniforms[: len(neighbours), : neighbours.shape[1]]
        assert abs(np.corrcoef(neighbours.ravel(), others.ravel())[0, 1]) < 0.015


def test_draws_fall_where_the_uniforms_say():
    times = np.zeros(7, np.uint32)
    kernels.draws(5, 9, times, 50)
    expected = np.bincount((uniforms_of(5, 9, 50) * 7).astype(int), minlength=7)
    assert times.tolist() == expected.tolist()


def shuffled(seed, number, ids, features):
    lines = np.array(features, np.int32)
    kernels.features_of_leaves(seed, number, np.array(ids, np.int32), lines)
    return lines


@settings(deadline=None)
@given(seed=seeds, number=st.integers(0, 2**40), leaf=st.integers(0, 2**31 - 1), n=st.integers(0, 12))
def test_features_are_shuffled_within_their_line(seed, number, leaf, n):
    line = [*range(3, 3 + n), *[-1] * (12 - n)]
    (found,) = shuffled(seed, number, [leaf], [line])
    assert sorted(found[:n].tolist()) == list(range(3, 3 + n))
    assert (found[n:] == -1).all()
    among_others = shuffled(seed, number, [leaf ^ 1, leaf], [list(range(12)), line])
    assert among_others[1].tolist() == found.tolist()


def test_every_feature_is_drawn_alike():
    lines = shuffled(1, 2, np.arange(6000), np.tile(np.arange(6), (6000, 1)))
    for place in range(6):
        counts = np.bincount(lines[:, place], minlength=6)
        assert ((counts - 1000) ** 2 / 1000).sum() < 25  # chi squared, 5 degrees of freedom


def test_streams_do_not_meet():
    purposes = (ROWS, QUERIES, FEATURES, HELD_OUT, ROUNDING)
    numbers = [stream(i, purpose) for i in range(50) for purpose in purposes]
    assert len(set(numbers)) == len(numbers)


# ---- rows and queries of a round --------------------------------------------------------------------

OFFSETS = np.concatenate([[0], np.cumsum(np.random.default_rng(0).integers(1, 9, 200))])
QUERY = np.repeat(np.arange(200), np.diff(OFFSETS))
N = int(OFFSETS[-1])


@pytest.mark.parametrize("shares", [(0.5, 1.0), (1.0, 0.3), (0.4, 0.5)])
def test_rows_drawn_and_left_out(shares):
    subsample, query_subsample = shares
    sampler = RowSampler(OFFSETS, subsample=subsample, query_subsample=query_subsample, seed=3)
    sizes = []
    for iteration in range(20):
        drawn, left_out = sampler.draw(iteration)
        assert drawn.dtype == left_out.dtype == np.uint32
        assert (np.diff(drawn.astype(int)) > 0).all()
        assert sorted([*drawn, *left_out]) == list(range(N))
        again, _ = RowSampler(OFFSETS, subsample=subsample, query_subsample=query_subsample, seed=3).draw(
            iteration
        )
        assert again.tolist() == drawn.tolist()
        if subsample == 1.0:  # whole queries
            counts = np.bincount(QUERY[drawn], minlength=200)
            assert np.isin(counts - np.diff(OFFSETS), [0, *-np.diff(OFFSETS)]).all()
            assert ((counts == 0) | (counts == np.diff(OFFSETS))).all()
        sizes.append(len(drawn))
    assert np.mean(sizes) / N == pytest.approx(subsample * query_subsample, abs=0.05)
    assert len(set(map(str, sizes))) > 1


def test_exactly_so_many_rows_are_drawn():
    """Those whose uniform numbers are the lowest: as many for each tree, and other ones."""
    for subsample in (1e-12, 0.1, 0.5, 0.999, 1.0):
        sampler, lines = RowSampler(OFFSETS, subsample=subsample, exact=True, seed=3), set()
        for iteration in range(20):
            drawn, left_out = sampler.draw(iteration)
            if subsample == 1.0:
                assert drawn is None
                continue
            lowest = np.argsort(uniforms_of(3, stream(iteration, ROWS), N))[: max(1, round(subsample * N))]
            assert drawn.tolist() == np.sort(lowest).tolist()
            assert sorted([*drawn, *left_out]) == list(range(N))
            lines.add(drawn.tobytes())
        assert len(lines) in ((0,) if subsample == 1.0 else range(18, 21))


@pytest.mark.parametrize("subsample", [0.4, 1.0])
def test_exactly_so_many_queries_are_drawn_and_of_their_rows(subsample):
    sampler = RowSampler(OFFSETS, subsample=subsample, query_subsample=0.3, exact=True, seed=3)
    for iteration in range(20):
        drawn, _ = sampler.draw(iteration)
        queries = np.argsort(uniforms_of(3, stream(iteration, QUERIES), 200))[:60]
        among = np.flatnonzero(np.isin(QUERY, queries))
        uniforms = uniforms_of(3, stream(iteration, ROWS), N)[among]
        lowest = among[np.argsort(uniforms)[: round(subsample * len(among))]]
        assert drawn.tolist() == np.sort(lowest).tolist()


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("shares", [(0.3, 1.0), (0.4, 0.5), (1.0, 0.2), (1e-12, 1e-12)])
@pytest.mark.parametrize("exact", [False, True])
def test_ranks_draw_what_one_process_draws(size, shares, exact):
    sizes, queries = np.diff(OFFSETS), np.arange(200)
    owners = np.random.default_rng(size).integers(0, size, 200)
    rules = {"subsample": shares[0], "query_subsample": shares[1], "exact": exact, "seed": 5}
    expected = [RowSampler(OFFSETS, **rules).draw(iteration)[0].tolist() for iteration in range(5)]

    def draw(ranks):
        offsets = np.append(0, np.cumsum(sizes[owners == ranks.rank]))
        share = Share.among(ranks, offsets, queries[owners == ranks.rank])
        sampler = RowSampler(offsets, share=share, **rules)
        return [share.row_numbers[sampler.draw(iteration)[0]] for iteration in range(5)]

    of_ranks = together(size, draw)
    assert [np.sort(np.concatenate(parts)).tolist() for parts in zip(*of_ranks, strict=True)] == expected


def test_draws_differ_by_round_and_seed():
    lines = {
        RowSampler(OFFSETS, subsample=0.5, seed=seed).draw(iteration)[0].tobytes()
        for seed in range(4)
        for iteration in range(4)
    }
    assert len(lines) == 16


@pytest.mark.parametrize("sizes", [[1], [1, 1, 1], [5], [3, 2, 9]])
@pytest.mark.parametrize("shares", [(1e-12, 1.0), (1.0, 1e-12), (1e-12, 1e-12)])
@pytest.mark.parametrize("exact", [False, True])
def test_at_least_one_row_is_drawn(sizes, shares, exact):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    for seed in range(10):
        rules = {"subsample": shares[0], "query_subsample": shares[1], "exact": exact}
        sampler = RowSampler(offsets, seed=seed, **rules)
        drawn, left_out = sampler.draw(seed)
        assert len(drawn) == 1 if shares[0] < 1 else len(drawn) in sizes
        assert len(drawn) + len(left_out) == sum(sizes)


@settings(deadline=None)
@given(
    seed=seeds,
    number=seeds,
    n=st.integers(0, 1300),
    share=st.sampled_from([0.0, 1e-3, 0.3, 0.5, 0.9, 1.0]),
    numbered=st.booleans(),
    chosen=st.booleans(),
    n_threads=st.integers(1, 4),
)
def test_rows_are_drawn_whose_uniforms_are_below_the_share(
    seed, number, n, share, numbered, chosen, n_threads
):
    rng = np.random.default_rng(n)
    numbers = rng.integers(0, 2**40, n) if numbered else np.arange(n)
    among = rng.random(n) < 0.6 if chosen else np.ones(n, bool)
    uniforms = np.empty(n)
    kernels.uniforms(seed, number, uniforms, numbers)
    expected = (uniforms < share) & among
    drawn, left_out = np.empty((2, n), np.uint32)
    n_drawn = kernels.draw_below(
        seed,
        number,
        share,
        numbers if numbered else None,
        among.view(np.uint8) if chosen else None,
        np.empty(-(-n // 64), np.uint64),
        drawn,
        left_out,
        n_threads,
    )
    assert drawn[:n_drawn].tolist() == np.flatnonzero(expected).tolist()
    assert left_out[: n - n_drawn].tolist() == np.flatnonzero(~expected).tolist()


def test_widths_of_registers_do_not_change_a_list():
    program = (
        "import numpy as np, test_sampling as t\n"
        "for n in (*range(1, 40), 63, 64, 65, 511, 512, 513, 1300):\n"
        "    lists, marks = np.zeros((2, n), np.uint32), np.empty(-(-n // 64), np.uint64)\n"
        "    print(t.kernels.draw_below(n, 1, 0.4, None, None, marks, *lists), lists.tobytes().hex())\n"
    )
    assert len(outputs_of(program)) == 1


@pytest.mark.parametrize("row", [0, 17, 63, 64, 99])
def test_a_share_is_exact(row):
    """The number of a row is below every share above it, and below no other."""
    uniforms = uniforms_of(9, 4, 100)
    for share, is_drawn in ((uniforms[row], False), (np.nextafter(uniforms[row], 2.0), True)):
        drawn, left_out = np.empty((2, 100), np.uint32)
        n = kernels.draw_below(9, 4, share, None, None, np.empty(2, np.uint64), drawn, left_out)
        assert (row in drawn[:n]) == is_drawn


def test_all_rows_need_no_list():
    drawn, left_out = RowSampler(OFFSETS).draw(0)
    assert drawn is None
    assert len(left_out) == 0


# ---- rows to cut by ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3])
def test_rows_to_cut_are_drawn_by_number(size):
    """About as many as are wanted, the same ones whoever has them."""
    rng = np.random.default_rng(size)
    sizes = rng.integers(1, 60, 300)
    n, queries = int(sizes.sum()), np.arange(300)
    owners = rng.integers(0, size, 300)
    expected = rows_to_cut(Share.alone([0, n]), n, 2000)
    assert 1800 < len(expected) < 2200
    assert np.diff(expected).min() > 0

    def draw(ranks):
        own = owners == ranks.rank
        share = Share.among(ranks, np.append(0, np.cumsum(sizes[own])), queries[own])
        drawn = rows_to_cut(share, int(sizes[own].sum()), 2000, n_threads=2)
        return drawn if share.row_numbers is None else share.row_numbers[drawn]

    assert np.sort(np.concatenate(together(size, draw))).tolist() == expected.tolist()


@pytest.mark.parametrize("n_drawn", [None, 100, 101])
def test_all_rows_are_cut_by_where_they_are_few(n_drawn):
    assert rows_to_cut(Share.alone([0, 100]), 100, n_drawn) is None
    weights = np.repeat([0.0, 2.0], [400, 100])
    assert rows_to_cut(Share.alone([0, 500]), 500, n_drawn, weights) is None


def test_rows_that_weigh_nothing_are_not_drawn_to_cut_by():
    weights = (np.arange(9000) % 3 == 0) * 2.0
    drawn = rows_to_cut(Share.alone([0, 9000]), 9000, 1000, weights)
    assert 850 < len(drawn) < 1150
    assert (drawn % 3 == 0).all()


# ---- bootstrap --------------------------------------------------------------------------------------


def test_bootstrap_of_rows():
    bootstrap = Bootstrap(OFFSETS, "row", None, 7)
    times = np.array([bootstrap.times(tree) for tree in range(30)])
    assert (times.sum(axis=1) == N).all()
    assert (times == 0).mean() == pytest.approx(np.exp(-1), abs=0.01)
    assert len({line.tobytes() for line in times}) == 30
    assert Bootstrap(OFFSETS, "row", None, 7).times(11).tolist() == times[11].tolist()
    assert Bootstrap(OFFSETS, "row", None, 8).times(11).tolist() != times[11].tolist()


def test_bootstrap_of_queries_keeps_them_whole():
    for tree in range(10):
        times = Bootstrap(OFFSETS, "query", None, 7).times(tree)
        first = times[OFFSETS[:-1]]
        assert (times == np.repeat(first, np.diff(OFFSETS))).all()
        assert first.sum() == 200


def test_no_bootstrap_takes_every_row_once():
    assert Bootstrap(OFFSETS, None, None, 7).times(3).tolist() == [1] * N


def test_so_many_draws():
    for n_draws in (1, N // 4, N):
        assert Bootstrap(OFFSETS, "row", n_draws, 7).times(0).sum() == n_draws


# ---- what is held out -------------------------------------------------------------------------------


def data_of(sizes, qid_given=True, order=None, weights=None):
    n_rows = int(np.sum(sizes))
    offsets = np.concatenate([[0], np.cumsum(sizes)]) if qid_given else np.array([0, n_rows])
    labels = np.arange(n_rows, dtype=float)
    return FitData(np.zeros((n_rows, 1)), labels, weights, order, offsets.astype(np.int64), qid_given)


@settings(deadline=None)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=30),
    share=st.floats(0.001, 0.999),
    seed=st.integers(0, 2**31),
    shuffle=st.booleans(),
)
def test_held_out_queries_are_whole(sizes, share, seed, shuffle):
    n_rows = sum(sizes)
    order = np.random.default_rng(seed).permutation(n_rows) if shuffle else None
    data = data_of(sizes, order=order, weights=np.arange(n_rows) + 0.5)
    train, held_out = hold_out(data, share, seed)
    assert held_out.n_queries == min(max(1, round(share * len(sizes))), len(sizes) - 1)
    assert train.n_queries + held_out.n_queries == len(sizes)
    assert sorted([*train.labels, *held_out.labels]) == list(range(n_rows))
    query = np.repeat(np.arange(len(sizes)), sizes)
    for part in (train, held_out):
        assert part.X is data.X
        assert part.qid_given
        assert part.offsets.dtype == np.int64
        assert (part.weights == part.labels + 0.5).all()
        rows = part.labels.astype(int)
        assert part.order.tolist() == (rows if order is None else order[rows]).tolist()
        for start, stop in zip(part.offsets[:-1], part.offsets[1:], strict=True):
            (number,) = set(query[rows[start:stop]].tolist())
            assert stop - start == sizes[number]
    assert hold_out(data, share, seed)[1].labels.tolist() == held_out.labels.tolist()


def test_rows_are_held_out_where_there_are_no_queries():
    train, held_out = hold_out(data_of([50], qid_given=False), 0.2, 0)
    assert (train.n_rows, held_out.n_rows) == (40, 10)
    assert (train.n_queries, held_out.n_queries) == (1, 1)
    assert train.weights is None


def test_there_must_be_something_left():
    with pytest.raises(ValueError, match="holds out whole queries, but X holds only one"):
        hold_out(data_of([5]), 0.5, 0)
    with pytest.raises(ValueError, match="holds out rows, but X holds only one"):
        hold_out(data_of([1], qid_given=False), 0.5, 0)
    assert [part.n_rows for part in hold_out(data_of([1, 1]), 0.999, 0)] == [1, 1]


@pytest.mark.parametrize("qid_given", [True, False])
@pytest.mark.parametrize(("side", "said"), [(0, "holds out"), (1, "leaves to learn from")])
def test_rows_on_either_side_must_weigh_something(qid_given, side, said):
    """Of all ranks: on one of them there may be none that do."""
    sizes, seed = [3, 1, 2, 4], 5
    whole = data_of(sizes, qid_given)
    weights = np.isin(whole.labels, hold_out(whole, 0.5, seed)[side].labels).astype(float)
    message = (
        rf"sample_weight is zero for all rows that validation_fraction=0.5 {said}; .* early_stopping=False"
    )
    with pytest.raises(ValueError, match=message):
        hold_out(replace(whole, weights=weights), 0.5, seed)

    def of_two(ranks, weights):
        own = slice(0, 4) if ranks.rank == 0 else slice(4, 10)
        offsets = np.concatenate([[0], np.cumsum(sizes[:2] if ranks.rank == 0 else sizes[2:])])
        offsets = offsets if qid_given else offsets[[0, -1]]
        share = Share.among(
            ranks, offsets, list(range(2 * ranks.rank, 2 * ranks.rank + 2)) if qid_given else None
        )
        labels = whole.labels[own]
        data = FitData(np.zeros((10, 1)), labels, weights[own], None, offsets, qid_given, share=share)
        return hold_out(data, 0.5, seed)[side].labels

    def refused(ranks):
        with pytest.raises(ValueError, match=message):
            of_two(ranks, weights)

    together(2, refused)
    some = np.concatenate(together(2, lambda ranks: of_two(ranks, np.arange(10) % 5 > 0)))
    assert some.tolist() == hold_out(whole, 0.5, seed)[side].labels.tolist()


@given(
    seed=st.integers(0, 2**63),
    n_features=st.integers(1, 40),
    n_drawn=st.integers(1, 40),
    ids=st.lists(st.integers(0, 500), min_size=1, max_size=5),
)
def test_leaves_draw_what_a_shuffle_puts_first(seed, n_features, n_drawn, ids):
    usable = np.arange(0, 2 * n_features, 2, dtype=np.int32)
    ids = np.array(ids, np.int32)
    shuffled = np.repeat(usable[None], len(ids), axis=0)
    kernels.features_of_leaves(seed, 7, ids, shuffled)
    for first in range(0, n_features, n_drawn):
        drawn = np.empty((len(ids), min(n_drawn, n_features - first)), np.int32)
        kernels.draw_features(seed, 7, ids, usable, first, drawn)
        np.testing.assert_array_equal(drawn, np.sort(shuffled[:, first : first + n_drawn], axis=1))
