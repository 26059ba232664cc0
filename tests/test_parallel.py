import ctypes
import io
import os
import platform
import re
import signal
import subprocess
import sys
import threading
import warnings
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from ranktrees import HistGBRTRegressor, LambdaMARTRanker, _core, dump_letor, load_letor, make_ranking
from ranktrees._core.objectives.dealing import Deal
from ranktrees._core.support.dtypes import SPLIT
from ranktrees._core.support.threads import max_threads, room_for_each
from ranktrees.support import parallel
from ranktrees.support.cached import cached_property
from ranktrees.support.parallel import effective_n_threads

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@pytest.fixture
def processors(monkeypatch):
    """A process that may use eight processors, all of OpenMP's."""
    monkeypatch.setattr(parallel, "_n_processors", lambda: 8)
    monkeypatch.setattr(parallel, "max_threads", lambda: 8)


@pytest.fixture
def state(monkeypatch):
    """What the process knows of its threads, put back in the end."""
    monkeypatch.setattr(parallel, "_state", {"threads_started": False, "forked_from_threads": False})
    return parallel._state


@pytest.mark.parametrize(
    ("n_jobs", "expected"),
    [
        (None, 8),
        (-1, 8),
        (-2, 7),
        (-8, 1),
        (-9, 1),
        (-100, 1),
        (1, 1),
        (3, 3),
        (8, 8),
        (12, 12),
        (32, 32),
        (33, 32),
    ],
)
def test_number_of_threads(processors, state, n_jobs, expected):
    assert effective_n_threads(n_jobs) == expected
    assert effective_n_threads(None if n_jobs is None else np.int64(n_jobs)) == expected
    assert state["threads_started"] == (expected > 1)


@pytest.mark.parametrize("n_jobs", [0, True, False, 1.0, "2", np.float64(2), [1]])
def test_what_is_no_number_of_threads(n_jobs):
    with pytest.raises(ValueError, match="n_jobs="):
        effective_n_threads(n_jobs)


def test_processors_bound_what_openmp_would_start(monkeypatch, state):
    monkeypatch.setattr(parallel, "_n_processors", lambda: 3)
    monkeypatch.setattr(parallel, "max_threads", lambda: 8)
    assert effective_n_threads(None) == 3
    assert effective_n_threads(6) == 6


