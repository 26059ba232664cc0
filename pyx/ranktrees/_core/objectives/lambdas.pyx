"""Pairs within each query: the gradients of the objectives that compare rows two by two.

    rows of a query   sorted by falling score, ties by position; or by score plus noise, in several orders
    pair (i, j)       i is ranked above j and is one of the ``truncation`` best; their grades differ
    rho               1 / (1 + e^(sigma (s_better - s_worse))): the probability that the model has them wrong
    lambda            sigma * weight * rho; pushes the better row up and the worse row down
    weight            1 (RankNet), or the delta: the change of the measure if the two swap (LambdaMART)

The delta is the difference of the two grades times the difference of the worths of the two ranks. For NDCG,
P, R and AUC a rank is worth the same in every ranking. For ERR, AP, RR and PAUC its worth depends on the rows
above it (`fill_worth`). For PAIR_ACCURACY and KENDALL_TAU it is a count of pairs (`fill_balance`). A query is
never shared between threads, and its pairs are added in one fixed order (see pairs.h). If all rows of a query
have the same score, the query has no order yet, and every order counts as equally likely. The expectation
over the orders is exact if the worths of the ranks are the same in all of them. Otherwise it is estimated by
the mean of a few orders drawn at random.
"""
import numpy as np

from ranktrees._core.support.threads import AHEAD, room_for_each

from cython.parallel cimport parallel, prange, threadid
from libc.math cimport INFINITY, fabs, frexp, ldexp, sqrt
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint64_t
from libc.string cimport memset

from ranktrees._core.objectives.dealing cimport Deal
from ranktrees._core.support.records cimport LN_2, portable_exp, portable_log2, portable_softplus
from ranktrees._core.support.views cimport line_in, run_in

cdef extern from "objectives/pairs.h" nogil:
    enum: BLOCK, EMPTY_GRADE, RUN
    cpdef enum: LANES
    enum: PLAIN, SWAPPED, MIXED, SHARED, DIRECTED, GIVEN, HINGE, COUNTED
    ctypedef struct Weighing:
        const float* worth
        const float* risen
        const float* shares
        const float* apart
        float* deltas
        int32_t* balance
        float factor
        float least_gap
        int shuffled
    void count_above(int64_t n, const double* scores, int16_t* above) noexcept
    void perturb(
        int64_t n, const double* scores, double scale, uint64_t key, uint64_t first, double* out
    ) noexcept
    uint64_t portable_key(uint64_t seed, uint64_t stream) noexcept
    void fill_counted(int rows, int64_t i, int64_t n, const Weighing* by, const float* grades) noexcept
    double add_pairs(
        int kind, bint spread, bint sized, int64_t n, int64_t top, double sigma, const Weighing* by,
        const double* scores, const float* grades, float* distances, float* exponentials, float* gradients,
        float* hessians,
    ) noexcept
    float weight_of_pair(
        int kind, float difference, float swap, float rise, float apart, float share, float given
    ) noexcept

cpdef enum Pairs:  # the weight of a pair (and, for SQUARED_HINGE, another cost)
    RANKNET = PLAIN            # 1
    SWAPS = SWAPPED            # the difference of the grades, times that of fixed worths of the ranks
    SWAPS_AND_GAPS = MIXED     # the same, with a term added that depends on how far apart the ranks are
    ERR = 16                   # the difference of the grades, times that of worths as in `fill_worth`
    AP
    RR
    PAUC
    PAIR_ACCURACY              # by how many pairs are in order, as counted in `fill_balance`
    KENDALL_TAU
    SQUARED_HINGE = HINGE      # 1

cpdef enum Norm:  # the factor of a query's gradients and hessians; S is the sum of |lambda| over its rows
    NONE  # 1
    LOG   # log2(1 + S) / S
    UNIT  # 1 / S

cdef enum:
    N_COLUMNS = 7  # of a Room, in double precision ...
    N_SINGLE = 8   # ... and in single precision
    UNDECIDED_ORDERS = 16


cdef struct Ranked:
    double key  # by which rows are ranked: a score, a gain or a grade
    int64_t position


cdef inline void sort_run(const double* scores, int64_t start, int64_t n, Ranked* out) noexcept nogil:
    """Sort scores[start:start + n] by counting, then by insertion those that counting did not tell apart."""
    cdef int16_t above[RUN]
    cdef int16_t places[RUN]  # the next free place for rows with so many above them
    cdef int64_t i, k
    cdef double score
    cdef Ranked row
    count_above(n, scores + start, above)
    for k in range(n):
        places[k] = k
    for i in range(n):
        score = scores[start + i]
        k = places[above[i]]
        places[above[i]] += 1
        out[k].key = score if score == score else -INFINITY  # NaN has no place in an order
        out[k].position = start + i
    for i in range(1, n):
        if out[i - 1].key < out[i].key:
            row = out[i]
            k = i
            while k > 0 and out[k - 1].key < row.key:
                out[k] = out[k - 1]
                k -= 1
            out[k] = row


