"""Hours of fits, files and faults, after each of which there are the same bytes, and nothing is left behind.

    scripts/soak [--seconds 3600] [--operations N] [--seed 0] [--first 0]

An operation draws rows, an estimator and faults by the seed and its number. Then it checks that what comes
out has the bytes of a quiet fit, that files are whole, and that no process, no thread and no file is left.
The memory and the descriptors of this process are counted after each operation. When a process is killed is
drawn in trees; what it does at that moment is up to the machine.
"""

import _thread
import argparse
import contextlib
import faulthandler
import functools
import gc
import multiprocessing
import os
import pickle
import re
import resource
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from leftovers import nothing_left
from sklearn.base import clone

from fuzz.fuzzing import picked
from ranktrees import (
    Ensemble,
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    RandomForestRanker,
    make_ranking,
)
from ranktrees.processes.communicator import ALONE, RankError, active_driver, training_with
from ranktrees.processes.sockets import SocketCommunicator
from ranktrees.training.checkpoints import Checkpoint

PATIENCE = 300  # seconds without a new checkpoint, after which other processes hang
LIMIT = 3600  # seconds for an operation
TIMEOUT = 60  # of ranks
LOST = 3  # the exit code of a process that has lost other ranks
MEGABYTE = 1 << 20
GROWTH = 16 * MEGABYTE  # of memory, from the second quarter of the operations to the last, that is no leak

forking = multiprocessing.get_context("fork")


# ---- what is trained --------------------------------------------------------------------------------------


def bytes_of(model):
    return [ensemble.to_bytes() for ensemble in model._ensembles]


@dataclass
class Scene:
    """Rows, an estimator, and what a quiet fit in one process and one thread makes of them."""

    model: object
    X: object
    y: np.ndarray
    qid: np.ndarray
    owners: np.ndarray
    expected: list = None

    @functools.cached_property
    def n_trees(self):
        return self.model.get_params().get("n_estimators") or self.model.max_iter

    def fit(self, model, ranks=ALONE):
        """Fit a model to the rows that a rank has."""
        own = np.flatnonzero(self.owners[self.qid] % ranks.size == ranks.rank)
        with training_with(ranks) if ranks.size > 1 else contextlib.nullcontext():
            return model.fit(self.X[own], self.y[own], qid=self.qid[own])

    def bytes(self, ranks=ALONE, **parameters):
        return bytes_of(self.fit(clone(self.model).set_params(**parameters), ranks))


def drawn(rng, n_trees=None):
    """A scene. If a number of trees is given, no model has another one."""
    X, y, qid = make_ranking(
        int(rng.integers(20, 60)),
        rows_per_query=20,
        n_features=int(rng.integers(5, 30)),
        random_state=int(rng.integers(1 << 30)),
        return_X_y_qid=True,
    )
    if rng.random() < 0.3:
        X[rng.random(X.shape) < 0.1] = np.nan
    elif rng.random() < 0.3:
        X = sp.csr_array(np.where(rng.random(X.shape) < 0.7, 0, X))
    rules = {
        "random_state": int(rng.integers(1 << 30)),
        "min_samples_leaf": int(rng.integers(1, 30)),
        "max_leaf_nodes": int(rng.integers(2, 64)),
    }
    kind = picked(rng, [LambdaMARTRanker, HistGBRTRegressor, HistGBRTClassifier, RandomForestRanker])
    if kind is RandomForestRanker:
        model = kind(n_trees or int(rng.integers(2, 12)), **rules)
    else:
        rules |= {
            "learning_rate": float(rng.uniform(0.05, 0.3)),
            "split_search": picked(rng, ["full", "coarse_to_fine"]),
            "subsample": picked(rng, [0.5, 1.0]),
            "early_stopping": n_trees is None and rng.random() < 0.3,
        }
        model = kind(max_iter=n_trees or int(rng.integers(5, 60)), **rules)
    if kind is HistGBRTClassifier:
        y = y > 2
    scene = Scene(model, X, y, qid, rng.integers(1 << 30, size=qid.max() + 1))
    scene.expected = scene.bytes(n_jobs=1)
    return scene


# ---- ways to train: the bytes of each rank, and whether it was killed -------------------------------------


