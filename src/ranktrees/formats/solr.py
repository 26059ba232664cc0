"""Write models in the format of Solr's ``MultipleAdditiveTreesModel``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees.formats.plain import (
    added_up,
    finite,
    nested,
    require_cuts_only,
    require_names,
    short,
    shortest,
)
from ranktrees.support.cuts import round_down
from ranktrees.support.files import replace_file

if TYPE_CHECKING:
    from ranktrees.support.annotations import PathLike

__all__ = ["dump_solr"]

SLACK = np.float32(1e-6)  # Solr adds this to each threshold when it reads it, in single precision


def dump_solr(
    model: Any,
    path: PathLike,
    *,
    name: str = "ranktrees",
    feature_names: Sequence[str] | None = None,
    missing_values: bool = False,
) -> None:
    """Write a model for Solr's learning-to-rank module.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble.
    path : path-like
        The path of the file. It holds the JSON that is put into the model store.
    name : str, default="ranktrees"
        The name of the model in Solr.
    feature_names : sequence of str, default=None
        The names of the features in the feature store, one for each column, in the order of the model. If
        None, the names of the columns of the data frame that the model was fitted to.
    missing_values : bool, default=False
        Whether rows without a value of a feature go where the model sends them. This needs Solr 9.2, and
        features whose ``defaultValue`` is "NaN". Otherwise such values are 0, and should also be 0 in the
        rows that the model is fitted to.

    Raises
    ------
    TypeError
        If the model is not made of trees of this library.
    ValueError
        If the trees are not the whole model, if the model splits by categories, if features have no names or
        those of the model in another order, if trees are more than 250 splits deep, or if a value is beyond
        single precision.

    Notes
    -----
    The scores are those before a link, as of ``ensemble_``, which rank alike.

    In Solr a row goes left if ``x <= threshold + 1e-6``, in single precision. Thresholds are written so that
    the sum is the last float32 that goes left. If no threshold gives that number, as for cuts below 4e-6 and
    some negative ones, the sum is the nearest possible, which is off by at most 3e-13 or the last bit.

    Examples
    --------
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from ranktrees import HistGBRTRegressor, dump_solr
    >>> stump = HistGBRTRegressor(
    ...     max_iter=1, max_leaf_nodes=2, min_samples_leaf=1, learning_rate=1.0, gradient_sampling=None
    ... )
    >>> stump = stump.fit([[1.0], [2.0], [4.0]], [0.0, 0.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump_solr(stump, Path(folder, "model.json"), feature_names=["title_match"])
    ...     model = json.loads(Path(folder, "model.json").read_text())
    >>> model["params"]["trees"][0]["root"]["left"]
    {'value': '0.0'}
    """
    ensemble = added_up(model, feature_names)
    require_cuts_only(ensemble, "MultipleAdditiveTreesModel")
    names, nodes = require_names(ensemble, "MultipleAdditiveTreesModel"), ensemble.nodes
    thresholds, values = finite(short(_less_slack(round_down(nodes["cut"])))), shortest(nodes["value"])
    features, missing_left = nodes["feature"].tolist(), nodes["missing_left"]

    def leaf(i: int) -> dict[str, str]:
        return {"value": str(values[i])}

    def split(i: int, left: dict[str, str], right: dict[str, str]) -> dict[str, dict[Any, Any] | str]:
        node = {"feature": names[features[i]], "threshold": str(thresholds[i])}
        if missing_values:
            node["missing"] = "left" if missing_left[i] else "right"
        return node | {"left": left, "right": right}

    trees = [{"weight": "1", "root": root} for root in nested(ensemble, leaf, split)]
    written = {
        "class": "org.apache.solr.ltr.model.MultipleAdditiveTreesModel",
        "name": name,
        "features": [{"name": each} for each in names],
        "params": {"isNullSameAsZero": False, "trees": trees} if missing_values else {"trees": trees},
    }
    replace_file(path, json.dumps(written, allow_nan=False).encode(), "the model")


def _less_slack(wanted: np.ndarray) -> np.ndarray:
    """Thresholds that are as wanted once Solr has added its slack, or as near to that as possible."""
    best = wanted - SLACK
    for direction in (-np.inf, np.inf):
        near = wanted - SLACK
        for _ in range(2):
            with np.errstate(over="ignore", invalid="ignore"):  # infinity minus itself is NaN: not closer
                near = np.nextafter(near, np.float32(direction))
                closer = abs((near + SLACK) - wanted) < abs((best + SLACK) - wanted)
            best = np.where(closer & np.isfinite(near), near, best)
    return best
