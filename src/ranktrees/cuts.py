"""What a cut is when values are narrower than it."""

import numpy as np

__all__ = ["round_down"]


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
