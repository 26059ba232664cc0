"""Fits that stop by a scorer of scikit-learn, or by what happens on the training rows."""

import numpy as np
import pytest
from ranks import together
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import check_scoring, get_scorer, log_loss, make_scorer, mean_absolute_error

from ranktrees import HistGBRTClassifier, HistGBRTRegressor, LambdaMARTRanker, make_ranking, score_curves
from ranktrees.datasets import Batches
from ranktrees.evaluation.scorers import as_followed
from ranktrees.processes.communicator import training_with

X, Y, QID = make_ranking(30, rows_per_query=20, n_features=6, random_state=0, return_X_y_qid=True)
NAMES = np.array(["no", "yes"])[(Y > 1).astype(int)]
GRADES = np.array(["e", "d", "c", "b", "a"])[Y.astype(int)]
WEIGHT = 1.0 + np.arange(len(Y)) % 3
TRAIN, REST = QID < 20, QID >= 20
RULES = {"max_iter": 6, "learning_rate": 0.3, "max_leaf_nodes": 6, "random_state": 0, "n_jobs": 1}


def own_error(estimator, X, y, sample_weight=None):
    return -mean_absolute_error(y, estimator.predict(X), sample_weight=sample_weight)


def fit(model, labels, weight=None, rows=slice(None), **others):
    weights = {} if weight is None else {"sample_weight": weight[TRAIN], "sample_weight_val": weight[REST]}
    held_out = {"X_val": X[REST], "y_val": labels[REST], "qid_val": QID[REST]}
    return model.fit(X[TRAIN], labels[TRAIN], qid=QID[TRAIN], **held_out, **weights, **others)


SCORERS = {
    "r2": (HistGBRTRegressor, "r2", Y),
    "of a link": (lambda **rules: HistGBRTRegressor("poisson", **rules), "neg_mean_poisson_deviance", Y),
    "a function": (HistGBRTRegressor, own_error, Y),
    "made": (HistGBRTRegressor, make_scorer(mean_absolute_error, greater_is_better=False), Y),
    "the estimator's own": (HistGBRTClassifier, check_scoring(HistGBRTClassifier()), NAMES),
    "accuracy": (HistGBRTClassifier, "accuracy", NAMES),
    "probabilities": (HistGBRTClassifier, "neg_log_loss", NAMES),
    "odds": (HistGBRTClassifier, "roc_auc", NAMES),
    "several classes": (HistGBRTClassifier, "roc_auc_ovr", GRADES),
    "by name": (HistGBRTClassifier, get_scorer("neg_log_loss"), GRADES),
}


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["", "weighted"])
@pytest.mark.parametrize("kind", SCORERS)
def test_what_is_followed_is_the_scorer_of_the_model_so_far(kind, weight):
    make, scoring, labels = SCORERS[kind]
    model = fit(make(scoring=scoring, early_stopping=False, **RULES), labels, weight)
    for rows, followed in ((TRAIN, model.train_score_), (REST, model.validation_score_)):
        weights = {} if weight is None else {"sample_weight": weight[rows]}
        for n in (1, 6):
            smaller = fit(make(early_stopping=False, **RULES | {"max_iter": n}), labels, weight)
            expected = check_scoring(smaller, scoring)(smaller, X[rows], labels[rows], **weights)
            assert followed[n - 1] == pytest.approx(expected, rel=1e-12)


def test_the_best_round_is_kept():
    model = fit(HistGBRTClassifier(scoring="accuracy", n_iter_no_change=3, **RULES | {"max_iter": 60}), NAMES)
    assert model.best_iteration_ == model.validation_score_.argmax() + 1 < model.n_iter_ < 60
    assert model.validation_score_.max() == np.mean(model.predict(X[REST]) == NAMES[REST])
    curves = score_curves(model)
    assert curves.best("validation") == (model.best_iteration_, model.validation_score_.max())


def test_warm_starts_follow_a_scorer_from_the_first_tree_on():
    rules = {"scoring": "r2", "early_stopping": False, **RULES}
    whole = fit(HistGBRTRegressor(**rules), Y)
    model = fit(HistGBRTRegressor(**rules | {"max_iter": 2}, warm_start=True), Y)
    fit(model.set_params(max_iter=6), Y)
    assert model.ensemble_ == whole.ensemble_
    assert model.train_score_.tolist() == whole.train_score_.tolist()
    assert model.validation_score_.tolist() == whole.validation_score_.tolist()


