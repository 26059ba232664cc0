"""Tables of paired differences to the first setting, as Markdown.

A difference is the mean over draws of the mean over the queries of the judge part, seeds averaged. Its
variance is the larger of two: that between draws, which holds all chance but needs many of them; and that of
the queries within draws, pooled, which takes the models as given. The interval is 1.96 standard errors to
each side, and t is in brackets. The last lines weigh kinds equally, and take them as given, too.
"""

import string

import numpy as np

from ..drawing import draw
from ..survey.markdown import number, signed, table
from .running import CHECKPOINTS, CONVERGED
from .settings import trees_by_default

EQUAL_TREES = (50, 100, 200, 400)
BUDGETS = (100, 300)  # trees of the reference
NONE = "–"


def difference(by_draw):
    """(Mean, standard error), from (values of queries, their weights) of each draw."""
    means, variances = [], []
    for values, weights in by_draw:
        counts = ~np.isnan(values)
        values, weights = values[counts], weights[counts] / weights[counts].sum()
        means.append(weights @ values)
        variances.append(weights**2 @ (values - means[-1]) ** 2 * len(values) / (len(values) - 1))
    n = len(means)
    between = np.var(means, ddof=1) / n if n > 1 else 0.0
    return np.mean(means), np.sqrt(max(between, np.sum(variances) / n**2))


def shown(mean, error):
    """A cell."""
    return f"{signed(mean)} ± {number(1.96 * error)} ({mean / error if error else 0:+.1f})"


class Comparison:
    """What settings gave in the same places, of the same draws and seeds.

    Parameters
    ----------
    outcomes : dict
        From (place, setting) to {draw: `Outcome` of each seed}; a place is (kind, size).
    settings : list of str
        The reference first.
    """

    def __init__(self, outcomes, settings):
        self.outcomes = outcomes
        self.letters = dict(zip(string.ascii_uppercase + string.ascii_lowercase, settings, strict=False))
        self.reference, *self.others = settings
        self.places = list(dict.fromkeys(place for place, _ in outcomes))

    def runs(self, place, setting):
        """All outcomes."""
        return [run for runs in self.outcomes[place, setting].values() for run in runs]

    def per_tree(self, place, setting):
        """Seconds of a processor per tree, or NaN."""
        runs = self.runs(place, setting)
        return sum(run.seconds for run in runs) / (sum(run.n_trees for run in runs) or np.nan)

    def values(self, place, setting, stage):
        """[(NDCG@10 of each query, weights) of each draw], seeds averaged; empty where there are none."""
        return [
            (np.mean([run.at(stage) for run in runs], axis=0, dtype=np.float64), runs[0].weights)
            for runs in self.outcomes[place, setting].values()
            if all(run.has(stage) for run in runs)
        ]

    def table(self, stage_of):
        """A line for each place; ``stage_of(place, setting)`` is a number of trees, or "converged"."""
        lines, found = [], {setting: {} for setting in self.others}
        for place in self.places:
            reference = self.values(place, self.reference, stage_of(place, self.reference))
            for setting in self.others:
                others = self.values(place, setting, stage_of(place, setting))
                if reference and others:
                    pairs = zip(reference, others, strict=True)
                    found[setting][place] = difference([(b - a, weights) for (a, weights), (b, _) in pairs])
            cells = [shown(*found[one][place]) if place in found[one] else NONE for one in self.others]
            lines.append([*place, number(difference(reference)[0]) if reference else NONE, *cells])
        sizes = list(dict.fromkeys(size for _, size in self.places))
        for among in [[size] for size in sizes] + [sizes] * (len(sizes) > 1):
            some = [[value for place, value in one.items() if place[1] in among] for one in found.values()]
            cells = [shown(*self.mean(values)) if values else NONE for values in some]
            lines.append(["**mean**", ", ".join(among), "", *cells])
        first, *others = self.letters
        return table(["NDCG@10", "size", first, *(f"{other} - {first}" for other in others)], lines)

    @staticmethod
    def mean(differences):
        """The mean of independent ones, weighed equally."""
        means, errors = np.transpose(differences)
        return means.mean(), np.hypot.reduce(errors) / len(errors)

    def within(self, n_trees):
        """``stage_of``: how many trees grow in the seconds in which the reference grows so many."""
        return lambda place, setting: (
            n_trees * self.per_tree(place, self.reference) / self.per_tree(place, setting)
        )

    def by_default(self, n_trees):
        """``stage_of``: as many trees as each setting grows by default; means have no such number."""
        return lambda _, setting: min(trees_by_default(setting) or 0, n_trees)

    def curve(self, place, setting):
        """(Seconds, NDCG@10) after each number of trees at which it was judged."""
        stages = sorted(stage for stage in self.runs(place, setting)[0].values if stage in CHECKPOINTS)
        values = [
            np.mean([difference([one])[0] for one in self.values(place, setting, stage)]) for stage in stages
        ]
        return self.per_tree(place, setting) * np.array(stages, float), np.array(values)

    def draw(self, path):
        """Draw NDCG@10 against seconds of a processor, a panel for each place."""
        panels = {
            ", ".join(place): {setting: self.curve(place, setting) for setting in self.letters.values()}
            for place in self.places
        }
        draw(path, panels, x="seconds of training", y="NDCG@10", log=True)

    def times(self):
        """Seconds until the reference is as good as a setting at its best, over those that one takes."""
        lines = []
        for place in self.places:
            seconds, values = self.curve(place, self.reference)
            cells = []
            for setting in self.others:
                theirs, reached = self.curve(place, setting)
                if not len(reached):
                    cells.append(NONE)
                    continue
                best, as_good = reached.argmax(), values >= reached.max()
                ratio = seconds[as_good.argmax()] / theirs[best] if as_good.any() else np.inf
                never = f"never ({signed(values.max() - reached[best])})"
                cells.append(f"{ratio:.3f}" if np.isfinite(ratio) else never)
            lines.append([*place, *cells])
        first, *others = self.letters
        return table([f"seconds of {first} to the best of", "size", *others], lines)

    def costs(self):
        """Milliseconds of a processor per tree, and trees kept where the stop part says."""
        lines = []
        for place in self.places:
            cells = [
                f"{1000 * self.per_tree(place, setting):.2f} "
                f"({np.mean([run.kept for run in self.runs(place, setting)]):.0f})"
                for setting in self.letters.values()
            ]
            lines.append([*place, *cells])
        return table(["ms a tree (trees kept)", "size", *self.letters], lines)

    def show(self, n_trees):
        """Print all tables, of fits of so many trees."""
        print("\n".join(f"{letter}: `{setting}`  " for letter, setting in self.letters.items()))
        stages = {f"{k} trees": lambda *_, k=k: k for k in EQUAL_TREES if k <= n_trees}
        stages["Converged"] = lambda *_: CONVERGED
        stages |= {f"In the time of {k} trees of A": self.within(k) for k in BUDGETS if k <= n_trees}
        stages["After as many trees as by default"] = self.by_default(n_trees)
        for title, stage_of in stages.items():
            print(f"\n## {title}\n\n{self.table(stage_of)}")
        print(f"\n## Time to the best of another\n\n{self.times()}")
        print(f"\n## Costs\n\n{self.costs()}")
