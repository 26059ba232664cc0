/* The gain of the best split of each feature, if cuts may lie only between its cells. */
#ifndef RANKTREES_CELLS_H
#define RANKTREES_CELLS_H

#include "support/bins.h"
#include "support/codes.h"
#include "growing/gains.h"

enum { SIDE_BY_SIDE = 16 }; /* with eight side by side, compilers do not vectorise the loop */

/* Transpose 16 cells of each of 16 features to 16 features of each cell. */
INLINE void transpose_cells(const int64_t *const *cells, int64_t (*sums)[SIDE_BY_SIDE]) {
    for (int f = 0; f < SIDE_BY_SIDE; f++)
        for (int c = 0; c < COARSE_CELLS; c++)
            sums[c][f] = cells[f][c];
}

/* For each of 16 features, the best gain of two children, from its 16 cells. Each cell has one lane, and the last cell
 * is that of rows without a value. The features are processed side by side, so that no sum waits for the one before.
 * The hessian of a child must be at least ``least``. If rows are counted, it must have enough of them, too. */
INLINE void best_of_cells(int width, int bounded, int counted, const int64_t *const *cells,
                          const int64_t *const *counts, int bits, const sums *total, double least,
                          const double *RESTRICT signs, const rules *rule, double *RESTRICT best) {
    const int last = COARSE_CELLS - 1;
    const double all_gradient = total->gradient, all_hessian = total->hessian;
    int64_t sums[COARSE_CELLS][SIDE_BY_SIDE], lacking = 0;
    double gradients[COARSE_CELLS][SIDE_BY_SIDE], hessians[COARSE_CELLS][SIDE_BY_SIDE];
    double rows[COARSE_CELLS][SIDE_BY_SIDE];
    if (counted) {
        transpose_cells(counts, sums);
        for (int c = 0; c < COARSE_CELLS; c++)
            for (int f = 0; f < SIDE_BY_SIDE; f++)
                rows[c][f] = (double)sums[c][f];
        for (int f = 0; f < SIDE_BY_SIDE; f++)
            lacking |= sums[last][f];
    }
    transpose_cells(cells, sums);
    for (int c = 0; c < COARSE_CELLS; c++)
        for (int f = 0; f < SIDE_BY_SIDE; f++) {
            gradients[c][f] = gradient_of(width, sums[c][f], bits);
            hessians[c][f] = hessian_of(width, sums[c][f], bits);
        }
    for (int f = 0; f < SIDE_BY_SIDE; f++) {
        lacking |= sums[last][f];
        best[f] = -INFINITY;
    }
    /* with the rows without a value on the right and then, if there are any, on the left, where they come first */
    for (int side = lacking ? rule->first_side : 0; side <= (lacking ? rule->last_side : 0); side++) {
        double gradient[SIDE_BY_SIDE] = {0}, steps[SIDE_BY_SIDE] = {0}, count[SIDE_BY_SIDE] = {0};
        for (int c = side ? -1 : 0; c < last; c++)
            for (int f = 0; f < SIDE_BY_SIDE; f++) {
                gradient[f] += gradients[c < 0 ? last : c][f];
                steps[f] += hessians[c < 0 ? last : c][f];
                const children both = children_of(gradient[f], steps[f], all_gradient, all_hessian, rule);
                int allowed = (steps[f] >= least) & (all_hessian - steps[f] >= least);
                if (counted) {
                    count[f] += rows[c < 0 ? last : c][f];
                    allowed &=
                        (count[f] >= rule->min_samples_leaf) & (total->count - count[f] >= rule->min_samples_leaf);
                }
                if (bounded) {
                    const double direction = both.left * both.right_hessian - both.right * both.left_hessian;
                    allowed &= (signs[f] == 0) | (signs[f] * direction >= 0);
                }
                const double gain = allowed ? children_gain(&both) : -INFINITY;
                best[f] = gain > best[f] ? gain : best[f];
            }
    }
}

/* Find the gains of ``features[0], features[1], ...`` up to the n-th; that of a feature of -1 is -inf. ``places`` says
 * where the cells of each feature begin in the line, and in that of the numbers of rows, ``counts``, if it is given. */
