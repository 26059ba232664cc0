"""Loops over the values of columns: gather and sort them, choose their cuts, encode them.

A column is described by its values that are neither missing nor zero, and by the mass of its zeros: sparse
rows never say more, and dense ones of web search seldom do. Masses are integers, so sums do not depend on the
order of rows. A zero weight takes a row out.
"""

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    /* Unsigned keys in the order of the floating point values (no NaN, no -0.0). */
    static inline uint32_t key_of_float(float x) {
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        return bits ^ ((uint32_t)-(int32_t)(bits >> 31) | UINT32_C(0x80000000));
    }
    static inline float float_of_key(uint32_t key) {
        uint32_t bits = key ^ (((key >> 31) - 1) | UINT32_C(0x80000000));
        float x;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    static inline uint64_t key_of_double(double x) {
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        return bits ^ ((uint64_t)-(int64_t)(bits >> 63) | UINT64_C(0x8000000000000000));
    }
    static inline double double_of_key(uint64_t key) {
        uint64_t bits = key ^ (((key >> 63) - 1) | UINT64_C(0x8000000000000000));
        double x;
        memcpy(&x, &bits, sizeof x);
        return x;
    }
    """
    uint32_t key_of_float(float x) nogil
    float float_of_key(uint32_t key) nogil
    uint64_t key_of_double(double x) nogil
    double double_of_key(uint64_t key) nogil

ctypedef fused key_t:
    uint32_t
    uint64_t

ctypedef fused index_t:
    int32_t
    int64_t

cdef enum:
    MAX_BINS = 255
    MAX_PARTS = 2 * MAX_BINS + 1
    DIGIT_BITS = 11
    N_DIGIT_VALUES = 1 << DIGIT_BITS
    MAX_DIGITS = 6
    SHORT = 48           # so few values are sorted by insertion
    GROUP = 16           # columns gathered side by side: one cache line of float32
    ROW_BLOCK = 128      # rows encoded feature by feature while they are in the first cache


# -------------------------------------------------------------------------------------------------- gathering

def gather_dense(
    const floating[:, :] X,             # IN
    const Py_ssize_t[::1] order,        # IN, or None: row i is X[order[i]]
    const uint32_t[::1] weights,        # IN, or None: all one
    Py_ssize_t first,
    const int64_t[::1] starts,          # IN  where the values of column first + j begin
    floating[::1] values,               # OUT values that are neither missing nor zero
    uint32_t[::1] value_weights,        # OUT their weights, or None
    int64_t[::1] sizes,                 # OUT how many
    int64_t[::1] zero_mass,             # OUT mass of the zeros
    int n_threads,
):
    """Gather the columns first, first + 1, ... (one per size) of a dense X of any strides."""
    cdef Py_ssize_t n_columns = sizes.shape[0], n_rows = X.shape[0] if order is None else order.shape[0]
    cdef const Py_ssize_t* rows = NULL
    cdef const uint32_t* row_weights = NULL
    cdef uint32_t* into_weights = NULL
    cdef Py_ssize_t group = 1, task
    if n_rows == 0 or n_columns == 0:
        sizes[:] = 0
        zero_mass[:] = 0
        return
    if order is not None:
        rows = &order[0]
    if weights is not None:
        row_weights = &weights[0]
        into_weights = &value_weights[0]
    if abs(X.strides[1]) < abs(X.strides[0]):
        group = min(GROUP, (n_columns + n_threads - 1) // n_threads)
    for task in prange(
        (n_columns + group - 1) // group, nogil=True, schedule="dynamic", num_threads=n_threads,
        use_threads_if=n_threads > 1,
    ):
        gather_group(
            X, rows, n_rows, row_weights, first, task * group, min((task + 1) * group, n_columns),
            &starts[0], &values[0], into_weights, &sizes[0], &zero_mass[0],
        )


cdef void gather_group(
    const floating[:, :] X, const Py_ssize_t* rows, Py_ssize_t n_rows, const uint32_t* weights,
    Py_ssize_t first, Py_ssize_t begin, Py_ssize_t end, const int64_t* starts,
    floating* values, uint32_t* value_weights, int64_t* sizes, int64_t* zero_mass,
) noexcept nogil:
    cdef int64_t at[GROUP]
    cdef int64_t zeros[GROUP]
    cdef Py_ssize_t i, j, row, width = end - begin
    cdef uint32_t weight = 1
    cdef floating x
    for j in range(width):
        at[j] = starts[begin + j]
        zeros[j] = 0
    for i in range(n_rows):
        row = i if rows == NULL else rows[i]
        if weights != NULL:
            weight = weights[i]
            if weight == 0:
                continue
            for j in range(width):
                value_weights[at[j]] = weight
                x = X[row, first + begin + j]
                values[at[j]] = x
                at[j] += (x < 0) | (x > 0)
                zeros[j] += weight * <int64_t> (x == 0)
        else:
            for j in range(width):
                x = X[row, first + begin + j]
                values[at[j]] = x
                at[j] += (x < 0) | (x > 0)
                zeros[j] += x == 0
    for j in range(width):
        sizes[begin + j] = at[j] - starts[begin + j]
        zero_mass[begin + j] = zeros[j]


def count_sparse(
    const index_t[::1] indices,         # IN
    const int64_t[::1] begins,          # IN  row i has the entries begins[i]:ends[i]
    const int64_t[::1] ends,            # IN
    int64_t[::1] counts,                # OUT entries per column
):
    """Count the entries of every column; an index that is no column counts nowhere and gives False."""
    cdef Py_ssize_t i, at
    cdef index_t column
    cdef bint sound = True
    with nogil:
        for i in range(begins.shape[0]):
            for at in range(begins[i], ends[i]):
                column = indices[at]
                if 0 <= column < counts.shape[0]:
                    counts[column] += 1
                else:
                    sound = False
    return sound


def gather_sparse(
    const floating[::1] data,           # IN
    const index_t[::1] indices,         # IN  ascending in a row
    int64_t[::1] cursors,               # IN/OUT the first entry of row i with a column >= first
    const int64_t[::1] ends,            # IN  where row i ends
    const uint32_t[::1] weights,        # IN, or None: all one
    Py_ssize_t first,
    const int64_t[::1] starts,          # IN  where the values of column first + j begin
    floating[::1] values,               # OUT values that are neither missing nor zero
    uint32_t[::1] value_weights,        # OUT their weights, or None
    int64_t[::1] sizes,                 # OUT how many
    int64_t[::1] zero_mass,             # IN  mass of all rows; OUT mass of the zeros, absent ones included
):
    """Gather the columns first, first + 1, ... (one per size) of sparse rows; move the cursors past them."""
    cdef Py_ssize_t i, at, j, to, n_columns = sizes.shape[0]
    cdef bint weighted = weights is not None
    cdef uint32_t weight = 1
    cdef floating x
    with nogil:
        for j in range(n_columns):
            sizes[j] = 0
        for i in range(cursors.shape[0]):
            if weighted:
                weight = weights[i]
            at = cursors[i]
            while at < ends[i] and indices[at] < first + n_columns:
                x = data[at]
                if weight != 0 and x != 0:
                    j = indices[at] - first
                    zero_mass[j] -= weight
                    if x == x:
                        to = starts[j] + sizes[j]
                        values[to] = x
                        if weighted:
                            value_weights[to] = weight
                        sizes[j] += 1
                at = at + 1
            cursors[i] = at


# ---------------------------------------------------------------------------------------------------- cutting

def find_edges(
    floating[::1] values,               # IN, destroyed: one free place after the values of every column
    uint32_t[::1] value_weights,        # IN, destroyed, or None: all one
    const int64_t[::1] starts,          # IN  where the values of a column begin
    const int64_t[::1] sizes,           # IN  how many
    const int64_t[::1] zero_mass,       # IN  mass of the zeros of a column
    const uint8_t[::1] is_categorical,  # IN
    int max_bins,
    int64_t[:, ::1] spare,              # scratch [n_threads, longest column + 1]
    uint32_t[:, ::1] spare_weights,     # scratch, the same, or None
    double[:, ::1] edges,               # OUT [n_columns, 255] cuts, or categories
    int64_t[::1] n_edges,               # OUT how many; for categories, above 255 too
    int n_threads,
):
    """Sort the values of each column and choose its cuts, or list its categories."""
    cdef Py_ssize_t j
    cdef bint weighted = value_weights is not None
    for j in prange(
        sizes.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads, use_threads_if=n_threads > 1,
    ):
        n_edges[j] = find_column_edges(
            &values[starts[j]],
            &value_weights[starts[j]] if weighted else NULL,
            sizes[j], zero_mass[j], is_categorical[j], max_bins,
            &spare[threadid(), 0],
            &spare_weights[threadid(), 0] if weighted else NULL,
            &edges[j, 0],
        )


cdef Py_ssize_t find_column_edges(
    floating* values, uint32_t* weights, Py_ssize_t n, int64_t zero_mass, bint is_categorical, int max_bins,
    int64_t* spare, uint32_t* spare_weights, double* edges,
) noexcept nogil:
    cdef Py_ssize_t lasts[MAX_BINS]
    cdef Py_ssize_t i, n_distinct = 0
    cdef int64_t* masses = spare
    if zero_mass > 0:
        values[n] = 0
        if weights != NULL:
            weights[n] = 0
        n += 1
    sort_values(values, weights, n, spare, spare_weights)

    for i in range(n):
        if n_distinct == 0 or values[i] != values[n_distinct - 1]:
            values[n_distinct] = values[i]
            masses[n_distinct] = zero_mass if values[i] == 0 else 0
            n_distinct += 1
        if values[i] != 0:
            masses[n_distinct - 1] += 1 if weights == NULL else weights[i]

    if is_categorical:
        for i in range(min(n_distinct, MAX_BINS)):
            edges[i] = values[i]
        return n_distinct
    if n_distinct <= max_bins:
        for i in range(n_distinct - 1):
            edges[i] = cut_between(values[i], values[i + 1])
        return max(n_distinct - 1, 0)
    share_bins(masses, n_distinct, max_bins, lasts)
    for i in range(max_bins - 1):
        edges[i] = cut_between(values[lasts[i]], values[lasts[i] + 1])
    return max_bins - 1


cdef inline double cut_between(double a, double b) noexcept nogil:
    cdef double middle = a / 2 + b / 2
    return middle if a <= middle < b else a


cdef void share_bins(const int64_t* masses, Py_ssize_t n, int max_bins, Py_ssize_t* lasts) noexcept nogil:
    """Share out exactly max_bins bins over n > max_bins values; lasts[b] is the last value of bin b.

    Products stay below 2^63 as long as the total mass stays below 2^53.
    """
    cdef Py_ssize_t heavy[MAX_BINS]
    cdef Py_ssize_t ends[MAX_PARTS]
    cdef int64_t part_masses[MAX_PARTS]
    cdef int64_t part_bins[MAX_BINS]
    cdef int64_t total = 0, rest, heavy_mass, filled, left
    cdef Py_ssize_t i, start, n_heavy = 0, n_heavier, n_parts = 0, n_left, p, best, b = 0
    for i in range(n):
        total += masses[i]

    # A value is heavy when it weighs at least a fair share of what the heavier ones leave.
    rest = total
    while True:
        heavy_mass = 0
        n_heavier = 0
        for i in range(n):
            if masses[i] * (max_bins - n_heavy) >= rest:
                heavy[n_heavier] = i
                n_heavier += 1
                heavy_mass += masses[i]
        if n_heavier == n_heavy:
            break
        n_heavy = n_heavier
        rest = total - heavy_mass

    # Each heavy value is a part, and so is each run of light values between them.
    start = 0
    for i in range(n_heavy + 1):
        p = heavy[i] if i < n_heavy else n
        if p > start:
            ends[n_parts] = p
            n_parts += 1
        if i < n_heavy:
            ends[n_parts] = p + 1
            n_parts += 1
        start = p + 1
    start = 0
    for p in range(n_parts):
        part_masses[p] = 0
        for i in range(start, ends[p]):
            part_masses[p] += masses[i]
        start = ends[p]

    # Of more parts than bins, the two neighbours that are the lightest together become one.
    while n_parts > max_bins:
        best = 0
        for p in range(1, n_parts - 1):
            if part_masses[p] + part_masses[p + 1] < part_masses[best] + part_masses[best + 1]:
                best = p
        part_masses[best + 1] += part_masses[best]
        n_parts -= 1
        for p in range(best, n_parts):
            part_masses[p] = part_masses[p + 1]
            ends[p] = ends[p + 1]

    # One bin at a time to the part whose bins are the fullest and that still has a value for it.
    for p in range(n_parts):
        part_bins[p] = 1
    n_left = max_bins - n_parts
    while n_left > 0:
        best = -1
        for p in range(n_parts):
            if part_bins[p] < ends[p] - (ends[p - 1] if p > 0 else 0) and (
                best < 0 or part_masses[p] * part_bins[best] > part_masses[best] * part_bins[p]
            ):
                best = p
        part_bins[best] += 1
        n_left -= 1

    # In a part, a bin is closed where its mass comes nearest to a fair share of what is left.
    start = 0
    for p in range(n_parts):
        rest = part_masses[p]
        left = part_bins[p]
        filled = 0
        for i in range(start, ends[p]):
            if filled > 0 and left > 1 and (
                (2 * filled + masses[i]) * left >= 2 * rest or ends[p] - i < left
            ):
                lasts[b] = i - 1
                b += 1
                rest -= filled
                left -= 1
                filled = 0
            filled += masses[i]
        lasts[b] = ends[p] - 1
        b += 1
        start = ends[p]


# ---------------------------------------------------------------------------------------------------- sorting

cdef void sort_values(
    floating* values, uint32_t* weights, Py_ssize_t n, int64_t* spare, uint32_t* spare_weights,
) noexcept nogil:
    """Sort values (no NaN, no -0.0) ascending, weights along with them."""
    cdef Py_ssize_t i, j
    cdef floating x
    cdef uint32_t weight = 0
    if n <= SHORT:
        for i in range(1, n):
            x = values[i]
            if weights != NULL:
                weight = weights[i]
            j = i
            while j > 0 and values[j - 1] > x:
                values[j] = values[j - 1]
                if weights != NULL:
                    weights[j] = weights[j - 1]
                j -= 1
            values[j] = x
            if weights != NULL:
                weights[j] = weight
        return
    if floating is float:
        for i in range(n):
            (<uint32_t*> values)[i] = key_of_float(values[i])
        sort_keys[uint32_t](<uint32_t*> values, weights, n, <uint32_t*> spare, spare_weights)
        for i in range(n):
            values[i] = float_of_key((<uint32_t*> values)[i])
    else:
        for i in range(n):
            (<uint64_t*> values)[i] = key_of_double(values[i])
        sort_keys[uint64_t](<uint64_t*> values, weights, n, <uint64_t*> spare, spare_weights)
        for i in range(n):
            values[i] = double_of_key((<uint64_t*> values)[i])


cdef void sort_keys(
    key_t* keys, uint32_t* weights, Py_ssize_t n, key_t* spare, uint32_t* spare_weights,
) noexcept nogil:
    """Radix sort by ascending digits of 11 bits; digits that are all the same cost nothing."""
    cdef Py_ssize_t places[MAX_DIGITS][N_DIGIT_VALUES]
    cdef int n_digits = (8 * <int> sizeof(key_t) + DIGIT_BITS - 1) // DIGIT_BITS, d, shift
    cdef Py_ssize_t i, to, size
    cdef key_t key
    cdef key_t* home = keys
    cdef key_t* swap_keys
    cdef uint32_t* home_weights = weights
    cdef uint32_t* swap_weights
    memset(places, 0, n_digits * sizeof(places[0]))
    for i in range(n):
        key = keys[i]
        for d in range(n_digits):
            places[d][(key >> (d * DIGIT_BITS)) & (N_DIGIT_VALUES - 1)] += 1
    for d in range(n_digits):
        shift = d * DIGIT_BITS
        if places[d][(keys[0] >> shift) & (N_DIGIT_VALUES - 1)] == n:
            continue
        to = 0
        for i in range(N_DIGIT_VALUES):
            size = places[d][i]
            places[d][i] = to
            to += size
        for i in range(n):
            key = keys[i]
            to = places[d][(key >> shift) & (N_DIGIT_VALUES - 1)]
            places[d][(key >> shift) & (N_DIGIT_VALUES - 1)] = to + 1
            spare[to] = key
            if weights != NULL:
                spare_weights[to] = weights[i]
        swap_keys, swap_weights = keys, weights
        keys, weights = spare, spare_weights
        spare, spare_weights = swap_keys, swap_weights
    if keys != home:
        memcpy(home, keys, n * sizeof(key_t))
        if home_weights != NULL:
            memcpy(home_weights, weights, n * sizeof(uint32_t))


# --------------------------------------------------------------------------------------------------- encoding

cdef inline void count_below(
    const floating* edges, Py_ssize_t n_edges, const floating* values, Py_ssize_t n, uint32_t* counts,
) noexcept nogil:
    """counts[i]: how many of the ascending edges are < values[i].

    A binary search of all values in step, so that no step waits for the one before and none is a branch.
    """
    cdef Py_ssize_t i
    cdef const floating* probes
    cdef uint32_t half
    for i in range(n):
        counts[i] = 0
    if n_edges == 0:
        return
    while n_edges > 1:
        half = <uint32_t> (n_edges >> 1)
        probes = edges + half - 1
        for i in range(n):
            counts[i] += half * <uint32_t> (probes[counts[i]] < values[i])
        n_edges -= half
    for i in range(n):
        counts[i] += edges[counts[i]] < values[i]


cdef inline uint8_t code_of(
    floating x, uint32_t n_below, const double* categories, Py_ssize_t n_categories, uint8_t missing,
) noexcept nogil:
    """The code of x above n_below edges; categories are NULL unless x has to be one of them."""
    if x != x or (categories != NULL and (n_below == n_categories or categories[n_below] != x)):
        return missing
    return <uint8_t> n_below


def encode_dense(
    const floating[:, :] X,             # IN
    const Py_ssize_t[::1] order,        # IN, or None: row i is X[order[i]]
    const floating[::1] edges,          # IN  cuts or categories of all features, rounded down to this type
    const double[::1] exact_edges,      # IN  the same, exact
    const int64_t[::1] edge_offsets,    # IN
    const uint8_t[::1] is_categorical,  # IN
    const int32_t[::1] missing_codes,   # IN
    Py_ssize_t first,
    Py_ssize_t last,
    uint8_t[:, ::1] codes,              # OUT rows first:last
    int n_threads,
):
    """Encode the rows first:last of a dense X of any strides."""
    cdef const Py_ssize_t* rows = NULL
    cdef Py_ssize_t block
    if first == last or X.shape[1] == 0:
        return
    if order is not None:
        rows = &order[0]
    for block in prange(
        (last - first + ROW_BLOCK - 1) // ROW_BLOCK, nogil=True, schedule="dynamic", chunksize=8,
        num_threads=n_threads, use_threads_if=n_threads > 1,
    ):
        encode_block(
            X, rows, &edges[0], &exact_edges[0], &edge_offsets[0], &is_categorical[0], &missing_codes[0],
            first + block * ROW_BLOCK, min(first + (block + 1) * ROW_BLOCK, last), codes,
        )


cdef void encode_block(
    const floating[:, :] X, const Py_ssize_t* rows, const floating* edges, const double* exact_edges,
    const int64_t* edge_offsets, const uint8_t* is_categorical, const int32_t* missing_codes,
    Py_ssize_t first, Py_ssize_t last, uint8_t[:, ::1] codes,
) noexcept nogil:
    cdef floating values[ROW_BLOCK]
    cdef uint32_t counts[ROW_BLOCK]
    cdef Py_ssize_t i, f, n_edges, n_rows = last - first
    cdef const double* categories
    cdef uint8_t missing
    for f in range(X.shape[1]):
        for i in range(n_rows):
            values[i] = X[first + i if rows == NULL else rows[first + i], f]
        n_edges = edge_offsets[f + 1] - edge_offsets[f]
        count_below(edges + edge_offsets[f], n_edges, values, n_rows, counts)
        missing = <uint8_t> missing_codes[f]
        if is_categorical[f]:
            categories = exact_edges + edge_offsets[f]
            for i in range(n_rows):
                codes[first + i, f] = code_of(values[i], counts[i], categories, n_edges, missing)
        else:
            for i in range(n_rows):
                codes[first + i, f] = <uint8_t> counts[i] if values[i] == values[i] else missing


def encode_sparse(
    const floating[::1] data,           # IN
    const index_t[::1] indices,         # IN
    const int64_t[::1] begins,          # IN  row i has the entries begins[i]:ends[i]
    const int64_t[::1] ends,            # IN
    const floating[::1] edges,          # IN  cuts or categories of all features, rounded down to this type
    const double[::1] exact_edges,      # IN  the same, exact
    const int64_t[::1] edge_offsets,    # IN
    const uint8_t[::1] is_categorical,  # IN
    const int32_t[::1] missing_codes,   # IN
    const uint8_t[::1] zero_codes,      # IN  what an absent entry is encoded as
    Py_ssize_t first,
    Py_ssize_t last,
    uint8_t[:, ::1] codes,              # OUT rows first:last
    int n_threads,
):
    """Encode the sparse rows first:last; entries of columns there are none of are passed over."""
    cdef Py_ssize_t i, n_features = codes.shape[1]
    if first == last or n_features == 0:
        return
    for i in prange(
        first, last, nogil=True, schedule="dynamic", chunksize=256, num_threads=n_threads,
        use_threads_if=n_threads > 1,
    ):
        memcpy(&codes[i, 0], &zero_codes[0], n_features)
        encode_entries(
            &data[0] + begins[i], &indices[0] + begins[i], ends[i] - begins[i],
            &edges[0], &exact_edges[0], &edge_offsets[0], &is_categorical[0], &missing_codes[0],
            n_features, &codes[i, 0],
        )


cdef void encode_entries(
    const floating* data, const index_t* indices, Py_ssize_t n,
    const floating* edges, const double* exact_edges, const int64_t* edge_offsets,
    const uint8_t* is_categorical, const int32_t* missing_codes, Py_ssize_t n_features, uint8_t* codes,
) noexcept nogil:
    cdef Py_ssize_t i, n_edges
    cdef index_t f
    cdef uint32_t count
    for i in range(n):
        f = indices[i]
        if 0 <= f < n_features:
            n_edges = edge_offsets[f + 1] - edge_offsets[f]
            count_below(edges + edge_offsets[f], n_edges, &data[i], 1, &count)
            codes[f] = code_of(
                data[i], count, exact_edges + edge_offsets[f] if is_categorical[f] else NULL, n_edges,
                <uint8_t> missing_codes[f],
            )
