import pickle

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ranks import together

from ranktrees import RandomForestRanker, make_ranking
from ranktrees._core.growing import packing as kernels
from ranktrees.growing.packing import (
    Packing,
    coarse_cells,
    coarse_packing,
    counts_of,
    full_packing,
    share_bytes,
    step_of,
)
from ranktrees.support import parallel
from reference import growing as slow
from widths import outputs_of

# ---- which features share a byte --------------------------------------------------------------------


@given(st.lists(st.integers(1, 256) | st.sampled_from([2, 3, 16, 256]), max_size=60))
def test_every_feature_has_its_place_in_one_byte(radices):
    shared = share_bytes(np.array(radices, np.int64))
    assert sorted(k for members in shared for k in members) == list(range(len(radices)))
    assert all(np.prod([radices[k] for k in members]) <= 256 for members in shared)


@pytest.mark.parametrize(("radix", "n_features", "n_bytes"), [(2, 8, 1), (2, 9, 2), (16, 40, 20), (17, 3, 3)])
def test_no_more_bytes_than_needed(radix, n_features, n_bytes):
    assert len(share_bytes(np.full(n_features, radix))) == n_bytes


# ---- bins to cells ----------------------------------------------------------------------------------


def fewest(counts, share):
    """The least number of cells of neighbours that hold at most a share each, or one bin."""
    best = [0]
    for stop in range(1, len(counts) + 1):
        starts = [i for i in range(stop) if i == stop - 1 or sum(counts[i:stop]) <= share]
        best.append(1 + min(best[i] for i in starts))
    return best[-1]


counts_of_bins = st.lists(
    st.integers(0, 20) | st.sampled_from([0, 0, 0, 1, 1, 500, 10_000]), min_size=1, max_size=60
)


@settings(deadline=None)
@example(counts=[0, 0, 0], missing=0, most=2)
@given(counts=counts_of_bins, missing=st.sampled_from([0, 3, 2000]), most=st.sampled_from([2, 3, 15]))
def test_cells_rise_and_hold_a_share_of_the_rows(counts, missing, most):
    counts, n_rows = np.array(counts), sum(counts) + missing
    cells = coarse_cells(counts, n_rows, most)
    assert cells.tolist() == slow.coarse_cells(counts, n_rows, most).tolist()
    assert len(cells) == len(counts)
    if len(counts) <= most:
        assert cells.tolist() == list(range(len(counts)))
        return
    assert cells[0] == 0
    assert set(np.diff(cells).tolist()) <= {0, 1}
    assert cells[-1] < most
    share = n_rows / most
    share = min(share, counts[counts <= share].sum() / 4) or share
    while fewest(counts.tolist(), share) > most:
        share *= 1.05
    mass, size = np.bincount(cells, counts), np.bincount(cells)
    assert ((mass <= share) | (size == 1)).all()  # so a bin of more than the share is alone


def test_as_few_cells_as_the_share_allows():
    counts = np.random.default_rng(0).integers(0, 30, 200)
    cells = coarse_cells(counts, counts.sum(), 15)
    assert 8 <= cells[-1] + 1 <= 15
    assert np.bincount(cells, counts).max() <= 1.5 * counts.sum() / 15


def test_a_flat_feature_has_cells_of_one_size():
    assert coarse_cells(np.full(240, 3), 720, 15).tolist() == np.repeat(np.arange(15), 16).tolist()


@pytest.mark.parametrize("n_heavy", [100, 1000, 100_000])
def test_rows_unlike_most_have_cells_of_their_own(n_heavy):
    counts = np.ones(61, int)
    counts[20] = n_heavy
    cells = coarse_cells(counts, counts.sum(), 15)
    assert (cells == cells[20]).sum() == 1
    assert len(set(cells)) >= 5


def test_a_heavy_bin_is_alone():
    counts = np.ones(100, int)
    counts[[30, 31, 70]] = 500
    cells = coarse_cells(counts, counts.sum(), 15)
    assert [(cells == cells[heavy]).sum() for heavy in (30, 31, 70)] == [1, 1, 1]


