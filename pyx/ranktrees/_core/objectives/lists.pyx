"""Gradients and losses of listwise objectives, which compare all rows of a query at once.

A query is never shared between threads, and its sums are added in one fixed order (see softmax.h).
"""
from cython.parallel cimport parallel, prange, threadid
from libc.stdint cimport int64_t, uint64_t

from ranktrees._core.objectives.dealing cimport Deal
from ranktrees._core.support.records cimport portable_exp, portable_log

cdef extern from "objectives/softmax.h" nogil:
    uint64_t portable_key(uint64_t seed, uint64_t stream) noexcept
    double highest_of_weight(int64_t n, const double* weights, const double* scores) noexcept
    void softmax_of_query(
        int64_t n, const double* masses, const double* weights, const double* scores, bint drawn,
        uint64_t key, uint64_t first, double* gradients, double* hessians,
    ) noexcept
    void centred_of_query(
        int64_t n, const double* labels, const double* weights, const double* scores, double* gradients,
        double* hessians,
    ) noexcept


def softmax_gradients(
    const double[::1] masses,    # IN   >= 0; the share of a row in its query is proportional to its mass
    const double[::1] weights,   # IN   or None
    const int64_t[::1] offsets,  # IN   query q is the rows offsets[q]:offsets[q + 1]
    Deal deal,                   # of the queries
    const double[::1] scores,    # IN
    bint drawn,                  # IN   whether a uniform draw is subtracted from each mass
    uint64_t seed,
    uint64_t stream,
    const int64_t[::1] first_rows,  # IN   the number of each query's first row among all, or None: its offset
    double[::1] gradients,       # OUT
    double[::1] hessians,        # OUT
    int n_threads,
):
    """Derive the cross entropy between the shares that labels and scores give the rows of each query."""
    cdef int64_t q, start
    cdef uint64_t key = portable_key(seed, stream)
    cdef const double* row_weights = &weights[0] if weights is not None else NULL
    deal.begin()
    with nogil, parallel(num_threads=n_threads):
        while True:
            q = deal.take(threadid())
            if q < 0:
                break
            start = offsets[q]
            softmax_of_query(
                offsets[q + 1] - start, &masses[start], row_weights + start if row_weights != NULL else NULL,
                &scores[start], drawn, key, first_rows[q] if first_rows is not None else start,
                &gradients[start], &hessians[start],
            )


def softmax_losses(
    const double[::1] masses,    # IN
    const double[::1] weights,   # IN   or None
    const int64_t[::1] offsets,  # IN
    const double[::1] scores,    # IN
    double[::1] losses,          # OUT  one per query, times the query's weight
    double[::1] counts,          # OUT  one per query: its weight, or 0 if no row has a mass
    int n_threads,
):
    """log(sum of w e^score) - sum of share * score."""
    cdef int64_t n_queries = offsets.shape[0] - 1, q, i
    cdef bint weighted = weights is not None
    cdef double high, sum, mass, scored, weight, total
    cdef const double* row_weights = &weights[0] if weighted else NULL
    for q in prange(
        n_queries, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
        schedule="dynamic", chunksize=8,
    ):
        high = highest_of_weight(
            offsets[q + 1] - offsets[q], row_weights + offsets[q] if weighted else NULL, &scores[offsets[q]]
        )
        sum = 0.0
        mass = 0.0
        scored = 0.0
        total = 0.0
        for i in range(offsets[q], offsets[q + 1]):
            weight = row_weights[i] if weighted else 1.0
            if weight == 0:
                continue
            total = total + weight
            sum = sum + weight * portable_exp(scores[i] - high)
            mass = mass + weight * masses[i]
            scored = scored + weight * masses[i] * (scores[i] - high)
        counts[q] = 0.0
        losses[q] = 0.0
        if mass > 0:
            counts[q] = total / (offsets[q + 1] - offsets[q])
            losses[q] = counts[q] * (portable_log(sum) - scored / mass)


def centred_gradients(
    const double[::1] labels,    # IN
    const double[::1] weights,   # IN   or None
    const int64_t[::1] offsets,  # IN   query q is the rows offsets[q]:offsets[q + 1]
    Deal deal,                   # of the queries
    const double[::1] scores,    # IN
    double[::1] gradients,       # OUT
    double[::1] hessians,        # OUT
    int n_threads,
):
    """Derive the squared error without the part that is the same for all rows of a query."""
    cdef int64_t q, start
    cdef const double* row_weights = &weights[0] if weights is not None else NULL
    deal.begin()
    with nogil, parallel(num_threads=n_threads):
        while True:
            q = deal.take(threadid())
            if q < 0:
                break
            start = offsets[q]
            centred_of_query(
                offsets[q + 1] - start, &labels[start], row_weights + start if row_weights != NULL else NULL,
                &scores[start], &gradients[start], &hessians[start],
            )
