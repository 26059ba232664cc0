"""Find the best split of each leaf: over all bins, in coarse cells first, or from the rows themselves.

FullSearch     lines of all bins; the line of the larger child is that of its parent less that of the smaller
CoarseToFine   lines of 16 cells per feature, by which the few best features of a leaf are chosen; the best
               split over all bins of these is found from the rows of the leaf, when the leaf is split
DirectSearch   no lines: for leaves that differ in the features they may use, unless these have few bins; and
               for features with more than 255 bins, of which most leaves touch few
StreamingSearch  no lines: each leaf makes streaming histograms of its rows

All of them read codes. A search is exact if the mapper has made a bin of each distinct value. These searches
have all rows. For ranks that have some of the rows each, `ranktrees.growing.over_ranks` derives from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ranktrees._core.growing.coarse_finding import CoarseFinder
from ranktrees._core.growing.finding import Finder
from ranktrees._core.growing.growth import Growth
from ranktrees._core.growing.histogram import Builder
from ranktrees._core.growing.line_finding import LineFinder
from ranktrees._core.growing.streaming import StreamingFinder
from ranktrees.support import parallel
from ranktrees.support.parallel import threads_for

if TYPE_CHECKING:
    from ranktrees.binning.mapper import BinMapper
    from ranktrees.growing.constraints import Constraints
    from ranktrees.growing.rounding import RoundedRows
    from ranktrees.model.costs import Prices

# Two children with fewer rows are searched from these rows, which touch fewer cells than a line of all bins
# has.
FEW_ROWS = 128

# Lines are kept in this many bytes; a leaf that finds no room is searched from its rows.
LINES_BYTES = 1 << 28

# The rows of a streaming search are dealt to this many workers, in stretches. Each worker makes histograms of
# its own, which are merged. What a single worker finds differs from what several workers find together.
SHARDS = 1


class Sizes(NamedTuple):
    """How large trees may become, and the threads that search for their splits.

    Attributes
    ----------
    n_threads : int
    n_rows : int
        The number of rows, of all ranks if these search together.
    n_leaves : int or None
        The most leaves of a tree, if that is known.
    """

    n_threads: int
    n_rows: int
    n_leaves: int | None


class Search:
    """Base class of the searches: the leaves that they search, and the rules of a tree.

    Parameters
    ----------
    codes : ndarray of uint8 or uint32, shape (n_rows, n_features), feature by feature
    mapper : BinMapper
    packing : Packing, LongCodes or None
        The cells that lines have. If these are all bins, it also holds the codes row by row.
    constraints : Constraints
    prices : Prices
    order : ndarray of uint32, shape (n_rows,)
        The rows of the tree, leaf by leaf.
    sums : ndarray of int64, shape (n_rows,)
        The gradients and hessians of these rows, in the same order.
    sizes : Sizes
    """

    is_sure = True  # the promise of a leaf is its gain
    in_one_call = False  # whether trees can be grown in one call; see `ranktrees._core.growing.growth`
    has_lines = False
    finder_class: Any = Finder

    def __init__(
        self,
        codes: Any,
        mapper: BinMapper,
        packing: Any,
        constraints: Constraints,
        prices: Prices,
        order: np.ndarray,
        sums: np.ndarray,
        sizes: Sizes,
    ) -> None:
        self.codes = codes
        self.constraints = constraints
        self.n_threads = sizes.n_threads
        self.plain = constraints.missing == "learned" and prices.all_free
        self.finder = self.make_finder(mapper, packing, prices, order, sums)
        # Quiet rows, of which nothing is left, are set apart and only counted. There are two exceptions: the
        # mean of a category depends on them, and if two splits are judged together, a child of the second
        # could turn out too small.
        self.sets_apart = (
            constraints.missing != "three_way" and not mapper.is_categorical[constraints.usable].any()
        )

    def make_finder(
        self, mapper: BinMapper, packing: Any, prices: Prices, order: np.ndarray, sums: np.ndarray
    ) -> Any:
        """Make the finder of splits."""
        return self.finder_class(
            self.codes, packing, mapper, self.constraints, prices, order, sums, self.n_threads
        )

    def make_growth(self, *args: Any) -> Any:
        """Make what grows a tree in one call."""
        return Growth(*args)

    def attach(self, leaves: np.ndarray) -> None:
        """Use these leaves from now on: they have moved in memory."""
        self.leaves, self.splits_below = leaves, leaves["splits_below"]
        self.starts, self.stops = leaves["start"], leaves["stop"]
        self.split_features = leaves["split"]["feature"]
        self.finder.attach(leaves)

    def begin(
        self,
        rows: RoundedRows,
        rules: tuple[float, float, int, float],
        key: tuple[int, int],
        some_apart: bool,
    ) -> None:
        """Begin a new tree.

        Parameters
        ----------
        rows : RoundedRows
        rules : tuple
            (l2, min_gain, min_samples_leaf, min_hessian).
        key : (int, int)
            The key of the random draws of features: the seed of the fit, and a stream of the tree.
        some_apart : bool
            Whether quiet rows were set apart.
        """
        self.rows, self.key = rows, key
        l2, min_gain, min_samples_leaf, min_hessian = rules
        self.min_samples_leaf = min_samples_leaf
        # With one number per cell, for gradient and hessian, rows are counted later. This pays for lines in
        # any case; and if a child needs a single row only, it has enough. Bins of a shortlist never hold the
        # count.
        self.counts_later = not self.is_sure or (
            self.sets_apart and (some_apart or self.has_lines or min_samples_leaf == 1)
        )
        least_hessian = max(1, math.ceil(min(float(min_hessian) / rows.hessian_unit, 2**32 - 1)))
        self.finder.begin(rows, l2, min_gain, min_samples_leaf, least_hessian, self.counts_later)

    def root(self, root: np.ndarray) -> None:
        """Search the root, an array of one leaf."""
        self.find_directly(root)

    def children(self, parents: np.ndarray, children: np.ndarray) -> None:
        """Search those children of leaves that were split which may be split themselves."""
        self.find_directly(children[self.splits_below[children] > 0])

    def again(self, ids: np.ndarray) -> None:
        """Search waiting leaves again, because features have become cheaper."""
        self.find_directly(ids)

    def settle(self, ids: np.ndarray) -> np.ndarray:
        """Return the leaves that are about to be split, without those that turn out to have no split."""
        return ids

    def search_again(self, ids: np.ndarray) -> None:
        """Search leaves again whose split turns out to make a child of too few rows."""
        self.find_in_all_rows(ids, self.constraints.usable[None, :])

    def find_in_all_rows(self, ids: np.ndarray, features: np.ndarray) -> None:
        """Find the best split of leaves by some features, whose children have enough rows."""
        n_threads = threads_for(self.n_threads, self.n_rows(ids) * features.shape[1])
        self.finder.search_rows(ids, features, True, n_threads)

    def forget(self, ids: np.ndarray) -> None:
        """Drop what is kept for these leaves: they will not be split."""

    def n_rows(self, ids: np.ndarray) -> int:
        """Return how many rows the leaves have together, without quiet rows that are set apart."""
        return sum(int(self.stops[i] - self.starts[i]) for i in ids)

    def find_directly(self, ids: np.ndarray) -> None:
        """Search leaves from their rows."""
        for some, features in self.constraints.candidates(self.leaves, ids, self.key):
            n_threads = threads_for(self.n_threads, self.n_rows(some) * features.shape[1])
            self.finder.find_directly(some, features, n_threads)
            if self.counts_at_once:
                self.finder.verify(some, features, n_threads)

    @property
    def counts_at_once(self) -> bool:
        """Whether rows are counted at once: without a split, a leaf draws features that may gain more."""
        return self.counts_later and not self.rows.same and self.constraints.draws_features


class DirectSearch(Search):
    """Search every leaf from its rows."""

    @property
    def in_one_call(self) -> bool:  # type: ignore[override]
        return self.plain and self.constraints.groups is None


class StreamingSearch(Search):
    """Search every leaf by streaming histograms of its rows, with ``max_bins`` centroids each.

    ``kind`` is (max_bins, by_estimates), see `ranktrees._core.growing.streaming.StreamingFinder`.
    """

    def __init__(self, codes: np.ndarray, mapper: BinMapper, kind: tuple[int, bool], *rest: Any) -> None:
        self.kind, self.max_bins = kind, kind[0]
        super().__init__(codes, mapper, None, *rest)
        self.sets_apart = False  # the mass of a centroid is the number of all its rows

    def make_finder(
        self, mapper: BinMapper, packing: Any, prices: Prices, order: np.ndarray, sums: np.ndarray
    ) -> Any:
        shards = len(order) * np.arange(SHARDS + 1) // SHARDS
        return StreamingFinder(
            self.codes,
            mapper,
            self.constraints,
            prices,
            order,
            sums,
            shards,
            self.kind,
        )


class SearchOfLines(Search):
    """Base class of the searches that keep a line of cells for each leaf."""

    has_lines = True
    few_rows = 0  # leaves with fewer rows have no line

    find: Callable[[np.ndarray], None]  # the subclasses search leaves that have lines

    @property
    def in_one_call(self) -> bool:  # type: ignore[override]
        return self.constraints.groups is None

    def __init__(
        self,
        codes: Any,
        mapper: BinMapper,
        packing: Any,
        constraints: Constraints,
        prices: Prices,
        order: np.ndarray,
        sums: np.ndarray,
        sizes: Sizes,
    ) -> None:
        super().__init__(codes, mapper, packing, constraints, prices, order, sums, sizes)
        self.packing = packing
        if len(packing.joint.members):
            self.few_rows = 0
        self.lines, self.lanes = np.empty((0, 0), np.int64), 1
        self.builder = self.builder_of(order, sums)
        self.most_lines = sizes.n_rows // max(1, self.few_rows) + 1
        if sizes.n_leaves is not None:
            self.most_lines = min(self.most_lines, sizes.n_leaves)

    def builder_of(self, order: np.ndarray, sums: np.ndarray) -> Any:
        """Make the builder that adds up sums of rows, in this order, to lines."""
        packing = self.packing
        return Builder(
            packing.bytes,
            packing.digits,
            packing.first_digit,
            packing.n_cells,
            order,
            sums,
            self.n_threads,
            packing.joint,
        )

    def attach(self, leaves: np.ndarray) -> None:
        super().attach(leaves)
        self.finder.attach_lines(self.lines)
        self.builder.attach(leaves, self.lines, self.lanes)

    def begin(
        self,
        rows: RoundedRows,
        rules: tuple[float, float, int, float],
        key: tuple[int, int],
        some_apart: bool,
    ) -> None:
        super().begin(rows, rules, key, some_apart)
        lanes = self.lanes_for(rows)
        if not self.lines.size or lanes != self.lanes:
            width = self.packing.n_cells * lanes
            n_lines = min(self.most_lines, LINES_BYTES // (8 * width))
            self.lines, self.lanes = np.zeros((n_lines + 1, width), np.int64), lanes
            self.attach(self.leaves)
        self.builder.begin()

    def lanes_for(self, rows: RoundedRows) -> int:
        """Return how many numbers a cell has."""
        return 1

    def root(self, root: np.ndarray) -> None:
        n_threads = threads_for(self.n_threads, self.n_rows(root) * self.packing.n_bytes)
        if self.builder.root(self.few_rows, self.rows.bits, self.rows.same, n_threads):
            self.put_together(root)
            self.find(root)
        else:
            self.find_directly(root)

    def children(self, parents: np.ndarray, children: np.ndarray) -> None:
        with_line, without = self.take_over(parents, children)
        self.find(with_line)
        if len(without):
            self.find_directly(without)
        self.builder.forget(children, False)

    def take_over(self, parents: np.ndarray, children: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Build lines for the children that may be split. Return (those with a line, those without one)."""
        return self.builder.take_over(parents, children, *self.ways_to_build())

    def ways_to_build(self) -> tuple[Any, ...]:
        """Return the arguments of the builder, except the leaves."""
        rows = self.rows
        return self.few_rows, rows.bits, rows.same, self.n_threads, parallel.VALUES_PER_THREAD

    def put_together(self, ids: np.ndarray) -> None:
        """Sum lines that have been built from rows over all ranks, if there are others."""

    def again(self, ids: np.ndarray) -> None:
        has_line = self.leaves["line"][ids] >= 0
        self.find(ids[has_line])
        self.find_directly(ids[~has_line])

    def counts_of(self, ids: np.ndarray) -> np.ndarray:
        """Count the rows of leaves in each cell: int64[n_leaves, n_cells]."""
        n_threads = threads_for(self.n_threads, self.n_rows(ids) * self.packing.n_bytes)
        return self.builder.counts_of(ids, n_threads)

    def forget(self, ids: np.ndarray) -> None:
        self.builder.forget(ids)


