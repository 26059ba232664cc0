"""Axes to draw curves on. matplotlib is needed for plots only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["axes_or_new", "new_axes"]


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
    return new_axes(**figure)[0, 0] if ax is None else ax


def new_axes(n_rows: int = 1, n_cols: int = 1, **figure: Any) -> NDArray[Any]:
    """Return the axes of a new figure.

    Parameters
    ----------
    n_rows, n_cols : int, default=1
    **figure
        Keyword arguments of `matplotlib.pyplot.subplots`. By default, the layout leaves room for long names.

    Returns
    -------
    ndarray of matplotlib Axes, shape (n_rows, n_cols)

    Raises
    ------
    ImportError
        If matplotlib is not installed.

    Examples
    --------
    >>> from ranktrees.support.plotting import new_axes
    >>> axes = new_axes(1, 2)  # doctest: +SKIP
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plot needs matplotlib; install it with: pip install "ranktrees[plot]"') from error
    figure = {"layout": "constrained"} | figure
    return np.asarray(pyplot.subplots(n_rows, n_cols, squeeze=False, **figure)[1])
