"""The best rows of each query, by the scores of any model."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression

from ranktrees import (
    BlendRanker,
    FitWarning,
    HistGBRTClassifier,
    LambdaMARTRanker,
    OrdinalRanker,
    best_rows,
    make_ranking,
)
from ranktrees.evaluation import per_query_table


@pytest.mark.parametrize("k", [1, 3, None])
def test_rows_are_those_of_a_sort(k):
    rng = np.random.default_rng(0)
    qid, scores = rng.choice(list("abcde"), 60), rng.integers(0, 5, 60).astype(float)
    table = best_rows(scores, qid=qid, k=k)
    assert list(table) == ["query", "row", "rank", "score"]
    expected = []
    for query in dict.fromkeys(qid):
        rows = sorted(np.flatnonzero(qid == query), key=lambda row: (-scores[row], row))[:k]
        expected += [(query, row, rank + 1, scores[row]) for rank, row in enumerate(rows)]
    assert list(table.itertuples(index=False, name=None)) == expected


def test_ids_come_along():
    scores = pd.Series([0.1, 0.3, 0.2], index=pd.Index([7, 7, 8], name="qid"))
    assert best_rows(scores, k=1)["row"].tolist() == [1, 2]
    halves = best_rows(scores.to_numpy(), qid=np.array([0.5, 0.5, 2], np.float16), k=1)
    assert halves["query"].tolist() == [0.5, 2]


def test_queries_that_are_no_utf8():
    table = best_rows([0.1, 0.3], qid=["\udce9", "b"])
    assert list(table["query"]) == list(per_query_table([1, 1], {"": [0, 0]}, qid=["\udce9", "b"]).index)
    assert list(table["query"]) == ["\udce9", "b"]


def test_a_series_of_scores_gives_its_index_to_the_table():
    scores = pd.Series([0.1, 0.3, 0.2], index=pd.Index(["x", "y", "z"], name="document"))
    table = best_rows(scores, qid=[7, 7, 8], k=1)
    pd.testing.assert_index_equal(table.index, pd.Index(["y", "z"], name="document"))


@pytest.mark.parametrize(
    "ids",
    [
        ["d1", "d2", "d3"],
        [1, 2, 3],
        np.array([1, 2, 3], np.uint8),
        np.array([0.5, 1, 2], np.float16),
        np.array(["d1", "d2", "d3"]),
        np.array([1, "1", 2.5], object),
        [(1, 2), (1, 3), (2, 3)],
        [2**63, 2**63 + 1, 5],
        ["\udce9", "b", "c"],
        pd.Series(["d1", "d2", "d3"], index=[9, 8, 7]),
        pd.Index([3, 1, 2]),
        pd.Categorical(["b", "a", "b"]),
        pd.array([1, 2, 2**62 + 1], "Int64"),
        pd.date_range("2026-01-01", periods=3, tz="UTC"),
        pl.Series(["d1", "d2", "d3"]),
        pa.array([1, 2, 3]),
    ],
    ids=str,
)
def test_ids_of_documents_of_any_kind(ids):
    table = best_rows([0.1, 0.3, 0.2], qid=[7, 7, 8], ids=ids)
    assert list(table) == ["query", "row", "id", "rank", "score"]
    plain = ids.to_pylist() if hasattr(ids, "to_pylist") else list(ids)
    assert list(table["id"]) == [plain[1], plain[0], plain[2]]
    if hasattr(ids, "dtype") and not isinstance(ids, pl.Series) and ids.dtype.kind not in "UO":
        assert table["id"].dtype == ids.dtype


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (["a", "b"], "ids has length 2; expected one document id per row, 3 in all"),
        ([2, 1], r"ids has length 2; expected one document id per row, 3 in all\.$"),
        ("abc", "ids is 'abc'; expected one document id per row"),
        (
            ["a", None, "b"],
            "ids is missing .* in row 1; .* drop the rows without a document or",
        ),
        (pd.array([1, None, 2]), "ids is missing .* in row 1"),
        (np.array([1.0, np.nan, 2.0]), "ids is missing .* in row 1"),
        (np.array([1.0, 2.0**53, 2.0]), "ids holds the float64 .* several ids may have become one"),
        (np.zeros((3, 1)), r"ids has shape \(3, 1\); expected one document id per row"),
    ],
)
def test_ids_of_documents_that_are_refused(ids, said):
    with pytest.raises(ValueError, match=said):
        best_rows([0.1, 0.3, 0.2], qid=[7, 7, 8], ids=ids)


def test_ids_of_documents_in_another_order():
    scores, ids = pd.Series([0.1, 0.3, 0.2]), pd.Series(["a", "b", "c"], index=[2, 1, 0])
    with pytest.warns(FitWarning, match="the index of ids is that of y_score in another order"):
        assert list(best_rows(scores, qid=[7, 7, 7], ids=ids)["id"]) == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("scores", "options", "said"),
    [
        ([[1.0]], {"qid": [0]}, r"shape \(1, 1\); expected a finite number for each row"),
        (1.0, {"qid": [0]}, r"shape \(\); expected a finite number for each row"),
        ([1.0, np.nan], {"qid": [0, 0]}, "not all are finite"),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), {"qid": [0, 0]}, "not all are finite"),
        (["a", "b"], {"qid": [0, 0]}, "y_score must be numbers, one per row: could not convert string"),
        ([1.0], {}, "best_rows needs qid="),
        ([1.0], {"qid": [0], "k": 0}, "k=0; expected the number"),
        ([1.0], {"qid": [0, 1]}, "qid"),
    ],
)
def test_what_cannot_be_ranked(scores, options, said):
    with pytest.raises(ValueError, match=said):
        best_rows(scores, **options)


def test_every_ranker_tells_the_best_rows():
    X, y, qid = make_ranking(20, rows_per_query=15, n_features=4, random_state=0, return_X_y_qid=True)
    for model in (
        LambdaMARTRanker(max_iter=3),
        OrdinalRanker(HistGBRTClassifier(max_iter=3)),
        BlendRanker([("line", LinearRegression()), ("trees", LambdaMARTRanker(max_iter=3))], cv=2),
    ):
        model.fit(X, y, qid=qid)
        pd.testing.assert_frame_equal(model.rank(X, qid=qid, k=2), best_rows(model.predict(X), qid=qid, k=2))
        rows = pd.DataFrame(X, index=pd.Index(qid, name="qid"))
        scores = pd.Series(model.predict(X), rows.index)
        pd.testing.assert_frame_equal(model.rank(rows, k=2), best_rows(scores, k=2))
        ids = np.arange(len(X)) + 500
        expected = best_rows(model.predict(X), qid=qid, k=2, ids=ids)
        pd.testing.assert_frame_equal(model.rank(X, qid=qid, k=2, ids=ids), expected)
        with pytest.raises(ValueError, match="ids has length 1; expected one document id per row, 300"):
            model.rank(X, qid=qid, ids=[1])
        with pytest.raises(ValueError, match="disagree"):
            model.rank(rows, qid=np.roll(qid, 3))