cdef inline void merge(const Ranked* rows, Ranked* out, int64_t middle, int64_t n) noexcept nogil:
    """Merge rows[:middle] and rows[middle:n], whose lengths differ by one at most, from both ends at once.

    There are as many steps as the shorter part has rows, so neither end can run out of rows, and no step
    needs a branch.
    """
    cdef int64_t i = 0, j = middle, k = 0, i_end = middle - 1, j_end = n - 1, k_end = n - 1, first, _step
    for _step in range(min(middle, n - middle)):
        first = rows[i].key >= rows[j].key
        out[k] = rows[j ^ ((i ^ j) & -first)]  # i if first else j
        i += first
        j += 1 - first
        k += 1
        first = rows[i_end].key >= rows[j_end].key
        out[k_end] = rows[i_end ^ ((i_end ^ j_end) & -first)]  # j_end if first else i_end
        j_end -= first
        i_end -= 1 - first
        k_end -= 1
    if k == k_end:
        out[k] = rows[i if i == i_end else j]


cdef Ranked* sort(const double* scores, int64_t n, Ranked* rows, Ranked* spare) noexcept nogil:
    """Sort by falling score; equal scores keep their order. The result is in ``rows`` or in ``spare``."""
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
    """The number of rows with the empty rows that complete the last chunk (see pairs.h)."""
    return (n + LANES - 1) // LANES * LANES


# What a thread works with on one query: columns, each with a place for every row of the longest query.
cdef struct Room:
    double* scores        # by rank, like most columns
    double* grades
    double* keys          # by row: the scores with noise
    double* worth
    double* risen
    double* shares
    double* row_grades    # by row: the grades of the labels
    float* single_grades
    float* distances
    float* exponentials
    float* gradients
    float* hessians
    float* single_worth
    float* single_risen
    float* single_shares
    Ranked* rows
    Ranked* spare


cdef class Scratch:
    """Memory for each thread to work in, on queries of at most ``longest`` rows."""

    cdef double[:, ::1] numbers, records
    cdef float[:, ::1] singles
    cdef int64_t width, longest

    def __init__(self, int64_t longest, int n_threads):
        self.width, self.longest = whole_chunks(longest), longest
        self.numbers = room_for_each(n_threads, N_COLUMNS * self.width, np.float64, AHEAD)
        self.singles = room_for_each(n_threads, N_SINGLE * self.width, np.float32, AHEAD)
        self.records = room_for_each(n_threads, 4 * longest, np.float64, AHEAD)  # 2 x 2 numbers a row

    cdef Room of_thread(self, int thread) noexcept nogil:
        cdef Room room
        cdef int64_t width = self.width
        cdef double* numbers = &self.numbers[thread, 0]
        cdef float* singles = &self.singles[thread, 0]
        room.scores, room.grades, room.keys = numbers, numbers + width, numbers + 2 * width
        room.worth, room.risen, room.shares = numbers + 3 * width, numbers + 4 * width, numbers + 5 * width
        room.row_grades = numbers + 6 * width
        room.single_grades, room.distances, room.exponentials = singles, singles + width, singles + 2 * width
        room.gradients, room.hessians = singles + 3 * width, singles + 4 * width
        room.single_worth, room.single_risen = singles + 5 * width, singles + 6 * width
        room.single_shares = singles + 7 * width
        room.rows = <Ranked*>&self.records[thread, 0]
        room.spare = room.rows + self.longest
        return room


cdef inline Ranked* sort_query(const double* scores, int64_t n, const Room* room) noexcept nogil:
    """Rank the rows of one query."""
    return sort(scores, n, room.rows, room.spare)


cdef inline bint all_equal(const double* values, int64_t n) noexcept nogil:
    cdef int64_t i
    for i in range(1, n):
        if values[i] != values[0]:
            return False
    return True


cdef inline double unit_of(const double* numbers, int64_t n) noexcept nogil:
    cdef double largest = 0.0
    cdef int64_t i
    cdef int exponent
    for i in range(n):
        largest = max(largest, numbers[i])
    frexp(largest, &exponent)
    return ldexp(1.0, max(-1000, min(exponent, 1000)))


def unit(const double[::1] numbers):
    """A power of two: divided by it, none of these numbers >= 0 is above 1, and none loses a bit."""
    return unit_of(&numbers[0], numbers.shape[0]) if numbers.shape[0] else 1.0


cdef inline void to_single(const double* numbers, int64_t n, double factor, float* out) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        out[i] = <float> (factor * numbers[i])


cdef inline void look_up(const double* line, const uint8_t* labels, int64_t n, double* out) noexcept nogil:
    cdef int64_t i
    for i in range(n):
        out[i] = line[labels[i]]


