/* The rows of one query ranked by score, and the sums over their pairs.
 *
 *   rank          0     1     2    ...   n - 1 | empty rows up to a whole chunk
 *   row i         |----> all rows j below it, for i < top
 *
 * Every pair adds the same number to row j and, with the other sign, to row i. What falls to row i is
 * collected in eight lanes (row j in lane j mod 8), which are added up in one order at the end: the compiler
 * may use registers of any width, and the bits stay the same. A pair with an empty row adds exactly 0: such a
 * row has the exponential 0 and a grade below all others. Row i is emptied at its turn, so that its chunks,
 * and those of the rows below it, may begin above i. */
#ifndef RANKTREES_PAIRS_H
#define RANKTREES_PAIRS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "portable.h"
#include "simd.h"

#define LANES 8
#define EMPTY_GRADE -1
#define RUN 256      /* rows that are ranked by counting; sorted runs are merged */
#define RUN_CHUNK 32 /* of a run; its last is filled up */

/* ranks = for each of up to RUN rows, how many have a higher score, in 15 bits; rows that are equal in these
 * share a rank. Every two rows are compared, and of short numbers a register holds many. */
EACH_WIDTH(void, count_above, (int64_t n, const double *RESTRICT scores, int16_t *RESTRICT ranks),
           (n, scores, ranks)) {
    const int64_t end = (n + RUN_CHUNK - 1) / RUN_CHUNK * RUN_CHUNK;
    double filled[RUN], low[LANES], high[LANES];
    int16_t keys[RUN];
    memcpy(filled, scores, n * sizeof(double));
    for (int64_t i = n; i < end; i++)
        filled[i] = NAN;
    for (int lane = 0; lane < LANES; lane++) {
        low[lane] = INFINITY;
        high[lane] = -INFINITY;
    }
    for (int64_t chunk = 0; chunk < end; chunk += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const double score = filled[chunk + lane];
            low[lane] = score < low[lane] ? score : low[lane];
            high[lane] = score > high[lane] ? score : high[lane];
        }
    for (int lane = 1; lane < LANES; lane++) {
        low[0] = low[lane] < low[0] ? low[lane] : low[0];
        high[0] = high[lane] > high[0] ? high[lane] : high[0];
    }
    const double lowest = low[0], steps = INT16_MAX / (high[0] - lowest), scale = steps < 1e300 ? steps : 0.0;
    for (int64_t i = 0; i < end; i++) {
        const double key = (filled[i] - lowest) * scale;
        keys[i] = (int16_t)(int32_t)(key > 0.0 ? key : 0.0); /* 0 for NaN: not above any row */
        ranks[i] = 0;
    }
    for (int64_t j = 0; j < n; j += 4)
        for (int64_t i = 0; i < end; i++)
            ranks[i] += (keys[j] > keys[i]) + (keys[j + 1] > keys[i]) + (keys[j + 2] > keys[i]) +
                        (keys[j + 3] > keys[i]);
}

