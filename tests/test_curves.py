"""Curves over trees: the results of `score` for the first trees, and what a fit has recorded."""

import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from ranktrees import (
    EnsembleRanker,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    RandomForestRanker,
    as_measure,
    make_ranking,
    score_curves,
)
from ranktrees.measures import ERR, NDCG, RMSE
from ranktrees.rows.feedback import pairs_among

X, Y, QID = make_ranking(40, rows_per_query=10, n_features=6, random_state=0, return_X_y_qid=True)
ORDER = np.random.default_rng(0).permutation(len(Y))
X, Y, QID = X[ORDER], Y[ORDER], QID[ORDER]
TRAIN, TEST = QID < 25, QID >= 25
SETS = {"training": (X[TRAIN], Y[TRAIN], QID[TRAIN]), "test": (X[TEST], Y[TEST], QID[TEST])}


def fitted(model, **held_out):
    return model.fit(X[TRAIN], Y[TRAIN], qid=QID[TRAIN], **held_out)


@pytest.mark.parametrize(
    "model",
    [
        LambdaMARTRanker(max_iter=7, random_state=0),
        HistGBRTRegressor("poisson", max_iter=7, random_state=0),
        RandomForestRanker(7, random_state=0),
    ],
)
@pytest.mark.parametrize("every", [1, 3, 7, 100])
def test_a_point_is_the_measure_of_the_first_trees(model, every):
    curves = score_curves(fitted(model), sets=SETS, measure=["ndcg@3", "rmse"], every=every)
    assert curves.n_trees.tolist() == sorted({*range(every, 8, every), 7})
    assert list(curves.values) == [(name, one) for name in SETS for one in (NDCG @ 3, RMSE)]
    for (name, measure), values in curves.values.items():
        X_, y, qid = SETS[name]
        expected = [measure(y, model.predict(X_, n_trees=n), qid=qid) for n in curves.n_trees.tolist()]
        assert values.tolist() == expected


def highest_first(labels, scores):
    return float(labels[np.argmax(scores)] == labels.max())


def test_a_function_is_a_measure():
    model = fitted(LambdaMARTRanker(max_iter=3, random_state=0))
    [values] = score_curves(model, sets={"test": SETS["test"]}, measure=highest_first).values.values()
    assert values[-1] == as_measure(highest_first)(Y[TEST], model.predict(X[TEST]), qid=QID[TEST])


def test_a_classifier_is_measured_by_its_odds():
    names = np.array(["no", "yes"])[(Y > 1).astype(int)]
    model = HistGBRTClassifier(max_iter=5, random_state=0).fit(X[TRAIN], names[TRAIN], qid=QID[TRAIN])
    curves = score_curves(model, sets={"test": (X[TEST], names[TEST], QID[TEST])}, measure="auc")
    scores = model.decision_function(X[TEST])
    assert curves["test", "auc"][-1] == as_measure("auc")(Y[TEST] > 1, scores, qid=QID[TEST])


def test_models_of_others_are_measured():
    model = GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X[TRAIN], Y[TRAIN])
    curves = score_curves(model, sets=SETS, measure="ndcg@5")
    assert curves["test", "ndcg@5"][-1] == (NDCG @ 5)(Y[TEST], model.predict(X[TEST]), qid=QID[TEST])


def test_ids_ride_in_the_index():
    model = fitted(LambdaMARTRanker(max_iter=3, random_state=0))
    indexed = pd.Series(Y[TEST], index=pd.Index(QID[TEST], name="qid"))
    riding = score_curves(model, sets={"test": (X[TEST], indexed)})
    assert riding["test", "ndcg@10"].tolist() == score_curves(model, sets=SETS)["test", NDCG @ 10].tolist()


# ---- as it was fitted ------------------------------------------------------------------------------

HELD_OUT = {"X_val": X[TEST], "y_val": Y[TEST], "qid_val": QID[TEST]}


def test_what_the_fit_has_followed():
    model = fitted(
        LambdaMARTRanker(max_iter=60, n_iter_no_change=10, scoring="err", random_state=0), **HELD_OUT
    )
    followed = score_curves(model)
    assert followed.n_trees.tolist() == list(range(1, model.n_iter_ + 1))
    assert followed["validation", ERR].tolist() == model.validation_score_.tolist()
    assert followed["training", "err"].tolist() == model.train_score_.tolist()
    assert followed.best("validation") == (model.best_iteration_, model.validation_score_.max())
    assert followed.kept == model.best_iteration_ < model.n_iter_
    assert f"{model.n_iter_} trees, {model.best_iteration_} kept" in repr(followed)
    measured = score_curves(model, sets=SETS, measure="err")
    assert measured["test", "err"] == pytest.approx(followed["validation", "err"][: followed.kept])
    assert score_curves(model, every=7)["training", "err"][0] == model.train_score_[6]


