"""scikit-learn's tools around the estimators: the right score, or an error that says what to do.

Without metadata routing, the query ids are in the index of y. With it, they are passed as groups= or qid=.
Tools that turn y into an array lose the index. In that case a warning or an error must say so.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.inspection import PartialDependenceDisplay, partial_dependence, permutation_importance
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ranktrees import (
    HistGBRTRegressor,
    LambdaMARTRanker,
    MissingQueryWarning,
    QueryKFold,
    RandomForestRanker,
    as_measure,
    query_scorer,
)
from reference.scoring import nameless

SMALL = {"max_leaf_nodes": 4, "random_state": 0, "n_jobs": 1}
MODELS = [
    LambdaMARTRanker(max_iter=4, max_features=1.0, **SMALL),
    HistGBRTRegressor(measure="ndcg@10", max_iter=4, max_features=1.0, gradient_sampling=None, **SMALL),
    RandomForestRanker(4, **SMALL),
]

each = pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
both_ways = pytest.mark.parametrize("routing", [False, True], ids=["routing off", "routing on"])


@pytest.fixture(scope="module", name="X")
def rows():
    return pd.DataFrame(np.random.default_rng(0).normal(size=(240, 4)), columns=list("abcd"))


@pytest.fixture(scope="module")
def qid():
    """24 queries of ten rows, their rows apart from each other."""
    return np.random.default_rng(1).permutation(np.repeat([f"query {i}" for i in range(24)], 10))


@pytest.fixture(scope="module")
def y(X):
    noise = np.random.default_rng(2).normal(0, 0.5, 240)
    return np.clip(np.round(X["a"].to_numpy() + 0.5 * X["b"].to_numpy() + noise + 1), 0, 4)


def with_ids(y, qid):
    return pd.Series(y, index=pd.Index(qid, name="qid"))


def routed(routing):
    """Turn scikit-learn's metadata routing on or off for a while."""
    return sklearn.config_context(enable_metadata_routing=routing)


def given(routing, y, qid, name="groups"):
    """(y, metadata) as a user of either way passes them."""
    return (y, {name: qid}) if routing else (with_ids(y, qid), {})


def fold_scores(model, X, y, qid, measure="ndcg@10", cv=None, columns=slice(None)):
    """What cross-validation must say, by hand."""
    scores = []
    X = X.iloc[:, columns]
    for train, test in (cv or QueryKFold(3)).split(X, y, groups=qid):
        fitted = clone(model).fit(X.iloc[train], y[train], qid=qid[train])
        scores.append(as_measure(measure)(y[test], fitted.predict(X.iloc[test]), qid=qid[test]))
    return np.array(scores)


# -------------------------------------------------------------------------------------- searches and scores


@each
@both_ways
def test_cross_val_score(model, routing, X, y, qid):
    with routed(routing):
        y_given, ids = given(routing, y, qid)
        ids = {"params": ids} if routing else {}
        own = cross_val_score(model, X, y_given, cv=QueryKFold(3), **ids)
        scorer = cross_val_score(model, X, y_given, cv=QueryKFold(3), scoring=query_scorer("map"), **ids)
    np.testing.assert_allclose(own, fold_scores(model, X, y, qid))
    np.testing.assert_allclose(scorer, fold_scores(model, X, y, qid, "map"))


@each
@both_ways
def test_cross_validate_with_several_measures(model, routing, X, y, qid):
    scoring = {"ndcg": query_scorer("ndcg@3"), "map": query_scorer("map"), "rmse": query_scorer("rmse")}
    with routed(routing):
        y_given, ids = given(routing, y, qid)
        ids = {"params": ids} if routing else {}
        scores = cross_validate(model, X, y_given, cv=QueryKFold(3), scoring=scoring, **ids)
    for name, measure, sign in (("ndcg", "ndcg@3", 1), ("map", "map", 1), ("rmse", "rmse", -1)):
        expected = sign * fold_scores(model, X, y, qid, measure)
        np.testing.assert_allclose(scores[f"test_{name}"], expected)


