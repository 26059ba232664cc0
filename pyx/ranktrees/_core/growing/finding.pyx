"""Find the best split of each leaf from its rows.

    leaves          find_directly; verify, which searches leaves again if a child gets too few rows
    one leaf        find_one_directly; draw_and_find, which lets the leaf draw its features
    rows -> bins    of one feature or of several at a time, which a `Scanner` then scans

If quiet rows are set apart, a search leaves them out, and rows are not counted. Such a search is not *exact*:
if the rows of a child turn out to be too few once they are counted, the leaf is searched again, exactly, from
all rows.

All searches scan one feature after the other. Equal gains go to the lower feature, then to the lower code.
`LineFinder` and `CoarseFinder` search lines, and search rows if there is no line.
"""
import numpy as np

from ranktrees._core.support.dtypes import BIN, SPLIT
from ranktrees._core.support.threads import room_for_each

from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from ranktrees._core.growing.gains cimport Rules, Sums, sums_of
from ranktrees._core.growing.scanning cimport CELLS, Scanner
from ranktrees._core.support.code_columns cimport (
    AllColumns, CodeColumns, column_with, spread_bins, spread_sums,
)
from ranktrees._core.support.records cimport SHORTLIST, Bin, Leaf, Split, shares_of_each
from ranktrees._core.support.views cimport bytes_in, line_in, run_in

cdef extern from "support/bins.h" nogil:
    void bin_add(void* cell, const void* row)
    int lowest_bit(uint64_t bits)
    Bin widened(int64_t sum, int bits, int same)

cdef extern from "growing/columns.h" nogil:
    enum: COPIES
    void sum_columns(
        int n_columns, const uint8_t** columns, const uint32_t* rows, const int64_t* sums, int64_t n,
        int64_t* cells,
    ) noexcept

