import pickle
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ranks import together
from scipy import sparse

from ranktrees._core.support.dtypes import NODE
from ranktrees.binning.mapper import BinMapper
from ranktrees.support.spool import Spool
from reference import binning as slow
from widths import outputs_of

TINY = np.finfo(np.float32).smallest_subnormal
HOSTILE = np.array(
    [
        *(np.nan, np.inf, -np.inf, 0.0, -0.0, TINY, -TINY, 2 * TINY, 3 * TINY),
        *(
            1.0,
            np.nextafter(np.float32(1), np.float32(2)),
            np.nextafter(np.float32(1), np.float32(0)),
            -1.0,
            2.5,
        ),
        *(np.finfo(np.float32).max, -np.finfo(np.float32).max, np.finfo(np.float32).tiny),
    ],
    dtype=np.float32,
)
hostile_columns = st.lists(
    st.one_of(st.sampled_from(HOSTILE.tolist()), st.integers(-6, 6).map(float), st.floats(width=32)),
    max_size=40,
)
bins = st.integers(2, 12)


def column(values, dtype=np.float64):
    return np.asarray(values, dtype=dtype).reshape(-1, 1)


def same(mapper, other):
    return all(
        a.tobytes() == b.tobytes() for a, b in zip(mapper.cuts, other.cuts, strict=True)
    ) and np.array_equal(mapper.n_bins, other.n_bins)


@pytest.fixture
def web():
    """Columns as web search has them: counts, many zeros, heavy tails, few values, none."""
    rng = np.random.default_rng(7)
    X = np.column_stack(
        [
            rng.lognormal(0, 3, 3000),
            np.where(rng.random(3000) < 0.8, 0, rng.normal(size=3000)),
            rng.poisson(4, 3000),
            np.where(rng.random(3000) < 0.1, np.nan, rng.random(3000)),
            np.full(3000, np.nan),
            np.zeros(3000),
            rng.zipf(1.6, 3000),
            -rng.integers(0, 300, 3000),
        ]
    ).astype(np.float32)
    X[:40, 0] = np.resize(HOSTILE, 40)
    return X


