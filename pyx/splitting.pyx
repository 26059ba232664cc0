"""Histograms to the best split of each leaf.

    gain = G_left^2 / (H_left + l2) + G_right^2 / (H_right + l2) - G^2 / (H + l2)

computed once per candidate from exact integer sums. Candidates are the codes that hold rows, in
rising order; equal gains go to the lower feature, then to the lower code. Rows without a value are
tried on both sides where a leaf has some, and follow the larger child where it has none.
"""
from cython.parallel cimport prange, threadid
from libc.math cimport INFINITY
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset

from records cimport Bin, Leaf, Split, best_value

cdef extern from "bins.h" nogil:
    void bin_add(void* cell, const void* row)
    void prefetch_line(const void* address)
    int lowest_bit(uint64_t bits)

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
    void score_children(
        int32_t n, const double* gradients, const double* hessians, const double* counts,
        const Sums* extra, const Sums* total, const Rules* rule, double* scores,
    ) noexcept

cdef enum:
    CELLS = 256  # bins of one feature, at most
    GROUP = 128  # features whose bins are filled from the rows together, at most
    BLOCK = 16  # of them, those that are filled row by row: 64 KiB of cells
    CHUNK = 2048  # rows whose codes stay in the cache while the blocks go over them
    FEW_ROWS = 128  # up to here a leaf touches so few bins that they are worth remembering
    AHEAD = 16  # rows to fetch ahead

# A gain below this share of what the children score is rounding, not signal.
cdef double RELATIVE_NOISE = 2.0 ** -40

# Rows' worth of smoothing when categories are sorted by mean gradient.
cdef double CATEGORY_SMOOTHING = 10.0


# The bins of one feature that hold rows, as running sums from the left (or, for categories, in
# the order of their mean gradient).
cdef struct Prefix:
    int32_t n
    double gradient[CELLS]
    double hessian[CELLS]
    double count[CELLS]
    uint8_t code[CELLS]


cdef inline Sums sums_of(Bin part) noexcept nogil:
    cdef Sums sums
    sums.gradient = <double>part.gradient
    sums.hessian = part.hessian
    sums.count = part.count
    return sums


cdef inline Bin up_to(const Prefix* prefix, int32_t k) noexcept nogil:
    cdef Bin part
    part.gradient = <int64_t>prefix.gradient[k]
    part.hessian = <uint32_t>prefix.hessian[k]
    part.count = <uint32_t>prefix.count[k]
    return part


cdef inline Bin minus(Bin whole, Bin part) noexcept nogil:
    whole.gradient -= part.gradient
    whole.hessian -= part.hessian
    whole.count -= part.count
    return whole


cdef inline double score(Bin part, const Rules* rules) noexcept nogil:
    """G^2 / (H + l2): twice what the loss falls when the part takes its best value."""
    cdef double gradient = part.gradient * rules.gradient_unit
    cdef double hessian = part.hessian * rules.hessian_unit + rules.l2
    return gradient * (gradient / hessian) if hessian > 0 else 0.0


cdef inline double score_at(Bin part, double value, const Rules* rules) noexcept nogil:
    """-(2 G v + (H + l2) v^2), which is G^2 / (H + l2) at the best value."""
    return -value * (
        2.0 * part.gradient * rules.gradient_unit + (part.hessian * rules.hessian_unit + rules.l2) * value
    )


cdef inline bint is_large_enough(Bin part, const Rules* rules) noexcept nogil:
    return part.count >= rules.min_samples_leaf and part.hessian >= rules.min_hessian


cdef void accumulate(const Bin* cells, int32_t n_bins, Prefix* prefix) noexcept nogil:
    """Running sums over the bins that hold rows."""
    cdef int32_t code, n = 0
    cdef int64_t gradient = 0
    cdef uint32_t hessian = 0, count = 0
    for code in range(n_bins):
        gradient += cells[code].gradient
        hessian += cells[code].hessian
        count += cells[code].count
        prefix.gradient[n] = <double>gradient
        prefix.hessian[n] = hessian
        prefix.count[n] = count
        prefix.code[n] = <uint8_t>code
        n += cells[code].count > 0
    prefix.n = n


cdef void accumulate_touched(
    Bin* cells, const uint64_t* touched, int32_t n_bins, Prefix* prefix
) noexcept nogil:
    """The same, visiting only the bins whose bit is set."""
    cdef int32_t word, code, n = 0
    cdef int64_t gradient = 0
    cdef uint32_t hessian = 0, count = 0
    cdef uint64_t bits
    for word in range(4):
        bits = touched[word]
        while bits:
            code = word * 64 + lowest_bit(bits)
            bits &= bits - 1
            if code >= n_bins:
                continue
            gradient += cells[code].gradient
            hessian += cells[code].hessian
            count += cells[code].count
            prefix.gradient[n] = <double>gradient
            prefix.hessian[n] = hessian
            prefix.count[n] = count
            prefix.code[n] = <uint8_t>code
            n += 1
    prefix.n = n