def ideals(
    const double[::1] gains,       # IN
    const int64_t[::1] offsets,    # IN   query q is the rows offsets[q]:offsets[q + 1]
    const double[::1] discounts,   # IN   one for each rank up to the cutoff
    Scratch scratch,
    double[::1] out,               # OUT  one per query
    int n_threads,
):
    """Compute the DCG of the best ranking of each query."""
    cdef int64_t n_queries = offsets.shape[0] - 1, q, i, n
    cdef Ranked* rows
    cdef Room room
    cdef double sum
    for q in prange(
        n_queries, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
        schedule="dynamic", chunksize=8,
    ):
        n = offsets[q + 1] - offsets[q]
        room = scratch.of_thread(threadid())
        rows = sort_query(run_in(gains, offsets[q]), n, &room)
        sum = 0.0
        for i in range(min(n, discounts.shape[0])):
            sum = sum + rows[i].key * discounts[i]
        out[q] = sum


cdef struct Pairing:
    int pairs
    const float* worth   # one per rank; NULL if every pair has weight 1
    const float* apart   # by distance; SWAPS_AND_GAPS only
    int64_t low, at      # PAUC only
    int64_t truncation
    double sigma         # for SQUARED_HINGE, the margin
    double least_gap     # 0 if weights are not divided by gaps
    int norm
    double unit          # multiplies the weight of each pair
    int64_t n_orders
    double noise         # the scale of the noise that is added to the scores for each order
    uint64_t key
    int64_t n_rows       # of all queries: order k draws the numbers from k * n_rows on


cdef inline double normed(int norm, double size) noexcept nogil:
    if norm == NONE or not size > 0:
        return 1.0
    if norm == LOG and size < 1e-8:  # 1 + size would round the digits of size away
        return (1.0 - 0.5 * size) / LN_2
    return (portable_log2(1.0 + size) if norm == LOG else 1.0) / size


cdef inline int64_t next_hit(const double* grades, int64_t place, int64_t n) noexcept nogil:
    while place < n and not grades[place] > 0:
        place += 1
    return place


# A query or all rows. All arrays have one number for each row, in the order of the input.
cdef struct Query:
    int64_t n
    int64_t first_row            # the number of its first row among all rows
    bint undecided               # whether all scores are equal
    const double* scores
    const double* grades
    double grade_unit
    const double* weights        # or NULL
    const double* clicked        # the factor of a pair in which this is the better row; NULL without clicks
    const double* unclicked      # the factor of a pair in which this is the worse row
    double* clicked_costs        # OUT  the cost of the pairs with this as the better row, its factor left out
    double* unclicked_costs      # OUT  the cost of those with this as the worse row, likewise
    double* gradients            # OUT
    double* hessians             # OUT


cdef inline Query query_from(const Query* rows, int64_t start, int64_t n) noexcept nogil:
    """Some of the rows, yet without grades."""
    cdef Query query = rows[0]
    query.n = n
    query.first_row = start
    query.scores += start
    query.gradients += start
    query.hessians += start
    if rows.weights != NULL:
        query.weights += start
    if rows.clicked != NULL:
        query.clicked += start
        query.unclicked += start
        query.clicked_costs += start
        query.unclicked_costs += start
    return query


cdef void fill_worth(
    const Pairing* pairing, int64_t n, const double* grades,
    double* worth,    # OUT  one per rank: for a better row that falls from it
    double* risen,    # OUT  one per rank: for a better row that rises to it
    double* shares,   # OUT  ERR only, one per rank up to the truncation: a factor for pairs with i there
) noexcept nogil:
    """Compute the worths of the ranks in this ranking, so that the delta of rows i and j > i is a product.

    ERR: with ``reach[r]`` the probability that no row above rank r stops the user, and ``w`` the discounts,

        delta = (p_i - p_j) / (1 - p_i) * sum over r in i ... j - 1 of reach[r + 1] * (w[r] - w[r + 1])

    AP: let ``found[r]`` be the number of relevant rows above rank r and ``total[r]`` the sum of their
    discounts. A relevant row that rises from j to i gains ``(found[i] + 1) w[i] - total[i]``, less the same
    at j. One that falls from i to j loses ``found[i] w[i] - total[i]``, less the same at j. RR: only the
    first two relevant rows matter. PAUC: as AP, in numbers of irrelevant rows.
    """
    cdef const float* discounts = pairing.worth
    cdef int64_t r, first, second, hit, misses = 0, high = 0
    cdef double found = 0.0, total = 0.0, ahead = 0.0, below = 0.0
    for r in range(n, whole_chunks(n)):
        worth[r] = risen[r] = 0.0
    if pairing.pairs == ERR:
        for r in range(min(pairing.truncation, n)):
            shares[r] = 1.0 / (1.0 - grades[r])
        total = 1.0
        for r in range(n):
            total *= 1.0 - grades[r]
            risen[r] = total  # for ERR, the probability that the user passes rank r
        total = 0.0
        for r in range(n - 1, 0, -1):
            worth[r] = total
            total += risen[r - 1] * (discounts[r - 1] - discounts[r])
        worth[0] = total
    elif pairing.pairs == AP:
        for r in range(n):  # without a branch, which would often be mispredicted
            worth[r] = found * discounts[r] - total
            risen[r] = (found + 1.0) * discounts[r] - total
            hit = grades[r] > 0
            found += hit
            total += hit * discounts[r]
    elif pairing.pairs == RR:
        first = next_hit(grades, 0, n)
        second = next_hit(grades, first + 1, n)
        for r in range(n):
            risen[r] = discounts[min(r, first)]
            worth[r] = discounts[first] if r <= first else discounts[min(r, second)]
    elif pairing.pairs == PAUC:
        for r in range(n):
            high += grades[r] == 0
        high = min(high, pairing.at) if pairing.at > 0 else high
        for r in range(n):
            worth[r] = -(max(pairing.low, min(misses + 1, high)) + ahead)
            risen[r] = -(max(pairing.low, min(misses, high)) + below)
            hit = grades[r] > 0
            ahead += hit & (pairing.low <= misses) & (misses < high)
            below += hit & (pairing.low < misses) & (misses <= high)
            misses += 1 - hit


