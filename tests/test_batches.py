"""A fit on batches equals the fit on their rows."""

import gc
import os
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import together
from scipy import sparse
from sklearn.base import clone
from sklearn.tree import DecisionTreeRegressor

from ranktrees import (
    FitWarning,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    MissingQueryWarning,
    OrdinalRanker,
    RandomForestRanker,
    dump_letor,
    load_letor,
    make_ranking,
)
from ranktrees.binning.mapper import BinMapper
from ranktrees.datasets import Batches
from ranktrees.processes.communicator import training_with
from ranktrees.support import spool
from ranktrees.support.spool import Spool, by_parts, first_rows


@pytest.fixture(scope="module")
def ranking():
    X, y, qid = make_ranking(40, rows_per_query=20, random_state=0, return_X_y_qid=True)
    X = X[:, :6]
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    return X, y, qid


def in_batches(ends, *arrays):
    """The rows up to each end; queries go on from one batch to the next."""
    return [tuple(array[a:b] for array in arrays) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


ENDS = [7, 331, 332, 640, 800]


def ranker(**parameters):
    return LambdaMARTRanker(**{"max_iter": 8, "random_state": 0, "min_samples_leaf": 5} | parameters)


# ----------------------------------------------------------------------------------------------- rows on disk


def spool_of(X, ends, makes=(np.asarray,)):
    rows = Spool()
    for k, (part,) in enumerate(in_batches(ends, X)):
        rows.append(makes[k % len(makes)](part))
    return rows


@given(data=st.data(), n=st.integers(1, 60), weighted=st.booleans(), max_bins=st.sampled_from([3, 255, None]))
@settings(deadline=None)
def test_rows_on_disk_have_the_cuts_and_codes_of_rows_in_memory(data, n, weighted, max_bins):
    """In parts of any size and kind, all rows or some, in any order."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X = rng.choice([np.nan, 0.0, -1.5, *rng.normal(size=9)], (n, 5)).astype(np.float32)
    ends = sorted({n, *data.draw(st.lists(st.integers(1, n), max_size=6))})
    makes = (np.asarray, lambda part: part.astype(np.float64), sparse.csr_array, np.asfortranarray)
    rows = spool_of(X, ends, makes)
    assert rows.shape == X.shape
    order = data.draw(st.sampled_from([None, rng.permutation(n), np.flatnonzero(rng.random(n) < 0.5)]))
    weights = rng.lognormal(0, 2, n if order is None else len(order)) if weighted else None
    mapper, expected = (
        BinMapper.fit(some, max_bins=max_bins, weights=weights, order=order, n_threads=2)
        for some in (rows, X)
    )
    assert all(a.tobytes() == b.tobytes() for a, b in zip(mapper.cuts, expected.cuts, strict=True))
    np.testing.assert_array_equal(mapper.encode(rows, order), mapper.encode(X, order))


@pytest.mark.parametrize(
    ("shard", "message"),
    [
        (
            {"X": np.eye(2), "y": [1, 0], "weight": [1, 1]},
            r"shard 0, .*npz, has 'weight'; expected arrays called X",
        ),
        (
            (np.eye(2), [1, 0], [1, 1], [1, 1], "more"),
            "shard 0 is a tuple of 5; expected the path of an .npz file",
        ),
        ("X.npy", "shard 0 is 'X.npy'; expected the path of an .npz file, or a tuple"),
    ],
)
def test_what_is_no_shard(tmp_path, shard, message):
    if isinstance(shard, dict):
        np.savez(tmp_path / "rows.npz", **shard)
        shard = tmp_path / "rows.npz"
    with pytest.raises((TypeError, ValueError), match=message):
        list(Batches.from_numpy([shard]))


@pytest.mark.parametrize("at", [0, 0.3, 0.6, 0.99])
@pytest.mark.parametrize("change", ["cut", "flip"])
@pytest.mark.parametrize("kind", ["npz", "npy", "parquet"])
def test_a_damaged_file_is_named(kind, change, at, tmp_path):
    rng, path = np.random.default_rng(0), tmp_path / f"rows.{kind}"
    X, y = rng.normal(size=(100, 3)), np.arange(100) % 3
    if kind == "parquet":
        pd.DataFrame(X, columns=list("abc")).assign(label=y).to_parquet(path)
        batches = Batches.from_parquet([path], label="label")
    elif kind == "npz":
        np.savez_compressed(path, X=X, y=y)
        batches = Batches.from_numpy([path])
    else:
        np.save(path, X)
        batches = Batches.from_numpy([(path, y)])
    whole = path.read_bytes()
    place = int(at * len(whole))
    end = b"" if change == "cut" else bytes(255 - byte for byte in whole[place:])
    path.write_bytes(whole[:place] + end)
    if kind == "npy" and change == "flip" and at > 0:  # other numbers, of which nothing is known
        return
    with pytest.raises(ValueError, match=rf"rows\.{kind} cannot be read \(.*\); expected a complete"):
        list(batches)


def test_files_that_are_not_there_are_missed(tmp_path):
    shards = [tmp_path / "no.npz"], [(tmp_path / "no.npy", [1])]
    for batches in (
        *map(Batches.from_numpy, shards),
        Batches.from_parquet(tmp_path / "no.parquet", label="label"),
    ):
        with pytest.raises(FileNotFoundError, match="no\\."):
            list(batches)


def test_what_is_no_batch_is_told_by_what_it_holds():
    with pytest.raises(TypeError, match="batch 0 is a dict of 'X', 'query'; expected a tuple"):
        list(Batches([{"X": np.eye(2), "query": [1, 1]}]))
    with pytest.raises(ValueError, match="shards is empty; expected at least one"):
        Batches.from_numpy([])


def test_parquet_files_have_the_same_columns(tmp_path):
    for name, columns in (("1", ["a"]), ("2", ["a", "b"])):
        pd.DataFrame(1.0, range(3), [*columns, "label", "qid"]).to_parquet(tmp_path / name)
    paths = [tmp_path / "1", tmp_path / "2"]
    with pytest.raises(ValueError, match=r"2 has the columns \['b'\], which .*1 lacks"):
        list(Batches.from_parquet(paths, label="label", qid="qid"))
    assert len(list(Batches.from_parquet(paths, label="label", qid="qid", features=["a"]))) == 2


def test_score_reads_no_batches():
    model = LambdaMARTRanker(max_iter=1, min_samples_leaf=1).fit(np.eye(4), [0, 1, 2, 3], qid=[1] * 4)
    with pytest.raises(TypeError, match="X is in batches, which only the fit"):
        model.score(Batches([(np.eye(4), [0, 1, 2, 3], [1] * 4)]))


def test_ranks_may_have_their_rows_on_disk(ranking):
    X = ranking[0]

    def fit(ranks):
        own = X[ranks.rank :: 3]
        return BinMapper.fit(spool_of(own, [10, len(own)]) if ranks.rank else own, communicator=ranks)

    expected = BinMapper.fit(X)
    for mapper in together(3, fit):
        assert all(a.tobytes() == b.tobytes() for a, b in zip(mapper.cuts, expected.cuts, strict=True))


def test_functions_of_rows_are_taken_part_by_part(ranking):
    X = np.nan_to_num(ranking[0])
    rows = spool_of(X, ENDS)
    np.testing.assert_array_equal(by_parts(lambda part, _: part[:, 0], rows), X[:, 0])
    np.testing.assert_array_equal(
        by_parts(lambda part, start: part[:, 1] + start, rows, X[:, 0]), X[:, 0] + X[:, 1]
    )
    assert by_parts(lambda part, _: part, X) is X


@pytest.mark.parametrize("n", [0, 5, 7, 8, 332, 800, 801])
def test_the_first_rows_are_those_of_the_first_parts(ranking, n):
    X = ranking[0]
    np.testing.assert_array_equal(first_rows(spool_of(X, ENDS), n), X[:n])
    np.testing.assert_array_equal(first_rows(X, n), X[:n])


def test_the_file_is_gone_with_the_rows(tmp_path):
    def n_open():
        return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    gc.collect()
    before = n_open()
    rows = Spool(tmp_path)
    rows.append(np.ones((2, 2)))
    del rows
    gc.collect()
    assert not list(tmp_path.iterdir())
    assert n_open() == before


# ------------------------------------------------------------------------------------------------- estimators


@pytest.mark.parametrize(
    "model",
    [
        ranker(),
        ranker(split_search="exact", subsample=1.0),
        ranker(split_search="streaming", max_bins=20, early_stopping=True, n_iter_no_change=3),
        ranker(early_stopping=True, n_iter_no_change=3),
        HistGBRTRegressor(max_iter=8, random_state=0),
        RandomForestRanker(8, random_state=0, oob_score=True),
    ],
    ids=lambda model: repr(model)[:50],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_fit_on_batches_is_the_fit_on_their_rows(ranking, model, weighted):
    X, y, qid = ranking
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], 40)[qid] if weighted else None
    whole = model.fit(X, y, weights, qid=qid).ensemble_.to_bytes()
    batches = in_batches(ENDS, X, y, qid, *([weights] if weighted else []))
    assert model.fit(Batches(batches)).ensemble_.to_bytes() == whole
    assert model.n_features_in_ == 6


def test_rows_of_a_query_may_be_in_any_batch(ranking):
    X, y, qid = (array[np.random.default_rng(0).permutation(800)] for array in ranking)
    names = [f"query {i}" for i in qid]
    expected = ranker(early_stopping=True).fit(X, y, qid=names)
    fitted = ranker(early_stopping=True).fit(Batches(in_batches(ENDS, X, y, names)))
    assert fitted.ensemble_ == expected.ensemble_


def test_labels_and_ids_among_the_columns_of_batches_are_doubted(ranking):
    X, y, qid = ranking
    rows = np.column_stack([qid + 100, X, y])
    with pytest.warns(FitWarning) as said:
        ranker().fit(Batches(in_batches(ENDS, rows, y, qid + 100)))
    ids, labels = sorted(str(one.message) for one in said)
    assert ids.startswith("X has a column 0, which holds the query ids")
    assert labels.startswith("the column 7 of X holds the labels")


def test_validation_rows_may_come_in_batches(ranking):
    X, y, qid = ranking
    train, val = qid < 25, qid >= 25
    expected = ranker().fit(X[train], y[train], qid=qid[train], X_val=X[val], y_val=y[val], qid_val=qid[val])
    of_val = Batches(in_batches([30, val.sum()], X[val], y[val], qid[val]))
    for arguments in ({"X_val": of_val}, {"eval_set": [(of_val, None)]}):
        fitted = ranker().fit(Batches([(X[train], y[train], qid[train])]), **arguments)
        assert fitted.ensemble_ == expected.ensemble_
        np.testing.assert_array_equal(fitted.validation_score_, expected.validation_score_)
    with pytest.warns(FitWarning, match=r"15 of 15 validation queries are training queries .* such as 25:"):
        ranker().fit(Batches(in_batches(ENDS, X, y, qid)), X_val=X[val], y_val=y[val], qid_val=qid[val])


def test_classes_keep_their_names(ranking):
    X, y, _ = ranking
    names = np.where(y >= 2, "good", "poor")
    expected = HistGBRTClassifier(max_iter=5, random_state=0).fit(X, names)
    fitted = HistGBRTClassifier(max_iter=5, random_state=0).fit(Batches(in_batches(ENDS, X, names)))
    assert fitted.classes_.tolist() == ["good", "poor"]
    assert fitted.ensemble_ == expected.ensemble_


def test_frames_bring_names_and_queries(ranking):
    X, y, qid = ranking
    frame = pd.DataFrame(X, columns=list("abcdef"))
    labels = pd.Series(y, index=pd.Index(qid, name="qid"))
    fitted = ranker().fit(Batches([(frame[:500], labels[:500]), (frame[500:], labels[500:])]))
    expected = ranker().fit(frame, labels)
    assert fitted.ensemble_ == expected.ensemble_
    assert fitted.feature_names_in_.tolist() == list("abcdef")
    assert not hasattr(fitted.fit(Batches(in_batches(ENDS, X, y, qid))), "feature_names_in_")


def test_sparse_and_integer_batches_are_those_of_all_rows():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.7, (300, 4))
    y = rng.integers(0, 3, 300)
    expected = HistGBRTRegressor(max_iter=5, random_state=0).fit(X, y)
    parts = [X[:100], sparse.csr_array(X[100:150]), X[150:].tolist()]
    batches = [{"X": part, "y": own} for part, own in zip(parts, np.split(y, [100, 150]), strict=True)]
    assert HistGBRTRegressor(max_iter=5, random_state=0).fit(Batches(batches)).ensemble_ == expected.ensemble_


@pytest.mark.parametrize("wide", [False, True])
def test_sparse_batches_are_kept_by_their_entries(monkeypatch, wide):
    """Also in 64 bits, and if a later batch is dense or more precise."""
    monkeypatch.setattr(spool, "MOST_SHORT", 100 if wide else 2**31 - 1)
    monkeypatch.setattr(spool, "_BLOCK", 70)
    X, y = sparse_rows(np.float64)
    parts = [X[:90].astype(np.float32), X[90:90], X[90:140], X[140:200].toarray(), X[200:]]
    exact = sparse.vstack([X[:90].astype(np.float32), X[90:]]).tocsr()
    expected = HistGBRTRegressor(max_iter=5, random_state=0).fit(exact, y)
    kept = spool.SparseSpool()
    for part in parts:
        kept.append(part)
    rows = kept.matrix()
    assert rows.indices.dtype == rows.indptr.dtype == (np.int64 if wide else np.int32)
    assert (rows != exact).nnz == 0
    ends = np.cumsum([part.shape[0] for part in parts if part.shape[0]])[:-1]
    batches = list(zip([part for part in parts if part.shape[0]], np.split(y, ends), strict=True))
    fitted = HistGBRTRegressor(max_iter=5, random_state=0).fit(Batches(batches))
    assert fitted.ensemble_ == expected.ensemble_


def test_sparse_batches_of_many_columns_need_no_room_for_zeros():
    """A hundred million cells: dense batches would not fit on disk."""
    X, y = sparse_rows(np.float32)
    X.resize(len(y), 2**24)
    expected = HistGBRTRegressor(max_iter=3, random_state=0).fit(X, y)
    fitted = HistGBRTRegressor(max_iter=3, random_state=0).fit(
        Batches([(X[:100], y[:100]), (X[100:], y[100:])])
    )
    assert fitted.ensemble_ == expected.ensemble_


def sparse_rows(dtype):
    rng = np.random.default_rng(0)
    X = sparse.csr_array(np.where(rng.random((300, 40)) < 0.2, rng.random((300, 40)), 0).astype(dtype))
    return X, X.sum(axis=1) + rng.normal(size=300)


@pytest.mark.parametrize("kind", ["ours", "foreign"])
def test_a_fitted_init_scores_the_batches(ranking, kind):
    X, y, qid = np.nan_to_num(ranking[0]), *ranking[1:]
    init = (
        ranker(max_iter=3).fit(X, y, qid=qid)
        if kind == "ours"
        else DecisionTreeRegressor(max_depth=3).fit(X, y)
    )
    expected = ranker(init=init, early_stopping=True).fit(X, y, qid=qid)
    fitted = ranker(init=init, early_stopping=True).fit(Batches(in_batches(ENDS, X, y, qid)))
    assert fitted.ensemble_ == expected.ensemble_


def test_ranks_may_have_batches_arrays_or_no_rows(ranking):
    X, y, qid = ranking
    expected = ranker().fit(X, y, qid=qid).ensemble_.to_bytes()

    def fit(ranks):
        own = [qid < 15, qid >= 15, qid < 0][ranks.rank]
        with training_with(ranks):
            if ranks.rank:
                return ranker().fit(X[own], y[own], qid=qid[own]).ensemble_.to_bytes()
            batches = in_batches([120, own.sum()], X[own], y[own], qid[own])
            return ranker().fit(Batches(batches)).ensemble_.to_bytes()

    assert together(3, fit) == [expected] * 3


@pytest.mark.parametrize("named", [int, "query {:02}".format, lambda q: ("query", int(q))])
def test_all_ranks_may_have_batches(ranking, named):
    X, y, qid = ranking
    model = ranker(early_stopping=True)
    expected = model.fit(X, y, qid=qid).ensemble_.to_bytes()
    ids = np.empty(len(qid), object)
    ids[:] = [named(query) for query in qid]

    def fit(ranks):
        own = qid % 2 == ranks.rank
        batches = Batches(in_batches([120, own.sum()], X[own], y[own], ids[own]))
        with training_with(ranks):
            return clone(model).fit(batches).ensemble_.to_bytes()

    assert together(2, fit) == [expected] * 2


def test_validation_batches_of_ranks_have_queries_of_their_own(ranking):
    X, y, qid = ranking
    train, val = qid < 25, qid >= 25
    expected = ranker().fit(X[train], y[train], qid=qid[train], X_val=X[val], y_val=y[val], qid_val=qid[val])

    def fit(ranks):
        own = [
            Batches([(X[a], y[a], qid[a])]) for a in (some & (qid % 2 == ranks.rank) for some in (train, val))
        ]
        with training_with(ranks):
            return ranker().fit(own[0], X_val=own[1]).validation_score_.tolist()

    assert together(2, fit) == [expected.validation_score_.tolist()] * 2


def test_streaming_ranks_may_have_batches(ranking):
    X, y, qid = ranking

    def fit(ranks):
        own = qid < 15 if ranks.rank else qid >= 15
        rows = X[own], y[own], qid[own]
        model = ranker(split_search="streaming", max_bins=20, early_stopping=True)
        with training_with(ranks):
            expected = model.fit(*rows[:2], qid=rows[2]).ensemble_
            return model.fit(Batches(in_batches([120, own.sum()], *rows))).ensemble_ == expected

    assert together(2, fit) == [True] * 2


def test_ranks_need_no_queries_where_rows_are_learned_one_by_one(ranking):
    X, y, _ = ranking
    expected = HistGBRTRegressor(max_iter=3, random_state=0).fit(X, y).ensemble_.to_bytes()

    def fit(ranks):
        own = slice(350) if ranks.rank == 0 else slice(350, None)
        with training_with(ranks):
            with pytest.raises(ValueError, match="every rank has passed the same rows"):
                HistGBRTRegressor().fit(Batches(in_batches(ENDS, X, y)))
            batches = Batches(in_batches([90, len(y[own])], X[own], y[own]))
            return HistGBRTRegressor(max_iter=3, random_state=0).fit(batches).ensemble_.to_bytes()

    assert together(2, fit) == [expected] * 2


def test_warm_start_goes_on_from_batches(ranking):
    batches = Batches(in_batches(ENDS, *ranking))
    model = ranker(warm_start=True).fit(batches)
    whole = ranker(max_iter=12).fit(batches)
    assert model.set_params(max_iter=12).fit(batches).ensemble_ == whole.ensemble_


def test_no_queries_are_warned_of(ranking):
    X, y, _ = ranking
    with pytest.warns(MissingQueryWarning, match="so all 800 rows were treated as one query"):
        ranker(max_iter=1).fit(Batches(in_batches(ENDS, X, y)))


def test_little_memory_is_needed():
    """Codes of all rows, and the values of some: 160 MB of floats are never there."""
    n_rows, n_batches, n_features = 20_000, 20, 100

    def source():
        for number in range(n_batches):
            rng = np.random.default_rng(number)
            X = rng.random((n_rows, n_features), dtype=np.float32)
            yield X, rng.integers(0, 5, n_rows), np.repeat(np.arange(n_rows // 50), 50) + number * n_rows

    floats = 4 * n_rows * n_batches * n_features
    model = ranker(max_iter=1, split_search="full", max_features=0.1)
    tracemalloc.start()
    try:
        model.fit(Batches(source))
        assert tracemalloc.get_traced_memory()[1] < 0.75 * floats
    finally:
        tracemalloc.stop()


# ------------------------------------------------------------------------------------------------------ files


def columns_of(parts):
    return zip(*(part[:3] for part in parts), strict=True)


def test_letor_files_are_read_as_load_letor_reads_them(ranking, tmp_path):
    X, y, qid = np.nan_to_num(ranking[0]), *ranking[1:]
    X[:400, 4:] = 0  # the first file ends at an earlier feature
    paths = [tmp_path / "part1.txt.gz", tmp_path / "part2.txt"]
    dump_letor(X[:390, :4], y[:390], paths[0], qid=qid[:390])
    dump_letor(X[390:], y[390:], paths[1], qid=qid[390:])
    parts = [load_letor(path, n_features=6, return_X_y_qid=True) for path in paths]
    for batch_rows in (1, 395, 10**9):
        batches = list(Batches.from_letor(paths, batch_rows=batch_rows))
        for read, expected in zip(columns_of(batches), columns_of(parts), strict=True):
            assert {part.dtype for part in read} == {part.dtype for part in expected}
            np.testing.assert_array_equal(np.concatenate(read), np.concatenate(expected))
    fitted = ranker().fit(Batches.from_letor(paths))
    assert fitted.ensemble_ == ranker().fit(X, y, qid=qid).ensemble_


def test_letor_queries_are_of_one_kind(tmp_path):
    integers, texts = tmp_path / "integers.txt", tmp_path / "texts.txt"
    integers.write_text("1 qid:07 1:1\n0 qid:8 1:2\n")
    texts.write_text("1 qid:a 1:1\n0 qid:8 1:2\n")
    seen = [batch.qid.tolist() for batch in Batches.from_letor([texts, integers], batch_rows=1)]
    assert seen == [["a", "8"], ["07", "8"]]
    with pytest.raises(
        ValueError, match="qid 'a' is a string, but the ids in earlier batches are 64-bit integers"
    ):
        list(Batches.from_letor([integers, texts], batch_rows=1))
    texts.write_text(f"1 qid:1 1:1\n0 qid:{2**63} 1:2\n")
    with pytest.raises(ValueError, match=f"qid '{2**63}' is a string, but .* are 64-bit integers"):
        list(Batches.from_letor([integers, texts], batch_rows=1))
    assert [batch.qid.tolist() for batch in Batches.from_letor(texts)] == [["1", str(2**63)]]
    integers.write_text("1 qid:7 1:1\nnan qid:8 1:2\n")
    with pytest.raises(ValueError, match=r"integers.txt, line 2: label 'nan'"):
        ranker().fit(Batches.from_letor(integers))


def test_parquet_files_are_read_some_rows_at_a_time(ranking, tmp_path):
    X, y, qid = ranking
    frame = pd.DataFrame(X, columns=list("abcdef"))
    paths = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    for path, own in zip(paths, (slice(0, 390), slice(390, None)), strict=True):
        pa.parquet.write_table(
            pa.table({"label": y[own], **frame[own].to_dict("series"), "query": qid[own], "w": y[own] + 1}),
            path,
        )
    named = {"label": "label", "qid": "query", "sample_weight": "w"}
    batches = Batches.from_parquet(paths, **named, batch_rows=100)
    assert [len(batch.y) for batch in batches] == [100, 100, 100, 90, 100, 100, 100, 100, 10]
    fitted = ranker().fit(batches)
    assert fitted.ensemble_ == ranker().fit(frame, y, y + 1, qid=qid).ensemble_
    assert fitted.feature_names_in_.tolist() == list("abcdef")
    some = ranker().fit(Batches.from_parquet(paths, label="label", qid="query", features=["c", "a"]))
    assert some.ensemble_ == ranker().fit(frame[["c", "a"]], y, qid=qid).ensemble_
    with pytest.raises(
        ValueError,
        match=r"1.parquet has no column 'grade'; expected one of those that it has, \['label', 'a'",
    ):
        next(iter(Batches.from_parquet(paths, label="grade")))


def test_parquet_columns_of_one_name_are_refused_unless_they_are_left_out(tmp_path):
    columns = [pa.array([1.0, 2.0])] * 4
    pa.parquet.write_table(pa.table(columns, ["a", "twin", "twin", "label"]), tmp_path / "1.parquet")
    with pytest.raises(ValueError, match=r"1.parquet has 2 columns called 'twin'; expected a name for each"):
        next(iter(Batches.from_parquet(tmp_path / "1.parquet", label="label")))
    with pytest.raises(ValueError, match="has 2 columns called 'twin'"):
        next(iter(Batches.from_parquet(tmp_path / "1.parquet", label="twin", features=["a"])))
    (batch,) = Batches.from_parquet(tmp_path / "1.parquet", label="label", features=["a"])
    assert batch.X.column_names == ["a"]


@pytest.mark.parametrize("name", [None, "query"])
def test_an_index_that_pandas_has_stored_is_no_feature_unless_named(tmp_path, name):
    path = tmp_path / "rows.parquet"
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "label": [2, 0, 1]})
    frame.to_parquet(path)
    (ranged,) = Batches.from_parquet(path, label="label")
    assert ranged.X.column_names == ["a"]
    frame.set_index(pd.Index([7, 7, 9], name=name)).to_parquet(path)
    column = name or "__index_level_0__"
    (plain,) = Batches.from_parquet(path, label="label")
    assert plain.X.column_names == ["a"]
    (queries,) = Batches.from_parquet(path, label="label", qid=column)
    assert queries.X.column_names == ["a"]
    assert queries.qid.to_pylist() == [7, 7, 9]
    (asked,) = Batches.from_parquet(path, label="label", features=["a", column])
    assert asked.X.to_pydict() == {"a": [1.0, 2.0, 3.0], column: [7, 7, 9]}


def test_pyarrow_is_asked_for_where_it_is_needed(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r'pip install "ranktrees\[parquet\]"'):
        Batches.from_parquet("rows.parquet", label="label")


def test_numpy_files_are_shards(ranking, tmp_path):
    X, y, qid = ranking
    for name, array in {"X": X, "y": y, "qid": qid}.items():
        np.save(tmp_path / f"{name}.npy", array[:500])
    np.savez(tmp_path / "2.npz", X=X[500:], y=y[500:], qid=qid[500:])
    shards = [tuple(tmp_path / f"{name}.npy" for name in ("X", "y", "qid")), tmp_path / "2.npz"]
    batches = Batches.from_numpy(shards, batch_rows=300)
    assert [len(batch.X) for batch in batches] == [300, 200, 300]
    assert isinstance(next(iter(batches)).X, np.memmap)
    assert ranker().fit(batches).ensemble_ == ranker().fit(X, y, qid=qid).ensemble_
    with pytest.raises(ValueError, match=r"shard 0 holds \{'X': 800, 'y': 3}; expected X, y"):
        list(Batches.from_numpy([(X, y[:3])]))
    with pytest.raises(TypeError, match="shard 0 is a ndarray; expected the path of"):
        list(Batches.from_numpy((X, y, qid)))


# ----------------------------------------------------------------------------------------------------- errors


def changed(batches, number, **change):
    names = ("X", "y", "qid", "sample_weight")
    batches = [dict(zip(names, batch, strict=False)) for batch in batches]
    batches[number] |= change
    return Batches(batches)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.ones((1, 5))}, "X of batch 2 does not match the X of fit: X has 5 features"),
        ({"X": np.ones((1, 6), complex)}, "column 0 of X of batch 2 holds complex128"),
        ({"X": np.ones((0, 6))}, "X of batch 2 is empty: .*; expected at least one row in each batch: leave"),
        ({"X": []}, "X of batch 2 is empty: .*; expected at least one row in each batch: leave"),
        ({"y": [np.nan]}, "Input y of batch 2 contains NaN in row 0"),
        ({"y": [1, 2]}, "y of batch 2 has length 2 but X of batch 2 has 1 rows"),
        ({"y": None}, "y of batch 2 is None; expected one label per row"),
        ({"qid": [None]}, "qid of batch 2 is missing"),
        ({"qid": [1, 2]}, "qid of batch 2 has length 2"),
        ({"qid": ["7"]}, "qid of batch 2 holds '7', a str, but qid of batch 0 holds .*, a number; expected"),
        ({"qid": None}, "batch 2 has no qid, but batch 0 has; expected qid in all batches, or in none"),
        ({"sample_weight": [1.0]}, "batch 0 has no sample_weight, but batch 2 has"),
        ({"sample_weight": [-1.0]}, "sample_weight of batch 2 holds the negative weight -1 in row 0"),
    ],
)
def test_a_wrong_batch_is_named(ranking, change, message):
    model = ranker()
    with pytest.raises(ValueError, match=message):
        model.fit(changed(in_batches(ENDS, *ranking), 2, **change))
    assert not hasattr(model, "n_features_in_")


def test_files_without_rows_are_passed_over_among_others_and_named_where_there_are_no_others(
    ranking, tmp_path
):
    X, y, qid = (array[:100] for array in ranking)
    rows = pd.DataFrame(X, columns=list("abcdef")).assign(y=y, qid=qid)
    full, empty = [], []
    for n_rows, paths in ((100, full), (0, empty)):
        paths += [tmp_path / f"{n_rows}.{kind}" for kind in ("txt", "parquet", "npz")]
        paths[0].write_bytes(b"# nothing\n")
        rows[:n_rows].to_parquet(paths[1])
        np.savez(paths[2], X=X[:n_rows], y=y[:n_rows], qid=qid[:n_rows])
    dump_letor(X, y, full[0], qid=qid)
    sources = {
        Batches.from_letor: ({"absent": np.nan}, "0.txt and 1 more hold no rows; expected lines such as"),
        Batches.from_parquet: (
            {"label": "y", "qid": "qid"},
            "none of the 2 paths has any rows; expected rows",
        ),
        Batches.from_numpy: ({}, "none of the 2 shards has any rows; expected rows in at least one"),
    }
    expected = ranker().fit(X, y, qid=qid).ensemble_
    for some, none, (read, (options, message)) in zip(full, empty, sources.items(), strict=True):
        assert np.array_equal(
            ranker().fit(read([none, some, none], **options)).ensemble_.predict(X), expected.predict(X)
        )
        with pytest.raises(ValueError, match=message):
            ranker().fit(read([none, none], **options))
    (tmp_path / "bare.txt").write_text("1 qid:1\n0 qid:1\n")
    with pytest.raises(ValueError, match=r"bare.txt holds no feature:value pair; pass n_features if"):
        ranker().fit(Batches.from_letor(tmp_path / "bare.txt"))
    with pytest.raises(ValueError, match=r"paths has '.*', which is a folder; expected files: .*\(Path"):
        Batches.from_parquet(full[0].parent, label="grade")
    with open(full[0], "rb") as file, pytest.raises(TypeError, match=r"paths is an open file, .*; exp"):
        Batches.from_letor(file)


def test_queries_are_numbers_in_all_batches_or_texts_in_all(ranking):
    """What reads a file chunk by chunk may guess types so; in one batch numbers and texts are told apart."""
    X, y, qid = ranking
    texts = qid.astype(str).astype(object)
    for ids in (np.where(qid % 2, qid.astype(object), texts), texts):
        batches = Batches(in_batches([400, len(y)], X, y, ids))
        assert ranker().fit(batches).ensemble_ == ranker().fit(X, y, qid=ids).ensemble_
    labels = pd.Series(y, index=pd.Index(qid, name="qid"))
    message = (
        "qid of batch 1 holds [0-9]*, a number, but qid of batch 0 holds '[0-9]*', a str; expected ids of"
    )
    with pytest.raises(ValueError, match=message):
        ranker().fit(Batches([(X[:400], y[:400], texts[:400]), (X[400:], labels[400:])]))


@pytest.mark.parametrize(
    ("first", "second", "seen"),
    [
        ("int64", "S", "b'[0-9]*', a bytes, but qid of batch 0 holds 0, a number"),
        ("S", "int64", "[0-9]*, a number, but qid of batch 0 holds b'0', a bytes"),
        ("U", "S", "b'[0-9]*', a bytes, but qid of batch 0 holds '0', a str"),
        ("int64", "M8[D]", "datetime.date.*, a date, but qid of batch 0 holds 0, a number"),
    ],
)
def test_queries_of_another_kind_in_another_batch_are_refused(ranking, first, second, seen):
    X, y, qid = ranking
    kinds = [(X[:400], y[:400], qid[:400].astype(first)), (X[400:], y[400:], qid[400:].astype(second))]
    with pytest.raises(ValueError, match=f"qid of batch 1 holds {seen}; expected ids of one kind in all"):
        ranker().fit(Batches(kinds))
    for kind in (first, second):
        batches = Batches(in_batches([400, len(y)], X, y, qid.astype(kind)))
        assert ranker().fit(batches).ensemble_ == ranker().fit(X, y, qid=qid).ensemble_


def test_what_batches_cannot_be_is_refused(ranking):
    X, y, qid = ranking
    batches = Batches(in_batches(ENDS, X, y, qid))
    with pytest.raises(ValueError, match="y is given, but X is in batches, which contain their labels"):
        ranker().fit(batches, y)
    with pytest.raises(ValueError, match="qid_val is given, but X_val is in batches"):
        ranker().fit(batches, X_val=batches, qid_val=qid)
    with pytest.raises(ValueError, match="X has no batches; expected at least one"):
        ranker().fit(Batches(iter([])))
    with pytest.raises(TypeError, match="batch 0 is a ndarray; expected a tuple"):
        ranker().fit(Batches(X))
    with pytest.raises(
        ValueError, match="init is a HistGBRTRegressor that is not fitted, but X is in batches"
    ):
        ranker(init=HistGBRTRegressor()).fit(batches)
    with pytest.raises(TypeError, match="X is in batches, which only the fit of a tree estimator reads"):
        ranker().fit(X, y, qid=qid).predict(batches)
    with pytest.raises(TypeError, match="X is in batches"):
        OrdinalRanker(HistGBRTClassifier()).fit(batches, None)
    with pytest.raises(ValueError, match="batch_rows=0; expected an integer of at least 1"):
        Batches.from_numpy([], batch_rows=0)
    site = pd.DataFrame({"clicks": [1, 2], "site": pd.Categorical(["uk", "fr"])})
    with pytest.raises(ValueError, match="column 'site' of X of batch 0 is a category column"):
        ranker().fit(Batches([(site, [0, 1], [1, 1])]))
    for chosen in ("from_dtype", ["site"]):
        with pytest.raises(
            ValueError, match=r"column 'site' of X of batch 0 holds strings.* expected numbers: pass codes"
        ):
            ranker(categorical_features=chosen).fit(Batches([(site.astype({"site": str}), [0, 1], [1, 1])]))
    names = [(pd.DataFrame({name: [1.0, 2.0]}), [0, 1], [1, 1]) for name in ("a", "b")]
    with pytest.raises(ValueError, match="X of batch 1 does not match the X of fit: The feature names"):
        ranker().fit(Batches(names))
