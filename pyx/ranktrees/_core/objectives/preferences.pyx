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


cdef class Preferred:
    """Preferences of a fit, and what their pairs cost.

    Parameters
    ----------
    cost : Cost
    steepness : float
        sigma, or the margin.
    entries : tuple of ndarray
        ``starts``, ``others``, ``won`` and ``lost``: see above.
    n_threads : int
    """

    cdef int cost, n_threads
    cdef double steepness
    cdef const int64_t[::1] starts, others
    cdef const double[::1] won, lost

    def __init__(self, cost, steepness, entries, n_threads):
        self.cost, self.steepness, self.n_threads = cost, steepness, n_threads
        self.starts, self.others, self.won, self.lost = entries

    def gradients(
        self,
        const double[::1] scores,      # IN
        double[::1] out_gradients,     # OUT
        double[::1] out_hessians,      # OUT
    ):
        """Compute the gradient and hessian of each row: the sums over its entries."""
        cdef int64_t i, k
        cdef double gap, gradient, hessian, curvature
        for i in prange(
            scores.shape[0], nogil=True, num_threads=self.n_threads, use_threads_if=self.n_threads > 1,
            schedule="dynamic", chunksize=64,
        ):
            gradient = 0.0
            hessian = 0.0
            for k in range(self.starts[i], self.starts[i + 1]):
                gap = scores[i] - scores[self.others[k]]
                curvature = 0.0
                gradient = gradient - self.won[k] * minus_slope_of(self.cost, self.steepness, gap, &curvature)
                hessian = hessian + self.won[k] * curvature
                gradient = gradient + self.lost[k] * minus_slope_of(
                    self.cost, self.steepness, -gap, &curvature
                )
                hessian = hessian + self.lost[k] * curvature
            out_gradients[i] = gradient
            out_hessians[i] = hessian

    def costs(
        self,
        const double[::1] scores,      # IN
        double[::1] out,               # OUT  one per row
    ):
        """Sum the costs of the pairs of each row with the rows after it."""
        cdef int64_t i, k
        cdef double gap, sum
        for i in prange(
            scores.shape[0], nogil=True, num_threads=self.n_threads, use_threads_if=self.n_threads > 1,
            schedule="dynamic", chunksize=64,
        ):
            sum = 0.0
            for k in range(self.starts[i], self.starts[i + 1]):
                if self.others[k] > i:
                    gap = scores[i] - scores[self.others[k]]
                    sum = sum + self.won[k] * cost_of(self.cost, self.steepness, gap)
                    sum = sum + self.lost[k] * cost_of(self.cost, self.steepness, -gap)
            out[i] = sum
