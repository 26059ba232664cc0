"""What is trained, validated and tested on: synthetic rows in the paper's shapes, and real ones."""

from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ranktrees import make_ranking

from .. import data
from ..survey.sets import Rows


class Parts(NamedTuple):
    """Rows of different queries: to fit to, to choose by, to test on."""

    train: Rows
    validation: Rows
    test: Rows


class Size(NamedTuple):
    """Of a part of a set."""

    n_rows: int
    n_queries: int


class Shape(NamedTuple):
    """Of a set of the paper, and what is made in its place."""

    name: str
    n_features: int
    paper: tuple  # its features, its `Size` to train on and to test on
    sizes: Parts  # of `Size`


SHAPES = {
    "yahoo1": Shape(
        "like Yahoo Set 1",
        519,
        (700, Size(473_134, 19_944), Size(165_660, 6_983)),
        Parts(Size(473_134, 19_944), Size(47_300, 2_000), Size(165_660, 6_983)),
    ),
    "yahoo2": Shape(
        "like Yahoo Set 2",
        596,
        (700, Size(34_815, 1_266), Size(103_174, 3_798)),
        Parts(Size(34_815, 1_266), Size(34_815, 1_266), Size(103_174, 3_798)),
    ),
    "mslr": Shape(
        "like MSLR Fold 1",
        136,
        (136, Size(723_412, 6_000), Size(241_521, 6_000)),
        Parts(Size(48_227, 400), Size(18_085, 150), Size(120_568, 1_000)),
    ),
}
REAL = {"yandex": "Yandex", "mq2008": "MQ2008, fold 1"}
NAMES = {name: shape.name for name, shape in SHAPES.items()} | REAL


def web(sizes, n_features):
    """Rows of the synthetic web set with labels of 0 to 4, in parts of these sizes."""
    of_queries = [np.diff(np.arange(n_queries + 1) * n_rows // n_queries) for n_rows, n_queries in sizes]
    X, y, qid = make_ranking(
        sum(map(len, of_queries)),
        "web",
        n_features=n_features,
        rows_per_query=np.concatenate(of_queries),
        random_state=0,
        return_X_y_qid=True,
    )
    rows = Rows(X, y.astype(np.float64), qid)
    ends = np.cumsum([0, *(size.n_rows for size in sizes)]).tolist()
    return [rows.of(slice(*part)) for part in pairwise(ends)]


@cache
def parts(name):
    """The set in its three parts; of a real one with folds, the first."""
    if name in REAL:
        return Parts(*map(Rows._make, next(data.folds(name))))
    return Parts(*web(SHAPES[name].sizes, SHAPES[name].n_features))


def shards(rows, n_ranks):
    """The rows dealt to ranks: whole queries, about as many each."""
    dealt = np.array_split(np.unique(rows.qid), n_ranks)
    return [rows.of(np.isin(rows.qid, queries)) for queries in dealt]


def present(names):
    """Those of the names that there is data for."""
    return [name for name in names if name in SHAPES or data.folder() is not None]
