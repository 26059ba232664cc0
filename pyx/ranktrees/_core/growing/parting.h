/* Part rows into those that a split sends left and those that it sends right; each side keeps its order.
 *
 *   rows      a b c d e f g h            in place, through scratch of the same length:
 *   scratch   a c d g h f e b            left rows from the front, right rows from the back
 *
 * There are no branches, as a processor cannot predict which way a row goes. ``sums``, unless NULL, are parted with the
 * rows. */
#ifndef RANKTREES_PARTING_H
#define RANKTREES_PARTING_H

#include <stdint.h>
#include <string.h>

#include "support/bins.h"
#include "support/codes.h"
#include "support/lanes.h"
#include "support/simd.h"

#if HAS_X86
#include <immintrin.h>
#elif HAS_NEON
#include <arm_neon.h>
#endif

/* Which codes go left: those up to ``last`` and, if missing_left, the missing code; for categories, those in left[]. */
typedef struct {
    int32_t last;         /* -1 for categories */
    int32_t missing;      /* the code of rows without a value */
    int32_t missing_left; /* whether they go left */
    uint8_t left[CODES];
} way;

/* The number of rows on the left, and whether any row has no value. */
typedef struct {
    int64_t n_left, lacking;
} parted;

INLINE parted part_one_by_one(int is_long, int by_table, int with_sums, int apart, const uint8_t *column,
                              const way *way, int64_t first, int64_t n, const uint32_t *RESTRICT rows,
                              const int64_t *RESTRICT sums, uint32_t *RESTRICT row_scratch,
                              int64_t *RESTRICT sum_scratch, parted found) {
    const uint32_t last = (uint32_t)way->last, missing = (uint32_t)way->missing;
    const int missing_left = way->missing_left;
    int64_t n_left = found.n_left, n_right = first - n_left, lacking = found.lacking;
    for (int64_t i = first; i < n; i++) {
        if (apart)
            fetch_coming(column, size_of_code(is_long), rows, i, n);
        const uint32_t code = code_at(is_long, column, rows[i]);
        const int lacks = code == missing;
        const int64_t goes = by_table ? way->left[code] : (code <= last) | (lacks & missing_left);
        row_scratch[n_left] = rows[i];
        row_scratch[n - 1 - n_right] = rows[i];
        if (with_sums) {
            sum_scratch[n_left] = sums[i];
            sum_scratch[n - 1 - n_right] = sums[i];
        }
        n_left += goes;
        n_right += 1 - goes;
        lacking |= lacks;
    }
    return (parted){n_left, lacking};
}

#if HAS_X86 || HAS_NEON
/* Eight short codes. They are read one by one, as gather instructions are slow on some processors. */
INLINE uint64_t eight_codes(const uint8_t *column, const uint32_t *rows) {
#define TWO(i) (column[rows[i]] | (uint32_t)column[rows[i + 1]] << 8)
#define FOUR(i) (TWO(i) | TWO(i + 2) << 16)
    return FOUR(0) | (uint64_t)FOUR(4) << 32;
#undef FOUR
#undef TWO
}
#endif

#if HAS_X86
#define sixteen_codes(column, rows) \
    _mm_set_epi64x((int64_t)eight_codes(column, (rows) + 8), (int64_t)eight_codes(column, rows))

/* For sixteen rows, one bit each: whether its code is at most ``last``; in ``lacks``, whether it is ``missing``. */
FOR_AVX512 INLINE uint32_t compare_sixteen_avx512(int is_long, const uint8_t *column, const uint32_t *rows,
                                                  int32_t last, int32_t missing, uint32_t *lacks) {
    const __m512i codes = is_long ? _mm512_i32gather_epi32(_mm512_loadu_si512(rows), column, 4)
                                  : _mm512_cvtepu8_epi32(sixteen_codes(column, rows));
    *lacks = _mm512_cmpeq_epi32_mask(codes, _mm512_set1_epi32(missing));
    return _mm512_cmple_epi32_mask(codes, _mm512_set1_epi32(last));
}

