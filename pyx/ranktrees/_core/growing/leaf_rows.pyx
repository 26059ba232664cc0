"""Set the values of a grown tree's leaves from their rows' gradients, and add them to the rows' scores.

Each thread has a share of the rows of every leaf. As these are ascending, and so are its quiet rows, the
shares of a thread are mostly the same rows in all rounds, which no other thread has touched.
"""
from cython.parallel cimport prange
from libc.math cimport ldexp
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy

from ranktrees._core.support.records cimport Leaf, leaves_in, n_rows_of, value_of
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

cdef enum:
    PARTS = 2  # of a leaf's rows: all but the quiet rows set apart, and these

cdef struct Rows:
    int64_t first  # in ``order``
    int64_t n


cdef inline Rows share_of(const Leaf* leaf, int part, int64_t share, int64_t n_shares) noexcept nogil:
    """One of so many equal shares of a part of a leaf's rows."""
    cdef int64_t start = leaf.quiet_start if part else leaf.start
    cdef int64_t n = (leaf.quiet_stop if part else leaf.stop) - start
    cdef int64_t first = n * share // n_shares
    return Rows(start + first, n * (share + 1) // n_shares - first)


cdef inline const double* side(
    const double[::1] gradients, const double[::1] hessians, int64_t i
) noexcept nogil:
    return run_in(hessians, 0) if i else run_in(gradients, 0)


def sum_leaves(
    leaves,                             # IN   LEAF records
    const uint32_t[::1] order,          # IN
    const double[::1] gradients,        # IN
    const double[::1] hessians,         # IN   or None
    double[:, :, ::1] largest,          # OUT  by thread, side and node: the largest |value| of a leaf's rows
    int64_t[:, :, ::1] steps,           # OUT  the sums of these rows, in steps that depend on the largest
):
    """The first of three steps to the values of leaves (rounding.h): each thread sums its shares."""
    cdef int64_t n_threads = largest.shape[0], t, i, k
    cdef const Leaf* leaf = leaves_in(leaves)
    for t in prange(
        n_threads, nogil=True, num_threads=<int>n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        for i in range(largest.shape[1]):
            for k in range(largest.shape[2]):
                largest[t, i, k], steps[t, i, k] = 0.0, 0
                if leaf[k].left < 0:
                    sum_share(
                        &leaf[k], order, side(gradients, hessians, i), t, n_threads, &largest[t, i, k],
                        &steps[t, i, k]
                    )


cdef inline void sum_share(
    const Leaf* leaf, const uint32_t[::1] order, const double* values, int64_t share, int64_t n_shares,
    double* largest, int64_t* steps,
) noexcept nogil:
    cdef int part
    cdef Rows rows
    for part in range(PARTS):
        rows = share_of(leaf, part, share, n_shares)
        largest[0] = max(largest[0], largest_of_rows(values, run_in(order, rows.first), rows.n))
    steps[0] = steps_of_share(leaf, order, values, share, n_shares, places_for(largest[0], leaf.total.count))


cdef inline int64_t steps_of_share(
    const Leaf* leaf, const uint32_t[::1] order, const double* values, int64_t share, int64_t n_shares,
    int places,
) noexcept nogil:
    cdef int64_t steps = 0
    cdef int part
    cdef Rows rows
    for part in range(PARTS):
        rows = share_of(leaf, part, share, n_shares)
        steps += steps_of_rows(values, run_in(order, rows.first), rows.n, places)
    return steps


def sum_again(
    leaves,                             # IN   LEAF records
    const uint32_t[::1] order,          # IN
    const double[::1] gradients,        # IN
    const double[::1] hessians,         # IN   or None
    const double[:, :, ::1] own,        # IN   the largest of each thread
    const double[:, ::1] largest,       # IN   and of all threads and ranks
    int64_t[:, :, ::1] steps,           # IN and OUT
):
    """The second step: sum again where the largest value of another thread or rank makes steps larger."""
    cdef int64_t n_threads = own.shape[0], t, i, k
    cdef int places
    cdef const Leaf* leaf = leaves_in(leaves)
    for t in prange(
        n_threads, nogil=True, num_threads=<int>n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        for i in range(own.shape[1]):
            for k in range(own.shape[2]):
                places = places_for(largest[i, k], leaf[k].total.count)
                if own[t, i, k] > 0 and places != places_for(own[t, i, k], leaf[k].total.count):
                    steps[t, i, k] = steps_of_share(
                        &leaf[k], order, side(gradients, hessians, i), t, n_threads, places
                    )


def set_values(
    leaves,                             # IN and OUT  LEAF records: the value is set if it was not split
    const double[:, ::1] largest,       # IN   of gradients and, if these differ, of hessians, over all ranks
    const int64_t[:, ::1] steps,        # IN   their sums over all ranks
    double hessian,                     # IN   the hessian of each row, if all are the same
    double l2,
):
    """The third step: set each leaf's value. Light rows count to the last bit if no heavier are there."""
    cdef Leaf* leaf = leaves_in(leaves)
    cdef int64_t k, i
    cdef double[2] sums
    for k in range(largest.shape[1]):
        if leaf[k].left < 0:
            sums[1] = exact_sum_of_same(hessian, leaf[k].total.count)
            for i in range(largest.shape[0]):
                sums[i] = 0.0
                if largest[i, k] > 0:
                    sums[i] = ldexp(
                        <double>steps[i, k], -places_for(largest[i, k], leaf[k].total.count)
                    )
            leaf[k].value = value_of(sums[0], sums[1], leaf[k].lower, leaf[k].upper, l2)


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
    double[::1] scores,                 # IN and OUT
    int n_threads,
):
    """Add the value of each row's leaf to its score, for the rows that the tree was grown from."""
    cdef int64_t t, k
    cdef int part
    cdef Rows rows
    cdef const Leaf* leaf = leaves_in(leaves)
    for t in prange(
        n_threads, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        for k in range(values.shape[0]):
            if leaf[k].left < 0:
                for part in range(PARTS):
                    rows = share_of(&leaf[k], part, t, n_threads)
                    add_value(values[k], run_in(order, rows.first), rows.n, run_in(scores, 0))


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
