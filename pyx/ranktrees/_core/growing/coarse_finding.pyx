"""Find the best split of each leaf by the few features that seem best by its coarse line.

    shortlist       the features whose cuts between cells gain most; the leaf promises the gain of the best
    refine          the best split of the leaf by these, over all bins, from its rows
    look further    if it gains less than promised: shortlists of cuts that leave both children enough rows

A line of sums does not say how many rows its cells have, so the sizes of children are estimated at first. If
hessians differ, `refine` does not count rows either; they are counted when the leaf is parted.
"""
import numpy as np

from ranktrees._core.support.threads import room_for_each

from cython.parallel cimport parallel, prange, threadid
from libc.math cimport INFINITY
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from ranktrees._core.growing.finding cimport Finder, features_of
from ranktrees._core.growing.gains cimport Rules, Sums, hessian_of_rows, sums_of
from ranktrees._core.growing.scanning cimport CELLS
from ranktrees._core.support.code_columns cimport column_with, spread_sums
from ranktrees._core.support.records cimport SHORTLIST, Leaf, Split, has_turn, shares_of_each, worth_threads
from ranktrees._core.support.views cimport line_in, run_in

cdef extern from "support/bins.h" nogil:
    void add_line(int64_t n, const int64_t* part, int64_t* whole) noexcept

cdef extern from "growing/columns.h" nogil:
    enum: COPIES
    void sum_columns(
        int n_columns, const uint8_t** columns, const uint32_t* rows, const int64_t* sums, int64_t n,
        int64_t* cells,
    ) noexcept

cdef extern from "growing/cells.h" nogil:
    void gains_of_cells(
        const int64_t* line, const int64_t* counts, const int32_t* features, int64_t n,
        const int64_t* places, const int8_t* signs, int bits, const Sums* total, double least,
        const Rules* rule, double* gains,
    ) noexcept

    double largest_gain(int64_t n, const double* gains) noexcept

cdef extern from "support/threads.h" nogil:
    void wait_for_all() noexcept

cdef enum:
    FEATURE = 32  # the cost of scanning one feature of a coarse line, in steps of about a nanosecond
    SHORTLISTED_TOGETHER = 4096  # leaves; each needs one number per feature in the meantime

# A feature is searched in all bins if its gain between cells is at least this share of the best feature's.
cdef double WORTH_A_LOOK = 0.8


