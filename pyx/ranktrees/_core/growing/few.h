/* Find the best cut of a leaf with few rows. They touch few cells, and the sums up to these are stored side by side.
 *
 *     row       0  1  2  3                      code      3    7      9
 *     code      7  3  9  3                      sum       b+d  a      c
 *     sum       a  b  c  d                      up to it  b+d  a+b+d  a+b+c+d
 *
 * A word of touched has a bit for each of 64 cells, set if the cell is touched; a word of words has a bit for each of
 * 64 such words. See touching.h. */
#ifndef RANKTREES_FEW_H
#define RANKTREES_FEW_H

#include "support/bins.h"
#include "support/codes.h"
#include "growing/gains.h"
#include "support/portable.h"

enum {
    FEW = 256,        /* with more rows, visiting all cells is cheaper */
    CUTS_TOGETHER = 8 /* how many cuts are judged at a time */
};

typedef struct {
    int64_t sum, count;
} __attribute__((may_alias)) few_cell; /* in memory that holds Bins otherwise */

/* The rows of a leaf (all of them, or all but the quiet rows, which have no sums), their total, and the bits of the
 * hessian in it. The cells, and the words that say which of them are touched, are zero before and afterwards. */
typedef struct {
    int exact; /* whether these are all rows of the leaf */
    int64_t n, n_quiet, sum, bits;
    const uint32_t *rows, *quiet;
    const int64_t *sums;
    few_cell *cells;
    uint64_t *touched, *words;
    int64_t n_words;
} few_rows;

/* The best cut so far, with the sum and the number of the rows that go left. The feature is -1 if there is none. */
typedef struct {
    double gain;
    int32_t feature;
    uint32_t code;
    int64_t left;
    uint32_t n_left;
    int missing_left;
} few_cut;

/* For one feature, the codes whose sums are not zero, and the sums up to each of them. */
typedef struct {
    int64_t n, up_to[FEW + CUTS_TOGETHER], counts[FEW + CUTS_TOGETHER];
    uint32_t codes[FEW];
    few_cell missing;
} few_line;

INLINE void touch_few(const few_rows *leaf, uint32_t code, int64_t sum, int64_t count) {
    few_cell *cell = &leaf->cells[code];
    cell->sum += sum;
    cell->count += count;
    leaf->touched[code >> 6] |= (uint64_t)1 << (code & 63);
    leaf->words[code >> 12] |= (uint64_t)1 << (code >> 6 & 63);
}

/* Add up the touched cells of one word, in ascending order, and clear them. Those with a sum join the line. */
INLINE void visit_few(const few_rows *leaf, int64_t word, few_cell *running, few_line *line) {
    for (uint64_t bits = leaf->touched[word]; bits; bits &= bits - 1) {
        const uint32_t code = (uint32_t)(64 * word + lowest_bit(bits));
        few_cell *cell = &leaf->cells[code];
        running->sum += cell->sum;
        running->count += cell->count;
        line->codes[line->n] = code;
        line->up_to[line->n] = running->sum;
        line->counts[line->n] = running->count;
        line->n += cell->sum != 0;
        cell->sum = cell->count = 0;
    }
    leaf->touched[word] = 0;
}

/* Sum the rows by code. Return whether any cut can be tried: none can if all rows have the same code. Rows with the
 * code of the first row, often most of them, are not added up: their sum is what the others leave of the total. */
INLINE int sum_few(int is_long, const few_rows *leaf, const codes_of_feature *of, uint32_t missing_code,
                   few_line *line) {
    const int64_t n_all = leaf->n + leaf->n_quiet;
    const uint32_t first = code_of(is_long, of, leaf->n ? leaf->rows[0] : leaf->quiet[0]);
    uint32_t codes[FEW], others[FEW];
    int64_t n = 0, n_loud, rest = leaf->sum;
    few_cell running = {0, 0}, *missing = &leaf->cells[missing_code];
    for (int64_t i = 0; i < leaf->n; i++) {
        codes[n] = code_of(is_long, of, leaf->rows[i]);
        others[n] = (uint32_t)i;
        n += codes[n] != first;
    }
    n_loud = n;
    for (int64_t i = 0; i < leaf->n_quiet; i++) {
        codes[n] = code_of(is_long, of, leaf->quiet[i]);
        n += codes[n] != first;
    }
    if (!n)
        return 0;
    for (int64_t i = 0; i < n_loud; i++) {
        touch_few(leaf, codes[i], leaf->sums[others[i]], 1);
        rest -= leaf->sums[others[i]];
    }
    for (int64_t i = n_loud; i < n; i++)
        touch_few(leaf, codes[i], 0, 1);
    touch_few(leaf, first, rest, n_all - n);
    line->missing = *missing;
    missing->sum = missing->count = 0;
    line->n = 0;
    for (int64_t w = 0; w < leaf->n_words; w++)
        for (; leaf->words[w]; leaf->words[w] &= leaf->words[w] - 1)
            visit_few(leaf, 64 * w + lowest_bit(leaf->words[w]), &running, line);
    /* the last cut is behind all rows that have a value; copies of it fill the lanes */
    line->codes[line->n ? line->n - 1 : 0] = missing_code - 1;
    for (int64_t k = line->n ? line->n - 1 : 0; k < line->n + CUTS_TOGETHER; k++) {
        line->up_to[k] = running.sum;
        line->counts[k] = running.count;
    }
    return line->n > 0;
}

