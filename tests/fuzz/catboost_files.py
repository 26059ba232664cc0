"""Damaged JSON models of CatBoost: refused with the name of the file, or read as CatBoost reads them.

    python tests/fuzz/catboost_files.py [--seconds 3600] [--files N] [--seed 0] [--first 0]

What is read is a model that holds. Where CatBoost takes the file, too, in a process of its own, it gives the
same scores. `fuzzing` says the rest.
"""

import contextlib
import sys
from pathlib import Path

import catboost
import numpy as np
import pandas as pd

from ranktrees import load_catboost

sys.path.insert(0, str(Path(__file__).parents[1]))  # where this is a script
from fuzz.fuzzing import (
    LIMIT,
    WIDE,
    Judge,
    damaged_json,
    folder_in_memory,
    main,
    picked,
    read,
    require_valid,
    size,
)
from reference import scoring as reference

QUIET = {"iterations": 2, "depth": 2, "border_count": 8, "verbose": False, "allow_writing_files": False}
QUIET |= {"thread_count": 1, "random_seed": 0}
TRAINED = [
    {},
    {"nan_mode": "Max"},
    {"grow_policy": "Lossguide", "max_leaves": 5},
    {"grow_policy": "Depthwise", "nan_mode": "Max"},
    {"loss_function": "Poisson"},
    {"iterations": 1, "depth": 1},
]


def corpus(folder):
    """Small models that CatBoost has trained."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)).round(2)
    X[::7, 2] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    y = (X[:, 0] + X[:, 1] > 0).astype(float)
    path = Path(folder, "model.json")
    for rows in (X, frame):
        for params in TRAINED:
            model = catboost.CatBoost({"loss_function": "RMSE"} | QUIET | params).fit(rows, y)
            model.save_model(str(path), format="json")
            yield path.read_bytes()


def scores(path, rows):
    """The raw scores of CatBoost."""
    model = catboost.CatBoost().load_model(path, format="json")
    return model.predict(rows, prediction_type="RawFormulaVal", thread_count=1)


@contextlib.contextmanager
def fuzzer(judged=True):
    judge = Judge(scores, judged)
    with folder_in_memory() as folder, contextlib.closing(judge):
        texts, path = list(corpus(folder)), Path(folder, "model.json")

        def fuzz(rng):
            ensemble = read(load_catboost, path, damaged_json(rng, picked(rng, texts)))
            if ensemble is None:
                return "refused"
            require_valid(rng, ensemble)
            if ensemble.n_features > WIDE:
                return "wide"
            rows = reference.random_rows(rng, ensemble, 8)
            theirs = judge(str(path), rows)
            if theirs is None:
                return "read"
            with np.errstate(over="ignore", invalid="ignore"):
                ours = ensemble.predict(rows)
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12 * size(ensemble))
            return "read, by CatBoost, too"

        yield fuzz


if __name__ == "__main__":
    main(fuzzer, __doc__, limit=LIMIT)
