"""Fits on threads or ranks: the time of a tree, and what a rank sends for it."""

import time
from collections import Counter
from contextlib import contextmanager

import joblib
import numpy as np
from sklearn.base import clone

from ranktrees.processes.communicator import ALONE, active_driver, training_with

from . import sets

CALLS = ("allreduce", "allgather", "stack", "alltoall", "gather_in_turn", "reduce_scatter")


@contextmanager
def waiting(communicator):
    """CPU seconds that calls to other ranks take inside, without those of making what they gather in turn."""
    clock = Counter()

    def watched(plain):
        def watching(*args, **more):
            started = time.process_time()
            try:
                return plain(*args, **more)
            finally:
                clock["seconds"] += time.process_time() - started

        return watching

    def in_turn(parts):
        return gather(made(iter(parts)))

    def made(parts):
        while True:
            started = time.process_time()
            part = next(parts, None)
            clock["seconds"] -= time.process_time() - started
            if part is None:
                return
            yield part

    gather = communicator.gather_in_turn
    for call in CALLS:
        setattr(
            communicator, call, watched(in_turn if call == "gather_in_turn" else getattr(communicator, call))
        )
    try:
        yield clock
    finally:
        for call in CALLS:
            delattr(communicator, call)


def taken(communicator, rows, model, n_repeats=1):
    """float64[2, 2]: (seconds, CPU seconds without waiting) of the fastest fits of one tree and of two."""
    with training_with(communicator):
        fits = [
            [_seconds(communicator, each, rows) for each in _one_and_two(model)] for _ in range(n_repeats)
        ]
    return np.min(fits, axis=0)


def ms_of_tree(fits):
    """(ms, CPU ms) of a tree, by what `taken` returns."""
    return 1000 * (fits[1] - fits[0])


def _seconds(communicator, model, rows):
    with waiting(communicator) as clock:
        started = time.perf_counter(), time.process_time()
        model.fit(rows.X, rows.y, qid=rows.qid)
        return time.perf_counter() - started[0], time.process_time() - started[1] - clock["seconds"]


def sent(communicator, rows, model):
    """(bytes, messages) that a rank sends for a tree."""
    found = []
    with training_with(communicator):
        for each in _one_and_two(model):
            before = Counter(communicator.traffic)
            each.fit(rows.X, rows.y, qid=rows.qid)
            found.append([communicator.traffic[kind] - before[kind] for kind in ("bytes", "messages")])
    return np.diff(found, axis=0)[0]


def _one_and_two(model):
    return [clone(model).set_params(max_iter=n) for n in (1, 2)]


def on_threads(n_threads, rows, model, *args):
    """What `taken` returns in one process."""
    return taken(ALONE, rows, clone(model).set_params(n_jobs=n_threads), *args)


@contextmanager
def ranks(number):
    """Start so many ranks of one thread; ``run(work, rows, *args)`` returns what each makes of its rows."""
    import ranktrees.mpi  # noqa: F401  registers the backend

    with joblib.parallel_config("mpi", n_ranks=number):

        def run(work, rows, *args):
            return np.array(active_driver().run_rows(work, sets.shards(rows, number), *args))

        yield run
