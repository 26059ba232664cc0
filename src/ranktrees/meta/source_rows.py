"""Rows of another set that are like those of the target set, to learn from in addition to them.

Chapter 5 of Mohan, *An empirical analysis on point-wise machine learning techniques using regression trees
for web-search ranking*, 2010: a small *target* set is to be ranked, and there is a larger *source* set of
another kind (another market, another time, another way of labelling).
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _num_samples,
    check_is_fitted,
)

from ranktrees.estimators import HistGBRTRegressor
from ranktrees.estimators.ensemble_ranker import tags_of
from ranktrees.evaluation.clones import (
    clone_except,
    fitted_clone,
    folds_of_rows,
    require_weights_taken,
    weights_not_taken,
)
from ranktrees.evaluation.predictions import scores_by
from ranktrees.meta.base import RanksRows, RoutesMetadata
from ranktrees.meta.stacking import indexed, require_same_columns, stacked
from ranktrees.rows import (
    check_columns,
    find_query_of_rows,
    hand_queries,
    unchanged_on_failure,
    warn_of_order,
)
from ranktrees.rows.labels import check_labels, check_weights
from ranktrees.support.scikit_learn import available_if, validate_params

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.support.annotations import IdsLike, RowsLike

SELECTION = {
    "source_size": [Interval(RealNotInt, 0, 1, closed="right"), Interval(Integral, 1, None, closed="left")],
    "unit": [StrOptions({"row", "query"})],
    "classifier": [HasMethods(["fit", "predict"]), None],
    "cv": ["cv_object"],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
}


@validate_params(
    {
        "X_source": ["array-like", "sparse matrix"],
        "X_target": ["array-like", "sparse matrix"],
        "qid_source": ["array-like", None],
        **SELECTION,
    },
    prefer_skip_nested_validation=True,
)
def select_source_rows(
    X_source: RowsLike,
    X_target: RowsLike,
    *,
    qid_source: IdsLike | None = None,
    source_size: float = 0.5,
    unit: Literal["row", "query"] = "row",
    classifier: Any = None,
    cv: Any = 5,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Select the rows of a source set that are most like those of a target set.

    A classifier learns to tell target rows from source rows. The source rows are chosen to which it gives the
    highest probability of being target rows, or the queries whose rows have the highest mean probability. The
    classifier that judges a source row has not seen it: it is fitted to the other folds of the source set and
    to all target rows. Folds keep queries whole.

    Parameters
    ----------
    X_source : {array-like, sparse matrix, data frame} of shape (n_source_rows, n_features)
        The rows to choose from.
    X_target : {array-like, sparse matrix, data frame} of shape (n_target_rows, n_features)
        The rows that the chosen ones should be like, of the same kind and with the same columns.
    qid_source : array-like of shape (n_source_rows,), default=None
        The query id of each source row. An index level of `X_source` named "qid" may be used instead.
    source_size : float in (0, 1] or int, default=0.5
        The share or the number of source rows (or queries) to choose.
    unit : {"row", "query"}, default="row"
        Whether to choose single rows or whole queries. If rows are chosen, a query may lose rows with which
        its others would be compared.
    classifier : estimator, default=None
        The classifier. It is fitted to labels 0 (source) and 1 (target). Its ``predict_proba`` gives the
        probability, or its ``predict`` if it has no ``predict_proba``. If None, `HistGBRTRegressor` with
        ``loss="logistic"`` and 100 trees of 8 leaves, which weighs the two classes equally however many rows
        they have, and takes missing values and categories.
    cv : int, splitter or iterable, default=5
        The folds of the source set, as for `ModelFeatures`.
    random_state : int, RandomState or None, default=None
        The random state of the default classifier.
    n_jobs : int or None, default=None
        The number of classifiers that are fitted at the same time, through joblib.

    Returns
    -------
    rows : ndarray of int, shape (n_chosen,)
        The numbers of the chosen rows of `X_source`, in rising order. Among equals the first is chosen.
    probabilities : ndarray of float64, shape (n_source_rows,)
        The probability that each source row is a target row, according to the classifier. If the classes
        weigh the same, 1/2 means that it cannot tell.

    Raises
    ------
    ValueError
        If the two sets differ in kind or columns (category columns may differ in their levels, but not in the
        kind of the levels), if there are fewer rows (or queries) than requested, or if queries are to be
        chosen and there are no query ids.

    See Also
    --------
    WithSourceRows : Adds them in `fit`.

    References
    ----------
    Mohan, *An empirical analysis on point-wise machine learning techniques using regression trees for
    web-search ranking*, 2010, chapter 5. Bickel, Brückner, Scheffer, *Discriminative learning for differing
    training and test distributions*, ICML 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees import select_source_rows
    >>> rng = np.random.default_rng(0)
    >>> X_target = rng.normal(size=(200, 3))
    >>> near, far = rng.normal(size=(200, 3)), rng.normal(3, 1, size=(200, 3))
    >>> rows, probabilities = select_source_rows(np.concatenate([near, far]), X_target, random_state=0)
    >>> float((rows < 200).mean()) > 0.95
    True
    """
    X_source, X_target = indexed(X_source), indexed(X_target)
    require_same_columns(X_source, X_target, "X_target")
    n_rows = _num_samples(X_source)
    queries = find_query_of_rows(n_rows, {"qid_source": qid_source}, {"X_source": X_source})
    if unit == "query" and queries is None:
        raise ValueError(
            "unit='query' needs qid_source=: it chooses whole queries. Pass one id per row of X_source, or "
            "a pandas X_source whose index has a level named 'qid'."
        )
    if classifier is None:
        seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        classifier = HistGBRTRegressor(
            "logistic", balanced=True, max_iter=100, max_leaf_nodes=8, random_state=seed
        )
    folds = folds_of_rows(cv, X_source, None, queries, False)
    found = Parallel(n_jobs=n_jobs)(
        delayed(_target_probabilities)(classifier, X_source, X_target, train, test) for train, test in folds
    )
    probabilities = np.empty(n_rows)
    for (_, test), values in zip(folds, found, strict=True):
        probabilities[test] = values
    unit_of_row: Any = queries if unit == "query" else np.arange(n_rows)
    likeness = np.bincount(unit_of_row, probabilities) / np.bincount(unit_of_row)
    chosen = np.argsort(-likeness, kind="stable")[: _n_chosen(source_size, len(likeness), unit)]
    return np.flatnonzero(np.isin(unit_of_row, chosen)), probabilities


