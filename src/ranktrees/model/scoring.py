"""Scores of rows, and the leaves that they reach, by the scorer of an ensemble."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ranktrees.model.scorer import parts_of_csr
from ranktrees.rows.frames import frame_columns, is_one_array, read_frame
from ranktrees.rows.matrix import read_array, require_rows
from ranktrees.support.parallel import effective_n_threads

if TYPE_CHECKING:
    from ranktrees.model.arrays import ModelArrays
    from ranktrees.model.scorer import Scorer
    from ranktrees.support.annotations import RowsLike

__all__ = ["leaves", "predict", "staged_predict"]

# The codes of this many rows stay in the second cache until all trees have seen them.
ROWS_PER_THREAD = 2048


def predict(
    ensemble: ModelArrays, X: RowsLike, *, n_jobs: int | None = None, start: ArrayLike | None = None
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
    n_jobs : int, default=None
        The number of threads; see `ranktrees.support.parallel.effective_n_threads`. If None, as many as pay
        for the work.
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
        indices point outside it; if ``start`` has another length than ``X``; or if ``n_jobs`` is 0 or
        not a whole number.

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
    n_threads = _threads_to_score(ensemble, X, n_jobs)
    for some, codes in _encoded(ensemble.scorer, X, n_threads):
        ensemble.scorer.add(codes, sums[some], 0, ensemble.n_trees, n_threads=n_threads)
    return scores_of(ensemble, start, sums, ensemble.n_trees)


def staged_predict(
    ensemble: ModelArrays, X: RowsLike, *, n_jobs: int | None = None, start: ArrayLike | None = None
) -> Iterator[NDArray[np.float64]]:
    """Score rows after each tree.

    Parameters
    ----------
    ensemble, X, n_jobs, start
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
    n_threads = _threads_to_score(ensemble, X, n_jobs)
    codes = ensemble.scorer.encode(X, n_threads)
    for t in range(ensemble.n_trees):
        ensemble.scorer.add(codes, sums, t, t + 1, n_threads=n_threads)
        yield scores_of(ensemble, start, sums, t + 1)


def leaves(ensemble: ModelArrays, X: RowsLike, *, n_jobs: int | None = None) -> NDArray[np.int32]:
    """Find the leaf that each row reaches in each tree.

    Parameters
    ----------
    ensemble, X, n_jobs
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
    n_threads = _threads_to_score(ensemble, X, n_jobs)
    found = np.empty((X.shape[0], ensemble.n_trees), np.int32)
    for some, codes in _encoded(ensemble.leaf_scorer, X, n_threads):
        for t in range(ensemble.n_trees):
            leaves_of_tree = np.zeros(len(found[some]))
            ensemble.leaf_scorer.add(codes, leaves_of_tree, t, t + 1, n_threads=n_threads)
            found[some, t] = leaves_of_tree
    return found


def _threads_to_score(ensemble: ModelArrays, X: Any, n_jobs: int | None) -> int:
    n_values = X.shape[0] * (X.shape[1] + ensemble.n_trees)
    return effective_n_threads(n_jobs, n_values if n_jobs is None else None)


def _encoded(scorer: Scorer, X: Any, n_threads: int) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield rows, some at a time, and their codes."""
    chunk = ROWS_PER_THREAD * n_threads
    parts = parts_of_csr(X) if sparse.issparse(X) else None
    for first in range(0, X.shape[0], chunk):
        some = slice(first, first + chunk)
        if parts is None:
            yield some, scorer.encode(X[some], n_threads)
        else:  # slices of a sparse matrix would be copies
            values, indices, offsets = parts
            yield some, scorer.encode_csr(values, indices, offsets[first : first + chunk + 1], n_threads)


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


def sums_before_trees(ensemble: ModelArrays, start: np.ndarray) -> np.ndarray:
    return np.zeros_like(start) if ensemble.average else start.copy()


def scores_of(ensemble: ModelArrays, start: np.ndarray, sums: np.ndarray, n_trees: int) -> np.ndarray:
    return start + sums / max(n_trees, 1) if ensemble.average else sums.copy()
