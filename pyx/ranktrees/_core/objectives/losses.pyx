"""Pointwise losses, which compare the score of a row with its own label, and the quantiles of a leaf's rows.

Each loss has two kernels. ``*_gradients`` writes the first and second derivatives with respect to the score,
times the weight of the row. ``*_losses`` writes the loss itself, times the weight, one number per row, so
that the caller can sum these exactly. ``weights`` may be None.
"""
import numpy as np

from cython.parallel cimport prange
from libc.math cimport fabs
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport qsort

from ranktrees._core.support.records cimport portable_exp, portable_log, portable_softplus
from ranktrees._core.support.views cimport run_in

cdef extern from "objectives/classes.h" nogil:
    enum:
        ROWS_TOGETHER
    void probabilities_of_rows(
        int64_t n_classes, int64_t stride, int64_t n, const double* scores, double* probabilities,
    ) noexcept
    void class_gradients_of_rows(
        int64_t n_classes, int64_t stride, int64_t n, const double* labels, const double* weights,
        const double* scores, double scale, double* gradients, double* hessians,
    ) noexcept
    void log_sums_of_rows(
        int64_t n_classes, int64_t stride, int64_t n, const double* scores, double* out,
    ) noexcept

ctypedef fused label_t:  # the smallest of these types that holds all labels exactly
    uint8_t
    float
    double


cdef inline double sigmoid(double x) noexcept nogil:
    return 1.0 / (1.0 + portable_exp(-x))


cdef inline double softplus(double x) noexcept nogil:
    """log(1 + e^x), for any x."""
    return portable_softplus(x, portable_exp(-fabs(x)))


def natural_log(double x):
    """log(x) of a positive number, with the same bits on every machine."""
    return portable_log(x)


def exponentials(const double[::1] scores, double[::1] out):
    """out = e^score."""
    cdef int64_t i
    with nogil:
        for i in range(scores.shape[0]):
            out[i] = portable_exp(scores[i])


def sigmoids(const double[::1] scores, double[::1] out):
    """out = 1 / (1 + e^-score)."""
    cdef int64_t i
    with nogil:
        for i in range(scores.shape[0]):
            out[i] = sigmoid(scores[i])


