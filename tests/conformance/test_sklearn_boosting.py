"""What the tests of scikit-learn's HistGradientBoosting take for granted."""

import joblib
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit
from sklearn.datasets import make_classification, make_regression
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import OneHotEncoder
from threadpoolctl import threadpool_limits

from ranktrees import HistGBRTClassifier, HistGBRTRegressor, LambdaMARTRanker

PLAIN = {"gradient_sampling": None, "max_features": 1.0, "random_state": 0, "n_jobs": 1}
BOTH = {"learning_rate": 0.3, "max_iter": 5, "max_leaf_nodes": 8, "min_samples_leaf": 5}
BOOSTED = [HistGBRTRegressor, HistGBRTClassifier]


@pytest.fixture(scope="module")
def rows():
    X, y = make_regression(300, 5, n_informative=3, noise=2.0, random_state=0)
    return np.round(2 * X) / 2, np.round(y)  # few values, which all libraries cut alike


def small(cls, **parameters):
    return cls(**PLAIN | {"max_iter": 20, "min_samples_leaf": 1, "max_leaf_nodes": 8} | parameters)


# ----------------------------------------------------------------------------- the same trees as scikit-learn


@pytest.mark.parametrize("weighted", [False, True])
def test_regression_trees_are_those_of_scikit_learn(weighted, rows):
    X, y = rows
    weight = 1.0 + np.arange(len(y)) % 3 if weighted else None
    ours = HistGBRTRegressor(**BOTH, **PLAIN).fit(X, y, weight)
    with threadpool_limits(1):
        theirs = HistGradientBoostingRegressor(**BOTH, early_stopping=False).fit(X, y, weight)
    assert_allclose(ours.predict(X), theirs.predict(X), atol=1e-4 * np.ptp(y))


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_trees_of_losses_with_a_log_link_are_those_of_scikit_learn(loss, rows):
    """Hessians are rounded there and here, so that a few rows may go elsewhere."""
    X, y = rows
    y = np.exp(0.01 * y)
    ours = HistGBRTRegressor(loss, **BOTH, **PLAIN).fit(X, y)
    with threadpool_limits(1):
        theirs = HistGradientBoostingRegressor(loss=loss, **BOTH, early_stopping=False).fit(X, y)
    assert np.mean(np.isclose(ours.predict(X), theirs.predict(X), rtol=1e-3)) > 0.97


def test_classification_trees_are_those_of_scikit_learn(rows):
    X, y = rows
    y = y > 0
    ours = HistGBRTClassifier(**BOTH, **PLAIN).fit(X, y)
    with threadpool_limits(1):
        theirs = HistGradientBoostingClassifier(**BOTH, early_stopping=False).fit(X, y)
    same = np.isclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    assert same.mean() > 0.97


@pytest.mark.parametrize("class_weight", ["balanced", {True: 2.0}])
def test_weights_of_classes_are_those_of_scikit_learn(class_weight, rows):
    X, y = rows
    y = y > 100
    rules = {"class_weight": class_weight, **BOTH}
    ours = HistGBRTClassifier(**rules, **PLAIN).fit(X, y)
    with threadpool_limits(1):
        theirs = HistGradientBoostingClassifier(**rules, early_stopping=False).fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


# ------------------------------------------------------------------------------------------------ few rows


@pytest.mark.parametrize("n_rows", [1, 3, 19])
def test_fewer_rows_than_two_leaves_need_are_predicted_by_their_mean(n_rows):
    y = np.arange(n_rows, dtype=float)
    model = HistGBRTRegressor(min_samples_leaf=20).fit(y[:, None], y)
    assert_allclose(model.predict([[-5.0], [5.0]]), y.mean())


def test_one_row_to_a_leaf_learns_everything_by_heart():
    X = np.arange(40.0)[:, None]
    y = np.random.default_rng(0).permutation(40).astype(float)
    model = small(HistGBRTRegressor, learning_rate=1.0, max_leaf_nodes=40, max_iter=2).fit(X, y)
    assert_allclose(model.predict(X), y, atol=1e-6)


def test_constant_features_and_constant_labels_are_no_errors():
    X = np.ones((50, 2))
    assert_allclose(HistGBRTRegressor().fit(X, np.arange(50.0)).predict(X), 24.5)
    assert_allclose(
        HistGBRTRegressor().fit(np.arange(100.0).reshape(50, 2), np.full(50, 7.0)).predict(X), 7.0
    )


@pytest.mark.parametrize("max_depth", [1, 2, 3])
def test_depth_bounds_leaves_and_leaves_bound_depth(max_depth, rows):
    model = small(HistGBRTRegressor, max_depth=max_depth, max_leaf_nodes=None).fit(*rows)
    assert {np.count_nonzero(tree.nodes["left"] < 0) for tree in model.ensemble_} == {2**max_depth}
    model = small(HistGBRTRegressor, max_depth=6, max_leaf_nodes=3).fit(*rows)
    assert {np.count_nonzero(tree.nodes["left"] < 0) for tree in model.ensemble_} == {3}


