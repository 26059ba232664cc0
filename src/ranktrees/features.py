"""Which features are meant, by their numbers or their names."""

from difflib import get_close_matches
from numbers import Integral


def names_of(estimator):
    """The names of the features that the estimator was fitted on, if they had any."""
    return list(getattr(estimator, "feature_names_in_", ()))


def keys_of(estimator):
    """What a parameter may call the features that the estimator was fitted on, beside their numbers."""
    return names_of(estimator) or list(getattr(estimator, "_numbers_as_names", ()))


def index_of(key, names, n_features, argument):
    """The number of a feature, from that or from its name."""
    if isinstance(key, Integral) and not isinstance(key, bool):
        if names and isinstance(names[0], Integral):
            raise ValueError(
                f"{argument} has {key!r}, but the columns of X are called {names[:10]}"
                f"{', ...' * (len(names) > 10)}: it may be the place of a column or its name; expected names "
                "that are strings: pass X.rename(columns=str), and these names."
            )
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
        near = get_close_matches(str(key), names)
        known = f"the nearest are {near}." if near else f"X has {names[:10]}{', ...' * (len(names) > 10)}."
    raise ValueError(f"{argument} names {key!r}, which is not a feature of X; {known}")


def refuse_repeated(entries, argument):
    """Refuse two keys for one feature, among pairs of a feature and its key."""
    seen = {}
    for feature, key in entries:
        if feature in seen:
            raise ValueError(
                f"{argument} has feature {feature} twice, as {seen[feature]!r} and as {key!r}; expected each "
                "feature once."
            )
        seen[feature] = key
