"""Find the best split of a leaf by one feature, from the bins of that feature.

    gain = G_left^2 / (H_left + l2) + G_right^2 / (H_right + l2) - G^2 / (H + l2)

is computed once per candidate from exact integer sums. Candidates are the codes whose sums are not zero, in
ascending order; of equal gains, the lower code wins. Unless rows without a value always go to a given side,
they are tried on both sides if a leaf has some, and will follow the larger child if it has none. Categories
are sorted by their mean gradient and cut in that order; a missing value is one more category. The more
categories are sorted, the more a cut gains by chance, so l2 grows with their number.
"""
from libc.math cimport INFINITY
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from ranktrees._core.growing.gains cimport Rules, Sums, score_children, sums_of
from ranktrees._core.support.records cimport Bin, Leaf, Split, best_value

cdef extern from "support/bins.h" nogil:
    void bin_add(void* cell, const void* row)
    int lowest_bit(uint64_t bits)

cdef enum:
    CELLS = 256  # the bins of one feature if codes are bytes, otherwise candidates that are scored together
    CATEGORY_SMOOTHING = 10  # rows whose hessian is added to each category's when sorting by mean gradient
    CATEGORY_L2 = 5  # rows whose hessian is added to both children for each category but one


# One feature of a leaf, and what its splits must satisfy.
cdef struct Case:
    const Leaf* leaf
    Rules rules
    int32_t feature
    int8_t sign            # 1: values must rise with the feature, -1: fall, 0: neither
    bint bounded           # whether the values of the children are held within the leaf's bounds


# Running sums over the bins of one feature whose sums are not zero, or over some of these, from the left (for
# categories, in the order of their mean gradient).
cdef struct Prefix:
    int32_t n
    double gradient[CELLS]
    double hessian[CELLS]
    double count[CELLS]
    uint32_t code[CELLS]


cdef inline Bin minus(Bin whole, Bin part) noexcept nogil:
    whole.gradient -= part.gradient
    whole.hessian -= part.hessian
    whole.count -= part.count
    return whole


cdef inline double score_at(Bin part, double value, const Rules* rules) noexcept nogil:
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
    int8_t order,           # see Split
    const Case* case,
    double* best_gain,      # IN and OUT
) noexcept nogil:
    """The first candidate whose children have the best score, if that is above ``best_gain``; else -1."""
    cdef double[CELLS] gains
    cdef int32_t k, best = -1
    cdef double left_value, right_value
    cdef Bin left, right
    cdef Sums more = sums_of(extra), total = sums_of(case.leaf.total)
    if not case.bounded:
        score_children(
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
                if (right_value - left_value) * case.sign * order >= 0:
                    gains[k] = score_at(left, left_value, &case.rules) + score_at(
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
    int8_t order,           # see Split
    const Case* case,
    Split* best,            # IN and OUT; best.gain is the score of the children
) noexcept nogil:
    """Try some cuts of a prefix, with the rows without a value on one side."""
    cdef Bin nothing, left
    cdef int32_t k
    memset(&nothing, 0, sizeof(Bin))
    k = best_candidate(prefix, first, stop, missing if side else nothing, order, case, &best.gain)
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
    best.direction = order
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
    const Prefix* prefix, Bin missing, int8_t order, const Case* case, Split* best
) noexcept nogil:
    """Try to part the rows without a value from all others."""
    if prefix.n:
        scan_side(prefix, prefix.n - 1, prefix.n, 0, missing, order, case, best)


cdef inline void scan_values(const Prefix* prefix, Bin missing, const Case* case, Split* best) noexcept nogil:
    """Try every cut of one feature, first with the rows without a value on the right, then on the left."""
    cdef int32_t side
    if missing.count and may_be_below(case):
        scan_whether(prefix, missing, -1, case, best)
    for side in range(first_side(missing, case), stop_of_sides(missing, case)):
        scan_side(prefix, 0, n_cuts(prefix, side, missing), side, missing, 1, case, best)


cdef inline void scan_categories(
    const Bin* cells, int32_t n_bins, const Case* case, Split* best
) noexcept nogil:
    """Sort the categories, of which missing is one, by mean gradient, and try every cut (Fisher, 1958)."""
    cdef Case own = case[0]
    cdef Prefix prefix
    cdef double[CELLS] means
    cdef uint8_t[CELLS] sorted_codes
    cdef double mean, smoothing, row
    cdef int32_t code, k, n = 0
    cdef Bin nothing, left, total = case.leaf.total
    cdef bint missing_here = cells[n_bins].count > 0
    if total.count == 0:
        return
    row = <double>total.hessian / total.count
    smoothing = CATEGORY_SMOOTHING * row
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
    own.rules.l2 += CATEGORY_L2 * (n - 1) * row * case.rules.hessian_unit
    k = best_candidate(&prefix, 0, n - 1, nothing, 0, &own, &best.gain)
    if k < 0:
        return
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
