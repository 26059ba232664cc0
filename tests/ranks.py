"""Ranks as threads of this process, to test training together without MPI."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ranktrees.processes.communicator import Communicator, RankError, cause_of


class _Table:
    """Where the ranks lay what they say: on two sides in turn, as others may still read the last."""

    def __init__(self, size):
        self.size = size
        self.sides = [None] * size, [None] * size
        self.barrier = threading.Barrier(size, timeout=60)


class _Failure(str):
    """What a rank says that cannot go on."""


class Thread(Communicator):
    """One of several threads that train together."""

    def __init__(self, rank, table):
        super().__init__()
        self.rank, self.size, self.table = rank, table.size, table
        self.turn = self.failed = 0

    def _allgather(self, value):
        side, self.turn = self.table.sides[self.turn], 1 - self.turn
        side[self.rank] = value
        try:
            self.table.barrier.wait()
        except threading.BrokenBarrierError:
            raise RankError("a rank is missing") from None
        said = list(side)
        for failure in said:
            if isinstance(failure, _Failure) and not isinstance(value, _Failure):
                raise RankError(failure)
        return said

    def _allreduce(self, array, op, met):
        arrays = self._allgather(array.copy())
        assert len({(a.shape, a.dtype) for a in arrays}) == 1, [(a.shape, a.dtype) for a in arrays]
        array[...] = {"sum": np.sum, "max": np.max, "min": np.min}[op](arrays, axis=0)

    def _reduce_scatter(self, array, counts, met):
        arrays = self._allgather(array.copy())
        first = sum(counts[: self.rank])
        return np.sum(arrays, axis=0)[first : first + counts[self.rank]]

    def _alltoall(self, values):
        return [row[self.rank] for row in self._allgather(values)]

    def fail(self, error):
        if not self.failed and not isinstance(error, RankError):
            self.failed = True
            self._allgather(
                _Failure(f"rank {self.rank} failed at {self.step}: {type(error).__name__}: {error}")
            )


def together(size, function):
    """What ``function(communicator)`` returns on each of ``size`` ranks."""
    table = _Table(size)

    def run(rank):
        communicator = Thread(rank, table)
        with communicator:
            return function(communicator)

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(run, rank) for rank in range(size)]
        errors = [error for future in futures if (error := future.exception()) is not None]
    if errors:
        raise cause_of(errors)
    return [future.result() for future in futures]
