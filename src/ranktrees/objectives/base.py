"""What all objectives share: a value that holds parameters, and what is prepared for one training set."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from ranktrees._core.objectives.dealing import Deal
from ranktrees.processes.sharing import ALL_ROWS
from ranktrees.rows.values import narrowed
from ranktrees.support.cached import cached_property
from ranktrees.support.divergence import DIVERGED
from ranktrees.support.numeric import is_real

if TYPE_CHECKING:
    from ranktrees.processes.sharing import Share

Link: TypeAlias = Callable[[np.ndarray], np.ndarray]  # from scores to predictions


class Objective:
    """Base class of all objectives. An objective defines the loss that training minimises.

    An objective is used as follows:

    1. It is made by `as_objective` or by its class, as a frozen, picklable value that holds parameters only.
    2. `check_labels` raises if it cannot learn from the labels.
    3. `prepare` takes the labels, weights and queries of one training set. The `PreparedObjective` that it
       returns has computed whatever does not change from round to round (gains, the ideal DCG of each query,
       scratch memory).
    4. `PreparedObjective.start` returns the constant score that training starts from.
    5. In each round, `PreparedObjective.gradients` writes the first and second derivatives of the loss with
       respect to the score of each row. A leaf of the next tree takes the Newton step
       ``-sum(gradients) / (sum(hessians) + l2)`` or, if `leaf_quantile` is a number, that quantile of
       ``label - score`` over its rows.
    6. `PreparedObjective.loss` is the mean loss, which is reported or used for early stopping.
    7. After training, `inverse_link` turns scores into predictions.

    To write your own objective, derive a frozen dataclass from `Objective` and a class from
    `PreparedObjective`.

    Attributes
    ----------
    name : str
        The name of the objective for `as_objective`.
    constant_hessian : bool
        Whether the hessian of a row is its weight, whatever its score.
    learns_from : tuple of str
        The names of further arguments of `prepare`: "preferences" between rows, or the "positions" at which
        rows were shown.
    """

    name: ClassVar[str]
    constant_hessian: ClassVar[bool] = False
    learns_from: ClassVar[tuple[str, ...]] = ()

    @property
    def leaf_quantile(self) -> float | None:
        """The quantile of the residuals of a leaf that is its best value, or None for the Newton step."""
        return None

    def check_labels(self, labels: np.ndarray) -> None:
        """Raise if this objective cannot learn from these labels.

        Parameters
        ----------
        labels : ndarray of shape (n,), float64
            Finite labels.

        Raises
        ------
        ValueError
            If it cannot. The message names ``y``, what was seen and what is expected.
        """

    def prepare(
        self,
        labels: np.ndarray,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int = 1,
        share: Share = ALL_ROWS,
    ) -> PreparedObjective:
        """Prepare the objective for a training set.

        Parameters
        ----------
        labels : ndarray of shape (n,), float64
            The labels of the rows, grouped by query; see `check_labels`.
        weights : ndarray of shape (n,), float64, or None
            Weights >= 0 of the rows. If None, each row has weight 1.
        offsets : ndarray of shape (n_queries + 1,), int64
            Query q is rows ``offsets[q]:offsets[q + 1]``. Pointwise objectives ignore it.
        n_threads : int, default=1
            The number of threads. No result depends on it.
        share : Share
            The part of all rows that these are, when ranks train together.

        Returns
        -------
        PreparedObjective
            The prepared objective.

        Notes
        -----
        If `learns_from` contains their names, this method is also called with ``preferences``, a
        `Preferences` between rows, in which case the labels may be None, or with ``positions``, an int64
        array of the positions at which rows were shown, from 1 on.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define prepare(labels, weights, offsets, n_threads, share)"
        )

    def inverse_link(self, scores: np.ndarray) -> np.ndarray:
        """Turn scores into predictions on the scale of the labels.

        Parameters
        ----------
        scores : ndarray, float64
            The scores.

        Returns
        -------
        ndarray of the same shape, float64
            The predictions: the scores themselves, unless an objective overrides this method.
        """
        return scores


