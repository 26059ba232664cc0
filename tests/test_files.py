"""Files are replaced whole, with the permissions that they had; what killed writers leave is removed."""

import errno
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from ranktrees import HistGBRTRegressor, RandomForestRanker
from ranktrees.datasets import dump_letor, load_letor
from ranktrees.estimators import boosted, random_forest
from ranktrees.support.files import remove_file, replace_file, replacing
from ranktrees.support.spool import Spool

KILLED_WHILE_WRITING = """
import os, signal, sys
from ranktrees.support.files import replacing

with replacing(sys.argv[1], "a model") as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model"


def kill_a_writer_of(path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, path], env=environment, check=False)


def names_beside(path):
    return sorted(other.name for other in path.parent.iterdir())


@pytest.mark.parametrize("then", [lambda path: replace_file(path, b"new", "a model"), remove_file])
def test_what_killed_writers_have_left_is_removed(path, then):
    replace_file(path, b"old", "a model")
    kill_a_writer_of(path)
    assert len(names_beside(path)) == 2
    assert path.read_bytes() == b"old"
    then(path)
    assert names_beside(path) == (["model"] if path.exists() else [])


def test_what_others_still_write_or_call_alike_stays(path):
    own = [path.with_name(name) for name in (".model.notes.tmp", "model.tmp", f".model2.{'0' * 32}.tmp")]
    for other in own:
        other.write_bytes(b"own")
    with replacing(path, "a model") as first:
        first.write(b"first")
        replace_file(path, b"second", "a model")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert names_beside(path) == sorted(["model", *(other.name for other in own)])


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o400])
def test_a_file_keeps_its_permissions(path, mode):
    replace_file(path, b"old", "a model")
    path.chmod(mode)
    with replacing(path, "a model") as file:
        assert os.fstat(file.fileno()).st_mode & 0o777 == mode  # from the first byte on
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_those_of_any_new_file(path, mask):
    before = os.umask(mask)
    try:
        replace_file(path, b"new", "a model")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask


def test_links_stay_and_what_they_lead_to_is_replaced(path):
    replace_file(path, b"old", "a model")
    link = path.with_name("link")
    link.symlink_to(path)
    replace_file(link, b"new", "a model")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"


def test_pipes_are_written_to(path):
    os.mkfifo(path)
    came = []
    reader = threading.Thread(target=lambda: came.append(path.read_bytes()))
    reader.start()
    replace_file(path, b"new", "a model")
    reader.join()
    assert came == [b"new"]
    assert path.is_fifo()


needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
FULL = r"\[Errno 28\] No space left on device, so {} cannot be written: '{}'"


@needs_full
def test_a_full_disk_is_told_with_the_file_and_what_was_to_be_in_it():
    with pytest.raises(OSError, match=FULL.format("the model", "/dev/full")):
        replace_file("/dev/full", b"new", "the model")


@needs_full
def test_a_full_disk_is_told_with_the_folder_of_rows(tmp_path):
    rows = Spool(tmp_path)
    with (
        open("/dev/full", "wb", buffering=0) as rows._file,
        pytest.raises(OSError, match=FULL.format("a temporary file of rows", tmp_path)),
    ):
        rows.append(np.eye(2))


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2"])
def test_rows_that_cannot_be_written_leave_the_file_as_it_was(tmp_path, monkeypatch, suffix):
    path = tmp_path / f"rows.txt{suffix}"
    dump_letor(np.eye(2), [1, 0], path, qid=[1, 1])
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=FULL.format("the rows", path)):
        dump_letor(np.ones((9, 2)), np.ones(9), path, qid=np.ones(9, int))
    assert path.read_bytes() == before
    assert names_beside(path) == [path.name]
    assert load_letor(path).data.tolist() == [[1, 0], [0, 1]]


@pytest.mark.skipif(sys.platform != "linux", reason="no file can be made in Linux's /proc")
@pytest.mark.parametrize("model", [HistGBRTRegressor(), RandomForestRanker()])
def test_a_checkpoint_that_cannot_be_written_is_found_before_the_first_tree(monkeypatch, model):
    for module, grow in ((boosted, "boost"), (random_forest, "grow_forest")):
        monkeypatch.setattr(module, grow, lambda *_, **__: pytest.fail("trees were grown"))
    X = np.random.default_rng(0).normal(size=(50, 2))
    model.set_params(checkpoint="/proc/fit.checkpoint")
    with pytest.raises(OSError, match=r"so the checkpoint cannot be written: '/proc/fit.checkpoint'"):
        model.fit(X, X[:, 0], qid=np.zeros(50))
