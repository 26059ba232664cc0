"""Cuts and codes, computed slowly: one column at a time, with fractions."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np


def integer_weights(weights):
    """Turn weights into integers below 2^30 by one power-of-two scale. A weight above 0 stays above 0."""
    largest = max(weights, default=0.0)
    if largest == 0:
        return [0] * len(weights)
    scale = Fraction(2) ** (30 - math.frexp(largest)[1])
    return [max(round(Fraction(float(weight)) * scale), 1) if weight > 0 else 0 for weight in weights]


def masses(column, weights=None):
    """The mass of every distinct value, ascending by value, without NaN and values without mass."""
    weights = [1] * len(column) if weights is None else integer_weights(weights)
    found = {}
    for value, weight in zip(np.asarray(column, dtype=float).tolist(), weights, strict=True):
        if value == value and weight > 0:
            found[value] = found.get(value, 0) + weight
    return dict(sorted(found.items()))


def cuts(column, max_bins, weights=None):
    """The cuts of a column."""
    mass_of = masses(column, weights)
    values = list(mass_of)
    bins = (
        [[value] for value in values]
        if len(values) <= max_bins
        else [[values[i] for i in places] for places in shared_bins(list(mass_of.values()), max_bins)]
    )
    return np.array([cut_between(a[-1], b[0]) for a, b in pairwise(bins)])


def cut_between(a, b):
    middle = a / 2 + b / 2
    return middle if a <= middle < b else a


def shared_bins(mass, max_bins):
    """The bins, as lists of indices into mass."""
    parts = parts_between(heavy_places(mass, max_bins), len(mass))
    while len(parts) > max_bins:
        p = min(range(len(parts) - 1), key=lambda p: (sum(mass[i] for i in parts[p] + parts[p + 1]), p))
        parts[p : p + 2] = [parts[p] + parts[p + 1]]
    n_bins = [1] * len(parts)
    while sum(n_bins) < max_bins:
        open_parts = [p for p, part in enumerate(parts) if n_bins[p] < len(part)]
        fullest = max(open_parts, key=lambda p: (Fraction(sum(mass[i] for i in parts[p]), n_bins[p]), -p))
        n_bins[fullest] += 1
    return [own for part, n in zip(parts, n_bins, strict=True) for own in split_part(part, mass, n)]


def heavy_places(mass, max_bins):
    """The places, from the heaviest down, that weigh at least a fair share of what is left."""
    heavy, rest = [], sum(mass)
    for i in sorted(range(len(mass)), key=lambda i: (-mass[i], i)):
        if mass[i] < Fraction(rest, max_bins - len(heavy)):
            break
        heavy.append(i)
        rest -= mass[i]
    return sorted(heavy)


def parts_between(heavy, n):
    """The parts: each heavy place alone, and the runs between these."""
    parts, start = [], 0
    for i in [*heavy, n]:
        parts += [list(range(start, i)), [i]]
        start = i + 1
    return [part for part in parts[:-1] if part]


def split_part(part, mass, n_bins):
    """End each bin where its mass comes nearest to the fair share of what is left, at the earlier of two."""
    if n_bins == 1:
        return [part]
    share = Fraction(sum(mass[i] for i in part), n_bins)
    sizes = range(1, len(part) - n_bins + 2)
    size = min(sizes, key=lambda size: (abs(sum(mass[i] for i in part[:size]) - share), size))
    return [part[:size], *split_part(part[size:], mass, n_bins - 1)]


def codes(column, column_cuts):
    """The number of cuts below each value; for a missing value, one more than the last bin."""
    column = np.asarray(column, dtype=float)
    found = [sum(cut < value for cut in column_cuts) for value in column]
    codes = np.where(np.isnan(column), len(column_cuts) + 1, found)
    return codes.astype(np.uint8 if len(column_cuts) < 255 else np.uint32)


def category_codes(column, categories):
    """The index of each value among the categories; one past the last for values that are none of them."""
    places = {value: place for place, value in enumerate(categories)}
    missing = max(len(categories), 1)
    return np.array([places.get(float(value), missing) for value in column], dtype=np.uint8)


def levels(column, labels, masses, folds, max_bins):
    """The levels that occur in two folds at least, cuts between their means, and codes: {fold: codes}.

    The fold None is that of rows that are in none.
    """
    rows = [row for row in zip(column, labels, masses, folds, strict=True) if row[0] == row[0] and row[2] > 0]
    known = sorted({row[0] for row in rows})
    known = [level for level in known if len({row[3] for row in rows if row[0] == level}) > 1]
    counted = [row for row in zip(column, masses, strict=True) if row[0] == row[0]]
    mass = sum(Fraction(float(mass)) for _, _, mass, _ in rows)
    worth = sum(Fraction(float(mass)) * Fraction(float(label)) for _, label, mass, _ in rows)
    n_rows = sum(mass > 0 for _, mass in counted)
    smoothing = 5 * float(mass) / max(n_rows, 1)
    prior = smoothing * (float(worth) / float(mass)) if mass else 0.0

    def mean(level, fold):
        others = [row for row in rows if row[0] == level and row[3] != fold]
        of_level = sum(Fraction(float(mass)) * Fraction(float(label)) for _, label, mass, _ in others)
        return (float(of_level) + prior) / (float(sum(Fraction(float(row[2])) for row in others)) + smoothing)

    weights = [float(sum(row[2] for row in rows if row[0] == level)) for level in known]
    own_cuts = cuts([mean(level, None) for level in known], max_bins, weights)
    every = [*sorted(set(folds)), None]
    return (
        known,
        own_cuts,
        {f: [sum(cut < mean(level, f) for cut in own_cuts) for level in known] for f in every},
    )
