r"""Write and read LightGBM's text models, which LightGBM saves by ``save_model``.

LightGBM compares as this library does, ``x <= cut`` in double precision, and adds values up in the same
order. So scores are the same to the last bit, missing values included. Nothing needs to be installed, not
even LightGBM. Other programs that read its models, such as treelite, lleaves and Vespa, read these as well.

LightGBM splits categories by sets whose members go left. Missing values and all other numbers go right, so
the children of a node may change sides. LightGBM truncates numbers of categories to whole ones, while this
library treats a value that is not a category as missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees._core.support.dtypes import NODE
from ranktrees.estimators.columns import warn_of_lost_levels
from ranktrees.estimators.links import warn_of_lost_link
from ranktrees.evaluation.own_models import fitted_trees
from ranktrees.formats.plain import (
    added_up,
    from_sets,
    one_sided,
    refuse_others,
    require_names_without,
    require_path_of,
    single_leaf,
    whole_numbers,
)
from ranktrees.model.ensemble import Ensemble
from ranktrees.support.files import read_file, replace_file
from ranktrees.support.warning import FitWarning, warn

if TYPE_CHECKING:
    from ranktrees.support.annotations import PathLike

__all__ = ["dump_lightgbm", "load_lightgbm"]

# The ``decision_type`` of a node: these bits, and in the bits above them which values are missing.
CATEGORICAL, DEFAULT_LEFT = 1, 2
MISSING_SHIFT = 2
ZERO_MISSING, NAN_MISSING = 1, 2  # 0: no value is missing, and NaN counts as zero
OBJECTIVES = {None: "regression", "logistic": "binary sigmoid:1", "poisson": "poisson"}  # by link

# By objective, the link of its predictions.
LINK_OF: dict[str, str | None] = {
    **dict.fromkeys(["binary", "cross_entropy"], "logistic"),
    **dict.fromkeys(["poisson", "gamma", "tweedie"], "poisson"),
    **dict.fromkeys(["regression", "regression_l1", "huber", "fair", "quantile", "mape"]),
    **dict.fromkeys(["lambdarank", "rank_xendcg"]),
}

WITHOUT_LINK = "cross_entropy_lambda"  # predicts log(1 + exp(score))
MOST = 2**31 - 1  # what LightGBM counts in
ZERO = float(np.float32(1e-35))  # values of at most this size are zero


def dump_lightgbm(model: Any, path: PathLike, *, feature_names: Sequence[str] | None = None) -> None:
    """Write a model as a text model of LightGBM.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble.
    path : path-like
        The path of the file. Read it by ``lightgbm.Booster(model_file=path)``, whose ``predict`` returns the
        predictions of the model, and ``predict(X, raw_score=True)`` its scores.
    feature_names : sequence of str, default=None
        The names of the columns, in the order of the model. If None, those of the data frame that the model
        was fitted to, or else LightGBM's default names, ``Column_0`` and so on.

    Raises
    ------
    TypeError
        If the model is not made of trees of this library.
    ValueError
        If the trees are not the whole model, if categories are not whole numbers from 0 to 2**24 - 1, or if
        names contain white space, quotes or backslashes, if the first begins with ``=``, or if they are those
        of the model in another order.

    See Also
    --------
    load_lightgbm : Read such a file.

    Notes
    -----
    The objective in the file is that of the link: ``binary`` for classifiers, for which LightGBM predicts the
    probability of the second class, and for the logistic loss, ``poisson`` for the Poisson loss, and
    otherwise ``regression``. The mean of a forest is written as a sum, to which each tree contributes its
    share.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from ranktrees import LambdaMARTRanker, dump_lightgbm, load_lightgbm, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(X, y, qid=qid)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump_lightgbm(ranker, Path(folder, "model.txt"))
    ...     read = load_lightgbm(Path(folder, "model.txt"))
    >>> bool((read.predict(X) == ranker.predict(X)).all())
    True
    """
    ensemble = added_up(model, feature_names)
    warn_of_lost_levels(fitted_trees(model), ensemble)
    warn_of_lost_link(fitted_trees(model))
    text = _text_of(ensemble, OBJECTIVES[ensemble.link])
    replace_file(path, text.encode(), "the model")


def load_lightgbm(model: Any) -> Ensemble:
    """Read a model of LightGBM.

    Parameters
    ----------
    model : path-like, lightgbm.Booster, LGBMRanker or another of its estimators
        A text file that ``save_model`` wrote, or a fitted model. If a fitted model has a best iteration, only
        the trees up to it are taken, as LightGBM does.

    Returns
    -------
    Ensemble
        The model. `EnsembleRanker` makes an estimator of it, which predicts what ``predict(X)`` of a
        ``Booster`` does: the link is read. Its scores are those of LightGBM's ``predict(X, raw_score=True)``,
        bit for bit. For a forest (``boosting="rf"``), whose raw scores are sums, they are those of
        ``predict(X)`` before a link. If ``sigmoid`` is not 1, the scores are multiplied by it, so that they
        are the log odds.

    Raises
    ------
    TypeError
        If ``model`` is neither a path nor a model of LightGBM.
    sklearn.exceptions.NotFittedError
        If ``model`` is an estimator that is not fitted.
    ValueError
        If the file is of another kind, or if the model is not a sum of trees like those of this library: if
        it has several classes or linear leaves, was trained with ``zero_as_missing=True``, or has more than
        65,535 categories in the splits of one feature.

    See Also
    --------
    dump_lightgbm : Write such a text.

    Notes
    -----
    The names of the columns are read, except LightGBM's default names (``Column_0``). If LightGBM has changed
    some names, such as by turning white space into ``_``, pass those of the data frame as ``feature_names``
    to `EnsembleRanker`.

    The levels of category columns are read if the text leaves no doubt which column they belong to. There is
    doubt if a column is constant, or if a list of levels may as well be that of another column: of numbers
    that were declared to be categories, or of whole numbers, which may be the codes of ordered categories. A
    column of whole numbers may be if its highest is the last code of the list or, if some category column
    lacks its last level, or has no list, any code of it. In these cases there is a `FitWarning`: pass
    ``category_levels`` to `EnsembleRanker`. Without them a data frame is refused.

    Examples
    --------
    >>> import lightgbm
    >>> from ranktrees import EnsembleRanker, load_lightgbm, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> other = lightgbm.LGBMRanker(n_estimators=20, verbose=-1).fit(X, y, group=[50] * 60)
    >>> ranker = EnsembleRanker(load_lightgbm(other))
    >>> bool((ranker.predict(X) == other.predict(X)).all())
    True
    """
    # the type is checked, so that an estimator that is not fitted raises LightGBM's own error
    booster = model.booster_ if hasattr(type(model), "booster_") else model
    if hasattr(booster, "model_to_string"):
        return _ensemble_of(booster.model_to_string())
    require_path_of(model, "a text model, or a fitted model of LightGBM")
    return read_file(model, lambda data: _ensemble_of(_decoded(data)))


def _decoded(data: bytes) -> str:
    refuse_others(data, "LightGBM", "a text model of LightGBM")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ValueError(
            f"not a text model of LightGBM: it is not text ({error}); expected what save_model writes"
        ) from None


def _text_of(ensemble: Ensemble, objective: str) -> str:
    nodes, members = one_sided(ensemble)
    trees = np.split(nodes, ensemble.tree_offsets[1:-1])
    texts = [_text_of_tree(t, tree, members) for t, tree in enumerate(trees)]
    names = ensemble.feature_names or [f"Column_{feature}" for feature in range(ensemble.n_features)]
    require_names_without(
        names, r"[\s\0]|^$", "LightGBM's text separates names by spaces", "names without white space"
    )
    require_names_without(
        names, r'["\\]', "LightGBM's dump_model does not escape it", "names without quotes and backslashes"
    )
    require_names_without(
        names[:1], "^=", "LightGBM does not read that of the first name", "one that begins with another"
    )
    header = {
        "version": "v4",
        "num_class": 1,
        "num_tree_per_iteration": 1,
        "label_index": 0,
        "max_feature_idx": ensemble.n_features - 1,
        "objective": objective,
        "feature_names": _spaced(names),
        "feature_infos": _spaced(
            _info(categories, ensemble.category_levels.get(feature))
            for feature, categories in enumerate(ensemble.categories)
        ),
        "tree_sizes": _spaced(len(text) for text in texts),
    }
    levels = [list(each) for _, each in sorted(ensemble.category_levels.items())]
    return "".join(
        [
            "tree\n",
            _lines(header),
            "\n",
            *texts,
            "end of trees\n\nparameters:\nend of parameters\n\n",
            f"pandas_categorical:{json.dumps(levels or None)}\n",
        ]
    )


def _info(categories: np.ndarray | None, levels: tuple[Any, ...] | None) -> str:
    """The values of a feature: numbers of categories, the range of codes of ordered ones, or all numbers."""
    if categories is None:
        return f"[0:{len(levels) - 1}]" if levels else "[-inf:inf]"
    return ":".join(f"{int(each)}" for each in categories) or "none"


def _text_of_tree(t: int, nodes: np.ndarray, members: list[Any]) -> str:
    """The lines of a tree. As children, inner nodes are numbered 0, 1, ... and leaves -1, -2, ..."""
    inner = nodes["feature"] >= 0
    splits, leaves = nodes[inner], nodes[~inner]
    child = np.where(inner, np.cumsum(inner) - 1, -np.cumsum(~inner))  # type: ignore[misc]
    by_category = splits["categories"] >= 0
    sets = [_words(members[number]) for number in splits["categories"][by_category]]
    cuts = splits["cut"].tolist()
    for number, place in enumerate(np.flatnonzero(by_category)):
        cuts[place] = number
    decisions = (NAN_MISSING << MISSING_SHIFT) + np.where(
        by_category, CATEGORICAL, np.where(splits["missing_left"] == 1, DEFAULT_LEFT, 0)
    )
    lines = {
        "num_leaves": len(leaves),
        "num_cat": len(sets),
        "split_feature": _spaced(splits["feature"]),
        "split_gain": _spaced(splits["gain"]),
        "threshold": _spaced(cuts),
        "decision_type": _spaced(decisions),
        "left_child": _spaced(child[splits["left"]]),
        "right_child": _spaced(child[splits["right"]]),
        "leaf_value": _spaced(leaves["value"]),
        "leaf_weight": _spaced(leaves["count"]),
        "leaf_count": _spaced(leaves["count"]),
        "internal_value": _spaced(splits["value"]),
        "internal_weight": _spaced(splits["count"]),
        "internal_count": _spaced(splits["count"]),
    }
    if sets:
        lines["cat_boundaries"] = _spaced(np.cumsum([0, *map(len, sets)]))
        lines["cat_threshold"] = _spaced(np.concatenate(sets))
    return f"Tree={t}\n" + _lines(lines | {"is_linear": 0, "shrinkage": 1}) + "\n\n"


def _lines(values: Mapping[str, object]) -> str:
    return "".join(f"{name}={value}\n" for name, value in values.items())


def _spaced(values: Iterable[Any] | np.ndarray) -> str:
    return " ".join(map(str, values.tolist() if isinstance(values, np.ndarray) else values))


def _words(members: np.ndarray) -> np.ndarray:
    """A set as a row of bits, with 32 bits to a word."""
    bits = np.zeros(32 * (members.max(initial=0) // 32 + 1), bool)
    bits[members] = True
    return np.packbits(bits, bitorder="little").view("<u4")


def _members(words: np.ndarray) -> np.ndarray:
    return np.flatnonzero(np.unpackbits(words.astype("<u4").view(np.uint8), bitorder="little"))


def _ensemble_of(text: str) -> Ensemble:
    text = text.replace("\r\n", "\n")
    if not text.startswith("tree\n"):
        raise ValueError("not a text model of LightGBM: its first line is not 'tree'")
    of_trees, ended, rest = text.partition("\nend of trees")
    if not ended:
        raise ValueError("cut off: there is no line 'end of trees'")
    first, *parts = re.split(r"^Tree=(.*)\n", of_trees + "\n", flags=re.MULTILINE)
    head, numbers, trees = _values(first), parts[::2], parts[1::2]
    _require_scores(head)
    n_expected = len(_entry(head, "tree_sizes").split())
    if numbers != list(map(str, range(n_expected))):
        raise ValueError(
            f"the trees have the numbers {numbers[:3]}... ({len(numbers)}), expected 0 to {n_expected - 1}"
        )
    sizes = _numbers(head, "tree_sizes", int, n_expected, 1, MOST)
    n_features = _numbers(head, "max_feature_idx", int, 1, 0, MOST)[0] + 1
    names = _entry(head, "feature_names").split(" ")
    if len(names) != n_features:
        raise ValueError(f"feature_names has {len(names)} names for {n_features} features")
    if "" in names:
        raise ValueError("feature_names has an empty name, expected names that single spaces separate")
    nodes, members = [], []
    for t, each in enumerate(trees):
        try:
            for line in filter(None, each.split("\n")):
                if "=" not in line:
                    raise ValueError(f"line {line!r} has no '='")
            tree, sets = _tree_of(_values(each), n_features)
        except ValueError as error:
            raise ValueError(f"tree {t}: {error}") from None
        nodes.append(tree)
        members.append(sets)
    for t, (each, size) in enumerate(zip(trees, sizes, strict=True)):
        if (n_bytes := len(f"Tree={t}\n{each}".encode())) != size:
            raise ValueError(
                f"tree {t} has {n_bytes} bytes, but tree_sizes says {size}: LightGBM would not find the trees"
            )
    link, slope = _link(head.get("objective", ""))
    for tree in nodes:
        with np.errstate(over="ignore"):
            tree["value"] *= slope
    return from_sets(
        nodes,
        members,
        _listed(nodes, members),
        n_features=n_features,
        average="average_output" in head,
        link=link,
        feature_names=None if names == [f"Column_{feature}" for feature in range(n_features)] else names,
        category_levels=_levels(head, rest),
    )


def _require_scores(head: dict[str, str]) -> None:
    """Raise for models that are not a single sum of trees."""
    version = _entry(head, "version")
    if version not in ("v3", "v4"):
        raise ValueError(f"version {version}, expected v3 or v4: save it with a current version of LightGBM")
    if any(_numbers(head, name, int, 1)[0] != 1 for name in ("num_class", "num_tree_per_iteration")):
        raise ValueError("a model of several classes, expected one score per row")


def _link(objective: str) -> tuple[str | None, float]:
    """The link of an objective, and the factor that scores have in it."""
    if not objective:  # as of a loss of the user's own
        return None, 1.0
    name, *settings = objective.split(" ")
    if name not in [*LINK_OF, WITHOUT_LINK]:
        raise ValueError(f"objective={objective}: expected one of {[*LINK_OF, WITHOUT_LINK]}")
    if name == WITHOUT_LINK or "sqrt" in settings:
        warn(
            f"predictions of the objective {objective!r} are another function of scores, not known here: "
            "what is read predicts scores, those of raw_score=True.",
            FitWarning,
        )
        return None, 1.0
    if name != "binary":
        return LINK_OF[name], 1.0
    (slope,) = _numbers({"objective": objective.partition("sigmoid:")[2]}, "objective", float, 1)
    if not 0 < slope < np.inf:
        raise ValueError(f"objective={objective}: expected a positive number as sigmoid")
    return LINK_OF[name], float(slope)


def _levels(head: dict[str, str], rest: str) -> dict[Any, Any]:
    """The levels of category columns by feature, if there is no doubt to which column each list belongs.

    There is a list for each category column of the data frame, in the order of the columns, even if the
    column is ordered, and thus a range of numbers here, or constant. Columns of numbers that were declared to
    be categories have no list.
    """
    found = re.search(r"^pandas_categorical:(.*)$", rest, re.MULTILINE)
    try:
        levels = (json.loads(found[1]) if found else None) or []
    except (ValueError, RecursionError) as error:
        raise ValueError(f"pandas_categorical: {error}") from None
    if not isinstance(levels, list) or not all(isinstance(each, list) for each in levels):
        raise ValueError("pandas_categorical has entries that are not lists of levels")
    read = _levels_by_feature(head.get("feature_infos", "").split(), levels)
    if levels and not read:
        warn(
            f"the text has the levels of {len(levels)} category columns, but leaves doubt which columns they "
            "belong to: they are not read, and data frames with category columns are refused. Pass them, as "
            f"in EnsembleRanker(ensemble, category_levels={{name: levels}}); the first are {levels[0][:5]}.",
            FitWarning,
        )
    return read


def _levels_by_feature(infos: list[str], levels: list[Any]) -> dict[int, Any]:
    """The lists of levels by the features that have codes for values, unless they may be those of others.

    Each list goes to the first column that it may belong to, which is right if there is a single way.
    """
    try:
        highest = {j: max(map(int, info.split(":"))) for j, info in enumerate(infos) if info[0] not in "[n"}
    except ValueError as error:
        raise ValueError(f"line 'feature_infos=': {error}") from None
    if "none" in infos:
        return {}
    sizes = [len(each) for each in levels]
    # if so, lower numbers are hardly codes of an ordered category, which would lack its last level
    have_last = [code + 1 for code in highest.values()] == sizes
    n_ways = [1] + [0] * len(levels)  # to find columns for none, the first, the first two, ... of the lists
    found: dict[int, Any] = {}
    for j, info in enumerate(infos):
        whole = re.fullmatch(r"\[\d+:(\d+)\]", info)
        n_found = len(found)
        for k, size in reversed(list(enumerate(sizes))):
            if whole is None:
                may_be = j in highest and highest[j] < size
            else:
                may_be = int(whole[1]) == size - 1 if have_last else int(whole[1]) < size
            n_ways[k + 1] += n_ways[k] * may_be
            if may_be and k == n_found:
                found[j] = levels[k]
    return found if n_ways[-1] == 1 else {}


def _tree_of(values: dict[str, str], n_features: int) -> tuple[np.ndarray, list[Any]]:
    """The nodes of a tree, inner ones first, and the sets that its categorical nodes ask for."""
    (n_leaves,) = _numbers(values, "num_leaves", int, 1)
    (n_sets,) = _numbers(values, "num_cat", int, 1, 0, MOST)
    if values.get("is_linear", "0") != "0":
        raise ValueError("leaves are linear, expected constants: train it without linear_tree")
    if n_leaves < 1:
        raise ValueError(f"num_leaves={n_leaves}, expected at least 1")
    of_leaves, n_inner = _numbers(values, "leaf_value", float, n_leaves), n_leaves - 1
    if n_leaves == 1:
        return single_leaf(of_leaves[0]), []
    nodes = np.zeros(n_inner + n_leaves, NODE)
    splits, leaves = nodes[:n_inner], nodes[n_inner:]
    nodes["categories"], leaves["feature"] = -1, -1
    for side in ("left", "right"):
        child = _numbers(values, f"{side}_child", int, n_inner, -n_leaves, n_inner - 1)
        splits[side] = np.where(child >= 0, child, n_inner + ~child)
    leaves["value"] = of_leaves
    leaves["count"] = _numbers(values, "leaf_count", int, n_leaves)
    splits["value"] = _numbers(values, "internal_value", float, n_inner)
    splits["count"] = _numbers(values, "internal_count", int, n_inner)
    splits["gain"] = np.nan_to_num(_numbers(values, "split_gain", float, n_inner))
    splits["feature"] = _numbers(values, "split_feature", int, n_inner, 0, n_features - 1)
    decisions = _numbers(values, "decision_type", int, n_inner, 0, 11)
    cuts = _numbers(values, "threshold", float, n_inner)
    by_category = (decisions & CATEGORICAL) != 0
    splits["cut"] = np.where(by_category, 0.0, cuts)
    splits["missing_left"] = np.where(by_category, 0, _missing_left(decisions, cuts, by_category))
    splits["categories"] = -1
    splits["categories"][by_category] = whole_numbers(cuts[by_category], "threshold", 0, n_sets - 1)
    if not n_sets:
        return nodes, []
    bounds = _numbers(values, "cat_boundaries", int, n_sets + 1)
    words = _numbers(values, "cat_threshold", int, bounds[-1], 0, 2**32 - 1)
    if bounds[0] != 0 or (np.diff(bounds) <= 0).any():
        raise ValueError("cat_boundaries do not rise from 0")
    return nodes, [_members(each) for each in np.split(words, bounds[1:-1])]


def _missing_left(decisions: np.ndarray, cuts: np.ndarray, by_category: np.ndarray) -> np.ndarray:
    """Whether NaN goes left: by default if it is distinguished from zero, otherwise where zero goes."""
    missing, default_left = decisions >> MISSING_SHIFT, (decisions & DEFAULT_LEFT) != 0
    zeros_elsewhere = ((cuts >= -ZERO) != default_left) | ((cuts >= ZERO) != default_left)
    if (zeros_elsewhere & (missing == ZERO_MISSING) & ~by_category).any():
        raise ValueError("zeros do not go to the side that the cut gives: train it without zero_as_missing")
    return np.where(missing == NAN_MISSING, default_left, cuts >= 0.0)


def _listed(nodes: list[np.ndarray], members: list[list[Any]]) -> dict[Any, Any]:
    """The categories of each feature, which are those that are in any set."""
    listed: dict[int, list[np.ndarray]] = {}
    for tree, sets in zip(nodes, members, strict=True):
        split = tree[tree["categories"] >= 0]
        for feature, number in zip(split["feature"].tolist(), split["categories"].tolist(), strict=True):
            listed.setdefault(feature, []).append(sets[number])
    return {feature: np.unique(np.concatenate(each)) for feature, each in listed.items()}


def _values(lines: str) -> dict[str, str]:
    """The texts after ``=``, by the texts before it."""
    values: dict[str, str] = {}
    for line in lines.split("\n"):
        name, _, value = line.partition("=")
        if name in values:
            raise ValueError(f"line '{name}=' is there twice, expected once")
        if name:
            values[name] = value
    return values


def _entry(values: dict[str, str], name: str) -> str:
    """The text after ``name=``, in `_values`."""
    if name not in values:
        raise ValueError(f"there is no line '{name}='")
    return values[name]


def _numbers(
    values: dict[str, str], name: str, dtype: type, n: int, low: int = -(2**63), high: int = 2**63 - 1
) -> np.ndarray:
    """Line ``name`` as ``n`` numbers; integers must be in a range."""
    text = _entry(values, name)
    if "_" in text or not text.isascii():  # Python would read 1_0 as 10, and LightGBM as 1
        raise ValueError(f"line '{name}=' has characters that no number has")
    words = text.split()
    try:
        numbers: np.ndarray = np.array(words, dtype)
    except (ValueError, OverflowError) as error:
        raise ValueError(f"line '{name}=': {error}") from None
    if len(numbers) != n:
        raise ValueError(f"line '{name}=' has {len(numbers)} numbers, expected {n}")
    return whole_numbers(numbers, name, low, high) if dtype is int else numbers
