import copy
import math
import time
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from ranktrees import FitWarning, RandomForestRanker, as_measure, make_ranking
from ranktrees.model.costs import Prices
from ranktrees.model.ensemble import Ensemble
from ranktrees.rows import FitData
from ranktrees.rows.sampling import Bootstrap
from ranktrees.training.forest import OutOfBag, _by_joblib, grow_forest
from reference import growing as slow
from reference import scoring as walking

OFFSETS = np.array([0, 40, 41, 100, 160], np.int64)
N = 160


class World:
    """Everything that a forest needs, on few rows."""

    def __init__(self, *, unit="row", weights=None, n_draws=None, labels=None, **rules):
        rng = np.random.default_rng(0)
        n_bins = [12, 30, 5, 3, 9]
        self.codes = slow.random_codes(rng, N, n_bins)
        self.mapper = slow.mapper_of(n_bins)
        labels = np.minimum(rng.poisson(self.codes[:, 0] / 4), 4).astype(float) if labels is None else labels
        self.rows = np.where(self.codes == self.mapper.missing_codes, np.nan, self.codes.astype(float))
        self.data = FitData(self.rows, labels, weights, None, OFFSETS, True)
        self.base = float(np.average(labels, weights=weights))
        self.bootstrap = Bootstrap(OFFSETS, unit, n_draws, 11)
        self.rules = {"max_features": 2, **rules}

    def make_grower(self):
        return slow.grower_of(self.codes, self.mapper, **self.rules)

    def grow(self, n_trees=12, *, first=0, n_jobs=1, **options):
        return grow_forest(
            self.make_grower, self.data, self.base, trees=range(first, n_trees), bootstrap=self.bootstrap,
            prices=Prices.none(5), stage_size=n_trees, used_in_stage=np.zeros(5, bool),
            seed=11, n_jobs=n_jobs, ensemble_of=self.ensemble_of, **options,
        )  # fmt: skip

    def ensemble_of(self, trees):
        nodes, bit_sets = zip(*trees, strict=True)
        return Ensemble.from_trees(nodes, bit_sets, n_features=5, base=self.base, average=True)


@pytest.mark.parametrize("unit", ["row", "query", None])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_leaf_holds_the_mean_label(unit, weighted):
    weights = np.random.default_rng(1).uniform(0.1, 3, N) if weighted else None
    world = World(unit=unit, weights=weights, min_samples_leaf=3)
    trees = world.grow(5)
    ensemble = world.ensemble_of(trees)
    leaves = walking.leaves(ensemble, world.rows)
    for tree, (nodes, _) in enumerate(trees):
        mass = world.bootstrap.times(tree) * (1.0 if weights is None else weights)
        for leaf in np.flatnonzero(nodes["feature"] < 0):
            here = leaves[:, tree] == leaf
            mean = np.average(world.data.labels[here], weights=mass[here])
            # weights are rounded to what 32 bits leave each row; numbers of draws are whole, and exact
            assert nodes["value"][leaf] + world.base == pytest.approx(mean, abs=1e-6 if weighted else 1e-8)
            assert nodes["count"][leaf] == np.count_nonzero(mass[here]) >= 3


def test_a_tree_is_the_tree_of_its_sample():
    world = World()
    trees = world.grow(4)
    for tree, (nodes, bit_sets) in enumerate(trees):
        times = world.bootstrap.times(tree).astype(float)
        grown, _ = slow.grown_on(
            world.codes, world.mapper, (world.base - world.data.labels) * times, times,
            rows=np.flatnonzero(times), seed=11, tree=tree, **world.rules,
        )  # fmt: skip
        expected, expected_sets = grown.tree(grown.values, world.mapper)
        assert nodes.tobytes() == expected.tobytes()
        assert bit_sets.tobytes() == expected_sets.tobytes()
    assert len({nodes.tobytes() for nodes, _ in trees}) == 4


