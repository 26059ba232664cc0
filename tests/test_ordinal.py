"""Ordinal classification: the probabilities of grades, and scores from them, with any estimator."""

import pickle
import warnings

import catboost
import joblib
import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sklearn
import xgboost
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, ExtraTreesClassifier, VotingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from ranktrees import (
    BlendRanker,
    EnsembleRanker,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    MissingQueryWarning,
    ModelFeatures,
    OrdinalRanker,
    QueryKFold,
    RandomForestRanker,
    WithSourceRows,
    as_measure,
    make_ranking,
    query_scorer,
)
from ranktrees.meta.ordinal import class_probabilities, least_squares_values, nearest_rising
from reference import ordinal as reference

SMALL = {"max_leaf_nodes": 8, "random_state": 0, "n_jobs": 1}
BOOSTED = {"max_iter": 8, **SMALL}
INSIDE = {
    "classifier": HistGBRTClassifier(**BOOSTED),
    "balanced": HistGBRTClassifier(balanced=True, **BOOSTED),
    "squared error": HistGBRTRegressor(**BOOSTED),
    "logistic": HistGBRTRegressor("logistic", **BOOSTED),
    "forest": RandomForestRanker(8, **SMALL),
    "from a forest": HistGBRTRegressor(init=RandomForestRanker(8, **SMALL), **BOOSTED),
    "linear": LinearRegression(),
    "odds": LogisticRegression(),
    "neighbours": KNeighborsClassifier(15),
    "extra trees": ExtraTreesClassifier(8, max_leaf_nodes=8, random_state=0),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
}
OURS = ["classifier", "balanced", "squared error", "logistic", "forest", "from a forest"]

each = pytest.mark.parametrize("inside", INSIDE)
ours = pytest.mark.parametrize("inside", OURS)


@pytest.fixture(scope="module")
def rows():
    """X, y of five grades, qid."""
    X, y, qid = make_ranking(40, rows_per_query=15, n_features=6, random_state=0, return_X_y_qid=True)
    return X, y, qid


# ------------------------------------------------------------------------------------ scikit-learn's checks

GIVES_PROBABILITIES_TOO = "its scores are expected values of grades, whose probabilities it gives as well"


with sklearn.config_context(enable_metadata_routing=True):
    CHECKED = [
        OrdinalRanker(Ridge().set_fit_request(sample_weight=True)),
        OrdinalRanker(
            HistGBRTClassifier(max_iter=5, n_jobs=1).set_fit_request(sample_weight=True), method="multiclass"
        ),
    ]


@pytest.mark.parametrize("routing", [False, True], ids=["routing off", "routing on"])
@pytest.mark.filterwarnings("ignore::ranktrees.MissingQueryWarning")
@parametrize_with_checks(
    CHECKED,
    expected_failed_checks=lambda _: {"check_regressors_no_decision_function": GIVES_PROBABILITIES_TOO},
)
def test_scikit_learn_checks(estimator, check, routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        check(estimator)


# --------------------------------------------------------------------------------- classes without an order


def test_one_classifier_learns_the_grades(rows):
    X, y, qid = rows
    ranker = OrdinalRanker(INSIDE["classifier"], method="multiclass").fit(X, y, qid=qid)
    model = clone(INSIDE["classifier"]).fit(X, y, qid=qid)
    assert len(ranker.estimators_) == 1
    np.testing.assert_array_equal(ranker.predict_proba(X), model.predict_proba(X))
    np.testing.assert_allclose(ranker.predict(X), model.predict_proba(X) @ ranker.classes_, rtol=1e-12)
    assert ranker.score(X, y, qid=qid) > 0.8
    ranker.set_params(method="ordinal")  # which the next fit is to learn
    np.testing.assert_array_equal(ranker.predict_proba(X), model.predict_proba(X))
    assert len(ranker.fit(X, y, qid=qid).estimators_) == 4


@pytest.mark.parametrize("inside", ["balanced", "odds", "neighbours", "pipeline"])
@pytest.mark.parametrize("scoring", ["expected_gain", "least_squares", {0: 0, 1: 1, 2: 5, 3: 6, 4: 9}])
def test_any_classifier_learns_grades_and_any_scoring_weighs_them(inside, scoring, rows):
    X, y, qid = rows
    ranker = OrdinalRanker(INSIDE[inside], scoring, method="multiclass").fit(X, y, qid=qid)
    probabilities = ranker.predict_proba(X)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-6)  # some are of single precision
    np.testing.assert_allclose(ranker.predict(X), probabilities @ ranker.values_, atol=1e-12)
    assert pickle.loads(pickle.dumps(ranker)).predict(X).tolist() == ranker.predict(X).tolist()


