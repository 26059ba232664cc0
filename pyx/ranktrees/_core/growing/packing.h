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

#if HAS_X86
#include <immintrin.h>
typedef __m128i sixteen_bytes;
#define load_sixteen(from) _mm_loadu_si128((const __m128i *)(from))
#define store_sixteen(to, x) _mm_storeu_si128((__m128i *)(to), x)
#define interleave_first(x, y) _mm_unpacklo_epi8(x, y) /* of the first eight bytes of each */
#define interleave_last(x, y) _mm_unpackhi_epi8(x, y)
#elif HAS_NEON
#include <arm_neon.h>
typedef uint8x16_t sixteen_bytes;
#define load_sixteen(from) vld1q_u8(from)
#define store_sixteen(to, x) vst1q_u8(to, x)
#define interleave_first(x, y) vzip1q_u8(x, y)
#define interleave_last(x, y) vzip2q_u8(x, y)
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
#if HAS_X86 || HAS_NEON
    for (; n_bytes == BYTES_TOGETHER && i + BYTES_TOGETHER <= n; i += BYTES_TOGETHER) {
        sixteen_bytes transposed[BYTES_TOGETHER], shuffled[BYTES_TOGETHER];
        for (int b = 0; b < BYTES_TOGETHER; b++)
            transposed[b] = load_sixteen(columns + b * PACKED + i);
        for (int shuffle = 0; shuffle < 4; shuffle++) {
            for (int b = 0; b < BYTES_TOGETHER / 2; b++) {
                shuffled[2 * b] = interleave_first(transposed[b], transposed[b + BYTES_TOGETHER / 2]);
                shuffled[2 * b + 1] = interleave_last(transposed[b], transposed[b + BYTES_TOGETHER / 2]);
            }
            memcpy(transposed, shuffled, sizeof transposed);
        }
        for (int r = 0; r < BYTES_TOGETHER; r++)
            store_sixteen(rows + (i + r) * step, transposed[r]);
    }
#endif
    for (; i < n; i++)
        for (int64_t b = 0; b < n_bytes; b++)
            rows[i * step + b] = columns[b * PACKED + i];
}

#endif
