"""Read data frames: columns of numbers or categories, and their missing values."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from collections.abc import Set as AnySet
from datetime import date, datetime, timedelta
from numbers import Number
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees.rows.sparse import read_sparse
from ranktrees.rows.values import array_of, as_float, as_seen, is_missing, several
from ranktrees.support.warning import FitWarning, warn

if TYPE_CHECKING:
    from ranktrees.support.annotations import RowsLike


_KINDS: tuple[tuple[str, Any], ...] = (
    ("str", str),
    ("number", (Number, np.bool_)),
    ("datetime", datetime),  # before date: it is one, but equals none
    ("date", date),
    ("timedelta", timedelta),
)


def is_one_array(X: RowsLike) -> bool:
    """Whether this is a pandas frame of one float dtype, whose columns take longer to read than to score."""
    return (
        hasattr(X, "iloc")
        and hasattr(X, "columns")
        and set(X.dtypes) in ({np.dtype(np.float32)}, {np.dtype(np.float64)})
    )


def frame_columns(X: RowsLike) -> list[tuple[Any, Any]] | None:
    """Return the (name, column) pairs of a pandas, polars or Arrow frame; None for anything else."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return list(X.items())
    if hasattr(X, "get_columns"):
        return [(column.name, column) for column in X.get_columns()]
    if hasattr(X, "column_names") and hasattr(X, "column"):
        return [(name, X.column(j)) for j, name in enumerate(X.column_names)]
    return None


def column_of(values: Any) -> Any:
    """Return a pandas Series of some values, of their own type if pandas has it."""
    import pandas as pd

    if isinstance(values, np.ndarray) and values.dtype == object:
        values = values.tolist()
    try:
        return pd.Series(values)
    except UnicodeEncodeError:  # pandas' strings cannot hold surrogates
        return pd.Series(values, dtype=object)


def warn_of_order(named: dict[str, Any]) -> None:
    """Warn if pandas indexes are the same but in another order, since rows are matched by position.

    The index of the frame, or else of the first argument, is compared with those of the others. `named` has
    the arguments by name.
    """
    indexed = {name: values for name, values in named.items() if hasattr(values, "iloc")}
    if len(indexed) < 2:
        return
    first = max(indexed, key=lambda name: indexed[name].ndim)
    index = indexed.pop(first).index
    for name, values in indexed.items():
        other = values.index
        if other.equals(index) or other.nlevels != index.nlevels or len(other) != len(index):
            continue
        if not (other.is_unique and index.is_unique):
            continue
        if other.isin(index).all():
            warn(
                f"the index of {name} is that of {first} in another order, and is ignored: the first value "
                f"of {name} goes with the first row of {first}. If that is not intended, pass "
                f"{name}.loc[{first}.index], else {name}.to_numpy().",
                FitWarning,
            )


def read_frame(
    X: RowsLike, columns: list[tuple[Any, Any]], levels: Mapping[int, tuple[Any, ...]], name: str
) -> Any:
    dtypes = {getattr(column, "dtype", None) for _, column in columns}
    if hasattr(X, "iloc") and not levels and all(getattr(dtype, "fill_value", None) == 0 for dtype in dtypes):
        return read_sparse(X.sparse.to_coo(), name)
    values = [
        _read_column(column, levels.get(j), f"column {column_name!r} of {name}")
        for j, (column_name, column) in enumerate(columns)
    ]
    rows = np.empty((len(values[0]), len(values)), np.result_type(*values), order="F")
    for j, column in enumerate(values):
        rows[:, j] = column
    return rows


def _read_column(column: Any, levels: tuple[Any, ...] | None, named: str) -> np.ndarray:
    if levels is not None:
        return _read_categories(values_of(column), levels, named)
    if is_category(column):
        raise ValueError(
            f"{named} is a category column; expected numbers, as in fit: fit with the category column, or "
            "pass numbers; for an EnsembleRanker, pass the levels that its ensemble lacks as "
            "category_levels."
        )
    missing = missing_mask(column)
    if missing is None or not missing.any():
        values = array_of(column)
        if values.ndim > 1:
            raise several(named)
        return as_float(values, lambda _: named)
    known = as_float(_without_missing(column), lambda _: named)
    values = np.full(len(missing), np.nan, known.dtype)
    values[~missing] = known
    return values