def test_one_or_two_grades_as_classes(rows):
    X, y, qid = rows
    two = OrdinalRanker(INSIDE["classifier"], method="multiclass").fit(X, np.where(y > 1, 3.0, 0.5), qid=qid)
    assert two.classes_.tolist() == [0.5, 3.0]
    model = clone(INSIDE["classifier"]).fit(X, y > 1, qid=qid)
    np.testing.assert_allclose(two.predict(X), 0.5 + 2.5 * model.predict_proba(X)[:, 1])
    one = OrdinalRanker(INSIDE["classifier"], method="multiclass").fit(X, np.full(len(y), 2.0), qid=qid)
    assert set(one.predict(X)) == {2.0}


def test_only_a_classifier_learns_grades_as_classes(rows):
    X, y, qid = rows
    with pytest.raises(ValueError, match=r'Ridge, which is not a classifier.*HistGBRTClassifier.*"ordinal"'):
        OrdinalRanker(Ridge(), method="multiclass").fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="'method' parameter"):
        OrdinalRanker(Ridge(), method="nominal").fit(X, y, qid=qid)


# ------------------------------------------------------------------------------------- from models to scores

matrices = npst.arrays(
    np.float64,
    st.tuples(st.integers(1, 5), st.integers(1, 6)),
    elements=st.floats(-0.5, 1.5) | st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)


@settings(deadline=None)
@given(matrices)
def test_class_probabilities_are_those_of_the_twin(cumulative):
    found = class_probabilities(cumulative)
    np.testing.assert_allclose(found, reference.class_probabilities(cumulative), atol=1e-12)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)


@settings(deadline=None)
@given(matrices)
def test_nearest_rising_never_falls_and_keeps_the_sum(values):
    rising = nearest_rising(values)
    assert (np.diff(rising, axis=1) >= 0).all()
    np.testing.assert_allclose(rising.sum(axis=1), values.sum(axis=1), atol=1e-12)
    np.testing.assert_allclose(nearest_rising(np.sort(values)), np.sort(values), atol=1e-12)
    np.testing.assert_allclose(nearest_rising(rising), rising, atol=1e-12)
    for row in range(len(values)):
        np.testing.assert_array_equal(nearest_rising(values[row : row + 1])[0], rising[row])


def test_rising_rows_are_left_alone():
    cumulative = np.sort(np.random.default_rng(0).random((1000, 4)))
    falling = np.array([[0.9, 0.1, 0.2, 0.3]])
    found = class_probabilities(np.vstack([cumulative, falling]))
    np.testing.assert_array_equal(found[:-1, 0], cumulative[:, 0])
    np.testing.assert_array_equal(found[:-1], np.diff(cumulative, axis=1, prepend=0.0, append=1.0))


@pytest.mark.parametrize("weighted", [False, True])
def test_least_squares_is_that_of_the_twin(weighted):
    rng = np.random.default_rng(0)
    grades = np.array([0.0, 1.0, 3.0])
    probabilities = rng.dirichlet([1, 1, 1], 300)
    labels = grades[rng.integers(0, 3, 300)]
    weights = rng.random(300) if weighted else None
    found = least_squares_values(probabilities, labels, grades, weights)
    expected = reference.least_squares_values(probabilities, labels, grades, weights)
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    order = rng.permutation(300)
    again = least_squares_values(
        probabilities[order], labels[order], grades, None if weights is None else weights[order]
    )
    np.testing.assert_array_equal(again, found)


def test_rows_without_weight_have_no_part_in_least_squares():
    rng = np.random.default_rng(0)
    probabilities, labels, grades = rng.dirichlet(np.ones(3), 6), rng.integers(0, 3, 6) * 1.0, np.arange(3.0)
    weights = np.array([1.0, 2, 0, 3, 0, 0])
    rows = weights > 0
    np.testing.assert_array_equal(
        least_squares_values(probabilities, labels, grades, weights),
        least_squares_values(probabilities[rows], labels[rows], grades, weights[rows]),
    )


