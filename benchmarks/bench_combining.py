"""How long the exact best weight of two rankers takes, by measure and by the length of queries.

    python benchmarks/bench_combining.py [--queries 2000] [--rows 120] [--jobs -1]

Scores of both rankers are the label with noise, labels 0 to 4. A piece is a stretch of weights on which
the mean over all queries is constant.
"""

import argparse
import time

import numpy as np

from ranktrees.combining import optimal_weight


def made_up(n_queries, n_rows, seed=0):
    """Scores of two rankers, labels and query ids."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(5, n_queries * n_rows, p=[0.55, 0.25, 0.12, 0.05, 0.03]).astype(float)
    a, b = labels + rng.normal(0, 1.5, (2, len(labels)))
    return a, b, labels, np.repeat(np.arange(n_queries), n_rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=120)
    parser.add_argument("--jobs", type=int, default=-1)
    parser.add_argument(
        "--measures", nargs="+", default=["ndcg@10", "ndcg", "err@10", "map", "auc", "kendall_tau"]
    )
    options = parser.parse_args()
    a, b, labels, qid = made_up(options.queries, options.rows)
    print(f"{options.queries} queries of {options.rows} rows\n")
    print("| measure | form | seconds | pieces | weight | value | a | b |\n|---|---|---|---|---|---|---|---|")
    for measure in options.measures:
        for form in ("convex", "additive"):
            started = time.perf_counter()
            curve = optimal_weight(a, b, labels, qid=qid, measure=measure, form=form, n_jobs=options.jobs)
            seconds = time.perf_counter() - started
            alone = [curve.measure(labels, scores, qid=qid) for scores in (a, b)]
            print(
                f"| {measure} | {form} | {seconds:.2f} | {len(curve.values):,} | {curve.weight:.4f} "
                f"| {curve.value:.4f} | {alone[0]:.4f} | {alone[1]:.4f} |"
            )


if __name__ == "__main__":
    main()
