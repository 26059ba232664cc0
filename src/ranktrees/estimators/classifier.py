"""Boosted trees that tell classes apart."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.metadata_routing import UNUSED

from ranktrees.estimators.boosted import BOOSTING_CONSTRAINTS, BoostedTrees
from ranktrees.estimators.columns import recoded
from ranktrees.estimators.fitted import SCORES_REQUEST
from ranktrees.estimators.fitting import link_of
from ranktrees.estimators.parameters import with_keywords, with_parameters
from ranktrees.estimators.starting import Start
from ranktrees.model.ensemble import Ensemble
from ranktrees.objectives import as_objective
from ranktrees.objectives.pointwise import Softmax


@with_parameters
class HistGBRTClassifier(BoostedTrees, ClassifierMixin, BaseEstimator):
    r"""Gradient boosted trees on histograms for classification.

    With two classes, the score :math:`s` of a row is the log odds of the second class, whose probability is
    :math:`P = 1/(1+e^{-s})`. With :math:`y` 1 for the second class and 0 for the first, the trees minimise
    the cross entropy

    .. math:: -a\, y \log P - b\, (1 - y) \log (1 - P)

    with :math:`a = b = 1`, or with weights that make both classes count the same. The trees are those of
    `HistGBRTRegressor` with ``loss="logistic"``, fitted to 0 and 1.

    With :math:`K > 2` classes, each class has a score :math:`s_k`, the probability of a class is
    :math:`P_k = e^{s_k} / \sum_j e^{s_j}`, and a tree is grown for each class in each round. The trees
    minimise :math:`-a_y \log P_y`, where :math:`y` is the class of the row. The hessian of class :math:`k` is
    :math:`\frac{K}{K-1} P_k (1 - P_k)`, Friedman's: the scores of the other classes move as well. If classes
    are grades, `OrdinalRanker` turns probabilities into a ranking.

    Parameters
    ----------
    balanced : bool, default=False
        Whether to weight the classes so that all count the same: :math:`a = W / 2W_+`,
        :math:`b = W / 2W_-` (section 6.1 of Burges' overview), and :math:`a_k = W / (K W_k)`. Probabilities
        are then those of a population in which all classes are equally frequent.
    measure : str, Measure or callable, default=None
        The measure that `score` returns. If None, it is the accuracy. With ``"auc"``, it is the mean AUC over
        the queries, and so on. The second class has the label 1, and rows are ranked by `decision_function`.
        If there are more classes, they are the grades 0, 1, ..., in their order, and the score of a row is
        its expected grade.
    learning_rate : float or None, default=None
        The factor by which the values of each tree's leaves are multiplied. If None, it is 0.05 if there
        are fewer than 40,000 rows to learn from, and otherwise 0.1, with which 300 trees learn more from many
        rows.
    max_iter : int, default=300
        The number of trees or, with more than two classes, of rounds, which grow a tree for each class.
    max_leaf_nodes : int or None, default=31
        The maximum number of leaves of each tree. Trees grow best leaf first. If a tree may have more than 16
        leaves, those that promise at least half of what the best one does are split together, at most a third
        of the remaining splits at a time, or the last 8. With ``feature_costs`` they are split one by one, in
        trees before which some feature is still to be paid for. If None, trees grow layer by layer, without a
        limit.
    max_depth : int or None, default=None
        The maximum number of splits between the root and a leaf. If None, only the number of leaves limits
        the depth.
    min_samples_leaf : int, default=20
        The minimum number of training rows in each leaf. Rows that were not drawn for the tree are counted,
        too, and so are rows of weight 0; to leave rows out, drop them.
    l2_regularization : float, default=0.0
        The L2 regularisation, which is added to the sum of the hessians of each leaf.
    min_gain_to_split : float, default=0.0
        A leaf is split only if that gains more than this. The gain is the formula in `HistGBRTRegressor`,
        twice the decrease of the loss; it scales with the loss and with ``sample_weight``. It corresponds
        to ``min_split_gain`` of LightGBM and ``gamma`` of XGBoost.
    min_hessian_to_split : float, default=0.0
        The minimum sum of hessians on each side of a split. The hessian of a row is w p (1 - p), where w
        is its weight and p its predicted probability. If ``gradient_sampling`` draws rows, the sum is
        estimated from those. It corresponds to ``min_child_weight`` of LightGBM and XGBoost.
    max_features : float or None, default=None
        The share of the features that each split considers, drawn at random (kSGBRT in Mohan's survey). If
        None, it is 0.5 if there are fewer than 40,000 rows to learn from, and otherwise 1: all features.
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
        - "auto" is "coarse_to_fine" if there are at least 64 features, none of them categorical, and each
          split considers at least an eighth of them, unless ``handle_missing="three_way"``. Otherwise it is
          "full".
        - "exact" makes a bin of each distinct value, so that every cut half-way between two neighbouring
          values is tried. It is the reference for the others. It is slower, and takes 4 bytes of memory per
          value of ``X`` if a feature has more than 255 distinct values, and 8 bytes per distinct value.
          ``max_bins`` must be left at 255.
        - "pgbrt" makes histograms of at most ``max_bins`` centroids of the rows of each leaf, one row after
          another, and takes the split that is best by these alone, as the paper on pGBRT does. It is slower
          than "full", and is meant for comparisons with it. See the guide, "Streaming histograms".
        - "streaming" has the splits of such histograms confirmed by the rows.
    split_criterion : {"newton", "squared_error"}, default="newton"
        What splits are judged by. With "newton", it is the formula in `HistGBRTRegressor`. With
        "squared_error", each tree is fitted to the negative first derivatives by least squares, as in MART: a
        hessian is then the weight of its row, also in ``min_hessian_to_split`` and in the price of features.
        Leaves are the same Newton steps either way. ``monotonic_cst`` needs "newton".
    gradient_sampling : float or None, default=1.5
        If not None, the splits of each tree are searched on a sample of the rows, drawn anew for each tree.
        Let k be this number, at least 0.01. A row of gradient g and hessian h is drawn with probability
        ``min(1, k * max(|g| / max |g|, h / max(max h, 8 mean h)))``, and then counts as 1 / probability rows.
        Sampling regularises as ``subsample`` does, and makes training faster. See the guide, "Sampling by
        gradients". The values of the leaves are computed from all rows. If None, all rows are used.
    categorical_features : array-like, "from_dtype" or None, default="from_dtype"
        The categorical features: a boolean mask, indices or names. If "from_dtype", they are the categorical
        columns of a data frame. If None, there are none, and such columns are refused. A column of strings is
        categorical if it is among the features given here.
    monotonic_cst : array-like of int or dict, default=None
        The monotonic constraint of each feature on the probability of the second class: 1 for an increase, -1
        for a decrease, and 0 for no constraint. A dict maps names or indices of features to constraints. Only
        for two classes.
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
        sum of squared errors, which grows with the number of rows ("rank", lambda in Mohan's survey), or of
        a tree's mean squared error ("worth"; if costs are numbers such as 1 to 100, begin with 1e-4). With 0,
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
    early_stopping : bool or "auto", default="auto"
        Whether to stop when the validation score stops improving. If True and no validation rows are given, a
        share ``validation_fraction`` of the training data is held out. If "auto", training stops early if,
        and only if, validation rows are given. If False, the validation score is followed but does not stop
        training, and all trees are kept.
    scoring : str, Measure or callable, default="loss"
        The score that early stopping follows: "loss", or a measure such as ``"ndcg@10"``.
    validation_fraction : float, default=0.1
        The share of the queries that is held out if ``early_stopping=True`` and no validation rows are given.
        Queries are held out whole. If there are no queries, it is a share of the rows. Nothing is held out
        otherwise.
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
        fitted is fitted first, to 0 and 1. A model that is fitted already, or a scikit-learn
        ``FrozenEstimator`` of one, is used as it is, by clones as well, and thus in searches and
        cross-validation. If the model is an estimator of trees of this library, or an `Ensemble`, boosting
        starts from its scores, and its trees become the first trees of ``ensemble_``. Of any other model, the
        ``decision_function`` is added to the values of the trees if there is one, otherwise the probability
        of the second class or ``predict``. With more than two classes, it is None or a number.
    init_cv : "oob", int, splitter, iterable or None, default=None
        What training rows start from if ``init`` is fitted here. If None, they start from the predictions of
        ``init``, although it has seen their labels. If "oob", a row starts from the predictions of those
        trees of a `RandomForestRanker` that have not seen it. Rows that all trees have seen start from the
        mean label, with a warning. If an int or a splitter, a row starts from the prediction of a model that
        was fitted without the row's fold. If there are queries, folds consist of whole queries. New rows
        start from the whole ``init`` in any case.
    verbose : int or "bar", default=0
        If above 0, print a line every ``verbose`` trees. If "bar", draw a progress bar (needs tqdm).
    random_state : int, RandomState or None, default=None
        The source of randomness for everything that is drawn. With an int, each fit gives the same model. If
        None, each fit draws anew.
    n_jobs : int or None, default=None
        The number of threads. None and -1 use all processors. The model does not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted. Of two, the second is the positive one.
    ensemble_ : Ensemble
        The trees, stored in arrays. Defined only if there are two classes.
    ensembles_ : tuple of Ensemble
        The trees of each class, which add up to its score. Defined only if there are more than two classes;
        `n_iter_`, `best_iteration_` and ``n_trees`` then count the trees of each.
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
    learning_rate_, max_features_ : float
        The learning rate and the share of the features that were used.
    best_iteration_ : int
        The number of trees kept. After early stopping, these are the trees up to the best validation score.
    train_score_, validation_score_ : ndarray of float64
        The score that was followed, after each tree. Empty if not all trees were followed.
    feature_importances_ : ndarray of float64, shape (n_features,)
        The share of each feature in the total gain of all splits.
    n_features_in_ : int
        The number of columns of ``X``.
    feature_names_in_ : ndarray of str
        The names of the columns of a data frame. Defined only if all names are strings.

    References
    ----------
    Burges, *From RankNet to LambdaRank to LambdaMART: an overview*, MSR-TR-2010-82, sections 6 and 6.1.
    Friedman, *Greedy function approximation: a gradient boosting machine*, 2001, section 4.6 for several
    classes.

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

    Five classes:

    >>> model = HistGBRTClassifier(max_iter=50, random_state=0).fit(X, y)
    >>> model.predict_proba(X).shape, len(model.ensembles_)
    ((3000, 5), 5)
    """

    balanced: bool = False

    _is_ranker = False
    _parameter_constraints = {**BOOSTING_CONSTRAINTS, "balanced": ["boolean"]}  # noqa: RUF012

    __metadata_request__decision_function = SCORES_REQUEST
    __metadata_request__predict = dict.fromkeys(SCORES_REQUEST, UNUSED) | {"n_trees": True}
    __metadata_request__predict_proba = {"n_trees": True}  # noqa: RUF012

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            if name == "ensemble_" and self._has_several:
                raise AttributeError(
                    f"{type(self).__name__} of {len(self.classes_)} classes has no ensemble_, since each "
                    "class has its own; expected two classes, or ensembles_[k], whose scores are those of "
                    "class k.",
                    name=name,
                    obj=self,
                )
            return super().__getattr__(name)

    @property
    def _has_several(self):
        """Whether each class has an ensemble."""
        return "ensembles_" in vars(self)

    @property
    def _ensembles(self):
        return self.ensembles_ if self._has_several else super()._ensembles

    def _earlier(self):
        return self.ensembles_ if self.warm_start and self._has_several else super()._earlier()

    def _recode(self, known):
        if not self._has_several:
            super()._recode(known)
            return
        self.ensembles_ = tuple(recoded(self, self._category_levels, known, one) for one in self.ensembles_)

    def _objective(self, seed=0):
        if len(self.classes_) > 2:
            return Softmax(len(self.classes_), self.balanced)
        return as_objective("logistic", balanced=self.balanced)

    def _score_without_queries(self, labels, scores, weights):
        return float(accuracy_score(labels, _numbers_of_likeliest(scores), sample_weight=weights))

    def decision_function(self, X, *, n_trees=None, qid=None, early_exit=None, return_saved=False):
        """Return the log odds of the second class or, if there are more than two, a score for each class.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        n_trees, qid, early_exit, return_saved
            As for ``predict`` of `HistGBRTRegressor`.

        Returns
        -------
        scores : ndarray of float64, shape (n_rows,) or (n_rows, n_classes)
            Of two classes: rows with higher scores rank first, and where a score is above 0, the second class
            is the likelier one. Of more classes: the class with the highest score is the likeliest.
        saved : WorkSaved
            Only if ``return_saved`` is True.
        """
        return super().predict(X, n_trees=n_trees, qid=qid, early_exit=early_exit, return_saved=return_saved)

    @with_keywords
    def predict_proba(self, X, *, n_trees=None):
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        n_trees : int, default=None
            If given, only the first ``n_trees`` trees are used. If None, all trees are used.

        Returns
        -------
        ndarray of float64, shape (n_rows, n_classes)
        """
        return self._probabilities(self.decision_function(X, n_trees=n_trees))

    @with_keywords
    def predict(self, X, *, n_trees=None):
        """Return the likeliest class of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        n_trees : int, default=None
            If given, only the first ``n_trees`` trees are used. If None, all trees are used.

        Returns
        -------
        ndarray of shape (n_rows,)
            Entries of ``classes_``.
        """
        return self._likeliest(self.decision_function(X, n_trees=n_trees))

    def staged_decision_function(self, X):
        """Yield what `decision_function` returns after each tree, or round of trees.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)

        Yields
        ------
        scores : ndarray of float64, shape (n_rows,) or (n_rows, n_classes)
        """
        return super().staged_predict(X)

    def staged_predict_proba(self, X):
        """Yield the probabilities of the classes after each tree, or round of trees.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)

        Yields
        ------
        probabilities : ndarray of float64, shape (n_rows, n_classes)
        """
        return map(self._probabilities, self.staged_decision_function(X))

    def staged_predict(self, X):
        """Yield the likeliest class of each row after each tree, or round of trees.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)

        Yields
        ------
        classes : ndarray of shape (n_rows,)
        """
        return map(self._likeliest, self.staged_decision_function(X))

    def _scores(self, X, rows, n_trees=None):
        if not self._has_several:
            return super()._scores(X, rows, n_trees)
        n_threads = self._threads_to_score(rows)
        ensembles = self.ensembles_ if n_trees is None else [one.first(n_trees) for one in self.ensembles_]
        return np.stack([one.predict(rows, n_threads) for one in ensembles], axis=1)

    def _stages(self, X, rows, n_threads):
        if not self._has_several:
            return super()._stages(X, rows, n_threads)
        of_classes = (one.staged_predict(rows, n_threads) for one in self.ensembles_)
        return (np.stack(scores, axis=1) for scores in zip(*of_classes, strict=True))

    def _start_of_before(self):
        if not self._has_several:
            return super()._start_of_before()
        bases = np.array([one.base for one in self.ensembles_])
        return Start(Ensemble._in_turn(self.ensembles_), bases=bases)

    def _link_by(self, objective, measure):
        if measure is not None and isinstance(objective, Softmax):
            return partial(_expected_classes, objective)
        return None if measure is None or measure.by_order else link_of(objective)

    def _value(self, measure, data, scores, mean):
        link = self._link_by(self._objective(), measure)
        return super()._value(measure, data, scores if link is None else link(scores.T), mean)

    def _probabilities(self, scores):
        if scores.ndim == 2:
            return np.ascontiguousarray(self._link(scores.T).T)
        second = self._link(scores)
        return np.column_stack([1.0 - second, second])

    def _likeliest(self, scores):
        return self.classes_[_numbers_of_likeliest(scores)]


def _numbers_of_likeliest(scores):
    """The number of the class of the highest score; of two classes, by the log odds of the second."""
    return scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.intp)


def _expected_classes(objective, scores):
    """The mean of the numbers of the classes, weighted by their probabilities."""
    expected = np.zeros(scores.shape[1])
    for number, probabilities in enumerate(objective.inverse_link(scores)):
        expected += number * probabilities  # in this order, whatever the machine
    return expected
