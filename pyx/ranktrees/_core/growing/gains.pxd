"""The gain of the children of a split, and what they must satisfy: see gains.h."""
from libc.stdint cimport int32_t

from ranktrees._core.support.records cimport Bin

cdef extern from "growing/gains.h" nogil:
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
        int first_side
        int last_side
    double undivided_gain_of(const Sums* total, const Rules* rule)
    double least_gain(double undivided_gain, const Rules* rule)
    double hessian_of_rows(const Sums* total, double share, const Rules* rule)
    void gains_of_children(
        int32_t n, const double* gradients, const double* hessians, const double* counts,
        const Sums* extra, const Sums* total, const Rules* rule, double* gains,
    ) noexcept


cdef inline Sums sums_of(Bin part) noexcept nogil:
    cdef Sums sums
    sums.gradient = <double>part.gradient
    sums.hessian = part.hessian
    sums.count = part.count
    return sums


cdef inline Rules rules_within(const Sums* total, bint sampled, const Rules* rules) noexcept nogil:
    """What the splits of a leaf must satisfy.

    If rows are sampled, the sums of few rows are mostly chance. A child then needs at least half the hessian
    that ``min_samples_leaf`` rows of the leaf have on average.
    """
    cdef Rules own = rules[0]
    if sampled:
        own.min_hessian = hessian_of_rows(total, 0.5, rules)
    return own
