import math
import sys
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from ranktrees import EarlyExit, Ensemble, HistGBRTRegressor, LambdaMARTRanker, RandomForestRanker
from reference import early_exit as reference
from reference import scoring as plain

MODELS = [
    LambdaMARTRanker(max_iter=8, min_samples_leaf=3, random_state=0, n_jobs=1),
    HistGBRTRegressor(max_iter=8, min_samples_leaf=3, random_state=0, n_jobs=1),
    RandomForestRanker(8, max_leaf_nodes=8, random_state=0, n_jobs=1),
]


@pytest.fixture(scope="module")
def rows():
    """X, y and the ids of 12 queries of 1 to 23 rows, which are not next to each other."""
    rng = np.random.default_rng(0)
    qid = rng.permutation(np.repeat([f"query {i}" for i in range(12)], 2 * np.arange(12) + 1))
    X = rng.normal(size=(len(qid), 3)).round(1)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, np.clip(np.round(np.nan_to_num(X[:, 0]) + 1), 0, 3), qid


@pytest.fixture(scope="module", params=range(3), ids=[type(model).__name__ for model in MODELS])
def fitted(request, rows):
    X, y, qid = rows
    return clone(MODELS[request.param]).fit(X, y, qid=qid)


def expected_rows(model, X, qid, k, exits=None):
    scores, saved = model.predict(X, qid=qid, early_exit=exits, return_saved=True)
    return reference.rank(list(qid), scores.tolist(), saved.trees.tolist(), k)


def found_rows(table):
    assert list(table.columns) == ["query", "row", "rank", "score"]
    assert table.index.equals(pd.RangeIndex(len(table)))
    return list(table.itertuples(index=False, name=None))


@pytest.mark.parametrize("k", [1, 3, 10, 23, 1000, None, np.int64(2)])
@pytest.mark.parametrize(
    "exits", [None, EarlyExit(every=2, drop=0.4), EarlyExit(at=[3], threshold=0.5)], ids=repr
)
def test_rows_best_first(fitted, rows, k, exits):
    X, _, qid = rows
    table = fitted.rank(X, qid=qid, k=k, early_exit=exits)
    assert found_rows(table) == expected_rows(fitted, X, qid, k, exits)
    assert table.dtypes["row"] == table.dtypes["rank"] == np.int64
    assert table.dtypes["score"] == np.float64


def test_ten_rows_unless_told(fitted, rows):
    X, _, qid = rows
    assert fitted.rank(X, qid=qid).equals(fitted.rank(X, qid=qid, k=10))
    assert fitted.rank(X, qid=qid)["rank"].max() == 10


@given(
    seed=st.integers(0, 2**32 - 1),
    qid=st.lists(st.sampled_from(["a", "b", "c", (1, 2), 7, 7.5, Fraction(1, 3)]), min_size=1, max_size=30),
    k=st.one_of(st.none(), st.integers(1, 8)),
)
@settings(deadline=None, max_examples=40)
def test_any_ids_and_many_ties(seed, qid, k):
    rng = np.random.default_rng(seed)
    model = clone(MODELS[0]).fit(rng.normal(size=(50, 2)), rng.integers(0, 3, 50), qid=np.zeros(50))
    model.ensemble_ = Ensemble.from_trees([plain.stump()], n_features=2)
    X = rng.choice([0.0, 1.0, np.nan], size=(len(qid), 2))
    assert found_rows(model.rank(X, qid=qid, k=k)) == expected_rows(model, X, qid, k)


@pytest.mark.parametrize(
    "column",
    [
        list,
        tuple,
        pd.Series,
        lambda ids: pd.Series(ids, index=np.arange(len(ids))[::-1]),
        pd.Index,
        pd.Categorical,
        pl.Series,
        pa.array,
        lambda ids: ids.astype(object),
    ],
)
def test_ids_of_any_kind(rows, column):
    X, y, qid = rows
    model = clone(MODELS[0]).fit(X, y, qid=qid)
    expected = found_rows(model.rank(X, qid=qid))
    assert found_rows(model.rank(X, qid=column(qid))) == expected


def test_ids_keep_their_type(rows):
    X, y, qid = rows
    model = clone(MODELS[0]).fit(X, y, qid=qid)
    codes = np.unique(qid, return_inverse=True)[1]
    assert model.rank(X, qid=codes)["query"].dtype == np.int64
    days = np.datetime64("2026-01-01") + codes
    assert set(model.rank(X, qid=days)["query"]) == set(pd.DatetimeIndex(days))
    large = [2**63 + int(code) for code in codes]
    assert set(model.rank(X, qid=large)["query"]) == set(large)


