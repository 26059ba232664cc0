/* Rank the rows of one query by score, and sum over their pairs.
 *
 *   rank          0     1     2    ...   n - 1 | empty rows up to a whole chunk
 *   row i         |----> all rows j below it, for i < top
 *
 * Every pair adds the same number to row j and, with the opposite sign, to row i. The terms of row i are
 * collected in sixteen lanes (row j in lane j mod 16), which are added up in one fixed order at the end. The
 * compiler may therefore use registers of any width without a change to the bits of the result. A pair with an
 * empty row adds exactly 0, because such a row has the exponential 0 and a grade below all others.
 *
 * Pairs are computed in single precision, as twice as many fit in a register, and a sum of hundreds of pairs is
 * as accurate as each of them. Scores stay doubles until the differences from the middle of the query, or from
 * row i, are taken. */
#ifndef RANKTREES_PAIRS_H
#define RANKTREES_PAIRS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "support/portable.h"
#include "support/simd.h"

#define LANES 16
#define BLOCK 3      /* rows whose pairs are added together */
#define EMPTY_GRADE -1
#define RUN 256      /* rows that are ranked by counting; sorted runs are then merged */
#define RUN_CHUNK 64 /* rows of a run that are counted together */

/* The bits of a double as an integer, in the same order as the doubles, and back. */
INLINE int64_t in_order(int64_t bits) { return bits ^ (int64_t)((uint64_t)(bits >> 63) >> 1); }

/* above = for each of up to RUN rows, the number of rows with a higher score, in 15 bits; rows that are equal in
 * these bits have the same number. All pairs of rows are compared, many at once, as a register holds many short
 * numbers. */
EACH_WIDTH(void, count_above, (int64_t n, const double *RESTRICT scores, int16_t *RESTRICT above),
           (n, scores, above)) {
    int64_t low = INT64_MAX, high = INT64_MIN;
    int32_t wide[RUN];
    int16_t keys[RUN];
    for (int64_t i = 0; i < n; i++) { /* compilers vectorise the minimum of integers, but not that of doubles */
        const int64_t ordered = in_order((int64_t)portable_to_bits(scores[i]));
        low = ordered < low ? ordered : low;
        high = ordered > high ? ordered : high;
    }
    const double lowest = portable_from_bits((uint64_t)in_order(low));
    const double steps = INT16_MAX / (portable_from_bits((uint64_t)in_order(high)) - lowest);
    const double scale = steps < 1e300 ? steps : 0.0;
    for (int64_t i = 0; i < n; i++) {
        const double key = (scores[i] - lowest) * scale;
        wide[i] = (int32_t)(key > 0.0 ? key : 0.0); /* 0 for NaN, which is above no row */
    }
    for (int64_t i = 0; i < n; i++)
        keys[i] = (int16_t)wide[i];
    memset(keys + n, 0, (RUN - n) * sizeof(int16_t));
    for (int64_t start = 0; start < n; start += RUN_CHUNK) {
        int16_t counts[RUN_CHUNK] = {0};
        for (int64_t j = 0; j < n; j++)
            for (int lane = 0; lane < RUN_CHUNK; lane++)
                counts[lane] += keys[j] > keys[start + lane];
        memcpy(above + start, counts, sizeof counts);
    }
}

INLINE float sum_lanes(const float *lanes) {
    float sums[4];
    for (int lane = 0; lane < 4; lane++)
        sums[lane] = (lanes[lane] + lanes[lane + 8]) + (lanes[lane + 4] + lanes[lane + 12]);
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}

/* out = scores + scale * log(u / (1 - u)), with u drawn by (key, number); row i has the number first + i. */
EACH_WIDTH(void, perturb, (int64_t n, const double *RESTRICT scores, double scale, uint64_t key, uint64_t first,
                           double *RESTRICT out),
           (n, scores, scale, key, first, out)) {
    for (int64_t i = 0; i < n; i++) {
        const double u = ((double)(int64_t)(portable_draw(key, first + (uint64_t)i) >> 11) + 0.5) * 0x1p-53;
        out[i] = scores[i] + scale * (0x1.62e42fefa39efp-1 * portable_log2(u / (1.0 - u)));
    }
}

