"""What an estimator of trees does once it is fitted: predict, rank, score."""

from itertools import islice
from numbers import Integral
from typing import TYPE_CHECKING

from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from ranktrees.best import require_how_many, table_of_best
from ranktrees.cost_curve import cost_curve_of
from ranktrees.costs import FeatureCosts
from ranktrees.early_exit import check_early_exit
from ranktrees.early_exit import predict as predict_with_exits
from ranktrees.estimators.columns import over_columns_of
from ranktrees.features import keys_of
from ranktrees.measures import as_measure
from ranktrees.parallel import effective_n_threads
from ranktrees.parameters import look_up, with_keywords
from ranktrees.validation import (
    check_rows,
    check_score,
    find_queries,
    qid_of,
)

# What a method that gives scores may be passed by scikit-learn's tools.
SCORES_REQUEST = {"qid": True, "n_trees": True, "early_exit": True, "return_saved": True}


class FittedTrees:
    """What the estimators share once they have their ``ensemble_``: rows in, scores out."""

    __metadata_request__predict = SCORES_REQUEST
    __metadata_request__score = {"qid": True, "groups": True, "early_exit": True}  # noqa: RUF012

    _is_ranker = True
    _fitted_costs = None
    _link = None  # what makes predictions of scores, by the loss of the fit; None where they are the same
    n_init_trees_ = 0  # so many of the ensemble's trees, the first, are those that boosting started from

    if not TYPE_CHECKING:  # which would believe that there is every attribute

        def __getattr__(self, name):
            return look_up(self, name)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.positive_only = self._is_ranker
        return tags

    def _validate_params(self):
        super()._validate_params()
        self._measure()  # an unknown one is refused before trees are grown, rather than in score

    def _scores(self, X, rows, n_trees=None):
        ensemble = self.ensemble_
        if n_trees is not None:
            ensemble = ensemble.first(self.n_init_trees_ + n_trees)
        return ensemble.predict(rows, self._threads_to_score(rows), start=self._starting_scores(X))

    def _threads_to_score(self, rows):
        return effective_n_threads(self.n_jobs, rows.shape[0] * (rows.shape[1] + len(self.ensemble_)))

    def _scores_and_saved(self, X, rows, queries, early_exit, n_trees=None):
        check_early_exit(early_exit)
        return predict_with_exits(
            early_exit,
            self.ensemble_,
            rows,
            queries,
            start=self._starting_scores(X),
            finish=self._finish,
            n_init_trees=self.n_init_trees_,
            n_trees=n_trees,
            n_threads=self._threads_to_score(rows),
        )

    @property
    def _n_counted(self):
        """How many trees ``n_trees`` counts."""
        return len(self.ensemble_) - self.n_init_trees_

    def _starting_scores(self, X):
        """What the trees' values are added to, where that is not the ensemble's constant."""
        return None

    def _foreign_init(self):
        """The model whose predictions the trees are added to; None where the trees are all there is."""
        return None

    def _finish(self, scores):
        """Predictions of scores."""
        return scores

    def save(self, path):
        r"""Write the model to a file: its trees, which score as this estimator does.

        Parameters
        ----------
        path : path-like
            Where to; read it by ``EnsembleRanker(Ensemble.load(path))``. The file has the names of the
            columns and the levels of category columns that are strings, booleans or numbers, but not the
            :math:`e^s` or :math:`1/(1+e^{-s})` of a Poisson or logistic loss.

        Raises
        ------
        ValueError
            If the trees are not the whole model, since boosting started from a model that is not made of
            trees of ranktrees.
        """
        check_is_fitted(self)
        over_columns_of(self, whole_ensemble(self)).save(path)

    @with_keywords
    def predict(self, X, *, n_trees=None, qid=None, early_exit=None, return_saved=False):
        """Score rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Float32 and float64 are scored as they are, without a copy. An index level named "qid" brings the
            query ids along.
        n_trees : int, default=None
            Use the first ``n_trees`` trees only; None uses all. Those that boosting started from (``init``)
            are always used, and not counted.
        qid : array-like of shape (n_rows,), default=None
            The query of each row, in any order. Only an early exit looks at it.
        early_exit : EarlyExit, default=None
            Which rows are dropped before all trees have seen them. They keep the score that they had, which
            may be above the final score of a row that stayed: `rank` and
            :meth:`~ranktrees.early_exit.WorkSaved.dropped_last` put them behind it.
        return_saved : bool, default=False
            Whether to return what the early exit has saved, too.

        Returns
        -------
        scores : ndarray of float64, shape (n_rows,)
            Higher ranks first. Scores of rows of different queries may be computed together: without early
            exit a row's score depends on nothing but the row, and with it on nothing but its query.
        saved : WorkSaved
            If ``return_saved``.

        Raises
        ------
        ValueError
            If the early exit needs query ids and there are none; the message names what to pass.
        """
        check_is_fitted(self)
        most = self._n_counted
        if n_trees is not None and not (isinstance(n_trees, Integral) and 0 <= n_trees <= most):
            raise ValueError(
                f"n_trees={n_trees!r}: expected a whole number from 0 to {most}, "
                f"the number of trees {'after those of init' if self.n_init_trees_ else 'of the model'}."
            )
        rows = check_rows(self, X, reset=False)
        if early_exit is None and qid is None and not return_saved:
            return self._finish(self._scores(X, rows, n_trees))
        queries = find_queries(rows.shape[0], {"qid": qid}, {"X": X})
        scores, saved = self._scores_and_saved(X, rows, queries, early_exit, n_trees)
        return (scores, saved) if return_saved else scores

    @with_keywords
    def rank(self, X, qid=None, k=10, *, early_exit=None):
        """The best rows of each query.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            As for `predict`. An index level named "qid" brings the query ids along.
        qid : array-like of shape (n_rows,), default=None
            The query of each row: any hashable values, in any order.
        k : int or None, default=10
            How many rows of each query to return; all, if it has fewer. None returns all of every query.
        early_exit : EarlyExit, default=None
            As for `predict`. A row that is dropped ranks behind all that stayed in longer.

        Returns
        -------
        DataFrame
            One row for each that is returned, queries in order of first appearance, best first. ``query`` is
            the query id, ``row`` the position in ``X``, ``rank`` counts from 1, ``score`` is that of
            `predict`. Rows with equal scores stand in the order of ``X``.

        Raises
        ------
        ImportError
            If pandas is not installed.
        ValueError
            If there are no query ids, or ``k`` is not a whole number of at least 1.

        Examples
        --------
        >>> from ranktrees import LambdaMARTRanker, make_ranking
        >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
        >>> ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(X, y, qid=qid)
        >>> ranks = ranker.rank(X, qid, k=2)
        >>> print(ranks[["query", "rank"]].head(4))
           query  rank
        0      0     1
        1      0     2
        2      1     1
        3      1     2
        >>> bool((ranks["score"] == ranker.predict(X)[ranks["row"]]).all())
        True
        """
        check_is_fitted(self)
        require_how_many(k)
        rows = check_rows(self, X, reset=False)
        queries = find_queries(rows.shape[0], {"qid": qid}, {"X": X})
        if queries is None:
            raise ValueError(
                "rank needs qid=: the best rows of each query are asked for. Pass qid= (one id per row), or "
                "rows whose index has a level named 'qid'; a qid of all zeros says that one query is meant."
            )
        scores, saved = self._scores_and_saved(X, rows, queries, early_exit)
        ids = qid_of(X) if qid is None else qid
        n_threads = effective_n_threads(self.n_jobs)
        return table_of_best(scores, saved.dropped_last(scores), queries, ids, k, n_threads)

    def staged_predict(self, X):
        """Score rows after each tree.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)

        Yields
        ------
        scores : ndarray of float64, shape (n_rows,)
            With the first tree, with the first two, and so on, those that boosting started from (``init``)
            not counted.
        """
        check_is_fitted(self)
        rows = check_rows(self, X, reset=False)
        start = self._starting_scores(X)
        n_threads = effective_n_threads(self.n_jobs, rows.shape[0])
        stages = self.ensemble_.staged_predict(rows, n_threads, start=start)
        for scores in islice(stages, self.n_init_trees_, None):
            yield self._finish(scores)

    @with_keywords
    def score(self, X, y, sample_weight=None, *, qid=None, groups=None, early_exit=None):
        """The mean of ``measure`` over the queries; where that is None, R² or a classifier's accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Labels. A pandas Series whose index has a level named "qid" brings the query ids along.
        sample_weight : array-like of shape (n_rows,), default=None
            A query weighs as much as its rows on average.
        qid, groups : array-like of shape (n_rows,), default=None
            The query of each row, in any order; two names for the same thing, so that scikit-learn's
            splitters, which know ``groups``, and people, who know ``qid``, are both served. Without them all
            rows are one query.
        early_exit : EarlyExit, default=None
            As for `predict`. Measures of a ranking see rows that are dropped behind all that stayed in
            longer; others (RMSE, R²) see the frozen scores.

        Returns
        -------
        score : float
            Higher is better. NaN, with an ``UndefinedMetricWarning``, where no query counts.

        Raises
        ------
        ValueError
            If the model was fitted with query ids and none are given here, or the measure does not accept the
            labels.
        """
        check_is_fitted(self)
        measure = self._measure()
        asks = self._is_mean_over_queries(measure)
        data = check_score(self, X, y, sample_weight, qid=qid, groups=groups, ranker=asks)
        if early_exit is None:
            scores = self._finish(self._scores(X, data.X))
        else:
            queries = (data.order, data.offsets) if data.qid_given else None
            scores, saved = self._scores_and_saved(X, data.X, queries, early_exit)
            if measure is not None and measure.by_order:
                scores = saved.dropped_last(scores)
        return self._value(measure, data, scores, "signed_mean")

    def _value(self, measure, data, scores, mean):
        """What a measure, or else R² or the accuracy, says of scores in the order of the rows."""
        scores = scores if data.order is None else scores[data.order]
        if measure is None:
            return self._score_without_queries(data.labels, scores, data.weights)
        n_threads = effective_n_threads(self.n_jobs)
        return getattr(measure, mean)(data.labels, scores, data.offsets, data.weights, n_threads)

    def cost_curve(
        self,
        X,
        y,
        sample_weight=None,
        *,
        qid=None,
        measure=None,
        early_exit=None,
        feature_costs=None,
        feature_groups=None,
    ):
        """Cost against quality as trees are added.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Labels. A pandas Series whose index has a level named "qid" brings the query ids along.
        sample_weight : array-like of shape (n_rows,), default=None
            A query weighs as much as its rows on average.
        qid : array-like of shape (n_rows,), default=None
            The query of each row, in any order. Without them all rows are one query.
        measure : str or Measure, default=None
            What is measured; None is what `score` returns, without a sign.
        early_exit : EarlyExit, default=None
            As for `predict`: rows that leave early do not pay for features that only later trees use. In
            measures of a ranking they stand behind all that stayed in longer.
        feature_costs : array-like of shape (n_features,) or mapping, default=None
            As for the estimator, whose own are taken where there are none here.
        feature_groups : sequence of sets of names or indices, default=None
            As for the estimator; they go with ``feature_costs``.

        Returns
        -------
        CostCurve
            Arrays ``n_trees``, ``cost`` (the mean over the rows) and ``value``; and ``plot()``. Trees of
            ``init`` are not counted, but their features are paid for.

        Raises
        ------
        ValueError
            If there are no costs, neither here nor in `fit`; if a measure is taken of a model that was fitted
            with query ids, and none are given here.

        Examples
        --------
        >>> from ranktrees import LambdaMARTRanker, make_ranking
        >>> X, y, qid = make_ranking(60, n_features=5, random_state=0, return_X_y_qid=True)
        >>> costs = [1, 1, 5, 5, 20]
        >>> ranker = LambdaMARTRanker(max_iter=20, feature_costs=costs, cost_weight=0.03, random_state=0)
        >>> curve = ranker.fit(X, y, qid=qid).cost_curve(X, y, qid=qid)
        >>> bool(curve.cost[0] < curve.cost[-1])
        True
        >>> bool(curve.value[0] < curve.value[-1])
        True
        """
        check_is_fitted(self)
        measure = self._measure() if measure is None else as_measure(measure)
        asks = self._is_mean_over_queries(measure)
        data = check_score(self, X, y, sample_weight, qid=qid, ranker=asks, method="cost_curve")
        if feature_costs is not None:
            costs = FeatureCosts.of(feature_costs, feature_groups, self.n_features_in_, keys_of(self))
        else:
            costs = self._fitted_costs
        if costs is None or (feature_costs is None and feature_groups is not None):
            raise ValueError(
                "cost_curve needs feature_costs=: a cost for each feature, or a dict from names or indices; "
                + (
                    "feature_groups alone have none."
                    if costs is not None
                    else "the model was fitted without."
                )
            )
        n_threads = self._threads_to_score(data.X)
        stages = self.ensemble_.staged_predict(data.X, n_threads, start=self._starting_scores(X))
        return cost_curve_of(
            map(self._finish, islice(stages, self.n_init_trees_, None)),
            costs.after_trees(self.ensemble_)[self.n_init_trees_ :],
            lambda scores: self._value(measure, data, scores, "mean"),
            "score" if measure is None else measure,
            early_exit,
            (data.order, data.offsets) if data.qid_given else None,
            data.n_rows,
            n_threads,
        )

    def _measure(self):
        return None if self.measure is None else as_measure(self.measure)

    def _score_without_queries(self, labels, scores, weights):
        return float(r2_score(labels, scores, sample_weight=weights))

    def _is_mean_over_queries(self, measure):
        """Whether a score by this measure, or else R² or the accuracy, changes with the queries."""
        return self._is_ranker if measure is None else measure.by_order

    @property
    def _wants_queries(self):
        return self._is_ranker or self._is_mean_over_queries(self._measure())

    @property
    def feature_importances_(self):
        """Each feature's share of the total gain, float64[n_features]."""
        check_is_fitted(self)
        try:
            return self.feature_importances("gain")
        except ValueError as error:  # what asks an estimator for all its attributes leaves it out
            raise AttributeError(str(error)) from error

    def feature_importances(self, kind="gain"):
        """How much each feature matters to the trees, those of ``init`` included.

        Parameters
        ----------
        kind : {"gain", "split"}, default="gain"
            The sum of the gains of a feature's splits, or their number.

        Returns
        -------
        importances : ndarray of float64, shape (n_features,)
            They sum to 1, or are all 0 where no tree splits.

        Raises
        ------
        ValueError
            If ``kind`` is neither, or it is not known what splits have gained, as of trees of CatBoost;
            ``feature_importances_`` is an AttributeError then.
        """
        check_is_fitted(self)
        importances = self.ensemble_.feature_importances(kind)
        total = importances.sum()
        return importances / total if total > 0 else importances


def whole_ensemble(model):
    if (foreign := model._foreign_init()) is not None:
        raise ValueError(
            f"{type(model).__name__} is not one ensemble: boosting started from {foreign!r}, and its trees "
            "are added to what that predicts; expected trees only: pickle the estimator instead, or start "
            "from an estimator of ranktrees."
        )
    return model.ensemble_
