/* Trees as units over blocks of rows: a unit answers up to four questions, for all rows of a block at once.
 *
 *   planes   one byte per row; a question compares a plane with a code, and the answer is whether the byte is <= it
 *
 *            plane 0   | row 0 | row 1 | ... | row 127 |
 *            plane 1   | row 0 | row 1 | ... | row 127 |     ...
 *
 *   unit     up to four connected inner nodes. Below them hang leaves and at most two subtrees, low and high,
 *            which have units of their own. A unit finds, for each row, the leaf below it where the row ends.
 *
 *                  0                 answers   a bit for each question, 1 for the left side
 *                /   \               table     for each of the 16 combinations, the number of the leaf;
 *              1      high                     0 for low, 255 for high
 *            /   \
 *        leaf     2                  found  =  max(low, min(high, table[answers]))
 *               /   \
 *             low    leaf            because leaves are numbered: those of low, its own, those of high
 *
 *   bench    vectors of the same shape as planes: zeros, then slots for the results of units
 *
 *            | 0 0 0 ... 0 | slot 1 | slot 2 | ...
 *
 * The vector of the root holds the leaf of each row. There are no branches and no gathers: the time depends neither
 * on the values nor on how the nodes of a unit are connected. Consecutive units of one shape run in one loop. */
#ifndef RANKTREES_UNITS_H
#define RANKTREES_UNITS_H

#include <stdint.h>

#include "support/simd.h"

#if HAS_X86
#include <immintrin.h>
#elif HAS_NEON
#include <arm_neon.h>
#endif

enum {
    BLOCK_ROWS = 128,
    MOST_LEAVES = 256, /* of a tree in units */
    MOST_QUESTIONS = 4,
    MOST_BELOW = 2, /* subtrees below a unit */
    MOST_SHAPES = (MOST_QUESTIONS + 1) * (MOST_BELOW + 1),
    TO_LOW = 0, /* stands in a table for the subtree low, instead of the number of a leaf */
    TO_HIGH = 255,
    UNITS_AHEAD = 16, /* how many units ahead to prefetch into the L1 cache */
};

/* The shape of a unit: how many questions it asks, and how many subtrees are below it. */
#define SHAPE(n_questions, n_below) ((n_questions) * (MOST_BELOW + 1) + (n_below))

/* ``tree`` distinguishes the units of trees that are scored together. */
typedef struct {
    uint64_t planes; /* 16 bits for each question */
    uint64_t slots;  /* | low : 16 | high : 16 | to : 16 | */
    uint8_t codes[MOST_QUESTIONS];
    uint8_t shape, tree, unused[2];
    uint8_t table[1 << MOST_QUESTIONS];
} unit;

INLINE uint64_t plane_of_question(const unit *u, int question) { return u->planes >> 16 * question & 0xffff; }

INLINE void set_plane(unit *u, int question, uint64_t plane) {
    u->planes = (u->planes & ~((uint64_t)0xffff << 16 * question)) | plane << 16 * question;
}

INLINE void set_slots(unit *u, uint64_t to, uint64_t high, uint64_t low) { u->slots = to | high << 16 | low << 32; }

#ifdef __clang__
#define EACH_ON_ITS_OWN _Pragma("clang loop vectorize(assume_safety)")
#else
#define EACH_ON_ITS_OWN _Pragma("GCC ivdep")
#endif

/* Where a plane of a block, or a vector of the bench, begins. */
#define ROWS_OF(start, number) ((start) + BLOCK_ROWS * (size_t)(number))

/* The operations that units need, for each kind of register. Bits are added from the highest to the lowest. */
#define OF(name) name##_row
#define TARGET
#define REGISTER uint8_t
#define TABLE table_row_t
typedef struct {
    uint8_t found[1 << MOST_QUESTIONS];
} table_row_t;
INLINE uint8_t load_row(const uint8_t *from) { return *from; }
INLINE void store_row(uint8_t *to, uint8_t x) { *to = x; }
INLINE uint8_t all_row(uint8_t x) { return x; }
INLINE uint8_t lower_row(uint8_t x, uint8_t y) { return x < y ? x : y; }
INLINE uint8_t higher_row(uint8_t x, uint8_t y) { return x > y ? x : y; }
INLINE uint8_t add_if_row(uint8_t so_far, uint8_t x, uint8_t code, uint8_t bit) {
    return so_far + (x <= code ? bit : 0);
}
INLINE table_row_t table_row(const uint8_t *from) {
    table_row_t table;
    memcpy(&table, from, sizeof table);
    return table;
}
/* A single answer is looked up by arithmetic, which compilers vectorise over rows. */
INLINE uint8_t look_up_row(int n_questions, table_row_t table, uint8_t answers) {
    const uint8_t *found = table.found;
    return n_questions == 1 ? (uint8_t)(found[0] ^ ((found[0] ^ found[1]) & -answers)) : found[answers];
}
#include "model/units_of_width.h"

