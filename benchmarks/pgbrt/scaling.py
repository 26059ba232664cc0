"""How fast, and what is sent (figures 3 and 4).

Rows are those of the synthetic web set in the shape of MSLR. A tree's time is that of 41 trees less that of
one, divided: what is done once, binning and sending rows to ranks, does not count. The fastest of three is
shown, as what else a machine does can only make it slower.
"""

import os

import numpy as np

from ranktrees import HistGBRTRegressor, LambdaMARTRanker

from ..survey.lab import kept
from ..survey.markdown import table
from . import growth, sets
from .quality import DEPTH, FEW, LAYERS

SEARCHES = {"full": {}, "coarse_to_fine": {}}
OTHERS = {"streaming": {"max_bins": FEW}}  # if it is asked for; ranks may refuse it
LOSSES = {"squared loss": HistGBRTRegressor, "LambdaMART": LambdaMARTRanker}
N_TREES = 40  # for a time
N_COUNTED = 10  # for what is sent
N_QUERIES = (80, 320, 640)
RANKS = (1, 2, 4)  # whose computing is taken, on any number of processors
DIVIDED = N_QUERIES[1]  # the queries of that
N_FEATURES = (68, 136, 272)
SHAPE = sets.SHAPES["mslr"]
KB = 1000


def model_of(loss, search, sampling=None):
    """Boosting by trees of depth 5, on all rows, or on a sample of them."""
    rules = LAYERS | (SEARCHES | OTHERS)[search] | {"gradient_sampling": sampling}
    return LOSSES[loss](split_search=search, max_depth=DEPTH, random_state=0, **rules)


def counts():
    """1, 2, 4 ... processors, as many as there are."""
    there = len(os.sched_getaffinity(0))
    return [count for count in (1, 2, 4, 8, 16, 32, 64) if count <= there]


def ms_of(lab, loss, search, n_queries, *, threads=1, ranks=1):
    """Milliseconds of a tree on threads of one process, or on ranks of one thread each; the fastest."""

    def make():
        fit = _rows(n_queries), model_of(loss, search), N_TREES
        return (
            growth.on_ranks(ranks, growth.timed, *fit)[0] if ranks > 1 else growth.on_threads(threads, *fit)
        )

    n_fits = N_TREES, growth.N_REPEATS
    return float(kept(lab.folder, ("ms", loss, search, n_queries, *n_fits, threads, ranks), make))


def sent_of(lab, loss, search, n_queries, n_features=SHAPE.n_features, sampling=None):
    """The `growth.SENT` of one of two ranks."""

    def make():
        rows = _rows(n_queries, n_features)
        return growth.on_ranks(2, growth.counted, rows, model_of(loss, search, sampling), N_COUNTED)[0]

    return kept(lab.folder, ("sent", loss, search, n_queries, n_features, sampling, N_COUNTED), make)


def computing_of(lab, loss, search, n_queries, ranks):
    """CPU milliseconds of a tree, calls to other ranks left out, of the rank that takes longest."""

    def make():
        fit = _rows(n_queries), model_of(loss, search), N_COUNTED
        return np.array(growth.on_ranks(ranks, growth.computing, *fit))

    key = ("computing", loss, search, n_queries, N_COUNTED, growth.N_REPEATS, ranks)
    return float(kept(lab.folder, key, make).max())


def _rows(n_queries, n_features=SHAPE.n_features):
    return sets.web(n_queries, n_features, SHAPE.rows_per_query)


def figure_3(lab):
    """After figures 3 and 4: ms for a tree, and how many times faster than one thread."""
    more = counts()[1:]
    rows = []
    for search in lab.searches:
        for loss in LOSSES:
            for n_queries in (N_QUERIES[0], N_QUERIES[-1]):
                alone = ms_of(lab, loss, search, n_queries)
                row = [f"{loss}, {search}", f"{n_queries * SHAPE.rows_per_query}", f"{alone:.1f}"]
                for kind in ("threads", "ranks"):
                    for count in more:
                        ms = ms_of(lab, loss, search, n_queries, **{kind: count})
                        row.append(f"{ms:.1f} ({alone / ms:.2f})")
                rows.append(row)
    heads = [f"{count} {kind}" for kind in ("threads", "ranks") for count in more]
    return [table(["ms per tree", "rows", "1 thread", *heads], rows)]


def division(lab):
    """CPU ms of a tree of the rank that takes longest, calls to others left out, and how many times less."""
    rows = []
    for search in lab.searches:
        for loss in LOSSES:
            alone, *more = (computing_of(lab, loss, search, DIVIDED, ranks) for ranks in RANKS)
            rows.append(
                [f"{loss}, {search}", f"{alone:.1f}", *(f"{ms:.1f} ({alone / ms:.2f})" for ms in more)]
            )
    return [table(["CPU ms per tree", *(f"{n} rank" + "s" * (n > 1) for n in RANKS)], rows)]


def traffic(lab):
    """After section 5: KB that a rank sends for a tree on two ranks: counted, and computed from the tree."""
    shapes = [(n, SHAPE.n_features, False) for n in N_QUERIES]
    shapes += [(N_QUERIES[0], n, False) for n in N_FEATURES if n != SHAPE.n_features]
    shapes += [(n, SHAPE.n_features, True) for n in N_QUERIES]
    rows = []
    for search in lab.searches:
        for loss, kind in LOSSES.items():
            for n_queries, n_features, few in shapes:
                sampling = kind().gradient_sampling if few else None
                sent = sent_of(lab, loss, search, n_queries, n_features, sampling)
                cells = cells_of(n_queries, n_features)
                kb = sent["bytes"] / KB
                lightgbm = sent["lines"] * cells * 16 / 2 / KB
                rows.append(
                    [
                        f"{loss}, {search}",
                        f"{sampling or 'all'}",
                        f"{n_queries * SHAPE.rows_per_query}",
                        f"{n_features}",
                        f"{sent['lines']:.1f}",
                        *(f"{one:.1f}" for one in kb[: len(growth.CALLS) - 1]),
                        f"{sent['computed'] / KB:.1f}" if search in SEARCHES else "",
                        f"{sent['messages'].sum():.0f}",
                        f"{lightgbm:.0f}",
                        f"{kb.sum() / lightgbm:.2f}",
                    ]
                )
    head = [
        "on 2 ranks",
        "sampling",
        "rows",
        "features",
        "histograms",
        *growth.CALLS[:-1],
        "of which sums, as computed",
    ]
    return [table([*head, "messages", "LightGBM, computed", "ours / its"], rows)]


def cells_of(n_queries, n_features):
    """Bins of all features, with one each for missing values: distinct values, at most 255."""
    return sum(min(255, len(np.unique(column))) + 1 for column in _rows(n_queries, n_features).X.T)


PARTS = {"figure 3": figure_3, "division": division, "traffic": traffic}
