"""Grow trees slowly: with Python's integers, masks over rows, and one candidate at a time."""

import math
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np

from ranktrees._core.support.dtypes import BIN, LEAF
from ranktrees.binning.mapper import BinMapper
from ranktrees.growing.constraints import Constraints
from ranktrees.growing.grower import TreeGrower
from ranktrees.growing.split_search import searches
from ranktrees.model.costs import Prices
from ranktrees.rows.sampling import ROUNDING, stream
from reference.sampling import random

SMOOTHING = 10.0
BETWEEN_HALVES = 2 / math.pi  # of what categories differ by, what is between the halves of their order
NOISE = 2.0**-40
CELLS = 15  # of values, in a coarse search
LEAST_CELLS = 4  # for values other than those that most rows have
SHORTLIST = 4
WORTH_A_LOOK = 0.8


# ---- rounding ---------------------------------------------------------------------------------------


def places(values, room):
    """How many binary places all values keep, such that their magnitudes add up to less than 2^room."""
    n, exponent = len(values), math.frexp(max(map(abs, values)))[1]
    at_first = min(30 - exponent, 1000)
    more = Fraction(2**room - 1 - n, sum(map(abs, in_steps(values, at_first))) + n)
    power = more.numerator.bit_length() - more.denominator.bit_length()
    power -= Fraction(2) ** power > more
    return min(at_first + power, 50 - exponent, 1000)


def in_steps(values, n_places):
    """The nearest integers to value * 2^n_places, with halves rounded to even."""
    return [round(Fraction(value) * Fraction(2) ** n_places) for value in values]


