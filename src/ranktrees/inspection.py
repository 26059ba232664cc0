"""The trees of a model as a table, what each feature adds to a score, and if other leaves rank better."""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse
from scipy.stats import beta
from sklearn.utils import check_random_state

from ranktrees import validation
from ranktrees.combining import shares_of_queries
from ranktrees.ensemble import depths_of, unpack
from ranktrees.estimators.ensemble_ranker import fitted_trees
from ranktrees.features import names_of
from ranktrees.measures import as_measure
from ranktrees.measures.rows import arranged, checked_rows
from ranktrees.numeric import is_real, is_whole
from ranktrees.validation import check_rows

__all__ = ["LocalOptimum", "contributions", "local_optimum", "tree_table"]

VALUES_AT_ONCE = 2**18  # nodes times points times rows, so that the working set stays in the second cache


def tree_table(model):
    """Return the nodes of all trees of a model as a table with one row per node.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble.

    Returns
    -------
    DataFrame
        ``tree`` and ``node`` count from 0 and include the trees of ``init``, and ``depth`` is the number of
        splits above the node. ``left`` and ``right`` are nodes of the same tree, -1 in a leaf. ``feature`` is
        the name of a feature, or its number if there are no names. Rows go left if their value of it is at
        most ``cut``, or one of ``categories``. Rows without a value go to the side that ``missing`` names.
        ``feature``, ``cut``, ``categories`` and ``missing`` are missing in a leaf. ``gain`` is the gain of
        the split, ``value`` is what a leaf adds to the score (in a forest, to the mean), and ``count`` is the
        number of rows that training saw at the node.

    Raises
    ------
    ImportError
        If pandas is not installed.
    TypeError
        If the model is not one of this library that is made of trees.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking, tree_table
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=5, max_leaf_nodes=4, random_state=0).fit(X, y, qid=qid)
    >>> table = tree_table(ranker)
    >>> table.shape  # 5 trees of 3 splits and 4 leaves
    (35, 12)
    >>> int(table.loc[table["tree"] == 0, "feature"].count())
    3
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("tree_table returns a pandas DataFrame: pip install pandas") from error
    model = fitted_trees(model)
    ensemble = model.ensemble_
    nodes, sizes = ensemble.nodes, np.diff(ensemble.tree_offsets)
    splits = nodes["feature"] >= 0
    by_category = splits & (nodes["categories"] >= 0)
    names = np.array(names_of(model) or range(ensemble.n_features), object)
    columns = {
        "tree": np.repeat(np.arange(len(sizes)), sizes),
        "node": np.arange(len(nodes)) - np.repeat(ensemble.tree_offsets[:-1], sizes),
        "depth": depths_of(nodes, ensemble.tree_offsets),
        "feature": np.where(splits, names[nodes["feature"]], None),
        "cut": np.where(splits & ~by_category, nodes["cut"], np.nan),
        "categories": _categories_left(model, nodes, by_category),
        "missing": np.where(splits, np.where(nodes["missing_left"], "left", "right"), None),
        "left": np.where(splits, nodes["left"], -1),
        "right": np.where(splits, nodes["right"], -1),
        "gain": np.where(splits, nodes["gain"], np.nan),
        "value": nodes["value"],
        "count": nodes["count"],
    }
    return pd.DataFrame(columns)


def contributions(model, X) -> tuple[np.ndarray, np.ndarray]:
    r"""Return what each feature adds to the score of each row, as Shapley values.

    A score is the sum of a start, which all rows have in common, and of what each feature adds to it,

    .. math:: s(x) = s_0 + \sum_d \varphi_d(x), \qquad
              \varphi_d = \sum_{S \not\ni d} \frac{|S|!\, (D - |S| - 1)!}{D!}
              \big(v(S \cup d) - v(S)\big),

    where :math:`v(S)` is the expected score of a row of which only the features :math:`S` are known. At a
    split on another feature the row goes both ways, weighted by the shares of the training rows that went
    there. The difference between the contributions of two rows shows why one ranks above the other.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble.
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        Rows, as for the `predict` of the model.

    Returns
    -------
    contributions : ndarray of float64, shape (n_rows, n_features)
        The contribution of each feature to the score of each row. If each of several classes has a score, the
        shape is (n_rows, n_classes, n_features).
    start : ndarray of float64, shape (n_rows,) or (n_rows, n_classes)
        The start of each row. It is the same number for all rows, unless boosting started from a model that
        is not made of trees of this library. In that case the start includes the predictions of that model.

    Raises
    ------
    TypeError
        If the model is not one of this library that is made of trees.
    ValueError
        If the trees do not know how many training rows their nodes have seen.

    See Also
    --------
    ranktrees.LambdaMARTRanker.feature_importances : what features are worth to the trees, over all rows.

    Notes
    -----
    For a classifier, the start and the contributions add up to its ``decision_function``. For a Poisson loss,
    they add up to the logarithm of its predictions. For all other models the sum is what `predict` returns,
    up to rounding.

    On the path to a leaf of value :math:`v`, the splits on each feature :math:`j` pass a share :math:`z_j` of
    the training rows, and :math:`o_j` is 1 if the row itself goes that way, else 0. The factor in the sum
    over sets is :math:`\int_0^1 t^{|S|} (1 - t)^{D - |S| - 1} dt`, so the sum is an integral of a polynomial,

    .. math:: \varphi_d = \sum_{leaves} v\,(o_d - z_d)
              \int_0^1 \prod_{j \ne d} \big((1 - t)\, z_j + t\, o_j\big)\, dt,

    which a Gauss-Legendre rule with half as many points as there are features on the path computes exactly.
    Its terms are products of numbers between 0 and 1. The time for a row is proportional to the number of
    nodes: some 25 microseconds for a tree of 31 leaves, after 1 ms for the first row.

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
    each = [_contributions_to(ensemble, rows, start) for ensemble in model._ensembles]
    if len(each) == 1:
        return each[0]
    parts, starts = (np.stack(of_classes, axis=1) for of_classes in zip(*each, strict=True))
    return parts, starts


