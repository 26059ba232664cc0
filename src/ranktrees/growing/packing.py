"""Pack the cells of several features into one byte: histograms are built from these bytes.

    code of f0    cell  0 0 1 1 1 2 ...              a cell is one bin, or several neighbouring bins
    code of f1    cell  0 1 2 2 2 2 ...
    byte          cell of f0 + cells of f0 * (cell of f1 + ... )

One addition per byte serves all features that share the byte, and their own sums are the margins. Features
with few cells share a byte with many others: a binary feature costs an eighth of a byte. Joint columns (see
`ranktrees.binning.codes`) are bytes as they are, and come last.
"""

from __future__ import annotations

import math
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from ranktrees._core.growing import packing
from ranktrees._core.support.dtypes import DIGIT, MEMBER
from ranktrees._core.support.threads import LINE, aligned
from ranktrees.binning.codes import Codes
from ranktrees.processes.communicator import ALONE
from ranktrees.support.parallel import threads_for

if TYPE_CHECKING:
    from ranktrees.binning.mapper import BinMapper
    from ranktrees.processes.communicator import Communicator

# Places in a line for each feature of a coarse search, one of them for rows without a value: pGBRT found that
# about this many are enough for accuracy.
COARSE_CELLS = 16

LEAST_ROUNDED = 12  # cells: two such features leave no room in a byte for a third

BYTE = 256
SPARE = 8  # bytes behind the last row that kernels may read

# Rows are padded, so that they do not lie across cache lines, if at least this many bytes are used for each
# that is not. In long rows, no more bytes are unused than that allows in two cache lines: reading rows in
# order takes the longer the more are unused.
LEAST_USED = 8


class JointBytes(NamedTuple):
    """What the last bytes of a packing stand for: each is a column that features share.

    Attributes
    ----------
    columns : ndarray of int32, shape (n_joint_bytes,)
    first_member : ndarray of int64, shape (n_joint_bytes + 1,)
        Where the members of each of these bytes begin.
    members : ndarray of MEMBER
        The features, byte by byte.
    cell_of : ndarray of uint8, shape (n_members, 256)
        The cell of each of them, counted from its first one, by the value of the byte.
    values : ndarray of uint8, shape (n_pairs,)
        The values for which it is not the usual cell, that of value 0; by member and cell.
    cells : ndarray of int32, shape (n_pairs,)
        These cells, counted from the beginning of a line.
    """

    columns: np.ndarray
    first_member: np.ndarray
    members: np.ndarray
    cell_of: np.ndarray
    values: np.ndarray
    cells: np.ndarray

    @classmethod
    def of(
        cls,
        codes: Codes,
        features: np.ndarray,
        cells_of: list[np.ndarray],
        places: np.ndarray,
        last_cells: np.ndarray,
    ) -> Self:
        """Lay out features that share columns; ``places`` are their first cells in a line."""
        order = np.lexsort((features, codes.column_of[features]))
        features = features[order]
        columns, first_member = np.unique(codes.column_of[features], return_index=True)
        cell_of_code = np.zeros((len(features), BYTE), np.uint8)
        for of_feature, k in zip(cell_of_code, order, strict=True):
            of_feature[: len(cells_of[k]) - 1] = cells_of[k][:-1]
        cell_of = np.take_along_axis(cell_of_code, codes.tables[codes.joint_of[features]], axis=1)
        of_pairs, values = np.nonzero(cell_of != cell_of[:, :1])
        by_cell = np.lexsort((cell_of[of_pairs, values], of_pairs))
        of_pairs, values = of_pairs[by_cell], values[by_cell]
        members = np.zeros(len(features), MEMBER)
        ends = np.searchsorted(of_pairs, np.arange(len(features) + 1))
        members["first_pair"], members["stop_pair"] = ends[:-1], ends[1:]
        members["feature"], members["first"] = features, places[features]
        members["last"] = last_cells[features]
        members["n_cells"], members["usual"] = cell_of_code.max(axis=1, initial=0) + 1, cell_of[:, 0]
        cells = members["first"][of_pairs] + cell_of[of_pairs, values].astype(np.int32)
        ends = np.append(first_member, len(features)).astype(np.int64)
        return cls(columns, ends, members, cell_of, values.astype(np.uint8), cells)

    def byte_of_members(self) -> np.ndarray:
        """Return the byte of each member, counted from the first joint one."""
        return np.repeat(np.arange(len(self.columns)), np.diff(self.first_member))


