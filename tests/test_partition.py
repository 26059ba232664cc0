from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktrees._core.growing import parting
from ranktrees._core.support.dtypes import LEAF
from reference import growing as slow
from reference import scoring as trees
from widths import outputs_of

L2, GRADIENT_UNIT, HESSIAN_UNIT = 0.5, 0.25, 0.125
MANY_ROWS = 4096
FOLLOWED = 16384


def rounded(n_rows, total=(0, 0)):
    """What a Parter reads of RoundedRows."""
    units = {"gradient_unit": GRADIENT_UNIT, "hessian_unit": HESSIAN_UNIT}
    return SimpleNamespace(n_rows=n_rows, n_loud=n_rows, count=n_rows, total=total, **units)


class Case:
    """Leaves with a random split each, the order of their rows, and a Parter of them."""

    def __init__(
        self,
        seed,
        n_rows,
        n_bins,
        *,
        n_leaves=1,
        n_quiet=0,
        categorical=False,
        monotone=None,
        dtype=np.uint8,
    ):
        rng = np.random.default_rng(seed)
        n_loud, n_rows = n_rows, n_rows + n_quiet
        self.codes = slow.readable(slow.random_codes(rng, n_rows, n_bins, 0.2), dtype)
        self.n_bins, self.n_leaves = n_bins, n_leaves
        self.leaves = np.zeros(3 * n_leaves, LEAF)
        for side, first, last in (("", 0, n_loud), ("quiet_", n_loud, n_rows)):
            edges = np.sort(rng.integers(first, last + 1, n_leaves - 1))
            self.leaves[f"{side}start"][:n_leaves] = [first, *edges]
            self.leaves[f"{side}stop"][:n_leaves] = [*edges, last]
        self.leaves["lower"], self.leaves["upper"], self.leaves["left"] = -np.inf, np.inf, -1
        for leaf in self.leaves[:n_leaves]:
            n_own = leaf["stop"] - leaf["start"] + leaf["quiet_stop"] - leaf["quiet_start"]
            leaf["total"] = (int(rng.integers(-99, 99)), 70, n_own)
            split = leaf["split"]
            split["feature"] = rng.integers(0, len(n_bins))
            split["code"] = rng.integers(0, n_bins[split["feature"]])
            split["missing_left"], split["categorical"] = rng.integers(0, 2), categorical
            split["categories"], split["direction"] = rng.integers(0, 2**32, 8), 1
            split["left"] = (int(rng.integers(-99, 99)), 30, 1)
        self.order = rng.permutation(n_rows).astype(np.uint32)
        self.sums = 3 * self.order.astype(np.int64) - (1 << 60)
        offsets = slow.mapper_of(n_bins).offsets
        self.parter = parting.Parter(self.codes, offsets, monotone, self.order, self.sums)
        self.parter.attach(self.leaves)

    def split(self, n_threads=1, values_per_thread=1):
        ids = np.arange(self.n_leaves, dtype=np.int32)
        self.parter.split(ids, self.n_leaves, n_threads, values_per_thread)

    def goes_left(self, split, rows):
        codes = self.codes[rows, split["feature"]].tolist()
        missing = self.n_bins[split["feature"]]
        left = [
            bool(split["missing_left"]) if code == missing else slow.goes_left(split, code) for code in codes
        ]
        return np.array(left, bool)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(0, 200),
    n_quiet=st.integers(0, 200),
    n_leaves=st.integers(1, 5),
    categorical=st.booleans(),
    dtype=st.sampled_from([np.uint8, np.uint32]),
    n_threads=st.integers(1, 4),
    values_per_thread=st.sampled_from([1, 50]),
)
def test_a_stable_parting_within_each_leaf(
    seed, n_rows, n_quiet, n_leaves, categorical, dtype, n_threads, values_per_thread
):
    n_bins = [1, 9, 254, 255 if dtype == np.uint8 or categorical else 70_000]
    case = Case(
        seed, n_rows, n_bins, n_leaves=n_leaves, n_quiet=n_quiet, categorical=categorical, dtype=dtype
    )
    before = case.order.copy()
    case.split(n_threads, values_per_thread)
    assert (case.sums[:n_rows] == 3 * case.order[:n_rows].astype(np.int64) - (1 << 60)).all()
    for i, leaf in enumerate(case.leaves[:n_leaves]):
        assert (leaf["left"], leaf["right"]) == (n_leaves + 2 * i, n_leaves + 2 * i + 1)
        children = case.leaves[[leaf["left"], leaf["right"]]]
        for side in ("", "quiet_"):
            start, stop = leaf[f"{side}start"], leaf[f"{side}stop"]
            rows = before[start:stop]
            left = case.goes_left(leaf["split"], rows)
            assert case.order[start:stop].tolist() == [*rows[left], *rows[~left]]
            middle = start + left.sum()
            assert children[f"{side}start"].tolist() == [start, middle]
            assert children[f"{side}stop"].tolist() == [middle, stop]


