"""Ranks as processes: what they exchange, what drivers let them do, and how they fail."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections import deque

import joblib
import numpy as np
import pandas as pd
import pytest
from leftovers import nothing_left
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

pytest.importorskip("mpi4py")

import ranktrees.mpi
from ranktrees import HistGBRTRegressor, LambdaMARTRanker, QueryKFold, RandomForestRanker, make_ranking
from ranktrees._core.support.threads import max_threads
from ranktrees.datasets import Batches
from ranktrees.growing import searching
from ranktrees.mpi.driver import Driver
from ranktrees.mpi.gang import Gang, Work
from ranktrees.mpi.launching import default_launcher
from ranktrees.mpi.parcels import Receiver, Sender, pack, unpack
from ranktrees.processes.communicator import RankError, active, active_driver, training_with
from ranktrees.support import parallel

SIZE = 3


@pytest.fixture(scope="module")
def three_ranks():
    with nothing_left():
        yield {"n_ranks": SIZE, "timeout": 20}
        ranktrees.mpi.shutdown()


@pytest.fixture
def backend(three_ranks):
    """A driver's backend, active."""
    with joblib.parallel_config("mpi", **three_ranks):
        yield active_driver()


def on_each(backend, function, *args):
    return backend.run_rows(function, [None] * SIZE, *args)


# What the ranks say to each other


