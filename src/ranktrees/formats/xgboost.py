r"""Write and read XGBoost's models in JSON, which XGBoost saves by ``save_model``.

XGBoost works in single precision, and compares by ``x < cut``. A cut is written as the first float32 that
goes right, so rows of float32 reach the same leaves, whatever their values. Sums are rounded to single
precision.

XGBoost splits categories by sets whose members go right. Numbers that it has not seen go left, and NaN goes
to a side of its own.
"""

from __future__ import annotations

import json
import math
import os
import re
import reprlib
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees._core.support.dtypes import NODE
from ranktrees.estimators.columns import warn_of_lost_levels
from ranktrees.estimators.links import warn_of_lost_link
from ranktrees.evaluation.own_models import fitted_trees
from ranktrees.formats.plain import (
    added_up,
    first_float32_above,
    from_sets,
    last_float64_rounded_to,
    one_sided,
    refuse_others,
    require_names_without,
    require_path_of,
    short,
    shortest,
    whole_numbers,
)
from ranktrees.model.ensemble import MAX_IN_SETS, Ensemble, covers_of
from ranktrees.support.files import read_file, replace_file, require_path
from ranktrees.support.warning import warn

if TYPE_CHECKING:
    from ranktrees.support.annotations import PathLike

__all__ = ["dump_xgboost", "load_xgboost"]

NO_PARENT = 2**31 - 1

PARTS = {"trees", "gbtree_model_param", "tree_info", "iteration_indptr", "cats", "weight_drop"}  # of a model

INT64 = 15  # XGBoost's number for the type of levels that are numbers

UBJSON = re.compile(rb"\{[iUIlL$#]")  # UBJSON begins like this, and JSON never does

