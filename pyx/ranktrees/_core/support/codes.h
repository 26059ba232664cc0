/* The code of a row in the column of a feature: one byte, or four ("long") if some feature has more than 255 bins.
 * Columns are passed as bytes. Loops over rows are INLINE with a constant is_long, so that each length has its own.
 *
 *     columns   f0: a b c d ...   f1: e f g h ...      the rows of a small leaf lie far apart in each column, so that
 *     by row    a e . | b f . | c g . | d h . | ...    every code would be read from a cache line of its own
 */
#ifndef RANKTREES_CODES_H
#define RANKTREES_CODES_H

#include <stdint.h>
#include <string.h>

#include "support/bins.h"
#include "support/simd.h"

enum {
    CODES = 256,       /* that a byte can hold: those of at most 255 bins, and that of rows without a value */
    CODES_AHEAD = 192, /* how many rows ahead codes are prefetched: the L1 cache keeps that many lines until needed */
    FAR_APART = 4,     /* with one row in this many, on average, processors do not predict which one is next ... */
    AT_HAND = 1 << 15  /* ... but the data of this many rows is in a near cache in any case */
};

INLINE int64_t size_of_code(int is_long) { return is_long ? 4 : 1; }

INLINE uint32_t code_at(int is_long, const uint8_t *column, int64_t row) {
    return is_long ? ((const uint32_t *)(const void *)column)[row] : column[row];
}

/* Whether ascending rows are so far apart that their data should be prefetched. */
INLINE int lie_apart(const uint32_t *rows, int64_t n) {
    const int64_t from_to = n ? rows[n - 1] - rows[0] : 0;
    return from_to > AT_HAND && from_to > FAR_APART * n;
}

/* Prefetch the data of some rows; from one row to the next it is ``step`` bytes apart. */
INLINE void fetch_each(const void *first, int64_t step, const uint32_t *rows, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        prefetch_line((const uint8_t *)first + rows[i] * step);
}

/* The same for a loop over rows: fetch_first is called before the loop, fetch_coming at each of its rows. */
INLINE void fetch_first(const void *first, int64_t step, const uint32_t *rows, int64_t n) {
    fetch_each(first, step, rows, n < CODES_AHEAD ? n : CODES_AHEAD);
}

INLINE void fetch_coming(const void *first, int64_t step, const uint32_t *rows, int64_t i, int64_t n) {
    if (i + CODES_AHEAD < n)
        fetch_each(first, step, rows + i + CODES_AHEAD, 1);
}

/* Codes row by row. All features of a few rows then lie in few cache lines. */
typedef struct {
    const uint8_t *bytes;  /* row-major; short codes of features with few bins share a byte, see growing/packing.py */
    int64_t step, n_bytes; /* from one row to the next, and in use in each row */
    const int32_t *byte_of; /* the first byte of each feature */
    const uint8_t *code_of; /* CODES entries for each feature: its short code for each value of its byte */
} codes_by_row;

/* The codes of one feature, in a column or by row: one every ``step`` bytes. */
typedef struct {
    const uint8_t *column, *code_of;
    int64_t step;
} codes_of_feature;

INLINE uint32_t code_of(int is_long, const codes_of_feature *of, int64_t row) {
    return is_long ? code_at(1, of->column + row * of->step, 0) : of->code_of[of->column[row * of->step]];
}

#define EIGHT(n) n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7
#define SIXTY_FOUR(n) \
    EIGHT(n), EIGHT(n + 8), EIGHT(n + 16), EIGHT(n + 24), EIGHT(n + 32), EIGHT(n + 40), EIGHT(n + 48), EIGHT(n + 56)
static const uint8_t SAME_CODE[CODES] = {SIXTY_FOUR(0), SIXTY_FOUR(64), SIXTY_FOUR(128), SIXTY_FOUR(192)};
#undef EIGHT
#undef SIXTY_FOUR

/* Columns of codes. A joint column holds the codes of many features, nearly always their usual ones: each of its values
 * stands for a combination of codes, and value 0 for the usual codes of all. See ranktrees/binning/codes.py. */
typedef struct {
    const uint8_t *first;
    int64_t stride; /* from one column to the next */
    int is_long;
    const int32_t *column_of, *joint_of; /* of each feature: its column, and its number among joint ones, or -1 */
    const uint8_t *tables;               /* CODES entries for each joint one: its code for each value */
    const int64_t *first_pair;           /* and the values that stand for another code than the usual one */
    const uint8_t *values, *codes;
} code_columns;

INLINE const uint8_t *column_with(const code_columns *all, int64_t feature) {
    return all->first + all->column_of[feature] * all->stride;
}

/* From sums over the rows with each value of a joint column, make those over the rows with each code of a feature. */
INLINE void spread_sums(const code_columns *all, int64_t feature, const int64_t *sums, int64_t total, int64_t n_codes,
                        int64_t *cells) {
    const int32_t j = all->joint_of[feature];
    memset(cells, 0, (size_t)n_codes * sizeof *cells);
    for (int64_t k = all->first_pair[j]; k < all->first_pair[j + 1]; k++) {
        cells[all->codes[k]] += sums[all->values[k]];
        total -= sums[all->values[k]];
    }
    cells[all->tables[j * CODES]] += total;
}

INLINE void spread_bins(const code_columns *all, int64_t feature, const Bin *sums, Bin total, int64_t n_codes,
                        Bin *cells) {
    const int32_t j = all->joint_of[feature];
    memset(cells, 0, (size_t)n_codes * sizeof *cells);
    for (int64_t k = all->first_pair[j]; k < all->first_pair[j + 1]; k++) {
        const Bin *part = sums + all->values[k];
        bin_add(cells + all->codes[k], part);
        total.gradient -= part->gradient;
        total.hessian -= part->hessian;
        total.count -= part->count;
    }
    bin_add(cells + all->tables[j * CODES], &total);
}

/* The codes of a feature: by row if there are codes by row, else in its column. */
INLINE codes_of_feature find_codes(const code_columns *all, const codes_by_row *by_row, int64_t feature) {
    const int32_t j = all->joint_of[feature];
    const codes_of_feature in_column = {column_with(all, feature), j < 0 ? SAME_CODE : all->tables + j * CODES,
                                        size_of_code(all->is_long)};
    if (!by_row)
        return in_column;
    const codes_of_feature in_rows = {by_row->bytes + by_row->byte_of[feature], by_row->code_of + CODES * feature,
                                      by_row->step};
    return in_rows;
}

/* Prefetch the bytes from ``from`` to ``to`` of some rows. */
INLINE void fetch_rows(const uint8_t *bytes, int64_t step, int64_t from, int64_t to, const uint32_t *rows,
                       int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *row = bytes + rows[i] * step;
        for (int64_t b = from; b < to; b += 64)
            prefetch_line(row + b);
        prefetch_line(row + to - 1);
    }
}

#endif
