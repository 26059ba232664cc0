"""CatBoost's JSON, with CatBoost as the judge."""

import json

import catboost
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from ranktrees import EnsembleRanker, HistGBRTRegressor, load_catboost, make_ranking
from ranktrees.formats.catboost import _ensemble_of

X, Y, QID = make_ranking(40, rows_per_query=20, n_features=6, random_state=0, return_X_y_qid=True)
X[::7, 2] = np.nan
QUIET = {"iterations": 10, "depth": 4, "verbose": False, "allow_writing_files": False, "thread_count": 1}


def assert_same(ensemble, model, X):
    theirs = model.predict(X, prediction_type="RawFormulaVal")
    np.testing.assert_allclose(ensemble.predict(X), theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"nan_mode": "Max"},
        {"grow_policy": "Lossguide", "max_leaves": 9},
        {"grow_policy": "Depthwise", "nan_mode": "Max"},
        {"loss_function": "Poisson"},
        {"iterations": 1, "depth": 1},
        {"loss_function": "Quantile:alpha=0.7"},
    ],
)
def test_models_of_catboost_score_as_it_does(params, tmp_path):
    model = catboost.CatBoost({"loss_function": "RMSE"} | QUIET | params).fit(X, Y)
    model.save_model(str(tmp_path / "model.json"), format="json")
    for each in (model, tmp_path / "model.json", str(tmp_path / "model.json")):
        assert_same(load_catboost(each), model, X)


def test_a_ranker_and_a_classifier_of_catboost():
    ranker = catboost.CatBoostRanker(**QUIET).fit(X, Y, group_id=QID)
    imported = EnsembleRanker(load_catboost(ranker))
    np.testing.assert_allclose(imported.predict(X), ranker.predict(X), rtol=1e-12, atol=1e-12)
    classifier = catboost.CatBoostClassifier(**QUIET).fit(X, Y > 1)
    assert_same(load_catboost(classifier), classifier, X)


def test_the_link_of_the_loss_is_read(tmp_path):
    for loss in ("RMSE", "Poisson", "Tweedie:variance_power=1.5", "Quantile"):
        model = catboost.CatBoostRegressor(loss_function=loss, **QUIET).fit(X, Y)
        predicted = EnsembleRanker(load_catboost(model)).predict(X)
        np.testing.assert_allclose(predicted, model.predict(X), rtol=1e-12)
    twice = catboost.sum_models([model, model])
    assert load_catboost(twice).link is None
    for loss in ("Logloss", "CrossEntropy", "Focal:focal_alpha=0.5;focal_gamma=1"):
        model = catboost.CatBoostClassifier(loss_function=loss, **QUIET).fit(X, Y > 1)
        predicted = EnsembleRanker(load_catboost(model)).predict(X)
        np.testing.assert_allclose(predicted, model.predict_proba(X)[:, 1], rtol=1e-12)
    assert load_catboost(catboost.sum_models([model, model])).link == "logistic"
    model.save_model(str(tmp_path / "model.json"), format="json")
    written = json.loads((tmp_path / "model.json").read_text())
    del written["model_info"]
    (tmp_path / "model.json").write_text(json.dumps(written))
    assert load_catboost(tmp_path / "model.json").link is None


def test_importances_need_gains():
    ranker = EnsembleRanker(load_catboost(catboost.CatBoostRegressor(**QUIET).fit(X, Y)))
    message = (
        r"all splits of some trees have a gain of 0; .* CatBoost's .*: "
        r"use feature_importances\('split'\), which counts"
    )
    with pytest.raises(ValueError, match=message):
        ranker.feature_importances()
    with pytest.raises(AttributeError, match=message):
        _ = ranker.feature_importances_
    assert ranker.feature_importances("split").sum() == pytest.approx(1)
    assert "CatBoost" not in ranker._repr_html_()  # which asks for all attributes
    assert not EnsembleRanker(
        load_catboost(catboost.CatBoostRegressor(**QUIET).fit(X, Y)).first(0)
    ).feature_importances_.any()


def test_scale_and_bias_are_those_of_the_sum():
    model = catboost.CatBoostRegressor(**QUIET).fit(X, Y)
    model.set_scale_and_bias(-0.5, 3.0)
    assert_same(load_catboost(model), model, X)


def test_values_between_two_float32_reach_the_same_leaves():
    model = catboost.CatBoostRegressor(**QUIET).fit(X[:, :2], Y)
    ensemble = load_catboost(model)
    cuts = ensemble.nodes["cut"][ensemble.nodes["feature"] >= 0]
    near = np.concatenate([cuts, np.nextafter(cuts, 99), np.nextafter(cuts, -99), cuts.astype(np.float32)])
    rows = np.random.default_rng(0).choice(near, (400, 2))
    assert_same(ensemble, model, rows)


