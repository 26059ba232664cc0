"""Pairwise objectives, which compare the rows of a query with each other, two by two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ranktrees._core.objectives import lambdas
from ranktrees._core.objectives import preferences as kernels
from ranktrees._core.support.threads import room_for_each
from ranktrees.objectives.base import NarrowLabels, Objective, PreparedObjective, number_in
from ranktrees.objectives.clicks import Clicked, checked_propensities
from ranktrees.processes.sharing import ALL_ROWS
from ranktrees.rows.sampling import stream_of_objective
from ranktrees.support.cached import cached_property
from ranktrees.support.numeric import is_real, is_whole

if TYPE_CHECKING:
    from ranktrees.processes.sharing import Share
    from ranktrees.rows.feedback import Preferences


class Pairs(NamedTuple):
    """What a kernel reads of the rows and the ranks to weigh pairs (see lambdas.pyx)."""

    kind: lambdas.Pairs
    grades: Any  # of the rows; None if there is a table of them
    worth: Any = None  # of the ranks
    apart: Any = None
    unit: float = 1.0  # the factor by which weights are multiplied
    limits: tuple[int, int] = (0, 0)
    table: Any = None  # the grades of each query, by label


class Pairwise(NarrowLabels):
    """The base of prepared pairwise objectives: weights of their pairs, and scratch for each thread."""

    factors: Any = None, None  # of rows: factors of pairs that correct for positions seen more than others
    costs: Any = None
    pairs: Pairs  # set by those that know the weights

    def __init__(
        self,
        objective: Objective,
        labels: np.ndarray,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int,
        share: Share,
    ) -> None:
        super().__init__(objective, labels, weights, offsets, n_threads, share)
        self.longest = int(np.diff(self.offsets).max(initial=0))
        level = self.objective.truncation_level
        self.truncation = self.longest if level is None else min(int(level), self.longest)
        self._scratch = lambdas.Scratch(self.longest, n_threads)

    @cached_property
    def _kernel(self) -> Any:
        return lambdas.PairKernel(self.pairs, self.objective, self, self.truncation, self._scratch)

    def gradients(
        self, scores: np.ndarray, gradients: np.ndarray, hessians: np.ndarray, iteration: int = 0
    ) -> None:
        stream = stream_of_objective(iteration)
        self._kernel.gradients(scores, stream, gradients, hessians, *self.factors, self.costs)

    def _by_place(self, values: float | np.ndarray = 0.0) -> np.ndarray:
        """An array with a number for each place in a ranking, and 0 behind the longest query."""
        out = room_for_each(1, lambdas.whole_chunks(self.longest), np.float32)[0]
        out[: self.longest] = values
        return out


class _PairsThatWeighTheSame(Pairwise):
    def __init__(self, kind: Any, *args: Any) -> None:
        super().__init__(*args)
        self.pairs = Pairs(kind, order_of(self.labels))

    def loss(self, scores: np.ndarray) -> float:
        n_queries = len(self.offsets) - 1
        costs, counts = np.empty(n_queries), np.empty(n_queries)
        self._kernel.losses(scores, costs, counts)
        total = self._sum(counts)
        return self._sum(costs) / total if total > 0 else math.nan


class _ClicksThatWeighTheSame(Clicked, _PairsThatWeighTheSame):
    pass


def order_of(labels: np.ndarray) -> np.ndarray:
    """Return whole grades in the order of the labels, for pairs of which only the order counts."""
    return np.unique(labels, return_inverse=True)[1].astype(np.float64)


GAPS = 1e-3, 1e3  # within which no product of three pairs leaves the range of float32


class OfPairs(Objective):
    """The attributes of an objective that the kernel of pairs reads."""

    truncation_level: int | None
    sigma: float
    score_gap_norm: float | None = None
    query_norm: str = "none"
    bias_norm: float = 0.25
    propensities: Sequence[float] | None = None
    noise = 0.0
    n_orders = 1
    seed = 0

    @property
    def steepness(self) -> float:
        """The factor of a difference of scores or, for a hinge, the number it is compared with."""
        return self.sigma

    def __post_init__(self) -> None:
        level = self.truncation_level
        if level is not None and not is_whole(level, 1):
            raise ValueError(
                f"truncation_level must be a whole number >= 1, or None for all ranks, got {level!r}"
            )
        if self.query_norm not in ("none", "log", "unit"):
            raise ValueError(f"query_norm must be 'none', 'log' or 'unit', got {self.query_norm!r}")
        gap = self.score_gap_norm
        if gap is not None and not (is_real(gap) and GAPS[0] <= gap <= GAPS[1]):
            raise ValueError(
                f"score_gap_norm={gap!r}; expected the number that is added to the gap, from {GAPS[0]:g} to "
                f"{GAPS[1]:g}, or None: pass 0.01 for what LightGBM does, None to divide by nothing."
            )
        if self.bias_norm != 0:
            number_in("bias_norm", self.bias_norm, 0, math.inf)
        if self.propensities is not None:
            object.__setattr__(self, "propensities", checked_propensities(self.propensities))


class _Preferred(PreparedObjective):
    """Pairs that were given, whatever the labels are. All of them count."""

    def __init__(
        self, cost: Any, objective: Objective, preferences: Preferences, n_rows: int, n_threads: int
    ) -> None:
        self.objective, self.n_threads, self.share = objective, n_threads, ALL_ROWS
        self.total_weight = preferences.weight
        if not self.total_weight > 0:
            raise ValueError(
                "pairs: no pair of positive weight is left among the training rows or among those for early "
                "stopping; pass more pairs, or X_val and pairs_val"
            )
        entries = preferences.by_row(n_rows)
        self._kernel = kernels.Preferred(cost, self.objective.steepness, entries, n_threads)

    def gradients(
        self, scores: np.ndarray, gradients: np.ndarray, hessians: np.ndarray, iteration: int = 0
    ) -> None:
        self._kernel.gradients(scores, gradients, hessians)

    def loss(self, scores: np.ndarray) -> float:
        costs = np.empty(len(scores))
        self._kernel.costs(scores, costs)
        return self._sum(costs) / self.total_weight


@dataclass(frozen=True)
class RankNet(OfPairs):
    """RankNet: cross entropy of the order of each pair of rows of a query whose labels differ.

    With ``s_hi`` and ``s_lo`` the scores of the rows with the higher and the lower label, a pair costs
    ``C = log(1 + e^(-sigma (s_hi - s_lo)))``. With ``rho = 1 / (1 + e^(sigma (s_hi - s_lo)))``, which is the
    probability that the model has the two the wrong way round, the pair adds ``-sigma * rho`` to the gradient
    of the better row, ``sigma * rho`` to that of the worse row, and ``sigma^2 * rho * (1 - rho)`` to the
    hessians of both. The sums of a row are multiplied by its weight. A query whose rows all have the same
    label adds nothing. The loss is the mean cost of the pairs, where the weight of a pair is the mean of the
    weights of its two rows. If the weights of the rows of a query differ, the gradients are not exactly the
    slope of this loss.

    If pairs are given (``preferences``), they count instead of the labels. A pair of weight w and target
    probability P costs ``-w (P log(1 - rho) + (1 - P) log(rho))``, with the rho of its first row being the
    better one. The loss is the mean cost, weighted by w.

    If the ``positions`` at which rows were shown are given, labels are clicks, and pairs are corrected for
    them as in `LambdaMART`, with 1 for delta. The loss is that of the clicks as they are.

    Parameters
    ----------
    sigma : float, default=1.0
        The steepness of the logistic function. If scores start from a constant, and without regularisation,
        it changes the scale of the scores and nothing else: the Newton step of a leaf is proportional to
        1 / sigma, and so are the scores after it.
    truncation_level : int or None, default=None
        Only pairs are counted whose better ranked row (by current score) is among this many best rows of the
        query. If all scores of a query are equal, the gradients are the mean over all its orders. If None,
        all pairs are counted, which takes time quadratic in the length of a query: on one core, a query of
        10 000 rows takes about 0.02 s a round, one of 100 000 rows 2 s and one of 1 000 000 rows 4 minutes.
        Set a level if queries are that long.
    score_gap_norm, query_norm, bias_norm, propensities
        As in `LambdaMART`. Given pairs are not normed.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    References
    ----------
    Burges et al., *Learning to Rank using Gradient Descent*, ICML 2005.
    Burges, *From RankNet to LambdaRank to LambdaMART: An Overview*, MSR-TR-2010-82, section 2.

    Examples
    --------
    >>> prepared = RankNet().prepare(np.array([0.0, 1.0]), None, np.array([0, 2]))
    >>> gradients, hessians = np.empty(2), np.empty(2)
    >>> prepared.gradients(np.zeros(2), gradients, hessians)
    >>> gradients, hessians
    (array([ 0.5, -0.5]), array([0.25, 0.25]))
    """

    sigma: float = 1.0
    truncation_level: int | None = None
    score_gap_norm: float | None = None
    query_norm: str = "none"
    bias_norm: float = 0.25
    propensities: Sequence[float] | None = None

    name: ClassVar[str] = "ranknet"
    learns_from: ClassVar[tuple[str, ...]] = ("preferences", "positions")

    def __post_init__(self) -> None:
        super().__post_init__()
        number_in("sigma", self.sigma, 0, math.inf)

    def prepare(
        self,
        labels: Any,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int = 1,
        share: Share = ALL_ROWS,
        preferences: Preferences | None = None,
        positions: np.ndarray | None = None,
    ) -> PreparedObjective:
        if preferences is not None:
            return _Preferred(kernels.Cost.CROSS_ENTROPY, self, preferences, int(offsets[-1]), n_threads)
        rows = lambdas.Pairs.RANKNET, self, labels, weights, offsets, n_threads, share
        if positions is not None:
            return _ClicksThatWeighTheSame(*rows, positions=positions)
        return _PairsThatWeighTheSame(*rows)


@dataclass(frozen=True)
class GBRank(OfPairs):
    """GBRank: the squared hinge of each pair of rows of a query whose labels differ.

    With ``s_hi`` and ``s_lo`` the scores of the rows with the higher and the lower label, a pair costs
    ``C = max(0, margin - (s_hi - s_lo))^2 / 2``, which is nothing once the pair is in the right order by the
    margin. Otherwise, what is missing to the margin is added to the gradient of the worse row and subtracted
    from that of the better row, and the pair adds 1 to the hessians of both. The sums of a row are multiplied
    by its weight. The loss is the mean cost of the pairs, where the weight of a pair is the mean of the
    weights of its two rows.

    If pairs are given (``preferences``), they count instead of the labels. A pair of weight w and target
    probability P costs ``w (P C(i, j) + (1 - P) C(j, i))``, with ``C(i, j)`` the cost of i before j. The loss
    is the mean cost, weighted by w.

    Parameters
    ----------
    margin : float, default=1.0
        The difference of scores by which a pair has to be in the right order. If scores start from a
        constant, and without regularisation, it changes the scale of the scores and nothing else.
    truncation_level : int or None, default=None
        As in `RankNet`.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    References
    ----------
    Zheng, Chen, Sun and Zha, *A Regression Framework for Learning Ranking Functions using Relative Relevance
    Judgments*, SIGIR 2007. There each tree is fitted to the rows of the pairs that are in the wrong order.
    Here it takes the Newton step of the same cost.

    Examples
    --------
    >>> prepared = GBRank().prepare(np.array([0.0, 1.0]), None, np.array([0, 2]))
    >>> gradients, hessians = np.empty(2), np.empty(2)
    >>> prepared.gradients(np.array([0.25, 0.5]), gradients, hessians)
    >>> gradients, hessians
    (array([ 0.75, -0.75]), array([1., 1.]))
    """

    margin: float = 1.0
    truncation_level: int | None = None

    name: ClassVar[str] = "gbrank"
    learns_from: ClassVar[tuple[str, ...]] = ("preferences",)

    @property
    def steepness(self) -> float:
        return self.margin

    def __post_init__(self) -> None:
        super().__post_init__()
        number_in("margin", self.margin, 0, math.inf)

    def prepare(
        self,
        labels: Any,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int = 1,
        share: Share = ALL_ROWS,
        preferences: Preferences | None = None,
    ) -> PreparedObjective:
        if preferences is not None:
            return _Preferred(kernels.Cost.SQUARED_HINGE, self, preferences, int(offsets[-1]), n_threads)
        return _PairsThatWeighTheSame(
            lambdas.Pairs.SQUARED_HINGE, self, labels, weights, offsets, n_threads, share
        )
