"""Runs and judgements of TREC: what files say, what is refused, and measures against trec_eval."""

import gzip
import io
import sys

import ir_measures as ir
import numpy as np
import pandas as pd
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktrees import (
    FitWarning,
    best_rows,
    dump_trec_qrels,
    dump_trec_run,
    judged_rows,
    load_letor,
    load_trec_qrels,
    load_trec_run,
)
from ranktrees.evaluation.trec import words_of_lines
from ranktrees.measures import AP, NDCG, RR, P, R
from ranktrees.rows import text_files

RUN = b"007 Q0 d1 1 9.5 bm25\n007 Q0 0012 2 -1e3 bm25\n8 Q0 d1 0 .5 bm25\n"
QRELS = b"007 0 d1 2\n007 0 0012 -1\n8 0 d1 0\n"


def read(text, load=load_trec_run, **options):
    return load(io.BytesIO(text), **options)


def rows_of(table):
    return list(table.itertuples(index=False, name=None))


def test_a_run_as_it_stands_in_the_file():
    run = read(RUN)
    assert list(run) == ["query", "id", "rank", "score", "tag"]
    expected = [
        ("007", "d1", 1, 9.5, "bm25"),
        ("007", "0012", 2, -1000.0, "bm25"),
        ("8", "d1", 0, 0.5, "bm25"),
    ]
    assert rows_of(run) == expected
    assert (run["rank"].dtype, run["score"].dtype) == (np.int64, np.float64)


def test_judgements_as_they_stand_in_the_file():
    qrels = read(QRELS, load_trec_qrels)
    assert list(qrels) == ["query", "id", "label"]
    assert rows_of(qrels) == [("007", "d1", 2), ("007", "0012", -1), ("8", "d1", 0)]
    assert qrels["label"].dtype == np.int64


def test_ir_measures_reads_the_same():
    text = RUN.decode()
    theirs = [tuple(row) for row in ir.read_trec_run(io.StringIO(text))]
    assert theirs == rows_of(read(RUN)[["query", "id", "score"]])
    theirs = [
        (row.query_id, row.doc_id, row.relevance) for row in ir.read_trec_qrels(io.StringIO(QRELS.decode()))
    ]
    assert theirs == rows_of(read(QRELS, load_trec_qrels))


def test_white_space_and_blocks(monkeypatch):
    spaced = b"\xef\xbb\xbf" + RUN.replace(b" ", b" \t").replace(b"\n", b"\r\n\n  \n")
    expected = read(RUN)
    for n_bytes in (1, 7, 1 << 20):
        monkeypatch.setattr(text_files, "BLOCK_BYTES", n_bytes)
        pd.testing.assert_frame_equal(read(spaced), expected)
        with pytest.raises(ValueError, match="the open file, line 11: score 'x'"):
            read(spaced + b"\n8 Q0 d2 1 x t")


@given(text=st.text(" \t\n\r\v\f\0xé\x85\xa0", max_size=30))
def test_words_of_lines(text):
    block = text.encode()
    assert list(words_of_lines(block)) == [len(line.split()) for line in block.split(b"\n")]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2", ".zst"])
def test_files_of_every_suffix(tmp_path, suffix):
    if suffix not in ("", *text_files.OPENERS):
        pytest.skip("no Zstandard here")
    path = tmp_path / f"run.trec{suffix}"
    dump_trec_run([0.5, 0.75], path, qid=[7, 7], ids=["a", "b"], tag="mine")
    assert rows_of(load_trec_run(path)) == [("7", "b", 1, 0.75, "mine"), ("7", "a", 2, 0.5, "mine")]
    path = tmp_path / f"qrels{suffix}"
    dump_trec_qrels([2, -1], str(path), qid=["x", "x"], ids=[1, 2])
    assert rows_of(load_trec_qrels(str(path))) == [("x", "1", 2), ("x", "2", -1)]


