"""XGBoost's JSON, with XGBoost as the judge."""

import contextlib
import json
import re

import numpy as np
import pytest
import xgboost
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from ranktrees import (
    Ensemble,
    EnsembleRanker,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    contributions,
    dump_lightgbm,
    dump_xgboost,
    interactions,
    load_catboost,
    load_lightgbm,
    load_xgboost,
    make_ranking,
    tree_table,
)
from ranktrees.formats.plain import last_float64_rounded_to
from ranktrees.formats.xgboost import READ_AS, _ensemble_of
from reference import scoring as reference

X, Y, QID = make_ranking(40, rows_per_query=20, n_features=6, random_state=0, return_X_y_qid=True)
X[::7, 2] = np.nan
LARGEST = float(np.finfo(np.float32).max)


def matrix(X, kinds=None, **others):
    return xgboost.DMatrix(X, feature_types=kinds, enable_categorical=True, nthread=1, **others)


def train(params=None, X=X, y=Y, n=10, kinds=None):
    return xgboost.train({"nthread": 1, "max_depth": 3} | (params or {}), matrix(X, kinds, label=y), n)


def margins(booster, X, kinds=None):
    return booster.predict(matrix(X, kinds), output_margin=True)


def assert_close(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("seed", range(40))
def test_xgboost_scores_as_the_model_does(seed, tmp_path):
    rng = np.random.default_rng(seed)
    settings = {"base": rng.normal(), "average": seed % 5 == 0}
    ensemble = reference.random_ensemble(rng, rng.integers(0, 6), 16, **settings)
    ensemble = reference.with_whole_categories(ensemble)
    rows = reference.rows_for_others(rng, ensemble, 50, np.float32)
    dump_xgboost(ensemble, tmp_path / "model.json")
    booster = xgboost.Booster({"nthread": 1}, model_file=tmp_path / "model.json")
    kinds = booster.feature_types
    scores = margins(booster, rows, kinds)
    assert_close(scores, ensemble.predict(rows))
    assert_close(load_xgboost(tmp_path / "model.json").predict(rows), scores)
    booster.predict(matrix(rows, kinds), pred_leaf=True)


@pytest.mark.parametrize("cut", [np.inf, -np.inf, LARGEST, -LARGEST, 1e300, -1e300])
def test_cuts_at_infinity_part_the_largest_numbers_from_missing_values(cut, tmp_path):
    ensemble = Ensemble.from_trees([reference.stump(cut=cut, missing_left=0)], n_features=1)
    rows = np.array([[0.0], [LARGEST], [-LARGEST], [np.nan]], np.float32)
    dump_xgboost(ensemble, tmp_path / "model.json")
    booster = xgboost.Booster({"nthread": 1}, model_file=tmp_path / "model.json")
    booster.save_model(tmp_path / "again.json")
    np.testing.assert_array_equal(margins(booster, rows), ensemble.predict(rows))
    for name in ("model.json", "again.json"):
        np.testing.assert_array_equal(load_xgboost(tmp_path / name).predict(rows), ensemble.predict(rows))


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"objective": "binary:logistic", "base_score": 0.2},
        {"objective": "count:poisson"},
        {"objective": "rank:ndcg"},
        {"booster": "dart", "rate_drop": 0.5},
        {"num_parallel_tree": 3, "subsample": 0.5},
        {"tree_method": "exact", "gamma": 5.0, "max_depth": 6},  # prunes, and deletes nodes
        {"grow_policy": "lossguide", "max_leaves": 7, "max_depth": 0},
    ],
)
def test_models_of_xgboost_score_as_it_does(params, tmp_path):
    labels = (Y > 1).astype(float) if "logistic" in str(params) else Y
    booster = train(params, y=labels)
    booster.save_model(tmp_path / "model.json")
    for model in (booster, tmp_path / "model.json", str(tmp_path / "model.json")):
        assert_close(load_xgboost(model).predict(X), margins(booster, X))


