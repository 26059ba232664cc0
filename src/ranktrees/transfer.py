"""Transfer: what a model says as features of the next, and rows of another set that are like ours.

Both are chapter 5 of Mohan, *An empirical analysis on pointwise machine learning techniques using regression
trees for web-search ranking*, 2010: a small *target* set is to be ranked, and there is a larger *source* set
of another kind (another market, another time, another way of labelling).
"""

from __future__ import annotations

from numbers import Integral, Real

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions, validate_params
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import (
    _check_feature_names_in,
    _num_samples,
    check_consistent_length,
    check_is_fitted,
)

from ranktrees.estimators import HistGBRTRegressor
from ranktrees.fitted import tags_of
from ranktrees.meta import asked_of_folds, probabilities_by, scores_by
from ranktrees.model_selection import fitted_clone, folds_of_rows, said_out_of_fold
from ranktrees.validation import (
    check_columns,
    find_queries,
    hand_queries,
    is_fitted,
    query_of_rows,
    unchanged_on_failure,
)
from ranktrees.validation.frames import frame_columns, is_category, kind_of, levels_of

__all__ = ["ModelFeatures", "WithSourceRows", "select_source_rows"]

ADDED = ("score", "probabilities", "cumulative")

SELECTION = {
    "source_size": [Interval(RealNotInt, 0, 1, closed="right"), Interval(Integral, 1, None, closed="left")],
    "unit": [StrOptions({"row", "query"})],
    "classifier": [HasMethods(["fit", "predict"]), None],
    "cv": ["cv_object"],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
}


