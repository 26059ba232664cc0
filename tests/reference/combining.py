"""Twin of the sweep over weights: exact scores by fractions, at all weights where two rows may cross."""

import itertools
import math
from fractions import Fraction

import numpy as np


def ranks_at(a, b, qid, weight, form):
    """Whole numbers in the order of the exact scores at a weight. Equal numbers are ties."""
    weight = Fraction(float(weight))
    own = 1 - weight if form == "convex" else 1
    scores = [own * Fraction(float(x)) + weight * Fraction(float(z)) for x, z in zip(a, b, strict=True)]
    place = {score: k for k, score in enumerate(sorted(set(scores)))}
    return np.array([float(place[score]) for score in scores])


def values_of(measure, y, rankings, qid, sample_weight=None):
    """The mean of a measure over the queries, for each ranking."""
    n = len(rankings)
    starts = np.flatnonzero(np.diff(qid, prepend=-1))
    offsets = np.append((np.arange(n)[:, None] * len(y) + starts).ravel(), n * len(y))
    values = measure.per_query(np.tile(y, n), np.concatenate(rankings), offsets).reshape(n, -1)
    weights = np.ones(len(y)) if sample_weight is None else sample_weight
    weights = np.add.reduceat(weights, starts) / np.diff(np.append(starts, len(y)))
    counts = ~np.isnan(values[0])
    return values[:, counts] @ weights[counts] / weights[counts].sum() if counts.any() else values[:, 0]


def weights_to_try(a, b, qid, form, low, high):
    """The ends, each crossing with the two floats next to it, and the middle between any two neighbours."""
    tried = {low, high}
    for i, j in itertools.combinations(range(len(a)), 2):
        lead = Fraction(float(a[i])) - Fraction(float(a[j]))
        rise = Fraction(float(b[j])) - Fraction(float(b[i])) + (lead if form == "convex" else 0)
        if qid[i] == qid[j] and rise != 0:
            near = float(lead / rise)
            tried |= {near, math.nextafter(near, -math.inf), math.nextafter(near, math.inf)}
    tried = sorted(weight for weight in tried if low <= weight <= high)
    return tried + [(one + two) / 2 for one, two in itertools.pairwise(tried)]
