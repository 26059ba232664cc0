"""Find the best split of a leaf by one feature, from the bins of that feature.

    gain = G_left^2 / (H_left + l2) + G_right^2 / (H_right + l2) - G^2 / (H + l2)

is computed once per candidate from exact integer sums. Candidates are the codes whose sums are not zero, in
ascending order; of equal gains, the lower code wins. Unless rows without a value always go to a given side,
they are tried on both sides if a leaf has some, and will follow the larger child if it has none. Categories
are sorted by their mean gradient and cut in that order; a missing value is one more category. The more
categories are sorted, the more a cut gains by chance, which is subtracted from its gain: if gradients of
variance v per unit of hessian are dealt to n categories by chance, these differ by (n - 1) v, and the best
cut has 2 / pi of that, the share of a normal distribution's variance that is between its halves.

A feature may have a price, which is subtracted from its best gain before features are compared. A leaf may
first part the rows without a value from the others; this split and the best one of the others are then judged
together.
"""
cimport cython

from libc.math cimport INFINITY, fabs, fmax
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from ranktrees._core.growing.gains cimport (
    Rules, Sums, least_gain, undivided_gain_of, rules_within, gains_of_children, sums_of,
)
from ranktrees._core.support.records cimport Bin, Leaf, Split, best_value

cdef extern from "support/bins.h" nogil:
    void bin_add(void* cell, const void* row)
    int lowest_bit(uint64_t bits)
    void widen_cells(int64_t n, const int64_t* sums, int bits, int same, Bin* wide)

cdef extern from "growing/cells.h" nogil:
    int may_beat(
        const int64_t* cells, int32_t n, int bits, const Sums* total, const Rules* rule, double gain
    ) noexcept

cdef enum:
    CATEGORY_SMOOTHING = 10  # rows whose hessian is added to each category's when sorting by mean gradient

# The share of what categories differ by that is between the halves of their order.
cdef double BETWEEN_HALVES = 2.0 / 3.141592653589793

# The most that rounding may take from the sum of a gain and a price, relative to it.
cdef double ROUNDING = 2.0 ** -50


cdef inline Bin minus(Bin whole, Bin part) noexcept nogil:
    whole.gradient -= part.gradient
    whole.hessian -= part.hessian
    whole.count -= part.count
    return whole


cdef inline double gain_at(Bin part, double value, const Rules* rules) noexcept nogil:
    """-(2 G v + (H + l2) v^2), which is G^2 / (H + l2) at the best value."""
    return -value * (
        2.0 * part.gradient * rules.gradient_unit + (part.hessian * rules.hessian_unit + rules.l2) * value
    )


cdef inline bint is_large_enough(Bin part, const Rules* rules) noexcept nogil:
    return part.count >= rules.min_samples_leaf and part.hessian >= rules.min_hessian


cdef inline double best_value_of(Bin part, const Case* case) noexcept nogil:
    return best_value(
        part, case.leaf.lower, case.leaf.upper, case.rules.l2, case.rules.gradient_unit,
        case.rules.hessian_unit,
    )


# --------------------------------------------------------------------------------------------- bins -> prefix


cdef inline int32_t append(
    Prefix* prefix, int32_t n, Bin* running, const Bin* cell, uint32_t code
) noexcept nogil:
    """Append a bin and return the number of candidates: a bin whose sums are zero adds none."""
    running.gradient += cell.gradient
    running.hessian += cell.hessian
    running.count += cell.count
    prefix.gradient[n] = <double>running.gradient
    prefix.hessian[n] = running.hessian
    prefix.count[n] = running.count
    prefix.code[n] = code
    return n + ((cell.gradient != 0) | (cell.hessian != 0))


cdef inline void keep_last(Prefix* prefix, int32_t n) noexcept nogil:
    """Make the last of n candidates the first of the next batch, as it still may be followed by another."""
    prefix.gradient[0], prefix.hessian[0] = prefix.gradient[n - 1], prefix.hessian[n - 1]
    prefix.count[0], prefix.code[0] = prefix.count[n - 1], prefix.code[n - 1]


