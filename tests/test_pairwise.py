"""Pairwise objectives, for any measure and in any order: against brute force, and by their laws."""

import itertools
import math
import tracemalloc
from itertools import pairwise

import numpy as np
import pytest

from ranktrees import LambdaMARTRanker, make_ranking, measures
from ranktrees.measures import (
    AP,
    AUC,
    DCG,
    ERR,
    NDCG,
    RBP,
    RR,
    KendallTau,
    Measure,
    P,
    PairAccuracy,
    R,
    RPrecision,
    Success,
    TopAUC,
)
from ranktrees.objectives import GBRank, LambdaLoss, LambdaMART, RankNet, as_objective
from reference import objectives as slow
from widths import outputs_of


class TopLabel(Measure):
    """Of one's own: the label of the row that is ranked first."""

    name = "TopLabel"

    def of_query(self, labels, scores):
        return float(labels[np.argmax(scores)])


COMPILED = [
    NDCG,
    NDCG @ 3,
    NDCG(gain="linear", discount="letor") @ 4,
    DCG(discount=[1, 0.4, 0.2]),
    DCG(discount=[1, 1, 0.2]),
    ERR,
    ERR @ 2,
    ERR(max_grade=3) @ 5,
    AP,
    AP(rel=2) @ 3,
    RR,
    RR @ 2,
    Success @ 2,
    RBP,
    RBP(p=0.5, rel=2) @ 3,
    P @ 2,
    R(rel=2) @ 3,
    AUC,
    AUC(rel=2),
    TopAUC,
    TopAUC @ [0, 2],
    TopAUC @ [1, 3],
    PairAccuracy,
    KendallTau,
]
SWAPPED = [TopLabel(), RPrecision]
BY_FORMULA = [LambdaMART(measure, 4, 1.5, "cut") for measure in COMPILED]
FURTHER = [
    LambdaMART(ERR @ 5, 6, score_gap_norm=0.01),
    LambdaMART("map", None, 0.5, query_norm="log"),
    LambdaMART("mrr", query_norm="unit"),
    LambdaMART("ndcg@5", noise=0.7, n_orders=3, seed=5),
    LambdaMART("map", noise=1.0, query_norm="log", score_gap_norm=0.3),
    LambdaLoss(),
    LambdaLoss("dcg@4", 5, mu=2.0, score_gap_norm=0.3, query_norm="log", delta="cut"),
    LambdaLoss(noise=0.3, n_orders=2),
    RankNet(0.7, 4),
    RankNet(0.7, 4, score_gap_norm=0.3, query_norm="unit"),
    GBRank(),
    GBRank(margin=0.4, truncation_level=3),
]
SLOW = [LambdaMART(TopLabel(), 5, noise=0.5, n_orders=2, query_norm="unit")]
EVERY = [*BY_FORMULA, *(LambdaMART(measure) for measure in SWAPPED), *FURTHER, *SLOW]


def gradients_of(prepared, scores, iteration=0):
    gradients, hessians = np.full(len(scores), np.nan), np.full(len(scores), np.nan)
    prepared.gradients(scores, gradients, hessians, iteration)
    return np.array([gradients, hessians])


