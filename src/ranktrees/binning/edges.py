"""Find where bins end: at quantiles of a feature's values, or at each value; for categories, list them all.

If rows are dealt to ranks, each column is put together again on one rank, from the parts that all ranks have:

    rank 0   columns 0 1 2 3 ..   distinct values, masses --.--> 0 cuts columns 0 2 .. --.--> all cuts
                                                            X                            X
    rank 1   columns 0 1 2 3 ..   distinct values, masses --'--> 1 cuts columns 1 3 .. --'--> all cuts
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from ranktrees._core.binning import binning as _kernels
from ranktrees.support.spool import Spool

if TYPE_CHECKING:
    from ranktrees.processes.communicator import Communicator

__all__ = ["MOST_BINS", "MOST_LEVELS", "entries_of_columns", "find_edges", "row_limits"]

MOST_BINS = 255
MOST_LEVELS = 65_535
_NO_LIMIT = 1 << 30
_WEIGHT_BITS = 30
_EXACT_BITS = 53

# The number of values per call of a kernel, since Ctrl-C takes effect only between two calls.
_VALUES_TO_CUT = 1 << 22
_FEWEST_COLUMNS = 8
_BYTES_TOGETHER = 96  # of each row of a dense X, nearly always in two cache lines; at most a fifth of the row
_MOST_COLUMNS = 4096


def find_edges(
    X: Any,
    categorical: np.ndarray,
    max_bins: int | None,
    n_threads: int,
    communicator: Communicator,
    order: np.ndarray | None,
    weights: np.ndarray | None,
    wanted: np.ndarray,
) -> dict[int, Any]:
    """Return the number of edges, and the edges, of each wanted feature, by the rows of all ranks."""
    rows: _SparseRows | _DenseRows = (_SparseRows if sparse.issparse(X) else _DenseRows)(X, order)
    blocks, weights = _agree(rows, weights, wanted, n_threads, communicator)
    found: dict[int, Any] = {}
    for (first, last), columns in zip(blocks, rows.columns(blocks, weights, n_threads), strict=True):
        columns.sizes[~wanted[first:last]] = 0
        mine = first + _dealt_to(communicator.rank, communicator.size, first, last)
        columns = _deal(columns, first, n_threads, communicator)
        found |= zip(mine.tolist(), columns.find_edges(categorical[mine], max_bins, n_threads), strict=True)
    gathered = communicator.allgather({f: edges for f, edges in found.items() if wanted[f]})
    return {f: edges for part in gathered for f, edges in part.items()}


class _GatheredColumns:
    """Columns that were gathered: the values of column j are values[starts[j] : starts[j] + sizes[j]].

    Values that are missing or zero are left out. The same value may occur several times, each time with a
    weight.
    """

    def __init__(self, dtype: Any, most_values: np.ndarray, weighted: bool, n_threads: int) -> None:
        n_values, longest = int(most_values.sum()) + 1, int(most_values.max(initial=0)) + 1
        self.values = np.empty(n_values, dtype=dtype)
        self.weights: Any = np.empty(n_values, dtype=np.uint32) if weighted else None
        self.spare = np.empty((n_threads, longest), dtype=dtype)
        self.spare_weights = np.empty((n_threads, longest), dtype=np.uint32) if weighted else None
        n_pieces = longest + _kernels.MOST_PIECES
        self.pieces = np.empty((n_threads, _kernels.piece_words(self.values.itemsize) * n_pieces), np.uint64)
        self.doubtful = np.empty((n_threads, n_pieces), dtype=np.uint8)
        self.places = np.cumsum(most_values) - most_values
        self.begin(len(most_values))

    def begin(self, n_columns: int) -> None:
        """Begin with this many columns, of which nothing is known yet."""
        self.starts = self.places[:n_columns]
        self.sizes, self.zero_mass = np.zeros((2, n_columns), dtype=np.int64)

    def find_edges(
        self, is_categorical: np.ndarray, max_bins: int | None, n_threads: int
    ) -> list[tuple[Any, ...]]:
        """Return how many cuts (or categories) each column has, and the first of them. The values are lost.

        All cuts are returned, but at most 65,535 categories.
        """
        found: list[Any] = [None] * len(self.sizes)
        for kind in np.unique(is_categorical):
            of_kind = np.flatnonzero(is_categorical == kind)
            longest = int(self.sizes[of_kind].max()) + 1  # zero may be one more
            room = MOST_BINS
            if kind or max_bins is None:
                room = longest if max_bins is None else min(longest, MOST_LEVELS)
            edges, n_edges = np.empty((len(of_kind), room)), np.empty(len(of_kind), dtype=np.int64)
            _kernels.find_edges(
                self.values,
                self,
                of_kind,
                bool(kind),
                _NO_LIMIT if max_bins is None else max_bins,
                edges,
                n_edges,
                n_threads,
            )
            for j, n, of_column in zip(of_kind.tolist(), n_edges.tolist(), edges, strict=True):
                found[j] = n, of_column[:n].copy()
        return found

    def distinct(self, n_threads: int) -> np.ndarray:
        """Make each value of a column occur once, and return the masses of the values in the same places.

        A mass of more than 32 bits is spread over several entries.
        """
        masses = np.empty(len(self.values), dtype=np.uint32) if self.weights is None else self.weights
        _kernels.join_equal(self.values, self, masses, n_threads)
        return masses

    @classmethod
    def joined(cls, parts: Sequence[Any], n_threads: int) -> Self:
        """Join the parts that all ranks have of the same columns."""
        sizes = np.array([sizes for sizes, _, _, _ in parts])
        dtype = np.result_type(*(values for _, _, values, _ in parts))
        columns = cls(dtype, sizes.sum(axis=0), True, n_threads)
        columns.zero_mass[:] = sum(zero_mass for _, zero_mass, _, _ in parts)
        for part_sizes, _, values, masses in parts:
            begins = np.cumsum(part_sizes) - part_sizes
            for j, (begin, size) in enumerate(zip(begins.tolist(), part_sizes.tolist(), strict=True)):
                at = columns.starts[j] + columns.sizes[j]
                columns.values[at : at + size] = values[begin : begin + size]
                columns.weights[at : at + size] = masses[begin : begin + size]
            columns.sizes += part_sizes
        return columns


def _agree(
    rows: _DenseRows | _SparseRows,
    weights: np.ndarray | None,
    wanted: np.ndarray,
    n_threads: int,
    communicator: Communicator,
) -> tuple[list[tuple[int, int]], np.ndarray | None]:
    """Let ranks agree on the columns to take at a time, and on the scale of weights: (blocks, weights)."""
    least_room = rows.n * max(rows.fewest_columns(weights is not None), n_threads)
    largest_weight = None if weights is None else float(weights.max(initial=0.0))
    gathered = communicator.allgather((len(wanted), rows.n, least_room, largest_weight))
    widths, sizes, rooms, largest_weights = zip(*gathered, strict=True)
    for rank, width in enumerate(widths):
        if width != widths[0]:
            raise ValueError(
                f"X has {widths[0]} features on rank 0, but {width} on rank {rank}; expected the same "
                "features on all ranks."
            )
    most_values = communicator.allreduce(rows.most_values(), "max")
    blocks = _blocks(most_values, max(_VALUES_TO_CUT, *rooms), wanted)
    if all(largest is None for largest in largest_weights):
        return blocks, None
    weights = np.ones(rows.n) if weights is None else weights
    largest_weight = max(1.0 if largest is None else largest for largest in largest_weights)
    return blocks, _integer_weights(weights, largest_weight, sum(sizes))


def _blocks(most_values: np.ndarray, room: int, wanted: np.ndarray) -> list[tuple[Any, ...]]:
    """Return (first, last) of blocks of columns that together hold all wanted ones, as large as possible.

    Columns between two wanted ones are gathered as well if they are few.
    """
    ends = np.cumsum(most_values)
    columns = np.flatnonzero(wanted)
    blocks = []
    while len(columns):
        first = columns[0]
        last = int(np.searchsorted(ends, ends[first] - most_values[first] + room, side="right"))
        last = min(max(last, first + 1), first + _MOST_COLUMNS)
        if len(wanted) > last > first + _FEWEST_COLUMNS:
            last -= (last - first) % _FEWEST_COLUMNS
        inside = int(np.searchsorted(columns, last))
        gaps = np.flatnonzero(np.diff(columns[:inside]) > _FEWEST_COLUMNS)
        inside = int(gaps[0]) + 1 if len(gaps) else inside
        blocks.append((int(first), int(columns[inside - 1]) + 1))
        columns = columns[inside:]
    return blocks


def _dealt_to(rank: int, size: int, first: int, last: int) -> np.ndarray:
    """Return which columns, counted from the first, a rank cuts: column f belongs to rank f % size."""
    return np.arange((rank - first) % size, last - first, size)


def _deal(
    columns: _GatheredColumns, first: int, n_threads: int, communicator: Communicator
) -> _GatheredColumns:
    """Return those of some columns, from ``first`` on, that this rank cuts, with the values of all ranks."""
    if communicator.alone:
        return columns
    masses = columns.distinct(n_threads)
    limits = zip(columns.starts.tolist(), columns.sizes.tolist(), strict=True)
    stretches = [slice(start, start + size) for start, size in limits]
    messages = []
    for rank in range(communicator.size):
        dealt = _dealt_to(rank, communicator.size, first, first + len(stretches))
        values, weights = (
            np.concatenate([array[:0], *(array[stretches[j]] for j in dealt)])
            for array in (columns.values, masses)
        )
        messages.append((columns.sizes[dealt], columns.zero_mass[dealt], values, weights))
    return _GatheredColumns.joined(communicator.alltoall(messages), n_threads)


class _DenseRows:
    """Gathers the columns of a dense X, or of one on disk, in arrays that are used again."""

    def __init__(self, X: Any, order: np.ndarray | None) -> None:
        self.X = X
        self.n = X.shape[0] if order is None else len(order)
        self.on_disk = isinstance(X, Spool)
        self.places = list(X.places(order)) if self.on_disk else [(slice(None), order)]

    def fewest_columns(self, weighted: bool) -> int:
        """Return the minimum number of columns to take at a time."""
        if self.on_disk:
            return 1
        most = min(_BYTES_TOGETHER // (self.X.dtype.itemsize + 4 * weighted), self.X.shape[1] // 5)
        return max(_FEWEST_COLUMNS, most - most % _FEWEST_COLUMNS)

    def most_values(self) -> np.ndarray:
        """Return the maximum number of values in each column."""
        return np.full(self.X.shape[1], self.n, dtype=np.int64)

    def columns(self, blocks: Any, weights: np.ndarray | None, n_threads: int) -> Iterator[_GatheredColumns]:
        """Yield the columns of each block."""
        width = max((last - first for first, last in blocks), default=0)
        columns = _GatheredColumns(self.X.dtype, np.full(width, self.n), weights is not None, n_threads)
        for first, last in blocks:
            columns.begin(last - first)
            parts = self.X.parts(first, last) if self.on_disk else [self.X[:, first:last]]
            for part, (places, positions) in zip(parts, self.places, strict=True):
                sizes, zero_mass = np.empty((2, n_threads, last - first), dtype=np.int64)
                _kernels.gather_dense(
                    part.astype(self.X.dtype, copy=False),
                    positions,
                    None if weights is None else weights[places],
                    columns.starts + columns.sizes,
                    columns.values,
                    columns.weights,
                    sizes,
                    zero_mass,
                )
                columns.sizes += sizes.sum(axis=0)
                columns.zero_mass += zero_mass.sum(axis=0)
            yield columns


class _SparseRows:
    """Gathers the columns of a sparse X, reading each row on from where the previous columns ended."""

    def __init__(self, X: Any, order: np.ndarray | None) -> None:
        self.X = X
        self.cursors, self.ends = row_limits(X, order)
        self.n = len(self.ends)
        self.counts = entries_of_columns(X, order)

    def fewest_columns(self, weighted: bool) -> int:
        """Return the minimum number of columns to take at a time."""
        return _FEWEST_COLUMNS

    def most_values(self) -> np.ndarray:
        """Return the maximum number of values in each column."""
        return self.counts.copy()

    def columns(self, blocks: Any, weights: np.ndarray | None, n_threads: int) -> Iterator[_GatheredColumns]:
        """Yield the columns of each block."""
        mass = self.n if weights is None else weights.sum(dtype=np.int64)
        for first, last in blocks:
            columns = _GatheredColumns(self.X.dtype, self.counts[first:last], weights is not None, n_threads)
            columns.zero_mass[:] = mass
            _kernels.gather_sparse(
                self.X.data,
                self.X.indices,
                self.cursors,
                self.ends,
                weights,
                first,
                columns,
            )
            yield columns


def entries_of_columns(X: Any, order: np.ndarray | None) -> np.ndarray:
    """Count the entries of each column of a CSR matrix, in all or in some of its rows: int64[n_columns]."""
    begins, ends = row_limits(X, order)
    counts = np.zeros(X.shape[1], dtype=np.int64)
    if not _kernels.count_sparse(X.indices, begins, ends, counts):
        raise ValueError(f"X has column indices outside 0 to {X.shape[1] - 1}; rebuild the sparse matrix.")
    return counts


def row_limits(X: Any, order: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return where each row of a CSR matrix begins and ends, in writable arrays."""
    if not X.has_canonical_format:
        raise ValueError("X is sparse but not canonical; call X.sum_duplicates() first.")
    rows = slice(None) if order is None else order
    return X.indptr[:-1][rows].astype(np.int64), X.indptr[1:][rows].astype(np.int64)


def _integer_weights(weights: np.ndarray, largest: float, n_rows: int) -> np.ndarray:
    """Return weights as uint32, on one power-of-two scale so that sums are exact; above 0 stays above 0."""
    _, exponent = np.frexp(largest)
    bits = min(_WEIGHT_BITS, _EXACT_BITS - n_rows.bit_length())
    scaled = np.rint(np.ldexp(weights, bits - exponent))
    return np.where(weights > 0, np.maximum(scaled, 1), 0).astype(np.uint32)
