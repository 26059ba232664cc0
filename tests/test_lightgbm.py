"""LightGBM's text, with LightGBM as the judge."""

import contextlib
import json
import re

import lightgbm
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from ranktrees import (
    Ensemble,
    EnsembleRanker,
    FitWarning,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    RandomForestRanker,
    contributions,
    dump_lightgbm,
    load_lightgbm,
    make_ranking,
)
from ranktrees._core.support.dtypes import NODE
from ranktrees.formats.lightgbm import LINK_OF, _ensemble_of
from reference import scoring as reference

X, Y, QID = make_ranking(40, rows_per_query=20, n_features=6, random_state=0, return_X_y_qid=True)
X[::7, 2] = np.nan
QUIET = {"verbose": -1, "num_leaves": 8, "min_data_in_leaf": 5}


def written(model, folder, **settings):
    dump_lightgbm(model, folder / "model.txt", **settings)
    return (folder / "model.txt").read_text(encoding="utf-8")


def train(params=None, X=X, y=Y, n=10, **settings):
    data = lightgbm.Dataset(X, y, **settings)
    return lightgbm.train(QUIET | (params or {}), data, n)


def frame():
    rng = np.random.default_rng(0)
    columns = {"clicks": X[:, 0], "site": rng.choice(["uk", "fr", "de"], len(X)), "age": X[:, 2]}
    return pd.DataFrame(columns).astype({"site": "category"})


@pytest.mark.parametrize("seed", range(40))
def test_lightgbm_scores_as_the_model_does(seed, tmp_path):
    rng = np.random.default_rng(seed)
    settings = {"base": rng.normal() if seed % 3 else 0.0, "average": seed % 5 == 0}
    ensemble = reference.random_ensemble(rng, rng.integers(0, 6), 16, many=seed % 4 == 1, **settings)
    ensemble = reference.with_whole_categories(ensemble)
    rows = reference.rows_for_others(rng, ensemble, 50)
    text = written(ensemble, tmp_path)
    scores = lightgbm.Booster(model_str=text).predict(rows)
    if ensemble.average:
        np.testing.assert_allclose(scores, ensemble.predict(rows), rtol=1e-13, atol=1e-13)
    else:
        np.testing.assert_array_equal(scores, ensemble.predict(rows))
    np.testing.assert_array_equal(load_lightgbm(tmp_path / "model.txt").predict(rows), scores)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"objective": "binary"},
        {"objective": "poisson"},
        {"boosting": "dart"},
        {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
        {"use_missing": False},
        {"max_depth": 1},
        {"min_data_in_leaf": 5000},
    ],
)
def test_models_of_lightgbm_score_as_it_does(params, tmp_path):
    labels = (Y > 1).astype(float) if params.get("objective") == "binary" else Y
    booster = train(params, y=labels)
    booster.save_model(tmp_path / "model.txt")
    scores = booster.predict(X, raw_score=params.get("boosting") != "rf")  # raw is the sum, not the mean
    for model in (booster, tmp_path / "model.txt", str(tmp_path / "model.txt")):
        np.testing.assert_array_equal(load_lightgbm(model).predict(X), scores)


def test_a_ranker_of_lightgbm_becomes_one_of_ours():
    ranker = lightgbm.LGBMRanker(n_estimators=10, verbose=-1).fit(X, Y, group=[20] * 40)
    np.testing.assert_array_equal(EnsembleRanker(load_lightgbm(ranker)).predict(X), ranker.predict(X))


def test_the_best_iteration_is_taken():
    data = lightgbm.Dataset(X[:600], Y[:600])
    stop = lightgbm.early_stopping(3, verbose=False)
    params = QUIET | {"learning_rate": 0.5}
    held_out = lightgbm.Dataset(X[600:], Y[600:], reference=data)
    booster = lightgbm.train(params, data, 60, valid_sets=[held_out], callbacks=[stop])
    ensemble = load_lightgbm(booster)
    assert len(ensemble) == booster.best_iteration < 60
    np.testing.assert_array_equal(ensemble.predict(X), booster.predict(X))


