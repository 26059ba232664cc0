"""Threads of Python work on values, and none is left, whatever happens."""

import itertools
import os
import sys
import threading
import time

import numpy as np
import pytest

from ranktrees import RandomForestRanker, make_ranking
from ranktrees.support.ordered import in_order, in_threads


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n_values", [0, 1, 4, 30])
def test_results_come_in_the_order_of_the_values(n_threads, n_values):
    waits = np.random.default_rng(0).uniform(0, 0.003, n_values)

    def slowly(value):
        time.sleep(waits[value])
        return value**2

    for mapped in (in_threads, in_order):
        assert list(mapped(n_threads, slowly, range(n_values))) == [value**2 for value in range(n_values)]


def test_as_many_values_are_taken_as_threads_can_soon_work_on():
    taken = []
    results = in_threads(3, abs, (taken.append(value) or value for value in itertools.count()))
    assert taken == []
    for n_yielded in range(1, 9):
        next(results)
        assert len(taken) == n_yielded + 5
    results.close()


def test_threads_work_at_the_same_time():
    barrier = threading.Barrier(3, timeout=20)
    assert sorted(in_threads(3, lambda _: barrier.wait(), range(3))) == [0, 1, 2]


def test_threads_compute_as_the_caller_does():
    with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
        list(in_threads(2, lambda value: np.float64(1) / value, [1, 0]))


@pytest.mark.parametrize("end", ["error", "close"])
def test_who_closes_waits_for_what_is_begun_and_no_more_is(end):
    begun, done = [], []

    def slowly(value):
        begun.append(value)
        time.sleep(0.02)
        if value == 2 and end == "error":
            raise LookupError("two")
        done.append(value)
        return value

    results = in_threads(2, slowly, range(100))
    if end == "error":
        with pytest.raises(LookupError, match="two"):
            list(results)
        done.append(2)
    else:
        assert next(results) == 0
        results.close()
    assert sorted(begun) == sorted(done)
    assert len(begun) < 8


def n_threads():
    return len(os.listdir("/proc/self/task"))


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_no_moment_of_an_interrupt_leaves_a_thread_or_another_error(interrupts):
    """Python's own pools of threads leave some after one interrupt in three, or raise another error."""
    X, y, qid = make_ranking(20, rows_per_query=20, n_features=8, random_state=0, return_X_y_qid=True)
    forest = RandomForestRanker(4, n_jobs=3, random_state=0)
    started = time.perf_counter()
    expected = forest.fit(X, y, qid=qid).ensemble_.digest()
    took, before = time.perf_counter() - started, n_threads()
    n_interrupted = 0
    for wait in np.random.default_rng(0).uniform(0.1, 1.2, 100) * took:
        try:
            interrupts(wait)
            forest.fit(X, y, qid=qid)
            interrupts(0)
        except KeyboardInterrupt:
            n_interrupted += 1
        assert forest.ensemble_.digest() == expected
    assert n_interrupted
    last = time.monotonic() + 20
    while n_threads() > before and time.monotonic() < last:
        time.sleep(0.01)
    assert n_threads() <= before