cdef void place_grades(const Query* query, const Room* room, int32_t* levels) noexcept nogil:
    """The place of each row's grade among those of the query, from 1 for the highest: OUT [n]."""
    cdef Ranked* rows = sort_query(query.grades, query.n, room)
    cdef int64_t i
    cdef int32_t level = 1
    for i in range(query.n):
        level += i > 0 and rows[i].key != rows[i - 1].key
        levels[rows[i].position] = level


cdef inline int32_t count_until(const int32_t* tree, int64_t level) noexcept nogil:
    cdef int32_t count = 0
    while level > 0:
        count += tree[level]
        level &= level - 1
    return count


cdef double fill_balance(
    int64_t n, const Ranked* rows,
    const int32_t* levels,   # by row, from `place_grades`
    int32_t* tree,           # scratch [n + 1]: of Fenwick, the numbers of rows so far by level
    int32_t* balance,        # OUT  by place: the rows above it of a lower grade, less those of a higher grade
) noexcept nogil:
    """Count, and return the number of pairs of different grades."""
    cdef int64_t place, level
    cdef int32_t higher, same
    cdef double pairs = 0.0
    memset(tree, 0, (n + 1) * sizeof(int32_t))
    for place in range(n):
        level = levels[rows[place].position]
        higher = count_until(tree, level - 1)
        same = count_until(tree, level) - higher
        balance[place] = <int32_t> place - same - 2 * higher
        pairs += place - same
        while level <= n:
            tree[level] += 1
            level += level & -level
    return pairs


cdef inline int64_t places_that_count(
    int kind, int64_t n, const float* worth, const float* risen
) noexcept nogil:
    """The number of upper rows whose pairs can have a weight: behind these, all ranks have the same worth.

    It is rounded up to whole blocks of rows (see pairs.h), so that leaving out the rest does not change how
    the pairs are added.
    """
    cdef int64_t r = n
    if kind != SWAPPED and kind != SHARED and kind != DIRECTED:
        return n
    while r > 0 and worth[r - 1] == worth[n - 1] and (kind != DIRECTED or risen[r - 1] == risen[n - 1]):
        r -= 1
    return (r + BLOCK - 1) // BLOCK * BLOCK


cdef inline bint is_spread(const Pairing* pairing, const Query* query) noexcept nogil:
    """Whether weights are divided by the gaps of scores."""
    return pairing.least_gap > 0 and not query.undecided


