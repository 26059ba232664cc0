"""How estimators of trees are fitted: what boosting and forests share, and boosting from any start.

A parameter is written once, as a field of the class that has it; classes derived from it say only what they
change.
"""

import copy
import os
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state, indexable
from sklearn.utils._indexing import _safe_indexing
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ranktrees.batches import Batches
from ranktrees.binning import MOST_BINS, BinMapper
from ranktrees.boosting import Followed, boost
from ranktrees.callbacks import Bar, EarlyStopping, Lines, ScikitLearnCallbacks
from ranktrees.checkpoints import Checkpoint, CheckpointFile, what_is_trained
from ranktrees.communicator import driver
from ranktrees.constraints import (
    Constraints,
    categorical_mask,
    interaction_sets,
    monotone_signs,
    names_of,
    number_of_features,
    usable_features,
)
from ranktrees.costs import FeatureCosts, Prices, used_features
from ranktrees.ensemble import Ensemble
from ranktrees.feedback import NOTHING
from ranktrees.fitted import FittedTrees, over_columns_of, own_model, respelt
from ranktrees.growing import TreeGrower
from ranktrees.measures import Measure, as_measure
from ranktrees.meta import asked_of_folds, scores_by
from ranktrees.model_selection import fitted_clone, folds_of_rows, said_out_of_fold
from ranktrees.objectives import Objective
from ranktrees.parallel import effective_n_threads, threads_for
from ranktrees.parameters import with_keywords, with_parameters
from ranktrees.ranks import fit_on_ranks, refuse_disagreement, refuse_feedback, trained_together
from ranktrees.refitting import refit_leaves
from ranktrees.sampling import RowSampler, hold_out
from ranktrees.spelling import spelt
from ranktrees.split_search import searches
from ranktrees.spool import Spool, by_parts
from ranktrees.streaming import mapper_of_values
from ranktrees.validation import (
    FitData,
    check_columns,
    check_fit,
    check_rows,
    check_score,
    check_validation,
    is_fitted,
    only_pair,
)
from ranktrees.warning import warn

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:
        """Nothing to support yet."""

    def with_callbacks(method):
        """The method as it is."""
        return method


# Rows on disk are read once for so many trees.
STAGES = 16

TREE_CONSTRAINTS = {
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
    "max_bins": [Interval(Integral, 2, MOST_BINS, closed="both")],
    "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    "monotonic_cst": ["array-like", dict, None],
    "interaction_cst": [list, tuple, StrOptions({"pairwise", "no_interactions"}), None],
    "handle_missing": [StrOptions({"learned", "left", "right", "three_way"})],
    "feature_costs": ["array-like", Mapping, None],
    "cost_weight": [Interval(Real, 0, None, closed="left")],
    "feature_groups": ["array-like", None],
    "warm_start": ["boolean"],
    "checkpoint": [str, os.PathLike, None],
    "checkpoint_every": [Interval(Integral, 1, None, closed="left")],
    "verbose": ["verbose", StrOptions({"bar"})],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
}

BOOSTING_CONSTRAINTS = {
    **TREE_CONSTRAINTS,
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "l2_regularization": [Interval(Real, 0, None, closed="left")],
    "max_features": [Interval(Real, 0, 1, closed="right")],
    "split_search": [StrOptions({"auto", "full", "coarse_to_fine", "exact", "streaming"})],
    "gradient_sampling": [Interval(Real, 0.01, None, closed="left"), None],
    "subsample": [Interval(Real, 0, 1, closed="right")],
    "query_subsample": [Interval(Real, 0, 1, closed="right")],
    "early_stopping": ["boolean", StrOptions({"auto"})],
    "scoring": [str, Measure, callable, None],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "init": [Interval(Real, None, None, closed="neither"), HasMethods(["predict"]), None],
    "init_cv": ["cv_object", StrOptions({"oob"})],
    "measure": [str, Measure, callable, None],
}