# -------------------------------------------------------------------------------------- against the slow twin


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(values=hostile_columns, max_bins=bins)
@settings(deadline=None)
def test_cuts_and_codes_are_those_of_the_slow_twin(dtype, values, max_bins):
    X = column(values, dtype)
    mapper = BinMapper.fit(X, max_bins=max_bins)
    np.testing.assert_array_equal(mapper.cuts[0], slow.cuts(X[:, 0], max_bins))
    np.testing.assert_array_equal(mapper.encode(X)[:, 0], slow.codes(X[:, 0], mapper.cuts[0]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(values=hostile_columns, held=hostile_columns, times=st.sampled_from([1, 20]))
@settings(deadline=None, max_examples=50)
def test_without_a_limit_each_value_has_a_bin(dtype, values, held, times):
    """Codes have four bytes where values are many."""
    X, held = (
        column((np.array(rows)[:, None] / np.arange(1, times + 1)).ravel(), dtype) for rows in (values, held)
    )
    mapper = BinMapper.fit(X, max_bins=None)
    np.testing.assert_array_equal(mapper.cuts[0], slow.cuts(X[:, 0], np.inf))
    for rows in (X, held):
        expected = slow.codes(rows[:, 0], mapper.cuts[0])
        for make in (np.asarray, sparse.csr_array):
            codes = mapper.encode(make(rows))
            assert codes.dtype == expected.dtype
            np.testing.assert_array_equal(codes[:, 0], expected)


@pytest.mark.parametrize("n_values", [254, 255, 256, 40_000])
def test_ranks_are_the_codes_of_distinct_values(n_values):
    rng = np.random.default_rng(0)
    values = np.sort(rng.lognormal(0, 9, n_values))
    ranks = rng.permutation(np.r_[np.arange(n_values), rng.integers(0, n_values, 500)])
    X = np.column_stack([values[ranks], ranks % 3])
    mapper = BinMapper.fit(X, max_bins=None)
    assert mapper.n_bins.tolist() == [n_values, 3]
    codes = mapper.encode(X)
    assert codes.dtype == (np.uint8 if n_values <= 255 else np.uint32)
    np.testing.assert_array_equal(codes, np.column_stack([ranks, ranks % 3]))
    nodes = np.zeros(n_values + 3, NODE)
    nodes["feature"][n_values:] = 1
    mapper.set_cuts(nodes, np.array([*range(n_values), -1, 0, 2]))
    assert nodes["cut"].tolist() == [*mapper.cuts[0], np.inf, 0.0, 0.5, np.inf]


@given(
    rows=st.lists(
        st.tuples(st.integers(-8, 8), st.one_of(st.integers(0, 50).map(float), st.floats(0, 1e300))),
        max_size=40,
    ),
    max_bins=bins,
)
@settings(deadline=None)
def test_weighted_cuts_are_those_of_the_slow_twin(rows, max_bins):
    values, weights = np.array(rows, dtype=float).reshape(-1, 2).T
    mapper = BinMapper.fit(column(values), max_bins=max_bins, weights=weights)
    np.testing.assert_array_equal(mapper.cuts[0], slow.cuts(values, max_bins, weights))


@given(
    seed=st.integers(0, 2**32),
    shape=st.sampled_from(["normal", "lognormal", "counts", "steps", "heavy", "clump", "ulps"]),
    weighted=st.booleans(),
    max_bins=st.integers(2, 24),
)
@settings(deadline=None)
def test_columns_that_are_parted_in_pieces_are_cut_as_by_the_slow_twin(seed, shape, weighted, max_bins):
    rng = np.random.default_rng(seed)
    n = 250
    x = {
        "normal": lambda: rng.normal(size=n),
        "lognormal": lambda: rng.lognormal(0, 5, n),
        "counts": lambda: rng.poisson(30, n) * 0.1,
        "steps": lambda: np.round(rng.normal(size=n), 1) / 3,
        "heavy": lambda: np.where(rng.random(n) < 0.6, rng.integers(-3, 4, n) / 7, rng.normal(size=n)),
        "clump": lambda: np.append(1 + rng.integers(0, 300, n - 2) * 2.0**-23, [-1e30, 1e30]),
        "ulps": lambda: 2.0 ** rng.integers(-3, 3, n) * (1 + rng.integers(0, 3, n) * 2.0**-23),
    }[shape]()
    x[rng.random(n) < 0.2] = 0
    weights = rng.integers(0, 5, n) * rng.random() if weighted else None
    for dtype in (np.float32, np.float64):
        held = x.astype(dtype)
        mapper = BinMapper.fit(column(held, dtype), max_bins=max_bins, weights=weights)
        np.testing.assert_array_equal(mapper.cuts[0], slow.cuts(held, max_bins, weights))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_bins", [16, 255])
def test_long_columns_are_cut_as_by_the_slow_twin(web, max_bins, weighted):
    X = web[:800]
    weights = np.random.default_rng(0).random(len(X)) if weighted else None
    mapper = BinMapper.fit(X, max_bins=max_bins, weights=weights)
    for f, cuts in enumerate(mapper.cuts):
        np.testing.assert_array_equal(cuts, slow.cuts(X[:, f], max_bins, weights))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_columns_are_encoded_as_by_the_slow_twin(web, dtype):
    X = web[:1000].astype(dtype)
    mapper = BinMapper.fit(web)
    codes = mapper.encode(X)
    for f, cuts in enumerate(mapper.cuts):
        np.testing.assert_array_equal(codes[:, f], slow.codes(X[:, f], cuts))


@given(values=hostile_columns, others=hostile_columns)
@settings(deadline=None)
def test_categories_are_those_of_the_slow_twin(values, others):
    if np.isinf(values).any():
        with pytest.raises(ValueError, match=r"categorical feature 0 of X holds -?inf"):
            BinMapper.fit(column(values), categorical=[True])
        values = [value for value in values if not np.isinf(value)]
    mapper = BinMapper.fit(column(values), categorical=[True])
    categories = list(slow.masses(values))
    np.testing.assert_array_equal(mapper.categories[0], categories)
    for dtype in (np.float32, np.float64):
        for held in (values, others):
            np.testing.assert_array_equal(
                mapper.encode(column(held, dtype))[:, 0], slow.category_codes(held, categories)
            )
    assert mapper.n_bins[0] == mapper.missing_codes[0] == max(len(categories), 1)


# ------------------------------------------------------------------------------------------------------- laws


@given(values=hostile_columns, held=hostile_columns, max_bins=bins)
@settings(deadline=None)
def test_a_code_says_what_the_cuts_say(values, held, max_bins):
    mapper = BinMapper.fit(column(values), max_bins=max_bins)
    cuts = mapper.cuts[0]
    assert (np.diff(cuts) > 0).all()
    assert len(cuts) + 1 == mapper.n_bins[0] <= max_bins
    for dtype in (np.float32, np.float64):
        x = np.resize(np.asarray(held, dtype=dtype), 3000 if held else 0)
        codes = mapper.encode(column(x))[:, 0]
        expected = np.where(np.isnan(x), mapper.missing_codes[0], np.searchsorted(cuts, x.astype(float)))
        np.testing.assert_array_equal(codes, expected)
        for c, cut in enumerate(cuts):
            np.testing.assert_array_equal(codes <= c, x.astype(float) <= cut)


@given(cuts=st.sets(st.floats(allow_nan=False).map(lambda x: x + 0.0), max_size=30), held=hostile_columns)
@settings(deadline=None)
def test_float32_values_meet_double_cuts_exactly(cuts, held):
    mapper = BinMapper([sorted(cuts)])
    np.testing.assert_array_equal(
        mapper.encode(column(held, np.float32)), mapper.encode(column(held, np.float64))
    )


@given(values=hostile_columns, max_bins=bins, data=st.data())
@settings(deadline=None)
def test_the_order_of_rows_does_not_matter(values, max_bins, data):
    weights = np.array(data.draw(st.lists(st.floats(0, 10), min_size=len(values), max_size=len(values))))
    order = np.array(data.draw(st.permutations(range(len(values)))), dtype=np.intp)
    X = column(values)
    mapper = BinMapper.fit(X, max_bins=max_bins, weights=weights)
    assert same(mapper, BinMapper.fit(X[order], max_bins=max_bins, weights=weights[order]))
    assert same(mapper, BinMapper.fit(X, max_bins=max_bins, weights=weights[order], order=order))
    np.testing.assert_array_equal(mapper.encode(X, order=order), mapper.encode(X)[order])


@given(
    values=hostile_columns,
    max_bins=bins,
    weight=st.floats(0, 1e308, exclude_min=True),
    data=st.data(),
)
@settings(deadline=None)
def test_only_proportions_of_weights_matter(values, max_bins, weight, data):
    X, n = column(values), len(values)
    plain = BinMapper.fit(X, max_bins=max_bins)
    assert same(plain, BinMapper.fit(X, max_bins=max_bins, weights=np.full(n, weight)))
    weights = np.array(data.draw(st.lists(st.floats(0, 1e6), min_size=n, max_size=n)))
    if not weights.any() or weights[weights > 0].min(initial=1) > 1e-290:
        weighted = BinMapper.fit(X, max_bins=max_bins, weights=weights)
        assert same(weighted, BinMapper.fit(X, max_bins=max_bins, weights=2 * weights))


@given(values=hostile_columns, max_bins=bins, data=st.data())
@settings(deadline=None)
def test_integer_weights_are_repeated_rows(values, max_bins, data):
    n = len(values)
    times = np.array(data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)), dtype=int)
    X = column(values)
    weighted = BinMapper.fit(X, max_bins=max_bins, weights=times.astype(float))
    assert same(weighted, BinMapper.fit(np.repeat(X, times, axis=0), max_bins=max_bins))


