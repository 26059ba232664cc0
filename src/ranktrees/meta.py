"""What rankers made of other estimators share."""

import numpy as np
from sklearn.utils.validation import _num_samples, check_is_fitted

from ranktrees.measures import as_measure
from ranktrees.validation import check_score


class ScoredByMeasure:
    """A ranker whose ``predict`` scores rows, and whose ``measure`` tells how well."""

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
            The query of each row, in any order; two names for the same thing.

        Returns
        -------
        score : float
            Higher is better. NaN, with an ``UndefinedMetricWarning``, where no query counts.

        Raises
        ------
        ValueError
            If the model was fitted with query ids and none are given here.
        """
        check_is_fitted(self)
        data = check_score(self, X, y, sample_weight, qid=qid, groups=groups, read_rows=False)
        scores = self.predict(X)
        scores = scores if data.order is None else scores[data.order]
        return as_measure(self.measure).signed_mean(data.labels, scores, data.offsets, data.weights)


def scores_by(model, X):
    """float64[n_rows]: what a fitted model, whoever made it, says of some rows."""
    scores = np.asarray(model.predict(X))
    if scores.shape != (_num_samples(X),) or scores.dtype.kind not in "fiub":
        raise ValueError(
            f"{type(model).__name__}.predict gave values of shape {scores.shape} and dtype {scores.dtype}; "
            "expected one number per row: take a model that scores rows."
        )
    return scores.astype(np.float64)
