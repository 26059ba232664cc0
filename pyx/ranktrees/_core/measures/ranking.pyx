"""Sort the rows of each query by score and evaluate a measure on the ranking: one value per query.

The measures themselves are in formulas.pxi. Each is a sum over ties, runs of rows whose order is open. Rows
with score -inf are not retrieved: they are in the divisor of a measure, but have no rank.
"""
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, NAN, floor, ldexp, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy

import numpy as np

from ranktrees._core.support.records cimport LN_2, portable_exp, portable_log2
from ranktrees._core.support.views cimport run_in

include "formulas.pxi"


# ---- gains and discounts -----------------------------------------------------------------------------------

def exp2_gains(const double[::1] labels,  # IN
               double[::1] out):          # OUT
    """2^label - 1, exact for whole labels."""
    cdef Py_ssize_t i
    cdef double whole, part
    with nogil:
        for i in range(labels.shape[0]):
            whole = floor(labels[i])
            part = labels[i] - whole
            out[i] = ldexp(1.0 if part == 0.0 else portable_exp(part * LN_2), <int>max(whole, -2000.0)) - 1.0


def log2_discounts(double[::1] out):  # OUT
    """1 / log2(1 + rank) for rank = 1, 2, ..."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(out.shape[0]):
            out[i] = 1.0 / portable_log2(<double>(i + 2))


def query_sums(const double[::1] values,     # IN
               const int64_t[::1] offsets,   # IN
               double[::1] out):             # OUT
    """Sum the values of each query, in the order of the rows."""
    cdef Py_ssize_t q, i
    cdef double total
    with nogil:
        for q in range(out.shape[0]):
            total = 0.0
            for i in range(offsets[q], offsets[q + 1]):
                total += values[i]
            out[q] = total


# ---- ranking ---------------------------------------------------------------------------------------------

cdef Py_ssize_t lift_top(Row* rows, Py_ssize_t n, Py_ssize_t top, double* best) noexcept nogil:
    """Move the rows that can be above the cutoff to the front, in their order. Return their number.

    These are the rows that score at least as high as the ``top``-th best, so no tie is torn apart.
    """
    cdef Py_ssize_t i, held = 0
    cdef Row row
    for i in range(n):
        held = keep(rows[i].key, best, held, top)
    held = 0
    for i in range(n):
        if rows[i].key >= best[top - 1]:
            row = rows[held]
            rows[held] = rows[i]
            rows[i] = row
            held += 1
    return held


def places(const double[::1] scores,     # IN
           const int64_t[::1] offsets,   # IN
           int64_t[::1] out,             # OUT  the place of each row in its query, counted from 0
           int n_threads):
    """Rank the rows of each query: highest score first, equal scores in the order of the rows."""
    cdef Py_ssize_t q, longest = 1, n_queries = offsets.shape[0] - 1
    cdef double[:, ::1] scratch
    for q in range(n_queries):
        longest = max(longest, offsets[q + 1] - offsets[q])
    if scores.shape[0] == 0:
        return
    n_threads = <int>max(1, min(<Py_ssize_t>n_threads, n_queries))
    scratch = np.empty((n_threads, 4 * longest))
    for q in prange(n_queries, nogil=True, schedule="dynamic", chunksize=8, num_threads=n_threads,
                    use_threads_if=n_threads > 1):
        places_of_query(run_in(scores, offsets[q]), run_in(out, offsets[q]), offsets[q + 1] - offsets[q],
                        <Row*>&scratch[threadid(), 0])


cdef void places_of_query(const double* scores, int64_t* out, Py_ssize_t n, Row* rows) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        rows[i].key = scores[i]
        rows[i].gain = <double>i
    sort_rows(rows, rows + n, n, False)
    for i in range(n):
        out[<Py_ssize_t>rows[i].gain] = i


# ---- ranked rows -> value, or NaN for a query without one --------------------------------------------------

cdef double pairs(const Row* rows, Py_ssize_t n, const Task* task,
                  double* labels, double* buffer) noexcept nogil:
    cdef Py_ssize_t i, start = 0, stop, run
    cdef int64_t right, tied = 0, same_score = 0, same_label = 0
    while start < n:  # rows of a tie stand smallest label first, so equal labels are neighbours
        stop = tie_stop(rows, start, n, task.average)
        same_score += n_pairs(stop - start)
        run = 0
        for i in range(start, stop):
            run = run + 1 if i > start and rows[i].gain == rows[i - 1].gain else 0
            tied -= run
        start = stop
    tied += same_score
    for i in range(n):
        labels[i] = rows[i].gain
    right = sort_counting(labels, buffer, n)
    run = 0
    for i in range(1, n):
        run = run + 1 if labels[i] == labels[i - 1] else 0
        same_label += run
    return of_pairs(task.formula, 2 * right + tied, n_pairs(n) - same_label, n_pairs(n) - same_score)


cdef double value(const Row* rows, Py_ssize_t n, Py_ssize_t n_retrieved, const Task* task, double by,
                  double* one) noexcept nogil:
    cdef Py_ssize_t start = 0, stop, end = n if task.formula == PAUC else min(n_retrieved, task.at)
    cdef double total = 0.0
    cdef Above above
    above.found, above.survive = 0.0, 1.0
    while start < end:
        stop = tie_stop(rows, start, n, task.average)
        total += part(rows, start, stop, task, &above, one)
        start = stop
    return min(1.0, total / by) if task.formula == NDCG else total / by


cdef double evaluate_query(const double* gains, const double* scores, Py_ssize_t n, const Task* task,
                           int ties, bint known, double* by, double* scratch) noexcept nogil:
    cdef Row* rows = <Row*>scratch
    cdef Py_ssize_t i, source, n_sorted = n, n_retrieved = 0
    cdef double divide_by
    cdef double* one = scratch + 4 * n
    cdef double* two = scratch + 5 * n + 1
    cdef bint of_all_pairs = task.formula == PAIR_ACCURACY or task.formula == KENDALL_TAU
    cdef Task of_query
    if known and not of_all_pairs and by[0] != by[0]:
        return NAN
    for i in range(n):
        source = n - 1 - i if ties == REVERSE else i
        rows[i].key = scores[source]
        rows[i].gain = gains[source]
        n_retrieved += scores[source] > -INFINITY
    of_query = task_of_query(task, rows, n)
    if not known and not of_all_pairs:
        by[0] = divisor(rows, n, &of_query, one, two)
        if by[0] != by[0]:
            return NAN
    # The order below the cutoff does not matter.
    if of_query.formula < PAUC and of_query.at <= SHORT and of_query.at < n:
        n_sorted = lift_top(rows, n, of_query.at, one)
    sort_rows(rows, rows + n, n_sorted, ties == AVERAGE or ties == WORST)
    if of_all_pairs:
        return pairs(rows, n, &of_query, one, two)
    divide_by = by[0]
    if of_query.formula == P and task.at == 0:
        divide_by = <double>max(1, n_retrieved)
    return value(rows, n, n_retrieved, &of_query, divide_by, one)


cdef class Evaluator:
    """A measure of rows, to be evaluated on any of their scores.

    Parameters
    ----------
    of : PreparedCompiledMeasure
        ``formula``, ``ties``, and what `task_of` reads; ``gains`` of the rows: gains, relevances (0 or 1),
        stopping probabilities or labels; ``offsets`` and ``n_threads``.

    Attributes
    ----------
    divisors : ndarray of float64, shape (n_queries,)
        What the first evaluation finds: they do not depend on the scores. Not used for pairs.
    """

    cdef readonly object divisors
    cdef const double[::1] gains, discounts
    cdef const int64_t[::1] offsets
    cdef Task task
    cdef int ties, n_threads
    cdef bint known
    cdef Py_ssize_t longest

    def __init__(self, of):
        cdef Py_ssize_t q, n_queries = len(of.offsets) - 1
        self.gains, self.discounts, self.offsets = of.gains, of.discounts, of.offsets
        self.task, self.ties = task_of(of, self.discounts), of.ties
        self.divisors, self.known = np.empty(n_queries), False
        self.n_threads = <int>max(1, min(<Py_ssize_t>of.n_threads, n_queries))
        self.longest = 1
        for q in range(n_queries):
            self.longest = max(self.longest, self.offsets[q + 1] - self.offsets[q])

    def evaluate(
        self,
        const double[::1] scores,  # IN
        double[::1] out,           # OUT  one value per query; NaN if the measure is not defined
    ):
        """Evaluate the measure on every query."""
        cdef Py_ssize_t q, n_queries = out.shape[0]
        cdef double[:, ::1] scratch
        cdef double[::1] divisors = self.divisors
        if n_queries == 0 or self.gains.shape[0] == 0:
            np.asarray(out).fill(np.nan)
            return
        scratch = np.empty((self.n_threads, 6 * self.longest + 2))
        for q in prange(n_queries, nogil=True, schedule="dynamic", chunksize=8, num_threads=self.n_threads,
                        use_threads_if=self.n_threads > 1):
            out[q] = evaluate_query(
                run_in(self.gains, self.offsets[q]), run_in(scores, self.offsets[q]),
                self.offsets[q + 1] - self.offsets[q], &self.task, self.ties, self.known, &divisors[q],
                &scratch[threadid(), 0],
            )
        self.known = True
