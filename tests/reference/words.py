"""Pack sums over ranks into words slowly, with Python's integers."""

from itertools import pairwise


def largest(lines, lanes, bits):
    """The largest magnitudes of the upper and of the lower half, for each number of a line's cells."""
    found = []
    for line in lines:
        for lane, below in enumerate([bits] if lanes == 1 else [0, 32]):
            cells = [divmod(int(cell), 2**below) for cell in line[lane::lanes]]
            found.append(
                [max((abs(high) for high, _ in cells), default=0), max((low for _, low in cells), default=0)]
            )
    return found


def fields(above, below, lane, lanes, bits):
    """(bits of a hessian in a cell, its bits in a word, bits of a sum in a word)."""
    sign = int(above > 0 and lane == 0)
    width = sign + above.bit_length() + below.bit_length()
    return bits if lanes == 1 else 32 * lane, below.bit_length(), min(max(width, 1), 64)


def shares(n_cells, width, n_ranks):
    """(number of words, sums side by side in each, bits of a slice in each, slices of a sum or 0)."""
    side_by_side, free = divmod(64, width)
    slice_bits = free - (n_ranks - 1).bit_length()
    n_slices = -(-width // slice_bits) if slice_bits > 0 else 0
    n_words = 0
    while side_by_side * n_words + (n_words // n_slices if n_slices else 0) < n_cells:
        n_words += 1
    return n_words, side_by_side, slice_bits, n_slices


def words(cells, n_ranks, bits, low, width):
    """The words as Python's integers, which are added up over ranks modulo 2^64."""
    n, side_by_side, slice_bits, n_slices = shares(len(cells), width, n_ranks)
    if n == len(cells):
        return [int(cell) for cell in cells]
    sums = [((int(cell) >> bits) << low) + int(cell) % 2**bits for cell in cells]
    found, cut = [0] * n, sums[n * side_by_side :]
    for k, one in enumerate(sums[: n * side_by_side]):
        found[k % n] += one << (width * (k // n))
    for k, one in enumerate(cut):
        for part in range(n_slices):
            slice_of_it = one % 2**width >> (part * slice_bits) & (2**slice_bits - 1)
            found[part * len(cut) + k] += slice_of_it << (width * side_by_side)
    return found


def as_int64(number):
    return (number + 2**63) % 2**64 - 2**63


def pack(lines, sizes, lanes, ends, n_ranks, bits):
    """(words of all parts, number of words per part); ``sizes`` are the sums of `largest` over ranks."""
    found, n_words = [], []
    for first, last in pairwise(ends):
        part = []
        for i, line in enumerate(lines):
            for lane in range(lanes):
                field = fields(*sizes[lanes * i + lane], lane, lanes, bits)
                part += words(line[lanes * first + lane : lanes * last : lanes], n_ranks, *field)
        found += map(as_int64, part)
        n_words.append(len(part))
    return found, n_words
