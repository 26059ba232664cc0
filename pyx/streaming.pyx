"""Streaming histograms: a row at a time, in as many centroids as there may be.

    update     a row becomes a centroid of its own; if they are too many, the two nearest become one
    merge      the centroids of two histograms side by side, and again the nearest two become one
    sum        what lies up to a value: half of the centroid before it, and a trapezoid
    uniform    the values that part the mass equally: the trapezoid's formula, solved

Ben-Haim and Yom-Tov, 2010; for the sums of gradients Tyree et al., 2011. Of equal gaps the lower one counts.
"""
import numpy as np

from ranktrees._core.dtypes import SPLIT

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memset

from records cimport Bin, Centroid, Leaf, Split, bytes_of

cdef extern from "gains.h" nogil:
    ctypedef struct Sums "sums":
        double gradient
        double hessian
        double count
    ctypedef struct Rules "rules":
        double l2
        double min_gain
        double gradient_unit
        double hessian_unit
        double min_samples_leaf
        double min_hessian
        int first_side
        int last_side
    double own_score_of(const Sums* total, const Rules* rule)
    double least_score(double own_score, const Rules* rule)
    double hessian_of_rows(const Sums* total, double share, const Rules* rule)
    void score_children(
        int32_t n, const double* gradients, const double* hessians, const double* counts,
        const Sums* extra, const Sums* total, const Rules* rule, double* scores,
    ) noexcept

cdef extern from "streaming.h" nogil:
    enum: MOST_CENTROIDS
    ctypedef struct Entry "centroid":  # a Centroid
        double value
        double mass
        double gradient
        double hessian
    ctypedef struct Triple "centroid_sums":
        double mass
        double gradient
        double hessian
    ctypedef struct Streamed "streamed":
        int32_t n
    ctypedef struct Side "side":
        int64_t sum
        int64_t n
        int64_t missing_sum
        int64_t n_missing
    void clear_streamed(Streamed* own, int32_t most)
    void stream_rows(
        int is_long, const uint8_t* column, const double* values, uint32_t missing, const uint32_t* rows,
        const int64_t* sums, int64_t n, int bits, Streamed* own, Triple* lacking,
    )
    void stream_values(Streamed* own, const double* values, const Triple* sums, int64_t n)
    void centroids_of(const Streamed* own, Entry* out)
    void merge_streamed(
        Streamed* own, const Entry* ours, int32_t n_ours, const Entry* theirs, int32_t n_theirs
    )
    void add_up(const Entry* own, int32_t n, Triple* before)
    double share_of_mass(const Entry* own, const Triple* before, int32_t n, double aim, int32_t* i)
    Triple sums_at(const Entry* own, const Triple* before, int32_t i, double share)
    double value_at(const Entry* own, int32_t i, double share)
    void sum_side(
        int is_long, const uint8_t* column, uint32_t last, uint32_t missing, const uint32_t* rows,
        const int64_t* sums, int64_t n, Side* found,
    )

cdef enum:
    MOST_TASKS = 1 << 16  # histograms whose best cuts are kept at a time


# Where a feature may be cut. The last cut is behind all its values.
cdef struct Candidates:
    int32_t n
    double value[MOST_CENTROIDS + 1]
    double gradient[MOST_CENTROIDS + 1]
    double hessian[MOST_CENTROIDS + 1]
    double count[MOST_CENTROIDS + 1]


cdef inline void add_candidate(Candidates* some, double value, Triple up_to) noexcept nogil:
    some.value[some.n] = value
    some.gradient[some.n] = up_to.gradient
    some.hessian[some.n] = up_to.hessian
    some.count[some.n] = up_to.mass
    some.n += 1


cdef void list_candidates(
    const Entry* own, int32_t n, int32_t most, const Triple* before, Candidates* some
) noexcept nogil:
    """The uniform cuts of a histogram; where it has room left, nothing was merged, and each value is one."""
    cdef int32_t i = 0, j
    cdef double share
    some.n = 0
    if n < most:
        for j in range(n):
            add_candidate(some, own[j].value, before[j + 1])
        return
    for j in range(1, most):
        share = share_of_mass(own, before, n, before[n].mass * j / most, &i)
        if i + 1 < n and (share > 0 or some.n == 0):
            add_candidate(some, value_at(own, i, share), sums_at(own, before, i, share))
    add_candidate(some, own[n - 1].value, before[n])


cdef inline Sums sums_of(Bin part) noexcept nogil:
    cdef Sums sums
    sums.gradient = <double>part.gradient
    sums.hessian = part.hessian
    sums.count = part.count
    return sums


