"""Displays of what a model has learned, and of how it has done so."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from ranktrees.displays.base import Display
from ranktrees.evaluation import score_curves
from ranktrees.evaluation.own_models import fitted_trees
from ranktrees.inspection import (
    accumulated_local_effects,
    importances,
    partial_dependence,
    permutation_importance,
    position_bias,
    tree_graph,
)
from ranktrees.support.numeric import is_whole
from ranktrees.support.plotting import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.inspection import FeatureEffect
    from ranktrees.measures.named import AnyMeasure
    from ranktrees.support.annotations import IdsLike, RowsLike

__all__ = [
    "CostCurveDisplay",
    "ImportanceDisplay",
    "LearningCurvesDisplay",
    "PartialDependenceDisplay",
    "PositionBiasDisplay",
    "TreeDisplay",
]


class ImportanceDisplay(Display):
    """How much each feature matters, as bars with intervals; ``result`` is an `Importances`.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> from ranktrees.displays import ImportanceDisplay
    >>> X, y, qid = make_ranking(60, n_features=5, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=10, random_state=0).fit(X, y, qid=qid)
    >>> ImportanceDisplay.from_estimator(ranker, kind="gain").ax_.get_xlabel()
    'share of the gain'
    >>> display = ImportanceDisplay.from_estimator(ranker, X, y, qid=qid, n_repeats=2)
    >>> display.ax_.get_xlabel()
    'loss of NDCG @ 10 if shuffled, 95 % interval'
    """

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: RowsLike | None = None,
        y: ArrayLike | None = None,
        *,
        kind: Literal["permutation", "gain", "split"] = "permutation",
        qid: IdsLike | None = None,
        max_features: int = 20,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Compute the importances of features and draw them.

        Parameters
        ----------
        model : estimator or Ensemble
            A fitted estimator of this library that is made of trees, or its ensemble.
        X, y, qid
            Rows, labels and query ids, as for `permutation_importance`. Only for this kind.
        kind : {"permutation", "gain", "split"}, default="permutation"
            What features are worth to a measure (`permutation_importance`), or to the trees (`importances`).
        max_features : int, default=20
            The number of features to show.
        ax : matplotlib Axes, default=None
            The axes to draw on. If None, a new figure is created.
        **options
            Other arguments of `permutation_importance`, such as ``measure``, ``among`` and ``n_repeats``.

        Returns
        -------
        ImportanceDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError
            If rows, labels or options are missing for a kind, or have no meaning for it.
        ValueError
            If ``kind`` is none of these, and for the reasons of the functions.
        """
        if kind == "permutation":
            if X is None or y is None:
                raise TypeError(
                    "kind='permutation' needs X and y; expected rows and labels, best of queries that the "
                    "model was not trained on: pass them, or kind='gain'."
                )
            return cls(permutation_importance(model, X, y, qid=qid, **options)).plot(
                ax, max_features=max_features
            )
        given = {"X": X, "y": y, "qid": qid} | options
        if ignored := [name for name, value in given.items() if value is not None]:
            raise TypeError(
                f"{ignored[0]} has no effect with kind={kind!r}; expected kind='permutation' with it."
            )
        return cls(importances(model, kind)).plot(ax, max_features=max_features)


