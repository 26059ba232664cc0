"""Joint columns of codes say what each feature's own column says, and lines are the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranks import together

from ranktrees._core.growing.histogram import Builder
from ranktrees._core.support.dtypes import BIN, LEAF
from ranktrees.binning.codes import Codes, codes_of_all, joined
from ranktrees.growing.packing import coarse_packing, counts_of, full_packing
from reference import growing as slow


def rare_codes(rng, n_rows, n_bins, rates):
    """Codes that mostly are the usual code of their feature: (codes, usual)."""
    usual = rng.integers(0, n_bins)
    others = rng.integers(0, n_bins, (n_rows, len(n_bins)))
    return np.where(rng.random(others.shape) < rates, others, usual).astype(np.uint8), usual.astype(np.uint8)


def join(codes, usual, lone=None):
    """`joined`, with a few entries of usual codes among the others."""
    rng = np.random.default_rng(0)
    differ = (codes != usual) | (rng.random(codes.shape) < 0.1)
    rows = [np.flatnonzero(own) for own in differ.T]
    values = [own[some] for own, some in zip(codes.T, rows, strict=True)]
    first = np.concatenate([[0], np.cumsum([len(some) for some in rows])]).astype(np.int64)
    rows = np.concatenate([*rows, np.empty(0, int)]).astype(np.uint32)
    values = np.concatenate([*values, np.empty(0, int)]).astype(np.uint8)
    lone = np.full(len(usual), 255, np.int32) if lone is None else lone
    return joined(len(codes), (first, rows, values), usual, lone)


cases = {
    "seed": st.integers(0, 2**32 - 1),
    "n_rows": st.sampled_from([1, 7, 300, 2000]),
    "n_bins": st.lists(st.sampled_from([1, 2, 2, 3, 20, 255]), min_size=1, max_size=60),
    "rate": st.sampled_from([0.0, 0.01, 0.2, 1.0]),
}


@given(**cases)
def test_each_feature_is_read_as_it_was(seed, n_rows, n_bins, rate):
    rng, n_bins = np.random.default_rng(seed), np.array(n_bins)
    codes, usual = rare_codes(rng, n_rows, n_bins, rate * rng.random(len(n_bins)))
    found = join(codes, usual)
    assert found.shape == codes.shape
    assert found.columns.shape[1] <= len(n_bins)
    for own, expected in zip(found, codes.T, strict=True):
        np.testing.assert_array_equal(own, expected)
    shared = np.bincount(found.column_of, minlength=found.columns.shape[1])[found.column_of] > 1
    np.testing.assert_array_equal(found.joint_of >= 0, shared)  # alone, a feature is read without a table
    np.testing.assert_array_equal(counts_of(found), [np.bincount(own, minlength=256) for own in codes.T])


def test_as_many_features_join_as_there_are_combinations():
    exclusive = np.eye(255, dtype=np.uint8)  # each row has one of 255 flags: 256 values with "none"
    assert join(exclusive, np.zeros(255, np.uint8)).columns.shape == (255, 1)
    independent = np.array([[i >> k & 1 for k in range(8)] for i in range(256)], np.uint8)
    assert join(independent, np.zeros(8, np.uint8)).columns.shape == (256, 1)
    assert join(np.eye(600, dtype=np.uint8), np.zeros(600, np.uint8)).columns.shape == (600, 3)


def test_features_that_lack_values_and_categories_are_alone():
    codes = np.zeros((40, 4), np.uint8)
    codes[[1, 2, 3, 4], [0, 1, 2, 3]] = 1, 2, 1, 1
    found = join(codes, np.zeros(4, np.uint8), np.array([2, 2, -1, 2], np.int32))
    assert (found.joint_of >= 0).tolist() == [True, False, False, True]
    assert found.columns.shape == (40, 3)


def line_of(codes, mapper, features, make, bins, order, lanes, n_threads):
    """(packing, the line of some rows). Places of a line that no cell has hold 7."""
    packing, leaves = make(codes, mapper, features), np.zeros(1, LEAF)
    leaves["stop"] = len(order)
    line = np.full((1, packing.n_cells * lanes), 7, np.int64)
    builder = Builder(
        packing.bytes, packing.digits, packing.first_digit, packing.n_cells, order,
        slow.packed(bins, 32)[order], n_threads, packing.joint,
    )  # fmt: skip
    builder.attach(leaves, line, lanes)
    builder.build(np.zeros(1, np.int32), 32, False, n_threads)
    return packing, line.reshape(-1, lanes)


@given(
    **cases,
    lanes=st.sampled_from([1, 2]),
    n_threads=st.integers(1, 3),
    make=st.sampled_from([full_packing, coarse_packing]),
)
def test_lines_are_those_of_columns_apart(seed, n_rows, n_bins, rate, lanes, n_threads, make):
    rng, n_bins = np.random.default_rng(seed), np.array(n_bins)
    codes, usual = rare_codes(rng, n_rows, n_bins, rate * rng.random(len(n_bins)))
    mapper, features = slow.mapper_of(n_bins), np.flatnonzero(rng.random(len(n_bins)) < 0.8)
    bins = np.ones(n_rows, BIN)
    bins["gradient"] = rng.integers(-(2**20), 2**20, n_rows)
    order = np.flatnonzero(rng.random(n_rows) < rng.random()).astype(np.uint32)
    rest = make, bins, order, lanes, n_threads
    apart, expected = line_of(slow.readable(codes), mapper, features, *rest)
    packing, line = line_of(join(codes, usual), mapper, features, *rest)
    np.testing.assert_array_equal(packing.places, apart.places)
    for feature in features:
        of_rows = [each.cell_of[feature][each.bytes[:, each.byte_of[feature]]] for each in (packing, apart)]
        np.testing.assert_array_equal(*of_rows)
        used = apart.places[feature] + np.unique(of_rows[1])
        np.testing.assert_array_equal(line[used], expected[used])


def test_arrays_are_codes_of_columns_apart():
    codes = Codes.of(np.array([[1, 2], [3, 4]], np.uint8))
    assert Codes.of(codes) is codes
    assert codes.shape == (2, 2)
    assert [own.tolist() for own in codes] == [[1, 3], [2, 4]]


@pytest.mark.parametrize("n_rows", [0, 3])
def test_no_features_are_codes_too(n_rows):
    codes = join(np.empty((n_rows, 0), np.uint8), np.empty(0, np.uint8))
    assert codes.shape == (n_rows, 0)


# ---- codes of all ranks ------------------------------------------------------------------------------------


@given(**cases, n_ranks=st.integers(1, 4))
def test_codes_of_all_ranks_are_joined(seed, n_rows, n_bins, rate, n_ranks):
    """Ranks may have no rows, and may join other features."""
    rng = np.random.default_rng(seed)
    codes, usual = rare_codes(rng, n_rows, np.array(n_bins), rate * rng.random(len(n_bins)))
    lone = np.where(rng.random(len(n_bins)) < 0.2, -1, 255).astype(np.int32)
    dealt = rng.integers(0, n_ranks, n_rows)

    def gather(ranks):
        own = np.flatnonzero(dealt == ranks.rank)
        of_rank = join(codes[own], usual, lone) if len(own) else np.asfortranarray(codes[own])
        return codes_of_all(of_rank, own, n_rows, ranks)

    for found in together(n_ranks, gather):
        np.testing.assert_array_equal(np.array(list(Codes.of(found))), codes.T)


def test_sparse_codes_of_ranks_stay_joint():
    rng = np.random.default_rng(0)
    codes, usual = rare_codes(rng, 3000, np.full(80, 2), 0.01)
    found = together(
        2,
        lambda ranks: codes_of_all(
            join(codes[ranks.rank :: 2], usual), np.arange(ranks.rank, 3000, 2), 3000, ranks
        ),
    )
    for of_rank in found:
        assert of_rank.columns.shape[1] < 12
