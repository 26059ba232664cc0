"""joblib's backend for Dask, with a rank on each worker."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

from joblib import register_parallel_backend

from ranktrees.processes.communicator import RankError, cause_of, checked_timeout
from ranktrees.processes.sockets import listen_at, run_rank
from ranktrees.support.systems import require_system

require_system("ranktrees.dask", "linux", "darwin")  # sockets are files there, with limits in seconds

try:
    from distributed import Lock, as_completed, get_worker
    from joblib._dask import DaskDistributedBackend
except ImportError as error:
    raise ImportError('ranktrees.dask needs Dask: pip install "ranktrees[dask]"') from error

GRACE = 5.0
_servers: dict[str, socket.socket] = {}  # on a worker: where the ranks of a gang will find rank 0


def listen(key: str, dask_worker: Any) -> tuple[str, int]:
    """On a worker: open and return the address of a gang's rank 0, with the host name that others know."""
    worker = urlsplit(dask_worker.address)
    host = "127.0.0.1" if worker.scheme == "inproc" else worker.hostname
    _servers[key] = listen_at(host)
    return host, _servers[key].getsockname()[1]


def listen_no_more(key: Any) -> None:
    """On a worker: stop listening if rank 0 has not begun."""
    if (server := _servers.pop(key, None)) is not None:
        server.close()


def run_here(
    rank: int,
    size: int,
    key: Any,
    address: tuple[str, int],
    timeout: float,
    function: Callable[..., Any],
    shard: Any,
    args: tuple[Any, ...],
) -> Any:
    """On a worker: run a rank."""
    server = _servers.pop(key) if rank == 0 else None
    n_threads = get_worker().state.nthreads
    return run_rank(
        rank, size, bytes.fromhex(key), address, server, timeout, n_threads, function, shard, *args
    )


class DaskRows(DaskDistributedBackend):
    """joblib's backend for Dask, with one rank on each worker for the rows of a fit.

    Parameters
    ----------
    timeout : float, default=300.0
        The number of seconds that a rank waits for the others.
    nesting_level : int, default=None
        How many tasks of joblib this is inside of; joblib sets it.
    **settings
        Keyword arguments of joblib's own backend, such as ``client``.
    """

    def __init__(self, timeout: float = 300.0, nesting_level: int | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.timeout, self.nesting_level = checked_timeout(timeout), nesting_level

    @property
    def n_ranks(self) -> int:
        """The number of workers."""
        return len(self.client.ncores())

    def run_rows(self, function: Callable[..., Any], shards: Sequence[Any], *args: Any) -> list[Any]:
        """Run ``function(communicator, shard, *args)`` on all workers together, each with its own shard.

        Only one such call runs at a time, and others wait for it. If a worker is busy with something else for
        longer than ``timeout``, an error is raised.

        Parameters
        ----------
        function : callable
            The function to run on each worker.
        shards : sequence
            One shard for each worker.
        *args
            Further arguments, the same for all workers.

        Returns
        -------
        results : list
            The results of the ranks, in their order.

        Raises
        ------
        Exception
            The first exception that a rank has raised.
        RankError
            If a worker is gone or does not answer.
        """
        workers = sorted(self.client.ncores())
        if len(shards) != len(workers):
            raise ValueError(
                f"there are {len(shards)} shards for {len(workers)} workers: expected one for each."
            )
        key = secrets.token_hex(32)
        with self.client.as_current():
            lock = Lock("ranktrees rows")
        with lock:
            address = self.client.run(listen, key, workers=workers[:1])[workers[0]]
            futures = []
            try:
                for rank, (worker, shard) in enumerate(zip(workers, shards, strict=True)):
                    there = self.client.scatter([shard], workers=[worker], hash=False)[0]
                    gang = (rank, len(workers), key, address, self.timeout)
                    futures.append(
                        self.client.submit(
                            run_here, *gang, function, there, args, workers=[worker], pure=False
                        )
                    )
                errors = self._errors(futures)
                if errors:
                    raise cause_of(errors)
                return self.client.gather(futures)
            finally:
                self.client.cancel(futures)
                here = [worker for worker in workers[:1] if worker in self.client.ncores()]
                self.client.run(listen_no_more, key, workers=here, on_error="ignore")

    def _errors(self, futures: Sequence[Any]) -> list[BaseException]:
        """The errors of the ranks. A worker that is gone reports none, but the others do."""
        if all(future.status == "finished" for future in as_completed(futures)):
            return []
        last = time.monotonic() + GRACE
        while any(future.status == "pending" for future in futures) and time.monotonic() < last:
            time.sleep(0.01)
        errors = [future.exception() for future in futures if future.status == "error"]
        return errors or [RankError("a worker is gone")]


register_parallel_backend("dask_rows", DaskRows)
