"""Boosted trees for ranking: LambdaMART, and every other loss that ranks."""

from collections.abc import Callable
from dataclasses import field
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from ranktrees.combining import WEIGHTS_OF_TREES, checked_interval, weight_curve_of
from ranktrees.estimators.boosted import BOOSTING_CONSTRAINTS, BoostedTrees, loss_of
from ranktrees.estimators.fitting import with_callbacks
from ranktrees.feedback import NOTHING, Feedback
from ranktrees.listed import in_order
from ranktrees.measures import Measure, as_measure
from ranktrees.measures.named import AnyMeasure
from ranktrees.objectives import BY_NAME, Objective
from ranktrees.parameters import with_keywords, with_parameters
from ranktrees.validation import FitData, ValidationRows, check_rows, find_queries, refuse_batches

# What counts rows, or goes with what does: it cannot be sliced by rows, so that nothing routes it.
_NOT_BY_ROW = dict.fromkeys(("pairs", "pair_weight", "pair_target"), UNUSED)
_NOT_BY_ROW_VAL = dict.fromkeys((f"{name}_val" for name in _NOT_BY_ROW), UNUSED)

RANKING_LOSSES = (
    "lambdamart",
    "lambdaloss",
    "ranknet",
    "gbrank",
    "listnet",
    "xendcg",
    "query_rmse",
)


