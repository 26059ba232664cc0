"""The tables and figures of the LambdaSMART paper.

    python -m benchmarks.lambdasmart [--tables 1 2] [--queries 2000] [--keep FOLDER] [--page]

Prints each table in Markdown. ``--queries`` is the number of queries to train on in table 1 and the figures,
beside half as many to choose by and as many to test on; the paper's is 10000. With ``--keep`` what is fitted
is kept in a folder, and not fitted again; empty it when the package has changed. ``--page`` puts the tables
into docs/lambdasmart.md, between ``% <table>`` and ``% end``, and draws the figures in docs/figures.
"""

import argparse
import tempfile
from pathlib import Path

from .. import data
from ..survey.markdown import show
from . import adaptation, artificial, steps
from .lab import Lab

TABLES = {name: make for section in (artificial, steps, adaptation) for name, make in section.TABLES.items()}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "lambdasmart.md"


def main():
    parser = argparse.ArgumentParser(
        "python -m benchmarks.lambdasmart",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES), metavar="TABLE")
    parser.add_argument("--queries", type=int, default=2000, help="queries to train on")
    parser.add_argument("--keep", type=Path, help="folder of what is fitted")
    parser.add_argument(
        "--page", action="store_const", const=PAGE, help="put the tables into docs/lambdasmart.md"
    )
    options = parser.parse_args()
    names = options.tables
    if data.folder() is None and "real" in names:
        print("MQ2007 and MQ2008 are not here, so their table is left out; see benchmarks/data.py.\n")
        names = [name for name in names if name != "real"]
    with tempfile.TemporaryDirectory() as passing:
        lab = Lab(options.keep or passing, options.queries, draws=options.page is not None)
        show(TABLES, names, lab, options.page)


if __name__ == "__main__":
    main()
