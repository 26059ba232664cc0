/* Trees as steps over blocks of rows: a compare and a choice per inner node, for all rows of a block at once.
 *
 *   planes   for every question asked of rows a byte per row; a row goes left where its byte <= code
 *
 *            plane 0   | row 0 | row 1 | ... | row 127 |
 *            plane 1   | row 0 | row 1 | ... | row 127 |     ...
 *
 *   bench    vectors of the same shape: the numbers of leaves, then slots for what was found
 *
 *            | 0 0 0 ... 0 | 1 1 1 ... 1 | ... | 255 255 ... | slot 0 | slot 1 | ...
 *
 *   step     an inner node: in which leaf below it each row ends.   to = plane <= code ? left : right
 *
 *            | tree : 4 | to : 12 | right : 12 | left : 12 | plane : 16 | code : 8 |
 *
 * The root's vector holds the leaf of each row. No branch, no gather: the time does not depend on the values. */
#ifndef RANKTREES_BLEND_H
#define RANKTREES_BLEND_H

#include <stdint.h>

#include "simd.h"

#if HAS_SIMD
#include <immintrin.h>
#endif

enum {
    BLOCK_ROWS = 128,
    MOST_LEAVES = 256,  /* of a tree in steps */
    TABLE_LEAVES = 64,  /* so many values are looked up in registers */
};

/* A plane of a block, a vector of the bench. */
#define ROWS_OF(start, number) ((start) + BLOCK_ROWS * (size_t)(number))

#if defined(__GNUC__) && !defined(__clang__)
#define EACH_ON_ITS_OWN _Pragma("GCC ivdep")
#elif defined(__clang__)
#define EACH_ON_ITS_OWN _Pragma("clang loop vectorize(assume_safety)")
#elif defined(_MSC_VER)
#define EACH_ON_ITS_OWN __pragma(loop(ivdep))
#else
#define EACH_ON_ITS_OWN
#endif

/* ``tree`` tells the steps of several trees apart that are done together. */
INLINE uint64_t make_step(uint64_t code, uint64_t plane, uint64_t left, uint64_t right, uint64_t to,
                          uint64_t tree) {
    return code | plane << 8 | left << 24 | right << 36 | to << 48 | tree << 60;
}

INLINE int tree_of_step(uint64_t step) { return (int)(step >> 60); }
INLINE int plane_of_step(uint64_t step) { return step >> 8 & 0xffff; }
INLINE uint64_t with_plane(uint64_t step, uint64_t plane) {
    return (step & ~(uint64_t)0xffff00) | plane << 8;
}

INLINE void blend_some(int n_rows, const uint64_t *steps, int64_t n, const uint8_t *planes, uint8_t *bench) {
    for (int64_t k = 0; k < n; k++) {
        const uint64_t step = steps[k];
        const uint8_t code = (uint8_t)step, *plane = ROWS_OF(planes, plane_of_step(step));
        const uint8_t *left = ROWS_OF(bench, step >> 24 & 0xfff), *right = ROWS_OF(bench, step >> 36 & 0xfff);
        uint8_t *to = ROWS_OF(bench, step >> 48 & 0xfff);
        EACH_ON_ITS_OWN
        for (int i = 0; i < n_rows; i++) {
            const uint8_t if_left = left[i], if_right = right[i];
            to[i] = plane[i] <= code ? if_left : if_right;
        }
    }
}

EACH_WIDTH(void, blend_portably,
           (int n_rows, const uint64_t *steps, int64_t n, const uint8_t *planes, uint8_t *bench),
           (n_rows, steps, n, planes, bench)) {
    if (n_rows <= 32)
        blend_some(32, steps, n, planes, bench);
    else if (n_rows <= 64)
        blend_some(64, steps, n, planes, bench);
    else
        blend_some(BLOCK_ROWS, steps, n, planes, bench);
}

/* sums[row] += values[found[row]] */
EACH_WIDTH(void, add_found, (int n_rows, const uint8_t *found, const double *values, double *RESTRICT sums),
           (n_rows, found, values, sums)) {
    for (int i = 0; i < n_rows; i++)
        sums[i] += values[found[i]];
}