cdef class StreamingFinder:
    """Finds splits of leaves by streaming histograms of their rows.

    Parameters
    ----------
    codes : ndarray of uint8 or uint32, shape (n_rows, n_features), feature by feature
        Ranks of values.
    values : ndarray of float64, shape (n_cells,)
        The value of each code; those of feature f are ``values[offsets[f] : offsets[f + 1] - 1]``, rising.
    max_bins : int
        The most centroids of a histogram.
    shards : ndarray of int64, shape (n_shards + 1,)
        Where the rows of each shard begin, and the number of rows: each has a histogram of its own.
    order, sums, offsets, missing, prices
        As for `ranktrees._core.splitting.Finder`.
    """

    cdef const uint8_t[:, :] columns
    cdef bint is_long
    cdef const uint32_t[::1] order
    cdef const int64_t[::1] sums, offsets, shards
    cdef const double[::1] values, prices
    cdef int32_t most
    cdef Leaf[::1] leaves
    cdef int bits
    cdef bint sampled
    cdef Rules rules
    cdef Split[::1] found

    def __init__(self, codes, values, int32_t max_bins, shards, order, sums, offsets, missing, prices):
        if not 2 <= max_bins <= MOST_CENTROIDS:
            raise ValueError(f"max_bins is {max_bins}; expected 2 to {MOST_CENTROIDS}")
        self.columns, self.is_long = bytes_of(codes), codes.itemsize > 1
        self.values, self.most, self.shards = values, max_bins, shards
        self.order, self.sums, self.offsets, self.prices = order, sums, offsets, prices
        self.rules.first_side = missing == "left"
        self.rules.last_side = missing != "right"
        self.found = np.empty(64, SPLIT)

    def look_at(self, leaves, lines, int lanes):
        """The leaves; they have no lines."""
        self.leaves = leaves

    def begin(
        self, int bits, bint same, double l2, double min_gain, double gradient_unit, double hessian_unit,
        uint32_t min_samples_leaf, uint32_t min_hessian, bint apart=False, bint sampled=False,
    ):
        """A new tree, as for `Finder`; no rows are ``apart``."""
        self.bits, self.sampled = bits, sampled
        self.rules.l2 = l2
        self.rules.min_gain = min_gain
        self.rules.gradient_unit = gradient_unit
        self.rules.hessian_unit = hessian_unit
        self.rules.min_samples_leaf = min_samples_leaf
        self.rules.min_hessian = min_hessian

    cdef Rules rules_of(self, const Sums* total) noexcept nogil:
        cdef Rules rules = self.rules
        if self.sampled:
            rules.min_hessian = hessian_of_rows(total, 0.5, &self.rules)
        return rules

    def find_directly(self, const int32_t[::1] ids, const int32_t[:, ::1] features, int n_threads):
        """The split of each leaf among its own features.

        Each feature offers its best cut by what its histogram says. The offers are looked at in the order of
        their gains, until one keeps the rules and gains something by the sums of the rows themselves.
        ``features`` are rising; one line per leaf, or one line for all; they end at -1.
        """
        cdef int64_t width = features.shape[1], step = max(1, MOST_TASKS // width), n_ids, first, task, i
        cdef Split* found
        if min(step, ids.shape[0]) * width > self.found.shape[0]:
            self.found = np.empty(min(step, 2 * ids.shape[0]) * width, SPLIT)
        found = &self.found[0]
        for first in range(0, ids.shape[0], step):
            n_ids = min(step, ids.shape[0] - first)
            for task in prange(
                n_ids * width, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
                schedule="dynamic",
            ):
                self.offer(
                    &self.leaves[ids[first + task // width]],
                    features[first + task // width if features.shape[0] > 1 else 0, task % width],
                    found + task,
                )
            for i in prange(
                n_ids, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
            ):
                self.settle(&self.leaves[ids[first + i]], found + i * width, width)

    cdef int32_t build(self, const Leaf* leaf, int32_t f, Entry* own, Triple* lacking) noexcept nogil:
        """The histogram of a feature: those of the shards, each of its rows in their order, merged."""
        cdef Streamed streamed
        cdef Entry[MOST_CENTROIDS] more
        cdef int32_t missing = <int32_t>(self.offsets[f + 1] - self.offsets[f]) - 1, n = 0
        cdef int64_t start = leaf.start, stop, s
        memset(lacking, 0, sizeof(Triple))
        for s in range(self.shards.shape[0] - 1):
            stop = self.end_of_shard(start, leaf.stop, self.shards[s + 1])
            if stop == start:
                continue
            clear_streamed(&streamed, self.most)
            stream_rows(
                self.is_long, &self.columns[0, f], &self.values[self.offsets[f]], missing,
                &self.order[start], &self.sums[start], stop - start, self.bits, &streamed, lacking,
            )
            if n == 0:
                n = streamed.n
                centroids_of(&streamed, own)
            elif streamed.n:
                n = merged(own, n, more, take(&streamed, more), self.most, own)
            start = stop
        return n

    cdef int64_t end_of_shard(self, int64_t start, int64_t stop, int64_t last) noexcept nogil:
        """The first of the places of rows, from start on, whose row is not below ``last``."""
        cdef int64_t middle
        while start < stop:
            middle = (start + stop) // 2
            if self.order[middle] < last:
                start = middle + 1
            else:
                stop = middle
        return start

    cdef void offer(self, const Leaf* leaf, int32_t f, Split* best) noexcept nogil:
        """The best cut of a feature by its histogram; feature -1 if none gains anything."""
        cdef Entry[MOST_CENTROIDS] own
        cdef Triple[MOST_CENTROIDS + 1] before
        cdef Triple lacking
        cdef Candidates some
        cdef Sums total = sums_of(leaf.total), nothing, missing
        cdef Rules rules = self.rules_of(&total)
        cdef int32_t n, side
        memset(best, 0, sizeof(Split))
        best.feature = -1
        if f < 0:
            return
        n = self.build(leaf, f, own, &lacking)
        if n == 0:
            return
        add_up(own, n, before)
        list_candidates(own, n, self.most, before, &some)
        memset(&nothing, 0, sizeof(Sums))
        missing.gradient, missing.hessian, missing.count = lacking.gradient, lacking.hessian, lacking.mass
        best.gain = least_score(own_score_of(&total, &rules), &rules)
        if lacking.mass == 0:
            self.try_cuts(&some, 0, some.n - 1, rules.first_side, f, &nothing, &total, &rules, best)
            return
        if rules.first_side:  # below all values, and still the right child
            self.try_cuts(&some, some.n - 1, some.n, 0, f, &nothing, &total, &rules, best)
        for side in range(rules.first_side, rules.last_side + 1):
            self.try_cuts(
                &some, 0, some.n - side, side, f, &missing if side else &nothing, &total, &rules, best
            )

    cdef void try_cuts(
        self, const Candidates* some, int32_t first, int32_t last, int32_t side, int32_t f, const Sums* extra,
        const Sums* total, const Rules* rules, Split* best,
    ) noexcept nogil:
        """Candidates first to last - 1, with the rows without a value on one side."""
        cdef double[MOST_CENTROIDS + 1] scores
        cdef int32_t k
        score_children(
            last - first, some.gradient + first, some.hessian + first, some.count + first, extra, total,
            rules, scores + first,
        )
        for k in range(first, last):
            if scores[k] - self.prices[f] > best.gain:
                best.gain = scores[k] - self.prices[f]
                best.feature = f
                best.code = self.code_of(f, some.value[k], k == some.n - 1)
                best.missing_left = side
                best.order = 1

    cdef uint32_t code_of(self, int32_t f, double cut, bint all) noexcept nogil:
        """The code of the highest value up to the cut, or of all values."""
        cdef const double* values = &self.values[self.offsets[f]]
        cdef int64_t first = 0, last = self.offsets[f + 1] - self.offsets[f] - 2, middle
        if all:
            return <uint32_t>last
        while first < last:
            middle = (first + last + 1) // 2
            if values[middle] <= cut:
                first = middle
            else:
                last = middle - 1
        return <uint32_t>first

    cdef void settle(self, Leaf* leaf, Split* offers, int64_t width) noexcept nogil:
        """The leaf's split: the best of the offers that holds what it promises."""
        cdef Sums total = sums_of(leaf.total)
        cdef Rules rules = self.rules_of(&total)
        cdef double own = own_score_of(&total, &rules)
        cdef Split* best
        cdef int64_t k
        memset(&leaf.split, 0, sizeof(Split))
        leaf.split.feature = -1
        leaf.promise = 0.0
        while leaf.split.feature < 0:
            best = NULL
            for k in range(width):
                if offers[k].feature >= 0 and (best == NULL or offers[k].gain > best.gain):
                    best = offers + k
            if best == NULL:
                return
            self.count(leaf, &total, &rules, best)
            if best.gain > least_score(own, &rules):
                leaf.split = best[0]
                leaf.split.gain -= own
                leaf.promise = leaf.split.gain
            best.feature = -1

    cdef void count(
        self, const Leaf* leaf, const Sums* total, const Rules* rules, Split* split
    ) noexcept nogil:
        """What a split scores by the rows that it sends left, less its price."""
        cdef int64_t f = split.feature, missing = self.offsets[f + 1] - self.offsets[f] - 1
        cdef Side found
        cdef Sums left, nothing
        memset(&found, 0, sizeof(Side))
        memset(&nothing, 0, sizeof(Sums))
        sum_side(
            self.is_long, &self.columns[0, f], split.code, <uint32_t>missing, &self.order[leaf.start],
            &self.sums[leaf.start], leaf.stop - leaf.start, &found,
        )
        if found.n_missing == 0 and rules.first_side != rules.last_side:
            split.missing_left = 2 * found.n > leaf.total.count
        elif split.missing_left:
            found.n += found.n_missing
            found.sum += found.missing_sum
        split.left.gradient = found.sum >> self.bits
        split.left.hessian = <uint32_t>(found.sum & ((<int64_t>1 << self.bits) - 1))
        split.left.count = <uint32_t>found.n
        left = sums_of(split.left)
        score_children(
            1, &left.gradient, &left.hessian, &left.count, &nothing, total, rules, &split.gain
        )
        split.gain -= self.prices[f]


cdef int32_t take(const Streamed* streamed, Entry* out) noexcept nogil:
    centroids_of(streamed, out)
    return streamed.n


cdef int32_t merged(
    const Entry* ours, int32_t n_ours, const Entry* theirs, int32_t n_theirs, int32_t most, Entry* out
) noexcept nogil:
    """How many centroids two histograms have together; ``out`` may be one of them."""
    cdef Streamed streamed
    clear_streamed(&streamed, most)
    merge_streamed(&streamed, ours, n_ours, theirs, n_theirs)
    return take(&streamed, out)


cdef inline const Entry* entries(const Centroid[::1] centroids) noexcept:
    return <const Entry*>&centroids[0] if centroids.shape[0] else NULL


# ---- single histograms ------------------------------------------------------------------------------


def update(
    const Centroid[::1] centroids,    # IN
    const double[::1] values,         # IN
    const double[:, ::1] sums,        # IN  [n, 3] mass, gradient and hessian of each
    Centroid[::1] out,                # OUT [max_bins]
):
    """Add values one after another; how many centroids there are."""
    cdef Streamed streamed
    clear_streamed(&streamed, <int32_t>out.shape[0])
    merge_streamed(&streamed, entries(centroids), <int32_t>centroids.shape[0], NULL, 0)
    if values.shape[0]:
        stream_values(&streamed, &values[0], <const Triple*>&sums[0, 0], values.shape[0])
    return take(&streamed, <Entry*>&out[0])


def merge(const Centroid[::1] ours, const Centroid[::1] theirs, Centroid[::1] out):
    """The centroids of two histograms, as few as ``out`` has room for; how many there are."""
    return merged(
        entries(ours), <int32_t>ours.shape[0], entries(theirs), <int32_t>theirs.shape[0],
        <int32_t>out.shape[0], <Entry*>&out[0],
    )


def sums_up_to(
    const Centroid[::1] centroids,    # IN
    const double[::1] values,         # IN
    double[:, ::1] out,               # OUT [n, 3]
):
    """Mass, gradient and hessian of what is not above each value."""
    cdef Triple[MOST_CENTROIDS + 1] before
    cdef const Entry* own = entries(centroids)
    cdef Triple* found
    cdef int32_t n = <int32_t>centroids.shape[0], i
    cdef int64_t k
    add_up(own, n, before)
    for k in range(values.shape[0]):
        found = <Triple*>&out[k, 0]
        i = 0
        while i < n and own[i].value <= values[k]:
            i += 1
        if i == 0 or i == n:
            found[0] = before[i]
        else:
            found[0] = sums_at(
                own, before, i - 1, (values[k] - own[i - 1].value) / (own[i].value - own[i - 1].value)
            )


def uniform(const Centroid[::1] centroids, double[::1] out):
    """The values that part the mass of a histogram into one part more than there are places in ``out``."""
    cdef Triple[MOST_CENTROIDS + 1] before
    cdef const Entry* own = entries(centroids)
    cdef int32_t n = <int32_t>centroids.shape[0], i = 0
    cdef int64_t j, n_parts = out.shape[0] + 1
    cdef double share
    add_up(own, n, before)
    for j in range(1, n_parts):
        share = share_of_mass(own, before, n, before[n].mass * j / n_parts, &i)
        out[j - 1] = value_at(own, i, share)
