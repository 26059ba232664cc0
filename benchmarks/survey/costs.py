"""Chapter 6: features that cost something (table 6.1, figures 6.1 and 6.2).

No set at hand says what its features cost. Here each is given a cost of 1, 5, 20, 50, 100, 150 or 200, drawn,
the costs that Yahoo gave the features of its set. A model pays for a feature once; costs are shown as shares
of what all features together cost.
"""

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

from . import sets
from .contenders import SAMPLED, boosted, forest
from .lab import fitted, paired, quality
from .markdown import difference, number, table

COSTS = (1, 5, 20, 50, 100, 150, 200)
WEIGHTS = (0.0, 1e-6, 1e-5, 3e-5, 1e-4, 3e-4)
POINTS = (1, 2, 3, 5, 7, 10, 15, 25, 50, 100)
SHOWN = (1, 2, 5, 10, 25, 50, 100)


def costs_of(n_features):
    return np.random.default_rng(0).choice(COSTS, n_features).astype(float)


def learners(costs, weight):
    """A forest and boosting of as many trees."""
    priced = {"feature_costs": costs, "cost_weight": weight}
    if costs is not None:
        priced["cost_rule"] = "worth"
    yield "RF", forest(10, 0.3).set_params(**priced)
    yield "kSGBRT", boosted(4, max_iter=POINTS[-1], **SAMPLED).set_params(**priced)


def _priced(name, model, costs, seed):
    """(cost after so many trees, NDCG@10 of each test query after so many trees) of the first fold."""
    fold = sets.folds(name)[0]
    model = fitted(model, fold.train, seed)
    values = [quality(fold.test, model.predict(fold.test.X, n_trees=n)) for n in POINTS]
    return model.ensemble_.costs_of_trees(costs)[list(POINTS)] / costs.sum(), np.array(values)


def _cheapest(name, model, costs, share, seed):
    """NDCG@10 of each test query, by the cheapest features that cost no more than a share of all."""
    fold = sets.folds(name)[0]
    by_cost = np.argsort(costs, kind="stable")
    kept = by_cost[np.cumsum(costs[by_cost]) <= share * costs.sum() + 1e-9]
    model = make_pipeline(ColumnTransformer([("kept", "passthrough", kept)]), model)
    return quality(fold.test, fitted(model, fold.train, seed).predict(fold.test.X))


def _mean(runs):
    return [np.mean(parts, axis=0) for parts in zip(*runs, strict=True)]


def _runs(lab, name, costs):
    """By learner and weight: (costs, values), means over seeds."""
    models = {(learner, weight): model for weight in WEIGHTS for learner, model in learners(costs, weight)}
    seeds = range(lab.seeds_of(name))
    found = iter(
        lab.all(_priced, [(name, model, costs, seed) for model in models.values() for seed in seeds])
    )
    return {key: _mean([next(found) for _ in seeds]) for key in models}


def table_6_1(lab):
    """After table 6.1: what is paid, and what it is worth, by the weight of costs."""
    parts = []
    for name in lab.names:
        costs = costs_of(sets.folds(name)[0].train.X.shape[1])
        runs = _runs(lab, name, costs)
        rows = []
        for learner, plain in learners(None, 0.0):
            paid_free, free = runs[learner, 0.0]
            for weight in WEIGHTS:
                paid, values = runs[learner, weight]
                fits = [(name, plain, costs, paid[-1], seed) for seed in range(lab.seeds_of(name))]
                cheapest = np.mean(lab.all(_cheapest, fits), axis=0)
                affordable = max(1, np.count_nonzero(paid_free <= paid[-1]))
                others = (free[-1], free[affordable - 1], cheapest)
                tests = [paired(values[-1], other) for other in others] if weight else []
                rows.append(
                    [
                        f"{learner}, {weight:g}",
                        number(paid[-1], 2),
                        number(np.nanmean(values[-1])),
                        *map(difference, tests),
                        *[""] * (3 - len(tests)),
                    ]
                )
        versus = ("weight 0", "weight 0 stopped at the same cost", "the cheapest features")
        head = [f"{sets.NAMES[name]}: weight", "cost", "NDCG@10", *(f"above {other}" for other in versus)]
        parts.append(table(head, rows))
    return parts


def _figure(lab, learner):
    name = lab.names[0]
    costs = costs_of(sets.folds(name)[0].train.X.shape[1])
    runs = _runs(lab, name, costs)
    shown = np.isin(POINTS, SHOWN)
    rows = []
    for weight in WEIGHTS:
        paid, values = runs[learner, weight]
        pairs = zip(paid[shown], np.nanmean(values[shown], axis=1), strict=True)
        rows.append([f"{weight:g}", *(f"{number(cost, 2)}: {number(value)}" for cost, value in pairs)])
    return [table([f"{learner}, weight", *map(str, SHOWN)], rows)]


def figure_6_1(lab):
    """After figure 6.1: cost and NDCG@10 of a forest as trees are added, by the weight of costs."""
    return _figure(lab, "RF")


def figure_6_2(lab):
    """After figure 6.2: cost and NDCG@10 of boosting as trees are added, by the weight of costs."""
    return _figure(lab, "kSGBRT")


TABLES = {"6.1": table_6_1, "figure 6.1": figure_6_1, "figure 6.2": figure_6_2}
