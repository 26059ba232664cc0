"""What an extension is compiled from, as the compiler itself sees it, and which module imports which."""

import ast
import importlib.util
import re
import shutil
import subprocess
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "pyx" / "ranktrees" / "_core"
SOURCES = sorted(CORE.rglob("*.pyx"))


@pytest.fixture
def uses(monkeypatch):
    """The module by which a build knows what to compile again."""
    monkeypatch.chdir(ROOT)
    spec = importlib.util.spec_from_file_location("uses", ROOT / "pyx" / "uses.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def used_of(uses, source):
    return {(ROOT / path).resolve() for path in uses.used_by(source.relative_to(ROOT))}


@pytest.mark.skipif(shutil.which("cc") is None, reason="asks a C compiler")
def test_headers_are_those_that_the_compiler_reads(uses, tmp_path):
    for source in SOURCES:
        used = used_of(uses, source)
        texts = [path.read_text() for path in (source, *used) if path.suffix != ".h"]
        named = {name for text in texts for name in re.findall(r'cdef extern from "([\w/.]+)"', text)}
        program = tmp_path / f"{source.stem}.c"
        program.write_text("".join(f'#include "{name}"\n' for name in sorted(named)))
        command = ["cc", "-MM", f"-I{CORE}", str(program)]
        read = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        headers = {path for path in map(Path, read) if path.suffix == ".h"}
        assert headers == {path for path in used if path.suffix == ".h"}, source


def test_a_change_compiles_what_it_touches(uses):
    by_file = {}
    for source in SOURCES:
        for path in used_of(uses, source):
            by_file.setdefault(path.name, set()).add(source.stem)
    assert by_file["board.h"] == {"meeting"}
    assert by_file["words.pxd"] == {"words", "growth_over_ranks"}
    assert by_file["formulas.pxi"] == {"combining", "ranking"}
    assert by_file["growth.pxd"] == {"growth", "growth_over_ranks"}
    every = {path.name for path in CORE.rglob("*") if path.suffix in (".h", ".pxd", ".pxi")}
    assert set(by_file) == every  # nothing lies about that no kernel uses


def test_modules_import_one_another_one_way():
    """Also where only types are imported. The error names a circle."""
    files = sorted((ROOT / "src" / "ranktrees").rglob("*.py"))
    modules = {".".join(path.relative_to(ROOT / "src").with_suffix("").parts): path for path in files}
    modules = {name.removesuffix(".__init__"): path for name, path in modules.items()}
    imported = {name: set() for name in modules}
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                names = (f"{node.module}.{alias.name}" for alias in node.names)
                imported[name] |= {each if each in modules else node.module for each in names}
    tuple(TopologicalSorter(imported).static_order())