def put_together(ranks, _, n):
    own = np.arange(n) + ranks.rank
    counts = [n // 2, 0, n - n // 2]
    return (
        ranks.allreduce(own.copy()).tolist(),
        ranks.allreduce(own.copy(), "max").tolist(),
        ranks.allreduce(own.astype(float), "min").tolist(),
        ranks.reduce_scatter(own, counts).tolist(),
        ranks.stack(own.reshape(n, 1)).tolist(),
        ranks.stack(np.rec.fromarrays([own, own / 2])).tolist(),
        ranks.allgather("x" * n * ranks.rank),
        ranks.alltoall([(ranks.rank, other, "y" * n) for other in range(ranks.size)]),
        ranks.bcast(ranks.rank, root=2),
        (ranks.stack(own[:9], True).tolist(), ranks.allreduce(own.copy()).tolist()),
        (ranks.stack(own[:9], True).tolist(), ranks.reduce_scatter(own, counts).tolist()),
        ranks.allgather(n),
        ranks.gather_in_turn((f"{ranks.rank} {k}" + "z" * n, root) for k, root in enumerate([0, 2, 2, 0, 1])),
    )


@pytest.mark.parametrize("n", [0, 1, 10, 1_000, 100_000])
def test_short_and_long_exchanges(backend, n):
    numbers = np.arange(n)
    total = (3 * numbers + 3).tolist()
    for rank, got in enumerate(on_each(backend, put_together, n)):
        assert got == (
            total,
            (numbers + 2).tolist(),
            numbers.tolist(),
            [total[: n // 2], [], total[n // 2 :]][rank],
            [[[number + other] for number in numbers.tolist()] for other in range(SIZE)],
            [[(number, number / 2) for number in range(other, other + n)] for other in range(SIZE)],
            ["", "x" * n, "x" * 2 * n],
            [(other, rank, "y" * n) for other in range(SIZE)],
            2,
            (said := [(numbers[:9] + other).tolist() for other in range(SIZE)], total),
            (said, [total[: n // 2], [], total[n // 2 :]][rank]),
            [n] * SIZE,
            [[f"{other} {k}" + "z" * n for other in range(SIZE)] for k in [(0, 3), (4,), (1, 2)][rank]],
        )


class Counting:
    """An MPI communicator that counts the bytes it is given, by what the call needs at least."""

    def __init__(self, comm):
        self.comm, self.n_bytes, self.n_meetings = comm, 0.0, 0

    def __getattr__(self, name):
        others = self.comm.Get_size() - 1
        part = others / self.comm.Get_size()
        own = self.comm.Get_rank()

        def call(*given, **named):
            first, *rest = given or [None]
            if name == "Iallgather":
                self.n_meetings += 1
            elif name == "Iallreduce":
                self.n_bytes += 2 * part * rest[0].nbytes
            elif name == "Ireduce_scatter":
                self.n_bytes += part * first.nbytes
            elif name == "Iallgatherv":
                self.n_bytes += others * first[0].nbytes
            elif name == "Ialltoallv":
                self.n_bytes += first[0].nbytes - first[1][own]
            return getattr(self.comm, name)(*given, **named)

        return call


def counted(ranks, _):
    ranks = type(ranks)(ranks._comm, ranks.timeout, ranks.end)
    ranks._comm = Counting(ranks._comm)
    ranks.allreduce(np.zeros(5_000, np.int64))
    ranks.reduce_scatter(np.zeros(3_001, np.int64), [1_000, 2_001, 0])
    ranks.alltoall(["a" * 2_000 * (other + ranks.rank) for other in range(ranks.size)])
    ranks.allgather("b" * 4_000)
    ranks.stack(np.zeros((2, 500), np.int64), 1)
    ranks.allreduce(np.zeros(2_000, np.int64))
    return dict(ranks.traffic), ranks._comm.n_bytes, ranks._comm.n_meetings, len(ranks._meeting.own)


def test_counted_bytes_are_those_that_mpi_is_given(backend):
    for traffic, n_bytes, n_meetings, n_each in on_each(backend, counted):
        assert traffic["bytes"] == pytest.approx(n_bytes)
        assert traffic["messages"] == traffic["agreements"] == n_meetings == 6
        assert traffic["agreement bytes"] == 6 * n_each * (SIZE - 1)


def summed_after_saying(ranks, _, n_said):
    ranks.traffic.clear()
    ranks.stack(np.zeros(n_said, np.int64), 3)
    sums = [ranks.allreduce(np.arange(2_000), met=True)[3] for _ in range(2)]
    sums.append(ranks.reduce_scatter(np.arange(3 * SIZE), [3] * SIZE, met=True)[0])
    return ranks.traffic["agreements"], sums


@pytest.mark.parametrize("n_said", [4, 4_000])
def test_ranks_meet_once_for_what_they_say_and_the_sums_that_follow(backend, n_said):
    for rank, (n_meetings, sums) in enumerate(on_each(backend, summed_after_saying, n_said)):
        assert (n_meetings, sums) == (1, [3 * SIZE, 3 * SIZE, 3 * rank * SIZE])


def meetings_of(ranks, _, search):
    """Of a tree, and its messages: those of eleven trees less those of one."""
    X, y, qid = make_ranking(20, random_state=ranks.rank, return_X_y_qid=True)
    of_fits = []
    for max_iter in (1, 11):
        ranks.traffic.clear()
        model = HistGBRTRegressor(max_iter=max_iter, split_search=search, max_leaf_nodes=31, random_state=0)
        with training_with(ranks):
            model.fit(X, y, qid=[f"{ranks.rank} {query}" for query in qid])
        of_fits.append([ranks.traffic["agreements"], ranks.traffic["messages"]])
    return np.subtract(*of_fits[::-1]) / 10


@pytest.mark.parametrize("search", ["full", "coarse_to_fine"])
def test_ranks_meet_once_for_what_belongs_together(backend, search):
    """For how large sums are, and the sums; in a coarse search for all leaves that are split together."""
    for n_meetings, n_messages in on_each(backend, meetings_of, search):
        assert 10 < n_meetings < (0.8 if search == "full" else 0.65) * n_messages


@pytest.mark.mpi_slow
def test_counted_bytes_are_those_on_the_wire(tmp_path):
    done = program(
        tmp_path,
        """
        import ranktrees.mpi
        from pathlib import Path
        from ranktrees.processes.communicator import active

        def sent():
            return int(Path("/proc/net/dev").read_text().split("lo:")[1].split()[8])

        with joblib.parallel_config("mpi", timeout=20):
            ranks = active()
        array = np.zeros(100_000, np.int64)
        for exchange in (
            lambda: ranks.allreduce(array),
            lambda: ranks.reduce_scatter(array, [40_000, 60_000, 0]),
            lambda: ranks.allgather(bytes(500_000)),
            lambda: ranks.alltoall([bytes(200_000)] * 3),
        ):
            exchange()
            ranks.allgather(0)
            ranks.traffic.clear()
            time.sleep(0.1)
            before = sent()
            time.sleep(0.1)
            for _ in range(50):
                exchange()
            time.sleep(0.2)
            measured = sent() - before
            time.sleep(0.1)
            counted = ranks.traffic["bytes"] + ranks.traffic["agreement bytes"]
            counted = sum(ranks.allgather(counted))
            assert abs(measured - counted) < 0.03 * counted, (measured, counted)
        """,
        3,
        MPIR_CVAR_NOLOCAL="1",  # MPICH: messages even where ranks share memory
        MPIR_CVAR_CH4_NETMOD="ofi",
        FI_PROVIDER="tcp",
    )
    assert done.returncode == 0, done.stderr


def error_of(ranks, call):
    try:
        call()
    except RankError as error:
        return str(error)


def disagree(ranks, _, what):
    ranks.at("tree 3" if what != "step" or ranks.rank < 2 else "tree 4")
    if what == "call" and ranks.rank == 1:
        error = error_of(ranks, lambda: ranks.allgather(0))
    else:
        error = error_of(
            ranks, lambda: ranks.allreduce(np.zeros(8 + (what == "size") * ranks.rank, np.int64))
        )
    ranks.at("after")
    return error, ranks.allgather(ranks.rank)


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("step", r"rank 0 is at 'tree 3' \(exchange \d+: sum of 8 values\), rank 2 is at 'tree 4'"),
        ("call", r"rank 0 is at 'tree 3' .*, rank 1 is at 'tree 3' \(exchange \d+: allgather"),
        (
            "size",
            r"sum of 8 values\), rank 1 is at 'tree 3' .* sum of 9 values\), rank 2 .* sum of 10 values",
        ),
    ],
)
def test_ranks_that_disagree_all_hear_of_it(backend, what, said):
    for error, after in on_each(backend, disagree, what):
        with pytest.raises(RankError, match=said):
            raise RankError(error)
        assert after == [0, 1, 2]


def boom(ranks, _, text, when):
    ranks.at("tree 3")
    if when == "late":
        ranks.allgather(0)
    if ranks.rank == 1:
        raise ValueError(text)
    if when == "early":
        with pytest.raises(RankError) as caught:
            ranks.allreduce(np.zeros(1, np.int64))
        assert str(caught.value) == f"rank 1 failed at tree 3: ValueError: {text}"
        raise caught.value


@pytest.mark.parametrize("text", ["boom", "boo" + "m" * 10_000], ids=["short", "long"])
@pytest.mark.parametrize("when", ["early", "late"])
def test_an_error_on_a_rank_is_raised_by_the_driver(backend, text, when):
    with pytest.raises(ValueError, match="boom") as caught:
        on_each(backend, boom, text, when)
    assert str(caught.value) == text
    assert "On rank 1:" in caught.value.__notes__[0]
    assert "raise ValueError(text)" in caught.value.__notes__[0]
    assert on_each(backend, lambda ranks, _: ranks.allgather(ranks.rank)) == [[0, 1, 2]] * SIZE


def test_a_rank_that_exits_while_others_train(backend):
    with pytest.raises(RankError, match=r"rank 2 failed.*SystemExit: 3"):
        on_each(backend, lambda ranks, _: sys.exit(3) if ranks.rank == 2 else ranks.allgather(0))


def test_processors_are_divided_among_ranks(backend):
    n = on_each(backend, lambda ranks, _: parallel._n_processors())
    assert n == [max(1, joblib.cpu_count() // SIZE)] * SIZE


# What a driver has them do


def test_a_shard_for_each(backend):
    assert backend.n_ranks == SIZE
    assert backend.run_rows(lambda ranks, shard, k: k * shard, "abc", 2) == ["aa", "bb", "cc"]
    with pytest.raises(ValueError, match="2 shards for 3 ranks"):
        backend.run_rows(print, [1, 2])


def test_a_search_on_ranks_is_the_search(backend):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))  # more than a megabyte
    y = X @ rng.normal(size=10) + rng.normal(size=len(X))
    search = GridSearchCV(Ridge(), {"alpha": [0.1, 1, 10, 1000]}, cv=3).fit(X, y)
    alone = GridSearchCV(Ridge(), {"alpha": [0.1, 1, 10, 1000]}, cv=3, n_jobs=1).fit(X, y)
    assert search.best_params_ == alone.best_params_
    assert np.array_equal(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])


def who(seconds=0.0):
    time.sleep(seconds)
    return os.getpid(), active().size


def test_tasks_run_on_as_many_ranks_as_asked_for(backend):
    calls = [joblib.delayed(who)(0.02) for _ in range(12)]
    everywhere = dict(joblib.Parallel(batch_size=1)(calls))
    assert len(everywhere) == SIZE
    assert set(everywhere.values()) == {1}
    assert len(dict(joblib.Parallel(n_jobs=2, batch_size=1)(calls))) == 2
    assert dict(joblib.Parallel(n_jobs=1)(calls)) == {os.getpid(): 1}
    assert len(list(joblib.Parallel(return_as="generator")(calls))) == 12


def fails(i):
    if i == 3:
        raise KeyError(i)
    return i


class NeverPickled:
    def __reduce__(self):
        raise TypeError("never pickled")


class NeverUnpickledError(Exception):
    def __init__(self, one, two):
        super().__init__(one)


def never_unpickled():
    raise NeverUnpickledError(1, 2)


def interrupted():
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("calls", "error"),
    [
        ([joblib.delayed(fails)(i) for i in range(9)], KeyError),
        ([joblib.delayed(fails)(NeverPickled())] * 9, TypeError),
        ([joblib.delayed(lambda: NeverPickled())()] * 9, TypeError),
        ([joblib.delayed(never_unpickled)()] * 9, RankError),
        ([joblib.delayed(sys.exit)(0)] * 9, RankError),
        ([joblib.delayed(interrupted)()] * 9, KeyboardInterrupt),
    ],
)
def test_an_error_of_a_task_is_raised_and_the_ranks_go_on(backend, calls, error):
    before = backend.gang
    with pytest.raises(error):
        joblib.Parallel()(calls)
    assert joblib.Parallel()(joblib.delayed(abs)(-i) for i in range(5)) == [0, 1, 2, 3, 4]
    assert backend.gang is before


def outside(i):
    return i * i, os.getpid()


def within(door):
    """Two tasks that enter the back end by one of joblib's doors, as ``Parallel`` of no other arguments."""

    @contextlib.contextmanager
    def enter(**options):
        if door == "name":
            yield joblib.Parallel(2, backend="mpi", **options)
        elif door == "instance":
            yield joblib.Parallel(2, backend=Driver(SIZE, timeout=20), **options)
        else:
            with getattr(joblib, door)("mpi", n_jobs=2):
                yield joblib.Parallel(**options)

    return enter


DOORS = ["name", "instance", "parallel_config", "parallel_backend"]


@pytest.mark.parametrize("return_as", ["list", "generator", "generator_unordered"])
@pytest.mark.parametrize("door", DOORS)
def test_every_door_of_joblib(three_ranks, door, return_as):
    with within(door)(return_as=return_as) as parallel:
        found, where = zip(*parallel(joblib.delayed(outside)(i) for i in range(9)), strict=True)
    assert sorted(found) == [i * i for i in range(9)]
    assert return_as == "generator_unordered" or list(found) == sorted(found)
    assert os.getpid() not in where
    assert len(set(where)) <= 2


def kinds_inside(depth):
    """The back ends that a task gets that asks for ranks itself, in all ways, and the tasks inside it."""
    parallel = joblib.Parallel(2, backend="mpi")
    with joblib.parallel_config("mpi", n_ranks=2):
        kinds = [
            (type(one._backend).__name__, one._backend.nesting_level) for one in (parallel, joblib.Parallel())
        ]
        alone = active().alone and active_driver() is None
    deeper = parallel(joblib.delayed(kinds_inside)(depth - 1) for _ in range(2)) if depth else []
    return kinds, alone, deeper


@pytest.mark.parametrize("door", ["name", "parallel_config"])
def test_tasks_that_ask_for_ranks_themselves_get_threads(three_ranks, door):
    with within(door)() as parallel:
        found = parallel(joblib.delayed(kinds_inside)(1) for _ in range(2))
    innermost = ([("ThreadingBackend", 2)] * 2, True, [])
    assert found == [([("ThreadingBackend", 1)] * 2, True, [innermost] * 2)] * 2


@pytest.mark.parametrize("n_threads", [1, 3])
def test_threads_of_ranks_can_be_limited(three_ranks, n_threads):
    with joblib.parallel_config("mpi", inner_max_num_threads=n_threads, **three_ranks):
        assert set(joblib.Parallel()(joblib.delayed(max_threads)() for _ in range(6))) == {n_threads}
        assert on_each(active_driver(), lambda ranks, _: max_threads()) == [n_threads] * SIZE


def size_of_a_child():
    code = "import ranktrees.mpi; print(ranktrees.mpi.size())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_processes_that_tasks_start_are_no_ranks(backend):
    assert joblib.Parallel(2)(joblib.delayed(size_of_a_child)() for _ in range(2)) == ["1\n"] * 2


def test_gangs_and_tasks_of_several_threads_do_not_mix(backend, three_ranks):
    def many(ranks, _, k):
        return sum(int(ranks.allreduce(np.array([k + i]))[0]) for i in range(20))

    sums, tasks = {}, []

    def train(k):
        with joblib.parallel_config("mpi", **three_ranks):
            sums[k] = on_each(active_driver(), many, k)
            tasks.extend(joblib.Parallel()(joblib.delayed(abs)(-i) for i in range(5)))

    threads = [threading.Thread(target=train, args=[k]) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == {k: [3 * (20 * k + 190)] * SIZE for k in range(6)}
    assert sorted(tasks) == sorted(6 * [0, 1, 2, 3, 4])


def where(array):
    return os.getpid(), array.ctypes.data, array.flags.writeable


def test_big_arrays_are_sent_once_to_each_rank(backend):
    big = np.arange(300_000.0)
    places = joblib.Parallel(batch_size=1)(joblib.delayed(where)(big) for _ in range(12))
    copy = big.copy()
    places += joblib.Parallel(batch_size=1)(joblib.delayed(where)(copy) for _ in range(12))
    assert len(set(places)) <= SIZE
    copy[0] = 1
    assert set(joblib.Parallel(batch_size=1)([joblib.delayed(np.sum)(copy)])) == {copy.sum()}


def test_an_array_that_changes_between_tasks_is_another(backend):
    array = np.zeros(200_000)

    def tasks():
        for value in range(6):
            array[:] = value
            yield joblib.delayed(np.min)(array)

    found = joblib.Parallel(batch_size=1, pre_dispatch=1)(tasks())
    assert all(value >= submitted for submitted, value in enumerate(found))  # sent when a rank is free
    assert found[-1] == 5


def test_an_array_that_is_written_to_while_it_is_sent_is_sent_again():
    array, wire = np.zeros(200_000), Wire()
    sender, receiver = Sender(wire, cache_bytes=1 << 30), Receiver(wire)
    wire.send_bytes = lambda message: (wire.messages.append(bytes(message)), array.fill(1.0))
    sender.send("task", pack(array))
    receiver.receive()
    array[:] = 0.0
    del wire.send_bytes
    sender.send("task", pack(array))
    assert not unpack(*receiver.receive()[1:]).any()
    assert len(receiver._held) == 1


def test_what_tasks_are_given_is_let_go(backend):
    given = []

    def tasks():
        for value in range(8):
            array = np.full(200_000, float(value))
            given.append(weakref.ref(array))
            yield joblib.delayed(np.mean)(array)
            assert sum(ref() is not None for ref in given) <= 2 + SIZE  # of which some are on their way

    joblib.Parallel(batch_size=1, pre_dispatch=1)(tasks())
    last = time.monotonic() + 30
    while any(ref() is not None for ref in given) and time.monotonic() < last:
        time.sleep(0.01)  # threads that wait for ranks let go, too
    assert not any(ref() is not None for ref in given)


FORKED = """
import os, sys, joblib, ranktrees.mpi
with joblib.parallel_config("mpi", n_ranks=2, timeout=60):
    before = joblib.Parallel()(joblib.delayed(abs)(-i) for i in range(4))
    child = os.fork()
    if not child:
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert joblib.Parallel()(joblib.delayed(abs)(-i) for i in range(4)) == before
print("the ranks go on")
"""


def test_a_forked_child_that_ends_leaves_the_ranks_of_its_parent():
    with nothing_left():
        ended = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", FORKED], capture_output=True, text=True, timeout=120
        )
    assert ended.stdout == "the ranks go on\n", ended.stderr


class Wire:
    """Both ends of a connection."""

    def __init__(self):
        self.messages, self.n_bytes = [], 0

    def send(self, message):
        self.messages.append(message)

    def send_bytes(self, message):
        self.n_bytes += len(message)
        self.messages.append(bytes(message))

    def recv(self):
        return self.messages.pop(0)

    recv_bytes = recv


def test_a_rank_keeps_no_more_arrays_than_it_may():
    wire = Wire()
    arrays = [np.full(200_000, float(i)) for i in range(5)]
    sender, receiver = Sender(wire, cache_bytes=2 * arrays[0].nbytes), Receiver(wire)

    def pass_on(value):
        before = wire.n_bytes
        sender.send("task", pack(value))
        label, data, buffers = receiver.receive()
        got = unpack(data, buffers)
        assert label == "task"
        assert all(np.array_equal(a, b) for a, b in zip(got, value, strict=True))
        return (wire.n_bytes - before) // arrays[0].nbytes

    assert [pass_on(arrays[i : i + 1]) for i in (0, 1, 0, 2, 0, 1)] == [1, 1, 0, 1, 0, 1]
    assert len(receiver._held) == 2
    assert pass_on(arrays) == 3  # all that a task needs is there, and goes when the next comes
    assert pass_on([arrays[0], arrays[0], np.arange(3)]) == 0
    assert len(receiver._held) == 2


# Ways to die


def kill_one(ranks, _, number, rank):
    ranks.at("tree 7")
    ranks.allgather(0)
    if ranks.rank == rank:
        os.kill(os.getpid(), number)
    for _ in range(1_000):
        ranks.allgather(0)


def test_a_rank_that_dies_or_is_stuck_is_an_error_and_the_next_fit_has_new_ranks():
    with nothing_left(), joblib.parallel_config("mpi", n_ranks=2, timeout=1):
        with pytest.raises(RankError, match=r"rank [01] has died"):  # mpiexec ends the other one, too
            active_driver().run_rows(kill_one, [None] * 2, signal.SIGKILL, 1)
        with pytest.raises(RankError, match="rank 1 did not reach 'tree 7' within 1 s"):
            active_driver().run_rows(kill_one, [None] * 2, signal.SIGSTOP, 1)
        assert active_driver().run_rows(lambda ranks, _: ranks.allgather(0), [None] * 2) == [[0, 0]] * 2
        active_driver().gang.close()


class GoneLink:
    """A connection to a rank that has died."""

    def ask(self, *_):
        raise OSError

    stop = ask


def test_rows_that_were_given_to_a_rank_are_answered_even_if_another_dies_before_it_wakes():
    gang = object.__new__(Gang)  # without ranks
    gang._condition, gang._queue, gang._error = threading.Condition(), deque(), None
    gang._links, gang._working = {0: GoneLink(), 1: GoneLink()}, set()
    work = Work(["for 0", "for 1"], 2, for_all=True)
    gang._enqueue(work)
    thread = threading.Thread(target=gang._serve, args=[0], daemon=True)
    thread.start()
    while work.n_present < 1:
        time.sleep(0.001)
    with gang._condition:
        assert gang._next(1)[1] == "for 1"
        gang._take_no_more(RankError("rank 1 has died"))
    with pytest.raises(RankError, match="rank 1 has died"):
        work.futures[0].result(timeout=10)
    thread.join()


def test_an_answer_that_is_too_large_is_an_error_and_not_a_wait_for_ever():
    class FullLink(GoneLink):
        def ask(self, *_):
            raise MemoryError("no room for the answer")

    gang = object.__new__(Gang)  # without ranks
    gang._condition, gang._queue, gang._error = threading.Condition(), deque(), None
    gang._links, gang._working, gang._end_processes = {0: FullLink()}, set(), lambda *_: None
    work = Work(["for 0"], 1, for_all=True)
    gang._enqueue(work)
    threading.Thread(target=gang._serve, args=[0], daemon=True).start()
    with pytest.raises(RankError, match="the answer of rank 0 was lost: MemoryError: no room"):
        work.futures[0].result(timeout=10)


@pytest.mark.mpi_slow
def test_a_task_that_is_stuck_is_an_error():
    with (
        nothing_left(),
        joblib.parallel_config("mpi", n_ranks=2, timeout=1),
        pytest.raises(RankError, match=r"rank [01] has given no sign of life for 3.5 s"),
    ):
        joblib.Parallel()(joblib.delayed(signal.raise_signal)(signal.SIGSTOP) for _ in range(2))


def program(path, source, n_ranks=2, **environment):
    """Run a program: on ranks, or for None by itself."""
    file = path / "program.py"
    file.write_text("import joblib, os, signal, sys, time\nimport numpy as np\n" + textwrap.dedent(source))
    with nothing_left():
        return subprocess.run(
            [*(default_launcher(n_ranks) if n_ranks else ()), sys.executable, str(file)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment,
            capture_output=True,
            text=True,
            timeout=60,
        )


def test_one_program_on_all_ranks(tmp_path):
    done = program(
        tmp_path,
        """
        import ranktrees.mpi as mpi
        from ranktrees.processes.communicator import RankError, active
        from sklearn.linear_model import Ridge
        from sklearn.model_selection import cross_validate

        with joblib.parallel_config("mpi", timeout=20):
            ranks = active()
            assert (ranks.rank, ranks.size, ranks.timeout) == (mpi.rank(), mpi.size(), 20)
            with ranks:
                total = ranks.allreduce(np.array([ranks.rank]))
            for n_jobs in (None, 1, 2):
                try:
                    cross_validate(Ridge(), np.ones((9, 1)), np.ones(9), n_jobs=n_jobs)
                except RuntimeError as error:
                    assert "Run it without mpiexec" in str(error)
                else:
                    raise AssertionError("not refused")
            try:
                joblib.Parallel(2, backend="mpi")(joblib.delayed(abs)(-i) for i in range(3))
            except RuntimeError as error:
                assert "Run it without mpiexec" in str(error)
            else:
                raise AssertionError("not refused")
            threads = joblib.Parallel(2, prefer="threads")
            assert threads(joblib.delayed(abs)(-i) for i in range(3)) == [0, 1, 2]
            try:
                with ranks:
                    ranks.at("tree 1")
                    if ranks.rank == 1:
                        raise ValueError("boom")
                    ranks.allgather(0)
            except (RankError, ValueError) as error:
                errors = ranks.allgather(repr(error))
        assert active().alone
        try:
            joblib.parallel_config("mpi", n_ranks=2)
        except ValueError as error:
            assert "here 2 ranks run" in str(error)
        sys.stdout.write(f"{total[0]} {errors}\\n")
        """,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == 2 * (
        "1 [\"RankError('rank 1 failed at tree 1: ValueError: boom')\", \"ValueError('boom')\"]\n"
    )


def test_processes_that_a_rank_of_a_program_starts_are_no_ranks(tmp_path):
    """loky's read ``mpi`` with the task. One that is forked would take the place of its parent."""
    done = program(
        tmp_path,
        """
        import subprocess
        import ranktrees.mpi as mpi
        from ranktrees import HistGBRTRegressor

        X = np.random.default_rng(mpi.rank()).normal(size=(100, 3))
        y = X.sum(axis=1)

        def trained(_):
            return mpi.rank(), mpi.size(), HistGBRTRegressor(max_iter=2, random_state=0).fit(X, y).n_iter_

        with joblib.parallel_config("mpi", timeout=20):
            if mpi.rank() == 1:
                assert joblib.Parallel(2, backend="loky")(joblib.delayed(trained)(i) for i in range(2)) == [
                    (0, 1, 2)
                ] * 2
                code = "from mpi4py import MPI; print(MPI.COMM_WORLD.Get_size())"
                assert subprocess.check_output([sys.executable, "-c", code]) == b"1\\n"
                child = os.fork()
                if not child:
                    try:
                        trained(0)
                    except RuntimeError as error:
                        assert "this process was forked from rank 1" in str(error)
                        os._exit(mpi.size())
                    os._exit(0)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
            sys.stdout.write(f"{trained(0)}\\n")
        """,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["(0, 2, 2)", "(1, 2, 2)"]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("sys.exit(0)", "RankError: rank 1 has left: its program has ended"),
        pytest.param(
            "raise KeyError('lost')",
            "RankError: rank 1 has left: KeyError: 'lost'",
            marks=pytest.mark.mpi_slow,
        ),
        pytest.param("os.kill(os.getpid(), signal.SIGKILL)", "Killed", marks=pytest.mark.mpi_slow),
        ("os.kill(os.getpid(), signal.SIGSTOP)", "rank 1 did not reach 'tree 2' within 1 s"),
    ],
)
def test_one_rank_ends_and_so_do_all(tmp_path, fault, said):
    started = time.monotonic()
    done = program(
        tmp_path,
        f"""
        import ranktrees.mpi
        from ranktrees.processes.communicator import active

        with joblib.parallel_config("mpi", timeout=1):
            ranks = active()
        ranks.at("tree 2")
        ranks.allgather(0)
        if ranks.rank == 1:
            {fault}
        ranks.allgather(0)
        """,
    )
    assert done.returncode != 0
    assert said in done.stdout + done.stderr
    assert time.monotonic() - started < 30


def ended_where_others_wait(done, step):
    told = f"rank 1 failed at {step}: MemoryError: no room, while other ranks may be waiting for its sum"
    return done.returncode != 0 and told in done.stderr


def test_a_rank_that_fails_where_others_wait_for_its_sum(tmp_path):
    started = time.monotonic()
    done = program(
        tmp_path,
        """
        import ranktrees.mpi
        from ranktrees.processes.communicator import active

        with joblib.parallel_config("mpi", timeout=30):
            ranks = active()
        with ranks:
            ranks.at("tree 3")
            ranks.stack(np.zeros(3, np.int64), 1)
            if ranks.rank == 1:
                raise MemoryError("no room")
            ranks.allreduce(np.zeros(5000, np.int64), met=True)
        """,
    )
    assert ended_where_others_wait(done, "tree 3")
    assert time.monotonic() - started < 25


def test_a_rank_that_fails_while_a_tree_grows(tmp_path):
    """Others may be in a sum of the same tree, before which they did not meet."""
    started = time.monotonic()
    done = program(
        tmp_path,
        """
        import ranktrees.mpi
        from ranktrees import HistGBRTRegressor
        from ranktrees.processes.communicator import active, training_with
        from ranktrees.growing import over_ranks

        class Failing(over_ranks.Words):
            n_sums_left = 60

            def add_up_within(self, *args):
                self.n_sums_left -= 1
                if not self.n_sums_left and ranktrees.mpi.rank() == 1:
                    raise MemoryError("no room")
                super().add_up_within(*args)

        over_ranks.Words = Failing
        X = np.random.default_rng(ranktrees.mpi.rank()).normal(size=(300, 5))
        model = HistGBRTRegressor(split_search="coarse_to_fine", min_samples_leaf=1, random_state=0)
        with joblib.parallel_config("mpi", timeout=30):
            ranks = active()
        with training_with(ranks):
            model.fit(X, X[:, 0])
        """,
    )
    assert ended_where_others_wait(done, "tree 2")
    assert time.monotonic() - started < 25


def test_without_mpi4py_or_its_launcher_it_says_what_to_do(tmp_path):
    source = """
        import ranktrees
        assert "mpi4py" not in sys.modules
        sys.modules["mpi4py"] = None
        try:
            import ranktrees.mpi
        except ImportError as error:
            assert 'pip install "ranktrees[mpi]"' in str(error)
        del sys.modules["mpi4py"]
        os.environ["OMPI_COMM_WORLD_SIZE"] = "2"
        import ranktrees.mpi
    """
    done = program(tmp_path, source, None)
    assert "RuntimeError: the launcher has started 2 ranks, but MPI knows of 1" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGKILL, marks=pytest.mark.mpi_slow)])
