/* The gradients and hessians of a round are rounded to integers once. Sums are then exact, hence the same in any order.
 *
 *   row, or sum of rows   | gradient : 64 - bits, signed | hessian : bits |     one int64
 *
 * Integers count steps, whose size is chosen so that the sum over all rows fits into either field (see
 * ranktrees.growing.rounding). So no sum over some of the rows, and no difference of two such sums, carries from one
 * field into the other. */
#ifndef RANKTREES_ROUNDING_H
#define RANKTREES_ROUNDING_H

#include <math.h>
#include <stdint.h>

#include "support/listing.h"
#include "support/portable.h"
#include "support/simd.h"

enum { ROWS_TOGETHER = 512 };

/* Adding this number rounds |x| < 2^51 half to even, and leaves the integer in the lower bits. */
#define TO_INTEGER 0x1.8p52

INLINE int64_t rounded(double x) {
    return (int64_t)(portable_to_bits(x + TO_INTEGER) - portable_to_bits(TO_INTEGER));
}

/* The largest |value|, as bits, by which NaN is larger than infinity. ``different`` becomes 0 if all values are the
 * same. */
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
    uint64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (uint64_t)rounded((values[i] < 0 ? -values[i] : values[i]) * scale);
    return (int64_t)sum;
}

/* The values to round, and the size of the steps. */
typedef struct {
    const double *gradients, *hessians; /* of all rows; hessians are NULL if all are the same */
    double hessian;                     /* the hessian of every row in that case */
    double gradient_scale, hessian_scale;
    int bits, sampled;
    double sure_gradient, sure_hessian; /* rows with a gradient or hessian of this size are in every sample */
    uint64_t key;                       /* draws depend on this key and on the numbers of rows */
    const int64_t *numbers;             /* the numbers of rows; if NULL, 0, 1, ... */
} unrounded;

/* Round one row. A positive hessian stays positive. */
INLINE int64_t row_sum(double gradient, double hessian, const unrounded *of) {
    int64_t steps = rounded(hessian * of->hessian_scale);
    steps += (hessian > 0) & (steps < 1);
    return (int64_t)((uint64_t)rounded(gradient * of->gradient_scale) << of->bits) + steps;
}

/* Whether a row is in the sample. Its probability is the larger of |gradient| / sure_gradient and
 * hessian / sure_hessian. */
INLINE int is_sampled(int width, double gradient, double hessian, const unrounded *of, uint64_t random) {
    const double chance =
        (portable_small_double(width, (int64_t)(random >> 32)) + 0.5) * 0x1p-32; /* between 0 and 1 */
    return (chance * of->sure_gradient < fabs(gradient)) | (chance * of->sure_hessian < hessian);
}

/* Round one row for a sample. A row in the sample is divided by its probability, and its steps are rounded up or down
 * at random, so that sums are right on average. Rows that are not in the sample are rounded to 0. */
INLINE int64_t sampled_sum(int width, double gradient, double hessian, const unrounded *of, uint64_t random) {
    const double half = portable_small_double(width, (int64_t)((random ^ 0x80000000ULL) & 0xffffffffULL));
    const double shift = (half - (0x1p31 - 0.5)) * 0x1p-32; /* between -1/2 and 1/2 */
    const double size = fabs(gradient), one = of->sure_gradient / size, other = of->sure_hessian / hessian;
    const double fewer = one < other ? one : other, times = fewer > 1.0 ? fewer : 1.0;
    const int64_t negative = -(int64_t)(gradient < 0), steps = rounded(size * times * of->gradient_scale + shift);
    const int64_t sum = (int64_t)((uint64_t)((steps ^ negative) - negative) << of->bits) +
                        rounded(hessian * times * of->hessian_scale + shift);
    return is_sampled(width, gradient, hessian, of, random) ? sum : 0;
}

/* Round some rows. If they are sampled and only ``marks`` are needed, set 1 for rows of the sample and 0 for others. */
INLINE void round_each(int width, int listed, int numbered, int one_hessian, int marks, int64_t n, int64_t first,
                       const uint32_t *RESTRICT rows, const unrounded *its, int64_t *RESTRICT sums) {
    const unrounded of = *its;
    const double *RESTRICT gradients = of.gradients, *RESTRICT hessians = of.hessians;
    const int64_t *RESTRICT numbers = of.numbers;
    if (of.sampled)
        for (int64_t i = 0; i < n; i++) {
            const int64_t row = listed ? rows[i] : first + i;
            const uint64_t random = portable_draw(of.key, (uint64_t)(numbered ? numbers[row] : row));
            const double hessian = one_hessian ? of.hessian : hessians[row];
            sums[i] = marks ? is_sampled(width, gradients[row], hessian, &of, random)
                            : sampled_sum(width, gradients[row], hessian, &of, random);
        }
    else
        for (int64_t i = 0; i < n; i++) {
            const int64_t row = listed ? rows[i] : first + i;
            sums[i] = row_sum(gradients[row], one_hessian ? of.hessian : hessians[row], &of);
        }
}