/* Put those of sixteen rows whose bit of ``left`` is set to ``front``, and the others in reverse order before ``back``.
 * If there is room, whole registers are written; the surplus is overwritten by later rows. */
FOR_AVX512 INLINE void put_rows_avx512(uint32_t left, const uint32_t *rows, uint32_t *front, uint32_t *back) {
    const __m512i backwards = _mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i row = _mm512_loadu_si512(rows);
    const __m512i lefts = _mm512_maskz_compress_epi32((__mmask16)left, row);
    const __m512i rights = _mm512_permutexvar_epi32(backwards, _mm512_maskz_compress_epi32((__mmask16)~left, row));
    const int room = back - front >= 32;
    const uint32_t first = room ? 0xffff : (1u << __builtin_popcount(left)) - 1;
    _mm512_mask_storeu_epi32(front, (__mmask16)first, lefts);
    _mm512_mask_storeu_epi32(back - 16, (__mmask16)(room ? 0xffff : ~first), rights);
}

FOR_AVX512 INLINE void put_eight_sums(uint32_t left, int room, const int64_t *sums, int64_t *front, int64_t *back) {
    const __m512i backwards = _mm512_set_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    const __m512i sum = _mm512_loadu_si512(sums);
    const __m512i lefts = _mm512_maskz_compress_epi64((__mmask8)left, sum);
    const __m512i rights = _mm512_permutexvar_epi64(backwards, _mm512_maskz_compress_epi64((__mmask8)~left, sum));
    const uint32_t first = room ? 0xff : (1u << __builtin_popcount(left)) - 1;
    _mm512_mask_storeu_epi64(front, (__mmask8)first, lefts);
    _mm512_mask_storeu_epi64(back - 8, (__mmask8)(room ? 0xff : ~first), rights);
}

/* The same for their sums. */
FOR_AVX512 INLINE void put_sums_avx512(uint32_t left, const int64_t *sums, int64_t *front, int64_t *back) {
    const uint32_t first = left & 0xff;
    const int n_first = __builtin_popcount(first), room = back - front >= 32;
    put_eight_sums(first, room, sums, front, back);
    put_eight_sums(left >> 8, room, sums + 8, front + n_first, back - (8 - n_first));
}

enum { room_avx512 = 16, room_avx2 = 16 };
#define OF(name) name##_avx512
#define TARGET FOR_AVX512 static
#include "growing/parting_by_sixteen.h"

FOR_AVX2 INLINE uint32_t compare_sixteen_avx2(int is_long, const uint8_t *column, const uint32_t *rows, int32_t last,
                                              int32_t missing, uint32_t *lacks) {
    if (is_long) {
        uint32_t up_to = *lacks = 0;
        for (int i = 0; i < 16; i += 8) {
            const __m256i row = _mm256_loadu_si256((const __m256i *)(rows + i));
            const __m256i codes = _mm256_i32gather_epi32((const int *)(const void *)column, row, 4);
            const __m256i above = _mm256_cmpgt_epi32(codes, _mm256_set1_epi32(last));
            const __m256i lack = _mm256_cmpeq_epi32(codes, _mm256_set1_epi32(missing));
            up_to |= (uint32_t)(_mm256_movemask_ps(_mm256_castsi256_ps(above)) ^ 0xff) << i;
            *lacks |= (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(lack)) << i;
        }
        return up_to;
    }
    const __m128i codes = sixteen_codes(column, rows);
    *lacks = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(codes, _mm_set1_epi8((char)missing)));
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(codes, _mm_set1_epi8((char)last)), codes));
}

/* Put the first n parted lanes to ``front``, and the others before ``back``. */
FOR_AVX2 INLINE void put_parted(int lanes, int n, __m256i parted, void *front, void *back) {
    const int per_lane = 8 / lanes;
    if ((char *)back - (char *)front >= 64) {
        _mm256_storeu_si256((__m256i *)front, parted);
        _mm256_storeu_si256((__m256i *)back - 1, parted);
        return;
    }
    const __m256i place = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    const __m256i first = _mm256_cmpgt_epi32(_mm256_set1_epi32(n * per_lane), place);
    const __m256i others = _mm256_xor_si256(first, _mm256_set1_epi32(-1));
    _mm256_maskstore_epi32((int *)front, first, parted);
    _mm256_maskstore_epi32((int *)back - 8, others, parted);
}

