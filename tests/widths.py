"""Run programs once for each width of registers that this processor has."""

import os
import subprocess
import sys

from ranktrees._core.support import simd


def outputs_of(program):
    """What it prints: one output, if the width does not show."""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "RANKTREES_SIMD": level, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
        ).stdout
        for level in simd.supported()
    }
    assert all(outputs)
    return outputs
