import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "typing" / "program.py"


@pytest.mark.parametrize("checker", ["mypy", "basedpyright", "pyright"])
def test_the_types_of_a_program(checker):
    if find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    options = ["--strict", "--config-file=", "--cache-dir=/dev/null"] if checker == "mypy" else []
    checked = subprocess.run(
        [sys.executable, "-m", checker, *options, PROGRAM], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
