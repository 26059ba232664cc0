/* The gain of the two children of each candidate split; see scanning.pyx.
 *
 * The gain of rows that take their best value together is G^2 / (H + l2), twice the amount by which the loss falls. A
 * split gains by how much the gain of its children exceeds that of the undivided leaf.
 *
 * Sums are whole numbers held in doubles: gradients and hessians in integer steps, and numbers of rows. */
#ifndef RANKTREES_GAINS_H
#define RANKTREES_GAINS_H

#include <math.h>
#include <stdint.h>

#include "support/simd.h"

#define RELATIVE_NOISE 0x1p-40

typedef struct {
    double gradient, hessian, count;
} sums;

typedef struct {
    double l2;
    double min_gain;
    double gradient_unit; /* the gradient that one integer step stands for */
    double hessian_unit;
    double min_samples_leaf;
    double min_hessian;        /* in integer steps, at least one */
    int first_side, last_side; /* the sides where rows without a value are tried: 0 right, 1 left */
} rules;

typedef struct {
    double left, left_hessian, right, right_hessian; /* the hessians include l2 */
} children;

/* The children of which the left one has the first two sums, and both together have the next two. */
INLINE children children_of(double gradient, double steps, double all_gradient, double all_hessian,
                            const rules *rule) {
    children both;
    both.left = gradient * rule->gradient_unit;
    both.right = all_gradient * rule->gradient_unit - both.left;
    both.left_hessian = steps * rule->hessian_unit + rule->l2;
    both.right_hessian = (all_hessian - steps) * rule->hessian_unit + rule->l2;
    return both;
}

/* The gain of both children. */
INLINE double children_gain(const children *both) {
    return both->left * (both->left / both->left_hessian) + both->right * (both->right / both->right_hessian);
}

/* The gain of a leaf that is not split. */
INLINE double undivided_gain_of(const sums *total, const rules *rule) {
    const double gradient = total->gradient * rule->gradient_unit;
    const double hessian = total->hessian * rule->hessian_unit + rule->l2;
    return hessian > 0 ? gradient * (gradient / hessian) : 0.0;
}

/* The gain that children must exceed. A small share more is rounding, not signal. The gain of a value that is held within
 * bounds may be negative. */
INLINE double least_gain(double undivided_gain, const rules *rule) {
    return undivided_gain + (RELATIVE_NOISE * fabs(undivided_gain) + rule->min_gain);
}

/* The hessian of a share of the min_samples_leaf rows that a child must have, if these are average rows of the leaf; at
 * least min_hessian. */
INLINE double hessian_of_rows(const sums *total, double share, const rules *rule) {
    const double hessian = share * rule->min_samples_leaf * (total->hessian / total->count);
    return hessian > rule->min_hessian ? hessian : rule->min_hessian;
}

/* gains[k] = G_l (G_l / (H_l + l2)) + G_r (G_r / (H_r + l2)), or -inf if a child would be too small.
 * The left child has the sums up to candidate k, plus extra. */
EACH_WIDTH(void, gains_of_children,
           (int32_t n, const double *RESTRICT gradients, const double *RESTRICT hessians,
            const double *RESTRICT counts, const sums *extra, const sums *total, const rules *rule,
            double *RESTRICT gains),
           (n, gradients, hessians, counts, extra, total, rule, gains)) {
    const double least = rule->min_samples_leaf, least_hessian = rule->min_hessian;
    const double more_gradient = extra->gradient, more_hessian = extra->hessian, more = extra->count;
    const double all_gradient = total->gradient, all_hessian = total->hessian, all = total->count;
    for (int32_t k = 0; k < n; k++) {
        const double count = counts[k] + more, steps = hessians[k] + more_hessian;
        const children both = children_of(gradients[k] + more_gradient, steps, all_gradient, all_hessian, rule);
        const double gain = children_gain(&both);
        const int large_enough = (count >= least) & (all - count >= least) & (steps >= least_hessian) &
                                 (all_hessian - steps >= least_hessian);
        gains[k] = large_enough ? gain : -INFINITY;
    }
}

#endif
