"""More categories than bytes: levels in the order of labels, told apart without a row's own label."""

import os

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import together
from scipy import sparse

from ranktrees import (
    Ensemble,
    EnsembleRanker,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    RandomForestRanker,
    contributions,
    dump_lightgbm,
    load_lightgbm,
    tree_table,
)
from ranktrees.binning.codes import Codes
from ranktrees.binning.levels import FOLDS, Levels, Targets
from ranktrees.binning.mapper import BinMapper
from ranktrees.datasets import Batches
from ranktrees.processes.communicator import ALONE, training_with
from reference import binning as slow

N_LEVELS = 400


@pytest.fixture(scope="module")
def rows():
    """Three numeric columns, and a level that matters more than they do; queries of ten rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4)).astype(np.float32)
    X[:, 3] = rng.integers(N_LEVELS, size=len(X))
    effects = rng.normal(size=N_LEVELS)[X[:, 3].astype(int)]
    X[::40, 3] = np.nan
    y = X[:, 0] + effects + 0.5 * rng.normal(size=len(X))
    return X, y, np.arange(len(X)) // 10


def regressor(**parameters):
    return HistGBRTRegressor(**{"max_iter": 12, "categorical_features": [3], "random_state": 0} | parameters)


# ---- bins of levels ----------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.integers(1, 60),
    n_levels=st.integers(1, 25),
    max_bins=st.integers(2, 9),
    weighted=st.booleans(),
)
@settings(deadline=None, max_examples=80)
def test_levels_are_those_of_the_slow_twin(seed, n_rows, n_levels, max_bins, weighted):
    rng = np.random.default_rng(seed)
    column = rng.choice(np.append(rng.normal(size=n_levels), np.nan), n_rows)
    labels = rng.integers(-8, 9, n_rows) / 4
    masses = rng.integers(0, 4, n_rows) / 2 if weighted else np.ones(n_rows)
    folds = rng.integers(0, FOLDS, n_rows).astype(np.uint8)
    values = np.array(list(slow.masses(column, masses)))
    found, cuts = Levels.fit(values, column, Targets(labels, masses, folds), max_bins, ALONE)
    known, own_cuts, codes = slow.levels(column, labels, masses, folds.tolist(), max_bins)
    assert found.values.tolist() == known
    np.testing.assert_array_equal(cuts, own_cuts)
    places = {level: place for place, level in enumerate(known)}
    for of, called in ((column, folds), (np.append(column, 99.0), None)):
        expected = [
            codes[None if called is None else fold][places[x]] if x in places else max_bins
            for x, fold in zip(of.tolist(), of if called is None else folds.tolist(), strict=True)
        ]
        assert found.of(of, max_bins, called).tolist() == expected


def test_ranks_find_the_same_levels(rows):
    X, y, _ = rows
    targets = Targets.of(y, np.exp(X[:, 0]), np.arange(len(y)))
    expected = BinMapper.fit(X, weights=targets.masses, categorical=[False] * 3 + [True], targets=targets)

    def fit(ranks):
        own = np.flatnonzero(np.arange(len(y)) % 7 % 3 == ranks.rank)
        mine = Targets(*(each[own] for each in targets))
        mapper = BinMapper.fit(
            X,
            weights=mine.masses,
            order=own,
            categorical=[False] * 3 + [True],
            targets=mine,
            communicator=ranks,
        )
        return mapper.cuts[3].tolist(), mapper.levels[3].values.tolist(), mapper.levels[3].codes.tolist()

    levels = expected.levels[3]
    assert len(levels.values) > 255
    assert (
        together(3, fit) == [(expected.cuts[3].tolist(), levels.values.tolist(), levels.codes.tolist())] * 3
    )


@pytest.mark.parametrize("asarray", [np.asarray, sparse.csr_array])
def test_training_rows_are_coded_by_other_folds_and_others_by_all(asarray):
    rng = np.random.default_rng(0)
    column, labels = rng.integers(300, size=3000).astype(float), rng.normal(size=3000)
    targets = Targets.of(labels, None, np.arange(3000))
    X = asarray(np.column_stack([column, labels]))
    mapper = BinMapper.fit(X, categorical=[True, False], targets=targets)
    codes = Codes.of(mapper.codes(X, folds=targets.folds))
    levels = mapper.levels[0]
    np.testing.assert_array_equal(
        codes.of_feature(0), levels.of(column, mapper.missing_codes[0], targets.folds)
    )
    np.testing.assert_array_equal(mapper.encode(X)[:, 0], levels.of(column, mapper.missing_codes[0]))
    stood_in = mapper.with_stand_ins(X, None, codes)
    np.testing.assert_array_equal(mapper.encode(stood_in).T, list(codes))


def test_flags_beside_levels_share_bytes_and_models_are_those_of_dense_rows(rows):
    X, y, _ = rows
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.random((len(X), 60)) < 0.02, np.nan_to_num(X)]).astype(np.float32)
    sparse_X = sparse.csr_array(X)
    targets = Targets.of(y, None, np.arange(len(y)))
    codes = BinMapper.fit(sparse_X, categorical=np.arange(64) == 63, targets=targets).codes(sparse_X)
    assert codes.shape == X.shape
    assert codes.columns.shape[1] < 12
    model = regressor(max_iter=6, categorical_features=[63])
    whole = model.fit(X, y).ensemble_
    assert model.fit(sparse_X, y).ensemble_ == whole
    model.set_params(max_iter=3).fit(sparse_X, y)
    assert model.set_params(max_iter=6, warm_start=True).fit(sparse_X, y).ensemble_ == whole


def test_the_most_levels():
    X = np.repeat(np.arange(65_536.0), 2)[:, None]
    targets = Targets(X[:, 0], np.ones(len(X)), (np.arange(len(X)) % 2).astype(np.uint8))
    fit = {"categorical": [True], "targets": targets}
    X[-2:] = 0.0
    mapper = BinMapper.fit(X, **fit)
    assert (len(mapper.levels[0].values), mapper.n_bins[0]) == (65_535, 255)
    X[-2:] = 65_535.0
    with pytest.raises(
        ValueError, match="feature 'site' has 65536 distinct values; expected at most 65535: merge"
    ):
        BinMapper.fit(X, **fit, names=["site"])


# ---- models ------------------------------------------------------------------------------------------------


def test_levels_are_learned_where_they_matter_and_left_alone_where_they_do_not(rows):
    X, y, _ = rows
    train, test = slice(0, 3000), slice(3000, None)
    noise = np.column_stack([X[:, :3], np.random.default_rng(1).integers(N_LEVELS, size=len(X))])

    def error(X, **parameters):
        model = regressor(max_iter=100, learning_rate=0.1, **parameters).fit(X[train], y[train])
        return np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2))

    nothing = error(X[:, :3], categorical_features=None)
    assert error(X) < 0.7 * nothing
    assert error(noise) < 1.02 * nothing


def test_noise_of_fewer_categories_than_bins_is_left_alone():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(4000, 3)), rng.integers(100, size=4000)])
    y = X[:, 0] + rng.normal(size=4000)
    for sampling in (1.5, None):
        model = regressor(max_iter=100, gradient_sampling=sampling).fit(X[:2000], y[:2000])
        assert model.feature_importances_[3] < 0.02
        error = np.mean((model.predict(X[2000:]) - y[2000:]) ** 2)
        without = regressor(max_iter=100, gradient_sampling=sampling, categorical_features=None)
        assert error < 1.03 * np.mean(
            (without.fit(X[:2000, :3], y[:2000]).predict(X[2000:, :3]) - y[2000:]) ** 2
        )


@pytest.fixture(scope="module")
def model(rows):
    X, y, _ = rows
    return regressor().fit(X, y)


def test_levels_never_seen_are_missing(rows, model):
    X = np.repeat(rows[0][:50], 3, axis=0)
    X[0::3, 3], X[1::3, 3], X[2::3, 3] = np.nan, N_LEVELS + 3, 0.5
    scores = model.predict(X).reshape(-1, 3)
    assert (scores == scores[:, :1]).all()


def test_all_ways_of_scoring_agree(rows, model, tmp_path):
    X, ensemble = rows[0], model.ensemble_
    assert ensemble.groups[3] is not None
    scores = model.predict(X)
    leaves = ensemble.leaves(X)
    values = ensemble.nodes["value"][ensemble.tree_offsets[:-1] + leaves]
    sums = np.full(len(X), ensemble.base)
    for tree in values.T:
        sums += tree
    np.testing.assert_array_equal(sums, scores)
    np.testing.assert_array_equal(
        ensemble.predict(sparse.csr_array(np.nan_to_num(X))), model.predict(np.nan_to_num(X))
    )
    np.testing.assert_array_equal([ensemble.predict(row[None])[0] for row in X[:20]], scores[:20])
    assert Ensemble.from_bytes(ensemble.to_bytes()) == ensemble
    parts, start = contributions(model, X[:20])
    np.testing.assert_allclose(parts.sum(axis=1) + start, scores[:20], rtol=1e-9)
    dump_lightgbm(model, tmp_path / "model.txt")
    whole = X[X[:, 3] == X[:, 3]]
    np.testing.assert_allclose(
        load_lightgbm(tmp_path / "model.txt").predict(whole), model.predict(whole), rtol=1e-12
    )
    categories = tree_table(model).dropna(subset="categories")["categories"]
    assert categories.map(len).max() < N_LEVELS


def test_models_of_other_orders_are_joined(rows, model):
    X, y, _ = rows
    other = regressor().fit(X[1000:], y[1000:])
    joined = EnsembleRanker.average([model, other])
    expected = (model.predict(X) + other.predict(X)) / 2
    np.testing.assert_allclose(joined.predict(X), expected, rtol=1e-9, atol=1e-12)


def test_levels_of_frames(rows):
    X, y, _ = rows
    names = np.array([f"site {level}" for level in range(N_LEVELS)], object)
    sites = np.where(np.isnan(X[:, 3]), None, names[np.nan_to_num(X[:, 3]).astype(int)])
    frame = pd.DataFrame(X[:, :3], columns=list("abc")).assign(site=sites)
    model = regressor(categorical_features=["site"]).fit(frame, y)
    scores = model.predict(frame)
    typed = frame.astype({"site": "category"})
    by_type = regressor(categorical_features="from_dtype").fit(typed, y)
    assert by_type.ensemble_ == model.ensemble_
    np.testing.assert_array_equal(by_type.predict(typed[::-1]), scores[::-1])
    np.testing.assert_array_equal(Ensemble.from_bytes(model.ensemble_.to_bytes()).predict(frame), scores)


@pytest.mark.parametrize(
    ("kind", "missing"),
    [
        (np.asarray, "learned"),
        (np.asarray, "right"),
        (np.asarray, "three_way"),
        (sparse.csr_array, "learned"),
    ],
)
def test_warm_start_goes_on_as_if_it_had_never_stopped(rows, kind, missing):
    X, y, _ = rows
    X = kind((np.nan_to_num(X) if kind is sparse.csr_array else X)[:, ::-1])
    parameters = {"categorical_features": [0], "handle_missing": missing}
    whole = regressor(**parameters).fit(X, y)
    parts = regressor(**parameters, max_iter=5, warm_start=True).fit(X, y)
    assert parts.set_params(max_iter=12).fit(X, y).ensemble_ == whole.ensemble_


def test_warm_start_on_other_rows_goes_on_from_predictions(rows):
    X, y, _ = rows
    first = regressor(max_iter=5, warm_start=True, gradient_sampling=None).fit(X[:2000], y[:2000])
    scores = first.predict(X[2000:])
    more = first.set_params(max_iter=6, verbose=0).fit(X[2000:], y[2000:])
    root = more.ensemble_[5].nodes[0]
    assert root["value"] == pytest.approx(
        more.learning_rate_ * np.mean(y[2000:] - scores), rel=1e-6, abs=1e-9
    )


def test_checkpoints_go_on_as_if_nothing_had_happened(rows, tmp_path):
    X, y, _ = rows
    path = tmp_path / "fit.ckpt"
    regressor(max_iter=6, checkpoint=path, checkpoint_every=3).fit(X, y)
    whole = regressor().fit(X, y)
    if os.path.exists(path):
        assert regressor(checkpoint=path).fit(X, y).ensemble_ == whole.ensemble_


def test_forests_grow_on_with_their_scores_out_of_bag(rows):
    X, y, qid = rows
    grades = np.digitize(y, [0, 1, 2])
    forest = RandomForestRanker(
        n_estimators=4, oob_score=True, categorical_features=[3], warm_start=True, random_state=0
    ).fit(X, grades, qid=qid)
    whole = RandomForestRanker(n_estimators=6, oob_score=True, categorical_features=[3], random_state=0)
    whole.fit(X, grades, qid=qid)
    forest.set_params(n_estimators=6).fit(X, grades, qid=qid)
    assert forest.ensemble_ == whole.ensemble_
    assert forest.oob_score_ == whole.oob_score_


@pytest.mark.parametrize(
    "make",
    [
        lambda: LambdaMARTRanker(max_iter=4, categorical_features=[3], random_state=0),
        lambda: HistGBRTClassifier(max_iter=4, categorical_features=[3], random_state=0),
        lambda: RandomForestRanker(n_estimators=4, categorical_features=[3], random_state=0),
        lambda: LambdaMARTRanker(
            max_iter=4, categorical_features=[3, 1], split_search="exact", random_state=0
        ),
    ],
    ids=["ranker", "classes", "forest", "exact"],
)
def test_ranks_and_threads_make_the_same_model(rows, make):
    X, y, qid = rows
    X = X.copy()
    X[:, 1] = X[:, 1].round(1)
    grades = np.digitize(y, [0, 1, 2])

    def bytes_of(model):
        return [ensemble.to_bytes() for ensemble in model._ensembles]

    expected = bytes_of(make().fit(X, grades, qid=qid))
    assert expected == bytes_of(make().set_params(n_jobs=3).fit(X, grades, qid=qid))
    if getattr(make(), "split_search", "") == "exact":  # which ranks do not search
        return

    def train(ranks):
        own = np.flatnonzero(qid % 7 % 3 == ranks.rank)
        with training_with(ranks):
            return bytes_of(make().fit(X[own], grades[own], qid=qid[own]))

    assert together(3, train) == [expected] * 3


def test_levels_have_no_direction(rows):
    X, y, _ = rows
    with pytest.raises(ValueError, match="monotonic_cst has a sign for the categorical feature 3"):
        regressor(monotonic_cst={3: 1}).fit(X, y)
    with pytest.raises(ValueError, match="streaming"):
        regressor(split_search="streaming").fit(X[:200], y[:200])


def test_preferences_put_levels_in_order(rows):
    X, y, qid = rows
    first = np.arange(0, len(X), 2)
    pairs = np.column_stack([first, first + 1])
    pairs[y[pairs[:, 0]] < y[pairs[:, 1]]] = pairs[y[pairs[:, 0]] < y[pairs[:, 1]]][:, ::-1]
    ranker = LambdaMARTRanker(loss="ranknet", max_iter=30, categorical_features=[3], random_state=0)
    ranker.fit(X, pairs=pairs, qid=qid)
    assert ranker.feature_importances_[3] > 0.3


def test_batches_make_the_same_model_but_are_not_trained_on(rows):
    X, y, qid = rows
    ends = [1000, 1001, 4000]
    batches = Batches([(X[a:b], y[a:b], qid[a:b]) for a, b in zip([0, *ends[:-1]], ends, strict=True)])
    whole = regressor(warm_start=True).fit(X, y, qid=qid)
    of_batches = regressor(warm_start=True).fit(batches)
    assert of_batches.ensemble_ == whole.ensemble_
    with pytest.raises(ValueError, match=r"X is in batches, .* more than 255 categories \(column 3\)"):
        of_batches.set_params(max_iter=13).fit(batches)
    assert of_batches.ensemble_ == whole.ensemble_
