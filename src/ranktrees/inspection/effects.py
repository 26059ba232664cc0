"""How scores depend on one feature: partial dependence, and accumulated local effects."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees.evaluation.own_models import fitted_trees
from ranktrees.inspection.changing import ChangedRows, require_trees_only
from ranktrees.rows import OrderedLevels, check_rows
from ranktrees.rows.features import index_of, keys_of, names_of
from ranktrees.support.numeric import is_whole
from ranktrees.support.plotting import axes_or_new
from ranktrees.support.tables import Tabular, pandas_for

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from ranktrees.support.annotations import RowsLike

__all__ = ["FeatureEffect", "accumulated_local_effects", "partial_dependence"]


@dataclass(frozen=True, eq=False, repr=False)
class FeatureEffect(Tabular):
    """How scores depend on a feature; see `partial_dependence` and `accumulated_local_effects`.

    Attributes
    ----------
    feature : str
        The name of the feature, or its number if it has none.
    kind : {"partial", "ale"}
        Whether it is the partial dependence, or the accumulated local effects.
    values : ndarray of shape (n_values,)
        Values of the feature, rising: float64, or objects for the levels of a category.
    effect : ndarray of float64, shape (n_values,)
        The mean score with this value, or its local effects up to there, whose mean over the rows is 0.
    missing : float
        The same for missing values. NaN if no row lacks the value.
    deciles : ndarray of float64, shape (9,), or None
        The deciles of the values of the rows. None for categories.
    """

    feature: str
    kind: str
    values: NDArray[Any]
    effect: NDArray[np.float64]
    missing: float
    deciles: NDArray[np.float64] | None

    def __repr__(self) -> str:
        ends = f"{self.effect.min():.4g} to {self.effect.max():.4g}"
        missing = "" if np.isnan(self.missing) else f", {self.missing:.4g} if missing"
        return f"FeatureEffect({self.feature}, {self.kind}: {ends} over {len(self.values)} values{missing})"

    def to_frame(self) -> pd.DataFrame:
        """Return the effect as a table with a row for each value.

        Returns
        -------
        DataFrame
            The columns are ``value`` and ``effect``. If rows lack the value, the last row is for these, and
            its ``value`` is missing.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        lacking: list[Any] = [] if np.isnan(self.missing) else [self.missing]
        value = [*self.values.tolist(), *[None] * len(lacking)]
        return pandas_for("to_frame").DataFrame({"value": value, "effect": [*self.effect, *lacking]})

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Plot the effect over the values: a line, or a point for each category.

        Ticks at the bottom are the deciles of the rows. Missing values are a dashed line, or a last point.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to plot on. If None, a new figure is created.
        **style
            Keyword arguments passed to `matplotlib.axes.Axes.plot`, which draws the line or the points.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = axes_or_new(ax)
        lacks = not np.isnan(self.missing)
        if self.deciles is None:
            labels = [*map(str, self.values), *["missing"] * lacks]
            drawn: dict[str, Any] = {"marker": "o", "linestyle": "none"} | style
            ax.plot(np.arange(len(labels)), [*self.effect, *[self.missing] * lacks], **drawn)
            ax.set_xticks(np.arange(len(labels)), labels, rotation=90 if len("".join(labels)) > 60 else 0)
            ax.margins(x=0.5 / len(labels))
        else:
            (line,) = ax.plot(self.values, self.effect, **style)
            if lacks:
                ax.axhline(self.missing, color=line.get_color(), linestyle="--", label="missing values")
                ax.legend()
            ax.vlines(self.deciles, 0, 0.04, transform=ax.get_xaxis_transform(), color="black", linewidth=0.8)
        ax.set_xlabel(self.feature)
        ax.set_ylabel("mean score" if self.kind == "partial" else "accumulated local effect")
        return ax


