from itertools import pairwise

import numpy as np
import pytest
from ranks import together
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor

from ranktrees import HistGBRTRegressor, LambdaMARTRanker, RandomForestRanker, make_ranking
from ranktrees.binning.mapper import BinMapper
from ranktrees.growing import split_search
from ranktrees.growing.constraints import Constraints
from ranktrees.growing.over_ranks import FullOverRanks
from ranktrees.growing.searching import CoarseToFine, DirectSearch, FullSearch
from ranktrees.growing.split_search import MANY_FEATURES, searches
from ranktrees.processes.communicator import training_with
from ranktrees.processes.sharing import Share
from ranktrees.rows.sampling import rows_to_cut
from ranktrees.support import parallel
from reference import growing as slow


def kind_of(split_search, n_features, *, n_bins=20, categorical=(), usable=None, **constraints):
    """The search that is chosen."""
    n_bins = [n_bins] * n_features
    codes = slow.random_codes(np.random.default_rng(0), 30, n_bins)
    usable = np.arange(n_features) if usable is None else usable
    found = searches(
        split_search,
        codes,
        slow.mapper_of(n_bins, categorical),
        Constraints(usable, n_features, **constraints),
        1,
    )
    return found.func


@pytest.mark.parametrize(
    ("n_features", "options", "expected"),
    [
        (MANY_FEATURES - 1, {}, FullSearch),
        (MANY_FEATURES, {}, CoarseToFine),
        (MANY_FEATURES, {"categorical": {3}}, FullSearch),
        (MANY_FEATURES + 1, {"categorical": {3}, "usable": np.r_[:3, 4:65]}, CoarseToFine),
        (MANY_FEATURES, {"usable": np.arange(1, 64)}, FullSearch),
        (2 * MANY_FEATURES, {"max_features": 16}, CoarseToFine),
        (2 * MANY_FEATURES, {"max_features": 15}, DirectSearch),
        (MANY_FEATURES, {"interactions": [{0, 1}]}, CoarseToFine),
        (MANY_FEATURES, {"missing": "left"}, CoarseToFine),
        (MANY_FEATURES, {"missing": "three_way"}, FullSearch),
        (2 * MANY_FEATURES, {"missing": "three_way", "max_features": 16}, DirectSearch),
        (MANY_FEATURES - 1, {"interactions": [{0, 1}]}, DirectSearch),
        (MANY_FEATURES, {"usable": np.empty(0, int)}, DirectSearch),
        (MANY_FEATURES, {"n_bins": 8}, CoarseToFine),
        (MANY_FEATURES, {"n_bins": 7}, FullSearch),
        (MANY_FEATURES, {"n_bins": 7, "max_features": 16}, FullSearch),
        (MANY_FEATURES - 1, {"n_bins": 7, "max_features": 16}, DirectSearch),
    ],
)
def test_auto_looks_coarsely_first_where_splits_choose_among_many_numbers(n_features, options, expected):
    assert kind_of("auto", n_features, **options) is expected


def test_what_is_asked_for_is_done():
    assert kind_of("full", 40) is FullSearch
    assert kind_of("full", 40, max_features=39) is DirectSearch
    assert kind_of("full", 3, interactions=[{0, 1}]) is DirectSearch
    assert kind_of("coarse_to_fine", 1) is CoarseToFine
    assert kind_of("coarse_to_fine", 3, max_features=1) is CoarseToFine
    assert kind_of("coarse_to_fine", 3, categorical={1}, usable=np.array([0, 2])) is CoarseToFine
    assert kind_of("exact", 80, n_bins=255) is FullSearch
    assert kind_of("exact", 80, n_bins=256) is DirectSearch


def test_categories_have_no_neighbours():
    with pytest.raises(ValueError, match="categories have no neighbours"):
        kind_of("coarse_to_fine", 3, categorical={1})
    X, y = np.arange(40.0).reshape(20, 2) // 4, np.arange(20.0)
    rules = {"categorical_features": [1], "min_samples_leaf": 4, "max_iter": 2, "n_jobs": 1}
    model = HistGBRTRegressor(split_search="coarse_to_fine", **rules)
    with pytest.raises(ValueError, match='split_search="auto"'):
        model.fit(X, y)