class PreparedObjective:
    """An objective prepared for one training set; see `Objective` for how it is used.

    A `PreparedObjective` owns scratch memory, so it serves one caller at a time.

    Parameters
    ----------
    objective : Objective
        The objective.
    labels, weights, offsets, n_threads, share
        As in `Objective.prepare`.
    """

    def __init__(
        self,
        objective: Objective,
        labels: np.ndarray,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int = 1,
        share: Share = ALL_ROWS,
    ) -> None:
        self.objective: Any = objective
        self.labels = np.ascontiguousarray(labels, dtype=np.float64)
        self.weights = None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.n_threads = n_threads
        self.share = share
        self.total_weight = self._finite(self._sum([len(self.labels)] if weights is None else self.weights))
        if not self.total_weight > 0:
            raise ValueError("sample_weight has no positive entry: at least one row needs a positive weight")

    @cached_property
    def deal(self) -> Any:
        """How the queries are dealt to threads."""
        return Deal(self.offsets, self.n_threads)

    one_hessian = False  # whether `gradients` can write a single hessian for all rows
    learned: Sequence[np.ndarray] = ()  # what was learned besides trees, to be passed to `resume`

    def resume(self, *learned: Any) -> None:
        """Continue from what was learned before. Most objectives learn nothing besides trees."""

    def start(self) -> Any:
        """Return the constant score that training starts from.

        Returns
        -------
        float
            The score, with the same bits whatever the order of the rows.
        """
        return 0.0

    def gradients(
        self, scores: np.ndarray, gradients: np.ndarray, hessians: np.ndarray, iteration: int = 0
    ) -> None:
        """Write the derivatives of the loss with respect to the score of each row, times its weight.

        Parameters
        ----------
        scores : ndarray of shape (n,), float64
            The scores of the rows so far.
        gradients, hessians : ndarray of shape (n,), float64
            The arrays to write the first and second derivatives to. Hessians are >= 0. If ``one_hessian`` is
            True, the array of hessians may have shape (1,).
        iteration : int, default=0
            The number of the round. Objectives that draw at random draw anew in each round.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define gradients(scores, gradients, hessians, iteration)"
        )

    def loss(self, scores: np.ndarray) -> float:
        """Return the mean loss at the given scores.

        Parameters
        ----------
        scores : ndarray of shape (n,), float64
            The scores of the rows.

        Returns
        -------
        float
            The loss, with the same bits whatever the order of the rows (pointwise) or of the queries
            (pairwise).
        """
        raise NotImplementedError(f"{type(self).__name__} must define loss(scores)")

    def _sum(self, values: Any) -> float:
        """The exact sum of values of the rows, or queries, of all ranks."""
        return self.share.communicator.exact_sum(values)

    def _weighted_mean(self, values: np.ndarray) -> float:
        if self.weights is not None:
            with np.errstate(over="ignore"):
                values = self.weights * values
        return self._finite(self._sum(values) / self.total_weight)

    def _finite(self, number: float) -> float:
        if not math.isfinite(number):
            raise ValueError(DIVERGED)
        return number


class NarrowLabels(PreparedObjective):
    """A `PreparedObjective` whose kernels read labels stored in as few bytes as possible.

    Attributes
    ----------
    narrow_labels : ndarray of shape (n,), uint8, float32 or float64
        The labels, in the first of these types that holds them all.
    """

    @property
    def labels(self) -> np.ndarray:
        """float64[n], a copy if the labels are stored in another type; it is seldom needed."""
        return self.narrow_labels.astype(np.float64, copy=False)

    @labels.setter
    def labels(self, labels: np.ndarray) -> None:
        self.narrow_labels = narrowed(labels)


def number_in(name: str, value: float, low: float, high: float) -> None:
    if not (is_real(value) and low < value < high):
        raise ValueError(f"{name} must be a number between {low} and {high} (both excluded), got {value!r}")