class LearningCurvesDisplay(Display):
    """Measures after each tree of a model; ``result`` is a `ScoreCurves`.

    scikit-learn's ``LearningCurveDisplay`` shows what a model gains from more rows.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> from ranktrees.displays import LearningCurvesDisplay
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=10, early_stopping=True, random_state=0).fit(X, y, qid=qid)
    >>> display = LearningCurvesDisplay.from_estimator(ranker)
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()][:2]
    ['training', 'validation']
    """

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: RowsLike | None = None,
        y: ArrayLike | None = None,
        *,
        qid: IdsLike | None = None,
        sets: Mapping[str, tuple[Any, ...]] | None = None,
        measure: AnyMeasure = "ndcg@10",
        every: int = 1,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Measure a model after each of its trees and draw the curves.

        Parameters
        ----------
        model, X, y, qid, sets, every
            As for `score_curves`. Without rows, the curves are those recorded during the fit.
        measure : str, Measure or callable, default="ndcg@10"
            The measure. Ignored if there are no rows.
        ax : matplotlib Axes, default=None
            The axes to draw on. If None, a new figure is created.
        **style
            Keyword arguments passed to `ScoreCurves.plot`.

        Returns
        -------
        LearningCurvesDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            As in `score_curves`.
        """
        curves = score_curves(model, X, y, qid=qid, sets=sets, measure=measure, every=every)
        return cls(curves).plot(ax, **style)


class CostCurveDisplay(Display):
    """Cost against quality as trees are added; ``result`` is a `CostCurve`.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> from ranktrees.displays import CostCurveDisplay
    >>> X, y, qid = make_ranking(60, n_features=3, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=5, random_state=0).fit(X, y, qid=qid)
    >>> display = CostCurveDisplay.from_estimator(ranker, X, y, qid=qid, feature_costs=[1, 5, 20])
    >>> display.ax_.get_ylabel()
    'NDCG @ 10'
    """

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: RowsLike,
        y: ArrayLike,
        *,
        qid: IdsLike | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Compute the cost curve of a model and draw it.

        Parameters
        ----------
        model : estimator or Ensemble
            A fitted estimator of this library that is made of trees, or its ensemble.
        X, y, qid
            Rows, labels and query ids, as for its ``cost_curve``.
        name : str, default=None
            The name of the model, for a legend.
        ax : matplotlib Axes, default=None
            The axes to draw on. If None, a new figure is created.
        **options
            Other arguments of ``cost_curve``, such as ``early_exit`` and ``feature_costs``.

        Returns
        -------
        CostCurveDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            As in ``cost_curve``.
        """
        curve = fitted_trees(model).cost_curve(X, y, qid=qid, **options)
        return cls(curve).plot(ax, **({} if name is None else {"label": name}))


class PositionBiasDisplay(Display):
    """The propensities of positions that a model has found in clicks; ``result`` is a `PositionBias`.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_clicks, make_ranking
    >>> from ranktrees.displays import PositionBiasDisplay
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> log = make_clicks(y, qid=qid, n_sessions=10, random_state=0)
    >>> ranker = LambdaMARTRanker(max_iter=10, random_state=0)
    >>> ranker = ranker.fit(X[log.rows], log.target, qid=log.qid, position=log.position)
    >>> PositionBiasDisplay.from_estimator(ranker).ax_.get_xlabel()
    'position'
    """

    @classmethod
    def from_estimator(cls, model: Any, *, ax: Axes | None = None, **style: Any) -> Self:
        """Draw the propensities of a model.

        Parameters
        ----------
        model : LambdaMARTRanker
            A ranker that was fitted with ``position``.
        ax : matplotlib Axes, default=None
            The axes to draw on. If None, a new figure is created.
        **style
            Keyword arguments passed to `matplotlib.axes.Axes.plot`.

        Returns
        -------
        PositionBiasDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If the model was fitted without positions.
        """
        return cls(position_bias(model)).plot(ax, **style)


class TreeDisplay(Display):
    """A tree of a model; ``result`` is a `TreeGraph`.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> from ranktrees.displays import TreeDisplay
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=5, random_state=0).fit(X, y, qid=qid)
    >>> display = TreeDisplay.from_estimator(ranker, max_depth=2)
    >>> len(display.result.texts)
    7
    """

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        number: int = 0,
        *,
        max_depth: int | None = None,
        ax: Axes | None = None,
        **style: Any,
    ) -> Self:
        """Draw a tree of a model.

        Parameters
        ----------
        model, number, max_depth
            As for `tree_graph`.
        ax : matplotlib Axes, default=None
            The axes to draw on. If None, a new figure is created, as wide as the leaves need.
        **style
            Keyword arguments passed to `matplotlib.axes.Axes.text`.

        Returns
        -------
        TreeDisplay

        Raises
        ------
        ImportError
            If matplotlib or pandas is not installed.
        TypeError, ValueError
            As in `tree_graph`.
        """
        return cls(tree_graph(model, number, max_depth=max_depth)).plot(ax, **style)


