/* Sums over rows as words that ranks add up: those of few bits travel side by side.
 *
 *   cell    | gradient | hessian : bits |                 the sum of some rows, as in rounding.h
 *   sum     | gradient | hessian : low |                  the same where no rank's, nor that of all, needs more
 *   word    sum 0 + sum n 2^width + sum 2n 2^(2 width) ...      as many of n words as fit, added as numbers
 *
 * What a negative sum takes from those above it is theirs again when words are read, from the lowest sum. */
#ifndef RANKTREES_WORDS_H
#define RANKTREES_WORDS_H

#include <stdint.h>

#include "simd.h"

enum { WORD = 64 };

INLINE int64_t n_words_of(int64_t n_cells, int width) {
    const int64_t per_word = WORD / width;
    return (n_cells + per_word - 1) / per_word;
}

INLINE void put_side_by_side(int stride, int64_t n, const int64_t *RESTRICT cells, int bits, int low, int width,
                             int64_t *RESTRICT words) {
    const int64_t n_words = n_words_of(n, width), mask = ((int64_t)1 << bits) - 1;
    for (int64_t first = 0, shift = 0; first < n; first += n_words, shift += width) {
        const int64_t n_here = n - first < n_words ? n - first : n_words, *here = cells + stride * first;
        if (n_words == n)
            for (int64_t i = 0; i < n; i++)
                words[i] = here[stride * i];
        else if (!shift)
            for (int64_t i = 0; i < n_words; i++)
                words[i] = (int64_t)((uint64_t)(here[stride * i] >> bits) << low) + (here[stride * i] & mask);
        else
            for (int64_t i = 0; i < n_here; i++) {
                const uint64_t sum = ((uint64_t)(here[stride * i] >> bits) << low) + (uint64_t)(here[stride * i] & mask);
                words[i] += (int64_t)(sum << shift);
            }
    }
}

INLINE void take_from_words(int stride, int64_t n, int64_t *RESTRICT words, int bits, int low, int width,
                            int64_t *RESTRICT cells) {
    const int64_t n_words = n_words_of(n, width), mask = ((int64_t)1 << low) - 1;
    const int rest = WORD - width;
    for (int64_t first = 0; first < n; first += n_words) {
        const int64_t n_here = n - first < n_words ? n - first : n_words;
        int64_t *here = cells + stride * first;
        if (n_words == n)
            for (int64_t i = 0; i < n; i++)
                here[stride * i] = words[i];
        else
            for (int64_t i = 0; i < n_here; i++) {
                const int64_t sum = (int64_t)((uint64_t)words[i] << rest) >> rest;
                here[stride * i] = (int64_t)((uint64_t)(sum >> low) << bits) + (sum & mask);
                words[i] = (int64_t)((uint64_t)words[i] - (uint64_t)sum) >> width;
            }
    }
}

/* Cells that are a stride of one or two numbers apart. */
EACH_WIDTH(void, cells_to_words,
           (int stride, int64_t n, const int64_t *RESTRICT cells, int bits, int low, int width,
            int64_t *RESTRICT words),
           (stride, n, cells, bits, low, width, words)) {
    if (stride == 1)
        put_side_by_side(1, n, cells, bits, low, width, words);
    else
        put_side_by_side(2, n, cells, bits, low, width, words);
}

/* The words are no more what they were. */
EACH_WIDTH(void, words_to_cells,
           (int stride, int64_t n, int64_t *RESTRICT words, int bits, int low, int width,
            int64_t *RESTRICT cells),
           (stride, n, words, bits, low, width, cells)) {
    if (stride == 1)
        take_from_words(1, n, words, bits, low, width, cells);
    else
        take_from_words(2, n, words, bits, low, width, cells);
}

#endif
