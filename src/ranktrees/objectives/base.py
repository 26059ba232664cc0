"""What all objectives share: a value that holds parameters, and its joining with one training set."""

import math
from collections.abc import Sequence
from functools import cached_property
from numbers import Real
from typing import ClassVar

import numpy as np

from ranktrees._core.dealing import Deal
from ranktrees.growing.rounding import DIVERGED
from ranktrees.sharing import ALL
from ranktrees.validation.values import narrowed


class Objective:
    """What training makes small: the base of all objectives.

    The life of an objective:

    1. It is made, by `as_objective` or by its class: a frozen, picklable value that holds parameters only.
    2. `check_labels` says whether it can learn from these labels.
    3. `bind` joins it with the labels, weights and queries of one training set. The `Bound` that it returns
       has computed whatever does not change from round to round (gains, the ideal of each query, scratch).
    4. `Bound.start` gives the constant score that training starts from.
    5. Each round, `Bound.gradients` writes the first and second derivative of the loss by each row's score. A
       leaf of the next tree takes the Newton step ``-sum(gradients) / (sum(hessians) + l2)`` or, where
       `leaf_quantile` is a number, that quantile of ``label - score`` over its rows.
    6. `Bound.loss` is the mean loss, for a report or to stop early.
    7. After training, `inverse_link` turns scores into predictions.

    To write your own, derive a frozen dataclass from `Objective` and a class from `Bound`.

    Attributes
    ----------
    name : str
        What `as_objective` knows it by.
    constant_hessian : bool
        True if a row's hessian is its weight, whatever its score.
    learns_from : tuple of str
        What else `bind` takes, by name: "preferences" between rows, the "positions" where they were shown.
    """

    name: ClassVar[str]
    constant_hessian: ClassVar[bool] = False
    learns_from: ClassVar[tuple[str, ...]] = ()

    @property
    def leaf_quantile(self) -> float | None:
        """The quantile of a leaf's residuals that is its best value; None for the Newton step."""
        return None

    def check_labels(self, labels):
        """Raise if this objective cannot learn from these labels.

        Parameters
        ----------
        labels : ndarray of shape (n,), float64
            Finite labels.

        Raises
        ------
        ValueError
            Naming ``y``, what was seen and what is expected.
        """

    def bind(self, labels, weights, offsets, n_threads=1, share=ALL):
        """Join the objective with a training set.

        Parameters
        ----------
        labels : ndarray of shape (n,), float64
            Labels of the rows, grouped by query; see `check_labels`.
        weights : ndarray of shape (n,), float64, or None
            Weights >= 0 of the rows. None is 1 for each.
        offsets : ndarray of shape (n_queries + 1,), int64
            Query q is rows ``offsets[q]:offsets[q + 1]``. Pointwise objectives do not look at it.
        n_threads : int, default=1
            Threads to use; no result depends on it.
        share : Share
            What part of all rows these are, where ranks train together.

        Returns
        -------
        Bound

        Notes
        -----
        Where `learns_from` has their names, it is also called with ``preferences``, a `Preferences` between
        rows, whose labels may be None, or ``positions``, int64, where rows were shown, from 1.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define bind(labels, weights, offsets, n_threads, share)"
        )

    def inverse_link(self, scores):
        """Turn scores into predictions on the scale of the labels.

        Parameters
        ----------
        scores : ndarray, float64

        Returns
        -------
        ndarray of the same shape, float64
            The scores themselves, unless an objective says otherwise.
        """
        return scores


class Bound:
    """An objective joined with one training set; see `Objective` for its life.

    One `Bound` serves one caller at a time: it owns scratch memory.

    Parameters
    ----------
    objective : Objective
    labels, weights, offsets, n_threads, share
        As in `Objective.bind`.
    """

    def __init__(self, objective, labels, weights, offsets, n_threads=1, share=ALL):
        self.objective = objective
        self.labels = np.ascontiguousarray(labels, dtype=np.float64)
        self.weights = None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.n_threads = n_threads
        self.share = share
        self.total_weight = self._finite(self._sum([len(self.labels)] if weights is None else self.weights))
        if not self.total_weight > 0:
            raise ValueError("sample_weight has no positive entry: at least one row must weigh something")

    @cached_property
    def deal(self):
        """The queries, dealt to threads."""
        return Deal(self.offsets, self.n_threads)

    one_hessian = False  # whether `gradients` can write one hessian, that of all rows
    learned: Sequence[np.ndarray] = ()  # beside trees, for who goes on from here: what `resume` takes

    def resume(self, *learned):
        """Go on from what was learned before; most objectives learn nothing."""

    def start(self):
        """The constant score that training starts from.

        Returns
        -------
        float
            The same bits whatever the order of the rows.
        """
        return 0.0

    def gradients(self, scores, gradients, hessians, iteration=0):
        """Write the first and second derivative of the loss by each row's score, times the row's weight.

        Parameters
        ----------
        scores : ndarray of shape (n,), float64
            Scores of the rows so far.
        gradients, hessians : ndarray of shape (n,), float64
            Written; hessians are >= 0. Where the bound has ``one_hessian``, these may have shape (1,).
        iteration : int, default=0
            The number of the round. Objectives that draw at random draw anew in each.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define gradients(scores, gradients, hessians, iteration)"
        )

    def loss(self, scores):
        """The mean loss at these scores.

        Parameters
        ----------
        scores : ndarray of shape (n,), float64

        Returns
        -------
        float
            The same bits whatever the order of the rows (pointwise) or of the queries (pairwise).
        """
        raise NotImplementedError(f"{type(self).__name__} must define loss(scores)")

    def _sum(self, values):
        """The exact sum of what the rows, or queries, of all ranks have."""
        return self.share.communicator.exact_sum(values)

    def _weighted_mean(self, values):
        if self.weights is not None:
            with np.errstate(over="ignore"):
                values = self.weights * values
        return self._finite(self._sum(values) / self.total_weight)

    def _finite(self, number):
        if not math.isfinite(number):
            raise ValueError(DIVERGED)
        return number


class NarrowLabels(Bound):
    """A `Bound` whose kernels read labels of few bytes.

    Attributes
    ----------
    narrow_labels : ndarray of shape (n,), uint8, float32 or float64
        The labels, in the first of these types that holds them all.
    """

    @property
    def labels(self):
        """float64[n], a copy where that is not how they are held: it is asked for seldom."""
        return self.narrow_labels.astype(np.float64, copy=False)

    @labels.setter
    def labels(self, labels):
        self.narrow_labels = narrowed(labels)


def number_in(name, value, low, high):
    if not (isinstance(value, Real) and not isinstance(value, bool) and low < value < high):
        raise ValueError(f"{name} must be a number between {low} and {high} (both excluded), got {value!r}")
