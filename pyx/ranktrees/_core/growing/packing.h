/* Build the bytes of rows, a column of bytes at a time, and transpose them.
 *
 *    columns                                         rows
 *    byte 0    | row 0 | row 1 | ... | row 511 |     row 0     | byte 0 | byte 1 | ... | byte 15 |
 *      ...                                             ...
 *    byte 15   | row 0 | row 1 | ... | row 511 |     row 511   | byte 0 | byte 1 | ... | byte 15 |
 *
 * What the codes of a feature add to their byte is a stair, all of whose steps are as high as the stride. */
#ifndef RANKTREES_PACKING_H
#define RANKTREES_PACKING_H

#include <stdint.h>

#include "support/simd.h"

#if HAS_SIMD
#include <immintrin.h>
#endif

enum {
    PACKED = 512,       /* rows packed together: their codes are read in runs, and their bytes stay in the cache */
    COUNTED = 128,      /* codes whose steps are counted in registers */
    FEW_STEPS = 32,     /* up to this many steps are counted faster than looked up */
    BYTES_TOGETHER = 16 /* bytes of a row that are set together */
};

typedef struct {
    const uint8_t *share; /* what each code adds; 0 behind the last code */
    int n_steps;
    uint8_t stride, firsts[FEW_STEPS]; /* the first code of each step */
} stair;

static inline void build_stair(const uint8_t *share, int stride, stair *its) {
    its->share = share;
    its->stride = (uint8_t)stride;
    its->n_steps = 0;
    for (int code = 1; code < 256; code++)
        if (share[code] == share[code - 1] + stride) {
            if (its->n_steps < FEW_STEPS)
                its->firsts[its->n_steps] = (uint8_t)code;
            its->n_steps++;
        }
}

EACH_WIDTH(void, count_steps, (const uint8_t *RESTRICT codes, const stair *its, uint8_t *RESTRICT bytes),
           (codes, its, bytes)) {
    (void)width;
    for (int begin = 0; begin < PACKED; begin += COUNTED, codes += COUNTED, bytes += COUNTED) {
        uint8_t counts[COUNTED] = {0};
        for (int s = 0; s < its->n_steps; s++)
            for (int i = 0; i < COUNTED; i++)
                counts[i] = (uint8_t)(counts[i] + (codes[i] >= its->firsts[s]));
        for (int i = 0; i < COUNTED; i++)
            bytes[i] = (uint8_t)(bytes[i] + counts[i] * its->stride);
    }
}

/* Add the shares of PACKED codes to their bytes. */
static inline void add_shares(const uint8_t *codes, const stair *its, uint8_t *RESTRICT bytes) {
    if (its->n_steps <= FEW_STEPS) {
        count_steps(codes, its, bytes);
        return;
    }
    for (int i = 0; i < PACKED; i++)
        bytes[i] = (uint8_t)(bytes[i] + its->share[codes[i]]);
}

/* rows[i * step + b] = columns[b * PACKED + i], for n rows and at most BYTES_TOGETHER bytes of each. Interleaving the
 * registers of one half with those of the other, four times, transposes sixteen bytes of sixteen rows. */
static inline void transpose_bytes(const uint8_t *columns, int64_t n, int64_t n_bytes, uint8_t *rows, int64_t step) {
    int64_t i = 0;
#if HAS_SIMD
    for (; n_bytes == BYTES_TOGETHER && i + BYTES_TOGETHER <= n; i += BYTES_TOGETHER) {
        __m128i transposed[BYTES_TOGETHER], shuffled[BYTES_TOGETHER];
        for (int b = 0; b < BYTES_TOGETHER; b++)
            transposed[b] = _mm_loadu_si128((const __m128i *)(columns + b * PACKED + i));
        for (int shuffle = 0; shuffle < 4; shuffle++) {
            for (int b = 0; b < BYTES_TOGETHER / 2; b++) {
                shuffled[2 * b] = _mm_unpacklo_epi8(transposed[b], transposed[b + BYTES_TOGETHER / 2]);
                shuffled[2 * b + 1] = _mm_unpackhi_epi8(transposed[b], transposed[b + BYTES_TOGETHER / 2]);
            }
            memcpy(transposed, shuffled, sizeof transposed);
        }
        for (int r = 0; r < BYTES_TOGETHER; r++)
            _mm_storeu_si128((__m128i *)(rows + (i + r) * step), transposed[r]);
    }
#endif
    for (; i < n; i++)
        for (int64_t b = 0; b < n_bytes; b++)
            rows[i * step + b] = columns[b * PACKED + i];
}

#endif
