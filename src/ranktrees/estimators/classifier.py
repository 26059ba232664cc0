"""Boosted trees that tell two classes apart."""

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metadata_routing import UNUSED

from ranktrees.estimators.boosted import BOOSTING_CONSTRAINTS, BoostedTrees
from ranktrees.estimators.fitted import SCORES_REQUEST
from ranktrees.objectives import as_objective
from ranktrees.parameters import with_keywords, with_parameters


@with_parameters
class HistGBRTClassifier(BoostedTrees, ClassifierMixin, BaseEstimator):
    r"""Gradient boosted trees on histograms that tell two classes apart.

    The score :math:`s` of a row is the log odds of the second class, :math:`P = 1/(1+e^{-s})`. With
    :math:`y` 1 for the second class and 0 for the first, the trees make small the cross entropy

    .. math:: -a\, y \log P - b\, (1 - y) \log (1 - P)

    with :math:`a = b = 1`, or weights that make both classes count the same. They are the trees of
    `HistGBRTRegressor` with ``loss="logistic"``, fitted to 0 and 1. For more classes that have an order use
    `OrdinalRanker`; for more without one, scikit-learn's ``OneVsRestClassifier``.

    Parameters
    ----------
    balanced : bool, default=False
        Weigh the two classes so that both count the same, :math:`a = W / 2W_+`, :math:`b = W / 2W_-`
        (section 6.1 of Burges' overview). Probabilities are then those of a world in which both are as
        frequent.
    measure : str, Measure or callable, default=None
        What `score` returns: None is the accuracy, ``"auc"`` the mean AUC over the queries, and so on. The
        second class has the label 1, and rows rank by `decision_function`.
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
        A leaf is split only if that gains more than this. The gain is the formula in `HistGBRTRegressor`,
        twice the decrease of the loss; it scales with the loss and with ``sample_weight``. It corresponds
        to ``min_split_gain`` of LightGBM and ``gamma`` of XGBoost.
    min_hessian_to_split : float, default=0.0
        The minimum sum of hessians on each side of a split. The hessian of a row is w p (1 - p), where w
        is its weight and p its predicted probability. If ``gradient_sampling`` draws rows, the sum is
        estimated from those. It corresponds to ``min_child_weight`` of LightGBM and XGBoost.
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
        Per feature (or by name or index) 1: the odds rise with it, -1: they fall, 0: free.
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
        What boosting starts from: None is the loss's best constant; an estimator is fitted first, to 0 and 1.
        One that is fitted already, also a scikit-learn ``FrozenEstimator`` of one, is used as it is, and
        stays so in clones, thus in searches and cross-validation. Where it is an estimator of trees of this
        library, or an `Ensemble`, boosting goes on from its scores, and its trees are the first of
        ``ensemble_``. Of any other ``decision_function``, where it has one, the probability of the second
        class, or ``predict`` is added to what the trees say.
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
    classes_ : ndarray of shape (2,)
        The two classes, sorted; the second is the positive one.
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
    Burges, *From RankNet to LambdaRank to LambdaMART: an overview*, MSR-TR-2010-82, sections 6 and 6.1.
    Friedman, *Greedy function approximation: a gradient boosting machine*, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees import HistGBRTClassifier, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> seen = np.where(y >= 2, "relevant", "not")
    >>> model = HistGBRTClassifier(balanced=True, random_state=0).fit(X, seen)
    >>> model.classes_
    array(['not', 'relevant'], dtype='<U8')
    >>> model.score(X, seen) > 0.9
    True
    """

    balanced: bool = False

    _is_ranker = False
    _parameter_constraints = {**BOOSTING_CONSTRAINTS, "balanced": ["boolean"]}  # noqa: RUF012

    __metadata_request__decision_function = SCORES_REQUEST
    __metadata_request__predict = dict.fromkeys(SCORES_REQUEST, UNUSED) | {"n_trees": True}
    __metadata_request__predict_proba = {"n_trees": True}  # noqa: RUF012

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _objective(self, seed=0):
        return as_objective("logistic", balanced=self.balanced)

    def _score_without_queries(self, labels, scores, weights):
        return float(accuracy_score(labels, scores > 0, sample_weight=weights))

    def decision_function(self, X, *, n_trees=None, qid=None, early_exit=None, return_saved=False):
        """The log odds of the second class.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        n_trees, qid, early_exit, return_saved
            As for ``predict`` of `HistGBRTRegressor`.

        Returns
        -------
        scores : ndarray of float64, shape (n_rows,)
            Higher ranks first; above 0 the second class is the likelier one.
        saved : WorkSaved
            If ``return_saved``.
        """
        return super().predict(X, n_trees=n_trees, qid=qid, early_exit=early_exit, return_saved=return_saved)

    @with_keywords
    def predict_proba(self, X, *, n_trees=None):
        """The probabilities of the two classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        n_trees : int, default=None
            Use the first ``n_trees`` trees only; None uses all.

        Returns
        -------
        ndarray of float64, shape (n_rows, 2)
        """
        return self._probabilities(self.decision_function(X, n_trees=n_trees))

    @with_keywords
    def predict(self, X, *, n_trees=None):
        """The likelier class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        n_trees : int, default=None
            Use the first ``n_trees`` trees only; None uses all.

        Returns
        -------
        ndarray of shape (n_rows,)
            Of ``classes_``.
        """
        return self._likelier(self.decision_function(X, n_trees=n_trees))

    def staged_decision_function(self, X):
        """The log odds of the second class, after each tree.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)

        Yields
        ------
        scores : ndarray of float64, shape (n_rows,)
        """
        return super().staged_predict(X)

    def staged_predict_proba(self, X):
        """The probabilities of the two classes, after each tree.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)

        Yields
        ------
        probabilities : ndarray of float64, shape (n_rows, 2)
        """
        return map(self._probabilities, self.staged_decision_function(X))

    def staged_predict(self, X):
        """The likelier class of each row, after each tree.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)

        Yields
        ------
        classes : ndarray of shape (n_rows,)
        """
        return map(self._likelier, self.staged_decision_function(X))

    def _probabilities(self, scores):
        second = self._link(scores)
        return np.column_stack([1.0 - second, second])

    def _likelier(self, scores):
        return self.classes_[(scores > 0).astype(np.intp)]