INLINE float within(float x, float limit) {
    x = x > limit ? limit : x;
    return x < -limit ? -limit : x;
}

/* Fill in score - middle and e^(sigma (score - middle)), clipped to e^-87 and e^43, for the rows i ... n - 1; the
 * other rows of their chunks get the exponential 0. Above e^43 a product with a gap could overflow, if the rows
 * stand in another order than that of their scores. */
INLINE void fill_distances(int64_t i, int64_t n, double sigma, double middle, const double *RESTRICT scores,
                           float *RESTRICT distances, float *RESTRICT exponentials) {
    const int64_t start = i / LANES * LANES, end = (n + LANES - 1) / LANES * LANES;
    for (int64_t j = start; j < end; j++) {
        const double distance = scores[j] - middle;
        distances[j] = within((float)distance, 1e30f);
        const float power = within((float)(sigma * distance), 87.0f);
        exponentials[j] = power > 43.0f ? 43.0f : power;
    }
    for (int64_t j = start; j < end; j++)
        exponentials[j] = portable_single_exp(exponentials[j]);
    for (int64_t j = start; j < i; j++)
        exponentials[j] = 0.0f;
    for (int64_t j = n; j < end; j++)
        exponentials[j] = 0.0f;
}

/* The weight of a pair, row i above row j. It is 0 if the grades are equal.
 *   PLAIN     1
 *   SWAPPED   |grade_i - grade_j| * |worth_i - worth_j|, where worth is that of a rank
 *   MIXED     |grade_i - grade_j| * (|worth_i - worth_j| + apart of the distance j - i)
 *   SHARED    |grade_i - grade_j| * |worth_i - worth_j| * share_i
 *   DIRECTED  |grade_i - grade_j| * |worth_i - worth_j|, where worth is that of a rank to the better row, which
 *             falls from rank i (worth) or rises to it (risen)
 *   GIVEN     deltas[i][j]
 *   COUNTED   by how much the swap changes the number of pairs in order less those in disorder, times the factor
 *   HINGE     1; the cost is max(0, sigma - (score_better - score_worse))^2 / 2, that of all other kinds is
 *             log(1 + e^(-sigma (score_better - score_worse)))
 * With spread, the weight is divided by a gap of least_gap + |score_i - score_j|. With sized, |lambda| is summed. */
enum { PLAIN, SWAPPED, MIXED, SHARED, DIRECTED, GIVEN, HINGE, COUNTED };

/* The input for the weights of a query's pairs. Only the arrays that their kind needs are set. */
typedef struct {
    const float *worth, *risen, *shares; /* one per rank, in whole chunks */
    const float *apart;                  /* apart[d], for d >= -2 * LANES */
    float *deltas;                       /* a matrix whose lines are whole chunks; if COUNTED, of BLOCK lines */
    int32_t *balance;                    /* of each row: the rows down to it of lower grade, less those of higher */
    float factor;
    float least_gap;
    int shuffled; /* whether the rows stand in another order than that of their scores */
} Weighing;

/* The weight of a pair, with the sign of grade_i - grade_j. */
INLINE float weight_of_pair(int kind, float difference, float swap, float rise, float apart, float share,
                            float given) {
    const float sign = (difference > 0 ? 1.0f : 0.0f) - (difference < 0 ? 1.0f : 0.0f);
    return kind == SWAPPED                    ? difference * fabsf(swap)
           : kind == MIXED                    ? difference * (fabsf(swap) + apart)
           : kind == SHARED                   ? difference * share * fabsf(swap)
           : kind == DIRECTED                 ? difference * fabsf(difference > 0 ? swap : rise)
           : kind == GIVEN || kind == COUNTED ? sign * given
                                              : sign;
}

/* out[r] = number / by[r], with one division in all, as divisions are the slowest operation here. */
INLINE void divide(int rows, float number, const float *by, float *out) {
    float products[BLOCK];
    for (int r = 0; r < rows; r++)
        products[r] = r ? products[r - 1] * by[r] : by[r];
    float rest = number / products[rows - 1];
    for (int r = rows - 1; r > 0; r--) {
        out[r] = rest * products[r - 1];
        rest *= by[r];
    }
    out[0] = rest;
}

