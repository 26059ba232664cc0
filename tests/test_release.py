"""What is released together agrees: links of the README, addresses, versions and dependencies."""

import importlib.util
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import ranktrees

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PLACES = {"Documentation": "https://docs/", "Repository": "https://repository"}


@pytest.fixture(scope="module")
def with_addresses():
    spec = importlib.util.spec_from_file_location("readme", ROOT / "pyx" / "readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.with_addresses


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("[a](docs/guide/a.md)", "[a](https://docs/guide/a.html)"),
        ("[two\nwords](docs/a.md#b)", "[two\nwords](https://docs/a.html#b)"),
        ("[a](A.md)", "[a](https://repository/blob/HEAD/A.md)"),
        ("[a](docs/b.svg)", "[a](https://repository/blob/HEAD/docs/b.svg)"),
        ("![a](docs/b.svg)", "![a](https://repository/raw/HEAD/docs/b.svg)"),
        ("[a](#b)", "[a](https://repository/blob/HEAD/README.md#b)"),
        ("[a](https://b/c.md#d)", "[a](https://b/c.md#d)"),
        ("f[i](x, y)", "f[i](x, y)"),
    ],
)
def test_links_get_addresses(with_addresses, link, expected):
    assert with_addresses(link, PLACES) == expected


def test_links_of_the_readme_lead_somewhere(with_addresses):
    text = with_addresses((ROOT / "README.md").read_text(encoding="utf-8"), PLACES)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(targets) > 20
    for target in targets:
        path, _, heading = target.partition("#")
        path = re.sub(r"^https://docs/(.*)\.html$", r"docs/\1.md", path)
        path = ROOT / re.sub(r"^https://repository/(blob|raw)/HEAD/", "", path)
        assert path.is_file(), target
        names = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert not heading or heading in {
            re.sub(r"[^\w -]", "", name.lower()).replace(" ", "-") for name in names
        }


def test_addresses_and_dependencies_are_the_same_everywhere():
    repository, documentation = PROJECT["urls"]["Repository"], PROJECT["urls"]["Documentation"]
    for name in ("CITATION.cff", "conda/recipe.yaml"):
        found = set(re.findall(r"https:\S+", (ROOT / name).read_text(encoding="utf-8")))
        assert found == {repository, documentation}, name
    recipe = (ROOT / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    needed = re.findall(
        r"^    - (.*)$", recipe.partition("  run:\n")[2].partition("\ntests:")[0], re.MULTILINE
    )
    assert [each.replace(" ", "") for each in needed] == ["python", *PROJECT["dependencies"]]


@pytest.mark.skipif(shutil.which("bash") is None, reason="asks a script")
def test_a_release_that_is_not_ready_is_refused():
    done = subprocess.run(
        [ROOT / "scripts" / "check-release", "v9", "https://elsewhere"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"the tag is v9, and src/ranktrees/support/version.py says {ranktrees.__version__}" in done.stderr
    assert "does not name https://elsewhere as Repository" in done.stderr


def test_the_guide_names_tests_that_there_are():
    page = (ROOT / "docs" / "guide" / "faults.md").read_text(encoding="utf-8")
    named = re.findall(r"^- `(\w+\.py)::(\w+)`$", page, re.MULTILINE)
    assert len(named) > 20
    for file, name in named:
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), f"{file}::{name}"
