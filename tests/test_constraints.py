from itertools import product
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import together

from ranktrees import HistGBRTRegressor, RandomForestRanker
from ranktrees._core.support.dtypes import LEAF
from ranktrees.growing.constraints import (
    Constraints,
    categorical_mask,
    interaction_sets,
    monotone_signs,
    number_of_features,
    usable_features,
    varying_features,
)
from ranktrees.growing.packing import counts_of
from ranktrees.rows.features import index_of
from ranktrees.support import parallel
from reference import growing as slow


def rows_of(seed, n_rows, n_bins):
    rng = np.random.default_rng(seed)
    codes = slow.random_codes(rng, n_rows, n_bins)
    return (
        codes,
        rng.normal(size=n_rows) + np.sin(codes @ np.arange(1, len(n_bins) + 1)),
        rng.uniform(0.1, 1, n_rows),
    )


# ---- monotone ---------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    signs=st.lists(st.sampled_from([-1, 0, 1]), min_size=3, max_size=3),
    max_leaf_nodes=st.sampled_from([None, 20]),
    l2=st.sampled_from([0.0, 3.0]),
)
def test_a_tree_is_monotone_on_the_whole_grid(seed, signs, max_leaf_nodes, l2):
    n_bins = [5, 4, 6]
    codes, gradients, hessians = rows_of(seed, 150, n_bins)
    mapper = slow.mapper_of(n_bins)
    grown, _ = slow.grown_on(
        codes, mapper, gradients, hessians,
        monotone=np.array(signs, np.int8), max_leaf_nodes=max_leaf_nodes, l2_regularization=l2,
    )  # fmt: skip
    grid = np.array(list(product(*(range(n + 1) for n in n_bins))), np.uint8)  # missing too, of the others
    values = grown.values[[slow.walk(grown, mapper.missing_codes, line) for line in grid]]
    values = values.reshape([n + 1 for n in n_bins])
    for f, sign in enumerate(signs):
        steps = np.diff(np.take(values, range(n_bins[f]), axis=f), axis=f)
        assert (steps * sign >= 0).all()
    for leaf in grown.leaves:
        assert leaf["lower"] <= leaf["value"] <= leaf["upper"]


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "quantile", "poisson"])
def test_a_model_is_monotone(loss):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (300, 3))
    X[rng.random(300) < 0.1, 2] = np.nan
    y = np.exp(X[:, 0] + np.sin(6 * X[:, 0])) + X[:, 1] ** 2 + rng.uniform(0, 1, 300)
    model = HistGBRTRegressor(
        loss, quantile=0.7 if loss == "quantile" else None, max_iter=20, min_samples_leaf=3,
        monotonic_cst=[1, -1, 0], subsample=0.7, random_state=0, n_jobs=1,
    ).fit(X, y)  # fmt: skip
    steps = np.linspace(-1.2, 1.2, 80)
    for row in X[:20]:
        for feature, sign in ((0, 1), (1, -1)):
            grid = np.tile(row, (80, 1))
            grid[:, feature] = steps
            assert (np.diff(model.predict(grid)) * sign >= 0).all()


@pytest.mark.parametrize(
    "rules", [{"loss": "absolute_error"}, {"loss": "quantile", "quantile": 0.7}], ids=str
)
def test_leaves_of_a_monotone_model_have_the_scale_of_the_labels(rules):
    rules = {"max_iter": 200, "random_state": 0} | rules
    ratios = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (500, 2))
        truth = X[:, 0] + np.sin(6 * X[:, 1])
        y = truth + rng.normal(0, 0.1, 500)
        bounded = HistGBRTRegressor(monotonic_cst=[1, 0], **rules).fit(X, y)
        free = HistGBRTRegressor(**rules).fit(X, y)
        ratios.append(abs(truth - bounded.predict(X)).mean() / abs(truth - free.predict(X)).mean())
    assert np.mean(ratios) < 1.1
    for factor in (2.0**-10, 2.0**10):
        scaled = HistGBRTRegressor(monotonic_cst=[1, 0], **rules).fit(X, factor * y)
        np.testing.assert_array_equal(scaled.predict(X), factor * bounded.predict(X))


def test_a_forest_is_monotone():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (200, 2))
    y = np.round(2 + X[:, 0] + np.sin(6 * X[:, 0]) / 2 + rng.uniform(-1, 1, 200), 1)
    forest = RandomForestRanker(10, monotonic_cst=[1, 0], random_state=0, n_jobs=1).fit(
        X, y, qid=np.arange(200) // 10
    )
    grid = np.column_stack([np.linspace(-1, 1, 50), np.zeros(50)])
    assert (np.diff(forest.predict(grid)) >= 0).all()
    assert np.ptp(forest.predict(grid)) > 0


