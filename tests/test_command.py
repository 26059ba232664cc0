import json
import re
import shlex
import subprocess
import sys
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE, OutputChecker
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ranktrees import (
    LambdaMARTRanker,
    RandomForestRanker,
    compare,
    dump_elasticsearch,
    dump_letor,
    dump_lightgbm,
    dump_onnx,
    dump_ranklib,
    dump_solr,
    dump_xgboost,
    load_letor,
    make_ranking,
)
from ranktrees.command import main
from ranktrees.command.models import dump_ranktrees, load
from ranktrees.measures import AP

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "guide" / "command_line.md"
COMMAND = (
    r"^\$ ranktrees ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)"  # on several lines, perhaps, and what it writes
)
QUICK = "--set max_iter=5 --set random_state=0 --set n_jobs=1"
COLUMNS = "--query query_id --label grade"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with two folds, a Parquet file, a CSV file and models."""
    folder = tmp_path_factory.mktemp("command")
    X, y, qid = make_ranking(40, rows_per_query=10, n_features=5, random_state=0, return_X_y_qid=True)
    for fold in (1, 2):
        (folder / f"Set/Fold{fold}").mkdir(parents=True)
        for part, remainders in {"train": (0, 1), "vali": (2,), "test": (3,)}.items():
            rows = np.isin((qid + fold) % 4, remainders)
            dump_letor(X[rows], y[rows], folder / f"Set/Fold{fold}/{part}.txt", qid=qid[rows])
    frame = pd.DataFrame(X[:, :4], columns=["price", "age", "rating", "stock"])
    thirds = np.digitize(X[:, 4], np.quantile(X[:, 4], [1 / 3, 2 / 3]))
    frame["shop"] = np.array(["017", "4", "corner"])[thirds]
    frame["query_id"], frame["grade"] = [f"q{each}" for each in qid], y
    frame.set_index("query_id").to_parquet(folder / "log.parquet")
    frame.to_csv(folder / "log.csv", index=False)
    frame[frame["shop"] != "corner"].to_csv(folder / "numbers.tsv", index=False, sep="\t")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(shlex.split(f"train Set/Fold1 -o model.rkt {QUICK}")) == 0
        assert main(shlex.split(f"train log.csv {COLUMNS} --categories shop -o shop.rkt {QUICK}")) == 0
    (folder / "list.json").write_text('{"a": 1}')
    (folder / "damaged.rkt").write_bytes((folder / "model.rkt").read_bytes()[:100])
    return folder


@pytest.fixture
def run(made, monkeypatch, capsys):
    """A function that runs a command in that folder, and returns what it writes to standard output."""
    monkeypatch.chdir(made)

    def written(command):
        code = main(shlex.split(command))
        out, err = capsys.readouterr()
        assert (code, err) == (0, "")
        return out

    return written


@pytest.fixture
def refused(made, monkeypatch, capsys):
    """A function that returns what a command that is refused writes to standard error."""
    monkeypatch.chdir(made)

    def written(command, code=1):
        before = {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}
        assert main(shlex.split(command)) == code
        out, err = capsys.readouterr()
        assert out == ""
        assert "Traceback" not in err
        assert {path: path.read_bytes() for path in made.rglob("*") if path.is_file()} == before
        return err

    return written


def expected_of_fold(made):
    (X, y, qid), (X_val, y_val, qid_val) = (
        load_letor(made / f"Set/Fold1/{part}.txt", return_X_y_qid=True) for part in ("train", "vali")
    )
    model = LambdaMARTRanker(max_iter=5, random_state=0)
    return model.fit(X, y, qid=qid, X_val=X_val, y_val=y_val, qid_val=qid_val)


def test_a_fold_is_trained_as_in_python(made, run):
    expected = expected_of_fold(made)
    assert load("model.rkt").ensemble_.digest() == expected.ensemble_.digest()
    scores = [float(line) for line in run("score model.rkt Set/Fold1/test.txt").splitlines()]
    X, _, _ = load_letor(made / "Set/Fold1/test.txt", return_X_y_qid=True)
    assert scores == expected.predict(X).tolist()
    assert run("score model.rkt Set/Fold1/test.txt -o scores.txt") == ""
    assert list(map(float, Path("scores.txt").read_text().split())) == scores


def test_validation_rows_may_be_in_a_file_of_their_own(made, run):
    train = f"train Set/Fold1/train.txt --validation Set/Fold1/vali.txt {QUICK} -o own.rkt --json"
    told = json.loads(run(train))
    assert load("own.rkt").ensemble_ == load("model.rkt").ensemble_
    assert told["validation_score"] == max(expected_of_fold(made).validation_score_)
    assert (told["rows"], told["queries"], told["format"]) == (200, 20, "ranktrees")


def test_files_that_end_at_different_features_belong_together(run):
    lines = [f"{row % 2} qid:{row // 4} 1:{row}" for row in range(40)]
    Path("wide.txt").write_text("\n".join(f"{line} 3:{len(line)}" for line in lines))
    Path("narrow.txt").write_text("\n".join(lines).replace("qid:", "qid:1"))
    run(f"train wide.txt --validation narrow.txt -o wide.rkt --set min_samples_leaf=5 {QUICK}")
    assert load("wide.rkt").n_features_in_ == 3
    assert len(run("score wide.rkt narrow.txt").split()) == 40


def test_ids_of_queries_are_what_is_written(run):
    rows = [(f"{'0' * (row % 2)}{row // 4}", row, row % 3) for row in range(40)]
    pd.DataFrame(rows, columns=["query_id", "age", "grade"]).to_csv("ids.csv", index=False)
    assert "from 40 rows of 20 queries" in run(f"train ids.csv {COLUMNS} -o ids.rkt -e forest")
    assert "query 05: 2 rows" in run("explain ids.rkt ids.csv 05 --query query_id")


def test_boosting_goes_on_from_a_model(run):
    told = run(f"train Set/Fold1 -o on.txt --init model.rkt --set early_stopping=false {QUICK}")
    assert "learned 5 trees" in told
    first = load("model.rkt").ensemble_
    assert load("on.txt").ensemble_.n_trees == len(first) + 5


@pytest.mark.parametrize(
    ("estimator", "settings"),
    [
        ("averaged", "--set quality=fast --set max_iter=3"),
        ("classifier", "--set max_iter=3 --label popular"),
        ("forest", "--set n_estimators=3 --set bootstrap_unit=query"),
        ("regressor", "--set max_iter=3 --set loss=poisson --set max_features=None --weight age"),
    ],
)
def test_every_estimator_is_trained(estimator, settings, made, run):
    frame = pd.read_csv(made / "log.csv")
    frame.assign(popular=frame["grade"] > 1, age=frame["age"].abs()).to_csv(made / "all.csv", index=False)
    rows = "all.csv --query query_id --label grade --ignore shop,popular,grade"
    told = run(f"train {rows} {settings} -e {estimator} -o one.rkt --set random_state=0")
    assert f"{len(load('one.rkt').ensemble_)} trees from 400 rows of 40 queries" in told


def test_parameters_of_an_estimator_are_listed(run):
    told = run("train --estimator forest --parameters")
    heads = re.findall(r"^(\w+) : ", told, re.MULTILINE)
    assert sorted(heads) == sorted(RandomForestRanker().get_params())
    assert "n_estimators : int, default=100\n    The number of trees." in told


def test_columns_are_named(made, run):
    """In a file to score there may be others, in any order, and texts that look like numbers stay texts."""
    model, frame = load("shop.rkt"), pd.read_csv(made / "log.csv", dtype={"shop": str})
    assert model.feature_names_in_.tolist() == ["price", "age", "rating", "stock", "shop"]
    assert model.ensemble_.category_levels == {4: ("017", "4", "corner")}
    assert (model.ensemble_.nodes["categories"] >= 0).any()
    expected = model.predict(frame[model.feature_names_in_])
    for file in ("log.csv", "log.parquet"):
        assert list(map(float, run(f"score shop.rkt {file}").split())) == expected.tolist()
    some = frame["shop"] != "corner"
    assert list(map(float, run("score shop.rkt numbers.tsv").split())) == expected[some].tolist()


def test_clicks_are_corrected_for_positions(made, run):
    frame = pd.read_csv(made / "log.csv").assign(rank=np.tile(np.arange(1, 11), 40))
    frame["grade"] = (frame["grade"] > 1).astype(int)
    frame.drop(columns="shop").to_csv("clicks.csv", index=False)
    run(f"train clicks.csv {COLUMNS} --position rank -o clicks.rkt {QUICK}")
    model = LambdaMARTRanker(max_iter=5, random_state=0)
    X, y, qid = frame[["price", "age", "rating", "stock"]], frame["grade"], frame["query_id"]
    assert load("clicks.rkt").ensemble_ == model.fit(X, y, qid=qid, position=frame["rank"]).ensemble_


def test_models_are_evaluated_and_compared(made, run):
    run(f"train Set/Fold2 -o other.txt {QUICK}")
    told = json.loads(
        run(
            "evaluate model.rkt other.txt --on Set/Fold1/test.txt --measure ap --measure rmse "
            "--baseline other.txt --confidence 0.9 --test randomization --json"
        )
    )
    X, y, qid = load_letor(made / "Set/Fold1/test.txt", return_X_y_qid=True)
    scores = {name: load(name).predict(X) for name in ("model.rkt", "other.txt")}
    found = compare(y, *scores.values(), qid=qid, measure="ap", confidence=0.9, test="randomization")
    of_model = told["measures"]["model.rkt"]
    assert of_model["AP"]["mean"] == pytest.approx(AP(y, scores["model.rkt"], qid=qid))
    assert of_model["RMSE"]["mean"] == pytest.approx(np.sqrt(np.mean((y - scores["model.rkt"]) ** 2)))
    assert of_model["RMSE"]["low"] is None
    (comparison,) = told["comparisons"]
    assert comparison["baseline"] == "other.txt"
    assert comparison["models"]["model.rkt"] == {
        "difference": found.difference,
        "low": found.interval[0],
        "high": found.interval[1],
        "p_value": found.p_value,
        "adjusted_p_value": found.p_value,
        "wins": found.wins,
        "ties": found.ties,
        "losses": found.losses,
    }


def test_folds_are_evaluated_together(made, run):
    """Those of a folder, with validation rows, and those into which queries are divided."""
    of_folder = json.loads(run(f"train Set {QUICK} --measure ap --measure rmse --json"))["measures"]
    X, y, qid = load_letor(made / "Set/Fold1/test.txt", return_X_y_qid=True)
    assert of_folder["Fold1"]["AP"]["mean"] == pytest.approx(
        AP(y, expected_of_fold(made).predict(X), qid=qid)
    )
    assert [each["AP"]["n_queries"] for each in of_folder.values()] == [10, 10, 20]
    rmse = [each["RMSE"] for each in of_folder.values()]  # over all rows of a fold
    assert rmse[2] == {
        "mean": (rmse[0]["mean"] + rmse[1]["mean"]) / 2,
        "low": None,
        "high": None,
        "n_queries": 0,
    }
    table = run(f"train log.csv {COLUMNS} --categories shop --folds 3 {QUICK}").splitlines()
    assert [line.split("  ")[0] for line in table[1:]] == ["fold 1", "fold 2", "fold 3", "all"]


def test_contributions_add_up_to_scores(run):
    told = json.loads(run("explain shop.rkt log.parquet q7 --query query_id --label grade --json"))["rows"]
    scores = list(map(float, run("score shop.rkt log.csv").split()))
    assert sorted(row["row"] for row in told) == list(range(71, 81))
    assert [row["score"] for row in told] == sorted((scores[row["row"] - 1] for row in told), reverse=True)
    for row in told:
        assert row["start"] + sum(row["contributions"].values()) == pytest.approx(row["score"])
        assert row["contributions"].keys() <= {"price", "age", "rating", "stock", "shop"}
    first = run("explain model.rkt Set/Fold1/test.txt 2 --top 1").splitlines()[2]
    assert re.fullmatch(r"1 +\d+ +[0-4] +-?\d\.\d{4} +-?\d\.\d{4}  [1-5] [+-]\d\.\d{4}", first)


def test_a_model_tells_what_it_is_made_of(run):
    ensemble, told = load("shop.rkt").ensemble_, json.loads(run("info shop.rkt --json"))
    assert (told["trees"], told["depth"], told["digest"]) == (5, ensemble.depth, ensemble.digest())
    assert told["categories"] == {"shop": 3}
    assert sum(told["importances"].values()) == pytest.approx(1)
    assert len(run("info shop.rkt --trees").splitlines()) == len(ensemble.nodes) + 1
    assert re.search("^categories +shop .3 levels.$", run("info shop.rkt"), re.MULTILINE)


@pytest.mark.parametrize(
    ("options", "written"),
    [
        ("copy.ranktrees", dump_ranktrees),
        ("one.txt", dump_lightgbm),
        ("one.json --to xgboost", dump_xgboost),
        ("one.json --to elasticsearch --feature-names a,b,c,d,e", dump_elasticsearch),
        ("one.json --to solr --feature-names a,b,c,d,e --name mine --missing-values", dump_solr),
        ("one.xml", dump_ranklib),
        ("one.onnx --dtype float64", dump_onnx),
    ],
)
def test_models_are_written_in_all_formats(options, written, run):
    pytest.importorskip("onnx")
    run(f"convert model.rkt {options}")
    names = {"feature_names": list("abcde")} if "a,b,c" in options else {}
    if written is dump_solr:
        names |= {"name": "mine", "missing_values": True}
    if written is dump_onnx:
        names["dtype"] = "float64"
    suffix = Path(options.split()[0]).suffix
    written(load("model.rkt"), f"same{suffix}", **names)
    assert Path(options.split()[0]).read_bytes() == Path(f"same{suffix}").read_bytes()


def test_models_are_known_by_their_content(made, monkeypatch):
    monkeypatch.chdir(made)
    model = load("model.rkt")
    for number, dump in enumerate((dump_ranktrees, dump_lightgbm, dump_xgboost)):
        dump(model, f"{number}.json")
        X = np.random.default_rng(0).standard_normal((20, 5)).astype(np.float32)
        np.testing.assert_allclose(load(f"{number}.json").predict(X), model.predict(X), rtol=1e-5)
    catboost = pytest.importorskip("catboost")
    other = catboost.CatBoostRegressor(iterations=2, verbose=False, allow_writing_files=False)
    other.fit(X, X[:, 0]).save_model("theirs", format="json")
    np.testing.assert_allclose(load("theirs").predict(X), other.predict(X))
    other.save_model("binary")
    with pytest.raises(ValueError, match='format="json"'):
        load("binary")


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("train none.txt -o x.rkt", "none.txt does not exist; expected a LETOR file"),
        ("train -o x.rkt", "there are no rows; expected"),
        ("train log.csv --query query_id", "there is nothing to write; expected -o MODEL, or --folds"),
        ("train log.csv --label grade -o x.rkt", "told which of them is the query: pass --query COLUMN"),
        (
            f"train log.csv {COLUMNS}s -o x.rkt",
            "log.csv has no column 'grades' (--label); .* ['grade']",
        ),
        (f"train log.csv {COLUMNS} -o x.rkt", "column 'shop' holds texts; .* name it in --categories"),
        (f"train log.csv {COLUMNS} --categories shops -o x.rkt", "--categories names 'shops'; .* ['shop']"),
        (f"train log.csv {COLUMNS} --ignore shops -o x.rkt", "no column 'shops' (--ignore); .* ['shop']"),
        (f"train log.csv {COLUMNS} --features shop --ignore shop -o x.rkt", "log.csv has no features"),
        (f"train log.csv {COLUMNS} --sparse -o x.rkt", "--sparse is about LETOR files, but log.csv is none"),
        ("train Set/Fold1/train.txt --label y -o x.rkt", "--label is about columns, but .* a LETOR file"),
        ("train Set --label y", "--label is about columns"),
        ("train Set -o x.rkt", "Set has several folds, .* expected one fold: pass Set/Fold1"),
        ("train Set --folds 2", "--folds: Set is divided already"),
        ("train Set/Fold1 --validation log.csv -o x.rkt", "Set/Fold1 has validation rows of its own"),
        ("train log.csv --parts train -o x.rkt", "--parts: log.csv is no folder"),
        ("train Set --parts train,vali", "expected test, too"),
        ("train Set --parts test", "expected train among them"),
        ("train log.csv --folds 2 --validation log.csv", "folds evaluate on rows of their own"),
        ("train Set/Fold1 -o x.rkt --measure ap", "expected --folds, too. .* --set measure=ap"),
        ("train Set --to onnx", "--to onnx: nothing is written"),
        ("train Set/Fold1 -o x.rkt --set num_leaves=3", "expected max_leaf_nodes, which is its name here"),
        ("train Set/Fold1 -o x.rkt --set max_itr=3", "the nearest are ['max_iter']"),
        ("train Set/Fold1 -o x.rkt --set max_iter=no", "The 'max_iter' parameter .* Got 'no' instead"),
        ("train Set/Fold1 -o x.rkt --set max_iter", "--set max_iter; expected NAME=VALUE"),
        ("train Set/Fold1 -o x.rkt --set tol=0 --set tol=1", "--set tol is given twice"),
        ("train Set/Fold1 -o x.foo", "the suffix '.foo' does not say what to write; expected one of .rkt"),
        ("train Set/Fold1 -o x.json", "--to xgboost or elasticsearch or solr"),
        ("train Set/Fold1 -o no/x.rkt", "there is no folder 'no'"),
        ("train Set/Fold1 -e classifier -o x.rkt", "the labels are . classes"),
        ("train Set/Fold1/train.txt --n-features 2 -o x.rkt", "expected at most n_features=2"),
        ("score none.rkt Set/Fold1/test.txt", "none.rkt does not exist; expected the file of a model"),
        ("score log.csv Set/Fold1/test.txt", "log.csv is no model that can be read; expected"),
        ("score list.json Set/Fold1/test.txt", "list.json is no model that can be read; expected"),
        ("score damaged.rkt Set/Fold1/test.txt", "damaged.rkt: truncated: 100 bytes of"),
        ("score model.rkt Set/Fold1/test.txt -o no/scores", "/no'; expected a path in one that exists"),
        ("score shop.rkt log.csv --features age", "the model knows its features by name"),
        ("evaluate model.rkt model.rkt --on Set/Fold1/test.txt", "a model is given twice"),
        ("evaluate model.rkt --on Set/Fold1/test.txt --measure no", "unknown measure 'no'"),
        (
            "evaluate model.rkt --on Set/Fold1/test.txt --baseline a",
            "--baseline a; expected one of the models",
        ),
        ("evaluate shop.rkt --on log.csv --query query_id", "pass --label COLUMN"),
        ("explain model.rkt Set/Fold1/test.txt 99", "has no query '99'; expected one of its ids"),
        ("explain model.rkt Set/Fold1/test.txt 2 --top 0", "--top 0; expected at least 1"),
        ("convert shop.rkt x.onnx", "splits feature . by categories"),
        ("convert model.rkt x.onnx --name a", "--name: onnx has no such option"),
        ("convert model.rkt x.json --to solr", "identifies features by name"),
        ("info model.rkt --trees --json", "leave out --trees or --json"),
        ("info Set", "Set: Is a directory"),
    ],
)
def test_mistakes_are_refused_in_a_sentence(command, sentence, refused):
    error = refused(command)
    pattern = re.escape(sentence).replace(r"\ \.\*\ ", " .* ").replace(r"\ \.\ ", " . ")
    assert re.match(f"ranktrees {command.split()[0]}: ", error)
    assert re.search(pattern, error), error


@pytest.mark.parametrize("command", ["", "rank", "score", "train --max-iter 5", "score --to x a b"])
def test_arguments_that_are_not_understood_are_answered_by_the_usage(command, refused):
    error = refused(command, code=2)
    assert error.startswith("usage: ranktrees")
    assert ("set by --set NAME=VALUE" in error) == ("max-iter" in command)


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("pandas", f"train log.csv {COLUMNS} -o x.rkt"),
        ("pyarrow", f"train log.parquet {COLUMNS} -o x.rkt"),
        ("pandas", "evaluate model.rkt --on Set/Fold1/test.txt"),
        ("pandas", "info model.rkt --trees"),
    ],
)
def test_what_is_not_installed_is_named(module, command, refused, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    assert f'needs {module}: pip install "ranktrees[command]"' in refused(command)


@pytest.mark.filterwarnings("always")
def test_warnings_are_sentences(made, monkeypatch, capsys):
    monkeypatch.chdir(made)
    assert main(shlex.split("train Set/Fold1 -e forest -o x.rkt --set n_estimators=2 --set verbose=1")) == 0
    out, err = capsys.readouterr()
    warning, *progress = err.splitlines()
    told = "validation rows are not used: RandomForestRanker does not stop early"
    assert warning == f"ranktrees train: warning: {told}"
    assert progress == [f"RandomForestRanker: {n} of 2 trees" for n in (1, 2)]
    assert out.startswith("RandomForestRanker learned 2 trees")
    Path("x.rkt").unlink()


@pytest.mark.parametrize(("raised", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141)])
def test_an_interrupted_command_leaves_nothing(raised, code, refused, monkeypatch):
    def fit(*_, **__):
        raise raised

    monkeypatch.setattr(LambdaMARTRanker, "_check_and_fit", fit)
    assert refused("train Set/Fold1 -o x.rkt", code=code) == ""


def test_tracebacks_are_shown_on_demand(made, capsys):
    assert main(["info", "none.rkt", "--debug"]) == 1
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_bar_is_drawn_on_a_terminal(made, monkeypatch, capsys):
    monkeypatch.chdir(made)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(shlex.split(f"train Set/Fold1 -o x.rkt {QUICK}")) == 0
    assert "LambdaMARTRanker: 100%" in capsys.readouterr().err
    Path("x.rkt").unlink()


def test_the_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "ranktrees", "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("usage: ranktrees")


def test_the_transcript_of_the_guide(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```(python|console)\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    for kind, text in blocks:
        if kind == "python":
            exec(text, {})
            continue
        for command, expected in re.findall(COMMAND, text, re.MULTILINE):
            main(shlex.split(command.replace("\\\n", "")))
            out, err = capsys.readouterr()
            flags = ELLIPSIS | NORMALIZE_WHITESPACE
            assert OutputChecker().check_output(expected, out + err, flags), command + "\n" + out + err
