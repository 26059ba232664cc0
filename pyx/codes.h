/* The code of a row in the column of a feature: a byte, or four ("long") where a feature has more than 255 bins.
 * Columns are passed as bytes. Loops over rows are INLINE with a constant is_long: there is one for each.
 *
 *     columns   f0: a b c d ...   f1: e f g h ...      the rows of a small leaf lie far apart in each of them: every
 *     by row    a e . | b f . | c g . | d h . | ...    code would come from a line of the cache of its own
 */
#ifndef RANKTREES_CODES_H
#define RANKTREES_CODES_H

#include <stdint.h>

#include "bins.h"
#include "simd.h"

enum {
    CODES_AHEAD = 192, /* rows whose codes are fetched ahead: as many lines as the first cache keeps until their turn */
    FAR_APART = 4,     /* a row of so many, on average: processors do not foresee which comes next ... */
    AT_HAND = 1 << 15  /* ... but what belongs to so many rows is near in any case */
};

INLINE int64_t size_of_code(int is_long) { return is_long ? 4 : 1; }

INLINE uint32_t code_at(int is_long, const uint8_t *column, int64_t row) {
    return is_long ? ((const uint32_t *)(const void *)column)[row] : column[row];
}

/* Whether rows, which rise, are few of many from the first to the last: what belongs to them is asked for ahead. */
INLINE int lie_apart(const uint32_t *rows, int64_t n) {
    const int64_t from_to = n ? rows[n - 1] - rows[0] : 0;
    return from_to > AT_HAND && from_to > FAR_APART * n;
}

/* Fetch what is ``step`` bytes apart from row to row. */
INLINE void fetch_each(const void *first, int64_t step, const uint32_t *rows, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        prefetch_line((const uint8_t *)first + rows[i] * step);
}

/* The same of rows that are gone through one by one: of some before the first, and at each of one to come. */
INLINE void fetch_first(const void *first, int64_t step, const uint32_t *rows, int64_t n) {
    fetch_each(first, step, rows, n < CODES_AHEAD ? n : CODES_AHEAD);
}

INLINE void fetch_coming(const void *first, int64_t step, const uint32_t *rows, int64_t i, int64_t n) {
    if (i + CODES_AHEAD < n)
        fetch_each(first, step, rows + i + CODES_AHEAD, 1);
}

/* Codes row by row: of few rows, all features lie in few lines of the cache. */
typedef struct {
    const uint8_t *bytes;   /* row-major; short codes of few bins share one, see growing/packing.py */
    int64_t step, n_bytes;  /* from row to row, and of a row */
    const int32_t *byte_of; /* the first of each feature */
    const uint8_t *code_of; /* 256 of each feature: its short code by the value of its byte */
} codes_by_row;

/* The codes of one feature, in a column or by row: one each ``step`` bytes. */
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
static const uint8_t SAME_CODE[256] = {SIXTY_FOUR(0), SIXTY_FOUR(64), SIXTY_FOUR(128), SIXTY_FOUR(192)};
#undef EIGHT
#undef SIXTY_FOUR

/* By row where they are there by row, else in the column. */
INLINE codes_of_feature find_codes(int is_long, const uint8_t *column, const codes_by_row *by_row, int64_t feature) {
    const codes_of_feature in_column = {column, SAME_CODE, size_of_code(is_long)};
    if (!by_row)
        return in_column;
    const codes_of_feature in_rows = {by_row->bytes + by_row->byte_of[feature], by_row->code_of + 256 * feature,
                                      by_row->step};
    return in_rows;
}

/* Fetch the bytes from ``from`` to ``to`` of some rows. */
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
