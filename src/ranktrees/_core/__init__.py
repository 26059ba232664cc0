"""Where the compiled kernels land (their sources are in ``pyx/``)."""

import os

# GNU's OpenMP looks 300,000 times, some milliseconds, whether others have come before a thread that waits for them goes to
# sleep. Where other programs want the processors, too, those who are waited for lack that time. It reads how often it is to
# look when it is loaded, with the first kernel.
SPINS = "1000"

if os.environ.keys().isdisjoint(("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")):
    os.environ["GOMP_SPINCOUNT"] = SPINS
    try:
        from ranktrees._core import threads  # noqa: F401
    finally:
        del os.environ["GOMP_SPINCOUNT"]
