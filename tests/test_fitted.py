"""Ensembles as estimators, and averages of fitted models."""

import copy
import pickle
from contextlib import nullcontext
from enum import IntEnum, StrEnum

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import BaggingRegressor, VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score

from ranktrees import (
    EarlyExit,
    Ensemble,
    EnsembleRanker,
    FitWarning,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    QueryKFold,
    RandomForestRanker,
    dump_lightgbm,
    dump_xgboost,
    make_ranking,
    pick_early_exit,
    query_scorer,
)

SMALL = {"max_leaf_nodes": 6, "min_samples_leaf": 3, "n_jobs": 1}
KSGBRT = {"max_features": 0.3, "gradient_sampling": None}


@pytest.fixture(scope="module")
def rows():
    """X, y, qid; do not change them."""
    X, y, qid = make_ranking(15, rows_per_query=20, n_features=6, random_state=0, return_X_y_qid=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y, qid = X[order], y[order], qid[order]
    for array in (X, y, qid):
        array.flags.writeable = False
    return X, y, qid


@pytest.fixture(scope="module")
def models(rows):
    X, y, qid = rows
    return [
        HistGBRTRegressor(max_iter=5, random_state=seed, **SMALL | KSGBRT).fit(X, y, qid=qid)
        for seed in range(3)
    ]


# ------------------------------------------------------------------------------------ ensembles as estimators


def test_an_ensemble_predicts_ranks_and_scores_as_its_estimator(rows):
    X, y, qid = rows
    fitted = LambdaMARTRanker(max_iter=8, random_state=0, **SMALL).fit(X, y, qid=qid)
    ranker = EnsembleRanker(fitted.ensemble_, n_jobs=1)
    exits = EarlyExit(every=2, drop=0.3)
    for method, arguments in (
        ("predict", (X,)),
        ("feature_importances", ()),
        ("score", (X, y)),
    ):
        ids = {"qid": qid} if method == "score" else {}
        np.testing.assert_array_equal(
            getattr(ranker, method)(*arguments, **ids), getattr(fitted, method)(*arguments, **ids)
        )
    assert ranker.rank(X, qid=qid, k=3).equals(fitted.rank(X, qid=qid, k=3))
    assert ranker.score(X, y, qid=qid, early_exit=exits) == fitted.score(X, y, qid=qid, early_exit=exits)
    np.testing.assert_array_equal(list(ranker.staged_predict(X)), list(fitted.staged_predict(X)))
    one, other = (
        pick_early_exit(each, X, y, qid=qid, tolerated_loss=0.1, confidence=None) for each in (ranker, fitted)
    )
    assert one.early_exit == other.early_exit
    with pytest.raises(
        ValueError,
        match=r"score needs qid=: EnsembleRanker ranks .* if all rows belong to one query, pass zeros",
    ):
        ranker.score(X, y)
    assert -5 < clone(ranker).set_params(measure=None).score(X, y) < 1


def test_an_ensemble_is_fitted_and_stays_so(rows, tmp_path):
    X, y, qid = rows
    fitted = RandomForestRanker(4, random_state=0, **SMALL).fit(X, y, qid=qid)
    fitted.save(tmp_path / "forest.rkt")
    ranker = EnsembleRanker(Ensemble.load(tmp_path / "forest.rkt"), measure="ndcg@5")
    for twin in (clone(ranker), copy.deepcopy(ranker), pickle.loads(pickle.dumps(ranker)), ranker.fit(X, y)):
        assert twin.ensemble_ == fitted.ensemble_
        assert twin.predict(X).tobytes() == fitted.predict(X).tobytes()
    assert clone(ranker).ensemble_ is ranker.ensemble_
    ranker.save(tmp_path / "again.rkt")
    assert (tmp_path / "again.rkt").read_bytes() == (tmp_path / "forest.rkt").read_bytes()
    ids = pd.Index(qid, name="qid")
    scores = cross_val_score(
        ranker, X, pd.Series(y, index=ids), cv=QueryKFold(3), scoring=query_scorer("ndcg@5")
    )
    expected = [
        fitted.set_params(measure="ndcg@5").score(X[test], y[test], qid=qid[test])
        for _, test in QueryKFold(3).split(X, groups=qid)
    ]
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
    assert not hasattr(ranker, "feature_names_in_")
    with pytest.raises(
        TypeError, match=r"ensemble is 'forest.rkt'; expected an Ensemble: .*Ensemble.load\(path\)"
    ):
        EnsembleRanker("forest.rkt").predict(X)


def test_columns_are_compared(rows):
    X, y, qid = rows
    ensemble = RandomForestRanker(2, random_state=0, **SMALL).fit(X, y, qid=qid).ensemble_
    ranker = EnsembleRanker(ensemble, feature_names=list("abcdef"))
    frame = pd.DataFrame(X, columns=list("abcdef"))
    assert ranker.fit(frame).predict(frame).tobytes() == ensemble.predict(X).tobytes()
    for wrong in (frame[list("bacdef")], frame.rename(columns={"a": "z"}), frame[list("abcde")]):
        for method in (ranker.fit, ranker.predict):
            with pytest.raises(ValueError, match="feature"):
                method(wrong)
    with pytest.raises(ValueError, match="'ensemble' parameter of EnsembleRanker must be an instance of"):
        EnsembleRanker(Ridge()).fit(X)


def frame_of(rows, levels):
    """Two columns of numbers and one of categories, which what is relevant depends on."""
    X, y, qid = rows
    level = np.random.default_rng(0).integers(0, len(levels), len(y))
    frame = pd.DataFrame({"a": X[:, 0], "level": pd.Categorical.from_codes(level, levels), "b": X[:, 1]})
    return frame, y + 2.0 * (level % 2), qid


@pytest.mark.parametrize("levels", [["uk", "fr", "dé"], [3, 10, 40], [0.5, -1.5], [False, True]])
def test_a_saved_model_knows_its_columns(levels, rows, tmp_path):
    frame, y, qid = frame_of(rows, levels)
    fitted = LambdaMARTRanker(max_iter=5, random_state=0, **SMALL).fit(frame, y, qid=qid)
    assert (fitted.ensemble_.nodes["categories"] >= 0).any()
    fitted.save(tmp_path / "model.rkt")
    ranker = EnsembleRanker(Ensemble.load(tmp_path / "model.rkt"))
    assert ranker.ensemble_ == fitted.ensemble_
    assert ranker.feature_names_in_.tolist() == fitted.feature_names_in_.tolist()
    assert ranker._category_levels == fitted._category_levels == {1: tuple(sorted(levels))}
    turned = frame.iloc[::-1].assign(level=frame["level"].cat.set_categories(levels[::-1]))
    assert ranker.predict(turned).tobytes() == fitted.predict(turned).tobytes()
    for wrong in (frame[["b", "level", "a"]], frame.rename(columns={"a": "z"})):
        messages = []
        for model in (fitted, ranker):
            with pytest.raises(ValueError, match="feature names should match") as error:
                model.predict(wrong)
            messages.append(str(error.value))
        assert messages[0] == messages[1]
    ranker.save(tmp_path / "again.rkt")
    assert (tmp_path / "again.rkt").read_bytes() == (tmp_path / "model.rkt").read_bytes()


class Site(StrEnum):
    UK = "uk"
    FR = "fr"


@pytest.mark.parametrize(
    "levels",
    [
        [np.str_("uk"), np.str_("fr")],
        list(Site),
        list(IntEnum("Shop", ["UK", "FR"])),
        [np.float64(0.5), np.float64(1.5)],
        [np.int64(7), np.int64(3)],
        [np.False_, np.True_],
    ],
)
def test_levels_that_equal_a_plain_one_are_saved(levels, rows, tmp_path):
    frame, y, qid = frame_of(rows, pd.Index(levels, dtype=object))
    fitted = LambdaMARTRanker(max_iter=5, random_state=0, **SMALL).fit(frame, y, qid=qid)
    assert (fitted.ensemble_.nodes["categories"] >= 0).any()
    fitted.save(tmp_path / "model.rkt")
    read = Ensemble.load(tmp_path / "model.rkt")
    assert read.category_levels == {1: fitted._category_levels[1]}
    assert {type(level) for level in read.category_levels[1]} <= {str, int, float, bool}
    assert EnsembleRanker(read).predict(frame).tobytes() == fitted.predict(frame).tobytes()


@pytest.mark.parametrize(
    "levels", [["low", "mid", "high"], [30, 10, 20], list(pd.interval_range(0, 3))[::-1]]
)
def test_levels_in_their_order_are_saved(levels, rows, tmp_path):
    frame, y, qid = frame_of(rows, levels)
    dtype = pd.CategoricalDtype(levels, ordered=True)
    frame["level"] = frame["level"].astype(dtype)
    fitted = HistGBRTRegressor(max_iter=5, random_state=0, **SMALL).fit(frame, y, qid=qid)
    assert (fitted.ensemble_.nodes["feature"] == 1).any()
    saved = isinstance(levels[0], str | int)
    with nullcontext() if saved else pytest.warns(FitWarning, match=r"not written: 'level' \(Interval\)"):
        fitted.save(tmp_path / "model.rkt")
    read = Ensemble.load(tmp_path / "model.rkt")
    ranker = EnsembleRanker(read, category_levels=None if saved else {"level": levels})
    average = EnsembleRanker.average([fitted, ranker, fitted])
    np.testing.assert_allclose(average.predict(frame), fitted.predict(frame), rtol=1e-12)
    nominal = frame.assign(level=frame["level"].astype(object).astype("category"))
    for each in (frame, nominal):
        assert ranker.predict(each).tobytes() == fitted.predict(frame).tobytes()
    turned = frame.assign(level=frame["level"].cat.reorder_categories(levels[::-1], ordered=True))
    other = clone(fitted).fit(turned, y, qid=qid)
    with pytest.raises(ValueError, match=r"column 'level' has the levels .* in the same order"):
        EnsembleRanker.average([fitted, other])


def test_levels_of_other_kinds_are_asked_for(rows, tmp_path):
    frame, y, qid = frame_of(rows, list(pd.interval_range(0, 3)))
    fitted = RandomForestRanker(3, random_state=0, **SMALL).fit(frame, y, qid=qid)
    for write, name in (
        (RandomForestRanker.save, "model.rkt"),
        (dump_lightgbm, "model.txt"),
        (dump_xgboost, "model.json"),
    ):
        with pytest.warns(FitWarning, match=r"levels of .* not written: 'level' \(Interval\)\. Files hold"):
            write(fitted, tmp_path / name)
    ensemble = Ensemble.load(tmp_path / "model.rkt")
    with pytest.raises(ValueError, match=r"column 'level' of X is a category column; .* as category_levels"):
        EnsembleRanker(ensemble).predict(frame)
    ranker = EnsembleRanker(ensemble, category_levels=fitted._category_levels)
    assert ranker.predict(frame).tobytes() == fitted.predict(frame).tobytes()


def test_what_is_said_of_columns_agrees_with_the_ensemble(rows, tmp_path):
    frame, y, qid = frame_of(rows, ["fr", "uk"])
    ensemble = RandomForestRanker(3, random_state=0, **SMALL).fit(frame, y, qid=qid).ensemble_
    same = EnsembleRanker(ensemble, feature_names=list(frame), category_levels={1: ["fr", "uk"]})
    assert same.predict(frame).tobytes() == EnsembleRanker(ensemble).predict(frame).tobytes()
    turned = EnsembleRanker(ensemble, feature_names=["level", "a", "b"])
    for method in (turned.fit, turned.predict):
        with pytest.raises(ValueError, match=r"names=\['level', 'a', 'b'\], but .* \['a', 'level', 'b'\]"):
            method(frame)
    turned = EnsembleRanker(ensemble, category_levels={1: ("uk", "fr")})
    with pytest.raises(ValueError, match=r"levels\[1\]=\('uk', 'fr'\), but .* \('fr', 'uk'\); expected"):
        turned.predict(frame)
    nameless = ensemble._with_columns(None, {})
    said = EnsembleRanker(nameless, feature_names=list(frame), category_levels={1: ("fr", "uk")})
    said.save(tmp_path / "model.rkt")
    assert Ensemble.load(tmp_path / "model.rkt") == ensemble != nameless


@pytest.mark.parametrize(
    "model",
    [
        LambdaMARTRanker(max_iter=4, random_state=0, **SMALL),
        HistGBRTRegressor(max_iter=4, init=RandomForestRanker(2, random_state=0, **SMALL), **SMALL),
        HistGBRTClassifier(max_iter=4, **SMALL),
        RandomForestRanker(3, random_state=0, **SMALL),
    ],
)
def test_trees_know_the_columns_that_they_were_fitted_to(model, rows):
    frame, y, qid = frame_of(rows, ["fr", "uk"])
    y = y > 1 if isinstance(model, HistGBRTClassifier) else y
    fitted = clone(model).fit(frame, y, qid=qid)
    ensemble = fitted.ensemble_
    assert ensemble.feature_names == tuple(frame)
    assert ensemble.category_levels == {1: ("fr", "uk")}
    if not isinstance(fitted, HistGBRTClassifier):
        assert fitted.refit_leaves(frame, y, qid=qid).ensemble_.feature_names == tuple(frame)
        assert EnsembleRanker.average([fitted, fitted]).ensemble_.feature_names == tuple(frame)
    plain = clone(model).fit(frame[["a", "b"]].to_numpy(), y, qid=qid).ensemble_
    assert plain.feature_names is None
    assert plain.category_levels == {}


def test_more_levels_in_later_fits(rows):
    frame, y, qid = frame_of(rows, ["fr", "uk", "at"])
    some = frame["level"] != "at"
    model = HistGBRTRegressor(max_iter=3, warm_start=True, random_state=0, **SMALL)
    model.fit(frame[some], y[some], qid=qid[some])
    assert model.ensemble_.category_levels == {1: ("fr", "uk")}
    model.set_params(max_iter=6).fit(frame, y, qid=qid)
    assert model.ensemble_.category_levels == {1: ("at", "fr", "uk")}
    assert EnsembleRanker(model.ensemble_).predict(frame).tobytes() == model.predict(frame).tobytes()


def test_what_starts_from_an_ensemble_knows_its_columns(rows):
    frame, y, qid = frame_of(rows, ["fr", "uk", "at"])
    some = frame["level"] != "at"
    start = RandomForestRanker(3, random_state=0, **SMALL).fit(frame[some], y[some], qid=qid[some]).ensemble_
    model = HistGBRTRegressor(max_iter=3, init=start, random_state=0, **SMALL).fit(frame, y, qid=qid)
    assert model.ensemble_.category_levels == {1: ("at", "fr", "uk")}
    expected = EnsembleRanker(start).predict(frame)
    np.testing.assert_allclose(model.predict(frame, n_trees=0), expected, rtol=1e-12)
    with pytest.raises(
        ValueError, match=r"(?s)init=.* was fitted to columns other than those of X.*same order"
    ):
        clone(model).fit(frame[["b", "level", "a"]], y, qid=qid)


# --------------------------------------------------------------------------------------------------- averages


def mean_of(models, X, weights=None):
    return np.average([model.predict(X) for model in models], axis=0, weights=weights)


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 5.0]])
def test_average_scores_like_the_mean(weights, rows, models):
    X, y, qid = rows
    ranker = EnsembleRanker.average(models, weights, measure="ndcg@5", n_jobs=1)
    assert len(ranker.ensemble_) == 15
    np.testing.assert_allclose(ranker.predict(X), mean_of(models, X, weights), rtol=1e-12)
    shares = np.full(3, 1 / 3) if weights is None else np.array(weights) / 8
    assert ranker.ensemble_ == Ensemble.joined([model.ensemble_ for model in models], shares)
    importances = sum(s * m.ensemble_.feature_importances() for s, m in zip(shares, models, strict=True))
    np.testing.assert_allclose(ranker.ensemble_.feature_importances(), importances)
    assert 0 < ranker.score(X, y, qid=qid) <= 1


