"""Ranks as threads of this process: what training together does, without MPI."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ranktrees.communicator import Communicator, RankError


class _Table:
    """What the ranks lay their arrays on."""

    def __init__(self, size):
        self.size = size
        self.places = [None] * size
        self.barrier = threading.Barrier(size, timeout=60)
        self.error = None


class Thread(Communicator):
    """One of several threads that train together."""

    def __init__(self, rank, table):
        super().__init__()
        self.rank, self.size, self.table = rank, table.size, table

    def _meet(self):
        try:
            self.table.barrier.wait()
        except threading.BrokenBarrierError:
            raise RankError(self.table.error or "a rank is missing") from None

    def _allgather(self, value):
        self.table.places[self.rank] = value
        self._meet()
        values = list(self.table.places)
        self._meet()
        return values

    def _allreduce(self, array, op):
        arrays = self._allgather(array.copy())
        assert len({(a.shape, a.dtype) for a in arrays}) == 1, [(a.shape, a.dtype) for a in arrays]
        array[...] = {"sum": np.sum, "max": np.max, "min": np.min}[op](arrays, axis=0)

    def _reduce_scatter(self, array, counts):
        arrays = self._allgather(array.copy())
        first = sum(counts[: self.rank])
        return np.sum(arrays, axis=0)[first : first + counts[self.rank]]

    def _alltoall(self, values):
        return [row[self.rank] for row in self._allgather(values)]

    def fail(self, error):
        self.table.error = f"rank {self.rank} failed at {self.step}: {type(error).__name__}: {error}"
        self.table.barrier.abort()


def together(size, function):
    """What ``function(communicator)`` returns on each of ``size`` ranks."""
    table = _Table(size)

    def run(rank):
        communicator = Thread(rank, table)
        try:
            return function(communicator)
        except BaseException as error:
            communicator.fail(error)
            raise

    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(run, rank) for rank in range(size)]
        errors = [future.exception() for future in futures]
    first = [error for error in errors if error is not None and not isinstance(error, RankError)]
    if first or any(errors):
        raise (first or [error for error in errors if error])[0]
    return [future.result() for future in futures]
