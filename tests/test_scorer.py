import copy
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from test_simd import run

from ranktrees import HistGBRTRegressor
from ranktrees.model import scorer as scorers
from ranktrees.model import scoring
from ranktrees.model.ensemble import Ensemble
from reference import scoring as reference

# Cuts that float32 can not hold, neighbours of each other in float64 and in float32, and the ends of both.
TIGHT = np.array(
    [0.1, np.nextafter(0.1, 1), np.nextafter(0.1, 0), np.float32(0.1), np.nextafter(np.float32(0.1), 1)]
)
HOSTILE = np.concatenate([reference.HOSTILE, TIGHT, [1e-45, 3.4028235e38, 3.5e38, -1e39, 1e-46, -1e-46]])


def plain(ensemble, X):
    """The scores by a plain walk, which finds the leaves."""
    sums = np.zeros(len(X)) if ensemble.average else np.full(len(X), ensemble.base)
    for t, leaves in enumerate(reference.leaves(ensemble, X).T):
        sums += ensemble[t].nodes["value"][leaves]
    return ensemble.base + sums / max(ensemble.n_trees, 1) if ensemble.average else sums


def grown(rng, n_leaves, n_features=5, cuts=HOSTILE, categories=None, groups=None):
    """An ensemble of one random tree of so many leaves for each of ``n_leaves``."""
    categories = [None] * n_features if categories is None else categories
    trees = [reference.random_tree(rng, n, categories, cuts, 8 if groups is None else 16) for n in n_leaves]
    nodes, bitsets = zip(*trees, strict=True)
    return Ensemble.from_trees(
        nodes, bitsets, n_features=n_features, categories=categories, groups=groups, base=rng.normal()
    )


@given(
    seed=st.integers(0, 2**32 - 1),
    n_leaves=st.lists(st.sampled_from([1, 2, 3, 17, 63, 64, 65, 200, 256, 257, 400]), max_size=8),
    n_rows=st.integers(1, 300),
    dtype=st.sampled_from([np.float32, np.float64]),
    order=st.sampled_from(["C", "F"]),
    n_threads=st.integers(1, 4),
    missing=st.booleans(),
    n_codes=st.sampled_from([None, 255, 256, 400]),
)
@settings(deadline=None, max_examples=60)
def test_scores_are_those_of_the_plain_walk(
    seed, n_leaves, n_rows, dtype, order, n_threads, missing, n_codes
):
    rng = np.random.default_rng(seed)
    categories = [None, np.arange(-3.0, rng.integers(0, 254)), None, np.array([0.1, 0.5]), None]
    groups = None
    if n_codes is not None:
        categories[4] = np.arange(500.0)
        groups = [None, None, None, None, rng.permutation(np.arange(500) % n_codes)]
    ensemble = grown(rng, [1, *n_leaves], categories=categories, groups=groups)
    X = np.asarray(reference.random_rows(rng, ensemble, n_rows, dtype), order=order)
    X = X if missing else np.nan_to_num(X, nan=2.0)
    assert ensemble.predict(X, n_jobs=n_threads).tobytes() == plain(ensemble, X).tobytes()


@pytest.mark.parametrize("n_leaves", [1, 2, 64, 65, 256, 257, 1000])
@pytest.mark.parametrize("n_rows", [1, 5, 40, 65, 300])
def test_trees_of_every_size(n_leaves, n_rows):
    rng = np.random.default_rng(n_leaves)
    ensemble = grown(rng, [n_leaves] * 3 + [7, n_leaves, 1, n_leaves], cuts=rng.normal(size=2000))
    X = reference.random_rows(rng, ensemble, n_rows)
    assert ensemble.predict(X).tobytes() == plain(ensemble, X).tobytes()


def chain(n_leaves):
    """A tree that is one long way down, to the left and to the right in turn."""
    nodes = np.zeros(2 * n_leaves - 1, reference.NODE)
    nodes["feature"], nodes["left"], nodes["right"], nodes["categories"] = -1, -1, -1, -1
    inner = np.arange(0, 2 * n_leaves - 2, 2)
    nodes["feature"][inner] = 0
    swap = inner % 4 == 0
    nodes["left"][inner], nodes["right"][inner] = inner + 1 + swap, inner + 2 - swap
    nodes["cut"][inner] = np.where(swap, 1 - inner / 2000, inner / 2000 - 1)
    nodes["value"] = np.arange(len(nodes)) / 7
    return nodes