class WithSourceRows(RanksRows, RoutesMetadata, BaseEstimator):
    """An estimator that learns from its own rows and from those rows of another set that are like them.

    `fit` chooses rows of the source set by `select_source_rows`, and fits ``estimator`` to the rows that it
    is given and to the chosen ones. Queries of the two sets are never joined, even if they have the same ids.

    A step of a scikit-learn `Pipeline` cannot change the number of rows, nor their labels and query ids. So
    this is not a step but a wrapper around an estimator. A pipeline goes *inside* it. It then sees the rows
    of both sets as they are given, and its steps transform both. In a pipeline around this estimator, no step
    before it may change the columns, since source rows do not pass through such steps. Anything outside, such
    as cross-validation, splits target rows only: scores are those of target queries, and source rows are
    never scored.

    Parameters
    ----------
    estimator : estimator
        The estimator to fit: a ranker, any other estimator, or a pipeline.
    X_source : {array-like, sparse matrix, data frame} of shape (n_source_rows, n_features), default=None
        The source rows to choose from, of the same kind and with the same columns as ``X`` of `fit`. If None,
        no rows are added, for comparison.
    y_source : array-like of shape (n_source_rows,), default=None
        The labels of the source rows, on the same scale. A pandas Series whose index has a level named "qid"
        supplies their query ids as well.
    qid_source : array-like of shape (n_source_rows,), default=None
        The query id of each source row.
    source_size, unit, classifier, cv, random_state, n_jobs
        How rows are chosen, see `select_source_rows`.
    source_weight : float or "probability", default=1.0
        The weight of an added row, where rows of ``X`` weigh 1 or their ``sample_weight``. With
        "probability" it is the probability that the row is a target row.

    Attributes
    ----------
    estimator_ : estimator
        The fitted estimator.
    source_rows_ : ndarray of int
        The numbers of the rows of ``X_source`` that were added, in rising order.
    source_probabilities_ : ndarray of float64, shape (n_source_rows,)
        The probability that each source row is a target row.
    n_features_in_ : int
        The number of columns of ``X``.
    feature_names_in_ : ndarray of str
        The names of the columns of a data frame. Defined only if all names are strings.

    See Also
    --------
    select_source_rows : Only chooses them.
    ModelFeatures : Adds features, not rows.

    References
    ----------
    Mohan, *An empirical analysis on point-wise machine learning techniques using regression trees for
    web-search ranking*, 2010, chapter 5.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, WithSourceRows, make_ranking
    >>> X, y, qid = make_ranking(70, "web", n_features=20, random_state=0, return_X_y_qid=True)
    >>> source, target = qid >= 10, qid < 10
    >>> ranker = WithSourceRows(
    ...     LambdaMARTRanker(max_iter=20, random_state=0),
    ...     X[source],
    ...     y[source],
    ...     qid_source=qid[source],
    ...     source_size=20,
    ...     unit="query",
    ...     random_state=0,
    ... )
    >>> ranker = ranker.fit(X[target], y[target], qid=qid[target])
    >>> len(set(qid[source][ranker.source_rows_]))
    20
    >>> ranker.predict(X[target]).shape == y[target].shape
    True
    """

    __metadata_request__fit = {"qid": True, "groups": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True, "groups": True}  # noqa: RUF012
    _routes = {method: method for method in ("fit", "predict", "predict_proba", "score")}  # noqa: RUF012
    _parameter_constraints = {  # noqa: RUF012
        "estimator": [HasMethods(["fit", "predict"])],
        "X_source": ["array-like", "sparse matrix", None],
        "y_source": ["array-like", None],
        "qid_source": ["array-like", None],
        **SELECTION,
        "source_weight": [Interval(Real, 0, None, closed="neither"), StrOptions({"probability"})],
    }

    def __init__(
        self,
        estimator: Any,
        X_source: RowsLike = None,
        y_source: ArrayLike | None = None,
        *,
        qid_source: IdsLike | None = None,
        source_size: float = 0.5,
        unit: Literal["row", "query"] = "row",
        source_weight: float | Literal["probability"] = 1.0,
        classifier: Any = None,
        cv: Any = 5,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.X_source = X_source
        self.y_source = y_source
        self.qid_source = qid_source
        self.source_size = source_size
        self.unit = unit
        self.source_weight = source_weight
        self.classifier = classifier
        self.cv = cv
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_clone__(self) -> Any:
        return clone_except(self, ["X_source", "y_source", "qid_source"])

    def __sklearn_tags__(self) -> Any:
        tags, model = super().__sklearn_tags__(), tags_of(self.estimator)
        for name in ("estimator_type", "input_tags", "target_tags", "classifier_tags", "regressor_tags"):
            setattr(tags, name, getattr(model, name))
        return tags

    def fit(
        self,
        X: RowsLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        qid: IdsLike | None = None,
        groups: IdsLike | None = None,
        group: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Choose rows of the source set, and fit the estimator to them and to the target rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            The target rows.
        y : array-like of shape (n_rows,)
            Labels. A pandas Series whose index has a level named "qid" supplies the query ids as well.
        sample_weight : array-like of shape (n_rows,), default=None
            The weights of the rows.
        qid, groups : array-like of shape (n_rows,), default=None
            The query id of each target row, in any order, under either name. Source rows have ids of their
            own.
        group : array-like of shape (n_queries,), default=None
            The sizes of the queries in row order, as LightGBM takes them.
        **params : dict
            Further arguments, passed on to the ``fit`` of the estimator as they are. With metadata routing
            enabled, it is passed those that it requests, as with the weights.

        Returns
        -------
        self : WithSourceRows
            The fitted estimator.

        Raises
        ------
        ValueError
            If one of the two sets has query ids and the other has none, if the sets differ in kind or
            columns, if there is not one label or weight for each row, or if the estimator is frozen.
        """
        self._validate_params()
        if isinstance(self.estimator, FrozenEstimator):
            raise ValueError(
                f"estimator={self.estimator!r} is frozen and does not learn from target or source rows; "
                "expected an estimator that is fitted to both: pass the one that it holds."
            )
        with unchanged_on_failure(self):
            X = indexed(X)
            check_columns(self, X, reset=True)
            warn_of_order({"X": X, "sample_weight": sample_weight})
            n_rows = _num_samples(X)
            queries = find_query_of_rows(n_rows, {"qid": qid, "groups": groups}, {"y": y, "X": X}, group)
            labels = check_labels(y, n_rows, "y", "X", self)
            n_queries = -1 if queries is None else queries.max() + 1
            sample_weight = check_weights(sample_weight, n_rows, n_queries, "sample_weight")
            if self.X_source is None:
                self.source_rows_, self.source_probabilities_ = np.empty(0, np.intp), np.empty(0)
                y = y if np.asarray(y).ndim == 1 else labels  # keeps an index, and warns of a column once
            else:
                X, y, sample_weight, queries = self._with_source(X, labels, sample_weight, queries)
            routed = self._routed("fit", sample_weight=sample_weight, **params)["estimator"]
            if self.X_source is not None and self.source_weight != 1.0 and "sample_weight" not in routed:
                raise weights_not_taken(self.estimator, "source_weight")
            self.estimator_ = fitted_clone(
                self.estimator, X, y, routed.pop("sample_weight", None), queries, **routed
            )
        return self

    def _with_source(
        self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None, queries: np.ndarray | None
    ) -> tuple[Any, Any, Any, np.ndarray | None]:
        """Return rows, labels, weights and query numbers of the target set and the chosen source rows."""
        X_source, y_source = indexed(self.X_source), self.y_source
        if y_source is None:
            raise ValueError("y_source is None but X_source is given; expected one label per source row.")
        require_same_columns(X_source, X, "X")
        n_rows, n_source_rows = _num_samples(X), _num_samples(X_source)
        queries_source: Any = find_query_of_rows(
            n_source_rows,
            {"qid_source": self.qid_source},
            {"y_source": y_source, "X_source": X_source},
        )
        y_source = check_labels(y_source, n_source_rows, "y_source", "X_source", self)
        if (queries is None) != (queries_source is None):
            lacking, other = ("X", "source") if queries is None else ("X_source", "target")
            raise ValueError(
                f"The rows of {lacking} have no query ids, but those of the {other} set do; expected ids "
                "for both or for neither: pass qid= and qid_source=."
            )
        if sample_weight is None and self.source_weight != 1.0:
            require_weights_taken(self.estimator, "source_weight")
        rows, probabilities = select_source_rows(
            X_source,
            X,
            qid_source=queries_source,
            **{name: getattr(self, name) for name in SELECTION},
        )
        self.source_rows_, self.source_probabilities_ = rows, probabilities
        if sample_weight is not None or self.source_weight != 1.0:
            weight = np.ones(n_rows) if sample_weight is None else sample_weight
            added = probabilities if self.source_weight == "probability" else self.source_weight
            added = np.broadcast_to(added, probabilities.shape)[rows]
            sample_weight = np.concatenate([weight, added])
        if queries is not None:
            queries = np.concatenate([queries, queries.max() + 1 + queries_source[rows]])
        y = np.concatenate([y, y_source[rows]])
        return stacked(X, _safe_indexing(X_source, rows)), y, sample_weight, queries

    def predict(self, X: RowsLike, **params: Any) -> NDArray[Any]:
        """Return the predictions of the fitted estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Rows.
        **params : dict
            Further arguments, passed on to the ``predict`` of the estimator.

        Returns
        -------
        ndarray of shape (n_rows,)
            The predictions.
        """
        return self._checked(X).predict(X, **self._routed("predict", **params)["estimator"])

    @available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), "predict_proba"))
    def predict_proba(self, X: RowsLike, **params: Any) -> NDArray[np.float64]:
        """Return the class probabilities of the fitted estimator, if it has any.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Rows.
        **params : dict
            Further arguments, passed on to the ``predict_proba`` of the estimator.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The probabilities.
        """
        return self._checked(X).predict_proba(X, **self._routed("predict_proba", **params)["estimator"])

    def _scores_itself(self) -> bool:
        model = getattr(self, "estimator_", self.estimator)
        if not hasattr(model, "score"):
            raise AttributeError(
                f"{type(model).__name__} has no score method; expected an estimator that has one: call a "
                "measure on its predictions, as in NDCG(y, model.predict(X), qid=qid), or use query_scorer "
                "in searches."
            )
        return True

    @available_if(_scores_itself)
    def score(
        self,
        X: RowsLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        qid: IdsLike | None = None,
        groups: IdsLike | None = None,
    ) -> float:
        """Return the score of the fitted estimator on the given rows. The source set has no part in it.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Rows.
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like of shape (n_rows,), default=None
            The weights of the rows.
        qid, groups : array-like of shape (n_rows,), default=None
            The query id of each row, under either name.

        Returns
        -------
        score : float
            The score.
        """
        model = self._checked(X)
        queries = find_query_of_rows(_num_samples(X), {"qid": qid, "groups": groups}, {"y": y, "X": X})
        y, ids = hand_queries(model, "score", y, queries)
        weights = self._routed("score", sample_weight=sample_weight)["estimator"]
        return model.score(X, y, **weights, **ids)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes of the fitted estimator, if it has any."""
        return self.estimator_.classes_

    def _checked(self, X: RowsLike) -> Any:
        check_is_fitted(self)
        check_columns(self, X, reset=False)
        return self.estimator_


def _target_probabilities(
    classifier: Any, X_source: RowsLike, X_target: RowsLike, train: np.ndarray, test: np.ndarray
) -> np.ndarray:
    X = stacked(_safe_indexing(X_source, train), X_target)
    is_target = np.repeat([0, 1], [len(train), _num_samples(X_target)])
    model, rows = clone(classifier).fit(X, is_target), _safe_indexing(X_source, test)
    has_probabilities = hasattr(model, "predict_proba")
    found = model.predict_proba(rows)[:, 1] if has_probabilities else scores_by(model, rows, "predict")
    if not ((found >= 0) & (found <= 1)).all():
        raise ValueError(
            f"classifier={classifier!r} gave {found.min():g} to {found.max():g}; expected probabilities: "
            "use a classifier with predict_proba."
        )
    return found


def _n_chosen(size: float, n: int, unit: str) -> int:
    if isinstance(size, Integral) and size > n:
        raise ValueError(
            f"source_size={size} is more than there are; expected at most {n}, with unit={unit!r}, or a "
            "share."
        )
    return int(size) if isinstance(size, Integral) else max(1, round(size * n))
