"""Parameters that list values, by key or one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AnySet
from typing import Any

__all__ = ["are_in_order", "by_key", "in_order"]


def by_key(values: Any, argument: str) -> Any:
    """Return the values of a pandas Series by its index, as a dict. Return other values as they are.

    If the index counts from 0, the values of the Series are returned as a list.

    Parameters
    ----------
    values : object
    argument : str
        The name of the argument, for messages.

    Returns
    -------
    values : object

    Raises
    ------
    ValueError
        If a key occurs twice.

    Examples
    --------
    >>> import pandas as pd
    >>> from ranktrees.support.listed import by_key
    >>> by_key(pd.Series({"price": 1, "age": -1}), "monotonic_cst"), by_key([0, 1], "monotonic_cst")
    ({'price': 1, 'age': -1}, [0, 1])
    """
    if not (hasattr(values, "index") and hasattr(values, "to_dict")):
        return values
    if not values.index.is_unique:
        twice = values.index[values.index.duplicated()][0]
        raise ValueError(f"{argument} has {twice!r} twice in its index; expected each once.")
    keys = values.index.tolist()
    return (
        values.tolist() if keys == list(range(len(keys))) else dict(zip(keys, values.tolist(), strict=True))
    )


def in_order(values: Any, argument: str, first: int = 0) -> Any:
    """Return values one after the other; those of a mapping or a Series in the order of their keys.

    Parameters
    ----------
    values : iterable
    argument : str
        The name of the argument, for messages.
    first : int, default=0
        The first key.

    Returns
    -------
    values : iterable

    Raises
    ------
    ValueError
        If the keys are not ``first``, ``first + 1``, ...
    TypeError
        If the values have no order, like those of a set.

    Examples
    --------
    >>> from ranktrees.support.listed import in_order
    >>> in_order({2: 3.0, 0: 0.0, 1: 1.0}, "gain"), in_order([0.0, 1.0], "gain")
    ([0.0, 1.0, 3.0], [0.0, 1.0])
    """
    if isinstance(values, AnySet):
        raise TypeError(f"{argument}={values!r} has no order; expected a list.")
    keyed = by_key(values, argument)
    if not isinstance(keyed, Mapping):
        return keyed
    keys = range(first, first + len(keyed))
    if set(keyed) != set(keys):
        raise ValueError(
            f"{argument} has the keys {list(keyed)[:10]}{', ...' * (len(keyed) > 10)}; expected {first}, "
            f"{first + 1}, ... without a gap, or a list."
        )
    return [keyed[key] for key in keys]


def are_in_order(values: object) -> bool:
    """Whether these are several values in an order that is intended.

    Strings, sets and mappings are not.
    """
    return isinstance(values, Iterable) and not isinstance(values, str | bytes | set | frozenset | Mapping)
