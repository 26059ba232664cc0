"""How good a model is after each of its trees: by any measures, on any rows, or as recorded during its fit.

In scikit-learn a *learning curve* shows what a model gains from more rows. These are curves over more trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ranktrees.evaluation.own_models import own_model, where_trees_may_be
from ranktrees.evaluation.predictions import score_method, staged_scores_by
from ranktrees.measures import Measure, as_measure
from ranktrees.rows import check_score
from ranktrees.rows.values import as_seen
from ranktrees.support.numeric import is_whole
from ranktrees.support.parallel import effective_n_threads
from ranktrees.support.plotting import axes_or_new
from ranktrees.support.spelling import spelt
from ranktrees.support.tables import Tabular, pandas_for

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.measures.named import AnyMeasure
    from ranktrees.support.annotations import IdsLike, RowsLike

__all__ = ["ScoreCurves", "score_curves"]


@dataclass(frozen=True, repr=False, eq=False)
class ScoreCurves(Tabular):
    """The result of `score_curves`: a curve for each set of rows and each measure.

    ``curves["validation", "ndcg@10"]`` is an array, and ``curves.to_frame()`` a table of all curves.

    Attributes
    ----------
    n_trees : ndarray of int64, shape (n_points,)
        The numbers of trees after which the model was measured.
    values : dict of (str, Measure or "loss") to ndarray of float64, shape (n_points,)
        The curves, by the name of the set and the measure.
    kept : int
        The number of trees that the model has. After early stopping it has fewer than it has grown.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.evaluation import ScoreCurves
    >>> from ranktrees.measures import NDCG
    >>> values = {("validation", NDCG @ 10): np.array([0.5, 0.75, 0.625])}
    >>> curves = ScoreCurves(np.array([10, 20, 30]), values, 20)
    >>> curves
    after 10, ..., 30 trees, 20 kept
    validation, NDCG @ 10: 0.5000 ... 0.6250, best 0.7500 after 20
    >>> curves["validation", "ndcg@10"]
    array([0.5  , 0.75 , 0.625])
    >>> curves.best("validation")
    (20, 0.75)
    """

    n_trees: NDArray[np.int64]
    values: dict[tuple[str, Any], NDArray[np.float64]]
    kept: int

    def __getitem__(self, key: tuple[str, AnyMeasure]) -> NDArray[np.float64]:
        name, measure = key
        return self.values[self._keys(name, measure)[0]]

    def __repr__(self) -> str:
        kept = f", {self.kept} kept" if self.kept < self.n_trees[-1] else ""
        lines = [f"after {self.n_trees[0]}, ..., {self.n_trees[-1]} trees{kept}"]
        for (name, measure), values in self.values.items():
            n_trees, value = self.best(name, measure)
            ends = f"{values[0]:.4f} ... {values[-1]:.4f}"
            lines.append(f"{name}, {measure}: {ends}, best {value:.4f} after {n_trees}")
        return "\n".join(lines)

    def best(self, name: str, measure: AnyMeasure | None = None) -> tuple[int, float]:
        """Return the number of trees with which a measure is best, and its value there.

        Of equally good points the first is taken.

        Parameters
        ----------
        name : str
            The name of the set of rows.
        measure : str or Measure, default=None
            The measure. If None, the first measure of the set.

        Returns
        -------
        n_trees : int
            The number of trees.
        value : float
            The value of the measure with that many trees.

        Raises
        ------
        KeyError
            If there is no such curve; the message lists the curves that there are.
        """
        key = self._keys(name, measure)[0]
        followed, values = key[1], self.values[key]
        is_error = isinstance(followed, str) or not followed.greater_is_better
        best = int(np.nanargmin(values) if is_error else np.nanargmax(values))
        return int(self.n_trees[best]), float(values[best])

    def to_frame(self) -> pd.DataFrame:
        """Return the curves as a table with a row for each point.

        Returns
        -------
        DataFrame
            Indexed by the number of trees, with a column for each (set, measure).

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = pandas_for("to_frame")
        columns = [(name, str(measure)) for name, measure in self.values]
        return pd.DataFrame(
            np.column_stack(list(self.values.values())),
            pd.Index(self.n_trees, name="trees"),
            pd.MultiIndex.from_tuples(columns, names=["set", "measure"]),
        )

    def plot(self, measure: AnyMeasure | None = None, ax: Axes | None = None, **style: Any) -> Axes:
        """Plot the curves of a measure, with a dot where each is best.

        If the model has kept fewer trees than it has grown, a vertical line shows where it ends.

        Parameters
        ----------
        measure : str or Measure, default=None
            The measure. If None, the first of the measures.
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
        KeyError
            If there is no curve of the measure; the message lists the curves that there are.
        """
        keys = self._keys(measure=measure)
        ax = axes_or_new(ax)
        for name, measure in keys:
            (line,) = ax.plot(self.n_trees, self.values[name, measure], **({"label": name} | style))
            ax.plot(*self.best(name, measure), "o", color=line.get_color())
        if self.kept < self.n_trees[-1]:
            ax.axvline(self.kept, color="grey", linewidth=0.8, label="trees kept")
        ax.set(xlabel="trees", ylabel=str(measure))
        ax.legend()
        return ax

    def _keys(self, name: str | None = None, measure: AnyMeasure | None = None) -> list[tuple[str, Any]]:
        """The keys of the curves of a set (None: of all sets) and of a measure (None: of their first one)."""
        keys = [key for key in self.values if name in (None, key[0])]
        if measure is not None:
            measure = _measure_or_loss(measure)
        elif keys:
            measure = keys[0][1]
        keys = [key for key in keys if key[1] == measure]
        if not keys:
            wanted = ", ".join(str(one) for one in (name, measure) if one is not None)
            there_are = "; ".join(f"{name}, {measure}" for name, measure in self.values)
            raise KeyError(
                f"there is no curve of {wanted}; expected one of: {there_are}. For others, pass rows and "
                "measures to score_curves."
            )
        return keys