#if HAS_SIMD
FOR_AVX512 INLINE void blend_registers(int n_registers, const uint64_t *steps, int64_t n,
                                       const uint8_t *planes, uint8_t *bench) {
    for (int64_t k = 0; k < n; k++) {
        const uint64_t step = steps[k];
        const uint8_t *plane = ROWS_OF(planes, plane_of_step(step));
        const uint8_t *left = ROWS_OF(bench, step >> 24 & 0xfff), *right = ROWS_OF(bench, step >> 36 & 0xfff);
        uint8_t *to = ROWS_OF(bench, step >> 48 & 0xfff);
        const __m512i code = _mm512_set1_epi8((char)step);
        for (int i = 0; i < 64 * n_registers; i += 64) {
            const __mmask64 goes_left = _mm512_cmple_epu8_mask(_mm512_loadu_si512(plane + i), code);
            _mm512_storeu_si512(to + i, _mm512_mask_blend_epi8(goes_left, _mm512_loadu_si512(right + i),
                                                               _mm512_loadu_si512(left + i)));
        }
    }
}

FOR_AVX512 static void blend_wide(int n_rows, const uint64_t *steps, int64_t n, const uint8_t *planes,
                                  uint8_t *bench) {
    if (n_rows <= 64)
        blend_registers(1, steps, n, planes, bench);
    else
        blend_registers(2, steps, n, planes, bench);
}

/* The same, 64 rows at a time. A table holds the values in four layers of 16 bits, each two registers:
 *
 *   | bits 0-15 of value 0 ... 31 | of value 32 ... 63 | bits 16-31 of value 0 ... 31 | ... */
FOR_AVX512 static void add_from_table(int n_rows, const uint8_t *found, const double *table, double *sums) {
    __m512i low[4], high[4];
    /* Interleaving the layers leaves pairs of rows in the order of this transposition, which undoes it. */
    const __m512i pairs = _mm512_set_epi16(31, 27, 23, 19, 30, 26, 22, 18, 29, 25, 21, 17, 28, 24, 20, 16,
                                           15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    for (int w = 0; w < 4; w++) {
        low[w] = _mm512_loadu_si512(table + 16 * w);
        high[w] = _mm512_loadu_si512(table + 16 * w + 8);
    }
    for (int i = 0; i < n_rows; i += 64) {
        const __m512i numbers = _mm512_permutexvar_epi16(pairs, _mm512_loadu_si512(found + i));
        for (int half = 0; half < 2; half++) {
            const __m512i number = _mm512_cvtepu8_epi16(half ? _mm512_extracti64x4_epi64(numbers, 1)
                                                             : _mm512_castsi512_si256(numbers));
            const __mmask32 is_high = _mm512_test_epi16_mask(number, _mm512_set1_epi16(32));
            __m512i word[4];
            for (int w = 0; w < 4; w++)
                word[w] = _mm512_mask_blend_epi16(is_high, _mm512_permutexvar_epi16(number, low[w]),
                                                  _mm512_permutexvar_epi16(number, high[w]));
            const __m512i first = _mm512_unpacklo_epi16(word[0], word[1]);
            const __m512i second = _mm512_unpackhi_epi16(word[0], word[1]);
            const __m512i third = _mm512_unpacklo_epi16(word[2], word[3]);
            const __m512i fourth = _mm512_unpackhi_epi16(word[2], word[3]);
            const __m512i values[4] = {
                _mm512_unpacklo_epi32(first, third), _mm512_unpackhi_epi32(first, third),
                _mm512_unpacklo_epi32(second, fourth), _mm512_unpackhi_epi32(second, fourth)};
            double *to = sums + i + 32 * half;
            for (int v = 0; v < 4; v++)
                _mm512_storeu_pd(to + 8 * v,
                                 _mm512_add_pd(_mm512_loadu_pd(to + 8 * v), _mm512_castsi512_pd(values[v])));
        }
    }
}
#endif

static inline int uses_tables(int n_leaves) { return simd_level() == AVX512 && n_leaves <= TABLE_LEAVES; }

/* How many doubles the values of a tree take up. */
static inline int64_t table_size(int n_leaves) { return uses_tables(n_leaves) ? TABLE_LEAVES : n_leaves; }

static inline void set_value(double *table, int n_leaves, int leaf, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (uses_tables(n_leaves))
        for (int w = 0; w < 4; w++)
            ((uint16_t *)table)[TABLE_LEAVES * w + leaf] = (uint16_t)(bits >> 16 * w);
    else
        table[leaf] = value;
}

static inline void blend(int n_rows, const uint64_t *steps, int64_t n, const uint8_t *planes,
                         uint8_t *bench) {
#if HAS_SIMD
    if (simd_level() == AVX512) {
        blend_wide(n_rows, steps, n, planes, bench);
        return;
    }
#endif
    blend_portably(n_rows, steps, n, planes, bench);
}

static inline void add_values(int n_rows, int n_leaves, const uint8_t *found, const double *table,
                              double *sums) {
#if HAS_SIMD
    if (uses_tables(n_leaves)) {
        add_from_table(n_rows, found, table, sums);
        return;
    }
#endif
    add_found(n_rows, found, table, sums);
}

#endif
