"""What other modules use of scanning the bins of a feature."""
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from ranktrees._core.growing.gains cimport Rules
from ranktrees._core.support.records cimport Bin, Leaf, Split

cdef enum:
    CELLS = 256  # the bins of one feature if codes are bytes, otherwise candidates that are judged together


# One feature of a leaf, and what its splits must satisfy.
cdef struct Case:
    const Leaf* leaf
    Rules rules
    int32_t feature
    int8_t sign            # 1: values must rise with the feature, -1: fall, 0: neither
    bint bounded           # whether the values of the children are held within the leaf's bounds


# Running sums over the bins of one feature whose sums are not zero, or over some of these, from the left (for
# categories, in the order of their mean gradient).
cdef struct Prefix:
    int32_t n
    double gradient[CELLS]
    double hessian[CELLS]
    double count[CELLS]
    uint32_t code[CELLS]


cdef class Scanner:
    cdef const int64_t[::1] offsets
    cdef const uint8_t[::1] is_categorical
    cdef const int8_t[::1] monotone
    cdef const int8_t* signs  # or NULL
    cdef const double[::1] prices
    cdef bint bounded, three_way, same, sampled, some_categorical
    cdef double variance  # of the gradients of rows, per unit of their hessian
    cdef int bits
    cdef Rules rules

    cdef int32_t n_bins(self, int64_t f) noexcept nogil
    cdef Rules rules_of(self, const Leaf* leaf, bint exact) noexcept nogil
    cdef Case case_of(self, const Leaf* leaf, int64_t f, bint exact) noexcept nogil
    cdef double undivided_gain(self, const Leaf* leaf) noexcept nogil
    cdef double least(self, const Leaf* leaf) noexcept nogil
    cdef Split undivided(self, const Leaf* leaf) noexcept nogil
    cdef void scan_sums(
        self, const Leaf* leaf, int64_t f, const int64_t* sums, const int64_t* counts, bint exact, Split* best
    ) noexcept nogil
    cdef void scan(
        self, const Bin* cells, int64_t f, const Leaf* leaf, const uint64_t* touched, bint exact, Split* best
    ) noexcept nogil
    cdef void scan_long(
        self, Bin* cells, int64_t f, const Leaf* leaf, uint64_t* touched, bint exact, Split* best
    ) noexcept nogil
    cdef void scan_touched(
        self, Bin* cells, int32_t n_bins, const Case* whole, uint64_t* touched, bint exact, Split* best
    ) noexcept nogil
    cdef void scan_three_ways(
        self, const Prefix* prefix, Bin missing, const Case* case, bint exact, Split* best
    ) noexcept nogil
    cdef Leaf valued(self, const Leaf* leaf, Bin missing) noexcept nogil
    cdef void join(
        self, const Prefix* prefix, const Case* case, const Leaf* valued, const Split* cut, Split* best
    ) noexcept nogil
