"""Fit to training rows, choose the number of trees by validation rows, score test rows; scores are kept."""

import time
from dataclasses import dataclass

import numpy as np

from ..survey.lab import fitted, kept, quality, stages


@dataclass(frozen=True)
class Keeper:
    """Fits rankers and scores rows after so many trees, once.

    Attributes
    ----------
    folder : path
        What is scored is kept here, and not fitted again; empty it when the package has changed.
    """

    folder: str

    def curves(self, name, model, trees, parts):
        """How a ranker does after so many trees.

        Parameters
        ----------
        name : tuple
            Of the rows.
        model : estimator
        trees : tuple of int
        parts : Parts

        Returns
        -------
        validation : ndarray of shape (len(trees), n_rows)
            Scores after that many trees, those of ``init`` not counted.
        test : ndarray of shape (len(trees), n_rows)
        seconds : float
            What fitting took of a processor.
        """

        def make():
            started = time.process_time()
            others = {}
            if getattr(model, "step_rows", "train") == "validation":
                others = {"X_val": parts.validation.X, "y_val": parts.validation.labels}
            fit = fitted(model, parts.train, 0, **others)
            seconds = time.process_time() - started
            both = np.concatenate([parts.validation.X, parts.test.X])
            scores = np.array(stages(fit, both, trees), np.float32)
            return np.column_stack([scores, np.full(len(trees), seconds, np.float32)])

        found = kept(self.folder, ("curves", *name, model, trees), make)
        n_validation = len(parts.validation.y)
        return found[:, :n_validation], found[:, n_validation:-1], found[0, -1]

    def best(self, name, model, trees, parts):
        """(trees, scores of validation rows, of test rows, seconds), with as many trees as validate best."""
        validation, test, seconds = self.curves(name, model, trees, parts)
        stage = int(np.argmax([np.nanmean(quality(parts.validation, scores)) for scores in validation]))
        return trees[stage], validation[stage], test[stage], seconds


@dataclass(frozen=True)
class Lab(Keeper):
    """Where it is done.

    Attributes
    ----------
    n_queries : int
        Queries to train on, in table 1 and the figures.
    draws : bool
        Whether figures are drawn.
    """

    n_queries: int
    draws: bool = False
