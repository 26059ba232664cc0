"""Batches of data sets of Arrow and queries of polars, and the scores of batches."""

import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet
import pytest

from ranktrees import HistGBRTClassifier, LambdaMARTRanker, make_ranking
from ranktrees.datasets import Batches, score_batches


@pytest.fixture(scope="module")
def frame():
    X, y, qid = make_ranking(40, rows_per_query=10, n_features=4, random_state=0, return_X_y_qid=True)
    columns = pd.DataFrame(X, columns=list("abcd"))
    return columns.assign(
        grade=y, query=qid, weight=1.0 + qid % 3, day=qid // 20, name=[f"d{i}" for i in range(400)]
    )


NAMED = {"label": "grade", "qid": "query", "features": list("abcd"), "sample_weight": "weight"}


def ranker():
    return LambdaMARTRanker(max_iter=5, random_state=0, min_samples_leaf=5)


@pytest.fixture(scope="module")
def alone(frame):
    weights = frame["weight"]
    return ranker().fit(frame[list("abcd")], frame["grade"], qid=frame["query"], sample_weight=weights)


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    """Two days, the second in two files, with many row groups."""
    folder = tmp_path_factory.mktemp("rows")
    for name, some in {"day=0/0": frame[:200], "day=1/0": frame[200:290], "day=1/1": frame[290:]}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        some.drop(columns="day").to_parquet(folder / f"{name}.parquet", row_group_size=30)
    return folder


def read(batches, what="ids"):
    return [value for batch in batches for value in getattr(batch, what).to_pylist()]


@pytest.mark.parametrize("kind", ["folder", "data set", "table", "stream", "query"])
def test_a_fit_on_a_data_set_is_that_on_its_rows(kind, folder, frame, alone):
    table = pa.Table.from_pandas(frame)
    source = {
        "folder": folder,
        "data set": pa.dataset.dataset(folder, format="parquet", partitioning="hive"),
        "table": table,
        "stream": lambda: pa.RecordBatchReader.from_batches(table.schema, table.to_batches(170)),
        "query": frame,
    }[kind]
    batches = Batches.from_arrow(source, **NAMED, ids="name", batch_rows=64)
    for _ in range(2):  # each fit reads anew
        assert ranker().fit(batches).ensemble_.digest() == alone.ensemble_.digest()
    assert max(len(batch.y) for batch in batches) <= 64
    assert read(batches) == list(frame["name"])


def test_only_rows_of_a_filter_and_columns_that_are_named_are_read(folder, frame):
    named = {"ids": "name", "features": ["c", "day"]}
    batches = Batches.from_arrow(folder, **named, filter=(pc.field("day") == 1) & (pc.field("a") > 0))
    kept = frame[(frame["day"] == 1) & (frame["a"] > 0)]
    assert read(batches) == list(kept["name"])
    assert [batch.X.column_names for batch in batches] == [["c", "day"]] * len(list(batches))
    assert next(iter(batches)).y is None
    everything = next(iter(Batches.from_arrow(folder, label="grade", qid="query")))
    assert everything.X.column_names == ["a", "b", "c", "d", "weight", "name", "day"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"qid": "session"}, r"source \(.*\) has no column 'session'; expected one of those that it has"),
        ({"filter": pc.field("day") > 7}, "has no rows; expected at least one: check the filter"),
        ({"filter": pc.field("week") > 7}, r"(?s)cannot be read \(.*week.*correct what the error names"),
        ({"batch_rows": 0}, "batch_rows=0"),
        ({"source": 7}, r"source \(7\) has no rows of Arrow; expected the path of a folder"),
        ({"source": [1, 2]}, "has no rows of Arrow"),
    ],
)
def test_what_is_no_data_set(folder, change, said):
    with pytest.raises((TypeError, ValueError), match=said):
        list(Batches.from_arrow(**{"source": folder, **NAMED, **change}))


def test_a_damaged_file_of_a_data_set_is_told(tmp_path, frame):
    frame.to_parquet(tmp_path / "0.parquet")
    frame.to_parquet(tmp_path / "1.parquet")
    whole = (tmp_path / "1.parquet").read_bytes()
    (tmp_path / "1.parquet").write_bytes(whole[:100] + bytes(len(whole) - 400) + whole[-300:])
    with pytest.raises(ValueError, match=r"source \(.*\) cannot be read"):
        list(Batches.from_arrow(tmp_path, **NAMED))
    with pytest.raises(FileNotFoundError):
        list(Batches.from_arrow(tmp_path / "nowhere", **NAMED))


def test_queries_of_polars_are_read_in_batches(folder, frame, alone):
    pl = pytest.importorskip("polars", minversion="1.34")
    scan = pl.scan_parquet(folder / "**/*.parquet")
    batches = Batches.from_polars(scan, **NAMED, ids="name", batch_rows=64)
    for _ in range(2):
        assert ranker().fit(batches).ensemble_.digest() == alone.ensemble_.digest()
    assert max(len(batch.y) for batch in batches) <= 64
    assert [name for batch in batches for name in batch.ids] == list(frame["name"])
    few = Batches.from_polars(scan.filter(pl.col("a") > 0), features=["a"])
    assert sum(len(batch.X) for batch in few) == (frame["a"] > 0).sum()
    with pytest.raises(ValueError, match="frame has no rows"):
        list(Batches.from_polars(scan.filter(pl.col("a") > 99), **NAMED))
    with pytest.raises(ValueError, match="frame has no column 'z'"):
        list(Batches.from_polars(scan, features=["z"]))


