"""A measure at many cutoffs: how far down a ranking is good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees.evaluation.comparing import mean_interval, values_of_queries
from ranktrees.measures import Measure, as_measure
from ranktrees.support.numeric import is_whole
from ranktrees.support.plotting import axes_or_new
from ranktrees.support.tables import Tabular, pandas_for

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.measures.named import AnyMeasure
    from ranktrees.support.annotations import IdsLike

__all__ = ["CutoffCurves", "cutoff_curves"]


@dataclass(frozen=True, eq=False, repr=False)
class CutoffCurves(Tabular):
    """A measure at many cutoffs, for each of some rankers; see `cutoff_curves`.

    Attributes
    ----------
    measure : Measure
        The measure, without a cutoff.
    cutoffs : ndarray of int64, shape (n_cutoffs,)
        The cutoffs.
    names : tuple of str
        The rankers.
    values, low, high : ndarray of float64, shape (n_rankers, n_cutoffs)
        The means over the queries, and the ends of their intervals.
    confidence : float
        The confidence of the intervals.
    """

    measure: Measure
    cutoffs: NDArray[np.int64]
    names: tuple[str, ...]
    values: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    confidence: float

    def __repr__(self) -> str:
        lines = [f"{self.measure} @ {self.cutoffs[0]}, ..., {self.cutoffs[-1]}"]
        lines += [
            f"{name}: {of[0]:.4f} ... {of[-1]:.4f}" for name, of in zip(self.names, self.values, strict=True)
        ]
        return "\n".join(lines)

    def to_frame(self) -> pd.DataFrame:
        """Return the curves as a table with a row for each cutoff.

        Returns
        -------
        DataFrame
            Indexed by the cutoff, with columns (ranker, "mean"), (ranker, "low") and (ranker, "high").

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = pandas_for("to_frame")
        parts = {"mean": self.values, "low": self.low, "high": self.high}
        columns = {(name, part): of[i] for i, name in enumerate(self.names) for part, of in parts.items()}
        frame = pd.DataFrame(columns, pd.Index(self.cutoffs, name="cutoff"))
        frame.columns = frame.columns.set_names(["ranker", "value"])
        return frame

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Plot the means over the cutoffs, with a band for the interval of each.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to plot on. If None, a new figure is created.
        **style
            Keyword arguments passed to `matplotlib.axes.Axes.plot`, which draws the lines.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = axes_or_new(ax)
        for name, *curves in zip(self.names, self.values, self.low, self.high, strict=True):
            drawn: dict[str, Any] = {"marker": "o", "markersize": 4, "label": name} | style
            (line,) = ax.plot(self.cutoffs, curves[0], **drawn)
            ax.fill_between(self.cutoffs, *curves[1:], color=line.get_color(), alpha=0.15, linewidth=0)
        ax.set(xlabel="cutoff k", ylabel=f"{self.measure} @ k, {100 * self.confidence:g} % interval")
        ax.locator_params(axis="x", integer=True)
        ax.legend()
        return ax


def cutoff_curves(
    y_true: ArrayLike,
    y_score: ArrayLike | Mapping[str, ArrayLike],
    *,
    qid: IdsLike | None = None,
    measure: AnyMeasure = "ndcg",
    cutoffs: int | Sequence[int] = 20,
    confidence: float = 0.95,
) -> CutoffCurves:
    """Return the mean of a measure at each of many cutoffs, with intervals.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_score : array-like of shape (n,), or dict of str to array-like of shape (n,)
        The scores of a ranker, or those of several by their names.
    qid : array-like of shape (n,), default=None
        Query ids, as in `ndcg_score`.
    measure : str, Measure or callable, default="ndcg"
        A measure that has a cutoff, such as NDCG, ERR or P.
    cutoffs : int or sequence of int, default=20
        The cutoffs. A number stands for 1, 2, ... up to itself.
    confidence : float in (0, 1), default=0.95
        The confidence of the intervals; see `mean_interval`.

    Returns
    -------
    CutoffCurves

    Raises
    ------
    TypeError
        If the measure has no cutoff.
    ValueError
        If labels, scores, ids or parameters cannot be read, or if fewer than two queries count.

    Examples
    --------
    >>> from ranktrees.evaluation import cutoff_curves
    >>> y_true, qid = [0, 2, 1, 1, 0], ["a", "a", "a", "b", "b"]
    >>> scores = {"ours": [0.3, 0.9, 0.1, 0.2, 0.7], "best": y_true}
    >>> cutoff_curves(y_true, scores, qid=qid, cutoffs=3)
    NDCG @ 1, ..., 3
    ours: 0.5000 ... 0.7974
    best: 1.0000 ... 1.0000
    """
    measure = as_measure(measure)
    if is_whole(cutoffs, 1):
        cutoffs = range(1, int(cutoffs) + 1)  # type: ignore[arg-type]
    at: list[Any] = np.asarray(cutoffs).tolist()
    if not (isinstance(at, list) and at and all(is_whole(k, 1) for k in at)):
        raise ValueError(f"cutoffs={cutoffs!r}; expected a whole number of at least 1, or several of them.")
    at = sorted(set(at))
    given = y_score if isinstance(y_score, Mapping) else {"y_score": y_score}
    if not given:
        raise ValueError("y_score is empty; expected the scores of one ranker or more.")
    named = {f"y_score[{name!r}]" if given is y_score else "y_score": of for name, of in given.items()}
    values, _, _ = values_of_queries(y_true, named, qid, [measure @ k for k in at])
    found = np.array(
        [[mean_interval(values[name, measure @ k], confidence)[:3] for k in at] for name in named]
    )
    means, low, high = np.moveaxis(found, 2, 0)
    return CutoffCurves(measure, np.array(at), tuple(map(str, given)), means, low, high, confidence)
