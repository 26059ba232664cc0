"""Adaptation: a background model of other queries, and few queries to adapt it to (tables 2 to 4)."""

from functools import cache

import numpy as np

from ranktrees import BlendRanker, LambdaMARTRanker, optimal_weight

from ..survey.lab import fitted, kept, quality
from ..survey.markdown import table
from . import sets
from .artificial import TREES
from .net import FORCES, LambdaRankNet
from .report import columns, gain, gains, values_of

BOOSTED = TREES | {"max_iter": 500, "subsample": 0.7, "exact_subsample": True, "n_iter_no_change": 100}
SETTINGS = ((20, 0.1), (10, 0.05), (5, 0.02))  # leaves and rates: the paper's, and two for fewer queries
BACKGROUND, IN_DOMAIN, INTERPOLATION = "Back.", "In-dom.", "Interp."
MART, SMART = "λ-MART, in-dom.", "λ-SMART"


def net(parts):
    return LambdaRankNet(15).fit(parts.train, parts.validation)


def boosted(parts, init=None):
    """LambdaMART with the setting and the number of trees that are best for validation queries."""
    rows = parts.validation
    models = [
        fitted(
            LambdaMARTRanker(FORCES, init=init, max_leaf_nodes=leaves, learning_rate=rate, **BOOSTED),
            parts.train,
            0,
            X_val=rows.X,
            y_val=rows.labels,
        )
        for leaves, rate in SETTINGS
    ]
    return max(models, key=lambda model: np.nanmean(quality(rows, model.predict(rows.X))))


BASELINES = {"nets": net, "trees": boosted}


@cache
def baseline(kind, make, *which):
    """A model of the rows that ``make`` returns."""
    return BASELINES[kind](make(*which))


def adapted(lab, name, source, target):
    """By the kind of the baselines: by contender: scores of the test rows.

    The source and the target are functions that return `Parts`, and what they are called with.
    """
    names = (BACKGROUND, IN_DOMAIN, INTERPOLATION, SMART)

    def make():
        parts = target[0](*target[1:])
        rows, X = parts.validation, parts.test.X
        found = []
        for kind in BASELINES:
            theirs, ours = baseline(kind, *source), baseline(kind, *target)
            weight = optimal_weight(rows.y, theirs.predict(rows.X), ours.predict(rows.X), qid=rows.qid).weight
            scores = [theirs.predict(X), ours.predict(X)]
            scores.append((1 - weight) * scores[0] + weight * scores[1])
            found.append([*scores, boosted(parts, theirs).predict(X)])
        return np.array(found)

    found = kept(lab.folder, ("tuned", name, target[1:]), make)
    nets, trees = (dict(zip(names, scores, strict=True)) for scores in found)
    return {"nets": nets | {MART: trees[IN_DOMAIN]}, "trees": trees}


def _table(lab, title, pairs):
    """The table of pairs (source, target), whose test queries are taken together."""
    found = [adapted(lab, title, *pair) for pair in pairs]
    tests = [make(*which).test for _, (make, *which) in pairs]
    values = {
        kind: {of: values_of(tests, [one[kind][of] for one in found]) for of in found[0][kind]}
        for kind in BASELINES
    }
    return [gains(title, values, SMART)]


def table_2(lab):
    """Long queries: a part of the queries that the background is made from."""
    return _table(lab, "long", [((sets.web_2,), (sets.long_queries,))])


def table_3(lab):
    """Names: queries for which other features count."""
    return _table(lab, "names", [((sets.web_2,), (sets.names,))])


def table_4(lab):
    """Three languages to a fourth: other sizes of features, and other features that count."""
    ours, *others = sets.LANGUAGES
    target = sets.language(ours)

    def make():
        nets = {name: baseline("nets", sets.language, name) for name in sets.LANGUAGES}
        blend = BlendRanker(list(nets.items()), cv="prefit", n_jobs=1)
        blend.fit(target.validation.X, target.validation.labels)
        smart = [boosted(target, nets[name]) for name in others]
        models = *nets.values(), *smart, blend, boosted(target)
        return np.array([one.predict(target.test.X) for one in models])

    names = [ours, *others, *(f"{SMART}, {name}" for name in others), INTERPOLATION, MART]
    scores = kept(lab.folder, ("tuned", "languages"), make)
    values = {of: values_of([target.test], [one]) for of, one in zip(names, scores, strict=True)}

    def over(better, worse):
        return gain(values[better], values[worse], "NDCG@10")

    rows = [
        [smart, *(over(smart, worse) for worse in (name, ours, INTERPOLATION, MART))]
        for name in others
        for smart in [f"{SMART}, {name}"]
    ]
    rows.append([INTERPOLATION, "", over(INTERPOLATION, ours), "", over(INTERPOLATION, MART)])
    return [
        columns("baseline, nets", {name: values[name] for name in sets.LANGUAGES}),
        columns("on Korean", {name: of for name, of in values.items() if name not in sets.LANGUAGES}),
        table(["gain by NDCG@10 over", "its own baseline", ours, INTERPOLATION, MART], rows),
    ]


def real(lab):
    """MQ2007 to MQ2008, five folds: real queries of two years of one track."""
    return _table(lab, "MQ2007 to MQ2008", [((sets.source,), (sets.target, fold)) for fold in range(5)])


TABLES = {"2": table_2, "3": table_3, "4": table_4, "real": real}