@pytest.mark.parametrize("nan_mode", ["Min", "Max"])
def test_huge_values_go_where_infinity_goes(nan_mode):
    """CatBoost rounds them to it; where NaN is above all borders, a border is the largest float32."""
    rows, labels = np.repeat([[1.0], [np.nan]], 50, axis=0), np.repeat([0.0, 1.0], 50)
    model = catboost.CatBoostRegressor(**QUIET | {"nan_mode": nan_mode}).fit(rows, labels)
    largest, end = float(np.finfo(np.float32).max), 3.4028235677973366e38  # which is rounded to infinity
    hard = np.array([1.0, largest, np.nextafter(end, 0), end, 1e39, np.inf, np.nan])
    assert_same(load_catboost(model), model, np.concatenate([hard, -hard])[:, None])


def test_names_and_constant_columns_come_along():
    rows = pd.DataFrame({"one": np.ones(len(X)), "clicks": X[:, 0], "age of page": X[:, 1], "none": 0.0})
    model = catboost.CatBoostRegressor(**QUIET).fit(rows, Y)
    ensemble = load_catboost(model)
    assert ensemble.feature_names == tuple(rows.columns)
    assert_same(ensemble, model, rows)
    assert load_catboost(catboost.CatBoostRegressor(**QUIET).fit(X, Y)).feature_names is None


def test_the_binary_format_is_named(tmp_path):
    catboost.CatBoostRegressor(**QUIET).fit(X, Y).save_model(str(tmp_path / "model.cbm"))
    with pytest.raises(
        ValueError,
        match=r"model.cbm: .* in its binary format, expected JSON: .*, and pass it as it is or .*=.json.\)",
    ):
        load_catboost(tmp_path / "model.cbm")


def test_models_that_are_no_such_sum_are_refused(tmp_path):
    several = catboost.CatBoostClassifier(**QUIET, loss_function="MultiClass").fit(X, Y.clip(0, 2))
    with pytest.raises(ValueError, match="a model of several classes or targets"):
        load_catboost(several)
    rows = pd.DataFrame({"site": np.where(X[:, 0] > 0, "uk", "fr"), "clicks": X[:, 1]})
    categorical = catboost.CatBoostRegressor(**QUIET, cat_features=["site"]).fit(rows, X[:, 0] > 0)
    with pytest.raises(
        ValueError, match=r"tree \d: a split of the type 'OneHotFeature', expected splits of numbers"
    ):
        load_catboost(categorical)
    with pytest.raises(TypeError, match="model is a Ridge; expected the path of a model in JSON"):
        load_catboost(Ridge())
    HistGBRTRegressor(max_iter=2).fit(X, Y).save(tmp_path / "model.rkt")
    with pytest.raises(
        ValueError, match=r"model\.rkt: not a model of CatBoost in JSON; it is a model of rank"
    ):
        load_catboost(tmp_path / "model.rkt")
    trees = '{"scale_and_bias": [1, [0]], "features_info": {"float_features": []}, "trees": %s}'
    for text in ("[]", trees % "null", trees % "true", trees % "1"):
        (tmp_path / "model.json").write_text(text)
        with pytest.raises(ValueError, match=r"model\.json: not a model of CatBoost in JSON \(TypeError"):
            load_catboost(tmp_path / "model.json")


def written_in_json(model, folder):
    model.save_model(str(folder / "model.json"), format="json")
    return json.loads((folder / "model.json").read_text())


