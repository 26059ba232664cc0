"""How fast (figures 3 and 4), and what is sent: trees of synthetic rows in the shape of MSLR.

A tree's time is that of two trees less that of one: what is done once, binning and sending rows to ranks,
does not count. The fastest of several fits is shown, as what else a machine does makes it slower.
"""

import numpy as np

from ranktrees import HistGBRTRegressor

from ..survey.lab import kept
from ..survey.markdown import number, table
from . import growth, quality, sets

SEARCHES = {"pgbrt": "pGBRT", "streaming": "confirmed by rows", "full": "static bins"}
FEW = 25  # bins
DEPTHS = (4, 5, 6, 8, 10, 12, 14, 15, 16)
OF_DEPTH = 38_400, 10  # rows and features of trees that go so deep: many leaves need many rows
N_ROWS = (2_400, 9_600, 38_400)
N_FEATURES = (68, 136, 272)
RANKS = (1, 2, 4, 8)
N_REPEATS = 2
N_TURNS = 15  # on a busy machine
KB = 1000


def model_of(search="pgbrt", depth=quality.DEPTH, **rules):
    rules = quality.LAYERS | {"learning_rate": 0.1} | rules
    return HistGBRTRegressor(split_search=search, max_depth=depth, max_bins=FEW, **rules)


def rows_of(n_rows, n_features=136):
    """Queries of 120 rows."""
    return sets.web([sets.Size(n_rows, n_rows // 120)], n_features)[0]


def on_ranks(run, *fit):
    """CPU milliseconds of a tree without waiting, of the slowest rank."""
    return max(growth.ms_of_tree(fits)[1] for fits in run(growth.taken, *fit, N_REPEATS))


def computing(lab):
    """float64[n_sizes, n_ranks]: what `on_ranks` returns."""

    def make():
        found = np.empty((len(N_ROWS), len(RANKS)))
        for column, n_ranks in enumerate(RANKS):
            with growth.ranks(n_ranks) as run:
                found[:, column] = [on_ranks(run, rows_of(n_rows), model_of()) for n_rows in N_ROWS]
        return found

    return kept(lab.folder, ("computing", N_ROWS, RANKS), make)


def figure_3(lab):
    """After figures 3 and 4: how many times less a rank computes for a tree, by the number of ranks."""
    panels = {"": {f"{n:,} rows": (RANKS, ms[0] / ms) for n, ms in zip(N_ROWS, computing(lab), strict=True)}}
    panels[""]["perfect"] = RANKS, RANKS
    rows = [
        [f"{n:,}", f"{ms[0]:.0f}", *(f"{one:.0f} ({ms[0] / one:.2f})" for one in ms[1:])]
        for n, ms in zip(N_ROWS, computing(lab), strict=True)
    ]
    head = ["rows", "1 rank", *(f"{n} ranks" for n in RANKS[1:])]
    return [quality.drawn("pgbrt-3", panels, "ranks", "speed-up of computing"), table(head, rows)]


def on_two(lab, search):
    """float64[3]: milliseconds of a tree on one thread, two threads, two ranks, which take turns."""

    def make():
        fit, turns = (rows_of(N_ROWS[1]), model_of(search)), []
        with growth.ranks(2) as run:
            for _ in range(N_TURNS):
                on_threads = [growth.on_threads(n, *fit) for n in (1, 2)]
                turns.append([*on_threads, run(growth.taken, *fit).max(axis=0)])
        return [growth.ms_of_tree(fits)[0] for fits in np.min(turns, axis=0)]

    return kept(lab.folder, ("two", search, N_ROWS[1], N_TURNS), make)


def two(lab):
    """After figures 3 and 4: milliseconds of a tree on the two processors that there are."""
    rows = []
    for search in ("pgbrt", "streaming"):
        alone, *both = on_two(lab, search)
        rows.append([SEARCHES[search], f"{alone:.0f}", *(f"{ms:.0f} ({alone / ms:.2f})" for ms in both)])
    return [table([f"ms per tree of {N_ROWS[1]:,} rows", "1 thread", "2 threads", "2 ranks"], rows)]


def depth(lab):
    """After sections 5 and 6: CPU time of a tree, and what one of two ranks sends for it, by the depth."""

    def make():
        rows, found = rows_of(*OF_DEPTH), []
        with growth.ranks(2) as run:
            for depth in DEPTHS:
                fit = rows, model_of(depth=depth, min_samples_leaf=1)
                alone = growth.ms_of_tree(growth.on_threads(1, *fit, N_REPEATS))[1]
                found.append([alone, on_ranks(run, *fit), *run(growth.sent, *fit)[0]])
        return np.array(found)

    alone, both, n_bytes, messages = kept(lab.folder, ("depth", DEPTHS, OF_DEPTH), make).T
    rows = [
        ["CPU ms, 1 rank", *(f"{ms:.0f}" for ms in alone)],
        ["times that of d=4", *(number(ms / alone[0], 2) for ms in alone)],
        ["CPU ms of each of 2 ranks", *(f"{ms:.0f}" for ms in both)],
        ["speed-up of computing", *(number(one, 2) for one in alone / both)],
        ["KB that a rank sends", *(f"{one / KB:,.0f}" for one in n_bytes)],
        ["messages", *(f"{one:.0f}" for one in messages)],
        ["ms to send these at 1 Gb/s", *(f"{8 * one / 1e6:.0f}" for one in n_bytes)],
    ]
    return [table(["d", *map(str, DEPTHS)], rows)]


def traffic(lab):
    """After section 4: KB and messages that one of two ranks sends for a tree, by rows and features."""
    shapes = [(n, 136) for n in N_ROWS] + [(N_ROWS[0], n) for n in N_FEATURES if n != 136]

    def make():
        with growth.ranks(2) as run:
            return np.array(
                [
                    [run(growth.sent, rows_of(*shape), model_of(search))[0] for search in SEARCHES]
                    for shape in shapes
                ]
            )

    found = kept(lab.folder, ("traffic", shapes, FEW), make)
    rows = [
        [f"{n_rows:,}", f"{n_features}", *(f"{one[0] / KB:.0f} ({one[1]:.0f})" for one in of_shape)]
        for (n_rows, n_features), of_shape in zip(shapes, found, strict=True)
    ]
    return [table(["rows", "features", *SEARCHES.values()], rows)]


PARTS = {"figure 3": figure_3, "two": two, "depth": depth, "traffic": traffic}
