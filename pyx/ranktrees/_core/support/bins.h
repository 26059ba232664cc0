/* Sums over rows, and how to add them.
 *
 *   one lane    | gradient | hessian |                                see rounding.h; if all hessians are the
 *                                                                     same, the hessian is the number of rows
 *   two lanes   | gradient : int64 | hessian : uint32, count : uint32 |   a Bin
 *
 * Hessians and counts of all rows stay below 2^32, so nothing carries from one field of the second lane into
 * the other. */
#ifndef RANKTREES_BINS_H
#define RANKTREES_BINS_H

#include <stdint.h>
#include <string.h>

#include "support/portable.h"
#include "support/records.h"
#include "support/simd.h"

enum { COARSE_CELLS = 16 }; /* the most cells of a feature in a coarse search */

typedef uint64_t bin_lanes __attribute__((vector_size(16), aligned(8), may_alias));

INLINE void bin_add(void *cell, const void *row) { *(bin_lanes *)cell += *(const bin_lanes *)row; }
#define lowest_bit(bits) __builtin_ctzll(bits)

/* Eight bytes as a word, of which the first byte is the lowest. */
INLINE uint64_t eight_bytes(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* The two fields of one lane as doubles. They are exact, as sums have at most 53 bits: see RoundedRows. */
INLINE double gradient_of(int width, int64_t sum, int bits) {
    const double unit = portable_from_bits((uint64_t)(1023 - bits) << 52);
    if (KNOWS_LONGS(width))
        return (double)(sum >> bits);
    /* narrower registers have no arithmetic shift of 64 bits */
    return portable_double(width, sum & -((int64_t)1 << bits)) * unit;
}

INLINE double hessian_of(int width, int64_t sum, int bits) {
    return portable_small_double(width, sum & (((int64_t)1 << bits) - 1));
}

/* Widen one lane to two. The count of a sum of several rows is known only if all hessians are the same; otherwise it
 * is set to 1, which is right for a single row. */
INLINE Bin widened(int64_t sum, int bits, int same) {
    Bin wide;
    wide.gradient = sum >> bits;
    wide.hessian = (uint32_t)(sum & (((int64_t)1 << bits) - 1));
    wide.count = same ? wide.hessian : 1;
    return wide;
}

EACH_WIDTH(void, widen, (int64_t n, const int64_t *RESTRICT sums, int bits, int same, Bin *RESTRICT wide),
           (n, sums, bits, same, wide)) {
    for (int64_t i = 0; i < n; i++)
        wide[i] = widened(sums[i], bits, same);
}

/* The same for the cells of one feature. If hessians differ, the count of a cell is 0 if its sum is zero, else 1. */
EACH_WIDTH(void, widen_cells,
           (int64_t n, const int64_t *RESTRICT sums, int bits, int same, Bin *RESTRICT wide),
           (n, sums, bits, same, wide)) {
    for (int64_t i = 0; i < n; i++) {
        wide[i] = widened(sums[i], bits, same);
        if (!same)
            wide[i].count = sums[i] != 0;
    }
}

EACH_WIDTH(int64_t, total_of, (int64_t n, const int64_t *RESTRICT sums), (n, sums)) {
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++)
        total += sums[i];
    return total;
}

EACH_WIDTH(void, add_line, (int64_t n, const int64_t *RESTRICT part, int64_t *RESTRICT whole), (n, part, whole)) {
    for (int64_t i = 0; i < n; i++)
        whole[i] += part[i];
}

EACH_WIDTH(void, subtract_line, (int64_t n, const int64_t *RESTRICT part, int64_t *RESTRICT whole),
           (n, part, whole)) {
    for (int64_t i = 0; i < n; i++)
        whole[i] -= part[i];
}

#endif
