"""Chapter 5: a small set learns from a large one (tables 5.1 and 5.2).

::

    source   all of MQ2007 that there is       200 web queries; a half is from another market, where every
                                               feature is counted otherwise
    target   MQ2008                            the web set, its first 15 queries
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.pipeline import make_pipeline

from ranktrees import ModelFeatures, OrdinalRanker, select_source_rows

from . import sets
from .contenders import forest
from .lab import fitted, kept, staged
from .markdown import two_parts

N_TREES = 50
PERCENTS = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 75.0, 100.0)
Q, P, C = "score", "probabilities", "cumulative"
ADDED = {"Q": (Q,), "P01234": (P,), "C0123": (C,), "Q+P": (Q, P), "Q+C": (Q, C), "Q+P+C": (Q, P, C)}


def by_likeness(folder, name, number):
    """The numbers of the source's rows, those first that a classifier takes for the target's."""

    def make():
        source, target = sets.source(name), sets.folds(name)[number].train
        _, probabilities = select_source_rows(
            source.X, target.X, qid_source=source.qid, cv=5, random_state=number, n_jobs=1
        )
        return np.argsort(-probabilities, kind="stable")

    return kept(folder, ("by likeness", name, number), make)


@cache
def model_of_source(name):
    return fitted(OrdinalRanker(forest(N_TREES)), sets.source(name), 0)


@dataclass(frozen=True)
class Transferred:
    """A forest of the target's rows and a part of the source's, with what the source's model says of them."""

    name: str
    percent: float = 0.0
    add: tuple = ()

    def scores(self, folder, name, number):
        def make():
            fold, model = sets.folds(name)[number], forest(N_TREES)
            train = fold.train
            if self.percent:
                source = sets.source(name)
                n = round(self.percent / 100 * len(source.y))
                train = sets.joined(train, source.of(by_likeness(folder, name, number)[:n]))
            if self.add:
                model = make_pipeline(ModelFeatures(model_of_source(name), add=self.add, cv="prefit"), model)
            return staged(fitted(model, train, number), sets.joined(*fold).X)

        return kept(folder, ("transferred", name, number, self.percent, self.add), make)


def table_5_1(lab):
    """Table 5.1: rows of the source beside those of the target, those that are most like it."""
    contenders = [Transferred("none"), *(Transferred(f"{percent:g}", percent) for percent in PERCENTS)]
    tables = []
    for name, source in sets.SOURCES.items():
        n_rows = [f"{one.percent / 100 * len(sets.source(name).y):,.0f}" for one in contenders]
        corner = f"{sets.NAMES[name]}: top % of {source}"
        tables.append(two_parts(lab, name, contenders, corner, contenders[0], {"rows added": n_rows}))
    return tables


def table_5_2(lab):
    """Table 5.2: what a model of the source says, as features: its score, P(y = c), and P(y <= c)."""
    contenders = [Transferred("baseline"), *(Transferred(name, add=add) for name, add in ADDED.items())]
    return [
        two_parts(lab, name, contenders, f"{sets.NAMES[name]}: added, by {source}", contenders[0])
        for name, source in sets.SOURCES.items()
    ]


TABLES = {"5.1": table_5_1, "5.2": table_5_2}
