"""How relevant rows are that get a certain score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import stdtrit

from ranktrees.measures.rows import arranged, checked_rows, column
from ranktrees.rows import query_of_rows, warn_of_order
from ranktrees.support.numeric import is_real, is_whole
from ranktrees.support.plotting import axes_or_new
from ranktrees.support.tables import Tabular, pandas_for

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.support.annotations import IdsLike

__all__ = ["RelevanceCalibration", "relevance_calibration"]


@dataclass(frozen=True, eq=False, repr=False)
class RelevanceCalibration(Tabular):
    """The mean label of rows by their score; see `relevance_calibration`.

    Attributes
    ----------
    scores, labels : ndarray of float64, shape (n_bins,)
        The mean score and the mean label of the rows of each bin, from the lowest scores to the highest.
    low, high : ndarray of float64, shape (n_bins,)
        The ends of the interval of the mean label. NaN if the rows of the bin are of a single query.
    n_rows : ndarray of int64, shape (n_bins,)
        The number of rows in each bin.
    confidence : float
        The confidence of the intervals.
    """

    scores: NDArray[np.float64]
    labels: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    n_rows: NDArray[np.int64]
    confidence: float

    def __repr__(self) -> str:
        (scores, labels) = (f"{each[0]:.4g} ... {each[-1]:.4g}" for each in (self.scores, self.labels))
        return f"RelevanceCalibration({len(self.scores)} bins: scores {scores}, labels {labels})"

    def to_frame(self) -> pd.DataFrame:
        """Return a table with a row for each bin.

        Returns
        -------
        DataFrame
            The columns are ``score``, ``label``, ``low``, ``high`` and ``n_rows``.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        columns = {"score": self.scores, "label": self.labels, "low": self.low, "high": self.high}
        return pandas_for("to_frame").DataFrame(columns | {"n_rows": self.n_rows})

    def plot(self, ax: Axes | None = None, *, ref_line: bool = False, **style: Any) -> Axes:
        """Plot the mean label over the mean score, with intervals.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to plot on. If None, a new figure is created.
        ref_line : bool, default=False
            Whether to draw the line on which labels are equal to scores, as they are to be for a regressor.
            The scores of a ranker only have to rise with the labels.
        **style
            Keyword arguments passed to `matplotlib.axes.Axes.errorbar`, which draws points and intervals.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = axes_or_new(ax)
        ends = np.array([self.labels - self.low, self.high - self.labels])
        drawn: dict[str, Any] = {"marker": "o", "capsize": 2, "markersize": 4} | style
        ax.errorbar(self.scores, self.labels, yerr=ends, **drawn)
        if ref_line:
            ax.axline((0, 0), slope=1, color="grey", linestyle="--", linewidth=1)
        ax.set(xlabel="mean score", ylabel=f"mean label, {100 * self.confidence:g} % interval")
        return ax


def relevance_calibration(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    qid: IdsLike | None = None,
    n_bins: int = 10,
    strategy: Literal["quantile", "uniform"] = "quantile",
    confidence: float = 0.95,
) -> RelevanceCalibration:
    r"""Return the mean label of rows by their score, in bins.

    Rows of one query are alike, so the interval of the mean label of a bin takes queries for the sample. Let
    query q have :math:`n_q` rows in the bin, whose labels add up to :math:`y_q`. Then

    .. math:: \bar y = \frac{\sum_q y_q}{\sum_q n_q}, \qquad
              s^2 = \frac{Q}{Q - 1} \cdot \frac{\sum_q (y_q - n_q \bar y)^2}{\big(\sum_q n_q\big)^2},

    and the interval is :math:`\bar y \mp t s`, with t of Student's distribution with :math:`Q - 1` degrees of
    freedom, where Q is the number of queries that have rows in the bin.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_score : array-like of shape (n,)
        Finite scores.
    qid : array-like of shape (n,), default=None
        Query ids, as in `ndcg_score`. Without ids all rows are one query, and there are no intervals.
    n_bins : int, default=10
        The number of bins. There are fewer if many rows have the same score, or if a bin would be empty.
    strategy : {"quantile", "uniform"}, default="quantile"
        Whether bins have equally many rows, or are equally wide.
    confidence : float in (0, 1), default=0.95
        The confidence of the intervals.

    Returns
    -------
    RelevanceCalibration

    Raises
    ------
    ValueError
        If labels, scores, ids or parameters cannot be read.

    References
    ----------
    Cochran, *Sampling Techniques*, 1977, section 9A (the ratio of two means of clusters).

    Examples
    --------
    >>> from ranktrees.evaluation import relevance_calibration
    >>> y_true, qid = [0, 2, 1, 1, 0, 0], ["a", "a", "a", "b", "b", "b"]
    >>> found = relevance_calibration(y_true, [0.3, 0.9, 0.8, 0.7, 0.2, 0.1], qid=qid, n_bins=2)
    >>> found.labels.round(2), found.n_rows
    (array([0.  , 1.33]), array([3, 3]))
    """
    if not is_whole(n_bins, 1):
        raise ValueError(f"n_bins={n_bins!r}; expected a whole number of at least 1.")
    if strategy not in ("quantile", "uniform"):
        raise ValueError(f"strategy={strategy!r}; expected 'quantile' or 'uniform'.")
    if not (is_real(confidence) and 0 < confidence < 1):
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")
    warn_of_order({"y_true": y_true, "y_score": y_score, "qid": qid})
    numbers = column("y_score", y_score)
    labels, order, offsets, _ = checked_rows(y_true, {"y_score": numbers}, qid, None)
    numbers, query = arranged(order, numbers), query_of_rows(None, offsets)
    cuts = np.linspace(0, 1, n_bins + 1)[1:-1]
    if strategy == "quantile":
        inner = np.quantile(numbers, cuts, method="inverted_cdf")
    else:
        inner = numbers.min() + cuts * (numbers.max() - numbers.min())
    bins = np.unique(np.searchsorted(inner, numbers), return_inverse=True)[1]
    n_rows = np.bincount(bins)
    means, of_scores = (np.bincount(bins, values) / n_rows for values in (labels, numbers))
    pairs, of_pair = np.unique(np.stack([bins, query]), axis=1, return_inverse=True)
    of_pair = of_pair.ravel()
    off = np.bincount(of_pair, labels - means[bins])
    n_queries = np.bincount(pairs[0])
    several = np.maximum(n_queries - 1, 1)
    error = np.sqrt(n_queries / several * np.bincount(pairs[0], off**2)) / n_rows
    half = np.where(n_queries > 1, stdtrit(several, (1 + confidence) / 2) * error, np.nan)
    return RelevanceCalibration(of_scores, means, means - half, means + half, n_rows, float(confidence))
