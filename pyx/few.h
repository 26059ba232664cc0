/* The best cut of a leaf of few rows: each row is a candidate, and all codes are compared with all.
 *
 *     row       0  1  2  3
 *     code      7  3  9  3
 *     sum       a  b  c  d
 *     up to     a+b+d  b+d  a+b+c+d  b+d         the sums of the rows whose code is not above the row's own
 *
 * There are no cells to clear or to visit, and the registers are full where a leaf has some rows. */
#ifndef RANKTREES_FEW_H
#define RANKTREES_FEW_H

#include "bins.h"
#include "codes.h"
#include "gains.h"
#include "portable.h"

enum { FEW = 64 }; /* of more, cells are cheaper */

/* The rows of a leaf, side by side, and how to read their sums. */
typedef struct {
    int64_t n, bits;
    int exact;  /* whether these are all rows of the leaf */
    int silent; /* whether some of them may add up to nothing */
    uint32_t rows[FEW];
    int64_t sums[FEW];
} few_rows;

/* The best cut so far, and what goes left; the feature is -1 where there is none. */
typedef struct {
    double score;
    int32_t feature;
    uint32_t code;
    int64_t left;
    uint32_t n_left;
    int missing_left;
} few_cut;

/* up_to[i]: what the rows add up to whose code is not above codes[i]; a row counts as one where values is NULL. */
INLINE void add_up(int width, int64_t n, const int64_t *codes, const int64_t *values, int64_t *up_to) {
    int64_t sums[FEW];
    for (int i = 0; i < width; i++)
        sums[i] = 0;
    for (int64_t j = 0; j < n; j++) {
        const int64_t code = codes[j], value = values ? values[j] : 1;
        for (int i = 0; i < width; i++)
            sums[i] += codes[i] >= code ? value : 0;
    }
    for (int i = 0; i < width; i++)
        up_to[i] = sums[i];
}

/* heard[i]: what the rows of the same code add up to. A cut is behind a code that adds something. */
INLINE void add_equal(int width, int64_t n, const int64_t *codes, const int64_t *values, int64_t *heard) {
    for (int i = 0; i < width; i++) {
        int64_t sum = 0;
        for (int64_t j = 0; j < n; j++)
            sum += codes[i] == codes[j] ? values[j] : 0;
        heard[i] = sum;
    }
}

/* One feature. There are ``width`` candidates, a constant: the rows, and some behind all of them, which leave nothing
 * to the right. Scores are compared as integers, in whose order they are where they are not negative. */