/* The lambda of a pair and its curvature. fall is the probability that the lower row belongs above the upper one,
 * and rise that it does not, both divided by the gap. */
INLINE float lambda_of_pair(float weight, float fall, float rise, float gap, float *curvature) {
    const float falling = weight * fall, rising = weight * rise;
    *curvature = fabsf(rising * fall) * gap;
    return weight > 0 ? falling : rising;
}

/* The same if the upper row has the higher score. Then fall is at most 1/2, and 1 - fall loses no accuracy. */
INLINE float lambda_of_ranked_pair(float weight, float fall, float *curvature) {
    const float falling = weight * fall, rising = weight - falling;
    *curvature = fabsf(rising * fall);
    return falling < rising ? falling : rising;
}

/* The same for the squared hinge; drop is the score of row i less that of row j. */
INLINE float hinge_of_pair(float sign, float margin, float drop, float *curvature) {
    const float lack = margin - sign * drop, missing = lack > 0 ? lack : 0.0f;
    *curvature = lack > 0 ? fabsf(sign) : 0.0f;
    return sign * missing;
}

/* IS_BELOW[2 * LANES + d]: whether row i + d is below row i. */
#define ONES 1, 1, 1, 1, 1
static const float IS_BELOW[4 * LANES] = {[2 * LANES + 1] = 1, ONES, ONES, ONES, ONES, ONES, ONES};
#undef ONES

/* Some rows, and the sums over their pairs. */
typedef struct {
    float gradients[BLOCK][LANES], hessians[BLOCK][LANES];
    float grades[BLOCK], distances[BLOCK], exponentials[BLOCK], worth[BLOCK], risen[BLOCK], shares[BLOCK];
} Block;

/* Add the pairs of the rows i, i + 1, ... with the rows of a chunk. If crossed, these rows may lie in it themselves. */
INLINE void add_chunk(int kind, int ranked, int spread, int sized, int rows, int crossed, int64_t i, int64_t chunk,
                      int64_t width, float margin, const Weighing *by, const float *RESTRICT distances,
                      const float *RESTRICT grades, const float *RESTRICT exponentials, float *RESTRICT gradients,
                      float *RESTRICT hessians, float *RESTRICT size, Block *RESTRICT block) {
    const int swaps = kind == SWAPPED || kind == MIXED || kind == SHARED || kind == DIRECTED;
    const int given = kind == GIVEN || kind == COUNTED;
    const float *worth = by->worth, *risen = by->risen, *apart = by->apart;
    const float *deltas = given ? by->deltas + (kind == GIVEN ? i * width : 0) : NULL;
    const float *is_below = IS_BELOW + 2 * LANES;
    for (int lane = 0; lane < LANES; lane++) {
        const int64_t j = chunk + lane;
        const float grade = grades[j], lower = exponentials[j], distance = distances[j];
        const float swap = swaps ? worth[j] : 0.0f, rise = kind == DIRECTED ? risen[j] : 0.0f;
        float gaps[BLOCK], sums[BLOCK], divisors[BLOCK], parts[BLOCK];
        float gradient = 0.0f, hessian = 0.0f, sizes = 0.0f;
        for (int r = 0; r < rows; r++) {
            gaps[r] = spread ? by->least_gap + fabsf(block->distances[r] - distance) : 1.0f;
            sums[r] = block->exponentials[r] + lower;
            divisors[r] = spread ? sums[r] * gaps[r] : sums[r];
        }
        if (kind != HINGE)
            divide(rows, ranked ? lower : 1.0f, divisors, parts);
        for (int r = 0; r < rows; r++) {
            const float full = weight_of_pair(kind, block->grades[r] - grade, block->worth[r] - swap,
                                              block->risen[r] - rise, kind == MIXED ? apart[j - i - r] : 0.0f,
                                              block->shares[r], given ? deltas[r * width + j] : 0.0f);
            const float weight = crossed ? full * is_below[j - i - r] : full;
            float lambda, curvature;
            if (kind == HINGE)
                lambda = hinge_of_pair(grade > EMPTY_GRADE ? weight : 0.0f, margin, block->distances[r] - distance,
                                       &curvature);
            else if (ranked)
                lambda = lambda_of_ranked_pair(weight, parts[r], &curvature);
            else
                lambda = lambda_of_pair(weight, lower * parts[r], block->exponentials[r] * parts[r],
                                        spread ? gaps[r] : 1.0f, &curvature);
            block->gradients[r][lane] += lambda;
            block->hessians[r][lane] += curvature;
            gradient = r ? gradient + lambda : lambda;
            hessian = r ? hessian + curvature : curvature;
            sizes = r ? sizes + fabsf(lambda) : fabsf(lambda);
        }
        gradients[j] += gradient;
        hessians[j] += hessian;
        if (sized)
            size[lane] += sizes;
    }
}

