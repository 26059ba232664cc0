"""Newton or optimal steps: the weight of each tree (figures 3 and 4)."""

from functools import cache

import numpy as np

from ranktrees import LambdaMARTRanker
from ranktrees.rows import query_offsets

from ..drawing import FIGURES, draw
from ..survey.lab import fitted, kept, paired, quality
from ..survey.markdown import difference, number, table
from . import sets
from .artificial import TREES
from .net import FORCES
from .report import MEASURES

N_TREES = 250
N_SEARCHED = 80
SEEN = (1, 2, 3, 5, *range(10, N_TREES + 1, 10))
NEWTON, SHRUNK = "whole Newton steps", "Newton steps, rate .1"
PAPER = "one weight of means, by validation"
TESTED = (10, 20, 40, 80)


def weighted(leaves, high):
    """By name: rankers whose trees are weighted in different ways, by weights of at most ``high``."""
    given = TREES | {"max_leaf_nodes": leaves}
    searched = {"step": "optimal", "step_interval": (0.1, high), "max_iter": N_SEARCHED, **given}
    validated = {"step_rows": "validation", "early_stopping": False, **searched}
    means = {"leaf_values": "mean", **validated}
    return {
        NEWTON: LambdaMARTRanker(FORCES, learning_rate=1.0, max_iter=N_TREES, **given),
        SHRUNK: LambdaMARTRanker(FORCES, learning_rate=0.1, max_iter=N_TREES, **given),
        PAPER: LambdaMARTRanker(FORCES, **means),
        "the same, shrunk by .5": LambdaMARTRanker(FORCES, learning_rate=0.5, **means),
        "one weight of Newton steps, by validation": LambdaMARTRanker(FORCES, **validated),
        "one weight of Newton steps, by training": LambdaMARTRanker(FORCES, **searched),
    }


# By title: the rows, the leaves, and the paper's highest weight.
PANELS = {
    "3(a) artificial": (sets.artificial, 10, 100.0),
    "3(b) like the web": (sets.web, 15, 5.0),
}


def course(lab, name, model, parts):
    """What each tree does.

    Returns
    -------
    weights : ndarray of shape (n_trees,)
        What the means of the forces on the rows of a leaf are multiplied by, if leaves are means.
    train : ndarray of shape (n_seen,)
        NDCG@10 of the training queries, at each number in `SEEN`.
    test : ndarray of shape (n_seen, n_queries)
    """
    seen = [trees for trees in SEEN if trees <= model.max_iter]

    def make():
        others = {}
        if model.step_rows == "validation":
            others = {"X_val": parts.validation.X, "y_val": parts.validation.labels}
        fit = fitted(model, parts.train, 0, **others)
        _, offsets = query_offsets(parts.train.qid, len(parts.train.qid))
        forces = FORCES.prepare(parts.train.y, None, offsets)
        before = np.zeros(len(parts.train.y))
        gradients, hessians = np.empty((2, len(before)))
        weights, lines = [], []
        of_test = fit.staged_predict(parts.test.X)
        for trees, scores in enumerate(fit.staged_predict(parts.train.X), 1):
            test = next(of_test)
            if model.leaf_values == "mean":
                forces.gradients(before, gradients, hessians)
                added = scores - before
                weights.append(-(added @ added) / (added @ gradients))
                before = scores.copy()
            if trees in seen:
                train = np.nanmean(quality(parts.train, scores, MEASURES["NDCG@10"]))
                lines.append(np.append(train, quality(parts.test, test, MEASURES["NDCG@10"])))
        return np.concatenate([weights, np.ravel(lines)])

    found = kept(lab.folder, ("course", name, model), make)
    n_weights = model.max_iter if model.leaf_values == "mean" else 0
    lines = found[n_weights:].reshape(len(seen), -1)
    return found[:n_weights], lines[:, 0], lines[:, 1:]


@cache
def courses(lab):
    """By title of the panel: by ranker: (numbers of trees, weights, training, test)."""
    found = {}
    for title, (make, leaves, high) in PANELS.items():
        found[title] = {
            of: (
                [trees for trees in SEEN if trees <= model.max_iter],
                *course(lab, (title, lab.n_queries), model, make(lab.n_queries)),
            )
            for of, model in weighted(leaves, high).items()
        }
    return found


def figure_3(lab):
    """NDCG@10 of training and test queries over the number of trees; tests against whole Newton steps."""
    panels, made = {}, []
    for title, found in courses(lab).items():
        panels[f"{title}, training"] = {of: (seen, train) for of, (seen, _, train, _) in found.items()}
        curves = {of: (seen, np.nanmean(test, axis=1)) for of, (seen, _, _, test) in found.items()}
        panels[f"{title}, test"] = curves
        at = {of: dict(zip(seen, test, strict=True)) for of, (seen, _, _, test) in found.items()}
        rows = []
        for of, (seen, values) in curves.items():
            cells = [number(np.nanmean(at[of][trees])) for trees in TESTED]
            if of != NEWTON:
                tests = [difference(paired(at[of][trees], at[NEWTON][trees])) for trees in TESTED]
                cells = map("; ".join, zip(cells, tests, strict=True))
            best = int(np.argmax(values))
            goal = curves[SHRUNK][1].max()
            needed = next((str(n) for n, value in zip(seen, values, strict=True) if value >= goal), "")
            rows.append([of, *cells, f"{number(values[best])}, {seen[best]}", needed])
        heads = [f"{title}, {lab.n_queries} queries", *(f"{n} trees" for n in TESTED)]
        made.append(table([*heads, "highest, trees", f"trees for the highest of {SHRUNK}"], rows))
    if lab.draws:
        draw(FIGURES / "lambdasmart_3.svg", panels, x="trees", y="NDCG@10", log=True)
    return made


def figure_4(lab):
    """The weights that the validation queries choose, over the rounds."""
    panels, rows = {}, []
    for title, found in courses(lab).items():
        _, weights, *_ = found[PAPER]
        panels[title[5:]] = {"weight of the tree": (np.arange(1, len(weights) + 1), weights)}
        *_, high = PANELS[title]
        rows.append(
            [
                title[5:],
                *(number(np.quantile(weights, part), 2) for part in (0.1, 0.5, 0.9)),
                str(np.count_nonzero(weights < 0.101)),
                str(np.count_nonzero(weights > 0.999 * high)),
            ]
        )
    if lab.draws:
        draw(FIGURES / "lambdasmart_4.svg", panels, x="boosting iteration", y="weight")
    return [table(["", "10 % below", "median", "10 % above", "at the lower end", "at the upper end"], rows)]


TABLES = {"figure 3": figure_3, "figure 4": figure_4}
