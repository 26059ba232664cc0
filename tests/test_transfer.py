"""Features from a model, and rows from another set: which model has seen which rows, and whose queries."""

import builtins
import warnings

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, ShuffleSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from ranktrees import (
    FitWarning,
    HistGBRTRegressor,
    LambdaMARTRanker,
    ModelFeatures,
    QueryKFold,
    RandomForestRanker,
    WithSourceRows,
    best_rows,
    query_scorer,
    select_source_rows,
)
from ranktrees.meta.stacking import stacked
from reference.scoring import nameless

SMALL = {"max_leaf_nodes": 4, "random_state": 0, "n_jobs": 1}
RANKER = LambdaMARTRanker(max_iter=4, max_features=1.0, **SMALL)
FOREST = RandomForestRanker(4, **SMALL)
LIKENESS = HistGBRTRegressor("logistic", balanced=True, max_iter=10, **SMALL)
both_ways = pytest.mark.parametrize("routing", [False, True], ids=["routing off", "routing on"])


def routed(routing):
    return sklearn.config_context(enable_metadata_routing=routing)


def make_rows(n_queries=20, seed=0, shift=0.0):
    """X, y, qid: queries of ten rows, apart from each other."""
    rng = np.random.default_rng(seed)
    n_rows = 10 * n_queries
    X = rng.normal(shift, 1, (n_rows, 4)).round(2)
    y = np.clip(np.round(X[:, 0] - shift + 0.5 * X[:, 1] + rng.normal(0, 0.5, n_rows) + 1), 0, 3)
    return X, y, rng.permutation(np.repeat([f"query {i}" for i in range(n_queries)], 10))


@pytest.fixture(scope="module")
def rows():
    return make_rows()


@pytest.fixture(scope="module")
def source():
    return make_rows(30, seed=1, shift=0.3)


# ------------------------------------------------------------------------------------ scikit-learn's checks

LOOSE = HistGBRTRegressor(
    max_iter=20, min_samples_leaf=1, max_features=1.0, gradient_sampling=None, random_state=0, n_jobs=1
)
OUT_OF_FOLD = "training rows get what models say that have not seen them"


def expected_failures(estimator):
    if not isinstance(estimator, ModelFeatures):
        return {}
    names = ["check_transformer_general", "check_transformer_data_not_an_array"]
    return dict.fromkeys(names, OUT_OF_FOLD)


with routed(True):
    WEIGHTED = [clone(one).set_fit_request(sample_weight=True) for one in (LOOSE, LogisticRegression(C=0.1))]


