"""Write trees in the JSON format of XGBoost's ``dump_model``, which search engines read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees.formats.plain import (
    added_up,
    finite,
    first_float32_above,
    first_nodes,
    nested,
    require_cuts_only,
    require_names,
    short,
    shortest,
)
from ranktrees.model.ensemble import depths_of
from ranktrees.support.files import replace_file

if TYPE_CHECKING:
    from ranktrees.support.annotations import PathLike

__all__ = ["dump_elasticsearch"]


def dump_elasticsearch(model: Any, path: PathLike, *, feature_names: Sequence[str] | None = None) -> None:
    """Write a model for the learning-to-rank plugins of Elasticsearch and OpenSearch, or for Vespa.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble.
    path : path-like
        The path of the file. It holds a list of trees in JSON, which is the ``definition`` of a model of type
        ``model/xgboost+json``, or a file in Vespa's ``models`` folder.
    feature_names : sequence of str, default=None
        The names of the features in the feature set of the engine, one for each column, in the order of the
        model. If None, the names of the columns of the data frame that the model was fitted to.

    Raises
    ------
    TypeError
        If the model is not made of trees of this library.
    ValueError
        If the trees are not the whole model, if the model splits by categories, if features have no names or
        those of the model in another order, if trees are more than 250 splits deep, or if a value is beyond
        single precision.

    See Also
    --------
    dump_xgboost : The file that XGBoost itself reads.

    Notes
    -----
    The scores are those before a link, as of ``ensemble_``, which rank alike.

    A row goes to ``yes`` if its value is below ``split_condition``, in single precision, and to ``missing``
    if it has no value. Engines without missing values fill in 0. The rows that the model is fitted to should
    do the same. A cut above all values is written as 1e39, which is infinite in single precision, since JSON
    has no infinity.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from ranktrees import HistGBRTRegressor, dump_elasticsearch
    >>> stump = HistGBRTRegressor(
    ...     max_iter=1, max_leaf_nodes=2, min_samples_leaf=1, learning_rate=1.0, gradient_sampling=None
    ... )
    >>> stump = stump.fit([[1.0], [2.0], [4.0]], [0.0, 0.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump_elasticsearch(stump, Path(folder, "model.json"), feature_names=["title_match"])
    ...     (tree,) = json.loads(Path(folder, "model.json").read_text())
    >>> tree["split"], tree["split_condition"], [child["leaf"] for child in tree["children"]]
    ('title_match', 3.0000002, [0.0, 3.0])
    """
    ensemble = added_up(model, feature_names)
    require_cuts_only(ensemble, "model/xgboost+json")
    names, nodes = require_names(ensemble, "model/xgboost+json"), ensemble.nodes
    number = (np.arange(len(nodes)) - first_nodes(ensemble)).tolist()
    depths = depths_of(nodes, ensemble.tree_offsets).tolist()
    cuts, values = finite(short(first_float32_above(nodes["cut"]))), shortest(nodes["value"])
    features, missing_left = nodes["feature"].tolist(), nodes["missing_left"]

    def leaf(i: int) -> dict[str, float]:
        return {"nodeid": number[i], "leaf": values[i]}

    def split(i: int, left: dict[str, float], right: dict[str, float]) -> dict[str, Any]:
        return {
            "nodeid": number[i],
            "depth": depths[i],
            "split": names[features[i]],
            "split_condition": cuts[i],
            "yes": left["nodeid"],
            "no": right["nodeid"],
            "missing": (left if missing_left[i] else right)["nodeid"],
            "children": [left, right],
        }

    replace_file(path, json.dumps(nested(ensemble, leaf, split), allow_nan=False).encode(), "the model")