@pytest.mark.parametrize("n_rows", [1, 7, 8, 1001])
def test_counts_codes(n_rows):
    codes = slow.random_codes(np.random.default_rng(n_rows), n_rows, [255, 1, 7, 40], 0.3)
    for n_threads in (1, 3):
        counts = np.full((4, 256), -1)
        kernels.count_codes(codes, counts, n_threads)
        expected = [np.bincount(column, minlength=256).tolist() for column in codes.T]
        assert counts.tolist() == expected


# ---- cells to bytes and back ------------------------------------------------------------------------


def unpacked(packing):
    """(n_rows, n_features): where in a line each row has its cells; -1 for features that are not packed."""
    places = np.full((len(packing.bytes), len(packing.places)), -1)
    for digit in packing.digits:
        cells = packing.bytes[:, digit["byte"]] // digit["stride"] % digit["radix"]
        last = cells == digit["radix"] - 1
        places[:, digit["feature"]] = np.where(last, digit["last"], digit["first"] + cells)
    return places


def check_layout(packing, features):
    digits = packing.digits
    assert sorted(digits["feature"].tolist()) == sorted(features)
    assert packing.n_bytes == packing.bytes.shape[1] == len(packing.first_digit) - 1
    assert len(packing.room) >= packing.rows.size + 8  # may be read behind the last
    for byte in range(packing.n_bytes):
        own = digits[packing.first_digit[byte] : packing.first_digit[byte + 1]]
        assert (own["byte"] == byte).all()
        assert own["stride"].tolist() == np.cumprod([1, *own["radix"][:-1]]).tolist()
        assert own["radix"].prod() <= 256


def some_features(rng, n_features):
    features = np.flatnonzero(rng.random(n_features) < 0.8)
    return features if len(features) else np.array([n_features - 1])


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_rows=st.sampled_from([1, 2, 50, 511, 512, 513, 1100]),
    n_bins=st.lists(st.sampled_from([1, 2, 3, 15, 16, 17, 40, 254, 255]), min_size=1, max_size=30),
    missing=st.sampled_from([0.0, 0.2]),
    n_threads=st.integers(1, 3),
)
def test_bytes_tell_every_features_cell(seed, n_rows, n_bins, missing, n_threads):
    rng = np.random.default_rng(seed)
    codes, mapper = slow.random_codes(rng, n_rows, n_bins, missing), slow.mapper_of(n_bins)
    features = some_features(rng, len(n_bins))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel, "VALUES_PER_THREAD", 1)
        full, coarse = (make(codes, mapper, features, n_threads) for make in (full_packing, coarse_packing))
    check_layout(full, features)
    assert full.n_cells == mapper.offsets[-1]
    assert (unpacked(full)[:, features] == mapper.offsets[features] + codes[:, features]).all()
    for feature in features:
        own_bytes = full.bytes[:, full.byte_of[feature]]
        assert (full.cell_of[feature][own_bytes] == codes[:, feature]).all()
    check_layout(coarse, features)
    assert coarse.n_cells == 16 * len(features)
    assert coarse.places[features].tolist() == list(range(0, 16 * len(features), 16))
    cells = slow.cells_of(codes, mapper)
    for feature in features:
        own = cells[feature][codes[:, feature]]
        expected = coarse.places[feature] + np.where(own < 0, 15, own)
        assert (unpacked(coarse)[:, feature] == expected).all()


def test_the_width_of_registers_does_not_matter():
    program = """if True:
        import numpy as np
        from ranktrees.growing.packing import coarse_packing, full_packing
        from reference import growing as slow

        n_bins = 2 * [1, 2, 3, 15, 16, 31, 32, 33, 34, 40, 254, 255]  # more than sixteen bytes a row
        mapper = slow.mapper_of(n_bins)
        for n_rows in (1, 511, 512, 513, 1300):
            codes = slow.random_codes(np.random.default_rng(n_rows), n_rows, n_bins, 0.1)
            for make in (full_packing, coarse_packing):
                print(make(codes, mapper, np.arange(len(n_bins))).bytes.tobytes().hex())
    """
    assert len(outputs_of(program)) == 1


