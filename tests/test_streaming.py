from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import together
from scipy import sparse
from test_grower import data_of

from ranktrees import HistGBRTClassifier, HistGBRTRegressor, LambdaMARTRanker, make_ranking
from ranktrees.binning.mapper import BinMapper
from ranktrees.growing import searching
from ranktrees.growing.streaming import (
    StreamingHistogram,
    known_values,
    mapper_of_values,
    merge_histograms,
    values_of_codes,
)
from ranktrees.model.costs import FeatureCosts, Prices
from ranktrees.processes.communicator import RankError, training_with
from reference import growing as slow
from reference import streaming as twin

# Rows (value, mass, gradient, hessian): whole numbers of few values, and what is not.
numbers = st.one_of(st.integers(-6, 6).map(float), st.floats(-1e6, 1e6))
rows = st.tuples(numbers, st.integers(1, 5).map(float), numbers, numbers)
whole = st.tuples(numbers, *[st.integers(1, 9).map(float)] * 3)


def histogram_of(rows, max_bins):
    values, masses, gradients, hessians = np.array(rows, float).reshape(-1, 4).T
    return StreamingHistogram(max_bins).update(values, gradients, hessians, masses)


def totals(histogram):
    return tuple(float(histogram.centroids[name].sum()) for name in ("mass", "gradient", "hessian"))


# ---- one histogram ----------------------------------------------------------------------------------


@given(st.lists(rows, max_size=60), st.integers(2, 9), st.integers(0, 60))
def test_update_is_its_slow_twin(rows, max_bins, n_first):
    histogram = histogram_of(rows[:n_first], max_bins)
    values, masses, gradients, hessians = np.array(rows[n_first:], float).reshape(-1, 4).T
    histogram.update(values, gradients, hessians, masses)
    assert histogram.centroids.tolist() == twin.updated([], rows, max_bins)


@given(st.lists(st.integers(-40, 40), max_size=300), st.sampled_from([2, 3, 7, 8, 9, 25, 64]))
def test_update_is_its_slow_twin_on_many_ties(values, max_bins):
    rows = [(float(value), 1.0, 0.0, 0.0) for value in values]
    assert histogram_of(rows, max_bins).centroids.tolist() == twin.updated([], rows, max_bins)


def test_update_is_its_slow_twin_where_there_are_many_centroids():
    rng = np.random.default_rng(0)
    rows = [(float(value), 1.0, 0.0, 0.0) for value in rng.lognormal(0, 3, 700)]
    for max_bins in (100, 255):
        assert histogram_of(rows, max_bins).centroids.tolist() == twin.updated([], rows, max_bins)


@given(st.lists(st.lists(rows, max_size=20), min_size=1, max_size=5), st.integers(2, 9), st.booleans())
def test_merge_is_its_slow_twin(shards, max_bins, one_by_one):
    histograms = [histogram_of(shard, max_bins) for shard in shards]
    merged = merge_histograms([one.centroids for one in histograms], max_bins, one_by_one=one_by_one)
    expected = twin.merged([twin.updated([], shard, max_bins) for shard in shards], max_bins, one_by_one)
    assert merged.tolist() == expected
    first, second = histograms[0], histograms[-1]
    assert first.merge(second, one_by_one=one_by_one).centroids.tolist() == twin.merged(
        [first.centroids.tolist(), second.centroids.tolist()], max_bins, one_by_one
    )


def test_bins_that_come_one_by_one_find_other_neighbours():
    """Together 8 and 10 are nearest; but 4.9 comes when 8 is not there."""
    ours, theirs = StreamingHistogram(2).update([0, 10]), StreamingHistogram(2).update([4.9, 8])
    assert ours.merge(theirs).centroids["value"].tolist() == [0, pytest.approx(22.9 / 3)]
    assert ours.merge(theirs, one_by_one=True).centroids["value"].tolist() == [2.45, 9]


@given(st.lists(rows, min_size=1, max_size=30), st.integers(2, 9), st.lists(numbers), st.integers(1, 12))
def test_sum_and_uniform_are_their_slow_twins(rows, max_bins, values, n_parts):
    histogram = histogram_of(rows, max_bins)
    centroids = histogram.centroids.tolist()
    values += [value for value, *_ in centroids]
    assert list(zip(*histogram.sum(values), strict=True)) == [twin.sum_up_to(centroids, x) for x in values]
    assert histogram.uniform(n_parts).tolist() == twin.uniform(centroids, n_parts)


