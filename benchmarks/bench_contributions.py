"""Time of contributions and interactions: ranktrees and LightGBM, in turns, on the same model.

    python benchmarks/bench_contributions.py [--trees 100] [--leaves 64] [--queries 150] [--rows 4000]

LightGBM trains the model on made-up rows of 136 features, and both explain it on one thread. LightGBM
explains a twentieth of the rows, since it takes so much longer, and no interactions. Times are those of the
processor, for a row and a tree, in the shortest of ``--repeats`` turns.
"""

import argparse
import time

import lightgbm
import numpy as np

from ranktrees import EnsembleRanker, contributions, interactions, load_lightgbm, make_ranking


def seconds(function):
    start = time.process_time()
    function()
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("trees", 100), ("leaves", 64), ("queries", 150), ("rows", 4000), ("repeats", 7)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    data = make_ranking(args.queries, "web", random_state=0)
    X, few = np.asarray(data.data, np.float64)[: args.rows], slice(max(1, args.rows // 20))
    params = {"num_leaves": args.leaves, "verbose": -1, "num_threads": 1}
    booster = lightgbm.train(params, lightgbm.Dataset(data.data, data.target), args.trees)
    model = EnsembleRanker(load_lightgbm(booster), n_jobs=1)
    contenders = {
        "ranktrees": (len(X), lambda: contributions(model, X)),
        "ranktrees, interactions": (len(X[few]), lambda: interactions(model, X[few])),
        "LightGBM": (len(X[few]), lambda: booster.predict(X[few], pred_contrib=True, num_threads=1)),
    }
    times = {name: [] for name in contenders}
    for _ in range(args.repeats):
        for name, (n_rows, explain) in contenders.items():
            times[name].append(1e6 * seconds(explain) / n_rows / args.trees)
    theirs = booster.predict(X[few], pred_contrib=True, num_threads=1)[:, :-1]
    off_by = abs(contributions(model, X[few]).values - theirs).max() / theirs.std()
    print(f"{args.trees} trees of up to {args.leaves} leaves, {X.shape[1]} features, off by {off_by:.0e}\n")
    print("| | µs a row and tree | its / ours |\n|---|---|---|")
    for name, of_turns in times.items():
        print(f"| {name} | {min(of_turns):.3f} | {min(of_turns) / min(times['ranktrees']):.1f} |")


if __name__ == "__main__":
    main()