def _contributions_to(ensemble, rows, start):
    start = np.full(rows.shape[0], ensemble.base) if start is None else np.array(start, np.float64)
    scale = 1 / len(ensemble) if ensemble.average and len(ensemble) else 1.0
    parts = np.zeros((ensemble.n_features, rows.shape[0]))
    for number, tree in enumerate(ensemble):
        if not (tree.nodes["count"] > 0).all():
            raise ValueError(
                f"tree {number} has nodes with a count of 0; expected the number of training rows in each: "
                "these weigh the two sides of a split on a feature whose value is unknown."
            )
        start += scale * _add_tree(ensemble, tree.nodes, rows, scale, parts)
    return np.ascontiguousarray(parts.T), start


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
    model,
    X,
    y,
    *,
    qid=None,
    measure="ndcg@10",
    n_directions=459,
    distance=0.01,
    confidence=0.99,
    sample_weight=None,
    random_state=None,
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
    validation.warn_of_order({"X": X, "y": y, "qid": qid, "sample_weight": sample_weight})
    qid = validation.find_query_of_rows(len(scores), {"qid": qid}, {"y": y, "X": X})
    labels, order, offsets, weights = checked_rows(y, {"X": scores}, qid, sample_weight)
    measure.check_labels(labels)
    scores = arranged(order, scores)
    shares_of_queries(measure, labels, scores, offsets, weights, n_threads)  # refuses what has no value
    bound_measure = measure.bind(labels, offsets, weights, n_threads)
    leaves = arranged(order, ensemble.leaves(rows, n_threads)) + ensemble.tree_offsets[:-1]
    leaves, places = np.unique(leaves, return_inverse=True)
    shape, n_trees = (len(scores), len(leaves)), len(ensemble)
    share = np.full(places.size, 1 / n_trees if ensemble.average else 1.0)
    adds = sparse.csr_matrix((share, places.ravel(), np.arange(len(scores) + 1) * n_trees), shape)
    length = distance * np.linalg.norm(ensemble.nodes["value"][leaves])
    random, value, moved = check_random_state(random_state), bound_measure.signed_mean(scores), []
    for _ in range(n_directions):
        direction = random.normal(size=len(leaves))
        move = length / np.linalg.norm(direction) * direction
        moved.append(bound_measure.signed_mean(scores + adds @ move))
    sign, values = 1 if measure.greater_is_better else -1, np.array(moved)
    n_better, n_worse = (int((sided > 0).sum()) for sided in (values - value, value - values))
    all_better = n_better == n_directions
    most = 1.0 if all_better else float(beta.ppf(confidence, n_better + 1, n_directions - n_better))
    return LocalOptimum(sign * value, sign * values, n_better, n_worse, most)


