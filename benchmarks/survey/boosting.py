"""Chapter 2: boosting by rate, by share of rows and of features, averages, and from a forest."""

from dataclasses import dataclass, replace

import numpy as np

from ..drawing import FIGURES, draw
from . import sets
from .contenders import RF, boosted, initialised
from .lab import Contender, fitted, kept, numbers_of_trees, quality, staged
from .markdown import MEASURES, findings, two_parts
from .performance import seconds

SET = "yandex"
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
RATES = (0.02, 0.05, 0.1, 0.2)
NUMBERS = (1, 2, 3, 4, 5, 6, 8, 9, 10)  # of 42 features; the thesis has 10 to 160 of 700
DRAWN = (1, 2, 3)
RUNS = (1, 2, 5, 10)
N_TREES = 1000
ALL = Contender("GBRT: all features", boosted(max_iter=N_TREES))
BY_RATE = [Contender(f"GBRT, rate {rate}", boosted(max_iter=N_TREES, learning_rate=rate)) for rate in RATES]
FROM_FOREST = [Contender(f"IGBRT, rate {rate}", initialised(learning_rate=rate)) for rate in RATES[:3]]


def share_of(n_drawn):
    """Of the features that are not constant, of which the library draws so many."""
    return n_drawn / np.count_nonzero(np.ptp(sets.folds(SET)[0].train.X, axis=0))


def k_stochastic(n_drawn):
    return boosted(max_iter=N_TREES, max_features=share_of(n_drawn))


def table_2_2(lab):
    """Table 2.2: SGBRT by the share of the rows that each tree is grown on."""
    contenders = [Contender(f"{share}", boosted(max_iter=N_TREES, subsample=share)) for share in SHARES]
    return [two_parts(lab, SET, contenders, "s", contenders[-1])]


def table_2_3(lab):
    """Table 2.3: kSGBRT by the number of features that each split chooses among, and CPU seconds of a fit."""
    models = {f"{n}": k_stochastic(n) for n in NUMBERS} | {"all": ALL.model}
    contenders = [Contender(*one) for one in models.items()]
    times = [seconds(lab.folder, model) for model in models.values()]
    return [two_parts(lab, SET, contenders, "K", contenders[-1], {"CPU s": times})]


@dataclass(frozen=True)
class Average:
    """The mean of so many of all runs."""

    n_drawn: int
    n_runs: int

    @property
    def name(self):
        return f"{self.n_drawn}"

    def scores(self, folder, name, number):
        def make():
            fold = sets.folds(name)[number]
            X, total, means = sets.joined(*fold).X, 0, []
            for run in range(max(RUNS)):
                total = total + staged(fitted(k_stochastic(self.n_drawn), fold.train, run), X)
                if run + 1 in RUNS:
                    means.append(total / np.float32(run + 1))
            return np.array(means)

        return kept(folder, ("averages", name, number, self.n_drawn, RUNS), make)[RUNS.index(self.n_runs)]


def table_2_4(lab):
    """Table 2.4: means of b runs of kSGBRT."""
    averages = [Average(n_drawn, n_runs) for n_drawn in DRAWN for n_runs in RUNS]
    contenders = [*averages, replace(ALL, name="all")]
    runs = {"B": [*(f"{one.n_runs}" for one in averages), "1"]}
    claims = [
        (f"K = {n_drawn}: 5 runs above {fewer}", Average(n_drawn, 5), Average(n_drawn, fewer))
        for n_drawn in DRAWN
        for fewer in (1, 2)
    ]
    return [two_parts(lab, SET, contenders, "K", contenders[-1], runs), findings(lab, claims, [SET])]


def curves(lab, contenders, line, first):
    """{measure: {name: (numbers of trees, values of test queries)}}, from a stage on; a line for a forest."""
    panels = {}
    for label, measure in MEASURES.items():
        panels[label] = {}
        for one in contenders:
            trees, values = numbers_of_trees(one.model)[first:], []
            for number, fold in enumerate(lab.folds(SET)):
                scores = fold.part_of(one.scores(lab.folder, SET, number)[first:], "test")
                values.append([np.nanmean(quality(fold.test, stage, measure)) for stage in scores])
            panels[label][one.name] = trees, np.mean(values, axis=0)
        if line is not None:
            level = float(np.mean(lab.measured(SET, line, measure)[1]))
            panels[label][line.name] = trees[[0, -1]], [level, level]
    return panels


def figure(lab, name, contenders, line=None, first=4):
    panels = curves(lab, contenders, line, first)
    draw(FIGURES / f"survey-{name}.svg", panels, x="boosted trees", y="test queries")
    return [f"![Figure {name}: RMSE, ERR and NDCG over boosted trees](figures/survey-{name}.svg)"]


def figure_2_1(lab):
    """Figure 2.1: GBRT by learning rate, against a forest."""
    return figure(lab, "2.1", BY_RATE, RF)


def figure_2_2(lab):
    """Figure 2.2: kSGBRT by the number of features that each split chooses among."""
    contenders = [Contender(f"k = {n}", k_stochastic(n)) for n in (1, 2, 3, 5, 8)]
    return figure(lab, "2.2", [*contenders, ALL])


def figure_2_3(lab):
    """Figure 2.3: IGBRT by learning rate, against the forest that it starts from."""
    return figure(lab, "2.3", FROM_FOREST, RF, 0)


def rates(lab):
    """Figures 2.1 and 2.3: GBRT and IGBRT tested against the forest."""
    claims = [(f"{one.name}, above RF", one, RF) for one in (*BY_RATE, *FROM_FOREST)]
    return [findings(lab, claims, [SET])]


TABLES = {
    "2.2": table_2_2,
    "2.3": table_2_3,
    "2.4": table_2_4,
    "figure 2.1": figure_2_1,
    "figure 2.2": figure_2_2,
    "figure 2.3": figure_2_3,
    "figures 2.1 and 2.3, findings": rates,
}
