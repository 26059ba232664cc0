"""Write parameters as text to compare them between processes: between ranks, or when a fit is resumed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AnySet
from typing import Any

import joblib

__all__ = ["readable", "spelt"]

LARGE = 2**16  # bytes of an array
LONGEST = 200  # the most characters that are worth reading in a message


def spelt(value: object) -> str:
    """Write a parameter as text: the same in every process for equal values, and another for other values.

    Arrays are spelt like lists, estimators by their parameters, and functions by their names. Large arrays,
    and other rows such as frames, are spelt by their digest. Everything else is spelt by its ``repr``,
    without addresses.

    Parameters
    ----------
    value : object

    Returns
    -------
    text : str

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.support.spelling import spelt
    >>> spelt({"b": {8, 0}, "a": (np.float64(0.1), None)})
    "{'a': [0.1, None], 'b': {0, 8}}"
    """
    if isinstance(value, type):
        return repr(value)
    if getattr(value, "nbytes", 0) > LARGE or (hasattr(value, "shape") and not hasattr(value, "tolist")):
        return f"{type(value).__name__} {joblib.hash(value)}"
    if hasattr(value, "tolist"):
        value = value.tolist()
    if hasattr(value, "get_params"):
        return type(value).__name__ + spelt(value.get_params(deep=False))
    if isinstance(value, Mapping):
        return "{" + ", ".join(sorted(f"{spelt(name)}: {spelt(one)}" for name, one in value.items())) + "}"
    if isinstance(value, AnySet):
        return "{" + ", ".join(sorted(map(spelt, value))) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(spelt, value)) + "]"
    return re.sub(" at 0x[0-9a-fA-F]+", "", repr(value))


def readable(*texts: Any) -> bool:
    """Whether all texts are short enough to be quoted in a message."""
    return max(map(len, texts)) <= LONGEST
