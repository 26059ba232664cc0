"""Damaged text models of LightGBM: refused with the name of the file, or read as LightGBM reads them.

    python tests/fuzz/lightgbm_files.py [--seconds 3600] [--files N] [--seed 0] [--first 0]

What is read is a model that holds, and is written as text and read back to the same scores. Where LightGBM
takes the file, too, in a process of its own, it gives the same scores. `fuzzing` says the rest.
"""

import contextlib
import re
import sys
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd

from ranktrees import load_lightgbm
from ranktrees.formats.lightgbm import _ensemble_of, _text_of
from ranktrees.formats.plain import added_up

sys.path.insert(0, str(Path(__file__).parents[1]))  # where this is a script
from fuzz.fuzzing import (
    LIMIT,
    WIDE,
    Judge,
    damaged_lines,
    folder_in_memory,
    main,
    picked,
    read,
    require_valid,
)
from reference import scoring as reference

QUIET = {"verbose": -1, "num_leaves": 5, "min_data_in_leaf": 5, "min_data_per_group": 5, "num_threads": 1}
TRAINED = [
    {},
    {"objective": "binary"},
    {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
    {"use_missing": False},
    {"max_depth": 1},
]


def corpus():
    """Small models that LightGBM has trained, and such as are written here."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)).round(2)
    X[::7, 2] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    frame["site"] = pd.Categorical(rng.choice(["uk", "fr", "de"], len(X)))
    for rows in (X, frame):
        y = (X[:, 0] + X[:, 1] > 0) + (rows is frame) * (frame["site"] == "fr").to_numpy()
        for params in TRAINED:
            labels = np.minimum(y, 1)
            yield lightgbm.train(QUIET | params, lightgbm.Dataset(rows, labels), 2).model_to_string()
    for seed in range(8):
        ensemble = reference.random_ensemble(rng, seed % 4, 6, 4, many=seed % 4 == 1)
        yield _text_of(added_up(reference.with_whole_categories(ensemble)), "regression")


def scores(text, rows):
    """What LightGBM makes of a text."""
    booster = lightgbm.Booster(model_str=text)
    return booster.predict(rows, raw_score="average_output" not in text, num_threads=1)


def require_round_trip(ensemble, rows):
    """Raise unless a model scores as before once it is written as text and read."""
    if any(re.search(r"[\s\0]", name) for name in ensemble.feature_names or ()):
        ensemble = reference.nameless(ensemble)
    with np.errstate(over="ignore", invalid="ignore"):
        again, expected = (
            _ensemble_of(_text_of(added_up(ensemble), "regression")).predict(rows),
            ensemble.predict(rows),
        )
    if ensemble.average:
        np.testing.assert_allclose(again, expected, rtol=1e-9)
    else:
        np.testing.assert_array_equal(again, expected)


@contextlib.contextmanager
def fuzzer(judged=True):
    texts, judge = [text.encode() for text in corpus()], Judge(scores, judged)
    with folder_in_memory() as folder, contextlib.closing(judge):
        path = Path(folder, "model.txt")

        def fuzz(rng):
            data = damaged_lines(rng, picked(rng, texts))
            ensemble = read(load_lightgbm, path, data)
            if ensemble is None:
                return "refused"
            require_valid(rng, ensemble)
            if ensemble.n_features > WIDE:
                return "wide"
            rows = reference.rows_for_others(rng, ensemble, 8)
            require_round_trip(ensemble, rows)
            theirs = judge(data.decode(), rows)
            if theirs is None:
                return "read"
            with np.errstate(over="ignore", invalid="ignore"):
                ours = ensemble.predict(rows)
            if ensemble.average:
                np.testing.assert_allclose(ours, theirs, rtol=1e-9)
            else:
                np.testing.assert_array_equal(ours, theirs)
            return "read, by LightGBM, too"

        yield fuzz


if __name__ == "__main__":
    main(fuzzer, __doc__, limit=LIMIT)
