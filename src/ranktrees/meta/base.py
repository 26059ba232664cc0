"""Base classes of rankers that are made of other estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sklearn
from sklearn.base import MetaEstimatorMixin
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from ranktrees.evaluation.best import queries_to_rank, require_how_many, table_of_best
from ranktrees.evaluation.clones import require_weights_taken
from ranktrees.evaluation.predictions import scores_by
from ranktrees.measures import as_measure
from ranktrees.rows import check_score
from ranktrees.support.scikit_learn import EstimatorMixin

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.measures.named import AnyMeasure
    from ranktrees.support.annotations import IdsLike, RowsLike


class RoutesMetadata(MetaEstimatorMixin):
    """Mixin for estimators made of others, to which they pass on what these request of the metadata.

    A derived class lists in ``_routes`` each of its methods that does so, with the method of the others that
    it calls.
    """

    _routes: dict[str, str]

    def _parts(self) -> dict[str, Any]:
        """The estimators that metadata is passed to, by name."""
        return {"estimator": self.estimator}

    def get_metadata_routing(self) -> Any:
        """Get the metadata routing: what this estimator requests, and what those inside request.

        Returns
        -------
        MetadataRouter
            The routing information.
        """
        mapping = MethodMapping()
        for caller, callee in self._routes.items():
            mapping.add(caller=caller, callee=callee)
        return MetadataRouter(owner=self).add_self_request(self).add(method_mapping=mapping, **self._parts())

    def _routed(self, method: str, **metadata: Any) -> dict[str, dict[str, Any]]:
        """What each part is passed in a method: with metadata routing what it requests, otherwise all."""
        given = {name: value for name, value in metadata.items() if value is not None}
        if "sample_weight" in given and self._routes[method] == "fit":
            for part in self._parts().values():
                require_weights_taken(part)
        if not (given and sklearn.get_config()["enable_metadata_routing"]):
            return dict.fromkeys(self._parts(), given)
        routed = process_routing(self, method, **given)
        return {name: dict(routed[name][self._routes[method]]) for name in self._parts()}


class RanksRows(EstimatorMixin):
    """Mixin for estimators that score rows, and so can return the best rows of each query."""

    def rank(
        self, X: RowsLike, *, qid: IdsLike | None = None, k: int | None = 10, ids: IdsLike | None = None
    ) -> pd.DataFrame:
        """Return the best rows of each query, as `LambdaMARTRanker.rank` does.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Rows, as for ``predict``. The table keeps the index of a pandas frame, of which a level named
            "qid" supplies the query ids as well.
        qid : array-like of shape (n_rows,), default=None
            The query id of each row: any hashable values, in any order.
        k : int or None, default=10
            The number of rows to return for each query. A query with fewer rows returns all of them. If None,
            all rows of every query are returned.
        ids : array-like of shape (n_rows,), default=None
            The id of the document of each row, of any kind, to be returned in a column ``id``.

        Returns
        -------
        DataFrame
            The table that `ranktrees.best_rows` makes of the scores, with ``query``, ``row``, ``id`` if
            ``ids`` are given, ``rank`` and ``score``.

        Raises
        ------
        ImportError
            If pandas is not installed.
        ValueError
            If there are no query ids, if ``qid`` and the ids of ``X`` disagree, if ``k`` is not a whole
            number of at least 1, or if an id is missing.
        """
        check_is_fitted(self)
        require_how_many(k)
        scores = scores_by(self, X)
        queries, given = queries_to_rank("rank", len(scores), qid, ids, "X", X)
        return table_of_best(scores, scores, queries, given, k, X, ids)


class ScoredByMeasure(RanksRows):
    """A ranker whose ``predict`` scores rows, and whose ``measure`` says how well they are ranked."""

    measure: AnyMeasure

    if TYPE_CHECKING:

        def predict(self, X: RowsLike) -> NDArray[np.float64]: ...

    def _validate_params(self) -> None:
        super()._validate_params()
        as_measure(self.measure)  # so that fit refuses an unknown measure, not only score

    def score(
        self,
        X: RowsLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        qid: IdsLike | None = None,
        groups: IdsLike | None = None,
    ) -> float:
        """Return the mean of `measure` over the queries, or its value over all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            Rows.
        y : array-like of shape (n_rows,)
            Labels. A pandas Series whose index has a level named "qid" supplies the query ids as well.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights >= 0 of the rows. The weight of a query is the mean of the weights of its rows.
        qid, groups : array-like of shape (n_rows,), default=None
            The query id of each row, in any order, under either name. Without ids all rows are one query.

        Returns
        -------
        score : float
            The mean; higher is better. It is NaN, with an ``UndefinedMetricWarning``, if no query counts.

        Raises
        ------
        ValueError
            If the measure is a mean over queries, and the model was fitted with query ids, but none are given
            here; or if the measure does not accept the labels.
        """
        check_is_fitted(self)
        measure = as_measure(self.measure)
        queries: dict[str, Any] = {"qid": qid, "groups": groups, "ranker": measure.by_query}
        data = check_score(self, X, y, sample_weight, **queries, read_rows=False)
        scores = data.internal(self.predict(X))
        return measure.signed_mean(data.labels, scores, data.offsets, data.weights)
