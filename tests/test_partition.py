import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktrees._core import partition
from ranktrees._core.dtypes import BIN, LEAF
from reference import growing as slow

UNITS = (0.5, 0.25, 0.125)  # l2, gradient unit, hessian unit
MANY_ROWS = 4096


def planted(codes, mapper, rng, *, n_leaves=1, categorical=False):
    """Leaves of one and the same split each, and the order of their rows."""
    n_rows = len(codes)
    leaves = np.zeros(3 * n_leaves, LEAF)
    edges = np.sort(rng.integers(0, n_rows + 1, n_leaves - 1))
    leaves["start"][:n_leaves] = [0, *edges]
    leaves["stop"][:n_leaves] = [*edges, n_rows]
    leaves["lower"], leaves["upper"] = -np.inf, np.inf
    for leaf in leaves[:n_leaves]:
        leaf["total"] = (int(rng.integers(-99, 99)), 70, leaf["stop"] - leaf["start"])
        split = leaf["split"]
        split["feature"] = rng.integers(0, codes.shape[1])
        split["code"] = rng.integers(0, mapper.n_bins[split["feature"]])
        split["missing_left"] = rng.integers(0, 2)
        split["categorical"] = categorical
        split["categories"] = rng.integers(0, 2**32, 8)
        split["left"] = (int(rng.integers(-99, 99)), 30, 1)
    return leaves, rng.permutation(n_rows).astype(np.uint32)


def split_leaves(leaves, n_leaves, codes, mapper, order, n_threads=1, monotone=None):
    ids = np.arange(n_leaves, dtype=np.int32)
    scratch = np.empty_like(order)
    partition.split_leaves(
        leaves, ids, n_leaves, codes, mapper.offsets, monotone, order, scratch, *UNITS, n_threads
    )


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 200),
    n_leaves=st.integers(1, 5),
    categorical=st.booleans(),
    n_threads=st.integers(1, 4),
)
def test_a_stable_permutation_within_each_leaf(seed, n_rows, n_leaves, categorical, n_threads):
    rng = np.random.default_rng(seed)
    n_bins = [1, 9, 255]
    codes, mapper = slow.random_codes(rng, n_rows, n_bins, 0.2), slow.mapper_of(n_bins)
    leaves, order = planted(codes, mapper, rng, n_leaves=n_leaves, categorical=categorical)
    before = order.copy()
    split_leaves(leaves, n_leaves, codes, mapper, order, n_threads)
    for i, leaf in enumerate(leaves[:n_leaves]):
        rows, split = before[leaf["start"] : leaf["stop"]], leaf["split"]
        feature = split["feature"]
        goes_left = [
            bool(split["missing_left"]) if code == n_bins[feature] else slow.goes_left(split, code)
            for code in codes[rows, feature].tolist()
        ]
        expected = [*rows[np.array(goes_left, bool)], *rows[~np.array(goes_left, bool)]]
        assert order[leaf["start"] : leaf["stop"]].tolist() == expected
        left, right = leaves[leaf["left"]], leaves[leaf["right"]]
        assert (leaf["left"], leaf["right"]) == (n_leaves + 2 * i, n_leaves + 2 * i + 1)
        assert (left["start"], right["stop"]) == (leaf["start"], leaf["stop"])
        assert left["stop"] == right["start"] == leaf["start"] + sum(goes_left)


@pytest.mark.parametrize("n_rows", [MANY_ROWS - 1, MANY_ROWS, 3 * MANY_ROWS + 1])
@pytest.mark.parametrize("n_leaves", [1, 3])
def test_threads_do_not_show(n_rows, n_leaves):
    n_bins = [2, 40, 255]
    seen = set()
    for n_threads in (1, 2, 3, 4, 70):
        rng = np.random.default_rng(n_rows)
        codes, mapper = slow.random_codes(rng, n_rows, n_bins), slow.mapper_of(n_bins)
        leaves, order = planted(codes, mapper, rng, n_leaves=n_leaves)
        split_leaves(leaves, n_leaves, codes, mapper, order, n_threads)
        assert sorted(order.tolist()) == list(range(n_rows))
        seen.add(order.tobytes() + leaves.tobytes())
    assert len(seen) == 1


