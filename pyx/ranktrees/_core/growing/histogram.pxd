"""What other modules use of building lines of cells."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from ranktrees._core.support.records cimport Digit, JointBytes, Leaf


cdef class Builder:
    cdef const uint8_t[:, :] bytes
    cdef const Digit[::1] digits
    cdef const int64_t[::1] first_digit
    cdef const uint8_t[:, ::1] cells_of_digits
    cdef JointBytes joint
    cdef object joint_arrays
    cdef const uint32_t[::1] order
    cdef const int64_t[::1] sums
    cdef int64_t n_cells, n_blocks
    cdef int lanes
    cdef int64_t[:, ::1] tables, own_lines, counts, some_counts
    cdef int64_t[:, ::1] ranges  # by line: the stretches whose rows are counted, of loud and of quiet ones
    cdef const int64_t[::1] ones
    cdef uint64_t[:, ::1] scratch
    cdef Leaf[::1] leaves
    cdef int64_t[:, ::1] lines
    cdef int32_t[::1] free_lines, built, siblings, spares
    cdef readonly int64_t n_free

    cpdef bint root(self, int64_t few_rows, int bits, bint same, int n_threads)
    cdef void build_and_subtract(
        self, int64_t n_built, int bits, bint same, int n_threads, int64_t values_per_thread
    )
    cdef void build_smaller(
        self, int64_t n_built, int bits, bint same, int n_threads, int64_t values_per_thread
    )
    cdef int64_t steps_to_build(self, const Leaf* leaf) noexcept nogil
    cdef int64_t hand_lines_over(
        self, const int32_t[::1] parents, const int32_t[::1] children, int64_t few_rows, bint by_rows
    )
    cdef void make_room_for(self, int64_t n)
    cdef bint hand_line_over(
        self, Leaf* parent, Leaf* left, Leaf* right, int64_t few_rows, bint by_rows, int32_t spare, int64_t i
    ) noexcept nogil
    cdef bint set_aside(self, int64_t n)
    cdef void give_back(self, int64_t k) noexcept
    cdef void subtract_lines(self, int64_t n_built, int n_threads)
    cdef void subtract_cells(self, int64_t i, int64_t first, int64_t last) noexcept nogil
    cdef void build_one(self, int64_t i, int bits, bint same, int thread) noexcept nogil
    cpdef tuple sorted_out(self, const int32_t[::1] children)
    cpdef int32_t[::1] lines_of(self, const int32_t[::1] ids)
    cpdef void forget(self, const int32_t[::1] ids, bint split_too=*)
    cpdef void lend(self, const int32_t[::1] ids, int bits, bint same, int n_threads)
    cpdef void take_back(self, const int32_t[::1] ids)
    cdef void take_line(self, Leaf* leaf) noexcept
    cdef void drop_line(self, Leaf* leaf) noexcept
    cdef const int64_t* count(self, const Leaf* leaf, int thread) noexcept nogil
    cdef bint are_nearly(self, const Leaf* leaf, const int64_t* rows) noexcept nogil
    cdef void count_stretch(
        self, int64_t start, int64_t stop, bint leave, int thread, int64_t* counts
    ) noexcept nogil
    cdef void build_lines(self, const int32_t* ids, int64_t n_ids, int bits, bint same, int n_threads)
    cdef bint pays_by_rows(self, const Leaf* leaf, int n_threads) noexcept nogil
    cdef void fill(
        self, int64_t start, int64_t stop, int bits, bint same, int64_t first, int64_t last, int thread,
        int64_t* line,
    ) noexcept nogil
    cdef void build_by_rows(self, const Leaf* leaf, int bits, bint same, int n_threads) noexcept
