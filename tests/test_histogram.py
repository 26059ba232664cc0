import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktrees._core.growing.histogram import Builder
from ranktrees._core.support.dtypes import BIN, LEAF
from ranktrees.binning.codes import joined
from ranktrees.growing.packing import Packing, full_packing
from reference import growing as slow

BITS = 14  # of the hessian
NEVER = 10**9


def ids(*numbers):
    return np.array(numbers, np.int32)


class Case:
    """Rows with sums, in some order, and a Builder of the lines of ranges of them."""

    def __init__(self, seed, n_rows, n_bins, *, lanes=1, same=False, n_threads=1, n_lines=4, missing=0.2):
        rng = np.random.default_rng(seed)
        self.lanes, self.same = lanes, same
        self.codes, self.mapper = slow.random_codes(rng, n_rows, n_bins, missing), slow.mapper_of(n_bins)
        self.bins = np.ones(n_rows, BIN)
        self.bins["gradient"] = rng.integers(-(2**30), 2**30, n_rows)
        if not same:
            self.bins["hessian"] = rng.integers(0, 2**BITS // max(n_rows, 1) + 1, n_rows)
        self.order = rng.permutation(n_rows).astype(np.uint32)
        self.packing = full_packing(self.codes, self.mapper, np.arange(len(n_bins)))
        self.lines = np.zeros((n_lines, self.packing.n_cells * lanes), np.int64)
        self.builder = Builder(
            self.packing.bytes,
            self.packing.digits,
            self.packing.first_digit,
            self.packing.n_cells,
            self.order,
            slow.packed(self.bins, BITS)[self.order],
            n_threads,
        )

    def attach(self, *ranges):
        """Leaves of these rows, with a line where a third number says so."""
        self.leaves = np.zeros(len(ranges), LEAF)
        self.leaves["split"]["feature"] = self.leaves["line"] = -1
        self.leaves["splits_below"] = 1
        for leaf, (start, stop, *line) in zip(self.leaves, ranges, strict=True):
            leaf["start"], leaf["stop"] = start, stop
            leaf["line"] = line[0] if line else -1
        self.builder.attach(self.leaves, self.lines, self.lanes)
        return self

    def build(self, *leaves, n_threads=1):
        self.builder.build(ids(*leaves), BITS, self.same, n_threads)

    def expected(self, start, stop):
        """The line of order[start:stop]."""
        cells = slow.histogram(self.codes, self.bins, self.order[start:stop], self.mapper.n_bins)
        return slow.packed(cells, BITS).tobytes() if self.lanes == 1 else cells.tobytes()

    def check(self, leaf):
        leaf = self.leaves[leaf]
        assert self.lines[leaf["line"]].tobytes() == self.expected(leaf["start"], leaf["stop"])


modes = pytest.mark.parametrize(("lanes", "same"), [(1, False), (1, True), (2, False), (2, True)])


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 100) | st.sampled_from([256, 257, 400, 700]),  # one by one, or by tables
    n_bins=st.lists(st.sampled_from([1, 2, 7, 15, 16, 20, 255]), min_size=1, max_size=40),
    lanes=st.sampled_from([1, 2]),
    same=st.booleans(),
    missing=st.sampled_from([0.0, 0.3]),
    n_threads=st.integers(1, 4),
)
def test_builds_what_the_slow_twin_counts(seed, n_rows, n_bins, lanes, same, missing, n_threads):
    n_bins = n_bins if sum(n_bins) < 1500 else n_bins[:4]
    case = Case(seed, n_rows, n_bins, lanes=lanes, same=same, missing=missing, n_threads=n_threads)
    start, stop = sorted(np.random.default_rng(seed).integers(0, n_rows + 1, 2))
    case.attach((0, n_rows, 1), (start, stop, 1))
    case.build(0, n_threads=n_threads)
    case.check(0)
    case.build(1, n_threads=n_threads)  # over what was there
    case.check(1)
    assert not case.lines[[0, 2, 3]].any()


@modes
@pytest.mark.parametrize("n_bytes", range(1, 18))
def test_any_number_of_bytes(n_bytes, lanes, same):
    """A block has eight; the last may have fewer."""
    case = Case(n_bytes, 150, [20] * n_bytes, lanes=lanes, same=same, n_threads=3)
    assert case.packing.n_bytes == n_bytes
    for n_threads in (1, 2, 3):  # by blocks
        case.attach((5, 150, n_threads)).build(0, n_threads=n_threads)
        case.check(0)


@pytest.mark.parametrize("n_rows", [20, 60, 1100])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_two_features_of_sixteen_cells_in_each_byte(missing, n_rows):
    """Their margins are found side by side, where rows are not too few for tables."""
    case = Case(n_rows, n_rows, [15 if missing else 16] * 22, missing=missing)
    assert case.packing.n_bytes == 11
    case.attach((0, n_rows, 1)).build(0)
    case.check(0)


