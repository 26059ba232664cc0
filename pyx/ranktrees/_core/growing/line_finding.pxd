"""What other modules use of searching lines of all bins."""
cimport cython

from libc.stdint cimport int32_t, int64_t

from ranktrees._core.growing.finding cimport Finder
from ranktrees._core.support.records cimport Leaf, Split


@cython.final
cdef class LineFinder(Finder):
    cdef int64_t[:, ::1] lines
    cdef int lanes
    cdef const int32_t[:, ::1] all_features

    cpdef void find(self, const int32_t[::1] ids, int n_threads)
    cdef int64_t scan_lines(
        self, const int32_t[::1] ids, const int32_t[:, ::1] features, const int64_t[:, ::1] counts,
        int n_threads,
    )
    cdef void find_one(
        self, Leaf* leaf, const int32_t* features, int64_t width, const int64_t* counts
    ) noexcept nogil
    cdef Split best_of_line(
        self, const Leaf* leaf, const int32_t* features, int64_t width, const int64_t* counts
    ) noexcept nogil
