from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ranktrees._core.growing.coarse_finding import CoarseFinder
from ranktrees._core.growing.finding import Finder
from ranktrees._core.growing.histogram import Builder
from ranktrees._core.growing.line_finding import LineFinder
from ranktrees._core.growing.parting import Parter
from ranktrees._core.support.dtypes import BIN, LEAF
from ranktrees.growing.packing import LongCodes, coarse_packing, full_packing
from reference import growing as slow

THREADS = 4


class Case:
    """One leaf of a few rows, searched in every way by the same finders."""

    def __init__(self, codes, bins, mapper, rules, rows=None, lower=-np.inf, upper=np.inf, bits=12):
        self.codes, self.bins, self.mapper, self.rules = slow.readable(codes), bins, mapper, rules
        self.order = np.arange(len(codes), dtype=np.uint32) if rows is None else np.array(rows, np.uint32)
        self.sums, self.bits = slow.packed(bins, bits)[self.order], bits
        self.same = bool((bins["hessian"] == 1).all())
        total = slow.total(bins, self.order)
        value = rules.value(total, lower, upper)
        self.leaves = np.zeros(1, LEAF)
        leaf = self.leaves[0]
        leaf["stop"], leaf["total"], leaf["value"] = len(self.order), total, value
        leaf["lower"], leaf["upper"], leaf["forced_feature"], leaf["splits_below"] = lower, upper, -1, 2
        self.node = slow.Leaf(np.sort(self.order), total, value, lower, upper)
        self.features = np.arange(codes.shape[1], dtype=np.int32)
        coarse = not mapper.is_categorical.any() and mapper.n_bins.max() <= 255
        self.coarse = coarse_packing(self.codes, mapper, self.features) if coarse else None
        self.make_finders()

    def make_finders(self):
        self.finder = self.make_finder(LineFinder, self.codes.dtype)
        self.coarse_finder = self.make_finder(CoarseFinder, packing=self.coarse) if self.coarse else None

    def make_finder(self, kind=Finder, dtype=np.uint8, packing=None):
        rules, prices = self.rules, self.rules.prices_of(len(self.features))
        by_row = packing is not None and kind is not CoarseFinder
        n_rows = len(self.order) * (9 if by_row else 1)  # few rows among many are not read in columns
        order, sums = np.resize(self.order, n_rows), np.resize(self.sums, n_rows)
        finder = kind(
            slow.readable(self.codes, dtype), packing, self.mapper, rules,
            SimpleNamespace(of_features=prices, all_free=not prices.any()), order, sums, THREADS,
        )  # fmt: skip
        units = {"gradient_unit": rules.gradient_unit, "hessian_unit": rules.hessian_unit}
        rows = SimpleNamespace(bits=self.bits, same=self.same, sampled=False, **units)
        rows.variance = lambda: rules.variance
        finder.begin(rows, rules.l2, rules.min_gain, rules.min_samples_leaf, rules.least_hessian())
        return finder

    def look_at_lines(self, finder, packing, lanes):
        """Give every leaf its line."""
        lines = np.zeros((len(self.leaves), packing.n_cells * lanes), np.int64)
        self.leaves["line"] = self.ids
        builder = Builder(
            packing.bytes, packing.digits, packing.first_digit, packing.n_cells, self.order, self.sums, 1
        )
        builder.attach(self.leaves, lines, lanes)
        builder.build(self.ids, self.bits, self.same, 1)
        finder.attach(self.leaves)
        finder.attach_lines(lines)

    @property
    def ids(self):
        return np.arange(len(self.leaves), dtype=np.int32)

    def found(self):
        return self.leaves["split"][0].copy()

    def from_lines(self, n_threads=1):
        packing = full_packing(self.codes, self.mapper, self.features)
        self.look_at_lines(self.finder, packing, 1 if self.same else 2)
        self.finder.find(self.ids, n_threads)
        return self.found()

    def from_rows(self, features=None, n_threads=1):
        features = None if features is None else np.array(features, np.int32)
        return self.from_rows_by(self.finder, n_threads, features)

    def from_long_codes(self, n_threads=1):
        return self.from_rows_by(self.make_finder(dtype=np.uint32), n_threads)

    def from_codes_by_row(self, n_threads=1):
        by_row = full_packing(self.codes, self.mapper, self.features)
        return self.from_rows_by(self.make_finder(packing=by_row), n_threads)

    def from_long_codes_by_row(self, n_threads=1):
        by_row = LongCodes(slow.readable(self.codes, np.uint32))
        return self.from_rows_by(self.make_finder(Finder, np.uint32, by_row), n_threads)

    def from_rows_by(self, finder, n_threads, features=None):
        features = np.atleast_2d(self.features if features is None else features)
        finder.attach(self.leaves)
        for _ in range(2):  # the second time its cells must be zero again
            finder.find_directly(self.ids, features, n_threads)
        return self.found()

    def from_filled_bins(self, n_threads=1):
        features = self.features[None, :]
        self.finder.attach(self.leaves)
        self.finder.scan_filled(self.ids, features, self.finder.fill(self.ids, features, n_threads))
        return self.found()

    def ranked(self, features=None, n_threads=1):
        """(gain, shortlist), or None."""
        features = self.features if features is None else np.array(features, np.int32)
        self.look_at_lines(self.coarse_finder, self.coarse, 1)
        self.coarse_finder.shortlist(self.ids, np.atleast_2d(features), n_threads)
        leaf = self.leaves[0]
        if leaf["split"]["feature"] < 0:
            assert leaf["split"]["gain"] == 0
            return None
        return leaf["split"]["gain"], [f for f in leaf["shortlist"].tolist() if f >= 0]

    def refined(self, shortlist, n_threads=1):
        self.coarse_finder.attach(self.leaves)
        self.leaves["shortlist"] = [*shortlist, *[-1] * (4 - len(shortlist))]
        self.coarse_finder.refine(self.ids, n_threads)
        self.count(n_threads)
        return self.found()

    def count(self, n_threads=1):
        """Count the rows of children; search leaves again, in all rows, where one gets too few."""
        rules, leaves = self.rules, np.concatenate([self.leaves, np.empty(2 * len(self.leaves), LEAF)])
        parter = Parter(
            slow.readable(self.codes), self.mapper.offsets, rules.monotone, self.order.copy(),
            self.sums.copy(), rules.min_samples_leaf, None, rules.missing,
        )  # fmt: skip
        units = {"gradient_unit": rules.gradient_unit, "hessian_unit": rules.hessian_unit}
        nothing = SimpleNamespace(n_rows=0, n_loud=0, count=0, total=(0, 0), **units)
        parter.attach(np.empty(1, LEAF))
        parter.begin(nothing, rules.l2, counts_later=not self.same)
        parter.attach(leaves)
        self.coarse_finder.attach(leaves)
        leaves["left"] = -1
        ids = self.ids[leaves["split"]["feature"][: len(self.leaves)] >= 0]
        while len(refused := parter.split(ids, len(self.leaves), n_threads)):
            self.coarse_finder.search_rows(refused, leaves["shortlist"][refused], True, n_threads)
            ids = ids[leaves["split"]["feature"][ids] >= 0]
        self.leaves["split"] = leaves["split"][: len(self.leaves)]

    def slowly(self, features=None):
        features = self.features if features is None else features
        return slow.best_split(self.codes, self.bins, self.node, features, self.mapper, self.rules)

    def slowly_ranked(self, features=None):
        features = self.features if features is None else features
        cells = slow.cells_of(self.codes, self.mapper)
        scores = slow.scores_by_cells(
            self.codes, self.bins, self.node, features, cells, self.rules, self.same
        )
        return slow.shortlist(self.node, scores, self.rules)


