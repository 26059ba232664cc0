"""What an estimator of trees can do once it is fitted: predict, rank and score."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from ranktrees.estimators.columns import warn_of_lost_levels, with_columns_of
from ranktrees.estimators.links import name_of, warn_of_lost_link
from ranktrees.estimators.parameters import KnownParameters, look_up, with_keywords
from ranktrees.evaluation.best import queries_to_rank, require_how_many, table_of_best
from ranktrees.evaluation.cost_curve import cost_curve_of
from ranktrees.evaluation.early_exit import check_early_exit
from ranktrees.evaluation.early_exit import predict as predict_with_exits
from ranktrees.evaluation.own_models import own_model
from ranktrees.measures import as_measure
from ranktrees.model.costs import FeatureCosts
from ranktrees.rows import (
    check_rows,
    check_score,
    find_queries,
)
from ranktrees.rows.features import keys_of
from ranktrees.support.numeric import is_whole
from ranktrees.support.parallel import effective_n_threads

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.evaluation.cost_curve import CostCurve
    from ranktrees.evaluation.early_exit import EarlyExit, WorkSaved
    from ranktrees.measures.base import Measure
    from ranktrees.measures.named import AnyMeasure
    from ranktrees.model.ensemble import Ensemble
    from ranktrees.objectives.base import Link
    from ranktrees.rows.data import FitData
    from ranktrees.rows.queries import Queries
    from ranktrees.support.annotations import IdsLike, PathLike, RowsLike

# What scikit-learn's tools may pass to a method that returns scores.
SCORES_REQUEST = {"qid": True, "n_trees": True, "early_exit": True, "return_saved": True}


class FittedTrees(KnownParameters):
    """The base class of estimators that have an ``ensemble_``: rows in, scores out."""

    __metadata_request__predict = SCORES_REQUEST
    __metadata_request__score = {"qid": True, "groups": True, "early_exit": True}  # noqa: RUF012

    ensemble_: Ensemble
    n_features_in_: int
    feature_names_in_: NDArray[np.object_]
    measure: AnyMeasure | None
    n_jobs: int | None

    _is_ranker = True
    _fitted_costs: FeatureCosts | None = None
    _link: Any = None  # turns scores into predictions, by the loss of the fit; None if they are the same
    n_init_trees_ = 0  # the number of the ensemble's first trees, from which boosting started

    if not TYPE_CHECKING:  # a type checker would believe that every attribute exists

        def __getattr__(self, name: str) -> Any:
            return look_up(self, name)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.target_tags.positive_only = self._is_ranker
        return tags

    def _validate_params(self) -> None:
        super()._validate_params()
        self._measure()  # refuse an unknown one before trees are grown, rather than in score

    @property
    def _ensembles(self) -> tuple[Ensemble, ...]:
        """The ensemble of each score of a row."""
        return (self.ensemble_,)

    def _scores(self, X: RowsLike, rows: RowsLike, n_trees: int | None = None) -> np.ndarray:
        ensemble = self.ensemble_
        if n_trees is not None:
            ensemble = ensemble.first(self.n_init_trees_ + n_trees)
        return ensemble.predict(rows, n_jobs=self._threads_to_score(rows), start=self._starting_scores(X))

    def _threads_to_score(self, rows: RowsLike) -> int:
        return effective_n_threads(self.n_jobs, rows.shape[0] * (rows.shape[1] + len(self._ensembles[0])))

    def _scores_and_saved(
        self,
        X: RowsLike,
        rows: RowsLike,
        queries: Queries | None,
        early_exit: EarlyExit | None,
        n_trees: int | None = None,
    ) -> tuple[np.ndarray, WorkSaved]:
        return predict_with_exits(
            early_exit,
            self.ensemble_,
            rows,
            queries,
            start=self._starting_scores(X),
            dropped_by=self._dropped_by(early_exit),
            n_init_trees=self.n_init_trees_,
            n_trees=n_trees,
            n_threads=self._threads_to_score(rows),
        )

    @property
    def _n_counted(self) -> int:
        """The number of trees that ``n_trees`` counts."""
        return len(self._ensembles[0]) - self.n_init_trees_

    def _starting_scores(self, X: RowsLike) -> np.ndarray | None:
        """Return the scores to which the trees' values are added; None for the ensemble's constant."""
        return None

    def _foreign_init(self) -> Any:
        """Return the model to whose predictions the trees are added; None if there are only trees."""
        return None

    def _finish(self, scores: np.ndarray) -> np.ndarray:
        """Turn scores into predictions. Those of a ranker are its scores, whatever the loss."""
        return scores if self._link is None or self._is_ranker else self._link(scores)

    def _taken_by(self, order: bool) -> Callable[[np.ndarray], np.ndarray]:
        """Return what makes of scores what rows are measured by, or ranked if ``order`` is all that counts.

        The order of rows is that of scores, if the link rises: probabilities near 1 are equal numbers.
        """
        rises = self._link_to_keep(self._link) is not None
        return np.asarray if order and rises else self._finish

    def _dropped_by(self, early_exit: EarlyExit | None) -> Callable[[np.ndarray], np.ndarray]:
        """Return what makes of scores what rows are dropped by: predictions, or their order."""
        check_early_exit(early_exit)
        return self._taken_by(early_exit is not None and early_exit.drop is not None)

    def _link_to_keep(self, link: Link | None) -> str | None:
        """Return the name by which the trees keep what turns their scores into predictions."""
        return None if self._is_ranker else name_of(link)

    def _methods(self) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
        """Return how each method of rows makes what it returns of their scores."""
        return {"predict": self._finish}

    def _whole_ensemble(self, instead: str) -> Ensemble:
        """Return the trees, with what is known of their columns, if they are the whole model."""
        require_trees_only(self, instead)
        return with_columns_of(self, self.ensemble_)

    def save(self, path: PathLike) -> None:
        """Write the trees to a file, which predicts what this estimator predicts.

        Parameters
        ----------
        path : path-like
            The file to write. Read it by ``EnsembleRanker(Ensemble.load(path))``. It contains the link of a
            Poisson, gamma or logistic loss, by which the `EnsembleRanker` predicts counts or, also for a
            classifier, the probability of the second class; the names of the columns; and those levels of
            category columns that are strings, booleans or numbers. A `FitWarning` says if a loss of your own
            has another link, and names the columns with other levels.

        Raises
        ------
        ValueError
            If the trees are not the whole model, because boosting started from a model that does not consist
            of trees of ranktrees.
        """
        check_is_fitted(self)
        ensemble = self._whole_ensemble("pickle the estimator")
        warn_of_lost_levels(self, ensemble)
        warn_of_lost_link(self)
        ensemble.save(path)

    @overload
    def predict(
        self,
        X: RowsLike,
        *,
        n_trees: int | None = None,
        qid: IdsLike | None = None,
        early_exit: EarlyExit | None = None,
        return_saved: Literal[False] = False,
    ) -> NDArray[np.float64]: ...

    @overload
    def predict(
        self,
        X: RowsLike,
        *,
        n_trees: int | None = None,
        qid: IdsLike | None = None,
        early_exit: EarlyExit | None = None,
        return_saved: Literal[True],
    ) -> tuple[NDArray[np.float64], WorkSaved]: ...

    @with_keywords
    def predict(
        self,
        X: RowsLike,
        *,
        n_trees: int | None = None,
        qid: IdsLike | None = None,
        early_exit: EarlyExit | None = None,
        return_saved: bool = False,
    ) -> NDArray[np.float64] | tuple[NDArray[np.float64], WorkSaved]:
        """Return the score of each row or, with a Poisson, gamma or logistic loss, what it predicts.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            The rows. Values of float32 and float64 are read as they are, without a copy. An index level named
            "qid" supplies the query ids as well.
        n_trees : int, default=None
            If given, only the first ``n_trees`` trees are used. If None, all trees are used. Those that
            boosting started from (``init``) are always used, and are not counted.
        qid : array-like of shape (n_rows,), default=None
            The query id of each row, in any order. Used only by an early exit.
        early_exit : EarlyExit, default=None
            The rule by which rows are dropped before all trees have seen them. These rows keep the score that
            they had, which may be above the final score of a row that stayed. `rank` and
            :meth:`~ranktrees.evaluation.early_exit.WorkSaved.dropped_last` put them behind it.
        return_saved : bool, default=False
            Whether to return also how much work the early exit has saved.

        Returns
        -------
        scores : ndarray of float64, shape (n_rows,)
            Rows with higher scores rank first. Rows of different queries may be scored together. Without an
            early exit, the score of a row depends only on the row. With one, it depends only on the rows of
            the same query, or with ``among="all"`` on all rows of the call.
        saved : WorkSaved
            Only if ``return_saved`` is True.

        Raises
        ------
        ValueError
            If the early exit needs query ids and there are none. The message says what to pass.
        """
        check_is_fitted(self)
        most = self._n_counted
        if n_trees is not None and not is_whole(n_trees, 0, most):
            raise ValueError(
                f"n_trees={n_trees!r}: expected a whole number from 0 to {most}, "
                f"the number of trees {'after those of init' if self.n_init_trees_ else 'of the model'}."
            )
        rows = check_rows(self, X, reset=False)
        if early_exit is None and qid is None and not return_saved:
            return self._finish(self._scores(X, rows, n_trees))
        queries = find_queries(rows.shape[0], {"qid": qid}, {"X": X})
        scores, saved = self._scores_and_saved(X, rows, queries, early_exit, n_trees)
        predictions = self._finish(scores)
        return (predictions, saved) if return_saved else predictions

    @with_keywords
    def rank(
        self,
        X: RowsLike,
        *,
        qid: IdsLike | None = None,
        k: int | None = 10,
        ids: IdsLike | None = None,
        early_exit: EarlyExit | None = None,
    ) -> pd.DataFrame:
        """Return the best rows of each query.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            The rows, as for `predict`. The table keeps the index of a pandas frame, of which a level named
            "qid" supplies the query ids as well.
        qid : array-like of shape (n_rows,), default=None
            The query id of each row: any hashable values, in any order.
        k : int or None, default=10
            The number of rows of each query to return. Of a query that has fewer rows, all are returned. If
            None, all rows of every query are returned.
        ids : array-like of shape (n_rows,), default=None
            The id of the document of each row, of any kind, to be returned in a column ``id``.
        early_exit : EarlyExit, default=None
            As for `predict`. A row that is dropped ranks behind all rows that stayed in longer.

        Returns
        -------
        DataFrame
            One line for each row that is returned, with queries in order of first appearance and the best
            rows first. ``query`` is the query id, ``row`` the position in ``X``, ``id`` that of ``ids``, if
            given, ``rank`` the rank counted from 1, and ``score`` what `predict` returns. With a Poisson,
            gamma or logistic loss, rows are ranked by their scores before the link. Rows with equal scores
            are in the order of ``X``.

        Raises
        ------
        ImportError
            If pandas is not installed.
        ValueError
            If there are no query ids, if ``k`` is not a whole number of at least 1, or if an id is missing.

        Examples
        --------
        >>> from ranktrees import LambdaMARTRanker, make_ranking
        >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
        >>> ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(X, y, qid=qid)
        >>> ranks = ranker.rank(X, qid=qid, k=2)
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
        queries, given = queries_to_rank("rank", rows.shape[0], qid, ids, "X", X)
        scores, saved = self._scores_and_saved(X, rows, queries, early_exit)
        n_threads = effective_n_threads(self.n_jobs)
        ranked = saved.dropped_last(self._taken_by(order=True)(scores))
        return table_of_best(self._finish(scores), ranked, queries, given, k, X, ids, n_threads)

    def staged_predict(self, X: RowsLike) -> Iterator[NDArray[np.float64]]:
        """Yield the scores of the rows after each tree.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)

        Yields
        ------
        scores : ndarray of float64, shape (n_rows,)
            The scores by the first tree, by the first two, and so on. The trees that boosting started from
            (``init``) are not counted.
        """
        check_is_fitted(self)
        rows = check_rows(self, X, reset=False)
        n_threads = effective_n_threads(self.n_jobs, rows.shape[0])
        yield from map(self._finish, self._stages(X, rows, n_threads))

    def _stages(self, X: RowsLike, rows: RowsLike, n_threads: int) -> Iterator[np.ndarray]:
        """Yield the scores after each tree that is counted."""
        stages = self.ensemble_.staged_predict(rows, n_jobs=n_threads, start=self._starting_scores(X))
        yield from islice(stages, self.n_init_trees_, None)

    @with_keywords
    def score(
        self,
        X: RowsLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        qid: IdsLike | None = None,
        groups: IdsLike | None = None,
        early_exit: EarlyExit | None = None,
    ) -> float:
        """Return the mean of ``measure`` over the queries.

        If ``measure`` is None, return R² or, for a classifier, the accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            The labels. A pandas Series whose index has a level named "qid" supplies the query ids as well.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights. The weight of a query is the mean of the weights of its rows.
        qid, groups : array-like of shape (n_rows,), default=None
            The query id of each row, in any order. ``qid`` and ``groups`` are two names for the same
            argument, since scikit-learn's splitters know it as ``groups``. Without ids, all rows are one
            query if the model was fitted without any; otherwise an error is raised.
        early_exit : EarlyExit, default=None
            As for `predict`. Measures of a ranking see the rows that are dropped behind all rows that stayed
            in longer. Other measures (RMSE, R², and those of the rows of all queries together) see the frozen
            scores.

        Returns
        -------
        score : float
            Higher is better. NaN, with an ``UndefinedMetricWarning``, if no query counts.

        Raises
        ------
        ValueError
            If the measure is a mean over queries, and the model was fitted with query ids, but none are given
            here; or if the measure does not accept the labels.
        """
        check_is_fitted(self)
        measure = self._measure()
        needs_queries = self._is_mean_over_queries(measure)
        data = check_score(self, X, y, sample_weight, qid=qid, groups=groups, ranker=needs_queries)
        taken = self._taken_by(_is_by_order(measure))
        if early_exit is None:
            scores = taken(self._scores(X, data.X))
        else:
            queries = (data.order, data.offsets) if data.qid_given else None
            scores, saved = self._scores_and_saved(X, data.X, queries, early_exit)
            scores = taken(scores)
            if measure is not None and measure.by_order and measure.by_query:
                scores = saved.dropped_last(scores)
        return self._value(measure, data, scores, "signed_mean")

    def _value(self, measure: Measure | None, data: FitData, scores: np.ndarray, mean: str) -> float:
        """Return the measure, or else R² or the accuracy, of scores in the order of the rows."""
        scores = data.internal(scores)
        if measure is None:
            return self._score_without_queries(data.labels, scores, data.weights)
        measure.warn_of_labels(data.labels)
        n_threads = effective_n_threads(self.n_jobs)
        return getattr(measure, mean)(data.labels, scores, data.offsets, data.weights, n_threads)

    def cost_curve(
        self,
        X: RowsLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        qid: IdsLike | None = None,
        measure: AnyMeasure | None = None,
        early_exit: EarlyExit | None = None,
        feature_costs: ArrayLike | Mapping[Any, Any] | None = None,
        feature_groups: Sequence[Any] | None = None,
        tree_cost: float = 0.0,
    ) -> CostCurve:
        """Return cost and quality as trees are added.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            The labels. A pandas Series whose index has a level named "qid" supplies the query ids as well.
        sample_weight : array-like of shape (n_rows,), default=None
            Row weights. The weight of a query is the mean of the weights of its rows.
        qid : array-like of shape (n_rows,), default=None
            The query id of each row, in any order. Without ids, all rows are one query if the model was
            fitted without any; otherwise an error is raised.
        measure : str or Measure, default=None
            The measure of quality. If None, it is what `score` returns, without a sign.
        early_exit : EarlyExit, default=None
            As for `predict`. Rows that leave early do not pay for features that only later trees use. In
            measures of a ranking they are behind all rows that stayed in longer.
        feature_costs : array-like of shape (n_features,) or mapping, default=None
            As for the estimator. If None, the costs of the estimator are used.
        feature_groups : sequence of sets of names or indices, default=None
            As for the estimator. They belong to the ``feature_costs`` given here.
        tree_cost : float, default=0.0
            The cost of walking down a tree, whatever its features, at least 0. It is 1 in Mohan's survey
            (section 6.1).

        Returns
        -------
        CostCurve
            It has arrays ``n_trees``, ``cost`` (the mean over the rows) and ``value``, and a method
            ``plot()``. Trees of ``init`` are not counted, but they and their features are paid for.

        Raises
        ------
        ValueError
            If there are no costs, neither here nor in `fit`; if ``tree_cost`` is out of its range; or if the
            measure is a mean over queries, and the model was fitted with query ids, but none are given here.

        Examples
        --------
        >>> from ranktrees import LambdaMARTRanker, make_ranking
        >>> X, y, qid = make_ranking(60, n_features=5, random_state=0, return_X_y_qid=True)
        >>> costs = [1, 1, 5, 5, 20]
        >>> ranker = LambdaMARTRanker(max_iter=20, feature_costs=costs, random_state=0)
        >>> curve = ranker.fit(X, y, qid=qid).cost_curve(X, y, qid=qid)
        >>> bool(curve.cost[0] < curve.cost[-1])
        True
        >>> bool(curve.value[0] < curve.value[-1])
        True
        """
        check_is_fitted(self)
        measure = self._measure() if measure is None else as_measure(measure)
        needs_queries = self._is_mean_over_queries(measure)
        data = check_score(self, X, y, sample_weight, qid=qid, ranker=needs_queries, method="cost_curve")
        if feature_costs is not None:
            costs: Any = FeatureCosts.of(feature_costs, feature_groups, self.n_features_in_, keys_of(self))
        else:
            costs = self._fitted_costs
        if costs is None or (feature_costs is None and feature_groups is not None):
            raise ValueError(
                "cost_curve needs feature_costs=: a cost for each feature, or a dict from names or indices; "
                + (
                    "feature_groups alone have no costs."
                    if costs is not None
                    else "the model was fitted without feature_costs."
                )
            )
        n_threads = self._threads_to_score(data.X)
        return cost_curve_of(
            self._stages(X, data.X, n_threads),
            costs.after_trees(self.ensemble_, tree_cost)[self.n_init_trees_ :],
            lambda scores: self._value(measure, data, scores, "mean"),
            "score" if measure is None else measure,
            early_exit,
            (data.order, data.offsets) if data.qid_given else None,
            data.n_rows,
            n_threads,
            self._taken_by(_is_by_order(measure)),
            self._dropped_by(early_exit),
        )

    def _measure(self) -> Measure | None:
        return None if self.measure is None else as_measure(self.measure)

    def _score_without_queries(
        self, labels: np.ndarray, scores: np.ndarray, weights: np.ndarray | None
    ) -> float:
        return float(r2_score(labels, scores, sample_weight=weights))

    def _is_mean_over_queries(self, measure: Measure | None) -> bool:
        """Whether a score by this measure (None: R² or the accuracy) depends on the queries."""
        return self._is_ranker if measure is None else measure.by_query

    @property
    def _wants_queries(self) -> bool:
        return self._is_ranker or self._is_mean_over_queries(self._measure())

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """The share of each feature in the total gain, float64[n_features]."""
        check_is_fitted(self)
        try:
            return self.feature_importances("gain")
        except ValueError as error:  # tools that read all attributes leave it out
            raise AttributeError(str(error)) from error

    def feature_importances(self, kind: Literal["gain", "split"] = "gain") -> NDArray[np.float64]:
        """Return how much each feature matters to the trees, those of ``init`` included.

        Parameters
        ----------
        kind : {"gain", "split"}, default="gain"
            With "gain", the sum of the gains of a feature's splits. With "split", their number.

        Returns
        -------
        importances : ndarray of float64, shape (n_features,)
            They sum to 1, or are all 0 if no tree has a split.

        Raises
        ------
        ValueError
            If ``kind`` is neither of these, or if the gains of splits are not known, as for trees of
            CatBoost. In that case ``feature_importances_`` is an AttributeError.
        """
        check_is_fitted(self)
        importances: Any = sum(ensemble.feature_importances(kind) for ensemble in self._ensembles)
        total = importances.sum()
        return importances / total if total > 0 else importances


def _is_by_order(measure: Measure | None) -> bool:
    return measure is not None and measure.by_order


own_model.register(FittedTrees, lambda model: model)


def require_trees_only(model: Any, instead: str) -> None:
    """Refuse a model that adds its trees to the predictions of another kind of model.

    Parameters
    ----------
    model : FittedTrees
    instead : str
        What to do instead, for the message.
    """
    if (foreign := model._foreign_init()) is not None:
        raise ValueError(
            f"{type(model).__name__} is not one ensemble: boosting started from {foreign!r}, and its trees "
            f"are added to the predictions of that model; expected trees only: {instead} instead, or start "
            "from an estimator of ranktrees."
        )