def test_ranks_end_with_their_driver(tmp_path, number):
    done = program(
        tmp_path,
        f"""
        import threading
        import ranktrees.mpi
        from ranktrees.processes.communicator import active_driver

        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
        with joblib.parallel_config("mpi", n_ranks=2):
            active_driver().run_rows(print, [0, 0])
            threading.Timer(0.3, os.kill, [os.getpid(), {int(number)}]).start()
            active_driver().run_rows(lambda ranks, _: time.sleep(60), [0, 0])
        """,
        None,
    )
    assert done.returncode == -number


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"n_ranks": 0}, "n_ranks=0: expected a whole number of ranks >= 1"),
        ({"n_ranks": "2"}, "n_ranks='2': expected a whole number of ranks >= 1"),
        ({"n_ranks": 2.0}, "n_ranks=2.0: expected a whole number of ranks >= 1"),
        ({"timeout": 0}, "timeout=0; expected a number of seconds above 0"),
        ({"time_out": 1}, "unexpected keyword argument 'time_out'"),
        ({"n_ranks": 2, "launcher": ["false"]}, "the ranks did not start: false has ended with 1"),
    ],
)
def test_settings_that_do_not_work(settings, said):
    with (
        pytest.raises((TypeError, ValueError, RuntimeError), match=said),
        joblib.parallel_config("mpi", **settings),
    ):
        active_driver().run_rows(print, [0, 0])


