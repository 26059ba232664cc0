/* Put those lanes of a register whose bits are set side by side. AVX-512 has an instruction for this; with AVX2 it is a
 * permutation from a table.
 *
 *   bits       1 0 1 1 0 0 0 1      the lowest bit first
 *   lanes      a b c d e f g h
 *   forwards   a c d h . . . .      a dot is any lane
 *   backwards  . . . . h d c a
 */
#ifndef RANKTREES_COMPRESS_H
#define RANKTREES_COMPRESS_H

#include <stdint.h>

#include "support/simd.h"

#if HAS_SIMD
#include <immintrin.h>

/* For each number from 0 to 255, the places of its set bits, one byte each. FORWARDS has the lowest bit in the first
 * byte, BACKWARDS has it in the last. */
#define BIT_0(above, PUT) PUT(above) PUT((above) << 8)
#define BIT_1(above, PUT) BIT_0(above, PUT) BIT_0((above) << 8 | 1, PUT)
#define BIT_2(above, PUT) BIT_1(above, PUT) BIT_1((above) << 8 | 2, PUT)
#define BIT_3(above, PUT) BIT_2(above, PUT) BIT_2((above) << 8 | 3, PUT)
#define BIT_4(above, PUT) BIT_3(above, PUT) BIT_3((above) << 8 | 4, PUT)
#define BIT_5(above, PUT) BIT_4(above, PUT) BIT_4((above) << 8 | 5, PUT)
#define BIT_6(above, PUT) BIT_5(above, PUT) BIT_5((above) << 8 | 6, PUT)
#define BIT_7(above, PUT) BIT_6(above, PUT) BIT_6((above) << 8 | 7, PUT)
#define AS_IT_IS(places) (places),
#define REVERSED(places) __builtin_bswap64(places),
static const uint64_t FORWARDS[256] = {BIT_7((uint64_t)0, AS_IT_IS)};
static const uint64_t BACKWARDS[256] = {BIT_7((uint64_t)0, REVERSED)};

/* The same for each number from 0 to 15, if a lane takes two places, which stay in their order. */
#define PAIR_0(above, PUT) PUT(above) PUT((above) << 16 | 0x0100)
#define PAIR_1(above, PUT) PAIR_0(above, PUT) PAIR_0((above) << 16 | 0x0302, PUT)
#define PAIR_2(above, PUT) PAIR_1(above, PUT) PAIR_1((above) << 16 | 0x0504, PUT)
#define PAIR_3(above, PUT) PAIR_2(above, PUT) PAIR_2((above) << 16 | 0x0706, PUT)
#define PAIRS_REVERSED(places) __builtin_bswap64(places) ^ 0x0101010101010101ULL,
static const uint64_t PAIRS_FORWARDS[16] = {PAIR_3((uint64_t)0, AS_IT_IS)};
static const uint64_t PAIRS_BACKWARDS[16] = {PAIR_3((uint64_t)0, PAIRS_REVERSED)};

FOR_AVX2 INLINE __m256i permuted(__m256i lanes, const uint64_t *places) {
    return _mm256_permutevar8x32_epi32(lanes, _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)places)));
}

FOR_AVX2 INLINE __m256i eight_forwards(uint32_t bits, __m256i lanes) { return permuted(lanes, FORWARDS + bits); }
FOR_AVX2 INLINE __m256i eight_backwards(uint32_t bits, __m256i lanes) { return permuted(lanes, BACKWARDS + bits); }
FOR_AVX2 INLINE __m256i four_forwards(uint32_t bits, __m256i lanes) { return permuted(lanes, PAIRS_FORWARDS + bits); }
FOR_AVX2 INLINE __m256i four_backwards(uint32_t bits, __m256i lanes) {
    return permuted(lanes, PAIRS_BACKWARDS + bits);
}
#endif

#endif