@pytest.mark.parametrize("routing", [False, True], ids=["routing off", "routing on"])
@parametrize_with_checks(
    [
        ModelFeatures(WEIGHTED[0], cv=2),
        ModelFeatures(WEIGHTED[1], add=["cumulative", "score", "probabilities"], keep=False, cv=2),
        *map(WithSourceRows, WEIGHTED),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_checks(estimator, check, routing):
    with routed(routing):
        check(estimator)


# --------------------------------------------------------------------------------------- features: who says


@both_ways
def test_training_rows_are_told_by_models_that_have_not_seen_their_query(rows, routing):
    X, y, qid = rows
    features = ModelFeatures(RANKER, cv=4)
    with routed(routing):
        told = features.fit_transform(X, y, qid=qid)
    np.testing.assert_array_equal(told[:, :4], X)
    for train, test in QueryKFold(4).split(X, groups=qid):
        model = clone(RANKER).fit(X[train], y[train], qid=qid[train])
        np.testing.assert_array_equal(told[test, 4], model.predict(X[test]))
    everything = clone(RANKER).fit(X, y, qid=qid)
    np.testing.assert_array_equal(features.transform(X)[:, 4], everything.predict(X))
    assert features.estimator_.ensemble_.digest() == everything.ensemble_.digest()


def test_no_row_is_told_its_label_or_that_of_its_query(rows):
    X, y, qid = rows
    told = ModelFeatures(RANKER, keep=False).fit_transform(X, y, qid=qid)
    for query in ("query 0", "query 7"):
        other = np.where(qid == query, 3 - y, y)
        again = ModelFeatures(RANKER, keep=False).fit_transform(X, other, qid=qid)
        np.testing.assert_array_equal(again[qid == query], told[qid == query])
        assert (again[qid != query] != told[qid != query]).any()


def test_without_queries_folds_are_of_rows(rows):
    X, y, _ = rows
    told = ModelFeatures(Ridge(), keep=False).fit_transform(X, y)
    for train, test in KFold(5).split(X):
        np.testing.assert_allclose(told[test, 0], Ridge().fit(X[train], y[train]).predict(X[test]))


def test_weights_reach_the_model(rows):
    X, y, qid = rows
    weights = np.random.default_rng(0).integers(1, 5, len(y)).astype(float)
    features = ModelFeatures(RANKER, cv=2)
    told = features.fit_transform(X, y, weights, qid=qid)
    train, test = next(QueryKFold(2).split(X, groups=qid))
    model = clone(RANKER).fit(X[train], y[train], weights[train], qid=qid[train])
    np.testing.assert_array_equal(told[test, 4], model.predict(X[test]))
    expected = clone(RANKER).fit(X, y, weights, qid=qid)
    assert features.estimator_.ensemble_.digest() == expected.ensemble_.digest()
    assert features.fit(X, y, weights, qid=qid).estimator_.ensemble_.digest() == expected.ensemble_.digest()


@pytest.mark.parametrize("frozen", [False, True])
def test_a_fitted_model_is_used_as_it_is(rows, source, frozen):
    X, _, _ = rows
    model = clone(RANKER).fit(source[0], source[1], qid=source[2])
    features = ModelFeatures(FrozenEstimator(model) if frozen else model, cv="prefit", keep=False)
    expected = model.predict(X)[:, None]
    for fresh in (features, clone(features), clone(make_pipeline(features))):
        np.testing.assert_array_equal(fresh.fit(X).transform(X), expected)
        np.testing.assert_array_equal(fresh.fit_transform(X), expected)
    with pytest.raises(ValueError, match="3 features"):
        features.fit_transform(X[:, :3])


def test_whether_a_model_is_fitted_is_said(rows):
    """A pipeline fits its last step in place: what was meant to be cross-fitted may have seen its rows."""
    X, y, qid = rows
    model = clone(RANKER).fit(X, y, qid=qid)
    for fit in (ModelFeatures(model).fit, ModelFeatures(model).fit_transform):
        with pytest.raises(ValueError, match="is already fitted, but cv=5 would fit it again"):
            fit(X, y, qid=qid)
    for fit in (ModelFeatures(RANKER, cv="prefit").fit, ModelFeatures(RANKER, cv="prefit").fit_transform):
        with pytest.raises(NotFittedError, match="but LambdaMARTRanker is not: fit it"):
            fit(X, y, qid=qid)


def test_a_fitted_model_stays_so_in_a_search(rows, source):
    X, y, qid = rows
    model = clone(RANKER).fit(source[0], source[1], qid=source[2])
    labels = pd.Series(y, index=pd.Index(qid, name="qid"))
    pipeline = make_pipeline(ModelFeatures(model, cv="prefit", keep=False), clone(RANKER))
    search = GridSearchCV(pipeline, {"lambdamartranker__max_iter": [2]}, cv=QueryKFold(2)).fit(X, labels)
    assert search.best_estimator_[0].estimator_ is model


def test_a_failed_fit_leaves_everything_as_it_was(rows):
    X, y, qid = rows
    features = ModelFeatures(RANKER).fit(X, y, qid=qid)
    before = dict(vars(features))
    with pytest.raises(ValueError, match="y"):
        features.fit_transform(X[:, :2], np.full(len(y), np.nan), qid=qid)
    assert vars(features) == before


class Never(BaseEstimator):
    """A model that must not be trained."""

    def fit(self, X, y):
        raise AssertionError

    def predict(self, X):
        raise AssertionError


def test_a_name_that_is_taken_is_told_in_fit_and_before_training_where_it_can_be(rows):
    X, y, _ = rows
    frame = pd.DataFrame(X, columns=["a", "b", "c", "never_score"])
    taken = frame.set_axis(["a", "b", "c", "logisticregression_probability_1"], axis=1)
    probable = LogisticRegression()
    for features, X_taken in (
        (ModelFeatures(Never()), frame),
        (ModelFeatures(probable, add="probabilities"), taken),
        (ModelFeatures(clone(probable).fit(taken, y), add="probabilities", cv="prefit"), taken),
    ):
        for method in (features.fit, features.fit_transform):
            with pytest.raises(ValueError, match=f"'{X_taken.columns[3]}' is already the name"):
                method(X_taken, y)
            assert not hasattr(features, "n_features_in_")
    with pytest.raises(AssertionError):  # nothing is taken where no feature stays
        ModelFeatures(Never(), keep=False).fit(frame, y)


def test_rows_of_which_a_fitted_model_says_nothing_leave_everything_as_it_was(rows):
    X, y, _ = rows
    features = ModelFeatures(Ridge().fit(X, y), cv="prefit").fit(X)
    before = dict(vars(features))
    with pytest.raises(ValueError, match="X has 2 features, but Ridge is expecting 4"):
        features.fit_transform(X[:, :2])
    assert vars(features) == before


# ------------------------------------------------------------------------------------- features: what is said


def test_probabilities_and_their_sums(rows):
    X, y, qid = rows
    features = ModelFeatures(LogisticRegression(), add=("probabilities", "score", "cumulative"), keep=False)
    told = features.fit(X, y, qid=qid).transform(X)
    model = LogisticRegression().fit(X, y)
    np.testing.assert_allclose(told[:, :4], model.predict_proba(X))
    np.testing.assert_array_equal(told[:, 4], model.predict(X))
    np.testing.assert_allclose(told[:, 5:], model.predict_proba(X).cumsum(axis=1)[:, :3])
    prefix = "logisticregression"
    assert features.get_feature_names_out().tolist() == [
        *(f"{prefix}_probability_{label}" for label in range(4)),
        f"{prefix}_score",
        *(f"{prefix}_cumulative_{label}" for label in range(3)),
    ]


def test_a_class_that_a_fold_lacks_has_probability_zero():
    X, y, qid = make_rows(4)
    y = np.where(qid == "query 2", 1.0, np.where(y > 1, 2.0, 0.0))  # class 1 is in one query only
    features = ModelFeatures(LogisticRegression(), add="probabilities", keep=False, cv=4)
    told = features.fit_transform(X, y, qid=qid)
    assert told.shape == (40, 3)
    assert (told[qid == "query 2", 1] == 0).all()
    assert (told[qid != "query 2", 1] > 0).all()
    np.testing.assert_allclose(told.sum(axis=1), 1)


def test_names():
    X, y, _ = make_rows(5)
    frame = pd.DataFrame(X, columns=list("abcd"))
    twice = make_pipeline(ModelFeatures(Ridge()), ModelFeatures(Ridge(), prefix="second")).fit(frame, y)
    assert twice.get_feature_names_out().tolist() == [*"abcd", "ridge_score", "second_score"]
    with pytest.raises(ValueError, match="'ridge_score' is already the name"):
        make_pipeline(ModelFeatures(Ridge()), ModelFeatures(Ridge())).fit(frame, y)
    words = np.where(y > 1, "good", "bad")
    classes = ModelFeatures(LogisticRegression(), add="probabilities", keep=False).fit(X, words)
    assert classes.get_feature_names_out()[0] == "logisticregression_probability_bad"


@pytest.mark.parametrize("keep", [True, False])
def test_kinds_of_rows_stay_what_they_are(rows, keep):
    X, y, qid = rows
    features = ModelFeatures(RANKER, keep=keep)
    expected = features.fit_transform(X, y, qid=qid)
    names = [*"abcd", "lambdamartranker_score"] if keep else ["lambdamartranker_score"]
    for matrix in (sp.csr_array(X), sp.csr_matrix(X), sp.coo_array(X), sp.csc_matrix(X)):
        found = features.fit_transform(matrix, y, qid=qid)
        if keep:
            assert found.format == "csr"
            assert sp.issparse(features.transform(matrix))
            assert isinstance(found, sp.sparray) == isinstance(matrix, sp.sparray)
            found = found.toarray()
        np.testing.assert_array_equal(found, expected)
    frame = pd.DataFrame(X, columns=list("abcd"), index=pd.Index(qid, name="qid"))
    found = features.fit_transform(frame, y)  # the ids ride in the index
    np.testing.assert_array_equal(found.to_numpy(), expected)
    assert found.index.equals(frame.index)
    assert found.columns.tolist() == features.get_feature_names_out().tolist() == names
    for table in (pl.DataFrame(X, schema=list("abcd")), pa.table(dict(zip("abcd", X.T, strict=True)))):
        found = features.fit_transform(table, y, qid=qid)
        assert isinstance(found, type(table))
        np.testing.assert_array_equal(np.asarray(found.to_pandas()), expected)
        assert found.to_pandas().columns.tolist() == names
    found = features.fit_transform(X.tolist(), y.tolist(), qid=qid.tolist())
    np.testing.assert_array_equal(found, expected)
    narrow = features.fit_transform(X.astype(np.float32), y, qid=qid)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, expected, rtol=1e-6)
    assert isinstance(features.set_output(transform="polars").fit_transform(X, y, qid=qid), pl.DataFrame)
    found = features.set_output(transform="pandas").fit_transform(table, y, qid=qid)
    pd.testing.assert_frame_equal(found, pd.DataFrame(expected, columns=names))


def test_masked_entries_are_missing_values(rows, source):
    X, y, qid = rows
    masked, missing = np.ma.masked_greater(X, 1.0), np.where(X > 1.0, np.nan, X)
    found, expected = (ModelFeatures(FOREST).fit_transform(each, y, qid=qid) for each in (masked, missing))
    np.testing.assert_array_equal(found, expected)
    assert not isinstance(found, np.ma.MaskedArray)
    narrow = ModelFeatures(FOREST).fit_transform(masked.astype(np.float32), y, qid=qid)
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow[:, :4], expected[:, :4], rtol=1e-6)
    models = [
        WithSourceRows(RANKER, source[0], source[1], qid_source=source[2], classifier=LIKENESS).fit(
            each, y, qid=qid
        )
        for each in (masked, missing)
    ]
    assert models[0].estimator_.ensemble_ == models[1].estimator_.ensemble_


