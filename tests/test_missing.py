"""Treatments of missing values in the survey of Mohan: by splits, and by imputers around the estimators."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from ranks import together
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline, make_union
from sklearn.utils.estimator_checks import parametrize_with_checks

from ranktrees import ForestImputer, HistGBRTRegressor, LambdaMARTRanker, RandomForestRanker
from ranktrees.processes.communicator import training_with
from ranktrees.rows.values import SKLEARN_VERSION
from reference import growing as slow
from reference import missing as slow_missing

SMALL = {"random_state": 0, "n_jobs": 1}
RANKER = LambdaMARTRanker(max_iter=8, max_leaf_nodes=8, min_samples_leaf=5, **SMALL)
REGRESSOR = HistGBRTRegressor(max_iter=15, learning_rate=0.2, max_leaf_nodes=8, **SMALL)


@pytest.fixture(scope="module")
def whole():
    """Rows whose columns tell each other's values."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(600, 2)) @ rng.normal(size=(2, 6)) + rng.normal(0, 0.2, (600, 6))


@pytest.fixture(scope="module")
def rows(whole):
    """X, of which a fifth of four columns is missing; y, qid."""
    rng = np.random.default_rng(1)
    X = np.where((rng.random(whole.shape) < 0.2) & (np.arange(6) < 4), np.nan, whole)
    y = np.clip(np.round(whole[:, 0] + 1), 0, 3)
    return X, y, rng.permutation(np.repeat(np.arange(30), 20))


def forests(**parameters):
    return ForestImputer(**{"n_estimators": 8, "random_state": 0, "n_jobs": 1, "tol": 0.5} | parameters)


@parametrize_with_checks(
    [forests()],
    expected_failed_checks=lambda _: {
        "check_estimators_pickle": "each of its features is lacking in some row"
    },
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("max_features", "tol"), [("sqrt", 0.5), (2, 0.35), (None, 0.4)])
def test_forests_fill_gaps_as_the_survey_has_it(rows, max_features, tol):
    X = rows[0][:150, [0, 4, 1, 2, 5]]  # those without gaps are in between
    seeds = dict(
        zip([0, 2, 3], np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=3), strict=True)
    )

    def forest_of(feature):
        rules = {"min_samples_leaf": 1, "max_features": max_features, "split_search": "exact", "n_jobs": 1}
        return RandomForestRanker(8, random_state=int(seeds[feature]), **rules)

    expected, n_rounds = slow_missing.predicted(X, forest_of, tol)
    imputer = forests(max_features=max_features, tol=tol)
    np.testing.assert_array_equal(imputer.fit_transform(X), expected)
    assert imputer.n_iter_ == n_rounds
    assert 1 < n_rounds < 10
    known = [[step.known.tolist() for step in steps] for steps in imputer.forests_]
    assert known[0] == [[1, 4], [0, 1, 4], [0, 1, 2, 4]]
    assert known[1] == [[1, 2, 3, 4], [0, 1, 3, 4], [0, 1, 2, 4]]
    np.testing.assert_array_equal(imputer.transform(X), expected)
    alone = [imputer.transform(X[i : i + 1])[0] for i in range(20)]
    np.testing.assert_array_equal(alone, expected[:20])


def test_forests_of_any_number_of_threads_fill_alike(rows):
    X, _, _ = rows
    filled = forests().fit_transform(X)
    np.testing.assert_array_equal(forests(n_jobs=3).fit_transform(X), filled)
    assert not np.array_equal(forests(random_state=1).fit_transform(X), filled)
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])


def test_gaps_of_new_rows_where_there_were_none(rows, whole):
    """The mean of the feature, from which forests predict; with no gaps at all there are no forests."""
    X, _, _ = rows
    imputer = forests().fit(X)
    new = X[:50].copy()
    new[:, 5] = np.nan
    np.testing.assert_allclose(imputer.means_, [np.nan] * 4 + [X[:, 4].mean(), X[:, 5].mean()], rtol=1e-12)
    filled = np.where(np.arange(6) == 5, imputer.means_[5], new)
    np.testing.assert_array_equal(imputer.transform(new), imputer.transform(filled))
    imputer.fit(whole)
    assert imputer.forests_ == [[]]
    assert imputer.n_iter_ == 1
    means = np.where(np.isnan(new), whole.mean(axis=0), new)
    np.testing.assert_allclose(imputer.transform(new), means, rtol=1e-12)


