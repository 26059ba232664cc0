"""Sort the rows of each query by score and evaluate a measure on the ranking: one value per query.

Every measure is one function of the ranked rows. They walk over *ties*, runs of rows whose order is open,
and add the expectation over all orders of a tie; a tie of one row is the plain textbook formula. Where the
order of equal scores is settled beforehand (``ties`` other than AVERAGE), every tie has one row.
"""
from cython.parallel cimport prange, threadid
from libc.math cimport NAN, floor, ldexp, sqrt
from libc.stdint cimport int64_t
from libc.string cimport memcpy

import numpy as np

cdef extern from "portable.h" nogil:
    double portable_exp(double x)
    double portable_log2(double x)

cpdef enum Formula:  # those up to R look at the rows above the cutoff only
    DCG
    NDCG
    ERR
    AP
    RR
    P
    R
    PAUC
    PAIR_ACCURACY
    KENDALL_TAU

cpdef enum Ties:
    AVERAGE  # the expectation over all orders of the rows of a tie
    WORST    # the order with the lowest value: smallest gain first
    INPUT    # the order of the input
    REVERSE  # the order of the input, last row first

cdef struct Row:
    double score
    double gain

cdef struct Task:
    int formula
    bint average
    int64_t low              # PAUC only: the number of irrelevant rows to pass over
    int64_t at               # the cutoff (PAUC: of irrelevant rows); 0 is none
    const double *discounts  # DCG and NDCG only: one per rank up to the cutoff

cdef enum:
    SHORT = 64  # cutoffs up to which the best are kept in a list instead of sorting everything

cdef double LN2 = 0.6931471805599453


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
            out[i] = ldexp(1.0 if part == 0.0 else portable_exp(part * LN2), <int>whole) - 1.0


def log2_discounts(double[::1] out):  # OUT
    """1 / log2(1 + rank) for rank = 1, 2, ..."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(out.shape[0]):
            out[i] = 1.0 / portable_log2(<double>(i + 2))


def query_sums(const double[::1] values,     # IN
               const int64_t[::1] offsets,   # IN
               double[::1] out):             # OUT
    """The sum of each query's values, added in row order."""
    cdef Py_ssize_t q, i
    cdef double total
    with nogil:
        for q in range(out.shape[0]):
            total = 0.0
            for i in range(offsets[q], offsets[q + 1]):
                total += values[i]
            out[q] = total


# ---- sorting -----------------------------------------------------------------------------------------------

cdef inline bint before(const Row *a, const Row *b, bint by_gain) noexcept nogil:
    return a.score > b.score or (by_gain and a.score == b.score and a.gain < b.gain)


cdef void sort_rows(Row *rows, Row *buffer, Py_ssize_t n, bint by_gain) noexcept nogil:
    """Highest score first; equal scores keep their order, or go smallest gain first (``by_gain``).

    A bottom-up merge sort over runs of 16 rows put in order by insertion.
    """
    cdef Py_ssize_t start, stop, middle, i, j, k, width = 16
    cdef Row row
    cdef Row *source = rows
    cdef Row *target = buffer
    cdef Row *swap
    for i in range(n):
        start = i - i % width
        row = rows[i]
        j = i
        while j > start and before(&row, &rows[j - 1], by_gain):
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row
    while width < n:
        start = 0
        while start < n:
            middle = min(start + width, n)
            stop = min(middle + width, n)
            i, j = start, middle
            for k in range(start, stop):
                if j == stop or (i < middle and not before(&source[j], &source[i], by_gain)):
                    target[k] = source[i]
                    i += 1
                else:
                    target[k] = source[j]
                    j += 1
            start = stop
        swap = source
        source = target
        target = swap
        width *= 2
    if source != rows:
        memcpy(rows, source, n * sizeof(Row))


cdef inline Py_ssize_t keep(double value, double *best, Py_ssize_t held, Py_ssize_t top) noexcept nogil:
    """Put a value into the descending list of the ``top`` largest; returns how many it now holds."""
    cdef Py_ssize_t j
    if held < top:
        held += 1
    elif value <= best[top - 1]:
        return held
    j = held - 1
    while j > 0 and best[j - 1] < value:
        best[j] = best[j - 1]
        j -= 1
    best[j] = value
    return held


