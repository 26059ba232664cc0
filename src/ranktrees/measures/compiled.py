"""The base of measures with compiled formulas: they define what a formula reads of rows and ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ranktrees._core.measures import ranking
from ranktrees.measures.base import Measure, PreparedMeasure, query_weights, weighted_mean
from ranktrees.processes.communicator import ALONE

if TYPE_CHECKING:
    from ranktrees.processes.communicator import Communicator


class PreparedCompiledMeasure(PreparedMeasure):
    """A compiled measure prepared for rows: what the formula reads of rows and ranks."""

    def __init__(self, measure: CompiledMeasure, labels: np.ndarray, offsets: np.ndarray, *rest: Any) -> None:
        super().__init__(measure, labels, offsets, *rest)
        longest = int(np.diff(offsets).max(initial=0))
        self.formula, self.limits = measure.formula, measure.limits()
        self.ties = ranking.Ties[measure.parameters.get("ties", "average").upper()]
        self.gains = measure.gains_of(labels)
        self.discounts = measure.discounts_until(min(self.limits[1] or longest, longest))
        self.evaluator = ranking.Evaluator(self)
        self.query_weights = None if self.weights is None else query_weights(self.weights, offsets)
        if measure.empty_query == "skip_equal":
            highest, lowest = (of.reduceat(labels, offsets[:-1]) for of in (np.maximum, np.minimum))
            self.skipped = highest == lowest

    def per_query(self, scores: np.ndarray) -> np.ndarray:
        measure: Any = self.measure
        out = np.empty(len(self.offsets) - 1)
        self.evaluator.evaluate(scores, out)
        sums = self.evaluator.divisors if self.formula == ranking.Formula.NDCG else out
        if np.isinf(sums).any():
            raise ValueError(
                f"the labels have gains too large to add up: choose a smaller gain than that of {measure!r}"
            )
        if measure.empty_query == "skip_equal":
            out[self.skipped] = np.nan
        elif measure.empty_query != "skip":
            out[np.isnan(out)] = measure.empty_query
        return out

    def mean(self, scores: np.ndarray) -> float:
        return weighted_mean(self.per_query(scores), self.query_weights, self.communicator)


class CompiledMeasure(Measure):
    """A measure whose formula is compiled: it defines what is read of the rows, and which formula is used."""

    formula: ClassVar[ranking.Formula]
    empty_query: str | float
    at: Any  # of those that have a cutoff

    def gains_of(self, labels: np.ndarray) -> np.ndarray:
        """Return what the formula reads of each row."""
        return labels

    def discounts_until(self, longest: int) -> np.ndarray:
        """Return what the formula reads of each rank."""
        return np.empty(0)

    def limits(self) -> tuple[int, int]:
        """Return the two counts that limit the formula; 0 stands for no limit."""
        return 0, self.parameters.get("at") or 0

    def per_query(
        self,
        labels: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        weights: np.ndarray | None = None,
        n_threads: int = 1,
    ) -> np.ndarray:
        return PreparedCompiledMeasure(self, labels, offsets, None, n_threads).per_query(scores)

    def mean(
        self,
        labels: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        weights: np.ndarray | None = None,
        n_threads: int = 1,
        communicator: Communicator = ALONE,
    ) -> float:
        return self.prepare(labels, offsets, weights, n_threads, communicator).mean(scores)

    def prepare(
        self,
        labels: np.ndarray,
        offsets: np.ndarray,
        weights: np.ndarray | None = None,
        n_threads: int = 1,
        communicator: Communicator = ALONE,
    ) -> PreparedCompiledMeasure:
        self.check_labels(labels)
        return PreparedCompiledMeasure(self, labels, offsets, weights, n_threads, communicator)

    def of_query(self, labels: np.ndarray, scores: np.ndarray) -> float:
        return float(self.per_query(labels, scores, np.array([0, len(labels)], dtype=np.int64))[0])

    def until_cutoff(self, weights: np.ndarray) -> np.ndarray:
        """Set weights of ranks behind the cutoff to zero."""
        weights[self.at or len(weights) :] = 0.0
        return weights


def symmetric(n: int, changes: np.ndarray) -> np.ndarray:
    """Return the symmetric (n, n) matrix with the given entries above its diagonal."""
    deltas = np.zeros((n, n))
    deltas[np.triu_indices(n, 1)] = changes
    return deltas + deltas.T
