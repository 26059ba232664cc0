"""Time, memory and accuracy of training: ranktrees and its peers, interleaved in the same run.

    python benchmarks/bench_fit.py speed [--queries 1580] [--threads 2] [--repeats 5]
    python benchmarks/bench_fit.py profile     where a round's time goes, and how far from the limit that is
    python benchmarks/bench_fit.py threads     ours, from one thread to as many as there are processors
    python benchmarks/bench_fit.py memory      peak above what was there before the fit
    python benchmarks/bench_fit.py accuracy    NDCG@10 at equal trees, leaves and rate, query by query

Rows are MSLR-shaped (136 features, about 120 rows per query). In ``speed`` each library fits one tree, and
``--trees`` trees: the time of a tree is the difference, divided, so that binning does not count. Figures are
medians over the repeats; ratios are of ours to the peer's, repeat by repeat, and then the median and the
range, so that what else the machine does hits both.
"""

import argparse
import cProfile
import os
import pstats
import subprocess
import sys
import time
import warnings

import data
import numpy as np

from ranktrees import HistGBRTRegressor, LambdaMARTRanker, as_measure, make_ranking

RATE = 0.1  # of all libraries: how trees grow, and so what they cost, depends on it


def ours(kind, **parameters):
    """A model of ours without sampling, so that all libraries do the same work."""

    def fit(X, y, qid, options, n_trees):
        settings = {
            "max_iter": n_trees,
            "max_leaf_nodes": options.leaves,
            "n_jobs": options.threads,
            "learning_rate": RATE,
            "l2_regularization": 0.0,
            "subsample": 1.0,
            "max_features": 1.0,
            "random_state": 0,
            **parameters,
        }
        return kind(**settings).fit(X, y, qid=qid).predict

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
        return peer.train(
            settings, peer.Dataset(X, y, group=data.sizes(qid), params=settings), n_trees
        ).predict

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
        model = peer.train(settings, peer.QuantileDMatrix(X, y, qid=qid, nthread=options.threads), n_trees)
        return lambda rows: model.predict(peer.DMatrix(rows))

    return fit


def hist_gradient_boosting(X, y, qid, options, n_trees):
    """scikit-learn."""
    import threadpoolctl
    from sklearn.ensemble import HistGradientBoostingRegressor

    with threadpoolctl.threadpool_limits(options.threads):
        model = HistGradientBoostingRegressor(
            learning_rate=RATE, max_iter=n_trees, max_leaf_nodes=options.leaves, early_stopping=False
        )
        return model.fit(X, y).predict


FASTEST = {"use_quantized_grad": True, "max_bin": 63}  # of LightGBM

CONTESTS = {
    "lambdarank": {
        "ranktrees": ours(LambdaMARTRanker),
        "ranktrees, full search": ours(LambdaMARTRanker, split_search="full"),
        "LightGBM": lightgbm("lambdarank"),
        "LightGBM quantized, 63 bins": lightgbm("lambdarank", **FASTEST),
        "XGBoost": xgboost("rank:ndcg"),
    },
    "squared error": {
        "ranktrees": ours(HistGBRTRegressor),
        "ranktrees, full search": ours(HistGBRTRegressor, split_search="full"),
        "LightGBM": lightgbm("regression"),
        "LightGBM quantized, 63 bins": lightgbm("regression", **FASTEST),
        "XGBoost": xgboost("reg:squarederror"),
        "HistGradientBoosting": hist_gradient_boosting,
    },
}


def rows_of(options):
    """(X, y, qid), MSLR-shaped."""
    rows = make_ranking(options.queries, kind="web", random_state=0, return_X_y_qid=True)
    shape = " x ".join(map(str, rows[0].shape))
    print(f"{shape}, {options.leaves} leaves, {options.threads} threads\n", flush=True)
    return rows


def seconds(fit, rows, options, n_trees):
    """Of one fit."""
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit(*rows, options, n_trees)
    return time.perf_counter() - started


def ratio(ours, theirs):
    """Median and range."""
    ratios = np.divide(ours, theirs)
    return f"{np.median(ratios):.2f} ({ratios.min():.2f} to {ratios.max():.2f})"


def speed(options):
    """Time per tree, and of the whole fit."""
    rows = rows_of(options)
    for contest, libraries in CONTESTS.items():
        chosen = {name: fit for name, fit in libraries.items() if options.only in name}
        per_tree = {library: [] for library in chosen}
        whole = {library: [] for library in chosen}
        for _ in range(options.repeats):
            for library, fit in chosen.items():
                one, all_trees = (seconds(fit, rows, options, n) for n in (1, options.trees))
                per_tree[library].append((all_trees - one) / (options.trees - 1) * 1e3)
                whole[library].append(all_trees)
        print(f"| {contest} | ms per tree | ours / its | {options.trees} trees, s | ours / its |")
        print("|---|---|---|---|---|")
        for library in chosen:
            print(
                f"| {library} | {np.median(per_tree[library]):.1f} "
                f"| {ratio(per_tree['ranktrees'], per_tree[library])} | {np.median(whole[library]):.2f} "
                f"| {ratio(whole['ranktrees'], whole[library])} |"
            )
        print(flush=True)


