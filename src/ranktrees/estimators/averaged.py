"""The mean of models with different losses: the most accurate ranking, without a choice of loss."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from ranktrees.estimators.columns import share_columns, with_columns_of
from ranktrees.estimators.fitted import FittedTrees
from ranktrees.estimators.fitting import TREE_CONSTRAINTS
from ranktrees.estimators.lambdamart import LambdaMARTRanker
from ranktrees.estimators.parameters import with_keywords, with_parameters
from ranktrees.estimators.regressor import HistGBRTRegressor
from ranktrees.measures import Measure
from ranktrees.measures.named import AnyMeasure
from ranktrees.model.ensemble import Ensemble
from ranktrees.processes.communicator import active_driver
from ranktrees.rows import ValidationRows, check_fit, check_validation, refuse_batches
from ranktrees.rows.sampling import hold_out
from ranktrees.support.ordered import in_order
from ranktrees.support.parallel import effective_n_threads
from ranktrees.support.warning import warn
from ranktrees.training.ranks import (
    fit_on_ranks,
    refuse_disagreement,
    refuse_other_estimators,
    trained_together,
)

if TYPE_CHECKING:
    from ranktrees.rows.data import FitData
    from ranktrees.support.annotations import IdsLike, RowsLike
    from ranktrees.training.callbacks import Progress

# Models that differ in their loss gain more together than models that differ in their draws only.
QUERY_RMSE = LambdaMARTRanker("query_rmse", max_leaf_nodes=15)
STOCHASTIC_RANKS = LambdaMARTRanker("lambdaloss", noise=1.0, score_gap_norm=1.0)
SQUARED_ERROR = HistGBRTRegressor(max_leaf_nodes=15, max_features=0.3, gradient_sampling=1.0)
LAMBDAMART = LambdaMARTRanker()

RECIPES = {
    "fast": (QUERY_RMSE,),
    "balanced": (QUERY_RMSE, STOCHASTIC_RANKS),
    "best": (QUERY_RMSE, STOCHASTIC_RANKS, SQUARED_ERROR, LAMBDAMART) * 2,
}


@with_parameters
class AveragedRanker(FittedTrees, RegressorMixin, BaseEstimator):
    r"""The mean of boosted models with different losses: the best ranking without a choice of settings.

    Each model has a fixed loss and fixed settings, and stops early, on queries that it does not learn from.
    The scores :math:`s_m` of the models are brought to one scale, and averaged:

    .. math:: s(x) = \frac{1}{M} \sum_m \frac{s_m(x)}{\sigma_m},

    where :math:`\sigma_m` is the standard deviation of the scores of model :math:`m` about the mean of their
    query, over the queries on which it was stopped. The result is a single `Ensemble`. It is saved,
    explained and exported as one model, and has the same bytes for any ``n_jobs``.

    Parameters
    ----------
    quality : {"fast", "balanced", "best"}, default="best"
        The models to average, that is, how much time to spend:

        - "fast" is one model, of the squared error about the mean of each query.
        - "balanced" adds one of LambdaLoss with stochastic ranks, as in YetiRank.
        - "best" adds one of the squared error and one of LambdaMART, and has two of each of these four. They
          differ in their draws and, unless validation rows are given, in the queries that they are stopped
          on.
    measure : str, Measure or callable, default="ndcg@10"
        The measure that LambdaMART optimises, that early stopping follows, and that `score` returns.
        LambdaLoss optimises NDCG if it is neither NDCG nor DCG.
    max_iter : int, default=1000
        The maximum number of trees of each model.
    n_iter_no_change : int, default=100
        The number of rounds without a better validation score after which a model stops.
    min_samples_leaf : int, default=20
        The minimum number of training rows in each leaf.
    validation_fraction : float, default=0.2
        The share of the queries that each model holds out to stop on, if no validation rows are given.
        Queries are held out whole. Without query ids, it is a share of the rows.
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        The categorical features, as in `LambdaMARTRanker`.
    monotonic_cst : array-like of int or dict, default=None
        The monotonic constraint of each feature on scores: 1 for an increase, -1 for a decrease, and 0 for no
        constraint. A dict maps names or indices of features to constraints.
    interaction_cst : {"pairwise", "no_interactions"} or sequence of sets of names or indices, default=None
        The features that may be used together on a branch, as in `LambdaMARTRanker`.
    verbose : int, default=0
        If above 0, print a line for each model that is done.
    random_state : int, RandomState or None, default=None
        The source of randomness for everything that is drawn. With an int, each fit gives the same model. If
        None, each fit draws anew.
    n_jobs : int or None, default=None
        The number of threads, which fit several models at the same time. None and -1 use all processors. The
        model does not depend on it.

    Attributes
    ----------
    ensemble_ : Ensemble
        The trees of all models, one model after another. Their leaves are divided by the number of models and
        by the spread of the model's scores.
    n_iter_ : ndarray of int64, shape (n_models,)
        The number of trees grown for each model.
    best_iterations_ : ndarray of int64, shape (n_models,)
        The number of trees kept of each model, up to its best validation score.
    spreads_ : ndarray of float64, shape (n_models,)
        The standard deviations by which scores are divided. 0 for a model that ranks nothing, which is left
        out of the mean.
    validation_scores_ : list of ndarray of float64
        The score of each model on its validation rows, after each of its trees.
    feature_importances_ : ndarray of float64, shape (n_features,)
        The share of each feature in the total gain of all splits.
    n_features_in_ : int
        The number of columns of ``X``.
    feature_names_in_ : ndarray of str
        The names of the columns of a data frame. Defined only if all names are strings.

    See Also
    --------
    EnsembleRanker.average : The mean of models of your own.
    BlendRanker : Rankers of any kind, with the weights that suit a measure best.

    References
    ----------
    Wang, Li, Golbandi, Bendersky, Najork, *The LambdaLoss framework for ranking metric optimization*, CIKM
    2018.
    Gulin, Kuralenok, Pavlov, *Winning the transfer learning track of Yahoo!'s learning to rank challenge with
    YetiRank*, JMLR W&CP 14, 2011.

    Examples
    --------
    >>> from ranktrees import AveragedRanker, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> ranker = AveragedRanker("balanced", max_iter=50, random_state=0).fit(X, y, qid=qid)
    >>> bool(len(ranker.ensemble_) == ranker.best_iterations_.sum())
    True
    >>> ranker.score(X, y, qid=qid) > 0.8
    True
    """

    quality: Literal["fast", "balanced", "best"] = field(default="best", kw_only=False)
    measure: AnyMeasure = "ndcg@10"
    max_iter: int = 1000
    n_iter_no_change: int = 100
    min_samples_leaf: int = 20
    validation_fraction: float = 0.2
    categorical_features: ArrayLike | str | None = "from_dtype"
    monotonic_cst: ArrayLike | Mapping[Any, Any] | None = None
    interaction_cst: Literal["pairwise", "no_interactions"] | Sequence[Any] | None = None
    verbose: int = 0
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None

    _of_trees = ("min_samples_leaf", "categorical_features", "monotonic_cst", "interaction_cst")
    _parameter_constraints = {  # noqa: RUF012
        "quality": [StrOptions(set(RECIPES))],
        "measure": [str, Measure, callable],
        "max_iter": [Interval(Integral, 1, sys.maxsize, closed="both")],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        **{name: TREE_CONSTRAINTS[name] for name in _of_trees},
        "verbose": ["verbose"],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }
    checkpoint = None  # see `trained_together`

    __metadata_request__fit = {"qid": True, "groups": True}  # noqa: RUF012

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
        X_val: RowsLike = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        qid_val: IdsLike | None = None,
        eval_set: Sequence[Any] | None = None,
        eval_group: Sequence[ArrayLike] | None = None,
        eval_qid: Sequence[IdsLike] | None = None,
    ) -> Self:
        """Grow the trees of all models.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            The rows. NaN is a missing value. Values of float32 and float64 are read as they are, without a
            copy.
        y : array-like of shape (n_rows,)
            The labels: finite numbers. A pandas Series whose index has a level named "qid" supplies the query
            ids as well, even through scikit-learn's splitters.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights >= 0. To weight a query, give its weight to each of its rows.
        qid, groups : array-like of shape (n_rows,), default=None
            The query id of each row: any hashable values, in any order, under either name.
        group : array-like of shape (n_queries,), default=None
            The sizes of the queries in the order of the rows, as LightGBM takes them.
        X_val, y_val, sample_weight_val, qid_val : default=None
            The validation rows on which all models stop. If there are none, each holds out queries of its
            own.
        eval_set, eval_group, eval_qid : default=None
            The same in the form in which LightGBM and XGBoost take it: lists with one entry. Weights of these
            rows are passed as ``sample_weight_val``, an array.

        Returns
        -------
        self : AveragedRanker
            The fitted estimator. If a fit fails, the estimator stays as it was.

        Raises
        ------
        ValueError, TypeError
            If an argument is invalid. The message names it.
        """
        self._validate_params()
        refuse_batches(X, "X")
        queries: dict[str, Any] = {"qid": qid, "groups": groups, "group": group}
        validation = ValidationRows(X_val, y_val, sample_weight_val, qid_val, eval_set, eval_group, eval_qid)
        if (driver := active_driver()) is not None:
            fit_on_ranks(self, driver, X, y, sample_weight, validation, **queries)
            return self
        with trained_together(self) as communicator:
            refuse_other_estimators(self, communicator)
            data = check_fit(self, X, y, sample_weight, communicator=communicator, **queries)
            refuse_disagreement(self, data)
            self._fit(X, data, validation.pair[0], check_validation(self, validation, data))
        return self

    @property
    def _is_dcg(self) -> bool:
        measure: Any = self._measure()
        return measure.name in ("DCG", "NDCG")

    def _earlier(self) -> None:
        return None

    def _fit(self, X: RowsLike, data: FitData, X_val: RowsLike, held_out: FitData | None) -> None:
        communicator, recipe = data.share.communicator, RECIPES[self.quality]
        random = check_random_state(self.random_state)
        seeds = communicator.bcast([int(random.randint(np.iinfo(np.int32).max)) for _ in recipe])
        n_threads = effective_n_threads(self.n_jobs)
        n_together = min(len(recipe), n_threads) if communicator.alone else 1

        failed: list[BaseException] = []

        def go_on(_: Progress) -> None:
            if failed:
                raise failed[0]

        def fitted(place: int) -> tuple[LambdaMARTRanker, float]:
            try:
                n_jobs, rows = n_threads // n_together, (X, data, X_val, held_out)
                return self._fitted(recipe[place], seeds[place], n_jobs, *rows, place, go_on)
            except BaseException as error:
                failed.append(error)
                raise

        with warnings.catch_warnings(record=True) as caught:
            try:
                models, spreads = zip(*in_order(n_together, fitted, range(len(recipe))), strict=True)
            except KeyboardInterrupt as interrupt:
                failed.append(interrupt)
                raise
        for message, category in dict.fromkeys((str(one.message), one.category) for one in caught):
            warn(message, category)  # once, and in the thread of the user
        self.spreads_ = np.array(spreads)
        some = self.spreads_ > 0
        weights = np.divide(1.0, self.spreads_, where=some, out=np.zeros(len(some))) / max(1, some.sum())
        joined = Ensemble.joined([model.ensemble_ for model in models], weights)
        self.ensemble_ = with_columns_of(self, joined)
        self.n_iter_ = np.array([model.n_iter_ for model in models])
        self.best_iterations_ = np.array([model.best_iteration_ for model in models])
        self.validation_scores_ = [model.validation_score_ for model in models]

    def _fitted(
        self,
        model: LambdaMARTRanker,
        seed: int,
        n_jobs: int,
        X: RowsLike,
        data: FitData,
        X_val: RowsLike,
        held_out: FitData | None,
        place: int,
        callback: Callable[[Progress], Any],
    ) -> tuple[LambdaMARTRanker, float]:
        """Fit one model. Return it, and the spread of its scores."""
        given = {name: getattr(self, name) for name in (*self._of_trees, "max_iter", "n_iter_no_change")}
        given |= {"scoring": self.measure, "random_state": seed, "n_jobs": n_jobs, "early_stopping": True}
        if isinstance(model, LambdaMARTRanker) and (model.loss != "lambdaloss" or self._is_dcg):
            given["measure"] = self.measure
        model = share_columns(self, type(model)(**model.get_params(deep=False) | given))
        if held_out is None:
            share = self.validation_fraction
            X_val, (data, held_out) = X, hold_out(data, share, seed, "pass X_val, y_val and qid_val")
        model._fit(X, data, X_val, held_out, None, [callback])
        spread = _spread(held_out, model.ensemble_.predict(held_out.X, n_jobs=n_jobs))
        if self.verbose and data.share.communicator.rank == 0:
            best = model.validation_score_[model.best_iteration_ - 1]
            print(
                f"{type(self).__name__}: model {place + 1} of {len(RECIPES[self.quality])} has "
                f"{model.best_iteration_} trees, {self._measure()} {best:.4f}",
                flush=True,
            )
        return model, spread


def _spread(data: FitData, scores: np.ndarray) -> float:
    """Return the standard deviation of scores about the mean of their query, over all ranks."""
    sizes, begins, communicator = np.diff(data.offsets), data.offsets[:-1], data.share.communicator
    scores = data.internal(scores)
    scores = scores - np.repeat(scores[begins], sizes)  # so that equal scores are exactly 0
    means = np.add.reduceat(scores, begins) / sizes if len(sizes) else scores
    squares = (scores - np.repeat(means, sizes)) ** 2
    (n_rows,) = communicator.sums(len(scores))
    return math.sqrt(communicator.exact_sum(squares) / n_rows)
