"""What users may pass, what is refused and with which message, and what the code below receives."""

import copy
import gc
import pickle
import warnings
from datetime import date, time, timedelta
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.exceptions import DataConversionWarning

from ranktrees.rows import (
    FitData,
    MissingQueryWarning,
    OrderedLevels,
    ValidationRows,
    category_columns,
    check_fit,
    check_rows,
    check_score,
    check_validation,
    find_queries,
    joined_levels,
    qid_of,
    query_offsets,
    sizes_to_qid,
    unchanged_on_failure,
)

N_ROWS = 12
QID = np.repeat([0, 1, 2], 4)
LABELS = np.arange(N_ROWS) % 4


class Ranker(BaseEstimator):
    """Nothing but a name and attributes."""


def some_rows(n_rows=N_ROWS, n_features=3):
    return np.random.default_rng(0).normal(size=(n_rows, n_features)).round(3)


def rows_of(X, **keywords):
    return check_rows(Ranker(), X, reset=True, **keywords)


def fit(X=None, y=LABELS, **keywords):
    keywords.setdefault("qid", QID)
    return check_fit(Ranker(), some_rows() if X is None else X, y, **keywords)


def refused(call, *parts, error=ValueError):
    """Assert that a call is refused by a message that holds all the parts; return it."""
    with pytest.raises(error) as caught:
        call()
    for part in parts:
        assert part.lower() in str(caught.value).lower(), f"{part!r} is not in: {caught.value}"
    return str(caught.value)


# ---------------------------------------------------------------------------------------------- query ids


def queries_by_hand(ids):
    rows_of_query = {}
    for row, value in enumerate(ids):
        rows_of_query.setdefault(value, []).append(row)
    return list(rows_of_query.values())


def queries_found(ids):
    order, offsets = query_offsets(ids, len(ids))
    order = np.arange(len(ids)) if order is None else order
    return [list(order[a:b]) for a, b in pairwise(offsets)]


IDS = st.one_of(
    *[
        hnp.arrays(dtype, st.integers(1, 40), elements=elements)
        for dtype, elements in [
            (np.int64, st.integers(2**53 - 2, 2**53 + 3)),
            (np.int8, st.integers(-2, 2)),
            (np.uint64, st.integers(2**64 - 4, 2**64 - 1)),
            (np.dtype(">i4"), st.integers(-3, 3)),
            (np.float64, st.sampled_from([0.0, 0.2, 0.4, -0.0, 1.5, 1 - 2.0**53])),
            (np.bool_, st.booleans()),
            (np.dtype("U3"), st.sampled_from(["a", "b", "ab", "1"])),
        ]
    ],
    st.lists(
        st.sampled_from([1, "1", (1, 2), 2**70, -1, 2**63, 0.5, b"1"]),
        min_size=1,
        max_size=40,
    ),
)


@given(IDS)
@settings(deadline=None)
def test_offsets_partition_the_rows_by_id_in_order_of_appearance(ids):
    """The order sorts stably, offsets are those of a dictionary of lists, and None means sorted already."""
    assert queries_found(ids) == queries_by_hand(list(ids))
    order, offsets = query_offsets(ids, len(ids))
    assert offsets.dtype == np.int64
    assert offsets[0] == 0
    assert offsets[-1] == len(ids)
    assert (np.diff(offsets) > 0).all()
    if order is not None:
        assert order.dtype == np.intp
        assert_array_equal(np.sort(order), np.arange(len(ids)))
        assert not np.array_equal(order, np.arange(len(ids)))