class Rounded:
    """Gradients and hessians as integers: one BIN per row."""

    def __init__(self, gradients, hessians, sampled=False):
        self.gradients, self.hessians = np.asarray(gradients, float), np.asarray(hessians, float)
        gradients, hessians = self.gradients.tolist(), self.hessians.tolist()
        self.sampled = False
        self.same = not sampled and hessians[0] > 0 and len(set(hessians)) == 1
        self.bits = len(hessians).bit_length() if self.same else 32
        gradient_places = places(gradients, min(63 - self.bits, 53))
        whole, steps, self.hessian_unit = (
            in_steps(gradients, gradient_places),
            [1] * len(hessians),
            hessians[0],
        )
        if not self.same:
            hessian_places = places(hessians, 32)
            steps = [
                max(step, h > 0) for step, h in zip(in_steps(hessians, hessian_places), hessians, strict=True)
            ]
            self.hessian_unit = 2.0**-hessian_places
        self.gradient_unit = 2.0**-gradient_places
        self.bins = np.array([(g, h, 1) for g, h in zip(whole, steps, strict=True)], BIN)

    def variance(self, rows):
        """The sum of squares of gradients over that of hessians, by as many bits as have an exact sum."""
        gradients = self.bins["gradient"][rows].tolist()
        largest = max(map(abs, gradients), default=0)
        spare = max(0, largest.bit_length() - (62 - len(self.bins).bit_length()) // 2)
        hessians = int(self.bins["hessian"][rows].sum()) * self.hessian_unit
        unit = self.gradient_unit * 2**spare
        return sum((g >> spare) ** 2 for g in gradients) * unit * (unit / hessians) if hessians else 0.0

    @property
    def sums(self):
        """Gradient and hessian in one number: int64[n_rows]."""
        return packed(self.bins, self.bits)


class RoundedSample(Rounded):
    """The same for the rows that are drawn, each by its own draw. The others become 0."""

    STEPS = 8  # of a value that is just large enough to be in every sample

    def __init__(self, gradients, hessians, sampling, seed, number):
        super().__init__(gradients, hessians, sampled=True)
        n_rows = len(self.gradients)
        self.sampled = self.hessians[0] > 0 and len(set(self.hessians.tolist())) == 1
        sure, scales = {}, {}
        for name, values, means, room in (
            ("gradient", self.gradients, 0, 31),
            ("hessian", self.hessians, 8, 32),
        ):
            largest = abs(values).max()
            total = sum(in_steps(abs(values), n := min(30 - math.frexp(largest)[1], 1000)))
            sure[name] = max(largest, means * total / n_rows * 2.0**-n) / sampling if largest else 1.0
            most = total + n_rows + n_rows * sure[name] * 2.0**n
            exponent = n + math.frexp((2**room - 1 - n_rows) / most)[1] - 1
            exact = 2.0 ** min(exponent, 50 - math.frexp(largest)[1], 1000)
            scales[name] = min(exact, self.STEPS / sure[name])
            setattr(self, name + "_unit", 1 / scales[name])
        for row, values in enumerate(zip(self.gradients.tolist(), self.hessians.tolist(), strict=True)):
            draw = random(seed, number, row)
            sizes = list(zip(map(abs, values), sure.values(), strict=True))
            is_drawn = ((draw >> 32) + 0.5) * 2.0**-32 < max(size / own for size, own in sizes)
            times = max(1.0, min((own / size for size, own in sizes if size), default=1.0))
            for name, value in zip(scales, values, strict=True):
                size = round(abs(value) * times * scales[name] + shift_of(draw & 0xFFFFFFFF))
                self.bins[name][row] = (-size if value < 0 else size) if is_drawn else 0


def shift_of(draw):
    """A number between -1/2 and 1/2."""
    return (draw - ((draw >> 31) << 32) + 0.5) * 2.0**-32


def packed(bins, bits):
    """gradient << bits | hessian."""
    return (bins["gradient"] << bits) + bins["hessian"]


def histogram(codes, bins, rows, n_bins):
    """One BIN per code of every feature, including the missing codes."""
    cells = []
    for f, n in enumerate(n_bins):
        for code in range(n + 1):
            cells.append(total(bins, rows[codes[rows, f] == code]))
    return np.array(cells, BIN)


def total(bins, rows):
    return tuple(int(bins[name][rows].sum(dtype=np.int64)) for name in ("gradient", "hessian", "count"))


# ---- splits -----------------------------------------------------------------------------------------


def newton_score(gradient, hessian):
    return gradient * (gradient / hessian) if hessian > 0 else 0.0


@dataclass
class Rules:
    """The rules for every split of a tree."""

    gradient_unit: float = 1.0
    hessian_unit: float = 1.0
    l2: float = 0.0
    min_gain: float = 0.0
    min_samples_leaf: int = 1
    min_hessian: float = 0.0
    sampled: bool = False
    monotone: np.ndarray | None = None
    missing: str = "learned"
    prices: np.ndarray | None = None
    variance: float = 0.0

    def prices_of(self, n_features):
        return np.zeros(n_features) if self.prices is None else self.prices

    def value(self, part, lower=-math.inf, upper=math.inf):
        hessian = part[1] * self.hessian_unit + self.l2
        value = -(float(part[0]) * self.gradient_unit) / hessian if hessian > 0 else 0.0
        return min(max(value, lower), upper)

    def sums(self, part):
        return float(part[0]) * self.gradient_unit, part[1] * self.hessian_unit + self.l2

    def score(self, part):
        return newton_score(*self.sums(part))

    def gain_at(self, part, value):
        slope = 2.0 * float(part[0]) * self.gradient_unit
        return -value * (slope + (part[1] * self.hessian_unit + self.l2) * value)

    def least_hessian(self):
        return max(1, min(math.ceil(self.min_hessian / self.hessian_unit), 2**32 - 1))

    def hessian_of_rows(self, leaf, share):
        return max(share * self.min_samples_leaf * (leaf.total[1] / leaf.total[2]), self.least_hessian())

    def large_enough(self, part, leaf):
        least = self.hessian_of_rows(leaf, 0.5) if self.sampled else self.least_hessian()
        return part[2] >= self.min_samples_leaf and part[1] >= least


@dataclass
class Split:
    """The codes of those rows of the leaf that go left, and where rows without a value go.

    ``second_gain`` is that of the split that goes with it; ``direction`` says whether left is below right.
    """

    gain: float
    feature: int
    left_codes: frozenset
    missing_left: bool
    left: tuple
    second_gain: float = 0.0
    direction: int = 1


@dataclass
class Leaf:
    """A node and its rows. ``above`` is what its parent promised."""

    rows: np.ndarray
    total: tuple
    value: float
    lower: float = -math.inf
    upper: float = math.inf
    depth: int = 0
    split: Split | None = None
    shortlist: tuple = ()
    children: tuple = ()
    used: list = field(default_factory=list)
    forced_feature: int = -1
    above: float = math.inf

    @property
    def promise(self):
        """The gain by which the queue is ordered."""
        return math.inf if self.forced_feature >= 0 else self.split.gain + self.split.second_gain


def minus(whole, part):
    return tuple(a - b for a, b in zip(whole, part, strict=True))


def plus(one, other):
    return tuple(a + b for a, b in zip(one, other, strict=True))


def children_gain(leaf, left, sign, rules):
    """The score of the two children together, or None if they are not allowed."""
    right = minus(leaf.total, left)
    if not (rules.large_enough(left, leaf) and rules.large_enough(right, leaf)):
        return None
    if rules.monotone is not None:
        left_value = rules.value(left, leaf.lower, leaf.upper)
        right_value = rules.value(right, leaf.lower, leaf.upper)
        if (right_value - left_value) * sign < 0:
            return None
        return rules.gain_at(left, left_value) + rules.gain_at(right, right_value)
    (g, _), (left_g, left_h), (_, right_h) = rules.sums(leaf.total), rules.sums(left), rules.sums(right)
    return newton_score(left_g, left_h) + newton_score(g - left_g, right_h)


def undivided_gain(leaf, rules):
    """The score of the undivided leaf."""
    return rules.score(leaf.total) if rules.monotone is None else rules.gain_at(leaf.total, leaf.value)


def candidates(codes, bins, leaf, feature, n_bins, categorical, missing, sign):
    """Yield (left codes, order), in the order of preference among equal splits."""
    here = codes[leaf.rows, feature]
    codes_here = sorted(set(here.tolist()) - {n_bins})
    has_missing = (here == n_bins).any()
    if categorical:
        smoothing = SMOOTHING * leaf.total[1] / leaf.total[2]
        means = {}
        for code in sorted(set(here.tolist())):
            part = total(bins, leaf.rows[here == code])
            means[code] = float(part[0]) / (part[1] + smoothing + 1e-300)
        by_mean = sorted(means, key=lambda code: (means[code], code))
        for k in range(1, len(by_mean)):
            yield frozenset(by_mean[:k]), 0
        return
    heard = [code for code in codes_here if any(total(bins, leaf.rows[here == code])[:2])]
    up_to = [frozenset(code for code in codes_here if code <= last) for last in heard[:-1]]
    if has_missing and codes_here and (missing == "left" or (missing == "learned" and sign)):
        yield frozenset(codes_here), -1
    if not has_missing or missing != "left":
        yield from ((some, 1) for some in up_to)
    if has_missing and missing != "left":
        yield frozenset(codes_here), 1
    if has_missing and missing != "right":
        yield from ((some | {n_bins}, 1) for some in up_to)


def side_of_none(left, leaf, missing):
    """Whether rows without a value go left, if the leaf has none."""
    return {"left": True, "right": False}.get(missing, 2 * left[2] > leaf.total[2])


def best_three_way_split(codes, bins, leaf, feature, mapper, rules, may_follow):
    """(The score of two or three children, the split of the rows with a value from the others)."""
    has_value = codes[leaf.rows, feature] != mapper.n_bins[feature]
    left = total(bins, leaf.rows[has_value])
    score = children_gain(leaf, left, 0, rules)
    if score is None:
        return -math.inf, None
    valued = Leaf(
        leaf.rows[has_value], left, rules.value(left, leaf.lower, leaf.upper), leaf.lower, leaf.upper
    )
    unpriced = replace(rules, prices=None)  # the price is paid once
    follows = best_split(codes, bins, valued, [feature], mapper, unpriced) if may_follow else None
    then = follows.gain if follows else 0.0
    here = frozenset(codes[valued.rows, feature].tolist())
    return score + then, Split(math.nan, feature, here, False, left, then, 0)


def best_split(codes, bins, leaf, features, mapper, rules, may_follow=True):
    """The first of the best splits of a leaf, or None."""
    own, prices = undivided_gain(leaf, rules), rules.prices_of(len(mapper.n_bins)).tolist()
    least = own + (NOISE * abs(own) + rules.min_gain)
    best, best_gain = None, least
    for feature in features:
        found, most = None, -math.inf
        n_bins, categorical = int(mapper.n_bins[feature]), bool(mapper.is_categorical[feature])
        sign = 0 if rules.monotone is None else int(rules.monotone[feature])
        here = codes[leaf.rows, feature]
        if rules.missing == "three_way" and n_bins in here and not categorical:
            most, found = best_three_way_split(codes, bins, leaf, feature, mapper, rules, may_follow)
            tried = ()
        else:
            tried = candidates(codes, bins, leaf, feature, n_bins, categorical, rules.missing, sign)
        by_chance = BETWEEN_HALVES * (len(np.unique(here)) - 1) * rules.variance if categorical else 0.0
        for left_codes, order in tried:
            left = total(bins, leaf.rows[np.isin(here, list(left_codes))])
            score = children_gain(leaf, left, sign * order, rules)
            if score is not None and score - by_chance > most:
                most = score - by_chance
                missing_left = n_bins in left_codes or (
                    n_bins not in here
                    and side_of_none(left, leaf, "learned" if categorical else rules.missing)
                )
                found = Split(math.nan, feature, left_codes - {n_bins}, missing_left, left, direction=order)
        if most > least and most - prices[feature] > best_gain:
            best_gain, best = most - prices[feature], found
            best.gain = best_gain - own - best.second_gain
    return best


def least_squares_stump(X, targets, weights):
    """The rows on the left of the split that brings the means of both sides nearest to the targets."""
    best, most = None, math.inf
    for values in X.T:
        for cut in np.unique(values)[:-1]:
            sides = values <= cut, values > cut
            means = [np.average(targets[side], weights=weights[side]) for side in sides]
            error = (weights * (targets - np.where(sides[0], *means)) ** 2).sum()
            if error < most * (1 - 1e-12):
                best, most = sides[0], error
    return best


# ---- coarse search ----------------------------------------------------------------------------------


def coarse_cells(counts, n_rows, most):
    """The cell of each bin."""
    if len(counts) <= most:
        return np.arange(len(counts))
    share = n_rows / most
    light = counts[counts <= share].sum()
    share = min(share, light / LEAST_CELLS) or share
    below = np.append(0, np.cumsum(counts)).tolist()
    while True:
        starts, bin_ = [], 0
        while bin_ < len(counts):
            starts.append(bin_)
            bin_ = max(bisect_right(below, below[bin_] + int(share)) - 1, bin_ + 1)
        if len(starts) <= most:
            return np.repeat(np.arange(len(starts)), np.diff(starts, append=len(counts)))
        share *= 1.05


def cells_of(codes, mapper):
    """For each feature, the cell of each code; -1 for rows without a value."""
    cells = []
    for feature, n_bins in enumerate(mapper.n_bins.tolist()):
        counts = np.bincount(codes[:, feature], minlength=n_bins)[:n_bins]
        cells.append(np.append(coarse_cells(counts, len(codes), CELLS), -1))
    return cells


def best_of_cells(bins, leaf, cells, sign, rules, same, counted):
    """The children's score at the best cut between cells.

    If rows are not counted, the size of a child is estimated from its hessian.
    """
    sides = {"left": [1], "right": [0]}.get(rules.missing, [0, 1])
    least = rules.hessian_of_rows(leaf, 1.0 if same else 0.5)
    missing = total(bins, leaf.rows[cells < 0])
    best = -math.inf
    for last in range(0 if rules.missing == "right" else -1, CELLS):
        up_to = total(bins, leaf.rows[(cells >= 0) & (cells <= last)])
        for left in [plus(up_to, missing) if side else up_to for side in sides]:
            right = minus(leaf.total, left)
            (g, _), (left_g, left_h), (_, right_h) = (
                rules.sums(leaf.total),
                rules.sums(left),
                rules.sums(right),
            )
            right_g, large_enough = g - left_g, left[1] >= least and right[1] >= least
            if counted:
                large_enough = rules.large_enough(left, leaf) and rules.large_enough(right, leaf)
            if large_enough and (not sign or sign * (left_g * right_h - right_g * left_h) >= 0):
                best = max(best, newton_score(left_g, left_h) + newton_score(right_g, right_h))
    return best


def scores_by_cells(codes, bins, leaf, features, cells, rules, same, counted=False):
    """The score of each feature after its price, judged by its cells: pairs (-score, feature)."""
    prices, own = rules.prices_of(len(cells)).tolist(), undivided_gain(leaf, rules)
    least = own + (NOISE * abs(own) + rules.min_gain)
    for feature in features:
        sign = 0 if rules.monotone is None else int(rules.monotone[feature])
        here = cells[feature][codes[leaf.rows, feature]]
        score = best_of_cells(bins, leaf, here, sign, rules, same, counted)
        yield -(score - prices[feature] if score > least else -math.inf), int(feature)


def shortlist(leaf, scores, rules):
    """(gain, shortlist) of a leaf by scores as `scores_by_cells` gives them, or None."""
    own = undivided_gain(leaf, rules)
    least = own + (NOISE * abs(own) + rules.min_gain)
    scores = sorted(score for score in scores if -score[0] > least)[:SHORTLIST]
    if not scores:
        return None
    gain = -scores[0][0] - own
    least = -scores[0][0] - (1.0 - WORTH_A_LOOK) * gain
    return gain, sorted(feature for score, feature in scores if -score >= least)


# ---- partition and growth ---------------------------------------------------------------------------


def divide(codes, leaf, mapper, rules):
    """The two children of a leaf whose split is known."""
    split = leaf.split
    here = codes[leaf.rows, split.feature]
    goes_left = np.isin(here, list(split.left_codes))
    goes_left[here == mapper.n_bins[split.feature]] = split.missing_left
    left, right = split.left, minus(leaf.total, split.left)
    children = [
        Leaf(rows, part, rules.value(part, leaf.lower, leaf.upper), leaf.lower, leaf.upper, leaf.depth + 1)
        for rows, part in ((leaf.rows[goes_left], left), (leaf.rows[~goes_left], right))
    ]
    sign = 0 if rules.monotone is None else rules.monotone[split.feature] * split.direction
    wall = 0.5 * (children[0].value + children[1].value)
    if sign > 0:
        children[0].upper = children[1].lower = wall
    elif sign < 0:
        children[0].lower = children[1].upper = wall
    for child in children:
        child.used = [*leaf.used, split.feature]
    if split.second_gain:
        children[0].forced_feature = split.feature
    return children


def allowed(leaf, features, interactions):
    """The features that are in one set with all features used above the leaf."""
    if interactions is None:
        return features
    return [f for f in features if any({f, *leaf.used} <= set(members) for members in interactions)]


def exact_sum(values):
    """The sum of the values, each rounded to an integer on the scale of the largest."""
    largest = max(abs(values), default=0.0)
    if largest == 0.0:
        return 0.0
    bits = 51
    while len(values) > 2 ** (62 - bits):
        bits -= 1
    exponent = min(bits - math.frexp(largest)[1], 1000)
    return math.ldexp(float(sum(round(math.ldexp(value, exponent)) for value in values)), -exponent)


def is_pure(leaf, rounded):
    """Whether all rows want the same value, up to rounding. Rows without weight want none."""
    gradients, hessians = rounded.gradients[leaf.rows], rounded.hessians[leaf.rows]
    some = (gradients != 0) | (hessians != 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        wanted = gradients[some] / hessians[some]
    if not len(wanted):
        return True
    return np.isfinite(wanted).all() and np.ptp(wanted) <= 2.0**-50 * abs(wanted).max()


def settled_value(leaf, rounded, rules):
    """The value of a leaf, from the gradients of its rows rather than from their bins."""
    gradient = exact_sum(rounded.gradients[leaf.rows])
    hessian = exact_sum(rounded.hessians[leaf.rows]) + rules.l2
    value = -gradient / hessian if hessian > 0 else 0.0
    return min(max(value, leaf.lower), leaf.upper)


def grow(
    codes,
    rounded,
    rows,
    mapper,
    rules,
    *,
    max_leaf_nodes=None,
    max_depth=None,
    features=None,
    interactions=None,
    coarse=False,
    draws=None,
    rates=None,
    ranks=False,
    groups=None,
    find=best_split,
):
    """Grow a tree. Return its nodes in the order in which they are made.

    A coarse search promises a gain by cells. The split itself is found when it is the leaf's turn. If there
    is none after all, it stays a leaf. ``rates`` of features are prices per unit of the tree's hessian or,
    if the price ``ranks``, prices. They are changed: once a feature is used, those of its group become 0, and
    all leaves are searched again.
    ``find`` replaces `best_split`.
    """
    features = range(len(mapper.n_bins)) if features is None else features
    bins, same = rounded.bins, rounded.same
    cells = cells_of(codes, mapper) if coarse else None
    rules = replace(rules, variance=rounded.variance(rows))
    root = Leaf(np.asarray(rows), total(bins, rows), 0.0)
    root.value = rules.value(root.total)
    nodes, n_leaves = [root], 1
    most = max(1, len(codes) // rules.min_samples_leaf)
    most = min(most, max_leaf_nodes or most)
    max_depth = min(max_depth or most, most - 1)
    free = rates is None or not rates.any()

    def set_prices():
        if rates is not None:
            rules.prices = rates * (1.0 if ranks else root.total[1] * rules.hessian_unit)
            rules.prices -= rules.prices.max() if ranks else 0.0

    set_prices()

    def search(i):
        leaf = nodes[i]
        leaf.split = None
        if leaf.depth >= max_depth or is_pure(leaf, rounded):
            return
        own = allowed(leaf, features, interactions) if leaf.forced_feature < 0 else [leaf.forced_feature]
        for some in [own] if draws is None or leaf.forced_feature >= 0 else draws(i):
            if coarse:
                promise = shortlist(leaf, scores_by_cells(codes, bins, leaf, some, cells, rules, same), rules)
                if promise:
                    leaf.split, leaf.shortlist = Split(promise[0], -1, frozenset(), False, ()), promise[1]
            else:
                leaf.split = find(codes, bins, leaf, some, mapper, rules, leaf.depth + 1 < max_depth)
            if leaf.split is not None:
                return

    def settled(i):
        """The best split by the shortlist or, if it falls short, by lists of features with cuts allowed."""
        leaf, promise = nodes[i], nodes[i].split.gain
        split = best_split(codes, bins, leaf, leaf.shortlist, mapper, rules)
        if split is not None and split.gain >= promise:
            return split
        own = allowed(leaf, features, interactions)
        for some in [own] if draws is None else draws(i):
            scores = list(scores_by_cells(codes, bins, leaf, some, cells, rules, same, counted=True))
            while promising := shortlist(leaf, scores, rules):
                split = best_split(codes, bins, leaf, promising[1], mapper, rules)
                if split is not None:
                    return split
                scores = [score for score in scores if score[1] not in promising[1]]
        return None

    search(0)
    ratios = []
    while n_leaves < most:
        opened = [i for i, leaf in enumerate(nodes) if leaf.split is not None and not leaf.children]
        if not opened:
            break
        if max_leaf_nodes:
            opened = sorted(opened, key=lambda i: (-nodes[i].promise, i))
            promises = [nodes[i].promise for i in opened]
            opened = opened[: n_together(promises, most - n_leaves, ratios) if free and most > 16 else 1]
        n_nodes, paid = len(nodes), []
        for i in opened:
            promise = nodes[i].promise
            if coarse:
                nodes[i].split = settled(i)
            if nodes[i].split is not None:
                promise = min(promise, nodes[i].promise)
                if i and math.isfinite(promise) and math.isfinite(nodes[i].above):
                    ratios.append(promise / nodes[i].above)
                nodes[i].children = (len(nodes), len(nodes) + 1)
                nodes += divide(codes, nodes[i], mapper, rules)
                nodes[-2].above = nodes[-1].above = promise
                n_leaves += 1
                if rules.prices is not None:
                    nodes[i].split.gain += float(rules.prices[nodes[i].split.feature])
                    if rates[nodes[i].split.feature] > 0:
                        paid.append(groups[nodes[i].split.feature])
        if paid:
            rates[np.isin(groups, paid)] = 0.0
            set_prices()
        for i, leaf in enumerate(nodes):
            if i >= n_nodes or (paid and not leaf.children):
                search(i)
    for leaf in nodes:
        if not leaf.children:
            leaf.value = settled_value(leaf, rounded, rules)
    return nodes


def n_together(promises, n_splits, ratios):
    """How many of the best leaves are split in one turn.

    A leaf is if it would be among the next ``n_splits`` even if all descendants of better leaves that may
    promise more came first. A child promises at most as much of its parent's promise as the mean of
    ``ratios``.
    """
    ratio, n = sum(ratios) / len(ratios) if ratios else 1.0, 1
    while n < min(len(promises), n_splits):
        n_generations, promise = 1, ratio * promises[0]
        while promises[n] < promise and n_generations < 64:
            n_generations, promise = n_generations + 1, ratio * promise
        if n * (2**n_generations - 1) >= n_splits:
            break
        n += 1
    return n


def draws_of(constraints, key):
    """The features that a leaf considers first, and then others as long as it finds no split."""

    def draws(i):
        leaves, ids = np.zeros(i + 1, LEAF), np.array([i], np.int32)
        leaves["split"]["feature"] = -1
        for _, features in constraints.candidates(leaves, ids, key):
            yield [f for f in features[0].tolist() if f >= 0]

    return draws


def rows_of(grown, leaf):
    """The rows of a node, in the order in which they lie, and then those set apart."""
    ends = (leaf["start"], leaf["stop"]), (leaf["quiet_start"], leaf["quiet_stop"])
    return np.concatenate([grown.order[start:stop] for start, stop in ends])


def agrees(grown, nodes, codes, mapper):
    """Assert that a grown tree equals the tree of ``grow``, to the last bit."""
    leaves = grown.leaves
    assert len(leaves) == len(nodes)
    for leaf, node in zip(leaves, nodes, strict=True):
        assert tuple(leaf["total"].tolist()) == node.total
        assert (leaf["value"], leaf["lower"], leaf["upper"]) == (node.value, node.lower, node.upper)
        assert leaf["depth"] == node.depth
        inside = rows_of(grown, leaf)
        if not node.children:
            assert leaf["left"] == leaf["right"] == -1
            assert sorted(inside.tolist()) == node.rows.tolist()
            for first, last in (("start", "stop"), ("quiet_start", "quiet_stop")):  # both are parted stably
                assert (np.diff(grown.order[leaf[first] : leaf[last]].astype(int)) > 0).all()
            continue
        assert (leaf["left"], leaf["right"]) == node.children
        assert sorted(inside.tolist()) == node.rows.tolist()
        split, ours = leaf["split"], node.split
        assert (split["feature"], split["gain"], split["second_gain"]) == (
            ours.feature,
            ours.gain,
            ours.second_gain,
        )
        assert bool(split["missing_left"]) == ours.missing_left
        assert tuple(split["left"].tolist()) == ours.left
        here = set(codes[node.rows, ours.feature].tolist()) - {int(mapper.n_bins[ours.feature])}
        assert {code for code in here if goes_left(split, code)} == ours.left_codes


def goes_left(split, code):
    if split["categorical"]:
        return bool(int(split["categories"][code // 32]) >> (code % 32) & 1)
    return code <= split["code"]


def leaf_of(leaves, missing_codes, line):
    """The leaf that a row of codes ends in."""
    i = 0
    while leaves[i]["left"] >= 0:
        split = leaves[i]["split"]
        code = int(line[split["feature"]])
        left = split["missing_left"] if code == missing_codes[split["feature"]] else goes_left(split, code)
        i = int(leaves[i]["left" if left else "right"])
    return i


def walk(grown, missing_codes, line):
    """The leaf of a grown tree that a row of codes ends in."""
    return leaf_of(grown.leaves, missing_codes, line)


# ---- data to grow on --------------------------------------------------------------------------------


def mapper_of(n_bins, categorical=()):
    """A mapper whose codes are the values themselves: 0, 1, ..."""
    return BinMapper(
        [np.arange(n - 1) + 0.5 for n in n_bins],
        [np.arange(n, dtype=float) if f in categorical else None for f, n in enumerate(n_bins)],
    )


def readable(codes, dtype=None):
    """Codes as the kernels need them: feature by feature, with spare bytes to read behind the last."""
    base = np.full(codes.size + 64, 255, codes.dtype if dtype is None else dtype)
    own = base[: codes.size].reshape(codes.shape[::-1]).T
    own[:] = codes
    return own


def random_codes(rng, n_rows, n_bins, missing=0.1):
    """Codes with missing values, and with some features whose bins are very uneven."""
    codes = np.empty((n_rows, len(n_bins)), np.uint8 if max(n_bins) <= 255 else np.uint32)
    for f, n in enumerate(n_bins):
        codes[:, f] = np.minimum(
            rng.geometric(min(1.0, 3 / n), n_rows) - 1 if f % 3 == 1 else rng.integers(0, n, n_rows), n - 1
        )
        codes[rng.random(n_rows) < (missing if f % 2 == 0 else 0.0), f] = n
    return readable(codes)


def grower_of(
    codes,
    mapper,
    *,
    n_threads=1,
    features=None,
    monotone=None,
    interactions=None,
    max_features=None,
    missing="learned",
    split_search="full",
    prices=None,
    max_bins=255,
    **rules,
):
    """A TreeGrower with defaults for everything. For an exact search, codes are always long."""
    features = range(codes.shape[1]) if features is None else features
    constraints = Constraints(
        np.array(list(features), np.int32),
        codes.shape[1],
        monotone=monotone,
        interactions=interactions,
        missing=missing,
        max_features=max_features,
    )
    codes = readable(codes, np.uint32 if split_search == "exact" else None)
    make_search = searches(split_search, codes, mapper, constraints, n_threads, max_bins=max_bins)
    prices = Prices.none(codes.shape[1]) if prices is None else prices
    return TreeGrower(codes, mapper, constraints, prices, make_search, n_threads=n_threads, **rules)


def grown_on(codes, mapper, gradients, hessians=None, *, rows=None, seed=0, tree=0, **rules):
    """Grow one tree: (Grown, Rounded)."""
    gradients = np.asarray(gradients, float)
    hessians = np.ones(len(codes)) if hessians is None else np.asarray(hessians, float)
    rows = None if rows is None else np.array(rows, np.uint32)
    grown = grower_of(codes, mapper, **rules).grow(gradients, hessians, rows, seed=seed, tree=tree)
    if sampling := rules.get("gradient_sampling"):
        return grown, RoundedSample(gradients, hessians, sampling, seed, stream(tree, ROUNDING))
    return grown, Rounded(gradients, hessians)


def tree_bytes(grown, mapper):
    """The bytes that must not depend on how the tree was grown."""
    nodes, bit_sets = grown.tree(grown.values, mapper)
    leaves = grown.leaves[grown.is_leaf]
    rows = [np.sort(rows_of(grown, leaf)).tobytes() for leaf in leaves]
    return b"".join([nodes.tobytes(), bit_sets.tobytes(), *rows])
