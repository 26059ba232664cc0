/* Decimal numbers in text: read as strtod reads them, and written with as few digits as read back.
 *
 * Texts end at a zero byte, and no locale matters. */
#ifndef RANKTREES_DECIMALS_H
#define RANKTREES_DECIMALS_H

#include <locale.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __APPLE__
#include <xlocale.h>
#endif

#include "support/portable.h"
#include "support/simd.h"

#ifdef _WIN32
#define locale_t _locale_t
#define newlocale(mask, name, base) _create_locale(LC_ALL, name)
#define strtod_l _strtod_l
#endif

enum {
    LEAST_POWER = -292, /* of ten, in the table of powers */
    MOST_POWER = 324,
    NUMBER_BYTES = 25 /* the longest text of a float64, as -1.2345678901234567e-308 */
};

/* The powers of ten that are exact. */
static const double TEN[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

INLINE int is_digit(char c) { return (unsigned char)(c - '0') < 10; }

INLINE double power_of_two(int exponent) { return portable_from_bits((uint64_t)(exponent + 1023) << 52); }

/* ---- reading -------------------------------------------------------------------------------------------------- */

static locale_t plain_locale; /* in which a point is a point */

static int open_plain_locale(void) {
    plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return plain_locale != (locale_t)0;
}

INLINE const char *read_digits(const char *p, uint64_t *integer) {
    uint64_t m = *integer;
    for (; is_digit(*p); p++)
        m = 10 * m + (uint64_t)(*p - '0');
    *integer = m;
    return p;
}

/* m / 5^k, rounded once, for 0 < m and k <= 27: 128 bits by 64, and a last bit that says whether there is a rest. */
INLINE double divided(uint64_t m, uint64_t five_to_k, int exponent) {
    const int shift = __builtin_clzll(m), shift_of_power = __builtin_clzll(five_to_k);
    const unsigned __int128 dividend = (unsigned __int128)(m << shift) << 63;
    const uint64_t divisor = five_to_k << shift_of_power;
    const uint64_t quotient = (uint64_t)(dividend / divisor), rest = (uint64_t)(dividend % divisor);
    return (double)(quotient | (rest != 0)) * power_of_two(shift_of_power - shift - 63 + exponent);
}

/* m 10^exponent, where one rounding gives it. Return whether that is so. */
INLINE int exact_product(uint64_t m, int64_t exponent, double *value) {
    if (m <= 1ULL << 53 && -22 <= exponent && exponent <= 22) {
        *value = exponent < 0 ? (double)m / TEN[-exponent] : (double)m * TEN[exponent];
        return 1;
    }
    if (m == 0) {
        *value = 0;
        return 1;
    }
    if (exponent > 0 || exponent < -27)
        return 0;
    uint64_t five_to_k = 1;
    for (int64_t k = exponent; k < 0; k++)
        five_to_k *= 5;
    *value = divided(m, five_to_k, (int)exponent);
    return 1;
}

INLINE int begins_with(const char *p, const char *lower) {
    while (*lower && (*p | 32) == *lower)
        p++, lower++;
    return !*lower;
}

/* Read the number at p. Return what follows it, or NULL if there is no number. */
INLINE const char *read_number(const char *p, double *value) {
    const char *first = p;
    const int is_negative = *p == '-';
    uint64_t m = 0;
    int64_t exponent = 0;
    if (*p == '-' || *p == '+')
        p++;
    const char *digits = p;
    while (*p == '0')
        p++;
    const char *significant = p;
    p = read_digits(p, &m);
    int64_t n_digits = p - digits, n_significant = p - significant;
    if (*p == '.') {
        const char *fraction = ++p;
        while (n_significant == 0 && *p == '0')
            p++;
        significant = p;
        p = read_digits(p, &m);
        n_significant += p - significant;
        n_digits += p - fraction;
        exponent = fraction - p;
        if (n_digits == 0)
            return NULL;
    } else if (n_digits == 0) {
        const int length = begins_with(p, "infinity") ? 8 : begins_with(p, "inf") || begins_with(p, "nan") ? 3 : 0;
        *value = (*p | 32) == 'n' ? (double)NAN : (double)INFINITY;
        if (is_negative)
            *value = -*value;
        return length ? p + length : NULL;
    }
    if ((*p | 32) == 'e') {
        const int is_inverse = p[1] == '-';
        int64_t power = 0;
        p += 1 + (is_inverse || p[1] == '+');
        if (!is_digit(*p))
            return NULL;
        for (; is_digit(*p); p++)
            power = power < 100000 ? 10 * power + (*p - '0') : power;
        exponent += is_inverse ? -power : power;
    }
    if (n_significant > 19 || !exact_product(m, exponent, value)) {
        *value = strtod_l(first, NULL, plain_locale);
        return p;
    }
    if (is_negative)
        *value = -*value;
    return p;
}

/* ---- writing --------------------------------------------------------------------------------------------------
 *
 * Raffaello Giulietti's Schubfach: of the decimals that read back as c 2^q, the shortest, and of those the nearest.
 * POWERS holds 10^k for each k, rounded up to 128 bits: upper half, lower half. */

/* The upper bits of g c / 2^128 for a power g, and a last bit that says whether anything was cut off. */
INLINE uint64_t rounded_to_odd(const uint64_t *power, uint64_t c) {
    const unsigned __int128 low = (unsigned __int128)power[1] * c;
    const unsigned __int128 high = (unsigned __int128)power[0] * c + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* The digits of c 2^q as an integer; they stand for digits 10^exponent. The number below is closer if c is the least
 * of its exponent. */
INLINE uint64_t shortest_digits(const uint64_t *powers, uint64_t c, int q, int is_below_closer, int *exponent) {
    if (q <= 0 && q > -64 && (c >> -q) << -q == c) {
        *exponent = 0;
        return c >> -q;
    }
    const int k = (q * 1262611 - (is_below_closer ? 524031 : 0)) >> 22; /* floor(log10(2^q)), or of 3/4 of it */
    const int h = q + ((-k * 1741647) >> 19) + 1;                       /* and floor(log2(10^-k)) */
    const uint64_t *power = powers + 2 * (-k - LEAST_POWER);
    const uint64_t lower = rounded_to_odd(power, (4 * c - 2 + is_below_closer) << h) + (c & 1);
    const uint64_t middle = rounded_to_odd(power, 4 * c << h);
    const uint64_t upper = rounded_to_odd(power, (4 * c + 2) << h) - (c & 1);
    const uint64_t digits = middle / 4, fewer = digits / 10;
    *exponent = k + 1;
    if (digits >= 10 && (lower <= 40 * fewer) != (40 * fewer + 40 <= upper))
        return fewer + (lower > 40 * fewer);
    *exponent = k;
    const int is_lower_in = lower <= 4 * digits, is_upper_in = 4 * digits + 4 <= upper;
    if (is_lower_in != is_upper_in)
        return digits + is_upper_in;
    const uint64_t half = 4 * digits + 2;
    return digits + (middle > half || (middle == half && (digits & 1)));
}

INLINE int count_digits(uint64_t integer) {
    const int floor_of_log = (64 - __builtin_clzll(integer | 1)) * 1233 >> 12;
    return floor_of_log + (integer >= (uint64_t)TEN[floor_of_log] || integer == 0);
}

/* Write the n digits of an integer. */
INLINE void write_digits(char *p, uint64_t integer, int n) {
    static const char PAIRS[] = "00010203040506070809101112131415161718192021222324252627282930313233343536373839"
                                "40414243444546474849505152535455565758596061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    for (; n > 1; n -= 2, integer /= 100)
        memcpy(p + n - 2, PAIRS + 2 * (integer % 100), 2);
    if (n)
        *p = (char)('0' + integer);
}

INLINE char *write_integer(char *p, uint64_t integer) {
    const int n = count_digits(integer);
    write_digits(p, integer, n);
    return p + n;
}

/* digits 10^exponent as Python writes it, but for ".0" at the end: from 1e-4 to 1e16 without an exponent. */
INLINE char *write_decimal(char *p, uint64_t digits, int exponent) {
    while (digits % 10 == 0) {
        digits /= 10;
        exponent++;
    }
    const int n = count_digits(digits), point = n + exponent; /* digits before the point */
    if (point <= -4 || point > 16) {
        write_digits(p + 1, digits, n);
        p[0] = p[1];
        p[1] = '.';
        p += n > 1 ? n + 1 : 1;
        *p++ = 'e';
        *p++ = point > 0 ? '+' : '-';
        const int size = point > 0 ? point - 1 : 1 - point;
        if (size < 10)
            *p++ = '0';
        return write_integer(p, (uint64_t)size);
    }
    if (point <= 0) {
        memcpy(p, "0.000", 5);
        p += 2 - point;
        write_digits(p, digits, n);
        return p + n;
    }
    if (exponent >= 0) {
        write_digits(p, digits, n);
        for (p += n; exponent > 0; exponent--)
            *p++ = '0';
        return p;
    }
    write_digits(p + 1, digits, n);
    for (int i = 0; i < point; i++)
        p[i] = p[i + 1];
    p[point] = '.';
    return p + n + 1;
}

/* Whether a value below 10^6 is a decimal of six digits, as most are that people have written: no other one reads back
 * as the same float32. */
INLINE int is_short(double value, int is_single, uint64_t *digits, int *exponent) {
    if (!(value < 1e6 && value > 1e-5))
        return 0;
    int k = 6;
    while (value >= TEN[6 - k])
        k--;
    *digits = (uint64_t)(value * TEN[k] + 0.5);
    *exponent = -k;
    const double read = (double)*digits / TEN[k];
    return is_single ? (float)read == (float)value : read == value;
}

INLINE char *write_positive(char *p, const uint64_t *powers, double value, int is_single) {
    int exponent;
    uint64_t c, digits;
    if (is_short(value, is_single, &digits, &exponent))
        return write_decimal(p, digits, exponent);
    if (is_single) {
        const float single = (float)value;
        uint32_t bits;
        memcpy(&bits, &single, sizeof bits);
        const int biased = (int)(bits >> 23);
        const uint64_t fraction = bits & 0x7fffff;
        c = biased ? fraction | 0x800000 : fraction;
        digits = shortest_digits(powers, c, (biased ? biased : 1) - 150, fraction == 0 && biased > 1, &exponent);
    } else {
        const uint64_t bits = portable_to_bits(value), fraction = bits & 0xfffffffffffffULL;
        const int biased = (int)(bits >> 52);
        c = biased ? fraction | 1ULL << 52 : fraction;
        digits = shortest_digits(powers, c, (biased ? biased : 1) - 1075, fraction == 0 && biased > 1, &exponent);
    }
    return write_decimal(p, digits, exponent);
}

/* Write a number with as few digits as read back; is_single says that it is read back as float32. Return the end. */
static inline char *write_number(char *p, const uint64_t *powers, double value, int is_single) {
    if (isnan(value)) {
        memcpy(p, "nan", 3);
        return p + 3;
    }
    if (signbit(value))
        *p++ = '-';
    value = fabs(value);
    if (value == 0) {
        *p = '0';
        return p + 1;
    }
    if (isinf(value)) {
        memcpy(p, "inf", 3);
        return p + 3;
    }
    char *end = write_positive(p, powers, value, is_single);
    if (is_single) {
        /* Readers go by way of float64. A text close to the middle of two float32 may then round the wrong way. */
        double read = 0;
        *end = 0;
        read_number(p, &read);
        if ((float)read != (float)value)
            end = write_positive(p, powers, value, 0);
    }
    return end;
}

#endif
