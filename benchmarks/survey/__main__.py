"""The tables and figures of Mohan's thesis, by its own numbers, on sets that are at hand.

    python -m benchmarks.survey [--tables 2.2 "figure 2.1"] [--sets yandex web] [--folds N] [--keep FOLDER]
                                [--page]

Prints each table in Markdown. With ``--keep`` what is fitted is kept in a folder, and not fitted again;
empty it when the package has changed. ``--page`` puts the tables into docs/survey.md, between ``% <table>``
and ``% end``, and figures are drawn into docs/figures. ``--sets`` are those of table 4.2; ``--folds 1`` takes
the first fold of each set only.
"""

import argparse
import tempfile
from pathlib import Path

from . import boosting, classification, costs, described, missing, performance, sets, transfer
from .lab import Lab
from .markdown import show

CHAPTERS = (described, missing, boosting, classification, performance, transfer, costs)
TABLES = {name: make for chapter in CHAPTERS for name, make in chapter.TABLES.items()}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "survey.md"


def main():
    parser = argparse.ArgumentParser(
        "python -m benchmarks.survey", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=list(TABLES), metavar="TABLE")
    parser.add_argument("--sets", nargs="+", default=list(sets.MAIN), choices=sets.MAIN)
    parser.add_argument("--folds", type=int, default=5, help="at most so many of each set")
    parser.add_argument("--keep", type=Path, help="folder of what is fitted")
    parser.add_argument("--page", action="store_const", const=PAGE, help="put the tables into docs/survey.md")
    options = parser.parse_args()
    if missing_sets := set(options.sets) - set(sets.present(options.sets)):
        print(f"Not here, so left out: {', '.join(sorted(missing_sets))}; see benchmarks/data.py.\n")
    with tempfile.TemporaryDirectory() as passing:
        lab = Lab(options.keep or passing, options.sets, options.folds)
        show(TABLES, options.tables, lab, options.page)


if __name__ == "__main__":
    main()
