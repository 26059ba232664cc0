"""A random forest for ranking."""

from __future__ import annotations

import sys
from dataclasses import field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from ranktrees.estimators.fit_warnings import warn_of_no_more_trees, warn_of_samples, warn_of_trees
from ranktrees.estimators.fitting import TREE_CONSTRAINTS, TreeEnsembleEstimator, as_read
from ranktrees.estimators.parameters import with_keywords, with_parameters
from ranktrees.estimators.starting import STAGES, values_in_training
from ranktrees.measures import Measure, as_measure
from ranktrees.measures.named import AnyMeasure
from ranktrees.model.costs import used_features
from ranktrees.objectives import as_objective
from ranktrees.processes.communicator import active_driver
from ranktrees.rows.sampling import Bootstrap
from ranktrees.support.parallel import effective_n_threads
from ranktrees.support.scikit_learn import with_callbacks
from ranktrees.support.spool import by_parts
from ranktrees.training.checkpoints import Checkpoint, CheckpointFile, what_is_trained
from ranktrees.training.forest import OutOfBag, grow_forest
from ranktrees.training.ranks import fit_on_ranks, gathered, trained_together

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ranktrees.model.costs import FeatureCosts
    from ranktrees.model.ensemble import Ensemble
    from ranktrees.objectives.base import Objective
    from ranktrees.rows.data import FitData
    from ranktrees.support.annotations import IdsLike, RowsLike