def test_ids_in_the_index_and_rows_by_position(fitted, rows):
    X, _, qid = rows
    frame = pd.DataFrame(X, index=pd.Index(qid, name="qid"))
    expected = fitted.rank(X, qid=qid)
    by_query = expected.set_axis(pd.Index(expected["query"], name="qid"))
    pd.testing.assert_frame_equal(fitted.rank(frame), by_query)
    labelled = pd.DataFrame(X, index=np.arange(len(X)) + 1000)
    pd.testing.assert_frame_equal(
        fitted.rank(labelled, qid=qid), expected.set_axis(expected["row"].to_numpy() + 1000)
    )
    pd.testing.assert_frame_equal(fitted.rank(frame, qid=pd.Categorical(qid)), by_query)
    with pytest.raises(ValueError, match="disagree"):
        fitted.rank(frame, qid=np.roll(qid, 1))


def test_the_table_has_the_ids_of_the_documents(fitted, rows):
    X, _, qid = rows
    ids = np.array([f"d{row}" for row in np.random.default_rng(1).permutation(len(X))])
    frame = pd.DataFrame(X, index=pd.MultiIndex.from_arrays([qid, ids], names=["qid", "document"]))
    for exits in (None, EarlyExit(every=2, drop=0.5)):
        expected = fitted.rank(X, qid=qid, early_exit=exits)
        table = fitted.rank(X, qid=qid, ids=ids, early_exit=exits)
        assert list(table) == ["query", "row", "id", "rank", "score"]
        assert list(table["id"]) == list(ids[expected["row"]])
        pd.testing.assert_frame_equal(table.drop(columns="id"), expected)
        kept = fitted.rank(frame, early_exit=exits)
        assert list(kept.index.get_level_values("document")) == list(table["id"])
    with pytest.raises(ValueError, match="ids has length 1; expected one document id per row, 144 in all"):
        fitted.rank(X, qid=qid, ids=ids[:1])


def test_threads_change_nothing(fitted, rows, monkeypatch):
    X, _, qid = rows
    monkeypatch.setattr("ranktrees.support.parallel.VALUES_PER_THREAD", 1)
    threaded = clone(fitted)
    vars(threaded).update(vars(fitted) | {"n_jobs": 3})
    for exits in (None, EarlyExit(every=2, drop=0.5)):
        assert threaded.rank(X, qid=qid, early_exit=exits).equals(fitted.rank(X, qid=qid, early_exit=exits))


def test_dropped_rows_stand_behind_those_that_stayed(rows):
    """The rows that are better after one tree lose more in the others than they were ahead."""
    X, y, qid = rows
    model = clone(MODELS[0]).fit(X, y, qid=qid)
    better = plain.stump(values=(0.0, 5.0))
    worse = plain.stump(values=(0.0, -5.0))
    model.ensemble_ = Ensemble.from_trees([better, worse, worse], n_features=3)
    X = np.array([[0.0], [1.0], [0.0], [1.0]]) * [1, 0, 0]
    assert model.rank(X, qid=[0] * 4)["row"].tolist() == [0, 2, 1, 3]
    exits = EarlyExit(at=[1], drop=0.5)
    ranks = model.rank(X, qid=[0] * 4, early_exit=exits)
    assert ranks["row"].tolist() == [1, 3, 0, 2]
    assert ranks["score"].tolist() == [-5, -5, 0, 0]


def test_refusals(fitted, rows, monkeypatch):
    X, _, qid = rows
    with pytest.raises(ValueError, match=r"rank needs qid=.* index has a level named 'qid'"):
        fitted.rank(X)
    with pytest.raises(ValueError, match="qid has length 3; expected one query id per row"):
        fitted.rank(X, qid=qid[:3])
    for k in (0, -1, 2.5, True, math.inf, "10"):
        with pytest.raises(ValueError, match=r"k=.*at least 1, or None"):
            fitted.rank(X, qid=qid, k=k)
    with pytest.raises(TypeError, match="early_exit is a float"):
        fitted.rank(X, qid=qid, early_exit=0.5)
    with pytest.raises(NotFittedError):
        clone(fitted).rank(X, qid=qid)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        fitted.rank(X, qid=qid)
