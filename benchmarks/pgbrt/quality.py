"""How well: exact trees against histograms of few bins (figures 1 and 2, table 2), and by more workers.

All learn the labels by squared loss, trees that grow layer by layer to a depth, on all rows and features.
"""

from typing import NamedTuple

import numpy as np

from ranktrees import HistGBRTRegressor
from ranktrees.evaluation.comparing import compare_values

from ..drawing import FIGURES, draw
from ..survey.lab import quality
from ..survey.markdown import difference, number, table
from . import sets

MEASURES = {"ERR": "err", "NDCG@10": "ndcg@10"}
BINS = (5, 10, 15, 20, 25, 50)
WORKERS = (1, 2, 4, 8, 32)
DEPTH = 5  # where nothing else is said

LAYERS = {
    "max_leaf_nodes": None,
    "max_features": 1.0,
    "subsample": 1.0,
    "gradient_sampling": None,
    "early_stopping": False,
    "n_jobs": 1,
}


class Kind(NamedTuple):
    """A contender: its name, how it searches splits, and the depth of its trees."""

    name: str
    search: str
    depth: int

    def __str__(self):
        return f"{self.name}, d={self.depth}"


EXACT, EXACT_5 = (Kind("GBRT", "exact", depth) for depth in (4, 5))
P4, P5, P6 = (Kind("pGBRT", "pgbrt", depth) for depth in (4, 5, 6))
STATIC = Kind("static bins", "full", DEPTH)
CONFIRMED = Kind("confirmed by rows", "streaming", DEPTH)
KINDS = (EXACT, EXACT_5, P4, P5, P6, STATIC, CONFIRMED)
CLAIMS = (
    (P4, EXACT),
    (P5, EXACT),
    (P6, EXACT),
    (P5, EXACT_5),
    (P6, EXACT_5),
    (P5, STATIC),
    (P5, CONFIRMED),
)


class Plan(NamedTuple):
    """How trees are boosted on a set: step size, numbers of trees to choose from, bins, contenders."""

    rate: float
    trees: tuple
    n_bins: int
    kinds: tuple = KINDS


UP_TO_100 = (1, 2, 3, *range(5, 101, 5))
PLANS = {
    "yahoo1": Plan(0.3, (1, 2, 3, 4, 5, 6), 50, (EXACT, P5, STATIC)),
    "yahoo2": Plan(0.3, tuple(range(1, 11)), 25, KINDS[:-1]),
    "mslr": Plan(0.2, (1, 2, 3, *range(4, 21, 2)), 100),
    "yandex": Plan(0.1, UP_TO_100, 25),
    "mq2008": Plan(0.1, UP_TO_100, 25),
}
BINS_OF = ("yahoo2", "yandex", "mq2008")  # the sets of figure 2
WORKERS_OF = ("mslr", "yandex", "mq2008")


def boosted(name, kind, n_bins=None):
    """Boosting as in the paper, by the plan of the set, or with other bins."""
    plan = PLANS[name]
    return HistGBRTRegressor(
        split_search=kind.search,
        max_depth=kind.depth,
        max_bins=255 if kind.search == "exact" else n_bins or plan.n_bins,
        learning_rate=plan.rate,
        max_iter=plan.trees[-1],
        **LAYERS,
    )


def chosen(lab, name, kind, n_bins=None, n_workers=1):
    """(trees, measure of each test query by label), as many trees as validation queries find best."""
    n_trees, scores = lab.best(name, boosted(name, kind, n_bins), PLANS[name].trees, n_workers)
    test = sets.parts(name).test
    return n_trees, {label: quality(test, scores, measure) for label, measure in MEASURES.items()}


def table_1(lab):
    """After table 1: the sets, the paper's sizes beside ours."""
    rows = []
    for name in lab.names:
        parts = sets.parts(name)
        sizes = [
            f"{len(part.y):,} / {len(np.unique(part.qid)):,}"
            for part in (parts.train, parts.validation, parts.test)
        ]
        theirs = ["", "", ""]
        if name in sets.SHAPES:
            n_features, *of_parts = sets.SHAPES[name].paper
            theirs = [f"{n_features}", *(f"{size.n_rows:,} / {size.n_queries:,}" for size in of_parts)]
        rows.append([sets.NAMES[name], *theirs, f"{parts.train.X.shape[1]}", *sizes])
    head = [
        "rows / queries",
        "paper: features",
        "train",
        "test",
        "here: features",
        "train",
        "validation",
        "test",
    ]
    return [table(head, rows)]


def plans(lab):
    """The parameters of each set."""
    rows = [
        [sets.NAMES[name], number(plan.rate, 2), f"{plan.trees[-1]}", f"{plan.n_bins}"]
        for name, plan in ((name, PLANS[name]) for name in lab.names)
    ]
    return [table(["", "step size", "trees", "bins"], rows)]


