"""Axes to draw curves on. matplotlib is needed for plots only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["axes_or_new"]


def axes_or_new(ax: Axes | None = None, **figure: Any) -> Axes:
    """Return the axes that were given, or those of a new figure.

    Parameters
    ----------
    ax : matplotlib Axes, default=None
    **figure
        Keyword arguments for the new figure, such as ``figsize``.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ImportError
        If new axes are needed and matplotlib is not installed.

    Examples
    --------
    >>> from ranktrees.support.plotting import axes_or_new
    >>> axes = axes_or_new()  # doctest: +SKIP
    """
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plot needs matplotlib; install it with: pip install "ranktrees[plot]"') from error
    return pyplot.subplots(**figure)[1]
