"""Cells of several features in one byte: what histograms are built from.

    code of f0    cell  0 0 1 1 1 2 ...              a cell is one bin, or some neighbouring ones
    code of f1    cell  0 1 2 2 2 2 ...
    byte          cell of f0 + cells of f0 * (cell of f1 + ... )

One addition per byte serves all the features that share it; their own sums are the margins. Features of few
cells share a byte with many others: a binary one costs an eighth of a byte.
"""

import math

import numpy as np

from ranktrees._core import packing
from ranktrees._core.dtypes import DIGIT
from ranktrees._core.threads import LINE, aligned
from ranktrees.communicator import ALONE
from ranktrees.parallel import threads_for

# Places in a line for a feature of a coarse search, one of them for rows without a value: pGBRT found that
# accuracy needs no more than about so many.
COARSE_CELLS = 16

LEAST_ROUNDED = 12  # of them: two such features leave no room in a byte for a third

BYTE = 256
SPARE = 8  # bytes that kernels may read behind the last

# Bytes used for one that is not, so that rows do not lie across lines of the cache. Of long rows no more are
# unused than of two lines: rows that are read in order take as much longer.
LEAST_USED = 8


class Packing:
    """How cells lie in bytes, and the bytes of all rows.

    Parameters
    ----------
    codes : ndarray of uint8, shape (n_rows, n_features), feature by feature
    features : ndarray of int
        Which features to pack.
    cells_of : list of ndarray of int
        The cell of each code of each of them, rising; the last code, of rows without a value, has a cell of
        its own, or -1 where no row lacks a value.
    offsets : ndarray of int64, shape (n_features,)
        Where a feature's cells begin in a line.
    last_cells : ndarray of int64, shape (n_features,)
        Where in a line the cell of rows without a value is.
    n_cells : int
        Of a line.
    n_threads : int, default=1
        To pack with.
    rounded : bool, default=False
        Whether features of nearly 16 cells count as having that many, where no row lacks a value: there is
        room in the line, two of them fill a byte as they are, and margins of a known number of cells are
        found faster.

    Attributes
    ----------
    bytes : ndarray of uint8, shape (n_rows, n_bytes)
        Eight more may be read behind the last.
    digits : ndarray of DIGIT
        Every feature's place, byte by byte.
    first_digit : ndarray of int64, shape (n_bytes + 1,)
    n_bytes : int
        Of a row.
    places : ndarray of int64, shape (n_features,)
        Where a feature's cells begin in a line.
    byte_of : ndarray of int32, shape (n_features,)
        Where in a row's bytes a feature of ``features`` is.
    cell_of : ndarray of uint8, shape (n_features, 256)
        Its cell by the value of that byte; in a `full_packing` the cell is the code.
    room : ndarray of uint8, shape (n_rows * step + 8,)
        Where ``rows`` lie.
    rows : ndarray of uint8, shape (n_rows, step)
        The bytes, and zeros behind those of each row: see `step_of`.
    shape : tuple of int
        Of ``rows``.
    """

    def __init__(self, codes, features, cells_of, offsets, last_cells, n_cells, n_threads=1, rounded=False):
        self.n_cells, self.places = n_cells, offsets
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
        sizes = [len(members) for members in shared]
        self.first_digit = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.n_bytes = len(shared)
        self.shape = len(codes), step_of(self.n_bytes)
        self.room = aligned(math.prod(self.shape) + SPARE)
        packing.pack(codes, self.digits, shares, self.rows, threads_for(n_threads, codes.size))

    @property
    def rows(self):
        """A view: what goes to other processes is all the room, with the spare bytes."""
        return self.room[:-SPARE].reshape(self.shape)

    @property
    def bytes(self):
        return self.rows[:, : self.n_bytes]


class LongCodes:
    """Codes of four bytes, row by row: for a search that reads those of all features of few rows.

    Attributes
    ----------
    bytes, byte_of, cell_of
        As a `Packing` has them; there is nothing to look up.
    """

    def __init__(self, codes):
        n_features = codes.shape[1]
        self.bytes = np.ascontiguousarray(codes).view(np.uint8)
        self.byte_of = codes.itemsize * np.arange(n_features, dtype=np.int32)
        self.cell_of = np.zeros((n_features, BYTE), np.uint8)


def step_of(n_bytes):
    """From one row of bytes to the next, in bytes: those of small leaves come from memory one by one.

    Rows that nearly fill a line of the cache, or a half, a quarter ... of one, or several, get it whole.

    Examples
    --------
    >>> step_of(61), step_of(30), step_of(125), step_of(50), step_of(513)
    (64, 32, 128, 50, 513)
    """
    whole = min(LINE, 1 << max(n_bytes - 1, 0).bit_length())
    step = -(-n_bytes // whole) * whole
    return step if (step - n_bytes) * LEAST_USED <= min(n_bytes, 2 * LINE) else n_bytes


def share_bytes(radices):
    """Which features share a byte: the largest first, each where least room is left that is enough.

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
    shared, with_room = [], [[] for _ in range(BYTE + 1)]  # bytes by how many cells they have room for
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


def counts_of(codes, n_threads=1, communicator=ALONE):
    """int64[n_features, 256]: how many rows of all ranks have each code."""
    counts = np.zeros((codes.shape[1], BYTE), np.int64)
    packing.count_codes(codes, counts, threads_for(n_threads, codes.size))
    return communicator.allreduce(counts)


def full_packing(codes, mapper, features, n_threads=1, communicator=ALONE):
    """Every bin is a cell: lines are laid out by ``mapper.offsets``."""
    counts = counts_of(codes, n_threads, communicator)
    cells_of = []
    for feature in features:
        n_bins = mapper.n_bins[feature]
        cells_of.append(np.append(np.arange(n_bins), n_bins if counts[feature, n_bins] else -1))
    offsets = mapper.offsets[:-1]
    return Packing(
        codes, features, cells_of, offsets, offsets + mapper.n_bins, int(mapper.offsets[-1]), n_threads
    )


def coarse_packing(codes, mapper, features, n_threads=1, communicator=ALONE):
    """At most 15 cells per feature, each of about a fifteenth of the rows, or one heavier bin.

    A line has 16 places for each feature of ``features``, in their order. Rows without a value have the last
    one. The rows are those of all ranks, so that they all have the same cells.
    """
    counts = counts_of(codes, n_threads, communicator)
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


def coarse_cells(counts, n_rows, most):
    """The cell of each bin: neighbours share one while it holds at most a share of the rows.

    The share is ``n_rows / most``, but at most a quarter of the rows in bins lighter than that: what differs
    from a value that most rows have is seen in four cells at least. It is more where there would be more than
    ``most`` cells. A heavier bin is alone.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_bins,)
        Rows per bin.
    n_rows : int
        Of them and of rows without a value.
    most : int

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