@given(st.lists(st.lists(whole, min_size=1, max_size=20), min_size=1, max_size=4), st.integers(2, 9))
def test_nothing_is_lost(shards, max_bins):
    """Whole numbers add up exactly, in any order."""
    histograms = [histogram_of(shard, max_bins) for shard in shards]
    merged = merge_histograms([histogram.centroids for histogram in histograms], max_bins)
    expected = np.array([row for shard in shards for row in shard])[:, 1:].sum(axis=0).tolist()
    assert [merged[name].sum() for name in ("mass", "gradient", "hessian")] == expected
    for shard, histogram in zip(shards, histograms, strict=True):
        assert totals(histogram) == tuple(np.array(shard)[:, 1:].sum(axis=0).tolist())
        assert tuple(part[0] for part in histogram.sum([np.inf])) == totals(histogram)
        assert tuple(part[0] for part in histogram.sum([-np.inf])) == (0, 0, 0)


@given(st.lists(whole, min_size=1, max_size=60), st.integers(2, 20), st.integers(2, 20))
def test_mass_rises_and_is_parted_equally(rows, max_bins, n_parts):
    histogram = histogram_of(rows, max_bins)
    value, mass = histogram.centroids["value"], histogram.centroids["mass"]
    assert len(value) <= max_bins
    assert (np.diff(value) > 0).all()
    masses = histogram.sum(np.linspace(value[0], value[-1], 200))[0]
    assert (np.diff(masses) >= -1e-9 * mass.sum()).all()
    cuts = histogram.uniform(n_parts)
    assert (np.diff(cuts) >= 0).all()
    inside = (cuts > value[0]) & (cuts < value[-1])
    expected = mass.sum() * np.arange(1, n_parts) / n_parts
    wide = np.diff(value).min(initial=np.inf) > 1e-6 * abs(value).max()  # others: a place between is rounded
    if wide:
        assert histogram.sum(cuts[inside])[0] == pytest.approx(expected[inside])


@given(st.lists(whole, min_size=1, max_size=40))
def test_a_histogram_with_room_knows_every_value(rows):
    rows = sorted(rows)
    histogram = histogram_of(rows, 100)
    values, of_row = np.unique([row[0] for row in rows], return_inverse=True)
    assert histogram.centroids["value"].tolist() == values.tolist()
    assert histogram.centroids["gradient"].tolist() == np.bincount(of_row, [row[2] for row in rows]).tolist()


def test_uniform_values_are_quantiles():
    rng = np.random.default_rng(0)
    values = rng.normal(size=20_000)
    cuts = StreamingHistogram(50).update(values).uniform(10)
    shares = np.searchsorted(np.sort(values), cuts) / len(values)
    assert abs(shares - np.arange(1, 10) / 10).max() < 0.02


def test_what_cannot_be_a_histogram_is_refused():
    with pytest.raises(ValueError, match="max_bins is 1; expected"):
        StreamingHistogram(1)
    with pytest.raises(ValueError, match="max_bins is 256; expected"):
        merge_histograms([], 256)
    with pytest.raises(ValueError, match=r"histograms\[1\] has 3 centroids, but max_bins=2"):
        StreamingHistogram(2).merge(StreamingHistogram(3).update([1, 2, 3]))
    histogram = StreamingHistogram(4)
    with pytest.raises(ValueError, match="is empty"):
        histogram.uniform(3)
    for values in ([np.inf], [1.0, np.nan], [-1e308, 1e308]):
        with pytest.raises(ValueError, match="expected values whose differences are finite"):
            histogram.update(values)
    with pytest.raises(
        ValueError,
        match=r"values have shape \(2,\), but their masses, gradients or hessians have shape \(3,\)",
    ):
        histogram.update([1, 2], gradients=[1, 2, 3])
    with pytest.raises(ValueError, match="masses has an entry that is not above 0"):
        histogram.update([1, 2], masses=[1, 0])
    assert histogram.centroids.tolist() == merge_histograms([], 4).tolist() == []
    assert repr(histogram.update([5])) == "<StreamingHistogram of 1 of 4 centroids>"


# ---- the search -------------------------------------------------------------------------------------