cdef double add_click_pairs(
    const Pairing* pairing, const Query* query, int kind, int64_t top, const Weighing* by, const Ranked* rows,
    const Room* room,
) noexcept nogil:
    """As add_pairs, with each pair times the factors of its two rows; also add up the costs.

    Few rows are clicked, so most pairs of rows have equal grades and are skipped.
    """
    cdef const double* scores = room.scores
    cdef const float* grades = room.single_grades
    cdef float* gradients = room.gradients
    cdef float* hessians = room.hessians
    cdef bint spread = is_spread(pairing, query)
    cdef int64_t i, j, better, worse, clicked, unclicked
    cdef double size = 0.0, difference, weight, gap, x, small, wrong, curvature, cost
    for i in range(top):
        if kind == COUNTED:
            fill_counted(1, i, query.n, by, grades)
        for j in range(i + 1, query.n):
            difference = grades[i] - grades[j]
            if difference == 0:
                continue
            weight = weight_of_pair(
                kind, difference, by.worth[i] - by.worth[j] if by.worth != NULL else 0.0,
                by.risen[i] - by.risen[j] if kind == DIRECTED else 0.0,
                by.apart[j - i] if kind == MIXED else 0.0, by.shares[i] if kind == SHARED else 1.0,
                by.deltas[j] if kind == COUNTED else 0.0,
            )
            gap = scores[i] - scores[j]
            weight = fabs(weight) / (by.least_gap + fabs(gap) if spread else 1.0)
            better = i if difference > 0 else j
            worse = j if difference > 0 else i
            x = pairing.sigma * (gap if difference > 0 else -gap)
            small = portable_exp(-fabs(x))
            wrong = (small if x > 0 else 1.0) / (1.0 + small)
            cost = weight * portable_softplus(-x, small)
            clicked, unclicked = rows[better].position, rows[worse].position
            query.clicked_costs[clicked] += cost * query.unclicked[unclicked]
            query.unclicked_costs[unclicked] += cost * query.clicked[clicked]
            size += weight * wrong  # without the factors, which the norm of a short session would take back
            weight = weight * query.clicked[clicked] * query.unclicked[unclicked]
            curvature = weight * (small / ((1.0 + small) * (1.0 + small)))
            gradients[better] -= weight * wrong
            gradients[worse] += weight * wrong
            hessians[better] += curvature
            hessians[worse] += curvature
    return size


cdef void query_gradients(const Pairing* pairing, const Query* query, const Room* room) noexcept nogil:
    """Sum over the pairs of one query. If orders are drawn, take the mean of the sums over these orders."""
    cdef bint by_rows = pairing.pairs >= ERR, drawn = query.undecided or pairing.noise > 0
    cdef bint counted = pairing.pairs == PAIR_ACCURACY or pairing.pairs == KENDALL_TAU
    cdef int kind = (
        pairing.pairs if not by_rows else COUNTED if counted else SHARED if pairing.pairs == ERR else DIRECTED
    )
    cdef double size = 0.0, norm = 1.0, slope = 1.0, weight, gradient, hessian
    cdef double scale = 1.0 if kind == HINGE else pairing.sigma, unit = pairing.unit * query.grade_unit, pairs
    cdef const double* of_rows = NULL
    cdef int64_t n = query.n, end = whole_chunks(n), n_orders = pairing.n_orders if drawn else 1
    cdef int64_t i, k, first, position, top
    cdef Weighing by
    cdef Ranked* rows
    if query.undecided:
        n_orders = max(n_orders, UNDECIDED_ORDERS)
    by.worth = pairing.worth
    if by_rows:
        by.worth = room.single_worth
    by.risen = room.single_risen
    by.shares = room.single_shares
    by.apart = pairing.apart
    by.deltas = room.single_worth  # and the two columns behind it, which hold the other lines of a block
    by.balance = <int32_t*> room.shares
    by.least_gap = <float>pairing.least_gap
    by.shuffled = drawn
    if counted:
        place_grades(query, room, <int32_t*> room.risen)
    for k in range(n_orders):
        if drawn:
            first = k * pairing.n_rows + query.first_row
            perturb(n, query.scores, 1.0 if query.undecided else pairing.noise, pairing.key, first, room.keys)
            rows = sort_query(room.keys, n, room)
        else:
            rows = sort_query(query.scores, n, room)
        for i in range(n):
            position = rows[i].position
            room.scores[i] = query.scores[position]
            room.grades[i] = query.grades[position]
        to_single(room.grades, n, 1.0 / query.grade_unit, room.single_grades)
        for i in range(n, end):
            room.scores[i] = room.scores[n - 1]
            room.single_grades[i] = EMPTY_GRADE
        if counted:
            pairs = fill_balance(n, rows, <int32_t*> room.risen, <int32_t*> room.worth, by.balance)
            by.factor = 1.0 / pairs
            if pairing.pairs == KENDALL_TAU:
                by.factor = 2.0 / sqrt(pairs * (0.5 * n * (n - 1)))
        elif by_rows:
            fill_worth(pairing, n, room.grades, room.worth, room.risen, room.shares)
            to_single(room.worth, end, 1.0, room.single_worth)
            to_single(room.risen, end, 1.0, room.single_risen)
            if kind == SHARED:
                to_single(room.shares, min(pairing.truncation, n), 1.0, room.single_shares)
        top = min(pairing.truncation, n - 1, places_that_count(kind, n, by.worth, by.risen))
        memset(room.gradients, 0, end * sizeof(float))
        memset(room.hessians, 0, end * sizeof(float))
        if query.clicked != NULL:
            size += add_click_pairs(pairing, query, kind, top, &by, rows, room)
        else:
            size += add_pairs(
                kind, is_spread(pairing, query), pairing.norm != NONE, n, top, pairing.sigma, &by,
                room.scores, room.single_grades, room.distances, room.exponentials, room.gradients,
                room.hessians,
            )
        if k == n_orders - 1:
            norm = normed(pairing.norm, 2.0 * scale * unit * (size / n_orders)) * unit / n_orders
            slope = scale
            of_rows = query.weights
        for i in range(n):
            position = rows[i].position
            weight = norm if of_rows == NULL else norm * of_rows[position]
            gradient = room.gradients[i]
            hessian = room.hessians[i]
            if k > 0:  # add the sums of the orders before
                gradient += query.gradients[position]
                hessian += query.hessians[position]
            query.gradients[position] = weight * (slope * gradient)
            query.hessians[position] = weight * (slope * slope * hessian)
    if query.clicked != NULL:
        for i in range(n):
            weight = (1.0 if query.weights == NULL else query.weights[i]) * unit / n_orders
            query.clicked_costs[i] *= weight
            query.unclicked_costs[i] *= weight


