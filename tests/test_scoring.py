import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from ranktrees import HistGBRTRegressor
from ranktrees.model import scoring
from ranktrees.model.ensemble import Ensemble
from reference import scoring as reference

LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "every other row and column": lambda X: np.repeat(np.repeat(X, 2, 0), 2, 1)[::2, ::2],
    "backwards": lambda X: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "fields of records": lambda X: _as_fields(X),
}


def _as_fields(X):
    records = np.zeros(X.shape, [("before", np.uint8), ("x", X.dtype)])
    records["x"] = X
    return records["x"]


@given(
    seed=st.integers(0, 2**32 - 1),
    n_trees=st.integers(0, 6),
    max_leaves=st.integers(1, 40),
    n_features=st.integers(1, 7),
    dtype=st.sampled_from([np.float32, np.float64]),
    average=st.booleans(),
    many=st.booleans(),
)
@settings(deadline=None, max_examples=60)
def test_kernel_is_the_plain_walk(seed, n_trees, max_leaves, n_features, dtype, average, many):
    rng = np.random.default_rng(seed)
    ensemble = reference.random_ensemble(
        rng, n_trees, max_leaves, n_features, average=average, base=rng.normal(), many=many
    )
    X = reference.random_rows(rng, ensemble, 20, dtype)
    expected = reference.predict(ensemble, X)
    assert ensemble.predict(X).tobytes() == expected.tobytes()
    np.testing.assert_array_equal(ensemble.leaves(X), reference.leaves(ensemble, X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_changes_nothing(layout, dtype):
    rng = np.random.default_rng(0)
    ensemble = reference.random_ensemble(rng)
    X = reference.random_rows(rng, ensemble, 150, dtype)
    expected = reference.predict(ensemble, X)
    same = LAYOUTS[layout](X)
    same.flags.writeable = False
    assert scoring.predict(ensemble, same, n_jobs=2).tobytes() == expected.tobytes()
    np.testing.assert_array_equal(scoring.leaves(ensemble, same), reference.leaves(ensemble, X))


@pytest.mark.parametrize("n_threads", [1, 2, 3, 4])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_threads_change_nothing(n_threads, as_sparse):
    rng = np.random.default_rng(1)
    ensemble = reference.random_ensemble(rng, 20, 30, base=0.1, average=True)
    X = reference.random_rows(rng, ensemble, 1000)
    expected_scores, expected_leaves = ensemble.predict(X), ensemble.leaves(X)
    X = sparse.csr_array(X) if as_sparse else X
    assert ensemble.predict(X, n_jobs=n_threads).tobytes() == expected_scores.tobytes()
    np.testing.assert_array_equal(ensemble.leaves(X, n_jobs=n_threads), expected_leaves)


def test_row_by_row_is_all_at_once():
    rng = np.random.default_rng(2)
    ensemble = reference.random_ensemble(rng, 20, 30)
    X = reference.random_rows(rng, ensemble, 200)
    assert (
        np.concatenate([ensemble.predict(row[None]) for row in X]).tobytes() == ensemble.predict(X).tobytes()
    )


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "lil"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
def test_sparse_is_dense_with_zeros(format, dtype, index_dtype):
    rng = np.random.default_rng(3)
    ensemble = reference.random_ensemble(rng, 20, 30, n_features=7)
    X = rng.integers(-2, 3, size=(333, 7)) * (rng.random((333, 7)) < 0.4)
    X = X.astype(dtype)
    if dtype != np.int64:
        X[rng.random(X.shape) < 0.1] = np.nan
    rows = sparse.csr_array(X).asformat(format)
    if format == "csr":
        rows.indices, rows.indptr = rows.indices.astype(index_dtype), rows.indptr.astype(index_dtype)
    assert ensemble.predict(rows, n_jobs=2).tobytes() == ensemble.predict(X).tobytes()
    np.testing.assert_array_equal(list(ensemble.staged_predict(rows)), list(ensemble.staged_predict(X)))


def test_sparse_rows_may_be_unsorted_with_repeats_and_stored_zeros():
    rng = np.random.default_rng(4)
    ensemble = reference.random_ensemble(rng, n_features=3, categorical=False)
    X = sparse.csr_array(([0.5, 0.0, 1.0, 0.5], [2, 1, 0, 2], [0, 4, 4]), shape=(2, 3))
    np.testing.assert_array_equal(ensemble.predict(X), ensemble.predict([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]))


def test_wide_sparse_rows_take_little_memory():
    rng = np.random.default_rng(5)
    n_features = 300_000
    ensemble = reference.random_ensemble(rng, 3, 20, n_features, cuts=[0.5], categorical=False)
    used = np.unique(ensemble.nodes["feature"][ensemble.nodes["feature"] >= 0])
    X = sparse.lil_array((100, n_features))
    X[:, used] = rng.integers(2, size=(100, len(used)))
    X = X.tocsr()
    expected = reference.predict(ensemble, X.toarray())
    np.testing.assert_array_equal(ensemble.predict(X), expected)


@pytest.mark.parametrize(
    "damage",
    [
        {"indices": [0, 3, 1]},
        {"indices": [0, -1, 1]},
        {"indices": [0, 2**31 - 1, 1]},
        {"indptr": [0, 2, 4]},
        {"indptr": [0, 3, 2]},
        {"indptr": [-1, 2, 3]},
        {"indptr": [1, 2, 3]},
        {"indptr": [0, 3, -(2**31)]},
        {"indptr": [0, 1, 2, 3]},
        {"indptr": [0, 3]},
        {"indices": [0]},
        {"data": [1.0]},
    ],
    ids=str,
)
def test_damaged_sparse_matrix_is_refused(damage):
    ensemble = reference.random_ensemble(np.random.default_rng(6), n_features=3)
    X = sparse.csr_matrix(([1.0, 2.0, 3.0], [0, 2, 1], [0, 2, 3]), shape=(2, 3))
    for name, values in damage.items():
        setattr(X, name, np.array(values, getattr(X, name).dtype))
    for walk in (ensemble.predict, ensemble.leaves):
        with pytest.raises(ValueError, match="damaged sparse matrix"):
            walk(X)


@pytest.mark.parametrize("average", [False, True])
def test_stages_are_the_scores_of_the_first_trees(average):
    rng = np.random.default_rng(7)
    ensemble = reference.random_ensemble(rng, 9, average=average, base=-0.3)
    X = reference.random_rows(rng, ensemble, 100)
    stages = list(ensemble.staged_predict(X))
    assert len(stages) == 9
    for n, stage in enumerate(stages, 1):
        assert stage.tobytes() == ensemble.first(n).predict(X).tobytes()
    assert stages[-1].tobytes() == ensemble.predict(X).tobytes()


@pytest.mark.parametrize("average", [False, True])
def test_start_stands_in_for_base(average):
    rng = np.random.default_rng(15)
    ensemble = reference.random_ensemble(rng, 4, average=average, base=100.0)
    X, start = reference.random_rows(rng, ensemble, 30), rng.normal(size=30)
    expected = reference.predict(ensemble, X, start)
    assert ensemble.predict(X, start=start).tobytes() == expected.tobytes()
    assert list(ensemble.staged_predict(X, start=start))[-1].tobytes() == expected.tobytes()
    np.testing.assert_array_equal(ensemble.predict(X, start=np.full(30, 100.0)), ensemble.predict(X))
    for wrong in (start[:-1], start[:, None], 0.0):
        with pytest.raises(ValueError, match=r"start has shape .*, expected \(30,\), a value per row of X"):
            ensemble.predict(X, start=wrong)


def test_no_threads_are_refused():
    ensemble = reference.random_ensemble(np.random.default_rng(16))
    for walk in (ensemble.predict, ensemble.leaves):
        with pytest.raises(ValueError, match="n_jobs=0: expected a positive number of threads"):
            walk(np.zeros((3, 4)), n_jobs=0)


def test_float32_is_widened_not_the_cut_narrowed():
    ensemble = Ensemble.from_trees([reference.stump(cut=0.1)], n_features=1)
    assert float(np.float32(0.1)) > 0.1
    assert ensemble.leaves(np.array([[0.1]], np.float32)) == 2
    assert ensemble.leaves(np.array([[0.1]])) == 1


def test_cut_at_infinity_parts_missing_from_present():
    ensemble = Ensemble.from_trees([reference.stump(cut=np.inf, missing_left=0)], n_features=1)
    found = ensemble.leaves([[-np.inf], [0.0], [np.inf], [np.nan]])
    np.testing.assert_array_equal(found, [[1], [1], [1], [2]])


def test_no_trees_and_no_rows():
    nothing = Ensemble.from_trees([], n_features=2, base=0.5, average=True)
    for X in (np.zeros((3, 2)), sparse.csr_array((3, 2))):
        np.testing.assert_array_equal(nothing.predict(X), [0.5, 0.5, 0.5])
        assert nothing.leaves(X).shape == (3, 0)
        assert list(nothing.staged_predict(X)) == []
    ensemble = reference.random_ensemble(np.random.default_rng(10), n_features=2)
    for X in (np.zeros((0, 2)), sparse.csr_array((0, 2))):
        assert ensemble.predict(X, n_jobs=2).shape == (0,)
        assert ensemble.leaves(X).shape == (0, 5)


def test_other_types_are_read_as_float64():
    rng = np.random.default_rng(11)
    ensemble = reference.random_ensemble(rng)
    X = rng.integers(-3, 4, size=(50, 4))
    expected = ensemble.predict(X.astype(float))
    for same in (X, X.astype(np.int8), X.astype(">f8"), X.astype(">f4"), X.astype(np.float16), X.tolist()):
        np.testing.assert_array_equal(ensemble.predict(same), expected)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(4), "X has 1 dimension"),
        (np.zeros((2, 2, 4)), "X has 3 dimension"),
        (np.zeros((2, 5)), "X has 5 features, but the model was trained on 4"),
        (sparse.csr_array((2, 3)), "X has 3 features"),
    ],
)
def test_wrong_shapes_are_refused(X, message):
    ensemble = reference.random_ensemble(np.random.default_rng(12))
    for walk in (ensemble.predict, ensemble.leaves, lambda X: next(ensemble.staged_predict(X))):
        with pytest.raises(ValueError, match=message):
            walk(X)


