"""Find labels and query ids among the columns of X. This is cheap, as few rows rule out most columns."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ranktrees.rows.frames import frame_columns
from ranktrees.support.spool import Spool
from ranktrees.support.warning import FitWarning, warn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ranktrees.rows.queries import Queries
    from ranktrees.support.annotations import RowsLike

FEW = 16  # rows that rule out almost all columns
SAMPLE = 1000  # rows that show whether labels are shared by many, without sorting them all
MANY = 20  # so many values are not equal by chance


def warn_of_labels_among_columns(
    X: RowsLike, y: ArrayLike | None, rows: Any, labels: np.ndarray | None, order: np.ndarray | None
) -> None:
    """Warn if a column of X has the values of the labels, or a value of its own for each label.

    Parameters
    ----------
    X, y : as they were passed
    rows : ndarray, CSR or Spool
        The rows as they were read.
    labels : ndarray of shape (n_rows,) or None
    order : ndarray of shape (n_rows,) or None
        The row of each label. None: they are in the order of the rows.
    """
    if labels is None:
        return
    for j in columns_that_equal(rows, labels, order):
        name = _name_of(X, j)
        if len(labels) >= MANY or name == getattr(y, "name", None):
            warn(
                f"the column {name!r} of X holds the labels, and trees split by it as by any feature: scores "
                "will look perfect, but new rows have no labels yet. Drop it from X.",
                FitWarning,
            )
            return
    if recoded := _columns_that_tell(rows, labels, order):
        warn(
            f"the column {_name_of(X, recoded[0])!r} of X holds the labels in other values, one for each, "
            "and trees split by it as by any feature: scores will look perfect, but new rows have no labels "
            "yet. Drop it from X.",
            FitWarning,
        )


def warn_of_ids_among_columns(
    X: RowsLike, rows: Any, levels: dict[int, tuple[Any, ...]], ids: list[Any], queries: Queries
) -> None:
    """Warn if a column of X is called as the query ids are, or has their values: it is probably no feature.

    A column also holds ids if it has a category of its own for each query, or numbers the queries.

    Parameters
    ----------
    X : as it was passed
    rows : ndarray, CSR or Spool
        The rows as they were read.
    levels : dict of int to tuple
        The levels of the category columns, in the order of their codes.
    ids : list of array-like of shape (n_rows,)
        Query ids from all sources.
    queries : tuple
        The rows in the order of their queries, and where each query begins.
    """
    names = {"qid"} | {one.name for one in ids if isinstance(getattr(one, "name", None), str)}
    called = [name for name, _ in frame_columns(X) or [] if name in names]
    found = called or [_name_of(X, j) for j in _columns_of_ids(rows, levels, ids, queries)]
    if found:
        warn(
            f"X has a column {found[0]!r}, which {'is the name of' if called else 'holds'} the query ids: "
            "trees split by it as by any feature, and for the ids of new queries that means nothing. Drop it "
            f"from X{', or rename it if it is a feature' if called else ''}.",
            FitWarning,
        )


def columns_that_equal(rows: Any, values: np.ndarray, order: np.ndarray | None = None) -> list[int]:
    """Return the columns that have these values, unless all values are the same.

    Parameters
    ----------
    rows : ndarray, CSR or Spool of shape (n_rows, n_features)
    values : ndarray of shape (n_rows,)
        They are compared in the precision of the rows.
    order : ndarray of shape (n_rows,) or None
        The row of each value.

    Returns
    -------
    list of int

    Examples
    --------
    >>> from ranktrees.rows.leaks import columns_that_equal
    >>> columns_that_equal(np.array([[1.0, 2.0], [3.0, 5.0]]), np.array([2, 5]))
    [1]
    """
    changes = values != values[0]
    if not changes.any():
        return []
    other = int(np.argmax(values != 0))  # an entry that sparse rows store
    few = np.unique([*np.linspace(0, len(values) - 1, FEW).astype(int), int(np.argmax(changes)), other])
    values = values.astype(rows.dtype)
    if isinstance(rows, Spool):
        return _columns_on_disk_that_equal(rows, values if order is None else values[np.argsort(order)])
    near = rows[few if order is None else order[few]]
    candidates = np.arange(rows.shape[1])
    if sp.issparse(rows):
        candidates = near[[int(np.searchsorted(few, other))]].indices
        near = near[:, candidates].toarray()
    candidates = candidates[(near == values[few, None]).all(axis=0)]
    return [j for j in candidates.tolist() if np.array_equal(_column(rows, j, order), values)]


def _columns_that_tell(rows: Any, labels: np.ndarray, order: np.ndarray | None) -> list[int]:
    """Return the columns that have one value for each label, which no other label has.

    Labels that few rows share are left out, as any column without equal values tells them, and so are rows
    on disk.
    """
    sample = np.arange(0, len(labels), len(labels) // SAMPLE + 1)
    kinds, first = np.unique(labels[sample], return_index=True)
    if isinstance(rows, Spool) or not 2 <= len(kinds) <= len(sample) // 2:
        return []
    few = np.unique([*np.linspace(0, len(labels) - 1, FEW).astype(int), *sample[first[:FEW]]])
    near = rows[few if order is None else order[few]]
    candidates = np.arange(rows.shape[1])
    if sp.issparse(rows):  # others are zero in all of these rows, whose labels differ
        candidates = np.unique(near.indices)
        near = near[:, candidates].toarray()
    for i, label in enumerate(labels[few]):
        same = near[:i] == near[i]
        kept = (same == (labels[few[:i]] == label)[:, None]).all(axis=0)
        near, candidates = near[:, kept], candidates[kept]
    if not len(candidates):
        return []
    kinds, first, kind_of_row = np.unique(labels, return_index=True, return_inverse=True)
    if len(kinds) > len(labels) // MANY:
        return []
    found = []
    for j in candidates.tolist():
        column = _column(rows, j, order)
        own = column[first]
        if len(np.unique(own)) == len(kinds) and np.array_equal(own[kind_of_row], column):
            found.append(j)
    return found


def _column(rows: Any, j: int, order: np.ndarray | None) -> np.ndarray:
    column = rows[:, [j]].toarray().ravel() if sp.issparse(rows) else rows[:, j]
    return column if order is None else column[order]


def _columns_on_disk_that_equal(rows: Spool, values: np.ndarray) -> list[int]:
    first = next(iter(rows.parts()))
    candidates = np.flatnonzero((first == values[: len(first), None]).all(axis=0))
    return [
        j
        for j in candidates.tolist()
        if np.array_equal(np.concatenate([part[:, 0] for part in rows.parts(j, j + 1)]), values)
    ]


def _columns_of_ids(
    rows: Any, levels: dict[int, tuple[Any, ...]], ids: list[Any], queries: Queries
) -> list[int]:
    """Return the columns that hold the ids, as numbers or as codes of categories."""
    if found := [j for j, own in levels.items() if _tells_queries_apart(rows, j, len(own), queries)]:
        return found
    if found := _columns_that_number(rows, queries):
        return found
    n_rows = rows.shape[0]
    values = np.asarray(ids[0]) if ids else None
    if n_rows < MANY or values is None or values.shape != (n_rows,):
        return []
    if values.dtype.kind in "biuf":
        found = columns_that_equal(rows, values.astype(np.float64))
        if found:
            return found
    for j, of_column in levels.items():
        code_of = {level: float(code) for code, level in enumerate(of_column)}
        if any(value not in code_of for value in islice(values.tolist(), FEW)):
            continue
        codes = np.array([code_of.get(value, -1.0) for value in values.tolist()])
        if j in columns_that_equal(rows, codes):
            return [j]
    return []


def _tells_queries_apart(rows: Any, j: int, n_levels: int, queries: Queries) -> bool:
    """Whether each of many queries has a category of its own."""
    order, offsets = queries
    if n_levels != len(offsets) - 1 or n_levels < MANY:
        return False
    codes = _column(rows, j, order)
    own = codes[offsets[:-1]]
    return len(np.unique(own)) == n_levels and np.array_equal(codes, np.repeat(own, np.diff(offsets)))


def _columns_that_number(rows: Any, queries: Queries) -> list[int]:
    """Return the columns that have a whole number of its own for each of many queries, and few gaps.

    Counts and other whole numbers of queries are hardly all different if there are at most twice as many to
    choose from. Rows on disk are left out.
    """
    order, offsets = queries
    n_queries = len(offsets) - 1
    if isinstance(rows, Spool) or not MANY <= n_queries <= rows.shape[0] // 2:
        return []
    few = np.linspace(0, n_queries - 1, FEW).astype(int)
    ends = np.concatenate([offsets[few], offsets[few + 1] - 1])
    near = rows[ends if order is None else order[ends]]
    candidates = np.arange(rows.shape[1])
    if sp.issparse(rows):
        candidates = np.unique(near.indices)
        near = near[:, candidates].toarray()
    same = near[:FEW] == near[FEW:]
    candidates = candidates[
        (same & np.isfinite(near[:FEW]) & (near[:FEW] == np.floor(near[:FEW]))).all(axis=0)
    ]
    found = []
    for j in candidates.tolist():
        column = _column(rows, j, order)
        of_queries = column[offsets[:-1]]
        own = np.unique(of_queries[np.isfinite(of_queries)])
        numbered = len(own) == n_queries and own[-1] - own[0] < 2 * n_queries and (own == np.floor(own)).all()
        if numbered and np.array_equal(np.repeat(of_queries, np.diff(offsets)), column):
            found.append(j)
    return found


def _name_of(X: RowsLike, j: int) -> Any:
    columns = frame_columns(X.head if isinstance(X, Spool) else X)
    return j if columns is None else columns[j][0]
