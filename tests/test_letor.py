"""LETOR files: dump and load are inverse, and errors in a file are reported with its name and the line."""

import bz2
import gzip
import io
import lzma
import math
import re
import tempfile
import tracemalloc
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import load_svmlight_file

from fuzz.letor import compare
from ranktrees import FitWarning
from ranktrees.datasets import Batches, dump_letor, load_letor, load_letor_folds
from ranktrees.rows import letor, text_files

SMALL = b"""# two queries
2 qid:10 1:0.5 3:-1e-3 # docid = GX008-86-4444840 inc = 1

0 qid:10 2:4#GX2 # and more
  1.5\tqid:11  1:nan 2:+7 \r
"""


def load(content, **options):
    return load_letor(io.BytesIO(content), **options)


def dump(X, y, qid, **options):
    file = io.BytesIO()
    dump_letor(X, y, file, qid=qid, **options)
    return file.getvalue()


# Reading


@pytest.mark.parametrize("qid", ["01", "+1", "-0"])
def test_queries_that_would_be_read_as_others_are_not_written(tmp_path, qid):
    with pytest.raises(
        ValueError, match=r"which would be read back as \d; expected strings that do not spell integers"
    ):
        dump_letor(np.eye(2), [1, 0], tmp_path / "rows.txt", qid=[qid, "a"])
    dump_letor(np.eye(2), [1, 0], tmp_path / "rows.txt", qid=[f"q{qid}", "1"])
    assert load_letor(tmp_path / "rows.txt").qid.tolist() == [f"q{qid}", "1"]


def test_files_that_are_not_what_they_are_called(tmp_path):
    with pytest.raises(
        ValueError, match=r"ends in '.7z'; expected a text file, or one whose name ends in .gz"
    ):
        dump_letor(np.eye(2), [1, 0], tmp_path / "rows.txt.7z", qid=[1, 1])
    (tmp_path / "rows.txt.gz").write_text("2 qid:1 1:1\n")
    with pytest.raises(ValueError, match=r"rows.txt.gz is truncated, or not in the format of its suffix"):
        load_letor(tmp_path / "rows.txt.gz")
    dump_letor(np.eye(2), [1, 0], tmp_path / "rows.txt.xz", qid=[1, 1])
    (tmp_path / "cut.txt.xz").write_bytes((tmp_path / "rows.txt.xz").read_bytes()[:-5])
    with pytest.raises(ValueError, match=r"cut.txt.xz is truncated"):
        load_letor(tmp_path / "cut.txt.xz")


def test_dense():
    data = load(SMALL)
    np.testing.assert_array_equal(data.data, np.float32([[0.5, 0, -1e-3], [0, 4, 0], [np.nan, 7, 0]]))
    assert data.data.dtype == np.float32
    np.testing.assert_array_equal(data.target, [2, 0, 1.5])
    assert data.target.dtype == np.float64
    np.testing.assert_array_equal(data.qid, [10, 10, 11])
    assert data.qid.dtype == np.int64
    assert "ids" not in data


def test_absent_features_can_be_missing():
    X = load(SMALL, absent=np.nan).data
    np.testing.assert_array_equal(
        X, np.float32([[0.5, np.nan, -1e-3], [np.nan, 4, np.nan], [np.nan, 7, np.nan]])
    )


def test_a_byte_order_mark_is_skipped(monkeypatch):
    for n_bytes in (1, 1000):
        monkeypatch.setattr(text_files, "BLOCK_BYTES", n_bytes)
        np.testing.assert_array_equal(load(b"\xef\xbb\xbf" + SMALL).data, load(SMALL).data)


def test_sparse_equals_dense_without_stored_zeros():
    content = SMALL + b"0 qid:12 1:0 4:0\n"
    X = load(content, sparse=True).data
    assert sp.issparse(X)
    assert X.format == "csr"
    assert X.dtype == np.float32
    assert (X.data != 0).all()
    np.testing.assert_array_equal(X.toarray(), load(content).data)


def test_ids_are_the_text_after_the_first_hash():
    ids = load(SMALL, return_ids=True).ids
    assert ids.tolist() == ["docid = GX008-86-4444840 inc = 1", "GX2 # and more", ""]


def test_tuples():
    X, y, qid = load(SMALL, return_X_y_qid=True)
    assert X.shape == (3, 3)
    assert y.shape == qid.shape == (3,)
    assert len(load(SMALL, return_X_y_qid=True, return_ids=True)) == 4


def test_n_features():
    assert load(SMALL, n_features=6).data.shape == (3, 6)
    assert load(SMALL, n_features=6, sparse=True).data.shape == (3, 6)
    assert load(b"1 qid:1\n", n_features=2).data.tolist() == [[0, 0]]


def test_float64():
    assert load(b"1 qid:1 1:0.1 2:1e300", dtype=np.float64).data.tolist() == [[0.1, 1e300]]


