"""Build lines of cells, the histograms of leaves, from rows; see joint.h.

    order     [ rows of leaf 3 | of leaf 1 | ... ]    a leaf's rows are order[start:stop]
    sums      [  their gradients and hessians    ]    in the same order; see rounding.h
    bytes     row-major: the cells of one row, several features in each byte
    lines     one for each leaf that keeps one: [ cells of feature 0 | cells of feature 1 | ... ]
"""
import numpy as np

from ranktrees._core.support.threads import AHEAD, room_for_each

from cython.parallel cimport parallel, prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from ranktrees._core.support.records cimport (
    Digit, JointBytes, Leaf, Member, n_rows_of, shares_of_each, start_of, worth_threads,
)
from ranktrees._core.support.views cimport bytes_in, line_in, run_in

cdef extern from "support/bins.h" nogil:
    void add_line(int64_t n, const int64_t* part, int64_t* whole) noexcept
    void subtract_line(int64_t n, const int64_t* part, int64_t* whole) noexcept

cdef extern from "growing/joint.h" nogil:
    enum: TABLE
    enum: BLOCK_BYTES
    enum: CHUNK
    enum: STEP
    void fill_line(
        int lanes, const uint8_t* bytes, int64_t step, int64_t n_bytes, const Digit* digits,
        const int64_t* first_digit, const uint8_t* cells, const uint32_t* rows, const int64_t* sums,
        int64_t n, int bits, int same, int64_t first, int64_t last, uint64_t* scratch, int64_t* tables,
        const JointBytes* joint, int64_t* line,
    ) noexcept nogil

cdef extern from "support/threads.h" nogil:
    void wait_for_all() noexcept

cdef enum:
    COUNTED = 4096  # rows that are counted at a time
    MARGINS = 64  # clearing the table of a byte and taking its margins takes as long as adding this many rows


def cells_of(digits):
    """uint8[n_digits, 256]: the cell of each digit by the value of its byte, counted from its first cell."""
    stride, radix, end = (digits[name][:, None] for name in ("stride", "radix", "last"))
    cells = np.arange(TABLE) // stride % radix
    return np.where(cells < radix - 1, cells, end - digits["first"][:, None]).astype(np.uint8)


