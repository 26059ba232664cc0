"""Grow a tree over ranks, each of which has some of the rows: what the ranks exchange.

FullOverRanks           each rank gets the sums over all rows for its part of the features, and tells the
                        others the best splits that it finds
CoarseOverRanks         all ranks get the sums of all cells, and then of all bins of the few best features
StreamingOverRanks      each rank makes histograms of its own rows, and one rank merges them in the order of
                        the ranks
ParterOverRanks         how many rows go left, and whether all rows of a side want the same value

Everything that is derived from sums over all rows is the same on all ranks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees._core.growing import parting
from ranktrees._core.growing.growth_over_ranks import GrowthOverRanks, refine
from ranktrees._core.growing.words import Words, bins_in_use
from ranktrees._core.support.dtypes import BIN, OFFER
from ranktrees.growing.packing import BYTE
from ranktrees.growing.searching import (
    LINES_BYTES,
    CoarseToFine,
    FullSearch,
    SearchOfLines,
    StreamingSearch,
)
from ranktrees.support import parallel
from ranktrees.support.parallel import threads_for

if TYPE_CHECKING:
    from ranktrees.binning.mapper import BinMapper
    from ranktrees.growing.constraints import Constraints
    from ranktrees.growing.packing import Packing
    from ranktrees.growing.rounding import RoundedRows
    from ranktrees.processes.communicator import Communicator

# How many streaming histograms are built before they are exchanged: with 255 centroids each, 133 MB.
MERGED_TOGETHER = 1 << 14
TASKS_OF_A_THREAD = 64  # histograms between two messages


def search_over_ranks(kind: Any, communicator: Communicator) -> Any:
    """Return the counterpart over ranks of a kind of search. It takes the same arguments."""
    kinds = {FullSearch: FullOverRanks, CoarseToFine: CoarseOverRanks, StreamingSearch: StreamingOverRanks}
    return partial(kinds[kind], communicator) if kind in kinds else kind


class StreamingOverRanks(StreamingSearch):
    """Search every leaf by streaming histograms that are merged in the order of ranks."""

    def __init__(self, communicator: Communicator, *args: Any) -> None:
        self.communicator = communicator
        super().__init__(*args)

    def find_directly(self, ids: np.ndarray) -> None:
        for some, features in self.constraints.candidates(self.leaves, ids, self.key):
            for batch in in_batches(some, features, MERGED_TOGETHER):
                self.find_together(*batch)

    def find_together(self, ids: np.ndarray, features: np.ndarray) -> None:
        """Search leaves by the histograms of all ranks, each of which handles some leaves and features."""
        n_threads = threads_for(self.n_threads, self.n_rows(ids) * features.shape[1])
        offers = self.offers(ids, features, n_threads)
        while len(ids):
            gains = np.where(offers["feature"] >= 0, offers["gain"], -np.inf)
            best = np.arange(len(ids)), gains.argmax(axis=1)
            chosen = offers[best]
            sides = self.communicator.allreduce(self.finder.sides(ids, chosen, n_threads))
            offers["feature"][best] = -1
            again = ~self.finder.judge(ids, chosen, sides)
            ids, offers = ids[again], offers[again]

    def offers(self, ids: np.ndarray, features: np.ndarray, n_threads: int) -> np.ndarray:
        """Find the best cut of each feature, as OFFER records of shape (n_ids, n_candidates).

        rank 0   histograms of f0  f1  f2  f3   --.--> merges those of f0 and f1   --.--> all offers
                               '---'---'---'      X                                  X
        rank 1   histograms of f0  f1  f2  f3   --'--> merges those of f2 and f3   --'--> all offers

        Those of a feature are sent while those of the next are made.
        """
        ranks, n = self.communicator, features.shape[1]
        step = -(-TASKS_OF_A_THREAD * n_threads // len(ids))  # features at a time
        parts = [np.ascontiguousarray(features[:, first : first + step]) for first in range(0, n, step)]
        roots = ranks.size * np.arange(len(parts)) // len(parts)

        def made() -> Iterator[tuple[Any, int]]:
            for part, root in zip(parts, roots.tolist(), strict=True):
                centroids, sizes, lacking = self.finder.histograms(ids, part, n_threads)
                yield (centroids[np.arange(self.max_bins) < sizes[:, None]], sizes, lacking), root

        offers = [np.empty((len(ids), 0), OFFER)]
        own_parts = [part for part, root in zip(parts, roots, strict=True) if root == ranks.rank]
        for part, of_ranks in zip(own_parts, ranks.gather_in_turn(made()), strict=True):
            centroids, sizes, lacking = zip(*of_ranks, strict=True)
            limits, lacking = limits_of(np.array(sizes)), np.sum(lacking, axis=0)
            rows = ids, part, 0, np.concatenate(centroids), limits, lacking
            offers.append(self.finder.offers_of(*rows, n_threads).reshape(len(ids), -1))
        return np.concatenate(ranks.allgather(np.concatenate(offers, axis=1)), axis=1)


def in_batches(ids: np.ndarray, features: np.ndarray, most: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield leaves and their features, as `Constraints.candidates`, at most ``most`` features at a time."""
    step = max(1, most // features.shape[1])
    for first in range(0, len(ids), step):
        batch = slice(first, first + step)
        yield ids[batch], features[batch] if len(features) > 1 else features


def limits_of(sizes: np.ndarray) -> np.ndarray:
    """Return where consecutive stretches of these sizes begin, row by row, and where each row ends."""
    ends = np.cumsum(sizes).reshape(sizes.shape)
    return np.column_stack([ends[:, :1] - sizes[:, :1], ends])


class LinesOverRanks(SearchOfLines):
    """Base of the searches that keep lines. Each rank builds lines from its rows, which are then summed."""

    few_rows = 0  # a leaf with few rows here may have many on other ranks

    def __init__(self, communicator: Communicator, *args: Any) -> None:
        self.communicator = communicator
        self.words = Words(communicator)
        super().__init__(*args)

    def begin(self, rows: RoundedRows, *rest: Any) -> None:
        super().begin(rows, *rest)
        self.words.begin(rows.bits)

    def take_over(self, parents: np.ndarray, children: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        built = self.builder.hand_over(parents, children, *self.ways_to_build())
        if len(built):
            self.put_together(built)
            self.builder.subtract(len(built))
        return self.builder.sorted_out(children)

    def find_in_all_rows(self, ids: np.ndarray, features: np.ndarray) -> None:
        """Search leaves by bins that all ranks fill with all their rows, some leaves at a time."""
        for some, batch in in_batches(ids, features, LINES_BYTES // (BYTE * BIN.itemsize)):
            n_threads = threads_for(self.n_threads, self.n_rows(some) * batch.shape[1])
            cells = self.finder.fill(some, batch, n_threads)
            bins = cells.view(np.int64).reshape(-1, 2 * cells.shape[2])
            self.words.add_up(bins, bins_in_use(batch, len(some)), 2)
            self.finder.scan_filled(some, batch, cells)


class CoarseOverRanks(LinesOverRanks, CoarseToFine):
    """Choose features by cells, and the split by bins, both summed over all ranks."""

    def put_together(self, ids: np.ndarray) -> None:
        self.words.add_up(self.lines, self.builder.lines_of(ids), 1)

    def counts_of(self, ids: np.ndarray) -> np.ndarray:
        counts = super().counts_of(ids)
        self.words.add_up(counts, numbered(ids), 1)
        return counts

    def refine(self, ids: np.ndarray) -> None:
        refine(self.finder, self.words, ids, self.n_threads, parallel.VALUES_PER_THREAD)

    def make_growth(self, *args: Any) -> Any:
        return GrowthOverRanks(self.communicator, self.words, self.look_further, self.search_again, *args)


class FullOverRanks(LinesOverRanks, FullSearch):
    """Search every bin of the features that are the part of this rank.

    Features are dealt to ranks so that each rank has about the same number of cells.
    """

    in_one_call = False

    def __init__(
        self,
        communicator: Communicator,
        codes: Any,
        mapper: BinMapper,
        packing: Packing | None,
        constraints: Constraints,
        *rest: Any,
    ) -> None:
        super().__init__(communicator, codes, mapper, packing, constraints, *rest)
        shares = np.linspace(0, mapper.offsets[-1], communicator.size + 1)
        first_features = np.searchsorted(mapper.offsets, shares)
        self.first_cells = mapper.offsets[first_features]
        self.own_features = slice(*first_features[communicator.rank :][:2].tolist())
        self.own_cells = slice(*self.first_cells[communicator.rank :][:2].tolist())

    def put_together(self, ids: np.ndarray) -> None:
        self.add_up_own(self.lines, self.builder.lines_of(ids), self.lanes)

    def add_up_own(self, lines: np.ndarray, places: np.ndarray, lanes: int) -> None:
        """Replace some lines by their sums over all ranks, in the part of this rank."""
        sums, n_words = self.words.pack(lines, places, lanes, self.first_cells)
        sums = self.communicator.reduce_scatter(sums, n_words, met=True)
        self.words.unpack(sums, self.own_cells.start, self.own_cells.stop)

    def find(self, ids: np.ndarray) -> None:
        n_threads = threads_for(self.n_threads, 4 * len(ids) * self.lines.shape[1])
        for some, features in self.candidates(ids):
            self.choose_among(some, self.finder.find_some(some, self.of_this_rank(features), None, n_threads))
            if self.counts_at_once:
                self.verify(some, features)

    def of_this_rank(self, features: np.ndarray) -> np.ndarray:
        """Replace the features that are not in the part of this rank by -1."""
        part = self.own_features
        return np.where((part.start <= features) & (features < part.stop), features, -1)

    def choose_among(self, ids: np.ndarray, found: np.ndarray) -> None:
        """Choose the best split of each leaf among those that the ranks have found, by ascending feature."""
        rows = [
            np.frombuffer(theirs, np.uint8).reshape(len(ids), -1)
            for theirs in self.communicator.allgather(found.tobytes())
        ]
        self.finder.choose_among(ids, np.concatenate(rows, axis=1).view(found.dtype))

    def n_left_of(self, ids: np.ndarray) -> np.ndarray:
        return self.communicator.allreduce(super().n_left_of(ids))

    def search_again(self, ids: np.ndarray) -> None:
        has_line = self.leaves["line"][ids] >= 0
        for some, features in self.candidates(ids[has_line]):
            self.find_counted(some, features)
        self.find_directly(ids[~has_line])
        self.builder.forget(ids, False)

    def find_directly(self, ids: np.ndarray) -> None:
        for some, features in self.candidates(ids):
            self.find_in_all_rows(some, features)

    def find_counted(self, ids: np.ndarray, features: np.ndarray) -> None:
        n_threads = threads_for(self.n_threads, 4 * len(ids) * self.lines.shape[1])
        found = self.finder.find_some(ids, self.of_this_rank(features), self.counts_of(ids), n_threads)
        self.choose_among(ids, found)

    def counts_of(self, ids: np.ndarray) -> np.ndarray:
        """Count the rows of leaves in each cell of this rank's part: int64[n_leaves, n_cells]."""
        counts = super().counts_of(ids)
        self.add_up_own(counts, numbered(ids), 1)
        return counts

    def candidates(self, ids: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield leaves and their features, as `Constraints.candidates`; some leaves may have only one."""
        for some, features in self.constraints.candidates(self.leaves, ids, self.key):
            only = self.leaves["forced_feature"][some]
            if (only >= 0).any():
                features = np.broadcast_to(features, (len(some), features.shape[1])).copy()
                features[only >= 0] = -1
                features[only >= 0, 0] = only[only >= 0]
            yield some, features


def numbered(ids: Sequence[Any] | np.ndarray) -> np.ndarray:
    """Return 0, 1, ... as int32[n_ids]."""
    return np.arange(len(ids), dtype=np.int32)


class ParterOverRanks(parting.Parter):
    """Splits leaves: each rank parts its own rows, and all ranks learn how many there are on each side."""

    def __init__(self, communicator: Communicator, *args: Any) -> None:
        self.communicator = communicator
        super().__init__(*args)

    def begin(self, *args: Any) -> None:
        super().begin(*args)
        root = np.zeros(1, np.int32)
        self.judge(root, self.communicator.allreduce(self.ends_of(root), "max"))

    def split(self, ids: np.ndarray, first_child: int, *threads: int) -> np.ndarray:
        if not len(ids):
            return ids
        told = self.communicator.stack(self.part(ids, *threads).base)
        return self.split_parted(ids, first_child, told).base
