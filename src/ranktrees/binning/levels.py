"""Categories in any number: the levels of a feature are put in order by the labels of their rows.

Up to 255 levels have a bin each. More levels are sorted by the mean label of their rows, and cut into bins
like numbers. A row's own label would tell on itself, however, most of all in a level of few rows. So training
rows are dealt to folds, and a row is coded by the mean label that its level has in the *other* folds:

    level   mean label        bin       of a training row: by the other folds, in one of
    uk      2.1               200         198 .. 203
    fr      0.3                17          15 ..  19

Means are shrunk towards that of all rows, as if each level had five more rows. A level all of whose rows are
in one fold says nothing of others, and is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ranktrees.binning.edges import find_edges
from ranktrees.processes.communicator import ALONE
from ranktrees.support.numeric import mixed

if TYPE_CHECKING:
    from ranktrees.processes.communicator import Communicator

__all__ = ["FOLDS", "Levels", "Targets"]

FOLDS = 10
SMOOTHING = 5  # rows of the mean label that each level has besides its own
_EXACT_BITS = 53


class Targets(NamedTuple):
    """What the levels of a feature are put in order by, for each row.

    Attributes
    ----------
    labels : ndarray of float64, shape (n_rows,)
        Finite.
    masses : ndarray of float64, shape (n_rows,)
        What each row counts, at least 0.
    folds : ndarray of uint8, shape (n_rows,)
        The fold of each row, below `FOLDS`.
    """

    labels: np.ndarray
    masses: np.ndarray
    folds: np.ndarray

    @classmethod
    def of(cls, labels: np.ndarray, weights: np.ndarray | None, numbers: np.ndarray) -> Targets:
        """Deal rows to folds by the numbers of their units, such as queries, among those of all ranks."""
        masses = np.ones(len(labels)) if weights is None else weights
        return cls(labels, masses, (mixed(numbers.astype(np.uint64)) % np.uint64(FOLDS)).astype(np.uint8))


class Levels:
    """The levels of a feature, and the bin of each.

    Parameters
    ----------
    values : ndarray of float64, shape (n_levels,)
        The levels, ascending.
    codes : ndarray of uint8, shape (n_levels,) or (FOLDS + 1, n_levels)
        The bin of each level by all rows; or first, for each fold, by the rows of the other folds.
    """

    def __init__(self, values: np.ndarray, codes: np.ndarray) -> None:
        self.values, self.codes = values, np.atleast_2d(codes)

    @classmethod
    def fit(
        cls, values: np.ndarray, x: np.ndarray, targets: Targets, max_bins: int, communicator: Communicator
    ) -> tuple[Levels, np.ndarray]:
        """Put levels in order by the rows of all ranks.

        Parameters
        ----------
        values : ndarray of float64, shape (n_levels,)
            The levels, ascending.
        x : ndarray of shape (n_rows,)
            The level of each row of this rank. NaN is missing.
        targets : Targets
            Those of the same rows.
        max_bins : int
            The most bins.
        communicator : Communicator

        Returns
        -------
        levels : Levels
            Those that occur in two folds at least.
        cuts : ndarray of float64
            The mean labels between bins.
        """
        place, known = _places(values, x)
        cell = FOLDS * place[known] + targets.folds[known]
        sums = [
            _sums(cell, each[known], FOLDS * len(values), communicator)
            for each in (targets.masses, targets.masses * targets.labels)
        ]
        of_folds, labels_of_folds = (each.reshape(-1, FOLDS).T for each in sums)
        mass, label = of_folds.sum(axis=0), labels_of_folds.sum(axis=0)
        (n_rows,) = communicator.sums(int(np.count_nonzero(targets.masses[known])))
        smoothing = SMOOTHING * mass.sum() / max(n_rows, 1)
        prior = smoothing * (label.sum() / mass.sum()) if mass.any() else 0.0
        told = mass > of_folds.max(axis=0)
        without = np.vstack([of_folds, np.zeros(len(values))])[:, told]
        labels_without = np.vstack([labels_of_folds, np.zeros(len(values))])[:, told]
        means = (label[told] - labels_without + prior) / (mass[told] - without + smoothing)
        column = np.ascontiguousarray(means[-1][:, None])
        found = find_edges(
            column, np.zeros(1, np.uint8), max_bins, 1, ALONE, None, mass[told], np.ones(1, bool)
        )
        cuts = found[0][1]
        return cls(values[told], np.searchsorted(cuts, means).astype(np.uint8)), cuts

    def of(self, x: np.ndarray, missing: int, folds: np.ndarray | None = None) -> np.ndarray:
        """Return the code of each value: of training rows by the folds that they are not in.

        Parameters
        ----------
        x : ndarray of shape (n_rows,)
        missing : int
            The code of missing values, and of those that are no level.
        folds : ndarray of uint8, shape (n_rows,), default=None
            The folds of training rows.

        Returns
        -------
        ndarray of uint8, shape (n_rows,)
        """
        place, known = _places(self.values, x)
        codes = np.full(len(x), missing, np.uint8)
        codes[known] = self.codes[-1 if folds is None else folds[known], place[known]]
        return codes

    def stand_ins(self, n_bins: int) -> np.ndarray:
        """Return a level of each bin by all rows, then NaN, for missing values: float64[n_bins + 1]."""
        values = np.full(n_bins + 1, np.nan)
        values[self.codes[-1]] = self.values
        return values


def _places(values: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The place of each x among ascending values, and whether it is one of them."""
    if not len(values):
        return np.zeros(len(x), np.intp), np.zeros(len(x), bool)
    x = x.astype(np.float64)
    place = np.minimum(np.searchsorted(values, x), len(values) - 1)
    return place, values[place] == x


def _sums(cell: np.ndarray, numbers: np.ndarray, n_cells: int, communicator: Communicator) -> np.ndarray:
    """The sum of the numbers of all ranks in each cell: of whole steps, so that it is exact."""
    most = np.array([np.abs(numbers).max(initial=0.0)], np.float64)
    _, exponent = np.frexp(communicator.allreduce(most, "max")[0])
    (n_rows,) = communicator.sums(len(cell))
    scale = _EXACT_BITS - n_rows.bit_length() - int(exponent)
    steps = np.rint(np.ldexp(numbers, scale))
    sums = np.bincount(cell, steps, minlength=n_cells).astype(np.int64)
    return np.ldexp(communicator.allreduce(sums).astype(np.float64), -scale)