@given(st.lists(st.integers(0, 5), min_size=1, max_size=30), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_names_of_queries_do_not_matter(ids, random):
    names = [f"query {i}" for i in range(6)]
    random.shuffle(names)
    order, offsets = query_offsets(ids, len(ids))
    named_order, named_offsets = query_offsets([names[i] for i in ids], len(ids))
    assert_array_equal(offsets, named_offsets)
    assert_array_equal(order, named_order)


@pytest.mark.parametrize(
    "convert",
    [
        list,
        tuple,
        pd.Series,
        pd.Index,
        pl.Series,
        pa.array,
        lambda q: pa.chunked_array([q[:3], q[3:]]),
        lambda q: pa.array(q).dictionary_encode(),
        lambda q: pd.Series(q, dtype="Int64", index=q[::-1]),
        lambda q: pd.Series(q, dtype="int64[pyarrow]"),
        lambda q: pd.Series(q).astype("category"),
        lambda q: pd.Series(q).astype(str),
        lambda q: pl.Series(q).cast(pl.String).cast(pl.Categorical),
        lambda q: pl.Series([2**100 + int(i) for i in q], dtype=pl.Int128),
        lambda q: q.astype(object),
        lambda q: q.astype(str),
        lambda q: q.astype(bytes),
        lambda q: q.astype(np.float16),
        lambda q: q.astype(np.longdouble),
        lambda q: q * 0.2,
        lambda q: q + 0.5,
        lambda q: q.astype(">i8"),
        lambda q: q.astype(np.uint64) + np.uint64(2**64 - 50),
        lambda q: q.astype(np.int64) + 2**53,
        lambda q: q.astype(np.int64) * 2**32,
        lambda q: q.astype("datetime64[D]"),
        lambda q: q.astype("timedelta64[s]"),
        lambda q: [(i, "a") for i in q],
        lambda q: pd.MultiIndex.from_arrays([q % 3, q]),
        lambda q: (2.0**24 - q).astype(np.float32),
        lambda q: np.ma.masked_array(q, q > 99),
        lambda q: np.repeat(q, 2)[::2],
    ],
)
def test_ids_of_every_kind_are_the_same_queries(convert):
    ids = np.array([4, 4, 1, 7, 4, 1])
    assert queries_found(convert(ids)) == [[0, 1, 4], [2, 5], [3]]


@pytest.mark.parametrize(
    ("qid", "parts"),
    [
        (np.where(QID == 1, np.nan, QID), ("qid", "NaN", "row 4", "drop")),
        ([*QID[:-1], None], ("qid", "missing", "row 11")),
        (["a"] * 11 + [float("nan")], ("qid", "missing", "row 11")),
        ([pd.NA] + ["a"] * 11, ("qid", "missing", "row 0")),
        (pd.Series([1, None] * 6, dtype="Int64"), ("qid", "missing", "row 1")),
        (pd.Series([None, "b"] * 6), ("qid", "missing", "row 0")),
        (pl.Series([1, 1, None] * 4), ("qid", "missing", "row 2")),
        (pa.array([1, 1, None] * 4), ("qid", "missing", "row 2")),
        (np.ma.masked_array(QID, QID == 2), ("qid", "missing", "row 8")),
        (np.array(["2020-01-01", "NaT"] * 6, "datetime64[D]"), ("qid", "NaT", "row 1")),
        (pd.MultiIndex.from_arrays([QID, np.where(QID == 1, np.nan, 0)]), ("qid", "missing", "row 4")),
        ((2**24 + QID).astype(np.float32), ("qid", "float32 16777216.0", "row 0", "2**24", "integers")),
        (-(2.0**53) - QID, ("qid", "float64 -9007199254740", "row 0", "2**53")),
        ((2.0**53 + QID).tolist(), ("qid", "float64 9007199254740", "row 0", "2**53")),
        ((2.0**53 + QID).astype(object), ("qid", "float64 9007199254740", "row 0", "2**53")),
        (list((2.0**24 + QID).astype(np.float32)), ("qid", "float32 1677721", "row 0", "2**24")),
        (np.where(QID == 1, np.inf, 0).astype(np.float16), ("qid", "float16 inf", "row 4", "2**11")),
        (np.column_stack([QID, QID]), ("qid", "(12, 2)", "one dimension")),
        (pd.DataFrame({"qid": QID}), ("qid", "(12, 1)", "one dimension")),
        (pl.DataFrame({"qid": QID}), ("qid", "(12, 1)", "one dimension")),
        ([[1]] * 12, ("qid", "list", "hashable", "one dimension")),
        ([np.array([1])] * 12, ("qid", "hashable")),
        (QID[:-1], ("qid", "11", "12")),
        (np.append(QID, 2), ("qid", "13", "12")),
        ([4, 4, 4], ("qid", "3", "12", "sizes of queries", "np.repeat")),
        ([], ("qid", "empty")),
        (np.array(3), ("qid", "()")),
        (3, ("qid", "3")),
        ("twelve words", ("qid", "twelve words")),
        (None, ("qid", "None")),
        ({1: 2}, ("qid", "dict")),
        ((i for i in QID), ("qid", "generator")),
    ],
)
def test_wrong_ids_are_refused(qid, parts):
    refused(lambda: query_offsets(qid, N_ROWS), *parts)


def test_messages_use_the_name_of_the_argument():
    refused(lambda: query_offsets([1], 2, "qid_val"), "qid_val has length 1", "2 in all")


@pytest.mark.parametrize(
    "group",
    [[2, 3], np.array([2.0, 3.0]), (2, 3), pd.Series([2, 3]), np.array([2, 3], np.uint64), pl.Series([2, 3])],
)
def test_sizes_become_ids(group):
    assert_array_equal(sizes_to_qid(group, 5), [0, 0, 1, 1, 1])


@pytest.mark.parametrize(
    ("group", "parts"),
    [
        ([2], ("sums to 2", "5 rows")),
        ([7, -2], ("negative", "position 1")),
        ([3, 0, 2], ("zero", "position 1")),
        ([2.5, 2.5], ("fraction",)),
        ([5, np.nan], ("nan",)),
        (np.array([2**32 + 5]), ("larger", "sum")),
        (np.array([2**64 - 1, 6], np.uint64), ("larger", "sum")),
        ([2**64 + 5], ("larger",)),
        ([np.inf], ("larger",)),
        ([[2, 3]], ("(1, 2)",)),
        ([[2], [3, 4]], ("array",)),
        (5, ("()",)),
        ([], ("(0,)",)),
        (["2", "3"], ("'2'",)),
        ([True, True], ("True",)),
        ([0, 0, 1, 1, 1], ("zero",)),
        ([1, 1, 2, 2, 2], ("looks like query ids", "qid=")),
    ],
)
def test_wrong_sizes_are_refused(group, parts):
    refused(lambda: sizes_to_qid(group, 5), "group", *parts)


def test_ids_ride_in_the_index():
    y = pd.Series(LABELS, index=pd.Index(QID, name="qid"))
    assert_array_equal(qid_of(y[3:6]), QID[3:6])
    levels = pd.MultiIndex.from_arrays([QID, np.arange(N_ROWS)], names=["qid", "document"])
    assert_array_equal(qid_of(pd.DataFrame({"a": LABELS}, index=levels)), QID)
    for nothing in (
        LABELS,
        pd.Series(LABELS),
        [1, 2],
        None,
        "qid",
        pl.Series(LABELS),
        pd.DataFrame({"qid": QID}),
    ):
        assert qid_of(nothing) is None


def test_two_levels_of_ids_are_refused():
    index = pd.MultiIndex.from_arrays([QID, QID], names=["qid", "qid"])
    refused(lambda: qid_of(pd.Series(LABELS, index=index)), "2 levels named 'qid'", "rename")


def test_sources_of_ids_must_agree():
    y = pd.Series(LABELS, index=pd.Index(QID, name="qid"))
    order, offsets = find_queries(N_ROWS, {"qid": QID.astype(str), "groups": QID + 5}, {"y": y})
    assert order is None
    assert_array_equal(offsets, [0, 4, 8, 12])
    refused(
        lambda: find_queries(N_ROWS, {"qid": QID % 2}, {"y": y}), "qid", "index level 'qid' of y", "disagree"
    )
    refused(lambda: fit(groups=QID[::-1] // 2), "qid and groups disagree", "leave one")
    refused(lambda: fit(group=[6, 6]), "qid and group disagree")


# --------------------------------------------------------------------------------------------------- rows


def read_only(X):
    X = X.copy()
    X.setflags(write=False)
    return X


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "layout",
    [
        np.ascontiguousarray,
        np.asfortranarray,
        lambda X: np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::2],
        lambda X: X[::-1, ::-1],
        lambda X: np.broadcast_to(X[:1], X.shape),
        read_only,
    ],
)
def test_float_arrays_are_not_copied(dtype, layout):
    X = layout(some_rows().astype(dtype))
    rows = rows_of(X)
    assert rows.__array_interface__ == X.__array_interface__
    assert rows.flags.writeable == X.flags.writeable


def test_memory_map_is_not_copied(tmp_path):
    X = np.memmap(tmp_path / "rows", np.float32, "w+", shape=(4, 2))
    X[:] = 3
    rows = rows_of(X)
    assert np.shares_memory(rows, X)
    assert type(rows) is np.ndarray


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float_frames_are_neither_copied_nor_taken_apart(dtype, monkeypatch):
    X = pd.DataFrame(some_rows().astype(dtype))
    ranker = Ranker()
    check_rows(ranker, X, reset=True)
    monkeypatch.setattr("ranktrees.rows.matrix.frame_columns", None)
    assert np.shares_memory(check_rows(ranker, X, reset=False), X.to_numpy())


@pytest.mark.parametrize(
    ("X", "dtype"),
    [
        (some_rows().astype(np.float16), np.float32),
        (some_rows().astype(np.longdouble), np.float64),
        (some_rows().astype(">f8"), np.float64),
        (some_rows().astype(">f4"), np.float32),
        (some_rows() > 0, np.float32),
        (np.array([[-(2**24), 2**24]]), np.float32),
        (np.array([[2**24 + 1, 0]]), np.float64),
        (np.array([[2**53, -(2**53)]]), np.float64),
        (np.array([[2**53, 0]], np.uint64), np.float64),
        (np.array([[200, 1]], np.uint8), np.float32),
        (np.array([[60000, 1]], ">u2"), np.float32),
        (np.array([[1, 2.5], [True, 2**53]], object), np.float64),
        ([[1, 2], [3, 4]], np.float32),
        (((1.5, 2), (3, 4)), np.float64),
        ([np.array([1.0, 2.0])], np.float64),
    ],
)
def test_numbers_keep_their_values(X, dtype):
    rows = rows_of(X)
    assert rows.dtype == dtype
    assert rows.dtype.isnative
    assert_array_equal(rows, np.asarray(X).astype(np.float64))


def test_unaligned_rows_are_copied():
    X = np.frombuffer(bytearray(8 * 6 + 1), np.float64, count=6, offset=1).reshape(3, 2)
    assert not X.flags.aligned
    assert rows_of(X).flags.aligned


def test_infinities_and_missing_values_stay():
    X = np.array([[np.nan, np.inf], [-np.inf, 1.0]])
    assert rows_of(X) is X
    assert_array_equal(rows_of(np.array([[None, 2.0]], object)), [[np.nan, 2]])
    assert_array_equal(rows_of(np.array([[1, pd.NA], [pd.NA, 2.5]], object)), [[1, np.nan], [np.nan, 2.5]])


@pytest.mark.parametrize("dtype", [np.int64, np.float32, object])
def test_masked_entries_are_missing(dtype):
    data = np.array([[1, 10**9], [3, 4]]).astype(dtype)
    X = np.ma.masked_array(data, [[False, True], [False, False]])
    assert_array_equal(rows_of(X), [[1, np.nan], [3, 4]])
    assert data[0, 1] == 10**9
    plain = np.ma.masked_array(some_rows())
    assert np.shares_memory(rows_of(plain), plain.data)


@pytest.mark.parametrize(
    ("X", "error", "parts"),
    [
        (None, ValueError, ("X is None", "2D")),
        (np.float64(1), ValueError, ("scalar", "X is 1.0", "data frame")),
        (np.array(1.0), ValueError, ("scalar", "shape ()", "data frame")),
        ({"clicks": [1, 2]}, ValueError, ("X is <dict of length 1>", "data frame")),
        ((row for row in ([1], [2])), ValueError, ("X is <generator>", "data frame")),
        ("words", ValueError, ("words", "2D")),
        (np.ones(3), ValueError, ("1D", "(3,)", "Reshape your data")),
        ([1, 2, 3], ValueError, ("1D", "list of length 3", "Reshape your data")),
        ([], ValueError, ("1D", "list of length 0")),
        (pd.Series([1, 2]), ValueError, ("1D", "Series", "Reshape your data")),
        (np.ones((2, 2, 2)), ValueError, ("dim 3", "(2, 2, 2)")),
        ([[[1]], [[2]]], ValueError, ("dim 3",)),
        (np.ones((12, 0)), ValueError, ("0 feature(s) (shape=(12, 0)) while a minimum of 1 is required",)),
        (np.ones((0, 3)), ValueError, ("0 sample(s)", "a minimum of 1")),
        ([[], []], ValueError, ("0 feature(s)",)),
        (pd.DataFrame(index=range(3)), ValueError, ("0 feature(s)",)),
        (sp.csr_array((0, 3)), ValueError, ("0 sample(s)",)),
        ([[1, 2], [3]], ValueError, ("X", "equal length")),
        (np.matrix([[1.0]]), TypeError, ("matrix", "np.asarray(X)")),
        (np.ones((2, 2)) + 1j, ValueError, ("Complex data not supported", "column 0 of X")),
        (np.array([[1, 1j]], object), TypeError, ("column 1 of X", "complex")),
        (np.array([["a", "b"]]), ValueError, ("column 0 of X", "'a'", "converted", "astype('category')")),
        (np.array([[b"a"]]), ValueError, ("column 0 of X", "converted")),
        ([["1", 2]], ValueError, ("column 0 of X", "converted")),
        (np.array([[1, "yes"]], object), ValueError, ("column 1 of X", "'yes'", "converted")),
        (np.array([[1, "7"]], object), ValueError, ("column 1 of X", "'7'", "converted")),
        (
            np.array([[1, {"a": 2}]], object),
            TypeError,
            ("column 1 of X", "argument must be a string or a real number"),
        ),
        (np.array([[1, 10**400]], object), ValueError, ("column 1 of X", "too large")),
        (np.array([["2020-01-01"]], "datetime64[D]"), ValueError, ("column 0 of X", "dates", "convert")),
        (np.array([[0, 2**53 + 1]]), ValueError, ("column 1 of X", "precision", "2**53", "9007199254740993")),
        (np.array([[0, -(2**63)]]), ValueError, ("column 1 of X", "precision")),
        (np.array([[2**64 - 1]], np.uint64), ValueError, ("column 0 of X", "precision")),
        (np.array([[2**53 + 1, 0]], object), ValueError, ("column 0 of X", "precision")),
    ],
)
def test_wrong_rows_are_refused(X, error, parts):
    ranker = Ranker()
    refused(lambda: check_rows(ranker, X, reset=True), *parts, error=error)
    assert vars(ranker) == {}


def test_more_rows_than_four_bytes_number_are_refused():
    X = np.broadcast_to(np.float32(1), (2**31, 1))
    refused(lambda: fit(X, X[:, 0], qid=None), "X has 2147483648 rows; expected at most 2147483647")


@pytest.mark.parametrize(
    ("X", "parts"),
    [
        (np.ones((2, 2)), ("X has 2 features, but Ranker is expecting 3 features as input",)),
        (np.ones((2, 4)), ("X has 4 features, but Ranker is expecting 3 features as input",)),
        (sp.csr_array((2, 4)), ("X has 4 features, but Ranker is expecting 3 features as input",)),
        ([1, 2, 3], ("Reshape your data",)),
        (np.ones(3), ("Reshape your data",)),
        (np.ones((0, 3)), ("0 sample(s)",)),
        (object(), ("<object>; expected rows and columns, in an array, a sparse matrix or a data frame",)),
        ({"clicks": [1], "age": [2], "price": [3]}, ("<dict of length 3>; expected rows and columns",)),
    ],
)
def test_rows_for_prediction_must_have_the_columns_of_fit(X, parts):
    ranker = Ranker()
    check_rows(ranker, some_rows(), reset=True)
    refused(lambda: check_rows(ranker, X, reset=False), *parts)
    refused(lambda: check_rows(ranker, X, reset=False, name="X_val"), "X_val")
    assert ranker.n_features_in_ == 3


# -------------------------------------------------------------------------------------------------- sparse


def entries():
    X = some_rows(8, 5)
    X[np.abs(X) < 0.7] = 0
    return X


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_canonical_csr_is_not_copied(kind, dtype, index):
    X = kind(entries().astype(dtype))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    assert rows_of(X) is X


@pytest.mark.parametrize("kind", ["csc", "coo", "lil", "dok", "dia", "bsr"])
@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_matrix])
def test_sparse_formats_become_csr(kind, form):
    X = form(entries()).asformat(kind)
    rows = rows_of(X)
    assert rows.format == "csr"
    assert isinstance(rows, sp.sparray) == isinstance(X, sp.sparray)
    assert_array_equal(rows.toarray(), entries())


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(np.int8, np.float32), (bool, np.float32), (np.int64, np.float32), (np.longdouble, np.float64)],
)
def test_sparse_numbers_become_floats(dtype, expected):
    X = sp.csr_array((entries() * 10).astype(dtype))
    rows = rows_of(X)
    assert rows.dtype == expected
    assert_array_equal(rows.toarray(), X.toarray().astype(float))


