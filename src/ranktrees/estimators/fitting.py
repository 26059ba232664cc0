"""How estimators of trees are fitted: what boosting and forests have in common.

Each parameter is defined once, as a field of the class that has it. Subclasses only define what they change.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ranktrees._core.support.threads import StandardFloats
from ranktrees.binning.edges import MOST_BINS
from ranktrees.binning.levels import Targets
from ranktrees.binning.mapper import BinMapper
from ranktrees.estimators.columns import recoded, with_columns_of
from ranktrees.estimators.fit_warnings import warn_of_levels
from ranktrees.estimators.fitted import FittedTrees
from ranktrees.estimators.links import is_same_link, link_of
from ranktrees.estimators.parameters import with_keywords, with_parameters
from ranktrees.growing.constraints import (
    Constraints,
    categorical_mask,
    interaction_sets,
    monotone_signs,
    number_of_features,
    usable_features,
    varying_features,
)
from ranktrees.growing.grower import TreeGrower
from ranktrees.growing.packing import counts_of
from ranktrees.growing.rounding import refuse_more_rows
from ranktrees.growing.split_search import STREAMING, searches
from ranktrees.growing.streaming import mapper_of_values
from ranktrees.model.costs import FeatureCosts, Prices
from ranktrees.model.ensemble import Ensemble
from ranktrees.objectives import Objective
from ranktrees.rows import check_fit, check_score
from ranktrees.rows.batches import Batches
from ranktrees.rows.features import keys_of, names_of
from ranktrees.rows.feedback import NOTHING
from ranktrees.rows.sampling import rows_to_cut
from ranktrees.support.numeric import is_real
from ranktrees.support.parallel import effective_n_threads, threads_for
from ranktrees.support.progress import kind_of_bar
from ranktrees.support.scikit_learn import CallbackSupportMixin
from ranktrees.training.boosting import FollowedRows
from ranktrees.training.callbacks import PrintedLines, ProgressBar, ScikitLearnCallbacks
from ranktrees.training.ranks import refuse_disagreement, refuse_other_estimators
from ranktrees.training.refitting import refit_leaves

if TYPE_CHECKING:
    from ranktrees.model.ensemble import Trees
    from ranktrees.objectives.base import PreparedObjective
    from ranktrees.processes.communicator import Communicator
    from ranktrees.processes.sharing import Share
    from ranktrees.rows.data import FitData
    from ranktrees.rows.feedback import Feedback
    from ranktrees.support.annotations import IdsLike, PathLike, RowsLike
    from ranktrees.training.callbacks import Watcher
    from ranktrees.training.checkpoints import CheckpointFile

ROWS_TO_CUT = 200_000  # more rows do not place the cuts of 255 bins better

TREE_CONSTRAINTS = {
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
    "max_bins": [Interval(Integral, 2, MOST_BINS, closed="both")],
    "subsample_for_bin": [Interval(Integral, 1, None, closed="left"), None],
    "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    "monotonic_cst": ["array-like", dict, None],
    "interaction_cst": [list, tuple, StrOptions({"pairwise", "no_interactions"}), None],
    "handle_missing": [StrOptions({"learned", "left", "right", "three_way"})],
    "feature_costs": ["array-like", Mapping, None],
    "cost_rule": [StrOptions({"rank", "worth"})],
    "cost_weight": [Interval(Real, 0, None, closed="left")],
    "feature_groups": ["array-like", None],
    "warm_start": ["boolean"],
    "checkpoint": [str, os.PathLike, None],
    "checkpoint_every": [Interval(Integral, 1, None, closed="left")],
    "verbose": ["verbose", StrOptions({"bar"})],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
}


@with_parameters
class TreeEnsembleEstimator(CallbackSupportMixin, FittedTrees):
    r"""The base class of the estimators that grow trees.

    Parameters
    ----------
    max_leaf_nodes : int or None, default=31
        The maximum number of leaves of each tree. Trees grow best leaf first. If a tree may have more than 16
        leaves, those are split together that would be split in any case, as far as the gains of its splits so
        far tell. With ``feature_costs`` they are split one by one, in trees before which some feature is
        still to be paid for. If None, trees grow layer by layer, without a limit.
    max_depth : int or None, default=None
        The maximum number of splits between the root and a leaf. If None, only the number of leaves limits
        the depth.
    min_samples_leaf : int, default=20
        The minimum number of training rows in each leaf. Rows that were not drawn for the tree are counted,
        too, and so are rows of weight 0; to leave rows out, drop them.
    max_bins : int, default=255
        The maximum number of bins of each feature, at most 255. Missing values have an additional bin.
    subsample_for_bin : int or None, default=200_000
        The approximate number of rows, drawn once, from which the cuts of the bins are found. If None, all
        rows are used. All rows are also used for categorical features, for features that have a single value
        among the rows drawn, and with ``split_search="exact"``, "streaming" or "pgbrt".
    split_search : {"auto", "full", "coarse_to_fine", "exact", "streaming", "pgbrt"}, default="auto"
        How the best split of a leaf is found:

        - "full" considers every bin.
        - "coarse_to_fine" joins the bins of each feature to 16 cells, picks up to four features that seem
          best, and considers all bins of those. It is two to three times faster than "full", with little or
          no loss of accuracy (see the performance pages).
        - "auto" is "coarse_to_fine" if there are 64 features, none of them of up to 255 categories, and each
          split considers at least an eighth of them, unless ``handle_missing="three_way"``, or features have
          few bins (up to 7 on average), as flags and words have. Otherwise it is "full".
        - "exact" makes a bin of each distinct value, so that every cut half-way between two neighbouring
          values is tried. It is the reference for the others. It is slower, and takes 4 bytes of memory per
          value of ``X`` if a feature has more than 255 distinct values, and 8 bytes per distinct value.
          ``max_bins`` must be left at 255.
        - "pgbrt" makes histograms of at most ``max_bins`` centroids of the rows of each leaf, one row after
          another, and takes the split that is best by these alone, as the paper on pGBRT does. It is slower
          than "full", and is meant for comparisons with it. See the guide, "Streaming histograms".
        - "streaming" has the splits of such histograms confirmed by the rows.
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        The categorical features: a boolean mask, indices or names. If "from_dtype", they are the categorical
        columns of a data frame. If None, there are none, and such columns are refused. Columns of strings
        and ordered categories of pandas are categorical only if they are among the features given here. The
        latter are numbers otherwise, by the place of each level in the dtype. A feature may have up to 65,535
        categories. More than 255 are put in order by the labels of their rows. See the guide, "More than 255
        categories".
    monotonic_cst : array-like of int or dict, default=None
        The monotonic constraint of each feature on scores: 1 for an increase, -1 for a decrease, and 0 for no
        constraint. A dict maps names or indices of features to constraints.
    interaction_cst : {"pairwise", "no_interactions"} or sequence of sets of names or indices, default=None
        The features that may be used together on a branch: any two with "pairwise", a single one with
        "no_interactions", or those of one of the given sets. Features in no set form one more set.
    handle_missing : {"learned", "left", "right", "three_way"}, default="learned"
        The side of a split to which rows without a value go. With "learned", each split learns the better
        side. With "left" or "right", it is always the left or the right side of a cut. With "three_way",
        these rows are parted from all others, which are split by their best cut at the same time. See the
        guide, "Treatments of missing values".
    feature_costs : array-like of shape (n_features,) or mapping, default=None
        The cost of each feature: one number of at least 0 per feature, or a dict from names or indices to
        costs, which may leave out features that cost nothing. A feature that a split has already used is
        free. See the guide, "Features that cost".
    cost_rule : {"rank", "worth"}, default="rank"
        What costs decide. With "rank", a leaf takes the split that maximises ``gain - cost_weight * cost``
        among all that gain anything: costs decide which split is made, never whether. With "worth", splits
        maximise ``gain / H - cost_weight * cost``, where H is the sum of the hessians of all rows of the
        tree, and a leaf is only split if this is above 0.
    cost_weight : float, default=1.0
        How much costs weigh. With the squared error, a unit of cost weighs as much as this decrease of the
        sum of squared errors, which grows with the number of rows ("rank", lambda in Mohan's survey), or of a
        tree's mean squared error ("worth"; if costs are numbers such as 1 to 100, begin with 1e-4). With 0,
        training is the same as without costs.
    feature_groups : sequence of sets of names or indices, default=None
        Sets of features that have the same cost and are paid for together: when one of them is used, all
        features of its set are free.
    warm_start : bool, default=False
        Whether `fit` adds trees to those of the previous fit, rather than starting anew.
    checkpoint : path-like, default=None
        The file to which `fit` writes its state, so that it can be continued after an interruption. If `fit`
        is called again with the same path, it continues from there, and gives the same model. When a fit
        succeeds, it removes the file. See the guide, "Checkpoints".
    checkpoint_every : int, default=10
        The number of trees between two checkpoints.
    verbose : int or "bar", default=0
        If above 0, print a line every ``verbose`` trees. If "bar", draw a progress bar (needs tqdm).
    random_state : int, RandomState or None, default=None
        The source of randomness for everything that is drawn. With an int, each fit gives the same model. If
        None, each fit draws anew.
    n_jobs : int or None, default=None
        The number of threads. None and -1 use all processors. The model does not depend on it.

    Attributes
    ----------
    ensemble_ : Ensemble
        The trees, stored in arrays.
    feature_importances_ : ndarray of float64, shape (n_features,)
        The share of each feature in the total gain of all splits.
    n_features_in_ : int
        The number of columns of ``X``.
    feature_names_in_ : ndarray of str
        The names of the columns of a data frame. Defined only if all names are strings.
    """

    max_leaf_nodes: int | None = 31
    max_depth: int | None = None
    min_samples_leaf: int = 20
    max_bins: int = 255
    subsample_for_bin: int | None = ROWS_TO_CUT
    split_search: Literal["auto", "full", "coarse_to_fine", "exact", "streaming", "pgbrt"] = "auto"
    categorical_features: ArrayLike | str | None = "from_dtype"
    monotonic_cst: ArrayLike | Mapping[Any, Any] | None = None
    interaction_cst: Literal["pairwise", "no_interactions"] | Sequence[Any] | None = None
    handle_missing: Literal["learned", "left", "right", "three_way"] = "learned"
    feature_costs: ArrayLike | Mapping[Any, Any] | None = None
    cost_rule: Literal["rank", "worth"] = "rank"
    cost_weight: float = 1.0
    feature_groups: Sequence[Any] | None = None
    warm_start: bool = False
    checkpoint: PathLike | None = None
    checkpoint_every: int = 10
    verbose: int | Literal["bar"] = 0
    random_state: int | np.random.RandomState | None = None
    n_jobs: int | None = None

    __metadata_request__fit = {"qid": True, "groups": True}  # noqa: RUF012

    _averages = False  # whether a score is the mean of the trees rather than their sum

    def _bin(self, data: FitData, n_threads: int, costs: FeatureCosts | None) -> tuple[BinMapper, Any]:
        """Return the mapper of the training rows, and their codes."""
        refuse_more_rows(data.share.n_rows)
        exact = self.split_search == "exact"
        if exact and self.max_bins != MOST_BINS:
            raise ValueError(
                f'max_bins={self.max_bins} joins values, but split_search="exact" tries every value; leave '
                f'max_bins at {MOST_BINS}, or use split_search="full".'
            )
        if self.split_search in ("exact", *STREAMING) and self.subsample_for_bin not in (ROWS_TO_CUT, None):
            raise ValueError(
                f"subsample_for_bin={self.subsample_for_bin} draws rows, but "
                f'split_search="{self.split_search}" uses all of them; leave subsample_for_bin at '
                f"{ROWS_TO_CUT}, or None."
            )
        categorical, ranks = categorical_mask(self.categorical_features, self), data.share.communicator
        names = names_of(self)
        targets = None if categorical is None or not categorical.any() else self._targets(data)
        if self.split_search in STREAMING:
            return mapper_of_values(data.X, data.order, data.weights, categorical, n_threads, ranks, names)
        n_drawn = None if exact else self.subsample_for_bin
        drawn = rows_to_cut(data.share, data.n_rows, n_drawn, data.weights, n_threads)
        mapper = BinMapper.fit(
            data.X,
            max_bins=None if exact else self.max_bins,
            weights=data.weights,
            order=data.order,
            drawn=drawn,
            categorical=categorical,
            least_entries=int(self.min_samples_leaf) if costs is None and not exact else 0,
            n_threads=n_threads,
            communicator=ranks,
            names=names,
            targets=targets,
        )
        warn_of_levels(mapper, names, "query" if data.qid_given else "row")
        encode = mapper.encode if exact else mapper.codes
        folds = targets.folds if targets is not None and mapper.levels else None
        return mapper, encode(data.X, data.order, n_threads, folds)

    def _targets(self, data: FitData) -> Targets:
        """Return what the levels of a feature are put in order by if they are many.

        These are labels, for rankers less the mean of their query; of more than two classes, whether a row is
        of the most frequent one; without labels, what preferences say for a row less what they say against
        it. A fold has whole queries.
        """
        labels = data.labels
        if data.preferences is not None and labels is None:
            labels = data.preferences.surplus(data.n_rows)
        elif data.classes is not None and len(data.classes) > 2:
            counts = np.bincount(labels.astype(np.intp), minlength=len(data.classes))
            labels = (labels == data.share.communicator.allreduce(counts).argmax()).astype(np.float64)
        elif self._wants_queries and data.qid_given:
            sizes = np.diff(data.offsets)
            labels = labels - np.repeat(np.add.reduceat(labels, data.offsets[:-1]) / sizes, sizes)
        if data.qid_given:
            numbers = data.query_of_row
        else:
            numbers = data.share.row_numbers
            numbers = np.arange(data.n_rows) if numbers is None else numbers
        return Targets.of(labels, data.weights, numbers)

    def _costs(self) -> FeatureCosts | None:
        """Return the costs that were passed as FeatureCosts, or None."""
        if self.feature_costs is not None:
            return FeatureCosts.of(
                self.feature_costs, self.feature_groups, self.n_features_in_, keys_of(self)
            )
        if self.feature_groups is not None:
            raise ValueError(
                "feature_groups lists features that become free together, but without feature_costs all "
                "features are free: pass feature_costs, too."
            )
        for name, says in (("cost_rule", "what costs decide"), ("cost_weight", "how much costs weigh")):
            value, default = getattr(self, name), getattr(type(self), name)
            if value not in (default, 0):  # a weight of 0 trains as without costs
                raise ValueError(
                    f"{name}={value!r} is {says}, but without feature_costs all features are free: pass "
                    f"feature_costs, too, or leave {name} at {default!r}."
                )
        return None

    def _prices(self, costs: FeatureCosts | None, used: np.ndarray, n_features: int) -> Prices:
        """Return the prices of the features of a mapper, some of which are in use already."""
        if costs is None:
            return Prices.none(n_features)
        return Prices(costs, self.cost_weight, used, self.cost_rule)

    def _growers(
        self, mapper: BinMapper, codes: Any, n_threads: int, prices: Prices, share: Share, **settings: Any
    ) -> Callable[[], TreeGrower]:
        """Return a function that makes a tree grower on these codes, at the current prices."""
        ranks, counts = share.communicator, None
        if codes.itemsize > 1 or self.split_search in STREAMING:
            usable = varying_features(mapper, codes, ranks)
        else:
            counts = counts_of(codes, n_threads, ranks)
            usable = usable_features(counts, int(self.min_samples_leaf))
        is_categorical = np.array(mapper.of_columns(mapper.is_unordered, False), np.uint8)
        signs = monotone_signs(self.monotonic_cst, self, is_categorical)
        sets = interaction_sets(self.interaction_cst, self.n_features_in_, keys_of(self))
        constraints = partial(
            Constraints,
            usable,
            mapper.n_features,
            monotone=None if signs is None else mapper.of_features(signs),
            interactions=None if sets is None else [mapper.features_among(members) for members in sets],
            missing=self.handle_missing,
            max_features=number_of_features(self._features_of_a_split(share), len(usable)),
        )
        n_jobs = effective_n_threads(self.n_jobs)
        make_search = searches(
            self.split_search,
            codes,
            mapper,
            constraints(),
            n_jobs,
            ranks,
            self.max_bins,
            deep=self.max_leaf_nodes is None,
            counts=counts,
        )
        return lambda: TreeGrower(
            codes,
            mapper,
            constraints(),
            prices.copy(),
            make_search,
            max_leaf_nodes=self.max_leaf_nodes,
            max_depth=self.max_depth,
            min_samples_leaf=int(self.min_samples_leaf),
            n_threads=n_threads,
            share=share,
            **settings,
        )

    def _open_context(self, n_iterations: int, X: RowsLike, y: ArrayLike | None) -> Any:
        """Return the context of scikit-learn's callbacks; None before scikit-learn 1.9."""
        if not hasattr(self, "_init_callback_context"):
            return None
        context = self._init_callback_context(max_subtasks=n_iterations)
        return context.call_on_fit_task_begin(estimator=self, X=X, y=y)

    def _close_context(self, context: Any, X: RowsLike, y: ArrayLike | None) -> None:
        if context is not None:
            context.call_on_fit_task_end(estimator=self, X=X, y=y)

    @contextmanager
    def _watching(
        self,
        n_iterations: int,
        context: Any,
        attributes: Callable[[Ensemble], dict[str, Any]],
        X: RowsLike,
        data: FitData,
        scores: dict[str, Sequence[float]] | None = None,
    ) -> Iterator[list[Watcher]]:
        """Yield the callbacks that show progress: by ``verbose``, on one rank, and scikit-learn's."""
        watchers: list[Watcher] = []
        if data.share.communicator.rank > 0:
            pass
        elif self.verbose == "bar":
            watchers.append(ProgressBar(type(self).__name__, n_iterations))
        elif self.verbose:
            watchers.append(PrintedLines(type(self).__name__, max(1, int(self.verbose))))
        if context is not None and getattr(context, "_callbacks", True):
            watchers.append(ScikitLearnCallbacks(self, context, attributes, X, data, scores))
        try:
            yield watchers
        finally:
            for watcher in watchers:
                watcher.close()

    def _features_of_a_split(self, share: Share) -> float | str | None:
        """Return a number of features, or a share of them, as `number_of_features` takes it."""
        return self.max_features

    def _no_trees(self, base: float = 0.0, average: bool = False, link: str | None = None) -> Ensemble:
        none = Ensemble.from_trees([], n_features=self.n_features_in_, base=base, average=average, link=link)
        return with_columns_of(self, none)

    def _ensemble_of(self, mapper: BinMapper, before: Ensemble) -> Callable[[Trees], Ensemble]:
        """Return a function that appends the trees so far to those of ``before``, as a model."""

        def ensemble_of(trees: Trees) -> Ensemble:
            added = trees.ensemble(
                n_features=self.n_features_in_,
                categories=mapper.of_columns(mapper.known_categories) if mapper.is_unordered.any() else None,
                groups=mapper.of_columns(mapper.category_groups) if mapper.levels else None,
                base=before.base,
                average=before.average,
                link=before.link,
            )
            return before.extend(added)

        return ensemble_of

    def _check(
        self,
        X: RowsLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        communicator: Communicator,
        **given: Any,
    ) -> FitData:
        """Return the data as `check_fit` does. Existing trees get to know the categories of all fits."""
        refuse_other_estimators(self, communicator)
        if self.verbose == "bar" and communicator.rank == 0:
            kind_of_bar()  # refused here if there is none, rather than once all rows have been read
        known = self._known_levels()
        data = check_fit(self, X, y, sample_weight, communicator=communicator, known_levels=known, **given)
        refuse_disagreement(self, data)
        if self._earlier() is not None and self._category_levels != known:
            self._recode(known)
        return data

    def _weighed(self, rows: FitData, by: FitData) -> FitData:
        """Return rows with the weights that the parameters give them, according to the training rows."""
        return rows

    def _recode(self, known: dict[int, tuple[Any, ...]]) -> None:
        self.ensemble_ = recoded(self, self._category_levels, known)

    def _known_levels(self) -> dict[int, tuple[Any, ...]]:
        """Return the levels of category columns that existing trees use."""
        return self._category_levels if self._earlier() is not None else {}

    def _earlier(self) -> Any:
        """Return the model to continue from, with ``warm_start``."""
        return self.ensemble_ if self.warm_start and hasattr(self, "ensemble_") else None

    def _keep_of(self, prepared: PreparedObjective) -> None:
        """Set what the objective has learned besides trees as fitted attributes."""

    def _refuse_fewer_trees(self, n_earlier: int, name: str) -> None:
        if n_earlier > getattr(self, name):
            raise ValueError(
                f"{name}={getattr(self, name)} is less than the {n_earlier} trees that the model has; "
                f"with warm_start=True raise {name} to add trees."
            )

    def _seed(self, file: CheckpointFile, communicator: Communicator) -> int:
        if file.found is not None:
            return file.found.seed
        if self._earlier() is not None:
            return self._seed_
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        return communicator.bcast(seed)

    @with_keywords
    def refit_leaves(
        self,
        X: RowsLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        qid: IdsLike | None = None,
        groups: IdsLike | None = None,
        decay: float = 0.9,
    ) -> Self:
        r"""Return a copy whose leaves have new values, learned from other rows on the same splits.

        Tree by tree, each leaf that rows reach gets the value

        .. math:: \mathit{decay} \cdot \mathit{old} + (1 - \mathit{decay}) \cdot \mathit{new},

        where *new* is the value that training would have given it on these rows: a step at the scores of the
        trees before, which are refitted already (see the guide, "Adapting a model to other queries"). What
        boosting started from, ``init``, stays as it is.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            The labels. A pandas Series whose index has a level named "qid" supplies the query ids as well.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights >= 0.
        qid, groups : array-like of shape (n_rows,), default=None
            The query id of each row, in any order. ``groups`` is another name for ``qid``.
        decay : float, default=0.9
            The weight of the old values. With 1 they are kept, with 0 they are forgotten.

        Returns
        -------
        refitted : estimator
            A fitted estimator. The original stays as it is. Attributes that were followed in training
            describe the old leaves: ``train_score_`` and ``validation_score_`` are empty in the copy, and it
            does not have ``oob_score_`` and ``oob_prediction_``.
            The model does not depend on ``n_jobs``.

        Raises
        ------
        ValueError
            If ``decay`` is out of its range; if ``monotonic_cst`` is set, since new values may violate it;
            and for the same reasons as in `fit` and `score`.

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

    def _refit_leaves(
        self,
        X: RowsLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        queries: dict[str, Any],
        decay: float,
        feedback: Feedback = NOTHING,
    ) -> Self:
        check_is_fitted(self)
        if not (is_real(decay) and 0 <= decay <= 1):
            raise ValueError(f"decay={decay!r}: expected the share of the old values, from 0 to 1.")
        if self.monotonic_cst is not None:
            raise ValueError(
                "refit_leaves cannot keep monotonic_cst: the new value of each leaf is found without regard "
                "to the others. Fit a model that starts from this one instead, with init=."
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
        data = self._weighed(data, by=data)
        n_threads = effective_n_threads(self.n_jobs)
        objective = self._objective(self._seed_)
        if not is_same_link(link_of(objective), self._link):
            raise ValueError(
                f"loss={objective!r} has scores on a different scale from the loss of the fit; expected the "
                "loss of the fit: set it again, or fit a new model."
            )
        if data.preferences is None:
            objective.check_labels(data.labels)
        refitted = copy.copy(self)
        with StandardFloats(n_threads):
            prepared = prepare(objective, data, n_threads)
            before = self.ensemble_.first(self.n_init_trees_)
            scores = data.internal(before.predict(data.X, n_jobs=n_threads, start=self._starting_scores(X)))
            refitted.ensemble_ = refit_leaves(
                self.ensemble_,
                FollowedRows(None, prepared, data, scores),
                first=self.n_init_trees_,
                **self._leaf_values_by(data, n_threads),
                leaf_quantile=objective.leaf_quantile,
                decay=decay,
                n_threads=n_threads,
            )
        refitted._forget_scores()
        refitted._keep_of(prepared)
        return refitted

    def _around(self, model: FittedTrees, n_rows: int) -> Self:
        """Return a copy that is fitted: as if it had grown the trees of a model, from so many rows."""
        ensemble, name = model.ensemble_, type(self).__name__
        if is_classifier(self):
            raise ValueError(
                f"estimator is a {name}, which knows classes, but these trees give a score to each row; "
                'expected a ranker or a regressor: for two classes, HistGBRTRegressor("logistic").'
            )
        if ensemble.average != self._averages:
            kinds = ["sum of its trees, as boosting makes it", "mean of its trees, as of a forest"]
            raise ValueError(
                f"estimator is a {name}, but a score of the ensemble is the {kinds[ensemble.average]}; "
                f"expected {'RandomForestRanker()' if ensemble.average else 'an estimator that boosts'}."
            )
        copied = clone(self)
        copied._validate_params()
        copied._seed_ = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        copied._link = link_of(copied._objective(copied._seed_))
        if model._link is not None and not self._is_ranker and not is_same_link(model._link, copied._link):
            raise ValueError(
                f"estimator is {self!r}, but the ensemble has link={ensemble.link!r}, so that its scores are "
                "on another scale than those of this loss; expected the loss of the trees, or a ranker."
            )
        copied.ensemble_ = ensemble.with_link(copied._link_to_keep(copied._link))
        copied.n_features_in_ = model.n_features_in_
        copied._category_levels, copied._qid_given = model._category_levels, model._qid_given
        if names := names_of(model):
            copied.feature_names_in_ = np.asarray(names, object)
        return copied


def prepare(objective: Objective, data: FitData, n_threads: int) -> PreparedObjective:
    """Return the objective, prepared for these rows."""
    n_threads = threads_for(n_threads, 16 * data.n_rows)
    rows = data.labels, data.weights, data.offsets
    shares = () if data.share.communicator.alone else (data.share,)  # an objective of a user may take none
    return objective.prepare(*rows, n_threads, *shares, **data.feedback)


def as_read(X: RowsLike, data: Any) -> Any:
    """Return X as it was passed, for other kinds of models; batches as they were read."""
    return data.X if isinstance(X, Batches) else X
