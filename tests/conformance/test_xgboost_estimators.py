"""What the tests of XGBoost's scikit-learn estimators take for granted."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import xgboost
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ranktrees import (
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    RandomForestRanker,
    make_ranking,
)
from ranktrees.measures import NDCG

X, Y, QID = make_ranking(30, rows_per_query=20, n_features=5, random_state=0, return_X_y_qid=True)
X = np.round(X, 1)
WORDS = np.array([f"query {q}" for q in QID])
RULES = {"max_iter": 6, "max_leaf_nodes": 7, "random_state": 0, "n_jobs": 1}
PLAIN = {"gradient_sampling": None, "max_features": 1.0}
ESTIMATORS = [LambdaMARTRanker, HistGBRTRegressor, HistGBRTClassifier]
SHUFFLED = np.random.default_rng(0).permutation(len(Y))


@pytest.fixture(params=ESTIMATORS)
def model(request):
    return request.param(**RULES).fit(X, Y, qid=QID)


def digests(model):
    return [ensemble.digest() for ensemble in model._ensembles]


# ---------------------------------------------------------------------------------- the same trees as XGBoost


@pytest.mark.parametrize(
    ("loss", "objective"),
    [("squared_error", "reg:squarederror"), ("logistic", "reg:logistic"), ("gamma", "reg:gamma")],
)
def test_trees_of_the_exact_search_are_those_of_xgboost(loss, objective):
    y = {"squared_error": Y, "logistic": (Y > 1).astype(float), "gamma": 1.0 + Y}[loss]
    ours = HistGBRTRegressor(
        loss,
        max_depth=3,
        max_leaf_nodes=None,
        min_samples_leaf=1,
        max_iter=4,
        learning_rate=0.3,
        init=0.1,
        **PLAIN,
    )
    ours.set_params(l2_regularization=1.0, split_search="exact", random_state=0).fit(X, y)
    start = {"squared_error": 0.1, "logistic": 1 / (1 + np.exp(-0.1)), "gamma": np.exp(0.1)}[loss]
    theirs = xgboost.XGBRegressor(
        objective=objective,
        max_depth=3,
        n_estimators=4,
        learning_rate=0.3,
        base_score=start,
        tree_method="exact",
    )
    theirs.set_params(min_child_weight=0, n_jobs=1).fit(X, y)
    assert np.isclose(ours.predict(X), theirs.predict(X), rtol=1e-3, atol=1e-3).mean() > 0.95


# ---------------------------------------------------------------------------------------------------- queries


@pytest.mark.parametrize("ids", [QID, QID.astype(float), WORDS, list(WORDS), pd.Series(QID), QID - 10**12])
def test_query_ids_are_names(ids):
    model = LambdaMARTRanker(**RULES).fit(X, Y, qid=ids)
    assert model.ensemble_ == LambdaMARTRanker(**RULES).fit(X, Y, group=np.full(30, 20)).ensemble_


def test_rows_of_queries_may_come_in_any_order():
    """XGBoost refuses ids that are not sorted. The order matters to rows with equal scores only."""
    rules = RULES | PLAIN
    mixed = LambdaMARTRanker(**rules).fit(X[SHUFFLED], Y[SHUFFLED], qid=QID[SHUFFLED])
    sorted_ = LambdaMARTRanker(**rules).fit(X, Y, qid=QID)
    assert mixed.score(X, Y, qid=QID) == pytest.approx(sorted_.score(X, Y, qid=QID), abs=0.05)
    assert mixed.score(X[SHUFFLED], Y[SHUFFLED], qid=QID[SHUFFLED]) == pytest.approx(
        mixed.score(X, Y, qid=QID)
    )


def test_queries_may_be_an_index():
    frame = pd.DataFrame(X, index=pd.Index(QID, name="qid"))
    assert (
        LambdaMARTRanker(**RULES).fit(frame, Y).ensemble_
        == LambdaMARTRanker(**RULES).fit(X, Y, qid=QID).ensemble_
    )


def test_a_function_of_all_rows_stops_a_regressor():
    def area(estimator, X, y):
        return roc_auc_score(y > 1, estimator.predict(X))

    model = HistGBRTRegressor(scoring=area, early_stopping=False, **RULES).fit(X, Y, X_val=X, y_val=Y)
    assert model.validation_score_[-1] == roc_auc_score(Y > 1, model.predict(X))
    assert model.validation_score_[-1] > 0.8


def test_ndcg_is_what_the_booster_reports():
    theirs = xgboost.XGBRanker(n_estimators=3, max_depth=3, n_jobs=1)
    theirs.fit(X, Y, qid=QID, eval_set=[(X, Y)], eval_qid=[QID], verbose=False)
    (metric,) = theirs.evals_result()["validation_0"]
    scores = theirs.predict(X)
    expected = theirs.evals_result()["validation_0"][metric][-1]
    at = None if "@" not in metric else int(metric.split("@")[1])
    ours = NDCG.xgboost if at is None else NDCG.xgboost @ at
    assert ours(Y, scores, qid=QID) == pytest.approx(expected, abs=1e-5)


# ------------------------------------------------------------------------------------------------------ names


def test_columns_of_another_order_are_refused_and_not_taken_for_each_other():
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = HistGBRTRegressor(**RULES).fit(frame, Y)
    assert model.feature_names_in_.tolist() == list("abcde")
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[list("bacde")])
    with pytest.raises(ValueError, match=r"feature names should match"):
        model.predict(frame.rename(columns={"e": "f"}))
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)


def test_arrays_have_no_names(model):
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 5


# ------------------------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_what_was_passed_is_kept_and_nothing_else_is_taken(cls):
    model = cls(max_iter=7, learning_rate=0.25)
    assert model.get_params()["learning_rate"] == 0.25
    assert model.set_params(learning_rate=0.5).learning_rate == 0.5
    assert clone(model).get_params() == model.get_params()
    for name in ("eta", "n_estimators", "nthread"):
        with pytest.raises(TypeError, match=f"'{name}'"):
            cls(**{name: 1})
    with pytest.raises(ValueError, match="Invalid parameter 'eta'"):
        model.set_params(eta=0.1)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, clone, lambda m: pickle.loads(pickle.dumps(m))])
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_estimators_that_are_not_fitted_can_be_copied(cls, copied):
    model = copied(cls(**RULES))
    assert digests(model.fit(X, Y, qid=QID)) == digests(cls(**RULES).fit(X, Y, qid=QID))


def test_a_fit_changes_no_parameter(model):
    before = type(model)(**RULES).get_params()
    assert model.get_params() == before


def test_seeds_of_random_states(model):
    again = clone(model).set_params(random_state=np.random.RandomState(0), subsample=0.5)
    same = clone(model).set_params(random_state=np.random.RandomState(0), subsample=0.5)
    assert digests(again.fit(X, Y, qid=QID)) == digests(same.fit(X, Y, qid=QID))


# --------------------------------------------------------------------------------------------- early stopping


def test_a_model_that_stopped_early_can_be_fitted_without_stopping():
    model = HistGBRTRegressor(**RULES | {"max_iter": 60, "learning_rate": 1.0, "n_iter_no_change": 2})
    model.fit(X[:300], Y[:300], X_val=X[300:], y_val=Y[300:])
    assert model.n_iter_ < 60
    model.set_params(n_iter_no_change=10).fit(X[:300], Y[:300])
    assert model.n_iter_ == model.best_iteration_ == 60
    assert len(model.validation_score_) == 0


def test_least_improvements_stop_earlier():
    rounds = []
    for tol in (0.0, 0.05, 1.0):
        model = HistGBRTRegressor(**RULES | {"max_iter": 60, "n_iter_no_change": 2, "tol": tol})
        rounds.append(model.fit(X[:300], Y[:300], X_val=X[300:], y_val=Y[300:]).n_iter_)
    assert rounds[0] > rounds[1] >= rounds[2] == 3


def test_cross_validation_of_a_model_that_stops_early():
    model = HistGBRTClassifier(early_stopping=True, n_iter_no_change=2, **RULES)
    scores = cross_val_score(model, X, Y > 1, cv=KFold(3, shuffle=True, random_state=0))
    assert (scores > 0.5).all()


# ------------------------------------------------------------------------------------------------------ trees


@pytest.mark.parametrize("first", [0, 1, 3, 6])
def test_stretches_of_trees_add_up(first, model):
    for ensemble in model._ensembles:
        start, rest = ensemble.first(first), ensemble.after(first)
        assert_allclose(start.predict(X) + rest.predict(X) - rest.base, ensemble.predict(X))


def test_leaves_of_rows_are_leaves(model):
    for ensemble in model._ensembles:
        leaves = ensemble.leaves(X)
        assert leaves.shape == (len(X), 6)
        for tree, reached in zip(ensemble, leaves.T, strict=True):
            assert (tree.nodes["left"][reached] < 0).all()


def test_a_constant_start_is_added_to_all():
    at_zero, at_two = (
        HistGBRTRegressor(init=start, **RULES | PLAIN).fit(X, Y + start) for start in (0.0, 2.0)
    )
    assert_allclose(at_zero.predict(X) + 2.0, at_two.predict(X))


def test_selection_by_importance(model):
    importances = model.feature_importances_
    assert importances.sum() == pytest.approx(1.0)
    chosen = SelectFromModel(model, prefit=True, max_features=1, threshold=-np.inf).get_support()
    assert chosen.tolist() == (np.arange(5) == importances.argmax()).tolist()


def test_elimination_of_features():
    selector = RFE(HistGBRTRegressor(**RULES), n_features_to_select=2).fit(X, Y)
    assert selector.support_.sum() == 2
    assert selector.estimator_.n_features_in_ == 2


def test_scaling_changes_no_ranking():
    pipeline = make_pipeline(StandardScaler(), LambdaMARTRanker(split_search="exact", **RULES | PLAIN))
    y = pd.Series(Y, index=pd.Index(QID, name="qid"))
    alone = LambdaMARTRanker(split_search="exact", **RULES | PLAIN).fit(X, y)
    assert_allclose(pipeline.fit(X, y).predict(X), alone.predict(X))


def test_forests_have_as_many_trees_as_asked_for():
    forest = RandomForestRanker(4, random_state=0).fit(X, Y, qid=QID)
    assert len(forest.ensemble_) == 4
    assert_allclose(forest.predict(X), np.mean([tree.predict(X) for tree in trees_of(forest)], axis=0))


def trees_of(forest):
    return [forest.ensemble_.first(1), *(forest.ensemble_.first(n + 1).after(n) for n in range(1, 4))]


# ------------------------------------------------------------------------------------------------------- rows


def test_missing_values_may_be_all_of_a_row(model):
    assert np.isfinite(model.predict(np.full((3, 5), np.nan)).astype(float)).all()


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_labels_have_to_be_finite(value):
    y = Y.astype(float)
    y[3] = value
    with pytest.raises(ValueError, match="y"):
        HistGBRTRegressor(**RULES).fit(X, y)


def test_empty_rows_are_refused_by_fit_and_by_predict(model):
    with pytest.raises(ValueError, match=r"0 sample|no rows|minimum"):
        clone(model).fit(X[:0], Y[:0])
    with pytest.raises(ValueError, match=r"0 sample|no rows|minimum"):
        model.predict(X[:0])


def test_classes_are_told_by_their_scores():
    model = HistGBRTClassifier(**RULES).fit(X, Y)
    assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
