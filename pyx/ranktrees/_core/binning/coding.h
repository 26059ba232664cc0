/* Count the cuts that are below each value. keys.h describes how that is done in general.
 *
 * With AVX-512 the cuts of a feature fit into registers. A binary search runs there for sixteen values at once:
 *
 *   pivots     | - | 1 | 2 3 | 4 5 6 7 | 8 . . . 15 |     register 0: below pivot i are the pivots 2 i and 2 i + 1
 *              | 16 . . . 31 |                            register 1
 *              | 32 . . . 47 | 48 . . . 63 |              registers 2 and 3, and so on to 255 */
#ifndef RANKTREES_CODING_H
#define RANKTREES_CODING_H

#include "binning/keys.h"

#if HAS_X86
#include <immintrin.h>
#endif

enum { FEWEST_LEVELS = 4, MOST_LEVELS = 8 };

typedef union {
    finder_float by_keys;
    struct {
        int levels;
        uint8_t missing;
        uint32_t pivots[1 << MOST_LEVELS]; /* keys */
    } in_registers;
} coder_float;

typedef finder_double coder_double;

/* Make a coder of n < 256 ascending cuts. `missing` is the code of NaN. `bits` says how fine the ruler of keys.h is
 * if the cuts are not held in registers. */
static void make_coder_double(const double *cuts, int64_t n, uint8_t missing, int bits, coder_double *coder) {
    make_finder_double(cuts, n, missing, bits, coder);
}

static void make_coder_float(const float *cuts, int64_t n, uint8_t missing, int bits, coder_float *coder) {
    if (simd_level() != AVX512) {
        make_finder_float(cuts, n, missing, bits, &coder->by_keys);
        return;
    }
    int levels = FEWEST_LEVELS;
    while (n >> levels)
        levels++;
    coder->in_registers.levels = levels;
    coder->in_registers.missing = missing;
    coder->in_registers.pivots[0] = 0;
    for (int level = 0; level < levels; level++)
        for (int i = 0; i < 1 << level; i++) {
            const int cut = ((2 * i + 1) << (levels - 1 - level)) - 1;
            coder->in_registers.pivots[(1 << level) + i] = cut < n ? key_of_float(cuts[cut]) : UINT32_MAX;
        }
}

#if HAS_X86
FOR_AVX512 INLINE __m512i pivots_of_2(const __m512i *pivots, __m512i at) {
    return _mm512_permutex2var_epi32(pivots[0], at, pivots[1]);
}

FOR_AVX512 INLINE __m512i pivots_of_4(const __m512i *pivots, __m512i at) {
    return _mm512_mask_blend_epi32(_mm512_test_epi32_mask(at, _mm512_set1_epi32(32)), pivots_of_2(pivots, at),
                                   pivots_of_2(pivots + 2, at));
}

FOR_AVX512 INLINE __m512i pivots_of_8(const __m512i *pivots, __m512i at) {
    return _mm512_mask_blend_epi32(_mm512_test_epi32_mask(at, _mm512_set1_epi32(64)), pivots_of_4(pivots, at),
                                   pivots_of_4(pivots + 4, at));
}

FOR_AVX512 INLINE __m512i sixteen_keys(__m512i bits) {
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    return _mm512_mask_sub_epi32(_mm512_or_si512(bits, sign), _mm512_test_epi32_mask(bits, sign),
                                 _mm512_setzero_si512(), bits);
}

FOR_AVX512 INLINE void encode_in_registers(int levels, int64_t n, const float *values, const coder_float *coder,
                                           uint8_t *codes) {
    const uint32_t *pivots = coder->in_registers.pivots;
    const __m512i missing = _mm512_set1_epi32(coder->in_registers.missing + (1 << levels));
    __m512i all[1 << (MOST_LEVELS - 4)];
    for (int r = 0; r < 1 << (levels - 4); r++)
        all[r] = _mm512_loadu_si512(pivots + 16 * r);
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 there = n - i < 16 ? (__mmask16)((1 << (n - i)) - 1) : 0xffff;
        const __m512 x = _mm512_maskz_loadu_ps(there, values + i);
        const __m512i key = sixteen_keys(_mm512_castps_si512(x));
        const __m512i one = _mm512_set1_epi32(1);
        __m512i at = one;
        for (int level = 0; level < levels; level++) {
            const __m512i pivot = level < 4    ? _mm512_permutexvar_epi32(at, all[0])
                                  : level == 4 ? _mm512_permutexvar_epi32(at, all[1])
                                  : level == 5 ? pivots_of_2(all + 2, at)
                                  : level == 6 ? pivots_of_4(all + 4, at)
                                               : pivots_of_8(all + 8, at);
            const __mmask16 is_above = _mm512_cmplt_epu32_mask(pivot, key);
            at = _mm512_add_epi32(at, at);
            at = _mm512_mask_add_epi32(at, is_above, at, one);
        }
        at = _mm512_mask_mov_epi32(at, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), missing);
        at = _mm512_sub_epi32(at, _mm512_set1_epi32(1 << levels));
        _mm_mask_storeu_epi8(codes + i, there, _mm512_cvtepi32_epi8(at));
    }
}

FOR_AVX512 static void encode_sixteen(int64_t n, const float *values, const coder_float *coder, uint8_t *codes) {
    switch (coder->in_registers.levels) {
    case 4: encode_in_registers(4, n, values, coder, codes); break;
    case 5: encode_in_registers(5, n, values, coder, codes); break;
    case 6: encode_in_registers(6, n, values, coder, codes); break;
    case 7: encode_in_registers(7, n, values, coder, codes); break;
    default: encode_in_registers(8, n, values, coder, codes);
    }
}
#endif

/* Encode at most LAID_OUT values. */
static inline void encode_floats(int64_t n, const float *values, const coder_float *coder, uint8_t *codes) {
#if HAS_X86
    if (simd_level() == AVX512) {
        encode_sixteen(n, values, coder, codes);
        return;
    }
#endif
    encode_float(n, values, &coder->by_keys, codes);
}

static inline void encode_doubles(int64_t n, const double *values, const coder_double *coder, uint8_t *codes) {
    encode_double(n, values, coder, codes);
}

#endif
