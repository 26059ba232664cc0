"""Rows on disk: ``fit`` reads rows that do not fit in memory by columns, or by parts, at a time."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Iterator
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ranktrees.support.files import naming

if TYPE_CHECKING:
    from ranktrees.support.annotations import PathLike

__all__ = ["SparseSpool", "Spool", "by_parts", "first_rows"]

MOST_SHORT = 2**31 - 1  # entries that indices of 32 bits reach
_BLOCK = 1 << 20  # numbers that are copied at a time


class Spool:
    """Rows in a temporary file, part by part in the order of arrival. The file is deleted with this object.

        file  | part 0:  column 0 . . . | column 1 . . . | ... | part 1:  column 0 . . . | ... | ...

    Parameters
    ----------
    folder : path-like or None, default=None
        The folder in which the file is made. If None, that of `tempfile.gettempdir`.

    Attributes
    ----------
    shape : (int, int)
        The number of rows and that of features.
    dtype : dtype
        float64 if any part is float64, else float32.
    ndim : int
        2, as for other rows.
    head : ndarray or data frame of shape (0, n_features), or None
        Holds the names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.support.spool import Spool
    >>> rows = Spool()
    >>> rows.append(np.array([[1, 2], [3, 4]], np.float32))
    >>> rows.append(np.array([[5, 6]], np.float32))
    >>> rows.shape
    (3, 2)
    >>> [part.tolist() for part in rows.parts(1, 2)]
    [[[2.0], [4.0]], [[6.0]]]
    """

    ndim = 2

    def __init__(self, folder: PathLike | None = None) -> None:
        self._folder = tempfile.gettempdir() if folder is None else folder
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._dtypes: list[np.dtype[Any]] = []  # one per part
        self._begins: list[int] = []  # one per part, in bytes
        self.offsets = [0]  # where the parts begin and end, in rows
        self.n_features = 0
        self.head: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        return self.offsets[-1], self.n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        return np.result_type(np.float32, *self._dtypes)

    def append(self, rows: Any) -> None:
        """Write more rows of the same features: an array or a sparse matrix, of float32 or float64."""
        columns = np.ascontiguousarray((rows.toarray() if sparse.issparse(rows) else rows).T)
        self._dtypes.append(columns.dtype)
        self._begins.append(self._file.seek(0, os.SEEK_END))
        with naming(self._folder, "a temporary file of rows"):
            self._file.write(columns.data.cast("B"))
            self._file.flush()
        self.n_features = len(columns)
        self.offsets.append(self.offsets[-1] + columns.shape[1])

    def parts(self, first: int = 0, last: int | None = None) -> Iterator[np.ndarray]:
        """Yield the columns first to last - 1 of each part: ndarray of shape (rows of the part, columns)."""
        last = self.n_features if last is None else last
        for dtype, begin, (row, end) in zip(self._dtypes, self._begins, pairwise(self.offsets), strict=True):
            n_rows = end - row
            columns = np.empty((last - first, n_rows), dtype)
            self._file.seek(begin + first * n_rows * dtype.itemsize)
            self._file.readinto(columns.data.cast("B"))
            yield columns.T

    def places(self, order: np.ndarray | None = None) -> Iterator[tuple[Any, np.ndarray | None]]:
        """Yield where the rows of each part go, if row i is row ``order[i]``.

        Parameters
        ----------
        order : ndarray of shape (n_rows,), intp, default=None
            If None, the order of arrival.

        Yields
        ------
        places : slice or ndarray of int
            The places in ``order`` of those rows that are in the part.
        positions : ndarray of intp, or None
            The positions of these rows in the part. None: all rows of the part, in their order.
        """
        if order is None:
            yield from ((slice(*ends), None) for ends in pairwise(self.offsets))
            return
        by_row = np.argsort(order, kind="stable")
        ends = np.searchsorted(order, self.offsets, sorter=by_row)
        for (begin, end), first_row in zip(pairwise(ends), self.offsets[:-1], strict=True):
            places = by_row[begin:end]
            yield places, order[places] - first_row


class SparseSpool:
    """Sparse rows in two temporary files, as they arrive. They are deleted with the matrix that reads them.

        values   | part 0: entries of its rows . . . | part 1: . . . | ...
        columns  | part 0: those of the entries  . . | part 1: . . . | ...

    Parameters
    ----------
    folder : path-like or None, default=None
        The folder in which the files are made. If None, that of `tempfile.gettempdir`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from ranktrees.support.spool import SparseSpool
    >>> rows = SparseSpool()
    >>> rows.append(sparse.csr_array(np.array([[0.0, 2.0], [0.0, 0.0]])))
    >>> rows.append(np.array([[5.0, np.nan]]))
    >>> rows.matrix().toarray().tolist()
    [[0.0, 2.0], [0.0, 0.0], [5.0, nan]]
    """

    def __init__(self, folder: PathLike | None = None) -> None:
        self.folder = folder
        self._values = _Numbers(folder, np.dtype(np.float32))
        self._columns = _Numbers(folder, np.dtype(np.int32))
        self._row_ends = [np.zeros(1, np.int64)]
        self.n_features = 0

    def append(self, rows: Any) -> None:
        """Write more rows of the same features: a canonical CSR matrix or an array, float32 or float64."""
        rows = rows if sparse.issparse(rows) else sparse.csr_array(rows)
        self._row_ends.append(self._values.n + rows.indptr[1:].astype(np.int64))
        if rows.dtype.itemsize > self._values.dtype.itemsize:
            self._values = self._values.in_type(rows.dtype)
        self._values.append(rows.data)
        self._columns.append(rows.indices.astype(np.int32, copy=False))
        self.n_features = rows.shape[1]

    def matrix(self) -> Any:
        """Return the rows as a CSR matrix; its entries are read from the files when they are used."""
        row_ends = np.concatenate(self._row_ends)
        long = self._values.n > MOST_SHORT
        if long:
            self._columns = self._columns.in_type(np.dtype(np.int64))
        rows = sparse.csr_array((len(row_ends) - 1, self.n_features), dtype=self._values.dtype)
        rows.data, rows.indices = self._values.array(), self._columns.array()
        rows.indptr = row_ends if long else row_ends.astype(np.int32)
        return rows


class _Numbers:
    """Numbers of one type in a temporary file."""

    def __init__(self, folder: PathLike | None, dtype: np.dtype[Any]) -> None:
        self.folder, self.dtype, self.n = folder, dtype, 0
        self.file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        weakref.finalize(self, self.file.close)

    def append(self, numbers: np.ndarray) -> None:
        self.file.write(np.ascontiguousarray(numbers, self.dtype).data.cast("B"))
        self.n += len(numbers)

    def in_type(self, dtype: np.dtype[Any]) -> _Numbers:
        """Return a copy in another type."""
        copy, numbers = _Numbers(self.folder, dtype), self.array()
        for first in range(0, self.n, _BLOCK):
            copy.append(numbers[first : first + _BLOCK])
        return copy

    def array(self) -> np.ndarray:
        self.file.flush()
        return np.memmap(self.file, self.dtype, "r", shape=self.n) if self.n else np.empty(0, self.dtype)


def by_parts(
    function: Callable[[Any, Any], np.ndarray], X: Any, beside: np.ndarray | None = None
) -> np.ndarray:
    """Apply a function that returns one entry, or line, per row; part by part if the rows are on disk.

    Parameters
    ----------
    function : callable
        Takes rows and the entries of ``beside`` for them.
    X : Spool, or whatever the function takes
    beside : ndarray of shape (n_rows,), default=None
        A second argument with one entry per row.

    Returns
    -------
    ndarray of shape (n_rows, ...)

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.support.spool import Spool, by_parts
    >>> rows = Spool()
    >>> rows.append(np.eye(2))
    >>> rows.append(np.ones((1, 2)))
    >>> by_parts(lambda X, start: X.sum(axis=1) + start, rows, np.array([0, 10, 20]))
    array([ 1., 11., 22.])
    """
    if not isinstance(X, Spool):
        return function(X, beside)
    places = (places for places, _ in X.places())
    return np.concatenate(
        [
            function(part, None if beside is None else beside[rows])
            for part, rows in zip(X.parts(), places, strict=True)
        ]
    )


def first_rows(X: Any, n: int) -> Any:
    """Return the first ``n`` rows, or all if there are fewer. From disk, no more parts are read than needed.

    Parameters
    ----------
    X : Spool, or whatever can be sliced by row
    n : int

    Returns
    -------
    rows : of shape (min(n, n_rows), n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.support.spool import Spool, first_rows
    >>> rows = Spool()
    >>> rows.append(np.array([[1.0]]))
    >>> rows.append(np.array([[2.0], [3.0]]))
    >>> first_rows(rows, 2).tolist()
    [[1.0], [2.0]]
    """
    if not isinstance(X, Spool):
        return X[:n]
    needed = 1 + sum(begin < n for begin in X.offsets[1:-1])
    return np.concatenate(list(islice(X.parts(), needed)))[:n]