@pytest.mark.parametrize("min_samples_leaf", [1, 7, 40])
def test_no_leaf_has_fewer_rows_than_it_needs(min_samples_leaf, rows):
    model = small(HistGBRTRegressor, min_samples_leaf=min_samples_leaf, max_leaf_nodes=31).fit(*rows)
    counts = [tree.nodes["count"][tree.nodes["left"] < 0].min() for tree in model.ensemble_]
    assert min(counts) >= min_samples_leaf


# ------------------------------------------------------------------------------------ missing and infinite


@pytest.mark.parametrize("values", [[np.nan, np.nan, 1.0, 1.0], [1.0, 1.0, np.nan, np.nan]])
def test_whether_a_value_is_missing_can_be_all_there_is_to_learn(values):
    X, y = np.array(values)[:, None], [0, 0, 1, 1]
    model = small(HistGBRTClassifier, max_iter=50, learning_rate=0.5).fit(X, y)
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize(("share", "kept"), [(0.1, 0.7), (0.5, 0.3)])
def test_models_survive_values_that_are_missing_at_random(share, kept, rows):
    X, y = rows
    gaps = np.where(np.random.default_rng(0).random(X.shape) < share, np.nan, X)
    whole, with_gaps = (small(HistGBRTRegressor, max_iter=60).fit(rows_, y) for rows_ in (X, gaps))
    assert with_gaps.score(gaps, y) > kept * whole.score(X, y)


def test_infinities_are_the_least_and_the_greatest_number_and_not_missing():
    X = np.array([-np.inf, 0.0, 1.0, np.inf, np.nan])[:, None].repeat(4, axis=0).reshape(-1, 1)
    y = np.repeat([10.0, 0.0, 0.0, 20.0, 30.0], 4)
    model = small(HistGBRTRegressor, learning_rate=1.0, max_leaf_nodes=8, max_iter=3).fit(X, y)
    assert_allclose(model.predict(X), y, atol=1e-5)


@pytest.mark.parametrize("cls", BOOSTED)
def test_a_value_that_is_first_missing_in_new_rows_has_an_answer(cls, rows):
    X, y = rows
    model = small(cls).fit(X, y > 0)
    assert np.isfinite(model.predict(np.full((2, 5), np.nan)).astype(float)).all()


# ------------------------------------------------------------------------------------------------- weights


def test_rows_without_weight_have_no_say():
    X = np.array([[1.0, 0], [1, 0], [1, 0], [0, 1]])
    weight = [0, 0, 1, 1]
    regressor = small(HistGBRTRegressor, learning_rate=0.5).fit(X, [0.0, 0, 1, 0], weight)
    assert regressor.predict([[1, 0]])[0] > 0.9
    classifier = small(HistGBRTClassifier, learning_rate=0.5).fit(X, [0, 0, 1, 0], weight)
    assert classifier.predict_proba([[1, 0]])[0, 1] > 0.9


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "quantile", "poisson", "gamma"])
def test_a_weight_of_two_is_a_row_twice(loss, rows):
    X, y = rows
    y = np.exp(0.01 * y)
    twice = np.arange(len(y)) % 3 == 0
    rules = {"loss": loss, "min_samples_leaf": 1} | ({"quantile": 0.7} if loss == "quantile" else {})
    by_weight = small(HistGBRTRegressor, **rules).fit(X, y, 1.0 + twice)
    by_rows = small(HistGBRTRegressor, **rules).fit(np.vstack([X, X[twice]]), np.append(y, y[twice]))
    same = np.isclose(by_weight.predict(X), by_rows.predict(X), rtol=1e-6)
    assert same.mean() > 0.97  # the middle of a leaf's labels may be another one


def test_a_constant_weight_changes_no_tree(rows):
    X, y = rows
    models = [small(HistGBRTRegressor).fit(X, y, weight) for weight in (None, np.full(len(y), 4.0))]
    assert_allclose(models[0].predict(X), models[1].predict(X), rtol=1e-9)


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.9])
def test_so_many_labels_are_below_a_quantile(quantile):
    rng = np.random.default_rng(0)
    X = rng.random((2000, 1))
    y = X[:, 0] + rng.exponential(size=2000)
    model = HistGBRTRegressor("quantile", quantile=quantile, max_iter=30, random_state=0).fit(X, y)
    assert np.mean(y <= model.predict(X)) == pytest.approx(quantile, abs=0.03)


# -------------------------------------------------------------------------------------------- early stopping