def test_rows_of_weight_zero_are_encoded_but_not_cut():
    X = column([1, 2, 3, 4, np.nan, -np.inf])
    mapper = BinMapper.fit(X, weights=[1, 0, 1, 0, 0, 0])
    np.testing.assert_array_equal(mapper.cuts[0], [2.0])
    np.testing.assert_array_equal(mapper.encode(X)[:, 0], [0, 0, 1, 1, 2, 0])


@pytest.mark.parametrize("max_bins", [7, 64, 255])
def test_many_rows_are_cut_like_their_few_values(max_bins):
    """Rows and weighted values hold the same masses, but are parted in pieces of other sizes."""
    rng = np.random.default_rng(max_bins)
    n = 60_000
    X = np.column_stack(
        [
            np.round(rng.normal(size=n), 3),
            np.round(rng.lognormal(0, 2, n), 2),
            rng.zipf(1.3, n) % 5000,
            np.where(rng.random(n) < 0.3, -1.5, np.round(rng.random(n), 3)),
            1 + rng.integers(0, 2000, n) * 2.0**-23,
            np.round(rng.normal(size=n), 2) ** 9,
        ]
    ).astype(np.float32)
    X[0, 4], X[1, 4] = -1e30, 1e30
    for f, cuts in enumerate(BinMapper.fit(X, max_bins=max_bins).cuts):
        values, counts = np.unique(X[:, f], return_counts=True)
        few = BinMapper.fit(column(values), max_bins=max_bins, weights=counts)
        np.testing.assert_array_equal(cuts, few.cuts[0])


