"""Pairwise objectives: the rows of a query against each other, two by two."""

import math
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from ranktrees import measures
from ranktrees._core import lambdas
from ranktrees.objectives.base import Bound, Objective, exact_sum, number_in


def _aligned(shape):
    """Numbers that begin where a line of the cache does: eight of them never lie across two lines."""
    size = math.prod(shape)
    memory = np.empty(size + 7)
    first = -memory.ctypes.data % 64 // 8
    return memory[first : first + size].reshape(shape)


class _Pairwise(Bound):
    """What both pairwise objectives hold: a grade for each row, and scratch memory for each thread."""

    discounts: Any = None
    spread = False
    log_norm = False

    def __init__(self, objective, labels, weights, offsets, n_threads):
        super().__init__(objective, labels, weights, offsets, n_threads)
        self.longest = int(np.diff(self.offsets).max(initial=0))
        level = objective.truncation_level
        self.truncation = self.longest if level is None else min(int(level), self.longest)
        self._longest_first = np.argsort(-np.diff(self.offsets), kind="stable").astype(np.int64)
        numbers, records = lambdas.scratch_shapes(self.longest, n_threads)
        self._numbers, self._records = _aligned(numbers), np.empty(records)

    def gradients(self, scores, gradients, hessians):
        lambdas.gradients(
            self.grades,
            self.weights,
            self.offsets,
            self._longest_first,
            scores,
            self.discounts,
            self.truncation,
            float(self.objective.sigma),
            self.spread,
            self.log_norm,
            self._numbers,
            self._records,
            gradients,
            hessians,
            self.n_threads,
        )


class _RankNetBound(_Pairwise):
    def __init__(self, *args):
        super().__init__(*args)
        self.grades = np.unique(self.labels, return_inverse=True)[1].astype(
            np.float64
        )  # only their order counts

    def loss(self, scores):
        n_queries = len(self.offsets) - 1
        costs, counts = np.empty(n_queries), np.empty(n_queries)
        lambdas.pair_losses(
            self.grades,
            self.weights,
            self.offsets,
            scores,
            self.truncation,
            float(self.objective.sigma),
            self._records,
            costs,
            counts,
            self.n_threads,
        )
        total = exact_sum(counts)
        return exact_sum(costs) / total if total > 0 else math.nan


class _LambdaMARTBound(_Pairwise):
    def __init__(self, *args):
        super().__init__(*args)
        measure = self.objective.measure
        at = self.longest if measure.at is None else min(measure.at, self.longest)
        self.grades = measures.gains(self.labels, measure.gain)
        discounts = _aligned((lambdas.whole_chunks(self.longest),))
        discounts[self.longest :] = 0.0
        discounts[: self.longest] = measures.discounts(self.longest, measure.discount)
        if measure.name == "NDCG":
            ideals = np.empty(len(self.offsets) - 1)
            lambdas.ideals(self.grades, self.offsets, discounts[:at], self._records, ideals, self.n_threads)
            if not np.isfinite(ideals).all():
                raise ValueError(
                    f"y has gains too large to add up: choose a smaller gain than that of {measure!r}"
                )
            ideals[ideals == 0] = 1.0
            self.grades = self.grades / np.repeat(ideals, np.diff(self.offsets))
        if self.objective.delta == "cut":
            discounts[at:] = 0.0
        self.discounts = discounts
        self.spread = bool(self.objective.score_gap_norm)
        self.log_norm = self.objective.query_norm == "log"

    def loss(self, scores):
        measure = self.objective.measure
        mean = measure.mean(self.labels, scores, self.offsets, self.weights, self.n_threads)
        return 1.0 - mean if measure.name == "NDCG" else -mean


def _check_pairs(sigma, truncation_level):
    number_in("sigma", sigma, 0, math.inf)
    whole = isinstance(truncation_level, Integral) and not isinstance(truncation_level, bool)
    if truncation_level is not None and not (whole and truncation_level >= 1):
        raise ValueError(
            f"truncation_level must be a whole number >= 1, or None for all ranks, got {truncation_level!r}"
        )


@dataclass(frozen=True)
class RankNet(Objective):
    """RankNet: cross entropy of the order of each pair of rows of a query whose labels differ.

    With ``s_hi`` and ``s_lo`` the scores of the row with the higher and the lower label, a pair costs
    ``C = log(1 + e^(-sigma (s_hi - s_lo)))``. With ``rho = 1 / (1 + e^(sigma (s_hi - s_lo)))``, the
    probability that the model has the two the wrong way round, the pair adds ``-sigma * rho`` to the
    gradient of the better row, ``sigma * rho`` to that of the worse, and ``sigma^2 * rho * (1 - rho)`` to
    the hessians of both. A row's sums are multiplied by its weight. A query whose rows all have one label
    adds nothing. The loss is the mean cost of the pairs, each pair weighing the mean of its two rows.

    Parameters
    ----------
    sigma : float, default=1.0
        Steepness of the logistic function. Without regularisation it changes the scale of the scores and
        nothing else: the Newton step of a leaf is proportional to 1 / sigma, and so are the scores after it.
    truncation_level : int or None, default=None
        Only pairs whose better ranked row (by current score) is among that many best are counted. None counts
        all pairs, which is quadratic in the length of a query: on one core, a query of 10 000 rows takes
        about 0.02 s a round, one of 100 000 rows 2 s and one of 1 000 000 rows 4 minutes. Give a level where
        queries are that long.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    References
    ----------
    Burges et al., *Learning to Rank using Gradient Descent*, ICML 2005.
    Burges, *From RankNet to LambdaRank to LambdaMART: An Overview*, MSR-TR-2010-82, sections 2 and 3.

    Examples
    --------
    >>> bound = RankNet().bind(np.array([0.0, 1.0]), None, np.array([0, 2]))
    >>> gradients, hessians = np.empty(2), np.empty(2)
    >>> bound.gradients(np.zeros(2), gradients, hessians)
    >>> gradients, hessians
    (array([ 0.5, -0.5]), array([0.25, 0.25]))
    """

    sigma: float = 1.0
    truncation_level: int | None = None

    name: ClassVar[str] = "ranknet"

    def __post_init__(self):
        _check_pairs(self.sigma, self.truncation_level)

    def bind(self, labels, weights, offsets, n_threads=1):
        return _RankNetBound(self, labels, weights, offsets, n_threads)


