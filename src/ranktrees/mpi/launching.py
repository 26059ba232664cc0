"""How this process was started, and how ranks are."""

import os
import shutil
import sys
from pathlib import Path

# Where the ranks find their driver, and how each knows the other: in the environment of those that it starts.
ADDRESS = "RANKTREES_MPI_DRIVER"
KEY = "RANKTREES_MPI_KEY"

INSTALL = 'pip install "ranktrees[mpi]"'

# What launchers tell a process: how many there are. Slurm's own is set in interactive steps of one task, too.
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "SLURM_STEP_NUM_TASKS")


def announced_size():
    """How many ranks the launcher of this process says there are: 0 where there was none."""
    sizes = [int(os.environ[name]) for name in SIZES if os.environ.get(name, "").isdigit()]
    return max(sizes, default=1 if "PMIX_RANK" in os.environ else 0)


def default_launcher(n_ranks):
    """The command that starts so many ranks: the ``mpiexec`` beside this Python, or else of the path."""
    mpiexec = shutil.which("mpiexec", path=Path(sys.executable).parent) or shutil.which("mpiexec")
    if mpiexec is None:
        raise RuntimeError(
            f"there is no mpiexec beside {sys.executable} nor in PATH: {INSTALL}, or say how ranks are "
            'started, for instance joblib.parallel_config("mpi", launcher=["srun", "-n", "16"]).'
        )
    return [mpiexec, "-n", str(n_ranks)]
