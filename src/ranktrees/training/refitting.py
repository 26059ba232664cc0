r"""New values for the leaves of a finished ensemble, from other rows but with the same splits.

::

    for each tree, in turn:
        gradients, hessians = objective(labels, scores)
        value of a leaf = decay * old + (1 - decay) * new        new: from the gradients of its rows
        scores += value of the row's leaf

Where a tree splits the rows was learned from many rows. What the leaves are worth can be learned from few.
LightGBM's ``refit`` does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees._core.support.dtypes import LEAF
from ranktrees.growing.grown import Grown
from ranktrees.support.divergence import refuse_infinite
from ranktrees.training.boosting import newton_step, quantile_values
from ranktrees.training.rates import rate_by

if TYPE_CHECKING:
    from ranktrees.model.ensemble import Ensemble
    from ranktrees.training.boosting import FollowedRows

# Rows are walked down this many trees at a time, so that the leaves that they reach take little memory.
TREES = 64


def refit_leaves(
    ensemble: Ensemble,
    train: FollowedRows,
    *,
    first: int = 0,
    learning_rate: Any,
    l2_regularization: float = 0.0,
    leaf_quantile: float | None = None,
    step: Callable[..., float] | None = None,
    mean_leaves: bool = False,
    decay: float = 0.9,
    n_threads: int = 1,
) -> Ensemble:
    r"""Blend the values of leaves with those that training on other rows would have given them.

    The new value of a leaf is that of a boosting round (see `ranktrees.training.boosting.boost`),
    :math:`-\eta\, G / (H + \lambda)`, with the gradients at the scores of the trees before it, whose leaves
    are refitted already. In a forest every tree starts anew. A leaf that no row reaches keeps its value. The
    gains and counts of the nodes remain those of the rows by which the splits were found.

    Parameters
    ----------
    ensemble : Ensemble
        The trees.
    train : FollowedRows
        The rows, the loss to reduce on them, and the scores to start from, which are updated in place.
    first : int, default=0
        The number of trees that stay as they are. The scores to start from are those of these trees.
    learning_rate : float, or those of the rounds, see `ranktrees.training.rates.rate_by`
        The factor :math:`\eta` of the new values.
    l2_regularization : float, default=0.0
        The term :math:`\lambda` in the denominator.
    leaf_quantile : float or None, default=None
        For losses whose best leaf value is a quantile of the residuals rather than a Newton step.
    step : callable or None, default=None
        Called with the scores, what the new values of a tree add to them, and the weight that is a Newton
        step. It returns a weight of the new values, which is multiplied by ``learning_rate``.
    mean_leaves : bool, default=False
        Whether the new values are the means of the negative gradients rather than Newton steps.
    decay : float, default=0.9
        The share of the old values, in [0, 1].
    n_threads : int, default=1
        The number of threads. No value depends on it.

    Returns
    -------
    Ensemble
    """
    data, scores = train.data, train.scores
    rate = rate_by(learning_rate)
    nodes, tree_offsets = ensemble.nodes.copy(), ensemble.tree_offsets
    gradients, hessians = np.empty(len(scores)), np.empty(len(scores))
    row_weights = np.ones(len(scores)) if data.weights is None else data.weights
    counting = slice(None) if data.weights is None else data.weights > 0
    for t in range(first, len(ensemble)):
        walked = (t - first) % TREES
        if walked == 0:
            some_trees = ensemble.first(min(t + TREES, len(ensemble))).after(t)
            leaves = data.internal(some_trees.leaves(data.X, n_jobs=n_threads))
        tree = nodes[tree_offsets[t] : tree_offsets[t + 1]]
        train.prepared.gradients(scores, gradients, hessians, t - first)
        refuse_infinite(gradients, hessians)
        grown = _grown_again(tree, leaves[:, walked], n_threads)
        grown.set_values(gradients, row_weights if mean_leaves else hessians, l2_regularization)
        new = grown.values
        if leaf_quantile is not None:
            new = quantile_values(grown, train, leaf_quantile, n_threads)
        weight = rate(t - first)
        if step is not None:
            tree_scores = np.zeros(len(scores))
            grown.add(new, tree_scores)
            newton = newton_step(grown, new, gradients, hessians) if mean_leaves else 1.0
            weight *= step(scores, tree_scores, newton)
        reached = np.bincount(leaves[counting, walked], minlength=len(tree)) > 0
        changes = reached & (decay < 1.0)  # so that -0.0 stays what it is
        with np.errstate(over="ignore"):
            blended = decay * tree["value"] + (1.0 - decay) * (weight * new)
        tree["value"] = np.where(changes, blended, tree["value"])
        refuse_infinite(tree["value"])
        if not ensemble.average:
            grown.add(np.ascontiguousarray(tree["value"]), scores)
    return ensemble._replace(nodes=nodes)


def _grown_again(tree: np.ndarray, leaf_of_row: np.ndarray, n_threads: int) -> Grown:
    """Return the tree as if it had been grown from these rows."""
    leaves = np.zeros(len(tree), LEAF)
    n_rows = np.bincount(leaf_of_row, minlength=len(tree))
    leaves["left"], leaves["right"] = tree["left"], tree["right"]
    leaves["total"]["count"], leaves["stop"] = n_rows, np.cumsum(n_rows)
    leaves["start"] = leaves["stop"] - n_rows
    leaves["lower"], leaves["upper"] = -np.inf, np.inf
    narrow = leaf_of_row.astype(np.min_scalar_type(len(tree)))  # NumPy sorts narrow integers in linear time
    order = np.argsort(narrow, kind="stable").astype(np.uint32)
    return Grown(leaves, order, n_threads)
