"""Rankers on random polynomials (table 1, figure 2), and the weight of each tree (figure 3)."""

import time

import numpy as np

from ranktrees import HistGBRTClassifier, HistGBRTRegressor, LambdaMARTRanker, OrdinalRanker

from ..survey.lab import kept, quality
from ..survey.markdown import number, table
from . import sets
from .net import LambdaRankNet
from .report import HEADS, findings, intervals, values_of

# Plain boosting, the same for all: no draws of rows or features. A sum of products needs many trees.
PLAIN = {
    "learning_rate": 0.2,
    "max_features": 1.0,
    "subsample": 1.0,
    "gradient_sampling": None,
    "n_jobs": 1,
}
TREES = (250, 500, 1000, 1500, 2000, 2500, 3000)
HIDDEN = (10, 32, 100)
BASELINE = "LambdaRank, a net"
ORDINAL = "ordinal classification"
CLAIMS = (
    ("LambdaMART", ORDINAL),
    ("LambdaMART", BASELINE),
    ("LambdaMART", "regression"),
    ("LambdaMART", "RankNet on trees"),
    (ORDINAL, "regression"),
)


def rankers():
    """By name: the ranker, with as many trees as there may be."""
    given = PLAIN | {"max_iter": TREES[-1]}
    return {
        "LambdaMART": LambdaMARTRanker(**given),
        ORDINAL: OrdinalRanker(HistGBRTClassifier(**given), n_jobs=1),
        "regression": HistGBRTRegressor(**given),
        "RankNet on trees": LambdaMARTRanker("ranknet", truncation_level=None, **given),
    }


def _net(lab, parts, n_hidden):
    """(epochs, scores of validation and of test rows, seconds)."""
    net = LambdaRankNet(n_hidden, max_epochs=300)

    def make():
        started = time.process_time()
        net.fit(parts.train, parts.validation)
        seconds = time.process_time() - started
        return np.hstack([net.n_epochs_, net.predict(parts.validation.X), net.predict(parts.test.X), seconds])

    epochs, *scores, seconds = kept(lab.folder, ("net", lab.n_queries, net), make)
    return int(epochs), *np.split(np.array(scores), [len(parts.validation.y)]), seconds


def table_1(lab):
    """After table 1: rankers on random polynomials; NDCG of the test queries, with 95 % intervals."""
    parts = sets.artificial(lab.n_queries)
    rows, values = [], {}

    def add(name, size, scores, seconds):
        values[name] = values_of([parts.test], [scores])
        rows.append([name, *intervals(values[name]), size, f"{seconds:.0f}"])

    for name, model in rankers().items():
        trees, _, scores, seconds = lab.best(("artificial", lab.n_queries), model, TREES, parts)
        add(name, f"{trees} trees", scores, seconds)
    nets = {n_hidden: _net(lab, parts, n_hidden) for n_hidden in HIDDEN}
    n_hidden = max(HIDDEN, key=lambda n: np.nanmean(quality(parts.validation, nets[n][1])))
    epochs, _, scores, seconds = nets[n_hidden]
    add(BASELINE, f"{n_hidden} hidden, {epochs} epochs", scores, seconds)
    head = [f"{lab.n_queries} queries", *HEADS, "size", "CPU seconds"]
    return [table(head, rows), findings(values, CLAIMS)]


def figure_2(lab):
    """After figure 2: NDCG@10 of test queries over the number of trees, and the CPU seconds of all trees."""
    parts = sets.artificial(lab.n_queries)
    rows = []
    for name, model in rankers().items():
        _, scores, seconds = lab.curves(("artificial", lab.n_queries), model, TREES, parts)
        values = [number(np.nanmean(quality(parts.test, of_stage))) for of_stage in scores]
        rows.append([name, *values, f"{seconds:.0f}"])
    return [table([f"rounds; {lab.n_queries} queries", *map(str, TREES), "CPU seconds"], rows)]


# ---------------------------------------------------------------------------------------- Newton and optimal

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
    given = PLAIN | {"step": "optimal", "learning_rate": None, "max_iter": OPTIMAL[-1]}
    for high in (5.0, 100.0):
        found[f"optimal in [.1, {high:g}]"] = (
            LambdaMARTRanker(step_interval=(0.1, high), **given),
            OPTIMAL,
        )
    paper = LambdaMARTRanker(
        step_interval=(0.1, 100.0),
        step_rows="validation",
        split_criterion="squared_error",
        leaf_values="mean",
        early_stopping=False,
        **given,
    )
    return found | {"one weight of means, by validation": (paper, OPTIMAL)}


def figure_3(lab):
    """After figure 3: NDCG@10 of test queries over the number of trees, and trees for the same NDCG@10."""
    parts = sets.artificial(lab.n_queries)
    curves, rows = {}, []
    for name, (model, trees) in weighted().items():
        _, scores, seconds = lab.curves(("artificial", lab.n_queries), model, trees, parts)
        curves[name] = trees, [float(np.nanmean(quality(parts.test, of_stage))) for of_stage in scores]
        at = dict(zip(*curves[name], strict=True))
        shown = [number(at[n]) if n in at else "" for n in SHOWN]
        rows.append([name, *shown, f"{1000 * seconds / trees[-1]:.0f}"])

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
        table([f"trees; {lab.n_queries} queries", *map(str, SHOWN), "CPU ms per tree"], rows),
        table([f"trees (ratio to {REFERENCE}) for NDCG@10 of", *(number(goals[n], 2) for n in seen)], ratios),
    ]


def _first(trees, values, goal):
    """The first number of trees with which the goal is reached, or None."""
    return next((n for n, value in zip(trees, values, strict=True) if value >= goal), None)


TABLES = {"1": table_1, "figure 2": figure_2, "figure 3": figure_3}
