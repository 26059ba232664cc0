"""The costs of features: the laws of prices, and a plain sum over the features that the trees use."""

import pickle
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

from ranktrees import (
    EarlyExit,
    EnsembleRanker,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    RandomForestRanker,
    as_measure,
    make_ranking,
)
from ranktrees.evaluation.cost_curve import CostCurve
from ranktrees.evaluation.early_exit import drop_rows
from ranktrees.model.costs import FeatureCosts, Prices
from ranktrees.support import parallel
from reference import growing as slow
from reference.scoring import nameless

X, y, qid = make_ranking(16, n_features=12, noise=0.5, random_state=0, return_X_y_qid=True)
COSTS = np.array([0, 1, 5, 5, 20, 50, 1, 5, 5, 20, 50, 100.0])

MODELS = {
    "lambdamart": LambdaMARTRanker(max_iter=6),
    "coarse": LambdaMARTRanker(max_iter=6, split_search="coarse_to_fine", max_features=1.0),
    "regressor": HistGBRTRegressor(max_iter=6, subsample=0.7),
    "all rows": HistGBRTRegressor(max_iter=6, max_features=1.0, gradient_sampling=None),
    "by layers": HistGBRTRegressor(max_iter=6, max_leaf_nodes=None, max_depth=4, gradient_sampling=None),
    "exact": HistGBRTRegressor("poisson", max_iter=6, split_search="exact", interaction_cst=[{0, 1, 2}]),
    "monotone": LambdaMARTRanker(max_iter=6, monotonic_cst=[1, -1] + [0] * 10, max_features=1.0),
    "categories": HistGBRTRegressor(max_iter=6, categorical_features=[3]),
    "forest": RandomForestRanker(7),
    "best first forest": RandomForestRanker(7, max_leaf_nodes=9, max_features=None),
}  # fmt: skip
STAGES = {"forest": 3, "best first forest": 2}

each = pytest.mark.parametrize("name", MODELS)


def rows_for(model):
    """Categories are small whole numbers."""
    rows = X.copy()
    rows[:, 3] = np.round(2 * rows[:, 3]) % 7
    return rows if getattr(model, "categorical_features", None) == [3] else X


def fitted(name, **parameters):
    rules = {"random_state": 0, "n_jobs": 1}
    if "feature_costs" in parameters:
        rules |= {"cost_rule": "worth"} | ({"stage_size": STAGES[name]} if name in STAGES else {})
    model = clone(MODELS[name]).set_params(**rules | parameters)
    return model.fit(rows_for(model), y, qid=qid)


def used_by(model, stop=None):
    """The set of features that the first trees ask for."""
    nodes = model.ensemble_.first(len(model.ensemble_) if stop is None else stop).nodes
    return set(nodes["feature"][nodes["feature"] >= 0].tolist())


def cost_of(features, costs=COSTS, groups=()):
    """By hand: each group once."""
    alone = features - set().union(*groups)
    return sum(costs[f] for f in alone) + sum(costs[min(g)] for g in groups if features & set(g))


# ---- what costs do to models ------------------------------------------------------------------------


@each
def test_without_weight_costs_do_not_show(name):
    plain = fitted(name).ensemble_.digest()
    assert fitted(name, feature_costs=COSTS, cost_weight=0.0).ensemble_.digest() == plain
    assert fitted(name, cost_weight=0).ensemble_.digest() == plain
    assert fitted(name, feature_costs=np.zeros(12)).ensemble_.digest() == plain
    assert fitted(name, feature_costs={3: 0}, feature_groups=[[1, 2]]).ensemble_.digest() == plain


@each
def test_what_costs_too_much_is_not_used(name):
    free = {0, 3} if name == "categories" else {0, 2}
    costs = np.where(np.isin(np.arange(12), list(free)), 0.0, 1.0)
    for weight in (1e6, 1e300):
        model = fitted(name, feature_costs=costs, cost_weight=weight)
        assert used_by(model) == free
        curve = model.cost_curve(rows_for(model), y, qid=qid, measure="ndcg@10")
        assert not curve.cost.any()
    assert used_by(fitted(name, feature_costs=np.ones(12), cost_weight=1e6)) == set()