cdef Py_ssize_t lift_top(Row *rows, Py_ssize_t n, Py_ssize_t top, double *best) noexcept nogil:
    """Move the rows that can be above the cutoff to the front, in their order; returns their number.

    They are those that score at least as much as the ``top``-th best, so no tie is torn apart.
    """
    cdef Py_ssize_t i, held = 0
    cdef Row row
    for i in range(n):
        held = keep(rows[i].score, best, held, top)
    held = 0
    for i in range(n):
        if rows[i].score >= best[top - 1]:
            row = rows[held]
            rows[held] = rows[i]
            rows[i] = row
            held += 1
    return held


cdef int64_t sort_counting(double *values, double *buffer, Py_ssize_t n) noexcept nogil:
    """Sort ascending; returns the number of pairs that stood the other way round (strictly)."""
    cdef Py_ssize_t start, stop, middle, i, j, k, width = 1
    cdef int64_t count = 0
    cdef double *source = values
    cdef double *target = buffer
    cdef double *swap
    while width < n:
        start = 0
        while start < n:
            middle = min(start + width, n)
            stop = min(middle + width, n)
            i, j = start, middle
            for k in range(start, stop):
                if j == stop or (i < middle and source[i] <= source[j]):
                    target[k] = source[i]
                    i += 1
                else:
                    target[k] = source[j]
                    j += 1
                    count += middle - i
            start = stop
        swap = source
        source = target
        target = swap
        width *= 2
    if source != values:
        memcpy(values, source, n * sizeof(double))
    return count


cdef inline Py_ssize_t tie_stop(const Row *rows, Py_ssize_t start, Py_ssize_t n, bint average) noexcept nogil:
    """The end of the tie that begins at rank ``start``."""
    cdef Py_ssize_t stop = start + 1
    if average:
        while stop < n and rows[stop].score == rows[start].score:
            stop += 1
    return stop


