"""Measures of the rows of all queries together, wherever a measure is expected."""

import math

import numpy as np
import pandas as pd
import pytest
from ranks import together
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from ranktrees import (
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    OrdinalRanker,
    RandomForestRanker,
    compare,
    make_ranking,
    pick_early_exit,
    refine_weights,
    score_curves,
)
from ranktrees.evaluation.combining import optimal_weight
from ranktrees.evaluation.comparing import compare_to_baseline, per_query_table
from ranktrees.evaluation.early_exit import EarlyExit
from ranktrees.evaluation.model_selection import QueryKFold, query_scorer
from ranktrees.measures import AUC, BalancedErrorRate, PooledAUC
from ranktrees.meta import BlendRanker
from ranktrees.processes.communicator import training_with

X, Y, QID = make_ranking(60, "web", rows_per_query=15, n_features=6, random_state=0, return_X_y_qid=True)
TRAIN, TEST = QID < 30, QID >= 30
VALIDATION = {"X_val": X[TEST], "y_val": Y[TEST], "qid_val": QID[TEST]}


def roc(scores, rows=TEST, weights=None):
    return sk.roc_auc_score(Y[rows] >= 3, scores, sample_weight=weights)


@pytest.mark.parametrize("model", [LambdaMARTRanker, HistGBRTRegressor], ids=lambda model: model.__name__)
def test_early_stopping_follows_one_area_of_all_rows(model):
    model = model(scoring="auc.survey", max_iter=30, learning_rate=0.4, n_iter_no_change=3, random_state=0)
    fit = {"qid": QID[TRAIN]} if isinstance(model, LambdaMARTRanker) else {}
    model.fit(X[TRAIN], Y[TRAIN], **fit, **VALIDATION)
    values = [roc(scores) for scores in model.staged_predict(X[TEST])]
    np.testing.assert_allclose(model.validation_score_[: len(values)], values)
    assert model.best_iteration_ == 1 + int(np.argmax(model.validation_score_)) < model.n_iter_
    curves = score_curves(model, X[TEST], Y[TEST], qid=QID[TEST], measure=["auc.survey", "pauc.survey@[0,5]"])
    np.testing.assert_allclose(curves["rows", "auc.survey"], values)
    assert 0 < curves["rows", AUC.survey @ [0, 5]].max() < 0.05


def test_ranks_follow_the_area_of_the_rows_of_all():
    """Whichever rank has them; and without query ids, as for any measure that is no mean over queries."""
    weights = 0.5 + np.random.default_rng(0).random(len(Y))

    def fit(own, theirs):
        model = HistGBRTRegressor(scoring="auc.survey", max_iter=20, learning_rate=0.4, random_state=0)
        model.fit(
            *(rows[TRAIN][own] for rows in (X, Y, weights)),
            **dict(zip(("X_val", "y_val", "sample_weight_val"), _held_out(weights, theirs), strict=True)),
        )
        return model.validation_score_.tolist(), model.ensemble_.nodes.tobytes()

    def train(ranks):
        with training_with(ranks):
            halves = np.array_split(np.arange(TRAIN.sum()), 2)
            return fit(halves[ranks.rank], np.arange(TEST.sum())[ranks.rank :: 2])

    assert together(2, train) == [fit(slice(None), slice(None))] * 2


def _held_out(weights, rows):
    return tuple(of_rows[TEST][rows] for of_rows in (X, Y, weights))


def test_score_needs_no_query_ids_and_takes_the_weights_of_rows():
    weights = np.random.default_rng(0).random(TEST.sum())
    forest = RandomForestRanker(10, measure="auc.survey", oob_score=True, random_state=0)
    forest.fit(X[TRAIN], Y[TRAIN], qid=QID[TRAIN])
    expected = roc(forest.predict(X[TEST]), weights=weights)
    assert forest.score(X[TEST], Y[TEST], weights) == pytest.approx(expected)
    assert forest.score(X[TEST], Y[TEST], weights, qid=QID[TEST]) == pytest.approx(expected)
    ordinal = OrdinalRanker(HistGBRTClassifier(max_iter=3), measure="auc.survey")
    ordinal.fit(X[TRAIN], Y[TRAIN], qid=QID[TRAIN])
    assert ordinal.score(X[TEST], Y[TEST]) == pytest.approx(roc(ordinal.predict(X[TEST])))
    seen = ~np.isnan(forest.oob_prediction_)
    expected = sk.roc_auc_score(Y[TRAIN][seen] >= 3, forest.oob_prediction_[seen])
    assert forest.oob_score_ == pytest.approx(expected)


def test_searches_score_by_one_area_of_all_rows_of_a_fold():
    folds = list(QueryKFold(3).split(X, groups=QID))
    indexed = pd.Series(Y, index=pd.Index(QID, name="qid"))
    for y in (indexed, Y):  # without ids, too
        search = GridSearchCV(
            HistGBRTRegressor(max_iter=10, random_state=0),
            {"max_leaf_nodes": [2, 8]},
            scoring=query_scorer("auc.survey"),
            cv=folds,
        ).fit(X, y)
        for k, (train, test) in enumerate(folds):
            model = HistGBRTRegressor(max_iter=10, max_leaf_nodes=8, random_state=0).fit(X[train], Y[train])
            area = roc(model.predict(X[test]), test)
            assert search.cv_results_[f"split{k}_test_score"][1] == pytest.approx(area)


