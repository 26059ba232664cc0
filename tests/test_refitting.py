"""New values for the leaves: those that training would have given them, and what remains unchanged."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from ranktrees import (
    Ensemble,
    EnsembleRanker,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    RandomForestRanker,
    make_ranking,
)
from ranktrees.training.refitting import TREES
from reference import refitting as slow

X, Y, QID = make_ranking(50, rows_per_query=12, n_features=8, random_state=0, return_X_y_qid=True)
ORDER = np.random.default_rng(0).permutation(len(Y))
X, Y, QID = X[ORDER], Y[ORDER], QID[ORDER]
X[::7, 2] = np.nan
THEIRS, OURS = QID < 30, QID >= 30
EVERY_ROW = {"subsample": 1.0, "random_state": 0, "max_iter": 30}

FITTED_TO_EVERY_ROW = [
    LambdaMARTRanker(**EVERY_ROW),
    LambdaMARTRanker("ranknet", **EVERY_ROW),
    LambdaMARTRanker("xendcg", **EVERY_ROW),
    LambdaMARTRanker(measure="err@5", **EVERY_ROW),
    LambdaMARTRanker(measure="mrr", noise=0.5, **EVERY_ROW),
    LambdaMARTRanker(step="optimal", step_interval=(-1, 5), **EVERY_ROW),
    LambdaMARTRanker(step="optimal", leaf_values="mean", learning_rate=0.5, **EVERY_ROW),
    LambdaMARTRanker(split_criterion="squared_error", **EVERY_ROW),
    LambdaMARTRanker(init=RandomForestRanker(5, random_state=0), **EVERY_ROW),
    HistGBRTRegressor(**EVERY_ROW),
    HistGBRTRegressor("absolute_error", **EVERY_ROW),
    HistGBRTRegressor("quantile", quantile=0.3, **EVERY_ROW),
    HistGBRTRegressor("poisson", categorical_features=[0], **EVERY_ROW),
    HistGBRTClassifier(balanced=True, **EVERY_ROW),
    RandomForestRanker(10, bootstrap=False, random_state=0),
]


def labels_for(model, rows=slice(None)):
    return np.array(["no", "yes"])[(Y[rows] > 1).astype(int)] if hasattr(model, "predict_proba") else Y[rows]


def fitted(model, rows=THEIRS, **parameters):
    return model.set_params(**parameters).fit(X[rows], labels_for(model, rows), qid=QID[rows])


def refitted(model, rows=OURS, **options):
    return model.refit_leaves(X[rows], labels_for(model, rows), qid=QID[rows], **options)


# ---- laws ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", FITTED_TO_EVERY_ROW, ids=repr)
def test_on_the_rows_of_the_fit_nothing_changes(model, weighted):
    X_, y = np.where(np.isnan(X), 1, X), labels_for(model)
    X_[:, 0] = np.abs(np.round(X_[:, 0]))  # what is categorical has few values
    weights = np.random.default_rng(1).integers(0, 4, len(y)) if weighted else None
    model.fit(X_, y, weights, qid=QID)
    for decay in (0.0, 1.0):
        assert model.refit_leaves(X_, y, weights, qid=QID, decay=decay).ensemble_ == model.ensemble_


@pytest.mark.parametrize(
    "model", [HistGBRTRegressor(max_iter=2), LambdaMARTRanker(max_iter=2, l2_regularization=1.0)], ids=repr
)
def test_a_decay_of_one_keeps_the_sign_of_zero(model):
    """A leaf whose rows are content has the value -0.0, which is another value to the digest than 0.0."""
    model.fit(X, np.zeros(len(Y)), qid=QID)
    assert np.signbit(model.ensemble_.nodes["value"]).any()
    assert model.refit_leaves(X, Y, qid=QID, decay=1).ensemble_ == model.ensemble_


def test_on_the_pairs_and_on_the_clicks_of_the_fit_nothing_changes():
    clicks = (np.random.default_rng(1).random(len(Y)) < (1 + Y) / 8).astype(float)
    position = np.tile(np.arange(1, 13), 50)[np.argsort(np.argsort(QID, kind="stable"))]
    pairs = np.argwhere((QID[:, np.newaxis] == QID) & (Y[:, np.newaxis] > Y))
    for loss, said in (
        ("ranknet", {"pairs": pairs, "pair_target": np.linspace(0.5, 1, len(pairs))}),
        ("lambdamart", {"y": clicks, "position": position}),
    ):
        model = LambdaMARTRanker(loss, **EVERY_ROW).fit(X, qid=QID, **said)
        again = model.refit_leaves(X, qid=QID, decay=0, **said)
        assert again.ensemble_ == model.ensemble_
        for name in ("propensities_", "unclicked_propensities_"):
            np.testing.assert_array_equal(getattr(again, name, 0), getattr(model, name, 0))
    judged = model.refit_leaves(X, Y, qid=QID)
    assert hasattr(model, "propensities_")
    assert not hasattr(judged, "propensities_")
    fixed = LambdaMARTRanker(propensities=np.ones(12), **EVERY_ROW).fit(X, clicks, qid=QID, position=position)
    with pytest.raises(ValueError, match=r"propensities .* position is None"):
        fixed.refit_leaves(X, clicks, qid=QID)


@pytest.mark.parametrize("model", FITTED_TO_EVERY_ROW[:4], ids=repr)
def test_the_model_does_not_depend_on_n_jobs(model):
    one, three = (refitted(fitted(model, n_jobs=n_jobs)).ensemble_ for n_jobs in (1, 3))
    assert one == three


def test_the_order_of_queries_does_not_matter():
    model = fitted(LambdaMARTRanker(random_state=0, max_iter=20))
    X_, y, qid = X[OURS], Y[OURS], QID[OURS]
    queries = np.argsort(-qid, kind="stable")
    one = model.refit_leaves(X_, y, qid=qid)
    assert model.refit_leaves(X_[queries], y[queries], qid=qid[queries]).ensemble_ == one.ensemble_
    indexed = pd.Series(y, index=pd.Index(qid, name="qid"))
    assert model.refit_leaves(X_, indexed).ensemble_ == one.ensemble_


@pytest.mark.parametrize("decay", [0.0, 0.3, 0.9])
def test_the_slow_twin_agrees(decay):
    model = HistGBRTRegressor(max_iter=TREES + 6, max_leaf_nodes=5, l2_regularization=2.0, random_state=0)
    model = fitted(model)
    assert len(model.ensemble_) > TREES
    values = slow.refit(
        model.ensemble_, X[OURS], lambda scores: (scores - Y[OURS], np.ones(len(scores))), decay, 0.05, 2.0
    )
    assert refitted(model, decay=decay).ensemble_.nodes["value"] == pytest.approx(values, rel=1e-9, abs=1e-12)


def test_the_slow_twin_of_a_forest_agrees():
    forest = fitted(RandomForestRanker(5, random_state=0))
    again = refitted(forest, decay=0.25)
    for old, new in zip(forest.ensemble_, again.ensemble_, strict=True):
        leaves = np.array([slow.leaf_of(old.nodes, x) for x in X[OURS]])
        for k in np.flatnonzero(old.nodes["feature"] < 0):
            value = old.nodes["value"][k]
            if (leaves == k).any():
                value = 0.25 * value + 0.75 * (Y[OURS][leaves == k].mean() - forest.ensemble_.base)
            assert new.nodes["value"][k] == pytest.approx(value, abs=1e-12)


def test_only_the_values_of_leaves_that_rows_reach_change():
    model = fitted(LambdaMARTRanker(random_state=0, max_iter=20))
    few = OURS & (QID < 32)
    old, new = model.ensemble_, refitted(model, few, decay=0.0).ensemble_
    for name in set(old.nodes.dtype.names) - {"value"}:
        assert (new.nodes[name] == old.nodes[name]).all()
    reached = np.zeros(len(old.nodes), bool)
    reached[old.leaves(X[few]) + old.tree_offsets[:-1]] = True
    assert (new.nodes["value"][~reached] == old.nodes["value"][~reached]).all()
    assert (new.nodes["value"][reached] != old.nodes["value"][reached]).mean() > 0.5
    assert not reached[old.nodes["feature"] < 0].all()


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_of_any_kind(sparse):
    from scipy import sparse as sp

    model = fitted(HistGBRTRegressor(max_iter=5, random_state=0))
    rows = np.nan_to_num(X[OURS])
    given = sp.csr_array(rows) if sparse else pd.DataFrame(rows)
    expected = model.refit_leaves(rows, Y[OURS], qid=QID[OURS])
    assert model.refit_leaves(given, Y[OURS], qid=QID[OURS]).ensemble_ == expected.ensemble_


# ---- a new estimator -------------------------------------------------------------------------------


def test_the_estimator_stays_as_it_is():
    model = LambdaMARTRanker(max_iter=20, random_state=0, early_stopping=True)
    model = fitted(model)
    before, state = model.ensemble_, vars(model).copy()
    again = refitted(model)
    assert type(again) is LambdaMARTRanker
    assert again.get_params() == model.get_params()
    assert model.ensemble_ is before
    assert vars(model).keys() == state.keys()
    assert len(model.train_score_) == len(model.validation_score_) == model.n_iter_
    assert len(again.train_score_) == len(again.validation_score_) == 0
    assert len(again.ensemble_) == len(before)
    forest = fitted(RandomForestRanker(5, oob_score=True, random_state=0))
    assert not hasattr(refitted(forest), "oob_score_")
    assert hasattr(forest, "oob_score_")


def test_boosting_goes_on_from_it():
    model = fitted(LambdaMARTRanker(max_iter=10, warm_start=True, random_state=0))
    again = refitted(model)
    kept = again.ensemble_
    again = fitted(again, OURS, max_iter=15)
    assert again.ensemble_.first(10) == kept
    assert len(again.ensemble_) == 15


def test_what_boosting_started_from_stays():
    forest = fitted(RandomForestRanker(5, random_state=0))
    model = fitted(LambdaMARTRanker(init=forest, max_iter=10, subsample=0.7, random_state=0), OURS)
    again = refitted(model, decay=0.5)
    assert again.n_init_trees_ == 5
    assert again.ensemble_.first(5) == model.ensemble_.first(5)
    assert (again.ensemble_.after(5).nodes["value"] != model.ensemble_.after(5).nodes["value"]).any()


def test_it_learns_what_is_new():
    turned = HistGBRTRegressor(max_iter=100, random_state=0).fit(X[THEIRS], 4 - Y[THEIRS])
    again = turned.refit_leaves(X[OURS], Y[OURS], decay=0.2)
    assert turned.score(X[OURS], Y[OURS]) < 0 < 0.5 < again.score(X[OURS], Y[OURS])


@pytest.mark.parametrize(
    "model",
    [one for one in FITTED_TO_EVERY_ROW if getattr(one, "init", None) is None and not is_classifier(one)],
    ids=repr,
)
def test_trees_alone_are_refitted_as_by_the_estimator_that_grew_them(model):
    model = fitted(clone(model), OURS)
    ranker = EnsembleRanker(model.ensemble_, measure="ndcg@5")
    before = ranker.ensemble_.to_bytes()
    again = refitted(ranker, THEIRS, decay=0.5, estimator=clone(model))
    assert again.ensemble_ == refitted(model, THEIRS, decay=0.5).ensemble_ != model.ensemble_
    assert again.measure == "ndcg@5"
    assert ranker.ensemble_.to_bytes() == before


def test_loaded_models_are_refitted_to_frames_and_to_pairs(tmp_path):
    frame = pd.DataFrame(X[:, :3], columns=list("abc"))
    frame["site"] = pd.Categorical(np.where(np.arange(len(Y)) % 2, "fr", "uk"))
    model = LambdaMARTRanker("ranknet", **EVERY_ROW).fit(frame, Y + 2 * (frame["site"] == "fr"), qid=QID)
    model.save(tmp_path / "model.rkt")
    loaded, like = EnsembleRanker(Ensemble.load(tmp_path / "model.rkt")), clone(model)
    pairs = np.flatnonzero(QID == 3)[:4].reshape(2, 2)
    for given in ({"y": Y}, {"pairs": pairs}):
        again = loaded.refit_leaves(frame, qid=QID, estimator=like, **given)
        assert again.ensemble_ == model.refit_leaves(frame, qid=QID, **given).ensemble_ != loaded.ensemble_
        assert again.predict(frame).shape == Y.shape
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.refit_leaves(frame[["b", "a", "c", "site"]], Y, qid=QID, estimator=like)
    assert not hasattr(like, "ensemble_")


# ---- what cannot be meant --------------------------------------------------------------------------


@pytest.mark.parametrize("decay", [-0.1, 1.5, np.nan, "all", True, None])
def test_decay_is_a_share(decay):
    with pytest.raises(ValueError, match=r"decay=.*expected the share of the old values, from 0 to 1"):
        refitted(fitted(HistGBRTRegressor(max_iter=2)), decay=decay)


def test_monotone_constraints_cannot_be_kept():
    with pytest.raises(ValueError, match=r"refit_leaves cannot keep monotonic_cst: .* with init="):
        refitted(fitted(HistGBRTRegressor(max_iter=2, monotonic_cst=[1] + [0] * 7)))


def test_what_scoring_refuses_is_refused():
    model = fitted(LambdaMARTRanker(max_iter=2))
    with pytest.raises(ValueError, match="refit_leaves needs qid="):
        model.refit_leaves(X[OURS], Y[OURS])
    with pytest.raises(ValueError, match="X has 7 features"):
        model.refit_leaves(X[OURS, :7], Y[OURS], qid=QID[OURS])
    with pytest.raises(ValueError, match="labels >= 0"):
        fitted(HistGBRTRegressor("poisson", max_iter=2)).refit_leaves(X, -Y, qid=QID)
    with pytest.raises(NotFittedError):
        LambdaMARTRanker().refit_leaves(X, Y, qid=QID)


def test_scores_that_leave_the_floats_are_refused():
    model = fitted(HistGBRTRegressor(max_iter=200, learning_rate=1.0, random_state=0))
    with pytest.raises(ValueError, match="scores have diverged"):
        refitted(model.set_params(learning_rate=1e9), decay=0.0)
    model = fitted(HistGBRTRegressor(max_iter=1))
    with pytest.raises(ValueError, match="scores have diverged"):  # of the last tree, too
        refitted(model.set_params(learning_rate=1.7e308), decay=0.0)


@pytest.mark.parametrize(
    ("estimator", "error", "message"),
    [
        (None, TypeError, "estimator is None; expected an estimator that grows trees, by whose loss"),
        (EnsembleRanker, TypeError, "estimator is <class .*; expected an estimator that grows trees"),
        (HistGBRTClassifier(), ValueError, "is a HistGBRTClassifier, which knows classes, .* or a regressor"),
        (RandomForestRanker(), ValueError, "is the sum of its trees, .*; expected an estimator that boosts"),
        (LambdaMARTRanker(init=0.5), ValueError, r"init=0.5, but .* expected an estimator without init"),
        (LambdaMARTRanker("lambdarank"), ValueError, "expected the name of the loss in ranktrees"),
        (LambdaMARTRanker(monotonic_cst={0: 1}), ValueError, "refit_leaves cannot keep monotonic_cst"),
    ],
    ids=repr,
)
def test_estimators_that_cannot_refit_trees_are_refused(estimator, error, message):
    ranker = EnsembleRanker(fitted(LambdaMARTRanker(max_iter=2)).ensemble_)
    with pytest.raises(error, match=message):
        refitted(ranker, estimator=estimator)
    forest = EnsembleRanker(fitted(RandomForestRanker(2)).ensemble_)
    with pytest.raises(ValueError, match=r"is the mean of its trees, .*; expected RandomForestRanker\(\)\."):
        refitted(forest, estimator=LambdaMARTRanker())
    with pytest.raises(ValueError, match="refit_leaves needs qid="):
        ranker.refit_leaves(X, Y, estimator=LambdaMARTRanker())


@pytest.mark.parametrize("kind", [HistGBRTRegressor, LambdaMARTRanker, RandomForestRanker])
def test_rows_without_weight_do_not_reach_leaves(kind):
    model = kind(min_samples_leaf=3, random_state=0).fit(X[THEIRS], Y[THEIRS], qid=QID[THEIRS])
    few = QID >= 46
    alone = model.refit_leaves(X[few], Y[few], qid=QID[few], decay=0.5)
    among = model.refit_leaves(X, Y, 1.0 * few, qid=QID, decay=0.5)
    np.testing.assert_allclose(among.predict(X), alone.predict(X), rtol=1e-9, atol=1e-9)