def test_a_function_that_was_followed_cannot_be_guessed():
    model = fitted(LambdaMARTRanker(max_iter=3, scoring=highest_first, random_state=0), **HELD_OUT)
    assert len(score_curves(model)["validation", as_measure(highest_first)]) == 3
    with pytest.raises(
        ValueError, match="scoring has changed since the model was fitted, when it was highest_first"
    ):
        score_curves(model.set_params(scoring="err"))


def test_what_was_followed_keeps_its_name():
    model = fitted(HistGBRTRegressor(max_iter=5, scoring="rmse", random_state=0), **HELD_OUT)
    before = score_curves(model).values
    after = score_curves(model.set_params(scoring="ndcg@3")).values
    assert {key: of.tolist() for key, of in before.items()} == {key: of.tolist() for key, of in after.items()}


@pytest.mark.parametrize("scoring", ["loss", "rmse"])
def test_losses_and_errors_fall(scoring):
    model = fitted(HistGBRTRegressor(max_iter=30, scoring=scoring, random_state=0), **HELD_OUT)
    followed = score_curves(model)
    assert followed["training", scoring].tolist() == (-model.train_score_).tolist()
    assert followed["training", scoring][0] > followed["training", scoring][-1] > 0
    n_trees, value = followed.best("training")
    assert (n_trees, value) == (model.n_iter_, followed["training", scoring].min())


@pytest.mark.parametrize("labels", [None, "validation", "training"])
def test_pairs_follow_their_loss_and_labels_the_measure(labels):
    all_pairs = np.argwhere((QID[:, None] == QID) & (Y[:, None] > Y))
    pairs, pairs_val = (pairs_among(all_pairs, rows)[0] for rows in (TRAIN, TEST))
    given = {"pairs": pairs, "pairs_val": pairs_val, "X_val": X[TEST], "qid_val": QID[TEST]}
    given |= {"validation": {"y_val": Y[TEST]}, "training": {"y": Y[TRAIN]}}.get(labels, {})
    model = LambdaMARTRanker("ranknet", max_iter=5, random_state=0).fit(X[TRAIN], qid=QID[TRAIN], **given)
    followed = score_curves(model)
    for name, scores in (("training", model.train_score_), ("validation", model.validation_score_)):
        measure, sign = (NDCG @ 10, 1) if name == labels else ("loss", -1)
        assert followed[name, measure].tolist() == (sign * scores).tolist()
        assert followed[name, measure].min() > 0
        n_trees, value = followed.best(name)
        assert value == (sign * scores).tolist()[n_trees - 1]


def test_after_a_warm_start_curves_are_of_all_trees_or_not_there():
    """Training scores of some trees only are not kept; validation rows are scored by all of them."""

    def followed(before, after, **parameters):
        model = fitted(LambdaMARTRanker(max_iter=4, warm_start=True, random_state=0, **parameters), **before)
        return fitted(model.set_params(max_iter=8), **after)

    with pytest.raises(ValueError, match="the model recorded no scores while it was fitted"):
        score_curves(followed(HELD_OUT, {}))
    for parameters, names in ({}, ["validation"]), ({"verbose": 1}, ["training", "validation"]):
        model = followed({}, HELD_OUT, **parameters)
        curves = score_curves(model)
        assert list(curves.values) == [(name, NDCG @ 10) for name in names]
        assert {len(of_trees) for of_trees in curves.values.values()} == {model.n_iter_}


def test_curves_that_there_are_not_are_told_from_those_that_there_are():
    model = fitted(LambdaMARTRanker(max_iter=3, random_state=0), **HELD_OUT)
    curves = score_curves(model)
    there_are = r"expected one of: training, NDCG @ 10; validation, NDCG @ 10\. For"
    for ask in (
        lambda: curves["validation", "err"],
        lambda: curves.best("validation", "err"),
        lambda: curves.best("test"),
        lambda: curves.plot("err"),
    ):
        with pytest.raises(KeyError, match=f"there is no curve of .*(ERR|test); {there_are}"):
            ask()
    with pytest.raises(ValueError, match="the model recorded no scores while it was fitted"):
        score_curves(GradientBoostingRegressor(n_estimators=2).fit(X, Y))