def test_category_columns_stay_categories(rows):
    X, y, qid = rows
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        site=pd.Categorical(np.where(X[:, 0] > 0, "en", "fr"))
    )
    pipeline = make_pipeline(ModelFeatures(RANKER), clone(RANKER))
    pipeline.fit(frame, pd.Series(y, index=pd.Index(qid, name="qid")))
    told = pipeline[0].transform(frame)
    assert told["site"].dtype == "category"
    assert pipeline[-1].feature_names_in_.tolist() == [*"abcd", "site", "lambdamartranker_score"]
    assert pipeline.predict(frame).shape == y.shape


# ---------------------------------------------------------------------------------- features: in a pipeline


@pytest.mark.parametrize(
    "inner", [FOREST, make_pipeline(StandardScaler(), FOREST)], ids=["plain", "pipeline"]
)
def test_in_front_of_a_ranker_ids_come_through_in_every_way(rows, inner):
    X, y, qid = rows
    pipeline = make_pipeline(ModelFeatures(inner), clone(RANKER))
    riding = pd.Series(y, index=pd.Index(qid, name="qid"))
    models = [
        clone(pipeline).fit(X, y, modelfeatures__qid=qid, lambdamartranker__qid=qid),
        clone(pipeline).fit(X, riding),
    ]
    with routed(True):
        models += [clone(pipeline).fit(X, y, qid=qid), clone(pipeline).fit(X, y, groups=qid)]
    told = np.empty(len(y))
    for train, test in QueryKFold(5).split(X, groups=qid):
        told[test] = clone(inner).fit(X[train], riding.iloc[train]).predict(X[test])
    expected = clone(RANKER).fit(np.column_stack([X, told]), y, qid=qid)
    assert {model[-1].ensemble_.digest() for model in models} == {expected.ensemble_.digest()}
    now = np.column_stack([X, clone(inner).fit(X, riding).predict(X)])
    for model in models:
        np.testing.assert_array_equal(model.predict(X), expected.predict(now))


@both_ways
def test_a_model_that_knows_no_queries(rows, routing):
    X, y, qid = rows
    with routed(routing):
        told = ModelFeatures(Ridge(), keep=False).fit_transform(X, y, qid=qid)
    for train, test in QueryKFold(5).split(X, groups=qid):
        np.testing.assert_allclose(told[test, 0], Ridge().fit(X[train], y[train]).predict(X[test]))


