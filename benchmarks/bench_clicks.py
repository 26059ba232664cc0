"""What correcting clicks for positions is worth: NDCG @ 10 of true labels, here, in LightGBM and in XGBoost.

    python benchmarks/bench_clicks.py [--sets 10] [--queries 200] [--sessions 20] [--logger weak|random]

Of each set, made by `make_ranking`, half of the queries are shown and clicked by `make_clicks`, ten rows at
a time, in the order of a ranker that was trained on a twentieth of them, or at random; the other half is
ranked. All have the same numbers of trees and leaves and the same shares of rows and features. Intervals are
of the mean difference over the sets to clicks as they are, in the same library, by Student's t.
"""

import argparse

import lightgbm
import numpy as np
import xgboost
from scipy.stats import t as student
from sklearn.base import clone

from ranktrees import LambdaMARTRanker, as_measure, make_clicks, make_ranking

TREES, RATE, LEAVES = 60, 0.1, 31
OURS = {"max_iter": TREES, "learning_rate": RATE, "max_leaf_nodes": LEAVES, "random_state": 0}
LIGHTGBM = {
    "objective": "lambdarank",
    "learning_rate": RATE,
    "num_leaves": LEAVES,
    "lambda_l2": 1.0,
    "feature_fraction_bynode": 0.3,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "verbose": -1,
}
XGBOOST = {
    "objective": "rank:ndcg",
    "eta": RATE,
    "max_leaves": LEAVES,
    "max_depth": 0,
    "grow_policy": "lossguide",
    "colsample_bynode": 0.3,
    "subsample": 0.7,
    "lambdarank_pair_method": "topk",
    "lambdarank_num_pair_per_sample": 30,
}


def data_of(seed, options):
    """(what clicks are drawn of, the clicks, what is ranked)"""
    X, y, qid = make_ranking(
        2 * options.queries, rows_per_query=20, n_features=20, random_state=seed, return_X_y_qid=True
    )
    shown, few = qid < options.queries, qid < options.queries // 20
    scores = None
    if options.logger == "weak":
        weak = LambdaMARTRanker(max_iter=20, random_state=0).fit(X[few], y[few], qid=qid[few])
        scores = weak.predict(X[shown])
    log = make_clicks(y[shown], scores, qid=qid[shown], n_sessions=options.sessions, random_state=seed)
    return (X[shown], y[shown], qid[shown]), log, (X[~shown], y[~shown], qid[~shown])


def scores_of(labelled, log, X_test):
    """Of each way, by name."""
    X, y, qid = labelled
    clicks = {"X": X[log.rows], "y": log.target, "qid": log.qid}
    corrected = {**clicks, "position": log.position}
    known = {"propensities": log.propensities}
    for name, loss in (("ranktrees", "lambdamart"), ("RankNet", "ranknet")):
        ours = LambdaMARTRanker(loss, **OURS)
        yield name, ours.fit(**clicks).predict(X_test)
        yield f"{name}, position", ours.fit(**corrected).predict(X_test)
        yield f"{name}, true propensities", clone(ours).set_params(**known).fit(**corrected).predict(X_test)
        yield f"{name}, true labels", ours.fit(X, y, qid=qid).predict(X_test)
    for name, position in (("LightGBM", None), ("LightGBM, position", log.position)):
        rows = lightgbm.Dataset(X[log.rows], log.target, group=np.bincount(log.qid), position=position)
        yield name, lightgbm.train(LIGHTGBM, rows, TREES).predict(X_test)
    for name, unbiased in (("XGBoost", False), ("XGBoost, unbiased", True)):
        rows = xgboost.DMatrix(X[log.rows], log.target, qid=log.qid)
        booster = xgboost.train({**XGBOOST, "lambdarank_unbiased": unbiased}, rows, TREES)
        yield name, booster.predict(xgboost.DMatrix(X_test))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--logger", choices=["weak", "random"], default="weak")
    options = parser.parse_args()
    measure, values = as_measure("ndcg@10"), {}
    for seed in range(options.sets):
        labelled, log, (X, y, qid) = data_of(seed, options)
        for name, scores in scores_of(labelled, log, X):
            values.setdefault(name, []).append(measure(y, scores, qid=qid))
    print(f"{options.sets} sets, shown by the {options.logger} ranking\n")
    print("| | NDCG @ 10 | above its clicks as they are |\n|---|---|---|")
    for name, found in values.items():
        plain = values[name.split(",")[0]]
        gains = np.subtract(found, plain)
        half = student.ppf(0.975, len(gains) - 1) * gains.std(ddof=1) / np.sqrt(len(gains))
        gain = "" if found is plain else f"{gains.mean():+.4f} ± {half:.4f}"
        print(f"| {name} | {np.mean(found):.4f} | {gain} |")


if __name__ == "__main__":
    main()