def test_counts_and_gains_come_along():
    booster = train()
    ensemble = load_lightgbm(booster)
    np.testing.assert_allclose(ensemble.feature_importances(), booster.feature_importance("gain"), rtol=1e-4)
    np.testing.assert_array_equal(
        ensemble.feature_importances("split"), booster.feature_importance("split").astype(float)
    )
    assert (ensemble.nodes["count"][ensemble.tree_offsets[:-1]] == len(X)).all()


def test_columns_of_frames_come_along(tmp_path):
    rows = frame()
    booster = train({"min_data_per_group": 5, "cat_smooth": 1}, rows, y=Y + 2 * (rows["site"] == "fr"))
    ensemble = load_lightgbm(booster)
    assert ensemble.feature_names == ("clicks", "site", "age")
    assert dict(ensemble.category_levels) == {1: ("de", "fr", "uk")}
    other_order = rows.assign(site=rows["site"].cat.set_categories(["it", "uk", "de"]))
    for each in (rows, other_order):
        np.testing.assert_array_equal(ensemble.predict(each), booster.predict(each))
    assert load_lightgbm(booster).digest() == ensemble.digest()


def test_models_of_frames_are_written_with_their_columns(tmp_path):
    rows = frame()
    ranker = LambdaMARTRanker(max_iter=10, random_state=0).fit(rows, Y + 2 * (rows["site"] == "fr"), qid=QID)
    booster = lightgbm.Booster(model_str=written(ranker, tmp_path))
    assert booster.feature_name() == ["clicks", "site", "age"]
    other_order = rows.assign(site=rows["site"].cat.set_categories(["it", "uk", "de"]))
    for each in (rows, other_order):
        np.testing.assert_array_equal(booster.predict(each), ranker.predict(each))
    read = load_lightgbm(tmp_path / "model.txt")
    assert (read.feature_names, read.category_levels) == (
        ranker.ensemble_.feature_names,
        ranker.ensemble_.category_levels,
    )


@pytest.mark.parametrize(
    "model",
    [
        LambdaMARTRanker(max_iter=10, random_state=0),
        HistGBRTRegressor(max_iter=10, random_state=0),
        HistGBRTRegressor("poisson", max_iter=10, random_state=0),
        HistGBRTRegressor("absolute_error", max_iter=10, random_state=0),
    ],
)
def test_what_was_trained_scores_as_it_does(model, tmp_path):
    model.fit(X, Y, qid=QID)
    booster = lightgbm.Booster(model_str=written(model, tmp_path))
    np.testing.assert_array_equal(booster.predict(X, raw_score=True), model.ensemble_.predict(X))
    np.testing.assert_allclose(booster.predict(X), model.predict(X), rtol=1e-14)
    json.dumps(booster.dump_model(), allow_nan=False)  # what Vespa reads
    importances = booster.feature_importance("gain")
    np.testing.assert_allclose(importances, model.ensemble_.feature_importances(), rtol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        HistGBRTClassifier(max_iter=10, random_state=0),
        HistGBRTRegressor("logistic", max_iter=10, random_state=0),
    ],
)
def test_probabilities_are_those_of_the_model(model, tmp_path):
    model.fit(X, (Y > 1).astype(int))
    booster = lightgbm.Booster(model_str=written(model, tmp_path))
    ours = model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)
    np.testing.assert_allclose(booster.predict(X), ours, rtol=1e-14)
    read = load_lightgbm(booster)
    np.testing.assert_array_equal(read.predict(X), booster.predict(X, raw_score=True))
    np.testing.assert_allclose(EnsembleRanker(read).predict(X), ours, rtol=1e-14)
    assert written(model.ensemble_, tmp_path) == written(model, tmp_path)
    scores = lightgbm.Booster(model_str=written(read.with_link(None), tmp_path)).predict(X)
    np.testing.assert_array_equal(scores, read.predict(X))


