"""Training on several processes and machines by MPI. Importing this registers the joblib backend "mpi".

Either all ranks run the same program, each with whole queries of its own, and get the same model
(``mpiexec -n 4``):

>>> with joblib.parallel_config("mpi", timeout=300):  # doctest: +SKIP
...     ranker = LambdaMARTRanker().fit(X_mine, y_mine, qid=qid_mine)

Or a single program, the driver, has all rows, starts the ranks, and deals rows and tasks to them
(``python ...``):

>>> with joblib.parallel_config("mpi", n_ranks=4):  # doctest: +SKIP
...     ranker = LambdaMARTRanker().fit(X, y, qid=qid)
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any

from joblib import register_parallel_backend
from joblib.parallel import ThreadingBackend

from ranktrees.mpi.launching import ADDRESS, INSTALL, announced_size
from ranktrees.support.systems import require_system

require_system("ranktrees.mpi", "linux")  # handles of processes, and /proc

if lacking := [
    name for name in ("mpi4py", "cloudpickle", "xxhash") if importlib.util.find_spec(name) is None
]:
    raise ImportError(f"ranktrees.mpi needs {', '.join(lacking)}, and an MPI: {INSTALL}")

__all__ = ["rank", "shutdown", "size"]


def rank() -> int:
    """Return the number of this rank among those that run the program, or 0 if no launcher has started it.

    Returns
    -------
    rank : int
        The number, from 0 on.

    Examples
    --------
    >>> import ranktrees.mpi
    >>> ranktrees.mpi.rank()
    0
    """
    return _world().rank if announced_size() else 0


def size() -> int:
    """Return the number of ranks that run the program, or 1 if no launcher has started it.

    Returns
    -------
    size : int
        The number of ranks.

    Examples
    --------
    >>> import ranktrees.mpi
    >>> ranktrees.mpi.size()
    1
    """
    return _world().size if announced_size() else 1


def shutdown() -> None:
    """End all ranks that this process has started. The next fit that needs ranks starts new ones.

    Examples
    --------
    >>> import ranktrees.mpi
    >>> ranktrees.mpi.shutdown()
    """
    from ranktrees.mpi import driver

    driver.shutdown()


def _world() -> Any:
    from ranktrees.mpi.spmd import world

    return world()


def _backend(nesting_level: int | None = None, **settings: Any) -> Any:
    """Return the backend "mpi", which depends on how this process was started."""
    if ADDRESS in os.environ:  # a task on a rank, whose own tasks run in threads, as joblib nests
        return ThreadingBackend(nesting_level)
    starts_ranks = bool(settings.keys() & {"n_ranks", "launcher"})
    if starts_ranks and announced_size() > 1:
        raise ValueError(
            f"n_ranks and launcher are for a driver that starts ranks, but here {announced_size()} ranks "
            "run the program. Leave them out, or run it without mpiexec."
        )
    if announced_size() and not starts_ranks:
        from ranktrees.mpi.spmd import EveryRank

        return EveryRank(nesting_level=nesting_level, **settings)
    from ranktrees.mpi.driver import Driver

    return Driver(nesting_level=nesting_level, **settings)


register_parallel_backend("mpi", _backend)
if announced_size():
    _world()  # from here on the other ranks learn of it when this rank ends
