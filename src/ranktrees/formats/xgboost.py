r"""XGBoost's models in JSON, which it saves by ``save_model``: written, and read.

XGBoost has single precision, and asks ``x < cut``. Its cut is the first float32 that goes right: rows of
float32 reach the same leaves, whatever their values. What it adds up is rounded to single precision.

Of categories it knows sets of which the members go right; numbers that it has not seen go left, and NaN to a
side of its own.
"""

import json
import math
import os
from pathlib import Path

import numpy as np

from ranktrees._core.dtypes import NODE
from ranktrees.ensemble import MAX_CATEGORIES
from ranktrees.files import read_file, replace_file
from ranktrees.formats.plain import (
    added_up,
    first_float32_above,
    from_sets,
    last_float64_rounded_to,
    one_sided,
    require_path,
    shortest,
)

__all__ = ["dump_xgboost", "load_xgboost"]

NO_PARENT = 2**31 - 1

# What scores start from is written as a prediction: how a score is made of that, by the objective.
SCORE_OF = {
    **dict.fromkeys(["binary:logistic", "binary:logitraw", "reg:logistic"], lambda p: math.log(p / (1 - p))),
    **dict.fromkeys(["count:poisson", "reg:gamma", "reg:tweedie"], math.log),
    **dict.fromkeys(["rank:map", "rank:ndcg", "rank:pairwise"], float),
    **dict.fromkeys(["reg:absoluteerror", "reg:pseudohubererror", "reg:squarederror"], float),
    "reg:squaredlogerror": float,
}


def dump_xgboost(model, path, *, feature_names=None):
    """Write a model as XGBoost's JSON.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of trees of this library.
    path : path-like
        Where to, by the suffix ``.json``, which XGBoost looks at; read it by
        ``xgboost.Booster(model_file=path)``.
    feature_names : sequence of str, default=None
        None: the names of the columns of the data frame that the model was fitted to, if it was.

    Raises
    ------
    TypeError
        If the model is not made of trees of this library.
    ValueError
        If its trees are not the whole model, categories are not whole numbers from 0 to 2**24 - 1, or the
        suffix is another one.

    See Also
    --------
    load_xgboost : Read such a file.
    dump_elasticsearch : What XGBoost's ``dump_model`` writes, which search engines read.

    Notes
    -----
    Rows of float32 reach the same leaves; of others XGBoost rounds the values first. Scores have single
    precision, about seven digits.

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
    if Path(path).suffix != ".json":
        raise ValueError(f"path={os.fspath(path)!r}; expected the suffix '.json', which XGBoost looks at.")
    written = json.dumps(_written(added_up(model, feature_names)), allow_nan=False)
    replace_file(path, written.encode())


def load_xgboost(model):
    """Read a model of XGBoost.

    Parameters
    ----------
    model : path-like, xgboost.Booster, XGBRanker or another of its estimators
        A file that ``save_model`` wrote in JSON, of which all trees are taken; or a fitted model. Of an
        estimator the best iteration is taken if it has one, as its ``predict`` does.

    Returns
    -------
    Ensemble
        `EnsembleRanker` makes an estimator of it. Its scores are those of XGBoost's
        ``predict(X, output_margin=True)``, which adds them up in single precision: about seven digits are
        the same, and the leaves that rows reach all are.

    Raises
    ------
    TypeError
        If it is neither a path nor a model of XGBoost.
    ValueError
        If it is another kind of file, or a model that is not a sum of such trees: linear, of several classes
        or targets, of an objective by which it is not known what scores start from, or of categories that
        are not below 256.

    See Also
    --------
    dump_xgboost : Write such a file.

    Notes
    -----
    Names of columns come along, but not the levels of category columns: pass ``category_levels`` to
    `EnsembleRanker`. The number of rows in a node is not known, so there are no `contributions`.

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
    if hasattr(booster, "save_raw"):
        best = None if booster is model else booster.attr("best_iteration")
        ensemble_of = booster if best is None else booster[: int(best) + 1]
        return _ensemble_of(ensemble_of.save_raw("json"))
    require_path(model, "a model in JSON, or a fitted model of XGBoost")
    return read_file(model, _ensemble_of)


def _written(ensemble):
    nodes, members = one_sided(ensemble)
    trees = np.split(nodes, ensemble.tree_offsets[1:-1])
    booster = {
        "gbtree_model_param": {"num_trees": str(len(trees)), "num_parallel_tree": "1"},
        "trees": [_written_tree(t, tree, members, ensemble.n_features) for t, tree in enumerate(trees)],
        "tree_info": [0] * len(trees),
        "iteration_indptr": list(range(len(trees) + 1)),
    }
    whole = {"base_score": 0, "num_class": 0, "num_feature": ensemble.n_features, "num_target": 1}
    kinds = ["float" if each is None else "c" for each in ensemble.categories]
    learner = {
        "learner_model_param": {name: str(value) for name, value in whole.items()},
        "gradient_booster": {"name": "gbtree", "model": booster},
        "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
        "attributes": {},
        "feature_names": list(ensemble.feature_names or ()),
        "feature_types": kinds if "c" in kinds or ensemble.feature_names else [],
    }
    return {"version": [2, 1, 0], "learner": learner}


