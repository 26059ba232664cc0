"""The ranking of each query, and a measure of it, while the weight of one of two scores grows.

Rows of a query with the same two scores form one *track*: they are tied at every weight. Tracks are kept in
the order of their scores at the current weight. The next change of this order is always a crossing of two
neighbours, and a tournament over neighbours finds which ones cross first::

    tracks    | 3 1 | 0 | 4 | 2 5 6 | ...       by falling score
    crossings    0.31 - 0.27  never             of each track with the next; 0.27 is first

A crossing is given by the lowest floating-point weight at which the upper track is no longer above the lower
one, and by whether the two are tied at this weight or were tied shortly before it. That is exact, so nothing
depends on rounding. At a weight where tracks meet, they are one tie. Behind it, their order is reversed.

The parts that tracks contribute to the measure are added up in integers. The sum depends only on the ranking,
neither on the changes that led to it nor on the order of the queries.
"""
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY, NAN, floor, sqrt
from libc.stdint cimport INT64_MIN, int64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy

import numpy as np

from ranktrees._core.support.views cimport run_in

include "../measures/formulas.pxi"

cdef extern from "evaluation/crossings.h" nogil:
    ctypedef struct Gap:
        pass
    Gap gap_between(double a_u, double b_u, double a_v, double b_v, int convex)
    int side_at(const Gap* gap, double w, int convex)
    int crossing(const Gap* gap, double last, int convex, double* at, int* met)

cdef struct Change:
    double weight
    int64_t here    # the measure at this weight, minus that just before it, in steps
    int64_t behind  # the measure just behind this weight, minus that just before it

cdef Change one_change
CHANGE = np.asarray(<Change[:1]> &one_change).dtype
UNDEFINED = INT64_MIN  # the first value of a query for which the measure is not defined

cdef struct Changes:
    Change* held
    Py_ssize_t n
    Py_ssize_t room
    bint failed

cdef struct Track:
    double a
    double b

cdef struct Crossing:
    double at
    int met

cdef struct Count:
    int64_t steps        # the sum of the parts
    int64_t twice_right  # for measures of pairs, see of_pairs
    int64_t apart

cdef struct Sweep:
    Task task
    int ties
    bint convex
    bint of_pairs
    double last
    double factor        # steps per unit of a part
    int64_t one          # the number of steps of the value 1
    int64_t different
    Py_ssize_t n_tracks
    Py_ssize_t n_leaves
    Row* rows            # in the order of the ranking; `key` is minus the place in a tie
    Row* tied            # scratch, as many rows
    Track* tracks
    Py_ssize_t* first    # the first row of each track, and the end
    Above* above         # the rows above each track, and above the end
    int64_t* parts       # the part of each track
    Crossing* crossings  # where each track meets the next; the last ones never meet
    Py_ssize_t* winners  # the tournament; winners[1] is its root
    Py_ssize_t* order
    double* passing
    Count count


cdef inline void record(Changes* changes, double weight, int64_t here, int64_t behind) noexcept nogil:
    cdef Change* more
    if changes.n == changes.room:
        more = <Change*>realloc(changes.held, (2 * changes.room + 1024) * sizeof(Change))
        if more == NULL:
            changes.failed = True
            return
        changes.held = more
        changes.room = 2 * changes.room + 1024
    changes.held[changes.n].weight = weight
    changes.held[changes.n].here = here
    changes.held[changes.n].behind = behind
    changes.n += 1


# ---- what the measure makes of the ranking -----------------------------------------------------------------

cdef inline int64_t steps_of(double value) noexcept nogil:
    return <int64_t>floor(value + 0.5)


cdef inline int64_t scaled(const Sweep* s, double part) noexcept nogil:
    """A part in steps. Unusual discounts can make one of NDCG exceed 1: it is clipped, as the sum is."""
    cdef double steps = part * s.factor
    return s.one if s.task.formula == NDCG and steps > <double>s.one else steps_of(steps)


