"""What the estimators that boost have in common, and how they are fitted from any start."""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import indexable
from sklearn.utils._indexing import _safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from ranktrees.estimators.columns import recoded, with_columns_of
from ranktrees.estimators.fit_warnings import (
    NEVER_OUT_OF_BAG,
    warn_of_grades,
    warn_of_no_more_trees,
    warn_of_no_stopping,
    warn_of_odds,
    warn_of_start,
    warn_of_trees,
    warn_of_weights,
)
from ranktrees.estimators.fitting import (
    TREE_CONSTRAINTS,
    TreeEnsembleEstimator,
    as_read,
    prepare,
)
from ranktrees.estimators.links import is_same_link, link_of
from ranktrees.estimators.parameters import with_keywords, with_parameters
from ranktrees.estimators.starting import (
    FitRows,
    Start,
    foreign_of,
    require_one_score,
    scores_of_foreign,
    scores_to_start_from,
)
from ranktrees.evaluation.clones import clone_except, fitted_clone, folds_of_rows, predict_out_of_fold
from ranktrees.evaluation.own_models import own_model
from ranktrees.evaluation.predictions import scored_like
from ranktrees.evaluation.scorers import ByScorer, as_followed
from ranktrees.growing.split_search import STREAMING
from ranktrees.measures import Measure, as_measure
from ranktrees.measures.compiled import CompiledMeasure
from ranktrees.measures.named import AnyMeasure
from ranktrees.measures.pooled import Pooled
from ranktrees.model.costs import used_features
from ranktrees.model.ensemble import Ensemble
from ranktrees.objectives import Logistic, PreparedObjective, as_objective
from ranktrees.objectives.named import BY_NAME
from ranktrees.objectives.pointwise import Softmax
from ranktrees.processes.communicator import active_driver
from ranktrees.rows import ValidationRows, check_validation, compare_columns, is_fitted
from ranktrees.rows.feedback import NOTHING
from ranktrees.rows.sampling import RowSampler, hold_out
from ranktrees.support.numeric import is_whole
from ranktrees.support.parallel import effective_n_threads
from ranktrees.support.scikit_learn import with_callbacks
from ranktrees.support.spelling import readable, spelt
from ranktrees.support.spool import Spool
from ranktrees.support.warning import FitWarning, warn
from ranktrees.training.boosting import FollowedRows, boost
from ranktrees.training.callbacks import EarlyStopping
from ranktrees.training.checkpoints import Checkpoint, CheckpointFile, what_is_trained
from ranktrees.training.ranks import fit_on_ranks, refuse_feedback, trained_together
from ranktrees.training.rates import is_schedule, rates_of

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.estimators.fitted import FittedTrees
    from ranktrees.model.costs import FeatureCosts
    from ranktrees.model.ensemble import Trees
    from ranktrees.objectives.base import Link, Objective
    from ranktrees.processes.sharing import Share
    from ranktrees.rows.data import FitData
    from ranktrees.rows.feedback import Feedback
    from ranktrees.support.annotations import IdsLike, RowsLike
    from ranktrees.training.callbacks import Progress
    from ranktrees.training.rates import Rates

# So many rows bear larger steps, and splits that choose among all features. They have the second rate.
MANY_ROWS, RATES = 40_000, (0.05, 0.1)

BOOSTING_CONSTRAINTS = {
    **TREE_CONSTRAINTS,
    "learning_rate": [Interval(Real, 0, None, closed="neither"), callable, "array-like", None],
    "max_iter": [Interval(Integral, 1, sys.maxsize, closed="both")],
    "l2_regularization": [Interval(Real, 0, None, closed="left")],
    "min_gain_to_split": [Interval(Real, 0, None, closed="left")],
    "min_hessian_to_split": [Interval(Real, 0, None, closed="left")],
    "max_features": [Interval(Real, 0, 1, closed="right"), None],
    "split_search": [StrOptions({"auto", "full", "coarse_to_fine", "exact", *STREAMING})],
    "split_criterion": [StrOptions({"newton", "squared_error"})],
    "gradient_sampling": [Interval(Real, 0.01, None, closed="left"), None],
    "subsample": [Interval(Real, 0, 1, closed="right")],
    "query_subsample": [Interval(Real, 0, 1, closed="right")],
    "exact_subsample": ["boolean"],
    "early_stopping": ["boolean", StrOptions({"auto"})],
    "scoring": [str, Measure, callable, None],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither"), None],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "init": [Interval(Real, None, None, closed="neither"), HasMethods(["predict"]), None],
    "init_cv": ["cv_object", StrOptions({"oob"})],
    "measure": [str, Measure, callable, None],
}


@dataclass(frozen=True, eq=False)
class Plan:
    """What a fit has settled before the first tree.

    ``rows`` are those to learn from, and ``train`` and ``validation`` the rows whose scores are followed.
    """

    file: CheckpointFile
    seed: int
    rows: FitRows
    prepared: PreparedObjective
    start: Start
    so_far: Checkpoint
    train: FollowedRows
    validation: FollowedRows | None
    stopping: EarlyStopping | None
    costs: FeatureCosts | None
    step: Callable[..., float] | None
    rate: Any  # one, or those of the rounds
    n_threads: int

    @property
    def objective(self) -> Objective:
        return self.prepared.objective

    @property
    def scores_so_far(self) -> dict[str, Sequence[float]]:
        """The scores that a fit before this one has followed, by the attribute that has them."""
        return {
            "train_score_": self.so_far.train_scores,
            "validation_score_": self.so_far.validation_scores,
        }

    def attributes(self, ensemble: Ensemble) -> dict[str, Any]:
        """Return the fitted attributes that come with an ensemble."""
        return self.start.attributes(ensemble) | {"_link": link_of(self.objective)}


