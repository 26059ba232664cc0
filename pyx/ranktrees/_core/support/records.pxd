"""The records that Python and the kernels share. Their NumPy dtypes are in ``_core.dtypes``."""
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "support/portable.h" nogil:
    double portable_exp(double x)
    double portable_log2(double x)
    double portable_log(double x)
    double portable_softplus(double x, double small)
    double LN_2
    uint64_t portable_random(uint64_t seed, uint64_t stream, uint64_t counter)
    double portable_uniform(uint64_t random)
    uint64_t portable_key(uint64_t seed, uint64_t stream)
    void portable_shuffle(
        int32_t* items, int64_t first, int64_t last, int64_t n, uint64_t key, uint64_t counter
    )


cdef extern from "support/records.h":
    enum: SHORTLIST  # the most features of a leaf that are refined together

cdef enum:
    PARTS_PER_THREAD = 8   # the rows have this many parts per thread; a leaf larger than one part is large
    LEAVES_PER_THREAD = 4  # with this many, it does not matter that some leaves are larger than others


# Integer sums over rows: of gradients and hessians in steps (see rounding.h), and the number of rows.
cdef extern from "support/records.h":
    ctypedef struct Bin:
        int64_t gradient
        uint32_t hessian
        uint32_t count


# The place of one feature within a byte that several features share: its value is byte // stride % radix.
# Value c stands for cell first + c of a line, but the last value, radix - 1, for cell last.
cdef extern from "support/records.h":
    ctypedef struct Digit:
        int32_t byte
        int32_t stride
        int32_t radix
        int32_t feature
        int32_t first
        int32_t last


# One of the features of a joint column (see ranktrees/binning/codes.py). Its cells in a line are first, ...,
# first + n_cells - 1, and last, that of rows without a value, which stays empty. Rows add to the cell
# first + usual, unless the value of the column has a pair (value, cell) of this feature.
cdef extern from "support/records.h":
    ctypedef struct Member:
        int64_t first_pair
        int64_t stop_pair
        int32_t feature
        int32_t first
        int32_t n_cells
        int32_t last
        int32_t usual
        int32_t unused


# The bytes of rows that are joint columns, from first_byte on: where the members of each begin, and pairs.
cdef extern from "support/records.h":
    ctypedef struct JointBytes:
        int64_t first_byte
        const int64_t* first_member
        const Member* members
        const uint8_t* values
        const int32_t* cells


# Rows whose values of a feature a streaming histogram has merged: the mean of the values, the number of rows,
# and the sums of their gradients and hessians.
cdef extern from "support/records.h":
    ctypedef struct Centroid:
        double value
        double mass
        double gradient
        double hessian


# The best cut of a feature by its streaming histogram. Values up to the cut go left, all of them if it is
# infinite, and rows without a value if missing_left is 1. feature is -1 if no cut gains anything.
cdef struct Offer:
    double gain
    double cut
    int32_t feature
    int32_t missing_left


# The best way to part a leaf's rows in two. Codes <= code go left; for a categorical feature the codes whose
# bit is set go left. Rows without a value go left if missing_left is 1.
cdef struct Split:
    double gain
    double second_gain     # the gain of a second split judged with it, that of the left child by this feature
    int32_t feature
    uint32_t code
    Bin left
    uint32_t categories[8]
    uint8_t missing_left
    uint8_t categorical
    int8_t direction       # 1: rows on the left are below those on the right; -1: above; 0: neither
    uint8_t unused[5]


# A node of a tree while it grows. Its rows are order[start:stop] and, if quiet rows (those whose gradient and
# hessian are rounded to nothing) are set apart, order[quiet_start:quiet_stop].
cdef struct Leaf:
    int64_t start
    int64_t stop
    int64_t quiet_start
    int64_t quiet_stop
    int64_t cut            # once it is split, where the rows of its left child end
    int64_t quiet_cut
    Bin total
    double value
    double lower
    double upper
    double promise         # the gain by which the queue orders leaves; infinite if it must be split next
    Split split
    int32_t left           # -1 at first, 0 once its rows are parted, then the number of its left child
    int32_t right
    int32_t depth
    int32_t line           # the number of its line, or -1
    int32_t splits_below   # the most splits one below the other; 0 if too small, too deep, or all rows agree
    int32_t[4] shortlist   # the features that seem best in a coarse search, ascending, padded with -1
    int32_t forced_feature  # the feature that it must be split by, or -1


# The ends of what some rows want: their highest gradient / hessian, and minus their lowest.
cdef struct Ends:
    double highest
    double minus_lowest


# What a rank, or all of them, knows of a leaf once its rows are parted.
cdef struct PartedLeaf:
    int64_t n_left         # rows that go left
    int64_t n_lacking      # stretches in which some rows have no value
    Ends left
    Ends right


