"""Each benchmark runs on a few rows, so that none rots. What it prints is another matter."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

SCRIPTS = {
    "bench_batches.py": "--rows 3000 --features 5 --trees 2",
    "bench_classes.py": "--rounds 3 --sets digits",
    "bench_clicks.py": "--sets 1 --queries 30 --sessions 2",
    "bench_combining.py": "--queries 20 --rows 10 --jobs 1",
    "bench_contributions.py": "--trees 2 --leaves 4 --queries 5 --rows 40 --repeats 1",
    "bench_fit.py": "speed --queries 10 --trees 2 --repeats 1 --threads 1",
    "bench_job.py": "--smoke --threads 1",
    "bench_letor.py": "--rows 30 --features 4 --threads 1 --repeats 1",
    "bench_losses.py": "--queries 10 --repeats 1",
    "bench_records.py": "--queries 20 --trees 2 --repeats 10",
    "bench_sparse.py": "accuracy --kinds one_hot --draws 1 --queries 20",
    "bench_scoring.py": (
        "boosted --trees 2 --leaves 4 --queries 5 --fitted 2 --rows 3 --repeats 1 --seconds 0.01"
    ),
}
PACKAGES = {
    "zoo": "lambdamart 'lambdamart subsample=0.5' --kinds tiny --sizes small --draws 2 --trees 3",
    "lambdasmart": "--tables 1 --queries 20",
    "survey": "--tables 1.1 --sets web --folds 1",  # its other tables take minutes
}
pytestmark = pytest.mark.slow


def run(*command):
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, *command], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_print_a_table(script):
    assert "|--" in run(f"benchmarks/{script}", *SCRIPTS[script].split())


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_print_a_table(package):
    assert "\n|" in run("-m", f"benchmarks.{package}", *shlex.split(PACKAGES[package]))


def test_every_script_is_run_or_needs_real_sets():
    there = {path.name for path in (ROOT / "benchmarks").glob("bench_*.py")}
    assert there - set(SCRIPTS) == {"bench_accuracy.py", "bench_choice.py"}
    there = {path.parent.name for path in (ROOT / "benchmarks").glob("*/__main__.py")}
    assert there - set(PACKAGES) == {"pgbrt"}
