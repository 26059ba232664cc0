"""Find the features that are meant by numbers or names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral
from typing import Any

import numpy as np

from ranktrees.support.listed import by_key
from ranktrees.support.numeric import is_whole


def names_of(estimator: Any) -> list[str]:
    """Return the names of the features that the estimator was fitted to, if they had names."""
    return list(getattr(estimator, "feature_names_in_", ()))


def keys_of(estimator: Any) -> list[str]:
    """Return the names by which a parameter may refer to features, besides their numbers."""
    return names_of(estimator) or keys_among(getattr(estimator, "_other_names", None) or [])


def keys_among(names: list[Any]) -> list[Any]:
    """Return the names of columns; none if they are the numbers of the columns."""
    return names if names != list(range(len(names))) else []


def index_of(key: Any, names: Sequence[Any], n_features: int, argument: str) -> int:
    """Return the number of a feature, given its number or its name."""
    if is_whole(key):
        _refuse_numbers_as_names(key, names, argument)
        if not 0 <= key < n_features:
            raise ValueError(
                f"{argument} has the index {key}, but X has {n_features} features; indices go from 0 to "
                f"{n_features - 1}."
            )
        return int(key)
    if key in names:
        return names.index(key)
    known = "X has no feature names: pass indices, or a data frame."
    if names:
        near = get_close_matches(str(key), map(str, names))
        known = f"the nearest are {near}." if near else f"X has {names[:10]}{', ...' * (len(names) > 10)}."
    raise ValueError(f"{argument} names {key!r}, which is not a feature of X; {known}")


def by_feature(values: Any, names: Sequence[Any], n_features: int, argument: str) -> Any:
    """Return the values of a mapping or a Series as a dict by feature number; others as they are."""
    keyed = by_key(values, argument)
    if not isinstance(keyed, Mapping):
        refuse_counted(values, names, argument)
        return keyed
    entries = [(index_of(key, names, n_features, argument), key) for key in keyed]
    refuse_repeated(entries, argument)
    return {feature: keyed[key] for feature, key in entries}


def chosen_features(values: Any, names: Sequence[Any], n_features: int, argument: str) -> np.ndarray:
    """Return bool[n_features], given a mask, numbers or names, or a mapping of these to True or False."""
    keyed = by_key(values, argument)
    if isinstance(keyed, Mapping) and all(isinstance(one, bool | np.bool_) for one in keyed.values()):
        given = by_feature(keyed, names, n_features, argument)
        wanted = np.array([given.get(feature, False) for feature in range(n_features)], bool)
    elif isinstance(values, Mapping):
        raise ValueError(
            f"{argument}={values!r}; expected True or False for each name or index, or a list of those that "
            "are categorical."
        )
    else:
        wanted = np.asarray(values)
    if wanted.ndim != 1:
        raise ValueError(
            f"{argument}={values!r}; expected a list of names or indices of features, or a mask."
        )
    if wanted.dtype == bool:
        if wanted.shape != (n_features,):
            raise ValueError(
                f"{argument} is a mask of shape {wanted.shape}, but X has {n_features} features; pass one "
                "boolean per feature."
            )
        refuse_counted(values, names, argument)
        return wanted
    entries = [(index_of(key, names, n_features, argument), key) for key in wanted.tolist()]
    refuse_repeated(entries, argument)
    chosen = np.zeros(n_features, bool)
    chosen[[feature for feature, _ in entries]] = True
    return chosen


def refuse_counted(values: Any, names: Sequence[Any], argument: str) -> None:
    """Refuse a Series of one value per feature, indexed from 0, if columns are called by numbers."""
    if hasattr(values, "to_dict"):
        _refuse_numbers_as_names(0, names, argument)


def _refuse_numbers_as_names(key: Any, names: Sequence[Any], argument: str) -> None:
    if names and isinstance(names[0], Integral):
        raise ValueError(
            f"{argument} has {key!r}, but the columns of X are called "
            f"{names[:10]}{', ...' * (len(names) > 10)}: it may be the position of a column or its name; "
            "expected names that are strings: pass X.rename(columns=str), and name its columns here."
        )


def refuse_repeated(entries: list[tuple[Any, ...]], argument: str) -> None:
    """Refuse two keys for one feature, given pairs of a feature and its key."""
    seen: dict[int, Any] = {}
    for feature, key in entries:
        if feature in seen:
            raise ValueError(
                f"{argument} has feature {feature} twice, as {seen[feature]!r} and as {key!r}; expected each "
                "feature once."
            )
        seen[feature] = key
