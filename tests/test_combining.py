"""The exact combination of two rankers, against all weights tried with fractions."""

import itertools
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

from ranktrees import (
    BlendRanker,
    Ensemble,
    EnsembleRanker,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    MissingQueryWarning,
    QueryKFold,
    RandomForestRanker,
    make_ranking,
    query_scorer,
    refine_weights,
)
from ranktrees.evaluation import combining
from ranktrees.evaluation.combining import optimal_weight
from ranktrees.measures import DCG, NDCG, Measure, as_measure
from reference.combining import ranks_at, values_of, weights_to_try


class Halves(Measure):
    """How good the upper half is, less a bit for each different score: sees ties and all ranks."""

    name = "Halves"

    def of_query(self, labels, scores):
        order = np.argsort(-scores, kind="stable")
        return float(labels[order][: (len(labels) + 1) // 2].sum()) - 0.1 * len(np.unique(scores))


class Worse(Halves):
    name = "Worse"
    greater_is_better = False


MEASURES = [
    *("ndcg@3", "ndcg", "dcg@2", "ndcg(empty_query=0.5)@2", "err", "err@2", "map", "map@2", "mrr", "p@2"),
    *("success@2", "r_precision", "rbp(p=0.5)", "rbp@2"),
    *("recall@2", "auc", "top_auc@[0,1]", "top_auc@[1,3]", "pair_accuracy", "kendall_tau"),
    "ndcg.lambdasmart",
    *(
        f"{name}(ties='{ties}'){cut}"
        for ties in ("worst", "input", "reverse")
        for name, cut in (("ndcg", "@2"), ("map", ""), ("err", ""), ("auc", ""), ("pair_accuracy", ""))
    ),
    NDCG(discount=[1.0, 1.0, 0.1]),
    Halves(),
    Worse(),
]
INTERVALS = {
    "convex": [0.0, 0.1, 0.25, 1 / 3, 0.5, 0.75, 1.0],
    "additive": [-3.0, -0.5, 0.0, 0.1, 1.0, 5.0, 100.0],
}


def small_case(seed):
    """Rows with many ties, identical rows and crossings at one weight."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(3), rng.integers(1, 7, 3))
    n = len(qid)
    a, b = [
        lambda: rng.integers(0, 4, (2, n)).astype(float),
        lambda: rng.integers(-3, 4, (2, n)) * np.array([[0.1], [0.3]]),
        lambda: rng.normal(size=(2, n)),
        lambda: np.round(rng.normal(size=(2, n)), 1) * np.array([[1.0], [1e3]]),
        lambda: np.ldexp(rng.integers(0, 3, (2, n)).astype(float), rng.integers(-60, 60, (2, n))),
    ][seed % 5]()
    form = ("convex", "additive")[seed // 5 % 2]
    low, high = np.sort(rng.choice(INTERVALS[form], 2, replace=False))
    sample_weight = rng.random(n) if seed % 3 else None
    return a, b, rng.integers(0, 4, n).astype(float), qid, form, (low, high), sample_weight


@pytest.mark.parametrize("part", range(4))
def test_every_weight_by_fractions(part):
    """1,200 small cases in all: the value at each weight, and the best of them."""
    for seed in range(30 * part, 30 * part + 30):
        a, b, y, qid, form, interval, sample_weight = small_case(seed)
        weights = weights_to_try(a, b, qid, form, *interval)
        ranks = [ranks_at(a, b, qid, weight, form) for weight in weights]
        for measure in np.random.default_rng(seed).permutation(np.array(MEASURES, object))[:10]:
            measure = as_measure(measure)
            settings = {"qid": qid, "measure": measure, "form": form, "interval": interval}
            values = values_of(measure, y, ranks, qid, sample_weight)
            if np.isnan(values).all():
                with pytest.raises(ValueError, match="not defined"):
                    optimal_weight(y, a, b, sample_weight=sample_weight, **settings)
                continue
            curve = optimal_weight(y, a, b, sample_weight=sample_weight, **settings)
            np.testing.assert_allclose(curve(weights), values, rtol=1e-12, atol=1e-12)
            assert curve(curve.weight) == curve.value
            sign = 1 if measure.greater_is_better else -1
            assert sign * curve.value == pytest.approx(max(sign * values), abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_lines_that_meet_by_fractions(data):
    n = data.draw(st.integers(2, 7))
    whole = st.lists(st.integers(0, 3).map(float), min_size=n, max_size=n)
    a, b, y = (np.array(data.draw(whole)) for _ in range(3))
    form, measure = data.draw(st.sampled_from(["convex", "additive"])), DCG @ 2
    qid, interval = np.zeros(n), (0.0, 1.0)
    curve = optimal_weight(y, a, b, measure=measure(empty_query=0), form=form, interval=interval)
    weights = weights_to_try(a, b, qid, form, *interval)
    values = values_of(measure, y, [ranks_at(a, b, qid, weight, form) for weight in weights], qid)
    np.testing.assert_allclose(curve(weights), values, atol=1e-12)


def noisy(n_queries=60, n_rows=40, seed=0, decimals=1):
    rng = np.random.default_rng(seed)
    y = rng.choice(4, n_queries * n_rows, p=[0.5, 0.3, 0.15, 0.05]).astype(float)
    a, b = (y + rng.normal(0, 1.5, (2, len(y)))).round(decimals)
    return a, b, y, np.repeat(np.arange(n_queries), n_rows)


def bits(curve):
    return (
        curve.weight,
        curve.value,
        *(part.tobytes() for part in (curve.weights, curve.values, curve.values_at)),
    )


@pytest.mark.parametrize("measure", ["ndcg@10", "err", "map", "kendall_tau", "auc"])
@pytest.mark.parametrize("form", ["convex", "additive"])
def test_same_bits_for_any_threads_order_and_strips(measure, form, monkeypatch):
    a, b, y, qid = noisy()
    settings = {"measure": measure, "form": form}
    curve = optimal_weight(y, a, b, qid=qid, n_jobs=1, **settings)
    assert bits(optimal_weight(y, a, b, qid=qid, n_jobs=3, **settings)) == bits(curve)
    order = np.random.default_rng(1).permutation(len(y))
    mixed = optimal_weight(y[order], a[order], b[order], qid=qid[order], **settings)
    assert bits(mixed)[2] == bits(curve)[2]
    np.testing.assert_allclose(mixed.values, curve.values, rtol=0, atol=1e-12)
    monkeypatch.setattr(combining, "AT_ONCE", 500)
    in_strips = optimal_weight(y, a, b, qid=qid, n_jobs=2, **settings)
    if measure != "err":  # whose chance to get to a rank is a product, rounded on the way
        assert bits(in_strips) == bits(curve)
    np.testing.assert_allclose(in_strips.value, curve.value, rtol=1e-14)


def test_long_query_of_every_measure_is_the_measure_at_middles():
    a, b, y, qid = noisy(2, 300, decimals=8)
    for name in ("ndcg", "ndcg@10", "err", "map", "auc", "mrr", "kendall_tau"):
        curve = optimal_weight(y, a, b, qid=qid, measure=name)
        middles = (curve.weights[1:] + curve.weights[:-1]) / 2
        wide = np.flatnonzero(np.diff(curve.weights) > 1e-9)[:: max(1, len(middles) // 300)]
        for k in wide:
            w = middles[k]
            assert curve.measure(y, (1 - w) * a + w * b, qid=qid) == pytest.approx(curve.values[k], abs=1e-12)


def test_the_best_weight():
    # the first two rows cross at 1/3, the last two at 3/4; the better stretch is in the middle
    curve = optimal_weight([0, 1, 1, 0], [2.0, 1.0, -4.0, -5.0], [0.0, 2.0, -9.0, -8.0], measure="auc")
    assert curve.weights.tolist() == [0.0, pytest.approx(1 / 3), 0.5, 1.0]
    assert curve.values.tolist() == [0.5, 0.75, 0.5]
    assert curve.values_at.tolist() == [0.5, 0.75, 0.625, 0.5]  # no float is 1/3: the next one is behind it
    assert curve.weight == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert curve.value == 0.75
    # where nothing matters, the middle of the interval
    assert optimal_weight([1, 0], [1.0, 0.0], [1.0, 0.0]).weight == 0.5
    # of stretches that are as good, the widest, then the lowest
    curve = optimal_weight([0, 0, 1, 1], [0.0, 5.0, 1.0, 3.0], [1.0, 2.0, 0.0, 3.0], measure="p@1")
    widths = np.where(curve.values == curve.value, np.diff(curve.weights), 0)
    k = np.argmax(widths)
    assert curve.weight == curve.weights[k : k + 2].mean()


def test_near_keeps_a_weight_that_is_as_good_as_any():
    free = {"form": "additive", "measure": "mrr"}
    for interval, weight in (((0.1, 5.0), 1.0), ((0.1, 100.0), 1.0), ((3.0, 9.0), 3.0), ((-9.0, 0.5), 0.5)):
        tied = optimal_weight([1, 0], [0.0, 0.0], [1.0, 0.0], interval=interval, near=1, **free)
        assert (tied.weight, tied.value) == (weight, 1.0)
    # from 4 on the relevant row is first: next to the crossing, not on it
    far = optimal_weight([0, 1], [4.0, 0.0], [0.0, 1.0], interval=(0.1, 100.0), near=1, **free)
    assert 4 < far.weight < 4.1
    assert far.value == 1.0
    below = optimal_weight([1, 0], [4.0, 0.0], [0.0, 1.0], interval=(0.1, 100.0), near=7, **free)
    assert 3.9 < below.weight < 4
    assert optimal_weight([0, 1], [4.0, 0.0], [0.0, 1.0], interval=(0.1, 100.0), near=7, **free).weight == 7
    # a single weight
    assert optimal_weight([0, 1], [1.0, 1.0], [1.0, 0.0], measure="mrr", near=0.7).weight == 0.0


def test_refined_weights_stay_near_what_they_were():
    X = np.array([[0.0], [1.0]])
    tree = HistGBRTRegressor(
        max_iter=1, min_samples_leaf=1, learning_rate=1.0, init=0.0, gradient_sampling=None
    )
    trees = [clone(tree).fit(X, y).ensemble_ for y in ([4.0, 0.0], [0.0, 1.0])]
    refined = refine_weights(Ensemble.joined(trees), X, [0, 1], measure="mrr")  # of the first tree: below 1/4
    assert refined.predict(X)[1] == 1.0
    assert 0.999 < refined.predict(X)[0] < 1.0


@pytest.mark.parametrize("near", [True, "1", np.nan, np.inf])
def test_near_must_be_a_number(near):
    with pytest.raises(ValueError, match=r"near=.*; expected the weight to stay near, a finite number"):
        optimal_weight([1, 0], [1.0, 0.0], [0.0, 1.0], near=near)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10_000), st.floats(-4, 6))
def test_near_is_the_nearest_of_the_best_weights(seed, near):
    rng = np.random.default_rng(seed)
    qid, (a, b) = np.sort(rng.integers(0, 3, 12)), rng.integers(-4, 5, (2, 12))
    rows = {"qid": qid, "measure": "map", "form": "additive", "interval": (-3, 5)}
    curve = optimal_weight(rng.integers(0, 2, 12) | (np.arange(12) == 0), a, b, near=near, **rows)
    assert curve(curve.weight) == curve.value
    best = np.flatnonzero((curve.values >= curve.value - 1e-12) & (np.diff(curve.weights) > 1e-9))
    if len(best):
        distances = [max(curve.weights[k] - near, near - curve.weights[k + 1], 0) for k in best]
        room = (curve.weights[-1] - curve.weights[0]) / combining.APART
        assert abs(curve.weight - near) <= min(distances) + room


@pytest.mark.parametrize("measure", ["map@3", "auc", "recall@3"])
def test_what_rounding_tells_apart_is_one_stretch(measure):
    for seed in range(200):
        rng = np.random.default_rng(seed)
        qid = np.sort(rng.integers(0, 5, 24))
        a, b = rng.integers(-4, 5, (2, len(qid)))
        curve = optimal_weight(rng.integers(0, 2, len(qid)), a, b, qid=qid, measure=measure)
        enough = curve.value - 1e-12
        stretches = [[0.0, 0.0]]
        for k, (low, high) in enumerate(itertools.pairwise(curve.weights)):
            if curve.values[k] >= enough and stretches[-1][1] == low and curve.values_at[k] >= enough:
                stretches[-1][1] = high
            elif curve.values[k] >= enough:
                stretches.append([low, high])
        low, high = max(stretches, key=lambda ends: ends[1] - ends[0])
        assert curve.weight == pytest.approx((low + high) / 2) or low == high
        assert curve(curve.weight) == curve.value


def test_a_single_weight_may_be_the_best():
    # three rows that meet in one point: the relevant one is never first but by chance
    curve = optimal_weight([0, 1, 0], [2.0, 1.0, 0.0], [0.0, 1.0, 2.0], measure="p@1")
    assert (curve.weight, curve.value) == (0.5, pytest.approx(1 / 3))
    assert curve.values.tolist() == [0.0, 0.0]
    # ties of a alone that b breaks the wrong way
    curve = optimal_weight([0, 1], [1.0, 1.0], [1.0, 0.0], measure="mrr")
    assert (curve.weight, curve.value) == (0.0, 0.75)


def test_far_apart_scores_are_not_rounded():
    tiny = 2.0**-200
    curve = optimal_weight([0, 1, 0], [1.0, tiny, 2 * tiny], [0.0] * 3, measure="mrr", form="additive")
    assert curve.value == pytest.approx(1 / 3)
    curve = optimal_weight(
        [0, 1], [0.1 + 0.2, 0.3], [0.0, 2.0**-60], form="additive", interval=(0, 100), measure="p@1"
    )
    assert curve.weights[1] == 64.0
    assert curve.values_at.tolist() == [0.0, 0.5, 1.0]
    assert optimal_weight([1, 0], [0.0, 0.0], [0.0, 0.0]).value == pytest.approx(0.5 + 0.5 / np.log2(3))


def test_repr_call_plot_and_pandas():
    a, b, y, qid = noisy(5)
    curve = optimal_weight(pd.Series(y, index=pd.Index(qid, name="qid")), a, b)
    assert bits(curve) == bits(optimal_weight(y, a, b, qid=qid))
    assert repr(curve).startswith("WeightCurve(weight=0.")
    np.testing.assert_array_equal(curve(curve.weights), curve.values_at)
    with pytest.raises(ValueError, match="from 0 to 1"):
        curve(1.5)
    pytest.importorskip("matplotlib").use("agg")
    assert curve.plot(label="both").get_ylabel() == "NDCG @ 10"
    assert curve.plot(curve.plot()).get_xlabel().startswith("weight of b")


@pytest.mark.parametrize("measure", [lambda labels, scores: -np.inf, DCG(gain="linear")])
def test_infinite_measures_are_refused(measure):
    with pytest.raises(ValueError, match=r"is infinite for a query|returned -inf for a query"):
        optimal_weight([1e308, 1e308], [1, 2], [2, 1], measure=measure)


def test_what_is_wrong_is_named():
    a, b, y = [1.0, 2.0], [2.0, 1.0], [0, 1]
    for wrong, message in [
        ({"form": "linear"}, "form"),
        ({"form": ["convex"]}, "form"),
        ({"interval": (0.5, 0.5)}, "interval"),
        ({"interval": (0, 2)}, "interval"),
        ({"interval": 3}, "interval"),
        ({"form": "additive", "interval": (0, np.inf)}, "interval"),
        ({"measure": "rmse"}, "the distances between scores"),
        ({"measure": "ndkg"}, "unknown measure"),
        ({"sample_weight": [0, 0]}, "positive weight"),
        ({"sample_weight": [1e308, 1e308], "qid": [0, 1]}, "sample_weight adds up to more than a float"),
        ({"qid": [1]}, "qid"),
    ]:
        with pytest.raises(ValueError, match=message):
            optimal_weight(y, a, b, **wrong)
    with pytest.raises(ValueError, match="scores_b"):
        optimal_weight(y, a, [1.0, np.nan])
    with pytest.raises(ValueError, match="scores_b"):
        optimal_weight(y, a, [1.0])
    with pytest.raises(ValueError, match="not defined on any"):
        optimal_weight([0, 0], a, b)

    class Fickle(Halves):
        def of_query(self, labels, scores):
            return np.nan if scores[0] < scores[1] else 1.0

    with pytest.raises(ValueError, match="is not defined for a query at weight"):
        optimal_weight(y, b, a, measure=Fickle())


DATA = Path(os.environ.get("RANKTREES_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.mark.parametrize("name", ["mq2008", "ohsumed"])
@pytest.mark.parametrize("form", ["convex", "additive"])
def test_never_below_a_dense_grid_on_real_sets(name, form):
    if not (DATA / f"{name}.npz").exists():
        pytest.skip(f"{name} is not there")
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as arrays:
        X, y, qid = arrays["X"].astype(np.float64), arrays["y"].astype(np.float64), arrays["qid"]
    a, b = X[:, :10].sum(axis=1), X[:, -5:].sum(axis=1)
    for measure in ("ndcg@10", "map", "err@10"):
        curve = optimal_weight(y, a, b, qid=qid, measure=measure, form=form)
        low, high = curve.weights[[0, -1]]
        for w in np.linspace(low, high, 41):
            mixed = (1 - w) * a + w * b if form == "convex" else a + w * b
            assert curve.measure(y, mixed, qid=qid) <= curve.value + 1e-12
        w = curve.weight
        mixed = (1 - w) * a + w * b if form == "convex" else a + w * b
        assert curve.measure(y, mixed, qid=qid) == pytest.approx(curve.value, abs=1e-9)


def test_never_below_a_dense_grid():
    X, y, qid = make_ranking(40, random_state=0, return_X_y_qid=True)
    curve = optimal_weight(y, X[:, 0], X[:, 1], qid=qid)
    grid = [curve.measure(y, (1 - w) * X[:, 0] + w * X[:, 1], qid=qid) for w in np.linspace(0, 1, 1001)]
    assert max(grid) <= curve.value + 1e-12


# ------------------------------------------------------------------------------------------- the estimator


class Column(BaseEstimator):
    """A ranker that is fitted already: a column of X."""

    def __init__(self, column=0):
        self.column = column

    def predict(self, X):
        return np.asarray(X)[:, self.column]


def rankers():
    small = {"max_leaf_nodes": 8, "random_state": 0, "n_jobs": 1}
    return [
        ("trees", LambdaMARTRanker(max_iter=8, **small)),
        ("forest", RandomForestRanker(5, **small)),
        ("ridge", Ridge()),
    ]


@pytest.fixture(scope="module")
def rows():
    return make_ranking(30, rows_per_query=15, n_features=6, random_state=0, return_X_y_qid=True)


with sklearn.config_context(enable_metadata_routing=True):
    CHECKED = BlendRanker(
        [("ridge", Ridge().set_fit_request(sample_weight=True)), ("half", Ridge(0.5))], cv=2
    )


@pytest.mark.filterwarnings("ignore::ranktrees.MissingQueryWarning")
@parametrize_with_checks([CHECKED])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def columns_of(X):
    return [(f"x{column}", Column(column)) for column in range(X.shape[1])]


def first_label(labels, scores):
    return float(labels[np.argmax(scores)])


@pytest.mark.parametrize("measure", ["ndcg@5", "map", Worse(), first_label])
@pytest.mark.parametrize("form", ["convex", "additive"])
def test_weights_are_never_worse_and_rise_with_repeats(form, measure, rows):
    X, y, qid = rows
    X = X[:, :3]
    sign = 1 if as_measure(measure).greater_is_better else -1
    settings = {"cv": "prefit", "form": form, "measure": measure}
    blends = [BlendRanker(columns_of(X), n_repeats=n, **settings).fit(X, y, qid=qid) for n in (1, 2, 10)]
    values = [sign * blend.value_ for blend in blends]
    assert max(sign * blends[0].values_) <= values[0] <= values[1] <= values[2]
    for blend in blends:
        assert blend.score(X, y, qid=qid) == sign * blend.value_
        np.testing.assert_allclose(blend.predict(X), X @ blend.weights_, atol=1e-12)
    assert blends[2].n_repeats_ <= 10
    if form == "convex":
        assert blends[2].weights_.sum() == pytest.approx(1.0)
        assert (blends[2].weights_ >= 0).all()


@pytest.mark.parametrize("form", ["convex", "additive"])
def test_two_rankers_have_the_best_weight(form, rows):
    X, y, qid = rows
    blend = BlendRanker(columns_of(X[:, :2]), cv="prefit", form=form).fit(X, y, qid=qid)
    curve = optimal_weight(y, X[:, 0], X[:, 1], qid=qid, form=form)
    assert blend.value_ >= curve.value - 1e-12
    if form == "convex":
        assert blend.value_ == pytest.approx(curve.value, abs=1e-12)


def test_held_out_training_and_fitted(rows):
    X, y, qid = rows
    blend = BlendRanker(rankers(), cv=3).fit(X, y, qid=qid)
    scores = np.empty((len(y), 3))
    for train, test in QueryKFold(3).split(X, y, qid):
        for column, (_, model) in enumerate(rankers()):
            ids = {} if column == 2 else {"qid": qid[train]}
            scores[test, column] = clone(model).fit(X[train], y[train], **ids).predict(X[test])
    again = BlendRanker(columns_of(scores), cv="prefit").fit(scores, y, qid=qid)
    np.testing.assert_array_equal(again.weights_, blend.weights_)
    assert again.value_ == blend.value_
    trained = BlendRanker(rankers(), cv="train").fit(X, y, qid=qid)
    prefit = BlendRanker(list(zip("abc", trained.estimators_, strict=True)), cv="prefit")
    for other in (prefit, clone(prefit), pickle.loads(pickle.dumps(prefit))):
        np.testing.assert_array_equal(other.fit(X, y, qid=qid).predict(X), trained.predict(X))
    np.testing.assert_array_equal(
        BlendRanker(rankers(), cv=3, n_jobs=2).fit(X, y, qid=qid).predict(X), blend.predict(X)
    )


def test_models_without_tags_are_blended(rows):
    X, y, qid = rows

    class FirstColumn:
        def predict(self, X):
            return X[:, 0]

    trees = ("trees", LambdaMARTRanker(max_iter=2).fit(X, y, qid=qid).ensemble_)
    blend = BlendRanker([trees, ("column", FirstColumn())], cv="prefit").fit(X, y, qid=qid)
    assert blend.value_ >= blend.values_.max()
    for estimators, expected in (
        ([trees], True),
        (blend.estimators, False),
        ([("no model", 3)], False),
        ("no pairs", False),
    ):
        inputs = get_tags(BlendRanker(estimators)).input_tags
        assert inputs.sparse == inputs.allow_nan == expected


def test_order_of_rows_and_ways_to_say_queries(rows):
    X, y, qid = rows
    blend = BlendRanker(rankers()[1:], cv="train").fit(X, y, qid=qid)
    series = pd.Series(y, index=pd.Index(qid, name="qid"))
    for other in (
        BlendRanker(rankers()[1:], cv="train").fit(X, series),
        BlendRanker(rankers()[1:], cv="train").fit(X, y, groups=qid),
        BlendRanker(rankers()[1:], cv="train").fit(X, y, group=[15] * 30),
    ):
        np.testing.assert_array_equal(other.weights_, blend.weights_)
    mixed = np.random.default_rng(0).permutation(len(y))
    columns = BlendRanker(columns_of(X), cv="prefit").fit(X, y, qid=qid)
    shuffled = BlendRanker(columns_of(X), cv="prefit").fit(X[mixed], y[mixed], qid=qid[mixed])
    np.testing.assert_allclose(shuffled.weights_, columns.weights_, atol=1e-9)
    with pytest.warns(MissingQueryWarning):
        BlendRanker(columns_of(X), cv="prefit").fit(X, y)


def test_in_pipelines_and_searches(rows):
    X, y, qid = rows
    pipeline = make_pipeline(StandardScaler(), BlendRanker(rankers(), cv=2))
    assert pipeline.fit(X, y, blendranker__qid=qid).predict(X).shape == y.shape
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            BlendRanker(rankers(), cv=2),
            {"trees__max_iter": [2, 4], "form": ["convex", "additive"]},
            cv=QueryKFold(2),
            scoring=query_scorer("ndcg@5"),
        ).fit(X, y, qid=qid)
    assert set(search.best_params_) == {"trees__max_iter", "form"}
    assert search.best_estimator_.score(X, y, qid=qid) > 0.5


def test_what_is_wrong_with_a_blend_is_named(rows):
    X, y, qid = rows
    fitted = BlendRanker(columns_of(X), cv="prefit").fit(X, y, qid=qid)
    for parameters, error, message in [
        ({"estimators": []}, ValueError, "estimators"),
        ({"estimators": [Ridge()]}, ValueError, "pairs"),
        ({"estimators": [("a", Ridge()), ("a", Ridge())]}, ValueError, "unique"),
        ({"estimators": [("a", 3)]}, ValueError, "predict"),
        ({"estimators": [("a", Ridge())], "cv": "prefit"}, NotFittedError, "prefit"),
        ({"interval": (2, 1)}, ValueError, "interval"),
        ({"measure": "rmse"}, ValueError, "distances between scores"),
        ({"n_repeats": 0}, ValueError, "n_repeats"),
        ({"form": "geometric"}, ValueError, "form"),
    ]:
        with pytest.raises(error, match=message):
            clone(fitted).set_params(**parameters).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="score needs qid"):
        fitted.score(X, y)
    with pytest.raises(ValueError, match="NDCG takes labels >= 0, but y has label -1"):
        fitted.score(X, y - 1, qid=qid)
    with pytest.raises(ValueError, match="NDCG takes labels >= 0, but y has label -1"):
        BlendRanker([("never fitted", Ridge(alpha=-1))], cv=2).fit(X, y - 1, qid=qid)
    never = [(name, Ridge(alpha=-1)) for name in ("never fitted", "nor this")]
    with pytest.raises(ValueError, match="NDCG @ 10 is not defined on any query of positive weight"):
        BlendRanker(never, cv=2).fit(X, 0 * y, qid=qid)


@pytest.mark.filterwarnings("ignore:.*is not defined on any query")
@pytest.mark.parametrize("n_models", [1, 2])
def test_a_measure_of_the_users_that_is_never_defined(n_models, rows):
    X, y, qid = rows
    models = [(str(i), Ridge(i)) for i in range(1, n_models + 1)]
    with pytest.raises(ValueError, match="not defined"):
        BlendRanker(models, cv=2, measure=lambda labels, scores: np.nan).fit(X, y, qid=qid)


def test_a_blend_of_ours_is_one_ensemble(rows):
    X, y, qid = rows
    worst = [(f"{n} trees", HistGBRTRegressor(max_iter=n, random_state=0).fit(X, -y)) for n in (4, 8)]
    for estimators, parameters in (
        (rankers()[:2], {"cv": "train"}),
        (rankers()[:2], {"cv": "train", "form": "additive"}),
        (worst, {"cv": "prefit", "form": "additive", "interval": (-3, 3)}),
    ):
        blend = BlendRanker(estimators, **parameters).fit(X, y, qid=qid)
        one = EnsembleRanker.average(blend.estimators_, blend.weights_)
        scores = blend.predict(X) / np.abs(blend.weights_).sum()
        np.testing.assert_allclose(one.predict(X), scores, rtol=1e-12, atol=1e-12)
    assert blend.weights_.sum() < 0
    classifiers = [
        (f"above {grade}", HistGBRTClassifier(max_iter=4, random_state=0).fit(X, y > grade))
        for grade in (0, 2)
    ]
    blend = BlendRanker(classifiers, cv="prefit").fit(X, y, qid=qid)
    one = Ensemble.joined([model.ensemble_ for model in blend.estimators_], blend.weights_)
    np.testing.assert_allclose(one.predict(X), blend.predict(X), rtol=1e-12, atol=1e-12)


# ---------------------------------------------------------------------------------------- weights of trees


@pytest.mark.parametrize("measure", ["ndcg@5", "map"])
def test_refined_weights_never_lower_the_measure(measure, rows):
    X, y, qid = rows
    ranker = LambdaMARTRanker(max_iter=8, max_leaf_nodes=4, random_state=0).fit(X, y, qid=qid)
    value = {0: as_measure(measure)(y, ranker.predict(X), qid=qid)}
    for n in (1, 2, 5):
        settings = {"qid": qid, "measure": measure, "n_repeats": n}
        refined = refine_weights(ranker.ensemble_, X, y, **settings)
        value[n] = as_measure(measure)(y, refined.predict(X), qid=qid)
        assert refine_weights(ranker.ensemble_, X, y, **settings, n_jobs=3).digest() == refined.digest()
    assert value[0] < value[1] <= value[2] <= value[5]
    ratio = refined.nodes["value"] / ranker.ensemble_.nodes["value"]
    assert all(np.ptp(of_tree) < 1e-12 for of_tree in np.split(ratio, refined.tree_offsets[1:-1]))
    indexed = pd.DataFrame(X, index=pd.Index(qid, name="qid"))
    assert refine_weights(ranker.ensemble_, indexed, y, **settings | {"qid": None}) == refined
    with pytest.raises(ValueError, match="disagree"):
        refine_weights(ranker.ensemble_, indexed, y, qid=np.roll(qid, 3))
    with pytest.raises(ValueError, match="n_repeats"):
        refine_weights(ranker.ensemble_, X, y, qid=qid, n_repeats=0)
    with pytest.raises(TypeError, match="model is a Ridge; expected a tree estimator of ranktrees"):
        refine_weights(Ridge().fit(X, y), X, y, qid=qid)
    started = HistGBRTRegressor(max_iter=2, init=Ridge()).fit(X, y)
    with pytest.raises(
        ValueError, match=r"HistGBRTRegressor is not one ensemble: .* weight of the whole model"
    ):
        refine_weights(started, X, y, qid=qid)


def test_without_trees_there_is_nothing_to_refine(rows):
    X, y, qid = rows
    empty = Ensemble.from_trees([], n_features=X.shape[1], base=0.5)
    assert refine_weights(empty, X, y, qid=qid) == empty


@pytest.mark.parametrize("loss", ["ranknet", "gbrank"])
def test_optimal_steps_of_losses_that_know_no_measure(loss, rows):
    """No part of a new tree is better than the whole, by what is scored."""
    X, y, qid = rows
    scored = {"measure": "ndcg@5", "scoring": "ndcg@5", "step_interval": (1e-6, 100.0)}
    small = {"max_iter": 4, "max_leaf_nodes": 4, "random_state": 0}
    model = LambdaMARTRanker(loss=loss, step="optimal", **scored, **small).fit(X, y, qid=qid)
    before, interval = np.zeros(len(y)), (0.05, 1.0)
    for n_trees in range(1, 5):
        after = model.predict(X, n_trees=n_trees)
        rest = {"qid": qid, "measure": "ndcg@5", "form": "additive", "interval": interval}
        curve = optimal_weight(y, before, after - before, **rest)
        assert as_measure("ndcg@5")(y, after, qid=qid) == pytest.approx(curve.value, rel=1e-12)
        before = after


@pytest.mark.parametrize("highest", [5.0, 100.0, 1000.0])
def test_the_first_optimal_step_is_a_newton_step(highest):
    """Where all scores tie, the middle of the interval would be 50 Newton steps if it went up to 100."""
    X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    plain = {"max_iter": 1, "max_features": 1.0, "gradient_sampling": None, "random_state": 0}
    newton = LambdaMARTRanker(learning_rate=1.0, **plain).fit(X, y, qid=qid).predict(X)
    model = LambdaMARTRanker(step="optimal", step_interval=(0.1, highest), **plain).fit(X, y, qid=qid)
    assert np.median(model.predict(X) / newton) == 1.0


def test_optimal_steps_may_shrink(rows):
    X, y, qid = rows
    small = {"max_iter": 3, "step": "optimal", "random_state": 0}
    whole, half, one = (
        LambdaMARTRanker(learning_rate=rate, **small).fit(X, y, qid=qid) for rate in (None, 0.5, 1.0)
    )
    assert whole.learning_rate_ == 1.0
    assert one.ensemble_ == whole.ensemble_
    np.testing.assert_array_equal(half.predict(X, n_trees=1), whole.predict(X, n_trees=1) / 2)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("leaf_values", ["newton", "mean"])
@pytest.mark.parametrize("split_search", ["full", "exact"])  # "exact" codes these rows by another mapper
def test_optimal_steps_on_validation_rows(rows, leaf_values, weighted, split_search):
    """As in section 5.6 of LambdaSMART: no other weight is better on these rows."""
    X, y, qid = rows
    train, others = qid % 2 == 0, qid % 2 == 1
    weights = np.random.default_rng(0).uniform(0.5, 2.0, len(y)) if weighted else None
    parts = [
        {"qid": qid[part], "sample_weight": None if weights is None else weights[part]}
        for part in (train, others)
    ]
    model = LambdaMARTRanker(
        measure="ndcg@5",
        step="optimal",
        step_rows="validation",
        step_interval=(1e-6, 1e6),
        leaf_values=leaf_values,
        split_search=split_search,
        max_iter=4,
        early_stopping=False,
        random_state=0,
    )
    validation = {f"{name}_val": part for name, part in parts[1].items()}
    model.fit(X[train], y[train], **parts[0], X_val=X[others], y_val=y[others], **validation)
    before, relative = np.zeros(others.sum()), {"form": "additive", "interval": (0.05, 20.0)}
    for n_trees in range(1, 5):
        after = model.predict(X[others], n_trees=n_trees)
        curve = optimal_weight(y[others], before, after - before, measure="ndcg@5", **relative, **parts[1])
        assert as_measure("ndcg@5")(y[others], after, **parts[1]) == pytest.approx(curve.value, rel=1e-9)
        before = after


def test_a_first_mean_tree_gets_its_newton_step(rows):
    X, y, qid = rows
    plain = {"max_iter": 1, "step": "optimal", "leaf_values": "mean", "gradient_sampling": None}
    mean = {**plain, "max_features": 1.0, "random_state": 0, "step_interval": (0.1, 100.0)}
    model = LambdaMARTRanker(**mean).fit(X, y, qid=qid)
    unit = LambdaMARTRanker(**mean | {"step": "newton", "step_interval": (0.1, 5.0), "learning_rate": 1.0})
    added = unit.fit(X, y, qid=qid).predict(X)
    gradients, hessians = np.empty((2, len(y)))
    order = np.argsort(qid, kind="stable")
    offsets = np.append(np.flatnonzero(np.diff(qid[order], prepend=-1)), len(qid))
    prepared = model._objective().prepare(y[order].astype(float), None, offsets)
    prepared.gradients(np.zeros(len(y)), gradients, hessians, 0)
    step = -(gradients @ added[order]) / (hessians @ added[order] ** 2)
    assert step > 2
    np.testing.assert_allclose(model.predict(X), step * added, rtol=1e-9)


def test_rows_of_steps_that_cannot_be_meant(rows):
    X, y, qid = rows
    with pytest.raises(
        ValueError, match=r'step_rows="validation" says where .* set step="optimal", or leave'
    ):
        LambdaMARTRanker(step_rows="validation").fit(X, y, qid=qid)
    model = LambdaMARTRanker(step="optimal", step_rows="validation", max_iter=3, measure="p@5")
    with pytest.raises(ValueError, match=r'step_rows="validation" finds .* but there are none: pass X_val'):
        model.fit(X, y, qid=qid)
    model.set_params(early_stopping=True).fit(X, y, qid=qid)


@pytest.mark.parametrize("interval", [(0.1, 5.0), (0.1, 100.0)])
def test_optimal_steps_are_the_best_weights(interval, rows):
    X, y, qid = rows
    small = {"max_iter": 6, "max_leaf_nodes": 4, "random_state": 0, "measure": "ndcg@5", "scoring": "ndcg@5"}
    model = LambdaMARTRanker(step="optimal", step_interval=interval, **small, n_jobs=1).fit(X, y, qid=qid)
    twin = LambdaMARTRanker(step="optimal", step_interval=interval, **small, n_jobs=2)
    assert twin.fit(X, y, qid=qid).ensemble_.digest() == model.ensemble_.digest()
    newton = LambdaMARTRanker(**small, learning_rate=1.0).fit(X, y, qid=qid)
    first = newton.predict(X, n_trees=1)
    np.testing.assert_array_equal(model.predict(X, n_trees=1), first)  # any weight ranks as well as 1
    before, second = model.predict(X, n_trees=1), newton.predict(X, n_trees=2) - first
    curve = optimal_weight(
        y, before, second, qid=qid, measure="ndcg@5", form="additive", interval=interval, near=1
    )
    np.testing.assert_allclose(model.predict(X, n_trees=2), before + curve.weight * second, rtol=1e-12)
    newton = LambdaMARTRanker(**small).fit(X, y, qid=qid)
    assert model.score(X, y, qid=qid) > newton.score(X, y, qid=qid)
    for wrong in ((2, 1), (1, 2, 3), ("a", "b"), (0, np.inf), [[1, 2]], {1, 2}):
        message = re.escape(
            f"step_interval={wrong!r}; expected the lowest and the highest of the weights that a tree"
        )
        with pytest.raises(ValueError, match=message + r".*: pass a pair, such as \(0.1, 5.0\)"):
            LambdaMARTRanker(step="optimal", step_interval=wrong, **small).fit(X, y, qid=qid)
    with pytest.raises(
        ValueError, match=r'step_interval=\(0.1, 2\) .* set step="optimal", or leave .* \(0.1, 5.0\)'
    ):
        LambdaMARTRanker(step_interval=(0.1, 2), **small).fit(X, y, qid=qid)
    LambdaMARTRanker(step_interval=[0.1, 5], **small).fit(X, y, qid=qid)
    rising = {"monotonic_cst": {0: 1}, "step": "optimal"}
    with pytest.raises(ValueError, match=r"step_interval=\(-1, 5\) .* monotonic_cst"):
        LambdaMARTRanker(step_interval=(-1, 5), **rising, **small).fit(X, y, qid=qid)
    LambdaMARTRanker(step_interval=(0, 5), **rising, **small).fit(X, y, qid=qid)