@each
@both_ways
@pytest.mark.parametrize("splitter", [QueryKFold, GroupKFold])
def test_grid_search(model, routing, splitter, X, y, qid):
    grid = {"max_leaf_nodes": [2, 4]}
    cv = splitter(3)
    with routed(routing):
        y_given, ids = given(routing, y, qid)
        if not routing and splitter is GroupKFold:
            ids = {"groups": qid}  # a splitter of scikit-learn's sees no index
        search = GridSearchCV(model, grid, cv=cv).fit(X, y_given, **ids)
        final = search.score(X, y_given, **({"groups": qid} if routing else {}))
    for k, leaves in enumerate(grid["max_leaf_nodes"]):
        candidate = clone(model).set_params(max_leaf_nodes=leaves)
        expected = fold_scores(candidate, X, y, qid, cv=cv).mean()
        assert search.cv_results_["mean_test_score"][k] == pytest.approx(expected)
    best = clone(model).set_params(**search.best_params_).fit(X, y, qid=qid)
    assert search.best_estimator_.ensemble_.digest() == best.ensemble_.digest()
    assert final == pytest.approx(best.score(X, y, qid=qid))


@each
def test_grid_search_takes_qid_as_well(model, X, y, qid):
    with routed(True):
        search = GridSearchCV(model, {"max_leaf_nodes": [4]}, cv=QueryKFold(3)).fit(X, y, qid=qid)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"], fold_scores(model, X, y, qid).mean())


@both_ways
def test_grid_search_in_processes(routing, X, y, qid):
    with routed(routing):
        y_given, ids = given(routing, y, qid)
        search = GridSearchCV(MODELS[0], {"max_leaf_nodes": [2, 4]}, cv=QueryKFold(3), n_jobs=2)
        search.fit(X, y_given, **ids)
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(fold_scores(MODELS[0], X, y, qid).mean())


@each
@both_ways
def test_randomized_search(model, routing, X, y, qid):
    with routed(routing):
        y_given, ids = given(routing, y, qid)
        search = RandomizedSearchCV(
            model, {"max_leaf_nodes": [2, 3, 4]}, n_iter=2, cv=QueryKFold(3), random_state=0
        ).fit(X, y_given, **ids)
    best = clone(model).set_params(**search.best_params_)
    assert search.best_score_ == pytest.approx(fold_scores(best, X, y, qid).mean())


@each
@both_ways
def test_halving_search_over_trees(model, routing, X, y, qid):
    resource = "n_estimators" if isinstance(model, RandomForestRanker) else "max_iter"
    with routed(routing):
        y_given, ids = given(routing, y, qid)
        search = HalvingGridSearchCV(
            model,
            {"max_leaf_nodes": [2, 3, 4]},
            resource=resource,
            min_resources=2,
            max_resources=6,
            cv=QueryKFold(3),
            random_state=0,
        ).fit(X, y_given, **ids)
    best = clone(model).set_params(**search.best_params_)
    assert search.best_score_ == pytest.approx(fold_scores(best, X, y, qid).mean())


@each
@both_ways
def test_halving_search_over_rows(model, routing, X, y, qid):
    """It draws rows, not queries: queries are cut down, but never mixed up; the last round has them all."""
    with routed(routing):
        y_given, ids = given(routing, y, qid)
        search = HalvingGridSearchCV(
            model, {"max_leaf_nodes": [2, 4]}, min_resources=120, factor=2, cv=QueryKFold(3), random_state=0
        ).fit(X, y_given, **ids)
    best = clone(model).set_params(**search.best_params_).fit(X, y, qid=qid)
    assert search.best_estimator_.ensemble_.digest() == best.ensemble_.digest()
    assert search.n_resources_ == [120, 240]


@each
@both_ways
def test_cross_val_predict(model, routing, X, y, qid):
    with routed(routing):
        y_given, ids = given(routing, y, qid)
        ids = {"params": ids} if routing else {}
        scores = cross_val_predict(model, X, y_given, cv=QueryKFold(3), **ids)
    for train, test in QueryKFold(3).split(X, y, groups=qid):
        fitted = clone(model).fit(X.iloc[train], y[train], qid=qid[train])
        np.testing.assert_array_equal(scores[test], fitted.predict(X.iloc[test]))