def doubled(dtype=np.float64):
    """A matrix whose entries all come twice, out of order."""
    X = sp.coo_array((entries() * 10).astype(np.int8).astype(dtype))
    data, row, column = (np.concatenate([part, part[::-1]]) for part in (X.data, X.row, X.col))
    by_row = np.argsort(row, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=8))])
    return sp.csr_array((data[by_row], column[by_row], indptr), shape=X.shape)


@pytest.mark.parametrize("dtype", [np.float64, np.int8])
def test_duplicates_are_summed_on_a_copy(dtype):
    X = doubled(dtype)
    before = [part.tobytes() for part in (X.data, X.indices, X.indptr)]
    rows = rows_of(X)
    assert_array_equal(rows.toarray(), 2.0 * (entries() * 10).astype(np.int8))
    assert (np.diff(rows.indices)[np.diff(np.repeat(np.arange(8), np.diff(rows.indptr))) == 0] > 0).all()
    assert [part.tobytes() for part in (X.data, X.indices, X.indptr)] == before
    assert_array_equal(rows_of(X.tocoo()).toarray(), rows.toarray())


def test_sums_of_duplicates_do_not_overflow():
    X = sp.coo_array((np.array([100, 100], np.int8), ([0, 0], [1, 1])), shape=(1, 2))
    assert_array_equal(rows_of(X).toarray(), [[0, 200]])


def test_unsorted_indices_are_sorted_whatever_the_flag_says():
    X = sp.csr_array((np.array([1.0, 2.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    X.has_sorted_indices = X.has_canonical_format = True
    rows = rows_of(X)
    assert_array_equal(rows.indices, [0, 2])
    assert_array_equal(rows.data, [2, 1])
    assert_array_equal(X.indices, [2, 0])


def test_overallocated_arrays_are_cut():
    X = sp.csr_array(entries())
    n_entries = X.nnz
    X.data, X.indices = np.append(X.data, 7.0), np.append(X.indices, 10**6).astype(np.int32)
    rows = rows_of(X)
    assert len(rows.data) == len(rows.indices) == n_entries
    assert_array_equal(rows.toarray(), entries())


def broken(kind, change):
    X = sp.csr_array(entries()).asformat(kind)
    change(X)
    return X


def at(attribute, position, value):
    def change(X):
        array = getattr(X, attribute).copy()
        array[position] = value
        if attribute in ("row", "col"):
            row, col = (array if name == attribute else getattr(X, name) for name in ("row", "col"))
            X.coords = (row, col)
        else:
            setattr(X, attribute, array)

    return change


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (at("indices", 3, 10**6), ("index 1000000", "indices")),
        (at("indices", 3, -7), ("index -7", "indices", "negative")),
        (at("indptr", 3, 10**5), ("indptr", "falls")),
        (at("indptr", 0, 1), ("indptr", "start at 0")),
        (at("indptr", 0, -1), ("indptr", "start at 0")),
        (at("indptr", -1, 10**6), ("indptr", "ends at 1000000")),
        (lambda X: setattr(X, "indptr", X.indptr[:-1]), ("indptr", "shape")),
        (lambda X: setattr(X, "data", X.data[:-1]), ("indptr", "data")),
        (lambda X: setattr(X, "indices", X.indices.astype(float)), ("indices", "float64")),
    ],
)
def test_sparse_structure_that_points_outside_is_refused(kind, change, parts):
    refused(lambda: rows_of(broken(kind, change)), "X is sparse", *parts, "build it anew")


@pytest.mark.parametrize("change", [at("row", 3, 10**6), at("col", 3, -7)])
def test_coordinates_outside_are_refused(change):
    refused(lambda: rows_of(broken("coo", change)), "X is sparse", "index", "build it anew")


def test_sparse_structure_is_checked_for_prediction():
    ranker = Ranker()
    check_rows(ranker, sp.csr_array(entries()), reset=True)
    X = broken("csr", at("indices", 3, 10**6))
    refused(lambda: check_rows(ranker, X, reset=False), "indices", "1000000")


def test_sparse_words_and_complex_are_refused():
    refused(lambda: rows_of(sp.csr_array(entries() * 1j)), "Complex data not supported")
    refused(lambda: rows_of(sp.csr_array(np.array([[2**60]]))), "the data of X", "precision")


def test_sparse_arrays_of_one_dimension_are_refused():
    refused(lambda: rows_of(sp.coo_array(np.ones(3))), "1D", "(3,)")


# -------------------------------------------------------------------------------------------------- frames

FRAMES = [pd.DataFrame, pl.DataFrame, pa.table]


@pytest.mark.parametrize("frame", FRAMES)
def test_columns_keep_float32_if_all_are_exact_in_it(frame):
    columns = {
        "a": np.array([1.5, 2.5], np.float32),
        "b": np.array([1, 2], np.int16),
        "c": np.array([True, False]),
    }
    assert rows_of(frame(columns)).dtype == np.float32
    columns["d"] = np.array([0.1, 0.2])
    rows = rows_of(frame(columns))
    assert rows.dtype == np.float64
    assert_array_equal(rows, [[1.5, 1, 1, 0.1], [2.5, 2, 0, 0.2]])


@pytest.mark.parametrize("frame", FRAMES)
def test_frames_of_one_dtype(frame):
    X = some_rows()
    for dtype in (np.float32, np.float64):
        rows = rows_of(frame({f"f{j}": X[:, j].astype(dtype) for j in range(3)}))
        assert rows.dtype == dtype
        assert_array_equal(rows, X.astype(dtype))


@pytest.mark.parametrize(
    "frame", [pl.DataFrame, pa.table, lambda c: pd.DataFrame(c, dtype="Float64"), pd.DataFrame]
)
def test_nulls_are_missing(frame):
    rows = rows_of(frame({"a": [1, None, 3], "b": [None, 0.5, 1.5], "c": [None, None, None]}))
    assert_array_equal(rows, [[1, np.nan, np.nan], [np.nan, 0.5, np.nan], [3, 1.5, np.nan]])


def test_columns_that_know_to_have_no_nulls_are_not_searched(monkeypatch):
    monkeypatch.setattr(pl.Series, "is_null", None)
    assert_array_equal(rows_of(pl.DataFrame({"a": [1, 2], "b": [0.5, np.nan]})), [[1, 0.5], [2, np.nan]])


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([True, None], dtype="boolean"),
        pd.Series([1, None], dtype="Int64"),
        pd.Series([1, None], dtype="UInt8"),
        pd.Series([1, None], dtype="Float32"),
        pd.Series([1, None], dtype="int64[pyarrow]"),
        pd.Series([1, None], dtype="double[pyarrow]"),
        pd.Series([1, None], dtype=object),
        pd.Series([1, pd.NA], dtype=object),
    ],
)
def test_nullable_columns(column):
    assert_array_equal(rows_of(pd.DataFrame({"a": column})), [[1], [np.nan]])


