"""What the tests of LightGBM's scikit-learn estimators take for granted."""

import joblib
import lightgbm
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.ensemble import StackingClassifier, StackingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor, RegressorChain

from ranktrees import (
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    contributions,
    make_ranking,
    query_scorer,
)
from ranktrees.measures import NDCG

X, Y, QID = make_ranking(30, rows_per_query=20, n_features=5, random_state=0, return_X_y_qid=True)
X = np.round(X, 1)
SIZES = np.full(30, 20)
TRAIN, REST = QID < 20, QID >= 20
RULES = {"max_iter": 8, "max_leaf_nodes": 7, "random_state": 0, "n_jobs": 1}
ESTIMATORS = [LambdaMARTRanker, HistGBRTRegressor, HistGBRTClassifier]
PLAIN = {"gradient_sampling": None, "max_features": 1.0, "n_jobs": 1}
SAME = {"max_leaf_nodes": 7, "learning_rate": 0.2, "max_iter": 6, "min_samples_leaf": 1, "random_state": 0}
THEIRS = {
    "num_leaves": 7,
    "learning_rate": 0.2,
    "n_estimators": 6,
    "min_child_samples": 1,
    "min_child_weight": 0.0,
}
THEIRS |= {"min_data_in_bin": 1, "verbose": -1, "n_jobs": 1, "deterministic": True}


def digests(model):
    return [ensemble.digest() for ensemble in model._ensembles]


# --------------------------------------------------------------------------------- the same trees as LightGBM


@pytest.mark.parametrize("weighted", [False, True])
def test_regression_trees_are_those_of_lightgbm(weighted):
    weight = 1.0 + np.arange(len(Y)) % 2 if weighted else None
    ours = HistGBRTRegressor(**SAME | PLAIN).fit(X, Y, weight)
    theirs = lightgbm.LGBMRegressor(**THEIRS).fit(X, Y, sample_weight=weight)
    assert np.isclose(ours.predict(X), theirs.predict(X), atol=1e-4).mean() > 0.97


@pytest.mark.parametrize(("n_classes", "n_rounds"), [(2, 6), (3, 2)])
def test_classification_trees_are_those_of_lightgbm(n_classes, n_rounds):
    """Of several classes, splits that gain the same part the two in later rounds."""
    y = np.minimum(Y, n_classes - 1)
    ours = HistGBRTClassifier(**SAME | PLAIN | {"max_iter": n_rounds}).fit(X, y)
    theirs = lightgbm.LGBMClassifier(**THEIRS | {"n_estimators": n_rounds}).fit(X, y)
    assert np.isclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3).mean() > 0.97


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_trees_of_losses_with_a_log_link_are_those_of_lightgbm(loss):
    """LightGBM adds e^0.7 to the hessians of its Poisson loss, which makes its steps smaller."""
    y = 1.0 + Y
    ours = HistGBRTRegressor(loss, **SAME | PLAIN).fit(X, y)
    theirs = lightgbm.LGBMRegressor(objective=loss, poisson_max_delta_step=1e-12, **THEIRS).fit(X, y)
    assert np.isclose(ours.predict(X), theirs.predict(X), rtol=1e-3).mean() > 0.97


def test_weights_of_classes_are_those_of_lightgbm():
    y = (Y > 2).astype(int)
    ours = HistGBRTClassifier(class_weight="balanced", **SAME | PLAIN).fit(X, y)
    theirs = lightgbm.LGBMClassifier(class_weight="balanced", **THEIRS).fit(X, y)
    assert np.isclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-3).mean() > 0.97


def test_a_schedule_of_rates_is_that_of_a_callback_of_lightgbm():
    def rate(i):
        return 0.3 * 0.7**i

    ours = HistGBRTRegressor(**SAME | PLAIN | {"learning_rate": rate}).fit(X, Y)
    callback = lightgbm.reset_parameter(learning_rate=rate)
    theirs = lightgbm.LGBMRegressor(**THEIRS).fit(X, Y, callbacks=[callback])
    assert np.isclose(ours.predict(X), theirs.predict(X), atol=1e-4).mean() > 0.97


# -------------------------------------------------------------------------------------------- validation sets


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_predictions_are_those_of_the_best_iteration(cls):
    model = cls(**RULES | {"max_iter": 60, "learning_rate": 0.8, "n_iter_no_change": 5})
    y = Y if cls is not HistGBRTClassifier else Y > 1
    model.fit(X[TRAIN], y[TRAIN], qid=QID[TRAIN], eval_set=[(X[REST], y[REST])], eval_qid=[QID[REST]])
    assert model.best_iteration_ < model.n_iter_ < 60
    assert model.validation_score_.argmax() == model.best_iteration_ - 1
    assert_array_equal(model.predict(X), model.predict(X, n_trees=model.best_iteration_))