def mapper_of(n_bins, seed):
    """Codes are the ranks of values; and the values of each feature."""
    mapper, rng = slow.mapper_of(n_bins), np.random.default_rng(seed)
    values = [np.sort(rng.permutation(4 * n)[:n] * 0.5 if n % 2 else rng.normal(size=n)) for n in n_bins]
    mapper.values = np.concatenate([np.append(own, np.nan) for own in values])
    return mapper, values


@pytest.fixture
def shards(monkeypatch, request):
    monkeypatch.setattr(searching, "SHARDS", request.param)
    return request.param


any_tree = {
    "max_leaf_nodes": st.sampled_from([None, 2, 9]),
    "max_depth": st.sampled_from([None, 3]),
    "min_samples_leaf": st.integers(1, 5),
    "l2_regularization": st.sampled_from([0.0, 0.5]),
    "min_gain": st.sampled_from([0.0, 1.0]),
    "min_hessian": st.sampled_from([0.0, 2.5]),
    "gradient_sampling": st.sampled_from([None, None, 3]),
    "missing": st.sampled_from(["learned", "left", "right"]),
}


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 1000),
    n_rows=st.integers(1, 120),
    n_bins=st.lists(st.sampled_from([1, 2, 5, 30, 300]), min_size=1, max_size=4),
    kind=st.sampled_from(["ties", "plain", "same", "wide"]),
    max_bins=st.sampled_from([2, 3, 8, 25]),
    n_shards=st.sampled_from([1, 1, 3]),
    n_threads=st.sampled_from([1, 3]),
    priced=st.sampled_from([None, "worth", "rank"]),
    by_estimates=st.booleans(),
    rules=st.fixed_dictionaries(any_tree),
)
def test_grows_the_tree_of_the_slow_twin(
    seed, n_rows, n_bins, kind, max_bins, n_shards, n_threads, priced, by_estimates, rules
):
    codes, gradients, hessians = data_of(seed, n_rows, n_bins, kind=kind)
    mapper, values = mapper_of(n_bins, seed)
    rates, prices = None, None
    if priced:
        rates = np.random.default_rng(seed).integers(0, 4, len(n_bins)) * 0.01
        costs = FeatureCosts(rates, np.arange(len(n_bins)))
        prices = Prices(costs, 1.0, np.zeros(len(n_bins), bool), priced)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "SHARDS", n_shards)
        patch.setattr("ranktrees.support.parallel.VALUES_PER_THREAD", 1)
        grown, rounded = slow.grown_on(
            codes, mapper, gradients, hessians, split_search="pgbrt" if by_estimates else "streaming",
            max_bins=max_bins, n_threads=n_threads, prices=prices, seed=5, tree=7, **rules,
        )  # fmt: skip
    names = ("l2_regularization", "min_gain", "min_samples_leaf", "min_hessian")
    own = slow.Rules(
        rounded.gradient_unit, rounded.hessian_unit, *(rules[name] for name in names),
        sampled=rounded.sampled, missing=rules["missing"],
    )  # fmt: skip
    ends = [n_rows * shard // n_shards for shard in range(1, n_shards + 1)]
    nodes = slow.grow(
        codes, rounded, np.arange(n_rows), mapper, own, max_leaf_nodes=rules["max_leaf_nodes"],
        max_depth=rules["max_depth"], find=twin.finder(values, max_bins, ends, by_estimates),
        rates=rates, ranks=priced == "rank", groups=np.arange(len(n_bins)),
    )  # fmt: skip
    slow.agrees(grown, nodes, codes, mapper)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 1000), st.sampled_from(["learned", "left", "right"]))
def test_with_room_for_every_value_it_is_the_exact_search(seed, missing):
    n_bins = [3, 40, 60, 80]
    codes, gradients, hessians = data_of(seed, 200, n_bins, kind="plain")
    mapper, _ = mapper_of(n_bins, seed)
    rules = {"max_leaf_nodes": 12, "min_samples_leaf": 3, "max_features": 2 if seed % 2 else None}
    rules |= {"missing": missing, "max_bins": 81}
    one, two = (
        slow.grown_on(codes, mapper, gradients, hessians, split_search=search, **rules)[0]
        for search in ("exact", "streaming")
    )
    assert slow.tree_bytes(one, mapper) == slow.tree_bytes(two, mapper)


