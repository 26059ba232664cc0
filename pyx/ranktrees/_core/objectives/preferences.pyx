"""Preferences between pairs of rows: the gradient and hessian of each row, and the costs of the pairs.

    entries of row i   starts[i] ... starts[i + 1], one for each row that it was compared with
    others[k]          that other row
    won[k]             the weight of the statements that i is better
    lost[k]            the weight of the statements that the other row is better

Each pair is an entry of both its rows. The sums of a row run over its own entries, in their order, and only
the row's own results are written. The order of addition is therefore the same with any number of threads.
"""
from cython.parallel cimport prange
from libc.math cimport fabs
from libc.stdint cimport int64_t

from ranktrees._core.support.records cimport portable_exp, portable_softplus

cpdef enum Cost:      # the cost of a pair whose better row scores higher by `gap`
    CROSS_ENTROPY     # log(1 + e^(-steepness gap))
    SQUARED_HINGE     # max(0, steepness - gap)^2 / 2


cdef inline double cost_of(int cost, double steepness, double gap) noexcept nogil:
    cdef double x
    if cost == SQUARED_HINGE:
        x = steepness - gap
        return 0.5 * x * x if x > 0 else 0.0
    x = steepness * gap
    return portable_softplus(-x, portable_exp(-fabs(x)))


cdef inline double minus_slope_of(int cost, double steepness, double gap, double* curvature) noexcept nogil:
    """Minus the slope of the cost with respect to the gap; the second derivative goes to ``curvature``."""
    cdef double x, small, wrong
    if cost == SQUARED_HINGE:
        x = steepness - gap
        curvature[0] = 1.0 if x > 0 else 0.0
        return x if x > 0 else 0.0
    x = steepness * gap
    small = portable_exp(-fabs(x))
    wrong = (small if x > 0 else 1.0) / (1.0 + small)
    curvature[0] = steepness * steepness * (small / ((1.0 + small) * (1.0 + small)))
    return steepness * wrong


def gradients(
    int cost,                      # IN   of `Cost`
    const int64_t[::1] starts,     # IN
    const int64_t[::1] others,     # IN
    const double[::1] won,         # IN
    const double[::1] lost,        # IN
    const double[::1] scores,      # IN
    double steepness,              # IN   sigma, or the margin
    double[::1] out_gradients,     # OUT
    double[::1] out_hessians,      # OUT
    int n_threads,
):
    """Compute the gradient and hessian of each row: the sums over its entries."""
    cdef int64_t i, k
    cdef double gap, gradient, hessian, curvature
    for i in prange(
        scores.shape[0], nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
        schedule="dynamic", chunksize=64,
    ):
        gradient = 0.0
        hessian = 0.0
        for k in range(starts[i], starts[i + 1]):
            gap = scores[i] - scores[others[k]]
            curvature = 0.0
            gradient = gradient - won[k] * minus_slope_of(cost, steepness, gap, &curvature)
            hessian = hessian + won[k] * curvature
            gradient = gradient + lost[k] * minus_slope_of(cost, steepness, -gap, &curvature)
            hessian = hessian + lost[k] * curvature
        out_gradients[i] = gradient
        out_hessians[i] = hessian


def costs(
    int cost,                      # IN   of `Cost`
    const int64_t[::1] starts,     # IN
    const int64_t[::1] others,     # IN
    const double[::1] won,         # IN
    const double[::1] lost,        # IN
    const double[::1] scores,      # IN
    double steepness,              # IN   sigma, or the margin
    double[::1] out,               # OUT  one per row
    int n_threads,
):
    """Sum the costs of the pairs of each row with the rows after it."""
    cdef int64_t i, k
    cdef double gap, sum
    for i in prange(
        scores.shape[0], nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
        schedule="dynamic", chunksize=64,
    ):
        sum = 0.0
        for k in range(starts[i], starts[i + 1]):
            if others[k] > i:
                gap = scores[i] - scores[others[k]]
                sum = sum + won[k] * cost_of(cost, steepness, gap)
                sum = sum + lost[k] * cost_of(cost, steepness, -gap)
        out[i] = sum
