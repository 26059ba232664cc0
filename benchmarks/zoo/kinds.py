"""Kinds of data, each in a small and a large size, and in as many fresh draws as one likes.

    train | fitted
    stop  | followed tree by tree: a third as many queries
    judge | what settings are compared on: as many queries as train, and 200 (small) or 400 (large) at least

A kind is a function of a generator and the query of each row; it returns X, y and, where rows have weights,
these. Real sets have folds in place of draws: a quarter of their training queries stops, their validation
parts judge, and their test parts are not looked at.
"""

import zlib
from collections.abc import Callable
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np

from ranktrees import make_ranking

from .. import data

SIZES = ("small", "large")
LEAST_JUDGES = {"small": 200, "large": 400}
HELD_BACK = 200  # the first draw of those that are for one last check; 100 and 101 have had theirs
SHARES = (0.52, 0.23, 0.13, 0.08, 0.04)  # of the grades 0 to 4


class Part(NamedTuple):
    """Rows of whole queries, side by side."""

    X: np.ndarray
    y: np.ndarray
    qid: np.ndarray
    weight: np.ndarray | None = None  # of each row, the same within a query


class Parts(NamedTuple):
    train: Part
    stop: Part
    judge: Part
    categorical: tuple = ()  # columns that hold codes of categories


class Kind(NamedTuple):
    make: Callable
    small: tuple = (300, 10, 30)  # training queries, and the fewest and most rows of a query
    large: tuple = (2500, 10, 30)
    categorical: tuple = ()


# ---- what they share ---------------------------------------------------------------------------------------


def grades(relevance, shares=SHARES):
    """The relevance, cut into grades with these shares of the rows."""
    cuts = np.quantile(relevance, np.cumsum(shares)[:-1])
    return np.searchsorted(cuts, relevance, side="right").astype(np.float64)


def noisy(rng, relevance, noise=0.8):
    """The relevance with standard deviation 1, and noise."""
    return relevance / relevance.std() + noise * rng.standard_normal(len(relevance))


def per_query(rng, qid, *shape):
    """Normal numbers that the rows of a query have in common."""
    return rng.standard_normal((qid[-1] + 1, *shape))[qid]


def dense(rng, qid, n_columns):
    """Columns that differ between queries, too; every second has few values, as counts have."""
    X = rng.standard_normal((len(qid), n_columns)) + 0.5 * per_query(rng, qid, n_columns)
    X[:, ::2] = np.round(2 * X[:, ::2])
    return X.astype(np.float32)


def smooth(rng, X):
    """A function of the columns, with bends, squares and products of two, of standard deviation 1."""
    n = X.shape[1]
    Z = (X - X.mean(0)) / X.std(0)
    bent = np.tanh(rng.uniform(0.5, 2.5, n) * (Z - rng.normal(0, 0.7, n))) @ rng.standard_normal(n)
    Z = np.tanh(Z)
    products = (Z[:, rng.permutation(n)] * Z[:, rng.permutation(n)]) @ rng.standard_normal(n)
    relevance = bent / bent.std() + 0.7 * products / products.std()
    return relevance / relevance.std()


def ordinary(rng, qid, offset=0.5):
    """Thirty columns, half of which matter, and the relevance; queries have rows that are better or worse."""
    X = dense(rng, qid, 30)
    return X, smooth(rng, X[:, :15]) + offset * per_query(rng, qid)


def beside(rng, qid, columns, effect):
    """Six dense columns and further ones, whose effect is as large as theirs; five grades."""
    X = dense(rng, qid, 6)
    relevance = smooth(rng, X) + effect / effect.std()
    return np.column_stack([X, columns.astype(np.float32)]), grades(noisy(rng, relevance, 0.5))


def levels(rng, qid, n):
    """A category of so many levels, some of them rare, for each row."""
    share = rng.lognormal(0, 0.7, n)
    return rng.choice(n, len(qid), p=share / share.sum())


# ---- kinds -------------------------------------------------------------------------------------------------


def made(kind, **options):
    """A kind of `make_ranking`."""

    def make(rng, qid):
        rows = np.bincount(qid)
        X, y, _ = make_ranking(
            len(rows), kind, rows_per_query=rows, random_state=rng, return_X_y_qid=True, **options
        )
        return X, y.astype(np.float64)

    return make


def web_interactions(rng, qid):
    """The columns of "web", a dozen of which matter, by products, too; queries have better or worse rows."""
    X, _ = made("web")(rng, qid)
    some = X[:, rng.permutation(X.shape[1])[:12]]
    relevance = smooth(rng, np.sign(some) * np.log1p(np.abs(some))) + 0.7 * per_query(rng, qid)
    return X, grades(noisy(rng, relevance))


def rare_flags(rng, qid):
    """400 flags, each on in .4 % of the rows; half of them matter."""
    flags = (rng.random((len(qid), 400), np.float32) < 0.004).astype(np.float32)
    return beside(rng, qid, flags, flags @ (rng.standard_normal(400) * (rng.random(400) < 0.5)))


def one_hot(rng, qid):
    """150 columns, one for each level of a category."""
    level = levels(rng, qid, 150)
    return beside(rng, qid, np.eye(150, dtype=np.float32)[level], rng.standard_normal(150)[level])