def squared_gradients(
    const label_t[::1] labels,   # IN
    const double[::1] weights,   # IN   or None
    const double[::1] scores,    # IN
    double[::1] gradients,       # OUT
    double[::1] hessians,        # OUT  one per row, or a single one for all rows
    int n_threads,
):
    """loss = (score - label)^2 / 2."""
    cdef int64_t n = scores.shape[0], i
    cdef bint weighted = weights is not None, each = hessians.shape[0] == n
    cdef double weight
    if not each:
        hessians[0] = 1.0
    for i in prange(n, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"):
        weight = weights[i] if weighted else 1.0
        gradients[i] = weight * (scores[i] - labels[i])
        if each:
            hessians[i] = weight


def squared_losses(
    const label_t[::1] labels,   # IN
    const double[::1] weights,   # IN   or None
    const double[::1] scores,    # IN
    double[::1] losses,          # OUT
    int n_threads,
):
    """loss = (score - label)^2 / 2."""
    cdef int64_t n = scores.shape[0], i
    cdef bint weighted = weights is not None
    cdef double weight, residual
    for i in prange(n, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"):
        weight = weights[i] if weighted else 1.0
        residual = scores[i] - labels[i]
        losses[i] = weight * (0.5 * residual * residual)


def sloped_gradients(
    const label_t[::1] labels,   # IN
    const double[::1] weights,   # IN   or None
    const double[::1] scores,    # IN
    double below,                # slope for scores below the label, a negative number
    double above,                # slope for scores above the label
    double[::1] gradients,       # OUT
    double[::1] hessians,        # OUT  one per row, or a single one for all rows
    int n_threads,
):
    """loss = slope * (score - label): two straight lines that meet at the label."""
    cdef int64_t n = scores.shape[0], i
    cdef bint weighted = weights is not None, each = hessians.shape[0] == n
    cdef double weight
    if not each:
        hessians[0] = 1.0
    for i in prange(n, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"):
        weight = weights[i] if weighted else 1.0
        gradients[i] = weight * (above if scores[i] > labels[i] else below if scores[i] < labels[i] else 0.0)
        if each:
            hessians[i] = weight


def sloped_losses(
    const label_t[::1] labels,   # IN
    const double[::1] weights,   # IN   or None
    const double[::1] scores,    # IN
    double below,
    double above,
    double[::1] losses,          # OUT
    int n_threads,
):
    """loss = slope * (score - label): two straight lines that meet at the label."""
    cdef int64_t n = scores.shape[0], i
    cdef bint weighted = weights is not None
    cdef double weight
    for i in prange(n, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"):
        weight = weights[i] if weighted else 1.0
        losses[i] = weight * ((scores[i] - labels[i]) * (above if scores[i] > labels[i] else below))


def poisson_gradients(
    const label_t[::1] labels,   # IN
    const double[::1] weights,   # IN   or None
    const double[::1] scores,    # IN
    double[::1] gradients,       # OUT
    double[::1] hessians,        # OUT
    int n_threads,
):
    """loss = e^score - label * score."""
    cdef int64_t n = scores.shape[0], i
    cdef bint weighted = weights is not None
    cdef double weight, mean
    for i in prange(n, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"):
        weight = weights[i] if weighted else 1.0
        mean = portable_exp(scores[i])
        gradients[i] = weight * (mean - labels[i])
        hessians[i] = weight * mean


def poisson_losses(
    const label_t[::1] labels,   # IN
    const double[::1] weights,   # IN   or None
    const double[::1] scores,    # IN
    double[::1] losses,          # OUT
    int n_threads,
):
    """loss = e^score - label * score."""
    cdef int64_t n = scores.shape[0], i
    cdef bint weighted = weights is not None
    cdef double weight
    for i in prange(n, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"):
        weight = weights[i] if weighted else 1.0
        losses[i] = weight * (portable_exp(scores[i]) - labels[i] * scores[i])


def gamma_gradients(
    const label_t[::1] labels,   # IN   above 0
    const double[::1] weights,   # IN   or None
    const double[::1] scores,    # IN
    double[::1] gradients,       # OUT
    double[::1] hessians,        # OUT
    int n_threads,
):
    """loss = label * e^-score + score."""
    cdef int64_t n = scores.shape[0], i
    cdef bint weighted = weights is not None
    cdef double weight, ratio
    for i in prange(n, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"):
        weight = weights[i] if weighted else 1.0
        ratio = labels[i] * portable_exp(-scores[i])
        gradients[i] = weight * (1.0 - ratio)
        hessians[i] = weight * ratio


def gamma_losses(
    const label_t[::1] labels,   # IN   above 0
    const double[::1] weights,   # IN   or None
    const double[::1] scores,    # IN
    double[::1] losses,          # OUT
    int n_threads,
):
    """loss = label * e^-score + score."""
    cdef int64_t n = scores.shape[0], i
    cdef bint weighted = weights is not None
    cdef double weight
    for i in prange(n, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"):
        weight = weights[i] if weighted else 1.0
        losses[i] = weight * (labels[i] * portable_exp(-scores[i]) + scores[i])


def logistic_gradients(
    const label_t[::1] labels,   # IN   in [0, 1]
    const double[::1] weights,   # IN   or None
    const double[::1] scores,    # IN
    double positive,             # weight of the label's positive part
    double negative,             # weight of its negative part
    double[::1] gradients,       # OUT
    double[::1] hessians,        # OUT
    int n_threads,
):
    """loss = positive * label * log(1 + e^-score) + negative * (1 - label) * log(1 + e^score)."""
    cdef int64_t n = scores.shape[0], i
    cdef bint weighted = weights is not None
    cdef double weight, one, zero, probability, rest
    for i in prange(n, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"):
        weight = weights[i] if weighted else 1.0
        one = weight * positive * labels[i]
        zero = weight * negative * (1.0 - labels[i])
        probability = sigmoid(scores[i])
        rest = sigmoid(-scores[i])  # 1 - probability, without cancellation
        gradients[i] = zero * probability - one * rest
        hessians[i] = (one + zero) * (probability * rest)


def logistic_losses(
    const label_t[::1] labels,   # IN   in [0, 1]
    const double[::1] weights,   # IN   or None
    const double[::1] scores,    # IN
    double positive,
    double negative,
    double[::1] losses,          # OUT
    int n_threads,
):
    """loss = positive * label * log(1 + e^-score) + negative * (1 - label) * log(1 + e^score)."""
    cdef int64_t n = scores.shape[0], i
    cdef bint weighted = weights is not None
    cdef double weight, one, zero
    for i in prange(n, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"):
        weight = weights[i] if weighted else 1.0
        one = weight * positive * labels[i]
        zero = weight * negative * (1.0 - labels[i])
        losses[i] = one * softplus(-scores[i]) + zero * softplus(scores[i])


cdef inline int64_t n_blocks_of(int64_t n_rows) noexcept nogil:
    return (n_rows + ROWS_TOGETHER - 1) // ROWS_TOGETHER


def class_probabilities(const double[:, ::1] scores, double[:, ::1] out):
    """out = e^score / (sum over the classes of e^score), with a line for each class."""
    cdef int64_t n = scores.shape[1], block, first
    with nogil:
        for block in range(n_blocks_of(n)):
            first = block * ROWS_TOGETHER
            probabilities_of_rows(
                scores.shape[0], n, min(n - first, ROWS_TOGETHER), &scores[0, first], &out[0, first]
            )


cdef void class_gradients_of(
    const label_t[::1] labels, const double[::1] weights, const double[:, ::1] scores,
    const double[::1] of_classes, int64_t first, double[:, ::1] gradients, double[:, ::1] hessians,
) noexcept nogil:
    cdef int64_t n = scores.shape[1], n_classes = scores.shape[0], i
    cdef int64_t n_rows = min(n - first, ROWS_TOGETHER)
    cdef double[ROWS_TOGETHER] own_labels, own_weights
    cdef double scale = n_classes / (n_classes - 1.0)
    for i in range(n_rows):
        own_labels[i] = labels[first + i]
        own_weights[i] = of_classes[<int64_t>labels[first + i]]
        if weights is not None:
            own_weights[i] *= weights[first + i]
    class_gradients_of_rows(
        n_classes, n, n_rows, own_labels, own_weights, &scores[0, first], scale,
        &gradients[0, first], &hessians[0, first],
    )


def class_gradients(
    const label_t[::1] labels,     # IN   the number of the class, from 0
    const double[::1] weights,     # IN   or None
    const double[:, ::1] scores,   # IN   a line for each class
    const double[::1] of_classes,  # IN   weights of the classes
    double[:, ::1] gradients,      # OUT  a line for each class
    double[:, ::1] hessians,       # OUT
    int n_threads,
):
    """loss = -of_classes[label] * log(e^score_label / sum of e^score)."""
    cdef int64_t n_blocks = n_blocks_of(scores.shape[1]), block
    for block in prange(
        n_blocks, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        class_gradients_of(labels, weights, scores, of_classes, block * ROWS_TOGETHER, gradients, hessians)


def class_losses(
    const label_t[::1] labels,     # IN
    const double[::1] weights,     # IN   or None
    const double[:, ::1] scores,   # IN
    const double[::1] of_classes,  # IN
    double[::1] losses,            # OUT
    int n_threads,
):
    """loss = -of_classes[label] * log(e^score_label / sum of e^score)."""
    cdef int64_t n = scores.shape[1], n_blocks = n_blocks_of(n), block, first, i, label
    cdef bint weighted = weights is not None
    cdef double weight
    for block in prange(
        n_blocks, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        first = block * ROWS_TOGETHER
        log_sums_of_rows(
            scores.shape[0], n, min(n - first, ROWS_TOGETHER), &scores[0, first], run_in(losses, first)
        )
        for i in range(first, min(n, first + ROWS_TOGETHER)):
            label = <int64_t>labels[i]
            weight = weights[i] if weighted else 1.0
            losses[i] = weight * of_classes[label] * (losses[i] - scores[label, i])


# ----------------------------------------------------------------------------------------------
# Quantiles

cdef struct Weighted:
    double value
    double weight


cdef int compare(const void* a, const void* b) noexcept nogil:
    """Compare by value, then by weight. Rows that are still equal are identical: any order will do."""
    cdef const Weighted* x = <const Weighted*>a
    cdef const Weighted* y = <const Weighted*>b
    if x.value != y.value:
        return (x.value > y.value) - (x.value < y.value)
    return (x.weight > y.weight) - (x.weight < y.weight)


cdef double weighted_quantile(Weighted* rows, int64_t n, double quantile) noexcept nogil:
    cdef double total = 0.0, sum = 0.0, target
    cdef int64_t i
    if n == 0:
        return 0.0
    qsort(rows, n, sizeof(Weighted), compare)
    for i in range(n):
        total += rows[i].weight
    target = quantile * total
    for i in range(n - 1):
        sum += rows[i].weight
        if sum >= target:
            return rows[i].value if sum > target else 0.5 * rows[i].value + 0.5 * rows[i + 1].value
    return rows[n - 1].value


cdef double plain_quantile(double* values, int64_t n, double quantile) noexcept nogil:
    """The same for weights that are all one, by Hoare's selection instead of a sort."""
    cdef double target = quantile * n, pivot, swap, next_value
    cdef int64_t k = <int64_t>target, low = 0, high = n - 1, i, j
    cdef bint between = k == target and 0 < k < n
    if n == 0:
        return 0.0
    k = k - 1 if k == target else k
    k = max(0, min(n - 1, k))
    while low < high:
        i = low
        j = high
        pivot = values[low + (high - low) // 2]
        if values[low] > values[high]:  # the median of three
            pivot = max(values[high], min(values[low], pivot))
        else:
            pivot = max(values[low], min(values[high], pivot))
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                swap = values[i]
                values[i] = values[j]
                values[j] = swap
                i += 1
                j -= 1
        if j < k:
            low = i
        if k < i:
            high = j
    if not between:
        return values[k]
    next_value = values[k + 1]
    for i in range(k + 2, n):
        next_value = min(next_value, values[i])
    return 0.5 * values[k] + 0.5 * next_value


def leaf_quantiles(
    const double[::1] residuals,   # IN   one per row
    const double[::1] weights,     # IN   one per row, or None
    const uint32_t[::1] order,     # IN   the rows of a leaf are order[start:stop]
    const int64_t[::1] starts,     # IN
    const int64_t[::1] stops,      # IN
    double quantile,
    double[::1] values,            # OUT  one per leaf; 0 for a leaf without weight
    int n_threads,
):
    """The quantile of the residuals of each leaf. It does not depend on the order of the rows.

    It is the smallest residual at which the cumulative weight exceeds ``quantile`` of the leaf's weight. If a
    residual reaches that share exactly, it is the middle between this residual and the next (so the quantile
    1/2 is the median). A row of weight 2 counts as two rows, a row of weight 0 as none. Leaves must not
    overlap.
    """
    cdef int64_t n_leaves = starts.shape[0], leaf, i, n
    cdef bint weighted = weights is not None
    cdef double[::1] scratch = np.empty(max(1, order.shape[0]) * (2 if weighted else 1))
    cdef double* plain
    cdef Weighted* rows
    for leaf in prange(
        n_leaves, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
    ):
        if weighted:
            rows = <Weighted*>run_in(scratch, 0) + starts[leaf]
            n = 0
            for i in range(starts[leaf], stops[leaf]):
                if weights[order[i]] > 0:
                    rows[n].value = residuals[order[i]]
                    rows[n].weight = weights[order[i]]
                    n = n + 1
            values[leaf] = weighted_quantile(rows, n, quantile)
        else:
            plain = run_in(scratch, starts[leaf])
            n = stops[leaf] - starts[leaf]
            for i in range(n):
                plain[i] = residuals[order[starts[leaf] + i]]
            values[leaf] = plain_quantile(plain, n, quantile)
