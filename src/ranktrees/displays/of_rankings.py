"""Displays of how good rankings are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

from ranktrees.displays.base import Display
from ranktrees.evaluation import compare, cutoff_curves, relevance_calibration
from ranktrees.evaluation.predictions import scores_by

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from ranktrees.measures.named import AnyMeasure
    from ranktrees.support.annotations import IdsLike, RowsLike

__all__ = ["CutoffDisplay", "PairedDifferenceDisplay", "RelevanceCalibrationDisplay"]


class PairedDifferenceDisplay(Display):
    """The difference between two rankers on each query; ``result`` is a `Comparison`.

    Examples
    --------
    >>> from ranktrees.displays import PairedDifferenceDisplay
    >>> y, qid = [1, 0, 0, 1, 1, 0], [1, 1, 2, 2, 3, 3]
    >>> ours, theirs = [2, 1, 1, 2, 1, 2], [1, 2, 2, 1, 2, 1]
    >>> display = PairedDifferenceDisplay.from_predictions(y, ours, theirs, qid=qid)
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()][:2]
    ['a is better: 2', 'b is better: 1']
    """

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        other: Any,
        X: RowsLike,
        y: ArrayLike,
        *,
        qid: IdsLike | None = None,
        measure: AnyMeasure = "ndcg@10",
        names: tuple[str, str] | None = None,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Compare two models of any library on the same rows and draw the differences.

        Parameters
        ----------
        model, other : estimator or Ensemble
            Fitted models that score rows.
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Rows that both models can read.
        y, qid, measure, names, ax, **style
            As for `from_predictions`.

        Returns
        -------
        PairedDifferenceDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            As in `compare`.
        """
        scores = scores_by(model, X), scores_by(other, X)
        return cls.from_predictions(y, *scores, qid=qid, measure=measure, names=names, ax=ax, **style)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        scores_a: ArrayLike,
        scores_b: ArrayLike,
        *,
        qid: IdsLike | None = None,
        measure: AnyMeasure = "ndcg@10",
        names: tuple[str, str] | None = None,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Compare the scores of two rankers and draw the differences.

        Parameters
        ----------
        y_true, scores_a, scores_b, qid, measure
            As for `compare`.
        names : tuple of two str, default=None
            What the rankers are called. If None, "a" and "b".
        ax : matplotlib Axes, default=None
            The axes to draw on. If None, a new figure is created.
        **style
            Keyword arguments passed to `matplotlib.axes.Axes.stairs`.

        Returns
        -------
        PairedDifferenceDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            As in `compare`, and if ``names`` are not two different ones.
        """
        if names is None:
            return cls(compare(y_true, scores_a, scores_b, qid=qid, measure=measure)).plot(ax, **style)
        if isinstance(names, str) or len(set(names)) != 2:
            raise ValueError(
                f"names={names!r}; expected the names of the two rankers, such as ('ours', 'theirs')."
            )
        scores = dict(zip(names, (scores_a, scores_b), strict=True))
        [comparison] = compare(y_true, scores, qid=qid, measure=measure).comparisons.values()
        return cls(comparison).plot(ax, **style)


class CutoffDisplay(Display):
    """A measure against the cutoff k; ``result`` is a `CutoffCurves`.

    Examples
    --------
    >>> from ranktrees.displays import CutoffDisplay
    >>> y, qid = [1, 0, 0, 1, 1, 0], [1, 1, 2, 2, 3, 3]
    >>> display = CutoffDisplay.from_predictions(y, {"ours": [2, 1, 1, 2, 1, 2]}, qid=qid, cutoffs=[1, 2])
    >>> display.ax_.lines[0].get_xdata().tolist()
    [1, 2]
    """

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: RowsLike,
        y: ArrayLike,
        *,
        qid: IdsLike | None = None,
        measure: AnyMeasure = "ndcg",
        cutoffs: int | Sequence[int] = 20,
        name: str | None = None,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Measure a model of any library at many cutoffs and draw the curve.

        Parameters
        ----------
        model : estimator or Ensemble
            A fitted model that scores rows.
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Rows.
        y, qid, measure, cutoffs, ax, **style
            As for `from_predictions`.
        name : str, default=None
            The name of the model. If None, that of its class.

        Returns
        -------
        CutoffDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            As in `cutoff_curves`.
        """
        scores = {name or type(model).__name__: scores_by(model, X)}
        return cls.from_predictions(y, scores, qid=qid, measure=measure, cutoffs=cutoffs, ax=ax, **style)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike | Mapping[str, ArrayLike],
        *,
        qid: IdsLike | None = None,
        measure: AnyMeasure = "ndcg",
        cutoffs: int | Sequence[int] = 20,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Measure scores at many cutoffs and draw the curves.

        Parameters
        ----------
        y_true, y_score, qid, measure, cutoffs
            As for `cutoff_curves`.
        ax : matplotlib Axes, default=None
            The axes to draw on. If None, a new figure is created.
        **style
            Keyword arguments passed to `matplotlib.axes.Axes.plot`.

        Returns
        -------
        CutoffDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            As in `cutoff_curves`.
        """
        return cls(cutoff_curves(y_true, y_score, qid=qid, measure=measure, cutoffs=cutoffs)).plot(
            ax, **style
        )


class RelevanceCalibrationDisplay(Display):
    """The mean label of rows by their score; ``result`` is a `RelevanceCalibration`.

    Examples
    --------
    >>> from ranktrees import HistGBRTRegressor, make_ranking
    >>> from ranktrees.displays import RelevanceCalibrationDisplay
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> model = HistGBRTRegressor(max_iter=20, random_state=0).fit(X, y)
    >>> display = RelevanceCalibrationDisplay.from_estimator(model, X, y, qid=qid, ref_line=True)
    >>> len(display.result.scores)
    10
    """

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: RowsLike,
        y: ArrayLike,
        *,
        qid: IdsLike | None = None,
        n_bins: int = 10,
        strategy: Literal["quantile", "uniform"] = "quantile",
        ref_line: bool = False,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Score rows by a model of any library and draw their mean label by score.

        Parameters
        ----------
        model : estimator or Ensemble
            A fitted model that scores rows.
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Rows.
        y, qid, n_bins, strategy, ref_line, ax, **style
            As for `from_predictions`.

        Returns
        -------
        RelevanceCalibrationDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            As in `relevance_calibration`.
        """
        options: dict[str, Any] = {"n_bins": n_bins, "strategy": strategy, "ref_line": ref_line, "ax": ax}
        return cls.from_predictions(y, scores_by(model, X), qid=qid, **options, **style)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        qid: IdsLike | None = None,
        n_bins: int = 10,
        strategy: Literal["quantile", "uniform"] = "quantile",
        ref_line: bool = False,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Draw the mean label of rows by their score.

        Parameters
        ----------
        y_true, y_score, qid, n_bins, strategy
            As for `relevance_calibration`.
        ref_line : bool, default=False
            Whether to draw the line on which labels are equal to scores.
        ax : matplotlib Axes, default=None
            The axes to draw on. If None, a new figure is created.
        **style
            Keyword arguments passed to `matplotlib.axes.Axes.errorbar`.

        Returns
        -------
        RelevanceCalibrationDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            As in `relevance_calibration`.
        """
        found = relevance_calibration(y_true, y_score, qid=qid, n_bins=n_bins, strategy=strategy)
        return cls(found).plot(ax, ref_line=ref_line, **style)