@pytest.mark.parametrize("scoring", ["loss", "accuracy", "neg_log_loss"])
def test_early_stopping_takes_classes_of_any_name(scoring):
    X, y = make_classification(300, random_state=0)
    names = np.array(["x", "y"])[y]
    rules = {"early_stopping": True, "scoring": scoring, "n_iter_no_change": 3, "max_iter": 80}
    by_number, by_name = (small(HistGBRTClassifier, **rules).fit(X, of) for of in (y, names))
    assert by_number.ensemble_ == by_name.ensemble_
    assert by_name.n_iter_ < 80
    assert len(by_name.validation_score_) == by_name.n_iter_


@pytest.mark.parametrize(
    ("scores", "n_iter_no_change", "tol", "stops_after"),
    [
        ([1, 2, 3, 4, 5, 6], 2, 0.0, None),
        ([1, 2, 2, 2, 9, 9], 2, 0.0, 4),
        ([1, 0, 0, 0, 9, 9], 3, 0.0, 4),
        ([1, 1.05, 1.1, 1.15, 9, 9], 3, 0.5, 4),
        ([1, 1.05, 1.6, 1.7, 9, 9], 3, 0.5, None),
    ],
)
def test_training_stops_when_nothing_exceeded_the_best_by_tol(scores, n_iter_no_change, tol, stops_after):
    told = iter(scores)
    model = LambdaMARTRanker(
        max_iter=6, scoring=lambda labels, s: next(told), early_stopping=True, validation_fraction=None
    ).set_params(n_iter_no_change=n_iter_no_change, tol=tol, random_state=0)
    model.fit(np.arange(60.0)[:, None], np.arange(60) % 3, qid=np.zeros(60))
    assert model.n_iter_ == (stops_after or 6)
    assert model.train_score_.tolist() == scores[: model.n_iter_]


def test_rows_that_are_held_out_are_not_binned(rows):
    """A cut between values that only held-out rows have would be one learned from them."""
    X, y = rows
    model = small(HistGBRTRegressor, early_stopping=True, validation_fraction=0.5, max_iter=5).fit(X, y)
    given = small(HistGBRTRegressor, early_stopping=False, max_iter=5).fit(
        X[:150], y[:150], X_val=X[150:] + 1e6, y_val=y[150:]
    )
    assert max(tree.nodes["cut"][tree.nodes["left"] >= 0].max() for tree in given.ensemble_) < 1e5
    assert model.n_iter_ == 5


def test_a_given_set_and_one_that_is_held_out_do_not_mix(rows):
    X, y = rows
    model = small(HistGBRTRegressor, early_stopping=True).fit(X, y, X_val=X[:50], y_val=y[:50])
    whole = small(HistGBRTRegressor, max_iter=model.best_iteration_).fit(X, y)
    assert model.ensemble_ == whole.ensemble_


@pytest.mark.parametrize("random_state", [0, np.random.RandomState(3), None])
def test_warm_starts_draw_on_from_one_seed(random_state, rows):
    X, y = rows
    rules = {"max_iter": 2, "subsample": 0.5, "warm_start": True, "random_state": random_state}
    model = small(HistGBRTRegressor, **rules).fit(X, y)
    seed = model._seed_
    before = model.ensemble_
    model.set_params(max_iter=4).fit(X, y)
    assert model._seed_ == seed
    assert model.ensemble_.first(2) == before


# ----------------------------------------------------------------------------------------------- categories


def test_a_category_split_is_worth_as_many_splits_of_one_hot_columns():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, 400)[:, None].astype(float)
    y = rng.normal(size=6)[codes[:, 0].astype(int)]
    rules = {"learning_rate": 1.0, "max_iter": 3, "max_leaf_nodes": 7}
    native = small(HistGBRTRegressor, categorical_features=[0], **rules).fit(codes, y)
    one_hot = OneHotEncoder(sparse_output=False).fit_transform(codes)
    assert_allclose(
        native.predict(codes), small(HistGBRTRegressor, **rules).fit(one_hot, y).predict(one_hot), atol=1e-6
    )
    assert_allclose(native.predict(codes), y, atol=1e-6)


def test_categories_that_training_has_not_seen_are_missing_values():
    codes = np.repeat([0.0, 1.0, np.nan], 30)[:, None]
    y = np.repeat([0.0, 1.0, 2.0], 30)
    model = small(HistGBRTRegressor, categorical_features=[0], learning_rate=1.0, max_iter=2).fit(codes, y)
    assert_array_equal(model.predict([[7.0], [np.nan]]), model.predict([[np.nan]])[[0, 0]])


