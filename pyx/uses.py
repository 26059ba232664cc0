"""What each kernel is compiled from, so that a change compiles what it touches and nothing else."""

import os
import re
from functools import cache
from pathlib import Path

PYX = Path("pyx")  # seen from the root of the repository, where packages are built
CORE = PYX / "ranktrees" / "_core"


@cache
def directly_in(path):
    """The files of this folder that a file includes or cimports, and its own declarations."""
    text = path.read_text()
    names = re.findall(r'^\s*(?:#\s*include|cdef extern from|include) "([\w./]+)"', text, re.MULTILINE)
    modules = re.findall(r"^\s*(?:from|cimport) (ranktrees\._core\.[\w.]+)", text, re.MULTILINE)
    found = [folder / name for name in names for folder in (CORE, path.parent)]
    found += [PYX / f"{module.replace('.', '/')}.pxd" for module in modules]
    found = [Path(os.path.normpath(each)) for each in [*found, path.with_suffix(".pxd")]]
    return [each for each in found if each != path and each.exists()]


def used_by(source):
    """All files without which an extension cannot be compiled, but its own source."""
    found, coming = set(), [source]
    while coming:
        new = set(directly_in(coming.pop())) - found
        found |= new
        coming += new
    return sorted(map(str, found))
