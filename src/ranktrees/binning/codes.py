"""Codes in columns, where features with few unusual codes share a column.

    column 0    the codes of f0, row by row
    column 1    value 0    f1, f2, f3, ... have their usual codes
                value 1    f2 has code 1, and the others their usual ones
                value 2    f2 has code 1, and f7 has code 4
                ...        up to 256 combinations that some row has

A column of this kind is *joint*. It takes as much memory as the codes of one feature, and as much time: rows
are added up by its 256 values, and from these sums follow those by the codes of each of its features. Flags,
one-hot columns and words are seldom anything but 0, and many of them fit into one column. If a row has two of
them, that is one combination more, so features need not exclude each other, as they do in LightGBM's bundles.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ranktrees._core.binning import joining

if TYPE_CHECKING:
    from ranktrees.processes.communicator import Communicator

__all__ = ["Codes", "codes_of_all", "no_codes"]


def no_codes(n_rows: int, n_features: int, dtype: Any) -> np.ndarray:
    """Allocate an array for codes, feature by feature."""
    return np.empty((n_features, n_rows), dtype).T


class Codes:
    """The codes of rows.

    Parameters
    ----------
    columns : ndarray of uint8 or uint32, shape (n_rows, n_columns)
        In Fortran order.
    column_of : ndarray of int32, shape (n_features,), default=None
        The column of each feature. If None, each has its own, in order.
    joint_of : ndarray of int32, shape (n_features,), default=None
        The number of each feature among those of joint columns, or -1 if it has a column of its own.
    tables : ndarray of uint8, shape (n_joint, 256), default=None
        The code of each feature of a joint column by the value of the column.

    Attributes
    ----------
    columns, column_of, joint_of, tables
        As given.
    first_pair : ndarray of int64, shape (n_joint + 1,)
    pair_values, pair_codes : ndarrays of uint8, shape (n_pairs,)
        The pairs of a feature are ``first_pair[j]`` to ``first_pair[j + 1]``: the values that stand for
        another code than the usual one, which is that of value 0, and these codes.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.binning.codes import Codes
    >>> tables = np.zeros((2, 256), np.uint8)
    >>> tables[0, 1] = tables[0, 2] = tables[1, 2] = 1
    >>> column = np.array([[0], [1], [2]], np.uint8)
    >>> codes = Codes(column, np.zeros(2, np.int32), np.arange(2, dtype=np.int32), tables)
    >>> codes.shape
    (3, 2)
    >>> [feature.tolist() for feature in codes]
    [[0, 1, 1], [0, 0, 1]]
    """

    def __init__(
        self,
        columns: np.ndarray,
        column_of: np.ndarray | None = None,
        joint_of: np.ndarray | None = None,
        tables: np.ndarray | None = None,
    ) -> None:
        self.columns = columns
        n_features = columns.shape[1]
        self.column_of = np.arange(n_features, dtype=np.int32) if column_of is None else column_of
        self.joint_of = np.full(len(self.column_of), -1, np.int32) if joint_of is None else joint_of
        self.tables = np.empty((0, 256), np.uint8) if tables is None else tables
        features, values = np.nonzero(self.tables != self.tables[:, :1])
        self.first_pair = np.searchsorted(features, np.arange(len(self.tables) + 1)).astype(np.int64)
        self.pair_values, self.pair_codes = values.astype(np.uint8), self.tables[features, values]

    @classmethod
    def of(cls, codes: Any) -> Self:
        """Return codes as they are, or those of an array, in which each feature has a column."""
        return codes if isinstance(codes, cls) else cls(codes)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of features."""
        return len(self.columns), len(self.column_of)

    @property
    def itemsize(self) -> int:
        return self.columns.itemsize

    def __len__(self) -> int:
        return len(self.columns)

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield the codes of one feature after the other."""
        yield from map(self.of_feature, range(len(self.column_of)))

    def of_feature(self, f: int) -> np.ndarray:
        """Return the codes of feature f, row by row."""
        values, joint = self.columns[:, self.column_of[f]], self.joint_of[f]
        return values if joint < 0 else self.tables[joint][values]

    def entries(self, features: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the other codes than the usual ones of features of joint columns, as `joined` takes them."""
        first, rows, codes = [0], [np.empty(0, np.uint32)], [np.empty(0, np.uint8)]
        sorted_rows = {}
        for column in np.unique(self.column_of[features]).tolist():
            values = self.columns[:, column]
            ends = np.cumsum(np.bincount(values, minlength=256))
            sorted_rows[column] = np.split(np.argsort(values, kind="stable").astype(np.uint32), ends[:-1])
        for column, joint in zip(self.column_of[features].tolist(), self.joint_of[features], strict=True):
            pairs = slice(self.first_pair[joint], self.first_pair[joint + 1])
            of_feature = [sorted_rows[column][value] for value in self.pair_values[pairs].tolist()]
            own_rows = np.concatenate([rows[0], *of_feature])
            order = np.argsort(own_rows, kind="stable")
            rows.append(own_rows[order])
            codes.append(np.repeat(self.pair_codes[pairs], [len(part) for part in of_feature])[order])
            first.append(first[-1] + len(order))
        return np.array(first, np.int64), np.concatenate(rows), np.concatenate(codes)

    def counted(self, counts: np.ndarray) -> np.ndarray:
        """Return how many rows have each code: int64[n_features, 256], given the rows with each value."""
        found = counts[self.column_of]
        joint = np.flatnonzero(self.joint_of >= 0)
        if len(joint):
            order = joint[np.argsort(self.joint_of[joint])]
            features = np.repeat(order, np.diff(self.first_pair))
            of_pairs = counts[self.column_of[features], self.pair_values]
            found[order] = 0
            np.add.at(found, (features, self.pair_codes), of_pairs)
            found[order, self.tables[:, 0]] += len(self) - found[order].sum(axis=1)
        return found


