"""Sum doubles without any error: every double is a whole number of steps, the smallest positive double.

    double    a number below 2^53, times 2^(0 to 2045) steps of 2^-1074
    digits    |  0  |  1  | ... | 67 |          the sum, in digits of 32 bits that may be out of range
              | +infinity | -infinity | NaN |   how many values are one of these

To add several sums up, add their digits one by one, in any order.
"""
from libc.math cimport isfinite, isinf
from libc.stdint cimport int64_t, uint64_t

import math

import numpy as np

cdef extern from "support/portable.h" nogil:
    uint64_t portable_to_bits(double x)

cdef enum:
    DIGIT = 32       # bits
    N_DIGITS = 68    # the sum of 2^30 doubles has 2129 bits
    PLUS_INFINITY = N_DIGITS
    MINUS_INFINITY
    NOT_A_NUMBER
    N_ALL
    CARRIED = 1 << 30  # values after which digits are carried; each adds less than 2^32 to a digit

cdef uint64_t IN_DIGIT = (<uint64_t>1 << DIGIT) - 1

STEPS = 1 << 1074  # the number of steps from 0 to 1


cdef inline void add(double value, int64_t* digits) noexcept nogil:
    cdef uint64_t bits = portable_to_bits(value)
    cdef uint64_t exponent = (bits >> 52) & 0x7FF, fraction = bits & ((<uint64_t>1 << 52) - 1)
    cdef uint64_t shift, low, high
    cdef int64_t sign = 1 - 2 * <int64_t>(bits >> 63)
    if exponent > 0:
        fraction |= <uint64_t>1 << 52
        exponent -= 1
    shift = exponent % DIGIT
    low = (fraction & IN_DIGIT) << shift
    high = (fraction >> DIGIT) << shift
    digits += exponent // DIGIT
    digits[0] += sign * <int64_t>(low & IN_DIGIT)
    digits[1] += sign * <int64_t>((low >> DIGIT) + (high & IN_DIGIT))
    digits[2] += sign * <int64_t>(high >> DIGIT)


cdef void carry(int64_t* digits) noexcept nogil:
    """Bring all digits but the last into range. The sum stays the same."""
    cdef int64_t k
    for k in range(N_DIGITS - 1):
        digits[k + 1] += digits[k] >> DIGIT
        digits[k] &= IN_DIGIT


def digits_of(const double[::1] values):
    """Compute the digits of the sum, and count the values that are infinite or NaN: int64[71]."""
    cdef int64_t[::1] digits = np.zeros(N_ALL, np.int64)
    cdef int64_t i
    with nogil:
        for i in range(values.shape[0]):
            if isfinite(values[i]):
                add(values[i], &digits[0])
            elif isinf(values[i]):
                digits[PLUS_INFINITY if values[i] > 0 else MINUS_INFINITY] += 1
            else:
                digits[NOT_A_NUMBER] += 1
            if i % CARRIED == CARRIED - 1:
                carry(&digits[0])
        carry(&digits[0])
    return digits.base


def sum_of(int64_t[::1] digits):
    """The sum, rounded once: infinite if no double can hold it, NaN for a NaN or infinities of both signs.

    The digits may be those of up to 2^30 sums, added up.
    """
    if digits[NOT_A_NUMBER] or (digits[PLUS_INFINITY] and digits[MINUS_INFINITY]):
        return math.nan
    if digits[PLUS_INFINITY] or digits[MINUS_INFINITY]:
        return math.inf if digits[PLUS_INFINITY] else -math.inf
    carry(&digits[0])
    steps = int.from_bytes(np.asarray(digits[:N_DIGITS]).astype("<u4").tobytes(), "little", signed=True)
    try:
        return steps / STEPS
    except OverflowError:
        return math.inf if steps > 0 else -math.inf
