"""Ranks that communicate through sockets, as a star: for clusters that have no MPI.

    rank 1 ---.
    rank 2 ---+--- rank 0, which combines what all ranks send, and sends each the result it asked for
    rank 3 ---'

What passes through rank 0 grows with the number of ranks, so this is meant for few ranks. Rank 0 also checks
that all are at the same call. Ranks of MPI call their driver, if they have one, as these call rank 0
(`callers`).
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge, wait
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ranktrees.processes.communicator import Communicator, RankError, disagreement

PUT_TOGETHER = {"sum": np.add.reduce, "max": np.maximum.reduce, "min": np.minimum.reduce}


@contextlib.contextmanager
def callers(server: socket.socket, key: bytes) -> Iterator[queue.SimpleQueue[Any]]:
    """Accept callers that have the key, each in a thread, so that nobody waits for one that says nothing.

    Parameters
    ----------
    server : socket.socket
        The socket to listen at.
    key : bytes

    Yields
    ------
    accepted : queue.SimpleQueue of (multiprocessing.connection.Connection, object)
        The connection of each caller, and the first object that it sends.
    """
    accepted: queue.SimpleQueue[Any] = queue.SimpleQueue()
    done, opened = threading.Event(), []

    def accept() -> None:
        while not done.is_set():
            with contextlib.suppress(OSError):
                opened.append(server.accept()[0])
                threading.Thread(target=authenticate, args=opened[-1:], daemon=True).start()

    def authenticate(sock: socket.socket) -> None:
        with sock, contextlib.suppress(AuthenticationError, EOFError, OSError):  # not one of our ranks
            sock.setblocking(True)
            caller = Connection(sock.dup().detach())
            _prove(caller, key, deliver_challenge, answer_challenge)
            greeting = caller.recv()
            sock.close()  # from now on this connection is not ended here
            accepted.put((caller, greeting))

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield accepted
    finally:
        done.set()
        socket.create_connection(server.getsockname()[:2]).close()  # wakes it, as closing the server does not
        thread.join()
        for sock in opened:
            shut_down(sock)


def call(address: tuple[str, int], key: bytes, greeting: object, last: float) -> Connection:
    """Call a process that listens with `callers` at an address and has the key.

    Parameters
    ----------
    address : (str, int)
    key : bytes
    greeting : object
        The first object to send.
    last : float
        The time of ``time.monotonic()`` until which to wait.

    Returns
    -------
    connection : multiprocessing.connection.Connection

    Raises
    ------
    AuthenticationError, EOFError, OSError
        If there is no answer until then, or one from another program.
    """
    with socket.create_connection(address, max(0.0, last - time.monotonic())) as sock:
        sock.settimeout(None)
        connection = Connection(sock.dup().detach())
        alarm = threading.Timer(last - time.monotonic(), shut_down, [sock])
        alarm.start()
        try:
            _prove(connection, key, answer_challenge, deliver_challenge)
            connection.send(greeting)
        except BaseException:
            connection.close()
            raise
        finally:
            alarm.cancel()
            alarm.join()
    return connection


def _prove(connection: Connection, key: bytes, *steps: Callable[[Connection, bytes], None]) -> None:
    """Prove to each other that both have the key. What another program says is an AuthenticationError."""
    try:
        for step in steps:
            step(connection, key)
    except (AssertionError, ValueError, AuthenticationError) as error:
        if isinstance(error, AuthenticationError) and "digest" in str(error):  # it has another key
            raise
        raise AuthenticationError("it does not speak the language of ranks") from error


def limit_waits(connection: Connection, seconds: float) -> socket.socket:
    """Make it an error, from now on, if reading or writing makes no progress for that many seconds.

    Parameters
    ----------
    connection : multiprocessing.connection.Connection
    seconds : float

    Returns
    -------
    sock : socket.socket
        A socket of the same connection.
    """
    sock = socket.socket(fileno=os.dup(connection.fileno()))
    limit = struct.pack("ll", math.ceil(seconds), 0)
    for what in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
        sock.setsockopt(socket.SOL_SOCKET, what, limit)
    return sock


def shut_down(sock: socket.socket) -> None:
    """End a connection, so that a process which waits at either end goes on."""
    with contextlib.suppress(OSError):  # it has already ended
        sock.shutdown(socket.SHUT_RDWR)


class SocketCommunicator(Communicator):
    """One of several ranks that communicate through sockets.

    Parameters
    ----------
    rank, size : int
    key : bytes
        A secret that callers must know.
    address : (str, int)
        Where rank 0 listens.
    server : socket.socket, default=None
        The socket at which rank 0 listens; for rank 0 only.
    timeout : float, default=300.0
        How many seconds a rank waits for the others.

    Raises
    ------
    RankError
        On all ranks, by any call: if one of them has failed, is gone or does not come, or if they are not at
        the same call, with the same step and size.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        key: Any,
        address: tuple[str, int],
        server: socket.socket | None = None,
        timeout: float = 300.0,
    ) -> None:
        super().__init__()
        self.rank, self.size, self.timeout = rank, size, timeout
        self._number = 0
        self.at("start")
        self._others: dict[int, Connection] = {}
        self._hub: Any = None
        self._socks: dict[Any, socket.socket] = {}
        last = time.monotonic() + timeout
        try:
            if rank == 0:
                self._accept_all(server, key, last)
            else:
                self._hub = self._connect(address, key, last)
            for connection in self._connections():
                self._socks[connection] = limit_waits(connection, self._wait_limit)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections():
            connection.close()
        for sock in self._socks.values():
            sock.close()

    def _connections(self) -> Iterator[Connection]:
        return filter(None, [*self._others.values(), self._hub])

    @property
    def _wait_limit(self) -> float:
        """How long to wait. Ranks wait longer for rank 0, which knows more about what is missing."""
        return 1.5 * self.timeout + 2 if self.rank else self.timeout

    def _accept_all(self, server: Any, key: Any, last: float) -> None:
        with callers(server, key) as accepted:
            while len(self._others) < self.size - 1:
                try:
                    caller, rank = accepted.get(timeout=max(0.0, last - time.monotonic()))
                except queue.Empty:
                    missing = sorted(set(range(1, self.size)) - set(self._others))
                    raise RankError(self._absence(missing)) from None
                self._others[rank] = caller

    def _connect(self, address: tuple[str, int], key: Any, last: float) -> Connection:
        try:
            return call(address, key, self.rank, last)
        except (AuthenticationError, EOFError, OSError) as error:
            if time.monotonic() >= last:
                raise RankError(self._absence([0])) from None
            host, port = address
            raise RankError(f"rank {self.rank} cannot reach rank 0 at {host}:{port}: {error!r}") from error

    def _absence(self, ranks: Iterable[int]) -> str:
        return f"rank {', '.join(map(str, ranks))} did not reach {self.step!r} within {self.timeout:g} s"

    def _fail(self, text: str) -> None:
        self._exchange("fail", 0, None, None, text)

    def _allreduce(self, array: np.ndarray, op: str, met: bool) -> None:
        total = self._exchange(op, array.size, array, lambda arrays: [PUT_TOGETHER[op](arrays)] * self.size)
        array[...] = total

    def _reduce_scatter(self, array: np.ndarray, counts: Sequence[int], met: bool) -> np.ndarray:
        ends = np.cumsum(counts)[:-1]
        return self._exchange(
            "reduce_scatter", array.size, array, lambda arrays: np.split(np.add.reduce(arrays), ends)
        )

    def _allgather(self, value: Any) -> list[Any]:
        return self._exchange("allgather", 0, value, lambda values: [values] * self.size)

    def _alltoall(self, values: Sequence[Any]) -> list[Any]:
        return self._exchange("alltoall", 0, values, lambda rows: list(map(list, zip(*rows, strict=True))))

    def _exchange(
        self, call: str, size: int, value: Any, put_together: Any, failure: str | None = None
    ) -> Any:
        """Return what this rank gets for its value, once all ranks are at this call."""
        self._number += 1
        message = failure, (self._number, call, size, self.step), value
        if self.rank == 0:
            error, values = self._meet(message, put_together)
        else:
            error, values = self._request(message)
        if error is not None and failure is None:
            raise RankError(error)
        return values

    def _request(self, message: Any) -> Any:
        """Send a message to rank 0 and return its answer."""
        try:
            self._hub.send(message)
            if self._hub.poll(self._wait_limit):
                return self._hub.recv()
        except BlockingIOError:  # only a part of a message was sent or has come
            pass
        except (EOFError, OSError):
            return f"rank 0 is gone at {self.step!r}", None
        shut_down(self._socks[self._hub])  # what still comes must not be taken for the next answer
        return self._absence([0]), None

    def _meet(self, message: Any, put_together: Any) -> tuple[Any, Any]:
        """Receive the messages of all ranks, and answer them; on rank 0."""
        messages: dict[int, Any] = {0: message}
        error: str | None = None
        ranks: dict[Any, int] = {connection: rank for rank, connection in self._others.items()}
        last = time.monotonic() + self.timeout
        while len(messages) < self.size and error is None:
            ready: list[Any] = wait(
                [c for c, rank in ranks.items() if rank not in messages], last - time.monotonic()
            )
            if not ready:
                error = self._absence(sorted(set(ranks.values()) - set(messages)))
            for connection in ready:
                try:
                    messages[ranks[connection]] = connection.recv()
                except BlockingIOError:
                    shut_down(self._socks[connection])  # what still comes is not a whole message
                    error = self._absence([ranks[connection]])
                except (EOFError, OSError):
                    error = f"rank {ranks[connection]} is gone at {self.step!r}"
        if error is None:
            failures, places, values = zip(*(messages[rank] for rank in range(self.size)), strict=True)
            if any(failures):
                error = "; ".join(filter(None, failures))
            elif len(set(places)) > 1:
                error = disagreement(places)
        answers = put_together(list(values)) if error is None else [None] * self.size
        for rank, connection in self._others.items():
            try:
                connection.send((error, answers[rank]))
            except OSError:  # it is gone or does not read; the next exchange reports that
                shut_down(self._socks[connection])
        return error, answers[0]


def listen_at(host: str) -> socket.socket:
    """Return a socket at which rank 0 listens, at the address that others know its machine by."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, 0), family=family, backlog=128)


def run_rank(
    rank: int,
    size: int,
    key: bytes,
    address: tuple[str, int],
    server: socket.socket | None,
    timeout: float,
    n_threads: float | None,
    function: Callable[..., Any],
    *args: Any,
) -> Any:
    """Run ``function(communicator, *args)`` on a rank that an engine, such as Dask, has placed in a process.

    Parameters
    ----------
    rank, size, key, address, server, timeout
        As for `SocketCommunicator`. The socket at which rank 0 listens is closed when all ranks have called.
    n_threads : float or None
        The number of processors that the engine has given to the rank. If None, nothing limits its threads.
    function : callable
    *args
        Further arguments.

    Returns
    -------
    object
        What the function returns.
    """
    with server or contextlib.nullcontext():
        ranks = SocketCommunicator(rank, size, key, address, server, timeout)
    with contextlib.closing(ranks), ranks, threadpool_limits(n_threads and max(1, int(n_threads))):
        return function(ranks, *args)
