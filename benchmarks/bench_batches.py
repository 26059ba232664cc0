"""Memory that a fit needs at its peak: all rows at once, and in batches.

    python benchmarks/bench_batches.py [--rows 2000000] [--features 40 136] [--trees 5] [--folder DIR]

Rows are standard normal values in float32, 50 000 in a batch. Each fit has a process of its own; its peak is
that of the process, less what it was after a fit of one batch. Both models have the same bytes, or the script
stops.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
import zlib

import numpy as np

from ranktrees import LambdaMARTRanker
from ranktrees.datasets import Batches

ROWS_OF_BATCH, ROWS_OF_QUERY = 50_000, 100
MEGABYTE = 1 << 20


def batch(number, n_features):
    """One batch: (X, y, qid)."""
    X = np.random.default_rng(number).standard_normal((ROWS_OF_BATCH, n_features), dtype=np.float32)
    y = np.clip(np.round(X[:, 0] + X[:, 1] * X[:, 2] + 1), 0, 4)
    n_queries = ROWS_OF_BATCH // ROWS_OF_QUERY
    return X, y, np.repeat(np.arange(n_queries) + number * n_queries, ROWS_OF_QUERY)


def at_once(n_batches, n_features):
    """All rows in memory."""
    X = np.empty((n_batches * ROWS_OF_BATCH, n_features), np.float32)
    y, qid = np.empty(len(X)), np.empty(len(X), np.int64)
    for number in range(n_batches):
        rows = slice(number * ROWS_OF_BATCH, (number + 1) * ROWS_OF_BATCH)
        X[rows], y[rows], qid[rows] = batch(number, n_features)
    return X, y, None, qid


def peak():
    """The most memory that this process had so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MEGABYTE


def measure(kind, n_batches, n_features, trees, folder):
    """Fit in this process: what is printed is read by the other one."""
    ranker = LambdaMARTRanker(max_iter=trees, random_state=0)
    ranker.fit(Batches([batch(0, n_features)]))
    before, start = peak(), time.perf_counter()
    if kind == "at once":
        X, y, weights, qid = at_once(n_batches, n_features)
        ranker.fit(X, y, weights, qid=qid)
    else:
        ranker.fit(Batches(lambda: (batch(k, n_features) for k in range(n_batches)), folder=folder))
    print(json.dumps([peak() - before, time.perf_counter() - start, zlib.crc32(ranker.ensemble_.to_bytes())]))


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--features", type=int, nargs="+", default=[40, 136])
    parser.add_argument("--trees", type=int, default=5)
    parser.add_argument("--folder")
    options = parser.parse_args()
    n_batches = max(1, options.rows // ROWS_OF_BATCH)
    print("| features | values | at once | in batches |\n|--:|--:|--:|--:|")
    for n_features in options.features:
        cells, models = [], set()
        for kind in ("at once", "in batches"):
            arguments = json.dumps([kind, n_batches, n_features, options.trees, options.folder])
            said = subprocess.run(
                [sys.executable, __file__, "measure", arguments], stdout=subprocess.PIPE, check=True
            ).stdout
            memory, seconds, model = json.loads(said)
            cells.append(f"{memory:.0f} MB, {seconds:.1f} s")
            models.add(model)
        assert len(models) == 1, "the models differ"
        values = 4 * n_batches * ROWS_OF_BATCH * n_features / MEGABYTE
        print(f"| {n_features} | {values:.0f} MB | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["measure"]:
        measure(*json.loads(sys.argv[2]))
    else:
        main()
