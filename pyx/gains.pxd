"""What children score, and what they must: see gains.h."""
from libc.stdint cimport int32_t

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
        int first_side
        int last_side
    double own_score_of(const Sums* total, const Rules* rule)
    double least_score(double own_score, const Rules* rule)
    double hessian_of_rows(const Sums* total, double share, const Rules* rule)
    void score_children(
        int32_t n, const double* gradients, const double* hessians, const double* counts,
        const Sums* extra, const Sums* total, const Rules* rule, double* scores,
    ) noexcept