@modes
@pytest.mark.parametrize("n_rows", [1, 511, 512, 513, 1100])
def test_any_number_of_rows(n_rows, lanes, same):
    """They are taken by chunks of 512; threads share those of a leaf that has many."""
    case = Case(n_rows, n_rows, [3, 20, 2, 17], lanes=lanes, same=same, n_threads=4)
    case.attach((0, n_rows, 0))
    for n_threads in (1, 2, 3, 4):
        case.lines[:] = 0
        case.build(0, n_threads=n_threads)
        case.check(0)


@modes
def test_leaves_large_and_small_at_once(lanes, same):
    """Threads share the rows of some leaves, and take one each of the others."""
    case = Case(0, 3000, [30] * 20, lanes=lanes, same=same, n_threads=3)
    case.attach((0, 3000), (0, 100, 2), (100, 2500, 0), (2500, 2500, 3), (2500, 3000, 1))
    for n_threads in (1, 2, 3):
        case.lines[:] = 0
        case.build(4, 1, 2, 3, n_threads=n_threads)
        for leaf in (1, 2, 3, 4):
            case.check(leaf)


@modes
def test_neither_order_nor_threads_show(lanes, same):
    case = Case(1, 9000, [255, 3, 40] * 11, lanes=lanes, same=same, n_threads=4)
    case.attach((0, 9000, 0))
    seen = set()
    sums = slow.packed(case.bins, BITS)
    for n_threads in (1, 2, 3, 4, 1, 4):
        case.order[:] = np.random.default_rng(len(seen) + n_threads).permutation(case.order)
        case.builder = Builder(
            case.packing.bytes, case.packing.digits, case.packing.first_digit, case.packing.n_cells,
            case.order, sums[case.order], n_threads,
        )  # fmt: skip
        case.builder.attach(case.leaves, case.lines, lanes)
        case.build(0, n_threads=n_threads)
        seen.add(case.lines[0].tobytes())
    assert len(seen) == 1


@pytest.mark.parametrize("n_threads", [1, 2])
def test_lanes_do_not_carry_into_each_other(n_threads):
    """Negative gradients, and hessians up to the very limit of their 32 bits."""
    gradients, hessians = np.array([-1, -(2**30), -(2**30) + 1]), np.array([2**31, 2**31 - 1, 0])
    codes, cells = np.zeros((3, 1), np.uint8, "F"), [np.array([0, 1])]
    packing = Packing(codes, np.zeros(1, int), cells, np.zeros(1, int), np.ones(1, int), 2)
    order = np.arange(3, dtype=np.uint32)
    leaves, sums = np.zeros(1, LEAF), (gradients << 32) + hessians
    leaves["stop"] = 3
    builder = Builder(packing.bytes, packing.digits, packing.first_digit, 2, order, sums, n_threads)
    for lanes, expected in ((1, [-(2**63) + 2**32 - 1, 0]), (2, [-(2**31), 2**32 - 1 + (3 << 32), 0, 0])):
        lines = np.zeros((1, 2 * lanes), np.int64)
        builder.attach(leaves, lines, lanes)
        builder.build(ids(0), 32, False, n_threads)
        assert lines[0].tolist() == expected


# ---- who has a line ---------------------------------------------------------------------------------


def lines_of(case):
    return case.leaves["line"].tolist()


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(2, 80),
    lanes=st.sampled_from([1, 2]),
    n_threads=st.integers(1, 4),
)
def test_parent_minus_one_child_is_the_other(seed, n_rows, lanes, n_threads):
    case = Case(seed, n_rows, [5, 255, 1, 2], lanes=lanes, n_threads=n_threads)
    middle = int(np.random.default_rng(seed).integers(0, n_rows + 1))
    case.attach((0, n_rows), (0, middle), (middle, n_rows))
    case.builder.begin()
    assert case.builder.root(0, BITS, case.same, n_threads)
    case.check(0)
    with_line, without = case.builder.take_over(ids(0), ids(1, 2), 0, BITS, case.same, n_threads, 1)
    assert (with_line.tolist(), without.tolist(), case.leaves["line"][0]) == ([1, 2], [], -1)
    case.check(1)
    case.check(2)


