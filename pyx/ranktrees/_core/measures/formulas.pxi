# Sort the rows of a query by score, and evaluate a measure on them. This file is included by ranking.pyx,
# which evaluates one ranking of each query, and by combining.pyx, which finds how the ranking changes.
#
# A measure is a sum over *ties*, runs of rows whose order is open, divided by a number that does not depend
# on the ranking. The part of a tie is the expectation over all its orders. Of the rows above, it uses only
# what `Above` holds. For a tie of one row it is the plain textbook formula. If the order of equal scores is
# settled beforehand (`ties` other than AVERAGE), every tie has one row.

cpdef enum Formula:  # those up to R_PRECISION use only the rows above the cutoff
    DCG
    NDCG
    ERR
    AP
    RR
    SUCCESS
    P
    R
    R_PRECISION
    PAUC
    PAIR_ACCURACY
    KENDALL_TAU

cpdef enum Ties:
    AVERAGE  # the expectation over all orders of the rows of a tie
    WORST    # the order with the lowest value: the smallest gain first
    INPUT    # the order of the input
    REVERSE  # the reverse order of the input

cdef struct Row:
    double key   # the score, or what stands for it in the order of ties
    double gain

cdef struct Task:
    int formula
    bint average
    int64_t low              # PAUC only: the number of irrelevant rows to pass over
    int64_t at               # the cutoff (PAUC: of irrelevant rows)
    const double* discounts  # DCG and NDCG only: one per rank up to the cutoff

cdef struct Above:
    double found    # AP, PAUC: the number of relevant rows; RR, SUCCESS: above 0 if there is one; else unset
    double survive  # ERR only: the probability that a user gets past these rows

cdef enum:
    SHORT = 64  # up to this cutoff, the best rows are kept in a list instead of sorting all


# ---- sorting -----------------------------------------------------------------------------------------------

cdef inline bint before(const Row* a, const Row* b, bint by_gain) noexcept nogil:
    return a.key > b.key or (by_gain and a.key == b.key and a.gain < b.gain)


cdef int64_t sort_rows(Row* rows, Row* buffer, Py_ssize_t n, bint by_gain) noexcept nogil:
    """Sort the highest score first; equal scores keep their order, or go smallest gain first (``by_gain``).

    This is a bottom-up merge sort over runs of 16 rows, which are sorted by insertion. It returns the number
    of pairs of rows that have changed places.
    """
    cdef Py_ssize_t start, stop, middle, i, j, k, width = 16
    cdef int64_t count = 0
    cdef Row row
    cdef Row* source = rows
    cdef Row* target = buffer
    cdef Row* swap
    for i in range(n):
        start = i - i % width
        row = rows[i]
        j = i
        while j > start and before(&row, &rows[j - 1], by_gain):
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row
        count += i - j
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
                    count += middle - i
            start = stop
        swap = source
        source = target
        target = swap
        width *= 2
    if source != rows:
        memcpy(rows, source, n * sizeof(Row))
    return count


cdef inline Py_ssize_t keep(double value, double* best, Py_ssize_t held, Py_ssize_t top) noexcept nogil:
    """Put a value into the descending list of the ``top`` largest. Return how many the list now holds."""
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


cdef inline Py_ssize_t tie_stop(const Row* rows, Py_ssize_t start, Py_ssize_t n, bint average) noexcept nogil:
    """The end of the tie that begins at rank ``start``."""
    cdef Py_ssize_t stop = start + 1
    if average:
        while stop < n and rows[stop].key == rows[start].key:
            stop += 1
    return stop


