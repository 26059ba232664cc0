"""The tables of Mohan's survey, on sets that are at hand.

    python -m benchmarks.survey [--tables 2.2 3.1] [--sets yandex web] [--quick] [--keep FOLDER] [--page]

Prints each table in Markdown. With ``--keep`` what is fitted is kept in a folder, and not fitted again;
empty it when the package has changed. ``--page`` puts the tables into docs/survey.md, between ``% <table>``
and ``% end``. ``--quick`` takes one small set and one seed: it shows that everything runs, and nothing else.
"""

import argparse
import tempfile
from pathlib import Path

from . import classification, costs, initialised, missing, regression, sets, transfer
from .lab import Lab
from .markdown import show

CHAPTERS = (missing, regression, classification, initialised, transfer, costs)
TABLES = {name: make for chapter in CHAPTERS for name, make in chapter.TABLES.items()}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "survey.md"


def main():
    parser = argparse.ArgumentParser(
        "python -m benchmarks.survey", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES), metavar="TABLE")
    parser.add_argument("--sets", nargs="+", default=list(sets.MAIN), choices=[*sets.MAIN, "mq2007_85"])
    parser.add_argument("--seeds", type=int, default=3, help="fits of each, on sets of one fold")
    parser.add_argument("--jobs", type=int, default=1, help="fits at the same time, one thread each")
    parser.add_argument("--quick", action="store_true", help="one set, one seed")
    parser.add_argument("--keep", type=Path, help="folder of what is fitted")
    parser.add_argument("--page", action="store_const", const=PAGE, help="put the tables into docs/survey.md")
    options = parser.parse_args()
    names, seeds = (options.sets[:1], 1) if options.quick else (options.sets, options.seeds)
    if missing := set(names) - set(sets.present(names)):
        print(f"Not here, so left out: {', '.join(sorted(missing))}; see benchmarks/data.py.\n")
    with tempfile.TemporaryDirectory() as passing:
        lab = Lab(options.keep or passing, names, seeds, options.jobs)
        show(TABLES, options.tables, lab, options.page)


if __name__ == "__main__":
    main()
