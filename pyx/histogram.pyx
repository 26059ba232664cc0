"""Rows to histograms: round the gradients once, then add integers, in any order.

    rows        [ bin | bin | bin | ... ]            one bin per row, in row order
    order       [ rows of leaf 3 | of leaf 1 | ... ] a leaf's rows are order[start:stop]
    codes       row-major: the codes of one row lie side by side
    histograms  one line per leaf: [ bins of feature 0 | bins of feature 1 | ... ], from offsets[feature]
"""
from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memset

from records cimport Bin, Leaf

cdef extern from "bins.h" nogil:
    void bin_add(void* cell, const void* row)
    void bin_subtract(void* cell, const void* row)
    void prefetch_line(const void* address)


cdef enum:
    BLOCK = 16  # features whose bins are filled together: 64 KiB of cells
    CHUNK = 1024  # rows whose codes stay in the cache while the blocks go over them
    AHEAD = 24  # rows to fetch ahead
    STRIPE = 16384  # values that one task looks at
    COUNTS = 16777216  # 2^24: what a packed gradient is multiplied by

cdef double TO_INTEGER = 6755399441055744.0  # 1.5 * 2^52: adding it rounds half to even


def largest(const double[::1] values, double[::1] partial, int n_threads):
    """The largest absolute value (NaN if any value is NaN): exact, so the order does not matter.

    ``partial`` is scratch of at least ``ceil(n / 16384)`` numbers.
    """
    cdef int64_t n = values.shape[0], n_stripes = (n + STRIPE - 1) // STRIPE, s, i
    cdef double best, size
    for s in prange(
        n_stripes, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        best = 0.0
        for i in range(s * STRIPE, min(n, (s + 1) * STRIPE)):
            size = values[i] if values[i] > 0 else -values[i]
            best = size if not (size <= best) else best
            if size != size:
                break
        partial[s] = best
    best = 0.0
    for s in range(n_stripes):
        if partial[s] != partial[s]:
            return partial[s]
        best = max(best, partial[s])
    return best


def total(const double[::1] values, double scale, int64_t[::1] partial, int n_threads):
    """The sum of ``rint(value * scale)``, exact, so the order does not matter."""
    cdef int64_t n = values.shape[0], n_stripes = (n + STRIPE - 1) // STRIPE, s, i, one
    cdef double rounded
    for s in prange(
        n_stripes, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        one = 0
        for i in range(s * STRIPE, min(n, (s + 1) * STRIPE)):
            rounded = (values[i] * scale + TO_INTEGER) - TO_INTEGER
            one = one + <int64_t>rounded
        partial[s] = one
    one = 0
    for s in range(n_stripes):
        one += partial[s]
    return one


def round_rows(
    const double[::1] gradients,  # IN
    const double[::1] hessians,   # IN
    double gradient_scale,
    double hessian_scale,
    Bin[::1] rows,                # OUT
    int n_threads,
):
    """Each row's gradient and hessian as integers, rounded once; a positive hessian stays positive."""
    cdef int64_t n = gradients.shape[0], n_stripes = (n + STRIPE - 1) // STRIPE, s, i
    cdef double gradient, hessian
    for s in prange(
        n_stripes, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        for i in range(s * STRIPE, min(n, (s + 1) * STRIPE)):
            gradient = (gradients[i] * gradient_scale + TO_INTEGER) - TO_INTEGER
            hessian = (hessians[i] * hessian_scale + TO_INTEGER) - TO_INTEGER
            hessian = 1.0 if hessians[i] > 0 and hessian < 1.0 else hessian
            rows[i].gradient = <int64_t>gradient
            rows[i].hessian = <uint32_t>hessian
            rows[i].count = 1


def pack(const Bin[::1] rows, int64_t[::1] packed, int n_threads):
    """packed = gradient * 2^24 + 1: sums of fewer than 2^24 rows hold their gradients and their count."""
    cdef int64_t n = rows.shape[0], n_stripes = (n + STRIPE - 1) // STRIPE, s, i
    for s in prange(
        n_stripes, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        for i in range(s * STRIPE, min(n, (s + 1) * STRIPE)):
            packed[i] = rows[i].gradient * COUNTS + 1


def sum_rows(const Bin[::1] rows, const uint32_t[::1] order, Bin[::1] total):
    """The bin of all rows in ``order``, into ``total[0]``."""
    cdef int64_t i
    cdef Bin one
    one.gradient = 0
    one.hessian = 0
    one.count = 0
    with nogil:
        for i in range(order.shape[0]):
            bin_add(&one, &rows[order[i]])
    total[0] = one


cdef void add_rows(
    const uint8_t* codes,
    int64_t n_features,
    const uint32_t* order,
    int64_t n_rows,
    const Bin* rows,
    const int64_t* offsets,
    int64_t first,
    int64_t last,
    Bin* histogram,
) noexcept nogil:
    """Add the rows of one leaf to the bins of the features first..last-1."""
    cdef int64_t i, f, chunk, block, end, line
    cdef const uint8_t* code
    cdef const Bin* row
    chunk = 0
    while chunk < n_rows:
        end = min(n_rows, chunk + CHUNK)
        block = first
        while block < last:
            for i in range(chunk, end):
                if block == first and i + AHEAD < n_rows:
                    code = codes + <int64_t>order[i + AHEAD] * n_features
                    line = first
                    while line < last:
                        prefetch_line(code + line)
                        line = line + 64
                    prefetch_line(rows + order[i + AHEAD])
                code = codes + <int64_t>order[i] * n_features
                row = rows + order[i]
                if last - block >= BLOCK:
                    for f in range(BLOCK):  # a constant count, so that the loop unrolls
                        bin_add(histogram + offsets[block + f] + code[block + f], row)
                else:
                    for f in range(block, last):
                        bin_add(histogram + offsets[f] + code[f], row)
            block = block + BLOCK
        chunk = end


cdef void add_packed(
    const uint8_t* codes,
    int64_t n_features,
    const uint32_t* order,
    int64_t n_rows,
    const int64_t* packed,
    uint32_t hessian,
    const int64_t* offsets,
    int64_t first,
    int64_t last,
    int64_t* cells,
    Bin* histogram,
) noexcept nogil:
    """The same where all rows have the same hessian: one integer a row and a cell, unpacked at the end."""
    cdef int64_t i, f, chunk = 0, block, end, line, value
    cdef const uint8_t* code
    memset(cells + offsets[first], 0, (offsets[last] - offsets[first]) * sizeof(int64_t))
    while chunk < n_rows:
        end = min(n_rows, chunk + CHUNK)
        block = first
        while block < last:
            for i in range(chunk, end):
                if block == first and i + AHEAD < n_rows:
                    code = codes + <int64_t>order[i + AHEAD] * n_features
                    line = first
                    while line < last:
                        prefetch_line(code + line)
                        line = line + 64
                    prefetch_line(packed + order[i + AHEAD])
                code = codes + <int64_t>order[i] * n_features
                value = packed[order[i]]
                if last - block >= BLOCK:
                    for f in range(BLOCK):
                        cells[offsets[block + f] + code[block + f]] += value
                else:
                    for f in range(block, last):
                        cells[offsets[f] + code[f]] += value
            block = block + BLOCK
        chunk = end
    for i in range(offsets[first], offsets[last]):
        histogram[i].gradient = cells[i] >> 24
        histogram[i].count = <uint32_t>(cells[i] & (COUNTS - 1))
        histogram[i].hessian = histogram[i].count * hessian


def build(
    const Leaf[::1] leaves,         # IN
    const int32_t[::1] ids,         # IN   the leaves to build
    const uint8_t[:, ::1] codes,    # IN
    const uint32_t[::1] order,      # IN
    const Bin[::1] rows,            # IN
    const int64_t[::1] packed,      # IN   the same packed, or None where hessians differ
    const int64_t[::1] offsets,     # IN
    int64_t[:, ::1] cells,          # scratch, one line per thread
    Bin[:, ::1] histograms,         # OUT  the lines leaves[id].histogram
    int n_threads,
):
    """Fill the histogram of each leaf in ``ids``. A task is one leaf and one share of the features."""
    cdef int64_t n_features = codes.shape[1], n_blocks = (n_features + BLOCK - 1) // BLOCK
    cdef int64_t n_shares = min(n_blocks, n_threads), n_tasks = ids.shape[0] * n_shares
    cdef int64_t task, first, last, share
    cdef const Leaf* leaf
    cdef Bin* histogram
    if n_tasks == 0:
        return
    for task in prange(
        n_tasks, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
    ):
        leaf = &leaves[ids[task // n_shares]]
        share = task % n_shares
        first = n_features * share // n_shares
        last = n_features * (share + 1) // n_shares
        histogram = &histograms[leaf.histogram, 0]
        if packed is not None:
            add_packed(
                &codes[0, 0], n_features, &order[leaf.start], leaf.stop - leaf.start, &packed[0],
                rows[0].hessian, &offsets[0], first, last, &cells[threadid(), 0], histogram,
            )
            continue
        memset(histogram + offsets[first], 0, (offsets[last] - offsets[first]) * sizeof(Bin))
        add_rows(
            &codes[0, 0], n_features, &order[leaf.start], leaf.stop - leaf.start, &rows[0],
            &offsets[0], first, last, histogram,
        )


def subtract(
    const int32_t[::1] wholes,   # IN   lines of the parents, which become their larger children
    const int32_t[::1] parts,    # IN   lines of the smaller children
    Bin[:, ::1] histograms,      # IN and OUT
    int n_threads,
):
    """sibling = parent - child, exactly, in the parent's place."""
    cdef int64_t width = histograms.shape[1], n_stripes = (width + STRIPE - 1) // STRIPE
    cdef int64_t n_tasks = wholes.shape[0] * n_stripes, task, b, stripe
    cdef Bin* whole
    cdef const Bin* part
    if n_tasks == 0:
        return
    for task in prange(
        n_tasks, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        whole = &histograms[wholes[task // n_stripes], 0]
        part = &histograms[parts[task // n_stripes], 0]
        stripe = task % n_stripes
        for b in range(stripe * STRIPE, min(width, (stripe + 1) * STRIPE)):
            whole[b].gradient = whole[b].gradient - part[b].gradient
            whole[b].hessian = whole[b].hessian - part[b].hessian
            whole[b].count = whole[b].count - part[b].count


def remove_rows(
    const Leaf[::1] leaves,         # IN
    const int32_t[::1] ids,         # IN   the smaller children, of few rows
    const int32_t[::1] lines,       # IN   their parents' lines, which become the larger children's
    const uint8_t[:, ::1] codes,    # IN
    const uint32_t[::1] order,      # IN
    const Bin[::1] rows,            # IN
    const int64_t[::1] offsets,     # IN
    Bin[:, ::1] histograms,         # IN and OUT
):
    """sibling = parent - child, row by row: cheaper than a histogram for a child of few rows."""
    cdef int64_t n_features = codes.shape[1], k, i, f
    cdef Bin* histogram
    cdef const uint8_t* code
    with nogil:
        for k in range(ids.shape[0]):
            histogram = &histograms[lines[k], 0]
            for i in range(leaves[ids[k]].start, leaves[ids[k]].stop):
                code = &codes[order[i], 0]
                for f in range(n_features):
                    bin_subtract(histogram + offsets[f] + code[f], &rows[order[i]])
