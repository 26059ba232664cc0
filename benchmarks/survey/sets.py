"""The sets that the survey is repeated on.

Real ones are where `benchmarks.data` looks for them. A fold has rows to fit to, validation rows that choose
how many trees there are, and test rows that choose nothing. Yandex has three, which differ in the queries
that validate; LETOR's sets have five, whose test queries are different ones.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from ranktrees import make_ranking

from .. import data

NAMES = {
    "yandex": "Yandex",
    "web": "synthetic web",
    "mq2008": "MQ2008",
    "ohsumed": "OHSUMED",
    "yandex_gaps": "Yandex, zeros missing",
    "web_gaps": "synthetic web, two values in three missing",
    "web_few": "synthetic web, 15 queries",
    "web_1s": "synthetic web, short queries",
}
MAIN = ("yandex", "web", "mq2008", "ohsumed")
SOURCES = {"mq2008": "MQ2007", "web_few": "another market"}


class Rows(NamedTuple):
    """Rows of whole queries, side by side."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray

    @property
    def labels(self):
        """The labels with the query ids in their index, which brings them through pipelines."""
        return pd.Series(self.y, index=pd.Index(self.qid, name="qid"))

    def of(self, chosen):
        return Rows(*(part[chosen] for part in self))


class Fold(NamedTuple):
    """What one model is fitted to, chosen by, and tested on."""

    train: Rows
    validation: Rows
    test: Rows

    def part_of(self, scores, part):
        """Those of the scores of all rows, along the last axis, that belong to a part."""
        ends = np.cumsum([len(rows.y) for rows in self])
        place = self._fields.index(part)
        return scores[..., ends[place] - len(self[place].y) : ends[place]]


def web(n_queries, seed, **others):
    """Rows of the synthetic web set, with labels of 0 to 4 and as many features as MSLR."""
    made = make_ranking(n_queries, "web", n_features=136, random_state=seed, **others)
    return Rows(made.data, made.target.astype(np.float64), made.qid)


def split(rows, *n_queries):
    """A fold of so many queries to fit to, to choose by, and to test on."""
    parts = np.searchsorted(np.cumsum(n_queries), rows.qid, side="right")
    return Fold(*(rows.of(parts == part) for part in range(3)))


def with_gaps(fold, gaps, columns=slice(None)):
    """These columns of the fold, without the values for which ``gaps(X)`` is true."""
    return Fold(
        *(rows._replace(X=np.where(gaps(rows.X), np.float32(np.nan), rows.X)[:, columns]) for rows in fold)
    )


@cache
def folds(name):
    """The folds of a set."""
    if name == "web":
        return [split(web(400, 0), 100, 50, 250)]
    if name == "web_1s":
        return [split(web(3800, 2, rows_per_query=27), 1266, 634, 1900)]
    if name == "web_few":
        return [fold._replace(train=first(fold.train, 15)) for fold in folds("web")]
    if name == "web_gaps":
        rng = np.random.default_rng(0)
        return [with_gaps(fold, lambda X: rng.random(X.shape) < 2 / 3) for fold in folds("web")]
    if name == "yandex_gaps":
        known = np.all([fold.train.X.any(axis=0) for fold in folds("yandex")], axis=0)
        return [with_gaps(fold, lambda X: X == 0, known) for fold in folds("yandex")]
    return [Fold(*map(Rows._make, parts)) for parts in data.folds(name)]


@cache
def source(name):
    """The rows of another set, from which the target of this name may learn."""
    if name == "mq2008":
        return joined(*folds("mq2007_85")[0])
    rows = web(200, 1)
    unlike = rows.qid % 2 == 1
    rows.X[unlike] *= np.exp2(np.random.default_rng(0).uniform(-1, 1, rows.X.shape[1]))
    return rows


def first(rows, n_queries):
    """The rows of the first queries."""
    _, starts = np.unique(rows.qid, return_index=True)
    end = np.append(np.sort(starts), len(rows.qid))[n_queries]
    return rows.of(slice(end))


def joined(*parts):
    """The rows of several sets, whose queries are different ones."""
    return Rows(*map(np.concatenate, zip(*parts, strict=True)))


def present(names):
    """Those of the names that there is data for."""
    return [name for name in names if name.startswith("web") or data.folder() is not None]
