"""The sets that the survey is repeated on.

Real ones are where `benchmarks.data` looks for them. A fold is what one model is fitted to and tested on::

    train  | queries . . . . . . . . . . . |      all rows that a model may see
    draws  | fitted . . . . . | validation |      where settings are chosen: one in LETOR's folds, else 3
    test   | queries . . . . . . . . . . . . . . . . . |
"""

from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import NamedTuple

import numpy as np
import pandas as pd

from ranktrees import make_ranking

from .. import data

NAMES = {
    "yandex": "Yandex",
    "web": "synthetic web",
    "mq2008": "MQ2008",
    "mq2007_85": "MQ2007, fold 1",
    "ohsumed": "OHSUMED",
    "mq2008_few": "MQ2008, 60 queries",
    "web_few": "web, 15 queries",
    "market": "another market",
}
MAIN = ("yandex", "web", "mq2008", "ohsumed")
FOLDS = {"mq2008": 5, "mq2007_85": 1, "ohsumed": 5}  # of LETOR's; MQ2007 is large
DRAWS = 3
FEW = {"mq2008_few": 60, "web_few": 15}  # queries to learn from, of the set before the _
TRANSFERS = {"mq2007_85": ("mq2008_few", "mq2008"), "market": ("web_few", "web")}


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


@dataclass(frozen=True)
class Fold:
    """What one model is fitted to and tested on."""

    train: Rows
    test: Rows
    draws: tuple  # masks of training rows: those of validation queries


def draws_of(qid, share=0.2, n=DRAWS):
    """Masks of rows: a share of the queries, drawn n times."""
    queries = np.unique(qid)
    for seed in range(n):
        drawn = np.random.default_rng(seed).permutation(queries)[: int(len(queries) * share)]
        yield np.isin(qid, drawn)


def web(n_queries, seed):
    """Rows of the synthetic web set, with labels of 0 to 4."""
    X, y, qid = make_ranking(n_queries, "web", n_features=60, random_state=seed, return_X_y_qid=True)
    return Rows(X, y.astype(np.float64), qid)


@cache
def folds(name):
    """The folds of a set."""
    if name == "web":
        rows = web(400, 0)
        trains = rows.qid < 90
        train = rows.of(trains)
        return [Fold(train, rows.of(~trains), tuple(draws_of(train.qid)))]
    if name in FEW:
        return [
            replace(fold, train=first(fold.train, FEW[name]), draws=()) for fold in folds(name.split("_")[0])
        ]
    if name in FOLDS:
        parts = islice(data.folds(name), FOLDS[name])
        return [_letor_fold(*map(Rows._make, part)) for part in parts]
    fitted, validation, test = map(Rows._make, next(data.folds(name)))
    train = joined(fitted, validation)
    return [Fold(train, test, tuple(draws_of(train.qid)))]


def source(name):
    """The rows to learn from for another set."""
    if name == "market":
        rows = web(150, 1)
        unlike = rows.qid % 2 == 1
        rows.X[unlike] *= np.exp2(np.random.default_rng(0).uniform(-1, 1, rows.X.shape[1]))
        return rows
    return first(folds(name)[0].train, 500)


def first(rows, n_queries):
    """The rows of the first queries."""
    _, starts = np.unique(rows.qid, return_index=True)
    end = np.append(np.sort(starts), len(rows.qid))[n_queries]
    return rows.of(slice(end))


def _letor_fold(fitted, validation, test):
    held_out = np.repeat([False, True], [len(fitted.y), len(validation.y)])
    return Fold(joined(fitted, validation), test, (held_out,))


def joined(*parts):
    """The rows of several sets, whose queries are different ones."""
    return Rows(*map(np.concatenate, zip(*parts, strict=True)))


def present(names):
    """Those of the names that there is data for."""
    return [name for name in names if name == "web" or data.folder() is not None]