def agrees(split, ours, case):
    if ours is None:
        assert split["feature"] == -1
        assert split["gain"] == 0
        return
    n_bins = case.mapper.n_bins[ours.feature]
    here = set(case.codes[case.node.rows, ours.feature].tolist()) - {int(n_bins)}
    assert (split["feature"], split["gain"]) == (ours.feature, ours.gain)
    assert bool(split["missing_left"]) == ours.missing_left
    assert tuple(split["left"].tolist()) == ours.left
    assert {code for code in here if slow.goes_left(split, code)} == ours.left_codes
    assert split["categorical"] == case.mapper.is_categorical[ours.feature]
    if not split["categorical"]:
        assert split["code"] == max(ours.left_codes) or split["code"] == n_bins - 1


def bins_of(gradients, hessians=None):
    bins = np.ones(len(gradients), BIN)
    bins["gradient"] = gradients
    if hessians is not None:
        bins["hessian"] = hessians
    return bins


def case_of(
    seed,
    n_rows,
    n_bins,
    *,
    categorical=(),
    bounded=False,
    same=False,
    size=3,
    rows=None,
    priced=None,
    **rules,
):
    rng = np.random.default_rng(seed)
    codes = slow.random_codes(rng, n_rows, n_bins, 0.25)
    bins = bins_of(rng.integers(-size, size + 1, n_rows), None if same else rng.integers(0, 4, n_rows))
    monotone, lower, upper = None, -np.inf, np.inf
    if bounded:
        monotone = rng.integers(-1, 2, len(n_bins)).astype(np.int8)
        monotone[list(categorical)] = 0
        lower, upper = np.sort(rng.normal(0, 1, 2)) if rng.random() < 0.7 else (-np.inf, np.inf)
    mapper = slow.mapper_of(n_bins, categorical)
    prices = None
    if priced == "ties":
        prices = rng.integers(0, 3, len(n_bins)) * 0.5
    elif priced == "plain":
        prices = 10 ** rng.uniform(-9, 3, len(n_bins)) * (rng.random(len(n_bins)) < 0.7)
    elif priced == "dear":
        prices = np.where(rng.random(len(n_bins)) < 0.5, 0.0, np.inf)
    elif priced == "rebates":
        prices = rng.integers(-2, 1, len(n_bins)) * 0.5
    variance = rng.integers(0, 3) * rng.random()
    rules = slow.Rules(0.5, 0.25, monotone=monotone, prices=prices, variance=variance, **rules)
    return Case(codes, bins, mapper, rules, rows, lower, upper)


