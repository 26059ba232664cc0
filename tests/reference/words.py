"""Sums over ranks as words, slowly: integers of Python."""

from itertools import pairwise


def fields(leaf, bits, most_steps, lanes):
    """(bits of a hessian in a cell, in a word, bits of a sum in a word), of each number of a cell."""
    count, hessian = int(leaf["total"]["count"]), int(leaf["total"]["hessian"])
    gradient_bits = (count * min(most_steps, 2**32)).bit_length()
    if lanes == 1:
        found = [(bits, hessian.bit_length(), 1 + gradient_bits + hessian.bit_length())]
    else:
        beside = 1 + count.bit_length() + hessian.bit_length()
        found = [(0, 0, 1 + gradient_bits), (32, hessian.bit_length(), beside)]
    return [(own, low, min(width, 64)) for own, low, width in found]


def n_words(n_cells, width):
    return -(-n_cells // (64 // width))


def words(cells, bits, low, width):
    """Python's integers, of which the sum of several ranks is made modulo 2^64."""
    n = n_words(len(cells), width)
    if n == len(cells):
        return [int(cell) for cell in cells]
    sums = [((int(cell) >> bits) << low) + int(cell) % 2**bits for cell in cells]
    return [sum(one << (width * k) for k, one in enumerate(sums[first::n])) if n else 0 for first in range(n)]


def as_int64(number):
    return (number + 2**63) % 2**64 - 2**63


def pack(leaves, lines, lanes, ends, bits, most_steps):
    """(words of all parts, how many each part has)."""
    found, sizes = [], []
    for first, last in pairwise(ends):
        part = []
        for leaf, line in zip(leaves, lines, strict=True):
            for lane, field in enumerate(fields(leaf, bits, most_steps, lanes)):
                part += words(line[lanes * first + lane : lanes * last : lanes], *field)
        found += map(as_int64, part)
        sizes.append(len(part))
    return found, sizes
