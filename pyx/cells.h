/* What the best split of each feature would score, if cuts could lie between its cells only. */
#ifndef RANKTREES_CELLS_H
#define RANKTREES_CELLS_H

#include "gains.h"

enum { COARSE_CELLS = 16, MOST_BINS = 256 };

/* One line of 16 cells, one lane each, the last of rows without a value: the best score of two children.
 * Sizes are judged by hessians: ``least`` is the smallest sum that a child may have. */
INLINE double best_of_cells(const int64_t *RESTRICT cells, int bits, double all_gradient, double all_hessian,
                            double least, int8_t sign, const rules *rule) {
    const int64_t mask = ((int64_t)1 << bits) - 1, missing = cells[COARSE_CELLS - 1];
    double gradient[COARSE_CELLS], hessian[COARSE_CELLS], best = -INFINITY;
    int64_t sum = 0;
    for (int c = 0; c < COARSE_CELLS; c++) {
        sum += cells[c];
        gradient[c] = (double)(sum >> bits);
        hessian[c] = (double)(sum & mask);
    }
    if (rule->last_side) /* there those without a value may be alone on the left */
        gradient[COARSE_CELLS - 1] = hessian[COARSE_CELLS - 1] = 0.0;
    /* the rows without a value on the right, then, where there are some, on the left */
    for (int side = missing ? rule->first_side : 0; side <= (missing ? rule->last_side : 0); side++) {
        const double more = side ? (double)(missing >> bits) : 0.0;
        const double more_hessian = side ? (double)(missing & mask) : 0.0;
        double scores[COARSE_CELLS];
        for (int c = 0; c < COARSE_CELLS; c++) {
            const double steps = hessian[c] + more_hessian;
            const children both = children_of(gradient[c] + more, steps, all_gradient, all_hessian, rule);
            const double order = both.left * both.right_hessian - both.right * both.left_hessian;
            const int allowed = (steps >= least) & (all_hessian - steps >= least) &
                                ((sign == 0) | (sign * order >= 0));
            const double score = children_score(&both);
            scores[c] = allowed ? score : -INFINITY;
        }
        for (int c = 0; c < COARSE_CELLS; c++)
            best = scores[c] > best ? scores[c] : best;
    }
    return best;
}

/* The features ``features[0], features[1], ...`` (to n or to the first -1); ``places`` says where in the line
 * their cells are. */
EACH_WIDTH(void, score_cells,
           (const int64_t *RESTRICT line, const int32_t *RESTRICT features, int64_t n,
            const int64_t *RESTRICT places, const int8_t *RESTRICT signs, int bits, double all_gradient,
            double all_hessian, double least, const rules *rule, double *RESTRICT scores),
           (line, features, n, places, signs, bits, all_gradient, all_hessian, least, rule, scores)) {
    for (int64_t k = 0; k < n; k++)
        scores[k] = features[k] < 0 ? -INFINITY
                                    : best_of_cells(line + places[features[k]], bits, all_gradient, all_hessian,
                                                    least, signs ? signs[features[k]] : 0, rule);
}

/* Whether a cut between any of the n bins of a feature, one lane each, behind them that of rows without a value, may
 * make children that score more than ``score``. Most features of a leaf do not, and need no closer look. There is no
 * division: of a/b + c/d > s both sides are multiplied by b d, in integer steps, with room for what rounding does. */
EACH_WIDTH(int, may_beat,
           (const int64_t *RESTRICT cells, int32_t n, int bits, const sums *total, const rules *rule, double score),
           (cells, n, bits, total, rule, score)) {
    const int64_t mask = ((int64_t)1 << bits) - 1, missing = cells[n];
    const double least = rule->min_samples_leaf > rule->min_hessian ? rule->min_samples_leaf : rule->min_hessian;
    const double l2 = rule->l2 / rule->hessian_unit;
    const double in_steps = score / rule->gradient_unit * (rule->hessian_unit / rule->gradient_unit);
    const double to_beat = in_steps * (1 - 0x1p-40);
    int64_t running[MOST_BINS], sum = 0, found = 0;
    if (!((to_beat >= 0x1p-500 || score == 0) && to_beat < 0x1p500 && l2 < 0x1p100))
        return 1;
    for (int32_t c = 0; c < n; c++)
        running[c] = sum += cells[c];
    for (int side = 0; side < (missing ? 2 : 1); side++) { /* whichever of them is allowed */
        const int64_t more = side ? missing : 0;
        for (int32_t c = 0; c < n; c++) {
            const double left = (double)((running[c] + more) >> bits), right = total->gradient - left;
            const double left_steps = (double)((running[c] + more) & mask);
            const double right_steps = total->hessian - left_steps;
            const double left_hessian = left_steps + l2, right_hessian = right_steps + l2;
            const double both = left * left * right_hessian + right * right * left_hessian;
            found |= (both > to_beat * (left_hessian * right_hessian)) & (left_steps >= least) & (right_steps >= least);
        }
    }
    return found != 0;
}

#endif
