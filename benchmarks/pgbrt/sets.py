"""What is trained, validated and tested on: synthetic rows in the paper's shapes, and real ones."""

from functools import cache
from typing import NamedTuple

import numpy as np

from ranktrees import make_ranking

from .. import data
from ..lambdasmart.sets import Parts
from ..survey.sets import Rows


class Shape(NamedTuple):
    """Of a set of the paper: features and rows per query; and how many queries are made here, by part."""

    name: str
    n_features: int
    rows_per_query: int
    n_queries: tuple


SHAPES = {
    "yahoo1": Shape("like Yahoo Set 1", 519, 24, (150, 75, 400)),
    "yahoo2": Shape("like Yahoo Set 2", 596, 27, (100, 50, 400)),
    "mslr": Shape("like MSLR Fold 1", 136, 120, (80, 40, 200)),
}
REAL = {
    "yandex": "Yandex",
    "mq2008": "MQ2008, fold 1",
    "mq2007_85": "MQ2007, fold 1",
    "ohsumed": "OHSUMED, fold 1",
}
NAMES = {name: shape.name for name, shape in SHAPES.items()} | REAL
MAIN = ("yahoo1", "mslr", "yandex", "mq2008")


def web(n_queries, n_features, rows_per_query):
    """Rows of the synthetic web set, with labels of 0 to 4."""
    X, y, qid = make_ranking(
        n_queries,
        "web",
        n_features=n_features,
        rows_per_query=rows_per_query,
        random_state=0,
        return_X_y_qid=True,
    )
    return Rows(X, y.astype(np.float64), qid)


@cache
def parts(name):
    """The set in its three parts; of a real one with folds, the first."""
    if name in REAL:
        return Parts(*map(Rows._make, next(data.folds(name))))
    _, n_features, rows_per_query, n_queries = SHAPES[name]
    ends = np.cumsum(n_queries)
    rows = web(int(ends[-1]), n_features, rows_per_query)
    part = np.searchsorted(ends, rows.qid, side="right")
    return Parts(*(rows.of(part == number) for number in range(3)))


def shards(rows, n_ranks):
    """The rows dealt to ranks: whole queries, about as many each."""
    dealt = np.array_split(np.unique(rows.qid), n_ranks)
    return [rows.of(np.isin(rows.qid, queries)) for queries in dealt]


def present(names):
    """Those of the names that there is data for."""
    return [name for name in names if name in SHAPES or data.folder() is not None]
