"""Training on several processes and machines by MPI. Importing this registers the joblib backend "mpi".

All ranks run one program, each with whole queries of its own, and get the same model (``mpiexec -n 4 python``):

>>> with joblib.parallel_config("mpi", timeout=300):  # doctest: +SKIP
...     ranker = LambdaMARTRanker().fit(X_mine, y_mine, qid=qid_mine)

or one program, the driver, has all rows, starts the ranks, and deals rows and tasks to them (``python ...``):

>>> with joblib.parallel_config("mpi", n_ranks=4):  # doctest: +SKIP
...     ranker = LambdaMARTRanker().fit(X, y, qid=qid)
"""

import importlib.util

from joblib import register_parallel_backend

from ranktrees.mpi.launching import INSTALL, announced_size

if importlib.util.find_spec("mpi4py") is None:
    raise ImportError(f"ranktrees.mpi needs mpi4py and an MPI: {INSTALL}")

__all__ = ["rank", "size"]


def rank():
    """The number of this rank among those that run the program: 0 where no launcher has started it.

    Returns
    -------
    rank : int
    """
    return _world().rank if announced_size() else 0


def size():
    """How many ranks run the program: 1 where no launcher has started it.

    Returns
    -------
    size : int
    """
    return _world().size if announced_size() else 1


def _world():
    from ranktrees.mpi.spmd import world

    return world()


def _backend(**settings):
    """What "mpi" means: whether a launcher has started this process decides."""
    from ranktrees.mpi.spmd import EveryRank

    return EveryRank(**settings)


register_parallel_backend("mpi", _backend)
if announced_size():
    _world()  # from here on the others hear of it when this rank ends
