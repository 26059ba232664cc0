"""Rows to lines of cells; see joint.h.

    order     [ rows of leaf 3 | of leaf 1 | ... ]    a leaf's rows are order[start:stop]
    sums      [  and their gradients and hessians  ]  side by side with them; see rounding.h
    bytes     row-major: the cells of one row, of several features in each
    lines     one per leaf that is kept: [ cells of feature 0 | cells of feature 1 | ... ]
"""
import numpy as np

from ranktrees._core.threads import AHEAD, room_for_each

from cython.parallel cimport parallel, prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from records cimport Leaf, shares_of_each, worth_threads

cdef extern from "bins.h" nogil:
    void add_line(int64_t n, const int64_t* part, int64_t* whole) noexcept
    void subtract_line(int64_t n, const int64_t* part, int64_t* whole) noexcept

cdef extern from "joint.h" nogil:
    ctypedef struct place_in_byte:
        pass
    enum: TABLE
    enum: BLOCK
    enum: CHUNK
    enum: STEP
    void fill_line(
        int lanes, const uint8_t* bytes, int64_t step, int64_t n_bytes, const place_in_byte* digits,
        const int64_t* first_digit, const uint8_t* cells, const uint32_t* rows, const int64_t* sums,
        int64_t n, int bits, int same, int64_t first, int64_t last, uint64_t* scratch, int64_t* tables,
        int64_t* line,
    ) noexcept nogil

cdef extern from "threads.h" nogil:
    void wait_for_all() noexcept

cdef enum:
    MARGINS = 64  # rows: clearing a byte's table, and adding up its margins, take as long


def cells_of(digits):
    """uint8[n_digits, 256]: by the value of its byte the cell of each digit, counted from its first one."""
    stride, radix, end = (digits[name][:, None] for name in ("stride", "radix", "last"))
    cells = np.arange(TABLE) // stride % radix
    return np.where(cells < radix - 1, cells, end - digits["first"][:, None]).astype(np.uint8)