#if HAS_NEON
/* Four registers at once: one instruction loads them. */
#define OF(name) name##_neon
#define TARGET
#define REGISTER uint8x16x4_t
#define TABLE uint8x16_t
#define EACH_OF_FOUR(value) {{value(0), value(1), value(2), value(3)}}
INLINE uint8x16x4_t load_neon(const uint8_t *from) { return vld1q_u8_x4(from); }
INLINE void store_neon(uint8_t *to, uint8x16x4_t x) { vst1q_u8_x4(to, x); }
INLINE uint8x16x4_t all_neon(uint8_t x) {
    const uint8x16_t all = vdupq_n_u8(x);
    return (uint8x16x4_t){{all, all, all, all}};
}
#define LOWER(i) vminq_u8(x.val[i], y.val[i])
#define HIGHER(i) vmaxq_u8(x.val[i], y.val[i])
INLINE uint8x16x4_t lower_neon(uint8x16x4_t x, uint8x16x4_t y) { return (uint8x16x4_t)EACH_OF_FOUR(LOWER); }
INLINE uint8x16x4_t higher_neon(uint8x16x4_t x, uint8x16x4_t y) { return (uint8x16x4_t)EACH_OF_FOUR(HIGHER); }
/* Shifts the bits so far to the left, and puts the lowest of the comparison behind them. */
#define WITH_NEXT(i) vsliq_n_u8(vcleq_u8(x.val[i], code.val[i]), so_far.val[i], 1)
INLINE uint8x16x4_t add_if_neon(uint8x16x4_t so_far, uint8x16x4_t x, uint8x16x4_t code, uint8x16x4_t bit) {
    (void)bit;
    return (uint8x16x4_t)EACH_OF_FOUR(WITH_NEXT);
}
INLINE uint8x16_t table_neon(const uint8_t *from) { return vld1q_u8(from); }
#define LOOKED_UP(i) vqtbl1q_u8(table, answers.val[i])
INLINE uint8x16x4_t look_up_neon(int n_questions, uint8x16_t table, uint8x16x4_t answers) {
    (void)n_questions;
    return (uint8x16x4_t)EACH_OF_FOUR(LOOKED_UP);
}
#include "model/units_of_width.h"
#endif

#if HAS_X86
#define OF(name) name##_avx2
#define TARGET FOR_AVX2
#define REGISTER __m256i
#define TABLE __m256i
TARGET INLINE __m256i load_avx2(const uint8_t *from) { return _mm256_loadu_si256((const __m256i *)from); }
TARGET INLINE void store_avx2(uint8_t *to, __m256i x) { _mm256_storeu_si256((__m256i *)to, x); }
TARGET INLINE __m256i all_avx2(uint8_t x) { return _mm256_set1_epi8((char)x); }
TARGET INLINE __m256i lower_avx2(__m256i x, __m256i y) { return _mm256_min_epu8(x, y); }
TARGET INLINE __m256i higher_avx2(__m256i x, __m256i y) { return _mm256_max_epu8(x, y); }
TARGET INLINE __m256i add_if_avx2(__m256i so_far, __m256i x, __m256i code, __m256i bit) {
    return _mm256_add_epi8(so_far, _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_min_epu8(x, code), x), bit));
}
TARGET INLINE __m256i table_avx2(const uint8_t *from) {
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)from));
}
TARGET INLINE __m256i look_up_avx2(int n_questions, __m256i table, __m256i answers) {
    (void)n_questions;
    return _mm256_shuffle_epi8(table, answers);
}
#include "model/units_of_width.h"

#define OF(name) name##_avx512
#define TARGET FOR_AVX512
#define REGISTER __m512i
#define TABLE __m512i
TARGET INLINE __m512i load_avx512(const uint8_t *from) { return _mm512_loadu_si512(from); }
TARGET INLINE void store_avx512(uint8_t *to, __m512i x) { _mm512_storeu_si512(to, x); }
TARGET INLINE __m512i all_avx512(uint8_t x) { return _mm512_set1_epi8((char)x); }
TARGET INLINE __m512i lower_avx512(__m512i x, __m512i y) { return _mm512_min_epu8(x, y); }
TARGET INLINE __m512i higher_avx512(__m512i x, __m512i y) { return _mm512_max_epu8(x, y); }
TARGET INLINE __m512i add_if_avx512(__m512i so_far, __m512i x, __m512i code, __m512i bit) {
    return _mm512_mask_add_epi8(so_far, _mm512_cmpge_epu8_mask(code, x), so_far, bit);
}
TARGET INLINE __m512i table_avx512(const uint8_t *from) {
    return _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)from));
}
TARGET INLINE __m512i look_up_avx512(int n_questions, __m512i table, __m512i answers) {
    (void)n_questions;
    return _mm512_shuffle_epi8(table, answers);
}
#include "model/units_of_width.h"
#endif

static inline void do_units(int n_rows, const unit *units, int64_t n, const uint8_t *planes, uint8_t *bench) {
#if HAS_X86
    if (simd_level() == AVX512)
        do_units_avx512(n_rows, units, n, planes, bench);
    else if (simd_level() == AVX2)
        do_units_avx2(n_rows, units, n, planes, bench);
    else
#elif HAS_NEON
    if (simd_level() == NEON)
        do_units_neon(n_rows, units, n, planes, bench);
    else
#endif
        do_units_row(n_rows, units, n, planes, bench);
}