@pytest.mark.parametrize(
    ("qids", "expected"),
    [
        (["7", "007", "-3"], [7, 7, -3]),
        (["7", "q_1_0", "7"], ["7", "q_1_0", "7"]),
        (["1.0", "2.0", "2.0"], ["1.0", "2.0", "2.0"]),
        (["1_0", "2", "2"], ["1_0", "2", "2"]),
        (["9223372036854775808", "1", "1"], ["9223372036854775808", "1", "1"]),
        (["zürich", "b", "b"], ["zürich", "b", "b"]),
        (["q" * 1000, "b", "9" * 1000], ["q" * 1000, "b", "9" * 1000]),
    ],
)
def test_qids_are_integers_if_all_are(qids, expected):
    content = "".join(f"0 qid:{qid} 1:1\n" for qid in qids).encode()
    assert load(content).qid.tolist() == expected


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)],
)
@pytest.mark.parametrize("as_path", [Path, str])
def test_compressed(tmp_path, suffix, compress, as_path):
    path = as_path(tmp_path / f"train.txt{suffix}")
    Path(path).write_bytes(compress(SMALL))
    np.testing.assert_array_equal(load_letor(path).data, load(SMALL).data)


def test_zstandard(tmp_path):
    path = tmp_path / "rows.txt.zst"
    if text_files._zstd is None:
        with pytest.raises(ValueError, match=r"ends in '.zst'; .* or install the package backports.zstd"):
            load_letor(path)
        return
    dump_letor(np.eye(2), [1, 0], path, qid=[1, 1])
    assert load_letor(path).data.tolist() == [[1, 0], [0, 1]]
    path.write_bytes(path.read_bytes() + text_files._zstd.compress(b"2 qid:3 1:5\n"))  # a second frame
    assert load_letor(path).target.tolist() == [1, 0, 2]
    for damaged in (path.read_bytes()[:-5], b"1 qid:1 1:2\n"):
        path.write_bytes(damaged)
        with pytest.raises(
            ValueError, match=r"rows.txt.zst is truncated, or not in the format of its suffix"
        ):
            load_letor(path)


def test_open_files_stay_open(tmp_path):
    path = tmp_path / "train.txt"
    path.write_bytes(SMALL)
    with path.open("rb") as file:
        assert len(load_letor(file).target) == 3
        assert not file.closed
    with path.open() as file, pytest.raises(ValueError, match="open as text"):
        load_letor(file)


def test_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 9)).astype(np.float32) * (rng.random((50, 9)) < 0.5)
    content = dump(X, rng.integers(0, 5, 50), np.arange(50) // 7)
    theirs, y, qid = load_svmlight_file(io.BytesIO(content), dtype=np.float32, query_id=True)
    ours = load(content)
    np.testing.assert_array_equal(ours.data, theirs.toarray())
    np.testing.assert_array_equal(ours.target, y)
    np.testing.assert_array_equal(ours.qid, qid)


MALFORMED = [
    ("", "no qid: the label is followed by the end of the line", "3"),
    ("", "no qid: the label is followed by '1:2'", "3 1:2"),
    ("", "no qid: the label is followed by 'qidx:1'", "3 qidx:1 1:2"),
    ("", "no qid: the label is followed by '1:2'", "3 1:2 qid:1"),
    ("", "'qid:'; expected qid:<query>", "3 qid: 1:2"),
    ("", "'qid:1:2'; expected qid:<query>", "3 qid:1:2 3:4"),
    ("", "no label: the line begins with 'qid:1'", "qid:1 1:2"),
    ("", "label 'good'; expected a finite number", "good qid:1 1:2"),
    ("", "label 'nan'; expected a finite number", "nan qid:1 1:2"),
    ("", "label 'inf'; expected a finite number", "inf qid:1 1:2"),
    ("", "label '1_0'; expected a finite number", "1_0 qid:1 1:2"),
    ("", "feature 'qid' in 'qid:2'; expected an integer", "1 qid:1 qid:2 1:2"),
    ("", "'2'; expected a pair feature:value", "1 qid:1 1:2 2"),
    ("", "'2'; expected a pair feature:value", "1 qid:1 1:2\r2 qid:1 1:3"),
    ("", "value '' of feature 2; expected a number", "1 qid:1 2: 3:4"),
    ("", "value '2:3' of feature 1; expected a number", "1 qid:1 1:2:3"),
    ("", "value 'x' of feature 1; expected a number", "1 qid:1 1:x"),
    ("", "value '1_0' of feature 1; expected a number", "1 qid:1 1:1_0"),
    ("", "value '1e300' of feature 1 is too large for float32; use dtype=np.float64", "1 qid:1 1:1e300"),
    ("", "feature '' in ':3'; expected an integer", "1 qid:1 :3"),
    ("", "feature 'a' in 'a:3'; expected an integer", "1 qid:1 a:3"),
    ("", "feature '1_0' in '1_0:3'; expected an integer", "1 qid:1 1_0:3"),
    ("", "feature 0 in '0:3'; expected at least 1", "1 qid:1 0:3 1:2"),
    ("", "feature -2 in '-2:3'; expected at least 1", "1 qid:1 -2:3"),
    ("", "feature '99999999999' in '99999999999:1'; expected at most 2147483647", "1 qid:1 99999999999:1"),
    ("", "feature 1 after feature 2; expected increasing order", "1 qid:1 2:3 1:4"),
    ("", "feature 2 twice; expected each feature at most once", "1 qid:1 2:3 2:4"),
    ("n_features", "feature 9; expected at most n_features=8", "1 qid:1 2:3 9:4"),
    ("", "feature '9999", "1 qid:1 " + "9" * 5000 + ":2"),
    ("", "expected an integer of at most 2147483647", "1 qid:1 " + "0" * 5000 + "1:2"),
    ("", "'qid:9999", "1 qid:" + "9" * 5000 + " 1:2"),
    (
        "",
        "expected qid:<query>, an integer or a string without ':', of at most 1000 bytes",
        f"1 qid:{'a' * 1001}",
    ),
    ("", "zero byte", "1 qid:1 1:\0002"),
    ("", "zero byte", "1 qid:1\0 1:2"),
    ("", "zero byte", "1 qid:1\0a 1:2"),
]


LONG = 1 << 20  # so long that a search that tries all parts of a text would take hours


@pytest.mark.parametrize(
    "line",
    [
        b"1" * LONG + b"x qid:1 1:2",
        b"1" * LONG + b"." + b"1" * LONG + b"x qid:1 1:2",
        b"1e" + b"1" * LONG + b"x qid:1 1:2",
        b" " * LONG + b"1" + b" " * LONG + b"1:2",
        b"1 qid:1 1:" + b"1" * LONG + b"x",
        b"1 qid:1 1:" + b"1" * LONG + b"." + b"1" * LONG + b"e",
        b"1 qid:1 1:." + b"1" * LONG + b".",
        b"1 qid:1 1:1e+" + b"1" * LONG + b".",
        b"1 qid:1 " + b"0" * LONG + b"1:2",
        b"1 qid:1 1:2" + b" " * LONG + b"x",
        b"1 qid:" + b"1" * LONG + b" 1:2",
    ],
)
def test_long_malformed_lines_are_refused_at_once(line):
    with pytest.raises(ValueError, match=r"^the open file, line 1: "):
        load(line)


@pytest.mark.parametrize(
    "text", ["1", "1.", "1.5", ".5", "+1.5e+3", "-.5E-03", "nan", "-Inf", "infinity", "007"]
)
def test_what_is_a_number(text):
    assert letor._is_number(text.encode())
    assert not letor._is_number(f"{text}x".encode())
    assert not letor._is_number(f"x{text}".encode())


@pytest.mark.parametrize("text", ["", ".", "+", "e5", ".e5", "1e", "1e+", "1.5.", "infin", "1_0", "+-1"])
def test_what_is_no_number(text):
    assert not letor._is_number(text.encode())


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("option", "expected", "line"), MALFORMED)
def test_malformed_lines(tmp_path, monkeypatch, option, expected, line, sparse):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 100)  # lines are counted across blocks
    path = tmp_path / "train.txt"
    path.write_bytes(SMALL + b"1 qid:12 1:2\n" * 20 + line.encode() + b"\n1 qid:13 1:2\n")
    with pytest.raises(ValueError, match="line 26") as error:
        load_letor(path, sparse=sparse, n_features=8 if option else None)
    assert str(error.value).startswith(f"{path}, line 26: ")
    assert expected in str(error.value)


