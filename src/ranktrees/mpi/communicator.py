"""Ranks that are processes of MPI.

Before they exchange anything, all ranks meet (see ``meeting.pyx``). Each rank reports at which call it
is, together with what it has to send, if that is short enough. So a short exchange costs one message to each
rank, and an error on one rank is an error on all.

Before sums that have been announced, and whose size all ranks know, they do not meet. A rank that fails in
between ends the job, since others may be waiting for its sum.
"""

from __future__ import annotations

import itertools
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from ranktrees._core.processes.meeting import Meeting
from ranktrees.processes.communicator import Communicator, RankError, disagreement

GOING, FAILED, LEFT = range(3)
NAMES = (
    "allgather",
    "stack",
    "alltoall",
    "gather_in_turn",
    "reduce_scatter",
    "sum",
    "max",
    "min",
    "fail",
    "leave",
)
CALLS = {name: number for number, name in enumerate(NAMES)}
OPERATIONS = {"sum": MPI.SUM, "max": MPI.MAX, "min": MPI.MIN}
EXTREMES = {"max": np.maximum, "min": np.minimum}
ROLL_CALL = 77
FIRST_PART = 100  # the tag of the first of several messages from the same rank

# The bytes that all ranks together send when they meet, since each rank reads all of them.
BYTES_OF_MESSAGES = 2**16  # for each rank hardly more than a packet

# A rank that waits for others first tests without rest, then lets other processes run, then naps.
N_TESTS = 200
NAP_AFTER = 1e-3
LONGEST_NAP = 1e-3
LONGEST_STEP = 0.1  # counted at most, so that time in which a whole job is suspended does not count


