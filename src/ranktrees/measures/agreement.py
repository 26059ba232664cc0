"""Measures of how scores agree with labels: pair by pair, and row by row."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ranktrees._core.measures import ranking
from ranktrees.measures.base import Measure, query_sums, quotient
from ranktrees.measures.compiled import CompiledMeasure
from ranktrees.processes.communicator import ALONE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ranktrees.processes.communicator import Communicator


class _PairAccuracy(CompiledMeasure):
    """The share of pairs of rows with different labels that are in the right order.

    PairAccuracy = (pairs with the higher label above + 1/2 pairs with equal scores) / (all pairs), counting
    only pairs of rows with different labels. For labels 0 and 1 it is the AUC.

    Parameters
    ----------
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. With "average" a tied pair counts 1/2, with "worst" it counts 0.
    empty_query : "skip" or float, default="skip"
        The value of a query whose labels are all equal. If "skip", such queries are left out.

    Examples
    --------
    >>> from ranktrees.measures import PairAccuracy
    >>> PairAccuracy([2, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])  # 2 > 0 and 2 > 1, but not 1 > 0
    0.666...
    """

    name = "PairAccuracy"
    defaults: ClassVar = {"ties": "average", "empty_query": "skip"}
    formula = ranking.Formula.PAIR_ACCURACY
    lowest_label = -math.inf

    def swap_deltas(self, labels: np.ndarray, scores: np.ndarray) -> NDArray[np.float64]:
        order = np.sign(labels[:, None] - labels)
        n_pairs = max(np.count_nonzero(order) // 2, 1)
        before = np.cumsum(order, axis=1, out=order)  # over the rows down to a rank, row by row
        swapped = before.diagonal()
        changes = swapped + swapped[:, None]
        changes -= before
        changes -= before.T
        changes /= n_pairs
        return changes


class _KendallTau(_PairAccuracy):
    """Kendall's tau-b between labels and scores.

    tau = (right pairs - wrong pairs) / sqrt((pairs with different labels) * (pairs with different scores)), a
    number from -1 to 1. Pairs with equal labels or equal scores are neither right nor wrong. If all scores
    are equal, the scores define no order, and tau is 0.

    Parameters
    ----------
    empty_query : "skip" or float, default="skip"
        The value of a query whose labels are all equal. If "skip", such queries are left out.

    References
    ----------
    Kendall, *The Treatment of Ties in Ranking Problems*, Biometrika 1945.

    Examples
    --------
    >>> from ranktrees.measures import KendallTau
    >>> KendallTau([2, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])  # (2 - 1) / 3
    0.333...
    """

    name = "KendallTau"
    defaults: ClassVar = {"empty_query": "skip"}
    formula = ranking.Formula.KENDALL_TAU

    def swap_deltas(self, labels: np.ndarray, scores: np.ndarray) -> NDArray[np.float64]:
        n = len(labels)
        different = np.count_nonzero(labels[:, None] - labels) / 2
        scale = 2.0 * math.sqrt(different) / math.sqrt(max(n * (n - 1) / 2, 1.0))
        return super().swap_deltas(labels, scores) * scale


class _RMSE(Measure):
    """Root mean squared error of the scores, taken as predictions of the labels.

    RMSE = sqrt(sum of w (label - score)^2 / sum of w). Its mean is taken over all rows of all queries, not
    over the queries: it is the root of one global mean. The value of one query is the same formula over the
    rows of the query. Smaller is better.

    Examples
    --------
    >>> from ranktrees.measures import RMSE
    >>> RMSE([0, 1, 2], [0, 1, 5], qid=["a", "a", "b"])  # sqrt((0 + 0 + 9) / 3)
    1.732...
    >>> RMSE.greater_is_better
    False
    """

    name = "RMSE"
    greater_is_better = False
    by_order = by_query = False
    lowest_label = -math.inf

    def per_query(
        self,
        labels: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        weights: np.ndarray | None = None,
        n_threads: int = 1,
    ) -> np.ndarray:
        squares, weights = self._sums(labels, scores, offsets, weights)
        return np.sqrt(np.divide(squares, weights, out=np.full(len(squares), np.nan), where=weights > 0))

    def mean(
        self,
        labels: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        weights: np.ndarray | None = None,
        n_threads: int = 1,
        communicator: Communicator = ALONE,
    ) -> float:
        sums = self._sums(labels, scores, offsets, weights)
        square, weight = (communicator.exact_sum(numbers) for numbers in sums)
        return math.sqrt(quotient(square, weight))

    def _sums(
        self, labels: np.ndarray, scores: np.ndarray, offsets: np.ndarray, weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        weights = np.ones(len(labels)) if weights is None else weights
        squares = np.multiply(weights, (labels - scores) ** 2, where=weights > 0, out=np.zeros(len(labels)))
        return query_sums(squares, offsets), query_sums(weights, offsets)


PairAccuracy, KendallTau = _PairAccuracy(), _KendallTau()
RMSE = _RMSE()
