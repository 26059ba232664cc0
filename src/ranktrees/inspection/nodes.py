"""The trees of a model as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees.evaluation.own_models import fitted_trees
from ranktrees.model.ensemble import depths_of
from ranktrees.rows.features import names_of
from ranktrees.support.tables import pandas_for

if TYPE_CHECKING:
    import pandas as pd


def tree_table(model: Any) -> pd.DataFrame:
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
    pd = pandas_for("tree_table")
    model = fitted_trees(model)
    ensemble = model.ensemble_
    nodes, sizes = ensemble.nodes, np.diff(ensemble.tree_offsets)
    splits = nodes["feature"] >= 0
    by_category = splits & (nodes["categories"] >= 0)
    names = np.array(names_of(model) or range(ensemble.n_features), object)
    nothing: Any = None
    columns = {
        "tree": np.repeat(np.arange(len(sizes)), sizes),
        "node": np.arange(len(nodes)) - np.repeat(ensemble.tree_offsets[:-1], sizes),
        "depth": depths_of(nodes, ensemble.tree_offsets),
        "feature": np.where(splits, names[nodes["feature"]], nothing),
        "cut": np.where(splits & ~by_category, nodes["cut"], np.nan),
        "categories": _categories_left(model, nodes, by_category),
        "missing": np.where(splits, np.where(nodes["missing_left"], "left", "right"), nothing),
        "left": np.where(splits, nodes["left"], -1),
        "right": np.where(splits, nodes["right"], -1),
        "gain": np.where(splits, nodes["gain"], np.nan),
        "value": nodes["value"],
        "count": nodes["count"],
    }
    return pd.DataFrame(columns)


def _categories_left(model: Any, nodes: np.ndarray, by_category: np.ndarray) -> np.ndarray:
    """For each node, the categories that go left, as training knew them; None for nodes with a cut."""
    ensemble, levels = model.ensemble_, getattr(model, "_category_levels", {})
    found = np.full(len(nodes), None)
    for i in np.flatnonzero(by_category):
        feature = nodes["feature"][i]
        left = ensemble.categories[feature][ensemble.goes_left(i)].tolist()
        called = levels.get(feature)
        if called is not None:  # trees of XGBoost also send codes left that belong to no level
            left = [called[int(code)] for code in left if code < len(called)]
        found[i] = tuple(left)
    return found