@pytest.mark.parametrize("n_leaves", [64, 256, 700])
def test_a_tree_may_be_one_long_way_down(n_leaves):
    ensemble = Ensemble.from_trees([chain(n_leaves)] * 2, n_features=1)
    X = np.linspace(-1.1, 1.1, 500)[:, None]
    assert ensemble.depth == n_leaves - 1
    assert ensemble.predict(X).tobytes() == plain(ensemble, X).tobytes()


def links(n_leaves):
    """Every tree of so many leaves, as nested pairs (left, right); None is a leaf."""
    if n_leaves == 1:
        return [None]
    return [(left, right) for n in range(1, n_leaves) for left in links(n) for right in links(n_leaves - n)]


def tree_of(link, rng):
    """Its nodes, of three features; no two leaves have the same value."""
    nodes = np.zeros(0, reference.NODE)

    def add(link):
        nonlocal nodes
        i = len(nodes)
        nodes = np.append(nodes, np.zeros(1, reference.NODE))
        nodes["feature"][i], nodes["left"][i], nodes["right"][i], nodes["categories"][i] = -1, -1, -1, -1
        nodes["value"][i] = 2.0**i
        if link is not None:
            nodes["feature"][i], nodes["cut"][i] = rng.integers(3), rng.normal()
            nodes["left"][i], nodes["right"][i] = add(link[0]), add(link[1])
        return i

    add(link)
    return nodes


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_units_of_every_shape(most, monkeypatch):
    monkeypatch.setitem(scorers.MOST_QUESTIONS, scorers.simd.level(), most)
    monkeypatch.setitem(scorers.NODE, scorers.simd.level(), (0.0, 0.0))
    rng = np.random.default_rng(most)
    trees = [tree_of(link, rng) for n_leaves in range(1, 8) for link in links(n_leaves)]
    assert len(trees) == 1 + 1 + 2 + 5 + 14 + 42 + 132
    X = rng.normal(size=(200, 3))
    for tree in trees:
        ensemble = Ensemble.from_trees([tree], n_features=3)
        assert ensemble.predict(X).tobytes() == plain(ensemble, X).tobytes()
    together = Ensemble.from_trees(trees, n_features=3)
    assert together.predict(X).tobytes() == plain(together, X).tobytes()


@pytest.mark.parametrize("most", [1, 4])
def test_trees_of_65_to_256_leaves_in_units(most, monkeypatch):
    monkeypatch.setitem(scorers.MOST_QUESTIONS, scorers.simd.level(), most)
    monkeypatch.setitem(scorers.NODE, scorers.simd.level(), (0.0, 0.0))
    rng = np.random.default_rng(7)
    ensemble = grown(rng, range(65, 257), cuts=rng.normal(size=300))
    X = reference.random_rows(rng, ensemble, 150)
    assert ensemble.predict(X).tobytes() == plain(ensemble, X).tobytes()


def test_more_sets_of_categories_than_a_node_can_tell_apart(monkeypatch):
    X = np.random.default_rng(0).integers(0, 9, (200, 2)).astype(float)
    model = HistGBRTRegressor(max_iter=5, categorical_features=[0, 1], min_samples_leaf=1).fit(X, X[:, 0] % 3)
    monkeypatch.setattr(scorers._kernels, "MOST_PLANES_IN_WALKS", 4)
    with pytest.raises(ValueError, match=r"the trees split by \d+ sets of categories; expected at most 4:"):
        model.predict(X)