def test_measures_keep_the_names_that_scorers_share_with_them():
    names = "precision", "recall", "accuracy"
    assert list(map(repr, map(as_followed, names))) == ["P", "R", "'accuracy'"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (LambdaMARTRanker(scoring="r2"), "unknown measure 'r2'"),
        (HistGBRTRegressor(scoring="exactness"), "unknown measure 'exactness'"),
        (
            HistGBRTRegressor(scoring=lambda model, X, y: {"r2": 1.0}),
            "returned {'r2': 1.0}; expected",
        ),
        (HistGBRTRegressor(scoring=lambda model, X, y: model.predict(X[1:]).sum()), "of other rows than"),
    ],
)
def test_scorers_that_cannot_be_followed_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        fit(model.set_params(**RULES), Y)


def test_rows_that_are_not_all_here_have_no_scorer():
    model = HistGBRTRegressor(scoring="r2", early_stopping=True, **RULES)

    def of_rank(communicator):
        part = slice(0, 300) if communicator.rank else slice(300, None)
        with training_with(communicator), pytest.raises(ValueError, match="the rows are those of several"):
            HistGBRTRegressor(scoring="r2", early_stopping=True, **RULES).fit(X[part], Y[part], qid=QID[part])
        return True

    assert together(2, of_rank) == [True, True]
    with pytest.raises(ValueError, match=r"scoring='r2' is called with all rows together.* in batches"):
        model.fit(Batches(lambda: iter([(X, Y, QID)])))


# ------------------------------------------------------------------------------------------ training rows


@pytest.mark.parametrize("scoring", ["loss", "r2", "rmse"])
def test_without_a_fraction_the_training_rows_decide(scoring):
    rules = RULES | {"max_iter": 200, "learning_rate": 1.0, "n_iter_no_change": 4, "tol": 0.02}
    model = HistGBRTRegressor(scoring=scoring, early_stopping=True, validation_fraction=None, **rules)
    model.fit(X, Y)
    assert model.n_iter_ < 200
    assert model.best_iteration_ == model.n_iter_ - 4
    assert len(model.validation_score_) == 0
    best = model.train_score_[model.best_iteration_ - 1]
    assert (model.train_score_[model.best_iteration_ :] <= best + 0.02).all()
    all_rows = HistGBRTRegressor(**rules | {"max_iter": model.best_iteration_}).fit(X, Y)
    assert model.ensemble_ == all_rows.ensemble_


def test_training_rows_decide_as_in_scikit_learn():
    """In the same range, as the trees are others."""
    shared = {"early_stopping": True, "validation_fraction": None, "scoring": "loss", "tol": 1e-2}
    shared |= {"max_iter": 100, "n_iter_no_change": 2, "learning_rate": 0.2, "random_state": 0}
    ours = HistGBRTRegressor(gradient_sampling=None, max_features=1.0, max_leaf_nodes=31, **shared).fit(X, Y)
    theirs = HistGradientBoostingRegressor(**shared).fit(X, Y)
    assert abs(ours.n_iter_ - theirs.n_iter_) <= 3
    assert ours.train_score_[-1] == pytest.approx(theirs.train_score_[-1], abs=0.02)


def test_training_rows_decide_after_a_warm_start_and_a_checkpoint(tmp_path):
    rules = RULES | {"max_iter": 30, "learning_rate": 1.0, "n_iter_no_change": 3, "tol": 0.02}
    rules |= {"early_stopping": True, "validation_fraction": None}
    whole = HistGBRTRegressor(**rules).fit(X, Y)
    assert 4 < whole.n_iter_ < 30
    first = HistGBRTRegressor(warm_start=True, **rules | {"max_iter": 2, "early_stopping": False}).fit(X, Y)
    assert first.set_params(max_iter=30, early_stopping=True).fit(X, Y).ensemble_ == whole.ensemble_
    assert first.train_score_.tolist() == whole.train_score_.tolist()

    def falls(model, X, y):
        if len(seen) == 5:
            raise KeyboardInterrupt
        seen.append(1)
        return -np.mean((model.predict(X) - y) ** 2)

    seen = []
    rules |= {"scoring": falls, "checkpoint": tmp_path / "a.ckpt", "checkpoint_every": 2}
    with pytest.raises(KeyboardInterrupt):
        HistGBRTRegressor(**rules).fit(X, Y)
    assert rules["checkpoint"].exists()
    seen = [0] * 9
    resumed = HistGBRTRegressor(**rules).fit(X, Y)
    assert resumed.ensemble_ == HistGBRTRegressor(**rules | {"checkpoint": None}).fit(X, Y).ensemble_


def test_losses_of_classifiers_may_decide_on_training_rows():
    rules = RULES | {"early_stopping": True, "validation_fraction": None}
    model = HistGBRTClassifier(scoring="neg_log_loss", **rules).fit(X, GRADES)
    expected = -log_loss(GRADES, model.predict_proba(X))
    assert model.train_score_[-1] == pytest.approx(expected)
    assert HistGBRTClassifier(**rules).fit(X, GRADES).train_score_[-1] == pytest.approx(expected)
