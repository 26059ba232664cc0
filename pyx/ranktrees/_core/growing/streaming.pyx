"""Streaming histograms: take rows one at a time, and keep a limited number of centroids.

    update     a row becomes a centroid of its own; if there are too many, the nearest two are merged
    merge      the centroids of two histograms, side by side; again the nearest two are merged. Or one by one:
               each centroid of the second as if it were a row
    sum        the mass up to a value: all before the last centroid below it, half of this, and a trapezoid
    uniform    the values that divide the mass equally: the formula of the trapezoid, solved for the value

See Ben-Haim and Yom-Tov, 2010, and for the sums of gradients Tyree et al., 2011. Of equal gaps, the lower one
is closed first.
"""
import numpy as np

from ranktrees._core.support.dtypes import CENTROID, OFFER

from cython.parallel cimport prange
from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from ranktrees._core.growing.gains cimport (
    Rules, Sums, least_gain, undivided_gain_of, rules_within, gains_of_children, sums_of,
)
from ranktrees._core.support.records cimport Centroid, Leaf, Offer, Split, bytes_of, first_from
from ranktrees._core.support.views cimport bytes_in, line_in, run_in

cdef extern from "growing/streaming.h" nogil:
    enum: MOST_CENTROIDS
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
    void clear_streamed(Streamed* histogram, int32_t most)
    void stream_rows(
        int is_long, const uint8_t* column, const double* values, uint32_t missing, const uint32_t* rows,
        const int64_t* sums, int64_t n, int bits, Streamed* histogram, Triple* lacking,
    )
    void stream_values(Streamed* histogram, const double* values, const Triple* sums, int64_t n)
    void centroids_of(const Streamed* histogram, Centroid* out)
    void merge_streamed(
        Streamed* histogram, const Centroid* ours, int32_t n_ours, const Centroid* theirs, int32_t n_theirs
    )
    void merge_one_by_one(Streamed* histogram, const Centroid* theirs, int32_t n)
    void add_up(const Centroid* centroid, int32_t n, Triple* before)
    double share_of_mass(const Centroid* centroid, const Triple* before, int32_t n, double aim, int32_t* i)
    Triple sums_at(const Centroid* centroid, const Triple* before, int32_t i, double share)
    double value_at(const Centroid* centroid, int32_t i, double share)
    void sum_side(
        int is_long, const uint8_t* column, uint32_t last, uint32_t missing, const uint32_t* rows,
        const int64_t* sums, int64_t n, Side* found,
    )

cdef enum:
    MOST_TASKS = 1 << 16  # histograms whose best cuts are kept at a time


# The cuts of a feature that are tried, with the sums up to each. The last cut is infinite, behind all values.
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
    const Centroid* centroid, int32_t n, int32_t most, bint uniform_only, const Triple* before,
    Candidates* some,
) noexcept nogil:
    """List the uniform cuts of a histogram or, if it is not full and nothing was merged, all its values."""
    cdef int32_t i = 0, j
    cdef double share
    some.n = 0
    if n < most and not uniform_only:
        for j in range(n - 1):
            add_candidate(some, centroid[j].value, before[j + 1])
        add_candidate(some, INFINITY, before[n])
        return
    for j in range(1, most):
        share = share_of_mass(centroid, before, n, before[n].mass * j / most, &i)
        if i + 1 < n and (share > 0 or some.n == 0):
            add_candidate(some, value_at(centroid, i, share), sums_at(centroid, before, i, share))
    add_candidate(some, INFINITY, before[n])