INLINE void try_cuts(int width, const few_rows *leaf, const int64_t *codes, int32_t feature, int64_t missing_code,
                     const sums *total, const rules *rule, few_cut *best) {
    const int64_t mask = ((int64_t)1 << leaf->bits) - 1;
    int64_t up_to[FEW], counts[FEW], heard[FEW], scores[FEW], missing = 0, n_missing = 0;
    add_up(width, leaf->n, codes, leaf->sums, up_to);
    const int counted = rule->min_samples_leaf > 1;
    for (int i = 0; i < width; i++)
        counts[i] = 0, heard[i] = 1;
    if (counted)
        add_up(width, leaf->n, codes, NULL, counts);
    if (leaf->silent)
        add_equal(width, leaf->n, codes, leaf->sums, heard);
    for (int64_t i = 0; i < leaf->n; i++) {
        missing += codes[i] == missing_code ? leaf->sums[i] : 0;
        n_missing += codes[i] == missing_code;
    }
    for (int side = 0; side < (n_missing ? 2 : 1); side++) {
        const int64_t more = side ? missing : 0, more_rows = side ? n_missing : 0;
        int64_t most = -1, code = INT64_MAX, n_left = more_rows, behind = 0;
        for (int i = 0; i < width; i++) {
            const int64_t left = up_to[i] + (codes[i] < missing_code ? more : 0);
            const double gradient = (double)(left >> leaf->bits), steps = (double)(left & mask);
            const children both = children_of(gradient, steps, total->gradient, total->hessian, rule);
            const int large_enough = (steps >= rule->min_hessian) & (total->hessian - steps >= rule->min_hessian);
            scores[i] = large_enough ? (int64_t)portable_to_bits(children_score(&both)) : -1;
        }
        if (counted)
            for (int i = 0; i < width; i++) {
                const double count = (double)(counts[i] + more_rows), others = total->count - count;
                scores[i] = (count >= rule->min_samples_leaf) & (others >= rule->min_samples_leaf) ? scores[i] : -1;
            }
        if (leaf->silent)
            for (int i = 0; i < width; i++)
                scores[i] = heard[i] ? scores[i] : -1;
        for (int i = 0; i < width; i++)
            most = scores[i] > most ? scores[i] : most;
        const double score = portable_from_bits((uint64_t)most);
        if (most < 0 || score < best->score || (score == best->score && best->feature <= feature))
            continue;
        for (int i = 0; i < width; i++)
            code = scores[i] == most && codes[i] < code ? codes[i] : code;
        best->left = more;
        for (int64_t i = 0; i < leaf->n; i++) {
            best->left += codes[i] <= code ? leaf->sums[i] : 0;
            behind |= codes[i] > code && codes[i] != missing_code && heard[i];
        }
        if (n_missing && !side && !behind)
            code = missing_code - 1; /* behind all that have a value */
        for (int64_t i = 0; i < leaf->n; i++)
            n_left += codes[i] <= code;
        best->score = score;
        best->feature = feature;
        best->code = (uint32_t)code;
        best->n_left = (uint32_t)n_left;
        best->missing_left = n_missing ? side : leaf->exact && 2 * n_left > leaf->n;
    }
}

INLINE void try_feature(int is_long, const few_rows *leaf, const uint8_t *column, int32_t feature,
                        int64_t missing_code, const sums *total, const rules *rule, few_cut *best) {
    int64_t codes[FEW], different = 0;
    for (int64_t i = 0; i < leaf->n; i++) {
        codes[i] = code_at(is_long, column, leaf->rows[i]);
        different |= codes[i] ^ codes[0];
    }
    if (!different)
        return;
    const int width = leaf->n <= 8 ? 8 : leaf->n <= 16 ? 16 : leaf->n <= 32 ? 32 : FEW;
    for (int64_t i = leaf->n; i < width; i++)
        codes[i] = INT64_MAX;
    if (width == 8)
        try_cuts(8, leaf, codes, feature, missing_code, total, rule, best);
    else if (width == 16)
        try_cuts(16, leaf, codes, feature, missing_code, total, rule, best);
    else if (width == 32)
        try_cuts(32, leaf, codes, feature, missing_code, total, rule, best);
    else
        try_cuts(FEW, leaf, codes, feature, missing_code, total, rule, best);
}

/* The best cut of the leaf in any of some features, in any order: of equal ones that of the lowest. The codes of
 * feature f begin at ``columns + f * stride``; the last one, which follows from ``offsets``, is that of rows without a
 * value. */
EACH_WIDTH(void, best_of_few,
           (int is_long, const few_rows *leaf, int64_t n_features, const int32_t *features, const uint8_t *columns,
            int64_t stride, const int64_t *offsets, const sums *total, const rules *rule, few_cut *best),
           (is_long, leaf, n_features, features, columns, stride, offsets, total, rule, best)) {
    for (int64_t k = 0; k < n_features; k++) {
        const int32_t f = features[k];
        const int64_t missing_code = offsets[f + 1] - offsets[f] - 1;
        if (is_long)
            try_feature(1, leaf, columns + f * stride, f, missing_code, total, rule, best);
        else
            try_feature(0, leaf, columns + f * stride, f, missing_code, total, rule, best);
    }
}

#endif