cdef int32_t best_candidate(
    const Prefix* prefix,
    int32_t n_candidates,
    Bin extra,              # what goes left in any case: the rows without a value, or nothing
    const Leaf* leaf,
    int8_t monotone,
    bint bounded,
    const Rules* rules,
    double* best_gain,      # IN and OUT
) noexcept nogil:
    """The first candidate whose children score best and better than ``best_gain``, or -1."""
    cdef double[CELLS] gains
    cdef int32_t k, best = -1
    cdef double left_value, right_value
    cdef Bin left, right
    cdef Sums more = sums_of(extra), total = sums_of(leaf.total)
    if not bounded:
        score_children(
            n_candidates, prefix.gradient, prefix.hessian, prefix.count, &more, &total, rules, gains
        )
    else:
        for k in range(n_candidates):
            left = up_to(prefix, k)
            bin_add(&left, &extra)
            right = minus(leaf.total, left)
            gains[k] = -INFINITY
            if is_large_enough(left, rules) and is_large_enough(right, rules):
                left_value = best_value(
                    left, leaf.lower, leaf.upper, rules.l2, rules.gradient_unit, rules.hessian_unit
                )
                right_value = best_value(
                    right, leaf.lower, leaf.upper, rules.l2, rules.gradient_unit, rules.hessian_unit
                )
                if (right_value - left_value) * monotone >= 0:
                    gains[k] = score_at(left, left_value, rules) + score_at(right, right_value, rules)
    for k in range(n_candidates):
        if gains[k] > best_gain[0]:
            best_gain[0] = gains[k]
            best = k
    return best


cdef void scan_values(
    const Prefix* prefix,
    Bin missing,
    int32_t n_bins,
    int32_t feature,
    const Leaf* leaf,
    int8_t monotone,
    bint bounded,
    const Rules* rules,
    Split* best,            # IN and OUT; best.gain is what the children score
) noexcept nogil:
    """Try every cut of one feature, with the rows without a value on the right, then on the left."""
    cdef Bin nothing, left
    cdef int32_t k, side, n_candidates
    memset(&nothing, 0, sizeof(Bin))
    for side in range(2 if missing.count else 1):
        # with rows without a value on the right, "has a value" is a split of its own
        n_candidates = prefix.n if missing.count and side == 0 else prefix.n - 1
        k = best_candidate(
            prefix, n_candidates, missing if side else nothing, leaf, monotone, bounded, rules, &best.gain
        )
        if k < 0:
            continue
        left = up_to(prefix, k)
        if side:
            bin_add(&left, &missing)
        best.feature = feature
        best.code = prefix.code[k] if k < prefix.n - 1 else <uint8_t>(n_bins - 1)
        best.categorical = 0
        memset(best.categories, 0, sizeof(best.categories))
        best.left = left
        best.missing_left = side if missing.count else 2 * <int64_t>left.count > leaf.total.count


cdef void scan_categories(
    const Bin* cells,
    int32_t n_bins,
    int32_t feature,
    const Leaf* leaf,
    bint bounded,
    const Rules* rules,
    Split* best,
) noexcept nogil:
    """Sort the categories by mean gradient and cut that order (Fisher, 1958); missing is one more of them."""
    cdef Prefix prefix
    cdef double[CELLS] means
    cdef uint8_t[CELLS] sorted_codes
    cdef double mean, smoothing
    cdef int32_t code, k, n = 0
    cdef Bin nothing, left
    cdef bint missing_here = cells[n_bins].count > 0
    if leaf.total.count == 0:
        return
    smoothing = CATEGORY_SMOOTHING * leaf.total.hessian / leaf.total.count
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
    k = best_candidate(&prefix, n - 1, nothing, leaf, 0, bounded, rules, &best.gain)
    if k < 0:
        return
    best.feature = feature
    best.code = <uint8_t>k
    best.categorical = 1
    best.left = up_to(&prefix, k)
    best.missing_left = 2 * <int64_t>best.left.count > leaf.total.count and not missing_here
    memset(best.categories, 0, sizeof(best.categories))
    for n in range(k + 1):
        code = sorted_codes[n]
        if code == n_bins:
            best.missing_left = 1
        else:
            best.categories[code >> 5] |= (<uint32_t>1) << (code & 31)


cdef void begin(const Leaf* leaf, bint bounded, const Rules* rules, Split* best) noexcept nogil:
    """No split yet: one must beat the undivided leaf."""
    memset(best, 0, sizeof(Split))
    best.feature = -1
    best.gain = score_at(leaf.total, leaf.value, rules) if bounded else score(leaf.total, rules)
    best.gain += RELATIVE_NOISE * best.gain + rules.min_gain


