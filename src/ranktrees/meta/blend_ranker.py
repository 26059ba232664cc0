"""Several rankers blended into one: the weighted sum of their scores, each weight found by exact search."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import indexable
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import _BaseComposition
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted

from ranktrees.estimators.ensemble_ranker import tags_of
from ranktrees.estimators.parameters import with_keywords
from ranktrees.evaluation.clones import clone_except, fitted_clone, folds_of_rows, predict_out_of_fold
from ranktrees.evaluation.combining import FORMS, checked_interval, shares_of_queries, weight_curve_of
from ranktrees.evaluation.predictions import scored_like, scores_by
from ranktrees.measures import Measure, as_measure
from ranktrees.meta.base import RoutesMetadata, ScoredByMeasure
from ranktrees.rows import check_columns, check_fit, is_fitted, unchanged_on_failure
from ranktrees.support.parallel import effective_n_threads

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.measures.named import AnyMeasure
    from ranktrees.rows.data import FitData
    from ranktrees.support.annotations import IdsLike, RowsLike

__all__ = ["BlendRanker"]


class BlendRanker(ScoredByMeasure, RoutesMetadata, RegressorMixin, _BaseComposition):
    r"""Blend of several rankers: the weighted sum of their scores, with the weights that suit a measure best.

    .. math:: s(x) = \sum_m w_m\, s_m(x)

    The search starts with the best of the rankers alone, with the weight 1. Then it visits one ranker after
    the other, that one included, and finds the best weight of each in a combination with the sum of the
    others, by `optimal_weight`. New weights are kept if the measure rises. The search stops after a pass over
    all rankers that changes nothing. So on the rows on which the weights are found, the blend is at least as
    good as each of its rankers, and each pass can only improve it. With two rankers in the convex form the
    weights are the best possible. Otherwise no single weight can be improved alone.

    Parameters
    ----------
    estimators : list of (str, estimator)
        The rankers, each with a name. They need ``fit`` and ``predict``, or only ``predict`` with
        ``cv="prefit"``. The score of a row is the number that ``predict`` returns. For a classifier of two
        classes it is the ``decision_function`` or, without one, the probability of the second class.
    form : {"convex", "additive"}, default="convex"
        The form in which a ranker with scores :math:`b` is combined with the sum :math:`a` of the others by a
        weight :math:`w`. "convex" is :math:`(1 - w)\,a + w\,b`, by which weights are at least 0 and sum to 1,
        and "additive" is :math:`a + w\,b`.
    interval : pair of float, default=None
        The lowest and the highest :math:`w`. If None, (0, 1) in the convex and (0.1, 5) in the additive form.
    measure : str, Measure or callable, default="ndcg@10"
        The measure that the weights are chosen to raise and that `score` returns. It must depend only on the
        order of the rows.
    n_repeats : int, default=10
        The maximum number of passes over the rankers.
    cv : int, splitter, iterable, "train" or "prefit", default=5
        The rows on which the weights are found. By default they are found on scores of models that have not
        seen the row. A ranker that fits its training rows too closely looks better there than it is, and
        would get too much weight. An int is the number of folds, which consist of whole queries (by
        `QueryKFold`) or, if there are no query ids, of rows (by scikit-learn's `KFold`). With "train" the
        weights are found on the training rows, which suits simple models. With "prefit" the estimators are
        fitted already, and `fit` only finds the weights. Give it rows that they have not seen.
    n_jobs : int or None, default=None
        The number of fits at the same time, through joblib (None means 1), and the number of threads of the
        search. The model does not depend on it.

    Attributes
    ----------
    estimators_ : list of estimators
        The rankers, fitted to all rows. With ``cv="prefit"``, those that were given.
    weights_ : ndarray of float64, shape (n_estimators,)
        The weights of the rankers.
    value_ : float
        The value of the measure for the blend, on the scores by which the weights were found.
    values_ : ndarray of float64, shape (n_estimators,)
        The value of the measure for each ranker alone, on the same scores.
    n_repeats_ : int
        The number of passes over the rankers.
    n_features_in_ : int
        The number of columns of ``X``.
    feature_names_in_ : ndarray of str
        The names of the columns of a data frame. Defined only if all names are strings.

    See Also
    --------
    optimal_weight : The best weight of two.
    ModelFeatures : Scores as features of a further model.

    References
    ----------
    Wu, Burges, Svore and Gao, *Adapting boosting for information retrieval measures*, Information Retrieval
    13, 2010, section 4.

    Examples
    --------
    >>> from ranktrees import BlendRanker, LambdaMARTRanker, RandomForestRanker, make_ranking
    >>> X, y, qid = make_ranking(60, n_features=10, random_state=0, return_X_y_qid=True)
    >>> trees = LambdaMARTRanker(max_iter=20, random_state=0)
    >>> forest = RandomForestRanker(10, random_state=0)
    >>> blend = BlendRanker([("trees", trees), ("forest", forest)]).fit(X, y, qid=qid)
    >>> bool(blend.value_ >= blend.values_.max())
    True
    """

    __metadata_request__fit = {"qid": True, "groups": True}  # noqa: RUF012
    __metadata_request__score = {"qid": True, "groups": True}  # noqa: RUF012
    _routes = {"fit": "fit"}  # noqa: RUF012
    _parameter_constraints = {  # noqa: RUF012
        "estimators": [list],
        "form": [StrOptions(set(FORMS))],
        "interval": ["array-like", None],
        "measure": [str, Measure, callable],
        "n_repeats": [Interval(Integral, 1, None, closed="left")],
        "cv": ["cv_object", StrOptions({"prefit", "train"})],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimators: Sequence[tuple[str, Any]],
        *,
        form: Literal["convex", "additive"] = "convex",
        interval: Sequence[float] | None = None,
        measure: AnyMeasure = "ndcg@10",
        n_repeats: int = 10,
        cv: Any = 5,
        n_jobs: int | None = None,
    ) -> None:
        self.estimators = estimators
        self.form = form
        self.interval = interval
        self.measure = measure
        self.n_repeats = n_repeats
        self.cv = cv
        self.n_jobs = n_jobs

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get the parameters, and with ``deep`` those of the estimators as ``<name>__<parameter>``.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of the estimators.

        Returns
        -------
        dict
            The parameters by name.
        """
        return self._get_params("estimators", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters, including those of the estimators, or replace an estimator by its name.

        Parameters
        ----------
        **params
            The parameters to set.

        Returns
        -------
        self : BlendRanker
            The ranker.
        """
        self._set_params("estimators", **params)
        return self

    def __sklearn_clone__(self) -> Any:
        return clone_except(self, ["estimators"] if self._is_prefit else [])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if self._are_pairs:
            inputs = [tags_of(model).input_tags for _, model in self.estimators]
            tags.input_tags.allow_nan = all(of_model.allow_nan for of_model in inputs)
            tags.input_tags.sparse = all(of_model.sparse for of_model in inputs)
        tags.target_tags.positive_only = True
        return tags

    @property
    def _are_pairs(self) -> bool:
        """Whether the estimators are one or more pairs of a name and something else."""
        pairs = self.estimators
        return (
            isinstance(pairs, list)
            and bool(pairs)
            and all(isinstance(one, tuple) and len(one) == 2 for one in pairs)
        )

    def _parts(self) -> dict[str, Any]:
        return dict(self.estimators) if self._are_pairs else {}

    @property
    def _is_prefit(self) -> bool:
        return isinstance(self.cv, str) and self.cv == "prefit"

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
        """Fit the estimators, and find their weights.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Rows, passed on to the estimators as they are.
        y : array-like of shape (n_rows,)
            Labels. A pandas Series whose index has a level named "qid" supplies the query ids as well.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights >= 0 of the rows, which are passed on to the estimators, with metadata routing enabled to
            those that request them. The weight of a query is the mean of the weights of its rows.
        qid, groups : array-like of shape (n_rows,), default=None
            The query id of each row, in any order, under either name.
        group : array-like of shape (n_queries,), default=None
            The sizes of the queries in row order, as LightGBM takes them.

        Returns
        -------
        self : BlendRanker
            The fitted ranker. A fit that fails leaves it as it was.

        Raises
        ------
        ValueError, TypeError
            If an argument is not valid; the message names it.
        NotFittedError
            If ``cv`` is "prefit" and an estimator is not fitted.
        """
        self._validate_params()
        self._require_estimators()
        interval = checked_interval(self.form, self.interval)
        with unchanged_on_failure(self):
            data = check_fit(self, X, y, sample_weight, qid=qid, groups=groups, group=group, read_rows=False)
            measure = as_measure(self.measure)
            measure.check_labels(data.labels)
            if len(self.estimators) > 1:
                # With labels as scores, so that an undefined measure is found out before all fits.
                n_threads = effective_n_threads(self.n_jobs)
                shares_of_queries(measure, data.labels, data.labels, data.offsets, data.weights, n_threads)
            queries = data.as_given(data.query_of_row) if data.qid_given else None
            X, y, sample_weight = indexable(X, y, sample_weight)
            scores = self._scores_to_weigh(X, y, sample_weight, queries)
            self._find_weights(np.asfortranarray(data.internal(scores)), data, measure, interval)
        return self

    def _require_estimators(self) -> None:
        if not self._are_pairs:
            raise ValueError(
                f"estimators={self.estimators!r}; expected one or more pairs of a name and an estimator."
            )
        self._validate_names([name for name, _ in self.estimators])
        for name, model in self.estimators:
            if not hasattr(model, "predict") or not (self._is_prefit or hasattr(model, "fit")):
                raise ValueError(
                    f"estimators has {model!r} as {name!r}; expected an estimator with fit and predict."
                )
            if self._is_prefit and not is_fitted(model):
                raise NotFittedError(
                    f"cv='prefit' needs estimators that are fitted, but {name!r} is not: fit it, or pass "
                    "cv=5."
                )

    def _scores_to_weigh(
        self, X: RowsLike, y: ArrayLike, sample_weight: ArrayLike | None, queries: np.ndarray | None
    ) -> np.ndarray:
        """Fit the estimators; return float64[n_rows, n_estimators], the scores on which weights are found."""
        models = [model for _, model in self.estimators]
        weights: list[Any] = [None] * len(models)
        if self._is_prefit:
            self.estimators_ = models
        else:
            routed = self._routed("fit", sample_weight=sample_weight)
            weights = [routed[name].get("sample_weight") for name, _ in self.estimators]
            self.estimators_ = Parallel(n_jobs=self.n_jobs)(
                delayed(fitted_clone)(model, X, y, weight, queries)
                for model, weight in zip(models, weights, strict=True)
            )
        if isinstance(self.cv, str):
            return np.column_stack([scores_by(model, X) for model in self.estimators_])
        rankers = [
            (model, partial(scores_by, **scored_like(fitted)), weight)
            for model, fitted, weight in zip(models, self.estimators_, weights, strict=True)
        ]
        folds = folds_of_rows(self.cv, X, y, queries, stratify=False)
        return np.column_stack(predict_out_of_fold(rankers, X, y, queries, folds, self.n_jobs))

    def _find_weights(
        self, scores: np.ndarray, data: FitData, measure: Measure, interval: tuple[float, float]
    ) -> None:
        n_threads = effective_n_threads(self.n_jobs)
        prepared = measure.prepare(data.labels, data.offsets, data.weights, n_threads)

        def measured(weights: np.ndarray) -> float:
            return prepared.signed_mean(_blend(scores.T, weights))

        alone = np.eye(scores.shape[1])
        self.values_ = np.array([measured(weights) for weights in alone])
        if np.isnan(self.values_).any():
            raise ValueError(
                f"{measure} is not defined on any query of these rows: pass others, or set empty_query."
            )
        best = int(np.argmax(self.values_))
        weights, value = alone[best], self.values_[best]
        for n_repeats in itertools.count(1):
            before = value
            for one, alone_one in enumerate(alone):
                others = np.where(alone_one, 0.0, weights)
                if not others.any():
                    continue
                if self.form == "convex":
                    others /= others.sum()
                sum_of_others = _blend(scores.T, others)
                rows = data.labels, sum_of_others, scores[:, one], data.offsets, data.weights
                curve = weight_curve_of(measure, *rows, self.form, interval, n_threads)
                share = 1 - curve.weight if self.form == "convex" else 1.0
                found = share * others + curve.weight * alone_one
                if (new := measured(found)) > value:
                    weights, value = found, new
            if value == before or n_repeats == self.n_repeats:
                break
        sign = 1 if measure.greater_is_better else -1
        self.weights_, self.n_repeats_ = weights, n_repeats
        self.value_, self.values_ = sign * value, sign * self.values_

    @with_keywords
    def predict(self, X: RowsLike) -> NDArray[np.float64]:
        """Score rows by the weighted sum of the scores of the estimators.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Rows.

        Returns
        -------
        ndarray of float64, shape (n_rows,)
            The scores. Rows with higher scores rank first.
        """
        check_is_fitted(self)
        check_columns(self, X, reset=False)
        scores = [
            scores_by(model, X) if weight else np.zeros(_num_samples(X))
            for model, weight in zip(self.estimators_, self.weights_, strict=True)
        ]
        return _blend(scores, self.weights_)


def _blend(scores: Sequence[np.ndarray] | np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted sum, added in the order of the rankers, since a dot product may round differently."""
    total = np.zeros(len(scores[0]))
    for values, weight in zip(scores, weights, strict=True):
        total += weight * values
    return total