def friedman(seed, n_rows, missing=0.0):
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 6))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    y += rng.normal(size=n_rows)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize("sampling", [None, 2])
def test_predicts_about_as_well_as_the_exact_search(missing, sampling):
    X, y = friedman(0, 1500, missing)
    rules = {
        "max_iter": 60,
        "learning_rate": 0.1,
        "gradient_sampling": sampling,
        "random_state": 0,
        "n_jobs": 1,
    }
    errors = {}
    for key, search in (
        ("exact", {"split_search": "exact"}),
        (100, {"split_search": "streaming", "max_bins": 100}),
        (25, {"split_search": "streaming", "max_bins": 25}),
        ("pgbrt", {"split_search": "pgbrt", "max_bins": 25}),
    ):
        model = HistGBRTRegressor(**rules, **search).fit(X[:1000], y[:1000])
        errors[key] = np.sqrt(np.square(model.predict(X[1000:]) - y[1000:]).mean())
    assert errors[100] < 1.05 * errors["exact"]
    assert errors[25] < 1.1 * errors["exact"]
    assert errors["pgbrt"] < 1.15 * errors["exact"]


@pytest.mark.parametrize("shards", [1, 4], indirect=True)
def test_neither_threads_nor_the_layout_of_rows_show(shards):
    X, y, qid = make_ranking(30, random_state=0, return_X_y_qid=True)
    for model in (
        LambdaMARTRanker(max_iter=5),
        HistGBRTRegressor(max_iter=5, max_features=1.0, max_leaf_nodes=None, max_depth=4),
        HistGBRTClassifier(max_iter=5, interaction_cst=[{0, 1, 2}]),
    ):
        model.set_params(split_search="streaming", max_bins=12, random_state=0)
        labels = y > 1 if isinstance(model, HistGBRTClassifier) else y
        digests = {
            model.set_params(n_jobs=n_jobs).fit(rows, labels, qid=qid).ensemble_.digest()
            for n_jobs in (1, 3)
            for rows in (X, np.asfortranarray(X), sparse.csr_matrix(X))
        }
        assert len(digests) == 1


def test_how_rows_are_dealt_shows(monkeypatch):
    X, y = friedman(1, 400)
    model = HistGBRTRegressor(max_iter=3, split_search="streaming", max_bins=8, n_jobs=1)
    alone = model.fit(X, y).ensemble_
    assert model.fit(X[::-1], y[::-1]).ensemble_ != alone  # and so does their order
    monkeypatch.setattr(searching, "SHARDS", 4)
    assert model.fit(X, y).ensemble_ != alone


def test_rows_of_weight_zero_have_no_values_of_their_own():
    X = np.array([[0.0], [0.4], [1.0], [2.0], [2.0], [-0.0], [np.nan]])
    weights = np.array([1.0, 0, 1, 1, 1, 1, 1])
    mapper = BinMapper.fit(X, max_bins=None, weights=weights)
    codes = mapper.encode(X)
    expected = np.array([0.0, 1.0, 2.0, np.nan])
    assert values_of_codes(X, None, weights, codes, mapper).tobytes() == expected.tobytes()
    rows = np.array([6, 4, 3, 2, 1, 0, 5])
    found = values_of_codes(X, rows, weights[rows], mapper.encode(X, rows), mapper)
    assert found.tobytes() == expected.tobytes()


def test_what_cannot_be_streamed_is_refused():
    X, y = friedman(2, 60)
    X[:, 0] = X[:, 0].round()
    for rules, message in (
        ({"categorical_features": [0]}, "means of values, but categories have none"),
        (
            {"handle_missing": "three_way"},
            'handle_missing="three_way" needs two together; use split_search="auto"',
        ),
        ({"monotonic_cst": [1, 0, 0, 0, 0, 0]}, "which may violate monotonic_cst"),
    ):
        with pytest.raises(ValueError, match=message):
            HistGBRTRegressor(split_search="streaming", **rules).fit(X, y)
    X[3, 2] = np.inf
    with pytest.raises(ValueError, match="feature 2 of X: streaming histograms compute means"):
        HistGBRTRegressor(split_search="streaming").fit(X, y)
    X[:, 2] = np.nan
    HistGBRTRegressor(split_search="streaming", max_iter=1).fit(X, y)


