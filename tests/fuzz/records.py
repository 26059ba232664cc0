"""Records with values of all kinds: refused alone as among others, or scored as rows of a data frame are.

    python tests/fuzz/records.py [--seconds 3600] [--files N] [--seed 0] [--first 0]

An input is a few records for one of several models. `fuzzing` says the rest.
"""

import contextlib
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

from ranktrees import HistGBRTClassifier, HistGBRTRegressor, LambdaMARTRanker, RecordScorer

sys.path.insert(0, str(Path(__file__).parents[1]))  # where this is a script
from fuzz.fuzzing import LIMIT, NUMBERS, VALUES, main, picked

SMALL = {"max_iter": 3, "random_state": 0, "n_jobs": 1, "min_samples_leaf": 3, "max_leaf_nodes": 6}
LEVELS = {"site": ["de", "fr", "uk"], "size": ["S", "M", "L"], "stars": [1, 2, 5], "open": [False, True]}
OTHERS = [
    Decimal("1.5"),
    Decimal("nan"),
    Fraction(1, 3),
    1j,
    b"1",
    pd.NA,
    pd.NaT,
    np.datetime64("2024-01-01"),
]
OTHERS += [np.float16(1.5), np.float32(0.1), np.int64(2), np.uint64(2**63), np.bool_(True), np.str_("uk")]
OTHERS += [
    np.array(1.0),
    np.array([1.0, 2.0]),
    np.timedelta64("NaT", "s"),
    object(),
    "unseen",
    "2",
    (),
    (1,),
    set(),
]


def some_rows(rng):
    """A frame, labels and queries."""
    frame = pd.DataFrame(rng.normal(size=(120, 2)).round(1), columns=["price", "age"])
    frame["new"] = rng.random(120) < 0.5
    for name, levels in LEVELS.items():
        codes = rng.integers(len(levels), size=120)
        frame[name] = pd.Categorical.from_codes(codes, levels, ordered=name == "size")
    frame.loc[::5, ["price", "site", "stars"]] = None
    y = frame["price"].fillna(0) + (frame["site"] == "uk") + (frame["size"] != "M") + (frame["stars"] == 2)
    return frame, np.clip(np.round(y + 1), 0, 4).to_numpy(), np.repeat(np.arange(10), 12)


def value(rng, name):
    """A value for a column, mostly one that it may have."""
    levels = LEVELS.get(name)
    match rng.integers(10):
        case 0:
            return picked(rng, NUMBERS)
        case 1:
            return picked(rng, VALUES)
        case 2:
            return picked(rng, OTHERS)
        case 3:
            return picked(rng, [None, float("nan"), pd.NA])
    return picked(rng, levels) if levels else round(rng.normal(), 1)


def record(rng, names):
    """A record as a dict or, sometimes, a list or something else."""
    kept = [name for name in names if rng.random() < 0.5]
    rng.shuffle(kept)
    one = {name: value(rng, name) for name in kept}
    match rng.integers(40):
        case 0:
            return picked(rng, VALUES)
        case 1:
            return one | {picked(rng, ["pric", "", 0, None, "SITE"]): 1}
        case 2:
            return [value(rng, name) for name in names[: rng.integers(len(names) + 1)]]
    return [one.get(name) for name in names] if rng.random() < 0.2 else one


def scored(score, records):
    """The scores, or None if they are refused."""
    try:
        return score(records)
    except ValueError as error:
        if "record" not in str(error):
            raise
        return None


def predicted(model, records):
    """What the model predicts for a frame of records that are no lists."""
    names = list(model.feature_names_in_)
    numbers = [name for name in names if name not in LEVELS]
    frame = pd.DataFrame(records, columns=names, dtype=object)
    for name in numbers:  # NumPy has no number for what is missing in pandas
        frame[name] = [np.nan if pd.isna(each) else float(each) for each in frame[name]]
    return model.predict(frame)


@contextlib.contextmanager
def fuzzer():
    frame, y, qid = some_rows(np.random.default_rng(0))
    models = [
        LambdaMARTRanker(**SMALL).fit(frame, y, qid=qid),
        HistGBRTRegressor("poisson", **SMALL).fit(frame, y),
        HistGBRTClassifier(**SMALL).fit(frame, y > 1),
    ]
    scorers, names = [RecordScorer(model) for model in models], list(frame)

    def fuzz(rng):
        which = rng.integers(len(models))
        score = scorers[which]
        records = [record(rng, names) for _ in range(rng.integers(1, 5))]
        alone = [scored(score, [one]) for one in records]
        together = scored(score, records)
        assert (together is None) == any(one is None for one in alone), records
        taken = [i for i, one in enumerate(alone) if one is not None]
        if not taken:
            return "refused"
        dicts = [
            records[i] if isinstance(records[i], dict) else dict(zip(names, records[i], strict=True))
            for i in taken
        ]
        expected = predicted(models[which], dicts)
        np.testing.assert_array_equal(np.concatenate([alone[i] for i in taken]), expected)
        if together is None:
            return "refused in part"
        np.testing.assert_array_equal(together, expected)
        return "scored"

    yield fuzz


if __name__ == "__main__":
    main(fuzzer, __doc__, limit=LIMIT)
