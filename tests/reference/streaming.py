"""Streaming histograms, made slowly: lists that are sorted again after each row."""

import math
from itertools import pairwise

import numpy as np

from reference import growing as slow

# A centroid is (value, mass, gradient, hessian).


def joined(one, other):
    """Join two neighbours to one centroid."""
    mean = one[0] + (other[0] - one[0]) * (other[1] / (one[1] + other[1]))
    return (min(mean, other[0]), *(a + b for a, b in zip(one[1:], other[1:], strict=True)))


def reduced(centroids, max_bins):
    """Join the nearest neighbours until there are few enough centroids. Equal values are always joined."""
    centroids = sorted(centroids, key=lambda centroid: centroid[0])
    while True:
        gaps = [other[0] - one[0] for one, other in pairwise(centroids)]
        if not gaps or (len(centroids) <= max_bins and min(gaps) > 0):
            return centroids
        i = gaps.index(min(gaps))
        centroids[i : i + 2] = [joined(*centroids[i : i + 2])]


def updated(centroids, rows, max_bins):
    """Add rows to the centroids, one after another."""
    for row in rows:
        same = [i for i, centroid in enumerate(centroids) if centroid[0] == row[0]]
        if same:
            both = zip(centroids[same[0]], row, strict=True)
            centroids[same[0]] = (row[0], *[a + b for a, b in both][1:])
        else:
            centroids = reduced([*centroids, row], max_bins)
    return centroids


def merged(histograms, max_bins, one_by_one=False):
    """Merge histograms, two at a time, from the left: the bins of the second at once, or one by one."""
    merged = []
    for centroids in histograms:
        if one_by_one:
            merged = updated(merged, centroids, max_bins)
        else:
            merged = reduced([*merged, *centroids], max_bins)
    return merged


def totals(centroids):
    sums = (0, 0, 0)
    for _, *masses in centroids:  # one by one: from Python 3.12 on, sum() corrects rounding errors
        sums = tuple(total + mass for total, mass in zip(sums, masses, strict=True))
    return sums


def up_to(centroids, i, share):
    """The sums up to a share of the way from centroid i to the next one."""
    before = totals(centroids[:i])
    if share == 0:
        return tuple(b + 0.5 * here for b, here in zip(before, centroids[i][1:], strict=True))
    return tuple(
        b + 0.5 * here + share * (here + 0.5 * (there - here) * share)
        for b, here, there in zip(before, centroids[i][1:], centroids[i + 1][1:], strict=True)
    )


def sum_up_to(centroids, value):
    below = [i for i, centroid in enumerate(centroids) if centroid[0] <= value]
    if len(below) in (0, len(centroids)):
        return totals(centroids[: len(below)])
    p, q = centroids[below[-1]][0], centroids[below[-1] + 1][0]
    return up_to(centroids, below[-1], (value - p) / (q - p))


def place_of_mass(centroids, aim):
    """(i, share): where the mass reaches aim."""
    halves = [up_to(centroids, i, 0)[0] for i in range(len(centroids))]
    i = max((i for i, half in enumerate(halves) if half <= aim), default=0)
    more, here = aim - halves[i], centroids[i][1]
    if i == len(centroids) - 1 or more <= 0:
        return i, 0.0
    root = math.sqrt(max(here * here + 2.0 * (centroids[i + 1][1] - here) * more, 0.0))
    return i, min(2.0 * more / (here + root), 1.0)


def value_at(centroids, i, share):
    p, q = centroids[i][0], centroids[i + (share > 0)][0]
    return min(p + (q - p) * share, q)


def uniform(centroids, n_parts):
    mass = totals(centroids)[0]
    return [value_at(centroids, *place_of_mass(centroids, mass * j / n_parts)) for j in range(1, n_parts)]


