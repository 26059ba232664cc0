import pickle
import time
import warnings

import numpy as np
import pandas as pd
import pytest
from ranks import together
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ranktrees import (
    AveragedRanker,
    Ensemble,
    EnsembleRanker,
    QueryKFold,
    contributions,
    dump_lightgbm,
    load_lightgbm,
    make_ranking,
)
from ranktrees.estimators.averaged import RECIPES
from ranktrees.processes.communicator import training_with
from ranktrees.rows import check_fit
from ranktrees.rows.sampling import hold_out

SMALL = {"max_iter": 12, "random_state": 0, "n_jobs": 1}


@pytest.fixture(scope="module")
def rows():
    return make_ranking(60, rows_per_query=20, n_features=8, random_state=0, return_X_y_qid=True)


@pytest.fixture(scope="module")
def fitted(rows):
    X, y, qid = rows
    return AveragedRanker(**SMALL).fit(X, y, qid=qid)


def spread(scores, qid):
    """The standard deviation about the mean of the query."""
    scores = pd.Series(scores)
    return np.sqrt(((scores - scores.groupby(qid).transform("mean")) ** 2).mean())


@pytest.mark.parametrize("quality", RECIPES)
@pytest.mark.parametrize("given", [False, True])
def test_is_the_mean_of_models_stopped_on_queries_that_they_do_not_learn_from(rows, quality, given):
    X, y, qid = rows
    learns = qid < 40 if given else qid < 60
    held_out = {"X_val": X[~learns], "y_val": y[~learns], "qid_val": qid[~learns]} if given else {}
    ranker = AveragedRanker(quality, **SMALL).fit(X[learns], y[learns], qid=qid[learns], **held_out)
    seeds = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=len(RECIPES[quality]))
    scores = []
    for model, seed in zip(RECIPES[quality], seeds.tolist(), strict=True):
        train, rest = np.flatnonzero(learns), np.flatnonzero(~learns)
        if not given:
            parts = hold_out(check_fit(clone(model), X, y, qid=qid), 0.2, seed)
            train, rest = (np.sort(np.arange(len(X))[part.order]) for part in parts)
        assert not set(qid[train]) & set(qid[rest])
        model = clone(model).set_params(max_iter=12, scoring="ndcg@10", random_state=seed, n_jobs=2)
        held_out = {"X_val": X[rest], "y_val": y[rest], "qid_val": qid[rest]}
        model.set_params(n_iter_no_change=100).fit(X[train], y[train], qid=qid[train], **held_out)
        scores.append(model.predict(X) / spread(model.predict(X[rest]), qid[rest]))
    np.testing.assert_allclose(ranker.predict(X), np.mean(scores, axis=0), rtol=1e-9, atol=1e-9)
    assert len(ranker.best_iterations_) == len(ranker.validation_scores_) == len(RECIPES[quality])
    assert ranker.best_iterations_.sum() == len(ranker.ensemble_)


@pytest.mark.parametrize("n_jobs", [2, 3, 4, 9])
def test_does_not_depend_on_threads(rows, fitted, n_jobs):
    X, y, qid = rows
    again = clone(fitted).set_params(n_jobs=n_jobs).fit(X, y, qid=qid)
    assert again.ensemble_.digest() == fitted.ensemble_.digest()


@pytest.mark.parametrize("given", [False, True])
def test_does_not_depend_on_ranks(rows, given):
    X, y, qid = rows
    learns = qid < 45 if given else qid < 60
    alone = AveragedRanker(**SMALL)

    def arguments(some):
        own, rest = learns & some, ~learns & some
        held_out = {"X_val": X[rest], "y_val": y[rest], "qid_val": qid[rest]} if given else {}
        return {"X": X[own], "y": y[own], "qid": qid[own]} | held_out

    alone.fit(**arguments(np.ones(len(X), bool)))

    def fit(communicator):
        with training_with(communicator):
            return clone(alone).fit(**arguments(qid % 2 == communicator.rank))

    for model in together(2, fit):
        assert model.ensemble_.digest() == alone.ensemble_.digest()
        assert model.spreads_.tobytes() == alone.spreads_.tobytes()


def test_is_one_ensemble(rows, fitted, tmp_path):
    X, _, qid = rows
    fitted.save(tmp_path / "model.rkt")
    scores = fitted.predict(X)
    for same in (EnsembleRanker(Ensemble.load(tmp_path / "model.rkt")), pickle.loads(pickle.dumps(fitted))):
        assert same.predict(X).tobytes() == scores.tobytes()
    parts, start = contributions(fitted, X)
    np.testing.assert_allclose(parts.sum(axis=1) + start, scores)
    dump_lightgbm(fitted, tmp_path / "model.txt")
    imported = EnsembleRanker(load_lightgbm(tmp_path / "model.txt")).predict(X)
    np.testing.assert_allclose(imported - imported[0], scores - scores[0], atol=1e-9)
    assert len(fitted.rank(X, qid=qid, k=3)) == 180
    assert fitted.feature_importances_.sum() == pytest.approx(1.0)