def test_bytes_of_other_encodings():
    text = "é Q0 ü 1 1 t\n".encode("latin-1")
    assert rows_of(read(text, encoding="latin-1")) == [("é", "ü", 1, 1.0, "t")]
    with pytest.warns(FitWarning, match=r"is no text in the encoding 'utf-8'.*latin-1"):
        (row,) = rows_of(read(text))
    file = io.BytesIO()
    dump_trec_run([row[3]], file, qid=[row[0]], ids=[row[1]], tag="t")
    assert file.getvalue() == text.replace(b" 1 1 ", b" 1 1.0 ")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"7 Q0 d 1 1", "5 fields; expected 6, with white space between them: query Q0 id rank score tag"),
        (b"7 Q0 d d 1 1 t", "7 fields; expected 6"),
        (b"7 Q0 d 1 1 t\r7 Q0 e 2 0 t", "12 fields; expected 6, .* carriage returns"),
        (b"7 Q0 d 1.0 1 t", "rank '1.0'; expected an integer"),
        (b"7 Q0 d 1 nan t", "score 'nan'; expected a finite number"),
        (b"7 Q0 d 1 inf t", "score 'inf'; expected a finite number"),
        (b"7 Q0 d 1 1e999 t", "score '1e999'; expected a finite number"),
        (b"7 Q0 d 1 1_0 t", "score '1_0'; expected a finite number"),
        (b"007 Q0 d1 3 1 t", "document 'd1' of query '007', which is in line 1 as well"),
    ],
)
def test_malformed_lines_of_runs(tmp_path, line, said):
    path = tmp_path / "run.gz"
    path.write_bytes(gzip.compress(RUN + b"\n" + line))
    with pytest.raises(ValueError, match=rf"run\.gz, line 5: {said}"):
        load_trec_run(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            b"query-id\tcorpus-id\tscore",
            "3 fields; expected 4, .*: query 0 id label. Read other tables by pandas",
        ),
        (b"7 0 d 1.5", "label '1.5'; expected an integer"),
        (b"7 0 d 9223372036854775808", "label '9223372036854775808'; expected an integer"),
        (b"007 0 d1 2", "document 'd1' of query '007', which is in line 1 as well"),
    ],
)
def test_malformed_lines_of_judgements(line, said):
    with pytest.raises(ValueError, match=rf"the open file, line 4: {said}"):
        read(QRELS + line, load_trec_qrels)


@pytest.mark.parametrize("load", [load_trec_run, load_trec_qrels])
def test_files_that_cannot_be_read(load, tmp_path, monkeypatch):
    for text in (b"", b"\n \n", b"\xef\xbb\xbf"):
        with pytest.raises(ValueError, match="holds no rows; expected lines of the fields query"):
            read(text, load)
    with pytest.raises(ValueError, match="encoding='utf-16'; expected the name"):
        read(RUN, load, encoding="utf-16")
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=f"{load.__name__} returns a pandas DataFrame: pip install pandas"):
        read(RUN, load)


# ---- writing -----------------------------------------------------------------------------------------------

any_score = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, 1.0 + 1e-12, 1.0 - 1e-9, 5e-324, -1e-45, 1e38, -1e38, 1e-300]),
    st.floats(-1e38, 1e38),
)


def ranked_by_trec_eval(run):
    """The documents of each query in the order of trec_eval, by the reciprocal rank of each."""
    order = {}
    for query, documents in run.items():
        ranks = {}
        for document in documents:
            evaluator = pytrec_eval.RelevanceEvaluator({query: {document: 1}}, {"recip_rank"})
            ranks[document] = 1 / evaluator.evaluate({query: documents})[query]["recip_rank"]
        order[query] = sorted(ranks, key=ranks.__getitem__)
    return order


