"""Turn numbers of any kind into equal floats, and show values in messages."""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable
from datetime import date, time, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn

if TYPE_CHECKING:
    from ranktrees.support.annotations import RowsLike

SKLEARN_VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
LARGEST_EXACT_FLOAT32 = 2**24
LARGEST_EXACT_FLOAT64 = 2**53
DECIMAL_COMMA = re.compile(r"[-+]?[\d.]*\d,\d+")


def is_missing(value: Any) -> bool:
    """Whether a value is None, or NaN, NaT or NA, which do not equal themselves."""
    try:
        return value is None or not bool(value == value)
    except TypeError:  # pandas.NA has no truth value
        return True


def as_float(values: np.ndarray, named: Callable[[int], str], masked: np.ndarray | None = None) -> np.ndarray:
    """Return numbers as float32 or float64, uncopied if they are; `named(j)` is column `j` in messages."""
    dtype = values.dtype
    if dtype.kind == "f" or (dtype.kind == "V" and np.can_cast(dtype, np.float64)):  # V: such as bfloat16
        target = np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
        if dtype == target and values.flags.aligned:
            return values
        with np.errstate(over="ignore"):
            return values.astype(target)
    if dtype.kind in "biu":
        return values.astype(_float_for_integers(values if masked is None else values[~masked], named))
    if dtype.kind == "O":
        return _objects_as_float(values if masked is None else _without(values, masked), named)
    if dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {named(0)} holds {dtype}; expected real numbers: pass the real and "
            "the imaginary part as columns of their own."
        )
    if dtype.kind in "mM":
        raise dates_in(named(0), f"dtype {dtype}")
    raise _words(named(0), values.flat[0] if dtype.kind in "USTV" else dtype)


def narrowed(values: np.ndarray) -> np.ndarray:
    """Return the same numbers in as few bytes as can hold them. Grades take one byte."""
    with np.errstate(all="ignore"):
        for dtype in (np.uint8, np.float32):
            if np.array_equal(narrow := values.astype(dtype), values):
                return narrow
    return np.ascontiguousarray(values)


def _without(values: np.ndarray, masked: np.ndarray) -> np.ndarray:
    values = values.copy()
    values[masked] = None
    return values


def dates_in(column: str, seen: str) -> ValueError:
    return ValueError(
        f"{column} holds dates or durations ({seen}); expected numbers: convert it yourself, for instance to "
        "days since a date."
    )


def several(column: str) -> ValueError:
    return ValueError(
        f"{column} holds several values per row, such as an embedding; expected one number per row: give "
        "each value a column of its own."
    )


def _words(column: str, value: object) -> ValueError:
    if isinstance(value, str) and DECIMAL_COMMA.fullmatch(value.strip()):
        return ValueError(
            f"{column} holds {as_seen(value)}, with a decimal comma; expected numbers: read the file by "
            "pandas.read_csv(..., decimal=','), or replace the commas of the column."
        )
    return ValueError(
        f"{column} holds {as_seen(value)}, which could not be converted to float; expected numbers: replace "
        "strings by numbers, or make it a category column of a data frame: .astype('category') in pandas, "
        ".cast(pl.Categorical) in polars, or its name in categorical_features."
    )


def _float_for_integers(values: np.ndarray, named: Callable[[int], str]) -> type:
    if values.dtype.kind == "b" or values.dtype.itemsize <= 2 or values.size == 0:
        return np.float32
    largest = max(abs(int(values.min())), abs(int(values.max())))
    if largest > LARGEST_EXACT_FLOAT64:
        beyond = (values > LARGEST_EXACT_FLOAT64) | (values < -LARGEST_EXACT_FLOAT64)
        column = int(beyond.any(axis=0).argmax()) if values.ndim > 1 else 0
        raise _imprecise(named(column), values.dtype, values[beyond][0])
    return np.float32 if largest <= LARGEST_EXACT_FLOAT32 else np.float64