def figure_1(lab):
    """After figure 1: ERR and NDCG@10 of the test queries over the number of trees, by depth."""
    shown = []
    for label, measure in MEASURES.items():
        panels = {}
        for name in lab.names:
            plan, test = PLANS[name], sets.parts(name).test
            panels[sets.NAMES[name]] = {
                str(kind): (
                    plan.trees,
                    [
                        np.nanmean(quality(test, scores, measure))
                        for scores in lab.curves(name, boosted(name, kind), plan.trees).test
                    ],
                )
                for kind in plan.kinds
            }
        shown.append(drawn(f"pgbrt-1-{label[:4].lower()}", panels, "trees", label))
    return shown


def drawn(name, panels, x, y):
    """Draw a figure; returns the Markdown that shows it."""
    draw(FIGURES / f"{name}.svg", panels, x=x, y=y)
    return f"![{y} over {x}](figures/{name}.svg)"


def figure_2(lab):
    """After figure 2: ERR and NDCG@10 by the number of bins, relative to those of the best number."""
    panels, rows = {}, []
    for kind in (P5, STATIC):
        panels[str(kind)] = curves = {}
        for name in (name for name in BINS_OF if name in lab.names):
            found = [chosen(lab, name, kind, n_bins)[1] for n_bins in BINS]
            for label in MEASURES:
                values = [of_bins[label] for of_bins in found]
                means = np.nanmean(values, axis=1)
                curves[f"{sets.NAMES[name]}, {label}"] = BINS, means / means.max()
                tests = [minus(one, values[-1]) for one in values[:-1]]
                rows.append([f"{kind.name}: {sets.NAMES[name]}, {label}", *tests, number(means[-1])])
    head = [f"minus {BINS[-1]} bins", *map(str, BINS[:-1]), f"{BINS[-1]} bins"]
    return [drawn("pgbrt-2", panels, "number of bins", "relative quality"), table(head, rows)]


def minus(values, others):
    """A cell: the mean difference of two measures, and t, paired query by query."""
    test = compare_values(values, others)
    return difference((test.difference, test.statistic))


def table_2(lab):
    """After table 2: ERR and NDCG@10, in brackets the number of trees; and paired tests."""
    heads, shown, tests = [sets.NAMES[name] for name in lab.names], [], []
    found = {(name, kind): chosen(lab, name, kind) for name in lab.names for kind in PLANS[name].kinds}
    for label in MEASURES:

        def of(name, kind, label=label):
            n_trees, values = found[name, kind]
            return f"{number(np.nanmean(values[label]))} ({n_trees})"

        def tested(name, one, other, label=label):
            return minus(found[name, one][1][label], found[name, other][1][label])

        shown.append(table([label, *heads], [[str(kind), *cells(lab, of, kind)] for kind in KINDS]))
        rows = [[f"{one} minus {other}", *cells(lab, tested, one, other)] for one, other in CLAIMS]
        tests.append(table([label, *heads], rows))
    return shown + tests


def cells(lab, make, *kinds):
    """A cell for each set that has these contenders, empty for others."""
    return [make(name, *kinds) if set(kinds) <= set(PLANS[name].kinds) else "" for name in lab.names]


def times(lab):
    """After section 5: CPU seconds of a tree of figure 1, sorting or binning included, and times GBRT's."""

    def seconds(name, kind):
        own, exact = (
            lab.curves(name, boosted(name, one), PLANS[name].trees).seconds for one in (kind, EXACT)
        )
        return f"{own / PLANS[name].trees[-1]:.3g} ({own / exact:.2g})"

    rows = [[str(kind), *cells(lab, seconds, kind)] for kind in KINDS]
    return [table(["seconds per tree (times GBRT, d=4)", *map(sets.NAMES.get, lab.names)], rows)]


def by_workers(lab):
    """After section 5: ERR and NDCG@10 of pGBRT, d=5, by one worker, and how much more by others."""
    rows = []
    for name in (name for name in WORKERS_OF if name in lab.names):
        found = [chosen(lab, name, P5, None, n)[1] for n in WORKERS]
        for label in MEASURES:
            alone, *others = (of_workers[label] for of_workers in found)
            tests = [minus(other, alone) for other in others]
            rows.append([f"{sets.NAMES[name]}, {label}", number(np.nanmean(alone)), *tests])
    return [table(["minus one worker", "1 worker", *map(str, WORKERS[1:])], rows)]


PARTS = {
    "table 1": table_1,
    "plans": plans,
    "figure 1": figure_1,
    "figure 2": figure_2,
    "table 2": table_2,
    "workers": by_workers,
    "times": times,
}