@pytest.mark.parametrize("unit", ["row", "query"])
def test_out_of_bag_sums_are_those_of_the_slow_twin(unit):
    world = World(unit=unit)
    out_of_bag = OutOfBag(N)
    trees = world.grow(9, out_of_bag=out_of_bag)
    leaves = walking.leaves(world.ensemble_of(trees), world.rows)
    expected, expected_counts = np.zeros(N), np.zeros(N, int)
    for tree, (nodes, _) in enumerate(trees):
        for row in np.flatnonzero(world.bootstrap.times(tree) == 0):
            expected[row] += nodes["value"][leaves[row, tree]]
            expected_counts[row] += 1
    assert out_of_bag.sums.tolist() == expected.tolist()
    assert out_of_bag.counts.tolist() == expected_counts.tolist()
    assert out_of_bag.counts.sum() > 0
    means = [world.base + s / n if n else math.nan for s, n in zip(expected, expected_counts, strict=True)]
    np.testing.assert_array_equal(out_of_bag.scores(world.base), means)


@pytest.mark.parametrize("backend", ["threading", "multiprocessing", "loky"])
def test_jobs_do_not_show(backend):
    seen = set()
    with joblib.parallel_config(backend):
        for n_jobs in (1,) if backend == "loky" else (1, 2, 3, 4):
            out = OutOfBag(N)
            trees = World().grow(12, n_jobs=n_jobs, out_of_bag=out)
            seen.add((World().ensemble_of(trees).digest(), out.sums.tobytes(), out.counts.tobytes()))
    assert len(seen) == 1


def test_trees_go_on_where_they_were():
    world = World()
    whole = world.grow(8)
    halves = [*world.grow(4), *world.grow(8, first=4)]
    assert world.ensemble_of(whole).digest() == world.ensemble_of(halves).digest()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_callbacks_see_each_tree_and_may_stop(n_jobs):
    seen, others = [], []

    def stop_after_five(progress):
        seen.append((progress.iteration, progress.n_iterations, len(progress.ensemble())))
        assert progress.train_score is None
        assert progress.validation_score is None
        return progress.iteration == 5

    world = World()
    whole = world.grow(40)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        trees = world.grow(40, n_jobs=n_jobs, callbacks=[stop_after_five, lambda p: others.append(p)])
    assert [str(warning.message) for warning in caught] == []
    assert seen == [(i, 40, i) for i in range(1, 6)]
    assert len(others) == 5
    assert world.ensemble_of(trees) == world.ensemble_of(list(whole)[:5])


def test_equal_labels_give_trees_of_one_leaf():
    trees = World(labels=np.full(N, 3.0)).grow(3)
    assert [len(nodes) for nodes, _ in trees] == [1, 1, 1]


# ---- through the estimator --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ranking():
    return make_ranking(20, random_state=0, return_X_y_qid=True)


@pytest.mark.parametrize("unit", ["row", "query"])
def test_model_does_not_depend_on_jobs(ranking, unit):
    X, y, qid = ranking
    seen = set()
    for n_jobs in (1, 2, 3, 4):
        forest = RandomForestRanker(6, bootstrap_unit=unit, oob_score=True, random_state=0, n_jobs=n_jobs)
        forest.fit(X, y, qid=qid)
        seen.add((forest.ensemble_.digest(), forest.oob_score_, forest.oob_prediction_.tobytes()))
    assert len(seen) == 1


def test_out_of_bag_predictions_come_in_the_order_of_the_rows(ranking):
    X, y, qid = ranking
    order = np.random.default_rng(0).permutation(len(y))
    forest = RandomForestRanker(8, oob_score=True, random_state=0, n_jobs=1).fit(
        X[order], y[order], qid=qid[order]
    )
    # the draws go by query and row as the estimator sorts them: queries in order of first appearance
    first = {q: i for i, q in reversed(list(enumerate(qid[order])))}
    inside = np.argsort([first[q] for q in qid[order]], kind="stable")
    grouped = RandomForestRanker(8, oob_score=True, random_state=0, n_jobs=1).fit(
        X[order][inside], y[order][inside], qid=qid[order][inside]
    )
    assert forest.ensemble_ == grouped.ensemble_
    assert np.array_equal(forest.oob_prediction_[inside], grouped.oob_prediction_, equal_nan=True)
    assert forest.oob_score_ == grouped.oob_score_