def candidates(centroids, max_bins, uniform_only=False):
    """(value, sums up to it) of every cut. The last one is behind all rows."""
    last = (centroids[-1][0], totals(centroids))
    if len(centroids) < max_bins and not uniform_only:
        return [(centroid[0], totals(centroids[: i + 1])) for i, centroid in enumerate(centroids)]
    places = [place_of_mass(centroids, totals(centroids)[0] * j / max_bins) for j in range(1, max_bins)]
    inside = [place for place in places if place[0] < len(centroids) - 1]
    first = [place for k, place in enumerate(inside) if k == 0 or place[1] > 0]
    return [(value_at(centroids, *place), up_to(centroids, *place)) for place in first] + [last]


def finder(values, max_bins, shards, by_estimates=False):
    """Make a function that finds a split, with the arguments of `reference.growing.best_split`.

    ``values`` are the values of the codes of each feature, and ``shards`` where the rows of each shard end.
    By estimates, the split is that of section 4 of pGBRT: bins are merged one by one, candidates are uniform,
    and the one that is best by the sums in the histogram is taken, if both children have enough rows.
    """

    def offer(codes, bins, leaf, feature, n_bins, rules):
        """(score, code, missing_left) of the best cut, judged by the histogram."""
        here = codes[leaf.rows, feature]
        histograms, start = [], 0
        for stop in shards:
            own = leaf.rows[(leaf.rows >= start) & (leaf.rows < stop) & (here != n_bins)]
            rows = [
                (values[feature][code], 1.0, float(g), float(h))
                for code, (g, h, _) in zip(codes[own, feature], bins[own].tolist(), strict=True)
            ]
            histograms.append(updated([], rows, max_bins))
            start = stop
        centroids = merged(histograms, max_bins, one_by_one=by_estimates)
        g, h, n_lacking = slow.total(bins, leaf.rows[here == n_bins])
        if not centroids:
            return None
        cuts = candidates(centroids, max_bins, uniform_only=by_estimates)
        some, none = (float(n_lacking), float(g), float(h)), (0.0, 0.0, 0.0)
        inner = [(value, sums, False) for value, sums in cuts[:-1]]
        tried = [(cut, none, 0) for cut in inner]
        if n_lacking:
            whether = [((*cuts[-1], True), none, 0)]
            tried = {
                "learned": tried + whether + [(cut, some, 1) for cut in inner],
                "left": whether + [(cut, some, 1) for cut in inner],
                "right": tried + whether,
            }[rules.missing]
        best, best_score = None, least(leaf, rules)
        for (value, sums, all_values), extra, side in tried:
            n, gradient, hessian = (a + b for a, b in zip(sums, extra, strict=True))
            score = slow.children_gain(leaf, (gradient, hessian, n), 0, rules)
            if score is None or score <= least(leaf, rules):
                continue
            if score - rules.prices_of(len(values))[feature] > best_score:
                best_score = score - rules.prices_of(len(values))[feature]
                lower = [code for code, own in enumerate(values[feature][:n_bins]) if own <= value]
                best = best_score, n_bins - 1 if all_values else lower[-1], side
        return best

    def least(leaf, rules):
        own = slow.undivided_gain(leaf, rules)
        return own + (slow.NOISE * own + rules.min_gain)

    def find(codes, bins, leaf, features, mapper, rules, may_follow=True):
        offers = []
        for feature in features:
            found = offer(codes, bins, leaf, feature, int(mapper.n_bins[feature]), rules)
            if found:
                offers.append((-found[0], feature, *found[1:]))
        for negative, feature, code, side in sorted(offers)[: 1 if by_estimates else None]:
            n_bins, here = int(mapper.n_bins[feature]), codes[leaf.rows, feature]
            goes_left = (here <= code) | ((here == n_bins) & (side == 1))
            left = slow.total(bins, leaf.rows[goes_left])
            score = slow.children_gain(leaf, left, 0, rules)
            if score is None or (score <= least(leaf, rules) and not by_estimates):
                continue
            score = -negative if by_estimates else score - rules.prices_of(len(values))[feature]
            if score > least(leaf, rules):
                missing_left = bool(side) if n_bins in here else slow.side_of_none(left, leaf, rules.missing)
                codes_left = frozenset(np.unique(here[goes_left & (here != n_bins)]).tolist())
                return slow.Split(
                    score - slow.undivided_gain(leaf, rules), feature, codes_left, missing_left, left
                )
        return None

    return find
