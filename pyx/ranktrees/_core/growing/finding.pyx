"""Find the best split of each leaf, from its line of sums or from its rows.

    lines of all bins    find; find_some and choose_among, which search some of the features
    coarse lines         shortlist picks the few features that seem best, refine searches all their bins
    rows                 find_directly; draw_and_find, which lets each leaf draw its features

A line of sums does not say how many rows its cells have, and if quiet rows are set apart, rows are not
counted either. Such a search is not *exact*: if the rows of a child turn out to be too few once they are
counted, the leaf is searched again, exactly: from a line together with the number of rows in each cell, or
from all rows.

All searches scan one feature after the other; scanning.pxd finds the best split of a feature from its bins.
Equal gains go to the lower feature, then to the lower code. A feature may have a price, which is subtracted
from its best gain before features are compared. A leaf may first part the rows without a value from the
others; this split and the best one of the others are then judged together.
"""
import numpy as np

from ranktrees._core.support.dtypes import BIN, SPLIT
from ranktrees._core.support.threads import room_for_each

from cython.parallel cimport parallel, prange, threadid
from libc.math cimport INFINITY, fabs, fmax
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from ranktrees._core.growing.gains cimport (
    Rules, Sums, hessian_of_rows, least_score, own_score_of, rules_within, sums_of,
)
from ranktrees._core.support.records cimport (
    SHORTLIST, Bin, Leaf, Split, best_value, bytes_of, has_turn, shares_of_each, worth_threads,
)
from ranktrees._core.growing.scanning cimport (
    CELLS, Case, Prefix, accumulate, accumulate_touched, append, close, first_side, keep_last, may_be_below,
    minus, n_cuts, scan_categories, scan_side, scan_values, scan_whether, score_at, stop_of_sides,
)

cdef extern from "support/bins.h" nogil:
    void bin_add(void* cell, const void* row)
    int lowest_bit(uint64_t bits)
    Bin widened(int64_t sum, int bits, int same)
    void widen_cells(int64_t n, const int64_t* sums, int bits, int same, Bin* wide)
    void add_line(int64_t n, const int64_t* part, int64_t* whole) noexcept

cdef extern from "growing/columns.h" nogil:
    enum: COPIES
    void sum_columns(
        int n_columns, const uint8_t** columns, const uint32_t* rows, const int64_t* sums, int64_t n,
        int64_t* cells,
    ) noexcept

cdef extern from "support/codes.h" nogil:
    CodesOfFeature find_codes(
        bint is_long, const uint8_t* column, const CodesByRow* by_row, int64_t feature
    )
    uint32_t code_of(bint is_long, const CodesOfFeature* of, int64_t row)
    enum: CODES_AHEAD
    void fetch_each(const void* first, int64_t step, const uint32_t* rows, int64_t n)

cdef extern from "support/drawing.h" nogil:
    void draw_some(
        int32_t* line, int64_t first, int64_t last, int64_t n, uint64_t key, uint64_t leaf, uint64_t* marks,
        int64_t n_words,
    ) noexcept

cdef extern from "growing/parting.h" nogil:
    int64_t count_left(
        int is_long, const uint8_t* column, int32_t last, int32_t also, const uint32_t* rows, int64_t n
    ) noexcept

cdef extern from "growing/few.h" nogil:
    enum: FEW
    ctypedef struct FewCell "few_cell":
        pass
    ctypedef struct FewRows "few_rows":
        int exact
        int64_t n
        int64_t n_quiet
        int64_t sum
        int64_t bits
        const uint32_t* rows
        const uint32_t* quiet
        const int64_t* sums
        FewCell* cells
        uint64_t* touched
        uint64_t* words
        int64_t n_words
    ctypedef struct FewCut "few_cut":
        double score
        int32_t feature
        uint32_t code
        int64_t left
        uint32_t n_left
        int missing_left
    void best_of_few(
        int is_long, const FewRows* leaf, int64_t n_features, const int32_t* features, const uint8_t* columns,
        int64_t stride, const CodesByRow* by_row, const int64_t* offsets, const Sums* total,
        const Rules* rule, FewCut* best,
    ) noexcept

cdef extern from "growing/touching.h" nogil:
    ctypedef struct Touchable "touchable":
        Bin* cells
        uint64_t* touched
        uint64_t* words
        bint all_cells
        bint all_words
    void add_touching(
        const Touchable* line, const CodesOfFeature* of, const uint32_t* rows, const int64_t* sums, int64_t n,
        int bits, int same,
    )
    void count_touching(const Touchable* line, const CodesOfFeature* of, const uint32_t* rows, int64_t n)

cdef extern from "growing/cells.h" nogil:
    void score_cells(
        const int64_t* line, const int64_t* counts, const int32_t* features, int64_t n,
        const int64_t* places, const int8_t* signs, int bits, const Sums* total, double least,
        const Rules* rule, double* scores,
    ) noexcept

    double largest_score(int64_t n, const double* scores) noexcept

    int may_beat(
        const int64_t* cells, int32_t n, int bits, const Sums* total, const Rules* rule, double score
    ) noexcept

cdef extern from "support/threads.h" nogil:
    void wait_for_all() noexcept

cdef enum:
    GROUP = 128  # the most features whose bins are kept and scanned together
    COLUMNS = 8  # how many of these are filled together: 32 KiB of cells
    REMEMBERED = 128  # with at most this many rows, the bins that they touch are remembered
    FEATURE = 32  # the cost of scanning one feature of a coarse line, in steps of about a nanosecond
    SHORTLISTED_TOGETHER = 4096  # leaves; each needs one number per feature in the meantime

# A feature is searched in all bins if its gain between cells is at least this share of the best feature's.
cdef double WORTH_A_LOOK = 0.8

