"""A model in terms that other libraries share: trees that are added up, sets of numbers, and cuts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ranktrees._core.support.dtypes import NODE
from ranktrees.evaluation.own_models import fitted_trees
from ranktrees.model.ensemble import MAX_CATEGORIES, Ensemble, checked_renames, pack
from ranktrees.model.native import MAGIC
from ranktrees.support.cuts import round_down
from ranktrees.support.files import require_path

N_WHOLE_NUMBERS = 2**24  # this many, from 0 on, are distinct in single precision
INFINITE = 1e39  # is infinite in single precision
FLOAT32_END = 2.0**128  # the number that would follow the largest float32
MAX_DEPTH = 250  # of trees written as nested text, which readers, including ours, parse recursively


def added_up(model: Any, feature_names: Sequence[str] | None = None) -> Ensemble:
    """Return the trees of a model in a form in which a score is the sum of their values and nothing else.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble.
    feature_names : sequence of str, default=None
        The names of the columns, in the order of the model. If None, those of the model.

    Returns
    -------
    Ensemble
        An ensemble of at least one tree, without ``average`` and with ``base`` 0. The base of the model is in
        the values of the first tree.

    Raises
    ------
    TypeError
        If the model is not made of trees of this library.
    ValueError
        If the trees are not the whole model, if there is not one name for each feature, or if the names are
        those of the model in another order.

    Examples
    --------
    >>> added_up(Ensemble.from_trees([], n_features=3, base=0.5)).nodes["value"]
    array([0.5])
    """
    ensemble = Ensemble.joined([fitted_trees(model)._whole_ensemble("pickle the estimator")])
    if feature_names is not None:
        names = checked_renames(feature_names, ensemble.feature_names, ensemble.n_features)
        ensemble = ensemble._with_columns(names, ensemble.category_levels)
    nodes = ensemble.nodes.copy()
    tree_offsets: Any = ensemble.tree_offsets
    if not len(ensemble):
        nodes, tree_offsets = single_leaf(0.0), [0, 1]
    nodes["value"][: tree_offsets[1]] += ensemble.base
    return ensemble._replace(nodes=nodes, tree_offsets=tree_offsets, base=0.0)


def single_leaf(value: float) -> np.ndarray:
    """Return a tree without a split."""
    leaf = np.zeros(1, NODE)
    leaf["feature"], leaf["categories"], leaf["value"] = -1, -1, value
    return leaf


def one_sided(ensemble: Ensemble) -> tuple[np.ndarray, list[Any]]:
    """Return nodes whose categories are sets: members go left, and everything else, including NaN, right.

    Parameters
    ----------
    ensemble : Ensemble
        The ensemble.

    Returns
    -------
    nodes : ndarray of `NODE` records
        The nodes of the ensemble. The children of categorical nodes have changed sides if missing values go
        left. ``categories`` is the number of the set.
    members : list of ndarray of int64
        The sets, each in rising order.

    Raises
    ------
    ValueError
        If categories are not whole numbers from 0 to 2**24 - 1.
    """
    nodes = ensemble.nodes.copy()
    members: list[np.ndarray] = []
    for i in np.flatnonzero(nodes["categories"] >= 0).tolist():
        numbers = _whole_categories(ensemble, nodes["feature"][i])
        changes_sides = nodes["missing_left"][i] == 1
        inside = numbers[ensemble.goes_left(i) != changes_sides]
        if bool(len(inside)) == changes_sides:
            nodes["left"][i], nodes["right"][i] = nodes["right"][i], nodes["left"][i]
        if not len(inside):  # all go where missing values go, and some libraries have no empty sets
            nodes["cut"][i], nodes["missing_left"][i], nodes["categories"][i] = np.inf, 1, -1
            continue
        nodes["missing_left"][i], nodes["categories"][i] = 0, len(members)
        members.append(inside)
    return nodes, members


def _whole_categories(ensemble: Ensemble, feature: int) -> np.ndarray:
    categories = ensemble.categories[feature]
    numbers = categories.astype(np.int64)
    if (numbers != categories).any() or (categories < 0).any() or (numbers >= N_WHOLE_NUMBERS).any():
        raise ValueError(
            f"feature {feature} has the categories {categories[:5].tolist()}...; expected whole numbers "
            f"from 0 to {N_WHOLE_NUMBERS - 1}, which other libraries require: number them from 0."
        )
    return numbers


def from_sets(
    trees: list[np.ndarray],
    members: list[list[Any]],
    listed: dict[Any, Any],
    *,
    n_features: int,
    **others: Any,
) -> Ensemble:
    """Return the ensemble of trees whose categories are sets of which the members go left.

    Parameters
    ----------
    trees : list of ndarrays of `NODE` records
        The trees. ``categories`` is the number of the set of a node among those of its tree.
    members : list of lists of ndarrays of int64
        For each tree, its sets.
    listed : dict of int to ndarray
        The categories of each feature that has any, in rising order.
    n_features, **others
        As for `Ensemble.from_trees`.

    Returns
    -------
    Ensemble
        The ensemble.

    Raises
    ------
    ValueError
        If a feature has more than 65,535 categories, or if the trees are not valid.
    """
    for feature, categories in listed.items():
        if len(categories) > MAX_CATEGORIES:
            raise ValueError(
                f"feature {feature} has {len(categories)} categories in splits, expected at most "
                f"{MAX_CATEGORIES}: join the rare ones and train it again."
            )
    most, bitsets = max(map(len, listed.values()), default=0), []
    for nodes, sets in zip(trees, members, strict=True):
        split = np.flatnonzero(nodes["categories"] >= 0)
        bits = np.zeros((len(split), most), bool)
        for row, i in zip(bits, split, strict=True):
            row[np.searchsorted(listed[nodes["feature"][i]], sets[nodes["categories"][i]])] = True
        nodes["categories"][split] = np.arange(len(split))
        bitsets.append(pack(bits))
    categories = [listed.get(feature) for feature in range(n_features)]
    return Ensemble.from_trees(trees, bitsets, n_features=n_features, categories=categories, **others)


def whole_numbers(values: np.ndarray, name: str, low: int, high: int) -> np.ndarray:
    """Return numbers of a file, which must be whole and in a range; messages call them ``name``."""
    numbers = np.asarray(values)
    if numbers.size == 0:
        return np.zeros(numbers.shape, np.int64)
    is_number = numbers.dtype.kind in "biuf"
    if not is_number or not ((numbers >= low) & (numbers <= high) & (numbers == np.floor(numbers))).all():
        raise ValueError(f"{name} has entries that are not whole numbers from {low} to {high}")
    return numbers.astype(np.int64)


CBM = b"CBM1"  # the first bytes of CatBoost's binary format

# What the bytes of a model have, and who reads it.
_MARKS: dict[str, tuple[Callable[[bytes], bool], str]] = {
    "ranktrees": (lambda data: data.startswith(MAGIC), "Ensemble.load"),
    "LightGBM": (lambda data: data.startswith((b"tree\n", b"tree\r\n")), "load_lightgbm"),
    "XGBoost": (lambda data: data.lstrip().startswith(b"{") and b'"learner"' in data, "load_xgboost"),
    "CatBoost": (
        lambda data: data.startswith(CBM) or (data[:1] == b"{" and b'"scale_and_bias"' in data),
        "load_catboost",
    ),
}


def refuse_others(data: bytes, library: str, expected: str) -> None:
    """Raise for the bytes of a model where those of another library's are expected."""
    if _MARKS[library][0](data):
        return
    for other, (has_marks, reader) in _MARKS.items():
        if has_marks(data):
            raise ValueError(f"not {expected}; it is a model of {other}: use {reader}")


