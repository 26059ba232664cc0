"""Learn from preferences one judgement at a time, and from clicks one pair at a time."""

import math
from itertools import pairwise

import numpy as np


def cross_entropy(gap, sigma=1.0):
    """The cost of a pair whose better row scores higher by gap."""
    return math.log1p(math.exp(-sigma * gap))


def squared_hinge(gap, margin=1.0):
    return max(0.0, margin - gap) ** 2 / 2


def mean_cost(cost, pairs, weights, targets, scores):
    total = 0.0
    for (i, j), weight, target in zip(pairs, weights, targets, strict=True):
        total += weight * target * cost(scores[i] - scores[j])
        total += weight * (1 - target) * cost(scores[j] - scores[i])
    return total / sum(weights)


def preference_gradients(sigma, pairs, weights, targets, scores):
    """The gradients and hessians of the cross entropy: an array of shape (2, n_rows)."""
    out = np.zeros((2, len(scores)))
    for (i, j), weight, target in zip(pairs, weights, targets, strict=True):
        p = 1 / (1 + math.exp(-sigma * (scores[i] - scores[j])))
        out[0, i] += weight * sigma * (p - target)
        out[0, j] -= weight * sigma * (p - target)
        out[1, [i, j]] += weight * sigma**2 * p * (1 - p)
    return out


def click_gradients(measure, top, sigma, labels, weights, offsets, scores, positions, clicked, unclicked):
    """Gradients and hessians of unbiased LambdaMART, and the cost of each position's pairs; no equal scores.

    clicked and unclicked are t+ and t- of the positions 1, 2, ... Without a measure, every pair has weight 1.
    """
    out = np.zeros((2, len(scores)))
    costs = np.zeros((2, len(clicked)))
    for start, stop in pairwise(offsets):
        rows = slice(start, stop)
        deltas = np.ones((stop - start, stop - start))
        if measure is not None:
            deltas = np.abs(measure.deltas(labels[rows], scores[rows]))
        places = np.argsort(np.argsort(-scores[rows]))
        for i in range(start, stop):
            for j in range(start, stop):
                if labels[i] > labels[j] and min(places[i - start], places[j - start]) < top:
                    k, m = positions[i] - 1, positions[j] - 1
                    delta = deltas[i - start, j - start]
                    rho = 1 / (1 + math.exp(sigma * (scores[i] - scores[j])))
                    push = delta / (clicked[k] * unclicked[m])
                    out[0, i] -= weights[i] * sigma * push * rho
                    out[0, j] += weights[j] * sigma * push * rho
                    out[1, i] += weights[i] * sigma**2 * push * rho * (1 - rho)
                    out[1, j] += weights[j] * sigma**2 * push * rho * (1 - rho)
                    cost = delta * cross_entropy(scores[i] - scores[j], sigma)
                    costs[0, k] += weights[i] * cost / unclicked[m]
                    costs[1, m] += weights[j] * cost / clicked[k]
    return out, costs
