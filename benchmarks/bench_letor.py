"""Reading and writing LETOR files, beside scikit-learn and XGBoost: MB of text in a second.

    python benchmarks/bench_letor.py [--rows 100000] [--features 136] [--threads 1 2] [--repeats 3]
        [--folder DIR]

Three fifths of the features are integers, as counts of words, and the others are decimals of six digits;
"all digits" has float64 values with all their digits instead. Files lie in ``--folder``, and the system has
them in memory when they are read. Figures are medians of repeats, in which everybody takes turns, with the
range. scikit-learn has one thread. XGBoost reads into its own matrix, and writes none.
"""

import argparse
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from threadpoolctl import threadpool_limits
from xgboost import DMatrix

from ranktrees import dump_letor, load_letor

ROWS_OF_QUERY = 120


def rows(n_rows, n_features, all_digits):
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, n_features))
    if not all_digits:
        n_counts = n_features * 3 // 5
        X[:, :n_counts] = np.round(rng.gamma(1, 20, (n_rows, n_counts)))
        X = X.round(6).astype(np.float32)
    return X, rng.integers(0, 5, n_rows), np.arange(n_rows) // ROWS_OF_QUERY


def on(n_threads, function):
    with threadpool_limits(n_threads):
        function()


def contenders(X, y, qid, path, threads):
    """What is timed, by its name; each writes and reads a file of its own."""
    theirs = f"{path}.theirs"
    writing = {
        f"ranktrees, threads: {n}": partial(on, n, partial(dump_letor, X, y, path, qid=qid, keep_zeros=True))
        for n in threads
    }
    writing["scikit-learn"] = partial(dump_svmlight_file, X, y, theirs, query_id=qid, zero_based=False)
    reading = {
        f"ranktrees, threads: {n}": partial(on, n, partial(load_letor, path, dtype=X.dtype)) for n in threads
    }
    reading["scikit-learn"] = partial(load_svmlight_file, path, query_id=True, dtype=X.dtype)
    for n in threads:
        reading[f"XGBoost, threads: {n}"] = partial(DMatrix, f"{path}?format=libsvm", nthread=n)
    return {"write": (writing, path, theirs), "read": (reading, path, path)}


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--features", type=int, default=136)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", ".*Text file input has been deprecated", UserWarning)
    print("| values | | | MB | MB/s | range |\n|--|--|--|--:|--:|--:|")
    for values in ("short", "all digits"):
        data = rows(arguments.rows, arguments.features, values == "all digits")
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            path = str(Path(folder, "rows.txt"))
            for what, (functions, ours, theirs) in contenders(*data, path, arguments.threads).items():
                taken = {name: [] for name in functions}
                for _ in range(arguments.repeats):
                    for name, function in functions.items():
                        taken[name].append(seconds(function))
                for name, times in taken.items():
                    size = Path(ours if name.startswith("ranktrees") else theirs).stat().st_size / 1e6
                    least, middle, most = (size / np.quantile(times, [1, 0.5, 0])).tolist()
                    figures = f"{size:.0f} | {middle:.0f} | {least:.0f} to {most:.0f}"
                    print(f"| {values} | {what} | {name} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