cdef inline void close(Prefix* prefix, int32_t n, uint32_t count, int32_t n_bins) noexcept nogil:
    """Move the last cut behind all bins."""
    prefix.n = n
    if n:
        prefix.count[n - 1] = count
        prefix.code[n - 1] = n_bins - 1


cdef inline void accumulate(const Bin* cells, int32_t n_bins, Prefix* prefix) noexcept nogil:
    """Set the running sums over the bins of a feature."""
    cdef int32_t code, n = 0
    cdef Bin running
    memset(&running, 0, sizeof(Bin))
    for code in range(n_bins):
        n = append(prefix, n, &running, cells + code, code)
    close(prefix, n, running.count, n_bins)


cdef inline void accumulate_touched(
    const Bin* cells, const uint64_t* touched, int32_t n_bins, Prefix* prefix
) noexcept nogil:
    """The same, but visit only the bins whose bit is set."""
    cdef int32_t word, code, n = 0
    cdef Bin running
    cdef uint64_t bits
    memset(&running, 0, sizeof(Bin))
    for word in range(4):
        bits = touched[word]
        while bits:
            code = word * 64 + lowest_bit(bits)
            bits &= bits - 1
            if code < n_bins:
                n = append(prefix, n, &running, cells + code, code)
    close(prefix, n, running.count, n_bins)


cdef inline Bin up_to(const Prefix* prefix, int32_t k) noexcept nogil:
    cdef Bin part
    part.gradient = <int64_t>prefix.gradient[k]
    part.hessian = <uint32_t>prefix.hessian[k]
    part.count = <uint32_t>prefix.count[k]
    return part


# -------------------------------------------------------------------------------------------- prefix -> split


cdef inline int32_t best_candidate(
    const Prefix* prefix,
    int32_t first,
    int32_t stop,
    Bin extra,              # what goes left in any case: the rows without a value, or no rows
    int8_t direction,       # see Split
    const Case* case,
    double* best_gain,      # IN and OUT
) noexcept nogil:
    """The first candidate whose children have the best gain, if that is above ``best_gain``; else -1."""
    cdef double[CELLS] gains
    cdef int32_t k, best = -1
    cdef double left_value, right_value
    cdef Bin left, right
    cdef Sums more = sums_of(extra), total = sums_of(case.leaf.total)
    if not case.bounded:
        gains_of_children(
            stop - first, prefix.gradient + first, prefix.hessian + first, prefix.count + first, &more,
            &total, &case.rules, gains + first,
        )
    else:
        for k in range(first, stop):
            left = up_to(prefix, k)
            bin_add(&left, &extra)
            right = minus(case.leaf.total, left)
            gains[k] = -INFINITY
            if is_large_enough(left, &case.rules) and is_large_enough(right, &case.rules):
                left_value, right_value = best_value_of(left, case), best_value_of(right, case)
                if (right_value - left_value) * case.sign * direction >= 0:
                    gains[k] = gain_at(left, left_value, &case.rules) + gain_at(
                        right, right_value, &case.rules
                    )
    for k in range(first, stop):
        if gains[k] > best_gain[0]:
            best_gain[0] = gains[k]
            best = k
    return best


cdef inline void scan_side(
    const Prefix* prefix,
    int32_t first,
    int32_t stop,
    bint side,              # 1: the rows without a value go left
    Bin missing,
    int8_t direction,       # see Split
    const Case* case,
    Split* best,            # IN and OUT; best.gain is that of the children
) noexcept nogil:
    """Try some cuts of a prefix, with the rows without a value on one side."""
    cdef Bin nothing, left
    cdef int32_t k
    memset(&nothing, 0, sizeof(Bin))
    k = best_candidate(prefix, first, stop, missing if side else nothing, direction, case, &best.gain)
    if k < 0:
        return
    left = up_to(prefix, k)
    if side:
        bin_add(&left, &missing)
    best.feature = case.feature
    best.code = prefix.code[k]
    best.categorical = 0
    memset(best.categories, 0, sizeof(best.categories))
    best.left = left
    best.second_gain = 0.0
    best.direction = direction
    best.missing_left = side if missing.count else side_of_none(left.count, case)


