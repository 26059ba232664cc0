"""The driver: a single program that has all rows, and deals rows and tasks to ranks that it starts."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import joblib
from joblib.parallel import AutoBatchingMixin, FallbackToBackend, ParallelBackendBase, SequentialBackend
from threadpoolctl import threadpool_limits

from ranktrees.mpi.gang import Gang
from ranktrees.processes.communicator import RankError, checked_timeout
from ranktrees.support.numeric import is_whole

_gangs: dict[tuple[Any, ...], Gang] = {}
_lock = threading.Lock()


def gang_of(settings: tuple[Any, ...]) -> Gang:
    """Return the gang with these settings, and start a new one if there is none or it has ended."""
    with _lock:
        gang = _gangs.get(settings)
        if gang is not None and not gang.alive:
            gang.close()
            gang = None
        if gang is None:
            gang = _gangs[settings] = Gang(*settings)
        return gang


@atexit.register
def shutdown() -> None:
    """End all ranks that this process has started."""
    with _lock:
        while _gangs:
            _gangs.popitem()[1].close()


def _forget() -> None:
    """Forget the ranks in a forked child, since they belong to its parent."""
    global _lock
    _lock = threading.Lock()
    _gangs.clear()


os.register_at_fork(after_in_child=_forget)


def _limited(n_threads: int, function: Callable[..., Any], *args: Any) -> Any:
    """On a rank: what a function returns that may start only so many threads."""
    with threadpool_limits(n_threads):
        return function(*args)


class Driver(AutoBatchingMixin, ParallelBackendBase):
    """The joblib backend of a program that has all rows.

    Parameters
    ----------
    n_ranks : int, default=None
        The number of ranks. If None, one for each processor or, if a ``launcher`` is given, as many as it
        starts.
    launcher : list of str, default=None
        The command that starts the ranks, for instance ``["srun", "-n", "16"]``. If None, the ``mpiexec``
        beside this Python or in the path.
    timeout : float, default=300.0
        The number of seconds that a rank waits for the others before all ranks are ended.
    host : str, default="127.0.0.1"
        The address of this machine at which the ranks reach it.
    cache_bytes : int, default=2**30
        The number of bytes of arrays that each rank keeps from task to task.
    nesting_level : int, default=None
        How many tasks of joblib this is inside of; joblib sets it.
    """

    default_n_jobs = -1
    supports_inner_max_num_threads = True
    supports_retrieve_callback = True

    def __init__(
        self,
        n_ranks: int | None = None,
        launcher: Sequence[str] | None = None,
        timeout: float = 300.0,
        host: str = "127.0.0.1",
        cache_bytes: int = 2**30,
        nesting_level: int | None = None,
    ) -> None:
        super().__init__(nesting_level=nesting_level)
        if n_ranks is None and launcher is None:
            n_ranks = joblib.cpu_count()
        if n_ranks is not None and not is_whole(n_ranks, 1):
            raise ValueError(f"n_ranks={n_ranks!r}: expected a whole number of ranks >= 1.")
        launcher = None if launcher is None else tuple(launcher)
        self._settings = (n_ranks, launcher, checked_timeout(timeout), host, cache_bytes)
        self._futures: set[Future[Any]] = set()

    @property
    def gang(self) -> Gang:
        """The ranks, started when they are first needed."""
        return gang_of(self._settings)

    @property
    def n_ranks(self) -> int:
        """The number of ranks."""
        return self._settings[0] or self.gang.size

    def run_rows(self, function: Callable[..., Any], shards: Sequence[Any], *args: Any) -> list[Any]:
        """Run ``function(communicator, shard, *args)`` on all ranks together, each with its own shard.

        Arrays of a megabyte and more are sent to a rank only once and kept there. They cannot be written to.

        Parameters
        ----------
        function : callable
            The function to run on each rank.
        shards : sequence
            One shard for each rank, which may be anything that can be pickled.
        *args
            Further arguments, the same for all ranks.

        Returns
        -------
        results : list
            The results of the ranks, in their order.

        Raises
        ------
        Exception
            The first exception that a rank has raised, with a note that says on which rank and where.
        RankError
            If a rank has died or does not answer.
        """
        return self.gang.run_rows(self._within_threads(function), shards, args)

    def _within_threads(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, within as many threads as ``inner_max_num_threads`` allows."""
        n_threads = self.inner_max_num_threads
        return function if n_threads is None else functools.partial(_limited, n_threads, function)

    def effective_n_jobs(self, n_jobs: int) -> int:
        if n_jobs == 0:
            raise ValueError("n_jobs=0: expected a positive number of ranks, or -1 or None for all.")
        if n_jobs is None:
            return self.n_ranks
        return min(n_jobs, self.n_ranks) if n_jobs > 0 else max(1, self.n_ranks + 1 + n_jobs)

    def configure(self, n_jobs: int = 1, parallel: Any = None, **settings: Any) -> int:
        self.parallel = parallel
        self._n_allowed = self.effective_n_jobs(n_jobs)
        if self._n_allowed == 1:
            raise FallbackToBackend(SequentialBackend(nesting_level=self.nesting_level))
        return self._n_allowed

    def submit(self, func: Callable[[], Any], callback: Any = None) -> Future[Any]:
        try:
            future = self.gang.submit(self._within_threads(func), (), self._n_allowed)
        except Exception as error:  # the task cannot be sent; joblib gets the error as its outcome
            future = Future()
            future.set_exception(error)
        self._futures.add(future)
        future.add_done_callback(self._futures.discard)
        future.add_done_callback(callback)
        return future

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        return out.result()

    def stop_call(self) -> None:
        self._futures.clear()

    def terminate(self) -> None:
        self.reset_batch_stats()

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Drop tasks that no rank has begun. An interrupt that is none of a task's ends the ranks, too."""
        for future in list(self._futures):
            future.cancel()
        gang, error = _gangs.get(self._settings), sys.exception()
        of_a_task = hasattr(error, "__notes__")
        if gang is not None and isinstance(error, KeyboardInterrupt) and not of_a_task:
            gang.end(RankError("the driver was interrupted"))
