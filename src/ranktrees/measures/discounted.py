"""Measures of gains that are discounted by rank: DCG, NDCG and ERR."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ranktrees._core.measures import ranking
from ranktrees.measures.base import Preset
from ranktrees.measures.compiled import CompiledMeasure, symmetric
from ranktrees.measures.worth import discounts, gains
from ranktrees.support.annotations import Worth

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _DCG(CompiledMeasure):
    """Discounted cumulative gain.

    DCG @ k = sum over ranks r = 1 ... k of gain(label of the row at rank r) * discount(r).

    Parameters
    ----------
    gain : {"exp2", "linear"}, sequence or callable, default="exp2"
        How much a label is worth.
    discount : {"log2", "letor"}, sequence or callable, default="log2"
        How much a rank is worth.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. "average" is exact: it takes the mean gain of the tied rows at
        each of their ranks (McSherry and Najork, ECIR 2008).
    empty_query : {"skip", "skip_equal"} or float, default=0
        The value of a query without a positive gain. If "skip", such queries are left out; "skip_equal" also
        leaves out those whose labels are all equal.
    at : int, default=None
        The cutoff: only ranks 1, ..., ``at`` count. If None, all ranks count.

    References
    ----------
    Järvelin and Kekäläinen, *Cumulated Gain-based Evaluation of IR Techniques*, TOIS 2002; with the gain
    2^label - 1, Burges et al., *Learning to Rank using Gradient Descent*, ICML 2005.

    Examples
    --------
    >>> from ranktrees.measures import DCG
    >>> DCG([2, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])  # 3 / log2(2) + 0 / log2(3) + 1 / log2(4)
    3.5
    >>> (DCG(gain="linear") @ 2)([2, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])
    2.0
    """

    name = "DCG"
    defaults: ClassVar = {"gain": "exp2", "discount": "log2", "ties": "average", "empty_query": 0, "at": None}
    formula = ranking.Formula.DCG
    gain: Worth
    discount: Worth

    def gains_of(self, labels: np.ndarray) -> np.ndarray:
        return gains(labels, self.gain)

    def discounts_until(self, longest: int) -> np.ndarray:
        return discounts(longest, self.discount)

    def swap_deltas(self, labels: np.ndarray, scores: np.ndarray) -> NDArray[np.float64]:
        deltas = discounted_deltas(self, labels)
        if self.formula == ranking.Formula.DCG:
            return deltas
        discount = self.until_cutoff(self.discounts_until(len(labels)))
        best = np.sort(self.gains_of(labels))[::-1] @ discount
        return deltas / best if best > 0 else np.zeros_like(deltas)


class _NDCG(_DCG):
    """Normalised discounted cumulative gain: DCG divided by the DCG of the best order.

    NDCG @ k = DCG @ k / max over all orders of DCG @ k, a number in [0, 1].

    Programs do not agree on NDCG: they differ in the gain, in the value of a query without relevant rows and
    in the order of rows with equal scores. Choose by the parameters below, or take the choice of another
    program as a preset: ``NDCG.letor``, ``NDCG.lightgbm``, ``NDCG.xgboost``, ``NDCG.catboost``,
    ``NDCG.sklearn``, ``NDCG.trec_eval``, ``NDCG.survey``, ``NDCG.lambdasmart``.

    Parameters
    ----------
    gain : {"exp2", "linear"}, sequence or callable, default="exp2"
        How much a label is worth.
    discount : {"log2", "letor"}, sequence or callable, default="log2"
        How much a rank is worth.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. "average" is exact: it takes the mean gain of the tied rows at
        each of their ranks (McSherry and Najork, ECIR 2008).
    empty_query : {"skip", "skip_equal"} or float, default="skip"
        The value of a query without a positive gain. If "skip", such queries are left out; "skip_equal" also
        leaves out those whose labels are all equal.
    at : int, default=None
        The cutoff: only ranks 1, ..., ``at`` count. If None, all ranks count.

    References
    ----------
    Järvelin and Kekäläinen, *Cumulated Gain-based Evaluation of IR Techniques*, TOIS 2002; with the gain
    2^label - 1, Burges et al., *Learning to Rank using Gradient Descent*, ICML 2005.

    Examples
    --------
    >>> from ranktrees.measures import NDCG
    >>> NDCG([2, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])  # 3.5 / (3 + 1 / log2(3))
    0.963...
    >>> NDCG.lightgbm @ 5
    NDCG(ties="input", empty_query=1) @ 5
    >>> query, tied = [7, 7, 7], [1, 1, 1]
    >>> NDCG([0, 0, 3], tied, qid=query)
    0.710...
    >>> NDCG.lightgbm([3, 0, 0], tied, qid=query), NDCG.catboost([3, 0, 0], tied, qid=query)
    (1.0, 0.5)
    """

    name = "NDCG"
    defaults: ClassVar = {**_DCG.defaults, "empty_query": "skip"}
    formula = ranking.Formula.NDCG

    letor = Preset(
        "As the scripts of LETOR 3.0 and 4.0: rank 2 undiscounted, 0 for queries without relevant rows, "
        "equal scores in file order.",
        discount="letor",
        ties="input",
        empty_query=0,
    )
    lightgbm = Preset(
        "As LightGBM's ``ndcg``: gain 2^label - 1, 1 for queries without relevant rows, equal scores in "
        "file order.",
        ties="input",
        empty_query=1,
    )
    xgboost = Preset(
        "As XGBoost's ``ndcg``: gain 2^label - 1, 1 for queries without relevant rows (``ndcg-``: "
        "``empty_query=0``), equal scores in file order.",
        ties="input",
        empty_query=1,
    )
    catboost = Preset(
        "As CatBoost's ``NDCG`` of type Base (Exp: ``gain='exp2'``): linear gain, equal scores in the worst "
        "order, 1 for queries without relevant rows.",
        gain="linear",
        ties="worst",
        empty_query=1,
    )
    sklearn = Preset(
        "As scikit-learn's ``ndcg_score``: linear gain, the average over ties, 0 for queries without "
        "relevant rows.",
        gain="linear",
        ties="average",
        empty_query=0,
    )
    trec_eval = Preset(
        "As trec_eval and ir_measures: linear gain, 0 for queries without relevant rows, equal scores by "
        "descending document id (so the last row comes first if ids ascend with the rows).",
        gain="linear",
        ties="reverse",
        empty_query=0,
    )
    survey = Preset(
        "As Mohan 2010: gain 2^label - 1, and 1/2 for queries without relevant rows.", empty_query=0.5
    )
    lambdasmart = Preset(
        "As Wu, Burges, Svore and Gao 2010 (LambdaSMART): gain 2^label - 1, the average over ties, and no "
        "queries whose rows all have the same label.",
        empty_query="skip_equal",
    )


class _ERR(CompiledMeasure):
    """Expected reciprocal rank of the row that satisfies a user who reads the ranking from the top.

    ERR @ k = sum over ranks r = 1 ... k of 1/r * p_r * product over s < r of (1 - p_s), where a row of label
    y stops the user with probability p = (2^y - 1) / 2^max_grade.

    Parameters
    ----------
    max_grade : float, default=4
        The highest possible label. With 4 the divisor is 16.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. "average" is exact: it is computed by symmetric polynomials of
        the probabilities that a user reads on past each of the tied rows. It takes m * k steps for m relevant
        rows in a tie that reaches down to rank k, or to a rank k that no user gets beyond.
    empty_query : {"skip", "skip_equal"} or float, default=0
        The value of a query without a positive label. If "skip", such queries are left out; "skip_equal" also
        leaves out those whose labels are all equal.
    at : int, default=None
        The cutoff: only ranks 1, ..., ``at`` count. If None, all ranks count.

    References
    ----------
    Chapelle, Metzler, Zhang and Grinspan, *Expected Reciprocal Rank for Graded Relevance*, CIKM 2009.

    Examples
    --------
    >>> from ranktrees.measures import ERR
    >>> ERR([4, 0, 3], [0.3, 0.2, 0.1], qid=[7, 7, 7])  # 15/16 + 1/3 * (1 - 15/16) * 7/16
    0.946...
    >>> ERR(max_grade=1)([0, 1], [2, 1], qid=[7, 7])
    0.25
    """

    name = "ERR"
    defaults: ClassVar = {"max_grade": 4, "ties": "average", "empty_query": 0, "at": None}
    formula = ranking.Formula.ERR
    max_grade: float

    def gains_of(self, labels: np.ndarray) -> np.ndarray:
        highest = labels.max(initial=0.0)
        if highest > self.max_grade:
            raise ValueError(
                f"ERR takes labels up to max_grade={self.max_grade}, but there is a label {highest:g}: "
                f"use ERR(max_grade={highest:g})"
            )
        return gains(labels) / 2.0**self.max_grade

    def swap_deltas(self, labels: np.ndarray, scores: np.ndarray) -> NDArray[np.float64]:
        n = len(labels)
        stop = np.minimum(self.gains_of(labels), 1.0 - 2.0**-53)  # 1 could not be divided out
        passed = np.cumprod(1.0 - stop)  # the probability to get beyond a rank
        weight = self.until_cutoff(1.0 / np.arange(1.0, n + 1.0))
        losses = passed[:-1] * (weight[:-1] - weight[1:])  # by stopping one rank later
        below = np.append(np.cumsum(losses[::-1])[::-1], 0.0)
        upper, lower = np.triu_indices(n, 1)
        changes = (stop[lower] - stop[upper]) / (1.0 - stop[upper]) * (below[upper] - below[lower])
        return symmetric(n, changes)


def discounted_deltas(measure: CompiledMeasure, labels: np.ndarray) -> NDArray[np.float64]:
    """Return how swaps change a sum of gains that are discounted by rank."""
    gain, discount = measure.gains_of(labels), measure.until_cutoff(measure.discounts_until(len(labels)))
    return (gain[:, None] - gain) * (discount - discount[:, None])


DCG, NDCG, ERR = _DCG(), _NDCG(), _ERR()
