/* Compare the probabilities that the scores of a query give its rows with those that its labels give them.
 *
 * Sums are collected in eight lanes (row i in lane i mod 8) and added up in one fixed order at the end. The
 * compiler may therefore use registers of any width without a change to the bits of the result. */
#ifndef RANKTREES_SOFTMAX_H
#define RANKTREES_SOFTMAX_H

#include <math.h>
#include <stdint.h>

#include "support/portable.h"
#include "support/simd.h"

#define SOFTMAX_LANES 8

INLINE double softmax_lanes(const double *lanes) {
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

INLINE double softmax_sum(int64_t n, const double *RESTRICT values) {
    double lanes[SOFTMAX_LANES] = {0};
    int64_t i = 0;
    for (; i + SOFTMAX_LANES <= n; i += SOFTMAX_LANES)
        for (int lane = 0; lane < SOFTMAX_LANES; lane++)
            lanes[lane] += values[i + lane];
    for (int lane = 0; i + lane < n; lane++)
        lanes[lane] += values[i + lane];
    return softmax_lanes(lanes);
}

/* out = masses, minus a uniform draw for each if `drawn`, times the weights if there are any. */
INLINE void fill_targets(int64_t n, const double *RESTRICT masses, const double *RESTRICT weights, int drawn,
                         uint64_t key, uint64_t first, double *RESTRICT out) {
    if (drawn)
        for (int64_t i = 0; i < n; i++)
            out[i] = masses[i] - portable_uniform(portable_draw(key, first + (uint64_t)i));
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = masses[i];
    if (weights)
        for (int64_t i = 0; i < n; i++)
            out[i] *= weights[i];
}

/* The highest score among the rows with a weight above 0; -infinity if there are none. */
INLINE double highest_of_weight(int64_t n, const double *RESTRICT weights, const double *RESTRICT scores) {
    double high[SOFTMAX_LANES];
    for (int lane = 0; lane < SOFTMAX_LANES; lane++)
        high[lane] = -INFINITY;
    int64_t i = 0;
#define RAISE(lane)                                                                                          \
    do {                                                                                                     \
        const double score = !weights || weights[i + lane] > 0 ? scores[i + lane] : -INFINITY;               \
        high[lane] = score > high[lane] ? score : high[lane];                                                \
    } while (0)
    for (; i + SOFTMAX_LANES <= n; i += SOFTMAX_LANES)
        for (int lane = 0; lane < SOFTMAX_LANES; lane++)
            RAISE(lane);
    for (int lane = 0; i + lane < n; lane++)
        RAISE(lane);
#undef RAISE
    for (int lane = 1; lane < SOFTMAX_LANES; lane++)
        high[0] = high[lane] > high[0] ? high[lane] : high[0];
    return high[0];
}

/* The gradients of one query are weight * (p - q), the hessians weight * p (1 - p). Here w are the weights of the
 * rows, weight is their mean, p_i = w_i e^score_i / sum, and q_i = w_i mass_i / sum. */
EACH_WIDTH(void, softmax_of_query,
           (int64_t n, const double *RESTRICT masses, const double *RESTRICT weights,
            const double *RESTRICT scores, int drawn, uint64_t key, uint64_t first,
            double *RESTRICT gradients, double *RESTRICT hessians),
           (n, masses, weights, scores, drawn, key, first, gradients, hessians)) {
    const double high = highest_of_weight(n, weights, scores);
    fill_targets(n, masses, weights, drawn, key, first, gradients);
    const double mass = softmax_sum(n, gradients);
    for (int64_t i = 0; i < n; i++) {
        const double x = scores[i] - high, below = x < -700.0 ? -700.0 : x;
        hessians[i] = below > 0.0 ? 0.0 : below;
    }
    for (int64_t i = 0; i < n; i++)
        hessians[i] = portable_exp_unclipped(hessians[i]);
    double weight = 1.0;
    if (weights) {
        for (int64_t i = 0; i < n; i++)
            hessians[i] *= weights[i];
        weight = softmax_sum(n, weights) / (double)n;
    }
    const double sum = softmax_sum(n, hessians);
    const double of_mass = mass > 0.0 ? 1.0 / mass : 0.0, of_sum = mass > 0.0 && sum > 0.0 ? 1.0 / sum : 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double p = hessians[i] * of_sum, q = gradients[i] * of_mass;
        gradients[i] = weight * (p - q);
        hessians[i] = weight * (p * (1.0 - p));
    }
}

/* Squared error about the mean of the query. The gradients are weights * (residual - weighted mean of residuals). */
EACH_WIDTH(void, centred_of_query,
           (int64_t n, const double *RESTRICT labels, const double *RESTRICT weights,
            const double *RESTRICT scores, double *RESTRICT gradients, double *RESTRICT hessians),
           (n, labels, weights, scores, gradients, hessians)) {
    for (int64_t i = 0; i < n; i++) {
        hessians[i] = weights ? weights[i] : 1.0;
        gradients[i] = hessians[i] * (scores[i] - labels[i]);
    }
    const double weight = softmax_sum(n, hessians);
    const double mean = weight > 0.0 ? softmax_sum(n, gradients) / weight : 0.0;
    for (int64_t i = 0; i < n; i++)
        gradients[i] = hessians[i] * ((scores[i] - labels[i]) - mean);
}

#endif