@each
@both_ways
def test_learning_curve(model, routing, X, y, qid):
    with routed(routing):
        y_given, ids = given(routing, y, qid)
        ids = {"params": ids} if routing else {}
        sizes, _, scores = learning_curve(model, X, y_given, cv=QueryKFold(3), train_sizes=[0.5, 1.0], **ids)
    np.testing.assert_allclose(scores[-1], fold_scores(model, X, y, qid))
    train, test = next(QueryKFold(3).split(X, y, groups=qid))
    train = train[: sizes[0]]
    fitted = clone(model).fit(X.iloc[train], y[train], qid=qid[train])
    assert scores[0, 0] == pytest.approx(fitted.score(X.iloc[test], y[test], qid=qid[test]))


@each
@both_ways
def test_validation_curve(model, routing, X, y, qid):
    with routed(routing):
        y_given, ids = given(routing, y, qid)
        ids = {"params": ids} if routing else {}
        _, scores = validation_curve(
            model,
            X,
            y_given,
            param_name="max_leaf_nodes",
            param_range=[2, 4],
            cv=QueryKFold(3),
            **ids,
        )
    np.testing.assert_allclose(scores[1], fold_scores(model, X, y, qid))


@each
@both_ways
def test_sample_weight_in_a_search(model, routing, X, y, qid):
    weight = np.random.default_rng(0).random(len(y))
    with routed(routing):
        if routing:
            model = clone(model).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        y_given, ids = given(routing, y, qid)
        search = GridSearchCV(model, {"max_leaf_nodes": [4]}, cv=QueryKFold(3), refit=False)
        search.fit(X, y_given, sample_weight=weight, **ids)
    scores = []
    for train, test in QueryKFold(3).split(X, y, groups=qid):
        fitted = clone(model).fit(X.iloc[train], y[train], weight[train], qid=qid[train])
        scores.append(fitted.score(X.iloc[test], y[test], weight[test], qid=qid[test]))
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(scores))


# ---------------------------------------------------------------------------------------- around and behind


@each
@both_ways
def test_pipeline_in_a_search(model, routing, X, y, qid):
    step = type(model).__name__.lower()
    pipeline = make_pipeline(make_column_transformer((StandardScaler(), list("abcd"))), model)
    with routed(routing):
        y_given, ids = given(routing, y, qid)
        search = GridSearchCV(pipeline, {f"{step}__max_leaf_nodes": [4]}, cv=QueryKFold(3))
        search.fit(X, y_given, **ids)
    scores = []
    for train, test in QueryKFold(3).split(X, y, groups=qid):
        fitted = clone(pipeline).fit(X.iloc[train], y[train], **{f"{step}__qid": qid[train]})
        scores.append(fitted[-1].score(fitted[:-1].transform(X.iloc[test]), y[test], qid=qid[test]))
    assert search.cv_results_["mean_test_score"][0] == pytest.approx(np.mean(scores))


@each
def test_permutation_importance(model, X, y, qid):
    fitted = clone(model).fit(X, y, qid=qid)
    for scoring in (None, query_scorer("ndcg@10")):
        found = permutation_importance(
            fitted, X, with_ids(y, qid), scoring=scoring, n_repeats=2, random_state=0
        )
        assert found.importances_mean.argmax() == 0
        assert found.importances_mean[3] < 0.1 * found.importances_mean[0]
        with pytest.raises(ValueError, match=r"qid"):
            permutation_importance(fitted, X, y, scoring=scoring, n_repeats=2)


@each
def test_partial_dependence(model, X, y, qid):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    fitted = clone(model).fit(X, y, qid=qid)
    found = partial_dependence(fitted, X, ["a"], grid_resolution=5)
    grid = found["grid_values"][0]
    by_hand = [fitted.predict(X.assign(a=value)).mean() for value in grid]
    np.testing.assert_allclose(found["average"][0], by_hand)
    pyplot.switch_backend("agg")
    PartialDependenceDisplay.from_estimator(fitted, X, ["a", ("a", "b")], grid_resolution=4)
    pyplot.close("all")


