"""What other modules use of searching coarse lines first."""
cimport cython

from libc.stdint cimport int32_t, int64_t, uint64_t

from ranktrees._core.growing.finding cimport Finder
from ranktrees._core.support.records cimport Leaf

cdef enum:
    ROW_REFINED = 4  # the cost of refining with one row, in steps of about a nanosecond


@cython.final
cdef class CoarseFinder(Finder):
    cdef int64_t[:, ::1] lines
    cdef const int64_t[::1] places
    cdef double[:, ::1] gains
    cdef int64_t[:, :, :, ::1] shortlists

    cpdef void shortlist(
        self, const int32_t[::1] ids, const int32_t[:, ::1] features, int n_threads,
        int64_t values_per_thread=*,
    )
    cdef void shortlist_some(
        self, const int32_t[::1] ids, int64_t begin, int64_t n_ids, const int32_t[:, ::1] features,
        int n_threads, int64_t values_per_thread,
    )
    cdef void draw_and_shortlist(
        self, int32_t k, const int32_t* usable, int64_t width, int64_t n_drawn, uint64_t key, int thread
    ) noexcept nogil
    cdef void find_gains(
        self, const Leaf* leaf, const int32_t* features, int64_t n, double* gains
    ) noexcept nogil
    cdef void find_gains_counted(
        self, const Leaf* leaf, const int32_t* features, int64_t n, const int64_t* counts, double* gains
    ) noexcept nogil
    cdef void pay(
        self, const Leaf* leaf, const int32_t* features, int64_t n, double* gains
    ) noexcept nogil
    cdef void choose(self, Leaf* leaf, const int32_t* features, int64_t n, double* gains) noexcept nogil
    cpdef void refine(self, const int32_t[::1] ids, int n_threads, int64_t values_per_thread=*)
    cdef int64_t n_rows_of(self, const int32_t[::1] ids) noexcept
    cdef void refine_alone(self, Leaf* leaf, int thread) noexcept nogil
    cdef void refine_together(self, const int32_t[::1] ids, int64_t n_parts)
    cdef int64_t[:, ::1] sums_of_shortlists(
        self, const int32_t[::1] ids, int n_threads, int64_t values_per_thread
    )
    cpdef int32_t[:, ::1] shortlists_of(self, const int32_t[::1] ids)
    cdef void scan_shortlists(self, const int32_t[::1] ids, int64_t[:, ::1] sums) noexcept
    cdef void sum_shortlist(
        self, const Leaf* leaf, int64_t part, int64_t n_parts, int64_t* sums, int thread
    ) noexcept nogil
    cdef void scan_shortlist(self, Leaf* leaf, int64_t* parts, int64_t n_parts) noexcept nogil
    cdef bint falls_short(self, const Leaf* leaf) noexcept nogil
    cdef bint choose_further(
        self, Leaf* leaf, const int32_t* features, int64_t n, double* gains
    ) noexcept nogil
    cdef void draw_and_look_further(
        self, int32_t k, const int32_t* usable, int64_t width, int64_t n_drawn, uint64_t key,
        const int64_t* counts, int thread,
    ) noexcept nogil