def lazy(X):
    pl = pytest.importorskip("polars")
    return pl.DataFrame(X).lazy()


def series(X):
    return pytest.importorskip("pandas").Series(X[:, 0])


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (lambda X: X.astype("M8[D]"), ValueError, "column 0 of X holds dates or durations"),
        (lambda X: X.astype("m8[s]"), ValueError, "column 0 of X holds dates or durations"),
        (lambda X: X + 1j, ValueError, "Complex data not supported: column 0 of X holds complex128"),
        (lambda X: sparse.csr_array(X + 1j), ValueError, "Complex data not supported: the data of X holds"),
        (lambda X: X.astype(str), ValueError, r"column 0 of X holds '1\.0', which could not be converted"),
        (lambda X: X.astype(np.int64) + 2**53, ValueError, "X holds the integer 9007199254740993"),
        (
            lambda X: sparse.csr_array(X.astype(np.int64) + 2**53),
            ValueError,
            "the data of X holds the integer",
        ),
        (lambda X: X.view(np.matrix), TypeError, r"X is a numpy.matrix.*np.asarray\(X\)"),
        (series, ValueError, r"X has 1 dimension\(s\), expected 2"),
        (lazy, TypeError, r"X is <LazyFrame>, which has no rows yet; .* pass X.collect\(\)"),
        (lambda X: {"a": [1.0]}, ValueError, "X is <dict of length 1>; expected rows and columns"),
        (lambda X: None, ValueError, "X is None; expected rows and columns"),
        (lambda X: [[1.0], [1.0, 2.0]], ValueError, "X could not be turned into an array"),
    ],
)
def test_what_estimators_refuse_is_refused(wrong, error, message):
    ensemble = reference.random_ensemble(np.random.default_rng(12), categorical=False)
    X = wrong(np.ones((2, 4)))
    for walk in (ensemble.predict, ensemble.leaves, lambda X: next(ensemble.staged_predict(X))):
        with pytest.raises(error, match=message):
            walk(X)


