"""joblib's own tests of its back ends, with ours in their place, entered by name: see ``scripts/test-peers``.

All tests of ``joblib/test/test_parallel.py`` are taken that are told which back end to use.
"""

import pytest
from distributed import Client
from joblib.test import test_parallel as theirs
from replaced import taken

import ranktrees.dask
import ranktrees.mpi

NAMES = ["mpi", "dask_rows"]
PLACES = {"backend", "parent_backend", "child_backend", "outer_backend", "inner_backend"}


@pytest.fixture(scope="module", autouse=True)
def workers():
    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
        yield
    ranktrees.mpi.shutdown()


NO_POOL = "looks at the pool, which a back end need not have"
NO_PROXY = "hands the proxy of a manager to tasks, which ranks do not connect to: they know another key"
OTHER_TEXT = "asks for joblib's words; ours say what to pass"
OTHER_CLASS = (
    "takes what is registered for a class named after the back end, with as many tasks as are asked for"
)
NO_IMPORT = "starts a program that does not import ranktrees.mpi or ranktrees.dask"
NO_MEMMAP = "asks for arrays in files, where ranks get them by messages"
NO_RECURSION = "nests tasks without end; that error cannot be sent, and arrives as a RankError that names it"
NO_INITIALIZER = "initializers belong to processes that joblib starts"
OF_DASK = "fails with joblib's own back end for Dask, too"
MEANT = {
    r"test_error_capture\[mpi\]": NO_POOL,
    r"test_dispatch_multiprocessing\[mpi\]": NO_PROXY,
    r"test_invalid_njobs\[mpi\]": OTHER_TEXT,
    r"test_backend_context_manager\[.*": OTHER_CLASS,
    r"test_nested_backend_in_sequential\[.*": OTHER_CLASS,
    r"test_nested_parallelism_limit\[.*": OTHER_CLASS,
    r"(?s)test_parallel_with_(interactively_defined|unpicklable)_functions.*": NO_IMPORT,
    r"test_(auto_memmap_on_arrays_from_generator|memmapping_leaks)\[.*": NO_MEMMAP,
    r"test_thread_bomb_mitigation\[.*mpi.*": NO_RECURSION,
    r"test_initializer_(context|parallel)\[.*": NO_INITIALIZER,
    r"test_(nested_loop|parallel_timeout_fail_with_generator|dispatch_one_job)\[.*dask_rows\]": OF_DASK,
    r"test_(error_capture|invalid_njobs|nested_backend_context_manager)\[.*dask_rows\]": OF_DASK,
    r"test_(backend_nesting_level|backend_batch_statistics_reset)\[.*dask_rows\]": OF_DASK,
}

ENDLESS = {
    r"test_thread_bomb_mitigation\[.*dask_rows.*": "nests tasks without end, which Dask does, too",
    r"test_(nested_loop|backend_nesting_level)\[.*(mpi-dask_rows|dask_rows-mpi)\]": "nests one in the other",
}

globals().update(taken(theirs, PLACES, NAMES))
