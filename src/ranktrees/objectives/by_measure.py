"""Pairwise objectives that weigh a pair by the change of a measure when its two rows are swapped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ranktrees import measures
from ranktrees._core.objectives import lambdas
from ranktrees.measures.compiled import CompiledMeasure
from ranktrees.objectives.base import number_in
from ranktrees.objectives.clicks import Clicked
from ranktrees.objectives.pairwise import OfPairs, Pairs, Pairwise, order_of
from ranktrees.processes.sharing import ALL_ROWS
from ranktrees.rows.sampling import stream_of_objective
from ranktrees.support.cached import cached_property
from ranktrees.support.numeric import is_real, is_whole

if TYPE_CHECKING:
    from ranktrees.measures.base import PreparedMeasure
    from ranktrees.objectives.base import PreparedObjective
    from ranktrees.processes.sharing import Share

UNDECIDED_ORDERS = 16  # drawn for a query whose scores are all equal, if the expectation is not known


class _Measured(Pairwise):
    """Pairs that are weighed by how much a swap changes the measure."""

    @cached_property
    def measure(self) -> PreparedMeasure:
        """The measure of these rows, as a PreparedMeasure."""
        return self.objective.measure.prepare(
            self.labels, self.offsets, self.weights, self.n_threads, self.share.communicator
        )

    def loss(self, scores: np.ndarray) -> float:
        measure, mean = self.objective.measure, self.measure.mean(scores)
        if measure.name == "NDCG":
            return 1.0 - mean
        return -mean if measure.greater_is_better else mean


class _MeasuredByFormula(_Measured):
    """Deltas in closed form, from a grade of each row and a worth of each rank."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        measure = self.objective.measure
        self.at = self.longest if measure.parameters.get("at") is None else measure.at
        self.pairs = self._by_label(getattr(self, "_" + measure.name.lower())(measure))

    def _by_label(self, pairs: Pairs) -> Pairs:
        """The same grades in a table by query and label, if labels are few: equal ones have equal grades."""
        n_queries, n_labels = len(self.offsets) - 1, 1 + int(self.narrow_labels.max(initial=0))
        is_short = 2 * n_queries * n_labels <= len(self.narrow_labels)
        if self.narrow_labels.dtype != np.uint8 or pairs.worth is None or not is_short:
            return pairs
        table = np.zeros((n_queries, n_labels))
        table[np.repeat(np.arange(n_queries), np.diff(self.offsets)), self.narrow_labels] = pairs.grades
        return pairs._replace(grades=None, table=table)

    def _dcg(self, measure: Any) -> Pairs:
        grades = measure.gains_of(self.labels)
        discounts = measure.discounts_until(self.longest)
        if measure.name == "NDCG":
            ideals = np.empty(len(self.offsets) - 1)
            at = min(self.at, self.longest)
            lambdas.ideals(grades, self.offsets, discounts[:at], self._scratch, ideals, self.n_threads)
            if not np.isfinite(ideals).all():
                raise ValueError(
                    f"y has gains too large to add up: choose a smaller gain than that of {measure!r}"
                )
            grades = self._shared(grades, ideals)
        unit = lambdas.unit(discounts)
        worth = self._until_cutoff(self._by_place(discounts / unit))
        apart = self.objective._worth_of_distances(measure, self.longest)
        if apart is None:
            return Pairs(lambdas.Pairs.SWAPS, grades, worth, unit=unit)
        return Pairs(lambdas.Pairs.SWAPS_AND_GAPS, grades, worth, (apart / unit).astype(np.float32), unit)

    _ndcg = _rbp = _dcg

    def _p(self, measure: Any) -> Pairs:
        worth = self._by_place()
        worth[: self.at] = 1.0
        return Pairs(lambdas.Pairs.SWAPS, measure.gains_of(self.labels) / self.at, worth)

    def _r(self, measure: Any) -> Pairs:
        hits = measure.gains_of(self.labels)
        return self._p(measure)._replace(grades=self._shared(hits, self._sums(hits)))

    def _auc(self, measure: Any) -> Pairs:
        hits = measure.gains_of(self.labels)
        pairs = self._sums(hits) * self._sums(1.0 - hits)
        worth = self._by_place(np.arange(self.longest, 0.0, -1.0))
        return Pairs(lambdas.Pairs.SWAPS, self._shared(hits, pairs), worth)

    def _topauc(self, measure: Any) -> Pairs:
        low, high = measure.at or (0, 0)
        hits = measure.gains_of(self.labels)
        misses = self._sums(1.0 - hits)
        width = np.maximum((np.minimum(misses, high) if high else misses) - low, 0.0)
        grades = np.where(np.repeat(width, np.diff(self.offsets)) > 0, hits, 0.0)
        grades = self._shared(grades, self._sums(hits) * width)
        return Pairs(lambdas.Pairs.PAUC, grades, self._by_place(), limits=(low, high))

    def _pairaccuracy(self, measure: Any) -> Pairs:
        return Pairs(lambdas.Pairs.PAIR_ACCURACY, order_of(self.labels))

    def _kendalltau(self, measure: Any) -> Pairs:
        return Pairs(lambdas.Pairs.KENDALL_TAU, order_of(self.labels))

    def _ap(self, measure: Any) -> Pairs:
        hits = measure.gains_of(self.labels)
        return Pairs(lambdas.Pairs.AP, self._shared(hits, self._sums(hits)), self._reciprocal_ranks())

    def _rr(self, measure: Any) -> Pairs:
        return Pairs(lambdas.Pairs.RR, measure.gains_of(self.labels), self._reciprocal_ranks())

    def _success(self, measure: Any) -> Pairs:
        worth = self._by_place()
        worth[: self.at] = 1.0
        return Pairs(lambdas.Pairs.RR, measure.gains_of(self.labels), worth)

    def _err(self, measure: Any) -> Pairs:
        stopping = np.minimum(measure.gains_of(self.labels), 1.0 - 2.0**-53)  # 1 could not be divided out
        return Pairs(lambdas.Pairs.ERR, stopping, self._reciprocal_ranks())

    def _reciprocal_ranks(self) -> np.ndarray:
        return self._until_cutoff(self._by_place(1.0 / np.arange(1.0, self.longest + 1.0)))

    def _until_cutoff(self, worth: np.ndarray) -> np.ndarray:
        if self.objective.delta == "cut":
            worth[self.at :] = 0.0
        return worth

    def _sums(self, values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, self.offsets[:-1])

    def _shared(self, values: np.ndarray, of_queries: np.ndarray) -> np.ndarray:
        """The value of each row divided by that of its query, or the value itself if that is 0."""
        shares = np.repeat(np.where(of_queries == 0, 1.0, of_queries), np.diff(self.offsets))
        return np.divide(values, shares, out=shares)


