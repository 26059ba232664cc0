"""Where the compiled kernels land (their sources are in ``pyx/``)."""

import os

# A thread of GNU's OpenMP that waits for others looks for them 300,000 times, for some milliseconds, before
# it sleeps. Where other programs run, too, those who are waited for lack this time. How often it is to look
# OpenMP reads when it is loaded, with the first kernel.
SPINS = "1000"

if os.environ.keys().isdisjoint(("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")):
    os.environ["GOMP_SPINCOUNT"] = SPINS
    try:
        from ranktrees._core import threads  # noqa: F401
    finally:
        del os.environ["GOMP_SPINCOUNT"]