# The most that rounding may take from the sum of a gain and a price, relative to it.
cdef double ROUNDING = 2.0 ** -50


cdef inline const int64_t* counts_at(const int64_t[:, ::1] counts, int64_t i) noexcept nogil:
    if counts is None:
        return NULL
    return &counts[i, 0]


cdef inline double to_beat(double gain, double price, double least) noexcept nogil:
    """The gain that a split needs before its price is paid to beat ``gain`` after it, or a trifle less.

    It needs ``least`` in any case, also if the price is negative.
    """
    return fmax(least, gain + price - ROUNDING * (fabs(gain) + fabs(price))) if price != 0 else gain


cdef inline Split* before_price(Split* best, double price, double least, Split* room) noexcept nogil:
    """The split that a feature of this price has to beat, its gain taken before the price is paid.

    Its feature is -1, and stays so if there is no better split.
    """
    if price == 0:
        return best
    room[0] = best[0]
    room.feature, room.gain = -1, to_beat(best.gain, price, least)
    return room


cdef inline void after_price(const Split* own, double price, Split* best) noexcept nogil:
    """Pay the price of a feature's own best split, and keep the split if it still beats the best."""
    if price != 0 and own.feature >= 0 and own.gain - price > best.gain:
        best[0] = own[0]
        best.gain -= price


cdef inline const int32_t* features_of(
    const int32_t[:, ::1] features, int64_t i, int64_t first=0
) noexcept nogil:
    """The features of the i-th leaf, from ``first`` on, in one list per leaf or one list for all leaves."""
    return &features[i if features.shape[0] > 1 else 0, first]


