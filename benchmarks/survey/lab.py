"""Learners are fitted, and validation queries choose how many trees they have; what was done is kept."""

import warnings
from dataclasses import dataclass
from inspect import signature
from pathlib import Path

import joblib
import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator

from ranktrees import as_measure
from ranktrees.meta.ordinal import class_probabilities
from ranktrees.rows import query_offsets

from . import sets

CHOSEN_BY = "ndcg@10"
N_STAGES = 40  # the numbers of boosted trees that are looked at


# ---------------------------------------------------------------------------------------------------- fitting


def fitted(model, rows, seed, **others):
    """The model fitted to the rows and what goes with them; all that it draws follows from the seed."""
    model = clone(model)
    draws = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    model.set_params(**dict.fromkeys(draws, seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forests inside, which see no query
        return model.fit(rows.X, rows.labels, **others)


def stages(model, X, rounds):
    """Scores by the first so many rounds, for each number in ``rounds``."""
    return [FIRST[type(model).__name__](model, X, n) for n in rounds]


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
}


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
    """The measure of each query, or one number of all rows, where it is no mean over queries."""
    measure = as_measure(measure)
    if not measure.by_query:
        return np.array([measure(rows.y, scores)])
    _, offsets = query_offsets(rows.qid, len(rows.qid))
    return measure.per_query(rows.y, np.asarray(scores, np.float64), offsets)


# ------------------------------------------------------------------------------------------------ contenders


@dataclass(frozen=True)
class Contender:
    """A learner, or several runs of it.

    Attributes
    ----------
    name : str
    model : estimator
    classes : bool
        Whether it learns, for each grade but the highest, if a row has at most that grade (section 3.1).
    n_runs : int
        It is the mean of so many runs.
    stages : slice
        Which numbers of boosted trees validation queries may choose; the first is none.
    """

    name: str
    model: BaseEstimator
    classes: bool = False
    n_runs: int = 1
    stages: tuple = (0, None)

    def scores(self, folder, name, number):
        """float32[n_stages, n_rows]: scores of all rows of a fold."""
        if not self.classes:
            return curve(folder, name, number, self.model, None, self.n_runs)[slice(*self.stages)]
        return expected(self.cumulative(folder, name, number))

    def cumulative(self, folder, name, number):
        """float32[n_events, n_stages, n_rows]: whether a row has at most a grade."""
        events = np.unique(sets.folds(name)[number].train.y)[:-1]
        curves = [curve(folder, name, number, self.model, event, self.n_runs) for event in events]
        return np.stack([one[slice(*self.stages)] for one in curves])


def expected(cumulative):
    """The expected grade, from what models of events say, along the first axis."""
    return len(cumulative) - np.clip(cumulative, 0, 1).sum(axis=0)


def curve(folder, name, number, model, event=None, n_runs=1):
    """float32[n_stages, n_rows]: scores of all rows of a fold; of the labels, or of an event."""

    def make():
        fold = sets.folds(name)[number]
        train = fold.train if event is None else fold.train._replace(y=(fold.train.y <= event).astype(float))
        X = sets.joined(*fold).X
        return sum(staged(fitted(model, train, seed), X) for seed in range(n_runs)) / np.float32(n_runs)

    return kept(folder, ("curve", name, number, model, event, n_runs), make)


def numbers_of_trees(model):
    """How many trees are boosted, at each stage; [0] if none are."""
    n = getattr(model, "max_iter", 0)
    return np.arange(0, n + 1, max(1, n // N_STAGES))


def staged(model, X):
    """float32[n_stages, n_rows]: what boosting starts from, and the scores by so many trees."""
    wanted = set(numbers_of_trees(model))
    if wanted == {0}:
        return np.asarray(model.predict(X), np.float32)[None]
    found = [] if model.n_init_trees_ else [np.zeros(len(X), np.float32)]
    for n, scores in enumerate(model.ensemble_.staged_predict(X), 1 - model.n_init_trees_):
        if n in wanted:
            found.append(scores.astype(np.float32))
    return np.array(found)


class Lab:
    """Where contenders meet.

    Parameters
    ----------
    folder : path
        What is fitted is kept here, and not fitted again; empty it when the package has changed.
    names : list of str
        The sets of table 4.2.
    n_folds : int
        At most so many folds of each set.
    """

    def __init__(self, folder, names, n_folds=5):
        self.folder = folder
        self.names = sets.present(names)
        self.n_folds = n_folds
        self._measured = {}

    def folds(self, name):
        return sets.folds(name)[: self.n_folds]

    def measured(self, name, contender, measure):
        """(of validation, float64[n_queries] of test), by as many trees as are best for validation queries.

        The former is a mean over folds. Of test queries that are in several folds, it is the mean, too.
        """
        key = name, contender, measure
        if key not in self._measured:
            self._measured[key] = self._measure(*key)
        return self._measured[key]

    def _measure(self, name, contender, measure):
        best = np.argmin if measure == "rmse" else np.argmax
        validation, test = [], []
        for number, fold in enumerate(self.folds(name)):
            scores = contender.scores(self.folder, name, number)
            by_stage = fold.part_of(scores, "validation")
            found = [np.nanmean(quality(fold.validation, one, measure)) for one in by_stage]
            stage = best(found)
            validation.append(found[stage])
            test.append(quality(fold.test, fold.part_of(scores[stage], "test"), measure))
        same = name.startswith(("yandex", "web"))
        return float(np.mean(validation)), np.mean(test, axis=0) if same else np.concatenate(test)

    def test(self, names, better, worse, measure):
        """(mean difference, t) over the test queries of these sets, paired."""
        return paired(
            *(
                np.concatenate([self.measured(name, one, measure)[1] for name in names])
                for one in (better, worse)
            )
        )


def paired(a, b):
    """(mean of a - b, t), queries that do not count left out."""
    differences = (a - b)[~np.isnan(a - b)]
    if not differences.any():
        return 0.0, 0.0
    return float(differences.mean()), float(stats.ttest_1samp(differences, 0).statistic)