def test_out_of_bag_score_of_the_slow_twin(ranking):
    X, y, qid = ranking
    forest = RandomForestRanker(5, oob_score="ndcg@5", random_state=0, n_jobs=1).fit(X, y, qid=qid)
    ensemble = forest.ensemble_
    starts = np.flatnonzero(np.r_[True, qid[1:] != qid[:-1], True])
    bootstrap = Bootstrap(starts, "row", None, forest._seed_)
    out = np.array([bootstrap.times(tree) == 0 for tree in range(5)])
    values = np.array([ensemble[tree].nodes["value"][line] for tree, line in enumerate(ensemble.leaves(X).T)])
    with np.errstate(invalid="ignore"):
        expected = ensemble.base + (values * out).sum(axis=0) / out.sum(axis=0)
    assert np.allclose(forest.oob_prediction_, expected, equal_nan=True)
    seen = out.any(axis=0)
    assert 0 < np.count_nonzero(~seen) < len(y) / 2
    measure = as_measure("ndcg@5")
    assert forest.oob_score_ == measure(y[seen], forest.oob_prediction_[seen], qid=qid[seen])


def test_warm_start_gives_the_forest_of_one_fit(ranking):
    X, y, qid = ranking
    at_once = RandomForestRanker(9, random_state=0, n_jobs=1).fit(X, y, qid=qid)
    forest = RandomForestRanker(4, warm_start=True, random_state=0, n_jobs=1).fit(X, y, qid=qid)
    forest.set_params(n_estimators=9).fit(X, y, qid=qid)
    assert forest.ensemble_.digest() == at_once.ensemble_.digest()
    with pytest.warns(FitWarning, match="n_estimators=9 is the number of trees that .* raise n_estimators"):
        forest.fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="n_estimators=8"):
        forest.set_params(n_estimators=8).fit(X, y, qid=qid)


@pytest.mark.parametrize(
    "parameters",
    [{}, {"bootstrap_unit": "query", "oob_score": "map"}, {"max_samples": 0.3, "min_samples_leaf": 1}],
    ids=str,
)
def test_out_of_bag_scores_do_not_tell_that_a_forest_grew_in_several_fits(ranking, parameters):
    X, y, qid = ranking
    order = np.random.default_rng(0).permutation(len(y))
    rows, weights = (X[order], y[order]), 1.0 + order % 3
    forest = RandomForestRanker(23, oob_score=True, random_state=0).set_params(**parameters)
    at_once = clone(forest).fit(*rows, weights, qid=qid[order])
    forest.set_params(warm_start=True)
    for n_trees in (1, 2, 19, 19, 23):
        forest.set_params(n_estimators=n_trees).fit(*rows, weights, qid=qid[order])
        alone = clone(forest).fit(*rows, weights, qid=qid[order])
        assert forest.oob_score_ == alone.oob_score_
    assert forest.oob_score_ == at_once.oob_score_
    assert forest.oob_prediction_.tobytes() == at_once.oob_prediction_.tobytes()
    assert forest.ensemble_ == at_once.ensemble_


