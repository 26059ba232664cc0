"""How well: exact trees against histograms of few bins (figures 1 and 2, table 2).

All learn the labels by squared loss, trees that grow layer by layer to a depth, on all rows and features.
"""

import numpy as np

from ranktrees import HistGBRTRegressor, compare
from ranktrees.evaluation.comparing import compare_values

from ..survey.lab import quality
from ..survey.markdown import best_bold, difference, number, table, verdict
from . import sets

MEASURES = {"ERR": "err", "NDCG@10": "ndcg@10"}
TREES = (1, 5, 10, 20, 30, 40, 50)
FEW = 25  # bins, where nothing else is said
BINS = (5, 10, 15, 20, 25, 100)
DEPTH = 5  # where nothing else is said
CELLS = 15  # a coarse search has as many: with no more bins it is the full one

LAYERS = {
    "max_leaf_nodes": None,
    "max_features": 1.0,
    "subsample": 1.0,
    "gradient_sampling": None,
    "early_stopping": False,
    "n_jobs": 1,
}


def boosted(search, depth=DEPTH, max_bins=255):
    """Boosting as in the paper."""
    return HistGBRTRegressor(
        split_search=search,
        max_depth=depth,
        max_bins=max_bins,
        learning_rate=0.1,
        max_iter=TREES[-1],
        **LAYERS,
    )


CONTENDERS = {
    "exact, depth 4": boosted("exact", 4),
    "exact, depth 5": boosted("exact", 5),
    "streaming, depth 4": boosted("streaming", 4, FEW),
    "streaming, depth 5": boosted("streaming", 5, FEW),
    "streaming, depth 6": boosted("streaming", 6, FEW),
    "static, depth 5": boosted("full", 5, FEW),
}
CLAIMS = (
    ("streaming, depth 4", "exact, depth 4"),
    ("streaming, depth 5", "exact, depth 4"),
    ("streaming, depth 5", "exact, depth 5"),
    ("streaming, depth 6", "exact, depth 5"),
    ("static, depth 5", "exact, depth 5"),
)


def _curves(lab, name, model):
    """(scores of test rows after so many trees, seconds of a processor)."""
    _, test, seconds = lab.curves(("pgbrt", name), model, TREES, sets.parts(name))
    return test, seconds


def figure_1(lab):
    """After figure 1: test ERR and NDCG@10 as trees are added, histograms of 25 bins."""
    found = []
    for name in lab.names:
        rows = []
        for contender, model in CONTENDERS.items():
            scores, _ = _curves(lab, name, model)
            for label, measure in MEASURES.items():
                of_stages = [np.nanmean(quality(sets.parts(name).test, one, measure)) for one in scores]
                rows.append([f"{contender}: {label}", *map(number, of_stages)])
        rows.sort(key=lambda row: row[0].split(": ")[1])
        found.append(table([f"{sets.NAMES[name]}, trees", *map(str, TREES)], rows))
    return found


def times(lab):
    """CPU milliseconds of one thread for a tree, binning or sorting included, and how many times exact's."""
    rows = []
    for contender, model in CONTENDERS.items():
        depth = contender.split(", ")[1]
        exact = CONTENDERS.get(f"exact, {depth}")
        row = [contender]
        for name in lab.names:
            seconds = _curves(lab, name, model)[1]
            share = f" ({seconds / _curves(lab, name, exact)[1]:.2f})" if exact is not None else ""
            row.append(f"{1000 * seconds / TREES[-1]:.1f}{share}")
        rows.append(row)
    return [table(["ms per tree (ratio to exact)", *(sets.NAMES[name] for name in lab.names)], rows)]


def figure_2(lab):
    """After figure 2: test ERR and NDCG@10 of 50 trees of depth 5, by the number of bins."""
    kinds = {"streaming": "streaming", "static": "full", "coarse to fine": "coarse_to_fine"}
    found = []
    for name in lab.names:
        test = sets.parts(name).test
        exact = _curves(lab, name, boosted("exact"))[0][-1]
        scores = {
            (kind, n_bins): _curves(lab, name, boosted(search, max_bins=n_bins))[0][-1]
            for kind, search in kinds.items()
            for n_bins in BINS
            if search != "coarse_to_fine" or n_bins > CELLS
        }
        rows = []
        for label, measure in MEASURES.items():
            line = number(np.nanmean(quality(test, exact, measure)))
            rows.append([f"exact: {label}", *[line] * len(BINS)])
            for kind in kinds:
                values = [
                    np.nanmean(quality(test, scores[kind, n], measure)) if (kind, n) in scores else None
                    for n in BINS
                ]
                rows.append([f"{kind}: {label}", *("" if v is None else number(v) for v in values)])
        for kind in kinds:
            rows.append(
                [
                    f"{kind}, minus exact: NDCG@10",
                    *(_tested(test, scores[kind, n], exact) if (kind, n) in scores else "" for n in BINS),
                ]
            )
        found.append(table([f"{sets.NAMES[name]}, bins", *map(str, BINS)], rows))
    return found


def _tested(rows, a, b):
    one = compare(rows.y, a, b, qid=rows.qid)
    return difference((one.difference, one.statistic))


def table_2(lab):
    """After table 2: test ERR and NDCG@10, as many trees as validation queries choose; and paired tests."""
    scores = {
        (name, contender): lab.best(("pgbrt", name), model, TREES, sets.parts(name))[2]
        for name in lab.names
        for contender, model in CONTENDERS.items()
    }
    values = {
        (name, contender, label): quality(sets.parts(name).test, of_rows, measure)
        for (name, contender), of_rows in scores.items()
        for label, measure in MEASURES.items()
    }
    columns = [
        [np.nanmean(values[name, contender, label]) for contender in CONTENDERS]
        for name in lab.names
        for label in MEASURES
    ]
    rows = [[contender, *cells] for contender, *cells in zip(CONTENDERS, *best_bold(columns), strict=True)]
    heads = [f"{sets.NAMES[name]} {label}" for name in lab.names for label in MEASURES]
    return [table(["", *heads], rows), *(_findings(lab.names, values, label) for label in MEASURES)]


def _findings(names, values, label):
    """For each claim, paired over the queries of each set, and over all."""
    rows = []
    for one, other in CLAIMS:
        pairs = [(values[name, one, label], values[name, other, label]) for name in names]
        pairs.append(tuple(map(np.concatenate, zip(*pairs, strict=True))))
        found = [compare_values(*pair) for pair in pairs]
        tests = [(one.difference, one.statistic) for one in found]
        low, high = found[-1].interval
        rows.append(
            [
                f"{one} above {other}",
                *map(difference, tests),
                f"{low:+.4f} to {high:+.4f}",
                verdict(tests[:-1], tests[-1]),
            ]
        )
    head = [label, *(sets.NAMES[name] for name in names), "all queries", "95 % interval", "holds here"]
    return table(head, rows)


PARTS = {"figure 1": figure_1, "times": times, "figure 2": figure_2, "table 2": table_2}
