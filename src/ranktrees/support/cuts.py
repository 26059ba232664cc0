"""Compute cuts between two values, and round them for narrower values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["cuts_between", "round_down"]


def cuts_between(lower: np.ndarray, upper: np.ndarray) -> NDArray[np.float64]:
    """Return the middle of two values, or the lower one if they are neighbours or one is infinite.

    Parameters
    ----------
    lower, upper : ndarray of float64
        ``lower < upper``.

    Returns
    -------
    ndarray of float64

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.support.cuts import cuts_between
    >>> cuts_between(np.array([1.0, 3.0]), np.array([2.0, np.inf]))
    array([1.5, 3. ])
    """
    middle = lower / 2 + upper / 2
    return np.where((lower <= middle) & (middle < upper), middle, lower)


def round_down(cuts: np.ndarray) -> NDArray[np.float32]:
    """Return the largest float32 that is not above each cut: float32 values fall on the same side of both.

    Parameters
    ----------
    cuts : ndarray of float64

    Returns
    -------
    ndarray of float32

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.support.cuts import round_down
    >>> below = round_down(np.array([0.1, 0.25]))
    >>> bool(below[0] < 0.1), float(below[1])
    (True, 0.25)
    """
    with np.errstate(over="ignore", under="ignore"):
        rounded = cuts.astype(np.float32)
        return np.where(rounded > cuts, np.nextafter(rounded, np.float32(-np.inf)), rounded)
