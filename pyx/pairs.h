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
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "portable.h"
#include "simd.h"

#define LANES 8
#define EMPTY_GRADE -1
#define RUN 256      /* rows that are ranked by counting; sorted runs are merged */
#define RUN_CHUNK 32 /* of a run; its last is filled up */

/* Have numbers brought near that are needed soon. */
static inline void prefetch(const double *numbers, int64_t n) {
#if defined(__GNUC__)
    for (int64_t i = 0; i < n; i += LANES)
        __builtin_prefetch(numbers + i);
#endif
}

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

/* out = scores + scale * log(u / (1 - u)): logistic noise by (key, number), row i having the number first + i. */
EACH_WIDTH(void, perturb, (int64_t n, const double *RESTRICT scores, double scale, uint64_t key, uint64_t first,
                           double *RESTRICT out),
           (n, scores, scale, key, first, out)) {
    for (int64_t i = 0; i < n; i++) {
        const double u = ((double)(int64_t)(portable_draw(key, first + (uint64_t)i) >> 11) + 0.5) * 0x1p-53;
        out[i] = scores[i] + scale * (0x1.62e42fefa39efp-1 * portable_log2(u / (1.0 - u)));
    }
}

/* e^(sigma (score - middle)), from e^-700 to e^700, in the rows i ... n - 1; 0 in the rest of their chunks. */
INLINE void fill_exponentials(int64_t i, int64_t n, double sigma, double middle,
                              const double *RESTRICT scores, double *RESTRICT exponentials) {
    const int64_t start = i / LANES * LANES, end = (n + LANES - 1) / LANES * LANES;
    for (int64_t j = start; j < end; j++) {
        const double x = sigma * (scores[j] - middle), high = x > 700.0 ? 700.0 : x;
        exponentials[j] = high < -700.0 ? -700.0 : high;
    }
    for (int64_t j = start; j < end; j++)
        exponentials[j] = portable_exp_unclipped(exponentials[j]);
    for (int64_t j = start; j < i; j++)
        exponentials[j] = 0.0;
    for (int64_t j = n; j < end; j++)
        exponentials[j] = 0.0;
}

/* What a pair weighs, row i above row j. The grades differ: else it weighs nothing.
 *   PLAIN     1
 *   SWAPPED   |grade_i - grade_j| * |worth_i - worth_j|, of what ranks are worth
 *   MIXED     |grade_i - grade_j| * (|worth_i - worth_j| + apart of the distance j - i)
 *   SHARED    |grade_i - grade_j| * |worth_i - worth_j| * share_i
 *   TURNED    |grade_i - grade_j| * |worth_i - worth_j|, of what ranks are worth to the better row: it leaves
 *             rank i (worth) or rises to it (risen)
 *   GIVEN     deltas[i][j]
 *   HINGE     1; its cost is max(0, sigma - (score_better - score_worse))^2 / 2, of all others
 *             log(1 + e^(-sigma (score_better - score_worse)))
 * With spread, that over a gap of 0.01 + |score_i - score_j|. With sized, the |lambda| are added up. */
enum { PLAIN, SWAPPED, MIXED, SHARED, TURNED, GIVEN, HINGE };

/* What the pairs of a query read; those arrays are there that their kind needs. */
typedef struct {
    const double *worth, *risen, *shares; /* of each rank, in whole chunks */
    const double *apart;                  /* apart[d], for d >= -LANES */
    const double *deltas;                 /* a matrix of lines of whole chunks */
    int shuffled;                         /* whether the rows stand in another order than that of their scores */
} Weighing;

INLINE double weight_of_pair(int kind, double difference, double swap, double turned, double apart,
                             double share, double given) {
    const double sign = (difference > 0 ? 1.0 : 0.0) - (difference < 0 ? 1.0 : 0.0);
    return kind == SWAPPED  ? difference * fabs(swap)
           : kind == MIXED  ? difference * (fabs(swap) + apart)
           : kind == SHARED ? difference * share * fabs(swap)
           : kind == TURNED ? difference * fabs(difference > 0 ? swap : turned)
           : kind == GIVEN  ? sign * given
                            : sign;
}

