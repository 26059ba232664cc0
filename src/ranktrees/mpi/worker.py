"""A rank that a driver has started: ``mpiexec -n P python -m ranktrees.mpi.worker``."""

from __future__ import annotations

import contextlib
import os
import queue
import sys
import threading
import traceback
from collections.abc import Sequence
from multiprocessing.connection import Client
from typing import TYPE_CHECKING, Any

import cloudpickle
from threadpoolctl import threadpool_limits

from ranktrees.mpi.launching import ADDRESS, KEY
from ranktrees.mpi.parcels import BUSY, DONE, ENDED, FAILED, Receiver, unpack
from ranktrees.mpi.spmd import world
from ranktrees.processes.communicator import RankError
from ranktrees.support.parallel import effective_n_threads

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


class Worker:
    """A rank that does what the driver sends, and ends when the driver is gone.

    Parameters
    ----------
    ranks : MPICommunicator
        The communicator of all ranks.
    connection : multiprocessing.connection.Connection
        The connection to the driver.
    """

    def __init__(self, ranks: Any, connection: Connection) -> None:
        self.ranks, self.connection = ranks, connection
        self.sending = threading.Lock()
        self.busy = threading.Event()
        self.parcels: queue.SimpleQueue[Any] = queue.SimpleQueue()
        ranks.end = self.end
        connection.send((ranks.rank, ranks.size, os.getpid()))
        path, ranks.timeout = connection.recv()
        sys.path.extend(folder for folder in path if folder not in sys.path)

    def run(self) -> None:
        """Work until the driver says stop."""
        threading.Thread(target=self.listen, daemon=True).start()
        threading.Thread(target=self.beat, daemon=True).start()
        while (parcel := self.parcels.get()) is not None:
            self.busy.set()
            answer = self.answer(*parcel)
            self.busy.clear()
            self.send(*answer)
            del parcel, answer  # nobody else needs their memory

    def listen(self) -> None:
        """Receive parcels, even while the rank is busy, so that it ends if it loses the driver."""
        receiver = Receiver(self.connection)
        try:
            while (parcel := receiver.receive())[0] != "stop":
                self.parcels.put(parcel)
        except (EOFError, OSError):
            os._exit(1)
        self.parcels.put(None)

    def beat(self) -> None:
        """Show the driver that a busy rank is alive."""
        pause = threading.Event()
        while self.busy.wait():
            pause.wait(self.ranks.timeout / 4)
            if self.busy.is_set():
                self.send(BUSY)

    def send(self, kind: int, value: bytes = b"", text: str = "") -> None:
        with self.sending:
            self.connection.send((kind, value, text))

    def answer(self, label: str, data: bytes, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Return the result of a parcel, or the error."""
        try:
            if label == "rows":
                self.ranks.traffic.clear()
                self.ranks.at("start")
                with self.ranks:
                    function, args = unpack(data, arrays)
                    result = function(self.ranks, *args)
            else:
                function, args = unpack(data, arrays)
                result = function(*args)
            return DONE, cloudpickle.dumps(result)
        except BaseException as error:
            text = f"On rank {self.ranks.rank}:\n{traceback.format_exc()}"
            return FAILED, self.packed(error), text

    def packed(self, error: BaseException) -> bytes:
        """The pickled error, or a `RankError` about it if it cannot be pickled or would end the driver."""
        with contextlib.suppress(Exception):
            if isinstance(error, (Exception, KeyboardInterrupt)):
                return cloudpickle.dumps(error)
        told = f"rank {self.ranks.rank} failed: {type(error).__name__}: {error}"
        return cloudpickle.dumps(RankError(told))

    def end(self, message: str) -> None:
        """Report that the ranks cannot go on together, and wait to be ended."""
        self.send(ENDED, text=message)
        threading.Event().wait()


def main() -> None:
    host, port = os.environ[ADDRESS].rsplit(":", 1)
    ranks = world()
    connection = Client((host, int(port)), authkey=bytes.fromhex(os.environ[KEY]))
    threadpool_limits(effective_n_threads(None))
    Worker(ranks, connection).run()


if __name__ == "__main__":
    main()