any_rules = {
    "bounded": st.booleans(),
    "same": st.booleans(),
    "size": st.sampled_from([0, 1, 3, 2**30]),
    "priced": st.sampled_from([None, "ties", "plain", "dear", "rebates"]),
    "l2": st.sampled_from([0.0, 0.1, 5.0]),
    "min_gain": st.sampled_from([0.0, 0.5]),
    "min_samples_leaf": st.sampled_from([1, 2, 15]),
    "min_hessian": st.sampled_from([0.0, 0.3, 4.0]),
}
rules_of = st.fixed_dictionaries(any_rules)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 200),
    n_bins=st.lists(st.sampled_from([1, 2, 3, 4, 9, 64, 65, 255]), min_size=1, max_size=11),
    categorical=st.sets(st.integers(0, 10)),
    rules=rules_of,
)
@example(1, 9, [1, 1, 2], set(), {"size": 1, "priced": "rebates"})
def test_every_way_finds_the_split_of_the_slow_twin(seed, n_rows, n_bins, categorical, rules):
    n_bins = n_bins if n_rows < 40 else n_bins[:3]
    categorical = {f for f in categorical if f < len(n_bins)}
    case = case_of(seed, n_rows, n_bins, categorical=categorical, **rules)
    found = case.from_lines()
    agrees(found, case.slowly(), case)
    for n_threads in (1, 3):
        assert case.from_lines(n_threads) == found
        assert case.from_rows(n_threads=n_threads) == found
        assert case.from_filled_bins(n_threads) == found
        assert case.from_long_codes(n_threads) == found
        assert case.from_codes_by_row(n_threads) == found
        assert case.from_long_codes_by_row(n_threads) == found
        if len(n_bins) <= 4 and not categorical:
            assert case.refined(range(len(n_bins)), n_threads) == found


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.sampled_from([3, 40, 300, 700]),
    n_bins=st.sampled_from([[256], [300, 4096], [5, 900], [4095], [70_000, 2]]),
    rules=rules_of,
)
def test_any_number_of_bins(seed, n_rows, n_bins, rules):
    """Few rows touch few of many bins, many rows nearly all; more candidates than are scored together."""
    case = case_of(seed, n_rows, n_bins, **rules)
    found = case.from_long_codes()
    agrees(found, case.slowly(), case)
    assert case.from_long_codes(3) == found == case.from_long_codes_by_row()


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 200),
    n_bins=st.lists(st.sampled_from([1, 2, 3, 15, 16, 40, 255]), min_size=1, max_size=9),
    rules=rules_of,
)
def test_ranks_features_by_their_cells(seed, n_rows, n_bins, rules):
    case = case_of(seed, n_rows, n_bins, **rules)
    expected = case.slowly_ranked()
    for n_threads in (1, 2, 4):
        assert case.ranked(n_threads=n_threads) == expected
    if expected is not None:
        found = case.refined(expected[1])
        agrees(found, case.slowly(expected[1]), case)
        for n_threads in (2, 3, 4):
            assert case.refined(expected[1], n_threads) == found


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_rows=st.integers(1, 60), bounded=st.booleans())
def test_ranks_some_of_the_features(seed, n_rows, bounded):
    rng = np.random.default_rng(seed)
    case = case_of(seed, n_rows, [20] * 12, bounded=bounded)
    some = np.sort(rng.permutation(12)[: rng.integers(1, 12)])
    expected = case.slowly_ranked(some)
    assert case.ranked(some) == expected == case.ranked([*some, -1, -1], 3)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_rows=st.integers(1, 60), bounded=st.booleans())
