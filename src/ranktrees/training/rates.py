"""Schedules of the learning rate: from one rate for all rounds to a rate for each."""

from __future__ import annotations

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


def rates_of(schedule: Any, n_rounds: int) -> NDArray[np.float64]:
    """Return the learning rates of the first rounds.

    Parameters
    ----------
    schedule : callable or array-like
        A function of the number of a round, from 0, or the rates of at least so many rounds.
    n_rounds : int

    Returns
    -------
    rates : ndarray of float64, shape (n_rounds,)

    Raises
    ------
    ValueError
        If a rate is not a finite number above 0, or if there are too few.

    Examples
    --------
    >>> from ranktrees.training.rates import rates_of
    >>> rates_of(lambda i: 0.1 * 0.5**i, 3)
    array([0.1  , 0.05 , 0.025])
    """
    if callable(schedule):
        rates = [schedule(i) for i in range(n_rounds)]
    else:
        rates = list(in_order(schedule, "learning_rate"))
        if len(rates) < n_rounds:
            raise ValueError(
                f"learning_rate has {len(rates)} rates for {n_rounds} rounds; expected one for each: add "
                "the others, or pass a function of the number of the round, from 0."
            )
    for i, rate in enumerate(rates[:n_rounds]):
        if not (is_real(rate) and 0 < rate < np.inf):
            raise ValueError(
                f"learning_rate is {rate!r} in round {i}, counted from 0; expected a finite number above 0."
            )
    return np.array(rates[:n_rounds], np.float64)
