import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# Ranks and threads wait for each other, and machines for other work: a test may take its time.
settings.register_profile("in its own time", settings.default, deadline=None)
settings.load_profile("in its own time")


@pytest.fixture(scope="module")
def every_thread():
    """Threads even for the least of work, from the first test of a module that asks for it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ranktrees.support.parallel.VALUES_PER_THREAD", 1)
        yield


@pytest.fixture
def interrupts():
    """Called with a number of seconds, it sends Ctrl-C after these, or with 0 not at all."""
    if not hasattr(signal, "setitimer"):
        pytest.skip("there is no timer that sends signals")
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