def test_what_is_wrong_with_a_tree_is_told(tmp_path):
    model = catboost.CatBoostRegressor(**QUIET | {"iterations": 1}).fit(X, Y)
    written = written_in_json(model, tmp_path)
    tree = written["oblivious_trees"][0]
    tree["leaf_values"].pop()
    with pytest.raises(ValueError, match="tree 0: 4 splits have 15 leaf_values, expected 16"):
        _ensemble_of(json.dumps(written))
    tree["leaf_values"].append(0.0)
    tree["splits"][0]["float_feature_index"] = 9
    with pytest.raises(ValueError, match="tree 0: float_feature_index=9, expected one of the 6 float_feat"):
        _ensemble_of(json.dumps(written))
    del tree["splits"][0]["float_feature_index"]
    with pytest.raises(ValueError, match=r"tree 0: damaged .KeyError: 'float_feature_index'"):
        _ensemble_of(json.dumps(written))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda tree: tree["splits"][0].update(border=0.125),
            r"border=0.125 is none of the \d+ borders of",
        ),
        (
            lambda tree: tree["splits"][0].update(split_index=99),
            r"split_index=99, expected \d+, that of border=",
        ),
        (lambda tree: tree["splits"][0].pop("split_index"), "damaged .KeyError: 'split_index'"),
        (lambda tree: tree["splits"][0].update(border=True), "border has True, expected numbers"),
        (lambda tree: tree["leaf_values"].__setitem__(3, False), "leaf_values has False, expected numbers"),
    ],
)
def test_what_contradicts_itself_in_a_tree_is_refused(change, message, tmp_path):
    written = written_in_json(catboost.CatBoostRegressor(**QUIET).fit(X, Y), tmp_path)
    change(written["oblivious_trees"][1])
    with pytest.raises(ValueError, match=f"tree 1: {message}"):
        _ensemble_of(json.dumps(written))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("flat_feature_index", 1, r"flat_feature_index of the 6 features is not 0, 1, \.\.\."),
        ("flat_feature_index", 0.5, r"flat_feature_index of the 6 features is not 0, 1, \.\.\."),
        ("nan_value_treatment", "astrue", r"tree \d: damaged .KeyError: 'astrue'"),
    ],
)
def test_what_is_wrong_with_a_column_is_told(name, value, message, tmp_path):
    written = written_in_json(catboost.CatBoostRegressor(**QUIET).fit(X, Y), tmp_path)
    written["features_info"]["float_features"][0][name] = value
    with pytest.raises(ValueError, match=message):
        _ensemble_of(json.dumps(written))


def test_features_that_are_not_in_the_order_of_their_numbers_are_refused(tmp_path):
    """CatBoost counts them by their places."""
    written = written_in_json(catboost.CatBoostRegressor(**QUIET).fit(X, Y), tmp_path)
    features = written["features_info"]["float_features"]
    features[0], features[3] = features[3], features[0]
    with pytest.raises(ValueError, match="feature_index of the 6 float_features does not rise from 0 by 1"):
        _ensemble_of(json.dumps(written))
    del features[0]["feature_index"]
    with pytest.raises(ValueError, match=r"not a model of CatBoost in JSON .KeyError: 'feature_index'"):
        _ensemble_of(json.dumps(written))


@pytest.mark.parametrize("value", [True, "1", 2**53 + 1, -(2**63)])
@pytest.mark.parametrize("place", ["scale", "bias"])
def test_scales_and_biases_that_catboost_takes_for_others_are_refused(place, value, tmp_path):
    written = written_in_json(catboost.CatBoostRegressor(**QUIET).fit(X, Y), tmp_path)
    scale, (bias,) = written["scale_and_bias"]
    written["scale_and_bias"] = [value, [bias]] if place == "scale" else [scale, [value]]
    with pytest.raises(ValueError, match=f"scale_and_bias has {value!r}, expected numbers"):
        _ensemble_of(json.dumps(written))


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "-1" + 400 * "0"])
def test_numbers_at_which_catboost_stops_to_read_are_refused(number, tmp_path):
    written = written_in_json(catboost.CatBoostRegressor(**QUIET).fit(X, Y), tmp_path)
    written["oblivious_trees"][0]["leaf_weights"][0] = "here"
    with pytest.raises(ValueError, match=f"'{number[:9]}.*' is no finite number in double precision"):
        _ensemble_of(json.dumps(written).replace('"here"', number))


def test_a_border_beyond_single_precision_is_infinite(tmp_path):
    model = catboost.CatBoostRegressor(**QUIET, grow_policy="Lossguide").fit(X, Y)
    written = written_in_json(model, tmp_path)
    split = written["trees"][0]["split"]
    borders = written["features_info"]["float_features"][split["float_feature_index"]]["borders"]
    borders[borders.index(split["border"])] = split["border"] = 1e39
    assert np.isposinf(_ensemble_of(json.dumps(written)).nodes["cut"][0])


def test_what_catboost_does_not_save_is_refused():
    rows = pd.DataFrame({"clicks": X[:, 1], "title": np.where(X[:, 0] > 0, "a tree", "a rank")})
    with_texts = catboost.CatBoostRegressor(**QUIET, text_features=["title"]).fit(rows, Y)
    with pytest.raises(ValueError, match=r"does not save the model in JSON \(.*text features.*without texts"):
        load_catboost(with_texts)
    with pytest.raises(NotFittedError, match="model is a CatBoostRanker that is not fitted"):
        load_catboost(catboost.CatBoostRanker())