@given(scores=st.lists(any_score, min_size=1, max_size=12), seed=st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_every_reader_finds_the_ranking_of_best_rows(scores, seed):
    random = np.random.default_rng(seed)
    qid = random.choice(["q1", "q2"], len(scores))
    ids = random.permutation([f"d{row}" for row in range(len(scores))])
    file = io.BytesIO()
    dump_trec_run(scores, file, qid=qid, ids=ids)
    run = read(file.getvalue())
    best = best_rows(scores, qid=qid, k=None, ids=ids)
    assert rows_of(run[["query", "id", "rank"]]) == rows_of(best[["query", "id", "rank"]])
    as_dict = {q: dict(zip(t["id"], t["score"], strict=True)) for q, t in run.groupby("query")}
    assert ranked_by_trec_eval(as_dict) == {q: list(t["id"]) for q, t in best.groupby("query")}
    for (_, written), (_, given_) in zip(run.groupby("query"), best.groupby("query"), strict=True):
        narrow = given_["score"].to_numpy().astype(np.float32)
        assert (np.diff(written["score"].to_numpy().astype(np.float32)) < 0).all()
        if (np.diff(narrow) < 0).all():
            assert list(written["score"]) == list(given_["score"])


def test_scores_change_by_the_least_that_keeps_the_order():
    file = io.BytesIO()
    dump_trec_run(
        [3.0, 2.0, 2.0, 2.0, 1.0, 0.0, 0.0], file, qid=[1, 1, 1, 1, 1, 2, 2], ids=list("abcdefg"), k=5
    )
    below = np.nextafter(np.float32(2), np.float32(0))
    lower, least = np.nextafter(below, np.float32(0)), -np.finfo(np.float32).smallest_subnormal
    assert list(read(file.getvalue())["score"]) == [3.0, 2.0, below, lower, 1.0, 0.0, least]


def test_the_best_k_of_each_query():
    scores, qid, ids = [1.0, 3.0, 2.0, 5.0], pd.Series([9, 9, 9, 4]), pd.Categorical(["a", "b", "c", "a"])
    file = io.BytesIO()
    dump_trec_run(scores, file, qid=qid, ids=ids, k=2)
    assert rows_of(read(file.getvalue())[["query", "id"]]) == [("9", "b"), ("9", "c"), ("4", "a")]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"y_score": [1.0, np.nan]}, "y_score must not be NaN or infinite, got nan in row 1"),
        ({"y_score": [1.0, -np.inf]}, "y_score must not be NaN or infinite, got -inf in row 1"),
        ({"y_score": [1.0, 1e39]}, r"y_score holds 1e\+39 in row 1; expected scores from -1e38 to 1e38"),
        ({"qid": [1]}, "qid has length 1; expected one query id per row, 2 in all"),
        ({"qid": [1.0, 1.0]}, "qid holds 1.0; expected integers, or strings without white space"),
        ({"qid": [7, "7"]}, "qid holds an integer and a string that spells it"),
        ({"ids": ["a"]}, "ids has length 1; expected one document id per row, 2 in all"),
        ({"ids": ["a", None]}, "ids is missing .* in row 1; .* drop the rows without a document"),
        ({"ids": ["a", "b c"]}, "ids holds 'b c'; expected integers, or strings without white space"),
        ({"ids": ["a", ""]}, "ids holds ''; expected"),
        ({"ids": ["a", "a"]}, "ids holds 'a' in the rows 0 and 1, which are both of the query '1'"),
        ({"tag": "my run"}, "tag='my run'; expected a string without white space"),
        ({"k": 0}, "k=0; expected the number of rows"),
    ],
)
def test_runs_that_cannot_be_written(tmp_path, changed, said):
    arguments = {"y_score": [1.0, 2.0], "qid": [1, 1], "ids": ["a", "b"]} | changed
    with pytest.raises(ValueError, match=said):
        dump_trec_run(path=tmp_path / "run", **arguments)
    assert not list(tmp_path.iterdir())


def test_judgements_that_cannot_be_written(tmp_path):
    for y in ([1.5, 0], [2.0**31, 0]):
        with pytest.raises(ValueError, match=r"y holds .* in row 0; expected whole numbers"):
            dump_trec_qrels(y, tmp_path / "qrels", qid=[1, 1], ids=["a", "b"])
    with pytest.raises(ValueError, match="ids holds 'a' in the rows 0 and 1"):
        dump_trec_qrels([1, 0], tmp_path / "qrels", qid=[1, 1], ids=["a", "a"])
    assert not list(tmp_path.iterdir())
    with pytest.raises(
        TypeError, match=r"path is <list of length 2>; .* dump_trec_qrels\(y, path, qid=qid, ids=ids\)"
    ):
        dump_trec_qrels(tmp_path / "qrels", [1, 0], qid=[1, 1], ids=["a", "b"])
    with pytest.raises(
        TypeError, match=r"path is <list of length 1>; .* dump_trec_run\(y_score, path, qid=qid, ids=ids\)"
    ):
        dump_trec_run(tmp_path / "run", [1.0], qid=[1], ids=["a"])


