"""What other modules see of sums that ranks add up."""
from libc.stdint cimport int32_t, int64_t

from records cimport Leaf

cdef extern from "words.h" nogil:
    ctypedef struct Field "sum_field":
        pass


cdef class Words:
    cdef object communicator
    cdef Leaf[::1] leaves
    cdef int64_t most_steps
    cdef int bits, room, spare, lanes
    cdef const int32_t[::1] ids, places
    cdef int64_t[:, ::1] lines
    cdef int64_t[::1] rest, all_cells

    cdef int bits_of_steps(self, int64_t n_rows) noexcept nogil
    cdef Field field(self, const Leaf* leaf, int lanes, int lane) noexcept nogil
    cpdef int32_t[::1] places_of(self, const int32_t[::1] ids)
    cpdef void add_up(
        self, const int32_t[::1] ids, int64_t[:, ::1] lines, const int32_t[::1] places, int lanes
    )
    cpdef void add_up_bins(
        self, const int32_t[::1] ids, const int32_t[:, ::1] features, int64_t[:, ::1] bins, int lanes
    )
    cpdef tuple pack(
        self, const int32_t[::1] ids, int64_t[:, ::1] lines, const int32_t[::1] places, int lanes,
        const int64_t[::1] ends,
    )
    cdef int64_t n_words(self, int64_t n_cells) noexcept
    cpdef void unpack(self, const int64_t[::1] words, int64_t first, int64_t last)