@pytest.mark.parametrize(
    "weights", [[1.0, -3.0, 0.5], [-1.0, -2.0, -5.0], [1.0, -1.0, 0.0], [3.0, -1.0, 2.0]]
)
def test_average_ranks_as_the_weighted_sum(weights, rows, models):
    X, _, _ = rows
    total = sum(weight * model.predict(X) for weight, model in zip(weights, models, strict=True))
    ranker = EnsembleRanker.average(models, weights)
    np.testing.assert_allclose(ranker.predict(X) * np.abs(weights).sum(), total, rtol=1e-9, atol=1e-12)


def test_average_of_all_kinds_of_trees(rows, models):
    X, y, qid = rows
    forest = RandomForestRanker(4, random_state=0, **SMALL).fit(X, y, qid=qid)
    lambdamart = LambdaMARTRanker(max_iter=3, init=forest, random_state=0, **SMALL).fit(X, y, qid=qid)
    kinds = [forest, lambdamart, FrozenEstimator(models[0]), EnsembleRanker(forest.ensemble_)]
    ranker = EnsembleRanker.average([*kinds, forest.ensemble_])
    np.testing.assert_allclose(ranker.predict(X), mean_of([*kinds, forest], X), rtol=1e-12)
    assert len(ranker.ensemble_) == 4 + 7 + 5 + 4 + 4