class FullSearch(SearchOfLines):
    """Search every bin."""

    finder_class = LineFinder
    few_rows = FEW_ROWS

    def lanes_for(self, rows: RoundedRows) -> int:
        return 1 if rows.same or self.counts_later else 2

    def find(self, ids: np.ndarray) -> None:
        """Search leaves that have lines."""
        if not len(ids):
            return
        n_threads = threads_for(self.n_threads, 4 * len(ids) * self.lines.shape[1])
        if not self.constraints.draws_features:
            self.finder.find(ids, n_threads)
            return
        for some, features in self.constraints.candidates(self.leaves, ids, self.key):
            self.finder.choose_among(some, self.finder.find_some(some, features, None, n_threads))
            if self.counts_at_once:
                self.verify(some, features)

    def verify(self, ids: np.ndarray, features: np.ndarray) -> None:
        """Search leaves again whose splits make a child of too few rows."""
        left = self.n_left_of(ids)
        least = np.minimum(left, self.leaves["total"]["count"][ids] - left)
        small = (least < self.min_samples_leaf) & (self.split_features[ids] >= 0)
        if small.any():
            self.find_counted(ids[small], features[small] if len(features) > 1 else features)

    def n_left_of(self, ids: np.ndarray) -> np.ndarray:
        """Count the rows that the splits of leaves send left."""
        return self.finder.count_left_of(ids, threads_for(self.n_threads, self.n_rows(ids)))

    def search_again(self, ids: np.ndarray) -> None:
        """Search leaves by their lines and the numbers of rows in the cells; without lines, by all rows."""
        has_line = self.leaves["line"][ids] >= 0
        if has_line.any():
            self.find_counted(ids[has_line], self.constraints.usable[None, :])
        if not has_line.all():
            super().search_again(ids[~has_line])
        self.builder.forget(ids, False)

    def find_counted(self, ids: np.ndarray, features: np.ndarray) -> None:
        """Find the best split of leaves that have lines by some features, whose children have enough rows."""
        n_threads = threads_for(self.n_threads, self.n_rows(ids) * self.packing.n_bytes)
        found = self.finder.find_some(ids, features, self.counts_of(ids), n_threads)
        self.finder.choose_among(ids, found)


