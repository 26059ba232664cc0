import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ranktrees._core.growing.queues import BestLeaves, WholeLayers
from ranktrees._core.support.dtypes import LEAF
from ranktrees.growing import searching
from ranktrees.growing.constraints import Constraints
from ranktrees.growing.grower import TreeGrower
from ranktrees.model.costs import FeatureCosts, Prices
from ranktrees.rows.sampling import FEATURES, stream
from ranktrees.support import parallel
from reference import growing as slow

SEARCHES = pytest.mark.parametrize("split_search", ["full", "coarse_to_fine", "exact"])


def data_of(seed, n_rows, n_bins, *, kind="ties", missing=0.15):
    """Codes, gradients and hessians.

    "ties" are small whole numbers, "plain" are not, "same" have one hessian, "wide" span many powers of ten.
    """
    rng = np.random.default_rng(seed)
    codes = slow.random_codes(rng, n_rows, n_bins, missing)
    if kind == "ties":
        return codes, rng.integers(-3, 4, n_rows).astype(float), rng.integers(0, 3, n_rows).astype(float)
    weights = 10 ** rng.uniform(-7, 7, n_rows) if kind == "wide" else np.ones(n_rows)
    signal = codes[:, 0] * 0.3 - (codes[:, -1] % 3)
    gradients = (rng.normal(size=n_rows) + signal) * weights
    return codes, gradients, np.full(n_rows, 0.3) if kind == "same" else rng.uniform(0.1, 1, n_rows) * weights


# ---- the slow twin ----------------------------------------------------------------------------------