def test_what_was_followed_is_what_score_says():
    model = LambdaMARTRanker(measure=NDCG.lightgbm @ 3, **RULES)
    rest = {"X_val": X[REST], "y_val": Y[REST], "qid_val": QID[REST]}
    model.fit(X[TRAIN], Y[TRAIN], qid=QID[TRAIN], **rest)
    assert model.validation_score_.max() == model.score(X[REST], Y[REST], qid=QID[REST])


def test_a_measure_that_never_changes_stops_after_the_rounds_of_patience():
    model = LambdaMARTRanker(scoring=lambda labels, scores: 0.0, n_iter_no_change=3, **RULES)
    model.fit(X, Y, qid=QID, eval_set=[(X, Y)], eval_group=[SIZES])
    assert (model.best_iteration_, model.n_iter_) == (1, 4)


def test_weights_of_validation_rows_are_those_of_their_score():
    weight = np.random.default_rng(0).random(len(Y))
    model = HistGBRTRegressor(scoring="neg_mean_squared_error", early_stopping=False, **RULES)
    model.fit(X, Y, eval_set=[(X, Y)], sample_weight_val=weight)
    expected = -np.average((model.predict(X) - Y) ** 2, weights=weight)
    assert model.validation_score_[-1] == pytest.approx(expected)


# --------------------------------------------------------------------------------------- kinds of data


