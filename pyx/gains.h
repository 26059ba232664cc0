/* What the two children of each candidate split score together; see splitting.pyx.
 *
 * Sums are whole numbers held in doubles: gradients and hessians in integer steps, counts of rows. */
#ifndef RANKTREES_GAINS_H
#define RANKTREES_GAINS_H

#include <math.h>
#include <stdint.h>

#include "simd.h"

typedef struct {
    double gradient, hessian, count;
} sums;

typedef struct {
    double l2;
    double min_gain;
    double gradient_unit; /* what one integer step of a gradient is worth */
    double hessian_unit;
    double min_samples_leaf;
    double min_hessian; /* in integer steps, at least one */
} rules;

/* Twice what the loss falls when both children take their best values, beyond what no split gives. */
INLINE double children_score(double left, double left_hessian, double right, double right_hessian) {
    return left * (left / left_hessian) + right * (right / right_hessian);
}

/* scores[k] = G_l (G_l / (H_l + l2)) + G_r (G_r / (H_r + l2)), or -inf where a child would be too small.
 * Left are the sums up to candidate k and, on top of them, extra. */
EACH_WIDTH(void, score_children,
           (int32_t n, const double *RESTRICT gradients, const double *RESTRICT hessians,
            const double *RESTRICT counts, const sums *extra, const sums *total, const rules *rule,
            double *RESTRICT scores),
           (n, gradients, hessians, counts, extra, total, rule, scores)) {
    const double unit = rule->gradient_unit, hessian_unit = rule->hessian_unit, l2 = rule->l2;
    const double least = rule->min_samples_leaf, least_hessian = rule->min_hessian;
    const double more_gradient = extra->gradient, more_hessian = extra->hessian, more = extra->count;
    const double all_gradient = total->gradient, all_hessian = total->hessian, all = total->count;
    for (int32_t k = 0; k < n; k++) {
        const double count = counts[k] + more, steps = hessians[k] + more_hessian;
        const double left = (gradients[k] + more_gradient) * unit, right = all_gradient * unit - left;
        const double left_hessian = steps * hessian_unit + l2;
        const double right_hessian = (all_hessian - steps) * hessian_unit + l2;
        const double score = children_score(left, left_hessian, right, right_hessian);
        const int large_enough = (count >= least) & (all - count >= least) & (steps >= least_hessian) &
                                 (all_hessian - steps >= least_hessian);
        scores[k] = large_enough ? score : -INFINITY;
    }
}

#endif
