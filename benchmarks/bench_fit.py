"""Time, memory and accuracy of training: ranktrees and its peers, interleaved in the same run.

    python benchmarks/bench_fit.py speed [--queries 1580] [--threads 2] [--repeats 5]
    python benchmarks/bench_fit.py profile     where a round's time goes, and how far from the limit that is
    python benchmarks/bench_fit.py threads     ours, from one thread to as many as there are processors
    python benchmarks/bench_fit.py memory      peak above what was there before the fit
    python benchmarks/bench_fit.py accuracy    NDCG@10 at equal trees, leaves and rate, query by query
    python benchmarks/bench_fit.py forest [--rows web]   forests of full depth: time, memory, NDCG@10

Rows are MSLR-shaped (136 features, about 120 rows per query): made once, and memory-mapped by all. In
``speed``, ``threads`` and ``memory`` each library, and each variant of ours, has a process of its own,
pinned to as many processors as it has threads (see turns.py); it has read the rows and grown a tree on a
few of them before the clock starts. One of them works at a time: in each repeat every library gets its
turn, in which it fits one tree, and ``--trees`` trees: the time of a tree is the difference, divided, so
that binning does not count. Figures are medians over the repeats; ratios are of ours to the peer's, repeat
by repeat, and then the median and the range, so that what else the machine does hits both. A peer that is
not installed, or fails, is named below the table.

"ranktrees" is what the estimator does by default, but for rate, leaves and drawing rows and features evenly,
which all have in common: where there are many features it searches splits coarsely first, and on a sample of
the rows, drawn by their gradients. "all rows" does not draw, "full search" looks at every bin.

``threads`` also times what shares nothing, at the same time: as many fits of one thread, each in a process
of its own, and as many hashes, which need no memory. On a machine that others use, too, two of them are not
always twice as fast as one.

``forest`` grows ``--trees`` trees, on Yandex or on the MSLR-shaped rows, each to leaves of one row or one
label, on bootstrap samples of the rows, with the same share of features in each split; the time of a tree is
that of the whole fit, divided. "exact" looks at every distinct value, as scikit-learn does.
"""

import argparse
import cProfile
import hashlib
import os
import pstats
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import data
import numpy as np
from turns import AtOnce, Process, interleaved, print_refusals, ratio

from ranktrees import HistGBRTRegressor, LambdaMARTRanker, RandomForestRanker, as_measure, make_ranking
from ranktrees.growing.grower import TreeGrower

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
        "ranktrees, all rows": ours(LambdaMARTRanker, gradient_sampling=None),
        "ranktrees, full search": ours(LambdaMARTRanker, split_search="full"),
        "LightGBM": lightgbm("lambdarank"),
        "LightGBM quantized, 63 bins": lightgbm("lambdarank", **FASTEST),
        "XGBoost": xgboost("rank:ndcg"),
    },
    "squared error": {
        "ranktrees": ours(HistGBRTRegressor),
        "ranktrees, all rows": ours(HistGBRTRegressor, gradient_sampling=None),
        "ranktrees, full search": ours(HistGBRTRegressor, split_search="full"),
        "LightGBM": lightgbm("regression"),
        "LightGBM quantized, 63 bins": lightgbm("regression", **FASTEST),
        "XGBoost": xgboost("reg:squarederror"),
        "HistGradientBoosting": hist_gradient_boosting,
    },
}


SHARES = {"a tenth": 0.1, "a third": 1 / 3, "all": 1.0}  # of the features, in each split


def our_forest(share, **parameters):
    """A forest of full depth."""

    def fit(X, y, qid, options, n_trees):
        settings = {"min_samples_leaf": 1, "random_state": 0, "n_jobs": options.threads, **parameters}
        n_features = max(1, int(share * X.shape[1]))
        return RandomForestRanker(n_trees, max_features=n_features, **settings).fit(X, y, qid=qid).predict

    return fit


def scikit_learn_forest(share):
    """scikit-learn's, whose trees are of full depth by default."""

    def fit(X, y, qid, options, n_trees):
        from sklearn.ensemble import RandomForestRegressor

        n_features = max(1, int(share * X.shape[1]))
        model = RandomForestRegressor(
            n_trees, max_features=n_features, random_state=0, n_jobs=options.threads
        )
        return model.fit(X, y).predict

    return fit


FORESTS = {
    f"forests, {name} of the features": {
        "ranktrees": our_forest(share),
        "ranktrees, exact": our_forest(share, split_search="exact"),
        "RandomForestRegressor": scikit_learn_forest(share),
    }
    for name, share in SHARES.items()
}


# A library's process (see turns.py).


def ready(contest, library, folder, options):
    """(the rows, a function from a number of trees to the seconds of their fit)."""
    options = argparse.Namespace(**options)
    fit = CONTESTS[contest][library]
    X, y, qid = (np.asarray(np.load(f"{folder}/{part}.npy", mmap_mode="c")) for part in ("X", "y", "qid"))
    for part in (X, y, qid):
        part.max()  # so that all pages are there
    few = np.flatnonzero(qid < 20)
    fit(X[few], y[few], qid[few], options, 1)  # imports, thread pools

    def seconds(n_trees):
        started = time.perf_counter()
        fit(X, y, qid, options, n_trees)
        return time.perf_counter() - started

    return X, seconds


