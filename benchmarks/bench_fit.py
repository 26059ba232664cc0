"""Time per tree and memory of training: ranktrees and its peers, interleaved in the same run.

    python benchmarks/bench_fit.py [--queries 1580] [--threads 2] [--repeats 5] [--leaves 64]

MSLR-shaped rows (136 features, about 120 rows per query). Each library fits ``--trees`` trees and twice as
many; the time of a tree is the difference divided by ``--trees``, so that binning does not count. Figures are
medians over the repeats; ratios are of ours to the peer's, repeat by repeat, and then the median, so that
what else the machine does hits both. Memory is the peak of a fresh process above what it held before the
fit, as a share of the float32 input.
"""

import argparse
import subprocess
import sys
import time
import warnings

import data
import numpy as np

from ranktrees import HistGBRTRegressor, LambdaMARTRanker, make_ranking

RATE = 0.1  # of all libraries: how trees grow, and so what they cost, depends on it


def ours(kind):
    """A model of ours without sampling, so that all libraries do the same work."""

    def fit(X, y, qid, options, n_trees):
        kind(
            max_iter=n_trees,
            max_leaf_nodes=options.leaves,
            n_jobs=options.threads,
            learning_rate=RATE,
            l2_regularization=0.0,
            subsample=1.0,
            max_features=1.0,
            random_state=0,
        ).fit(X, y, qid=qid)

    return fit


def lightgbm(objective, **parameters):
    """LightGBM; the set is built inside, as ``fit`` of the others does."""

    def fit(X, y, qid, options, n_trees):
        import lightgbm as peer

        settings = {
            "objective": objective,
            "num_leaves": options.leaves,
            "learning_rate": RATE,
            "num_threads": options.threads,
            "verbose": -1,
            **parameters,
        }
        peer.train(settings, peer.Dataset(X, y, group=data.sizes(qid), params=settings), n_trees)

    return fit


def xgboost(objective):
    """XGBoost, histogram method, best leaf first."""

    def fit(X, y, qid, options, n_trees):
        import xgboost as peer

        settings = {
            "objective": objective,
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_leaves": options.leaves,
            "max_depth": 0,
            "eta": RATE,
            "nthread": options.threads,
        }
        peer.train(settings, peer.QuantileDMatrix(X, y, qid=qid, nthread=options.threads), n_trees)

    return fit


def hist_gradient_boosting(X, y, qid, options, n_trees):
    """scikit-learn."""
    import threadpoolctl
    from sklearn.ensemble import HistGradientBoostingRegressor

    with threadpoolctl.threadpool_limits(options.threads):
        HistGradientBoostingRegressor(
            learning_rate=RATE, max_iter=n_trees, max_leaf_nodes=options.leaves, early_stopping=False
        ).fit(X, y)


CONTESTS = {
    "lambdarank": {
        "ranktrees": ours(LambdaMARTRanker),
        "LightGBM": lightgbm("lambdarank"),
        "LightGBM quantized, 63 bins": lightgbm("lambdarank", use_quantized_grad=True, max_bin=63),
        "XGBoost": xgboost("rank:ndcg"),
    },
    "L2": {
        "ranktrees": ours(HistGBRTRegressor),
        "LightGBM": lightgbm("regression"),
        "LightGBM quantized, 63 bins": lightgbm("regression", use_quantized_grad=True, max_bin=63),
        "XGBoost": xgboost("reg:squarederror"),
        "HistGradientBoosting": hist_gradient_boosting,
    },
}


def seconds(fit, rows, options, n_trees):
    """Of one fit."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(*rows, options, n_trees)
    return time.perf_counter() - started


def peak_memory(contest, library, options):
    """Peak bytes above the state before the fit, in a fresh process, as a share of the input."""
    command = [sys.executable, __file__, "--memory-of", contest, library]
    for name in ("queries", "threads", "leaves", "trees"):
        command += [f"--{name}", str(getattr(options, name))]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[-1])


def print_memory(contest, library, options):
    """In the fresh process: fit, and print the peak as a share of the input."""
    X, y, qid = make_ranking(options.queries, kind="web", random_state=0, return_X_y_qid=True)
    fit = CONTESTS[contest][library]
    few = np.flatnonzero(qid < 20)
    seconds(fit, (X[few], y[few], qid[few]), options, 1)  # imports, thread pools

    def status(field):
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))

    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    before = status("VmRSS")
    seconds(fit, (X, y, qid), options, options.trees)
    print((status("VmHWM") - before) / X.nbytes)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--queries", type=int, default=1580)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--leaves", type=int, default=64)
    parser.add_argument("--trees", type=int, default=20)
    parser.add_argument("--memory-of", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        print_memory(*options.memory_of, options)
        return
    rows = make_ranking(options.queries, kind="web", random_state=0, return_X_y_qid=True)
    X = rows[0]
    print(f"{X.shape[0]} rows x {X.shape[1]} features, {options.leaves} leaves, {options.threads} threads\n")
    for contest, libraries in CONTESTS.items():
        per_tree = {library: [] for library in libraries}
        whole = {library: [] for library in libraries}
        for _ in range(options.repeats):
            for library, fit in libraries.items():
                few, many = (seconds(fit, rows, options, n * options.trees) for n in (1, 2))
                per_tree[library].append((many - few) / options.trees)
                whole[library].append(many)
        print(f"| {contest} | ms per tree | ours / its | whole fit, s | ours / its | peak memory / input |")
        print("|---|---|---|---|---|---|")
        for library in libraries:
            tree_ratio, whole_ratio = (
                np.median(np.divide(times["ranktrees"], times[library])) for times in (per_tree, whole)
            )
            print(
                f"| {library} | {np.median(per_tree[library]) * 1e3:.1f} | {tree_ratio:.2f} "
                f"| {np.median(whole[library]):.2f} | {whole_ratio:.2f} "
                f"| {peak_memory(contest, library, options):.2f} |"
            )
        print()


if __name__ == "__main__":
    main()