cdef inline double sum_gains(const Row *rows, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t i
    cdef double total = 0.0
    for i in range(start, stop):
        total += rows[i].gain
    return total


def places(const double[::1] scores,     # IN
           const int64_t[::1] offsets,   # IN
           int64_t[::1] out,             # OUT  the place of each row in its query, from 0 on
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
        places_of_query(&scores[0] + offsets[q], &out[0] + offsets[q], offsets[q + 1] - offsets[q],
                        <Row *>&scratch[threadid(), 0])


cdef void places_of_query(const double *scores, int64_t *out, Py_ssize_t n, Row *rows) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(n):
        rows[i].score = scores[i]
        rows[i].gain = <double>i
    sort_rows(rows, rows + n, n, False)
    for i in range(n):
        out[<Py_ssize_t>rows[i].gain] = i


# ---- the measures: ranked rows -> value, NaN for a query that has none -------------------------------------

cdef double dcg(const Row *rows, Py_ssize_t n, const Task *task) noexcept nogil:
    """The mean gain of a tie times the discounts of the ranks it covers (McSherry and Najork 2008)."""
    cdef Py_ssize_t i, start = 0, stop, top = min(n, task.at)
    cdef double total = 0.0, discount
    while start < top:
        stop = tie_stop(rows, start, n, task.average)
        discount = 0.0
        for i in range(start, min(stop, top)):
            discount += task.discounts[i]
        total += sum_gains(rows, start, stop) / <double>(stop - start) * discount
        start = stop
    return total


cdef double ideal_dcg(const Row *rows, Py_ssize_t n, const Task *task,
                      double *best, double *buffer) noexcept nogil:
    """The DCG of the gains in descending order."""
    cdef Py_ssize_t i, top = min(n, task.at), held = 0
    cdef double total = 0.0
    if top <= SHORT:
        for i in range(n):
            held = keep(rows[i].gain, best, held, top)
    else:
        for i in range(n):
            best[i] = -rows[i].gain
        sort_counting(best, buffer, n)
        for i in range(top):
            best[i] = -best[i]
    for i in range(top):
        total += best[i] * task.discounts[i]
    return total


cdef double err(const Row *rows, Py_ssize_t n, const Task *task, double *passing) noexcept nogil:
    """Sum over ranks of P(the user stops here) / rank; a gain is the chance that its row stops the user.

    In a tie of m rows with passing probabilities q, the chance to get past the first k in random order is
    E_k = e_k(q) / C(m, k), the normalised elementary symmetric polynomial. It starts at one for the rows
    with q = 1, and adding a row to m - 1 others gives E_k = (1 - k/m) E_k + k/m q E_(k-1). By Maclaurin's
    inequality E_k <= mean(q)^k, so ranks behind k = 46 / mean(1 - q) hold less than e^-46 = 1e-20 and are
    left out.
    """
    cdef Py_ssize_t i, k, m, size, start = 0, stop, last, top = min(n, task.at)
    cdef double total = 0.0, survive = 1.0, stopping, share
    while start < top and survive > 0.0:
        stop = tie_stop(rows, start, n, task.average)
        size = stop - start
        stopping = sum_gains(rows, start, stop)
        if size == 1:
            total += survive * stopping / <double>stop
            survive *= 1.0 - stopping
        elif stopping > 0.0:
            last = min(stop, top) - start
            if 46.0 * size < last * stopping:
                last = <Py_ssize_t>(46.0 * size / stopping) + 1
            m = 0
            while rows[start + m].gain == 0.0:
                m += 1
            for k in range(last + 1):
                passing[k] = 1.0 if k <= m else 0.0
            for i in range(start + m, stop):
                m += 1
                for k in range(min(m, last), 0, -1):
                    share = <double>k / <double>m
                    passing[k] = (1.0 - share) * passing[k] + share * (1.0 - rows[i].gain) * passing[k - 1]
            for k in range(1, last + 1):
                total += survive * (passing[k - 1] - passing[k]) / <double>(start + k)
            survive *= passing[last] if last == size else 0.0
        start = stop
    return total


cdef double ap(const Row *rows, Py_ssize_t n, const Task *task) noexcept nogil:
    """In a tie each row is relevant with probability r/m, and then the others are with (r-1)/(m-1)."""
    cdef Py_ssize_t i, start = 0, stop, top = min(n, task.at)
    cdef double total = 0.0, found = 0.0, hits, size, others
    while start < top:
        stop = tie_stop(rows, start, n, task.average)
        hits = sum_gains(rows, start, stop)
        size = <double>(stop - start)
        if hits > 0.0:
            others = (hits - 1.0) / (size - 1.0) if size > 1.0 else 0.0
            for i in range(start, min(stop, top)):
                total += hits / size * (found + 1.0 + <double>(i - start) * others) / <double>(i + 1)
        found += hits
        start = stop
    return total / sum_gains(rows, 0, n)


cdef double rr(const Row *rows, Py_ssize_t n, const Task *task) noexcept nogil:
    """In the first tie with relevant rows: rank by rank the probability that the first of them is here."""
    cdef Py_ssize_t i, start = 0, stop, top = min(n, task.at)
    cdef double total = 0.0, none_yet = 1.0, hits, hit
    while start < top:
        stop = tie_stop(rows, start, n, task.average)
        hits = sum_gains(rows, start, stop)
        if hits > 0.0:
            for i in range(start, min(stop, top)):
                hit = min(1.0, hits / <double>(stop - i))
                total += none_yet * hit / <double>(i + 1)
                none_yet *= 1.0 - hit
            break
        start = stop
    return total


cdef double hits_at(const Row *rows, Py_ssize_t n, const Task *task) noexcept nogil:
    """The number of relevant rows above the cutoff."""
    cdef Py_ssize_t start = 0, stop, top = min(n, task.at)
    cdef double total = 0.0
    while start < top:
        stop = tie_stop(rows, start, n, task.average)
        total += sum_gains(rows, start, stop) * (<double>(min(stop, top) - start) / <double>(stop - start))
        start = stop
    return total


cdef double pauc(const Row *rows, Py_ssize_t n, const Task *task) noexcept nogil:
    """The mean, over irrelevant rows low+1 ... at, of the share of relevant rows above.

    In a tie of r relevant and m irrelevant rows, r j/(m+1) relevant rows stand above the j-th irrelevant one.
    """
    cdef Py_ssize_t j, start = 0, stop
    cdef int64_t passed = 0, misses
    cdef int64_t n_relevant = <int64_t>sum_gains(rows, 0, n), high = min(task.at, n - n_relevant)
    cdef double area = 0.0, found = 0.0, hits
    if n_relevant == 0 or high <= task.low:
        return NAN
    while passed < high:
        stop = tie_stop(rows, start, n, task.average)
        hits = sum_gains(rows, start, stop)
        misses = stop - start - <int64_t>hits
        for j in range(1, misses + 1):
            if task.low < passed + j <= high:
                area += found + hits * (<double>j / <double>(misses + 1))
        found += hits
        passed += misses
        start = stop
    return area / (<double>(high - task.low) * <double>n_relevant)


cdef double pairs(const Row *rows, Py_ssize_t n, const Task *task,
                  double *labels, double *buffer) noexcept nogil:
    """Pairs in the right order among those with different labels, or Kendall's tau-b, from whole numbers."""
    cdef Py_ssize_t i, start = 0, stop, run
    cdef int64_t right, tied = 0, same_score = 0, same_label = 0, total = <int64_t>n * (n - 1) // 2
    cdef double open_labels, open_scores
    while start < n:  # rows of a tie stand smallest label first, so equal labels are neighbours
        stop = tie_stop(rows, start, n, task.average)
        same_score += <int64_t>(stop - start) * (stop - start - 1) // 2
        tied += <int64_t>(stop - start) * (stop - start - 1) // 2
        run = 0
        for i in range(start, stop):
            run = run + 1 if i > start and rows[i].gain == rows[i - 1].gain else 0
            tied -= run
        start = stop
    for i in range(n):
        labels[i] = rows[i].gain
    right = sort_counting(labels, buffer, n)
    run = 0
    for i in range(1, n):
        run = run + 1 if labels[i] == labels[i - 1] else 0
        same_label += run
    if total == same_label:
        return NAN
    open_labels = <double>(total - same_label)
    if task.formula == PAIR_ACCURACY:
        return (<double>right + 0.5 * <double>tied) / open_labels
    if total == same_score:
        return 0.0
    open_scores = <double>(total - same_score)
    return <double>(2 * right + tied - (total - same_label)) / (sqrt(open_labels) * sqrt(open_scores))


cdef double value(const Row *rows, Py_ssize_t n, const Task *task, double *one, double *two) noexcept nogil:
    cdef double ideal
    if task.formula == PAIR_ACCURACY or task.formula == KENDALL_TAU:
        return pairs(rows, n, task, one, two)
    if task.formula == PAUC:
        return pauc(rows, n, task)
    if not sum_gains(rows, 0, n) > 0.0:
        return NAN
    if task.formula == DCG:
        return dcg(rows, n, task)
    if task.formula == NDCG:
        ideal = ideal_dcg(rows, n, task, one, two)
        return min(1.0, dcg(rows, n, task) / ideal) if ideal > 0.0 else NAN
    if task.formula == ERR:
        return err(rows, n, task, one)
    if task.formula == AP:
        return ap(rows, n, task)
    if task.formula == RR:
        return rr(rows, n, task)
    if task.formula == P:
        return hits_at(rows, n, task) / <double>task.at
    return hits_at(rows, n, task) / sum_gains(rows, 0, n)


cdef double evaluate_query(const double *gains, const double *scores, Py_ssize_t n, const Task *task,
                           int ties, double *scratch) noexcept nogil:
    cdef Row *rows = <Row *>scratch
    cdef Py_ssize_t i, source, n_sorted = n
    cdef Task own = task[0]
    if own.at == 0:
        own.at = n
    for i in range(n):
        source = n - 1 - i if ties == REVERSE else i
        rows[i].score = scores[source]
        rows[i].gain = gains[source]
    if own.formula < PAUC and own.at <= SHORT and own.at < n:  # below the cutoff the order does not matter
        n_sorted = lift_top(rows, n, own.at, scratch + 4 * n)
    sort_rows(rows, rows + n, n_sorted, ties == AVERAGE or ties == WORST)
    return value(rows, n, &own, scratch + 4 * n, scratch + 5 * n + 1)


def evaluate(int formula,
             const double[::1] gains,      # IN   gain, relevance (0 or 1), stopping probability or label
             const double[::1] scores,     # IN
             const int64_t[::1] offsets,   # IN
             const double[::1] discounts,  # IN   one per rank up to the cutoff; DCG and NDCG only
             int ties,
             int64_t low,
             int64_t at,
             double[::1] out,              # OUT  one value per query; NaN where the measure is not defined
             int n_threads):
    """Evaluate one measure on every query."""
    cdef Py_ssize_t q, longest = 1, n_queries = out.shape[0]
    cdef double[:, ::1] scratch
    cdef Task task
    for q in range(n_queries):
        longest = max(longest, offsets[q + 1] - offsets[q])
    if n_queries == 0 or gains.shape[0] == 0:
        np.asarray(out).fill(np.nan)
        return
    n_threads = <int>max(1, min(<Py_ssize_t>n_threads, n_queries))
    scratch = np.empty((n_threads, 6 * longest + 2))
    task.formula = formula
    task.average = ties == AVERAGE
    task.low = low
    task.at = at
    task.discounts = &discounts[0] if discounts.shape[0] else NULL
    for q in prange(n_queries, nogil=True, schedule="dynamic", chunksize=8, num_threads=n_threads,
                    use_threads_if=n_threads > 1):
        out[q] = evaluate_query(&gains[0] + offsets[q], &scores[0] + offsets[q], offsets[q + 1] - offsets[q],
                                &task, ties, &scratch[threadid(), 0])
