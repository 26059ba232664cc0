"""Listwise objectives, which consider all rows of a query at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ranktrees import measures
from ranktrees._core.objectives import lists, losses
from ranktrees.objectives.base import Objective, PreparedObjective
from ranktrees.processes.sharing import ALL_ROWS
from ranktrees.rows.sampling import stream_of_objective
from ranktrees.support.numeric import is_whole

if TYPE_CHECKING:
    from ranktrees.processes.sharing import Share


class _Shares(PreparedObjective):
    """Softmax cross entropy: the target of a row is the share that its mass has in its query."""

    def __init__(self, masses: np.ndarray, offset: float, *args: Any) -> None:
        super().__init__(*args)
        self._kernel = lists.Shares(np.ascontiguousarray(masses, dtype=np.float64), offset, self)

    def gradients(
        self, scores: np.ndarray, gradients: np.ndarray, hessians: np.ndarray, iteration: int = 0
    ) -> None:
        self._kernel.gradients(scores, stream_of_objective(iteration), gradients, hessians)

    def loss(self, scores: np.ndarray) -> float:
        n_queries = len(self.offsets) - 1
        costs, counts = np.empty(n_queries), np.empty(n_queries)
        self._kernel.losses(scores, costs, counts)
        return self._sum(costs) / self._sum(counts)


@dataclass(frozen=True)
class ListNet(Objective):
    """ListNet: cross entropy of the probabilities of being ranked first, by the labels and by the scores.

    With ``p_i = e^score_i / sum of e^score`` over the rows of the query, and ``q_i`` the same for the labels,
    a query costs ``- sum of q_i log p_i``. The gradient of a row is ``p_i - q_i``. Its hessian is
    ``p_i (1 - p_i)``, the diagonal of the hessian of the cost, whose other entries are left out. A row of
    weight w counts as w rows in both sums, and the weight of a query is the mean of the weights of its rows.
    The loss is the mean cost of the queries.

    References
    ----------
    Cao, Qin, Liu, Tsai and Li, *Learning to Rank: From Pairwise Approach to Listwise Approach*, ICML 2007,
    with the probability of the first rank.

    Examples
    --------
    >>> prepared = ListNet().prepare(np.array([0.0, 1.0]), None, np.array([0, 2]))
    >>> gradients, hessians = np.empty(2), np.empty(2)
    >>> prepared.gradients(np.zeros(2), gradients, hessians)
    >>> gradients.round(4), hessians  # 1/2 - 1 / (1 + e), 1/2 - e / (1 + e)
    (array([ 0.2311, -0.2311]), array([0.25, 0.25]))
    """

    name: ClassVar[str] = "listnet"

    def prepare(
        self,
        labels: np.ndarray,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int = 1,
        share: Share = ALL_ROWS,
    ) -> PreparedObjective:
        highest = np.maximum.reduceat(labels, offsets[:-1])
        masses = np.empty(len(labels))
        losses.exponentials(labels - np.repeat(highest, np.diff(offsets)), masses)
        return _Shares(masses, 0.0, self, labels, weights, offsets, n_threads, share)


@dataclass(frozen=True)
class XENDCG(Objective):
    """XE-NDCG: cross entropy of the softmax of the scores with shares of gain, drawn anew in each round.

    With ``p_i = e^score_i / sum of e^score`` over the rows of the query and
    ``q_i = (1 + gain_i - u_i) / sum of (1 + gain - u)``, where u is uniform in [0, 1), a query costs
    ``- sum of q_i log p_i``, which is a bound on its NDCG. With the gain 2^label - 1 the numerator is
    ``2^label - u``. The gradient of a row is ``p_i - q_i``. Its hessian is ``p_i (1 - p_i)``, the diagonal of
    the hessian of the cost. A row of weight w counts as w rows in both sums, and the weight of a query is the
    mean of the weights of its rows. The loss is the mean cost of the queries for u = 1/2.

    Parameters
    ----------
    gain : {"exp2", "linear"}, sequence or callable, default="exp2"
        How much a label is worth, as in `measures.gains`.
    seed : int, default=0
        The seed of the random numbers, which also depend on the round and the row.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    References
    ----------
    Bruch, *An Alternative Cross Entropy Loss for Learning-to-Rank*, WWW 2021. Its further terms of the
    inverse hessian are left out.

    Examples
    --------
    >>> prepared = XENDCG().prepare(np.array([0.0, 3.0]), None, np.array([0, 2]))
    >>> gradients, hessians = np.empty(2), np.empty(2)
    >>> prepared.gradients(np.zeros(2), gradients, hessians)
    >>> bool(gradients[0] > 0 > gradients[1]), hessians
    (True, array([0.25, 0.25]))
    """

    gain: Any = "exp2"
    seed: int = 0

    name: ClassVar[str] = "xendcg"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gain", measures.DCG(gain=self.gain).parameters["gain"])
        if not is_whole(self.seed, 0):
            raise ValueError(f"seed must be a whole number >= 0, got {self.seed!r}")

    def check_labels(self, labels: np.ndarray) -> None:
        try:
            measures.gains(labels, self.gain)
        except ValueError as error:
            raise ValueError(f"y has no gains for xendcg: {error}") from error

    def prepare(
        self,
        labels: np.ndarray,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int = 1,
        share: Share = ALL_ROWS,
    ) -> PreparedObjective:
        masses = 1.0 + measures.gains(labels, self.gain)
        return _Shares(masses, 0.5, self, labels, weights, offsets, n_threads, share)


class _Centred(PreparedObjective):
    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._kernel = lists.Centred(self)

    def gradients(
        self, scores: np.ndarray, gradients: np.ndarray, hessians: np.ndarray, iteration: int = 0
    ) -> None:
        self._kernel.gradients(scores, stream_of_objective(iteration), gradients, hessians)

    def loss(self, scores: np.ndarray) -> float:
        slopes, weights = np.empty(len(scores)), np.empty(len(scores))
        self.gradients(scores, slopes, weights)
        halves = np.divide(0.5 * slopes**2, weights, out=np.zeros(len(scores)), where=weights > 0)
        return self._sum(halves) / self.total_weight


@dataclass(frozen=True)
class QueryRMSE(Objective):
    """Squared error about the mean of the query: an error that all rows of a query share costs nothing.

    With the residual ``r = score - label`` and ``m`` its weighted mean over the query, a row costs
    ``(r - m)^2 / 2``. Its gradient is ``r - m`` and its hessian is 1, that of the cost while ``m`` is fixed.
    This is regression that does not spend its trees on the level of a query, which does not affect the
    ranking.

    References
    ----------
    CatBoost's loss of that name; Cossock and Zhang, *Statistical Analysis of Bayes Optimal Subset Ranking*,
    IEEE Trans. Information Theory 2008, on regression for ranking.

    Examples
    --------
    >>> prepared = QueryRMSE().prepare(np.array([0.0, 1.0]), None, np.array([0, 2]))
    >>> gradients, hessians = np.empty(2), np.empty(2)
    >>> prepared.gradients(np.array([7.0, 7.0]), gradients, hessians)
    >>> gradients, hessians
    (array([ 0.5, -0.5]), array([1., 1.]))
    """

    name: ClassVar[str] = "query_rmse"
    constant_hessian: ClassVar[bool] = True

    def prepare(
        self,
        labels: np.ndarray,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int = 1,
        share: Share = ALL_ROWS,
    ) -> PreparedObjective:
        return _Centred(self, labels, weights, offsets, n_threads, share)
