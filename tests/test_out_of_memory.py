"""A fit that finds no memory is an error, which leaves the estimator as it was and the process alive."""

import subprocess
import sys

import pytest

FITS = """
import resource
import numpy as np
from ranktrees import HistGBRTRegressor, RandomForestRanker

X = np.random.default_rng(0).normal(size=(50_000, 20)).astype(np.float32)
y = np.round(X[:, 0] + X[:, 1])
for model in HistGBRTRegressor(max_iter=3), RandomForestRanker(3):
    model.set_params(random_state=0, n_jobs=1).fit(X[:1000], y[:1000], qid=y[:1000])
    before, n_errors = model.ensemble_.digest(), 0
    for megabytes in 1, 4:
        in_use = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (in_use + megabytes * 2**20, resource.RLIM_INFINITY))
        try:
            model.fit(X, y, qid=y)
        except MemoryError:
            n_errors += 1
            assert model.ensemble_.digest() == before
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print(n_errors, model.fit(X[:1000], y[:1000], qid=y[:1000]).ensemble_.digest() == before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux how much memory is in use, and limits it")
def test_a_fit_that_finds_no_memory_leaves_the_estimator_as_it_was():
    done = subprocess.run([sys.executable, "-c", FITS], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        n_errors, same = line.split()
        assert int(n_errors) >= 1
        assert same == "True"
    assert len(done.stdout.splitlines()) == 2
