"""Shapley values by their definition: a sum over all sets of features."""

from itertools import combinations
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


def contributions(ensemble, X):
    n, n_trees = ensemble.n_features, ensemble.n_trees

    def value(row, known):
        total = sum(expected(ensemble, t, row, known) for t in range(n_trees))
        return ensemble.base + (total / max(n_trees, 1) if ensemble.average else total)

    parts = np.zeros((len(X), n))
    for row, out in zip(X, parts, strict=True):
        for feature in range(n):
            others = [other for other in range(n) if other != feature]
            for size in range(n):
                weight = factorial(size) * factorial(n - size - 1) / factorial(n)
                for known in combinations(others, size):
                    out[feature] += weight * (value(row, {*known, feature}) - value(row, known))
    return parts, np.array([value(row, ()) for row in X])


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
