"""Set the values of a grown tree's leaves from their rows' gradients, and add them to the rows' scores.

    stretches of all rows    0        |  n/4     |  n/2     |  3n/4        each belongs to one thread
    rows of a leaf           3 20 41  |  97 108  |          |  150         ascending; so are the quiet rows

A thread processes one stretch after another, and all leaves in each. The gradients and scores of that many
rows fit in a nearby cache. A stretch has the same thread in all rounds, so no other thread has touched them.
"""
import numpy as np

from cython.parallel cimport parallel, prange
from libc.math cimport ldexp
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy

from ranktrees._core.support.records cimport Leaf, first_from, leaves_in, n_rows_of, value_of
from ranktrees._core.support.views cimport run_in

cdef extern from "growing/rounding.h" nogil:
    double exact_sum_of_same(double value, int64_t n) noexcept
    double largest_of_rows(const double* values, const uint32_t* rows, int64_t n) noexcept
    int places_for(double largest, int64_t n) noexcept
    int64_t steps_of_rows(const double* values, const uint32_t* rows, int64_t n, int places) noexcept

cdef extern from "support/codes.h" nogil:
    bint lie_apart(const uint32_t* rows, int64_t n) noexcept
    void fetch_first(const void* first, int64_t step, const uint32_t* rows, int64_t n) noexcept
    void fetch_coming(const void* first, int64_t step, const uint32_t* rows, int64_t i, int64_t n) noexcept

cdef extern from "support/threads.h" nogil:
    void wait_for_all() noexcept

cdef enum:
    NEARBY = 1 << 17  # the scores of this many rows fill a cache of a megabyte
    FINDING = 32      # finding the rows of a leaf in a stretch takes as long as processing this many
    PARTS = 2         # the parts of a leaf's rows: the quiet rows set apart, and before them all others


