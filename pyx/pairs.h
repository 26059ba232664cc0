/* The pairs of one query, whose rows are sorted from the best score to the worst.
 *
 *   rank          0     1     2    ...   n - 1 | 8 empty rows
 *   row i         |----> all rows j below it, for i < top
 *
 * Every pair adds the same number to row j and, with the other sign, to row i. What falls to row i is
 * collected in eight lanes (row i + 1 + t in lane t mod 8), which are added up in one order at the end: the
 * compiler may use registers of any width, and the bits stay the same. Empty rows have exponential 0 and
 * grade -1, which makes their share exactly 0. */
#ifndef RANKTREES_PAIRS_H
#define RANKTREES_PAIRS_H

#include <math.h>
#include <stdint.h>

#include "portable.h"
#include "simd.h"

#define LANES 8

/* out = e^(sigma (score - middle)). The clip leaves room for products of two and for a gap. */
EACH_WIDTH(void, exponentials_of,
           (int64_t n, double sigma, double middle, const double *RESTRICT scores, double *RESTRICT out),
           (n, sigma, middle, scores, out)) {
    for (int64_t i = 0; i < n; i++) {
        double x = sigma * (scores[i] - middle);
        x = x > 600.0 ? 600.0 : x;
        x = x < -600.0 ? -600.0 : x;
        out[i] = portable_exp(x);
    }
}

INLINE double sum_lanes(const double *lanes) {
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

/* measured: a pair weighs |grade_i - grade_j| * |discount_i - discount_j|, otherwise 1 if the grades differ.
 * spread: that weight is divided by 0.01 + |score_i - score_j|. */
INLINE double pairs_of_query(int measured, int spread, int64_t n, int64_t top,
                             const double *RESTRICT discounts, const double *RESTRICT grades,
                             const double *RESTRICT scores, const double *RESTRICT exponentials,
                             double *RESTRICT gradients, double *RESTRICT hessians) {
    double size[LANES] = {0};
    for (int64_t i = 0; i < top; i++) {
        const double grade = grades[i], discount = measured ? discounts[i] : 0.0;
        const double score = scores[i], e = exponentials[i];
        double gradient[LANES] = {0}, hessian[LANES] = {0};
        for (int64_t chunk = i + 1; chunk < n; chunk += LANES)
            for (int lane = 0; lane < LANES; lane++) {
                const int64_t j = chunk + lane;
                double difference = grade - grades[j];
                double weight = measured ? fabs(discount - discounts[j]) : 1.0;
                double gap = spread ? 0.01 + (score - scores[j]) : 1.0;
                double share = 1.0 / (spread ? (e + exponentials[j]) * gap : e + exponentials[j]);
                double up = e * share, down = exponentials[j] * share;
                if (!measured)
                    difference = (difference > 0 ? 1.0 : 0.0) - (difference < 0 ? 1.0 : 0.0);
                double wrong = difference > 0 ? down : up; /* probability of the wrong order, over the gap */
                double lambda = difference * weight * wrong;
                double curvature = fabs(difference) * weight * (up * down);
                if (spread)
                    curvature *= gap;
                gradients[j] += lambda;
                hessians[j] += curvature;
                gradient[lane] += lambda;
                hessian[lane] += curvature;
                size[lane] += fabs(lambda);
            }
        gradients[i] -= sum_lanes(gradient);
        hessians[i] += sum_lanes(hessian);
    }
    return sum_lanes(size);
}

#define PAIRS(name, measured, spread)                                                                   \
    EACH_WIDTH(double, name,                                                                            \
               (int64_t n, int64_t top, const double *discounts, const double *grades,                  \
                const double *scores, const double *exponentials, double *gradients, double *hessians), \
               (n, top, discounts, grades, scores, exponentials, gradients, hessians)) {                \
        return pairs_of_query(measured, spread, n, top, discounts, grades, scores, exponentials,        \
                              gradients, hessians);                                                     \
    }
PAIRS(plain_pairs, 0, 0)
PAIRS(measured_pairs, 1, 0)
PAIRS(measured_spread_pairs, 1, 1)

/* Add every pair to its rows' gradients and hessians; returns the sum of the |lambda|. */
static inline double add_pairs(int measured, int spread, int64_t n, int64_t top, const double *discounts,
                               const double *grades, const double *scores, const double *exponentials,
                               double *gradients, double *hessians) {
    return (measured ? spread ? measured_spread_pairs : measured_pairs : plain_pairs)(
        n, top, discounts, grades, scores, exponentials, gradients, hessians);
}

#endif