cdef double mean_swap(int64_t n, const float* worth, const float* apart, int64_t top) noexcept nogil:
    """The mean of |worth_i - worth_j| (1 without worths) + apart over pairs of ranks; 0 where i >= top."""
    cdef double below = 0.0, gaps = 0.0, swaps = 0.0
    cdef int64_t place, other
    cdef bint falls = True
    for place in range(1, n if worth != NULL else 0):
        falls &= worth[place] <= worth[place - 1]
    for place in range(n - 1, -1, -1):
        if place < top and worth == NULL:
            swaps += n - 1 - place
        elif place < top and falls:  # no need to go through all pairs of ranks
            swaps += (n - 1 - place) * worth[place] - below + gaps
        elif place < top:
            swaps += gaps
            for other in range(place + 1, n):
                swaps += fabs(<double> worth[place] - worth[other])
        if worth != NULL:
            below += worth[place]
        if apart != NULL:
            gaps += apart[n - place]
    return 2.0 * swaps / (<double>n * (n - 1))


cdef void undecided_gradients(
    const Pairing* pairing, const Query* query, const Ranked* rows  # sorted by falling grade
) noexcept nogil:
    """The expected sums over the pairs of a query whose scores are all equal, over all orders of its rows.

    As rho is 1/2 for every pair, the sums of a row follow from the number of rows with higher and with lower
    grades, and from the sums of these grades.
    """
    cdef int64_t n = query.n, first = 0, last, i, position
    cdef int64_t top = min(pairing.truncation, n - 1)
    cdef double share = pairing.unit * mean_swap(n, pairing.worth, pairing.apart, top)
    cdef double slope = pairing.sigma if pairing.pairs == SQUARED_HINGE else 0.5 * pairing.sigma
    cdef double curvature = 1.0 if pairing.pairs == SQUARED_HINGE else 0.25 * pairing.sigma * pairing.sigma
    cdef double total = 0.0, above = 0.0, grade, pull, spread, size = 0.0, norm, weight
    for i in range(n):
        total += rows[i].key
    while first < n:
        grade = rows[first].key
        last = first
        while last < n and rows[last].key == grade:
            last += 1
        if pairing.worth == NULL:
            pull = (n - last) - first
            spread = (n - last) + first
        else:
            pull = n * grade - total
            spread = (above - first * grade) + ((n - last) * grade - (total - above - (last - first) * grade))
        above += (last - first) * grade
        size += (last - first) * slope * share * spread
        for i in range(first, last):
            query.gradients[rows[i].position] = -slope * share * pull
            query.hessians[rows[i].position] = curvature * share * spread
        first = last
    norm = normed(pairing.norm, size)
    for position in range(n):
        weight = norm if query.weights == NULL else norm * query.weights[position]
        query.gradients[position] *= weight
        query.hessians[position] *= weight


cdef Pairing pairing_of(of):
    """The part of a pairing that an objective, an OfPairs, says."""
    cdef Pairing pairing
    memset(&pairing, 0, sizeof(pairing))
    pairing.sigma = of.steepness
    pairing.least_gap = of.score_gap_norm or 0.0
    pairing.norm = Norm[of.query_norm.upper()]
    pairing.n_orders = of.n_orders
    pairing.noise = of.noise / of.steepness
    pairing.unit = 1.0
    return pairing


