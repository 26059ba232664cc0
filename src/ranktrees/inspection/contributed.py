"""What features add to the scores of rows, as a result: tables, plots, and why one row is above another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from ranktrees.support.numeric import is_whole
from ranktrees.support.plotting import axes_or_new
from ranktrees.support.tables import Tabular, pandas_for

if TYPE_CHECKING:
    import pandas as pd
    import shap
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

__all__ = ["Contributions", "ScoreDifference"]

MORE, LESS, UNKNOWN = "tab:red", "tab:blue", "lightgrey"  # what adds to a score, what takes from it
STEPS = 80  # of the axis of contributions, on which dots that fall on one step are put side by side


@dataclass(frozen=True, repr=False, eq=False)
class Columns:
    """How features and their values are called; ``names`` are numbers if there are none."""

    names: tuple[Any, ...]
    levels: Mapping[int, tuple[Any, ...]]

    def label(self, feature: int) -> str:
        name = self.names[feature]
        return name if isinstance(name, str) else f"feature {name}"

    def told(self, feature: int, value: float) -> Any:
        """A value as the user knows it: None if it is missing or an unknown level."""
        if np.isnan(value):
            return None
        levels = self.levels.get(feature, ())
        return levels[int(value)] if value in range(len(levels)) else float(value)

    def text(self, feature: int, value: float) -> str:
        told = self.told(feature, value)
        return "missing" if told is None else f"{told:.4g}" if isinstance(told, float) else str(told)


@dataclass(frozen=True, repr=False, eq=False)
class Contributions(Tabular):
    """What each feature adds to the score of each row, as returned by `contributions`.

    It unpacks as a pair: ``parts, start = contributions(model, X)``.

    Attributes
    ----------
    values : ndarray or CSR array of float64, shape (n_rows, n_features)
        The contributions. If each of several classes has a score, the shape is (n_rows, n_classes,
        n_features), or for sparse rows there is a list of one CSR array for each class.
    start : ndarray of float64, shape (n_rows,) or (n_rows, n_classes)
        What each score starts from.
    rows : ndarray or CSR array of shape (n_rows, n_features)
        The values of the features. They are not copied if X is an array of floats. A category of a data frame
        has the number of its level; missing values and unknown levels are NaN.
    feature_names : tuple
        The names of the features, or their numbers if they have no names.
    classes : ndarray or None
        The classes, if each has a score.

    Examples
    --------
    >>> import pandas as pd
    >>> from ranktrees import LambdaMARTRanker, contributions, make_ranking
    >>> X, y, qid = make_ranking(60, n_features=3, random_state=0, return_X_y_qid=True)
    >>> frame = pd.DataFrame(X, columns=["clicks", "age", "price"])
    >>> ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(frame, y, qid=qid)
    >>> found = contributions(ranker, frame[:100])
    >>> found
    Contributions(100 rows, 3 features)
    >>> found.to_frame().columns.tolist()
    ['clicks', 'age', 'price']
    >>> why = found.difference(0, 1)
    >>> bool(np.isclose(why.values.sum(), ranker.predict(frame[:1]) - ranker.predict(frame[1:2]))[0])
    True
    """

    values: Any
    start: NDArray[np.float64]
    rows: Any
    classes: NDArray[Any] | None
    _columns: Columns
    _index: Any

    @property
    def feature_names(self) -> tuple[Any, ...]:
        return self._columns.names

    def __iter__(self) -> Iterator[Any]:
        return iter((self.values, self.start))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: int) -> Any:
        return (self.values, self.start)[place]

    def __repr__(self) -> str:
        n_rows, n_features = self.rows.shape
        classes = "" if self.classes is None else f", {len(self.classes)} classes"
        return f"Contributions({n_rows} rows{classes}, {n_features} features)"

    def _repr_html_(self) -> str | None:
        return None if self.classes is not None else super()._repr_html_()

    def of_class(self, label: Any) -> Self:
        """Return the contributions to the score of one class.

        Parameters
        ----------
        label : scalar
            One of ``classes``.

        Returns
        -------
        Contributions

        Raises
        ------
        ValueError
            If there is no such class, or only one score.
        """
        known = [] if self.classes is None else self.classes.tolist()
        if label not in known:
            raise ValueError(f"label={label!r}; expected one of the classes that have scores: {known}.")
        k = known.index(label)
        values = self.values[k] if isinstance(self.values, list) else self.values[:, k]
        return replace(self, values=values, start=self.start[:, k], classes=None)

    def to_frame(self) -> pd.DataFrame:
        """Return the contributions as a data frame with a column for each feature.

        Returns
        -------
        DataFrame
            With the index of the frame that was explained, if it was a frame of pandas. For sparse rows, its
            columns are sparse.

        Raises
        ------
        ImportError
            If pandas is not installed.
        ValueError
            If each of several classes has a score.
        """
        self._require_one_score()
        pd = pandas_for("to_frame")
        if sparse.issparse(self.values):
            return pd.DataFrame.sparse.from_spmatrix(self.values, self._index, list(self.feature_names))
        return pd.DataFrame(self.values, self._index, list(self.feature_names))

    def to_shap(self) -> shap.Explanation:
        """Return an `Explanation` of the shap package, for its plots.

        Returns
        -------
        shap.Explanation
            Sparse rows and contributions become dense. The scores of classes are its outputs.

        Raises
        ------
        ImportError
            If shap is not installed.
        """
        try:
            import shap
        except ImportError as error:
            raise ImportError('to_shap needs shap; install it with: pip install "ranktrees[shap]"') from error
        values = self.values
        if isinstance(values, list):
            values = np.stack([each.toarray() for each in values], axis=1)
        values = values.toarray() if sparse.issparse(values) else values
        rows = self.rows.toarray() if sparse.issparse(self.rows) else self.rows
        told = None
        if self._columns.levels:
            told = np.array([[self._columns.told(*each) for each in enumerate(row)] for row in rows], object)
        return shap.Explanation(
            values if self.classes is None else np.moveaxis(values, 1, 2),
            base_values=self.start,
            data=rows,
            display_data=told,
            feature_names=[self._columns.label(feature) for feature in range(rows.shape[1])],
            output_names=None if self.classes is None else [str(each) for each in self.classes],
        )

    def difference(self, above: int, below: int) -> ScoreDifference:
        r"""Return why one row scores above another: what each feature adds to the difference.

        Parameters
        ----------
        above, below : int
            The positions of two rows, from 0 on.

        Returns
        -------
        ScoreDifference

        Raises
        ------
        ValueError
            If there is no such row, or if each of several classes has a score.

        Notes
        -----
        A feature adds :math:`\varphi_d(a) - \varphi_d(b)`. Shapley values are linear, so these are the
        Shapley values of the difference :math:`v_a(S) - v_b(S)` of what is expected of the two rows when the
        features :math:`S` of both are known. They add up to the difference of the scores, they change their
        sign when the rows change places, and those of :math:`a` over :math:`b` and of :math:`b` over
        :math:`c` add up to those of :math:`a` over :math:`c`.

        A feature that has the same value in both rows can still add something: what a value is worth depends
        on the other features.
        """
        self._require_one_score()
        places = [self._place(above, "above"), self._place(below, "below")]
        values, rows = (
            each[places].toarray() if sparse.issparse(each) else each[places]
            for each in (self.values, self.rows)
        )
        start = self.start[places]
        return ScoreDifference(
            values[0] - values[1], float(start[0] - start[1]), start + values.sum(axis=1), rows, self._columns
        )

    def plot(self, row: int | None = None, *, max_features: int = 10, ax: Axes | None = None) -> Axes:
        """Plot what the features add: to the score of one row, or to those of all.

        For one row, bars lead from the start to the score. For all rows there is a dot for each row and
        feature, at what it adds; its color is the rank of the feature's value among those of all rows, and
        values that are missing are grey.

        Parameters
        ----------
        row : int, default=None
            The position of a row, from 0 on. If None, all rows are shown.
        max_features : int, default=10
            The number of features to show: those that add or take most, to the row or on average. For one
            row, a bar shows the sum of the others.
        ax : matplotlib Axes, default=None
            The axes to plot on. If None, a new figure is created.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If there is no such row, or if each of several classes has a score.
        """
        self._require_one_score()
        _require_some(max_features)
        if row is None:
            return self._plot_all(max_features, axes_or_new(ax))
        place = [self._place(row, "row")]
        values, shown = (
            np.ravel(each[place].toarray() if sparse.issparse(each) else each[place])
            for each in (self.values, self.rows)
        )
        labels = [f"{self._columns.label(f)} = {self._columns.text(f, x)}" for f, x in enumerate(shown)]
        start = float(self.start[row])
        ax = _plot_bars(labels, values, start, max_features, axes_or_new(ax))
        ax.set_xlabel(f"score: from {start:.4g} to {start + values.sum():.4g}")
        return ax

    def _plot_all(self, max_features: int, ax: Axes) -> Axes:
        mean = np.ravel(abs(self.values).mean(axis=0))
        shown = np.argsort(-mean, kind="stable")[:max_features]
        dots = None
        for y, feature in enumerate(shown[::-1]):
            adds, x = (
                np.ravel(each[:, [feature]].toarray() if sparse.issparse(each) else each[:, feature])
                for each in (self.values, self.rows)
            )
            known = ~np.isnan(x)
            heights = y + _beside(adds)
            ax.scatter(adds[~known], heights[~known], s=6, color=UNKNOWN)
            ranks = np.searchsorted(np.sort(x[known]), x[known]) / max(1, known.sum() - 1)
            dots = ax.scatter(adds[known], heights[known], s=6, c=ranks, cmap="coolwarm", vmin=0.0, vmax=1.0)
        if dots is not None:
            bar = ax.figure.colorbar(dots, ax=ax, ticks=[0, 1], label="value of the feature")
            bar.ax.set_yticklabels(["low", "high"])
        ax.axvline(0, color="grey", linewidth=0.8, zorder=0)
        ax.set_yticks(range(len(shown)), [self._columns.label(feature) for feature in shown[::-1]])
        ax.set_xlabel("adds to the score")
        return ax

    def _require_one_score(self) -> None:
        if self.classes is not None:
            raise ValueError(
                f"there is a score for each of {len(self.classes)} classes; expected one: pick a class, as "
                f"in of_class({self.classes.tolist()[0]!r})."
            )

    def _place(self, row: Any, argument: str) -> int:
        if not (is_whole(row, 0) and row < self.rows.shape[0]):
            raise ValueError(
                f"{argument}={row!r}; expected the position of a row, from 0 to {self.rows.shape[0] - 1}."
            )
        return int(row)


@dataclass(frozen=True, repr=False, eq=False)
class ScoreDifference(Tabular):
    """Why one row scores above another, as returned by `Contributions.difference`.

    Attributes
    ----------
    values : ndarray of float64, shape (n_features,)
        What each feature adds to the difference: together with ``start``, the values add up to it.
    start : float
        The difference of what the scores start from: 0, unless boosting started from a model that is not made
        of trees of this library.
    scores : ndarray of float64, shape (2,)
        The scores of the two rows.
    rows : ndarray of shape (2, n_features)
        The values of their features.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, contributions, make_ranking
    >>> X, y, qid = make_ranking(60, n_features=3, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(X, y, qid=qid)
    >>> first, second = np.argsort(-ranker.predict(X[qid == 0]))[:2]
    >>> why = contributions(ranker, X[qid == 0]).difference(first, second)
    >>> bool(np.isclose(why.values.sum(), why.scores[0] - why.scores[1]))
    True
    >>> why.to_frame().columns.tolist()
    ['above', 'below', 'adds']
    """

    values: NDArray[np.float64]
    start: float
    scores: NDArray[np.float64]
    rows: Any
    _columns: Columns

    def __repr__(self) -> str:
        most = np.argsort(-abs(self.values), kind="stable")[:3]
        named = ", ".join(f"{self._columns.label(f)} {self.values[f]:+.4g}" for f in most)
        return f"ScoreDifference({self.scores[0] - self.scores[1]:+.4g}: {named}, ...)"

    def to_frame(self) -> pd.DataFrame:
        """Return a row for each feature, those that add or take most first.

        Returns
        -------
        DataFrame
            ``above`` and ``below`` are the values of the feature in the two rows, and ``adds`` is what it
            adds to the difference of their scores.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = pandas_for("to_frame")
        told = [[self._columns.told(*each) for each in enumerate(row)] for row in self.rows]
        columns = {"above": told[0], "below": told[1], "adds": self.values}
        order = np.argsort(-abs(self.values), kind="stable")
        return pd.DataFrame(columns, list(self._columns.names)).iloc[order]

    def plot(self, *, max_features: int = 10, ax: Axes | None = None) -> Axes:
        """Plot bars that lead from the score of the lower row to that of the upper one.

        Parameters
        ----------
        max_features : int, default=10
            The number of features to show: those that add or take most. A bar shows the sum of the others.
        ax : matplotlib Axes, default=None
            The axes to plot on. If None, a new figure is created.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        _require_some(max_features)
        labels, values = [], self.values
        for feature, (above, below) in enumerate(np.transpose(self.rows)):
            texts = self._columns.text(feature, above), self._columns.text(feature, below)
            labels.append(f"{self._columns.label(feature)}: {texts[0]}, not {texts[1]}")
        if self.start:
            labels, values = [*labels, "start"], np.append(values, self.start)
        ax = _plot_bars(labels, values, float(self.scores[1]), max_features, axes_or_new(ax))
        ax.set_xlabel(f"score: from {self.scores[1]:.4g} (below) to {self.scores[0]:.4g} (above)")
        return ax


def _require_some(max_features: Any) -> None:
    if not is_whole(max_features, 1):
        raise ValueError(f"max_features={max_features!r}; expected a whole number of at least 1.")


def _plot_bars(labels: list[str], values: np.ndarray, start: float, max_features: int, ax: Axes) -> Axes:
    """Bars that lead from the start, at the bottom, to the start plus all values."""
    order = np.argsort(-abs(values), kind="stable")
    shown, others = order[:max_features][::-1], order[max_features:]
    labels, widths = [labels[f] for f in shown], values[shown]
    if len(others):
        labels, widths = ["others", *labels], np.append(values[others].sum(), widths)
    ends = start + np.cumsum(widths)
    ax.barh(range(len(ends)), widths, left=ends - widths, color=np.where(widths > 0, MORE, LESS).tolist())
    for y, (end, width) in enumerate(zip(ends, widths, strict=True)):
        ax.annotate(
            f"{width:+.3g}",
            (end, y),
            (3 if width > 0 else -3, 0),
            textcoords="offset points",
            va="center",
            ha="left" if width > 0 else "right",
            fontsize="small",
        )
    for x in (start, ends[-1]):
        ax.axvline(x, color="grey", linewidth=0.8, zorder=0)
    ax.set_yticks(range(len(ends)), labels)
    ax.use_sticky_edges = False
    ax.margins(x=0.15)
    return ax


def _beside(adds: np.ndarray) -> np.ndarray:
    """How far to move each dot up or down, so that dots at about the same place are side by side."""
    low, high = adds.min(), adds.max()
    steps = np.rint((adds - low) / ((high - low) or 1.0) * STEPS).astype(int)
    order = np.argsort(steps, kind="stable")
    firsts = np.flatnonzero(np.diff(steps[order], prepend=-1))
    number = np.empty(len(adds), int)
    number[order] = np.arange(len(adds)) - np.repeat(firsts, np.diff(np.append(firsts, len(adds))))
    away = (number + 1) // 2 * np.where(number % 2, 1, -1)
    return 0.4 * away / max(10, number.max() / 2)