@pytest.mark.parametrize("n_rows", [0, 1, 15, 16, 17, 33, MANY_ROWS - 1, MANY_ROWS, 5000])
@pytest.mark.parametrize("categorical", [False, True])
@pytest.mark.parametrize("n_leaves", [1, 3])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint32])
def test_threads_do_not_show(n_rows, categorical, n_leaves, dtype):
    seen = set()
    for n_threads in (1, 2, 3, 4, 70):
        case = Case(n_rows, n_rows, [2, 40, 255], n_leaves=n_leaves, categorical=categorical, dtype=dtype)
        before = case.order.copy()
        case.split(n_threads)
        seen.add(case.order.tobytes() + case.sums.tobytes() + case.leaves.tobytes())
    assert len(seen) == 1
    assert (case.sums == 3 * case.order.astype(np.int64) - (1 << 60)).all()
    for leaf in case.leaves[:n_leaves]:
        rows = before[leaf["start"] : leaf["stop"]]
        left = case.goes_left(leaf["split"], rows)
        assert (case.order[leaf["start"] : leaf["stop"]] == [*rows[left], *rows[~left]]).all()


def test_widths_of_registers_do_not_change_the_order():
    program = (
        "import numpy as np, test_partition as t\n"
        "for n in (*range(70), 400, 5000):\n"
        "    for dtype in (np.uint8, np.uint32):\n"
        "        case = t.Case(n, n, [3, 254, 255], n_leaves=2, n_quiet=n // 2, dtype=dtype)\n"
        "        case.split()\n"
        "        print((case.order.tobytes() + case.sums.tobytes()).hex())\n"
    )
    assert len(outputs_of(program)) == 1


@pytest.mark.parametrize("all_left", [False, True])
@pytest.mark.parametrize("missing", [False, True])
def test_one_side_may_be_empty(all_left, missing):
    case = Case(0, 5000, [2])
    split = case.leaves["split"]
    split["code"], split["missing_left"] = 0, all_left
    case.codes[:] = 2 if missing else not all_left
    before = case.order.copy()
    case.split(3)
    assert case.order.tolist() == before.tolist()
    assert case.leaves["stop"][1] == (5000 if all_left else 0)