@pytest.mark.parametrize("frame", [lambda c: pd.DataFrame(c, dtype="Int64"), pl.DataFrame, pa.table])
@pytest.mark.parametrize("others", [[1], [None]])
def test_integers_beyond_float64_are_refused_with_and_without_nulls(frame, others):
    refused(lambda: rows_of(frame({"a": [2**53 + 1, *others]})), "column 'a' of X", "precision")


@pytest.mark.parametrize("frame", FRAMES)
def test_columns_of_words_are_refused(frame):
    for words in (["yes", "no"], ["yes", None], ["1", "2"]):
        refused(
            lambda words=words: rows_of(frame({"a": [1, 2], "b": words})),
            "column 'b' of X",
            "astype('category')",
        )


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1, 2], "e": [[1.0], [2.0]]}),
        pl.DataFrame({"a": [1, 2], "e": [[1.0, 2.0], [3.0]]}),
        pl.DataFrame({"a": [1, 2], "e": np.ones((2, 3))}),
        pl.DataFrame({"a": [1, 2], "e": [{"x": 1}, {"x": 2}]}),
        pa.table({"a": [1, 2], "e": [[1.0, 2.0], [3.0, 4.0]]}),
    ],
    ids=["pandas", "lists", "arrays", "structs", "Arrow"],
)
def test_columns_of_several_numbers_are_refused(frame):
    refused(lambda: rows_of(frame), "column 'e' of X", "several values", "a column of its own")


@pytest.mark.parametrize("frame", FRAMES)
def test_columns_of_dates_are_refused(frame):
    dates = np.array(["2020-01-01", "2020-01-02"], "datetime64[ms]")
    refused(lambda: rows_of(frame({"a": dates})), "column 'a' of X", "dates")


@pytest.mark.parametrize(
    "value", [np.datetime64("2020-01-01"), np.timedelta64(3, "h"), np.datetime64("NaT", "D")]
)
def test_dates_among_objects_are_refused(value):
    refused(lambda: rows_of(np.array([[1.0, 2.0], [None, value]], object)), "column 1 of X", "dates")
    refused(lambda: fit(y=[value] * len(LABELS)), "y holds dates")


@pytest.mark.parametrize(
    "dates",
    [
        pd.Series(pd.date_range("2024-01-01", periods=12, tz="UTC")),
        pd.Series(pd.period_range("2024-01-01", periods=12)),
        pd.Series(pd.date_range("2024-01-01", periods=12).date),
        pd.Series(pd.date_range("2024-01-01", periods=12).date, dtype="date32[pyarrow]"),
        pl.Series([time(1, 30)] * 12),
        pl.Series([timedelta(hours=1)] * 12),
        [date(2024, 1, 1)] * 12,
    ],
)
def test_dates_of_every_kind_are_to_be_made_numbers(dates):
    column = pd.DataFrame({"d": dates}) if not isinstance(dates, pl.Series) else pl.DataFrame({"d": dates})
    refused(lambda: rows_of(column), "column 'd' of X holds dates", "days since a date")
    refused(lambda: fit(y=dates), "y holds dates", "days since a date")
    refused(lambda: fit(sample_weight=dates), "sample_weight holds dates")


@pytest.mark.parametrize("value", ["16,39", "-1.234,5", " 3,0"])
def test_decimal_commas_are_told(value):
    refused(lambda: rows_of(pd.DataFrame({"price": [value, "7"]})), "column 'price' of X", "decimal=','")


def test_objects_that_are_no_numbers_may_be_categories():
    bands = pd.DataFrame({"band": pd.cut(pd.Series([1.0, 5.0, 9.0]), 2).astype(object)})
    refused(lambda: rows_of(bands), "column 'band' of X", "or a category column", error=TypeError)


def test_integers_of_128_bits_keep_their_values():
    wide = pl.Series([1, None, -3], dtype=pl.Int128)
    assert_array_equal(rows_of(pl.DataFrame({"a": wide})), [[1], [np.nan], [-3]])
    too_large = pl.DataFrame({"a": pl.Series([2**100], dtype=pl.Int128)})
    refused(lambda: rows_of(too_large), "column 'a' of X holds the integer", "precision")
    labels = pl.Series(LABELS.tolist(), dtype=pl.Int128)
    assert_array_equal(fit(y=labels, sample_weight=labels).labels, LABELS)


def test_bfloats_are_numbers():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rows = rows_of(np.array([[0.5, np.nan]], ml_dtypes.bfloat16))
    assert rows.dtype == np.float32
    assert_array_equal(rows, [[0.5, np.nan]])


def test_pieces_of_a_table_are_to_be_joined():
    refused(
        lambda: rows_of(pa.RecordBatch.from_pydict({"a": [1.0]})),
        "pass pyarrow.Table.from_batches([X])",
        error=TypeError,
    )


def test_streams_of_the_pieces_of_a_table_are_to_be_read():
    class Relation:  # as DuckDB has them: with a shape and columns, but not to be indexed by row
        shape, columns = (1, 1), ["a"]

        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table({"a": [1.0]}).__arrow_c_stream__(requested_schema)

        def __len__(self):
            return 1

        def __getitem__(self, name):
            raise TypeError("a relation is indexed by one column name")

    for stream in (Relation(), pa.table({"a": [1.0]}).to_reader()):
        refused(lambda X=stream: rows_of(X), type(stream).__name__, "pass pyarrow.table(X)", error=TypeError)
        assert rows_of(pa.table(stream)).tolist() == [[1.0]]