cdef class PairKernel:
    """The pairs within the queries of a fit: what weighs them, and memory for each thread to work in.

    Parameters
    ----------
    pairs : Pairs
        What weighs a pair: ``kind``, one of `Pairs`. ``grades`` >= 0 of the rows, over the measure's divisor,
        or None and a ``table`` of the grade of each label in each query; pairs of equal grades do not count.
        ``worth``, one per rank, in whole_chunks, or None, if every pair has weight 1. ``apart``, for
        SWAPS_AND_GAPS, by distance, from -2 LANES on. ``unit``, a factor of all weights. ``limits``, for
        PAUC: the number of irrelevant rows to pass over, and the number at which the area ends, 0 for all.
    of : OfPairs
        ``steepness``, which for SQUARED_HINGE is the margin. ``score_gap_norm``: the weight of a pair is
        divided by this plus its difference of scores. ``query_norm``, one of `Norm`. ``n_orders`` by noisy
        scores are averaged over if there is ``noise``.
    rows : prepared objective
        ``narrow_labels``, ``weights`` or None, ``offsets`` (query q is the rows offsets[q]:offsets[q + 1]),
        the ``deal`` of the queries, and the ``share`` with the number of each query's first row among all.
    truncation : int
        Pairs count if one of their rows has one of so many ranks.
    scratch : Scratch
    """

    cdef Pairing pairing
    cdef uint64_t seed
    cdef const double[::1] grades, weights
    cdef const uint8_t[::1] labels
    cdef const double[:, ::1] table
    cdef const int64_t[::1] offsets, first_rows
    cdef const float[::1] worth, apart
    cdef Deal deal
    cdef Scratch scratch
    cdef int n_threads

    def __init__(self, pairs, of, rows, int64_t truncation, Scratch scratch):
        self.pairing = pairing_of(of)
        self.pairing.pairs, self.pairing.unit = pairs.kind, pairs.unit
        self.pairing.low, self.pairing.at = pairs.limits
        self.pairing.truncation = truncation
        self.seed = of.seed
        self.grades, self.table, self.worth, self.apart = pairs.grades, pairs.table, pairs.worth, pairs.apart
        if self.worth is not None:
            self.pairing.worth = &self.worth[0]
        if self.apart is not None:
            self.pairing.apart = &self.apart[2 * LANES]
        self.labels = rows.narrow_labels if pairs.grades is None else None
        self.weights, self.offsets, self.first_rows = rows.weights, rows.offsets, rows.share.first_rows
        self.pairing.n_rows = rows.share.n_rows or self.offsets[self.offsets.shape[0] - 1]
        self.deal, self.n_threads = rows.deal, rows.n_threads
        self.scratch = scratch

    def gradients(
        self,
        const double[::1] scores,      # IN
        uint64_t stream,               # IN   of the noise
        double[::1] out_gradients,     # OUT
        double[::1] out_hessians,      # OUT
        const double[::1] clicked=None,    # IN   a factor for each pair, by its better row
        const double[::1] unclicked=None,  # IN   another, by its worse row
        double[:, ::1] out_costs=None,     # OUT  if clicked is given: clicked, unclicked costs of each row
    ):
        """Each row's gradient and hessian: sums of lambda, sigma^2 weight rho (1 - rho) over its pairs."""
        cdef Pairing pairing = self.pairing
        cdef Query rows
        if not scores.shape[0]:
            return
        memset(&rows, 0, sizeof(rows))
        rows.scores = run_in(scores, 0)
        rows.gradients, rows.hessians = run_in(out_gradients, 0), run_in(out_hessians, 0)
        if self.weights is not None:
            rows.weights = run_in(self.weights, 0)
        if clicked is not None:
            out_costs[:] = 0.0
            rows.clicked, rows.unclicked = run_in(clicked, 0), run_in(unclicked, 0)
            rows.clicked_costs, rows.unclicked_costs = line_in(out_costs, 0), line_in(out_costs, 1)
        pairing.key = portable_key(self.seed, stream)
        self.deal.begin()
        with nogil, parallel(num_threads=self.n_threads):
            self.work(threadid(), &pairing, &rows)

    cdef void work(self, int thread, const Pairing* pairing, const Query* rows) noexcept nogil:
        """What one thread does."""
        cdef Room room = self.scratch.of_thread(thread)
        cdef Query query
        cdef int64_t q = self.deal.take(thread)
        while q >= 0:
            query = self.query_of(q, rows, &room)
            if all_equal(query.grades, query.n):
                memset(query.gradients, 0, query.n * sizeof(double))
                memset(query.hessians, 0, query.n * sizeof(double))
            else:
                query.undecided = all_equal(query.scores, query.n)
                if query.undecided and pairing.pairs < ERR and query.clicked == NULL:
                    undecided_gradients(pairing, &query, sort_query(query.grades, query.n, &room))
                else:
                    query_gradients(pairing, &query, &room)
            q = self.deal.take(thread)

    cdef Query query_of(self, int64_t q, const Query* rows, const Room* room) noexcept nogil:
        cdef int64_t start = self.offsets[q]
        cdef Query query = query_from(rows, start, self.offsets[q + 1] - start)
        if self.first_rows is not None:
            query.first_row = self.first_rows[q]
        if self.grades is None:
            query.grades = room.row_grades
            look_up(line_in(self.table, q), run_in(self.labels, start), query.n, room.row_grades)
            query.grade_unit = unit_of(line_in(self.table, q), self.table.shape[1])
        else:
            query.grades = run_in(self.grades, start)
            query.grade_unit = unit_of(query.grades, query.n) if self.worth is not None else 1.0
        return query

    def losses(
        self,
        const double[::1] scores,      # IN
        double[::1] costs,             # OUT  one per query: the weighted sum of its pairs' costs (pairs.h)
        double[::1] counts,            # OUT  one per query: the sum of the weights of its pairs
    ):
        """Sum the costs of pairs of given grades. A pair has the mean of the weights of its two rows."""
        cdef int64_t n_queries = self.offsets.shape[0] - 1, q, start, i, j, a, b, n
        cdef bint weighted = self.weights is not None
        cdef double cost, count, weight, gap, small
        cdef Ranked* rows
        cdef Room room
        for q in prange(
            n_queries, nogil=True, num_threads=self.n_threads, use_threads_if=self.n_threads > 1,
            schedule="dynamic", chunksize=8,
        ):
            start = self.offsets[q]
            n = self.offsets[q + 1] - start
            cost = 0.0
            count = 0.0
            if not all_equal(run_in(self.grades, start), n):
                room = self.scratch.of_thread(threadid())
                rows = sort_query(run_in(scores, start), n, &room)
                for i in range(min(self.pairing.truncation, n - 1)):
                    a = start + rows[i].position
                    for j in range(i + 1, n):
                        b = start + rows[j].position
                        if self.grades[a] != self.grades[b]:
                            gap = rows[i].key - rows[j].key
                            weight = 0.5 * (self.weights[a] + self.weights[b]) if weighted else 1.0
                            count = count + weight
                            if self.pairing.pairs == SQUARED_HINGE:
                                gap = self.pairing.sigma - (gap if self.grades[a] > self.grades[b] else -gap)
                                cost = cost + weight * (0.5 * gap * gap if gap > 0 else 0.0)
                            else:
                                gap = self.pairing.sigma * gap
                                small = portable_exp(-gap)
                                gap = -gap if self.grades[a] > self.grades[b] else gap
                                cost = cost + weight * portable_softplus(gap, small)
            costs[q] = cost
            counts[q] = count