cdef inline double sum_gains(const Row* rows, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t i
    cdef double total = 0.0
    for i in range(start, stop):
        total += rows[i].gain
    return total


# ---- the parts of a measure ------------------------------------------------------------------------------

cdef inline double dcg(const Row* rows, Py_ssize_t start, Py_ssize_t stop, const Task* task) noexcept nogil:
    """The mean gain of a tie times the discounts of the ranks it covers (McSherry and Najork 2008)."""
    cdef Py_ssize_t i
    cdef double discount = 0.0
    for i in range(start, min(stop, task.at)):
        discount += task.discounts[i]
    return sum_gains(rows, start, stop) / <double>(stop - start) * discount


cdef double err(const Row* rows, Py_ssize_t start, Py_ssize_t stop, const Task* task,
                Above* above, double* passing) noexcept nogil:
    """Sum over ranks of P(the user stops here) / rank; a gain is the probability that a row stops the user.

    In a tie of m rows with passing probabilities q, the probability to get past the first k in random order
    is E_k = e_k(q) / C(m, k), the normalised elementary symmetric polynomial. It starts at one for the rows
    with q = 1, and adding a row to m - 1 others gives E_k = (1 - k/m) E_k + k/m q E_(k-1). By Maclaurin's
    inequality E_k <= mean(q)^k, so ranks behind k = 46 / mean(1 - q) contribute less than e^-46 = 1e-20 and
    are left out.
    """
    cdef Py_ssize_t i, k, m = 0, size = stop - start, last
    cdef double total = 0.0, stopping = sum_gains(rows, start, stop), share
    if size == 1:
        total = above.survive * stopping / <double>stop
        above.survive *= 1.0 - stopping
    elif stopping > 0.0:
        last = min(stop, task.at) - start
        if 46.0 * size < last * stopping:
            last = <Py_ssize_t>(46.0 * size / stopping) + 1
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
            total += above.survive * (passing[k - 1] - passing[k]) / <double>(start + k)
        above.survive *= passing[last] if last == size else 0.0
    return total


cdef inline double ap(const Row* rows, Py_ssize_t start, Py_ssize_t stop, const Task* task,
                      Above* above) noexcept nogil:
    """In a tie each row is relevant with probability r/m, and the others, given that, with (r-1)/(m-1)."""
    cdef Py_ssize_t i
    cdef double total = 0.0, hits = sum_gains(rows, start, stop), size = <double>(stop - start), others
    if hits > 0.0:
        others = (hits - 1.0) / (size - 1.0) if size > 1.0 else 0.0
        for i in range(start, min(stop, task.at)):
            total += hits / size * (above.found + 1.0 + <double>(i - start) * others) / <double>(i + 1)
    above.found += hits
    return total


cdef inline double rr(const Row* rows, Py_ssize_t start, Py_ssize_t stop, const Task* task,
                      Above* above) noexcept nogil:
    """In the first tie with relevant rows, sum over ranks P(the first relevant row is here) / rank.

    For SUCCESS it is P(the first relevant row is above the cutoff).
    """
    cdef Py_ssize_t i
    cdef double total = 0.0, none_yet = 1.0, hits, hit
    if above.found > 0.0:
        return 0.0
    hits = sum_gains(rows, start, stop)
    if hits > 0.0:
        for i in range(start, min(stop, task.at)):
            hit = min(1.0, hits / <double>(stop - i))
            total += none_yet * hit / <double>(i + 1)
            none_yet *= 1.0 - hit
    above.found = hits
    return total if task.formula == RR else 1.0 - none_yet


cdef inline double hits_at(const Row* rows, Py_ssize_t start, Py_ssize_t stop,
                           const Task* task) noexcept nogil:
    """The number of relevant rows above the cutoff."""
    return sum_gains(rows, start, stop) * (<double>(min(stop, task.at) - start) / <double>(stop - start))


cdef double pauc(const Row* rows, Py_ssize_t start, Py_ssize_t stop, const Task* task,
                 Above* above) noexcept nogil:
    """Sum over the irrelevant rows low+1 ... at the number of relevant rows above.

    In a tie of r relevant and m irrelevant rows, r j/(m+1) relevant rows stand above the j-th irrelevant one.
    """
    cdef double area = 0.0, hits = sum_gains(rows, start, stop)
    cdef int64_t j, passed = start - <int64_t>above.found, misses = stop - start - <int64_t>hits
    for j in range(max(1, task.low - passed + 1), min(misses, task.at - passed) + 1):
        area += above.found + hits * (<double>j / <double>(misses + 1))
    above.found += hits
    return area


cdef inline double part(const Row* rows, Py_ssize_t start, Py_ssize_t stop, const Task* task,
                        Above* above, double* passing) noexcept nogil:
    """The part of a tie, which is then added to the rows above; not for measures of pairs."""
    if task.formula == PAUC:
        return pauc(rows, start, stop, task, above)
    if start >= task.at:
        return 0.0
    if task.formula <= NDCG:
        return dcg(rows, start, stop, task)
    if task.formula == ERR:
        return err(rows, start, stop, task, above, passing)
    if task.formula == AP:
        return ap(rows, start, stop, task, above)
    if task.formula == RR or task.formula == SUCCESS:
        return rr(rows, start, stop, task, above)
    return hits_at(rows, start, stop, task)


cdef double ideal_dcg(const Row* rows, Py_ssize_t n, const Task* task, Row* spare) noexcept nogil:
    """The DCG of the gains in descending order."""
    cdef double* best = <double*>spare
    cdef Py_ssize_t i, top = min(n, task.at), held = 0
    cdef double total = 0.0
    if top <= SHORT:
        for i in range(n):
            held = keep(rows[i].gain, best, held, top)
    else:
        for i in range(n):
            spare[i] = Row(rows[i].gain, 0.0)
        sort_rows(spare, spare + n, n, False)
        for i in range(top):
            best[i] = spare[i].key
    for i in range(top):
        total += best[i] * task.discounts[i]
    return total


cdef double divisor(const Row* rows, Py_ssize_t n, const Task* task, Row* spare) noexcept nogil:
    """What the sum of all parts is divided by; NaN if the measure is not defined for the query.

    There is room for 2 n rows in ``spare``.
    """
    cdef double total = sum_gains(rows, 0, n), by = 1.0
    if task.formula == PAUC:
        by = <double>(task.at - task.low) * total if task.at > task.low else 0.0
    elif task.formula == NDCG:
        by = ideal_dcg(rows, n, task, spare) if total > 0.0 else 0.0
    elif task.formula == AP or task.formula == R or task.formula == R_PRECISION:
        by = total
    elif task.formula == P:
        by = <double>task.at
    return by if total > 0.0 and by > 0.0 else NAN


cdef Task task_of(of, const double[::1] discounts):
    """The task of a prepared measure: its ``formula``, ``ties``, ``limits``, and ``discounts`` by rank."""
    cdef Task task
    task.formula, task.average = of.formula, of.ties == AVERAGE
    task.low, task.at = of.limits
    task.discounts = &discounts[0] if discounts.shape[0] else NULL
    return task


cdef Task task_of_query(const Task* task, const Row* rows, Py_ssize_t n) noexcept nogil:
    """The task, with the cutoff of a query."""
    cdef Task of_query = task[0]
    if of_query.at == 0:
        of_query.at = n
    if of_query.formula == PAUC:
        of_query.at = min(of_query.at, n - <int64_t>sum_gains(rows, 0, n))
    elif of_query.formula == R_PRECISION:
        of_query.at = <int64_t>sum_gains(rows, 0, n)
    return of_query


# ---- pairs -------------------------------------------------------------------------------------------------

cdef inline int64_t n_pairs(int64_t n) noexcept nogil:
    return n * (n - 1) // 2


cdef inline double of_pairs(int formula, int64_t twice_right, int64_t different,
                            int64_t apart) noexcept nogil:
    """The share of pairs in the right order among those of different labels, or Kendall's tau-b, from counts.

    ``twice_right`` counts a pair of different labels twice if it is in the right order, and once if its
    scores are equal; ``apart`` counts pairs of different scores.
    """
    if different == 0:
        return NAN
    if formula == PAIR_ACCURACY:
        return 0.5 * <double>twice_right / <double>different
    if apart == 0:
        return 0.0
    return <double>(twice_right - different) / (sqrt(<double>different) * sqrt(<double>apart))