def test_frames_and_single_precision_go_through_forests(rows):
    X, _, _ = rows
    frame = pd.DataFrame(X, columns=list("abcdef"), index=np.arange(600) + 7)
    filled = forests().set_output(transform="pandas").fit_transform(frame)
    assert filled.columns.tolist() == list("abcdef")
    assert filled.index.equals(frame.index)
    np.testing.assert_array_equal(filled, forests().fit_transform(X))
    assert forests().fit_transform(X.astype(np.float32)).dtype == np.float32


def test_a_constant_and_a_copy_are_found_without_a_warning():
    x = np.random.default_rng(0).permutation(100) / 100
    X = np.column_stack([x, np.ones(100), x])
    X[::7, 1:] = np.nan
    filled = forests(n_estimators=30, max_features=None, tol=0.2).fit_transform(X)
    assert (filled[:, 1] == 1).all()
    np.testing.assert_allclose(filled[:, 2], x, atol=0.05)


def test_forests_that_do_not_settle(rows):
    X, _, _ = rows
    with pytest.warns(ConvergenceWarning, match=r"not settled after max_iter=2 rounds.*more than tol=0.001"):
        forests(max_iter=2, tol=0.001).fit(X)
    assert forests(max_iter=3, tol=0).fit(X).n_iter_ == 3


def test_what_forests_cannot_fill(rows):
    X, _, _ = rows
    with pytest.raises(ValueError, match=r"X has no feature that all rows have.*SimpleImputer"):
        forests().fit(X[:, :4])
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(c=np.nan)
    with pytest.raises(ValueError, match=r"X has no value of feature 'c'.*drop the feature"):
        forests().fit(frame)
    with pytest.raises(ValueError, match=r"X has no value of feature 2"):
        forests().fit(frame.to_numpy())

    def fit(ranks):
        with (
            training_with(ranks),
            pytest.raises(ValueError, match=r"fitted on 2 ranks, .* expected one process"),
        ):
            forests().fit(X)

    together(2, fit)


def test_what_is_predicted_is_nearer_than_the_mean(rows, whole):
    X, _, _ = rows
    error = [
        np.abs(imputer.fit_transform(X) - whole)[np.isnan(X)].mean()
        for imputer in (SimpleImputer(), IterativeImputer(REGRESSOR, tol=0.1, max_iter=30), forests())
    ]
    assert max(error[1:]) < 0.6 * error[0]


RECIPES = {
    "mean": SimpleImputer(),
    "median": SimpleImputer(strategy="median"),
    "constant": SimpleImputer(strategy="constant", fill_value=0.0),
    "mean, and whether": SimpleImputer(add_indicator=True),
    "as it is, and whether": make_union("passthrough", MissingIndicator()),
    "predicted": IterativeImputer(REGRESSOR, tol=0.5),
    "predicted by forests": forests(),
}


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("ranker", [RANKER, RandomForestRanker(5, **SMALL)], ids=["boosted", "forest"])
def test_ids_come_through_every_recipe(rows, recipe, ranker):
    X, y, qid = rows
    step = type(ranker).__name__.lower()
    pipeline = make_pipeline(RECIPES[recipe], ranker)
    by_name = clone(pipeline).fit(X, y, **{f"{step}__qid": qid})
    riding = clone(pipeline).fit(X, pd.Series(y, index=pd.Index(qid, name="qid")))
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(pipeline)
        if recipe == "predicted":
            routed[0].estimator.set_fit_request(qid=False, groups=False)
        routed.fit(X, y, qid=qid)
        score = routed.score(X, y, qid=qid)
    filled = by_name[0].transform(X)
    expected = clone(ranker).fit(filled, y, qid=qid)
    assert score == expected.score(filled, y, qid=qid)
    for fitted in (by_name, riding, routed):
        assert fitted[-1].ensemble_.digest() == expected.ensemble_.digest()