# By link, the objective with its settings, and what a score of 0 is as a prediction.
OBJECTIVES: dict[str | None, tuple[dict[str, Any], float]] = {
    None: ({"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}}, 0),
    "logistic": ({"name": "binary:logistic", "reg_loss_param": {"scale_pos_weight": "1"}}, 0.5),
    "poisson": ({"name": "count:poisson", "poisson_regression_param": {"max_delta_step": "0.7"}}, 1),
}

MAX_FEATURES = 2**24  # a file may claim any number
SURE = 1e-6  # for probabilities nearer to 0 and 1, versions of XGBoost differ in what scores start from


def _logit(p: float) -> float:
    if not SURE < p < 1 - SURE:
        raise ValueError(f"expected a probability between {SURE} and {1 - SURE}")
    return float(-np.log(np.float32(1) / np.float32(p) - np.float32(1)))


# The number that scores start from is written as a prediction. By objective, how to turn that into a score,
# and the link by which the objective predicts.
READ_AS: dict[str, tuple[Callable[[float], float], str | None]] = {
    **dict.fromkeys(["binary:logistic", "reg:logistic"], (_logit, "logistic")),
    **dict.fromkeys(["count:poisson", "reg:gamma", "reg:tweedie"], (math.log, "poisson")),
    **dict.fromkeys(["rank:map", "rank:ndcg", "rank:pairwise"], (float, None)),
    **dict.fromkeys(["reg:absoluteerror", "reg:pseudohubererror", "reg:squarederror"], (float, None)),
    "reg:squaredlogerror": (float, None),
}


def dump_xgboost(model: Any, path: PathLike, *, feature_names: Sequence[str] | None = None) -> None:
    """Write a model as a JSON model of XGBoost.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble.
    path : path-like
        The path of the file. It must end in ``.json``, by which XGBoost tells the format. Read the file by
        ``xgboost.Booster(model_file=path)``.
    feature_names : sequence of str, default=None
        The names of the columns, in the order of the model. If None, those of the data frame that the model
        was fitted to, if it was.

    Raises
    ------
    TypeError
        If the model is not made of trees of this library.
    ValueError
        If the trees are not the whole model, if categories are not whole numbers from 0 to 2**24 - 1, if a
        value is beyond single precision, if names contain ``[``, ``]`` or ``<``, or are those of the model in
        another order, or if the path has another suffix.

    See Also
    --------
    load_xgboost : Read such a file.
    dump_elasticsearch : What XGBoost's ``dump_model`` writes, which search engines read.

    Notes
    -----
    The objective in the file is that of the link: ``binary:logistic`` for classifiers, for which XGBoost
    predicts the probability of the second class, and for the logistic loss, ``count:poisson`` for the Poisson
    loss, and otherwise ``reg:squarederror``. The scores are the margins (``output_margin=True``).

    Rows of float32 reach the same leaves. XGBoost rounds the values of other rows to float32 first. Scores
    have single precision, about seven digits.

    If the model was fitted to a data frame, the levels of its category columns are written in the form that
    XGBoost has used since 3.1, which looks up the levels of other data frames in them. A level that the model
    does not know is a missing value in this library. XGBoost takes it for the next one in their order, or
    refuses it. XGBoost supports levels that are ASCII strings or whole numbers. For other levels, and for
    older versions, pass the numbers that the model has for them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ranktrees import LambdaMARTRanker, dump_xgboost, load_xgboost, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(X, y, qid=qid)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump_xgboost(ranker, Path(folder, "model.json"))
    ...     read = load_xgboost(Path(folder, "model.json"))
    >>> float(abs(read.predict(X) - ranker.predict(X)).max()) < 1e-6
    True
    """
    ensemble = added_up(model, feature_names)
    require_path(path, "path", "a file")
    if Path(path).suffix != ".json":
        raise ValueError(
            f"path={os.fspath(path)!r}; expected the suffix '.json', by which XGBoost knows the format."
        )
    require_names_without(
        ensemble.feature_names or (),
        r"[\[\]<\0]",
        "XGBoost's DMatrix refuses such names",
        "names without '[', ']' and '<'",
    )
    warn_of_lost_levels(fitted_trees(model), ensemble)
    warn_of_lost_link(fitted_trees(model))
    written = _written(ensemble, *OBJECTIVES[ensemble.link])
    # XGBoost does not read escaped characters, but it reads Infinity.
    replace_file(path, json.dumps(written, ensure_ascii=False).encode(), "the model")


def load_xgboost(model: Any) -> Ensemble:
    """Read a model of XGBoost.

    Parameters
    ----------
    model : path-like, xgboost.Booster, XGBRanker or another of its estimators
        A file that ``save_model`` wrote in JSON, of which all trees are taken, or a fitted model. If a fitted
        estimator has a best iteration, only the trees up to it are taken, as its ``predict`` does.

    Returns
    -------
    Ensemble
        The model. `EnsembleRanker` makes an estimator of it, which predicts what ``predict`` of a ``Booster``
        does: the link of the objective is read. Its scores are those of XGBoost's
        ``predict(X, output_margin=True)`` to about seven digits, since XGBoost adds up in single precision.

    Raises
    ------
    TypeError
        If ``model`` is neither a path nor a model of XGBoost.
    ValueError
        If the file is of another kind, or if the model is not a sum of trees like those of this library: if
        it is linear, has several classes or targets, has no trees, has an objective for which it is not known
        what scores start from, has sets of categories that are not below 256, or is an estimator whose
        ``missing`` is not NaN.

    See Also
    --------
    dump_xgboost : Write such a file.

    Notes
    -----
    The names of the columns are read, and so are the levels of category columns of data frames, if the model
    has them. XGBoost 3.2 writes levels that are ASCII strings or whole numbers, but not those of a part of a
    booster, ``booster[:n]``, and it cuts off the ends of other strings. Where levels are lacking, pass
    ``category_levels`` to `EnsembleRanker`. Without them a data frame is refused.

    All trees of a file are taken. If the model was stopped early,
    ``Ensemble.first((best_iteration + 1) * num_parallel_tree)`` keeps those up to its attribute
    ``best_iteration``. The number of rows in a node is not known: `contributions` weigh the sides of a split
    by the hessians of the rows there, as XGBoost's own do.

    There are some differences. Absent entries of sparse rows are 0 in this library, and missing values in
    XGBoost. Categories that are not whole numbers below 256 are missing values in this library, while XGBoost
    sends them left. Levels of a data frame that the model does not know are missing values as well, while
    XGBoost 3.2 takes them for the next ones in their order, or refuses them.

    Examples
    --------
    >>> import xgboost
    >>> from ranktrees import EnsembleRanker, load_xgboost, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> other = xgboost.XGBRanker(n_estimators=20).fit(X, y, qid=qid)
    >>> ranker = EnsembleRanker(load_xgboost(other))
    >>> float(abs(ranker.predict(X) - other.predict(X)).max()) < 1e-5
    True
    """
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    missing = getattr(model, "missing", None)
    if missing is not None and not np.isnan(missing):
        raise ValueError(
            f"a model with missing={missing}, expected NaN: train it with NaN where values are missing."
        )
    if hasattr(booster, "save_raw"):
        best, written = None if booster is model else booster.attr("best_iteration"), booster.save_raw("json")
        if best is None:
            return _ensemble_of(written)
        ensemble = _ensemble_of(booster[: int(best) + 1].save_raw("json"))  # this part has no levels
        return ensemble._with_columns(ensemble.feature_names, _ensemble_of(written).category_levels)
    require_path_of(model, "a model in JSON, or a fitted model of XGBoost")
    return read_file(model, _ensemble_of_file)


def _written(ensemble: Ensemble, objective: dict[str, Any], base_score: float) -> dict[str, Any]:
    nodes, members = one_sided(ensemble)
    trees = np.split(nodes, ensemble.tree_offsets[1:-1])
    booster = {
        "gbtree_model_param": {"num_trees": str(len(trees)), "num_parallel_tree": "1"},
        "trees": [_written_tree(t, tree, members, ensemble.n_features) for t, tree in enumerate(trees)],
        "tree_info": [0] * len(trees),
        "iteration_indptr": list(range(len(trees) + 1)),
    }
    whole = {"base_score": base_score, "num_class": 0, "num_feature": ensemble.n_features, "num_target": 1}
    levels = ensemble.category_levels
    kinds = [
        "float" if categories is None and feature not in levels else "c"
        for feature, categories in enumerate(ensemble.categories)
    ]
    learner = {
        "learner_model_param": {name: str(value) for name, value in whole.items()},
        "gradient_booster": {"name": "gbtree", "model": booster},
        "objective": objective,
        "attributes": {},
        "feature_names": list(ensemble.feature_names or ()),
        "feature_types": kinds if "c" in kinds or ensemble.feature_names else [],
    }
    if not levels:
        return {"version": [2, 1, 0], "learner": learner}
    booster["cats"] = _written_levels(ensemble)
    return {"version": [3, 1, 0], "learner": learner}


def _written_levels(ensemble: Ensemble) -> dict[str, Any]:
    """The levels of each column, and their sorted order, in the form that XGBoost has used since 3.1."""
    encoded, orders, lost = [], [], []
    for feature in range(ensemble.n_features):
        levels = ensemble.category_levels.get(feature, ())
        whole = all(type(level) is int and -(2**63) <= level < 2**63 for level in levels)
        words = all(type(level) is str and level.isascii() for level in levels)
        if not (whole or words):
            lost.append(feature)
            levels = ()
        if whole and levels:
            encoded.append({"type": INT64, "values": list(levels)})
        else:
            offsets = np.cumsum([0, *map(len, levels)]).tolist() if levels else []
            encoded.append({"offsets": offsets, "values": list("".join(levels).encode())})
        orders.append(sorted(range(len(levels)), key=levels.__getitem__))
    if lost:
        names = ensemble.feature_names or range(ensemble.n_features)
        warn(
            f"the levels of column {names[lost[0]]!r} are not written: XGBoost supports ASCII strings and "
            "64-bit integers as levels, and may mistake the codes of a data frame for other categories: "
            "pass it the codes of the model.",
            UserWarning,
        )
    segments = np.cumsum([0, *map(len, orders)]).tolist()
    return {"enc": encoded, "feature_segments": segments, "sorted_idx": list(chain(*orders))}


def _written_tree(t: int, nodes: np.ndarray, members: list[Any], n_features: int) -> dict[str, Any]:
    """A tree as XGBoost's arrays, siblings side by side; the members of a set of categories go right."""
    inner, by_category = nodes["feature"] >= 0, nodes["categories"] >= 0
    left = np.where(inner, np.where(by_category, nodes["right"], nodes["left"]), -1)
    right = np.where(inner, np.where(by_category, nodes["left"], nodes["right"]), -1)
    nodes, left, right = _breadth_first(nodes, left, right)
    inner, split = left >= 0, np.flatnonzero(nodes["categories"] >= 0)
    default_left = nodes["missing_left"].copy()
    default_left[split] = 1
    parents = np.full(len(nodes), NO_PARENT)
    for child in (left, right):
        parents[child[inner]] = np.flatnonzero(inner)
    sets = [members[number] for number in nodes["categories"][split]]
    sizes = [len(each) for each in sets]
    columns = {
        "left_children": left,
        "right_children": right,
        "parents": parents,
        "split_indices": np.where(inner, nodes["feature"], 0),
        "split_type": np.where(nodes["categories"] >= 0, 1, 0),
        "default_left": default_left,
        "sum_hessian": covers_of(nodes),
        "loss_changes": nodes["gain"],
        "categories": np.concatenate(sets) if sets else np.empty(0, int),
        "categories_nodes": split,
        "categories_segments": np.cumsum([0, *sizes])[:-1],
        "categories_sizes": np.array(sizes, int),
    }
    cuts, values = short(first_float32_above(nodes["cut"])), shortest(nodes["value"])
    shape = {"num_nodes": len(nodes), "num_feature": n_features, "num_deleted": 0, "size_leaf_vector": 1}
    return {
        "id": t,
        "tree_param": {name: str(value) for name, value in shape.items()},
        **{name: values.tolist() for name, values in columns.items()},
        "split_conditions": np.where(inner, cuts, values).tolist(),
        "base_weights": values,
    }


def _ensemble_of_file(data: bytes) -> Ensemble:
    refuse_others(data, "XGBoost", "a model of XGBoost in JSON")
    if UBJSON.match(data):
        raise _not_a_model(
            "it looks like UBJSON, which xgboost.Booster(model_file=path) reads and "
            '.save_model("model.json") converts to JSON'
        )
    return _ensemble_of(data)


def _not_a_model(seen: str) -> ValueError:
    return ValueError(
        f"not a model of XGBoost in JSON ({seen}); expected what save_model writes to a path that ends in "
        ".json, or the model itself"
    )


def _read_json(text: str | bytes) -> Any:
    return json.loads(text, parse_int=_whole)


def _whole(digits: str) -> int:
    """A whole number within 64 bits; XGBoost takes others for their last 64 bits."""
    number = int(digits)
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"the whole number {reprlib.repr(number)}, expected numbers within 64 bits")
    return number


def _ensemble_of(data: Any) -> Ensemble:
    try:
        learner = _read_json(data)["learner"]
        booster, model = _model_of(learner)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise _not_a_model(f"{type(error).__name__}: {error}") from None
    if "trees" not in model:
        raise ValueError(f"a model of the booster {booster['name']!r}, expected trees")
    try:
        return _read(learner, model, _weights(booster, model, len(model["trees"])))
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise ValueError(f"damaged ({type(error).__name__}: {error})") from None


def _model_of(learner: Any) -> tuple[Any, Any]:
    """The booster and its model, checked to have all its trees. DART nests its model one level deeper."""
    booster = learner["gradient_booster"]
    model = (booster["gbtree"] if booster["name"] == "dart" else booster)["model"]
    trees = model.get("trees")
    if trees is not None and len(trees) != int(model["gbtree_model_param"]["num_trees"]):
        raise ValueError(f"{len(trees)} trees, expected num_trees={model['gbtree_model_param']['num_trees']}")
    return booster, model


def _require_all_taken(model: Any) -> None:
    """Raise if XGBoost would leave trees out, add them to other scores, or do what is not known here."""
    if unknown := sorted(set(model) - PARTS):
        raise ValueError(
            f"the model has {', '.join(unknown)}, which versions of XGBoost up to 3.4 do not write; expected "
            f"{', '.join(sorted(PARTS))}: update ranktrees, or save the model by an older XGBoost"
        )
    n_trees = len(model["trees"])
    ends = model.get("iteration_indptr", [0, n_trees])  # since XGBoost 2
    if not ends or ends[0] != 0 or ends[-1] != n_trees or any(a > b for a, b in pairwise(ends)):
        raise ValueError(f"iteration_indptr={ends} does not rise from 0 to the number of trees, {n_trees}")
    if (classes := model.get("tree_info", [0] * n_trees)) != [0] * n_trees:
        raise ValueError(f"tree_info={classes}, expected 0 for each of {n_trees} trees: one score per row")


def _weights(booster: Any, model: Any, n_trees: int) -> np.ndarray:
    """The weights of the trees, of which only DART has any; since XGBoost 3.4 in the model itself."""
    given = booster["weight_drop"] if booster["name"] == "dart" else model.get("weight_drop", [1.0] * n_trees)
    weights = _parsed(lambda values: np.asarray(values, float), given, "weight_drop")
    if weights.shape != (n_trees,):
        raise ValueError(
            f"weight_drop has the shape {weights.shape}, expected one number for each of {n_trees} trees"
        )
    return weights


def _read(learner: Any, model: Any, weights: np.ndarray) -> Ensemble:
    param, objective = learner["learner_model_param"], learner["objective"]["name"]
    start = _parsed(_numbers, param["base_score"], "base_score")
    n_classes, n_targets = (_parsed(int, param.get(name, 1), name) for name in ("num_class", "num_target"))
    if n_classes > 1 or n_targets > 1 or len(start) != 1:
        raise ValueError("a model of several classes or targets, expected one score per row")
    _require_all_taken(model)
    if objective not in READ_AS:
        raise ValueError(
            f"the objective {objective!r}: it is not known from what value its scores start, expected one "
            f"of {sorted(READ_AS)}: train it with one of them"
        )
    score_of, link = READ_AS[objective]
    try:
        base = score_of(start[0])
    except ValueError as error:
        raise ValueError(f"base_score={start[0]:g} of {objective!r}: {error}") from None
    if not model["trees"]:
        raise ValueError(
            "a model without trees: versions of XGBoost differ in the value from which its scores start, "
            "expected at least one tree: train it for a round or more"
        )
    n_features = _parsed(int, param["num_feature"], "num_feature")
    if n_features > MAX_FEATURES:
        raise ValueError(f"num_feature={n_features}, expected at most {MAX_FEATURES}")
    nodes, members = [], []
    for t, tree in enumerate(model["trees"]):
        try:
            its_nodes, its_members = _read_tree(tree, n_features)
        except ValueError as error:
            raise ValueError(f"tree {t}: {error}") from None
        nodes.append(its_nodes)
        members.append(its_members)
    for tree, weight in zip(nodes, weights.tolist(), strict=True):
        tree["value"] *= weight
    numbers = np.arange(MAX_IN_SETS)  # all possible categories, since those in no set have a side, too
    split = {feature for tree in nodes for feature in tree["feature"][tree["categories"] >= 0].tolist()}
    return from_sets(
        nodes,
        members,
        dict.fromkeys(split, numbers),
        n_features=n_features,
        base=base,
        link=link,
        feature_names=learner.get("feature_names") or None,
        category_levels=_levels(model["cats"]["enc"], n_features) if "cats" in model else None,
    )


def _numbers(text: str) -> list[float]:
    return [float(each) for each in np.ravel(_read_json(text)).tolist()]


def _parsed(parse: Callable[[Any], Any], value: Any, name: str) -> Any:
    """Parse an entry of a file as a number, or as numbers; messages call it ``name``."""
    try:
        return parse(value)
    except ValueError as error:
        raise ValueError(f"damaged ({name}: {error})") from None


def _levels(columns: list[Any], n_features: int) -> dict[Any, Any]:
    """The levels of category columns of a data frame, by feature, as far as there is no doubt about them."""
    if columns and len(columns) != n_features:
        raise ValueError(f"cats has {len(columns)} columns for {n_features} features")
    levels = {}
    for feature, column in enumerate(columns):
        try:
            if "offsets" not in column:
                levels[feature] = whole_numbers(column["values"], "values", -(2**63), 2**63 - 1).tolist()
            elif column["offsets"] and (strings := _strings(column["offsets"], column["values"])):
                levels[feature] = strings
        except ValueError as error:
            raise ValueError(f"cats of feature {feature}: {error}") from None
    return levels


def _strings(offsets: np.ndarray, values: np.ndarray) -> list[str] | None:
    """The strings whose bytes, as signed numbers, are concatenated; None if not all are ASCII.

    For levels of pandas, XGBoost 3.2 counts characters instead of bytes, and cuts off the last ones.
    """
    offsets = whole_numbers(offsets, "offsets", 0, len(values))
    if offsets[0] != 0 or offsets[-1] != len(values) or (np.diff(offsets) < 0).any():
        raise ValueError(f"offsets do not rise from 0 to {len(values)}")
    text = whole_numbers(values, "values", -128, 127).astype(np.int8).tobytes()
    if not text.isascii():
        return None
    return [text[start:end].decode() for start, end in pairwise(offsets.tolist())]


def _read_tree(tree: dict[str, Any], n_features: int) -> tuple[np.ndarray, list[Any]]:
    """The nodes of a tree, parents first and without deleted ones, and the sets that go left."""
    n_nodes = len(tree["left_children"])

    def column(name: str) -> np.ndarray:
        values = _parsed(np.asarray, tree[name], name)
        if values.shape != (n_nodes,):
            raise ValueError(
                f"{name} has the shape {values.shape}, expected one number for each of {n_nodes} nodes"
            )
        return values

    def of_nodes(name: str) -> np.ndarray:
        with np.errstate(over="ignore"):
            return _parsed(lambda values: values.astype(np.float32), column(name), name)[order]

    def of_splits(name: str, high: int) -> np.ndarray:
        return whole_numbers(column(name)[order][inner], name, 0, high)

    children = ("left_children", "right_children")
    left, right = (whole_numbers(column(name), name, -1, n_nodes - 1) for name in children)
    order, left, right = _breadth_first(np.arange(n_nodes), left, right)
    inner = left >= 0
    nodes = np.zeros(len(order), NODE)
    nodes["left"], nodes["right"], nodes["feature"], nodes["categories"] = left, right, -1, -1
    conditions = of_nodes("split_conditions")
    with np.errstate(over="ignore"):
        last_left = np.nextafter(conditions[inner], np.float32(-np.inf))
    by_category = np.zeros(len(order), bool)
    if "split_type" in tree:  # older versions had no categories
        by_category[inner] = of_splits("split_type", 1) == 1
    nodes["feature"][inner] = of_splits("split_indices", n_features - 1)
    nodes["cut"][inner] = last_float64_rounded_to(last_left)
    nodes["cut"][by_category] = 0
    nodes["value"] = np.where(inner, of_nodes("base_weights"), conditions)
    nodes["gain"][inner] = np.nan_to_num(of_nodes("loss_changes")[inner])
    nodes["missing_left"][inner] = of_splits("default_left", 1)
    covers = of_nodes("sum_hessian")
    nodes["cover"] = np.where(np.isfinite(covers) & (covers > 0), covers, 0)
    nodes["categories"][by_category] = np.arange(np.count_nonzero(by_category))
    return nodes, _sets(tree, order[by_category]) if by_category.any() else []


def _sets(tree: dict[str, Any], numbers: np.ndarray) -> list[np.ndarray]:
    """For each of these nodes, the categories that go left: all that are not in its set."""
    n_members = len(tree["categories"])
    starts = whole_numbers(tree["categories_segments"], "categories_segments", 0, n_members)
    sizes = whole_numbers(tree["categories_sizes"], "categories_sizes", 0, n_members)
    places = {number: place for place, number in enumerate(tree["categories_nodes"])}
    everything = np.arange(MAX_IN_SETS)
    sets = []
    for number in numbers.tolist():
        start, size = starts[places[number]], sizes[places[number]]
        if start + size > n_members:
            raise ValueError("categories_segments and categories_sizes reach beyond categories")
        members = tree["categories"][start : start + size]
        sets.append(np.setdiff1d(everything, whole_numbers(members, "categories", 0, MAX_IN_SETS - 1)))
    return sets


def _breadth_first(
    nodes: np.ndarray, left: np.ndarray, right: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return (nodes, left, right) layer by layer, each right child after the left one.

    Nodes that no layer contains are left out. Children are -1 in leaves.
    """
    layers, layer, n_reached = [], np.zeros(1, int), 0
    while len(layer):
        n_reached += len(layer)
        if n_reached > len(left) or layer.min() < 0 or layer.max() >= len(left):
            raise ValueError("children do not form a tree")
        layers.append(layer)
        inner = layer[left[layer] >= 0]
        layer = np.column_stack([left[inner], right[inner]]).ravel()
    order = np.concatenate(layers)
    place = np.full(len(left) + 1, -1)  # the last one is for the children of leaves
    place[order] = np.arange(len(order))
    return nodes[order], place[left[order]], place[right[order]]
