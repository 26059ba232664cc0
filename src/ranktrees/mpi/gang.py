"""The ranks that a driver starts, and how they are given work.

    driver                                    a child of it, and its children
    one thread per rank ---- socket ----.---- rank 0: worker.py ---.
         takes from one queue          |---- rank 1: worker.py ---+--- MPI
                                       '---- rank 2: worker.py ---'

A task goes to any rank that is idle. Rows go to all ranks at once, and work on them starts when all are free.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranktrees.mpi.launching import ADDRESS, KEY, default_launcher
from ranktrees.mpi.parcels import BUSY, DONE, ENDED, FAILED, Parcel, Sender, pack
from ranktrees.processes.communicator import RankError, cause_of
from ranktrees.processes.sockets import callers, limit_waits, shut_down

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

START_TIMEOUT = 120.0
STEP = 0.5
GRACE = 5.0


class Work:
    """Work to be done: one parcel for any of the first ``n_allowed`` ranks, or one for each rank."""

    def __init__(self, parcels: Sequence[Parcel], n_allowed: int, for_all: bool) -> None:
        self.parcels, self.n_allowed, self.for_all = parcels, n_allowed, for_all
        self.futures: list[Future[Any]] = [Future() for _ in parcels]
        self.n_present = 0

    def give(self, rank: int) -> tuple[str, Parcel, Future[Any]]:
        """Return the label, parcel and future for a rank."""
        place = rank if self.for_all else 0
        return "rows" if self.for_all else "task", self.parcels[place], self.futures[place]


class Link:
    """The driver's end of the connection to a rank, and the rank's process, if it is on this machine."""

    def __init__(self, connection: Connection, process: Any, cache_bytes: int, wait_limit: float) -> None:
        self.connection, self.wait_limit, self._process = connection, wait_limit, process
        self.sender = Sender(connection, cache_bytes)
        self._socket = limit_waits(connection, wait_limit)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, label: str, parcel: Parcel) -> tuple[int, Any, str]:
        """Send a parcel to the rank, and wait for its answer."""
        self.sender.send(label, parcel)
        silence = 0.0
        while silence < self.wait_limit:
            if not self.connection.poll(STEP):
                silence += STEP
                continue
            kind, value, text = self.connection.recv()
            if kind != BUSY:
                return kind, value, text
            silence = 0.0
        raise TimeoutError

    def stop(self) -> None:
        """Tell an idle rank to end."""
        self.sender.send("stop", Parcel(b"", []))

    def close(self) -> None:
        """End the rank, whatever it is doing. A thread that waits for it goes on."""
        shut_down(self._socket)
        self._socket.close()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, signal.SIGKILL)
            os.close(self._process)
            self._process = None


def process_of(pid: int, key: str) -> Any:
    """Return a handle on the process of a rank, known by the key in its environment, or None if not here."""
    try:
        process = os.pidfd_open(pid)
        if f"{KEY}={key}" in Path(f"/proc/{pid}/environ").read_text(errors="replace"):
            return process
        os.close(process)
    except OSError:
        pass
    return None


class Gang:
    """A group of ranks that a launcher has started.

    Parameters
    ----------
    n_ranks : int or None
        The number of ranks. None if the launcher determines it.
    launcher : tuple of str or None
        The command that starts the ranks, without the program that each runs. If None,
        ``mpiexec -n n_ranks``.
    timeout : float
        The number of seconds that a rank waits for the others, and the driver for a sign of life.
    host : str
        The address at which the driver listens.
    cache_bytes : int
        See `Sender`.

    Raises
    ------
    RuntimeError
        If the ranks do not start.
    """

    def __init__(
        self, n_ranks: Any, launcher: Sequence[str] | None, timeout: float, host: str, cache_bytes: int
    ) -> None:
        self.timeout, self.cache_bytes = timeout, cache_bytes
        self._condition = threading.Condition()
        self._ending = threading.Lock()
        self._queue: deque[Work] = deque()
        self._error: BaseException | None = None
        self._links: dict[int, Link] = {}
        self._working: set[int] = set()
        self._key = secrets.token_hex(32)
        with socket.create_server((host, 0), backlog=128) as server:
            address = f"{host}:{server.getsockname()[1]}"
            self._launcher: Any = subprocess.Popen(
                [*(launcher or default_launcher(n_ranks)), sys.executable, "-m", "ranktrees.mpi.worker"],
                env=os.environ | {ADDRESS: address, KEY: self._key},
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the driver, which ends the ranks
            )
            try:
                with callers(server, bytes.fromhex(self._key)) as accepted:
                    self._welcome(accepted)
                if n_ranks not in (None, self.size):
                    raise RuntimeError(
                        f"the launcher has started {self.size} ranks, but n_ranks={n_ranks}: leave n_ranks "
                        "out."
                    )
            except BaseException:
                self._end_processes()
                raise
        for rank in range(self.size):
            threading.Thread(target=self._serve, args=[rank], name=f"rank {rank}", daemon=True).start()

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self._links)

    @property
    def alive(self) -> bool:
        """Whether the ranks can be given work."""
        return self._error is None and self._launcher.poll() is None

    def submit(
        self, function: Callable[..., Any], args: tuple[Any, ...], n_allowed: int | None = None
    ) -> Future[Any]:
        """Run ``function(*args)`` on one of the first ``n_allowed`` ranks.

        Arrays of a megabyte and more are sent with the contents that they have when a rank is free.

        Returns
        -------
        future : concurrent.futures.Future
            The future of the result.
        """
        parcel = pack((function, args))
        return self._enqueue(Work([parcel], n_allowed or self.size, False))[0]

    def run_rows(
        self, function: Callable[..., Any], shards: Sequence[Any], args: tuple[Any, ...]
    ) -> list[Any]:
        """Run ``function(communicator, shard, *args)`` on all ranks at once, each with its own shard.

        Returns
        -------
        results : list
            The results of the ranks, in their order.
        """
        if len(shards) != self.size:
            raise ValueError(f"there are {len(shards)} shards for {self.size} ranks: expected one for each.")
        parcels = [pack((function, (shard, *args))) for shard in shards]
        futures = self._enqueue(Work(parcels, self.size, True))
        try:
            errors = [error for error in (future.exception() for future in futures) if error]
        except BaseException:  # an interrupt
            self.end(RankError("the driver was interrupted"))
            raise
        if errors:
            raise cause_of(errors)
        return [future.result() for future in futures]

    def close(self) -> None:
        """End the ranks. Idle ranks end by themselves, and busy ones are ended at once."""
        self._take_no_more(RankError("the ranks were shut down"))
        self._end_processes(0.0 if self._working else GRACE)

    def end(self, error: BaseException) -> None:
        """End the ranks at once. Callers that wait for them get the error."""
        if self._take_no_more(error):
            self._end_processes()

    def _welcome(self, accepted: Any) -> None:
        """Wait until all ranks have connected."""
        limit = max(START_TIMEOUT, self.timeout)
        last = time.monotonic() + limit
        size = None
        while self.size != size:
            try:
                connection, (rank, size, pid) = accepted.get(timeout=0.1)
            except queue.Empty:
                if self._launcher.poll() is not None or time.monotonic() > last:
                    raise RuntimeError(
                        f"the ranks did not start: {' '.join(self._launcher.args[:-3])} has "
                        + (
                            f"ended with {self._launcher.returncode}; see its output."
                            if self._launcher.poll() is not None
                            else f"started {self.size} of {size or 'the'} ranks within {limit:g} s."
                        )
                    ) from None
                continue
            connection.send((sys.path, self.timeout))
            # Longer than the ranks wait for each other, since they know better what is missing.
            self._links[rank] = Link(
                connection, process_of(pid, self._key), self.cache_bytes, 1.5 * self.timeout + 2
            )

    def _enqueue(self, work: Work) -> list[Future[Any]]:
        with self._condition:
            if self._error is not None:
                raise self._error
            self._queue.append(work)
            self._condition.notify_all()
        return work.futures

    def _take_no_more(self, error: BaseException) -> bool:
        """Accept no more work, and answer all that is queued by the error; False if there was one before."""
        with self._condition:
            if self._error is not None:
                return False
            self._error = error
            dropped = list(self._queue)
            self._queue.clear()
            self._condition.notify_all()
        for work in dropped:
            for future in work.futures:
                if future.set_running_or_notify_cancel():
                    future.set_exception(error)
        return True

    def _serve(self, rank: int) -> None:
        """Serve a rank; this is what its thread runs."""
        link = self._links[rank]
        while (given := self._next(rank)) is not None:
            label, parcel, future = given
            self._settle(future, *self._ask(link, rank, label, parcel))
            del given, parcel, future  # so that nothing is held while the rank is idle
        with contextlib.suppress(OSError):  # the rank has ended before
            link.stop()

    def _next(self, rank: int) -> tuple[str, Parcel, Future[Any]] | None:
        """Wait for the next work of an idle rank, and return it, or None if there will be none."""
        with self._condition:
            self._working.discard(rank)
            while self._error is None:
                work = next((work for work in self._queue if rank < work.n_allowed), None)
                if work is None:
                    self._condition.wait()
                elif work.for_all:
                    work.n_present += 1
                    if work.n_present == self.size:
                        self._queue.remove(work)
                        self._condition.notify_all()
                    while work.n_present < self.size and self._error is None:
                        self._condition.wait()
                    if work.n_present == self.size:  # even after an error, as nobody else settles the future
                        self._working.add(rank)
                        return work.give(rank)
                else:
                    self._queue.remove(work)
                    if work.futures[0].set_running_or_notify_cancel():
                        self._working.add(rank)
                        return work.give(rank)
        return None

    def _ask(self, link: Link, rank: int, label: str, parcel: Parcel) -> tuple[int, Any, str]:
        """Return the answer of a rank. If a rank does not answer, all ranks are ended."""
        try:
            kind, value, text = link.ask(label, parcel)
        except TimeoutError:
            kind, text = ENDED, f"rank {rank} has given no sign of life for {link.wait_limit:g} s"
        except (EOFError, OSError):
            kind, text = ENDED, f"rank {rank} has died, or cannot be reached; see its output"
        except Exception as error:  # for example a MemoryError: somebody waits for this rank's future
            kind, text = ENDED, f"the answer of rank {rank} was lost: {type(error).__name__}: {error}"
        if kind != ENDED:
            return kind, value, text
        self.end(RankError(text))
        return FAILED, pickle.dumps(self._error), ""

    def _settle(self, future: Future[Any], kind: int, value: Any, text: str) -> None:
        """Set the answer of a rank as the result, or the exception, of a future."""
        try:
            value = pickle.loads(value)
        except Exception as error:
            kind = FAILED
            value = RankError(f"cannot unpickle a rank's answer: {type(error).__name__}: {error}")
        if kind == DONE:
            future.set_result(value)
        else:
            value.add_note(text)
            future.set_exception(value)

    def _end_processes(self, grace: float = 0.0) -> None:
        """End the ranks that are left, and the launcher, which ends those that it has started elsewhere."""
        with self._ending:
            if grace:
                self._wait_for_launcher(grace)
            for link in self._links.values():
                link.close()
            if self._launcher.poll() is None:
                self._launcher.terminate()
                if not self._wait_for_launcher(GRACE):
                    self._launcher.kill()
                    self._launcher.wait()

    def _wait_for_launcher(self, seconds: float) -> bool:
        try:
            self._launcher.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True