@pytest.mark.parametrize("n_distinct", [1, 2, 254, 255])
def test_few_distinct_values_get_a_bin_each(n_distinct):
    X = column(np.resize(np.arange(n_distinct) ** 2 - 50.0, 1000))
    mapper = BinMapper.fit(X)
    assert mapper.n_bins[0] == n_distinct
    np.testing.assert_array_equal(np.unique(mapper.encode(X)), np.arange(n_distinct))


@pytest.mark.parametrize("n", [256, 257, 1000, 4096, 10_007])
@pytest.mark.parametrize("max_bins", [2, 3, 64, 255])
def test_bins_of_light_values_are_equal(n, max_bins):
    X = column(np.random.default_rng(n).permutation(n))
    sizes = np.bincount(BinMapper.fit(X, max_bins=max_bins).encode(X)[:, 0])
    assert len(sizes) == max_bins
    assert sizes.max() - sizes.min() <= 1


def test_heavy_values_have_bins_of_their_own_and_starve_nobody():
    rng = np.random.default_rng(3)
    tails = np.concatenate([rng.uniform(-9, 9, 4000), rng.uniform(10, 11, 1000)])
    X = column(np.concatenate([np.zeros(5000), np.full(2000, 9.5), np.full(100, 20.0), tails]))
    codes = BinMapper.fit(X, max_bins=32).encode(X)[:, 0]
    sizes = np.bincount(codes)
    assert len(sizes) == 32
    for heavy in (0.0, 9.5):
        assert set(codes[X[:, 0] == heavy]).isdisjoint(codes[X[:, 0] != heavy])
    light = np.delete(sizes, codes[[0, 5000]])
    assert light.min() > 0.6 * light.mean()
    assert light.max() < 1.4 * light.mean()


def test_more_runs_than_bins():
    heavy = np.repeat(np.arange(0, 20, 2), np.arange(100, 110))
    X = column(np.concatenate([heavy, np.arange(1, 21, 2)]))
    mapper = BinMapper.fit(X, max_bins=12)
    np.testing.assert_array_equal(mapper.cuts[0], slow.cuts(X[:, 0], 12))
    codes = mapper.encode(X)[:, 0]
    np.testing.assert_array_equal(np.unique(codes), np.arange(12))
    assert np.bincount(codes).max() <= 110


def test_the_cut_is_the_middle_or_the_lower_neighbour():
    up = np.nextafter(1.0, 2.0)
    big = np.finfo(float).max
    values = [-np.inf, -big, 0.0, 5e-324, 1.0, up, 0.75 * big, big, np.inf]
    expected = [-np.inf, -big / 2, 0.0, 0.5, 1.0, 0.375 * big, 0.875 * big, big]
    np.testing.assert_array_equal(BinMapper.fit(column(values)).cuts[0], expected)


def test_what_has_no_value_has_one_bin():
    X = np.column_stack([np.full(5, np.nan), np.full(5, 3.0)])
    for mapper in (BinMapper.fit(X), BinMapper.fit(X[:0]), BinMapper.fit(X, weights=np.zeros(5))):
        np.testing.assert_array_equal(mapper.n_bins, [1, 1])
        np.testing.assert_array_equal(mapper.encode(X), [[1, 0]] * 5)
        np.testing.assert_array_equal(mapper.offsets, [0, 2, 4])
    assert BinMapper.fit(X, categorical=[True, False]).encode(X)[0].tolist() == [1, 0]
    assert BinMapper.fit(X[:, :0]).encode(X[:, :0]).shape == (5, 0)


# ----------------------------------------------------------------------------------- layouts, threads, memory