class ModelFeatures(MetaEstimatorMixin, TransformerMixin, BaseEstimator):
    r"""What a model says about a row, as features of the row.

    It adds the model's score :math:`Q`, its class probabilities :math:`P(y = c)` and their cumulative sums
    :math:`P(y \le c)`: so a ranker of a small set can use what a model of a large one knows.

    With ``cv="prefit"`` a fitted ``estimator`` is used as it is. Otherwise it is fitted to the rows that are
    given, and then a row must not be told by a model that has seen its label: `fit_transform` gives each
    training row what a model fitted without its fold says, and folds keep queries whole. `transform` uses a
    model fitted to all rows. This is what scikit-learn's `StackingRegressor` does. In a `Pipeline`, which
    calls `fit_transform` in its `fit`, the next step learns from the former and predicts from the latter.

    Parameters
    ----------
    estimator : estimator
        The model: a ranker, a regressor or a classifier; fitted with ``cv="prefit"``, else not fitted.
    add : {"score", "probabilities", "cumulative"} or a sequence of them, default="score"
        "score" is one feature: what ``estimator.predict`` says, which must be a number; of a classifier of
        two classes its ``decision_function``, where it has one, or the probability of the second.
        "probabilities" are as many as there are classes, "cumulative" one less, as :math:`P(y \le c)` is 1
        for the last class; both need ``predict_proba`` and ``classes_``.
    keep : bool, default=True
        Whether the features of the row stay in front of those added.
    prefix : str or None, default=None
        What names of added features begin with; None is the name of the estimator's class in lower case.
    cv : int, splitter, iterable or "prefit", default=5
        The folds of `fit_transform`. An int says how many: of whole queries, by `QueryKFold`; of rows, by
        scikit-learn's `KFold` (`StratifiedKFold` for a classifier), where there are no query ids. "prefit":
        the estimator is fitted, and stays so in clones of this transformer, thus in searches and
        cross-validation.
    n_jobs : int or None, default=None
        Models of `fit_transform` fitted at the same time, through joblib.

    Attributes
    ----------
    estimator_ : estimator
        The model: the one given, or one fitted to all rows.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    sklearn.ensemble.StackingRegressor : Fits a last regressor on what several others say.
    WithSourceRows : Adds rows of another set, not features.

    References
    ----------
    Mohan, *An empirical analysis on pointwise machine learning techniques using regression trees for
    web-search ranking*, 2010, chapter 5. Wolpert, *Stacked generalization*, Neural Networks 1992.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from ranktrees import LambdaMARTRanker, ModelFeatures, RandomForestRanker, make_ranking
    >>> X, y, qid = make_ranking(60, n_features=10, random_state=0, return_X_y_qid=True)
    >>> forest = RandomForestRanker(10, random_state=0)
    >>> features = ModelFeatures(forest)
    >>> features.fit_transform(X, y, qid=qid).shape
    (3000, 11)
    >>> features.get_feature_names_out()[-2:]
    array(['x9', 'randomforestranker_score'], dtype=object)
    >>> pipeline = make_pipeline(ModelFeatures(forest), LambdaMARTRanker(max_iter=20, random_state=0))
    >>> ids = {"modelfeatures__qid": qid, "lambdamartranker__qid": qid}
    >>> pipeline.fit(X, y, **ids).predict(X).shape
    (3000,)
    """

    __metadata_request__fit = {"qid": True, "groups": True}  # noqa: RUF012
    _parameter_constraints = {  # noqa: RUF012
        "estimator": [HasMethods(["predict"])],
        "add": [StrOptions(set(ADDED)), list, tuple],
        "keep": ["boolean"],
        "prefix": [str, None],
        "cv": ["cv_object", StrOptions({"prefit"})],
        "n_jobs": [Integral, None],
    }

    def __init__(self, estimator, *, add="score", keep=True, prefix=None, cv=5, n_jobs=None):
        self.estimator = estimator
        self.add = add
        self.keep = keep
        self.prefix = prefix
        self.cv = cv
        self.n_jobs = n_jobs

    def __sklearn_clone__(self):
        twin = super().__sklearn_clone__()
        if self._is_prefit:
            twin.estimator = self.estimator
        return twin

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        model = tags_of(self.estimator)
        tags.input_tags, tags.target_tags = model.input_tags, model.target_tags
        tags.target_tags.required = not self._is_prefit
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X, y=None, sample_weight=None, *, qid=None, groups=None):
        """Fit the model to all rows, unless it is fitted already.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Whatever the estimator takes.
        y : array-like of shape (n_rows,), default=None
            Labels. A pandas Series whose index has a level named "qid" brings the query ids along. Not looked
            at with ``cv="prefit"``.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights, for the estimator.
        qid, groups : array-like of shape (n_rows,), default=None
            The query of each row, in any order; two names for the same thing.

        Returns
        -------
        self : ModelFeatures

        Raises
        ------
        ValueError
            If the estimator has no probabilities and they are to be added; if it is fitted and ``cv`` does
            not say so; if a feature of `X` has the name of one that is added.
        NotFittedError
            If it is not and ``cv`` says so.
        """
        self._validate_params()
        with unchanged_on_failure(self):
            X = _indexed(X)
            check_columns(self, X, reset=True)
            self._fit(X, y, sample_weight, self._queries(X, y, qid, groups))
        return self

    def fit_transform(self, X, y=None, sample_weight=None, *, qid=None, groups=None):
        """Fit the model, and add to each row what a model says that has not seen it.

        Parameters
        ----------
        X, y, sample_weight, qid, groups
            As for `fit`.

        Returns
        -------
        X : {ndarray, sparse matrix, data frame} of shape (n_rows, n_features_out)
            As of `transform`. With ``cv="prefit"`` the same as ``fit(X).transform(X)``.
        """
        self._validate_params()
        with unchanged_on_failure(self):
            if self._is_prefit:
                return self.fit(X, y, sample_weight, qid=qid, groups=groups).transform(X)
            X = _indexed(X)
            check_columns(self, X, reset=True)
            queries = self._queries(X, y, qid, groups)
            self._fit(X, y, sample_weight, queries)
            folds = folds_of_rows(
                self.cv, X, y, queries, tags_of(self.estimator).estimator_type == "classifier"
            )
            rows = X, y, sample_weight, queries
            [added] = said_out_of_fold([(self.estimator, self._said_by)], *rows, folds, self.n_jobs)
            return self._beside(X, added)

    def transform(self, X):
        """Add what the model says.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)

        Returns
        -------
        X : {ndarray, sparse matrix, data frame} of shape (n_rows, n_features_out)
            Sparse rows stay sparse, a data frame gets more columns and keeps its index, float32 stays
            float32. Without ``keep`` only the added features; a sparse matrix then becomes an array.
        """
        check_is_fitted(self)
        X = _indexed(X)
        check_columns(self, X, reset=False)
        return self._beside(X, self._said_by(self.estimator_, X))

    def get_feature_names_out(self, input_features=None):
        """The names of the features that come out.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            The names of those that go in; None are those of `fit`, or ``x0, x1, ...``.

        Returns
        -------
        ndarray of str
            Added ones are called ``<prefix>_score``, ``<prefix>_probability_<class>`` and
            ``<prefix>_cumulative_<class>``.

        Raises
        ------
        ValueError
            If a feature that goes in has such a name.
        """
        check_is_fitted(self)
        return self._names(self._wanted(), input_features)

    def _names(self, wanted, input_features=None):
        """The names that go in, and those of what is ``wanted``; all but "score" need the fitted model."""
        names = list(_check_feature_names_in(self, input_features)) if self.keep else []
        prefix = type(self.estimator).__name__.lower() if self.prefix is None else self.prefix
        for what in wanted:
            if what == "score":
                added = [f"{prefix}_score"]
            elif what == "probabilities":
                added = [f"{prefix}_probability_{_spelt(label)}" for label in self.estimator_.classes_]
            else:
                added = [f"{prefix}_cumulative_{_spelt(label)}" for label in self.estimator_.classes_[:-1]]
            if taken := set(names) & set(added):
                raise ValueError(
                    f"{sorted(taken)[0]!r} is already the name of a feature of X; expected new names: "
                    "pass another prefix=."
                )
            names += added
        return np.array(names, object)

    @property
    def _is_prefit(self):
        return isinstance(self.cv, str) and self.cv == "prefit"

    def _wanted(self):
        wanted = (self.add,) if isinstance(self.add, str) else tuple(self.add)
        if not wanted or len(set(wanted)) < len(wanted) or not set(wanted) <= set(ADDED):
            raise ValueError(f"add={self.add!r}; expected one or more of {', '.join(ADDED)}, each once.")
        return wanted

    def _queries(self, X, y, qid, groups):
        return _queries(_num_samples(X), {"qid": qid, "groups": groups}, {"y": y, "X": X})

    def _fit(self, X, y, sample_weight, queries):
        wanted = self._wanted()
        if set(wanted) != {"score"} and not hasattr(self.estimator, "predict_proba"):
            raise ValueError(
                f"add={self.add!r} needs class probabilities, and {type(self.estimator).__name__} has no "
                'predict_proba; expected a classifier or an ordinal ranker: pass one, or add="score".'
            )
        name, fitted = type(self.estimator).__name__, is_fitted(self.estimator)
        if self._is_prefit and not fitted:
            raise NotFittedError(
                f"cv='prefit' says that {name} is fitted, and it is not: fit it, or pass cv=5."
            )
        if fitted and not self._is_prefit:
            raise ValueError(
                f"{name} is fitted already, and cv={self.cv!r} would fit it anew; expected one or the other: "
                "pass cv='prefit' to use it as it is, or clone(estimator) to have it fitted."
            )
        self._names(set(wanted) & {"score"})
        self.estimator_ = (
            self.estimator if fitted else fitted_clone(self.estimator, X, y, sample_weight, queries)
        )
        self._names(wanted)

    def _said_by(self, model, X):
        """float64[n_rows, n_added]"""
        said = []
        wanted = self._wanted()
        if "score" in wanted:
            score = scores_by(model, X, **asked_of_folds(self.estimator_))
        if set(wanted) != {"score"}:
            probabilities = probabilities_by(model, X, self.estimator_.classes_)
        for what in wanted:
            if what == "score":
                said.append(score[:, None])
            elif what == "probabilities":
                said.append(probabilities)
            else:
                said.append(np.cumsum(probabilities, axis=1)[:, :-1])
        return np.concatenate(said, axis=1)

    def _beside(self, X, added):
        """``added`` on the right of ``X``, in the kind of ``X``; alone without ``keep``."""
        names = self.get_feature_names_out()
        columns = dict(zip(names[-added.shape[1] :], added.T, strict=True))
        kind = _kind(X)
        if kind == "pandas":
            frame = (X if self.keep else X.iloc[:, :0]).assign(**columns)
            return frame.set_axis(names, axis=1)
        if kind == "polars":
            frame = type(X)(columns)
            return X.hstack(frame) if self.keep else frame
        if kind == "Arrow":
            frame = X if self.keep else X.select([])
            for name, values in columns.items():
                frame = frame.append_column(name, [values])
            return frame
        dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        added = added.astype(dtype)
        if not self.keep:
            return added
        if kind == "sparse":
            return sp.hstack([X, sp.csr_matrix(added)], format="csr")
        return np.column_stack([np.asarray(X), added])


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
    X_source,
    X_target,
    *,
    qid_source=None,
    source_size=0.5,
    unit="row",
    classifier=None,
    cv=5,
    random_state=None,
    n_jobs=None,
):
    """The rows of a source set that are most like those of a target set.

    A classifier learns to tell target rows from source rows. Those source rows are chosen that it holds for
    target rows with the highest probability, or those queries whose rows it does on average. The classifier
    that judges a source row has not seen it: it is fitted to the other folds of the source set, and to all
    target rows. Folds keep queries whole.

    Parameters
    ----------
    X_source : {array-like, sparse matrix, data frame} of shape (n_source_rows, n_features)
        The rows to choose from.
    X_target : {array-like, sparse matrix, data frame} of shape (n_target_rows, n_features)
        The rows they should be like, of the same kind, with the same columns.
    qid_source : array-like of shape (n_source_rows,), default=None
        The query of each source row. An index level of `X_source` named "qid" will do, too.
    source_size : float in (0, 1] or int, default=0.5
        The share or the number of source rows (or queries) to choose.
    unit : {"row", "query"}, default="row"
        What is chosen: single rows, or whole queries. With rows, a query may lose those it would be compared
        with.
    classifier : estimator, default=None
        It is fitted to labels 0 (source) and 1 (target), and its ``predict_proba`` is the probability; its
        ``predict``, if it has no ``predict_proba``. None is `HistGBRTRegressor` with ``loss="logistic"``
        and 100 trees of 8 leaves, whose two classes weigh the same however many rows they have, and which
        takes missing values and categories.
    cv : int, splitter or iterable, default=5
        The folds of the source set, as for `ModelFeatures`.
    random_state : int, RandomState or None, default=None
        Of the classifier that is taken by default.
    n_jobs : int or None, default=None
        Classifiers fitted at the same time, through joblib.

    Returns
    -------
    rows : ndarray of int, shape (n_chosen,)
        The numbers of the chosen rows of `X_source`, rising. Of equals the first is chosen.
    probabilities : ndarray of float64, shape (n_source_rows,)
        How probably each source row is a target row, as far as the classifier can tell. With classes that
        weigh the same, 1/2 says that it cannot.

    Raises
    ------
    ValueError
        If the two sets differ in kind or columns (category columns may differ in their levels, not in the
        kind of them), if there are fewer rows (or queries) than asked for, or if queries are to be chosen and
        there are no query ids.

    See Also
    --------
    WithSourceRows : Adds them in `fit`.

    References
    ----------
    Mohan, *An empirical analysis on pointwise machine learning techniques using regression trees for
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
    X_source, X_target = _indexed(X_source), _indexed(X_target)
    _require_same_columns(X_source, X_target, "X_target")
    n_rows = _num_samples(X_source)
    queries = _queries(n_rows, {"qid_source": qid_source}, {"X_source": X_source})
    if unit == "query" and queries is None:
        raise ValueError(
            "unit='query' needs qid_source=: whole queries are to be chosen. Pass one id per row of "
            "X_source, or a pandas X_source whose index has a level named 'qid'."
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
    unit_of_row = queries if unit == "query" else np.arange(n_rows)
    likeness = np.bincount(unit_of_row, probabilities) / np.bincount(unit_of_row)
    chosen = np.argsort(-likeness, kind="stable")[: _n_chosen(source_size, len(likeness), unit)]
    return np.flatnonzero(np.isin(unit_of_row, chosen)), probabilities


class WithSourceRows(MetaEstimatorMixin, BaseEstimator):
    """An estimator that learns from its own rows and from those rows of another set that are like them.

    `fit` chooses rows of the source set by `select_source_rows` and fits ``estimator`` to the rows it is
    given and these. Queries of the two sets are never joined, even if they have the same ids.

    A step of a scikit-learn `Pipeline` cannot change the number of rows, nor their labels and query ids. So
    this is no step but a frame around an estimator: a pipeline goes *inside*, and then sees the rows of both
    sets as they are given, and its steps transform both. In front of it, in a pipeline, must not be anything
    that changes columns, since source rows do not pass there. What is outside, such as cross-validation, cuts
    target rows only: scores are of target queries, and source rows are never scored.

    Parameters
    ----------
    estimator : estimator
        What is fitted: a ranker, any other estimator, or a pipeline.
    X_source : {array-like, sparse matrix, data frame} of shape (n_source_rows, n_features), default=None
        The rows to choose from, of the same kind and with the same columns as ``X`` of `fit`. None adds no
        rows, to compare with.
    y_source : array-like of shape (n_source_rows,), default=None
        Their labels, on the same scale. A pandas Series whose index has a level named "qid" brings their
        query ids along.
    qid_source : array-like of shape (n_source_rows,), default=None
        The query of each of them.
    source_size, unit, classifier, cv, random_state, n_jobs
        How rows are chosen, see `select_source_rows`.
    source_weight : float or "probability", default=1.0
        The weight of an added row, beside those of ``X``, which weigh 1 or their ``sample_weight``.
        "probability" is how probably it is a target row.

    Attributes
    ----------
    estimator_ : estimator
        Fitted.
    source_rows_ : ndarray of int
        The numbers of the rows of ``X_source`` that were added, rising.
    source_probabilities_ : ndarray of float64, shape (n_source_rows,)
        How probably each source row is a target row.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    select_source_rows : Only chooses them.
    ModelFeatures : Adds features, not rows.

    References
    ----------
    Mohan, *An empirical analysis on pointwise machine learning techniques using regression trees for
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
        estimator,
        X_source=None,
        y_source=None,
        *,
        qid_source=None,
        source_size=0.5,
        unit="row",
        source_weight=1.0,
        classifier=None,
        cv=5,
        random_state=None,
        n_jobs=None,
    ):
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

    def __sklearn_tags__(self):
        tags, model = super().__sklearn_tags__(), tags_of(self.estimator)
        for name in ("estimator_type", "input_tags", "target_tags", "classifier_tags", "regressor_tags"):
            setattr(tags, name, getattr(model, name))
        return tags

    def fit(self, X, y, sample_weight=None, *, qid=None, groups=None, **params):
        """Choose rows of the source set, and fit the estimator to all.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            The target rows.
        y : array-like of shape (n_rows,)
            Labels. A pandas Series whose index has a level named "qid" brings the query ids along.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights.
        qid, groups : array-like of shape (n_rows,), default=None
            The query of each row, in any order; two names for the same thing. They say nothing about source
            rows.
        **params : dict
            For the estimator's ``fit``, as they are.

        Returns
        -------
        self : WithSourceRows

        Raises
        ------
        ValueError
            If one of the two sets has query ids and the other has none, or if they differ in kind or columns;
            or if the estimator is frozen.
        """
        self._validate_params()
        if isinstance(self.estimator, FrozenEstimator):
            raise ValueError(
                f"estimator={self.estimator!r} is frozen and learns of no rows, target or source; "
                "expected one that is fitted to both: pass what it holds."
            )
        with unchanged_on_failure(self):
            X = _indexed(X)
            check_columns(self, X, reset=True)
            queries = _queries(_num_samples(X), {"qid": qid, "groups": groups}, {"y": y, "X": X})
            if self.X_source is None:
                self.source_rows_, self.source_probabilities_ = np.empty(0, np.intp), np.empty(0)
            else:
                X, y, sample_weight, queries = self._with_source(X, y, sample_weight, queries)
            self.estimator_ = fitted_clone(self.estimator, X, y, sample_weight, queries, **params)
        return self

    def _with_source(self, X, y, sample_weight, queries):
        """The rows, labels, weights and query numbers of the target set and of the chosen source rows."""
        X_source, y_source = _indexed(self.X_source), self.y_source
        if y_source is None:
            raise ValueError("y_source is None but X_source is given; expected one label per source row.")
        check_consistent_length(X, y, sample_weight)
        check_consistent_length(X_source, y_source)
        _require_same_columns(X_source, X, "X")
        queries_source = _queries(
            _num_samples(X_source),
            {"qid_source": self.qid_source},
            {"y_source": y_source, "X_source": X_source},
        )
        if (queries is None) != (queries_source is None):
            lacking, other = ("X", "source") if queries is None else ("X_source", "target")
            raise ValueError(
                f"The rows of {lacking} have no query ids but those of the {other} set do; expected ids for "
                "both or for none: pass qid= and qid_source=."
            )
        rows, probabilities = select_source_rows(
            X_source,
            X,
            qid_source=queries_source,
            **{name: getattr(self, name) for name in SELECTION},
        )
        self.source_rows_, self.source_probabilities_ = rows, probabilities
        n_rows = _num_samples(X)
        if sample_weight is not None or self.source_weight != 1.0:
            weight = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight)
            added = probabilities if self.source_weight == "probability" else self.source_weight
            added = np.broadcast_to(added, probabilities.shape)[rows]
            sample_weight = np.concatenate([weight, added])
        if queries is not None:
            queries = np.concatenate([queries, queries.max() + 1 + queries_source[rows]])
        y = np.concatenate([np.asarray(y), np.asarray(y_source)[rows]])
        return _stacked(X, _safe_indexing(X_source, rows)), y, sample_weight, queries

    def predict(self, X, **params):
        """What the fitted estimator predicts.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        **params : dict
            For the estimator's ``predict``.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return self._checked(X).predict(X, **params)

    @available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), "predict_proba"))
    def predict_proba(self, X, **params):
        """The class probabilities of the fitted estimator, if it has any.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        **params : dict
            For the estimator's ``predict_proba``.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        return self._checked(X).predict_proba(X, **params)

    def score(self, X, y, sample_weight=None, *, qid=None, groups=None):
        """The score of the fitted estimator on these rows; the source set has no part in it.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Labels.
        sample_weight : array-like of shape (n_rows,), default=None
        qid, groups : array-like of shape (n_rows,), default=None
            The query of each row.

        Returns
        -------
        score : float
        """
        model = self._checked(X)
        queries = _queries(_num_samples(X), {"qid": qid, "groups": groups}, {"y": y, "X": X})
        y, ids = hand_queries(model, "score", y, queries)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return model.score(X, y, **weights, **ids)

    @property
    def classes_(self):
        """The classes of the fitted estimator, if it has any."""
        return self.estimator_.classes_

    def _checked(self, X):
        check_is_fitted(self)
        check_columns(self, X, reset=False)
        return self.estimator_


