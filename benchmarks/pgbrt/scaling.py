"""How fast, and what is sent (figures 3 and 4).

Rows are those of the synthetic web set in the shape of MSLR. A tree's time is that of 41 trees less that of
one, divided: what is done once, binning and sending rows to ranks, does not count. The fastest of five is
shown, as what else a machine does can only make it slower.
"""

import os

import numpy as np

from ranktrees import HistGBRTRegressor, LambdaMARTRanker

from ..survey.lab import kept
from ..survey.markdown import number, table
from . import growth, sets
from .quality import DEPTH, FEW, LAYERS

SEARCHES = {"full": {}, "coarse_to_fine": {}}
OTHERS = {"streaming": {"max_bins": FEW}}
LOSSES = {"squared loss": HistGBRTRegressor, "LambdaMART": LambdaMARTRanker}
N_TREES = 40
N_QUERIES = (80, 320, 640)
N_FEATURES = (68, 136, 272)
SHAPE = sets.SHAPES["mslr"]
CELLS = 16  # of a feature, in a coarse search
SHORTLIST = 4 * 256  # bins of the features that a coarse search looks at again
KB = 1000


def model_of(loss, search):
    """Boosting by trees of depth 5."""
    rules = (SEARCHES | OTHERS)[search]
    return LOSSES[loss](split_search=search, max_depth=DEPTH, random_state=0, **LAYERS, **rules)


def counts():
    """1, 2, 4 ... processors, as many as there are."""
    there = len(os.sched_getaffinity(0))
    return [count for count in (1, 2, 4, 8, 16, 32, 64) if count <= there]


def run_of(lab, loss, search, n_queries=N_QUERIES[0], n_features=SHAPE.n_features, *, threads=1, ranks=1):
    """The `growth.RUN` of a model, on threads of one process or on ranks of one thread each."""

    def make():
        rows = sets.web(n_queries, n_features, SHAPE.rows_per_query)
        model = model_of(loss, search)
        if ranks > 1:
            return growth.on_ranks(ranks, rows, model, N_TREES)
        return growth.on_threads(threads, rows, model, N_TREES)

    return kept(
        lab.folder,
        ("run", loss, search, n_queries, n_features, N_TREES, growth.N_REPEATS, threads, ranks),
        make,
    )


def figure_3(lab):
    """After figures 3 and 4: ms for a tree, and how many times faster than one thread."""
    more = counts()[1:]
    rows = []
    for search in lab.searches:
        for loss in LOSSES:
            for n_queries in (N_QUERIES[0], N_QUERIES[-1]):
                alone = run_of(lab, loss, search, n_queries)["ms"].min()
                row = [f"{loss}, {search}", f"{n_queries * SHAPE.rows_per_query}", f"{alone:.1f}"]
                for kind in ("threads", "ranks"):
                    for count in more:
                        ms = run_of(lab, loss, search, n_queries, **{kind: count})["ms"].min()
                        row.append(f"{ms:.1f} ({alone / ms:.2f})")
                rows.append(row)
    heads = [f"{count} {kind}" for kind in ("threads", "ranks") for count in more]
    return [table(["ms a tree", "rows", "1 thread", *heads], rows)]


def traffic(lab):
    """After section 5: KB that a rank sends for a tree on two ranks: counted, and computed from the tree."""
    shapes = [(n, SHAPE.n_features) for n in N_QUERIES]
    shapes += [(N_QUERIES[0], n) for n in N_FEATURES if n != SHAPE.n_features]
    rows = []
    for search in lab.searches:
        for loss in LOSSES:
            for n_queries, n_features in shapes:
                run = run_of(lab, loss, search, n_queries, n_features, ranks=2)
                cells = cells_of(n_queries, n_features)
                sent = run["bytes"] / KB
                lightgbm = run["lines"] * cells * 16 / 2 / KB
                rows.append(
                    [
                        f"{loss}, {search}",
                        f"{n_queries * SHAPE.rows_per_query}",
                        f"{n_features}",
                        number(float(run["lines"]), 1),
                        *(f"{one:.1f}" for one in sent[: len(growth.CALLS) - 1]),
                        f"{computed(search, run, cells, n_features) / KB:.1f}",
                        f"{run['messages'].sum():.0f}",
                        f"{lightgbm:.0f}",
                        f"{sent.sum() / lightgbm:.2f}",
                    ]
                )
    head = [
        "on 2 ranks",
        "rows",
        "features",
        "histograms",
        *growth.CALLS[:-1],
        "of these, histograms as computed",
    ]
    return [table([*head, "messages", "LightGBM, computed", "ours / its"], rows)]


def cells_of(n_queries, n_features):
    """Bins of all features, with one each for missing values: distinct values, at most 255."""
    X = sets.web(n_queries, n_features, SHAPE.rows_per_query).X
    return sum(min(255, len(np.unique(column))) + 1 for column in X.T)


def computed(search, run, cells, n_features):
    """Bytes of histograms that a rank of two sends for a tree, from its splits: 8 a cell.

    A full search needs the sums of half of the cells on each rank, a coarse one those of all on both, and
    then of all bins of the shortlist of each split.
    """
    if search == "coarse_to_fine":
        return 8 * (run["lines"] * CELLS * n_features + run["splits"] * SHORTLIST)
    return 8 * run["lines"] * cells / 2


PARTS = {"figure 3": figure_3, "traffic": traffic}