@pytest.mark.parametrize("objective", sorted(READ_AS))
@pytest.mark.parametrize("base_score", [None, 0.3, 1e-5])
def test_every_objective_starts_where_xgboost_starts(objective, base_score):
    labels = np.minimum(Y, 1.0) if "logi" in objective or "map" in objective else Y + 1.0
    start = {} if base_score is None else {"base_score": base_score}
    rows = {"label": labels} | ({"qid": QID} if "rank" in objective else {})
    booster = xgboost.train({"nthread": 1, "objective": objective} | start, matrix(X, **rows), 3)
    read = load_xgboost(booster)
    assert_close(read.predict(X), margins(booster, X))
    predicted = EnsembleRanker(read).predict(X)
    np.testing.assert_allclose(predicted, booster.predict(matrix(X)), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("base_score", [1e-9, 1 - 1e-7])
def test_starts_that_versions_of_xgboost_do_not_agree_on_are_refused(base_score):
    booster = train({"objective": "binary:logistic", "base_score": base_score}, y=np.minimum(Y, 1.0))
    with pytest.raises(
        ValueError, match=r"base_score=.* of 'binary:logistic': expected a probability between"
    ):
        load_xgboost(booster)


@pytest.mark.parametrize("one_hot", [1, 100])
def test_categories_of_xgboost(one_hot):
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(0, 40, 2000), rng.normal(size=2000)]).astype(np.float32)
    rows[::9, 0] = np.nan
    labels = np.sin(5 * np.nan_to_num(rows[:, 0], nan=3)) + rows[:, 1]
    kinds = ["c", "float"]
    booster = train({"max_cat_to_onehot": one_hot}, rows, labels, kinds=kinds)
    hard = np.column_stack([[0, 39, 40, 200, np.nan], np.zeros(5)]).astype(np.float32)  # some not seen
    ensemble = load_xgboost(booster)
    for each in (rows, hard):
        assert_close(ensemble.predict(each), margins(booster, each, kinds))
        theirs = booster.predict(matrix(each[:20], kinds), pred_contribs=True)
        np.testing.assert_allclose(contributions(ensemble, each[:20]).values, theirs[:, :-1], atol=1e-5)


def of_frame(sites=("uk", "fr", "", "unused"), **settings):
    """A frame with category columns of strings and numbers, and a model of XGBoost fitted to it."""
    import pandas as pd

    sizes = [30, -10, 20]
    site, size = np.arange(len(X)) % 3, np.arange(len(X)) % 7 % 3
    frame = pd.DataFrame(
        {
            "site": pd.Categorical.from_codes(site, list(sites)),
            "clicks": X[:, 0].astype(np.float32),
            "size": pd.Categorical.from_codes(size, sizes),
        }
    )
    model = xgboost.XGBRegressor(n_estimators=20, max_depth=3, enable_categorical=True, n_jobs=1, **settings)
    labels = Y + 2.0 * (site == 1) - 3.0 * (size == 2)
    if "early_stopping_rounds" in settings:
        return frame, model.fit(frame, labels, eval_set=[(frame[:50], Y[:50])], verbose=False)
    return frame, model.fit(frame, labels)


def test_trees_that_list_more_codes_than_there_are_levels_meet_other_levels():
    frame, model = of_frame()
    ranker = EnsembleRanker(load_xgboost(model))
    if not ranker.ensemble.category_levels:
        pytest.skip("this version of XGBoost writes no levels")
    assert max(len(each) for each in ranker.ensemble.categories if each is not None) > 4
    joined = EnsembleRanker.average([ranker, ranker])  # whose levels are sorted
    assert_close(joined.predict(frame), model.predict(frame))
    other = frame.assign(site=frame["site"].cat.add_categories(["de"]))
    model_of_both = HistGBRTRegressor(init=ranker, max_iter=1, learning_rate=1e-300).fit(other, Y)
    assert_close(model_of_both.predict(frame), model.predict(frame))


def categories_written(model):
    return json.loads(model.get_booster().save_raw("json"))["learner"]["gradient_booster"]


