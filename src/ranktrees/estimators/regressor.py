"""Boosted trees for regression."""

from collections.abc import Callable
from dataclasses import field
from numbers import Real

from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from ranktrees.estimators.boosted import BOOSTING_CONSTRAINTS, BoostedTrees, loss_of
from ranktrees.estimators.fitting import link_of
from ranktrees.objectives import Objective
from ranktrees.parameters import with_parameters

REGRESSION_LOSSES = ("squared_error", "absolute_error", "quantile", "poisson", "logistic")


@with_parameters
class HistGBRTRegressor(BoostedTrees, RegressorMixin, BaseEstimator):
    r"""Gradient boosted regression trees on histograms.

    Each tree takes a Newton step of the loss: its splits maximise

    .. math:: \frac{G_l^2}{H_l + \lambda} + \frac{G_r^2}{H_r + \lambda} - \frac{G^2}{H + \lambda}

    and its leaves add :math:`-\eta\, G / (H + \lambda)`, where :math:`G` and :math:`H` are the sums of the
    loss's first and second derivatives, :math:`\lambda` is ``l2_regularization`` and :math:`\eta` the
    ``learning_rate``. All sums are exact integers: the model has the same bytes for any ``n_jobs``.

    Parameters
    ----------
    loss : str, Objective or callable, default="squared_error"
        One of "squared_error", "absolute_error", "quantile", "poisson" and "logistic".
        What is minimised; a function of (labels, scores, offsets) is one of your own: see the guide, "How to
        add your own". "poisson" predicts :math:`e^{s}` and "logistic" :math:`1/(1+e^{-s})` of the score.
    quantile : float, default=None
        With ``loss="quantile"``, and no other: which one, between 0 and 1.
    balanced : bool, default=False
        With ``loss="logistic"``, and no other: weigh the two classes so that both count the same.
    measure : str, Measure or callable, default=None
        What `score` returns: None is R², ``"ndcg@10"`` the mean NDCG at 10 over the queries, and so on.
    learning_rate : float, default=0.05
        What multiplies the values of each tree's leaves.
    max_iter : int, default=200
        The number of trees.
    max_leaf_nodes : int or None, default=31
        Leaves per tree; trees grow best leaf first, or, where they may have more than 16, a third of those
        still allowed at a time. None: layer by layer, without a limit.
    max_depth : int or None, default=None
        Splits between the root and a leaf, at most; None: no limit but that of the leaves.
    min_samples_leaf : int, default=20
        Rows per leaf, at least.
    l2_regularization : float, default=0.0
        Added to the sum of hessians of each leaf.
    min_gain_to_split : float, default=0.0
        A leaf is split only if that gains more than this. The gain is the formula above, twice the
        decrease of the loss; it scales with the loss and with ``sample_weight``. It corresponds to
        ``min_split_gain`` of LightGBM and ``gamma`` of XGBoost.
    min_hessian_to_split : float, default=0.0
        The minimum sum of hessians on each side of a split. With the squared error the hessian of a row
        is its weight. If ``gradient_sampling`` draws rows, the sum is estimated from those. It
        corresponds to ``min_child_weight`` of LightGBM and XGBoost.
    max_features : float, default=0.5
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
    gradient_sampling : float or None, default=1.5
        Splits are searched on a sample of the rows, drawn anew for each tree. With k for this number, .01 or
        more, a row of gradient g and hessian h is drawn with the odds
        ``min(1, k * max(|g| / max |g|, h / max(max h, 8 mean h)))``, and then counts as 1 / odds rows. None
        takes all. It regularises as drawing rows does, and is faster: see the guide, "Sampling by gradients".
        The values of the leaves are computed from all rows.
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        A boolean mask, indices or names; "from_dtype" takes the categorical columns of a data frame.
    monotonic_cst : array-like of int or dict, default=None
        Per feature (or by name or index) 1: predictions rise with it, -1: they fall, 0: free.
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
        Stop when the validation score rises no more. True holds out ``validation_fraction`` where no
        validation rows are given; "auto" stops early exactly when they are given; False only follows them,
        and keeps all trees.
    scoring : str, Measure or callable, default="loss"
        What early stopping follows: "loss" or a measure such as "ndcg@10".
    validation_fraction : float, default=0.1
        With ``early_stopping=True``, where no validation rows are given: share of the queries to hold out,
        whole; of the rows where there are no queries. Nothing is held out otherwise.
    n_iter_no_change : int, default=10
        Rounds without a better validation score before training stops.
    tol : float, default=1e-7
        What counts as better.
    subsample, query_subsample : float, default=1.0
        The share of the rows, and of the queries, that each tree is grown from.
    init : float or estimator, default=None
        What boosting starts from: None is the loss's best constant; an estimator is fitted first. One that is
        fitted already, also a scikit-learn ``FrozenEstimator`` of one, is used as it is, and stays so in
        clones, thus in searches and cross-validation. Where it is an estimator of trees of this library, or
        an `Ensemble`, boosting goes on from its scores, and its trees are the first of ``ensemble_``. Of any
        other, ``predict`` is added to what the trees say; of a classifier of two classes
        ``decision_function``, where it has one, or the probability of the second class.
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
        The followed score after each tree; empty where not all trees were followed.
    feature_importances_ : ndarray of float64, shape (n_features,)
        The share of each feature in the gains of all splits.
    n_features_in_ : int
        The number of columns of ``X``.
    feature_names_in_ : ndarray of str
        What the columns of a data frame are called; there where all names are strings.

    References
    ----------
    Friedman, *Greedy function approximation: a gradient boosting machine*, 2001.
    Mohan, *An empirical analysis on pointwise machine learning techniques using regression trees for
    web-search ranking*, 2010; its appendix A is the exact search.
    Tyree, Weinberger, Agrawal, Paykin, *Parallel boosted regression trees for web search ranking*, WWW 2011.

    Examples
    --------
    >>> from ranktrees import HistGBRTRegressor, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> model = HistGBRTRegressor(measure="ndcg@10", random_state=0).fit(X, y, qid=qid)
    >>> model.score(X, y, qid=qid) > 0.9
    True
    """

    loss: str | Objective | Callable = field(default="squared_error", kw_only=False)
    quantile: float | None = None
    balanced: bool = False

    _is_ranker = False
    _parameter_constraints = {  # noqa: RUF012
        **BOOSTING_CONSTRAINTS,
        "loss": [
            StrOptions(set(REGRESSION_LOSSES)),
            Objective,
            callable,
        ],
        "quantile": [Interval(Real, 0, 1, closed="neither"), None],
        "balanced": ["boolean"],
    }

    def _objective(self, seed=0):
        return loss_of(self, {"quantile": self.quantile, "balanced": self.balanced}, REGRESSION_LOSSES)

    def _link_by(self, objective):
        return link_of(objective)

    def _finish(self, scores):
        return scores if self._link is None else self._link(scores)