@each
def test_a_group_is_paid_for_once(name):
    """With the first of them all are free: as if only one had to be paid for."""
    costs = np.full(12, 1e6)
    costs[[3, 0, 5]] = 1e-9
    model = fitted(name, feature_costs=costs, cost_weight=1.0)
    assert used_by(model) <= {0, 3, 5}
    costs[[1, 2, 6]] = 1e-9
    together = fitted(name, feature_costs=costs, cost_weight=1.0, feature_groups=[[0, 1, 2, 3, 5, 6]])
    assert used_by(together) <= {0, 1, 2, 3, 5, 6}
    # one huge price for all: the first to be bought opens the others
    costs = np.where(np.arange(12) < 4, 1e-4, 1e6)
    alone = used_by(fitted(name, feature_costs=costs))
    grouped = used_by(fitted(name, feature_costs=costs, feature_groups=[range(4)]))
    assert alone <= grouped <= set(range(4))


def test_groups_open_what_would_not_be_bought_alone():
    """Features 1 and 2 are each worth less than their price, and 0 is worth it."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(800, 3))
    labels = 3.0 * (rows[:, 0] > 0) + 0.5 * (rows[:, 1] > 0) + 0.4 * (rows[:, 2] > 0)
    rules = {
        "max_iter": 20,
        "max_features": 1.0,
        "gradient_sampling": None,
        "cost_rule": "worth",
        "n_jobs": 1,
    }
    used = {}
    for groups in (None, [[0, 1]], [[2, 0], [1]], [[0, 1, 2]]):
        model = HistGBRTRegressor(feature_costs=[1] * 3, cost_weight=0.5, feature_groups=groups, **rules)
        used[str(groups)] = used_by(model.fit(rows, labels))
    assert list(used.values()) == [{0}, {0, 1}, {0, 2}, {0, 1, 2}]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    split_search=st.sampled_from(["full", "coarse_to_fine", "exact"]),
    weights=st.lists(st.floats(0, 3), min_size=2, max_size=5),
)
def test_the_more_costs_weigh_the_cheaper_is_a_single_split(seed, split_search, weights):
    """Where gain - weight * cost is largest, a larger weight cannot ask for a dearer feature."""
    rng = np.random.default_rng(seed)
    n_bins = rng.integers(2, 15, 4)
    codes = slow.random_codes(rng, 60, n_bins.tolist())
    gradients = rng.normal(size=60)
    costs = FeatureCosts(rng.integers(0, 4, 4).astype(float), np.arange(4))
    paid = []
    for weight in sorted(weights):
        prices = Prices(costs, weight, np.zeros(4, bool))
        grown, _ = slow.grown_on(
            codes, slow.mapper_of(n_bins), gradients, prices=prices, split_search=split_search,
            max_leaf_nodes=2,
        )  # fmt: skip
        feature = grown.leaves["split"]["feature"][0] if len(grown.leaves) > 1 else -1
        paid.append(costs.costs[feature] if feature >= 0 else 0.0)
    assert paid == sorted(paid, reverse=True)


@each
def test_models_become_cheaper_on_average(name):
    """By large steps; not in every single step, for boosting goes another way after each split."""
    total = []
    for weight in (1e-5, 1e-2, 1.0):
        rules = {"feature_costs": COSTS, "cost_weight": weight}
        total.append(sum(cost_of(used_by(fitted(name, random_state=seed, **rules))) for seed in range(3)))
    assert total[0] > total[1] > total[2]


# ---- the unit ---------------------------------------------------------------------------------------


def test_a_feature_is_bought_just_below_its_worth():
    """By how much the best stump lowers the mean squared error, as scikit-learn says."""
    column = X[:, [0]].astype(np.float64)
    for weights in (None, np.random.default_rng(0).uniform(0.5, 4, len(y))):
        stump = DecisionTreeRegressor(max_depth=1, min_samples_leaf=20).fit(column, y, weights).tree_
        share = stump.weighted_n_node_samples / stump.weighted_n_node_samples[0]
        worth = stump.impurity[0] - share[1] * stump.impurity[1] - share[2] * stump.impurity[2]
        rules = {"max_iter": 1, "max_leaf_nodes": 2, "split_search": "exact", "gradient_sampling": None}
        for times, scale in ((1, 1.0), (3, 1.0), (1, 1000.0)):  # rows, and how much each weighs
            rows, labels = np.repeat(column, times, axis=0), np.repeat(y, times)
            own = None if weights is None else scale * np.repeat(weights, times)
            for factor, bought in ((1 - 1e-6, True), (1 + 1e-6, False)):
                model = HistGBRTRegressor(
                    feature_costs=[2.0], cost_rule="worth", cost_weight=factor * worth / 2, n_jobs=1, **rules,
                    min_samples_leaf=20 * times,
                )  # fmt: skip
                assert bool(used_by(model.fit(rows, labels, sample_weight=own))) == bought


def test_the_gain_that_is_kept_is_what_the_loss_falls():
    """Importances do not know of prices."""
    rules = {"max_iter": 1, "max_leaf_nodes": 2, "max_features": 1.0, "gradient_sampling": None, "n_jobs": 1}
    gains = [
        HistGBRTRegressor(feature_costs=cost, cost_weight=0.01, **rules)
        .fit(X, y)
        .ensemble_.feature_importances()
        for cost in (np.zeros(12), np.ones(12))
    ]
    assert gains[1] == pytest.approx(gains[0], rel=1e-12)
    assert gains[0].max() > 0


def test_prices_are_those_of_the_moment():
    """The tree is the one that looks at all its leaves anew before each split; see also test_grower."""
    costs = FeatureCosts(np.array([4.0, 4.0, 1.0]), np.array([0, 0, 2]))
    prices = Prices(costs, 0.5, np.array([False, False, False]))
    prices.begin(10.0)
    assert prices.of_features.tolist() == [20.0, 20.0, 5.0]
    twin = prices.copy()
    twin.use(np.array([False, True, False]))
    assert twin.of_features.tolist() == [0.0, 0.0, 5.0]
    assert not twin.all_free
    twin.use(np.array([False, False, True]))
    assert twin.all_free
    assert prices.of_features.tolist() == [20.0, 20.0, 5.0]
    twin.begin(10.0)
    assert not twin.of_features.any()
    assert Prices.none(3).all_free


# ---- what must not show -----------------------------------------------------------------------------


@each
@pytest.mark.parametrize(("rule", "weight"), [("worth", 1e-3), ("worth", 1e-2), ("rank", 0.1)])
def test_threads_do_not_show(monkeypatch, name, rule, weight):
    monkeypatch.setattr(parallel, "VALUES_PER_THREAD", 1)
    rules = {"feature_costs": COSTS, "cost_weight": weight, "feature_groups": [[2, 3], [5, 10]]}
    rules["cost_rule"] = rule
    digests = {fitted(name, n_jobs=n_jobs, **rules).ensemble_.digest() for n_jobs in (1, 2, 3)}
    assert len(digests) == 1
    assert used_by(fitted(name, **rules))


@each
@pytest.mark.parametrize(("rule", "weight"), [("worth", 3e-3), ("rank", 0.1)])
def test_warm_start_goes_on_with_what_is_paid(name, rule, weight):
    trees = "n_estimators" if "forest" in name else "max_iter"
    rules = {"feature_costs": COSTS, "cost_rule": rule, "cost_weight": weight}
    whole = fitted(name, **rules)
    for first in (1, 2, 4, 5):
        model = fitted(name, warm_start=True, **{trees: first}, **rules)
        model.set_params(**{trees: getattr(whole, trees)}).fit(rows_for(model), y, qid=qid)
        assert model.ensemble_.digest() == whole.ensemble_.digest()


def test_trees_are_grown_alike_once_all_is_paid_for():
    """Leaves are split one by one while a split may change prices, then together, whoever began the fit."""
    X, y = make_ranking(60, n_features=6, random_state=0, return_X_y_qid=True)[:2]
    rules = {"feature_costs": [1.0] * 6, "cost_weight": 1e-6, "max_leaf_nodes": 31, "random_state": 0}
    whole = HistGBRTRegressor(max_iter=12, **rules).fit(X, y)
    first = HistGBRTRegressor(max_iter=6, warm_start=True, **rules).fit(X, y)
    assert first.feature_importances("split").all()
    assert first.set_params(max_iter=12).fit(X, y).ensemble_ == whole.ensemble_


@pytest.mark.parametrize("names", ["str", "int", "array"])
def test_names_and_indices_say_the_same(names):
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(12)])
    by = {"str": lambda f: f"f{f}", "int": int, "array": np.int64}[names]
    costs = {by(f): cost for f, cost in enumerate(COSTS) if cost}
    groups = [[by(2), by(3)], {by(5), by(10)}]
    rules = {"max_iter": 4, "cost_weight": 1e-3, "random_state": 0, "n_jobs": 1}
    named = HistGBRTRegressor(feature_costs=costs, feature_groups=groups, **rules).fit(frame, y)
    plain = HistGBRTRegressor(feature_costs=COSTS, feature_groups=[[2, 3], [5, 10]], **rules).fit(X, y)
    assert nameless(named.ensemble_) == plain.ensemble_


# ---- forests in stages ------------------------------------------------------------------------------


def test_a_stage_does_not_know_what_its_trees_buy():
    """One stage for all: each tree is as if it were the first."""
    rules = {"feature_costs": COSTS, "cost_weight": 3e-3, "max_features": None}
    forest = fitted("forest", stage_size=7, **rules)
    for tree in (0, 3, 6):
        alone = fitted("forest", stage_size=1, n_estimators=tree + 1, **rules)
        same = forest.ensemble_[tree].nodes.tobytes() == alone.ensemble_[tree].nodes.tobytes()
        assert same == (tree == 0)
    costs = [fitted("forest", stage_size=size, **rules).cost_curve(X, y, qid=qid).cost[-1] for size in (1, 7)]
    assert costs[0] <= costs[1]


def test_trees_of_later_stages_use_what_is_paid():
    rules = {"stage_size": 3, "cost_weight": 3e-3, "max_features": None}
    forest = fitted("forest", n_estimators=6, feature_costs=COSTS, **rules)
    paid = COSTS.copy()
    paid[list(used_by(forest, 3))] = 0.0
    as_free = fitted("forest", n_estimators=3, feature_costs=COSTS, warm_start=True, **rules)
    as_free.set_params(n_estimators=6, feature_costs=paid).fit(X, y, qid=qid)
    assert forest.ensemble_ == as_free.ensemble_
    at_first = fitted("forest", n_estimators=6, feature_costs=COSTS, **rules | {"stage_size": 6})
    assert forest.ensemble_.first(3) == at_first.ensemble_.first(3)
    assert forest.ensemble_ != at_first.ensemble_


# ---- boosting from a model --------------------------------------------------------------------------


def test_features_of_init_are_paid_for():
    rules = {"max_iter": 5, "max_features": 1.0, "cost_rule": "worth", "n_jobs": 1, "random_state": 0}
    init = HistGBRTRegressor(feature_costs={f: 1.0 for f in range(12) if f not in (4, 11)}, **rules)
    init.fit(X, y)
    assert used_by(init) == {4, 11}
    model = HistGBRTRegressor(init=init, feature_costs=COSTS, cost_weight=100.0, **rules).fit(X, y)
    assert used_by(model) == {0, 4, 11}
    curve = model.cost_curve(X, y, qid=qid, measure="ndcg@5")
    assert curve.cost.tolist() == [120.0] * 5
    further = HistGBRTRegressor(init=model, feature_costs=COSTS, cost_weight=100.0, **rules).fit(X, y)
    assert used_by(further) == {0, 4, 11}
    assert further.cost_curve(X, y, qid=qid, measure="ndcg@5").cost[0] == 120.0
    early_exit = EarlyExit(at=[2], drop=0.5)
    _, saved = model.predict(X, qid=qid, early_exit=early_exit, return_saved=True)
    with_exit = model.cost_curve(X, y, qid=qid, measure="ndcg@5", early_exit=early_exit)
    of_trees = model.ensemble_.costs_of_trees(COSTS)
    assert with_exit.cost[-1] == of_trees[model.n_init_trees_ + saved.trees].mean()
    alone = EnsembleRanker(model.ensemble_)
    by_ranker = alone.cost_curve(X, y, qid=qid, measure="ndcg@5", feature_costs=COSTS)
    assert by_ranker.cost[model.n_init_trees_ :].tolist() == curve.cost.tolist()
    assert by_ranker.value[model.n_init_trees_ :].tolist() == curve.value.tolist()
    with pytest.raises(ValueError, match="fitted without"):
        alone.cost_curve(X, y, qid=qid)
    dear = HistGBRTRegressor(init=3.0, feature_costs=COSTS, cost_weight=100.0, **rules).fit(X, y)
    assert used_by(dear) == {0}


# ---- by rank ----------------------------------------------------------------------------------------


def stump_by_rank(rows, targets, weights, costs):
    """The feature and cut of the least squared error of both sides plus cost, and by how much it falls."""

    def error(side):
        return (weights[side] * (targets[side] - np.average(targets[side], weights=weights[side])) ** 2).sum()

    found = [
        (error(values <= cut) + error(values > cut) + cost, feature, cut)
        for feature, (values, cost) in enumerate(zip(rows.T, costs, strict=True))
        for cut in np.unique(values)[:-1]
    ]
    least, feature, cut = min(found)
    return feature, cut, error(targets == targets) - (least - costs[feature])


@pytest.mark.parametrize("split_search", ["full", "coarse_to_fine", "exact", "streaming"])
@pytest.mark.parametrize("cost_weight", [0.0, 1.0, 100.0, 1e4])
def test_a_stump_minimises_impurity_plus_cost(split_search, cost_weight):
    features = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows, weights = rng.integers(0, 12, (80, 4)).astype(float), rng.integers(1, 4, 80).astype(float)
        targets = rows @ [0.5, 0.4, 0.2, 0.1] + rng.normal(size=80)
        costs = rng.permutation([30.0, 10.0, 3.0, 1.0])
        model = HistGBRTRegressor(
            feature_costs=costs, cost_rule="rank", cost_weight=cost_weight, max_iter=1, max_leaf_nodes=2,
            min_samples_leaf=1, max_features=1.0, split_search=split_search, gradient_sampling=None, n_jobs=1,
        )  # fmt: skip
        model.fit(rows, targets, sample_weight=weights)
        root = model.ensemble_.nodes[0]
        feature, cut, gain = stump_by_rank(rows, targets, weights, cost_weight * costs)
        assert root["feature"] == feature
        assert (rows[:, feature] <= root["cut"]).tolist() == (rows[:, feature] <= cut).tolist()
        assert root["gain"] == pytest.approx(gain, rel=1e-6)
        features.add(costs[feature])
    assert (features == {1.0}) == (cost_weight == 1e4)


@each
def test_by_rank_costs_decide_which_split_and_never_whether(name):
    """With the default weight and costs up to 100, of which a feature is worth none on so few rows."""
    model, plain = fitted(name, feature_costs=COSTS, cost_rule="rank"), fitted(name)
    splits = [np.count_nonzero(each.ensemble_.nodes["feature"] >= 0) for each in (model, plain)]
    assert splits[0] > 0.7 * splits[1]
    assert cost_of(used_by(model)) < cost_of(used_by(plain))
    assert not used_by(fitted(name, feature_costs=COSTS + 1.0))


def test_by_rank_what_all_features_cost_does_not_matter():
    """As it does not change which of them is best, before the first is bought."""
    rules = {"max_iter": 1, "max_leaf_nodes": 2, "max_features": 1.0, "gradient_sampling": None, "n_jobs": 1}
    stumps = [HistGBRTRegressor(feature_costs=COSTS + more, **rules).fit(X, y) for more in (0.0, 1.0, 64.0)]
    assert len({used_by(stump).pop() for stump in stumps}) == 1
    assert [stump.ensemble_.nodes["gain"][0] for stump in stumps] == pytest.approx(
        [stumps[0].ensemble_.nodes["gain"][0]] * 3, rel=1e-9
    )


def test_prices_by_rank():
    costs = FeatureCosts(np.array([4.0, 4.0, 1.0]), np.array([0, 0, 2]))
    prices = Prices(costs, 0.5, np.array([False, False, False]), "rank")
    prices.begin(10.0)
    assert prices.of_features.tolist() == [0.0, 0.0, -1.5]
    prices.use(np.array([False, True, False]))
    assert prices.of_features.tolist() == [-0.5, -0.5, 0.0]
    prices.use(np.array([False, False, True]))
    assert prices.of_features.tolist() == [0.0, 0.0, 0.0]
    assert prices.all_free


# ---- curves -----------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("groups", [None, [[2, 3, 7], [5, 10]]])
def test_a_curve_is_the_sum_by_hand(name, groups):
    model = fitted(name, feature_costs=COSTS, cost_weight=2e-3, feature_groups=groups)
    rows = rows_for(model)
    curve = model.cost_curve(rows, y, qid=qid, measure="ndcg@5")
    assert curve.n_trees.tolist() == list(range(1, len(model.ensemble_) + 1))
    assert curve.cost.tolist() == [cost_of(used_by(model, k), groups=groups or ()) for k in curve.n_trees]
    ndcg = as_measure("ndcg@5")
    assert curve.value.tolist() == [ndcg(y, s, qid=qid) for s in model.staged_predict(rows)]
    alone = EnsembleRanker(model.ensemble_).cost_curve(
        rows, y, qid=qid, measure="ndcg@5", feature_costs=COSTS, feature_groups=groups
    )
    assert alone.cost.tolist() == curve.cost.tolist()
    if getattr(model, "loss", "") != "poisson":  # whose scores are not the predictions
        assert alone.value.tolist() == curve.value.tolist()
    assert (np.diff(curve.cost) >= 0).all()


EXITS = [EarlyExit(every=2, drop=0.4), EarlyExit(at=[1, 4], drop=[0.5, 0.2], keep_at_least=3)]


@pytest.mark.parametrize("exits", EXITS, ids=repr)
@pytest.mark.parametrize("name", ["lambdamart", "forest"])
def test_rows_that_leave_do_not_pay_for_what_comes(name, exits):
    shuffled = np.random.default_rng(0).permutation(len(y))
    rows, labels, ids = X[shuffled], y[shuffled], qid[shuffled]
    model = fitted(name, feature_costs=COSTS, cost_weight=4e-3 if name == "forest" else 2e-3)
    curve = model.cost_curve(rows, labels, qid=ids, early_exit=exits)
    whole = model.cost_curve(rows, labels, qid=ids)
    assert (curve.cost <= whole.cost).all()
    assert curve.cost[-1] < whole.cost[-1]
    _, saved = model.predict(rows, qid=ids, early_exit=exits, return_saved=True)
    of_trees = model.ensemble_.costs_of_trees(COSTS)
    assert of_trees[0] == 0.0
    assert curve.cost[-1] == pytest.approx(np.mean([of_trees[n] for n in saved.trees]))
    assert curve.value[-1] == model.score(rows, labels, qid=ids, early_exit=exits)
    ndcg = as_measure("ndcg@10")
    order = np.argsort(ids, kind="stable")
    queries = order, np.searchsorted(ids[order], np.arange(17))
    stages = [model.predict(rows, n_trees=n) for n in range(len(of_trees))]
    for k in curve.n_trees.tolist():  # a model of so many trees, with the same exits
        scores, saved = drop_rows(exits, 0, k, len(y), queries, lambda some, _, stop: stages[stop][some], 1)
        assert curve.cost[k - 1] == pytest.approx(of_trees[saved.trees].mean())
        assert curve.value[k - 1] == ndcg(labels, saved.dropped_last(scores), qid=ids)


@pytest.mark.parametrize(
    "exits", [None, EarlyExit(every=2, drop=0.4), EarlyExit(every=2, drop=0.4, among="all")]
)
def test_trees_may_cost_something(exits):
    model = fitted("lambdamart", feature_costs=COSTS, cost_weight=2e-3)
    rules = {"qid": qid, "early_exit": exits}
    free, paid = (model.cost_curve(X, y, tree_cost=cost, **rules) for cost in (0.0, 1.0))
    _, saved = model.predict(X, return_saved=True, **rules)
    seen = np.minimum.outer(free.n_trees, saved.trees)
    assert paid.cost - free.cost == pytest.approx(seen.mean(axis=1))
    assert paid.value.tolist() == free.value.tolist()
    of_trees = model.ensemble_.costs_of_trees(COSTS, tree_cost=1.0)
    assert of_trees.tolist() == (model.ensemble_.costs_of_trees(COSTS) + np.arange(7)).tolist()
    assert paid.cost[-1] == pytest.approx(of_trees[saved.trees].mean())
    for wrong in (-1.0, np.inf, np.nan, "1"):
        with pytest.raises(ValueError, match=r"tree_cost=.*; expected a finite number of at least 0"):
            model.cost_curve(X, y, tree_cost=wrong, **rules)


def test_a_curve_of_a_classifier_and_of_r2():
    seen = y >= 2
    rules = {"max_iter": 4, "feature_costs": COSTS, "cost_weight": 1e-3, "random_state": 0, "n_jobs": 1}
    classifier = HistGBRTClassifier(**rules).fit(X, seen)
    curve = classifier.cost_curve(X, seen)
    assert (curve.measure, curve.value[-1]) == ("score", classifier.score(X, seen))
    by_queries = classifier.cost_curve(X, seen, qid=qid, measure="auc")
    assert by_queries.value[-1] == as_measure("auc")(seen, classifier.decision_function(X), qid=qid)
    regressor = HistGBRTRegressor(**rules).fit(X, y)
    assert regressor.cost_curve(X, y).value[-1] == regressor.score(X, y)
    rmse = regressor.cost_curve(X, y, measure="rmse", early_exit=EarlyExit(at=[2], threshold=np.inf))
    assert rmse.value[-1] == rmse.value[1] == regressor.cost_curve(X, y, measure="rmse").value[1] > 0


def test_other_costs_for_the_curve():
    model = fitted("regressor", max_iter=2)
    with pytest.raises(ValueError, match="fitted without"):
        model.cost_curve(X, y, qid=qid)
    curve = model.cost_curve(X, y, qid=qid, measure="ndcg@10", feature_costs=COSTS, feature_groups=[[2, 3]])
    assert curve.cost[-1] == cost_of(used_by(model), groups=[[2, 3]])
    with pytest.raises(ValueError, match="feature_groups alone"):
        fitted("regressor", feature_costs=COSTS).cost_curve(X, y, feature_groups=[[2, 3]])
    with pytest.raises(ValueError, match="cost_curve needs qid="):
        fitted("lambdamart", max_iter=2).cost_curve(X, y, feature_costs=COSTS)
    with pytest.raises(ValueError, match="cost_curve needs qid="):
        model.cost_curve(X, y, measure="ndcg@10", feature_costs=COSTS)
    with pytest.raises(TypeError, match="early_exit is a float"):
        model.cost_curve(X, y, qid=qid, feature_costs=COSTS, early_exit=0.5)


def test_frames_pipelines_and_pickles():
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(12)])
    rules = {"max_iter": 3, "feature_costs": {"f1": 2, "f4": 3}, "random_state": 0, "n_jobs": 1}
    model = LambdaMARTRanker(cost_weight=1e-3, **rules).fit(frame, y, qid=qid)
    again = pickle.loads(pickle.dumps(model))
    labels = pd.Series(y, index=pd.Index(qid, name="qid"))
    curves = [model.cost_curve(frame, y, qid=qid), again.cost_curve(frame, labels)]
    assert curves[0].cost.tolist() == curves[1].cost.tolist()
    assert curves[0].value.tolist() == curves[1].value.tolist()
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), clone(model))
    pipeline.fit(frame, y, lambdamartranker__qid=qid)
    assert len(pipeline[-1].cost_curve(pipeline[:-1].transform(frame), y, qid=qid).cost) == 3


def test_a_model_without_trees_has_an_empty_curve():
    ensemble = fitted("regressor", max_iter=1).ensemble_.first(0)
    assert ensemble.costs_of_trees(COSTS).tolist() == [0.0]
    curve = EnsembleRanker(ensemble).cost_curve(X, y, qid=qid, feature_costs=COSTS)
    assert len(curve.n_trees) == len(curve.cost) == len(curve.value) == 0


def test_plot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    curve = fitted("lambdamart", feature_costs=COSTS, cost_weight=1e-3).cost_curve(X, y, qid=qid)
    ax = curve.plot(label="one")
    assert curve.plot(ax, color="red") is ax
    assert ax.get_ylabel() == "NDCG @ 10"
    assert ax.get_lines()[0].get_label() == "one"
    assert ax.get_lines()[0].get_xdata().tolist() == curve.cost.tolist()
    assert ax.get_lines()[0].get_ydata().tolist() == curve.value.tolist()
    pyplot.close("all")


def test_plot_without_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    curve = CostCurve("ndcg", np.array([1]), np.array([2.0]), np.array([0.5]))
    with pytest.raises(ImportError, match=r'pip install "ranktrees\[plot\]"'):
        curve.plot()


# ---- what users write -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("costs", "groups", "message"),
    [
        ([1, 2], None, r"shape \(2,\), but X has 4 features"),
        (np.ones((2, 2)), None, r"shape \(2, 2\)"),
        ([1, -1, 0, 0], None, "-1 for feature 'b'; expected a finite number of at least 0"),
        ([1, np.nan, 0, 0], None, "nan for feature 'b'"),
        ([1, np.inf, 0, 0], None, "inf for feature 'b'"),
        (["a", "b", "c", "d"], None, "'a' for feature 'a'"),
        ({"b": -2}, None, "-2 for feature 'b'"),
        ({"b": None}, None, "None for feature 'b'"),
        ({"x": 2}, None, "feature_costs names 'x'"),
        ({4: 2}, None, "feature_costs has the index 4, but X has 4 features"),
        ({-1: 2}, None, "index -1"),
        ({"b": 2, 1: 2}, None, "feature 1 twice, as 'b' and as 1"),
        ([1] * 4, [["a", "x"]], "feature_groups names 'x'"),
        ([1] * 4, [[0, 4]], "feature_groups has the index 4"),
        ([1] * 4, [[0, 1], [1, 2]], "feature_groups has feature 1 twice"),
        ([1, 2, 1, 1], [[2, 0], ["d", "b"]], "'d' and 'b' together, but feature_costs are 1 and 2"),
    ],
)
def test_costs_that_cannot_be_meant(costs, groups, message):
    with pytest.raises(ValueError, match=message):
        FeatureCosts.of(costs, groups, 4, list("abcd"))


@pytest.mark.parametrize("groups", [[0, 0, 1, 1], ["a", "b"], "abcd"])
def test_groups_are_sets(groups):
    with pytest.raises(TypeError, match="expected sets of features"):
        FeatureCosts.of([1] * 4, groups, 4, list("abcd"))


@each
def test_estimators_refuse_costs(name):
    for parameters, message in (
        ({"feature_costs": [1.0]}, "feature_costs has shape"),
        ({"feature_costs": {"a": 1.0}}, "X has no feature names"),
        ({"feature_groups": [[0, 1]]}, "without feature_costs all features are free"),
        (
            {"cost_weight": 0.01},
            r"cost_weight=0.01 .* without feature_costs all features are free: .* leave .* at 1.0",
        ),
        ({"feature_costs": COSTS, "cost_weight": -1.0}, "'cost_weight' parameter"),
        ({"feature_costs": COSTS, "cost_weight": np.nan}, "'cost_weight' parameter"),
        ({"feature_costs": COSTS, "cost_rule": "buy"}, "'cost_rule' parameter"),
        ({"cost_rule": "worth"}, r"cost_rule='worth' .* without feature_costs .* leave cost_rule at 'rank'"),
        ({"feature_costs": 3.0}, "'feature_costs' parameter"),
        ({"feature_costs": COSTS, "cost_weight": 1e308}, "not a finite number"),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(name, **parameters)
    if "forest" in name:
        with pytest.raises(ValueError, match="'stage_size' parameter"):
            fitted(name, feature_costs=COSTS, stage_size=0)
        with pytest.raises(ValueError, match=r"stage_size=2 .* without feature_costs .* leave .* at 8"):
            fitted(name, stage_size=2)


def test_groups_of_many_and_none():
    costs = FeatureCosts.of([1, 1, 1, 2], [[2, 0], [], [3]], 4)
    assert costs.groups.tolist() == [0, 1, 0, 3]
    assert costs.known(np.array([False, False, True, False])).tolist() == [True, False, True, False]
    assert FeatureCosts.of({}, None, 2).costs.tolist() == [0, 0]
    assert FeatureCosts.of([Fraction(1, 2), True], None, 2).costs.tolist() == [0.5, 1.0]