@with_parameters
class BoostedTrees(TreeEnsembleEstimator):
    r"""The base class of the regressor, the classifier and the ranker, which all boost.

    Parameters
    ----------
    learning_rate : float, array-like, callable or None, default=None
        The factor by which the values of each tree's leaves are multiplied. It may be one for each of
        ``max_iter`` rounds, or a function of the number of the round, from 0, that returns it. If None, it is
        0.05 if there are fewer than 40,000 rows to learn from, and otherwise 0.1, with which 300 trees learn
        more from many rows.
    max_iter : int, default=300
        The number of trees.
    l2_regularization : float, default=0.0
        The L2 regularisation, which is added to the sum of the hessians of each leaf.
    min_gain_to_split : float, default=0.0
        A leaf is split only if that gains more than this. The gain is the formula in `HistGBRTRegressor`,
        twice the decrease of the loss; it scales with the loss and with ``sample_weight``. It corresponds to
        ``min_split_gain`` of LightGBM and ``gamma`` of XGBoost.
    min_hessian_to_split : float, default=0.0
        The minimum sum of hessians on each side of a split. With the squared error the hessian of a row is
        its weight. If ``gradient_sampling`` draws rows, the sum is estimated from those. It corresponds to
        ``min_child_weight`` of LightGBM and XGBoost.
    max_features : float or None, default=None
        The share of the features that each split considers, drawn at random (kSGBRT in Mohan's survey). If
        None, it is 0.5 (0.3 for `LambdaMARTRanker`) if there are fewer than 40,000 rows to learn from, and
        otherwise 1: all features.
    split_criterion : {"newton", "squared_error"}, default="newton"
        What splits are judged by. With "newton", it is the formula in `HistGBRTRegressor`. With
        "squared_error", each tree is fitted to the negative first derivatives by least squares, as in MART: a
        hessian is then the weight of its row, also in ``min_hessian_to_split`` and in the price of features.
        Leaves are the same Newton steps either way, and with the loss "squared_error" so are the trees.
        ``monotonic_cst`` needs "newton".
    gradient_sampling : float or None, default=1.5
        If not None, the splits of each tree are searched on a sample of the rows, drawn anew for each tree.
        Let k be this number, at least 0.01. A row of gradient g and hessian h is drawn with probability
        ``min(1, k * max(|g| / max |g|, h / max(max h, 8 mean h)))``, and then counts as 1 / probability rows.
        Sampling regularises as ``subsample`` does, and makes training faster. See the guide, "Sampling by
        gradients". The values of the leaves are computed from all rows. If None, all rows are used.
    early_stopping : bool or "auto", default="auto"
        Whether to stop when the validation score stops improving. If True and no validation rows are given, a
        share ``validation_fraction`` of the queries is held out. If "auto", training stops early if, and only
        if, validation rows are given. If False, the validation score is followed but does not stop training,
        and all trees are kept.
    scoring : str, Measure or callable, default="loss"
        The score that early stopping follows: "loss", or a measure such as ``"ndcg@10"``. Except for rankers,
        it may be a scorer of scikit-learn: its name, such as ``"neg_log_loss"``, or a function of (estimator,
        X, y), called with an estimator that predicts these rows, in the order of the queries.
    validation_fraction : float or None, default=0.1
        The share of the queries that is held out if ``early_stopping=True`` and no validation rows are given.
        Queries are held out whole. If there are no queries, it is a share of the rows. If None, nothing is
        held out, and training stops by the score of the training rows.
    n_iter_no_change : int, default=10
        The number of rounds without a better validation score after which training stops.
    tol : float, default=1e-7
        The amount by which a validation score has to exceed the best one to count as better.
    subsample, query_subsample : float, default=1.0
        The share of the rows, and the share of the queries, on which each tree is grown.
    exact_subsample : bool, default=False
        Whether exactly these shares are drawn, rounded and without replacement, over all ranks: first of the
        queries, then of their rows. If False, each query and each row is drawn independently, with the share
        as its probability. At least one is drawn in either case.
    init : float or estimator, default=None
        What boosting starts from. If None, it is the best constant for the loss. An estimator that is not
        fitted is fitted first. A model that is fitted already, or a scikit-learn ``FrozenEstimator`` of one,
        is used as it is, by clones as well, and thus in searches and cross-validation. If the model is an
        estimator of trees of this library, or an `Ensemble`, boosting starts from its scores, and its trees
        become the first trees of ``ensemble_``. The predictions of any other model are added to the values of
        the trees. For a classifier of two classes, the ``decision_function`` is used if there is one,
        otherwise the probability of the second class.
    init_cv : "oob", int, splitter, iterable or None, default=None
        What training rows start from if ``init`` is fitted here. If None, they start from the predictions of
        ``init``, although it has seen their labels. If "oob", a row starts from the predictions of those
        trees of a `RandomForestRanker` that have not seen it. Rows that all trees have seen start from the
        mean label, with a warning. If an int or a splitter, a row starts from the prediction of a model that
        was fitted without the row's fold. If there are queries, folds consist of whole queries. New rows
        start from the whole ``init`` in any case.

    Attributes
    ----------
    init_ : estimator or None
        The model that boosting started from.
    n_init_trees_ : int
        The number of trees that come from ``init_``. They are the first trees of ``ensemble_``. They are not
        counted by ``max_iter``, ``n_trees``, `staged_predict`, early exits, ``n_iter_``, ``best_iteration_``
        and the scores below.
    init_scores_ : ndarray of float64, shape (n_rows,), or None
        If ``init_cv`` is set, the score that each training row started from. It is NaN for rows that were
        held out.
    n_iter_ : int
        The number of trees grown.
    learning_rate_ : float, or ndarray of float64, shape (n_iter_,)
        The learning rate that was used, or that of each round.
    max_features_ : float
        The share of the features that was used.
    best_iteration_ : int
        The number of trees kept. After early stopping, these are the trees up to the best validation score.
    train_score_, validation_score_ : ndarray of float64
        The score that was followed, after each tree. Empty if not all trees were followed.
    """

    learning_rate: Rates = None
    max_iter: int = 300
    l2_regularization: float = 0.0
    min_gain_to_split: float = 0.0
    min_hessian_to_split: float = 0.0
    max_features: float | None = None
    split_criterion: Literal["newton", "squared_error"] = "newton"
    gradient_sampling: float | None = 1.5
    early_stopping: bool | Literal["auto"] = "auto"
    scoring: AnyMeasure | None = "loss"
    validation_fraction: float | None = 0.1
    n_iter_no_change: int = 10
    tol: float = 1e-7
    subsample: float = 1.0
    query_subsample: float = 1.0
    exact_subsample: bool = False
    init: Any = None
    init_cv: Any = None
    measure: AnyMeasure | None = None

    _share_of_features = 0.5  # that each split chooses among if rows are few
    _step_rows = "train"
    _mean_leaves = False

    if TYPE_CHECKING:  # what a fit sets with the trees

        @property
        def init_(self) -> Any: ...

        @property
        def init_scores_(self) -> NDArray[np.float64] | None: ...

    @with_callbacks
    @with_keywords
    def fit(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
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
        """Grow the trees.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features), or Batches
            The rows. NaN is a missing value. Values of float32 and float64 are read as they are, without a
            copy. :class:`~ranktrees.datasets.Batches` contain labels, weights and query ids, so leave those
            arguments out.
        y : array-like of shape (n_rows,)
            The labels: finite numbers, with any number of grades; for a classifier, classes of any kind.
            A pandas Series whose index has a level named "qid" supplies the query ids as well, even through
            scikit-learn's splitters.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights >= 0. To weight a query, give its weight to each of its rows. If both rows and queries
            have weights, multiply the two.
        qid : array-like of shape (n_rows,), default=None
            The query id of each row: any hashable values, in any order.
        groups : array-like of shape (n_rows,), default=None
            The same under the name that scikit-learn's splitters know.
        group : array-like of shape (n_queries,), default=None
            The sizes of the queries in the order of the rows, as LightGBM takes them.
        X_val, y_val, sample_weight_val, qid_val : default=None
            The validation rows for early stopping.
        eval_set, eval_group, eval_qid : default=None
            The same in the form in which LightGBM and XGBoost take it: lists with one entry. Weights of these
            rows are passed as ``sample_weight_val``, an array.

        Returns
        -------
        self : estimator
            The fitted estimator. If a fit fails, the estimator stays as it was.

        Raises
        ------
        ValueError, TypeError
            If an argument is invalid. The message names it.
        """
        queries = {"qid": qid, "groups": groups, "group": group}
        validation = ValidationRows(X_val, y_val, sample_weight_val, qid_val, eval_set, eval_group, eval_qid)
        return self._check_and_fit(X, y, sample_weight, queries, validation)

    def _validate_params(self) -> None:
        if is_whole(self.early_stopping):
            raise ValueError(
                f"early_stopping={self.early_stopping!r} says whether to stop, not after how many rounds; "
                f"expected True, False or 'auto': set n_iter_no_change={self.early_stopping!r}, and pass "
                "validation rows to fit, or early_stopping=True to hold some out."
            )
        super()._validate_params()
        is_list = is_schedule(self.learning_rate) and not callable(self.learning_rate)
        if is_list and (n_rates := len(self.learning_rate)) != self.max_iter:  # type: ignore[arg-type]
            raise ValueError(
                f"learning_rate has {n_rates} rates, but max_iter={self.max_iter}; expected one for each "
                "round: pass as many, or a function of the number of the round, from 0."
            )
        _refuse_class(self.init)
        if hasattr(self.init, "fit") and not hasattr(self.init, "__sklearn_tags__"):
            raise TypeError(
                f"init is a {type(self.init).__name__} that has a fit method, but is not a scikit-learn "
                "estimator, so it is unknown whether it is fitted; expected such an estimator, or a model "
                "that only predicts: derive it from sklearn.base.BaseEstimator."
            )

    def _check_and_fit(
        self,
        X: RowsLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        queries: dict[str, Any],
        validation: ValidationRows,
        feedback: Feedback = NOTHING,
        feedback_val: Feedback = NOTHING,
    ) -> Self:
        self._validate_params()
        if (driver := active_driver()) is not None:
            refuse_feedback(feedback)
            fit_on_ranks(self, driver, X, y, sample_weight, validation, **queries)
            return self
        context = self._open_context(self.max_iter, X, y)
        with trained_together(self) as communicator:
            if not communicator.alone:
                refuse_feedback(feedback)
            ranker = self._wants_queries or self._follows_queries(validation)
            data = self._check(X, y, sample_weight, communicator, **queries, ranker=ranker, feedback=feedback)
            held_out = check_validation(self, validation, data, feedback_val)
            held_out = None if held_out is None else self._weighed(held_out, by=data)
            data = self._weighed(data, by=data)
            self._fit(as_read(X, data), data, as_read(validation.pair[0], held_out), held_out, context)
        self._close_context(context, X, y)
        return self

    def _fit(
        self,
        X: RowsLike,
        data: FitData,
        X_held_out: RowsLike,
        held_out: FitData | None,
        context: Any,
        callbacks: Sequence[Callable[[Progress], Any]] = (),
    ) -> None:
        plan = self._plan(X, data, X_held_out, held_out)
        with self._watching(self.max_iter, context, plan.attributes, X, data, plan.scores_so_far) as watchers:
            trees, train_scores, validation_scores = self._boost(plan, [*watchers, *callbacks])
        self._learn(plan, trees, train_scores, validation_scores)

    def _plan(self, X: RowsLike, data: FitData, X_held_out: RowsLike, held_out: FitData | None) -> Plan:
        """Check what can be checked, and bring all that the loop needs into its form."""
        n_threads, ranks = effective_n_threads(self.n_jobs), data.share.communicator
        file = CheckpointFile(self.checkpoint, self.checkpoint_every, ranks)
        seed = self._seed(file, ranks)
        objective = self._objective(seed)
        self._check_what_is_learned(objective, data)
        stops = self._stops(held_out is not None)
        if held_out is None:
            warn_of_no_stopping(self)
        if not stops:  # which may drop trees
            warn_of_no_more_trees(self._n_earlier, self.max_iter, "max_iter")
        if stops or held_out is not None:
            self._check_labels_to_follow(objective, data, held_out)
        if stops and held_out is None and self.validation_fraction is not None:
            X_held_out = X
            data, held_out = hold_out(data, self.validation_fraction, seed)
        self._refuse_loose_bounds()
        costs, step, rate = (
            self._costs(),
            self._step(data, held_out, n_threads),
            self._rate(data.share.n_rows),
        )
        ranks.at("the cuts")
        mapper, codes = self._bin(data, n_threads, costs)
        ranks.at("the start")
        prepared = prepare(objective, data, n_threads)
        start = self._start(X, data, prepared)
        rows, others = FitRows(X, data, mapper, codes, seen=True), None
        if self._earlier() is not None:
            self._resume(prepared, start.before_each_tree(rows, n_threads))
        if held_out is not None:
            coded = mapper.for_others(held_out.X, held_out.order, n_threads)
            others = FitRows(X_held_out, held_out, *coded, seen=False)
        so_far = self._so_far(file, seed, start, prepared, rows, others)
        prepared.resume(*so_far.learned)
        start = replace(start, ensemble=so_far.ensemble)
        file.refuse_fewer_trees(start.n_added, self.max_iter, "max_iter")
        file.refuse_other_scores(start.n_added, others is not None)
        train, validation, stopping = self._train(prepared, start, rows, n_threads), None, None
        if others is not None:
            validation = self._rows_to_follow(objective, others, start.scores(others, n_threads), n_threads)
            if len(so_far.validation_scores) < start.n_added:  # a former fit may have followed other rows
                scores = [validation.score_of(stage) for stage in start.stages(others, n_threads)]
                so_far = replace(so_far, validation_scores=scores)
        if stops:
            self._require_some_query(train if validation is None else validation)
            if validation is None and len(so_far.train_scores) < start.n_added:
                scores = [train.score_of(stage) for stage in start.stages(rows, n_threads)]
                so_far = replace(so_far, train_scores=scores)
            followed = so_far.train_scores if validation is None else so_far.validation_scores
            stopping = EarlyStopping(self.n_iter_no_change, self.tol, followed)
        return Plan(
            file,
            seed,
            rows,
            prepared,
            start,
            so_far,
            train,
            validation,
            stopping,
            costs,
            step,
            rate,
            n_threads,
        )

    def _check_what_is_learned(self, objective: Objective, data: FitData) -> None:
        """Refuse labels, and parameters that do not go with these rows; warn of what is hardly meant."""
        if data.preferences is None:
            objective.check_labels(data.share.labels_to_check(data.labels))
        self._refuse_fewer_trees(self._n_earlier, "max_iter")
        if self.query_subsample < 1 and not data.qid_given:
            raise ValueError(
                f"query_subsample={self.query_subsample:g} draws whole queries, but without query ids all "
                "rows are one query; expected query ids, or 1: pass qid=, or draw rows with subsample."
            )
        warn_of_weights(data.weights, self.l2_regularization, self.gradient_sampling)
        warn_of_grades(self._measure(), data.labels, data.offsets)

    @property
    def _n_earlier(self) -> int:
        """The number of rounds that a fit before this one has made, if this one goes on from there."""
        return 0 if self._earlier() is None else self._n_counted

    def _train(
        self, prepared: PreparedObjective, start: Start, rows: FitRows, n_threads: int
    ) -> FollowedRows:
        """Return the rows to learn from in the form in which they are followed."""
        measure = self._measure_to_follow(rows.data)
        link = self._link_by(prepared.objective, measure)
        scores = start.scores(rows, n_threads)
        followed = FollowedRows(measure, prepared, rows.data, scores, n_threads, link=link)
        return self._with_scorer(prepared.objective, followed)

    @staticmethod
    def _refuse_rows_apart(measure: ByScorer, data: FitData) -> None:
        """Raise if a scorer cannot be called with all rows, since they are not all in memory here."""
        where = "are in batches" if isinstance(data.X, Spool) else "are those of several ranks"
        if isinstance(data.X, Spool) or not data.share.communicator.alone:
            raise ValueError(
                f"scoring={measure} is called with all rows together, but the rows {where}; expected "
                '"loss", or a measure: those of ranktrees.measures read such rows.'
            )

    def _with_scorer(self, objective: Objective, followed: FollowedRows) -> FollowedRows:
        """Let rows that are followed by a scorer be scored by what this estimator predicts of scores."""
        if isinstance(followed.measure, ByScorer):
            predicting = copy.copy(self)
            predicting._link = link_of(objective)
            followed.link = None
            followed.prepared_measure = followed.measure.of(predicting._methods(), followed.data)
        return followed

    def _boost(
        self, plan: Plan, watchers: Sequence[Callable[[Progress], Any]]
    ) -> tuple[Trees, list[float], list[float]]:
        """Run the loop: the new trees, and the scores of the rows that are followed after each round."""
        data, mapper = plan.rows.data, plan.rows.mapper
        used = used_features(plan.start.ensemble.nodes, self.n_features_in_)
        make_grower = self._growers(
            mapper,
            plan.rows.codes,
            plan.n_threads,
            self._prices(plan.costs, used, mapper.n_features),
            data.share,
            l2_regularization=self.l2_regularization,
            min_gain=self.min_gain_to_split,
            min_hessian=self.min_hessian_to_split,
            gradient_sampling=self.gradient_sampling,
        )
        sampler = RowSampler(
            data.offsets,
            subsample=self.subsample,
            query_subsample=self.query_subsample,
            exact=self.exact_subsample,
            seed=plan.seed,
            share=data.share,
            n_threads=plan.n_threads,
        )
        callbacks: Sequence[Any] = watchers if plan.stopping is None else [plan.stopping, *watchers]
        return boost(
            make_grower,
            plan.prepared,
            plan.train,
            learning_rate=plan.rate,
            rounds=range(plan.start.n_added, self.max_iter),
            sampler=sampler,
            seed=plan.seed,
            step=plan.step,
            step_rows={"train": plan.train, "validation": plan.validation}[self._step_rows],
            least_squares=self.split_criterion == "squared_error",
            mean_leaves=self._mean_leaves,
            leaf_quantile=plan.objective.leaf_quantile,
            validation=plan.validation,
            follow_train=plan.validation is not None or plan.stopping is not None or bool(self.verbose),
            callbacks=plan.file.with_checkpoints(callbacks, plan.so_far, lambda: plan.prepared.learned),
            ensemble_of=self._ensemble_of(mapper, plan.start.ensemble),
        )

    def _learn(
        self, plan: Plan, trees: Trees, train_scores: list[float], validation_scores: list[float]
    ) -> None:
        """Set the fitted attributes, and warn of a fit that went wrong."""
        start, share = plan.start, plan.rows.data.share
        self.n_iter_ = start.n_added + len(trees) // start.n_a_round
        self.learning_rate_ = rates_of(plan.rate, self.n_iter_)
        self.max_features_ = self._features_of_a_split(share)
        self.best_iteration_ = self.n_iter_ if plan.stopping is None else self._best_iteration(plan.stopping)
        self._keep_scores(plan, train_scores, validation_scores)
        self._seed_, self._fitted_costs = plan.seed, plan.costs
        self._started_by = {name: spelt(getattr(self, name)) for name in ("init", "init_cv", "monotonic_cst")}
        self._keep_of(plan.prepared)
        n_kept = start.n_init_trees + self.best_iteration_ * start.n_a_round
        kept = self._ensemble_of(plan.rows.mapper, start.ensemble)(trees).first(n_kept)
        for name in ("ensemble_", "ensembles_"):  # there may have been more, or fewer, classes before
            self.__dict__.pop(name, None)
        self.__dict__.update(plan.attributes(kept))
        grown = kept.after(start.n_init_trees)
        warn_of_trees(self, grown, share)
        if isinstance(plan.objective, Logistic | Softmax):
            warn_of_odds(grown)

    def _rate(self, n_rows: int) -> Any:
        """Return the learning rate, or those of the rounds, for the rows to learn from, of all ranks."""
        return RATES[n_rows >= MANY_ROWS] if self.learning_rate is None else self.learning_rate

    def _features_of_a_split(self, share: Share) -> float:
        if self.max_features is not None:
            return float(self.max_features)  # a share, though it may be spelt 1
        return 1.0 if share.n_rows >= MANY_ROWS else self._share_of_features

    def _stops(self, has_validation: bool) -> Any:
        """Whether the fit may stop early, according to rows that it does not learn from."""
        return has_validation if self.early_stopping == "auto" else self.early_stopping

    def _so_far(
        self,
        file: CheckpointFile,
        seed: int,
        start: Start,
        prepared: PreparedObjective,
        rows: FitRows,
        others: FitRows | None,
    ) -> Checkpoint:
        """Return the state of the fit: that of a checkpoint, if one was found, or else the start."""
        n_threads = effective_n_threads(self.n_jobs)

        def trained() -> dict[str, str]:
            named = {"the training rows": rows} | ({} if others is None else {"the validation rows": others})
            sets = {name: (of.data, of.codes, start.scores(of, n_threads)) for name, of in named.items()}
            return what_is_trained(self, rows.mapper, start.ensemble, sets)

        scores: Any = []
        if self._earlier() is not None:
            measure = spelt(self._measure_to_follow(rows.data))
            if self._followed.get("training") == measure:
                scores = self.train_score_[: start.n_added]
        begun = Checkpoint(ensemble=start.ensemble, seed=seed, train_scores=scores, learned=prepared.learned)
        return file.going_on(begun, trained)

    def _require_some_query(self, validation: Any) -> None:
        """Raise if, whatever the scores, the measure to stop by has no value."""
        if isinstance(validation.measure, CompiledMeasure | Pooled) and np.isnan(validation.score()):
            raise self._not_defined("whatever the scores")

    def _best_iteration(self, stopping: EarlyStopping) -> int:
        if stopping.best_iteration == 0:
            raise self._not_defined(f"after any of {self.n_iter_} trees")
        return stopping.best_iteration

    def _not_defined(self, when: str) -> ValueError:
        return ValueError(
            f"the score for early stopping, scoring={self._scoring()!r}, is not defined for the validation "
            f"rows {when}; expected at least one query that counts, or relevant and irrelevant rows for a "
            "measure of all rows. Pass other validation rows or labels, another scoring, or a measure that "
            "gives such queries a value, as empty_query=0 does."
        )

    def _keep_scores(self, plan: Plan, train_scores: list[float], validation_scores: list[float]) -> None:
        """Set the scores that were followed as fitted attributes."""
        train_scores = [*plan.so_far.train_scores, *train_scores]
        if len(train_scores) < self.n_iter_:  # not followed from the first tree on
            train_scores = []
        self.train_score_ = np.array(train_scores)
        self.validation_score_ = np.array([*plan.so_far.validation_scores, *validation_scores])
        sets = {"training": plan.train} | ({} if plan.validation is None else {"validation": plan.validation})
        self._followed = {name: spelt(rows.measure) for name, rows in sets.items()}

    def _check_labels_to_follow(self, objective: Objective, data: FitData, held_out: FitData | None) -> None:
        """Raise if the measure or the loss to follow does not accept the labels of its rows."""
        if (measure := self._measure_to_follow(data)) is not None:
            if isinstance(measure, ByScorer):
                self._refuse_rows_apart(measure, data)
            measure.check_labels(data.share.labels_to_check(data.labels))
        if held_out is None:
            return
        if (measure := self._measure_to_follow(held_out)) is not None:
            followed = held_out.share.labels_to_check(held_out.labels)
            measure.check_labels(followed, held_out.y_name)
            measure.warn_of_labels(followed, held_out.y_name)
        elif data.preferences is None and held_out.preferences is None:
            labels = [rows.share.labels_to_check(rows.labels) for rows in (data, held_out)]
            with _followed_by_the_loss(held_out):
                # of both: training rows have what the loss needs in any case, such as a positive label
                objective.check_labels(np.concatenate(labels))

    def _rows_to_follow(
        self, objective: Objective, rows: FitRows, scores: np.ndarray, n_threads: int
    ) -> FollowedRows:
        """Return the validation rows in the form in which they are followed."""
        measure = self._measure_to_follow(rows.data)
        prepared = None
        if measure is None:
            with _followed_by_the_loss(rows.data):
                prepared = prepare(objective, rows.data, n_threads)
        link = self._link_by(objective, measure)
        of_rows = rows.data, scores, n_threads, rows.codes, rows.mapper, link
        return self._with_scorer(objective, FollowedRows(measure, prepared, *of_rows))

    def _start(self, X: RowsLike, data: FitData, prepared: PreparedObjective) -> Start:
        """Return what boosting starts from: `init` or, with ``warm_start``, the existing model."""
        if self._earlier() is not None:
            if not is_same_link(self._link, link_of(prepared.objective)):
                raise ValueError(
                    "warm_start continues from scores on a different scale from those of "
                    f"loss={self.loss!r}; expected a loss whose scores are on the scale of the previous fit: "
                    "set warm_start=False, or pass the model as init of another estimator."
                )
            self._require_init_of_before()
            self._require_rows_of_before(data)
            warn_of_start(self, self._started_by["monotonic_cst"], "earlier trees predict")
            return self._start_of_before()
        link, several = link_of(prepared.objective), isinstance(prepared.objective, Softmax)
        kept = self._link_to_keep(link)
        if several:
            self._refuse_what_needs_one_score()
        if self.init is None or isinstance(self.init, Real):
            if self.init_cv is not None:
                raise ValueError(
                    f"init_cv={self.init_cv!r}, but init={self.init!r} is not a model to be fitted; expected "
                    "an estimator that is not fitted: pass one as init, or leave init_cv out."
                )
            base = prepared.start() if self.init is None else float(self.init)
            if several:
                return Start(self._no_trees(), bases=np.full(prepared.objective.n_classes, base))
            return Start(self._no_trees(base, link=kept))
        init, scores = self._fitted_init(X, data)
        ensemble, model = self._no_trees(link=kept), own_model(init)
        name = spelt(self.init)
        predicted = f"{'init=' + name if readable(name) else 'init'} predicts"
        warn_of_start(self, spelt(getattr(model, "monotonic_cst", None)), predicted)
        if model is not None:
            require_one_score(model)
            try:
                compare_columns(model, X, reset=False)
            except ValueError as error:
                raise ValueError(
                    f"init={model!r} was fitted to columns other than those of X; expected the same columns, "
                    f"in the same order: {error}"
                ) from error
            if model._link and not is_same_link(model._link, link) and not self._is_ranker:
                raise ValueError(
                    f"init={model!r} has scores on a different scale from its predictions; expected an init "
                    f"with the loss of this {type(self).__name__}, or one whose predictions are its scores."
                )
            ensemble = Ensemble.joined([recoded(model, self._category_levels)])
            ensemble = with_columns_of(self, ensemble).with_link(kept)
        if scores is not None:
            of_rows = np.full(data.X.shape[0], np.nan)
            of_rows[slice(None) if data.order is None else data.order] = scores
            scores = of_rows
        return Start(ensemble, init, len(ensemble), scores)

    def _start_of_before(self) -> Start:
        return Start(self.ensemble_, self.init_, self.n_init_trees_, self.init_scores_)

    def _refuse_what_needs_one_score(self) -> None:
        """Raise if a parameter is about a single score of a row, but each class has its own."""
        if not is_classifier(self):
            raise ValueError(
                f"loss={self.loss!r} gives each class a score of its own; expected a loss of one score per "
                "row: use HistGBRTClassifier."
            )
        if self.monotonic_cst is not None:
            raise ValueError(
                f"monotonic_cst is about the score of a row, but each of {len(self.classes_)} classes has "
                "its own; expected None, or two classes."
            )
        if not (self.init is None or isinstance(self.init, Real)):
            raise ValueError(
                f"init={self.init!r} is a model, which gives one score to a row, but each of "
                f"{len(self.classes_)} classes has its own; expected None or a number, or two classes."
            )

    def _require_init_of_before(self) -> None:
        """Raise if `init` is plainly not the one that the existing trees started from."""
        if isinstance(self.init, Real):
            same = self.init_ is None and self._ensembles[0].base == self.init
        else:
            same = spelt(self.init) == self._started_by["init"]
        if not same:
            started = self._ensembles[0].base if self.init_ is None else self.init_
            raise ValueError(
                f"init={self.init!r}, but with warm_start=True boosting continues from trees that started "
                f"from {started!r}; expected the init of that fit: set it again, or set warm_start=False."
            )
        if spelt(self.init_cv) != self._started_by["init_cv"]:
            raise ValueError(
                f"init_cv={self.init_cv!r}, but with warm_start=True boosting continues from trees that "
                f"started with init_cv={self._started_by['init_cv']}; expected the same: set it again, or "
                "set warm_start=False."
            )

    def _require_rows_of_before(self, data: FitData) -> None:
        """Raise if boosting began at scores of individual rows, and these rows are others."""
        scores = self.init_scores_
        if scores is None:
            return
        known = (
            f"with warm_start and init_cv={self.init_cv!r} boosting continues from the starting scores of "
        )
        if len(scores) != data.X.shape[0]:
            raise ValueError(
                f"{known}the {len(scores)} rows of the first fit, but X holds other rows; expected the same "
                "rows, in the same order."
            )
        if (n_unknown := np.isnan(data.internal(scores)).sum()) > 0:
            raise ValueError(
                f"{known}rows, but {n_unknown} of the rows to learn from were held out in the first fit and "
                "have none; expected the same rows held out: set early_stopping and validation_fraction as "
                "they were."
            )

    def _fitted_init(self, X: RowsLike, data: FitData) -> tuple[Any, np.ndarray | None]:
        """Return the fitted init, and what each training row starts from (None: the init's predictions)."""
        name, cv = type(self.init).__name__, self.init_cv
        if is_fitted(self.init):
            if cv is not None:
                raise ValueError(
                    f"init is a fitted {name}, but init_cv={cv!r} needs models that have not seen the rows "
                    "they score; expected an init that is fitted here: pass clone(init), or init_cv=None."
                )
            self._require_classes(data.classes)
            return self.init, None
        if isinstance(X, Spool):
            raise ValueError(
                f"init is a {name} that is not fitted, but X is in batches, which only tree estimators of "
                "ranktrees read; expected a fitted one: fit it first, then pass it."
            )
        if data.labels is None:
            raise ValueError(
                f"init is a {name} that would be fitted here, but y is None; expected labels, too, or an "
                "init that is already fitted."
            )
        rows = indexable(X)[0]
        rows = rows if data.order is None else _safe_indexing(rows, data.order)
        model = own_model(self.init)
        # so that a model of this library does not warn
        pass_on = data.qid_given or (model is not None and model._wants_queries)
        queries = data.query_of_row if pass_on else None
        if not data.share.communicator.alone and (cv is not None or model is None):
            raise ValueError(
                f"init={self.init!r} would be fitted on each rank's own rows"
                + ("" if cv is None else f", and init_cv={cv!r} on parts of them")
                + ": ranks that train together need the same. Pass one that is fitted, or an estimator of "
                "trees of this library without init_cv."
            )
        if cv == "oob":
            return self._fitted_forest(rows, data, queries)
        init = fitted_clone(self.init, rows, data.labels, data.weights, queries)
        if cv is None:
            return init, None
        return init, self._out_of_fold(rows, data, queries, scored_like(init))

    def _require_classes(self, classes: np.ndarray | None) -> None:
        """Raise if `init` was fitted to other classes than those of y: its odds may be reversed."""
        theirs = getattr(self.init, "classes_", None)
        if classes is not None and theirs is not None and not np.array_equal(theirs, classes):
            raise ValueError(
                f"init={self.init!r} was fitted to the classes {list(theirs)}, but y has {list(classes)}; "
                "expected the same, because the scores to start from are odds of the second class: fit it "
                "to these classes."
            )

    def _out_of_fold(
        self, rows: RowsLike, data: FitData, queries: np.ndarray | None, like: dict[str, Any]
    ) -> np.ndarray:
        as_they_came = np.arange(data.n_rows) if data.order is None else np.argsort(data.order)
        of_rows = rows, data.labels, data.weights, queries, data.query_of_row if data.qid_given else None
        X, y, sample_weight, queries, folds_by = (
            None if of is None else _safe_indexing(of, as_they_came) for of in of_rows
        )
        folds = folds_of_rows(self.init_cv, X, y, folds_by, is_classifier(self), "init_cv")
        predict = partial(scores_to_start_from, like=like)
        scores = np.empty(data.n_rows)
        [scores[as_they_came]] = predict_out_of_fold(
            [(self.init, predict, sample_weight)], X, y, queries, folds
        )
        return scores

    def _fitted_forest(
        self, rows: RowsLike, data: FitData, queries: np.ndarray | None
    ) -> tuple[Any, np.ndarray]:
        forest = self.init
        if not isinstance(forest, TreeEnsembleEstimator) or not getattr(forest, "bootstrap", False):
            raise ValueError(
                f'init_cv="oob", but init={forest!r} leaves no rows out of bag; expected a '
                "RandomForestRanker with bootstrap=True: pass one, or a number of folds as init_cv."
            )
        forest = clone(forest).set_params(oob_score=forest.oob_score or True)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", f".*{NEVER_OUT_OF_BAG}", FitWarning)  # said below
            forest = fitted_clone(forest, rows, data.labels, data.weights, queries)
        scores = forest.oob_prediction_
        if n_never := np.count_nonzero(np.isnan(scores)):
            warn(
                f"{n_never} of {len(scores)} rows were never out of bag: they start from the mean label. "
                "Grow more trees, or draw fewer rows for each.",
                UserWarning,
            )
        return forest, np.where(np.isnan(scores), forest.ensemble_.base, scores)

    def _known_levels(self) -> dict[int, tuple[Any, ...]]:
        init = own_model(self.init) if self._earlier() is None and self._keeps_init else None
        return super()._known_levels() if init is None else getattr(init, "_category_levels", {})

    @property
    def _keeps_init(self) -> bool:
        return _is_kept(self.init)

    def __sklearn_clone__(self) -> Any:
        return clone_except(self, ["init"] if self._keeps_init else [])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Get parameters.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of ``init``, as ``init__<name>``, unless it is fitted.

        Returns
        -------
        params : dict
        """
        return super().get_params(deep and not self._keeps_init)

    def set_params(self, **params: Any) -> Self:
        """Set parameters.

        Parameters
        ----------
        **params : dict
            The parameters by name. Those of an ``init`` that is not fitted are called ``init__<name>``.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If a parameter of ``init`` is to be changed, and ``init`` has no parameters, or is fitted, so that
            the change would have no effect.
        """
        if inner := [name for name in params if name.startswith("init__")]:
            init, setting = params.get("init", self.init), f"{inner[0]}={params[inner[0]]!r}"
            _refuse_class(init)
            if not hasattr(init, "set_params"):
                raise ValueError(
                    f"{setting} sets a parameter of init, but init={init!r} has none; expected an estimator: "
                    "set init, too."
                )
            if _is_kept(init):
                raise ValueError(
                    f"{setting} has no effect: init is fitted, and will not be fitted again; expected an "
                    "init that is fitted here: pass clone(init)."
                )
        return super().set_params(**params)

    def _scoring(self) -> AnyMeasure:
        return "loss" if self.scoring is None else self.scoring

    def _measure_of(self, scoring: AnyMeasure) -> Measure:
        """Return the measure, or for others than rankers also the scorer, that a name or function is."""
        return as_measure(scoring) if self._is_ranker else as_followed(scoring)

    def _follows_queries(self, validation: ValidationRows) -> bool:
        """Whether the fit stops by a ranking measure, so that missing query ids are probably a mistake."""
        if is_classifier(self) or self._scoring() == "loss":
            return False
        return self._stops(validation.given) and self._measure_of(self._scoring()).by_query

    def _measure_to_follow(self, data: FitData) -> Measure | None:
        """Return the measure by which these rows are followed, or None for the loss."""
        if self._scoring() == "loss":
            return None
        measure = self._measure_of(self._scoring())
        if measure.by_query and not data.share.named:
            raise ValueError(
                f"scoring={self.scoring!r} is a mean over queries, but without qid= all rows are one query, "
                "which cannot be dealt to ranks. Pass the query ids of each rank's rows."
            )
        return measure

    def _link_by(self, objective: Objective, measure: Measure | None) -> Link | None:
        """Return the function that turns scores of this loss into what the measure takes; None if equal."""

    def _resume(self, prepared: PreparedObjective, stages: Iterator[np.ndarray]) -> None:
        """Give back to the objective what `_keep_of` took from it, or what it learns from these scores."""

    def _leaf_values_by(self, data: FitData, n_threads: int) -> dict[str, Any]:
        """Return the settings by which the values of leaves follow from the gradients."""
        return {
            "learning_rate": self.learning_rate_ if self.learning_rate is None else self.learning_rate,
            "l2_regularization": self.l2_regularization,
            "step": self._step(data, data, n_threads),
            "mean_leaves": self._mean_leaves,
        }

    def _around(self, model: FittedTrees, n_rows: int) -> Self:
        if self.init is not None:
            raise ValueError(
                f"init={self.init!r}, but the trees of the ensemble start from its base, "
                f"{model.ensemble_.base:g}; expected an estimator without init."
            )
        copied = super()._around(model, n_rows)
        copied.__dict__.update(Start(copied.ensemble_).attributes(copied.ensemble_))
        rate = getattr(self, "learning_rate_", self._rate(n_rows))
        copied.learning_rate_ = rates_of(rate, len(copied.ensemble_))
        return copied

    def _forget_scores(self) -> None:
        self.train_score_, self.validation_score_ = np.empty(0), np.empty(0)

    def _step(self, data: FitData, held_out: FitData | None, n_threads: int) -> Callable[..., float] | None:
        """Return the function that finds the weight of a new tree; None if it is ``learning_rate``."""

    def _refuse_loose_bounds(self) -> None:
        """Raise if leaves are to be bounded by values that are not of their kind."""
        if self.monotonic_cst is not None and (self.split_criterion == "squared_error") != self._mean_leaves:
            raise ValueError(
                f"monotonic_cst bounds leaves by the values that splits are judged by, but with "
                f"split_criterion={self.split_criterion!r} these are not the values that the leaves get; "
                'expected "newton" with Newton steps in the leaves, and "squared_error" with means.'
            )

    def _starting_scores(self, X: RowsLike) -> np.ndarray | None:
        return scores_of_foreign(self.init_, X)

    def _foreign_init(self) -> Any:
        return foreign_of(self.init_)


def _refuse_class(init: Any) -> None:
    if isinstance(init, type):
        name = init.__name__
        raise TypeError(f"init is the class {name}; expected an estimator: pass {name}().")


def _is_kept(init: Any) -> bool:
    """Whether an `init` is used as it is, by clones as well."""
    return not isinstance(init, type) and is_fitted(init)


@contextmanager
def _followed_by_the_loss(data: FitData) -> Iterator[None]:
    """If the loss refuses labels, say in the message which rows they belong to."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{data.y_name} cannot be scored by the loss: {error}") from error


def loss_of(estimator: Any, parameters: dict[str, Any], losses: Collection[str], **others: Any) -> Objective:
    """Return the objective, with those parameters that it has. All others must be at their defaults."""
    loss = estimator.loss
    known = _parameters_of(loss)
    defaults = {parameter.name: parameter.default for parameter in fields(estimator)}
    for name, value in parameters.items():
        if name not in known and value != defaults[name]:
            having = next(other for other in losses if name in _parameters_of(other))
            raise ValueError(
                f"{name}={value!r} is not a parameter of loss={loss!r}: leave it at {defaults[name]!r}, or "
                f"choose a loss that has it, such as {having!r}"
            )
    parameters = parameters | others
    return as_objective(loss, **{name: parameters[name] for name in known & parameters.keys()})


def _parameters_of(loss: Callable[..., Any] | str) -> set[str]:
    return {parameter.name for parameter in fields(BY_NAME[loss])} if isinstance(loss, str) else set()