def _measure_or_loss(measure: AnyMeasure) -> Measure | str:
    return measure if isinstance(measure, str) and measure == "loss" else as_measure(measure)


def score_curves(
    model: Any,
    X: RowsLike | None = None,
    y: ArrayLike | None = None,
    *,
    qid: IdsLike | None = None,
    sets: Mapping[str, tuple[Any, ...]] | None = None,
    measure: AnyMeasure | Sequence[AnyMeasure] = "ndcg@10",
    every: int = 1,
) -> ScoreCurves:
    """Measure a model after each of its trees.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted model of this library or another, with ``staged_predict`` or, for a classifier of two
        classes, ``staged_decision_function`` or ``staged_predict_proba``; or an ensemble.
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features), default=None
        The rows to measure on. Their curves are those of the set "rows". If neither rows nor ``sets`` are
        given, the curves are those that a boosted model of this library has recorded during its fit: one
        measure (``scoring``) or the loss, on its training and validation rows, including the trees that early
        stopping has cut off.
    y : array-like of shape (n_rows,), default=None
        The labels of the rows. A pandas Series whose index has a level named "qid" supplies the query ids as
        well.
    qid : array-like of shape (n_rows,), default=None
        The query ids of the rows, in any order. Without ids all rows are one query.
    sets : dict of str to tuple, default=None
        Several sets of rows instead of ``X``, by name: ``(X, y)`` or ``(X, y, qid)``.
    measure : str, Measure, callable or sequence of them, default="ndcg@10"
        The measure to compute on the rows, or several. Ignored if there are no rows.
    every : int, default=1
        Measure after each ``every``-th tree, and after the last.

    Returns
    -------
    ScoreCurves
        The curves.

    Raises
    ------
    TypeError
        If the model does not predict in stages, if there are rows without labels or labels without rows, or
        if rows are given in both ways.
    ValueError
        If rows, labels or ids cannot be read, if the model was fitted with ids and a set has none, if a
        measure is not defined on a set, or if there are no rows and the fit has recorded nothing.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking, score_curves
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> train, test = qid < 40, qid >= 40
    >>> ranker = LambdaMARTRanker(max_iter=50, random_state=0).fit(X[train], y[train], qid=qid[train])
    >>> score_curves(ranker, X[test], y[test], qid=qid[test]).best("rows")[0] > 1
    True
    >>> sets = {"training": (X[train], y[train], qid[train]), "test": (X[test], y[test], qid[test])}
    >>> curves = score_curves(ranker, sets=sets, measure=["ndcg@10", "err"])
    >>> list(curves.values)
    [('training', NDCG @ 10), ('training', ERR), ('test', NDCG @ 10), ('test', ERR)]
    >>> bool(curves["test", "err"][-1] > curves["test", "err"][0])
    True
    """
    model = own_model(model) or model
    check_is_fitted(model)
    sets = _checked_sets(X, y, qid, sets)
    follows_fit = sets is None and hasattr(model, "_followed")
    if not follows_fit and not hasattr(model, f"staged_{score_method(model)}"):
        raise TypeError(
            f"model is a {type(model).__name__}; expected a fitted estimator with staged_predict, or an "
            "Ensemble." + where_trees_may_be(model)
        )
    if not is_whole(every, 1):
        raise ValueError(f"every={every!r}; expected a whole number of at least 1.")
    if sets is None:
        return _followed(model, every)
    given = [measure] if isinstance(measure, str | Measure) or callable(measure) else list(measure)
    if not given:
        raise ValueError("measure is empty; expected one or more, such as 'ndcg@10'.")
    chosen = [as_measure(one) for one in given]
    n_threads = effective_n_threads(getattr(model, "n_jobs", None))
    values = {}
    for name, (X, y, qid) in sets.items():
        data = check_score(model, X, y, qid=qid, read_rows=False, method="score_curves")
        for measure in chosen:
            measure.check_labels(data.labels, f"y of {name!r}")
            measure.warn_of_labels(data.labels, f"y of {name!r}")
        curves: dict[Measure, np.ndarray] = {}
        for method in dict.fromkeys(score_method(model, measure) for measure in chosen):
            some = [measure for measure in chosen if score_method(model, measure) == method]
            prepared = [measure.prepare(data.labels, data.offsets, None, n_threads) for measure in some]
            n_trees, of_set = [], []
            for n, scores in _every(every, staged_scores_by(model, X, some[0])):
                n_trees.append(n)
                scores = data.internal(scores)
                of_set.append([measure.mean(scores) for measure in prepared])
            if not n_trees:
                raise ValueError("model has no trees; expected at least one: fit it with more.")
            curves |= zip(some, np.array(of_set).T, strict=True)
        for measure in chosen:
            if np.isnan(curves[measure]).any():
                raise ValueError(
                    f"{measure} is not defined on any query of {name!r}: pass other rows, or set empty_query."
                )
            values[name, measure] = curves[measure]
    return ScoreCurves(np.array(n_trees), values, n_trees[-1])


