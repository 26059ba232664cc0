"""Threads of one program that fit and score at the same time, each of which must get what it would get alone.

    python tests/threads.py [--threads 16] [--seconds 600] [--seed 0]

Where Python has no global lock, they are in its code at the same time, and elsewhere only in the kernels.
"""

import argparse
import random
import sys
import threading
import time
from collections import Counter

import numpy as np

from ranktrees import (
    Ensemble,
    EnsembleRanker,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    OrdinalRanker,
    RandomForestRanker,
    contributions,
    make_ranking,
)
from ranktrees.measures import NDCG

X, y, qid = make_ranking(30, random_state=0, return_X_y_qid=True)
SHARED = LambdaMARTRanker(max_iter=20, random_state=0, n_jobs=1).fit(X, y, qid=qid)
MODEL = SHARED.ensemble_.to_bytes()


def scores_of(ranker):
    return ranker.fit(X, y, qid=qid).predict(X).tobytes()


TASKS = {
    "lambdamart": lambda: scores_of(LambdaMARTRanker(max_iter=8, random_state=1, n_jobs=1)),
    "threads": lambda: scores_of(LambdaMARTRanker(max_iter=8, random_state=1, n_jobs=2, query_subsample=0.7)),
    "squared": lambda: scores_of(HistGBRTRegressor(max_iter=8, random_state=1, subsample=0.5)),
    "classifier": lambda: scores_of(HistGBRTClassifier(max_iter=4, random_state=1, n_jobs=1)),
    "forest": lambda: scores_of(RandomForestRanker(4, random_state=1, n_jobs=2)),
    "ordinal": lambda: scores_of(OrdinalRanker(HistGBRTClassifier(max_iter=2, random_state=1, n_jobs=1))),
    "score": lambda: SHARED.predict(X).tobytes(),
    "score in threads": lambda: EnsembleRanker(SHARED.ensemble_, n_jobs=2).predict(X).tobytes(),
    "one row": lambda: np.concatenate([SHARED.predict(row[None]) for row in X[:20]]).tobytes(),
    "staged": lambda: np.array(list(SHARED.staged_predict(X))).tobytes(),
    "contributions": lambda: contributions(SHARED, X[:50])[0].tobytes(),
    "measure": lambda: np.float64(NDCG(y, SHARED.predict(X), qid=qid)).tobytes(),
    "loaded": lambda: Ensemble.from_bytes(MODEL).to_bytes(),
}


def run(n_threads, seconds, seed=0):
    """How often each task was done within the time. The first difference or error ends all threads.

    Parameters
    ----------
    n_threads : int
    seconds : float
    seed : int, default=0
        What the threads draw their tasks by.

    Returns
    -------
    done : Counter of str
    """
    expected = {name: task() for name, task in TASKS.items()}
    counts, errors, last = [Counter() for _ in range(n_threads)], [], time.monotonic() + seconds

    def work(number):
        draws = random.Random(seed + number)
        try:
            while time.monotonic() < last and not errors:
                name = draws.choice([*TASKS])
                assert TASKS[name]() == expected[name], name
                counts[number][name] += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=[number]) for number in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return sum(counts, Counter())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    done = run(arguments.threads, arguments.seconds, arguments.seed)
    lock = "a" if getattr(sys, "_is_gil_enabled", lambda: True)() else "no"
    print(f"{arguments.threads} threads, {lock} global lock: {done.total()} tasks, all as alone")
    for name, count in done.most_common():
        print(f"{count:8d} {name}")
