"""What other modules use of adding up sums over ranks."""
from libc.stdint cimport int32_t, int64_t

cdef extern from "growing/words.h" nogil:
    ctypedef struct Field "sum_field":
        pass


cpdef int32_t[::1] bins_in_use(const int32_t[:, ::1] features, int64_t n_leaves)


cdef class Words:
    cdef object communicator
    cdef int bits, size, spare, more, lanes, n_sums, n_repeated
    cdef const int32_t[::1] places
    cdef int64_t[:, ::1] lines
    cdef int64_t[::1] rest, all_cells
    cdef int64_t[:, :, ::1] largest, expected

    cpdef void add_up(self, int64_t[:, ::1] lines, const int32_t[::1] places, int lanes)
    cpdef void add_up_within(
        self, int64_t[:, ::1] lines, const int32_t[::1] places, const int64_t[:, ::1] known,
        const int64_t[:, ::1] within, int64_t width, const int64_t[::1] gradients,
    )
    cpdef tuple pack(
        self, int64_t[:, ::1] lines, const int32_t[::1] places, int lanes, const int64_t[::1] ends
    )
    cdef tuple packed(self, const int64_t[::1] ends, int64_t n_more)
    cdef void hear_largest(self)
    cdef bint expect_largest(
        self, const int64_t[:, ::1] known, const int64_t[:, ::1] within, int64_t width,
        const int64_t[::1] gradients,
    )
    cdef int bits_below(self, int lane) noexcept nogil
    cdef Field field(self, int64_t i, int lane) noexcept nogil
    cdef int64_t n_words(self, int64_t n_cells) noexcept
    cpdef void unpack(self, const int64_t[::1] words, int64_t first, int64_t last)
