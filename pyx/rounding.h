/* A round's gradients and hessians as integers, rounded once: sums are then exact, hence the same in any order.
 *
 *   row, or sum of rows   | gradient : 64 - bits, signed | hessian : bits |     one int64
 *
 * The sum over all rows fits, in steps, into either field (see ranktrees.rounding), so no sum over some of
 * them, and no difference of two such sums, carries from one field into the other. */
#ifndef RANKTREES_ROUNDING_H
#define RANKTREES_ROUNDING_H

#include <math.h>
#include <stdint.h>

#include "portable.h"
#include "simd.h"

/* Adding it rounds |x| < 2^51 half to even and leaves the integer in the lower bits. */
#define TO_INTEGER 0x1.8p52

INLINE int64_t rounded(double x) {
    return (int64_t)(portable_to_bits(x + TO_INTEGER) - portable_to_bits(TO_INTEGER));
}

/* The largest |value|, as bits: NaN is larger than infinity. different becomes 0 if all are the same. */
EACH_WIDTH(uint64_t, largest_bits, (int64_t n, const double *RESTRICT values, uint64_t *different),
           (n, values, different)) {
    uint64_t most = 0, other = 0;
    const uint64_t first = n ? portable_to_bits(values[0]) : 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bits = portable_to_bits(values[i]), size = bits & 0x7fffffffffffffffULL;
        most = size > most ? size : most;
        other |= bits ^ first;
    }
    *different = other;
    return most;
}

/* The sum of |value| * scale, each rounded. */
EACH_WIDTH(int64_t, total_steps, (int64_t n, const double *RESTRICT values, double scale),
           (n, values, scale)) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += rounded((values[i] < 0 ? -values[i] : values[i]) * scale);
    return sum;
}

/* One row: a positive hessian stays positive. */
INLINE int64_t row_sum(double gradient, double hessian, double gradient_scale, double hessian_scale, int bits) {
    int64_t steps = rounded(hessian * hessian_scale);
    steps += (hessian > 0) & (steps < 1);
    return (int64_t)((uint64_t)rounded(gradient * gradient_scale) << bits) + steps;
}

/* The rows of ``order``, or all where it is NULL. Where all hessians are the same they are not looked at:
 * a row's is one step, and so the hessian of a sum is its number of rows. */
EACH_WIDTH(void, round_stretch,
           (int64_t n, const uint32_t *RESTRICT order, const double *RESTRICT gradients,
            const double *RESTRICT hessians, double gradient_scale, double hessian_scale, int bits, int same,
            int64_t *RESTRICT sums),
           (n, order, gradients, hessians, gradient_scale, hessian_scale, bits, same, sums)) {
    if (same && !order)
        for (int64_t i = 0; i < n; i++)
            sums[i] = row_sum(gradients[i], 1.0, gradient_scale, 1.0, bits);
    else if (same)
        for (int64_t i = 0; i < n; i++)
            sums[i] = row_sum(gradients[order[i]], 1.0, gradient_scale, 1.0, bits);
    else if (!order)
        for (int64_t i = 0; i < n; i++)
            sums[i] = row_sum(gradients[i], hessians[i], gradient_scale, hessian_scale, bits);
    else
        for (int64_t i = 0; i < n; i++)
            sums[i] = row_sum(gradients[order[i]], hessians[order[i]], gradient_scale, hessian_scale, bits);
}

/* The same, rounded up or down at random with the odds that make it right on average: the row's own draw decides,
 * and whole steps stay what they are. Where rows are sampled, one draw rounds both |gradient| and hessian, so that as
 * many rows as can be become nothing. */
