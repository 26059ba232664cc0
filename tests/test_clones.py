"""Clones of any estimator get the queries and weights that they accept, and predict rows new to them."""

import catboost
import lightgbm
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
import xgboost
from interleaved import N_DOCUMENTS, N_QUERIES, data
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import VotingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from ranktrees import BlendRanker, LambdaMARTRanker, ModelFeatures, OrdinalRanker, QueryKFold, WithSourceRows
from ranktrees.evaluation.clones import fitted_clone, folds_of_rows, predict_out_of_fold
from ranktrees.evaluation.predictions import scores_by
from ranktrees.rows import find_query_of_rows


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, pd.DataFrame])
def test_out_of_fold_each_row_is_told_by_the_model_of_the_other_folds(kind, n_jobs):
    X, y, qid = data()
    weights = np.random.default_rng(0).uniform(1, 2, len(y))
    queries = np.unique(qid, return_inverse=True)[1]
    folds = folds_of_rows(QueryKFold(3, shuffle=True, random_state=0), X, y, queries, stratify=False)[::-1]
    says = [(LinearRegression(), scores_by, weights), (LinearRegression(fit_intercept=False), twice, None)]
    told, told_twice = predict_out_of_fold(says, kind(X), y, queries, folds, n_jobs)
    for train, test in folds:
        one, other = (
            clone(model).fit(X[train], y[train], None if given is None else given[train])
            for model, _, given in says
        )
        assert_allclose(told[test], one.predict(X[test]))
        assert_allclose(told_twice[test], twice(other, X[test]))


CATBOOST = {"iterations": 5, "verbose": False, "allow_writing_files": False, "thread_count": 1}
RANKERS_OF_OTHERS = {
    "qid": xgboost.XGBRanker(n_estimators=3, n_jobs=1),
    "group": lightgbm.LGBMRanker(n_estimators=3, min_child_samples=2, verbose=-1, n_jobs=1, random_state=0),
    "group_id": catboost.CatBoostRanker(random_seed=0, **CATBOOST),
}


@pytest.mark.parametrize("name", RANKERS_OF_OTHERS)
def test_rankers_of_other_libraries_get_queries_as_they_take_them(name):
    X, y, qid = data()
    ranker = RANKERS_OF_OTHERS[name]

    def fitted_by_hand(queries):
        order = np.argsort(queries, kind="stable")
        ids = [N_DOCUMENTS] * N_QUERIES if name == "group" else queries[order]
        return clone(ranker).fit(X[order], y[order], **{name: ids}).predict(X)

    _, queries = np.unique(qid, return_inverse=True)  # as in a fold, not numbered by first appearance
    assert_array_equal(fitted_clone(ranker, X, y, None, queries).predict(X), fitted_by_hand(queries))
    expected = fitted_by_hand(find_query_of_rows(len(y), {"qid": qid}, {}))
    assert len(set(expected)) > 1
    for around in (BlendRanker([("theirs", ranker)], cv="train"), WithSourceRows(ranker)):
        assert_array_equal(around.fit(X, y, qid=qid).predict(X), expected)
    features = ModelFeatures(ranker, keep=False, cv=2).fit(X, y, qid=qid)
    assert_array_equal(features.transform(X)[:, 0], expected)


@pytest.mark.parametrize("routing", [False, True])
@pytest.mark.parametrize("name", RANKERS_OF_OTHERS)
def test_rankers_of_other_libraries_get_queries_at_the_end_of_pipelines(name, routing):
    X, y, qid = data()
    ranker = RANKERS_OF_OTHERS[name]
    scaled = make_pipeline(MinMaxScaler(), ranker)
    nested = make_pipeline(ModelFeatures(LambdaMARTRanker(max_iter=2), keep=False), make_pipeline(ranker))
    with sklearn.config_context(enable_metadata_routing=routing):
        if routing and not hasattr(ranker, "set_fit_request"):
            with pytest.raises(
                ValueError, match=f"Pipeline does not pass query ids on to the {type(ranker).__name__} inside"
            ):
                BlendRanker([("theirs", scaled)], cv="train").fit(X, y, qid=qid)
            return
        X_scaled, queries = MinMaxScaler().fit_transform(X), find_query_of_rows(len(y), {"qid": qid}, {})
        expected = fitted_clone(ranker, X_scaled, y, None, queries).predict(X_scaled)
        assert len(set(expected)) > 1
        for around in (BlendRanker([("theirs", scaled)], cv="train"), WithSourceRows(scaled)):
            assert_allclose(around.fit(X, y, qid=qid).predict(X), expected)
        features = ModelFeatures(nested, cv=2, keep=False).fit(X, y, qid=qid)
        assert features.estimator_[0].estimator_._qid_given
        assert features.fit_transform(X, y, qid=qid).shape == (len(y), 1)
        assert BlendRanker([("theirs", scaled)]).fit(X, y, qid=qid).weights_ == [1.0]


