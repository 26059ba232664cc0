"""Callbacks of the training loop: each gets one Progress record per round, and may ask to stop."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees.model.ensemble import Ensemble
from ranktrees.rows import carry_queries
from ranktrees.support.progress import kind_of_bar

if TYPE_CHECKING:
    from ranktrees.rows.data import FitData
    from ranktrees.support.annotations import RowsLike


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of training after a round.

    Attributes
    ----------
    iteration : int
        The number of trees so far, or of rounds, if each grows a tree for each of several classes.
    n_iterations : int
        The number asked for, including those that existed before this fit.
    train_score, validation_score : float or None
        The followed scores on the training and the validation rows; higher is better. None if not followed.
    ensemble : callable
        ``ensemble()`` returns the model so far.
    """

    iteration: int
    n_iterations: int
    train_score: float | None
    validation_score: float | None
    ensemble: Callable[[], Ensemble]


class EarlyStopping:
    """Stop when the score has not risen by more than ``tol`` for ``n_iter_no_change`` rounds.

    It is that of the validation rows or, if there are none, of the training rows.

    Parameters
    ----------
    n_iter_no_change : int
        The number of rounds without improvement after which to stop.
    tol : float
        The amount by which a score has to exceed the best one to count as an improvement.
    scores : sequence of float
        The scores after each of the trees that exist already.

    Attributes
    ----------
    best_iteration : int
        The number of trees with which the score was best; of equal scores, the first. It is 0 as
        long as no score was defined.
    """

    def __init__(self, n_iter_no_change: int, tol: float, scores: Sequence[float] = ()) -> None:
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.best_score = np.nan
        self.best_iteration = 0
        for iteration, score in enumerate(scores, start=1):
            self._follow(iteration, score)

    def _follow(self, iteration: int, score: Any) -> None:
        better = not np.isnan(score) if self.best_iteration == 0 else score > self.best_score + self.tol
        if better:
            self.best_score, self.best_iteration = score, iteration

    def __call__(self, progress: Progress) -> bool:
        score = progress.train_score if progress.validation_score is None else progress.validation_score
        self._follow(progress.iteration, score)
        return progress.iteration - self.best_iteration >= self.n_iter_no_change


class Watcher:
    """A callback that watches training and never asks to stop."""

    if TYPE_CHECKING:

        def __call__(self, progress: Progress) -> Any: ...

    def close(self) -> None:
        """Called when training has ended."""


class Checkpointing:
    """Calls other callbacks, and writes a checkpoint every few trees unless one of them asks to stop.

    Parameters
    ----------
    callbacks : sequence of callables
        The other callbacks.
    write : callable
        Called with the model so far and with the train and validation scores of all its trees.
    every : int
        The number of trees between two calls of ``write``, which is not called after the last tree.
    train_scores, validation_scores : sequence of float
        The scores of the trees that existed before.
    """

    def __init__(
        self,
        callbacks: Sequence[Callable[[Progress], Any]],
        write: Callable[..., None],
        every: int,
        train_scores: Sequence[float] = (),
        validation_scores: Sequence[float] = (),
    ) -> None:
        self.callbacks = callbacks
        self.write = write
        self.every = every
        self.train_scores, self.validation_scores = list(train_scores), list(validation_scores)

    def __call__(self, progress: Progress) -> bool:
        scores = progress.train_score, progress.validation_score
        for followed, score in zip((self.train_scores, self.validation_scores), scores, strict=True):
            if score is not None:
                followed.append(score)
        stops = [callback(progress) for callback in self.callbacks]
        if any(stops):
            return True
        if progress.iteration % self.every == 0 and progress.iteration < progress.n_iterations:
            self.write(progress.ensemble(), self.train_scores, self.validation_scores)
        return False


class PrintedLines(Watcher):
    """Writes a line to standard output every ``every`` rounds."""

    def __init__(self, name: str, every: int) -> None:
        self.name = name
        self.every = every

    def __call__(self, progress: Progress) -> bool:
        last = progress.iteration == progress.n_iterations
        if progress.iteration % self.every and not last:
            return False
        line = f"{self.name}: {progress.iteration} of {progress.n_iterations} trees"
        if progress.train_score is not None:
            line += f", train {progress.train_score:.5f}"
        if progress.validation_score is not None:
            line += f", validation {progress.validation_score:.5f}"
        sys.stdout.write(line + "\n")
        return False


class ProgressBar(Watcher):
    """A progress bar in the terminal or in Jupyter, drawn by tqdm."""

    def __init__(self, name: str, n_iterations: int) -> None:
        self.bar = kind_of_bar()(total=n_iterations, desc=name, unit="tree")

    def __call__(self, progress: Progress) -> bool:
        self.bar.update(progress.iteration - self.bar.n)
        shown = {"train": progress.train_score, "validation": progress.validation_score}
        self.bar.set_postfix({name: f"{score:.4f}" for name, score in shown.items() if score is not None})
        return False

    def close(self) -> None:
        """Leave the bar as it is."""
        self.bar.close()


class ScikitLearnCallbacks(Watcher):
    """Passes each round on to the callbacks set with scikit-learn's ``set_callbacks`` (1.9 and later).

    ``scores`` has what `Progress` followed for the trees that existed before, by the fitted attributes that
    keep it.
    """

    def __init__(
        self,
        estimator: Any,
        context: Any,
        fitted_attributes: Callable[[Ensemble], dict[str, Any]],
        X: RowsLike,
        data: FitData,
        scores: dict[str, Sequence[float]] | None = None,
    ) -> None:
        self.estimator = estimator
        self.context = context
        self.fitted_attributes = fitted_attributes
        self.scores = {name: list(earlier) for name, earlier in (scores or {}).items()}
        self.data = {
            "X": lambda: X,
            "y": lambda: self._labels(data),
            "metadata": lambda: self._metadata(data),
        }

    @staticmethod
    def _labels(data: FitData) -> Any:
        """Labels with the queries in their index; metadata would also reach scorers that take no ids."""
        if data.qid_given and data.labels is not None:
            return carry_queries(data.y, data.as_given(data.query_of_row))
        return data.y

    @staticmethod
    def _metadata(data: FitData) -> dict[str, Any]:
        """The metadata that scorers may ask for, with the rows in the order in which the user gave them."""
        return {} if data.weights is None else {"sample_weight": data.as_given(data.weights)}

    def __call__(self, progress: Progress) -> bool:
        for name, followed in self.scores.items():
            if (score := getattr(progress, name.removesuffix("_"))) is not None:
                followed.append(score)

        def reconstruct() -> dict[str, Any]:
            whole = {
                name: np.array(followed if len(followed) == progress.iteration else [])
                for name, followed in self.scores.items()
            }
            return self.fitted_attributes(progress.ensemble()) | whole

        task = self.context.subcontext(task_name=f"tree {progress.iteration}")
        task.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        return task.call_on_fit_task_end(
            estimator=self.estimator, **self.data, reconstruction_attributes=reconstruct
        )