INLINE int64_t row_sum_at_random(double gradient, double hessian, double gradient_scale, double hessian_scale,
                                 int bits, int other_bits, uint64_t key, int64_t row) {
    const uint64_t random = portable_draw(key, (uint64_t)row);
    const double shift = ((double)((int64_t)random >> 32) + 0.5) * 0x1p-32; /* between -1/2 and 1/2 */
    const double other = ((double)((int64_t)(random << other_bits) >> 32) + 0.5) * 0x1p-32;
    const double scaled = gradient * gradient_scale;
    const int64_t negative = -(int64_t)(scaled < 0), size = rounded(fabs(scaled) + shift);
    return (int64_t)((uint64_t)((size ^ negative) - negative) << bits) + rounded(hessian * hessian_scale + other);
}

EACH_WIDTH(void, round_stretch_at_random,
           (int64_t n, int64_t first, const uint32_t *RESTRICT order, const int64_t *RESTRICT numbers,
            const double *RESTRICT gradients, const double *RESTRICT hessians, double gradient_scale,
            double hessian_scale, int bits, int sampled, uint64_t seed, uint64_t stream, int64_t *RESTRICT sums),
           (n, first, order, numbers, gradients, hessians, gradient_scale, hessian_scale, bits, sampled, seed, stream,
            sums)) {
    const uint64_t key = portable_key(seed, stream);
    const int other_bits = sampled ? 0 : 32;
    if (numbers && !order)
        for (int64_t i = 0; i < n; i++)
            sums[i] = row_sum_at_random(gradients[first + i], hessians[first + i], gradient_scale, hessian_scale,
                                        bits, other_bits, key, numbers[first + i]);
    else if (numbers)
        for (int64_t i = 0; i < n; i++)
            sums[i] = row_sum_at_random(gradients[order[i]], hessians[order[i]], gradient_scale, hessian_scale, bits,
                                        other_bits, key, numbers[order[i]]);
    else if (!order)
        for (int64_t i = 0; i < n; i++)
            sums[i] = row_sum_at_random(gradients[first + i], hessians[first + i], gradient_scale, hessian_scale,
                                        bits, other_bits, key, first + i);
    else
        for (int64_t i = 0; i < n; i++)
            sums[i] = row_sum_at_random(gradients[order[i]], hessians[order[i]], gradient_scale, hessian_scale, bits,
                                        other_bits, key, order[i]);
}

/* The sum of values[row] over some rows, the same in any order: integers on the scale of the largest of them,
 * so that light rows count to the last bit where they are alone. In three steps, for the rows of many ranks. */
EACH_WIDTH(double, largest_of_rows, (const double *RESTRICT values, const uint32_t *RESTRICT rows, int64_t n),
           (values, rows, n)) {
    uint64_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t size = portable_to_bits(values[rows[i]]) & 0x7fffffffffffffffULL;
        most = size > most ? size : most;
    }
    return portable_from_bits(most);
}

/* 1.0 has 2^places steps: n values up to the largest add up to less than 2^62 of them. */
INLINE int places_for(double largest, int64_t n) {
    int bits = 51, exponent;
    while (bits > 0 && n > (int64_t)1 << (62 - bits))
        bits--;
    frexp(largest, &exponent);
    return bits - exponent < 1000 ? bits - exponent : 1000;
}

EACH_WIDTH(int64_t, steps_of_rows,
           (const double *RESTRICT values, const uint32_t *RESTRICT rows, int64_t n, int places),
           (values, rows, n, places)) {
    const double scale = ldexp(1.0, places);
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++)
        total += rounded(values[rows[i]] * scale);
    return total;
}

INLINE double exact_sum(const double *values, const uint32_t *rows, int64_t n) {
    const double largest = largest_of_rows(values, rows, n);
    const int places = places_for(largest, n);
    return largest == 0 ? 0.0 : ldexp((double)steps_of_rows(values, rows, n, places), -places);
}

/* The same where all values are this one. */
INLINE double exact_sum_of_same(double value, int64_t n) {
    const int places = places_for(value, n);
    return value == 0 ? 0.0 : ldexp((double)(n * rounded(value * ldexp(1.0, places))), -places);
}

#endif
