"""Find the best split of each leaf from its line of all bins.

    any number of leaves     find; find_some and choose_among, which search some of the features
    one leaf, in a thread    find_one

With one number per cell, a line does not say how many rows its cells have. If the rows of a child turn out to
be too few, the leaf is searched again from its line, exactly, together with the number of rows in each cell.
"""
import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t

from ranktrees._core.growing.finding cimport Finder, features_of
from ranktrees._core.support.records cimport Bin, Leaf, Split, shares_of_each
from ranktrees._core.support.views cimport line_in


cdef inline const int64_t* counts_at(const int64_t[:, ::1] counts, int64_t i) noexcept nogil:
    if counts is None:
        return NULL
    return &counts[i, 0]


cdef class LineFinder(Finder):
    """Finds the best splits of leaves from their lines, and of leaves that have none from their rows."""

    def __init__(self, codes, *args):
        super().__init__(codes, *args)
        self.all_features = np.arange(codes.shape[1], dtype=np.int32)[None, :]

    def attach_lines(self, lines):
        """Use these lines, of one number per cell or two."""
        self.lines, self.lanes = lines, lines.shape[1] // self.offsets[self.offsets.shape[0] - 1]

    cpdef void find(self, const int32_t[::1] ids, int n_threads):
        """Find the best split of each leaf from its line of all bins."""
        self.conclude_all(ids, self.scan_lines(ids, self.all_features, None, n_threads))

    def find_some(
        self, const int32_t[::1] ids, const int32_t[:, ::1] features, const int64_t[:, ::1] counts,
        int n_threads,
    ):
        """SPLIT records, shape (n_ids, ...): the best splits of each leaf by some features, from its line.

        ``features`` has one list per leaf or one list for all leaves: ascending, with -1 for features to
        leave out. ``counts`` are the numbers of rows in the cells of each leaf, or None if these are unknown.
        `choose_among` takes the best of the splits.
        """
        cdef int64_t n_shares = self.scan_lines(ids, features, counts, n_threads)
        return self.found_records[: ids.shape[0] * n_shares].reshape(len(ids), n_shares)

    def choose_among(self, const int32_t[::1] ids, Split[:, ::1] found):
        """Give each leaf the best of the splits found for it, which are in ascending order of features."""
        cdef int64_t i
        for i in range(ids.shape[0]):
            self.conclude(&self.leaves[ids[i]], &found[i, 0], found.shape[1])

    cdef int64_t scan_lines(
        self, const int32_t[::1] ids, const int32_t[:, ::1] features, const int64_t[:, ::1] counts,
        int n_threads,
    ):
        """Fill ``found`` with several splits for each leaf, each the best of its share of the features."""
        cdef int64_t n_ids = ids.shape[0], width = features.shape[1], first
        cdef int64_t n_shares = min(shares_of_each(n_ids, n_threads), width), task, i, share
        cdef Split* found = self.room_for(n_ids * n_shares)
        for task in prange(
            n_ids * n_shares, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
            schedule="static"
        ):
            i = task % n_ids
            share = task // n_ids
            first = width * share // n_shares
            found[i * n_shares + share] = self.best_of_line(
                &self.leaves[ids[i]], features_of(features, i, first),
                width * (share + 1) // n_shares - first, counts_at(counts, i),
            )
        return n_shares

    cdef void find_one(
        self, Leaf* leaf, const int32_t* features, int64_t width, const int64_t* counts
    ) noexcept nogil:
        """`find_some` for one leaf."""
        cdef Split best = self.best_of_line(leaf, features, width, counts)
        self.conclude(leaf, &best, 1)

    cdef Split best_of_line(
        self, const Leaf* leaf, const int32_t* features, int64_t width, const int64_t* counts
    ) noexcept nogil:
        cdef const int64_t* line = line_in(self.lines, leaf.line)
        cdef int64_t f, k
        cdef Split best = self.undivided(leaf)
        for k in range(width):
            f = features[k]
            if f < 0 or 0 <= leaf.forced_feature != f:
                continue
            if self.lanes == 2:
                self.scan(<const Bin*>(line + 2 * self.offsets[f]), f, leaf, NULL, not self.apart, &best)
            else:
                self.scan_sums(
                    leaf, f, line + self.offsets[f], counts + self.offsets[f] if counts else counts,
                    not self.apart, &best,
                )
        return best
