"""The rows of a grown tree's leaves: what they want, and what they are given."""
from cython.parallel cimport prange
from libc.math cimport ldexp
from libc.stdint cimport int64_t, uint32_t

from records cimport Leaf, chunk_of, has_turn, leaves_in

cdef extern from "rounding.h" nogil:
    double exact_sum(const double* values, const uint32_t* rows, int64_t n) noexcept
    double exact_sum_of_same(double value, int64_t n) noexcept
    double largest_of_rows(const double* values, const uint32_t* rows, int64_t n) noexcept
    int places_for(double largest, int64_t n) noexcept
    int64_t steps_of_rows(const double* values, const uint32_t* rows, int64_t n, int places) noexcept

cdef enum:
    NEARBY = 1 << 16  # rows: their scores fill half of a cache of a megabyte
    FEW = 32          # rows of a leaf in a stretch: to find them takes as long as to go through so many


def set_values(
    leaves,                             # IN and OUT  LEAF records: the value of those that were not split
    const uint32_t[::1] order,          # IN
    const double[::1] gradients,        # IN
    const double[::1] hessians,         # IN   or None where all rows have
    double hessian,                     # IN   this one
    double l2,
    int n_threads,
):
    """Set each leaf's value from its own rows: light rows count to the last bit where they are alone."""
    cdef int64_t n = len(leaves), task, k, n_rows
    cdef double gradient, own
    cdef bint same = hessians is None
    cdef const uint32_t* rows
    cdef Leaf* leaf = leaves_in(leaves)
    for task in prange(
        2 * n, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic",
        chunksize=chunk_of(n, n_threads),
    ):
        k = task % n
        n_rows = leaf[k].stop - leaf[k].start
        if leaf[k].left < 0 and has_turn(n_rows, order.shape[0], n_threads, task < n):
            rows = &order[0] + leaf[k].start
            gradient = exact_sum(&gradients[0], rows, n_rows)
            own = exact_sum_of_same(hessian, n_rows) if same else exact_sum(&hessians[0], rows, n_rows)
            leaf[k].value = value_of(&leaf[k], gradient, own, l2)


cdef inline double value_of(const Leaf* leaf, double gradient, double hessian, double l2) noexcept nogil:
    cdef double value = -gradient / (hessian + l2) if hessian + l2 > 0 else 0.0
    return min(max(value, leaf.lower), leaf.upper)


def steps_of_leaves(
    leaves,                             # IN   LEAF records
    const uint32_t[::1] order,          # IN
    const double[::1] values,           # IN   one per row
    double[::1] largest,                # OUT  |value| of each leaf's rows; 0 of a node that was split
    int64_t[::1] steps,                 # OUT  their sum, in the steps that follow from it
    int n_threads,
):
    """The sum of each leaf's rows of this rank: the first of three steps to sums over ranks (rounding.h)."""
    cdef int64_t n = len(leaves), k, n_rows
    cdef const uint32_t* rows
    cdef const Leaf* leaf = leaves_in(leaves)
    for k in prange(
        n, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
    ):
        largest[k], steps[k] = 0.0, 0
        n_rows = leaf[k].stop - leaf[k].start
        if leaf[k].left < 0 and n_rows:
            rows = &order[0] + leaf[k].start
            largest[k] = largest_of_rows(&values[0], rows, n_rows)
            steps[k] = steps_of_rows(
                &values[0], rows, n_rows, places_for(largest[k], leaf[k].total.count)
            )


def steps_among_ranks(
    leaves,                             # IN   LEAF records
    const uint32_t[::1] order,          # IN
    const double[::1] values,           # IN   one per row
    const double[::1] own,              # IN   the largest of each leaf on this rank
    const double[::1] largest,          # IN   and on all
    int64_t[::1] steps,                 # IN and OUT
    int n_threads,
):
    """The second: the sum again, where another rank's largest value makes steps larger."""
    cdef int64_t n = len(leaves), k, n_rows
    cdef int places
    cdef const Leaf* leaf = leaves_in(leaves)
    for k in prange(
        n, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
    ):
        n_rows = leaf[k].stop - leaf[k].start
        if leaf[k].left < 0 and own[k] > 0:
            places = places_for(largest[k], leaf[k].total.count)
            if places != places_for(own[k], leaf[k].total.count):
                steps[k] = steps_of_rows(&values[0], &order[leaf[k].start], n_rows, places)


def set_values_by_steps(
    leaves,                             # IN and OUT  LEAF records: the value of those that were not split
    const double[:, ::1] largest,       # IN   of gradients and, if these differ, of hessians, over all ranks
    const int64_t[:, ::1] steps,        # IN   their sums
    double hessian,                     # IN   of each row, if these are the same
    double l2,
):
    """Set each leaf's value from its sums over ranks: the third."""
    cdef int64_t k, i
    cdef double[2] sums
    cdef Leaf* leaf = leaves_in(leaves)
    for k in range(len(leaves)):
        if leaf[k].left < 0:
            sums[1] = exact_sum_of_same(hessian, leaf[k].total.count)
            for i in range(largest.shape[0]):
                sums[i] = 0.0
                if largest[i, k] > 0:
                    sums[i] = ldexp(<double>steps[i, k], -places_for(largest[i, k], leaf[k].total.count))
            leaf[k].value = value_of(&leaf[k], sums[0], sums[1], l2)


def scale(
    double[::1] values,                 # IN and OUT
    double factor,
):
    """Values times a factor. If one becomes infinite, the next round says that the scores have diverged."""
    cdef int64_t k
    for k in range(values.shape[0]):
        values[k] *= factor


def add_values(
    leaves,                             # IN   LEAF records
    const double[::1] values,           # IN   one per node
    const uint32_t[::1] order,          # IN
    double[::1] scores,                 # IN and OUT
    int n_threads,
):
    """scores[row] += value of the row's leaf, for the rows the tree was grown from.

    In each leaf those before ``quiet_start`` rise, and the others. They are gone through by stretches of all
    rows, whose scores a nearby cache holds, and each of which one thread writes alone.
    """
    cdef int64_t n_rows = scores.shape[0], n_stretches = 1 + (n_rows - 1) // (n_threads * <int64_t>NEARBY), s
    cdef int64_t n = len(leaves)
    cdef const Leaf* leaf = leaves_in(leaves)
    if order.shape[0] < FEW * n_stretches * n_threads * n:
        n_stretches = 1
    n_stretches *= n_threads
    for s in prange(
        n_stretches, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        add_stretch(
            leaf, n, values, order, n_rows * s // n_stretches, n_rows * (s + 1) // n_stretches, scores
        )


cdef void add_stretch(
    const Leaf* leaves, int64_t n, const double[::1] values, const uint32_t[::1] order, int64_t first,
    int64_t last, double[::1] scores,
) noexcept nogil:
    cdef int64_t k
    for k in range(n):
        if leaves[k].left < 0:
            add_rising(order, leaves[k].start, leaves[k].quiet_start, values[k], first, last, scores)
            add_rising(order, leaves[k].quiet_start, leaves[k].stop, values[k], first, last, scores)


cdef void add_rising(
    const uint32_t[::1] order, int64_t i, int64_t end, double value, int64_t first, int64_t last,
    double[::1] scores,
) noexcept nogil:
    """Those of the rows order[i:end], which rise, that are from first to last - 1."""
    cdef int64_t stop = end, middle
    while i < stop:
        middle = (i + stop) // 2
        if order[middle] < first:
            i = middle + 1
        else:
            stop = middle
    while i < end and order[i] < last:
        scores[order[i]] += value
        i += 1
