"""Compare settings on every kind of data: the first is the reference.

    python -m benchmarks.zoo "lambdamart" "lambdamart subsample=1 query_norm='log'" "lightgbm lambdarank"
        [--kinds web tiny] [--sizes small] [--draws 3] [--seeds 1] [--trees 500] [--held-back] [--jobs 1]
        [--keep FOLDER] [--figure FILE]

Prints tables in Markdown: NDCG@10 of the judge part for the reference, and the paired difference of each
other setting, with an interval and t, at equal trees, converged (as many trees as are best on the stop part,
patience 100), in equal time of a processor, if need be that of all ``--trees`` trees, and after as many trees
as each library grows by default; and the time until the reference is as good as another at its best. With
``--keep`` what came of a fit is kept in a folder, by the words of its setting, and not fitted again; empty it
when the package or this folder has changed.
"""

import argparse
import itertools
import tempfile

import joblib

from .. import data
from . import kinds, settings
from .report import Comparison
from .running import outcome


def places_of(names, sizes, n_draws, held_back):
    """(kind, size, draws) of each line of the tables; real sets have folds."""
    first = kinds.HELD_BACK if held_back else 0
    for name, size in itertools.product(names, sizes):
        if name in kinds.KINDS:
            yield name, size, range(first, first + n_draws)
    for name in names:
        if name in kinds.REAL and not held_back and data.folder() is not None:
            yield name, "real", range(kinds.REAL[name])


def main():
    parser = argparse.ArgumentParser(
        "python -m benchmarks.zoo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [*kinds.KINDS, *kinds.REAL]
    parser.add_argument("settings", nargs="+", help=f"of {', '.join(settings.SETTINGS)}")
    parser.add_argument("--kinds", nargs="+", default=names, choices=names, metavar="KIND")
    parser.add_argument("--sizes", nargs="+", default=list(kinds.SIZES), choices=kinds.SIZES)
    parser.add_argument("--draws", type=int, default=3, help="of each synthetic kind, at most 100")
    parser.add_argument("--seeds", type=int, default=1, help="fits of each draw")
    parser.add_argument("--trees", type=int, default=500)
    parser.add_argument("--held-back", action="store_true", help="take the draws that no choice was made on")
    parser.add_argument("--jobs", type=int, default=1, help="fits at the same time, one thread each")
    parser.add_argument("--keep", help="folder of outcomes")
    parser.add_argument("--figure", help="file to draw NDCG@10 against seconds to, such as zoo.svg")
    options = parser.parse_args()
    if options.draws > kinds.HELD_BACK:
        parser.error(f"--draws {options.draws}: there are {kinds.HELD_BACK}, and as many that are held back")
    for setting in options.settings:
        settings.parsed(setting)
    if set(options.kinds) & set(kinds.REAL):
        if options.held_back:
            print("Real sets have no draws that are held back, so they are left out.\n")
        elif data.folder() is None:
            print("No real sets here, so they are left out: see benchmarks/data.py.\n")
    places = list(places_of(options.kinds, options.sizes, options.draws, options.held_back))
    tasks = [
        (setting, kind, size, draw, seed, options.trees)
        for kind, size, draws in places
        for draw in draws
        for seed in range(options.seeds)
        for setting in options.settings
    ]
    with tempfile.TemporaryDirectory() as passing:
        remembered = joblib.Memory(options.keep or passing, verbose=0).cache(outcome)
        found = joblib.Parallel(options.jobs)(joblib.delayed(remembered)(*task) for task in tasks)
    outcomes = {}
    for (setting, kind, size, draw, *_), one in zip(tasks, found, strict=True):
        outcomes.setdefault(((kind, size), setting), {}).setdefault(draw, []).append(one)
    comparison = Comparison(outcomes, options.settings)
    comparison.show(options.trees)
    if options.figure:
        comparison.draw(options.figure)


if __name__ == "__main__":
    main()