@with_parameters
class LambdaMARTRanker(BoostedTrees, RegressorMixin, BaseEstimator):
    r"""Boosted trees that raise a ranking measure: LambdaMART.

    For every pair of rows of a query with different labels, the better one is pushed up and the worse one
    down by

    .. math:: \lambda_{ij} = \frac{\sigma\,|\Delta_{ij}|}{1 + e^{\sigma (s_i - s_j)}},

    where :math:`\Delta_{ij}` is what the measure changes when the two swap places. Each tree is fitted to the
    sums of these forces and takes a Newton step (see `HistGBRTRegressor`). The model has the same bytes for
    any ``n_jobs``.

    Beside labels, it learns from preferences between rows (``loss="ranknet"`` and "gbrank") and from clicks
    on rows that were shown at known positions ("lambdamart" and "lambdaloss"): see `fit`, and the guide,
    "Preferences instead of labels" and "Learning from clicks".

    Parameters
    ----------
    loss : str, Objective or callable, default="lambdamart"
        One of "lambdamart", "lambdaloss", "ranknet", "gbrank", "listnet", "xendcg" and "query_rmse".
        "lambdaloss" adds NDCG-Loss2++'s weight of near ranks. "ranknet" gives every pair the same weight;
        "gbrank", too, with a squared hinge. "listnet" and "xendcg" are cross entropies over a query,
        "query_rmse" is squared error about the query's mean. An `Objective` brings its own parameters, and a
        function of (labels, scores, offsets) is one of your own: see the guide, "How to add your own".
    measure : str, Measure or callable, default="ndcg@10"
        What "lambdamart" raises, whichever it is; what `score` returns and early stopping follows with any
        loss. "lambdaloss" takes NDCG and DCG, "xendcg" its gain.
    truncation_level : int or None, default=30
        Pairs count where the row ranked higher is among the first ``truncation_level``; None: all pairs.
        Not looked at where ``pairs`` are given, which all count.
    gain : {"exp2", "linear"}, array-like, callable or None, default=None
        What a label is worth; None is the measure's own, :math:`2^{label} - 1`.
    sigma : float, default=1.0
        Steepness of the pairs' logistic. Without ``l2_regularization`` it changes nothing but the scale
        of the scores.
    score_gap_norm : bool, default=False
        Divide each pair's delta by 0.01 plus its score gap, as LightGBM does.
    query_norm : {"none", "log", "unit"}, default="none"
        "log" dampens queries with large gradients, as LightGBM does; "unit" gives all queries the same
        weight.
    noise : float, default=0.0
        Rank by the scores with logistic noise of that scale (over ``sigma``), drawn anew in each round:
        stochastic ranks, as YetiRank has them.
    n_orders : int, default=1
        With ``noise``: how many such orders a round takes the mean of.
    bias_norm : float, default=0.25
        Where ``position`` is given, and no ``propensities``: the larger, the nearer to 1 are those that are
        found, p of `objectives.LambdaMART`.
    propensities : array-like of shape (n_positions,), default=None
        Where ``position`` is given: how often each position is looked at, from the first on, if it is known;
        only ratios matter. None: they are found beside the trees.
    step : {"newton", "optimal"}, default="newton"
        The weight of each new tree: "newton" is ``learning_rate``; "optimal" the one in ``step_interval``
        with which the measure is highest on the training rows, see `optimal_weight`.
    step_interval : pair of float, default=(0.1, 5.0)
        With ``step="optimal"``: the lowest and the highest weight; 1 is the whole Newton step.
    learning_rate : float, default=0.05
        Not looked at with ``step="optimal"``.
    max_iter : int, default=200
        The number of trees.
    max_leaf_nodes : int or None, default=31
        Leaves per tree; trees grow best leaf first, or, where they may have more than 16, a third of those
        still allowed at a time. None: layer by layer, without a limit.
    max_depth : int or None, default=None
        Splits between the root and a leaf, at most; None: no limit but that of the leaves.
    min_samples_leaf : int, default=20
        Rows per leaf, at least.
    l2_regularization : float, default=1.0
        Added to the sum of hessians of each leaf.
    min_gain_to_split : float, default=0.0
        A leaf is split only if that gains more than this. The gain is the formula in `HistGBRTRegressor`,
        twice the decrease of the loss; it scales with the loss and with ``sample_weight``. It corresponds
        to ``min_split_gain`` of LightGBM and ``gamma`` of XGBoost.
    min_hessian_to_split : float, default=0.0
        The minimum sum of hessians on each side of a split. The hessian of a row is the sum over its
        pairs, and nearly 0 once all of them are in the right order. If ``gradient_sampling`` draws rows,
        the sum is estimated from those. It corresponds to ``min_child_weight`` of LightGBM and XGBoost.
    max_features : float, default=0.3
        The share of the features that each split looks at (kSGBRT in Mohan's survey).
    max_bins : int, default=255
        Bins per feature, at most 255; rows without a value have one more.
    subsample_for_bin : int or None, default=200_000
        About how many rows, drawn once, tell where bins end; None: all. All rows are asked about a feature
        that has one value among those drawn, and about categories. "exact" or "streaming" looks at all rows.
    split_search : {"auto", "full", "coarse_to_fine", "exact", "streaming"}, default="auto"
        "full" looks at every bin. "coarse_to_fine" joins them to 16 cells a feature, picks up to four
        features that seem best, and looks at all bins of those: two to three times faster, with little or no
        loss of accuracy (see the performance pages). "auto" does so where there are 64 features or more, none
        of them categorical, and splits choose among an eighth of them at least. "exact" makes a bin of each
        distinct value, so that every cut half-way between two neighbours is tried: the reference for the
        others. It is slower, and takes 4 bytes of memory per value of ``X`` where a feature has more than 255
        distinct ones, and 8 per distinct value. ``max_bins`` is left at 255 then. "streaming" makes
        histograms of ``max_bins`` centroids of each leaf's rows, one row after another (pGBRT): slower than
        "full", and there to be compared with it; see the guide, "Streaming histograms".
    gradient_sampling : float or None, default=4.0
        Splits are searched on a sample of the rows, drawn anew for each tree. With k for this number, .01 or
        more, a row of gradient g and hessian h is drawn with the odds
        ``min(1, k * max(|g| / max |g|, h / max(max h, 8 mean h)))``, and then counts as 1 / odds rows. None
        takes all. On real sets 4 gave better rankings than that, by as much as drawing rows and features
        does, and is faster: see the guide, "Sampling by gradients". The values of the leaves are computed
        from all rows.
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
    warm_start : bool, default=False
        Whether `fit` goes on from the trees that are there.
    checkpoint : path-like, default=None
        Where `fit` writes what it needs to go on from, should it be interrupted; called again with the same
        path it does, to the same model. A fit that ends well removes the file. See the guide,
        "Checkpoints".
    checkpoint_every : int, default=10
        How many trees lie between two checkpoints.
    early_stopping : bool or "auto", default="auto"
        Stop when the validation score rises no more. True holds out ``validation_fraction`` of the queries
        where no validation rows are given; "auto" stops early exactly when they are given; False only
        follows them, and keeps all trees.
    scoring : str, Measure, callable or None, default=None
        What early stopping follows: None is ``measure``, "loss" the loss.
    validation_fraction : float, default=0.1
        With ``early_stopping=True``, where no validation rows are given: share of the queries to hold out,
        whole. Nothing is held out otherwise.
    n_iter_no_change : int, default=50
        Rounds without a better validation score before training stops.
    tol : float, default=0.0
        What counts as better.
    subsample : float, default=0.7
        The share of the rows that each tree is grown from (SGBRT in Mohan's survey).
    query_subsample : float, default=1.0
        The share of the queries that each tree is grown from.
    init : float or estimator, default=None
        What boosting starts from: None is 0; an estimator is fitted first. One that is fitted already, also a
        scikit-learn ``FrozenEstimator`` of one, is used as it is, and stays so in clones, thus in searches
        and cross-validation. Where it is an estimator of trees of this library, or an `Ensemble`, boosting
        goes on from its scores, and its trees are the first of ``ensemble_``. Of any other, ``predict`` is
        added to what the trees say; of a classifier of two classes ``decision_function``, where it has one,
        or the probability of the second class.
    init_cv : "oob", int, splitter, iterable or None, default=None
        What training rows start from, where ``init`` is fitted here. None: what it says of them, though it
        has seen their labels. "oob": what the trees of a `RandomForestRanker` say of them that have not; rows
        that all trees have seen start from the mean label, with a warning. An int or a splitter: what models
        say that were fitted without the row's fold, folds being of whole queries, where there are queries.
        New rows start from the whole ``init`` in any case.
    verbose : int or "bar", default=0
        Print a line every ``verbose`` trees; "bar" draws a progress bar (needs tqdm).
    random_state : int, RandomState or None, default=None
        Of all that is drawn: with an int a fit gives the same model each time. None draws anew.
    n_jobs : int or None, default=None
        Threads; None and -1 use all processors. The model does not depend on it.

    Attributes
    ----------
    ensemble_ : Ensemble
        The trees, as arrays.
    init_ : estimator or None
        What boosting started from.
    n_init_trees_ : int
        So many of the trees, the first, are those of ``init_``. Nothing else counts them: not ``max_iter``,
        ``n_trees``, `staged_predict`, early exits or the attributes below.
    init_scores_ : ndarray of float64, shape (n_rows,), or None
        With ``init_cv`` what each training row started from; NaN where rows were held out.
    n_iter_ : int
        The number of trees grown.
    best_iteration_ : int
        The number of trees kept: after early stopping those up to the best validation score.
    train_score_, validation_score_ : ndarray of float64
        The followed score after each tree; empty where not all trees were followed. Of rows without labels
        it is minus the loss of their pairs.
    propensities_, unclicked_propensities_ : ndarray of float64, shape (n_positions,)
        Where ``position`` was given: how much more often rows at a position are clicked, or not, than at the
        first, whatever is shown there (t+ and t- of `objectives.LambdaMART`); NaN where no pair tells.
    feature_importances_ : ndarray of float64, shape (n_features,)
        The share of each feature in the gains of all splits.
    n_features_in_ : int
        The number of columns of ``X``.
    feature_names_in_ : ndarray of str
        What the columns of a data frame are called; there where all names are strings.

    References
    ----------
    Burges, *From RankNet to LambdaRank to LambdaMART: an overview*, MSR-TR-2010-82.
    Wu, Burges, Svore, Gao, *Adapting boosting for information retrieval measures*, Inf. Retrieval 2010.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(random_state=0).fit(X, y, qid=qid)
    >>> ranker.score(X, y, qid=qid) > 0.85
    True
    """

    loss: str | Objective | Callable = field(default="lambdamart", kw_only=False)
    measure: AnyMeasure = "ndcg@10"
    truncation_level: int | None = 30
    gain: ArrayLike | str | Callable | None = None
    sigma: float = 1.0
    score_gap_norm: bool = False
    query_norm: str = "none"
    noise: float = 0.0
    n_orders: int = 1
    bias_norm: float = 0.25
    propensities: ArrayLike | None = None
    step: str = "newton"
    step_interval: ArrayLike = (0.1, 5.0)
    l2_regularization: float = 1.0
    max_features: float = 0.3
    gradient_sampling: float | None = 4.0
    scoring: AnyMeasure | None = None
    n_iter_no_change: int = 50
    tol: float = 0.0
    subsample: float = 0.7

    _parameter_constraints = {  # noqa: RUF012
        **BOOSTING_CONSTRAINTS,
        "loss": [StrOptions(set(RANKING_LOSSES)), Objective, callable],
        "measure": [str, Measure, callable],
        "truncation_level": [Interval(Integral, 1, None, closed="left"), None],
        "gain": ["array-like", StrOptions({"exp2", "linear"}), callable, None],
        "sigma": [Interval(Real, 0, None, closed="neither")],
        "score_gap_norm": ["boolean"],
        "query_norm": [StrOptions({"none", "log", "unit"})],
        "noise": [Interval(Real, 0, None, closed="left")],
        "n_orders": [Interval(Integral, 1, None, closed="left")],
        "bias_norm": [Interval(Real, 0, None, closed="left")],
        "propensities": ["array-like", None],
        "step": [StrOptions({"newton", "optimal"})],
        "step_interval": ["array-like"],
    }

    __metadata_request__fit = {"position": True, **_NOT_BY_ROW, **_NOT_BY_ROW_VAL}  # noqa: RUF012
    __metadata_request__score = _NOT_BY_ROW

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
        pairs=None,
        pair_weight=None,
        pair_target=None,
        position=None,
        X_val=None,
        y_val=None,
        sample_weight_val=None,
        qid_val=None,
        pairs_val=None,
        pair_weight_val=None,
        pair_target_val=None,
        eval_set=None,
        eval_group=None,
        eval_qid=None,
    ):
        """Grow the trees.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            NaN is a missing value. Float32 and float64 are read as they are, without a copy.
        y : array-like of shape (n_rows,), default=None
            Labels: finite, any number of grades; clicks, where ``position`` is given. A pandas Series whose
            index has a level named "qid" brings the query ids along, also through scikit-learn's splitters.
            With ``pairs`` it may be None; if it is not, it serves measures, and nothing is learned from it.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights >= 0; a query's weight is given to each of its rows. They multiply. Not with
            ``pairs``, which have ``pair_weight``.
        qid : array-like of shape (n_rows,), default=None
            The query of each row: any hashable values, in any order. Rows of a query can be compared; of
            clicks, those that were shown together.
        groups : array-like of shape (n_rows,), default=None
            The same under the name that scikit-learn's splitters know.
        group : array-like of shape (n_queries,), default=None
            Query sizes in row order, as LightGBM takes them.
        pairs : array-like of shape (n_pairs, 2), int, default=None
            Preferences to learn from, with the losses "ranknet" and "gbrank": in each line two rows of ``X``
            of one query, the first preferred to the second. They may contradict each other and come in any
            order. They count rows, so that scikit-learn's splitters cannot slice them: see
            `feedback.pairs_among`.
        pair_weight : array-like of shape (n_pairs,), default=None
            Weights >= 0 of the pairs.
        pair_target : array-like of shape (n_pairs,), default=None
            The probability of each pair that its first row is the better one: .5 says that both are as good.
            None is 1 for each.
        position : array-like of shape (n_rows,), int, default=None
            The rank at which each row was shown, from 1, where ``y`` are clicks: with the losses "lambdamart"
            and "lambdaloss" they are corrected for positions being looked at more or less often.
        X_val, y_val, sample_weight_val, qid_val, pairs_val, pair_weight_val, pair_target_val : default=None
            Rows to stop early on, by labels or by pairs, which count the rows of ``X_val``. Without labels
            the loss of the pairs is followed. Where clicks are learned from, ``y_val`` had better be labels.
        eval_set, eval_group, eval_qid : default=None
            The same as LightGBM and XGBoost take them: lists of one entry.

        Returns
        -------
        self : LambdaMARTRanker
            Fitted. A fit that fails leaves it as it was.

        Raises
        ------
        ValueError, TypeError
            For every argument that cannot be meant; the message names it.

        Examples
        --------
        >>> from ranktrees import LambdaMARTRanker
        >>> X, pairs = [[0.0], [1.0], [2.0]], [[2, 0], [1, 0], [2, 1]]
        >>> ranker = LambdaMARTRanker("ranknet", min_samples_leaf=1, subsample=1.0).fit(X, pairs=pairs)
        >>> ranker.score(X, pairs=pairs)
        1.0
        """
        feedback = Feedback(pairs, pair_weight, pair_target, position)
        feedback_val = Feedback(pairs_val, pair_weight_val, pair_target_val, suffix="_val")
        self._refuse_feedback(
            feedback, feedback_val, sample_weight, X_val is not None or eval_set is not None
        )
        queries = {"qid": qid, "groups": groups, "group": group}
        validation = ValidationRows(X_val, y_val, sample_weight_val, qid_val, eval_set, eval_group, eval_qid)
        return self._check_and_fit(X, y, sample_weight, queries, validation, feedback, feedback_val)

    def _refuse_feedback(self, feedback, feedback_val, sample_weight, validates):
        """Raise where what was given beside labels does not go with the rest."""
        by_pairs, by_pairs_val = feedback.pairs is not None, feedback_val.pairs is not None
        kind = BY_NAME[self.loss] if isinstance(self.loss, str) and self.loss in BY_NAME else self.loss
        learns_from = getattr(kind, "learns_from", ())
        for name, given, source in (
            ("pairs", by_pairs, "preferences"),
            ("position", feedback.position is not None, "positions"),
        ):
            if given and source not in learns_from:
                able = [repr(loss) for loss in RANKING_LOSSES if source in BY_NAME[loss].learns_from]
                raise ValueError(
                    f"{name} is given, but loss={self.loss!r} does not learn from {source}; expected one of "
                    f"{' and '.join(able)}: choose one, or leave {name} out."
                )
        if by_pairs and sample_weight is not None:
            raise ValueError(
                "pairs and sample_weight are both given, but rows are not what is learned from; expected one "
                "weight per pair: pass pair_weight."
            )
        named = isinstance(self.loss, str)
        level = self.truncation_level if named else getattr(self.loss, "truncation_level", None)
        default = LambdaMARTRanker.truncation_level if named else None
        if by_pairs and level not in (None, default):
            raise ValueError(
                f"truncation_level={level!r} says which pairs of labels count, but pairs are given, which "
                f"all count; leave it at {default!r}."
            )
        propensities = getattr(self.loss, "propensities", self.propensities)
        if propensities is not None and feedback.position is None:
            raise ValueError(
                "propensities say how often positions are looked at, but position is None; expected the rank "
                "at which each row was shown: pass position, or leave propensities out."
            )
        if by_pairs_val and not by_pairs:
            raise ValueError(
                "pairs_val is given, but fit learns from labels; expected y_val, or pairs to learn from, too."
            )
        if by_pairs and validates and not by_pairs_val and self.scoring == "loss":
            raise ValueError(
                'scoring="loss" follows the loss of pairs, but there are none of the validation rows; pass '
                "pairs_val, or choose a measure of their labels."
            )

    @with_keywords
    def score(
        self,
        X,
        y=None,
        sample_weight=None,
        *,
        qid=None,
        groups=None,
        pairs=None,
        pair_weight=None,
        pair_target=None,
        early_exit=None,
    ):
        """The mean of ``measure`` over the queries; of pairs, the share that is in the right order.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None
            Labels. A pandas Series whose index has a level named "qid" brings the query ids along.
        sample_weight : array-like of shape (n_rows,), default=None
            A query weighs as much as its rows on average.
        qid, groups : array-like of shape (n_rows,), default=None
            The query of each row, in any order; two names for the same thing, so that scikit-learn's
            splitters, which know ``groups``, and people, who know ``qid``, are both served. Without them all
            rows are one query.
        pairs, pair_weight, pair_target : array-like, default=None
            Instead of labels, as for `fit`: see `feedback.preference_accuracy_score`.
        early_exit : EarlyExit, default=None
            As for `predict`. Measures of a ranking see rows that are dropped behind all that stayed in
            longer.

        Returns
        -------
        score : float
            Higher is better. NaN, with an ``UndefinedMetricWarning``, where no query counts.

        Raises
        ------
        ValueError
            If there are both labels and pairs, or neither, or if the model was fitted with query ids and none
            are given here with labels.
        """
        refuse_batches(X, "X")
        if pairs is None and pair_weight is None and pair_target is None:
            if y is None:
                raise ValueError(
                    "score was given neither labels nor pairs; expected y, one label per row, or pairs=, two "
                    "rows of a query each."
                )
            return super().score(X, y, sample_weight, qid=qid, groups=groups, early_exit=early_exit)
        check_is_fitted(self)
        beside = {"y": y, "sample_weight": sample_weight, "early_exit": early_exit}
        if given := [name for name, value in beside.items() if value is not None]:
            raise ValueError(
                f"score was given pairs and {given[0]}; expected labels or pairs: score them one by one."
            )
        rows = check_rows(self, X, reset=False)
        queries = find_queries(rows.shape[0], {"qid": qid, "groups": groups}, {"X": X})
        order, offsets = queries or (None, np.array([0, rows.shape[0]]))
        data = FitData(rows, None, None, order, offsets, queries is not None)
        data = Feedback(pairs, pair_weight, pair_target).joined(data)
        scores = self._scores(X, rows)
        return data.preferences.agreement(scores if order is None else scores[order])

    def refit_leaves(
        self,
        X,
        y=None,
        sample_weight=None,
        *,
        qid=None,
        groups=None,
        pairs=None,
        pair_weight=None,
        pair_target=None,
        position=None,
        decay=0.9,
    ):
        """A copy whose leaves say what other rows say, on the same splits.

        Like `HistGBRTRegressor.refit_leaves`, which has the formula and an example, but also by preferences
        between rows and by clicks.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None
            Labels; clicks, where ``position`` is given. A pandas Series whose index has a level named "qid"
            brings the query ids along. With ``pairs`` it may be None.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights >= 0. Not with ``pairs``, which have ``pair_weight``.
        qid, groups : array-like of shape (n_rows,), default=None
            The query of each row, in any order; two names for the same thing.
        pairs, pair_weight, pair_target : array-like, default=None
            Preferences to learn from, as for `fit`.
        position : array-like of shape (n_rows,), int, default=None
            The rank at which each row was shown, where ``y`` are clicks, as for `fit`: how often positions
            are looked at is learned anew, tree by tree.
        decay : float, default=0.9
            The share of the old values: 1 keeps them, 0 forgets them.

        Returns
        -------
        refitted : LambdaMARTRanker
            A fitted estimator, without ``train_score_`` and ``validation_score_``; this one stays as it is.

        Raises
        ------
        ValueError
            If ``decay`` is out of its range, with ``monotonic_cst``, which new values may violate, and as
            `fit` and `score`.
        """
        feedback = Feedback(pairs, pair_weight, pair_target, position)
        self._refuse_feedback(feedback, NOTHING, sample_weight, False)
        queries = {"qid": qid, "groups": groups}
        return self._refit_leaves(X, y, sample_weight, queries, decay, feedback)

    def _measure(self):
        measure = as_measure(self.measure)
        if self.gain is None:
            return measure
        if "gain" not in measure.parameters:
            raise ValueError(
                f"gain={self.gain!r} says what labels are worth, which measure={self.measure!r} never asks; "
                "expected None with it: leave gain out, or choose a measure that has one, such as 'ndcg@10'."
            )
        return measure(gain=self.gain)

    def _objective(self, seed=0):
        measure = self._measure()
        names = (
            "truncation_level",
            "sigma",
            "score_gap_norm",
            "query_norm",
            "noise",
            "n_orders",
            "bias_norm",
            "propensities",
        )
        parameters = {name: getattr(self, name) for name in names}
        if self.propensities is not None:
            parameters["propensities"] = tuple(in_order(self.propensities, "propensities", first=1))
        others = {"measure": measure, "gain": getattr(measure, "gain", "exp2"), "seed": seed}
        return loss_of(self, parameters, RANKING_LOSSES, **others)

    def _scoring(self):
        return self._measure() if self.scoring is None else self.scoring

    def _measure_to_follow(self, data):
        if data.labels is not None:
            return super()._measure_to_follow(data)
        if self.scoring not in (None, "loss"):
            raise ValueError(
                f"scoring={self.scoring!r} is a measure of labels, but there are pairs only; pass labels, "
                'too, as y or y_val, or follow the loss of the pairs: scoring="loss".'
            )
        return None

    def _resume(self, bound):
        if hasattr(bound, "propensities") and hasattr(self, "propensities_"):
            bound.resume(self.propensities_, self.unclicked_propensities_)

    def _keep_of(self, bound):
        for name in ("propensities_", "unclicked_propensities_"):
            vars(self).pop(name, None)
        if hasattr(bound, "propensities"):
            self.propensities_, self.unclicked_propensities_ = bound.propensities.copy()

    def _step(self, data, n_threads):
        interval = checked_interval("additive", self.step_interval, "step_interval", WEIGHTS_OF_TREES)
        if self.step == "newton":
            if interval != (default := type(self).step_interval):
                raise ValueError(
                    f"step_interval={self.step_interval!r} says which weights a tree may get, but by "
                    f'step="newton" each gets learning_rate: set step="optimal", or leave step_interval at '
                    f"{default}."
                )
            return None
        if data.labels is None:
            raise ValueError(
                'step="optimal" raises the measure of labels, but there are pairs only; pass y, too, or '
                'leave step at "newton".'
            )
        if not data.share.communicator.alone:
            raise ValueError(
                'step="optimal" looks at all queries together, which ranks that train together cannot; '
                'expected step="newton", or one process.'
            )
        measure = self._measure()
        if self.monotonic_cst is not None and interval[0] < 0:
            raise ValueError(
                f"step_interval={self.step_interval!r} lets trees be subtracted, which turns monotonic_cst "
                "round; expected weights of at least 0 with it."
            )

        def optimal(scores, said):
            rows = data.labels, scores, said, data.offsets, data.weights
            return weight_curve_of(measure, *rows, "additive", interval, n_threads).weight

        return optimal