def test_among_some_of_the_features(seed, n_rows, bounded):
    rng = np.random.default_rng(seed)
    case = case_of(seed, n_rows, [4] * 20, bounded=bounded, categorical={3, 8})
    some = np.sort(rng.permutation(20)[: rng.integers(1, 20)])
    expected = case.slowly(some)
    found = case.from_rows(some)
    agrees(found, expected, case)
    assert case.from_rows([*some, *[-1] * 9]) == found
    assert case.from_rows([*some, *[-1] * 9], 3) == found


@pytest.mark.parametrize("n_threads", [1, 2, 4])
def test_many_leaves_at_once(n_threads):
    """Each with features of its own, and as when it is alone."""
    case = case_of(0, 300, [6, 30] * 5)
    leaves = np.concatenate([case.leaves] * 4)
    edges = [0, 50, 51, 200, 300]
    leaves["start"], leaves["stop"] = edges[:-1], edges[1:]
    features = np.full((4, 10), -1, np.int32)
    features[0, :4], features[1, 2], features[3] = (
        [1, 4, 7, 9],
        -1,
        range(10),
    )  # leaves 1 and 2 have none at all
    case.leaves = leaves
    alone = []
    for leaf, line in zip(leaves, features, strict=True):
        leaf["total"] = slow.total(case.bins, case.order[leaf["start"] : leaf["stop"]])
        own = Case(case.codes, case.bins, case.mapper, case.rules, case.order[leaf["start"] : leaf["stop"]])
        own.coarse = case.coarse
        own.make_finders()
        alone.append((own, [f for f in line if f >= 0]))
    case.from_rows(features, n_threads)
    for leaf, (own, line) in zip(leaves, alone, strict=True):
        agrees(leaf["split"], own.slowly(line), own)
    case.from_lines(n_threads)
    for leaf, (own, _) in zip(leaves, alone, strict=True):
        agrees(leaf["split"], own.slowly(), own)
    case.ranked(features, n_threads)
    ranked = [leaf["split"]["gain"] for leaf in leaves]
    assert ranked == [(slowly_ranked(case, own, line) or (0.0,))[0] for own, line in alone]
    shortlists = leaves["shortlist"] = [[0, 1, -1, -1], [2, 3, 5, 6], [7, -1, -1, -1], [1, 3, 8, -1]]
    case.coarse_finder.refine(case.ids, n_threads)
    case.count(n_threads)
    for leaf, (own, _), shortlist in zip(leaves, alone, shortlists, strict=True):
        agrees(leaf["split"], own.slowly([f for f in shortlist if f >= 0]), own)


