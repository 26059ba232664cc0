"""What other modules use of splitting leaves."""
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t

from ranktrees._core.support.code_columns cimport CodeColumns
from ranktrees._core.support.records cimport Ends, Leaf, PartedLeaf, Split

cdef extern from "growing/parting.h" nogil:
    ctypedef struct Way "way":
        int32_t last
        int32_t missing
        int32_t missing_left
        uint8_t left[256]

cdef enum:
    ROW_PARTED = 2  # the cost of parting one row, in steps of about a nanosecond


# Rows that are parted together: their place in the order, their place in the scratch, and how many go left.
cdef struct Piece:
    int64_t first
    int64_t n_rows
    int64_t place
    int64_t n_left


# The rows of a leaf that one thread parts, and whether some of them have no value.
cdef struct Stretch:
    Piece loud
    Piece quiet
    int64_t lacking


cdef class Parter:
    cdef CodeColumns columns
    cdef const int64_t[::1] offsets
    cdef const int8_t[::1] monotone
    cdef uint32_t[::1] order, row_scratch
    cdef int64_t[::1] sums, sum_scratch
    cdef Stretch[::1] stretches
    cdef int64_t n_stretches
    cdef Leaf[::1] leaves
    cdef double l2, gradient_unit, hessian_unit
    cdef const double[::1] gradients, hessians
    cdef int64_t min_samples_leaf, max_depth
    cdef int side_of_none  # where missing values go if a leaf has none: 1 left, 0 right, -1 with most rows
    cdef bint counts_later

    cdef void make_scratch(self, int64_t n_rows)
    cdef int32_t splits_below(self, const Leaf* leaf) noexcept nogil
    cdef int32_t splits_below_by_size(self, const Leaf* leaf, int64_t n_rows) noexcept nogil
    cdef void find_ends(self, const Leaf* leaf, Ends* ends) noexcept nogil
    cdef void find_ends_of_sides(self, const Leaf* leaf, Ends* left, Ends* right) noexcept nogil
    cdef void widen(self, Ends* ends, const uint32_t* rows, int64_t start, int64_t stop) noexcept nogil
    cdef void judge_leaf(self, Leaf* leaf, const Ends* ends) noexcept nogil
    cdef void judge_sides(self, const int32_t[::1] ids, const PartedLeaf[::1] parted) noexcept
    cpdef PartedLeaf[::1] part(self, const int32_t[::1] ids, int n_threads, int64_t values_per_thread)
    cpdef int32_t[::1] split_parted(
        self, const int32_t[::1] ids, int32_t first_child, const PartedLeaf[:, ::1] told
    )
    cdef void split_all(
        self, const int32_t[::1] ids, int32_t first_child, int n_threads, int64_t values_per_thread
    )
    cdef int worth(self, const int32_t[::1] ids, int n_threads, int64_t values_per_thread)
    cdef void lay_out(self, const int32_t[::1] ids)
    cdef Stretch* stretches_of(self, int64_t i) noexcept nogil
    cdef PartedLeaf[::1] part_all(self, const int32_t[::1] ids, int n_threads)
    cdef void make_all_children(
        self, const int32_t[::1] ids, int32_t first_child, int n_threads, const PartedLeaf[::1] parted
    )
    cdef void put_back(self, const Leaf* leaf) noexcept nogil
    cdef void merge(self, int64_t first, int64_t cut, int64_t stop, bint with_sums) noexcept nogil
    cdef void split_one(self, Leaf* leaf, int32_t first_child) noexcept nogil
    cdef bint part_one(self, Leaf* leaf) noexcept nogil
    cdef bint is_large_enough(self, const Leaf* leaf, int64_t n_left) noexcept nogil
    cdef void set_cut(self, Leaf* leaf, int64_t n_stretches, const Stretch* of) noexcept nogil
    cdef void keep_counts(self, Leaf* leaf, int64_t n_left, bint lacking) noexcept nogil
    cdef void make_children_of(self, Leaf* leaf, int32_t first_child) noexcept nogil
    cdef int32_t[::1] not_split(self, const int32_t[::1] ids)
    cdef void part_stretch(self, const Split* split, Stretch* stretch) noexcept nogil
    cdef int64_t part_piece(
        self, int64_t feature, const Way* way, Piece* piece, bint with_sums
    ) noexcept nogil
    cdef void take_stretch(
        self, const Leaf* leaf, int64_t s, int64_t n_stretches, const Stretch* of
    ) noexcept nogil
    cdef void take_piece(
        self, const Piece* piece, int64_t left, int64_t right, bint with_sums
    ) noexcept nogil