INLINE double sum_lanes(const double *lanes) {
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

/* e^(sigma (score - middle)), at least e^-700, in the rows i ... n - 1; 0 in the rest of their chunks. */
INLINE void fill_exponentials(int64_t i, int64_t n, double sigma, double middle,
                              const double *RESTRICT scores, double *RESTRICT exponentials) {
    const int64_t start = i / LANES * LANES, end = (n + LANES - 1) / LANES * LANES;
    for (int64_t j = start; j < end; j++) {
        const double x = sigma * (scores[j] - middle);
        exponentials[j] = x < -700.0 ? -700.0 : x;
    }
    for (int64_t j = start; j < end; j++)
        exponentials[j] = portable_exp_unclipped(exponentials[j]);
    for (int64_t j = start; j < i; j++)
        exponentials[j] = 0.0;
    for (int64_t j = n; j < end; j++)
        exponentials[j] = 0.0;
}

/* What a pair weighs.
 *   PLAIN     1 if the grades differ
 *   SWAPPED   |grade_i - grade_j| * |discount_i - discount_j|
 *   SIZED     the same; and the |lambda| of all pairs are added up
 *   SPREAD    the same as SIZED, over a gap of 0.01 + |score_i - score_j| */
enum { PLAIN, SWAPPED, SIZED, SPREAD };

/* The lambda of a pair and its curvature. upper and lower are the exponentials of its rows, and share is
 * 1 / (their sum * gap): worse * share is the probability that the order is wrong, over the gap. */
INLINE double lambda_of_pair(int kind, double difference, double swap, double gap, double upper, double lower,
                             double share, double *curvature) {
    const double sign = (difference > 0 ? 1.0 : 0.0) - (difference < 0 ? 1.0 : 0.0);
    const double weight = kind == PLAIN ? sign : difference * fabs(swap);
    const double worse = difference > 0 ? lower : upper, better = difference > 0 ? upper : lower;
    const double lambda = weight * worse * share;
    *curvature = fabs(lambda) * (better * share) * gap;
    return lambda;
}

/* Add the pairs of row i, and of row i + 1 if two, with all rows below. Two rows share the loads and stores
 * of those below, and a division: 1 / a is b / (a b). */
INLINE void add_rows(int kind, int two, int64_t i, int64_t n, const double *RESTRICT discounts,
                     const double *RESTRICT scores, double *RESTRICT grades, double *RESTRICT exponentials,
                     double *RESTRICT gradients, double *RESTRICT hessians, double *RESTRICT size) {
    double gradient_i[LANES] = {0}, hessian_i[LANES] = {0}, gradient_k[LANES] = {0}, hessian_k[LANES] = {0};
    const int64_t k = i + two;
    const double grade_i = grades[i], score_i = scores[i], e_i = exponentials[i];
    const double grade_k = grades[k], score_k = scores[k], e_k = exponentials[k];
    const double discount_i = kind == PLAIN ? 0.0 : discounts[i];
    const double discount_k = kind == PLAIN ? 0.0 : discounts[k];
    grades[i] = EMPTY_GRADE;
    exponentials[i] = 0.0;
    for (int64_t chunk = i / LANES * LANES; chunk < n; chunk += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const int64_t j = chunk + lane;
            const double grade = grades[j], e = exponentials[j];
            const double discount = kind == PLAIN ? 0.0 : discounts[j];
            const double gap_i = kind == SPREAD ? 0.01 + fabs(score_i - scores[j]) : 1.0;
            const double gap_k = kind == SPREAD ? 0.01 + fabs(score_k - scores[j]) : 1.0;
            const double sum_i = (e_i + e) * gap_i, sum_k = two ? (e_k + e) * gap_k : 1.0;
            const double inverse = 1.0 / (sum_i * sum_k);
            const double share_i = inverse * sum_k, share_k = inverse * sum_i;
            double curvature_i, curvature_k;
            const double lambda_i = lambda_of_pair(kind, grade_i - grade, discount_i - discount, gap_i, e_i,
                                                   e, share_i, &curvature_i);
            const double lambda_k = lambda_of_pair(kind, grade_k - grade, discount_k - discount, gap_k, e_k,
                                                   e, share_k, &curvature_k);
            gradient_i[lane] += lambda_i;
            hessian_i[lane] += curvature_i;
            gradient_k[lane] += lambda_k; /* 0 where j is k */
            hessian_k[lane] += curvature_k;
            gradients[j] += two ? lambda_i + lambda_k : lambda_i;
            hessians[j] += two ? curvature_i + curvature_k : curvature_i;
            if (kind == SIZED || kind == SPREAD)
                size[lane] += two ? fabs(lambda_i) + fabs(lambda_k) : fabs(lambda_i);
        }
    gradients[i] -= sum_lanes(gradient_i);
    hessians[i] += sum_lanes(hessian_i);
    if (two) {
        gradients[k] -= sum_lanes(gradient_k);
        hessians[k] += sum_lanes(hessian_k);
        grades[k] = EMPTY_GRADE;
        exponentials[k] = 0.0;
    }
}

INLINE double pairs_of_query(int kind, int64_t n, int64_t top, double sigma, const double *discounts,
                             const double *scores, double *grades, double *exponentials, double *gradients,
                             double *hessians) {
    double size[LANES] = {0};
    int64_t i = 0;
    if (sigma * (scores[0] - scores[n - 1]) < 200.0) {
        fill_exponentials(0, n, sigma, 0.5 * scores[0] + 0.5 * scores[n - 1], scores, exponentials);
        for (; i + 1 < top; i += 2)
            add_rows(kind, 1, i, n, discounts, scores, grades, exponentials, gradients, hessians, size);
        if (i < top)
            add_rows(kind, 0, i, n, discounts, scores, grades, exponentials, gradients, hessians, size);
    } else /* no middle suits all rows: each gets its own */
        for (; i < top; i++) {
            fill_exponentials(i, n, sigma, scores[i], scores, exponentials);
            add_rows(kind, 0, i, n, discounts, scores, grades, exponentials, gradients, hessians, size);
        }
    return sum_lanes(size);
}

#define PAIRS(name, kind)                                                                                    \
    EACH_WIDTH(double, name,                                                                                 \
               (int64_t n, int64_t top, double sigma, const double *discounts, const double *scores,         \
                double *grades, double *exponentials, double *gradients, double *hessians),                  \
               (n, top, sigma, discounts, scores, grades, exponentials, gradients, hessians)) {              \
        return pairs_of_query(kind, n, top, sigma, discounts, scores, grades, exponentials, gradients,       \
                              hessians);                                                                     \
    }
PAIRS(plain_pairs, PLAIN)
PAIRS(swapped_pairs, SWAPPED)
PAIRS(sized_pairs, SIZED)
PAIRS(spread_pairs, SPREAD)

/* Add every pair to its rows' gradients and hessians. grades lose what they held. Returns the sum of the
 * |lambda|, or 0 where they are not added up. */
static inline double add_pairs(int kind, int64_t n, int64_t top, double sigma, const double *discounts,
                               const double *scores, double *grades, double *exponentials,
                               double *gradients, double *hessians) {
    return (kind == PLAIN     ? plain_pairs
            : kind == SWAPPED ? swapped_pairs
            : kind == SIZED   ? sized_pairs
                              : spread_pairs)(n, top, sigma, discounts, scores, grades, exponentials,
                                              gradients, hessians);
}

#endif
