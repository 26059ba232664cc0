"""What all displays have in common: a result, and the axes on which it is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, cast

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Display"]


class Display:
    """Base class of displays: `plot` draws a result by the result's own ``plot``.

    Parameters
    ----------
    result : object
        A result that has ``plot(ax=)``.

    Attributes
    ----------
    result : object
        The result.
    ax_ : matplotlib Axes
        The axes on which it was drawn last.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.displays import CostCurveDisplay
    >>> from ranktrees.evaluation import CostCurve
    >>> curve = CostCurve("NDCG", np.array([1, 2]), np.array([5.0, 25.0]), np.array([0.5, 0.625]))
    >>> display = CostCurveDisplay(curve).plot()
    >>> display.ax_.get_xlabel()
    'cost per row'
    """

    ax_: Axes
    figure_: Figure

    def __init__(self, result: Any) -> None:
        self.result = result

    def plot(self, ax: Axes | None = None, **style: Any) -> Self:
        """Draw the result.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to draw on. If None, a new figure is created.
        **style
            Keyword arguments passed to the ``plot`` of the result.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        self.ax_ = self.result.plot(ax=ax, **style)
        self.figure_ = cast("Figure", self.ax_.figure)
        return self
