"""A program that all ranks run, each with rows of its own: ``mpiexec -n P python train.py``."""

from __future__ import annotations

import atexit
import functools
import math
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from joblib.parallel import FallbackToBackend, ParallelBackendBase, ThreadingBackend
from mpi4py import MPI

from ranktrees.mpi.communicator import MPICommunicator
from ranktrees.mpi.launching import announce_none, announced_size
from ranktrees.processes.communicator import checked_timeout
from ranktrees.support.parallel import leave_processors, processors_for

if TYPE_CHECKING:
    from ranktrees.processes.communicator import Communicator


@functools.cache
def world() -> Any:
    """Return the communicator of all ranks of this program. The first call must be made by all ranks."""
    announced, size = announced_size(), MPI.COMM_WORLD.Get_size()
    if announced > 1 and size != announced:
        library = MPI.Get_library_version().splitlines()[0].strip()
        raise RuntimeError(
            f"the launcher has started {announced} ranks, but MPI knows of {size}: it belongs to another "
            f"MPI than the library that mpi4py loads ({library}). Use the mpiexec of that library, for "
            f"instance the one in {Path(sys.executable).parent}."
        )
    ranks = MPICommunicator(MPI.COMM_WORLD)
    announce_none()
    share_machine(ranks)
    atexit.register(leave, ranks)
    os.register_at_fork(after_in_child=functools.partial(atexit.unregister, leave))  # a child is not a rank
    return ranks


def share_machine(ranks: MPICommunicator) -> None:
    """Divide the processors of each machine among its ranks, and leave no memory behind."""
    machine = (MPI.Get_processor_name(), os.sched_getaffinity(0))
    here = [affinity for name, affinity in ranks.allgather(machine) if name == machine[0]]
    leave_processors(processors_for(machine[1], here))
    # MPICH names the memory that ranks share, and the name outlives ranks that are killed. All have it now.
    for file in Path("/dev/shm").glob("mpich_shm_*"):
        if f" {file}\n" in Path("/proc/self/maps").read_text():
            file.unlink(missing_ok=True)


def leave(ranks: MPICommunicator) -> None:
    """Called at the end of a rank, so that ranks that still train learn that it is gone."""
    if MPI.Is_finalized():
        return
    error = getattr(sys, "last_value", None)
    if error is None:
        ranks.leave("has left: its program has ended", math.inf)
    else:
        ranks.leave(f"has left: {type(error).__name__}: {error}", ranks.timeout)


class EveryRank(ParallelBackendBase):
    """The joblib backend of a program that all ranks run. Estimators train together, and tasks are refused.

    Parameters
    ----------
    timeout : float, default=300.0
        The number of seconds that a rank waits for the others.
    nesting_level : int, default=None
        How many tasks of joblib this is inside of; joblib sets it.

    Attributes
    ----------
    communicator : MPICommunicator
        The communicator of all ranks.
    """

    default_n_jobs = -1
    supports_retrieve_callback = True

    def __init__(self, timeout: float = 300.0, nesting_level: int | None = None) -> None:
        super().__init__(nesting_level)
        self.timeout = checked_timeout(timeout)

    @property
    def communicator(self) -> Communicator:
        ranks = world()
        ranks.timeout = self.timeout
        return ranks

    def effective_n_jobs(self, n_jobs: int) -> int:
        return 1

    def configure(self, n_jobs: int = 1, parallel: Any = None, prefer: Any = None, **settings: Any) -> int:
        if prefer == "threads":  # within a rank
            raise FallbackToBackend(ThreadingBackend(nesting_level=self.nesting_level))
        raise RuntimeError(
            "joblib.Parallel, and with it GridSearchCV or cross_validate, cannot deal tasks to ranks that "
            "all run this program, each with rows of its own. Run it without mpiexec, with all rows, and let "
            'joblib.parallel_config("mpi", n_ranks=...) start the ranks.'
        )
