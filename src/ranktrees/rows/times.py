"""Turn times of any kind into an array that can be compared."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from typing import Any

import numpy as np

from ranktrees.rows.frames import frame_columns, missing_mask
from ranktrees.rows.values import array_of, as_float, as_seen, is_missing, is_number

__all__ = ["find_times", "times_in"]


def find_times(name: str, y: Any, X: Any) -> Any:
    """Return the times of rows that an index level of `y` or `X`, or a column of `X`, holds.

    Parameters
    ----------
    name : str
        What the level or the column is called.
    y, X : object
        Only pandas objects have an index, and only frames columns.

    Returns
    -------
    times : array-like of length n_rows, or None
        None if there is no such level or column.

    Examples
    --------
    >>> import pandas as pd
    >>> list(find_times("day", None, pd.DataFrame({"day": [3, 1]})))
    [3, 1]
    >>> find_times("day", [0, 1], None) is None
    True
    """
    for holder in (y, X):
        index: Any = getattr(holder, "index", None)
        if hasattr(holder, "iloc") and name in index.names:
            return index.get_level_values(name)
    columns = frame_columns(X) or []
    return next((column for called, column in columns if called == name), None)


def times_in(times: Any, n_rows: int, name: str) -> np.ndarray:
    """Return times as numbers or as dates, none missing.

    Parameters
    ----------
    times : array-like of shape (n_rows,)
        Numbers, dates of any kind, or strings as ISO 8601 writes them. Those with a time zone are compared
        with others as if these were in UTC.
    n_rows : int
    name : str
        What messages call them.

    Returns
    -------
    ndarray of numbers or of datetime64, shape (n_rows,)

    Raises
    ------
    ValueError
        If there is not one time per row, if one is missing, or is neither a number nor a date.

    Examples
    --------
    >>> times_in(["2024-01-02", "2024-01-01T12:30:00+01:00"], 2, "time")
    array(['2024-01-02T00:00:00.000000', '2024-01-01T11:30:00.000000'],
          dtype='datetime64[us]')
    """
    expected = f"expected a time for each of the {n_rows} rows, a number or a date"
    missing = missing_mask(times)
    array = array_of(times)
    if array.shape != (n_rows,):
        raise ValueError(f"{name} has shape {array.shape}; {expected}: pass the one column that holds them.")
    if missing is None and array.dtype.kind in "fmM":
        missing = array != array  # NaN and NaT
    elif missing is None and array.dtype.kind == "O":
        missing = np.array([is_missing(value) for value in array], bool)
    if missing is not None and missing.any():
        raise ValueError(
            f"{name} is missing in row {int(missing.argmax())}; {expected}: drop the rows without one."
        )
    if array.dtype.kind == "O" and all(map(is_number, array)):
        array = as_float(array, lambda _: name)
    if array.dtype.kind in "iufM":
        return array
    instants = {value: _instant(value, name, expected) for value in set(array.tolist())}
    return np.array([instants[value] for value in array.tolist()], "datetime64[us]")


def _instant(value: Any, name: str, expected: str) -> datetime:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError as error:
        raise ValueError(
            f"{name} holds {value!r}; {expected}, such as '2024-12-31' ({error}): write dates like this, or "
            "read them by pandas.to_datetime(..., format=...)."
        ) from error
    found = getattr(found, "start_time", found)  # of a period of pandas
    if isinstance(found, date) and not isinstance(found, datetime):
        found = datetime.combine(found, time())
    if not isinstance(found, datetime):
        raise ValueError(f"{name} holds {as_seen(value)}; {expected}: convert it.")
    return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)