def mostly_missing(rng, qid):
    """120 columns that have a value in 1.2 % of the rows; to have one matters, and so does the value."""
    present, values = rng.random((len(qid), 120)) < 0.012, rng.standard_normal((len(qid), 120))
    effect = present @ rng.standard_normal(120) + (present * np.tanh(values)) @ rng.standard_normal(120)
    return beside(rng, qid, np.where(present, values, np.nan), effect)


def zero_inflated(rng, qid):
    """120 columns that are zero in 97 % of the rows."""
    values = rng.exponential(size=(len(qid), 120)) * (rng.random((len(qid), 120)) < 0.03)
    return beside(rng, qid, values, np.sqrt(values) @ rng.standard_normal(120))


def categories_useful(rng, qid):
    """A category of 50 levels, of which each has an effect, and a slope of another column."""
    level, X = levels(rng, qid, 50), dense(rng, qid, 10)
    effect = rng.standard_normal(50)[level] + 0.5 * rng.standard_normal(50)[level] * X[:, 1]
    return np.column_stack([level, X]).astype(np.float32), grades(noisy(rng, smooth(rng, X) + effect))


def categories_useless(rng, qid):
    """Two categories of 100 levels that say nothing."""
    noise, X = [levels(rng, qid, 100) for _ in range(2)], dense(rng, qid, 10)
    return np.column_stack([*noise, X]).astype(np.float32), grades(noisy(rng, smooth(rng, X)))


def graded(noise=0.8, offset=0.5, shares=SHARES):
    """Ordinary columns, and grades."""

    def make(rng, qid):
        X, relevance = ordinary(rng, qid, offset)
        return X, grades(noisy(rng, relevance, noise), shares)

    return make


def real_valued(rng, qid):
    """Labels from 0 to 4 in hundredths, most of them low, as means over many judges are."""
    X, relevance = ordinary(rng, qid)
    share_below = np.argsort(np.argsort(noisy(rng, relevance))) / len(relevance)
    return X, np.round(4 * share_below**2.5, 2)


def weights(rng, qid):
    """Queries some of which weigh fifty times what others do, and a column that hints at it."""
    weighty, (X, relevance) = per_query(rng, qid), ordinary(rng, qid)
    X[:, 1] = weighty + 0.3 * X[:, 1]
    return X, grades(noisy(rng, relevance + 0.7 * smooth(rng, X[:, :15]))), np.exp(weighty)


POLYNOMIAL = ((200, 20, 40), (1000, 30, 70))
WEB = ((300, 10, 30), (500, 50, 150))
KINDS = {
    "polynomial": Kind(made("polynomial"), *POLYNOMIAL),
    "polynomial_skewed": Kind(made("polynomial", grade_shares=SHARES), *POLYNOMIAL),
    "web": Kind(made("web"), *WEB),
    "web_interactions": Kind(web_interactions, *WEB),
    "rare_flags": Kind(rare_flags),
    "one_hot": Kind(one_hot),
    "mostly_missing": Kind(mostly_missing),
    "zero_inflated": Kind(zero_inflated),
    "categories_useful": Kind(categories_useful, categorical=(0,)),
    "categories_useless": Kind(categories_useless, categorical=(0, 1)),
    "tiny": Kind(graded(), (50, 15, 25), (50, 80, 120)),
    "long_queries": Kind(graded(), (15, 500, 1500), (50, 500, 1500)),
    "short_queries": Kind(graded(offset=0), (1500, 3, 5), (12000, 3, 5)),
    "clicks": Kind(graded(noise=1.5, shares=(0.925, 0.075))),
    "real_valued": Kind(real_valued),
    "weights": Kind(weights),
}
REAL = {name: 5 if name in data.FOLDED else 3 for name in data.NAMES}  # folds


# ---- parts -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def parts(name, size, draw):
    """The `Parts` of a draw of a kind, or of a fold of a real set."""
    return fold(name, draw) if name in REAL else drawn(name, size, draw)


def drawn(name, size, draw):
    """A fresh draw."""
    kind = KINDS[name]
    rng = np.random.default_rng([zlib.crc32(name.encode()), SIZES.index(size), draw])
    n_queries, fewest, most = getattr(kind, size)
    ends = np.cumsum([n_queries, n_queries // 3, max(n_queries, LEAST_JUDGES[size])])
    qid = np.repeat(np.arange(ends[-1]), rng.integers(fewest, most + 1, ends[-1]))
    X, y, *weight = kind.make(rng, qid)
    part = np.searchsorted(ends, qid, side="right")
    whole = Part(X, y, qid, *weight)
    return Parts(*(chosen(whole, part == number) for number in range(3)), kind.categorical)


def fold(name, number):
    """A fold of a real set."""
    train, validation = (Part(*rows) for rows in next(islice(data.folds(name), number, None))[:2])
    queries = np.unique(train.qid)
    stops = np.random.default_rng(number).permutation(queries)[: len(queries) // 4]
    stops = np.isin(train.qid, stops)
    return Parts(chosen(train, ~stops), chosen(train, stops), validation)


def chosen(part, rows):
    """Some rows of a part."""
    return Part(*(None if column is None else column[rows] for column in part))