@pytest.mark.parametrize("order", [1, -1, 0])
@pytest.mark.parametrize("sign", [-1, 0, 1])
def test_children_and_the_wall_between_them(sign, order):
    case = Case(0, 3, [2], monotone=np.array([sign], np.int8))
    case.codes[:, 0] = 0, 1, 1
    case.parter.begin(rounded(3, (10, 9)), L2)
    root = case.leaves[0]
    assert (root["start"], root["stop"], root["depth"]) == (0, 3, 0)
    assert root["left"] == root["right"] == root["line"] == root["split"]["feature"] == -1
    assert (root["lower"], root["upper"]) == (-np.inf, np.inf)
    assert root["total"].tolist() == (10, 9, 3)
    assert root["value"] == -(10 * 0.25) / (9 * 0.125 + 0.5)
    root["split"]["feature"], root["split"]["left"], root["split"]["direction"] = 0, (4 * sign, 3, 1), order
    root["lower"], root["upper"] = -3.0, 1.25
    case.split()
    left, right = case.leaves[1:]
    assert left["total"].tolist() == (4 * sign, 3, 1)
    assert right["total"].tolist() == (10 - 4 * sign, 6, 2)
    for child in (left, right):
        assert child["value"] == slow.Rules(0.25, 0.125, 0.5).value(child["total"].tolist(), -3.0, 1.25)
        assert child["depth"] == 1
        assert child["left"] == child["right"] == child["line"] == child["split"]["feature"] == -1
    wall = 0.5 * (left["value"] + right["value"])
    lower, upper = {
        -1: ([wall, -3.0], [1.25, wall]),
        0: ([-3.0] * 2, [1.25] * 2),
        1: ([-3.0, wall], [wall, 1.25]),
    }[sign * order]
    assert case.leaves["lower"][1:].tolist() == lower
    assert case.leaves["upper"][1:].tolist() == upper


@pytest.mark.parametrize(
    ("min_samples_leaf", "max_depth", "expected"),
    [(1, None, [2, 0, 1]), (1, 1, [1, 0, 0]), (1, 0, [0, 0, 0]), (2, None, [0, 0, 0]), (1, 2, [2, 0, 1])],
)
def test_leaves_that_are_too_small_or_too_deep_may_not_split(min_samples_leaf, max_depth, expected):
    codes = slow.readable(np.array([[0], [1], [1]], np.uint8))
    order, sums, leaves = np.arange(3, dtype=np.uint32), np.zeros(3, np.int64), np.zeros(3, LEAF)
    parter = parting.Parter(codes, np.array([0, 3]), None, order, sums, min_samples_leaf, max_depth)
    parter.attach(leaves)
    parter.begin(rounded(3, (0, 3)), L2)
    leaves["split"]["feature"] = 0
    parter.split(np.zeros(1, np.int32), 1, 1)
    assert leaves["splits_below"].tolist() == expected


@pytest.mark.parametrize("missing", ["learned", "left", "right"])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("over_ranks", [False, True])
def test_rows_are_counted_and_go_back_where_a_child_gets_too_few(over_ranks, n_threads, missing):
    case = Case(1, 9000, [2, 40, 255], n_leaves=4, n_quiet=3000)
    case.leaves["split"]["missing_left"][:4] = missing == "left"
    stretches = [
        [slice(leaf["start"], leaf["stop"]), slice(leaf["quiet_start"], leaf["quiet_stop"])]
        for leaf in case.leaves[:4]
    ]
    for sides in stretches:
        for side in sides:
            case.order[side].sort()
    case.sums[:] = 3 * case.order.astype(np.int64) - (1 << 60)
    rows = [np.concatenate([case.order[side] for side in sides]) for sides in stretches]
    lefts = [case.goes_left(leaf["split"], own) for leaf, own in zip(case.leaves, rows, strict=False)]
    smaller = np.array([min(left.sum(), (~left).sum()) for left in lefts])
    least = int(np.median(smaller)) + 1
    some_missing = [
        (case.codes[own, leaf["split"]["feature"]] == case.n_bins[leaf["split"]["feature"]]).any()
        for leaf, own in zip(case.leaves, rows, strict=False)
    ]
    offsets, leaves = slow.mapper_of(case.n_bins).offsets, case.leaves
    parter = parting.Parter(case.codes, offsets, None, case.order, case.sums, least, None, missing)
    parter.attach(np.empty(1, LEAF))
    parter.begin(rounded(0), L2, counts_later=True)
    parter.attach(leaves)
    ids, before = np.arange(4, dtype=np.int32), case.order.copy()
    if over_ranks:
        parted = parter.part(ids, n_threads, 1).base
        assert parted["n_left"].tolist() == [left.sum() for left in lefts]
        assert (parted["n_lacking"] > 0).tolist() == some_missing
        refused = parter.split_parted(ids, 4, parted[None]).base
    else:
        refused = parter.split(ids, 4, n_threads)
    assert refused.tolist() == np.flatnonzero(smaller < least).tolist() != []
    for i, leaf in enumerate(leaves[:4]):
        for side in stretches[i]:
            left = case.goes_left(leaf["split"], before[side]) | (i in refused)
            assert case.order[side].tolist() == [*before[side][left], *before[side][~left]]
        if i not in refused:
            assert leaf["split"]["left"]["count"] == lefts[i].sum()
            if not some_missing[i]:
                most = 2 * lefts[i].sum() > len(rows[i])
                assert leaf["split"]["missing_left"] == {"learned": most}.get(missing, missing == "left")
    assert (case.sums[:9000] == 3 * case.order[:9000].astype(np.int64) - (1 << 60)).all()
    children = leaves[4:].copy()
    kept = np.setdiff1d(ids, refused).astype(np.int32)
    assert not len(parter.split(kept[::-1].copy(), 4, n_threads))
    for k, i in enumerate(kept[::-1]):
        again = leaves[4 + 2 * k : 6 + 2 * k]
        assert again.tobytes() == children[2 * i : 2 * i + 2].tobytes()