def test_cells_hide_what_happens_within_them():
    """Where the coarse search fails: a wave in step with the cells, whose two halves cancel in each."""
    codes = np.repeat(np.arange(240, dtype=np.uint8), 2)[:, None]
    gradients = np.where(codes[:, 0] % 16 < 8, 1.0, -1.0)
    mapper = slow.mapper_of([240])
    full, coarse = (
        slow.grower_of(codes, mapper, split_search=search).grow(gradients, np.ones(480))
        for search in ("full", "coarse_to_fine")
    )
    assert full.is_leaf.sum() == 30
    assert coarse.is_leaf.sum() == 1
    out_of_step = np.where(codes[:, 0] % 20 < 10, 1.0, -1.0)
    grower = slow.grower_of(codes, mapper, split_search="coarse_to_fine")
    assert grower.grow(out_of_step, np.ones(480)).is_leaf.sum() > 10
    X, y = codes.astype(float), -gradients
    rules = {"max_iter": 1, "learning_rate": 1.0, "min_samples_leaf": 1, "max_leaf_nodes": 31, "n_jobs": 1}
    rules["gradient_sampling"] = None
    for search, error in (("full", 0.0), ("coarse_to_fine", 1.0), ("auto", 0.0)):
        model = HistGBRTRegressor(split_search=search, **rules).fit(X, y)
        assert np.square(model.predict(X) - y).mean() == error


@pytest.mark.parametrize("max_features", [1.0, 0.5])
def test_predicts_about_as_well_by_cells(max_features):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8))
    y = X[:, 0] + np.sin(2 * X[:, 1]) + 0.1 * rng.normal(size=600)
    errors = []
    for search in ("full", "coarse_to_fine"):
        model = HistGBRTRegressor(
            max_iter=60,
            learning_rate=0.1,
            max_features=max_features,
            split_search=search,
            random_state=0,
            n_jobs=1,
        )
        predicted = model.fit(X[:500], y[:500]).predict(X[500:])
        errors.append(np.square(predicted - y[500:]).mean())
    assert errors[1] < 1.5 * errors[0] < 0.1 * y.var()


# ---- exact ------------------------------------------------------------------------------------------


def values_of(seed, n_rows, n_values, n_features=4, missing=0.0):
    """Rows of at most so many distinct values in each feature, labels that depend on them, and weights."""
    rng = np.random.default_rng(seed)
    values = np.sort(rng.lognormal(0, 2, (n_values, n_features)), axis=0)
    X = np.take_along_axis(values, rng.integers(0, n_values, (n_rows, n_features)), axis=0)
    signal = np.log(X[:, 0]) + np.sin(np.log(X[:, 1])) + rng.normal(size=n_rows)
    y = np.searchsorted(np.quantile(signal, [0.5, 0.7, 0.9]), signal).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y, rng.integers(0, 3, n_rows).astype(float)


ANY_MODEL = [
    HistGBRTRegressor(max_features=1.0),
    HistGBRTRegressor(max_features=1.0, gradient_sampling=None, min_samples_leaf=3, max_leaf_nodes=None),
    HistGBRTRegressor("poisson", subsample=0.7, interaction_cst=[{0, 1}, {1, 2}]),
    HistGBRTRegressor(monotonic_cst=[1, 0, -1, 0], l2_regularization=1.0, max_features=1.0),
    HistGBRTRegressor(categorical_features=[3]),
    LambdaMARTRanker(max_features=1.0),
    LambdaMARTRanker(query_subsample=0.8, early_stopping=True, gradient_sampling=None),
    RandomForestRanker(3, min_samples_leaf=1),
    RandomForestRanker(3, max_features=None, bootstrap_unit="query", max_leaf_nodes=20),
]


