"""Train the three estimators on synthetic data, and compare them by NDCG, ERR and MAP, with 95 % intervals.

For files of your own there is a command line: ``ranktrees train``, then ``ranktrees evaluate``.
"""

import argparse
import time

import numpy as np

from ranktrees import (
    HistGBRTRegressor,
    LambdaMARTRanker,
    RandomForestRanker,
    make_ranking,
    train_test_split_by_query,
)
from ranktrees.evaluation import mean_interval
from ranktrees.measures import AP, ERR, NDCG
from ranktrees.rows import query_offsets


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trees", type=int, default=200, help="trees per model (default: %(default)s)")
    parser.add_argument("--queries", type=int, default=250, help="synthetic queries (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the random seed (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=None, help="threads (default: all processors)")
    arguments = parser.parse_args()
    if arguments.trees < 1:
        parser.error(f"--trees is {arguments.trees}; expected at least 1")
    if arguments.queries < 10:
        parser.error(f"--queries is {arguments.queries}; expected at least 10, to train and test on")
    if arguments.jobs == 0:
        parser.error("--jobs is 0; expected a number of threads, or -1 for all processors")
    seed = arguments.seed
    data = make_ranking(arguments.queries, "web", random_state=seed, return_X_y_qid=True)
    rest, test = split(data, 0.2, seed)
    train, vali = split(rest, 0.25, seed)
    print(f"train on {describe(train)}, stop by {describe(vali)}, test on {describe(test)}")
    values, seconds = {}, {}
    for estimator in estimators(arguments):
        kind = type(estimator).__name__
        start = time.perf_counter()
        fit(estimator, train, vali)
        seconds[kind] = time.perf_counter() - start
        values[kind] = evaluate(estimator, test)
    print_table(values, seconds)


def split(data, share, seed):
    parts = train_test_split_by_query(*data, qid=data[2], test_size=share, random_state=seed)
    return tuple(parts[::2]), tuple(parts[1::2])


def estimators(arguments):
    shared = {"random_state": arguments.seed, "n_jobs": arguments.jobs}
    yield HistGBRTRegressor(max_iter=arguments.trees, scoring="ndcg@10", n_iter_no_change=50, **shared)
    yield LambdaMARTRanker(max_iter=arguments.trees, **shared)
    yield RandomForestRanker(arguments.trees, min_samples_leaf=5, **shared)


def fit(estimator, train, vali):
    X, y, qid = train
    if isinstance(estimator, RandomForestRanker):
        estimator.fit(X, y, qid=qid)
    else:
        estimator.fit(X, y, qid=qid, X_val=vali[0], y_val=vali[1], qid_val=vali[2])


def evaluate(estimator, test):
    """Return the value of each measure for each test query."""
    X, y, qid = test
    order, offsets = query_offsets(qid, len(y))
    rows = slice(None) if order is None else order
    labels, scores = np.asarray(y, float)[rows], estimator.predict(X)[rows]
    measures = {
        "NDCG@1": NDCG @ 1,
        "NDCG@3": NDCG @ 3,
        "NDCG@10": NDCG @ 10,
        "ERR": ERR(max_grade=max(4, labels.max())),
        "MAP": AP,
    }
    return {name: measure.per_query(labels, scores, offsets) for name, measure in measures.items()}


def describe(part):
    return f"{len(part[1])} rows of {len(np.unique(part[2]))} queries"


def print_table(values, seconds):
    names = list(next(iter(values.values())))
    print(f"\n{'mean with 95 % interval':24}" + "".join(f"{name:>16}" for name in names) + f"{'seconds':>10}")
    for kind, columns in values.items():
        cells = (interval(columns[name]) for name in names)
        print(f"{kind:24}" + "".join(f"{cell:>16}" for cell in cells) + f"{seconds[kind]:10.1f}")


def interval(values):
    if np.count_nonzero(~np.isnan(values)) < 2:
        return "-"
    return str(mean_interval(values))


if __name__ == "__main__":
    main()
