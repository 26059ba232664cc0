"""One fit, and the NDCG@10 of every query of the judge part after so many trees."""

from typing import NamedTuple

import numpy as np

from ranktrees import as_measure
from ranktrees.rows import query_offsets

from . import kinds, settings

CONVERGED = "converged"
CHECKPOINTS = (1, 5, 10, 20, 35, 50, 75, 100, 150, 200, 250, 300, 400, 500, 700, 1000, 1500, 2000)
PATIENCE = 100


class Outcome(NamedTuple):
    """What is kept of a fit."""

    seconds: float
    n_trees: int  # grown
    kept: int  # where the stop part says
    values: dict  # after so many trees, and "converged": NDCG@10 of each query, NaN if no row is relevant
    weights: np.ndarray  # of the queries

    def has(self, stage):
        """Whether `at` knows; what is no sum of trees has only a converged value."""
        return stage == CONVERGED or (len(self.values) > 1 and stage > 0)

    def at(self, stage):
        """NDCG@10, converged or after so many trees; a number between checkpoints is on a line between."""
        if stage == CONVERGED:
            return self.values[CONVERGED]
        known = np.array([k for k in self.values if k != CONVERGED])
        stage = np.clip(stage, known[0], known[-1])
        low, high = known[known <= stage][-1], known[known >= stage][0]
        part = (stage - low) / max(high - low, 1)
        return (1 - part) * self.values[low] + part * self.values[high]


def outcome(setting, kind, size, draw, seed, n_trees):
    """The `Outcome` of a setting on a draw."""
    train, stop, judge, categorical = kinds.parts(kind, size, draw)
    fit, parameters = settings.parsed(setting)
    run = fit(train, stop, seed, n_trees, categorical, **parameters)
    _, offsets = query_offsets(judge.qid, len(judge.qid))

    def ndcg(k):
        scores = np.asarray(run.scores_at(judge.X, k), np.float64)
        return as_measure("ndcg@10").per_query(judge.y, scores, offsets).astype(np.float32)

    if run.followed is None:
        kept, values = run.n_trees, {CONVERGED: ndcg(None)}
    else:
        kept = best(run.followed)
        stages = {k for k in CHECKPOINTS if k < n_trees} | {n_trees, kept}
        values = {k: ndcg(min(k, run.n_trees)) for k in sorted(stages)}
        values[CONVERGED] = values[kept]
    weights = np.ones(len(judge.y)) if judge.weight is None else judge.weight
    return Outcome(run.seconds, run.n_trees, kept, values, weights[offsets[:-1]])


def best(followed):
    """The number of trees that the stop part likes best, until so many have brought nothing."""
    place = 0
    for number, value in enumerate(followed):
        if value > followed[place]:
            place = number
        elif number - place >= PATIENCE:
            break
    return place + 1
