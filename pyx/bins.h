/* What the histogram kernels need of the machine.
 *
 * Adding one bin to another is one 128-bit addition where the machine has it.
 *
 *   | gradient : int64 | hessian : uint32 | count : uint32 |
 *   |    64-bit lane   |           64-bit lane             |
 *
 * Hessians and counts of all rows stay below 2^32 (see histogram.round_rows), so nothing carries
 * from one field of the second lane into the other. */
#ifndef RANKTREES_BINS_H
#define RANKTREES_BINS_H

#include <stdint.h>
#include <string.h>

#if defined(__GNUC__)
typedef uint64_t bin_lanes __attribute__((vector_size(16), aligned(8)));

static inline void bin_add(void *cell, const void *row) {
    *(bin_lanes *)cell += *(const bin_lanes *)row;
}
static inline void bin_subtract(void *cell, const void *row) {
    *(bin_lanes *)cell -= *(const bin_lanes *)row;
}
#define prefetch_line(address) __builtin_prefetch(address)
#define lowest_bit(bits) __builtin_ctzll(bits)
#else
static inline void bin_combine(void *cell, const void *row, int negative) {
    uint64_t a[2], b[2];
    memcpy(a, cell, 16);
    memcpy(b, row, 16);
    a[0] += negative ? 0 - b[0] : b[0];
    a[1] += negative ? 0 - b[1] : b[1];
    memcpy(cell, a, 16);
}
static inline void bin_add(void *cell, const void *row) { bin_combine(cell, row, 0); }
static inline void bin_subtract(void *cell, const void *row) { bin_combine(cell, row, 1); }
#define prefetch_line(address) ((void)(address))

static inline int lowest_bit(uint64_t bits) {
    int position = 0;
    while (!(bits & 1)) {
        bits >>= 1;
        position++;
    }
    return position;
}
#endif

#endif
