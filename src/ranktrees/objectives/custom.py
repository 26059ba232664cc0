"""Objectives made from functions, and a check that gradients are the slope of a loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from ranktrees.measures.named import arguments_of, takes
from ranktrees.measures.rows import read_only
from ranktrees.objectives.base import Objective, PreparedObjective
from ranktrees.processes.sharing import ALL
from ranktrees.rows.values import as_seen

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ranktrees.processes.sharing import Share


class _Called(PreparedObjective):
    """Calls a function in each round, and checks what it returns."""

    def gradients(
        self, scores: np.ndarray, gradients: np.ndarray, hessians: np.ndarray, iteration: int = 0
    ) -> None:
        returned = self._call(self.objective.function, scores)
        name = self.objective.function_name
        if not (isinstance(returned, tuple | list) and len(returned) == 2):
            raise ValueError(
                f"{name} returned {type(returned).__name__}; expected two arrays, (gradients, hessians)"
            )
        for what, values, out in zip(("gradients", "hessians"), returned, (gradients, hessians), strict=True):
            values = _numbers(values, f"{name} returned {what}", "one number per row")
            if values.shape != scores.shape:
                raise ValueError(
                    f"{name} returned {what} of shape {values.shape}; expected {scores.shape}, one per row"
                )
            if not np.isfinite(values).all():
                row = int(np.argmin(np.isfinite(values)))
                raise ValueError(f"{name} returned {what} that are not finite: {values[row]} in row {row}")
            if what == "hessians" and values.min(initial=0.0) < 0:
                row = int(np.argmin(values))
                raise ValueError(
                    f"{name} returned the hessian {values[row]:g} in row {row}; expected numbers >= 0: where "
                    "the loss is concave, return a bound such as 1, or the absolute value"
                )
            out[:] = values if self.weights is None else self.weights * values

    def loss(self, scores: np.ndarray) -> float:
        if self.objective.loss is None:
            raise ValueError(
                f"{self.objective.function_name} gives gradients, but no loss to report or to use for early "
                "stopping: set scoring= to a measure such as 'ndcg@10', or pass Custom(function, loss=...) "
                "as the loss"
            )
        if not self.share.communicator.alone:
            raise ValueError(
                f"the loss of {self.objective.function_name} is one number for the rows of a rank, and "
                "ranks that train together cannot combine such numbers: set scoring= to a measure such as "
                "'ndcg@10'"
            )
        name, seen = _name(self.objective.loss), {}
        if _takes_weights(self.objective.loss):
            seen["weights"] = np.ones(len(scores)) if self.weights is None else self.weights
        elif self.weights is not None:
            raise ValueError(
                f"{name} is a loss of (labels, scores, offsets), but the rows have weights, which it does "
                "not receive: give it an argument weights, one number per row, or set scoring= to a measure "
                "such as 'ndcg@10'"
            )
        returned = self._call(self.objective.loss, scores, **seen)
        if (value := _numbers(returned, f"{name} returned", "one number")).shape:
            raise ValueError(f"{name} returned an array of shape {value.shape}; expected one number")
        return float(value)

    def _call(self, function: Callable[..., Any], scores: np.ndarray, **seen: Any) -> Any:
        arrays = [read_only(array) for array in (self.labels, scores, self.offsets, *seen.values())]
        return function(*arrays[:3], **dict(zip(seen, arrays[3:], strict=True)))


@dataclass(frozen=True)
class Custom(Objective):
    """An objective made from functions that see whole queries.

    Wherever an objective is expected, a function alone may be passed. It is taken as ``Custom(function)``.

    Parameters
    ----------
    function : callable
        ``function(labels, scores, offsets)`` returns ``(gradients, hessians)``: the first and second
        derivatives of the loss to minimise, with respect to the score of each row. Query q is the rows
        ``offsets[q]:offsets[q + 1]``. Queries come in the order in which they first appeared in the input,
        and the rows of a query keep their order. All three arguments are read-only, and both results are
        arrays of shape (n,), with hessians >= 0. The function is called once in each round, and sample
        weights are multiplied in afterwards. When ranks train together, each rank calls it with its own
        queries.
    loss : callable, default=None
        ``loss(labels, scores, offsets)`` returns the loss, up to a factor. It is called when the loss is
        reported or followed, and by `check_gradients`. If rows have weights, it must be a function of
        ``(labels, scores, offsets, weights)``. An argument of the name ``weights`` gets the weights, or ones
        if there are none.

    Raises
    ------
    ValueError
        During training, if a function returns anything else; the message says what it returned.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> def to_the_best(labels, scores, offsets):
    ...     "Each row's distance to the best label of its query, squared."
    ...     best = np.repeat(np.maximum.reduceat(labels, offsets[:-1]), np.diff(offsets))
    ...     return scores - (labels - best), np.ones(len(scores))
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> LambdaMARTRanker(to_the_best, random_state=0).fit(X, y, qid=qid).score(X, y, qid=qid) > 0.8
    True
    """

    function: Callable[..., Any]
    loss: Callable[..., Any] | None = None

    name: ClassVar[str] = "custom"

    def __post_init__(self) -> None:
        for parameter, needed in (("function", True), ("loss", False)):
            value = getattr(self, parameter)
            if not callable(value) and (needed or value is not None):
                raise ValueError(
                    f"{parameter} must be a function of (labels, scores, offsets), got {value!r}"
                )
            by_weights = not needed and value is not None and _takes_weights(value)
            if value is not None and not takes(partial(value, weights=None) if by_weights else value, 3):
                raise ValueError(
                    f"{parameter} must be a function of (labels, scores, offsets), got {_name(value)}"
                    f"{arguments_of(value)}; query q is the rows offsets[q]:offsets[q + 1]"
                )

    @property
    def function_name(self) -> str:
        """The name of the function in messages."""
        return _name(self.function)

    def prepare(
        self,
        labels: np.ndarray,
        weights: np.ndarray | None,
        offsets: np.ndarray,
        n_threads: int = 1,
        share: Share = ALL,
    ) -> PreparedObjective:
        return _Called(self, labels, weights, offsets, n_threads, share)


def _name(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", repr(function))


def _takes_weights(loss: Callable[..., Any]) -> bool:
    try:
        return "weights" in signature(loss).parameters
    except ValueError:  # the signature of some functions is not known
        return False


def _numbers(values: Any, what: str, expected: str) -> np.ndarray:
    try:
        numbers = np.asarray(values)
    except ValueError as error:  # nested lists of different lengths
        raise ValueError(f"{what} {as_seen(values)}; expected {expected}") from error
    if numbers.dtype.kind not in "biuf":
        seen = as_seen(values) + f" and dtype {numbers.dtype}" * (numbers.ndim > 0)
        raise ValueError(f"{what} {seen}; expected {expected}")
    return numbers.astype(np.float64, copy=False)


class GradientCheck(NamedTuple):
    """The errors of gradients and hessians against differences of the loss; see `check_gradients`."""

    scale: float
    gradient_error: float
    hessian_error: float


def check_gradients(
    objective: str | Objective | Callable[..., Any],
    labels: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
    scores: ArrayLike | None = None,
    rtol: float = 1e-4,
    step: float = 1e-4,
    random_state: int | np.random.RandomState | None = 0,
) -> GradientCheck:
    """Check that the gradients of an objective are the slope of its loss.

    The loss is evaluated at ``scores``, with one row after another moved up and down by ``step``. Losses are
    means while gradients are those of sums, so a common factor is allowed. It is fitted first.

    Parameters
    ----------
    objective : str, Objective or callable
        Anything that `as_objective` takes, with a loss.
    labels : array-like of shape (n,), default=None
        The labels of rows that are grouped by query. If None, a few queries with labels from 0 to 4 are
        drawn.
    offsets : array-like of shape (n_queries + 1,), default=None
        Query q is the rows ``offsets[q]:offsets[q + 1]``. If None and ``labels`` are given, all rows are one
        query.
    weights : array-like of shape (n,), default=None
        The weights of the rows.
    scores : array-like of shape (n,), default=None
        The scores at which to check. If None, they are drawn.
    rtol : float, default=1e-4
        The largest error that passes, as a share of the largest gradient.
    step : float, default=1e-4
        The distance by which a score is moved.
    random_state : int, RandomState or None, default=0
        The seed of everything that is drawn.

    Returns
    -------
    GradientCheck
        The fitted factor, ``scale``, and the largest errors of the gradients and of the hessians,
        ``gradient_error`` and ``hessian_error``, as shares of the largest gradient and hessian. The error of
        the hessians is only reported. They may be bounds or leave something out, which makes steps shorter or
        longer and is not wrong.

    Raises
    ------
    ValueError
        If a gradient differs; the message names the row that differs most. Also if the loss does not change
        with the scores. This is so for `LambdaMART`, whose gradients are those of a cost while the ranks stay
        as they are. The gradients of `XENDCG` are drawn at random, so they differ from its loss as well.
        `RankNet` and `GBRank` pass without weights, or with one weight for all rows of a query.

    Examples
    --------
    >>> check_gradients("logistic", [0.0, 1.0, 1.0]).gradient_error < 1e-6
    True
    >>> def wrong(labels, scores, offsets):
    ...     return labels - scores, np.ones(len(scores))
    >>> def loss(labels, scores, offsets):
    ...     return ((scores - labels) ** 2).sum()
    >>> check_gradients(Custom(wrong, loss))
    Traceback (most recent call last):
        ...
    ValueError: the gradients of wrong have the opposite sign of the slope of the loss: change their sign
    """
    from ranktrees.objectives import as_objective

    objective = as_objective(objective)
    name = getattr(objective, "function_name", objective.name)
    random = check_random_state(random_state)
    if labels is None:
        if offsets is not None:
            raise ValueError("offsets is given without labels: pass both, or neither")
        offsets = np.concatenate([[0], np.cumsum(random.randint(2, 9, 6))])
        labels = random.randint(0, 5, offsets[-1])
    labels = np.asarray(labels, dtype=np.float64)
    if labels.ndim != 1 or not len(labels) or not np.isfinite(labels).all():
        raise ValueError(f"labels has shape {labels.shape}; expected finite numbers, one per row")
    offsets = np.asarray([0, len(labels)] if offsets is None else offsets)
    whole = offsets.ndim == 1 and len(offsets) > 1 and offsets.dtype.kind in "iu"
    if not whole or offsets[0] != 0 or offsets[-1] != len(labels) or (np.diff(offsets) <= 0).any():
        raise ValueError(
            f"offsets is {offsets.tolist()}; expected whole numbers that rise from 0 to {len(labels)}, the "
            "number of labels: query q is the rows offsets[q]:offsets[q + 1]"
        )
    offsets = offsets.astype(np.int64)
    scores = np.array(random.normal(size=len(labels)) if scores is None else scores, dtype=np.float64)
    weights = None if weights is None else np.array(weights, dtype=np.float64)
    for argument, values, lowest in (("scores", scores, -np.inf), ("weights", weights, 0.0)):
        if values is None:
            continue
        if values.shape != labels.shape or not (np.isfinite(values) & (values >= lowest)).all():
            kind = "finite numbers" if argument == "scores" else "finite numbers >= 0"
            raise ValueError(
                f"{argument} has shape {values.shape}, or some entries that are not valid; expected {kind}, "
                f"one for each of the {len(labels)} labels"
            )
    objective.check_labels(labels)
    prepared = objective.prepare(labels, weights, offsets)
    gradients, hessians = np.empty(len(labels)), np.empty(len(labels))
    prepared.gradients(scores, gradients, hessians)
    here = prepared.loss(scores)
    moves = step * np.eye(len(labels))
    up, down = (np.array([prepared.loss(scores + sign * move) for move in moves]) for sign in (1, -1))
    slopes, bends = (up - down) / (2 * step), (up - 2 * here + down) / step**2
    if not slopes.any():
        raise ValueError(
            f"the loss of {name} does not change with the scores, so its gradients cannot be checked"
        )
    if not gradients.any():
        raise ValueError(f"the gradients of {name} are all 0, but the loss changes with the scores")
    scale = float(gradients @ slopes / (slopes @ slopes))
    if scale < 0:
        raise ValueError(
            f"the gradients of {name} have the opposite sign of the slope of the loss: change their sign"
        )
    errors = np.abs(gradients - scale * slopes) / np.abs(gradients).max()
    worst = int(np.argmax(errors))
    if not errors[worst] <= rtol:
        raise ValueError(
            f"the gradient of {name} in row {worst} is {gradients[worst]:.6g}, but the loss rises by "
            f"{scale * slopes[worst]:.6g} there (times {scale:.6g}, which fits best)"
        )
    largest = max(float(np.abs(hessians).max()), np.finfo(float).tiny)
    return GradientCheck(scale, float(errors[worst]), float(np.abs(hessians - scale * bends).max()) / largest)
