import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import together

from ranktrees._core.support.dtypes import LEAF
from ranktrees.growing.grown import Grown
from ranktrees.processes.communicator import ALONE
from reference import growing as slow

NEARBY = 1 << 17  # rows of a stretch, at most


def leaf_of_rows(rng, n_rows, n_leaves):
    """The leaf of each row; -1 of those that the tree was not grown from."""
    return rng.integers(-1, n_leaves, n_rows)


def grown_with(rng, leaf_of, n_leaves, n_threads=1):
    """A tree with these rows in its leaves, some of each set apart; every other node was split."""
    leaves = np.zeros(2 * n_leaves, LEAF)
    leaves["left"][1::2], leaves["lower"], leaves["upper"] = -1, -np.inf, np.inf
    order, quiet = [], rng.random(len(leaf_of)) < 0.6
    for apart, start, stop in ((False, "start", "stop"), (True, "quiet_start", "quiet_stop")):
        for leaf in range(n_leaves):
            node = leaves[2 * leaf + 1]
            node[start] = sum(map(len, order))
            order.append(np.flatnonzero((leaf_of == leaf) & (quiet == apart)))
            node[stop] = node[start] + len(order[-1])
    return Grown(leaves, np.concatenate(order).astype(np.uint32), n_threads)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(0, 3000),
    n_leaves=st.integers(1, 20),
    n_threads=st.integers(1, 4),
)
def test_rows_get_the_values_of_their_leaves(every_thread, seed, n_rows, n_leaves, n_threads):
    rng = np.random.default_rng(seed)
    leaf_of = leaf_of_rows(rng, n_rows, n_leaves)
    values, scores = rng.normal(size=2 * n_leaves), rng.normal(size=n_rows)
    expected = scores + np.where(leaf_of < 0, 0.0, values[2 * leaf_of + 1])
    grown_with(rng, leaf_of, n_leaves, n_threads).add(values, scores)
    assert scores.tolist() == expected.tolist()


@pytest.mark.parametrize("n_rows", [0, 1, 2000])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_rows_leaf_by_leaf(every_thread, n_rows, n_threads):
    leaf_of = leaf_of_rows(np.random.default_rng(0), n_rows, 7)
    grown = grown_with(np.random.default_rng(1), leaf_of, 7, n_threads)
    rows, starts, stops = grown.leaf_by_leaf()
    assert len(rows) == len(grown.order)
    assert starts.tolist() == [0, *stops[:-1]]
    for leaf, start, stop in zip(range(7), starts, stops, strict=True):
        assert rows[start:stop].tolist() == slow.rows_of(grown, grown.leaves[2 * leaf + 1]).tolist()
        assert sorted(rows[start:stop]) == np.flatnonzero(leaf_of == leaf).tolist()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 1000),
    n_leaves=st.integers(1, 8),
    l2=st.sampled_from([0.0, 0.5]),
    n_threads=st.integers(1, 4),
)
def test_values_are_newton_steps_of_the_rows(every_thread, seed, n_rows, n_leaves, l2, n_threads):
    """However light the rows of a leaf are beside the others, or those of a stretch beside its others."""
    rng = np.random.default_rng(seed)
    leaf_of, stretch_of = leaf_of_rows(rng, n_rows, n_leaves), 4 * np.arange(n_rows) // n_rows
    scale = 10.0 ** (rng.integers(-12, 13, n_leaves)[leaf_of] + rng.integers(-3, 4, 4)[stretch_of])
    gradients, hessians = rng.normal(size=n_rows) * scale, rng.random(n_rows) * scale
    grown = grown_with(rng, leaf_of, n_leaves, n_threads)
    grown.leaves["lower"][1] = 0.0
    grown.set_values(gradients, hessians, l2)
    for leaf in range(n_leaves):
        gradient, hessian = (slow.exact_sum(side[leaf_of == leaf]) for side in (gradients, hessians))
        value = -gradient / (hessian + l2) if hessian + l2 > 0 else 0.0
        assert grown.values[2 * leaf + 1] == (max(value, 0.0) if leaf == 0 else value)
    assert (grown.values[::2] == 0).all()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_leaf_reaches_over_many_stretches(every_thread, n_threads):
    rng = np.random.default_rng(0)
    leaf_of = leaf_of_rows(rng, 5 * NEARBY + 7, 3)
    gradients, scores = rng.normal(size=len(leaf_of)), np.zeros(len(leaf_of))
    grown = grown_with(rng, leaf_of, 3, n_threads)
    grown.set_values(gradients, np.ones(len(leaf_of)), 0.0)
    grown.add(grown.values, scores)
    for leaf in range(3):
        rows = leaf_of == leaf
        assert (scores[rows] == -slow.exact_sum(gradients[rows]) / rows.sum()).all()
    assert (scores[leaf_of < 0] == 0).all()


@pytest.mark.parametrize("hessian", [1e-300, 0.1, 1.0, 3e200])
def test_hessians_that_are_the_same_need_not_be_read(hessian):
    rng = np.random.default_rng(0)
    leaf_of, gradients = leaf_of_rows(rng, 1000, 4), rng.normal(size=1000)
    read, told = (grown_with(np.random.default_rng(1), leaf_of, 4) for _ in range(2))
    read.set_values(gradients, np.full(1000, hessian), 0.0)
    told.set_values(gradients, None, 0.0, same=hessian)
    assert read.values.tolist() == told.values.tolist()


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 300),
    n_ranks=st.integers(2, 4),
    same=st.sampled_from([None, 0.3]),
)
def test_values_are_the_same_however_rows_are_dealt_to_ranks(seed, n_rows, n_ranks, same):
    """If the steps of one rank's own rows are finer by far than those of all, or if it has none."""
    rng = np.random.default_rng(seed)
    leaf_of, rank_of = leaf_of_rows(rng, n_rows, 5), rng.integers(0, n_ranks, n_rows)
    scale = 10.0 ** rng.integers(-9, 9, n_ranks)[rank_of]
    gradients, hessians = rng.normal(size=n_rows) * scale, rng.random(n_rows) * scale

    def values(own, communicator=ALONE):
        grown = grown_with(np.random.default_rng(0), leaf_of[own], 5)
        grown.leaves["total"]["count"][1::2] = np.bincount(leaf_of[leaf_of >= 0], minlength=5)
        grown.set_values(gradients[own], hessians[own], 0.5, same, communicator)
        return grown.values.tolist()

    dealt = together(n_ranks, lambda rank: values(rank_of == rank.rank, rank))
    assert dealt == n_ranks * [values(np.full(n_rows, True))]


def test_no_rows_follow():
    rows, scores = np.empty(0, np.uint32), np.zeros(3)
    grown_with(np.random.default_rng(0), np.zeros(5, int), 1).walk(None, None, None, rows, scores)
    assert scores.tolist() == [0, 0, 0]
