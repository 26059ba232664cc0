"""What scikit-learn's inspection takes for granted of a model, and its displays."""

import matplotlib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.inspection import (
    DecisionBoundaryDisplay,
    PartialDependenceDisplay,
    partial_dependence,
    permutation_importance,
)
from sklearn.metrics import make_scorer, mean_absolute_error, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ranktrees import HistGBRTClassifier, HistGBRTRegressor
from ranktrees.inspection import partial_dependence as own_partial_dependence

matplotlib.use("Agg")

RULES = {"max_iter": 20, "max_leaf_nodes": 8, "random_state": 0, "n_jobs": 1}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = 3 * X[:, 0] + X[:, 1] ** 2  # the others are noise
FRAME = pd.DataFrame(X, columns=["rises", "bends", "noise", "more"])


@pytest.fixture(scope="module")
def model():
    return HistGBRTRegressor(**RULES).fit(X, Y)


@pytest.fixture(scope="module")
def named():
    return HistGBRTRegressor(**RULES).fit(FRAME, Y)


@pytest.mark.parametrize("max_samples", [0.5, 1.0])
def test_shuffling_hurts_where_features_matter(max_samples, model):
    found = permutation_importance(model, X, Y, n_repeats=3, random_state=0, max_samples=max_samples)
    assert found.importances.shape == (4, 3)
    assert np.argsort(-found.importances_mean)[:2].tolist() == [0, 1]
    assert np.abs(found.importances_mean[2:]).max() < 0.05 * found.importances_mean[0]


def test_shuffling_frames_is_shuffling_arrays(model, named):
    of_array, of_frame = (
        permutation_importance(one, rows, Y, n_repeats=2, random_state=0)
        for one, rows in ((model, X), (named, FRAME))
    )
    assert_allclose(of_array.importances, of_frame.importances)


def test_several_scorers_at_once(model):
    scorers = {"r2": "r2", "error": make_scorer(mean_absolute_error, greater_is_better=False)}
    found = permutation_importance(model, X, Y, n_repeats=2, random_state=0, scoring=scorers)
    alone = permutation_importance(model, X, Y, n_repeats=2, random_state=0, scoring="r2")
    assert_array_equal(found["r2"].importances, alone.importances)


def test_rows_without_weight_are_not_missed_when_shuffled(model):
    weight = (X[:, 1] > 0).astype(float)
    few = X[:, 1] > 0
    weighted = permutation_importance(model, X, Y, sample_weight=weight, n_repeats=5, random_state=0)
    plain = permutation_importance(model, X[few], Y[few], n_repeats=5, random_state=0)
    assert np.argmax(weighted.importances_mean) == np.argmax(plain.importances_mean) == 0


@pytest.mark.parametrize("kind", ["average", "individual", "both"])
def test_partial_dependence_is_the_mean_of_predictions_of_changed_rows(kind, model):
    found = partial_dependence(model, X, [0], kind=kind, grid_resolution=5)
    curves = []
    for value in found["grid_values"][0]:
        changed = X.copy()
        changed[:, 0] = value
        curves.append(model.predict(changed))
    if "average" in found:
        assert_allclose(found["average"][0], np.mean(curves, axis=1))
    if "individual" in found:
        assert_allclose(found["individual"][0].T, curves)
    if kind == "both":
        assert_allclose(found["individual"].mean(axis=1), found["average"])


def test_partial_dependence_by_name_and_in_pairs(named, model):
    one = partial_dependence(named, FRAME, ["rises"], grid_resolution=4)["average"]
    assert_allclose(one, partial_dependence(model, X, [0], grid_resolution=4)["average"])
    two = partial_dependence(named, FRAME, ["rises", "bends"], grid_resolution=4)["average"]
    assert two.shape == (1, 4, 4)


def test_partial_dependence_in_a_pipeline_is_on_the_scale_before_it(model):
    pipeline = make_pipeline(StandardScaler(), HistGBRTRegressor(**RULES)).fit(X, Y)
    found, alone = (partial_dependence(one, X, [1], grid_resolution=5) for one in (pipeline, model))
    assert_allclose(found["grid_values"][0], alone["grid_values"][0])
    assert_allclose(found["average"], alone["average"], atol=0.5)


def test_our_partial_dependence_is_scikit_learns_at_its_values(model):
    ours = own_partial_dependence(model, X, 0)
    at = ours.values
    theirs = partial_dependence(model, X, [0], custom_values={0: at})["average"][0]
    assert_allclose(ours.effect, theirs, rtol=1e-6)


@pytest.mark.parametrize("response_method", ["auto", "predict_proba", "decision_function"])
def test_partial_dependence_of_classifiers(response_method):
    model = HistGBRTClassifier(**RULES).fit(X, Y > 0)
    found = partial_dependence(model, X, [0], response_method=response_method, grid_resolution=6)["average"][
        0
    ]
    assert found[-1] > found[0]
    if response_method != "decision_function":
        assert (found >= 0).all()
        assert (found <= 1).all()


def test_displays_draw_our_models(named):
    display = PartialDependenceDisplay.from_estimator(named, FRAME, ["rises"], grid_resolution=4)
    (curve,) = display.lines_[0, :1]
    expected = partial_dependence(named, FRAME, ["rises"], grid_resolution=4)["average"][0]
    assert_allclose(curve.get_ydata(), expected)
    classifier = HistGBRTClassifier(**RULES).fit(X[:, :2], Y > 0)
    boundary = DecisionBoundaryDisplay.from_estimator(
        classifier, X[:, :2], grid_resolution=5, response_method="predict_proba"
    )
    assert boundary.response.shape == (5, 5)


def test_scores_of_copies_that_were_shuffled_are_scores(model):
    shuffled = X.copy()
    RNG.shuffle(shuffled[:, 0])
    assert r2_score(Y, model.predict(shuffled)) == model.score(shuffled, Y) < model.score(X, Y)