def test_out_of_bag_scores_of_unknown_samples_are_refused(ranking):
    X, y, qid = ranking
    forest = RandomForestRanker(4, warm_start=True, random_state=0).fit(X, y, qid=qid)
    forest.set_params(n_estimators=6, oob_score="map")
    with pytest.raises(ValueError, match=r"oob_score='map', but the 4 trees .* were grown without it"):
        forest.fit(X, y, qid=qid)
    assert len(forest.ensemble_) == 4
    forest = clone(forest).fit(X, y, qid=qid).set_params(n_estimators=8)
    before = forest.oob_prediction_
    for rows in (slice(None, None, -1), slice(-1)):
        with pytest.raises(ValueError, match="differs from what the 6 trees that warm_start=True"):
            forest.fit(X[rows], y[rows], qid=qid[rows])
    for parameters in ({"max_samples": 0.5}, {"bootstrap_unit": "query"}):
        with pytest.raises(ValueError, match="or what bootstrap_unit and max_samples draw of it"):
            copy.copy(forest).set_params(**parameters).fit(X, y, qid=qid)
    assert len(forest.ensemble_) == 6
    assert forest.oob_prediction_ is before


def test_without_bootstrap_the_forest_is_one_tree_many_times(ranking):
    X, y, qid = ranking
    forest = RandomForestRanker(
        3, bootstrap=False, max_features=None, min_samples_leaf=1, random_state=0, n_jobs=1
    )
    forest.fit(X, y, qid=qid)
    assert len({forest.ensemble_[t].nodes.tobytes() for t in range(3)}) == 1
    unique = np.unique(X, axis=0)
    assert len(unique) == len(X)
    # a leaf of one row holds its label, as far as 255 bins can tell rows apart
    assert np.corrcoef(forest.predict(X), y)[0, 1] > 0.99


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_samples": 0.5}, "max_samples=0.5 says .* bootstrap=False draws none; expected None"),
        ({"bootstrap_unit": "query"}, "bootstrap_unit='query' says .* expected 'row'"),
    ],
)
def test_without_bootstrap_nothing_says_how_to_draw(settings, message, ranking):
    X, y, qid = ranking
    with pytest.raises(ValueError, match=message):
        RandomForestRanker(2, bootstrap=False, **settings).fit(X, y, qid=qid)


def test_samples_are_of_so_many_rows_or_queries_or_of_a_share(ranking):
    X, y, qid = ranking
    for unit, n_units in (("row", len(X)), ("query", len(np.unique(qid)))):
        options = {"bootstrap_unit": unit, "random_state": 0, "n_jobs": 1}
        whole, half, few = (
            RandomForestRanker(3, max_samples=size, **options).fit(X, y, qid=qid).ensemble_
            for size in (None, 0.5, 7)
        )
        assert whole == RandomForestRanker(3, max_samples=1.0, **options).fit(X, y, qid=qid).ensemble_
        assert half == RandomForestRanker(3, max_samples=n_units // 2, **options).fit(X, y, qid=qid).ensemble_
        assert len(few.nodes) < len(half.nodes)
        with pytest.raises(ValueError, match=rf"max_samples={n_units + 1} \w+ are .* there are {n_units};"):
            RandomForestRanker(3, max_samples=n_units + 1, **options).fit(X, y, qid=qid)


def test_odd_data_can_be_learned():
    for X in (np.zeros((1, 1)), np.full((9, 2), 7.0), np.full((9, 2), np.nan)):
        y = np.arange(len(X), dtype=float)
        forest = RandomForestRanker(4, n_jobs=1, random_state=0).fit(X, y, qid=np.zeros(len(X)))
        scores = forest.predict(X)
        assert np.ptp(scores) == 0
        assert y.min() <= scores[0] <= y.max()


def test_trees_that_are_begun_are_given_up_without_a_word():
    """As after an interrupt: what joblib would advise is of no use to who fits a forest."""
    with joblib.parallel_config("threading"):
        trees = _by_joblib(2, lambda _: time.sleep(0.05), range(50))
        next(trees)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trees.close()


def test_oob_score_may_be_a_truth_value_of_numpy():
    X, y, qid = make_ranking(20, random_state=0, return_X_y_qid=True)
    scores = [
        RandomForestRanker(20, oob_score=true, random_state=0).fit(X, y, qid=qid).oob_score_
        for true in (True, np.bool_(True))
    ]
    assert scores[0] == scores[1]
