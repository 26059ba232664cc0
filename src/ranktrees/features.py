"""Which features are meant, by their numbers or their names."""

from difflib import get_close_matches
from numbers import Integral


def names_of(estimator):
    """The names of the features that the estimator was fitted on, if they had any."""
    return list(getattr(estimator, "feature_names_in_", ()))


def index_of(key, names, n_features, argument):
    """The number of a feature, from that or from its name."""
    if isinstance(key, Integral) and not isinstance(key, bool):
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