@dataclass(frozen=True)
class Kill:
    """When to kill a process, and how."""

    tree: int
    wait: float
    signal: int
    victim: int

    def __call__(self, checkpoint, pid_of, ended):
        """Kill the victim once a checkpoint has the tree, unless all have ended. Each checkpoint is whole."""
        while not ended():
            with contextlib.suppress(FileNotFoundError):
                if len(Checkpoint.from_bytes(checkpoint.read_bytes()).ensemble) >= self.tree:
                    break
            time.sleep(0.001)
        time.sleep(self.wait)
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            os.kill(pid_of(self.victim), self.signal)


def write_bytes(scene, parameters, place, ranks=ALONE):
    begun = Path(place, f"begun {ranks.rank}")
    begun.write_bytes(pickle.dumps(scene.bytes(ranks, **parameters)))
    begun.rename(Path(place, f"bytes {ranks.rank}"))


def all_written(place):
    """What all ranks have written, after which it is gone, as is what those that were killed have begun."""
    found = []
    for path in place.glob("begun *"):
        path.unlink()
    for path in sorted(place.glob("bytes *")):
        found.append(pickle.loads(path.read_bytes()))
        path.unlink()
    return found


def as_socket_rank(rank, size, key, server, scene, parameters, place):
    mine = server if rank == 0 else None
    with (
        contextlib.closing(SocketCommunicator(rank, size, key, server.getsockname(), mine, TIMEOUT)) as ranks,
        ranks,
    ):
        write_bytes(scene, parameters, place, ranks)


def as_mpi_rank(folder):
    """What ``mpiexec`` runs."""
    from ranktrees import mpi

    place = Path(folder)
    place.joinpath(f"pid {mpi.rank()}").write_text(str(os.getpid()))
    scene, parameters = pickle.loads(place.joinpath("scene").read_bytes())
    with joblib.parallel_config("mpi", timeout=TIMEOUT):
        from ranktrees.processes import active

        write_bytes(scene, parameters, place, active())


