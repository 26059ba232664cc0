/* exp, log and hashing, from nothing but IEEE additions, multiplications and divisions.
 *
 * The C library chooses its code by processor, so the last bit of its results differs between machines, and the
 * trees would differ too. These functions give the same bits on every machine (built with -ffp-contract=off), and
 * are free of branches where it matters. Exponentials are within about 1 ulp of the true value, logarithms within 4. */
#ifndef RANKTREES_PORTABLE_H
#define RANKTREES_PORTABLE_H

#include <stdint.h>
#include <string.h>

#include "support/simd.h"

INLINE double portable_from_bits(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE uint64_t portable_to_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* (double)x. On x86 only the widest registers convert 64 bits. For the others, the result is composed of the upper
 * half h and the lower half l: h 2^32 + 2^84 + 2^63 and l + 2^52 are exact, so only the last addition rounds. */
INLINE double portable_double(int width, int64_t x) {
    const uint64_t bits = (uint64_t)x;
    const double high = portable_from_bits(bits >> 32 ^ 0x4530000080000000ULL);
    const double low = portable_from_bits((bits & 0xffffffffULL) | 0x4330000000000000ULL);
    return KNOWS_LONGS(width) ? (double)x : (high - 0x1.00000801p84) + low;
}

/* The same, for 0 <= x < 2^52. */
INLINE double portable_small_double(int width, int64_t x) {
    const double shifted = portable_from_bits((uint64_t)x | 0x4330000000000000ULL);
    return KNOWS_LONGS(width) ? (double)x : shifted - 0x1p52;
}

/* e^x for |x| <= 700. */
INLINE double portable_exp_unclipped(double x) {
    const double round_to_integer = 0x1.8p52;
    double shifted = x * 0x1.71547652b82fep0 + round_to_integer; /* x / ln 2, rounded */
    double k = shifted - round_to_integer;
    double r = (x - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33; /* |r| <= ln(2) / 2 */
    double p = 1.0 / 6227020800.0;
    p = p * r + 1.0 / 479001600.0;
    p = p * r + 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = (p * r) * r + r + 1.0;
    uint64_t exponent = portable_to_bits(shifted) - portable_to_bits(round_to_integer);
    return p * portable_from_bits((exponent + 1023) << 52);
}

/* e^x, with x clipped to |x| <= 700 (e^700 = 1e304). */
INLINE double portable_exp(double x) {
    x = x > 700.0 ? 700.0 : x;
    x = x < -700.0 ? -700.0 : x;
    return portable_exp_unclipped(x);
}

/* e^x in single precision, for |x| <= 87. */
INLINE float portable_single_exp(float x) {
    const float round_to_integer = 0x1.8p23f;
    float shifted = x * 0x1.715476p0f + round_to_integer;
    float k = shifted - round_to_integer;
    float r = (x - k * 0x1.62e400p-1f) - k * 0x1.7f7d1cp-20f;
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = (p * r) * r + r + 1.0f;
    uint32_t bits, origin;
    memcpy(&bits, &shifted, sizeof bits);
    memcpy(&origin, &round_to_integer, sizeof origin);
    bits = (bits - origin + 127) << 23;
    memcpy(&k, &bits, sizeof k);
    return p * k;
}

/* log2(x) for finite normal x > 0; exact for powers of two. */
INLINE double portable_log2(double x) {
    uint64_t bits = portable_to_bits(x);
    int64_t exponent = (int64_t)(bits >> 52) - 1023;
    double m = portable_from_bits((bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        exponent += 1;
    }
    double f = (m - 1.0) / (m + 1.0), s = f * f; /* ln m = 2 (f + f^3/3 + f^5/5 + ...), |f| < 0.172 */
    double p = 1.0 / 23.0;
    p = p * s + 1.0 / 21.0;
    p = p * s + 1.0 / 19.0;
    p = p * s + 1.0 / 17.0;
    p = p * s + 1.0 / 15.0;
    p = p * s + 1.0 / 13.0;
    p = p * s + 1.0 / 11.0;
    p = p * s + 1.0 / 9.0;
    p = p * s + 1.0 / 7.0;
    p = p * s + 1.0 / 5.0;
    p = p * s + 1.0 / 3.0;
    p = p * s + 1.0;
    return (double)exponent + (2.0 * f * p) * 0x1.71547652b82fep0;
}

#define LN_2 0x1.62e42fefa39efp-1

INLINE double portable_log(double x) { return LN_2 * portable_log2(x); }

/* log(1 + e^x) for any x, given small = e^-|x|. */
INLINE double portable_softplus(double x, double small) { return (x > 0 ? x : 0.0) + portable_log(1.0 + small); }

/* A counter-based random number: it depends on (seed, stream, counter) only, not on which thread draws it or in which
 * order. Two rounds of the splitmix64 finaliser (Steele, Lea, Flood, OOPSLA 2014). */
INLINE uint64_t portable_mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

INLINE uint64_t portable_key(uint64_t seed, uint64_t stream) {
    return portable_mix(seed + 0x9e3779b97f4a7c15ULL * (stream + 1));
}

INLINE uint64_t portable_draw(uint64_t key, uint64_t counter) {
    return portable_mix(key + 0x9e3779b97f4a7c15ULL * (counter + 1));
}

INLINE uint64_t portable_random(uint64_t seed, uint64_t stream, uint64_t counter) {
    return portable_draw(portable_key(seed, stream), counter);
}

/* A number in [0, 1), from the upper 53 bits. */
INLINE double portable_uniform(uint64_t random) { return (double)(int64_t)(random >> 11) * 0x1p-53; }

/* Shuffle some of n items: the places first to last - 1 get a sample of the items from `first` on. */
static inline void portable_shuffle(int32_t *items, int64_t first, int64_t last, int64_t n, uint64_t key,
                                    uint64_t counter) {
    for (int64_t j = first; j < (last < n - 1 ? last : n - 1); j++) {
        const int64_t k =
            j + (int64_t)(portable_uniform(portable_draw(key, counter + (uint64_t)j)) * (double)(n - j));
        const int32_t kept = items[j];
        items[j] = items[k];
        items[k] = kept;
    }
}

#endif