class PartialDependenceDisplay:
    """How scores depend on features, each on axes of its own.

    Parameters
    ----------
    results : sequence of FeatureEffect
        The effects of the features.

    Attributes
    ----------
    results : list of FeatureEffect
        The effects of the features.
    axes_ : ndarray of matplotlib Axes, shape (n_features,)
        The axes on which they were drawn last.
    figure_ : matplotlib Figure
        Their figure.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> from ranktrees.displays import PartialDependenceDisplay
    >>> X, y, qid = make_ranking(60, n_features=3, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=10, random_state=0).fit(X, y, qid=qid)
    >>> display = PartialDependenceDisplay.from_estimator(ranker, X, [0, 2], kind="ale")
    >>> [ax.get_xlabel() for ax in display.axes_]
    ['0', '2']
    """

    figure_: Any
    axes_: NDArray[Any]

    def __init__(self, results: Sequence[FeatureEffect]) -> None:
        self.results = list(results)

    def plot(self, ax: Any = None, *, n_cols: int = 3, **style: Any) -> Self:
        """Draw the effects.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of them, default=None
            The axes to draw on, one for each feature. If None, a new figure is created, with the axes in
            ``n_cols`` columns that share the vertical scale.
        n_cols : int, default=3
            The number of columns of a new figure.
        **style
            Keyword arguments passed to `matplotlib.axes.Axes.plot`.

        Returns
        -------
        self

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If there are not as many axes as features, or if ``n_cols`` is not a whole number of at least 1.
        """
        if not is_whole(n_cols, 1):
            raise ValueError(f"n_cols={n_cols!r}; expected a whole number of at least 1.")
        n_effects = len(self.results)
        if ax is None:
            n_cols = min(n_cols, n_effects)
            n_rows = math.ceil(n_effects / n_cols)
            size = 3.2 * n_cols + 0.5, 2.8 * n_rows
            given = new_axes(n_rows, n_cols, figsize=size, sharey=True, layout="constrained")
            for unused in given.flat[n_effects:]:
                unused.remove()
            axes = given.ravel()[:n_effects]
        else:
            axes = np.array(ax, object).ravel()
        if len(axes) != n_effects:
            raise ValueError(f"ax has {len(axes)} axes; expected {n_effects}, one for each feature.")
        for effect, where in zip(self.results, axes, strict=True):
            effect.plot(where, **style)
        if ax is None:
            for where in given[:, 1:].flat:  # which have the scale of the first column
                where.set_ylabel("")
        self.axes_, self.figure_ = axes, axes[0].figure
        return self

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: RowsLike,
        features: Sequence[int | str],
        *,
        kind: Literal["partial", "ale"] = "partial",
        grid_resolution: int = 50,
        percentiles: tuple[float, float] = (0.05, 0.95),
        ax: Any = None,
        n_cols: int = 3,
        **style: Any,
    ) -> Self:
        """Compute how scores depend on features and draw it.

        Parameters
        ----------
        model, X, grid_resolution, percentiles
            As for `partial_dependence`.
        features : sequence of int or str
            The numbers or names of the features.
        kind : {"partial", "ale"}, default="partial"
            Whether to compute `partial_dependence` or `accumulated_local_effects`.
        ax, n_cols, **style
            As for `plot`.

        Returns
        -------
        PartialDependenceDisplay

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        TypeError, ValueError
            As in `partial_dependence`, and if ``features`` is a single one or empty, or ``kind`` is neither.
        """
        if isinstance(features, str) or not isinstance(features, Sequence | np.ndarray) or not len(features):
            raise ValueError(
                f"features={features!r}; expected a list of names or numbers, such as ['age'] or [0]."
            )
        functions: Any = {"partial": partial_dependence, "ale": accumulated_local_effects}
        if kind not in functions:
            raise ValueError(f"kind={kind!r}; expected 'partial' or 'ale'.")
        grid: dict[str, Any] = {"grid_resolution": grid_resolution, "percentiles": percentiles}
        effects = [functions[kind](model, X, feature, **grid) for feature in features]
        return cls(effects).plot(ax, n_cols=n_cols, **style)
