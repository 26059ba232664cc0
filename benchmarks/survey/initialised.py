"""Chapter 4: what boosting begins from, and both together (tables 4.1 and 4.2); the best of all."""

from itertools import product

import numpy as np
from sklearn.ensemble import StackingRegressor, VotingRegressor
from sklearn.linear_model import LinearRegression, RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import QuantileTransformer

from ranktrees import ModelFeatures, OrdinalRanker

from .contenders import (
    DEPTHS,
    IAVERAGED,
    IKSGBRT,
    KSGBRT,
    RF,
    SAMPLED,
    STOCHASTIC,
    boosted,
    contender,
    forest,
    initialised,
    ordinal,
    peers,
)
from .lab import Contender, averaged, chosen
from .markdown import difference, findings, means, number, table

NDCG = [("NDCG", "ndcg@10")]


def linear():
    return make_pipeline(QuantileTransformer(n_quantiles=200, random_state=0), RidgeCV(np.logspace(-2, 3, 6)))


STARTS = [
    KSGBRT.called("from the mean label"),
    contender("from ridge regression", [boosted(depth, init=linear(), **SAMPLED) for depth in DEPTHS]),
    initialised("from a forest of full trees", (1,), (None,), **SAMPLED),
    initialised("from its out-of-bag scores", (1,), ("oob",), **SAMPLED),
    initialised("from a forest with leaves of 10", (10,), (None,), **SAMPLED),
    initialised("from their out-of-bag scores", (10,), ("oob",), **SAMPLED),
]


def table_4_1(lab):
    """After table 4.1: what boosting begins from, for regression and for classification."""
    events = [ordinal(start, f"{start.name}, classes") for start in STARTS if "ridge" not in start.name]
    meeting = lab.meet([*STARTS, *events])
    first = STARTS[0].name
    claims = [(f"{start.name} above the mean", start.name, first) for start in STARTS[1:]]
    claims += [(f"{event.name} above the mean", event.name, f"{first}, classes") for event in events[1:]]
    names = [contender.name for contender in (*STARTS, *events)]
    return [means(meeting, names, NDCG, corner="kSGBRT, NDCG@10"), findings(meeting, claims)]


def table_4_2(lab):
    """After table 4.2: a forest and boosting, one from the other, side by side, or stacked."""
    trees = forest(10, 0.1)
    made_of = {
        "boosting": lambda boosting: boosting,
        "boosting from the forest": lambda boosting: boosting.set_params(init=trees, init_cv="oob"),
        "mean of both": lambda boosting: VotingRegressor([("forest", trees), ("boosting", boosting)]),
        "stacked, linear": lambda boosting: StackingRegressor(
            [("forest", trees), ("boosting", boosting)], LinearRegression(), cv=5
        ),
        "forest's score as a feature": lambda boosting: make_pipeline(ModelFeatures(trees), boosting),
    }
    compared = [Contender("forest", (trees,))]
    for name, make in made_of.items():
        boosters = [boosted(4, max_iter=n, **STOCHASTIC) for n in (25, 75)]
        compared.append(Contender(name, tuple(map(make, boosters))))
    meeting = lab.meet(compared)
    together = list(made_of)[1:]
    claims = [(f"{name} above boosting", name, "boosting") for name in together]
    claims += [(f"{name} above the forest", name, "forest") for name in together]
    claims.append(("mean of both above boosting from the forest", "mean of both", "boosting from the forest"))
    return [
        means(meeting, ["forest", *made_of], NDCG, corner="NDCG@10"),
        findings(meeting, claims),
    ]


CLASSES = ordinal(IKSGBRT, "IGBRT, sampled, classes")


def slower(name, depths, leaves, first_leaves, shares):
    """More candidates of IGBRT with ordinal classification, at a lower rate."""
    return contender(
        name,
        [
            OrdinalRanker(
                boosted(
                    depth,
                    learning_rate=0.03,
                    min_samples_leaf=leaf,
                    init=forest(first_leaf, 0.1, 100),
                    init_cv="oob",
                    subsample=0.5,
                    max_features=share,
                )
            )
            for depth, leaf, first_leaf, share in product(depths, leaves, first_leaves, shares)
        ],
        "estimator__max_iter",
    )


SLOWER = slower("IGBRT, slower, classes", (4, 6), (20, 50), (10,), (0.1, 0.3))
SHALLOW = slower("IGBRT, slower, shallow, classes", (3, 4), (20,), (10, 30), (0.3, 1.0))
OURS = [
    KSGBRT,
    averaged(KSGBRT, "kSGBRT, average of 5"),
    ordinal(KSGBRT, "kSGBRT, classes"),
    averaged(ordinal(KSGBRT, ""), "kSGBRT, classes, average of 5"),
    RF,
    ordinal(RF, "RF, classes"),
    IKSGBRT,
    IAVERAGED,
    CLASSES,
    averaged(CLASSES, "IGBRT, sampled, classes, average of 5"),
    SLOWER,
    averaged(SLOWER, f"{SLOWER.name}, average of 5"),
    SHALLOW,
    averaged(SHALLOW, f"{SHALLOW.name}, average of 5"),
]


def best(lab):
    """IGBRT with ordinal classification against regression by other packages, on the first set."""
    others = peers()
    name = lab.names[0]
    ranked = sorted(others, key=lambda peer: -chosen(lab.folder, name, 0, peer)[2])
    others = [*others, averaged(ranked[0], f"{ranked[0].name}, average of 5")]
    meeting = lab.meet([*OURS, *others], [name])
    rows = []
    for one in [*OURS, *others]:
        value = "" if one.finish else number(chosen(lab.folder, name, 0, one)[2])
        rows.append([one.name, value, number(meeting.mean(name, one.name))])
    ours = [one.name for one in OURS if "IGBRT" in one.name and "classes" in one.name]
    tests = [
        [peer.name, *(difference(meeting.test([name], one, peer.name)) for one in ours)] for peer in others
    ]
    return [table(["NDCG@10", "validation", "test"], rows), table(["above", *ours], tests)]


TABLES = {"4.1": table_4_1, "4.2": table_4_2, "best": best}