cdef void conclude(
    Leaf* leaf, const Split* found, int64_t n_found, bint bounded, const Rules* rules
) noexcept nogil:
    """The best of what the tasks found, its gain measured against the undivided leaf."""
    cdef int64_t i
    begin(leaf, bounded, rules, &leaf.split)
    for i in range(n_found):
        if found[i].feature >= 0 and found[i].gain > leaf.split.gain:
            leaf.split = found[i]
    if leaf.split.feature < 0:
        leaf.split.gain = 0.0
    else:
        leaf.split.gain -= score_at(leaf.total, leaf.value, rules) if bounded else score(leaf.total, rules)


cdef Rules rules_of(
    double l2, double min_gain, double gradient_unit, double hessian_unit,
    uint32_t min_samples_leaf, uint32_t min_hessian,
) noexcept:
    cdef Rules rules
    rules.l2 = l2
    rules.min_gain = min_gain
    rules.gradient_unit = gradient_unit
    rules.hessian_unit = hessian_unit
    rules.min_samples_leaf = min_samples_leaf
    rules.min_hessian = min_hessian
    return rules


def find(
    Leaf[::1] leaves,                       # IN and OUT (split)
    const int32_t[::1] ids,                 # IN   the leaves to search
    const Bin[:, ::1] histograms,           # IN   the lines leaves[id].histogram
    const int64_t[::1] offsets,             # IN
    const uint8_t[::1] is_categorical,      # IN
    const int8_t[::1] monotone,             # IN   -1, 0, 1 per feature, or None
    Split[:, ::1] found,                    # scratch, one line per leaf, one column per thread
    double l2, double min_gain, double gradient_unit, double hessian_unit,
    uint32_t min_samples_leaf, uint32_t min_hessian,
    int n_threads,
):
    """The best split of each leaf with a histogram. A task is one leaf and one share of the features."""
    cdef int64_t n_features = offsets.shape[0] - 1, n_shares = found.shape[1]
    cdef int64_t n_tasks = ids.shape[0] * n_shares
    cdef int64_t task, i, share
    cdef Rules rules = rules_of(l2, min_gain, gradient_unit, hessian_unit, min_samples_leaf, min_hessian)
    cdef bint bounded = monotone is not None
    cdef const int8_t* signs = &monotone[0] if bounded else NULL
    for task in prange(
        n_tasks, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
    ):
        i = task // n_shares
        share = task % n_shares
        scan_share(
            &leaves[ids[i]], &histograms[leaves[ids[i]].histogram, 0], &offsets[0], &is_categorical[0], signs,
            n_features * share // n_shares, n_features * (share + 1) // n_shares, &rules, &found[i, share],
        )
    for i in range(ids.shape[0]):
        conclude(&leaves[ids[i]], &found[i, 0], n_shares, bounded, &rules)


cdef void scan_share(
    const Leaf* leaf, const Bin* histogram, const int64_t* offsets, const uint8_t* is_categorical,
    const int8_t* signs, int64_t first, int64_t last, const Rules* rules, Split* best,
) noexcept nogil:
    cdef Prefix prefix
    cdef int64_t f
    cdef int32_t n_bins
    cdef const Bin* cells
    begin(leaf, signs != NULL, rules, best)
    for f in range(first, last):
        cells = histogram + offsets[f]
        n_bins = <int32_t>(offsets[f + 1] - offsets[f]) - 1
        if is_categorical[f]:
            scan_categories(cells, n_bins, <int32_t>f, leaf, signs != NULL, rules, best)
        else:
            accumulate(cells, n_bins, &prefix)
            scan_values(
                &prefix, cells[n_bins], n_bins, <int32_t>f, leaf,
                signs[f] if signs != NULL else 0, signs != NULL, rules, best,
            )