@with_parameters
class RandomForestRanker(TreeEnsembleEstimator, RegressorMixin, BaseEstimator):
    """A random forest of regression trees, for ranking by expected label.

    Each tree is grown on a bootstrap sample, and each split considers a random part of the features. The
    score of a row is the mean, over the trees, of the mean label in the row's leaf. The model has the same
    bytes for any ``n_jobs``.

    Parameters
    ----------
    n_estimators : int, default=100
        The number of trees.
    measure : str, Measure or callable, default="ndcg@10"
        The measure that `score` returns.
    max_depth : int or None, default=None
        The maximum number of splits between the root and a leaf. If None, there is no limit.
    min_samples_leaf : int, default=10
        The minimum number of rows in each leaf. A row that is drawn twice counts once, as does one of
        weight 0. With 1, trees grow to full depth.
    max_features : {"sqrt", "log2"}, int, float or None, default="sqrt"
        The number of features that each split considers, drawn at random: an int is their number, a float
        their share, and None means all. "sqrt" and "log2" take the square root and the binary logarithm of
        the number of features. If none of the features drawn can part the rows, the split considers further
        features.
    split_search : {"full", "exact"}, default="full"
        How the best split of a leaf is found:

        - "full" considers every bin.
        - "exact" makes a bin of each distinct value, as Breiman's forests and those of scikit-learn do. It is
          slower, and takes 4 bytes of memory per value of ``X`` if a feature has more than 255 distinct
          values, and 8 bytes per distinct value. ``max_bins`` must be left at 255.
    bootstrap : bool, default=True
        Whether each tree is grown on a sample drawn with replacement.
    bootstrap_unit : {"row", "query"}, default="row"
        With ``bootstrap``, whether rows or whole queries are drawn.
    max_samples : int, float or None, default=None
        With ``bootstrap``, how many rows (or queries) are drawn for each tree: an int is their number, a
        float in (0, 1] their share. If None, as many are drawn as there are.
    oob_score : bool, str, Measure or callable, default=False
        Whether to score the training rows by the trees that have not seen them. If True, the score is
        ``measure``. A measure can be given instead. With ``warm_start``, all fits need it, and the same rows.
    stage_size : int, default=8
        With ``feature_costs``, the number of trees that are grown without knowing which features the others
        use. After each such stage, the features that its trees have used become free. Up to this many trees
        can be grown at the same time. The model does not depend on ``n_jobs``. Without ``feature_costs``,
        only the default is accepted.
    verbose : int or "bar", default=0
        If above 0, print a line whenever the forest has grown by ``verbose`` trees. If "bar", draw a progress
        bar (needs tqdm).
    n_jobs : int or None, default=None
        The number of trees that are grown at the same time. None and -1 use all processors. The model does
        not depend on it.

    Attributes
    ----------
    oob_score_ : float
        The out-of-bag score. Rows that every tree has seen are left out.
    oob_prediction_ : ndarray of float64, shape (n_rows,)
        The out-of-bag scores of the training rows, in the order in which they were passed. NaN for rows that
        every tree has seen.

    References
    ----------
    Breiman, *Random forests*, Machine Learning 2001.
    Mohan, *An empirical analysis on point-wise machine learning techniques using regression trees for
    web-search ranking*, 2010.

    Examples
    --------
    >>> from ranktrees import RandomForestRanker, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> forest = RandomForestRanker(20, random_state=0).fit(X, y, qid=qid)
    >>> forest.score(X, y, qid=qid) > 0.9
    True
    """

    n_estimators: int = field(default=100, kw_only=False)
    measure: AnyMeasure = "ndcg@10"
    max_leaf_nodes: int | None = None
    min_samples_leaf: int = 10
    max_features: Literal["sqrt", "log2"] | float | None = "sqrt"
    split_search: Literal["full", "exact"] = "full"
    bootstrap: bool = True
    bootstrap_unit: Literal["row", "query"] = "row"
    max_samples: int | float | None = None
    oob_score: bool | AnyMeasure = False
    stage_size: int = 8

    _averages = True
    _parameter_constraints = {  # noqa: RUF012
        **TREE_CONSTRAINTS,
        "n_estimators": [Interval(Integral, 1, sys.maxsize, closed="both")],
        "measure": [str, Measure, callable],
        "max_features": [
            StrOptions({"sqrt", "log2"}),
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
            None,
        ],
        "split_search": [StrOptions({"full", "exact"})],
        "bootstrap": ["boolean"],
        "bootstrap_unit": [StrOptions({"row", "query"})],
        "max_samples": [
            Interval(Integral, 1, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="right"),
            None,
        ],
        "oob_score": ["boolean", str, Measure, callable],
        "stage_size": [Interval(Integral, 1, None, closed="left")],
    }

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
    ) -> Self:
        """Grow the forest.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features), or Batches
            The rows. NaN is a missing value. Values of float32 and float64 are read as they are, without a
            copy. :class:`~ranktrees.datasets.Batches` contain labels, weights and query ids, so leave those
            arguments out.
        y : array-like of shape (n_rows,)
            The labels: finite numbers, with any number of grades. A pandas Series whose index has a level
            named "qid" supplies the query ids as well, even through scikit-learn's splitters.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights >= 0.
        qid, groups : array-like of shape (n_rows,), default=None
            The query id of each row, in any order. ``groups`` is another name for ``qid``.
        group : array-like of shape (n_queries,), default=None
            The sizes of the queries in the order of the rows, as LightGBM takes them.

        Returns
        -------
        self : RandomForestRanker
            The fitted estimator. If a fit fails, the estimator stays as it was.

        Raises
        ------
        ValueError, TypeError
            If an argument is invalid. The message names it.
        """
        self._validate_params()
        if (driver := active_driver()) is not None:
            fit_on_ranks(self, driver, X, y, sample_weight, qid=qid, groups=groups, group=group)
            return self
        context = self._open_context(self.n_estimators, X, y)
        with trained_together(self) as communicator:
            data = self._check(X, y, sample_weight, communicator, qid=qid, groups=groups, group=group)
            self._fit(as_read(X, data), data, context)
        self._close_context(context, X, y)
        return self

    def _fit(self, X: RowsLike, data: FitData, context: Any) -> None:
        n_threads = effective_n_threads(self.n_jobs)
        earlier = self._earlier()
        n_earlier = 0 if earlier is None else len(earlier)
        ranks = data.share.communicator
        file = CheckpointFile(self.checkpoint, self.checkpoint_every, ranks)
        seed = self._seed(file, ranks)
        self._refuse_fewer_trees(n_earlier, "n_estimators")
        self._check_samples(n_earlier)
        costs = self._costs()
        if self.oob_score:
            self._oob_measure().check_labels(data.share.labels_to_check(data.labels))
        else:
            warn_of_no_more_trees(n_earlier, self.n_estimators, "n_estimators")
        ranks.at("the cuts")
        mapper, codes_here = self._bin(data, n_threads, costs)
        here, (data, codes) = data, gathered(data, codes_here)
        if earlier is None:
            mean = self._objective().prepare(data.labels, data.weights, data.offsets).start()
            earlier = self._no_trees(mean, average=True)

        def trained() -> dict[str, str]:
            rows = {"the training rows": (here, codes_here, np.full(here.n_rows, earlier.base))}
            return what_is_trained(self, mapper, earlier, rows)

        so_far = file.going_on(Checkpoint(ensemble=earlier, seed=seed), trained)
        before, n_earlier = so_far.ensemble, len(so_far.ensemble)
        file.refuse_fewer_trees(n_earlier, self.n_estimators, "n_estimators")
        stage_size = self.n_estimators if costs is None else self.stage_size
        used, used_in_stage = self._used_by(before, stage_size)
        prices = self._prices(costs, used, mapper.n_features)
        make_grower = self._growers(mapper, codes, 1, prices, data.share)
        ensemble_of = self._ensemble_of(mapper, before)
        bootstrap = self._bootstrap(data, seed)
        out_of_bag: Any = None
        if self.oob_score:
            values = values_in_training(here, mapper, codes_here, before)
            out_of_bag = _out_of_bag(before, bootstrap, values, here, data.n_rows, n_threads)
            if before is self._earlier():
                self._require_rows_of_before(out_of_bag, before, here)
        with self._watching(self.n_estimators, context, _forest_attributes, X, here) as watchers:
            trees = grow_forest(
                make_grower,
                data,
                before.base,
                trees=range(n_earlier, self.n_estimators),
                bootstrap=bootstrap,
                prices=prices,
                stage_size=stage_size,
                used_in_stage=used_in_stage,
                seed=seed,
                n_jobs=n_threads,
                communicator=ranks,
                out_of_bag=out_of_bag,
                callbacks=file.with_checkpoints(watchers, so_far),
                ensemble_of=ensemble_of,
            )
        self._forget_scores()
        if self.oob_score:
            scores = out_of_bag.scores(before.base)
            warn_of_samples(scores, self.bootstrap_unit)
            self._score_out_of_bag(data, here, scores, n_threads)
        self._seed_, self._fitted_costs = seed, costs
        self.__dict__.update(_forest_attributes(ensemble_of(trees)))
        warn_of_trees(self, self.ensemble_, here.share)

    def _check_samples(self, n_earlier: int) -> None:
        """Refuse settings of samples if none are drawn, and an out-of-bag score of unknown samples."""
        if self.oob_score and not self.bootstrap:
            raise ValueError("oob_score needs bootstrap=True: without it no row is ever out of bag.")
        for name, default in {"bootstrap_unit": "row", "max_samples": None}.items():
            if not self.bootstrap and getattr(self, name) != default:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} says how samples are drawn, but bootstrap=False draws "
                    f"none; expected {default!r}: set bootstrap=True, or leave {name} out."
                )
        if self.oob_score and n_earlier and not hasattr(self, "oob_prediction_"):
            raise ValueError(
                f"oob_score={self.oob_score!r}, but the {n_earlier} trees that warm_start=True continues "
                "from were grown without it; expected oob_score in each of the fits: fit the whole forest at "
                "once, or set oob_score=False."
            )

    def _require_rows_of_before(self, out_of_bag: OutOfBag, before: Ensemble, data: FitData) -> None:
        """Raise if the out-of-bag scores of the earlier trees are not those that they had in their fit."""
        scores = _scores_as_given(out_of_bag.scores(before.base), data)
        if not np.array_equal(scores, self.oob_prediction_, equal_nan=True):
            raise ValueError(
                f"oob_score={self.oob_score!r}, but X, or what bootstrap_unit and max_samples draw of it, "
                f"differs from what the {len(before)} trees that warm_start=True continues from were grown "
                "from; expected the same rows in the same order, drawn in the same way: fit the whole forest "
                "at once, or set oob_score=False."
            )

    def _bootstrap(self, data: FitData, seed: int) -> Bootstrap:
        unit: Any = self.bootstrap_unit if self.bootstrap else None
        n_units = data.n_rows if unit == "row" else len(data.offsets) - 1
        n_draws: Any = self.max_samples
        if isinstance(n_draws, Real) and not isinstance(n_draws, Integral):
            n_draws = max(1, round(n_draws * n_units))  # type: ignore[call-overload]
        if n_draws is not None and n_draws > n_units:
            units = {"row": "rows", "query": "queries"}[unit]
            raise ValueError(
                f"max_samples={n_draws} {units} are to be drawn for each tree, but there are {n_units}; "
                "expected at most as many: pass a share of them, such as 0.5."
            )
        return Bootstrap(data.offsets, unit, n_draws, seed)

    def _costs(self) -> FeatureCosts | None:
        costs, default = super()._costs(), type(self).stage_size
        if costs is None and self.stage_size != default:
            raise ValueError(
                f"stage_size={self.stage_size!r} is the number of trees that pay independently of each "
                "other, but without feature_costs all features are free: pass feature_costs, too, or leave "
                f"stage_size at {default!r}."
            )
        return costs

    def _used_by(self, before: Ensemble, stage_size: int) -> list[np.ndarray]:
        """The features used in whole stages before, and in the stage begun: two bool[n_features]."""
        n_whole = len(before) - len(before) % stage_size
        stages = np.split(before.nodes, [before.tree_offsets[n_whole]])
        return [used_features(nodes, self.n_features_in_) for nodes in stages]

    def _objective(self, seed: int = 0) -> Objective:
        return as_objective("squared_error")

    def _leaf_values_by(self, data: FitData, n_threads: int) -> dict[str, Any]:
        return {"learning_rate": 1.0}

    def _forget_scores(self) -> None:
        for name in ("oob_score_", "oob_prediction_"):
            self.__dict__.pop(name, None)

    def _oob_measure(self) -> Any:
        is_true = isinstance(self.oob_score, (bool, np.bool_))
        return self._measure() if is_true else as_measure(self.oob_score)  # type: ignore[arg-type]

    def _score_out_of_bag(self, data: FitData, here: FitData, scores: np.ndarray, n_threads: int) -> None:
        seen = ~np.isnan(scores)
        measure = self._oob_measure()
        offsets = np.unique(np.concatenate([[0], np.cumsum(seen)])[data.offsets])  # of queries with rows left
        weights = None if data.weights is None else data.weights[seen]
        self.oob_score_ = measure.signed_mean(data.labels[seen], scores[seen], offsets, weights, n_threads)
        self.oob_prediction_ = _scores_as_given(scores, here)