@pytest.mark.parametrize(
    ("record", "instead"),
    [
        ({"a": [1.0, 2.0], "b": [3.0, 4.0]}, "pass pandas.DataFrame(X)"),
        ([{"a": 1.0, "b": 3.0}, {"a": 2.0, "b": 4.0}], "pass pandas.DataFrame(X)"),
        ({"a": 1.0, "b": None}, "pass pandas.DataFrame([X])"),
    ],
)
def test_records_are_to_become_frames(record, instead):
    ranker = Ranker()
    check_rows(ranker, pd.DataFrame({"a": [1.0], "b": [2.0]}), reset=True)
    for reset in (True, False):
        refused(lambda reset=reset: check_rows(ranker, record, reset=reset), "X is <", "2D", instead)


@pytest.mark.parametrize(
    "names", [[2, 0], [("a", 1), ("a", 0)], pd.to_datetime(["2024-01-02", "2024-01-01"])]
)
def test_names_that_are_no_strings_are_compared_too(names):
    ranker, X = Ranker(), pd.DataFrame(some_rows()[:, :2], columns=names)
    check_rows(ranker, X, reset=True)
    for same in (X, X.to_numpy(), X.iloc[:1]):
        assert check_rows(ranker, same, reset=False).shape == same.shape
    for other in (X.iloc[:, ::-1], X.set_axis(range(2), axis=1)):
        refused(lambda X=other: check_rows(ranker, X, reset=False), "names should match", "in the same order")
        refused(lambda X=other: check_rows(ranker, X, reset=False, name="X_val"), "X_val does not match")
    check_rows(ranker, X.to_numpy(), reset=True)
    check_rows(ranker, X, reset=False)


def test_lazy_frames_are_to_be_collected():
    lazy = pl.DataFrame({"a": [1.0]}).lazy()
    refused(lambda: rows_of(lazy), "X is <LazyFrame>", "pass X.collect()", error=TypeError)
    for name in ("y", "sample_weight", "group"):
        given = {name: lazy, "qid": None} if name == "group" else {name: lazy}
        refused(lambda given=given: fit(**given), f"pass {name}.collect()", error=TypeError)


def test_frames_of_dask_are_to_be_computed():
    dask = pytest.importorskip("dask.dataframe")
    frame = dask.from_pandas(pd.DataFrame({"a": [1.0, 2.0]}), npartitions=2)
    refused(lambda: rows_of(frame), "X is <DataFrame>", "pass X.compute()", error=TypeError)
    refused(lambda: fit(y=frame), "pass y.compute()", error=TypeError)
    assert_array_equal(rows_of(frame.to_dask_array(lengths=True)), [[1.0], [2.0]])
    labels = dask.from_pandas(pd.Series(LABELS), npartitions=2)
    assert_array_equal(fit(y=labels).labels, LABELS)


def test_duplicate_column_names_are_refused():
    X = pd.DataFrame(some_rows(), columns=["a", "b", "a"])
    refused(lambda: rows_of(X), "duplicate", "'a'", "unique")
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    refused(lambda: rows_of(table), "duplicate", "'a'")


def test_sparse_frames_become_csr():
    X = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(entries()))
    rows = rows_of(X)
    assert rows.format == "csr"
    assert_array_equal(rows.toarray(), entries())


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_names_are_kept_and_compared(frame):
    ranker = Ranker()
    columns = {name: some_rows()[:, j] for j, name in enumerate("abc")}
    check_rows(ranker, frame(columns), reset=True)
    assert list(ranker.feature_names_in_) == ["a", "b", "c"]
    assert ranker.n_features_in_ == 3
    reversed_ = {name: columns[name] for name in "cba"}
    refused(lambda: check_rows(ranker, frame(reversed_), reset=False), "same order")
    renamed = dict.fromkeys("abz", columns["a"])
    refused(lambda: check_rows(ranker, frame(renamed), reset=False), "unseen at fit time", "- z")
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        check_rows(ranker, some_rows(), reset=False)
    check_rows(ranker, some_rows(), reset=True)
    assert not hasattr(ranker, "feature_names_in_")


def categories(words, kind):
    if kind == "pandas":
        return pd.DataFrame({"n": np.arange(len(words)), "c": pd.Categorical(words)})
    if kind == "pandas unused":
        levels = [*sorted(set(words) - {None}, reverse=True), "unused"]
        return pd.DataFrame({"n": np.arange(len(words)), "c": pd.Categorical(words, levels)})
    if kind == "polars":
        return pl.DataFrame({"n": np.arange(len(words)), "c": pl.Series(words, dtype=pl.Categorical)})
    if kind == "polars enum":
        levels = [*sorted(set(words) - {None}, reverse=True), "unused"]
        return pl.DataFrame({"n": np.arange(len(words)), "c": pl.Series(words, dtype=pl.Enum(levels))})
    table = pa.table({"n": np.arange(len(words)), "c": pa.array(words).dictionary_encode()})
    return table.to_pandas(types_mapper=pd.ArrowDtype) if kind == "pandas arrow" else table


@pytest.mark.parametrize(
    "kind", ["pandas", "pandas unused", "pandas arrow", "polars", "polars enum", "arrow"]
)
def test_category_columns_become_codes_of_the_levels_of_fit(kind):
    ranker = Ranker()
    X = categories(["v", "u", None, "w", "u"], kind)
    assert category_columns(X) == {1: ("u", "v", "w")}
    rows = check_rows(ranker, X, reset=True)
    assert ranker._category_levels == {1: ("u", "v", "w")}
    assert_array_equal(rows[:, 1], [1, 0, np.nan, 2, 0])
    rows = check_rows(ranker, categories(["NEW", "w", None, "v"], kind), reset=False)
    assert_array_equal(rows[:, 1], [np.nan, 2, np.nan, 1])
    pickle.loads(pickle.dumps(ranker))


def test_ordered_categories_become_codes_of_the_levels_of_the_dtype_in_their_order():
    ranker, levels = Ranker(), ("w", "unused", "u", "v")
    X = pd.DataFrame({"n": 1.0, "c": pd.Categorical(["v", "u", None, "w"], levels, ordered=True)})
    assert_array_equal(check_rows(ranker, X, reset=True)[:, 1], [3, 2, np.nan, 0])
    assert ranker._category_levels == {1: levels}
    again = pickle.loads(pickle.dumps(ranker))
    assert type(again._category_levels[1]) is OrderedLevels
    words = ["unused", "NEW", "u", None]
    other = pd.CategoricalDtype(["v", "u", "unused", "NEW"], ordered=True)
    for column in (words, pd.Categorical(words), pd.Series(words, dtype=other)):
        rows = check_rows(again, pd.DataFrame({"n": 1.0, "c": column}), reset=False)
        assert_array_equal(rows[:, 1], [1, np.nan, 2, np.nan])
    for chosen in (["c"], [1], [False, True]):
        assert category_columns(X, chosen) == {1: ("u", "v", "w")}
    for chosen in (["n"], [], "from_dtype"):
        assert category_columns(X, chosen) == {1: levels}


def test_joined_levels_have_an_order_if_one_has():
    ordered, nominal = {0: OrderedLevels("SML")}, {0: ("L", "M", "S")}
    for some in ([ordered, nominal], [nominal, ordered], [{0: tuple("SML")}] * 2):
        assert joined_levels(some) == ordered
    assert joined_levels([{0: tuple("SML")}, {0: ("S", "XL")}]) == {0: ("L", "M", "S", "XL")}


def test_a_missing_category_changes_no_other():
    levels = [2**60 + j for j in range(3)]
    for codes in ([0, 1, 2], [0, 1, 2, -1]):
        ranker, X = Ranker(), pd.DataFrame({"c": pd.Categorical.from_codes(codes, levels)})
        assert check_rows(ranker, X, reset=True)[:3, 0].tolist() == [0, 1, 2]
        assert [type(level) for level in ranker._category_levels[0]] == [int] * 3
        assert ranker._category_levels == {0: tuple(levels)}


def test_categories_of_numbers_and_of_mixed_kinds():
    X = pd.DataFrame({"a": pd.Categorical([30, 10, 10]), "b": pd.Categorical(["x", 2, 1])})
    assert category_columns(X) == {0: (10, 30), 1: (1, 2, "x")}
    assert_array_equal(rows_of(X), [[1, 2], [0, 1], [0, 0]])
    assert category_columns(some_rows()) == {}


