"""Pointwise objectives, which compare the score of a row with its own label."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ranktrees._core.objectives import losses
from ranktrees.objectives.base import NarrowLabels, Objective, number_in
from ranktrees.processes.sharing import ALL_ROWS

if TYPE_CHECKING:
    from ranktrees.objectives.base import PreparedObjective
    from ranktrees.processes.sharing import Share


class _Pointwise(NarrowLabels):
    """The base of prepared pointwise objectives: two kernels, and the parameters that they take."""

    def __init__(
        self,
        objective: Objective,
        labels: np.ndarray,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int,
        share: Share,
        kernels: tuple[Callable[..., Any], ...],
        parameters: tuple[Any, ...] = (),
    ) -> None:
        super().__init__(objective, labels, weights, offsets, n_threads, share)
        self._gradients, self._losses = kernels
        self._parameters = parameters
        self.one_hessian = objective.constant_hessian and weights is None

    def gradients(
        self, scores: np.ndarray, gradients: np.ndarray, hessians: np.ndarray, iteration: int = 0
    ) -> None:
        self._gradients(
            self.narrow_labels, self.weights, scores, *self._parameters, gradients, hessians, self.n_threads
        )

    def loss(self, scores: np.ndarray) -> float:
        rows = np.empty(len(self.narrow_labels))
        self._losses(self.narrow_labels, self.weights, scores, *self._parameters, rows, self.n_threads)
        return self._sum(rows) / self.total_weight

    def start(self) -> Any:
        return self.objective._start(self)


@dataclass(frozen=True)
class SquaredError(Objective):
    """Squared error: ``loss = (score - label)^2 / 2``, the objective of MART.

    The gradient is ``score - label`` and the hessian is 1. Training starts from the mean label.

    References
    ----------
    Friedman, *Greedy Function Approximation: A Gradient Boosting Machine*, Annals of Statistics 2001.
    Tyree et al., *Parallel Boosted Regression Trees for Web Search Ranking*, WWW 2011 (pGBRT).

    Examples
    --------
    >>> prepared = SquaredError().prepare(np.array([0.0, 1.0, 5.0]), None, np.array([0, 3]))
    >>> prepared.start()
    2.0
    >>> gradients, hessians = np.empty(3), np.empty(3)
    >>> prepared.gradients(np.full(3, 2.0), gradients, hessians)
    >>> gradients
    array([ 2.,  1., -3.])
    """

    name: ClassVar[str] = "squared_error"
    constant_hessian: ClassVar[bool] = True

    def prepare(
        self,
        labels: np.ndarray,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int = 1,
        share: Share = ALL_ROWS,
    ) -> PreparedObjective:
        kernels = losses.squared_gradients, losses.squared_losses
        return _Pointwise(self, labels, weights, offsets, n_threads, share, kernels)

    def _start(self, prepared: PreparedObjective) -> float:
        return prepared._weighted_mean(prepared.labels)


@dataclass(frozen=True)
class AbsoluteError(Objective):
    """Absolute error: ``loss = |score - label|``.

    The gradient is ``sign(score - label)`` and the hessian is 1. The value of a leaf is the median of its
    residuals (Friedman's LAD_TreeBoost), and training starts from the median label. With weights it is the
    weighted median. If a whole interval is best, its middle is taken.

    References
    ----------
    Friedman, *Greedy Function Approximation: A Gradient Boosting Machine*, Annals of Statistics 2001,
    section 4.3.

    Examples
    --------
    >>> AbsoluteError().prepare(np.array([0.0, 1.0, 5.0, 9.0]), None, np.array([0, 4])).start()
    3.0
    """

    name: ClassVar[str] = "absolute_error"
    constant_hessian: ClassVar[bool] = True

    @property
    def leaf_quantile(self) -> float:
        return 0.5

    def prepare(
        self,
        labels: np.ndarray,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int = 1,
        share: Share = ALL_ROWS,
    ) -> PreparedObjective:
        kernels = losses.sloped_gradients, losses.sloped_losses
        return _Pointwise(self, labels, weights, offsets, n_threads, share, kernels, (-1.0, 1.0))

    def _start(self, prepared: PreparedObjective) -> float:
        return _quantile(prepared, 0.5)


@dataclass(frozen=True)
class Quantile(Objective):
    """Pinball loss, which is smallest at a quantile of the label.

    With ``r = label - score``, the loss is ``quantile * r`` if ``r >= 0``, else ``(quantile - 1) * r``. The
    value of a leaf is that quantile of its residuals, found as in `AbsoluteError`, which is twice the loss of
    quantile 1/2.

    Parameters
    ----------
    quantile : float, default=0.5
        The quantile, in (0, 1).

    Raises
    ------
    ValueError
        If ``quantile`` is not in (0, 1).

    References
    ----------
    Koenker and Bassett, *Regression Quantiles*, Econometrica 1978.

    Examples
    --------
    >>> Quantile(0.9).prepare(np.arange(101.0), None, np.array([0, 101])).start()
    90.0
    """

    quantile: float = 0.5

    name: ClassVar[str] = "quantile"
    constant_hessian: ClassVar[bool] = True

    def __post_init__(self) -> None:
        number_in("quantile", self.quantile, 0, 1)

    @property
    def leaf_quantile(self) -> float:
        return float(self.quantile)

    def prepare(
        self,
        labels: np.ndarray,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int = 1,
        share: Share = ALL_ROWS,
    ) -> PreparedObjective:
        kernels = losses.sloped_gradients, losses.sloped_losses
        slopes = -float(self.quantile), 1.0 - float(self.quantile)
        return _Pointwise(self, labels, weights, offsets, n_threads, share, kernels, slopes)

    def _start(self, prepared: PreparedObjective) -> float:
        return _quantile(prepared, float(self.quantile))


def _quantile(prepared: PreparedObjective, quantile: float) -> float:
    rows, value = prepared.share.communicator.allgather((prepared.labels, prepared.weights)), np.empty(1)
    labels = np.concatenate([labels for labels, _ in rows])
    weights = None if prepared.weights is None else np.concatenate([weights for _, weights in rows])
    n, order = np.full(1, len(labels), np.int64), np.arange(len(labels), dtype=np.uint32)
    losses.leaf_quantiles(labels, weights, order, np.zeros(1, np.int64), n, quantile, value, 1)
    return float(value[0])


class _LogLink(Objective):
    """The base of objectives whose predictions are ``e^score``: training starts from the log of the mean."""

    def _start(self, prepared: PreparedObjective) -> float:
        mean = prepared._weighted_mean(prepared.labels)
        if not mean > 0:
            raise ValueError(
                f"y is 0 in every row of positive sample_weight: the {self.name} objective needs a positive "
                "label"
            )
        return losses.natural_log(mean)

    def inverse_link(self, scores: np.ndarray) -> np.ndarray:
        return _elementwise(losses.exponentials, scores)


@dataclass(frozen=True)
class Poisson(_LogLink):
    """Poisson regression for counts, with the log link: ``loss = e^score - label * score``.

    The gradient is ``e^score - label`` and the hessian is ``e^score``. Training starts from the logarithm of
    the mean label. The loss is half the Poisson deviance, without the terms that depend on the label only.
    Predictions are ``e^score``.

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

    def check_labels(self, labels: np.ndarray) -> None:
        if labels.min(initial=0.0) < 0:
            raise ValueError(
                f"y has the label {labels.min():g}, but the poisson objective learns counts: labels >= 0"
            )
        if not labels.any():
            raise ValueError(
                "y is 0 throughout, but the poisson objective needs a positive label: it starts from "
                "log(mean)"
            )

    def prepare(
        self,
        labels: np.ndarray,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int = 1,
        share: Share = ALL_ROWS,
    ) -> PreparedObjective:
        kernels = losses.poisson_gradients, losses.poisson_losses
        return _Pointwise(self, labels, weights, offsets, n_threads, share, kernels)


@dataclass(frozen=True)
class Gamma(_LogLink):
    """Gamma regression for positive amounts, with the log link: ``loss = label * e^-score + score``.

    The gradient is ``1 - label * e^-score`` and the hessian is ``label * e^-score``. Training starts from the
    logarithm of the mean label. The loss is half the gamma deviance, without the terms that depend on the
    label only: errors count in relation to the label. Predictions are ``e^score``.

    References
    ----------
    McCullagh and Nelder, *Generalized Linear Models*, 1989, chapter 8.

    Examples
    --------
    >>> prepared = Gamma().prepare(np.array([1.0, 3.0]), None, np.array([0, 2]))
    >>> Gamma().inverse_link(np.array([prepared.start()]))
    array([2.])
    >>> Gamma().check_labels(np.array([1.0, 0.0]))
    Traceback (most recent call last):
    ValueError: y has the label 0, but the gamma objective learns amounts: labels > 0
    """

    name: ClassVar[str] = "gamma"

    def check_labels(self, labels: np.ndarray) -> None:
        if not labels.min(initial=np.inf) > 0:
            raise ValueError(
                f"y has the label {labels.min():g}, but the gamma objective learns amounts: labels > 0"
            )

    def prepare(
        self,
        labels: np.ndarray,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int = 1,
        share: Share = ALL_ROWS,
    ) -> PreparedObjective:
        kernels = losses.gamma_gradients, losses.gamma_losses
        return _Pointwise(self, labels, weights, offsets, n_threads, share, kernels)


@dataclass(frozen=True)
class Logistic(Objective):
    """Cross entropy of a label that says whether a row is relevant or not, with the logit link.

    With ``p = 1 / (1 + e^-score)``, the loss is ``-a * label * log(p) - b * (1 - label) * log(1 - p)``, the
    gradient is ``b * (1 - label) * p - a * label * (1 - p)``, and the hessian is
    ``(a * label + b * (1 - label)) * p * (1 - p)``. Training starts from the log odds of the mean label, kept
    1e-9 away from 0 and 1. Predictions are ``p``.

    Parameters
    ----------
    balanced : bool, default=False
        If False, ``a = b = 1``. If True, the two classes weigh the same in total: ``a = W / (2 W+)`` and
        ``b = W / (2 W-)``, where ``W+`` is the weight of the relevant part of all rows, ``W-`` that of the
        rest and ``W`` that of both. Training then starts from 0. This is meant for collections in which few
        rows are relevant.

    References
    ----------
    Burges, *From RankNet to LambdaRank to LambdaMART: An Overview*, MSR-TR-2010-82, sections 6 and 6.1.

    Examples
    --------
    >>> labels = np.array([0.0, 0.0, 0.0, 1.0])
    >>> Logistic().prepare(labels, None, np.array([0, 4])).start()  # log(1 / 3)
    -1.0986...
    >>> Logistic(balanced=True).prepare(labels, None, np.array([0, 4])).start()
    0.0
    """

    balanced: bool = False

    name: ClassVar[str] = "logistic"

    def __post_init__(self) -> None:
        if not isinstance(self.balanced, (bool, np.bool_)):
            raise ValueError(f"balanced must be True or False, got {self.balanced!r}")

    def check_labels(self, labels: np.ndarray) -> None:
        low, high = labels.min(initial=0.0), labels.max(initial=0.0)
        if low < 0 or high > 1:
            raise ValueError(
                f"y has the label {low if low < 0 else high:g}, but the logistic objective learns labels "
                "from 0 (not relevant) to 1 (relevant): divide by the highest grade, or use y >= some grade"
            )
        if self.balanced and not (high > 0 and labels.min(initial=1.0) < 1):
            raise ValueError(f"y is {high:g} throughout: the balanced logistic objective needs both classes")

    def prepare(
        self,
        labels: np.ndarray,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int = 1,
        share: Share = ALL_ROWS,
    ) -> PreparedObjective:
        kernels = losses.logistic_gradients, losses.logistic_losses
        prepared = _Pointwise(self, labels, weights, offsets, n_threads, share, kernels, (1.0, 1.0))
        if self.balanced:
            positive, negative = (
                prepared._weighted_mean(prepared.labels),
                prepared._weighted_mean(1.0 - prepared.labels),
            )
            if not (positive > 0 and negative > 0):
                raise ValueError(
                    "y has one class only in the rows of positive sample_weight: the balanced logistic "
                    "objective needs both classes; add rows of the other"
                )
            prepared._parameters = 0.5 / positive, 0.5 / negative
        return prepared

    def _start(self, prepared: PreparedObjective) -> float:
        if self.balanced:
            return 0.0
        mean = min(max(prepared._weighted_mean(prepared.labels), 1e-9), 1.0 - 1e-9)
        return losses.natural_log(mean) - losses.natural_log(1.0 - mean)

    def inverse_link(self, scores: np.ndarray) -> np.ndarray:
        return _elementwise(losses.sigmoids, scores)


@dataclass(frozen=True)
class Softmax(Objective):
    r"""Cross entropy of several classes, each of which has a score of its own.

    With :math:`p_k = e^{s_k} / \sum_j e^{s_j}`, the loss of a row of class :math:`y` is
    :math:`-a_y \log p_y`. Its derivatives by the score of class :math:`k` are

    .. math:: g_k = a_y\, (p_k - [k = y]), \qquad h_k = \frac{K}{K - 1}\, a_y\, p_k (1 - p_k).

    A tree is grown for each class on its own, as if the other scores stayed where they are, although they
    move as well. The factor :math:`K / (K - 1)` of the hessian, where :math:`K` is the number of classes,
    makes up for it, as in Friedman's algorithm for :math:`K` classes: with two classes, the two steps
    together are the Newton step of `Logistic`. Training starts from the logarithms of the shares of the
    classes. Predictions are :math:`p_k`.

    Arrays of scores, gradients and hessians have the shape ``(n_classes, n_rows)``.

    Parameters
    ----------
    n_classes : int
        The number of classes, at least 2. Labels are the numbers 0, 1, ... of classes.
    balanced : bool, default=False
        If False, all :math:`a_k = 1`. If True, all classes weigh the same in total:
        :math:`a_k = W / (K W_k)`, where :math:`W_k` is the weight of the rows of class :math:`k`, and
        :math:`W` that of all rows.

    References
    ----------
    Friedman, *Greedy Function Approximation: A Gradient Boosting Machine*, Annals of Statistics 2001,
    section 4.6.

    Examples
    --------
    >>> prepared = Softmax(3).prepare(np.array([0.0, 1.0, 2.0, 2.0]), None, np.array([0, 4]))
    >>> scores = np.repeat(prepared.start()[:, None], 4, axis=1)
    >>> Softmax(3).inverse_link(scores)[:, 0]
    array([0.25, 0.25, 0.5 ])
    >>> gradients, hessians = np.empty((2, 3, 4))
    >>> prepared.gradients(scores, gradients, hessians)
    >>> gradients[2]
    array([ 0.5,  0.5, -0.5, -0.5])
    """

    n_classes: int
    balanced: bool = False

    name: ClassVar[str] = "softmax"

    def prepare(
        self,
        labels: np.ndarray,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int = 1,
        share: Share = ALL_ROWS,
    ) -> PreparedObjective:
        kernels = losses.class_gradients, losses.class_losses
        prepared = _Pointwise(
            self, labels, weights, offsets, n_threads, share, kernels, (np.ones(self.n_classes),)
        )
        if self.balanced:
            shares = self._shares(prepared)
            if not shares.all():
                raise ValueError(
                    "y lacks a class in the rows of positive sample_weight: balanced=True needs all of them; "
                    "add rows of it"
                )
            prepared._parameters = (1.0 / (self.n_classes * shares),)
        return prepared

    def _shares(self, prepared: PreparedObjective) -> np.ndarray:
        labels = prepared.labels
        return np.array([prepared._weighted_mean(np.equal(labels, k) * 1.0) for k in range(self.n_classes)])

    def _start(self, prepared: PreparedObjective) -> np.ndarray:
        if self.balanced:
            return np.zeros(self.n_classes)
        return np.array([losses.natural_log(max(share, 1e-9)) for share in self._shares(prepared).tolist()])

    def inverse_link(self, scores: np.ndarray) -> np.ndarray:
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        out = np.empty_like(scores)
        losses.class_probabilities(scores, out)
        return out


def _elementwise(kernel: Callable[..., Any], scores: np.ndarray) -> np.ndarray:
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    out = np.empty_like(scores)
    kernel(scores.reshape(-1), out.reshape(-1))
    return out