cdef inline bint side_of_none(int64_t n_left, const Case* case) noexcept nogil:
    """Where rows without a value will go if the leaf has none: with most rows, unless their side is fixed."""
    if case.rules.first_side == case.rules.last_side:
        return case.rules.first_side
    return 2 * n_left > case.leaf.total.count


cdef inline int first_side(Bin missing, const Case* case) noexcept nogil:
    return case.rules.first_side if missing.count else 0


cdef inline int stop_of_sides(Bin missing, const Case* case) noexcept nogil:
    return case.rules.last_side + 1 if missing.count else 1


cdef inline int32_t n_cuts(const Prefix* prefix, bint side, Bin missing) noexcept nogil:
    """The number of cuts. With missing values on the right, the last cut parts them from all others."""
    return prefix.n if missing.count and not side else prefix.n - 1


cdef inline bint may_be_below(const Case* case) noexcept nogil:
    """Whether rows without a value, parted as the right child from all others, may count as below these.

    If they are tried on both sides, this differs from counting as above only if a constraint compares the
    values of the children.
    """
    return case.rules.first_side or (case.rules.last_side and case.sign)


cdef inline void scan_whether(
    const Prefix* prefix, Bin missing, int8_t direction, const Case* case, Split* best
) noexcept nogil:
    """Try to part the rows without a value from all others."""
    if prefix.n:
        scan_side(prefix, prefix.n - 1, prefix.n, 0, missing, direction, case, best)


cdef inline void scan_values(const Prefix* prefix, Bin missing, const Case* case, Split* best) noexcept nogil:
    """Try every cut of one feature, first with the rows without a value on the right, then on the left."""
    cdef int32_t side
    if missing.count and may_be_below(case):
        scan_whether(prefix, missing, -1, case, best)
    for side in range(first_side(missing, case), stop_of_sides(missing, case)):
        scan_side(prefix, 0, n_cuts(prefix, side, missing), side, missing, 1, case, best)


cdef inline void scan_categories(
    const Bin* cells, int32_t n_bins, double variance, const Case* case, Split* best
) noexcept nogil:
    """Sort the categories, of which missing is one, by mean gradient, and try every cut (Fisher, 1958)."""
    cdef Prefix prefix
    cdef double[CELLS] means
    cdef uint8_t[CELLS] sorted_codes
    cdef double mean, smoothing, by_chance, gain
    cdef int32_t code, k, n = 0
    cdef Bin nothing, left, total = case.leaf.total
    cdef bint missing_here = cells[n_bins].count > 0
    if total.count == 0:
        return
    smoothing = CATEGORY_SMOOTHING * <double>total.hessian / total.count
    for code in range(n_bins + 1):
        if cells[code].count == 0:
            continue
        mean = cells[code].gradient / (cells[code].hessian + smoothing + 1e-300)
        k = n
        while k > 0 and means[k - 1] > mean:
            means[k] = means[k - 1]
            sorted_codes[k] = sorted_codes[k - 1]
            k -= 1
        means[k] = mean
        sorted_codes[k] = <uint8_t>code
        n += 1
    memset(&left, 0, sizeof(Bin))
    for k in range(n):
        bin_add(&left, &cells[sorted_codes[k]])
        prefix.gradient[k] = <double>left.gradient
        prefix.hessian[k] = left.hessian
        prefix.count[k] = left.count
    memset(&nothing, 0, sizeof(Bin))
    by_chance = BETWEEN_HALVES * (n - 1) * variance
    gain = best.gain + by_chance
    k = best_candidate(&prefix, 0, n - 1, nothing, 0, case, &gain)
    if k < 0:
        return
    best.gain = gain - by_chance
    best.feature = case.feature
    best.code = k
    best.categorical = 1
    best.second_gain = 0.0
    best.direction = 0
    best.left = up_to(&prefix, k)
    best.missing_left = 2 * <int64_t>best.left.count > total.count and not missing_here
    memset(best.categories, 0, sizeof(best.categories))
    for n in range(k + 1):
        code = sorted_codes[n]
        if code == n_bins:
            best.missing_left = 1
        else:
            best.categories[code >> 5] |= (<uint32_t>1) << (code & 31)


