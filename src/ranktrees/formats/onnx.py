r"""ONNX: a model as an operator for the trees, which onnxruntime and other runtimes run in any language.

Behind it are the operators of the link, if there is one::

    X - trees - score - Sigmoid or Exp - prediction      of a logistic or Poisson loss
                  |           +- 1 - p, p - probabilities     of a classifier,
                  +- > 0 - label                              whose prediction is no output
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ranktrees.estimators.links import warn_of_lost_link
from ranktrees.evaluation.own_models import fitted_trees
from ranktrees.formats.plain import (
    added_up,
    first_nodes,
    one_sided,
    require_cuts_only,
    shortest,
)
from ranktrees.support.cuts import round_down
from ranktrees.support.files import replace_file

if TYPE_CHECKING:
    from ranktrees.model.ensemble import Ensemble
    from ranktrees.support.annotations import PathLike

__all__ = ["dump_onnx"]

LESS_OR_EQUAL, MEMBER = 0, 6  # modes of the nodes of TreeEnsemble

OPERATORS = {"logistic": "Sigmoid", "poisson": "Exp"}  # by link


def dump_onnx(
    model: Any,
    path: PathLike,
    *,
    dtype: Literal["float32", "float64"] = "float32",
    feature_names: Sequence[str] | None = None,
) -> None:
    r"""Write a model as ONNX.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble.
    path : path-like
        The path of the file. The graph in it takes ``X`` of shape (n_rows, n_features) and returns ``score``
        of shape (n_rows, 1). If the model has a link, it returns other outputs before this one, see Notes.
    dtype : {"float32", "float64"}, default="float32"
        The type of rows, leaves and scores. "float32" writes a ``TreeEnsembleRegressor``, which every runtime
        knows. Rows reach the same leaves, and scores have about seven digits. "float64" writes a
        ``TreeEnsemble`` (ai.onnx.ml 5), which supports categories as well. Scores differ only by the order of
        the sum. It needs onnxruntime 1.24: older versions accept it, but score some models wrongly.
    feature_names : sequence of str, default=None
        The names of the columns, in the order of the model. If None, those of the data frame that the model
        was fitted to, if it was. They are written as the property ``feature_names`` of the model, a list in
        JSON.

    Raises
    ------
    ImportError
        If onnx is not installed.
    TypeError
        If the model is not made of trees of this library.
    ValueError
        If the trees are not the whole model, if ``dtype`` is neither of the two, if the model splits by
        categories and ``dtype`` is "float32" or the categories are not whole numbers from 0 to 2**24 - 1, if
        the value of a leaf is beyond single precision and ``dtype`` is "float32", if ``feature_names`` are
        those of the model in another order, or if the classes of a classifier are neither whole numbers nor
        strings.

    Notes
    -----
    The outputs are, in this order:

    - of a `HistGBRTClassifier`, ``label`` of shape (n_rows,), int64 or strings, and ``probabilities`` of
      shape (n_rows, 2), as skl2onnx and onnxmltools call them (without their ``ZipMap``), and ``score``,
      which is its ``decision_function``;
    - of any other model with a Poisson or logistic loss, or an `Ensemble` with a ``link``, ``prediction`` of
      shape (n_rows, 1), what `predict` returns, and ``score``, its logarithm or its log odds;
    - of all others, ``score``, which is what `predict` returns.

    In columns of categories, onnxruntime truncates some numbers to whole ones, while this library treats a
    value that is not a category as missing.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import onnxruntime
    >>> from ranktrees import LambdaMARTRanker, dump_onnx, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(X, y, qid=qid)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump_onnx(ranker, Path(folder, "model.onnx"))
    ...     session = onnxruntime.InferenceSession(Path(folder, "model.onnx"))
    >>> (scores,) = session.run(["score"], {"X": X.astype(np.float32)})
    >>> float(abs(scores[:, 0] - ranker.predict(X.astype(np.float32))).max()) < 1e-6
    True
    """
    try:
        from onnx import TensorProto, helper
    except ImportError as error:
        raise ImportError('dump_onnx needs onnx; install it with: pip install "ranktrees[onnx]"') from error
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
    ensemble, fitted = added_up(model, feature_names), fitted_trees(model)
    warn_of_lost_link(fitted)
    if dtype == "float32":
        instead = "write it with dtype='float64', which supports them, or one-hot encode them"
        require_cuts_only(ensemble, "TreeEnsembleRegressor", instead)
        kind, version, operator = TensorProto.FLOAT, 3, _in_single_precision(helper, ensemble)
    else:
        kind, version, operator = TensorProto.DOUBLE, 5, _in_double_precision(helper, TensorProto, ensemble)
    rows = helper.make_tensor_value_info("X", kind, [None, ensemble.n_features])
    scores = helper.make_tensor_value_info("score", kind, [None, 1])
    nodes, constants, outputs = _link(helper, TensorProto, kind, ensemble.link, fitted)
    graph = helper.make_graph([operator, *nodes], "ranktrees", [rows], [*outputs, scores], constants)
    opsets = [helper.make_opsetid("ai.onnx.ml", version), helper.make_opsetid("", 17)]
    written = helper.make_model(graph, opset_imports=opsets, ir_version=8, producer_name="ranktrees")
    if ensemble.feature_names is not None:
        helper.set_model_props(written, {"feature_names": json.dumps(ensemble.feature_names)})
    replace_file(path, written.SerializeToString(), "the model")


def _link(
    helper: Any, kinds: Any, kind: int, link: str | None, model: Any
) -> tuple[list[Any], list[Any], list[Any]]:
    """Return nodes that turn scores into predictions, their constants, and the outputs that they make."""
    if link is None:
        return [], [], []
    classes = getattr(model, "classes_", None)
    last = helper.make_node(OPERATORS[link], ["score"], ["prediction"])
    if classes is None:
        return [last], [], [helper.make_tensor_value_info("prediction", kind, [None, 1])]
    labels_kind, labels = _labels(kinds, classes)
    constants = [
        helper.make_tensor("zero", kind, [1], [0.0]),
        helper.make_tensor("one", kind, [1], [1.0]),
        helper.make_tensor("row", kinds.INT64, [1], [-1]),
        helper.make_tensor("classes", labels_kind, [2], labels),
    ]
    nodes = [
        last,
        helper.make_node("Sub", ["one", "prediction"], ["other"]),
        helper.make_node("Concat", ["other", "prediction"], ["probabilities"], axis=1),
        helper.make_node("Greater", ["score", "zero"], ["is_second"]),
        helper.make_node("Reshape", ["is_second", "row"], ["of_rows"]),
        helper.make_node("Cast", ["of_rows"], ["number"], to=kinds.INT64),
        helper.make_node("Gather", ["classes", "number"], ["label"]),
    ]
    outputs = [
        helper.make_tensor_value_info("label", labels_kind, [None]),
        helper.make_tensor_value_info("probabilities", kind, [None, 2]),
    ]
    return nodes, constants, outputs


def _labels(kinds: Any, classes: np.ndarray) -> tuple[int, list[Any]]:
    """Return the type of classes in ONNX, and the classes."""
    values = classes.tolist()
    if all(isinstance(each, str) for each in values):
        return kinds.STRING, [each.encode() for each in values]
    if all(isinstance(each, int | float) and abs(each) < 2**63 and each == int(each) for each in values):
        return kinds.INT64, [int(each) for each in values]
    raise ValueError(
        f"the classes are {values}; expected whole numbers of 64 bits or strings, which ONNX has for labels: "
        "fit the classifier to these."
    )


def _in_single_precision(helper: Any, ensemble: Ensemble) -> Any:
    nodes, first = ensemble.nodes, first_nodes(ensemble)
    of_tree, leaf = np.searchsorted(ensemble.tree_offsets, first), nodes["feature"] < 0

    def inner(values: np.ndarray) -> list[Any]:
        return np.where(leaf, 0, values).tolist()

    number = np.arange(len(nodes)) - first
    return helper.make_node(
        "TreeEnsembleRegressor",
        ["X"],
        ["score"],
        domain="ai.onnx.ml",
        n_targets=1,
        nodes_treeids=of_tree.tolist(),
        nodes_nodeids=number.tolist(),
        nodes_modes=np.where(leaf, "LEAF", "BRANCH_LEQ").tolist(),
        nodes_featureids=inner(nodes["feature"]),
        nodes_values=inner(round_down(nodes["cut"])),
        nodes_truenodeids=inner(nodes["left"]),
        nodes_falsenodeids=inner(nodes["right"]),
        nodes_missing_value_tracks_true=inner(nodes["missing_left"]),
        target_treeids=of_tree[leaf].tolist(),
        target_nodeids=number[leaf].tolist(),
        target_ids=[0] * np.count_nonzero(leaf),
        target_weights=shortest(nodes["value"][leaf]),
    )


def _in_double_precision(helper: Any, kinds: Any, ensemble: Ensemble) -> Any:
    """Make the operator. Inner nodes and leaves are numbered separately, through all trees."""
    ensemble = _with_splits(ensemble)
    nodes, first = ensemble.nodes, first_nodes(ensemble)
    sided, members = one_sided(ensemble)
    inner = nodes["feature"] >= 0
    number = np.where(inner, np.cumsum(inner), np.cumsum(~inner)) - 1
    splits = sided[inner]

    def tensor(name: str, kind: Any, values: np.ndarray) -> Any:
        return helper.make_tensor(name, kind, (len(values),), values)

    attributes = {}
    for branch, side in (("true", "left"), ("false", "right")):
        child = splits[side] + first[inner]
        attributes[f"nodes_{branch}nodeids"] = number[child].tolist()
        attributes[f"nodes_{branch}leafs"] = (~inner[child]).astype(int).tolist()
    if members:
        sets = np.concatenate([np.append(each, np.nan) for each in members])
        attributes["membership_values"] = tensor("members", kinds.DOUBLE, sets)
    modes = np.where(splits["categories"] >= 0, MEMBER, LESS_OR_EQUAL).astype(np.uint8)
    return helper.make_node(
        "TreeEnsemble",
        ["X"],
        ["score"],
        domain="ai.onnx.ml",
        n_targets=1,
        tree_roots=number[ensemble.tree_offsets[:-1]].tolist(),
        nodes_featureids=splits["feature"].tolist(),
        nodes_modes=tensor("modes", kinds.UINT8, modes),
        nodes_splits=tensor("cuts", kinds.DOUBLE, splits["cut"]),
        nodes_missing_value_tracks_true=splits["missing_left"].tolist(),
        leaf_weights=tensor("values", kinds.DOUBLE, nodes["value"][~inner]),
        leaf_targetids=[0] * np.count_nonzero(~inner),
        **attributes,
    )


def _with_splits(ensemble: Ensemble) -> Ensemble:
    """The same scores by trees that all have a split, since runtimes disagree about trees without one."""
    trees = np.split(ensemble.nodes, ensemble.tree_offsets[1:-1])
    trees = [_with_a_split(tree) if len(tree) == 1 else tree for tree in trees]
    return ensemble._replace(nodes=np.concatenate(trees), tree_offsets=np.cumsum([0, *map(len, trees)]))


def _with_a_split(leaf: np.ndarray) -> np.ndarray:
    """Turn a tree that is a single leaf into a split with that leaf on either side."""
    nodes = np.repeat(leaf, 3)
    nodes["feature"][0], nodes["left"][0], nodes["right"][0] = 0, 1, 2
    return nodes
