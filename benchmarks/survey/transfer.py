"""Chapter 5: a small set learns from a large one (tables 5.1 and 5.2).

::

    source   MQ2007, its first 500 queries       150 web queries; a half is from another market: every feature
                                                 is counted otherwise
    target   MQ2008: a few queries, or many      the web set: a few queries, or many
"""

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

from ranktrees import ModelFeatures, OrdinalRanker, WithSourceRows

from . import sets
from .contenders import STOCHASTIC, boosted
from .lab import Contender, fitted
from .markdown import findings, means

NDCG = [("NDCG", "ndcg@10")]
SHARES = (0.1, 0.25, 0.5, 1.0)
ADDED = {
    "Q": "score",
    "P": "probabilities",
    "C": "cumulative",
    "Q, P and C": ("score", "probabilities", "cumulative"),
}


def learner():
    """Every split looks at all features: what is added shall be seen."""
    return boosted(4, max_iter=75, **STOCHASTIC)


def _compared(lab, contenders_of, claims):
    """A table of NDCG@10, and paired tests, for each source."""
    target = Contender("target only", (learner(),))
    for source, targets in sets.TRANSFERS.items():
        if not set(targets) & set(lab.names):
            continue
        compared = [target, *contenders_of(sets.source(source))]
        meeting = lab.meet(compared, targets)
        yield means(meeting, [one.name for one in compared], NDCG, corner=f"source: {sets.NAMES[source]}")
        yield findings(meeting, claims, together=False)


def table_5_1(lab):
    """After table 5.1: what a model of the source says, as features: its score, P(y = c), and P(y <= c)."""

    def contenders_of(source):
        theirs = FrozenEstimator(fitted(OrdinalRanker(learner()), source, 0))
        yield Contender("source only", (theirs,))
        for name, add in ADDED.items():
            features = ModelFeatures(theirs, add=add, cv="prefit")
            yield Contender(f"target with {name}", (make_pipeline(features, learner()),))

    claims = [(f"with {name} above target only", f"target with {name}", "target only") for name in ADDED]
    claims += [
        ("with Q above source only", "target with Q", "source only"),
        ("with C above Q", "target with C", "target with Q"),
    ]
    return list(_compared(lab, contenders_of, claims))


def table_5_2(lab):
    """After table 5.2: rows of the source beside those of the target, those that are most like it."""
    names = {share: "all of the source" if share == 1 else f"{share:.0%} of the source" for share in SHARES}

    def contenders_of(source):
        for share, name in names.items():
            model = WithSourceRows(
                learner(), source.X, source.labels, source_size=share, cv=3, random_state=0
            )
            yield Contender(name, (model,))

    claims = [(f"{name} above target only", name, "target only") for name in names.values()]
    claims += [(f"{name} above all", name, names[1.0]) for share, name in names.items() if share < 1]
    return list(_compared(lab, contenders_of, claims))


TABLES = {"5.1": table_5_1, "5.2": table_5_2}