def layouts(X):
    wide = np.full((2 * X.shape[0], 3 * X.shape[1]), 9, dtype=X.dtype)
    wide[::2, ::3] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    backwards = X[::-1, ::-1].copy()
    yield from (np.asfortranarray(X), wide[::2, ::3], backwards[::-1, ::-1], frozen, X.astype(np.float64))
    yield np.asfortranarray(X.astype(np.float64))
    for csr in (sparse.csr_array(X), sparse.csr_matrix(X.astype(np.float64))):
        yield csr
        csr = csr.copy()
        csr.indices, csr.indptr = csr.indices.astype(np.int64), csr.indptr.astype(np.int64)
        csr.data[::5] = csr.data[::5]
        yield csr


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("max_bins", [100, None])
def test_layout_and_threads_do_not_matter(web, weighted, max_bins):
    rng = np.random.default_rng(1)
    order = rng.permutation(len(web))
    categorical = np.arange(web.shape[1]) == 2
    weights = rng.integers(0, 4, len(web)) / 3 if weighted else None
    arguments = {"max_bins": max_bins, "order": order, "weights": weights, "categorical": categorical}
    mapper = BinMapper.fit(web, **arguments)
    codes = mapper.encode(web, order=order)
    assert codes.flags.f_contiguous
    for X in (web, *layouts(web)):
        for n_threads in (1, 2, 3, 4):
            other = BinMapper.fit(X, n_threads=n_threads, **arguments)
            assert same(mapper, other)
            np.testing.assert_array_equal(mapper.categories[2], other.categories[2])
            np.testing.assert_array_equal(mapper.encode(X, order=order, n_threads=n_threads), codes)


def test_the_width_of_registers_does_not_matter():
    program = """if True:
        import numpy as np
        from ranktrees.binning.mapper import BinMapper

        rng = np.random.default_rng(0)
        X = np.exp(3 * rng.normal(size=(1234, 75))) * rng.choice([1, -1, 0, np.nan, np.inf], (1234, 75))
        X[:, ::3] = np.round(X[:, ::3])
        X[:, ::5] = np.clip(X[:, ::5], -20, 20)
        order, weights = rng.permutation(1234)[:1201], rng.integers(0, 5, 1234)
        for rows in (X, X.astype(np.float32)):
            for n_threads in (1, 3):
                for max_bins in (5, 100, 255):
                    mapper = BinMapper.fit(rows, max_bins=max_bins, n_threads=n_threads)
                    print(mapper.cuts, mapper.encode(rows, order, n_threads).tobytes().hex())
                print(BinMapper.fit(rows, weights=weights, n_threads=n_threads).cuts)
    """
    assert len(outputs_of(program)) == 1


def test_values_that_a_sample_has_not_are_cut_exactly():
    for outliers in ([-3.5, 1e-30], [1e30, -1e30, np.inf], np.arange(1.0, 9.0)):
        values = np.append(np.full(30_000, 2.0), outliers)
        for dtype in (np.float32, np.float64):
            held = np.random.default_rng(0).permutation(values.astype(dtype))
            np.testing.assert_array_equal(BinMapper.fit(column(held, dtype)).cuts[0], slow.cuts(held, 255))
            cuts = BinMapper.fit(column(held, dtype), max_bins=3).cuts[0]
            np.testing.assert_array_equal(cuts, slow.cuts(held, 3))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (5, 0), (1, 1), (700, 3)])
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_the_codes_of_a_feature_lie_side_by_side(make, shape):
    X = np.random.default_rng(0).integers(0, 3, shape).astype(np.float32)
    mapper = BinMapper([[0.5, 1.5]] * shape[1])
    codes = mapper.encode(make(X))
    assert codes.shape == shape
    assert codes.T.flags.c_contiguous
    np.testing.assert_array_equal(codes, X)


def test_explicit_zeros_and_missing_entries_of_sparse_rows():
    X = sparse.csr_array(
        (np.array([0.0, np.nan, 2.0, -0.0, -1.0]), np.array([0, 1, 0, 1, 2]), np.array([0, 2, 4, 5, 5])),
        shape=(4, 3),
    )
    mapper = BinMapper.fit(X, weights=[1.0, 2.0, 3.0, 0.0])
    assert same(mapper, BinMapper.fit(X.toarray(), weights=[1.0, 2.0, 3.0, 0.0]))
    np.testing.assert_array_equal(mapper.encode(X), mapper.encode(X.toarray()))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("most", [2, 4096])