/* Fill in the deltas of some rows, from row i on, which is the next one. If rows i and j swap, only pairs change in
 * which one of them and a row from i + 1 to j are: those of j by balance[j], of i by that of a row as i at rank j. */
INLINE void fill_counted(int rows, int64_t i, int64_t n, const Weighing *by, const float *RESTRICT grades) {
    const int64_t start = i / LANES * LANES, width = (n + LANES - 1) / LANES * LANES;
    const float factor = by->factor;
    int32_t *RESTRICT balance = by->balance;
    for (int r = 0; r < rows; r++, i++) {
        float *RESTRICT deltas = by->deltas + r * width;
        const float grade = grades[i];
        int32_t as_i = 0;
        for (int64_t j = start; j <= i; j++)
            deltas[j] = 0.0f;
        for (int64_t j = i + 1; j < n; j++) {
            const int32_t sign = (grades[j] > grade) - (grades[j] < grade);
            balance[j] -= sign; /* of the rows from i + 1 on, as no pair of those above changes */
            deltas[j] = (float)sign;
        }
        for (int64_t j = i + 1; j < n; j++) {
            as_i -= (int32_t)deltas[j];
            deltas[j] = fabsf((float)(balance[j] - as_i)) * factor;
        }
        for (int64_t j = n; j < width; j++)
            deltas[j] = 0.0f;
    }
}

/* Add the pairs of some rows, from row i on, with all rows below them. The loads and stores of the rows below, and a
 * division, are shared by these pairs. */
INLINE void add_rows(int kind, int ranked, int spread, int sized, int rows, int64_t i, int64_t n, float margin,
                     const Weighing *by, const float *distances, const float *grades, const float *exponentials,
                     float *RESTRICT gradients, float *RESTRICT hessians, float *RESTRICT size) {
    const int64_t width = (n + LANES - 1) / LANES * LANES, crossed = i + rows;
    int64_t chunk = i / LANES * LANES;
    Block block;
    for (int r = 0; r < rows; r++) {
        block.grades[r] = grades[i + r];
        block.distances[r] = distances[i + r];
        block.exponentials[r] = kind == HINGE ? 0.0f : exponentials[i + r];
        block.worth[r] = kind == PLAIN || kind == GIVEN || kind == HINGE || kind == COUNTED ? 0.0f : by->worth[i + r];
        block.risen[r] = kind == DIRECTED ? by->risen[i + r] : 0.0f;
        block.shares[r] = kind == SHARED ? by->shares[i + r] : 1.0f;
        for (int lane = 0; lane < LANES; lane++)
            block.gradients[r][lane] = block.hessians[r][lane] = 0.0f;
    }
    for (; chunk < crossed; chunk += LANES)
        add_chunk(kind, ranked, spread, sized, rows, 1, i, chunk, width, margin, by, distances, grades, exponentials,
                  gradients, hessians, size, &block);
    for (; chunk < n; chunk += LANES)
        add_chunk(kind, ranked, spread, sized, rows, 0, i, chunk, width, margin, by, distances, grades, exponentials,
                  gradients, hessians, size, &block);
    for (int r = 0; r < rows; r++) {
        gradients[i + r] -= sum_lanes(block.gradients[r]);
        hessians[i + r] += sum_lanes(block.hessians[r]);
    }
}