class CoarseToFine(SearchOfLines):
    """Choose features by cells, and the split by bins."""

    is_sure = False
    finder_class = CoarseFinder

    def find(self, ids: np.ndarray) -> None:
        """Choose the features of leaves that have lines."""
        for some, features in self.constraints.candidates(self.leaves, ids, self.key):
            self.finder.shortlist(some, features, self.n_threads, parallel.VALUES_PER_THREAD)

    def find_directly(self, ids: np.ndarray) -> None:
        """Choose the features of leaves for which no line is kept, each with a line that is lent to it."""
        for one in ids[:, None]:
            self.lend(one)
            self.find(one)
            self.builder.take_back(one)

    def lend(self, one: np.ndarray) -> None:
        """Lend a line to a leaf for which none is kept."""
        n_threads = threads_for(self.n_threads, self.n_rows(one) * self.packing.n_bytes)
        self.builder.lend(one, self.rows.bits, self.rows.same, n_threads)
        self.put_together(one)

    def settle(self, ids: np.ndarray) -> np.ndarray:
        self.refine(ids)
        self.look_further(ids)
        return self.with_split(ids)

    def refine(self, ids: np.ndarray) -> None:
        """Find the best split of leaves by their shortlists."""
        self.finder.refine(ids, self.n_threads, parallel.VALUES_PER_THREAD)

    def look_further(self, ids: np.ndarray) -> None:
        """Search those leaves that fall short of what they promised by cuts that are allowed."""
        for one in self.finder.falling_short(ids)[:, None]:
            if self.leaves["line"][one[0]] >= 0:
                self.look_further_by_line(one)
            else:
                self.lend(one)
                self.look_further_by_line(one)
                self.builder.take_back(one)

    def look_further_by_line(self, one: np.ndarray) -> None:
        """Search a leaf by cells whose rows are counted, and then all rows by the features of a shortlist."""
        [k], [counts] = one.tolist(), self.counts_of(one)
        for _, [features] in self.constraints.candidates(self.leaves, one, self.key):
            gains, found = self.finder.gains_counted(k, features, counts), False
            while not found and self.finder.next_shortlist(k, features, gains):
                self.find_in_all_rows(one, np.asarray(self.finder.shortlists_of(one)))
                found = self.split_features[k] >= 0
        self.finder.promise_no_more(k)

    def with_split(self, ids: np.ndarray) -> np.ndarray:
        """Return those of some leaves that have a split."""
        split = self.split_features[ids] >= 0
        self.forget(ids[~split])
        return ids[split]

    def search_again(self, ids: np.ndarray) -> None:
        self.find_in_all_rows(ids, np.asarray(self.finder.shortlists_of(ids)))
        self.look_further(ids)
