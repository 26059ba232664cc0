"""What boosting starts from: a constant, trees of this library, or any model that predicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _num_samples

from ranktrees.binning.edges import MOST_BINS
from ranktrees.binning.mapper import BinMapper
from ranktrees.evaluation.own_models import own_model
from ranktrees.evaluation.predictions import scores_by
from ranktrees.model.ensemble import Ensemble, unpack
from ranktrees.rows import FitData, check_rows
from ranktrees.support.spool import Spool, by_parts

if TYPE_CHECKING:
    from ranktrees.estimators.fitted import FittedTrees
    from ranktrees.support.annotations import RowsLike

# The number of trees for which rows on disk are read once.
STAGES = 16


class FitRows(NamedTuple):
    """The rows of a fit, with their codes by a mapper."""

    X: Any  # as it was passed, for other kinds of models
    data: FitData
    mapper: BinMapper
    codes: Any
    seen: bool  # whether the init has seen them in its fit

    def values_for(self, ensemble: Ensemble) -> Any:
        """Return what these trees are to score."""
        return values_in_training(self.data, self.mapper, self.codes, ensemble) if self.seen else self.data.X


@dataclass(frozen=True, eq=False)
class Start:
    """What boosting starts from.

    Attributes
    ----------
    ensemble : Ensemble
        The trees of the init, if it has trees of this library, and those that have been added already.
    init : fitted estimator or None
    n_init_trees : int
    init_scores : ndarray of float64, shape (n_rows,), or None
        The scores from which the rows that the init has seen start, in the order of X. None: the init's own
        scores of them.
    bases : ndarray of float64, shape (n_classes,), or None
        If each class has a score, the constants that they start from. The trees of the classes take turns.
    """

    ensemble: Ensemble
    init: Any = None
    n_init_trees: int = 0
    init_scores: np.ndarray | None = None
    bases: Any = None
    _foreign: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def n_a_round(self) -> int:
        """The number of trees that are added in each round."""
        return 1 if self.bases is None else len(self.bases)

    @property
    def n_added(self) -> int:
        """The number of rounds that have been added."""
        return (len(self.ensemble) - self.n_init_trees) // self.n_a_round

    def attributes(self, ensemble: Ensemble) -> dict[str, Any]:
        """Return the fitted attributes of a model that started here."""
        several = self.bases is not None
        return {
            "init_": self.init,
            "n_init_trees_": self.n_init_trees,
            "init_scores_": self.init_scores,
            **({"ensembles_": ensemble._of_classes(self.bases)} if several else {"ensemble_": ensemble}),
        }

    @property
    def _of_classes(self) -> list[Start]:
        return [replace(self, ensemble=one, bases=None) for one in self.ensemble._of_classes(self.bases)]

    def scores(self, rows: FitRows, n_threads: int) -> np.ndarray:
        """Return the scores to which new trees are added: float64[n_rows], in internal order.

        If each class has a score, they are float64[n_classes, n_rows].
        """
        if self.bases is not None:
            return np.stack([one.scores(rows, n_threads) for one in self._of_classes])
        ensemble, scores, data = self.ensemble, self.init_scores, rows.data
        if rows.seen and scores is not None:
            ensemble = ensemble.after(self.n_init_trees)
        else:
            scores = self._scores_of_foreign(rows.X)
        X = rows.values_for(ensemble)
        scores = by_parts(
            lambda part, start: ensemble.predict(part, n_jobs=n_threads, start=start), X, scores
        )
        return data.internal(scores)

    def stages(self, rows: FitRows, n_threads: int) -> Iterator[np.ndarray]:
        """Yield the same after each added round."""
        if self.bases is not None:
            yield from map(
                np.stack, zip(*(one.stages(rows, n_threads) for one in self._of_classes), strict=True)
            )
            return
        ensemble, data, first = self.ensemble, rows.data, self.n_init_trees
        scores, X = self.init_scores, rows.values_for(ensemble)
        if not rows.seen or scores is None:
            scores = by_parts(
                lambda part, foreign: ensemble.first(first).predict(part, n_jobs=n_threads, start=foreign),
                X,
                self._scores_of_foreign(rows.X),
            )
        for n in range(first, len(ensemble), STAGES):
            trees = ensemble.first(min(n + STAGES, len(ensemble))).after(n)
            stages = by_parts(partial(_scores_after_each, trees, n_threads), X, scores)
            scores = np.ascontiguousarray(stages[:, -1])
            for stage in stages.T:
                yield np.ascontiguousarray(data.internal(stage))

    def before_each_tree(self, rows: FitRows, n_threads: int) -> Iterator[np.ndarray]:
        """Yield the same before each added round."""
        if self.n_added:
            yield replace(self, ensemble=self.ensemble.first(self.n_init_trees)).scores(rows, n_threads)
            yield from islice(self.stages(rows, n_threads), self.n_added - 1)

    def _scores_of_foreign(self, X: RowsLike) -> np.ndarray | None:
        """What a model of another kind predicts, which may take long: it is asked once for the same rows."""
        if id(X) not in self._foreign:
            self._foreign[id(X)] = X, scores_of_foreign(self.init, X)  # X, so that no other gets its id
        return self._foreign[id(X)][1]


def _scores_after_each(
    trees: Ensemble, n_threads: int, rows: RowsLike, start: np.ndarray | None
) -> np.ndarray:
    """float64[n_rows, n_trees]"""
    return np.stack(list(trees.staged_predict(rows, n_jobs=n_threads, start=start)), axis=1)


def values_in_training(data: FitData, mapper: BinMapper, codes: Any, ensemble: Ensemble) -> Any:
    """Return values of training rows by which trees part them as they did while they grew.

    A row is coded by the labels that its level has in other folds, so that it may have gone another way than
    its level does from then on: where that is so, another level of its bin stands for its own. If trees tell
    levels of one bin apart, they grew from other rows, and score the levels themselves.
    """
    columns = range(mapper.n_features) if mapper.columns is None else mapper.columns.tolist()
    of_levels = {columns[feature]: levels for feature, levels in mapper.levels.items()}
    nodes = ensemble.nodes[ensemble.nodes["categories"] >= 0]
    asked = [column for column in of_levels if (nodes["feature"] == column).any()]
    for column in asked:
        levels, known = of_levels[column], ensemble.categories[column]
        group = ensemble.groups[column]
        if not np.array_equal(known, levels.values):
            return data.X
        pairs = np.unique([levels.codes[-1], np.arange(len(known)) if group is None else group], axis=1)
        _, first, place = np.unique(pairs[0], return_index=True, return_inverse=True)
        left = unpack(ensemble.bitsets[nodes["categories"][nodes["feature"] == column]])
        if (left[:, pairs[1]] != left[:, pairs[1][first][place]]).any():
            return data.X
    if not asked:
        return data.X
    if isinstance(data.X, Spool):
        raise ValueError(
            "X is in batches, and training is to go on from trees that split a feature of more than "
            f"{MOST_BINS} categories (column {asked[0]}), which needs all rows in memory; expected rows in "
            "memory, or a fit at one go: without warm_start, and without the checkpoint that was found."
        )
    return mapper.with_stand_ins(data.X, data.order, codes)


def foreign_of(init: Any) -> Any:
    """Return the model of another kind at the very start of boosting; None if there is none."""
    estimator = own_model(init)
    return init if estimator is None else estimator._foreign_init()


def scores_of_foreign(init: Any, X: RowsLike) -> np.ndarray | None:
    foreign = foreign_of(init)
    if foreign is None:
        return None
    if not _num_samples(X):  # on a rank without rows, which other models would refuse
        return np.empty(0)
    return by_parts(lambda rows, _: scores_by(foreign, rows), X)


def scores_to_start_from(model: Any, X: RowsLike, like: dict[str, Any]) -> np.ndarray:
    """Return what `scores_by` does; for a model of this library, scores rather than predictions."""
    estimator = own_model(model)
    if estimator is None:
        return scores_by(model, X, **like)
    require_one_score(estimator)
    return estimator._scores(X, check_rows(estimator, X, reset=False))


def require_one_score(estimator: FittedTrees) -> None:
    """Raise if a model of this library gives each of several classes a score."""
    if (n_classes := len(estimator._ensembles)) > 1:
        raise ValueError(
            f"init={estimator!r} gives each of {n_classes} classes a score; expected one score per row: a "
            'classifier of two classes or, for grades, OrdinalRanker(init, method="multiclass").'
        )
