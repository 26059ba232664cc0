"""What a user writes, for type checkers: they must accept it, and infer what is asserted. It is not run."""

from typing import assert_type

import numpy as np
from numpy.typing import NDArray

from ranktrees import (
    HistGBRTRegressor,
    LambdaMARTRanker,
    RandomForestRanker,
    as_measure,
    load_letor,
    make_ranking,
)
from ranktrees.measures import Measure


def rankings(path: str, qid: list[str]) -> None:
    ranker = LambdaMARTRanker(measure="ndcg@10", max_iter=10, learning_rate=None, random_state=0)
    assert_type(ranker, LambdaMARTRanker)
    X, y, numbers = load_letor(path, return_X_y_qid=True)
    ranker.fit(X, y, qid=numbers).predict(X)
    ranker.fit(X, y, qid=qid).save("model.rkt")


def values(X: NDArray[np.float64], y: NDArray[np.float64]) -> None:
    regressor = HistGBRTRegressor(loss="absolute_error", max_leaf_nodes=8)
    assert_type(regressor, HistGBRTRegressor)
    regressor.fit(X, y, sample_weight=np.ones(len(y))).predict(X)


def forests() -> None:
    forest = RandomForestRanker(100, max_features=0.3, n_jobs=2)
    assert_type(forest, RandomForestRanker)
    X, y, qid = make_ranking(100, random_state=0, return_X_y_qid=True)
    forest.fit(X, y, qid=qid).rank(X, qid, k=2)


def min_gap(labels: NDArray[np.float64], scores: NDArray[np.float64]) -> float:
    return float(np.min(np.abs(labels - scores)))


def measures() -> None:
    for measure in "ndcg@10", min_gap, as_measure("err@5"):
        assert_type(as_measure(measure), Measure)
        RandomForestRanker(measure=measure)
