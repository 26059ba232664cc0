"""Ordinal classification, one row at a time."""

from itertools import pairwise

import numpy as np


def pool(values):
    """Pool neighbours that fall until none do (Ayer et al., 1955). The value of each block is its mean."""
    blocks = []
    for value in values:
        blocks.append([value])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    return [np.mean(block) for block in blocks for _ in block]


def class_probabilities(cumulative):
    rows = []
    for row in cumulative:
        at_most = [0.0, *pool([min(max(value, 0.0), 1.0) for value in row]), 1.0]
        rows.append([after - before for before, after in pairwise(at_most)])
    return np.array(rows)


def least_squares_values(probabilities, labels, grades, weights=None):
    weights = np.ones(len(labels)) if weights is None else weights
    rows = np.vstack([probabilities, np.eye(len(grades))])
    roots = np.sqrt(np.append(weights, np.full(len(grades), weights.mean())))
    targets = np.append(labels, grades)
    return np.linalg.lstsq(rows * roots[:, None], targets * roots)[0]
