"""How this process was started, and how ranks are started."""

from __future__ import annotations

import functools
import os
import shutil
import sys
from pathlib import Path

# Variables in the environment of the ranks: the address of their driver, and the key by which both know each
# other.
ADDRESS = "RANKTREES_MPI_DRIVER"
KEY = "RANKTREES_MPI_KEY"

INSTALL = 'pip install "ranktrees[mpi]"'

# Variables by which launchers tell a process the number of ranks. Slurm's own is set in interactive steps of
# one task, too.
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS")
CONNECTIONS = ("PMI_FD", "PMI_PORT", "PMIX_RANK")  # by which MPI knows that it was launched


@functools.cache
def announced_size() -> int:
    """Return the number of ranks that the launcher of this process has announced, or 0 without a launcher."""
    sizes = [int(os.environ[name]) for name in SIZES if os.environ.get(name, "").isdigit()]
    return max(sizes, default=1 if "PMIX_RANK" in os.environ else 0)


def announce_none() -> None:
    """Hide from processes that this rank starts what its launcher has announced: these are no ranks."""
    announced_size()  # which stays
    for name in (*SIZES, *CONNECTIONS):
        os.environ.pop(name, None)
    os.register_at_fork(after_in_child=announced_size.cache_clear)


def default_launcher(n_ranks: int) -> list[str]:
    """Return the command that starts ``n_ranks`` ranks: the ``mpiexec`` beside this Python or in the path."""
    mpiexec = shutil.which("mpiexec", path=Path(sys.executable).parent) or shutil.which("mpiexec")
    if mpiexec is None:
        raise RuntimeError(
            f"there is no mpiexec beside {sys.executable} or in PATH: {INSTALL}, or pass the command that "
            'starts ranks, for instance joblib.parallel_config("mpi", launcher=["srun", "-n", "16"]).'
        )
    return [mpiexec, "-n", str(n_ranks)]