cdef int64_t part_of_tie(Sweep* s, const Row* rows, Py_ssize_t start, Py_ssize_t stop,
                         Above* above) noexcept nogil:
    """The part of rows whose scores are equal, in steps."""
    cdef Py_ssize_t i
    cdef int64_t steps = 0
    if s.task.average:
        return scaled(s, part(rows, start, stop, &s.task, above, s.passing))
    for i in range(start, stop):
        steps += scaled(s, part(rows, i, i + 1, &s.task, above, s.passing))
    return steps


cdef inline int64_t twice_right(const Row* rows, Py_ssize_t start, Py_ssize_t middle, Py_ssize_t stop,
                                bint tied) noexcept nogil:
    """Count, as for `of_pairs`, pairs of different gains: of a row in start ... middle and one below it."""
    cdef Py_ssize_t i, j
    cdef int64_t twice = 0
    for i in range(start, middle):
        for j in range(i + 1, stop):
            if rows[i].gain != rows[j].gain:
                twice += 1 if tied else 2 * (rows[i].gain > rows[j].gain)
    return twice


cdef int64_t twice_right_of_tracks(Sweep* s, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t p, i, j
    cdef int64_t twice = 0
    for p in range(start, stop):
        twice += twice_right(s.rows, s.first[p], s.first[p + 1], s.first[p + 1], s.task.average)
        for i in range(s.first[p], s.first[p + 1]):
            for j in range(s.first[p + 1], s.first[stop]):
                twice += 2 * (s.rows[i].gain > s.rows[j].gain)
    return twice


cdef void settle(Sweep* s, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Evaluate the tracks start ... stop anew, and those below them as long as their `Above` has changed."""
    cdef Py_ssize_t p = start
    cdef Above above
    cdef int64_t steps
    cdef bint same = False
    while p < s.n_tracks and not (p >= stop and same):
        above = s.above[p]
        steps = part_of_tie(s, s.rows, s.first[p], s.first[p + 1], &above)
        s.count.steps += steps - s.parts[p]
        s.parts[p] = steps
        p += 1
        same = above.found == s.above[p].found and above.survive == s.above[p].survive
        s.above[p] = above


cdef inline int64_t total(const Sweep* s, const Count* count) noexcept nogil:
    """The measure of the query, in steps."""
    if s.of_pairs:
        return steps_of(
            of_pairs(s.task.formula, count.twice_right, s.different, count.apart) * s.factor)
    return min(count.steps, s.one) if s.task.formula == NDCG else count.steps


# ---- which neighbours cross next ---------------------------------------------------------------------------

cdef inline Py_ssize_t sooner(const Sweep* s, Py_ssize_t p, Py_ssize_t q) noexcept nogil:
    """The first of two crossings; at equal weights, one shortly before the weight precedes one at it."""
    cdef const Crossing* one = &s.crossings[p]
    cdef const Crossing* two = &s.crossings[q]
    return q if two.at < one.at or (two.at == one.at and two.met < one.met) else p


cdef inline void foresee(Sweep* s, Py_ssize_t p) noexcept nogil:
    """Find where track p meets the next track."""
    cdef Gap gap = gap_between(s.tracks[p].a, s.tracks[p].b, s.tracks[p + 1].a, s.tracks[p + 1].b, s.convex)
    if not crossing(&gap, s.last, s.convex, &s.crossings[p].at, &s.crossings[p].met):
        s.crossings[p].at, s.crossings[p].met = INFINITY, 0


cdef inline void enter(Sweep* s, Py_ssize_t p) noexcept nogil:
    """Find the crossing of track p with the next, and replay the matches that depend on it."""
    cdef Py_ssize_t node = (s.n_leaves + p) // 2
    if 0 <= p < s.n_tracks - 1:
        foresee(s, p)
        while node:
            s.winners[node] = sooner(s, s.winners[2 * node], s.winners[2 * node + 1])
            node //= 2


cdef void open_tournament(Sweep* s) noexcept nogil:
    cdef Py_ssize_t p, node
    s.n_leaves = 2
    while s.n_leaves < s.n_tracks:
        s.n_leaves *= 2
    for p in range(s.n_leaves):
        s.winners[s.n_leaves + p] = p
        if p < s.n_tracks - 1:
            foresee(s, p)
        else:
            s.crossings[p].at, s.crossings[p].met = INFINITY, 0
    for node in range(s.n_leaves - 1, 0, -1):
        s.winners[node] = sooner(s, s.winners[2 * node], s.winners[2 * node + 1])


# ---- the sweep ---------------------------------------------------------------------------------------------

cdef struct Query:
    const double* gains
    const double* a
    const double* b
    Py_ssize_t n


cdef inline bint stands_before(const Query* q, Py_ssize_t u, Py_ssize_t v, double weight, bint opening,
                               const Sweep* s) noexcept nogil:
    """Whether row u is above row v just before the weight (``opening``) or just behind it."""
    cdef Gap gap = gap_between(q.a[u], q.b[u], q.a[v], q.b[v], s.convex)
    cdef int side = side_at(&gap, weight, s.convex)
    if side != 0:
        return side > 0
    return q.b[u] < q.b[v] if opening else q.b[u] > q.b[v]


cdef void put_in_order(const Query* q, double weight, bint opening, Sweep* s) noexcept nogil:
    """Sort rows, and so tracks, by a bottom-up merge sort."""
    cdef Py_ssize_t start, middle, stop, i, j, k, row, width = 1, n = q.n
    cdef Py_ssize_t* source = s.order
    cdef Py_ssize_t* target = s.order + n
    cdef Py_ssize_t* swap
    for i in range(n):
        source[i] = i
    while width < n:
        start = 0
        while start < n:
            middle = min(start + width, n)
            stop = min(middle + width, n)
            i, j = start, middle
            for k in range(start, stop):
                if j == stop or (
                        i < middle and not stands_before(q, source[j], source[i], weight, opening, s)):
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
    s.n_tracks = 0
    for i in range(n):
        row = source[i]
        if i == 0 or q.a[row] != q.a[source[i - 1]] or q.b[row] != q.b[source[i - 1]]:
            s.tracks[s.n_tracks].a, s.tracks[s.n_tracks].b = q.a[row], q.b[row]
            s.first[s.n_tracks] = i
            s.n_tracks += 1
        s.rows[i].gain = q.gains[row]
        s.rows[i].key = -q.gains[row]
        if s.ties == INPUT or s.ties == REVERSE:
            s.rows[i].key = <double>(-row if s.ties == INPUT else row)
    s.first[s.n_tracks] = n
    for i in range(s.n_tracks):
        sort_rows(s.rows + s.first[i], s.tied, s.first[i + 1] - s.first[i], False)


cdef bint begin(const Query* q, double weight, bint opening, double scale, Sweep* s) noexcept nogil:
    """Rank and evaluate all rows. Return False if the measure is not defined for the query."""
    cdef Py_ssize_t p
    cdef int64_t size
    cdef double by
    put_in_order(q, weight, opening, s)
    s.count.steps = s.count.twice_right = s.count.apart = 0
    if s.of_pairs:
        s.different = 0
        s.factor = scale
        for p in range(q.n):
            for size in range(p + 1, q.n):
                s.different += s.rows[p].gain != s.rows[size].gain
        s.count.twice_right = twice_right_of_tracks(s, 0, s.n_tracks)
        s.count.apart = n_pairs(q.n)
        for p in range(s.n_tracks):
            s.count.apart -= n_pairs(s.first[p + 1] - s.first[p])
        return s.different > 0
    s.task = task_of_query(&s.task, s.rows, q.n)
    by = divisor(s.rows, q.n, &s.task, s.passing, s.passing + q.n + 1)
    s.factor, s.one = 0.0 if by != by else scale / by, steps_of(scale)
    for p in range(s.n_tracks + 1):
        s.parts[p] = 0
        s.above[p].found, s.above[p].survive = 0.0, 1.0
    settle(s, 0, s.n_tracks)
    return by == by


cdef inline bint matters(const Sweep* s, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Whether the order of tracks start ... stop can change the measure, or what is stored for each track."""
    cdef Py_ssize_t begin = s.first[start]
    if s.task.formula < PAUC and begin >= s.task.at:
        return False
    return s.first[stop] - begin > 2 or s.rows[begin].gain != s.rows[begin + 1].gain


cdef void reverse(Sweep* s, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    """Reverse the tracks start ... stop."""
    cdef Py_ssize_t p, q, n_rows, begin = s.first[start], end = s.first[stop]
    cdef Row row
    cdef Track track
    cdef bint effective = matters(s, start, stop)
    cdef int64_t before = twice_right_of_tracks(s, start, stop) if s.of_pairs and effective else 0
    if end - begin == 2:
        row = s.rows[begin]
        s.rows[begin] = s.rows[begin + 1]
        s.rows[begin + 1] = row
    else:
        n_rows = end
        for p in range(start, stop):
            n_rows -= s.first[p + 1] - s.first[p]
            memcpy(s.tied + n_rows, s.rows + s.first[p], (s.first[p + 1] - s.first[p]) * sizeof(Row))
        memcpy(s.rows + begin, s.tied + begin, (end - begin) * sizeof(Row))
        for p in range(start, stop):  # `first` holds sizes until the last of these loops
            s.first[p] = s.first[p + 1] - s.first[p]
        p, q = start, stop - 1
        while p < q:
            s.first[p], s.first[q] = s.first[q], s.first[p]
            p += 1
            q -= 1
        for p in range(stop - 1, start - 1, -1):
            s.first[p] = s.first[p + 1] - s.first[p]
    p, q = start, stop - 1
    while p < q:
        track = s.tracks[p]
        s.tracks[p] = s.tracks[q]
        s.tracks[q] = track
        p += 1
        q -= 1
    if effective and s.of_pairs:
        s.count.twice_right += twice_right_of_tracks(s, start, stop) - before
    elif effective:
        settle(s, start, stop)
    for p in range(start - 1, stop):
        enter(s, p)


cdef void tie(Sweep* s, Py_ssize_t start, Py_ssize_t stop, Count* here) noexcept nogil:
    """Add to `here` what changes while the tracks start ... stop are one tie."""
    cdef Py_ssize_t p, begin = s.first[start], end = s.first[stop]
    cdef Above above
    if s.of_pairs:
        here.apart -= n_pairs(end - begin)
        for p in range(start, stop):
            here.apart += n_pairs(s.first[p + 1] - s.first[p])
    if not matters(s, start, stop):
        return
    memcpy(s.tied + begin, s.rows + begin, (end - begin) * sizeof(Row))
    sort_rows(s.tied + begin, <Row*>s.order, end - begin, False)
    if s.of_pairs:
        here.twice_right += twice_right(s.tied, begin, end, end, s.task.average)
        here.twice_right -= twice_right_of_tracks(s, start, stop)
        return
    above = s.above[start]
    here.steps += part_of_tie(s, s.tied, begin, end, &above)
    for p in range(start, stop):
        here.steps -= s.parts[p]


cdef int64_t sweep_from(const Query* q, double weight, bint opening, bint every, double scale, Sweep* s,
                        Changes* changes) noexcept nogil:
    """Sweep over the weights of one query. Return its first value."""
    cdef Py_ssize_t p, stop
    cdef int64_t first, before, behind
    cdef double at
    cdef Count now, here
    if not begin(q, weight, opening, scale, s) and not every:
        return INT64_MIN
    first = before = total(s, &s.count)
    open_tournament(s)
    p = s.winners[1]
    while s.crossings[p].at < INFINITY:
        at = s.crossings[p].at
        while s.crossings[p].at == at and not s.crossings[p].met:
            reverse(s, p, p + 2)
            p = s.winners[1]
        here.steps = here.twice_right = here.apart = 0
        now = s.count
        while s.crossings[p].at == at:
            stop = p + 1
            while s.crossings[stop].at == at and s.crossings[stop].met:
                stop += 1
            tie(s, p, stop + 1, &here)
            reverse(s, p, stop + 1)
            p = s.winners[1]
        here.steps += now.steps
        here.twice_right += now.twice_right
        here.apart += now.apart
        behind = total(s, &s.count)
        here.steps = total(s, &here)
        if every or here.steps != before or behind != before:
            record(changes, at, here.steps - before, behind - before)
        before = behind
    return first


cdef bint make_room(Sweep* s, Py_ssize_t n) noexcept nogil:
    """Allocate memory for a query of n rows, in one piece."""
    cdef Py_ssize_t leaves = 2
    cdef char* memory
    while leaves < n:
        leaves *= 2
    memory = <char*>malloc(
        n * (2 * sizeof(Row) + sizeof(Track) + 2 * sizeof(Py_ssize_t)) + (n + 1) * sizeof(Py_ssize_t)
        + (n + 1) * (sizeof(Above) + sizeof(int64_t)) + (leaves + 1) * sizeof(Crossing)
        + 2 * leaves * sizeof(Py_ssize_t) + (2 * n + 3) * sizeof(double))
    if memory == NULL:
        return False
    s.rows = <Row*>memory
    s.tied = s.rows + n
    s.tracks = <Track*>(s.tied + n)
    s.order = <Py_ssize_t*>(s.tracks + n)
    s.first = s.order + 2 * n
    s.above = <Above*>(s.first + n + 1)
    s.parts = <int64_t*>(s.above + n + 1)
    s.crossings = <Crossing*>(s.parts + n + 1)
    s.winners = <Py_ssize_t*>(s.crossings + leaves + 1)
    s.passing = <double*>(s.winners + 2 * leaves)
    return True


cdef class Combined:
    """Two scores of each row, and how they are combined.

    Parameters
    ----------
    a, b : ndarray of float64, shape (n_rows,)
    offsets : ndarray of int64
        Query q is the rows offsets[q]:offsets[q + 1].
    convex : bool
        Whether a has the weight 1 - w if b has the weight w. Otherwise it always has the weight 1.
    """

    cdef const double[::1] a, b
    cdef const int64_t[::1] offsets
    cdef bint convex

    def __init__(self, a, b, offsets, convex):
        self.a, self.b, self.offsets, self.convex = a, b, offsets, convex

    cdef Query query(self, Py_ssize_t q, const double* gains) noexcept nogil:
        cdef Py_ssize_t first = self.offsets[q]
        return Query(gains + first, run_in(self.a, first), run_in(self.b, first), self.offsets[q + 1] - first)

    def order_at(
        self,
        Py_ssize_t q,
        double weight,
        bint behind,         # whether to order just behind the weight, rather than at it
        int64_t[::1] out,    # OUT  whole numbers in the order of the scores: 0 for the highest, -1 ...
    ):
        """Find the exact order of a query at a weight, or just behind it. Equal numbers are ties."""
        cdef Sweep s
        cdef Query query = self.query(q, run_in(self.a, 0))
        cdef const Track* above
        cdef const Track* track
        cdef Gap gap
        cdef Py_ssize_t i
        cdef int64_t place = 0
        s.convex, s.ties = self.convex, INPUT
        if not make_room(&s, query.n):
            raise MemoryError
        put_in_order(&query, weight, False, &s)
        for i in range(s.n_tracks):
            if i > 0:
                above, track = &s.tracks[i - 1], &s.tracks[i]
                gap = gap_between(above.a, above.b, track.a, track.b, s.convex)
                if behind or side_at(&gap, weight, s.convex) != 0:
                    place -= 1
            for row in range(s.first[i], s.first[i + 1]):
                out[<Py_ssize_t>-s.rows[row].key] = place
        free(s.rows)


cdef class Sweeper:
    """Finds how a measure of combined scores changes while the weight grows.

    Parameters
    ----------
    combined : Combined
    scales : ndarray of float64, shape (n_queries,)
        The number of steps of the value 1; 0 skips a query.
    n_threads : int
    of : PreparedCompiledMeasure, default=None
        The measure: ``gains`` of the rows, ``ties``, and what `task_of` reads. If None, every weight where
        the order changes counts as a change.
    """

    cdef Combined combined
    cdef const double[::1] scales, gains, discounts
    cdef Task task
    cdef int ties, n_threads
    cdef bint every
    cdef Py_ssize_t longest

    def __init__(self, Combined combined, scales, int n_threads, of=None):
        cdef Py_ssize_t q, n_queries = len(scales)
        self.combined, self.scales, self.every = combined, scales, of is None
        self.n_threads = <int>max(1, min(<Py_ssize_t>n_threads, n_queries))
        if of is None:
            self.gains, self.ties = np.zeros(len(combined.a)), INPUT
            self.task.formula = P
        else:
            self.gains, self.ties, self.discounts = of.gains, of.ties, of.discounts
            self.task = task_of(of, self.discounts)
        self.longest = 1
        for q in range(n_queries):
            self.longest = max(self.longest, combined.offsets[q + 1] - combined.offsets[q])

    def sweep(
        self,
        double start,
        double last,
        bint opening,               # whether crossings at `start` itself are included
        int64_t[::1] first_values,  # OUT  steps before the first change, or UNDEFINED
    ):
        """Find the changes of the measure from start to last; the records are in no order."""
        cdef Py_ssize_t q, n_held = 0
        cdef int thread
        cdef bint of_pairs = self.task.formula == PAIR_ACCURACY or self.task.formula == KENDALL_TAU
        cdef Change[::1] out
        cdef Sweep* sweeps = <Sweep*>calloc(self.n_threads, sizeof(Sweep))
        cdef Changes* changes = <Changes*>calloc(self.n_threads, sizeof(Changes))
        try:
            if sweeps == NULL or changes == NULL:
                raise MemoryError
            for thread in range(self.n_threads):
                if not make_room(&sweeps[thread], self.longest):
                    raise MemoryError
                sweeps[thread].ties, sweeps[thread].convex = self.ties, self.combined.convex
                sweeps[thread].last, sweeps[thread].of_pairs = last, of_pairs
            for q in prange(self.scales.shape[0], nogil=True, schedule="dynamic", chunksize=1,
                            num_threads=self.n_threads, use_threads_if=self.n_threads > 1):
                first_values[q] = 0
                if self.scales[q] > 0.0 and not changes[threadid()].failed:
                    first_values[q] = self.sweep_query(
                        q, start, opening, &sweeps[threadid()], &changes[threadid()])
            for thread in range(self.n_threads):
                n_held += changes[thread].n
                if changes[thread].failed:
                    raise MemoryError
            array = np.empty(n_held, CHANGE)
            if n_held:
                out = array
                n_held = 0
                for thread in range(self.n_threads):
                    if changes[thread].n:
                        memcpy(&out[n_held], changes[thread].held, changes[thread].n * sizeof(Change))
                    n_held += changes[thread].n
            return array
        finally:
            for thread in range(self.n_threads if sweeps != NULL and changes != NULL else 0):
                free(sweeps[thread].rows)
                free(changes[thread].held)
            free(sweeps)
            free(changes)

    cdef int64_t sweep_query(
        self, Py_ssize_t q, double start, bint opening, Sweep* s, Changes* changes
    ) noexcept nogil:
        cdef Query query = self.combined.query(q, run_in(self.gains, 0))
        s.task = self.task
        return sweep_from(&query, start, opening, self.every, self.scales[q], s, changes)
