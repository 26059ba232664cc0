"""How long the exact best weight of two rankers takes, by measure and by the length of queries.

    python benchmarks/bench_combining.py [--queries 2000] [--rows 120] [--jobs -1]
    python benchmarks/bench_combining.py --grid 2001

Scores of both rankers are the label with noise, labels 0 to 4. A piece is a stretch of weights on which
the mean over all queries is constant.

With ``--grid`` it is compared with so many evenly spaced weights, on the first fold of the real sets: of
LambdaMART and regression, 50 trees each, on the validation part. It must never be below them.
"""

import argparse
import time

import numpy as np
from data import NAMES, folds

from ranktrees import HistGBRTRegressor, LambdaMARTRanker
from ranktrees.evaluation.combining import optimal_weight
from ranktrees.measures import as_measure


def made_up(n_queries, n_rows, seed=0):
    """Scores of two rankers, labels and query ids."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(5, n_queries * n_rows, p=[0.55, 0.25, 0.12, 0.05, 0.03]).astype(float)
    a, b = labels + rng.normal(0, 1.5, (2, len(labels)))
    return a, b, labels, np.repeat(np.arange(n_queries), n_rows)


def compare_with_grid(measures, n_weights, n_jobs):
    rankers = [
        kind(max_iter=50, n_jobs=n_jobs, random_state=0) for kind in (LambdaMARTRanker, HistGBRTRegressor)
    ]
    print("| set | measure | form | weight | value | best of the grid | value | less |")
    print("|---|---|---|---|---|---|---|---|")
    for name in NAMES:
        train, (X, y, qid), _ = next(folds(name))
        a, b = (ranker.fit(*train[:2], qid=train[2]).predict(X) for ranker in rankers)
        for measure in map(as_measure, measures):
            for form in ("convex", "additive"):
                curve = optimal_weight(y, a, b, qid=qid, measure=measure, form=form, n_jobs=n_jobs)
                weights = np.linspace(*curve.weights[[0, -1]], n_weights)
                left = 1.0 - weights if form == "convex" else np.ones(n_weights)
                values = [
                    measure(y, own * a + weight * b, qid=qid)
                    for own, weight in zip(left, weights, strict=True)
                ]
                best = int(np.argmax(values))
                print(
                    f"| {name} | {measure} | {form} | {curve.weight:.4f} | {curve.value:.6f} "
                    f"| {weights[best]:.4f} | {values[best]:.6f} | {curve.value - values[best]:.1e} |"
                )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=120)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument(
        "--measures", nargs="+", default=["ndcg@10", "ndcg", "err@10", "map", "auc", "kendall_tau"]
    )
    parser.add_argument("--grid", type=int, default=0)
    options = parser.parse_args()
    if options.grid:
        return compare_with_grid(options.measures, options.grid, options.jobs)
    a, b, labels, qid = made_up(options.queries, options.rows)
    print(f"{options.queries} queries of {options.rows} rows\n")
    print("| measure | form | seconds | pieces | weight | value | a | b |\n|---|---|---|---|---|---|---|---|")
    for measure in options.measures:
        for form in ("convex", "additive"):
            started = time.perf_counter()
            curve = optimal_weight(labels, a, b, qid=qid, measure=measure, form=form, n_jobs=options.jobs)
            seconds = time.perf_counter() - started
            alone = [curve.measure(labels, scores, qid=qid) for scores in (a, b)]
            print(
                f"| {measure} | {form} | {seconds:.2f} | {len(curve.values):,} | {curve.weight:.4f} "
                f"| {curve.value:.4f} | {alone[0]:.4f} | {alone[1]:.4f} |"
            )


if __name__ == "__main__":
    main()