# --------------------------------------------------------------------------------- tools that pick features


@each
def test_rfe(model, X, y, qid):
    with routed(True):
        chosen = RFE(model, n_features_to_select=2).fit(X, y, qid=qid)
    assert chosen.get_feature_names_out().tolist() == ["a", "b"]
    expected = nameless(clone(model).fit(X.iloc[:, :2], y, qid=qid).ensemble_)  # RFE passes arrays
    assert chosen.estimator_.ensemble_ == expected
    plain = RFE(model, n_features_to_select=2).fit(X, y, qid=qid)  # fit parameters go through without routing
    assert plain.estimator_.ensemble_ == expected


@each
def test_rfe_loses_the_index(model, X, y, qid):
    with pytest.warns(MissingQueryWarning, match="Pass qid="):
        RFE(model, n_features_to_select=3).fit(X, with_ids(y, qid))


@each
def test_rfecv(model, X, y, qid):
    """Its own default is R² whatever the estimator's score is: it wants a scorer."""
    with routed(True):
        selector = RFECV(model, cv=QueryKFold(3), scoring=query_scorer(), min_features_to_select=3)
        chosen = selector.fit(X, y, groups=qid)
    assert chosen.cv_results_["mean_test_score"][-1] == pytest.approx(fold_scores(model, X, y, qid).mean())


@each
def test_rfecv_without_routing_says_what_to_do(model, X, y, qid):
    with pytest.raises((ValueError, TypeError), match=r"qid|query|metadata_routing"):
        RFECV(model, cv=QueryKFold(3)).fit(X, with_ids(y, qid))
    with pytest.warns(MissingQueryWarning, match="Pass qid="):
        RFECV(model, cv=GroupKFold(3), min_features_to_select=3).fit(X, with_ids(y, qid), groups=qid)


@each
@both_ways
def test_sequential_feature_selector(model, routing, X, y, qid):
    with routed(routing):
        y_given, ids = given(routing, y, qid)
        chosen = SequentialFeatureSelector(model, n_features_to_select=1, cv=QueryKFold(3)).fit(
            X, y_given, **ids
        )
    by_hand = [fold_scores(model, X, y, qid, columns=[j]).mean() for j in range(4)]
    assert chosen.get_support().argmax() == np.argmax(by_hand)


@each
@both_ways
def test_select_from_model(model, routing, X, y, qid):
    with routed(routing):
        y_given, ids = given(routing, y, qid)
        chosen = SelectFromModel(model, max_features=2, threshold=-np.inf).fit(X, y_given, **ids)
    expected = clone(model).fit(X, y, qid=qid)
    assert chosen.estimator_.ensemble_.digest() == expected.ensemble_.digest()
    assert chosen.get_feature_names_out().tolist() == ["a", "b"]


# --------------------------------------------------------------------------------------- tools that combine


@each
def test_voting(model, X, y, qid):
    with routed(True):
        voting = VotingRegressor([("one", model), ("two", clone(model).set_params(max_leaf_nodes=2))])
        voting.fit(X, y, qid=qid)
    for fitted in voting.estimators_:
        expected = clone(fitted).fit(X, y, qid=qid)
        assert fitted.ensemble_.digest() == expected.ensemble_.digest()


@each
def test_bagging(model, X, y, qid):
    with routed(True):
        bagged = BaggingRegressor(model, 2, random_state=0).fit(X, y, qid=qid)
    X = X.to_numpy()
    for fitted, drawn in zip(bagged.estimators_, bagged.estimators_samples_, strict=True):
        expected = clone(fitted).fit(X[drawn], y[drawn], qid=qid[drawn])
        np.testing.assert_allclose(fitted.predict(X), expected.predict(X))


@each
def test_stacking(model, X, y, qid):
    with routed(True):
        stacked = StackingRegressor([("one", model)], clone(model), cv=QueryKFold(3)).fit(X, y, qid=qid)
    expected = clone(model).fit(X, y, qid=qid)
    assert stacked.estimators_[0].ensemble_.digest() == expected.ensemble_.digest()
    out_of_fold = np.empty((len(y), 1))
    for train, test in QueryKFold(3).split(X, y, groups=qid):
        fitted = clone(model).fit(X.iloc[train], y[train], qid=qid[train])
        out_of_fold[test, 0] = fitted.predict(X.iloc[test])
    expected = clone(model).fit(out_of_fold, y, qid=qid)
    assert stacked.final_estimator_.ensemble_.digest() == expected.ensemble_.digest()


