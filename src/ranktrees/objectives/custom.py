"""Objectives made from functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ranktrees.measures.named import arguments_of, refuse_other_order, takes
from ranktrees.measures.rows import read_only
from ranktrees.objectives.base import Objective, PreparedObjective
from ranktrees.processes.sharing import ALL_ROWS
from ranktrees.rows.values import as_seen

if TYPE_CHECKING:
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
            if value is not None:
                refuse_other_order(value, "labels, scores, offsets")

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
        share: Share = ALL_ROWS,
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
        seen = as_seen(values) + (f" and dtype {numbers.dtype}" if numbers.ndim else "")
        raise ValueError(f"{what} {seen}; expected {expected}")
    return numbers.astype(np.float64, copy=False)