def test_masked_entries_and_none_are_missing_values():
    rng = np.random.default_rng(13)
    ensemble = reference.random_ensemble(rng)
    X = reference.random_rows(rng, ensemble, 50)
    objects = X.astype(object)
    objects[np.isnan(X)] = None
    for same in (np.ma.masked_array(np.where(np.isnan(X), 7.0, X), np.isnan(X)), objects):
        np.testing.assert_array_equal(ensemble.predict(same), ensemble.predict(X))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_one_thread_scores_in_a_forked_child():
    rng = np.random.default_rng(14)
    ensemble = reference.random_ensemble(rng, 20)
    X = reference.random_rows(rng, ensemble, 1000)
    expected = ensemble.predict(X, n_jobs=2)
    child = os.fork()
    if child == 0:
        os._exit(ensemble.predict(X, n_jobs=1).tobytes() != expected.tobytes())
    assert os.waitpid(child, 0)[1] == 0


def test_rows_of_a_sparse_matrix_are_read_where_they_are(monkeypatch):
    dense = np.random.default_rng(0).integers(0, 3, (scoring.ROWS_PER_THREAD * 2 + 7, 4)).astype(np.float64)
    ensemble = HistGBRTRegressor(max_iter=3, random_state=0).fit(dense, dense[:, 1] + dense[:, 3]).ensemble_
    X, expected = sparse.csr_array(dense), ensemble.predict(dense)
    monkeypatch.setattr(type(X), "__getitem__", None)
    np.testing.assert_array_equal(ensemble.predict(X), expected)