# ---- plots -----------------------------------------------------------------------------------------


def test_plot():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    model = fitted(LambdaMARTRanker(max_iter=40, n_iter_no_change=5, random_state=0), **HELD_OUT)
    ax = score_curves(model).plot(color="black")
    assert ax.get_ylabel() == "NDCG @ 10"
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["training", "validation", "trees kept"]
    assert {line.get_color() for line in ax.lines} == {"black", "grey"}
    curves = score_curves(model, sets=SETS, measure=["ndcg@10", "err"])
    axes = pyplot.subplots(1, 2)[1]
    for measure, where in zip(["ndcg@10", "err"], axes, strict=True):
        assert curves.plot(measure, where) is where
        assert len(where.lines) == 4  # a line and a dot for each set
        assert where.lines[0].get_ydata().tolist() == curves["training", measure].tolist()
    assert axes[1].get_ylabel() == "ERR"
    pyplot.close("all")


def test_plot_without_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    curves = score_curves(fitted(LambdaMARTRanker(max_iter=2)), sets=SETS)
    with pytest.raises(ImportError, match=r"pip install .ranktrees\[plot\]"):
        curves.plot()


# ---- what cannot be meant --------------------------------------------------------------------------


def test_what_cannot_be_measured():
    model = fitted(LambdaMARTRanker(max_iter=2))
    with pytest.raises(ValueError, match="the model recorded no scores while it was fitted"):
        score_curves(model)
    with pytest.raises(ValueError, match="every=0; expected a whole number"):
        score_curves(model, sets=SETS, every=0)
    with pytest.raises(ValueError, match="sets is a tuple; expected a dict"):
        score_curves(model, sets=(X, Y, QID))
    with pytest.raises(ValueError, match="score_curves needs qid="):
        score_curves(model, sets={"test": (X, Y)})
    with pytest.raises(ValueError, match="NDCG @ 10 is not defined on any query of 'test'"):
        score_curves(model, sets={"test": (X, 0 * Y, QID)})
    with pytest.raises(ValueError, match="NDCG takes labels >= 0, but y of 'test' has label -1"):
        score_curves(model, sets={"test": (X, Y - 1, QID)})
    for rows in ((X,), X, {"X": X, "y": Y, "qid": QID}):
        with pytest.raises(ValueError, match=r"as 'test'; expected a tuple \(X, y\) or \(X, y, qid\)"):
            score_curves(model, sets={"test": rows})
    with pytest.raises(ValueError, match="measure is empty"):
        score_curves(model, sets=SETS, measure=[])
    with pytest.raises(ValueError, match="model has no trees"):
        score_curves(EnsembleRanker(model.ensemble_.first(0)), sets=SETS)
    with pytest.raises(TypeError, match=r"model is a Ridge; expected .* staged_predict"):
        score_curves(Ridge().fit(X, Y), sets=SETS)
    with pytest.raises(TypeError, match=r"model is a Pipeline; .* Pass its last step"):
        score_curves(make_pipeline(Ridge()).fit(X, Y), X, Y, qid=QID)
    with pytest.raises(TypeError, match=r"X is .*dict.*; expected rows: pass several sets of rows as sets="):
        score_curves(model, SETS)
    for rows, message in (
        ({"X": X}, "X is given without y"),
        ({"y": Y}, "y is given without X"),
        ({"qid": QID}, "qid is given without X"),
        ({"X": X, "y": Y, "sets": SETS}, "both X and sets are given"),
        ({"qid": QID, "sets": SETS}, "both qid and sets are given"),
    ):
        with pytest.raises(TypeError, match=message):
            score_curves(model, **rows)
    with pytest.raises(NotFittedError):
        score_curves(LambdaMARTRanker(), sets=SETS)


def test_the_loss_of_several_classes_by_any_name():
    names = np.array(list("edcba"))[Y.astype(int)]
    model = HistGBRTClassifier(max_iter=5, early_stopping=True, random_state=0).fit(X, names)
    curves = score_curves(model)
    np.testing.assert_array_equal(curves["validation", "loss"], -model.validation_score_)
    with pytest.raises(ValueError, match="predicts classes such as 'a', by which rows cannot be ranked"):
        score_curves(model, sets={"all": (X, names)})
