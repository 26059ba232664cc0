"""Find the features that are meant by numbers or names."""

from collections.abc import Mapping
from difflib import get_close_matches
from numbers import Integral

from ranktrees.listed import by_key


def names_of(estimator):
    """Return the names of the features that the estimator was fitted to, if they had names."""
    return list(getattr(estimator, "feature_names_in_", ()))


def keys_of(estimator):
    """Return the names by which a parameter may refer to features, besides their numbers."""
    others = getattr(estimator, "_other_names", None) or []
    return names_of(estimator) or (others if others != list(range(len(others))) else [])


def index_of(key, names, n_features, argument):
    """Return the number of a feature, given its number or its name."""
    if isinstance(key, Integral) and not isinstance(key, bool):
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


def by_feature(values, names, n_features, argument):
    """Return the values of a mapping or a Series as a dict by feature number; others as they are."""
    keyed = by_key(values, argument)
    if not isinstance(keyed, Mapping):
        refuse_counted(values, names, argument)
        return keyed
    entries = [(index_of(key, names, n_features, argument), key) for key in keyed]
    refuse_repeated(entries, argument)
    return {feature: keyed[key] for feature, key in entries}


def refuse_counted(values, names, argument):
    """Refuse a Series of one value per feature, indexed from 0, if columns are called by numbers."""
    if hasattr(values, "to_dict"):
        _refuse_numbers_as_names(0, names, argument)


def _refuse_numbers_as_names(key, names, argument):
    if names and isinstance(names[0], Integral):
        raise ValueError(
            f"{argument} has {key!r}, but the columns of X are called "
            f"{names[:10]}{', ...' * (len(names) > 10)}: it may be the position of a column or its name; "
            "expected names that are strings: pass X.rename(columns=str), and name its columns here."
        )


def refuse_repeated(entries, argument):
    """Refuse two keys for one feature, given pairs of a feature and its key."""
    seen = {}
    for feature, key in entries:
        if feature in seen:
            raise ValueError(
                f"{argument} has feature {feature} twice, as {seen[feature]!r} and as {key!r}; expected each "
                "feature once."
            )
        seen[feature] = key
