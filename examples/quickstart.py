"""Train the three estimators and compare them by NDCG, ERR and MAP, with 95 % intervals.

python examples/quickstart.py                  synthetic data
python examples/quickstart.py train.txt        a LETOR file, split by query
python examples/quickstart.py MSLR-WEB10K      a folder with train.txt, vali.txt and test.txt,
                                               or with such folders Fold1, Fold2 ...
"""

import argparse
import time
from pathlib import Path

import numpy as np

from ranktrees import (
    HistGBRTRegressor,
    LambdaMARTRanker,
    RandomForestRanker,
    load_letor,
    load_letor_folds,
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
    parser.add_argument("path", nargs="?", type=Path, help="a LETOR file or folder (default: synthetic data)")
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
    try:
        values, seconds = compare(arguments)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print_table(values, seconds)


def compare(arguments):
    """Return the values of each measure for all test queries, and the seconds of training, by estimator."""
    values, seconds = {}, {}
    for name, train, vali, test in folds(arguments):
        print(f"{name}: train on {describe(train)}, stop by {describe(vali)}, test on {describe(test)}")
        for estimator in estimators(arguments):
            kind = type(estimator).__name__
            start = time.perf_counter()
            fit(estimator, train, vali)
            seconds[kind] = seconds.get(kind, 0.0) + time.perf_counter() - start
            for measure, of_queries in evaluate(estimator, test).items():
                values.setdefault(kind, {}).setdefault(measure, []).append(of_queries)
    return values, seconds


def folds(arguments):
    """Yield (name, train, vali, test), each part a tuple X, y, qid."""
    path, seed = arguments.path, arguments.seed
    if path is not None and not path.exists():
        raise FileNotFoundError(f"{path} does not exist; expected a LETOR file or a folder of them")
    if path is None:
        data = make_ranking(arguments.queries, "web", random_state=seed, return_X_y_qid=True)
        yield "synthetic", *three_parts(data, seed)
    elif path.is_dir():
        for fold in load_letor_folds(path):
            parts = fold.train, fold.vali, fold.test
            yield fold.name, *((part.data, part.target, part.qid) for part in parts)
    else:
        yield path.name, *three_parts(load_letor(path, return_X_y_qid=True), seed)


def three_parts(data, seed):
    """Split the data into 60, 20 and 20 % of the queries."""
    n_queries = len(np.unique(data[2]))
    if n_queries < 5:
        raise ValueError(f"the file holds {n_queries} queries; expected at least 5, to train and test on")
    rest, test = split(data, 0.2, seed)
    return *split(rest, 0.25, seed), test


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
        cells = (interval(np.concatenate(columns[name])) for name in names)
        print(f"{kind:24}" + "".join(f"{cell:>16}" for cell in cells) + f"{seconds[kind]:10.1f}")


def interval(values):
    if np.count_nonzero(~np.isnan(values)) < 2:
        return "-"
    return str(mean_interval(values))


if __name__ == "__main__":
    main()
