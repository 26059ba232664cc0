"""The best rows of each query as a table, which is what a search page shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ranktrees._core.measures import ranking
from ranktrees.measures.rows import numbers_in
from ranktrees.rows import find_queries, ids_of_queries, qid_of
from ranktrees.support.numeric import is_whole
from ranktrees.support.parallel import threads_for

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.rows.queries import Queries
    from ranktrees.support.annotations import IdsLike

__all__ = ["best_rows", "places", "require_how_many", "table_of_best"]


def best_rows(scores: ArrayLike, qid: IdsLike | None = None, k: int | None = 10) -> pd.DataFrame:
    """Return the best rows of each query, by the scores of any model.

    Parameters
    ----------
    scores : array-like of shape (n_rows,)
        Finite scores. Higher scores rank first. A pandas Series whose index has a level named "qid" supplies
        the query ids as well.
    qid : array-like of shape (n_rows,), default=None
        The query id of each row: any hashable values, in any order.
    k : int or None, default=10
        The number of rows to return for each query. A query with fewer rows returns all of them. If None,
        all rows of every query are returned.

    Returns
    -------
    DataFrame
        One row for each row that is returned. Queries come in order of first appearance, and the rows of a
        query best first. ``query`` is the query id, ``row`` the position in ``scores``, and ``rank`` counts
        from 1. Rows with equal scores keep the order that they have in ``scores``.

    Raises
    ------
    ImportError
        If pandas is not installed.
    ValueError
        If the scores are not finite numbers, one per row, if there are no query ids, or if ``k`` is not a
        whole number of at least 1.

    Examples
    --------
    >>> from ranktrees import best_rows
    >>> print(best_rows([0.5, 0.1, 0.7, 0.2], qid=["tea", "milk", "tea", "milk"], k=1))
      query  row  rank  score
    0   tea    2     1    0.7
    1  milk    3     1    0.2
    """
    require_how_many(k)
    values = numbers_in("scores", scores)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(
            f"scores have shape {values.shape}"
            + (", and not all are finite" if values.ndim == 1 else "")
            + "; expected a finite number for each row."
        )
    queries = find_queries(len(values), {"qid": qid}, {"scores": scores})
    if queries is None:
        raise ValueError(
            "best_rows needs qid=: it returns the best rows of each query. Pass qid= (one id per row); if "
            "all rows belong to one query, pass zeros."
        )
    return table_of_best(values, values, queries, qid_of(scores) if qid is None else qid, k)


def require_how_many(k: int | None) -> None:
    """Raise if ``k`` is neither a valid number of rows nor None.

    Parameters
    ----------
    k : int or None
    """
    if k is not None and not is_whole(k, 1):
        raise ValueError(
            f"k={k!r}; expected the number of rows to return for each query, at least 1, or None."
        )


def table_of_best(
    scores: np.ndarray,
    ranked_by: np.ndarray,
    queries: Queries,
    qid: IdsLike,
    k: int | None,
    n_threads: int = 1,
) -> pd.DataFrame:
    """Build the table that `best_rows` returns.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_rows,)
        The scores to show.
    ranked_by : ndarray of float64, shape (n_rows,)
        The scores to rank by.
    queries : (ndarray of int64 or None, ndarray of int64)
        The order that groups the rows by query, or None if they are grouped already, and the offsets at which
        the queries begin.
    qid : array-like of shape (n_rows,)
    k : int or None
    n_threads : int, default=1

    Returns
    -------
    DataFrame
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("the best rows are returned as a pandas DataFrame: pip install pandas") from error
    order, offsets = queries
    order = np.arange(len(scores)) if order is None else order
    place = places(ranked_by[order], offsets, n_threads)
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    best_first = np.argsort(offsets[query] + place)
    shown = best_first if k is None else best_first[place[best_first] < k]
    ids = ids_of_queries(qid, *queries)
    return pd.DataFrame(
        {
            "query": pd.Index(ids, tupleize_cols=False).take(query[shown]),
            "row": order[shown],
            "rank": place[shown] + 1,
            "score": scores[order[shown]],
        }
    )


def places(scores: np.ndarray, offsets: np.ndarray, n_threads: int = 1) -> NDArray[np.int64]:
    """Return the place of each row in its query, counted from 0.

    Rows are sorted by falling score. Rows with equal scores keep their order.

    Parameters
    ----------
    scores : ndarray of shape (n,), float64
        The scores of rows that are grouped by query.
    offsets : ndarray of shape (n_queries + 1,), int64
    n_threads : int, default=1

    Returns
    -------
    ndarray of shape (n,), int64

    Examples
    --------
    >>> from ranktrees.evaluation.best import places
    >>> places(np.array([0.5, 0.9, 0.5, 0.1, 0.2]), np.array([0, 3, 5]))
    array([1, 0, 2, 1, 0])
    """
    out = np.empty(len(scores), np.int64)
    ranking.places(scores, offsets, out, threads_for(n_threads, 16 * len(scores)))
    return out
