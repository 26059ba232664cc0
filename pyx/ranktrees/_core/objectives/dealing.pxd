"""What other modules use of queries that are dealt to threads."""
cimport cython
from libc.stdint cimport int64_t


@cython.final
cdef class Deal:
    cdef const int64_t[::1] queries, begins
    cdef int64_t[:, ::1] taken
    cdef int64_t n_stretches

    cpdef void begin(self) noexcept nogil
    cpdef int64_t take(self, int thread) noexcept nogil
