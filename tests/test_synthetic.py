"""Synthetic rankings: shapes, shares, determinism, and the papers' polynomials term by term."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktrees.datasets import make_ranking, synthetic

KINDS = ("polynomial", "web")


@given(
    st.sampled_from(KINDS),
    st.integers(1, 12),
    st.integers(1, 150),
    st.integers(2, 7),
    st.integers(0, 3),
)
@settings(max_examples=40, deadline=None)
def test_what_is_returned(kind, n_queries, n_features, n_grades, seed):
    data = make_ranking(n_queries, kind, n_features=n_features, n_grades=n_grades, random_state=seed)
    n_rows = len(data.qid)
    assert data.data.shape == (n_rows, n_features)
    assert data.data.dtype == np.float32
    assert data.data.flags.c_contiguous
    assert np.isfinite(data.data).all()
    assert data.target.shape == (n_rows,)
    assert data.target.dtype == data.qid.dtype == np.int64
    assert 0 <= data.target.min() <= data.target.max() < n_grades
    np.testing.assert_array_equal(np.unique(data.qid), np.arange(n_queries))
    assert (np.diff(data.qid) >= 0).all()
    assert len(set(data.feature_names)) == n_features


@pytest.mark.parametrize("kind", KINDS)
def test_random_state(kind):
    def make(state):
        return make_ranking(5, kind, random_state=state, noise=0.5, return_X_y_qid=True)

    def same(left, right):
        return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))

    assert same(make(3), make(3))
    assert same(make(3), make(np.random.default_rng(3)))
    assert same(make(np.random.RandomState(3)), make(np.random.RandomState(3)))
    assert not same(make(3), make(4))
    assert not same(make(None), make(None))
    generator = np.random.default_rng(3)
    assert not same(make(generator), make(generator))


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_do_not_show_in_the_shape(kind):
    sizes = [1, 5000, 3]
    X, y, qid = make_ranking(3, kind, rows_per_query=sizes, random_state=0, return_X_y_qid=True)
    np.testing.assert_array_equal(np.bincount(qid), sizes)
    assert len(X) == len(y) == 5004


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.7, 0.2, 0.1), (0.1, 0.0, 0.9)])
def test_grade_shares(kind, shares):
    _, y, _ = make_ranking(
        50,
        kind,
        rows_per_query=20,
        n_grades=len(shares),
        grade_shares=shares,
        random_state=0,
        return_X_y_qid=True,
    )
    np.testing.assert_allclose(np.bincount(y, minlength=len(shares)) / 1000, shares, atol=0.002)


def test_default_grade_shares():
    assert np.bincount(make_ranking(100, random_state=0).target).tolist() == [1000] * 5
    y = make_ranking(100, "web", rows_per_query=100, random_state=0).target
    assert np.bincount(y).tolist() == [5200, 3200, 1300, 200, 100]
    y = make_ranking(70, "web", rows_per_query=10, n_grades=3, random_state=0).target
    assert np.bincount(y).tolist() == [400, 200, 100]


def test_polynomial_is_the_one_of_the_papers():
    n_rows, d = 40, 6
    X, relevance = synthetic._polynomial(np.random.default_rng(5), n_rows, d)
    rng = np.random.default_rng(5)
    twin = 2 * rng.random((n_rows, d), np.float32) - 1
    np.testing.assert_array_equal(X, twin)
    weight = 2 * rng.random(d) - 1
    P, Q, R = (rng.permutation(d) for _ in range(3))
    twin = twin.astype(float)
    terms = np.array(
        [
            [
                sum(weight[i] * x[i] for i in range(d)),
                sum(x[i] * x[P[i]] for i in range(d)),
                sum(x[i] * x[Q[i]] * x[R[i]] for i in range(d)),
            ]
            for x in twin
        ]
    )
    mean = ((terms - terms.mean(axis=0)) / terms.std(axis=0)).mean(axis=1)
    np.testing.assert_allclose(relevance, mean / mean.std(), rtol=1e-5, atol=1e-6)


def test_polynomial_features_are_uniform():
    X = make_ranking(200, random_state=0).data
    assert X.shape == (10_000, 50)
    assert -1 <= X.min() < -0.999
    assert 0.999 < X.max() <= 1
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=0.03)
    np.testing.assert_allclose(X.var(axis=0), 1 / 3, atol=0.02)


def test_noise_moves_labels():
    clean, noisy = (make_ranking(50, noise=noise, random_state=0) for noise in (0, 1))
    np.testing.assert_array_equal(clean.data, noisy.data)
    assert 0.2 < np.corrcoef(clean.target, noisy.target)[0, 1] < 0.9


@pytest.fixture(scope="module")
def web():
    return make_ranking(400, "web", random_state=0)


def test_web_has_the_shape_of_mslr(web):
    X, qid = web.data, web.qid
    assert X.shape[1] == 136
    assert 0.34 < (X == 0).mean() < 0.40
    sizes = np.bincount(qid)
    assert 105 < sizes.mean() < 135
    assert sizes.min() < 30
    assert 300 < sizes.max() <= 900
    assert web.feature_names[0] == "covered query term number, body"
    assert web.feature_names[109] == "BM25, whole document"
    assert web.feature_names[135] == "url dwell time"
    counts = X[:, web.feature_names.index("stream length, body")]
    assert counts.max() > 50 * np.median(counts)


def test_web_features_are_consistent(web):
    def column(name, stream):
        return web.data[:, web.feature_names.index(f"{name}, {stream}")]

    first = np.flatnonzero(np.diff(web.qid, prepend=-1))
    for stream in synthetic._STREAMS:
        idf = column("IDF", stream)
        np.testing.assert_array_equal(idf, idf[first][web.qid])
        total, low, high, mean = (
            column(f"{s} of term frequency", stream) for s in ("sum", "min", "max", "mean")
        )
        assert (low <= mean + 1e-3).all()
        assert (mean <= high + 1e-3).all()
        assert (high <= total).all()
        assert (total <= column("stream length", stream)).all()
        assert (column("variance of term frequency", stream) >= 0).all()
        np.testing.assert_array_equal(column("covered query term number", stream) == 0, total == 0)
        assert column("covered query term ratio", stream).max() == 1
    bodies = column("sum of term frequency", "body"), column("sum of term frequency", "whole document")
    assert np.corrcoef(*np.log1p(bodies))[0, 1] > 0.8


def test_web_can_be_learnt(web):
    lightgbm = pytest.importorskip("lightgbm")
    X, y, qid = web.data, web.target, web.qid
    train = qid < 300
    params = {"objective": "lambdarank", "num_threads": 1, "verbose": -1, "learning_rate": 0.1}
    rows = lightgbm.Dataset(X[train], y[train], group=np.bincount(qid[train]))
    booster = lightgbm.train(params, rows, num_boost_round=30)

    def mean_ndcg(score):
        discount = 1 / np.log2(np.arange(10) + 2)
        values = []
        for query in np.unique(qid[~train]):
            rows = qid[~train] == query
            gains = 2.0 ** y[~train][rows] - 1
            ideal = np.sort(gains)[::-1][:10]
            if ideal[0] > 0:
                seen = gains[np.argsort(-score[rows])][:10]
                values.append((seen @ discount[: len(seen)]) / (ideal @ discount[: len(ideal)]))
        return np.mean(values)

    chance = mean_ndcg(np.random.default_rng(0).random((~train).sum()))
    assert chance < 0.25
    assert mean_ndcg(booster.predict(X[~train])) > chance + 0.2


def test_further_features_are_noisy_copies():
    data = make_ranking(20, "web", n_features=140, random_state=0)
    assert data.feature_names[136] == "noisy covered query term number, body (0)"
    np.testing.assert_array_equal(data.data[:, 136] == 0, data.data[:, 0] == 0)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"kind": "letor"}, 'kind=\'letor\'; expected "polynomial" or "web"'),
        ({"n_queries": 0}, "n_queries=0; expected an integer of at least 1"),
        ({"n_queries": 2.0}, "n_queries=2.0"),
        ({"n_features": 0}, "n_features=0"),
        ({"n_grades": 1}, "n_grades=1; expected an integer of at least 2"),
        ({"rows_per_query": 0}, "rows_per_query=0; expected an integer of at least 1, or 4 of them"),
        ({"rows_per_query": [1, 2]}, "rows_per_query="),
        ({"rows_per_query": 2.5}, "rows_per_query=2.5"),
        ({"noise": -1}, "noise=-1; expected a finite number of at least 0"),
        ({"noise": np.nan}, "noise=nan"),
        ({"grade_shares": [0.5, 0.5]}, "expected n_grades=5 shares that sum to 1"),
        ({"grade_shares": [0.5, 0.5, 0.5, 0, 0]}, "sum to 1"),
        ({"grade_shares": [1.5, -0.5, 0, 0, 0]}, "sum to 1"),
        ({"kind": np.array(["web", "web"])}, 'kind=array.*; expected "polynomial" or "web"'),
        ({"n_queries": True}, "n_queries=True; expected an integer of at least 1"),
        ({"n_features": True}, "n_features=True; expected an integer of at least 1"),
        ({"rows_per_query": [[1], [2, 3]]}, "rows_per_query=.*; expected an integer of at least 1, or 4 of"),
        (
            {"rows_per_query": "many"},
            "rows_per_query='many'; expected an integer of at least 1, or 4 of them",
        ),
        ({"noise": "much"}, "noise='much'; expected a finite number of at least 0"),
        ({"noise": [1, 2]}, "noise=.*; expected a finite number of at least 0"),
        ({"noise": 1j}, "noise=1j; expected a finite number of at least 0"),
        ({"grade_shares": "equal"}, "grade_shares='equal'; expected n_grades=5 shares that sum to 1"),
        ({"grade_shares": {}}, "grade_shares={}; expected n_grades=5 shares that sum to 1"),
        ({"random_state": "seed"}, "random_state='seed'; expected an integer of at least 0, a numpy.random"),
        ({"random_state": -1}, "random_state=-1; expected an integer of at least 0, a numpy.random"),
    ],
)
def test_bad_arguments(options, expected):
    with pytest.raises(ValueError, match=expected):
        make_ranking(**({"n_queries": 4} | options))