@pytest.mark.parametrize("all_left", [False, True])
def test_one_side_may_be_empty(all_left):
    codes, mapper = np.zeros((5000, 1), np.uint8), slow.mapper_of([2])
    leaves, order = planted(codes, mapper, np.random.default_rng(0))
    leaves["split"]["code"] = 0
    codes[:] = 0 if all_left else 1
    before = order.copy()
    split_leaves(leaves, 1, codes, mapper, order, 3)
    assert order.tolist() == before.tolist()
    assert leaves["stop"][1] == (5000 if all_left else 0)


@pytest.mark.parametrize("sign", [-1, 0, 1])
def test_children_and_the_wall_between_them(sign):
    codes, mapper = np.array([[0], [1], [1]], np.uint8), slow.mapper_of([2])
    leaves, order = np.zeros(3, LEAF), np.arange(3, dtype=np.uint32)
    total = np.array([(10, 9, 3)], BIN)
    partition.plant(leaves, total, 3, *UNITS)
    root = leaves[0]
    assert (root["start"], root["stop"], root["depth"]) == (0, 3, 0)
    assert root["left"] == root["right"] == root["histogram"] == root["split"]["feature"] == -1
    assert (root["lower"], root["upper"]) == (-np.inf, np.inf)
    assert root["value"] == -(10 * 0.25) / (9 * 0.125 + 0.5)
    root["split"]["feature"], root["split"]["left"] = 0, (4 * sign, 3, 1)
    root["lower"], root["upper"] = -3.0, 1.25
    split_leaves(leaves, 1, codes, mapper, order, 1, np.array([sign], np.int8))
    left, right = leaves[1:]
    rules = slow.Rules(0.25, 0.125, 0.5)
    assert left["total"].tolist() == (4 * sign, 3, 1)
    assert right["total"].tolist() == (10 - 4 * sign, 6, 2)
    for child in (left, right):
        assert child["value"] == rules.value(child["total"].tolist(), -3.0, 1.25)
        assert child["depth"] == 1
        assert child["left"] == child["right"] == child["histogram"] == child["split"]["feature"] == -1
    wall = 0.5 * (left["value"] + right["value"])
    lower, upper = {
        -1: ([wall, -3.0], [1.25, wall]),
        0: ([-3.0] * 2, [1.25] * 2),
        1: ([-3.0, wall], [wall, 1.25]),
    }[sign]
    assert leaves["lower"][1:].tolist() == lower
    assert leaves["upper"][1:].tolist() == upper


def test_no_leaves_no_work():
    codes, mapper = np.zeros((3, 1), np.uint8), slow.mapper_of([2])
    leaves, order = planted(codes, mapper, np.random.default_rng(0))
    before = leaves.tobytes() + order.tobytes()
    split_leaves(leaves, 0, codes, mapper, order, 2)
    assert leaves.tobytes() + order.tobytes() == before


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_add_values(n_threads):
    leaves = np.zeros(5, LEAF)
    leaves["left"] = [1, 3, -1, -1, -1]
    leaves["start"], leaves["stop"] = [0, 0, 4, 0, 1], [6, 4, 6, 1, 4]
    values = np.array([99.0, 99.0, 1.0, 2.0, 3.0])
    order = np.array([5, 0, 8, 2, 1, 7], np.uint32)
    scores = np.full(9, 0.5)
    partition.add_values(leaves, values, order, scores, n_threads)
    expected = np.full(9, 0.5)
    expected[[5]] += 2
    expected[[0, 8, 2]] += 3
    expected[[1, 7]] += 1
    assert scores.tolist() == expected.tolist()