@pytest.mark.parametrize("n_cuts", [254, 255, 508, 509, 3000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_feature_may_have_many_cuts(n_cuts, dtype):
    rng = np.random.default_rng(n_cuts)
    cuts = np.sort(rng.normal(size=n_cuts))
    stumps = [reference.stump(cut, rng.integers(2), rng.normal(size=2)) for cut in rng.permutation(cuts)]
    ensemble = Ensemble.from_trees(stumps, n_features=1)
    X = np.concatenate([cuts, np.nextafter(cuts, 9), np.nextafter(cuts, -9), [np.nan]])[:, None].astype(dtype)
    assert ensemble.predict(X).tobytes() == plain(ensemble, X).tobytes()


@pytest.mark.parametrize("n_leaves", [20, 60, 300])
@pytest.mark.parametrize("n_categories", [255, 256])
def test_all_categories_and_cuts_on_the_same_feature(n_leaves, n_categories):
    rng = np.random.default_rng(n_leaves)
    categories = [np.arange(1.0 * n_categories), np.array([])]
    nodes, bitsets = reference.random_tree(rng, n_leaves, categories, HOSTILE)
    nodes["categories"][(rng.random(len(nodes)) < 0.3) & (nodes["feature"] == 0)] = -1
    ensemble = Ensemble.from_trees([nodes], [bitsets], n_features=2, categories=categories)
    X = np.column_stack([np.r_[np.arange(-3.0, 260), np.nan, 0.5, -0.0], rng.normal(size=266)])
    assert ensemble.predict(X).tobytes() == reference.predict(ensemble, X).tobytes()


@pytest.mark.parametrize("n_rows", [3, 333])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_some_trees_and_some_rows(n_rows, as_sparse):
    rng = np.random.default_rng(1)
    ensemble = grown(rng, rng.integers(1, 90, size=40))
    X = reference.random_rows(rng, ensemble, n_rows)
    X[rng.random(X.shape) < 0.3] = 0
    scorer, sums = ensemble.scorer, np.full(n_rows, ensemble.base)
    codes = scorer.encode(sparse.csr_array(X) if as_sparse else X, 2)
    rows = rng.permutation(n_rows)[: n_rows // 2]
    for first, stop in ((0, 1), (1, 3), (3, 3), (3, 19)):
        scorer.add(codes, sums, first, stop, n_threads=2)
    scorer.add(codes, sums, 19, 40, rows, 2)
    assert sums[rows].tobytes() == ensemble.predict(X)[rows].tobytes()
    others = np.setdiff1d(np.arange(n_rows), rows)
    assert sums[others].tobytes() == ensemble.first(19).predict(X)[others].tobytes()


@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.sampled_from([1, 127, 300]),
    rate=st.sampled_from([0.0, 0.02, 0.1, 0.5]),
    missing=st.booleans(),
    n_threads=st.integers(1, 2),
)
def test_codes_of_sparse_rows_are_those_of_dense_ones(seed, n_rows, rate, missing, n_threads):
    """However few values there are; values of the same place are added up."""
    rng = np.random.default_rng(seed)
    categories = [np.arange(9.0) if f % 5 == 0 else None for f in range(20)]
    ensemble = grown(rng, rng.integers(2, 40, size=9), 20, categories=categories)
    X = np.where(rng.random((n_rows, 20)) < rate, reference.random_rows(rng, ensemble, n_rows), 0.0)
    X[np.isnan(X) & (rng.random(X.shape) < (0.5 if missing else 1.0))] = 0.0
    once = sparse.csr_array(X)
    data = np.column_stack([once.data, np.zeros(once.nnz)]).ravel()
    twice = sparse.csr_array((data, np.repeat(once.indices, 2), 2 * once.indptr), shape=X.shape)
    expected, scorer = ensemble.scorer.encode(X), ensemble.scorer
    for rows in (once, twice):
        codes = scorer.encode(rows, n_threads)
        for block, (found, own) in enumerate(zip(codes, expected, strict=True)):
            there = min(128, n_rows - 128 * block)
            np.testing.assert_array_equal(found[:-1, :there], own[:-1, :there])
            assert found[-1, 0] == own[-1, 0]


@pytest.mark.parametrize("missing_in", [[], [5], [5, 130]])
def test_missing_values_matter_only_to_blocks_that_have_them(missing_in):
    rng = np.random.default_rng(2)
    ensemble = grown(rng, [30] * 5, 2, cuts=rng.normal(size=9))
    X = rng.normal(size=(200, 2))
    X[missing_in, 0] = np.nan
    codes = ensemble.scorer.encode(X)
    assert codes[:, -1, 0].tolist() == [any(i < 128 for i in missing_in), any(i >= 128 for i in missing_in)]
    assert ensemble.predict(X).tobytes() == plain(ensemble, X).tobytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 4), "expected 0 <= first_tree <= stop_tree <= 3, the number of trees"),
        ((-1, 2), "first_tree=-1"),
        ((2, 1), "first_tree=2, stop_tree=1"),
        ((0, 3, np.array([0, 10])), "rows must be from 0 to 9, got 0 to 10"),
        ((0, 3, np.array([-1])), "rows must be from 0 to 9, got -1 to -1"),
        ((0, 3, np.array([4, 2, 4])), "rows has a row twice"),
        ((0, 3, None, 0), "n_threads must be at least 1, got 0"),
    ],
)
def test_there_must_be_such_trees_and_rows(arguments, message):
    ensemble = grown(np.random.default_rng(3), [4, 4, 4])
    codes = ensemble.scorer.encode(np.zeros((10, 5)))
    with pytest.raises(ValueError, match=message):
        ensemble.scorer.add(codes, np.zeros(10), *arguments)
    with pytest.raises(ValueError, match="codes has 1 blocks of rows, which do not match 129 sums"):
        ensemble.scorer.add(codes, np.zeros(129), 0, 1)


