"""The link of a model stays with its trees, and is what an `EnsembleRanker` predicts by."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from ranktrees import (
    EarlyExit,
    Ensemble,
    EnsembleRanker,
    FitWarning,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    RecordScorer,
    contributions,
    dump_lightgbm,
    dump_onnx,
    dump_xgboost,
    make_ranking,
)
from ranktrees.estimators.columns import recoded
from ranktrees.objectives import Logistic, Poisson

X, Y, QID = make_ranking(30, rows_per_query=20, n_features=6, random_state=0, return_X_y_qid=True)
LABELS = (Y > 1).astype(float)
SMALL = {"max_iter": 6, "max_leaf_nodes": 6, "random_state": 0, "n_jobs": 1}
KINDS = {
    "poisson": HistGBRTRegressor("poisson", **SMALL),
    "gamma": HistGBRTRegressor("gamma", **SMALL),
    "logistic": HistGBRTRegressor("logistic", **SMALL),
    "two classes": HistGBRTClassifier(**SMALL),
}
INVERSE = {"poisson": np.exp, "logistic": lambda scores: 1 / (1 + np.exp(-scores))}


@pytest.fixture(scope="module")
def fitted():
    labels = {kind: LABELS + (kind == "gamma") for kind in KINDS}
    return {kind: clone(model).fit(X, labels[kind], qid=QID) for kind, model in KINDS.items()}


@pytest.fixture(params=KINDS)
def model(request, fitted):
    return fitted[request.param]


def loaded(model, **parameters):
    return EnsembleRanker(Ensemble.from_bytes(model.ensemble_.to_bytes()), **parameters)


def predictions(model):
    return model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)


def steep(link="logistic"):
    """Trees whose probabilities are all 1 in double precision, although their scores differ."""
    return HistGBRTRegressor(**SMALL).fit(X, 60 + 10 * Y).ensemble_.with_link(link)


def test_a_saved_model_predicts_as_the_estimator_does(model, tmp_path):
    model.save(tmp_path / "model.rkt")
    ranker = EnsembleRanker(Ensemble.load(tmp_path / "model.rkt"))
    link = ranker.ensemble_.link
    scores = ranker.ensemble_.predict(X)
    assert f"link={link!r}" in repr(ranker.ensemble_)
    for each in (ranker, clone(ranker), copy.deepcopy(ranker), pickle.loads(pickle.dumps(ranker))):
        assert_array_equal(each.predict(X), predictions(model))
        assert_allclose(each.predict(X), INVERSE[link](scores), rtol=1e-14)
    assert_array_equal(EnsembleRanker(ranker.ensemble_.with_link(None)).predict(X), scores)
    assert_array_equal(RecordScorer(ranker)(X.tolist()), ranker.predict(X))
    staged = list(ranker.staged_predict(X))
    assert_array_equal(staged[-1], ranker.predict(X))
    assert_array_equal(staged[2], ranker.predict(X, n_trees=3))
    assert_array_equal(staged[2], EnsembleRanker(ranker.ensemble_.first(3)).predict(X))
    parts, start = contributions(ranker, X)
    assert_allclose(parts.sum(axis=1) + start, scores, rtol=1e-12)


@pytest.mark.parametrize("measure", ["ndcg@5", "rmse", "auc"])
def test_rank_and_score_are_those_of_the_estimator(measure, model):
    ranker = loaded(model, measure=measure)
    model = copy.copy(model).set_params(measure=measure)
    ranks = ranker.rank(X, qid=QID, k=None)
    assert_array_equal(ranks["row"], model.rank(X, qid=QID, k=None)["row"])
    assert_array_equal(ranks["score"], ranker.predict(X)[ranks["row"]])
    assert ranker.score(X, LABELS, qid=QID) == model.score(X, LABELS, qid=QID)
    costs = {"qid": QID, "feature_costs": np.ones(6)}
    curves = [each.cost_curve(X, LABELS, **costs) for each in (ranker, model)]
    assert_array_equal(curves[0].value, curves[1].value)


def test_early_exit_compares_thresholds_with_predictions(fitted):
    model = fitted["logistic"]
    ranker, at = loaded(model), float(np.median(model.predict(X, n_trees=3)))
    staged = np.stack(list(ranker.staged_predict(X)))
    for early_exit in (EarlyExit(at=[3], threshold=at), EarlyExit(at=[2, 4], drop=0.3)):
        given = {"qid": QID, "early_exit": early_exit}
        (one, saved), (two, _) = (each.predict(X, **given, return_saved=True) for each in (ranker, model))
        assert 0 < saved.share < 1
        assert_array_equal(one, two)
        assert_array_equal(one, staged[saved.trees - 1, range(len(X))])
        if early_exit.threshold is not None:
            assert_array_equal(saved.trees < 6, staged[2] < at)
        ndcg = copy.copy(model).set_params(measure="ndcg@10")
        assert ranker.score(X, LABELS, **given) == ndcg.score(X, LABELS, **given)
        assert_array_equal(ranker.rank(X, **given)["row"], model.rank(X, **given)["row"])


@pytest.mark.parametrize("link", ["logistic", None])
def test_rows_are_ranked_by_scores_where_probabilities_are_equal(link):
    ranker, scores = EnsembleRanker(steep(link)), steep().predict(X)
    assert len(np.unique(ranker.predict(X))) == (1 if link else len(np.unique(scores)))
    ranked = EnsembleRanker(steep(None))
    assert ranker.score(X, Y, qid=QID) > 0.8
    for early_exit in (None, EarlyExit(at=[3], threshold=0.5), EarlyExit(at=[3], drop=0.5)):
        given = {"qid": QID, "early_exit": early_exit}
        assert_array_equal(ranker.rank(X, **given)["row"], ranked.rank(X, **given)["row"])
        assert ranker.score(X, Y, **given) == ranked.score(X, Y, **given)
        curve = ranker.cost_curve(X, Y, **given, feature_costs=np.ones(6))
        assert curve.value[-1] == ranked.score(X, Y, **given)


def test_training_follows_rankings_by_scores():
    model = HistGBRTRegressor("logistic", init=steep(), scoring="ndcg@5", early_stopping=False, **SMALL)
    model.fit(X, np.ones(len(Y)), qid=QID, X_val=X, y_val=Y, qid_val=QID)
    assert set(model.predict(X)) == {1.0}
    score = EnsembleRanker(steep(None), measure="ndcg@5").score(X, Y, qid=QID)
    assert set(model.validation_score_) == {score}


def test_every_ensemble_of_an_ensemble_keeps_the_link(model):
    trees = model.ensemble_
    link = trees.link
    named = trees._with_columns([f"f{j}" for j in range(6)], {0: ["a"]})
    half = Ensemble.joined([trees, trees], [0.5, 0.5])
    for each in (
        trees.first(2),
        trees.after(2),
        trees.first(2).extend(trees.after(2)),
        half,
        named,
        trees._replace(base=1.0),
        recoded(EnsembleRanker(trees), {}),
        pickle.loads(pickle.dumps(trees)),
    ):
        assert each.link == link
    assert_allclose(half.predict(X), trees.predict(X), rtol=1e-12)
    assert trees.with_link(None).link is None
    assert trees.with_link(None) != trees
    assert trees.with_link(None).nodes is trees.nodes
    with pytest.raises(ValueError, match=r"link='probit'; expected one of .*'poisson'.*, or None"):
        trees.with_link("probit")


def test_losses_with_a_link_have_trees_with_one():
    class Counts(Poisson):
        """The same link in another class."""

    assert HistGBRTRegressor(Counts(), **SMALL).fit(X, Y).ensemble_.link == "poisson"
    assert HistGBRTRegressor(**SMALL).fit(X, Y).ensemble_.link is None
    ranker = LambdaMARTRanker(Logistic(), **SMALL).fit(X, LABELS, qid=QID)
    assert ranker.ensemble_.link is None
    assert_array_equal(loaded(ranker).predict(X), ranker.predict(X))
    classes = HistGBRTClassifier(**SMALL).fit(X, np.minimum(Y, 2))
    assert [each.link for each in classes.ensembles_] == [None, None, None]
    again = clone(KINDS["poisson"]).set_params(warm_start=True).fit(X, Y).set_params(max_iter=8).fit(X, Y)
    assert again.ensemble_ == clone(KINDS["poisson"]).set_params(max_iter=8).fit(X, Y).ensemble_


def test_a_link_of_a_users_own_is_told(tmp_path):
    class Twice(Poisson):
        def inverse_link(self, scores):
            return 2 * np.exp(scores)

    model = HistGBRTRegressor(Twice(), **SMALL).fit(X, Y)
    for write in (dump_lightgbm, dump_onnx, dump_xgboost, HistGBRTRegressor.save):
        with pytest.warns(FitWarning, match=r"Twice.inverse_link, by which .* is not written"):
            write(model, tmp_path / "model.json")
    read = EnsembleRanker(Ensemble.load(tmp_path / "model.json"))
    assert_allclose(2 * np.exp(read.predict(X)), model.predict(X))


def test_boosting_starts_from_scores(fitted):
    for loss in ("poisson", "logistic"):
        model = fitted[loss]
        further = {"loss": loss, "gradient_sampling": None, **SMALL}
        one, two = (HistGBRTRegressor(init=init, **further).fit(X, LABELS) for init in (model, loaded(model)))
        assert one.ensemble_ == two.ensemble_
        assert one.ensemble_.link == loss
        ranker = LambdaMARTRanker(init=model.ensemble_, **SMALL).fit(X, Y, qid=QID)
        assert_array_equal(ranker.predict(X, n_trees=0), model.ensemble_.predict(X))
        assert_array_equal(EnsembleRanker(ranker.ensemble_).predict(X), ranker.predict(X))
        with pytest.raises(ValueError, match=r"(?s)init=.*link='.*scores on a different scale from its pred"):
            HistGBRTRegressor(init=model.ensemble_, **SMALL).fit(X, Y)
    plain = HistGBRTRegressor(**SMALL).fit(X, LABELS)
    assert HistGBRTRegressor("poisson", init=plain, **SMALL).fit(X, Y).ensemble_.link == "poisson"


def test_leaves_are_refitted_by_a_loss_of_the_same_link(fitted):
    model = fitted["poisson"]
    like = clone(model)
    refitted = loaded(model).refit_leaves(X, Y, estimator=like)
    assert_array_equal(refitted.predict(X), model.refit_leaves(X, Y).predict(X))
    assert refitted.ensemble_.link == "poisson"
    with pytest.raises(ValueError, match=r"(?s)estimator is .*logistic.*link='poisson'.* on another scale"):
        loaded(model).refit_leaves(X, LABELS, estimator=KINDS["logistic"])
    ranker = loaded(model).refit_leaves(X, Y, qid=QID, estimator=LambdaMARTRanker(**SMALL))
    assert ranker.ensemble_.link is None
    without = EnsembleRanker(model.ensemble_.with_link(None)).refit_leaves(X, Y, estimator=like)
    assert without.ensemble_ == refitted.ensemble_


def test_means_of_predictions_are_refused_and_of_scores_are_not(fitted):
    model = fitted["poisson"]
    for each in (loaded(model), model.ensemble_):
        with pytest.raises(ValueError, match=r"(?s)link='poisson'.* predictions are not sums over trees"):
            EnsembleRanker.average([each, each])
    logs = Ensemble.joined([model.ensemble_, steep("poisson")], [0.5, 0.5])
    counts = [EnsembleRanker(each).predict(X) for each in (model.ensemble_, steep("poisson"))]
    assert_allclose(EnsembleRanker(logs).predict(X), np.sqrt(counts[0] * counts[1]), rtol=1e-12)
    with pytest.raises(ValueError, match=r"links \['poisson', 'logistic'\]"):
        Ensemble.joined([model.ensemble_, fitted["logistic"].ensemble_])


def test_a_frame_with_a_link_comes_back(tmp_path):
    frame = pd.DataFrame({"clicks": X[:, 0], "site": pd.Categorical(np.where(X[:, 1] > 0, "uk", "fr"))})
    model = HistGBRTClassifier(**SMALL).fit(frame, np.where(Y > 1, "yes", "no"))
    model.save(tmp_path / "model.rkt")
    ranker = EnsembleRanker(Ensemble.load(tmp_path / "model.rkt"))
    assert_array_equal(ranker.predict(frame), model.predict_proba(frame)[:, 1])
    records = frame.to_dict("records")
    assert_array_equal(
        RecordScorer(ranker)(records), RecordScorer(model, method="predict_proba")(records)[:, 1]
    )