TOKENS = [
    "0 qid:1 ",
    "1:2 ",
    "2:",
    "3",
    "#",
    "\n",
    "1 qid:2\n",
    "5:NULL",
    "2.5 qid:q ",
    " 7:-.5e1",
    "\r",
    "qid:07",
]
contents = (
    st.lists(st.sampled_from([*"012:.#q-+_e \n\r\0", "qid:", "qid:1", "1:2", "3:4", "nan", "inf"]))
    | st.lists(st.sampled_from(TOKENS))
).map(lambda tokens: "".join(tokens).encode())


@st.composite
def files(draw):
    """Well-formed lines, of which a few bytes may be others."""
    rows = draw(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["1", "2", "02", "q"]), feature_sets)))
    lines = [
        f"{label} qid:{query}" + "".join(f" {feature}:{value}" for feature, value in sorted(values.items()))
        for label, query, values in rows
    ]
    content = bytearray("".join(line + draw(st.sampled_from(ENDS)) for line in lines).encode())
    for place, byte in draw(
        st.dictionaries(st.integers(0, 10**6), st.sampled_from(b" \n\r\0#:.e0 9q-+_N"))
    ).items():
        if content:
            content[place % len(content)] = byte
    return bytes(content)


ENDS = ["\n", "\r\n", " # a b \n", "#\n", " \t\n\n", "\n# 9:1\n"]
values = st.sampled_from(["0", "1", "0.25", "1e-60", "-inf", "nan", "NULL", "1e39"]) | st.floats().map(repr)
feature_sets = st.dictionaries(st.integers(1, 12), values, max_size=6)


@given(
    contents | files(),
    st.sampled_from([1, 20, 100, 1 << 20]),
    st.sampled_from([np.float32, np.float64]),
    st.sampled_from([None, 10]),
    st.sampled_from([(), ("NULL",), ["-", "NULL", "1"]]),
    st.sampled_from([0.0, np.nan]),
    st.sampled_from([1, 2, 7]),
)
@settings(max_examples=500, deadline=None)
def test_compiled_and_slow_reading_agree(content, n_bytes, dtype, n_features, missing, absent, n_threads):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "BLOCK_BYTES", n_bytes)
        patch.setattr(letor, "effective_n_threads", lambda *_: n_threads)
        compare(content, dtype=dtype, missing=missing, n_features=n_features, absent=absent)