def fitting(questions, contest, library, folder, options):
    """The seconds of one tree, and of as many as are asked for."""
    _, seconds = ready(contest, library, folder, options)
    yield {}
    for n_trees in questions:
        yield {"one": seconds(1), "all": seconds(n_trees)}


def hashing(questions, n_threads):
    """The seconds of as many hashes at the same time as there are threads, which share nothing."""

    def hash_once(_):
        hashlib.pbkdf2_hmac("sha256", b"password", b"salt", 500_000)

    with ThreadPoolExecutor(n_threads) as pool:
        yield {}
        for _ in questions:
            started = time.perf_counter()
            list(pool.map(hash_once, range(n_threads)))
            yield {"one": 0.0, "all": time.perf_counter() - started}


def peaking(_, contest, library, folder, options):
    """The peak of one fit above what was there before: as a share of the input, and bytes per row."""
    X, seconds = ready(contest, library, folder, options)
    _, peak = peak_of(lambda: seconds(options["trees"]))
    yield {"share": peak / (4 * X.size), "per_row": peak / len(X)}


def growing(questions, contest, library, folder, options):
    """Seconds of a forest, peak above what was there before, and NDCG@10 on the test rows."""
    options, fit = argparse.Namespace(**options), FORESTS[contest][library]
    (X, y, qid), test = (
        [np.load(f"{folder}/{name} {part}.npy") for part in ("X", "y", "qid")] for name in ("train", "test")
    )
    offsets = np.concatenate([[0], np.cumsum(data.sizes(test[2]))])
    fit(X[:200], y[:200], qid[:200], options, 1)  # imports, thread pools
    yield {}
    for n_trees in questions:
        started = time.perf_counter()
        predict, peak = peak_of(lambda n_trees=n_trees: fit(X, y, qid, options, n_trees))
        taken = time.perf_counter() - started
        values = as_measure("ndcg@10").per_query(test[1], np.asarray(predict(test[0]), float), offsets)
        yield {"seconds": taken, "peak": peak, "ndcg": float(np.nanmean(values))}


def peak_of(work):
    """What it returns, and the peak of memory meanwhile above what was there before."""

    def status(field):
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))

    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")
    before = status("VmRSS")
    done = work()
    return done, status("VmHWM") - before


# The tables.


def rows_of(options):
    """(X, y, qid), MSLR-shaped."""
    rows = make_ranking(options.queries, kind="web", random_state=0, return_X_y_qid=True)
    shape = " x ".join(map(str, rows[0].shape))
    print(f"{shape}, {options.leaves} leaves, {options.threads} threads\n", flush=True)
    return rows


def save_rows(options, folder):
    """As files, which the processes map."""
    for part, values in zip(("X", "y", "qid"), rows_of(options), strict=True):
        np.save(folder / f"{part}.npy", values)


def process_of(work, contest, folder, options, library, first=0):
    """The process of a library, and on which processor it begins."""
    log = folder / f"{contest}, {library}, {options.threads} from {first}.log"
    return Process(work, [contest, library, str(folder), vars(options)], options.threads, log, first=first)


def timed(start, names, options):
    """(ms per tree and seconds of the whole fit in each repeat, why some have none), by name."""
    answers, refusals = interleaved(start, names, [options.trees] * options.repeats)
    whole, per_tree = {}, {}
    for name, (_, *taken) in answers.items():
        one, whole[name] = (np.array([each[what] for each in taken]) for what in ("one", "all"))
        per_tree[name] = (whole[name] - one) / (options.trees - 1) * 1e3
    return per_tree, whole, refusals


def chosen_among(libraries, options):
    return [name for name in libraries if name == "ranktrees" or options.only in name]


def speed(options, folder):
    """Time per tree, and of the whole fit."""
    save_rows(options, folder)
    for contest, libraries in CONTESTS.items():
        start = partial(process_of, fitting, contest, folder, options)
        chosen = chosen_among(libraries, options)
        per_tree, whole, refusals = timed(start, chosen, options)
        print(f"| {contest} | ms per tree | ours / its | {options.trees} trees, s | ours / its |")
        print("|---|---|---|---|---|")
        for library in per_tree:
            print(
                f"| {library} | {np.median(per_tree[library]):.1f} "
                f"| {ratio(per_tree['ranktrees'], per_tree[library])} | {np.median(whole[library]):.2f} "
                f"| {ratio(whole['ranktrees'], whole[library])} |"
            )
        print(flush=True)
        print_refusals(refusals)


