"""LETOR files that are drawn at random are read as a slow reader reads them, and no other memory is touched.

``tests/fuzz/letor.py`` does the same with as many files as one likes.
"""

import re

import pytest

from fuzz import letor


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    try:
        return letor.compiled(tmp_path_factory.mktemp("fuzz"))
    except letor.NoCompilerError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("n_files", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_kernels_and_slow_reader_agree(program, n_files):
    files, malformed, rows, pairs = map(int, re.findall(r"\d+", letor.read(program, 1, 0, n_files)))
    assert files == n_files
    assert n_files / 2 < malformed < n_files * 0.8
    assert pairs > rows > n_files / 2


@pytest.mark.parametrize("n_files", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_load_letor_and_slow_reader_agree(program, n_files):
    kinds = letor.load_and_compare(program, 1, 0, n_files)
    assert kinds.total() == n_files
    assert set(kinds) == {"malformed", "empty", "wide", "read", "read, by scikit-learn, too"}


def test_a_file_depends_on_its_number_only(program):
    assert list(letor.drawn(program, 3, 5, 2)) == list(letor.drawn(program, 3, 0, 7))[5:]