def test_codes_and_columns_are_those_of_the_scorer():
    ensemble, other = (grown(np.random.default_rng(3), leaves) for leaves in ([30] * 5, [2]))
    X = np.zeros((10, 5))
    with pytest.raises(ValueError, match=r"codes has shape \(1, .*, expected \(n_blocks, \d+, 128\)"):
        ensemble.scorer.add(other.scorer.encode(X), np.zeros(10), 0, 1)
    for rows in (X[:, :4], sparse.csr_array(X[:, :4]), X[0]):
        with pytest.raises(ValueError, match=r"X has shape \(.*\), expected \(n_rows, 5\)"):
            ensemble.scorer.encode(rows)
    for rows in (X, sparse.csr_array(X)):
        with pytest.raises(ValueError, match="n_threads must be at least 1, got 0"):
            ensemble.scorer.encode(rows, 0)


def test_any_byte_says_that_missing_values_matter():
    ensemble = grown(np.random.default_rng(2), [30] * 5, 2)
    X = np.random.default_rng(0).normal(size=(200, 2))
    X[5, 0] = np.nan
    codes, sums = ensemble.scorer.encode(X), np.full(200, ensemble.base)
    codes[:, -1] *= 200
    ensemble.scorer.add(codes, sums, 0, 5)
    assert sums.tobytes() == ensemble.predict(X).tobytes()


def test_a_scorer_is_made_once_and_not_kept_in_copies():
    ensemble = grown(np.random.default_rng(4), [9])
    assert ensemble.scorer is ensemble.scorer
    assert ensemble.first(1).scorer is ensemble.scorer
    for same in (pickle.loads(pickle.dumps(ensemble)), copy.copy(ensemble), copy.deepcopy(ensemble)):
        assert "scorer" not in vars(same)


def test_threads_may_come_together():
    rng = np.random.default_rng(5)
    ensemble = grown(rng, [50] * 100)
    X = reference.random_rows(rng, ensemble, 200)
    expected = plain(ensemble, X).tobytes()
    barrier, found = threading.Barrier(4), []

    def score():
        barrier.wait()
        found.append(ensemble.predict(X).tobytes())

    threads = [threading.Thread(target=score) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


def test_large_input_is_scored_piece_by_piece(monkeypatch):
    rng = np.random.default_rng(6)
    ensemble = grown(rng, [20] * 30)
    X = reference.random_rows(rng, ensemble, 3000)
    expected = plain(ensemble, X).tobytes()
    monkeypatch.setattr(scoring, "ROWS_PER_THREAD", 256)
    for rows in (X, sparse.csr_array(X)):
        for n_threads in (1, 3):
            assert ensemble.predict(rows, n_jobs=n_threads).tobytes() == expected


LEVELS = """
import sys
sys.path.insert(0, {tests!r})
import hashlib
import numpy as np
import test_scorer
from ranktrees.model import scorer as scorers
from ranktrees._core.support import simd

digest = hashlib.sha256()
free, never = (0.0, 0.0), (1e9, 1e9)
plans = [(scorers.NODE[simd.level()], 4), ((0.0, 99.0), 4), (free, 1), (free, 3), (free, 4), (never, 4)]
for prices, most in plans:
    scorers.NODE[simd.level()], scorers.MOST_QUESTIONS[simd.level()] = prices, most
    for seed, n_rows in enumerate((1, 9, 31, 33, 64, 65, 128, 129, 290)):
        rng = np.random.default_rng(seed)
        ensemble = test_scorer.grown(rng, [64, 3, 1, 256, 30, 65, 64, 64, 257, 20, 20])
        X = test_scorer.reference.random_rows(rng, ensemble, n_rows, [np.float32, np.float64][seed % 2])
        scores = ensemble.predict(X)
        assert scores.tobytes() == test_scorer.plain(ensemble, X).tobytes()
        digest.update(scores.tobytes())
print(simd.level(), digest.hexdigest())
"""


def test_every_level_and_every_plan_gives_the_plain_walk():
    code = LEVELS.format(tests=str(__import__("pathlib").Path(__file__).parent))
    printed = {level: run(code, level) for level in scorers.simd.supported()}
    assert {done.stderr for done in printed.values()} == {""}
    found = {level: done.stdout.split() for level, done in printed.items()}
    assert {level: words[0] for level, words in found.items()} == {level: level for level in found}
    assert len({words[1] for words in found.values()}) == 1


def test_prices_are_known_for_every_level():
    assert set(scorers.NODE) == set(scorers.MOST_QUESTIONS) == set(scorers.simd.LEVELS)