digits = st.text("0123456789", max_size=25)
decimals = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["", "-", "+"]),
    st.sampled_from(["", "0", "000"]),
    digits.map("0".__add__),
    st.sampled_from([""]) | digits.map(".".__add__),
    st.sampled_from(["", "e0", "E-7", "e+12"]) | st.integers(-360, 340).map("e{}".format),
)


@given(st.lists(decimals | st.floats(allow_nan=False).map(repr), min_size=1))
@settings(max_examples=300, deadline=None)
def test_numbers_are_those_of_strtod(texts):
    texts = [text for text in texts if "inf" in text or math.isfinite(float(text))]
    content = b"".join(b"0 qid:1 1:%b\n" % text.encode() for text in texts)
    expected = np.array([[float(text)] for text in texts]).reshape(-1, 1)
    if texts:
        read = load(content, dtype=np.float64).data
        np.testing.assert_array_equal(read.view(np.uint64), expected.view(np.uint64))


@pytest.mark.parametrize("n_digits", [15, 16, 17, 18, 19, 20])
def test_numbers_of_any_length_are_rounded_once(n_digits):
    rng = np.random.default_rng(n_digits)
    mantissas = rng.integers(10 ** (n_digits - 1), min(10**n_digits, 2**64), 3000, dtype=np.uint64)
    exponents = rng.integers(-30, 5, 3000)
    texts = [f"{mantissa}e{exponent}" for mantissa, exponent in zip(mantissas, exponents, strict=True)]
    read = load("".join(f"0 qid:1 1:{text}\n" for text in texts).encode(), dtype=np.float64).data
    assert read[:, 0].tolist() == [float(text) for text in texts]


@pytest.mark.parametrize("sparse", [False, True])
def test_threads_do_not_matter(monkeypatch, sparse):
    lines = [b"%d qid:%d %d:0.%d # d%d\n" % (i % 5, i // 7, i % 11 + 1, i, i) for i in range(9000)]
    content = b"".join(lines)
    found, written, errors = [], [], []
    lines[5000] = lines[7000] = b"1 1:2\n"
    for n_threads in (1, 2, 3, 12):
        monkeypatch.setattr(letor, "effective_n_threads", lambda *_, n=n_threads: n)
        data = load(content, sparse=sparse, return_ids=True)
        found.append([data.data.toarray() if sparse else data.data, data.target, data.qid, data.ids])
        written.append(dump(data.data, data.target, data.qid, ids=data.ids))
        with pytest.raises(ValueError, match="line 5001: no qid") as error:
            load(b"".join(lines))
        errors.append(str(error.value))
    for one in found:
        for array, first in zip(one, found[0], strict=True):
            np.testing.assert_array_equal(array, first, strict=True)
    assert set(written) == {written[0]}
    assert set(errors) == {errors[0]}


def test_memory_is_that_of_the_rows(monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 1 << 14)
    X = np.ones((20_000, 50), np.float32)
    content = io.BytesIO(dump(X, np.zeros(len(X)), np.zeros(len(X), int)))
    tracemalloc.start()
    try:
        read = load_letor(content).data
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.3 * read.nbytes + (1 << 20)


def test_what_else_stands_for_missing_values():
    content = b"1 qid:1 1:NULL 2:5\n0 qid:1 1:NULLS\n"
    with pytest.raises(ValueError, match="line 1: value 'NULL' of feature 1; expected a number"):
        load(content)
    with pytest.raises(ValueError, match="line 2: value 'NULLS' of feature 1; expected a number"):
        load(content, missing="NULL")
    read = load(content, missing=["NULL", "NULLS"], sparse=True).data
    np.testing.assert_array_equal(read.toarray(), np.float32([[np.nan, 5], [np.nan, 0]]))


def test_encodings(tmp_path):
    content = "1 qid:é 1:2 # ü\n".encode("latin-1")
    assert load(content, encoding="latin-1").qid.tolist() == ["é"]
    assert load(content, encoding="latin-1", return_ids=True).ids.tolist() == ["ü"]
    with pytest.warns(FitWarning, match=r"is no text in the encoding 'utf-8'.*encoding='latin-1'"):
        assert load(content, return_ids=True).ids.tolist() == ["\udcfc"]
    (tmp_path / "rows.txt").write_bytes(content)
    (batch,) = Batches.from_letor(tmp_path / "rows.txt", encoding="latin-1")
    assert batch.qid.tolist() == ["é"]


@pytest.mark.parametrize(
    ("suffix", "compress"), [(".gz", gzip.compress), (".xz", lzma.compress), (".bz2", bz2.compress)]
)
def test_compressed_files_need_their_suffix(suffix, compress):
    with pytest.raises(ValueError, match=rf"is compressed as files with the suffix '\{suffix}' are"):
        load(compress(b"1 qid:1 1:2\n"))


def test_lines_end_in_line_feeds():
    assert len(load(b"1 qid:1 1:2\r\n0 qid:1 1:3\r\n").target) == 2
    assert len(load(b"1 qid:1 1:2\r").target) == 1
    with pytest.raises(ValueError, match=r"line 1: '0'; .*; if lines end in them, replace them"):
        load(b"1 qid:1 1:2\r0 qid:1 1:3\r")


def test_one_file_is_read(tmp_path):
    with pytest.raises(TypeError, match=r"path is <list of length 1>; expected the path of a file"):
        load_letor([tmp_path / "rows.txt"])


def test_texts_that_are_no_numbers_may_be_missing():
    for text in ("NULL", "1.79769313486232e+308"):  # the latter rounds the largest number up, to infinity
        content = f"1 qid:7 1:{text} 2:3".encode()
        with pytest.raises(ValueError, match=rf"a missing value, pass missing={re.escape(repr(text))}"):
            load(content, dtype=np.float64)
        np.testing.assert_array_equal(load(content, missing=text).data, [[np.nan, 3]])


def test_blocks_do_not_matter(monkeypatch):
    expected = load(SMALL * 9, return_ids=True)
    for n_bytes in (1, 30, 60, 200):
        monkeypatch.setattr(text_files, "BLOCK_BYTES", n_bytes)
        data = load(SMALL * 9, return_ids=True)
        for name in ("data", "target", "qid", "ids"):
            np.testing.assert_array_equal(data[name], expected[name])
        np.testing.assert_array_equal(load(SMALL * 9, sparse=True).data.toarray(), expected.data)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2"])
def test_a_line_without_end_is_not_held_in_memory(tmp_path, monkeypatch, suffix):
    """A small compressed file may hold one that fills the memory."""
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 16)
    monkeypatch.setattr(text_files, "LONGEST_LINE", 1 << 20)
    path = tmp_path / f"rows.txt{suffix}"
    for n_bytes, too_long in ((1 << 19, False), (1 << 21, True)):
        with text_files.OPENERS.get(suffix, open)(path, "wb") as file:
            file.write(SMALL + b"1 qid:12 1:2 # " + b"x" * n_bytes)
        if too_long:
            message = f"rows.txt{suffix}, line 6: longer than 1 MiB; expected a row in each line"
            with pytest.raises(ValueError, match=message):
                load_letor(path)
        else:
            assert len(load_letor(path).target) == 4


def test_blocks_of_blank_lines_and_comments_are_not_read_line_by_line(monkeypatch):
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 100)
    blank = b"\n \t\r\n# a comment\n" * 100
    read = []
    find = letor._find_problem
    monkeypatch.setattr(letor, "_find_problem", lambda *args: read.append(args) or find(*args))
    assert len(load(blank + SMALL + blank).target) == 3
    assert read == []
    with pytest.raises(ValueError, match="line 301: no qid"):
        load(blank + b"1\n" + blank)