/* Gains are compared by their bits as integers, which have the same order if they are not negative. */
INLINE void try_cuts(int width, const few_rows *leaf, int32_t feature, const few_line *line, const sums *total,
                     const rules *rule, few_cut *best) {
    const int64_t n = (line->n + CUTS_TOGETHER - 1) & -CUTS_TOGETHER;
    const int bits = (int)leaf->bits;
    const double all = total->count;
    int64_t gains[FEW + CUTS_TOGETHER];
    for (int side = 0; side < (line->missing.count ? 2 : 1); side++) {
        const int64_t more = side ? line->missing.sum : 0, more_rows = side ? line->missing.count : 0;
        int64_t most = -1, k = 0;
        for (int64_t i = 0; i < n; i++) {
            const int64_t left = line->up_to[i] + more;
            const double gradient = gradient_of(width, left, bits), steps = hessian_of(width, left, bits);
            const double count = portable_small_double(width, line->counts[i] + more_rows);
            const children both = children_of(gradient, steps, total->gradient, total->hessian, rule);
            const int large_enough = (steps >= rule->min_hessian) & (total->hessian - steps >= rule->min_hessian) &
                                     (count >= rule->min_samples_leaf) & (all - count >= rule->min_samples_leaf);
            gains[i] = large_enough ? (int64_t)portable_to_bits(children_gain(&both)) : -1;
        }
        for (int64_t i = 0; i < n; i++)
            most = gains[i] > most ? gains[i] : most;
        const double gain = portable_from_bits((uint64_t)most);
        if (most < 0 || gain < best->gain || (gain == best->gain && best->feature <= feature))
            continue;
        while (gains[k] != most)
            k++;
        best->gain = gain;
        best->feature = feature;
        best->code = line->codes[k];
        best->left = line->up_to[k] + more;
        best->n_left = (uint32_t)(line->counts[k] + more_rows);
        best->missing_left = line->missing.count ? side : leaf->exact && 2 * best->n_left > all;
    }
}

/* Find the best cut of the leaf by some features, in any order; of equal cuts, that of the lowest feature wins. The
 * last code of a feature, which follows from ``offsets``, is that of rows without a value. */
EACH_WIDTH(void, best_of_few,
           (const few_rows *leaf, int64_t n_features, const int32_t *features, const code_columns *columns,
            const codes_by_row *by_row, const int64_t *offsets, const sums *total, const rules *rule, few_cut *best),
           (leaf, n_features, features, columns, by_row, offsets, total, rule, best)) {
    few_line line;
    if (by_row && 64 * n_features >= by_row->n_bytes) { /* fewer features do not need every cache line of a row */
        fetch_rows(by_row->bytes, by_row->step, 0, by_row->n_bytes, leaf->rows, leaf->n);
        fetch_rows(by_row->bytes, by_row->step, 0, by_row->n_bytes, leaf->quiet, leaf->n_quiet);
    }
    for (int64_t k = 0; k < n_features; k++) {
        const int32_t f = features[k];
        const uint32_t missing_code = (uint32_t)(offsets[f + 1] - offsets[f] - 1);
        const codes_of_feature of = find_codes(columns, by_row, f);
        if (columns->is_long ? sum_few(1, leaf, &of, missing_code, &line)
                             : sum_few(0, leaf, &of, missing_code, &line))
            try_cuts(width, leaf, f, &line, total, rule, best);
    }
}

#endif