def test_average_has_the_same_bytes_for_any_number_of_jobs(rows):
    X, y, qid = rows
    digests = set()
    for n_jobs in (1, 2, 3):
        with sklearn.config_context(enable_metadata_routing=True), joblib.parallel_config("threading"):
            bagging = BaggingRegressor(
                HistGBRTRegressor(max_iter=3, **SMALL | KSGBRT | {"n_jobs": n_jobs}),
                n_estimators=3,
                bootstrap=False,
                random_state=0,
                n_jobs=n_jobs,
            ).fit(X, y, qid=qid)
        digests.add(EnsembleRanker.average(bagging).ensemble_.digest())
    assert len(digests) == 1


@pytest.mark.parametrize("cls", [HistGBRTRegressor, LambdaMARTRanker])
def test_runs_of_scikit_learns_bagging_become_one_ensemble(cls, rows):
    """Averaged kSGBRT; query ids reach the runs through metadata routing, in the order of their rows."""
    X, y, qid = rows
    booster = cls(max_iter=4, **SMALL | KSGBRT)
    with sklearn.config_context(enable_metadata_routing=True):
        booster.set_fit_request(sample_weight=True)
        bagging = BaggingRegressor(booster, n_estimators=3, bootstrap=False, random_state=0)
        bagging.fit(X, y, qid=qid)
        seeds = {run.random_state for run in bagging.estimators_}
        ranker = EnsembleRanker.average(bagging)
    assert len(seeds) == 3
    assert len(ranker.ensemble_) == 12
    np.testing.assert_allclose(ranker.predict(X), bagging.predict(X), rtol=1e-12)
    for run in bagging.estimators_:  # each is a fit to all rows, and differs by its seed only
        alone = clone(run).fit(X, y, np.ones(len(y)), qid=qid)
        assert alone.ensemble_ == run.ensemble_
    with sklearn.config_context(enable_metadata_routing=True):
        mixed = BaggingRegressor(clone(booster).set_fit_request(sample_weight=False), n_estimators=2)
        mixed = mixed.set_params(bootstrap=False, random_state=0).fit(X, y, qid=qid)
    for run, drawn in zip(mixed.estimators_, mixed.estimators_samples_, strict=True):
        assert (np.sort(drawn) == np.arange(len(y))).all()
        assert clone(run).fit(X[drawn], y[drawn], qid=qid[drawn]).ensemble_ == run.ensemble_