def test_least_squares_of_sure_and_right_models_is_the_grades():
    grades = np.array([0.0, 1.0, 2.0, 7.0])
    labels = np.array([0.0, 1.0, 1.0, 2.0])  # the grade 7 is never expected
    sure = (labels[:, None] == grades).astype(float)
    np.testing.assert_allclose(least_squares_values(sure, labels, grades), grades)


# --------------------------------------------------------------------------------------------------- the laws


@each
def test_probabilities_and_scores(inside, rows):
    X, y, qid = rows
    ranker = OrdinalRanker(INSIDE[inside]).fit(X, y, qid=qid)
    np.testing.assert_array_equal(ranker.classes_, [0, 1, 2, 3, 4])
    assert len(ranker.estimators_) == 4
    probabilities = ranker.predict_proba(X)
    assert probabilities.shape == (len(y), 5)
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(ranker.predict(X), probabilities @ [0, 1, 2, 3, 4])
    expected = as_measure("ndcg@10")(y, ranker.predict(X), qid=qid)
    assert ranker.score(X, y, qid=qid) == pytest.approx(expected, abs=1e-14)
    assert expected > as_measure("ndcg@10")(y, np.zeros(len(y)), qid=qid) + 0.02
    if inside in OURS:
        np.testing.assert_array_equal(ranker.predict(X[7:8]), ranker.predict(X)[7:8])


@each
def test_the_models_are_clones_that_learned_the_events(inside, rows):
    X, y, qid = rows
    estimator = INSIDE[inside]
    ranker = OrdinalRanker(estimator).fit(X, y, qid=qid)
    assert not hasattr(estimator, "n_features_in_")
    for grade, model in enumerate(ranker.estimators_):
        queries = {"qid": qid} if inside in OURS else {}
        expected = clone(estimator).fit(X, (y <= grade).astype(float), **queries)
        np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-12)


@each
def test_two_grades_are_the_single_model(inside, rows):
    X, y, qid = rows
    y = (y >= 2).astype(int)
    ranker = OrdinalRanker(INSIDE[inside]).fit(X, y, qid=qid)
    queries = {"qid": qid} if inside in OURS else {}
    alone = clone(INSIDE[inside]).fit(X, 1 - y, **queries)
    if hasattr(alone, "predict_proba"):
        at_most_0 = alone.predict_proba(X)[:, 1]
    else:
        at_most_0 = np.clip(alone.predict(X), 0, 1)
    at_most_0 = at_most_0.astype(float)  # scikit-learn's linear models keep float32
    np.testing.assert_allclose(ranker.predict_proba(X)[:, 0], at_most_0, rtol=1e-12)
    np.testing.assert_allclose(ranker.predict(X), 1 - at_most_0, rtol=1e-12)