cdef class Builder:
    """Builds and keeps the lines of leaves.

    It holds the views of a fit: taking them for each leaf would take longer than a small leaf does.

    Parameters
    ----------
    bytes : ndarray of uint8, shape (n_rows, n_bytes)
        The bytes of each row. Eight more bytes must be readable behind the last row.
    digits : ndarray of DIGIT, by byte and, within a byte, from the lowest to the highest stride
        The place of each feature.
    first_digit : ndarray of int64, shape (n_bytes + 1,)
        The first digit of each byte.
    n_cells : int
        The number of cells of a line.
    order : ndarray of uint32, shape (n_rows,)
    sums : ndarray of int64, shape (n_rows,)
    n_threads : int
        The maximum number of threads of a call.
    joint : JointBytes, default=None
        What the last bytes stand for, if features share columns; see `ranktrees.growing.packing`.
    """

    def __init__(self, bytes, digits, first_digit, n_cells, order, sums, n_threads, joint=None):
        self.bytes, self.digits, self.first_digit = bytes, digits, first_digit
        self.cells_of_digits = cells_of(digits)
        self.joint.first_byte = bytes.shape[1]
        if joint is not None:
            self.joint_arrays = joint
            self.joint.first_byte = bytes.shape[1] + 1 - len(joint.first_member)
            self.joint.first_member = <const int64_t*>start_of(joint.first_member)
            self.joint.members = <const Member*>start_of(joint.members)
            self.joint.values = <const uint8_t*>start_of(joint.values)
            self.joint.cells = <const int32_t*>start_of(joint.cells)
        self.n_blocks = -(-bytes.shape[1] // BLOCK_BYTES)
        self.n_cells = n_cells
        self.go_through(order, sums)
        self.ones = np.ones(COUNTED, np.int64)
        self.some_counts = room_for_each(n_threads, n_cells, np.int64)
        self.counts, self.ranges = np.empty((0, n_cells), np.int64), np.empty((0, 4), np.int64)
        self.scratch = room_for_each(n_threads, self.n_blocks * STEP + 2 * CHUNK, np.uint64, AHEAD)
        self.built = self.siblings = self.spares = self.free_lines = np.empty(0, np.int32)
        self.lanes = 0

    def go_through(self, order, sums):
        """Build lines from these rows and their sums from now on."""
        self.order, self.sums = order, sums

    def attach(self, leaves, lines, int lanes):
        """Use these leaves, and these lines of ``lanes`` numbers per cell."""
        self.leaves, self.lines = leaves, lines
        if len(lines) != self.counts.shape[0]:
            self.counts = np.zeros((len(lines), self.n_cells), np.int64)
            self.ranges = np.full((len(lines), 4), -1)
        if lanes != self.lanes:
            self.lanes = lanes
            n_threads = self.scratch.shape[0]
            n_sums = self.n_blocks * BLOCK_BYTES * TABLE * lanes
            self.tables = room_for_each(n_threads, n_sums, np.int64, AHEAD)
            self.own_lines = room_for_each(n_threads if n_threads > 1 else 0, self.n_cells * lanes, np.int64)

    def begin(self):
        """Begin a new tree, with all lines free. The last line is reserved for `lend`."""
        cdef int64_t n = self.lines.shape[0] - 1, i
        if n > self.free_lines.shape[0]:
            self.free_lines = np.empty(n, np.int32)
        for i in range(n):
            self.free_lines[i] = <int32_t>(n - 1 - i)
        self.n_free = n
        self.ranges[:] = -1

    cpdef bint root(self, int64_t few_rows, int bits, bint same, int n_threads):
        """Build the line of the root. Return False if it has too few rows, or no line is free."""
        cdef int32_t root = 0
        cdef Leaf* leaf = &self.leaves[root]
        if self.n_free == 0 or leaf.stop - leaf.start < few_rows:
            return False
        self.take_line(leaf)
        self.build_lines(&root, 1, bits, same, n_threads)
        return True

    def take_over(
        self, const int32_t[::1] parents, const int32_t[::1] children, int64_t few_rows, int bits, bint same,
        int n_threads, int64_t values_per_thread,
    ):
        """Build the lines of the children 2 i and 2 i + 1 of each parent i with a line, which they take over.

        The line of the smaller child is built from its rows and subtracted from the line of the parent, which
        becomes that of the larger child. Two children get no lines if both have fewer than ``few_rows``
        rows, if neither may split, or if no line is free.

        Returns
        -------
        with_line, without : ndarrays of int32
            The children that may split, by whether they have a line.
        """
        cdef int64_t n_built = self.hand_lines_over(parents, children, few_rows, True)
        self.build_and_subtract(n_built, bits, same, n_threads, values_per_thread)
        return self.sorted_out(children)

    cdef void build_and_subtract(
        self, int64_t n_built, int bits, bint same, int n_threads, int64_t values_per_thread
    ):
        """Complete the lines of children once those of their parents have been handed over."""
        self.build_smaller(n_built, bits, same, n_threads, values_per_thread)
        if n_built:
            self.subtract_lines(
                n_built, worth_threads(n_threads, n_built * self.lines.shape[1], values_per_thread)
            )

    def hand_over(
        self, const int32_t[::1] parents, const int32_t[::1] children, int64_t few_rows, int bits, bint same,
        int n_threads, int64_t values_per_thread,
    ):
        """The first step of `take_over` over ranks. Of two children, the smaller has the lower total hessian.

        Returns the leaves whose lines have been built from this rank's rows. The second step is `subtract`.
        """
        cdef int64_t n_built = self.hand_lines_over(parents, children, few_rows, False)
        self.build_smaller(n_built, bits, same, n_threads, values_per_thread)
        return self.built.base[:n_built].copy()

    cdef void build_smaller(
        self, int64_t n_built, int bits, bint same, int n_threads, int64_t values_per_thread
    ):
        """Build the lines of the smaller children once lines have been handed over."""
        cdef int64_t n_values = 0, i
        for i in range(n_built):
            n_values += self.steps_to_build(&self.leaves[self.built[i]])
        if n_built:
            self.build_lines(
                &self.built[0], n_built, bits, same, worth_threads(n_threads, n_values, values_per_thread)
            )

    cdef int64_t steps_to_build(self, const Leaf* leaf) noexcept nogil:
        """The cost of building the line of a leaf, in steps of about a nanosecond."""
        return (leaf.stop - leaf.start + MARGINS) * self.bytes.shape[1]

    cdef int64_t hand_lines_over(
        self, const int32_t[::1] parents, const int32_t[::1] children, int64_t few_rows, bint by_rows
    ):
        """Give each parent's line to its larger child, and a free line to the smaller; how many to build."""
        cdef int64_t n = parents.shape[0], i, n_built = 0
        cdef Leaf* parent
        self.make_room_for(n)
        for i in range(n):
            parent = &self.leaves[parents[i]]
            if parent.line < 0:
                continue
            if self.n_free and self.hand_line_over(
                parent, &self.leaves[children[2 * i]], &self.leaves[children[2 * i + 1]], few_rows, by_rows,
                self.free_lines[self.n_free - 1], n_built,
            ):
                self.n_free -= 1
                n_built += 1
            else:
                self.drop_line(parent)
        return n_built

    cdef void make_room_for(self, int64_t n):
        """Make room for building n lines."""
        if n > self.built.shape[0]:
            self.built, self.siblings, self.spares = np.empty((3, 2 * n), np.int32)

    cdef bint hand_line_over(
        self, Leaf* parent, Leaf* left, Leaf* right, int64_t few_rows, bint by_rows, int32_t spare, int64_t i
    ) noexcept nogil:
        """Give the smaller child a spare line, the i-th to build. Return False if neither child needs one."""
        cdef Leaf* smaller = left
        cdef Leaf* larger = right
        if (
            left.stop - left.start > right.stop - right.start if by_rows
            else left.total.hessian > right.total.hessian
        ):
            smaller, larger = right, left
        if not (left.splits_below or right.splits_below) or larger.stop - larger.start < few_rows:
            return False
        larger.line = parent.line
        parent.line = -1
        smaller.line = spare
        self.built[i] = <int32_t>(smaller - &self.leaves[0])
        self.siblings[i] = <int32_t>(larger - &self.leaves[0])
        return True

    cdef bint set_aside(self, int64_t n):
        """Set aside a spare line for each of n leaves. Return False, and do nothing, if too few are free."""
        cdef int64_t k
        if self.n_free < n:
            return False
        self.make_room_for(n)
        for k in range(n):
            self.n_free -= 1
            self.spares[k] = self.free_lines[self.n_free]
        return True

    cdef void give_back(self, int64_t k) noexcept:
        """Free the k-th spare line."""
        self.free_lines[self.n_free] = self.spares[k]
        self.n_free += 1

    def subtract(self, int64_t n_built):
        """Subtract the lines of the smaller children from those that `hand_over` has given to the larger."""
        self.subtract_lines(n_built, 1)

    cdef void subtract_lines(self, int64_t n_built, int n_threads):
        cdef int64_t n_shares = shares_of_each(n_built, n_threads), width = self.lines.shape[1]
        cdef int64_t task, i, first
        for task in prange(
            n_built * n_shares, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
            schedule="static",
        ):
            i = task % n_built
            first = width * (task // n_built) // n_shares
            self.subtract_cells(i, first, width * (task // n_built + 1) // n_shares)

    cdef void subtract_cells(self, int64_t i, int64_t first, int64_t last) noexcept nogil:
        """Subtract some cells of the i-th smaller child's line from that of its sibling."""
        subtract_line(
            last - first, &self.lines[self.leaves[self.built[i]].line, first],
            &self.lines[self.leaves[self.siblings[i]].line, first],
        )

    cdef void build_one(self, int64_t i, int bits, bint same, int thread) noexcept nogil:
        """Build the i-th of the lines to build, by one thread."""
        cdef const Leaf* leaf = &self.leaves[self.built[i]]
        cdef int64_t* line = line_in(self.lines, leaf.line)
        self.fill(leaf.start, leaf.stop, bits, same, 0, self.n_blocks, thread, line)

    cpdef tuple sorted_out(self, const int32_t[::1] children):
        """The children that may split and have a line, and those that may split and have none."""
        cdef int64_t n = children.shape[0], i, n_with = 0, n_without = 0
        cdef int32_t[::1] with_line = np.empty(n, np.int32)
        cdef int32_t[::1] without = np.empty(n, np.int32)
        for i in range(n):
            if self.leaves[children[i]].splits_below and self.leaves[children[i]].line >= 0:
                with_line[n_with] = children[i]
                n_with += 1
            elif self.leaves[children[i]].splits_below:
                without[n_without] = children[i]
                n_without += 1
        return with_line.base[:n_with], without.base[:n_without]

    cpdef int32_t[::1] lines_of(self, const int32_t[::1] ids):
        """The numbers of the lines of some leaves."""
        cdef int32_t[::1] places = np.empty(ids.shape[0], np.int32)
        cdef int64_t i
        for i in range(ids.shape[0]):
            places[i] = self.leaves[ids[i]].line
        return places

    cpdef void forget(self, const int32_t[::1] ids, bint split_too=True):
        """Free the lines of these leaves; if ``split_too`` is false, only of those that have no split."""
        cdef int64_t i
        for i in range(ids.shape[0]):
            if self.leaves[ids[i]].line >= 0 and (split_too or self.leaves[ids[i]].split.feature < 0):
                self.drop_line(&self.leaves[ids[i]])

    cpdef void lend(self, const int32_t[::1] ids, int bits, bint same, int n_threads):
        """Lend a leaf the last line, which it cannot keep, and build it; `take_back` ends the loan."""
        self.leaves[ids[0]].line = <int32_t>(self.lines.shape[0] - 1)
        self.build_lines(&ids[0], 1, bits, same, n_threads)

    cpdef void take_back(self, const int32_t[::1] ids):
        """Take the line back that `lend` has lent to a leaf."""
        self.leaves[ids[0]].line = -1

    cdef void take_line(self, Leaf* leaf) noexcept:
        self.n_free -= 1
        leaf.line = self.free_lines[self.n_free]

    cdef void drop_line(self, Leaf* leaf) noexcept:
        self.free_lines[self.n_free] = leaf.line
        self.n_free += 1
        leaf.line = -1

    cdef const int64_t* count(self, const Leaf* leaf, int thread) noexcept nogil:
        """Count the rows of a leaf in each cell, quiet ones included, if lines have one number per cell.

        The counts are kept with the line of the leaf. If it has most rows of a former leaf with this line,
        the other rows are counted instead, and subtracted: they still lie in the same stretches.
        """
        cdef int64_t* counts = &self.counts[leaf.line, 0]
        cdef int64_t* rows = &self.ranges[leaf.line, 0]
        if self.are_nearly(leaf, rows):
            self.count_stretch(rows[0], leaf.start, True, thread, counts)
            self.count_stretch(leaf.stop, rows[1], True, thread, counts)
            self.count_stretch(rows[2], leaf.quiet_start, True, thread, counts)
            self.count_stretch(leaf.quiet_stop, rows[3], True, thread, counts)
        else:
            memset(counts, 0, self.n_cells * sizeof(int64_t))
            self.count_stretch(leaf.start, leaf.stop, False, thread, counts)
            self.count_stretch(leaf.quiet_start, leaf.quiet_stop, False, thread, counts)
        rows[0], rows[1], rows[2], rows[3] = leaf.start, leaf.stop, leaf.quiet_start, leaf.quiet_stop
        return counts

    cdef bint are_nearly(self, const Leaf* leaf, const int64_t* rows) noexcept nogil:
        """Whether some rows are those of a leaf, and fewer others."""
        return (
            rows[0] <= leaf.start and leaf.stop <= rows[1]
            and rows[2] <= leaf.quiet_start and leaf.quiet_stop <= rows[3]
            and rows[1] - rows[0] + rows[3] - rows[2] < 2 * n_rows_of(leaf)
        )

    cdef void count_stretch(
        self, int64_t start, int64_t stop, bint leave, int thread, int64_t* counts
    ) noexcept nogil:
        """Count the rows of a stretch, or subtract them if they ``leave``."""
        cdef int64_t* some = &self.some_counts[thread, 0]
        cdef int64_t n
        while start < stop:
            n = min(<int64_t>COUNTED, stop - start)
            fill_line(
                1, bytes_in(self.bytes), self.bytes.strides[0], self.bytes.shape[1], run_in(self.digits, 0),
                run_in(self.first_digit, 0), line_in(self.cells_of_digits, 0), run_in(self.order, start),
                run_in(self.ones, 0), n,
                0, False, 0, self.n_blocks, &self.scratch[thread, 0], &self.tables[thread, 0],
                &self.joint, some,
            )
            if leave:
                subtract_line(self.n_cells, some, counts)
            else:
                add_line(self.n_cells, some, counts)
            start += n

    def counts_of(self, const int32_t[::1] ids, int n_threads):
        """int64[n, n_cells]: `count` of each leaf."""
        cdef int64_t[:, ::1] counts = np.empty((ids.shape[0], self.n_cells), np.int64)
        cdef int64_t i
        for i in prange(
            ids.shape[0], nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
        ):
            memcpy(
                &counts[i, 0], self.count(&self.leaves[ids[i]], threadid()), self.n_cells * sizeof(int64_t)
            )
        return counts.base

    def build(self, const int32_t[::1] ids, int bits, bint same, int n_threads):
        """Fill the line of each leaf in ``ids``."""
        if ids.shape[0]:
            self.build_lines(&ids[0], ids.shape[0], bits, same, n_threads)

    cdef void build_lines(self, const int32_t* ids, int64_t n_ids, int bits, bint same, int n_threads):
        """Fill the lines of some leaves.

        Threads share the rows of a leaf if it is large enough that a line of its own for each thread pays.
        They share the blocks of smaller leaves or, if there are many of these, take one leaf each.
        """
        cdef int64_t i, n_shares, task, n_done = 0
        n_threads = min(n_threads, <int>self.scratch.shape[0])
        for i in range(n_ids):
            if self.pays_by_rows(&self.leaves[ids[i]], n_threads):
                self.build_by_rows(&self.leaves[ids[i]], bits, same, n_threads)
                n_done += 1
        if n_done == n_ids:
            return
        n_shares = min(shares_of_each(n_ids, n_threads), self.n_blocks)
        for task in prange(
            n_ids * n_shares, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
            schedule="dynamic",
        ):
            i = task % n_ids
            if not self.pays_by_rows(&self.leaves[ids[i]], n_threads):
                self.fill(
                    self.leaves[ids[i]].start, self.leaves[ids[i]].stop, bits, same,
                    self.n_blocks * (task // n_ids) // n_shares,
                    self.n_blocks * (task // n_ids + 1) // n_shares, threadid(),
                    line_in(self.lines, self.leaves[ids[i]].line),
                )

    cdef bint pays_by_rows(self, const Leaf* leaf, int n_threads) noexcept nogil:
        return n_threads > 1 and (leaf.stop - leaf.start) * 2 > self.n_cells * n_threads

    cdef void fill(
        self, int64_t start, int64_t stop, int bits, bint same, int64_t first, int64_t last, int thread,
        int64_t* line,
    ) noexcept nogil:
        """Fill the cells of the blocks first..last-1 from the rows order[start:stop]."""
        fill_line(
            self.lanes, bytes_in(self.bytes), self.bytes.strides[0], self.bytes.shape[1],
            run_in(self.digits, 0), run_in(self.first_digit, 0), line_in(self.cells_of_digits, 0),
            run_in(self.order, start), run_in(self.sums, start), stop - start, bits, same, first, last,
            &self.scratch[thread, 0], &self.tables[thread, 0], &self.joint, line,
        )

    cdef void build_by_rows(self, const Leaf* leaf, int bits, bint same, int n_threads) noexcept:
        cdef int64_t n_rows = leaf.stop - leaf.start, width = self.n_cells * self.lanes, t, k, first
        with nogil, parallel(num_threads=n_threads):
            for t in prange(n_threads, schedule="static"):
                self.fill(
                    leaf.start + n_rows * t // n_threads, leaf.start + n_rows * (t + 1) // n_threads, bits,
                    same, 0, self.n_blocks, <int>t,
                    line_in(self.lines, leaf.line) if t == 0 else line_in(self.own_lines, t),
                )
            wait_for_all()
            for t in prange(n_threads, schedule="static"):
                first = width * t // n_threads
                for k in range(1, n_threads):
                    add_line(
                        width * (t + 1) // n_threads - first, line_in(self.own_lines, k) + first,
                        line_in(self.lines, leaf.line) + first,
                    )
