"""Chapter 2: forests, boosting, and one from the other (tables 2.2 to 2.4, figures 2.1 to 2.3)."""

import numpy as np

from . import sets
from .contenders import (
    AVERAGED,
    GBRT,
    IAVERAGED,
    IGBRT,
    IKSGBRT,
    KSGBRT,
    RF,
    SAMPLED,
    SGBRT,
    SVM,
    boosted,
    forest,
    peers,
)
from .lab import fitted, quality, stages
from .markdown import findings, means, number, table

WEB = [("ERR", "err"), ("NDCG", "ndcg@10")]
EVERY = [
    ("P@5", "p@5"),
    ("TopAUC@[0,5]", "top_auc@[0,5]"),
    ("AUC", "auc"),
    ("NDCG, empty 1/2", "ndcg(empty_query=0.5)@10"),
    ("NDCG", "ndcg@10"),
    ("ERR", "err"),
]
VARIANTS = [GBRT, SGBRT, KSGBRT, AVERAGED, IGBRT, IKSGBRT, IAVERAGED]
POINTS = (1, 5, 10, 25, 50, 100, 200, 400)


def _names(contenders):
    return [contender.name for contender in contenders]


def table_2_2(lab):
    """After table 2.2: a linear SVM, boosting, forests, and boosting from a forest."""
    compared = [SVM, GBRT, RF, IGBRT]
    meeting = lab.meet(compared)
    claims = [
        ("RF above GBRT", "RF", "GBRT"),
        ("IGBRT above GBRT", "IGBRT", "GBRT"),
        ("IGBRT above RF", "IGBRT", "RF"),
        ("GBRT above SVMrank", "GBRT", "SVMrank"),
        ("RF above SVMrank", "RF", "SVMrank"),
    ]
    return [means(meeting, _names(compared), WEB), findings(meeting, claims)]


def table_2_3(lab):
    """After table 2.3: what sampling rows and features, averaging, and starting from a forest add."""
    meeting = lab.meet([*VARIANTS, RF])
    claims = [
        ("SGBRT above GBRT", "SGBRT", "GBRT"),
        ("kSGBRT above SGBRT", "kSGBRT", "SGBRT"),
        ("the average above kSGBRT", AVERAGED.name, "kSGBRT"),
        ("the average above RF", AVERAGED.name, "RF"),
        ("IGBRT, sampled, above kSGBRT", IKSGBRT.name, "kSGBRT"),
        ("IGBRT, sampled, above RF", IKSGBRT.name, "RF"),
        ("average of IGBRT above that of kSGBRT", IAVERAGED.name, AVERAGED.name),
    ]
    return [means(meeting, _names([*VARIANTS, RF]), WEB), findings(meeting, claims)]


def table_2_4(lab):
    """After table 2.4: the other measures, with regression by other packages beside."""
    compared = [SVM, *VARIANTS, RF, *peers()]
    meeting = lab.meet(compared)
    return [_by_every_measure(meeting, name, _names(compared)) for name in meeting.names]


def _by_every_measure(meeting, name, contenders):
    measures = [measure for _, measure in [*EVERY, ("", "rmse")]]
    rows = [
        [contender, *(number(meeting.mean(name, contender, measure)) for measure in measures)]
        for contender in contenders
    ]
    rows[0][-1] = ""  # its scores are not labels
    return table([sets.NAMES[name], *(label for label, _ in EVERY), "RMSE"], rows)


def _curve(name, model, points, seed):
    """float64[n_points]: NDCG@10 of the test rows of the first fold, after so many trees."""
    fold = sets.folds(name)[0]
    model = fitted(model, fold.train, seed)
    return [np.nanmean(quality(fold.test, scores)) for scores in stages(model, fold.test.X, points)]


def curves(lab, models, points, corner):
    """A table of curves on the first set: a row for each model, a column for each number of trees."""
    name = lab.names[0]
    tasks = [(name, model, points, seed) for model in models.values() for seed in range(lab.seeds_of(name))]
    found = np.reshape(lab.all(_curve, tasks), (len(models), -1, len(points))).mean(axis=1)
    rows = [[label, *map(number, line)] for label, line in zip(models, found, strict=True)]
    return [table([corner, *map(str, points)], rows)]


def figure_2_1(lab):
    """After figure 2.1: NDCG@10 over the number of trees, by learning rate."""
    models = {
        f"rate {rate}": boosted(4, learning_rate=rate, max_iter=POINTS[-1], **SAMPLED)
        for rate in (0.02, 0.05, 0.1, 0.2)
    }
    return curves(lab, models, POINTS, "kSGBRT of depth 4")


def figure_2_2(lab):
    """After figure 2.2: NDCG@10 over the number of trees, by their depth."""
    models = {f"depth {depth}": boosted(depth, max_iter=POINTS[-1], **SAMPLED) for depth in (2, 3, 4, 6, 8)}
    return curves(lab, models, POINTS, "kSGBRT, rate .1")


def figure_2_3(lab):
    """After figure 2.3: NDCG@10 over the trees that are boosted, by the forest that they start from."""
    models = {"no forest": boosted(4, max_iter=POINTS[-1], **SAMPLED)}
    models |= {
        f"{n} trees{kind}": boosted(4, max_iter=POINTS[-1], init=forest(leaf, 0.1, n), **SAMPLED)
        for leaf, kind in ((1, ", full"), (10, ", leaves of 10"))
        for n in (10, 50, 200)
    }
    return curves(lab, models, POINTS, "IGBRT of depth 4, rate .1")


TABLES = {
    "2.2": table_2_2,
    "2.3": table_2_3,
    "2.4": table_2_4,
    "figure 2.1": figure_2_1,
    "figure 2.2": figure_2_2,
    "figure 2.3": figure_2_3,
}