@pytest.mark.parametrize("settings", [{}, {"booster": "dart"}, {"early_stopping_rounds": 1}])
def test_levels_of_frames_come_along(settings, tmp_path):
    import pandas as pd

    frame, model = of_frame(**settings)
    if '"values": [1' not in json.dumps(categories_written(model)):
        pytest.skip("this version of XGBoost writes no levels")
    model.save_model(tmp_path / "model.json")
    n_trees = getattr(model, "best_iteration", 19) + 1
    assert ("early_stopping_rounds" in settings) == (n_trees < 20)
    for ensemble in (load_xgboost(model), load_xgboost(tmp_path / "model.json").first(n_trees)):
        assert dict(ensemble.category_levels) == {0: ("uk", "fr", "", "unused"), 2: (30, -10, 20)}
        ranker = EnsembleRanker(ensemble)
        told = tree_table(ranker)["categories"].dropna()
        assert set().union(*told) <= {"uk", "fr", "", "unused", 30, -10, 20}
        assert_close(ranker.predict(frame), model.predict(frame))
        turned = frame.assign(size=pd.Categorical(frame["size"].astype(object), categories=[20, 30, -10]))
        assert ranker.predict(turned).tobytes() == ranker.predict(frame).tobytes()


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("levels", [["uk", "fr", ""], [30, -10, 20]])
def test_levels_of_a_frame_are_those_of_another(levels, ordered, tmp_path):
    """XGBoost scores frames of fewer levels, and of levels in another order, as the model does."""
    import pandas as pd

    levels, code = np.array(levels, object), np.arange(len(X)) % 3
    known = levels.tolist() if ordered else sorted(levels)
    site = pd.Categorical(levels[code], known, ordered=ordered)
    frame = pd.DataFrame({"clicks": X[:, 0].astype(np.float32), "site": site})
    model = HistGBRTRegressor(max_iter=10).fit(frame, Y + 2.0 * (code == 1) - 3.0 * (code == 2))
    dump_xgboost(model, tmp_path / "model.json")
    read = load_xgboost(tmp_path / "model.json")
    assert dict(read.category_levels) == model._category_levels == {1: tuple(known)}
    assert (read.nodes["categories"] < 0).all() == ordered
    booster = xgboost.Booster(model_file=tmp_path / "model.json")
    if "cats" not in booster.save_raw("json").decode():
        pytest.skip("this version of XGBoost reads no levels")
    assert load_xgboost(booster).category_levels == read.category_levels
    turned = frame.assign(site=frame["site"].cat.set_categories(levels[[1, 0, 2]]))
    some = frame[code > 0].assign(site=lambda rows: rows["site"].cat.remove_unused_categories())
    for each in (frame, turned, some):
        assert_close(margins(booster, each), model.predict(each))
        assert_close(EnsembleRanker(read).predict(each), model.predict(each))


def test_models_without_levels_are_of_the_version_before_them(tmp_path):
    dump_xgboost(reference_model(), tmp_path / "model.json")
    model = json.loads((tmp_path / "model.json").read_text())
    assert model["version"] == [2, 1, 0]
    assert "cats" not in model["learner"]["gradient_booster"]["model"]


@pytest.mark.parametrize("levels", [["é", "b"], [True, False], [0.5, 2.0], [2**63, 1], ["b", 1]])
def test_a_warning_where_xgboost_cannot_have_levels(levels, tmp_path):
    ensemble = reference_model()._with_columns(list("abcd"), {1: levels, 3: ["uk", "fr"]})
    with pytest.warns(UserWarning, match="the levels of column 'b' are not written: .* pass it the codes"):
        dump_xgboost(ensemble, tmp_path / "model.json")
    assert dict(load_xgboost(tmp_path / "model.json").category_levels) == {3: ("uk", "fr")}


def test_strings_that_are_not_written_whole_are_left_out():
    """XGBoost counts the characters of pandas' levels as if they were bytes."""
    frame, model = of_frame(["é", "ü b", "c"])
    ensemble = load_xgboost(model)
    assert 0 not in ensemble.category_levels
    with pytest.raises(ValueError, match=r"column 'site' of X is a category column; .* as category_levels"):
        EnsembleRanker(ensemble).predict(frame)
    levels = {name: frame[name].cat.categories for name in ("site", "size")}
    assert_close(EnsembleRanker(ensemble, category_levels=levels).predict(frame), model.predict(frame))


def test_levels_that_are_not_written_are_passed_by_the_name_of_the_column():
    frame, model = of_frame()
    whole = json.loads(model.get_booster().save_raw("json"))
    whole["learner"]["gradient_booster"]["model"].pop("cats", None)  # older versions have none
    ensemble = _ensemble_of(json.dumps(whole))
    assert not ensemble.category_levels
    with pytest.raises(ValueError, match=r"column 'site' of X is a category column; .* as category_levels"):
        EnsembleRanker(ensemble).predict(frame)
    levels = {name: frame[name].cat.categories for name in ("site", "size")}
    assert_close(EnsembleRanker(ensemble, category_levels=levels).predict(frame), model.predict(frame))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ([{"offsets": [], "values": []}] * 5, "cats has 5 columns for 6 features"),
        (
            [{"offsets": [0, 2], "values": [117]}] * 6,
            "cats of feature 0: offsets has entries that are not whole",
        ),
        ([{"offsets": [1, 1], "values": [117]}] * 6, "cats of feature 0: offsets do not rise from 0 to 1"),
        (
            [{"offsets": [0, 1], "values": [200]}] * 6,
            "cats of feature 0: values has entries that are not whole",
        ),
        ([{"offsets": [0, 0, 0], "values": []}] * 6, r"category_levels\[0\] has '' twice"),
        (
            [{"type": 15, "values": [0.5]}] * 6,
            "cats of feature 0: values has entries that are not whole numbers",
        ),
        ([{"type": 15}] * 6, "damaged .KeyError: 'values'"),
        ([3] * 6, "damaged .TypeError"),
    ],
)
def test_what_is_wrong_with_levels_is_told(columns, message):
    model = json.loads(WRITTEN)
    model["learner"]["gradient_booster"]["model"]["cats"] = {"enc": columns}
    with pytest.raises(ValueError, match=message):
        _ensemble_of(json.dumps(model))