def _read_categories(values: list[Any], levels: tuple[Any, ...], named: str) -> np.ndarray:
    code_of = {level: code for code, level in enumerate(levels)}
    codes = np.array([code_of.get(value, np.nan) for value in values], np.float32)
    without_code = [values[row] for row in np.flatnonzero(np.isnan(codes))]
    unseen = [value for value in without_code if not is_missing(value)]
    kinds = kinds_of(levels) if unseen else set()
    for value in unseen:
        if kinds and kind_of(value) not in kinds:
            raise of_other_kind(value, levels, kinds, named)
    return codes


def of_other_kind(value: Any, levels: tuple[Any, ...], kinds: AnySet[str], named: str) -> ValueError:
    """Return the error for a value of another kind than the levels of its column.

    Parameters
    ----------
    value : hashable
    levels : tuple
    kinds : set of str
        The kinds of the levels.
    named : str
        What holds the value.
    """
    return ValueError(
        f"{named} holds {as_seen(value)}, a {kind_of(value)}, but its categories in fit are of kind "
        f"{' and '.join(sorted(kinds))}, such as {as_seen(levels[0])}; expected values of that kind: "
        "pass the categories themselves, spelt as in fit, rather than codes for them."
    )


def read_categories_of_array(column: np.ndarray, levels: tuple[Any, ...], named: str) -> np.ndarray:
    """Return the codes of a category column of an array, which holds either the levels or their codes.

    Parameters
    ----------
    column : ndarray of numbers or objects, shape (n_rows,)
        If all that is not missing is numbers, these are codes. Otherwise the values are levels.
    levels : tuple
    named : str
        What holds the values, for messages.

    Returns
    -------
    codes : ndarray of float32 or float64, shape (n_rows,)

    Raises
    ------
    ValueError
        If numbers may be levels as well as codes, or are neither; or for levels of another kind.

    Examples
    --------
    >>> read_categories_of_array(np.array([1.0, 0.0, np.nan]), ("fr", "uk"), "column 'site' of X")
    array([ 1.,  0., nan])
    >>> read_categories_of_array(np.array(["uk", "de"], object), ("fr", "uk"), "column 'site' of X")
    array([ 1., nan], dtype=float32)
    """
    if column.dtype == object:
        values = column.tolist()
        if kinds_of(value for value in values if not is_missing(value)) - {"number"}:
            return _read_categories(values, levels, named)
    codes = as_float(column, lambda _: named)
    if levels != tuple(range(len(levels))) and "number" in kinds_of(levels) and not np.isnan(codes).all():
        raise ValueError(
            f"{named} holds numbers, which may be categories, such as {as_seen(levels[0])}, or their codes "
            f"from 0 to {len(levels) - 1}; expected a data frame, whose values are categories: pass one, or "
            "records to a RecordScorer; codes can be passed to predict of the ensemble."
        )
    other = ~(np.isnan(codes) | ((codes >= 0) & (codes < len(levels)) & (codes == np.floor(codes))))
    if other.any():
        raise ValueError(
            f"{named} holds {codes[other][0]:g}; expected the categories of fit, or their codes, whole "
            f"numbers from 0 on and below {len(levels)}: pass NaN for a category that is missing or not in "
            "fit."
        )
    return codes


def kind_of(level: Hashable) -> str:
    """Return the kind of a level. Only a value of the same kind can be an unseen level of a column.

    Parameters
    ----------
    level : hashable

    Returns
    -------
    kind : str

    Examples
    --------
    >>> kind_of("uk"), kind_of(3), kind_of(True)
    ('str', 'number', 'number')
    >>> kind_of(date(2024, 1, 1)), kind_of(datetime(2024, 1, 1))
    ('date', 'datetime')
    """
    return next((kind for kind, types in _KINDS if isinstance(level, types)), type(level).__name__)