cdef extern from "support/codes.h" nogil:
    CodesOfFeature find_codes(const AllColumns* all, const CodesByRow* by_row, int64_t feature)
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
        double gain
        int32_t feature
        uint32_t code
        int64_t left
        uint32_t n_left
        int missing_left
    void best_of_few(
        const FewRows* leaf, int64_t n_features, const int32_t* features, const AllColumns* columns,
        const CodesByRow* by_row, const int64_t* offsets, const Sums* total, const Rules* rule, FewCut* best,
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

cdef enum:
    GROUP = 128  # the most features whose bins are kept and scanned together
    COLUMNS = 8  # how many of these are filled together: 32 KiB of cells
    REMEMBERED = 128  # with at most this many rows, the bins that they touch are remembered


cdef class Finder(Scanner):
    """Finds the best splits of leaves from their rows.

    It holds the views of a fit: taking them for each leaf would take longer than searching a small leaf.

    Parameters
    ----------
    codes : Codes, or ndarray of uint8 or uint32, shape (n_rows, n_features), feature by feature
    by_row : Packing, LongCodes or None
        The same codes row by row, if available. All features of a few rows then lie close together.
    mapper, constraints, prices
        As for `Scanner`. If these constrain nothing and all prices are and stay 0, small leaves take less
        time.
    order : ndarray of uint32, shape (n_rows,)
    sums : ndarray of int64, shape (n_rows,)
    n_threads : int
        The maximum number of threads of a call.
    """

    def __init__(self, codes, by_row, mapper, constraints, prices, order, sums, int n_threads):
        super().__init__(mapper, constraints, prices)
        self.columns = CodeColumns(codes)
        self.is_long = self.columns.all.is_long
        self.by_row = NULL
        if by_row is not None and len(order):
            self.row_bytes, self.row_places, self.row_codes = by_row.bytes, by_row.byte_of, by_row.cell_of
            self.bytes_by_row.bytes = bytes_in(self.row_bytes)
            self.bytes_by_row.step = self.row_bytes.strides[0]
            self.bytes_by_row.n_bytes = self.row_bytes.shape[1]
            self.bytes_by_row.byte_of = run_in(self.row_places, 0)
            self.bytes_by_row.code_of = line_in(self.row_codes, 0)
            self.by_row = &self.bytes_by_row
        self.order, self.sums = order, sums
        self.plain = (
            constraints.missing == "learned" and prices.all_free and not self.bounded
            and not np.any(mapper.is_categorical)
        )
        n_features, n_columns = codes.shape[1], 0
        if self.columns.n_joint:
            n_columns = codes.columns.shape[1]
        self.joint_sums = np.zeros((n_threads, n_columns, CELLS + 1), np.int64)
        self.joint_bins = np.zeros((n_threads, n_columns, CELLS + 1), BIN)
        self.joint_counts = np.zeros((n_threads, n_columns, CELLS), np.uint32)
        self.summed, self.filled, self.counted = np.zeros((3, n_threads, n_columns), np.int64)
        self.splittable = room_for_each(n_threads, n_features if n_columns else 0, np.int32)
        self.scans = room_for_each(n_threads, 1, np.int64)
        n_words = (np.diff(mapper.offsets).max(initial=0) + 4095) // 4096
        self.n_words = n_words
        self.touched = room_for_each(n_threads, 65 * n_words, np.uint64)
        n_cells = 4096 * n_words if self.is_long else min(n_features, GROUP) * CELLS
        self.cells = room_for_each(n_threads, n_cells, BIN)
        self.columns_scratch = room_for_each(n_threads, SHORTLIST * COPIES * CELLS, np.int64)
        self.drawn = room_for_each(n_threads, n_features, np.int32)
        self.mark_words = n_features // 64 + 1
        self.marks = room_for_each(n_threads, self.mark_words, np.uint64)
        self.found = self.found_records = np.empty(64, SPLIT)

    def attach(self, leaves):
        """Use these leaves."""
        self.leaves = leaves

    def begin(
        self, rows, double l2, double min_gain, uint32_t min_samples_leaf, uint32_t min_hessian,
        bint apart=False,
    ):
        """Begin a new tree, as `Scanner.begin`.

        If quiet rows are set ``apart``, splits are searched in the other rows, and the rows of the children
        are counted afterwards.
        """
        Scanner.begin(self, rows, l2, min_gain, min_samples_leaf, min_hessian)
        self.apart = apart and not self.same

    # -------------------------------------------------------------------------------------------- conclusions

    cdef Split* room_for(self, int64_t n):
        if n > self.found.shape[0]:
            self.found = self.found_records = np.empty(2 * n, SPLIT)
        return &self.found[0]

    cdef void conclude(self, Leaf* leaf, const Split* found, int64_t n_found) noexcept nogil:
        """Give a leaf the best of the splits found for it, with its gain over the undivided leaf."""
        cdef int64_t i
        leaf.promise = 0.0
        leaf.split = self.undivided(leaf)
        for i in range(n_found):
            if found[i].feature >= 0 and found[i].gain > leaf.split.gain:
                leaf.split = found[i]
        if leaf.split.feature < 0:
            leaf.split.gain = 0.0
        else:
            leaf.split.gain -= self.undivided_gain(leaf)
            leaf.promise = leaf.split.gain if leaf.forced_feature < 0 else INFINITY
            leaf.split.gain -= leaf.split.second_gain

    cdef void conclude_all(self, const int32_t[::1] ids, int64_t n_shares):
        """`conclude` for each leaf, of which each share of the features has found a split."""
        cdef int64_t i
        for i in range(ids.shape[0]):
            self.conclude(&self.leaves[ids[i]], &self.found[i * n_shares], n_shares)

    # ------------------------------------------------------------------------------------------------- leaves

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

    # ----------------------------------------------------------------------------------------------- one leaf

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

    # ------------------------------------------------------------------------------------------- rows -> bins

    cdef void scan_rows(
        self, const Leaf* leaf, const int32_t* features, int64_t width, bint exact, int thread, Split* best,
    ) noexcept nogil:
        """Find the best split of a leaf by some features, in ascending order, from its rows.

        If not ``exact``, quiet rows are left out, and the number of rows in a child is ignored.
        """
        cdef int64_t n_rows = leaf.total.count if exact else leaf.stop - leaf.start, step, first = 0
        self.scans[thread, 0] += 1
        while width > 0 and features[width - 1] < 0:
            width -= 1
        if self.columns.n_joint:
            width = self.keep_splittable(leaf, features, width, exact, thread)
            features = &self.splittable[thread, 0]
        if self.plain and n_rows <= FEW:
            self.scan_few(leaf, features, width, exact, thread, best)
            return
        step = 1 if self.is_long else SHORTLIST if not exact or self.same else GROUP
        while first < width:
            if self.is_long:
                self.add_column(
                    leaf, features[first], exact, &self.cells[thread, 0], &self.touched[thread, 0]
                )
                self.scan_long(
                    &self.cells[thread, 0], features[first], leaf, &self.touched[thread, 0], exact, best
                )
            elif not exact or self.same:
                self.scan_columns(leaf, features + first, min(step, width - first), exact, thread, best)
            else:
                self.scan_group(leaf, features + first, min(step, width - first), thread, best)
            first += step

    cdef void scan_few(
        self, const Leaf* leaf, const int32_t* features, int64_t width, bint exact, int thread, Split* best
    ) noexcept nogil:
        """Find the best split of a leaf of few rows by some features; see few.h."""
        cdef FewRows few
        cdef FewCut cut
        cdef Sums total = sums_of(leaf.total)
        cdef Rules rules = self.rules_of(leaf, exact)
        few.exact, few.bits = exact, self.bits
        few.n, few.n_quiet = leaf.stop - leaf.start, leaf.quiet_stop - leaf.quiet_start if exact else 0
        few.sum = <int64_t>(<uint64_t>leaf.total.gradient << self.bits) + leaf.total.hessian
        few.rows, few.sums = run_in(self.order, leaf.start), run_in(self.sums, leaf.start)
        few.quiet = run_in(self.order, leaf.quiet_start)
        few.cells, few.touched = <FewCell*>&self.cells[thread, 0], &self.touched[thread, 0]
        few.words, few.n_words = few.touched + 64 * self.n_words, self.n_words
        cut.gain, cut.feature = best.gain, -1
        best_of_few(
            &few, width, features, &self.columns.all, self.by_row, run_in(self.offsets, 0), &total, &rules,
            &cut
        )
        if cut.feature < 0:
            return
        memset(best, 0, sizeof(Split))
        best.gain, best.feature, best.code = cut.gain, cut.feature, cut.code
        best.missing_left, best.direction = cut.missing_left, 1
        best.left.gradient = cut.left >> self.bits
        best.left.hessian = <uint32_t>(cut.left & ((<int64_t>1 << self.bits) - 1))
        best.left.count = cut.n_left

    cdef void scan_columns(
        self, const Leaf* leaf, const int32_t* features, int64_t width, bint exact, int thread, Split* best
    ) noexcept nogil:
        """Sum the rows of a leaf by the codes of a few features, one number per bin, and scan these bins."""
        cdef const uint8_t* columns[SHORTLIST]
        cdef int64_t[CELLS] spread
        cdef int64_t* sums
        cdef int64_t j
        cdef int n_own = 0
        for j in range(width):
            if not self.is_joint(features[j]):
                columns[n_own] = column_with(&self.columns.all, features[j])
                n_own += 1
        sums = &self.columns_scratch[thread, 0]
        if n_own:
            sum_columns(
                n_own, columns, run_in(self.order, leaf.start), run_in(self.sums, leaf.start),
                leaf.stop - leaf.start, sums
            )
        for j in range(width):
            if self.is_joint(features[j]):
                self.sum_joint(leaf, features[j], thread, spread)
                self.scan_sums(leaf, features[j], spread, NULL, exact, best)
            else:
                self.scan_sums(leaf, features[j], sums, NULL, exact, best)
                sums += COPIES * CELLS

    cdef int64_t keep_splittable(
        self, const Leaf* leaf, const int32_t* features, int64_t width, bint exact, int thread
    ) noexcept nogil:
        """Keep the features that may part the rows of a leaf: of those that share columns, few may.

        A child with rows of unusual codes only must be large enough; at least one row must not be quiet.
        """
        cdef int32_t* kept = &self.splittable[thread, 0]
        cdef double least = max(1.0, self.rules.min_samples_leaf) if exact else 1.0
        cdef int64_t k, n = 0
        for k in range(width):
            kept[n] = features[k]
            if not self.is_joint(features[k]) or self.n_unusual(leaf, features[k], exact, thread) >= least:
                n += 1
        return n

    cdef int64_t n_unusual(self, const Leaf* leaf, int64_t f, bint exact, int thread) noexcept nogil:
        """The number of rows of a leaf with unusual codes, quiet ones included if ``exact``."""
        cdef const AllColumns* all = &self.columns.all
        cdef int32_t c = all.column_of[f], j = all.joint_of[f]
        cdef uint32_t* counts = &self.joint_counts[thread, c, 0]
        cdef const uint8_t* column
        cdef int64_t i, n = 0
        if self.counted[thread, c] != self.scans[thread, 0]:
            self.counted[thread, c] = self.scans[thread, 0]
            column = column_with(all, f)
            memset(counts, 0, CELLS * sizeof(uint32_t))
            for i in range(leaf.start, leaf.stop):
                counts[column[self.order[i]]] += 1
            for i in range(leaf.quiet_start, leaf.quiet_stop if exact else leaf.quiet_start):
                counts[column[self.order[i]]] += 1
        for i in range(all.first_pair[j], all.first_pair[j + 1]):
            n += counts[all.values[i]]
        return n

    cdef bint is_joint(self, int64_t f) noexcept nogil:
        """Whether a feature shares its column with others."""
        return self.columns.all.joint_of[f] >= 0

    cdef void sum_joint(self, const Leaf* leaf, int64_t f, int thread, int64_t* cells) noexcept nogil:
        """Set the sums of the bins of a feature that shares its column; of that column once in a scan."""
        cdef const AllColumns* all = &self.columns.all
        cdef int32_t c = all.column_of[f]
        cdef int64_t* sums = &self.joint_sums[thread, c, 0]
        cdef const uint8_t* column
        cdef int64_t i
        if self.summed[thread, c] != self.scans[thread, 0]:
            self.summed[thread, c] = self.scans[thread, 0]
            column = column_with(all, f)
            memset(sums, 0, (CELLS + 1) * sizeof(int64_t))
            for i in range(leaf.start, leaf.stop):
                sums[column[self.order[i]]] += self.sums[i]
                sums[CELLS] += self.sums[i]
        spread_sums(all, f, sums, sums[CELLS], self.n_bins(f) + 1, cells)

    cdef void fill_joint(self, const Leaf* leaf, int64_t f, int thread, Bin* cells) noexcept nogil:
        """Fill the bins of a feature that shares its column from all rows of a leaf."""
        cdef const AllColumns* all = &self.columns.all
        cdef int32_t c = all.column_of[f]
        cdef Bin* bins = &self.joint_bins[thread, c, 0]
        cdef const uint8_t* column
        cdef Bin sum
        cdef int64_t i
        if self.filled[thread, c] != self.scans[thread, 0]:
            self.filled[thread, c] = self.scans[thread, 0]
            column = column_with(all, f)
            memset(bins, 0, (CELLS + 1) * sizeof(Bin))
            for i in range(leaf.start, leaf.stop):
                sum = widened(self.sums[i], self.bits, self.same)
                bin_add(&bins[column[self.order[i]]], &sum)
            for i in range(leaf.quiet_start, leaf.quiet_stop):
                bins[column[self.order[i]]].count += 1
            for i in range(CELLS):
                bin_add(&bins[CELLS], &bins[i])
        spread_bins(all, f, bins, bins[CELLS], self.n_bins(f) + 1, cells)

    cdef void scan_group(
        self, const Leaf* leaf, const int32_t* features, int64_t width, int thread, Split* best
    ) noexcept nogil:
        """Fill the bins of some features from all rows of a leaf, scan them, and set them back to zero."""
        cdef uint64_t[4 * GROUP] touched
        cdef Bin[CELLS] spread
        cdef int32_t[GROUP] own_features
        cdef int64_t i, j, n_own = 0
        cdef bint few = leaf.total.count <= REMEMBERED
        cdef uint64_t bits
        cdef Bin* cells = &self.cells[thread, 0]
        cdef Bin* bins
        for j in range(width):
            if not self.is_joint(features[j]):
                own_features[n_own] = features[j]
                n_own += 1
        if few:
            memset(touched, 0, 4 * n_own * sizeof(uint64_t))
        i = 0
        while i < n_own:
            self.add_columns(
                leaf, own_features + i, min(COLUMNS, n_own - i), cells + i * CELLS,
                &touched[4 * i] if few else NULL,
            )
            i += COLUMNS
        n_own = 0
        for j in range(width):
            if self.is_joint(features[j]):
                self.fill_joint(leaf, features[j], thread, spread)
                self.scan(spread, features[j], leaf, NULL, True, best)
                continue
            bins = cells + n_own * CELLS
            self.scan(bins, features[j], leaf, &touched[4 * n_own] if few else NULL, True, best)
            if few:
                for i in range(4):
                    bits = touched[4 * n_own + i]
                    while bits:
                        memset(bins + i * 64 + lowest_bit(bits), 0, sizeof(Bin))
                        bits &= bits - 1
            else:
                memset(bins, 0, (self.offsets[features[j] + 1] - self.offsets[features[j]]) * sizeof(Bin))
            n_own += 1

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
            fetch_each(of[j].column, of[j].step, run_in(self.order, leaf.start), min(ahead, n_rows))
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

    cdef void add_column(
        self, const Leaf* leaf, int64_t f, bint exact, Bin* cells, uint64_t* touched
    ) noexcept nogil:
        """Add the rows of a leaf to the bins of one feature whose codes are long: see touching.h."""
        cdef int32_t n_bins = self.n_bins(f)
        cdef uint64_t* words = touched + 64 * ((n_bins >> 12) + 1)
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
            &line, &of, run_in(self.order, leaf.start), run_in(self.sums, leaf.start), n_rows, self.bits,
            self.same
        )
        count_touching(&line, &of, run_in(self.order, leaf.quiet_start), n_quiet)

    cdef CodesOfFeature codes_of(self, const Leaf* leaf, int64_t f) noexcept nogil:
        """The codes of a feature: by row if the leaf has few of the tree's rows, far apart in a column."""
        cdef bint few = leaf.total.count < self.order.shape[0] // 8
        return find_codes(&self.columns.all, self.by_row if few else NULL, f)

    # --------------------------------------------------------------------------------------- rows of children

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
        cdef const uint8_t* column = column_with(&self.columns.all, f)
        if self.is_joint(f):
            return self.n_left_of_joint(leaf)
        if leaf.split.missing_left:
            also = self.n_bins(f)
        return count_left(
            self.is_long, column, <int32_t>leaf.split.code, also, run_in(self.order, leaf.start),
            leaf.stop - leaf.start,
        ) + count_left(
            self.is_long, column, <int32_t>leaf.split.code, also, run_in(self.order, leaf.quiet_start),
            leaf.quiet_stop - leaf.quiet_start,
        )

    cdef int64_t n_left_of_joint(self, const Leaf* leaf) noexcept nogil:
        """The same if the feature of the split shares its column: all rows have values then."""
        cdef CodesOfFeature of = find_codes(&self.columns.all, NULL, leaf.split.feature)
        cdef int64_t i, n_left = 0
        for i in range(leaf.start, leaf.stop):
            n_left += code_of(False, &of, self.order[i]) <= leaf.split.code
        for i in range(leaf.quiet_start, leaf.quiet_stop):
            n_left += code_of(False, &of, self.order[i]) <= leaf.split.code
        return n_left

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

    # --------------------------------------------------------------------------------------- bins of all rows

    def fill(self, const int32_t[::1] ids, const int32_t[:, ::1] features, int n_threads):
        """BIN records, shape (n, width, 256): the bins of some features, filled from all rows of this rank.

        ``features`` has one list per leaf or one list for all leaves, with -1 for features to leave out.
        """
        cdef int64_t n = ids.shape[0], width = features.shape[1], task, i, j
        cdef int64_t scan = np.max(self.scans) + 1  # that of the first leaf: a joint column is filled once
        records = np.zeros((n, width, CELLS), BIN)
        cdef Bin[:, :, ::1] cells = records
        cdef const int32_t* feature
        for task in prange(
            n * width, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
        ):
            i = task // width
            j = task % width
            feature = features_of(features, i, j)
            if feature[0] >= 0:
                self.fill_one(&self.leaves[ids[i]], feature, scan + i, threadid(), &cells[i, j, 0])
        return records

    cdef void fill_one(
        self, const Leaf* leaf, const int32_t* feature, int64_t scan, int thread, Bin* cells
    ) noexcept nogil:
        if self.is_joint(feature[0]):
            self.scans[thread, 0] = scan
            self.fill_joint(leaf, feature[0], thread, cells)
        else:
            self.add_columns(leaf, feature, 1, cells, NULL)

    def scan_filled(self, const int32_t[::1] ids, const int32_t[:, ::1] features, const Bin[:, :, ::1] cells):
        """Find the best split of each leaf from bins that hold all rows."""
        cdef Split best
        cdef Leaf* leaf
        cdef int64_t i, j
        cdef const int32_t* listed
        for i in range(ids.shape[0]):
            leaf = &self.leaves[ids[i]]
            listed = features_of(features, i)
            best = self.undivided(leaf)
            for j in range(features.shape[1]):
                if listed[j] >= 0 and (leaf.forced_feature < 0 or leaf.forced_feature == listed[j]):
                    self.scan(&cells[i, j, 0], listed[j], leaf, NULL, True, &best)
            self.conclude(leaf, &best, 1)