# ---- interactions -----------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    sets=st.lists(st.sets(st.integers(0, 4), min_size=1), min_size=1, max_size=5),
    max_leaf_nodes=st.sampled_from([None, 12]),
    max_features=st.sampled_from([None, 2]),
)
def test_a_branch_stays_within_one_set(seed, sets, max_leaf_nodes, max_features):
    n_bins = [6, 5, 4, 7, 3]
    codes, gradients, hessians = rows_of(seed, 120, n_bins)
    mapper = slow.mapper_of(n_bins)
    sets = interaction_sets(sets, 5)
    rules = {"max_leaf_nodes": max_leaf_nodes, "interactions": sets}
    grown, rows = slow.grown_on(codes, mapper, gradients, hessians, max_features=max_features, **rules)
    used = {0: set()}
    for i, leaf in enumerate(grown.leaves):
        if leaf["left"] >= 0:
            used[leaf["left"]] = used[leaf["right"]] = used[i] | {int(leaf["split"]["feature"])}
    assert all(any(features <= members for members in sets) for features in used.values())
    if max_features is None:
        nodes = slow.grow(
            codes, rows, np.arange(120), mapper,
            slow.Rules(rows.gradient_unit, rows.hessian_unit), **rules,
        )  # fmt: skip
        slow.agrees(grown, nodes, codes, mapper)


def test_more_sets_than_a_word_has_bits_and_more_leaves_than_were_foreseen():
    n_features = 16
    n_bins = [30] * n_features
    codes, gradients, hessians = rows_of(0, 400, n_bins)
    sets = interaction_sets("pairwise", n_features)
    assert len(sets) == 120
    grown, _ = slow.grown_on(codes, slow.mapper_of(n_bins), gradients, hessians, interactions=sets)
    assert len(grown.leaves) > 128
    used = {0: set()}
    for i, leaf in enumerate(grown.leaves):
        if leaf["left"] >= 0:
            used[leaf["left"]] = used[leaf["right"]] = used[i] | {int(leaf["split"]["feature"])}
    assert max(map(len, used.values())) == 2
    assert len({tuple(sorted(features)) for features in used.values()}) >= 4


def test_interaction_sets():
    assert interaction_sets(None, 3) is None
    assert interaction_sets("no_interactions", 3) == [{0}, {1}, {2}]
    assert interaction_sets("pairwise", 3) == [{0, 1}, {0, 2}, {1, 2}]
    assert interaction_sets("pairwise", 1) == [{0}]
    assert interaction_sets([{0, 1}], 4) == [{0, 1}, {2, 3}]
    assert interaction_sets([[0, 1], (1, 2)], 3) == [{0, 1}, {1, 2}]
    assert interaction_sets([["b"], [0, "c"]], 3, ["a", "b", "c"]) == [{1}, {0, 2}]
    for bad in ([{0, 3}], [{-1}], [{"a"}], [{0.5}]):
        with pytest.raises(ValueError, match="interaction_cst"):
            interaction_sets(bad, 3)


# ---- draws of features ------------------------------------------------------------------------------


def candidates(constraints, ids, key=(1, 2), splits=False):
    leaves = np.zeros(int(max(ids)) + 1, LEAF)
    leaves["split"]["feature"] = 0 if splits else -1
    constraints.begin()
    found = constraints.candidates(leaves, np.array(ids, np.int32), key)
    return [(some.tolist(), features.copy()) for some, features in found]


def test_all_features_for_all_leaves():
    ((some, features),) = candidates(Constraints(np.array([1, 4, 5]), 6), [3, 4])
    assert (some, features.tolist()) == ([3, 4], [[1, 4, 5]])
    assert candidates(Constraints(np.array([], int), 6), [3]) == []


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**31 - 1),
    number=st.integers(0, 1000),
    n=st.integers(2, 20),
    k=st.integers(1, 19),
    ids=st.lists(st.integers(0, 50), min_size=1, max_size=9, unique=True),
)
def test_k_distinct_features_by_seed_stream_and_leaf(seed, number, n, k, ids):
    usable = np.arange(n) * 2 + 1
    constraints = Constraints(usable, 50, max_features=k)
    assert constraints.draws_features == (k < n)
    if k >= n:
        return
    ((some, drawn),) = candidates(constraints, ids, (seed, number), splits=True)
    assert some == ids
    for leaf, line in zip(ids, drawn, strict=True):
        assert len(set(line.tolist())) == len(line) == k
        assert line.tolist() == sorted(line)
        assert set(line.tolist()) <= set(usable.tolist())
        ((_, alone),) = candidates(constraints, [leaf], (seed, number), splits=True)
        assert alone[0].tolist() == line.tolist()