@pytest.mark.parametrize(
    ("levels", "others"),
    [
        (["en", "fr"], [0, 1]),
        (["en", "fr"], ["fr", 1.0]),
        ([10, 20], ["10", "20"]),
        ([10, 20], [b"10", 10]),
        ([pd.Timestamp(2024, 1, 1)] * 2, [date(2024, 1, 1)] * 2),
        ([date(2024, 1, 1)] * 2, [pd.Timestamp(2024, 1, 1)] * 2),
        ([pd.Timedelta(1, "D")] * 2, [pd.Timestamp(2024, 1, 1)] * 2),
    ],
)
def test_categories_of_another_kind_are_no_missing_values(levels, others):
    ranker = Ranker()
    check_rows(ranker, pd.DataFrame({"c": pd.Categorical(levels)}), reset=True)
    for column in (others, pd.Categorical(others)):
        frame = pd.DataFrame({"c": pd.Series(column, dtype=None if column is not others else object)})
        refused(
            lambda X=frame: check_rows(ranker, X, reset=False), "column 'c' of X", "kind", repr(levels[0])
        )
        refused(lambda X=frame: check_rows(ranker, X, reset=False, name="X_val"), "column 'c' of X_val")


def test_an_unseen_category_of_the_same_kind_is_missing():
    ranker, days = Ranker(), pd.to_datetime(["2024-01-01", "2024-01-02"])
    levels = {"n": [1, 2], "b": [True, True], "s": ["u", "v"], "d": days, "t": days - days[0]}
    check_rows(ranker, pd.DataFrame(levels).astype("category"), reset=True)
    others = {"n": [2.0, True], "b": [1, 0], "s": ["w", None], "d": [days[0].to_pydatetime(), pd.NaT]}
    others["t"] = [timedelta(9), timedelta(1)]
    rows = check_rows(ranker, pd.DataFrame(others).astype({"d": object, "t": object}), reset=False)
    assert_array_equal(rows, [[1, 0, np.nan, 0, np.nan], [0, np.nan, np.nan, np.nan, 1]])


def test_a_category_column_without_values_takes_any():
    ranker = Ranker()
    check_rows(ranker, pd.DataFrame({"c": pd.Categorical([None, None])}), reset=True)
    assert_array_equal(check_rows(ranker, pd.DataFrame({"c": ["u", "v"]}), reset=False), [[np.nan]] * 2)


def test_columns_must_stay_categories():
    ranker = Ranker()
    X = categories(["u", "v"], "pandas")
    check_rows(ranker, X, reset=True)
    with pytest.warns(UserWarning, match="valid feature names"):
        refused(lambda: check_rows(ranker, np.ones((2, 2)), reset=False), "category column", "data frame")
    as_words = X.assign(c=X["c"].astype(str))
    assert_array_equal(check_rows(ranker, as_words, reset=False), [[0, 0], [1, 1]])
    numbers = Ranker()
    check_rows(numbers, X.assign(c=1.0), reset=True)
    refused(lambda: check_rows(numbers, X, reset=False), "column 'c' of X", "category")


WITHOUT_NAMES = pytest.mark.filterwarnings("ignore:X does not have valid feature names")
KNOWN = {"n": [0.5, 1.5, 2.5], "c": ["u", "v", "w"], "d": [10, 20, 30], "e": [0, 1, 2]}


def fitted_to_categories(*names):
    ranker = Ranker()
    ranker._takes_codes = True
    X = pd.DataFrame({name: KNOWN[name] for name in names}).astype(dict.fromkeys(names[1:], "category"))
    check_rows(ranker, X, reset=True)
    return ranker


@WITHOUT_NAMES
@pytest.mark.parametrize(
    "X",
    [
        np.array([[1, 2], [np.nan, np.nan], [3, 0]]),
        np.array([[1, 2], [np.nan, np.nan], [3, 0]], np.float32),
        np.array([[1, 2], [None, pd.NA], [3, np.float32(0)]], object),
        np.ma.masked_invalid([[1, 2], [np.nan, np.nan], [3, 0]]),
        [[1, 2], [None, None], [3, 0]],
        np.array([[1, "w"], [np.nan, None], [3.0, "u"]], object),
        np.array([[1, "w"], [np.nan, "unseen"], [3.0, "u"]], object),
        np.ma.MaskedArray(np.array([[1, "w"], ["", 5], [3.0, "u"]], object), [[0, 0], [1, 1], [0, 0]]),
        [(1, "w"), (None, float("nan")), (np.int64(3), np.str_("u"))],
    ],
)
def test_an_array_has_levels_or_codes_in_category_columns(X):
    before = copy.deepcopy(X)
    rows = check_rows(fitted_to_categories("n", "c"), X, reset=False)
    assert_array_equal(rows, [[1, 2], [np.nan, np.nan], [3, 0]])
    assert rows.dtype.kind == "f"
    assert repr(X) == repr(before)


@WITHOUT_NAMES
def test_codes_of_an_array_of_floats_are_not_copied():
    X = np.asfortranarray([[1, 2], [np.nan, np.nan], [3, 0]])
    assert check_rows(fitted_to_categories("n", "c"), X, reset=False) is X


def test_an_array_of_words_alone_has_levels():
    ranker = Ranker()
    ranker._takes_codes = True
    check_rows(ranker, pd.DataFrame({0: KNOWN["c"], 1: KNOWN["c"]}).astype("category"), reset=True)
    assert_array_equal(
        check_rows(ranker, np.array([["w", "u"], ["", "v"]]), reset=False), [[2, 0], [np.nan, 1]]
    )


@WITHOUT_NAMES
@pytest.mark.parametrize("dtype", [np.float64, object])
def test_numbers_that_are_levels_and_codes_alike_are_both(dtype):
    X = np.array([[1, 2], [0, 0], [0, None]], dtype)
    rows = check_rows(fitted_to_categories("n", "e"), X, reset=False)
    assert_array_equal(rows[:, 1], [2, 0, np.nan])


def test_a_category_column_without_levels_is_missing_in_an_array():
    ranker = Ranker()
    ranker._takes_codes = True
    check_rows(ranker, pd.DataFrame({0: pd.Categorical([None, None])}), reset=True)
    for X in (np.full((2, 1), np.nan), np.array([["u"], [None]], object)):
        assert_array_equal(check_rows(ranker, X, reset=False), [[np.nan]] * 2)
    refused(lambda: check_rows(ranker, np.zeros((2, 1)), reset=False), "holds 0;", "NaN")


@WITHOUT_NAMES
@pytest.mark.parametrize("kind", [np.array, lambda X: np.array(X, object), list])
@pytest.mark.parametrize(
    ("name", "value", "parts"),
    [
        ("c", 3, ("holds 3;", "below 3", "NaN")),
        ("c", -1, ("holds -1;",)),
        ("c", 0.5, ("holds 0.5;",)),
        ("e", 3, ("holds 3;", "below 3", "NaN")),
        ("d", 20, ("numbers", "10", "codes from 0 to 2", "RecordScorer", "predict of the ensemble")),
        ("d", 1, ("numbers", "10", "codes from 0 to 2")),
    ],
)
def test_numbers_that_are_no_codes_or_may_be_levels_are_refused(kind, name, value, parts):
    ranker = fitted_to_categories("n", name)
    refused(lambda: check_rows(ranker, kind([[1.0, value]]), reset=False), f"column '{name}' of X", *parts)


@WITHOUT_NAMES
def test_an_array_with_levels_and_codes_in_one_column_is_refused():
    ranker = fitted_to_categories("n", "c")
    refused(lambda: check_rows(ranker, [[1, "u"], [2, 1]], reset=False), "holds 1, a number", "kind str")
    refused(lambda: check_rows(ranker, np.array([["1", "u"]]), reset=False), "column 0 of X", "'1'")


@WITHOUT_NAMES
def test_a_sparse_matrix_has_no_category_columns():
    ranker = fitted_to_categories("n", "c")
    X = sp.csr_array(np.ones((2, 2)))
    refused(lambda: check_rows(ranker, X, reset=False), "'c'", "data frame or an array", "X.toarray()")
    assert_array_equal(check_rows(ranker, X.toarray(), reset=False), np.ones((2, 2)))


# --------------------------------------------------------------------------------------- labels and weights


def test_labels_and_weights_arrive_in_internal_order():
    qid = np.array(["b", "a", "b", "c", "a"])
    X = some_rows(5)
    data = check_fit(Ranker(), X, [0, 1, 2, 3, 4], [5, 6, 7, 8, 9], qid=qid)
    assert isinstance(data, FitData)
    assert data.X is X
    assert_array_equal(data.order, [0, 2, 1, 4, 3])
    assert_array_equal(data.offsets, [0, 2, 4, 5])
    assert_array_equal(data.labels, [0, 2, 1, 4, 3])
    assert_array_equal(data.weights, [5, 7, 6, 9, 8])
    assert data.qid_given
    assert (data.n_rows, data.n_queries) == (5, 3)
    assert_array_equal(data.as_given(data.labels), [0, 1, 2, 3, 4])
    for values in (data.labels, data.weights):
        assert values.dtype == np.float64
        assert values.flags.c_contiguous