def test_a_ranker_of_xgboost_comes_with_its_best_iteration():
    ranker = xgboost.XGBRanker(n_estimators=60, learning_rate=0.9, early_stopping_rounds=3, n_jobs=1)
    train, held_out = QID < 30, QID >= 30
    eval_set, eval_qid = [(X[held_out], Y[held_out])], [QID[held_out]]
    ranker.fit(X[train], Y[train], qid=QID[train], eval_set=eval_set, eval_qid=eval_qid, verbose=False)
    ensemble = load_xgboost(ranker)
    assert len(ensemble) == ranker.best_iteration + 1 < ranker.get_booster().num_boosted_rounds()
    assert_close(EnsembleRanker(ensemble).predict(X), ranker.predict(X))


def test_names_of_columns_come_along(tmp_path):
    import pandas as pd

    rows = pd.DataFrame(X[:, :2], columns=["clicks", "age of page"])
    model = LambdaMARTRanker(max_iter=5, random_state=0).fit(rows, Y, qid=QID)
    dump_xgboost(model, tmp_path / "model.json")
    booster = xgboost.Booster(model_file=tmp_path / "model.json")
    assert_close(margins(booster, rows.astype(np.float32)), model.predict(rows.astype(np.float32)))
    assert load_xgboost(booster).feature_names == ("clicks", "age of page")
    dump_xgboost(model, tmp_path / "model.json", feature_names=["a", "b"])
    assert load_xgboost(tmp_path / "model.json").feature_names == ("a", "b")


def test_names_need_not_be_ascii(tmp_path):
    model = LambdaMARTRanker(max_iter=2).fit(X, Y, qid=QID)
    dump_xgboost(model, tmp_path / "model.json", feature_names=list("éßpqrs"))
    booster = xgboost.Booster(model_file=tmp_path / "model.json")
    assert booster.feature_names == list("éßpqrs")
    assert load_xgboost(booster).feature_names == tuple("éßpqrs")


@pytest.mark.parametrize("name", ["a[b", "a]b", "a<b"])
def test_names_that_xgboost_refuses_are_refused(name, tmp_path):
    import pandas as pd

    rows = pd.DataFrame(X[:, :2], columns=[name, "b"])
    with pytest.raises(ValueError, match="feature_names must be string, and may not contain"):
        xgboost.DMatrix(rows)
    model = LambdaMARTRanker(max_iter=2).fit(rows, Y, qid=QID)
    with pytest.raises(ValueError, match=f"feature_names has {re.escape(repr(name))}.*pass feature_names"):
        dump_xgboost(model, tmp_path / "model.json")
    assert not (tmp_path / "model.json").exists()
    dump_xgboost(model, tmp_path / "model.json", feature_names=["a", "b"])


def test_xgboost_knows_what_training_saw(tmp_path):
    """Gains and rows, which its own contributions and importances need."""
    model = HistGBRTRegressor(max_iter=5, gradient_sampling=None, random_state=0).fit(X, Y)
    dump_xgboost(model, tmp_path / "model.json")
    booster = xgboost.Booster(model_file=tmp_path / "model.json")
    parts, start = contributions(model, X[:20].astype(np.float32))
    theirs = booster.predict(matrix(X[:20].astype(np.float32)), pred_contribs=True)
    np.testing.assert_allclose(theirs, np.column_stack([parts, start]), rtol=1e-4, atol=1e-4)
    gains = booster.get_score(importance_type="total_gain")
    ours = model.ensemble_.feature_importances()
    np.testing.assert_allclose([gains.get(f"f{j}", 0) for j in range(6)], ours, rtol=1e-4)
    np.testing.assert_allclose(load_xgboost(booster).feature_importances(), ours, rtol=1e-4)