def joined(n_rows: int, entries: Any, usual: np.ndarray, lone: np.ndarray) -> Codes:
    """Join columns where few rows have another code than the usual one.

    Parameters
    ----------
    n_rows : int
    entries : (first, rows, codes)
        The rows of feature f that may have another code are ``rows[first[f]:first[f + 1]]``, ascending, and
        their codes stand in ``codes`` in the same places.
    usual : ndarray of uint8, shape (n_features,)
        The code of the other rows.
    lone : ndarray of int32, shape (n_features,)
        A feature has a column of its own if some row has this code, that of rows without a value, and if it
        is -1.
    """
    return Codes(*joining.Joiner(n_rows, *entries, usual, lone).join())


def codes_of_all(codes: Any, places: np.ndarray, n_rows: int, communicator: Communicator) -> Any:
    """Return the codes of the rows of all ranks, on each rank.

    Parameters
    ----------
    codes : Codes or ndarray
        Those of this rank.
    places : ndarray of int64, shape (n_rows_of_rank,)
        Where its rows come among those of all ranks.
    n_rows : int
        The number of rows of all ranks.
    communicator : Communicator

    Returns
    -------
    Codes or ndarray
        Features that are joint on all ranks that have rows are joined anew; if there are none, an array.
    """
    is_joint = Codes.of(codes).joint_of >= 0 if len(codes) else np.ones(codes.shape[1], bool)
    is_joint = np.all(communicator.allgather(is_joint), axis=0)
    joint, lone = np.flatnonzero(is_joint), np.flatnonzero(~is_joint)
    here = Codes.of(codes)
    if isinstance(codes, np.ndarray):
        alone = codes.T if len(lone) == codes.shape[1] else codes.T[lone]
    else:
        alone = np.array([here.of_feature(f) for f in lone.tolist()]).reshape(len(lone), len(codes))
    entries = usual = None
    if len(codes):
        entries, usual = here.entries(joint), here.tables[here.joint_of[joint], 0]
    parts = communicator.allgather((places, alone.astype(here.columns.dtype), entries, usual))
    columns = no_codes(n_rows, len(lone), here.columns.dtype)
    for of_rows, of_rank, _, _ in parts:
        columns.T[:, of_rows] = of_rank
    if not len(joint):
        return columns
    parts = [part for part in parts if part[2] is not None]
    features = np.concatenate([np.repeat(np.arange(len(joint)), np.diff(part[2][0])) for part in parts])
    rows = np.concatenate([part[0][part[2][1]] for part in parts])
    order = np.lexsort((rows, features))
    first = np.searchsorted(features[order], np.arange(len(joint) + 1)).astype(np.int64)
    found = np.concatenate([part[2][2] for part in parts])[order]
    never = np.full(len(joint), 256, np.int32)
    together = joined(n_rows, (first, rows[order].astype(np.uint32), found), parts[0][3], never)
    column_of, joint_of = np.empty(len(is_joint), np.int32), np.full(len(is_joint), -1, np.int32)
    column_of[lone], column_of[joint] = np.arange(len(lone)), len(lone) + together.column_of
    joint_of[joint] = together.joint_of
    columns = np.concatenate([columns.T, together.columns.T]).T
    return Codes(columns, column_of, joint_of, together.tables)
