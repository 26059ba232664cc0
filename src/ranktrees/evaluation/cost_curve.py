"""The cost of a model's features against its quality, as trees are added."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees.evaluation.early_exit import drop_rows, rows_dropped_last
from ranktrees.support.plotting import axes_or_new
from ranktrees.support.tables import Tabular, pandas_for

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from ranktrees.evaluation.early_exit import EarlyExit
    from ranktrees.rows.queries import Queries

__all__ = ["CostCurve", "cost_curve_of"]


@dataclass(frozen=True, eq=False)
class CostCurve(Tabular):
    """Cost against quality as trees are added, as returned by a model's ``cost_curve``.

    Attributes
    ----------
    measure : str
        The name of the measure.
    n_trees : ndarray of int64, shape (n_trees,)
        The numbers of trees: 1, 2, ...
    cost : ndarray of float64, shape (n_trees,)
        The cost of the features that the first ``n_trees`` trees use, and of these trees, averaged over the
        rows. A row that left early has not paid for later trees, and features that only these use.
    value : ndarray of float64, shape (n_trees,)
        The value of the measure with the first ``n_trees`` trees.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.evaluation import CostCurve
    >>> CostCurve("ndcg @ 10", np.array([1, 2]), np.array([5.0, 25.0]), np.array([0.5, 0.625]))
    CostCurve(2 trees: cost 5 ... 25, ndcg @ 10 0.5 ... 0.625)
    """

    measure: str
    n_trees: NDArray[np.int64]
    cost: NDArray[np.float64]
    value: NDArray[np.float64]

    def __repr__(self) -> str:
        if not len(self.n_trees):
            return "CostCurve(no trees)"
        cost, value = (f"{each[0]:.4g} ... {each[-1]:.4g}" for each in (self.cost, self.value))
        return f"CostCurve({len(self.n_trees)} trees: cost {cost}, {self.measure} {value})"

    def to_frame(self) -> pd.DataFrame:
        """Return the curve as a table with a row for each number of trees.

        Returns
        -------
        DataFrame
            Indexed by the number of trees, with the columns ``cost`` and that of the measure.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = pandas_for("to_frame")
        return pd.DataFrame(
            {"cost": self.cost, self.measure: self.value}, pd.Index(self.n_trees, name="trees")
        )

    def plot(self, ax: Axes | None = None, **line: Any) -> Axes:
        """Plot the value of the measure over the cost, from the first tree to the last.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to plot on. If None, a new figure is created.
        **line
            Keyword arguments passed to ``ax.plot``, such as ``label`` and ``color``.

        Returns
        -------
        ax : matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = axes_or_new(ax)
        drawn: dict[str, Any] = {"marker": ".", "markersize": 3} | line
        ax.plot(self.cost, self.value, **drawn)
        ax.set(xlabel="cost per row", ylabel=self.measure)
        return ax


def cost_curve_of(
    stages: Iterable[np.ndarray],
    costs: np.ndarray,
    value_of: Callable[[np.ndarray], float],
    measure: Any,
    early_exit: EarlyExit | None,
    queries: Queries | None,
    n_rows: int,
    n_threads: int,
    taken: Callable[[np.ndarray], np.ndarray],
    dropped_by: Callable[[np.ndarray], np.ndarray],
) -> CostCurve:
    """Return the `CostCurve` of one model.

    Parameters
    ----------
    stages : iterable of ndarray of float64, shape (n_rows,)
        The scores with the first tree, with the first two, and so on.
    costs : ndarray of float64, shape (n_trees + 1,)
        The cost of the first 0, 1, ... trees.
    value_of : callable
        Maps what the measure takes to its value.
    measure : Measure or str
        The measure or its name. If the measure depends only on the order of the rows of each query, dropped
        rows rank last.
    early_exit : EarlyExit or None
    queries : tuple of order and offsets, or None
    n_rows, n_threads : int
    taken, dropped_by : callable
        Turn scores into what the measure takes, and what rows are dropped by.

    Returns
    -------
    CostCurve
    """
    by_order = getattr(measure, "by_order", False) and measure.by_query
    stages, scores, seen = iter(stages), np.zeros(n_rows), np.zeros(n_rows, np.int64)
    cost, value = [], []

    def scores_after(rows: Any, first: int, stop: int) -> np.ndarray:
        for n_trees in range(first + 1, stop + 1):
            scores[rows], seen[rows] = next(stages)[rows], n_trees
            cost.append(costs[seen].mean())
            measured = taken(scores)
            value.append(value_of(rows_dropped_last(measured, seen) if by_order else measured))
        return scores[rows]

    drop_rows(early_exit, 0, len(costs) - 1, n_rows, queries, scores_after, n_threads, dropped_by)
    return CostCurve(str(measure), np.arange(1, len(costs)), np.array(cost), np.array(value))