@pytest.mark.parametrize("objective", ["reg:squarederror", "rank:ndcg"])
def test_contributions_are_xgboosts(objective, tmp_path):
    """The sides of a split weigh as their hessians, which only for a squared error are numbers of rows."""
    rows = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    params = {"objective": objective, "nthread": 1, "max_leaves": 12, "seed": 0}
    booster = xgboost.train(params, matrix(rows, label=Y, qid=QID), 8)
    ensemble = load_xgboost(booster)
    parts, start = contributions(ensemble, rows[:30])
    theirs = booster.predict(matrix(rows[:30]), pred_contribs=True)
    np.testing.assert_allclose(np.column_stack([parts, start]), theirs, atol=1e-5)
    pairs = booster.predict(matrix(rows[:30]), pred_interactions=True)[:, :-1, :-1]
    np.testing.assert_allclose(interactions(ensemble, rows[:30]), pairs, atol=1e-5)
    again = EnsembleRanker(Ensemble.from_bytes(ensemble.to_bytes()))
    assert contributions(again, rows[:30]).values.tobytes() == parts.tobytes()
    dump_xgboost(again, tmp_path / "model.json")
    written = xgboost.Booster(model_file=tmp_path / "model.json")
    np.testing.assert_allclose(written.predict(matrix(rows[:30]), pred_contribs=True), theirs, atol=1e-5)


def test_all_trees_of_a_booster_are_taken():
    held_out = [(matrix(X[600:], label=Y[600:]), "held_out")]
    stopping = {"evals": held_out, "early_stopping_rounds": 3, "verbose_eval": False}
    params = {"nthread": 1, "learning_rate": 0.9}
    booster = xgboost.train(params, matrix(X[:600], label=Y[:600]), 60, **stopping)
    assert booster.best_iteration + 1 < booster.num_boosted_rounds()
    assert_close(load_xgboost(booster).predict(X), margins(booster, X))


def test_scores_of_a_classifier_are_its_decisions(tmp_path):
    model = HistGBRTClassifier(max_iter=5, random_state=0).fit(X, Y > 1)
    dump_xgboost(model, tmp_path / "model.json")
    rows = X.astype(np.float32)
    booster = xgboost.Booster(model_file=tmp_path / "model.json")
    assert_close(margins(booster, rows), model.decision_function(rows))
    assert_close(booster.predict(matrix(rows)), model.predict_proba(rows)[:, 1])
    read = load_xgboost(booster)
    assert_close(read.predict(rows), model.decision_function(rows))
    assert_close(EnsembleRanker(read).predict(rows), model.predict_proba(rows)[:, 1])


@pytest.mark.parametrize("loss", ["poisson", "logistic", "squared_error"])
def test_predictions_of_a_regressor_are_those_of_the_model(loss, tmp_path):
    labels = (Y > 1).astype(float) if loss == "logistic" else Y
    model = HistGBRTRegressor(loss, max_iter=5, random_state=0).fit(X, labels)
    dump_xgboost(model, tmp_path / "model.json")
    rows = X.astype(np.float32)
    booster = xgboost.Booster(model_file=tmp_path / "model.json")
    np.testing.assert_allclose(booster.predict(matrix(rows)), model.predict(rows), rtol=5e-6)
    read = load_xgboost(booster)
    assert_close(read.predict(rows), model.ensemble_.predict(rows))
    np.testing.assert_allclose(EnsembleRanker(read).predict(rows), model.predict(rows), rtol=5e-6)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
@example(LARGEST)
@example(-LARGEST)
@example(-np.inf)
def test_doubles_go_where_they_go_once_they_are_rounded(cut):
    cut = np.float32(cut)
    (last,) = last_float64_rounded_to(np.array([cut], np.float32))
    steps = np.array([-3, -2, -1, 0, 1, 2, 3])
    with np.errstate(over="ignore", invalid="ignore"):  # steps from infinity
        around = [last + steps * np.spacing(last), cut + steps * np.spacing(cut).astype(float)]
        around = np.concatenate([*around, [-np.inf, -1e39, 1e39, np.inf]])
        np.testing.assert_array_equal(around.astype(np.float32) <= cut, around <= last)


def test_doubles_between_two_float32_reach_the_leaves_that_xgboost_sends_them_to():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 3)).astype(np.float32)
    booster = train({}, rows, rows.sum(axis=1))
    ensemble = load_xgboost(booster)
    cuts = ensemble.nodes["cut"][ensemble.nodes["feature"] >= 0]
    hard = rng.choice(np.concatenate([cuts, np.nextafter(cuts, 9), np.nextafter(cuts, -9)]), (500, 3))
    assert_close(ensemble.predict(hard), margins(booster, hard))