# A node of a finished tree. feature is -1 in a leaf. Children come after their parent. A row goes left if
# x <= cut or, for a categorical split (categories >= 0), if the bit of its category is set in that row of the
# ensemble's bit sets. If x is missing, or a category never seen, missing_left decides.
cdef struct Node:
    double cut
    double value
    double gain
    int64_t count
    int32_t feature
    int32_t left
    int32_t right
    int32_t categories
    uint8_t missing_left
    uint8_t unused[3]
    float cover


# A feature that an ensemble uses, and its planes of codes. first_category is -1 unless its categories are
# looked up.
cdef struct Column:
    int32_t feature
    int32_t first_plane
    int32_t n_planes
    int32_t unused
    int64_t first_category
    int64_t n_categories


# A plane of codes, one byte per row: how many of some cuts are below the value (if cuts is -1, of the cuts of
# the plane before), or whether the category goes right.
cdef struct Plane:
    int32_t cuts
    int32_t answers        # the row of answers for categories, or -1
    int32_t missing_left   # 1: a missing value is below all cuts; 0: above all
    int32_t place          # its place in a block


# How a tree is scored: in units (see units.h) or by a walk (see walking.h).
cdef struct Plan:
    int64_t table          # where the values of its leaves begin
    int64_t root           # its root among the nodes to walk
    int32_t depth
    int32_t n_leaves
    int32_t result         # the vector of the bench that holds the leaf of each row; -1 if it is walked
    int32_t unused


# Trees that are scored together, with their units interleaved; or a single tree that is walked.
cdef struct Group:
    int64_t first_unit
    int64_t n_units
    int64_t first_tree
    int64_t n_trees


cdef inline double value_of(
    double gradient, double hessian, double lower, double upper, double l2
) noexcept nogil:
    """-G / (H + l2) within the bounds: the value that lowers the loss most (a Newton step)."""
    cdef double value = -gradient / (hessian + l2) if hessian + l2 > 0 else 0.0
    return min(max(value, lower), upper)


cdef inline double best_value(
    Bin part, double lower, double upper, double l2, double gradient_unit, double hessian_unit
) noexcept nogil:
    """`value_of` for sums in steps."""
    return value_of(part.gradient * gradient_unit, part.hessian * hessian_unit, lower, upper, l2)


cdef inline void* start_of(array) except NULL:
    """Where a contiguous array begins, in a tenth of the time of a view; the caller keeps the array alive."""
    cdef Py_buffer buffer
    PyObject_GetBuffer(array, &buffer, PyBUF_SIMPLE)
    cdef void* start = buffer.buf
    PyBuffer_Release(&buffer)
    return start


cdef inline Leaf* leaves_in(leaves) except NULL:
    """A pointer to the first of an array of LEAF records."""
    return <Leaf*>start_of(leaves)


cdef inline Node* nodes_in(nodes) except NULL:
    """A pointer to the first of an array of NODE records."""
    return <Node*>start_of(nodes)


cdef inline int64_t n_rows_of(const Leaf* leaf) noexcept nogil:
    """The number of a leaf's rows on this rank, including the quiet ones."""
    return leaf.stop - leaf.start + leaf.quiet_stop - leaf.quiet_start


cdef inline int64_t first_from(int64_t row, const uint32_t* order, int64_t i, int64_t stop) noexcept nogil:
    """The first place in the ascending order[i:stop] whose row is at least ``row``; ``stop`` if none is."""
    cdef int64_t middle
    while i < stop:
        middle = (i + stop) // 2
        if order[middle] < row:
            i = middle + 1
        else:
            stop = middle
    return i


cdef inline bytes_of(codes):
    """uint8 or uint32[n_rows, n_features], feature by feature, as bytes: column f begins at [0, f]."""
    return codes.T.view("uint8").T


cdef inline int worth_threads(int n_threads, int64_t n_values, int64_t values_per_thread) noexcept nogil:
    """As many threads as there is work for, by the rule of ranktrees.support.parallel.threads_for."""
    return <int>min(<int64_t>n_threads, 1 + n_values // values_per_thread)


cdef inline int64_t shares_of_each(int64_t n_leaves, int n_threads) noexcept nogil:
    """The number of shares of a leaf: 1 if there are many leaves, else one for each thread to take."""
    return n_threads if n_leaves < LEAVES_PER_THREAD * n_threads else 1


cdef inline bint has_turn(int64_t n_rows, int64_t n_of_all, int n_threads, bint early) noexcept nogil:
    """Whether a leaf has its turn: large ones come early, so that no thread waits for one at the end."""
    return (n_rows * PARTS_PER_THREAD * n_threads > n_of_all) == early


cdef inline int64_t chunk_of(int64_t n, int n_threads) noexcept nogil:
    """How many of n tasks a thread takes at a time, as fetching the next takes as long as a small task."""
    return 1 + n // (16 * n_threads)