def test_is_searched_over_in_pipelines(rows):
    X, y, qid = rows
    labels = pd.Series(y, index=pd.Index(qid, name="qid"))
    pipeline = make_pipeline(StandardScaler(), AveragedRanker(**SMALL))
    grid = {"averagedranker__quality": ["fast", "balanced"]}
    search = GridSearchCV(pipeline, grid, cv=QueryKFold(2)).fit(X, labels)
    assert 0.5 < search.best_score_ <= 1.0
    assert len(search.best_estimator_[-1].spreads_) in (1, 2)


def test_columns_of_frames_and_constraints_reach_the_models(rows):
    X, y, qid = rows
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(8)])
    frame["site"] = pd.Categorical(np.array(["a", "b", "c"])[np.arange(len(X)) % 3])
    ranker = AveragedRanker("balanced", monotonic_cst={"f0": 1}, **SMALL).fit(frame, y, qid=qid)
    assert list(ranker.feature_names_in_) == [*frame]
    assert ranker.ensemble_.category_levels == {8: ("a", "b", "c")}
    higher = frame.assign(f0=frame["f0"] + 1)
    assert (ranker.predict(higher) >= ranker.predict(frame)).all()


def test_weights_count(rows):
    X, y, qid = rows
    weights = 1.0 + (qid % 2) * 9
    ranker = AveragedRanker("balanced", **SMALL)
    plain, weighted = (clone(ranker).fit(X, y, given, qid=qid).ensemble_ for given in (None, weights))
    assert plain.digest() != weighted.digest()


@pytest.mark.parametrize("measure", ["map(rel=3)", "err@5", "ndcg@3"])
def test_stops_by_any_measure(rows, measure):
    X, y, qid = rows
    ranker = AveragedRanker("balanced", measure=measure, **SMALL).fit(X, y, qid=qid)
    assert 0.0 < ranker.score(X, y, qid=qid) <= 1.0


def test_models_that_rank_nothing_are_left_out(rows):
    X, y, qid = rows
    with pytest.warns(UserWarning, match="learned nothing") as caught:
        ranker = AveragedRanker(**SMALL).fit(np.zeros_like(X), y, qid=qid)
    assert ranker.spreads_.tolist() == [0.0] * len(RECIPES["best"])
    assert len({str(one.message) for one in caught}) == len(caught)
    assert all(one.filename == __file__ for one in caught)
    assert np.ptp(ranker.predict(X)) == 0.0


def test_a_fit_that_fails_changes_nothing(rows, fitted):
    X, y, qid = rows
    ranker, before = pickle.loads(pickle.dumps(fitted)), fitted.ensemble_.digest()
    with pytest.raises(ValueError, match="holds only one"):
        ranker.fit(X[:20], y[:20], qid=qid[:20])
    with pytest.raises(ValueError, match="'quality' parameter of AveragedRanker must be a str among"):
        ranker.set_params(quality="superb").fit(X, y, qid=qid)
    assert ranker.ensemble_.digest() == before
    with pytest.raises(TypeError, match="n_estimators"):
        AveragedRanker(n_estimators=10)


ENDLESS = {"max_iter": 1_000_000, "n_iter_no_change": 1_000_000, "random_state": 0}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_does_not_wait_for_models(rows, interrupts, n_jobs):
    X, y, qid = rows
    started = time.perf_counter()
    interrupts(0.4)
    with pytest.raises(KeyboardInterrupt):
        AveragedRanker(**ENDLESS, n_jobs=n_jobs).fit(X, y, qid=qid)
    assert time.perf_counter() - started < 0.9


def test_an_error_does_not_wait_for_other_models(rows, monkeypatch):
    X, y, qid = rows
    whole = AveragedRanker._fitted

    def fails(self, model, *args):
        if model is RECIPES["best"][1]:
            time.sleep(0.1)
            raise LookupError("one of the models")
        return whole(self, model, *args)

    monkeypatch.setattr(AveragedRanker, "_fitted", fails)
    with pytest.raises(LookupError, match="one of the models"):
        AveragedRanker(**ENDLESS, n_jobs=2).fit(X, y, qid=qid)


def test_says_what_it_has_done(rows, capsys):
    X, y, qid = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        AveragedRanker("fast", **SMALL, verbose=1).fit(X, y, qid=qid)
    assert capsys.readouterr().out.startswith("AveragedRanker: model 1 of 1 has ")