EACH_WIDTH(void, gains_of_cells,
           (const int64_t *RESTRICT line, const int64_t *RESTRICT counts, const int32_t *RESTRICT features,
            int64_t n, const int64_t *RESTRICT places, const int8_t *RESTRICT signs, int bits,
            const sums *total, double least, const rules *rule, double *RESTRICT gains),
           (line, counts, features, n, places, signs, bits, total, least, rule, gains)) {
    for (int64_t first = 0; first < n; first += SIDE_BY_SIDE) {
        const int64_t *cells[SIDE_BY_SIDE], *counted[SIDE_BY_SIDE];
        double own_signs[SIDE_BY_SIDE], best[SIDE_BY_SIDE];
        for (int f = 0; f < SIDE_BY_SIDE; f++) { /* behind the last feature, any cells will do */
            const int32_t feature = first + f < n ? features[first + f] : -1;
            cells[f] = line + (feature < 0 ? 0 : places[feature]);
            counted[f] = counts ? counts + (feature < 0 ? 0 : places[feature]) : cells[f];
            own_signs[f] = signs && feature >= 0 ? signs[feature] : 0.0;
        }
        if (counts)
            best_of_cells(width, signs != NULL, 1, cells, counted, bits, total, least, own_signs, rule, best);
        else if (signs)
            best_of_cells(width, 1, 0, cells, counted, bits, total, least, own_signs, rule, best);
        else
            best_of_cells(width, 0, 0, cells, counted, bits, total, least, own_signs, rule, best);
        for (int f = 0; f < SIDE_BY_SIDE && first + f < n; f++)
            gains[first + f] = features[first + f] < 0 ? -INFINITY : best[f];
    }
}

EACH_WIDTH(double, largest_gain, (int64_t n, const double *gains), (n, gains)) {
    double largest[SIDE_BY_SIDE], all = -INFINITY;
    const int64_t whole = n / SIDE_BY_SIDE * SIDE_BY_SIDE;
    for (int i = 0; i < SIDE_BY_SIDE; i++)
        largest[i] = -INFINITY;
    for (int64_t first = 0; first < whole; first += SIDE_BY_SIDE)
        for (int i = 0; i < SIDE_BY_SIDE; i++)
            largest[i] = gains[first + i] > largest[i] ? gains[first + i] : largest[i];
    for (int64_t i = whole; i < n; i++)
        largest[i - whole] = gains[i] > largest[i - whole] ? gains[i] : largest[i - whole];
    for (int i = 0; i < SIDE_BY_SIDE; i++)
        all = largest[i] > all ? largest[i] : all;
    return all;
}

/* Whether any cut between the n bins of a feature may give children with a gain above ``gain``. Each bin has one
 * lane, and the bin of rows without a value comes after them. Most features of a leaf fail this test, and need not be
 * scanned. There is no division: both sides of a/b + c/d > s are multiplied by b d, in integer steps, with a margin
 * for rounding. */
EACH_WIDTH(int, may_beat,
           (const int64_t *RESTRICT cells, int32_t n, int bits, const sums *total, const rules *rule, double gain),
           (cells, n, bits, total, rule, gain)) {
    const int64_t missing = cells[n];
    const double least = rule->min_samples_leaf > rule->min_hessian ? rule->min_samples_leaf : rule->min_hessian;
    const double l2 = rule->l2 / rule->hessian_unit;
    const double in_steps = gain / rule->gradient_unit * (rule->hessian_unit / rule->gradient_unit);
    const double to_beat = in_steps * (1 - 0x1p-40);
    int64_t running[CODES], sum = 0, found = 0;
    if (!((to_beat >= 0x1p-500 || gain == 0) && to_beat < 0x1p500 && l2 < 0x1p100))
        return 1;
    for (int32_t c = 0; c < n; c++)
        running[c] = sum += cells[c];
    for (int side = 0; side < (missing ? 2 : 1); side++) { /* both sides, even if only one is allowed */
        const int64_t more = side ? missing : 0;
        for (int32_t c = 0; c < n; c++) {
            const double left = gradient_of(width, running[c] + more, bits), right = total->gradient - left;
            const double left_steps = hessian_of(width, running[c] + more, bits);
            const double right_steps = total->hessian - left_steps;
            const double left_hessian = left_steps + l2, right_hessian = right_steps + l2;
            const double both = left * left * right_hessian + right * right * left_hessian;
            found |=
                (both > to_beat * (left_hessian * right_hessian)) & (left_steps >= least) & (right_steps >= least);
        }
    }
    return found != 0;
}

#endif