def slowly_ranked(case, own, features):
    """The cells are those of all rows."""
    cells = slow.cells_of(case.codes, case.mapper)
    scores = slow.scores_by_cells(case.codes, case.bins, own.node, features, cells, case.rules, case.same)
    return slow.shortlist(own.node, scores, case.rules)


@pytest.mark.parametrize("n_rows", [127, 128, 129, 600])
@pytest.mark.parametrize("n_bins", [63, 64, 65, 128, 254, 255])
def test_few_rows_and_many(n_rows, n_bins):
    """Small leaves remember which bins they touch, by words of 64."""
    case = case_of(n_rows, n_rows, [n_bins, 3, n_bins])
    found = case.from_lines()
    assert case.from_rows() == found
    agrees(found, case.slowly(), case)


@pytest.mark.parametrize("n_rows", [100, 300, 2500])
@pytest.mark.parametrize("n_features", [127, 128, 129, 300])
def test_many_features(n_rows, n_features):
    """More than are filled together, and blocks of them that do not come out even."""
    case = case_of(n_features, n_rows, [5] * n_features, size=1000)
    found = case.from_lines()
    assert case.from_rows() == found == case.from_rows(n_threads=3)
    every_other = np.arange(0, n_features, 2)
    agrees(case.from_rows(every_other), case.slowly(every_other), case)


# ---- ties -------------------------------------------------------------------------------------------


def found_by_all(case):
    found = case.from_lines()
    agrees(found, case.slowly(), case)
    assert found == case.from_rows() == case.from_rows(n_threads=4) == case.from_lines(4)
    assert found == case.from_long_codes() == case.from_codes_by_row()
    if case.coarse and len(case.features) <= 4:
        assert found == case.refined(case.features) == case.refined(case.features, 3)
    return found


@pytest.mark.parametrize("n_features", [2, 9, 30])
def test_equal_gains_go_to_the_lower_feature(n_features):
    line = np.array([0, 0, 1, 1, 2, 2], np.uint8)
    codes = np.repeat(line[:, None], n_features, axis=1)
    codes[:, 0] = 0  # but not one that does not split
    case = Case(codes, bins_of([1, 1, 0, 0, -1, -1]), slow.mapper_of([3] * n_features), slow.Rules())
    assert found_by_all(case)["feature"] == 1


def test_equal_gains_go_to_the_lower_code():
    codes = np.array([[0], [2], [4]], np.uint8)
    case = Case(codes, bins_of([2, 0, -2]), slow.mapper_of([6]), slow.Rules())
    assert found_by_all(case)["code"] == 0


def test_a_cut_lies_at_a_code_that_holds_rows():
    codes = np.array([[1], [1], [8], [8]], np.uint8)
    case = Case(codes, bins_of([2, 2, -2, -2]), slow.mapper_of([12]), slow.Rules())
    assert found_by_all(case)["code"] == 1


def test_missing_goes_right_where_both_sides_are_as_good():
    codes = np.array([[0], [1], [2]], np.uint8)  # 2 is missing, and adds nothing to either side
    case = Case(codes, bins_of([2, -2, 0], [1, 1, 0]), slow.mapper_of([2]), slow.Rules())
    split = found_by_all(case)
    assert (split["code"], split["missing_left"]) == (0, 0)


@pytest.mark.parametrize("side", ["left", "right"])
def test_missing_goes_where_it_belongs(side):
    gradients = [3, 3, -3, -3, 3] if side == "left" else [3, 3, -3, -3, -3]
    codes = np.array([[0], [0], [1], [1], [2]], np.uint8)
    case = Case(codes, bins_of(gradients), slow.mapper_of([2]), slow.Rules())
    split = found_by_all(case)
    assert (split["code"], split["missing_left"]) == (0, side == "left")


