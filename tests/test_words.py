from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ranks import together

from ranktrees._core.growing.words import Words, bins_in_use
from ranktrees._core.support.dtypes import BIN, LEAF
from ranktrees.processes.communicator import ALONE
from reference import words as slow
from widths import outputs_of


def leaves_of(totals):
    leaves = np.zeros(len(totals), LEAF)
    for leaf, (count, hessian) in zip(leaves, totals, strict=True):
        leaf["total"]["count"], leaf["total"]["hessian"] = count, hessian
    return leaves


def shares(rng, whole, shape):
    """Numbers whose sum over ranks and cells is at most that in size; one cell of one rank may have all."""
    parts = rng.dirichlet(np.full(np.prod(shape), 0.05)).reshape(shape)
    return np.floor(whole * parts).astype(np.int64)


def lines_of_ranks(rng, leaves, n_cells, lanes, bits, most_steps, n_ranks):
    lines = np.zeros((n_ranks, len(leaves), n_cells, lanes), np.int64)
    for k, total in enumerate(leaves["total"]):
        shape = n_ranks, n_cells
        sign = rng.choice([-1, 1], (1, n_cells)) if k % 2 else rng.choice([-1, 1], shape)
        gradient = sign * shares(rng, min(int(total["count"]) * most_steps, 2**30), shape)
        hessian, count = shares(rng, int(total["hessian"]), shape), shares(rng, int(total["count"]), shape)
        if lanes == 1:
            lines[:, k, :, 0] = (gradient << bits) + hessian
        else:
            cells = np.zeros(shape, BIN)
            cells["gradient"], cells["hessian"], cells["count"] = gradient, hessian, count
            lines[:, k] = cells.view(np.int64).reshape(*shape, 2)
    return lines.reshape(n_ranks, len(leaves), n_cells * lanes)


def ranks_that_say(said, rank):
    """Ranks of which each says how large its numbers are; this one says what it should."""
    said = np.array(said, np.int64)

    def stack(own, n_sums):
        assert n_sums == 1
        assert own.reshape(-1, 2).tolist() == said[rank].reshape(-1, 2).tolist()
        return said.reshape(len(said), *own.shape)

    return SimpleNamespace(size=len(said), stack=stack)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    totals=st.lists(st.tuples(st.integers(1, 2**20), st.integers(0, 2**21)), max_size=4),
    ends=st.lists(st.integers(0, 70), min_size=1, max_size=3).map(sorted),
    lanes=st.sampled_from([1, 2]),
    most_steps=st.sampled_from([0, 1, 2, 4, 1000, 2**50]),
    n_ranks=st.sampled_from([1, 2, 3, 8, 9, 70]),
)
@example(0, [(1, 0)], [0, 0], 1, 0, 3)
@example(1, [(1, 1), (2**30 - 1, 2**32 - 1)], [1], 1, 2**53, 3)
def test_the_words_of_all_ranks_add_up_to_the_sums_of_all(seed, totals, ends, lanes, most_steps, n_ranks):
    rng, bits, ends = np.random.default_rng(seed), 32, np.array([0, *ends])
    leaves = leaves_of(totals)
    lines = lines_of_ranks(rng, leaves, ends[-1], lanes, bits, most_steps, n_ranks)
    said = [slow.largest(own, lanes, bits) for own in lines]
    sizes = np.sum(said, axis=0, dtype=object).reshape(-1, 2).tolist()
    places, packed, copies = np.arange(len(leaves), dtype=np.int32), [], lines.copy()
    for rank, own in enumerate(copies):
        words = Words(ranks_that_say(said, rank))
        words.begin(bits)
        packed.append(words.pack(own, places, lanes, ends))
    for own, (found, n_words) in zip(lines, packed, strict=True):
        assert (found.tolist(), n_words) == slow.pack(own, sizes, lanes, ends, n_ranks, bits)
    total = np.sum([found for found, _ in packed], axis=0)
    stops = np.cumsum(n_words)
    for part, n, first, last in zip(np.split(total, stops[:-1]), n_words, ends[:-1], ends[1:], strict=True):
        assert len(part) == n
        words.unpack(part, first, last)
    assert copies[-1].tolist() == lines.sum(axis=0).tolist()


@pytest.mark.parametrize("n_ranks", [2, 3, 8])
@pytest.mark.parametrize(("times", "n_sums"), [(1, 1), (1000, 2)])
def test_lines_within_known_ones_are_added_up_at_once(n_ranks, times, n_sums):
    """But for gradients that are much larger than those known: these are added up once more."""
    rng = np.random.default_rng(n_ranks)
    known_hessians = rng.integers(1, 1000, (3, 40))
    hessians = rng.multinomial(known_hessians, np.full(n_ranks, 1 / n_ranks)).transpose(2, 0, 1)
    gradients = times * rng.integers(-1, 2, hessians.shape) * hessians
    known = (rng.integers(-1000, 1000, known_hessians.shape) << 32) + known_hessians
    lines, places = (gradients << 32) + hessians, np.array([2, 0, 1], np.int32)
    within = np.stack([places, np.zeros(3)], axis=1).astype(np.int64)

    def add_up(ranks):
        words, own = Words(ranks), lines[ranks.rank].copy()
        words.begin(32)
        ranks.stack(np.zeros(1), n_sums=1)
        words.add_up_within(own, places, known, within, 40, np.full(3, 1000))
        return own, ranks.traffic["messages"]

    for found, n_messages in together(n_ranks, add_up):
        assert found.tolist() == lines.sum(axis=0).tolist()
        assert n_messages == n_sums


@given(st.integers(0, 2**32), st.integers(0, 5), st.integers(1, 4), st.booleans())
def test_bins_in_use_are_those_of_features(seed, n_leaves, width, one_line):
    rng = np.random.default_rng(seed)
    features = rng.integers(-1, 3, (1 if one_line else n_leaves, width), dtype=np.int32)
    used = np.broadcast_to(features, (n_leaves, width)) >= 0
    assert np.asarray(bins_in_use(features, n_leaves)).tolist() == np.flatnonzero(used).tolist()


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_largest_sums_have_room(sign):
    words, places = Words(ALONE), np.zeros(1, np.int32)
    words.begin(32)
    line = np.full((1, 30), (sign * 15 << 32) + 7)
    found, _ = words.pack(line, places, 1, np.array([0, 30]))
    assert len(found) == 4  # a sign, four bits and three, eight times
    before = line.copy()
    line[:] = 0
    words.unpack(found, 0, 30)
    assert line.tolist() == before.tolist()


def test_the_width_of_registers_does_not_show():
    program = """
from types import SimpleNamespace
import numpy as np
from ranktrees._core.growing.words import Words
ranks = SimpleNamespace(size=2, stack=lambda own, _: np.stack([own, 2 * own]))
places, words = np.arange(3, dtype=np.int32), Words(ranks)
words.begin(32)
rng = np.random.default_rng(0)
lines = (rng.integers(-36, 37, (3, 400)) << 32) + rng.integers(0, 4, (3, 400))
for lanes in (1, 2):
    found, n_words = words.pack(lines, places, lanes, np.array([0, 77, 400 // lanes]))
    print(found.tolist(), n_words)
    back = lines.copy()
    lines[:] = 0
    words.unpack(found[n_words[0]:], 77, 400 // lanes)
    print(lines.tolist())
    lines = back
"""
    assert len(outputs_of(program)) == 1