def test_what_is_no_query_of_polars(frame):
    with pytest.raises(
        TypeError, match=r"frame is .*DataFrame.*which has no collect_batches; expected a LazyFrame"
    ):
        Batches.from_polars(frame, **NAMED)


# ------------------------------------------------------------------------------------------ scores of batches


def test_scores_are_written_beside_the_ids(folder, frame, alone, tmp_path):
    batches = Batches.from_arrow(folder, qid="query", ids="name", features=list("abcd"), batch_rows=64)
    score_batches(alone, batches, tmp_path / "scores.parquet")
    scores = pa.parquet.read_table(tmp_path / "scores.parquet")
    assert scores.column_names == ["qid", "ids", "score"]
    assert scores["ids"].to_pylist() == list(frame["name"])
    assert scores["qid"].to_pylist() == list(frame["query"])
    assert scores["score"].to_pylist() == alone.predict(frame[list("abcd")]).tolist()


def test_any_model_scores_any_batches(frame, alone, tmp_path):
    path, columns = tmp_path / "scores.parquet", frame[list("abcd")]
    score_batches(alone.ensemble_, Batches([(columns[:9],), (columns[9:],)]), path)
    assert pa.parquet.read_table(path)["score"].to_pylist() == alone.predict(columns).tolist()
    clicked = HistGBRTClassifier(max_iter=3, random_state=0).fit(columns, frame["grade"] > 1)
    score_batches(clicked, Batches([{"X": columns, "qid": list(frame["name"])}]), path)
    assert pa.parquet.read_table(path)["score"].to_pylist() == clicked.decision_function(columns).tolist()


def test_columns_of_polars_are_written(frame, alone, tmp_path):
    pl = pytest.importorskip("polars")
    X = pl.DataFrame({name: frame[name].to_numpy() for name in "abcd"})
    names = pl.Series("name", frame["name"].tolist())
    score_batches(alone, Batches([{"X": X, "ids": names}]), tmp_path / "scores.parquet")
    assert pa.parquet.read_table(tmp_path / "scores.parquet")["ids"].to_pylist() == names.to_list()


@pytest.mark.parametrize(
    ("batches", "said"),
    [
        (lambda X: [X], r"batches is .*expected Batches: pass Batches of it"),
        (lambda X: Batches([]), "batches is empty; expected at least one batch"),
        (lambda X: Batches([(X,), (X[["a"]],)]), "batch 1 cannot be scored: .*"),
        (lambda X: Batches([(X, None, [1] * 400), (X, None, ["q"] * 400)]), "batch 1 cannot be scored: .*q"),
        (
            lambda X: Batches([(X, None, [1] * 400), (X,)]),
            r"batch 1 cannot be scored: it has \['score'\], and batch 0 has \['qid', 'score'\]",
        ),
    ],
)
def test_what_cannot_be_scored_leaves_the_file_as_it_was(batches, said, frame, alone, tmp_path):
    path = tmp_path / "scores.parquet"
    path.write_bytes(b"earlier")
    with pytest.raises((TypeError, ValueError), match=said):
        score_batches(alone, batches(frame[list("abcd")]), path)
    assert path.read_bytes() == b"earlier"
    assert [each.name for each in tmp_path.iterdir()] == ["scores.parquet"]


def test_progress_is_shown(frame, alone, tmp_path, capsys):
    parts = [(frame[list("abcd")][first : first + 100],) for first in range(0, 400, 100)]
    score_batches(alone, Batches(parts), tmp_path / "scores.parquet", verbose=2)
    assert capsys.readouterr().out == "scores: 200 rows\nscores: 400 rows\n"
    score_batches(alone, Batches(parts), tmp_path / "scores.parquet", verbose="bar")
    assert "scores: 400 rows" in capsys.readouterr().err
    with pytest.raises(ValueError, match="verbose='bars'; expected a number of batches"):
        score_batches(alone, Batches(parts), tmp_path / "scores.parquet", verbose="bars")
    labelled = [(X, frame["grade"][X.index], frame["query"][X.index]) for (X,) in parts]
    LambdaMARTRanker(max_iter=2, verbose="bar").fit(Batches(labelled))
    shown = capsys.readouterr().err
    assert "X: 400 rows" in shown
    assert "LambdaMARTRanker: 100%" in shown


def test_pyarrow_is_asked_for_where_it_is_needed(monkeypatch, frame, alone):
    monkeypatch.setitem(sys.modules, "pyarrow.dataset", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r'Batches.from_arrow needs pyarrow.*"ranktrees\[parquet\]"'):
        Batches.from_arrow("rows", **NAMED)
    with pytest.raises(ImportError, match=r'score_batches needs pyarrow.*"ranktrees\[parquet\]"'):
        score_batches(alone, Batches([]), "scores.parquet")


def test_ids_of_rows_are_not_learned_from(frame, alone):
    columns = {"X": frame[list("abcd")], "y": frame["grade"], "qid": frame["query"], "ids": frame["name"]}
    batches = Batches([columns | {"sample_weight": np.asarray(frame["weight"])}])
    assert ranker().fit(batches).ensemble_.digest() == alone.ensemble_.digest()
