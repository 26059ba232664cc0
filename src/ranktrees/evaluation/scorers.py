"""Scorers of scikit-learn as what a fit follows, made from the scores of its rows without a prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.metrics._scorer import _BaseScorer

from ranktrees.measures import Measure, as_measure
from ranktrees.measures.named import is_scorer
from ranktrees.support.spelling import spelt

if TYPE_CHECKING:
    from ranktrees.measures.named import AnyMeasure
    from ranktrees.rows.data import FitData

__all__ = ["ByScorer", "as_followed"]


class ByScorer(Measure):
    """What a scorer says of rows, as the measure that a fit follows; higher is better.

    It prints as the scorer, and has a value only for the rows that it is given by `of`.
    """

    name = "ByScorer"
    defaults: ClassVar = {"scorer": None}
    scorer: Any
    by_order = by_query = False
    lowest_label = -np.inf

    def __repr__(self) -> str:
        return spelt(self.scorer)

    def of(self, methods: Mapping[str, Callable[[np.ndarray], np.ndarray]], data: FitData) -> ScoredRows:
        """Return the scorer for some rows, of whose scores the methods of an estimator make predictions."""
        return ScoredRows(get_scorer(self.scorer), spelt(self.scorer), methods, data)


def as_followed(scoring: AnyMeasure) -> Measure:
    """Return the measure, or the scorer of scikit-learn, that ``scoring`` stands for.

    Parameters
    ----------
    scoring : str, Measure or callable
        As `as_measure` takes it; or the name of a scorer that is not also that of a measure; or a scorer: a
        function of (estimator, X, y).

    Returns
    -------
    Measure

    Examples
    --------
    >>> from ranktrees.evaluation.scorers import as_followed
    >>> as_followed("ndcg@5"), as_followed("neg_log_loss"), as_followed("precision")
    (NDCG @ 5, 'neg_log_loss', P)
    """
    if isinstance(scoring, str) and scoring in set(get_scorer_names()) - {"precision", "recall"}:
        return ByScorer(scorer=scoring)
    if callable(scoring) and not isinstance(scoring, Measure | type) and is_scorer(scoring):
        return ByScorer(scorer=scoring)
    return as_measure(scoring)


class ScoredRows:
    """A scorer, and the rows on which it is called with an estimator that knows their scores only.

    Parameters
    ----------
    scorer : callable
    name : str
    methods : dict of str to callable
        How each method of the estimator makes what it returns of scores.
    data : FitData
    """

    def __init__(
        self,
        scorer: Callable[..., Any],
        name: str,
        methods: Mapping[str, Callable[[np.ndarray], np.ndarray]],
        data: FitData,
    ) -> None:
        self.scorer, self.name, self.methods = scorer, name, methods
        labels = data.labels
        self.classes = data.classes
        self.y = labels if self.classes is None else self.classes[labels.astype(np.intp)]
        self.weights = {} if data.weights is None else {"sample_weight": data.weights}
        if isinstance(scorer, _BaseScorer):  # which only pass the rows on
            self.rows: Any = np.empty((data.n_rows, 0))
        else:
            self.rows = data.X if data.order is None else data.X[data.order]

    def signed_mean(self, scores: np.ndarray) -> float:
        """Return the value at scores of shape (n_rows,) or (n_classes, n_rows)."""
        kind = _Regressor if self.classes is None else _Classifier
        estimator = kind(self.methods, scores.T, self.rows, self.classes, self.name)
        value = self.scorer(estimator, self.rows, self.y, **self.weights)
        if not isinstance(value, Real):
            raise ValueError(f"scoring={self.name} returned {value!r}; expected one number.")
        return float(value)


class _Predicting(BaseEstimator):
    """A fitted estimator, as far as its predictions of the rows go that it is asked for."""

    def __init__(self, methods: Any, scores: Any, rows: Any, classes: Any, name: str) -> None:
        self.methods, self.scores, self.rows, self.name = methods, scores, rows, name
        if classes is not None:
            self.classes_ = classes

    def _answer(self, method: str, X: Any) -> np.ndarray:
        if X is not self.rows:
            raise ValueError(
                f"scoring={self.name} asks for predictions of other rows than those it was called with; "
                "expected a function of (estimator, X, y) that passes X on to the estimator as it is."
            )
        return self.methods[method](self.scores)

    def predict(self, X: Any) -> np.ndarray:
        return self._answer("predict", X)


class _Regressor(RegressorMixin, _Predicting):
    """A regressor."""


class _Classifier(ClassifierMixin, _Predicting):
    """A classifier."""

    def predict_proba(self, X: Any) -> np.ndarray:
        return self._answer("predict_proba", X)

    def decision_function(self, X: Any) -> np.ndarray:
        return self._answer("decision_function", X)
