"""Fit to training rows, choose the number of trees by validation rows, score test rows; scores are kept."""

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ranktrees.growing import searching

from ..survey.lab import fitted, kept, quality, stages
from . import sets


class Curves(NamedTuple):
    """Of a model after so many trees: scores of rows, float32[n_stages, n_rows]; and what fitting took."""

    validation: np.ndarray
    test: np.ndarray
    seconds: float  # of a processor


@contextmanager
def workers(number):
    """Deal rows to so many workers inside: each makes histograms of its own, which are merged in turn."""
    before, searching.SHARDS = searching.SHARDS, number
    try:
        yield
    finally:
        searching.SHARDS = before


@dataclass(frozen=True)
class Lab:
    """Where it is done.

    Attributes
    ----------
    folder : path
        What is fitted is kept here, and not fitted again; empty it when the package has changed.
    names : tuple of str
        The sets.
    """

    folder: str
    names: tuple

    def curves(self, name, model, trees, n_workers=1):
        """The `Curves` of a model, fitted by so many workers, after so many trees."""

        def make():
            train, *others = sets.parts(name)
            started = time.process_time()
            with workers(n_workers):
                found = fitted(model, train, 0)
            seconds = time.process_time() - started
            scores = [np.float32(stages(found, rows.X, trees)) for rows in others]
            return np.column_stack([*scores, np.full(len(trees), seconds, np.float32)])

        found = kept(self.folder, ("curves", name, model, trees, n_workers), make)
        n_validation = len(sets.parts(name).validation.y)
        return Curves(found[:, :n_validation], found[:, n_validation:-1], found[0, -1])

    def best(self, name, *fit):
        """(trees, scores of test rows) of `curves`, with as many trees as validation queries find best."""
        validation, test, _ = self.curves(name, *fit)
        rows = sets.parts(name).validation
        stage = int(np.argmax([np.nanmean(quality(rows, scores)) for scores in validation]))
        return fit[1][stage], test[stage]
