"""Pairs within each query: the gradients of RankNet and of LambdaMART.

    rows of a query   sorted by falling score, ties by position
    pair (i, j)       i is ranked above j and is one of the ``truncation`` best; their grades differ
    rho               1 / (1 + e^(sigma (s_better - s_worse))): the probability that the model has them wrong
    lambda            sigma * weight * rho, pushes the better row up and the worse one down
    weight            1 (RankNet), or what swapping the two would change in the measure (LambdaMART)

A query is never shared between threads and its pairs are added in one fixed order (see pairs.h). A query
whose rows all have the same score has no order yet: every order is taken as likely as any other.
"""
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY
from libc.stdint cimport int16_t, int64_t
from libc.string cimport memset

from records cimport portable_exp, portable_log2

cdef extern from "pairs.h" nogil:
    enum: LANES, EMPTY_GRADE, RUN
    enum: PLAIN, SWAPPED, SIZED, SPREAD
    void count_above(int64_t n, const double* scores, int16_t* ranks) noexcept
    double add_pairs(
        int kind, int64_t n, int64_t top, double sigma, const double* discounts, const double* scores,
        double* grades, double* exponentials, double* gradients, double* hessians,
    ) noexcept


cdef enum:
    N_COLUMNS = 5  # scores, grades, exponentials, gradients, hessians

cdef double LN_2 = 0.6931471805599453


cdef struct Ranked:
    double score
    int64_t position


cdef inline void sort_run(const double* scores, int64_t start, int64_t n, Ranked* out) noexcept nogil:
    """Sort scores[start:start + n] by counting, then by insertion what counting could not tell apart."""
    cdef int16_t ranks[RUN]
    cdef int16_t places[RUN]  # of each rank, the next free one
    cdef int64_t i, k
    cdef double score
    cdef Ranked row
    count_above(n, scores + start, ranks)
    for k in range(n):
        places[k] = k
    for i in range(n):
        score = scores[start + i]
        k = places[ranks[i]]
        places[ranks[i]] += 1
        out[k].score = score if score == score else -INFINITY  # NaN has no place in an order
        out[k].position = start + i
    for i in range(1, n):
        if out[i - 1].score < out[i].score:
            row = out[i]
            k = i
            while k > 0 and out[k - 1].score < row.score:
                out[k] = out[k - 1]
                k -= 1
            out[k] = row


cdef inline void merge(const Ranked* rows, Ranked* out, int64_t middle, int64_t n) noexcept nogil:
    """Merge rows[:middle] and rows[middle:n], whose lengths differ by one at most, from both ends at once.

    Neither end can run out of rows in as many steps as the shorter part is long: no branch to guess.
    """
    cdef int64_t i = 0, j = middle, k = 0, i_end = middle - 1, j_end = n - 1, k_end = n - 1, first, _step
    for _step in range(min(middle, n - middle)):
        first = rows[i].score >= rows[j].score
        out[k] = rows[j ^ ((i ^ j) & -first)]  # i if first else j
        i += first
        j += 1 - first
        k += 1
        first = rows[i_end].score >= rows[j_end].score
        out[k_end] = rows[i_end ^ ((i_end ^ j_end) & -first)]  # j_end if first else i_end
        j_end -= first
        i_end -= 1 - first
        k_end -= 1
    if k == k_end:
        out[k] = rows[i if i == i_end else j]


