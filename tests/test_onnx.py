"""ONNX, with onnxruntime as the judge."""

import json
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

from ranktrees import HistGBRTClassifier, HistGBRTRegressor, LambdaMARTRanker, dump_onnx, make_ranking
from reference import scoring as reference

X, Y, QID = make_ranking(40, rows_per_query=20, n_features=6, random_state=0, return_X_y_qid=True)
TOLERANCE = {"float32": 2e-6, "float64": 1e-12}


def scores_of(path, X):
    onnx.checker.check_model(onnx.load(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    (scores,) = onnxruntime.InferenceSession(path, options).run(["score"], {"X": X})
    assert scores.shape == (len(X), 1)
    return scores[:, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(20))
def test_onnxruntime_scores_as_the_model_does(seed, dtype, tmp_path):
    rng = np.random.default_rng(seed)
    settings = {"base": rng.normal(), "average": seed % 5 == 0, "categorical": dtype == "float64"}
    ensemble = reference.random_ensemble(rng, rng.integers(0, 6), 16, many=seed % 4 == 1, **settings)
    ensemble = reference.with_whole_categories(ensemble)
    rows = reference.rows_for_others(rng, ensemble, 50, dtype)
    dump_onnx(ensemble, tmp_path / "model.onnx", dtype=dtype)
    tolerance = TOLERANCE[dtype]
    scores = scores_of(tmp_path / "model.onnx", rows)
    np.testing.assert_allclose(scores, ensemble.predict(rows), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_was_trained_scores_as_it_does(dtype, tmp_path):
    ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(X, Y, qid=QID)
    dump_onnx(ranker, tmp_path / "model.onnx", dtype=dtype)
    rows, tolerance = X.astype(dtype), TOLERANCE[dtype]
    scores = scores_of(tmp_path / "model.onnx", rows)
    np.testing.assert_allclose(scores, ranker.predict(rows), rtol=tolerance, atol=tolerance)


def outputs_of(path, X):
    onnx.checker.check_model(onnx.load(path), full_check=True)
    session = onnxruntime.InferenceSession(path)
    return {
        output.name: values
        for output, values in zip(session.get_outputs(), session.run(None, {"X": X}), strict=True)
    }


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("classes", [(False, True), (3, -2), (1.0, 0.0), ("no", "déjà"), ("b", "a")])
def test_classifiers_have_labels_and_probabilities(classes, dtype, tmp_path):
    labels = np.where(Y > 1, *classes)
    model = HistGBRTClassifier(max_iter=5, random_state=0).fit(X, labels)
    dump_onnx(model, tmp_path / "model.onnx", dtype=dtype)
    rows, tolerance = X.astype(dtype), TOLERANCE[dtype]
    found = outputs_of(tmp_path / "model.onnx", rows)
    assert list(found) == ["label", "probabilities", "score"]
    assert found["label"].dtype == (object if isinstance(classes[0], str) else np.int64)
    np.testing.assert_array_equal(found["label"], model.predict(rows))
    np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), atol=tolerance)
    np.testing.assert_allclose(
        found["score"][:, 0], model.decision_function(rows), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("loss", ["poisson", "logistic"])
def test_predictions_are_by_the_link(loss, dtype, tmp_path):
    model = HistGBRTRegressor(loss, max_iter=5, random_state=0).fit(X, np.minimum(Y, 1.0))
    rows, tolerance = X.astype(dtype), TOLERANCE[dtype]
    for each in (model, model.ensemble_):
        dump_onnx(each, tmp_path / "model.onnx", dtype=dtype)
        found = outputs_of(tmp_path / "model.onnx", rows)
        assert list(found) == ["prediction", "score"]
        np.testing.assert_allclose(found["prediction"][:, 0], model.predict(rows), rtol=tolerance)
        scores = model.ensemble_.predict(rows)
        np.testing.assert_allclose(found["score"][:, 0], scores, rtol=tolerance, atol=tolerance)
    dump_onnx(model.ensemble_.with_link(None), tmp_path / "model.onnx", dtype=dtype)
    assert list(outputs_of(tmp_path / "model.onnx", rows)) == ["score"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_infinite_values_are_told_from_missing_ones(dtype, tmp_path):
    """Where a split parts missing values from all others, its cut is infinite."""
    cuts = np.array([np.inf, -np.inf, 1e300, -1e300, 0.5])
    for missing_left in (0, 1):
        trees = [reference.stump(cut, missing_left, (1.0 + t, -t)) for t, cut in enumerate(cuts)]
        ensemble = reference.Ensemble.from_trees(trees, n_features=1)
        dump_onnx(ensemble, tmp_path / "model.onnx", dtype=dtype)
        rows = np.array([[np.inf], [-np.inf], [np.nan], [0.0], [3.4e38], [-3.4e38]], dtype)
        np.testing.assert_allclose(scores_of(tmp_path / "model.onnx", rows), ensemble.predict(rows))


def test_names_of_columns_are_a_property(tmp_path):
    model = HistGBRTRegressor(max_iter=2).fit(X[:, :2], Y)
    dump_onnx(model, tmp_path / "model.onnx")
    assert not onnx.load(tmp_path / "model.onnx").metadata_props
    dump_onnx(model, tmp_path / "model.onnx", feature_names=["clicks", "age of page"])
    (names,) = onnx.load(tmp_path / "model.onnx").metadata_props
    assert (names.key, json.loads(names.value)) == ("feature_names", ["clicks", "age of page"])


def test_what_cannot_be_written_is_refused(tmp_path, monkeypatch):
    ensemble = reference.with_whole_categories(reference.random_ensemble(np.random.default_rng(0)))
    with pytest.raises(
        ValueError,
        match=r"splits feature 1 by categories, but TreeEnsembleRegressor supports cuts.* dtype='float64'",
    ):
        dump_onnx(ensemble, tmp_path / "model.onnx")
    with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64', got 'float16'"):
        dump_onnx(ensemble, tmp_path / "model.onnx", dtype="float16")
    large = HistGBRTClassifier(max_iter=2).fit(X, np.where(Y > 1, 2**63, np.uint64(1)))
    with pytest.raises(ValueError, match=r"the classes are \[1, 9223372036854775808\]; expected whole numb"):
        dump_onnx(large, tmp_path / "model.onnx")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r'install it with: pip install "ranktrees\[onnx\]"'):
        dump_onnx(ensemble, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