def make_queries(seed, n_queries=30, longest=40, grades=4, weighted=False):
    """Labels, weights, offsets and scores without ties; some queries have one row or one label."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest + 1, n_queries)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    labels = rng.integers(0, grades, offsets[-1]).astype(np.float64)
    for q in range(0, n_queries, 7):
        labels[offsets[q] : offsets[q + 1]] = q % 2
    weights = rng.integers(0, 5, offsets[-1]) / 2.0 if weighted else None
    return labels, weights, offsets, rng.permutation(offsets[-1]) / 50.0


def sums_of_pairs(deltas, labels, scores, places, top, sigma):
    """What the pairs of rows add up to: arrays of shape (..., n); places are ranks, deltas of pairs of
    rows."""
    better = (labels[..., :, None] > labels[..., None, :]).astype(float)
    within = np.minimum(places[..., :, None], places[..., None, :]) < top
    rho = 1 / (1 + np.exp(sigma * (scores[..., :, None] - scores[..., None, :])))  # of (better, worse)
    push = better * within * np.abs(deltas) * rho
    gradients = sigma * (push.sum(axis=-2) - push.sum(axis=-1))
    bend = push * (1 - rho)
    return np.array([gradients, sigma**2 * (bend.sum(axis=-2) + bend.sum(axis=-1))])


# ---- deltas ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", BY_FORMULA, ids=repr)
def test_lambdas_of_all_labels_equal_brute_force(objective):
    """Every tuple of labels up to length 6: each swap is looked up in a table of all values."""
    for n in range(2, 7):
        grades = 4 if n < 6 else 3
        labels = np.array(list(itertools.product(range(grades), repeat=n)), dtype=float)
        scores = np.tile(np.linspace(1.0, -1.0, n), (len(labels), 1))
        offsets = np.arange(0, labels.size + 1, n)
        values = np.nan_to_num(objective.measure.per_query(labels.ravel(), scores.ravel(), offsets))
        powers = grades ** np.arange(n - 1, -1, -1)
        deltas = np.zeros((len(labels), n, n))
        for i, j in itertools.combinations(range(n), 2):
            swapped = labels.copy()
            swapped[:, [i, j]] = labels[:, [j, i]]
            deltas[:, i, j] = deltas[:, j, i] = values[(swapped @ powers).astype(int)] - values
        expected = sums_of_pairs(deltas, labels, scores, np.arange(n), 4, 1.5).reshape(2, -1)
        got = gradients_of(objective.prepare(labels.ravel(), None, offsets), scores.ravel())
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("measure", [*COMPILED, *SWAPPED], ids=repr)
@pytest.mark.parametrize("top", [7, None])
def test_lambdas_of_long_queries_equal_those_of_the_deltas(measure, top):
    labels, weights, offsets, scores = make_queries(1, n_queries=12, longest=70, weighted=True)
    got = gradients_of(LambdaMART(measure, top, 0.8, "cut").prepare(labels, weights, offsets), scores)
    for start, stop in pairwise(offsets):
        rows = slice(start, stop)
        places = np.argsort(np.argsort(-scores[rows]))
        deltas = measure.deltas(labels[rows], scores[rows])
        expected = sums_of_pairs(deltas, labels[rows], scores[rows], places, top or 1000, 0.8)
        np.testing.assert_allclose(got[:, rows], expected * weights[rows], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("measure", [PairAccuracy, KendallTau], ids=repr)
def test_pairs_of_a_long_query_are_counted_without_a_square_of_numbers(measure):
    n = 4000
    scores = np.random.default_rng(0).normal(size=n)
    prepared = LambdaMART(measure).prepare(np.arange(n) % 5.0, None, np.array([0, n]))
    tracemalloc.start()
    gradients_of(prepared, scores)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 400 * n


@pytest.mark.parametrize("measure", [ERR @ 3, AP @ 3, RR @ 3, NDCG @ 3], ids=repr)
def test_full_deltas_are_those_without_the_cutoff(measure):
    labels, _, offsets, scores = make_queries(2)
    full = gradients_of(LambdaMART(measure).prepare(labels, None, offsets), scores)
    without = LambdaMART(measure(at=None), delta="cut").prepare(labels, None, offsets)
    if measure.name != "NDCG":  # which divides by the ideal at the cutoff
        np.testing.assert_array_equal(full, gradients_of(without, scores))
    assert (
        full != gradients_of(LambdaMART(measure, delta="cut").prepare(labels, None, offsets), scores)
    ).any()


def test_err_of_labels_that_nearly_always_satisfy():
    """1 - p is as small as 2^-50: it is divided out of numbers that hold it to the last digits."""
    labels, scores = np.array([50.0, 0.0, 49.0, 3.0, 50.0]), np.arange(5.0, 0.0, -1.0)
    got = gradients_of(LambdaMART(ERR(max_grade=50)).prepare(labels, None, np.array([0, 5])), scores)
    exact = [np.longdouble(2) ** label - 1 for label in labels]
    passing = [1 - stop / np.longdouble(2) ** 50 for stop in exact]

    def value(order):
        total, reach = np.longdouble(0), np.longdouble(1)
        for rank, row in enumerate(order, 1):
            total += reach * (1 - passing[row]) / rank
            reach *= passing[row]
        return total

    deltas = np.zeros((5, 5))
    for i, j in itertools.combinations(range(5), 2):
        order = np.arange(5)
        order[[i, j]] = j, i
        deltas[i, j] = deltas[j, i] = value(order) - value(range(5))
    expected = sums_of_pairs(deltas, labels, scores, np.arange(5), 30, 1.0)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-18)


# ---- derivatives -------------------------------------------------------------------------------------------


def weights_of_pairs(objective, labels, scores):
    """(weight, better row, worse row) of each pair that counts, from the definitions."""
    n = len(labels)
    order = slow.rank_rows(scores)
    if isinstance(objective, GBRank | RankNet):
        deltas = np.ones((n, n))
    else:
        measure, full = objective.measure, objective.delta == "full"
        if full and measure.name in ("DCG", "NDCG"):
            dcg = DCG(gain=measure.gain, discount=measure.discount)
            ideal = (
                (dcg @ (measure.at or n))(labels, labels, qid=np.zeros(n)) if measure.name == "NDCG" else 1.0
            )
            deltas = np.abs(dcg.deltas(labels, scores)) / ideal
        else:
            uncut = full and measure.name in ("ERR", "AP", "RR", "RBP")
            deltas = np.abs((measure(at=None) if uncut else measure).deltas(labels, scores))
    if isinstance(objective, LambdaLoss):
        gains, discounts = measures.gains(labels, measure.gain), measures.discounts(n + 1, measure.discount)
        for a, b, i, j in slow.pairs(labels, scores):
            near = abs(gains[i] - gains[j]) * (discounts[b - a - 1] - discounts[b - a])
            share = (DCG @ measure.at)(labels, labels, qid=np.zeros(n)) if measure.name == "NDCG" else 1.0
            deltas[i, j] = deltas[j, i] = deltas[i, j] + objective.mu * near / share
    if objective.score_gap_norm:
        deltas = deltas / (objective.score_gap_norm + np.abs(scores[:, None] - scores))
    top = min(objective.truncation_level or n, n)
    places = {row: place for place, row in enumerate(order)}
    return [
        (deltas[i, j], i, j)
        for i in range(n)
        for j in range(n)
        if labels[i] > labels[j] and min(places[i], places[j]) < top
    ]


FIXED = [objective for objective in EVERY if objective.noise == 0]


@pytest.mark.parametrize("objective", FIXED, ids=repr)
def test_gradients_are_the_derivatives_of_the_cost_while_ranks_stay(objective):
    labels = np.arange(11) * 7 % 4.0
    scores = np.random.default_rng(3).permutation(11) / 5.3
    gradients, hessians = gradients_of(objective.prepare(labels, None, np.array([0, 11])), scores)
    pairs = weights_of_pairs(objective, labels, scores)

    def cost(s):
        if isinstance(objective, GBRank):
            return sum(w * max(0, objective.margin - (s[i] - s[j])) ** 2 / 2 for w, i, j in pairs)
        return sum(w * math.log1p(math.exp(-objective.sigma * (s[i] - s[j]))) for w, i, j in pairs)

    moves = np.eye(11)
    slopes = np.array([cost(scores + 1e-5 * move) - cost(scores - 1e-5 * move) for move in moves]) / 2e-5
    norm = {"none": 1.0, "unit": 1 / np.abs(slopes).sum(), "log": None}[objective.query_norm]
    if norm is None or norm != 1.0:  # S counts what the pairs add before it cancels
        sizes = [
            w * objective.sigma / (1 + math.exp(objective.sigma * (scores[i] - scores[j])))
            for w, i, j in pairs
        ]
        size = 2 * sum(sizes)
        norm = 1 / size if objective.query_norm == "unit" else math.log2(1 + size) / size
    np.testing.assert_allclose(gradients, norm * slopes, rtol=1e-6, atol=1e-6)
    if not isinstance(objective, GBRank):  # whose slope has corners
        bends = [cost(scores + 1e-3 * move) - 2 * cost(scores) + cost(scores - 1e-3 * move) for move in moves]
        np.testing.assert_allclose(hessians, norm * np.array(bends) / 1e-6, rtol=1e-4, atol=1e-7)


def test_a_leaf_takes_the_newton_step_of_the_overview():
    """gamma = sum of lambda / sum of w over its rows (Burges' overview, section 7), by any measure."""
    X, y, qid = make_ranking(30, rows_per_query=12, random_state=0, return_X_y_qid=True)
    offsets = np.arange(0, len(y) + 1, 12)
    for measure in ("ndcg@5", "auc", "p@3"):
        ranker = LambdaMARTRanker(
            measure=measure,
            max_iter=1,
            learning_rate=1.0,
            query_norm="none",
            random_state=0,
        ).fit(X, y, qid=qid)
        prepared = LambdaMART(measure).prepare(y.astype(float), None, offsets)
        gradients, hessians = gradients_of(prepared, np.zeros(len(y)))
        leaf = ranker.ensemble_.leaves(X)[:, 0]
        steps = -np.bincount(leaf, gradients)[leaf] / np.bincount(leaf, hessians)[leaf]
        np.testing.assert_allclose(ranker.predict(X), steps, rtol=1e-6)


SCALED = [
    *(LambdaMART(measure, 5) for measure in (ERR @ 4, AP, RR, P @ 3, AUC, TopAUC @ [0, 3], PairAccuracy)),
    LambdaMART("ndcg@5", noise=1.0, n_orders=2),
    LambdaMART("map", query_norm="unit"),
    LambdaLoss(),
]


@pytest.mark.parametrize("objective", SCALED, ids=repr)
def test_sigma_only_scales_the_scores(objective):
    """At scores / sigma the Newton step is that of sigma = 1 over sigma; and so are the scores after it."""
    labels, _, offsets, _ = make_queries(13, n_queries=6)
    leaf = np.random.default_rng(0).integers(0, 4, len(labels))

    def train(sigma):
        prepared = as_objective(objective, sigma=sigma).prepare(labels, None, offsets)
        s = np.zeros(len(labels))
        for iteration in range(4):
            gradients, hessians = gradients_of(prepared, s, iteration)
            leaves = (leaf + (labels > iteration)) % 4
            s -= (0.3 * np.bincount(leaves, gradients, 4) / np.bincount(leaves, hessians, 4))[leaves]
        return s

    np.testing.assert_allclose(4.0 * train(4.0), train(1.0), rtol=1e-5, atol=1e-6)


# ---- orders ------------------------------------------------------------------------------------------------


def test_noise_gives_the_mean_over_random_orders():
    """Of one query, many orders: a row's place in them is that of the logistic distribution's winner."""
    labels, scores = np.array([2.0, 0.0]), np.array([0.3, -0.4])
    objective = LambdaMART("dcg@1", noise=0.8, n_orders=4000, delta="cut")
    got, _ = gradients_of(objective.prepare(labels, None, np.array([0, 2])), scores)
    np.testing.assert_allclose(got[1], 3 / (1 + math.exp(0.7)), rtol=1e-6)  # the swap counts in either order
    labels, scores = np.array([2.0, 0.0, 0.0]), np.array([0.3, -0.4, -0.4])
    prepared = objective.prepare(labels, None, np.array([0, 3]))
    got = np.mean([gradients_of(prepared, scores, iteration)[0] for iteration in range(5)], axis=0)
    rho = 1 / (1 + math.exp(0.7))
    uniform = np.random.default_rng(0).random((3, 400_000))
    best = (scores[:, None] + 0.8 * np.log(uniform / (1 - uniform))).argmax(axis=0)
    pairs = np.array([np.mean(best != 2), np.mean(best != 1)])  # a swap counts if one of the two is first
    np.testing.assert_allclose(got[1:], 3 * rho * pairs, rtol=0.01)


def test_noise_is_drawn_by_seed_round_and_row():
    labels, _, offsets, scores = make_queries(4, n_queries=8, longest=15)
    for measure in ("ndcg@5", "map", TopLabel()):
        prepared = LambdaMART(measure, noise=1.0, seed=3).prepare(labels, None, offsets)
        first = gradients_of(prepared, scores, 7)
        assert (gradients_of(prepared, scores, 8) != first).any()
        np.testing.assert_array_equal(gradients_of(prepared, scores, 7), first)
        other = LambdaMART(measure, noise=1.0, seed=4).prepare(labels, None, offsets)
        assert (gradients_of(other, scores, 7) != first).any()


@pytest.mark.parametrize("measure", [AP, ERR @ 3, DCG(discount=[1, 1, 0.2]), TopLabel()], ids=repr)
def test_equal_scores_mean_any_order(measure):
    """The mean of all orders, or of a few drawn at random, not the order of the file."""
    labels, offsets = np.array([3.0, 0, 0, 1, 0, 0, 2, 0]), np.array([0, 8])
    prepared = LambdaMART(measure, None, delta="cut").prepare(labels, None, offsets)
    got = np.mean([gradients_of(prepared, np.zeros(8), iteration)[0] for iteration in range(60)], axis=0)
    random = np.random.default_rng(0)
    orders = [random.permutation(8).astype(float) for _ in range(3000)]
    deltas = np.mean([np.abs(measure.deltas(labels, order)) for order in orders], axis=0)
    expected, _ = sums_of_pairs(deltas, labels, np.zeros(8), np.arange(8), 8, 1.0)
    np.testing.assert_allclose(got, expected, atol=0.06 * np.abs(expected).max())


# ---- laws --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("objective", EVERY, ids=repr)
def test_threads_and_calls_before_do_not_change_a_bit(objective):
    labels, weights, offsets, scores = make_queries(6, longest=20, weighted=True)
    scores[offsets[2] : offsets[3]] = 1.0
    prepared = objective.prepare(labels, weights, offsets, 1)
    expected = gradients_of(prepared, scores)
    assert np.isfinite(expected).all()
    assert (expected[1] >= 0).all()
    gradients_of(prepared, -scores)
    np.testing.assert_array_equal(gradients_of(prepared, scores), expected)
    for n_threads in (2, 4):
        again = objective.prepare(labels, weights, offsets, n_threads)
        np.testing.assert_array_equal(gradients_of(again, scores), expected)
        assert again.loss(scores) == prepared.loss(scores)


@pytest.mark.parametrize("objective", EVERY, ids=repr)
def test_lambdas_of_scores_far_apart_are_finite_and_sum_to_zero(objective):
    labels, _, offsets, scores = make_queries(5, n_queries=8, longest=20)
    for scale in (0.01, 1.0, 1e3, 1e6):
        gradients, hessians = gradients_of(objective.prepare(labels, None, offsets), scale * scores)
        sums = np.add.reduceat(gradients, offsets[:-1])
        assert np.abs(sums).max() <= 1e-7 * max(np.abs(gradients).max(), 1e-300) * np.diff(offsets).max()
        assert (hessians >= 0).all()


def test_pairs_far_apart_are_divided_by_their_gap():
    labels, _, offsets, _ = make_queries(11, n_queries=20)
    for spread in (1.0, 30.0, 300.0):
        scores = np.random.default_rng(0).normal(0.0, spread, len(labels))
        prepared = LambdaMART(PairAccuracy, None, score_gap_norm=0.3).prepare(labels, None, offsets)
        got, expected = gradients_of(prepared, scores), np.zeros((2, len(labels)))
        for start, stop in itertools.pairwise(offsets):
            rows = slice(start, stop)
            places = np.argsort(np.argsort(-scores[rows]))
            gaps = 0.3 + np.abs(scores[rows, None] - scores[rows])
            deltas = PairAccuracy.deltas(labels[rows], scores[rows]) / gaps
            with np.errstate(over="ignore"):
                expected[:, rows] = sums_of_pairs(
                    deltas, labels[rows], scores[rows], places, stop - start, 1.0
                )
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6 * np.abs(expected).max())


def test_widths_of_registers_do_not_change_a_bit():
    program = (
        "import numpy as np, test_pairwise as t, test_listwise as l\n"
        "labels, weights, offsets, scores = t.make_queries(19, longest=100, weighted=True)\n"
        "scores[offsets[2] : offsets[3]] = 1.0\n"
        "for objective in t.BY_FORMULA[1::3] + t.FURTHER + l.LISTWISE:\n"
        "    for scale in (1.0, 100.0):\n"
        "        prepared = objective.prepare(labels, weights, offsets)\n"
        "        print(t.gradients_of(prepared, scale * scores).tobytes().hex())\n"
    )
    assert len(outputs_of(program)) == 1
