"""Objectives: what training makes small. Start value, gradients and hessians.

Pointwise objectives compare a row's score with its own label (`SquaredError`, `AbsoluteError`, `Quantile`,
`Poisson`, `Logistic`); pairwise ones compare the rows of a query with each other (`RankNet`, `LambdaMART`).
An objective is a plain value:

>>> from ranktrees.objectives import as_objective
>>> as_objective("quantile", quantile=0.9)
Quantile(quantile=0.9)
>>> as_objective("lambdamart", measure="ndcg@5").truncation_level
30

The numbers that it hands to the trees come from kernels (``pyx/losses.pyx``, ``pyx/lambdas.pyx``) whose
results do not depend on the number of threads or on the processor.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np

from ranktrees import measures
from ranktrees._core import lambdas, losses

__all__ = [
    "AbsoluteError",
    "Bound",
    "LambdaMART",
    "Logistic",
    "Objective",
    "Poisson",
    "Quantile",
    "RankNet",
    "SquaredError",
    "as_objective",
]


def as_objective(objective, **parameters):
    """The objective of that name, or the objective itself.

    Parameters
    ----------
    objective : str or Objective
        ``"squared_error"``, ``"absolute_error"``, ``"quantile"``, ``"poisson"``, ``"logistic"``,
        ``"ranknet"`` or ``"lambdamart"``; or an objective, which is returned with the given parameters
        changed.
    **parameters
        Parameters of the objective.

    Returns
    -------
    Objective

    Raises
    ------
    ValueError
        If there is no such objective (the message lists those that exist), or a parameter is out of its
        range.
    TypeError
        If the objective has no such parameter (the message lists those it has).

    Examples
    --------
    >>> as_objective("squared_error")
    SquaredError()
    >>> as_objective("ranknet", sigma=2.0)
    RankNet(sigma=2.0, truncation_level=None)
    """
    if isinstance(objective, Objective):
        kind, known = (
            type(objective),
            {f.name: getattr(objective, f.name) for f in dataclasses.fields(objective)},
        )
    elif isinstance(objective, str) and objective in _BY_NAME:
        kind, known = _BY_NAME[objective], {}
    else:
        raise ValueError(
            f"objective must be an Objective or one of {', '.join(map(repr, _BY_NAME))}, got {objective!r}"
        )
    names = [f.name for f in dataclasses.fields(kind)]
    unknown = sorted(set(parameters) - set(names))
    if unknown:
        raise TypeError(
            f"objective {kind.name!r} has no parameter {', '.join(map(repr, unknown))}: "
            f"it has {', '.join(names) or 'none'}"
        )
    return kind(**{**known, **parameters})


class Objective:
    """What training makes small: the base of all objectives.

    The life of an objective:

    1. It is made, by `as_objective` or by its class: a frozen, picklable value that holds parameters only.
    2. `check_labels` says whether it can learn from these labels.
    3. `bind` joins it with the labels, weights and queries of one training set. The `Bound` that it returns
       has computed whatever does not change from round to round (gains, the ideal of each query, scratch).
    4. `Bound.start` gives the constant score that training starts from.
    5. Each round, `Bound.gradients` writes the first and second derivative of the loss by each row's score. A
       leaf of the next tree takes the Newton step ``-sum(gradients) / (sum(hessians) + l2)`` or, where
       `leaf_quantile` is a number, that quantile of ``label - score`` over its rows.
    6. `Bound.loss` is the mean loss, for a report or to stop early.
    7. After training, `inverse_link` turns scores into predictions.

    To write your own, derive a frozen dataclass from `Objective` and a class from `Bound`.

    Attributes
    ----------
    name : str
        What `as_objective` knows it by.
    constant_hessian : bool
        True if a row's hessian is its weight, whatever its score.
    """

    name: ClassVar[str]
    constant_hessian: ClassVar[bool] = False

    @property
    def leaf_quantile(self) -> float | None:
        """The quantile of a leaf's residuals that is its best value; None for the Newton step."""
        return None

    def check_labels(self, labels):
        """Raise if this objective cannot learn from these labels.

        Parameters
        ----------
        labels : ndarray of shape (n,), float64
            Finite labels.

        Raises
        ------
        ValueError
            Naming ``y``, what was seen and what is expected.
        """

    def bind(self, labels, weights, offsets, n_threads=1):
        """Join the objective with a training set.

        Parameters
        ----------
        labels : ndarray of shape (n,), float64
            Labels of the rows, grouped by query; see `check_labels`.
        weights : ndarray of shape (n,), float64, or None
            Weights >= 0 of the rows. None is 1 for each.
        offsets : ndarray of shape (n_queries + 1,), int64
            Query q is rows ``offsets[q]:offsets[q + 1]``. Pointwise objectives do not look at it.
        n_threads : int, default=1
            Threads to use; no result depends on it.

        Returns
        -------
        Bound
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define bind(labels, weights, offsets, n_threads)"
        )

    def inverse_link(self, scores):
        """Turn scores into predictions on the scale of the labels.

        Parameters
        ----------
        scores : ndarray, float64

        Returns
        -------
        ndarray of the same shape, float64
            The scores themselves, unless an objective says otherwise.
        """
        return scores


class Bound:
    """An objective joined with one training set; see `Objective` for its life.

    One `Bound` serves one caller at a time: it owns scratch memory.

    Parameters
    ----------
    objective : Objective
    labels, weights, offsets, n_threads
        As in `Objective.bind`.
    """

    def __init__(self, objective, labels, weights, offsets, n_threads=1):
        self.objective = objective
        self.labels = np.ascontiguousarray(labels, dtype=np.float64)
        self.weights = None if weights is None else np.ascontiguousarray(weights, dtype=np.float64)
        self.offsets = np.ascontiguousarray(offsets, dtype=np.int64)
        self.n_threads = n_threads
        self.total_weight = float(len(self.labels)) if weights is None else _exact_sum(self.weights)
        if not self.total_weight > 0:
            raise ValueError("sample_weight has no positive entry: at least one row must weigh something")

    def start(self):
        """The constant score that training starts from.

        Returns
        -------
        float
            The same bits whatever the order of the rows.
        """
        return 0.0

    def gradients(self, scores, gradients, hessians):
        """Write the first and second derivative of the loss by each row's score, times the row's weight.

        Parameters
        ----------
        scores : ndarray of shape (n,), float64
            Scores of the rows so far.
        gradients, hessians : ndarray of shape (n,), float64
            Written; hessians are >= 0.
        """
        raise NotImplementedError(f"{type(self).__name__} must define gradients(scores, gradients, hessians)")

    def loss(self, scores):
        """The mean loss at these scores.

        Parameters
        ----------
        scores : ndarray of shape (n,), float64

        Returns
        -------
        float
            The same bits whatever the order of the rows (pointwise) or of the queries (pairwise).
        """
        raise NotImplementedError(f"{type(self).__name__} must define loss(scores)")

    def _weighted_mean(self, values):
        return _exact_sum(values if self.weights is None else self.weights * values) / self.total_weight


def _exact_sum(values):
    return math.fsum(values.tolist())


def _number_in(name, value, low, high):
    if not (isinstance(value, Real) and not isinstance(value, bool) and low < value < high):
        raise ValueError(f"{name} must be a number between {low} and {high} (both excluded), got {value!r}")


# ---- pointwise: a row's score against its own label --------------------------------------------------------


class _Pointwise(Bound):
    """What the pointwise objectives share: two kernels, and the parameters that these take."""

    def __init__(self, objective, labels, weights, offsets, n_threads, kernels, parameters=()):
        super().__init__(objective, labels, weights, offsets, n_threads)
        self._gradients, self._losses = kernels
        self._parameters = parameters

    def gradients(self, scores, gradients, hessians):
        self._gradients(
            self.labels, self.weights, scores, *self._parameters, gradients, hessians, self.n_threads
        )

    def loss(self, scores):
        rows = np.empty(len(self.labels))
        self._losses(self.labels, self.weights, scores, *self._parameters, rows, self.n_threads)
        return _exact_sum(rows) / self.total_weight

    def start(self):
        return self.objective._start(self)


@dataclass(frozen=True)
class SquaredError(Objective):
    """Squared error: ``loss = (score - label)^2 / 2``, the objective of MART.

    gradient ``score - label``, hessian 1; training starts from the mean label.

    References
    ----------
    Friedman, *Greedy Function Approximation: A Gradient Boosting Machine*, Annals of Statistics 2001.
    Tyree et al., *Parallel Boosted Regression Trees for Web Search Ranking*, WWW 2011 (pGBRT).

    Examples
    --------
    >>> bound = SquaredError().bind(np.array([0.0, 1.0, 5.0]), None, np.array([0, 3]))
    >>> bound.start()
    2.0
    >>> gradients, hessians = np.empty(3), np.empty(3)
    >>> bound.gradients(np.full(3, 2.0), gradients, hessians)
    >>> gradients
    array([ 2.,  1., -3.])
    """

    name: ClassVar[str] = "squared_error"
    constant_hessian: ClassVar[bool] = True

    def bind(self, labels, weights, offsets, n_threads=1):
        kernels = losses.squared_gradients, losses.squared_losses
        return _Pointwise(self, labels, weights, offsets, n_threads, kernels)

    def _start(self, bound):
        return bound._weighted_mean(bound.labels)


@dataclass(frozen=True)
class AbsoluteError(Objective):
    """Absolute error: ``loss = |score - label|``.

    gradient ``sign(score - label)``, hessian 1; a leaf's value is the median of its residuals (Friedman's
    LAD_TreeBoost) and training starts from the median label. With weights it is the weighted median; where a
    whole interval is best, its middle.

    References
    ----------
    Friedman, *Greedy Function Approximation: A Gradient Boosting Machine*, Annals of Statistics 2001,
    section 4.3.

    Examples
    --------
    >>> AbsoluteError().bind(np.array([0.0, 1.0, 5.0, 9.0]), None, np.array([0, 4])).start()
    3.0
    """

    name: ClassVar[str] = "absolute_error"
    constant_hessian: ClassVar[bool] = True

    @property
    def leaf_quantile(self):
        return 0.5

    def bind(self, labels, weights, offsets, n_threads=1):
        kernels = losses.sloped_gradients, losses.sloped_losses
        return _Pointwise(self, labels, weights, offsets, n_threads, kernels, (-1.0, 1.0))

    def _start(self, bound):
        return _quantile(bound, 0.5)


@dataclass(frozen=True)
class Quantile(Objective):
    """Pinball loss, smallest at a quantile of the label.

    With ``r = label - score``: ``loss = quantile * r`` where ``r >= 0``, else ``(quantile - 1) * r``. A
    leaf's value is that quantile of its residuals, as in `AbsoluteError`, which is twice the loss of quantile
    1/2.

    Parameters
    ----------
    quantile : float, default=0.5
        In (0, 1).

    Raises
    ------
    ValueError
        If ``quantile`` is not in (0, 1).

    References
    ----------
    Koenker and Bassett, *Regression Quantiles*, Econometrica 1978.

    Examples
    --------
    >>> Quantile(0.9).bind(np.arange(101.0), None, np.array([0, 101])).start()
    90.0
    """

    quantile: float = 0.5

    name: ClassVar[str] = "quantile"
    constant_hessian: ClassVar[bool] = True

    def __post_init__(self):
        _number_in("quantile", self.quantile, 0, 1)

    @property
    def leaf_quantile(self):
        return float(self.quantile)

    def bind(self, labels, weights, offsets, n_threads=1):
        kernels = losses.sloped_gradients, losses.sloped_losses
        slopes = -float(self.quantile), 1.0 - float(self.quantile)
        return _Pointwise(self, labels, weights, offsets, n_threads, kernels, slopes)

    def _start(self, bound):
        return _quantile(bound, float(self.quantile))


def _quantile(bound, quantile):
    n, value = len(bound.labels), np.empty(1)
    rows = np.arange(n, dtype=np.uint32)
    losses.leaf_quantiles(
        bound.labels, bound.weights, rows, np.zeros(1, np.int64), np.full(1, n, np.int64), quantile, value, 1
    )
    return float(value[0])


@dataclass(frozen=True)
class Poisson(Objective):
    """Poisson regression for counts, with the log link: ``loss = e^score - label * score``.

    gradient ``e^score - label``, hessian ``e^score``; training starts from the logarithm of the mean label.
    The loss is half the Poisson deviance less what depends on the label only. Predictions are ``e^score``.

    References
    ----------
    McCullagh and Nelder, *Generalized Linear Models*, 1989, chapter 6.

    Examples
    --------
    >>> Poisson().inverse_link(np.array([0.0]))
    array([1.])
    >>> Poisson().check_labels(np.array([1.0, -2.0]))
    Traceback (most recent call last):
    ValueError: y has the label -2, but the poisson objective learns counts: labels >= 0
    """

    name: ClassVar[str] = "poisson"

    def check_labels(self, labels):
        if labels.min(initial=0.0) < 0:
            raise ValueError(
                f"y has the label {labels.min():g}, but the poisson objective learns counts: labels >= 0"
            )
        if not labels.any():
            raise ValueError(
                "y is 0 throughout, but the poisson objective needs a positive label: its start is log(mean)"
            )

    def bind(self, labels, weights, offsets, n_threads=1):
        kernels = losses.poisson_gradients, losses.poisson_losses
        return _Pointwise(self, labels, weights, offsets, n_threads, kernels)

    def _start(self, bound):
        mean = bound._weighted_mean(bound.labels)
        if not mean > 0:
            raise ValueError(
                "y is 0 in every row of positive sample_weight: the poisson objective needs a positive label"
            )
        return losses.natural_log(mean)

    def inverse_link(self, scores):
        return _elementwise(losses.exponentials, scores)


@dataclass(frozen=True)
class Logistic(Objective):
    """Cross entropy of a relevant / not relevant label, with the logit link.

    With ``p = 1 / (1 + e^-score)``: ``loss = -a * label * log(p) - b * (1 - label) * log(1 - p)``, gradient
    ``b * (1 - label) * p - a * label * (1 - p)``, hessian ``(a * label + b * (1 - label)) * p * (1 - p)``.
    Training starts from the log odds (of the mean label, kept 1e-9 away from 0 and 1). Predictions are ``p``.

    Parameters
    ----------
    balanced : bool, default=False
        False: ``a = b = 1``. True: the two classes weigh the same in total, ``a = W / (2 W+)`` and
        ``b = W / (2 W-)``, where ``W+`` is the weight of the relevant part of all rows, ``W-`` of the rest
        and ``W`` of both; training then starts from 0. For collections in which few rows are relevant.

    References
    ----------
    Burges, *From RankNet to LambdaRank to LambdaMART: An Overview*, MSR-TR-2010-82, sections 6 and 6.1.

    Examples
    --------
    >>> labels = np.array([0.0, 0.0, 0.0, 1.0])
    >>> Logistic().bind(labels, None, np.array([0, 4])).start()  # log(1 / 3)
    -1.0986...
    >>> Logistic(balanced=True).bind(labels, None, np.array([0, 4])).start()
    0.0
    """

    balanced: bool = False

    name: ClassVar[str] = "logistic"

    def __post_init__(self):
        if not isinstance(self.balanced, (bool, np.bool_)):
            raise ValueError(f"balanced must be True or False, got {self.balanced!r}")

    def check_labels(self, labels):
        low, high = labels.min(initial=0.0), labels.max(initial=0.0)
        if low < 0 or high > 1:
            raise ValueError(
                f"y has the label {low if low < 0 else high:g}, but the logistic objective learns labels "
                "from 0 (not relevant) to 1 (relevant): divide by the highest grade, or use y >= some grade"
            )
        if self.balanced and not (high > 0 and labels.min(initial=1.0) < 1):
            raise ValueError(f"y is {high:g} throughout: the balanced logistic objective needs both classes")

    def bind(self, labels, weights, offsets, n_threads=1):
        kernels = losses.logistic_gradients, losses.logistic_losses
        bound = _Pointwise(self, labels, weights, offsets, n_threads, kernels, (1.0, 1.0))
        if self.balanced:
            positive, negative = bound._weighted_mean(bound.labels), bound._weighted_mean(1.0 - bound.labels)
            if not (positive > 0 and negative > 0):
                raise ValueError(
                    "y has one class only in the rows of positive sample_weight: "
                    "the balanced logistic objective needs both"
                )
            bound._parameters = 0.5 / positive, 0.5 / negative
        return bound

    def _start(self, bound):
        if self.balanced:
            return 0.0
        mean = min(max(bound._weighted_mean(bound.labels), 1e-9), 1.0 - 1e-9)
        return losses.natural_log(mean) - losses.natural_log(1.0 - mean)

    def inverse_link(self, scores):
        return _elementwise(losses.sigmoids, scores)


def _elementwise(kernel, scores):
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    out = np.empty_like(scores)
    kernel(scores.reshape(-1), out.reshape(-1))
    return out


# ---- pairwise: the rows of a query against each other ------------------------------------------------------


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
        total = _exact_sum(counts)
        return _exact_sum(costs) / total if total > 0 else math.nan


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
    _number_in("sigma", sigma, 0, math.inf)
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


_BY_NAME = {
    kind.name: kind
    for kind in (SquaredError, AbsoluteError, Quantile, Poisson, Logistic, RankNet, LambdaMART)
}
