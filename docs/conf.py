"""Sphinx configuration: ``sphinx-build -W --keep-going docs docs/_build/html``."""

import os

os.environ.setdefault("MPLBACKEND", "Agg")

import ranktrees

project = "ranktrees"
author = "The ranktrees developers"
copyright = "The ranktrees developers"
release = version = ranktrees.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
default_role = "py:obj"

html_theme = "furo"
html_title = "ranktrees"
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL", "")
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "monokai"

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_preprocess_types = True

suppress_warnings = ["sphinx_gallery.duplicate_filename"]  # it finds the tutorial below the examples as well
sphinx_gallery_conf = {
    "examples_dirs": ["../examples", "../examples/tutorial"],
    "gallery_dirs": ["gallery", "tutorial"],
    "copyfile_regex": r"index\.rst|shop\.py",  # what the tutorial has besides notebooks
    "within_subsection_order": "FileNameSortKey",
    "ignore_pattern": r"(quickstart|service|shop)\.py",
    "min_reported_time": 1_000_000,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "write_computation_times": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
}


def keep_first_line(app, what, name, obj, options, lines):
    """Napoleon would take the first line of a value's docstring for ``type: description``."""
    if what == "data":
        lines[:0] = ["..", ""]  # an empty comment


def setup(app):
    app.connect("autodoc-process-docstring", keep_first_line, priority=100)