# Whole models


def models():
    return [
        LambdaMARTRanker(
            max_iter=40, learning_rate=0.3, early_stopping=True, n_iter_no_change=3, random_state=0
        ),
        HistGBRTRegressor(max_iter=10, subsample=0.5, random_state=0),
        HistGBRTRegressor(max_iter=3, split_search="streaming", max_bins=10, random_state=0),
        HistGBRTRegressor(max_iter=10, split_search="coarse_to_fine", random_state=0),
        RandomForestRanker(n_estimators=7, oob_score=True, random_state=0),
    ]


def model_bytes(model):
    return joblib.hash((model.ensemble_.nodes, model.ensemble_.base))


@pytest.fixture(scope="module")
def ranking():
    return make_ranking(60, rows_per_query=20, random_state=0, return_X_y_qid=True)


@pytest.mark.parametrize("order", ["as they come", "mixed"])
@pytest.mark.parametrize("number", range(5))
def test_a_driver_gives_the_model_that_it_would_fit_alone(backend, ranking, number, order, monkeypatch):
    X, y, qid = ranking
    rows = np.random.default_rng(0).permutation(len(y)) if order == "mixed" else slice(None)
    over_ranks = models()[number].fit(X[rows], y[rows], qid=qid[rows])
    monkeypatch.setattr(searching, "SHARDS", SIZE)  # what streaming histograms find depends on the dealing
    with joblib.parallel_config("threading"):
        alone = models()[number].fit(X[rows], y[rows], qid=qid[rows])
    assert model_bytes(over_ranks) == model_bytes(alone)
    if hasattr(alone, "oob_score_"):
        np.testing.assert_array_equal(over_ranks.oob_prediction_, alone.oob_prediction_)
        assert over_ranks.oob_score_ == alone.oob_score_


