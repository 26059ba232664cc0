"""Custom objectives and measures, and the check of gradients."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.metrics import check_scoring, make_scorer
from sklearn.model_selection import cross_val_score, cross_validate

from ranktrees import (
    HistGBRTRegressor,
    LambdaMARTRanker,
    QueryKFold,
    RandomForestRanker,
    make_ranking,
    query_scorer,
)
from ranktrees.estimators.links import is_same_link, link_of
from ranktrees.evaluation.comparing import per_query_table
from ranktrees.measures import NDCG, Measure, as_measure
from ranktrees.objectives import (
    Custom,
    LambdaMART,
    Objective,
    Poisson,
    QueryRMSE,
    SquaredError,
    as_objective,
    check_gradients,
)

X, Y, QID = make_ranking(30, rows_per_query=15, random_state=0, return_X_y_qid=True)


def centred(labels, scores, offsets):
    residuals = scores - labels
    means = np.add.reduceat(residuals, offsets[:-1]) / np.diff(offsets)
    return residuals - np.repeat(means, np.diff(offsets)), np.ones(len(scores))


def centred_loss(labels, scores, offsets):
    return (centred(labels, scores, offsets)[0] ** 2).sum() / 2


def best_label(labels, scores):
    return labels[np.argmax(scores)] / max(labels.max(), 1.0)


def test_a_function_trains_what_the_built_in_does():
    rules = {"max_iter": 10, "random_state": 0, "gradient_sampling": None}
    ours = LambdaMARTRanker(centred, **rules).fit(X, Y, qid=QID)
    built_in = LambdaMARTRanker("query_rmse", **rules).fit(X, Y, qid=QID)
    np.testing.assert_allclose(ours.predict(X), built_in.predict(X), rtol=1e-9)
    weights = np.random.default_rng(0).random(len(Y))
    regressor = HistGBRTRegressor(
        lambda y, s, offsets: (s - y, np.ones(len(s))),
        max_iter=5,
        random_state=0,
        init=float(np.average(Y, weights=weights)),
    ).fit(X, Y, weights)
    squared = HistGBRTRegressor(max_iter=5, random_state=0).fit(X, Y, weights)
    np.testing.assert_allclose(regressor.predict(X), squared.predict(X), rtol=1e-6)


def test_functions_are_values():
    ranker = LambdaMARTRanker(Custom(centred, centred_loss), measure=best_label, max_iter=3, random_state=0)
    ranker = pickle.loads(pickle.dumps(clone(ranker)))
    scores = ranker.fit(X, Y, qid=QID).predict(X)
    assert ranker.score(X, Y, qid=QID) == as_measure(best_label)(Y, scores, qid=QID)
    assert repr(as_measure(best_label)) == "best_label"
    assert as_measure(best_label) == as_measure(best_label)
    assert as_objective(centred) == Custom(centred)


def test_a_measure_that_is_a_function_can_be_trained_for():
    ranker = LambdaMARTRanker(measure=best_label, max_iter=4, random_state=0).fit(
        X[:150], Y[:150], qid=QID[:150]
    )
    assert ranker.score(X, Y, qid=QID) > 0.6


def test_functions_measure_wherever_a_measure_does():
    forest = RandomForestRanker(3, measure=best_label, oob_score=best_label, random_state=0).fit(
        X, Y, qid=QID
    )
    table = per_query_table(Y, {"forest": forest.predict(X)}, qid=QID, measure=best_label)
    assert table["forest", "best_label"].mean() == pytest.approx(forest.score(X, Y, qid=QID))
    assert 0 < forest.oob_score_ <= 1


def test_early_stopping_follows_the_loss_or_a_measure():
    rules = {"max_iter": 8, "random_state": 0, "early_stopping": True}
    model = HistGBRTRegressor(Custom(centred, centred_loss), **rules).fit(X, Y, qid=QID)
    assert len(model.validation_score_) == 8
    model = LambdaMARTRanker(centred, scoring=best_label, **rules).fit(X, Y, qid=QID)
    assert len(model.validation_score_) <= 8
    with pytest.raises(ValueError, match=r"centred gives gradients, but no loss.*scoring= to a measure"):
        HistGBRTRegressor(centred, **rules).fit(X, Y, qid=QID)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda s: s, "bad returned ndarray; expected two arrays"),
        (lambda s: (s[1:], s), "bad returned gradients of shape .*one per row"),
        (lambda s: (s, np.full(len(s), np.nan)), "bad returned hessians that are not finite: nan in row 0"),
        (lambda s: (s, s - 1.0), "bad returned the hessian -1 in row 0; expected numbers >= 0"),
    ],
)
def test_what_functions_return_is_checked(returned, message):
    def bad(labels, scores, offsets):
        return returned(scores)

    with pytest.raises(ValueError, match=message):
        LambdaMARTRanker(bad, max_iter=1).fit(X, Y, qid=QID)


def test_hessians_are_quoted_as_they_were_returned_even_where_rows_have_no_weight():
    def concave(labels, scores, offsets):
        return scores, np.where(np.arange(len(scores)) == 7, -1.0, 1.0)

    for weight in (0.0, 0.5):
        with pytest.raises(ValueError, match="concave returned the hessian -1 in row 7"):
            LambdaMARTRanker(concave, max_iter=1).fit(X, Y, np.full(len(Y), weight) + (Y > 0), qid=QID)


def test_measures_are_functions_to_scikit_learn():
    labels = pd.Series(Y, index=pd.Index(QID, name="qid"))
    model, folds = LambdaMARTRanker(max_iter=3, random_state=0), QueryKFold(2)
    scorer = make_scorer(as_measure("ndcg@10"))
    assert "NDCG @ 10" in repr(scorer)
    found = cross_validate(model, X, labels, cv=folds, scoring={"one": scorer})["test_one"]
    expected = cross_val_score(model, X, labels, cv=folds, scoring=query_scorer("ndcg@10"))
    np.testing.assert_array_equal(found, expected)


class FromOne(Measure):
    """The label of the row ranked first; labels begin at 1."""

    name, lowest_label = "FromOne", 1.0

    def of_query(self, labels, scores):
        return float(labels[np.argmax(scores)])


def test_measures_say_which_labels_they_take():
    assert (
        LambdaMARTRanker(measure=FromOne(), max_iter=1).fit(X, Y + 1, qid=QID).score(X, Y + 1, qid=QID) >= 1
    )
    message = "y has the label 0, but FromOne is defined for labels >= 1; expected grades from 1 on"
    with pytest.raises(ValueError, match=message):
        LambdaMARTRanker(measure=FromOne()).fit(X, Y, qid=QID)


def test_links_of_any_kind_are_told_apart():
    class Doubling(Objective):
        @staticmethod
        def inverse_link(scores):
            return 2 * scores

    class Halving(Objective):
        @staticmethod
        def inverse_link(scores):
            return scores / 2

    links = [link_of(objective) for objective in (Poisson(), Doubling(), Halving(), SquaredError())]
    for one, other in itertools.product(links, repeat=2):
        assert is_same_link(one, other) == (one == other)


def test_functions_of_other_arguments_are_refused_by_name():
    def like_lightgbm(y_true, y_pred):
        return y_pred - y_true, np.ones(len(y_true))

    with pytest.raises(
        ValueError, match=r"of \(labels, scores, offsets\), got like_lightgbm\(y_true, y_pred\);"
    ):
        LambdaMARTRanker(like_lightgbm).fit(X, Y, qid=QID)
    with pytest.raises(ValueError, match=r"loss must be a function of .* got best_label\(labels, scores\)"):
        Custom(centred, best_label)
    with pytest.raises(
        ValueError, match=r"the labels and the scores of a query, got centred\(labels, scores, off"
    ):
        LambdaMARTRanker(measure=centred).fit(X, Y, qid=QID)
    with pytest.raises(
        ValueError, match=r"\(estimator, X, y_true, .*; instead of a scorer, pass the measure"
    ):
        LambdaMARTRanker(scoring=query_scorer("ndcg@5"), early_stopping=True).fit(X, Y, qid=QID)


def judge(estimator, X, y=None):
    return 0.0


@pytest.mark.parametrize("scorer", [check_scoring(LambdaMARTRanker()), check_scoring(Ridge(), ["r2"]), judge])
def test_scorers_of_every_kind_are_refused_as_measures(scorer):
    with pytest.raises(ValueError, match=r"\(estimator, .*; instead of a scorer, pass the measure itself"):
        LambdaMARTRanker(scoring=scorer, early_stopping=True).fit(X, Y, qid=QID)


def test_a_measure_returns_one_number():
    def like_lightgbm(y_true, y_pred):
        return "ndcg", 1.0, True

    with pytest.raises(ValueError, match=r"measure like_lightgbm returned \('ndcg', 1.0, True\) for a query"):
        as_measure(like_lightgbm)(Y, Y, qid=QID)


def test_what_functions_see_is_read_only():
    def greedy(labels, scores, offsets):
        scores[0] = 1.0

    with pytest.raises(ValueError, match="read-only"):
        LambdaMARTRanker(greedy, max_iter=1).fit(X, Y, qid=QID)


def test_functions_see_queries_whatever_the_order_of_the_rows():
    seen = []

    def watch(labels, scores, offsets):
        seen.append((labels.copy(), offsets.copy()))
        return scores - labels, np.ones(len(scores))

    LambdaMARTRanker(watch, max_iter=1).fit(np.zeros((5, 1)), [1, 2, 3, 4, 5], qid=["b", "a", "b", "c", "a"])
    labels, offsets = seen[0]
    np.testing.assert_array_equal(labels, [1, 3, 2, 5, 4])
    np.testing.assert_array_equal(offsets, [0, 2, 4, 5])


def test_classes_and_other_things_are_refused():
    for wrong in (3, SquaredError):
        with pytest.raises(ValueError, match="objective must be one of"):
            as_objective(wrong)
    with pytest.raises(ValueError, match="function must be a function of"):
        Custom(3)
    with pytest.raises(ValueError, match="loss must be a function of"):
        Custom(centred, 3)
    with pytest.raises(ValueError, match="a measure is a string"):
        as_measure(type(NDCG))


# ---- the check ---------------------------------------------------------------------------------------------


def test_right_gradients_pass():
    found = check_gradients(Custom(centred, centred_loss))
    assert found.scale == pytest.approx(1.0)
    assert found.gradient_error < 1e-6
    assert 0.05 < found.hessian_error < 1  # 1 instead of 1 - 1 / n
    for objective in ("squared_error", "poisson", "ranknet", "gbrank", "listnet", QueryRMSE()):
        assert check_gradients(objective).gradient_error < 1e-4


def test_wrong_gradients_are_found():
    def one_off(labels, scores, offsets):
        gradients, hessians = centred(labels, scores, offsets)
        gradients[5] += 0.1
        return gradients, hessians

    with pytest.raises(ValueError, match="the gradient of one_off in row 5 is"):
        check_gradients(Custom(one_off, centred_loss))
    with pytest.raises(ValueError, match="does not change with the scores"):
        check_gradients(LambdaMART())
    with pytest.raises(ValueError, match="no loss"):
        check_gradients(centred)
    with pytest.raises(ValueError, match="offsets is given without labels"):
        check_gradients(QueryRMSE(), offsets=[0, 3])

    def nothing(labels, scores, offsets):
        return 0 * scores, np.ones(len(scores))

    with pytest.raises(ValueError, match="gradients of nothing are all 0"):
        check_gradients(Custom(nothing, centred_loss))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"labels": []}, "labels has shape"),
        ({"labels": [0.0, np.nan]}, "labels has shape"),
        ({"labels": [[0.0], [1.0]]}, "labels has shape"),
        *(
            ({"offsets": offsets}, "offsets is .* rise from 0 to 3, the number of labels")
            for offsets in (
                [0, 2, 9],
                [2, 0, 3],
                [0, 300_000_000],
                [0, 2],
                [1, 3],
                [0, 2, 2, 3],
                [0.0, 3.0],
                3,
            )
        ),
        ({"scores": [1.0]}, "scores has shape"),
        ({"scores": [0.0, 1.0, np.inf]}, "scores has shape"),
        ({"weights": [1.0]}, "weights has shape"),
        ({"weights": [1.0, 1.0, -1.0]}, "weights has shape"),
    ],
)
def test_arrays_to_check_gradients_by_have_to_fit(given, message):
    with pytest.raises(ValueError, match=message):
        check_gradients("ranknet", **{"labels": [0.0, 1.0, 1.0]} | given)


def test_a_loss_sees_weights_or_is_refused_where_there_are_some():
    def distances(labels, scores, offsets):
        return scores - labels, np.ones(len(scores))

    def plain(labels, scores, offsets):
        return ((scores - labels) ** 2).sum() / 2

    def weighted(labels, scores, offsets, weights):
        return (weights * (scores - labels) ** 2).sum() / 2

    rows = {"labels": [0.0, 1, 2], "weights": [1.0, 2, 3]}
    assert check_gradients(Custom(distances, weighted), **rows).gradient_error < 1e-6
    assert check_gradients(Custom(distances, weighted)).gradient_error < 1e-6
    with pytest.raises(ValueError, match=r"plain is a loss of .* give it an argument weights"):
        check_gradients(Custom(distances, plain), **rows)


@pytest.mark.parametrize("returned", [None, np.ones(3), "much"])
def test_a_loss_is_one_number(returned):
    def loss(labels, scores, offsets):
        return returned

    with pytest.raises(ValueError, match=r"loss returned .* expected one number"):
        check_gradients(Custom(centred, loss))


def test_gradients_are_numbers():
    def ragged(labels, scores, offsets):
        return [[1], [2, 3]], scores

    with pytest.raises(ValueError, match=r"ragged returned gradients .* expected one number per row"):
        check_gradients(Custom(ragged, centred_loss))


@pytest.mark.parametrize("third", ["group", "weight", "sample_weight"])
def test_a_loss_of_lightgbm_would_take_offsets_for_sizes(third):
    theirs = {}
    exec(f"def theirs(y_true, y_pred, {third}): ...", theirs)
    with pytest.raises(
        ValueError, match=rf"theirs\(y_true, y_pred, {third}\) would be called with .*np.diff"
    ):
        Custom(theirs["theirs"])


def test_functions_that_take_scores_first():
    with pytest.raises(ValueError, match=r"called with \(labels, scores, offsets\): put the labels first"):
        Custom(lambda preds, labels, offsets: (preds, preds))
    with pytest.raises(
        ValueError, match=r"<lambda>\(y_pred, y_true\) would be called with \(labels, scores\)"
    ):
        as_measure(lambda y_pred, y_true: 0.0)
    assert as_measure(lambda labels, preds: 0.0)