def test_processors_are_counted_again_where_they_changed(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert parallel._n_processors() == joblib.cpu_count() == 1
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT")
    assert parallel._n_processors() == joblib.cpu_count()
    monkeypatch.setattr(joblib, "cpu_count", pytest.fail)
    parallel._n_processors()


def test_threadpoolctl_is_obeyed(state):
    with threadpool_limits(1, user_api="openmp"):
        assert max_threads() == 1
        assert effective_n_threads(None) == effective_n_threads(-1) == 1
        assert effective_n_threads(2) == 2  # asked for by number


@pytest.mark.parametrize("asked", ["1", "3"])
def test_environment_is_obeyed(asked):
    code = "from ranktrees._core.support.threads import max_threads; print(max_threads())"
    environment = {**os.environ, "OMP_NUM_THREADS": asked}
    found = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == [asked]


def test_threads_are_woken_for_enough_work_only(monkeypatch):
    monkeypatch.setattr(parallel, "VALUES_PER_THREAD", 100)
    found = [parallel.threads_for(4, n_values) for n_values in (0, 99, 100, 250, 399, 10**15)]
    assert found == [1, 1, 2, 3, 4, 4]
    assert parallel.threads_for(1, np.int64(10**15)) == 1
    assert type(parallel.threads_for(4, np.int64(250))) is int


@pytest.mark.parametrize(
    ("asked", "spins"),
    [({}, _core.SPINS), ({"GOMP_SPINCOUNT": "77"}, "77"), ({"OMP_WAIT_POLICY": "passive"}, "0")],
)
def test_threads_that_wait_sleep_soon_or_when_they_are_told_to(asked, spins):
    own = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    code = "import os, ranktrees; print(os.environ.get('GOMP_SPINCOUNT'))"
    environment = own | asked | {"OMP_DISPLAY_ENV": "verbose"}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    told = re.findall(r"GOMP_SPINCOUNT = '(\d+)'", ran.stderr)
    if not told:
        pytest.skip("the threads are not those of GNU's OpenMP")
    assert spins in told  # other packages bring OpenMP of their own
    assert ran.stdout.strip() == asked.get("GOMP_SPINCOUNT", "None")


def in_child(work):
    """What ``work()`` returns in a forked child, as text."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on forks of processes with threads
        child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that waits for threads that it does not have waits for ever
        try:
            answer = str(work())
        except BaseException as error:
            answer = repr(error)
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def counts_and_warnings():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        counts = [effective_n_threads(n_jobs) for n_jobs in (1, 4, None, -1, 2)]
    return counts, [f"{warning.category.__name__}: {warning.message}"[:35] for warning in caught]


@needs_fork
@pytest.mark.parametrize("n_jobs", [1, 4])
def test_a_child_uses_all_threads(processors, state, n_jobs):
    assert effective_n_threads(n_jobs) == n_jobs
    assert in_child(counts_and_warnings) == str(([1, 4, 8, 8, 2], []))


@pytest.fixture(params=["refused", "unknown"])
def unended(request, monkeypatch):
    """Threads that cannot be ended before a fork."""
    monkeypatch.setattr(parallel, "_pause_threads", None if request.param == "unknown" else lambda kind: -1)


@needs_fork
@pytest.mark.usefixtures("unended")
def test_a_child_of_a_process_whose_threads_run_uses_one(processors, state):
    assert effective_n_threads(4) == 4
    answer = in_child(counts_and_warnings)
    assert answer == str(([1, 1, 1, 1, 1], ["RuntimeWarning: This process was fo"]))
    assert counts_and_warnings() == ([1, 4, 8, 8, 2], [])  # the parent is as it was


@needs_fork
@pytest.mark.usefixtures("unended")
def test_a_child_of_a_process_that_began_no_threads_uses_all(processors, state):
    assert effective_n_threads(1) == 1
    assert in_child(counts_and_warnings) == str(([1, 4, 8, 8, 2], []))


@needs_fork
@pytest.mark.usefixtures("unended")
def test_a_grandchild_remembers(processors, state):
    effective_n_threads(4)
    answer = in_child(lambda: in_child(lambda: counts_and_warnings()[0]))
    assert answer == str([1, 1, 1, 1, 1])


class Computed:
    def __init__(self, compute):
        self.compute = compute

    @cached_property
    def value(self):
        return self.compute()


@needs_fork
def test_a_child_does_not_wait_for_what_another_thread_computes():
    begun, go_on = threading.Event(), threading.Event()
    slow = Computed(lambda: (begun.set(), go_on.wait()))
    other = threading.Thread(target=lambda: slow.value)
    other.start()
    begun.wait()
    try:
        assert in_child(lambda: Computed(lambda: 7).value) == "7"
    finally:
        go_on.set()
        other.join()
    assert slow.value is slow.value


@needs_fork
def test_a_child_trains_the_same_model():
    X = np.random.default_rng(0).normal(size=(200, 3))

    def digest():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return HistGBRTRegressor(max_iter=2, random_state=0, n_jobs=2).fit(X, X[:, 0]).ensemble_.digest()

    here = digest()
    assert in_child(digest) == here == digest()


@needs_fork
@pytest.mark.parametrize("way", ["predict", "leaves"])
def test_a_child_scores_where_its_parent_has_scored(way):
    X = np.random.default_rng(0).normal(size=(2000, 3))
    ensemble = HistGBRTRegressor(max_iter=2, random_state=0, n_jobs=1).fit(X, X[:, 0]).ensemble_

    def scored():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return getattr(ensemble, way)(X, n_jobs=2).sum()

    here = scored()
    assert in_child(scored) == str(here)


THREADS_OF_ANOTHER_LIBRARY = """
import os, signal
import lightgbm
from ranktrees import HistGBRTRegressor, make_ranking

X, y = make_ranking(20, random_state=0, return_X_y_qid=True)[:2]
lightgbm.train({"num_threads": 2, "verbose": -1}, lightgbm.Dataset(X, y), 1)
if os.fork() == 0:
    signal.alarm(60)
    HistGBRTRegressor(max_iter=2, n_jobs=2).fit(X, y)
    lightgbm.train({"num_threads": 2, "verbose": -1}, lightgbm.Dataset(X, y), 1)
    os._exit(0)
print(os.wait()[1])
"""


@needs_fork
def test_a_child_does_not_wait_for_threads_of_another_library():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", THREADS_OF_ANOTHER_LIBRARY],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert (done.stderr, done.stdout) == ("", "0\n")


def test_no_more_threads_are_started_than_can_be(processors, state):
    X = np.random.default_rng(0).normal(size=(6000, 3))
    ensemble = HistGBRTRegressor(max_iter=2, random_state=0).fit(X, X[:, 0]).ensemble_
    assert np.array_equal(ensemble.predict(X, n_jobs=10**6), ensemble.predict(X))


FLUSH_TO_ZERO, UPWARD = 0x8040, 0x4000  # of MXCSR, which glibc's fenv_t has last


@contextmanager
def controlled_floats():
    """A function that sets bits of the register that says how this thread computes; reset afterwards."""
    libm = ctypes.CDLL("libm.so.6")
    before = ctypes.create_string_buffer(32)
    libm.fegetenv(before)

    def control(bits):
        changed = bytearray(before.raw)
        changed[28:] = (int.from_bytes(changed[28:], "little") | bits).to_bytes(4, "little")
        libm.fesetenv(bytes(changed))

    yield control
    libm.fesetenv(before)


needs_register = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="the register and the record are those of x86-64 and glibc",
)


def digests_of_small_hessians(n_jobs):
    """Of a model whose hessians get so small that flushing them to zero shows, and of new leaves for it."""
    X, y, qid = make_ranking(100, rows_per_query=20, random_state=0, return_X_y_qid=True)
    rules = {"max_iter": 40, "learning_rate": 1.0, "l2_regularization": 0.0, "random_state": 0}
    model = LambdaMARTRanker(**rules, n_jobs=n_jobs).fit(X, y, qid=qid)
    refitted = model.refit_leaves(X[:1000], y[:1000], qid=qid[:1000])
    return model.ensemble_.digest(), refitted.ensemble_.digest()


@needs_register
@pytest.mark.parametrize("bits", [FLUSH_TO_ZERO, UPWARD])
def test_models_do_not_depend_on_how_others_want_to_compute(every_thread, bits):
    expected, least = digests_of_small_hessians(1), np.array([2.0**-1022, 1.0])
    with controlled_floats() as control:
        control(bits)
        others = least / 3
        assert digests_of_small_hessians(1) == digests_of_small_hessians(2) == expected
        assert np.array_equal(least / 3, others)  # as it was
        control(0)
        assert not np.array_equal(least / 3, others)


@needs_register
@pytest.mark.parametrize("bits", [FLUSH_TO_ZERO, UPWARD])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_files_do_not_depend_on_how_others_want_to_compute(bits, dtype):
    least = np.finfo(dtype).smallest_subnormal
    X = np.array([[least, 3 * least, 0.1, 2 / 3, 1e-7]], dtype)
    content, rounded = io.BytesIO(), io.BytesIO()
    dump_letor(X, [1], content, qid=[1])
    content.write(b"1 qid:1 1:0.12345678901234567890123\n")
    text = content.getvalue()
    expected = load_letor(io.BytesIO(text), dtype=dtype).data
    with controlled_floats() as control:
        control(bits)
        dump_letor(X, [1], rounded, qid=[1])
        read = load_letor(io.BytesIO(text), dtype=dtype).data
        sparse = load_letor(io.BytesIO(text), dtype=dtype, sparse=True).data
    assert text.startswith(rounded.getvalue())
    assert read.tobytes() == sparse.toarray().tobytes() == expected.tobytes()
    assert expected[0].tobytes() == X[0].tobytes()


THREADS_OF_OTHERS = """
from test_parallel import FLUSH_TO_ZERO, controlled_floats, digests_of_small_hessians
import numpy as np
from ranktrees import make_ranking, HistGBRTRegressor
from ranktrees.support import parallel

parallel.VALUES_PER_THREAD = 1
X, y = make_ranking(20, random_state=0, return_X_y_qid=True)[:2]
model = HistGBRTRegressor(max_iter=1, n_jobs=1).fit(X, y)
with controlled_floats() as control:
    control(FLUSH_TO_ZERO)
    model.ensemble_.predict(X, n_jobs=3)  # begins threads, which compute as this one does
print(digests_of_small_hessians(3) == digests_of_small_hessians(1))
"""


@needs_register
def test_models_do_not_depend_on_how_threads_computed_when_they_began():
    done = subprocess.run(
        [sys.executable, "-c", THREADS_OF_OTHERS],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        capture_output=True,
        text=True,
    )
    assert (done.stderr, done.stdout) == ("", "True\n")


def test_a_rank_leaves_processors_to_others(monkeypatch, state):
    monkeypatch.setattr(parallel, "_counted", lambda affinity, limit: 8)
    monkeypatch.setattr(parallel, "max_threads", lambda: 8)
    monkeypatch.setattr(parallel, "_part", Fraction(1))
    for part, n_threads in [(Fraction(1, 3), 2), (Fraction(1, 100), 1), (Fraction(1), 8)]:
        parallel.leave_processors(part)
        assert effective_n_threads(None) == effective_n_threads(-1) == n_threads
        assert effective_n_threads(4) == 4


@pytest.mark.parametrize(
    ("affinities", "part"),
    [
        ([{0, 1, 2, 3}], 1),
        ([{0, 1, 2, 3}] * 3, Fraction(1, 3)),
        ([{0, 1}, {2, 3}], 1),
        ([{0, 1}, {0, 1, 2, 3}], Fraction(1, 2)),
        ([{0, 1, 2, 3}, {0, 1}], Fraction(3, 4)),
    ],
)
def test_a_processor_is_divided_among_those_that_may_run_on_it(affinities, part):
    assert parallel.processors_for(affinities[0], affinities) == part


@pytest.mark.parametrize("dtype", [np.uint8, np.float64, SPLIT])
@pytest.mark.parametrize("apart", [128, 1 << 16])
def test_threads_have_zeros_far_from_each_other(dtype, apart):
    room = room_for_each(3, 5, dtype, apart)
    assert room.flags.c_contiguous
    assert not room.view(np.uint8).any()
    assert (room.shape[1] - 5) * room.itemsize >= apart
    assert room.ctypes.data - room.base.ctypes.data >= apart
    assert {row.ctypes.data % 128 for row in room} == {0}


@given(st.lists(st.integers(1, 40), max_size=30), st.integers(1, 5), st.lists(st.integers(0, 4), max_size=60))
def test_each_query_is_dealt_once_whoever_asks(lengths, n_threads, asking):
    offsets = np.cumsum([0, *lengths])
    deal = Deal(offsets, n_threads)
    for _ in range(2):
        deal.begin()
        dealt = [deal.take(thread % n_threads) for thread in asking]
        dealt += [deal.take(0) for _ in lengths]
        assert sorted(q for q in dealt if q >= 0) == list(range(len(lengths)))
        assert deal.take(n_threads - 1) == -1


def test_a_thread_gets_queries_of_its_own_rows_first_and_of_these_the_long_ones():
    deal = Deal(np.cumsum([0, 1, 1, 200, 8, 10, 20, 20]), 2)
    deal.begin()
    assert [deal.take(1) for _ in range(7)] == [3, 4, 5, 6, 2, 0, 1]
    deal = Deal(np.cumsum([0] + 20 * [1] + [90, 1, 200]), 1)
    deal.begin()
    assert [deal.take(0) for _ in range(23)] == [22, 20, *range(20), 21]