cdef class Builder:
    """Builds and keeps the lines of leaves. The views of a fit are taken once: a small leaf takes less time.

    Parameters
    ----------
    bytes : ndarray of uint8, shape (n_rows, n_bytes)
        With eight more to read behind the last.
    digits : ndarray of DIGIT, by byte and, within a byte, from the lowest to the highest stride
    first_digit : ndarray of int64, shape (n_bytes + 1,)
    n_cells : int
        Of a line.
    order : ndarray of uint32, shape (n_rows,)
    sums : ndarray of int64, shape (n_rows,)
    n_threads : int
        The most that `build` will be asked for.
    """

    def __init__(self, bytes, digits, first_digit, n_cells, order, sums, n_threads):
        self.bytes, self.digits, self.first_digit = bytes, digits, first_digit
        self.cells_of_digits = cells_of(digits)
        self.n_blocks = -(-bytes.shape[1] // BLOCK)
        self.n_cells = n_cells
        self.go_through(order, sums)
        self.scratch = room_for_each(n_threads, self.n_blocks * STEP + 2 * CHUNK, np.uint64, AHEAD)
        self.built = self.siblings = self.spares = self.free_lines = np.empty(0, np.int32)
        self.lanes = 0

    def go_through(self, order, sums):
        """The rows from which lines are built, and their sums."""
        self.order, self.sums = order, sums

    def look_at(self, leaves, lines, int lanes):
        """The leaves, and where their lines are: ``lanes`` numbers per cell."""
        self.leaves, self.lines = leaves, lines
        if lanes != self.lanes:
            self.lanes = lanes
            n_threads = self.scratch.shape[0]
            n_sums = self.n_blocks * BLOCK * TABLE * lanes
            self.tables = room_for_each(n_threads, n_sums, np.int64, AHEAD)
            self.own_lines = room_for_each(n_threads if n_threads > 1 else 0, self.n_cells * lanes, np.int64)

    def begin(self):
        """A new tree: all lines are free. The last one is only ever lent."""
        cdef int64_t n = self.lines.shape[0] - 1, i
        if n > self.free_lines.shape[0]:
            self.free_lines = np.empty(n, np.int32)
        for i in range(n):
            self.free_lines[i] = <int32_t>(n - 1 - i)
        self.n_free = n

    cpdef bint root(self, int64_t few_rows, int bits, bint same, int n_threads):
        """Build the root's line; False where it has too few rows, or there is no line."""
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
        """Build the lines of the children 2 i and 2 i + 1 of each parent i that has one and needs it no more.

        The smaller child's is built from its rows, the larger one's is the parent's less that. Children that
        have fewer than ``few_rows`` both, and those that find no line, have none; nor do those of which
        neither may split.

        Returns
        -------
        with_line, without : ndarrays of int32
            The children that may split.
        """
        cdef int64_t n_built = self.hand_lines_over(parents, children, few_rows, True)
        self.build_and_subtract(n_built, bits, same, n_threads, values_per_thread)
        return self.sorted_out(children)

    cdef void build_and_subtract(
        self, int64_t n_built, int bits, bint same, int n_threads, int64_t values_per_thread
    ):
        """What is left to do when lines are handed over."""
        self.build_smaller(n_built, bits, same, n_threads, values_per_thread)
        if n_built:
            self.subtract_lines(
                n_built, worth_threads(n_threads, n_built * self.lines.shape[1], values_per_thread)
            )

    def hand_over(
        self, const int32_t[::1] parents, const int32_t[::1] children, int64_t few_rows, int bits, bint same,
        int n_threads, int64_t values_per_thread,
    ):
        """The first step of `take_over`, for ranks; which child is smaller tells the hessian of all.

        Returns the leaves whose lines are built, of this rank's rows; `subtract` is the second.
        """
        cdef int64_t n_built = self.hand_lines_over(parents, children, few_rows, False)
        self.build_smaller(n_built, bits, same, n_threads, values_per_thread)
        return self.built.base[:n_built].copy()

    cdef void build_smaller(
        self, int64_t n_built, int bits, bint same, int n_threads, int64_t values_per_thread
    ):
        """Build the lines that are missing when lines are handed over."""
        cdef int64_t n_values = 0, i
        for i in range(n_built):
            n_values += self.steps_to_build(&self.leaves[self.built[i]])
        if n_built:
            self.build_lines(
                &self.built[0], n_built, bits, same, worth_threads(n_threads, n_values, values_per_thread)
            )

    cdef int64_t steps_to_build(self, const Leaf* leaf) noexcept nogil:
        """What it takes, in steps of about a nanosecond."""
        return (leaf.stop - leaf.start + MARGINS) * self.bytes.shape[1]

    cdef int64_t hand_lines_over(
        self, const int32_t[::1] parents, const int32_t[::1] children, int64_t few_rows, bint by_rows
    ):
        """Each parent's line is its larger child's, the smaller takes another; how many are to be built."""
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
        """For so many lines to be built."""
        if n > self.built.shape[0]:
            self.built, self.siblings, self.spares = np.empty((3, 2 * n), np.int32)

    cdef bint hand_line_over(
        self, Leaf* parent, Leaf* left, Leaf* right, int64_t few_rows, bint by_rows, int32_t spare, int64_t i
    ) noexcept nogil:
        """The smaller child takes a spare line, the i-th to be built; False where neither needs one."""
        cdef Leaf* smaller = left
        cdef Leaf* larger = right
        if (
            left.stop - left.start > right.stop - right.start if by_rows
            else left.total.hessian > right.total.hessian
        ):
            smaller, larger = right, left
        if not (left.may_split or right.may_split) or larger.stop - larger.start < few_rows:
            return False
        larger.line = parent.line
        parent.line = -1
        smaller.line = spare
        self.built[i] = <int32_t>(smaller - &self.leaves[0])
        self.siblings[i] = <int32_t>(larger - &self.leaves[0])
        return True

    cdef bint set_aside(self, int64_t n):
        """A spare line for each of n leaves; False, and none, where there are not so many."""
        cdef int64_t k
        if self.n_free < n:
            return False
        self.make_room_for(n)
        for k in range(n):
            self.n_free -= 1
            self.spares[k] = self.free_lines[self.n_free]
        return True

    cdef void give_back(self, int64_t k) noexcept:
        """The k-th spare line."""
        self.free_lines[self.n_free] = self.spares[k]
        self.n_free += 1

    def subtract(self, int64_t n_built):
        """Lines that `hand_over` left to the larger children held the sums of both."""
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
        """Of the i-th two lines."""
        subtract_line(
            last - first, &self.lines[self.leaves[self.built[i]].line, first],
            &self.lines[self.leaves[self.siblings[i]].line, first],
        )

    cdef void build_one(self, int64_t i, int bits, bint same, int thread) noexcept nogil:
        """The i-th line to be built, by one thread."""
        cdef const Leaf* leaf = &self.leaves[self.built[i]]
        cdef int64_t* line = &self.lines[leaf.line, 0]
        self.fill(leaf.start, leaf.stop, bits, same, 0, self.n_blocks, thread, line)

    cpdef tuple sorted_out(self, const int32_t[::1] children):
        """The children that may split: those that have a line, and those that have none."""
        cdef int64_t n = children.shape[0], i, n_with = 0, n_without = 0
        cdef int32_t[::1] with_line = np.empty(n, np.int32)
        cdef int32_t[::1] without = np.empty(n, np.int32)
        for i in range(n):
            if self.leaves[children[i]].may_split and self.leaves[children[i]].line >= 0:
                with_line[n_with] = children[i]
                n_with += 1
            elif self.leaves[children[i]].may_split:
                without[n_without] = children[i]
                n_without += 1
        return with_line.base[:n_with], without.base[:n_without]

    cpdef int32_t[::1] lines_of(self, const int32_t[::1] ids):
        """Which lines some leaves have."""
        cdef int32_t[::1] places = np.empty(ids.shape[0], np.int32)
        cdef int64_t i
        for i in range(ids.shape[0]):
            places[i] = self.leaves[ids[i]].line
        return places

    cpdef void forget(self, const int32_t[::1] ids, bint split_too=True):
        """These leaves need their lines no more; only those without a split where ``split_too`` is false."""
        cdef int64_t i
        for i in range(ids.shape[0]):
            if self.leaves[ids[i]].line >= 0 and (split_too or self.leaves[ids[i]].split.feature < 0):
                self.drop_line(&self.leaves[ids[i]])

    cpdef void lend(self, const int32_t[::1] ids, int bits, bint same, int n_threads):
        """Build the line of one leaf for the moment, where it can not be kept; see `take_back`."""
        self.leaves[ids[0]].line = <int32_t>(self.lines.shape[0] - 1)
        self.build_lines(&ids[0], 1, bits, same, n_threads)

    cpdef void take_back(self, const int32_t[::1] ids):
        """End of `lend`."""
        self.leaves[ids[0]].line = -1

    cdef void take_line(self, Leaf* leaf) noexcept:
        self.n_free -= 1
        leaf.line = self.free_lines[self.n_free]

    cdef void drop_line(self, Leaf* leaf) noexcept:
        self.free_lines[self.n_free] = leaf.line
        self.n_free += 1
        leaf.line = -1

    def build(self, const int32_t[::1] ids, int bits, bint same, int n_threads):
        """Fill the line of each leaf in ``ids``."""
        if ids.shape[0]:
            self.build_lines(&ids[0], ids.shape[0], bits, same, n_threads)

    cdef void build_lines(self, const int32_t* ids, int64_t n_ids, int bits, bint same, int n_threads):
        """Fill the lines of some leaves.

        Threads share the rows of a leaf where that pays for a line more; of smaller leaves they share the
        blocks or, where they are many, take one leaf each.
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
                    &self.lines[self.leaves[ids[i]].line, 0],
                )

    cdef bint pays_by_rows(self, const Leaf* leaf, int n_threads) noexcept nogil:
        return n_threads > 1 and (leaf.stop - leaf.start) * 2 > self.n_cells * n_threads

    cdef void fill(
        self, int64_t start, int64_t stop, int bits, bint same, int64_t first, int64_t last, int thread,
        int64_t* line,
    ) noexcept nogil:
        """The cells of the blocks first..last-1, from the rows order[start:stop]."""
        fill_line(
            self.lanes, &self.bytes[0, 0], self.bytes.strides[0], self.bytes.shape[1],
            <const place_in_byte*>&self.digits[0], &self.first_digit[0], &self.cells_of_digits[0, 0],
            &self.order[0] + start, &self.sums[0] + start, stop - start, bits, same, first, last,
            &self.scratch[thread, 0], &self.tables[thread, 0], line,
        )

    cdef void build_by_rows(self, const Leaf* leaf, int bits, bint same, int n_threads) noexcept:
        cdef int64_t n_rows = leaf.stop - leaf.start, width = self.n_cells * self.lanes, t, k, first
        with nogil, parallel(num_threads=n_threads):
            for t in prange(n_threads, schedule="static"):
                self.fill(
                    leaf.start + n_rows * t // n_threads, leaf.start + n_rows * (t + 1) // n_threads, bits,
                    same, 0, self.n_blocks, <int>t,
                    &self.lines[leaf.line, 0] if t == 0 else &self.own_lines[t, 0],
                )
            wait_for_all()
            for t in prange(n_threads, schedule="static"):
                first = width * t // n_threads
                for k in range(1, n_threads):
                    add_line(
                        width * (t + 1) // n_threads - first, &self.own_lines[k, first],
                        &self.lines[leaf.line, first],
                    )