@each
def test_stacking_under_a_ridge_says_what_is_wrong(model, X, y, qid):
    with routed(True), pytest.raises(TypeError, match="qid"):
        StackingRegressor([("one", model)], Ridge(), cv=QueryKFold(3)).fit(X, y, qid=qid)


TOOLS_THAT_CONVERT_Y = {
    "VotingRegressor": lambda model: VotingRegressor([("one", model)]),
    "StackingRegressor": lambda model: StackingRegressor([("one", model)], Ridge(), cv=2),
    "BaggingRegressor": lambda model: BaggingRegressor(model, 2),
    "TransformedTargetRegressor": lambda model: TransformedTargetRegressor(
        model, func=np.sqrt, inverse_func=np.square
    ),
}


@each
@both_ways
@pytest.mark.parametrize("tool", TOOLS_THAT_CONVERT_Y)
def test_a_lost_index_is_never_passed_over_in_silence(tool, routing, model, X, y, qid):
    with routed(routing), pytest.warns(MissingQueryWarning, match="Pass qid="):
        TOOLS_THAT_CONVERT_Y[tool](model).fit(X, with_ids(y, qid))


@pytest.mark.parametrize("tool", TOOLS_THAT_CONVERT_Y)
def test_without_routing_ids_are_refused_by_tools_that_cannot_pass_them(tool, X, y, qid):
    if tool == "TransformedTargetRegressor":
        fitted = TOOLS_THAT_CONVERT_Y[tool](MODELS[0]).fit(X, y, qid=qid)
        expected = clone(MODELS[0]).fit(X, np.sqrt(y), qid=qid)
        np.testing.assert_allclose(fitted.predict(X), expected.predict(X) ** 2)
        return
    with pytest.raises((ValueError, TypeError), match=r"qid|metadata_routing"):
        TOOLS_THAT_CONVERT_Y[tool](MODELS[0]).fit(X, y, qid=qid)


@each
def test_transformed_target(model, X, y, qid):
    with routed(True):
        tool = TransformedTargetRegressor(model, func=np.sqrt, inverse_func=np.square)
        fitted = tool.fit(X, y, qid=qid)
    expected = clone(model).fit(X, np.sqrt(y), qid=qid)
    np.testing.assert_allclose(fitted.predict(X), expected.predict(X) ** 2)


# --------------------------------------------------------------------------------------------- never silent


@each
@both_ways
def test_plain_arrays_without_ids_never_get_a_score(model, routing, X, y):
    with routed(routing), pytest.raises(ValueError, match="query ids"):
        cross_val_score(model, X, y, cv=QueryKFold(3))
    with (
        routed(routing),
        pytest.raises(ValueError, match="query ids"),
        pytest.warns(MissingQueryWarning, match="Pass qid="),
    ):
        cross_val_score(model, X, y, cv=3, scoring=query_scorer(), error_score="raise")


@each
@both_ways
def test_plain_arrays_without_ids_and_without_a_scorer_warn(model, routing, X, y):
    with routed(routing), pytest.warns(MissingQueryWarning, match="Pass qid="):
        cross_val_score(model, X, y, cv=3)


@each
def test_params_without_routing(model, X, y, qid):
    """scikit-learn hands qid to fit but not to score; score then refuses to guess."""
    with pytest.raises(ValueError, match="score needs qid"):
        GridSearchCV(model, {"max_leaf_nodes": [4]}, cv=GroupKFold(3), error_score="raise").fit(
            X, y, groups=qid, qid=qid
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = GridSearchCV(model, {"max_leaf_nodes": [4]}, cv=GroupKFold(3)).fit(X, y, groups=qid, qid=qid)
    assert np.isnan(search.cv_results_["mean_test_score"]).all()
