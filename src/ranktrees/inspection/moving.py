"""Whether other values of the leaves would rank better."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.special import betaincinv
from sklearn.utils import check_random_state

from ranktrees.evaluation.combining import shares_of_queries
from ranktrees.evaluation.own_models import fitted_trees
from ranktrees.measures import as_measure
from ranktrees.measures.rows import arranged, checked_rows
from ranktrees.rows import check_rows, find_query_of_rows, warn_of_order
from ranktrees.support.numeric import is_real, is_whole

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ranktrees.measures.named import AnyMeasure
    from ranktrees.support.annotations import IdsLike, RowsLike


@dataclass(frozen=True)
class LocalOptimum:
    """How often a measure rises if a model is moved a little; see `local_optimum`.

    Attributes
    ----------
    value : float
        The value of the measure with the leaves as they are.
    values : ndarray of float64, shape (n_directions,)
        Its value after each move.
    n_better, n_worse : int
        The number of moves after which it is better, and after which it is worse.
    share_at_most : float
        With the confidence asked for, the share of all directions in which it gets better is at most this.
    """

    value: float
    values: np.ndarray = field(repr=False, compare=False)
    n_better: int
    n_worse: int
    share_at_most: float


def local_optimum(
    model: Any,
    X: RowsLike,
    y: ArrayLike,
    *,
    qid: IdsLike | None = None,
    measure: AnyMeasure = "ndcg@10",
    n_directions: int = 459,
    distance: float = 0.01,
    confidence: float = 0.99,
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> LocalOptimum:
    r"""Test whether a measure is at a local optimum on these rows, by moving the values of leaves at random.

    All leaves that rows reach are moved together, in a direction drawn from a spherical Gaussian, and the
    measure is computed anew. If it gets better in none of :math:`n` directions, then with confidence
    :math:`1 - \delta` it does so in at most a share :math:`p_0` of all, where
    :math:`(1 - p_0)^n = \delta`: 459 directions make sure of 1 % with a confidence of 99 %. If it gets better
    in :math:`k` of them, :math:`p_0` is the upper end of the one-sided interval of Clopper and Pearson, which
    for :math:`k = 0` is the same.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble.
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        Rows, as for the `predict` of the model: for what training has optimised, the training rows.
    y, qid, sample_weight
        As for `optimal_weight`.
    measure : str or Measure, default="ndcg@10"
        Any measure that depends only on the order of the rows.
    n_directions : int, default=459
        The number of directions.
    distance : float, default=0.01
        How far the values are moved: the length of each move, as a share of the length of the vector of all
        values. A measure is constant on a small scale: if ``n_worse`` is small, so were the moves.
    confidence : float in (0, 1), default=0.99
        The confidence :math:`1 - \delta`.
    random_state : int, RandomState or None, default=None
        The source of the directions. With an int, they are the same each time.

    Returns
    -------
    LocalOptimum

    Raises
    ------
    TypeError
        If the model is not one of this library that is made of trees.
    ValueError
        If a number is out of its range, if the model has no trees, if the measure depends on how far the
        scores are apart (RMSE), or if it is not defined on any query.

    Notes
    -----
    The result speaks of the values of the leaves, not of other splits. It takes 12 bytes of memory for each
    row and tree.

    References
    ----------
    Burges, *From RankNet to LambdaRank to LambdaMART: an overview*, MSR-TR-2010-82, section 4.2, where the
    weights of a net are moved.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> from ranktrees.inspection import local_optimum
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=5, random_state=0).fit(X, y, qid=qid)
    >>> found = local_optimum(ranker, X, y, qid=qid, n_directions=20, distance=0.1, random_state=0)
    >>> found.values.shape, 0 <= found.n_better <= 20
    ((20,), True)
    """
    if not is_whole(n_directions, 1):
        raise ValueError(f"n_directions={n_directions!r}; expected a whole number >= 1.")
    for name, number, most in (("distance", distance, math.inf), ("confidence", confidence, 1.0)):
        if not (is_real(number) and 0 < number < most):
            raise ValueError(f"{name}={number!r}; expected a number > 0 and < {most:g}.")
    measure = as_measure(measure)
    model = fitted_trees(model)
    if not len(model.ensemble_):
        raise ValueError("model has no trees, so there are no leaves to move; expected at least one tree.")
    ensemble, rows = model.ensemble_, check_rows(model, X, reset=False)
    scores, n_threads = model._scores(X, rows), model._threads_to_score(rows)
    warn_of_order({"X": X, "y": y, "qid": qid, "sample_weight": sample_weight})
    qid = find_query_of_rows(len(scores), {"qid": qid}, {"y": y, "X": X})
    labels, order, offsets, weights = checked_rows(y, {"X": scores}, qid, sample_weight)
    measure.check_labels(labels)
    scores = arranged(order, scores)
    shares_of_queries(measure, labels, scores, offsets, weights, n_threads)  # refuses what has no value
    prepared = measure.prepare(labels, offsets, weights, n_threads)
    leaves = arranged(order, ensemble.leaves(rows, n_jobs=n_threads)) + ensemble.tree_offsets[:-1]
    leaves, places = np.unique(leaves, return_inverse=True)
    shape, n_trees = (len(scores), len(leaves)), len(ensemble)
    share = np.full(places.size, 1 / n_trees if ensemble.average else 1.0)
    adds = sparse.csr_matrix((share, places.ravel(), np.arange(len(scores) + 1) * n_trees), shape)
    length = distance * np.linalg.norm(ensemble.nodes["value"][leaves])
    random, value, moved = check_random_state(random_state), prepared.signed_mean(scores), []
    for _ in range(n_directions):
        direction = random.normal(size=len(leaves))
        move = length / np.linalg.norm(direction) * direction
        moved.append(prepared.signed_mean(scores + adds @ move))
    sign, values = 1 if measure.greater_is_better else -1, np.array(moved)
    n_better, n_worse = (int((sided > 0).sum()) for sided in (values - value, value - values))
    all_better = n_better == n_directions
    most = 1.0 if all_better else float(betaincinv(n_better + 1, n_directions - n_better, confidence))
    return LocalOptimum(sign * value, sign * values, n_better, n_worse, most)
