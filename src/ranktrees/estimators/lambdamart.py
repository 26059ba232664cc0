"""Boosted trees for ranking: LambdaMART, and all other losses that rank."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from ranktrees.estimators.boosted import BOOSTING_CONSTRAINTS, BoostedTrees, loss_of
from ranktrees.estimators.parameters import with_keywords, with_parameters
from ranktrees.evaluation.combining import WEIGHTS_OF_TREES, checked_interval, weight_curve_of
from ranktrees.measures import Measure, as_measure
from ranktrees.measures.named import AnyMeasure
from ranktrees.objectives import Objective
from ranktrees.objectives.named import BY_NAME
from ranktrees.objectives.pairwise import GAPS
from ranktrees.rows import FitData, ValidationRows, check_rows, find_queries, refuse_batches
from ranktrees.rows.feedback import NOTHING, Feedback
from ranktrees.support.listed import in_order
from ranktrees.support.scikit_learn import with_callbacks

if TYPE_CHECKING:
    from ranktrees.evaluation.early_exit import EarlyExit
    from ranktrees.support.annotations import IdsLike, RowsLike, Worth

# Pairs refer to rows by number, so neither they nor what belongs to them can be sliced by rows or routed.
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
    r"""Boosted trees that optimise a ranking measure: LambdaMART.

    For every pair of rows of a query with different labels, the better row is pushed up and the worse row
    down by

    .. math:: \lambda_{ij} = \frac{\sigma\,|\Delta_{ij}|}{1 + e^{\sigma (s_i - s_j)}},

    where :math:`\Delta_{ij}` is the change of the measure when the two rows swap places. Each tree is fitted
    to the sums of these forces and takes a Newton step (see `HistGBRTRegressor`). The model has the same
    bytes for any ``n_jobs``.

    Besides labels, the ranker learns from preferences between rows (``loss="ranknet"`` and "gbrank") and from
    clicks on rows that were shown at known positions ("lambdamart", "lambdaloss" and "ranknet"). See `fit`,
    and in the guide "Preferences instead of labels" and "Learning from clicks".

    Parameters
    ----------
    loss : str, Objective or callable, default="lambdamart"
        The loss that is minimised. "lambdamart" optimises ``measure``. "lambdaloss" adds the weight of near
        ranks of NDCG-Loss2++. "ranknet" gives every pair the same weight, and so does "gbrank", which has a
        squared hinge. "listnet" and "xendcg" are cross entropies over the rows of a query. "query_rmse" is
        the squared error about the mean of the query. An `Objective` has its own parameters. A function of
        (labels, scores, offsets) is a loss of your own: see the guide, "How to add your own".
    measure : str, Measure or callable, default="ndcg@10"
        The measure that "lambdamart" optimises, whichever it is. With every loss, it is also the measure that
        `score` returns and that early stopping follows. Values of different measures cannot be compared, so
        a search over ``measure`` needs a ``scoring`` of its own, such as `query_scorer`. "lambdaloss" accepts
        NDCG and DCG only. "xendcg" uses the gain of the measure.
    truncation_level : int or None, default=30
        Only pairs whose higher-ranked row is among the first ``truncation_level`` rows are counted. If None,
        all pairs are counted. If ``pairs`` are given, all of them count as their weights say, and only the
        defaults of this, of ``score_gap_norm`` and of ``query_norm`` are accepted, or what turns them off.
    gain : {"exp2", "linear"}, array-like, callable or None, default=None
        How much a label is worth. If None, it is the measure's own gain, :math:`2^{label} - 1`.
    sigma : float, default=1.0
        The steepness of the logistic function of the pairs. It changes nothing but the scale of the scores
        without ``l2_regularization``, ``min_hessian_to_split``, ``score_gap_norm``, ``query_norm="log"``,
        ``leaf_values="mean"`` and a model as ``init``. The larger it is, the more certain the scores of such
        a model are taken to be.
    score_gap_norm : float or None, default=0.3
        If a number, from 0.001 to 1000, the delta of each pair is divided by this number plus the gap between
        its scores, so that pairs far apart weigh less. LightGBM has 0.01, with which pairs that trees can
        hardly tell apart weigh most. If None, deltas are not divided.
    query_norm : {"none", "log", "unit"}, default="log"
        How the gradients of a query are normalised. "log" dampens queries with large gradients, as LightGBM
        does. "unit" gives all queries the same weight.
    noise : float, default=0.0
        The scale (over ``sigma``) of the logistic noise that is added to the scores before rows are ranked,
        drawn anew in each round. This makes the ranks stochastic, as in YetiRank.
    n_orders : int, default=1
        With ``noise``, the number of random orders over which each round takes the mean.
    bias_norm : float, default=0.25
        If ``position`` is given and ``propensities`` are not, the strength of the regularisation of the
        propensities that are estimated: the larger it is, the nearer they are to 1. It is p in
        `objectives.LambdaMART`.
    propensities : array-like of shape (n_positions,), default=None
        If ``position`` is given, how often each position is looked at, from the first position on. Only
        ratios matter. If None, the propensities are estimated along with the trees. Those of another fit may
        have NaN, to which ``np.fmax(propensities_, 0.05)`` gives the floor that low ones need anyway.
    step : {"newton", "optimal"}, default="newton"
        The weight of each new tree. With "newton", it is ``learning_rate``. With "optimal", it is the weight
        in ``step_interval`` with which the measure is highest on some rows, see `optimal_weight`, times
        ``learning_rate`` if that is given. Of equally good weights, the one nearest to the Newton step is
        taken: before the first tree all rows of a query tie, so each weight above 0 ranks them alike.
    step_interval : pair of float, default=(0.1, 5.0)
        With ``step="optimal"``, the lowest and the highest weight. A weight of 1 is the whole Newton step,
        unless leaves are means: these are smaller than Newton steps, and need larger weights, up to 100.
    step_rows : {"train", "validation"}, default="train"
        The rows on which ``step="optimal"`` finds weights. Validation rows are those of early stopping.
        `refit_leaves` uses the rows that it is given in either case.
    leaf_values : {"newton", "mean"}, default="newton"
        What a leaf is worth before its tree is weighted. With "newton", it is the Newton step of its rows.
        With "mean", it is the weighted mean of the forces on its rows, so that the weight of the tree is the
        only step; ``l2_regularization`` is then added to the sum of the weights. Losses whose leaves are
        quantiles keep these.
    learning_rate : float, array-like, callable or None, default=None
        The factor by which the values of each tree's leaves are multiplied. It may be one for each of
        ``max_iter`` rounds, or a function of the number of the round, from 0, that returns it. If None, it is
        0.05 if there are fewer than 40,000 rows to learn from, and otherwise 0.1, with which 300 trees learn
        more from many rows. With ``step="optimal"``, None is 1, and less is shrinkage.
    min_hessian_to_split : float, default=0.0
        The minimum sum of hessians on each side of a split. The hessian of a row is the sum over its
        pairs, and nearly 0 once all of them are in the right order. If ``gradient_sampling`` draws rows,
        the sum is estimated from those. It corresponds to ``min_child_weight`` of LightGBM and XGBoost.
    split_criterion : {"newton", "squared_error"}, default="newton"
        What splits are judged by. With "newton", it is the formula in `HistGBRTRegressor`. With
        "squared_error", each tree is fitted to the negative first derivatives by least squares, as in MART: a
        hessian is then the weight of its row, also in ``min_hessian_to_split`` and in the price of features.
        The values of leaves do not depend on it. ``monotonic_cst`` needs "newton" with Newton steps, and
        "squared_error" with means.
    gradient_sampling : float or None, default=4.0
        If not None, the splits of each tree are searched on a sample of the rows, drawn anew for each tree.
        Let k be this number, at least 0.01. A row of gradient g and hessian h is drawn with probability
        ``min(1, k * max(|g| / max |g|, h / max(max h, 8 mean h)))``, and then counts as 1 / probability rows.
        On real data sets, 4 gave better rankings than all rows did, by as much as drawing rows and features
        does, and training is faster. See the guide, "Sampling by gradients". The values of the leaves are
        computed from all rows. If None, all rows are used.
    scoring : str, Measure, callable or None, default=None
        The score that early stopping follows. If None, it is ``measure``. If "loss", it is the loss.
    init : float or estimator, default=None
        What boosting starts from. If None, it is 0 or, if the loss is an `Objective` that knows a better
        constant, such as `SquaredError`, that one. An estimator that is not fitted is fitted first. A model
        that is fitted already, or a scikit-learn ``FrozenEstimator`` of one, is used as it is, by clones as
        well, and thus in searches and cross-validation. If the model is an estimator of trees of this
        library, or an `Ensemble`, boosting starts from its scores, and its trees become the first trees of
        ``ensemble_``. The predictions of any other model are added to the values of the trees. For a
        classifier of two classes, the ``decision_function`` is used if there is one, otherwise the
        probability of the second class.

    Attributes
    ----------
    train_score_, validation_score_ : ndarray of float64
        The score that was followed, after each tree. Empty if not all trees were followed. For rows without
        labels, it is minus the loss of their pairs.
    propensities_, unclicked_propensities_ : ndarray of float64, shape (n_positions,)
        If ``position`` was given, how much more often rows at a position are clicked, or not clicked, than at
        the first position, whatever is shown there (t+ and t- of `objectives.LambdaMART`). NaN for positions
        on which no pair gives information.

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

    loss: str | Objective | Callable[..., Any] = field(default="lambdamart", kw_only=False)
    measure: AnyMeasure = "ndcg@10"
    truncation_level: int | None = 30
    gain: Worth | None = None
    sigma: float = 1.0
    score_gap_norm: float | None = 0.3
    query_norm: Literal["none", "log", "unit"] = "log"
    noise: float = 0.0
    n_orders: int = 1
    bias_norm: float = 0.25
    propensities: ArrayLike | None = None
    step: Literal["newton", "optimal"] = "newton"
    step_interval: ArrayLike = (0.1, 5.0)
    step_rows: Literal["train", "validation"] = "train"
    leaf_values: Literal["newton", "mean"] = "newton"
    gradient_sampling: float | None = 4.0
    scoring: AnyMeasure | None = None
    n_iter_no_change: int = 50
    tol: float = 0.0

    _share_of_features = 0.3
    _parameter_constraints = {  # noqa: RUF012
        **BOOSTING_CONSTRAINTS,
        "loss": [StrOptions(set(RANKING_LOSSES)), Objective, callable],
        "measure": [str, Measure, callable],
        "truncation_level": [Interval(Integral, 1, None, closed="left"), None],
        "gain": ["array-like", StrOptions({"exp2", "linear"}), callable, None],
        "sigma": [Interval(Real, 0, None, closed="neither")],
        "score_gap_norm": [Interval(Real, *GAPS, closed="both"), None],
        "query_norm": [StrOptions({"none", "log", "unit"})],
        "noise": [Interval(Real, 0, None, closed="left")],
        "n_orders": [Interval(Integral, 1, None, closed="left")],
        "bias_norm": [Interval(Real, 0, None, closed="left")],
        "propensities": ["array-like", None],
        "step": [StrOptions({"newton", "optimal"})],
        "step_interval": ["array-like"],
        "step_rows": [StrOptions({"train", "validation"})],
        "leaf_values": [StrOptions({"newton", "mean"})],
    }

    __metadata_request__fit = {"position": True, **_NOT_BY_ROW, **_NOT_BY_ROW_VAL}  # noqa: RUF012
    __metadata_request__score = _NOT_BY_ROW

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
        pairs: ArrayLike | None = None,
        pair_weight: ArrayLike | None = None,
        pair_target: ArrayLike | None = None,
        position: ArrayLike | None = None,
        X_val: RowsLike = None,
        y_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
        qid_val: IdsLike | None = None,
        pairs_val: ArrayLike | None = None,
        pair_weight_val: ArrayLike | None = None,
        pair_target_val: ArrayLike | None = None,
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
        y : array-like of shape (n_rows,), default=None
            The labels: finite numbers, with any number of grades. If ``position`` is given, clicks. A pandas
            Series whose index has a level named "qid" supplies the query ids as well, even through
            scikit-learn's splitters. With ``pairs`` it may be None. If it is given all the same, it is used
            by measures, and nothing is learned from it.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights >= 0. To weight a query, give its weight to each of its rows. If both rows and queries
            have weights, multiply the two. Not allowed with ``pairs``, which have ``pair_weight``.
        qid : array-like of shape (n_rows,), default=None
            The query id of each row: any hashable values, in any order. Only rows of the same query are
            compared with each other. For clicks, a query is the rows that were shown together.
        groups : array-like of shape (n_rows,), default=None
            The same under the name that scikit-learn's splitters know.
        group : array-like of shape (n_queries,), default=None
            The sizes of the queries in the order of the rows, as LightGBM takes them.
        pairs : array-like of shape (n_pairs, 2), int, default=None
            Preferences to learn from, with the losses "ranknet" and "gbrank". Each line holds the numbers of
            two rows of ``X`` that belong to one query, the first preferred to the second. Pairs may
            contradict each other and come in any order. Since they refer to rows by number, scikit-learn's
            splitters cannot slice them: see `feedback.pairs_among`.
        pair_weight : array-like of shape (n_pairs,), default=None
            Weights >= 0 of the pairs.
        pair_target : array-like of shape (n_pairs,), default=None
            The probability that the first row of each pair is the better one. With 0.5, both rows are equally
            good. If None, it is 1 for each pair.
        position : array-like of shape (n_rows,), int, default=None
            The rank at which each row was shown, from 1, if ``y`` are clicks. The losses "lambdamart",
            "lambdaloss" and "ranknet" then correct the clicks for how often each position is looked at.
        X_val, y_val, sample_weight_val, qid_val, pairs_val, pair_weight_val, pair_target_val : default=None
            The validation rows for early stopping, with labels or with pairs, which refer to the rows of
            ``X_val`` by number. Without labels the loss of the pairs is followed. If the model learns from
            clicks, ``y_val`` should preferably be labels.
        eval_set, eval_group, eval_qid : default=None
            The same in the form in which LightGBM and XGBoost take it: lists with one entry. Weights of these
            rows are passed as ``sample_weight_val``, an array.

        Returns
        -------
        self : LambdaMARTRanker
            The fitted estimator. If a fit fails, the estimator stays as it was.

        Raises
        ------
        ValueError, TypeError
            If an argument is invalid. The message names it.

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

    def _refuse_feedback(
        self, feedback: Feedback, feedback_val: Feedback, sample_weight: ArrayLike | None, validates: bool
    ) -> None:
        """Raise if what was given besides labels does not go with the rest."""
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
                    f"{', '.join(able)}: choose one, or leave {name} out."
                )
        if by_pairs and sample_weight is not None:
            raise ValueError(
                "pairs and sample_weight are both given, but the model learns from pairs, not from rows; "
                "expected one weight per pair: pass pair_weight."
            )
        if by_pairs and feedback.position is not None:
            raise ValueError(
                "pairs and position are both given, but positions correct clicks, which are labels; expected "
                "one of them: divide pair_weight by how often the positions of its rows are looked at."
            )
        if by_pairs:
            self._refuse_settings_of_labels()
        propensities = getattr(self.loss, "propensities", self.propensities)
        if propensities is not None and feedback.position is None:
            raise ValueError(
                "propensities say how often positions are examined, but position is None; expected the rank "
                "at which each row was shown: pass position, or leave propensities out."
            )
        if by_pairs_val and not by_pairs:
            raise ValueError(
                "pairs_val is given, but fit learns from labels; expected y_val, or pairs to learn from, too."
            )
        if by_pairs and validates and not by_pairs_val and self.scoring == "loss":
            raise ValueError(
                'scoring="loss" follows the loss of pairs, but the validation rows have none; pass '
                "pairs_val, or choose a measure of their labels."
            )

    def _refuse_settings_of_labels(self) -> None:
        named = isinstance(self.loss, str)
        for name, off, what in (
            ("truncation_level", None, "selects the pairs of labels that count"),
            ("score_gap_norm", None, "divides the weights of pairs of labels"),
            ("query_norm", "none", "weighs the pairs of labels by query"),
        ):
            value = getattr(self if named else self.loss, name, off)
            default = getattr(LambdaMARTRanker, name) if named else off
            if value not in (off, default):
                raise ValueError(
                    f"{name}={value!r} {what}, but pairs are given, which count as their weights say; leave "
                    f"it at {default!r}."
                )

    @with_keywords
    def score(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        qid: IdsLike | None = None,
        groups: IdsLike | None = None,
        pairs: ArrayLike | None = None,
        pair_weight: ArrayLike | None = None,
        pair_target: ArrayLike | None = None,
        early_exit: EarlyExit | None = None,
    ) -> float:
        """Return the mean of ``measure`` over the queries; for pairs, the share in the right order.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None
            The labels. A pandas Series whose index has a level named "qid" supplies the query ids as well.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights. The weight of a query is the mean of the weights of its rows.
        qid, groups : array-like of shape (n_rows,), default=None
            The query id of each row, in any order. ``qid`` and ``groups`` are two names for the same
            argument, since scikit-learn's splitters know it as ``groups``. Without ids, all rows are one
            query if the model was fitted without any; otherwise an error is raised.
        pairs, pair_weight, pair_target : array-like, default=None
            Pairs instead of labels, as for `fit`. See `feedback.preference_accuracy_score`.
        early_exit : EarlyExit, default=None
            As for `predict`. Measures of a ranking see the rows that are dropped behind all rows that stayed
            in longer.

        Returns
        -------
        score : float
            Higher is better. NaN, with an ``UndefinedMetricWarning``, if no query counts.

        Raises
        ------
        ValueError
            If both labels and pairs are given, or neither; or if labels are given without query ids, and the
            model was fitted with query ids.
        """
        refuse_batches(X, "X")
        if pairs is None and pair_weight is None and pair_target is None:
            if y is None:
                raise ValueError(
                    "score was given neither labels nor pairs; expected y, one label per row, or pairs=, "
                    "each of two rows of one query."
                )
            return super().score(X, y, sample_weight, qid=qid, groups=groups, early_exit=early_exit)
        check_is_fitted(self)
        beside = {"y": y, "sample_weight": sample_weight, "early_exit": early_exit}
        if given := [name for name, value in beside.items() if value is not None]:
            raise ValueError(
                f"score was given pairs and {given[0]}; expected labels or pairs, not both: score them one "
                "by one."
            )
        rows = check_rows(self, X, reset=False)
        queries = find_queries(rows.shape[0], {"qid": qid, "groups": groups}, {"X": X})
        order, offsets = queries or (None, np.array([0, rows.shape[0]]))
        data = FitData(rows, None, None, order, offsets, queries is not None)
        preferences: Any = Feedback(pairs, pair_weight, pair_target).joined(data).preferences
        return preferences.agreement(data.internal(self._scores(X, rows)))

    @with_keywords
    def refit_leaves(
        self,
        X: RowsLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        qid: IdsLike | None = None,
        groups: IdsLike | None = None,
        pairs: ArrayLike | None = None,
        pair_weight: ArrayLike | None = None,
        pair_target: ArrayLike | None = None,
        position: ArrayLike | None = None,
        decay: float = 0.9,
    ) -> Self:
        """Return a copy whose leaves have new values, learned from other rows on the same splits.

        This is like `HistGBRTRegressor.refit_leaves`, which has the formula and an example, but it also
        learns from preferences between rows and from clicks.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,), default=None
            The labels; clicks, if ``position`` is given. A pandas Series whose index has a level named "qid"
            supplies the query ids as well. With ``pairs`` it may be None.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights >= 0. Not allowed with ``pairs``, which have ``pair_weight``.
        qid, groups : array-like of shape (n_rows,), default=None
            The query id of each row, in any order. ``groups`` is another name for ``qid``.
        pairs, pair_weight, pair_target : array-like, default=None
            Preferences to learn from, as for `fit`.
        position : array-like of shape (n_rows,), int, default=None
            The rank at which each row was shown, if ``y`` are clicks, as for `fit`. How often positions are
            looked at is learned anew, tree by tree.
        decay : float, default=0.9
            The weight of the old values. With 1 they are kept, with 0 they are forgotten.

        Returns
        -------
        refitted : LambdaMARTRanker
            A fitted estimator, without ``train_score_`` and ``validation_score_``. The original stays as it
            is.

        Raises
        ------
        ValueError
            If ``decay`` is out of its range; if ``monotonic_cst`` is set, since new values may violate it;
            and for the same reasons as in `fit` and `score`.
        """
        feedback = Feedback(pairs, pair_weight, pair_target, position)
        self._refuse_feedback(feedback, NOTHING, sample_weight, False)
        queries = {"qid": qid, "groups": groups}
        return self._refit_leaves(X, y, sample_weight, queries, decay, feedback)

    def _measure(self) -> Measure:
        measure = as_measure(self.measure)
        if self.gain is None:
            return measure
        if "gain" not in measure.parameters:
            raise ValueError(
                f"gain={self.gain!r} says what labels are worth, but measure={self.measure!r} does not use "
                "it; expected None with this measure: leave gain out, or choose a measure that has one, "
                "such as 'ndcg@10'."
            )
        return measure(gain=self.gain)

    def _objective(self, seed: int = 0) -> Objective:
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

    def _scoring(self) -> AnyMeasure:
        return self._measure() if self.scoring is None else self.scoring

    def _measure_to_follow(self, data: FitData) -> Measure | None:
        if data.labels is not None:
            return super()._measure_to_follow(data)
        if self.scoring not in (None, "loss"):
            raise ValueError(
                f"scoring={self.scoring!r} is a measure of labels, but there are pairs only; pass labels, "
                'too, as y or y_val, or follow the loss of the pairs: scoring="loss".'
            )
        return None

    def _resume(self, prepared: Any, stages: Iterator[np.ndarray]) -> None:
        if not (hasattr(prepared, "propensities") and hasattr(self, "propensities_")):
            return
        if self._n_counted == self.n_iter_ or prepared.objective.propensities is not None:
            prepared.resume(self.propensities_, self.unclicked_propensities_)
            return
        # Those of the last round were learned from trees that early stopping has cut off.
        for iteration, scores in enumerate(stages):
            prepared.gradients(scores, *np.empty((2, len(scores))), iteration)

    def _keep_of(self, prepared: Any) -> None:
        for name in ("propensities_", "unclicked_propensities_"):
            self.__dict__.pop(name, None)
        if hasattr(prepared, "propensities"):
            self.propensities_, self.unclicked_propensities_ = prepared.propensities.copy()

    @property
    def _step_rows(self) -> str:  # type: ignore[override]
        return self.step_rows

    @property
    def _mean_leaves(self) -> bool:  # type: ignore[override]
        return self.leaf_values == "mean"

    def _rate(self, n_rows: int) -> Any:
        return 1.0 if self.step == "optimal" and self.learning_rate is None else super()._rate(n_rows)

    def _step(
        self, data: FitData | None, held_out: FitData | None, n_threads: int
    ) -> Callable[..., float] | None:
        interval = checked_interval("additive", self.step_interval, "step_interval", WEIGHTS_OF_TREES)
        if self.step == "newton":
            if interval != (default := type(self).step_interval):
                raise ValueError(
                    f"step_interval={self.step_interval!r} is the range of weights that a tree may get, but "
                    'with step="newton" each tree gets learning_rate: set step="optimal", or leave '
                    f"step_interval at {default}."
                )
            if self.step_rows == "validation":
                raise ValueError(
                    'step_rows="validation" says where weights of trees are found, but with step="newton" '
                    'each tree gets learning_rate: set step="optimal", or leave step_rows at "train".'
                )
            return None
        if self.step_rows == "validation":
            data = held_out
        if data is None:
            raise ValueError(
                'step_rows="validation" finds the weights of trees on validation rows, but there are none: '
                'pass X_val, y_val and qid_val, set early_stopping=True, or leave step_rows at "train".'
            )
        if data.labels is None:
            raise ValueError(
                'step="optimal" raises the measure of labels, but there are pairs only; pass y, too, or '
                'leave step at "newton".'
            )
        if not data.share.communicator.alone:
            raise ValueError(
                'step="optimal" reads all queries together, which ranks that train together cannot do; '
                'expected step="newton", or one process.'
            )
        measure = self._measure()
        measure.check_labels(data.labels, data.y_name)
        if self.monotonic_cst is not None and interval[0] < 0:
            raise ValueError(
                f"step_interval={self.step_interval!r} lets trees be subtracted, which reverses "
                "monotonic_cst; expected weights of at least 0."
            )

        def optimal(scores: np.ndarray, tree_scores: np.ndarray, newton: float) -> float:
            rows = data.labels, scores, tree_scores, data.offsets, data.weights
            return weight_curve_of(measure, *rows, "additive", interval, n_threads, near=newton).weight

        return optimal
