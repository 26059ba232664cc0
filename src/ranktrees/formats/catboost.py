r"""Read CatBoost's models in JSON, which CatBoost saves by ``save_model(path, format="json")``.

CatBoost rounds values to single precision and compares by ``x > border``. In a symmetric tree all nodes of a
layer have the same split. The answers are the bits of the number of the leaf, that of the last split being
the highest::

    splits[1]            no         yes
    splits[0]         no    yes   no    yes
    leaf_values        0     1     2     3
"""

from __future__ import annotations

import json
import math
import reprlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import NotFittedError

from ranktrees._core.support.dtypes import NODE
from ranktrees.formats.plain import CBM, last_float64_rounded_to, refuse_others, require_path_of
from ranktrees.model.ensemble import Ensemble
from ranktrees.support.files import read_file

if TYPE_CHECKING:
    pass

__all__ = ["load_catboost"]

# Whether missing values of a feature with this treatment are below all borders, rather than above.
NAN_IS_LEAST = {"AsIs": True, "AsFalse": True, "AsTrue": False}

# By loss, the link of its predictions. All others predict scores.
LINK_OF = {
    **dict.fromkeys(["Logloss", "CrossEntropy", "Focal"], "logistic"),
    **dict.fromkeys(["Poisson", "Tweedie"], "poisson"),
}


def load_catboost(model: Any) -> Ensemble:
    """Read a model of CatBoost.

    Parameters
    ----------
    model : path-like, CatBoost, CatBoostRanker or another of its estimators
        A file that ``save_model(path, format="json")`` wrote, or a fitted model.

    Returns
    -------
    Ensemble
        The model. `EnsembleRanker` makes an estimator of it, which predicts what CatBoost's rankers and
        regressors do, and for classifiers the second column of ``predict_proba(X)``: the link is read. Its
        scores are those of ``predict(X, prediction_type="RawFormulaVal")``. They may differ in the last bits,
        which depend on the order of the sum.

    Raises
    ------
    TypeError
        If ``model`` is neither a path nor a model of CatBoost.
    sklearn.exceptions.NotFittedError
        If ``model`` is an estimator that is not fitted.
    ValueError
        If the file is of another kind, or if the model is not a sum of trees over numbers: if it has several
        classes or targets, or splits by categories, texts or embeddings, which CatBoost turns into
        statistics.

    See Also
    --------
    load_lightgbm, load_xgboost : The same for other libraries.

    Notes
    -----
    Each tree of depth :math:`d` becomes a tree of :math:`2^{d+1} - 1` nodes. The names of the columns are
    read if all columns have one. The file contains neither the gains of splits nor the number of rows that
    reached a node, so ``feature_importances_`` and `contributions` raise errors.

    Examples
    --------
    >>> import catboost
    >>> from ranktrees import EnsembleRanker, load_catboost, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> other = catboost.CatBoostRanker(iterations=20, verbose=False, allow_writing_files=False)
    >>> other = other.fit(X, y, group_id=qid)
    >>> ranker = EnsembleRanker(load_catboost(other))
    >>> float(abs(ranker.predict(X) - other.predict(X)).max()) < 1e-9
    True
    """
    if not hasattr(model, "get_scale_and_bias"):
        require_path_of(model, "a model in JSON, or a fitted model of CatBoost")
        return read_file(model, _ensemble_of_file)
    if not model.is_fitted():
        raise NotFittedError(f"model is a {type(model).__name__} that is not fitted; expected a fitted one.")
    return _ensemble_of(_saved(model))


def _saved(model: Any) -> bytes:
    from catboost import CatBoostError  # installed, since the model is one of its

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        try:
            model.save_model(str(path), format="json")
        except CatBoostError as error:
            raise ValueError(
                f"CatBoost does not save the model in JSON ({error}); expected splits of numbers: train it "
                "without texts and embeddings"
            ) from None
        return path.read_bytes()


def _ensemble_of_file(data: Any) -> Ensemble:
    refuse_others(data, "CatBoost", "a model of CatBoost in JSON")
    if data.startswith(CBM):
        raise ValueError(
            "a model of CatBoost in its binary format, expected JSON: load it with "
            "CatBoost().load_model(path), and pass it as it is or save it with save_model(other_path, "
            'format="json")'
        )
    return _ensemble_of(data)