# Which functions call which kernels: what they take themselves is the kernel's time.
PARTS = {
    "gradients": [("objectives.py", "gradients")],
    "rounding": [("rounding.py", "round"), ("rounding.py", "_places")],
    "lines of cells": [("searching.py", "root"), ("searching.py", "children")],
    "scan": [("searching.py", "find")],
    "refinement": [("searching.py", "settle")],
    "small leaves": [("searching.py", "find_directly")],
    "partition": [("growing.py", "_split")],
    "leaf values": [("growing.py", "_settle")],
    "scores": [("boosting.py", "add")],
}


def profile(options):
    """Where a round's time goes."""
    rows = rows_of(options)
    for contest, libraries in CONTESTS.items():
        for library in ("ranktrees", "ranktrees, full search"):
            runs = []
            for n_trees in (1, options.trees):
                profiler = cProfile.Profile()
                profiler.runcall(libraries[library], *rows, options, n_trees)
                runs.append(pstats.Stats(profiler).stats)
            one, all_trees = runs
            own = {key: all_trees[key][2] - one.get(key, (0, 0, 0))[2] for key in all_trees}
            taken = {
                part: sum(
                    spent
                    for (path, _, function), spent in own.items()
                    if (os.path.basename(path), function) in places
                )
                for part, places in PARTS.items()
            }
            taken["Python, and the profiler"] = sum(own.values()) - sum(taken.values())
            print(f"| {contest}, {library} | ms per round |\n|---|---|")
            for part, spent in taken.items():
                print(f"| {part} | {spent / (options.trees - 1) * 1e3:.2f} |")
            print(f"| all | {sum(taken.values()) / (options.trees - 1) * 1e3:.2f} |\n", flush=True)


def threads(options):
    """Ours with more and more threads."""
    rows = rows_of(options)
    counts = [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= len(os.sched_getaffinity(0))]
    for contest, libraries in CONTESTS.items():
        per_tree = {count: [] for count in counts}
        for _ in range(options.repeats):
            for options.threads in counts:
                one, all_trees = (
                    seconds(libraries["ranktrees"], rows, options, n) for n in (1, options.trees)
                )
                per_tree[options.threads].append((all_trees - one) / (options.trees - 1) * 1e3)
        print(f"| {contest}, threads | ms per tree | speed-up |\n|---|---|---|")
        for count in counts:
            print(f"| {count} | {np.median(per_tree[count]):.1f} | {ratio(per_tree[1], per_tree[count])} |")
        print(flush=True)


def memory(options):
    """Peak bytes of each library above the state before the fit, in a fresh process."""
    for contest, libraries in CONTESTS.items():
        print(f"| {contest} | peak / float32 input | bytes per row |\n|---|---|---|")
        for library in libraries:
            command = [sys.executable, __file__, "memory", "--memory-of", contest, library]
            for name in ("queries", "threads", "leaves", "trees"):
                command += [f"--{name}", str(getattr(options, name))]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            share, per_row = output.split()[-2:]
            print(f"| {library} | {share} | {per_row} |", flush=True)
        print()


def print_memory(contest, library, options):
    """In the fresh process: fit, and print the peak as a share of the input, and per row."""
    X, y, qid = rows_of(options)
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
    peak = status("VmHWM") - before
    print(f"{peak / (4 * X.size):.2f} {peak / len(X):.0f}")


def accuracy(options):
    """NDCG@10 on test queries at equal trees, leaves and rate; no early stopping."""
    sets = {name: list(data.folds(name)) for name in data.NAMES} if data.folder() else {}
    X, y, qid = make_ranking(options.queries // 2, kind="web", random_state=1, return_X_y_qid=True)
    first = qid < np.quantile(qid, 0.5)
    sets["web, synthetic"] = [((X[first], y[first], qid[first]), None, (X[~first], y[~first], qid[~first]))]
    measure = as_measure("ndcg@10")
    for contest, libraries in CONTESTS.items():
        values = {library: {} for library in libraries}
        for name, parts in sets.items():
            for library, fit in libraries.items():
                of_folds = []
                for train, _, test in parts:
                    scores = fit(*train, options, options.trees)(test[0])
                    offsets = np.concatenate([[0], np.cumsum(data.sizes(test[2]))])
                    labels = test[1].astype(float)
                    of_folds.append(measure.per_query(labels, np.asarray(scores, float), offsets))
                values[library][name] = np.concatenate(of_folds)
        print(f"| {contest} | " + " | ".join(sets) + " | all |\n|---|" + "---|" * (len(sets) + 1))
        for library in libraries:
            cells = []
            for name in [*sets, None]:
                own, other = (
                    values[which][name] if name else np.concatenate(list(values[which].values()))
                    for which in ("ranktrees", library)
                )
                gap = (own - other)[~np.isnan(own - other)]
                error = gap.std(ddof=1) / np.sqrt(len(gap))
                t = f"({gap.mean() / error:+.1f})" if error else ""
                cells.append(f"{np.nanmean(other):.4f} {t}" if name else f"{gap.mean():+.4f} {t}")
            print(f"| {library} | " + " | ".join(cells) + " |", flush=True)
        print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["speed", "profile", "threads", "memory", "accuracy"])
    parser.add_argument("--queries", type=int, default=1580)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--leaves", type=int, default=64)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--only", default="", help="libraries whose name has this in it (speed)")
    parser.add_argument("--memory-of", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory_of:
        print_memory(*options.memory_of, options)
        return
    globals()[options.what](options)


if __name__ == "__main__":
    main()