def _checked_sets(
    X: RowsLike | None,
    y: ArrayLike | None,
    qid: IdsLike | None,
    sets: Mapping[str, tuple[Any, ...]] | None,
) -> dict[str, tuple[Any, Any, Any]] | None:
    """The sets of rows by name, each with ids or None; None if there are no rows."""
    if isinstance(X, Mapping):
        raise TypeError(f"X is {as_seen(X)}; expected rows: pass several sets of rows as sets=.")
    given = [name for name, value in {"X": X, "y": y, "qid": qid}.items() if value is not None]
    if sets is None:
        if given and (X is None or y is None):
            lacking = "X" if X is None else "y"
            raise TypeError(f"{given[0]} is given without {lacking}; expected rows and labels, or neither.")
        return {"rows": (X, y, qid)} if given else None
    if given:
        raise TypeError(f"both {given[0]} and sets are given; expected one of them: add the rows to sets.")
    if not (isinstance(sets, Mapping) and sets):
        raise ValueError(
            f'sets is a {type(sets).__name__}; expected a dict that is not empty, such as {{"test": (X, y, '
            "qid)}."
        )
    for name, rows in sets.items():
        if not isinstance(rows, tuple | list) or len(rows) not in (2, 3):
            raise ValueError(f"sets has {as_seen(rows)} as {name!r}; expected a tuple (X, y) or (X, y, qid).")
    return {name: (*rows, None)[:3] for name, rows in sets.items()}


def _every(every: int, stages: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Yield (number, stage) for each ``every``-th stage, and for the last."""
    number = 0
    for number, stage in enumerate(stages, start=1):
        if number % every == 0:
            yield number, stage
    if number % every:
        yield number, stage


def _measure_called(text: Any, model: Any) -> Measure | str:
    """The measure that the fit has followed, even if the parameters have changed since."""
    if text == spelt(None):
        return "loss"
    if model._scoring() != "loss" and spelt(now := model._measure_of(model._scoring())) == text:
        return now
    try:
        return as_measure(text)
    except ValueError as error:
        raise ValueError(
            f"no rows are given, and scoring has changed since the model was fitted, when it was {text}: set "
            "it back, or pass rows to measure on."
        ) from error


def _followed(model: Any, every: int) -> ScoreCurves:
    """The curves that a model of this library has recorded during its fit."""
    followed = getattr(model, "_followed", {})
    attributes = {"training": "train_score_", "validation": "validation_score_"}
    scores = {name: getattr(model, attributes[name]) for name in followed}
    scores = {name: of_rounds for name, of_rounds in scores.items() if len(of_rounds)}
    if not scores:
        raise ValueError(
            "no rows are given, and the model recorded no scores while it was fitted: fit it with validation "
            "rows or early_stopping=True, or pass rows to measure on: score_curves(model, X, y, qid=qid)."
        )
    n_trees = np.array([n for n, _ in _every(every, range(model.n_iter_))])
    values = {}
    for name, of_rounds in scores.items():
        measure = _measure_called(followed[name], model)
        sign = -1.0 if isinstance(measure, str) or not measure.greater_is_better else 1.0
        values[name, measure] = sign * of_rounds[n_trees - 1]
    return ScoreCurves(n_trees, values, model.best_iteration_)
