"""A split to two leaves: the leaf's rows are reordered in place, each side keeping its order.

    order  [ ... | a b c d e f g h | ... ]      the rows of the leaf
    order  [ ... | a c d g | b e f h | ... ]    left child, right child
"""
from cython.parallel cimport prange
from libc.math cimport INFINITY, fabs, frexp, ldexp
from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy, memset

from records cimport Bin, Leaf, Split, best_value

cdef extern from "bins.h" nogil:
    void prefetch_line(const void* address)

cdef enum:
    AHEAD = 16  # rows to fetch ahead
    MANY_ROWS = 4096  # from here on a leaf is worth several threads


cdef double TO_INTEGER = 6755399441055744.0  # 1.5 * 2^52: adding it rounds half to even


cdef void mark_left(const Split* split, int32_t n_bins, uint8_t* left) noexcept nogil:
    """left[code] says whether rows of that code go left."""
    cdef int32_t code
    for code in range(n_bins):
        if split.categorical:
            left[code] = (split.categories[code >> 5] >> (code & 31)) & 1
        else:
            left[code] = code <= split.code
    left[n_bins] = split.missing_left


cdef int64_t part(
    const uint32_t* rows, int64_t n_rows, const uint8_t* codes, int64_t n_features,
    const uint8_t* left, uint32_t* scratch,
) noexcept nogil:
    """Left rows to the front of ``scratch``, right rows to its back in reverse; the number on the left."""
    cdef int64_t i, n_left = 0, n_right = 0
    cdef uint8_t goes
    for i in range(n_rows):
        if i + AHEAD < n_rows:
            prefetch_line(codes + <int64_t>rows[i + AHEAD] * n_features)
        goes = left[codes[<int64_t>rows[i] * n_features]]
        scratch[n_left] = rows[i]
        scratch[n_rows - 1 - n_right] = rows[i]
        n_left += goes
        n_right += 1 - goes
    return n_left


cdef void take(
    const uint32_t* scratch, int64_t n_rows, int64_t n_left, uint32_t* left, uint32_t* right
) noexcept nogil:
    cdef int64_t i
    memcpy(left, scratch, n_left * sizeof(uint32_t))
    for i in range(n_rows - n_left):
        right[i] = scratch[n_rows - 1 - i]


cdef void found_children(
    Leaf* leaf, Leaf* left, Leaf* right, int64_t n_left, int8_t monotone,
    double l2, double gradient_unit, double hessian_unit,
) noexcept nogil:
    """The two children's records; a monotone split sets a wall between them, half-way."""
    cdef double wall
    memset(left, 0, sizeof(Leaf))
    memset(right, 0, sizeof(Leaf))
    left.start = leaf.start
    left.stop = leaf.start + n_left
    right.start = left.stop
    right.stop = leaf.stop
    left.total = leaf.split.left
    right.total.gradient = leaf.total.gradient - left.total.gradient
    right.total.hessian = leaf.total.hessian - left.total.hessian
    right.total.count = leaf.total.count - left.total.count
    left.lower = right.lower = leaf.lower
    left.upper = right.upper = leaf.upper
    left.left = left.right = right.left = right.right = -1
    left.histogram = right.histogram = -1
    left.depth = right.depth = leaf.depth + 1
    left.split.feature = right.split.feature = -1
    left.value = best_value(left.total, leaf.lower, leaf.upper, l2, gradient_unit, hessian_unit)
    right.value = best_value(right.total, leaf.lower, leaf.upper, l2, gradient_unit, hessian_unit)
    if monotone != 0:
        wall = 0.5 * (left.value + right.value)
        if monotone > 0:
            left.upper = right.lower = wall
        else:
            left.lower = right.upper = wall


def plant(
    Leaf[::1] leaves,                   # OUT  leaves[0]
    const Bin[::1] total,               # IN   one bin
    int64_t n_rows,
    double l2, double gradient_unit, double hessian_unit,
):
    """The root: all rows, no bounds."""
    cdef Leaf root
    memset(&root, 0, sizeof(Leaf))
    root.stop = n_rows
    root.total = total[0]
    root.lower = -INFINITY
    root.upper = INFINITY
    root.left = root.right = root.histogram = root.split.feature = -1
    root.value = best_value(root.total, root.lower, root.upper, l2, gradient_unit, hessian_unit)
    leaves[0] = root