@with_parameters
class TreeEnsembleEstimator(CallbackSupportMixin, FittedTrees):
    """What the estimators that grow trees share."""

    max_leaf_nodes: int | None = 31
    max_depth: int | None = None
    min_samples_leaf: int = 20
    max_bins: int = 255
    split_search: str = "auto"
    categorical_features: Any = "from_dtype"
    monotonic_cst: Any = None
    interaction_cst: Any = None
    handle_missing: str = "learned"
    feature_costs: Any = None
    cost_weight: float = 1.0
    feature_groups: Any = None
    warm_start: bool = False
    checkpoint: str | os.PathLike | None = None
    checkpoint_every: int = 10
    verbose: int | str = 0
    random_state: Any = None
    n_jobs: int | None = None

    __metadata_request__fit = {"qid": True, "groups": True}  # noqa: RUF012

    def _bin(self, data, n_threads):
        """(mapper, codes) of the training rows."""
        exact = self.split_search == "exact"
        if exact and self.max_bins != MOST_BINS:
            raise ValueError(
                f'max_bins={self.max_bins} joins values, but split_search="exact" looks at every one; leave '
                f'max_bins at {MOST_BINS}, or use split_search="full".'
            )
        categorical, ranks = categorical_mask(self.categorical_features, self), data.share.communicator
        names = names_of(self)
        if self.split_search == "streaming":
            return mapper_of_values(data.X, data.order, data.weights, categorical, n_threads, ranks, names)
        mapper = BinMapper.fit(
            data.X,
            max_bins=None if exact else self.max_bins,
            weights=data.weights,
            order=data.order,
            categorical=categorical,
            n_threads=n_threads,
            communicator=ranks,
            names=names,
        )
        return mapper, mapper.encode(data.X, data.order, n_threads)

    def _costs(self):
        """FeatureCosts of what was passed, or None."""
        if self.feature_costs is not None:
            return FeatureCosts.of(
                self.feature_costs, self.feature_groups, self.n_features_in_, names_of(self)
            )
        if self.feature_groups is not None:
            raise ValueError(
                "feature_groups says what becomes free together, but without feature_costs all is free: pass "
                "them, too."
            )
        return None

    def _prices(self, costs, used):
        """What is to be paid for features, where some are in use already."""
        if costs is None:
            return Prices.none(self.n_features_in_)
        return Prices(costs, self.cost_weight, used)

    def _growers(self, mapper, codes, n_threads, prices, share, **rules):
        """A function that makes a grower of trees on these codes, at the prices of the moment."""
        usable = usable_features(mapper, codes, share.communicator)
        constraints = partial(
            Constraints,
            usable,
            self.n_features_in_,
            monotone=monotone_signs(self.monotonic_cst, self, mapper.is_categorical),
            interactions=interaction_sets(self.interaction_cst, self.n_features_in_, names_of(self)),
            missing=self.handle_missing,
            max_features=number_of_features(self.max_features, len(usable)),
        )
        n_jobs = effective_n_threads(self.n_jobs)
        make_search = searches(
            self.split_search,
            codes,
            mapper,
            constraints(),
            n_jobs,
            share.communicator,
            self.max_bins,
            deep=self.max_leaf_nodes is None,
        )
        return lambda: TreeGrower(
            codes,
            mapper,
            constraints(),
            prices.copy(),
            make_search,
            max_leaf_nodes=self.max_leaf_nodes,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            n_threads=n_threads,
            share=share,
            **rules,
        )

    def _open_context(self, n_iterations, X, y):
        """What scikit-learn's callbacks hang on; None before scikit-learn 1.9."""
        if not hasattr(self, "_init_callback_context"):
            return None
        context = self._init_callback_context(max_subtasks=n_iterations)
        return context.call_on_fit_task_begin(estimator=self, X=X, y=y)

    def _close_context(self, context, X, y):
        if context is not None:
            context.call_on_fit_task_end(estimator=self, X=X, y=y)

    @contextmanager
    def _watching(self, n_iterations, context, attributes, X, data):
        """What shows progress: by ``verbose``, on one rank, and by scikit-learn's callbacks."""
        watchers = []
        if data.share.communicator.rank > 0:
            pass
        elif self.verbose == "bar":
            watchers.append(Bar(type(self).__name__, n_iterations))
        elif self.verbose:
            watchers.append(Lines(type(self).__name__, max(1, int(self.verbose))))
        if context is not None:
            watchers.append(ScikitLearnCallbacks(self, context, attributes, X, data))
        try:
            yield watchers
        finally:
            for watcher in watchers:
                watcher.close()

    def _no_trees(self, base=0.0, average=False):
        none = Ensemble.from_trees([], n_features=self.n_features_in_, base=base, average=average)
        return over_columns_of(self, none)

    def _ensemble_of(self, mapper, before):
        """A function that makes the model of the trees so far, put after those of ``before``."""

        def ensemble_of(trees):
            added = trees.ensemble(
                n_features=self.n_features_in_,
                categories=mapper.categories,
                base=before.base,
                average=before.average,
            )
            return before.extend(added)

        return ensemble_of

    def _check(self, X, y, sample_weight, communicator, **given):
        """What `check_fit` makes of this; trees that are there come to know the categories of all fits."""
        known = self._known_levels()
        data = check_fit(self, X, y, sample_weight, communicator=communicator, known_levels=known, **given)
        refuse_disagreement(self, data)
        if self._earlier() is not None and self._category_levels != known:
            self.ensemble_ = respelt(self, self._category_levels, known)
        return data

    def _known_levels(self):
        """Those of the category columns that trees ask for which are there before the fit."""
        return self._category_levels if self._earlier() is not None else {}

    def _earlier(self):
        """The model to go on from, with ``warm_start``."""
        return self.ensemble_ if self.warm_start and hasattr(self, "ensemble_") else None

    def _keep_of(self, bound):
        """Take what the objective has learned beside trees, as fitted attributes."""

    def _refuse_fewer_trees(self, n_earlier, name):
        if n_earlier > getattr(self, name):
            raise ValueError(
                f"{name}={getattr(self, name)} is less than the {n_earlier} trees that the model has; "
                f"with warm_start=True raise {name} to add trees."
            )

    def _seed(self, file, communicator):
        if file.found is not None:
            return file.found.seed
        if self._earlier() is not None:
            return self._seed_
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        return communicator.bcast(seed)

    def refit_leaves(self, X, y, sample_weight=None, *, qid=None, groups=None, decay=0.9):
        r"""A copy whose leaves say what other rows say, on the same splits.

        Tree by tree, each leaf that rows reach gets the value

        .. math:: \mathit{decay} \cdot \mathit{old} + (1 - \mathit{decay}) \cdot \mathit{new},

        where *new* is what training would have given it on these rows: a step at the scores of the trees
        before, which are refitted already (see the guide, "Adapting a model to other queries"). What boosting
        started from, ``init``, stays as it is.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Labels. A pandas Series whose index has a level named "qid" brings the query ids along.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights >= 0.
        qid, groups : array-like of shape (n_rows,), default=None
            The query of each row, in any order; two names for the same thing.
        decay : float, default=0.9
            The share of the old values: 1 keeps them, 0 forgets them.

        Returns
        -------
        refitted : estimator
            A fitted estimator; this one stays as it is. What was followed in training, such as
            ``train_score_`` and ``oob_score_``, tells of the old leaves and is not there. The model does not
            depend on ``n_jobs``.

        Raises
        ------
        ValueError
            If ``decay`` is out of its range, with ``monotonic_cst``, which new values may violate, and as
            `fit` and `score`.

        References
        ----------
        LightGBM's ``Booster.refit``.

        Examples
        --------
        >>> from ranktrees import LambdaMARTRanker, make_ranking
        >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
        >>> ours, theirs = qid < 20, qid >= 20
        >>> ranker = LambdaMARTRanker(random_state=0).fit(X[theirs], y[theirs], qid=qid[theirs])
        >>> refitted = ranker.refit_leaves(X[ours], y[ours], qid=qid[ours], decay=0.5)
        >>> bool((refitted.ensemble_.leaves(X) == ranker.ensemble_.leaves(X)).all())
        True
        >>> refitted.ensemble_ == ranker.ensemble_
        False
        """
        return self._refit_leaves(X, y, sample_weight, {"qid": qid, "groups": groups}, decay)

    def _refit_leaves(self, X, y, sample_weight, queries, decay, feedback=NOTHING):
        check_is_fitted(self)
        if not (isinstance(decay, Real) and 0 <= decay <= 1):
            raise ValueError(f"decay={decay!r}: expected the share of the old values, from 0 to 1.")
        if self.monotonic_cst is not None:
            raise ValueError(
                "refit_leaves cannot keep monotonic_cst: the new values of leaves do not know of each other. "
                "Fit a model that starts from this one instead, with init=."
            )
        data = check_score(
            self,
            X,
            y,
            sample_weight,
            **queries,
            ranker=self._wants_queries and feedback.pairs is None,
            method="refit_leaves",
            feedback=feedback,
        )
        n_threads = effective_n_threads(self.n_jobs)
        objective = self._objective(self._seed_)
        if not _is_same(_link_of(objective), self._link):
            raise ValueError(
                f"loss={objective!r} has scores on another scale than the loss of the fit; expected the "
                "latter: set it again, or fit a new model."
            )
        if data.preferences is None:
            objective.check_labels(data.labels)
        bound = _bound(objective, data, n_threads)
        before = self.ensemble_.first(self.n_init_trees_)
        scores = before.predict(data.X, n_threads, start=self._starting_scores(X))
        scores = scores if data.order is None else scores[data.order]
        refitted = copy.copy(self)
        refitted.ensemble_ = refit_leaves(
            self.ensemble_,
            Followed(None, bound, data, scores),
            first=self.n_init_trees_,
            **self._leaf_values_by(data, n_threads),
            leaf_quantile=objective.leaf_quantile,
            decay=decay,
            n_threads=n_threads,
        )
        refitted._forget_scores()
        refitted._keep_of(bound)
        return refitted


