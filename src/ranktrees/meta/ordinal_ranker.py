"""Rankers by the probabilities of grades: of each event "the grade is at most c", or of all grades."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.utils import ClassifierTags, check_random_state, indexable
from sklearn.utils._indexing import _safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted

from ranktrees.estimators import LambdaMARTRanker
from ranktrees.estimators.ensemble_ranker import EnsembleRanker, tags_of
from ranktrees.estimators.parameters import KnownParameters, with_keywords, with_parameters
from ranktrees.evaluation.clones import estimators_inside
from ranktrees.evaluation.predictions import probabilities_by
from ranktrees.measures import Measure
from ranktrees.measures.named import AnyMeasure
from ranktrees.measures.worth import exp2_gains
from ranktrees.meta.base import RoutesMetadata, ScoredByMeasure
from ranktrees.meta.ordinal import class_probabilities, least_squares_values
from ranktrees.rows import (
    check_columns,
    check_fit,
    hand_queries,
    qid_of,
    unchanged_on_failure,
    wants_queries_together,
)
from ranktrees.rows.sampling import hold_out
from ranktrees.support.listed import by_key, in_order

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.rows.data import FitData
    from ranktrees.support.annotations import IdsLike, RowsLike

FORMULAS = {
    "expected_relevance": lambda grades: grades,
    "expected_square": lambda grades: grades**2,
    "expected_gain": exp2_gains,
}

MOST_GRADES = 255

SCORES_ONLY = "whose scores order the rows of a query, but do not estimate how likely an event is"

# Estimators whose predictions are not probabilities of an event.
NO_PROBABILITIES = {
    LambdaMARTRanker: SCORES_ONLY,
    EnsembleRanker: "whose trees are fixed and do not learn an event",
    FrozenEstimator: "which stays as it is and does not learn an event",
}


@with_parameters
class OrdinalRanker(KnownParameters, ScoredByMeasure, RoutesMetadata, RegressorMixin, BaseEstimator):
    r"""Ranking by classification, that is, by the probabilities of the grades of a row.

    With ``method="ordinal"``, grades have an order. For each grade :math:`c` but the highest, a clone of the
    estimator learns the event :math:`y \le c`. The predictions of the clones are clipped to :math:`[0, 1]`.
    If they fall as :math:`c` rises, they are replaced by the nearest sequence that does not
    (`nearest_rising`). Their differences are the probabilities of the grades, and the score of a row is the
    expected value of its grade,

    .. math:: P(y = c) = P(y \le c) - P(y \le c - 1), \qquad s = \sum_c P(y = c)\, v_c.

    With :math:`v_c = c` the score is the expected relevance.

    With ``method="multiclass"``, a single clone of a classifier learns the grades, as classes without an
    order, and gives :math:`P(y = c)`. With `HistGBRTClassifier` and the expected relevance this is McRank as
    Wu et al. describe it: boosted trees as classifiers, one for each class in every round.

    Parameters
    ----------
    estimator : estimator
        The estimator that learns an event, coded as 1 or 0. It is a classifier, whose ``predict_proba`` is
        used, or a regressor, whose prediction is taken as the probability. `HistGBRTClassifier`,
        `HistGBRTRegressor`, `RandomForestRanker` and estimators of scikit-learn are all suitable. A frozen
        estimator is not, since it learns nothing. With ``method="multiclass"`` it is a classifier.
    scoring : str, callable, mapping or array-like, default="expected_relevance"
        The value :math:`v_c` of each grade:

        - "expected_relevance": :math:`c`;
        - "expected_square": :math:`c^2`;
        - "expected_gain": :math:`2^c - 1`, which ranks as :math:`2^c` does;
        - "least_squares": the values that bring the scores closest to the labels, see
          `least_squares_values`;
        - a function of a grade;
        - a table: a mapping of grades to values, or a sequence that is indexed by the grade, a whole number.
    method : {"ordinal", "multiclass"}, default="ordinal"
        Whether a clone learns each event :math:`y \le c`, or a single one the grades.
    measure : str, Measure or callable, default="ndcg@10"
        The measure that `score` returns.
    validation_fraction : float or None, default=None
        With ``scoring="least_squares"``, the share of the queries (or of the rows, if there are no queries)
        that is held out to find the values, so that the clones do not learn from them. If None, the values
        are found on the training rows, which suits models that do not fit those much more closely than new
        ones.
    random_state : int, RandomState or None, default=None
        The source of randomness for the held-out part and for the seed of each clone. If None, the
        ``random_state`` of the estimator is left as it is, the same in all clones.
    n_jobs : int or None, default=None
        The number of clones that are fitted at the same time, through joblib. None means 1. The model does
        not depend on it.

    Attributes
    ----------
    classes_ : ndarray of float64, shape (n_grades,)
        The grades seen in `fit`, in rising order.
    values_ : ndarray of float64, shape (n_grades,)
        The values of the grades, according to `scoring`.
    estimators_ : list of estimators
        For each grade but the last, the clone that learned the event that a label is at most that grade. With
        ``method="multiclass"``, the clone that learned the grades.
    n_features_in_ : int
        The number of columns of ``X``.
    feature_names_in_ : ndarray of str
        The names of the columns of a data frame. Defined only if all names are strings.

    References
    ----------
    Li, Burges, Wu, *McRank: learning to rank using multiple classification and gradient boosting*, NIPS 2007.
    Wu, Burges, Svore, Gao, *Adapting boosting for information retrieval measures*, Information Retrieval 13,
    2010.
    Mohan, *An empirical analysis on point-wise machine learning techniques using regression trees for
    web-search ranking*, 2010, chapter 3.

    Examples
    --------
    >>> from ranktrees import HistGBRTClassifier, OrdinalRanker, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> ranker = OrdinalRanker(HistGBRTClassifier(max_iter=50, random_state=0)).fit(X, y, qid=qid)
    >>> ranker.classes_
    array([0., 1., 2., 3., 4.])
    >>> ranker.predict_proba(X).shape
    (3000, 5)
    >>> ranker.score(X, y, qid=qid) > 0.9
    True
    """

    estimator: Any = field(kw_only=False)
    scoring: Any = field(default="expected_relevance", kw_only=False)
    method: Literal["ordinal", "multiclass"] = "ordinal"
    measure: AnyMeasure = "ndcg@10"
    validation_fraction: float | None = None
    random_state: Any = None
    n_jobs: int | None = None

    _parameter_constraints = {  # noqa: RUF012
        "estimator": [HasMethods(["fit", "predict"])],
        "scoring": [StrOptions({*FORMULAS, "least_squares"}), callable, Mapping, "array-like"],
        "method": [StrOptions({"ordinal", "multiclass"})],
        "measure": [str, Measure, callable],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    __metadata_request__fit = {"qid": True, "groups": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True, "groups": True}  # noqa: RUF012
    _routes = {"fit": "fit"}  # noqa: RUF012

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = tags_of(self.estimator).input_tags
        tags.target_tags.positive_only = True
        tags.classifier_tags = ClassifierTags()  # of `predict_proba`
        return tags

    @with_keywords
    def fit(
        self,
        X: RowsLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        qid: IdsLike | None = None,
        groups: IdsLike | None = None,
        group: ArrayLike | None = None,
    ) -> Self:
        """Fit a clone to each event, or one to the grades.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Rows, passed on to the clones as they are.
        y : array-like of shape (n_rows,)
            Grades. They are finite numbers with at most 255 different values, each of which is a grade. A
            pandas Series whose index has a level named "qid" supplies the query ids as well. The labels of
            the clones have the same index.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights >= 0 of the rows, which are passed on to the clones. With metadata routing enabled, they
            are passed on if the estimator requests them.
        qid, groups : array-like of shape (n_rows,), default=None
            The query id of each row, in any order, under either name. They are passed on as
            `ranktrees.rows.hand_queries` does: as ``qid`` if the `fit` of the estimator takes it, and
            otherwise, as in a pipeline, in the index of the labels. With metadata routing enabled, they are
            passed on if the estimator requests them.
        group : array-like of shape (n_queries,), default=None
            The sizes of the queries in row order, as LightGBM takes them.

        Returns
        -------
        self : OrdinalRanker
            The fitted ranker. A fit that fails leaves it as it was.

        Raises
        ------
        ValueError, TypeError
            If an argument is not valid, or if the estimator gives no probabilities or takes no weights; the
            message names it.
        """
        self._validate_params()
        self._require_probabilities()
        with unchanged_on_failure(self):
            data = check_fit(self, X, y, sample_weight, qid=qid, groups=groups, group=group, read_rows=False)
            self._fit(X, y, data)
        return self

    def _require_probabilities(self) -> None:
        name = type(self.estimator).__name__
        if self._learns_classes and not is_classifier(self.estimator):
            raise ValueError(
                f'estimator is a {name}, which is not a classifier, but method="multiclass" has one learn '
                'the grades; expected a classifier: pass HistGBRTClassifier(), say, or method="ordinal".'
            )
        for one in _that_predict(self.estimator):
            faults = [fault for kind, fault in NO_PROBABILITIES.items() if isinstance(one, kind)]
            if wants_queries_together(one):
                faults.append(SCORES_ONLY)
            if faults:
                around = "" if one is self.estimator else f" around a {type(one).__name__}"
                raise ValueError(
                    f"estimator is a {name}{around}, {faults[0]}; expected a classifier or a regressor that "
                    "is fitted here: pass HistGBRTClassifier(), say."
                )
        if is_classifier(self.estimator) and not hasattr(self.estimator, "predict_proba"):
            raise ValueError(
                f"estimator is a {name} without predict_proba; expected a classifier that gives "
                f"probabilities: pass CalibratedClassifierCV({name}(...)), say."
            )

    def _fit(self, X: RowsLike, y: ArrayLike, data: FitData) -> None:
        from sklearn.ensemble._base import _set_random_states

        random = None if self.random_state is None else check_random_state(self.random_state)
        train, held_out = data, data
        if self.validation_fraction is not None:
            if not self._finds_values:
                raise ValueError(
                    f"validation_fraction={self.validation_fraction!r} holds out rows on which to find "
                    f"values, but scoring={self.scoring!r} does not find any; expected "
                    "validation_fraction=None: set scoring='least_squares', or leave validation_fraction "
                    "out."
                )
            seed = check_random_state(random).randint(np.iinfo(np.int32).max)
            train, held_out = hold_out(data, self.validation_fraction, seed, "set validation_fraction=None")
        self.classes_ = np.unique(train.labels)
        if len(self.classes_) > MOST_GRADES:
            raise ValueError(
                f"y has {len(self.classes_)} different grades, each of which is learned for itself; expected "
                f"at most {MOST_GRADES}: join grades, or pass y to a regressor such as HistGBRTRegressor()."
            )
        rows, weights = _rows_of(X, train), self._routed("fit", sample_weight=train.weights)["estimator"]
        queries = train.query_of_row if train.qid_given else None
        jobs = []
        for event in self._events(train.labels):
            model = clone(self.estimator)
            if random is not None:
                _set_random_states(model, random)
            labels, ids = hand_queries(model, "fit", _with_index_of(y, event, train), queries)
            jobs.append(delayed(_fit_event)(model, rows, labels, weights | ids))
        self.estimators_, self._fitted_method = Parallel(n_jobs=self.n_jobs)(jobs), self.method
        self.values_ = self._values(X, held_out)

    @property
    def _learns_classes(self) -> bool:
        return self.method == "multiclass"

    def _events(self, labels: np.ndarray) -> Iterator[np.ndarray]:
        """Yield what each clone learns."""
        if self._learns_classes:
            if len(self.classes_) > 1:
                yield np.searchsorted(self.classes_, labels)  # grades may be fractions, classes may not
            return
        kind = np.int64 if is_classifier(self.estimator) else np.float64
        for grade in self.classes_[:-1]:
            yield (labels <= grade).astype(kind)

    @property
    def _finds_values(self) -> bool:
        return isinstance(self.scoring, str) and self.scoring == "least_squares"

    def _values(self, X: RowsLike, data: FitData) -> np.ndarray:
        """float64[n_grades]: the values of the grades, according to `scoring`."""
        grades = self.classes_
        if self._finds_values:
            return least_squares_values(
                self.predict_proba(_rows_of(X, data)), data.labels, grades, data.weights
            )
        if isinstance(self.scoring, str):
            return np.array(FORMULAS[self.scoring](grades))
        value_of = self.scoring if callable(self.scoring) else _reader(self.scoring)
        values = [value_of(grade) for grade in grades.tolist()]
        if not all(isinstance(value, Real) and math.isfinite(value) for value in values):
            raise ValueError(
                f"scoring gave the values {values} for the grades {grades.tolist()}; expected finite numbers."
            )
        return np.array(values, np.float64)

    @with_keywords
    def predict_proba(self, X: RowsLike) -> NDArray[np.float64]:
        """Return the probability of each grade.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_grades)
            The probabilities, with a column for each of `classes_`. They are at least 0, and a row sums to 1.
        """
        check_is_fitted(self)
        check_columns(self, X, reset=False)
        if self._fitted_method == "multiclass" and self.estimators_:
            return probabilities_by(self.estimators_[0], X, np.arange(len(self.classes_)))
        cumulative = np.empty((_num_samples(X), len(self.estimators_)))
        for column, model in enumerate(self.estimators_):
            cumulative[:, column] = _probability(model, X)
        return class_probabilities(cumulative)

    @with_keywords
    def predict(self, X: RowsLike) -> NDArray[np.float64]:
        """Score rows by the expected values of their grades.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            The scores. Rows with higher scores rank first.
        """
        probabilities = self.predict_proba(X)
        scores = np.zeros(len(probabilities))
        for probability, value in zip(probabilities.T, self.values_, strict=True):
            scores += probability * value  # the rounding of a dot product may depend on the row's position
        return scores


def _rows_of(X: RowsLike, data: FitData) -> Any:
    """The rows of `data` in internal order, as the type of matrix that the user passed."""
    return X if data.order is None else _safe_indexing(indexable(X)[0], data.order)


def _that_predict(model: Any) -> Iterator[Any]:
    """Yield the nested estimators whose predictions are taken as probabilities, and frozen ones."""
    frozen = isinstance(model, FrozenEstimator)
    if not hasattr(model, "predict") or (is_classifier(model) and not frozen):  # these use predict_proba
        return
    yield model
    for one in estimators_inside(model):
        yield from _that_predict(one)


def _with_index_of(y: Any, event: np.ndarray, data: FitData) -> Any:
    """The labels of an event, with the index of `y` if it holds queries, for estimators that need them."""
    if qid_of(y) is None:
        return event
    import pandas as pd

    return pd.Series(event, index=y.index if data.order is None else y.index[data.order])


def _fit_event(model: Any, rows: Any, event: Any, metadata: dict[str, Any]) -> Any:
    return model.fit(rows, event, **metadata)


def _probability(model: Any, X: RowsLike) -> np.ndarray:
    """The probability of the event for each row, according to the model."""
    if is_classifier(model):
        return model.predict_proba(X)[:, np.flatnonzero(model.classes_ == 1)[0]]
    return model.predict(X)


def _reader(table: Any) -> Callable[[Any], float]:
    """Return a function that looks up a grade in a table."""
    entries = by_key(table, "scoring")
    if not isinstance(entries, Mapping):
        entries = dict(enumerate(in_order(entries, "scoring")))

    def value_of(grade: Any) -> float:
        if grade not in entries:
            raise ValueError(
                f"scoring is a table without the grade {grade:g}; expected a value for each grade of y: a "
                "mapping of grades to values, or a sequence with the values of the grades 0, 1, 2, ..."
            )
        return entries[grade]

    return value_of