def fitted(model, X, y, weights=None, **parameters):
    model = type(model)(**model.get_params() | {"random_state": 0, "n_jobs": 1} | parameters)
    if not isinstance(model, RandomForestRanker):
        model.set_params(max_iter=3)
    return model.fit(X, y, sample_weight=weights, qid=np.arange(len(y)) // 10)


@pytest.mark.parametrize("number", range(len(ANY_MODEL)))
@pytest.mark.parametrize("n_values", [2, 40, 255])
def test_exact_and_full_are_one_where_bins_suffice(number, n_values):
    """The same bytes: cuts are half-way between neighbouring values, and ties are decided alike."""
    X, y, weights = values_of(number, 400, n_values, missing=0.1)
    for rows in (X, X.astype(np.float32), sparse.csr_array(np.nan_to_num(X))):
        models = [fitted(ANY_MODEL[number], rows, y, weights, split_search=s) for s in ("full", "exact")]
        assert models[0].ensemble_.digest() == models[1].ensemble_.digest()
    assert len(models[1].ensemble_.nodes) > len(models[1].ensemble_)


@pytest.mark.parametrize("number", range(len(ANY_MODEL)))
def test_codes_of_four_bytes_lead_to_the_same_model(monkeypatch, number):
    """Whatever a feature of many values makes of the others' codes."""
    X, y, weights = values_of(number, 300, 200, missing=0.1)
    plain = fitted(ANY_MODEL[number], X, y, weights, split_search="exact")
    encode = BinMapper.encode
    monkeypatch.setattr(
        BinMapper, "encode", lambda *arguments: slow.readable(encode(*arguments), dtype=np.uint32)
    )
    assert fitted(ANY_MODEL[number], X, y, weights, split_search="exact").ensemble_ == plain.ensemble_


@pytest.mark.parametrize("number", range(len(ANY_MODEL)))
def test_exact_models_do_not_depend_on_threads(monkeypatch, number):
    monkeypatch.setattr(parallel, "VALUES_PER_THREAD", 1)
    X, y, weights = values_of(number, 700, 600, missing=0.1)
    X[:, 3] = np.round(X[:, 3]) % 9
    digests = {
        fitted(ANY_MODEL[number], X, y, weights, split_search="exact", n_jobs=n_jobs).ensemble_.digest()
        for n_jobs in (1, 1, 2, 3, 4)
    }
    assert len(digests) == 1


def rare_flags(seed, n_rows=1000, n_flags=99, n_on=12):
    """(X, y) with one useful column, and flags that are on in fewer rows than a leaf must have."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n_rows, 1 + n_flags))
    X[:, 0] = rng.normal(size=n_rows)
    for flag in X[:, 1:].T:
        flag[rng.choice(n_rows, n_on, replace=False)] = 1.0
    return X, X[:, 0] + 3 * X[:, 1:] @ rng.normal(size=n_flags)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    "options", [{}, {"max_features": 0.3}, {"max_leaf_nodes": None, "max_depth": 5}], ids=str
)
@pytest.mark.parametrize("kind", [HistGBRTRegressor, LambdaMARTRanker])
def test_features_that_cannot_be_split_on_do_not_hide_others(monkeypatch, kind, options, n_jobs):
    """Four of them fill a shortlist; a coarse search then looks further, whether leaves have lines or not."""
    X, y = rare_flags(0)
    y = np.digitize(y, np.quantile(y, [0.5, 0.75, 0.9]))
    model = kind(max_iter=6, max_leaf_nodes=16, random_state=0, n_jobs=n_jobs).set_params(**options)
    monkeypatch.setattr(parallel, "VALUES_PER_THREAD", 1)

    def grown(split_search, n_bytes):
        monkeypatch.setattr("ranktrees.growing.searching.LINES_BYTES", n_bytes)
        fitted = clone(model).set_params(split_search=split_search).fit(X, y, qid=np.arange(1000) // 20)
        return fitted.ensemble_

    full, coarse = (grown(search, 1 << 28) for search in ("full", "coarse_to_fine"))
    assert min(len(tree.nodes) for tree in coarse) > 1
    assert len(coarse.nodes) > 0.5 * len(full.nodes)
    for n_bytes in (0, 3 * 8 * 16 * 100):
        assert grown("coarse_to_fine", n_bytes).digest() == coarse.digest()


@pytest.mark.parametrize("n_columns", [63, 64, 65])
def test_a_further_column_does_not_make_stumps(n_columns):
    """From 64 columns on, the search is coarse: a flag of half the rows, and others of six rows each."""
    X = np.zeros((400, n_columns))
    X[:, 0] = np.arange(400) % 2
    for j in range(1, n_columns):
        X[6 * j : 6 * j + 6, j] = 1
    y = X[:, 0] + 30 * X[:, 1:5].sum(axis=1)
    model = HistGBRTRegressor(max_iter=10, random_state=0).fit(X, y)
    assert [len(tree.nodes) for tree in model.ensemble_] == [3] * 10


@pytest.mark.parametrize("max_features", [1.0, 0.7])
def test_layers_have_children_of_enough_rows(monkeypatch, max_features):
    """One row wants what no other does: its split is refused, whoever searches the first leaves of a tree."""
    monkeypatch.setattr(parallel, "VALUES_PER_THREAD", 1)
    rng = np.random.default_rng(0)
    X, y, weights = rng.normal(size=(400, 3)), 0.01 * rng.normal(size=400), rng.integers(0, 3, 400)
    outlier = np.argmax(X[:, 1])
    y[outlier], weights[outlier] = 100.0, 2
    model = HistGBRTRegressor(
        max_features=max_features, gradient_sampling=None, min_samples_leaf=5, max_leaf_nodes=None
    )
    models = [fitted(model, X, y, weights, split_search="exact", n_jobs=n_jobs) for n_jobs in (1, 2, 4)]
    assert len({each.ensemble_.digest() for each in models}) == 1
    counts = models[0].ensemble_.nodes["count"]
    assert len(counts) > 3
    assert counts.min() >= 5


@pytest.mark.parametrize("rules", [{"max_depth": 3}, {"max_depth": None, "max_leaf_nodes": 16}])
@pytest.mark.parametrize("min_samples_leaf", [1, 9])
@pytest.mark.parametrize("weighted", [False, True])
def test_grows_the_trees_of_scikit_learn(rules, min_samples_leaf, weighted):
    """Theirs cut half-way between neighbours in the leaf: rows of another set may fall differently.

    Up to 16 leaves ours are split one by one, too.
    """
    rng = np.random.default_rng(3)
    X = rng.normal(size=(700, 5)).astype(np.float32)
    X[:, 1] = np.round(X[:, 1], 1)
    y = X[:, 0] - X[:, 1] * X[:, 2] + rng.normal(size=700)
    weights = rng.uniform(0.5, 2, 700) if weighted else None
    rules = {"learning_rate": 0.3, "min_samples_leaf": min_samples_leaf} | rules
    theirs = GradientBoostingRegressor(n_estimators=8, random_state=0, **rules).fit(X, y, weights)
    rules = {"max_leaf_nodes": None} | rules
    ours = HistGBRTRegressor(
        max_iter=8, max_features=1.0, split_search="exact", gradient_sampling=None, n_jobs=1, **rules
    )
    ours.fit(X, y, sample_weight=weights)
    assert ours.predict(X) == pytest.approx(theirs.predict(X), abs=1e-12)


def test_sees_what_bins_hide():
    """A step between two values of a thousand, off the edges of all bins."""
    X = np.arange(1000.0)[:, None]
    y = (X[:, 0] > 501) * 1.0
    rules = {"max_iter": 1, "learning_rate": 1.0, "max_leaf_nodes": 2, "min_samples_leaf": 1, "n_jobs": 1}
    errors = {}
    for search in ("full", "exact"):
        model = HistGBRTRegressor(split_search=search, gradient_sampling=None, **rules).fit(X, y)
        errors[search] = np.square(model.predict(X) - y).mean()
    assert model.ensemble_.nodes["cut"][0] == 501.5
    assert errors["exact"] == pytest.approx(0.0, abs=1e-20)
    assert errors["full"] > 1e-4


def test_cuts_are_half_way_between_neighbours():
    X, y, _ = values_of(0, 900, 700)
    nodes = fitted(HistGBRTRegressor(min_samples_leaf=1), X, y, split_search="exact").ensemble_.nodes
    for f in range(X.shape[1]):
        middles = {a / 2 + b / 2 for a, b in pairwise(np.unique(X[:, f]).tolist())}
        cuts = set(nodes["cut"][nodes["feature"] == f].tolist())
        assert cuts
        assert cuts <= middles


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_only_the_order_of_values_matters(missing):
    X, y, _ = values_of(1, 800, 600, missing=missing)
    ranks = np.where(np.isnan(X), np.nan, X.argsort(axis=0).argsort(axis=0))
    for f in range(X.shape[1]):
        known = ~np.isnan(X[:, f])
        ranks[known, f] = np.unique(X[known, f], return_inverse=True)[1]
    model = LambdaMARTRanker(min_samples_leaf=2)
    one, two = (fitted(model, rows, y, split_search="exact") for rows in (X, ranks))
    assert one.predict(X).tolist() == two.predict(ranks).tolist()


def test_one_row_more_is_one_weight_more():
    X, y, weights = values_of(2, 500, 400)
    y += np.random.default_rng(0).normal(size=500)
    times = weights.astype(int)
    rules = {"split_search": "exact", "gradient_sampling": None, "min_samples_leaf": 1, "max_features": 1.0}
    model = HistGBRTRegressor(**rules)
    weighted = fitted(model, X, y, weights)
    repeated = fitted(model, np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.predict(X) == pytest.approx(repeated.predict(X), abs=1e-9)


def test_neighbours_of_float32_are_told_apart():
    up = np.nextafter(np.float32(1), np.float32(2))
    X = np.repeat(np.array([1, up], np.float32), 10)[:, None]
    X = np.vstack([X, np.arange(2, 302, dtype=np.float32)[:, None]])
    y = np.r_[np.zeros(10), np.ones(10), np.full(300, 5.0)]
    model = HistGBRTRegressor(
        max_iter=1,
        learning_rate=1.0,
        min_samples_leaf=1,
        split_search="exact",
        gradient_sampling=None,
        n_jobs=1,
    ).fit(X, y)
    assert model.predict(X) == pytest.approx(y)
    assert model.predict(X.astype(np.float64)) == pytest.approx(y)


def test_scores_of_other_rows_are_followed():
    """Their values are none of the training rows'."""
    X, y, _ = values_of(0, 600, 500)
    X_val, y_val, _ = values_of(1, 300, 300, missing=0.1)
    qid, qid_val = np.arange(600) // 10, np.arange(300) // 10
    ranker = LambdaMARTRanker(max_iter=9, split_search="exact", random_state=0, n_jobs=1)
    ranker.fit(X, y, qid=qid, X_val=X_val, y_val=y_val, qid_val=qid_val)
    followed = ranker.validation_score_[ranker.best_iteration_ - 1]
    assert followed == ranker.score(X_val, y_val, qid=qid_val)


def test_bins_cannot_be_limited_where_there_are_none():
    X, y, qid = make_ranking(5, random_state=0, return_X_y_qid=True)
    for estimator in (HistGBRTRegressor, LambdaMARTRanker, RandomForestRanker):
        with pytest.raises(ValueError, match=r'max_bins=64 joins values, but split_search="exact"'):
            estimator(split_search="exact", max_bins=64).fit(X, y, qid=qid)
        with pytest.raises(ValueError, match=r'subsample_for_bin=7 draws rows, but split_search="exact"'):
            estimator(split_search="exact", subsample_for_bin=7).fit(X, y, qid=qid)
    with pytest.raises(ValueError, match=r'split_search="streaming" uses all of them'):
        HistGBRTRegressor(split_search="streaming", subsample_for_bin=7).fit(X, y)


def test_bins_are_cut_by_about_so_many_rows():
    X, y, _ = make_ranking(20, random_state=0, return_X_y_qid=True)

    def model(n_drawn, rows=X, **rules):
        model = HistGBRTRegressor(max_iter=3, early_stopping=False, subsample_for_bin=n_drawn, **rules)
        return model.fit(rows, y).ensemble_

    rules = {"gradient_sampling": None, "max_features": 1.0, "max_depth": 1, "max_leaf_nodes": 2}
    drawn = rows_to_cut(Share.alone([0, len(y)]), len(y), 60)
    cuts = BinMapper.fit(X, drawn=drawn).cuts
    few = model(60, **rules)
    splits = few.nodes[few.nodes["feature"] >= 0]
    assert len(splits)
    assert all(node["cut"] in cuts[node["feature"]] for node in splits)
    assert few == model(60, sparse.csr_array(X), n_jobs=2, random_state=7, **rules)
    assert few != model(None, **rules)
    assert model(len(y), random_state=0) == model(None, random_state=0)


@pytest.mark.parametrize(
    ("options", "most"),
    [({}, 4), ({"gradient_sampling": None}, 8), ({"handle_missing": "right"}, 4), ({"max_features": 1.0}, 4)],
)
def test_ranks_send_sums_and_numbers_of_rows_in_few_bits(options, most, monkeypatch):
    """Children of too few rows are found out, and other splits found, as in one process."""
    X, y, qid = make_ranking(40, rows_per_query=20, random_state=0, return_X_y_qid=True)
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    add_up_own, bytes_of_cell = FullOverRanks.add_up_own, {True: set(), False: set()}

    def watched(search, lines, places, lanes):
        before = search.communicator.traffic["bytes"]
        add_up_own(search, lines, places, lanes)
        sent = search.communicator.traffic["bytes"] - before
        bytes_of_cell[lines is search.lines].add(sent / (3 / 4) / (len(places) * search.packing.n_cells))

    monkeypatch.setattr(FullOverRanks, "add_up_own", watched)
    rules = {"max_iter": 5, "split_search": "full", "min_samples_leaf": 50, "random_state": 0}
    ranker = LambdaMARTRanker(**rules | options)

    def train(ranks):
        own = np.minimum(qid % 5, 2) == ranks.rank  # the fourth has none
        with training_with(ranks):
            return clone(ranker).fit(X[own], y[own], qid=qid[own]).ensemble_.nodes.tobytes()

    assert together(4, train) == 4 * [ranker.fit(X, y, qid=qid).ensemble_.nodes.tobytes()]
    assert max(bytes_of_cell[True]) <= 1.01 * most
    assert max(bytes_of_cell[False]) <= 2


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"min_samples_leaf": 1},
        {"gradient_sampling": None},
        {"feature_costs": np.linspace(0, 1, 80), "cost_weight": 0.01},
        {"monotonic_cst": {3: 1, 4: -1}},
    ],
)
def test_features_that_leaves_draw_are_searched_by_lines_or_by_rows(options, n_jobs, monkeypatch):
    """Flags: a line of all bins is short, and shows the splits that the rows show."""
    monkeypatch.setattr(parallel, "VALUES_PER_THREAD", 1)
    rng = np.random.default_rng(0)
    X = (rng.random((3000, 80)) < rng.choice([0.01, 0.05, 0.3], 80)) * rng.choice([1.0, 2.0], (3000, 80))
    X[rng.random(X.shape) < 0.01] = np.nan
    y = np.nan_to_num(X) @ rng.normal(size=80) + rng.normal(size=3000)
    rules = {"max_iter": 4, "max_features": 0.2, "split_search": "full", "random_state": 0, "n_jobs": n_jobs}
    model, found = HistGBRTRegressor(**rules, **options), []
    for many in (80, 81):
        monkeypatch.setattr(split_search, "MANY_FEATURES", many)
        found.append(model.fit(X, y, np.abs(y)).ensemble_.nodes.tobytes())
    assert found[0] == found[1]
