"""The library needs nothing that macOS or Windows lacks, or is refused there by an error that says so."""

import os
import subprocess
import sys

LACKING = (
    *("fcntl", "grp", "os.fchmod", "os.fork", "os.pidfd_open", "os.register_at_fork", "os.sched_getaffinity"),
    *("os.sched_yield", "pwd", "resource", "signal.SIGKILL", "signal.pidfd_send_signal", "termios"),
)

# What other packages need of these names, they have taken before they are gone.
AS_ON_WINDOWS = """
import os, signal, sys
import numpy, joblib, scipy.sparse, scipy.special, sklearn.ensemble, sklearn.model_selection
import multiprocessing.connection, subprocess, tempfile

for name in sys.argv[1:]:
    module, _, attribute = name.partition(".")
    if attribute:
        vars(sys.modules[module]).pop(attribute, None)
    else:
        sys.modules[module] = None
sys.platform = "win32"

from ranktrees import Ensemble, LambdaMARTRanker, RandomForestRanker, make_ranking
from ranktrees.command import main

X, y, qid = make_ranking(20, random_state=0, return_X_y_qid=True)
for ranker in LambdaMARTRanker(max_iter=5), RandomForestRanker(5):
    ranker.fit(X, y, qid=qid).save("model.rkt")
    ranker.save("model.rkt")  # which replaces the first
    assert (Ensemble.load("model.rkt").predict(X) == ranker.predict(X)).all()
assert main(["info", "model.rkt"]) == 0
assert os.listdir() == ["model.rkt"]
for name in "ranktrees.mpi", "ranktrees.dask":
    try:
        __import__(name)
    except ImportError as error:
        print(error, file=sys.stderr)
"""


def test_where_names_of_linux_are_lacking_all_works_but_what_says_so(tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", AS_ON_WINDOWS, *LACKING]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.splitlines() == [
        f"{module} works on {systems} only, and this is Windows: call fit without it, which uses all "
        "processors of this machine, or train elsewhere and load the model."
        for module, systems in [("ranktrees.mpi", "Linux"), ("ranktrees.dask", "Linux and macOS")]
    ]
    assert done.returncode == 0
