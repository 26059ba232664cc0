"""Sums over ranks as words, slowly: integers of Python."""

from itertools import pairwise


def fields(leaf, bits, room, most_steps, lanes):
    """(bits of a hessian in a cell, in a word, bits of a sum in a word), of each number of a cell."""
    count, hessian = int(leaf["total"]["count"]), int(leaf["total"]["hessian"])
    gradient_bits = min((count * most_steps).bit_length(), room)
    sign = int(gradient_bits > 0)
    if lanes == 1:
        found = [(bits, hessian.bit_length(), sign + gradient_bits + hessian.bit_length())]
    else:
        beside = count.bit_length() + hessian.bit_length()
        found = [(0, 0, sign + gradient_bits), (32, hessian.bit_length(), beside)]
    return [(own, low, min(max(width, 1), 64)) for own, low, width in found]


def shares(n_cells, width, n_ranks):
    """(words, sums side by side in one, bits of a slice in one, slices of a sum or 0)."""
    side_by_side, free = divmod(64, width)
    slice_bits = free - (n_ranks - 1).bit_length()
    n_slices = -(-width // slice_bits) if slice_bits > 0 else 0
    n_words = 0
    while side_by_side * n_words + (n_words // n_slices if n_slices else 0) < n_cells:
        n_words += 1
    return n_words, side_by_side, slice_bits, n_slices


def words(cells, n_ranks, bits, low, width):
    """Python's integers, of which the sum of several ranks is made modulo 2^64."""
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


def pack(leaves, lines, lanes, ends, n_ranks, bits, room, most_steps):
    """(words of all parts, how many each part has)."""
    found, sizes = [], []
    for first, last in pairwise(ends):
        part = []
        for leaf, line in zip(leaves, lines, strict=True):
            for lane, field in enumerate(fields(leaf, bits, room, most_steps, lanes)):
                part += words(line[lanes * first + lane : lanes * last : lanes], n_ranks, *field)
        found += map(as_int64, part)
        sizes.append(len(part))
    return found, sizes
