/* Part the lanes of a register: first those whose bits are set, in their order, then the others, the last of them first.
 * AVX-512 has an instruction for the first; with AVX2 and NEON a permutation from a table does both.
 *
 *   bits     1 0 1 1 0 0 0 1     the lowest bit first
 *   lanes    a b c d e f g h
 *   parted   a c d h g f e b
 *
 * Whether the highest bit is set makes no difference, so that the tables do without it. */
#ifndef RANKTREES_LANES_H
#define RANKTREES_LANES_H

#include <stdint.h>

#include "support/simd.h"

#if HAS_X86
#include <immintrin.h>

/* The places of eight lanes, one byte each: those of set bits are pushed to the front, the others from the back. */
#define BIT_0(set, others) (set) | (others) >> 8, (set) << 8 | (others),
#define BIT_1(set, others) BIT_0(set, (others) >> 8 | 1ULL << 56) BIT_0((set) << 8 | 1, others)
#define BIT_2(set, others) BIT_1(set, (others) >> 8 | 2ULL << 56) BIT_1((set) << 8 | 2, others)
#define BIT_3(set, others) BIT_2(set, (others) >> 8 | 3ULL << 56) BIT_2((set) << 8 | 3, others)
#define BIT_4(set, others) BIT_3(set, (others) >> 8 | 4ULL << 56) BIT_3((set) << 8 | 4, others)
#define BIT_5(set, others) BIT_4(set, (others) >> 8 | 5ULL << 56) BIT_4((set) << 8 | 5, others)
#define BIT_6(set, others) BIT_5(set, (others) >> 8 | 6ULL << 56) BIT_5((set) << 8 | 6, others)
static const uint64_t PLACES[128] = {BIT_6(0ULL, 7ULL << 56)};

/* The same for four lanes that take two places each. */
#define PAIR_0(set, others) (set) | (others) >> 16 | 0x0100ULL << 48, (set) << 16 | 0x0100 | (others),
#define PAIR_1(set, others) PAIR_0(set, (others) >> 16 | 0x0302ULL << 48) PAIR_0((set) << 16 | 0x0302, others)
#define PAIR_2(set, others) PAIR_1(set, (others) >> 16 | 0x0504ULL << 48) PAIR_1((set) << 16 | 0x0504, others)
static const uint64_t PLACES_OF_PAIRS[8] = {PAIR_2(0ULL, 0x0706ULL << 48)};

FOR_AVX2 INLINE __m256i permuted(__m256i lanes, const uint64_t *places) {
    return _mm256_permutevar8x32_epi32(lanes, _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)places)));
}

FOR_AVX2 INLINE __m256i eight_parted(uint32_t bits, __m256i lanes) { return permuted(lanes, PLACES + (bits & 127)); }
FOR_AVX2 INLINE __m256i four_parted(uint32_t bits, __m256i lanes) {
    return permuted(lanes, PLACES_OF_PAIRS + (bits & 7));
}
#endif

#if HAS_NEON
#include <arm_neon.h>

/* The bytes of four lanes of four or eight bytes. */
#define OF_FOUR(i) 4 * (i), 4 * (i) + 1, 4 * (i) + 2, 4 * (i) + 3
#define OF_EIGHT(i) OF_FOUR(2 * (i)), OF_FOUR(2 * (i) + 1)
#define LANES(SIZE, a, b, c, d) {SIZE(a), SIZE(b), SIZE(c), SIZE(d)},
#define EACH_PARTED(SIZE)                                                                                  \
    LANES(SIZE, 3, 2, 1, 0) LANES(SIZE, 0, 3, 2, 1) LANES(SIZE, 1, 3, 2, 0) LANES(SIZE, 0, 1, 3, 2)        \
    LANES(SIZE, 2, 3, 1, 0) LANES(SIZE, 0, 2, 3, 1) LANES(SIZE, 1, 2, 3, 0) LANES(SIZE, 0, 1, 2, 3)
static const uint8_t BYTES_OF_FOURS[8][16] = {EACH_PARTED(OF_FOUR)};
static const uint8_t BYTES_OF_EIGHTS[8][32] = {EACH_PARTED(OF_EIGHT)};

INLINE uint32x4_t four_parted(uint32_t bits, uint32x4_t lanes) {
    return vreinterpretq_u32_u8(vqtbl1q_u8(vreinterpretq_u8_u32(lanes), vld1q_u8(BYTES_OF_FOURS[bits & 7])));
}

INLINE void put_four_parted(uint32_t bits, const int64_t *lanes, int64_t *front, int64_t *back) {
    const uint8x16x2_t bytes = vld1q_u8_x2((const uint8_t *)lanes);
    const uint8_t *order = BYTES_OF_EIGHTS[bits & 7];
    const int64x2_t first = vreinterpretq_s64_u8(vqtbl2q_u8(bytes, vld1q_u8(order)));
    const int64x2_t second = vreinterpretq_s64_u8(vqtbl2q_u8(bytes, vld1q_u8(order + 16)));
    vst1q_s64(front, first);
    vst1q_s64(front + 2, second);
    vst1q_s64(back - 4, first);
    vst1q_s64(back - 2, second);
}
#endif

#endif
