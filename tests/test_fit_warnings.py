"""A fit that does what was asked, but hardly what was meant, warns."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from ranktrees import (
    FitWarning,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    QueryKFold,
    RandomForestRanker,
    as_measure,
    best_rows,
    make_clicks,
    make_ranking,
    query_scorer,
    score_curves,
)
from ranktrees.evaluation.comparing import per_query_table
from ranktrees.measures import ndcg_score

X, y, qid = make_ranking(20, rows_per_query=15, n_features=4, random_state=0, return_X_y_qid=True)


def doubts(fit):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit()
    assert all(warning.category is FitWarning for warning in caught)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("kind", [HistGBRTRegressor, LambdaMARTRanker, RandomForestRanker])
@pytest.mark.parametrize(
    ("labels", "least", "reason"),
    [(y, 151, "needs 302: lower it"), (0 * y, 20, "the labels, which must differ within queries")],
)
def test_trees_without_a_split(kind, labels, least, reason):
    (said,) = doubts(lambda: kind(min_samples_leaf=least).fit(X, labels, qid=qid))
    assert f"{kind.__name__} learned nothing: none of its" in said
    assert reason in said
    assert not doubts(lambda: kind(min_samples_leaf=5).fit(X, y, qid=qid))


def test_rows_each_of_which_is_a_query():
    (said,) = doubts(lambda: LambdaMARTRanker(max_iter=3).fit(X, y, qid=np.arange(len(y))))
    assert "learned nothing: none of its 3 trees" in said
    assert f"each of the {len(y)} rows is a query of its own, in which there is nothing to rank" in said
    assert not doubts(lambda: HistGBRTRegressor(max_iter=3).fit(X, y, qid=np.arange(len(y))))


@pytest.mark.parametrize("kind", [HistGBRTRegressor, LambdaMARTRanker])
def test_rules_that_no_split_satisfies(kind):
    (said,) = doubts(lambda: kind(min_samples_leaf=5, min_hessian_to_split=1e9).fit(X, y, qid=qid))
    assert "no split satisfied min_hessian_to_split=1e+09: lower that; gains and hessians scale with" in said
    (said,) = doubts(
        lambda: kind(min_samples_leaf=5, min_gain_to_split=1e9, min_hessian_to_split=1).fit(X, y, qid=qid)
    )
    assert "no split satisfied min_gain_to_split=1e+09 and min_hessian_to_split=1: lower that" in said


def test_rows_that_hardly_weigh():
    light = np.full(len(y), 1 / len(y))
    ranker = LambdaMARTRanker(max_iter=3, l2_regularization=1.0)
    (said,) = doubts(lambda: ranker.fit(X, y, light, qid=qid))
    assert said.startswith("sample_weight is 0.00333 on average, and l2_regularization=1 is added to")
    for unambiguous in (
        lambda: LambdaMARTRanker(max_iter=3, l2_regularization=0).fit(X, y, light, qid=qid),
        lambda: LambdaMARTRanker(max_iter=3).fit(X, y, light / light.mean(), qid=qid),
        lambda: LambdaMARTRanker(max_iter=3).fit(X, y, np.where(qid < 10, 0.0, 1.0), qid=qid),
    ):
        assert not doubts(unambiguous)


@pytest.mark.parametrize("kind", [HistGBRTRegressor, LambdaMARTRanker])
def test_a_weight_beside_which_no_other_row_is_drawn(kind):
    heavy, model = np.ones(len(y)), kind(max_iter=3, min_samples_leaf=5)
    heavy[7] = 1e6
    (said,) = (one for one in doubts(lambda: model.fit(X, y, heavy, qid=qid)) if "learned nothing" not in one)
    assert said.startswith("sample_weight reaches 1e+06, and is 3.33e+03 on average: gradient_sampling draws")
    for gradient_sampling, weights in ((None, heavy), (4.0, np.minimum(heavy, 30)), (4.0, np.exp(X[:, 0]))):
        model.set_params(gradient_sampling=gradient_sampling)
        assert not doubts(lambda: model.fit(X, y, weights, qid=qid))  # noqa: B023


@pytest.mark.parametrize("make", [HistGBRTClassifier, lambda **rules: HistGBRTRegressor("logistic", **rules)])
def test_steps_beyond_all_odds(make):
    rng = np.random.default_rng(0)
    rows, coins = rng.normal(size=(300, 5)), rng.integers(0, 2, 300)
    rules = {"subsample": 0.3, "learning_rate": 1.0, "random_state": 0}
    (said,) = doubts(lambda: make(max_iter=200, **rules).fit(rows, coins))
    assert said.startswith("a leaf adds ")
    assert said.endswith("Lower learning_rate, or raise l2_regularization.")
    assert not doubts(lambda: make(max_iter=200, **rules | {"learning_rate": 0.1}).fit(rows, coins))
    assert not doubts(lambda: make(max_iter=200, l2_regularization=1.0, **rules).fit(rows, coins))
    assert not doubts(lambda: make(max_iter=200, **rules).fit(rows, rows[:, 0] > 0))


def test_counts_for_grades():
    (said,) = doubts(lambda: LambdaMARTRanker(max_iter=3).fit(X, y * 16, qid=qid))
    assert said.startswith(f"labels reach {16 * y.max()}, and with gain='exp2'")
    assert not doubts(lambda: LambdaMARTRanker(max_iter=3, gain="linear").fit(X, y * 16, qid=qid))
    assert not doubts(lambda: HistGBRTRegressor(max_iter=3).fit(X, y * 16))


def test_starts_that_need_not_rise():
    rising = {"max_iter": 3, "monotonic_cst": {0: 1}}
    for init in (LinearRegression(), LambdaMARTRanker(max_iter=3)):
        (said,) = doubts(lambda init=init: LambdaMARTRanker(**rising, init=init).fit(X, y, qid=qid))
        assert said.startswith("monotonic_cst holds for the trees that are added")
    assert not doubts(lambda: LambdaMARTRanker(**rising, init=LambdaMARTRanker(**rising)).fit(X, y, qid=qid))
    assert not doubts(lambda: LambdaMARTRanker(max_iter=3, init=LinearRegression()).fit(X, y, qid=qid))


@pytest.mark.parametrize("name", ["y", "qid", "groups", "sample_weight"])
@pytest.mark.parametrize("kind", [HistGBRTRegressor, LambdaMARTRanker, RandomForestRanker])
def test_an_index_in_another_order(kind, name):
    frame, known = (
        pd.DataFrame(X, np.arange(len(X)) + 7),
        {"y": y, "sample_weight": np.ones(len(y)), "qid": qid},
    )
    values = known.pop("qid" if name == "groups" else name)
    known |= {"qid": qid} if name not in ("qid", "groups") else {}
    model = kind(2) if kind is RandomForestRanker else kind(max_iter=2)
    for rows, index in (
        (frame, frame.index),
        (frame, frame.index + 1),  # of other rows
        (frame, [3] * len(X)),  # of none
        (X, frame.index[::-1]),
        (frame, pd.MultiIndex.from_arrays([frame.index[::-1], frame.index])),
    ):
        assert not doubts(lambda: model.fit(rows, **known, **{name: pd.Series(values, index)}))  # noqa: B023
    (doubt,) = doubts(lambda: model.fit(frame, **known, **{name: pd.Series(values, frame.index[::-1])}))
    assert f"the index of {name} is that of X in another order" in doubt


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"n_iter_no_change": 5}, "n_iter_no_change=5"),
        ({"scoring": "mrr"}, "scoring='mrr'"),
        ({"tol": 0.1}, "tol=0.1"),
        ({"validation_fraction": 0.3}, "validation_fraction=0.3"),
    ],
)
@pytest.mark.parametrize("kind", [HistGBRTRegressor, LambdaMARTRanker])
def test_rules_of_stopping_without_rows_to_stop_by(kind, given, named):
    (said,) = doubts(lambda: kind(max_iter=3, min_samples_leaf=5, **given).fit(X, y, qid=qid))
    assert said.startswith(f"{named} has no effect: it is about early stopping, for which there are no valid")
    rows = {"X_val": X, "y_val": y, "qid_val": qid + 20}
    for stopping, others in (("auto", rows), (True, {}), (False, {})):
        model = kind(max_iter=3, min_samples_leaf=5, early_stopping=stopping, **given)
        assert not doubts(lambda: model.fit(X, y, qid=qid, **others))  # noqa: B023


def test_validation_queries_that_are_learned_from():
    fit = LambdaMARTRanker(max_iter=2, min_samples_leaf=5).fit
    even, y_val = np.arange(len(y)) % 2 == 0, {"X_val": X, "y_val": y}
    (said,) = doubts(
        lambda: fit(X[even], y[even], qid=qid[even], X_val=X[~even], y_val=y[~even], qid_val=qid[~even])
    )
    assert said.startswith("20 of 20 validation queries are training queries by their ids, such as 0: early")
    names = [f"q{one}" for one in qid]
    in_index = pd.Series(y, pd.Index(names, name="qid"))
    (said,) = doubts(lambda: fit(X, in_index, X_val=X[:30], y_val=y[:30], qid_val=["q3"] * 15 + ["new"] * 15))
    assert said.startswith("1 of 2 validation queries are training queries by their ids, such as 'q3'")
    for other in ({"qid_val": qid + 20}, {"qid_val": names}):
        assert not doubts(lambda: fit(X, y, qid=qid, **y_val, **other))  # noqa: B023
    sizes = {"eval_set": [(X, y)], "eval_group": [[15] * 20]}
    assert not doubts(lambda: fit(X, y, group=[15] * 20, **sizes))  # sizes are no ids


def test_ranks_for_labels():
    ranks = np.concatenate([np.random.default_rng(seed).permutation(15) + 1 for seed in range(20)])
    order = np.random.default_rng(0).permutation(len(y))
    fit = LambdaMARTRanker(max_iter=2, min_samples_leaf=5).fit
    (said,) = doubts(lambda: fit(X[order], ranks[order], qid=qid[order]))
    assert said.startswith("the labels of each query are 1, 2, 3, ..., each once, as if they were ranks")
    twice = ranks.copy()
    twice[np.flatnonzero(ranks == 15)[0]] = 14
    pairs = np.arange(len(y)) // 2  # of 1 and 2, which may as well be two grades
    for labels, ids in (
        (15 - ranks, qid),
        (twice, qid),
        (ranks / 2, qid),
        (np.arange(len(y)) % 2 + 1, pairs),
    ):
        assert not doubts(lambda: fit(X, labels, qid=ids))  # noqa: B023
    assert not doubts(lambda: HistGBRTRegressor(max_iter=2, min_samples_leaf=5).fit(X, ranks))


@pytest.mark.parametrize("measure", ["map", "mrr", "p@3", "recall@3"])
def test_stars_that_all_count_as_relevant(measure):
    stars, scores = y + 1.0, X[:, 0]
    told = r"no label below rel=1, so that .* takes every row for relevant; .*\(rel=5\)"
    model = LambdaMARTRanker(max_iter=2, min_samples_leaf=5).fit(X, y, qid=qid).set_params(measure=measure)
    held_out = {"X_val": X, "y_val": stars, "qid_val": qid + 20}
    for call in (
        lambda: as_measure(measure)(stars, scores, qid=qid),
        lambda: model.score(X, stars, qid=qid),
        lambda: query_scorer(measure)(model, X, stars, qid=qid),
        lambda: score_curves(model, sets={"test": (X, stars, qid)}, measure=measure),
        lambda: per_query_table(stars, {"model": scores}, qid=qid, measure=[measure]),
        lambda: LambdaMARTRanker(max_iter=2, measure=measure).fit(X, stars, qid=qid),
        lambda: LambdaMARTRanker(max_iter=2, scoring=measure).fit(X, y, qid=qid, **held_out),
    ):
        with pytest.warns(FitWarning, match=told):
            call()
    for labels, rel in ((stars, 4), (y, 1), (0 * y + 1, 1)):
        assert not doubts(lambda: as_measure(measure)(rel=rel)(labels, scores, qid=qid))  # noqa: B023


@pytest.mark.parametrize("name", ["y_val", "qid_val", "sample_weight_val"])
def test_validation_rows_whose_index_is_in_another_order(name):
    frame = pd.DataFrame(X)
    known = {"X_val": frame, "y_val": y, "qid_val": qid + 20, "sample_weight_val": np.ones(len(y))}
    for index, n_doubts in ((frame.index, 0), (frame.index[::-1], 1)):
        held_out = known | {name: pd.Series(known[name], index)}
        found = doubts(lambda: LambdaMARTRanker(max_iter=2).fit(frame, y, qid=qid, **held_out))  # noqa: B023
        assert len(found) == n_doubts
        assert all(f"the index of {name} is that of X_val in another order" in doubt for doubt in found)


@pytest.mark.parametrize("name", ["y", "qid", "sample_weight"])
def test_scored_rows_whose_index_is_in_another_order(name):
    frame = pd.DataFrame(X)
    model = LambdaMARTRanker(max_iter=2).fit(frame, y, qid=qid)
    known = {"y": y, "qid": qid, "sample_weight": np.ones(len(y))}
    known[name] = pd.Series(known[name], frame.index[::-1])
    (doubt,) = doubts(lambda: model.score(frame, **known))
    assert f"the index of {name} is that of X in another order" in doubt


def test_positions_whose_index_is_in_another_order():
    log = make_clicks(y, qid=qid, n_sessions=3, random_state=0)
    frame, clicks = pd.DataFrame(X[log.rows]), {"qid": log.qid}
    position = pd.Series(log.position, frame.index[::-1])
    fit = LambdaMARTRanker(max_iter=2).fit
    (doubt,) = doubts(lambda: fit(frame, log.target, position=position, **clicks))
    assert "the index of position is that of X in another order" in doubt


def test_labels_and_scores_whose_indexes_are_in_another_order():
    labels, scores = pd.Series(y), pd.Series(y)[::-1]
    for call in (
        lambda: ndcg_score(labels, scores, qid=qid),
        lambda: per_query_table(labels, {"y_score": scores}, qid=qid),
        lambda: list(QueryKFold(2).split(labels, scores, qid)),
        lambda: best_rows(labels, qid=pd.Series(qid)[::-1]),
    ):
        (doubt,) = doubts(call)
        assert "in another order" in doubt
    assert not doubts(lambda: ndcg_score(labels, labels + 1, qid=pd.Series(qid)))


def test_warnings_that_are_errors_leave_the_estimator_as_it_was():
    ranker = LambdaMARTRanker(max_iter=3, min_samples_leaf=151)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitWarning)
        with pytest.raises(FitWarning):
            ranker.fit(X, y, qid=qid)
    assert not hasattr(ranker, "ensemble_")
    assert vars(ranker).keys() == vars(LambdaMARTRanker()).keys()


@pytest.mark.parametrize("gradient_sampling", [None, 4.0])
def test_columns_that_are_constant_within_queries_have_importance_but_move_no_score(gradient_sampling):
    of_queries = np.random.default_rng(0).normal(size=(20, 4))[qid]
    model = LambdaMARTRanker(max_iter=20, gradient_sampling=gradient_sampling, random_state=0)
    assert np.ptp(model.fit(of_queries, y, qid=qid).predict(of_queries)) < 1e-9
    both = np.column_stack([X, of_queries])
    assert 0 < model.fit(both, y, qid=qid).feature_importances_[4:].sum() < 0.5


@pytest.mark.parametrize("with_queries", [False, True])
def test_levels_that_say_nothing_of_others(with_queries):
    rows = np.column_stack([X[:, 0], np.arange(len(X))])
    unit, queries = ("query", {"qid": qid}) if with_queries else ("row", {})
    model = HistGBRTRegressor(max_iter=3, categorical_features=[1], min_samples_leaf=5)
    (doubt,) = doubts(lambda: model.fit(rows, y, **queries))
    assert f"each level of the categorical feature 1 is in a single {unit}" in doubt
    assert model.feature_importances_[1] == 0