def test_the_balanced_error_rate_is_that_of_probabilities():
    relevant = (Y >= 3).astype(int)
    fit = {"X_val": X[TEST], "y_val": relevant[TEST]}
    by = {"measure": "balanced_error_rate", "scoring": "balanced_error_rate"}
    model = HistGBRTClassifier(balanced=True, max_iter=20, random_state=0, **by)
    model.fit(X[TRAIN], relevant[TRAIN], **fit)
    error = 1 - sk.balanced_accuracy_score(relevant[TEST], model.predict(X[TEST]))
    assert 0 < error < 0.5
    assert model.score(X[TEST], relevant[TEST]) == pytest.approx(-error)
    assert model.validation_score_[model.best_iteration_ - 1] == pytest.approx(-error)
    scorer = query_scorer("balanced_error_rate")
    assert scorer(model, X[TEST], relevant[TEST]) == pytest.approx(-error)
    log_odds = model.decision_function(X[TEST])
    assert BalancedErrorRate(threshold=0)(relevant[TEST], log_odds) == pytest.approx(error)
    theirs = LogisticRegression().fit(X[TRAIN], relevant[TRAIN])
    error = 1 - sk.balanced_accuracy_score(relevant[TEST], theirs.predict(X[TEST]))
    assert scorer(theirs, X[TEST], relevant[TEST]) == pytest.approx(-error)


def test_rows_that_left_early_keep_their_scores():
    """Rows of other queries are not behind them, so that they cannot be dropped last."""
    model = RandomForestRanker(10, measure="auc.survey", random_state=0)
    model.fit(X[TRAIN], Y[TRAIN], qid=QID[TRAIN])
    early_exit = EarlyExit(every=2, drop=0.3)
    rows = X[TEST], Y[TEST]
    frozen = model.predict(X[TEST], qid=QID[TEST], early_exit=early_exit)
    value = model.score(*rows, qid=QID[TEST], early_exit=early_exit)
    assert value == pytest.approx(roc(frozen)) != model.score(*rows)
    curve = model.cost_curve(*rows, qid=QID[TEST], early_exit=early_exit, feature_costs=[1] * 6)
    assert curve.value[-1] == pytest.approx(value)


@pytest.mark.parametrize("measure", ["auc.survey", "pauc.survey@[0,5]", BalancedErrorRate], ids=str)
def test_values_of_queries_are_refused(measure):
    y, scores = [3, 0, 4, 0], [0.9, 0.8, 0.3, 0.2]
    rows = {"qid": [1, 1, 2, 2], "measure": measure}
    for ask in (
        lambda: compare(y, scores, scores, **rows),
        lambda: compare_to_baseline(y, {"a": scores, "b": scores}, "a", **rows),
        lambda: per_query_table(y, {"a": scores}, qid=[1, 1, 2, 2], measure=measure),
        lambda: optimal_weight(y, scores, scores, **rows),
        lambda: LambdaMARTRanker(measure=measure).fit(X, Y, qid=QID),
        lambda: BlendRanker(
            [("a", HistGBRTRegressor(max_iter=2)), ("b", HistGBRTRegressor(max_iter=3))], measure=measure
        ).fit(X, Y, qid=QID),
    ):
        with pytest.raises(ValueError, match=r"(PooledAUC|BalancedErrorRate).*(expected a m|optimises m)"):
            ask()


def test_weights_and_exits_are_not_chosen_by_pooled_measures():
    model = HistGBRTRegressor(max_iter=4, random_state=0).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match=r"PooledAUC\(rel=3\); expected a measure of the order of rows of a"):
        pick_early_exit(model, X, Y, qid=QID, measure="auc.survey")
    with pytest.raises(ValueError, match=r"PooledAUC\(rel=3\) is one number for the rows of all queries"):
        refine_weights(model.ensemble_, X, Y, qid=QID, measure="auc.survey")


def test_training_by_a_pooled_measure_is_refused_with_what_to_do():
    with pytest.raises(ValueError, match=r"such as 'auc': pass scoring=PooledAUC\(rel=3\) to stop by"):
        LambdaMARTRanker(measure=PooledAUC.survey).fit(X, Y, qid=QID)
    model = LambdaMARTRanker("ranknet", measure=PooledAUC.survey, max_iter=3, random_state=0)
    model.fit(X[TRAIN], Y[TRAIN], qid=QID[TRAIN])
    assert model.score(X[TEST], Y[TEST], qid=QID[TEST]) == pytest.approx(roc(model.predict(X[TEST])))


def test_validation_rows_without_a_relevant_one_are_refused_before_training():
    model = HistGBRTRegressor(scoring="auc.survey")
    with (
        pytest.warns(UserWarning, match="not defined without both relevant and irrelevant rows"),
        pytest.raises(ValueError, match="is not defined for the validation rows whatever the scores"),
    ):
        model.fit(X, Y, X_val=X[:9], y_val=np.minimum(Y[:9], 2))
    assert math.isnan(PooledAUC.mean(np.zeros(3), np.zeros(3), np.array([0, 3])))