KINDS = {
    "lists": (list, list, list),
    "float32": (lambda a: a.astype(np.float32), lambda a: a.astype(np.float32), np.asarray),
    "series": (pd.DataFrame, pd.Series, pd.Series),
    "frame of labels": (pd.DataFrame, lambda a: pd.DataFrame({"y": a})["y"], pd.Series),
    "csr": (sparse.csr_matrix, np.asarray, np.asarray),
    "csc": (sparse.csc_matrix, np.asarray, list),
    "arrow": (lambda a: pa.table({f"c{i}": a[:, i] for i in range(a.shape[1])}), pa.array, pa.array),
    "chunks": (np.asarray, lambda a: pa.chunked_array([a[:100], a[100:]]), np.asarray),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_rows_labels_and_sizes_of_any_kind_are_one_model(kind, cls):
    rows, labels, sizes = KINDS[kind]
    expected = cls(**RULES).fit(X.astype(np.float32), Y, group=SIZES)
    model = cls(**RULES).fit(rows(X.astype(np.float32)), labels(Y), group=sizes(SIZES))
    for one, other in zip(model._ensembles, expected._ensembles, strict=True):
        assert one.nodes.tobytes() == other.nodes.tobytes()  # frames have names of columns besides


def test_categories_of_frames_are_known_again_in_any_order():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": pd.Categorical(rng.choice(list("abc"), 300)), "x": rng.random(300)})
    y = (frame["c"] == "b") + frame["x"]
    model = HistGBRTRegressor(**RULES).fit(frame, y)
    turned = frame.assign(c=frame["c"].cat.reorder_categories(list("cba")))
    assert_array_equal(model.predict(turned), model.predict(frame))
    more = frame.assign(c=frame["c"].cat.add_categories(["new"]))
    assert_array_equal(model.predict(more), model.predict(frame))
    words = frame.assign(c=frame["c"].astype(str))
    with pytest.raises(ValueError, match="'x'"):
        model.predict(words.assign(x="text"))


@pytest.mark.parametrize("names", [["no", "yes"], [-1, 1], [3, 8], [False, True]])
def test_classes_have_any_names(names):
    y = np.array(names)[(Y > 1).astype(int)]
    model = HistGBRTClassifier(**RULES).fit(X, y)
    assert model.classes_.tolist() == names
    assert set(model.predict(X).tolist()) <= set(names)
    assert model.predict_proba(X).shape == (len(X), 2)


# ------------------------------------------------------------------------------------------- as an estimator


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_files_of_joblib_predict_the_same(cls, tmp_path):
    model = cls(**RULES).fit(X, Y, qid=QID)
    joblib.dump(model, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    assert_array_equal(again.predict(X), model.predict(X))
    assert again.get_params() == model.get_params()


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_before_the_fit_there_is_nothing(cls):
    model = cls(**RULES)
    for name in ("ensemble_", "n_features_in_", "best_iteration_", "feature_importances_"):
        assert not hasattr(model, name)
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_a_second_fit_knows_nothing_of_the_first(cls):
    model = cls(**RULES).fit(X[:, :3], Y[::-1], qid=QID)
    assert model.fit(X, Y, qid=QID).n_features_in_ == 5
    assert digests(model) == digests(clone(model).fit(X, Y, qid=QID))


@pytest.mark.parametrize("cls", [LambdaMARTRanker, HistGBRTRegressor])
def test_contributions_add_up(cls):
    model = cls(**RULES).fit(X, Y, qid=QID)
    parts, start = contributions(model, X)
    assert_allclose(parts.sum(axis=1) + start, model.predict(X))


@pytest.mark.parametrize("cls", ESTIMATORS)
def test_columns_that_say_nothing_are_not_important(cls):
    wide = np.column_stack([X, np.ones(len(X)), np.full(len(X), np.nan)])
    model = cls(**RULES).fit(wide, Y, qid=QID)
    assert_array_equal(model.feature_importances_[5:], [0.0, 0.0])
    assert model.n_features_in_ == 7


def test_features_of_another_number_are_refused():
    model = HistGBRTRegressor(**RULES).fit(X, Y)
    with pytest.raises(ValueError, match="X has 4 features, but HistGBRTRegressor is expecting 5"):
        model.predict(X[:, :4])


def test_searches_pass_validation_rows_on_to_each_fit():
    grid = GridSearchCV(HistGBRTClassifier(**RULES), {"max_leaf_nodes": [2, 7]}, cv=2)
    grid.fit(X, Y > 1, X_val=X[REST], y_val=Y[REST] > 1)
    assert grid.best_params_["max_leaf_nodes"] in (2, 7)
    assert len(grid.best_estimator_.validation_score_) == grid.best_estimator_.n_iter_
    some = {"learning_rate": [0.05, 0.1, 0.3], "min_samples_leaf": range(5, 30)}
    drawn = RandomizedSearchCV(HistGBRTRegressor(**RULES), some, n_iter=2, cv=2, random_state=0).fit(X, Y)
    assert drawn.best_score_ < 1.0


def test_rankers_are_searched_by_queries():
    y = pd.Series(Y, index=pd.Index(QID, name="qid"))
    grid = GridSearchCV(LambdaMARTRanker(**RULES), {"max_iter": [1, 8]}, cv=2, scoring=query_scorer("ndcg@5"))
    assert grid.fit(X, y).best_params_ == {"max_iter": 8}


def test_stacks_of_our_models():
    parts = [("one", HistGBRTClassifier(**RULES)), ("two", HistGBRTClassifier(**RULES | {"max_depth": 2}))]
    stack = StackingClassifier(parts, HistGBRTClassifier(**RULES), passthrough=True, cv=2).fit(
        X, np.minimum(Y, 2)
    )
    assert stack.final_estimator_.n_features_in_ == 2 * 3 + 5
    parts = [("one", HistGBRTRegressor(**RULES))]
    assert StackingRegressor(parts, HistGBRTRegressor(**RULES), cv=2).fit(X, Y).score(X, Y) > 0.1


def test_one_model_for_each_output():
    several = np.column_stack([Y, 2 * Y, -Y])
    single = HistGBRTRegressor(**RULES).fit(X, -Y)
    many = MultiOutputRegressor(HistGBRTRegressor(**RULES)).fit(X, several)
    assert_array_equal(many.predict(X)[:, 2], single.predict(X))
    assert RegressorChain(HistGBRTRegressor(**RULES), order=[2, 0, 1]).fit(X, several).predict(X).shape == (
        600,
        3,
    )
    labels = np.column_stack([Y > 0, Y > 1]).astype(str)
    assert MultiOutputClassifier(HistGBRTClassifier(**RULES)).fit(X, labels).score(X, labels) > 0.5
    assert ClassifierChain(HistGBRTClassifier(**RULES)).fit(X, labels == "True").predict(X).shape == (600, 2)


# ---------------------------------------------------------------------------------------- losses of one's own


def test_a_loss_of_ones_own_that_is_least_squares_is_least_squares():
    def squares(labels, scores, offsets):
        return scores - labels, np.ones(len(labels))

    own = HistGBRTRegressor(squares, init=float(Y.mean()), **RULES | PLAIN).fit(X, Y)
    assert_allclose(own.predict(X), HistGBRTRegressor(**RULES | PLAIN).fit(X, Y).predict(X), atol=1e-6)


def test_a_loss_of_ones_own_predicts_scores():
    def cross_entropy(labels, scores, offsets):
        p = expit(scores)
        return p - labels, p * (1.0 - p)

    model = HistGBRTRegressor(cross_entropy, **RULES).fit(X, (Y > 1).astype(float))
    assert model.predict(X).min() < 0
    assert np.mean((model.predict(X) > 0) == (Y > 1)) > 0.8


def test_trees_that_start_from_a_model_go_on_from_it():
    first = HistGBRTRegressor(**RULES | PLAIN).fit(X, Y)
    further = HistGBRTRegressor(init=first, **RULES | PLAIN).fit(X, Y)
    assert further.score(X, Y) > first.score(X, Y)
    assert_array_equal(further.predict(X, n_trees=0), first.predict(X))