cdef class StreamingFinder:
    """Finds the splits of leaves by streaming histograms of their rows.

    Parameters
    ----------
    codes : ndarray of uint8 or uint32, shape (n_rows, n_features), feature by feature
        The positions of values among all distinct values of the feature, in ascending order.
    mapper : BinMapper
        The value of each code. Those of feature f are ``values[offsets[f] : offsets[f + 1] - 1]``, ascending.
    constraints, prices, order, sums
        As for `ranktrees._core.growing.finding.Finder`.
    shards : ndarray of int64, shape (n_shards + 1,)
        Where the rows of each shard begin, and at the end the number of rows. Each shard has a histogram of
        its own.
    kind : (max_bins, by_estimates)
        The maximum number of centroids of a histogram, 2 to 255, and whether the best offer is the split, as
        in pGBRT: histograms are merged one by one, cuts are uniform even if all values are known, and rows
        are only asked whether both children have enough of them.
    """

    cdef const uint8_t[:, :] columns
    cdef bint is_long
    cdef const uint32_t[::1] order
    cdef const int64_t[::1] sums, offsets, shards
    cdef const double[::1] values, prices
    cdef int32_t most
    cdef Leaf[::1] leaves
    cdef int bits
    cdef bint sampled, by_estimates
    cdef Rules rules
    cdef Offer[::1] offers

    def __init__(self, codes, mapper, constraints, prices, order, sums, shards, kind):
        cdef int32_t max_bins
        cdef bint by_estimates
        max_bins, by_estimates = kind
        if not 2 <= max_bins <= MOST_CENTROIDS:
            raise ValueError(f"max_bins is {max_bins}; expected 2 to {MOST_CENTROIDS}")
        self.columns, self.is_long = bytes_of(codes), codes.itemsize > 1
        self.values, self.offsets, self.prices = mapper.values, mapper.offsets, prices.of_features
        self.rules.first_side = constraints.missing == "left"
        self.rules.last_side = constraints.missing != "right"
        self.order, self.sums, self.shards = order, sums, shards
        self.most, self.by_estimates = max_bins, by_estimates
        self.offers = np.empty(64, OFFER)

    def attach(self, leaves):
        """Use these leaves."""
        self.leaves = leaves

    def begin(
        self, rows, double l2, double min_gain, uint32_t min_samples_leaf, uint32_t min_hessian,
        bint apart=False,
    ):
        """Begin a new tree, as for `Finder`; rows are never set ``apart``."""
        self.bits, self.sampled = rows.bits, rows.sampled
        self.rules.gradient_unit, self.rules.hessian_unit = rows.gradient_unit, rows.hessian_unit
        self.rules.l2, self.rules.min_gain = l2, min_gain
        self.rules.min_samples_leaf, self.rules.min_hessian = min_samples_leaf, min_hessian

    def find_directly(self, const int32_t[::1] ids, const int32_t[:, ::1] features, int n_threads):
        """Find the split of each leaf by some features.

        Each feature offers the best cut by its histogram. Offers are checked in the order of their gains,
        until one satisfies the rules and gains something by the exact sums of the rows. By estimates, only
        the best is checked, and need not gain.
        ``features`` has one list per leaf or one list for all leaves, ascending and ended by -1.
        """
        cdef int64_t width = features.shape[1], step = max(1, MOST_TASKS // width), n_ids, first, task, i
        cdef Offer* offers
        if min(step, ids.shape[0]) * width > self.offers.shape[0]:
            self.offers = np.empty(min(step, 2 * ids.shape[0]) * width, OFFER)
        offers = &self.offers[0]
        for first in range(0, ids.shape[0], step):
            n_ids = min(step, ids.shape[0] - first)
            for task in prange(
                n_ids * width, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
                schedule="dynamic",
            ):
                self.offer(
                    &self.leaves[ids[first + task // width]],
                    features[first + task // width if features.shape[0] > 1 else 0, task % width],
                    offers + task,
                )
            for i in prange(
                n_ids, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
            ):
                self.settle(&self.leaves[ids[first + i]], offers + i * width, width)

    # The next methods search together with other ranks. A task is one feature of one leaf; ids and features
    # are those of `find_directly`.

    def histograms(self, const int32_t[::1] ids, const int32_t[:, ::1] features, int n_threads):
        """For each task this rank's centroids, their number, and the sums of the rows without a value.

        These are CENTROID records of shape (n_tasks, max_bins), int32[n_tasks], and float64[n_tasks, 3] with
        mass, gradient and hessian.
        """
        cdef int64_t width = features.shape[1], n_tasks = ids.shape[0] * width, task
        cdef Centroid[:, ::1] centroids = np.empty((n_tasks, self.most), CENTROID)
        cdef int32_t[::1] sizes = np.zeros(n_tasks, np.int32)
        cdef double[:, ::1] lacking = np.zeros((n_tasks, 3))
        cdef int32_t f
        for task in prange(
            n_tasks, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
        ):
            f = features[task // width if features.shape[0] > 1 else 0, task % width]
            if f >= 0:
                sizes[task] = self.build(
                    &self.leaves[ids[task // width]], f, &centroids[task, 0],
                    <Triple*>&lacking[task, 0],
                )
        return centroids.base, sizes.base, lacking.base

    def offers_of(
        self, const int32_t[::1] ids, const int32_t[:, ::1] features, int64_t first_task,
        const Centroid[::1] centroids, const int64_t[:, ::1] limits, const double[:, ::1] lacking,
        int n_threads,
    ):
        """OFFER records of the tasks from ``first_task`` on: their best cuts by all ranks' centroids, merged.

        The centroids of rank r for the k-th of these tasks are those from ``limits[r, k]`` to
        ``limits[r, k + 1]``. ``lacking`` is summed over all ranks.
        """
        cdef int64_t width = features.shape[1], n_tasks = lacking.shape[0], k, task
        cdef Offer[::1] offers = np.empty(n_tasks, OFFER)
        cdef const Centroid* theirs = entries(centroids)
        for k in prange(
            n_tasks, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
        ):
            task = first_task + k
            self.offer_together(
                &self.leaves[ids[task // width]],
                features[task // width if features.shape[0] > 1 else 0, task % width],
                theirs, limits, k, <const Triple*>&lacking[k, 0], &offers[k],
            )
        return offers.base

    cdef void offer_together(
        self, const Leaf* leaf, int32_t f, const Centroid* theirs, const int64_t[:, ::1] limits, int64_t k,
        const Triple* lacking, Offer* best,
    ) noexcept nogil:
        cdef Centroid[MOST_CENTROIDS] centroids
        cdef int64_t rank, first
        cdef int32_t n = 0, n_theirs
        for rank in range(limits.shape[0]):
            first = limits[rank, k]
            n_theirs = <int32_t>(limits[rank, k + 1] - first)
            if n == 0 and n_theirs > 0:
                memcpy(centroids, theirs + first, n_theirs * sizeof(Centroid))
                n = n_theirs
            elif n_theirs > 0:
                n = merged(centroids, n, theirs + first, n_theirs, self.most, self.by_estimates, centroids)
        self.offer_of(leaf, f, centroids, n, lacking, best)

    def sides(self, const int32_t[::1] ids, const Offer[::1] offers, int n_threads):
        """int64[n, 4]: sum and number of this rank's rows that an offer for each leaf sends left by value.

        The last two numbers are the sum and the number of its rows without a value.
        """
        cdef int64_t[:, ::1] sides = np.zeros((ids.shape[0], 4), np.int64)
        cdef int64_t i
        for i in prange(
            ids.shape[0], nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
        ):
            if offers[i].feature >= 0:
                self.count(&self.leaves[ids[i]], &offers[i], <Side*>&sides[i, 0])
        return sides.base

    def judge(self, const int32_t[::1] ids, const Offer[::1] offers, const int64_t[:, ::1] sides):
        """bool[n]: whether each leaf is done: its offer holds by the sides of all ranks, or none is left."""
        cdef uint8_t[::1] done = np.empty(ids.shape[0], np.uint8)
        cdef int64_t i
        for i in range(ids.shape[0]):
            self.clear(&self.leaves[ids[i]])
            done[i] = offers[i].feature < 0 or self.accept(
                &self.leaves[ids[i]], &offers[i], <const Side*>&sides[i, 0]
            ) or self.by_estimates
        return done.base.astype(bool)

    cdef int32_t build(
        self, const Leaf* leaf, int32_t f, Centroid* centroids, Triple* lacking
    ) noexcept nogil:
        """Build the histogram of a feature: merge those of the shards, each built from its rows in order."""
        cdef Streamed streamed
        cdef Centroid[MOST_CENTROIDS] more
        cdef int32_t missing = <int32_t>(self.offsets[f + 1] - self.offsets[f]) - 1, n = 0
        cdef int64_t start = leaf.start, stop, s
        memset(lacking, 0, sizeof(Triple))
        for s in range(self.shards.shape[0] - 1):
            stop = first_from(self.shards[s + 1], run_in(self.order, 0), start, leaf.stop)
            if stop == start:
                continue
            clear_streamed(&streamed, self.most)
            stream_rows(
                self.is_long, self.column(f), run_in(self.values, self.offsets[f]), missing,
                run_in(self.order, start), run_in(self.sums, start), stop - start, self.bits, &streamed,
                lacking,
            )
            if n == 0:
                n = streamed.n
                centroids_of(&streamed, centroids)
            elif streamed.n:
                n = merged(centroids, n, more, take(&streamed, more), self.most, self.by_estimates, centroids)
            start = stop
        return n

    cdef void offer(self, const Leaf* leaf, int32_t f, Offer* best) noexcept nogil:
        """Offer the best cut of a feature by its histogram."""
        cdef Centroid[MOST_CENTROIDS] centroids
        cdef Triple lacking
        cdef int32_t n = self.build(leaf, f, centroids, &lacking) if f >= 0 else 0
        self.offer_of(leaf, f, centroids, n, &lacking, best)

    cdef void offer_of(
        self, const Leaf* leaf, int32_t f, const Centroid* centroids, int32_t n, const Triple* lacking,
        Offer* best,
    ) noexcept nogil:
        """The same from a histogram of n centroids and the sums of the rows without a value."""
        cdef Triple[MOST_CENTROIDS + 1] before
        cdef Candidates some
        cdef Sums total = sums_of(leaf.total), nothing, missing
        cdef Rules rules = rules_within(&total, self.sampled, &self.rules)
        cdef int32_t side
        best.feature = -1
        if n == 0:
            return
        add_up(centroids, n, before)
        list_candidates(centroids, n, self.most, self.by_estimates, before, &some)
        memset(&nothing, 0, sizeof(Sums))
        missing.gradient, missing.hessian, missing.count = lacking.gradient, lacking.hessian, lacking.mass
        best.gain = least_gain(undivided_gain_of(&total, &rules), &rules)
        if lacking.mass == 0:
            self.try_cuts(&some, 0, some.n - 1, rules.first_side, f, &nothing, &total, &rules, best)
            return
        if rules.first_side:  # missing values count as below all others, but go right here
            self.try_cuts(&some, some.n - 1, some.n, 0, f, &nothing, &total, &rules, best)
        for side in range(rules.first_side, rules.last_side + 1):
            self.try_cuts(
                &some, 0, some.n - side, side, f, &missing if side else &nothing, &total, &rules, best
            )

    cdef void try_cuts(
        self, const Candidates* some, int32_t first, int32_t last, int32_t side, int32_t f, const Sums* extra,
        const Sums* total, const Rules* rules, Offer* best,
    ) noexcept nogil:
        """Try the candidates first to last - 1, with the rows without a value on one side."""
        cdef double[MOST_CENTROIDS + 1] gains
        cdef double least = least_gain(undivided_gain_of(total, rules), rules)
        cdef int32_t k
        gains_of_children(
            last - first, some.gradient + first, some.hessian + first, some.count + first, extra, total,
            rules, gains + first,
        )
        for k in range(first, last):
            if gains[k] > least and gains[k] - self.prices[f] > best.gain:
                best.gain = gains[k] - self.prices[f]
                best.feature = f
                best.cut = some.value[k]
                best.missing_left = side

    cdef const uint8_t* column(self, int32_t f) noexcept nogil:
        return bytes_in(self.columns) + f * self.columns.strides[1]

    cdef uint32_t code_of(self, int32_t f, double cut) noexcept nogil:
        """The code of the highest value up to the cut."""
        cdef const double* values = run_in(self.values, self.offsets[f])
        cdef int64_t first = 0, last = self.offsets[f + 1] - self.offsets[f] - 2, middle
        while first < last:
            middle = (first + last + 1) // 2
            if values[middle] <= cut:
                first = middle
            else:
                last = middle - 1
        return <uint32_t>first

    cdef void settle(self, Leaf* leaf, Offer* offers, int64_t width) noexcept nogil:
        """Give a leaf the best of the offers that hold by the sums of its rows."""
        cdef Offer* best
        cdef Side found
        cdef int64_t k
        self.clear(leaf)
        while True:
            best = NULL
            for k in range(width):
                if offers[k].feature >= 0 and (best == NULL or offers[k].gain > best.gain):
                    best = offers + k
            if best == NULL:
                return
            memset(&found, 0, sizeof(Side))
            self.count(leaf, best, &found)
            if self.accept(leaf, best, &found) or self.by_estimates:
                return
            best.feature = -1

    cdef void clear(self, Leaf* leaf) noexcept nogil:
        memset(&leaf.split, 0, sizeof(Split))
        leaf.split.feature = -1
        leaf.promise = 0.0

    cdef void count(self, const Leaf* leaf, const Offer* offer, Side* found) noexcept nogil:
        """Add up the rows that an offer sends left, and those without a value."""
        cdef int32_t f = offer.feature
        sum_side(
            self.is_long, self.column(f), self.code_of(f, offer.cut),
            <uint32_t>(self.offsets[f + 1] - self.offsets[f] - 1), run_in(self.order, leaf.start),
            run_in(self.sums, leaf.start), leaf.stop - leaf.start, found,
        )

    cdef bint accept(self, Leaf* leaf, const Offer* offer, const Side* found) noexcept nogil:
        """Make an offer the split of a leaf if, by the sums of its rows, it satisfies the rules and gains.

        By estimates, it gains what it was thought to gain.
        """
        cdef Sums total = sums_of(leaf.total), left, nothing
        cdef Rules rules = rules_within(&total, self.sampled, &self.rules)
        cdef double undivided = undivided_gain_of(&total, &rules), least = least_gain(undivided, &rules)
        cdef int64_t sum = found.sum, n = found.n
        cdef bint lacks = False
        cdef Split split
        memset(&nothing, 0, sizeof(Sums))
        memset(&split, 0, sizeof(Split))
        split.feature = offer.feature
        split.code = self.code_of(offer.feature, offer.cut)
        split.missing_left = offer.missing_left
        split.direction = 1
        if found.n_missing == 0 and rules.first_side != rules.last_side:
            split.missing_left = 2 * n > leaf.total.count
        elif split.missing_left:
            n += found.n_missing
            sum += found.missing_sum
        split.left.gradient = sum >> self.bits
        split.left.hessian = <uint32_t>(sum & ((<int64_t>1 << self.bits) - 1))
        split.left.count = <uint32_t>n
        left = sums_of(split.left)
        gains_of_children(
            1, &left.gradient, &left.hessian, &left.count, &nothing, &total, &rules, &split.gain
        )
        if self.by_estimates and split.gain > -INFINITY:
            split.gain = offer.gain
        else:
            lacks = split.gain <= least
            split.gain -= self.prices[split.feature]
        if lacks or split.gain <= least:
            return False
        split.gain -= undivided
        leaf.split = split
        leaf.promise = split.gain
        return True


cdef int32_t take(const Streamed* streamed, Centroid* out) noexcept nogil:
    centroids_of(streamed, out)
    return streamed.n


cdef int32_t merged(
    const Centroid* ours, int32_t n_ours, const Centroid* theirs, int32_t n_theirs, int32_t most,
    bint one_by_one, Centroid* out,
) noexcept nogil:
    """Merge two histograms into ``out``, which may be one of them, and return the number of centroids."""
    cdef Streamed streamed
    clear_streamed(&streamed, most)
    merge_streamed(&streamed, ours, n_ours, theirs, 0 if one_by_one else n_theirs)
    if one_by_one:
        merge_one_by_one(&streamed, theirs, n_theirs)
    return take(&streamed, out)


cdef inline const Centroid* entries(const Centroid[::1] centroids) noexcept:
    return &centroids[0] if centroids.shape[0] else NULL


# ---- single histograms ------------------------------------------------------------------------------


def update(
    const Centroid[::1] centroids,    # IN
    const double[::1] values,         # IN
    const double[:, ::1] sums,        # IN  [n, 3] mass, gradient and hessian of each
    Centroid[::1] out,                # OUT [max_bins]
):
    """Add values one after another, and return the number of centroids."""
    cdef Streamed streamed
    clear_streamed(&streamed, <int32_t>out.shape[0])
    merge_streamed(&streamed, entries(centroids), <int32_t>centroids.shape[0], NULL, 0)
    if values.shape[0]:
        stream_values(&streamed, run_in(values, 0), <const Triple*>&sums[0, 0], values.shape[0])
    return take(&streamed, run_in(out, 0))


def merge(const Centroid[::1] ours, const Centroid[::1] theirs, bint one_by_one, Centroid[::1] out):
    """Merge two histograms into as many centroids as ``out`` has room for, and return their number."""
    return merged(
        entries(ours), <int32_t>ours.shape[0], entries(theirs), <int32_t>theirs.shape[0],
        <int32_t>out.shape[0], one_by_one, run_in(out, 0),
    )


def sums_up_to(
    const Centroid[::1] centroids,    # IN
    const double[::1] values,         # IN
    double[:, ::1] out,               # OUT [n, 3]
):
    """Set mass, gradient and hessian up to each value."""
    cdef Triple[MOST_CENTROIDS + 1] before
    cdef const Centroid* centroid = entries(centroids)
    cdef Triple* found
    cdef int32_t n = <int32_t>centroids.shape[0], i
    cdef int64_t k
    add_up(centroid, n, before)
    for k in range(values.shape[0]):
        found = <Triple*>line_in(out, k)
        i = 0
        while i < n and centroid[i].value <= values[k]:
            i += 1
        if i == 0 or i == n:
            found[0] = before[i]
        else:
            found[0] = sums_at(
                centroid, before, i - 1,
                (values[k] - centroid[i - 1].value) / (centroid[i].value - centroid[i - 1].value)
            )


def uniform(const Centroid[::1] centroids, double[::1] out):
    """Set the values that divide the mass of a histogram equally, into one part more than values."""
    cdef Triple[MOST_CENTROIDS + 1] before
    cdef const Centroid* centroid = entries(centroids)
    cdef int32_t n = <int32_t>centroids.shape[0], i = 0
    cdef int64_t j, n_parts = out.shape[0] + 1
    cdef double share
    add_up(centroid, n, before)
    for j in range(1, n_parts):
        share = share_of_mass(centroid, before, n, before[n].mass * j / n_parts, &i)
        out[j - 1] = value_at(centroid, i, share)
