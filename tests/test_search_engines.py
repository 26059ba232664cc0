"""The files that search engines read, scored as their sources do (`reference.engines`)."""

import json

import numpy as np
import pytest

from ranktrees import (
    Ensemble,
    HistGBRTRegressor,
    LambdaMARTRanker,
    dump_elasticsearch,
    dump_lightgbm,
    dump_onnx,
    dump_ranklib,
    dump_solr,
    dump_xgboost,
    make_ranking,
)
from ranktrees.formats.plain import first_float32_above
from ranktrees.formats.solr import SLACK, _less_slack
from ranktrees.support.cuts import round_down
from reference import engines
from reference import scoring as reference

LARGEST = float(np.finfo(np.float32).max)
NAMES = ["title", "body", "clicks", "age of page"]


def random_model(rng, average=False):
    cuts = np.array([0.0, 1.0, -1.0, 0.1, -3.7, 1e-3, 12345.678, 2.0**30, -(2.0**25)])
    return reference.random_ensemble(
        rng, rng.integers(0, 6), 16, cuts=cuts, categorical=False, base=rng.normal(), average=average
    )


def elasticsearch(model, path, X):
    dump_elasticsearch(model, path, feature_names=NAMES)
    return engines.elasticsearch(path.read_text(), NAMES, X)


def solr(model, path, X):
    dump_solr(model, path, feature_names=NAMES, missing_values=True)
    return engines.solr(path.read_text(), X)


def ranklib(model, path, X):
    dump_ranklib(model, path)
    return engines.ranklib(path.read_text(), X)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("engine", [elasticsearch, solr, ranklib])
def test_engines_score_as_the_model_does(seed, engine, tmp_path):
    rng = np.random.default_rng(seed)
    ensemble = random_model(rng, average=seed % 4 == 0)
    rows = reference.rows_for_others(rng, ensemble, 50, np.float32)
    rows[abs(rows) > 1e30] = 5
    if engine is ranklib:
        rows = np.nan_to_num(rows)
    scores = engine(ensemble, tmp_path / "model", rows)
    np.testing.assert_allclose(scores, ensemble.predict(rows), rtol=1e-5, atol=1e-5)


def test_what_was_trained_scores_as_it_does(tmp_path):
    X, y, qid = make_ranking(30, rows_per_query=20, n_features=4, random_state=0, return_X_y_qid=True)
    ranker = LambdaMARTRanker(max_iter=10, random_state=0).fit(X, y, qid=qid)
    rows = X.astype(np.float32)
    for engine in (elasticsearch, solr, ranklib):
        scores = engine(ranker, tmp_path / "model", rows)
        np.testing.assert_allclose(scores, ranker.predict(rows), rtol=1e-5, atol=1e-6)


def test_solr_before_missing_values_reads_a_model_that_says_nothing_of_them(tmp_path):
    ensemble = random_model(np.random.default_rng(1))
    dump_solr(ensemble, tmp_path / "model", name="mine", feature_names=NAMES)
    text = (tmp_path / "model").read_text()
    assert "missing" not in text
    assert "isNullSameAsZero" not in text
    model = json.loads(text)
    assert model["name"] == "mine"
    assert model["class"] == "org.apache.solr.ltr.model.MultipleAdditiveTreesModel"
    assert model["features"] == [{"name": name} for name in NAMES]


def test_names_of_the_frame_are_those_of_the_features(tmp_path):
    import pandas as pd

    X = np.random.default_rng(0).normal(size=(60, 2))
    model = HistGBRTRegressor(max_iter=2, gradient_sampling=None, max_features=1.0)
    model.fit(pd.DataFrame(X, columns=["a", "b"]), X[:, 1])
    dump_elasticsearch(model, tmp_path / "model")
    assert json.loads((tmp_path / "model").read_text())[0]["split"] == "b"


@pytest.mark.parametrize("dump", [dump_elasticsearch, dump_lightgbm, dump_onnx, dump_solr, dump_xgboost])
def test_names_of_columns_in_another_order_are_no_new_names(dump, tmp_path):
    ensemble = random_model(np.random.default_rng(0))
    named, path = ensemble._with_columns(list("abcd"), {}), tmp_path / "model.json"
    with pytest.raises(
        ValueError,
        match=r"feature_names=\['b', .* the columns of the trees are called \['a', .*'b' has another place",
    ):
        dump(named, path, feature_names=list("bacd"))
    for wrong in ("abcd", set("abcd"), dict.fromkeys("abcd")):
        with pytest.raises(
            ValueError, match=r"feature_names=.*; expected a name for each column, in their or"
        ):
            dump(ensemble, path, feature_names=wrong)
    assert not path.exists()
    dump(named, path, feature_names=["a", "clicks", "c", "d"])
    renamed = path.read_bytes()
    dump(ensemble._with_columns(["a", "clicks", "c", "d"], {}), path)
    assert path.read_bytes() == renamed


