/* Transpose rows to columns, and take the numbers that are needed from columns, a register at a time. */
#ifndef RANKTREES_TAKING_H
#define RANKTREES_TAKING_H

#include "binning/keys.h"

#if HAS_X86
#include <immintrin.h>
#endif

enum { TRANSPOSED = 16 };

#if HAS_X86
/* Load four numbers from every fourth row. */
FOR_AVX512 INLINE __m512 four_of_four(const float *const *rows, int64_t j) {
    __m512 fours = _mm512_castps128_ps512(_mm_loadu_ps(rows[0] + j));
    fours = _mm512_insertf32x4(fours, _mm_loadu_ps(rows[4] + j), 1);
    fours = _mm512_insertf32x4(fours, _mm_loadu_ps(rows[8] + j), 2);
    return _mm512_insertf32x4(fours, _mm_loadu_ps(rows[12] + j), 3);
}

FOR_AVX512 static int64_t transpose_by_sixteen(const float *const *rows, int64_t n_columns, float *columns) {
    int64_t j = 0;
    for (; j + 4 <= n_columns; j += 4) {
        const __m512 a = four_of_four(rows, j), b = four_of_four(rows + 1, j);
        const __m512 c = four_of_four(rows + 2, j), d = four_of_four(rows + 3, j);
        const __m512d ab = _mm512_castps_pd(_mm512_unpacklo_ps(a, b));
        const __m512d cd = _mm512_castps_pd(_mm512_unpacklo_ps(c, d));
        const __m512d AB = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
        const __m512d CD = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
        _mm512_storeu_pd(columns + j * LAID_OUT, _mm512_unpacklo_pd(ab, cd));
        _mm512_storeu_pd(columns + (j + 1) * LAID_OUT, _mm512_unpackhi_pd(ab, cd));
        _mm512_storeu_pd(columns + (j + 2) * LAID_OUT, _mm512_unpacklo_pd(AB, CD));
        _mm512_storeu_pd(columns + (j + 3) * LAID_OUT, _mm512_unpackhi_pd(AB, CD));
    }
    return j;
}

static int64_t transpose_by_four(const float *const *rows, int64_t n_columns, float *columns) {
    int64_t j = 0;
    for (; j + 4 <= n_columns; j += 4)
        for (int i = 0; i < TRANSPOSED; i += 4) {
            __m128 a = _mm_loadu_ps(rows[i] + j), b = _mm_loadu_ps(rows[i + 1] + j);
            __m128 c = _mm_loadu_ps(rows[i + 2] + j), d = _mm_loadu_ps(rows[i + 3] + j);
            _MM_TRANSPOSE4_PS(a, b, c, d);
            _mm_storeu_ps(columns + j * LAID_OUT + i, a);
            _mm_storeu_ps(columns + (j + 1) * LAID_OUT + i, b);
            _mm_storeu_ps(columns + (j + 2) * LAID_OUT + i, c);
            _mm_storeu_ps(columns + (j + 3) * LAID_OUT + i, d);
        }
    return j;
}
#endif

/* Transpose the first columns of TRANSPOSED rows: columns[j * LAID_OUT + i] = rows[i][j]. */
static inline void transpose_floats(const float *const *rows, int64_t n_columns, float *columns) {
    int64_t j = 0;
#if HAS_X86
    j = (simd_level() == AVX512 ? transpose_by_sixteen : transpose_by_four)(rows, n_columns, columns);
#endif
    for (; j < n_columns; j++)
        for (int i = 0; i < TRANSPOSED; i++)
            columns[j * LAID_OUT + i] = rows[i][j];
}

static inline void transpose_doubles(const double *const *rows, int64_t n_columns, double *columns) {
    int64_t j = 0;
#if HAS_X86
    for (; j + 2 <= n_columns; j += 2)
        for (int i = 0; i < TRANSPOSED; i += 2) {
            const __m128d a = _mm_loadu_pd(rows[i] + j), b = _mm_loadu_pd(rows[i + 1] + j);
            _mm_storeu_pd(columns + j * LAID_OUT + i, _mm_unpacklo_pd(a, b));
            _mm_storeu_pd(columns + (j + 1) * LAID_OUT + i, _mm_unpackhi_pd(a, b));
        }
#endif
    for (; j < n_columns; j++)
        for (int i = 0; i < TRANSPOSED; i++)
            columns[j * LAID_OUT + i] = rows[i][j];
}

#if HAS_X86
/* Store the numbers of ``which``, at a place with room for all that are ``there``. Return how many are stored. */
FOR_AVX512 static inline int put(__mmask16 which, __mmask16 there, __m512i numbers, void *to) {
    _mm512_mask_storeu_epi32(to, there, _mm512_maskz_compress_epi32(which, numbers));
    return __builtin_popcount(which);
}