def test_the_suffix_must_be_what_xgboost_looks_at(tmp_path):
    with pytest.raises(ValueError, match=r"model.ubj'; expected the suffix '.json'"):
        dump_xgboost(reference_model(), tmp_path / "model.ubj")
    with pytest.raises(TypeError, match=r"model is a \w+Path; expected a tree estimator"):
        dump_xgboost(tmp_path / "model.json", reference_model())


def reference_model():
    return reference.with_whole_categories(reference.random_ensemble(np.random.default_rng(0)))


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"objective": "multi:softprob", "num_class": 3}, "a model of several classes or targets"),
        ({"booster": "gblinear"}, "a model of the booster 'gblinear', expected trees"),
        (
            {"objective": "survival:cox"},
            "the objective 'survival:cox': it is not known from what value its scores start, .*: "
            "train it with one",
        ),
        ({"objective": "binary:logitraw"}, "the objective 'binary:logitraw': it is not known"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_models_that_are_no_such_sum_are_refused(params, message):
    labels = np.minimum(Y, 1 if "logit" in str(params) else 2) + 0.0
    booster = xgboost.train({"nthread": 1} | params, matrix(np.nan_to_num(X), label=labels), 2)
    with pytest.raises(ValueError, match=message):
        load_xgboost(booster)


def test_a_model_without_trees_is_refused():
    """XGBoost 3.2 starts from base_score itself where nothing has estimated it, XGBoost 3.0 its logit."""
    with pytest.raises(
        ValueError, match=r"a model without trees: versions of XGBoost differ .* at least one"
    ):
        load_xgboost(train({"objective": "binary:logistic"}, y=np.minimum(Y, 1.0), n=0))


def test_an_estimator_that_takes_other_values_for_missing_is_refused():
    model = xgboost.XGBRegressor(n_estimators=2, missing=0.0, n_jobs=1).fit(X, Y)
    with pytest.raises(ValueError, match=r"a model with missing=0.0, expected NaN"):
        load_xgboost(model)


WRITTEN = train(n=2).save_raw("json").decode()


def test_trees_that_are_not_there_are_missed():
    model = json.loads(WRITTEN)
    model["learner"]["gradient_booster"]["model"]["trees"].pop()
    with pytest.raises(
        ValueError, match=r"not a model of XGBoost in JSON \(ValueError: 1 trees, expected num_trees=2"
    ):
        _ensemble_of(json.dumps(model))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("tree_info", [0, 1], r"tree_info=\[0, 1\], expected 0 for each of 2 trees"),
        ("tree_info", [0], r"tree_info=\[0\], expected 0 for each of 2 trees"),
        (
            "iteration_indptr",
            [0, 1],
            r"iteration_indptr=\[0, 1\] does not rise from 0 to the number of trees, 2",
        ),
        ("iteration_indptr", [1, 2], r"iteration_indptr=\[1, 2\] does not rise from 0"),
        ("iteration_indptr", [0, 2, 1, 2], r"iteration_indptr=\[0, 2, 1, 2\] does not rise from 0"),
        ("iteration_indptr", [], r"iteration_indptr=\[\] does not rise from 0"),
        ("iteration_indptr", 1, r"damaged .TypeError"),
    ],
)
def test_trees_that_xgboost_would_leave_out_are_refused(name, value, message):
    model = json.loads(WRITTEN)
    model["learner"]["gradient_booster"]["model"][name] = value
    with pytest.raises(ValueError, match=message):
        _ensemble_of(json.dumps(model))


def test_rounds_of_several_trees_are_read():
    load_xgboost(train({"num_parallel_tree": 2}, n=2))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("num_feature", "2000000000", "num_feature=2000000000, expected at most"),
        ("num_feature", "x", "damaged .num_feature: invalid literal"),
        ("num_target", "x", "damaged .num_target: invalid literal"),
        ("base_score", "x", "damaged .base_score: Expecting value"),
        ("base_score", '["x"]', "damaged .base_score: could not convert"),
        ("base_score", "null", "damaged .TypeError"),
        (
            "base_score",
            str(2**64),
            "damaged .base_score: the whole number 18446744073709551616, expected",
        ),
        ("base_score", str(-(2**63) - 1), "damaged .base_score: the whole number -9223372036854775809"),
        ("base_score", "-3", "base_score=-3 of 'count:poisson': "),
        ("num_class", [], "damaged .TypeError"),
    ],
)
def test_what_is_wrong_with_a_model_is_told(name, value, message):
    model = json.loads(train({"objective": "count:poisson"}, n=1).save_raw("json"))
    model["learner"]["learner_model_param"][name] = value
    with pytest.raises(ValueError, match=message):
        _ensemble_of(json.dumps(model))


