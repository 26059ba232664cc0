"""Rankers on random polynomials (table 1), and the weight of each tree (figure 3)."""

import time

import numpy as np

from ranktrees import HistGBRTClassifier, HistGBRTRegressor, LambdaMARTRanker, OrdinalRanker

from ..survey.lab import kept, paired, quality
from ..survey.markdown import difference, number, table, verdict
from . import sets
from .net import LambdaRankNet
from .report import MEASURES, quality_row

# No draws of rows or features, as in the paper; a sequence of 50 products needs many trees.
PLAIN = {"learning_rate": 0.2, "max_features": 1.0, "subsample": 1.0, "n_jobs": 1}
TREES = (100, 200, 400, 600, 800, 1000)
BASELINE = "LambdaRank, a net"


def rankers():
    """By name: the ranker, with as many trees as there may be."""
    given = PLAIN | {"max_iter": TREES[-1]}
    return {
        "LambdaMART": LambdaMARTRanker(**given),
        "ordinal classification (McRank)": OrdinalRanker(HistGBRTClassifier(**given), n_jobs=1),
        "regression": HistGBRTRegressor(**given),
        "RankNet on trees": LambdaMARTRanker("ranknet", truncation_level=None, **given),
    }


def _net(lab, parts):
    """(epochs, scores of the test rows, seconds)."""

    def make():
        started = time.process_time()
        net = LambdaRankNet().fit(parts.train, parts.validation)
        return np.append(net.predict(parts.test.X), [net.n_epochs_, time.process_time() - started])

    found = kept(lab.folder, ("net", lab.n_queries, LambdaRankNet()), make)
    return int(found[-2]), found[:-2], found[-1]


def table_1(lab):
    """After table 1: rankers on random polynomials; NDCG of the test queries, with 95 % intervals."""
    parts = sets.artificial(lab.n_queries)
    rows, values = [], {}

    def add(name, size, scores, seconds):
        values[name] = quality(parts.test, scores)
        of_measures = {measure: [quality(parts.test, scores, measure)] for measure in MEASURES}
        rows.append([name, *quality_row(of_measures), size, f"{seconds:.0f}"])

    for name, model in rankers().items():
        trees, _, scores, seconds = lab.best(("artificial", lab.n_queries), model, TREES, parts)
        add(name, f"{trees} trees", scores, seconds)
    epochs, scores, seconds = _net(lab, parts)
    add(BASELINE, f"{epochs} epochs", scores, seconds)

    claims = [
        ("LambdaMART", "ordinal classification (McRank)"),
        ("LambdaMART", BASELINE),
        ("LambdaMART", "regression"),
        ("LambdaMART", "RankNet on trees"),
        ("ordinal classification (McRank)", "regression"),
    ]
    tests = [paired(values[better], values[worse]) for better, worse in claims]
    return [
        table(["", *MEASURES, "size", "CPU seconds"], rows),
        table(
            ["finding", "NDCG@10", "holds here"],
            [
                [f"{better} above {worse}", difference(test), verdict([test], test)]
                for (better, worse), test in zip(claims, tests, strict=True)
            ],
        ),
    ]


# ------------------------------------------------------------------------------------------------ Newton, optimal

STEPS = tuple(range(5, 401, 5))
OPTIMAL = tuple(range(5, 151, 5))
SHOWN = (5, 10, 25, 50, 100, 150, 200, 400)
REFERENCE = "Newton, rate 0.1"


def weighted():
    """By name: the ranker, and the numbers of trees to look at."""
    found = {
        f"Newton, rate {rate:g}": (
            LambdaMARTRanker(**PLAIN | {"learning_rate": rate, "max_iter": STEPS[-1]}),
            STEPS,
        )
        for rate in (0.1, 0.2, 0.5, 1.0)
    }
    for high in (5.0, 100.0):
        model = LambdaMARTRanker(step="optimal", step_interval=(0.1, high), **PLAIN)
        found[f"optimal in [.1, {high:g}]"] = (model.set_params(max_iter=OPTIMAL[-1]), OPTIMAL)
    return found


def figure_3(lab):
    """After figure 3: NDCG@10 of test queries over the number of trees, and trees for the same NDCG@10."""
    parts = sets.artificial(lab.n_queries)
    curves = {}
    for name, (model, trees) in weighted().items():
        _, scores, _ = lab.curves(("artificial", lab.n_queries), model, trees, parts)
        curves[name] = trees, [float(np.nanmean(quality(parts.test, of_stage))) for of_stage in scores]

    rows = []
    for name, (trees, values) in curves.items():
        at = dict(zip(trees, values, strict=True))
        rows.append([name, *(number(at[n]) if n in at else "" for n in SHOWN)])

    goals = np.round(np.arange(0.50, 0.90, 0.05), 2)
    needed = {name: [_first(*curve, goal) for goal in goals] for name, curve in curves.items()}
    seen = [place for place in range(len(goals)) if needed[REFERENCE][place] is not None]
    ratios = [
        [
            name,
            *("" if of[n] is None else f"{of[n]} ({of[n] / needed[REFERENCE][n]:.2f})" for n in seen),
        ]
        for name, of in needed.items()
    ]
    return [
        table([f"trees; {lab.n_queries} queries", *map(str, SHOWN)], rows),
        table([f"trees (share of {REFERENCE}'s) for", *(number(goals[n], 2) for n in seen)], ratios),
    ]


def _first(trees, values, goal):
    """The first number of trees with which the goal is reached, or None."""
    return next((n for n, value in zip(trees, values, strict=True) if value >= goal), None)


TABLES = {"1": table_1, "figure 3": figure_3}