def in_child(function, *args):
    """Run a function in a forked process, which ends with `LOST` if other ranks are lost."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        function(*args)
    except RankError:
        sys.exit(LOST)


def wait_until(ended, checkpoint=None):
    """Wait for other processes. On a busy machine they may be slow, but they get on."""
    last, seen = time.monotonic(), None
    while not ended():
        time.sleep(0.002)
        with contextlib.suppress(FileNotFoundError):
            if checkpoint is not None and (now := checkpoint.stat().st_mtime_ns) != seen:
                last, seen = time.monotonic(), now
        if time.monotonic() - last > PATIENCE:
            raise TimeoutError("a process hangs")


@contextlib.contextmanager
def children(function, arguments, checkpoint=None):
    """Forked processes, one for each tuple of arguments."""
    started = [forking.Process(target=in_child, args=(function, *args)) for args in arguments]
    for child in started:
        child.start()
    try:
        yield started
        wait_until(lambda: all(child.exitcode is not None for child in started), checkpoint)
    finally:
        for child in started:
            child.kill()
            child.join()


def of_children(function, arguments, checkpoint, place, kill):
    with children(function, arguments, checkpoint) as started:
        if kill is not None:
            kill(
                checkpoint,
                lambda victim: started[victim % len(started)].pid,
                lambda: any(child.exitcode is not None for child in started),
            )
    codes = [child.exitcode for child in started]
    for child in started:
        child.close()
    allowed = {0, LOST, -kill.signal} if kill is not None else {0}
    assert allowed.issuperset(codes), codes
    return all_written(place), kill is not None and -kill.signal in codes


def by_process(rng, scene, parameters, place, kill):
    return of_children(write_bytes, [(scene, parameters, place)], parameters["checkpoint"], place, kill)


def by_sockets(rng, scene, parameters, place, kill):
    size, key = int(rng.integers(2, 4)), secrets.token_bytes(32)
    with socket.create_server(("127.0.0.1", 0), backlog=8) as server:
        arguments = [(rank, size, key, server, scene, parameters, place) for rank in range(size)]
        return of_children(as_socket_rank, arguments, parameters["checkpoint"], place, kill)


@nothing_left()
def by_mpiexec(rng, scene, parameters, place, kill):
    from ranktrees.mpi.launching import default_launcher

    place.joinpath("scene").write_bytes(pickle.dumps((scene, parameters)))
    program = "import soak, sys; soak.as_mpi_rank(sys.argv[1])"
    command = [*default_launcher(int(rng.integers(2, 4))), sys.executable, "-c", program, str(place)]
    paths = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    with open(place / "said", "w+") as said:
        job = subprocess.Popen(
            command, env=os.environ | {"PYTHONPATH": paths}, stdout=said, stderr=subprocess.STDOUT
        )
        if kill is not None:
            kill(
                parameters["checkpoint"],
                lambda victim: int(place.joinpath(f"pid {victim % 2}").read_text()),
                lambda: job.poll() is not None,
            )
        wait_until(lambda: job.poll() is not None, parameters["checkpoint"])
        code = job.returncode
        said.seek(0)
        assert code == 0 or kill is not None, said.read()
    for path in (place / "scene", place / "said", *place.glob("pid *")):
        path.unlink()
    return all_written(place), code != 0


@nothing_left()
def by_driver(rng, scene, parameters, place, kill):
    import ranktrees.mpi

    model, killer = clone(scene.model).set_params(**parameters), None
    with joblib.parallel_config("mpi", n_ranks=2, timeout=TIMEOUT), contextlib.ExitStack() as stack:
        stack.callback(ranktrees.mpi.shutdown)
        pids, ended = active_driver().run_rows(pid_of_rank, [None] * 2), threading.Event()
        if kill is not None:
            killer = threading.Thread(
                target=kill, args=(parameters["checkpoint"], lambda victim: pids[victim % 2], ended.is_set)
            )
            killer.start()
        try:
            found = [bytes_of(scene.fit(model))]
        except RankError:
            assert kill is not None
            found = []
        finally:
            ended.set()
            if killer is not None:
                killer.join()
    return found, not found


def pid_of_rank(ranks, _):
    return os.getpid()


WAYS = [by_process] * 6 + [by_sockets] * 4 + [by_mpiexec, by_driver]


# ---- operations -------------------------------------------------------------------------------------------


def killed(rng, place, tally):
    """A fit is killed up to three times, goes on in another way each time, and ends with the same bytes."""
    scene, checkpoint = drawn(rng, int(rng.integers(30, 150))), place / "checkpoint"
    rules = {"checkpoint": checkpoint, "checkpoint_every": int(rng.integers(1, 4))}
    tree = 0
    for _ in range(rng.integers(1, 4)):
        tree = int(rng.integers(tree, scene.n_trees))
        way = picked(rng, WAYS)
        kill = Kill(
            max(1, tree),
            float(rng.exponential(0.01)),
            picked(rng, [signal.SIGKILL, signal.SIGTERM]),
            int(rng.integers(6)),
        )
        found, was_killed = way(rng, scene, rules | {"n_jobs": int(rng.integers(1, 4))}, place, kill)
        tally.faults[f"{kill.signal.name}, {way.__name__[3:]}"] += was_killed
        tally.compare(found, [scene.expected] * len(found))
    way = picked(rng, WAYS)
    found, _ = way(rng, scene, rules | {"n_jobs": int(rng.integers(1, 4))}, place, None)
    tally.compare(found, [scene.expected] * max(1, len(found)))
    assert not os.listdir(place), os.listdir(place)


def interrupted(rng, place, tally):
    """Ctrl-C leaves the estimator as it was, or fitted if it is late; a fit goes on from its checkpoint."""
    scene, checkpoint = drawn(rng, int(rng.integers(20, 100))), place / "checkpoint"
    model = clone(scene.model).set_params(n_jobs=int(rng.integers(1, 4)))
    if refit := rng.random() < 0.5:
        scene.fit(model)
    started = time.perf_counter()
    scene.bytes()
    took = time.perf_counter() - started
    model.set_params(checkpoint=checkpoint, checkpoint_every=int(rng.integers(1, 9)))
    before = bytes_of(model) if refit else None
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.001, 2 * took))
        scene.fit(model)
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        tally.faults["Ctrl-C"] += 1
        left = bytes_of(model) if hasattr(model, "n_features_in_") else None
        tally.compare([left], [before if left == before else scene.expected])
    tally.compare(bytes_of(scene.fit(model)), scene.expected)
    assert not os.listdir(place), os.listdir(place)


def files(rng, place, tally):
    """What is written is read back, also where the disk is full the first time."""
    scene = drawn(rng)
    model = scene.fit(clone(scene.model))
    tally.compare(bytes_of(pickle.loads(pickle.dumps(model))), scene.expected)
    for number, ensemble in enumerate(model._ensembles):
        path = place / f"model {number}"
        ensemble.save(path)
        data = path.read_bytes()
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(rng.integers(len(data))), limits[1]))
        try:
            with pytest.raises(OSError, match=re.escape(str(path))):
                ensemble.save(path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        tally.compare([path.read_bytes()], [data])
        loaded = Ensemble.load(path)
        tally.compare([loaded.to_bytes()], [scene.expected[number]])
        np.testing.assert_array_equal(loaded.predict(scene.X), ensemble.predict(scene.X))
        path.write_bytes(data[: rng.integers(len(data))])
        with pytest.raises(ValueError, match=re.escape(str(path))):
            Ensemble.load(path)
        tally.faults.update(["disk full", "file cut off"])
    assert len(os.listdir(place)) == len(model._ensembles), os.listdir(place)


def forked(rng, place, tally):
    """Children of a process whose threads have run, or run at that moment, train and score as it does."""
    scene = drawn(rng)
    model = scene.fit(clone(scene.model).set_params(n_jobs=2))
    training = threading.Thread(target=scene.bytes, kwargs={"n_jobs": int(rng.integers(1, 4))})
    if rng.random() < 0.5:
        training.start()
    parameters = {"n_jobs": int(rng.integers(1, 4))}
    with children(write_bytes, [(scene, parameters, place)] * 1) as started:
        scores = model.predict(scene.X)
    if training.ident is not None:
        training.join()
    assert started[0].exitcode == 0
    started[0].close()
    tally.faults["fork"] += 1
    tally.compare(all_written(place), [scene.expected])
    np.testing.assert_array_equal(scene.fit(model).predict(scene.X), scores)


def threads(rng, place, tally):
    """Threads that train models of their own, and score by one that is fitted meanwhile, do not mix."""
    scenes = [drawn(rng) for _ in range(rng.integers(2, 4))]
    shared = scenes[0].fit(clone(scenes[0].model).set_params(n_jobs=int(rng.integers(1, 4))))
    expected = shared.predict(scenes[0].X)
    n_jobs = rng.integers(1, 4, size=12)

    def work(number):
        if number % 4 == 3:
            if number == 3:
                scenes[0].fit(shared)
            np.testing.assert_array_equal(shared.predict(scenes[0].X), expected)
            return scenes[0].expected
        return scenes[number % len(scenes)].bytes(n_jobs=int(n_jobs[number]))

    with ThreadPoolExecutor(int(rng.integers(2, 6))) as pool:
        found = list(pool.map(work, range(12)))
    of = [scenes[0] if number % 4 == 3 else scenes[number % len(scenes)] for number in range(12)]
    tally.compare(found, [scene.expected for scene in of])


def without_memory(rng, place, tally):
    """A fit that finds no memory leaves the estimator as it was."""
    scene = drawn(rng)
    model = scene.fit(clone(scene.model).set_params(n_jobs=1))
    more = np.arange(len(scene.y)).repeat(60)
    X, y, qid = scene.X[more], scene.y[more], scene.qid[more]
    limits = resource.getrlimit(resource.RLIMIT_AS)
    in_use = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    failed = False
    try:
        resource.setrlimit(resource.RLIMIT_AS, (in_use + int(rng.integers(1, 6)) * MEGABYTE, limits[1]))
        model.fit(X, y, qid=qid)
    except MemoryError:
        failed = True
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
    if failed:
        tally.faults["no memory"] += 1
        tally.compare(bytes_of(model), scene.expected)
    tally.compare(bytes_of(scene.fit(model)), scene.expected)


OPERATIONS = {killed: 4, interrupted: 3, files: 3, forked: 2, threads: 2, without_memory: 1}


# ---- the run ----------------------------------------------------------------------------------------------


class Tally:
    """What was done, what was injected, what was compared, and how much is in use."""

    def __init__(self):
        self.operations, self.faults = Counter(), Counter()
        self.n_compared = self.n_bytes = 0
        self.memory, self.descriptors = [], []

    def compare(self, found, expected):
        assert found == expected, "other bytes"
        self.n_compared += len(found)
        self.n_bytes += len(pickle.dumps(found))

    def look(self):
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.memory.append(pages * resource.getpagesize())
        self.descriptors.append(len(os.listdir("/proc/self/fd")))

    @staticmethod
    def growth(measured):
        """From the median of the second quarter of the operations to that of the last."""
        quarter = len(measured) // 4
        if not quarter:
            return 0
        return np.median(measured[-quarter:]) - np.median(measured[quarter : 2 * quarter])

    def __str__(self):
        def listed(counter):
            return ", ".join(f"{n} {name}" for name, n in counter.most_common()) or "none"

        megabytes = [round(n / MEGABYTE) for n in (self.memory[0], max(self.memory), self.memory[-1])]
        return (
            f"operations: {self.operations.total()} ({listed(self.operations)})\n"
            f"faults: {self.faults.total()} ({listed(self.faults)})\n"
            f"compared: {self.n_compared} times the same bytes, {self.n_bytes / 1e6:.1f} MB\n"
            f"memory: {megabytes[0]} MB after the first operation, {megabytes[1]} at most, {megabytes[2]} in "
            f"the end; {self.growth(self.memory) / MEGABYTE:+.1f} from the second quarter to the last\n"
            f"descriptors: {self.descriptors[0]} after the first operation, {max(self.descriptors)} at most, "
            f"{self.descriptors[-1]} in the end"
        )


@contextlib.contextmanager
def own_temporary_folder():
    """A folder for all temporary files of this process and its children."""
    before, variable = tempfile.tempdir, os.environ.get("TMPDIR")
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        try:
            yield folder
        finally:
            tempfile.tempdir = before
            os.environ.pop("TMPDIR")
            os.environ |= {} if variable is None else {"TMPDIR": variable}


def operate(operation, rng, tally, temporary):
    """One operation, after which nothing is left."""
    n_threads = _thread._count()
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    with tempfile.TemporaryDirectory() as folder:
        operation(rng, Path(folder), tally)
    assert not os.listdir(temporary), os.listdir(temporary)
    assert not multiprocessing.active_children()
    last = time.monotonic() + TIMEOUT
    while _thread._count() > n_threads and time.monotonic() < last:  # those of an interrupted fit end soon
        time.sleep(0.001)
    assert _thread._count() <= n_threads, threading.enumerate()
    faulthandler.cancel_dump_traceback_later()
    tally.operations[operation.__name__] += 1
    tally.look()


def run(tally, seed, *, first=0, n_operations=None, seconds=np.inf, report=None):
    """Draw operations until there are enough or the time is over."""
    kinds = [operation for operation, weight in OPERATIONS.items() for _ in range(weight)]
    last, told, number = time.monotonic() + seconds, time.monotonic(), first
    with own_temporary_folder() as temporary:
        while time.monotonic() < last and (n_operations is None or number < first + n_operations):
            rng = np.random.default_rng([seed, number])
            operation = picked(rng, kinds)
            try:
                operate(operation, rng, tally, temporary)
            except BaseException as error:
                error.add_note(f"operation {number} of seed {seed}: {operation.__name__}")
                raise
            number += 1
            if report is not None and time.monotonic() > told + 60:
                told = time.monotonic()
                report(
                    f"to operation {number}: {tally.faults.total()} faults, "
                    f"{tally.memory[-1] / MEGABYTE:.0f} MB, {tally.descriptors[-1]} descriptors"
                )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=3600.0, help="an hour")
    parser.add_argument("--operations", type=int, help="how many, if they take less time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    tally = Tally()
    limited = {"first": given.first, "n_operations": given.operations, "seconds": given.seconds}
    try:
        run(tally, given.seed, **limited, report=functools.partial(print, flush=True))
    finally:
        if tally.memory:
            print(tally)
    if tally.growth(tally.memory) > GROWTH:
        sys.exit("memory has grown")
    if tally.growth(tally.descriptors) > 0:
        sys.exit("descriptors are left")


if __name__ == "__main__":
    import soak  # by its name, so that other processes can read what it has pickled

    soak.main()