@pytest.mark.parametrize(
    "y",
    [
        LABELS.tolist(),
        LABELS.astype(np.uint8),
        LABELS.astype(">f8"),
        LABELS.astype(object),
        LABELS > 2,
        read_only(LABELS.astype(float)),
        np.repeat(LABELS, 2)[::2],
        pd.Series(LABELS, dtype="Int64"),
        pl.Series(LABELS),
        pa.array(LABELS),
        LABELS - 2.5,
        LABELS * 1e30,
    ],
)
def test_labels_of_every_kind(y):
    assert_array_equal(fit(y=y).labels, np.asarray(y).astype(float))


@pytest.mark.parametrize(
    ("y", "parts"),
    [
        (None, ("requires y to be passed, but the target y is None",)),
        (np.where(LABELS == 3, np.nan, LABELS), ("Input y contains NaN", "row 3", "finite label")),
        (np.where(LABELS == 3, -np.inf, LABELS), ("Input y contains inf", "row 3", "finite label")),
        (pd.Series([None] + [1] * 11, dtype="Int64"), ("Input y contains NaN", "row 0")),
        (pl.Series([1] * 11 + [None]), ("Input y contains NaN", "row 11")),
        ([1] * 11 + [None], ("Input y contains NaN", "row 11")),
        (["good"] * 12, ("y holds 'good'", "not a number", "strings to numbers")),
        (np.array(["good"] * 12, object), ("y holds 'good'", "not a number")),
        (["3"] * 12, ("y holds '3'", "not a number", ".astype(float)")),
        (LABELS + 1j, ("Complex data not supported", "y")),
        (np.arange(12).astype("datetime64[D]"), ("y holds dates",)),
        (np.column_stack([LABELS, LABELS]), ("y should be a 1d array", "(12, 2)")),
        (np.ones((12, 1, 1)), ("y should be a 1d array",)),
        (LABELS[:-1], ("y has length 11", "X has 12 rows", "inconsistent")),
        (np.append(LABELS, 1), ("y has length 13", "12")),
        (1, ("y should be a 1d array", "()")),
        ([], ("y has length 0",)),
        (sp.csr_array(LABELS[:, None]), ("y is sparse", "toarray")),
        ([[1], [2, 3]], ("y could not", "array")),
        ([2**53 + 1] * 12, ("y holds the integer", "precision")),
    ],
)
def test_wrong_labels_are_refused(y, parts):
    refused(lambda: fit(y=y), *parts)


def test_a_column_of_labels_warns():
    with pytest.warns(
        DataConversionWarning, match="A column-vector y was passed when a 1d array was expected"
    ):
        assert_array_equal(fit(y=LABELS[:, None]).labels, LABELS)


@pytest.mark.parametrize(
    "weight",
    [1 + QID, (1 + QID).tolist(), np.full(12, 1e-300), np.full(12, 1e300), QID, pd.Series(QID * 0.5)],
)
def test_weights_of_every_kind(weight):
    before = np.array(weight).tobytes()
    assert_array_equal(fit(sample_weight=weight).weights, np.asarray(weight, float))
    assert np.array(weight).tobytes() == before
    assert fit().weights is None


@pytest.mark.parametrize(
    ("weight", "parts"),
    [
        (np.where(QID == 1, np.nan, 1), ("contains NaN", "row 4", "finite weight")),
        (np.where(QID == 1, np.inf, 1), ("contains inf", "row 4")),
        (np.where(QID == 1, -1, 1), ("negative weight -1", "row 4", "weights >= 0")),
        (QID * 0, ("every weight is zero",)),
        (np.full(12, 1e308), ("more than a float can hold", "finite sum", "smaller range")),
        (["a"] * 12, ("'a'", "not a number")),
        (QID + 1j, ("Complex data not supported",)),
        (QID[:-1], ("(11,)", "one weight per row", "(12,)")),
        (np.ones((12, 1)), ("(12, 1)", "(12,)")),
        (np.ones((12, 2)), ("(12, 2)", "(12,)")),
        (2.0, ("()", "(12,)")),
        (np.ones(3), ("(3,)", "3 queries", "sample_weight=pd.Series(qid).map(weight_of_id)")),
        ({0: 1, 1: 2, 2: 1}, ("not a number", "for each query", "pd.Series(qid).map(sample_weight)")),
    ],
)
def test_wrong_weights_are_refused(weight, parts):
    refused(lambda: fit(sample_weight=weight), "sample_weight", *parts)


# ------------------------------------------------------------------------------------- fit, validate, score


@pytest.mark.parametrize(
    "source",
    [
        {"qid": QID},
        {"groups": QID},
        {"group": [4, 4, 4]},
        {"qid": QID, "groups": QID.astype(str), "group": [4, 4, 4]},
        {"y": pd.Series(LABELS, index=pd.Index(QID, name="qid"))},
        {"X": pd.DataFrame(some_rows(), index=pd.Index(QID, name="qid"))},
    ],
)
def test_every_source_of_ids(source):
    data = check_fit(Ranker(), **({"X": some_rows(), "y": LABELS} | source))
    assert data.qid_given
    assert data.order is None
    assert_array_equal(data.offsets, [0, 4, 8, 12])


def test_a_ranker_without_ids_warns():
    ranker = Ranker()
    with pytest.warns(MissingQueryWarning, match="Ranker was fitted without query ids.* Pass qid="):
        data = check_fit(ranker, some_rows(), LABELS)
    assert not data.qid_given
    assert not ranker._qid_given
    assert_array_equal(data.offsets, [0, 12])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert check_fit(ranker, some_rows(), LABELS, ranker=False).n_queries == 1


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({}, "scikit-learn's pipelines, searches .*enable_metadata_routing"),
        ({"sample_weight": QID}, r"after y is sample_weight: .* fit\(X, y, qid=ids\)"),
        (
            {"X": pd.DataFrame(some_rows(), columns=["a", "qid", "b"])},
            r"column 'qid' of X .* pass qid=X\['qid'\]",
        ),
    ],
)
def test_a_ranker_without_ids_says_where_they_may_be(given, hint):
    with pytest.warns(MissingQueryWarning, match=hint):
        check_fit(Ranker(), **({"X": some_rows(), "y": LABELS} | given))


def test_ids_in_the_place_of_weights_are_told_their_name():
    names = [f"query {i}" for i in QID]
    refused(
        lambda: check_fit(Ranker(), some_rows(), LABELS, names), "sample_weight holds 'query 0'", "as qid="
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"X": some_rows(11, 2)},
        {"X": pd.DataFrame(some_rows(11, 2), columns=["p", "q"])},
        {"X": some_rows(12, 2), "y": LABELS[:-1]},
        {"X": some_rows(12, 2), "y": LABELS * np.nan},
        {"X": some_rows(12, 2), "qid": QID[:-1]},
        {"X": some_rows(12, 2), "sample_weight": -LABELS},
        {"X": categories(["u"] * 12, "pandas"), "qid": QID * np.nan},
        {"X": pd.DataFrame(some_rows(12, 2), columns=["p", 1])},
    ],
)
def test_a_refused_refit_leaves_the_estimator_as_it_was(wrong):
    ranker = Ranker()
    X = pd.DataFrame(some_rows(), columns=list("abc"))
    check_fit(ranker, X, LABELS, qid=QID)
    before = vars(ranker).copy()
    with pytest.raises((ValueError, TypeError)):
        check_fit(ranker, **({"y": LABELS, "qid": QID} | wrong))
    assert vars(ranker).keys() == before.keys()
    assert all(vars(ranker)[name] is value for name, value in before.items())
    check_rows(ranker, X, reset=False)


def test_inputs_are_not_changed():
    X, y, weight, qid = some_rows(), LABELS.astype(float), np.ones(12), QID[::-1].copy()
    X[2, 1] = np.nan
    before = [part.tobytes() for part in (X, y, weight, qid)]
    check_fit(Ranker(), X, y, weight, qid=qid)
    assert [part.tobytes() for part in (X, y, weight, qid)] == before


def test_unchanged_on_failure_covers_whatever_fit_does():
    ranker = Ranker()
    ranker.trees = [1]

    def interrupted_fit():
        with unchanged_on_failure(ranker):
            check_fit(ranker, some_rows(), LABELS, qid=QID)
            ranker.trees = []
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted_fit()
    assert vars(ranker) == {"trees": [1]}
    with unchanged_on_failure(ranker):
        ranker.trees = [2]
    assert ranker.trees == [2]


