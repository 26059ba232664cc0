"""Twins of the paired tests: all choices of signs, and resamples one by one."""

import itertools
from fractions import Fraction

from reference.sampling import random


def every_flip(differences):
    """The exact p-value of the randomization test, in fractions."""
    differences = [Fraction(d) for d in differences]
    sums = [
        sum(sign * d for sign, d in zip(signs, differences, strict=True))
        for signs in itertools.product([1, -1], repeat=len(differences))
    ]
    return sum(abs(each) >= abs(sum(differences)) for each in sums) / len(sums)


def drawn_sums(seed, number, values, n_resamples):
    n = len(values)
    draws = [int((random(seed, number, i) >> 11) / 2**53 * n) for i in range(n * n_resamples)]
    return [sum(values[i] for i in draws[r * n : r * n + n]) for r in range(n_resamples)]


def flipped_sums(seed, number, values, n_resamples):
    n_words = (len(values) + 63) // 64

    def sign(r, i):
        return -1 if random(seed, number, r * n_words + i // 64) >> (i % 64) & 1 else 1

    return [sum(sign(r, i) * value for i, value in enumerate(values)) for r in range(n_resamples)]