def test_a_mistyped_feature_makes_no_array_of_so_many_columns(tmp_path, monkeypatch):
    """It is refused by its line, before room is asked for, unless it is meant."""
    monkeypatch.setattr(text_files, "BLOCK_BYTES", 100)
    path, good, fold = tmp_path / "rows.txt", tmp_path / "good.txt", tmp_path / "Fold1"
    line = b"1 qid:12 1:2 1000000000:5 # 2000000000:1\n"
    path.write_bytes(SMALL * 3 + line + SMALL)
    good.write_bytes(SMALL)
    fold.mkdir()
    for part, content in {"train": SMALL, "vali": SMALL + line, "test": SMALL}.items():
        (fold / f"{part}.txt").write_bytes(content)
    feature = "feature 1000000000, which makes [0-9]* rows a dense array of .* GiB for [0-9]* values"
    with pytest.raises(ValueError, match=f"rows.txt, line 16: {feature}.* n_features=1000.* sparse=True"):
        load_letor(path)
    with pytest.raises(ValueError, match=f"vali.txt, line 6: {feature}"):
        load_letor_folds(tmp_path)
    batches = Batches.from_letor([good, path])
    with pytest.raises(ValueError, match=f"rows.txt, line 16: {feature}.* if it is intended.$"):
        next(iter(batches))
    assert load_letor(path, sparse=True).data.shape == (13, 10**9)
    assert next(load_letor_folds(tmp_path, sparse=True)).test.data.shape == (3, 10**9)


@pytest.mark.parametrize("n_features", [None, 1000])
def test_wide_and_empty_is_dense_where_it_is_small_or_meant(monkeypatch, n_features):
    content = b"1 qid:1 1000:1\n" * 9
    assert load(content).data.shape == (9, 1000)
    monkeypatch.setattr(letor, "_LARGE_BYTES", 1000)
    if n_features is None:
        with pytest.raises(ValueError, match="line 1: feature 1000, which makes 9 rows"):
            load(content)
    else:
        assert load(content, n_features=n_features).data.shape == (9, 1000)
    monkeypatch.setattr(letor, "_CELLS_PER_VALUE", 1000)
    assert load(content).data.shape == (9, 1000)


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        (b"", {}, "holds no rows"),
        (b"\n# nothing\n", {}, "holds no rows"),
        (b"1 qid:1\n", {}, "holds no feature:value pair; pass n_features"),
        (SMALL, {"absent": np.nan, "sparse": True}, "use sparse=False"),
        (SMALL, {"absent": 1.0}, "absent=1.0; expected 0.0 or nan"),
        (SMALL, {"dtype": np.int32}, "expected np.float32 or np.float64"),
        (SMALL, {"n_features": 0}, "n_features=0; expected an integer of at least 1"),
        (SMALL, {"n_features": 2.0}, "n_features=2.0; expected an integer of at least 1"),
        (SMALL, {"missing": ""}, "missing holds ''; expected texts such as 'NULL'"),
        (SMALL, {"missing": ["NULL", "a b"]}, "missing holds 'a b'"),
        (SMALL, {"missing": [None]}, "missing holds None"),
        (SMALL, {"encoding": "utf-16"}, "encoding='utf-16'; expected the name of an encoding that has ASCII"),
        (SMALL, {"encoding": "latin-99"}, "encoding='latin-99'; expected the name"),
    ],
)
def test_bad_arguments(content, options, expected):
    with pytest.raises(ValueError, match=expected):
        load(content, **options)