def test_what_was_done_when_an_interrupt_came_too_late_is_not_undone_later():
    ranker = Ranker()
    ended = unchanged_on_failure(ranker)
    ended.__enter__()
    ranker.trees = [1]  # then the interrupt comes, before the context hears of the end
    ranker.trees = [2]  # by another fit
    del ended
    gc.collect()
    assert ranker.trees == [2]


def validate(train_qid=True, **given):
    ranker = Ranker()
    train = check_fit(ranker, some_rows(), LABELS, qid=QID if train_qid else None, ranker=train_qid)
    return check_validation(ranker, ValidationRows(**given), train)


X_VAL, Y_VAL, QID_VAL = some_rows(6), np.arange(6), np.repeat([8, 9], 3)
Y_INDEXED = pd.Series(Y_VAL, index=pd.Index(QID_VAL, name="qid"))


@pytest.mark.parametrize(
    "given",
    [
        {"X_val": X_VAL, "y_val": Y_VAL, "qid_val": QID_VAL},
        {"X_val": X_VAL, "y_val": Y_INDEXED},
        {"eval_set": [(X_VAL, Y_VAL)], "eval_group": [[3, 3]]},
        {"eval_set": [(X_VAL, Y_VAL)], "eval_qid": [QID_VAL]},
        {"eval_set": [(X_VAL, Y_VAL)], "eval_qid": (QID_VAL,), "eval_group": [np.array([3, 3])]},
        {"eval_set": (X_VAL, Y_VAL), "eval_group": [[3, 3]]},
        {"eval_set": [[X_VAL, Y_INDEXED]]},
    ],
)
def test_validation_sets_in_both_spellings(given):
    data = validate(**given)
    assert_array_equal(data.offsets, [0, 3, 6])
    assert_array_equal(data.labels, Y_VAL)
    assert data.qid_given


def test_no_validation_set():
    assert validate() is None
    assert validate(train_qid=False, X_val=X_VAL, y_val=Y_VAL).n_queries == 1
    weights = np.arange(6)
    assert_array_equal(
        validate(X_val=X_VAL, y_val=Y_VAL, qid_val=QID_VAL, sample_weight_val=weights).weights, weights
    )


@pytest.mark.parametrize("ids", [{"eval_qid": [QID_VAL]}, {"eval_group": [[3, 3]]}])
def test_rows_of_an_eval_set_may_have_weights(ids):
    weights = np.arange(6) + 1.0
    data = validate(eval_set=[(X_VAL, Y_VAL)], sample_weight_val=weights, **ids)
    assert_array_equal(data.weights, weights)
    assert_array_equal(data.offsets, [0, 3, 6])


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        (
            {"eval_set": [(X_VAL, Y_VAL)], "sample_weight_val": np.ones(6), "qid_val": QID_VAL},
            ("qid_val and eval_set are both given",),
        ),
        ({"eval_set": [(X_VAL, Y_VAL)], "sample_weight_val": [np.ones(6)]}, ("sample_weight_val",)),
        ({"X_val": X_VAL}, ("y_val is None but X_val is given",)),
        ({"y_val": Y_VAL}, ("X_val is None but y_val is given",)),
        ({"qid_val": QID_VAL}, ("X_val is None but qid_val is given",)),
        ({"sample_weight_val": Y_VAL}, ("X_val is None but sample_weight_val",)),
        ({"X_val": X_VAL, "y_val": Y_VAL}, ("no query ids", "qid_val=")),
        ({"X_val": (X_VAL,), "y_val": (Y_VAL,)}, ("X_val holds <ndarray of shape (6, 3)>", "X_val=X")),
        ({"X_val": [pd.DataFrame(X_VAL)], "y_val": Y_VAL}, ("X_val holds <DataFrame", "eval_set=[(X, y)]")),
        ({"eval_set": [(X_VAL, Y_VAL)]}, ("no query ids", "eval_qid=", "eval_group=")),
        ({"X_val": X_VAL, "eval_set": [(X_VAL, Y_VAL)]}, ("X_val and eval_set are both given",)),
        ({"eval_set": [(X_VAL, Y_VAL)] * 2}, ("eval_set has 2 entries", "one (X, y) pair")),
        ({"eval_set": []}, ("eval_set", "one (X, y) pair")),
        ({"eval_set": [X_VAL]}, ("eval_set", "one (X, y) pair")),
        ({"eval_set": X_VAL}, ("eval_set", "one (X, y) pair")),
        ({"eval_group": [[3, 3]]}, ("eval_group is given without rows", "eval_set=[(X, y)]")),
        ({"eval_qid": [QID_VAL]}, ("eval_qid is given without rows", "eval_set=[(X, y)]")),
        ({"eval_set": [(X_VAL, Y_VAL)], "eval_group": [3, 3]}, ("eval_group", "list of one array")),
        ({"eval_set": [(X_VAL, Y_VAL)], "eval_group": [[3, 2]]}, ("eval_group sums to 5",)),
        ({"eval_set": [(X_VAL, Y_VAL)], "eval_group": [[[1], [2, 3]]]}, ("eval_group could not be",)),
        ({"eval_set": [(X_VAL, Y_VAL)], "eval_qid": QID_VAL}, ("eval_qid", "list of one array")),
        ({"X_val": X_VAL[:, :2], "y_val": Y_VAL, "qid_val": QID_VAL}, ("X_val", "2 features", "expecting 3")),
        ({"X_val": X_VAL[:0], "y_val": Y_VAL[:0], "qid_val": QID_VAL[:0]}, ("X_val", "0 sample(s)")),
        ({"eval_set": [(X_VAL[:, :2], Y_VAL)]}, ("X of eval_set", "2 features")),
        ({"X_val": X_VAL, "y_val": Y_VAL * np.nan, "qid_val": QID_VAL}, ("Input y_val contains NaN",)),
        ({"X_val": X_VAL, "y_val": Y_VAL[1:], "qid_val": QID_VAL}, ("y_val has length 5", "X_val has 6")),
        ({"X_val": X_VAL, "y_val": Y_VAL, "qid_val": QID}, ("qid_val has length 12", "6")),
        (
            {"X_val": X_VAL, "y_val": Y_INDEXED, "qid_val": Y_VAL},
            ("qid_val and the index level 'qid' of y_val",),
        ),
        (
            {"X_val": X_VAL, "y_val": Y_VAL, "qid_val": QID_VAL, "sample_weight_val": -Y_VAL},
            ("sample_weight_val holds the negative",),
        ),
    ],
)
def test_wrong_validation_sets_are_refused(given, parts):
    refused(lambda: validate(**given), *parts)


def test_score_needs_ids_if_fit_had_some():
    ranker = Ranker()
    check_fit(ranker, some_rows(), LABELS, qid=QID)
    refused(lambda: check_score(ranker, X_VAL, Y_VAL), "score needs qid=", "Ranker", "6 rows")
    refused(lambda: check_score(ranker, X_VAL, Y_VAL, Y_VAL + 1), "y is sample_weight", "score(X, y, qid=")
    for source in ({"qid": QID_VAL}, {"groups": QID_VAL}, {"y": Y_INDEXED}):
        data = check_score(ranker, **({"X": X_VAL, "y": Y_VAL} | source))
        assert_array_equal(data.offsets, [0, 3, 6])
        assert data.X is X_VAL
    assert check_score(ranker, X_VAL, Y_VAL, ranker=False).n_queries == 1
    refused(lambda: check_score(ranker, X_VAL[:, :1], Y_VAL), "X has 1 features, but Ranker is expecting 3")
    refused(lambda: check_score(ranker, X_VAL, None), "requires y to be passed")
    check_fit(ranker, some_rows(), LABELS, ranker=False)
    assert check_score(ranker, X_VAL, Y_VAL).n_queries == 1


@pytest.mark.parametrize(
    ("labels", "kept"),
    [
        ([0, 4, 255], np.uint8),
        ([0, 256], np.float32),
        ([-1, 2], np.float32),
        ([0.5, 3.0], np.float32),
        ([0.1, 3.0], np.float64),
        ([2**24 + 1], np.float64),
    ],
)
def test_labels_are_kept_in_as_few_bytes_as_hold_them(labels, kept):
    data = check_fit(BaseEstimator(), np.zeros((len(labels), 1)), labels, ranker=False)
    assert data.narrow_labels.dtype == kept
    assert data.labels.dtype == np.float64
    assert data.labels.tolist() == labels
