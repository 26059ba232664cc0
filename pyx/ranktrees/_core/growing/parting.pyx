"""Split a leaf into two, and say whether each side may be split: rows are reordered in place, stably.

    order  [ ... | a b c d e f g h | ... ]      the rows of the leaf
    order  [ ... | a c d g | b e f h | ... ]    left child, right child
"""
import numpy as np

from ranktrees._core.support.dtypes import PARTED_LEAF
from ranktrees._core.support.threads import room_for_each

from cython.parallel cimport parallel, prange, threadid
from libc.math cimport INFINITY, fabs
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from ranktrees._core.support.code_columns cimport AllColumns, CodeColumns, column_with
from ranktrees._core.support.records cimport (
    Ends, Leaf, Node, PartedLeaf, Split, best_value, leaves_in, n_rows_of, nodes_in, worth_threads,
)
from ranktrees._core.support.views cimport run_in

cdef extern from "growing/parting.h" nogil:
    ctypedef struct Parted "parted":
        int64_t n_left
        int64_t lacking
    Parted part(
        int is_long, const uint8_t* column, const Way* way, int64_t n, const uint32_t* rows,
        const int64_t* sums, uint32_t* row_scratch, int64_t* sum_scratch,
    ) noexcept
    void take_rows(
        const uint32_t* scratch, int64_t n, int64_t n_left, uint32_t* left, uint32_t* right
    ) noexcept
    void take_sums(const int64_t* scratch, int64_t n, int64_t n_left, int64_t* left, int64_t* right) noexcept

cdef extern from "support/codes.h" nogil:
    enum: CODES

cdef extern from "support/threads.h" nogil:
    void wait_for_all() noexcept

cdef enum:
    FOLLOWED = 16384  # rows that are moved down a tree together
    SHARED = 8  # threads share leaves if each gets on average values_per_thread / SHARED rows of a leaf

cdef Stretch one_stretch
STRETCH = np.asarray(<Stretch[:1]> &one_stretch).dtype
cdef Ends NO_ENDS = Ends(-INFINITY, -INFINITY)  # those of no rows

# The values that rows want (-gradient / hessian) count as the same if they differ by no more than this share
# of the largest: such differences may come from rounding.
cdef double SAME = 2.0 ** -50


cdef inline bint agree(const Ends* ends) noexcept nogil:
    """Whether values between these ends are finite and the same; true if there are none."""
    cdef double size = max(fabs(ends.highest), fabs(ends.minus_lowest))
    return ends.highest + ends.minus_lowest <= (SAME * size if size < INFINITY else -INFINITY)


cdef inline void join(Ends* ends, const Ends* others) noexcept nogil:
    ends.highest = max(ends.highest, others.highest)
    ends.minus_lowest = max(ends.minus_lowest, others.minus_lowest)


cdef void find_way(const Split* split, int32_t n_bins, const AllColumns* columns, Way* way) noexcept nogil:
    """Set which values of the column go left: codes, unless the feature shares its column with others."""
    cdef int32_t code, j = columns.joint_of[split.feature]
    if j >= 0:
        way.last = -1
        way.missing, way.missing_left = CODES, 0  # no value of the column: no row lacks one
        for code in range(CODES):
            way.left[code] = columns.tables[j * CODES + code] <= split.code
        return
    way.last = -1 if split.categorical else <int32_t>split.code
    way.missing = n_bins
    way.missing_left = split.missing_left
    if split.categorical:
        for code in range(n_bins):
            way.left[code] = (split.categories[code >> 5] >> (code & 31)) & 1
        way.left[n_bins] = split.missing_left


