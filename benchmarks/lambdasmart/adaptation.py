"""Adaptation: a background model of MQ2007, and queries of MQ2008 to adapt it to (tables 2 to 4).

In each of MQ2008's folds the first so many training queries are learned from; the validation part chooses
what is to be chosen: numbers of trees, the weight of the interpolation, the decay of leaves. The
background model's trees are chosen by queries of MQ2007.
"""

import numpy as np

from ranktrees import LambdaMARTRanker
from ranktrees.evaluation.combining import optimal_weight

from ..survey.lab import fitted, quality
from ..survey.markdown import table
from . import sets
from .report import HEADS, findings, intervals, values_of

BOOSTED = {"max_leaf_nodes": 15, "learning_rate": 0.05, "n_jobs": 1}
TREES = (10, 25, 50, 75, 100, 150, 200, 300)
DECAYS = (0.0, 0.5, 0.8, 0.9, 1.0)


def background(lab):
    """The background model, fitted, with the number of trees that is best for queries of its own set."""
    model = LambdaMARTRanker(max_iter=TREES[-1], **BOOSTED)
    trees, *_ = lab.best(("source",), model, TREES, sets.source())
    return fitted(model.set_params(max_iter=trees), sets.source().train, 0)


def _chosen(parts, candidates):
    """Test scores of the candidate, (validation scores, test scores), that is best for validation queries."""
    return max(candidates, key=lambda pair: np.nanmean(quality(parts.validation, pair[0])))[1]


def adapted(lab, theirs, n_queries, number):
    """By name: scores of the test rows of a fold."""
    parts = sets.targets(n_queries)[number]
    name = ("target", n_queries, number)
    rows = parts.train
    alone = LambdaMARTRanker(max_iter=TREES[-1], **BOOSTED)
    more = LambdaMARTRanker(init=theirs, subsample=0.7, max_iter=TREES[-1], **BOOSTED)
    of_theirs = theirs.predict(parts.validation.X), theirs.predict(parts.test.X)
    _, *of_ours, _ = lab.best(name, alone, TREES, parts)
    _, _, of_more, _ = lab.best(name, more, (0, *TREES), parts)
    weight = optimal_weight(of_theirs[0], of_ours[0], parts.validation.y, qid=parts.validation.qid).weight
    refits = [theirs.refit_leaves(rows.X, rows.y, qid=rows.qid, decay=decay) for decay in DECAYS]
    return {
        "background": of_theirs[1],
        "in-domain": of_ours[1],
        "interpolation": (1 - weight) * of_theirs[1] + weight * of_ours[1],
        "new leaf values": _chosen(
            parts, [(model.predict(parts.validation.X), model.predict(parts.test.X)) for model in refits]
        ),
        "LambdaSMART": of_more,
    }


CLAIMS = (
    ("LambdaSMART", "background"),
    ("LambdaSMART", "in-domain"),
    ("LambdaSMART", "interpolation"),
    ("LambdaSMART", "new leaf values"),
    ("new leaf values", "background"),
    ("interpolation", "background"),
    ("interpolation", "in-domain"),
    ("in-domain", "background"),
)


def _table(lab, n_queries):
    theirs = background(lab)
    folds = sets.targets(n_queries)
    scores = [adapted(lab, theirs, n_queries, number) for number in range(len(folds))]

    tests = [fold.test for fold in folds]
    values = {name: values_of(tests, [of_fold[name] for of_fold in scores]) for name in scores[0]}
    size = "all training queries" if n_queries is None else f"{n_queries} training queries"
    rows = [[name, *intervals(of_name)] for name, of_name in values.items()]
    return [table([size, *HEADS], rows), findings(values, CLAIMS)]


def table_2(lab):
    """After table 2: MQ2007 to MQ2008, all training queries of the target."""
    return _table(lab, None)


def table_3(lab):
    """After table 3: MQ2007 to MQ2008, 150 training queries of the target."""
    return _table(lab, 150)


def table_4(lab):
    """After table 4: MQ2007 to MQ2008, 40 training queries of the target."""
    return _table(lab, 40)


TABLES = {"2": table_2, "3": table_3, "4": table_4}