def test_without_pandas_a_model_inside_a_pipeline_says_that_it_has_no_ids(rows, monkeypatch):
    X, y, qid = rows
    real = builtins.__import__

    def without_pandas(name, *rest):
        if name == "pandas":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    ModelFeatures(Ridge()).fit(X, y, qid=qid)
    with pytest.warns(UserWarning, match="Pass qid="):
        ModelFeatures(make_pipeline(FOREST)).fit(X, y, qid=qid)


@both_ways
def test_search_over_the_inner_model(rows, routing):
    X, y, qid = rows
    pipeline = make_pipeline(ModelFeatures(FOREST, cv=2), clone(RANKER))
    grid = {"modelfeatures__estimator__n_estimators": [2], "modelfeatures__keep": [True, False]}
    labels = pd.Series(y, index=pd.Index(qid, name="qid"))
    with routed(routing):
        search = GridSearchCV(pipeline, grid, scoring=query_scorer(), cv=QueryKFold(2), error_score="raise")
        search.fit(X, y, groups=qid) if routing else search.fit(X, labels)
    for kept in (True, False):
        scores = []
        best = clone(pipeline).set_params(modelfeatures__estimator__n_estimators=2, modelfeatures__keep=kept)
        for train, test in QueryKFold(2).split(X, groups=qid):
            fitted = clone(best).fit(X[train], labels.iloc[train])
            scores.append(fitted[-1].score(fitted[0].transform(X[test]), y[test], qid=qid[test]))
        assert search.cv_results_["mean_test_score"][0 if kept else 1] == pytest.approx(np.mean(scores))


def test_on_some_columns_only(rows, source):
    """A model of other columns, chosen by name."""
    X, y, qid = rows
    model = clone(FOREST).fit(pd.DataFrame(source[0][:, :2], columns=["b", "c"]), source[1], qid=source[2])
    frame = pd.DataFrame(X, columns=list("abcd"))
    columns = make_column_transformer(
        ("passthrough", list("abcd")),
        (ModelFeatures(model, cv="prefit", keep=False), ["b", "c"]),
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    pipeline = make_pipeline(columns, clone(RANKER)).fit(frame, y, lambdamartranker__qid=qid)
    assert pipeline[-1].feature_names_in_.tolist() == [*"abcd", "randomforestranker_score"]


# ------------------------------------------------------------------------------------------ features: errors


class Pairs(BaseEstimator):
    """Predicts two numbers per row."""

    def fit(self, X, y):
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.zeros((len(X), 2))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (lambda: ModelFeatures(Ridge(), add=[]), r"add=\[\]; expected one or more of score"),
        (lambda: ModelFeatures(Ridge(), add=["score", "score"]), "each once"),
        (lambda: ModelFeatures(Ridge(), add=["scores"]), "each once"),
        (lambda: ModelFeatures(Ridge(), add="scores"), "The 'add' parameter"),
        (lambda: ModelFeatures(Ridge(), add="cumulative"), "Ridge has no predict_proba"),
        (lambda: ModelFeatures(Ridge(), cv=ShuffleSplit(2, random_state=0)), "exactly one test fold"),
        (lambda: ModelFeatures(Ridge(), cv=300), "300"),
        (lambda: ModelFeatures(Pairs()), r"Pairs.predict returned values of shape \(40, 2\)"),
        (lambda: ModelFeatures("ridge"), "The 'estimator' parameter"),
    ],
)
def test_refusals(rows, features, message):
    X, y, _ = rows
    with pytest.raises(ValueError, match=message):
        features().fit_transform(X, y)


def test_more_folds_than_queries(rows):
    X, y, qid = rows
    with pytest.raises(ValueError, match="larger than the number of queries, 20"):
        ModelFeatures(RANKER, cv=21).fit_transform(X, y, qid=qid)


# ------------------------------------------------------------------------------------------- choosing rows


def near_and_far(seed=0):
    """Source queries of which the even ones are like the target's."""
    rng = np.random.default_rng(seed)
    X_target = rng.normal(size=(150, 3))
    qid = np.repeat(np.arange(40), 10)
    X_source = rng.normal(size=(400, 3)) + np.where(qid % 2, 3.0, 0.0)[:, None]
    return X_source, X_target, qid


@pytest.mark.parametrize("classifier", [LIKENESS, LogisticRegression(class_weight="balanced")])
def test_rows_like_those_of_the_target_are_chosen(classifier):
    X_source, X_target, qid = near_and_far()
    rows, probabilities = select_source_rows(X_source, X_target, classifier=classifier)
    assert len(rows) == 200
    assert (np.diff(rows) > 0).all()
    assert (qid[rows] % 2 == 0).mean() > 0.95
    assert probabilities[rows].min() >= np.delete(probabilities, rows).max()
    rows, again = select_source_rows(
        X_source, X_target, qid_source=qid, unit="query", classifier=classifier, source_size=20
    )
    assert set(qid[rows]) == set(range(0, 40, 2))
    assert len(rows) == 200
    means = np.array([again[qid == query].mean() for query in range(40)])
    assert means[::2].min() > means[1::2].max()


def test_who_judges_a_row_has_not_seen_it():
    X_source, X_target, qid = near_and_far()
    _, probabilities = select_source_rows(X_source, X_target, qid_source=qid, classifier=LogisticRegression())
    for train, test in QueryKFold(5).split(X_source, groups=qid):
        X = np.concatenate([X_source[train], X_target])
        model = LogisticRegression().fit(X, np.repeat([0, 1], [len(train), len(X_target)]))
        np.testing.assert_array_equal(probabilities[test], model.predict_proba(X_source[test])[:, 1])


def test_the_default_does_not_care_how_large_the_sets_are():
    rng = np.random.default_rng(0)
    for n_source, n_target in ((200, 2000), (2000, 200)):
        X_source, X_target = rng.normal(size=(n_source, 2)), rng.normal(size=(n_target, 2))
        with threadpool_limits(1):
            _, probabilities = select_source_rows(X_source, X_target, cv=2, random_state=0)
        assert abs(probabilities.mean() - 0.5) < 0.1