def partial_dependence(
    model: Any,
    X: RowsLike,
    feature: int | str,
    *,
    grid_resolution: int = 50,
    percentiles: tuple[float, float] = (0.05, 0.95),
) -> FeatureEffect:
    r"""Return the mean score of the rows if all of them had the same value of a feature, for many values.

    .. math:: \mathrm{PD}(v) = \frac 1 n \sum_i s(x_i \text{ with } x_{ij} = v)

    scikit-learn's function of this name writes its grid into the columns of a frame, which is refused for
    float32 columns and for integers, and gets no grid if a value is missing. This one changes what the trees
    see, so columns may be of any type, categories included, and may have missing values.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble.
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        Rows.
    feature : int or str
        The number or the name of the feature.
    grid_resolution : int, default=50
        The number of values, at least 2: values of rows at equally spaced quantiles. If the rows have no more
        different values than that, all of them. Categories have all levels that occur.
    percentiles : pair of float, default=(0.05, 0.95)
        The lowest and the highest of these quantiles, from 0 to 1.

    Returns
    -------
    FeatureEffect

    Raises
    ------
    TypeError
        If the model is not one of this library that is made of trees.
    ValueError
        If there is no such feature, if all its values are missing, if a number is out of its range, or if the
        model starts from a model of another kind.

    Notes
    -----
    The rows with another value may be unlike any real ones, if the feature goes along with others. In that
    case see `accumulated_local_effects`.

    References
    ----------
    Friedman, *Greedy function approximation: a gradient boosting machine*, Annals of Statistics 29, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> from ranktrees.inspection import partial_dependence
    >>> X, y, qid = make_ranking(60, n_features=3, random_state=0, return_X_y_qid=True)
    >>> frame = pd.DataFrame(X, columns=["title", "body", "age"], dtype=np.float32).mask(X < 0.1)
    >>> ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(frame, y, qid=qid)
    >>> partial_dependence(ranker, frame, "body", grid_resolution=20)
    FeatureEffect(body, partial: ... over 20 values, ... if missing)
    """
    column = _Column(model, X, feature, grid_resolution, percentiles)
    effect = np.array([column.mean_with(value) for value in column.grid])
    missing = column.mean_with(np.nan) if column.lacks.any() else np.nan
    return column.effect("partial", column.grid, effect, missing)


def accumulated_local_effects(
    model: Any,
    X: RowsLike,
    feature: int | str,
    *,
    grid_resolution: int = 50,
    percentiles: tuple[float, float] = (0.05, 0.95),
) -> FeatureEffect:
    r"""Return the local effects of a feature on the scores, added up from its lowest value.

    Each row only moves to the two ends of the interval between grid values in which it lies, so that rows
    stay such as there are, also if the feature goes along with others:

    .. math:: \mathrm{ALE}(z_k) = \sum_{l \le k} \frac{1}{n_l} \sum_{z_{l-1} < x_{ij} \le z_l}
              \big(s(x_i \text{ with } z_l) - s(x_i \text{ with } z_{l-1})\big) - c

    with c so that the mean over the rows is 0. Between categories, the step from one to the next is the mean
    over the rows that have either. Ordered categories come in their order, others in that of their partial
    dependence, so that neighbours are those that the model treats alike. A missing value is near to no other
    one: its effect is the mean, over the rows that lack the value, of how far their score is from the one
    that they would have on average over the values of the other rows.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble.
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        Rows. Columns may be of any type, and may have missing values.
    feature : int or str
        The number or the name of the feature.
    grid_resolution, percentiles
        As for `partial_dependence`. Rows whose values are below or above all these take no part.

    Returns
    -------
    FeatureEffect
        Levels of categories that have no order are sorted by their partial dependence.

    Raises
    ------
    TypeError, ValueError
        As for `partial_dependence`.

    References
    ----------
    Apley and Zhu, *Visualizing the effects of predictor variables in black box supervised learning models*,
    Journal of the Royal Statistical Society B 82, 2020.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> from ranktrees.inspection import accumulated_local_effects
    >>> X, y, qid = make_ranking(60, n_features=3, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(X, y, qid=qid)
    >>> found = accumulated_local_effects(ranker, X, 0, grid_resolution=10)
    >>> len(found.values), bool(found.effect.min() < 0 < found.effect.max())
    (10, True)
    """
    column = _Column(model, X, feature, grid_resolution, percentiles)
    grid = column.grid
    known = (column.values >= grid[0]) & (column.values <= grid[-1])
    if column.is_category and not column.is_ordered:
        grid = grid[np.argsort([column.mean_with(value) for value in grid], kind="stable")]
    n_steps = len(grid) - 1
    if column.is_category:
        place = np.zeros(len(known), np.int64)
        place[known] = np.argsort(grid)[np.searchsorted(np.sort(grid), column.values[known])]
        own, after, before = (column.scores_at(grid[np.clip(place + by, 0, n_steps)]) for by in (0, 1, -1))
        rises = known & (place < n_steps), known & (place > 0)
        number = np.concatenate([place[rises[0]], place[rises[1]] - 1])
        step = np.concatenate([(after - own)[rises[0]], (own - before)[rises[1]]])
        weights = np.bincount(place[known], minlength=len(grid)).astype(np.float64)
    else:
        number = np.clip(np.searchsorted(grid, column.values[known]) - 1, 0, max(n_steps - 1, 0))
        upper, lower = np.zeros((2, len(known)))
        upper[known], lower[known] = grid[np.minimum(number + 1, n_steps)], grid[number]
        step = (column.scores_at(upper) - column.scores_at(lower))[known]
        in_step = np.bincount(number, minlength=n_steps)[:n_steps] if n_steps else np.empty(0)
        weights = (np.append(in_step, 0) + np.append(0, in_step)) / 2 if n_steps else np.ones(1)
    sums, counts = np.bincount(number, step, n_steps)[:n_steps], np.bincount(number, None, n_steps)[:n_steps]
    effect = np.append(0.0, np.cumsum(sums / np.maximum(counts, 1)))
    effect -= np.average(effect, weights=weights)
    missing = np.nan
    if column.lacks.any():
        with_values = [column.scores_at(value)[column.lacks] for value in grid]
        usual = np.average(with_values, axis=0, weights=weights)
        missing = float((column.scores_at(np.nan)[column.lacks] - usual).mean())
    return column.effect("ale", grid, effect, missing)


