"""From an ensemble and rows to scores, by its scorer; and to leaves, by the plain walk from root to leaf."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ranktrees._core import plain_walk
from ranktrees.scorer import DAMAGED, checked_threads, parts_of_csr
from ranktrees.validation.frames import frame_columns, is_one_array, read_frame
from ranktrees.validation.rows import read_array, require_rows

__all__ = ["leaves", "predict", "staged_predict"]

# A block of dense rows made from sparse ones takes at most 2 MiB per thread (or holds one row).
_ROWS_PER_BLOCK = 64
_VALUES_PER_BLOCK = 2**18

# Codes of so many rows stay in the second cache until all trees have seen them.
ROWS_PER_THREAD = 2048


def predict(ensemble, X, n_threads: int = 1, *, start: ArrayLike | None = None) -> NDArray[np.float64]:
    r"""Score rows.

    A row's score is, in double precision and in exactly this order of operations,

    .. math:: s = \big((b + v_1) + v_2\big) + \dots + v_T
              \qquad\text{or}\qquad
              s = b + \frac{\big((0 + v_1) + v_2\big) + \dots + v_T}{T}

    where :math:`b` is ``start`` or else the ensemble's ``base``, and :math:`v_t` the value of the leaf that
    the row reaches in tree :math:`t`; the second form is that of an ensemble with ``average`` set. Without
    trees the score is :math:`b`. Scores do not depend on the number of threads, on the other rows, or on the
    layout of ``X``.

    Parameters
    ----------
    ensemble : Ensemble
        The trees.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
        Rows. float32 and float64 are read where they lie, in any layout; float32 is widened exactly. NaN is
        a missing value, and so are masked entries and None; an entry absent from a sparse matrix is 0.
        Categories are looked up in the ensemble's ``category_levels`` where ``X`` is a data frame; else they
        are the numbers of these.
    n_threads : int, default=1
        Number of threads, at least 1; no more than four per processor are started.
    start : array-like of shape (n_rows,), default=None
        What the trees are added to, instead of ``base``.

    Returns
    -------
    ndarray of shape (n_rows,), float64
        Scores.

    Raises
    ------
    TypeError
        If ``X`` is a `numpy.matrix`, batches, a frame that has no rows yet, or of objects that are no
        numbers.
    ValueError
        If ``X`` is not two-dimensional, has another number of columns than the ensemble has features, is
        complex, dates or words, has integers that float64 cannot hold, or is a sparse matrix whose indices
        point outside it; if ``start`` has another length than ``X``; or if ``n_threads`` is no whole number
        of at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.ensemble import Ensemble
    >>> from ranktrees.scoring import predict
    >>> predict(Ensemble.from_trees([], n_features=2, base=0.5), np.zeros((3, 2)))
    array([0.5, 0.5, 0.5])
    """
    X = _rows(ensemble, X)
    start = start_of(ensemble, X, start)
    sums = sums_before_trees(ensemble, start)
    n_threads = checked_threads(n_threads)
    chunk = ROWS_PER_THREAD * n_threads
    for first in range(0, X.shape[0], chunk):
        some = X if X.shape[0] <= chunk else X[first : first + chunk]
        codes = ensemble.scorer.encode(some, n_threads)
        ensemble.scorer.add(codes, sums[first : first + chunk], 0, ensemble.n_trees, n_threads=n_threads)
    return scores_of(ensemble, start, sums, ensemble.n_trees)


def staged_predict(
    ensemble, X, n_threads: int = 1, *, start: ArrayLike | None = None
) -> Iterator[NDArray[np.float64]]:
    """Score rows after each tree.

    Parameters
    ----------
    ensemble, X, n_threads, start
        As for `predict`.

    Yields
    ------
    ndarray of shape (n_rows,), float64
        Scores of the first 1, 2, ..., ``n_trees`` trees; the last are those of `predict`, bit for bit.

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


def leaves(ensemble, X, n_threads: int = 1) -> NDArray[np.int32]:
    """Find the leaf that each row reaches in each tree.

    Parameters
    ----------
    ensemble, X, n_threads
        As for `predict`.

    Returns
    -------
    ndarray of shape (n_rows, n_trees), int32
        Indices of nodes, counted within their tree.

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


def _rows(ensemble, X):
    """The rows as the kernels read them: a matrix of float32 or float64, or a CSR matrix of numbers."""
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


def _require_names(ensemble, X):
    names = getattr(X, "column_names", getattr(X, "columns", None))  # Arrow; pandas and polars
    if names is None or ensemble.feature_names is None:
        return
    names = tuple(names)
    if names != ensemble.feature_names and all(isinstance(name, str) for name in names):
        raise ValueError(
            f"X has the columns {list(names)}, but the model was trained on {list(ensemble.feature_names)}; "
            "expected the same, in the same order: pass X[list(ensemble.feature_names)]."
        )


def start_of(ensemble, X, start):
    if start is None:
        return np.full(X.shape[0], ensemble.base)
    start = np.asarray(start, np.float64)
    if start.shape != X.shape[:1]:
        raise ValueError(f"start has shape {start.shape}, expected {X.shape[:1]}, a value per row of X")
    return start


def _walk(ensemble, X, found, n_threads):
    model = (ensemble.nodes, ensemble.tree_offsets, ensemble.bitsets, *ensemble.category_table)
    if not sparse.issparse(X):
        plain_walk.walk_rows(X, *model, found, n_threads)
        return
    values, columns, row_offsets = parts_of_csr(X)
    rows_per_block = min(_ROWS_PER_BLOCK, max(1, _VALUES_PER_BLOCK // X.shape[1]))
    dense = np.zeros((n_threads, rows_per_block, X.shape[1]))
    if plain_walk.walk_csr(values, columns, row_offsets, *model, dense, found, n_threads):
        raise ValueError(DAMAGED)


def sums_before_trees(ensemble, start):
    return np.zeros_like(start) if ensemble.average else start.copy()


def scores_of(ensemble, start, sums, n_trees):
    return start + sums / max(n_trees, 1) if ensemble.average else sums.copy()