def test_the_order_of_categories_in_a_dtype_changes_no_prediction():
    rng = np.random.default_rng(0)
    words = rng.choice(["a", "b", "c", "d"], 200)
    y = (words == "b") + 2.0 * (words == "d")
    frames = [
        pd.DataFrame({"x": pd.Categorical(words, categories=levels)})
        for levels in (list("abcd"), list("dbca"))
    ]
    models = [small(HistGBRTRegressor).fit(frame, y) for frame in frames]
    for model in models:
        for frame in frames:
            assert_allclose(model.predict(frame), models[0].predict(frames[0]), atol=1e-9)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean"])
def test_nullable_columns_of_pandas_are_numbers_with_gaps(dtype):
    values = np.tile([0.0, 1.0, np.nan, 1.0], 30)
    frame = pd.DataFrame({"x": pd.Series(values).astype(dtype)})
    y = np.where(np.isnan(values), 2.0, values)
    model = small(HistGBRTRegressor).fit(frame, y)
    assert_array_equal(
        model.predict(frame), small(HistGBRTRegressor).fit(values[:, None], y).predict(values[:, None])
    )


# -------------------------------------------------------------------------------------------- kinds of arrays


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float16, bool])
def test_predictions_do_not_depend_on_the_type_of_a_number(dtype):
    X = (np.arange(200).reshape(100, 2) % 2).astype(dtype)
    X[::3, 0] = 1
    y = X[:, 0].astype(float) + np.arange(100) % 2
    model = small(HistGBRTRegressor).fit(X.astype(float), y)
    assert_array_equal(model.predict(X), model.predict(X.astype(float)))
    assert small(HistGBRTRegressor).fit(X, y).ensemble_ == model.ensemble_


def test_rows_that_cannot_be_written_to_are_read(tmp_path, rows):
    X, y = rows
    joblib.dump((X, y), tmp_path / "rows")
    mapped_X, mapped_y = joblib.load(tmp_path / "rows", mmap_mode="r")
    assert (
        small(HistGBRTRegressor).fit(mapped_X, mapped_y).ensemble_
        == small(HistGBRTRegressor).fit(X, y).ensemble_
    )


def test_features_that_may_not_interact_add_up(rows):
    X, y = rows
    model = small(HistGBRTRegressor, interaction_cst=[{0}, {1}, {2}, {3}, {4}]).fit(X, y)
    at = {(a, b): model.predict([[a, b, 0, 0, 0]])[0] for a in (-1.0, 1.0) for b in (-1.0, 1.0)}
    assert at[1, 1] - at[-1, 1] == pytest.approx(at[1, -1] - at[-1, -1])


@pytest.mark.parametrize(("sign", "name"), [(1, "increases"), (-1, "decreases")])
def test_constraints_may_be_given_by_name(sign, name):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((300, 2)), columns=[name, "free"])
    y = rng.normal(size=300) + frame["free"]
    model = small(HistGBRTRegressor, monotonic_cst={name: sign}).fit(frame, y)
    grid = pd.DataFrame({name: np.linspace(0, 1, 50), "free": 0.5})
    assert (sign * np.diff(model.predict(grid)) >= 0).all()


# -------------------------------------------------------------------------------------------------- one class


def test_rows_of_one_class_are_refused_by_a_name_that_scikit_learn_looks_for():
    with pytest.raises(ValueError, match="one class"):
        HistGBRTClassifier().fit(np.arange(20.0)[:, None], np.ones(20))


def test_cross_validation_goes_on_where_a_fold_has_one_class_only():
    """A fold to learn from that has one is a failed fit, which scikit-learn tells; one to test on is not."""
    X, y = np.arange(60.0)[:, None], (np.arange(60) >= 40).astype(int)
    folds = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
    with pytest.warns(FitFailedWarning, match=r"(?s)1 fits failed.*y holds one class"):
        scores = cross_val_score(HistGBRTClassifier(min_samples_leaf=2), X, y, cv=folds)
    assert np.isnan(scores).tolist() == [True, False]
    assert scores[1] == 1.0


@pytest.mark.filterwarnings("ignore:.*not defined")
def test_folds_of_one_grade_fit_and_have_no_ndcg():
    X, qid = np.arange(60.0)[:, None], np.arange(60) // 10
    model = LambdaMARTRanker(max_iter=3, min_samples_leaf=2).fit(X, np.zeros(60), qid=qid)
    assert len(set(model.predict(X))) == 1
    assert np.isnan(model.score(X, np.zeros(60), qid=qid))


def test_custom_losses_may_be_those_that_exist(rows):
    X, y = rows
    y = (y > 0).astype(float)

    def cross_entropy(labels, scores, offsets):
        p = expit(scores)
        return p - labels, p * (1 - p)

    own = small(HistGBRTRegressor, loss=cross_entropy, init=0.0).fit(X, y)
    known = small(HistGBRTRegressor, loss="logistic", init=0.0).fit(X, y)
    assert log_loss(y, expit(own.predict(X))) == pytest.approx(log_loss(y, known.predict(X)), rel=1e-3)
