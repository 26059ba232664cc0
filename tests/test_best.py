"""The best rows of each query, by the scores of any model."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from ranktrees import (
    BlendRanker,
    HistGBRTClassifier,
    LambdaMARTRanker,
    OrdinalRanker,
    best_rows,
    make_ranking,
)


@pytest.mark.parametrize("k", [1, 3, None])
def test_rows_are_those_of_a_sort(k):
    rng = np.random.default_rng(0)
    qid, scores = rng.choice(list("abcde"), 60), rng.integers(0, 5, 60).astype(float)
    table = best_rows(scores, qid, k)
    assert list(table) == ["query", "row", "rank", "score"]
    expected = []
    for query in dict.fromkeys(qid):
        rows = sorted(np.flatnonzero(qid == query), key=lambda row: (-scores[row], row))[:k]
        expected += [(query, row, rank + 1, scores[row]) for rank, row in enumerate(rows)]
    assert list(table.itertuples(index=False, name=None)) == expected


def test_ids_come_along():
    scores = pd.Series([0.1, 0.3, 0.2], index=pd.Index([7, 7, 8], name="qid"))
    assert best_rows(scores, k=1)["row"].tolist() == [1, 2]
    halves = best_rows(scores.to_numpy(), np.array([0.5, 0.5, 2], np.float16), k=1)
    assert halves["query"].tolist() == [0.5, 2]


@pytest.mark.parametrize(
    ("scores", "options", "said"),
    [
        ([[1.0]], {"qid": [0]}, r"shape \(1, 1\); expected a finite number for each row"),
        (1.0, {"qid": [0]}, r"shape \(\); expected a finite number for each row"),
        ([1.0, np.nan], {"qid": [0, 0]}, "not all are finite"),
        (np.ma.array([1.0, 2.0], mask=[0, 1]), {"qid": [0, 0]}, "not all are finite"),
        (["a", "b"], {"qid": [0, 0]}, "scores must be numbers, one per row: could not convert string"),
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
        pd.testing.assert_frame_equal(model.rank(X, qid, k=2), best_rows(model.predict(X), qid, k=2))
        rows = pd.DataFrame(X, index=pd.Index(qid, name="qid"))
        pd.testing.assert_frame_equal(model.rank(rows, k=2), model.rank(X, qid, k=2))
        with pytest.raises(ValueError, match="disagree"):
            model.rank(rows, np.roll(qid, 3))
