"""Measures of rows that are relevant or not: AP, RR, Success, P, R, RPrecision, RBP, AUC and TopAUC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ranktrees._core.measures import ranking
from ranktrees.measures.base import Preset
from ranktrees.measures.checks import stretch
from ranktrees.measures.compiled import CompiledMeasure, symmetric
from ranktrees.measures.discounted import discounted_deltas
from ranktrees.measures.pooled import PooledAUC

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _Binary(CompiledMeasure):
    """A measure for which a row is either relevant (label >= rel) or not."""

    defaults: ClassVar = {"rel": 1, "ties": "average", "empty_query": 0, "at": None}
    rel: float

    def gains_of(self, labels: np.ndarray) -> np.ndarray:
        return (labels >= self.rel).astype(np.float64)


class _AP(_Binary):
    """Average precision; its mean over queries is MAP.

    AP @ k = 1/R * sum over the ranks r <= k of relevant rows of (relevant rows at ranks 1 ... r) / r, where R
    is the number of all relevant rows of the query, as in trec_eval. So a query with R > k cannot reach 1.
    LightGBM and XGBoost divide by min(R, k) instead. The user guide defines their MAP @ k as a function.

    Parameters
    ----------
    rel : float, default=1
        The lowest label that is relevant.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. "average" is exact (McSherry and Najork, ECIR 2008).
    empty_query : {"skip", "skip_equal"} or float, default="skip"
        The value of a query without relevant rows. If "skip", such queries are left out; "skip_equal" also
        leaves out those whose labels are all equal.
    at : int, default=None
        The cutoff: only ranks 1, ..., ``at`` count. If None, all ranks count.

    References
    ----------
    Buckley and Voorhees, *Evaluating Evaluation Measure Stability*, SIGIR 2000.

    Examples
    --------
    >>> from ranktrees.measures import AP, as_measure
    >>> AP([1, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])  # (1/1 + 2/3) / 2
    0.833...
    >>> as_measure("map@10")
    AP @ 10
    >>> (AP @ 1)([1, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])  # 1/1 / 2
    0.5
    """

    name = "AP"
    defaults: ClassVar = {**_Binary.defaults, "empty_query": "skip"}
    formula = ranking.Formula.AP

    def swap_deltas(self, labels: np.ndarray, scores: np.ndarray) -> NDArray[np.float64]:
        n = len(labels)
        hits = self.gains_of(labels)
        if not hits.any():
            return np.zeros((n, n))
        found = np.cumsum(hits)
        weight = self.until_cutoff(1.0 / np.arange(1.0, n + 1.0))
        total = np.concatenate(([0.0], np.cumsum(hits * weight)))
        upper, lower = np.triu_indices(n, 1)
        rises = hits[lower] - hits[upper]  # 1: the relevant row of the two moves up
        changes = (found[upper] + (rises > 0)) * weight[upper]
        changes += total[lower] - total[upper + 1]
        changes -= found[lower] * weight[lower]
        return symmetric(n, rises * changes / found[-1])


class _RR(_Binary):
    """Reciprocal rank of the first relevant row; its mean over queries is MRR.

    RR @ k = 1 / (rank of the first relevant row), or 0 if that row is below rank k.

    Parameters
    ----------
    rel : float, default=1
        The lowest label that is relevant.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. "average" is exact (McSherry and Najork, ECIR 2008).
    empty_query : {"skip", "skip_equal"} or float, default=0
        The value of a query without relevant rows. If "skip", such queries are left out; "skip_equal" also
        leaves out those whose labels are all equal.
    at : int, default=None
        The cutoff: only ranks 1, ..., ``at`` count. If None, all ranks count.

    References
    ----------
    Voorhees, *The TREC-8 Question Answering Track Report*, TREC 1999.

    Examples
    --------
    >>> from ranktrees.measures import RR
    >>> RR([0, 1, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])
    0.5
    >>> RR([0, 1], [1, 1], qid=[7, 7])  # first or second, by chance
    0.75
    """

    name = "RR"
    formula = ranking.Formula.RR

    def _worths(self, n: int) -> np.ndarray:
        """Return what the first relevant row is worth at each rank."""
        return 1.0 / np.arange(1.0, n + 1.0)

    def swap_deltas(self, labels: np.ndarray, scores: np.ndarray) -> NDArray[np.float64]:
        n = len(labels)
        hits = self.gains_of(labels)
        weight = np.append(self.until_cutoff(self._worths(n)), 0.0)
        first, second = np.append(np.flatnonzero(hits), [n, n])[:2]
        upper, lower = np.triu_indices(n, 1)
        rises = hits[lower] > hits[upper]
        falls = hits[lower] < hits[upper]
        new = np.full(len(upper), first)
        new[rises] = np.minimum(first, upper[rises])
        fallen = falls & (upper == first)
        new[fallen] = np.minimum(second, lower[fallen])
        return symmetric(n, weight[new] - weight[first])


class _Success(_RR):
    """Whether there is a relevant row above the cutoff; its mean over queries is the hit rate.

    Success @ k = 1 if a row at ranks 1 ... k is relevant, else 0. With "average", rows with equal scores
    make it the probability of that.

    Parameters
    ----------
    rel : float, default=1
        The lowest label that is relevant.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. "average" is exact.
    empty_query : {"skip", "skip_equal"} or float, default=0
        The value of a query without relevant rows. If "skip", such queries are left out; "skip_equal" also
        leaves out those whose labels are all equal.
    at : int, default=None
        The cutoff: only ranks 1, ..., ``at`` count. If None, all ranks count.

    Examples
    --------
    >>> from ranktrees.measures import Success
    >>> (Success @ 1)([0, 1, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])
    0.0
    >>> (Success @ 1)([0, 1], [1, 1], qid=[7, 7])  # first or second, by chance
    0.5
    """

    name = "Success"
    formula = ranking.Formula.SUCCESS

    def _worths(self, n: int) -> np.ndarray:
        return np.ones(n)


class _P(_Binary):
    """Precision: the share of relevant rows among those above the cutoff.

    P @ k = (relevant rows at ranks 1 ... k) / k, also for queries of fewer than k rows, as in trec_eval.
    Without a cutoff it is the share of relevant rows among all rows of the query that were retrieved.

    Parameters
    ----------
    rel : float, default=1
        The lowest label that is relevant.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. "average" is exact.
    empty_query : {"skip", "skip_equal"} or float, default=0
        The value of a query without relevant rows. If "skip", such queries are left out; "skip_equal" also
        leaves out those whose labels are all equal.
    at : int, default=None
        The cutoff: only ranks 1, ..., ``at`` count. If None, all ranks count.

    Examples
    --------
    >>> from ranktrees.measures import P
    >>> (P @ 2)([1, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])
    0.5
    """

    name = "P"
    formula = ranking.Formula.P

    survey = Preset("As Mohan 2010, chapter 6: labels from 3 on are relevant.", rel=3)

    def swap_deltas(self, labels: np.ndarray, scores: np.ndarray) -> NDArray[np.float64]:
        n = len(labels)
        hits = self.gains_of(labels)
        above = self.until_cutoff(np.ones(n))
        changes = (hits[:, None] - hits) * (above - above[:, None])
        return changes / (self.at or n if self.formula == ranking.Formula.P else max(hits.sum(), 1.0))


class _R(_Binary):
    """Recall: the share of the relevant rows that are above the cutoff.

    R @ k = (relevant rows at ranks 1 ... k) / (relevant rows of the query).

    Parameters
    ----------
    rel : float, default=1
        The lowest label that is relevant.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. "average" is exact.
    empty_query : {"skip", "skip_equal"} or float, default="skip"
        The value of a query without relevant rows. If "skip", such queries are left out; "skip_equal" also
        leaves out those whose labels are all equal.
    at : int, default=None
        The cutoff: only ranks 1, ..., ``at`` count. If None, all ranks count.

    Examples
    --------
    >>> from ranktrees.measures import R
    >>> (R @ 1)([1, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])
    0.5
    """

    name = "R"
    defaults: ClassVar = {**_Binary.defaults, "empty_query": "skip"}
    formula = ranking.Formula.R
    swap_deltas = _P.swap_deltas


class _RPrecision(_Binary):
    """R-precision: the share of relevant rows among as many rows as are relevant in the query.

    RPrecision = (relevant rows at ranks 1 ... R) / R, where R is the number of relevant rows of the query.

    Parameters
    ----------
    rel : float, default=1
        The lowest label that is relevant.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. "average" is exact.
    empty_query : {"skip", "skip_equal"} or float, default="skip"
        The value of a query without relevant rows. If "skip", such queries are left out; "skip_equal" also
        leaves out those whose labels are all equal.

    References
    ----------
    Buckley and Voorhees, *Evaluating Evaluation Measure Stability*, SIGIR 2000.

    Examples
    --------
    >>> from ranktrees.measures import RPrecision
    >>> RPrecision([1, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])  # one of the first two
    0.5
    """

    name = "RPrecision"
    defaults: ClassVar = {"rel": 1, "ties": "average", "empty_query": "skip"}
    formula = ranking.Formula.R_PRECISION

    def swap_deltas(self, labels: np.ndarray, scores: np.ndarray) -> NDArray[np.float64]:
        hits = self.gains_of(labels)
        n_hits = int(hits.sum())
        above = (np.arange(len(hits)) < n_hits) / max(n_hits, 1)
        return (hits[:, None] - hits) * (above - above[:, None])


class _RBP(_Binary):
    """Rank-biased precision: how much of what a user reads is relevant, who may stop after each row.

    RBP @ k = (1 - p) * sum over the ranks r <= k of relevant rows of p^(r - 1), where p is the probability
    that a user who has read a row reads the next one, the *persistence*.

    Parameters
    ----------
    p : float, default=0.8
        The persistence, above 0 and below 1.
    rel : float, default=1
        The lowest label that is relevant.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. "average" is exact (McSherry and Najork, ECIR 2008).
    empty_query : {"skip", "skip_equal"} or float, default=0
        The value of a query without relevant rows. If "skip", such queries are left out; "skip_equal" also
        leaves out those whose labels are all equal.
    at : int, default=None
        The cutoff: only ranks 1, ..., ``at`` count. If None, all ranks count.

    References
    ----------
    Moffat and Zobel, *Rank-Biased Precision for Measurement of Retrieval Effectiveness*, TOIS 2008.

    Examples
    --------
    >>> from ranktrees.measures import RBP, as_measure
    >>> RBP(p=0.5)([1, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])  # 1/2 + 1/8
    0.625
    >>> as_measure("rbp(p=0.95)@10")
    RBP(p=0.95) @ 10
    """

    name = "RBP"
    defaults: ClassVar = {"p": 0.8, **_Binary.defaults}
    formula = ranking.Formula.DCG
    p: float

    def discounts_until(self, longest: int) -> np.ndarray:
        return (1.0 - self.p) * np.cumprod(np.append(1.0, np.full(max(longest - 1, 0), self.p)))[:longest]

    def swap_deltas(self, labels: np.ndarray, scores: np.ndarray) -> NDArray[np.float64]:
        return discounted_deltas(self, labels)


class _TopAUC(_Binary):
    """Area under the ROC curve of a query, between two counts of irrelevant rows from the top.

    TopAUC @ [a, b] = the mean, over the irrelevant rows number a + 1, ..., b from the top, of the share of
    relevant rows that are ranked above. If a query has fewer than b irrelevant rows, the mean is over those
    there are. This is the area under the ROC curve from the a-th to the b-th false positive, as a share of
    the largest possible area. TopAUC @ [0, n] with all n irrelevant rows is the AUC.

    Parameters
    ----------
    rel : float, default=1
        The lowest label that is relevant.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. "average" is exact: in a tie of m irrelevant rows, the relevant
        ones fall with equal probability into each of the m + 1 places before, between and after them.
    empty_query : {"skip", "skip_equal"} or float, default="skip"
        The value of a query without relevant rows, or with no more than a irrelevant rows. If "skip", such
        queries are left out; "skip_equal" also leaves out those whose labels are all equal.
    at : pair of int, default=None
        The counts [a, b]. If None, all irrelevant rows count, as with [0, all].

    References
    ----------
    McClish, *Analyzing a Portion of the ROC Curve*, Medical Decision Making 1989.

    Examples
    --------
    >>> from ranktrees.measures import TopAUC
    >>> (TopAUC @ [0, 2])([1, 0, 1, 0, 0], [0.5, 0.4, 0.3, 0.2, 0.1], qid=[7, 7, 7, 7, 7])  # (1/2 + 2/2) / 2
    0.75
    >>> TopAUC @ [0, 5]
    TopAUC @ [0, 5]
    """

    name = "TopAUC"
    defaults: ClassVar = {**_Binary.defaults, "empty_query": "skip"}
    formula = ranking.Formula.PAUC

    def _checked(self, name: str, value: Any) -> Any:
        return stretch(value) if name == "at" else super()._checked(name, value)

    def limits(self) -> tuple[int, int]:
        return self.at or (0, 0)


class _AUC(_Binary):
    """Area under the ROC curve of a query.

    AUC = (pairs with the relevant row above + 1/2 pairs with equal scores) / (all pairs of a relevant and an
    irrelevant row).

    Parameters
    ----------
    rel : float, default=1
        The lowest label that is relevant.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. With "average" a tied pair counts 1/2, with "worst" it counts 0.
    empty_query : {"skip", "skip_equal"} or float, default="skip"
        The value of a query that lacks relevant or irrelevant rows. If "skip", such queries are left out;
        "skip_equal" also leaves out those whose labels are all equal.

    References
    ----------
    Hanley and McNeil, *The Meaning and Use of the Area under a ROC Curve*, Radiology 1982.

    Examples
    --------
    >>> from ranktrees.measures import AUC
    >>> AUC([1, 0, 1], [0.3, 0.2, 0.1], qid=[7, 7, 7])
    0.5
    """

    name = "AUC"
    defaults: ClassVar = {"rel": 1, "ties": "average", "empty_query": "skip"}
    formula = ranking.Formula.PAUC

    survey = Preset(
        "As Mohan 2010, chapter 6: over all pairs of rows of any queries, with labels from 3 on relevant.",
        of=PooledAUC,
        rel=3,
    )

    def swap_deltas(self, labels: np.ndarray, scores: np.ndarray) -> NDArray[np.float64]:
        hits = self.gains_of(labels)
        place = np.arange(float(len(labels)))
        pairs = hits.sum() * (len(hits) - hits.sum())
        return (hits[:, None] - hits) * (place[:, None] - place) / max(pairs, 1.0)


AP, RR, Success, P, R, RPrecision, RBP = _AP(), _RR(), _Success(), _P(), _R(), _RPrecision(), _RBP()
AUC, TopAUC = _AUC(), _TopAUC()