# ---------------------------------------------------------------------------------------- fitting and folds


def _queries(n_rows, ids, holders):
    """The number of the query of each row; None where there are no ids."""
    queries = find_queries(n_rows, ids, holders)
    return None if queries is None else query_of_rows(*queries)


def _spelt(label):
    """A class as a name shows it: 2, not 2.0."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)


def _target_probabilities(classifier, X_source, X_target, train, test):
    X = _stacked(_safe_indexing(X_source, train), X_target)
    is_target = np.repeat([0, 1], [len(train), _num_samples(X_target)])
    model, rows = clone(classifier).fit(X, is_target), _safe_indexing(X_source, test)
    has_probabilities = hasattr(model, "predict_proba")
    found = model.predict_proba(rows)[:, 1] if has_probabilities else scores_by(model, rows, "predict")
    if not ((found >= 0) & (found <= 1)).all():
        raise ValueError(
            f"classifier={classifier!r} gave {found.min():g} to {found.max():g}; expected probabilities: "
            "take a classifier with predict_proba."
        )
    return found


def _n_chosen(size, n, unit):
    if isinstance(size, Integral) and size > n:
        raise ValueError(
            f"source_size={size} is more than there are; expected at most {n}, with unit={unit!r}, or a "
            "share."
        )
    return int(size) if isinstance(size, Integral) else max(1, round(size * n))


# -------------------------------------------------------------------------------------------- kinds of rows


def _indexed(X):
    """Rows that can be taken by number."""
    return np.asarray(X) if isinstance(X, list | tuple) else indexable(X)[0]


def _kind(X):
    if sp.issparse(X):
        return "sparse"
    if hasattr(X, "iloc"):
        return "pandas"
    if hasattr(X, "get_columns"):
        return "polars"
    return "Arrow" if hasattr(X, "column_names") else "array"


def _require_same_columns(X_source, X, name):
    if _kind(X_source) != _kind(X):
        raise ValueError(
            f"X_source is of kind {_kind(X_source)}, {name} of kind {_kind(X)}; expected the same kind of "
            "rows: convert one of them."
        )
    columns = type(name, (BaseEstimator,), {})()  # as messages call what has the columns
    check_columns(columns, X, reset=True)
    try:
        check_columns(columns, X_source, reset=False)
    except ValueError as error:
        raise ValueError(f"X_source does not match {name}: {error}") from error
    pairs = zip(frame_columns(X_source) or [], frame_columns(X) or [], strict=True)
    for (column, theirs), (_, ours) in pairs:
        if not (is_category(theirs) or is_category(ours)):
            continue
        kinds_source, kinds = _kinds(theirs), _kinds(ours)
        if not (set(kinds_source) <= set(kinds) or set(kinds) <= set(kinds_source)):
            raise ValueError(
                f"column {column!r} is {' '.join(kinds_source)} in X_source, {' '.join(kinds)} in {name}; "
                f"expected a category column in both or in neither, with levels of one kind: {_CONVERT}"
            )
    try:
        _stacked(*(_safe_indexing(rows, np.arange(0)) for rows in (X_source, X)))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X_source and {name} have columns that do not go together: {error}; expected the same types in "
            f"both: {_CONVERT}"
        ) from error


_CONVERT = "convert one of them, by .astype in pandas or .cast in polars and Arrow."


def _kinds(column):
    """What a column must not be in one set only; a column without a dtype goes with any."""
    if is_category(column):
        kinds = {kind_of(level) for level in levels_of(column)}
        return ["a category", *(f"of {kind}" for kind in sorted(kinds))]
    dtype = str(getattr(column, "dtype", getattr(column, "type", None)))
    return [] if dtype.lower() == "null" else [f"of dtype {dtype}"]


def _stacked(above, below):
    """The rows of two sets of one kind; an index is left behind, with the query ids that may ride in it."""
    kind = _kind(above)
    if kind == "sparse":
        return sp.vstack([above, below], format="csr")
    if kind == "pandas":
        import pandas as pd

        levels = {
            name: pd.CategoricalDtype(_joined(above[name].cat.categories, below[name].cat.categories))
            for name in above.columns
            if is_category(above[name]) and is_category(below[name])
        }
        return pd.concat([above.astype(levels), below.astype(levels)], ignore_index=True)
    if kind == "polars":
        import polars as pl

        levels = {
            name: _polars_category(dtype, below.schema[name])
            for name, dtype in above.schema.items()
            if is_category(above[name]) and is_category(below[name]) and dtype != below.schema[name]
        }
        return pl.concat([above.cast(levels), below.cast(levels)], how="vertical_relaxed")
    if kind == "Arrow":
        import pyarrow as pa

        return pa.concat_tables([above, below], promote_options="permissive")
    return np.concatenate([np.asarray(above), np.asarray(below)])


def _polars_category(above, below):
    """The dtype of two columns of categories."""
    import polars as pl

    if isinstance(above, pl.Enum) and isinstance(below, pl.Enum):
        return pl.Enum(_joined(above.categories, below.categories))
    return pl.Categorical


def _joined(above, below):
    """The levels of both, each once; equal are those that are equal where rows are read."""
    return list(dict.fromkeys([*above, *below]))
