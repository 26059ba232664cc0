"""Treatments of missing values: table 2.1 of the thesis, and a wider comparison for the guide.

    python -m benchmarks.survey.missing [--sets mq2008 web] [--gaps random large] [--seeds 1]

prints the latter. There, values are taken from training and test rows alike: three in ten at random, or four
in five of those above the 0.7 quantile of their feature, so that a gap says that the value was large. Since
each feature lacks values, Algorithm 2 has none to begin with; IterativeImputer takes its place.

Cells are means over the sets (the first fold or draw of each), of ERR (16ths, as for grades up to 4), NDCG@10
and RMSE on the test part; in brackets the t statistic of the difference of NDCG@10 to "learned", query by
query, over the queries of all sets. "complete" is learned from rows that lack nothing.
"""

import argparse
import warnings

import numpy as np
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ranktrees import (
    ForestImputer,
    HistGBRTRegressor,
    RandomForestRanker,
    as_measure,
    make_ranking,
    train_test_split_by_query,
)
from ranktrees.rows import query_offsets

from .. import data
from .contenders import SHARE, forest
from .lab import Contender
from .markdown import two_parts
from .sets import NAMES

SETS = ("mq2008", "mq2007_85", "ohsumed", "yandex", "web")
MEASURES = ("err", "ndcg@10", "rmse")

LEARNERS = {
    "GBRT": HistGBRTRegressor(learning_rate=0.1, max_iter=100),
    "RF": RandomForestRanker(100),
}

PREDICTED = make_pipeline(
    StandardScaler(),
    IterativeImputer(
        HistGBRTRegressor(learning_rate=0.3, max_iter=15, max_leaf_nodes=8, random_state=0),
        tol=0.1,
        max_iter=5,
        keep_empty_features=True,
    ),
)


def filled_with(**how):
    return SimpleImputer(keep_empty_features=True, **how)


# name: (what fills the gaps, handle_missing)
TREATMENTS = {
    "learned": (None, "learned"),
    "left": (None, "left"),
    "right": (None, "right"),
    "constant 0": (filled_with(strategy="constant", fill_value=0.0), "learned"),
    "mean": (filled_with(), "learned"),
    "median": (filled_with(strategy="median"), "learned"),
    "`IterativeImputer`": (PREDICTED, "learned"),
    "three-way": (None, "three_way"),
}


def at_random(X, X_train, rng):
    """Three values in ten."""
    return rng.random(X.shape) < 0.3


def large(X, X_train, rng):
    """Four in five of the largest."""
    return (np.quantile(X_train, 0.7, axis=0) < X) & (rng.random(X.shape) < 0.8)


GAPS = {"random": at_random, "large": large}


def train_and_test(name):
    """((X, y, qid) to train on, (X, y, qid) to test on)."""
    if name == "web":
        X, y, qid = make_ranking(300, "web", n_features=50, random_state=0, return_X_y_qid=True)
        parts = train_test_split_by_query(X, y, qid, qid=qid, test_size=0.5, random_state=0)
        return parts[0::2], parts[1::2]
    train, _, test = next(data.folds(name))
    return train, test


def evaluate(learner, treatment, train, test, seed):
    """{measure: its value in each test query, or one of all rows}."""
    model = clone(learner).set_params(handle_missing=treatment, random_state=seed)
    scores = model.fit(train[0], train[1], qid=train[2]).predict(test[0])
    order, offsets = query_offsets(test[2], len(test[2]))
    labels, scores = (each if order is None else each[order] for each in (test[1], scores))
    values = {name: as_measure(name).per_query(labels, scores, offsets) for name in MEASURES[:2]}
    return values | {"rmse": [np.sqrt(np.mean((labels - scores) ** 2))]}


def results_on(name, gaps, seed):
    """{(learner, treatment): what `evaluate` says}."""
    train, test = train_and_test(name)
    rng = np.random.default_rng(seed)
    X_train, X_test = (np.where(GAPS[gaps](X, train[0], rng), np.nan, X) for X in (train[0], test[0]))
    given = {"complete": (train[0], test[0], "learned")}
    for treatment, (imputer, handle_missing) in TREATMENTS.items():
        rows = X_train, X_test
        if imputer is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # trees jump: a few rounds are most of it
                rows = imputer.fit_transform(X_train), imputer.transform(X_test)
        given[treatment] = *rows, handle_missing
    return {
        (learner, treatment): evaluate(
            LEARNERS[learner], handle_missing, (filled_train, *train[1:]), (filled_test, *test[1:]), seed
        )
        for learner in LEARNERS
        for treatment, (filled_train, filled_test, handle_missing) in given.items()
    }


def t_statistic(a, b):
    """Of the paired difference, query by query; NaN where there is none."""
    both = ~np.isnan(a - b)
    return stats.ttest_rel(a[both], b[both]).statistic if (a[both] != b[both]).any() else np.nan


def cells(runs, learner, treatment):
    """What the table says of a learner and a treatment, from the results of several sets and seeds."""
    means = {name: np.mean([np.nanmean(run[learner, treatment][name]) for run in runs]) for name in MEASURES}
    ndcg, learned = (
        np.concatenate([run[learner, each]["ndcg@10"] for run in runs]) for each in (treatment, "learned")
    )
    t = t_statistic(ndcg, learned)
    bracket = "" if np.isnan(t) else f" ({t:+.1f})"
    return f"{means['err']:.4f} | {means['ndcg@10']:.4f}{bracket} | {means['rmse']:.4f}"


def lines_of(names, gaps, seeds):
    """The lines of the table, each when it is known."""
    yield "| gaps | treatment |" + "".join(f" {each} ERR | NDCG@10 | RMSE |" for each in LEARNERS)
    yield "|---|---" + "|---" * len(MEASURES) * len(LEARNERS) + "|"
    for kind in gaps:
        runs = [results_on(name, kind, seed) for name in names for seed in range(seeds)]
        for treatment in ("complete", *TREATMENTS):
            both = " | ".join(cells(runs, learner, treatment) for learner in LEARNERS)
            yield f"| {kind} | {treatment} | {both} |"


# ---------------------------------------------------------------------------------------- the thesis' table


def forest_of(imputer=None, **parameters):
    model = forest(100, **parameters)
    return model if imputer is None else make_pipeline(imputer, model)


THESIS = {
    "0": forest_of(handle_missing="left"),
    "1": forest_of(handle_missing="right"),
    "mean": forest_of(filled_with()),
    "median": forest_of(filled_with(strategy="median")),
    "3-way split": forest_of(handle_missing="three_way"),
}
PREDICT = ForestImputer(10, max_features=SHARE, max_iter=2, random_state=0, n_jobs=1)


def table_2_1(lab):
    """Table 2.1: treatments of missing values, by forests."""
    treated = {
        "web_gaps": THESIS,
        "yandex_gaps": THESIS | {"predict": forest_of(PREDICT)},
    }
    tables = []
    for name, models in treated.items():
        models = models | {"each split learns the side": forest_of()}
        contenders = [Contender(*one) for one in models.items()]
        tables.append(two_parts(lab, name, contenders, NAMES[name], contenders[0]))
    return tables


TABLES = {"2.1": table_2_1}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS if data.folder() else ["web"])
    parser.add_argument("--gaps", nargs="+", choices=list(GAPS), default=list(GAPS))
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    for line in lines_of(arguments.sets, arguments.gaps, arguments.seeds):
        print(line, flush=True)


if __name__ == "__main__":
    main()
