"""The parameters of measures: which values each may have, and how it is typed."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from ranktrees._core.measures import ranking
from ranktrees.support.listed import in_order
from ranktrees.support.numeric import is_real, is_whole

MOST_RANKS = 2**31 - 1

Ties: TypeAlias = Literal["average", "worst", "input", "reverse"]


def _table(name: str, names: Collection[str], first: int) -> Callable[[Any], Any]:
    """A check for a parameter: one of ``names``, a table of numbers >= 0 from ``first`` on, or a function."""

    def check(value: Any) -> Any:
        if callable(value) or (isinstance(value, str) and value in names):
            return value
        value = in_order(value, name, first)
        try:
            table = tuple(map(float, value)) if not isinstance(value, str) else ()
        except TypeError:
            table = ()
        if not table or not all(math.isfinite(entry) and entry >= 0 for entry in table):
            raise ValueError(
                f"{name} must be one of {', '.join(map(repr, names))}, a sequence of finite numbers >= 0 "
                f"or a function, got {value!r}"
            )
        return table

    return check


_gain = _table("gain", ("exp2", "linear"), first=0)
_read_discount = _table("discount", ("log2", "letor"), first=1)


def _discount(value: Any) -> Any:
    value = _read_discount(value)
    if isinstance(value, tuple):
        refuse_rises(value)
    return value


def refuse_rises(discounts: Sequence[float] | np.ndarray) -> None:
    """Raise if a rank is worth more than the one above it: the best order would not be that of the gains."""
    rises = np.flatnonzero(np.diff(discounts) > 0)
    if len(rises):
        rank = int(rises[0]) + 1
        raise ValueError(
            f"discount must not increase with the rank, but that of rank {rank + 1} is {discounts[rank]:g} "
            f"and that of rank {rank} is {discounts[rank - 1]:g}"
        )


def _ties(value: Any) -> str:
    names = [tie.name.lower() for tie in ranking.Ties]
    if value not in names:
        raise ValueError(f"ties must be one of {', '.join(map(repr, names))}, got {value!r}")
    return value


def _empty_query(value: Any) -> str | float:
    if isinstance(value, str) and value in ("skip", "skip_equal"):
        return value
    if is_real(value) and math.isfinite(value):
        return plain(value)
    raise ValueError(
        "empty_query must be 'skip', 'skip_equal' or the value of a query on which the measure is not "
        f"defined, usually 0, 0.5 or 1, got {value!r}"
    )


def _finite(name: str, meaning: str) -> Callable[[Any], float]:
    """A check for a parameter that is any finite number."""

    def check(value: Any) -> float:
        if is_real(value) and math.isfinite(value):
            return plain(value)
        raise ValueError(f"{name} must be {meaning}, a finite number, got {value!r}")

    return check


def _persistence(value: Any) -> float:
    if is_real(value) and 0 < value < 1:
        return float(value)
    raise ValueError(
        f"p must be the probability that a user reads the next row, above 0 and below 1, got {value!r}"
    )


def _max_grade(value: Any) -> float:
    if is_real(value) and 0 < value <= 1000:
        return plain(value)
    raise ValueError(f"max_grade must be the highest possible label, a number in (0, 1000], got {value!r}")


def _cutoff(value: Any) -> int | None:
    if value is None:
        return None
    if is_whole(value, 1, MOST_RANKS):
        return operator.index(value)
    raise ValueError(f"a measure is cut off at a whole number of ranks from 1 to {MOST_RANKS}, got {value!r}")


def _pair(value: Any) -> Any:
    return value if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2 else (0, 0)


def percentages(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    low, high = _pair(value)
    if is_real(low) and is_real(high) and 0 <= low < high <= 100:
        return plain(low), plain(high)
    raise ValueError(
        "PooledAUC is taken between two false-positive rates in percent, PooledAUC @ [a, b] with 0 <= a < b "
        f"<= 100, got {value!r}"
    )


def stretch(value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    low, high = _pair(value)
    if is_whole(low, 0) and is_whole(high, 1, MOST_RANKS) and low < high:
        return operator.index(low), operator.index(high)
    raise ValueError(
        "TopAUC is taken between two counts of irrelevant rows, TopAUC @ [a, b] with 0 <= a < b <= "
        f"{MOST_RANKS}, got {value!r}"
    )


def plain(number: Any) -> float:
    return int(number) if number == int(number) else float(number)


CHECKS: dict[str, Callable[[Any], Any]] = {
    "gain": _gain,
    "discount": _discount,
    "ties": _ties,
    "empty_query": _empty_query,
    "rel": _finite("rel", "the lowest relevant label"),
    "threshold": _finite("threshold", "the highest score of a row that is taken for irrelevant"),
    "max_grade": _max_grade,
    "p": _persistence,
    "at": _cutoff,
}


def typed(value: Any) -> str:
    """Return a parameter as it is typed."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return "[" + ", ".join(typed(entry) for entry in value) + "]"
    if isinstance(value, float):
        return repr(plain(value))
    return getattr(value, "__name__", repr(value)) if callable(value) else repr(value)