# Which functions call which kernels: what they take themselves is the kernel's time.
PARTS = {
    "gradients": [(f"{kind}.py", "gradients") for kind in ("pointwise", "pairwise", "listwise")],
    "rows drawn, and those left out": [("sampling.py", "_draw_below"), ("grown.py", "follow")],
    "rounding, and setting apart": [("rounding.py", name) for name in ("round", "_largest", "_scale")],
    "rows brought back": [("grower.py", "grow")],
    "lines of cells": [("searching.py", function) for function in ("root", "children", "take_over")],
    "scan": [("searching.py", "find")],
    "refinement": [("searching.py", "settle")],
    "searching again": [("searching.py", "search_again")],
    "small leaves": [("searching.py", "find_directly")],
    "partition": [("grower.py", "_split")],
    "leaf values": [("grown.py", "set_values")],
    "scores": [("grown.py", "add")],
}


def profile(options, _):
    """Where a round's time goes, with leaves grown step by step: in one call, parts can not be told."""
    rows = rows_of(options)
    TreeGrower._in_one_call = lambda grower: None
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


def threads(options, folder):
    """Ours with more and more threads, and what the machine gives to what shares nothing."""
    save_rows(options, folder)
    counts = [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= len(os.sched_getaffinity(0))]
    trees, fits, hashes = (
        {f"{what}, {n}": n for n in counts}
        for what in ("ranktrees", "fits of one thread at once", "hashes at once")
    )
    for contest in CONTESTS:

        def start(name, contest=contest):
            if name in hashes:
                return Process(hashing, [hashes[name]], hashes[name], folder / f"{name}.log")
            its = argparse.Namespace(**{**vars(options), "threads": trees.get(name, 1)})
            if name in fits:
                places = range(fits[name])
                return AtOnce(process_of(fitting, contest, folder, its, "ranktrees", at) for at in places)
            return process_of(fitting, contest, folder, its, "ranktrees")

        per_tree, whole, _ = timed(start, [*trees, *fits, *hashes], options)
        print(f"| {contest}, threads | ms per tree | speed-up |\n|---|---|---|")
        for name, n in {**trees, **fits}.items():
            done = n if name in fits else 1
            print(
                f"| {name} | {np.median(per_tree[name]):.1f} "
                f"| {ratio(done * per_tree['ranktrees, 1'], per_tree[name])} |"
            )
        for name, n in hashes.items():
            print(f"| {name} | | {ratio(n * whole['hashes at once, 1'], whole[name])} |")
        print(flush=True)


def memory(options, folder):
    """Peak bytes of each library above the state before the fit."""
    save_rows(options, folder)
    for contest, libraries in CONTESTS.items():
        start = partial(process_of, peaking, contest, folder, options)
        print(f"| {contest} | peak / float32 input | bytes per row |\n|---|---|---|")
        refusals = {}
        for library in chosen_among(libraries, options):
            answers, refused = interleaved(start, [library], [])
            refusals |= refused
            for (peak,) in answers.values():
                print(f"| {library} | {peak['share']:.2f} | {peak['per_row']:.0f} |", flush=True)
        print(flush=True)
        print_refusals(refusals)


def rows_of_forest(options):
    """Training and test rows, as (X, y, qid)."""
    if options.rows == "web":
        X, y, qid = make_ranking(options.queries * 3 // 2, kind="web", random_state=0, return_X_y_qid=True)
        first = qid < np.quantile(qid, 2 / 3)
        print(f"{first.sum()} x {X.shape[1]}\n", flush=True)
        return (X[first], y[first], qid[first]), (X[~first], y[~first], qid[~first])
    if data.folder() is None:
        sys.exit("No real data sets here: set RANKTREES_DATA to a folder that has them.")
    train, held_out, test = next(data.folds("yandex"))
    return [np.concatenate(both) for both in zip(train, held_out, strict=True)], test


def forest(options, folder):
    """Forests of full depth."""
    for name, rows in zip(("train", "test"), rows_of_forest(options), strict=True):
        for part, values in zip(("X", "y", "qid"), rows, strict=True):
            np.save(folder / f"{name} {part}.npy", values)
    for contest, everyone in FORESTS.items():
        libraries = chosen_among(everyone, options)
        start = partial(process_of, growing, contest, folder, options)
        answers, refusals = interleaved(start, libraries, [options.trees] * options.repeats)
        seconds = {name: [each["seconds"] for each in taken] for name, (_, *taken) in answers.items()}
        print(f"| {contest} | ms per tree | ours / its | peak, MB | NDCG@10 |\n|---|---|---|---|---|")
        for library, (_, first, *_) in answers.items():
            print(
                f"| {library} | {np.median(seconds[library]) / options.trees * 1e3:.1f} "
                f"| {ratio(seconds['ranktrees'], seconds[library])} "
                f"| {first['peak'] / 1e6:.0f} | {first['ndcg']:.4f} |"
            )
        print(flush=True)
        print_refusals(refusals)


def accuracy(options, _):
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
    parser.add_argument("what", choices=["speed", "profile", "threads", "memory", "accuracy", "forest"])
    parser.add_argument("--queries", type=int, default=1580)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--leaves", type=int, default=64)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--rows", choices=["yandex", "web"], default="yandex", help="of forests")
    parser.add_argument(
        "--only", default="", help="ours, and libraries with this in their name (speed, memory, forest)"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        globals()[options.what](options, Path(folder))


if __name__ == "__main__":
    main()