def test_draws_differ_by_seed_stream_and_leaf():
    constraints = Constraints(np.arange(40), 40, max_features=20)
    lines = {
        candidates(constraints, [leaf], (seed, number), splits=True)[0][1].tobytes()
        for seed in range(3)
        for number in range(3)
        for leaf in range(3)
    }
    assert len(lines) == 27


@pytest.mark.parametrize(("n", "k"), [(7, 3), (6, 3), (5, 1), (5, 4)])
def test_looks_further_until_something_parts_the_rows(n, k):
    found = candidates(Constraints(np.arange(n), n, max_features=k), [0, 5])
    assert len(found) == -(-n // k)
    for leaf in (0, 1):
        seen = np.concatenate([features[leaf] for _, features in found])
        assert sorted(seen[seen >= 0].tolist()) == list(range(n))


def test_a_leaf_with_only_one_useful_feature_finds_it():
    codes = np.zeros((40, 12), np.uint8)
    codes[:, 5] = np.arange(40) % 2  # the others hold other values in rows that are not drawn
    codes = np.concatenate([codes, np.ones((1, 12), np.uint8)])
    gradients = np.append(np.arange(40) % 2, 0.0)
    for number in range(10):
        grown, _ = slow.grown_on(
            codes, slow.mapper_of([2] * 12), gradients, rows=np.arange(40), max_features=2, tree=number
        )
        assert grown.leaves["split"]["feature"][0] == 5


def test_draws_within_open_sets():
    sets = [{0, 1, 2}, {3, 4}, {2, 5}]
    constraints = Constraints(np.arange(6), 6, interactions=sets, max_features=2)
    constraints.begin()
    leaves = np.zeros(3, LEAF)
    leaves["split"]["feature"] = 2
    constraints.inherit(leaves, np.array([0]), np.array([1, 2]))
    leaves["split"]["feature"] = -1
    seen = [features for _, features in constraints.candidates(leaves, np.array([1, 2], np.int32), (0, 0))]
    for leaf in (0, 1):
        line = np.concatenate([features[leaf] for features in seen])
        assert sorted(line[line >= 0].tolist()) == [0, 1, 2, 5]


def test_features_drawn_do_not_depend_on_threads(monkeypatch):
    monkeypatch.setattr(parallel, "VALUES_PER_THREAD", 1)
    codes, gradients, hessians = rows_of(0, 500, [20] * 20)
    mapper = slow.mapper_of([20] * 20)
    for max_leaf_nodes in (None, 40):
        trees = {
            slow.tree_bytes(
                slow.grown_on(
                    codes, mapper, gradients, hessians,
                    max_features=5, n_threads=n_threads, max_leaf_nodes=max_leaf_nodes, seed=3, tree=7,
                )[0],
                mapper,
            )
            for n_threads in (1, 2, 3, 4)
        }  # fmt: skip
        assert len(trees) == 1


@pytest.mark.parametrize(
    ("max_features", "n_usable", "expected"),
    [
        (None, 7, 7), (None, 0, 0), ("sqrt", 100, 10), ("sqrt", 0, 1), ("log2", 100, 6), ("log2", 1, 1),
        ("log2", 0, 1), (3, 10, 3), (30, 10, 10), (0.3, 10, 3), (1e-9, 10, 1), (1.0, 10, 10), (1, 10, 1),
    ],
)  # fmt: skip
def test_number_of_features(max_features, n_usable, expected):
    assert number_of_features(max_features, n_usable) == expected


def test_usable_features_are_those_that_part_the_rows():
    codes = np.array([[0, 0, 1, 0, 1, 0], [0, 1, 1, 1, 0, 0]], np.uint8)
    mapper = slow.mapper_of([1, 2, 1, 1, 1, 1], {4, 5})
    assert varying_features(mapper, codes).tolist() == [1, 3, 4]
    assert usable_features(counts_of(np.asfortranarray(codes))).tolist() == [1, 3, 4]


def test_usable_features_part_the_rows_of_all_ranks():
    codes = np.array([[0, 0, 1, 0, 1, 0], [0, 1, 1, 1, 0, 0]], np.uint8)
    mapper = slow.mapper_of([1, 2, 1, 1, 1, 1], {4, 5})
    found = together(3, lambda ranks: varying_features(mapper, codes[ranks.rank : ranks.rank + 1], ranks))
    assert [features.tolist() for features in found] == [[1, 3, 4]] * 3


# ---- what users write -------------------------------------------------------------------------------


def estimator(n_features=4, names=None, levels=()):
    known = {} if names is None else {"feature_names_in_": np.array(list(names), object)}
    return SimpleNamespace(n_features_in_=n_features, _category_levels=dict.fromkeys(levels, ()), **known)


@pytest.mark.parametrize(
    "given",
    [[1, 3], np.array([1, 3]), [False, True, False, True], np.array([False, True, False, True]), ["b", "d"]],
)
def test_categorical_mask(given):
    assert categorical_mask(given, estimator(names="abcd")).tolist() == [False, True, False, True]


def test_categorical_mask_from_dtype_or_none():
    assert categorical_mask("from_dtype", estimator()) is None
    assert categorical_mask("from_dtype", estimator(levels=[2])).tolist() == [False, False, True, False]
    assert categorical_mask(None, estimator()) is None
    assert categorical_mask([], estimator()) is None
    assert categorical_mask([False] * 4, estimator()) is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([True, False], "mask of shape"),
        ([4], "index 4"),
        ([-1], "index -1"),
        (["x"], "names 'x'"),
        (["a", "x"], "names 'x'"),
        ([0, 1, 0, 0], "has feature 0 twice, as 0 and as 0"),  # bools would be a mask
        (2, "expected a list of names or indices"),
        ([[True, False], [False, True]], "expected a list of names or indices"),
    ],
)
def test_categorical_features_that_cannot_be_meant(given, message):
    with pytest.raises(ValueError, match=message):
        categorical_mask(given, estimator(names="abcd"))


