"""One grammar for all that is public: each argument has one name and one place."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import ranktrees
from ranktrees import LambdaMARTRanker, make_ranking
from ranktrees.measures import Measure, PreparedMeasure
from ranktrees.objectives import Objective, PreparedObjective

DOCS = Path(__file__).resolve().parents[1] / "docs" / "api"
PACKAGES = (
    "datasets",
    "displays",
    "evaluation",
    "growing",
    "inspection",
    "measures",
    "meta",
    "model",
    "objectives",
    "processes",
    "rows",
)


def listed():
    """The names that the API reference lists, with the package of each behind `ranktrees`."""
    names = set(re.findall(r"^   ([\w.]+)$", (DOCS / "index.md").read_text(), re.M))
    return names | {
        f"measures.{name}" for name in re.findall(r"^   (\w+)$", (DOCS / "measures.md").read_text(), re.M)
    }


def public():
    """What packages export: by its shortest name. Of `rows`, only what the API reference lists."""
    found = {name: getattr(ranktrees, name) for name in ranktrees.__all__}
    for package in PACKAGES:
        module = importlib.import_module(f"ranktrees.{package}")
        for name in module.__all__:
            value = getattr(module, name)
            is_listed = package not in ("rows", "model") or f"{package}.{name}" in listed()
            if is_listed and not any(value is known for known in found.values()):
                found[f"{package}.{name}"] = value
    return found


PUBLIC = public()
FUNCTIONS = {name: value for name, value in PUBLIC.items() if inspect.isfunction(value)}


def methods_of(base):
    """The methods of public classes that derive from `base`, each once, by qualified name."""
    return {
        method.__qualname__: method
        for value in PUBLIC.values()
        if inspect.isclass(value) and issubclass(value, base)
        for name, method in inspect.getmembers(
            value, lambda one: inspect.isfunction(one) or inspect.ismethod(one)
        )
        if not name.startswith("_") and method.__module__.startswith("ranktrees.")
    }


CALLS = FUNCTIONS | methods_of(object)
# What a measure or a loss of one's own has as well: the library calls it, with a number of threads.
OF_ONES_OWN = methods_of(Measure | PreparedMeasure | Objective | PreparedObjective)


def parameters_of(call):
    return {name: one for name, one in inspect.signature(call).parameters.items() if name != "self"}


@pytest.mark.parametrize("name", CALLS)
def test_arguments_have_one_name_and_one_place(name):
    parameters = parameters_of(CALLS[name])
    names = list(parameters)
    if "y_true" in names:
        assert names[0] == "y_true"
        assert names[1] in ("y_score", "scores_a", "scores")
    for one in names:
        if one == "ids" or one.startswith("qid"):
            assert parameters[one].kind is inspect.Parameter.KEYWORD_ONLY, one
    if "model" in names:
        assert names[0] == "model"
    for before, after in (("X", "y"), ("scores_a", "scores_b")):
        if before in names and after in names:
            assert names.index(after) == names.index(before) + 1
    assert not {"measures", "ranker", "ensemble"} & parameters.keys()


@pytest.mark.parametrize("name", CALLS)
def test_the_number_of_threads_is_n_jobs(name):
    if name not in OF_ONES_OWN:
        assert "n_threads" not in parameters_of(CALLS[name])


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name.startswith("dump_")])
def test_a_path_follows_what_is_written(name):
    parameters = parameters_of(FUNCTIONS[name]).values()
    positional = [one.name for one in parameters if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert positional in (["model", "path"], ["X", "y", "path"], ["y_score", "path"], ["y", "path"])


# ---- models ------------------------------------------------------------------------------------------------

X, Y, QID = make_ranking(20, n_features=4, rows_per_query=6, random_state=0, return_X_y_qid=True)
RANKER = LambdaMARTRanker(max_iter=8, max_leaf_nodes=4, random_state=0).fit(X, Y, qid=QID)
LABELLED = {"X": X, "y": Y, "qid": QID}
MORE = {  # what a call needs behind its model
    "contributions": {"X": X},
    "interactions": {"X": X},
    "inspection.partial_dependence": {"X": X, "feature": 0},
    "inspection.accumulated_local_effects": {"X": X, "feature": 0},
    "inspection.permutation_importance": LABELLED,
    "inspection.local_optimum": LABELLED | {"n_directions": 3, "random_state": 0},
    "pick_early_exit": LABELLED | {"tolerated_loss": 0.5, "confidence": None},
    "refine_weights": LABELLED,
    "score_curves": LABELLED,
    "inspection.importances": {},
    "inspection.tree_graph": {},
    "tree_table": {},
}
WRITERS = [name for name in FUNCTIONS if name.startswith("dump_") and "model" in parameters_of(CALLS[name])]
OF_OTHERS = {"load_lightgbm", "load_xgboost", "load_catboost"}
OF_CLICKS = "inspection.position_bias"  # of which an ensemble knows nothing
OF_BATCHES = "datasets.score_batches"  # by any model that predicts


def alike(one, two):
    if isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, two)
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, two)
    elif hasattr(one, "to_frame"):
        pd.testing.assert_frame_equal(one.to_frame(), two.to_frame())
    else:
        assert repr(one) == repr(two)


def test_functions_of_a_model_are_known():
    of_a_model = {name for name, call in FUNCTIONS.items() if "model" in parameters_of(call)}
    assert of_a_model == {*MORE, *WRITERS, *OF_OTHERS, OF_CLICKS, OF_BATCHES}


@pytest.mark.parametrize("name", MORE)
def test_an_estimator_and_its_ensemble_are_the_same_model(name):
    call = FUNCTIONS[name]
    alike(call(RANKER, **MORE[name]), call(RANKER.ensemble_, **MORE[name]))


@pytest.mark.parametrize("name", WRITERS)
def test_an_estimator_and_its_ensemble_are_written_alike(name, tmp_path):
    options = {"feature_names": list("abcd")} if "feature_names" in parameters_of(CALLS[name]) else {}
    for number, model in enumerate((RANKER, RANKER.ensemble_)):
        if name == "dump_onnx":
            pytest.importorskip("onnx")
        CALLS[name](model, tmp_path / f"{number}.json", **options)
    assert (tmp_path / "0.json").read_bytes() == (tmp_path / "1.json").read_bytes()


@pytest.mark.parametrize("name", [*MORE, *WRITERS, OF_CLICKS])
def test_a_pipeline_is_refused_by_all(name, tmp_path):
    more = MORE.get(name, {"path": tmp_path / "model"} if name in WRITERS else {})
    with pytest.raises(
        TypeError, match=r"model is a Pipeline; expected .* Pass its last step, pipeline\[-1\]"
    ):
        CALLS[name](make_pipeline(RANKER), **more)


# ---- the table ---------------------------------------------------------------------------------------------

ROWS = re.findall(
    r"^\| \{py:func\}`([\w.]+)\((.*)\) <ranktrees\.([\w.]+)>` \|", (DOCS / "functions.md").read_text(), re.M
)


def test_the_table_names_each_function_once():
    assert sorted(name for name, _, _ in ROWS) == sorted(FUNCTIONS)
    assert all(name == target for name, _, target in ROWS)


@pytest.mark.parametrize(("name", "call"), [(name, call) for name, call, _ in ROWS])
def test_the_table_says_how_functions_are_called(name, call):
    """It shows the first arguments as they are, up to an ellipsis, if there are more."""
    shown, more, _ = call.partition(", ...")
    parameters = [
        one.replace(annotation=inspect.Parameter.empty) for one in parameters_of(FUNCTIONS[name]).values()
    ]
    n_shown = len(_names(shown))
    assert bool(more) == (n_shown < len(parameters))
    assert f"({shown})" == str(inspect.Signature(parameters[:n_shown]))
    assert all(one.kind is inspect.Parameter.KEYWORD_ONLY for one in parameters[n_shown:])


def _names(arguments):
    one = ast.parse(f"def f({arguments}): 0").body[0].args
    return [
        *one.args,
        *([one.vararg] if one.vararg else []),
        *one.kwonlyargs,
        *([one.kwarg] if one.kwarg else []),
    ]