def kinds_of(levels: Iterable[Hashable]) -> set[str]:
    """Return the kinds of values. A kind depends on the type only."""
    return {kind_of(level) for level in {type(level): level for level in levels}.values()}


def _without_missing(column: Any) -> np.ndarray:
    drop = getattr(column, "dropna", None) or getattr(column, "drop_nulls", None) or column.drop_null
    return array_of(drop())


def missing_mask(column: Any) -> np.ndarray | None:
    """Return where a data frame's column (or a masked array) has nulls; None if it has none for sure."""
    if isinstance(column, np.ma.MaskedArray):
        return np.ma.getmaskarray(column)
    if isinstance(getattr(column, "dtype", None), np.dtype) and column.dtype != object:
        return None
    n_missing = getattr(column, "null_count", None)  # of Arrow, and a method of polars, which know it
    if callable(n_missing):
        n_missing = n_missing()
    if isinstance(n_missing, int) and n_missing == 0:  # that of a whole frame is none
        return None
    if getattr(column, "nlevels", 1) > 1:  # a MultiIndex has no isna
        return column.to_frame().isna().to_numpy().any(axis=1)
    for method in ("isna", "is_null"):  # pandas; polars and Arrow
        if hasattr(column, method):
            return np.asarray(getattr(column, method)())
    return None


def _dtype_of(column: Any) -> Any:
    dtype = column.dtype if hasattr(column, "dtype") else getattr(column, "type", None)
    return getattr(dtype, "pyarrow_dtype", dtype)


def is_category(column: Any) -> bool:
    return type(_dtype_of(column)).__name__ in ("CategoricalDtype", "Categorical", "Enum", "DictionaryType")


def is_ordered(column: Any) -> bool:
    """Whether this is an ordered pandas category. An Enum of polars does not say if its order means much."""
    return type(getattr(column, "dtype", None)).__name__ == "CategoricalDtype" and column.dtype.ordered


def holds_texts(column: Any) -> bool:
    """Whether a column has a dtype of strings, or is of objects some of which are strings."""
    dtype = _dtype_of(column)
    if type(dtype).__name__ in ("StringDtype", "String") or str(dtype) in ("string", "large_string"):
        return True
    return str(dtype) in ("object", "Object") and any(isinstance(value, str) for value in values_of(column))


def values_of(column: Any) -> list[Any]:
    if hasattr(column, "to_pylist"):  # np.asarray turns the nulls of an Arrow dictionary into levels
        return column.to_pylist()
    if type(column.dtype).__name__ == "CategoricalDtype":  # beside a NaN, integers would be floats
        levels = [*column.cat.categories.tolist(), None]
        return [levels[code] for code in column.cat.codes.tolist()]
    return np.asarray(column, dtype=object).tolist()


class OrderedLevels(tuple[Any, ...]):
    """All levels of an ordered category, in their order: their codes are compared, as numbers are.

    Examples
    --------
    >>> import pandas as pd
    >>> from ranktrees.rows import OrderedLevels, category_columns
    >>> X = pd.DataFrame({"size": pd.Categorical(["S", "L"], ["S", "M", "L"], ordered=True)})
    >>> levels = category_columns(X)[0]
    >>> levels, isinstance(levels, OrderedLevels)
    (('S', 'M', 'L'), True)
    """

    __slots__ = ()


def levels_of(column: Any) -> tuple[Any, ...]:
    """Return the distinct values of a column without the missing ones, sorted."""
    return sorted_levels(value for value in set(values_of(column)) if not is_missing(value))


def sorted_levels(values: Iterator[Any] | list[str]) -> tuple[Any, ...]:
    """Return the distinct values, sorted; if types are mixed, by the name of the type first.

    Parameters
    ----------
    values : iterable of hashable values

    Returns
    -------
    tuple

    Examples
    --------
    >>> sorted_levels(["uk", "fr", "uk"])
    ('fr', 'uk')
    """
    distinct = list(set(values))
    try:
        return tuple(sorted(distinct))
    except TypeError:
        return tuple(sorted(distinct, key=lambda value: (type(value).__name__, str(value))))