@dataclass(frozen=True)
class LambdaMART(Objective):
    """LambdaMART: RankNet's gradient of a pair, times what swapping the two rows would change in the measure.

    The rows of a query are ranked by falling score, ties in the order of the rows; where all scores are
    equal, the expectation over all orders is taken. A pair counts if the labels differ and its better ranked
    row is among the ``truncation_level`` best. In the words of `RankNet`,
    it adds ``-sigma * delta * rho`` to the gradient of the better row, ``sigma * delta * rho`` to that of the
    worse, and ``sigma^2 * delta * rho * (1 - rho)`` to both hessians, where for NDCG ::

        delta = |gain_i - gain_j| * |discount(rank_i) - discount(rank_j)| / ideal DCG @ k

    and for DCG the same without the division. A row's sums are multiplied by its weight. A query of one row,
    of one label or without any gain adds nothing. There is no loss of which these are the derivatives
    everywhere; `Bound.loss` is 1 - the mean NDCG (minus the mean DCG).

    Parameters
    ----------
    measure : str or Measure, default="ndcg@10"
        NDCG or DCG, with its cutoff, gains and discounts.
    truncation_level : int or None, default=30
        How far down the ranking the better ranked row of a pair may stand; None is all the way, and then a
        round is quadratic in the length of a query. Somewhat more than the measure's cutoff works well.
    sigma : float, default=1.0
        Steepness of the logistic function. Without regularisation it changes the scale of the scores only
        (see `RankNet`).
    delta : {"full", "cut"}, default="full"
        "full" takes the discounts of the whole ranking, so that rows below the cutoff are still pulled up,
        and divides by the ideal at the cutoff. "cut" takes the exact change of the measure: pairs of which
        both rows stand below the cutoff count nothing.
    score_gap_norm : bool, default=False
        Divide delta by ``0.01 + |s_i - s_j|`` (unless all scores of the query are equal): pairs that are
        already far apart matter less. It makes the step depend on the scale of the scores.
    query_norm : {"none", "log"}, default="none"
        "log" multiplies the gradients and hessians of a query by ``log2(1 + S) / S``, where ``S`` is the sum
        of ``|lambda|`` over its rows' pairs (each pair counted for both rows): long queries and queries in
        disorder weigh less.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or the measure is neither NDCG nor DCG.

    References
    ----------
    Wu, Burges, Svore and Gao, *Adapting Boosting for Information Retrieval Measures*, Inf. Retrieval 2010.
    Burges, *From RankNet to LambdaRank to LambdaMART: An Overview*, MSR-TR-2010-82, section 7.

    Examples
    --------
    >>> objective = LambdaMART(measure="ndcg@5", truncation_level=10)
    >>> bound = objective.bind(np.array([0.0, 1.0]), None, np.array([0, 2]))
    >>> gradients, hessians = np.empty(2), np.empty(2)
    >>> bound.gradients(np.zeros(2), gradients, hessians)
    >>> gradients.round(4)  # +- (1 - 1 / log2(3)) / 2
    array([ 0.1845, -0.1845])
    """

    measure: Any = "ndcg@10"
    truncation_level: int | None = 30
    sigma: float = 1.0
    delta: str = "full"
    score_gap_norm: bool = False
    query_norm: str = "none"

    name: ClassVar[str] = "lambdamart"

    def __post_init__(self):
        measure = measures.as_measure(self.measure)
        if measure.name not in ("NDCG", "DCG"):
            raise ValueError(
                f"measure={measure!r}: lambdamart can optimise NDCG and DCG, at any cutoff; train on one of "
                "them and score by the other"
            )
        object.__setattr__(self, "measure", measure)
        _check_pairs(self.sigma, self.truncation_level)
        if self.delta not in ("full", "cut"):
            raise ValueError(f"delta must be 'full' or 'cut', got {self.delta!r}")
        if self.query_norm not in ("none", "log"):
            raise ValueError(f"query_norm must be 'none' or 'log', got {self.query_norm!r}")
        if not isinstance(self.score_gap_norm, (bool, np.bool_)):
            raise ValueError(f"score_gap_norm must be True or False, got {self.score_gap_norm!r}")

    def check_labels(self, labels):
        if labels.min(initial=0.0) < 0:
            raise ValueError(
                f"y has the label {labels.min():g}, but {self.measure!r} is defined for labels >= 0"
            )
        try:
            measures.gains(labels, self.measure.gain)
        except ValueError as error:
            raise ValueError(f"y cannot be ranked by {self.measure!r}: {error}") from error

    def bind(self, labels, weights, offsets, n_threads=1):
        return _LambdaMARTBound(self, labels, weights, offsets, n_threads)
