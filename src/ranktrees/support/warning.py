"""Warnings that point at a line of the user's code, behind any number of calls in this library and others."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["FitWarning", "warn"]

BETWEEN = frozenset({"joblib", "ranktrees", "sklearn"})  # packages whose code a user cannot change


class FitWarning(UserWarning):
    """Warning that a fit did what it was asked to do, but that this is hardly what was meant.

    Other functions that take rows and labels issue it as well, and so does saving a model.

    Examples
    --------
    >>> import warnings
    >>> from ranktrees import FitWarning
    >>> warnings.simplefilter("error", FitWarning)  # refuse instead of warn
    >>> warnings.simplefilter("default", FitWarning)
    """


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line outside the packages that lie between the user and the cause.

    Parameters
    ----------
    message : str
        The message.
    category : type
        A subclass of Warning.

    Examples
    --------
    >>> import warnings
    >>> from ranktrees.support.warning import warn
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


def _package(frame: FrameType) -> str:
    return frame.f_globals.get("__name__", "").partition(".")[0]