FOR_AVX2 INLINE void put_rows_avx2(uint32_t left, const uint32_t *rows, uint32_t *front, uint32_t *back) {
    for (int i = 0; i < 16; i += 8) {
        const uint32_t marks = left >> i & 0xff;
        const int n = __builtin_popcount(marks);
        put_parted(8, n, eight_parted(marks, _mm256_loadu_si256((const __m256i *)(rows + i))), front, back);
        front += n;
        back -= 8 - n;
    }
}

FOR_AVX2 INLINE void put_sums_avx2(uint32_t left, const int64_t *sums, int64_t *front, int64_t *back) {
    for (int i = 0; i < 16; i += 4) {
        const uint32_t marks = left >> i & 0xf;
        const int n = __builtin_popcount(marks);
        put_parted(4, n, four_parted(marks, _mm256_loadu_si256((const __m256i *)(sums + i))), front, back);
        front += n;
        back -= 4 - n;
    }
}

#define OF(name) name##_avx2
#define TARGET FOR_AVX2 static
#include "growing/parting_by_sixteen.h"
#endif

#if HAS_NEON
/* Bit i of ``first`` is that of byte i, which is 0 or 255, and bit i of ``second`` likewise. */
INLINE uint32_t bits_of(uint8x16_t first, uint8x16_t second, uint32_t *second_bits) {
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201ULL));
    const uint8x16_t twos = vpaddq_u8(vandq_u8(first, bit), vandq_u8(second, bit));
    const uint8x16_t fours = vpaddq_u8(twos, twos);
    const uint32_t both = vgetq_lane_u32(vreinterpretq_u32_u8(vpaddq_u8(fours, fours)), 0);
    *second_bits = both >> 16;
    return both & 0xffff;
}

INLINE uint8x16_t narrowed(const uint32x4_t *four) {
    return vcombine_u8(vmovn_u16(vcombine_u16(vmovn_u32(four[0]), vmovn_u32(four[1]))),
                       vmovn_u16(vcombine_u16(vmovn_u32(four[2]), vmovn_u32(four[3]))));
}

INLINE uint32_t compare_sixteen_neon(int is_long, const uint8_t *column, const uint32_t *rows, int32_t last,
                                     int32_t missing, uint32_t *lacks) {
    if (is_long) {
        uint32x4_t up_to[4], lack[4];
        for (int i = 0; i < 4; i++) {
            uint32_t codes[4];
            for (int k = 0; k < 4; k++)
                codes[k] = code_at(1, column, rows[4 * i + k]);
            up_to[i] = vcleq_u32(vld1q_u32(codes), vdupq_n_u32((uint32_t)last));
            lack[i] = vceqq_u32(vld1q_u32(codes), vdupq_n_u32((uint32_t)missing));
        }
        return bits_of(narrowed(up_to), narrowed(lack), lacks);
    }
    const uint8x16_t codes =
        vcombine_u8(vcreate_u8(eight_codes(column, rows)), vcreate_u8(eight_codes(column, rows + 8)));
    return bits_of(vcleq_u8(codes, vdupq_n_u8((uint8_t)last)), vceqq_u8(codes, vdupq_n_u8((uint8_t)missing)), lacks);
}

static const uint8_t N_BITS[16] = {0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4};

INLINE void put_rows_neon(uint32_t left, const uint32_t *rows, uint32_t *front, uint32_t *back) {
    for (int i = 0; i < 16; i += 4) {
        const uint32x4_t parted = four_parted(left >> i, vld1q_u32(rows + i));
        vst1q_u32(front, parted);
        vst1q_u32(back - (i + 4), parted);
        front += N_BITS[left >> i & 15];
        back += N_BITS[left >> i & 15];
    }
}

INLINE void put_sums_neon(uint32_t left, const int64_t *sums, int64_t *front, int64_t *back) {
    for (int i = 0; i < 16; i += 4) {
        put_four_parted(left >> i, sums + i, front, back - i);
        front += N_BITS[left >> i & 15];
        back += N_BITS[left >> i & 15];
    }
}