# ----------------------------------------------------------------------------------------------------- prices


cdef inline double to_beat(double gain, double price, double least) noexcept nogil:
    """The gain that a split needs before its price is paid to beat ``gain`` after it, or a trifle less.

    It needs ``least`` in any case, also if the price is negative.
    """
    return fmax(least, gain + price - ROUNDING * (fabs(gain) + fabs(price))) if price != 0 else gain


cdef inline Split* before_price(Split* best, double price, double least, Split* room) noexcept nogil:
    """The split that a feature of this price has to beat, its gain taken before the price is paid.

    Its feature is -1, and stays so if there is no better split.
    """
    if price == 0:
        return best
    room[0] = best[0]
    room.feature, room.gain = -1, to_beat(best.gain, price, least)
    return room


cdef inline void after_price(const Split* found, double price, Split* best) noexcept nogil:
    """Pay the price of a feature's own best split, and keep the split if it still beats the best."""
    if price != 0 and found.feature >= 0 and found.gain - price > best.gain:
        best[0] = found[0]
        best.gain -= price


# ------------------------------------------------------------------------------------------------ one feature


cdef class Scanner:
    """Scans the bins of one feature of a leaf, by the rules of a tree.

    Parameters
    ----------
    mapper : BinMapper
        Where the cells of each feature begin in a line of all bins, and which features are categorical.
    constraints : Constraints
        The directions of monotone features, and on which sides rows without a value are tried.
    prices : Prices
        The price of each feature, which is subtracted from the gain of its splits. It may be negative, and
        may change between scans.
    """

    def __init__(self, mapper, constraints, prices):
        self.offsets, self.is_categorical = mapper.offsets, mapper.is_categorical
        self.monotone, self.bounded = constraints.monotone, constraints.monotone is not None
        self.signs = &self.monotone[0] if self.bounded else NULL
        self.three_way = constraints.missing == "three_way"
        self.rules.first_side = constraints.missing == "left"
        self.rules.last_side = constraints.missing != "right"
        self.prices = prices.of_features
        self.some_categorical, self.variance = mapper.is_categorical.any(), 0.0

    def begin(self, rows, double l2, double min_gain, uint32_t min_samples_leaf, uint32_t min_hessian):
        """Begin a new tree.

        Parameters
        ----------
        rows : RoundedRows
            How sums are to be read. If rows are sampled, children need a larger hessian: see `rules_within`.
        l2, min_gain, min_samples_leaf, min_hessian
            What splits must satisfy.
        """
        self.bits, self.same, self.sampled = rows.bits, rows.same, rows.sampled
        self.rules.gradient_unit, self.rules.hessian_unit = rows.gradient_unit, rows.hessian_unit
        self.rules.l2, self.rules.min_gain = l2, min_gain
        self.rules.min_samples_leaf, self.rules.min_hessian = min_samples_leaf, min_hessian
        if self.some_categorical:
            self.variance = rows.variance()

    @cython.final
    cdef int32_t n_bins(self, int64_t f) noexcept nogil:
        """The number of bins of a feature, without the last bin, which is that of rows without a value."""
        return <int32_t>(self.offsets[f + 1] - self.offsets[f]) - 1

    @cython.final
    cdef Rules rules_of(self, const Leaf* leaf, bint exact) noexcept nogil:
        """What splits of a leaf must satisfy. If not ``exact``, the number of rows in a child is ignored."""
        cdef Sums total = sums_of(leaf.total)
        cdef Rules rules = rules_within(&total, self.sampled, &self.rules)
        if not exact:
            rules.min_samples_leaf = 0.0
        return rules

    @cython.final
    cdef Case case_of(self, const Leaf* leaf, int64_t f, bint exact) noexcept nogil:
        """One feature of a leaf, together with the `rules_of` the leaf."""
        cdef Case case
        case.leaf, case.feature, case.rules = leaf, <int32_t>f, self.rules_of(leaf, exact)
        case.sign, case.bounded = self.signs[f] if self.bounded else 0, self.bounded
        return case

    @cython.final
    cdef double undivided_gain(self, const Leaf* leaf) noexcept nogil:
        """The gain of the undivided leaf."""
        cdef Sums total = sums_of(leaf.total)
        if self.bounded:
            return gain_at(leaf.total, leaf.value, &self.rules)
        return undivided_gain_of(&total, &self.rules)

    @cython.final
    cdef double least(self, const Leaf* leaf) noexcept nogil:
        """The gain that children must exceed before any price is paid."""
        return least_gain(self.undivided_gain(leaf), &self.rules)

    @cython.final
    cdef Split undivided(self, const Leaf* leaf) noexcept nogil:
        """The absence of a split, with the gain that a split must exceed to be better than none."""
        cdef Split none
        memset(&none, 0, sizeof(Split))
        none.feature = -1
        none.gain = self.least(leaf)
        return none

    cdef void scan_sums(
        self, const Leaf* leaf, int64_t f, const int64_t* sums, const int64_t* counts, bint exact, Split* best
    ) noexcept nogil:
        """Try every split of a leaf by one feature whose bins hold one number each.

        If the numbers of rows in the bins are given, the search is exact.
        """
        cdef Bin[CELLS] wide
        cdef int32_t n_bins = self.n_bins(f), code
        cdef Rules rules = self.rules_of(leaf, exact)
        cdef Sums total = sums_of(leaf.total)
        if self.bounded or self.three_way or self.is_categorical[f] or may_beat(
            sums, n_bins, self.bits, &total, &rules, to_beat(best.gain, self.prices[f], self.least(leaf))
        ):
            widen_cells(n_bins + 1, sums, self.bits, self.same, wide)
            if counts != NULL:
                for code in range(n_bins + 1):
                    wide[code].count = <uint32_t>counts[code]
            self.scan(wide, f, leaf, NULL, exact or counts != NULL, best)

    @cython.final
    cdef void scan(
        self, const Bin* cells, int64_t f, const Leaf* leaf, const uint64_t* touched, bint exact, Split* best
    ) noexcept nogil:
        """Try every split of a leaf by one feature. ``touched``, if given, marks the bins that hold rows."""
        cdef Prefix prefix
        cdef Case case = self.case_of(leaf, f, exact)
        cdef int32_t n_bins = self.n_bins(f)
        cdef Bin missing = cells[n_bins]
        cdef double price = self.prices[f]
        cdef Split room
        cdef Split* found = before_price(best, price, self.least(leaf), &room)
        if self.is_categorical[f]:
            scan_categories(cells, n_bins, self.variance, &case, found)
        else:
            if touched != NULL:
                accumulate_touched(cells, touched, n_bins, &prefix)
            else:
                accumulate(cells, n_bins, &prefix)
            if self.three_way and missing.count:
                self.scan_three_ways(&prefix, missing, &case, exact, found)
            else:
                scan_values(&prefix, missing, &case, found)
                if not exact and found.feature == f and missing.count == 0:
                    found.missing_left = case.rules.first_side  # see Finder.n_left_of
        after_price(found, price, best)

    cdef void scan_long(
        self, Bin* cells, int64_t f, const Leaf* leaf, uint64_t* touched, bint exact, Split* best
    ) noexcept nogil:
        """The same if codes are long. The leaf may touch only a few bins: see touching.h.

        All that is set in ``cells`` and ``touched`` is set back to zero.
        """
        cdef Case case = self.case_of(leaf, f, exact)
        cdef int32_t n_bins = self.n_bins(f)
        cdef double price = self.prices[f]
        cdef Split room
        cdef Split* found = before_price(best, price, self.least(leaf), &room)
        if self.is_categorical[f]:
            scan_categories(cells, n_bins, self.variance, &case, found)
            memset(cells, 0, (n_bins + 1) * sizeof(Bin))
            memset(touched, 0, 65 * ((n_bins >> 12) + 1) * sizeof(uint64_t))
        else:
            self.scan_touched(cells, n_bins, &case, touched, exact, found)
        after_price(found, price, best)

    cdef void scan_touched(
        self, Bin* cells, int32_t n_bins, const Case* whole, uint64_t* touched, bint exact, Split* best
    ) noexcept nogil:
        """Try every cut of the bins that are touched, in ascending order, as many at a time as fit."""
        cdef int32_t n = 0, side
        cdef int64_t n_words = (n_bins >> 12) + 1, w, word, code
        cdef uint64_t* words = touched + 64 * n_words
        cdef uint64_t more, bits
        cdef Prefix prefix
        cdef Split[2] sides
        cdef Leaf valued
        cdef Case case = whole[0]
        cdef bint three_way
        cdef Bin missing, running
        missing = cells[n_bins]
        memset(cells + n_bins, 0, sizeof(Bin))
        sides[0] = sides[1] = best[0]
        three_way = self.three_way and missing.count
        if three_way:
            valued = self.valued(whole.leaf, missing)
            case = self.case_of(&valued, whole.feature, exact)
            sides[0] = self.undivided(&valued)
            memset(&missing, 0, sizeof(Bin))
        memset(&running, 0, sizeof(Bin))
        for w in range(n_words):
            more = words[w]
            words[w] = 0
            while more:
                word = 64 * w + lowest_bit(more)
                more &= more - 1
                bits = touched[word]
                touched[word] = 0
                while bits:
                    code = 64 * word + lowest_bit(bits)
                    bits &= bits - 1
                    n = append(&prefix, n, &running, cells + code, <uint32_t>code)
                    memset(cells + code, 0, sizeof(Bin))
                    if n == CELLS:
                        for side in range(first_side(missing, &case), stop_of_sides(missing, &case)):
                            scan_side(&prefix, 0, n - 1, side, missing, 1, &case, &sides[side])
                        keep_last(&prefix, n)
                        n = 1
        close(&prefix, n, running.count, n_bins)
        if missing.count and may_be_below(&case):
            scan_whether(&prefix, missing, -1, &case, best)
        for side in range(first_side(missing, &case), stop_of_sides(missing, &case)):
            scan_side(&prefix, 0, n_cuts(&prefix, side, missing), side, missing, 1, &case, &sides[side])
            if not three_way and sides[side].gain > best.gain:
                best[0] = sides[side]
        if three_way:
            self.join(&prefix, whole, &valued, &sides[0], best)
        elif not exact and best.feature == whole.feature and missing.count == 0:
            best.missing_left = case.rules.first_side  # see Finder.n_left_of

    cdef void scan_three_ways(
        self, const Prefix* prefix, Bin missing, const Case* case, bint exact, Split* best
    ) noexcept nogil:
        """Try to part the rows without a value from the others, and the others at their best cut."""
        cdef Leaf valued = self.valued(case.leaf, missing)
        cdef Case bounded = self.case_of(&valued, case.feature, exact)
        cdef Split cut = self.undivided(&valued)
        memset(&missing, 0, sizeof(Bin))
        scan_values(prefix, missing, &bounded, &cut)
        self.join(prefix, case, &valued, &cut, best)

    cdef Leaf valued(self, const Leaf* leaf, Bin missing) noexcept nogil:
        """The leaf as it would be without its rows that have no value."""
        cdef Leaf valued = leaf[0]
        valued.total = minus(leaf.total, missing)
        valued.value = best_value(
            valued.total, leaf.lower, leaf.upper, self.rules.l2, self.rules.gradient_unit,
            self.rules.hessian_unit,
        )
        return valued

    cdef void join(
        self, const Prefix* prefix, const Case* case, const Leaf* valued, const Split* cut, Split* best
    ) noexcept nogil:
        """Try to part the rows without a value from the others, whose best cut is given.

        If the tree may not get that much deeper, or no cut of the others gains anything, only the first of
        the two splits is tried.
        """
        cdef Split whether
        whether.gain = -INFINITY
        whether.feature = -1
        scan_whether(prefix, minus(case.leaf.total, valued.total), 0, case, &whether)
        if whether.feature < 0:
            return
        if cut.feature >= 0 and case.leaf.splits_below > 1:
            whether.second_gain = cut.gain - self.undivided_gain(valued)
            whether.gain += whether.second_gain
        if whether.gain > best.gain:
            best[0] = whether