def split_leaves(
    Leaf[::1] leaves,                   # IN and OUT  the children of ids[i] are first_child + 2 i and + 1
    const int32_t[::1] ids,             # IN   the leaves to split, each with its best split known
    int32_t first_child,
    const uint8_t[:, ::1] codes,        # IN
    const int64_t[::1] offsets,         # IN
    const int8_t[::1] monotone,         # IN   or None
    uint32_t[::1] order,                # IN and OUT
    uint32_t[::1] scratch,              # as long as order
    double l2, double gradient_unit, double hessian_unit,
    int n_threads,
):
    """Part the rows of each leaf in ``ids`` and found its two children.

    Threads take one leaf each, or, where a single large leaf is split, one stretch of its rows each.
    """
    cdef int64_t n_ids = ids.shape[0], n_features = codes.shape[1], i
    cdef bint together = n_ids == 1 and n_threads > 1
    if n_ids == 0:
        return
    if together and leaves[ids[0]].stop - leaves[ids[0]].start >= MANY_ROWS:
        with nogil:
            split_one(&leaves[0], ids[0], first_child, &codes[0, 0], n_features, &offsets[0],
                      &monotone[0] if monotone is not None else NULL, &order[0], &scratch[0],
                      l2, gradient_unit, hessian_unit, n_threads)
        return
    for i in prange(
        n_ids, nogil=True, num_threads=n_threads, use_threads_if=n_ids > 1 and n_threads > 1,
        schedule="dynamic",
    ):
        split_one(&leaves[0], ids[i], <int32_t>(first_child + 2 * i), &codes[0, 0], n_features, &offsets[0],
                  &monotone[0] if monotone is not None else NULL, &order[0], &scratch[0],
                  l2, gradient_unit, hessian_unit, 1)


cdef void split_one(
    Leaf* leaves, int32_t parent, int32_t first_child, const uint8_t* codes, int64_t n_features,
    const int64_t* offsets, const int8_t* monotone, uint32_t* order, uint32_t* scratch,
    double l2, double gradient_unit, double hessian_unit, int n_threads,
) noexcept nogil:
    cdef Leaf* leaf = leaves + parent
    cdef int64_t f = leaf.split.feature, n_rows = leaf.stop - leaf.start, n_left = 0, stretch, first, last, s
    cdef int64_t[64] n_lefts
    cdef int64_t[65] before
    cdef uint8_t[256] goes_left
    cdef int64_t n_stretches = min(n_threads, 64)
    cdef uint32_t* rows = order + leaf.start
    cdef uint32_t* own = scratch + leaf.start
    mark_left(&leaf.split, <int32_t>(offsets[f + 1] - offsets[f]) - 1, goes_left)
    for stretch in prange(
        n_stretches, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        first = n_rows * stretch // n_stretches
        last = n_rows * (stretch + 1) // n_stretches
        n_lefts[stretch] = part(rows + first, last - first, codes + f, n_features, goes_left, own + first)
    before[0] = 0
    for s in range(n_stretches):
        before[s + 1] = before[s] + n_lefts[s]
    n_left = before[n_stretches]
    for stretch in prange(
        n_stretches, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        first = n_rows * stretch // n_stretches
        last = n_rows * (stretch + 1) // n_stretches
        take(own + first, last - first, n_lefts[stretch], rows + before[stretch],
             rows + n_left + first - before[stretch])
    leaf.left = first_child
    leaf.right = first_child + 1
    found_children(leaf, leaves + first_child, leaves + first_child + 1, n_left,
                   monotone[f] if monotone != NULL else 0, l2, gradient_unit, hessian_unit)


cdef double exact_sum(const double* values, const uint32_t* rows, int64_t n_rows) noexcept nogil:
    """The sum of values[row], the same in any order: integers on the scale of the largest of them."""
    cdef double largest = 0.0, scale
    cdef int64_t i, total = 0
    cdef int exponent, bits = 51
    for i in range(n_rows):
        largest = max(largest, fabs(values[rows[i]]))
    if largest == 0.0:
        return 0.0
    while bits > 0 and n_rows > (<int64_t>1 << (62 - bits)):
        bits -= 1
    frexp(largest, &exponent)
    exponent = min(bits - exponent, 1000)
    scale = ldexp(1.0, exponent)
    for i in range(n_rows):
        total += <int64_t>((values[rows[i]] * scale + TO_INTEGER) - TO_INTEGER)
    return ldexp(<double>total, -exponent)


def settle_leaves(
    Leaf[::1] leaves,                   # IN and OUT  the value of those that were not split
    const uint32_t[::1] order,          # IN
    const double[::1] gradients,        # IN
    const double[::1] hessians,         # IN
    double l2,
    int n_threads,
):
    """Set each leaf's value from its own rows: light rows count to the last bit where they are alone."""
    cdef int64_t k, n_rows
    cdef double gradient, hessian, value
    cdef const uint32_t* rows
    for k in prange(
        leaves.shape[0], nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
    ):
        if leaves[k].left < 0:
            rows = &order[0] + leaves[k].start
            n_rows = leaves[k].stop - leaves[k].start
            gradient = exact_sum(&gradients[0], rows, n_rows)
            hessian = exact_sum(&hessians[0], rows, n_rows) + l2
            value = -gradient / hessian if hessian > 0 else 0.0
            leaves[k].value = min(max(value, leaves[k].lower), leaves[k].upper)


def add_values(
    const Leaf[::1] leaves,             # IN
    const double[::1] values,           # IN   one per node
    const uint32_t[::1] order,          # IN
    double[::1] scores,                 # IN and OUT
    int n_threads,
):
    """scores[row] += value of the row's leaf, for the rows the tree was grown from."""
    cdef int64_t k, i
    for k in prange(
        leaves.shape[0], nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
    ):
        if leaves[k].left < 0:
            for i in range(leaves[k].start, leaves[k].stop):
                scores[order[i]] += values[k]
