"""Objectives, one row or one pair at a time."""

import math
from itertools import pairwise

import numpy as np

# ---- pointwise: loss(score, label) -------------------------------------------------------------------------


def squared_error(score, label):
    return (score - label) ** 2 / 2


def absolute_error(score, label):
    return abs(score - label)


def pinball(quantile):
    return lambda score, label: max(quantile * (label - score), (quantile - 1) * (label - score))


def poisson(score, label):
    return math.exp(score) - label * score


def gamma(score, label):
    return label * math.exp(-score) + score


def logistic(positive=1.0, negative=1.0):
    def loss(score, label):
        return positive * label * np.logaddexp(0, -score) + negative * (1 - label) * np.logaddexp(0, score)

    return loss


def softmax(scores, label, weights):
    """The loss, gradients and hessians of a row with a score for each class."""
    powers = np.exp(np.asarray(scores, np.longdouble) - np.max(scores))
    n, shares = len(scores), powers / powers.sum()
    hit, weight = np.arange(n) == label, weights[label]
    rest = np.array([powers[np.arange(n) != k].sum() for k in range(n)]) / powers.sum()
    gradients = weight * np.where(hit, -rest, shares)
    return -weight * np.log(shares[label]), gradients, weight * n / (n - 1) * shares * rest


def mean_loss(loss, labels, weights, scores):
    weights = np.ones(len(labels)) if weights is None else weights
    return sum(w * loss(s, y) for w, s, y in zip(weights, scores, labels, strict=True)) / weights.sum()


def slope(loss, score, label, step=1e-5):
    return (loss(score + step, label) - loss(score - step, label)) / (2 * step)


def bend(loss, score, label, step=1e-4):
    return (loss(score + step, label) - 2 * loss(score, label) + loss(score - step, label)) / step**2


# ---- quantiles ---------------------------------------------------------------------------------------------


def quantile(values, counts, share):
    """The quantile of values that occur ``counts`` times each: NumPy's "averaged_inverted_cdf"."""
    repeated = np.repeat(values, counts)
    return float(np.quantile(repeated, share, method="averaged_inverted_cdf")) if len(repeated) else 0.0


# ---- pairwise ----------------------------------------------------------------------------------------------


def rank_rows(scores):
    """The rows from the best score to the worst, with ties in the order of the rows."""
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))


def pairs(labels, scores, truncation_level=None):
    """All (rank_i, rank_j, row_i, row_j) that count: i is above j and within the level, and labels differ."""
    order = rank_rows(scores)
    for a in range(len(order)):
        for b in range(a + 1, len(order)):
            if labels[order[a]] != labels[order[b]] and (truncation_level is None or a < truncation_level):
                yield a, b, order[a], order[b]


def ideal_dcg(gains, discounts):
    return sum(
        gain * discount for gain, discount in zip(sorted(gains, reverse=True), discounts, strict=False)
    )


def query_lambdas(
    labels,
    scores,
    *,
    gains=None,
    discounts=None,
    at=None,
    normalised=True,
    truncation_level=None,
    sigma=1.0,
    delta="full",
    score_gap_norm=None,
    query_norm="none",
):
    """Gradients and hessians of one query. Without gains and discounts, every pair has weight 1: RankNet."""
    n = len(labels)
    gradients, hessians, size = np.zeros(n), np.zeros(n), 0.0
    at = n if at is None else at
    ideal = 1.0
    if gains is not None and normalised:
        ideal = ideal_dcg(gains, discounts[:at])
        if ideal == 0:
            return gradients, hessians

    def worth(rank_i, rank_j):
        if gains is None:
            return 1.0
        discount = [discounts[rank] if delta == "full" or rank < at else 0.0 for rank in (rank_i, rank_j)]
        return abs(discount[0] - discount[1])

    found, undecided = list(pairs(labels, scores, truncation_level)), n > 1 and max(scores) == min(scores)
    if undecided:  # every order is equally likely
        top = n if truncation_level is None else truncation_level
        places = [(a, b) for a in range(n) for b in range(a + 1, n)]
        mean_worth = sum(worth(a, b) for a, b in places if a < top) / len(places)
        found = [(0, 1, i, j) for i in range(n) for j in range(i + 1, n) if labels[i] != labels[j]]
    for rank_i, rank_j, i, j in found:
        weight = mean_worth if undecided else worth(rank_i, rank_j)
        if gains is not None:
            weight *= abs(gains[i] - gains[j]) / ideal
        if score_gap_norm and max(scores) != min(scores):
            weight /= score_gap_norm + abs(scores[i] - scores[j])
        better, worse = (i, j) if labels[i] > labels[j] else (j, i)
        rho = 1 / (1 + math.exp(sigma * (scores[better] - scores[worse])))
        gradients[better] -= sigma * weight * rho
        gradients[worse] += sigma * weight * rho
        hessians[[i, j]] += sigma**2 * weight * rho * (1 - rho)
        size += 2 * sigma * weight * rho
    if query_norm == "log" and size > 0:
        gradients *= math.log2(1 + size) / size
        hessians *= math.log2(1 + size) / size
    return gradients, hessians


def pair_loss(labels, weights, offsets, scores, sigma=1.0, truncation_level=None):
    """RankNet's mean cost of a pair; the weight of a pair is the mean of its rows' weights."""
    cost = count = 0.0
    for start, stop in pairwise(offsets):
        y, s, w = labels[start:stop], scores[start:stop], weights[start:stop]
        for _, _, i, j in pairs(y, s, truncation_level):
            better, worse = (i, j) if y[i] > y[j] else (j, i)
            weight = (w[i] + w[j]) / 2
            cost += weight * math.log1p(math.exp(-sigma * (s[better] - s[worse])))
            count += weight
    return cost / count if count else math.nan
