"""Damaged checkpoints: refused with the name of the file, or the fit goes on from what they say.

    python tests/fuzz/checkpoints.py [--seconds 3600] [--files N] [--seed 0] [--first 0]

A checkpoint whose checksum does not fit is refused, and one that says of the trees what was written gives the
bytes of a fit that was not interrupted. Where a checksum was forged and other trees are taken, they are at
the beginning of the model. Scores of such trees may diverge. A fit that fails
leaves the file as it is. `fuzzing` says the rest.
"""

import contextlib
import hashlib
import json
import sys
from pathlib import Path

import numpy as np
from sklearn.base import clone

from ranktrees import HistGBRTRegressor, LambdaMARTRanker, RandomForestRanker, make_ranking
from ranktrees.training.callbacks import Checkpointing
from ranktrees.training.checkpoints import DIGEST_SIZE, HEAD, MAGIC, Checkpoint

sys.path.insert(0, str(Path(__file__).parents[1]))  # where this is a script
from fuzz.fuzzing import damaged, damaged_json, folder_in_memory, main, picked
from fuzz.native_files import damaged_model

LIMIT = 5.0  # seconds of processor time for a fit
SMALL = {"max_leaf_nodes": 4, "random_state": 0, "n_jobs": 1}
MODELS = [
    LambdaMARTRanker(max_iter=5, **SMALL),
    LambdaMARTRanker(max_iter=8, early_stopping=True, n_iter_no_change=3, **SMALL),
    LambdaMARTRanker(max_iter=5, step="optimal", **SMALL),
    HistGBRTRegressor(max_iter=5, **SMALL),
    RandomForestRanker(5, **SMALL),
]


class InterruptionError(Exception):
    """Ends a fit whose checkpoint was written."""


def interrupted(model, path, n_trees, *rows, **others):
    """The checkpoint that a fit leaves which ends after so many trees."""
    look = Checkpointing.__call__

    def failing(self, progress):
        look(self, progress)
        if progress.iteration == n_trees:
            raise InterruptionError

    path.unlink(missing_ok=True)
    Checkpointing.__call__ = failing
    try:
        clone(model).set_params(checkpoint=path, checkpoint_every=1).fit(*rows, **others)
    except InterruptionError:
        return path.read_bytes()
    finally:
        Checkpointing.__call__ = look
    raise AssertionError("the fit was not interrupted")


def forged(text, model):
    """A checkpoint of a text and a model, with lengths and a checksum that fit."""
    body = HEAD.pack(MAGIC, HEAD.size + len(text) + len(model) + DIGEST_SIZE, len(text)) + text + model
    return body + hashlib.sha256(body).digest()


def damaged_checkpoint(rng, data):
    """A checkpoint with a change: to its bytes, as they are or before the checksum, its text or its model."""
    start = HEAD.size + HEAD.unpack_from(data)[2]
    text, model = data[HEAD.size : start], data[start:-DIGEST_SIZE]
    match rng.integers(8):
        case 0:
            return damaged(rng, data)
        case 1:
            body = damaged(rng, data[:-DIGEST_SIZE])
            return body + hashlib.sha256(body).digest()
        case 2:
            return forged(text, damaged_model(rng, model))
        case 3:
            return forged(damaged(rng, text), model)
    return forged(damaged_json(rng, text), model)


@contextlib.contextmanager
def fuzzer():
    X, y, qid = make_ranking(8, rows_per_query=10, n_features=4, random_state=0, return_X_y_qid=True)
    position = np.tile(np.arange(1, 11), 8)
    given = [(y, {}), ((y > 2) & (position < 9), {"position": position})]
    with folder_in_memory() as folder:
        path = Path(folder, "fit.checkpoint")
        fits = []
        for number, model in enumerate(MODELS):
            for labels, others in given[: 2 if number == 0 else 1]:
                others = {"qid": qid, **others}
                whole = clone(model).fit(X, labels, **others).ensemble_.to_bytes()
                fits.append((model, labels, others, whole, interrupted(model, path, 3, X, labels, **others)))

        def fuzz(rng):
            model, labels, others, whole, written = picked(rng, fits)
            model, data = (
                clone(model).set_params(checkpoint=path, checkpoint_every=100),
                damaged_checkpoint(rng, written),
            )
            path.write_bytes(data)
            try:
                with np.errstate(over="ignore", invalid="ignore"):
                    model.fit(X, labels, **others)
            except ValueError as error:
                if repr(str(path)) not in str(error) and "scores have diverged" not in str(error):
                    raise
                assert path.read_bytes() == data
                assert not hasattr(model, "ensemble_")
                return "refused"
            assert not path.exists()
            for name in ("train_score_", "validation_score_"):
                assert len(getattr(model, name, ())) in (
                    0,
                    len(model.ensemble_),
                    getattr(model, "n_iter_", 0),
                )
            before, now = Checkpoint.from_bytes(written), Checkpoint.from_bytes(data)
            if all(told(before)[name] == told(now)[name] for name in told(now)):
                assert model.ensemble_.to_bytes() == whole
                return "the same bytes"
            n_trees = min(len(now.ensemble), len(model.ensemble_))
            assert model.ensemble_.first(n_trees) == now.ensemble.first(n_trees)
            return "other trees"

        yield fuzz


def told(checkpoint):
    """What decides about the trees, as text."""
    told = {
        name: json.dumps(np.asarray(each, object).tolist())
        for name, each in vars(checkpoint).items()
        if name != "ensemble"
    }
    return told | {"ensemble": checkpoint.ensemble.digest()}


if __name__ == "__main__":
    main(fuzzer, __doc__, limit=LIMIT)