def _categories_left(model, nodes, by_category):
    """For each node, the categories that go left, as training knew them; None for nodes with a cut."""
    ensemble, levels = model.ensemble_, getattr(model, "_category_levels", {})
    found = np.full(len(nodes), None)
    for i in np.flatnonzero(by_category):
        feature = nodes["feature"][i]
        values = ensemble.categories[feature]
        left = values[unpack(ensemble.bitsets[nodes["categories"][i]][None])[0, : len(values)]].tolist()
        called = levels.get(feature)
        if called is not None:  # trees of XGBoost also send codes left that belong to no level
            left = [called[int(code)] for code in left if code < len(called)]
        found[i] = tuple(left)
    return found


def _add_tree(ensemble, nodes, rows, scale, parts):
    """Add what each feature contributes to the value of a tree, and return its expected value.

    An edge has the number of the node that it leads to. The edge to the root is one that all rows take.
    """
    n = len(nodes)
    inner = np.flatnonzero(nodes["feature"] >= 0)
    left, right = nodes["left"], nodes["right"]
    parent = np.zeros(n, int)
    parent[left[inner]] = parent[right[inner]] = inner
    feature = nodes["feature"][parent]
    feature[0] = -1
    above = _same_feature_above(feature, parent)
    depths = depths_of(nodes, np.array([0, n]))
    layers = [np.flatnonzero(depths == depth) for depth in range(1, depths.max() + 1)]

    share = nodes["count"] / (nodes["count"][left[parent]] + nodes["count"][right[parent]])
    share[0] = 1.0
    reached, n_features = share.copy(), np.zeros(n, int)
    for layer in layers:
        reached[layer] *= reached[parent[layer]]
        share[layer] *= share[above[layer]]
        n_features[layer] = n_features[parent[layer]] + (above[layer] == 0)
    leaf_value = np.where(nodes["feature"] < 0, nodes["value"], 0.0)
    points, weights = np.polynomial.legendre.leggauss(max(1, -(-n_features.max() // 2)))
    points, weights = (points[:, None] + 1) / 2, scale / 2 * weights
    share = share[:, None, None]

    at_once = max(1, VALUES_AT_ONCE // (n * len(points)))
    for first in range(0, rows.shape[0], at_once):
        some = rows[first : first + at_once]
        goes = np.ones((n, some.shape[0]), bool)
        goes[left[inner]] = _goes_left(ensemble, nodes[inner], some)
        goes[right[inner]] = ~goes[left[inner]]
        for layer in layers:
            goes[layer] &= goes[above[layer]]
        goes = goes[:, None, :]
        factor = (1 - points) * share + points * goes
        sums = np.ones_like(factor)
        for layer in layers:
            sums[layer] = sums[parent[layer]] * factor[layer] / factor[above[layer]]
        sums *= leaf_value[:, None, None]
        for layer in [*layers[-2::-1], np.zeros(1, int)]:
            split = layer[nodes["feature"][layer] >= 0]
            sums[split] = sums[left[split]] + sums[right[split]]
        gap = (goes - share) / factor
        of_edges = np.einsum("p,epr->er", weights, sums * (gap - gap[above]))
        np.add.at(parts[:, first : first + at_once], feature[1:], of_edges[1:])
    return reached @ leaf_value


def _same_feature_above(feature, parent):
    """For each edge, the nearest edge above it that asks for the same feature, or the root's if none does."""
    above = parent.copy()
    while (other := (above > 0) & (feature[above] != feature)).any():
        above[other] = parent[above[other]]
    return above


def _goes_left(ensemble, nodes, rows):
    """bool[n_nodes, n_rows]: whether each split sends each row left."""
    used, column = np.unique(nodes["feature"], return_inverse=True)
    values = rows[:, used]
    values = (values.toarray() if sparse.issparse(values) else values).T.astype(np.float64)[column]
    missing = np.isnan(values)
    left = values <= nodes["cut"][:, None]
    for i in np.flatnonzero(nodes["categories"] >= 0):
        known = ensemble.categories[nodes["feature"][i]]
        missing[i] = ~np.isin(values[i], known)
        code = np.searchsorted(known, np.where(missing[i], -np.inf, values[i]))
        left[i] = unpack(ensemble.bitsets[nodes["categories"][i]][None])[0, code]
    return np.where(missing, nodes["missing_left"][:, None] > 0, left)
