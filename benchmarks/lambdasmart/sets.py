"""What is trained, validated and tested on: random polynomials, rows like those of the web, and markets."""

from functools import cache
from typing import NamedTuple

import numpy as np

from ranktrees import make_ranking

from .. import data
from ..survey.sets import Rows

SHARES = (2, 1, 2)  # of queries: the paper's 10K, 5K and 10K
GRADES = (0.52, 0.32, 0.13, 0.02, 0.01)  # of rows: those of MSLR-WEB
WEB_ROWS = 26  # a query of Web-1, on average
SOURCE, TARGET = "mq2007_85", "mq2008"


class Parts(NamedTuple):
    """Rows of different queries: to fit to, to choose by, to test on."""

    train: Rows
    validation: Rows
    test: Rows


def parted(rows, n_queries):
    """The rows cut into parts of so many queries, in their order."""
    _, number = np.unique(rows.qid, return_inverse=True)
    part = np.searchsorted(np.cumsum(n_queries), number, side="right")
    return Parts(*(rows.of(part == of) for of in range(3)))


def _sizes(n_queries):
    return [n_queries * share // SHARES[0] for share in SHARES]


@cache
def artificial(n_queries):
    """Random cubic polynomials of 50 features, 50 rows a query, grades as on the web; so many train."""
    sizes = _sizes(n_queries)
    X, y, qid = make_ranking(
        sum(sizes), "polynomial", grade_shares=GRADES, random_state=0, return_X_y_qid=True
    )
    return parted(Rows(X, y.astype(np.float64), qid), sizes)


@cache
def web(n_queries):
    """Rows like those of the web, with noise, in place of Web-1; so many queries train."""
    sizes = _sizes(n_queries)
    return parted(market(sum(sizes), 0, rows_per_query=WEB_ROWS), sizes)


# ------------------------------------------------------------------------------------------------- adaptation

N_ROWS = 25  # a query
N_TEST = 2000  # queries of each target
WEB_2, LONG, NAMES = (7889, 176), (1564, 176), (1431, 158)  # queries to train on, and to validate
MOST_COVERED, BM25 = 0, slice(105, 109)  # columns: query terms found in the body; of body, anchor, title, URL
TASTE_OF_NAMES = (-0.5, 0, 0.5, 0.5)

# By language: queries to train on, how much more BM25 of body, anchor, title and URL count, and by how many
# powers of two features are counted differently.
LANGUAGES = {
    "Korean": (931, (0, 0, 0, 0), 0),
    "English": (1542, (0.3, -0.3, -0.3, 0.3), 1),
    "Japanese": (11253, (-0.3, 0.3, 0.3, -0.3), 0.5),
    "Chinese": (8207, (-0.3, -0.3, 0.3, 0.3), 1.25),
}
N_VALIDATION = 372  # queries of each


def market(n_queries, seed, taste=(0, 0, 0, 0), spread=0, rows_per_query=N_ROWS):
    """Queries of a market, with features on a logarithmic scale, as nets need them.

    Relevance is that of ``make_ranking("web")``, plus the BM25 of the body, the anchors, the title and the
    URL, standardised and weighted by ``taste``, plus noise. Each feature is multiplied by a number of its
    own, at most two to the power of ``spread``.
    """
    fine = np.full(250, 1 / 250)
    X, grade, qid = make_ranking(
        n_queries,
        "web",
        rows_per_query=rows_per_query,
        n_grades=250,
        grade_shares=fine,
        noise=0,
        random_state=np.random.default_rng(seed),
        return_X_y_qid=True,
    )
    rng = np.random.default_rng((1, seed))
    relevance = _standardised(grade) + _standardised(np.log1p(X[:, BM25])) @ taste
    relevance = _standardised(relevance) + 1.2 * rng.normal(size=len(grade))
    y = np.searchsorted(np.quantile(relevance, np.cumsum(GRADES)[:-1]), relevance).astype(np.float64)
    X = np.sign(X) * np.log1p(np.abs(X * np.exp2(rng.uniform(-spread, spread, X.shape[1]))))
    return Rows(X.astype(np.float32), y, qid)


def _standardised(values):
    return (values - values.mean(axis=0)) / values.std(axis=0)


@cache
def web_2():
    """The background of long queries and of names."""
    return parted(market(sum(WEB_2), 1), (*WEB_2, 0))


@cache
def long_queries():
    """Queries of the market of the background, of which some row has four terms or more in its body."""
    sizes = (*LONG, N_TEST)
    rows = market(4 * sum(sizes), 2)
    _, number = np.unique(rows.qid, return_inverse=True)
    terms = np.zeros(number.max() + 1)
    np.maximum.at(terms, number, np.expm1(rows.X[:, MOST_COVERED]))
    return parted(rows.of(terms[number] > 3.5), sizes)


@cache
def names():
    """Queries for which the title and the URL count for more than elsewhere, and the body for less."""
    sizes = (*NAMES, N_TEST)
    return parted(market(sum(sizes), 3, TASTE_OF_NAMES), sizes)


@cache
def language(name):
    """Queries of a market that counts its features in its own way, and has its own taste."""
    n_queries, taste, spread = LANGUAGES[name]
    sizes = (n_queries, N_VALIDATION, N_TEST if name == "Korean" else 0)
    return parted(market(sum(sizes), 4 + list(LANGUAGES).index(name), taste, spread), sizes)


def _real(name, fold):
    """A fold of a real set, without the features that hardly vary in the source."""
    train, *_ = next(data.folds(SOURCE))
    varies = train[0].std(axis=0) > 0.01
    return Parts(*(Rows(X[:, varies], y, qid) for X, y, qid in list(data.folds(name))[fold]))


@cache
def source():
    """The first fold of the real set that a background is made from."""
    return _real(SOURCE, 0)


@cache
def target(fold):
    """A fold of the real set to adapt to."""
    return _real(TARGET, fold)
