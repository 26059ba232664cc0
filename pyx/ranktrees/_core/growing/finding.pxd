"""What other modules use of searching leaves from their rows."""
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from ranktrees._core.growing.scanning cimport Scanner
from ranktrees._core.support.code_columns cimport CodeColumns
from ranktrees._core.support.records cimport Bin, Leaf, Split
from ranktrees._core.support.views cimport line_in

cdef extern from "support/codes.h" nogil:
    ctypedef struct CodesByRow "codes_by_row":
        const uint8_t* bytes
        int64_t step, n_bytes
        const int32_t* byte_of
        const uint8_t* code_of
    ctypedef struct CodesOfFeature "codes_of_feature":
        const uint8_t* column
        int64_t step


cdef inline const int32_t* features_of(
    const int32_t[:, ::1] features, int64_t i, int64_t first=0
) noexcept nogil:
    """The features of the i-th leaf, from ``first`` on, in one list per leaf or one list for all leaves."""
    return line_in(features, i if features.shape[0] > 1 else 0) + first


cdef class Finder(Scanner):
    cdef CodeColumns columns
    cdef bint is_long
    cdef const uint8_t[:, :] row_bytes
    cdef const uint8_t[:, ::1] row_codes
    cdef const int32_t[::1] row_places
    cdef CodesByRow bytes_by_row
    cdef const CodesByRow* by_row  # or NULL
    cdef const uint32_t[::1] order
    cdef const int64_t[::1] sums
    cdef Leaf[::1] leaves
    cdef bint plain, apart
    cdef Bin[:, ::1] cells
    cdef uint64_t[:, ::1] touched, marks
    cdef int64_t[:, ::1] columns_scratch
    cdef int32_t[:, ::1] drawn
    cdef int64_t n_words, mark_words
    cdef int64_t[:, :, ::1] joint_sums  # by thread, joint column, and value of that column
    cdef Bin[:, :, ::1] joint_bins
    cdef uint32_t[:, :, ::1] joint_counts
    cdef int64_t[:, ::1] summed, filled, counted  # by thread and column: the scan in which these were set
    cdef int32_t[:, ::1] splittable
    cdef int64_t[:, ::1] scans           # by thread: how many there were
    cdef Split[::1] found
    cdef object found_records  # the array that found views, as making an array of a view of records is slow

    cdef Split* room_for(self, int64_t n)
    cdef void conclude(self, Leaf* leaf, const Split* found, int64_t n_found) noexcept nogil
    cdef void conclude_all(self, const int32_t[::1] ids, int64_t n_shares)
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
    cdef void add_column(
        self, const Leaf* leaf, int64_t f, bint exact, Bin* cells, uint64_t* touched
    ) noexcept nogil
    cdef int64_t keep_splittable(
        self, const Leaf* leaf, const int32_t* features, int64_t width, bint exact, int thread
    ) noexcept nogil
    cdef int64_t n_unusual(self, const Leaf* leaf, int64_t f, bint exact, int thread) noexcept nogil
    cdef bint is_joint(self, int64_t f) noexcept nogil
    cdef void sum_joint(self, const Leaf* leaf, int64_t f, int thread, int64_t* cells) noexcept nogil
    cdef void fill_joint(self, const Leaf* leaf, int64_t f, int thread, Bin* cells) noexcept nogil
    cdef int64_t n_left_of_joint(self, const Leaf* leaf) noexcept nogil
    cdef void fill_one(
        self, const Leaf* leaf, const int32_t* feature, int64_t scan, int thread, Bin* cells
    ) noexcept nogil
    cdef CodesOfFeature codes_of(self, const Leaf* leaf, int64_t f) noexcept nogil
    cpdef void verify(self, const int32_t[::1] ids, const int32_t[:, ::1] features, int n_threads)
    cdef void verify_one(
        self, Leaf* leaf, const int32_t* features, int64_t width, int thread
    ) noexcept nogil
    cdef bint is_confirmed(self, const Leaf* leaf) noexcept nogil
    cdef int64_t n_left_of(self, const Leaf* leaf) noexcept nogil
