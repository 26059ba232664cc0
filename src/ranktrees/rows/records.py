"""Read records, such as the objects of a JSON list, as rows, without a data frame."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn, TypeAlias

import numpy as np

from ranktrees._core.rows.records import RecordReader
from ranktrees.rows.frames import kind_of, kinds_of, of_other_kind
from ranktrees.rows.values import as_float, as_seen, is_missing
from ranktrees.support.listed import are_in_order, by_key

__all__ = ["Record", "Records"]

Record: TypeAlias = Mapping[Any, Any] | Sequence[Any]  # by the names of columns, or in their order


class Records:
    """The columns of records. It never changes, so that threads can share it.

    Parameters
    ----------
    names : sequence of hashable, or None
        The names of the columns. If None, records are lists.
    n_columns : int
    levels : mapping of int to tuple
        The levels of category columns, in the order of their codes.
    ignore : bool or collection of hashable
        The keys that records may have besides the names. True stands for all.

    Examples
    --------
    >>> columns = Records(["price", "site"], 2, {1: ("fr", "uk")}, ignore=False)
    >>> columns.read([{"price": 3, "site": "uk"}, {"site": None}, [2.5, "fr"]])
    array([[3. , 1. ],
           [nan, nan],
           [2.5, 0. ]])
    """

    def __init__(
        self,
        names: Sequence[Any] | None,
        n_columns: int,
        levels: Mapping[int, tuple[Any, ...]],
        ignore: bool | Collection[Any],
    ) -> None:
        self._names, self._n_columns, self._levels = names, n_columns, dict(levels)
        self._kinds = {j: kinds_of(of_column) for j, of_column in levels.items()}
        self._ignored = () if isinstance(ignore, bool | np.bool_) else _keys(ignore, names or ())
        codes = {j: {level: float(i) for i, level in enumerate(of_column)} for j, of_column in levels.items()}
        self._reader = RecordReader(
            None if names is None else tuple(names),
            tuple(map(codes.get, range(n_columns))),
            self._ignored,
            not self._ignored and bool(ignore),
            self._read_other,
            _plain,
            self._refuse,
        )

    def read(self, records: Iterable[Record]) -> np.ndarray:
        """Return the rows, with codes in category columns.

        Parameters
        ----------
        records : iterable of dicts or lists

        Returns
        -------
        rows : ndarray of float64, shape (n_records, n_columns)

        Raises
        ------
        ValueError
            If something is not as expected. The message names the record, counted from 0, and the key.
        """
        if not are_in_order(records) or hasattr(records, "columns") or hasattr(records, "column_names"):
            instead = "[record]" if isinstance(records, Mapping) else "a data frame to predict"
            raise ValueError(
                f"records is {as_seen(records)}; expected a list of records, each a dict or a list of "
                f"values: pass {instead}."
            )
        records = list(records)
        rows = np.empty((len(records), self._n_columns))
        self._reader.read(records, rows)
        return rows

    def _read_other(self, value: Any, row: int, column: int) -> float:
        """Return the number that a value is, or NaN for a level that fit has not seen."""
        if column not in self._levels:
            return _number(value, lambda: self._named(row, column))
        try:
            hash(value)
        except TypeError:
            raise ValueError(
                f"{self._named(row, column)} holds {as_seen(value)}; expected a category: pass one value."
            ) from None
        kinds = self._kinds[column]
        if kinds and not is_missing(value) and kind_of(value) not in kinds:
            raise of_other_kind(value, self._levels[column], kinds, self._named(row, column))
        return np.nan

    def _named(self, row: int, column: int) -> str:
        name = f"value {column}" if self._names is None else repr(self._names[column])
        return f"{name} of record {row}"

    def _refuse(self, record: Any, row: int) -> NoReturn:
        if not isinstance(record, dict):
            raise ValueError(
                f"record {row} is a list of {len(record)} values; expected {self._n_columns}, one for each "
                "column of the model, in their order: pass None for values that are missing."
            )
        if self._names is None:
            raise ValueError(
                f"record {row} is a dict, but the model does not know the names of its columns; expected a "
                f"list of {self._n_columns} values in the order of the columns: pass lists, or give an "
                "EnsembleRanker feature_names."
            )
        known = {*self._names, *self._ignored}
        key = next(key for key in record if key not in known)
        near = get_close_matches(str(key), map(str, self._names), n=1)
        raise ValueError(
            f"record {row} has the key {key!r}, which is no column of the model; "
            + (f"the nearest is {near[0]!r}; " if near else "")
            + f"expected its columns only: leave it out, or name it in ignore=[{key!r}]."
        )


def _plain(record: Any, row: int) -> dict[Any, Any] | list[Any]:
    """Return the dict or the list that a record is."""
    record = by_key(record, f"record {row}")
    if isinstance(record, Mapping):
        return dict(record)
    if are_in_order(record):
        return list(record)
    raise ValueError(
        f"record {row} is {as_seen(record)}; expected a dict from the names of columns to values, or a list "
        "of values in the order of the columns."
    )


def _keys(ignore: Any, names: Sequence[Any]) -> tuple[Any, ...]:
    if not isinstance(ignore, Collection) or isinstance(ignore, str | bytes):
        raise ValueError(
            f"ignore={ignore!r}; expected the keys that records may have besides the columns of the model: "
            "pass a list of them, or True for any."
        )
    if columns := [key for key in ignore if key in names]:
        raise ValueError(
            f"ignore has {columns[0]!r}, a column of the model; expected other keys: leave it out here, and "
            "in records if it is missing."
        )
    return tuple(set(ignore))


def _number(value: Any, named: Callable[[], str]) -> float:
    if isinstance(value, np.floating):
        return float(value)
    if isinstance(value, str | bytes):
        raise ValueError(
            f"{named()} holds {as_seen(value)}; expected a number, or None if it is missing: convert it."
        )
    cell = np.empty(1, object)
    cell[0] = value
    try:
        return float(as_float(cell, lambda _: named())[0])
    except TypeError as error:
        raise ValueError(str(error)) from error