def _written_tree(t, nodes, members, n_features):
    """A tree as XGBoost's arrays, brothers side by side; where it splits by categories, members go right."""
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
        "sum_hessian": nodes["count"].astype(float),
        "loss_changes": nodes["gain"],
        "categories": np.concatenate(sets) if sets else np.empty(0, int),
        "categories_nodes": split,
        "categories_segments": np.cumsum([0, *sizes])[:-1],
        "categories_sizes": np.array(sizes, int),
    }
    shape = {"num_nodes": len(nodes), "num_feature": n_features, "num_deleted": 0, "size_leaf_vector": 1}
    return {
        "id": t,
        "tree_param": {name: str(value) for name, value in shape.items()},
        **{name: values.tolist() for name, values in columns.items()},
        "split_conditions": shortest(np.where(inner, first_float32_above(nodes["cut"]), nodes["value"])),
        "base_weights": shortest(nodes["value"]),
    }


def _ensemble_of(data):
    try:
        learner = json.loads(data)["learner"]
        param, booster = learner["learner_model_param"], learner["gradient_booster"]
        objective, n_features = learner["objective"]["name"], int(param["num_feature"])
        start = np.ravel(json.loads(param["base_score"]))
        weights = booster.get("weight_drop")  # of DART, around whose trees there is one more box
        trees = (booster["gbtree"] if booster["name"] == "dart" else booster)["model"].get("trees")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"not a model of XGBoost in JSON ({type(error).__name__}: {error}); expected what save_model "
            "writes to a path that ends in .json, or the model itself"
        ) from None
    if trees is None:
        raise ValueError(f"a model of the booster {booster['name']!r}, expected trees")
    if int(param.get("num_class", 0)) > 1 or int(param.get("num_target", 1)) > 1 or len(start) != 1:
        raise ValueError("a model of several classes or targets, expected one score per row")
    if objective not in SCORE_OF:
        raise ValueError(
            f"the objective {objective!r}: it is not known what scores start from, expected one of "
            f"{sorted(SCORE_OF)}"
        )
    try:
        base = SCORE_OF[objective](float(start[0]))
    except (ValueError, ArithmeticError) as error:
        raise ValueError(f"base_score={start[0]}, which {objective!r} does not predict: {error}") from None
    trees = [_read_tree(t, each) for t, each in enumerate(trees)]
    if weights is not None:
        for (nodes, _), weight in zip(trees, weights, strict=True):
            nodes["value"] *= weight
    numbers = np.arange(MAX_CATEGORIES)  # all that there can be: those in no set have a side, too
    split = {feature for nodes, _ in trees for feature in nodes["feature"][nodes["categories"] >= 0].tolist()}
    return from_sets(
        [nodes for nodes, _ in trees],
        [sets for _, sets in trees],
        dict.fromkeys(split, numbers),
        n_features=n_features,
        base=base,
        feature_names=learner.get("feature_names") or None,
    )


def _read_tree(t, tree):
    """A tree's nodes, parents first and without deleted ones, and the sets that go left."""
    try:
        left, right = np.array(tree["left_children"], int), np.array(tree["right_children"], int)
        numbers, left, right = _breadth_first(np.arange(len(left)), left, right)
        nodes, inner = np.zeros(len(numbers), NODE), left >= 0
        nodes["left"], nodes["right"] = left, right
        nodes["feature"] = np.where(inner, np.array(tree["split_indices"], int)[numbers], -1)
        conditions = np.array(tree["split_conditions"], np.float32)[numbers]
        by_category = inner & (np.array(tree["split_type"], int)[numbers] == 1)
        last_left = np.nextafter(conditions[inner], np.float32(-np.inf))
        nodes["cut"][inner] = last_float64_rounded_to(last_left)
        nodes["value"] = np.where(inner, np.array(tree["base_weights"], np.float32)[numbers], conditions)
        nodes["gain"] = np.where(inner, np.array(tree["loss_changes"], float)[numbers], 0)
        nodes["missing_left"] = np.array(tree["default_left"], int)[numbers] & inner
        nodes["categories"] = np.where(by_category, np.cumsum(by_category) - 1, -1)
        nodes["cut"][by_category] = 0
        go_left = _sets(tree, numbers[by_category])
    except (LookupError, TypeError) as error:
        raise ValueError(f"tree {t}: {type(error).__name__}: {error}") from None
    except ValueError as error:
        raise ValueError(f"tree {t}: {error}") from None
    return nodes, go_left


def _sets(tree, numbers):
    """For each of these nodes the categories that go left: all that are not in its set."""
    begins = dict(zip(tree["categories_nodes"], range(len(tree["categories_nodes"])), strict=True))
    everything = np.arange(MAX_CATEGORIES)
    sets = []
    for number in numbers.tolist():
        place = begins[number]
        start, size = tree["categories_segments"][place], tree["categories_sizes"][place]
        members = np.array(tree["categories"][start : start + size], int)
        if ((members < 0) | (members >= MAX_CATEGORIES)).any():
            raise ValueError(
                f"a split by the categories {members.tolist()[:5]}..., expected numbers below "
                f"{MAX_CATEGORIES}"
            )
        sets.append(np.setdiff1d(everything, members))
    return sets


def _breadth_first(nodes, left, right):
    """(nodes, left, right) layer by layer, each right child behind the left one; without what no layer has.

    Children are -1 in leaves.
    """
    layers, layer, n_reached = [], np.zeros(1, int), 0
    while len(layer):
        n_reached += len(layer)
        if n_reached > len(left) or layer.min() < 0 or layer.max() >= len(left):
            raise ValueError("children are not those of a tree")
        layers.append(layer)
        inner = layer[left[layer] >= 0]
        layer = np.column_stack([left[inner], right[inner]]).ravel()
    order = np.concatenate(layers)
    place = np.full(len(left) + 1, -1)  # the last for the children of leaves
    place[order] = np.arange(len(order))
    return nodes[order], place[left[order]], place[right[order]]
