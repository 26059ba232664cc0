"""Chapter 6: features that cost something, and rows that leave early (table 6.1, figures 6.1 and 6.2)."""

from functools import partial

import numpy as np
from sklearn.base import clone

from ranktrees import EarlyExit

from ..drawing import FIGURES, draw
from . import sets
from .contenders import SHARE, boosted, forest
from .lab import fitted, kept, quality
from .markdown import number, table

SET = "web_1s"
COSTS = (1.0, 3.0, 9.0, 27.0, 81.0)  # of five groups of features
WEIGHTS = (0.0, 1.0)
DROPS = (0.0, 0.05, 0.1, 0.2)
MEASURES = {"PREC@5": "prec.survey@5", "PAUC@[0,5]": "pauc.survey@[0,5]", "AUC": "auc.survey"}
STEP = 5  # numbers of trees that are looked at
# a learner, and the number of trees after which rows leave
LEARNERS = {
    "RF": (forest(200, stage_size=8), 20),
    "SGBRT": (boosted(max_features=SHARE, max_iter=100), 10),
}
N_DRAWS = 2  # of the features' costs


def costs_of(n_features, seed):
    return np.random.default_rng(seed).permutation(np.resize(COSTS, n_features))


def weeded(model, rows, costs, every, drop):
    """float64[n_stages, 1 + n_measures]: the cost of a row, and the measures, while rows leave."""
    n_trees = len(model.ensemble_)
    staged = np.array([s for n, s in enumerate(model.staged_predict(rows.X), 1) if n % STEP == 0])
    seen = np.full(len(rows.y), n_trees)
    if drop:
        early_exit = EarlyExit(every=every, drop=drop, among="all")
        seen = model.predict(rows.X, early_exit=early_exit, return_saved=True)[1].trees
    paid = model.ensemble_.costs_of_trees(costs, tree_cost=1)
    found = []
    for stage in range(STEP, n_trees + 1, STEP):
        trees = np.minimum(stage, seen)
        scores = staged[trees // STEP - 1, np.arange(len(seen))]
        values = [np.nanmean(quality(rows, scores, measure)) for measure in MEASURES.values()]
        found.append([paid[trees].mean(), *values])
    return found


def priced(lab, learner, weight):
    """float64[n_drops, n_draws, 2, n_stages, 1 + n_measures]: of validation and of test queries."""
    (model, every), fold = LEARNERS[learner], sets.folds(SET)[0]
    relevant = fold.train._replace(y=(fold.train.y >= 3).astype(float))

    def of_draw(seed):
        costs = costs_of(fold.train.X.shape[1], seed)
        fit = fitted(clone(model).set_params(feature_costs=costs, cost_weight=weight), relevant, seed)
        parts = fold.validation, fold.test
        return [[weeded(fit, rows, costs, every, drop) for rows in parts] for drop in DROPS]

    found = [
        kept(lab.folder, ("priced", model, every, weight, COSTS, DROPS, seed), partial(of_draw, seed))
        for seed in range(N_DRAWS)
    ]
    return np.swapaxes(found, 0, 1)


def table_6_1(lab):
    """Table 6.1: the measures and the cost of a row, by as many trees as are best for validation queries."""
    tables = []
    for learner in LEARNERS:
        rows = []
        for weight in WEIGHTS:
            for drop, of_draws in zip(DROPS, priced(lab, learner, weight), strict=True):
                cells = []
                for place in range(1, 1 + len(MEASURES)):
                    best = of_draws[:, 0, :, place].argmax(axis=1)
                    chosen = of_draws[np.arange(len(best)), 1, best].mean(axis=0)
                    cells.append(f"{number(chosen[place], 5)} at {chosen[0]:,.0f}")
                rows.append([f"{weight:g}", f"{100 * drop:.0f}", *cells])
        tables.append(table([f"{learner}: λ", "WO %", *(f"{label} at cost" for label in MEASURES)], rows))
    return tables


def figure(lab, name, learner):
    panels = {label: {} for label in MEASURES}
    for weight in WEIGHTS:
        for drop, of_draws in zip(DROPS, priced(lab, learner, weight), strict=True):
            test = of_draws[:, 1].mean(axis=0)
            for place, label in enumerate(MEASURES, 1):
                panels[label][f"λ = {weight:g}, WO {100 * drop:.0f} %"] = test[:, 0], test[:, place]
    draw(FIGURES / f"survey-{name}.svg", panels, x="cost of a row", y="test queries")
    return [f"![Figure {name}: PREC@5, PAUC and AUC over the cost of a row](figures/survey-{name}.svg)"]


def figure_6_1(lab):
    """Figure 6.1: forests that know of costs, and rows that leave."""
    return figure(lab, "6.1", "RF")


def figure_6_2(lab):
    """Figure 6.2: boosting that knows of costs, and rows that leave."""
    return figure(lab, "6.2", "SGBRT")


TABLES = {"6.1": table_6_1, "figure 6.1": figure_6_1, "figure 6.2": figure_6_2}