def costs_of(seed, n_features):
    """Whole numbers, 0 among them, the same within groups of a few features."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_features, n_features)
    lowest = np.array([np.flatnonzero(group == own)[0] for own in group])
    return FeatureCosts(rng.integers(0, 4, n_features).astype(float)[lowest], lowest)


def check_against_twin(
    data,
    mapper,
    *,
    split_search,
    monotone=None,
    rows=None,
    max_features=None,
    cost_weight=None,
    cost_rule="worth",
    **options,
):
    codes, gradients, hessians = data
    prices, priced = None, {}
    if cost_weight is not None:
        costs = costs_of(len(codes), codes.shape[1])
        prices = Prices(costs, cost_weight, np.zeros(codes.shape[1], bool), cost_rule)
        priced = {"rates": cost_weight * costs.costs, "ranks": cost_rule == "rank", "groups": costs.groups}
    grown, rounded = slow.grown_on(
        codes,
        mapper,
        gradients,
        hessians,
        split_search=split_search,
        monotone=monotone,
        rows=rows,
        max_features=max_features,
        prices=prices,
        seed=5,
        tree=7,
        **options,
    )
    names = ("l2_regularization", "min_gain", "min_samples_leaf", "min_hessian")
    rules = slow.Rules(
        rounded.gradient_unit,
        rounded.hessian_unit,
        *(options.get(name, float(name == "min_samples_leaf")) for name in names),
        rounded.sampled,
        monotone,
        options.get("missing", "learned"),
    )
    features = np.arange(codes.shape[1])
    draws = None
    if max_features:
        constraints = Constraints(features, len(features), max_features=max_features)
        draws = slow.draws_of(constraints, (5, stream(7, FEATURES)))
    nodes = slow.grow(
        codes,
        rounded,
        np.arange(len(codes)) if rows is None else rows,
        mapper,
        rules,
        max_leaf_nodes=options.get("max_leaf_nodes"),
        max_depth=options.get("max_depth"),
        interactions=options.get("interactions"),
        coarse=split_search == "coarse_to_fine",
        draws=draws,
        **priced,
    )
    slow.agrees(grown, nodes, codes, mapper)
    if prices is not None:
        assert prices.rates.tolist() == priced["rates"].tolist()


def signs_of(seed, n_features, categories=()):
    signs = np.random.default_rng(seed).integers(-1, 2, n_features).astype(np.int8)
    signs[list(categories)] = 0
    return signs


any_tree = {
    "max_leaf_nodes": st.sampled_from([None, 2, 3, 9]),
    "max_depth": st.sampled_from([None, 1, 3]),
    "min_samples_leaf": st.integers(1, 5),
    "l2_regularization": st.sampled_from([0.0, 0.5, 10.0]),
    "min_gain": st.sampled_from([0.0, 1.0]),
    "min_hessian": st.sampled_from([0.0, 2.5]),
    "max_features": st.sampled_from([None, None, 1, 3]),
    "gradient_sampling": st.sampled_from([None, None, 0.7, 1.5, 6]),
    "missing": st.sampled_from(["learned", "left", "right", "three_way"]),
    "cost_weight": st.sampled_from([None, None, 0.01, 0.1, 1.0]),
    "cost_rule": st.sampled_from(["worth", "rank"]),
}


@settings(max_examples=150, deadline=None)
@given(
    split_search=st.sampled_from(["full", "exact"]),
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 60),
    n_bins=st.lists(st.integers(1, 7), min_size=1, max_size=5),
    kind=st.sampled_from(["ties", "plain", "same", "wide"]),
    rules=st.fixed_dictionaries(any_tree),
    categorical=st.booleans(),
    bounded=st.booleans(),
    sampled=st.booleans(),
)
@example("full", 17706, 50, [2, 1, 2, 2, 1], "ties", {"gradient_sampling": 1}, False, True, False)
@example(
    "full", 0, 20, [1, 1, 1], "plain", {"missing": "three_way", "cost_weight": 0.1, "cost_rule": "rank"},
    False, False, False,
)  # fmt: skip
def test_grows_the_tree_of_the_slow_twin(
    split_search, seed, n_rows, n_bins, kind, rules, categorical, bounded, sampled
):
    categories = {0} if categorical else set()
    check_against_twin(
        data_of(seed, n_rows, n_bins, kind=kind),
        slow.mapper_of(n_bins, categories),
        split_search=split_search,
        monotone=signs_of(seed, len(n_bins), categories) if bounded else None,
        rows=np.arange(0, n_rows, 2) if sampled else None,
        **rules,
    )


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 80),
    n_bins=st.lists(st.integers(1, 60), min_size=1, max_size=9),
    kind=st.sampled_from(["ties", "plain", "same", "wide"]),
    rules=st.fixed_dictionaries(any_tree | {"missing": st.sampled_from(["learned", "left", "right"])}),
    bounded=st.booleans(),
    sampled=st.booleans(),
)
@example(250562888, 69, [14, 14, 8, 2, 10], "plain", {"gradient_sampling": 1}, False, False)
def test_grows_the_tree_of_the_slow_twin_by_cells(seed, n_rows, n_bins, kind, rules, bounded, sampled):
    check_against_twin(
        data_of(seed, n_rows, n_bins, kind=kind),
        slow.mapper_of(n_bins),
        split_search="coarse_to_fine",
        monotone=signs_of(seed, len(n_bins)) if bounded else None,
        rows=np.arange(0, n_rows, 2) if sampled else None,
        **rules,
    )


@pytest.mark.parametrize("missing", ["learned", "left", "right", "three_way"])
@pytest.mark.parametrize("bounded", [False, True])
def test_grows_the_tree_of_the_slow_twin_where_a_leaf_has_many_values(missing, bounded):
    """More than are scored together."""
    n_bins = [600, 3]
    check_against_twin(
        data_of(1, 700, n_bins, kind="plain", missing=0.3),
        slow.mapper_of(n_bins),
        split_search="exact",
        monotone=np.array([-1, 0], np.int8) if bounded else None,
        missing=missing,
        max_leaf_nodes=4,
    )


@SEARCHES
@pytest.mark.parametrize("max_leaf_nodes", [None, 9])
def test_grows_the_tree_of_the_slow_twin_within_sets_of_features(split_search, max_leaf_nodes):
    n_bins = [40, 30, 20, 7, 25, 3]
    check_against_twin(
        data_of(0, 150, n_bins, kind="plain"),
        slow.mapper_of(n_bins),
        split_search=split_search,
        interactions=[{0, 1}, {1, 2, 3}, {4, 5}],
        max_leaf_nodes=max_leaf_nodes,
    )


@SEARCHES
def test_quiet_rows_without_a_value_go_where_they_would(split_search):
    codes = np.repeat([0, 1, 2], [20, 4, 6])[:, None].astype(np.uint8)
    gradients, hessians = np.repeat([[1.0, -1.0, 0.0], [1.0, 1.0, 0.0]], [20, 4, 6], axis=1)
    grower = slow.grower_of(codes, slow.mapper_of([2]), split_search=split_search, max_leaf_nodes=2)
    for apart in (True, False):
        grower.search.sets_apart = apart
        grown = grower.grow(gradients, hessians * np.linspace(1, 2, 30))
        assert grown.leaves["split"]["missing_left"][0] == 0
        assert len(slow.rows_of(grown, grown.leaves[1])) == 20


@SEARCHES
@pytest.mark.parametrize("max_features", [None, 3])
@pytest.mark.parametrize(
    ("min_samples_leaf", "missing"), [(1, "learned"), (40, "learned"), (40, "left"), (9, "right")]
)
def test_rows_set_apart_do_not_show(split_search, max_features, min_samples_leaf, missing):
    n_bins = [255, 40, 9, 100, 20, 30]
    codes, gradients, hessians = data_of(0, 3000, n_bins, kind="plain")
    gradients, hessians = gradients**5, hessians**5  # a few rows are much larger than the others
    rules = {"max_features": max_features, "min_samples_leaf": min_samples_leaf, "gradient_sampling": 2}
    rules["missing"] = missing
    trees, n_apart = [], []
    for apart in (True, False):
        grower = slow.grower_of(
            codes, slow.mapper_of(n_bins), split_search=split_search, max_leaf_nodes=30, **rules
        )
        grower.search.sets_apart = apart
        for tree in range(3):
            grown = grower.grow(gradients, hessians, tree=tree)
            trees.append(slow.tree_bytes(grown, grower.mapper))
            n_apart.append(3000 - grower.rows.n_loud if apart else (grower.rows.sums == 0).sum())
    assert trees[:3] == trees[3:]
    assert min(n_apart) > 1000


@pytest.mark.parametrize("sampling", [None, 2])
def test_one_hessian_may_do_for_all(sampling):
    n_bins = [40, 9, 100]
    codes, gradients, _ = data_of(0, 3000, n_bins, kind="plain")
    mapper = slow.mapper_of(n_bins)
    for hessian in (1.0, 0.3):
        grower = slow.grower_of(codes, mapper, max_leaf_nodes=30, gradient_sampling=sampling)
        trees = {
            slow.tree_bytes(grower.grow(gradients, np.full(n, hessian), seed=3), mapper) for n in (1, 3000)
        }
        assert len(trees) == 1


@pytest.mark.parametrize("seed", range(20))
def test_a_promise_that_is_not_kept_leaves_the_turn_to_the_next(seed):
    """Cells know nothing of bounds, nor how many rows a child has: some leaves have no split after all."""
    n_bins = [40] * 5
    codes, gradients, _ = data_of(seed, 200, n_bins, kind="plain")
    hessians = 10 ** np.random.default_rng(seed).uniform(-2, 2, 200)
    check_against_twin(
        (codes, gradients * 2, hessians),
        slow.mapper_of(n_bins),
        split_search="coarse_to_fine",
        monotone=np.array([1, -1, 1, -1, 1], np.int8),
        max_leaf_nodes=6,
        min_samples_leaf=15 if seed % 2 else 1,
    )


@pytest.mark.parametrize("max_leaf_nodes", [None, 20])
@pytest.mark.parametrize("min_samples_leaf", [1, 6])
def test_where_bins_are_few_the_coarse_search_is_the_full_one(max_leaf_nodes, min_samples_leaf):
    """A cell is a bin, all features are short-listed, and hessians count rows: nothing is lost."""
    n_bins = [15, 7, 12, 2]
    codes, gradients, hessians = data_of(3, 400, n_bins, kind="same")
    mapper = slow.mapper_of(n_bins)
    trees = [
        slow.tree_bytes(
            slow.grown_on(
                codes, mapper, gradients, hessians,
                split_search=split_search, max_leaf_nodes=max_leaf_nodes, min_samples_leaf=min_samples_leaf,
            )[0],
            mapper,
        )
        for split_search in ("full", "coarse_to_fine")
    ]  # fmt: skip
    assert trees[0] == trees[1]


# ---- what must not show -----------------------------------------------------------------------------

POLICIES = {
    "as set": {},
    "no lines": {"LINES_BYTES": 0},
    "lines of every leaf": {"FEW_ROWS": 1},
    "one line": {"FEW_ROWS": 1, "LINES_BYTES": 1},
    "three lines": {"FEW_ROWS": 1, "LINES_BYTES": 3},
    "lines of some leaves": {"FEW_ROWS": 40},
    "a line of the root": {"FEW_ROWS": 200},
    "all from rows": {"FEW_ROWS": 10**9},
    "every thread": {"VALUES_PER_THREAD": 1},
    "every thread and lines of every leaf": {"VALUES_PER_THREAD": 1, "FEW_ROWS": 1},
    "every thread and two lines": {"VALUES_PER_THREAD": 1, "FEW_ROWS": 40, "LINES_BYTES": 2},
    "every thread, from rows": {"VALUES_PER_THREAD": 1, "FEW_ROWS": 10**9},
}


def set_policy(patch, policy, mapper, kind, split_search):
    """LINES_BYTES counts lines."""
    cells = 16 * mapper.n_features if split_search == "coarse_to_fine" else int(mapper.offsets[-1])
    lanes = 1 if kind == "same" or split_search == "coarse_to_fine" else 2
    for name, value in POLICIES[policy].items():
        if name == "VALUES_PER_THREAD":
            patch.setattr(parallel, name, value)
        else:
            patch.setattr(searching, name, value * 8 * cells * lanes if name == "LINES_BYTES" else value)
            if name == "FEW_ROWS":
                patch.setattr(searching.FullSearch, "few_rows", value)


@SEARCHES
@pytest.mark.parametrize(
    ("max_leaf_nodes", "kind", "bounded"),
    [
        (None, "ties", False),
        (31, "wide", False),
        (31, "ties", True),
        (None, "same", True),
        (31, "same", False),
    ],
)
def test_neither_policy_nor_threads_show_in_the_tree(split_search, max_leaf_nodes, kind, bounded):
    n_bins = [9, 255, 40, 3, 17, 1, 64, 5, 2, 30, 8, 8, 8, 8, 8, 8, 8, 100, 4]
    codes, gradients, hessians = data_of(3, 250, n_bins, kind=kind)
    mapper = slow.mapper_of(n_bins, {2, 3} if split_search != "coarse_to_fine" else ())
    monotone = np.zeros(len(n_bins), np.int8)
    monotone[[0, 4]] = 1, -1
    seen = {}
    for policy in POLICIES if split_search != "exact" else ("as set", "every thread"):
        with pytest.MonkeyPatch.context() as patch:
            set_policy(patch, policy, mapper, kind, split_search)
            for n_threads in {"every thread": (2, 3, 4)}.get(policy, (2,)):
                grower = slow.grower_of(
                    codes,
                    mapper,
                    n_threads=n_threads,
                    split_search=split_search,
                    max_leaf_nodes=max_leaf_nodes,
                    min_samples_leaf=3,
                    l2_regularization=0.25,
                    monotone=monotone if bounded else None,
                )
                grown = grower.grow(gradients, hessians)
                seen[policy, n_threads] = slow.tree_bytes(grown, mapper)
    assert len(grown.leaves) > 40
    assert len(set(seen.values())) == 1


@SEARCHES
@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 400),
    n_bins=st.lists(st.sampled_from([1, 2, 3, 20, 255]), min_size=1, max_size=20),
    kind=st.sampled_from(["ties", "same"]),
    policy=st.sampled_from(list(POLICIES)),
    max_leaf_nodes=st.sampled_from([None, 4, 40]),
    max_depth=st.sampled_from([None, 2]),
    max_features=st.sampled_from([None, None, 2]),
    missing=st.sampled_from(["learned", "left", "right", "three_way"]),
    few_rows=st.booleans(),
    cost_weight=st.sampled_from([None, 0.01, 0.1]),
    cost_rule=st.sampled_from(["worth", "rank"]),
)
def test_no_policy_shows_in_any_tree(
    split_search,
    seed,
    n_rows,
    n_bins,
    kind,
    policy,
    max_leaf_nodes,
    max_depth,
    max_features,
    missing,
    few_rows,
    cost_weight,
    cost_rule,
):
    missing = "learned" if split_search == "coarse_to_fine" and missing == "three_way" else missing
    codes, gradients, hessians = data_of(seed, n_rows, n_bins, kind=kind)
    mapper = slow.mapper_of(n_bins, {0} if split_search != "coarse_to_fine" else ())
    drawn = np.random.default_rng(seed).random(n_rows) < 0.6
    rows = np.flatnonzero(drawn).astype(np.uint32) if few_rows and drawn.any() else None
    trees = []
    for name in ("as set", policy):
        prices = None
        if cost_weight is not None:
            costs = costs_of(seed, len(n_bins))
            prices = Prices(costs, cost_weight, np.zeros(len(n_bins), bool), cost_rule)
        with pytest.MonkeyPatch.context() as patch:
            set_policy(patch, name, mapper, kind, split_search)
            grower = slow.grower_of(
                codes,
                mapper,
                n_threads=3,
                split_search=split_search,
                max_leaf_nodes=max_leaf_nodes,
                max_depth=max_depth,
                max_features=max_features,
                missing=missing,
                min_samples_leaf=2,
                prices=prices,
            )
            grown = grower.grow(gradients, hessians, rows, seed=1)
        trees.append(slow.tree_bytes(grown, mapper))
    assert trees[0] == trees[1]


@SEARCHES
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(2, 700),
    n_bins=st.lists(st.sampled_from([1, 2, 5, 30, 255]), min_size=1, max_size=20),
    kind=st.sampled_from(["ties", "plain", "same", "wide"]),
    policy=st.sampled_from(list(POLICIES)),
    n_threads=st.integers(1, 4),
    bounded=st.booleans(),
    rules=st.fixed_dictionaries(
        {
            "max_leaf_nodes": st.sampled_from([None, 2, 9, 30, 100]),
            "max_depth": st.sampled_from([None, None, 4]),
            "min_samples_leaf": st.sampled_from([1, 2, 7, 30]),
            "l2_regularization": st.sampled_from([0.0, 1.0]),
            "min_hessian": st.sampled_from([0.0, 2.5]),
            "max_features": st.sampled_from([None, 1, 3, -1]),
            "gradient_sampling": st.sampled_from([None, 0.7, 2]),
            "missing": st.sampled_from(["learned", "left", "right", "three_way"]),
        }
    ),
)
def test_in_one_call_the_same_tree_grows_as_step_by_step(
    split_search, seed, n_rows, n_bins, kind, policy, n_threads, bounded, rules
):
    codes, gradients, hessians = data_of(seed, n_rows, n_bins, kind=kind)
    if kind == "plain":
        gradients, hessians = gradients**5, hessians**5  # some rows are much larger: others are set apart
    mapper = slow.mapper_of(n_bins, {0} if split_search != "coarse_to_fine" else ())
    monotone = signs_of(seed, len(n_bins), {0}) if bounded else None
    if rules["max_features"] == -1:
        rules["max_features"] = len(n_bins) - 1 or None
    if split_search == "coarse_to_fine" and rules["missing"] == "three_way":
        rules["missing"] = "learned"
    with pytest.MonkeyPatch.context() as patch:
        set_policy(patch, policy, mapper, kind, split_search)
        options = {"n_threads": n_threads, "split_search": split_search, "monotone": monotone, **rules}
        at_once, by_steps = (slow.grower_of(codes, mapper, **options) for _ in range(2))
        by_steps.growth = None
        for tree in range(2):
            grown = [grower.grow(gradients, hessians, seed=1, tree=tree) for grower in (at_once, by_steps)]
            trees = [slow.tree_bytes(own, mapper) for own in grown]
            assert trees[0] == trees[1]
            have_line = [own.leaves["line"] >= 0 for own in grown]  # which nothing has given back
            assert have_line[0].tolist() == have_line[1].tolist()
            lines = grown[0].leaves["line"][have_line[0]]
            assert len(set(lines)) == len(lines)  # no two have the same
            if at_once.search.has_lines:  # and none is lost; the last is only ever lent
                assert at_once.search.builder.n_free == len(at_once.search.lines) - 1 - len(lines)


@pytest.mark.parametrize("split_search", ["full", "coarse_to_fine"])
@pytest.mark.parametrize("max_features", [1, 2, 3])
def test_grows_the_tree_of_the_slow_twin_however_many_features_are_drawn(split_search, max_features):
    n_bins = [30, 20, 40, 25]
    check_against_twin(
        data_of(max_features, 300, n_bins, kind="plain"),
        slow.mapper_of(n_bins),
        split_search=split_search,
        max_features=max_features,
        max_leaf_nodes=20,
    )


@pytest.mark.parametrize("seed", range(5))
def test_splits_in_three_are_the_same_by_lines_and_by_rows(seed):
    n_bins = [30, 20, 5]
    codes, gradients, hessians = data_of(seed, 400, n_bins, kind="plain", missing=0.3)
    mapper, trees = slow.mapper_of(n_bins), []
    for few_rows in (1, 10**9):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(searching.FullSearch, "few_rows", few_rows)
            grower = slow.grower_of(codes, mapper, missing="three_way", max_leaf_nodes=20)
            trees.append(slow.tree_bytes(grower.grow(gradients, hessians), mapper))
    assert trees[0] == trees[1]


def test_a_leaf_that_turns_out_to_have_no_split_keeps_no_line():
    rng = np.random.default_rng(2)
    codes = slow.random_codes(rng, 60, [9, 5])
    gradients, hessians = rng.normal(size=60) ** 9, rng.uniform(0.1, 1, 60) ** 9
    for in_one_call in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(searching.FullSearch, "few_rows", 1)
            grower = slow.grower_of(codes, slow.mapper_of([9, 5]), max_leaf_nodes=20, min_samples_leaf=7)
            grower.growth = grower.growth if in_one_call else None
            leaves = grower.grow(gradients, hessians).leaves
        assert (leaves["line"][leaves["split"]["feature"] < 0] < 0).all()


@pytest.mark.parametrize(
    ("options", "at_once"),
    [
        ({}, True),
        ({"split_search": "coarse_to_fine", "max_features": 2}, True),
        ({"max_features": 2}, True),
        ({"missing": "left"}, True),
        ({"missing": "left", "max_features": 2}, False),
        ({"interactions": [{0, 1}, {2}]}, False),
        ({"max_leaf_nodes": None}, True),
        ({"max_leaf_nodes": 1200}, True),
        ({"split_search": "exact"}, True),
    ],
)
def test_a_tree_grows_in_one_call_where_nothing_else_has_a_say(options, at_once):
    codes, gradients, hessians = data_of(0, 1300, [30, 20, 10], kind="plain")
    mapper, options = slow.mapper_of([30, 20, 10]), {"max_leaf_nodes": 20, **options}
    with pytest.MonkeyPatch.context() as patch:
        calls = []
        step = TreeGrower._split
        patch.setattr(TreeGrower, "_split", lambda *args: calls.append(1) or step(*args))
        slow.grower_of(codes, mapper, **options).grow(gradients, hessians)
    assert (not calls) == at_once


@SEARCHES
@pytest.mark.parametrize("kind", ["ties", "wide", "same"])
def test_order_of_rows_does_not_matter(split_search, kind):
    n_bins = [12, 255, 3, 30, 60, 2]
    codes, gradients, hessians = data_of(5, 900, n_bins, kind=kind)
    mapper = slow.mapper_of(n_bins, {3} if split_search != "coarse_to_fine" else ())
    shuffled = np.random.default_rng(0).permutation(900)
    trees = []
    for rows in (np.arange(900), shuffled):
        grower = slow.grower_of(codes[rows], mapper, max_leaf_nodes=20, split_search=split_search)
        grown = grower.grow(gradients[rows], hessians[rows])
        nodes, bit_sets = grown.tree(grown.values, mapper)
        trees.append(nodes.tobytes() + bit_sets.tobytes())
    assert trees[0] == trees[1]


@SEARCHES
def test_one_tree_does_not_show_in_another(split_search):
    codes, gradients, hessians = data_of(0, 700, [20, 30], kind="plain")
    mapper = slow.mapper_of([20, 30])
    grower = slow.grower_of(codes, mapper, max_leaf_nodes=8, split_search=split_search)
    first = grower.grow(gradients, hessians)
    before, values = slow.tree_bytes(first, mapper), first.values
    kept = values.tobytes()
    grower.grow(gradients, np.ones(700))  # lines of another width
    grower.grow(gradients, hessians, np.arange(600, dtype=np.uint32))
    assert kept == values.tobytes()
    assert slow.tree_bytes(grower.grow(gradients, hessians), mapper) == before


# ---- what a tree is like ----------------------------------------------------------------------------


@SEARCHES
@pytest.mark.parametrize("max_leaf_nodes", [None, 2, 13])
@pytest.mark.parametrize("max_depth", [None, 1, 4])
@pytest.mark.parametrize("min_samples_leaf", [1, 7, 200, 1500])
def test_limits_are_kept(split_search, max_leaf_nodes, max_depth, min_samples_leaf):
    n_bins = [20, 255, 5]
    codes, gradients, hessians = data_of(1, 700, n_bins, kind="plain")
    mapper = slow.mapper_of(n_bins)
    grower = slow.grower_of(
        codes,
        mapper,
        split_search=split_search,
        max_leaf_nodes=max_leaf_nodes,
        max_depth=max_depth,
        min_samples_leaf=min_samples_leaf,
        l2_regularization=0.5,
    )
    grown = grower.grow(gradients, hessians)
    leaves = grown.leaves[grown.is_leaf]
    assert len(leaves) <= (max_leaf_nodes or 700)
    assert leaves["depth"].max() <= (700 if max_depth is None else max_depth)
    if len(leaves) > 1:
        assert leaves["total"]["count"].min() >= min_samples_leaf
    assert leaves["total"]["count"].sum() == 700
    assert sorted(grown.order.tolist()) == list(range(700))
    for leaf in leaves:
        inside = slow.rows_of(grown, leaf)
        expected = -gradients[inside].sum() / (hessians[inside].sum() + 0.5)
        assert leaf["value"] == pytest.approx(expected, rel=1e-6, abs=1e-8)
    # as many leaves as were asked for, where there are splits for them
    if max_leaf_nodes == 13 and max_depth is None and min_samples_leaf == 1:
        assert len(leaves) == 13


def test_layers_are_whole_without_a_limit():
    codes, gradients, hessians = data_of(1, 300, [255, 255], kind="plain", missing=0)
    grown, _ = slow.grown_on(codes, slow.mapper_of([255, 255]), gradients, hessians, max_depth=4)
    assert (np.diff(grown.leaves["depth"]) >= 0).all()
    assert grown.leaves["depth"].max() == 4


@SEARCHES
@pytest.mark.parametrize("max_leaf_nodes", [None, 25])
def test_every_row_ends_where_its_codes_lead(split_search, max_leaf_nodes):
    n_bins = [20, 255, 5, 33]
    codes, gradients, hessians = data_of(2, 800, n_bins, kind="plain")
    mapper = slow.mapper_of(n_bins, {3} if split_search != "coarse_to_fine" else ())
    sampled = np.arange(0, 800, 3, dtype=np.uint32)
    grower = slow.grower_of(codes, mapper, max_leaf_nodes=max_leaf_nodes, split_search=split_search)
    grown = grower.grow(gradients, hessians, sampled)
    assert sorted(grown.order.tolist()) == sampled.tolist()
    walked = np.array([slow.walk(grown, mapper.missing_codes, line) for line in codes])
    for i in np.flatnonzero(grown.is_leaf):
        leaf = grown.leaves[i]
        assert (walked[slow.rows_of(grown, leaf)] == i).all()


def test_finished_tree_says_what_was_grown():
    n_bins = [20, 40, 6]
    codes, gradients, hessians = data_of(4, 500, n_bins, kind="plain")
    mapper = slow.mapper_of(n_bins, {2})
    grown, _ = slow.grown_on(codes, mapper, gradients, hessians, max_leaf_nodes=30)
    nodes, bit_sets = grown.tree(0.5 * grown.values, mapper)
    assert (nodes["value"] == 0.5 * grown.leaves["value"]).all()
    assert (nodes["count"] == grown.leaves["total"]["count"]).all()
    assert ((nodes["feature"] < 0) == grown.is_leaf).all()
    assert (nodes["gain"][grown.is_leaf] == 0).all()
    assert (nodes["gain"][~grown.is_leaf] > 0).all()
    categorical = nodes["categories"] >= 0
    assert nodes["categories"][categorical].tolist() == list(range(len(bit_sets)))
    assert (nodes["feature"][categorical] == 2).all()
    assert categorical.any()
    numeric = ~grown.is_leaf & ~categorical
    for node, leaf in zip(nodes[numeric], grown.leaves[numeric], strict=True):
        feature, code = leaf["split"]["feature"], leaf["split"]["code"]
        expected = np.inf if code == n_bins[feature] - 1 else code + 0.5
        assert node["cut"] == expected


# ---- odd data ---------------------------------------------------------------------------------------


def test_single_row_is_a_leaf():
    grown, _ = slow.grown_on(np.zeros((1, 2), np.uint8), slow.mapper_of([1, 1]), [3.0], [2.0])
    assert len(grown.leaves) == 1
    assert grown.values.tolist() == [-1.5]


def test_constant_and_empty_features_do_not_split():
    codes = np.zeros((50, 3), np.uint8)
    codes[:, 1] = 1  # the missing code of a feature with one bin
    grown, _ = slow.grown_on(codes, slow.mapper_of([1, 1, 5]), np.arange(50.0))
    assert len(grown.leaves) == 1


def test_missing_or_not_is_a_split():
    codes = np.zeros((50, 1), np.uint8)
    codes[:20] = 1
    for mapper in (slow.mapper_of([1]), slow.mapper_of([1], {0})):
        grown, _ = slow.grown_on(codes, mapper, np.arange(50.0) >= 20)
        assert len(grown.leaves) == 3
        assert sorted(grown.leaves["total"]["count"].tolist()) == [20, 30, 50]


@SEARCHES
@pytest.mark.parametrize("max_features", [None, 2])
@pytest.mark.parametrize("min_samples_leaf", [1, 3])
@pytest.mark.parametrize("n_rows", [65, 200])
def test_full_depth_at_every_size_of_a_leaf(split_search, max_features, min_samples_leaf, n_rows):
    n_bins = [200, 3, 40, 1, 90]
    data = data_of(n_rows, n_rows, n_bins, kind="plain")
    check_against_twin(
        data,
        slow.mapper_of(n_bins),
        split_search=split_search,
        max_features=max_features,
        min_samples_leaf=min_samples_leaf,
    )


@SEARCHES
@pytest.mark.parametrize("max_leaf_nodes", [None, 50])
@pytest.mark.parametrize("max_features", [None, 2])
def test_a_leaf_whose_rows_want_the_same_is_not_split(split_search, max_leaf_nodes, max_features):
    rng = np.random.default_rng(0)
    n_bins = [5, 30, 40]
    codes = slow.random_codes(rng, 500, n_bins)
    weights = 10 ** rng.uniform(-3, 3, 500) * (rng.random(500) < 0.9)
    wanted = (codes[:, 0] // 2) * 0.3 - 0.7  # three values, each of many rows of uneven weight
    grown, _ = slow.grown_on(
        codes,
        slow.mapper_of(n_bins),
        -wanted * weights,
        weights,
        split_search=split_search,
        max_leaf_nodes=max_leaf_nodes,
        max_features=max_features,
    )
    leaves = grown.leaves[grown.is_leaf]
    inside = [slow.rows_of(grown, leaf) for leaf in leaves]
    assert len(leaves) >= 3
    for node in grown.leaves[~grown.is_leaf]:
        rows = slow.rows_of(grown, node)
        assert len(np.unique(wanted[rows][weights[rows] > 0])) > 1
    assert sum(map(len, inside)) == 500


@pytest.mark.parametrize("l2", [0.0, 1.0])
def test_nothing_to_learn_is_a_leaf(l2):
    codes, gradients, hessians = data_of(0, 100, [20, 30])
    mapper = slow.mapper_of([20, 30])
    for g, h in ((0 * gradients, hessians), (0 * gradients, 0 * hessians), (np.ones(100), 0 * hessians)):
        grown, _ = slow.grown_on(codes, mapper, g, h, l2_regularization=l2)
        assert len(grown.leaves) == 1
        assert np.isfinite(grown.values).all()


@pytest.mark.parametrize("size", [1e-250, 1e-40, 1e40, 1e120])
def test_scale_of_the_loss_does_not_change_the_splits(size):
    codes, gradients, hessians = data_of(6, 300, [20, 30], kind="plain")
    size = 2.0 ** np.round(np.log2(size))
    mapper = slow.mapper_of([20, 30])
    plain, _ = slow.grown_on(codes, mapper, gradients, hessians, max_leaf_nodes=15)
    scaled, _ = slow.grown_on(codes, mapper, gradients * size, hessians * size, max_leaf_nodes=15)
    for name in ("left", "start", "stop"):
        assert plain.leaves[name].tolist() == scaled.leaves[name].tolist()
    assert np.allclose(plain.values, scaled.values, rtol=1e-9)


@pytest.mark.parametrize("scale", [1e-200, 1e-160, 1e110, 1e140])
def test_gains_stay_finite(scale):
    """A gain that overflows on its way would be infinite in the tree; nothing reads such a model."""
    codes, gradients, hessians = data_of(6, 300, [20, 30], kind="plain")
    mapper = slow.mapper_of([20, 30])
    for g, h in ((gradients * scale, hessians), (gradients, hessians * scale), (gradients * scale,) * 2):
        grown, _ = slow.grown_on(codes, mapper, g, np.abs(h), max_leaf_nodes=15)
        assert np.isfinite(grown.leaves["split"]["gain"][~grown.is_leaf]).all()


def test_more_leaves_than_room_was_made_for():
    codes = np.arange(6000, dtype=np.int64)
    codes = np.column_stack([codes % 250, codes // 250]).astype(np.uint8)
    gradients = np.random.default_rng(0).normal(size=6000)
    mapper = slow.mapper_of([250, 24])
    grown, _ = slow.grown_on(codes, mapper, gradients)
    assert grown.is_leaf.sum() == 6000
    assert grown.leaves.dtype == LEAF
    assert np.allclose(
        grown.values[grown.is_leaf], -gradients[grown.order[grown.leaves["start"][grown.is_leaf]]]
    )


# ---- queues -----------------------------------------------------------------------------------------


def gains_of(*gains):
    return np.array(gains)


def best_leaves(gains, one_by_one=False):
    queue = BestLeaves(gains)
    queue.begin(one_by_one)
    return queue


def test_best_leaves_first_and_the_oldest_of_equals():
    queue = best_leaves(gains_of(1.0, 3.0, 2.0, 3.0), one_by_one=True)
    queue.push(np.array([0, 3], np.int32))
    queue.push(np.array([1, 2], np.int32))
    assert [queue.pop(9).tolist() for _ in range(5)] == [[1], [3], [2], [0], []]


def best_leaves_after(ratios, gains, one_by_one=False):
    """A queue of leaves 1, 2, ... after splits of others that promised so much of what their parent did."""
    queue = best_leaves(np.array([1.0, *gains, 0.0, *ratios]), one_by_one)
    none = len(gains) + 1
    for leaf in range(none + 1, none + 1 + len(ratios)):
        queue.push(np.array([leaf, none], np.int32), np.array([0], np.int32))
        queue.push(np.array([none, none], np.int32), np.array([leaf], np.int32))
    queue.renew(np.arange(1, none, dtype=np.int32))
    return queue


def test_leaves_that_promise_more_than_children_of_the_best_are_handed_out_together():
    queue = best_leaves_after([0.25, 0.75], [7.0, 4.9, 10.0, 5.0])
    assert queue.pop(4).tolist() == [3, 1, 4]
    assert queue.pop(4).tolist() == [2]


@pytest.mark.parametrize("n_generations", range(1, 5))
def test_leaves_handed_out_together_come_before_all_descendants_of_better_ones(n_generations):
    """Each leaf is split in any case, even where so many generations of each better one promise more."""
    n_before = 2 ** (n_generations + 1) - 1
    for limit, n in [(5 * n_before, 5), (5 * n_before + 1, 6)]:
        queue = best_leaves_after([0.5], [1.0] * 5 + [0.5**n_generations * 0.99])
        assert queue.pop(limit).tolist() == list(range(1, n + 1))


def test_leaves_are_handed_out_one_by_one_where_children_promise_as_much():
    queue = best_leaves_after([1.0], [5.0, 4.0, 3.0])
    assert [queue.pop(99).tolist() for _ in range(4)] == [[1], [2], [3], []]


def test_leaves_that_are_put_back_tell_nothing_of_children():
    queue = best_leaves_after([0.5], [8.0, 5.0, 3.0])
    for _ in range(2):
        leaves = queue.pop(3)
        assert leaves.tolist() == [1, 2]
        queue.put_back(leaves)


@settings(max_examples=50, deadline=None)
@given(
    gains=st.lists(st.sampled_from([0.0, 1.0, 2.0, 2.5, 4.5, np.inf]), min_size=1, max_size=300),
    n_pushes=st.integers(1, 5),
    limits=st.lists(st.integers(0, 90), max_size=30),
    ratios=st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 1.5]), max_size=3),
    one_by_one=st.booleans(),
)
def test_best_leaves_are_those_of_a_sorted_list(gains, n_pushes, limits, ratios, one_by_one):
    queue, waiting = best_leaves_after(ratios, gains, one_by_one), []
    queue.renew(np.empty(0, np.int32))
    for ids in np.array_split(np.arange(1, len(gains) + 1, dtype=np.int32), n_pushes):
        queue.put_back(ids)
        waiting = sorted(waiting + [(-gains[i - 1], i) for i in ids.tolist() if gains[i - 1]])
    for limit in limits:
        promises = [-promise for promise, _ in waiting]
        n = min(limit, len(waiting), 1 if one_by_one else slow.n_together(promises, limit, ratios))
        assert queue.give_up(limit).tolist() == [i for _, i in waiting[limit:]]
        assert queue.pop(limit).tolist() == [i for _, i in waiting[:n]]
        waiting = waiting[n:]
    queue.renew(np.array([1], np.int32))
    assert queue.pop(3).tolist() == ([1] if gains[0] else [])
    queue.push(np.arange(len(gains), dtype=np.int32))
    queue.begin(one_by_one)
    assert queue.pop(3).tolist() == []


def test_best_leaves_keep_to_the_limit():
    queue = best_leaves(gains_of(1.0))
    queue.push(np.array([0], np.int32))
    assert queue.pop(0).tolist() == []
    assert queue.pop(1).tolist() == [0]


def test_whole_layer_or_its_best():
    queue = WholeLayers(gains_of(1.0, 3.0, 2.0, 3.0, 0.5))
    queue.push(np.arange(5, dtype=np.int32))
    assert queue.pop(5).tolist() == [0, 1, 2, 3, 4]
    assert queue.pop(5).tolist() == []
    queue.push(np.arange(5, dtype=np.int32))
    assert queue.pop(2).tolist() == [1, 3]
    queue.push(np.arange(5, dtype=np.int32))
    assert queue.pop(1).tolist() == [1]


def test_best_leaves_give_up_those_whose_turn_never_comes():
    queue = best_leaves(gains_of(1.0, 3.0, 2.0, 3.0), one_by_one=True)
    queue.push(np.arange(4, dtype=np.int32))
    assert queue.give_up(4).tolist() == []
    assert queue.give_up(2).tolist() == [2, 0]
    assert [queue.pop(9).tolist() for _ in range(3)] == [[1], [3], [2]]
    assert WholeLayers(gains_of(1.0)).give_up(0).tolist() == []
