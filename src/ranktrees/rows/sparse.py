"""Read sparse matrices, and check that they are consistent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from ranktrees.rows.values import as_float

if TYPE_CHECKING:
    from ranktrees.support.annotations import RowsLike


# Some things are kept for each column, however few its entries: together about a hundred bytes.
MOST_COLUMNS = 1 << 24


def read_sparse(X: RowsLike, name: str) -> Any:
    if X.shape[1] > MOST_COLUMNS:
        raise ValueError(
            f"{name} is sparse with {X.shape[1]} columns; expected at most {MOST_COLUMNS}: leave out columns "
            "without entries, or hash to fewer ones."
        )
    if X.dtype.kind not in "biufc":
        raise ValueError(f"{name} is sparse with dtype {X.dtype}; expected numbers: convert its data first.")
    _require_structure(X, name)
    if X.format != "csr":
        X = (X.astype(np.int64) if X.dtype.kind in "biu" and X.dtype.itemsize < 8 else X).tocsr()  # sums fit
        _require_structure(X, name)
    n_entries = int(X.indptr[-1])
    data = np.ascontiguousarray(as_float(X.data[:n_entries], lambda _: f"the data of {name}"))
    indices = X.indices[:n_entries]
    is_canonical = _is_canonical(indices, X.indptr)
    is_as_it_came = np.may_share_memory(data, X.data) and n_entries == len(X.data) == len(X.indices)
    if is_canonical and is_as_it_came and _has_plain_indices(X):
        return X
    csr = sp.csr_array if isinstance(X, sp.sparray) else sp.csr_matrix
    rows = csr((data, indices, X.indptr), shape=X.shape, copy=not is_canonical)
    if not is_canonical:
        rows.sum_duplicates()
    return rows


def _has_plain_indices(X: RowsLike) -> bool:
    both = (X.indices, X.indptr)
    return len({part.dtype for part in both}) == 1 and all(
        part.dtype in (np.dtype(np.int32), np.dtype(np.int64)) and part.flags.c_contiguous for part in both
    )


def _is_canonical(indices: np.ndarray, indptr: np.ndarray) -> bool:
    """Whether the column indices rise strictly within every row."""
    if len(indices) < 2:
        return True
    rises = indices[1:] > indices[:-1]
    starts = indptr[1:-1]
    rises[starts[(starts > 0) & (starts < len(indices))] - 1] = True
    return bool(rises.all())


def _require_structure(X: RowsLike, name: str) -> None:
    """Refuse index arrays that point outside the matrix, before anything follows them."""
    n_rows, n_columns = X.shape
    if X.format == "coo":
        for indices, bound, kind in ((X.row, n_rows, "row"), (X.col, n_columns, "column")):
            _require_indices(indices, bound, kind, name)
        if not len(X.row) == len(X.col) == len(X.data):
            raise ValueError(f"{name} is sparse COO with row, col and data of different lengths; {_REBUILD}")
    elif X.format in ("csr", "csc", "bsr"):
        block = X.blocksize if X.format == "bsr" else (1, 1)
        n_lines, n_cells = n_rows // block[0], n_columns // block[1]
        if X.format == "csc":
            n_lines, n_cells = n_cells, n_lines
        indptr = X.indptr
        if indptr.ndim != 1 or indptr.dtype.kind not in "iu" or len(indptr) != n_lines + 1 or indptr[0] != 0:
            raise ValueError(
                f"{name} is sparse with an indptr of shape {indptr.shape} and dtype {indptr.dtype}; expected "
                f"{n_lines + 1} integers that start at 0: {_REBUILD}"
            )
        if (indptr[1:] < indptr[:-1]).any():
            line = int(np.argmax(indptr[1:] < indptr[:-1]))
            raise ValueError(
                f"{name} is sparse with an indptr that falls from {indptr[line]} to {indptr[line + 1]} at "
                f"{line}; {_REBUILD}"
            )
        if indptr[-1] > min(len(X.indices), len(X.data)):
            raise ValueError(
                f"{name} is sparse with an indptr that ends at {indptr[-1]}, beyond its {len(X.indices)} "
                f"indices and {len(X.data)} data: {_REBUILD}"
            )
        _require_indices(
            X.indices[: int(indptr[-1])], n_cells, "row" if X.format == "csc" else "column", name
        )


_REBUILD = (
    "expected a consistent matrix: build it anew, for instance with scipy.sparse.csr_array((data, (row, "
    "column)))."
)


def _require_indices(indices: np.ndarray, bound: int, kind: str, name: str) -> None:
    if indices.dtype.kind not in "iu":
        raise ValueError(f"{name} is sparse with {kind} indices of dtype {indices.dtype}; {_REBUILD}")
    for wrong in (indices.min(), indices.max()) if len(indices) else ():
        if not 0 <= wrong < bound:
            what = "negative" if wrong < 0 else f"not below the {bound} {kind}s"
            raise ValueError(
                f"{name} is sparse with the {kind} index {wrong} among its indices, {what}: {_REBUILD}"
            )