# ---- over ranks -------------------------------------------------------------------------------------


def stretches(n_rows, size):
    """The rows of each rank as those of shards."""
    ends = n_rows * np.arange(size + 1) // size
    return [slice(start, stop) for start, stop in pairwise(ends.tolist())]


def known_of(model):
    ensemble = model.ensemble_
    nodes = ensemble.nodes.tobytes(), ensemble.base
    return *nodes, model.validation_score_.tolist(), model.train_score_.tolist()


def fitted_together(make, dealt, *rows, others=None, **named):
    """What each rank knows of its model, where ``dealt`` says who has which rows."""

    def train(ranks):
        own, more = dealt[ranks.rank], {}
        if others is not None:
            dealt_others, columns = others
            more = {f"{name}_val": column[dealt_others[ranks.rank]] for name, column in columns.items()}
        model = make().set_params(n_jobs=1 + ranks.rank % 2)
        with training_with(ranks):
            model.fit(*(column[own] for column in rows), **{k: v[own] for k, v in named.items()}, **more)
        return known_of(model)

    return together(len(dealt), train)


def fitted_in_shards(make, size, *rows, others=None, **named):
    more = {} if others is None else {f"{name}_val": column for name, column in others[1].items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "SHARDS", size)
        return known_of(make().fit(*rows, **named, **more))


def ranked(n_queries, seed=0, missing=0.1):
    """Queries of ten rows; some values are whole numbers, some missing."""
    X, y, qid = make_ranking(
        n_queries, rows_per_query=10, n_features=6, random_state=seed, return_X_y_qid=True
    )
    X[:, 3] = X[:, 3].round()
    X[np.random.default_rng(seed).random(X.shape) < missing] = np.nan
    return X, y, qid


TOGETHER = {
    "squared": lambda: HistGBRTRegressor(max_iter=3),
    "squared, by layers, all rows": lambda: HistGBRTRegressor(
        max_iter=3, max_leaf_nodes=None, max_depth=4, max_features=1.0, gradient_sampling=None
    ),
    "squared, some rows": lambda: HistGBRTRegressor(max_iter=3, subsample=0.4, handle_missing="left"),
    "absolute": lambda: HistGBRTRegressor(max_iter=2, loss="absolute_error"),
    "groups and costs": lambda: HistGBRTRegressor(
        max_iter=3, interaction_cst=[{0, 1, 2}, {3, 4}], feature_costs=[0.01] * 6
    ),
    "lambdamart": lambda: LambdaMARTRanker(max_iter=4),
    "lambdamart, some queries": lambda: LambdaMARTRanker(max_iter=3, query_subsample=0.5, min_samples_leaf=1),
}


@pytest.mark.parametrize(("size", "split_search"), [(2, "streaming"), (3, "streaming"), (3, "pgbrt")])
@pytest.mark.parametrize("name", TOGETHER)
def test_ranks_find_what_as_many_shards_find(name, size, split_search):
    X, y, qid = ranked(42)

    def make():
        return TOGETHER[name]().set_params(split_search=split_search, max_bins=7, random_state=0)

    expected = fitted_in_shards(make, size, X, y, qid=qid)
    assert fitted_together(make, stretches(len(y), size), X, y, qid=qid) == [expected] * size


@pytest.mark.parametrize("empty", [0, 1, 2])
def test_a_rank_without_rows_says_nothing(empty):
    X, y, qid = ranked(20)

    def make():
        return LambdaMARTRanker(max_iter=3, split_search="streaming", max_bins=5, random_state=0)

    dealt = stretches(len(y), 2)
    dealt.insert(empty, slice(0, 0))
    expected = fitted_in_shards(make, 2, X, y, qid=qid)
    assert fitted_together(make, dealt, X, y, qid=qid) == [expected] * 3


def test_rows_that_are_followed_see_the_cuts_of_the_model():
    X, y, qid = ranked(40)
    X_val, y_val, qid_val = ranked(20, seed=1)
    X_val[:4, :2] = [[np.inf, -np.inf], [-0.0, 0.0], [1e30, -1e30], [np.nan, np.nan]]
    others = stretches(len(y_val), 2), {"X": X_val, "y": y_val, "qid": qid_val}

    def make():
        return LambdaMARTRanker(
            max_iter=30, learning_rate=0.5, n_iter_no_change=3, split_search="streaming", max_bins=6,
            random_state=0,
        )  # fmt: skip

    expected = fitted_in_shards(make, 2, X, y, qid=qid, others=others)
    assert len(expected[2]) < 30
    assert fitted_together(make, stretches(len(y), 2), X, y, qid=qid, others=others) == [expected] * 2
    nobody = [slice(0), slice(None)], others[1]
    assert fitted_together(make, stretches(len(y), 2), X, y, qid=qid, others=nobody) == [expected] * 2


