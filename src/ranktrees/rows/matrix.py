"""Turn X into rows: an array or a sparse matrix of numbers, which may be missing; and check its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Bunch
from sklearn.utils.validation import validate_data

from ranktrees.rows.batches import Batches
from ranktrees.rows.features import chosen_features, keys_among
from ranktrees.rows.frames import (
    OrderedLevels,
    frame_columns,
    holds_texts,
    is_category,
    is_one_array,
    is_ordered,
    levels_of,
    read_categories_of_array,
    read_frame,
    sorted_levels,
)
from ranktrees.rows.sparse import read_sparse
from ranktrees.rows.values import SKLEARN_VERSION, as_float, as_seen, refuse_lazy
from ranktrees.support.spool import Spool

if TYPE_CHECKING:
    from ranktrees.support.annotations import RowsLike


def check_rows(estimator: Any, X: RowsLike, *, reset: bool, name: str = "X") -> Any:
    """Check the rows and bring them into one of the few forms that the kernels read.

    Float32 and float64 values stay as they are. Integers, booleans and half floats become float32 if that is
    exact, and float64 otherwise. NaN, masked entries and the nulls of data frames are missing values.
    Infinities are ordinary large values. Category columns of data frames become the codes 0, 1, ... of the
    levels seen in fit, in sorted order. Those of ordered categories of pandas become the codes of all levels
    of the dtype in fit, in their order. A level that is not known is a missing value, if it is of the same
    kind as the others. If the estimator `_takes_codes`, an array may have the levels or their codes in such a
    column, but numbers only if they cannot be both.

    Parameters
    ----------
    estimator : estimator
        Its `n_features_in_`, `feature_names_in_` and `_category_levels` (``{column index: levels}``) are set
        if `reset` is True, and compared otherwise.
    X : array-like, scipy sparse or data frame of shape (n_rows, n_features)
        The rows, which are never changed. Frames of pandas, polars and Arrow are accepted.
    reset : bool
        True in fit, False in predict and score.
    name : str, default="X"
        The name of the rows in error messages.

    Returns
    -------
    X : ndarray or scipy sparse CSR of shape (n_rows, n_features), float32 or float64, native byte order
        The same memory for float32 and float64 arrays of any layout (C, Fortran, strided, read-only, memory
        mapped) and for canonical CSR; otherwise a new array. CSR has sorted indices without duplicates.

    Raises
    ------
    TypeError
        For `numpy.matrix` and for objects that are not numbers.
    ValueError
        For rows that are not two-dimensional, or are empty, complex, dates or strings; for integers that
        float64 cannot hold; for a sparse structure that points outside the matrix; for duplicate column
        names; and, unless `reset` is True, for columns other than those of fit, for categories of another
        kind, and for what is no frame if fit had category columns.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator
    >>> from ranktrees.rows import check_rows
    >>> ranker = BaseEstimator()
    >>> check_rows(ranker, [[1, 2], [3, 4]], reset=True).dtype
    dtype('float32')
    >>> ranker.n_features_in_
    2
    >>> check_rows(ranker, [[1.0, 2.0, 3.0]], reset=False)
    Traceback (most recent call last):
        ...
    ValueError: X has 3 features, but BaseEstimator is expecting 2 features as input.
    """
    if reset:
        rows, levels = rows_of(X, None, estimator, name)
        set_columns(estimator, X, rows, levels)
        return rows
    check_columns(estimator, X, reset=False, name=name)
    rows, _ = rows_of(X, getattr(estimator, "_category_levels", {}), estimator, name)
    return rows


def check_columns(estimator: Any, X: RowsLike, *, reset: bool, name: str = "X") -> None:
    """Check the number and the names of the columns of rows whose values another estimator reads.

    Parameters
    ----------
    estimator : estimator
        Its `n_features_in_` and `feature_names_in_` are set if `reset` is True, and compared otherwise.
    X : array-like, scipy sparse or data frame of shape (n_rows, n_features)
        The rows.
    reset : bool
        True in fit.
    name : str, default="X"
        The name of the rows in error messages.

    Raises
    ------
    ValueError
        For rows that are not two-dimensional, or are empty, and, unless `reset` is True, for columns other
        than those of fit.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from ranktrees.rows import check_columns
    >>> transformer = BaseEstimator()
    >>> check_columns(transformer, [["a", 2], ["b", 4]], reset=True)
    >>> transformer.n_features_in_
    2
    """
    _require_two_dimensions(X, estimator, name)
    if not reset and type(X) is np.ndarray and not hasattr(estimator, "feature_names_in_"):
        expected = X.shape[1:] == (estimator.n_features_in_,)
        if expected:  # scikit-learn's check would take longer than scoring a row
            return
    try:
        compare_columns(estimator, X, reset=reset)
    except ValueError as error:
        if name == "X":
            raise
        raise ValueError(f"{name} does not match the X of fit: {error}") from error


def category_columns(X: RowsLike, named: Any = None) -> dict[int, tuple[Any, ...]]:
    """Return the columns that are categorical by their dtype, or hold named texts, with their levels.

    Parameters
    ----------
    X : object
        Any object, but only data frames (pandas, polars, Arrow) have category columns.
    named : array-like, mapping, str or None, default=None
        The columns named as `categorical_features`. Those of them that hold texts are category columns.

    Returns
    -------
    levels : dict of int to tuple
        The levels that occur in each category column, sorted, by the index of the column. For an ordered
        category of pandas that is not named, an `OrderedLevels` of all levels of its dtype.

    Examples
    --------
    >>> import pandas as pd
    >>> from ranktrees.rows import category_columns
    >>> X = pd.DataFrame({"clicks": [1, 2], "site": pd.Categorical(["uk", "fr"])})
    >>> category_columns(X)
    {1: ('fr', 'uk')}
    >>> category_columns(X.assign(page=["a", "b"]), ["site", "page"])
    {1: ('fr', 'uk'), 2: ('a', 'b')}
    """
    columns = frame_columns(X) or []
    chosen = np.array([is_category(column) for _, column in columns], bool)
    ordered = np.array([is_ordered(column) for _, column in columns], bool)
    if named is not None and not isinstance(named, str):
        texts = np.array([holds_texts(column) for _, column in columns], bool)
        if (texts | ordered).any():
            keys = keys_among([name for name, _ in columns])
            is_named = chosen_features(named, keys, len(columns), "categorical_features")
            chosen |= texts & is_named
            ordered &= ~is_named
    return {
        j: OrderedLevels(column.cat.categories.tolist()) if ordered[j] else levels_of(column)
        for j, (_, column) in enumerate(columns)
        if chosen[j]
    }


def joined_levels(some: Iterable[dict[int, tuple[Any, ...]]]) -> dict[int, tuple[Any, ...]]:
    """Return the levels of each category column that occur anywhere.

    Parameters
    ----------
    some : iterable of dict of int to tuple

    Returns
    -------
    levels : dict of int to tuple
        Sorted, unless all have the same. If some are an `OrderedLevels`, the first of these.

    Examples
    --------
    >>> from ranktrees.rows import joined_levels
    >>> joined_levels([{1: ("fr", "uk")}, {}, {1: ("de", "fr")}])
    {1: ('de', 'fr', 'uk')}
    """
    some, joined = list(some), {}
    for column in sorted(set().union(*some)):
        of_column = [levels[column] for levels in some if column in levels]
        ordered = [each for each in of_column if isinstance(each, OrderedLevels)]
        same = ordered or all(each == of_column[0] for each in of_column)
        joined[column] = (ordered or of_column)[0] if same else sorted_levels(chain(*of_column))
    return joined


def set_columns(
    estimator: Any, X: RowsLike, rows: np.ndarray, levels: dict[int, tuple[Any, ...]], goes_on: bool = False
) -> None:
    """Set the estimator's columns. If it `goes_on` from an earlier fit, they must be the same as before."""
    try:
        compare_columns(estimator, X, reset=not goes_on)
    except ValueError as error:
        if not goes_on:
            raise
        raise ValueError(
            "warm_start=True continues from trees that know columns by their position, so that X needs the "
            f"columns of the previous fit, in the same order: {error}"
        ) from error
    estimator.n_features_in_ = rows.shape[1]
    estimator._category_levels = levels