def test_scores_that_carry_other_queries():
    scores = pd.Series([1.0, 2.0], index=pd.Index([1, 2], name="qid"))
    with pytest.raises(ValueError, match="qid and the index level 'qid' of y_score disagree"):
        dump_trec_run(scores, io.BytesIO(), qid=[1, 1], ids=["a", "b"])


# ---- joining -----------------------------------------------------------------------------------------------


def random_case(seed):
    """A run and judgements of which neither has all documents, or all queries, of the other."""
    random = np.random.default_rng(seed)
    run, qrels = {}, {}
    for query in random.permutation(25):
        documents = [f"d{number}" for number in random.permutation(40)]
        if query % 5 != 1:
            some = documents[: random.integers(1, 30)]
            run[f"q{query}"] = {document: float(random.integers(0, 9)) / 4 for document in some}
        if query % 5 != 2:
            some = random.permutation(documents)[: random.integers(1, 30)]
            qrels[f"q{query}"] = {str(document): int(random.integers(-2, 4)) for document in some}
    return run, qrels


@pytest.mark.parametrize("seed", range(4))
def test_measures_are_those_of_trec_eval(seed):
    run, qrels = random_case(seed)
    rows = judged_rows(run, qrels)
    twins = {
        ir.nDCG: NDCG.trec_eval,
        ir.nDCG @ 3: NDCG.trec_eval @ 3,
        ir.nDCG @ 100: NDCG.trec_eval @ 100,
        ir.AP: AP,
        ir.AP(rel=2) @ 5: AP(rel=2) @ 5,
        ir.RR: RR,
        ir.RR(rel=3): RR(rel=3),
        ir.P @ 5: P @ 5,
        ir.P @ 100: P @ 100,
        ir.SetP: P,
        ir.R @ 5: R @ 5,
        ir.R(rel=2) @ 100: R(rel=2) @ 100,
    }
    found = list(ir.iter_calc(twins, qrels, run))
    means = ir.calc_aggregate(twins, qrels, run)
    assert len(found) == len(twins) * len(qrels)
    for theirs, ours in twins.items():
        ours = ours(ties="reverse", empty_query=0)
        assert ours(rows["label"], rows["score"], qid=rows["query"]) == pytest.approx(means[theirs], abs=1e-9)
        for metric in found:
            if metric.measure == theirs:
                own = rows[rows["query"] == metric.query_id]
                value = ours.of_query(own["label"].to_numpy(float), own["score"].to_numpy())
                assert metric.value == pytest.approx(value, abs=1e-9), (theirs, metric.query_id)


def test_files_frames_and_dicts_are_the_same_run():
    run, qrels = random_case(0)
    expected = judged_rows(run, qrels)
    run_rows = [(q, d, s) for q, documents in run.items() for d, s in documents.items()]
    qrels_rows = [(q, d, y) for q, documents in qrels.items() for d, y in documents.items()]
    run_file, qrels_file = io.BytesIO(), io.BytesIO()
    queries, documents, scores = zip(*run_rows, strict=True)
    distinct = np.argsort(np.argsort(scores, kind="stable"))
    dump_trec_run(distinct, run_file, qid=queries, ids=documents)
    queries, documents, labels = zip(*qrels_rows, strict=True)
    dump_trec_qrels(labels, qrels_file, qid=queries, ids=documents)
    of_files = judged_rows(read(run_file.getvalue()), read(qrels_file.getvalue(), load_trec_qrels))
    pd.testing.assert_frame_equal(of_files.drop(columns="score"), expected.drop(columns="score"))
    run_frame = pd.DataFrame(run_rows, columns=["query", "id", "score"]).sample(frac=1, random_state=0)
    qrels_frame = pd.DataFrame(qrels_rows, columns=["query", "id", "label"]).assign(iteration=0)
    pd.testing.assert_frame_equal(judged_rows(run_frame, qrels_frame), expected)
    pd.testing.assert_frame_equal(judged_rows(run_frame.astype({"id": "category"}), qrels_frame), expected)