# Writing


@st.composite
def rankings(draw, has_missing):
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    shape = draw(hnp.array_shapes(min_dims=2, max_dims=2, max_side=6))
    width = np.dtype(dtype).itemsize * 8
    value = st.floats(width=width, allow_nan=has_missing) | st.sampled_from(
        [0.0, 1.0, 0.1 if width == 64 else 0.5]
    )
    X = draw(hnp.arrays(dtype, shape, elements=value))
    y = draw(hnp.arrays(np.float64, shape[0], elements=st.floats(allow_nan=False, allow_infinity=False)))
    integers = st.integers(-(2**63) + 1, 2**63 - 1)
    texts = st.text(min_size=1).filter(lambda text: not set(text) & set(" \t\n\r\v\f:#\0"))
    qid = draw(
        st.lists(integers, min_size=shape[0], max_size=shape[0])
        | st.lists(texts.map("q".__add__), min_size=shape[0], max_size=shape[0])
    )
    lines = st.text().map(lambda text: text.replace("\n", "").strip(" \t\n\r\v\f"))
    ids = draw(st.lists(lines, min_size=shape[0], max_size=shape[0]))
    return X, y, qid, ids


@given(rankings(has_missing=False), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_load_inverts_dump(ranking, sparse, keep_zeros):
    X, y, qid, ids = ranking
    content = dump(sp.csr_array(X) if sparse else X, y, qid, ids=ids, keep_zeros=keep_zeros)
    data = load(content, dtype=X.dtype, sparse=sparse, return_ids=True)
    np.testing.assert_array_equal(data.data.toarray() if sparse else data.data, X, strict=True)
    np.testing.assert_array_equal(data.target, y)
    assert data.qid.tolist() == qid
    assert data.ids.tolist() == ids


@given(rankings(has_missing=True))
@settings(max_examples=150, deadline=None)
def test_load_inverts_dump_with_missing_values(ranking):
    X, y, qid, _ = ranking
    has_missing = np.isnan(X).any()
    data = load(dump(X, y, qid), dtype=X.dtype, absent=np.nan if has_missing else 0.0)
    np.testing.assert_array_equal(data.data, X, strict=True)
    sparse = load(dump(sp.csr_array(X), y, qid), dtype=X.dtype, sparse=True)
    np.testing.assert_array_equal(sparse.data.toarray(), X, strict=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_masked_entries_are_missing(dtype):
    X = np.ma.array([[1, 2], [3, 4], [5, 6]], dtype, mask=[[True, False], [False, False], [False, True]])
    given = np.where(X.mask, np.nan, X.data)
    np.testing.assert_array_equal(load(dump(X, [0, 1, 2], [7, 7, 8]), absent=np.nan).data, given)


@pytest.mark.parametrize(("encoding", "place"), [("utf-8", b"M\xc3\xbcnchen"), ("latin-1", b"M\xfcnchen")])
def test_dump_encodes_as_load_decodes(encoding, place):
    ids, qid = ["Fuß 1", ""], ["München", "q2"]
    content = dump(np.eye(2), [1, 0], qid, ids=ids, encoding=encoding)
    assert b"qid:" + place in content
    read = load(content, return_ids=True, encoding=encoding)
    assert read.qid.tolist() == qid
    assert read.ids.tolist() == ids
    with pytest.warns(FitWarning, match="as surrogates"):
        kept = load(content, return_ids=True, encoding="ascii")
    assert dump(kept.data, kept.target, kept.qid, ids=kept.ids, encoding="ascii") == content


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2"])
def test_dump_compresses_by_suffix(tmp_path, suffix):
    path = tmp_path / f"train.txt{suffix}"
    X = np.eye(300, dtype=np.float32)
    dump_letor(X, np.arange(300), path, qid=np.arange(300))
    magic = {"": b"0 qid:0", ".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ", ".bz2": b"BZh"}[suffix]
    assert path.read_bytes().startswith(magic)
    np.testing.assert_array_equal(load_letor(path).data, X)


def test_dump_in_blocks(monkeypatch):
    X = np.eye(10, 12, dtype=np.float32)
    expected = dump(X, np.arange(10), np.arange(10))
    monkeypatch.setattr(letor, "_BLOCK_ROWS", 3)
    assert dump(X, np.arange(10), np.arange(10)) == expected
    assert dump(sp.csr_array(X), np.arange(10), np.arange(10)) == expected


def test_dump_of_any_layout():
    X = np.random.default_rng(0).random((8, 6))
    expected = dump(np.ascontiguousarray(X[1::2, ::-2]), np.zeros(4), np.zeros(4, int))
    for some in (X[1::2, ::-2], np.asfortranarray(X[1::2, ::-2])):
        assert dump(some, np.zeros(4), np.zeros(4, int)) == expected


def test_dump_is_short_and_keeps_the_width():
    X = np.float32([[0.1, 0, 0], [100, 1e-20, 0]])
    assert dump(X, [1, 0.5], [3, 3]) == b"1 qid:3 1:0.1 3:0\n0.5 qid:3 1:100 2:1e-20\n"
    assert dump(X, [1, 0], [3, 3], keep_zeros=True).startswith(b"1 qid:3 1:0.1 2:0 3:0\n")
    X[0, 1:] = np.nan
    assert dump(X, [1, 0], [3, 3]) == b"1 qid:3 1:0.1\n0 qid:3 1:100 2:1e-20 3:0\n"


def test_dump_sums_duplicates_and_sorts():
    X = sp.csr_array((np.float64([1, 2, 4]), [2, 0, 2], [0, 3]), shape=(1, 3))
    assert dump(X, [1], [1]) == b"1 qid:1 1:2 3:5\n"
    assert X.nnz == 3


@pytest.mark.parametrize("given", ["path first", "path second"])
def test_dump_takes_the_path_behind_the_rows(given, tmp_path):
    path, X, y = tmp_path / "rows.txt", np.ones((2, 3)), [1, 0]
    arguments = (path, X, y) if given == "path first" else (X, path, y)
    with pytest.raises(TypeError, match=r"path is <list of length 2>; .* dump_letor\(X, y, path, qid=qid\)"):
        dump_letor(*arguments, qid=[7, 7])
    assert not path.exists()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"y": [1]}, r"y has shape \(1,\); expected \(2,\)"),
        ({"y": [1, np.nan]}, "y contains NaN"),
        ({"y": np.ma.array([1, 2], mask=[False, True])}, "y contains NaN"),
        ({"qid": [1]}, r"qid has shape \(1,\); expected \(2,\)"),
        ({"qid": [1, 2.5]}, "qid holds 1.0; expected integers"),
        ({"qid": np.ma.array([1, 2], mask=[False, True])}, "qid holds None; expected integers"),
        ({"qid": ["a", "b c"]}, "qid holds 'b c'; expected integers, or strings"),
        ({"qid": ["a", "b:c"]}, "qid holds 'b:c'"),
        ({"qid": ["a", ""]}, "qid holds ''"),
        ({"qid": ["a", "é" * 501]}, "qid holds 'é*'; .* strings of at most 1000 bytes"),
        ({"qid": [True, False]}, "qid holds True"),
        ({"ids": ["a"]}, r"ids has shape \(1,\)"),
        ({"ids": ["a", "b\nc"]}, "expected single lines"),
        ({"ids": ["a", " b"]}, "expected single lines"),
        (
            {"ids": ["a", "€"], "encoding": "latin-1"},
            "ids holds '€', which encoding='latin-1' cannot write; .*utf-8",
        ),
        ({"qid": ["a", "я"], "encoding": "latin-1"}, "qid holds 'я', which encoding='latin-1' cannot write"),
        ({"encoding": "utf-16"}, "encoding='utf-16'; expected the name of an encoding that has ASCII in it"),
        ({"X": [[0, 1], [np.nan, 2]], "keep_zeros": False}, "Leave keep_zeros out"),
        ({"X": np.empty((0, 2)), "y": [], "qid": []}, "0 sample"),
    ],
)
def test_dump_refuses(tmp_path, changes, expected):
    arguments = {"X": np.eye(2), "y": [1, 0], "qid": [1, 1]} | changes
    with pytest.raises(ValueError, match=expected):
        dump_letor(path=tmp_path / "out.txt", **arguments)
    assert not (tmp_path / "out.txt").exists()