def test_no_leaves_no_work():
    case = Case(0, 3, [2])
    before = case.leaves.tobytes() + case.order.tobytes()
    case.parter.split(np.empty(0, np.int32), 1, 2)
    assert case.leaves.tobytes() + case.order.tobytes() == before


# ---- rows that follow ---------------------------------------------------------------------------------


def followed(tree, codes, n_bins, rows, n_threads):
    """The scores after rows went down a tree whose leaves add their numbers and a half."""
    scores = np.full(len(codes), 0.25)
    values, offsets = np.arange(len(tree)) + 0.5, slow.mapper_of(n_bins).offsets
    parting.Follower(tree, values, codes, offsets).follow(rows, scores, n_threads)
    return scores


@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(0, 60),
    n_leaves=st.integers(1, 50),
    dtype=st.sampled_from([np.uint8, np.uint32]),
    n_threads=st.integers(1, 3),
)
@settings(deadline=None, max_examples=40)
def test_rows_follow_the_plain_walk(seed, n_rows, n_leaves, dtype, n_threads):
    rng = np.random.default_rng(seed)
    n_bins = rng.integers(1, 256, size=5).astype(np.int32)
    tree = trees.random_growing_tree(rng, n_leaves, n_bins)
    codes = slow.readable(slow.random_codes(rng, n_rows, n_bins, 0.2), dtype)
    reached = np.array([slow.leaf_of(tree, n_bins, line) for line in codes])
    for rows in (np.arange(n_rows), np.flatnonzero(rng.random(n_rows) < 0.5)):
        expected = np.full(n_rows, 0.25)
        expected[rows] += reached[rows] + 0.5
        assert followed(tree, codes, n_bins, rows.astype(np.uint32), n_threads).tolist() == expected.tolist()


@pytest.mark.parametrize("n_rows", [FOLLOWED - 1, FOLLOWED, FOLLOWED + 1, 2 * FOLLOWED + 5])
def test_many_rows_follow(n_rows):
    rng = np.random.default_rng(n_rows)
    n_bins = np.array([255, 40, 3], np.int32)
    tree = trees.random_growing_tree(rng, 60, n_bins)
    some = slow.random_codes(rng, 200, n_bins, 0.2)
    which = rng.integers(0, 200, n_rows)
    expected = np.array([0.75 + slow.leaf_of(tree, n_bins, line) for line in some])[which]
    codes, rows = slow.readable(some[which]), np.arange(n_rows, dtype=np.uint32)
    for n_threads in (1, 2, 3):
        assert (followed(tree, codes, n_bins, rows.copy(), n_threads) == expected).all()