enum { room_neon = 32 }; /* whole registers are always written; the surplus is overwritten by later rows */
#define OF(name) name##_neon
#define TARGET INLINE
#include "growing/parting_by_sixteen.h"
#endif

INLINE parted part_codes(int is_long, int with_sums, const uint8_t *column, const way *way, int64_t n,
                         const uint32_t *rows, const int64_t *sums, uint32_t *row_scratch, int64_t *sum_scratch) {
    const int apart = lie_apart(rows, n);
    int64_t first = 0;
    parted found = {0, 0};
    if (apart)
        fetch_first(column, size_of_code(is_long), rows, n);
    if (way->last < 0)
        return part_one_by_one(is_long, 1, with_sums, apart, column, way, 0, n, rows, sums, row_scratch, sum_scratch,
                               found);
#if HAS_X86
    if (simd_level() == AVX512)
        first = part_sixteen_avx512(is_long, with_sums, apart, column, way, n, rows, sums, row_scratch, sum_scratch,
                                    &found);
    else if (simd_level() == AVX2)
        first = part_sixteen_avx2(is_long, with_sums, apart, column, way, n, rows, sums, row_scratch, sum_scratch,
                                  &found);
#elif HAS_NEON
    if (simd_level() == NEON)
        first = part_sixteen_neon(is_long, with_sums, apart, column, way, n, rows, sums, row_scratch, sum_scratch,
                                  &found);
#endif
    return part_one_by_one(is_long, 0, with_sums, apart, column, way, first, n, rows, sums, row_scratch, sum_scratch,
                           found);
}

static inline parted part(int is_long, const uint8_t *column, const way *way, int64_t n, const uint32_t *rows,
                          const int64_t *sums, uint32_t *row_scratch, int64_t *sum_scratch) {
    if (is_long)
        return sums ? part_codes(1, 1, column, way, n, rows, sums, row_scratch, sum_scratch)
                    : part_codes(1, 0, column, way, n, rows, sums, row_scratch, sum_scratch);
    return sums ? part_codes(0, 1, column, way, n, rows, sums, row_scratch, sum_scratch)
                : part_codes(0, 0, column, way, n, rows, sums, row_scratch, sum_scratch);
}

INLINE int64_t count_codes(int is_long, const uint8_t *RESTRICT column, uint32_t last, uint32_t also,
                           const uint32_t *RESTRICT rows, int64_t n) {
    int64_t n_left = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t code = code_at(is_long, column, rows[i]);
        n_left += (code <= last) | (code == also);
    }
    return n_left;
}

/* The number of rows whose code is at most ``last``, or is ``also``, which is -1 if there is no such code. */
EACH_WIDTH(int64_t, count_left,
           (int is_long, const uint8_t *RESTRICT column, int32_t last, int32_t also, const uint32_t *RESTRICT rows,
            int64_t n),
           (is_long, column, last, also, rows, n)) {
    return is_long ? count_codes(1, column, (uint32_t)last, (uint32_t)also, rows, n)
                   : count_codes(0, column, (uint32_t)last, (uint32_t)also, rows, n);
}

EACH_WIDTH(void, take_rows,
           (const uint32_t *RESTRICT scratch, int64_t n, int64_t n_left, uint32_t *RESTRICT left,
            uint32_t *RESTRICT right),
           (scratch, n, n_left, left, right)) {
    memcpy(left, scratch, n_left * sizeof *left);
    for (int64_t i = 0; i < n - n_left; i++)
        right[i] = scratch[n - 1 - i];
}

EACH_WIDTH(void, take_sums,
           (const int64_t *RESTRICT scratch, int64_t n, int64_t n_left, int64_t *RESTRICT left,
            int64_t *RESTRICT right),
           (scratch, n, n_left, left, right)) {
    memcpy(left, scratch, n_left * sizeof *left);
    for (int64_t i = 0; i < n - n_left; i++)
        right[i] = scratch[n - 1 - i];
}

#endif
