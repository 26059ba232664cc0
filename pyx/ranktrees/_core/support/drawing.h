/* Draw rows, each on its own, and the features of a leaf, without repetition and in ascending order. */
#ifndef RANKTREES_DRAWING_H
#define RANKTREES_DRAWING_H

#include "support/listing.h"
#include "support/portable.h"
#include "support/simd.h"

/* Draw a uniform number in [0, 1) for each row, by (key, number). The numbers of rows are first, first + 1, ..., unless
 * ``numbers`` are given. */
EACH_WIDTH(void, draw_uniforms,
           (uint64_t key, int64_t first, const int64_t *RESTRICT numbers, int64_t n, double *RESTRICT out),
           (key, first, numbers, n, out)) {
    if (numbers)
        for (int64_t i = 0; i < n; i++)
            out[i] = portable_uniform(portable_draw(key, (uint64_t)numbers[i]));
    else
        for (int64_t i = 0; i < n; i++)
            out[i] = portable_uniform(portable_draw(key, (uint64_t)(first + i)));
}

/* Set whether each of some rows is drawn: it is if its uniform number is below ``limit`` * 2^-53. */
INLINE void draw_each(int64_t n, uint64_t key, int64_t limit, int64_t first, const int64_t *RESTRICT numbers,
                      uint8_t *RESTRICT is_drawn) {
    for (int64_t i = 0; i < n; i++) {
        const uint64_t number = (uint64_t)(numbers ? numbers[i] : first + i);
        is_drawn[i] = (int64_t)(portable_draw(key, number) >> 11) < limit;
    }
}

/* Mark those of n rows that `draw_each` draws and that are set in ``among`` (if NULL, all are). Return how many. */
EACH_WIDTH(int64_t, mark_drawn,
           (uint64_t key, int64_t limit, int64_t n, int64_t first, const int64_t *RESTRICT numbers,
            const uint8_t *RESTRICT among, uint64_t *RESTRICT marks),
           (key, limit, n, first, numbers, among, marks)) {
    int64_t n_drawn = 0;
    for (int64_t i = 0; i < n; i += 64) {
        const int64_t some = n - i < 64 ? n - i : 64;
        uint8_t is_drawn[64] = {0};
        if (numbers)
            draw_each(some, key, limit, 0, numbers + i, is_drawn);
        else if (some == 64) /* a constant for the compiler */
            draw_each(64, key, limit, first + i, NULL, is_drawn);
        else
            draw_each(some, key, limit, first + i, NULL, is_drawn);
        if (among)
            for (int64_t k = 0; k < some; k++)
                is_drawn[k] &= among[i + k];
        marks[i / 64] = marks_of(is_drawn);
        for (int64_t k = 0; k < 64; k++)
            n_drawn += is_drawn[k];
    }
    return n_drawn;
}

/* Sort n different items below 64 * n_words: each sets its bit of the marks, which are 0 before and afterwards. */
static inline void sort_by_marks(int32_t *items, int64_t n, uint64_t *marks, int64_t n_words) {
    for (int64_t i = 0; i < n; i++)
        marks[items[i] >> 6] |= (uint64_t)1 << (items[i] & 63);
    for (int64_t w = 0; w < n_words; w++) {
        for (uint64_t bits = marks[w]; bits; bits &= bits - 1)
            *items++ = (int32_t)(64 * w + lowest_bit(bits));
        marks[w] = 0;
    }
}

/* Draw a sample of the items first to n - 1 of ``line``, by (key, leaf), and put it in ascending order at the places
 * first to last - 1. */
static inline void draw_some(int32_t *line, int64_t first, int64_t last, int64_t n, uint64_t key, uint64_t leaf,
                             uint64_t *marks, int64_t n_words) {
    portable_shuffle(line, first, last, n, key, leaf * (uint64_t)n);
    sort_by_marks(line + first, last - first, marks, n_words);
}

#endif