@pytest.mark.parametrize("name", RANKERS_OF_OTHERS)
def test_rankers_of_other_libraries_that_get_no_queries_are_refused(name):
    X, y, qid = data()
    ranker = RANKERS_OF_OTHERS[name]
    search = GridSearchCV(make_pipeline(ranker), {}, cv=2)
    for outer in (search, TransformedTargetRegressor(ranker), make_pipeline(search)):
        message = (
            f"{type(outer).__name__} does not pass query ids on to the {type(ranker).__name__} inside it"
        )
        for around in (BlendRanker([("theirs", outer)]), ModelFeatures(outer), WithSourceRows(outer)):
            with pytest.raises(ValueError, match=message):
                around.fit(X, y, qid=qid)


def test_rankers_of_other_libraries_get_queries_whatever_the_routing():
    X, y, qid = data()
    told = []
    for routing in (False, True):
        with sklearn.config_context(enable_metadata_routing=routing):
            blend = BlendRanker(list(RANKERS_OF_OTHERS.items()), cv="train").fit(X, y, qid=qid)
            told.append(blend.predict(X))
    assert_array_equal(*told)


@pytest.mark.parametrize("name", RANKERS_OF_OTHERS)
def test_rankers_of_other_libraries_get_weights_as_they_take_them(name):
    """Of XGBoost's each query has one, the mean of its rows'."""
    X, y, qid = data()
    _, queries = np.unique(qid, return_inverse=True)
    of_queries = 1.0 + np.arange(N_QUERIES) % 3
    order = np.argsort(queries, kind="stable")
    ids = [N_DOCUMENTS] * N_QUERIES if name == "group" else queries[order]
    weights = of_queries if name == "qid" else of_queries[queries[order]]
    expected = clone(RANKERS_OF_OTHERS[name]).fit(X[order], y[order], sample_weight=weights, **{name: ids})
    fitted = fitted_clone(RANKERS_OF_OTHERS[name], X, y, of_queries[queries], queries)
    assert_array_equal(fitted.predict(X), expected.predict(X))


@pytest.mark.parametrize("routing", [False, True])
def test_weights_are_refused_by_name_where_nobody_takes_them(routing):
    X, y, qid = data()
    neighbours, weights = KNeighborsRegressor(), np.ones(len(y))
    with sklearn.config_context(enable_metadata_routing=routing):
        for estimator in (
            BlendRanker([("neighbours", neighbours)], cv=2),
            ModelFeatures(neighbours, cv=2),
            WithSourceRows(neighbours),
            LambdaMARTRanker(max_iter=2, init=neighbours),
        ):
            message = "sample_weight is given, but the fit of KNeighborsRegressor takes no weights; expected"
            with pytest.raises(ValueError, match=message):
                estimator.fit(X, y, weights, qid=qid)
        source = {"X_source": X, "y_source": y, "qid_source": qid, "source_weight": 0.5}
        with pytest.raises(ValueError, match="source_weight is given, but the fit of KNeighborsRegressor"):
            WithSourceRows(neighbours, **source).fit(X, y, qid=qid)


@pytest.mark.parametrize(
    "around",
    [
        lambda model: GridSearchCV(model, {}, cv=2),
        TransformedTargetRegressor,
        lambda model: VotingRegressor([("one", model)]),
        lambda model: GridSearchCV(TransformedTargetRegressor(model), {}, cv=2),
    ],
)
def test_weights_go_through_what_hands_them_on(around):
    """A model without weights is refused by its name, not in the middle of a search."""
    X, y, qid = data()
    weights = np.random.default_rng(0).uniform(size=len(y))
    expected = clone(around(LinearRegression())).fit(X, y, sample_weight=weights).predict(X)
    assert_allclose(expected, LinearRegression().fit(X, y, weights).predict(X))
    model = around(LinearRegression())
    blend = BlendRanker([("line", model)], cv="train").fit(X, y, weights, qid=qid)
    assert_allclose(blend.predict(X), expected)
    ordinal = OrdinalRanker(model).fit(X, y, weights, qid=qid)
    event = clone(model).fit(X, y <= ordinal.classes_[0], sample_weight=weights)
    assert_allclose(ordinal.estimators_[0].predict(X), event.predict(X))
    message = (
        "sample_weight is given, but the fit of {} takes no weights; expected an estimator that takes them"
    )
    for inside in (KNeighborsRegressor(), make_pipeline(LinearRegression())):
        for outer in (BlendRanker([("one", around(inside))]), OrdinalRanker(around(inside))):
            with pytest.raises(ValueError, match=message.format(type(inside).__name__)):
                outer.fit(X, y, weights, qid=qid)


def twice(model, rows):
    return np.column_stack([scores_by(model, rows)] * 2)
