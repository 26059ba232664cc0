"""What each feature adds to a score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ranktrees.evaluation.own_models import fitted_trees
from ranktrees.inspection.contributed import Columns, Contributions
from ranktrees.inspection.paths import EnsemblePaths
from ranktrees.rows import check_rows
from ranktrees.rows.features import names_of

if TYPE_CHECKING:
    from ranktrees.model.ensemble import Ensemble
    from ranktrees.support.annotations import RowsLike


def contributions(model: Any, X: RowsLike) -> Contributions:
    r"""Return what each feature adds to the score of each row, as Shapley values.

    A score is the sum of a start, which all rows have in common, and of what each feature adds to it,

    .. math:: s(x) = s_0 + \sum_d \varphi_d(x), \qquad
              \varphi_d = \sum_{S: d \notin S} \frac{|S|!\, (D - |S| - 1)!}{D!}
              \big(v(S \cup d) - v(S)\big),

    where :math:`v(S)` is the expected score of a row of which only the features :math:`S` are known. At a
    split on another feature the row goes both ways, weighted by the shares of the training rows that went
    there. The training rows are weighed as the trees count them: by their number, or for trees of XGBoost by
    their hessians.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble.
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        Rows, as for the `predict` of the model.

    Returns
    -------
    Contributions
        It unpacks as the contributions, ``values``, and what scores start from, ``start``. It makes data
        frames, plots and explanations of the shap package, and says why one row scores above another. For a
        sparse X the contributions are sparse, too: only features that the trees use contribute. The start is
        the same number for all rows, unless boosting started from a model that is not made of trees of this
        library. In that case the start includes the predictions of that model.

    Raises
    ------
    TypeError
        If the model is not one of this library that is made of trees.
    ValueError
        If the trees do not know how many training rows their nodes have seen.

    See Also
    --------
    interactions : what pairs of features add.
    ranktrees.LambdaMARTRanker.feature_importances : what features are worth to the trees, over all rows.

    Notes
    -----
    For a classifier, the start and the contributions add up to its ``decision_function``. For an ensemble,
    they add up to its scores. With a Poisson or gamma loss, these are the logarithms of the predictions, and
    with a logistic one their log odds. For all other models the sum is what `predict` returns, up to
    rounding.

    On the path to a leaf of value :math:`v`, the splits on each feature :math:`j` pass a share :math:`z_j` of
    the training rows, and :math:`o_j` is 1 if the row itself goes that way, else 0. The factor in the sum
    over sets is :math:`\int_0^1 t^{|S|} (1 - t)^{D - |S| - 1} dt`, so the sum is an integral of a polynomial,

    .. math:: \varphi_d = \sum_{leaves} v\,(o_d - z_d)
              \int_0^1 \prod_{j \ne d} \big((1 - t)\, z_j + t\, o_j\big)\, dt,

    which a Gauss-Legendre rule with half as many points as there are features on the path computes exactly.
    Its terms are products of numbers between 0 and 1. The time for a row is proportional to the number of
    nodes: a third of a microsecond for a tree of 64 leaves, after 25 for the first row.

    References
    ----------
    Owen, *Multilinear extensions of games*, Management Science 18, 1972, for the integral; Lundberg et al.,
    *From local explanations to global understanding with explainable AI for trees*, Nature Machine
    Intelligence 2, 2020, for :math:`v`, which they call path-dependent.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, contributions, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(X, y, qid=qid)
    >>> parts, start = contributions(ranker, X[:100])
    >>> parts.shape
    (100, 50)
    >>> bool(np.allclose(start + parts.sum(axis=1), ranker.predict(X[:100])))
    True
    """
    model = fitted_trees(model)
    rows, start = check_rows(model, X, reset=False), model._starting_scores(X)
    n_threads = model._threads_to_score(rows)
    each = [_contributions_to(ensemble, rows, start, n_threads) for ensemble in model._ensembles]
    values, start = each[0]
    if len(each) > 1:
        values, starts = zip(*each, strict=True)
        values, start = _of_classes(values, rows), np.stack(starts, axis=1)
    columns = Columns(tuple(names_of(model) or range(rows.shape[1])), getattr(model, "_category_levels", {}))
    classes = model.classes_ if len(each) > 1 else None
    return Contributions(values, start, rows, classes, columns, X.index if hasattr(X, "iloc") else None)


def interactions(model: Any, X: RowsLike) -> Any:
    r"""Return what pairs of features add to the score of each row, as Shapley interaction values.

    What a feature is worth depends on the others. Its contribution is the sum of what it adds with each of
    them and of what it adds by itself:

    .. math:: \varphi_i = \sum_j \Phi_{ij}, \qquad
              \Phi_{ij} = \tfrac{1}{2} \sum_{S: i, j \notin S} \frac{|S|!\, (D - |S| - 2)!}{(D - 1)!}
              \big(v(S \cup ij) - v(S \cup i) - v(S \cup j) + v(S)\big) \quad (i \ne j),

    where :math:`v(S)` is the expected score of a row of which only the features :math:`S` are known, as in
    `contributions`.

    Parameters
    ----------
    model, X
        As for `contributions`.

    Returns
    -------
    ndarray of float64, shape (n_rows, n_features, n_features)
        A symmetric matrix for each row, whose rows add up to the contributions of the features. For a sparse
        X, there is a list of one CSR array for each row. If each of several classes has a score, the shape is
        (n_rows, n_classes, n_features, n_features), and for a sparse X there is a list of such lists, one for
        each class.

    Raises
    ------
    TypeError
        If the model is not one of this library that is made of trees.
    ValueError
        If the trees do not know how many training rows their nodes have seen.

    See Also
    --------
    contributions : what each feature adds, and from what scores start.

    Notes
    -----
    In the terms of `contributions`, the sum over sets is again an integral,

    .. math:: \Phi_{ij} = \tfrac{1}{2} \sum_{leaves} v\,(o_i - z_i)\,(o_j - z_j)
              \int_0^1 \prod_{d \ne i, j} \big((1 - t)\, z_d + t\, o_d\big)\, dt,

    which the same rule computes exactly. The time for a row and a tree is proportional to the number of pairs
    of nodes of which one is above the other. The result takes ``8 * n_features**2`` bytes for each row.

    References
    ----------
    Grabisch and Roubens, *An axiomatic approach to the concept of interaction among players in cooperative
    games*, International Journal of Game Theory 28, 1999; Lundberg et al., *From local explanations to global
    understanding with explainable AI for trees*, Nature Machine Intelligence 2, 2020, who halve the index and
    define the diagonal.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, contributions, interactions, make_ranking
    >>> X, y, qid = make_ranking(60, n_features=8, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(X, y, qid=qid)
    >>> pairs = interactions(ranker, X[:100])
    >>> pairs.shape
    (100, 8, 8)
    >>> bool(np.allclose(pairs.sum(axis=2), contributions(ranker, X[:100]).values))
    True
    """
    model = fitted_trees(model)
    rows = check_rows(model, X, reset=False)
    n_threads = model._threads_to_score(rows)
    each = [_interactions_of(ensemble, rows, n_threads) for ensemble in model._ensembles]
    return each[0] if len(each) == 1 else _of_classes(each, rows)


def _of_classes(each: Sequence[Any], rows: Any) -> Any:
    return list(each) if sparse.issparse(rows) else np.stack(each, axis=1)


def _contributions_to(
    ensemble: Ensemble, rows: Any, start: np.ndarray | None, n_threads: int
) -> tuple[Any, np.ndarray]:
    paths = EnsemblePaths(ensemble)
    start = np.full(rows.shape[0], ensemble.base) if start is None else np.array(start, np.float64)
    start += paths.expected()
    if not sparse.issparse(rows):
        parts = np.zeros(rows.shape)
        for stretch, added in paths.added(rows, n_threads):
            parts[stretch, paths.used] = added
        return parts, start
    found = [sparse.csr_array((0, rows.shape[1]))]
    for _, added in paths.added(rows, n_threads):
        row, place = np.nonzero(added)
        shape = (len(added), rows.shape[1])
        found.append(sparse.csr_array((added[row, place], (row, paths.used[place])), shape))
    return sparse.vstack(found, "csr"), start


def _interactions_of(ensemble: Ensemble, rows: Any, n_threads: int) -> Any:
    paths = EnsemblePaths(ensemble)
    used, n_features = paths.used, rows.shape[1]
    own, triangle = np.arange(len(used)), np.tril_indices(len(used))
    dense, found = None, []
    if not sparse.issparse(rows):
        dense = np.zeros((rows.shape[0], n_features, n_features))
    for stretch, added in paths.added(rows, n_threads, in_pairs=True):
        pairs = np.zeros((len(added), len(used), len(used)))
        pairs[:, triangle[0], triangle[1]] = added
        whole = pairs[:, own, own]  # what a feature adds with the others, too
        pairs[:, own, own] = 0
        pairs = (pairs + pairs.transpose(0, 2, 1)) / 2
        pairs[:, own, own] = whole - pairs.sum(axis=2)
        if dense is not None:
            dense[stretch, used[:, None], used] = pairs
            continue
        for of_row in pairs:
            i, j = np.nonzero(of_row)
            entries = (of_row[i, j], (used[i], used[j]))
            found.append(sparse.csr_array(entries, (n_features, n_features)))
    return found if dense is None else dense