@pytest.mark.parametrize(
    ("names", "known"),
    [
        (["click", "price"], r"the nearest are \['click'\]"),
        (["site"], r"X has \['site'\]\."),
        ([str(j) for j in range(11)], r"X has \['0', .* '9'\], \.\.\."),
        ([], "X has no feature names: pass indices, or a data frame"),
    ],
)
def test_an_unknown_name_is_told_what_is_known(names, known):
    with pytest.raises(ValueError, match=f"names 'clicks', which is not a feature of X; {known}"):
        index_of("clicks", names, 11, "monotonic_cst")


@pytest.mark.parametrize(
    "parameter",
    [
        {"monotonic_cst": {2: 1}},
        {"feature_costs": {2: 1.0}},
        {"interaction_cst": [[0, 2], [1]]},
        {"categorical_features": [2]},
    ],
    ids=lambda parameter: next(iter(parameter)),
)
def test_numbers_that_may_be_places_or_names_are_refused(parameter):
    X = np.arange(60).reshape(20, 3) % 7.0
    frame = pd.DataFrame(X, columns=[2, 0, 1])
    model = HistGBRTRegressor(max_iter=2, **parameter)
    with pytest.raises(ValueError, match=r"the columns of X are called \[2, 0, 1\]: .*rename\(col"):
        model.fit(frame, X[:, 0])
    model.fit(frame[[0, 1, 2]], X[:, 0])


@pytest.mark.parametrize("given", [None, [0], [True, False, False, False]])
def test_a_categorical_column_must_be_named(given):
    with pytest.raises(ValueError, match="leaves out column 2"):
        categorical_mask(given, estimator(levels=[2]))


def test_monotone_signs():
    none = np.zeros(4, np.uint8)
    assert monotone_signs(None, estimator(), none) is None
    assert monotone_signs([0, 0, 0, 0], estimator(), none) is None
    signs = monotone_signs([1, 0, -1, 0], estimator(), none)
    assert (signs.dtype, signs.tolist()) == (np.int8, [1, 0, -1, 0])
    assert monotone_signs({"b": -1}, estimator(names="abcd"), none).tolist() == [0, -1, 0, 0]
    assert monotone_signs({1: -1}, estimator(), none).tolist() == [0, -1, 0, 0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1, 0], "2 signs"),
        ([2, 0, 0, 0], "sign 2"),
        ([0.5, 0, 0, 0], "sign 0.5"),
        (["up", 0, 0, 0], "sign 'up'"),
        ({"x": 1}, "names 'x'"),
        ({4: 1}, "index 4, but X has 4 features"),
        ({"b": 1, 1: -1}, "feature 1 twice, as 'b' and as 1"),
        ([0, 0, 0, 1], "categorical feature 'd'"),
    ],
)
def test_monotone_signs_that_cannot_be_meant(given, message):
    with pytest.raises(ValueError, match=message):
        monotone_signs(given, estimator(names="abcd"), np.array([0, 0, 0, 1], np.uint8))