def lines_of(n_bytes, step):
    """Lines of the cache that rows of some bytes lie in, by where in a line they begin."""
    begins = np.arange(64) * step
    return (begins + n_bytes - 1) // 64 - begins // 64 + 1


def test_rows_that_nearly_fill_lines_of_the_cache_lie_in_as_few_as_they_can():
    for n_bytes in range(1, 2000):
        step = step_of(n_bytes)
        assert n_bytes <= step <= n_bytes * 9 / 8
        if step > n_bytes:
            assert (lines_of(n_bytes, step) == -(-n_bytes // 64)).all()
            saved = lines_of(n_bytes, n_bytes).mean() - lines_of(n_bytes, step).mean()
            assert saved > (step - n_bytes) / 64  # what rows that are read in order take more


@pytest.mark.parametrize("n_features", [5, 7, 8, 15, 61, 62])
def test_nothing_but_zeros_lies_between_rows(n_features, monkeypatch):
    rng = np.random.default_rng(n_features)
    codes, mapper = slow.random_codes(rng, 700, [255] * n_features, 0.1), slow.mapper_of([255] * n_features)
    features = np.arange(n_features)
    assert full_packing(codes, mapper, features).room.ctypes.data % 64 == 0
    monkeypatch.setattr("ranktrees.growing.packing.aligned", lambda n_bytes: np.full(n_bytes, 255, np.uint8))
    packing = full_packing(codes, mapper, features, n_threads=2)
    check_layout(packing, features)
    assert packing.rows.shape == (700, step_of(n_features))
    assert not packing.rows[:, n_features:].any()
    for feature in features:
        own_bytes = packing.rows[:, packing.byte_of[feature]]
        assert (packing.cell_of[feature][own_bytes] == codes[:, feature]).all()


@pytest.mark.parametrize("make", [full_packing, coarse_packing])
def test_ranks_have_the_cells_of_all_rows(make):
    rng = np.random.default_rng(0)
    n_bins = [1, 2, 15, 16, 40, 255]
    codes, mapper = slow.random_codes(rng, 600, n_bins, 0.01), slow.mapper_of(n_bins)
    features = np.arange(len(n_bins))
    whole = make(codes, mapper, features)
    bounds = [0, 200, 200, 203, 600]

    def pack(ranks):
        own = codes[bounds[ranks.rank] : bounds[ranks.rank + 1]]
        own = np.asfortranarray(own)
        return make(own, mapper, features, counts=counts_of(own, 1, ranks))

    parts = together(4, pack)
    assert all((part.digits == whole.digits).all() for part in parts)
    np.testing.assert_array_equal(np.concatenate([part.bytes for part in parts]), whole.bytes)


def test_a_copy_in_another_process_has_the_spare_bytes():
    codes, mapper = slow.random_codes(np.random.default_rng(0), 9, [255, 3, 40]), slow.mapper_of([255, 3, 40])
    packing = full_packing(codes, mapper, np.arange(3))
    copy = pickle.loads(pickle.dumps(packing))
    np.testing.assert_array_equal(copy.bytes, packing.bytes)
    assert len(copy.room) == len(packing.room) == copy.rows.size + 8


@pytest.mark.parametrize("n_features", [15, 61])
def test_small_leaves_find_their_codes_between_unused_bytes(n_features, monkeypatch):
    X, y, qid = make_ranking(
        30, rows_per_query=10, n_features=n_features, random_state=0, return_X_y_qid=True
    )
    forest = RandomForestRanker(3, min_samples_leaf=1, random_state=0)
    assert step_of(n_features) > n_features
    padded = forest.fit(X, y, qid=qid).ensemble_
    monkeypatch.setattr("ranktrees.growing.packing.step_of", lambda n_bytes: n_bytes)
    assert forest.fit(X, y, qid=qid).ensemble_ == padded


def test_no_features():
    nowhere = np.zeros(2, int)
    packing = Packing(np.zeros((3, 2), np.uint8, "F"), np.arange(0), [], nowhere, nowhere, 0)
    assert (packing.n_bytes, packing.bytes.shape) == (0, (3, 0))