@with_parameters
class BoostedTrees(TreeEnsembleEstimator):
    """Boosting: what the regressor, the classifier and the ranker share."""

    learning_rate: float = 0.05
    max_iter: int = 200
    l2_regularization: float = 0.0
    max_features: float = 0.5
    gradient_sampling: float | None = 1.5
    early_stopping: bool | str = "auto"
    scoring: str | Measure | None = "loss"
    validation_fraction: float = 0.1
    n_iter_no_change: int = 10
    tol: float = 1e-7
    subsample: float = 1.0
    query_subsample: float = 1.0
    init: Any = None
    init_cv: Any = None
    measure: str | Measure | None = None

    @with_callbacks
    @with_keywords
    def fit(
        self,
        X,
        y=None,
        sample_weight=None,
        *,
        qid=None,
        groups=None,
        group=None,
        X_val=None,
        y_val=None,
        sample_weight_val=None,
        qid_val=None,
        eval_set=None,
        eval_group=None,
        eval_qid=None,
    ):
        """Grow the trees.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features), or Batches
            NaN is a missing value. Float32 and float64 are read as they are, without a copy.
            :class:`~ranktrees.datasets.Batches` bring labels, weights and queries: leave those out.
        y : array-like of shape (n_rows,)
            Labels: finite, any number of grades; a classifier's are two classes of any kind. A pandas Series
            whose index has a level named "qid" brings the query ids along, also through scikit-learn's
            splitters.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights >= 0; a query's weight is given to each of its rows. They multiply.
        qid : array-like of shape (n_rows,), default=None
            The query of each row: any hashable values, in any order.
        groups : array-like of shape (n_rows,), default=None
            The same under the name that scikit-learn's splitters know.
        group : array-like of shape (n_queries,), default=None
            Query sizes in row order, as LightGBM takes them.
        X_val, y_val, sample_weight_val, qid_val : default=None
            Rows to stop early on.
        eval_set, eval_group, eval_qid : default=None
            The same as LightGBM and XGBoost take them: lists of one entry.

        Returns
        -------
        self : estimator
            Fitted. A fit that fails leaves it as it was.

        Raises
        ------
        ValueError, TypeError
            For every argument that cannot be meant; the message names it.
        """
        queries = {"qid": qid, "groups": groups, "group": group}
        validation = X_val, y_val, sample_weight_val, qid_val, eval_set, eval_group, eval_qid
        return self._check_and_fit(X, y, sample_weight, queries, validation)

    def _check_and_fit(
        self, X, y, sample_weight, queries, validation, feedback=NOTHING, feedback_val=NOTHING
    ):
        self._validate_params()
        if (ranks := driver()) is not None:
            held_out = validation if any(given is not None for given in validation) else None
            refuse_feedback(feedback)
            fit_on_ranks(self, ranks, X, y, sample_weight, held_out, **queries)
            return self
        context = self._open_context(self.max_iter, X, y)
        with trained_together(self) as communicator:
            if not communicator.alone:
                refuse_feedback(feedback)
            asks = {"ranker": self._wants_queries}
            data = self._check(X, y, sample_weight, communicator, **queries, **asks, feedback=feedback)
            held_out = check_validation(self, *validation, data, **asks, feedback=feedback_val)
            X_val, *_, eval_set, _, _ = validation
            X_held_out = X_val if eval_set is None else only_pair(eval_set)[0]
            self._fit(as_read(X, data), data, as_read(X_held_out, held_out), held_out, context)
        self._close_context(context, X, y)
        return self

    def _fit(self, X, data, X_held_out, held_out, context):
        n_threads, ranks, whole = effective_n_threads(self.n_jobs), data.share.communicator, data
        file = CheckpointFile(self.checkpoint, self.checkpoint_every, ranks)
        seed = self._seed(file, ranks)
        objective = self._objective(seed)
        if data.preferences is None:
            objective.check_labels(data.share.some_of_all(data.labels))
        self._refuse_fewer_trees(0 if self._earlier() is None else self._n_counted, "max_iter")
        stops = self._stops(held_out)
        if stops or held_out is not None:
            self._check_labels_to_follow(objective, data, held_out)
        if stops and held_out is None:
            X_held_out, (data, held_out) = X, hold_out(data, self.validation_fraction, seed)
        ranks.at("the cuts")
        mapper, codes = self._bin(data, n_threads)
        ranks.at("the start")
        bound = _bound(objective, data, n_threads)
        start = self._start(X, data, bound)
        rows, others = _Rows(X, data, mapper, codes, seen=True), None
        if held_out is not None:
            coded = mapper.for_others(held_out.X, held_out.order, n_threads)
            others = _Rows(X_held_out, held_out, *coded, seen=False)
        so_far = self._so_far(file, seed, start, bound, rows, others)
        bound.resume(*so_far.learned)
        start = replace(start, ensemble=so_far.ensemble)
        file.refuse_fewer_trees(start.n_added, self.max_iter, "max_iter")
        measure, validation, stopping = self._measure_to_follow(data), None, None
        train = Followed(measure, bound, data, start.scores(rows, n_threads), n_threads)
        if others is not None:
            validation = self._rows_to_follow(objective, others, start.scores(others, n_threads), n_threads)
            if len(so_far.validation_scores) < start.n_added:  # a former fit may have followed other rows
                scores = [validation.score_of(stage) for stage in start.stages(others, n_threads)]
                so_far = replace(so_far, validation_scores=scores)
        if stops:
            stopping = EarlyStopping(self.n_iter_no_change, self.tol, so_far.validation_scores)
        costs = self._costs()
        make_grower = self._growers(
            mapper,
            codes,
            n_threads,
            self._prices(costs, used_features(start.ensemble.nodes, self.n_features_in_)),
            data.share,
            l2_regularization=self.l2_regularization,
            gradient_sampling=self.gradient_sampling,
        )
        ensemble_of = self._ensemble_of(mapper, start.ensemble)

        def attributes(ensemble):
            return start.attributes(ensemble) | {"_link": _link_of(objective)}

        with self._watching(self.max_iter, context, attributes, X, whole) as watchers:
            callbacks = watchers if stopping is None else [stopping, *watchers]
            trees, train_scores, validation_scores = boost(
                make_grower,
                bound,
                train,
                learning_rate=self.learning_rate,
                rounds=range(start.n_added, self.max_iter),
                sampler=RowSampler(
                    data.offsets,
                    subsample=self.subsample,
                    query_subsample=self.query_subsample,
                    seed=seed,
                    share=data.share,
                ),
                seed=seed,
                step=self._step(data, n_threads),
                leaf_quantile=objective.leaf_quantile,
                validation=validation,
                follow_train=validation is not None or bool(self.verbose),
                callbacks=file.followed_by(callbacks, so_far, lambda: bound.learned),
                ensemble_of=ensemble_of,
            )
        self.n_iter_ = start.n_added + len(trees)
        self.best_iteration_ = self.n_iter_ if stopping is None else self._best_iteration(stopping)
        self._keep_scores(so_far, train_scores, validation_scores, train, validation)
        self._seed_, self._fitted_costs = seed, costs
        self._keep_of(bound)
        n_kept = start.n_init_trees + self.best_iteration_
        vars(self).update(attributes(ensemble_of(trees).first(n_kept)))

    def _stops(self, held_out):
        """Whether the fit may stop early, by rows that it does not learn from."""
        return held_out is not None if self.early_stopping == "auto" else self.early_stopping

    def _so_far(self, file, seed, start, bound, rows, others):
        """Checkpoint: where the fit stands, at one that was found, or else at its start."""
        n_threads = effective_n_threads(self.n_jobs)

        def trained():
            named = {"the training rows": rows} | ({} if others is None else {"the validation rows": others})
            said = {name: (of.data, of.codes, start.scores(of, n_threads)) for name, of in named.items()}
            return what_is_trained(self, rows.mapper, start.ensemble, said)

        scores = []
        if self._earlier() is not None:
            measure = spelt(self._measure_to_follow(rows.data))
            if self._followed.get("training") == measure:
                scores = self.train_score_[: start.n_added]
        begun = Checkpoint(ensemble=start.ensemble, seed=seed, train_scores=scores, learned=bound.learned)
        return file.going_on(begun, trained)

    def _best_iteration(self, stopping):
        if stopping.best_iteration == 0:
            raise ValueError(
                f"the score to stop by, scoring={self._scoring()!r}, was not defined for the validation rows "
                f"after any of {self.n_iter_} trees; expected some query that counts. Pass other validation "
                "rows, another scoring, or a measure that says what such queries count, as empty_query=0 "
                "does."
            )
        return stopping.best_iteration

    def _keep_scores(self, so_far, train_scores, validation_scores, train, validation):
        """Take what was followed, as fitted attributes."""
        train_scores = [*so_far.train_scores, *train_scores]
        if len(train_scores) < self.n_iter_:  # not followed from the first tree on
            train_scores = []
        self.train_score_ = np.array(train_scores)
        self.validation_score_ = np.array([*so_far.validation_scores, *validation_scores])
        sets = {"training": train} | ({} if validation is None else {"validation": validation})
        self._followed = {name: spelt(rows.measure) for name, rows in sets.items()}

    def _check_labels_to_follow(self, objective, data, held_out):
        """Raise if what is followed, a measure or the loss, cannot read the labels of its rows."""
        if (measure := self._measure_to_follow(data)) is not None:
            measure.check_labels(data.share.some_of_all(data.labels))
        if held_out is None:
            return
        if (measure := self._measure_to_follow(held_out)) is not None:
            measure.check_labels(held_out.share.some_of_all(held_out.labels), held_out.y_name)
        elif data.preferences is None and held_out.preferences is None:
            labels = [rows.share.some_of_all(rows.labels) for rows in (data, held_out)]
            with _followed_by_the_loss(held_out):
                # of both: what the loss needs to begin with, such as a positive label, training rows have
                objective.check_labels(np.concatenate(labels))

    def _rows_to_follow(self, objective, rows, scores, n_threads):
        """The validation rows as they are followed."""
        measure = self._measure_to_follow(rows.data)
        bound = None
        if measure is None:
            with _followed_by_the_loss(rows.data):
                bound = _bound(objective, rows.data, n_threads)
        return Followed(measure, bound, rows.data, scores, n_threads, rows.codes, rows.mapper)

    def _start(self, X, data, bound):
        """What boosting starts from: `init`, or with ``warm_start`` the model that is there."""
        if self._earlier() is not None:
            self._resume(bound)
            self._require_rows_of_before(data)
            return _Start(self.ensemble_, self.init_, self.n_init_trees_, self.init_scores_)
        if self.init is None or isinstance(self.init, Real):
            if self.init_cv is not None:
                raise ValueError(
                    f"init_cv={self.init_cv!r}, but init={self.init!r} is no model to be fitted."
                )
            return _Start(self._no_trees(bound.start() if self.init is None else float(self.init)))
        init, scores = self._fitted_init(X, data)
        ensemble = self._no_trees()
        if (own := own_model(init)) is not None:
            try:
                check_columns(own, X, reset=False)
            except ValueError as error:
                raise ValueError(
                    f"init={own!r} was fitted to other columns than X has; expected the same, in the same "
                    f"order: {error}"
                ) from error
            if own._link and not _is_same(own._link, _link_of(bound.objective)) and not self._is_ranker:
                raise ValueError(
                    f"init={own!r} has scores on another scale than its predictions; expected an init with "
                    f"the loss of this {type(self).__name__}, or one whose predictions are its scores."
                )
            ensemble = Ensemble.joined([respelt(own, self._category_levels)])
            ensemble = over_columns_of(self, ensemble)
        if scores is not None:
            of_rows = np.full(data.X.shape[0], np.nan)
            of_rows[slice(None) if data.order is None else data.order] = scores
            scores = of_rows
        return _Start(ensemble, init, len(ensemble), scores)

    def _require_rows_of_before(self, data):
        """Raise if boosting began at scores of single rows, and these are others."""
        scores = self.init_scores_
        if scores is None:
            return
        same = len(scores) == data.X.shape[0]
        if not same or np.isnan(scores if data.order is None else scores[data.order]).any():
            raise ValueError(
                f"with warm_start and init_cv={self.init_cv!r} boosting goes on from what the "
                f"{len(scores)} rows of the first fit started from, and X holds others; expected the "
                "same rows, in the same order."
            )

    def _fitted_init(self, X, data):
        """(fitted init, what each training row starts from; None if that is what the former says of it)"""
        if isinstance(self.init, type):
            name = self.init.__name__
            raise TypeError(f"init is the class {name}; expected an estimator: pass {name}().")
        name, cv = type(self.init).__name__, self.init_cv
        if is_fitted(self.init):
            if cv is not None:
                raise ValueError(
                    f"init is a fitted {name}, and init_cv={cv!r} asks for scores by models that have not "
                    "seen the row; expected one that is fitted here: pass clone(init), or init_cv=None."
                )
            return self.init, None
        if isinstance(X, Spool):
            raise ValueError(
                f"init is a {name} that is not fitted, but X is in batches, which only estimators of trees "
                "read; expected one that is fitted: fit it first, and pass it."
            )
        if data.labels is None:
            raise ValueError(
                f"init is a {name} that is to be fitted here, but y is None; expected labels for it, too, or "
                "one that is fitted already."
            )
        rows = indexable(X)[0]
        rows = rows if data.order is None else _safe_indexing(rows, data.order)
        own = own_model(self.init)
        asks = data.qid_given or (own is not None and own._wants_queries)  # of our own rows it need not warn
        queries = data.query_of_row if asks else None
        if not data.share.communicator.alone and (cv is not None or own is None):
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
        return init, self._out_of_fold(rows, data, queries, asked_of_folds(init))

    def _out_of_fold(self, rows, data, queries, asked):
        as_they_came = np.arange(data.n_rows) if data.order is None else np.argsort(data.order)
        of_rows = rows, data.labels, data.weights, queries, data.query_of_row if data.qid_given else None
        *given, folds_by = (None if of is None else _safe_indexing(of, as_they_came) for of in of_rows)
        folds = folds_of_rows(self.init_cv, *given[:2], folds_by, is_classifier(self), "init_cv")
        say = partial(_scores_to_start_from, asked=asked)
        scores = np.empty(data.n_rows)
        [scores[as_they_came]] = said_out_of_fold([(self.init, say)], *given, folds)
        return scores

    def _fitted_forest(self, rows, data, queries):
        forest = self.init
        if not isinstance(forest, TreeEnsembleEstimator) or not getattr(forest, "bootstrap", False):
            raise ValueError(
                f'init_cv="oob", but init={forest!r} leaves no rows out of bag; expected a '
                "RandomForestRanker with bootstrap=True: pass one, or a number of folds as init_cv."
            )
        forest = clone(forest).set_params(oob_score=forest.oob_score or True)
        forest = fitted_clone(forest, rows, data.labels, data.weights, queries)
        scores = forest.oob_prediction_
        if n_never := np.count_nonzero(np.isnan(scores)):
            warn(
                f"{n_never} of {len(scores)} rows were never out of bag: they start from the mean label. "
                "Grow more trees, or draw fewer rows for each.",
                UserWarning,
            )
        return forest, np.where(np.isnan(scores), forest.ensemble_.base, scores)

    def _known_levels(self):
        init = own_model(self.init) if self._earlier() is None and self._keeps_init else None
        return super()._known_levels() if init is None else getattr(init, "_category_levels", {})

    @property
    def _keeps_init(self):
        return not isinstance(self.init, type) and is_fitted(self.init)

    def __sklearn_clone__(self):
        twin = super().__sklearn_clone__()
        if self._keeps_init:
            twin.init = self.init
        return twin

    def get_params(self, deep=True):
        """Get parameters.

        Parameters
        ----------
        deep : bool, default=True
            Whether to list those of ``init``, too, as ``init__<name>``, unless it is fitted.

        Returns
        -------
        params : dict
        """
        return super().get_params(deep and not self._keeps_init)

    def set_params(self, **params):
        """Set parameters.

        Parameters
        ----------
        **params : dict
            By name; those of an ``init`` that is not fitted as ``init__<name>``.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If ``init`` is fitted and one of its parameters is to be changed, which would have no effect.
        """
        inner = [name for name in params if name.startswith("init__")]
        if inner and "init" not in params and hasattr(self.init, "fit") and self._keeps_init:
            raise ValueError(
                f"{inner[0]}={params[inner[0]]!r} has no effect: init is fitted, and stays as it is; "
                "expected one that is fitted here: pass clone(init)."
            )
        return super().set_params(**params)

    def _scoring(self):
        return "loss" if self.scoring is None else self.scoring

    def _measure_to_follow(self, data):
        """The measure that these rows are followed by; None: the loss."""
        if self._scoring() == "loss":
            return None
        measure = as_measure(self._scoring())
        if measure.by_order and not data.share.named:
            raise ValueError(
                f"scoring={self.scoring!r} is a mean over queries, and without qid= all rows are one, which "
                "cannot be dealt to ranks. Pass the query ids of each rank's rows."
            )
        return measure

    def _resume(self, bound):
        """Give the objective back what `_keep_of` took from it."""

    def _leaf_values_by(self, data, n_threads):
        """How the values of a tree's leaves follow from the gradients."""
        return {
            "learning_rate": self.learning_rate,
            "l2_regularization": self.l2_regularization,
            "step": self._step(data, n_threads),
        }

    def _forget_scores(self):
        self.train_score_, self.validation_score_ = np.empty(0), np.empty(0)

    def _step(self, data, n_threads):
        """What finds the weight of a new tree; None: it is ``learning_rate``."""

    def _starting_scores(self, X):
        return _scores_of_foreign(self.init_, X)

    def _foreign_init(self):
        return _foreign(self.init_)


