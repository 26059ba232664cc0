"""What other modules use of queues of leaves that wait."""
from libc.stdint cimport int32_t, int64_t


cdef class Queue:
    cdef double[:] promises
    cdef bint one_by_one
    cdef int32_t[::1] leaves
    cdef int64_t n

    cdef void make_room(self, int64_t n)
    cpdef void begin(self, bint one_by_one)
    cpdef void push(self, const int32_t[::1] ids, const int32_t[::1] parents=*)
    cpdef void put_back(self, const int32_t[::1] ids)
    cdef int64_t n_next(self, int64_t limit) noexcept
    cdef void take(self, int32_t[::1] ids)
    cdef const int32_t[::1] hopeless(self, int64_t limit)


cdef class WholeLayers(Queue):
    pass


cdef class BestLeaves(Queue):
    cdef double[::1] promised, above
    cdef double sum_of_ratios
    cdef int64_t n_ratios

    cdef void insert(self, int32_t leaf, double promise) noexcept
