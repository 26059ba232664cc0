"""Sparse rows train the models that the same rows train if they are dense, in memory that follows entries."""

import pickle
import resource

import numpy as np
import pytest
from ranks import together
from scipy import sparse

from ranktrees import HistGBRTRegressor, LambdaMARTRanker, RandomForestRanker
from ranktrees.binning import BinMapper
from ranktrees.processes.communicator import training_with


def shop_log(seed=0, n_queries=60, n_columns=300):
    """(X, y, qid): rare counts, many of them of too few rows; some entries are missing or 0."""
    rng = np.random.default_rng(seed)
    n = 20 * n_queries
    rates = rng.choice([0.002, 0.01, 0.05, 0.3], n_columns)
    X = sparse.csr_matrix(
        (rng.random((n, n_columns)) < rates) * rng.integers(1, 4, (n, n_columns)), dtype=float
    )
    X.data[rng.random(X.nnz) < 0.02] = np.nan
    X.data[rng.random(X.nnz) < 0.02] = 0
    worth = np.nan_to_num(X.toarray()) @ rng.normal(size=n_columns) + rng.normal(size=n)
    return X, np.digitize(worth, np.quantile(worth, [0.5, 0.8, 0.95])), np.repeat(np.arange(n_queries), 20)


def bytes_of(model):
    return [(ensemble.nodes.tobytes(), ensemble.bitsets.tobytes()) for ensemble in model._ensembles]


COMMON = {"random_state": 1, "min_samples_leaf": 12, "n_jobs": 2}
KINDS = {
    "lambdamart": LambdaMARTRanker(max_iter=5, **COMMON),
    "full": LambdaMARTRanker(max_iter=5, split_search="full", **COMMON),
    "exact": LambdaMARTRanker(max_iter=5, split_search="exact", **COMMON),
    "streaming": LambdaMARTRanker(max_iter=2, split_search="streaming", max_leaf_nodes=5, **COMMON),
    "drawn features": LambdaMARTRanker(max_iter=5, max_features=0.3, **COMMON),
    "some queries": LambdaMARTRanker(max_iter=5, query_subsample=0.5, **COMMON),
    "monotone": HistGBRTRegressor(max_iter=5, monotonic_cst={3: 1, 17: -1, 200: 1}, **COMMON),
    "interactions": HistGBRTRegressor(max_iter=5, interaction_cst=[range(200), range(150, 300)], **COMMON),
    "categories": HistGBRTRegressor(max_iter=5, categorical_features=[0, 1, 2, 3], **COMMON),
    "prices": HistGBRTRegressor(max_iter=5, feature_costs=[1, 2] * 150, cost_weight=0.01, **COMMON),
    "three ways": HistGBRTRegressor(max_iter=5, handle_missing="three_way", **COMMON),
    "forest": RandomForestRanker(4, oob_score=True, **COMMON),
}


@pytest.mark.parametrize("kind", KINDS)
def test_sparse_and_dense_rows_make_the_same_model(kind):
    X, y, qid = shop_log()
    ours = pickle.loads(pickle.dumps(KINDS[kind])).fit(X, y, qid=qid)
    dense = KINDS[kind].fit(X.toarray(), y, qid=qid)
    assert bytes_of(ours) == bytes_of(dense)
    assert ours.n_features_in_ == 300
    np.testing.assert_array_equal(ours.predict(X), dense.predict(X.toarray()))


@pytest.mark.parametrize("validation", ["sparse", "dense"])
def test_validation_rows_have_all_columns(validation):
    X, y, qid = shop_log()
    X_val, y_val, qid_val = shop_log(1)
    own = X_val if validation == "sparse" else X_val.toarray()
    rules = {**COMMON, "max_iter": 10, "learning_rate": 0.5, "early_stopping": True, "n_iter_no_change": 2}
    models = [
        LambdaMARTRanker(**rules).fit(rows, y, qid=qid, X_val=others, y_val=y_val, qid_val=qid_val)
        for rows, others in [(X, own), (X.toarray(), X_val.toarray())]
    ]
    assert bytes_of(models[0]) == bytes_of(models[1])
    np.testing.assert_array_equal(models[0].validation_score_, models[1].validation_score_)


@pytest.mark.parametrize("kind", ["lambdamart", "full", "forest"])
def test_ranks_drop_the_columns_that_all_of_them_drop(kind):
    X, y, qid = shop_log()
    expected = bytes_of(pickle.loads(pickle.dumps(KINDS[kind])).fit(X, y, qid=qid))

    def fit(ranks):
        own = qid % 3 == ranks.rank
        with training_with(ranks):
            return bytes_of(pickle.loads(pickle.dumps(KINDS[kind])).fit(X[own], y[own], qid=qid[own]))

    assert all(found == expected for found in together(3, fit))


def test_columns_with_too_few_entries_are_no_features():
    rows = np.zeros((4, 6))
    rows[:, [0, 1, 3]] = [[0, 1, 5], [0, 2, 0], [7, 3, np.nan], [0, 0, 0]]
    X = sparse.csr_matrix(rows)
    mapper = BinMapper.fit(X, least_entries=2, categorical=np.arange(6) == 0)
    assert mapper.columns.tolist() == [0, 1, 3]
    assert mapper.of_columns(mapper.n_bins.tolist(), 0) == [2, 4, 0, 2, 0, 0]
    assert mapper.features_among([3, 2, 0]) == {0, 2}
    expected = np.array([[0, 1, 1], [0, 2, 0], [1, 3, 2], [0, 0, 0]])
    for own in (X, X.toarray()):
        np.testing.assert_array_equal(mapper.encode(own), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(mapper)).encode(X), expected)
    assert BinMapper.fit(X.toarray(), least_entries=2).columns is None  # each dense row has all columns
    assert BinMapper.fit(X[:, :3], least_entries=1).columns is None  # most are kept: no copy


def test_a_model_of_no_column_is_a_constant():
    X = sparse.csr_matrix((np.ones(3), ([0, 1, 2], [5, 6, 900])), shape=(200, 1000))
    model = HistGBRTRegressor(max_iter=2, n_jobs=1).fit(X, np.arange(200.0))
    np.testing.assert_allclose(model.predict(X), np.full(200, 99.5))


def test_columns_without_entries_cost_little():
    rng = np.random.default_rng(0)
    columns = rng.choice(1 << 20, 50)  # in use
    X = sparse.csr_matrix(
        (np.ones(4000), (np.repeat(np.arange(1000), 4), rng.choice(columns, 4000))), shape=(1000, 1 << 20)
    )
    X.sum_duplicates()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    LambdaMARTRanker(max_iter=2, n_jobs=1).fit(X, rng.integers(0, 3, 1000), qid=np.arange(1000) // 20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # KiB; dense codes take 1 GB


def test_too_many_columns_are_refused():
    X = sparse.csr_matrix((np.ones(3), ([0, 1, 2], [0, 5, 1])), shape=(3, 2**31))
    with pytest.raises(ValueError, match="sparse with 2147483648 columns; expected at most 16777216"):
        HistGBRTRegressor().fit(X, np.arange(3.0))