class Packing:
    """The layout of cells in bytes, and the bytes of all rows.

    Parameters
    ----------
    codes : Codes, or ndarray of uint8, shape (n_rows, n_features), feature by feature
    features : ndarray of int
        The features to pack.
    cells_of : list of ndarray of int
        For each of these features, the cell of each code, in ascending order. The last code, of rows without
        a value, has a cell of its own, or -1 if no row lacks a value.
    offsets : ndarray of int64, shape (n_features,)
        Where the cells of a feature begin in a line.
    last_cells : ndarray of int64, shape (n_features,)
        Where in a line the cell of rows without a value is.
    n_cells : int
        The number of cells in a line.
    n_threads : int, default=1
        The number of threads to pack with.
    rounded : bool, default=False
        Whether features with nearly 16 cells count as having 16, if no row lacks a value. The line has room
        for that, two such features fill a byte in any case, and margins of a known number of cells are found
        faster.

    Attributes
    ----------
    bytes : ndarray of uint8, shape (n_rows, n_bytes)
        The bytes of all rows. Eight more bytes behind the last may be read.
    digits : ndarray of DIGIT
        The place of each feature that has a column of its own, byte by byte.
    first_digit : ndarray of int64, shape (n_bytes + 1,)
        Where the digits of each byte begin.
    n_bytes : int
        The number of bytes of a row.
    joint : JointBytes
    places : ndarray of int64, shape (n_features,)
        Where the cells of a feature begin in a line.
    byte_of : ndarray of int32, shape (n_features,)
        The byte of a row that holds a feature of ``features``.
    cell_of : ndarray of uint8, shape (n_features, 256)
        The cell of a feature for each value of that byte. In a `full_packing` the cell is the code.
    room : ndarray of uint8, shape (n_rows * step + 8,)
        The memory that holds ``rows``.
    rows : ndarray of uint8, shape (n_rows, step)
        The bytes, with zeros behind those of each row; see `step_of`.
    shape : tuple of int
        The shape of ``rows``.
    """

    def __init__(
        self,
        codes: Any,
        features: np.ndarray,
        cells_of: list[np.ndarray],
        offsets: np.ndarray,
        last_cells: np.ndarray,
        n_cells: int,
        n_threads: int = 1,
        rounded: bool = False,
    ) -> None:
        codes = Codes.of(codes)
        self.n_cells, self.places = n_cells, offsets
        is_joint = codes.joint_of[features] >= 0
        of_joint, cells_of = (list(compress(cells_of, some)) for some in (is_joint, ~is_joint))
        joint = JointBytes.of(codes, features[is_joint], of_joint, offsets, last_cells)
        features = features[~is_joint]
        radices = np.array([cells.max() + 1 for cells in cells_of], np.int64)
        if rounded:
            all_have_values = np.array([cells[-1] < 0 for cells in cells_of], bool)
            radices[all_have_values & (radices >= LEAST_ROUNDED)] = COARSE_CELLS
        shared = share_bytes(radices)
        self.digits = np.zeros(len(features), DIGIT)
        shares = np.zeros((len(features), BYTE), np.uint8)
        self.byte_of = np.zeros(codes.shape[1], np.int32)
        self.cell_of = np.zeros((codes.shape[1], BYTE), np.uint8)
        d = 0
        for byte, members in enumerate(shared):
            stride = 1
            for k in members:
                feature, cells, radix = features[k], cells_of[k], radices[k]
                has_missing = cells[-1] >= 0
                last = last_cells[feature] if has_missing else offsets[feature] + radix - 1
                self.digits[d] = (byte, stride, radix, feature, offsets[feature], last)
                shares[d, : len(cells)] = np.maximum(cells, 0) * stride
                self.byte_of[feature] = byte
                self.cell_of[feature] = np.arange(BYTE) // stride % radix
                stride *= radix
                d += 1
        sizes = [len(members) for members in shared] + [0] * len(joint.columns)
        self.first_digit = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.n_bytes = len(sizes)
        self.joint = joint
        self.byte_of[joint.members["feature"]] = len(shared) + joint.byte_of_members()
        self.cell_of[joint.members["feature"]] = joint.cell_of
        self.shape = len(codes), step_of(self.n_bytes)
        self.room = aligned(math.prod(self.shape) + SPARE)
        columns, as_it_is = np.zeros(len(joint.columns), DIGIT), np.arange(BYTE, dtype=np.uint8)
        columns["byte"], columns["stride"] = np.arange(len(shared), self.n_bytes), 1
        read = np.concatenate([self.digits, columns])  # for once, with columns in place of features
        read["feature"] = np.concatenate([codes.column_of[self.digits["feature"]], joint.columns])
        shares = np.concatenate([shares, np.tile(as_it_is, (len(columns), 1))])
        packing.pack(codes.columns, read, shares, self.rows, threads_for(n_threads, codes.columns.size))

    @property
    def rows(self) -> np.ndarray:
        """A view of ``room``. Other processes get all of ``room``, with the spare bytes."""
        return self.room[:-SPARE].reshape(self.shape)

    @property
    def bytes(self) -> np.ndarray:
        return self.rows[:, : self.n_bytes]


