"""Processes and memory that programs of ranks could leave behind."""

import contextlib
import os
import time
import uuid
from pathlib import Path

MARK = "RANKTREES_TEST_MARK"


def processes(mark):
    """The processes that have this mark in their environment, but for this one."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return [pid for pid in found if pid != os.getpid()]


def abandoned():
    """The memory of MPICH that has a name, but that no process has in use."""
    files = {str(path) for path in Path("/dev/shm").glob("mpich*")}
    for maps in Path("/proc").glob("[0-9]*/maps") if files else ():
        with contextlib.suppress(OSError):
            files -= {line.split()[-1] for line in maps.read_text().splitlines()}
    return files


@contextlib.contextmanager
def nothing_left():
    """What is started here is gone in the end, and so is its memory."""
    mark, marked = uuid.uuid4().hex, os.environ.get(MARK)
    before = abandoned()
    os.environ[MARK] = mark
    try:
        yield
    finally:
        os.environ[MARK] = marked or ""
        last = time.monotonic() + 5
        while processes(mark) and time.monotonic() < last:
            time.sleep(0.02)
        assert not processes(mark)
        files = abandoned() - before
        while files and time.monotonic() < last:  # of others that start at this moment
            time.sleep(0.02)
            files &= abandoned()
        assert not files
