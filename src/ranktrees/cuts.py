"""What a cut is: between two values, and when values are narrower than it."""

import numpy as np

__all__ = ["cuts_between", "round_down"]


def cuts_between(lower, upper):
    """The middle of each two values, or the lower one where they are neighbours or one is infinite.

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
    >>> from ranktrees.cuts import cuts_between
    >>> cuts_between(np.array([1.0, 3.0]), np.array([2.0, np.inf]))
    array([1.5, 3. ])
    """
    middle = lower / 2 + upper / 2
    return np.where((lower <= middle) & (middle < upper), middle, lower)


def round_down(cuts):
    """The largest float32 not above each cut: a float32 value is below one where it is below the other.

    Parameters
    ----------
    cuts : ndarray of float64

    Returns
    -------
    ndarray of float32

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.cuts import round_down
    >>> below = round_down(np.array([0.1, 0.25]))
    >>> bool(below[0] < 0.1), float(below[1])
    (True, 0.25)
    """
    with np.errstate(over="ignore", under="ignore"):
        rounded = cuts.astype(np.float32)
        return np.where(rounded > cuts, np.nextafter(rounded, np.float32(-np.inf)), rounded)