cdef class CoarseFinder(Finder):
    """Finds the best splits of leaves by features that are chosen from their coarse lines.

    Parameters
    ----------
    codes : Codes, or ndarray of uint8, shape (n_rows, n_features), feature by feature
    packing : Packing
        The cells of each feature in a line.
    *rest
        As for `Finder`.
    """

    def __init__(self, codes, packing, mapper, constraints, prices, order, sums, int n_threads):
        super().__init__(codes, None, mapper, constraints, prices, order, sums, n_threads)
        self.places = packing.places
        self.shortlists = np.empty((0, 0, SHORTLIST, CELLS), np.int64)
        self.gains = room_for_each(n_threads, codes.shape[1], np.float64)

    def attach_lines(self, lines):
        """Use these lines, of one number per cell."""
        self.lines = lines

    cdef void conclude(self, Leaf* leaf, const Split* found, int64_t n_found) noexcept nogil:
        """As for `Finder`, but the promise of the leaf remains that of its cells."""
        cdef double promise = leaf.promise
        Finder.conclude(self, leaf, found, n_found)
        leaf.promise = promise

    # ---------------------------------------------------------------------------------------------- shortlist

    cpdef void shortlist(
        self, const int32_t[::1] ids, const int32_t[:, ::1] features, int n_threads,
        int64_t values_per_thread=1,
    ):
        """Shortlist the features that seem best by each leaf's coarse line, and promise the gain of the best.

        ``features`` has one list per leaf or one list for all leaves, ascending and ended by -1. The sizes of
        children are estimated from their hessians, and the bounds of monotone leaves are left to `refine`.
        """
        cdef int64_t n_ids = ids.shape[0], begin
        for begin in range(0, n_ids, SHORTLISTED_TOGETHER):
            self.shortlist_some(
                ids, begin, min(n_ids - begin, <int64_t>SHORTLISTED_TOGETHER), features, n_threads,
                values_per_thread,
            )

    cdef void shortlist_some(
        self, const int32_t[::1] ids, int64_t begin, int64_t n_ids, const int32_t[:, ::1] features,
        int n_threads, int64_t values_per_thread,
    ):
        """`shortlist` for the leaves ids[begin:begin + n_ids]."""
        cdef int64_t width = features.shape[1], n_shares, task, i, first, last
        n_threads = worth_threads(n_threads, FEATURE * width * n_ids, values_per_thread)
        n_shares = min(shares_of_each(n_ids, n_threads), width)
        if n_ids > self.gains.shape[0]:
            self.gains = np.empty((n_ids, self.columns.n_features))
        with nogil, parallel(num_threads=n_threads):
            for task in prange(n_ids * n_shares, schedule="static"):
                i = task // n_shares
                first = width * (task % n_shares) // n_shares
                last = width * (task % n_shares + 1) // n_shares
                self.find_gains(
                    &self.leaves[ids[begin + i]], features_of(features, begin + i, first), last - first,
                    &self.gains[i, first],
                )
            wait_for_all()
            for i in prange(n_ids, schedule="static"):
                self.choose(
                    &self.leaves[ids[begin + i]], features_of(features, begin + i), width, &self.gains[i, 0]
                )

    cdef void draw_and_shortlist(
        self, int32_t k, const int32_t* usable, int64_t width, int64_t n_drawn, uint64_t key, int thread
    ) noexcept nogil:
        """`shortlist` for one leaf and by one thread, among features that it draws as in `draw_and_find`."""
        cdef Leaf* leaf = &self.leaves[k]
        cdef const int32_t* features
        cdef int64_t first = 0, n
        while first < width:
            n = min(n_drawn, width - first)
            features = self.draw(k, usable, width, first, n, key, thread)
            self.find_gains(leaf, features, n, &self.gains[thread, 0])
            self.choose(leaf, features, n, &self.gains[thread, 0])
            if leaf.split.feature >= 0:
                return
            first += n

    cdef void find_gains(
        self, const Leaf* leaf, const int32_t* features, int64_t n, double* gains
    ) noexcept nogil:
        """Set the gain of the best cut between cells for each of some features, after its price is paid."""
        cdef Sums total = sums_of(leaf.total)
        gains_of_cells(
            line_in(self.lines, leaf.line), NULL, features, n, run_in(self.places, 0), self.signs, self.bits,
            &total,
            hessian_of_rows(&total, 1.0 if self.same else 0.5, &self.rules), &self.rules, gains,
        )
        self.pay(leaf, features, n, gains)

    cdef void find_gains_counted(
        self, const Leaf* leaf, const int32_t* features, int64_t n, const int64_t* counts, double* gains
    ) noexcept nogil:
        """The same if the number of rows in each cell is known: both children have enough of them."""
        cdef Sums total = sums_of(leaf.total)
        cdef Rules rules = self.rules_of(leaf, True)
        gains_of_cells(
            line_in(self.lines, leaf.line), counts, features, n, run_in(self.places, 0), self.signs,
            self.bits, &total,
            rules.min_hessian, &rules, gains,
        )
        self.pay(leaf, features, n, gains)

    cdef void pay(
        self, const Leaf* leaf, const int32_t* features, int64_t n, double* gains
    ) noexcept nogil:
        cdef double least = self.least(leaf)
        cdef int64_t k
        if not self.plain:
            for k in range(n):
                if features[k] >= 0:
                    gains[k] = gains[k] - self.prices[features[k]] if gains[k] > least else -INFINITY

    cdef void choose(self, Leaf* leaf, const int32_t* features, int64_t n, double* gains) noexcept nogil:
        """Put the best feature on the shortlist, and those nearly as good; of equal ones the lower."""
        cdef double[SHORTLIST] best
        cdef double top, least
        cdef int64_t k, j, n_best = 0
        leaf.split = self.undivided(leaf)
        top = largest_gain(n, gains)
        if top <= leaf.split.gain:
            leaf.split.gain = leaf.promise = 0.0
            return
        leaf.promise = top - self.undivided_gain(leaf)
        least = top - (1.0 - WORTH_A_LOOK) * leaf.promise
        for k in range(n):
            if (
                gains[k] < least or gains[k] <= leaf.split.gain
                or (n_best == SHORTLIST and gains[k] <= best[SHORTLIST - 1])
            ):
                continue
            n_best = min(n_best + 1, SHORTLIST)
            j = n_best - 1
            while j > 0 and best[j - 1] < gains[k]:
                best[j] = best[j - 1]
                leaf.shortlist[j] = leaf.shortlist[j - 1]
                j -= 1
            best[j] = gains[k]
            leaf.shortlist[j] = features[k]
        leaf.split.feature, leaf.split.gain = leaf.shortlist[0], leaf.promise
        for k in range(1, n_best):  # in ascending order, as equal gains go to the lower feature
            j = k
            while j > 0 and leaf.shortlist[j - 1] > leaf.shortlist[j]:
                leaf.shortlist[j - 1], leaf.shortlist[j] = leaf.shortlist[j], leaf.shortlist[j - 1]
                j -= 1
        for k in range(n_best, SHORTLIST):
            leaf.shortlist[k] = -1

    # ------------------------------------------------------------------------------------------------- refine

    cpdef void refine(self, const int32_t[::1] ids, int n_threads, int64_t values_per_thread=1):
        """Find the best split of each leaf among the features of its shortlist, over all bins, from its rows.

        Threads share the rows of each leaf or, if there are many leaves, take one leaf each.
        """
        cdef int64_t task, n_ids = ids.shape[0], n_parts, n_rows = self.n_rows_of(ids)
        cdef Leaf* leaf
        n_threads = worth_threads(n_threads, ROW_REFINED * n_rows, values_per_thread)
        n_parts = shares_of_each(n_ids, n_threads)
        if n_parts > 1:
            self.refine_together(ids, n_parts)
        else:
            for task in prange(
                2 * n_ids, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
                schedule="dynamic",
            ):
                leaf = &self.leaves[ids[task % n_ids]]
                if has_turn(leaf.stop - leaf.start, n_rows, n_threads, task < n_ids):
                    self.refine_alone(leaf, threadid())

    cdef int64_t n_rows_of(self, const int32_t[::1] ids) noexcept:
        """The number of rows that these leaves have together, without the quiet ones."""
        cdef int64_t i, n_rows = 0
        for i in range(ids.shape[0]):
            n_rows += self.leaves[ids[i]].stop - self.leaves[ids[i]].start
        return n_rows

    cdef void refine_alone(self, Leaf* leaf, int thread) noexcept nogil:
        """`refine` for one leaf, ignoring the number of rows in a child if hessians differ."""
        cdef Split best = self.undivided(leaf)
        self.scan_rows(leaf, leaf.shortlist, SHORTLIST, self.same, thread, &best)
        self.conclude(leaf, &best, 1)

    cdef void refine_together(self, const int32_t[::1] ids, int64_t n_parts):
        cdef int64_t n_ids = ids.shape[0], task, i
        cdef int64_t[:, :, :, ::1] parts = self.shortlists
        if n_ids > parts.shape[0] or n_parts > parts.shape[1]:
            parts = self.shortlists = np.empty((n_ids, n_parts, SHORTLIST, CELLS), np.int64)
        with nogil, parallel(num_threads=<int>n_parts):
            for task in prange(n_ids * n_parts, schedule="dynamic"):
                self.sum_shortlist(
                    &self.leaves[ids[task // n_parts]], task % n_parts, n_parts,
                    &parts[task // n_parts, task % n_parts, 0, 0], threadid(),
                )
            wait_for_all()
            for i in prange(n_ids, schedule="dynamic"):
                self.scan_shortlist(&self.leaves[ids[i]], &parts[i, 0, 0, 0], n_parts)

    cdef int64_t[:, ::1] sums_of_shortlists(
        self, const int32_t[::1] ids, int n_threads, int64_t values_per_thread
    ):
        """int64[4 n, 256]: the bins of each leaf's shortlist, filled from this rank's rows."""
        cdef int64_t[:, ::1] sums = np.empty((SHORTLIST * ids.shape[0], CELLS), np.int64)
        cdef int64_t i
        n_threads = worth_threads(n_threads, ROW_REFINED * self.n_rows_of(ids), values_per_thread)
        for i in prange(
            ids.shape[0], nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
        ):
            self.sum_shortlist(&self.leaves[ids[i]], 0, 1, &sums[SHORTLIST * i, 0], threadid())
        return sums

    cpdef int32_t[:, ::1] shortlists_of(self, const int32_t[::1] ids):
        """int32[n, 4]: the features of each leaf's shortlist, padded with -1."""
        cdef int32_t[:, ::1] shortlists = np.empty((ids.shape[0], SHORTLIST), np.int32)
        cdef int64_t i
        for i in range(ids.shape[0]):
            memcpy(&shortlists[i, 0], self.leaves[ids[i]].shortlist, SHORTLIST * sizeof(int32_t))
        return shortlists

    cdef void scan_shortlists(self, const int32_t[::1] ids, int64_t[:, ::1] sums) noexcept:
        """Find the best split of each leaf by the features of its shortlist, from their bins."""
        cdef int64_t i
        for i in range(ids.shape[0]):
            self.scan_shortlist(&self.leaves[ids[i]], &sums[SHORTLIST * i, 0], 1)

    cdef void sum_shortlist(
        self, const Leaf* leaf, int64_t part, int64_t n_parts, int64_t* sums, int thread
    ) noexcept nogil:
        """Fill the bins of a leaf's shortlist from one part of its rows."""
        cdef const uint8_t* columns[SHORTLIST]
        cdef int n_columns = 0, k
        cdef int64_t* bins
        cdef int64_t i, total
        cdef int64_t n_rows = leaf.stop - leaf.start
        cdef int64_t first = leaf.start + n_rows * part // n_parts
        cdef int64_t stop = leaf.start + n_rows * (part + 1) // n_parts
        while n_columns < SHORTLIST and leaf.shortlist[n_columns] >= 0:
            columns[n_columns] = column_with(&self.columns.all, leaf.shortlist[n_columns])
            n_columns += 1
        if first == stop:
            memset(sums, 0, SHORTLIST * CELLS * sizeof(int64_t))
            return
        sum_columns(
            n_columns, columns, run_in(self.order, first), run_in(self.sums, first), stop - first,
            &self.columns_scratch[thread, 0],
        )
        for k in range(n_columns):
            bins = &self.columns_scratch[thread, k * COPIES * CELLS]
            if self.is_joint(leaf.shortlist[k]):
                total = 0
                for i in range(CELLS):
                    total += bins[i]
                spread_sums(&self.columns.all, leaf.shortlist[k], bins, total, CELLS, sums + k * CELLS)
            else:
                memcpy(sums + k * CELLS, bins, CELLS * sizeof(int64_t))

    cdef void scan_shortlist(self, Leaf* leaf, int64_t* parts, int64_t n_parts) noexcept nogil:
        """Find the best split of a leaf by the features of its shortlist, from bins filled in parts."""
        cdef Split best = self.undivided(leaf)
        cdef int64_t k, t
        for k in range(SHORTLIST):
            if leaf.shortlist[k] >= 0:
                for t in range(1, n_parts):
                    add_line(CELLS, parts + (t * SHORTLIST + k) * CELLS, parts + k * CELLS)
                self.scan_sums(leaf, leaf.shortlist[k], parts + k * CELLS, NULL, self.same, &best)
        self.conclude(leaf, &best, 1)

    # ------------------------------------------------------------------------------------------- look further

    cdef bint falls_short(self, const Leaf* leaf) noexcept nogil:
        """Whether the split found by a shortlist gains less than cells promise.

        It may if the cuts that seemed best are not allowed, as they leave a child too few rows or violate a
        monotone bound. Then features that are not on the list may have better splits.
        """
        return leaf.split.gain < leaf.promise

    def falling_short(self, const int32_t[::1] ids):
        """int32[...]: the leaves of which `falls_short` is true."""
        return np.array([i for i in ids if self.falls_short(&self.leaves[i])], np.int32)

    cdef bint choose_further(
        self, Leaf* leaf, const int32_t* features, int64_t n, double* gains
    ) noexcept nogil:
        """Make a shortlist by gains, which those on the list then lose. Return False if none is left."""
        cdef int64_t k
        cdef int j
        self.choose(leaf, features, n, gains)
        if leaf.split.feature < 0:
            return False
        for k in range(n):
            for j in range(SHORTLIST):
                if leaf.shortlist[j] >= 0 and leaf.shortlist[j] == features[k]:
                    gains[k] = -INFINITY
        return True

    cdef void draw_and_look_further(
        self, int32_t k, const int32_t* usable, int64_t width, int64_t n_drawn, uint64_t key,
        const int64_t* counts, int thread,
    ) noexcept nogil:
        """Search a leaf that falls short by shortlists of cuts that are allowed, drawn as in `draw_and_find`.

        The leaf has a line, and ``counts`` are the numbers of rows in its cells.
        """
        cdef Leaf* leaf = &self.leaves[k]
        cdef Split best = self.undivided(leaf)
        cdef const int32_t* features
        cdef double* gains = &self.gains[thread, 0]
        cdef int64_t first = 0, n
        while first < width and best.feature < 0:
            n = min(n_drawn, width - first)
            features = self.draw(k, usable, width, first, n, key, thread)
            self.find_gains_counted(leaf, features, n, counts, gains)
            while best.feature < 0 and self.choose_further(leaf, features, n, gains):
                best = self.best_of_rows(leaf, leaf.shortlist, SHORTLIST, True, True, thread)
            first += n
        self.conclude(leaf, &best, 1)
        leaf.promise = leaf.split.gain

    def gains_counted(self, int32_t k, const int32_t[::1] features, const int64_t[::1] counts):
        """float64[n]: `find_gains_counted` of a leaf, which has a line."""
        cdef double[::1] gains = np.empty(features.shape[0])
        self.find_gains_counted(&self.leaves[k], &features[0], features.shape[0], &counts[0], &gains[0])
        return gains.base

    def next_shortlist(self, int32_t k, const int32_t[::1] features, double[::1] gains):
        """`choose_further` for a leaf."""
        return self.choose_further(&self.leaves[k], &features[0], features.shape[0], &gains[0])

    def promise_no_more(self, int32_t k):
        """Let a leaf promise what its split gains, after it has looked further."""
        self.leaves[k].promise = self.leaves[k].split.gain