class Perfect(ClassifierMixin, BaseEstimator):
    """Knows the one feature to be the label, and the events to be those of falling thresholds."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.threshold_ = X[y == 1, 0].max()
        return self

    def predict(self, X):
        return (X[:, 0] <= self.threshold_).astype(int)

    def predict_proba(self, X):
        return np.column_stack([1.0 - self.predict(X), self.predict(X)])


class Contrary(RegressorMixin, BaseEstimator):
    """Says that low grades are likelier the higher the threshold is not."""

    def fit(self, X, y):
        self.share_ = np.mean(y)
        return self

    def predict(self, X):
        return np.full(len(X), 1.2 - self.share_)


@pytest.mark.parametrize("grades", [[0, 1, 2, 3, 4], [0, 2, 4], [-1, 0.5, 30], [3], [2, 7]])
@pytest.mark.parametrize("scoring", ["expected_relevance", "least_squares"])
def test_a_perfect_classifier_gives_y_back(scoring, grades):
    y = np.array(grades, float)[np.random.default_rng(0).permutation(np.arange(60) % len(grades))]
    ranker = OrdinalRanker(Perfect(), scoring).fit(y[:, None], y, qid=np.arange(60) // 10)
    np.testing.assert_allclose(ranker.predict(y[:, None]), y, atol=1e-12)
    np.testing.assert_array_equal(ranker.classes_, grades)
    np.testing.assert_array_equal(ranker.classes_[ranker.predict_proba(y[:, None]).argmax(axis=1)], y)


def test_models_that_fall_are_pooled():
    y = np.arange(30) % 3
    ranker = OrdinalRanker(Contrary()).fit(np.zeros((30, 1)), y, qid=np.zeros(30))
    at_most_0, at_most_1 = 1.2 - 1 / 3, 1.2 - 2 / 3
    pooled = (at_most_0 + at_most_1) / 2
    np.testing.assert_allclose(ranker.predict_proba(np.zeros((1, 1)))[0], [pooled, 0, 1 - pooled])
    np.testing.assert_allclose(ranker.predict(np.zeros((1, 1))), 2 - at_most_0 - at_most_1)


@ours
def test_shift_of_the_grades(inside, rows):
    X, y, qid = rows
    ranker = OrdinalRanker(INSIDE[inside]).fit(X, y, qid=qid)
    shifted = OrdinalRanker(INSIDE[inside]).fit(X, y + 3, qid=qid)
    np.testing.assert_array_equal(shifted.classes_, ranker.classes_ + 3)
    np.testing.assert_array_equal(shifted.predict_proba(X), ranker.predict_proba(X))
    np.testing.assert_allclose(shifted.predict(X), ranker.predict(X) + 3)


def test_grades_in_between_may_be_missing(rows):
    X, y, qid = rows
    y = np.minimum(y, 2)
    ranker = OrdinalRanker(INSIDE["classifier"]).fit(X, y, qid=qid)
    spread = OrdinalRanker(INSIDE["classifier"]).fit(X, 2 * y, qid=qid)
    np.testing.assert_array_equal(spread.classes_, [0, 2, 4])
    np.testing.assert_array_equal(spread.predict_proba(X), ranker.predict_proba(X))
    np.testing.assert_allclose(spread.predict(X), 2 * ranker.predict(X))


@ours
def test_order_of_the_rows(inside, rows):
    X, y, qid = rows
    dealt = np.arange(600).reshape(40, 15).T.ravel()
    ranker = OrdinalRanker(INSIDE[inside]).fit(X, y, qid=qid)
    other = OrdinalRanker(INSIDE[inside]).fit(X[dealt], y[dealt], qid=qid[dealt])
    np.testing.assert_array_equal(other.predict(X), ranker.predict(X))
    assert other.score(X[dealt], y[dealt], qid=qid[dealt]) == pytest.approx(ranker.score(X, y, qid=qid))


@pytest.mark.parametrize(("inside", "backend"), [("classifier", "loky"), ("forest", "threading")])
def test_n_jobs_gives_the_same_bytes(inside, backend, rows):
    X, y, qid = rows
    estimator = clone(INSIDE[inside]).set_params(random_state=None)
    rankers = []
    for n_jobs in (None, 2):
        ranker = OrdinalRanker(
            estimator, "least_squares", validation_fraction=0.3, random_state=0, n_jobs=n_jobs
        )
        with joblib.parallel_config(backend):
            rankers.append(ranker.fit(X, y, qid=qid))
    digests = [[model.ensemble_.digest() for model in ranker.estimators_] for ranker in rankers]
    assert digests[0] == digests[1]
    assert len({model.random_state for model in rankers[0].estimators_}) == 4
    np.testing.assert_array_equal(rankers[0].values_, rankers[1].values_)
    np.testing.assert_array_equal(rankers[0].predict(X), rankers[1].predict(X))


# ------------------------------------------------------------------------------------------------- scorings


def test_named_scorings(rows):
    X, y, qid = rows
    values = {
        "expected_relevance": [0, 1, 2, 3, 4],
        "expected_square": [0, 1, 4, 9, 16],
        "expected_gain": [0, 1, 3, 7, 15],
    }
    for scoring, expected in values.items():
        ranker = OrdinalRanker(INSIDE["odds"], scoring).fit(X, y, qid=qid)
        np.testing.assert_array_equal(ranker.values_, expected)
        np.testing.assert_allclose(ranker.predict(X), ranker.predict_proba(X) @ expected)
    below_0 = OrdinalRanker(INSIDE["odds"], "expected_gain").fit(X, y - 2, qid=qid)
    np.testing.assert_array_equal(below_0.values_, [-0.75, -0.5, 0, 1, 3])


@pytest.mark.parametrize(
    "table",
    [
        lambda grade: 2**grade,
        {0: 1, 2: 4, 4: 16.0},
        [1, 0, 4, 0, 16],
        np.array([1.0, np.nan, 4.0, 8.0, 16.0, 32.0]),
    ],
    ids=["function", "mapping", "list", "array"],
)
def test_functions_and_tables(table, rows):
    X, y, qid = rows
    ranker = OrdinalRanker(INSIDE["odds"], table).fit(X, np.minimum(2 * y, 4), qid=qid)
    np.testing.assert_array_equal(ranker.values_, [1, 4, 16])
    power = OrdinalRanker(INSIDE["odds"], "expected_gain").fit(X, np.minimum(2 * y, 4), qid=qid)
    np.testing.assert_allclose(ranker.predict(X), power.predict(X) + 1)
    clone(ranker)


def drawn_queries(ranker, X, y, qid):
    """The queries whose rows the clones have learned from."""
    listening = clone(ranker).set_params(estimator=Listening()).fit(np.column_stack([qid, X]), y, qid=qid)
    return np.unique(listening.estimators_[0].X_[:, 0])


def test_least_squares_on_training_and_on_held_out_queries(rows):
    X, y, qid = rows
    forest = RandomForestRanker(8, min_samples_leaf=1, random_state=0, n_jobs=1)
    on_training = OrdinalRanker(forest, "least_squares").fit(X, y, qid=qid)
    expected = reference.least_squares_values(on_training.predict_proba(X), y, on_training.classes_)
    np.testing.assert_allclose(on_training.values_, expected, rtol=1e-9)
    parted = OrdinalRanker(forest, "least_squares", validation_fraction=0.5, random_state=1)
    parted.fit(X, y, qid=qid)
    assert parted.estimators_[0].ensemble_.nodes["count"].max() <= 300
    held_out = np.setdiff1d(np.arange(40), drawn_queries(parted, X, y, qid))
    assert len(held_out) == 20
    rows_held_out = np.isin(qid, held_out)
    expected = reference.least_squares_values(
        parted.predict_proba(X[rows_held_out]), y[rows_held_out], parted.classes_
    )
    np.testing.assert_allclose(parted.values_, expected, rtol=1e-9)
    again = clone(parted).fit(X, y, qid=[f"query {i}" for i in qid])
    np.testing.assert_array_equal(again.values_, parted.values_)
    without = OrdinalRanker(Ridge(), "least_squares", validation_fraction=0.5, random_state=1)
    with pytest.warns(MissingQueryWarning):
        assert np.isfinite(without.fit(X, y).values_).all()
    with pytest.raises(ValueError, match="only one; set validation_fraction=None"):
        without.fit(X, y, qid=np.zeros(len(y)))
    with pytest.raises(
        ValueError, match=r"validation_fraction=0.5 holds out .*'expected_gain' does not find any"
    ):
        OrdinalRanker(Ridge(), "expected_gain", validation_fraction=0.5).fit(X, y, qid=qid)


def test_wrong_scorings_raise(rows):
    X, y, qid = rows
    for scoring, message in (
        ("expected_revelance", "expected_revelance"),
        ({0: 1, 1: 2}, "without the grade 2"),
        ([0, 1, 2, 3], "without the grade 4"),
        (lambda grade: 1 / (grade - 2) if grade != 2 else np.inf, "finite number"),
        (lambda grade: "good", "finite number"),
        (7, "scoring"),
    ):
        with pytest.raises(ValueError, match=message):
            OrdinalRanker(Ridge(), scoring).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=r"without the grade 0\.5"):
        OrdinalRanker(Ridge(), [0, 1, 2]).fit(X, y / 2, qid=qid)


# -------------------------------------------------------------------------------------- weights and query ids


class Listening(RegressorMixin, BaseEstimator):
    """Notes what it is given."""

    def fit(self, X, y, qid=None, sample_weight=None):
        self.X_, self.given_ = X, {"y": y, "qid": qid, "sample_weight": sample_weight}
        return self

    def predict(self, X):
        return np.full(len(X), 0.5)


def test_what_is_passed_on_without_routing(rows):
    X, y, qid = rows
    dealt = np.arange(600).reshape(40, 15).T.ravel()
    weight = np.random.default_rng(0).random(len(y))
    labels = pd.Series(y[dealt], index=pd.Index(qid[dealt], name="qid"))
    ranker = OrdinalRanker(Listening()).fit(X[dealt], labels, weight[dealt])
    for grade, model in enumerate(ranker.estimators_):
        np.testing.assert_array_equal(model.given_["y"].to_numpy(), y <= grade)
        np.testing.assert_array_equal(model.given_["y"].index, qid)
        np.testing.assert_array_equal(model.given_["qid"], qid)
        np.testing.assert_array_equal(model.given_["sample_weight"], weight)
    assert OrdinalRanker(Ridge()).fit(X, y, weight, qid=qid).score(X, y, qid=qid) > 0.5
    plain = OrdinalRanker(Listening()).fit(X, y, group=[15] * 40)
    np.testing.assert_array_equal(plain.estimators_[0].given_["qid"], qid)
    assert plain.estimators_[0].given_["sample_weight"] is None


def test_what_is_passed_on_with_routing(rows):
    X, y, qid = rows
    weight = np.random.default_rng(0).random(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        asking = Listening().set_fit_request(qid=True, sample_weight=True)
        ranker = OrdinalRanker(asking).fit(X, y, weight, groups=qid)
        np.testing.assert_array_equal(ranker.estimators_[0].given_["qid"], qid)
        np.testing.assert_array_equal(ranker.estimators_[0].given_["sample_weight"], weight)
        silent = Listening().set_fit_request(qid=False, sample_weight=True)
        assert OrdinalRanker(silent).fit(X, y, weight, qid=qid).estimators_[0].given_["qid"] is None
        with pytest.raises(ValueError, match="sample_weight"):
            OrdinalRanker(Listening().set_fit_request(qid=True)).fit(X, y, weight, qid=qid)
        OrdinalRanker(KNeighborsClassifier()).fit(X, y, qid=qid)
        scaled = make_pipeline(StandardScaler(), INSIDE["forest"])
        piped = OrdinalRanker(scaled).fit(X, y, qid=qid)
        assert piped.estimators_[0][-1]._qid_given
        search = GridSearchCV(INSIDE["classifier"], {"max_iter": [1, 2]}, cv=GroupKFold(2))
        assert len(OrdinalRanker(search).fit(X, y, qid=qid).estimators_) == 4


def test_ids_in_the_index_reach_a_step_of_a_pipeline(rows):
    X, y, qid = rows
    labels = pd.Series(y, index=pd.Index(qid, name="qid"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        piped = OrdinalRanker(make_pipeline(StandardScaler(), INSIDE["forest"])).fit(X, labels)
    assert piped.estimators_[0][-1]._qid_given


def test_ids_reach_a_step_of_a_pipeline(rows):
    X, y, qid = rows
    inside = make_pipeline(StandardScaler(), INSIDE["forest"])
    piped, riding = (
        OrdinalRanker(inside).fit(X, y, qid=qid),
        OrdinalRanker(inside).fit(X, pd.Series(y, index=pd.Index(qid, name="qid"))),
    )
    assert piped.estimators_[0][-1]._qid_given
    np.testing.assert_array_equal(piped.predict(X), riding.predict(X))


@pytest.mark.parametrize("routing", [False, True])
def test_weights_are_refused_where_nobody_takes_them(routing, rows):
    X, y, qid = rows
    with (
        sklearn.config_context(enable_metadata_routing=routing),
        pytest.raises(ValueError, match=r"sample_weight is given, .* KNeighborsClassifier takes no weights"),
    ):
        OrdinalRanker(KNeighborsClassifier()).fit(X, y, np.ones(len(y)), qid=qid)


@ours
def test_weights_are_those_of_the_models(inside, rows):
    X, y, qid = rows
    weight = np.random.default_rng(0).random(len(y))
    ranker = OrdinalRanker(INSIDE[inside]).fit(X, y, weight, qid=qid)
    for grade, model in enumerate(ranker.estimators_):
        expected = clone(INSIDE[inside]).fit(X, (y <= grade).astype(float), weight, qid=qid)
        assert model.ensemble_.digest() == expected.ensemble_.digest()


def test_without_query_ids(rows):
    X, y, qid = rows
    with pytest.warns(MissingQueryWarning, match="OrdinalRanker was fitted without query ids"):
        ranker = OrdinalRanker(Ridge()).fit(X, y)
    assert ranker.score(X, y) == pytest.approx(as_measure("ndcg@10")(y, ranker.predict(X), qid=qid * 0))
    with pytest.raises(ValueError, match="score needs qid"):
        OrdinalRanker(Ridge()).fit(X, y, qid=qid).score(X, y)


# ------------------------------------------------------------------------------------ an object like others


def test_estimators_that_give_no_probabilities_are_refused(rows):
    X, y, qid = rows
    with pytest.raises(ValueError, match=r"LambdaMARTRanker.*HistGBRTClassifier"):
        OrdinalRanker(LambdaMARTRanker()).fit(X, y, qid=qid)
    ranker = LambdaMARTRanker(max_iter=2)
    for around in (
        make_pipeline(StandardScaler(), ranker),
        GridSearchCV(make_pipeline(ranker), {"lambdamartranker__max_iter": [2]}),
        BaggingRegressor(ranker),
        VotingRegressor([("a", LinearRegression()), ("b", ranker)]),
        BlendRanker([("a", LinearRegression()), ("b", ranker)]),
        TransformedTargetRegressor(ranker),
        WithSourceRows(ranker),
    ):
        with pytest.raises(ValueError, match=f"a {type(around).__name__} around a LambdaMARTRanker,"):
            OrdinalRanker(around).fit(X, y, qid=qid)
    there_already = EnsembleRanker(ranker.fit(X, y, qid=qid).ensemble_)
    for estimator in (there_already, BlendRanker([("a", LinearRegression()), ("b", there_already)])):
        with pytest.raises(
            ValueError, match=r"EnsembleRanker, whose trees .* do not learn an event; expected"
        ):
            OrdinalRanker(estimator).fit(X, y, qid=qid)
    for theirs in (lightgbm.LGBMRanker(), xgboost.XGBRanker(), catboost.CatBoostRanker(verbose=False)):
        with pytest.raises(
            ValueError, match=f"estimator is a {type(theirs).__name__}, whose scores order the rows"
        ):
            OrdinalRanker(theirs).fit(X, y, qid=qid)
        with pytest.raises(ValueError, match=f"a WithSourceRows around a {type(theirs).__name__}, whose"):
            OrdinalRanker(WithSourceRows(theirs)).fit(X, y, qid=qid)
    frozen = FrozenEstimator(Ridge().fit(X, y))
    for estimator in (FrozenEstimator(LogisticRegression().fit(X, y)), frozen, make_pipeline(frozen)):
        with pytest.raises(ValueError, match="FrozenEstimator, which stays as it is and does not learn"):
            OrdinalRanker(estimator).fit(X, y, qid=qid)
    learned_from = make_pipeline(ModelFeatures(ranker, cv=2), LinearRegression())
    ids = pd.Series(y, index=pd.Index(qid, name="qid"))
    assert OrdinalRanker(learned_from).fit(X, ids).score(X, ids) > 0.5
    assert OrdinalRanker(BaggingRegressor(random_state=0)).fit(X, ids).score(X, ids) > 0.5
    with pytest.raises(ValueError, match="CalibratedClassifierCV"):
        OrdinalRanker(RidgeClassifier()).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match="estimator"):
        OrdinalRanker(StandardScaler()).fit(X, y, qid=qid)
    with pytest.raises(TypeError, match="estimator"):
        OrdinalRanker()


@pytest.mark.parametrize("routing", [False, True])
def test_grid_search(routing, rows):
    X, y, qid = rows
    ranker = OrdinalRanker(INSIDE["classifier"])
    grid = {"estimator__max_iter": [1, 8], "scoring": ["expected_relevance", "expected_gain"]}
    with sklearn.config_context(enable_metadata_routing=routing):
        search = GridSearchCV(ranker, grid, cv=QueryKFold(3))
        if routing:
            search.fit(X, y, groups=qid)
        else:
            search.fit(X, pd.Series(y, index=pd.Index(qid, name="qid")))
    scores = []
    for train, test in QueryKFold(3).split(X, groups=qid):
        fitted = clone(ranker).set_params(**search.best_params_).fit(X[train], y[train], qid=qid[train])
        scores.append(fitted.score(X[test], y[test], qid=qid[test]))
    assert search.best_score_ == pytest.approx(np.mean(scores))
    assert search.best_params_["estimator__max_iter"] == 8
    with sklearn.config_context(enable_metadata_routing=True):
        scores_by_scorer = cross_val_score(
            clone(ranker).set_params(**search.best_params_),
            X,
            y,
            cv=QueryKFold(3),
            scoring=query_scorer(),
            params={"groups": qid},
        )
    np.testing.assert_allclose(scores_by_scorer, scores)


@ours
def test_copies(inside, rows):
    X, y, qid = rows
    ranker = OrdinalRanker(INSIDE[inside], measure="err").fit(X, y, qid=qid)
    twin = pickle.loads(pickle.dumps(ranker))
    np.testing.assert_array_equal(twin.predict_proba(X), ranker.predict_proba(X))
    np.testing.assert_array_equal(clone(ranker).fit(X, y, qid=qid).predict(X), ranker.predict(X))
    assert repr(OrdinalRanker(Ridge())) == "OrdinalRanker(estimator=Ridge())"
    assert set(OrdinalRanker._parameter_constraints) == set(ranker.get_params(deep=False))
    assert all(name in OrdinalRanker.__doc__ for name in ranker.get_params(deep=False))


@pytest.mark.parametrize("estimator", [INSIDE["classifier"], LogisticRegression()], ids=["ours", "theirs"])
def test_feature_names(estimator, rows):
    X, y, qid = rows
    frame = pd.DataFrame(X, columns=list("abcdef"))
    ranker = OrdinalRanker(estimator).fit(frame, y, qid=qid)
    assert ranker.feature_names_in_.tolist() == list("abcdef")
    assert ranker.estimators_[0].feature_names_in_.tolist() == list("abcdef")
    assert ranker.n_features_in_ == 6
    with pytest.raises(ValueError, match="unseen"):
        ranker.predict(frame.rename(columns={"a": "z"}))
    assert not hasattr(ranker.fit(X, y, qid=qid), "feature_names_in_")


def test_labels_that_are_no_grades_are_refused():
    X, qid = np.zeros((300, 1)), np.zeros(300)
    with pytest.raises(ValueError, match=r"y has 300 different grades.* at most 255.* regressor"):
        OrdinalRanker(Ridge()).fit(X, np.linspace(0, 1, 300), qid=qid)
    assert len(OrdinalRanker(Ridge()).fit(X, np.arange(300) % 255, qid=qid).classes_) == 255


def test_failed_fit_leaves_everything_as_it_was(rows):
    X, y, qid = rows
    ranker = OrdinalRanker(INSIDE["classifier"]).fit(X, y, qid=qid)
    before = pickle.dumps(ranker)
    for data in (
        {"X": X, "y": np.where(y > 3, np.nan, y), "qid": qid},
        {"X": X[:-1], "y": y, "qid": qid},
        {"X": X.astype(str), "y": np.minimum(y, 1), "qid": qid},
        {"X": X, "y": y, "qid": qid[:-1]},
    ):
        with pytest.raises(ValueError, match=r"NaN|length|float|rows"):
            ranker.fit(**data)
    assert pickle.dumps(ranker) == before


def test_rows_are_left_to_the_estimator_inside(rows):
    _, y, qid = rows
    frame = pd.DataFrame({"site": np.array(list("abcde"))[y.astype(int)]})
    ranker = OrdinalRanker(make_pipeline(OneHotEncoder(), LogisticRegression())).fit(frame, y, qid=qid)
    assert ranker.score(frame, y, qid=qid) == 1
    model = OrdinalRanker(INSIDE["classifier"]).fit(frame.astype("category"), y, qid=qid)
    assert model.score(frame.astype("category"), y, qid=qid) == 1
    with pytest.raises(ValueError, match="Expected 2D array"):
        ranker.predict(["a", "b"])


@ours
def test_every_kind_of_matrix_is_the_same(inside, rows):
    X, y, qid = rows
    ranker = OrdinalRanker(INSIDE[inside]).fit(X, y, qid=qid)
    for form in (sp.csr_array, pl.DataFrame, list):
        np.testing.assert_array_equal(
            OrdinalRanker(INSIDE[inside]).fit(form(X), y, qid=qid).predict(form(X)), ranker.predict(X)
        )


@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
@pytest.mark.parametrize("form", [sp.coo_matrix, sp.bsr_array, sp.dia_array])
def test_rows_in_any_order_in_every_sparse_format(form, rows):
    X, y, qid = (array[np.random.default_rng(0).permutation(len(rows[1]))] for array in rows)
    X = sp.csr_array(X)
    settings = {"scoring": "least_squares", "validation_fraction": 0.2, "random_state": 0}
    ranker, other = (
        OrdinalRanker(INSIDE["classifier"], **settings).fit(matrix, y, qid=qid) for matrix in (X, form(X))
    )
    np.testing.assert_array_equal(other.predict(X), ranker.predict(X))
