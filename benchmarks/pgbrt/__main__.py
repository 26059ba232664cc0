"""The tables of the pGBRT paper.

    python -m benchmarks.pgbrt [--parts "figure 1"] [--sets yahoo1 yandex] [--keep FOLDER] [--page]

Prints each table in Markdown. With ``--keep`` what is fitted is kept in a folder, and not fitted again; empty
it when the package has changed. ``--page`` puts the tables into docs/pgbrt.md, between ``% <part>`` and
``% end``, and figures into docs/figures. What takes the time of ranks wants mpi4py.
"""

import argparse
import tempfile
from pathlib import Path

from ..survey.markdown import show
from . import quality, scaling, sets
from .lab import Lab

PARTS = {name: make for module in (quality, scaling) for name, make in module.PARTS.items()}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "pgbrt.md"


def main():
    parser = argparse.ArgumentParser(
        "python -m benchmarks.pgbrt",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS), metavar="PART")
    parser.add_argument(
        "--sets", nargs="+", default=list(sets.NAMES), choices=list(sets.NAMES), metavar="SET"
    )
    parser.add_argument("--keep", type=Path, help="folder of what is fitted")
    parser.add_argument("--page", action="store_const", const=PAGE, help="put the tables into docs/pgbrt.md")
    options = parser.parse_args()
    names = sets.present(options.sets)
    if left_out := set(options.sets) - set(names):
        print(f"Not here, so left out: {', '.join(sorted(left_out))}; see benchmarks/data.py.\n")
    with tempfile.TemporaryDirectory() as passing:
        lab = Lab(options.keep or passing, tuple(names))
        show(PARTS, options.parts, lab, options.page)


if __name__ == "__main__":
    main()
