"""The predictions of a model as features of the next model.

Chapter 5 of Mohan, *An empirical analysis on point-wise machine learning techniques using regression trees
for web-search ranking*, 2010: a small *target* set is to be ranked, and there is a larger *source* set of
another kind (another market, another time, another way of labelling).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import (
    _check_feature_names_in,
    _num_samples,
    check_is_fitted,
)

from ranktrees.estimators.ensemble_ranker import tags_of
from ranktrees.evaluation.clones import clone_except, fitted_clone, folds_of_rows, predict_out_of_fold
from ranktrees.evaluation.predictions import probabilities_by, scored_like, scores_by
from ranktrees.meta.base import RoutesMetadata
from ranktrees.meta.stacking import indexed, kind_of_rows
from ranktrees.rows import (
    check_columns,
    find_query_of_rows,
    is_fitted,
    unchanged_on_failure,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.support.annotations import IdsLike, RowsLike

ADDED = ("score", "probabilities", "cumulative")


class ModelFeatures(RoutesMetadata, TransformerMixin, BaseEstimator):
    r"""Transformer that adds the predictions of a model to the features of a row.

    It can add the score :math:`Q` of the model, its class probabilities :math:`P(y = c)` and their cumulative
    sums :math:`P(y \le c)`. So a ranker of a small set can use what a model of a large set has learned.

    With ``cv="prefit"`` a fitted ``estimator`` is used as it is. Otherwise it is fitted to the given rows. In
    that case the features of a row must not come from a model that has seen its label. So `fit_transform`
    gives each training row the predictions of a model that was fitted without its fold. Folds keep queries
    whole. `transform` uses a model that is fitted to all rows. This is what scikit-learn's
    `StackingRegressor` does. In a `Pipeline`, which calls `fit_transform` in its `fit`, the next step is
    fitted to features of the former kind and predicts from features of the latter.

    Parameters
    ----------
    estimator : estimator
        The model: a ranker, a regressor or a classifier. It must be fitted with ``cv="prefit"``, and must not
        be fitted otherwise.
    add : {"score", "probabilities", "cumulative"} or a sequence of them, default="score"
        The features to add. "score" is one feature, the number that ``estimator.predict`` returns. For a
        classifier of two classes it is the ``decision_function`` or, without one, the probability of the
        second class. "probabilities" are as many features as there are classes. "cumulative" are one less,
        since :math:`P(y \le c)` is 1 for the last class. Both need ``predict_proba`` and ``classes_``.
    keep : bool, default=True
        Whether to keep the features of the row, in front of the added ones.
    prefix : str or None, default=None
        The prefix of the names of added features. If None, the name of the estimator's class in lower case.
    cv : int, splitter, iterable or "prefit", default=5
        The folds of `fit_transform`. An int is the number of folds, which consist of whole queries (by
        `QueryKFold`) or, if there are no query ids, of rows (by scikit-learn's `KFold`, or `StratifiedKFold`
        for a classifier). With "prefit" the estimator is fitted already. It stays so in clones of this
        transformer, and thus in searches and cross-validation.
    n_jobs : int or None, default=None
        The number of models that `fit_transform` fits at the same time, through joblib.

    Attributes
    ----------
    estimator_ : estimator
        The model: the given one, or one fitted to all rows.
    n_features_in_ : int
        The number of columns of ``X``.
    feature_names_in_ : ndarray of str
        The names of the columns of a data frame. Defined only if all names are strings.

    See Also
    --------
    sklearn.ensemble.StackingRegressor : Fits a last regressor on what several others say.
    WithSourceRows : Adds rows of another set, not features.

    References
    ----------
    Mohan, *An empirical analysis on point-wise machine learning techniques using regression trees for
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

    __metadata_request__fit = {"qid": True, "groups": True, "sample_weight": UNUSED}  # noqa: RUF012
    _routes = {"fit": "fit", "fit_transform": "fit"}  # noqa: RUF012
    _parameter_constraints = {  # noqa: RUF012
        "estimator": [HasMethods(["predict"])],
        "add": [StrOptions(set(ADDED)), list, tuple],
        "keep": ["boolean"],
        "prefix": [str, None],
        "cv": ["cv_object", StrOptions({"prefit"})],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: Any,
        *,
        add: str | Sequence[str] = "score",
        keep: bool = True,
        prefix: str | None = None,
        cv: Any = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.add = add
        self.keep = keep
        self.prefix = prefix
        self.cv = cv
        self.n_jobs = n_jobs

    def __sklearn_clone__(self) -> Any:
        return clone_except(self, ["estimator"] if self._is_prefit else [])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        model = tags_of(self.estimator)
        tags.input_tags, tags.target_tags = model.input_tags, model.target_tags
        tags.target_tags.required = not self._is_prefit
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        qid: IdsLike | None = None,
        groups: IdsLike | None = None,
        group: ArrayLike | None = None,
    ) -> Self:
        """Fit the model to all rows, unless it is fitted already.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Rows, of any kind that the estimator takes.
        y : array-like of shape (n_rows,), default=None
            Labels. A pandas Series whose index has a level named "qid" supplies the query ids as well. With
            ``cv="prefit"`` the labels are ignored.
        sample_weight : array-like of shape (n_rows,), default=None
            The weights of the rows, for the estimator. With metadata routing enabled, it gets them if it
            requests them.
        qid, groups : array-like of shape (n_rows,), default=None
            The query id of each row, in any order, under either name.
        group : array-like of shape (n_queries,), default=None
            The sizes of the queries in row order, as LightGBM takes them.

        Returns
        -------
        self : ModelFeatures
            The fitted transformer.

        Raises
        ------
        ValueError
            If the estimator has no probabilities and they are to be added, if it is fitted and ``cv`` is not
            "prefit", or if a feature of `X` has the name of one that is added.
        NotFittedError
            If ``cv`` is "prefit" and the estimator is not fitted.
        """
        self._validate_params()
        with unchanged_on_failure(self):
            X = indexed(X)
            check_columns(self, X, reset=True)
            self._fit(X, y, self._weights("fit", sample_weight), self._queries(X, y, qid, groups, group))
        return self

    def fit_transform(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        qid: IdsLike | None = None,
        groups: IdsLike | None = None,
        group: ArrayLike | None = None,
    ) -> Any:
        """Fit the model, and add to each row the predictions of a model that has not seen it.

        Parameters
        ----------
        X, y, sample_weight, qid, groups, group
            As for `fit`.

        Returns
        -------
        X : {ndarray, sparse matrix, data frame} of shape (n_rows, n_features_out)
            The rows, as `transform` returns them. With ``cv="prefit"`` they are the same as those of
            ``fit(X).transform(X)``.
        """
        self._validate_params()
        with unchanged_on_failure(self):
            if self._is_prefit:
                return self.fit(X, y, sample_weight, qid=qid, groups=groups, group=group).transform(X)
            X = indexed(X)
            check_columns(self, X, reset=True)
            queries = self._queries(X, y, qid, groups, group)
            sample_weight = self._weights("fit_transform", sample_weight)
            self._fit(X, y, sample_weight, queries)
            folds = folds_of_rows(
                self.cv, X, y, queries, tags_of(self.estimator).estimator_type == "classifier"
            )
            estimators = [(self.estimator, self._features_of, sample_weight)]
            [added] = predict_out_of_fold(estimators, X, y, queries, folds, self.n_jobs)
            return self._beside(X, added)

    def transform(self, X: RowsLike) -> Any:
        """Add the predictions of the model to the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        X : {ndarray, sparse matrix, data frame} of shape (n_rows, n_features_out)
            The rows with the added features. Sparse rows stay sparse, a data frame gets more columns and
            keeps its index, and float32 stays float32. Without ``keep``, only the added features are
            returned, and for a sparse matrix they are an array.
        """
        check_is_fitted(self)
        X = indexed(X)
        check_columns(self, X, reset=False)
        return self._beside(X, self._features_of(self.estimator_, X))

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Get the names of the output features.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            The names of the input features. If None, those seen in `fit`, or ``x0, x1, ...``.

        Returns
        -------
        ndarray of str
            The names. Added features are called ``<prefix>_score``, ``<prefix>_probability_<class>`` and
            ``<prefix>_cumulative_<class>``.

        Raises
        ------
        ValueError
            If an input feature has such a name.
        """
        check_is_fitted(self)
        return self._names(self._wanted(), input_features)

    def _names(self, wanted: Collection[str], input_features: ArrayLike | None = None) -> np.ndarray:
        """The names of input features and of those ``wanted``; all but "score" need the fitted model."""
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
    def _is_prefit(self) -> bool:
        return isinstance(self.cv, str) and self.cv == "prefit"

    def _wanted(self) -> tuple[str, ...]:
        wanted = (self.add,) if isinstance(self.add, str) else tuple(self.add)
        if not wanted or len(set(wanted)) < len(wanted) or not set(wanted) <= set(ADDED):
            raise ValueError(f"add={self.add!r}; expected one or more of {', '.join(ADDED)}, each once.")
        return wanted

    def _queries(
        self,
        X: RowsLike,
        y: ArrayLike | None,
        qid: IdsLike | None,
        groups: IdsLike | None,
        group: ArrayLike | None,
    ) -> np.ndarray | None:
        return find_query_of_rows(_num_samples(X), {"qid": qid, "groups": groups}, {"y": y, "X": X}, group)

    def _weights(self, method: str, sample_weight: ArrayLike | None) -> Any:
        """The weights that a method passes on to the estimator, if any."""
        if self._is_prefit:
            return None
        return self._routed(method, sample_weight=sample_weight)["estimator"].get("sample_weight")

    def _fit(
        self, X: RowsLike, y: ArrayLike | None, sample_weight: ArrayLike | None, queries: np.ndarray | None
    ) -> None:
        wanted = self._wanted()
        if set(wanted) != {"score"} and not hasattr(self.estimator, "predict_proba"):
            raise ValueError(
                f"add={self.add!r} needs class probabilities, but {type(self.estimator).__name__} has no "
                'predict_proba; expected a classifier or an ordinal ranker: pass one, or add="score".'
            )
        name, fitted = type(self.estimator).__name__, is_fitted(self.estimator)
        if self._is_prefit and not fitted:
            raise NotFittedError(
                f"cv='prefit' needs an estimator that is fitted, but {name} is not: fit it, or pass cv=5."
            )
        if fitted and not self._is_prefit:
            raise ValueError(
                f"{name} is already fitted, but cv={self.cv!r} would fit it again; expected one or the "
                "other: pass cv='prefit' to use it as it is, or clone(estimator) to have it fitted."
            )
        self._names(set(wanted) & {"score"})
        self.estimator_ = (
            self.estimator if fitted else fitted_clone(self.estimator, X, y, sample_weight, queries)
        )
        self._names(wanted)

    def _features_of(self, model: Any, X: RowsLike) -> np.ndarray:
        """float64[n_rows, n_added]: the features that a model adds."""
        added = []
        wanted = self._wanted()
        if "score" in wanted:
            score = scores_by(model, X, **scored_like(self.estimator_))
        if set(wanted) != {"score"}:
            probabilities = probabilities_by(model, X, self.estimator_.classes_)
        for what in wanted:
            if what == "score":
                added.append(score[:, None])
            elif what == "probabilities":
                added.append(probabilities)
            else:
                added.append(np.cumsum(probabilities, axis=1)[:, :-1])
        return np.concatenate(added, axis=1)

    def _beside(self, X: RowsLike, added: np.ndarray) -> Any:
        """``added`` on the right of ``X`` (alone without ``keep``), in the same type of rows as ``X``."""
        names = self.get_feature_names_out()
        columns = dict(zip(names[-added.shape[1] :], added.T, strict=True))
        kind = kind_of_rows(X)
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
            wanted = _get_output_config("transform", self)["dense"]
            return frame.to_pandas() if wanted == "pandas" else frame  # scikit-learn does not convert Arrow
        dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        added = added.astype(dtype)
        if not self.keep:
            return added
        if kind == "sparse":
            return sp.hstack([X, sp.csr_matrix(added)], format="csr")
        return np.column_stack([np.asarray(X), added])


def _spelt(label: Any) -> str:
    """A class as it is written in a name: 2, not 2.0."""
    return str(int(label)) if isinstance(label, float) and label.is_integer() else str(label)