@pytest.mark.parametrize(("n_left", "missing_left"), [(1, 0), (2, 0), (3, 1)])
@pytest.mark.parametrize("categorical", [set(), {0}])
def test_missing_follows_the_larger_child_where_there_is_none(n_left, missing_left, categorical):
    codes = np.array([[0]] * n_left + [[1]] * (4 - n_left), np.uint8)
    bins = bins_of([-2] * n_left + [2] * (4 - n_left))
    case = Case(codes, bins, slow.mapper_of([2], categorical), slow.Rules())
    assert found_by_all(case)["missing_left"] == missing_left


def test_having_a_value_is_a_split():
    codes = np.array([[0], [1], [3], [3]], np.uint8)
    case = Case(codes, bins_of([2, 2, -2, -2]), slow.mapper_of([3]), slow.Rules())
    split = found_by_all(case)
    assert (split["code"], split["missing_left"], split["left"]["count"]) == (2, 0, 2)


def test_categories_are_sorted_by_their_mean():
    codes = np.array([[0], [3], [1], [4], [2]], np.uint8)
    gradients = [-5, -5, 5, 5, 5]
    case = Case(codes, bins_of(gradients), slow.mapper_of([5], {0}), slow.Rules())
    split = found_by_all(case)
    assert split["categories"].tolist() == [0b01001, 0, 0, 0, 0, 0, 0, 0]
    missing = np.where(codes == 3, 5, codes)  # what was category 3 has no value now
    split = found_by_all(Case(missing.astype(np.uint8), case.bins, case.mapper, case.rules))
    assert (split["categories"][0], split["missing_left"]) == (0b00001, 1)


def test_no_order_of_categories_beats_fisher():
    """Without smoothing to speak of, the best cut of the sorted categories is the best of all partings.

    What a cut of six categories gains by chance is subtracted from its gain.
    """
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(6, dtype=np.uint8), 100)[:, None]
    for _ in range(5):
        bins = bins_of(np.repeat(rng.integers(-500, 500, 6), 100))
        case = Case(codes, bins, slow.mapper_of([6], {0}), slow.Rules(variance=300.0))
        best = max(
            slow.children_gain(case.node, left, 0, case.rules)
            for parting in range(1, 63)
            for left in [slow.total(bins, np.flatnonzero([parting >> code & 1 for code in codes[:, 0]]))]
        )
        gain = best - case.rules.score(case.node.total) - 5 * 300 * 2 / np.pi
        assert case.from_lines()["gain"] == pytest.approx(gain)


# ---- rules ------------------------------------------------------------------------------------------


def test_gain_is_what_the_loss_falls_by_twice():
    case = case_of(1, 100, [9, 9, 9], l2=0.75)
    split = case.from_lines()
    rows = case.codes[:, split["feature"]]
    goes_left = np.where(rows == 9, split["missing_left"], rows <= split["code"]).astype(bool)
    g, h = case.bins["gradient"] * 0.5, case.bins["hessian"] * 0.25

    def score(some):
        return g[some].sum() ** 2 / (h[some].sum() + 0.75)

    gain = score(goes_left) + score(~goes_left) - score(slice(None))
    assert split["gain"] == pytest.approx(gain, rel=1e-12)


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_monotone_feature_does_not_split_against_its_sign(sign):
    codes = np.arange(6, dtype=np.uint8)[:, None]
    for slope in (-1, 1):
        rules = slow.Rules(monotone=np.array([sign], np.int8))
        case = Case(codes, bins_of(-slope * np.arange(-5, 6, 2)), slow.mapper_of([6]), rules)
        assert (found_by_all(case)["feature"] == 0) == (slope == sign)


