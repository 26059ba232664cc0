"""A fit that is interrupted and resumed gives the same bytes as one that is not."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from ranks import together
from sklearn.base import clone
from sklearn.linear_model import Ridge

import ranktrees
from ranktrees import (
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    RandomForestRanker,
    make_ranking,
)
from ranktrees.model.ensemble import Ensemble
from ranktrees.processes.communicator import ALONE, RankError, training_with
from ranktrees.training.callbacks import Checkpointing, Progress
from ranktrees.training.checkpoints import HEAD, Checkpoint, CheckpointFile


@pytest.fixture(scope="module")
def rows():
    X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    return X.astype(np.float32), y, qid


@pytest.fixture
def path(tmp_path):
    return tmp_path / "fit.checkpoint"


class InterruptionError(Exception):
    pass


@pytest.fixture
def stop_at(monkeypatch):
    """A function: fits with checkpoints fail after that tree."""
    look = Checkpointing.__call__

    def stop_at(tree, error=InterruptionError):
        def failing(self, progress):
            wish = look(self, progress)
            if progress.iteration == tree:
                raise error
            return wish

        monkeypatch.setattr(Checkpointing, "__call__", look if tree is None else failing)

    return stop_at


def bytes_of(model):
    return [ensemble.to_bytes() for ensemble in model._ensembles]


def told(model):
    """All that a fitted model says of its training."""
    names = ("train_score_", "validation_score_", "n_iter_", "best_iteration_", "propensities_")
    names += ("oob_score_", "oob_prediction_")
    return {name: np.array(getattr(model, name)).tobytes() for name in names if hasattr(model, name)}


def lambdamart(**parameters):
    return LambdaMARTRanker(max_iter=9, max_leaf_nodes=8, random_state=0).set_params(**parameters)


def squared(**parameters):
    return HistGBRTRegressor(max_iter=9, max_leaf_nodes=8, random_state=0).set_params(**parameters)


def early(**parameters):
    early = {"max_iter": 60, "learning_rate": 0.4, "early_stopping": True, "n_iter_no_change": 6}
    return lambdamart(query_subsample=0.8, noise=1.0, **early | parameters)


def forest(**parameters):
    return RandomForestRanker(9, random_state=0).set_params(**parameters)


MODELS = {
    "lambdamart": lambdamart,
    "lambdamart, early stopping": early,
    "optimal steps": lambda **kw: lambdamart(step="optimal", **kw),
    "optimal steps of means": lambda **kw: lambdamart(
        step="optimal", step_rows="validation", leaf_values="mean", early_stopping=True, **kw
    ),
    "squared": squared,
    "absolute": lambda **kw: squared(loss="absolute_error", subsample=0.5, **kw),
    "costs": lambda **kw: squared(feature_costs=np.linspace(0.0, 0.02, 50), cost_rule="worth", **kw),
    "forest": forest,
    "forest, out of bag": lambda **kw: forest(oob_score=True, bootstrap_unit="query", **kw),
    "forest, costs": lambda **kw: forest(feature_costs=np.linspace(0.0, 0.02, 50), stage_size=3, **kw),
    "from a forest": lambda **kw: squared(init=forest(n_estimators=3), **kw),
    "from another's model": lambda **kw: squared(init=Ridge(), init_cv=3, **kw),
}


# ---- the same bytes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_goes_on_to_the_same_bytes(rows, path, stop_at, name):
    X, y, qid = rows
    make = MODELS[name]
    whole = make().fit(X, y, qid=qid)
    stop_at(5)
    with pytest.raises(InterruptionError):
        make(checkpoint=path, checkpoint_every=2, n_jobs=1).fit(X, y, qid=qid)
    found = Checkpoint.from_bytes(path.read_bytes())
    assert len(found.ensemble) == 4 + getattr(whole, "n_init_trees_", 0)
    stop_at(None)
    resumed = make(checkpoint=str(path), checkpoint_every=3, n_jobs=2).fit(X, y, qid=qid)
    assert bytes_of(resumed) == bytes_of(whole)
    assert told(resumed) == told(whole)
    assert not os.listdir(path.parent)


@pytest.mark.parametrize("name", ["lambdamart, early stopping", "absolute", "forest", "forest, out of bag"])
def test_goes_on_with_other_ranks(rows, path, stop_at, name):
    X, y, qid = rows
    make = MODELS[name]

    def train(ranks):
        own = np.flatnonzero(np.searchsorted(np.array([7, 30]), qid, side="right") % ranks.size == ranks.rank)
        model = make(checkpoint=path, checkpoint_every=2, n_jobs=1 + ranks.rank % 2)
        with training_with(ranks):
            return bytes_of(model.fit(X[own], y[own], qid=qid[own]))

    expected = bytes_of(make().fit(X, y, qid=qid))
    for tree, size in ((3, 3), (5, 2), (7, 1)):
        stop_at(tree)
        with pytest.raises(InterruptionError):
            together(size, train)
        assert len(Checkpoint.from_bytes(path.read_bytes()).ensemble) == tree - 1
    stop_at(None)
    assert together(2, train) == [expected] * 2
    assert not os.listdir(path.parent)


def test_a_driver_has_its_ranks_keep_checkpoints(rows, path, stop_at, monkeypatch):
    class Ranks:
        n_ranks = 2

        def run_rows(self, function, shards, estimator):
            return together(2, lambda ranks: function(ranks, shards[ranks.rank], clone(estimator)))

    X, y, qid = rows
    expected = bytes_of(lambdamart().fit(X, y, qid=qid))
    model = lambdamart(checkpoint=path, checkpoint_every=2)
    with monkeypatch.context() as patch:
        patch.setattr(
            "ranktrees.estimators.boosted.active_driver",
            lambda: Ranks() if ranktrees.processes.communicator.active().alone else None,
        )
        stop_at(5)
        with pytest.raises((InterruptionError, RankError)):
            model.fit(X, y, qid=qid)
    assert path.exists()
    stop_at(None)
    assert bytes_of(model.fit(X, y, qid=qid)) == expected


def test_what_was_learned_from_clicks_goes_on(rows, path, stop_at):
    X, y, qid = rows
    position = np.concatenate([np.arange(1, 1 + n) for n in np.unique(qid, return_counts=True)[1]])
    clicks = (y > 2) & (position < 9)
    whole = lambdamart().fit(X, clicks, qid=qid, position=position)
    model = lambdamart(checkpoint=path, checkpoint_every=2)
    stop_at(4)
    with pytest.raises(InterruptionError):
        model.fit(X, clicks, qid=qid, position=position)
    stop_at(None)
    with pytest.raises(ValueError, match="position of the training rows changed"):
        model.fit(X, clicks, qid=qid, position=position[::-1].copy())
    model.fit(X, clicks, qid=qid, position=position)
    assert bytes_of(model) == bytes_of(whole)
    np.testing.assert_array_equal(model.propensities_, whole.propensities_)


@pytest.mark.parametrize("change", [lambda each: each[:-1], lambda each: 0 * each, lambda each: each / 0])
def test_what_cannot_have_been_learned_from_clicks_is_refused(rows, path, stop_at, change):
    X, y, qid = rows
    position = np.concatenate([np.arange(1, 1 + n) for n in np.unique(qid, return_counts=True)[1]])
    clicks = (y > 2) & (position < 9)
    model = lambdamart(checkpoint=path, checkpoint_every=2)
    stop_at(4)
    with pytest.raises(InterruptionError):
        model.fit(X, clicks, qid=qid, position=position)
    stop_at(None)
    found = Checkpoint.from_bytes(path.read_bytes())
    with np.errstate(divide="ignore"):
        learned = [change(np.array(found.learned[0])), *found.learned[1:]]
    path.write_bytes(replace(found, learned=learned).to_bytes())
    message = rf"checkpoint='{re.escape(str(path))}' is damaged: it holds .* numbers that the loss has"
    with pytest.raises(ValueError, match=message):
        model.fit(X, clicks, qid=qid, position=position)


def test_preferences(rows, path, stop_at):
    X, _, qid = rows
    pairs = np.flatnonzero(np.diff(qid) == 0)
    pairs = np.column_stack([pairs, pairs + 1])
    whole = lambdamart(loss="ranknet").fit(X, qid=qid, pairs=pairs)
    model = lambdamart(loss="ranknet", checkpoint=path, checkpoint_every=2)
    stop_at(4)
    with pytest.raises(InterruptionError):
        model.fit(X, qid=qid, pairs=pairs)
    stop_at(None)
    with pytest.raises(ValueError, match="pairs of the training rows changed"):
        model.fit(X, qid=qid, pairs=pairs[1:])
    assert bytes_of(model.fit(X, qid=qid, pairs=pairs)) == bytes_of(whole)


def test_without_a_number_the_seed_is_that_of_the_checkpoint(rows, path, stop_at):
    X, y, qid = rows
    model = early(checkpoint=path, checkpoint_every=2, random_state=None)
    stop_at(4)
    with pytest.raises(InterruptionError):
        model.fit(X, y, qid=qid)
    seed = Checkpoint.from_bytes(path.read_bytes()).seed
    stop_at(None)
    model.fit(X, y, qid=qid)
    assert model._seed_ == seed


def test_a_warm_start_goes_on_from_the_model_that_it_began_with(rows, path, stop_at):
    X, y, qid = rows
    whole = early().fit(X, y, qid=qid)
    first = early(max_iter=3, warm_start=True).fit(X, y, qid=qid)
    first.set_params(max_iter=60, checkpoint=path, checkpoint_every=2)
    stop_at(7)
    with pytest.raises(InterruptionError):
        first.fit(X, y, qid=qid)
    stop_at(None)
    with pytest.raises(ValueError, match="the model to start from changed"):
        early(checkpoint=path).fit(X, y, qid=qid)
    first.fit(X, y, qid=qid)
    assert bytes_of(first) == bytes_of(whole)
    assert told(first) == told(whole)


def test_more_trees_may_be_asked_for_and_not_fewer(rows, path, stop_at):
    X, y, qid = rows
    for make, name in ((lambdamart, "max_iter"), (forest, "n_estimators")):
        stop_at(5)
        with pytest.raises(InterruptionError):
            make(checkpoint=path, checkpoint_every=2, n_jobs=1).fit(X, y, qid=qid)
        stop_at(None)
        with pytest.raises(
            ValueError, match=rf"{name}=3 is less than the 4 trees in checkpoint=.*raise {name}"
        ):
            make(checkpoint=path, **{name: 3}).fit(X, y, qid=qid)
        found = path.read_bytes()
        as_many = make(checkpoint=path, **{name: 4}).fit(X, y, qid=qid)
        assert bytes_of(as_many) == bytes_of(make(**{name: 4}).fit(X, y, qid=qid))
        path.write_bytes(found)
        resumed = make(checkpoint=path, **{name: 12}).fit(X, y, qid=qid)
        assert bytes_of(resumed) == bytes_of(make(**{name: 12}).fit(X, y, qid=qid))


def test_verbose_may_change(rows, path, stop_at, capsys):
    X, y, qid = rows
    stop_at(5)
    with pytest.raises(InterruptionError):
        lambdamart(checkpoint=path, checkpoint_every=2).fit(X, y, qid=qid)
    stop_at(7)
    with pytest.raises(InterruptionError):
        lambdamart(checkpoint=path, checkpoint_every=2, verbose=1).fit(X, y, qid=qid)
    stop_at(None)
    resumed = lambdamart(checkpoint=path, verbose=1).fit(X, y, qid=qid)
    assert bytes_of(resumed) == bytes_of(lambdamart().fit(X, y, qid=qid))
    assert len(resumed.train_score_) == 0
    assert "7 of 9 trees" in capsys.readouterr().out


# ---- interruptions of all kinds ---------------------------------------------------------------------------


def test_keyboard_interrupt(rows, path, stop_at):
    X, y, qid = rows
    model = squared(checkpoint=path, checkpoint_every=1)
    stop_at(3, KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, qid=qid)
    assert not hasattr(model, "ensemble_")
    stop_at(None)
    assert bytes_of(model.fit(X, y, qid=qid)) == bytes_of(squared().fit(X, y, qid=qid))


KILLED = """
import sys
from ranktrees import HistGBRTRegressor, make_ranking
X, y, qid = make_ranking(20, random_state=0, return_X_y_qid=True)
model = HistGBRTRegressor(max_iter=10**6, random_state=0, checkpoint=sys.argv[1], checkpoint_every=1)
model.fit(X, y, qid=qid)
"""


def test_a_killed_process_leaves_a_whole_file(path):
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(path)])
    try:
        until = time.monotonic() + 60
        while not path.exists():
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(signal.SIGKILL)
        process.wait()
    finally:
        process.kill()
    n_found = len(Checkpoint.from_bytes(path.read_bytes()).ensemble)
    X, y, qid = make_ranking(20, random_state=0, return_X_y_qid=True)
    model = HistGBRTRegressor(max_iter=n_found + 3, random_state=0)
    expected = bytes_of(model.fit(X, y, qid=qid))
    assert bytes_of(model.set_params(checkpoint=path).fit(X, y, qid=qid)) == expected


def test_a_write_that_fails_leaves_the_last_one(rows, path, monkeypatch):
    X, y, qid = rows
    replace, calls = os.replace, []

    def full(source, target):
        calls.append(target)
        if len(calls) == 3:
            raise OSError("no space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space left"):
        squared(checkpoint=path, checkpoint_every=2).fit(X, y, qid=qid)
    assert os.listdir(path.parent) == [path.name]
    assert len(Checkpoint.from_bytes(path.read_bytes()).ensemble) == 4


def test_names_and_levels_of_columns_go_on(rows, path, stop_at):
    X, y, qid = rows
    frame = pd.DataFrame(X[:, :4]).add_prefix("x")
    frame["level"] = pd.Categorical.from_codes(qid % 3, ["a", "b", "c"])
    stop_at(5)
    with pytest.raises(InterruptionError):
        squared(checkpoint=path, checkpoint_every=2).fit(frame, y, qid=qid)
    stop_at(None)
    assert Checkpoint.from_bytes(path.read_bytes()).ensemble.feature_names == tuple(frame)
    model = squared(checkpoint=path).fit(frame, y, qid=qid)
    assert model.ensemble_.category_levels == {4: ("a", "b", "c")}
    assert bytes_of(model) == bytes_of(squared().fit(frame, y, qid=qid))


# ---- what is refused --------------------------------------------------------------------------------------


@pytest.fixture
def left(rows, path, stop_at):
    """The path of what a fit of ``squared`` has left."""
    X, y, qid = rows
    stop_at(5)
    with pytest.raises(InterruptionError):
        squared(checkpoint=path, checkpoint_every=2).fit(X, y, qid=qid)
    stop_at(None)
    return path


@pytest.mark.parametrize(
    ("make", "difference"),
    [
        (lambda **kw: squared(learning_rate=0.2, **kw), "learning_rate was None and is 0.2"),
        (lambda **kw: squared(random_state=1, **kw), "random_state was 0 and is 1"),
        (lambda **kw: squared(early_stopping=True, **kw), "early_stopping was 'auto' and is True"),
        (lambda **kw: squared(init=0.25, **kw), "the model to start from changed"),
        (
            lambda **kw: squared(init=Ridge(), **kw),
            "the starting scores of the training rows changed",
        ),
        (
            lambda **kw: squared(feature_costs=np.arange(50.0) / 49, **kw),
            "feature_costs changed",
        ),
        (lambdamart, "the estimator was HistGBRTRegressor and is LambdaMARTRanker"),
        (forest, "the estimator was HistGBRTRegressor and is RandomForestRanker"),
    ],
)
def test_another_model_is_refused(rows, left, make, difference):
    X, y, qid = rows
    before = left.read_bytes()
    with pytest.raises(ValueError, match=re.escape(difference)) as refused:
        make(checkpoint=left).fit(X, y, qid=qid)
    assert str(left) in str(refused.value)
    assert "delete the file" in str(refused.value)
    assert left.read_bytes() == before


def test_other_rows_are_refused(rows, left):
    X, y, qid = rows
    model, weights = squared(checkpoint=left), np.ones(len(y))
    weights[3] = 2.0
    other_y, other_X = y.copy(), X.copy()
    other_y[[0, 1]] = y[[0, 1]] + [1, -1]
    other_X[:2, 0] = X[:2, 0][::-1]
    few = qid != qid[-1]
    for difference, fit in (
        ("y of the training rows changed", (X, other_y, None, qid)),
        ("X of the training rows changed", (other_X, y, None, qid)),
        ("sample_weight of the training rows changed", (X, y, weights, qid)),
        ("qid of the training rows changed", (X, y, None, qid // 2)),
        ("the names of the columns changed", (pd.DataFrame(X).add_prefix("x"), y, None, qid)),
        ("the number of features was 50 and is 49", (X[:, 1:], y, None, qid)),
        (f"the number of rows of the training rows was {len(y)} and is", (X[few], y[few], None, qid[few])),
    ):
        with pytest.raises(ValueError, match=difference):
            model.fit(*fit[:3], qid=fit[3])
    with pytest.raises(ValueError, match=r"of the validation rows was None and is"):
        model.fit(X, y, qid=qid, X_val=X, y_val=y, qid_val=qid + len(qid))
    assert bytes_of(model.fit(X, y, qid=qid)) == bytes_of(squared().fit(X, y, qid=qid))


def test_ranks_are_all_refused(rows, left):
    X, y, qid = rows

    def train(ranks):
        own = np.flatnonzero(qid % 2 == ranks.rank)
        with training_with(ranks), pytest.raises(ValueError, match=r"learning_rate was None and is 0.3"):
            squared(checkpoint=left, learning_rate=0.3).fit(X[own], y[own], qid=qid[own])

    together(2, lambda ranks: train(ranks))


def saying(before, instead):
    """What makes a checkpoint say another text of the same length, and sums it up again."""

    def change(data):
        assert before in data
        said = data.replace(before, instead.ljust(len(before)))[:-32]
        return said + hashlib.sha256(said).digest()

    return change


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda data: data[:-1], "damaged: bytes are missing"),
        (lambda data: data + b"x", "damaged: bytes are missing, or there are too many"),
        (lambda data: data[:900] + bytes([data[900] ^ 1]) + data[901:], "damaged: its checksum"),
        (lambda data: data[:12], "damaged: bytes are missing"),
        (lambda data: b"", "it is not a checkpoint"),
        (saying(b'"seed"', b'"feed"'), "damaged: its seed is missing"),
        (saying(b'"learned": []', b'"learned": 1'), "damaged: its learned is missing, or of the wrong type"),
        (
            saying(b'"validation_scores": []', b'"validation_scores": 1'),
            "its validation_scores is missing, or",
        ),
        (saying(b'"train_scores"', b'"train_values"'), "damaged: its train_scores is missing"),
        (lambda data: b"tree\nversion=v4\n" * 99, "it is not a checkpoint"),
    ],
)
def test_a_damaged_file_is_refused(rows, left, harm, message):
    X, y, qid = rows
    left.write_bytes(harm(left.read_bytes()))
    before = left.read_bytes()
    with pytest.raises(ValueError, match=rf"{message}.*delete the file") as refused:
        squared(checkpoint=left).fit(X, y, qid=qid)
    assert str(left) in str(refused.value)
    assert left.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("seed", seed) for seed in (-1, 1 << 64, True, 1.0)],
        *[("trained", trained) for trained in ({"learning_rate": 1}, [])],
        *[
            (name, scores)
            for name in ("train_scores", "validation_scores")
            for scores in ([""], [[]], [None], [1])
        ],
        *[("learned", learned) for learned in ([0.5], [["0.5"]], [[None]])],
    ],
)
def test_texts_of_other_types_are_refused(name, value):
    checkpoint = Checkpoint(ensemble=Ensemble.from_trees([], n_features=1), seed=1).to_bytes()
    magic, _, size = HEAD.unpack_from(checkpoint)
    text = json.loads(checkpoint[HEAD.size : HEAD.size + size]) | {name: value}
    text, model = json.dumps(text).encode(), checkpoint[HEAD.size + size : -32]
    body = HEAD.pack(magic, HEAD.size + len(text) + len(model) + 32, len(text)) + text + model
    with pytest.raises(ValueError, match=f"its {name} is missing, or of the wrong type"):
        Checkpoint.from_bytes(body + hashlib.sha256(body).digest())


def test_what_another_loss_would_have_learned_is_refused(rows, left):
    X, y, qid = rows
    left.write_bytes(replace(Checkpoint.from_bytes(left.read_bytes()), learned=[[1.0]]).to_bytes())
    with pytest.raises(
        ValueError, match=r"damaged: it holds \[1\] numbers .* expected \[\] that.*; delete the file"
    ):
        squared(checkpoint=left).fit(X, y, qid=qid)


@pytest.mark.parametrize(("name", "value"), [("n_features", 51), ("base", 1.5), ("average", True)])
def test_a_model_of_another_kind_is_refused(rows, left, name, value):
    X, y, qid = rows
    found = Checkpoint.from_bytes(left.read_bytes())
    model = found.ensemble._replace(categories=None, groups=None, **{name: value})
    left.write_bytes(replace(found, ensemble=model).to_bytes())
    with pytest.raises(ValueError, match=f"is damaged: its model has {name}={value}, expected"):
        squared(checkpoint=left).fit(X, y, qid=qid)


def test_scores_that_no_such_fit_has_are_refused(rows, path, stop_at):
    X, y, qid = rows
    for make, name, n_more in (
        (squared, "train_scores", 1),
        (squared, "validation_scores", -3),
        (early, "validation_scores", -1),
        (early, "validation_scores", 1),
    ):
        path.unlink(missing_ok=True)
        stop_at(5)
        with pytest.raises(InterruptionError):
            make(checkpoint=path, checkpoint_every=2).fit(X, y, qid=qid)
        stop_at(None)
        found = Checkpoint.from_bytes(path.read_bytes())
        scores = [0.5] * (len(found.ensemble) + n_more)
        path.write_bytes(replace(found, **{name: scores}).to_bytes())
        with pytest.raises(
            ValueError, match=r"is damaged: it has \d+ scores of training and .* after 4 trees"
        ):
            make(checkpoint=path).fit(X, y, qid=qid)


def test_a_place_where_no_file_can_be(rows, path):
    X, y, qid = rows
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        squared(checkpoint=path / "inside").fit(X, y, qid=qid)
    with pytest.raises(IsADirectoryError, match=r"checkpoint=.* is a folder; expected the path of a file"):
        squared(checkpoint=path.parent).fit(X, y, qid=qid)


@pytest.mark.parametrize("parameters", [{"checkpoint": 3}, {"checkpoint_every": 0}])
def test_parameters_are_checked(rows, parameters):
    X, y, qid = rows
    with pytest.raises(ValueError, match=next(iter(parameters))):
        squared(**parameters).fit(X, y, qid=qid)


def test_of_several_classes(rows, path, stop_at):
    X, y, _ = rows
    rules = {"max_iter": 12, "early_stopping": True, "n_iter_no_change": 99, "random_state": 0}
    expected = HistGBRTClassifier(**rules).fit(X, y)
    model = HistGBRTClassifier(**rules, checkpoint=path, checkpoint_every=3)
    stop_at(8)
    with pytest.raises(InterruptionError):
        model.fit(X, y)
    stop_at(None)
    assert bytes_of(model.fit(X, y)) == bytes_of(expected)
    assert told(model) == told(expected)


# ---- the parts --------------------------------------------------------------------------------------------


def test_nothing_is_written_where_all_is_well(rows, path):
    X, y, qid = rows
    for make in (squared, forest, lambda **kw: HistGBRTClassifier(max_iter=9, **kw)):
        make(checkpoint=path, checkpoint_every=100).fit(X, y > 2, qid=qid)
        assert not os.listdir(path.parent)
    assert clone(squared(checkpoint=path)).checkpoint == path


def test_a_checkpoint_is_read_as_it_was_written():
    leaf = np.zeros(1, Ensemble.from_trees([], n_features=1).nodes.dtype)
    leaf["feature"], leaf["categories"], leaf["value"] = -1, -1, 0.1
    checkpoint = Checkpoint(
        ensemble=Ensemble.from_trees([leaf], n_features=2, base=0.3),
        seed=2**31 - 2,
        trained={"loss": "ä"},
        train_scores=np.array([0.1, -np.inf]),
        validation_scores=[np.nextafter(0.1, 1)],
        learned=np.array([[1.0, np.nan], [0.1 + 0.2, 5e-324]]),
    )
    found = Checkpoint.from_bytes(checkpoint.to_bytes())
    assert found.ensemble == checkpoint.ensemble
    assert (found.seed, found.trained) == (2**31 - 2, {"loss": "ä"})
    for name in ("train_scores", "validation_scores", "learned"):
        np.testing.assert_array_equal(getattr(found, name), getattr(checkpoint, name))
    assert found.to_bytes() == checkpoint.to_bytes()


@pytest.mark.parametrize("wish", [False, True])
def test_written_every_so_many_trees_while_training_goes_on(wish):
    written = []
    callback = Checkpointing(
        [lambda progress: wish and progress.iteration == 4],
        lambda *state: written.append([state[0], *map(list, state[1:])]),
        2,
        validation_scores=[0.0],
    )
    for iteration in range(2, 7):
        assert callback(Progress(iteration, 6, None, float(iteration), lambda i=iteration: i)) is (
            wish and iteration == 4
        )
    expected = [[2, [], [0.0, 2.0]], [4, [], [0.0, 2.0, 3.0, 4.0]]]
    assert written == (expected[:1] if wish else expected)


def test_nowhere_means_nothing():
    file, start = CheckpointFile(None, 10, ALONE), Checkpoint(ensemble=None, seed=0)
    assert file.found is None
    assert file.going_on(start, None) is start
    callbacks = []
    assert file.with_checkpoints(callbacks, start) is callbacks