/* Call round_each with constants for everything that is the same for all rows. */
INLINE void round_any(int width, int marks, int64_t n, int64_t first, const uint32_t *rows, const unrounded *of,
                      int64_t *sums) {
    switch ((rows != NULL) + 2 * (of->numbers != NULL) + 4 * (of->hessians == NULL)) {
    case 0: round_each(width, 0, 0, 0, marks, n, first, rows, of, sums); break;
    case 1: round_each(width, 1, 0, 0, marks, n, first, rows, of, sums); break;
    case 2: round_each(width, 0, 1, 0, marks, n, first, rows, of, sums); break;
    case 3: round_each(width, 1, 1, 0, marks, n, first, rows, of, sums); break;
    case 4: round_each(width, 0, 0, 1, marks, n, first, rows, of, sums); break;
    case 5: round_each(width, 1, 0, 1, marks, n, first, rows, of, sums); break;
    case 6: round_each(width, 0, 1, 1, marks, n, first, rows, of, sums); break;
    default: round_each(width, 1, 1, 1, marks, n, first, rows, of, sums);
    }
}

/* Round the listed rows or, if ``rows`` is NULL, those from ``first`` on. */
EACH_WIDTH(void, round_stretch,
           (int64_t n, int64_t first, const uint32_t *rows, const unrounded *of, int64_t *sums),
           (n, first, rows, of, sums)) {
    round_any(width, 0, n, first, rows, of, sums);
}

/* The same with the marks of round_each, as finding which rows are in the sample is faster than rounding them. */
EACH_WIDTH(void, try_stretch,
           (int64_t n, int64_t first, const uint32_t *rows, const unrounded *of, int64_t *sums),
           (n, first, rows, of, sums)) {
    round_any(width, 1, n, first, rows, of, sums);
}

/* Set a bit for each of ROWS_TOGETHER rows: whether `try_stretch` has set its number to other than 0. Return how many
 * are. */
EACH_WIDTH(int64_t, mark_loud, (const int64_t *RESTRICT sums, uint64_t *RESTRICT loud), (sums, loud)) {
    uint8_t is_loud[ROWS_TOGETHER];
    int64_t n_loud = 0;
    for (int i = 0; i < ROWS_TOGETHER; i++)
        is_loud[i] = sums[i] != 0;
    for (int i = 0; i < ROWS_TOGETHER; i++)
        n_loud += is_loud[i];
    for (int i = 0; i < ROWS_TOGETHER; i += 64)
        loud[i / 64] = marks_of(is_loud + i);
    return n_loud;
}

/* Mark the rows that are loud, that is, not quiet: they are not rounded to nothing. Return how many there are. */
static inline int64_t find_loud(int64_t n, int64_t first, const uint32_t *rows, const unrounded *of, uint64_t *loud) {
    int64_t sums[ROWS_TOGETHER] = {0}, n_loud = 0;
    for (int64_t i = 0; i < n; i += ROWS_TOGETHER) {
        const int64_t some = n - i < ROWS_TOGETHER ? n - i : ROWS_TOGETHER;
        memset(sums + some, 0, (ROWS_TOGETHER - some) * sizeof *sums);
        try_stretch(some, first + i, rows ? rows + i : NULL, of, sums);
        n_loud += mark_loud(sums, loud + i / 64);
    }
    return n_loud;
}

/* The sum of values[row] over some rows is taken in integers, so that it is the same in any order. Their scale follows
 * from the largest value, so that rows of small weight count to their last bit if no heavier rows are among them. There
 * are three steps (the largest value, its places, the sum), as threads and ranks share the rows. */
EACH_WIDTH(double, largest_of_rows, (const double *RESTRICT values, const uint32_t *RESTRICT rows, int64_t n),
           (values, rows, n)) {
    uint64_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t size = portable_to_bits(values[rows[i]]) & 0x7fffffffffffffffULL;
        most = size > most ? size : most;
    }
    return portable_from_bits(most);
}

/* The number of places: 1.0 has 2^places steps, so that n values up to the largest add up to less than 2^62 steps. */
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

/* The sum of n equal values. */
INLINE double exact_sum_of_same(double value, int64_t n) {
    const int places = places_for(value, n);
    return value == 0 ? 0.0 : ldexp((double)(n * rounded(value * ldexp(1.0, places))), -places);
}

#endif