def test_bounds_count_in_the_gain():
    codes = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.uint8)
    bins = bins_of([8, 2, -2, -8])
    rules = slow.Rules(monotone=np.zeros(2, np.int8))
    case = Case(codes, bins, slow.mapper_of([2, 2]), rules, lower=-1.0, upper=1.0)
    split = found_by_all(case)
    assert split["feature"] == 0
    assert split["gain"] == 2 * (2 * 10 - 2)  # each side takes the value at its bound


@pytest.mark.parametrize("bounded", [False, True])
def test_nothing_gained_is_no_split(bounded):
    monotone = np.zeros(1, np.int8) if bounded else None
    codes = np.arange(8, dtype=np.uint8)[:, None]
    for gradients, hessians in (
        ([0] * 8, [1] * 8),
        ([3] * 8, [1] * 8),
        ([5, -5] * 4, [0] * 8),
        ([1, 2] * 4, [1, 2] * 4),
    ):
        case = Case(codes, bins_of(gradients, hessians), slow.mapper_of([8]), slow.Rules(monotone=monotone))
        split = found_by_all(case)
        assert (split["feature"], split["gain"]) == (-1, 0)


def test_a_split_must_gain_more_than_min_gain():
    codes = np.array([[0], [1]], np.uint8)
    for min_gain, splits in ((7.9, True), (8.0, False)):
        case = Case(codes, bins_of([2, -2]), slow.mapper_of([2]), slow.Rules(min_gain=min_gain))
        assert (found_by_all(case)["feature"] == 0) == splits


def test_largest_sums():
    """Gradients up to 2^31 together, and hessians up to 2^32."""
    bins = bins_of([2**30 - 1, -(2**30) + 1, 1], [2**31, 2**31 - 2, 1])
    case = Case(np.array([[0], [1], [2]], np.uint8), bins, slow.mapper_of([2]), slow.Rules(), bits=32)
    assert found_by_all(case)["feature"] == 0
    assert case.ranked() == case.slowly_ranked() == (case.from_lines()["gain"], [0])


# ---- coarse search ----------------------------------------------------------------------------------


def test_where_cells_are_bins_nothing_is_lost():
    """With the same hessians everywhere, what the best cell promises is what the best bin gains."""
    for seed in range(30):
        case = case_of(seed, 80, [15, 9, 2, 12], same=True, size=100, min_samples_leaf=seed % 9 + 1)
        found = case.from_lines()
        ranked = case.ranked()
        assert ranked is None or (ranked[0], case.refined(ranked[1])) == (found["gain"], found)
        assert (ranked is None) == (found["feature"] < 0)


def test_of_equal_features_the_lower_are_short_listed():
    line = np.repeat(np.arange(30, dtype=np.uint8), 2)
    codes = np.repeat(line[:, None], 9, axis=1)
    codes[:, [0, 3]] = 0  # but not those that do not split
    case = Case(codes, bins_of(np.repeat([1, -1], 30)), slow.mapper_of([30] * 9), slow.Rules())
    assert case.ranked() == case.ranked(n_threads=3) == case.slowly_ranked()
    assert case.ranked()[1] == [1, 2, 4, 5]
    assert case.refined([1, 2, 4, 5])["feature"] == 1


@pytest.mark.parametrize(("scale", "best"), [(0.3, {1, 3, 4, 6}), (1.0, {1, 3, 6})])
def test_better_features_push_out_worse_ones(scale, best):
    """Up to four, and none that gains less than four fifths of what the first does."""
    rng = np.random.default_rng(0)
    gradients = np.repeat([4, -4], 50)
    codes = np.empty((100, 8), np.uint8)
    for feature, noise in enumerate([0.5, 0.1, 0.4, 0.0, 0.3, 0.35, 0.2, 0.45]):
        codes[:, feature] = np.where(
            rng.random(100) < scale * noise, rng.integers(0, 40, 100), np.repeat([5, 25], 50)
        )
    case = Case(codes, bins_of(gradients), slow.mapper_of([40] * 8), slow.Rules())
    gain, shortlist = case.ranked()
    assert gain == 1600.0
    assert set(shortlist) == best
    assert (gain, shortlist) == case.slowly_ranked()
