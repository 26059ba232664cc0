"""What rankers made of other estimators share."""

from sklearn.utils.validation import check_is_fitted

from ranktrees.asking import scores_by
from ranktrees.best import best_rows, require_how_many
from ranktrees.measures import as_measure
from ranktrees.validation import check_score, find_queries, qid_of


class RanksRows:
    """What scores rows, and so tells the best of each query."""

    def rank(self, X, qid=None, k=10):
        """The best rows of each query, as those of `LambdaMARTRanker.rank`.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
            As for ``predict``. An index level named "qid" brings the query ids along.
        qid : array-like of shape (n_rows,), default=None
            The query of each row: any hashable values, in any order.
        k : int or None, default=10
            How many rows of each query to return; all, if it has fewer. None returns all of every query.

        Returns
        -------
        DataFrame
            What `ranktrees.best_rows` makes of the scores: ``query``, ``row``, ``rank`` and ``score``.

        Raises
        ------
        ImportError
            If pandas is not installed.
        ValueError
            If there are no query ids, if those of ``X`` are others, or ``k`` is not a whole number of at
            least 1.
        """
        check_is_fitted(self)
        require_how_many(k)
        scores = scores_by(self, X)
        find_queries(len(scores), {"qid": qid}, {"X": X})  # refuses ids that disagree
        return best_rows(scores, qid_of(X) if qid is None else qid, k)


class ScoredByMeasure(RanksRows):
    """A ranker whose ``predict`` scores rows, and whose ``measure`` tells how well."""

    def _validate_params(self):
        super()._validate_params()
        as_measure(self.measure)  # an unknown one is refused in fit, rather than in score

    def score(self, X, y, sample_weight=None, *, qid=None, groups=None):
        """The mean of `measure` over the queries.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Labels. A pandas Series whose index has a level named "qid" brings the query ids along.
        sample_weight : array-like of shape (n_rows,), default=None
            A query weighs as much as its rows on average.
        qid, groups : array-like of shape (n_rows,), default=None
            The query of each row, in any order; two names for the same thing. Without them all rows are one
            query.

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
        data = check_score(self, X, y, sample_weight, qid=qid, groups=groups, read_rows=False)
        scores = self.predict(X)
        scores = scores if data.order is None else scores[data.order]
        return as_measure(self.measure).signed_mean(data.labels, scores, data.offsets, data.weights)