/* sums[row] += values[found[row]] */
EACH_WIDTH(void, add_found, (int n_rows, const uint8_t *found, const double *values, double *RESTRICT sums),
           (n_rows, found, values, sums)) {
    for (int i = 0; i < n_rows; i++)
        sums[i] += values[found[i]];
}

#if HAS_X86
/* The same for 32 rows at a time. A table holds the values of 32, 64, 128 or 256 leaves in four layers of 16 bits:
 *
 *   | bits 0-15 of values 0 ... 31 | of values 32 ... 63 | ... | bits 16-31 of values 0 ... 31 | ... */
FOR_AVX512 INLINE __m512i entries_of_64(const __m512i *layer, __m512i number) {
    return _mm512_permutex2var_epi16(layer[0], number, layer[1]);
}

FOR_AVX512 INLINE __m512i entries_of_128(const __m512i *layer, __m512i number) {
    return _mm512_mask_blend_epi16(_mm512_test_epi16_mask(number, _mm512_set1_epi16(64)),
                                   entries_of_64(layer, number), entries_of_64(layer + 2, number));
}

FOR_AVX512 INLINE __m512i entries_of_256(const __m512i *layer, __m512i number) {
    return _mm512_mask_blend_epi16(_mm512_test_epi16_mask(number, _mm512_set1_epi16(128)),
                                   entries_of_128(layer, number), entries_of_128(layer + 4, number));
}

enum { PARTS = BLOCK_ROWS / 32 };

FOR_AVX512 INLINE void add_entries(int size, int n_parts, const uint8_t *found, const double *table, double *sums) {
    __m512i number[PARTS], words[PARTS][4], layer[MOST_LEAVES / 32];
    /* Interleaving the layers below transposes the pairs of rows. To transpose them here as well undoes that. */
    const __m256i pairs = _mm256_set_epi16(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
    for (int p = 0; p < n_parts; p++)
        number[p] = _mm512_cvtepu8_epi16(
            _mm256_permutexvar_epi16(pairs, _mm256_loadu_si256((const __m256i *)(found + 32 * p))));
    for (int w = 0; w < 4; w++) {
        for (int r = 0; r < size / 32; r++)
            layer[r] = _mm512_loadu_si512(table + (size / 4) * w + 8 * r);
        for (int p = 0; p < n_parts; p++)
            words[p][w] = size == 32    ? _mm512_permutexvar_epi16(number[p], layer[0])
                          : size == 64  ? entries_of_64(layer, number[p])
                          : size == 128 ? entries_of_128(layer, number[p])
                                        : entries_of_256(layer, number[p]);
    }
    for (int p = 0; p < n_parts; p++) {
        const __m512i first = _mm512_unpacklo_epi16(words[p][0], words[p][1]);
        const __m512i second = _mm512_unpackhi_epi16(words[p][0], words[p][1]);
        const __m512i third = _mm512_unpacklo_epi16(words[p][2], words[p][3]);
        const __m512i fourth = _mm512_unpackhi_epi16(words[p][2], words[p][3]);
        const __m512i values[4] = {_mm512_unpacklo_epi32(first, third), _mm512_unpackhi_epi32(first, third),
                                   _mm512_unpacklo_epi32(second, fourth), _mm512_unpackhi_epi32(second, fourth)};
        for (int v = 0; v < 4; v++) {
            double *to = sums + 32 * p + 8 * v;
            _mm512_storeu_pd(to, _mm512_add_pd(_mm512_loadu_pd(to), _mm512_castsi512_pd(values[v])));
        }
    }
}

FOR_AVX512 static void add_from_table(int n_rows, int size, const uint8_t *found, const double *table, double *sums) {
#define OF_SIZE(size)                                                                                      \
    case size:                                                                                             \
        if (n_rows <= 64)                                                                                  \
            add_entries(size, 2, found, table, sums);                                                      \
        else                                                                                               \
            add_entries(size, PARTS, found, table, sums);                                                  \
        break;
    switch (size) {
        OF_SIZE(32)
        OF_SIZE(64)
        OF_SIZE(128)
        OF_SIZE(256)
    }
#undef OF_SIZE
}
#endif

/* The number of doubles that the values of a tree take up. */
static inline int64_t table_size(int n_leaves) {
    if (simd_level() != AVX512 || n_leaves > MOST_LEAVES)
        return n_leaves;
    int64_t size = 32;
    while (size < n_leaves)
        size *= 2;
    return size;
}

static inline void set_value(double *table, int n_leaves, int leaf, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (simd_level() == AVX512)
        for (int w = 0; w < 4; w++)
            ((uint16_t *)table)[table_size(n_leaves) * w + leaf] = (uint16_t)(bits >> 16 * w);
    else
        table[leaf] = value;
}

static inline void add_values(int n_rows, int n_leaves, const uint8_t *found, const double *table, double *sums) {
#if HAS_X86
    if (simd_level() == AVX512) {
        add_from_table(n_rows, (int)table_size(n_leaves), found, table, sums);
        return;
    }
#endif
    add_found(n_rows, found, table, sums);
}

#endif