@pytest.mark.skipif(SKLEARN_VERSION < (1, 9), reason="older imputers may not be handed any ids")
def test_with_routing_the_imputers_model_must_not_ask_for_ids(rows):
    """IterativeImputer hands on what it is given for all rows to models that are fitted to some of them."""
    X, y, qid = rows
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(IterativeImputer(REGRESSOR, tol=0.5), RANKER)
        with pytest.raises(ValueError, match="qid has length 600; expected one query id per row"):
            pipeline.fit(X, y, qid=qid)


def test_whether_there_is_a_value_is_a_split_of_its_own():
    """Where only that matters, a stump of the default asks it, as the indicator would."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    X[rng.random(400) < 0.3] = np.nan
    y = np.isnan(X[:, 0]).astype(float)
    stump = HistGBRTRegressor(
        max_iter=1, max_leaf_nodes=2, learning_rate=1.0, gradient_sampling=None, **SMALL
    )
    np.testing.assert_allclose(stump.fit(X, y).predict(X), y, atol=1e-9)


# ---- sides that are kept to -------------------------------------------------------------------------


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("lacking", [0.0, 1.0])
def test_a_constraint_leaves_both_sides_to_rows_without_a_value(sign, lacking):
    """Where the side is learned they may be below or above all others, whatever values have to do."""
    X = np.repeat([np.nan, 1.0], 50)[:, None]
    y = np.repeat([lacking, 1.0 - lacking], 50)
    for split_search in ("full", "coarse_to_fine", "exact"):
        model = HistGBRTRegressor(
            max_iter=1,
            learning_rate=1.0,
            monotonic_cst=[sign],
            gradient_sampling=None,
            split_search=split_search,
        )
        assert model.fit(X, y).predict([[np.nan], [1.0]]).tolist() == [lacking, 1.0 - lacking]


@pytest.mark.parametrize("monotonic_cst", [None, [1, -1, 1, 0, 0, 0]])
@pytest.mark.parametrize(("side", "fill"), [("left", -np.inf), ("right", np.inf)])
@pytest.mark.parametrize("model", [REGRESSOR, RandomForestRanker(5, **SMALL)], ids=["boosted", "forest"])
def test_a_side_that_is_kept_to_is_infinity(rows, model, side, fill, monotonic_cst):
    """For rows that a tree was grown from: above its values a cut is the largest of them, or infinite."""
    X, y, qid = rows
    all_rows = {"gradient_sampling": None} if model is REGRESSOR else {"bootstrap": False}
    all_rows |= {"split_search": "exact", "max_features": 1.0}
    model = clone(model).set_params(monotonic_cst=monotonic_cst, **all_rows)
    kept = clone(model).set_params(handle_missing=side).fit(X, y, qid=qid)
    filled = np.where(np.isnan(X), fill, X)
    expected = model.fit(filled, y, qid=qid)
    np.testing.assert_array_equal(kept.predict(X), expected.predict(filled))
    fields = ["feature", "gain", "value", "count"]
    for kept_tree, tree in zip(kept.ensemble_, expected.ensemble_, strict=True):
        if side == "right":
            assert kept_tree.nodes[fields].tolist() == tree.nodes[fields].tolist()


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("ranker", [RANKER, RandomForestRanker(5, **SMALL)], ids=["boosted", "forest"])
def test_rows_without_a_value_go_where_they_must(rows, ranker, side):
    X, y, qid = rows
    ensemble = clone(ranker).set_params(handle_missing=side).fit(X, y, qid=qid).ensemble_
    asks_for_a_value = (ensemble.nodes["feature"] >= 0) & (ensemble.nodes["cut"] < np.inf)
    assert (ensemble.nodes["missing_left"][asks_for_a_value] == (side == "left")).all()


# ---- three ways -------------------------------------------------------------------------------------


def best_parts(codes, n_bins, gradients, hessians, l2, least):
    """(Gain, what the best two or three parts of the rows are), every one of them tried."""
    rows, everyone = np.arange(len(codes)), np.ones(len(codes), bool)
    of = lambda part: gradients[part].sum() ** 2 / (hessians[part].sum() + l2)  # noqa: E731
    best_gain, best = 1e-9, [everyone]
    for feature, missing in enumerate(n_bins):
        lacking = codes[:, feature] == missing
        cuts = [codes[:, feature] <= code for code in range(missing - 1)]
        tried = [[lacking, ~lacking]] if lacking.any() else []
        tried += [[lacking, ~lacking & cut, ~lacking & ~cut] for cut in cuts]
        for parts in tried:
            parts = [rows[part] for part in (parts if lacking.any() else parts[1:])]
            large_enough = all(len(part) >= least and hessians[part].sum() > 0 for part in parts)
            gain = sum(map(of, parts)) - of(everyone) if large_enough else 0.0
            if gain > best_gain + 1e-9:
                best_gain, best = gain, parts
    return best_gain, sorted(part.tolist() for part in best)


@pytest.mark.parametrize("split_search", ["full", "exact"])
def test_three_ways_are_the_best_of_all_that_there_are(split_search):
    """Hundreds of roots: weights, ties, and few rows."""
    n_three = 0
    for seed in range(700):
        rng = np.random.default_rng(seed)
        n_bins = rng.integers(1, 5, rng.integers(1, 4)).tolist()
        n_rows, l2, least = int(rng.integers(2, 14)), float(rng.integers(0, 2)), int(rng.integers(1, 4))
        codes = slow.random_codes(rng, n_rows, n_bins, 0.4)
        gradients, hessians = rng.normal(size=n_rows), rng.integers(1, 4, n_rows).astype(float)
        if seed % 3 == 0:
            gradients = np.round(gradients)
        grown, _ = slow.grown_on(
            codes,
            slow.mapper_of(n_bins),
            gradients,
            hessians,
            missing="three_way",
            split_search=split_search,
            max_leaf_nodes=3,
            l2_regularization=l2,
            min_samples_leaf=least,
        )
        gain, parts = best_parts(codes, n_bins, gradients, hessians, l2, least)
        root = grown.leaves[0]
        if root["left"] < 0:
            assert len(parts) == 1 or gain < 1e-6 or n_rows // least < 3
            continue
        if n_rows // least < 3:  # there is no room for three
            continue
        assert root["promise"] == pytest.approx(gain, rel=1e-5, abs=1e-6)
        if root["split"]["second_gain"]:
            n_three += 1
            leaves = grown.leaves[grown.is_leaf]
            found = [sorted(slow.rows_of(grown, leaf).tolist()) for leaf in leaves]
            assert sum(node["split"]["gain"] for node in grown.leaves[:2]) == pytest.approx(gain, rel=1e-5)
            if seed % 3:  # no ties
                assert sorted(found) == parts
    assert n_three > 100


def three_way(model, **changes):
    return clone(model).set_params(handle_missing="three_way", **changes)


@pytest.mark.parametrize(
    "model", [REGRESSOR, RANKER, RandomForestRanker(5, **SMALL)], ids=["regressor", "ranker", "forest"]
)
def test_whether_is_asked_before_which(rows, model):
    X, y, qid = rows
    ensemble = three_way(model).fit(X, y, qid=qid).ensemble_
    n_pairs, n_alone = 0, 0
    for tree in ensemble:
        reaching = [np.ones(len(X), bool)] + [None] * (len(tree.nodes) - 1)
        for i, node in enumerate(tree.nodes):
            if node["feature"] < 0:
                continue
            lacking = np.isnan(X[:, node["feature"]])
            asks_whether = node["cut"] == np.inf
            if asks_whether:
                follows = tree.nodes[node["left"]]["feature"] == node["feature"]
                n_pairs, n_alone = n_pairs + follows, n_alone + (not follows)
            goes_left = np.where(lacking, node["missing_left"], X[:, node["feature"]] <= node["cut"])
            reaching[node["left"]] = reaching[i] & (goes_left == 1)
            reaching[node["right"]] = reaching[i] & (goes_left == 0)
            if not model.get_params().get("bootstrap") and model.get_params().get("subsample", 1.0) == 1.0:
                assert asks_whether or not (reaching[i] & lacking).any()
    assert n_pairs > n_alone


def test_what_three_ways_are_for():
    """Rows without a value are in the middle: no side is theirs, and the first split alone gains nothing."""
    x = np.repeat([-1.0, np.nan, 1.0], 40)[:, None]
    y = np.repeat([0.0, 0.5, 1.0], 40)
    tree = {"max_iter": 1, "learning_rate": 1.0, "gradient_sampling": None, "max_features": 1.0, **SMALL}
    model = three_way(HistGBRTRegressor(max_leaf_nodes=3, **tree)).fit(x, y)
    np.testing.assert_allclose(model.predict(x), y, atol=1e-9)
    nodes = model.ensemble_[0].nodes
    assert nodes["feature"].tolist() == [0, 0, -1, -1, -1]
    assert nodes["gain"][0] == pytest.approx(0.0, abs=1e-6)
    assert nodes["gain"][1] == pytest.approx(20.0)
    beside = np.column_stack([x[:, 0], y > 0.9])  # gains more than either split of the pair alone may do
    stump = three_way(HistGBRTRegressor(max_leaf_nodes=2, **tree)).fit(beside, y)
    assert stump.ensemble_.nodes["feature"].tolist() == [1, -1, -1]  # there is no room for two splits
    shallow = three_way(HistGBRTRegressor(max_depth=1, **tree)).fit(beside, y)
    assert shallow.ensemble_.nodes["feature"].tolist() == [1, -1, -1]


@pytest.mark.parametrize("limits", [{"max_leaf_nodes": 6}, {"max_depth": 3, "max_leaf_nodes": None}])
def test_limits_are_kept_three_ways(rows, limits):
    X, y, _ = rows
    ensemble = three_way(REGRESSOR, min_samples_leaf=15, **limits).fit(X, y).ensemble_
    assert ensemble.depth <= limits.get("max_depth", 5)
    for tree in ensemble:
        leaves = tree.nodes[tree.nodes["feature"] < 0]
        assert len(leaves) <= (limits["max_leaf_nodes"] or 8)
        assert leaves["count"].min() >= 15


@pytest.mark.parametrize("handle_missing", ["left", "right", "three_way"])
@pytest.mark.parametrize(
    "model", [REGRESSOR, RANKER, RandomForestRanker(5, **SMALL)], ids=["regressor", "ranker", "forest"]
)
def test_treatments_do_not_show_threads(rows, model, handle_missing):
    X, y, qid = rows
    model = clone(model).set_params(handle_missing=handle_missing)
    digests = {clone(model).set_params(n_jobs=n).fit(X, y, qid=qid).ensemble_.digest() for n in (1, 3)}
    assert len(digests) == 1


def test_one_split_at_a_time_is_not_three_ways(rows):
    X, y, qid = rows
    with pytest.raises(ValueError, match='"coarse_to_fine" evaluates one split at a time'):
        three_way(RANKER, split_search="coarse_to_fine").fit(X, y, qid=qid)
    many = np.tile(X, 11)
    chosen, full = three_way(RANKER, max_iter=2), three_way(RANKER, max_iter=2, split_search="full")
    assert chosen.fit(many, y, qid=qid).ensemble_.digest() == full.fit(many, y, qid=qid).ensemble_.digest()


def test_without_gaps_treatments_are_one(rows, whole):
    _, y, qid = rows
    scores = [
        clone(RANKER).set_params(handle_missing=each).fit(whole, y, qid=qid).predict(whole)
        for each in ("learned", "left", "right", "three_way")
    ]
    for each in scores[1:]:
        np.testing.assert_array_equal(each, scores[0])
