/* Rows to the left and to the right of a split, each side keeping its order.
 *
 *   rows      a b c d e f g h            in place, through scratch of the same length:
 *   scratch   a c d g h f e b            left ones from the front, right ones from the back
 *
 * Without branches: which way a row goes can not be guessed. Where ``sums`` is not NULL it goes along. */
#ifndef RANKTREES_PARTING_H
#define RANKTREES_PARTING_H

#include <stdint.h>
#include <string.h>

#include "bins.h"
#include "codes.h"
#include "simd.h"

#if HAS_SIMD
#include <immintrin.h>
#endif

/* Codes up to last go left, and missing ones if they do; or else, for categories, those of left[]. */
typedef struct {
    int32_t last;         /* -1 for categories */
    int32_t missing;      /* the code of rows without a value */
    int32_t missing_left; /* whether they go left */
    uint8_t left[256];
} way;

/* The rows on the left, and whether some of all had no value. */
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

#if HAS_SIMD
/* Of sixteen rows those of ``left`` to the front, the others backwards to before ``back``. What is between these
 * may be written where there is ``room`` for sixteen more: rows to come are put over it. */
FOR_AVX512 INLINE void put_rows(__mmask16 left, int room, __m512i row, uint32_t *front, uint32_t *back) {
    const __m512i backwards = _mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i lefts = _mm512_maskz_compress_epi32(left, row);
    const __m512i rights =
        _mm512_permutexvar_epi32(backwards, _mm512_maskz_compress_epi32((__mmask16)~left, row));
    const uint32_t first = room ? 0xffff : (1u << __builtin_popcount(left)) - 1;
    _mm512_mask_storeu_epi32(front, (__mmask16)first, lefts);
    _mm512_mask_storeu_epi32(back - 16, (__mmask16)(room ? 0xffff : ~first), rights);
}

/* The same of the sums of eight rows. */
FOR_AVX512 INLINE void put_sums(__mmask8 left, int room, __m512i sum, int64_t *front, int64_t *back) {
    const __m512i backwards = _mm512_set_epi64(0, 1, 2, 3, 4, 5, 6, 7);
    const __m512i lefts = _mm512_maskz_compress_epi64(left, sum);
    const __m512i rights = _mm512_permutexvar_epi64(backwards, _mm512_maskz_compress_epi64((__mmask8)~left, sum));
    const uint32_t first = room ? 0xff : (1u << __builtin_popcount(left)) - 1;
    _mm512_mask_storeu_epi64(front, (__mmask8)first, lefts);
    _mm512_mask_storeu_epi64(back - 8, (__mmask8)(room ? 0xff : ~first), rights);
}

/* The codes of sixteen rows. Bytes are read one by one: instructions that gather are slow on some processors. */
INLINE uint64_t eight_codes(const uint8_t *column, const uint32_t *rows) {
#define TWO(i) (column[rows[i]] | (uint32_t)column[rows[i + 1]] << 8)
#define FOUR(i) (TWO(i) | TWO(i + 2) << 16)
    return FOUR(0) | (uint64_t)FOUR(4) << 32;
#undef FOUR
#undef TWO
}

FOR_AVX512 INLINE __m512i codes_of_sixteen(int is_long, const uint8_t *column, const uint32_t *rows) {
    if (is_long)
        return _mm512_i32gather_epi32(_mm512_loadu_si512(rows), column, 4);
    return _mm512_cvtepu8_epi32(
        _mm_set_epi64x((int64_t)eight_codes(column, rows + 8), (int64_t)eight_codes(column, rows)));
}

/* Sixteen rows at a time, not by the table. */
FOR_AVX512 static inline int64_t part_sixteen(int is_long, int with_sums, int apart, const uint8_t *column,
                                              const way *way, int64_t n, const uint32_t *rows, const int64_t *sums,
                                              uint32_t *row_scratch, int64_t *sum_scratch, parted *found) {
    const __m512i last = _mm512_set1_epi32(way->last), missing = _mm512_set1_epi32(way->missing);
    const __mmask16 missing_left = way->missing_left ? 0xffff : 0;
    __mmask16 lacking = 0;
    int64_t i = 0, n_left = 0;
    for (; i + 16 <= n; i += 16) {
        if (apart && i + CODES_AHEAD + 16 <= n)
            fetch_each(column, size_of_code(is_long), rows + i + CODES_AHEAD, 16);
        const __m512i codes = codes_of_sixteen(is_long, column, rows + i);
        const __mmask16 lacks = _mm512_cmpeq_epi32_mask(codes, missing);
        const __mmask16 left = _mm512_cmple_epi32_mask(codes, last) | (lacks & missing_left);
        const int64_t back = n - (i - n_left);
        const int room = i + 32 <= n;
        put_rows(left, room, _mm512_loadu_si512(rows + i), row_scratch + n_left, row_scratch + back);
        if (with_sums) {
            const __mmask8 first = (__mmask8)left, second = (__mmask8)(left >> 8);
            const int n_first = __builtin_popcount(first);
            int64_t *front = sum_scratch + n_left, *end = sum_scratch + back;
            put_sums(first, room, _mm512_loadu_si512(sums + i), front, end);
            put_sums(second, room, _mm512_loadu_si512(sums + i + 8), front + n_first, end - (8 - n_first));
        }
        n_left += __builtin_popcount(left);
        lacking |= lacks;
    }
    *found = (parted){n_left, lacking != 0};
    return i;
}
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
#if HAS_SIMD
    if (simd_level() == AVX512)
        first = part_sixteen(is_long, with_sums, apart, column, way, n, rows, sums, row_scratch, sum_scratch, &found);
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

/* How many of some rows have a code up to ``last``, or the code ``also``; that is -1 where there is none. */
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