class MPICommunicator(Communicator):
    """One rank of an MPI communicator.

    Parameters
    ----------
    comm : mpi4py.MPI.Intracomm
        The communicator of MPI. It is duplicated, so that nothing sent here is mistaken for other messages.
        All its ranks must create an `MPICommunicator`.
    timeout : float, default=300.0
        The number of seconds that a rank waits for the others. It should be longer than any rank computes
        between two exchanges. After this time the job ends with a message that names the missing ranks.
    end : callable, default=None
        Called with that message. It must not return. If None, the message is written to the standard error
        and the job is aborted.

    Attributes
    ----------
    traffic : Counter
        Besides what `Communicator` counts, the number and the bytes of the meetings before exchanges, as
        "agreements" and "agreement bytes".

    Raises
    ------
    RankError
        Raised on all ranks by any call before which they meet, if one of them has failed or left, or if they
        are not at the same call, of the same step and size.

    Examples
    --------
    In a program that ``mpiexec -n 4`` runs:

    >>> from ranktrees.mpi.communicator import MPICommunicator  # doctest: +SKIP
    >>> ranks = MPICommunicator(MPI.COMM_WORLD, timeout=60)  # doctest: +SKIP
    >>> ranks.allgather(ranks.rank)  # doctest: +SKIP
    [0, 1, 2, 3]
    """

    def __init__(self, comm: Any, timeout: float = 300.0, end: Callable[[str], None] | None = None) -> None:
        super().__init__()
        self.rank, self.size, self.timeout = comm.Get_rank(), comm.Get_size(), timeout
        self.end = end or self._abort
        n_bytes = min(max(BYTES_OF_MESSAGES // self.size, 256), 1024) // 8 * 8
        self._meeting = Meeting(self.size, n_bytes)
        self._comm = comm
        self.at("start")
        duplicate, request = comm.Idup()
        self._wait(request.Test)
        self._comm = duplicate

    def at(self, step: str) -> None:
        super().at(step)
        self._meeting.at(step.encode())

    def leave(self, reason: str, timeout: float) -> None:
        """Meet the other ranks until all leave. Those that do not leave learn that this rank has left.

        Parameters
        ----------
        reason : str
            The reason, for the message that the others get.
        timeout : float
            The number of seconds to wait for them.
        """
        self.timeout = timeout
        while not self.alone:
            self._agree("leave", 0, f"rank {self.rank} {reason}".encode(errors="replace"), LEFT)
            if (self._meeting.states() == LEFT).all():
                return

    def _agree(self, call: str, size: int, message: Any = b"", state: int = GOING) -> None:
        """Meet the other ranks at this call."""
        self.traffic["agreements"] += 1
        self._meeting.say(state, CALLS[call], size, message)
        if self._n_to_come:
            self.end(f"{message.decode(errors='replace')}, while other ranks may be waiting for its sum")
        self.traffic["agreement bytes"] += len(self._meeting.own) * (self.size - 1)
        said = [self._meeting.own, MPI.BYTE], [self._meeting.all, MPI.BYTE]
        self._wait(self._comm.Iallgather(*said).Test, for_others=True)
        if not self._meeting.agree():
            self._explain(message, state)

    def _explain(self, message: bytes, state: int) -> None:
        """Raise an error that says why the ranks do not agree, on each rank that would have gone on."""
        n_bytes, states = self._meeting.n_bytes(), self._meeting.states()
        if (states != GOING).any():
            n_bytes[states == GOING] = 0
            texts = self._messages(n_bytes, message if state != GOING else b"")
            if state == GOING:
                raise RankError("; ".join(bytes(text).decode() for text in texts if len(text)))
            return
        raise RankError(
            disagreement(
                [(number, NAMES[call], size, step) for number, call, size, step in self._meeting.places()]
            )
        )

    def _messages(self, n_bytes: Any, message: bytes) -> Any:
        """Return what all ranks had to send when they met, given the number of bytes of each."""
        if n_bytes.max(initial=0) <= self._meeting.room:
            return self._meeting.messages(n_bytes)
        starts = np.concatenate([[0], np.cumsum(n_bytes)])
        texts = np.empty(starts[-1], np.uint8)
        received = [texts, n_bytes.tolist(), starts[:-1].tolist(), MPI.BYTE]
        self._wait(self._comm.Iallgatherv([np.frombuffer(message, np.uint8), MPI.BYTE], received).Test)
        return [texts[start:stop] for start, stop in itertools.pairwise(starts)]

    def _fail(self, text: str) -> None:
        self._agree("fail", 0, text.encode(errors="replace"), FAILED)

    def _allreduce(self, array: np.ndarray, op: str, met: bool) -> None:
        if not self._sent_with_meeting(op, array, met):
            self._wait(self._comm.Iallreduce(MPI.IN_PLACE, array, OPERATIONS[op]).Test, for_others=met)
        elif op == "sum":
            self._meeting.add_up(array)
        else:
            EXTREMES[op].reduce(self._meeting.stack(array), axis=0, out=array)

    def _reduce_scatter(self, array: np.ndarray, counts: Sequence[int], met: bool) -> np.ndarray:
        part = np.empty(counts[self.rank], array.dtype)
        if self._sent_with_meeting("reduce_scatter", array, met):
            self._meeting.add_up(part, sum(counts[: self.rank]))
        else:
            self._wait(self._comm.Ireduce_scatter(array, part, counts, MPI.SUM).Test, for_others=met)
        return part

    def _sent_with_meeting(self, call: str, array: np.ndarray, met: bool = False) -> bool:
        """Meet the others unless they have ``met``. Return whether the array was short and sent with that."""
        if met:
            return False
        self._agree(call, array.size, array)
        return array.nbytes <= self._meeting.room

    def _allgather(self, value: Any) -> list[Any]:
        message = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        self._count(len(message) * (self.size - 1))
        self._agree("allgather", 0, message)
        return [pickle.loads(text) for text in self._messages(self._meeting.n_bytes(), message)]

    def _stack(self, array: np.ndarray) -> np.ndarray:
        self._count(array.nbytes * (self.size - 1))
        if self._sent_with_meeting("stack", array):
            return self._meeting.stack(array)
        arrays = np.empty((self.size, *array.shape), array.dtype)
        self._wait(self._comm.Iallgatherv([array, MPI.BYTE], [arrays, MPI.BYTE]).Test)
        return arrays

    def _alltoall(self, values: Sequence[Any]) -> list[Any]:
        messages = [pickle.dumps(value, pickle.HIGHEST_PROTOCOL) for value in values]
        lengths = np.array([len(message) for message in messages])
        self._count(int(lengths.sum() - lengths[self.rank]))
        self._agree("alltoall", 0)
        coming = np.empty_like(lengths)
        self._wait(self._comm.Ialltoall(lengths, coming).Test)
        out = np.frombuffer(b"".join(messages), np.uint8)
        inbox: Any = np.empty(coming.sum(), np.uint8)
        stops = coming.cumsum()
        self._wait(
            self._comm.Ialltoallv(
                [out, lengths.tolist(), (lengths.cumsum() - lengths).tolist(), MPI.BYTE],
                [inbox, coming.tolist(), (stops - coming).tolist(), MPI.BYTE],
            ).Test
        )
        return [pickle.loads(inbox[stop - n : stop]) for stop, n in zip(stops, coming, strict=True)]

    def _gather_in_turn(self, parts: Iterable[tuple[Any, int]]) -> list[list[Any]]:
        self._agree("gather_in_turn", 0)
        self._n_to_come = 1  # who fails from here on is waited for
        mail, gathered = Mail(self._comm), []
        for value, root in parts:
            message = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
            if root == self.rank:
                gathered.append(message)
            else:
                self._count(len(message))
                mail.send(message, root)
            mail.take_in(len(gathered))
        self._wait(lambda: mail.take_in(len(gathered)) and mail.is_sent())
        self._n_to_come = 0
        of_all = [gathered if rank == self.rank else mail.received[rank] for rank in range(self.size)]
        return [list(map(pickle.loads, messages)) for messages in zip(*of_all, strict=True)]

    def _wait(self, is_done: Callable[[], bool], for_others: bool = False) -> None:
        """Wait until it is done. A rank naps only while others are missing, as messages need its calls."""
        try:
            for _ in range(N_TESTS):
                if is_done():
                    return
            waited, last = 0.0, time.monotonic()
            while not is_done():
                now = time.monotonic()
                waited, last = waited + min(now - last, LONGEST_STEP), now
                if waited > self.timeout or (waited > NAP_AFTER and self._comm.Iprobe(tag=ROLL_CALL)):
                    break
                if for_others and waited > NAP_AFTER:
                    time.sleep(min(waited / 20, LONGEST_NAP))
                else:
                    os.sched_yield()
            else:
                return
        except BaseException as error:  # the others still count on this exchange
            self.end(f"rank {self.rank} was interrupted at {self.step}: {type(error).__name__}: {error}")
        self._call_the_roll()

    def _call_the_roll(self) -> None:
        """Find out which ranks are missing, by asking all that can still answer, and end the job."""
        status, present = MPI.Status(), {self.rank}
        requests = [self._comm.Isend(b"", rank, ROLL_CALL) for rank in range(self.size) if rank != self.rank]
        last = time.monotonic() + min(1 + self.size / 100, self.timeout)
        while len(present) < self.size and time.monotonic() < last:
            if self._comm.Iprobe(tag=ROLL_CALL, status=status):
                self._comm.Recv(bytearray(), status.Get_source(), ROLL_CALL)
                present.add(status.Get_source())
            else:
                time.sleep(LONGEST_NAP)
        missing = sorted(set(range(self.size)) - present)
        who = f"rank {', '.join(map(str, missing))}" if missing else "some rank"
        if self.rank == min(present):
            self.end(
                f"{who} did not reach {self.step!r} within {self.timeout:g} s. If the ranks are only slow, "
                'pass a longer timeout: joblib.parallel_config("mpi", timeout=...).'
            )
        time.sleep(5)
        MPI.Request.Waitall(requests)
        self._abort("")

    def _abort(self, message: str) -> None:
        if message:
            print(f"ranktrees: {message}", file=sys.stderr, flush=True)
        self._comm.Abort(1)


class Mail:
    """Messages that are on their way while this rank does something else; each call moves them on."""

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._requests: list[Any] = []
        self._messages: list[Any] = []
        self._n_sent = [0] * comm.size
        self._coming: list[list[Any]] = [[] for _ in range(comm.size)]
        self.received: list[list[Any]] = [[] for _ in range(comm.size)]

    def send(self, message: bytes, rank: int) -> None:
        self._messages.append(message)  # which must stay where it is until it is sent
        self._requests.append(self._comm.Isend(message, rank, FIRST_PART + self._n_sent[rank]))
        self._n_sent[rank] += 1

    def is_sent(self) -> bool:
        return MPI.Request.Testall(self._requests)

    def take_in(self, n: int) -> bool:
        """Receive what has come. Return whether these are n messages from each of the other ranks."""
        status, complete = MPI.Status(), True
        self.is_sent()
        for rank, (coming, received) in enumerate(zip(self._coming, self.received, strict=True)):
            if rank == self._comm.rank:
                continue
            tag = FIRST_PART + len(received) + len(coming)
            while (message := self._comm.Improbe(rank, tag, status)) is not None:
                room = bytearray(status.Get_count(MPI.BYTE))
                coming.append((message.Irecv(room), room))
                tag += 1
            while coming and coming[0][0].Test():
                received.append(coming.pop(0)[1])
            complete = complete and len(received) >= n
        return complete
