"""What a user writes, for type checkers: they must accept it, and infer what is asserted. It is not run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from ranktrees import (
    EarlyExit,
    Ensemble,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    QueryKFold,
    RandomForestRanker,
    as_measure,
    best_rows,
    compare,
    dump_trec_run,
    judged_rows,
    load_letor,
    load_trec_run,
    make_ranking,
    query_scorer,
    train_test_split_by_query,
)
from ranktrees.displays import CutoffDisplay, ImportanceDisplay
from ranktrees.evaluation import Comparison, Report, WorkSaved
from ranktrees.measures import NDCG, Measure, ndcg_score

Floats = NDArray[np.float64]


def rankings(path: str, qid: list[str]) -> None:
    ranker = LambdaMARTRanker(measure="ndcg@10", max_iter=10, learning_rate=None, random_state=0)
    assert_type(ranker, LambdaMARTRanker)
    X, y, numbers = load_letor(path, return_X_y_qid=True)
    assert_type(ranker.fit(X, y, qid=numbers), LambdaMARTRanker)
    assert_type(ranker.predict(X), Floats)
    assert_type(ranker.predict(X, n_trees=5, return_saved=False), Floats)
    early_exit = EarlyExit(every=5, drop=0.5)
    saved = ranker.predict(X, qid=qid, early_exit=early_exit, return_saved=True)
    assert_type(saved, tuple[Floats, WorkSaved])
    assert_type(ranker.score(X, y, qid=qid), float)
    assert_type(ranker.feature_importances_, Floats)
    assert_type(ranker.ensemble_, Ensemble)
    ranker.fit(X, y, qid=qid).save(Path("model.rkt"))
    assert_type(Ensemble.load("model.rkt"), Ensemble)
    assert_type(Ensemble.load("model.rkt").predict(X), Floats)


def values(X: Floats, y: Floats) -> None:
    regressor = HistGBRTRegressor(loss="absolute_error", max_leaf_nodes=8)
    assert_type(regressor, HistGBRTRegressor)
    regressor.fit(X, y, sample_weight=np.ones(len(y))).predict(X)
    classifier = HistGBRTClassifier(max_iter=10).fit(X, y)
    assert_type(classifier, HistGBRTClassifier)
    assert_type(classifier.predict(X), NDArray[Any])
    assert_type(classifier.predict_proba(X), Floats)


def forests() -> None:
    forest = RandomForestRanker(100, max_features=0.3, n_jobs=2)
    assert_type(forest, RandomForestRanker)
    X, y, qid = make_ranking(100, random_state=0, return_X_y_qid=True)
    assert_type(X, NDArray[np.float32])
    forest.fit(X, y, qid=qid).rank(X, qid=qid, k=2)
    display = ImportanceDisplay.from_estimator(forest, X, y, qid=qid, among="query")
    assert_type(display.plot(color="grey"), ImportanceDisplay)
    assert_type(CutoffDisplay.from_estimator(forest, X, y, qid=qid, cutoffs=[1, 5]), CutoffDisplay)


def runs(path: Path, scores: Floats, qid: list[int], ids: list[str]) -> None:
    dump_trec_run(scores, path, qid=qid, ids=ids, k=1000, tag="trees")
    rows = judged_rows(load_trec_run(path), {"7": {"d1": 1, "d2": 0}})
    NDCG(rows["label"], rows["score"], qid=rows["query"])
    best_rows(scores, qid=qid, ids=ids)


def min_gap(labels: Floats, scores: Floats) -> float:
    return float(np.min(np.abs(labels - scores)))


def measures(y: Floats, scores: Floats) -> None:
    for measure in "ndcg@10", min_gap, as_measure("err@5"):
        assert_type(as_measure(measure), Measure)
        RandomForestRanker(measure=measure)
    assert_type(NDCG @ 10, Measure)
    assert_type(NDCG(gain="linear"), Measure)
    assert_type(NDCG.lightgbm @ 10, Measure)
    assert_type(NDCG(y, scores, qid=np.zeros(len(y))), float)
    assert_type(ndcg_score([2, 0, 1], [0.3, 0.2, 0.1], k=2), float)
    assert_type(compare(y, scores, scores, measure=NDCG @ 10, test="bootstrap"), Comparison)
    assert_type(compare(y, {"a": scores, "b": scores}, measure=[NDCG @ 10, "err"]), Report)


def splits(X: Floats, y: Floats, qid: NDArray[np.int64]) -> None:
    scorer = query_scorer("ndcg@10")
    assert_type(scorer, Callable[..., float])
    for train, test in QueryKFold(5).split(X, y, qid=qid):
        ranker = LambdaMARTRanker().fit(X[train], y[train], qid=qid[train])
        scorer(ranker, X[test], y[test], qid=qid[test])
    assert_type(train_test_split_by_query(X, y, qid, qid=qid, test_size=0.2), list[Any])