def test_the_rows_of_a_join():
    run = {"b": {"d2": 1.0, "d10": 2.0}, "none judged": {"d1": 1.0}}
    qrels = {"c": {"d1": 1}, "b": {"d3": 3, "d2": -2}}
    rows = judged_rows(run, qrels)
    expected = [("c", "d1", 1, -np.inf), ("b", "d10", 0, 2.0), ("b", "d2", 0, 1.0), ("b", "d3", 3, -np.inf)]
    assert rows_of(rows) == expected
    assert rows["label"].dtype == np.int64
    assert rows.index.equals(pd.RangeIndex(4))
    in_run = pd.DataFrame(
        [("c", "d1", 1), ("b", "d2", 0), ("b", "d3", 0.5)], columns=["query", "id", "label"]
    )
    in_run = in_run[in_run["query"].isin(run)]
    assert rows_of(judged_rows(run, in_run))[-1] == ("b", "d3", 0.5, -np.inf)
    numbers = judged_rows({7: {9: 1.0, 10: 2.0}}, {7: {10: 1}})
    assert rows_of(numbers) == [(7, 10, 1, 2.0), (7, 9, 0, 1.0)]
    assert numbers.dtypes["query"] == numbers.dtypes["id"] == np.int64


def frame(**columns):
    return pd.DataFrame({"query": [1, 1], "id": [1, 2], "score": [1.0, 2.0], "label": [1, 0]} | columns)


@pytest.mark.parametrize(
    ("run", "qrels", "error", "said"),
    [
        (frame(), {"1": {1: 1}}, ValueError, "no query in common: the first is 1 in run, and '1' in qrels"),
        ([1], frame(), TypeError, "run is <list of length 1>; expected a pandas DataFrame .* or a dict"),
        (frame().drop(columns="id"), frame(), ValueError, r"run has 0 columns 'id' among \['query', 'score'"),
        (frame(), frame().rename(columns={"score": "label"}), ValueError, "qrels has 2 columns 'label'"),
        (
            frame(score=[1.0, np.nan]),
            frame(),
            ValueError,
            r"run\['score'\] must not be NaN, got nan in row 1",
        ),
        (frame(), frame(label=[1, None]), ValueError, r"qrels\['label'\] must not be NaN or infinite"),
        (frame(query=[None, 1]), frame(), ValueError, r"run\['query'\] is missing .* in row 0"),
        (frame(), frame(id=["a", None]), ValueError, r"qrels\['id'\] is missing .* in row 1"),
        (frame(), frame(id=[2, 2]), ValueError, "qrels has document 2 of query 1 in the rows 0 and 1"),
        ({}, frame(), ValueError, r"run\['query'\] is empty"),
    ],
)
def test_what_cannot_be_joined(run, qrels, error, said):
    with pytest.raises(error, match=said):
        judged_rows(run, qrels)


def test_documents_of_which_none_is_judged():
    with pytest.warns(
        FitWarning, match="no document of run is judged: the first is 1 in run, and '1' in qrels"
    ):
        judged_rows(frame(), {1: {"1": 1}})


def test_runs_and_judgements_are_told_apart():
    with pytest.raises(ValueError, match=r"4 fields; expected 6.* Judgements are read by load_trec_qrels\.$"):
        load_trec_run(io.BytesIO(b"7 0 d 1\n"))
    with pytest.raises(ValueError, match=r"6 fields; expected 4.* Runs are read by load_trec_run\.$"):
        load_trec_qrels(io.BytesIO(b"7 Q0 d 1 1 t\n"))
    for line in (b"7 0 d 1\n", b"7 Q0 d 1 1 t\n"):
        with pytest.raises(
            ValueError, match=r"no qid: .*runs and judgements by load_trec_run and load_trec_qre"
        ):
            load_letor(io.BytesIO(line))
