"""What only some calls need is imported by these calls."""

import subprocess
import sys

AS_NEEDED = (
    *(
        "pandas",
        "polars",
        "pyarrow",
        "matplotlib",
        "tqdm",
        "rich",
        "onnx",
        "distributed",
        "mpi4py",
        "cloudpickle",
    ),
    *(
        "lightgbm",
        "xgboost",
        "catboost",
        "scipy.stats",
        "scipy.optimize",
        "sklearn.ensemble",
        "sklearn.pipeline",
    ),
)

# scikit-learn imports some of these for itself. None of them can be imported again after that.
PROGRAM = """
import sys
import scipy
import sklearn.base, sklearn.metrics, sklearn.model_selection
for name in sys.argv[1:]:
    sys.modules[name] = None
    vars(scipy).pop(name.removeprefix("scipy."), None)
try:
    from scipy import stats
except ModuleNotFoundError:
    import ranktrees
"""


def test_the_library_imports_nothing_that_only_some_calls_need():
    command = [sys.executable, "-c", f"{PROGRAM}\nranktrees.LambdaMARTRanker", *AS_NEEDED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