class Undecided(ClassifierMixin, BaseEstimator):
    """Knows nothing."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.zeros(len(X))

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


def test_of_equals_the_first_are_chosen():
    X_source, X_target, qid = near_and_far()
    chosen = {"classifier": Undecided(), "source_size": 7}
    np.testing.assert_array_equal(select_source_rows(X_source, X_target, **chosen)[0], np.arange(7))
    rows, _ = select_source_rows(X_source, X_target, qid_source=qid, unit="query", **chosen)
    np.testing.assert_array_equal(rows, np.arange(70))
    assert len(select_source_rows(X_source, X_target, classifier=Undecided(), source_size=1.0)[0]) == 400
    assert len(select_source_rows(X_source, X_target, classifier=Undecided(), source_size=1e-9)[0]) == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"X_source": np.zeros((400, 2))}, "X_source has 2 features, but X_target has 3; expected the same"),
        (
            {"X_source": sp.csr_array(np.zeros((400, 3)))},
            "X_source is of kind sparse, X_target of kind array",
        ),
        ({"source_size": 401}, "source_size=401 is more than there are; expected at most 400"),
        ({"source_size": 41, "unit": "query"}, "at most 40, with unit='query'"),
        ({"source_size": 0.0}, "source_size"),
        ({"unit": "query", "qid_source": None}, "needs qid_source="),
        ({"unit": "page"}, "unit"),
        ({"qid_source": np.zeros(3)}, "qid_source has length 3"),
        ({"classifier": Ridge()}, r"classifier=Ridge\(\) gave .* expected probabilities"),
    ],
)
def test_refused_selections(changed, message):
    X_source, X_target, qid = near_and_far()
    given = {"X_source": X_source, "X_target": X_target, "qid_source": qid, "classifier": LIKENESS} | changed
    with pytest.raises(ValueError, match=message):
        select_source_rows(**given)


# --------------------------------------------------------------------------------------- learning from both


def joined(rows, source, chosen):
    """The rows of both sets by hand: every query has an id of its own."""
    (X, y, qid), (X_source, y_source, qid_source) = rows, source
    return (
        np.concatenate([X, X_source[chosen]]),
        np.concatenate([y, y_source[chosen]]),
        np.concatenate([np.char.add("target ", qid), np.char.add("source ", qid_source[chosen])]),
    )


@both_ways
@pytest.mark.parametrize("unit", ["row", "query"])
def test_fits_its_own_rows_and_the_chosen_ones(rows, source, unit, routing):
    X, y, qid = rows
    assert set(qid) <= set(source[2])  # the same ids, for other queries
    model = WithSourceRows(
        RANKER, source[0], source[1], qid_source=source[2], unit=unit, source_size=9, classifier=LIKENESS
    )
    with routed(routing):
        model.fit(X, y, qid=qid)
    chosen, probabilities = select_source_rows(
        source[0], X, qid_source=source[2], unit=unit, source_size=9, classifier=LIKENESS
    )
    np.testing.assert_array_equal(model.source_rows_, chosen)
    np.testing.assert_array_equal(model.source_probabilities_, probabilities)
    X_both, y_both, qid_both = joined(rows, source, chosen)
    expected = clone(RANKER).fit(X_both, y_both, qid=qid_both)
    assert model.estimator_.ensemble_.digest() == expected.ensemble_.digest()
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert model.score(X, y, qid=qid) == expected.score(X, y, qid=qid)


def test_names_of_queries_do_not_matter(rows, source):
    X, y, qid = rows
    other = np.unique(source[2], return_inverse=True)[1] + 1000
    digests = {
        WithSourceRows(RANKER, source[0], source[1], qid_source=ids, classifier=LIKENESS)
        .fit(X, y, qid=qid)
        .estimator_.ensemble_.digest()
        for ids in (source[2], other, list(map(str, other)))
    }
    assert len(digests) == 1


def test_clones_share_the_source(rows, source):
    model = WithSourceRows(RANKER, source[0], list(source[1]), qid_source=source[2], classifier=LIKENESS)
    twin = clone(model)
    assert twin.estimator is not model.estimator
    for name in ("X_source", "y_source", "qid_source"):
        assert getattr(twin, name) is getattr(model, name)
    assert twin.get_params().keys() == model.get_params().keys()


def test_a_frozen_estimator_is_refused(rows):
    X, y, qid = rows
    model = WithSourceRows(FrozenEstimator(clone(RANKER).fit(X, y, qid=qid)))
    with pytest.raises(ValueError, match="is frozen and does not learn from"):
        model.fit(X, y, qid=qid)
    assert not hasattr(model, "estimator_")


def test_without_a_source_it_is_the_estimator(rows):
    X, y, qid = rows
    model = WithSourceRows(RANKER).fit(X, y, qid=qid)
    assert model.estimator_.ensemble_.digest() == clone(RANKER).fit(X, y, qid=qid).ensemble_.digest()
    assert len(model.source_rows_) == 0


@pytest.mark.parametrize("source_weight", [1.0, 0.25, "probability"])
@pytest.mark.parametrize("weighted", [False, True])
def test_weights_of_source_rows(rows, source, source_weight, weighted):
    X, y, qid = rows
    weights = np.random.default_rng(0).integers(1, 5, len(y)).astype(float) if weighted else None
    model = WithSourceRows(
        RANKER, source[0], source[1], qid_source=source[2], source_weight=source_weight, classifier=LIKENESS
    ).fit(X, y, weights, qid=qid)
    X_both, y_both, qid_both = joined(rows, source, model.source_rows_)
    own = np.ones(len(y)) if weights is None else weights
    added = (
        model.source_probabilities_[model.source_rows_]
        if source_weight == "probability"
        else np.full(len(model.source_rows_), source_weight)
    )
    expected = clone(RANKER).fit(X_both, y_both, np.concatenate([own, added]), qid=qid_both)
    assert model.estimator_.ensemble_.digest() == expected.ensemble_.digest()


@both_ways
def test_a_pipeline_goes_inside(rows, source, routing):
    X, y, qid = rows
    first = clone(FOREST).fit(source[0], source[1], qid=source[2])
    pipeline = make_pipeline(
        StandardScaler(), ModelFeatures(first, cv="prefit"), ModelFeatures(Ridge(), cv=3), RANKER
    )
    model = WithSourceRows(pipeline, source[0], source[1], qid_source=source[2], classifier=LIKENESS)
    labels = pd.Series(y, index=pd.Index(qid, name="qid"))
    with routed(routing):
        model.fit(X, y, qid=qid)
        assert model.score(X, y, qid=qid) == model.score(X, labels)
    X_both, y_both, qid_both = joined(rows, source, model.source_rows_)
    riding = pd.Series(y_both, index=pd.Index(qid_both, name="qid"))
    expected = clone(pipeline).fit(X_both, riding)
    assert model.estimator_[-1].ensemble_.digest() == expected[-1].ensemble_.digest()
    assert model.estimator_[1].estimator_ is first
    assert clone(RANKER).fit(X, labels).ensemble_.digest() != expected[-1].ensemble_.digest()


@both_ways
def test_cross_validation_cuts_target_rows_only(rows, source, routing):
    X, y, qid = rows
    model = WithSourceRows(RANKER, source[0], source[1], qid_source=source[2], classifier=LIKENESS)
    labels = pd.Series(y, index=pd.Index(qid, name="qid"))
    with routed(routing):
        given = (X, y) if routing else (X, labels)
        scores = cross_val_score(
            model, *given, cv=QueryKFold(2), params={"groups": qid} if routing else None, error_score="raise"
        )
    for score, (train, test) in zip(scores, QueryKFold(2).split(X, groups=qid), strict=True):
        fitted = clone(model).fit(X[train], y[train], qid=qid[train])
        assert score == fitted.score(X[test], y[test], qid=qid[test])


def test_kinds_of_rows_of_both_sets(rows, source):
    X, y, qid = rows
    digests = set()
    for form in (
        np.asarray,
        sp.csr_array,
        sp.csc_matrix,
        lambda X: pd.DataFrame(X, columns=list("abcd")),
        lambda X: pl.DataFrame(X, schema=list("abcd")),
        lambda X: pa.table(dict(zip("abcd", X.T, strict=True))),
        np.ndarray.tolist,
    ):
        model = WithSourceRows(RANKER, form(source[0]), source[1], qid_source=source[2], classifier=LIKENESS)
        digests.add(nameless(model.fit(form(X), y, qid=qid).estimator_.ensemble_).digest())
    frames = [
        pd.DataFrame(given[0], columns=list("abcd"), index=pd.Index(given[2], name="qid"))
        for given in (rows, source)
    ]
    riding = WithSourceRows(RANKER, frames[1], source[1], classifier=LIKENESS).fit(frames[0], y)
    digests.add(nameless(riding.estimator_.ensemble_).digest())
    assert len(digests) == 1


LEVELS = {
    "pandas": (pd.Categorical, pd.Categorical),
    "pandas, of two dtypes": (
        lambda site: pd.Categorical(pd.Series(site, dtype=object)),
        lambda site: pd.Categorical(pd.Series(site, dtype="string")),
    ),
    "Categorical": (lambda site: pl.Series(site, dtype=pl.Categorical),) * 2,
    "Enum": (lambda site: pl.Series(site, dtype=pl.Enum(np.unique(site).tolist())),) * 2,
    "Enum and Categorical": (
        lambda site: pl.Series(site, dtype=pl.Enum(["fr", "en"])),
        lambda site: pl.Series(site, dtype=pl.Categorical),
    ),
    "Arrow": (lambda site: pa.array(site).dictionary_encode(),) * 2,
}


def with_site(X, site):
    """A frame of the library that the column ``site`` is of."""
    columns = dict(zip("abcd", X.T, strict=False)) | {"site": site}
    if isinstance(site, pl.Series):
        return pl.DataFrame(columns)
    return pa.table(columns) if isinstance(site, pa.Array) else pd.DataFrame(columns)


@pytest.mark.parametrize("kind", LEVELS)
def test_levels_of_categories_are_matched_by_name(rows, source, kind):
    sites = [
        np.array(levels)[(X[:, 0] > 0).astype(int)]
        for X, levels in ((rows[0], ["fr", "en"]), (source[0], ["de", "en"]))
    ]
    target, other = (
        with_site(given[0], as_category(site.tolist()))
        for given, as_category, site in zip((rows, source), LEVELS[kind], sites, strict=True)
    )
    model = WithSourceRows(
        RANKER, other, source[1], qid_source=source[2], source_size=1.0, classifier=LIKENESS
    )
    model.fit(target, rows[1], qid=rows[2])
    X, y, qid = joined(rows, source, model.source_rows_)
    expected = pd.DataFrame(X, columns=list("abcd")).assign(site=pd.Categorical(np.concatenate(sites)))
    expected = clone(RANKER).fit(expected, y, qid=qid)
    assert model.estimator_.ensemble_.digest() == expected.ensemble_.digest()
    assert (
        model.predict(target).tolist()
        == expected.predict(with_site(rows[0], pd.Categorical(sites[0]))).tolist()
    )


def test_ordered_categories_keep_their_order(rows, source):
    dtype = pd.CategoricalDtype(["uk", "en", "de"], ordered=True)
    ours, theirs = (
        with_site(X, pd.Categorical(np.where(X[:, 0] > 0, "de", "uk"), dtype=dtype))
        for X in (rows[0], source[0])
    )
    assert stacked(ours, theirs)["site"].dtype == dtype
    model = WithSourceRows(RANKER, theirs, source[1], qid_source=source[2], classifier=LIKENESS)
    model.fit(ours, rows[1], qid=rows[2])
    assert model.estimator_._category_levels == {4: ("uk", "en", "de")}
    for ordered, seen in ((False, "a category"), (True, r"an ordered category \('en', 'uk', 'de'\)")):
        other = theirs.astype({"site": pd.CategoricalDtype(["en", "uk", "de"], ordered)})
        with pytest.raises(ValueError, match=rf"is {seen} .* an ordered category \('uk', 'en', 'de'\)"):
            select_source_rows(other, ours, classifier=LIKENESS)


def test_levels_may_be_few_or_none_and_numbers_of_any_dtype():
    X_source, X_target, _ = near_and_far()
    n_source, n_target = len(X_source), len(X_target)
    for theirs, ours in (
        (pd.Categorical([None] * n_source), pd.Categorical(["en"] * n_target)),
        (pd.Categorical([1, 2] * (n_source // 2)), pd.Categorical([1.0] * n_target)),
        (pd.Categorical([1, "en"] * (n_source // 2)), pd.Categorical(["en"] * n_target)),
        (pl.Series([None] * n_source), pl.Series(["en"] * n_target, dtype=pl.Enum(["en"]))),
    ):
        rows, _ = select_source_rows(
            with_site(X_source, theirs), with_site(X_target, ours), classifier=LIKENESS
        )
        assert len(rows) == n_source // 2


@pytest.mark.parametrize(
    ("theirs", "ours", "seen"),
    [
        (
            pd.Categorical,
            lambda site: pd.Categorical([1] * len(site)),
            "of str in X_source, .* of number in X",
        ),
        (pd.Categorical, lambda site: np.ones(len(site)), "of str in X_source, of dtype float64 in X"),
        (lambda site: pd.Categorical([1] * len(site)), lambda site: np.ones(len(site)), "of number in X_sou"),
        (pl.Series, lambda site: pl.Series(site, dtype=pl.Categorical), "of dtype String in X_source, a cat"),
        (
            lambda site: pl.Series(site, dtype=pl.Enum(["en"])),
            lambda site: pl.Series([1] * len(site)),
            "Int64",
        ),
        (lambda site: pa.array(site).dictionary_encode(), pa.array, "a category of str in .*of dtype string"),
    ],
)
def test_categories_of_another_kind_are_refused(theirs, ours, seen):
    X_source, X_target, _ = near_and_far()
    X_source = with_site(X_source, theirs(["en"] * len(X_source)))
    X_target = with_site(X_target, ours(["en"] * len(X_target)))
    with pytest.raises(ValueError, match=f"column 'site' is .*{seen}"):
        select_source_rows(X_source, X_target, classifier=LIKENESS)


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (pa.array([True, False] * 6).dictionary_encode(), pa.array([1, 0] * 6).dictionary_encode()),
        (pa.array([1, 2] * 6), pa.array(["en", "fr"] * 6)),
    ],
    ids=["categories", "numbers and words"],
)
def test_arrow_types_that_do_not_go_together_are_refused(theirs, ours):
    X_source, X_target = (with_site(np.zeros((12, 4)), site) for site in (theirs, ours))
    with pytest.raises(ValueError, match=r"X_source and X_target have columns .* site .* expected the same"):
        select_source_rows(X_source, X_target, classifier=LIKENESS)


def test_a_classifier_inside(rows, source):
    X, y, _ = rows
    model = WithSourceRows(LogisticRegression(), source[0], source[1], classifier=LIKENESS).fit(X, y)
    assert sklearn.base.is_classifier(model)
    assert not hasattr(WithSourceRows(Ridge()), "predict_proba")
    np.testing.assert_array_equal(model.classes_, [0, 1, 2, 3])
    assert model.predict_proba(X).shape == (len(y), 4)


def test_parameters_of_fit_reach_the_estimator(rows, source):
    X, y, qid = rows
    model = WithSourceRows(RANKER, source[0], source[1], qid_source=source[2], classifier=LIKENESS)
    model.fit(X, y, qid=qid, X_val=X, y_val=y, qid_val=qid)
    assert len(model.estimator_.validation_score_) == 4


def test_columns_of_labels_are_warned_of_and_taken_as_labels(rows, source):
    X, y, qid = rows
    fitted = []
    for turned in (np.ravel, np.atleast_2d):
        labels, labels_source = (turned(values).T for values in (y, source[1]))
        model = WithSourceRows(RANKER, source[0], labels_source, qid_source=source[2], classifier=LIKENESS)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted.append(model.fit(X, labels, qid=qid).estimator_.ensemble_.digest())
        assert {each.category for each in caught} <= {DataConversionWarning}
    assert all(
        name in str(each.message) for name, each in zip(("of y ", "of y_source "), caught, strict=True)
    )
    assert fitted[0] == fitted[1]
    with pytest.warns(DataConversionWarning, match="of y ") as caught:
        model = WithSourceRows(RANKER).fit(X, y[:, None], qid=qid)
    assert len(caught) == 1
    assert model.estimator_.ensemble_.digest() == clone(RANKER).fit(X, y, qid=qid).ensemble_.digest()


@pytest.mark.parametrize("with_source", [False, True])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"y": np.zeros((200, 2))}, r"y should be a 1d array, got an array of shape \(200, 2\) instead"),
        ({"y": np.zeros(7)}, "y has length 7 but X has 200 rows"),
        (
            {"sample_weight": np.ones((200, 2))},
            r"sample_weight has shape \(200, 2\); expected one weight per",
        ),
    ],
)
def test_labels_and_weights_are_one_for_each_row_with_and_without_a_source(
    rows, source, with_source, given, message
):
    X, y, qid = rows
    ridge = WithSourceRows(Ridge())  # which would learn labels of several columns
    if with_source:
        ridge.set_params(X_source=source[0], y_source=source[1], qid_source=source[2], classifier=LIKENESS)
    with pytest.raises(ValueError, match=message):
        ridge.fit(X, **({"y": y, "qid": qid} | given))


@pytest.mark.parametrize("name", ["y", "sample_weight", "qid", "groups", "y_source", "qid_source"])
def test_an_index_in_another_order_is_warned_of(rows, source, name):
    (X, y, qid), (X_source, y_source, qid_source) = rows, source
    given = {"y": y, "sample_weight": np.ones(len(y)), "groups" if name == "groups" else "qid": qid}
    sources = {"y_source": y_source, "qid_source": qid_source}
    of, values = ("X_source", sources) if name in sources else ("X", given)
    frames = {"X": pd.DataFrame(X), "X_source": pd.DataFrame(X_source)}
    for step in (1, -1):
        values[name] = pd.Series(np.asarray(values[name]), frames[of].index[::step])
        model = WithSourceRows(RANKER, frames["X_source"], **sources, classifier=LIKENESS)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(frames["X"], **given)
        doubts = [str(each.message) for each in caught if each.category is FitWarning]
        assert [f"the index of {name} is that of {of} in another order" in doubt for doubt in doubts] == (
            [] if step == 1 else [True]
        )


@both_ways
def test_sizes_of_queries_will_do(rows, source, routing):
    X, y, qid = (of[np.argsort(rows[2], kind="stable")] for of in rows)
    frame = WithSourceRows(RANKER, source[0], source[1], qid_source=source[2], classifier=LIKENESS)
    with routed(routing):
        by_size, by_id = (clone(frame).fit(X, y, **ids) for ids in ({"group": [10] * 20}, {"qid": qid}))
        assert by_size.estimator_.ensemble_.digest() == by_id.estimator_.ensemble_.digest()
        features = ModelFeatures(RANKER, cv=2)
        told = features.fit_transform(X, y, group=[10] * 20)
        np.testing.assert_array_equal(told, features.fit_transform(X, y, qid=qid))
        np.testing.assert_array_equal(features.fit(X, y, group=[10] * 20).transform(X), features.transform(X))
    with pytest.raises(ValueError, match="group sums to 70; expected the sizes of the queries"):
        features.fit(X, y, group=[10] * 7)
    with pytest.raises(ValueError, match="qid and group disagree"):
        frame.fit(X, y, qid=qid, group=[5] * 40)


def test_the_best_rows_are_those_of_the_estimator(rows, source):
    X, y, qid = rows
    for estimator in (RANKER, LogisticRegression()):
        labels, labels_source = (values if estimator is RANKER else values > 1 for values in (y, source[1]))
        model = WithSourceRows(
            estimator, source[0], labels_source, qid_source=source[2], classifier=LIKENESS
        ).fit(X, labels, qid=qid)
        inside = model.estimator_
        scores = inside.predict(X) if estimator is RANKER else inside.predict_proba(X)[:, 1]
        pd.testing.assert_frame_equal(model.rank(X, qid=qid, k=2), best_rows(scores, qid=qid, k=2))
    with pytest.raises(NotFittedError):
        WithSourceRows(RANKER).rank(X, qid=qid)


def test_what_has_no_score_says_so(rows):
    X, y, qid = rows
    model = WithSourceRows(lightgbm.LGBMRanker(n_estimators=2, verbose=-1, n_jobs=1)).fit(X, y, qid=qid)
    assert not hasattr(model, "score")
    with pytest.raises(AttributeError) as caught:
        model.score(X, y, qid=qid)
    assert "LGBMRanker has no score method; expected an estimator that has one" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("changed", "given", "message"),
    [
        ({"qid_source": None}, {}, "The rows of X_source have no query ids, but those of the target set do"),
        ({}, {"qid": None}, "The rows of X have no query ids, but those of the source set do"),
        ({"y_source": None}, {}, "y_source is None"),
        ({"y_source": np.zeros(7)}, {}, "y_source has length 7 but X_source has 300 rows"),
        ({"y_source": np.zeros((300, 2))}, {}, "y_source should be a 1d array"),
        ({"X_source": np.zeros((300, 3))}, {}, "X_source has 3 features, but X has 4; expected the same"),
        ({"X_source": np.zeros(300)}, {}, "X_source does not match X: .* 2D array, got 1D"),
        ({}, {"sample_weight": 1.0}, r"sample_weight has shape \(\); expected one weight per row"),
        ({}, {"sample_weight": np.ones(3)}, r"sample_weight has shape \(3,\); expected one weight per row"),
        ({}, {"sample_weight": np.ones(20)}, "one weight for each of the 20 queries"),
        ({"X_source": pd.DataFrame(np.zeros((300, 4)))}, {}, "X_source is of kind pandas, X of kind array"),
        ({"source_weight": -1.0}, {}, "source_weight"),
    ],
)
def test_refused_sources(rows, source, changed, given, message):
    X, y, qid = rows
    sources = {"X_source": source[0], "y_source": source[1], "qid_source": source[2]} | changed
    model = WithSourceRows(RANKER, **sources, classifier=LIKENESS)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, **({"qid": qid} | given))
    assert not hasattr(model, "estimator_")
