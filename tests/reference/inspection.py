"""Shapley values by their definition: a sum over all sets of features."""

from itertools import combinations, permutations
from math import factorial

import numpy as np

from reference.scoring import goes_left


def expected(ensemble, t, row, known, i=0):
    """The expected output of tree t for a row of which some features are known."""
    nodes = ensemble.nodes[ensemble.tree_offsets[t] : ensemble.tree_offsets[t + 1]]
    node = nodes[i]
    if node["feature"] < 0:
        return float(node["value"])
    left, right = int(node["left"]), int(node["right"])
    if node["feature"] in known:
        side = left if goes_left(ensemble, node, float(row[node["feature"]])) else right
        return expected(ensemble, t, row, known, side)
    sides = [expected(ensemble, t, row, known, side) for side in (left, right)]
    return np.average(sides, weights=nodes["count"][[left, right]])


def value(ensemble, row, known):
    total = sum(expected(ensemble, t, row, known) for t in range(ensemble.n_trees))
    return ensemble.base + (total / max(ensemble.n_trees, 1) if ensemble.average else total)


def contributions(ensemble, X):
    n = ensemble.n_features
    parts = np.zeros((len(X), n))
    for row, out in zip(X, parts, strict=True):
        for feature in range(n):
            others = [other for other in range(n) if other != feature]
            for size in range(n):
                weight = factorial(size) * factorial(n - size - 1) / factorial(n)
                for known in combinations(others, size):
                    out[feature] += weight * (
                        value(ensemble, row, {*known, feature}) - value(ensemble, row, known)
                    )
    return parts, np.array([value(ensemble, row, ()) for row in X])


def interactions(ensemble, X):
    n = ensemble.n_features
    pairs = np.zeros((len(X), n, n))
    for row, out in zip(X, pairs, strict=True):
        values = {
            known: value(ensemble, row, known)
            for size in range(n + 1)
            for known in combinations(range(n), size)
        }
        for i, j in permutations(range(n), 2):
            for known in values:
                if i not in known and j not in known:
                    with_i, with_j, with_both = (
                        values[tuple(sorted({*known, *more}))] for more in ((i,), (j,), (i, j))
                    )
                    weight = factorial(len(known)) * factorial(n - len(known) - 2) / factorial(n - 1) / 2
                    out[i, j] += weight * (with_both - with_i - with_j + values[known])
    own = np.arange(n)
    pairs[:, own, own] = contributions(ensemble, X)[0] - pairs.sum(axis=2)
    return pairs


def moved(ensemble, X, y, qid, measure, distance, directions):
    """The measure after the values of all leaves that rows reach are moved: one value for each direction."""
    reached = np.unique(ensemble.leaves(X) + ensemble.tree_offsets[:-1])
    values = []
    for direction in directions:
        nodes = ensemble.nodes.copy()
        move = direction / np.linalg.norm(direction) * np.linalg.norm(nodes["value"][reached]) * distance
        nodes["value"][reached] += move
        values.append(measure(y, ensemble._replace(nodes=nodes).predict(X), qid=qid))
    return len(reached), np.array(values)