cdef Ranked* sort(const double* scores, int64_t n, Ranked* rows, Ranked* spare) noexcept nogil:
    """Sort by falling score, equal scores as they come; the result is in ``rows`` or in ``spare``."""
    cdef int64_t n_runs = 1, r, start, middle, stop
    while n_runs * RUN < n:
        n_runs *= 2
    for r in range(n_runs):
        start = n * r // n_runs
        sort_run(scores, start, n * (r + 1) // n_runs - start, rows + start)
    while n_runs > 1:
        for r in range(0, n_runs, 2):
            start = n * r // n_runs
            middle = n * (r + 1) // n_runs
            stop = n * (r + 2) // n_runs
            merge(rows + start, spare + start, middle - start, stop - start)
        rows, spare = spare, rows
        n_runs //= 2
    return rows


cpdef int64_t whole_chunks(int64_t n) noexcept nogil:
    """``n`` rows and the empty ones behind them (see pairs.h)."""
    return (n + LANES - 1) // LANES * LANES


def scratch_shapes(int64_t longest, int n_threads):
    """The shapes of the scratch arrays ``numbers`` and ``records`` where no query has more rows."""
    return (n_threads, N_COLUMNS, whole_chunks(longest)), (n_threads, 2, longest, 2)


cdef inline Ranked* sort_query(
    const double* scores, int64_t n, double[:, :, :, ::1] records, int thread
) noexcept nogil:
    """The rows of one query, ranked."""
    return sort(scores, n, <Ranked*>&records[thread, 0, 0, 0], <Ranked*>&records[thread, 1, 0, 0])


cdef inline bint all_equal(const double* values, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(1, n):
        if values[i] != values[0]:
            return False
    return True


def ideals(
    const double[::1] gains,       # IN
    const int64_t[::1] offsets,    # IN   query q is the rows offsets[q]:offsets[q + 1]
    const double[::1] discounts,   # IN   one per rank that counts
    double[:, :, :, ::1] records,  # see scratch_shapes
    double[::1] out,               # OUT  one per query
    int n_threads,
):
    """The DCG of each query's best ranking."""
    cdef int64_t n_queries = offsets.shape[0] - 1, q, i, n
    cdef Ranked* rows
    cdef double sum
    for q in prange(
        n_queries, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
        schedule="dynamic", chunksize=8,
    ):
        n = offsets[q + 1] - offsets[q]
        rows = sort_query(&gains[offsets[q]], n, records, threadid())
        sum = 0.0
        for i in range(min(n, discounts.shape[0])):
            sum = sum + rows[i].score * discounts[i]
        out[q] = sum


cdef void query_gradients(
    int kind,
    int64_t n,
    const double* query_grades,
    const double* query_weights,
    const double* query_scores,
    const double* discounts,
    int64_t truncation,
    double sigma,
    bint log_norm,
    const Ranked* rows,
    double* numbers,
    int64_t width,
    double* out_gradients,
    double* out_hessians,
) noexcept nogil:
    """The sums over the pairs of one query, whose rows are ranked."""
    cdef double* scores = numbers
    cdef double* grades = numbers + width
    cdef double* exponentials = numbers + 2 * width
    cdef double* gradients = numbers + 3 * width
    cdef double* hessians = numbers + 4 * width
    cdef double size, norm = 1.0, weight
    cdef int64_t i, position, end = whole_chunks(n)
    for i in range(n):
        position = rows[i].position
        scores[i] = query_scores[position]
        grades[i] = query_grades[position]
    for i in range(n, end):
        scores[i] = scores[n - 1]
        grades[i] = EMPTY_GRADE
    memset(gradients, 0, end * sizeof(double))
    memset(hessians, 0, end * sizeof(double))
    size = 2.0 * sigma * add_pairs(
        kind, n, min(truncation, n - 1), sigma, discounts, scores, grades, exponentials, gradients, hessians
    )
    if log_norm and size > 0:
        norm = portable_log2(1.0 + size) / size
    for i in range(n):
        position = rows[i].position
        weight = norm if query_weights == NULL else norm * query_weights[position]
        out_gradients[position] = weight * (sigma * gradients[i])
        out_hessians[position] = weight * (sigma * sigma * hessians[i])


cdef double mean_swap(int64_t n, const double* discounts, int64_t top) noexcept nogil:
    """What swapping two rows of a random order is worth on average; without discounts, 1 where it counts."""
    cdef double below = 0.0, swaps = 0.0
    cdef int64_t rank
    for rank in range(n - 1, -1, -1):
        if rank < top:
            swaps += n - 1 - rank if discounts == NULL else (n - 1 - rank) * discounts[rank] - below
        if discounts != NULL:
            below += discounts[rank]
    return 2.0 * swaps / (<double>n * (n - 1))


cdef void undecided_gradients(
    int64_t n,
    const double* query_weights,
    const double* discounts,
    int64_t truncation,
    double sigma,
    bint log_norm,
    const Ranked* rows,     # sorted by falling grade
    double* out_gradients,
    double* out_hessians,
) noexcept nogil:
    """The expectation over all orders of the sums over the pairs of a query whose scores are all equal.

    Then rho is 1/2 for every pair, and a row's sums follow from how many rows have higher and lower grades,
    and what those grades sum to.
    """
    cdef double share = mean_swap(n, discounts, min(truncation, n - 1))
    cdef double total = 0.0, above = 0.0, grade, pull, spread, size = 0.0, norm = 1.0, weight
    cdef int64_t first = 0, last, i, position
    for i in range(n):
        total += rows[i].score
    while first < n:
        grade = rows[first].score
        last = first
        while last < n and rows[last].score == grade:
            last += 1
        if discounts == NULL:
            pull = (n - last) - first
            spread = (n - last) + first
        else:
            pull = n * grade - total
            spread = (above - first * grade) + ((n - last) * grade - (total - above - (last - first) * grade))
        above += (last - first) * grade
        size += (last - first) * 0.5 * sigma * share * spread
        for i in range(first, last):
            out_gradients[rows[i].position] = -0.5 * sigma * share * pull
            out_hessians[rows[i].position] = 0.25 * sigma * sigma * share * spread
        first = last
    if log_norm and size > 0:
        norm = portable_log2(1.0 + size) / size
    for position in range(n):
        weight = norm if query_weights == NULL else norm * query_weights[position]
        out_gradients[position] *= weight
        out_hessians[position] *= weight


def gradients(
    const double[::1] grades,      # IN   >= 0; of pairs with different grades; for NDCG, gain / ideal DCG
    const double[::1] weights,     # IN   or None
    const int64_t[::1] offsets,    # IN   query q is the rows offsets[q]:offsets[q + 1]
    const int64_t[::1] queries,    # IN   all of them, the longest first: what is left at the end is short
    const double[::1] scores,      # IN
    const double[::1] discounts,   # IN   one per rank, in whole_chunks; None: every pair weighs 1
    int64_t truncation,
    double sigma,
    bint spread,                   # divide a pair's weight by 0.01 + its difference of scores
    bint log_norm,                 # scale a query by log2(1 + size) / size, size = the sum of its |lambdas|
    double[:, :, ::1] numbers,     # see scratch_shapes
    double[:, :, :, ::1] records,  # see scratch_shapes
    double[::1] out_gradients,     # OUT
    double[::1] out_hessians,      # OUT
    int n_threads,
):
    """Each row's gradient and hessian: sums of lambda and of sigma^2 weight rho (1 - rho) over its pairs."""
    cdef int64_t n_queries = offsets.shape[0] - 1, k, q, start, n
    cdef int64_t chunk = min(8, 1 + n_queries // (32 * n_threads))
    cdef const double* table = &discounts[0] if discounts is not None else NULL
    cdef const double* row_weights = &weights[0] if weights is not None else NULL
    cdef int kind = PLAIN if discounts is None else SPREAD if spread else SIZED if log_norm else SWAPPED
    cdef int thread
    for k in prange(
        n_queries, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
        schedule="dynamic", chunksize=chunk,
    ):
        q = queries[k]
        start = offsets[q]
        n = offsets[q + 1] - start
        thread = threadid()
        if all_equal(&grades[start], n):
            memset(&out_gradients[start], 0, n * sizeof(double))
            memset(&out_hessians[start], 0, n * sizeof(double))
        elif all_equal(&scores[start], n):
            undecided_gradients(
                n, row_weights + start if row_weights != NULL else NULL, table, truncation, sigma, log_norm,
                sort_query(&grades[start], n, records, thread), &out_gradients[start], &out_hessians[start],
            )
        else:
            query_gradients(
                kind, n, &grades[start], row_weights + start if row_weights != NULL else NULL, &scores[start],
                table, truncation, sigma, log_norm, sort_query(&scores[start], n, records, thread),
                &numbers[thread, 0, 0], numbers.shape[2], &out_gradients[start], &out_hessians[start],
            )


def pair_losses(
    const double[::1] grades,      # IN
    const double[::1] weights,     # IN   or None
    const int64_t[::1] offsets,    # IN   query q is the rows offsets[q]:offsets[q + 1]
    const double[::1] scores,      # IN
    int64_t truncation,
    double sigma,
    double[:, :, :, ::1] records,  # see scratch_shapes
    double[::1] costs,             # OUT  one per query: the sum of log(1 + e^(sigma (s_worse - s_better)))
    double[::1] counts,            # OUT  one per query: the number of its pairs; in both, by weight
    int n_threads,
):
    """What RankNet's pairs cost; a pair weighs the mean of its two rows."""
    cdef int64_t n_queries = offsets.shape[0] - 1, q, start, i, j, a, b, n
    cdef bint weighted = weights is not None
    cdef double cost, count, weight, gap
    cdef Ranked* rows
    for q in prange(
        n_queries, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
        schedule="dynamic", chunksize=8,
    ):
        start = offsets[q]
        n = offsets[q + 1] - start
        cost = 0.0
        count = 0.0
        if not all_equal(&grades[start], n):
            rows = sort_query(&scores[start], n, records, threadid())
            for i in range(min(truncation, n - 1)):
                a = start + rows[i].position
                for j in range(i + 1, n):
                    b = start + rows[j].position
                    if grades[a] != grades[b]:
                        gap = sigma * (rows[i].score - rows[j].score)
                        weight = 0.5 * (weights[a] + weights[b]) if weighted else 1.0
                        count = count + weight
                        cost = cost + weight * LN_2 * portable_log2(1.0 + portable_exp(-gap))
                        if grades[a] < grades[b]:  # log(1 + e^gap) is log(1 + e^-gap) + gap
                            cost = cost + weight * gap
        costs[q] = cost
        counts[q] = count
