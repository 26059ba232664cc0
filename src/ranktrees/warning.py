"""Warnings that point at the line of the user, through however many calls of ours and of scikit-learn's."""

import sys
import warnings

__all__ = ["FitWarning", "warn"]

BETWEEN = frozenset({"joblib", "ranktrees", "sklearn"})  # packages whose lines a user cannot mend


class FitWarning(UserWarning):
    """A fit, or whatever else takes rows and labels, did what it was asked to do: hardly what was meant.

    Examples
    --------
    >>> import warnings
    >>> from ranktrees import FitWarning
    >>> warnings.simplefilter("error", FitWarning)  # refuse instead of warn
    >>> warnings.simplefilter("default", FitWarning)
    """


def warn(message, category):
    """Warn at the innermost line that lies in none of the packages between the user and the cause.

    Parameters
    ----------
    message : str
    category : type
        A subclass of Warning.

    Examples
    --------
    >>> import warnings
    >>> from ranktrees.warning import warn
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn("watch out", UserWarning)
    >>> str(caught[0].message)
    'watch out'
    """
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _package(frame) in BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def _package(frame):
    return frame.f_globals.get("__name__", "").partition(".")[0]
