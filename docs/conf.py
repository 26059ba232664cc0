"""Sphinx configuration: ``sphinx-build -W --keep-going docs docs/_build/html``."""

import importlib
import os
import sys
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")
sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

from docutils import nodes
from sklearn.base import BaseEstimator
from sphinx_gallery.sorting import ExplicitOrder
from story import SECTIONS

import ranktrees

project = "ranktrees"
author = "The ranktrees developers"
copyright = "The ranktrees developers"
release = version = ranktrees.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "drawn_tables",
    "mathml",
    "papers",
    "parameter_groups",
]
exclude_patterns = ["_build", "_extensions", "_inventories"]
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

copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
autosummary_generate = True
METHODS = "decision_function", "fit", "predict", "predict_proba", "score", "split"
# Methods that scikit-learn gives to every estimator, or makes for metadata routing.
common_methods = [
    "get_metadata_routing",
    "set_callbacks",
    "set_output",
    *(
        f"set_{each}_request"
        for each in ("decision_function", "fit", "predict", "predict_proba", "score", "split")
    ),
]
autosummary_context = {
    "common_methods": common_methods,
    "told_elsewhere": {"__init__", *common_methods, *dir(BaseEstimator)},
}
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_preprocess_types = True
napoleon_type_aliases = {
    "Axes": ":class:`~matplotlib.axes.Axes`",
    "DataFrame": ":class:`~pandas.DataFrame`",
    "RandomState": ":class:`~numpy.random.RandomState`",
    "ndarray": ":class:`~numpy.ndarray`",
    "path-like": ":class:`path-like <os.PathLike>`",
    **{
        name: f":class:`~ranktrees.{module}.{name}`"
        for module in ("evaluation", "inspection", "measures", "model", "objectives", "processes")
        for name in importlib.import_module(f"ranktrees.{module}").__all__
        if name[:1].isupper() and not name.isupper() and not hasattr(ranktrees, name)
    },
}

# The inventory of each site, or, where the network does not reach it, the names that these pages use.
intersphinx_mapping = {
    name: (address, (None, f"_inventories/{name}.txt"))
    for name, address in {
        "joblib": "https://joblib.readthedocs.io/en/stable/",
        "matplotlib": "https://matplotlib.org/stable/",
        "numpy": "https://numpy.org/doc/stable/",
        "pandas": "https://pandas.pydata.org/docs/",
        "python": "https://docs.python.org/3/",
        "scipy": "https://docs.scipy.org/doc/scipy/",
        "sklearn": "https://scikit-learn.org/stable/",
    }.items()
}
intersphinx_timeout = 5

suppress_warnings = ["sphinx_gallery.duplicate_filename"]  # it finds the tutorial below the examples as well
sphinx_gallery_conf = {
    "examples_dirs": ["../examples", "../examples/tutorial"],
    "gallery_dirs": ["gallery", "tutorial"],
    "copyfile_regex": r"index\.rst|shop\.py",  # what the tutorial has besides notebooks
    "subsection_order": ExplicitOrder([*(f"../examples/{each}" for each in SECTIONS), "*"]),
    "within_subsection_order": "story.place",
    "ignore_pattern": r"(quickstart|service|shop)\.py",
    "backreferences_dir": "api/generated/examples",
    "doc_module": ("ranktrees",),
    "reference_url": {"ranktrees": None},
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


def trim(app, doctree):
    """Examples in Markdown end with an empty line, for the tests, which readers need not see."""
    for block in doctree.findall(nodes.literal_block):
        if block.rawsource == block.astext():
            block.rawsource = block.rawsource.rstrip()
            block[:] = [nodes.Text(block.rawsource)]


def setup(app):
    app.connect("doctree-read", trim)
    app.connect("autodoc-process-docstring", keep_first_line, priority=100)