def compare_columns(estimator: Any, X: RowsLike, *, reset: bool) -> None:
    """Compare the number and the names of columns, as `check_columns` does.

    No rows are needed, since a rank may have none.

    Parameters
    ----------
    estimator : estimator
        Its `n_features_in_` and `feature_names_in_` are set if `reset` is True, and compared otherwise. So
        are names that are not strings, which scikit-learn ignores.
    X : array-like, scipy sparse, data frame or Spool of shape (n_rows, n_features)
        An object that is known to have rows.
    reset : bool
        True in fit.

    Raises
    ------
    ValueError
        Unless `reset` is True, for columns other than those of fit.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.base import BaseEstimator
    >>> from ranktrees.rows import compare_columns
    >>> ranker, X = BaseEstimator(), pd.DataFrame([[0.5, 1.5]], columns=[7, 5])
    >>> compare_columns(ranker, X, reset=True)
    >>> compare_columns(ranker, X[[5, 7]][:0], reset=False)
    Traceback (most recent call last):
        ...
    ValueError: The feature names should match those that were passed during fit: the columns of X are ...
    """
    X = X.head if isinstance(X, Spool) else X
    validate_data(estimator, _named(X), reset=reset, skip_check_array=True)
    _compare_other_names(estimator, X, reset)


def _compare_other_names(estimator: Any, X: RowsLike, reset: bool) -> None:
    """Do what scikit-learn does for column names that are strings, for numbers and all other names."""
    names = list(X.columns) if hasattr(X, "iloc") and hasattr(X, "columns") else []
    others = None if any(isinstance(name, str) for name in names) else names
    if reset:
        estimator._other_names = others
        return
    known = getattr(estimator, "_other_names", None)
    if others and known and others != known:
        raise ValueError(
            "The feature names should match those that were passed during fit: the columns of X are called "
            f"{others[:10]}{', ...' * (len(others) > 10)}, in fit {known[:10]}{', ...' * (len(known) > 10)}; "
            "expected the same, in the same order: pass a frame with the columns of fit, in their order."
        )


