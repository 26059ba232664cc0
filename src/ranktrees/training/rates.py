"""Schedules of the learning rate: from one rate for all rounds to a rate for each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ranktrees.support.listed import in_order
from ranktrees.support.numeric import is_real

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

Rates: TypeAlias = "float | Sequence[float] | ArrayLike | Callable[[int], float] | None"


def is_schedule(learning_rate: Any) -> bool:
    """Whether each round has a rate of its own."""
    return learning_rate is not None and not isinstance(learning_rate, Real)


def rate_by(learning_rate: Any) -> Callable[[int], float]:
    """Return the learning rate as a function of the number of the round, from 0.

    Parameters
    ----------
    learning_rate : float, array-like or callable
        One rate, those of the rounds, or a function of the number of a round.

    Returns
    -------
    callable
        It raises a ValueError if the rate of a round is not a finite number above 0, or if there is none.

    Raises
    ------
    ValueError
        If a rate of a list is not a finite number above 0.

    Examples
    --------
    >>> from ranktrees.training.rates import rate_by
    >>> rate_by(0.1)(7), rate_by([0.2, 0.1])(1), rate_by(lambda i: 0.5**i)(2)
    (0.1, 0.1, 0.25)
    """
    if not is_schedule(learning_rate):
        return lambda i: learning_rate
    if callable(learning_rate):
        return lambda i: _checked(learning_rate(i), i)
    rates = [_checked(rate, i) for i, rate in enumerate(in_order(learning_rate, "learning_rate"))]

    def of_round(i: int) -> float:
        if i >= len(rates):
            raise ValueError(
                f"learning_rate has {len(rates)} rates, but there are more rounds; expected one for each: "
                "add the others, or pass a function of the number of the round, from 0."
            )
        return rates[i]

    return of_round


def rates_of(learning_rate: Any, n_rounds: int) -> float | NDArray[np.float64]:
    """Return one rate as it is, or the rates of so many rounds."""
    if not is_schedule(learning_rate):
        return learning_rate
    return np.array(list(map(rate_by(learning_rate), range(n_rounds))), np.float64)


def _checked(rate: Any, i: int) -> float:
    if not (is_real(rate) and 0 < rate < math.inf):
        raise ValueError(
            f"learning_rate is {rate!r} in round {i}, counted from 0; expected a finite number above 0."
        )
    return float(rate)
