"""The scores of rows some values of which are changed: what importances and effects of features rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.base import is_classifier

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ranktrees.estimators.fitted import FittedTrees
    from ranktrees.measures.base import Measure

__all__ = ["ChangedRows", "require_trees_only"]


def require_trees_only(model: FittedTrees, measure: Measure | None = None) -> None:
    """Refuse a model that does not score rows by trees alone, or whose scores a measure cannot read.

    Parameters
    ----------
    model : FittedTrees
        A fitted estimator of trees.
    measure : Measure, default=None
        What the scores are for.

    Raises
    ------
    ValueError
        If boosting started from a model of another kind, if there are scores for each of several classes, or
        if a classifier's scores, which are no probabilities, are for a measure of distances.
    """
    if (foreign := model._foreign_init()) is not None:
        raise ValueError(
            f"model starts from {foreign!r}, which reads X itself; expected trees only: use the function of "
            "the same name of sklearn.inspection, which changes X."
        )
    if len(model._ensembles) > 1:
        raise ValueError(
            f"model is a {type(model).__name__} of {len(model._ensembles)} classes, which gives each row a "
            "score for each class; expected one score per row: fit one of two classes, or a regressor."
        )
    if measure is not None and not measure.by_order and is_classifier(model):
        raise ValueError(
            f"measure is {measure!r}, which depends on the distances between scores, and those of a "
            "classifier are no probabilities; expected a measure of their order, such as 'auc'."
        )


class ChangedRows:
    """Rows, and the scores they get from a model of trees if some of their columns had other values.

    Parameters
    ----------
    model : FittedTrees
        The model.
    rows : ndarray or CSR matrix of shape (n_rows, n_features)
        The rows, as `check_rows` returns them. They do not change.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> from ranktrees.inspection.changing import ChangedRows
    >>> X, y, qid = make_ranking(60, n_features=4, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=5, random_state=0).fit(X, y, qid=qid)
    >>> other = X.copy()
    >>> other[:, 2] = 0.5
    >>> bool((ChangedRows(ranker, X).scores([2], 0.5) == ranker.predict(other)).all())
    True
    """

    def __init__(self, model: FittedTrees, rows: Any) -> None:
        self.model, self.rows = model, rows
        self.n_threads = model._threads_to_score(rows)
        self._own = rows if sparse.issparse(rows) else rows.copy(order="K")

    def _predict(self, rows: Any) -> NDArray[np.float64]:
        return self.model._finish(self.model.ensemble_.predict(rows, n_jobs=self.n_threads))

    def values(self, columns: list[int]) -> np.ndarray:
        """Return the values in some columns, as a dense array of shape (n_rows, n_columns)."""
        values = self.rows[:, columns]
        return values.toarray() if sparse.issparse(values) else values

    def scores(self, columns: list[int] | None = None, values: Any = None) -> NDArray[np.float64]:
        """Return the score of each row, if `columns` had these values: one, or (n_rows, n_columns)."""
        if columns is None:
            return self._predict(self.rows)
        if sparse.issparse(self.rows):
            return self._predict(self._sparse_with(columns, values))
        self._own[:, columns] = values
        scores = self._predict(self._own)
        self._own[:, columns] = self.rows[:, columns]
        return scores

    def _sparse_with(self, columns: list[int], values: Any) -> Any:
        others = self.rows.copy()
        others.data[np.isin(others.indices, columns)] = 0.0
        block = np.empty((self.rows.shape[0], len(columns)), self.rows.dtype)
        block[:] = values
        row, place = np.nonzero(block)
        put = (block[row, place], (row, np.asarray(columns)[place]))
        changed = sparse.csr_array(others + sparse.csr_array(put, self.rows.shape))
        changed.eliminate_zeros()
        return changed
