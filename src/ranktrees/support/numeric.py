"""Whether an argument is a number, or a whole number in a range. True, False and masked entries are not."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

__all__ = ["is_real", "is_whole", "mixed", "unmasked"]


def is_real(value: Any) -> bool:
    """Whether a value is a number, of Python or of NumPy.

    Parameters
    ----------
    value : object

    Returns
    -------
    bool

    Examples
    --------
    >>> from ranktrees.support.numeric import is_real
    >>> is_real(2), is_real(0.5), is_real("2"), is_real(True)
    (True, True, False, False)
    """
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: Any, low: float = -math.inf, high: float = math.inf) -> bool:
    """Whether a value is a whole number, of Python or of NumPy, from ``low`` to ``high``.

    Parameters
    ----------
    value : object
    low, high : number
        Both ends are included.

    Returns
    -------
    bool

    Examples
    --------
    >>> from ranktrees.support.numeric import is_whole
    >>> is_whole(2, 1), is_whole(0, 1), is_whole(2.0, 1), is_whole(True, 1)
    (True, False, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool) and low <= value <= high  # type: ignore[operator]


def unmasked(values: Any) -> Any:
    """Return a masked array without its mask, with NaN for masked entries; anything else as it is.

    Parameters
    ----------
    values : object

    Returns
    -------
    object

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.support.numeric import unmasked
    >>> unmasked(np.ma.array([1, 2], mask=[False, True]))
    array([ 1., nan])
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return np.asarray(values)
    return values.astype(np.result_type(values, np.float32)).filled(np.nan)  # type: ignore[attr-defined]


def mixed(x: np.ndarray) -> np.ndarray:
    """Mix the bits of each number by the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).

    Parameters
    ----------
    x : ndarray of uint64

    Returns
    -------
    ndarray of uint64

    Examples
    --------
    >>> mixed(np.arange(3, dtype=np.uint64)) % np.uint64(10)
    array([5, 5, 0], dtype=uint64)
    """
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