def test_an_infinite_number_of_trees_is_refused():
    text = WRITTEN.replace('"num_trees":"2"', '"num_trees":1e400')
    assert text != WRITTEN
    with pytest.raises(ValueError, match=r"not a model of XGBoost in JSON \(OverflowError"):
        _ensemble_of(text)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (None, r"weight_drop has the shape \(\), expected one number for each of 2 trees"),
        ([0.5], r"weight_drop has the shape \(1,\), expected one number for each of 2 trees"),
        (["x", 1], "damaged .weight_drop: could not convert"),
        ([float("nan"), 1], "tree 0, node 0: value must be finite"),
    ],
)
@pytest.mark.parametrize("nested", [True, False])
def test_dart_needs_a_weight_for_each_tree(weights, message, nested):
    with pytest.raises(ValueError, match=message):
        _ensemble_of(json.dumps(with_weights(weights, nested)))


def with_weights(weights, nested):
    """A model of two trees with these weights, as XGBoost has written it until 3.3 (nested), or since."""
    whole = json.loads(WRITTEN)
    booster = whole["learner"]["gradient_booster"]
    if nested:
        whole["learner"]["gradient_booster"] = {"name": "dart", "gbtree": booster, "weight_drop": weights}
    else:
        booster["model"]["weight_drop"] = weights
    return whole


@pytest.mark.parametrize("nested", [True, False])
def test_trees_count_as_much_as_their_weights_say(nested):
    plain, weighted = _ensemble_of(WRITTEN), _ensemble_of(json.dumps(with_weights([0.5, 2.0], nested)))
    first, both = (plain.first(n).predict(X) - plain.base for n in (1, 2))
    assert_close(weighted.predict(X), plain.base + 0.5 * first + 2.0 * (both - first))


def test_a_part_of_the_model_that_is_not_known_is_refused():
    whole = json.loads(WRITTEN)
    whole["learner"]["gradient_booster"]["model"]["tree_gates"] = [1, 1]
    with pytest.raises(
        ValueError, match=r"has tree_gates, which .* up to 3\.4 do not write; expected cats, "
    ):
        _ensemble_of(json.dumps(whole))


PLACES = [found.start() for found in re.finditer(r"[\w.+-]+|[\[\]{}:,]", WRITTEN)]
JUNK = ["", "0", "-1", "1.5", "Infinity", "NaN", "null", '"x"', "[]", "{}", str(2**70), "1e300", "true"]


@given(st.sampled_from(PLACES), st.sampled_from(JUNK), st.integers(0, 12))
@settings(max_examples=300, deadline=None)
def test_a_file_that_was_changed_is_a_model_or_a_value_error(place, junk, n_removed):
    with contextlib.suppress(ValueError):
        _ensemble_of(WRITTEN[:place] + junk + WRITTEN[place + n_removed :])


def test_what_is_no_model_is_refused(tmp_path):
    with pytest.raises(TypeError, match="model is a Ridge; expected the path of a model in JSON"):
        load_xgboost(Ridge())
    train().save_model(tmp_path / "model.ubj")
    with pytest.raises(
        ValueError,
        match=r"model.ubj: not a model of XGBoost in JSON \(it looks like UBJSON, .*"
        r"\.save_model\(.model.json.\) .*ends in .json, or the model itself",
    ):
        load_xgboost(tmp_path / "model.ubj")
    LambdaMARTRanker(max_iter=2).fit(X, Y, qid=QID).save(tmp_path / "model.rkt")
    with pytest.raises(
        ValueError,
        match=r"model.rkt: not a model of XGBoost in JSON; it is a model of ranktrees: use Ensemble.load",
    ):
        load_xgboost(tmp_path / "model.rkt")
    (tmp_path / "model.json").write_text("{")
    with pytest.raises(ValueError, match=r"model.json: not a model of XGBoost in JSON \(JSONDecodeError"):
        load_xgboost(tmp_path / "model.json")
    (tmp_path / "model.json").write_text('{"learner": 3}')
    with pytest.raises(ValueError, match=r"model.json: not a model of XGBoost in JSON"):
        load_xgboost(tmp_path / "model.json")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("left_children", [1, 0, -1], "children do not form a tree"),
        ("left_children", [5, -1, -1], "left_children has entries that are not whole numbers from -1 to 2"),
        (
            "left_children",
            [2**62, -1, -1],
            "tree 0: left_children has entries that are not whole numbers from -1 to 2",
        ),
        (
            "left_children",
            [2**70, -1, -1],
            "the whole number 1180591620717411303424, expected numbers",
        ),
        ("left_children", [1.5, -1, -1], "tree 0: left_children has entries that are not"),
        (
            "split_indices",
            [9, 0, 0],
            "tree 0: split_indices has entries that are not whole numbers from 0 to 5",
        ),
        ("split_conditions", ["x", 0, 0], "tree 0: damaged .split_conditions: could not convert"),
        ("split_conditions", [0.5, 0], r"tree 0: split_conditions has the shape \(2,\)"),
        ("split_type", [2, 0, 0], "tree 0: split_type has entries that are not"),
        ("split_type", [0, [0], 0], "tree 0: damaged .split_type: setting an array element"),
        ("default_left", None, r"tree 0: default_left has the shape \(\)"),
        ("base_weights", [float("inf"), 0, 0], "tree 0, node 0: value"),
    ],
)
def test_what_is_wrong_with_a_tree_is_told(name, value, message):
    model = json.loads(train({"max_depth": 1}, n=1).save_raw("json"))
    tree = model["learner"]["gradient_booster"]["model"]["trees"][0]
    assert len(tree["left_children"]) == 3
    tree[name] = value
    with pytest.raises(ValueError, match=message):
        _ensemble_of(json.dumps(model))