class _Column:
    """The column of a feature: its values, those to look at, and the scores of rows that have others."""

    def __init__(
        self,
        model: Any,
        X: RowsLike,
        feature: int | str,
        grid_resolution: int,
        percentiles: tuple[float, float],
    ) -> None:
        if not is_whole(grid_resolution, 2):
            raise ValueError(f"grid_resolution={grid_resolution!r}; expected a whole number of at least 2.")
        try:
            low, high = map(float, percentiles)
        except (TypeError, ValueError):
            low, high = math.nan, math.nan
        if not 0 <= low < high <= 1:
            raise ValueError(
                f"percentiles={percentiles!r}; expected two numbers, 0 <= lowest < highest <= 1."
            )
        model = fitted_trees(model)
        require_trees_only(model)
        self.number = index_of(feature, keys_of(model), model.n_features_in_, "feature")
        self.name = str((names_of(model) or range(model.n_features_in_))[self.number])
        self.changed = ChangedRows(model, check_rows(model, X, reset=False))
        self.values = self.changed.values([self.number])[:, 0].astype(np.float64)
        self.lacks = np.isnan(self.values)
        known = self.values[~self.lacks]
        if not len(known):
            raise ValueError(f"all values of the feature {self.name} are missing; expected rows with some.")
        self.levels = model._category_levels.get(self.number)
        self.is_ordered = isinstance(self.levels, OrderedLevels)
        self.is_category = self.levels is not None or model.ensemble_.categories[self.number] is not None
        self.grid = np.unique(known)
        if len(self.grid) > grid_resolution and not self.is_category:
            shares = np.linspace(low, high, grid_resolution)
            self.grid = np.unique(np.quantile(known, shares, method="inverted_cdf"))
        tenths = np.arange(1, 10) / 10
        self.deciles = None if self.is_category else np.quantile(known, tenths, method="inverted_cdf")

    def scores_at(self, values: Any) -> NDArray[np.float64]:
        """The scores of all rows with one value, or with one value each."""
        return self.changed.scores([self.number], values[:, None] if np.ndim(values) else values)

    def mean_with(self, value: float) -> float:
        return float(self.scores_at(value).mean())

    def effect(self, kind: str, grid: np.ndarray, effect: np.ndarray, missing: float) -> FeatureEffect:
        if self.levels is not None:
            called = np.empty(len(grid), object)
            called[:] = [self.levels[int(code)] for code in grid]
            grid = called
        elif self.is_category:
            grid = grid.astype(object)
        return FeatureEffect(self.name, kind, grid, effect, missing, self.deciles)