def _imprecise(column: str, dtype: Any, value: object) -> ValueError:
    return ValueError(
        f"{column} holds the integer {value} (dtype {dtype}), too large for the full precision of float64; "
        "expected integers up to 2**53: subtract an offset, or pass identifiers as categories."
    )


def _objects_as_float(values: np.ndarray, named: Callable[[int], str]) -> np.ndarray:
    columns = values.reshape(-1, values.shape[-1] if values.ndim > 1 else 1)
    numbers_ = np.empty(columns.shape)
    for j in range(columns.shape[1]):
        for value in columns[:, j]:
            if isinstance(value, (str, bytes)):
                raise _words(named(j), value)
            if isinstance(value, (np.datetime64, np.timedelta64)):  # float() would use their own unit
                raise dates_in(named(j), repr(value))
        try:
            column = [None if _is_na(value) else value for value in columns[:, j]]
            numbers_[:, j] = column  # None becomes NaN
        except (TypeError, ValueError, OverflowError) as error:
            wrong = next(value for value in column if not is_number(value))
            if isinstance(wrong, (list, tuple, np.ndarray)):
                raise several(named(j)) from error
            if is_date(wrong):
                raise dates_in(named(j), as_seen(wrong)) from error
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                f"{named(j)} holds {as_seen(wrong)}; expected numbers ({str(error).rstrip('.')}): make "
                "numbers of such values, or a category column of a data frame."
            ) from error
        for i in np.flatnonzero(np.abs(numbers_[:, j]) >= LARGEST_EXACT_FLOAT64):
            value = columns[i, j]
            if isinstance(value, numbers.Integral) and abs(int(value)) > LARGEST_EXACT_FLOAT64:
                raise _imprecise(named(j), "object", value)
    return numbers_.reshape(values.shape)


def _is_na(value: Any) -> bool:
    """Whether this is pandas.NA, without importing pandas."""
    return type(value).__name__ == "NAType"


def is_date(value: Any) -> bool:
    """Whether this is a date, a time, a duration, or a period of pandas, which is not imported."""
    kinds = (date, time, timedelta, np.datetime64, np.timedelta64)
    return isinstance(value, kinds) or type(value).__name__ == "Period"


def is_number(value: Any) -> bool:
    if isinstance(value, (str, bytes)):
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return value is None
    return True


def array_of(column: Any, read: Callable[[Any], np.ndarray] = np.asarray) -> np.ndarray:
    """Return a column as an array; as objects if NumPy lacks its type, as it lacks integers of 128 bits."""
    if str(getattr(column, "dtype", "")) in ("Int128", "UInt128"):
        return np.array(column.to_list(), object)
    return read(column)


def refuse_lazy(values: Any, name: str, expected: str) -> None:
    """Refuse what has yet to be computed: lazy frames of polars, and frames of Spark and Dask."""
    method = next((each for each in ("toPandas", "collect", "compute") if hasattr(values, each)), None)
    if method and not (hasattr(values, "__array__") and getattr(values, "ndim", 2) == 1):
        seen = f"<{type(values).__name__}>"
        raise TypeError(
            f"{name} is {seen}, which has no rows yet; expected {expected}: pass {name}.{method}()."
        )


def shape_of(X: RowsLike) -> tuple[Any, ...]:
    """Return the shape of rows; of nested lists the length only, and (None,) for what has no shape."""
    return getattr(X, "shape", None) or (len(X) if isinstance(X, list | tuple) else None,)


def as_seen(value: object) -> str:
    """Return how a message shows a value, in short."""
    if isinstance(value, (str, bytes, numbers.Number, date, timedelta, np.generic, np.dtype, type(None))):
        return repr(value.item() if isinstance(value, np.generic) else value)[:60]
    shape = getattr(value, "shape", None)
    kind = type(value).__name__
    if isinstance(shape, tuple):
        return f"<{kind} of shape {shape}>"
    return f"<{kind} of length {len(value)}>" if hasattr(value, "__len__") else f"<{kind}>"
