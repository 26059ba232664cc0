"""Scores of rows, by the scorer of an ensemble, and the leaves they reach, by a plain walk from the root."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ranktrees._core.model import trees as plain_walk
from ranktrees.model.scorer import DAMAGED, checked_threads, parts_of_csr
from ranktrees.rows.frames import frame_columns, is_one_array, read_frame
from ranktrees.rows.matrix import read_array, require_rows

if TYPE_CHECKING:
    from ranktrees.model.arrays import ModelArrays
    from ranktrees.support.annotations import RowsLike

__all__ = ["leaves", "predict", "staged_predict"]

# A block of dense rows made from sparse ones takes at most 2 MiB per thread (or holds one row).
_ROWS_PER_BLOCK = 64
_VALUES_PER_BLOCK = 2**18

# The codes of this many rows stay in the second cache until all trees have seen them.
ROWS_PER_THREAD = 2048


def predict(
    ensemble: ModelArrays, X: RowsLike, n_threads: int = 1, *, start: ArrayLike | None = None
) -> NDArray[np.float64]:
    r"""Score rows.

    The score of a row is, in double precision and in exactly this order of operations,

    .. math:: s = \big((b + v_1) + v_2\big) + \dots + v_T
              \qquad\text{or}\qquad
              s = b + \frac{\big((0 + v_1) + v_2\big) + \dots + v_T}{T}

    where :math:`b` is ``start`` or, without it, the ensemble's ``base``, and :math:`v_t` is the value of the
    leaf that the row reaches in tree :math:`t`. The second form is that of an ensemble with ``average`` set.
    Without trees the score is :math:`b`. Scores do not depend on the number of threads, on the other rows, or
    on the layout of ``X``.

    Parameters
    ----------
    ensemble : Ensemble
        The trees.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
        Rows. float32 and float64 arrays of any layout are read without a copy, and float32 is widened
        exactly. NaN, masked entries and None are missing values. An entry that is absent from a sparse matrix
        is 0. If ``X`` is a data frame, categories are looked up in the ensemble's ``category_levels``.
        Otherwise they are the numbers of these levels.
    n_threads : int, default=1
        The number of threads, at least 1. No more than four per processor are started.
    start : array-like of shape (n_rows,), default=None
        The scores that the trees are added to, instead of ``base``.

    Returns
    -------
    ndarray of shape (n_rows,), float64
        The scores.

    Raises
    ------
    TypeError
        If ``X`` is a `numpy.matrix`, batches, or a lazy frame, which has no rows yet, or if it holds objects
        that are not numbers.
    ValueError
        If ``X`` is not two-dimensional, has another number of columns than the ensemble has features, holds
        complex numbers, dates or words, has integers that float64 cannot hold, or is a sparse matrix whose
        indices point outside it; if ``start`` has another length than ``X``; or if ``n_threads`` is not a
        whole number of at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.model import Ensemble
    >>> from ranktrees.model.scoring import predict
    >>> predict(Ensemble.from_trees([], n_features=2, base=0.5), np.zeros((3, 2)))
    array([0.5, 0.5, 0.5])
    """
    X = _rows(ensemble, X)
    start = start_of(ensemble, X, start)
    sums = sums_before_trees(ensemble, start)
    n_threads = checked_threads(n_threads)
    chunk = ROWS_PER_THREAD * n_threads
    parts = parts_of_csr(X) if sparse.issparse(X) else None
    for first in range(0, X.shape[0], chunk):
        if parts is None:
            codes = ensemble.scorer.encode(X[first : first + chunk], n_threads)
        else:  # slices of a sparse matrix would be copies
            values, indices, offsets = parts
            codes = ensemble.scorer.encode_csr(values, indices, offsets[first : first + chunk + 1], n_threads)
        ensemble.scorer.add(codes, sums[first : first + chunk], 0, ensemble.n_trees, n_threads=n_threads)
    return scores_of(ensemble, start, sums, ensemble.n_trees)


def staged_predict(
    ensemble: ModelArrays, X: RowsLike, n_threads: int = 1, *, start: ArrayLike | None = None
) -> Iterator[NDArray[np.float64]]:
    """Score rows after each tree.

    Parameters
    ----------
    ensemble, X, n_threads, start
        As for `predict`.

    Yields
    ------
    ndarray of shape (n_rows,), float64
        The scores with the first 1, 2, ..., ``n_trees`` trees. The last are those of `predict`, bit for bit.

    Raises
    ------
    ValueError
        As for `predict`.
    """
    X = _rows(ensemble, X)
    start = start_of(ensemble, X, start)
    sums = sums_before_trees(ensemble, start)
    n_threads = checked_threads(n_threads)
    codes = ensemble.scorer.encode(X, n_threads)
    for t in range(ensemble.n_trees):
        ensemble.scorer.add(codes, sums, t, t + 1, n_threads=n_threads)
        yield scores_of(ensemble, start, sums, t + 1)


def leaves(ensemble: ModelArrays, X: RowsLike, n_threads: int = 1) -> NDArray[np.int32]:
    """Find the leaf that each row reaches in each tree.

    Parameters
    ----------
    ensemble, X, n_threads
        As for `predict`.

    Returns
    -------
    ndarray of shape (n_rows, n_trees), int32
        The indices of the leaves among the nodes of their tree.

    Raises
    ------
    ValueError
        As for `predict`.
    """
    X = _rows(ensemble, X)
    n_threads = checked_threads(n_threads)
    found = np.empty((X.shape[0], ensemble.n_trees), np.int32)
    if found.size:
        _walk(ensemble, X, found, n_threads)
    return found


def _rows(ensemble: ModelArrays, X: RowsLike) -> Any:
    """Return the rows as the kernels read them: a float32 or float64 array, or a CSR matrix of numbers."""
    if type(X) is not np.ndarray:
        require_rows(X, "X")
    _require_names(ensemble, X)
    as_it_is = is_one_array(X) and not ensemble.category_levels
    if not as_it_is and (columns := frame_columns(X)) is not None:
        X = read_frame(X, columns, ensemble.category_levels, "X")
    X = X.tocsr() if sparse.issparse(X) else read_array(X, "X")
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension(s), expected 2: rows and features")
    if X.shape[1] != ensemble.n_features:
        raise ValueError(f"X has {X.shape[1]} features, but the model was trained on {ensemble.n_features}")
    return X


def _require_names(ensemble: ModelArrays, X: RowsLike) -> None:
    names = getattr(X, "column_names", getattr(X, "columns", None))  # Arrow; pandas and polars
    if names is None or ensemble.feature_names is None:
        return
    names = tuple(names)
    if names != ensemble.feature_names and all(isinstance(name, str) for name in names):
        raise ValueError(
            f"X has the columns {list(names)}, but the model was trained on {list(ensemble.feature_names)}; "
            "expected the same, in the same order: pass X[list(ensemble.feature_names)]."
        )


def start_of(ensemble: ModelArrays, X: RowsLike, start: ArrayLike | None) -> np.ndarray:
    if start is None:
        return np.full(X.shape[0], ensemble.base)
    start = np.asarray(start, np.float64)
    if start.shape != X.shape[:1]:
        raise ValueError(f"start has shape {start.shape}, expected {X.shape[:1]}, a value per row of X")
    return start


def _walk(ensemble: ModelArrays, X: RowsLike, found: np.ndarray, n_threads: int) -> None:
    values, offsets = ensemble.category_table
    walker = plain_walk.Walker(
        ensemble.nodes, ensemble.tree_offsets, ensemble.bitsets, values, ensemble.category_codes, offsets
    )
    if not sparse.issparse(X):
        walker.walk_rows(X, found, n_threads)
        return
    values, columns, row_offsets = parts_of_csr(X)
    rows_per_block = min(_ROWS_PER_BLOCK, max(1, _VALUES_PER_BLOCK // X.shape[1]))
    dense = np.zeros((n_threads, rows_per_block, X.shape[1]))
    if walker.walk_csr(values, columns, row_offsets, dense, found, n_threads):
        raise ValueError(DAMAGED)


def sums_before_trees(ensemble: ModelArrays, start: np.ndarray) -> np.ndarray:
    return np.zeros_like(start) if ensemble.average else start.copy()


def scores_of(ensemble: ModelArrays, start: np.ndarray, sums: np.ndarray, n_trees: int) -> np.ndarray:
    return start + sums / max(n_trees, 1) if ensemble.average else sums.copy()