def written(values):
    """How the values of a column are spelled."""
    lines = dump(values[:, None], np.zeros(len(values)), np.zeros(len(values), int), keep_zeros=True)
    return [line.partition(b":")[2].partition(b":")[2].decode() for line in lines.splitlines()]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_have_the_digits_of_their_repr(dtype):
    bits = np.random.default_rng(0).bytes(30_000 * np.dtype(dtype).itemsize)
    powers = [2.0**k for k in range(-149, 128)] + [10.0**k for k in range(-45, 39)]
    short = np.random.default_rng(1).integers(1, 10**7, 10_000) / 10.0 ** np.arange(10_000).__mod__(10)
    others = [np.array(some, dtype) for some in (powers, short, [-0.0])]
    values = np.concatenate([np.frombuffer(bits, dtype), *others])
    values = values[np.isfinite(values)]
    texts = written(values)
    np.testing.assert_array_equal([dtype(float(text)) for text in texts], values)
    assert [*map(Decimal, texts)] == [Decimal(str(value)) for value in values]


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_float64_is_written_as_python_does(values):
    assert written(np.array(values)) == [repr(value).removesuffix(".0") for value in values]


def test_shortest_texts_survive_reading_through_float64():
    """7.038531e-26 is nearest to the first value, and nearest to the middle of both as float64."""
    values = np.uint32([0x15AE43FD, 0x15AE43FE]).view(np.float32)
    assert np.float32(float(str(values[0]))) == values[1]
    np.testing.assert_array_equal(np.array(written(values), float).astype(np.float32), values)


