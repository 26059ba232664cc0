/* The lanes of a register whose bits are set, side by side: an instruction of AVX-512, and with AVX2 a permutation
 * that is looked up.
 *
 *   bits       1 0 1 1 0 0 0 1      the lowest first
 *   lanes      a b c d e f g h
 *   forwards   a c d h . . . .      a dot is any lane
 *   backwards  . . . . h d c a
 */
#ifndef RANKTREES_COMPRESS_H
#define RANKTREES_COMPRESS_H

#include <stdint.h>

#include "simd.h"

#if HAS_SIMD
#include <immintrin.h>

/* The places of the bits set in 0 to 255, one byte each, that of the lowest bit first. */
#define BIT_0(above) (above), (above) << 8,
#define BIT_1(above) BIT_0(above) BIT_0((above) << 8 | 1)
#define BIT_2(above) BIT_1(above) BIT_1((above) << 8 | 2)
#define BIT_3(above) BIT_2(above) BIT_2((above) << 8 | 3)
#define BIT_4(above) BIT_3(above) BIT_3((above) << 8 | 4)
#define BIT_5(above) BIT_4(above) BIT_4((above) << 8 | 5)
#define BIT_6(above) BIT_5(above) BIT_5((above) << 8 | 6)
#define BIT_7(above) BIT_6(above) BIT_6((above) << 8 | 7)
static const uint64_t PLACES[256] = {BIT_7((uint64_t)0)};

/* The same where a lane takes two places, of the bits set in 0 to 15. */
#define PAIR_0(above) (above), (above) << 16 | 0x0100,
#define PAIR_1(above) PAIR_0(above) PAIR_0((above) << 16 | 0x0302)
#define PAIR_2(above) PAIR_1(above) PAIR_1((above) << 16 | 0x0504)
#define PAIR_3(above) PAIR_2(above) PAIR_2((above) << 16 | 0x0706)
static const uint64_t PAIRS[16] = {PAIR_3((uint64_t)0)};

FOR_AVX2 INLINE __m256i permuted(__m256i lanes, uint64_t places) {
    return _mm256_permutevar8x32_epi32(lanes, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)places)));
}

FOR_AVX2 INLINE __m256i eight_forwards(uint32_t bits, __m256i lanes) { return permuted(lanes, PLACES[bits]); }

FOR_AVX2 INLINE __m256i eight_backwards(uint32_t bits, __m256i lanes) {
    return permuted(lanes, __builtin_bswap64(PLACES[bits]));
}

FOR_AVX2 INLINE __m256i four_forwards(uint32_t bits, __m256i lanes) { return permuted(lanes, PAIRS[bits]); }

/* The two places of a lane stay in their order. */
FOR_AVX2 INLINE __m256i four_backwards(uint32_t bits, __m256i lanes) {
    return permuted(lanes, __builtin_bswap64(PAIRS[bits]) ^ 0x0101010101010101ULL);
}
#endif

#endif
