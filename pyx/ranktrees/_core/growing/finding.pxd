"""What other modules use of the search for splits."""
cimport cython

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from ranktrees._core.growing.gains cimport Rules
from ranktrees._core.support.records cimport Bin, Leaf, Split
from ranktrees._core.growing.scanning cimport Case, Prefix

cdef extern from "support/codes.h" nogil:
    ctypedef struct CodesByRow "codes_by_row":
        const uint8_t* bytes
        int64_t step, n_bytes
        const int32_t* byte_of
        const uint8_t* code_of
    ctypedef struct CodesOfFeature "codes_of_feature":
        const uint8_t* column
        int64_t step

cdef enum:
    ROW_REFINED = 4  # the cost of refining with one row, in steps of about a nanosecond


@cython.final
cdef class Finder:
    cdef const uint8_t[:, :] columns
    cdef bint is_long
    cdef const uint8_t[:, :] row_bytes
    cdef const uint8_t[:, ::1] row_codes
    cdef const int32_t[::1] row_places
    cdef CodesByRow bytes_by_row
    cdef const CodesByRow* by_row  # or NULL
    cdef const uint32_t[::1] order
    cdef const int64_t[::1] sums, offsets, places
    cdef const uint8_t[::1] is_categorical
    cdef const int8_t[::1] monotone
    cdef const double[::1] prices
    cdef Leaf[::1] leaves
    cdef int64_t[:, ::1] lines
    cdef int lanes, bits
    cdef bint same, bounded, plain, three_way, apart, sampled
    cdef Rules rules
    cdef Bin[:, ::1] cells
    cdef int64_t group
    cdef uint64_t[:, ::1] touched
    cdef int64_t[:, ::1] columns_scratch
    cdef int64_t[:, :, :, ::1] shortlists
    cdef double[:, ::1] scores
    cdef int32_t[:, ::1] drawn
    cdef uint64_t[:, ::1] marks
    cdef int64_t n_words, mark_words
    cdef Split[::1] found
    cdef object found_records  # the array that found views, as making an array of a view of records is slow
    cdef const int32_t[:, ::1] all_features
    cdef const int8_t* signs

    cdef Split* room_for(self, int64_t n)
    cdef int32_t n_bins(self, int64_t f) noexcept nogil
    cdef Rules rules_of(self, const Leaf* leaf, bint exact) noexcept nogil
    cdef Case case_of(self, const Leaf* leaf, int64_t f, bint exact) noexcept nogil
    cdef double own_score(self, const Leaf* leaf) noexcept nogil
    cdef Split undivided(self, const Leaf* leaf) noexcept nogil
    cdef double least(self, const Leaf* leaf) noexcept nogil
    cdef void conclude(self, Leaf* leaf, const Split* found, int64_t n_found) noexcept nogil
    cdef void conclude_all(self, const int32_t[::1] ids, int64_t n_shares)
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
    cdef void score(
        self, const Leaf* leaf, const int32_t* features, int64_t n, double* scores
    ) noexcept nogil
    cdef void score_counted(
        self, const Leaf* leaf, const int32_t* features, int64_t n, const int64_t* counts, double* scores
    ) noexcept nogil
    cdef void pay(
        self, const Leaf* leaf, const int32_t* features, int64_t n, double* scores
    ) noexcept nogil
    cdef void choose(self, Leaf* leaf, const int32_t* features, int64_t n, double* scores) noexcept nogil
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
        self, Leaf* leaf, const int32_t* features, int64_t n, double* scores
    ) noexcept nogil
    cdef void draw_and_look_further(
        self, int32_t k, const int32_t* usable, int64_t width, int64_t n_drawn, uint64_t key,
        const int64_t* counts, int thread,
    ) noexcept nogil
    cpdef void find_directly(self, const int32_t[::1] ids, const int32_t[:, ::1] features, int n_threads)
    cpdef void search_rows(
        self, const int32_t[::1] ids, const int32_t[:, ::1] features, bint exact, int n_threads
    )
    cdef void find_one_directly(
        self, Leaf* leaf, const int32_t* features, int64_t width, int thread
    ) noexcept nogil
    cdef void find_in_all_rows(
        self, Leaf* leaf, const int32_t* features, int64_t width, int thread
    ) noexcept nogil
    cdef Split best_of_rows(
        self, const Leaf* leaf, const int32_t* features, int64_t width, bint is_first, bint exact, int thread
    ) noexcept nogil
    cdef void draw_and_find(
        self, int32_t k, const int32_t* usable, int64_t width, int64_t n_drawn, uint64_t key, int thread
    ) noexcept nogil
    cdef const int32_t* draw(
        self, int32_t k, const int32_t* usable, int64_t width, int64_t first, int64_t n, uint64_t key,
        int thread,
    ) noexcept nogil
    cdef void scan_rows(
        self, const Leaf* leaf, const int32_t* features, int64_t width, bint exact, int thread, Split* best,
    ) noexcept nogil
    cdef void scan_few(
        self, const Leaf* leaf, const int32_t* features, int64_t width, bint exact, int thread, Split* best
    ) noexcept nogil
    cdef void scan_columns(
        self, const Leaf* leaf, const int32_t* features, int64_t width, bint exact, int thread, Split* best
    ) noexcept nogil
    cdef void scan_group(
        self, const Leaf* leaf, const int32_t* features, int64_t width, int thread, Split* best
    ) noexcept nogil
    cdef void add_columns(
        self, const Leaf* leaf, const int32_t* features, int64_t width, Bin* cells, uint64_t* touched
    ) noexcept nogil
    cdef void scan_long(
        self, const Leaf* leaf, int64_t f, bint exact, Bin* cells, uint64_t* touched, Split* best
    ) noexcept nogil
    cdef void add_column(
        self, const Leaf* leaf, int64_t f, bint exact, int32_t n_bins, Bin* cells, uint64_t* touched,
        uint64_t* words,
    ) noexcept nogil
    cdef CodesOfFeature codes_of(self, const Leaf* leaf, int64_t f) noexcept nogil
    cpdef void verify(self, const int32_t[::1] ids, const int32_t[:, ::1] features, int n_threads)
    cdef void verify_one(
        self, Leaf* leaf, const int32_t* features, int64_t width, int thread
    ) noexcept nogil
    cdef bint is_confirmed(self, const Leaf* leaf) noexcept nogil
    cdef int64_t n_left_of(self, const Leaf* leaf) noexcept nogil
    cdef void scan_sums(
        self, const Leaf* leaf, int64_t f, const int64_t* sums, const int64_t* counts, bint exact, Split* best
    ) noexcept nogil
    cdef void scan(
        self, const Bin* cells, int64_t f, const Leaf* leaf, const uint64_t* touched, bint exact, Split* best,
    ) noexcept nogil
    cdef void scan_three_ways(
        self, const Prefix* prefix, Bin missing, const Case* case, bint exact, Split* best
    ) noexcept nogil
    cdef Leaf valued(self, const Leaf* leaf, Bin missing) noexcept nogil
    cdef void join(
        self, const Prefix* prefix, const Case* case, const Leaf* valued, const Split* cut, Split* best
    ) noexcept nogil