@pytest.mark.parametrize("size", [2, 3])
def test_who_has_which_rows_shows_and_matters_little(size):
    X, y, qid = ranked(120, missing=0.0)
    train, test = slice(800), slice(800, None)

    def make():
        return HistGBRTRegressor(
            max_iter=15, split_search="streaming", max_bins=15, early_stopping=True, random_state=0
        )

    def quality(model):
        return np.corrcoef(model.predict(X[test]), y[test])[0, 1]

    alone = make().fit(X[train], y[train], qid=qid[train])
    queries = np.random.default_rng(0).permutation(80)
    for parts in (np.array_split(queries, size), np.split(queries, [3, 9][: size - 1])):
        own = [np.flatnonzero(np.isin(qid[train], part)) for part in parts]

        def fit(ranks, own=own):
            rows = own[ranks.rank]
            with training_with(ranks):
                return make().fit(X[rows], y[rows], qid=qid[rows])

        models = together(size, fit)
        assert len({model.ensemble_.digest() for model in models}) == 1
        assert models[0].ensemble_ != alone.ensemble_
        assert quality(models[0]) > quality(alone) - 0.05


def test_ranks_that_have_different_features_and_values():
    """A feature without values, or of one value, on some rank; more ranks than there are features."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (60, 2)).astype(float)
    X[:20, 0], X[20:40, 0] = np.nan, 3.0
    X[40:, 1] = 1.0
    y = np.nan_to_num(X[:, 0], nan=1.5) + X[:, 1] + rng.random(60)

    def make():
        return HistGBRTRegressor(
            max_iter=5, min_samples_leaf=2, split_search="streaming", max_bins=3, random_state=0
        )

    for columns in ([0, 1], [0], [1]):
        own = np.ascontiguousarray(X[:, columns])
        expected = fitted_in_shards(make, 3, own, y)
        assert fitted_together(make, stretches(60, 3), own, y) == [expected] * 3


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.lists(st.one_of(numbers, st.just(np.nan)), max_size=8), min_size=3, max_size=3),
    st.lists(numbers, max_size=4),
)
def test_a_cut_is_between_the_values_of_all_ranks(values, others):
    everything = np.array([value for own in values for value in own])
    known = np.unique(everything[~np.isnan(everything)])
    if len(known) < 2:
        return
    cuts = BinMapper.fit(everything[:, None], max_bins=None).cuts[0]

    def ask(ranks):
        X, X_others = (np.array(own, float)[:, None] for own in (values[ranks.rank], others))
        mapper, codes = mapper_of_values(X, None, None, None, 1, ranks)
        told, codes_of_others = mapper.for_others(X_others, None, 1)
        features = np.zeros(len(known) - 1, int)
        asked = np.array(mapper.codes_of(features, known[:-1]))
        assert mapper.cut_values(features, asked).tolist() == cuts.tolist()
        assert mapper.cut_values(features[:1], mapper.codes_of(features[:1], known[-1:])) == [np.inf]
        assert known_values(mapper)[0][[0, -1]].tolist() == known[[0, -1]].tolist()
        for rows, own, seen in ((X, mapper, codes), (X_others, told, codes_of_others)):
            left = seen[:, 0] <= np.array(own.codes_of(features, cuts))[:, None]
            assert (left == (rows[:, 0] <= cuts[:, None])).all()

    together(3, ask)


def test_infinite_values_of_one_rank_are_refused_on_all():
    X, y, qid = ranked(20)
    X[3, 2] = np.inf

    def train(ranks):
        own = stretches(len(y), 2)[ranks.rank]
        with training_with(ranks), pytest.raises((ValueError, RankError), match="feature 2 of X"):
            HistGBRTRegressor(split_search="streaming").fit(X[own], y[own], qid=qid[own])

    together(2, train)