def _scores_as_given(scores: np.ndarray, data: FitData) -> np.ndarray:
    """The scores of this rank's own rows, in the order in which they were passed."""
    numbers = data.share.row_numbers
    return data.as_given(scores if numbers is None else scores[numbers])


def _out_of_bag(
    ensemble: Ensemble, bootstrap: Bootstrap, X: Any, data: FitData, n_rows: int, n_threads: int
) -> OutOfBag:
    """OutOfBag of the trees of a model, which were grown from these rows. Each rank looks at its own."""
    out_of_bag, share = OutOfBag(n_rows), data.share
    numbers = np.arange(n_rows) if share.row_numbers is None else share.row_numbers
    for first in range(0, len(ensemble), STAGES):
        trees = ensemble.first(min(first + STAGES, len(ensemble))).after(first)
        leaves = data.internal(by_parts(lambda rows, _, trees=trees: trees.leaves(rows, n_jobs=n_threads), X))  # type: ignore[misc]
        for tree, (root, leaf) in enumerate(zip(trees.tree_offsets, leaves.T, strict=False), first):
            left_out = bootstrap.times(tree)[numbers] == 0
            out_of_bag.add(numbers[left_out], trees.nodes["value"][root + leaf[left_out]])
    for values in (out_of_bag.sums.view(np.int64), out_of_bag.counts):  # each row is on one rank only
        share.communicator.allreduce(values)
    return out_of_bag


def _forest_attributes(ensemble: Ensemble) -> dict[str, Any]:
    return {"ensemble_": ensemble}
