"""The compiled kernels (their sources are in ``pyx/``)."""

import os

# A thread of GNU's OpenMP that waits for others spins 300,000 times, for some milliseconds, before it sleeps.
# If other programs run as well, this takes time from the threads that are waited for. OpenMP reads the number
# of spins when it is loaded, with the first kernel.
SPINS = "1000"

if os.environ.keys().isdisjoint(("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")):
    os.environ["GOMP_SPINCOUNT"] = SPINS
    try:
        from ranktrees._core.support import threads  # noqa: F401
    finally:
        del os.environ["GOMP_SPINCOUNT"]
