"""Threads of a program fit and score at the same time, also where Python has no global lock."""

import pkgutil
import subprocess
import sys
import sysconfig

import pytest
import threads

from ranktrees import _core


def test_threads_get_what_each_would_get_alone():
    assert threads.run(4, 0.5).total() >= 4


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="a Python with a global lock")
def test_no_kernel_brings_the_global_lock_back():
    names = [found.name for found in pkgutil.walk_packages(_core.__path__, "ranktrees._core.")]
    program = f"import sys, {', '.join(names)}; assert not sys._is_gil_enabled()"
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
