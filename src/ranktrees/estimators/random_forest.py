"""A random forest for ranking."""

from dataclasses import field
from numbers import Integral, Real

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from ranktrees.checkpoints import Checkpoint, CheckpointFile, what_is_trained
from ranktrees.communicator import active_driver
from ranktrees.costs import used_features
from ranktrees.estimators.doubts import doubt_trees
from ranktrees.estimators.fitting import TREE_CONSTRAINTS, TreeEnsembleEstimator, as_read, with_callbacks
from ranktrees.forest import grow_forest
from ranktrees.measures import Measure, as_measure
from ranktrees.measures.named import AnyMeasure
from ranktrees.objectives import as_objective
from ranktrees.parallel import effective_n_threads
from ranktrees.parameters import with_keywords, with_parameters
from ranktrees.ranks import fit_on_ranks, trained_together
from ranktrees.sampling import Bootstrap
from ranktrees.sharing import gathered


@with_parameters
class RandomForestRanker(TreeEnsembleEstimator, RegressorMixin, BaseEstimator):
    """A random forest of regression trees, for ranking by expected label.

    Each tree is grown on a bootstrap sample and looks at a random part of the features in each split; a
    row's score is the mean over the trees of the mean label in its leaf. The model has the same bytes for
    any ``n_jobs``.

    Parameters
    ----------
    n_estimators : int, default=100
        The number of trees.
    measure : str, Measure or callable, default="ndcg@10"
        What `score` returns.
    max_leaf_nodes : int or None, default=None
        None grows trees layer by layer, without a limit.
    max_depth : int or None, default=None
        Splits between the root and a leaf, at most; None: no limit.
    min_samples_leaf : int, default=10
        Rows per leaf, at least; a row that is drawn twice counts once. 1 grows trees to full depth.
    max_features : {"sqrt", "log2"}, int, float or None, default="sqrt"
        How many features each split looks at: a number, a share, or all (None). Where none of them parts
        the rows it looks at more.
    max_bins : int, default=255
        Bins per feature, at most 255; rows without a value have one more.
    subsample_for_bin : int or None, default=200_000
        About how many rows, drawn once, tell where bins end; None: all. All rows are asked about a feature
        that has one value among those drawn, and about categories. "exact" looks at all rows.
    split_search : {"full", "exact"}, default="full"
        "full" looks at every bin. "exact" makes a bin of each distinct value, as Breiman's forests and
        scikit-learn's do: slower, with 4 bytes of memory per value of ``X`` where a feature has more than 255
        distinct ones, and 8 per distinct value. ``max_bins`` is left at 255 then.
    bootstrap : bool, default=True
        Whether trees are grown on samples drawn with replacement.
    bootstrap_unit : {"row", "query"}, default="row"
        What is drawn, with ``bootstrap``: rows, or whole queries.
    max_samples : int, float or None, default=None
        How many rows (or queries) are drawn for each tree, with ``bootstrap``: an int is their number, a
        float in (0, 1] a share of those there are; None is as many as there are.
    oob_score : bool, str, Measure or callable, default=False
        Whether to score the training rows by the trees that have not seen them; True by ``measure``.
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        A boolean mask, indices or names; "from_dtype" takes the categorical columns of a data frame.
    monotonic_cst : array-like of int or dict, default=None
        Per feature (or by name or index) 1: scores rise with it, -1: they fall, 0: free.
    interaction_cst : {"pairwise", "no_interactions"} or sequence of sets of names or indices, default=None
        Which features may meet on a branch.
    handle_missing : {"learned", "left", "right", "three_way"}, default="learned"
        Where rows without a value go: to the side that is better, learned by each split; always to the left
        of a cut, or always to the right; or apart from the others, which are parted by their best cut at
        once. See the guide, "Treatments of missing values".
    feature_costs : array-like of shape (n_features,) or mapping, default=None
        What each feature costs: one number of at least 0 each, or a dict from names or indices, without those
        that cost nothing. Splits then maximise ``gain / H - cost_weight * cost``, with H the sum of hessians
        of all rows of the tree, where a feature that some split has used before costs 0: see the guide,
        "Features that cost".
    cost_weight : float, default=1.0
        How much a unit of cost must be worth, lambda in Mohan's survey: with the squared error, by how much
        it must lower the mean squared error of a tree. 0 trains as without costs.
    feature_groups : sequence of sets of names or indices, default=None
        Features of the same cost that are paid for together: when one is used, all of its set are free.
    stage_size : int, default=8
        With ``feature_costs``: so many trees are grown without knowing what the others use; only then what
        they have used becomes free. Up to as many can be grown at the same time; the model does not depend on
        ``n_jobs``. Without ``feature_costs`` other values are refused.
    warm_start : bool, default=False
        Whether `fit` adds to the trees that are there.
    checkpoint : path-like, default=None
        Where `fit` writes what it needs to go on from, should it be interrupted; called again with the same
        path it does, to the same model. A fit that ends well removes the file. See the guide,
        "Checkpoints".
    checkpoint_every : int, default=10
        How many trees lie between two checkpoints.
    verbose : int or "bar", default=0
        Print a line when the forest has grown by another ``verbose`` trees; "bar" draws a progress bar.
    random_state : int, RandomState or None, default=None
        Of all that is drawn: with an int a fit gives the same model each time. None draws anew.
    n_jobs : int or None, default=None
        Trees grown at the same time; None and -1 use all processors. The model does not depend on it.

    Attributes
    ----------
    ensemble_ : Ensemble
        The trees, as arrays.
    oob_score_ : float
        The out-of-bag score; rows that every tree has seen are left out.
    oob_prediction_ : ndarray of float64, shape (n_rows,)
        The out-of-bag scores of the training rows as they came; NaN where every tree has seen the row.
    feature_importances_ : ndarray of float64, shape (n_features,)
        The share of each feature in the gains of all splits.
    n_features_in_ : int
        The number of columns of ``X``.
    feature_names_in_ : ndarray of str
        What the columns of a data frame are called; there where all names are strings.

    References
    ----------
    Breiman, *Random forests*, Machine Learning 2001.
    Mohan, *An empirical analysis on pointwise machine learning techniques using regression trees for
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
    max_features: str | float | None = "sqrt"
    split_search: str = "full"
    bootstrap: bool = True
    bootstrap_unit: str = "row"
    max_samples: int | float | None = None
    oob_score: bool | AnyMeasure = False
    stage_size: int = 8

    _parameter_constraints = {  # noqa: RUF012
        **TREE_CONSTRAINTS,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
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
    def fit(self, X, y=None, sample_weight=None, *, qid=None, groups=None, group=None):
        """Grow the forest.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features), or Batches
            NaN is a missing value. Float32 and float64 are read as they are, without a copy.
            :class:`~ranktrees.datasets.Batches` bring labels, weights and queries: leave those out.
        y : array-like of shape (n_rows,)
            Labels: finite, any number of grades. A pandas Series whose index has a level named "qid"
            brings the query ids along, also through scikit-learn's splitters.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights >= 0.
        qid, groups : array-like of shape (n_rows,), default=None
            The query of each row, in any order; two names for the same thing.
        group : array-like of shape (n_queries,), default=None
            Query sizes in row order, as LightGBM takes them.

        Returns
        -------
        self : RandomForestRanker
            Fitted. A fit that fails leaves it as it was.

        Raises
        ------
        ValueError, TypeError
            For every argument that cannot be meant; the message names it.
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

    def _fit(self, X, data, context):
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
            self._oob_measure().check_labels(data.share.some_of_all(data.labels))
        ranks.at("the cuts")
        mapper, own_codes = self._bin(data, n_threads)
        own, (data, codes) = data, gathered(data, own_codes)
        if earlier is None:
            mean = self._objective().bind(data.labels, data.weights, data.offsets).start()
            earlier = self._no_trees(mean, average=True)

        def trained():
            rows = {"the training rows": (own, own_codes, np.full(own.n_rows, earlier.base))}
            return what_is_trained(self, mapper, earlier, rows)

        so_far = file.going_on(Checkpoint(ensemble=earlier, seed=seed), trained)
        before, n_earlier = so_far.ensemble, len(so_far.ensemble)
        file.refuse_fewer_trees(n_earlier, self.n_estimators, "n_estimators")
        stage_size = self.n_estimators if costs is None else self.stage_size
        used, used_in_stage = self._used_by(before, stage_size)
        prices = self._prices(costs, used)
        make_grower = self._growers(mapper, codes, 1, prices, data.share)
        ensemble_of = self._ensemble_of(mapper, before)
        with self._watching(self.n_estimators, context, _forest_attributes, X, own) as watchers:
            trees, sums, counts = grow_forest(
                make_grower,
                data,
                before.base,
                trees=range(n_earlier, self.n_estimators),
                bootstrap=self._bootstrap(data, seed),
                prices=prices,
                stage_size=stage_size,
                used_in_stage=used_in_stage,
                seed=seed,
                n_jobs=n_threads,
                communicator=ranks,
                out_of_bag=bool(self.oob_score),
                callbacks=file.followed_by(watchers, so_far),
                ensemble_of=ensemble_of,
            )
        self._forget_scores()
        if self.oob_score:
            self._score_out_of_bag(data, own, before.base, sums, counts, n_threads)
        self._seed_, self._fitted_costs = seed, costs
        vars(self).update(_forest_attributes(ensemble_of(trees)))
        doubt_trees(self, self.ensemble_, own.share.n_rows)

    def _check_samples(self, n_earlier):
        """Refuse to say how samples are drawn where none are, and an out-of-bag score of some trees only."""
        if self.oob_score and not self.bootstrap:
            raise ValueError("oob_score needs bootstrap=True: without it no row is ever out of bag.")
        for name, default in {"bootstrap_unit": "row", "max_samples": None}.items():
            if not self.bootstrap and getattr(self, name) != default:
                raise ValueError(
                    f"{name}={getattr(self, name)!r} says how samples are drawn, but bootstrap=False draws "
                    f"none; expected {default!r} with it: set bootstrap=True, or leave {name} out."
                )
        if self.oob_score and n_earlier:
            raise ValueError("oob_score cannot be kept up with warm_start: fit the whole forest at once.")
        if self.oob_score and self.checkpoint is not None:
            raise ValueError(
                f"oob_score={self.oob_score!r} cannot be kept up with a checkpoint; expected one of them: "
                "leave checkpoint at None, or score the rows by cross-validation."
            )

    def _bootstrap(self, data, seed):
        unit = self.bootstrap_unit if self.bootstrap else None
        n_units = data.n_rows if unit == "row" else len(data.offsets) - 1
        n_draws = self.max_samples
        if isinstance(n_draws, Real) and not isinstance(n_draws, Integral):
            n_draws = max(1, round(n_draws * n_units))
        if n_draws is not None and n_draws > n_units:
            units = {"row": "rows", "query": "queries"}[unit]
            raise ValueError(
                f"max_samples={n_draws} {units} are to be drawn for each tree, but there are {n_units}; "
                "expected no more: pass a share of them, such as 0.5."
            )
        return Bootstrap(data.offsets, unit, n_draws, seed)

    def _costs(self):
        costs, default = super()._costs(), type(self).stage_size
        if costs is None and self.stage_size != default:
            raise ValueError(
                f"stage_size={self.stage_size!r} says how many trees pay without knowing of each other, but "
                f"without feature_costs all is free: pass them, too, or leave stage_size at {default!r}."
            )
        return costs

    def _used_by(self, before, stage_size):
        """bool[n_features]: what the trees before have used, up to the stage that goes on; and in that."""
        n_whole = len(before) - len(before) % stage_size
        stages = np.split(before.nodes, [before.tree_offsets[n_whole]])
        return [used_features(nodes, self.n_features_in_) for nodes in stages]

    def _objective(self, seed=0):
        return as_objective("squared_error")

    def _leaf_values_by(self, data, n_threads):
        return {"learning_rate": 1.0}

    def _forget_scores(self):
        for name in ("oob_score_", "oob_prediction_"):
            vars(self).pop(name, None)

    def _oob_measure(self):
        return self._measure() if self.oob_score is True else as_measure(self.oob_score)

    def _score_out_of_bag(self, data, own, base, sums, counts, n_threads):
        seen = counts > 0
        scores = np.full(len(sums), np.nan)
        scores[seen] = base + sums[seen] / counts[seen]
        measure = self._oob_measure()
        offsets = np.concatenate([[0], np.cumsum(seen)])[data.offsets]
        weights = None if data.weights is None else data.weights[seen]
        self.oob_score_ = measure.signed_mean(data.labels[seen], scores[seen], offsets, weights, n_threads)
        numbers = own.share.row_numbers
        self.oob_prediction_ = own.as_given(scores if numbers is None else scores[numbers])


def _forest_attributes(ensemble):
    return {"ensemble_": ensemble}