def test_votes_become_one_ensemble(rows):
    X, y, qid = rows
    frame = pd.DataFrame(X, columns=list("abcdef"))
    members = [
        ("forest", RandomForestRanker(4, random_state=0, **SMALL)),
        ("none", "drop"),
        ("boosting", HistGBRTRegressor(max_iter=4, random_state=0, **SMALL)),
    ]
    with sklearn.config_context(enable_metadata_routing=True):
        voting = VotingRegressor(members, weights=[1, 7, 3]).fit(frame, y, qid=qid)
    ranker = EnsembleRanker.average(voting)
    np.testing.assert_allclose(ranker.predict(frame), voting.predict(frame), rtol=1e-12)
    assert ranker.feature_names_in_.tolist() == list("abcdef")
    for weights in ([3, 7, -1], [-3, 7, 1]):
        voting.weights = weights
        expected = voting.predict(frame)
        np.testing.assert_allclose(EnsembleRanker.average(voting).predict(frame), expected, rtol=1e-9)
    voting.weights = [1, 7, -1]
    with pytest.raises(ValueError, match=r"weights=\[1.0, -1.0\]; expected .* a total other than 0"):
        EnsembleRanker.average(voting)
    with pytest.raises(ValueError, match="weights are given, but a VotingRegressor has its own"):
        EnsembleRanker.average(voting, [1, 2])