@pytest.mark.parametrize("max_bins", [255, None])
def test_many_columns_are_taken_some_at_a_time(make, most, max_bins, monkeypatch, web):
    X = np.tile(web, (1, 5))
    mapper = BinMapper.fit(X, max_bins=max_bins)
    codes = mapper.encode(X)
    monkeypatch.setattr("ranktrees.binning.edges._MOST_COLUMNS", most)
    monkeypatch.setattr("ranktrees.binning.edges._VALUES_TO_CUT", 1)
    monkeypatch.setattr("ranktrees.binning.mapper._VALUES_TO_ENCODE", 5000)
    monkeypatch.setattr("ranktrees.binning.edges._FEWEST_COLUMNS", 3)
    monkeypatch.setattr("ranktrees.binning.mapper._FEATURES_TO_ENCODE", 17)
    for n_threads in (1, 2):
        assert same(mapper, BinMapper.fit(make(X), max_bins=max_bins, n_threads=n_threads))
        np.testing.assert_array_equal(mapper.encode(make(X), n_threads=n_threads), codes)


@pytest.mark.parametrize("size", [1, 2])
def test_the_last_columns_may_be_more_than_those_before(size, monkeypatch):
    X = np.random.default_rng(0).random((60, 136))
    expected = BinMapper.fit(X, max_bins=5)
    monkeypatch.setattr("ranktrees.binning.edges._VALUES_TO_CUT", 41 * 60 // size)  # 32 columns, then 40
    for mapper in over_ranks(X, [np.arange(rank, 60, size) for rank in range(size)], max_bins=5):
        assert same(mapper, expected)


def test_order_may_leave_rows_out_and_repeat_them(web):
    order = np.random.default_rng(2).integers(0, len(web), 700)
    mapper = BinMapper.fit(web[order])
    for X in (web, sparse.csr_array(web)):
        assert same(mapper, BinMapper.fit(X, order=order))
        np.testing.assert_array_equal(mapper.encode(X, order=order), mapper.encode(web[order]))


@given(
    columns=st.lists(hostile_columns, min_size=1, max_size=4),
    max_bins=bins,
    weighted=st.booleans(),
    ordered=st.booleans(),
    make=st.sampled_from([np.asarray, sparse.csr_array, lambda X: in_parts(X)]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None)
def test_drawn_rows_cut_the_features_they_tell_apart(columns, max_bins, weighted, ordered, make, seed):
    """All rows cut the others, and tell the categories."""
    rng = np.random.default_rng(seed)
    n_rows = max(1, *map(len, columns))
    kinds = np.column_stack([np.resize(np.asarray([*own, 0.0], np.float64), n_rows) for own in columns])
    X = np.column_stack([kinds, rng.integers(0, 5, n_rows)])
    categorical = np.arange(X.shape[1]) == len(columns)
    order = rng.integers(0, n_rows, n_rows + 3) if ordered else np.arange(n_rows)
    weights = rng.choice([0.0, 1.0, 5.0], len(order)) if weighted else None
    drawn = np.flatnonzero(rng.random(len(order)) < 0.4)
    mapper = BinMapper.fit(
        make(X),
        max_bins=max_bins,
        weights=weights,
        order=order if ordered else None,
        drawn=drawn,
        categorical=categorical,
        n_threads=2,
    )
    by_some, by_all = (
        BinMapper.fit(X[order[rows]], max_bins=max_bins, weights=None if weights is None else weights[rows])
        for rows in (drawn, np.arange(len(order)))
    )
    for some, every, cuts in zip(by_some.cuts, by_all.cuts, mapper.cuts[:-1], strict=False):
        assert cuts.tobytes() == (some if len(some) else every).tobytes()
    weighs = slice(None) if weights is None else weights > 0
    assert mapper.categories[-1].tolist() == np.unique(X[order[weighs], -1]).tolist()


def in_parts(X):
    rows = Spool()
    for part in np.array_split(X, min(3, len(X))):
        rows.append(part)
    return rows


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, in_parts])
def test_few_columns_among_many_are_cut_by_all_rows(make, monkeypatch):
    """Wherever they lie: columns between them are passed over."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 4, (300, 60)).astype(np.float32)
    drawn, rare = np.arange(0, 300, 7), [0, 13, 14, 31, 58]
    X[:, rare] = 0
    X[np.ix_([3, 100], rare)] = [[1], [-2]]
    expected = BinMapper.fit(X)
    for most in (4096, 5):
        monkeypatch.setattr("ranktrees.binning.edges._MOST_COLUMNS", most)
        monkeypatch.setattr("ranktrees.binning.edges._VALUES_TO_CUT", 1)
        assert same(BinMapper.fit(make(X), drawn=drawn), expected)


def test_little_memory_is_needed():
    X = np.random.default_rng(0).random((400_000, 100), dtype=np.float32)
    tracemalloc.start()
    try:
        mapper = BinMapper.fit(X)
        assert tracemalloc.get_traced_memory()[1] < X.nbytes / 4
        tracemalloc.reset_peak()
        codes = mapper.encode(X)
        assert tracemalloc.get_traced_memory()[1] < 1.1 * codes.nbytes
    finally:
        tracemalloc.stop()


def test_a_copy_is_the_same(web):
    mapper = BinMapper.fit(web, categorical=np.arange(web.shape[1]) == 2)
    copy = pickle.loads(pickle.dumps(mapper))
    assert same(mapper, copy)
    np.testing.assert_array_equal(mapper.encode(web), copy.encode(web))
    assert repr(copy) == f"<BinMapper of 8 features, {mapper.n_bins.sum()} bins>"


# ------------------------------------------------------------------------------------------------------ ranks


def dealt(n_rows, size, rng):
    """The rows of each rank: in any order, some ranks without any."""
    owner = rng.integers(0, size, n_rows) if rng.random() < 0.7 else np.full(n_rows, rng.integers(size))
    return [rng.permutation(np.flatnonzero(owner == rank)) for rank in range(size)]


def over_ranks(X, rows, weights=None, categorical=None, makes=(np.asarray,), **arguments):
    """The mapper of each rank, where rank r has the rows ``rows[r]``, as ``makes[r]`` makes them."""

    def fit(ranks):
        own, make = rows[ranks.rank], makes[ranks.rank % len(makes)]
        own_weights = None if weights is None else weights[own]
        return BinMapper.fit(
            make(X[own]), weights=own_weights, categorical=categorical, communicator=ranks, **arguments
        )

    return together(len(rows), fit)


def as_float64(X):
    return X.astype(np.float64)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("max_bins", [255, 7, None])
@pytest.mark.parametrize("weighted", [False, True])
def test_ranks_find_the_cuts_of_all_rows(web, size, max_bins, weighted, monkeypatch):
    """Dense and sparse, float32 and float64, some columns at a time."""
    rng = np.random.default_rng(size)
    weights = rng.lognormal(0, 3, len(web)) * (rng.random(len(web)) < 0.9) if weighted else None
    categorical = np.arange(web.shape[1]) == 2
    arguments = {"max_bins": max_bins, "weights": weights, "categorical": categorical}
    expected = BinMapper.fit(web, **arguments)
    for most in (4096, 3):
        monkeypatch.setattr("ranktrees.binning.edges._MOST_COLUMNS", most)
        for makes in ((np.asarray,), (np.asarray, sparse.csr_array, as_float64)):
            rows = dealt(len(web), size, rng)
            for mapper in over_ranks(web, rows, makes=makes, n_threads=2, **arguments):
                assert same(mapper, expected)
                assert mapper.categories[2].tobytes() == expected.categories[2].tobytes()


@given(
    values=hostile_columns,
    max_bins=st.one_of(bins, st.none()),
    size=st.integers(1, 4),
    weighted=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(deadline=None)
def test_it_does_not_matter_which_rank_has_which_rows(values, max_bins, size, weighted, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.asarray(values, np.float64), rng.permutation(values)])
    weights = rng.choice([0.0, 1e-9, 0.3, 1.0, 1e9], len(X)) if weighted else None
    expected = BinMapper.fit(X, max_bins=max_bins, weights=weights)
    for mapper in over_ranks(X, dealt(len(X), size, rng), max_bins=max_bins, weights=weights):
        assert same(mapper, expected)


@pytest.mark.parametrize("size", [2, 3])
def test_ranks_find_the_cuts_of_the_rows_drawn(web, size):
    rng = np.random.default_rng(size)
    web[:, 5] = np.arange(len(web)) == 1  # which is not drawn
    drawn = 2 * np.flatnonzero(rng.random(len(web) // 2) < 0.3)
    categorical = np.arange(web.shape[1]) == 2
    expected = BinMapper.fit(web, drawn=drawn, categorical=categorical)
    assert len(expected.cuts[5])

    def fit(ranks):
        own = rows[ranks.rank]
        own_drawn = np.flatnonzero(np.isin(own, drawn))
        return BinMapper.fit(web[own], drawn=own_drawn, categorical=categorical, communicator=ranks)

    for _ in range(3):
        rows = dealt(len(web), size, rng)
        for mapper in together(size, fit):
            assert same(mapper, expected)
            assert mapper.categories[2].tobytes() == expected.categories[2].tobytes()


def test_a_value_may_weigh_more_than_32_bits_hold():
    X = column(np.resize([1, 2, 3, 4, 4, 4, 4], 700))
    weights = np.resize([1.0, 3.0, 1.0, 0.5, 0.4, 0.3, 0.2], 700)
    expected = BinMapper.fit(X, max_bins=3, weights=weights)
    np.testing.assert_array_equal(expected.cuts[0], [1.5, 2.5])
    for mapper in over_ranks(X, [np.arange(0, 700, 2), np.arange(1, 700, 2)], max_bins=3, weights=weights):
        assert same(mapper, expected)


def test_where_some_ranks_have_weights_the_rows_of_others_weigh_one():
    X = column([1, 2, 3, 4, 5, 6])
    weights = [1.0, 1.0, 1.0, 0.25, 0.25, 0.25]

    def fit(ranks):
        own = slice(0, 3) if ranks.rank == 0 else slice(3, 6)
        own_weights = None if ranks.rank == 0 else weights[own]
        return BinMapper.fit(X[own], max_bins=3, weights=own_weights, communicator=ranks)

    expected = BinMapper.fit(X, max_bins=3, weights=weights)
    assert all(same(mapper, expected) for mapper in together(2, fit))


def test_what_all_ranks_have_together_is_refused_by_each():
    X = np.column_stack([np.zeros(300), np.arange(300.0)])
    seen = []

    def fit(ranks):
        with pytest.raises(ValueError, match="categorical feature 1 has 300 distinct values") as error:
            BinMapper.fit(X[ranks.rank :: 3], categorical=[False, True], communicator=ranks)
        seen.append(str(error.value))
        with pytest.raises(ValueError, match="X has 2 features on rank 0, but 1 on rank 2"):
            BinMapper.fit(X[:, : 1 if ranks.rank == 2 else 2], communicator=ranks)

    together(3, fit)
    assert len(seen) == 3


# ----------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_bins": 1}, "max_bins is 1; expected an integer from 2 to 255, or None"),
        ({"max_bins": 256}, "max_bins is 256"),
        ({"weights": [1.0]}, r"weights has shape \(1,\), but there are 300 rows"),
        ({"weights": -np.ones(300)}, "weights has negative"),
        ({"weights": np.full(300, np.nan)}, "weights has negative, infinite or missing values"),
        (
            {"categorical": [False, True]},
            "categorical feature 1 has 300 distinct values; .*at most 255: merge",
        ),
        ({"categorical": [True, False]}, "categorical feature 0 of X holds -inf; .* categorical_features"),
        ({"categorical": [True]}, r"categorical has shape \(1,\); expected \(2,\)"),
        ({"order": [0, 300]}, "order has rows 0 to 300, but X has rows 0 to 299"),
        ({"drawn": [-1, 7]}, "drawn has rows -1 to 7, but X has rows 0 to 299"),
    ],
)
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array])
def test_wrong_arguments_are_named(make, change, message):
    X = make(np.column_stack([np.where(np.arange(300) % 2, -np.inf, 0.0), np.arange(300.0)]))
    with pytest.raises(ValueError, match=message):
        BinMapper.fit(X, **change)


def test_wrong_rows_are_refused():
    X = np.eye(3)
    with pytest.raises(TypeError, match="int64; expected 2-dimensional float32 or float64"):
        BinMapper.fit(X.astype(np.int64))
    with pytest.raises(TypeError, match="csc matrix; expected csr"):
        BinMapper.fit(sparse.csc_array(X))
    with pytest.raises(ValueError, match="X has 2 features, but the cuts are for 3"):
        BinMapper.fit(X).encode(X[:, :2])
    twice = sparse.csr_array((np.ones(2), np.zeros(2, dtype=np.int32), np.array([0, 2])), shape=(1, 2))
    with pytest.raises(ValueError, match="not canonical"):
        BinMapper.fit(twice)
    outside = sparse.csr_array(X)
    outside.indices[1] = 7
    with pytest.raises(ValueError, match="column indices outside 0 to 2"):
        BinMapper.fit(outside)