/* The lambda of a pair and its curvature. upper and lower are the exponentials of its rows: that the order is
 * wrong has the probability lower / (upper + lower) where the upper row is the better. */
INLINE double lambda_of_pair(double difference, double weight, double gap, double upper, double lower,
                             double *curvature) {
    const double share = 1.0 / ((upper + lower) * gap), each = weight * share;
    *curvature = fabs(each) * (upper * lower * share) * gap;
    return each * (difference > 0 ? lower : upper);
}

/* The same of the squared hinge; drop is how far row i scores above row j. */
INLINE double hinge_of_pair(double sign, double margin, double drop, double *curvature) {
    const double lack = margin - sign * drop, missing = lack > 0 ? lack : 0.0;
    *curvature = lack > 0 ? fabs(sign) : 0.0;
    return sign * missing;
}

/* Add the pairs of row i, and of row i + 1 if two, with all rows below. Two rows share the loads and stores
 * of those below. */
INLINE void add_rows(int kind, int spread, int sized, int two, int64_t i, int64_t n, double sigma,
                     const double *RESTRICT worth, const double *RESTRICT risen,
                     const double *RESTRICT shares, const double *RESTRICT apart,
                     const double *RESTRICT deltas_i, const double *RESTRICT deltas_k,
                     const double *RESTRICT scores, double *RESTRICT grades, double *RESTRICT exponentials,
                     double *RESTRICT gradients, double *RESTRICT hessians, double *RESTRICT size) {
    double gradient_i[LANES] = {0}, hessian_i[LANES] = {0}, gradient_k[LANES] = {0}, hessian_k[LANES] = {0};
    const int64_t k = i + two;
    const int ranked = kind == SWAPPED || kind == MIXED || kind == SHARED || kind == TURNED;
    const double grade_i = grades[i], score_i = scores[i], e_i = exponentials[i];
    const double grade_k = grades[k], score_k = scores[k], e_k = exponentials[k];
    const double worth_i = ranked ? worth[i] : 0.0, risen_i = kind == TURNED ? risen[i] : 0.0;
    const double worth_k = ranked ? worth[k] : 0.0, risen_k = kind == TURNED ? risen[k] : 0.0;
    const double share_i = kind == SHARED ? shares[i] : 1.0, share_k = kind == SHARED ? shares[k] : 1.0;
    grades[i] = EMPTY_GRADE;
    exponentials[i] = 0.0;
    for (int64_t chunk = i / LANES * LANES; chunk < n; chunk += LANES)
        for (int lane = 0; lane < LANES; lane++) {
            const int64_t j = chunk + lane;
            const double grade = grades[j], e = exponentials[j];
            const double swap = ranked ? worth[j] : 0.0, turned = kind == TURNED ? risen[j] : 0.0;
            const double weight_i = weight_of_pair(
                kind, grade_i - grade, worth_i - swap, risen_i - turned, kind == MIXED ? apart[j - i] : 0.0,
                share_i, kind == GIVEN ? deltas_i[j] : 0.0);
            const double weight_k = weight_of_pair(
                kind, grade_k - grade, worth_k - swap, risen_k - turned, kind == MIXED ? apart[j - k] : 0.0,
                share_k, kind == GIVEN ? deltas_k[j] : 0.0);
            double lambda_i, lambda_k, curvature_i, curvature_k;
            if (kind == HINGE) {
                const double there = grade > EMPTY_GRADE ? 1.0 : 0.0;
                lambda_i = hinge_of_pair(there * weight_i, sigma, score_i - scores[j], &curvature_i);
                lambda_k = hinge_of_pair(there * weight_k, sigma, score_k - scores[j], &curvature_k);
            } else {
                const double gap_i = spread ? 0.01 + fabs(score_i - scores[j]) : 1.0;
                const double gap_k = spread ? 0.01 + fabs(score_k - scores[j]) : 1.0;
                lambda_i = lambda_of_pair(grade_i - grade, weight_i, gap_i, e_i, e, &curvature_i);
                lambda_k = lambda_of_pair(grade_k - grade, weight_k, gap_k, e_k, e, &curvature_k);
            }
            gradient_i[lane] += lambda_i;
            hessian_i[lane] += curvature_i;
            gradient_k[lane] += lambda_k; /* 0 where j is k */
            hessian_k[lane] += curvature_k;
            gradients[j] += two ? lambda_i + lambda_k : lambda_i;
            hessians[j] += two ? curvature_i + curvature_k : curvature_i;
            if (sized)
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

INLINE double pairs_of_query(int kind, int spread, int sized, int64_t n, int64_t top, double sigma,
                             const Weighing *by, const double *scores, double *grades, double *exponentials,
                             double *gradients, double *hessians) {
    const int64_t width = (n + LANES - 1) / LANES * LANES;
    double size[LANES] = {0}, high = scores[0], low = scores[n - 1];
    for (int64_t i = 0; by->shuffled && i < n; i++) {
        high = scores[i] > high ? scores[i] : high;
        low = scores[i] < low ? scores[i] : low;
    }
    int64_t i = 0;
#define ADD_ROWS(two)                                                                                        \
    add_rows(kind, spread, sized, two, i, n, sigma, by->worth, by->risen, by->shares, by->apart,              \
             kind == GIVEN ? by->deltas + i * width : NULL,                                                   \
             kind == GIVEN ? by->deltas + (i + two) * width : NULL, scores, grades, exponentials, gradients,  \
             hessians, size)
    if (kind == HINGE || sigma * (high - low) < 200.0) {
        if (kind != HINGE)
            fill_exponentials(0, n, sigma, 0.5 * high + 0.5 * low, scores, exponentials);
        for (; i + 1 < top; i += 2)
            ADD_ROWS(1);
        if (i < top)
            ADD_ROWS(0);
    } else /* no middle suits all rows: each gets its own */
        for (; i < top; i++) {
            fill_exponentials(i, n, sigma, scores[i], scores, exponentials);
            ADD_ROWS(0);
        }
#undef ADD_ROWS
    return sum_lanes(size);
}

#define PAIRS(name, kind, spread, sized)                                                                     \
    EACH_WIDTH(double, name,                                                                                 \
               (int64_t n, int64_t top, double sigma, const Weighing *by, const double *scores,              \
                double *grades, double *exponentials, double *gradients, double *hessians),                  \
               (n, top, sigma, by, scores, grades, exponentials, gradients, hessians)) {                     \
        return pairs_of_query(kind, spread, sized, n, top, sigma, by, scores, grades, exponentials,          \
                              gradients, hessians);                                                          \
    }
/* Measured pairs: as they are, with their size, and spread. */
#define MEASURED_PAIRS(name, kind)                                                                           \
    PAIRS(name, kind, 0, 0)                                                                                  \
    PAIRS(sized_##name, kind, 0, 1)                                                                          \
    PAIRS(spread_##name, kind, 1, 1)
PAIRS(plain_pairs, PLAIN, 0, 0)
PAIRS(hinge_pairs, HINGE, 0, 0)
MEASURED_PAIRS(swapped_pairs, SWAPPED)
MEASURED_PAIRS(mixed_pairs, MIXED)
MEASURED_PAIRS(shared_pairs, SHARED)
MEASURED_PAIRS(turned_pairs, TURNED)
MEASURED_PAIRS(given_pairs, GIVEN)

/* Add every pair whose upper row is one of the first top to its rows' gradients and hessians. grades lose what
 * they held. Returns the sum of the |lambda|, or 0 where they are not asked for. */
static inline double add_pairs(int kind, int spread, int sized, int64_t n, int64_t top, double sigma,
                               const Weighing *by, const double *scores, double *grades,
                               double *exponentials, double *gradients, double *hessians) {
#define ADD(name) (spread ? spread_##name : sized ? sized_##name : name)
    return (kind == PLAIN    ? plain_pairs
            : kind == HINGE  ? hinge_pairs
            : kind == MIXED  ? ADD(mixed_pairs)
            : kind == SHARED ? ADD(shared_pairs)
            : kind == TURNED ? ADD(turned_pairs)
            : kind == GIVEN  ? ADD(given_pairs)
                             : ADD(swapped_pairs))(n, top, sigma, by, scores, grades, exponentials, gradients,
                                                   hessians);
#undef ADD
}

#endif