def test_a_forest_of_a_driver_goes_on_with_its_out_of_bag_scores(backend, ranking):
    X, y, qid = ranking
    forest = RandomForestRanker(3, oob_score=True, warm_start=True, random_state=0)
    for n_trees in (3, 7):
        forest.set_params(n_estimators=n_trees).fit(X, y, qid=qid)
    with joblib.parallel_config("threading"):
        alone = clone(forest).fit(X, y, qid=qid)
    assert model_bytes(forest) == model_bytes(alone)
    np.testing.assert_array_equal(forest.oob_prediction_, alone.oob_prediction_)
    with pytest.raises(ValueError, match="differs from what the 7 trees"):
        forest.set_params(n_estimators=9).fit(X[:-1], y[:-1], qid=qid[:-1])


def test_a_search_of_ours_is_on_ranks_and_its_last_fit_on_all(backend, ranking):
    X, y, qid = ranking
    labels = pd.Series(y, index=pd.Index(qid, name="qid"))
    search = GridSearchCV(
        LambdaMARTRanker(max_iter=5, random_state=0), {"learning_rate": [0.1, 0.3]}, cv=QueryKFold(2)
    )
    for n_jobs in (None, 1):
        over_ranks = clone(search).set_params(n_jobs=n_jobs).fit(X, labels)
        with joblib.parallel_config("threading"):
            alone = clone(search).fit(X, labels)
        scores = (each.cv_results_["mean_test_score"] for each in (over_ranks, alone))
        np.testing.assert_array_equal(*scores)
        assert model_bytes(over_ranks.best_estimator_) == model_bytes(alone.best_estimator_)


