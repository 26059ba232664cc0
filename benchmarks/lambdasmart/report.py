"""The paper's tables: NDCG of the test queries with 95 % intervals, and tests of what it found."""

import numpy as np

from ranktrees.evaluation.comparing import mean_interval

from ..survey.lab import paired, quality
from ..survey.markdown import difference, table, verdict

MEASURES = ("ndcg@10", "ndcg@3", "ndcg@1")
HEADS = tuple(measure.upper() for measure in MEASURES)


def values_of(tests, scores):
    """By measure: float64[n_queries], of the test queries of all folds; `tests` are rows, a set a fold."""
    return {
        measure: np.concatenate(
            [quality(rows, of_rows, measure) for rows, of_rows in zip(tests, scores, strict=True)]
        )
        for measure in MEASURES
    }


def intervals(values):
    """Cells: the mean of each measure, and half its 95 % interval."""
    found = [mean_interval(100 * values[measure]) for measure in MEASURES]
    return [f"{one.mean:.2f} ± {(one.high - one.low) / 2:.2f}" for one in found]


def findings(values, claims):
    """Does it hold here? For each (better, worse): the paired differences; the verdict is NDCG@10's."""
    rows = []
    for better, worse in claims:
        tests = [paired(values[better][measure], values[worse][measure]) for measure in MEASURES]
        rows.append(
            [f"{better} above {worse}", *map(difference, tests), verdict(tests[:1], tests[0])],
        )
    return table(["finding", *HEADS, "holds here"], rows)