def _ensemble_of(data: Any) -> Ensemble:
    try:
        written = _read_json(data)
        scale, biases = written["scale_and_bias"]
        info = written["features_info"]
        columns = [each for kind, its in info.items() if kind.endswith("_features") for each in its]
        numbers = list(info["float_features"])
        in_order = [each["feature_index"] for each in numbers] == list(range(len(numbers)))
        n_splits = 0
        for feature in numbers:  # splits are numbered by feature, then by border
            feature["first_split"] = n_splits
            n_splits += len(feature["borders"])
        symmetric = "oblivious_trees" in written
        trees = list(written["oblivious_trees" if symmetric else "trees"])
        names = [
            str(each["feature_id"]) for each in sorted(columns, key=lambda each: each["flat_feature_index"])
        ]
        scale, *base = (_number(each, "scale_and_bias") for each in (scale, *biases))
        link = _link(written.get("model_info", {}))
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValueError(
            f"not a model of CatBoost in JSON ({type(error).__name__}: {error}); expected what "
            'save_model(path, format="json") writes'
        ) from None
    if sorted(each["flat_feature_index"] for each in columns) != list(range(len(columns))):
        raise ValueError(f"flat_feature_index of the {len(columns)} features is not 0, 1, ...")
    if not in_order:
        raise ValueError(f"feature_index of the {len(numbers)} float_features does not rise from 0 by 1")
    if len(base) != 1:
        raise ValueError("a model of several classes or targets, expected one score per row")
    nodes, nodes_of = [], _symmetric_tree if symmetric else _tree
    for t, tree in enumerate(trees):
        try:
            its = nodes_of(tree, numbers)
        except ValueError as error:
            raise ValueError(f"tree {t}: {error}") from None
        except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
            raise ValueError(f"tree {t}: damaged ({type(error).__name__}: {error})") from None
        with np.errstate(over="ignore"):
            its["value"] *= scale
            its["cut"] = last_float64_rounded_to(its["cut"].astype(np.float32))
        nodes.append(its)
    names = names if all(names) else None  # type: ignore[assignment]
    return Ensemble.from_trees(nodes, n_features=len(columns), base=base[0], link=link, feature_names=names)


def _link(info: dict[str, Any]) -> str | None:
    """The link of the loss of a model, if the file has it. That of a sum of models is JSON in JSON."""
    loss = info.get("params", info).get("loss_function", {})
    loss = json.loads(loss) if isinstance(loss, str) else loss
    return LINK_OF.get(loss.get("type"))


def _symmetric_tree(tree: dict[str, Any], numbers: list[Any]) -> np.ndarray:
    """The nodes layer by layer: layer ``l`` consists of the ``2**l`` nodes from ``2**l - 1`` on."""
    values = np.array([_number(value, "leaf_values") for value in tree["leaf_values"]])
    splits = tree.get("splits") or []
    if values.shape != (2 ** len(splits),):
        raise ValueError(f"{len(splits)} splits have {len(values)} leaf_values, expected {2 ** len(splits)}")
    nodes = np.zeros(2 * len(values) - 1, NODE)
    nodes["feature"], nodes["categories"] = -1, -1
    n_inner = len(values) - 1
    nodes["value"][n_inner:] = values
    for layer, split in enumerate(reversed(splits)):
        _ask(nodes, slice(2**layer - 1, 2 ** (layer + 1) - 1), split, numbers)
    nodes["left"][:n_inner] = 2 * np.arange(n_inner) + 1
    nodes["right"][:n_inner] = nodes["left"][:n_inner] + 1
    return nodes


def _tree(tree: dict[str, Any], numbers: list[Any]) -> np.ndarray:
    """The nodes of a tree in which each node has a split of its own, parents first."""
    found = [tree]
    for node in found:
        if "split" in node:
            found += [node["left"], node["right"]]
    nodes = np.zeros(len(found), NODE)
    nodes["feature"], nodes["categories"] = -1, -1
    n_before = 1
    for i, node in enumerate(found):
        if "split" not in node:
            nodes["value"][i] = _number(node["value"], "value")
            continue
        _ask(nodes, i, node["split"], numbers)
        nodes["left"][i], nodes["right"][i] = n_before, n_before + 1
        n_before += 2
    return nodes


def _read_json(data: Any) -> Any:
    """Read JSON without numbers that are none in double precision, at which CatBoost stops to read."""
    return json.loads(data, parse_int=_whole, parse_float=_finite, parse_constant=_finite)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{reprlib.repr(text)} is no finite number in double precision")
    return number


def _whole(digits: str) -> int:
    _finite(digits)
    return int(digits)


def _number(value: Any, name: str) -> float:
    """A number as CatBoost takes it: neither true nor false, nor whole and beyond 53 bits."""
    is_number = isinstance(value, float) or (type(value) is int and abs(value) <= 2**53)
    if not is_number:
        raise ValueError(f"{name} has {reprlib.repr(value)}, expected numbers")
    return float(value)


def _ask(nodes: np.ndarray, which: Any, split: Any, numbers: list[Any]) -> None:
    """Make nodes split as CatBoost does: values that are not above the border go left."""
    if split["split_type"] != "FloatFeature":
        raise ValueError(
            f"a split of the type {split['split_type']!r}, expected splits of numbers: CatBoost splits "
            "categories, text and embeddings by statistics"
        )
    number = split["float_feature_index"]
    if number not in range(len(numbers)):
        raise ValueError(f"float_feature_index={number!r}, expected one of the {len(numbers)} float_features")
    feature = numbers[number]
    border, known = _number(split["border"], "border"), feature["borders"]
    if border not in known:
        raise ValueError(f"border={border!r} is none of the {len(known)} borders of feature {number}")
    expected = feature["first_split"] + known.index(border)
    if (index := split["split_index"]) != expected:
        raise ValueError(f"split_index={index!r}, expected {expected}, that of border={border!r}")
    nodes["feature"][which] = feature["flat_feature_index"]
    nodes["cut"][which] = border
    nodes["missing_left"][which] = NAN_IS_LEAST[feature["nan_value_treatment"]]
