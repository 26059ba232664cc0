"""One query in a service: what it takes to get from records, or a data frame of them, to scores.

    python benchmarks/bench_records.py [--trees 200] [--rows 37] [--features 12] [--queries 400]

A LambdaMART model of 31 leaves a tree, three of whose features are categories of 8, 40 and 200 levels, on
one thread. Records are what json.loads returns. Times are microseconds a call: the fastest, and the median.
"""

import argparse
import json
import time

import numpy as np
import pandas as pd

from ranktrees import LambdaMARTRanker, RecordScorer, make_ranking

N_LEVELS = {0: 8, 1: 40, 2: 200}


def some_rows(n_queries, n_rows, n_features):
    X, y, qid = make_ranking(
        n_queries, rows_per_query=n_rows, n_features=n_features, random_state=0, return_X_y_qid=True
    )
    frame, rng = pd.DataFrame(X, columns=[f"f{j}" for j in range(n_features)]), np.random.default_rng(0)
    for j, n_levels in N_LEVELS.items():
        cuts = np.quantile(X[:, j], np.linspace(0, 1, n_levels + 1)[1:-1])
        words = rng.permutation([f"level {level}" for level in range(n_levels)])
        frame[f"f{j}"] = pd.Categorical(words[np.searchsorted(cuts, X[:, j])])
    return frame, y, qid


def microseconds(call, repeats):
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        call()
        times.append(1e6 * (time.perf_counter() - started))
    return min(times), np.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    for name, default in {"trees": 200, "rows": 37, "features": 12, "queries": 400, "repeats": 2000}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    frame, y, qid = some_rows(options.queries, options.rows, options.features)
    model = LambdaMARTRanker(max_iter=options.trees, max_leaf_nodes=31, random_state=0, n_jobs=1)
    model.fit(frame, y, qid=qid)
    query, score = frame[: options.rows], RecordScorer(model)
    records = json.loads(query.to_json(orient="records", double_precision=15))
    rows = score._records.read(records)
    lists = [list(record.values()) for record in records]
    assert (score(records) == model.predict(pd.DataFrame(records))).all()
    calls = {
        "records": lambda: score(records),
        "- reading them": lambda: score._records.read(records),
        "- scoring": lambda: score._model._scores(rows, rows),
        "lists": lambda: score(lists),
        "a data frame": lambda: model.predict(query),
        "a data frame, made of records": lambda: model.predict(pd.DataFrame(records)),
    }
    print(f"| {options.rows} rows from | fastest | median |\n|---|---|---|")
    for name, call in calls.items():
        n_calls = options.repeats // 10 if "frame" in name else options.repeats
        fastest, median = microseconds(call, n_calls)
        print(f"| {name} | {fastest:.1f} | {median:.1f} |", flush=True)


if __name__ == "__main__":
    main()