def _named(X: RowsLike) -> Any:
    """Return what shows column names to scikit-learn, which before 1.9 cannot read those of polars 2."""
    if SKLEARN_VERSION < (1, 9) and hasattr(X, "get_columns") and not hasattr(X, "__dataframe__"):
        return _Named(X)
    return X


class _Named:
    """The dataframe interchange protocol, as far as scikit-learn uses it."""

    def __init__(self, X: RowsLike) -> None:
        self.shape = X.shape
        self.column_names = lambda: X.columns

    def __dataframe__(self) -> Self:
        return self


def rows_of(
    X: RowsLike,
    levels: dict[int, tuple[Any, ...]] | None,
    estimator: Any,
    name: str,
    of_all: Callable[..., Any] = dict,
) -> tuple[Any, dict[int, tuple[Any, ...]]]:
    """Return the rows as the kernels read them, and the category levels.

    If `levels` is None, this is a fit. The levels are then the result of `of_all` for those of `X`. Every
    rank calls it, whatever type its rows have.
    """
    if not isinstance(X, Spool):
        _require_two_dimensions(X, estimator, name)
    if levels is None:
        levels = of_all(category_columns(X, getattr(estimator, "categorical_features", None)))
        if levels and (isinstance(X, Spool) or frame_columns(X) is None):
            raise _no_frame(X, levels, estimator, name)
    if isinstance(X, Spool):
        rows: Any = X
    elif sp.issparse(X):
        if levels:  # an absent entry would be the first category
            raise _no_frame(X, levels, estimator, name)
        rows = read_sparse(X, name)
    elif not levels and is_one_array(X):
        _require_distinct(list(X.columns), name)
        rows = X.to_numpy()
    elif (columns := frame_columns(X)) is not None:
        _require_distinct([column_name for column_name, _ in columns], name)
        rows = read_frame(X, columns, levels, name)
    else:
        if levels and not _takes_codes(estimator):
            raise _no_frame(X, levels, estimator, name)
        rows = _read_coded_array(X, levels, estimator, name) if levels else read_array(X, name)
        _require_size(rows.shape, estimator, name, X)
    return rows, levels


def _takes_codes(estimator: Any) -> bool:
    """Whether arrays may stand for data frames with category columns: whoever has only trees knows codes."""
    return getattr(estimator, "_takes_codes", False)


def _no_frame(X: RowsLike, levels: Mapping[int, Any], estimator: Any, name: str) -> ValueError:
    expected, instead = "a data frame", "a frame with the columns of fit"
    if _takes_codes(estimator):
        expected, instead = "a data frame or an array", f"{instead}, or {name}.toarray() if it holds codes"
    return ValueError(
        f"{name} is {as_seen(X)}; expected {expected}, since column "
        f"{_shown_names(estimator, levels)[min(levels)]!r} was a category column in fit: pass {instead}."
    )


def _require_two_dimensions(X: RowsLike, estimator: Any, name: str) -> None:
    """Refuse all but a matrix of at least one row and one column; nested lists are checked once converted."""
    require_rows(X, name)
    shape = getattr(X, "shape", None)
    if isinstance(X, (list, tuple)) and (len(X) == 0 or np.isscalar(X[0])):
        shape = (len(X),)
    if isinstance(shape, tuple):
        _require_size(shape, estimator, name, X)