def test_names_and_levels_of_all_models_are_known(rows):
    X, y, qid = rows
    colour = pd.Series(np.array(list("rgbv"))[np.random.default_rng(0).integers(0, 4, len(y))])
    y = y + 2.0 * colour.isin(["r", "v"])
    frame = pd.DataFrame({"a": X[:, 0], "colour": colour.astype("category")})
    parts = [colour != "r", colour != "g"]
    models = [
        RandomForestRanker(3, random_state=0, **SMALL).fit(frame[part], y[part], qid=qid[part])
        for part in parts
    ]
    ranker = EnsembleRanker.average(models)
    assert ranker.category_levels == {1: ("b", "g", "r", "v")}
    np.testing.assert_allclose(ranker.predict(frame), mean_of(models, frame), rtol=1e-12)
    assert clone(ranker).predict(frame).tobytes() == ranker.predict(frame).tobytes()
    other = RandomForestRanker(3, **SMALL).fit(frame.rename(columns={"a": "b"}), y, qid=qid)
    with pytest.raises(ValueError, match=r"models have the columns \['a', 'colour'\] and \['b', 'colour'\]"):
        EnsembleRanker.average([models[0], other])


def test_what_is_no_average_of_trees_is_refused(rows, models):
    X, y, _ = rows
    for members, error, message in (
        ([], ValueError, "models is empty"),
        (
            [models[0], Ridge().fit(X, y)],
            TypeError,
            "models has a Ridge; expected fitted tree estimators",
        ),
        ([HistGBRTRegressor()], NotFittedError, "HistGBRTRegressor"),
        ([HistGBRTClassifier(max_iter=2, **SMALL).fit(X, y > 1)], ValueError, "are not sums over trees"),
        ([HistGBRTRegressor("poisson", max_iter=2).fit(X, y)], ValueError, "poisson.* not sums over trees"),
        ([HistGBRTRegressor(init=Ridge(), max_iter=2).fit(X, y)], ValueError, "boosting started from Ridge"),
        (BaggingRegressor(Ridge()), NotFittedError, "BaggingRegressor"),
        (
            BaggingRegressor(HistGBRTRegressor(max_iter=2), n_estimators=2, max_features=0.5).fit(X, y),
            ValueError,
            "were fitted to different subsets of the features",
        ),
        (models[0], TypeError, "models is a .*; expected several fitted models: pass a list"),
        (models[0].ensemble_, TypeError, "models is a Ensemble; expected several fitted models"),
    ):
        with pytest.raises(error, match=message):
            EnsembleRanker.average(members)
    for weights in ([1.0], [0.0, 0.0, 0.0], [np.nan, 1.0, 1.0]):
        with pytest.raises(ValueError, match="weights"):
            EnsembleRanker.average(models, weights)
    with pytest.raises(ValueError, match=r"weights=\[0.0, 0.0\]; expected .* a total other than 0"):
        EnsembleRanker.average(models[:2], [0.0, 0.0])


