/* List the rows that have a mark, and list the others, each in the order of the rows.
 *
 *   marks     bit i % 64 of word i / 64 is the mark of the i-th row
 *   rows      a b c d e f g h          or, if NULL, first, first + 1, ...
 *   marked    a c d g
 *   others    b e f h */
#ifndef RANKTREES_LISTING_H
#define RANKTREES_LISTING_H

#include <stdint.h>

#include "support/bins.h"
#include "support/lanes.h"
#include "support/simd.h"

/* The marks of 64 rows, from one byte for each, which is 0 or 1. */
INLINE uint64_t marks_of(const uint8_t *is_marked) {
    uint64_t marks = 0;
    for (int k = 0; k < 64; k += 8) /* put the lowest bits of eight bytes side by side */
        marks |= (eight_bytes(is_marked + k) * 0x0102040810204080ULL >> 56) << k;
    return marks;
}

INLINE uint32_t *list_bits(uint64_t bits, int64_t first, const uint32_t *rows, uint32_t *place) {
    for (; bits; bits &= bits - 1) {
        const int64_t i = lowest_bit(bits);
        *place++ = rows ? rows[i] : (uint32_t)(first + i);
    }
    return place;
}

INLINE void list_one_by_one(int64_t n, int64_t first, const uint32_t *rows, const uint64_t *marks, uint32_t *marked,
                            uint32_t *others) {
    for (int64_t i = 0; i < n; i += 64) {
        const uint64_t all = n - i < 64 ? ((uint64_t)1 << (n - i)) - 1 : ~(uint64_t)0;
        const uint64_t chosen = marks ? marks[i / 64] : all;
        marked = list_bits(chosen & all, first + i, rows ? rows + i : NULL, marked);
        others = list_bits(all & ~chosen, first + i, rows ? rows + i : NULL, others);
    }
}

#if HAS_X86
/* Put those of sixteen rows whose bit is set to ``place``, and write nothing behind them, where another thread may list
 * rows. Return where they end. */
FOR_AVX512 INLINE uint32_t *put_marked(__mmask16 bits, __m512i row, uint32_t *place) {
    const int n = __builtin_popcount(bits);
    _mm512_mask_storeu_epi32(place, (__mmask16)((1u << n) - 1), _mm512_maskz_compress_epi32(bits, row));
    return place + n;
}

FOR_AVX512 static inline void list_by_sixteen(int64_t n, int64_t first, const uint32_t *rows, const uint64_t *marks,
                                              uint32_t *marked, uint32_t *others) {
    const __m512i next = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    for (int64_t i = 0; i < n; i += 16) {
        const __mmask16 all = (__mmask16)(n - i < 16 ? (1u << (n - i)) - 1 : 0xffff);
        const __mmask16 chosen = marks ? (__mmask16)(marks[i / 64] >> (i % 64)) & all : all;
        const __m512i row = rows ? _mm512_maskz_loadu_epi32(all, rows + i)
                                 : _mm512_add_epi32(_mm512_set1_epi32((int32_t)(first + i)), next);
        marked = put_marked(chosen, row, marked);
        others = put_marked(all & ~chosen, row, others);
    }
}

enum { LISTED_TOGETHER = 512 }; /* rows listed at a time, in buffers that have room for whole registers */

/* The same with registers of eight rows, through buffers. */
FOR_AVX2 static void list_by_eight(int64_t n, int64_t first, const uint32_t *rows, const uint64_t *marks,
                                   uint32_t *marked, uint32_t *others) {
    const __m256i next = _mm256_set_epi32(7, 6, 5, 4, 3, 2, 1, 0);
    uint32_t chosen[LISTED_TOGETHER + 8], rest[LISTED_TOGETHER + 8];
    for (int64_t start = 0; start < n; start += LISTED_TOGETHER) {
        const int64_t stop = n - start < LISTED_TOGETHER ? n : start + LISTED_TOGETHER;
        int64_t n_chosen = 0, n_rest = 0, i = start;
        for (; i + 8 <= stop; i += 8) {
            const uint32_t bits = marks ? marks[i / 64] >> (i % 64) & 0xff : 0xff;
            const __m256i row = rows ? _mm256_loadu_si256((const __m256i *)(rows + i))
                                     : _mm256_add_epi32(_mm256_set1_epi32((int32_t)(first + i)), next);
            _mm256_storeu_si256((__m256i *)(chosen + n_chosen), eight_parted(bits, row));
            _mm256_storeu_si256((__m256i *)(rest + n_rest), eight_parted(bits ^ 0xff, row));
            n_chosen += __builtin_popcount(bits);
            n_rest += 8 - __builtin_popcount(bits);
        }
        for (; i < stop; i++) {
            const int is_marked = marks ? marks[i / 64] >> (i % 64) & 1 : 1;
            chosen[n_chosen] = rest[n_rest] = rows ? rows[i] : (uint32_t)(first + i);
            n_chosen += is_marked;
            n_rest += 1 - is_marked;
        }
        memcpy(marked, chosen, n_chosen * sizeof *chosen);
        memcpy(others, rest, n_rest * sizeof *rest);
        marked += n_chosen;
        others += n_rest;
    }
}
#endif

/* List n rows. If ``marks`` is NULL, all of them count as marked. */
static inline void list_apart(int64_t n, int64_t first, const uint32_t *rows, const uint64_t *marks, uint32_t *marked,
                              uint32_t *others) {
#if HAS_X86
    if (simd_level() == AVX512)
        list_by_sixteen(n, first, rows, marks, marked, others);
    else if (simd_level() == AVX2)
        list_by_eight(n, first, rows, marks, marked, others);
    else
#endif
        list_one_by_one(n, first, rows, marks, marked, others);
}

#endif
