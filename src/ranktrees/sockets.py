"""Ranks that speak through sockets: a star, for clusters that have no MPI.

    rank 1 ---.
    rank 2 ---+--- rank 0, which puts together what all send, and sends each what it asked for
    rank 3 ---'

What passes through rank 0 grows with the number of ranks, so this is for few of them. That all are at the
same call is seen there.
"""

import contextlib
import time
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge, wait

import numpy as np

from ranktrees.communicator import Communicator, RankError, disagreement

PUT_TOGETHER = {"sum": np.add.reduce, "max": np.maximum.reduce, "min": np.minimum.reduce}


class SocketCommunicator(Communicator):
    """One rank of several that speak through sockets.

    Parameters
    ----------
    rank, size : int
    key : bytes
        Only those that know it are let in.
    address : (str, int)
        Where rank 0 listens.
    server : socket.socket, default=None
        What it listens at; of rank 0 only.
    timeout : float, default=300.0
        How many seconds a rank waits for the others.

    Raises
    ------
    RankError
        On all ranks, by any call: where one of them has failed, is gone or does not come, or where they are
        not at the same call, of the same step and size.
    """

    def __init__(self, rank, size, key, address, server=None, timeout=300.0):
        super().__init__()
        self.rank, self.size, self.timeout = rank, size, timeout
        self._number = 0
        self.at("start")
        if rank == 0:
            self._others = {}
            server.settimeout(timeout)
            while len(self._others) < size - 1:
                self._let_in(server, key)
        else:
            self._hub = Client(address, authkey=key)
            self._hub.send(rank)

    def close(self):
        """Hang up."""
        for connection in self._others.values() if self.rank == 0 else [self._hub]:
            connection.close()

    def _let_in(self, server, key):
        try:
            caller = Connection(server.accept()[0].detach())
        except TimeoutError:
            missing = sorted(set(range(1, self.size)) - set(self._others))
            raise RankError(self._absence(missing)) from None
        deliver_challenge(caller, key)
        answer_challenge(caller, key)
        self._others[caller.recv()] = caller

    def _absence(self, ranks):
        return f"rank {', '.join(map(str, ranks))} did not come to {self.step!r} within {self.timeout:g} s"

    def _fail(self, text):
        self._exchange("fail", 0, None, None, text)

    def _allreduce(self, array, op):
        total = self._exchange(op, array.size, array, lambda arrays: [PUT_TOGETHER[op](arrays)] * self.size)
        array[...] = total

    def _reduce_scatter(self, array, counts):
        ends = np.cumsum(counts)[:-1]
        return self._exchange(
            "reduce_scatter", array.size, array, lambda arrays: np.split(np.add.reduce(arrays), ends)
        )

    def _allgather(self, value):
        return self._exchange("allgather", 0, value, lambda values: [values] * self.size)

    def _alltoall(self, values):
        return self._exchange("alltoall", 0, values, lambda rows: list(map(list, zip(*rows, strict=True))))

    def _exchange(self, call, size, value, put_together, failure=None):
        """What this rank gets for its value, once all are at this call."""
        self._number += 1
        message = failure, (self._number, call, size, self.step), value
        if self.rank == 0:
            error, values = self._meet(message, put_together)
        else:
            error, values = self._ask(message)
        if error is not None and failure is None:
            raise RankError(error)
        return values

    def _ask(self, message):
        """Rank 0's answer; it knows more of what is missing, and so is waited for longer."""
        try:
            self._hub.send(message)
            if self._hub.poll(1.5 * self.timeout + 2):
                return self._hub.recv()
        except (EOFError, OSError):
            return f"rank 0 is gone at {self.step!r}", None
        return self._absence([0]), None

    def _meet(self, message, put_together):
        """Rank 0: hear all, and answer them."""
        messages, error = {0: message}, None
        ranks = {connection: rank for rank, connection in self._others.items()}
        last = time.monotonic() + self.timeout
        while len(messages) < self.size and error is None:
            ready = wait([c for c, rank in ranks.items() if rank not in messages], last - time.monotonic())
            if not ready:
                error = self._absence(sorted(set(ranks.values()) - set(messages)))
            for connection in ready:
                try:
                    messages[ranks[connection]] = connection.recv()
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
            with contextlib.suppress(OSError):  # it is gone, which the next exchange tells
                connection.send((error, answers[rank]))
        return error, answers[0]