cdef class Finder:
    """Finds the best splits of leaves.

    It holds the views of a fit: taking them for each leaf would take longer than searching a small leaf.

    Parameters
    ----------
    codes : ndarray of uint8 or uint32, shape (n_rows, n_features), feature by feature
        Codes of four bytes can only be searched from rows, as by `find_directly`.
    order : ndarray of uint32, shape (n_rows,)
    sums : ndarray of int64, shape (n_rows,)
    offsets : ndarray of int64, shape (n_features + 1,)
        Where the cells of each feature begin in a line of all bins.
    is_categorical : ndarray of uint8, shape (n_features,)
    monotone : ndarray of int8, shape (n_features,), or None
        -1, 0 or 1 for each feature. None if no feature is constrained.
    missing : {"learned", "left", "right", "three_way"}
        On which sides rows without a value are tried.
    prices : ndarray of float64, shape (n_features,)
        The price of each feature, which is subtracted from the gain of its splits. It may be negative, and
        may change between searches.
    plain : bool
        Whether ``missing`` is "learned" and all prices are and stay 0. Small leaves then take less time.
    places : ndarray of int64, shape (n_features,), or None
        Where the cells of each feature begin in a coarse line. None if lines have all bins.
    by_row : Packing, LongCodes or None
        The same codes row by row, if available. All features of a few rows then lie close together.
    n_threads : int
        The maximum number of threads of a call.
    """

    def __init__(
        self, codes, order, sums, offsets, is_categorical, monotone, missing, prices, plain, places, by_row,
        n_threads,
    ):
        self.columns, self.is_long = bytes_of(codes), codes.itemsize > 1
        self.by_row = NULL
        if by_row is not None and len(order):
            self.row_bytes, self.row_places, self.row_codes = by_row.bytes, by_row.byte_of, by_row.cell_of
            self.bytes_by_row.bytes = &self.row_bytes[0, 0]
            self.bytes_by_row.step = self.row_bytes.strides[0]
            self.bytes_by_row.n_bytes = self.row_bytes.shape[1]
            self.bytes_by_row.byte_of = &self.row_places[0]
            self.bytes_by_row.code_of = &self.row_codes[0, 0]
            self.by_row = &self.bytes_by_row
        self.order, self.sums, self.offsets = order, sums, offsets
        self.is_categorical, self.monotone, self.places = is_categorical, monotone, places
        self.prices, self.bounded = prices, monotone is not None
        self.three_way = missing == "three_way"
        self.rules.first_side = missing == "left"
        self.rules.last_side = missing != "right"
        self.signs = &self.monotone[0] if self.bounded else NULL
        self.plain = plain and not self.bounded and not np.any(is_categorical)
        n_features = codes.shape[1]
        self.group = GROUP if places is None else SHORTLIST  # a coarse search scans shortlists only
        n_cells = min(n_features, self.group) * CELLS
        n_words = (np.diff(offsets).max(initial=0) + 4095) // 4096
        self.n_words = n_words
        self.touched = room_for_each(n_threads, 65 * n_words, np.uint64)
        if self.is_long:
            n_cells = 4096 * n_words
        self.cells = room_for_each(n_threads, n_cells, BIN)
        self.columns_scratch = room_for_each(n_threads, SHORTLIST * COPIES * CELLS, np.int64)
        self.shortlists = np.empty((0, 0, SHORTLIST, CELLS), np.int64)
        self.scores = room_for_each(n_threads, n_features, np.float64)
        self.drawn = room_for_each(n_threads, n_features, np.int32)
        self.mark_words = n_features // 64 + 1
        self.marks = room_for_each(n_threads, self.mark_words, np.uint64)
        self.found = self.found_records = np.empty(64, SPLIT)
        self.all_features = np.arange(n_features, dtype=np.int32)[None, :]

    def attach(self, leaves, lines, int lanes):
        """Use these leaves, and these lines of ``lanes`` numbers per cell."""
        self.leaves, self.lines, self.lanes = leaves, lines, lanes

    def begin(
        self, int bits, bint same, double l2, double min_gain, double gradient_unit, double hessian_unit,
        uint32_t min_samples_leaf, uint32_t min_hessian, bint apart=False, bint sampled=False,
    ):
        """Begin a new tree: set how its sums are to be read, and what its splits must satisfy.

        If quiet rows are set ``apart``, splits are searched in the other rows, and the rows of the children
        are counted afterwards. If rows are ``sampled``, children need a larger hessian: see `rules_within`.
        """
        self.bits, self.same, self.apart, self.sampled = bits, same, apart and not same, sampled
        self.rules.l2 = l2
        self.rules.min_gain = min_gain
        self.rules.gradient_unit = gradient_unit
        self.rules.hessian_unit = hessian_unit
        self.rules.min_samples_leaf = min_samples_leaf
        self.rules.min_hessian = min_hessian

    cdef Split* room_for(self, int64_t n):
        if n > self.found.shape[0]:
            self.found = self.found_records = np.empty(2 * n, SPLIT)
        return &self.found[0]

    cdef int32_t n_bins(self, int64_t f) noexcept nogil:
        """The number of bins of a feature, without the last bin, which is that of rows without a value."""
        return <int32_t>(self.offsets[f + 1] - self.offsets[f]) - 1

    cdef Rules rules_of(self, const Leaf* leaf, bint exact) noexcept nogil:
        """What splits of a leaf must satisfy. If not ``exact``, the number of rows in a child is ignored."""
        cdef Sums total = sums_of(leaf.total)
        cdef Rules rules = rules_within(&total, self.sampled, &self.rules)
        if not exact:
            rules.min_samples_leaf = 0.0
        return rules

    cdef Case case_of(self, const Leaf* leaf, int64_t f, bint exact) noexcept nogil:
        """One feature of a leaf, together with the `rules_of` the leaf."""
        cdef Case case
        case.leaf, case.feature, case.rules = leaf, <int32_t>f, self.rules_of(leaf, exact)
        case.sign, case.bounded = self.signs[f] if self.bounded else 0, self.bounded
        return case

    cdef double own_score(self, const Leaf* leaf) noexcept nogil:
        """The score of the undivided leaf."""
        cdef Sums total = sums_of(leaf.total)
        if self.bounded:
            return score_at(leaf.total, leaf.value, &self.rules)
        return own_score_of(&total, &self.rules)

    cdef Split undivided(self, const Leaf* leaf) noexcept nogil:
        """The absence of a split, with the score that a split must exceed to be better than none."""
        cdef Split none
        memset(&none, 0, sizeof(Split))
        none.feature = -1
        none.gain = self.least(leaf)
        return none

    cdef double least(self, const Leaf* leaf) noexcept nogil:
        """The score that children must exceed before any price is paid."""
        return least_score(self.own_score(leaf), &self.rules)

    cdef void conclude(self, Leaf* leaf, const Split* found, int64_t n_found) noexcept nogil:
        """Give a leaf the best of the splits found for it, with its gain over the undivided leaf.

        In a coarse search, the promise of the leaf remains that of its cells.
        """
        cdef int64_t i
        cdef double promise = 0.0
        leaf.split = self.undivided(leaf)
        for i in range(n_found):
            if found[i].feature >= 0 and found[i].gain > leaf.split.gain:
                leaf.split = found[i]
        if leaf.split.feature < 0:
            leaf.split.gain = 0.0
        else:
            leaf.split.gain -= self.own_score(leaf)
            promise = leaf.split.gain if leaf.forced_feature < 0 else INFINITY
            leaf.split.gain -= leaf.split.second_gain
        if self.places is None:
            leaf.promise = promise

    cdef void conclude_all(self, const int32_t[::1] ids, int64_t n_shares):
        """`conclude` for each leaf, of which each share of the features has found a split."""
        cdef int64_t i
        for i in range(ids.shape[0]):
            self.conclude(&self.leaves[ids[i]], &self.found[i * n_shares], n_shares)

    # -------------------------------------------------------------------------------------- lines of all bins

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
        cdef const int64_t* line = &self.lines[leaf.line, 0]
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

    # ------------------------------------------------------------------------------------------- coarse lines

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
        if n_ids > self.scores.shape[0]:
            self.scores = np.empty((n_ids, self.all_features.shape[1]))
        with nogil, parallel(num_threads=n_threads):
            for task in prange(n_ids * n_shares, schedule="static"):
                i = task // n_shares
                first = width * (task % n_shares) // n_shares
                last = width * (task % n_shares + 1) // n_shares
                self.score(
                    &self.leaves[ids[begin + i]], features_of(features, begin + i, first), last - first,
                    &self.scores[i, first],
                )
            wait_for_all()
            for i in prange(n_ids, schedule="static"):
                self.choose(
                    &self.leaves[ids[begin + i]], features_of(features, begin + i), width, &self.scores[i, 0]
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
            self.score(leaf, features, n, &self.scores[thread, 0])
            self.choose(leaf, features, n, &self.scores[thread, 0])
            if leaf.split.feature >= 0:
                return
            first += n

    cdef void score(
        self, const Leaf* leaf, const int32_t* features, int64_t n, double* scores
    ) noexcept nogil:
        """Set the score of the best cut between cells for each of some features, after its price is paid."""
        cdef Sums total = sums_of(leaf.total)
        score_cells(
            &self.lines[leaf.line, 0], NULL, features, n, &self.places[0], self.signs, self.bits, &total,
            hessian_of_rows(&total, 1.0 if self.same else 0.5, &self.rules), &self.rules, scores,
        )
        self.pay(leaf, features, n, scores)

    cdef void score_counted(
        self, const Leaf* leaf, const int32_t* features, int64_t n, const int64_t* counts, double* scores
    ) noexcept nogil:
        """The same if the number of rows in each cell is known: both children have enough of them."""
        cdef Sums total = sums_of(leaf.total)
        cdef Rules rules = self.rules_of(leaf, True)
        score_cells(
            &self.lines[leaf.line, 0], counts, features, n, &self.places[0], self.signs, self.bits, &total,
            rules.min_hessian, &rules, scores,
        )
        self.pay(leaf, features, n, scores)

    cdef void pay(
        self, const Leaf* leaf, const int32_t* features, int64_t n, double* scores
    ) noexcept nogil:
        cdef double least = self.least(leaf)
        cdef int64_t k
        if not self.plain:
            for k in range(n):
                if features[k] >= 0:
                    scores[k] = scores[k] - self.prices[features[k]] if scores[k] > least else -INFINITY

    cdef void choose(self, Leaf* leaf, const int32_t* features, int64_t n, double* scores) noexcept nogil:
        """Put the best feature on the shortlist, and those nearly as good; of equal ones the lower."""
        cdef double[SHORTLIST] best
        cdef double top, least
        cdef int64_t k, j, n_best = 0
        leaf.split = self.undivided(leaf)
        top = largest_score(n, scores)
        if top <= leaf.split.gain:
            leaf.split.gain = leaf.promise = 0.0
            return
        leaf.promise = top - self.own_score(leaf)
        least = top - (1.0 - WORTH_A_LOOK) * leaf.promise
        for k in range(n):
            if (
                scores[k] < least or scores[k] <= leaf.split.gain
                or (n_best == SHORTLIST and scores[k] <= best[SHORTLIST - 1])
            ):
                continue
            n_best = min(n_best + 1, SHORTLIST)
            j = n_best - 1
            while j > 0 and best[j - 1] < scores[k]:
                best[j] = best[j - 1]
                leaf.shortlist[j] = leaf.shortlist[j - 1]
                j -= 1
            best[j] = scores[k]
            leaf.shortlist[j] = features[k]
        leaf.split.feature, leaf.split.gain = leaf.shortlist[0], leaf.promise
        for k in range(1, n_best):  # in ascending order, as equal gains go to the lower feature
            j = k
            while j > 0 and leaf.shortlist[j - 1] > leaf.shortlist[j]:
                leaf.shortlist[j - 1], leaf.shortlist[j] = leaf.shortlist[j], leaf.shortlist[j - 1]
                j -= 1
        for k in range(n_best, SHORTLIST):
            leaf.shortlist[k] = -1

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
        cdef int64_t n_rows = leaf.stop - leaf.start
        cdef int64_t first = leaf.start + n_rows * part // n_parts
        cdef int64_t stop = leaf.start + n_rows * (part + 1) // n_parts
        while n_columns < SHORTLIST and leaf.shortlist[n_columns] >= 0:
            columns[n_columns] = &self.columns[0, leaf.shortlist[n_columns]]
            n_columns += 1
        if first == stop:
            memset(sums, 0, SHORTLIST * CELLS * sizeof(int64_t))
            return
        sum_columns(
            n_columns, columns, &self.order[first], &self.sums[first], stop - first,
            &self.columns_scratch[thread, 0],
        )
        for k in range(n_columns):
            memcpy(
                sums + k * CELLS, &self.columns_scratch[thread, k * COPIES * CELLS], CELLS * sizeof(int64_t)
            )

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
        self, Leaf* leaf, const int32_t* features, int64_t n, double* scores
    ) noexcept nogil:
        """Make a shortlist by scores, which those on the list then lose. Return False if none is left."""
        cdef int64_t k
        cdef int j
        self.choose(leaf, features, n, scores)
        if leaf.split.feature < 0:
            return False
        for k in range(n):
            for j in range(SHORTLIST):
                if leaf.shortlist[j] >= 0 and leaf.shortlist[j] == features[k]:
                    scores[k] = -INFINITY
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
        cdef double* scores = &self.scores[thread, 0]
        cdef int64_t first = 0, n
        while first < width and best.feature < 0:
            n = min(n_drawn, width - first)
            features = self.draw(k, usable, width, first, n, key, thread)
            self.score_counted(leaf, features, n, counts, scores)
            while best.feature < 0 and self.choose_further(leaf, features, n, scores):
                best = self.best_of_rows(leaf, leaf.shortlist, SHORTLIST, True, True, thread)
            first += n
        self.conclude(leaf, &best, 1)
        leaf.promise = leaf.split.gain

    def scores_counted(self, int32_t k, const int32_t[::1] features, const int64_t[::1] counts):
        """float64[n]: `score_counted` of a leaf, which has a line."""
        cdef double[::1] scores = np.empty(features.shape[0])
        self.score_counted(&self.leaves[k], &features[0], features.shape[0], &counts[0], &scores[0])
        return scores.base

    def next_shortlist(self, int32_t k, const int32_t[::1] features, double[::1] scores):
        """`choose_further` for a leaf."""
        return self.choose_further(&self.leaves[k], &features[0], features.shape[0], &scores[0])

    def promise_no_more(self, int32_t k):
        """Let a leaf promise what its split gains, after it has looked further."""
        self.leaves[k].promise = self.leaves[k].split.gain

    # --------------------------------------------------------------------------------------------------- rows

    cpdef void find_directly(self, const int32_t[::1] ids, const int32_t[:, ::1] features, int n_threads):
        """Find the best split of each leaf from its rows: for small leaves, and if features are sampled.

        ``features`` has one list per leaf or one list for all leaves, ascending and ended by -1.
        """
        self.search_rows(ids, features, not self.apart, n_threads)

    cpdef void search_rows(
        self, const int32_t[::1] ids, const int32_t[:, ::1] features, bint exact, int n_threads
    ):
        """`find_directly`. If not ``exact``, the number of rows in a child is ignored."""
        cdef int64_t n_ids = ids.shape[0], width = features.shape[1], task, i, first, last
        cdef int64_t n_shares = min(shares_of_each(n_ids, n_threads), width)
        cdef Split* found = self.room_for(n_ids * n_shares)
        for task in prange(
            n_ids * n_shares, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
            schedule="dynamic"
        ):
            i = task // n_shares
            first = width * (task % n_shares) // n_shares
            last = width * (task % n_shares + 1) // n_shares
            found[task] = self.best_of_rows(
                &self.leaves[ids[i]], features_of(features, i, first), last - first, first == 0, exact,
                threadid(),
            )
        self.conclude_all(ids, n_shares)

    cdef void find_one_directly(
        self, Leaf* leaf, const int32_t* features, int64_t width, int thread
    ) noexcept nogil:
        """`find_directly` for one leaf, by one thread."""
        cdef Split best = self.best_of_rows(leaf, features, width, True, not self.apart, thread)
        self.conclude(leaf, &best, 1)

    cdef void find_in_all_rows(
        self, Leaf* leaf, const int32_t* features, int64_t width, int thread
    ) noexcept nogil:
        """The same, exactly."""
        cdef Split best = self.best_of_rows(leaf, features, width, True, True, thread)
        self.conclude(leaf, &best, 1)

    cdef Split best_of_rows(
        self, const Leaf* leaf, const int32_t* features, int64_t width, bint is_first, bint exact, int thread
    ) noexcept nogil:
        """The best split by a share of the features. If only one is allowed, the first share searches it."""
        cdef Split best = self.undivided(leaf)
        if leaf.forced_feature < 0:
            self.scan_rows(leaf, features, width, exact, thread, &best)
        elif is_first:
            self.scan_rows(leaf, &leaf.forced_feature, 1, exact, thread, &best)
        return best

    cdef void draw_and_find(
        self, int32_t k, const int32_t* usable, int64_t width, int64_t n_drawn, uint64_t key, int thread
    ) noexcept nogil:
        """Find the best split of a leaf from its rows, by features that it draws from ``width`` usable ones.

        The draw depends on ``key`` and on the number of the leaf. The leaf draws ``n_drawn`` features, and
        again as many until one gives a split, both of whose children have enough rows.
        """
        cdef Leaf* leaf = &self.leaves[k]
        cdef Split found
        cdef const int32_t* features
        cdef int64_t first = 0, n
        cdef bint few = self.plain and leaf.total.count <= FEW and leaf.quiet_start == leaf.quiet_stop
        cdef bint exact = not self.apart or few  # scan_few counts the rows as it goes
        while first < width:
            n = min(n_drawn, width - first)
            features = self.draw(k, usable, width, first, n, key, thread)
            found = self.undivided(leaf)
            self.scan_rows(leaf, features, n, exact, thread, &found)
            self.conclude(leaf, &found, 1)
            if not exact:
                self.verify_one(leaf, features, n, thread)
            if leaf.split.feature >= 0:
                return
            first += n

    cdef const int32_t* draw(
        self, int32_t k, const int32_t* usable, int64_t width, int64_t first, int64_t n, uint64_t key,
        int thread,
    ) noexcept nogil:
        """The next ``n`` features that a leaf draws after its ``first`` ones, in ascending order."""
        cdef int32_t* features = &self.drawn[thread, 0]
        if first == 0:
            memcpy(features, usable, width * sizeof(int32_t))
        if n < width:
            draw_some(
                features, first, first + n, width, key, <uint64_t>k, &self.marks[thread, 0], self.mark_words
            )
        return features + first

    cdef void scan_rows(
        self, const Leaf* leaf, const int32_t* features, int64_t width, bint exact, int thread, Split* best,
    ) noexcept nogil:
        """Find the best split of a leaf by some features, in ascending order, from its rows.

        If not ``exact``, quiet rows are left out, and the number of rows in a child is ignored.
        """
        cdef int64_t n_rows = leaf.total.count if exact else leaf.stop - leaf.start, step, first = 0
        cdef double price
        cdef Split room
        cdef Split* own
        while width > 0 and features[width - 1] < 0:
            width -= 1
        if self.plain and n_rows <= FEW:
            self.scan_few(leaf, features, width, exact, thread, best)
            return
        step = 1 if self.is_long else SHORTLIST if not exact or self.same else self.group
        while first < width:
            if self.is_long:
                price = self.prices[features[first]]
                own = before_price(best, price, self.least(leaf), &room)
                self.scan_long(
                    leaf, features[first], exact, &self.cells[thread, 0], &self.touched[thread, 0], own
                )
                after_price(own, price, best)
            elif not exact or self.same:
                self.scan_columns(leaf, features + first, min(step, width - first), exact, thread, best)
            else:
                self.scan_group(leaf, features + first, min(step, width - first), thread, best)
            first += step

    cdef void scan_few(
        self, const Leaf* leaf, const int32_t* features, int64_t width, bint exact, int thread, Split* best
    ) noexcept nogil:
        """Find the best split of a leaf of few rows by some features; see few.h."""
        cdef FewRows own
        cdef FewCut cut
        cdef Sums total = sums_of(leaf.total)
        cdef Rules rules = self.rules_of(leaf, exact)
        own.exact, own.bits = exact, self.bits
        own.n, own.n_quiet = leaf.stop - leaf.start, leaf.quiet_stop - leaf.quiet_start if exact else 0
        own.sum = <int64_t>(<uint64_t>leaf.total.gradient << self.bits) + leaf.total.hessian
        own.rows, own.sums = &self.order[leaf.start], &self.sums[leaf.start]
        own.quiet = &self.order[leaf.quiet_start]
        own.cells, own.touched = <FewCell*>&self.cells[thread, 0], &self.touched[thread, 0]
        own.words, own.n_words = own.touched + 64 * self.n_words, self.n_words
        cut.score, cut.feature = best.gain, -1
        best_of_few(
            self.is_long, &own, width, features, &self.columns[0, 0], self.columns.strides[1], self.by_row,
            &self.offsets[0], &total, &rules, &cut,
        )
        if cut.feature < 0:
            return
        memset(best, 0, sizeof(Split))
        best.gain, best.feature, best.code = cut.score, cut.feature, cut.code
        best.missing_left, best.direction = cut.missing_left, 1
        best.left.gradient = cut.left >> self.bits
        best.left.hessian = <uint32_t>(cut.left & ((<int64_t>1 << self.bits) - 1))
        best.left.count = cut.n_left

    cdef void scan_columns(
        self, const Leaf* leaf, const int32_t* features, int64_t width, bint exact, int thread, Split* best
    ) noexcept nogil:
        """Sum the rows of a leaf by the codes of a few features, one number per bin, and scan these bins."""
        cdef const uint8_t* columns[SHORTLIST]
        cdef int64_t j
        for j in range(width):
            columns[j] = &self.columns[0, features[j]]
        sum_columns(
            <int>width, columns, &self.order[leaf.start], &self.sums[leaf.start], leaf.stop - leaf.start,
            &self.columns_scratch[thread, 0],
        )
        for j in range(width):
            self.scan_sums(
                leaf, features[j], &self.columns_scratch[thread, j * COPIES * CELLS], NULL, exact, best
            )

    cdef void scan_group(
        self, const Leaf* leaf, const int32_t* features, int64_t width, int thread, Split* best
    ) noexcept nogil:
        """Fill the bins of some features from all rows of a leaf, scan them, and set them back to zero."""
        cdef uint64_t[4 * GROUP] touched
        cdef int64_t i, j
        cdef bint few = leaf.total.count <= REMEMBERED
        cdef uint64_t bits
        cdef Bin* cells = &self.cells[thread, 0]
        cdef Bin* own
        if few:
            memset(touched, 0, 4 * width * sizeof(uint64_t))
        i = 0
        while i < width:
            self.add_columns(
                leaf, features + i, min(COLUMNS, width - i), cells + i * CELLS,
                &touched[4 * i] if few else NULL,
            )
            i += COLUMNS
        for j in range(width):
            own = cells + j * CELLS
            self.scan(own, features[j], leaf, &touched[4 * j] if few else NULL, True, best)
            if few:
                for i in range(4):
                    bits = touched[4 * j + i]
                    while bits:
                        memset(own + i * 64 + lowest_bit(bits), 0, sizeof(Bin))
                        bits &= bits - 1
            else:
                memset(own, 0, (self.offsets[features[j] + 1] - self.offsets[features[j]]) * sizeof(Bin))

    cdef void add_columns(
        self, const Leaf* leaf, const int32_t* features, int64_t width, Bin* cells, uint64_t* touched
    ) noexcept nogil:
        """Add all rows of a leaf to the bins of a few features."""
        cdef CodesOfFeature[COLUMNS] of
        cdef int64_t i, j, row, n_rows = leaf.stop - leaf.start, ahead = CODES_AHEAD // width
        cdef Bin sum
        cdef uint8_t code
        for j in range(width):
            of[j] = self.codes_of(leaf, features[j])
            fetch_each(of[j].column, of[j].step, &self.order[0] + leaf.start, min(ahead, n_rows))
        for i in range(leaf.start, leaf.stop):
            row = self.order[i]
            sum = widened(self.sums[i], self.bits, self.same)
            if i + ahead < leaf.stop:
                for j in range(width):
                    fetch_each(of[j].column, of[j].step, &self.order[i + ahead], 1)
            for j in range(width):
                code = <uint8_t>code_of(False, &of[j], row)
                bin_add(cells + j * CELLS + code, &sum)
                if touched != NULL:
                    touched[4 * j + (code >> 6)] |= (<uint64_t>1) << (code & 63)
        for i in range(leaf.quiet_start, leaf.quiet_stop):
            for j in range(width):
                code = <uint8_t>code_of(False, &of[j], self.order[i])
                cells[j * CELLS + code].count += 1
                if touched != NULL:
                    touched[4 * j + (code >> 6)] |= (<uint64_t>1) << (code & 63)

    cdef void scan_long(
        self, const Leaf* leaf, int64_t f, bint exact, Bin* cells, uint64_t* touched, Split* best
    ) noexcept nogil:
        """Try every split of a leaf by one feature whose codes are long, from the leaf's rows.

        There is a cell for each bin, but the rows of the leaf may touch only a few of them: see touching.h.
        The touched cells are visited in ascending order, and set back to zero.
        """
        cdef int32_t n_bins = self.n_bins(f), n = 0, side
        cdef int64_t n_words = (n_bins >> 12) + 1, w, word, code
        cdef uint64_t* words = touched + 64 * n_words
        cdef uint64_t more, bits
        cdef Prefix prefix
        cdef Split[2] sides
        cdef Leaf valued
        cdef Case whole = self.case_of(leaf, f, exact), case = whole
        cdef bint three_way
        cdef Bin missing, running
        self.add_column(leaf, f, exact, n_bins, cells, touched, words)
        if self.is_categorical[f]:
            scan_categories(cells, n_bins, &whole, best)
            memset(cells, 0, (n_bins + 1) * sizeof(Bin))
            memset(touched, 0, 65 * n_words * sizeof(uint64_t))
            return
        missing = cells[n_bins]
        memset(cells + n_bins, 0, sizeof(Bin))
        sides[0] = sides[1] = best[0]
        three_way = self.three_way and missing.count
        if three_way:
            valued = self.valued(leaf, missing)
            case = self.case_of(&valued, f, exact)
            sides[0] = self.undivided(&valued)
            memset(&missing, 0, sizeof(Bin))
        memset(&running, 0, sizeof(Bin))
        for w in range(n_words):
            more = words[w]
            words[w] = 0
            while more:
                word = 64 * w + lowest_bit(more)
                more &= more - 1
                bits = touched[word]
                touched[word] = 0
                while bits:
                    code = 64 * word + lowest_bit(bits)
                    bits &= bits - 1
                    n = append(&prefix, n, &running, cells + code, <uint32_t>code)
                    memset(cells + code, 0, sizeof(Bin))
                    if n == CELLS:
                        for side in range(first_side(missing, &case), stop_of_sides(missing, &case)):
                            scan_side(&prefix, 0, n - 1, side, missing, 1, &case, &sides[side])
                        keep_last(&prefix, n)
                        n = 1
        close(&prefix, n, running.count, n_bins)
        if missing.count and may_be_below(&case):
            scan_whether(&prefix, missing, -1, &case, best)
        for side in range(first_side(missing, &case), stop_of_sides(missing, &case)):
            scan_side(&prefix, 0, n_cuts(&prefix, side, missing), side, missing, 1, &case, &sides[side])
            if not three_way and sides[side].gain > best.gain:
                best[0] = sides[side]
        if three_way:
            self.join(&prefix, &whole, &valued, &sides[0], best)
        elif not exact and best.feature == f and missing.count == 0:
            best.missing_left = case.rules.first_side  # see n_left_of

    cdef void add_column(
        self, const Leaf* leaf, int64_t f, bint exact, int32_t n_bins, Bin* cells, uint64_t* touched,
        uint64_t* words,
    ) noexcept nogil:
        """Add the rows of a leaf to the bins of one feature whose codes are long."""
        cdef CodesOfFeature of = self.codes_of(leaf, f)
        cdef int64_t n_rows = leaf.stop - leaf.start
        cdef int64_t n_quiet = leaf.quiet_stop - leaf.quiet_start if exact else 0
        cdef Touchable line
        line.cells, line.touched, line.words = cells, touched, words
        line.all_cells = 2 * (n_rows + n_quiet) > n_bins
        line.all_words = 32 * (n_rows + n_quiet) > n_bins
        if line.all_cells:
            memset(touched, 255, ((n_bins >> 6) + 1) * sizeof(uint64_t))
        if line.all_words:
            memset(words, 255, ((n_bins >> 12) + 1) * sizeof(uint64_t))
        add_touching(
            &line, &of, &self.order[leaf.start], &self.sums[leaf.start], n_rows, self.bits, self.same
        )
        count_touching(&line, &of, &self.order[leaf.quiet_start], n_quiet)

    cdef CodesOfFeature codes_of(self, const Leaf* leaf, int64_t f) noexcept nogil:
        """The codes of a feature: by row if the leaf has few of the tree's rows, far apart in a column."""
        cdef bint few = leaf.total.count < self.order.shape[0] // 8
        return find_codes(self.is_long, &self.columns[0, f], self.by_row if few else NULL, f)

    cpdef void verify(self, const int32_t[::1] ids, const int32_t[:, ::1] features, int n_threads):
        """Search leaves again, in all rows, if their splits leave a child with too few rows.

        ``features`` has one list per leaf or one list for all leaves, ended by -1.
        """
        cdef int64_t i
        for i in prange(
            ids.shape[0], nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
        ):
            self.verify_one(
                &self.leaves[ids[i]], features_of(features, i), features.shape[1], threadid()
            )

    cdef void verify_one(
        self, Leaf* leaf, const int32_t* features, int64_t width, int thread
    ) noexcept nogil:
        if leaf.split.feature >= 0 and not self.is_confirmed(leaf):
            self.find_in_all_rows(leaf, features, width, thread)

    cdef bint is_confirmed(self, const Leaf* leaf) noexcept nogil:
        cdef int64_t n_left
        if self.rules.min_samples_leaf <= 1.0:  # each child has a row that is not quiet, which is enough
            return True
        n_left = self.n_left_of(leaf)
        return min(n_left, leaf.total.count - n_left) >= self.rules.min_samples_leaf

    cdef int64_t n_left_of(self, const Leaf* leaf) noexcept nogil:
        """The number of this rank's rows that the split of a leaf sends left.

        If only quiet rows of the leaf lack a value, these rows go right, unless rows without a value always
        go left.
        """
        cdef int64_t f = leaf.split.feature
        cdef int32_t also = -1
        if leaf.split.missing_left:
            also = self.n_bins(f)
        return count_left(
            self.is_long, &self.columns[0, f], <int32_t>leaf.split.code, also, &self.order[leaf.start],
            leaf.stop - leaf.start,
        ) + count_left(
            self.is_long, &self.columns[0, f], <int32_t>leaf.split.code, also, &self.order[leaf.quiet_start],
            leaf.quiet_stop - leaf.quiet_start,
        )

    def count_left_of(self, const int32_t[::1] ids, int n_threads):
        """int64[n]: the number of this rank's rows that each leaf's split sends left; 0 without a split."""
        cdef int64_t[::1] counts = np.zeros(ids.shape[0], np.int64)
        cdef int64_t i
        for i in prange(
            ids.shape[0], nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
        ):
            if self.leaves[ids[i]].split.feature >= 0:
                counts[i] = self.n_left_of(&self.leaves[ids[i]])
        return counts.base

    def fill(self, const int32_t[::1] ids, const int32_t[:, ::1] features, int n_threads):
        """BIN records, shape (n, width, 256): the bins of some features, filled from all rows of this rank.

        ``features`` has one list per leaf or one list for all leaves, with -1 for features to leave out.
        """
        cdef int64_t n = ids.shape[0], width = features.shape[1], task, i, j
        records = np.zeros((n, width, CELLS), BIN)
        cdef Bin[:, :, ::1] cells = records
        cdef const int32_t* own
        for task in prange(
            n * width, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
        ):
            i = task // width
            j = task % width
            own = features_of(features, i, j)
            if own[0] >= 0:
                self.add_columns(&self.leaves[ids[i]], own, 1, &cells[i, j, 0], NULL)
        return records

    def scan_filled(self, const int32_t[::1] ids, const int32_t[:, ::1] features, const Bin[:, :, ::1] cells):
        """Find the best split of each leaf from bins that hold all rows."""
        cdef Split best
        cdef Leaf* leaf
        cdef int64_t i, j
        cdef const int32_t* own
        for i in range(ids.shape[0]):
            leaf = &self.leaves[ids[i]]
            own = features_of(features, i)
            best = self.undivided(leaf)
            for j in range(features.shape[1]):
                if own[j] >= 0 and (leaf.forced_feature < 0 or leaf.forced_feature == own[j]):
                    self.scan(&cells[i, j, 0], own[j], leaf, NULL, True, &best)
            self.conclude(leaf, &best, 1)

    # -------------------------------------------------------------------------------------------- one feature

    cdef void scan_sums(
        self, const Leaf* leaf, int64_t f, const int64_t* sums, const int64_t* counts, bint exact, Split* best
    ) noexcept nogil:
        """Try every split of a leaf by one feature whose bins hold one number each.

        If the numbers of rows in the bins are given, the search is exact.
        """
        cdef Bin[CELLS] wide
        cdef int32_t n_bins = self.n_bins(f), code
        cdef Rules rules = self.rules_of(leaf, exact)
        cdef Sums total = sums_of(leaf.total)
        if self.bounded or self.three_way or self.is_categorical[f] or may_beat(
            sums, n_bins, self.bits, &total, &rules, to_beat(best.gain, self.prices[f], self.least(leaf))
        ):
            widen_cells(n_bins + 1, sums, self.bits, self.same, wide)
            if counts != NULL:
                for code in range(n_bins + 1):
                    wide[code].count = <uint32_t>counts[code]
            self.scan(wide, f, leaf, NULL, exact or counts != NULL, best)

    cdef void scan(
        self, const Bin* cells, int64_t f, const Leaf* leaf, const uint64_t* touched, bint exact, Split* best,
    ) noexcept nogil:
        """Try every split of a leaf by one feature. ``touched``, if given, marks the bins that hold rows."""
        cdef Prefix prefix
        cdef Case case = self.case_of(leaf, f, exact)
        cdef int32_t n_bins = self.n_bins(f)
        cdef Bin missing = cells[n_bins]
        cdef double price = self.prices[f]
        cdef Split room
        cdef Split* own = before_price(best, price, self.least(leaf), &room)
        if self.is_categorical[f]:
            scan_categories(cells, n_bins, &case, own)
        else:
            if touched != NULL:
                accumulate_touched(cells, touched, n_bins, &prefix)
            else:
                accumulate(cells, n_bins, &prefix)
            if self.three_way and missing.count:
                self.scan_three_ways(&prefix, missing, &case, exact, own)
            else:
                scan_values(&prefix, missing, &case, own)
                if not exact and own.feature == f and missing.count == 0:
                    own.missing_left = case.rules.first_side  # see n_left_of
        after_price(own, price, best)

    cdef void scan_three_ways(
        self, const Prefix* prefix, Bin missing, const Case* case, bint exact, Split* best
    ) noexcept nogil:
        """Try to part the rows without a value from the others, and the others at their best cut."""
        cdef Leaf valued = self.valued(case.leaf, missing)
        cdef Case own = self.case_of(&valued, case.feature, exact)
        cdef Split cut = self.undivided(&valued)
        memset(&missing, 0, sizeof(Bin))
        scan_values(prefix, missing, &own, &cut)
        self.join(prefix, case, &valued, &cut, best)

    cdef Leaf valued(self, const Leaf* leaf, Bin missing) noexcept nogil:
        """The leaf as it would be without its rows that have no value."""
        cdef Leaf valued = leaf[0]
        valued.total = minus(leaf.total, missing)
        valued.value = best_value(
            valued.total, leaf.lower, leaf.upper, self.rules.l2, self.rules.gradient_unit,
            self.rules.hessian_unit,
        )
        return valued

    cdef void join(
        self, const Prefix* prefix, const Case* case, const Leaf* valued, const Split* cut, Split* best
    ) noexcept nogil:
        """Try to part the rows without a value from the others, whose best cut is given.

        If the tree may not get that much deeper, or no cut of the others gains anything, only the first of
        the two splits is tried.
        """
        cdef Split whether
        whether.gain = -INFINITY
        whether.feature = -1
        scan_whether(prefix, minus(case.leaf.total, valued.total), 0, case, &whether)
        if whether.feature < 0:
            return
        if cut.feature >= 0 and case.leaf.splits_below > 1:
            whether.second_gain = cut.gain - self.own_score(valued)
            whether.gain += whether.second_gain
        if whether.gain > best.gain:
            best[0] = whether
