/* What codes add to a byte: a stair whose steps are all as high as the feature's stride. */
#ifndef RANKTREES_PACKING_H
#define RANKTREES_PACKING_H

#include <stdint.h>

#include "simd.h"

#if HAS_SIMD
#include <immintrin.h>
#endif

enum {
    PACKED = 512,  /* rows packed together: their codes are read in runs, and their bytes stay in the cache */
    FEW_STEPS = 32 /* counted sooner than looked up, 256 codes at a time */
};

typedef struct {
    const uint8_t *share; /* of each code; 0 behind the last */
    int n_steps;
    uint8_t stride, firsts[FEW_STEPS]; /* the first code of each step */
} stair;

static inline void build_stair(const uint8_t *share, int stride, stair *own) {
    own->share = share;
    own->stride = (uint8_t)stride;
    own->n_steps = 0;
    for (int code = 1; code < 256; code++)
        if (share[code] == share[code - 1] + stride) {
            if (own->n_steps < FEW_STEPS)
                own->firsts[own->n_steps] = (uint8_t)code;
            own->n_steps++;
        }
}

#if HAS_SIMD
FOR_AVX512 static void count_steps(const uint8_t *codes, const stair *own, uint8_t *bytes) {
    const __m512i stride = _mm512_set1_epi8((char)own->stride);
    for (int i = 0; i < PACKED; i += 256) {
        __m512i some[4], sums[4];
        for (int r = 0; r < 4; r++) {
            some[r] = _mm512_loadu_si512(codes + i + 64 * r);
            sums[r] = _mm512_loadu_si512(bytes + i + 64 * r);
        }
        for (int s = 0; s < own->n_steps; s++) {
            const __m512i first = _mm512_set1_epi8((char)own->firsts[s]);
            for (int r = 0; r < 4; r++)
                sums[r] = _mm512_mask_add_epi8(sums[r], _mm512_cmpge_epu8_mask(some[r], first), sums[r],
                                               stride);
        }
        for (int r = 0; r < 4; r++)
            _mm512_storeu_si512(bytes + i + 64 * r, sums[r]);
    }
}
#endif

/* Of PACKED codes. */
static inline void add_shares(const uint8_t *codes, const stair *own, uint8_t *bytes) {
#if HAS_SIMD
    if (simd_level() == AVX512 && own->n_steps <= FEW_STEPS) {
        count_steps(codes, own, bytes);
        return;
    }
#endif
    for (int i = 0; i < PACKED; i++)
        bytes[i] = (uint8_t)(bytes[i] + own->share[codes[i]]);
}

#endif