def require_path_of(model: Any, expected: str) -> None:
    """Raise if it is no path, or if it is what should be in the file."""
    require_path(model, "model", expected)
    if isinstance(model, str) and ("\n" in model or model.startswith('{"')):
        raise ValueError(
            f"model is a text of {len(model)} characters; expected the path of {expected}: write it to a "
            "file, or pass the model itself."
        )


def require_cuts_only(
    ensemble: Ensemble, what: str, instead: str = "one-hot encode them, or leave them out"
) -> None:
    """Raise for a model that splits by categories, which a format does not support."""
    by_category = ensemble.nodes["categories"] >= 0
    if by_category.any():
        feature = ensemble.nodes["feature"][by_category][0]
        raise ValueError(
            f"the model splits feature {feature} by categories, but {what} supports cuts only; expected a "
            f"model without categorical_features: {instead}."
        )


def require_names(ensemble: Ensemble, what: str) -> tuple[str, ...]:
    """Return the names of the features, by which a format identifies them, or raise if there are none."""
    if ensemble.feature_names is None:
        raise ValueError(
            f"{what} identifies features by name, but the model was fitted to an array; expected "
            f"feature_names: pass {ensemble.n_features} strings."
        )
    return ensemble.feature_names


def require_names_without(names: Sequence[str], pattern: str, reason: str, expected: str) -> None:
    """Raise for a name that another program refuses, or reads as another one.

    Parameters
    ----------
    names : sequence of str
    pattern : str
        A regular expression that is found in such names.
    reason : str
        What the program does with them, for the message.
    expected : str
        How names have to be, for the message.

    Raises
    ------
    ValueError
    """
    if wrong := [name for name in names if re.search(pattern, name)]:
        raise ValueError(
            f"feature_names has {wrong[0]!r}, but {reason}; expected {expected}: pass feature_names."
        )