INLINE double pairs_of_query(int kind, int ranked, int spread, int sized, int64_t n, int64_t top, double sigma,
                             const Weighing *by, const double *scores, const float *grades, float *distances,
                             float *exponentials, float *gradients, float *hessians) {
    float size[LANES] = {0};
    double high = scores[0], low = scores[n - 1];
    int64_t i = 0;
    for (int64_t j = 0; !ranked && j < n; j++) {
        high = scores[j] > high ? scores[j] : high;
        low = scores[j] < low ? scores[j] : low;
    }
#define ADD_ROWS(rows)                                                                                       \
    if (kind == COUNTED)                                                                                      \
        fill_counted(rows, i, n, by, grades);                                                                 \
    add_rows(kind, ranked, spread, sized, rows, i, n, (float)sigma, by, distances, grades, exponentials,      \
             gradients, hessians, size)
    /* Exponentials from e^-20 to e^20, and gaps that are small enough: no product over a block overflows. */
    if ((kind == HINGE || sigma * (high - low) < 40.0) && high - low < 1e3) {
        fill_distances(0, n, sigma, 0.5 * high + 0.5 * low, scores, distances, exponentials);
        for (; i + BLOCK <= top; i += BLOCK) {
            ADD_ROWS(BLOCK);
        }
        for (; i < top; i++) {
            ADD_ROWS(1);
        }
    }
    for (; i < top; i++) { /* no middle suits all rows, so each has its own */
        fill_distances(i, n, sigma, scores[i], scores, distances, exponentials);
        ADD_ROWS(1);
    }
#undef ADD_ROWS
    return sum_lanes(size);
}

#define PAIRS(name, kind, ranked, spread, sized)                                                             \
    EACH_WIDTH(double, name,                                                                                 \
               (int64_t n, int64_t top, double sigma, const Weighing *by, const double *scores,              \
                const float *grades, float *distances, float *exponentials, float *gradients,                \
                float *hessians),                                                                            \
               (n, top, sigma, by, scores, grades, distances, exponentials, gradients, hessians)) {          \
        return pairs_of_query(kind, ranked, spread, sized, n, top, sigma, by, scores, grades, distances,     \
                              exponentials, gradients, hessians);                                            \
    }
/* For ranked rows; for rows in any order, with the sum of |lambda|; and spread. */
#define LOGISTIC_PAIRS(name, kind)                                                                           \
    PAIRS(name, kind, 1, 0, 0)                                                                               \
    PAIRS(sized_##name, kind, 0, 0, 1)                                                                       \
    PAIRS(spread_##name, kind, 0, 1, 1)
PAIRS(hinge_pairs, HINGE, 1, 0, 0)
LOGISTIC_PAIRS(plain_pairs, PLAIN)
LOGISTIC_PAIRS(swapped_pairs, SWAPPED)
LOGISTIC_PAIRS(mixed_pairs, MIXED)
LOGISTIC_PAIRS(shared_pairs, SHARED)
LOGISTIC_PAIRS(directed_pairs, DIRECTED)
LOGISTIC_PAIRS(given_pairs, GIVEN)
LOGISTIC_PAIRS(counted_pairs, COUNTED)

/* Add every pair whose upper row is one of the first `top` rows to the gradients and hessians of its rows. Return
 * the sum of |lambda|, or 0 if it is not asked for. */
static inline double add_pairs(int kind, int spread, int sized, int64_t n, int64_t top, double sigma,
                               const Weighing *by, const double *scores, const float *grades, float *distances,
                               float *exponentials, float *gradients, float *hessians) {
#define ADD(name) (spread ? spread_##name : sized || by->shuffled ? sized_##name : name)
    return (kind == HINGE      ? hinge_pairs
            : kind == PLAIN    ? ADD(plain_pairs)
            : kind == MIXED    ? ADD(mixed_pairs)
            : kind == SHARED   ? ADD(shared_pairs)
            : kind == DIRECTED ? ADD(directed_pairs)
            : kind == GIVEN    ? ADD(given_pairs)
            : kind == COUNTED  ? ADD(counted_pairs)
                               : ADD(swapped_pairs))(n, top, sigma, by, scores, grades, distances, exponentials,
                                                    gradients, hessians);
#undef ADD
}

#endif