def require_rows(X: RowsLike, name: str) -> None:
    """Refuse anything that cannot be turned into rows."""
    refuse_batches(X, name)
    if isinstance(X, np.matrix):
        raise TypeError(
            f"{name} is a numpy.matrix, which is not supported; expected a 2D array: convert it with "
            f"np.asarray({name})."
        )
    if not hasattr(X, "__array__") or hasattr(X, "columns"):  # arrays of Dask are computed when they are read
        refuse_lazy(X, name, "a data frame")
    if type(X).__name__ == "RecordBatch":
        raise TypeError(
            f"{name} is {as_seen(X)}, a piece of an Arrow table; expected a table: pass "
            f"pyarrow.Table.from_batches([{name}])."
        )
    if hasattr(X, "__arrow_c_stream__") and not hasattr(X, "__array__"):  # such as a relation of DuckDB
        raise TypeError(
            f"{name} is {as_seen(X)}, a stream of the pieces of a table; expected the table: pass "
            f"pyarrow.table({name})."
        )
    if isinstance(X, Bunch):
        raise _not_rows(X, name, f"{name}.data, with y={name}.target and qid={name}.qid")
    if isinstance(X, Mapping) and not hasattr(X, "shape"):
        one_row = any(np.isscalar(value) or value is None for value in X.values())
        raise _not_rows(X, name, f"pandas.DataFrame({f'[{name}]' if one_row else name})")
    if isinstance(X, list) and X and isinstance(X[0], Mapping):
        raise _not_rows(X, name, f"pandas.DataFrame({name})")
    if np.isscalar(X) or not any(hasattr(X, has) for has in ("__len__", "shape", "__array__")):
        raise _not_rows(X, name)


def refuse_batches(X: RowsLike, name: str) -> None:
    if isinstance(X, Batches):
        raise TypeError(
            f"{name} is in batches, which only the fit of a tree estimator reads; expected rows: iterate "
            "over the batches, as in [model.predict(batch.X) for batch in batches]."
        )


def _not_rows(X: RowsLike, name: str, instead: str = "the one from which it was made") -> ValueError:
    return ValueError(
        f"Expected 2D array, got scalar array instead: {name} is {as_seen(X)}; expected rows and columns, in "
        f"an array, a sparse matrix or a data frame: pass {instead}."
    )


def _require_size(shape: tuple[Any, ...], estimator: Any, name: str, X: RowsLike) -> None:
    by = f" by {type(estimator).__name__}"
    if len(shape) == 0:
        raise _not_rows(X, name)
    if len(shape) == 1:
        raise ValueError(
            f"Expected 2D array, got 1D array instead: {name} is {as_seen(X)}.\nReshape your data either "
            "using array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it "
            "contains a single sample."
        )
    if len(shape) > 2:
        raise ValueError(
            f"Found array with dim {len(shape)}, while dim <= 2 is required{by}: {name} has shape {shape}; "
            "expected one row per document and one column per feature: reshape it to (n_rows, n_features)."
        )
    for count, kind in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {kind} (shape={shape}) while a minimum of 1 is required{by}: {name} is "
                "empty."
            )


def _require_distinct(names: list[Any], name: str) -> None:
    if len(set(names)) < len(names):
        twice = next(column for j, column in enumerate(names) if column in names[:j])
        raise ValueError(
            f"{name} has duplicate column names: {twice!r} occurs more than once; expected a unique name for "
            "every column: rename or drop the others."
        )


def _shown_names(estimator: Any, levels: Mapping[int, Any]) -> Any:
    return getattr(estimator, "feature_names_in_", range(max(levels) + 1))


def _read_coded_array(
    X: RowsLike, levels: Mapping[int, tuple[Any, ...]], estimator: Any, name: str
) -> np.ndarray:
    """Return the rows of an array whose category columns hold levels or codes."""
    values = np.asarray(X, object) if isinstance(X, list | tuple) else np.asanyarray(X)
    if values.ndim != 2 or values.size == 0:
        return values
    holds_objects = values.dtype.kind in "OUT"
    if isinstance(values, np.ma.MaskedArray) and holds_objects:
        masked, values = np.ma.getmaskarray(values), values.data.astype(object)
        values[masked] = None
    rows = values.astype(object) if holds_objects else read_array(values, name)
    names = _shown_names(estimator, levels)
    for j, of_column in levels.items():
        codes = read_categories_of_array(rows[:, j], of_column, f"column {names[j]!r} of {name}")
        if holds_objects:
            rows[:, j] = codes
    return read_array(rows, name)


def read_array(X: RowsLike, name: str) -> np.ndarray:
    """Return the rows of an array as floats. If it is not two-dimensional, the caller must refuse it."""
    masked = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X) else None
    try:
        values = np.asarray(X)
    except ValueError as error:
        raise ValueError(
            f"{name} could not be turned into an array ({error}); expected rows of equal length: pad or drop "
            "the others."
        ) from error
    if values.ndim != 2:
        return values
    rows = as_float(values, lambda j: f"column {j} of {name}", masked)
    if masked is not None:
        rows = np.where(masked, rows.dtype.type(np.nan), rows)
    return rows