cdef inline Piece piece_of(
    int64_t start, int64_t stop, int64_t s, int64_t n_pieces, int64_t place
) noexcept nogil:
    """One of several pieces of order[start:stop]."""
    cdef int64_t first = start + (stop - start) * s // n_pieces
    return Piece(first, start + (stop - start) * (s + 1) // n_pieces - first, place, 0)


cdef void make_children(
    const Leaf* leaf, Leaf* left, Leaf* right, int8_t monotone, double l2, double gradient_unit,
    double hessian_unit,
) noexcept nogil:
    """Set the records of two children. A monotone split bounds their values by the middle between them.

    If a second split was judged together with this one, the left child must make it.
    """
    cdef double wall
    memset(left, 0, sizeof(Leaf))
    memset(right, 0, sizeof(Leaf))
    left.start = leaf.start
    left.stop = right.start = leaf.cut
    right.stop = leaf.stop
    left.quiet_start = leaf.quiet_start
    left.quiet_stop = right.quiet_start = leaf.quiet_cut
    right.quiet_stop = leaf.quiet_stop
    left.total = leaf.split.left
    right.total.gradient = leaf.total.gradient - left.total.gradient
    right.total.hessian = leaf.total.hessian - left.total.hessian
    right.total.count = leaf.total.count - left.total.count
    left.lower = right.lower = leaf.lower
    left.upper = right.upper = leaf.upper
    left.left = left.right = right.left = right.right = -1
    left.line = right.line = -1
    left.depth = right.depth = leaf.depth + 1
    left.split.feature = right.split.feature = right.forced_feature = -1
    left.forced_feature = leaf.split.feature if leaf.split.second_gain != 0 else -1
    left.value = best_value(left.total, leaf.lower, leaf.upper, l2, gradient_unit, hessian_unit)
    right.value = best_value(right.total, leaf.lower, leaf.upper, l2, gradient_unit, hessian_unit)
    if monotone != 0:
        wall = 0.5 * (left.value + right.value)
        if monotone > 0:
            left.upper = right.lower = wall
        else:
            left.lower = right.upper = wall


cdef PartedLeaf[::1] put_together(const PartedLeaf[:, ::1] told):
    """What `Parter.part` has returned on each rank, for the rows of all of them."""
    cdef PartedLeaf[::1] parted = np.array(told[0])
    cdef int64_t rank, i
    for rank in range(1, told.shape[0]):
        for i in range(told.shape[1]):
            parted[i].n_left += told[rank, i].n_left
            parted[i].n_lacking += told[rank, i].n_lacking
            join(&parted[i].left, &told[rank, i].left)
            join(&parted[i].right, &told[rank, i].right)
    return parted


cdef class Parter:
    """Splits leaves.

    It holds the views of a fit: taking them for each leaf would take longer than a small leaf does.

    Parameters
    ----------
    codes : Codes, or ndarray of uint8 or uint32, shape (n_rows, n_features), feature by feature
    offsets : ndarray of int64, shape (n_features + 1,)
    monotone : ndarray of int8, shape (n_features,), or None
    order : ndarray of uint32, shape (n_rows,)
    sums : ndarray of int64, shape (n_rows,)
        The sums of the rows, in the order of ``order``, which are moved with the rows.
    min_samples_leaf : int, default=1
        Leaves with fewer than twice as many rows may not split.
    max_depth : int, default=None
        Leaves of this depth may not split. If None, there is no limit.
    missing : {"learned", "left", "right", "three_way"}, default="learned"
        Where rows without a value will go if the leaf has none: to the given side, or else with most rows.
    """

    def __init__(
        self, codes, offsets, monotone, order, sums, min_samples_leaf=1, max_depth=None, missing="learned"
    ):
        self.columns = CodeColumns(codes)
        self.offsets, self.monotone = offsets, monotone
        self.order, self.sums = order, sums
        self.gradients = self.hessians = None
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = len(order) if max_depth is None else max_depth
        self.side_of_none = {"left": 1, "right": 0}.get(missing, -1)
        self.make_scratch(len(order) + len(order) // 256 + 256)  # usually enough for a fit: see `lay_out`
        self.stretches = np.empty(0, STRETCH)

    cdef void make_scratch(self, int64_t n_rows):
        self.row_scratch, self.sum_scratch = np.empty(n_rows, np.uint32), np.empty(n_rows, np.int64)

    def attach(self, leaves):
        """Use these leaves."""
        self.leaves = leaves

    def begin(self, rows, double l2, gradients=None, hessians=None, bint counts_later=False):
        """Begin a new tree: its root has the RoundedRows ``rows``, their total, and no bounds.

        If the ``gradients`` of all rows are given, and their ``hessians`` or the single one that all have,
        leaves whose rows all want the same value (-gradient / hessian) may not split, as nothing would be
        gained. ``counts_later`` says that splits are found without counting the rows that go left.
        """
        cdef Leaf root
        memset(&root, 0, sizeof(Leaf))
        self.counts_later = counts_later
        self.l2, self.gradient_unit, self.hessian_unit = l2, rows.gradient_unit, rows.hessian_unit
        self.gradients, self.hessians = gradients, hessians
        root.stop = root.quiet_start = rows.n_loud
        root.quiet_stop = rows.n_rows
        root.total.gradient, root.total.hessian = rows.total
        root.total.count = rows.count
        root.lower = -INFINITY
        root.upper = INFINITY
        root.left = root.right = root.line = root.split.feature = root.forced_feature = -1
        root.value = best_value(root.total, root.lower, root.upper, l2, self.gradient_unit, self.hessian_unit)
        root.splits_below = self.splits_below(&root)
        self.leaves[0] = root

    cdef int32_t splits_below(self, const Leaf* leaf) noexcept nogil:
        cdef int32_t most = self.splits_below_by_size(leaf, n_rows_of(leaf))
        cdef Ends ends
        if most:
            self.find_ends(leaf, &ends)
        return most if most and not agree(&ends) else 0

    cdef int32_t splits_below_by_size(self, const Leaf* leaf, int64_t n_rows) noexcept nogil:
        return <int32_t>max(0, min(n_rows // self.min_samples_leaf - 1, self.max_depth - leaf.depth))

    cdef void find_ends(self, const Leaf* leaf, Ends* ends) noexcept nogil:
        """Find the ends of what a leaf's rows want, until they differ."""
        ends[0] = NO_ENDS
        self.widen(ends, run_in(self.order, 0), leaf.start, leaf.stop)
        self.widen(ends, run_in(self.order, 0), leaf.quiet_start, leaf.quiet_stop)

    cdef void find_ends_of_sides(self, const Leaf* leaf, Ends* left, Ends* right) noexcept nogil:
        """The same for the rows on each side of a leaf that is parted."""
        left[0] = right[0] = NO_ENDS
        self.widen(left, run_in(self.order, 0), leaf.start, leaf.cut)
        self.widen(right, run_in(self.order, 0), leaf.cut, leaf.stop)
        self.widen(left, run_in(self.order, 0), leaf.quiet_start, leaf.quiet_cut)
        self.widen(right, run_in(self.order, 0), leaf.quiet_cut, leaf.quiet_stop)

    cdef void widen(self, Ends* ends, const uint32_t* rows, int64_t start, int64_t stop) noexcept nogil:
        cdef int64_t i, row, each = self.hessians is not None and self.hessians.shape[0] > 1
        cdef double wanted
        if self.gradients is None:  # unknown values count as different
            ends[0] = Ends(1.0, 1.0)
            return
        for i in range(start, stop):
            row = rows[i]
            if self.gradients[row] == 0.0 and self.hessians[each * row] == 0.0:
                continue
            wanted = self.gradients[row] / self.hessians[each * row]
            ends.highest = max(ends.highest, wanted)
            ends.minus_lowest = max(ends.minus_lowest, -wanted)
            if not agree(ends):
                return

    def ends_of(self, const int32_t[::1] ids):
        """float64[n, 2]: the `Ends` of this rank's rows; `judge` takes their maximum over ranks."""
        cdef double[:, ::1] found = np.empty((ids.shape[0], 2))
        cdef Ends ends
        cdef int64_t i
        for i in range(ids.shape[0]):
            self.find_ends(&self.leaves[ids[i]], &ends)
            found[i, 0], found[i, 1] = ends.highest, ends.minus_lowest
        return found.base

    def judge(self, const int32_t[::1] ids, const double[:, ::1] found):
        """Forbid splits of leaves whose rows all want the same value, on all ranks."""
        cdef Ends ends
        cdef int64_t i
        for i in range(ids.shape[0]):
            ends = Ends(found[i, 0], found[i, 1])
            self.judge_leaf(&self.leaves[ids[i]], &ends)

    cdef void judge_leaf(self, Leaf* leaf, const Ends* ends) noexcept nogil:
        leaf.splits_below = self.splits_below_by_size(leaf, leaf.total.count)
        if agree(ends):
            leaf.splits_below = 0

    cpdef PartedLeaf[::1] part(self, const int32_t[::1] ids, int n_threads, int64_t values_per_thread):
        """The first step of `split` over ranks: each parts its rows as if both children had enough rows.

        Returns
        -------
        parted : memoryview of PARTED_LEAF, shape (n,)
            What this rank tells the others.
        """
        cdef int64_t i
        cdef PartedLeaf[::1] parted = self.part_all(ids, self.worth(ids, n_threads, values_per_thread))
        for i in range(ids.shape[0]):
            self.find_ends_of_sides(&self.leaves[ids[i]], &parted[i].left, &parted[i].right)
        return parted

    cpdef int32_t[::1] split_parted(
        self, const int32_t[::1] ids, int32_t first_child, const PartedLeaf[:, ::1] told
    ):
        """The second step, from what `part` has just returned on each rank."""
        cdef PartedLeaf[::1] parted = put_together(told)
        self.make_all_children(ids, first_child, 1, parted)
        self.judge_sides(ids, parted)
        return self.not_split(ids)

    def split(
        self, const int32_t[::1] ids, int32_t first_child, int n_threads, int64_t values_per_thread=1
    ):
        """Part the rows of each leaf in ``ids``. The children of the i-th are first_child + 2 i and + 1.

        Each thread takes a stretch of the rows of each leaf or, if there are many leaves, one leaf at a time.

        Returns
        -------
        refused : ndarray of int32
            Leaves whose split was found without counting rows and would leave a child with too few: they are
            not split. The others are. If some are refused, the others may be passed once more, and then get
            new numbers for their children.
        """
        self.split_all(ids, first_child, n_threads, values_per_thread)
        return self.not_split(ids).base

    cdef void split_all(
        self, const int32_t[::1] ids, int32_t first_child, int n_threads, int64_t values_per_thread
    ):
        """`split` without its result, for a rank alone."""
        cdef int64_t i
        n_threads = self.worth(ids, n_threads, values_per_thread)
        if self.n_stretches > 1:
            self.make_all_children(ids, first_child, n_threads, self.part_all(ids, n_threads))
        else:
            for i in prange(
                ids.shape[0], nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
                schedule="dynamic",
            ):
                self.split_one(&self.leaves[ids[i]], <int32_t>(first_child + 2 * i))

    cdef void judge_sides(self, const int32_t[::1] ids, const PartedLeaf[::1] parted) noexcept:
        cdef int64_t i
        cdef const Leaf* leaf
        for i in range(ids.shape[0]):
            leaf = &self.leaves[ids[i]]
            if leaf.left >= 0:
                self.judge_leaf(&self.leaves[leaf.left], &parted[i].left)
                self.judge_leaf(&self.leaves[leaf.right], &parted[i].right)

    cdef int worth(self, const int32_t[::1] ids, int n_threads, int64_t values_per_thread):
        """The number of threads that parting these leaves is worth; also lay out the stretches of each."""
        cdef int64_t n_ids = ids.shape[0], n_rows = 0, i
        for i in range(n_ids):
            n_rows += n_rows_of(&self.leaves[ids[i]])
        n_threads = worth_threads(n_threads, ROW_PARTED * n_rows, values_per_thread)
        self.n_stretches = n_threads if SHARED * n_rows >= values_per_thread * n_threads * n_ids else 1
        self.lay_out(ids)
        return n_threads

    cdef void lay_out(self, const int32_t[::1] ids):
        """Give each thread a part of the scratch for its stretches of all leaves, and one for quiet rows.

        A thread writes fastest to memory that it has written before and that no other thread has touched
        since. The parts for quiet rows come last, so that most of the scratch for sums, which quiet rows do
        not need, is never touched. The stretches of a thread may be longer than its share of all rows,
        because shares are rounded up.
        """
        cdef int64_t n_ids = ids.shape[0], n_stretches = self.n_stretches, i, s, place, quiet_place
        cdef int64_t n_loud = 0, n_quiet = 0, n_own, n_own_quiet
        cdef Leaf* leaf
        cdef Stretch* of
        for i in range(n_ids):
            leaf = &self.leaves[ids[i]]
            n_loud += leaf.stop - leaf.start
            n_quiet += leaf.quiet_stop - leaf.quiet_start
        n_own, n_own_quiet = n_loud // n_stretches + n_ids + 1, n_quiet // n_stretches + n_ids + 1
        if n_ids * n_stretches > self.stretches.shape[0]:
            self.stretches = np.empty(n_ids * n_stretches, STRETCH)
        if n_stretches * (n_own + n_own_quiet) > self.row_scratch.shape[0]:
            self.make_scratch(n_stretches * (n_own + n_own_quiet))
        for s in range(n_stretches):
            place, quiet_place = s * n_own, n_stretches * n_own + s * n_own_quiet
            for i in range(n_ids):
                leaf, of = &self.leaves[ids[i]], self.stretches_of(i)
                of[s].loud = piece_of(leaf.start, leaf.stop, s, n_stretches, place)
                of[s].quiet = piece_of(leaf.quiet_start, leaf.quiet_stop, s, n_stretches, quiet_place)
                place += of[s].loud.n_rows
                quiet_place += of[s].quiet.n_rows

    cdef Stretch* stretches_of(self, int64_t i) noexcept nogil:
        """The stretches of the i-th leaf."""
        return &self.stretches[self.n_stretches * i]

    cdef PartedLeaf[::1] part_all(self, const int32_t[::1] ids, int n_threads):
        """Part all leaves that are not yet parted; return what `part` does, without the ends."""
        cdef int64_t n_ids = ids.shape[0], n_stretches = self.n_stretches, task, i, s
        cdef PartedLeaf[::1] parted = np.zeros(n_ids, PARTED_LEAF)
        cdef Leaf* leaf
        cdef Stretch* of
        with nogil, parallel(num_threads=n_threads):
            for task in prange(n_stretches * n_ids, schedule="static"):
                leaf, of = &self.leaves[ids[task % n_ids]], self.stretches_of(task % n_ids)
                if leaf.left < 0:
                    self.part_stretch(&leaf.split, of + task // n_ids)
                    if n_stretches == 1:  # while its rows are in the cache
                        self.take_stretch(leaf, 0, 1, of)
            wait_for_all()
            for task in prange(n_stretches * n_ids if n_stretches > 1 else 0, schedule="static"):
                leaf = &self.leaves[ids[task % n_ids]]
                if leaf.left < 0:
                    self.take_stretch(leaf, task // n_ids, n_stretches, self.stretches_of(task % n_ids))
        for i in range(n_ids):
            leaf, of = &self.leaves[ids[i]], self.stretches_of(i)
            if leaf.left < 0:
                self.set_cut(leaf, n_stretches, of)
                parted[i].n_left = leaf.cut - leaf.start + leaf.quiet_cut - leaf.quiet_start
                for s in range(n_stretches):
                    parted[i].n_lacking += of[s].lacking
        return parted

    cdef void make_all_children(
        self, const int32_t[::1] ids, int32_t first_child, int n_threads, const PartedLeaf[::1] parted
    ):
        """Make the children of parted leaves if they have enough rows; else put the rows back."""
        cdef int64_t n_ids = ids.shape[0], i
        cdef Leaf* leaf
        for i in prange(
            n_ids, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
        ):
            leaf = &self.leaves[ids[i]]
            if leaf.left < 0 and self.is_large_enough(leaf, parted[i].n_left):
                self.keep_counts(leaf, parted[i].n_left, parted[i].n_lacking)
            if leaf.left >= 0:
                self.make_children_of(leaf, <int32_t>(first_child + 2 * i))
            else:
                self.put_back(leaf)

    cdef void put_back(self, const Leaf* leaf) noexcept nogil:
        """Put the rows of a leaf that is not split after all back in ascending order."""
        self.merge(leaf.start, leaf.cut, leaf.stop, True)
        self.merge(leaf.quiet_start, leaf.quiet_cut, leaf.quiet_stop, False)

    cdef void merge(self, int64_t first, int64_t cut, int64_t stop, bint with_sums) noexcept nogil:
        cdef int64_t left = first, right = cut, i, k
        for i in range(first, stop):
            if right == stop or (left < cut and self.order[left] < self.order[right]):
                k = left
                left += 1
            else:
                k = right
                right += 1
            self.row_scratch[i] = self.order[k]
            if with_sums:
                self.sum_scratch[i] = self.sums[k]
        memcpy(run_in(self.order, first), run_in(self.row_scratch, first), (stop - first) * sizeof(uint32_t))
        if with_sums:
            memcpy(
                run_in(self.sums, first), run_in(self.sum_scratch, first), (stop - first) * sizeof(int64_t)
            )

    cdef void split_one(self, Leaf* leaf, int32_t first_child) noexcept nogil:
        if leaf.left >= 0 or self.part_one(leaf):
            self.make_children_of(leaf, first_child)

    cdef bint part_one(self, Leaf* leaf) noexcept nogil:
        """Part a leaf's rows, and leave its children for later. Return False if one would get too few."""
        cdef int64_t n_left
        cdef Stretch whole
        whole.loud = piece_of(leaf.start, leaf.stop, 0, 1, leaf.start)
        whole.quiet = piece_of(leaf.quiet_start, leaf.quiet_stop, 0, 1, leaf.quiet_start)
        self.part_stretch(&leaf.split, &whole)
        n_left = whole.loud.n_left + whole.quiet.n_left
        if not self.is_large_enough(leaf, n_left):
            return False
        self.take_stretch(leaf, 0, 1, &whole)
        self.set_cut(leaf, 1, &whole)
        self.keep_counts(leaf, n_left, whole.lacking)
        return True

    cdef bint is_large_enough(self, const Leaf* leaf, int64_t n_left) noexcept nogil:
        """Whether both children get enough rows, or this was known when the split was found."""
        return not self.counts_later or min(n_left, leaf.total.count - n_left) >= self.min_samples_leaf

    cdef void set_cut(self, Leaf* leaf, int64_t n_stretches, const Stretch* of) noexcept nogil:
        """Set where the rows of the right child begin."""
        cdef int64_t s
        leaf.cut, leaf.quiet_cut = leaf.start, leaf.quiet_start
        for s in range(n_stretches):
            leaf.cut += of[s].loud.n_left
            leaf.quiet_cut += of[s].quiet.n_left

    cdef void keep_counts(self, Leaf* leaf, int64_t n_left, bint lacking) noexcept nogil:
        """Complete a split with the number of rows on all ranks that go left, known once they are parted.

        If no row lacks a value, such rows will go with most rows, or to their fixed side.
        """
        leaf.left = 0  # the leaf is parted, and its children are founded next
        if self.counts_later:
            leaf.split.left.count = <uint32_t>n_left
            if not lacking:
                leaf.split.missing_left = (
                    2 * n_left > leaf.total.count if self.side_of_none < 0 else self.side_of_none
                )

    cdef void make_children_of(self, Leaf* leaf, int32_t first_child) noexcept nogil:
        """Set the records of the children of a leaf whose rows are parted, and whether they may split."""
        cdef int32_t k
        leaf.left = first_child
        leaf.right = first_child + 1
        make_children(
            leaf, &self.leaves[first_child], &self.leaves[first_child + 1],
            self.monotone[leaf.split.feature] * leaf.split.direction if self.monotone is not None else 0,
            self.l2, self.gradient_unit, self.hessian_unit,
        )
        for k in range(first_child, first_child + 2):
            self.leaves[k].splits_below = self.splits_below(&self.leaves[k])

    cdef int32_t[::1] not_split(self, const int32_t[::1] ids):
        cdef int64_t n = 0, i
        cdef int32_t[::1] refused
        for i in range(ids.shape[0]):
            n += self.leaves[ids[i]].left < 0
        refused = np.empty(n, np.int32)
        if n:
            n = 0
            for i in range(ids.shape[0]):
                if self.leaves[ids[i]].left < 0:
                    refused[n] = ids[i]
                    n += 1
        return refused

    cdef void part_stretch(self, const Split* split, Stretch* stretch) noexcept nogil:
        """Part the rows of a stretch into the scratch."""
        cdef int64_t f = split.feature
        cdef Way way
        find_way(split, <int32_t>(self.offsets[f + 1] - self.offsets[f]) - 1, &self.columns.all, &way)
        stretch.lacking = self.part_piece(f, &way, &stretch.loud, True)
        stretch.lacking |= self.part_piece(f, &way, &stretch.quiet, False)

    cdef int64_t part_piece(
        self, int64_t feature, const Way* way, Piece* piece, bint with_sums
    ) noexcept nogil:
        cdef Parted found = part(
            self.columns.all.is_long, column_with(&self.columns.all, feature), way, piece.n_rows,
            run_in(self.order, piece.first),
            run_in(self.sums, piece.first) if with_sums else NULL, run_in(self.row_scratch, piece.place),
            run_in(self.sum_scratch, piece.place) if with_sums else NULL,
        )
        piece.n_left = found.n_left
        return found.lacking

    cdef void take_stretch(
        self, const Leaf* leaf, int64_t s, int64_t n_stretches, const Stretch* of
    ) noexcept nogil:
        """Move the rows of one parted stretch to their places among the rows of the children."""
        cdef int64_t left = leaf.start, right = of[s].loud.first, t
        cdef int64_t quiet_left = leaf.quiet_start, quiet_right = of[s].quiet.first
        for t in range(n_stretches):
            if t < s:
                left += of[t].loud.n_left
                quiet_left += of[t].quiet.n_left
            else:
                right += of[t].loud.n_left
                quiet_right += of[t].quiet.n_left
        self.take_piece(&of[s].loud, left, right, True)
        self.take_piece(&of[s].quiet, quiet_left, quiet_right, False)

    cdef void take_piece(
        self, const Piece* piece, int64_t left, int64_t right, bint with_sums
    ) noexcept nogil:
        cdef int64_t n = piece.n_rows, n_left = piece.n_left
        take_rows(
            run_in(self.row_scratch, piece.place), n, n_left, run_in(self.order, left),
            run_in(self.order, right)
        )
        if with_sums:
            take_sums(
                run_in(self.sum_scratch, piece.place), n, n_left, run_in(self.sums, left),
                run_in(self.sums, right)
            )


def finish_nodes(
    leaves,                             # IN   LEAF records
    const double[::1] values,           # IN   one per node
    nodes,                              # OUT  NODE records, without the cuts
    int64_t[::1] codes,                 # OUT  the code up to which rows go left; -1 if there is no cut
):
    """Set the records of a finished tree, with its categorical nodes numbered; return how many these are."""
    cdef int64_t n = len(leaves), k
    cdef int32_t n_categorical = 0
    cdef const Leaf* leaf = leaves_in(leaves)
    cdef const Split* split
    cdef Node* first = nodes_in(nodes)
    cdef Node* node
    with nogil:
        for k in range(n):
            split, node = &leaf[k].split, &first[k]
            memset(node, 0, sizeof(Node))
            node.value, node.count = values[k], leaf[k].total.count
            node.left, node.right = leaf[k].left, leaf[k].right
            node.feature = node.categories = -1
            codes[k] = -1
            if node.left < 0:
                continue
            node.feature, node.gain, node.missing_left = split.feature, split.gain, split.missing_left
            if split.categorical:
                node.categories = n_categorical
                n_categorical += 1
            else:
                codes[k] = split.code
    return n_categorical


cdef class Follower:
    """Sends rows that a tree was not grown from down the tree.

    Some thousand rows at a time are parted by one split after another, as the tree's own rows were.

    Parameters
    ----------
    leaves : ndarray of LEAF
    values : ndarray of float64
        One per node.
    codes : Codes, or ndarray of uint8 or uint32, shape (n_rows, n_features), feature by feature
    offsets : ndarray of int64, shape (n_features + 1,)
    """

    cdef const Leaf[::1] leaves
    cdef const double[::1] values
    cdef CodeColumns columns
    cdef const int64_t[::1] offsets

    def __init__(self, leaves, values, codes, offsets):
        self.leaves, self.values, self.offsets = leaves, values, offsets
        self.columns = CodeColumns(codes)

    def follow(
        self,
        uint32_t[::1] rows,                 # IN   ascending; they are reordered
        double[::1] scores,                 # IN and OUT
        int n_threads,
    ):
        """Add the value of each row's leaf to its score."""
        cdef int64_t n_rows = rows.shape[0], first, task
        cdef int64_t n_tasks = (n_rows + FOLLOWED * n_threads - 1) // (FOLLOWED * n_threads) * n_threads
        cdef int64_t[:, ::1] ranges = room_for_each(n_threads, 2 * self.leaves.shape[0], np.int64)
        cdef uint32_t[:, ::1] scratch = room_for_each(n_threads, FOLLOWED, np.uint32)
        for task in prange(
            n_tasks, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
        ):
            first = n_rows * task // n_tasks
            self.follow_some(
                run_in(rows, first), n_rows * (task + 1) // n_tasks - first, &scratch[threadid(), 0],
                &ranges[threadid(), 0], scores,
            )

    cdef void follow_some(
        self, uint32_t* rows, int64_t n_rows, uint32_t* scratch, int64_t* ranges, double[::1] scores
    ) noexcept nogil:
        cdef int64_t k, i, f, start, stop, n_left
        cdef const Leaf* leaf
        cdef Way way
        ranges[0] = 0
        ranges[1] = n_rows
        for k in range(self.leaves.shape[0]):
            leaf = &self.leaves[k]
            start = ranges[2 * k]
            stop = ranges[2 * k + 1]
            if leaf.left < 0:
                for i in range(start, stop):
                    scores[rows[i]] += self.values[k]
                continue
            n_left = 0
            if stop > start:
                f = leaf.split.feature
                find_way(
                    &leaf.split, <int32_t>(self.offsets[f + 1] - self.offsets[f]) - 1, &self.columns.all, &way
                )
                n_left = part(
                    self.columns.all.is_long, column_with(&self.columns.all, f), &way, stop - start,
                    rows + start, NULL, scratch, NULL,
                ).n_left
                take_rows(scratch, stop - start, n_left, rows + start, rows + start + n_left)
            ranges[2 * leaf.left] = start
            ranges[2 * leaf.left + 1] = ranges[2 * leaf.right] = start + n_left
            ranges[2 * leaf.right + 1] = stop