def noisy(
    const double[::1] scores,  # IN
    double noise,
    uint64_t seed,
    uint64_t stream,
    uint64_t first,
    double[::1] out,           # OUT
):
    """Add logistic noise of the scale ``noise`` to the scores; row i draws the number ``first + i``."""
    if scores.shape[0]:
        perturb(scores.shape[0], run_in(scores, 0), noise, portable_key(seed, stream), first, run_in(out, 0))


cdef class GivenPairs:
    """Pairs whose weights are given, query by query.

    Parameters
    ----------
    of : OfPairs
        As for `PairKernel`; no orders are drawn here.
    scratch : Scratch
    """

    cdef Pairing pairing
    cdef Scratch scratch

    def __init__(self, of, Scratch scratch):
        self.pairing, self.scratch = pairing_of(of), scratch

    def gradients(
        self,
        const double[::1] grades,      # IN   of one query
        const double[::1] weights,     # IN   or None
        const double[::1] scores,      # IN
        const float[:, ::1] deltas,    # IN   the weight of each pair; the lines are in whole_chunks
        double unit,                   # IN   a factor of these weights
        double[::1] out_gradients,     # OUT
        double[::1] out_hessians,      # OUT
    ):
        """As those of `PairKernel`, for one query."""
        cdef int64_t n = scores.shape[0], end = whole_chunks(n), i
        cdef double sigma = self.pairing.sigma, size, factor, weight
        cdef bint spread = self.pairing.least_gap > 0 and not all_equal(run_in(scores, 0), n)
        cdef Room room = self.scratch.of_thread(0)
        cdef Weighing by
        memset(&by, 0, sizeof(by))
        by.deltas = <float*> &deltas[0, 0]
        by.least_gap = <float>self.pairing.least_gap
        by.shuffled = True
        for i in range(end):
            room.scores[i] = scores[min(i, n - 1)]
            room.single_grades[i] = grades[i] if i < n else EMPTY_GRADE
            room.gradients[i] = room.hessians[i] = 0.0
        size = add_pairs(
            GIVEN, spread, self.pairing.norm != NONE, n, n - 1, sigma, &by, room.scores, room.single_grades,
            room.distances, room.exponentials, room.gradients, room.hessians,
        )
        factor = normed(self.pairing.norm, 2.0 * sigma * unit * size) * unit
        for i in range(n):
            weight = factor if weights is None else factor * weights[i]
            out_gradients[i] = weight * (sigma * room.gradients[i])
            out_hessians[i] = weight * (sigma * sigma * room.hessians[i])
