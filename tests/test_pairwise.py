"""Objectives of pairs by any measure, any worth of ranks and any order: against brute force, and by their
laws."""

import itertools
import math
from itertools import pairwise

import numpy as np
import pytest

from ranktrees import measures
from ranktrees.measures import (
    AP,
    AUC,
    DCG,
    ERR,
    NDCG,
    PAUC,
    RR,
    KendallTau,
    Measure,
    P,
    PairAccuracy,
    R,
)
from ranktrees.objectives import GBRank, LambdaLoss, LambdaMART
from reference import objectives as slow


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
    ERR,
    ERR @ 2,
    ERR(max_grade=3) @ 5,
    AP,
    AP(rel=2) @ 3,
    RR,
    RR @ 2,
    P @ 2,
    R(rel=2) @ 3,
    AUC,
    AUC(rel=2),
    PAUC,
    PAUC @ [0, 2],
    PAUC @ [1, 3],
]
SWAPPED = [PairAccuracy, KendallTau, TopLabel()]
BY_FORMULA = [LambdaMART(measure, 4, 1.5, "cut") for measure in COMPILED]
FURTHER = [
    LambdaMART(ERR @ 5, 6, score_gap_norm=True),
    LambdaMART("map", None, 0.5, query_norm="log"),
    LambdaMART("mrr", query_norm="unit"),
    LambdaMART("ndcg@5", noise=0.7, n_orders=3, seed=5),
    LambdaMART("map", noise=1.0, query_norm="log", score_gap_norm=True),
    LambdaMART(TopLabel(), 5, noise=0.5, n_orders=2, query_norm="unit"),
    LambdaLoss(),
    LambdaLoss("dcg@4", 5, mu=2.0, score_gap_norm=True, query_norm="log", delta="cut"),
    LambdaLoss(noise=0.3, n_orders=2),
    GBRank(),
    GBRank(margin=0.4, truncation_level=3),
]
EVERY = [*BY_FORMULA, *(LambdaMART(measure) for measure in SWAPPED), *FURTHER]


def gradients_of(bound, scores, iteration=0):
    gradients, hessians = np.full(len(scores), np.nan), np.full(len(scores), np.nan)
    bound.gradients(scores, gradients, hessians, iteration)
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
        got = gradients_of(objective.bind(labels.ravel(), None, offsets), scores.ravel())
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("measure", [*COMPILED, *SWAPPED], ids=repr)
@pytest.mark.parametrize("top", [7, None])
def test_lambdas_of_long_queries_equal_those_of_the_deltas(measure, top):
    labels, weights, offsets, scores = make_queries(1, n_queries=12, longest=70, weighted=True)
    got = gradients_of(LambdaMART(measure, top, 0.8, "cut").bind(labels, weights, offsets), scores)
    for start, stop in pairwise(offsets):
        rows = slice(start, stop)
        places = np.argsort(np.argsort(-scores[rows]))
        deltas = measure.deltas(labels[rows], scores[rows])
        expected = sums_of_pairs(deltas, labels[rows], scores[rows], places, top or 1000, 0.8)
        np.testing.assert_allclose(got[:, rows], expected * weights[rows], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("measure", [ERR @ 3, AP @ 3, RR @ 3, NDCG @ 3], ids=repr)
def test_full_deltas_are_those_without_the_cutoff(measure):
    labels, _, offsets, scores = make_queries(2)
    full = gradients_of(LambdaMART(measure).bind(labels, None, offsets), scores)
    without = LambdaMART(measure(at=None), delta="cut").bind(labels, None, offsets)
    if measure.name != "NDCG":  # which divides by the ideal at the cutoff
        np.testing.assert_array_equal(full, gradients_of(without, scores))
    assert (full != gradients_of(LambdaMART(measure, delta="cut").bind(labels, None, offsets), scores)).any()


def test_err_of_labels_that_nearly_always_satisfy():
    """1 - p is as small as 2^-50: it is divided out of numbers that hold it to the last digits."""
    labels, scores = np.array([50.0, 0.0, 49.0, 3.0, 50.0]), np.arange(5.0, 0.0, -1.0)
    got = gradients_of(LambdaMART(ERR(max_grade=50)).bind(labels, None, np.array([0, 5])), scores)
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


@pytest.mark.parametrize("objective", [o for o in EVERY if o.noise == 0 and o.query_norm == "none"], ids=repr)
def test_gradients_are_the_derivatives_of_the_cost_while_ranks_stay(objective):
    """The weight of a pair is what its gradient is at equal scores; held fixed, the costs add up to the
    loss."""
    labels, _, offsets, scores = make_queries(3, n_queries=1, longest=12)
    labels = np.arange(len(labels)) * 7 % 4.0
    n = len(labels)
    bound = objective.bind(labels, None, offsets)
    gradients, hessians = gradients_of(bound, scores)
    top = min(objective.truncation_level or n, n)
    order = slow.rank_rows(scores)

    def weight(a, b):
        i, j = order[a], order[b]
        if isinstance(objective, GBRank):
            return 1.0
        measure = objective.measure
        whole = (
            measure
            if objective.delta == "cut" or measure.name == "TopLabel"
            else measure(
                **{"at": None}
                if "at" in measure.parameters and measure.name not in ("P", "R", "PAUC")
                else {"ties": "average"}
                if "ties" in measure.parameters
                else {"empty_query": "skip"}
            )
        )
        delta = abs(whole.deltas(labels, scores)[i, j])
        if measure.name in ("NDCG", "DCG") and objective.delta == "full":
            dcg = DCG(gain=measure.gain, discount=measure.discount)
            delta = abs(dcg.deltas(labels, scores)[i, j])
            if measure.name == "NDCG":
                delta /= (dcg @ (measure.at or n))(labels, labels)
        if isinstance(objective, LambdaLoss):
            discounts = measures.discounts(n + 1, measure.discount)
            gains = measures.gains(labels, measure.gain)
            share = (DCG(gain=measure.gain) @ measure.at)(labels, labels) if measure.name == "NDCG" else 1.0
            delta += (
                objective.mu * (discounts[b - a - 1] - discounts[b - a]) * abs(gains[i] - gains[j]) / share
            )
        return delta / (0.01 + abs(scores[i] - scores[j]) if objective.score_gap_norm else 1.0)

    pairs = [
        (weight(a, b), *((i, j) if labels[i] > labels[j] else (j, i)))
        for a, b, i, j in slow.pairs(labels, scores, top)
    ]

    def cost(s):
        if isinstance(objective, GBRank):
            return sum(w * max(0, objective.margin - (s[i] - s[j])) ** 2 / 2 for w, i, j in pairs)
        return sum(w * math.log1p(math.exp(-objective.sigma * (s[i] - s[j]))) for w, i, j in pairs)

    for row in range(n):
        step = np.eye(n)[row]
        slope = (cost(scores + 1e-5 * step) - cost(scores - 1e-5 * step)) / 2e-5
        assert gradients[row] == pytest.approx(slope, rel=1e-6, abs=1e-8)
        if not isinstance(objective, GBRank):  # whose second derivative jumps
            bend = (cost(scores + 1e-3 * step) - 2 * cost(scores) + cost(scores - 1e-3 * step)) / 1e-6
            assert hessians[row] == pytest.approx(bend, rel=1e-4, abs=1e-6)