def first_float32_above(cuts: np.ndarray) -> np.ndarray:
    """For each cut, the first float32 that is above it, or infinity if there is none."""
    with np.errstate(over="ignore"):
        return np.nextafter(round_down(cuts), np.float32(np.inf))


def finite(cuts: list[float]) -> list[float]:
    """Cuts for text formats without infinity; 1e39 is infinite to their readers, who use single precision."""
    return np.nan_to_num(cuts, posinf=INFINITE, neginf=-INFINITE).tolist()


def last_float64_rounded_to(values: np.ndarray) -> np.ndarray:
    """For each float32, the last float64 that is at most that once it is rounded to single precision.

    A number halfway between two neighbours is rounded to the one whose last bit is 0. From halfway between
    the largest float32 and `FLOAT32_END` on, numbers are rounded to infinity.
    """
    with np.errstate(over="ignore"):
        above = np.nextafter(values, np.float32(np.inf)).astype(float)
    halfway = (np.maximum(values.astype(float), -FLOAT32_END) + np.minimum(above, FLOAT32_END)) / 2
    comes_back = values.view(np.uint32) % 2 == 0
    return np.where(comes_back, halfway, np.nextafter(halfway, -np.inf))


def short(numbers: np.ndarray) -> list[float]:
    """Return each float32 as the float with the fewest digits that identify it in single precision."""
    return [float(str(number)) for number in numbers]


def shortest(values: np.ndarray) -> list[float]:
    """Return values as `short` numbers.

    Raises
    ------
    ValueError
        If a value is beyond single precision.
    """
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    if not np.isfinite(rounded).all():
        largest = values[~np.isfinite(rounded)][0]
        raise ValueError(
            f"the model has the value {largest}, expected numbers within single precision, below 3.4e38: "
            "scale the labels down."
        )
    return short(rounded)


def first_nodes(ensemble: Ensemble) -> np.ndarray:
    """int64[n_nodes]: for each node, the first node of its tree."""
    return np.repeat(ensemble.tree_offsets[:-1], np.diff(ensemble.tree_offsets))


def nested(ensemble: Ensemble, leaf: Callable[..., Any], split: Callable[..., Any]) -> list[Any]:
    """Return each tree as nested objects, made from the leaves up.

    Parameters
    ----------
    ensemble : Ensemble
        The trees.
    leaf : callable
        Makes an object from the number of a leaf.
    split : callable
        Makes an object from the number of a node and the objects of its left and right child.

    Returns
    -------
    list
        The objects of the roots. Nodes are numbered through all trees.

    Raises
    ------
    ValueError
        If the trees are too deep to be read again.
    """
    if ensemble.depth > MAX_DEPTH:
        raise ValueError(
            f"the trees are {ensemble.depth} splits deep, expected at most {MAX_DEPTH}: nested trees are "
            "read by recursion; fit with max_depth."
        )
    nodes, first = ensemble.nodes, first_nodes(ensemble)
    left, right = (nodes["left"] + first).tolist(), (nodes["right"] + first).tolist()
    is_leaf = (nodes["feature"] < 0).tolist()
    made = [None] * len(nodes)
    for i in range(len(nodes) - 1, -1, -1):  # children come after their parent
        made[i] = leaf(i) if is_leaf[i] else split(i, made[left[i]], made[right[i]])
    return [made[root] for root in ensemble.tree_offsets[:-1]]
