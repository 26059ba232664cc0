"""Contenders choose their settings, are fitted, and score test rows; what was done is kept in a folder."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import BaggingRegressor
from sklearn.frozen import FrozenEstimator

from ranktrees import as_measure
from ranktrees.meta.ordinal import class_probabilities
from ranktrees.rows import query_offsets

from . import sets

CHOSEN_BY = "ndcg@10"


@dataclass(frozen=True)
class Contender:
    """One row of a table: candidates, of which validation queries choose one, with so many rounds."""

    name: str
    candidates: tuple
    rounds: tuple = ()
    parameter: str = "max_iter"  # what says how many rounds
    finish: Callable[[Any], Any] | None = None  # what is made of the chosen one

    def model(self, number, rounds):
        """The candidate, with so many rounds."""
        model = clone(self.candidates[number])
        return model.set_params(**{self.parameter: rounds}) if self.rounds else model

    def called(self, name):
        return replace(self, name=name)


def average(model, n_runs=5):
    """The mean of runs that differ in what they draw."""
    return BaggingRegressor(model, n_runs, bootstrap=False, random_state=0)


def averaged(contender, name):
    """The average of five runs of what another one chooses."""
    return replace(contender, name=name, finish=average)


# ---------------------------------------------------------------------------------------------------- fitting


def fitted(model, rows, seed, **others):
    """The model fitted to the rows and what goes with them; all that it draws follows from the seed."""
    model = clone(model)
    draws = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    model.set_params(**dict.fromkeys(draws, seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the peers' own, and of forests inside that see no query
        return model.fit(rows.X, rows.labels, **others)


def stages(model, X, rounds):
    """Scores by the first so many rounds, for each number in ``rounds``."""
    kind = type(model).__name__
    if kind in STAGED:
        every = list(model.staged_predict(X))
        return [every[n - 1] for n in rounds]
    return [FIRST[kind](model, X, n) for n in rounds]


def _ordinal(model, X, n):
    if model.method == "multiclass":
        return model.estimators_[0].predict_proba(X, n_trees=n) @ model.values_
    cumulative = np.column_stack(
        [np.clip(FIRST[type(event).__name__](event, X, n), 0, 1) for event in model.estimators_]
    )
    return class_probabilities(cumulative) @ model.values_


FIRST = {
    "LambdaMARTRanker": lambda model, X, n: model.predict(X, n_trees=n),
    "HistGBRTRegressor": lambda model, X, n: model.predict(X, n_trees=n),
    "HistGBRTClassifier": lambda model, X, n: model.predict_proba(X, n_trees=n)[:, 1],
    "OrdinalRanker": _ordinal,
    "Pipeline": lambda model, X, n: FIRST[type(model[-1]).__name__](model[-1], model[:-1].transform(X), n),
    "LGBMRegressor": lambda model, X, n: model.booster_.predict(X, num_iteration=n),
    "XGBRegressor": lambda model, X, n: model.predict(X, iteration_range=(0, n)),
    "CatBoostRegressor": lambda model, X, n: model.predict(X, ntree_end=n),
}
STAGED = ("GradientBoostingRegressor", "HistGradientBoostingRegressor")


def spelt(value):
    """What a model is called in the folder: its class, and the parameters that are not the defaults."""
    if isinstance(value, tuple | list):
        return f"({', '.join(map(spelt, value))})"
    if not isinstance(value, BaseEstimator) or isinstance(value, FrozenEstimator):
        plain = value is None or isinstance(value, str | int | float)
        return repr(value) if plain else joblib.hash(value)
    defaults = {name: one.default for name, one in signature(type(value)).parameters.items()}
    given = value.get_params(deep=False)
    changed = {name: one for name, one in given.items() if repr(one) != repr(defaults.get(name))}
    changed = [f"{name}={spelt(changed[name])}" for name in sorted(changed)]
    return f"{type(value).__name__}({', '.join(changed)})"


def kept(folder, key, make):
    """What ``make`` returned when it was first called for the key."""
    path = Path(folder) / f"{joblib.hash(spelt(key))}.npy"
    if not path.exists():
        made = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, made)
        return made
    return np.load(path)


def quality(rows, scores, measure=CHOSEN_BY):
    """The measure of each query, or of all rows where it is RMSE."""
    measure = as_measure(measure)
    _, offsets = query_offsets(rows.qid, len(rows.qid))
    return measure.per_query(rows.y, np.asarray(scores, np.float64), offsets)


def validated(folder, name, number, contender):
    """float64[n_candidates, n_rounds]: the mean over draws of NDCG@10 of the validation queries."""

    def make():
        fold = sets.folds(name)[number]
        found = np.zeros((len(contender.candidates), max(1, len(contender.rounds))))
        for seed, held_out in enumerate(fold.draws):
            for place, candidate in enumerate(contender.candidates):
                model, rows = fitted(candidate, fold.train.of(~held_out), seed), fold.train.of(held_out)
                scores = (
                    stages(model, rows.X, contender.rounds) if contender.rounds else [model.predict(rows.X)]
                )
                found[place] += [np.nanmean(quality(rows, score)) for score in scores]
        return found / len(fold.draws)

    key = ("validated", name, number, contender.candidates, contender.rounds)
    return kept(folder, key, make)


def chosen(folder, name, number, contender):
    """(candidate, rounds, its NDCG@10 of validation queries)."""
    if len(contender.candidates) == 1 and len(contender.rounds) <= 1:
        return 0, *(contender.rounds or (None,)), np.nan
    found = validated(folder, name, number, contender)
    candidate, stage = np.unravel_index(found.argmax(), found.shape)
    return int(candidate), contender.rounds[stage] if contender.rounds else None, float(found.max())


def scored(folder, name, number, contender, seed):
    """float64[n_rows]: scores of the test rows."""
    candidate, rounds, _ = chosen(folder, name, number, contender)
    model = contender.model(candidate, rounds)
    model = model if contender.finish is None else contender.finish(model)

    def make():
        fold = sets.folds(name)[number]
        return np.asarray(fitted(model, fold.train, seed).predict(fold.test.X), np.float64)

    return kept(folder, ("scored", name, number, model, seed), make)


class Lab:
    """Where contenders meet.

    Parameters
    ----------
    folder : path
        What is fitted is kept here, and not fitted again; empty it when the package has changed.
    names : list of str
        The sets.
    n_seeds : int
        Fits of each, on sets of one fold.
    n_jobs : int
        Fits at the same time.
    """

    def __init__(self, folder, names, n_seeds=3, n_jobs=1):
        self.folder = folder
        self.names = sets.present(names)
        self.n_seeds = n_seeds
        self.n_jobs = n_jobs

    def meet(self, contenders, names=None):
        """Let all choose, be fitted and score; returns the `Meeting`."""
        names = self.names if names is None else names
        places = [(name, number) for name in names for number in range(len(sets.folds(name)))]
        tasks = [(*place, contender) for place in places for contender in contenders]
        to_choose = {spelt((name, n, c.candidates, c.rounds)): (name, n, c) for name, n, c in tasks}
        self.all(chosen, [(self.folder, *task) for task in to_choose.values()])
        fits = [(*task, seed) for task in tasks for seed in range(self.seeds_of(task[0]))]
        scores = dict(
            zip(
                [(name, number, contender.name, seed) for name, number, contender, seed in fits],
                self.all(scored, [(self.folder, *fit) for fit in fits]),
                strict=True,
            )
        )
        return Meeting(self, names, scores)

    def all(self, work, tasks):
        """work(*task) of all tasks, in their order."""
        return joblib.Parallel(self.n_jobs)(joblib.delayed(work)(*task) for task in tasks)

    def seeds_of(self, name):
        return self.n_seeds if len(sets.folds(name)) == 1 else 1


class Meeting:
    """What contenders gave the test rows, and what that is worth."""

    def __init__(self, lab, names, scores):
        self.lab = lab
        self.names = names
        self.scores = scores

    def values(self, name, contender, measure=CHOSEN_BY):
        """float64[n_queries]: the measure of each test query of all folds, its mean over seeds."""
        folds = []
        for number, fold in enumerate(sets.folds(name)):
            seeds = [
                quality(fold.test, self.scores[name, number, contender, seed], measure)
                for seed in range(self.lab.seeds_of(name))
            ]
            folds.append(np.mean(seeds, axis=0))
        return np.concatenate(folds)

    def mean(self, name, contender, measure=CHOSEN_BY):
        """The measure: the mean over queries, and over folds and seeds."""
        if as_measure(measure).name == "RMSE":
            errors = [
                (fold.test.y - self.scores[name, number, contender, seed]) ** 2
                for number, fold in enumerate(sets.folds(name))
                for seed in range(self.lab.seeds_of(name))
            ]
            return float(np.sqrt(np.concatenate(errors).mean()))
        return float(np.nanmean(self.values(name, contender, measure)))

    def test(self, names, better, worse, measure=CHOSEN_BY):
        """(mean difference, t) over the test queries of these sets, paired."""
        return paired(
            np.concatenate([self.values(name, better, measure) for name in names]),
            np.concatenate([self.values(name, worse, measure) for name in names]),
        )


def paired(a, b):
    """(mean of a - b, t), queries that do not count left out."""
    differences = (a - b)[~np.isnan(a - b)]
    if not differences.any():
        return 0.0, 0.0
    return float(differences.mean()), float(stats.ttest_1samp(differences, 0).statistic)