# Folds


def write_folds(folder, *names, suffix=""):
    opener = {"": open, ".gz": gzip.open, ".xz": lzma.open}[suffix]
    for i, name in enumerate(names):
        (folder / name).mkdir(exist_ok=True)
        for j, part in enumerate(("train", "vali", "test")):
            with opener(folder / name / f"{part}.txt{suffix}", "wb") as file:
                file.write(b"%d qid:%d 1:1 %d:2 # d%d\n" % (j, i, 2 + i + j, j))


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_folds_have_the_same_number_of_features(tmp_path, suffix):
    write_folds(tmp_path, "Fold1", "Fold2", "Fold10", suffix=suffix)
    (tmp_path / "notes").mkdir()
    folds = list(load_letor_folds(tmp_path, return_ids=True))
    assert [fold.name for fold in folds] == ["Fold1", "Fold2", "Fold10"]
    for i, fold in enumerate(folds):
        for j, part in enumerate((fold.train, fold.vali, fold.test)):
            assert part.data.shape == (1, 6)
            assert part.data[0, 1 + i + j] == 2
            assert part.qid.tolist() == [i]
            assert part.target.tolist() == [j]
            assert part.ids.tolist() == [f"d{j}"]


def test_a_single_fold_and_options(tmp_path):
    write_folds(tmp_path, "data")
    (fold,) = load_letor_folds(tmp_path / "data", n_features=7, sparse=True, dtype=np.float64)
    assert fold.name == "data"
    assert fold.test.data.shape == (1, 7)
    assert fold.test.data.dtype == np.float64
    assert sp.issparse(fold.test.data)


def test_folds_that_lack_something_are_refused_at_once(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no train\.txt"):
        load_letor_folds(tmp_path)
    with pytest.raises(FileNotFoundError, match="is not a folder"):
        load_letor_folds(tmp_path / "absent")
    write_folds(tmp_path, "Fold1", "Fold2")
    (tmp_path / "Fold2" / "vali.txt").unlink()
    with pytest.raises(FileNotFoundError, match=r"Fold2 holds no vali\.txt"):
        load_letor_folds(tmp_path)


def test_folds_as_yahoo_and_others_name_them(tmp_path):
    for name in ("set2", "set1"):
        for part in ("train", "valid", "test"):
            (tmp_path / f"{name}.{part}.txt").write_text(f"1 qid:1 {len(part)}:1\n")
    folds = list(load_letor_folds(tmp_path))
    assert [fold.name for fold in folds] == ["set1", "set2"]
    assert [folds[0][part].data.sum(axis=0).nonzero()[0].item() for part in ("train", "vali", "test")] == [
        4,
        4,
        3,
    ]
    (tmp_path / "set2.vali.txt").write_text("1 qid:1 1:1\n")
    with pytest.raises(ValueError, match=r"holds set2.vali.txt and set2.valid.txt, which are the same part"):
        load_letor_folds(tmp_path)


def test_folds_without_a_part(tmp_path):
    for part in ("train", "test"):
        (tmp_path / f"{part}.txt").write_text("1 qid:1 1:1\n")
    with pytest.raises(
        FileNotFoundError, match=r"holds no vali.txt or valid.txt, .* parts=\['train', 'test'\] if"
    ):
        load_letor_folds(tmp_path)
    (fold,) = load_letor_folds(tmp_path, parts=("train", "test"))
    assert fold.keys() == {"name", "train", "test"}
    for parts in ((), ("train", "train"), ("dev",)):
        with pytest.raises(ValueError, match=r"parts=.*; expected some of \('train', 'vali', 'test'\)"):
            load_letor_folds(tmp_path, parts=parts)


@given(
    st.lists(
        st.sampled_from(["1 qid:1 1:2", "0 qid:2 2:1 5:3 # 9:1", "2 qid:3", "# 8:1", "", "1 qid:4 +7:2"])
    )
)
@settings(max_examples=50, deadline=None)
def test_the_quick_look_finds_the_largest_feature(lines):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.txt")
        path.write_text("\n".join(lines))
        seen = letor._scan([path])
        found = seen.largest
        if found:
            data = load_letor(path)
            assert data.data.shape[1] == found
            assert seen.n_values == np.count_nonzero(data.data)
            assert f"{found}:" in lines[int(seen.where.rpartition(" ")[2]) - 1]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_that_are_too_large_are_refused_and_infinities_are_not(dtype):
    for text in (b"1e309", b"-1e400"):
        with pytest.raises(
            ValueError, match=rf"value '{text.decode()}' of feature 1 is too large for float\d\d; if it"
        ):
            load_letor(io.BytesIO(b"1 qid:1 1:" + text + b"\n"), dtype=dtype)
    found = load_letor(io.BytesIO(b"1 qid:1 1:inf 2:-Infinity\n"), dtype=dtype).data
    assert found.tolist() == [[math.inf, -math.inf]]