@pytest.mark.parametrize(
    "params",
    [
        *({"objective": name} for name, link in LINK_OF.items() if link or name == "lambdarank"),
        {"objective": "binary", "sigmoid": 1.7},
        {"objective": "binary", "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5},
    ],
    ids=str,
)
def test_the_link_of_the_objective_is_read(params):
    labels = Y + 1.0 if params["objective"] in ("gamma", "lambdarank") else np.minimum(Y, 1.0)
    booster = train(params, y=labels, group=[20] * 40)
    read = EnsembleRanker(load_lightgbm(booster))
    np.testing.assert_allclose(read.predict(X), booster.predict(X), rtol=1e-14)


@pytest.mark.parametrize("params", [{"reg_sqrt": True}, {"objective": "cross_entropy_lambda"}])
def test_another_function_of_scores_is_told(params):
    booster = train(params, y=np.minimum(Y, 1.0))
    with pytest.warns(FitWarning, match="another function of scores, not known here: what is read predicts"):
        read = load_lightgbm(booster)
    np.testing.assert_array_equal(EnsembleRanker(read).predict(X), booster.predict(X, raw_score=True))


def test_a_forest_is_a_sum_of_shares(tmp_path):
    forest = RandomForestRanker(n_estimators=10, random_state=0).fit(X, Y, qid=QID)
    booster = lightgbm.Booster(model_str=written(forest, tmp_path))
    np.testing.assert_allclose(booster.predict(X), forest.predict(X), rtol=1e-13)


def test_contributions_are_lightgbms():
    booster = train()
    parts, start = contributions(load_lightgbm(booster), X[:20])
    theirs = booster.predict(X[:20], pred_contrib=True)
    np.testing.assert_allclose(parts, theirs[:, :-1], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(start, theirs[:, -1], rtol=1e-6)


def test_lightgbm_knows_what_training_saw(tmp_path):
    """Gains and rows, which its own contributions and importances need."""
    model = HistGBRTRegressor(max_iter=5, gradient_sampling=None, random_state=0).fit(X, Y)
    booster = lightgbm.Booster(model_str=written(model, tmp_path))
    parts, start = contributions(model, X[:20])
    theirs = booster.predict(X[:20], pred_contrib=True)
    np.testing.assert_allclose(theirs, np.column_stack([parts, start]), rtol=1e-9, atol=1e-9)
    root = booster.trees_to_dataframe().iloc[0]
    assert root["count"] == root["weight"] == len(X)


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_lines_may_end_as_they_do_elsewhere(line_end, tmp_path):
    booster = train(n=3)
    (tmp_path / "model.txt").write_bytes(booster.model_to_string().replace("\n", line_end).encode())
    np.testing.assert_array_equal(load_lightgbm(tmp_path / "model.txt").predict(X), booster.predict(X))


def test_nan_goes_where_zero_goes_where_nothing_is_missing():
    text = train({"use_missing": False}, n=1).model_to_string()
    cuts = re.search("threshold=(.*)\n", text)[1]
    at_zero = text.replace(cuts, "0 0 0 0 0 0 0.".ljust(len(cuts), "0"))
    booster = lightgbm.Booster(model_str=at_zero)
    np.testing.assert_array_equal(_ensemble_of(at_zero).predict(X), booster.predict(X))


@pytest.mark.parametrize("doubt", ["ordered", "constant", "numbers"])
def test_levels_of_which_there_is_doubt_are_left_out(doubt):
    rng = np.random.default_rng(0)
    site, kind = rng.choice(["uk", "fr", "de"], len(X)), rng.integers(0, 3, len(X))
    rows = pd.DataFrame({"kind": kind, "site": site, "clicks": X[:, 0]})
    rows["site"] = rows["site"].astype(pd.CategoricalDtype(["de", "fr", "uk"], ordered=doubt == "ordered"))
    called = {"categorical_feature": ["kind"]}
    if doubt == "constant":
        rows["site"] = pd.Categorical(["uk"] * len(X))
    if doubt == "numbers":
        called = {"categorical_feature": ["kind", "site"]}
    booster = train({"min_data_per_group": 5}, rows, X[:, 0] + kind % 2 + (site == "fr"), **called)
    with pytest.warns(
        FitWarning, match=r"levels of 1 category columns, but leaves doubt .*the first are \['"
    ):
        ensemble = load_lightgbm(booster)
    assert not ensemble.category_levels
    with pytest.raises(ValueError, match="is a category column; expected"):
        EnsembleRanker(ensemble).predict(rows)


def with_sizes(levels=("S", "M", "L", "XL"), ordered=True):
    sizes = np.random.default_rng(1).choice(["S", "M", "XL", None], len(X))
    return frame().assign(size=pd.Categorical(sizes, levels, ordered=ordered), label=Y + (sizes == "XL"))


@pytest.mark.parametrize("by", [RandomForestRanker, lightgbm])
def test_ordered_categories_are_numbers_there_as_here(by, tmp_path):
    """LightGBM's category columns have a list of levels each, if they are ordered, too."""
    rows = with_sizes()
    rows, labels = rows[["clicks", "size", "site"]], rows["label"]
    if by is lightgbm:
        booster = train({"min_data_per_group": 5}, rows, labels)
        ensemble = load_lightgbm(booster)
    else:
        ensemble = by(5, random_state=0).fit(rows, labels, qid=QID).ensemble_
        booster = lightgbm.Booster(model_str=written(ensemble, tmp_path))
        assert load_lightgbm(booster).category_levels == ensemble.category_levels
    assert dict(ensemble.category_levels) == {1: ("S", "M", "L", "XL"), 2: ("de", "fr", "uk")}
    nodes = ensemble.nodes[ensemble.nodes["feature"] == 1]
    assert len(nodes)
    assert (nodes["categories"] < 0).all()
    for each in (rows, with_sizes(["XL", "L", "S", "M"])[list(rows)], with_sizes(ordered=False)[list(rows)]):
        expected = booster.predict(each)
        np.testing.assert_allclose(EnsembleRanker(ensemble).predict(each), expected, rtol=1e-12)
    np.testing.assert_array_equal(booster.predict(each), booster.predict(rows))


def test_numbers_beyond_the_levels_leave_no_doubt():
    rows = frame().assign(kind=10 * (np.arange(len(X)) % 3))[["kind", "site", "clicks"]]
    called = {"categorical_feature": ["kind", "site"]}
    booster = train({"min_data_per_group": 5}, rows, Y + rows["kind"] + (rows["site"] == "fr"), **called)
    ensemble = load_lightgbm(booster)
    assert dict(ensemble.category_levels) == {1: ("de", "fr", "uk")}
    np.testing.assert_array_equal(EnsembleRanker(ensemble).predict(rows), booster.predict(rows))


@pytest.mark.parametrize("n_levels", [3, 4, 5])
def test_numbers_may_be_codes_where_there_are_so_many_levels(n_levels):
    """Those of ordered categories of which rows have not the first, say: LightGBM writes [1:3] of both."""
    rng = np.random.default_rng(0)
    levels = [10, 20, 30, 40, 50][:n_levels]
    size, kind = rng.integers(1, 4, len(X)), rng.integers(0, 3, len(X))
    labels = 1.0 * (kind == 1) + 0.3 * (size == 2)
    params = {"min_data_per_group": 1, "cat_smooth": 1}
    if n_levels > 3:
        ordered = pd.Categorical.from_codes(size, levels, ordered=True)
        rows = pd.DataFrame({"size": ordered, "kind": kind})
        booster = train(params, rows, labels, categorical_feature=["kind"])
        assert "feature_infos=[1:3] -1:" in booster.model_to_string()
        with pytest.warns(FitWarning, match="leaves doubt"):
            assert not load_lightgbm(booster).category_levels
    rows = pd.DataFrame({"size": size, "kind": pd.Categorical.from_codes(kind, levels)})
    booster = train(params, rows, labels)
    if n_levels == 3:
        assert dict(load_lightgbm(booster).category_levels) == {1: tuple(levels)}
    else:
        with pytest.warns(FitWarning, match="leaves doubt"):
            assert not load_lightgbm(booster).category_levels


@pytest.mark.parametrize(("n_devices", "place_of_flag"), [(3, 0), (2, 0), (3, 2), (2, 2)])
def test_flags_and_stars_leave_no_doubt_about_the_levels_of_others(n_devices, place_of_flag):
    """Unless a flag may be an ordered category: with as many levels, at that place among the others."""
    rng = np.random.default_rng(0)
    place, brands = rng.integers(0, 8, len(X)), tuple(f"brand {i}" for i in range(8))
    devices = ("mobile", "tablet", "tv")[:n_devices]
    rows = pd.DataFrame(
        {
            "brand": pd.Categorical.from_codes(place, brands),
            "stars": rng.integers(1, 6, len(X)),
            "device": pd.Categorical.from_codes(place % n_devices, devices),
        }
    )
    rows.insert(place_of_flag, "stock", rng.integers(0, 2, len(X)) == 1)
    booster = train({"min_data_per_group": 5}, rows, Y + place % 3 + rows["stars"])
    if (n_devices, place_of_flag) == (2, 2):
        with pytest.warns(FitWarning, match="leaves doubt"):
            assert not load_lightgbm(booster).category_levels
        return
    ensemble = load_lightgbm(booster)
    assert dict(ensemble.category_levels) == {list(rows).index("brand"): brands, 3: devices}
    np.testing.assert_array_equal(EnsembleRanker(ensemble).predict(rows), booster.predict(rows))


def test_a_ranker_is_told_the_names_that_lightgbm_has_changed():
    rows = pd.DataFrame(X[:, :2], columns=["age", "title match"])
    model = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1).fit(rows, Y)
    ensemble = load_lightgbm(model)
    assert ensemble.feature_names == ("age", "title_match")
    ranker = EnsembleRanker(ensemble, feature_names=list(rows.columns))
    np.testing.assert_array_equal(ranker.predict(rows), model.predict(rows))


def test_names_are_asked_for_where_they_have_white_space(tmp_path):
    rows = frame().rename(columns={"age": "age of page"}).drop(columns="site")
    model = HistGBRTRegressor(max_iter=2).fit(rows, Y)
    with pytest.raises(ValueError, match=r"feature_names has 'age of page'.*pass feature_names"):
        written(model, tmp_path)
    assert not (tmp_path / "model.txt").exists()
    written(model, tmp_path, feature_names=["clicks", "age"])
    assert load_lightgbm(tmp_path / "model.txt").feature_names == ("clicks", "age")
    with pytest.raises(ValueError, match="feature_names has 1 entries, expected 2"):
        written(model, tmp_path, feature_names=["clicks"])


@pytest.mark.parametrize(
    ("name", "told"), [('a"b', "quotes"), ("a\\nb", "backslashes"), ("=x", "begins with another")]
)
def test_names_that_lightgbm_reads_as_others_are_refused(name, told, tmp_path):
    model = HistGBRTRegressor(max_iter=2).fit(frame().drop(columns="site"), Y)
    with pytest.raises(ValueError, match=rf"feature_names has {re.escape(repr(name))}.*{told}"):
        written(model, tmp_path, feature_names=[name, "age"])
    assert not (tmp_path / "model.txt").exists()
    names = ["clicks", "=x"]
    written(model, tmp_path, feature_names=names)
    assert lightgbm.Booster(model_file=tmp_path / "model.txt").dump_model()["feature_names"] == names


@pytest.mark.parametrize("values", [[-1.0, 3.0], [0.0, 0.5], [1.0, 2.0**24]])
def test_categories_that_are_no_whole_numbers_are_refused(values, tmp_path):
    stump = reference.stump()
    stump["categories"][0] = 0
    bits = np.array([[1, 0, 0, 0, 0, 0, 0, 0]], np.uint32)
    ensemble = Ensemble.from_trees([stump], [bits], n_features=1, categories=[values])
    with pytest.raises(ValueError, match=r"feature 0 has the categories .*number them from 0"):
        written(ensemble, tmp_path)


def test_what_is_no_model_of_trees_is_refused(tmp_path):
    with pytest.raises(NotFittedError, match="Need to call fit"):
        load_lightgbm(lightgbm.LGBMRanker())
    with pytest.raises(TypeError, match="model is a Ridge; expected a tree estimator"):
        written(Ridge(), tmp_path)
    with pytest.raises(ValueError, match="boosting started from Ridge"):
        written(HistGBRTRegressor(init=Ridge(), max_iter=2).fit(np.nan_to_num(X), Y), tmp_path)
    with pytest.raises(TypeError, match="model is a Ridge; expected the path of a text model"):
        load_lightgbm(Ridge())
    LambdaMARTRanker(max_iter=2).fit(X, Y, qid=QID).save(tmp_path / "model.rkt")
    with pytest.raises(
        ValueError,
        match=r"model.rkt: not a text model of LightGBM; it is a model of ranktrees: use Ensemble.load",
    ):
        load_lightgbm(tmp_path / "model.rkt")
    (tmp_path / "model.pkl").write_bytes(b"\x80\x04\x95")
    with pytest.raises(
        ValueError, match=r"model.pkl: not a text model of LightGBM: it is not text .*save_model"
    ):
        load_lightgbm(tmp_path / "model.pkl")


@pytest.mark.parametrize(
    ("params", "settings", "message"),
    [
        ({"objective": "multiclass", "num_class": 3}, {}, "a model of several classes"),
        ({"linear_tree": True}, {}, "tree 0: leaves are linear"),
        ({"zero_as_missing": True}, {}, "tree .: zeros do not go to the side"),
    ],
)
def test_models_that_are_no_such_sum_are_refused(params, settings, message):
    rng = np.random.default_rng(0)
    rows = rng.integers(-2, 3, (len(X), 3)).astype(float)
    labels = rng.integers(0, 3, len(X))
    labels[(rows == 0).any(axis=1)] = 2
    with pytest.raises(ValueError, match=message):
        load_lightgbm(train(params, rows, labels, **settings))


def test_zeros_that_are_missing_are_read_where_they_go_with_their_cut():
    rows = np.abs(np.random.default_rng(0).integers(0, 5, (len(X), 1)).astype(float))
    booster = train({"zero_as_missing": True, "num_leaves": 2}, rows, rows[:, 0] > 0)
    ensemble = load_lightgbm(booster)
    hard = np.array([[0.0], [np.nan], [1e-36], [-1.0], [2.0]])
    np.testing.assert_array_equal(ensemble.predict(hard), booster.predict(hard))


def test_more_categories_than_a_byte_has_values_are_read_and_written(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 600, (6000, 1)).astype(float)
    params = {"max_cat_threshold": 600, "min_data_per_group": 1, "cat_smooth": 0, "max_bin": 1000}
    booster = train(params, rows, np.sin(rows[:, 0] * 7), categorical_feature=[0])
    ensemble = load_lightgbm(booster)
    assert len(ensemble.categories[0]) > 256
    some = np.append(np.arange(700.0), np.nan)[:, None]
    np.testing.assert_array_equal(ensemble.predict(some), booster.predict(some))
    dump_lightgbm(ensemble, tmp_path / "model.txt")
    again = lightgbm.Booster(model_file=tmp_path / "model.txt")
    np.testing.assert_array_equal(again.predict(some), booster.predict(some))


@pytest.mark.parametrize("missing_left", [0, 1])
def test_all_go_where_missing_values_go_if_no_category_goes_elsewhere(missing_left, tmp_path):
    nodes = np.zeros(3, NODE)
    nodes["feature"], nodes["categories"], nodes["value"] = [0, -1, -1], [0, -1, -1], [0, 1, 2]
    nodes["left"][0], nodes["right"][0], nodes["missing_left"][0] = 1, 2, missing_left
    sets = np.full((1, 8), missing_left * (2**32 - 1), np.uint32)
    ensemble = Ensemble.from_trees([nodes], [sets], n_features=1, categories=[[0, 1, 2]])
    text = written(ensemble, tmp_path)
    rows = np.array([[-np.inf], [-1.0], [0.0], [2.0], [9.0], [np.inf], [np.nan]])
    np.testing.assert_array_equal(lightgbm.Booster(model_str=text).predict(rows), ensemble.predict(rows))
    np.testing.assert_array_equal(load_lightgbm(tmp_path / "model.txt").predict(rows), ensemble.predict(rows))


TEXT = train(n=2).model_to_string()


@given(st.integers(0, TEXT.index("end of trees") - 1))
@settings(max_examples=100, deadline=None)
def test_a_text_that_was_cut_off_is_refused(n):
    with pytest.raises(ValueError, match=r"."):
        _ensemble_of(TEXT[:n])


def with_sets():
    rows = np.random.default_rng(0).integers(0, 40, (500, 1)).astype(float)
    params = {"min_data_per_group": 1, "cat_smooth": 0}
    return train(params, rows, np.sin(rows[:, 0] * 7), 2, categorical_feature=[0]).model_to_string()


CATEGORICAL = with_sets()
BODY = CATEGORICAL[: CATEGORICAL.index("end of trees")]
PLACES = [found.start() for found in re.finditer(r"[\w.+-]+|=|\n", BODY)]
JUNK = ["", "0", "-1", "1.5", "inf", "nan", "x", str(2**32), str(2**70), "1e300", " ", "\n", "="]


@given(st.sampled_from(PLACES), st.sampled_from(JUNK), st.integers(0, 12))
@settings(max_examples=300, deadline=None)
def test_a_text_that_was_changed_is_a_model_or_a_value_error(place, junk, n_removed):
    with contextlib.suppress(ValueError):
        _ensemble_of(CATEGORICAL[:place] + junk + CATEGORICAL[place + n_removed :])


def test_codes_that_are_no_numbers_are_told():
    named = re.sub("(feature_infos=).*", r"\1a:b [0.5:1] [0.5:1] [0.5:1] [0.5:1] [0.5:1]", TEXT)
    named = named.replace("pandas_categorical:null", 'pandas_categorical:[["uk","fr"]]')
    with pytest.raises(ValueError, match="line 'feature_infos=': invalid literal"):
        _ensemble_of(named)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tree\n", "forest\n", "its first line is not 'tree'"),
        ("version=v4", "version=v9", "version v9, expected v3 or v4"),
        ("feature_names=Column_0 ", "feature_names=", "feature_names has 5 names for 6 features"),
        ("feature_names=Column_0 ", "feature_names= ", "feature_names has an empty name"),
        ("tree_sizes=", "tree_sizes=-", "tree_sizes has entries that are not whole numbers from 1"),
        ("\nshrinkage=1", "\nshrinkage=1.0", r"tree 0 has \d+ bytes, but tree_sizes says \d+"),
        ("\nshrinkage=1", "\nshrinkage\n", "tree 0: line 'shrinkage' has no '='"),
        ("\nleaf_value=", "\nleaf_worth=", "tree 0: there is no line 'leaf_value='"),
        ("\nleaf_value=", "\nleaf_value=0.5 ", "tree 0: line 'leaf_value=' has 9 numbers, expected 8"),
        ("\nsplit_feature=", "\nsplit_feature=x", "tree 0: line 'split_feature=': invalid literal"),
        ("\nleft_child=1", "\nleft_child=0", "tree 0, node 0"),
        (
            "\nsplit_feature=",
            "\nsplit_feature=1\nsplit_feature=",
            "tree 0: line 'split_feature=' is there twice",
        ),
        ("\nversion=v4", "\nversion=v4\nversion=v4", "line 'version=' is there twice, expected once"),
        ("=regression", "=ranking", "objective=ranking: expected one of .*'poisson'"),
        ("=regression", "=binary", "line 'objective=' has 0 numbers, expected 1"),
        ("=regression", "=binary sigmoid:-1", "objective=binary sigmoid:-1: expected a positive number"),
        ("num_leaves=8", "num_leaves=0", "tree 0: num_leaves=0, expected at least 1"),
        ("\nleaf_value=", "\nleaf_value=1_0 ", "tree 0: line .leaf_value=. has characters that no"),
        ("\nleaf_value=", "\nleaf_value=\u0663 ", "tree 0: line 'leaf_value=' has characters that no"),
        ("num_cat=0", "num_cat=-1\ncat_boundaries=", "tree 0: num_cat has entries that are not"),
        ("num_cat=0", f"num_cat={2**63 - 1}", "tree 0: num_cat has entries that are not"),
        ("max_feature_idx=5", f"max_feature_idx={2**63 - 1}", "max_feature_idx has entries that are"),
        (
            "num_leaves=8",
            "num_leaves=99999999",
            "tree 0: line 'leaf_value=' has 8 numbers, expected 99999999",
        ),
        ("\nTree=1\n", "\nTrie=1\n", r"the trees have the numbers \['0'\]... \(1\), expected 0 to 1"),
        ("\nTree=1\n", "\nTree=3\n", r"the trees have the numbers \['0', '3'\]"),
        (
            "pandas_categorical:null",
            "pandas_categorical:5",
            "pandas_categorical has entries that are not lists",
        ),
        ("pandas_categorical:null", "pandas_categorical:[", "pandas_categorical: "),
    ],
)
def test_what_is_wrong_with_a_text_is_told(old, new, message, tmp_path):
    assert old in TEXT
    (tmp_path / "model.txt").write_text(TEXT.replace(old, new, 1))
    with pytest.raises(ValueError, match=rf"model\.txt: .*{message}"):
        load_lightgbm(tmp_path / "model.txt")