def test_models_of_before_there_were_categories_are_read():
    model = json.loads(WRITTEN)
    for tree in model["learner"]["gradient_booster"]["model"]["trees"]:
        for name in [name for name in tree if name.startswith("categories") or name == "split_type"]:
            del tree[name]
    assert _ensemble_of(json.dumps(model)) == _ensemble_of(WRITTEN)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("categories", None, "damaged .TypeError"),
        ("categories_sizes", [-1], "tree 0: categories_sizes has entries that are not whole numbers from 0"),
        ("categories_sizes", [99], "tree 0: categories_sizes has entries that are not"),
        (
            "categories_segments",
            [1],
            "tree 0: categories_segments and categories_sizes reach beyond categories",
        ),
        ("categories_nodes", [7], "damaged .KeyError: 0"),
    ],
)
def test_what_is_wrong_with_sets_is_told(name, value, message):
    rows = np.arange(40, dtype=np.float32)[:, None] % 4
    booster = train({"max_depth": 1}, rows, rows[:, 0] == 2, n=1, kinds=["c"])
    model = json.loads(booster.save_raw("json"))
    model["learner"]["gradient_booster"]["model"]["trees"][0][name] = value
    with pytest.raises(ValueError, match=message):
        _ensemble_of(json.dumps(model))


def test_categories_from_256_on_are_refused():
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 400, (4000, 1)).astype(np.float32)
    booster = train({"max_cat_to_onehot": 1}, rows, np.sin(rows[:, 0] * 7), kinds=["c"])
    with pytest.raises(ValueError, match="categories has entries that are not whole numbers from 0 to 255"):
        load_xgboost(booster)


def test_models_that_another_function_reads(tmp_path):
    readers = {"LightGBM": load_lightgbm, "XGBoost": load_xgboost, "CatBoost": load_catboost}
    files = {"LightGBM": tmp_path / "model.txt", "XGBoost": tmp_path / "model.json"}
    model = LambdaMARTRanker(max_iter=1).fit(X, Y, qid=QID)
    dump_lightgbm(model, files["LightGBM"])
    dump_xgboost(model, files["XGBoost"])
    files["CatBoost"] = tmp_path / "model.cbm"
    files["CatBoost"].write_bytes(b"CBM1 and so on")
    for library, read in readers.items():
        for other, file in files.items():
            if other != library:
                told = rf"it is a model of {other}: use load_{other.lower()}$"
                with pytest.raises(ValueError, match=told):
                    read(file)
        with pytest.raises(ValueError, match=r"model is a text of \d+ characters; expected the path of"):
            read(files["LightGBM"].read_text())
    files["CatBoost"].write_text('{"scale_and_bias": [1, [0]]}')
    with pytest.raises(ValueError, match=r"it is a model of CatBoost: use load_catboost$"):
        load_xgboost(files["CatBoost"])


def test_boosters_where_models_of_rows_are_expected():
    booster = train(n=1)
    with pytest.raises(TypeError, match=r"model is a Booster; .* Pass ranktrees.load_xgboost\(model\)\.$"):
        contributions(booster, X)
    with pytest.raises(ValueError, match=r"init is a Booster of XGBoost; .* load_xgboost\(booster\)\.$"):
        LambdaMARTRanker(init=booster).fit(X, Y, qid=QID)
