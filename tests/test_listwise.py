"""Listwise objectives: against their formulas, as derivatives of their losses, and by their laws."""

from itertools import pairwise

import numpy as np
import pytest
from test_pairwise import gradients_of, make_queries

from ranktrees import HistGBRTRegressor, LambdaMARTRanker, make_ranking
from ranktrees.objectives import XENDCG, ListNet, QueryRMSE, RankNet, check_gradients

LISTWISE = [ListNet(), XENDCG(), XENDCG(gain="linear", seed=3), QueryRMSE()]


def softmax(values, weights):
    shares = weights * np.exp(values - values.max())
    return shares / shares.sum()


@pytest.mark.parametrize("weighted", [False, True])
def test_listnet_and_query_rmse_are_their_formulas(weighted):
    labels, weights, offsets, scores = make_queries(1, weighted=weighted)
    weights = weights + 0.5 if weighted else None
    listnet = gradients_of(ListNet().prepare(labels, weights, offsets), scores)
    centred = gradients_of(QueryRMSE().prepare(labels, weights, offsets), scores)
    for start, stop in pairwise(offsets):
        rows = slice(start, stop)
        w = np.ones(stop - start) if weights is None else weights[rows]
        p, q = softmax(scores[rows], w), softmax(labels[rows], w)
        np.testing.assert_allclose(listnet[0, rows], w.mean() * (p - q), rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(listnet[1, rows], w.mean() * p * (1 - p), rtol=1e-10, atol=1e-14)
        residuals = scores[rows] - labels[rows]
        expected = w * (residuals - np.average(residuals, weights=w))
        np.testing.assert_allclose(centred[0, rows], expected, rtol=1e-10, atol=1e-13)
        np.testing.assert_array_equal(centred[1, rows], w)


def test_xendcg_draws_a_number_below_one_from_each_mass():
    labels, scores, offsets = np.array([0.0, 1.0, 3.0]), np.array([0.1, 0.0, -0.3]), np.array([0, 3])
    prepared = XENDCG(seed=1).prepare(labels, None, offsets)
    rounds = np.array([gradients_of(prepared, scores, iteration)[0] for iteration in range(4000)])
    shares = softmax(scores, 1.0) - rounds
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
    uniform = np.random.default_rng(0).random((200_000, 3))
    drawn = 2.0**labels - uniform
    drawn /= drawn.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(shares.mean(axis=0), drawn.mean(axis=0), atol=0.005)
    np.testing.assert_allclose(shares.std(axis=0), drawn.std(axis=0), rtol=0.05)
    np.testing.assert_array_equal(gradients_of(prepared, scores, 5)[0], rounds[5])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("objective", [ListNet(), QueryRMSE()], ids=repr)
def test_gradients_are_the_slopes_of_the_loss(objective, weighted):
    labels, weights, offsets, scores = make_queries(2, n_queries=6, longest=9, weighted=weighted)
    found = check_gradients(objective, labels, offsets, weights=weights, scores=scores)
    assert found.gradient_error < 1e-5


@pytest.mark.parametrize("objective", LISTWISE, ids=repr)
def test_a_common_shift_of_the_scores_of_a_query_changes_nothing(objective):
    labels, weights, offsets, scores = make_queries(3, weighted=True)
    prepared = objective.prepare(labels, weights, offsets)
    level = np.repeat(2.0 ** np.arange(len(offsets) - 1) % 64, np.diff(offsets))
    np.testing.assert_allclose(
        gradients_of(prepared, scores + level), gradients_of(prepared, scores), rtol=1e-9, atol=1e-12
    )
    assert prepared.loss(scores + level) == pytest.approx(prepared.loss(scores), rel=1e-9)


@pytest.mark.parametrize("objective", LISTWISE, ids=repr)
def test_rows_of_no_weight_pull_nobody(objective):
    labels, _, offsets, scores = make_queries(3)
    weights = np.random.default_rng(0).integers(0, 2, len(labels)).astype(float)
    prepared = objective.prepare(labels, weights, offsets)
    gradients = gradients_of(prepared, scores)
    np.testing.assert_array_equal(gradients[:, weights == 0], 0.0)
    for by in (-1.0, 1e3):
        moved = np.where(weights == 0, scores + by, scores)
        np.testing.assert_allclose(gradients_of(prepared, moved), gradients, rtol=1e-9, atol=1e-12)
        assert prepared.loss(moved) == pytest.approx(prepared.loss(scores), rel=1e-9)


@pytest.mark.parametrize("objective", LISTWISE, ids=repr)
def test_threads_do_not_change_a_bit(objective):
    labels, weights, offsets, scores = make_queries(4, n_queries=60, weighted=True)
    prepared = objective.prepare(labels, weights, offsets)
    for n_threads in (2, 3):
        again = objective.prepare(labels, weights, offsets, n_threads)
        np.testing.assert_array_equal(gradients_of(again, scores), gradients_of(prepared, scores))
        assert again.loss(scores) == prepared.loss(scores)


@pytest.mark.parametrize("objective", LISTWISE, ids=repr)
def test_extreme_scores_stay_finite(objective):
    labels, offsets = np.array([0.0, 1.0, 0.0, 2.0]), np.array([0, 4])
    prepared = objective.prepare(labels, None, offsets)
    found = gradients_of(prepared, np.array([-1e4, -1e4, 1e4, 1e4]))
    assert np.isfinite(found).all()
    assert (found[1] >= 0).all()


# ---- in the estimators -------------------------------------------------------------------------------------

X, Y, QID = make_ranking(40, rows_per_query=15, random_state=0, return_X_y_qid=True)
SETTINGS = [
    *({"loss": loss} for loss in ("lambdaloss", "ranknet", "gbrank", "listnet", "xendcg", "query_rmse")),
    *({"measure": measure} for measure in ("err@5", "map", "mrr", "p@3", "auc", "pair_accuracy")),
    {"noise": 0.5},
    {"noise": 0.5, "n_orders": 2, "measure": "map", "query_norm": "unit"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=repr)
def test_every_loss_learns_alike_with_any_number_of_threads_and_in_two_goes(settings):
    rules = {"max_iter": 12, "random_state": 0, "learning_rate": 0.2, **settings}
    ranker = LambdaMARTRanker(n_jobs=1, **rules).fit(X, Y, qid=QID)
    assert ranker.score(X, Y, qid=QID) > ranker._measure()(Y, np.zeros(len(Y)), qid=QID) + 0.1
    again = LambdaMARTRanker(n_jobs=2, **rules).fit(X, Y, qid=QID)
    assert again.ensemble_.to_bytes() == ranker.ensemble_.to_bytes()
    halves = LambdaMARTRanker(n_jobs=1, **rules | {"max_iter": 5}).fit(X, Y, qid=QID)
    halves.set_params(max_iter=12, warm_start=True).fit(X, Y, qid=QID)
    np.testing.assert_array_equal(halves.predict(X), ranker.predict(X))


def test_random_losses_follow_random_state():
    models = [
        LambdaMARTRanker("xendcg", max_iter=3, random_state=seed, subsample=1.0, max_features=1.0).fit(
            X, Y, qid=QID
        )
        for seed in (0, 0, 1)
    ]
    first, again, other = (model.ensemble_.to_bytes() for model in models)
    assert first == again != other


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"loss": "listnet", "noise": 1.0},
            "noise=1.0 is not a parameter of loss='listnet': leave it at 0.0",
        ),
        (
            {"loss": "gbrank", "score_gap_norm": 0.2},
            "score_gap_norm=0.2 is not a parameter of loss='gbrank'",
        ),
        ({"loss": QueryRMSE(), "sigma": 2.0}, r"sigma=2.0 is not a parameter of loss=QueryRMSE\(\)"),
        ({"loss": "lambdaloss", "measure": "map"}, "lambdaloss is a bound on NDCG and DCG"),
        ({"gain": "linear", "measure": "map"}, "gain='linear' .* measure='map' does not use it"),
        ({"measure": "rmse"}, "lambdamart optimises measures of the order of rows"),
        ({"measure": "p"}, "the same for every order of the rows: give it a cutoff"),
        ({"n_orders": 2}, "n_orders=2, but noise=0"),
        ({"loss": "lambda"}, "loss"),
    ],
)
def test_combinations_without_sense_raise(settings, message):
    with pytest.raises(ValueError, match=message):
        LambdaMARTRanker(max_iter=1, **settings).fit(X, Y, qid=QID)


def test_an_objective_brings_its_parameters():
    by_name = LambdaMARTRanker("ranknet", truncation_level=7, max_iter=4, random_state=0).fit(X, Y, qid=QID)
    same = RankNet(truncation_level=7, score_gap_norm=0.3, query_norm="log")
    by_value = LambdaMARTRanker(same, max_iter=4, random_state=0).fit(X, Y, qid=QID)
    assert by_value.ensemble_.to_bytes() == by_name.ensemble_.to_bytes()
    model = HistGBRTRegressor(QueryRMSE(), measure="ndcg", max_iter=20, random_state=0).fit(X, Y, qid=QID)
    assert model.score(X, Y, qid=QID) > 0.8