def test_a_driver_says_what_ranks_cannot_do(backend, ranking):
    X, y, qid = ranking
    with pytest.raises(ValueError, match="X is in batches, which a driver does not deal"):
        LambdaMARTRanker().fit(Batches([(X, y, qid)]))
    with pytest.raises(ValueError, match="position is given, but ranks"):
        LambdaMARTRanker().fit(X, y, qid=qid, position=np.ones(len(y), int))
    with pytest.raises(ValueError, match="y contains NaN in row 3"):
        LambdaMARTRanker().fit(X, np.where(np.arange(len(y)) == 3, np.nan, y), qid=qid)


def test_all_ranks_of_a_program_get_the_model_of_one_process(tmp_path, ranking):
    X, y, qid = ranking
    np.savez(tmp_path / "rows.npz", X=X, y=y, qid=qid)
    done = program(
        tmp_path,
        f"""
        import ranktrees.mpi as mpi
        from ranktrees import LambdaMARTRanker, RandomForestRanker

        rows = np.load({str(tmp_path / "rows.npz")!r})
        own = rows["qid"] % 3 % mpi.size() == mpi.rank()
        X, y, qid = (rows[name][own] for name in ("X", "y", "qid"))
        with joblib.parallel_config("mpi", timeout=20):
            boosted = LambdaMARTRanker(max_iter=10, random_state=0)
            for model in (boosted, RandomForestRanker(7, random_state=0)):
                model.fit(X, y, qid=qid)
                sys.stdout.write(joblib.hash((model.ensemble_.nodes, model.ensemble_.base)) + "\\n")
        """,
    )
    assert done.returncode == 0, done.stderr
    alone = LambdaMARTRanker(max_iter=10, random_state=0), RandomForestRanker(7, random_state=0)
    expected = [model_bytes(model.fit(X, y, qid=qid)) for model in alone]
    assert sorted(done.stdout.split()) == sorted(2 * expected)