# ----------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["poisson", "logistic"])
def test_a_fitted_model_predicts_by_the_loss_of_its_fit(loss, rows):
    X, y, _ = rows
    model = HistGBRTRegressor(loss, max_iter=3, random_state=0, **SMALL).fit(X, (y > 1).astype(float))
    predicted = model.predict(X)
    for changed in ({"loss": "squared_error"}, {"quantile": 0.3}, {"balanced": True}):
        np.testing.assert_array_equal(copy.deepcopy(model).set_params(**changed).predict(X), predicted)
    model.set_params(loss="squared_error", max_leaf_nodes=0)
    with pytest.raises(ValueError, match="max_leaf_nodes"):
        model.fit(X, y)
    np.testing.assert_array_equal(model.predict(X), predicted)
    model.set_params(max_leaf_nodes=6)
    with pytest.raises(ValueError, match=r"loss=SquaredError\(\) has scores on a different scale"):
        model.refit_leaves(X, y)
    np.testing.assert_array_equal(model.fit(X, y).predict(X), clone(model).fit(X, y).predict(X))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_loaded_model_takes_levels_or_codes_in_arrays(rows):
    X, y, qid = rows
    frame = pd.DataFrame({"n": X[:, 0], "site": pd.Categorical(np.where(X[:, 1] > 0.3, "uk", "fr"))})
    frame.loc[::7, "site"] = None
    fitted = LambdaMARTRanker(max_iter=5, random_state=0, **SMALL).fit(frame, y, qid=qid)
    loaded = EnsembleRanker(Ensemble.from_bytes(fitted.ensemble_.to_bytes()))
    codes = frame["site"].cat.codes.replace(-1, np.nan)
    for array in (frame.to_numpy(), frame.assign(site=codes).to_numpy(), frame.to_numpy().tolist()):
        assert (loaded.predict(array) == fitted.predict(frame)).all()
        assert loaded.score(array, y, qid=qid) == fitted.score(frame, y, qid=qid)
        with pytest.raises(ValueError, match="expected a data frame, since column 'site' was a category"):
            fitted.predict(array)
    with pytest.raises(ValueError, match="holds -1; expected the categories of fit, or their codes"):
        loaded.predict(frame.assign(site=frame["site"].cat.codes).to_numpy())
    with pytest.raises(ValueError, match=r"data frame or an array, since column 'site'.*X.toarray\(\)"):
        loaded.predict(sparse.csr_array(frame.assign(site=1.0).to_numpy()))
