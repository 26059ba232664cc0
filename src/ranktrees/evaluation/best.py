"""The best rows of each query as a table, which is what a search page shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees._core.measures import ranking
from ranktrees.measures.rows import numbers_in
from ranktrees.rows import column_of, document_ids, find_queries, ids_of_queries, qid_of, warn_of_order
from ranktrees.support.numeric import is_whole
from ranktrees.support.parallel import threads_for

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.rows.queries import Queries
    from ranktrees.support.annotations import IdsLike

__all__ = ["best_first", "best_rows", "places", "queries_to_rank", "require_how_many", "table_of_best"]


def best_rows(
    y_score: ArrayLike, *, qid: IdsLike | None = None, k: int | None = 10, ids: IdsLike | None = None
) -> pd.DataFrame:
    """Return the best rows of each query, by the scores of any model.

    Parameters
    ----------
    y_score : array-like of shape (n_rows,)
        Finite scores. Higher scores rank first. The table keeps the index of a pandas Series, of which a
        level named "qid" supplies the query ids as well.
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
        One row for each row that is returned. Queries come in order of first appearance, and the rows of a
        query best first. ``query`` is the query id, ``row`` the position in ``y_score``, ``id`` that of
        ``ids``, if given, and ``rank`` counts from 1. Rows with equal scores keep the order that they have in
        ``y_score``.

    Raises
    ------
    ImportError
        If pandas is not installed.
    ValueError
        If the scores are not finite numbers, one per row, if there are no query ids, if ``k`` is not a
        whole number of at least 1, or if an id is missing.

    See Also
    --------
    dump_trec_run : Write the rows of each query, best first, for trec_eval.

    Examples
    --------
    >>> from ranktrees import best_rows
    >>> print(best_rows([0.5, 0.1, 0.7, 0.2], qid=["tea", "milk", "tea", "milk"], k=1))
      query  row  rank  score
    0   tea    2     1    0.7
    1  milk    3     1    0.2
    >>> print(best_rows([0.5, 0.7, 0.2], qid=["tea", "tea", "milk"], k=1, ids=["d8", "d3", "d5"]))
      query  row  id  rank  score
    0   tea    1  d3     1    0.7
    1  milk    2  d5     1    0.2
    """
    require_how_many(k)
    values = numbers_in("y_score", y_score)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(
            f"y_score has shape {values.shape}"
            + (", and not all are finite" if values.ndim == 1 else "")
            + "; expected a finite number for each row."
        )
    queries, qid = queries_to_rank("best_rows", len(values), qid, ids, "y_score", y_score)
    return table_of_best(values, values, queries, qid, k, y_score, ids)


def queries_to_rank(
    method: str, n_rows: int, qid: IdsLike | None, ids: IdsLike | None, name: str, holder: Any
) -> tuple[Queries, IdsLike]:
    """Return the queries of rows that are to be ranked, and the id of the query of each row.

    Parameters
    ----------
    method : str
        What is called to rank them, for messages.
    n_rows : int
    qid : array-like of shape (n_rows,) or None
    ids : array-like of shape (n_rows,) or None
        The ids of documents, which are checked.
    name : str
        The name of ``holder`` in messages.
    holder : object
        Rows or scores, whose index may have a level named "qid".

    Returns
    -------
    queries : (ndarray of int64 or None, ndarray of int64)
    qid : array-like of shape (n_rows,)
    """
    queries = find_queries(n_rows, {"qid": qid}, {name: holder})
    if queries is None:
        raise ValueError(
            f"{method} needs qid=: it returns the best rows of each query. Pass qid= (one id per row), or "
            f"{name} whose index has a level named 'qid'; if all rows belong to one query, pass zeros."
        )
    if ids is not None:
        warn_of_order({name: holder, "ids": ids})
        document_ids(ids, n_rows)
    return queries, qid_of(holder) if qid is None else qid


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
    holder: Any,
    ids: IdsLike | None,
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
    holder : object
        What the rows were passed in. If this is a pandas object, the table keeps its index.
    ids : array-like of shape (n_rows,) or None
    n_threads : int, default=1

    Returns
    -------
    DataFrame
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("the best rows are returned as a pandas DataFrame: pip install pandas") from error
    rows, query, place = best_first(ranked_by, queries, k, n_threads)
    index = holder.index.take(rows) if hasattr(holder, "iloc") else pd.RangeIndex(len(rows))
    numbers = {"row": rows, "rank": place + 1, "score": scores[rows]}
    table = pd.DataFrame(numbers, index=index)
    table.insert(0, "query", column_of(ids_of_queries(qid, *queries)).take(query).set_axis(index))
    if ids is not None:
        of_pandas = isinstance(ids, pd.Series | pd.Index | pd.api.extensions.ExtensionArray)
        column = pd.Series(ids) if of_pandas else column_of(document_ids(ids, len(scores)))
        table.insert(2, "id", column.take(rows).set_axis(index))
    return table


def best_first(
    scores: np.ndarray, queries: Queries, k: int | None, n_threads: int = 1
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the best rows of each query, best first.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_rows,)
    queries : (ndarray of int64 or None, ndarray of int64)
        As for `table_of_best`.
    k : int or None
    n_threads : int, default=1

    Returns
    -------
    rows, query, place : ndarray of int64, shape (n_shown,)
        The rows, the number of the query of each, and the place that each has in its query, counted from 0.

    Examples
    --------
    >>> from ranktrees.evaluation.best import best_first
    >>> best_first(np.array([0.5, 0.9, 0.5, 0.1, 0.2]), (None, np.array([0, 3, 5])), 2)
    (array([1, 0, 4, 3]), array([0, 0, 1, 1]), array([0, 1, 0, 1]))
    """
    order, offsets = queries
    order = np.arange(len(scores)) if order is None else order
    place = places(scores[order], offsets, n_threads)
    query = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    shown = np.argsort(offsets[query] + place)
    shown = shown if k is None else shown[place[shown] < k]
    return order[shown], query[shown], place[shown]


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