FOR_AVX512 static int64_t append_sixteen(int64_t n, const float *numbers, float *kept, int64_t *zeros) {
    int64_t n_kept = 0;
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 there = n - i < 16 ? (__mmask16)((1 << (n - i)) - 1) : 0xffff;
        const __m512 x = _mm512_maskz_loadu_ps(there, numbers + i);
        const __mmask16 zero = _mm512_mask_cmp_ps_mask(there, x, _mm512_setzero_ps(), _CMP_EQ_OQ);
        const __mmask16 keep = _mm512_mask_cmp_ps_mask(there & ~zero, x, x, _CMP_ORD_Q);
        n_kept += put(keep, there, _mm512_castps_si512(x), kept + n_kept);
        *zeros += __builtin_popcount(zero);
    }
    return n_kept;
}

FOR_AVX512 static int64_t take_sixteen(int64_t n, uint32_t *keys, const key_ruler *ruler, const uint32_t *wanted,
                                       uint32_t *taken) {
    uint32_t marks[LAID_OUT];
    int64_t n_taken = 0;
    for (int64_t i = 0; i < n; i += 16) {
        if (i % LAID_OUT == 0)
            find_marks_float(n - i < LAID_OUT ? n - i : LAID_OUT, keys + i, ruler, marks);
        const __mmask16 there = n - i < 16 ? (__mmask16)((1 << (n - i)) - 1) : 0xffff;
        const __m512i key = _mm512_maskz_loadu_epi32(there, keys + i);
        const __m512i mark = _mm512_maskz_loadu_epi32(there, marks + i % LAID_OUT);
        const __m512i word = _mm512_mask_i32gather_epi32(key, there, _mm512_srli_epi32(mark, 5), wanted, 4);
        const __m512i bit = _mm512_rolv_epi32(_mm512_set1_epi32(1), mark);
        const __mmask16 take = _mm512_mask_test_epi32_mask(there, word, bit);
        put(there & ~take, there, key, keys + i - n_taken);
        n_taken += put(take, there, key, taken + n_taken);
    }
    return n_taken;
}
#endif

/* Append the numbers that are neither missing nor zero to `kept`, and add the number of zeros to `zeros`. */
static inline int64_t append_floats(int64_t n, const float *numbers, float *kept, int64_t *zeros) {
#if HAS_X86
    if (simd_level() == AVX512)
        return append_sixteen(n, numbers, kept, zeros);
#endif
    return append_float(n, numbers, kept, zeros);
}

/* Whether the bit of a mark is set in the words of wanted marks. */
INLINE int is_wanted(const uint32_t *wanted, uint32_t mark) { return wanted[mark >> 5] >> (mark & 31) & 1; }

#define TAKE_EACH(name, KEY, find_marks)                                                                     \
    static int64_t name(int64_t n, KEY *keys, uint32_t *weights, const key_ruler *ruler,                     \
                        const uint32_t *wanted, KEY *taken, uint32_t *taken_weights) {                       \
        uint32_t marks[LAID_OUT];                                                                            \
        int64_t n_taken = 0;                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                                    \
            if (i % LAID_OUT == 0)                                                                           \
                find_marks(n - i < LAID_OUT ? n - i : LAID_OUT, keys + i, ruler, marks);                     \
            taken[n_taken] = keys[i];                                                                        \
            keys[i - n_taken] = keys[i];                                                                     \
            if (weights) {                                                                                   \
                taken_weights[n_taken] = weights[i];                                                         \
                weights[i - n_taken] = weights[i];                                                           \
            }                                                                                                \
            n_taken += is_wanted(wanted, marks[i % LAID_OUT]);                                               \
        }                                                                                                    \
        return n_taken;                                                                                      \
    }

TAKE_EACH(take_each_float, uint32_t, find_marks_float)
TAKE_EACH(take_keys_double, uint64_t, find_marks_double)
#undef TAKE_EACH

/* Take the keys at wanted marks, with their weights unless NULL; the other keys close up. Return how many are taken. */
static inline int64_t take_keys_float(int64_t n, uint32_t *keys, uint32_t *weights, const key_ruler *ruler,
                                      const uint32_t *wanted, uint32_t *taken, uint32_t *taken_weights) {
#if HAS_X86
    if (simd_level() == AVX512 && !weights)
        return take_sixteen(n, keys, ruler, wanted, taken);
#endif
    return take_each_float(n, keys, weights, ruler, wanted, taken, taken_weights);
}

#endif
