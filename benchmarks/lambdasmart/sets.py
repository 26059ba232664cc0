"""What is trained, validated and tested on: random polynomials, and a source and a target of real queries."""

from functools import cache
from typing import NamedTuple

import numpy as np

from ranktrees import make_ranking

from .. import data
from ..survey.sets import Rows, first

SHARES = (2, 1, 2)  # of queries: the paper's 10K, 5K and 10K
SOURCE, TARGET = "mq2007_85", "mq2008"


class Parts(NamedTuple):
    """Rows of different queries: to fit to, to choose by, to test on."""

    train: Rows
    validation: Rows
    test: Rows


@cache
def artificial(n_queries):
    """Random cubic polynomials of 50 features, 50 rows a query, cut into five grades; so many train."""
    ends = np.cumsum(SHARES) * n_queries // SHARES[0]
    X, y, qid = make_ranking(int(ends[-1]), "polynomial", random_state=0, return_X_y_qid=True)
    rows = Rows(X, y.astype(np.float64), qid)
    part = np.searchsorted(ends, qid, side="right")
    return Parts(*(rows.of(part == number) for number in range(3)))


@cache
def source():
    """The first fold of the set that the background model is made from."""
    return Parts(*map(Rows._make, next(data.folds(SOURCE))))


@cache
def targets(n_queries):
    """The folds of the set to adapt to, with only so many queries to learn from, or all (None)."""
    folds = [Parts(*map(Rows._make, fold)) for fold in data.folds(TARGET)]
    if n_queries is None:
        return folds
    return [fold._replace(train=first(fold.train, n_queries)) for fold in folds]