def test_thresholds_of_solr_are_the_last_that_go_left():
    rng = np.random.default_rng(0)
    size = 10.0 ** rng.uniform(-12, 8, 100_000)
    wanted = (size * rng.choice([-1, 1], len(size))).astype(np.float32)
    off = abs((_less_slack(wanted) + SLACK).astype(float) - wanted)
    assert not off[wanted >= 4e-6].any()
    assert (off <= np.maximum(abs(np.spacing(wanted)), 3e-13)).all()


@pytest.mark.parametrize("engine", [elasticsearch, solr, ranklib])
@pytest.mark.parametrize("cut", [np.inf, -np.inf, LARGEST, -LARGEST, 1e300, -1e300])
def test_missing_values_apart_from_all_others(engine, cut, tmp_path):
    """A cut at infinity, of which JSON knows nothing, or beside the largest numbers, which rows may have."""
    ensemble = Ensemble.from_trees([reference.stump(cut=cut, missing_left=0)] * 2, n_features=4)
    rows = np.array([[0.0], [LARGEST], [-LARGEST], [np.nan]])[: 3 if engine is ranklib else 4] + np.zeros(4)
    np.testing.assert_array_equal(engine(ensemble, tmp_path / "model", rows), ensemble.predict(rows))
    assert "inf" not in (tmp_path / "model").read_text().lower()


@pytest.mark.parametrize("value", [0.1, -0.1, 1.0, 0.0, 1e-45, 1e-50, -1e-50, 3.4e38, 1e300, -1e300])
def test_float32_beside_a_cut(value):
    (last,), (first,) = round_down(np.array([value])), first_float32_above(np.array([value]))
    assert float(last) <= value < float(first)
    with np.errstate(over="ignore"):
        assert np.nextafter(last, np.float32(np.inf)) == first


@pytest.mark.parametrize("dump", [dump_elasticsearch, dump_solr, dump_ranklib])
def test_values_beyond_single_precision_are_refused(dump, tmp_path):
    ensemble = Ensemble.from_trees([reference.stump(values=(1e200, 0))], n_features=1, feature_names=["x"])
    with pytest.raises(
        ValueError, match=r"the model has the value 1e\+200, expected numbers within single precision"
    ):
        dump(ensemble, tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "dump", [dump_elasticsearch, dump_lightgbm, dump_onnx, dump_ranklib, dump_solr, dump_xgboost]
)
def test_a_path_and_a_model_are_what_they_are_called(dump, tmp_path):
    model = random_model(np.random.default_rng(0))._with_columns(list("abcd"), {})
    with pytest.raises(TypeError, match="path is a NoneType; expected the path of a file"):
        dump(model, None)
    with pytest.raises(TypeError, match=r"model is a str; expected a tree.* pass Ensemble\.load\(path\)"):
        dump(str(tmp_path / "model.json"), model)


def test_depths_are_those_of_nodes(tmp_path):
    dump_elasticsearch(deep_tree(5), tmp_path / "model")
    (node,) = json.loads((tmp_path / "model").read_text())
    for depth in range(5):
        assert node["depth"] == depth
        node = node["children"][1]


@pytest.mark.parametrize("dump", [dump_elasticsearch, dump_solr, dump_ranklib])
def test_what_engines_do_not_know_is_refused(dump, tmp_path):
    categorical = reference.random_ensemble(np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"splits feature 1 by categories, but .* supports cuts only"):
        dump(categorical, tmp_path / "model")
    if dump is not dump_ranklib:
        with pytest.raises(
            ValueError, match=r"identifies features by name, .* expected feature_names: pass 4 strings"
        ):
            dump(random_model(np.random.default_rng(0)), tmp_path / "model")
    deep = deep_tree(300)
    with pytest.raises(ValueError, match="the trees are 300 splits deep, expected at most 250"):
        dump(deep, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def deep_tree(depth):
    """Each split has a leaf on its left side."""
    nodes = np.resize(reference.stump()[1:2], 2 * depth + 1)
    nodes["feature"][:-1:2] = 0
    nodes["left"][:-1:2], nodes["right"][:-1:2] = np.arange(1, 2 * depth, 2), np.arange(2, 2 * depth + 1, 2)
    return Ensemble.from_trees([nodes], n_features=1, feature_names=["x"])
