"""How good rankings are, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ranktrees.command.data import Rows, installed
from ranktrees.evaluation import MeanInterval, mean_interval, per_query_table
from ranktrees.measures import Measure, as_measure
from ranktrees.support.tables import aligned

MEASURES = ("ndcg@10",)


def measures_of(names: Sequence[str] | None) -> list[Measure]:
    """Return the measures that are named, each once; NDCG at 10 if none is."""
    installed("pandas", "a table of measures")
    return list(dict.fromkeys(map(as_measure, names or MEASURES)))


def values_of(rows: Rows, scores: Any, measures: Sequence[Measure]) -> dict[Measure, np.ndarray]:
    """Return the values of the queries by each measure; of all rows together, if it is a measure of those."""
    by_query = [measure for measure in measures if measure.by_query]
    found = per_query_table(rows.y, {"": scores}, qid=rows.qid, measure=by_query) if by_query else None
    return {
        measure: np.array([measure(rows.y, scores)])
        if found is None or not measure.by_query
        else found["", repr(measure)].to_numpy()
        for measure in measures
    }


def mean_of(measure: Measure, values: np.ndarray, confidence: float = 0.95) -> MeanInterval:
    """Return the mean with its interval, which has no ends unless there are two values of queries."""
    known = values[~np.isnan(values)]
    if measure.by_query and len(known) > 1:
        return mean_interval(known, confidence)
    mean = float(known.mean()) if len(known) else np.nan
    return MeanInterval(mean, np.nan, np.nan, len(known) if measure.by_query else 0)


def table(means: Mapping[str, Mapping[Measure, MeanInterval]]) -> str:
    """Return a table with a line for each name, and a column for each measure."""
    measures = list(next(iter(means.values())))
    cells = [[name, *(_cell(of_name[measure]) for measure in measures)] for name, of_name in means.items()]
    return aligned([["", *map(repr, measures)], *cells])


def _cell(mean: MeanInterval) -> str:
    return "-" if np.isnan(mean.mean) else f"{mean.mean:.4f}" if np.isnan(mean.low) else str(mean)


def as_json(means: Mapping[str, Mapping[Measure, MeanInterval]]) -> dict[str, Any]:
    """Return the same for a program to read."""
    return {
        name: {
            repr(measure): {key: None if np.isnan(each) else each for key, each in mean._asdict().items()}
            for measure, mean in of_name.items()
        }
        for name, of_name in means.items()
    }
