"""Pages can be read: paragraphs are short, lines of code are not cut, every parameter has its place."""

import importlib
import re
from inspect import signature
from itertools import pairwise
from pathlib import Path

import pytest

import ranktrees

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
FOLDERS = "guide", "performance", "architecture"
PAGES = [ROOT / "README.md", DOCS / "index.md"]
PAGES += sorted(page for each in FOLDERS for page in (DOCS / each).glob("*.md"))
MOST_WORDS = 90
MOST_CHARACTERS = 114  # a prompt and a line of 110: as many as the column of `docs/_static/wide.css` holds


@pytest.fixture
def extension(monkeypatch):
    monkeypatch.syspath_prepend(DOCS / "_extensions")
    return importlib.import_module


def tokens(page):
    parser = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    return parser.parse(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_paragraphs_are_short(page):
    paragraphs = [text for start, text in pairwise(tokens(page)) if start.type == "paragraph_open"]
    assert paragraphs
    long = {each.map[0] + 1: n for each in paragraphs if (n := len(each.content.split())) > MOST_WORDS}
    assert not long, f"lines whose paragraphs have more than {MOST_WORDS} words: {long}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_lines_of_code_fit_the_column(page):
    long = {
        block.map[0] + k: len(line)
        for block in tokens(page)
        if block.type == "fence"
        for k, line in enumerate(block.content.splitlines(), 2)
        if len(line) > MOST_CHARACTERS
    }
    assert not long, f"lines of code with more than {MOST_CHARACTERS} characters: {long}"


def test_every_parameter_has_one_heading(extension):
    module = extension("parameter_groups")
    grouped = [name for names in module.GROUPS.values() for name in names]
    assert len(grouped) == len(set(grouped))
    parameters = {name for each in module.CLASSES for name in signature(getattr(ranktrees, each)).parameters}
    assert parameters == set(grouped)


def test_groups_keep_every_description(extension):
    module = extension("parameter_groups")
    for name in module.CLASSES:
        cls = getattr(ranktrees, name)
        if cls.__doc__ is None:  # python -OO
            continue
        text = module.in_groups(cls.__doc__.splitlines())
        entries = re.findall(r"^(\w+(?:, \w+)*) : ", text.partition("\nAttributes\n")[0], re.MULTILINE)
        assert sorted(", ".join(entries).split(", ")) == sorted(signature(cls).parameters)
        assert "\nParameters\n" not in text
        assert text.endswith(cls.__doc__.partition("\nAttributes\n")[2].rstrip() + "\n")


def test_every_example_has_its_place(extension):
    for section, names in extension("story").SECTIONS.items():
        if section != "tutorial":  # by their numbers
            assert sorted(names) == sorted(each.name for each in (ROOT / "examples" / section).glob("*.py"))


def test_titles_of_papers_are_found_whatever_their_case(extension):
    dois = extension("dois")
    for title, doi in dois.BY_TITLE.items():
        assert dois.doi_of(title.upper().replace(" ", "\n  ")) == doi
    assert dois.doi_of("Random forests, again") is None