def find_directly(
    Leaf[::1] leaves,                       # IN and OUT (split)
    const int32_t[::1] ids,                 # IN   the leaves to search
    const int32_t[:, ::1] features,         # IN   rising; one line per leaf, or one line for all; ends at -1
    const uint8_t[:, ::1] codes,            # IN
    const uint32_t[::1] order,              # IN
    const Bin[::1] rows,                    # IN
    const int64_t[::1] offsets,             # IN
    const uint8_t[::1] is_categorical,      # IN
    const int8_t[::1] monotone,             # IN   or None
    Bin[:, ::1] cells,                      # scratch, zero on entry and exit, a line per thread
    Split[:, ::1] found,                    # scratch, one line per leaf, one column per share of its features
    double l2, double min_gain, double gradient_unit, double hessian_unit,
    uint32_t min_samples_leaf, uint32_t min_hessian,
    int n_threads,
):
    """The best split of each leaf among its own features, from its rows: small leaves, sampled features.

    A task is one leaf and one share of its features.
    """
    cdef int64_t width = features.shape[1], n_shares = found.shape[1], stride = 0
    cdef int64_t n_tasks = ids.shape[0] * n_shares, task, i, share, first, last
    cdef Rules rules = rules_of(l2, min_gain, gradient_unit, hessian_unit, min_samples_leaf, min_hessian)
    cdef bint bounded = monotone is not None
    cdef const int8_t* signs = &monotone[0] if bounded else NULL
    if n_tasks == 0:
        return
    if features.shape[0] > 1:
        stride = width
    for task in prange(
        n_tasks, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
    ):
        i = task // n_shares
        share = task % n_shares
        first = width * share // n_shares
        last = width * (share + 1) // n_shares
        begin(&leaves[ids[i]], signs != NULL, &rules, &found[i, share])
        while first < last:
            scan_rows(
                &leaves[ids[i]], &features[0, 0] + i * stride + first, min(GROUP, last - first),
                &codes[0, 0], codes.shape[1], &order[0], &rows[0], &offsets[0], &is_categorical[0], signs,
                &rules, &cells[threadid(), 0], &found[i, share],
            )
            first = first + GROUP
    for i in range(ids.shape[0]):
        conclude(&leaves[ids[i]], &found[i, 0], n_shares, bounded, &rules)


cdef void scan_rows(
    const Leaf* leaf, const int32_t* features, int64_t width, const uint8_t* codes, int64_t n_features,
    const uint32_t* order, const Bin* rows, const int64_t* offsets, const uint8_t* is_categorical,
    const int8_t* signs, const Rules* rules, Bin* cells, Split* best,
) noexcept nogil:
    """Fill the bins of a group of features from the leaf's rows, scan them, and leave them zero again."""
    cdef Prefix prefix
    cdef uint64_t[4 * GROUP] touched
    cdef int32_t n_bins
    cdef int64_t i, j, f
    cdef uint8_t code
    cdef const uint8_t* line
    cdef bint few = leaf.stop - leaf.start <= FEW_ROWS
    cdef uint64_t bits
    cdef Bin* own
    while width > 0 and features[width - 1] < 0:
        width -= 1
    if width == 0:
        return
    if few:
        memset(touched, 0, 4 * width * sizeof(uint64_t))
        for i in range(leaf.start, leaf.stop):
            line = codes + <int64_t>order[i] * n_features
            for j in range(width):
                code = line[features[j]]
                touched[4 * j + (code >> 6)] |= (<uint64_t>1) << (code & 63)
                bin_add(cells + j * CELLS + code, rows + order[i])
    else:
        fill(features, width, codes, n_features, order + leaf.start, leaf.stop - leaf.start, rows, cells)
    for j in range(width):
        f = features[j]
        n_bins = <int32_t>(offsets[f + 1] - offsets[f]) - 1
        own = cells + j * CELLS
        if is_categorical[f]:
            scan_categories(own, n_bins, <int32_t>f, leaf, signs != NULL, rules, best)
        else:
            if few:
                accumulate_touched(own, &touched[4 * j], n_bins, &prefix)
            else:
                accumulate(own, n_bins, &prefix)
            scan_values(
                &prefix, own[n_bins], n_bins, <int32_t>f, leaf,
                signs[f] if signs != NULL else 0, signs != NULL, rules, best,
            )
        if few:
            for i in range(4):
                bits = touched[4 * j + i]
                while bits:
                    memset(own + i * 64 + lowest_bit(bits), 0, sizeof(Bin))
                    bits &= bits - 1
        else:
            memset(own, 0, (n_bins + 1) * sizeof(Bin))


cdef void fill(
    const int32_t* features, int64_t width, const uint8_t* codes, int64_t n_features,
    const uint32_t* order, int64_t n_rows, const Bin* rows, Bin* cells,
) noexcept nogil:
    """Add rows to the bins of a group of features, chunk by chunk of rows, block by block of features."""
    cdef int64_t i, j, chunk = 0, end, block
    cdef const uint8_t* line
    cdef const Bin* row
    while chunk < n_rows:
        end = min(n_rows, chunk + CHUNK)
        block = 0
        while block < width:
            for i in range(chunk, end):
                if block == 0 and i + AHEAD < n_rows:
                    line = codes + <int64_t>order[i + AHEAD] * n_features
                    j = 0
                    while j < n_features:
                        prefetch_line(line + j)
                        j = j + 64
                    prefetch_line(rows + order[i + AHEAD])
                line = codes + <int64_t>order[i] * n_features
                row = rows + order[i]
                if width - block >= BLOCK:
                    for j in range(BLOCK):
                        bin_add(cells + (block + j) * CELLS + line[features[block + j]], row)
                else:
                    for j in range(block, width):
                        bin_add(cells + j * CELLS + line[features[j]], row)
            block = block + BLOCK
        chunk = end