class LongCodes:
    """Codes of four bytes, row by row, for a search that reads the codes of all features of a few rows.

    Attributes
    ----------
    bytes, byte_of, cell_of
        As in a `Packing`. ``cell_of`` is not used, as the codes themselves are stored.
    """

    def __init__(self, codes: np.ndarray) -> None:
        n_features = codes.shape[1]
        self.bytes = np.ascontiguousarray(codes).view(np.uint8)
        self.byte_of = codes.itemsize * np.arange(n_features, dtype=np.int32)
        self.cell_of = np.zeros((n_features, BYTE), np.uint8)


def step_of(n_bytes: int) -> int:
    """Return the step from one row to the next, in bytes.

    The rows of small leaves are read from memory one by one. Therefore rows that nearly fill a cache line, or
    a half, a quarter, ... of one, or several lines, are padded to fill these.

    Examples
    --------
    >>> step_of(61), step_of(30), step_of(125), step_of(50), step_of(513)
    (64, 32, 128, 50, 513)
    """
    whole = min(LINE, 1 << max(n_bytes - 1, 0).bit_length())
    step = -(-n_bytes // whole) * whole
    return step if (step - n_bytes) * LEAST_USED <= min(n_bytes, 2 * LINE) else n_bytes


def share_bytes(radices: np.ndarray) -> list[list[Any]]:
    """Choose which features share a byte: the largest first, each in the byte with the least sufficient room.

    Parameters
    ----------
    radices : ndarray of int
        The number of cells of each feature, at most 256.

    Returns
    -------
    list of lists of int
        The product of the radices in each is at most 256.

    Examples
    --------
    >>> import numpy as np
    >>> share_bytes(np.array([2, 16, 200, 16, 2, 2]))
    [[2], [1, 3], [0, 4, 5]]
    """
    shared: list[Any] = []
    with_room: list[list[Any]] = [
        [] for _ in range(BYTE + 1)
    ]  # the bytes that have room for each number of cells
    for k in np.argsort(-radices, kind="stable").tolist():
        radix = int(radices[k])
        room = next((room for room in range(radix, BYTE + 1) if with_room[room]), None)
        if room is None:
            byte, room = len(shared), BYTE
            shared.append([])
        else:
            byte = with_room[room].pop(0)
        shared[byte].append(k)
        with_room[room // radix].append(byte)
    return shared


def counts_of(codes: Any, n_threads: int = 1, communicator: Communicator = ALONE) -> np.ndarray:
    """Count the rows of all ranks that have each code: int64[n_features, 256]."""
    codes = Codes.of(codes)
    counts = np.zeros((codes.columns.shape[1], BYTE), np.int64)
    packing.count_codes(codes.columns, counts, threads_for(n_threads, codes.columns.size))
    return communicator.allreduce(codes.counted(counts))


def full_packing(
    codes: Any,
    mapper: BinMapper,
    features: np.ndarray,
    n_threads: int = 1,
    counts: np.ndarray | None = None,
) -> Packing:
    """Pack every bin as a cell. Lines are laid out by ``mapper.offsets``.

    ``counts`` are the `counts_of` the codes of all ranks. If None, there are no other ranks.
    """
    counts = counts_of(codes, n_threads) if counts is None else counts
    cells_of = []
    for feature in features:
        n_bins = mapper.n_bins[feature]
        cells_of.append(np.append(np.arange(n_bins), n_bins if counts[feature, n_bins] else -1))
    offsets = mapper.offsets[:-1]
    return Packing(
        codes, features, cells_of, offsets, offsets + mapper.n_bins, int(mapper.offsets[-1]), n_threads
    )


def coarse_packing(
    codes: Any,
    mapper: BinMapper,
    features: np.ndarray,
    n_threads: int = 1,
    counts: np.ndarray | None = None,
) -> Packing:
    """Pack at most 15 cells per feature, each with about a fifteenth of the rows, or one heavier bin.

    A line has 16 places for each feature of ``features``, in their order. Rows without a value have the last
    place. ``counts`` are as for a `full_packing`: all ranks have the same cells.
    """
    counts = counts_of(codes, n_threads) if counts is None else counts
    cells_of = []
    for feature in features:
        n_bins = mapper.n_bins[feature]
        lacking = counts[feature, n_bins] > 0
        n_rows = counts[feature].sum()
        cells = np.append(coarse_cells(counts[feature, :n_bins], n_rows, COARSE_CELLS - 1), -1)
        cells[-1] = cells[-2] + 1 if lacking else -1
        cells_of.append(cells)
    offsets = np.zeros(codes.shape[1], np.int64)
    offsets[features] = COARSE_CELLS * np.arange(len(features))
    last_cells = offsets + COARSE_CELLS - 1
    n_cells = COARSE_CELLS * len(features)
    return Packing(codes, features, cells_of, offsets, last_cells, n_cells, n_threads, rounded=True)


def coarse_cells(counts: np.ndarray, n_rows: int, most: int) -> np.ndarray:
    """Assign a cell to each bin: neighbours share one as long as it holds at most a share of the rows.

    The share is ``n_rows / most``, but at most a quarter of the rows in bins lighter than that. So if most
    rows have the same value, the other values are in at least four cells. The share is larger if there would
    be more than ``most`` cells otherwise. A heavier bin has a cell of its own.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_bins,)
        The number of rows in each bin.
    n_rows : int
        The number of these rows and of those without a value.
    most : int
        The largest number of cells.

    Returns
    -------
    cells : ndarray of int, shape (n_bins,)

    Examples
    --------
    >>> import numpy as np
    >>> coarse_cells(np.array([70, 2, 2, 2, 8, 2, 3, 1]), 90, 5)
    array([0, 1, 1, 1, 2, 3, 3, 3])
    """
    cells = np.empty(len(counts), np.int64)
    packing.join_bins(np.ascontiguousarray(counts, np.int64), n_rows, most, cells)
    return cells