def test_who_gets_a_line():
    case = Case(0, 100, [5, 9], n_lines=4)  # the last is only lent
    case.attach((0, 100), (0, 60), (60, 100), (0, 30), (30, 60), (60, 75), (75, 100))
    builder = case.builder
    builder.begin()
    assert not builder.root(101, BITS, False, 1)  # too few rows
    assert builder.root(100, BITS, False, 1)
    first, then = (ids(0), ids(1, 2)), (ids(1, 2), ids(3, 4, 5, 6))
    assert [some.tolist() for some in builder.take_over(*first, 60, BITS, False, 1, NEVER)] == [[1, 2], []]
    case.leaves["splits_below"][3] = 0
    assert [some.tolist() for some in builder.take_over(*then, 0, BITS, False, 1, NEVER)] == [[4], [5, 6]]
    assert (case.leaves["line"] >= 0).tolist() == [False, False, False, True, True, False, False]
    case.check(3)
    case.check(4)
    case.leaves["split"]["feature"][4] = 0
    builder.forget(ids(3, 4), False)
    assert lines_of(case)[3] == -1 < lines_of(case)[4]
    builder.forget(ids(3, 4))
    assert lines_of(case) == [-1] * 7


@pytest.mark.parametrize("why", ["too few rows", "neither may split"])
def test_children_without_a_line(why):
    case = Case(0, 100, [5, 9])
    case.attach((0, 100), (0, 60), (60, 100))
    case.builder.begin()
    case.builder.root(0, BITS, False, 1)
    if why == "neither may split":
        case.leaves["splits_below"][1:] = 0
    few_rows = 61 if why == "too few rows" else 0
    found = case.builder.take_over(ids(0), ids(1, 2), few_rows, BITS, False, 1, NEVER)
    assert [some.tolist() for some in found] == [[], [1, 2] if why == "too few rows" else []]
    assert lines_of(case) == [-1, -1, -1]
    case.attach((0, 100), (0, 60), (60, 100))  # the parent's is free again
    assert case.builder.root(0, BITS, False, 1)


def test_a_line_is_lent_and_taken_back():
    case = Case(0, 100, [5, 9], n_lines=1)
    case.attach((0, 100), (20, 70))
    case.builder.begin()
    assert not case.builder.root(0, BITS, False, 1)
    for leaf in (0, 1):
        case.builder.lend(ids(leaf), BITS, False, 1)
        case.check(leaf)
        case.builder.take_back(ids(leaf))
    assert lines_of(case) == [-1, -1]


def test_no_leaves_no_work():
    case = Case(0, 3, [2], n_threads=2).attach((0, 3, 0))
    case.builder.begin()
    case.build(n_threads=2)
    assert [len(some) for some in case.builder.take_over(ids(), ids(), 0, BITS, False, 2, 1)] == [0, 0]
    case.builder.forget(ids())
    assert not case.lines.any()


@pytest.mark.parametrize("joint", [False, True])
def test_rows_that_leave_a_leaf_are_subtracted_from_its_counts(joint):
    """A leaf with most rows of a former one, whose rows have been parted since, has the counts of its own."""
    rng = np.random.default_rng(0)
    flags = (rng.random((900, 40)) < 0.03).astype(np.uint8)
    codes, mapper = slow.readable(flags), slow.mapper_of([2] * 40)
    if joint:
        entries = [np.flatnonzero(own).astype(np.uint32) for own in flags.T]
        first, values = np.cumsum([0, *map(len, entries)]), np.ones(flags.sum(), np.uint8)
        usual, lone = np.zeros(40, np.uint8), np.full(40, 2, np.int32)
        codes = joined(900, (first, np.concatenate(entries), values), usual, lone)
        assert (codes.joint_of >= 0).all()
    packing, order = full_packing(codes, mapper, np.arange(40)), rng.permutation(900).astype(np.uint32)
    builder = Builder(
        packing.bytes, packing.digits, packing.first_digit, packing.n_cells, order,
        np.zeros(900, np.int64), 1, packing.joint,
    )  # fmt: skip
    leaves, lines = np.zeros(1, LEAF), np.zeros((2, packing.n_cells), np.int64)
    builder.attach(leaves, lines, 1)
    builder.begin()
    stretches = [
        (0, 600, 600, 900),
        (0, 590, 600, 870),
        (30, 590, 640, 870),
        (30, 200, 640, 700),
        (0, 9, 880, 890),
    ]
    for start, stop, quiet_start, quiet_stop in stretches:
        leaves["start"], leaves["stop"] = start, stop
        leaves["quiet_start"], leaves["quiet_stop"] = quiet_start, quiet_stop
        [counts] = builder.counts_of(np.zeros(1, np.int32), 1)
        rows = np.r_[order[start:stop], order[quiet_start:quiet_stop]]
        expected = [np.bincount(own, minlength=3) for own in flags[rows].T]
        np.testing.assert_array_equal(counts, np.concatenate(expected))
        for part in (order[start:stop], order[quiet_start:quiet_stop]):
            part[:] = rng.permutation(part)
