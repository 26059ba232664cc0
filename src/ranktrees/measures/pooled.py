"""Measures of the rows of all queries together: PooledAUC and BalancedErrorRate."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from ranktrees.measures.base import Measure, Preset, quotient
from ranktrees.measures.checks import percentages
from ranktrees.processes.communicator import ALONE

if TYPE_CHECKING:
    from ranktrees.processes.communicator import Communicator


class Pooled(Measure):
    """A measure of relevant and irrelevant rows, whichever query they belong to: it defines `mean`."""

    by_query = False
    lowest_label = -math.inf
    undefined = "without both relevant and irrelevant rows of positive weight"

    def per_query(
        self,
        labels: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        weights: np.ndarray | None = None,
        n_threads: int = 1,
    ) -> NoReturn:
        raise ValueError(
            f"{self} is one number for the rows of all queries together, and has no value for each query; "
            "expected a mean over queries, such as 'auc' or 'ndcg@10'"
        )


class _PooledAUC(Pooled):
    """Area under the ROC curve of the rows of all queries together, or under a part of it.

    The curve shows the share of the relevant rows that score above a threshold (the true-positive rate)
    against the share of the irrelevant rows that do (the false-positive rate). Rows with equal scores are a
    straight piece of it. ::

        PooledAUC           = (pairs with the relevant row above + 1/2 pairs with equal scores)
                              / (all pairs of a relevant and an irrelevant row, of any queries)
        PooledAUC @ [a, b]  = area under the curve from a false-positive rate of a % to one of b %

    An area is not scaled. PooledAUC @ [0, 5] is at most 0.05, and 0.05^2 / 2 = 0.00125 is expected of random
    scores. Rows count by their weights, and a pair by the product of those of its rows. There is no value for
    a query: `AUC` is the mean over queries. Ranks that train together send each other the scores of the rows.

    Parameters
    ----------
    rel : float, default=1
        The lowest label that is relevant.
    at : pair of float, default=None
        The false-positive rates [a, b] in percent, 0 <= a < b <= 100. If None, the whole area counts.

    References
    ----------
    Hanley and McNeil, *The Meaning and Use of the Area under a ROC Curve*, Radiology 1982; McClish,
    *Analyzing a Portion of the ROC Curve*, Medical Decision Making 1989. The preset ``PooledAUC.survey``,
    which is also ``AUC.survey``, is that of Mohan, *An Empirical Analysis on Point-wise Machine Learning
    Techniques using Regression Trees for Web-search Ranking*, 2010, section 6.2.

    Examples
    --------
    >>> from ranktrees.measures import PooledAUC, as_measure
    >>> y_true, y_score, qid = [1, 0, 1, 0], [0.9, 0.8, 0.3, 0.2], [1, 1, 2, 2]
    >>> PooledAUC(y_true, y_score, qid=qid)  # 3 of 4 pairs; AUC is 1, the mean of 1 and 1
    0.75
    >>> (PooledAUC @ [0, 50])(y_true, y_score, qid=qid)  # 1/2 wide, 1/2 high
    0.25
    >>> as_measure("pauc.survey@[0,5]")
    PooledAUC(rel=3) @ [0, 5]
    """

    name = "PooledAUC"
    defaults: ClassVar = {"rel": 1, "at": None}
    rel: float
    at: tuple[float, float] | None

    survey = Preset("As Mohan 2010, chapter 6: labels from 3 on are relevant.", rel=3)

    def _checked(self, name: str, value: Any) -> Any:
        return percentages(value) if name == "at" else super()._checked(name, value)

    def mean(
        self,
        labels: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        weights: np.ndarray | None = None,
        n_threads: int = 1,
        communicator: Communicator = ALONE,
    ) -> float:
        weights = np.ones(len(labels)) if weights is None else weights
        of_rank = scores, labels >= self.rel, weights
        scores, relevant, weights = map(np.concatenate, zip(*communicator.allgather(of_rank), strict=True))
        order = np.lexsort((weights, relevant, -scores))  # so that the order of the rows changes no bit
        ranked = scores[order]
        last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], len(ranked) > 0))  # of each tie
        hits, misses = (
            np.append(0.0, np.cumsum(np.where(counts, weights, 0.0)[order])[last])
            for counts in (relevant, ~relevant)
        )
        low, high = (rate / 100 * misses[-1] for rate in self.at or (0, 100))
        return quotient(_area(misses, hits, low, high), float(hits[-1] * misses[-1]))


def _area(x: np.ndarray, y: np.ndarray, low: float, high: float) -> float:
    """The area from low to high under the straight lines between points whose x never falls."""
    wide = np.diff(x) > 0
    (start, end), (first, second) = ((ends[:-1][wide], ends[1:][wide]) for ends in (x, y))
    left, right = np.clip(start, low, high), np.clip(end, low, high)
    share = ((left + right) / 2 - start) / (end - start)
    return ALONE.exact_sum((right - left) * (first + share * (second - first)))


class _BalancedErrorRate(Pooled):
    """Share of wrong decisions between relevant and irrelevant, in which both kinds of rows weigh the same.

    BalancedErrorRate = (irrelevant rows taken for relevant) / (2 * irrelevant rows)
                        + (relevant rows taken for irrelevant) / (2 * relevant rows)

    The rows are those of all queries, and count by their weights. A row is taken for relevant if its score is
    above the threshold. The value is in [0, 1], smaller is better, and any constant score has 1/2. It is 1
    minus the balanced accuracy of scikit-learn.

    Parameters
    ----------
    rel : float, default=1
        The lowest label that is relevant.
    threshold : float, default=0.5
        The highest score of a row that is taken for irrelevant. 0.5 suits probabilities, which is what a
        classifier is measured by, and 0 suits log odds.

    References
    ----------
    Burges, *From RankNet to LambdaRank to LambdaMART: An Overview*, 2010, section 6.1.

    Examples
    --------
    >>> from ranktrees.measures import BalancedErrorRate
    >>> BalancedErrorRate([1, 0, 0, 0, 0], [0.4, 0.1, 0.2, 0.6, 0.3])  # 1 of 4 / 2 + 1 of 1 / 2
    0.625
    """

    name = "BalancedErrorRate"
    defaults: ClassVar = {"rel": 1, "threshold": 0.5}
    rel: float
    threshold: float
    greater_is_better = False
    by_order = False

    def mean(
        self,
        labels: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        weights: np.ndarray | None = None,
        n_threads: int = 1,
        communicator: Communicator = ALONE,
    ) -> float:
        weights = np.ones(len(labels)) if weights is None else weights
        relevant, taken = labels >= self.rel, scores > self.threshold

        def share(wrong: np.ndarray, kind: np.ndarray) -> float:
            return quotient(*(communicator.exact_sum(weights[rows]) for rows in (kind & wrong, kind)))

        return share(taken, ~relevant) / 2 + share(~taken, relevant) / 2


PooledAUC, BalancedErrorRate = _PooledAUC(), _BalancedErrorRate()
