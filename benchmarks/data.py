"""The data sets that the benchmarks run on.

Real sets are looked for in ``$RANKTREES_DATA``, or in ``../shared/data`` beside the repository: ``.npz``
files with ``X``, ``y``, ``qid`` and, where they have folds, ``part`` (1 to 5). They are not part of the
repository.
"""

import os
from pathlib import Path

import numpy as np

FOLDED = ("mq2008", "mq2007_85", "ohsumed")
NAMES = (*FOLDED, "yandex")


def folder():
    """Where the real sets are, or None."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("RANKTREES_DATA", beside))
    return path if path.is_dir() else None


def _rows(data, rows):
    """(X, y, qid), the rows of a query side by side."""
    rows = np.flatnonzero(rows)
    rows = rows[np.argsort(data["qid"][rows], kind="stable")]
    return data["X"][rows], data["y"][rows].astype(np.float64), data["qid"][rows]


def folds(name):
    """Yield (train, validation, test), each (X, y, qid).

    LETOR's folds: three parts train, the next validates, the one after tests. Yandex has one test set;
    a fifth of the training queries validates, drawn three times.
    """
    if name in FOLDED:
        data = dict(np.load(folder() / f"{name}.npz"))
        for fold in range(5):
            parts = [(fold + step) % 5 + 1 for step in range(5)]
            yield tuple(
                _rows(data, np.isin(data["part"], chosen)) for chosen in (parts[:3], parts[3:4], parts[4:])
            )
        return
    train, test = (dict(np.load(folder() / f"{name}_{part}.npz")) for part in ("train", "test"))
    queries = np.unique(train["qid"])
    for seed in range(3):
        drawn = np.random.default_rng(seed).permutation(queries)[: len(queries) // 5]
        validates = np.isin(train["qid"], drawn)
        yield (
            _rows(train, ~validates),
            _rows(train, validates),
            _rows(test, np.ones(len(test["qid"]), bool)),
        )


def sizes(qid):
    """Rows per query, as LightGBM takes them."""
    starts = np.flatnonzero(np.r_[True, qid[1:] != qid[:-1]])
    return np.diff(np.r_[starts, len(qid)])