def _link_of(objective):
    """What makes predictions of scores; None where they are the same."""
    return None if type(objective).inverse_link is Objective.inverse_link else objective.inverse_link


def _is_same(link, other):
    return getattr(link, "__func__", None) is getattr(other, "__func__", None)


class _Rows(NamedTuple):
    """Rows of a fit, and their codes by a mapper."""

    X: Any  # as it came, for models of other kinds
    data: FitData
    mapper: BinMapper
    codes: np.ndarray
    seen: bool  # by the init, in its fit


@dataclass(frozen=True, eq=False)
class _Start:
    """What boosting starts from.

    Attributes
    ----------
    ensemble : Ensemble
        The trees of the init, if it has any of ours, and those that have been added already.
    init : fitted estimator or None
    n_init_trees : int
    init_scores : ndarray of float64, shape (n_rows,), or None
        What rows that the init has seen start from, row by row of X; None is what it says of them.
    """

    ensemble: Ensemble
    init: Any = None
    n_init_trees: int = 0
    init_scores: np.ndarray | None = None

    @property
    def n_added(self):
        """How many trees have been added."""
        return len(self.ensemble) - self.n_init_trees

    def attributes(self, ensemble):
        """The fitted attributes of a model that started here."""
        return {
            "init_": self.init,
            "n_init_trees_": self.n_init_trees,
            "init_scores_": self.init_scores,
            "ensemble_": ensemble,
        }

    def scores(self, rows, n_threads):
        """float64[n_rows], in internal order: what the trees to come are added to."""
        ensemble, scores, data = self.ensemble, self.init_scores, rows.data
        if rows.seen and scores is not None:
            ensemble = ensemble.after(self.n_init_trees)
        else:
            scores = _scores_of_foreign(self.init, rows.X)
        scores = by_parts(lambda part, start: ensemble.predict(part, n_threads, start=start), data.X, scores)
        return scores if data.order is None else scores[data.order]

    def stages(self, rows, n_threads):
        """The same after each tree that has been added, of rows that the init has not seen."""
        ensemble, data, first = self.ensemble, rows.data, self.n_init_trees
        scores = by_parts(
            lambda part, foreign: ensemble.first(first).predict(part, n_threads, start=foreign),
            data.X,
            _scores_of_foreign(self.init, rows.X),
        )
        for n in range(first, len(ensemble), STAGES):
            trees = ensemble.first(min(n + STAGES, len(ensemble))).after(n)
            stages = by_parts(partial(_scores_after_each, trees, n_threads), data.X, scores)
            scores = np.ascontiguousarray(stages[:, -1])
            for stage in stages.T:
                yield np.ascontiguousarray(stage if data.order is None else stage[data.order])