class _MeasuredByClicks(Clicked, _MeasuredByFormula):
    pass


class _MeasuredBySwapping(_Measured):
    """Deltas of a measure that is evaluated in Python, query by query."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.grades = order_of(self.labels)
        self._given = lambdas.GivenPairs(self.objective, self._scratch)

    def gradients(
        self, scores: np.ndarray, gradients: np.ndarray, hessians: np.ndarray, iteration: int = 0
    ) -> None:
        labels = self.labels
        first_rows = self.offsets if self.share.first_rows is None else self.share.first_rows
        for (start, stop), first in zip(pairwise(self.offsets.tolist()), first_rows.tolist(), strict=False):
            rows = slice(start, stop)
            gradients[rows] = hessians[rows] = 0.0
            if (self.grades[rows] == self.grades[start]).all():
                continue
            undecided = (scores[rows] == scores[start]).all()
            deltas = self._deltas(first, scores[rows], labels[rows], undecided, iteration)
            unit = lambdas.unit(deltas.ravel())
            self._given.gradients(
                self.grades[rows],
                None if self.weights is None else self.weights[rows],
                scores[rows],
                (deltas / unit).astype(np.float32),
                unit,
                gradients[rows],
                hessians[rows],
            )

    def _deltas(
        self, first: int, scores: np.ndarray, labels: np.ndarray, undecided: np.ndarray, iteration: int
    ) -> np.ndarray:
        """The weights of the pairs, in rows of whole chunks: the mean over the orders that are drawn."""
        of, n = self.objective, len(scores)
        deltas = np.zeros((n, lambdas.whole_chunks(n)))
        drawn = undecided or of.noise > 0
        n_orders = max(of.n_orders, UNDECIDED_ORDERS if undecided else 1) if drawn else 1
        noise, keys = 1.0 if undecided else of.noise / of.sigma, scores
        for k in range(n_orders):
            if drawn:
                keys, number = np.empty(n), k * (self.share.n_rows or self.offsets[-1]) + first
                lambdas.noisy(scores, noise, of.seed, stream_of_objective(iteration), number, keys)
            swaps, order = np.abs(of.measure.deltas(labels, keys)), np.argsort(-keys, kind="stable")
            below = order[self.truncation :]
            swaps[np.ix_(below, below)] = 0.0
            deltas[:, :n] += swaps / n_orders
        return deltas


_FORMULAS = (
    *("DCG", "NDCG", "RBP", "ERR", "AP", "RR", "Success", "P", "R"),
    *("AUC", "TopAUC", "PairAccuracy", "KendallTau"),
)


@dataclass(frozen=True)
class LambdaMART(OfPairs):
    """LambdaMART: RankNet's gradient of a pair, times the change of a measure when the two rows swap ranks.

    The rows of a query are ranked by falling score, and tied rows in their given order. A pair counts if the
    labels differ and its better ranked row is among the ``truncation_level`` best. In the notation of
    `RankNet`, it adds ``-sigma * delta * rho`` to the gradient of the better row, ``sigma * delta * rho`` to
    that of the worse row, and ``sigma^2 * delta * rho * (1 - rho)`` to both hessians, where ``delta`` is the
    absolute change of the measure by the swap (`Measure.deltas`). With i ranked above j, ::

        DCG, NDCG,    |gain_i - gain_j| (discount_i - discount_j), over the ideal DCG @ k for NDCG
        RBP
        P, R          the same of relevant (1) or not (0), the discounts being 1 above the cutoff and
                      0 below; over k, or the number of relevant rows
        AUC           (j - i) over the number of pairs of a relevant and an irrelevant row
        ERR           |p_i - p_j| / (1 - p_i) * sum over r in i ... j - 1 of
                      reach_(r + 1) (1 / r - 1 / (r + 1)), with reach_r the probability that no row
                      above rank r stops the user: the quadratic algorithm
        AP, RR,       as ERR, a difference of two numbers that one walk down the ranking finds
        Success
        TopAUC        as AP
        PairAccuracy, the change of the number of pairs in the right order less those in the wrong order,
        KendallTau    counted along the ranking, over that of all pairs, or of both square roots for tau-b
        any other     by swapping every two rows and evaluating, unless the measure has a closed form; slow

    The sums of a row are multiplied by its weight. A query for which no swap changes the measure adds
    nothing. No loss has these derivatives everywhere. They are the derivatives of ``sum of delta * C`` over
    the pairs, with RankNet's cost C, while the ranks stay as they are. `PreparedObjective.loss` is 1 minus
    the mean NDCG, or minus the mean of another measure.

    If all scores of a query are equal, the query has no order yet, and all orders are taken to be equally
    likely. The expectation over them is exact for DCG, NDCG, RBP, P, R and AUC. For other measures it is the
    mean of 16 orders drawn at random.

    If the ``positions`` at which rows were shown are given, labels are clicks, and a pair of a clicked row at
    position k and an unclicked row at position m is divided by ``t+[k] t-[m]``. This is unbiased LambdaMART.
    Here t+ and t- say how much more a position is clicked, or not clicked, than the first. They are estimated
    after each round from the costs of the pairs at the scores s of that round, ::

        cost     delta * log(1 + e^(-sigma (s_clicked - s_unclicked)))
        t+[k]    (sum over pairs clicked at k of cost / t-[m], over the same at the first)^(1 / (1 + p))
        t-[m]    (sum over pairs not clicked at m of cost / t+[k], over the same at the first)^(1 / (1 + p))

    with ``p = bias_norm``. Both are 1 in the first round. The weight of a row multiplies its part of the
    sums. For queries whose scores are all equal, 16 orders are drawn at random, whatever the measure is.

    Parameters
    ----------
    measure : str, Measure or callable, default="ndcg@10"
        The measure to raise, with its cutoff, gains and so on. Its treatment of ties and empty queries plays
        no part.
    truncation_level : int or None, default=30
        The last rank that the better ranked row of a pair may have. If None, all pairs count, and a round
        takes time quadratic in the length of a query. Somewhat more than the cutoff of the measure works
        well.
    sigma : float, default=1.0
        The steepness of the logistic function. If scores start from a constant, and without regularisation,
        it changes the scale of the scores only (see `RankNet`), unless ``score_gap_norm`` is set or
        ``query_norm`` is "log".
    delta : {"full", "cut"}, default="full"
        With "full", the worth of ranks is that of the measure without its cutoff, so that rows below the
        cutoff are still pulled up, and the measure divides by the same number as with the cutoff. With "cut",
        deltas are the exact changes of the measure, and pairs with both rows below the cutoff do not count.
        This parameter matters for DCG, NDCG, ERR, AP and RR only. Other measures are always cut.
    score_gap_norm : float or None, default=None
        If a number c from 0.001 to 1000, delta is divided by ``c + |s_i - s_j|`` (unless all scores of the
        query are equal), so that pairs that are already far apart matter less. The step then depends on the
        scale of the scores. LightGBM has 0.01, by which pairs within a leaf matter most.
    query_norm : {"none", "log", "unit"}, default="none"
        "log" multiplies the gradients and hessians of a query by ``log2(1 + S) / S``, where ``S`` is the sum
        of ``|lambda|`` over the pairs of its rows (each pair counted for both rows), so that long queries and
        queries in disorder weigh less. "unit" multiplies them by ``1 / S``, so that all queries weigh the
        same. If labels are clicks, ``S`` is that without the division by ``t+ t-``, which it would cancel
        in sessions of few clicks.
    noise : float, default=0.0
        Rank by ``score + noise / sigma * log(u / (1 - u))``, with ``u`` drawn uniformly and anew for each row
        and round, which makes ranks stochastic and ties random. The pairs, their deltas and the truncation
        follow this order. The lambdas use the scores themselves. This is the idea behind YetiRank.
    n_orders : int, default=1
        The number of such orders over which to take the mean. A round takes as many times longer.
    seed : int, default=0
        The seed of the random numbers, which also depend on the round, the order and the row.
    bias_norm : float, default=0.25
        With positions, the p above, >= 0. The larger it is, the nearer to 1 are all t+ and t-.
    propensities : sequence of float, default=None
        With positions, the t+ of each position relative to the first, if they are known. Then t- is 1, and
        both stay as they are: inverse propensity weighting.

    Raises
    ------
    ValueError
        If a parameter is out of its range, if no swap can change the measure, or if positions are given and
        the measure is none of those named above.

    References
    ----------
    Wu, Burges, Svore and Gao, *Adapting Boosting for Information Retrieval Measures*, Inf. Retrieval 2010.
    Burges, *From RankNet to LambdaRank to LambdaMART: An Overview*, MSR-TR-2010-82, sections 4 and 7.
    Gulin, Kuralenok and Pavlov, *Winning the Transfer Learning Track of Yahoo!'s Learning to Rank Challenge
    with YetiRank*, JMLR W&CP 14, 2011.
    Hu, Wang, Peng and Li, *Unbiased LambdaMART: An Unbiased Pairwise Learning-to-Rank Algorithm*, WWW 2019.
    Joachims, Swaminathan and Schnabel, *Unbiased Learning-to-Rank with Biased Feedback*, WSDM 2017.

    Examples
    --------
    >>> objective = LambdaMART(measure="ndcg@5", truncation_level=10)
    >>> prepared = objective.prepare(np.array([0.0, 1.0]), None, np.array([0, 2]))
    >>> gradients, hessians = np.empty(2), np.empty(2)
    >>> prepared.gradients(np.zeros(2), gradients, hessians)
    >>> gradients.round(4)  # +- (1 - 1 / log2(3)) / 2
    array([ 0.1845, -0.1845])
    """

    measure: Any = "ndcg@10"
    truncation_level: int | None = 30
    sigma: float = 1.0
    delta: str = "full"
    score_gap_norm: float | None = None
    query_norm: str = "none"
    noise: float = 0.0
    n_orders: int = 1
    seed: int = 0
    bias_norm: float = 0.25
    propensities: Sequence[float] | None = None

    name: ClassVar[str] = "lambdamart"
    learns_from: ClassVar[tuple[str, ...]] = ("positions",)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "measure", measures.as_measure(self.measure))
        self._check_measure()
        number_in("sigma", self.sigma, 0, math.inf)
        if self.delta not in ("full", "cut"):
            raise ValueError(f"delta must be 'full' or 'cut', got {self.delta!r}")
        if self.noise != 0:
            number_in("noise", self.noise, 0, math.inf)
        for parameter, low in (("n_orders", 1), ("seed", 0)):
            value = getattr(self, parameter)
            if not is_whole(value, low):
                raise ValueError(f"{parameter} must be a whole number >= {low}, got {value!r}")
        if self.n_orders > 1 and not self.noise > 0:
            raise ValueError(
                f"n_orders={self.n_orders}, but noise=0 ranks by the scores themselves, in one order: set "
                "noise, for example to 1.0, or leave n_orders at 1"
            )

    def _check_measure(self) -> None:
        measure = self.measure
        if not measure.by_order:
            raise ValueError(
                f"measure={measure!r}: {self.name} optimises measures of the order of rows, but this one "
                "depends on the scores themselves; use HistGBRTRegressor for it"
            )
        if not measure.by_query:
            raise ValueError(
                f"measure={measure!r}: {self.name} learns from what swaps of two rows of a query change, but "
                "this measure is of the rows of all queries together; expected a mean over queries, such as "
                f"'auc': pass scoring={measure!r} to stop by this one"
            )
        if measure.name in ("P", "R", "Success") and measure.parameters.get("at", 1) is None:
            raise ValueError(
                f"measure={measure!r} is the same for every order of the rows: give it a cutoff, such as "
                f"{measure!r} @ 10"
            )

    def check_labels(self, labels: np.ndarray) -> None:
        lowest = self.measure.lowest_label
        if labels.min(initial=math.inf) < lowest:
            raise ValueError(
                f"y has the label {labels.min():g}, but {self.measure!r} is defined for labels >= "
                f"{lowest:g}; expected grades from {lowest:g} on: add a number to y, as in y - y.min(), or "
                "use another loss."
            )
        try:
            if isinstance(self.measure, CompiledMeasure):
                self.measure.gains_of(labels)
        except ValueError as error:
            raise ValueError(f"y cannot be ranked by {self.measure!r}: {error}") from error

    def prepare(
        self,
        labels: np.ndarray,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int = 1,
        share: Share = ALL_ROWS,
        positions: np.ndarray | None = None,
    ) -> PreparedObjective:
        known = isinstance(self.measure, CompiledMeasure) and self.measure.name in _FORMULAS
        if positions is not None:
            if not known:
                raise ValueError(
                    f"position is given, but swaps of measure={self.measure!r} are evaluated in Python, "
                    "without positions; use one of " + ", ".join(_FORMULAS)
                )
            return _MeasuredByClicks(self, labels, weights, offsets, n_threads, share, positions=positions)
        kind = _MeasuredByFormula if known else _MeasuredBySwapping
        return kind(self, labels, weights, offsets, n_threads, share)

    def _worth_of_distances(self, measure: Any, longest: int) -> np.ndarray | None:
        """What the kernel adds for the distance of two ranks: nothing."""
        return None


@dataclass(frozen=True)
class LambdaLoss(LambdaMART):
    """LambdaLoss, NDCG-Loss2++: LambdaMART for NDCG, with more weight on pairs of near ranks.

    It uses a bound on NDCG that is tighter than that of LambdaRank, and weighs a pair by how far apart its
    ranks are. In the notation of `LambdaMART`, with D(r) for the discount of rank r, ::

        delta = |gain_i - gain_j| / ideal DCG @ k * (|D(i) - D(j)| + mu * (D(|i - j|) - D(|i - j| + 1)))

    With mu = 0 it is LambdaMART, and with a large mu it is NDCG-Loss2. While the ranks stay as they are, the
    gradients are the derivatives of the sum of ``delta * log(1 + e^(-sigma (s_hi - s_lo)))``.

    Parameters
    ----------
    measure : str, Measure or callable, default="ndcg@10"
        NDCG or DCG, with its cutoff, gains and discounts.
    truncation_level, sigma, delta, score_gap_norm, query_norm, noise, n_orders, seed, bias_norm, propensities
        As in `LambdaMART`. Of the two terms, ``delta="cut"`` cuts the first.
    mu : float, default=10.0
        The weight of the second term, >= 0.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or if the measure is neither NDCG nor DCG.

    References
    ----------
    Wang, Li, Golbandi, Bendersky and Najork, *The LambdaLoss Framework for Ranking Metric Optimization*, CIKM
    2018, section 5 (mu = 10 in its experiments).

    Examples
    --------
    >>> prepared = LambdaLoss(mu=1.0).prepare(np.array([0.0, 1.0]), None, np.array([0, 2]))
    >>> gradients, hessians = np.empty(2), np.empty(2)
    >>> prepared.gradients(np.zeros(2), gradients, hessians)
    >>> gradients.round(4)  # +- twice (1 - 1 / log2(3)) / 2
    array([ 0.3691, -0.3691])
    """

    mu: float = 10.0

    name: ClassVar[str] = "lambdaloss"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_real(self.mu) and 0 <= self.mu < math.inf):
            raise ValueError(f"mu must be a finite number >= 0, got {self.mu!r}")

    def _check_measure(self) -> None:
        if self.measure.name not in ("NDCG", "DCG"):
            raise ValueError(
                f"measure={self.measure!r}: lambdaloss is a bound on NDCG and DCG; use one of them, or "
                "loss='lambdamart', which takes any measure"
            )

    def _worth_of_distances(self, measure: Any, longest: int) -> np.ndarray:
        discounts = measures.discounts(longest + 1, measure.discount)
        apart = np.zeros(2 * lambdas.LANES + lambdas.whole_chunks(longest) + 1)
        apart[2 * lambdas.LANES + 1 :][:longest] = self.mu * np.abs(np.diff(discounts))
        return apart
