"""Damaged JSON models of XGBoost: refused with the name of the file, or read as XGBoost reads them.

    python tests/fuzz/xgboost_files.py [--seconds 3600] [--files N] [--seed 0] [--first 0]

What is read is a model that holds. Where XGBoost takes the file, too, in a process of its own, it gives the
same scores in single precision. `fuzzing` says the rest.
"""

import contextlib
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import xgboost

from ranktrees import dump_xgboost, load_xgboost

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

QUIET = {"nthread": 1, "max_depth": 2, "base_score": 0.25}
TRAINED = [
    {},
    {"objective": "binary:logistic"},
    {"objective": "count:poisson"},
    {"booster": "dart", "rate_drop": 0.5},
    {"num_parallel_tree": 2, "subsample": 0.5},
    {"max_cat_to_onehot": 1},
]
PRUNED = {"tree_method": "exact", "gamma": 2.0, "max_depth": 4}  # with deleted nodes, and no categories


def matrix(X, kinds=None, **others):
    return xgboost.DMatrix(X, feature_types=kinds, enable_categorical=True, nthread=1, **others)


def corpus(folder):
    """Small models that XGBoost has trained, and such as are written here."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).round(2)
    X[::7, 2] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["site"] = pd.Categorical(rng.choice(["uk", "fr", "de"], len(X)))
    frame["stars"] = pd.Categorical(rng.choice([1, 2, 5], len(X)))
    y = (X[:, 0] + X[:, 1] + (frame["site"] == "fr") > 0).to_numpy().astype(float)
    path = Path(folder, "model.json")
    for rows in (X, frame):
        for params in TRAINED if rows is frame else [*TRAINED, PRUNED]:
            xgboost.train(QUIET | params, matrix(rows, label=y), 2).save_model(path)
            yield path.read_bytes()
    for seed in range(8):
        ensemble = reference.with_whole_categories(reference.random_ensemble(rng, seed % 4, 6, 4))
        dump_xgboost(ensemble, path)
        yield path.read_bytes()


def scores(path, rows):
    """The margins of XGBoost."""
    booster = xgboost.Booster({"nthread": 1}, model_file=path)
    return booster.predict(matrix(rows, booster.feature_types), output_margin=True, validate_features=False)


@contextlib.contextmanager
def fuzzer(judged=True):
    judge = Judge(scores, judged)
    with folder_in_memory() as folder, contextlib.closing(judge):
        texts, path = list(corpus(folder)), Path(folder, "model.json")

        def fuzz(rng):
            data = damaged_json(rng, picked(rng, texts))
            if claims_many_features(data):
                return "wide"
            ensemble = read(load_xgboost, path, data)
            if ensemble is None:
                return "refused"
            require_valid(rng, ensemble)
            rows = reference.rows_for_others(rng, ensemble, 8, np.float32)
            theirs = judge(str(path), rows)
            largest = size(ensemble)
            if theirs is None or largest > 1e37:
                return "read"
            np.testing.assert_allclose(ensemble.predict(rows), theirs, rtol=2e-6, atol=2e-6 * largest + 1e-30)
            return "read, by XGBoost, too"

        yield fuzz


def claims_many_features(data):
    """Whether reading takes as much memory as the file claims features."""
    with contextlib.suppress(ValueError, LookupError, TypeError, RecursionError, OverflowError):
        return WIDE < int(json.loads(data)["learner"]["learner_model_param"]["num_feature"]) <= 2**24
    return False


if __name__ == "__main__":
    main(fuzzer, __doc__, limit=LIMIT)
