"""Treatments of missing values in the survey of Mohan: recipes of imputers around the estimators."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import make_pipeline, make_union

from ranktrees import HistGBRTRegressor, LambdaMARTRanker, RandomForestRanker
from ranktrees.validation import SKLEARN_VERSION

SMALL = {"random_state": 0, "n_jobs": 1}
RANKER = LambdaMARTRanker(max_iter=8, max_leaf_nodes=8, min_samples_leaf=5, **SMALL)
REGRESSOR = HistGBRTRegressor(max_iter=15, learning_rate=0.2, max_leaf_nodes=8, **SMALL)


@pytest.fixture(scope="module")
def whole():
    """Rows whose columns tell each other's values."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(600, 2)) @ rng.normal(size=(2, 6)) + rng.normal(0, 0.2, (600, 6))


@pytest.fixture(scope="module")
def rows(whole):
    """X, of which a fifth of four columns is missing; y, qid."""
    rng = np.random.default_rng(1)
    X = np.where((rng.random(whole.shape) < 0.2) & (np.arange(6) < 4), np.nan, whole)
    y = np.clip(np.round(whole[:, 0] + 1), 0, 3)
    return X, y, rng.permutation(np.repeat(np.arange(30), 20))


def predicted_until_convergence(X, regressor, tol):
    """Algorithm 2 of the survey, as it stands there: (X without gaps, rounds)."""
    missing = np.isnan(X)
    filled = np.where(missing, np.nanmean(X, axis=0), X)
    columns = [j for j in np.argsort(missing.sum(axis=0), kind="stable") if missing[:, j].any()]
    n_rounds, change = 0, np.inf
    while change >= tol * np.abs(X[~missing]).max():
        before = filled.copy()
        for j in columns:
            others, gaps = np.delete(filled, j, axis=1), missing[:, j]
            model = clone(regressor).fit(others[~gaps], X[~gaps, j])
            filled[gaps, j] = model.predict(others[gaps])
        change = np.abs(filled - before).sum(axis=1).max()
        n_rounds += 1
    return filled, n_rounds


def test_iterative_imputer_is_the_algorithm_of_the_survey(rows):
    X, _, _ = rows
    expected, n_rounds = predicted_until_convergence(X, REGRESSOR, tol=0.1)
    imputer = IterativeImputer(REGRESSOR, tol=0.1, max_iter=30, skip_complete=True)
    np.testing.assert_array_equal(imputer.fit_transform(X), expected)
    assert imputer.n_iter_ == n_rounds
    assert 1 < n_rounds < 30
    known = ~np.isnan(X)
    np.testing.assert_array_equal(expected[known], X[known])


def test_what_is_predicted_is_nearer_than_the_mean(rows, whole):
    X, _, _ = rows
    error = [
        np.abs(imputer.fit_transform(X) - whole)[np.isnan(X)].mean()
        for imputer in (SimpleImputer(), IterativeImputer(REGRESSOR, tol=0.1, max_iter=30))
    ]
    assert error[1] < 0.6 * error[0]


RECIPES = {
    "mean": SimpleImputer(),
    "median": SimpleImputer(strategy="median"),
    "constant": SimpleImputer(strategy="constant", fill_value=0.0),
    "left": SimpleImputer(strategy="constant", fill_value=-np.inf),
    "right": SimpleImputer(strategy="constant", fill_value=np.inf),
    "mean, and whether": SimpleImputer(add_indicator=True),
    "as it is, and whether": make_union("passthrough", MissingIndicator()),
    "predicted": IterativeImputer(REGRESSOR, tol=0.5),
}


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("ranker", [RANKER, RandomForestRanker(5, **SMALL)], ids=["boosted", "forest"])
def test_ids_come_through_every_recipe(rows, recipe, ranker):
    X, y, qid = rows
    step = type(ranker).__name__.lower()
    pipeline = make_pipeline(RECIPES[recipe], ranker)
    by_name = clone(pipeline).fit(X, y, **{f"{step}__qid": qid})
    riding = clone(pipeline).fit(X, pd.Series(y, index=pd.Index(qid, name="qid")))
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(pipeline)
        if recipe == "predicted":
            routed[0].estimator.set_fit_request(qid=False, groups=False)
        routed.fit(X, y, qid=qid)
        score = routed.score(X, y, qid=qid)
    filled = by_name[0].transform(X)
    expected = clone(ranker).fit(filled, y, qid=qid)
    assert score == expected.score(filled, y, qid=qid)
    for fitted in (by_name, riding, routed):
        assert fitted[-1].ensemble_.digest() == expected.ensemble_.digest()


@pytest.mark.skipif(SKLEARN_VERSION < (1, 9), reason="older imputers may not be handed any ids")
def test_with_routing_the_imputers_model_must_not_ask_for_ids(rows):
    """IterativeImputer hands on what it is given for all rows to models that are fitted to some of them."""
    X, y, qid = rows
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(IterativeImputer(REGRESSOR, tol=0.5), RANKER)
        with pytest.raises(ValueError, match="qid has length 600; expected one query id per row"):
            pipeline.fit(X, y, qid=qid)


@pytest.mark.parametrize("side", [-np.inf, np.inf])
def test_infinity_is_a_fixed_side(rows, side):
    X, y, qid = rows
    pipeline = make_pipeline(SimpleImputer(strategy="constant", fill_value=side), RANKER)
    ensemble = pipeline.fit(X, y, lambdamartranker__qid=qid)[-1].ensemble_
    missing = np.where(np.isnan(X), side, X)
    for k in range(len(ensemble)):
        nodes = ensemble[k].nodes
        inner = nodes["feature"] >= 0
        for node in nodes[inner]:
            goes_left = missing[:, node["feature"]] <= node["cut"]
            assert (goes_left[np.isnan(X[:, node["feature"]])] == (side < 0)).all()


def test_whether_there_is_a_value_is_a_split_of_its_own():
    """Where only that matters, a stump of the default asks it, as the indicator would."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 1))
    X[rng.random(400) < 0.3] = np.nan
    y = np.isnan(X[:, 0]).astype(float)
    stump = HistGBRTRegressor(max_iter=1, max_leaf_nodes=2, learning_rate=1.0, gradient_levels=None, **SMALL)
    np.testing.assert_allclose(stump.fit(X, y).predict(X), y, atol=1e-9)
