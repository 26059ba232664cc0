/* The probabilities of the classes of each row, p_k = e^s_k / (sum of e^s_j), and the derivatives of -log p_label.
 *
 * scores  | class 0: row 0, row 1, ... | class 1: row 0, row 1, ... | ...     a line of `stride` places for each class
 *
 * Classes are added up in their order, so registers of any width give the same bits. */
#ifndef RANKTREES_CLASSES_H
#define RANKTREES_CLASSES_H

#include <stdint.h>

#include "support/portable.h"
#include "support/simd.h"

enum { ROWS_TOGETHER = 128 };

/* Of each row: the highest score, how many classes have it, and the sum of e^(s_k - highest) over the others. */
typedef struct {
    double highest[ROWS_TOGETHER];
    double n_highest[ROWS_TOGETHER];
    double others[ROWS_TOGETHER];
} Totals;

/* out = e^(score - highest), at most 1; `out_stride` may be 0 if only the totals are wanted. */
INLINE void powers_of_rows(int64_t n_classes, int64_t stride, int64_t n, const double *scores, int64_t out_stride,
                           double *out, Totals *totals) {
    for (int64_t i = 0; i < n; i++)
        totals->highest[i] = scores[i];
    for (int64_t k = 1; k < n_classes; k++) {
        const double *RESTRICT of_class = scores + k * stride;
        for (int64_t i = 0; i < n; i++)
            totals->highest[i] = of_class[i] > totals->highest[i] ? of_class[i] : totals->highest[i];
    }
    for (int64_t i = 0; i < n; i++)
        totals->n_highest[i] = totals->others[i] = 0.0;
    for (int64_t k = 0; k < n_classes; k++) {
        const double *RESTRICT of_class = scores + k * stride;
        double *RESTRICT powers = out + k * out_stride;
        for (int64_t i = 0; i < n; i++) {
            const double below = of_class[i] - totals->highest[i];
            const double power = portable_exp_unclipped(below < -700.0 ? -700.0 : below);
            const int is_highest = power >= 1.0;
            powers[i] = power;
            totals->n_highest[i] += is_highest ? 1.0 : 0.0;
            totals->others[i] += is_highest ? 0.0 : power;
        }
    }
}

EACH_WIDTH(void, probabilities_of_rows,
           (int64_t n_classes, int64_t stride, int64_t n, const double *scores, double *probabilities),
           (n_classes, stride, n, scores, probabilities)) {
    Totals totals;
    powers_of_rows(n_classes, stride, n, scores, stride, probabilities, &totals);
    for (int64_t k = 0; k < n_classes; k++) {
        double *RESTRICT of_class = probabilities + k * stride;
        for (int64_t i = 0; i < n; i++)
            of_class[i] /= totals.n_highest[i] + totals.others[i];
    }
}

/* The gradients are weight (p_k - [k is the label]), the hessians weight * scale * p_k (1 - p_k). */
EACH_WIDTH(void, class_gradients_of_rows,
           (int64_t n_classes, int64_t stride, int64_t n, const double *labels, const double *weights,
            const double *scores, double scale, double *gradients, double *hessians),
           (n_classes, stride, n, labels, weights, scores, scale, gradients, hessians)) {
    Totals totals;
    powers_of_rows(n_classes, stride, n, scores, stride, gradients, &totals);
    for (int64_t k = 0; k < n_classes; k++) {
        double *RESTRICT gradient = gradients + k * stride, *RESTRICT hessian = hessians + k * stride;
        const double label = (double)k;
        for (int64_t i = 0; i < n; i++) {
            const double sum = totals.n_highest[i] + totals.others[i], power = gradient[i];
            /* 1 - p, without cancellation; of classes below the highest p is at most 1/2 */
            const double rest = (power >= 1.0 ? (totals.n_highest[i] - 1.0) + totals.others[i] : sum - power) / sum;
            const double p = power / sum;
            gradient[i] = weights[i] * (labels[i] == label ? -rest : p);
            hessian[i] = weights[i] * (scale * (p * rest));
        }
    }
}

/* out = log(sum of e^s_k). */
EACH_WIDTH(void, log_sums_of_rows,
           (int64_t n_classes, int64_t stride, int64_t n, const double *scores, double *out),
           (n_classes, stride, n, scores, out)) {
    Totals totals;
    powers_of_rows(n_classes, stride, n, scores, 0, out, &totals);
    for (int64_t i = 0; i < n; i++)
        out[i] = totals.highest[i] + portable_log(totals.n_highest[i] + totals.others[i]);
}

#endif
