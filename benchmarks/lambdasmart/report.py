"""The paper's tables: NDCG of the test queries with 95 % intervals, and tests of what it found."""

import numpy as np

from ranktrees.evaluation.comparing import mean_interval

from ..survey.lab import paired, quality
from ..survey.markdown import difference, table, verdict

MEASURES = {f"NDCG@{at}": f"ndcg.lambdasmart@{at}" for at in (10, 3, 1)}


def values_of(tests, scores):
    """By measure: float64[n_queries], of the test queries of all folds; `tests` are rows, a set a fold."""
    return {
        name: np.concatenate(
            [quality(rows, of_rows, measure) for rows, of_rows in zip(tests, scores, strict=True)]
        )
        for name, measure in MEASURES.items()
    }


def columns(title, values, **further):
    """The paper's form: a column for each contender, a row for each measure; half the interval in brackets.

    ``further`` are rows of strings, by their names.
    """
    rows = []
    for name in MEASURES:
        found = [mean_interval(100 * of_one[name]) for of_one in values.values()]
        rows.append([name, *(f"{one.mean:.1f} ({(one.high - one.low) / 2:.2f})" for one in found)])
    return table([title, *values], [*rows, *([name, *cells] for name, cells in further.items())])


def findings(title, values, claims):
    """Does it hold here? For each (better, worse): the paired differences; the verdict is NDCG@10's."""
    rows = []
    for better, worse in claims:
        tests = [paired(values[better][name], values[worse][name]) for name in MEASURES]
        rows.append([f"{better} above {worse}", *map(difference, tests), verdict(tests[:1], tests[0])])
    return table([title, *MEASURES, "holds here"], rows)


def gain(better, worse, name):
    """A cell: the mean difference in points, and t."""
    mean, t = paired(better[name], worse[name])
    return f"{100 * mean:+.1f} ({t:+.1f})"


def gains(title, kinds, best):
    """A column for each contender, a row for each kind and measure, with what the best one gains over each.

    ``kinds`` has values by contender by kind; the tables of all kinds have the columns of the first.
    """
    heads = list(next(iter(kinds.values())))
    rows = []
    for kind, values in kinds.items():
        for name in MEASURES:
            cells = []
            for of in heads:
                cell = f"{100 * np.nanmean(values[of][name]):.1f}" if of in values else ""
                cells.append(
                    cell if of == best or not cell else f"{cell}; {gain(values[best], values[of], name)}"
                )
            rows.append([f"{kind}, {name}", *cells])
    return table([title, *heads], rows)
