"""What is drawn at random is read as a slow reader or another library reads it, or refused in words.

The scripts in ``tests/fuzz`` do the same with as much as one likes.
"""

import re

import pytest

from fuzz import (
    catboost_files,
    checkpoints,
    fuzzing,
    greetings,
    letor,
    lightgbm_files,
    native_files,
    records,
    xgboost_files,
)


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


# For each fuzzer: how many inputs, how many where there is time, and of what kinds some are among them.
FUZZERS = {
    native_files: (200, 20_000, {"refused", "read"}),
    lightgbm_files: (40, 2_000, {"refused", "read"}),
    xgboost_files: (80, 800, {"refused", "read"}),
    catboost_files: (80, 4_000, {"refused", "read"}),
    checkpoints: (20, 800, {"refused", "the same bytes"}),
    records: (80, 6_000, {"refused", "refused in part", "scored"}),
    greetings: (12, 300, {"a caller", "a hub"}),
}


@pytest.mark.parametrize("module", FUZZERS, ids=lambda module: module.__name__)
def test_damage_is_refused_or_does_no_harm(module):
    n_inputs, _, kinds = FUZZERS[module]
    unjudged = {"judged": False} if hasattr(module, "Judge") else {}
    with module.fuzzer(**unjudged) as fuzz:
        found = fuzzing.run(fuzz, 1, n_inputs=n_inputs, limit=module.LIMIT)
    assert found.total() == n_inputs
    assert kinds <= set(found)


@pytest.mark.slow
@pytest.mark.parametrize("module", FUZZERS, ids=lambda module: module.__name__)
def test_more_damage_is_refused_or_does_no_harm(module):
    _, n_inputs, kinds = FUZZERS[module]
    with module.fuzzer() as fuzz:
        found = fuzzing.run(fuzz, 2, n_inputs=n_inputs, limit=module.LIMIT)
    assert kinds <= set(found)
    assert not hasattr(module, "Judge") or any("too" in kind for kind in found)


def test_an_input_without_end_or_with_too_much_memory_is_a_fault():
    def endless(rng):
        while True:
            pass

    with pytest.raises(TimeoutError, match="an input took more than"):
        fuzzing.run(endless, 0, n_inputs=1, limit=0.05)
    with pytest.raises(MemoryError):
        fuzzing.run(lambda rng: len(bytes(2 * fuzzing.BYTES)), 0, n_inputs=1)
