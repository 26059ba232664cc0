"""A twin of refitting: each row walks down each tree, and sums are made in Python."""

import math

import numpy as np


def leaf_of(nodes, x):
    k = 0
    while nodes["feature"][k] >= 0:
        value = x[nodes["feature"][k]]
        left = nodes["missing_left"][k] if np.isnan(value) else value <= nodes["cut"][k]
        k = nodes["left"][k] if left else nodes["right"][k]
    return k


def refit(ensemble, X, gradients_at, decay, learning_rate, l2):
    """The values of the nodes of each tree; ``gradients_at(scores)`` returns gradients and hessians."""
    scores, values = np.full(len(X), ensemble.base), []
    for t in range(len(ensemble)):
        nodes = ensemble[t].nodes
        leaves = np.array([leaf_of(nodes, x) for x in X])
        gradients, hessians = gradients_at(scores)
        new = nodes["value"].copy()
        for k in set(leaves.tolist()):
            here = leaves == k
            step = -math.fsum(gradients[here]) / (math.fsum(hessians[here]) + l2)
            new[k] = decay * new[k] + (1 - decay) * learning_rate * step
        scores = scores + new[leaves]
        values.append(new)
    return np.concatenate(values)