@contextmanager
def _followed_by_the_loss(data):
    """Say of which rows the labels are, where the loss refuses them."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{data.y_name} cannot be followed by the loss: {error}") from error


def _bound(objective, data, n_threads):
    """The objective, joined with these rows."""
    n_threads = threads_for(n_threads, 16 * data.n_rows)
    rows = data.labels, data.weights, data.offsets
    return objective.bind(*rows, n_threads, *data.share.others, **data.feedback)


def _scores_after_each(trees, n_threads, rows, start):
    """float64[n_rows, n_trees]"""
    return np.stack(list(trees.staged_predict(rows, n_threads, start=start)), axis=1)


def as_read(X, data):
    """X as it came, for models of other kinds; what came in batches as it was read."""
    return data.X if isinstance(X, Batches) else X


def _foreign(init):
    """The model not of trees of ours that boosting, or what it started from, started from; None without."""
    own = own_model(init)
    return init if own is None else own._foreign_init()


def _scores_of_foreign(init, X):
    foreign = _foreign(init)
    return None if foreign is None else by_parts(lambda rows, _: scores_by(foreign, rows), X)


def _scores_to_start_from(model, X, asked):
    """Those of `scores_by`; of a model of ours before they become predictions."""
    own = own_model(model)
    return scores_by(model, X, **asked) if own is None else own._scores(X, check_rows(own, X, reset=False))
