"""What scikit-learn's tests of metadata routing take for granted, of every estimator that takes metadata."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.metadata_routing import get_routing_for_object

from ranktrees import (
    AveragedRanker,
    BlendRanker,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    OrdinalRanker,
    QueryKFold,
    RandomForestRanker,
    make_ranking,
    query_scorer,
)

X, Y, QID = make_ranking(12, rows_per_query=15, n_features=4, random_state=0, return_X_y_qid=True)
WEIGHT = 1.0 + np.arange(len(Y)) % 2
SMALL = {"max_iter": 3, "random_state": 0, "n_jobs": 1}
ESTIMATORS = [
    LambdaMARTRanker(**SMALL),
    HistGBRTRegressor(**SMALL),
    HistGBRTClassifier(**SMALL),
    RandomForestRanker(3, random_state=0),
    AveragedRanker("fast", **SMALL),
    OrdinalRanker(HistGBRTClassifier(**SMALL)),
    BlendRanker([("one", HistGBRTRegressor(**SMALL))], cv=QueryKFold(3)),
]


@pytest.fixture(autouse=True)
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_a_request_is_kept_in_copies_and_can_be_taken_back(estimator):
    asked = clone(estimator).set_fit_request(sample_weight=True)
    for one in (asked, clone(asked)):
        assert requests(one)["sample_weight"] is True
    assert requests(estimator).get("sample_weight") is not True
    assert requests(asked.set_fit_request(sample_weight=False))["sample_weight"] is False


def requests(estimator):
    found = get_routing_for_object(estimator)
    found = getattr(found, "_self_request", found)  # of those that are routers themselves
    return found.fit.requests


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_queries_are_asked_for_without_a_request(estimator):
    assert requests(estimator)["qid"] is True


@pytest.mark.parametrize("estimator", ESTIMATORS[:5], ids=lambda one: type(one).__name__)
def test_weights_reach_an_estimator_in_a_pipeline_if_it_asks_for_them(estimator):
    asked = clone(estimator).set_fit_request(sample_weight=True)
    alone = clone(asked).fit(X, Y, WEIGHT, qid=QID)
    within = make_pipeline("passthrough", clone(asked)).fit(X, Y, sample_weight=WEIGHT, qid=QID)
    np.testing.assert_array_equal(within.predict(X), alone.predict(X))
    without = make_pipeline("passthrough", clone(estimator).set_fit_request(sample_weight=False))
    np.testing.assert_array_equal(
        without.fit(X, Y, qid=QID).predict(X), clone(estimator).fit(X, Y, qid=QID).predict(X)
    )


@pytest.mark.parametrize("estimator", ESTIMATORS[:5], ids=lambda one: type(one).__name__)
def test_weights_that_nobody_has_decided_on_are_refused(estimator):
    scaled = make_pipeline(StandardScaler().set_fit_request(sample_weight=True), clone(estimator))
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        scaled.fit(X, Y, sample_weight=WEIGHT, qid=QID)


def test_searches_hand_weights_to_the_fit_and_not_to_the_score():
    model = (
        LambdaMARTRanker(**SMALL).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
    )
    search = GridSearchCV(model, {"max_leaf_nodes": [4]}, cv=QueryKFold(3)).fit(
        X, Y, sample_weight=WEIGHT, qid=QID
    )
    alone = clone(model).set_params(max_leaf_nodes=4).fit(X, Y, WEIGHT, qid=QID)
    assert search.best_estimator_.ensemble_ == alone.ensemble_


def test_cross_validation_scores_each_part_by_its_queries():
    found = cross_validate(
        LambdaMARTRanker(**SMALL),
        X,
        Y,
        cv=QueryKFold(3),
        scoring=query_scorer("ndcg@5"),
        params={"qid": QID},
        return_estimator=True,
        return_indices=True,
    )
    for model, rows, score in zip(
        found["estimator"], found["indices"]["test"], found["test_score"], strict=True
    ):
        assert query_scorer("ndcg@5")(model, X[rows], Y[rows], qid=QID[rows]) == score
        assert not set(QID[rows]) & set(np.delete(QID, rows))