def begins_of_stretches(
    leaves,                             # IN   LEAF records
    const uint32_t[::1] order,          # IN
    int64_t n_rows,                     # all rows, of which the tree has some
    int n_threads,
):
    """int64[n_stretches + 1, n_nodes, 2]: where in ``order`` each stretch of all rows begins in each leaf.

    The rows of each leaf are in ascending order, and so are its quiet rows.
    """
    cdef int64_t n = len(leaves), k, s, row, n_stretches = 1 + (n_rows - 1) // (n_threads * <int64_t>NEARBY)
    cdef const Leaf* leaf = leaves_in(leaves)
    if order.shape[0] < FINDING * n_stretches * n_threads * n:
        n_stretches = 1
    n_stretches *= n_threads
    cdef int64_t[:, :, ::1] begins = np.empty((n_stretches + 1, n, PARTS), np.int64)
    for k in prange(n, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"):
        if leaf[k].left < 0:
            begins[0, k, 0], begins[0, k, 1] = leaf[k].start, leaf[k].quiet_start
            begins[n_stretches, k, 0], begins[n_stretches, k, 1] = leaf[k].stop, leaf[k].quiet_stop
            for s in range(1, n_stretches):
                row = n_rows * s // n_stretches
                begins[s, k, 0] = first_from(row, run_in(order, 0), begins[s - 1, k, 0], leaf[k].stop)
                begins[s, k, 1] = first_from(row, run_in(order, 0), begins[s - 1, k, 1], leaf[k].quiet_stop)
    return begins.base


def set_values(
    leaves,                             # IN and OUT  LEAF records: the value is set if it was not split
    const uint32_t[::1] order,          # IN
    const int64_t[:, :, ::1] begins,    # IN   of stretches
    const double[::1] gradients,        # IN
    const double[::1] hessians,         # IN   or None if all rows have the same,
    double hessian,                     # IN   which is this one
    double l2,
    int n_threads,
):
    """Set each leaf's value from its own rows: light rows count to the last bit if no heavier are there."""
    cdef int64_t n = len(leaves)
    cdef double[:, ::1] largest = np.empty((1 if hessians is None else 2, n))
    cdef int64_t[:, ::1] steps = np.empty((largest.shape[0], n), np.int64)
    cdef Leaf* leaf = leaves_in(leaves)
    sum_leaves(leaf, True, order, begins, gradients, largest[0], steps[0], n_threads)
    if hessians is not None:
        sum_leaves(leaf, True, order, begins, hessians, largest[1], steps[1], n_threads)
    set_from_steps(leaf, True, largest, steps, hessian, l2)


cdef inline int64_t n_rows_of_all(const Leaf* leaf, bint alone) noexcept nogil:
    """The number of a leaf's rows on all ranks."""
    return n_rows_of(leaf) if alone else leaf.total.count


cdef void sum_leaves(
    const Leaf* leaves, bint alone, const uint32_t[::1] order, const int64_t[:, :, ::1] begins,
    const double[::1] values, double[::1] largest, int64_t[::1] steps, int n_threads,
):
    """Set the largest |value| of each leaf's rows, and their sum in steps that depend on it (rounding.h).

    A stretch is summed in steps of its own, and again if the values of another stretch make steps larger.
    """
    cdef int64_t n = begins.shape[1], n_stretches = begins.shape[0] - 1, s, k
    cdef double[:, ::1] own = np.zeros((n_stretches, n))
    cdef int64_t[:, ::1] parts = np.zeros((n_stretches, n), np.int64)
    with nogil, parallel(num_threads=n_threads):
        for s in prange(n_stretches, schedule="static"):
            for k in range(n):
                if leaves[k].left < 0:
                    own[s, k] = largest_in(order, &begins[s, k, 0], &begins[s + 1, k, 0], values)
                    parts[s, k] = steps_in(
                        order, &begins[s, k, 0], &begins[s + 1, k, 0], values,
                        places_for(own[s, k], n_rows_of_all(&leaves[k], alone)),
                    )
        wait_for_all()
        for s in prange(n_stretches if n_stretches > 1 else 0, schedule="static"):
            for k in range(n):
                if own[s, k] > 0:
                    sum_again(&leaves[k], alone, order, begins, values, own, s, k, &parts[s, k])
    for k in range(n):
        largest[k], steps[k] = largest_of(own, k), 0
        for s in range(n_stretches):
            steps[k] += parts[s, k]


cdef inline void sum_again(
    const Leaf* leaf, bint alone, const uint32_t[::1] order, const int64_t[:, :, ::1] begins,
    const double[::1] values, const double[:, ::1] own, int64_t s, int64_t k, int64_t* steps,
) noexcept nogil:
    """Sum a stretch again if the steps of all stretches are larger than its own."""
    cdef int64_t n_rows = n_rows_of_all(leaf, alone)
    cdef int places = places_for(largest_of(own, k), n_rows)
    if places != places_for(own[s, k], n_rows):
        steps[0] = steps_in(order, &begins[s, k, 0], &begins[s + 1, k, 0], values, places)


cdef inline double largest_of(const double[:, ::1] own, int64_t k) noexcept nogil:
    cdef double largest = 0.0
    cdef int64_t s
    for s in range(own.shape[0]):
        largest = max(largest, own[s, k])
    return largest


cdef inline double largest_in(
    const uint32_t[::1] order, const int64_t* begins, const int64_t* ends, const double[::1] values
) noexcept nogil:
    """The largest |value| of a leaf's rows in a stretch."""
    cdef double largest = 0.0
    cdef int64_t part
    for part in range(PARTS):
        if begins[part] < ends[part]:
            largest = max(
                largest,
                largest_of_rows(run_in(values, 0), run_in(order, begins[part]), ends[part] - begins[part])
            )
    return largest


cdef inline int64_t steps_in(
    const uint32_t[::1] order, const int64_t* begins, const int64_t* ends, const double[::1] values,
    int places,
) noexcept nogil:
    cdef int64_t steps = 0, part
    for part in range(PARTS):
        if begins[part] < ends[part]:
            steps += steps_of_rows(
                run_in(values, 0), run_in(order, begins[part]), ends[part] - begins[part], places
            )
    return steps


cdef void set_from_steps(
    Leaf* leaves, bint alone, const double[:, ::1] largest, const int64_t[:, ::1] steps, double hessian,
    double l2,
) noexcept:
    cdef int64_t k, i, n_rows
    cdef double[2] sums
    for k in range(largest.shape[1]):
        if leaves[k].left < 0:
            n_rows = n_rows_of_all(&leaves[k], alone)
            sums[1] = exact_sum_of_same(hessian, n_rows)
            for i in range(largest.shape[0]):
                sums[i] = 0.0
                if largest[i, k] > 0:
                    sums[i] = ldexp(<double>steps[i, k], -places_for(largest[i, k], n_rows))
            leaves[k].value = value_of(sums[0], sums[1], leaves[k].lower, leaves[k].upper, l2)


def steps_of_leaves(
    leaves,                             # IN   LEAF records
    const uint32_t[::1] order,          # IN
    const int64_t[:, :, ::1] begins,    # IN   of stretches
    const double[::1] values,           # IN   one per row
    double[::1] largest,                # OUT  the largest |value| of each leaf's rows; 0 for a split node
    int64_t[::1] steps,                 # OUT  the sum of their values, in steps that depend on the largest
    int n_threads,
):
    """Sum each leaf's rows of this rank: the first of three steps to sums over ranks (rounding.h)."""
    sum_leaves(leaves_in(leaves), False, order, begins, values, largest, steps, n_threads)


def steps_among_ranks(
    leaves,                             # IN   LEAF records
    const uint32_t[::1] order,          # IN
    const int64_t[:, :, ::1] begins,    # IN   of stretches
    const double[::1] values,           # IN   one per row
    const double[::1] own,              # IN   the largest of each leaf on this rank
    const double[::1] largest,          # IN   and on all ranks
    int64_t[::1] steps,                 # IN and OUT
    int n_threads,
):
    """Sum again if the largest value of another rank makes steps larger: the second step."""
    cdef int64_t n = begins.shape[1], n_stretches = begins.shape[0] - 1, k
    cdef int places
    cdef const Leaf* leaf = leaves_in(leaves)
    for k in prange(
        n, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
    ):
        if leaf[k].left < 0 and own[k] > 0:
            places = places_for(largest[k], leaf[k].total.count)
            if places != places_for(own[k], leaf[k].total.count):
                steps[k] = steps_in(order, &begins[0, k, 0], &begins[n_stretches, k, 0], values, places)


def set_values_by_steps(
    leaves,                             # IN and OUT  LEAF records: the value is set if it was not split
    const double[:, ::1] largest,       # IN   of gradients and, if these differ, of hessians, over all ranks
    const int64_t[:, ::1] steps,        # IN   their sums
    double hessian,                     # IN   the hessian of each row, if all are the same
    double l2,
):
    """Set each leaf's value from its sums over ranks: the third step."""
    set_from_steps(leaves_in(leaves), False, largest, steps, hessian, l2)


def silence(
    const uint32_t[::1] rows,           # IN
    double[::1] gradients,              # IN and OUT  of all rows
    double[::1] hessians,               # IN and OUT
):
    """Leave nothing of the gradients and hessians of some rows."""
    cdef int64_t i
    for i in range(rows.shape[0]):
        gradients[rows[i]] = 0.0
        hessians[rows[i]] = 0.0


def scale(
    double[::1] values,                 # IN and OUT
    double factor,
):
    """Multiply values by a factor. Some may become infinite."""
    cdef int64_t k
    for k in range(values.shape[0]):
        values[k] *= factor


def add_values(
    leaves,                             # IN   LEAF records
    const double[::1] values,           # IN   one per node
    const uint32_t[::1] order,          # IN
    const int64_t[:, :, ::1] begins,    # IN   of stretches
    double[::1] scores,                 # IN and OUT
    int n_threads,
):
    """Add the value of each row's leaf to its score, for the rows that the tree was grown from."""
    cdef int64_t n_stretches = begins.shape[0] - 1, s
    cdef const Leaf* leaf = leaves_in(leaves)
    for s in prange(
        n_stretches, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        add_stretch(leaf, values, order, begins[s], begins[s + 1], scores)


cdef void add_stretch(
    const Leaf* leaves, const double[::1] values, const uint32_t[::1] order, const int64_t[:, ::1] begins,
    const int64_t[:, ::1] ends, double[::1] scores,
) noexcept nogil:
    cdef int64_t k, part
    for k in range(begins.shape[0]):
        if leaves[k].left < 0:
            for part in range(PARTS):
                add_value(
                    values[k], run_in(order, begins[k, part]), ends[k, part] - begins[k, part],
                    run_in(scores, 0)
                )


cdef inline void add_value(double value, const uint32_t* rows, int64_t n, double* scores) noexcept nogil:
    cdef bint apart = lie_apart(rows, n)
    cdef int64_t i
    if apart:
        fetch_first(scores, sizeof(double), rows, n)
    for i in range(n):
        if apart:
            fetch_coming(scores, sizeof(double), rows, i, n)
        scores[rows[i]] += value


def leaf_by_leaf(
    leaves,                             # IN   LEAF records
    const uint32_t[::1] order,          # IN
    const int64_t[::1] ids,             # IN   leaves
    const int64_t[::1] starts,          # IN   where in ``rows`` the rows of each leaf go
    uint32_t[::1] rows,                 # OUT
    int n_threads,
):
    """Copy the rows of each leaf, with its quiet rows after the others."""
    cdef int64_t n = ids.shape[0], i, n_loud
    cdef const Leaf* leaf = leaves_in(leaves)
    for i in prange(
        n, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
    ):
        n_loud = leaf[ids[i]].stop - leaf[ids[i]].start
        copy_rows(order, leaf[ids[i]].start, n_loud, rows, starts[i])
        copy_rows(
            order, leaf[ids[i]].quiet_start, n_rows_of(&leaf[ids[i]]) - n_loud, rows, starts[i] + n_loud
        )


cdef inline void copy_rows(
    const uint32_t[::1] order, int64_t first, int64_t n, uint32_t[::1] rows, int64_t start
) noexcept nogil:
    if n:
        memcpy(run_in(rows, start), run_in(order, first), n * sizeof(uint32_t))
