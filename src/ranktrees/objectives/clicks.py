"""Clicks: pairs of a clicked and an unclicked row, corrected for the positions at which they were shown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees._core.objectives import losses
from ranktrees.support.listed import in_order

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class Clicked:
    """What prepared pairs of clicks have besides: each is divided by the propensities of its positions.

    It is a base in front of one that is `Pairwise`.

    Attributes
    ----------
    propensities : ndarray of shape (2, n_positions), float64
        The propensities of clicked rows and of the others, relative to the first position that has any; NaN
        for positions that have none.
    """

    objective: Any
    factors: Any
    learned: Any

    def __init__(self, *args: Any, positions: np.ndarray) -> None:
        super().__init__(*args)
        self.places = np.asarray(positions, np.int64) - 1
        n_positions, given = int(self.places.max(initial=0)) + 1, self.objective.propensities
        self.propensities = self.learned = np.full((2, n_positions), math.nan)
        if given is not None:
            if len(given) < n_positions:
                raise ValueError(
                    f"position goes up to {n_positions}, but there are {len(given)} propensities: give one "
                    "for each position"
                )
            self.propensities[:] = 1.0
            self.propensities[0] = np.divide(given[:n_positions], given[0])
        self.costs = np.zeros((2, len(self.places)))

    def gradients(
        self, scores: np.ndarray, gradients: np.ndarray, hessians: np.ndarray, iteration: int = 0
    ) -> None:
        factors = 1.0 / np.where(np.isnan(self.propensities), 1.0, self.propensities)
        self.factors = factors.take(self.places, axis=1)
        super().gradients(scores, gradients, hessians, iteration)  # type: ignore[misc]
        if self.objective.propensities is None:
            for propensities, costs in zip(self.propensities, self.costs, strict=True):
                self._learn(propensities, sums_in_any_order(self.places, costs, len(propensities)))

    def resume(self, clicked: np.ndarray, unclicked: np.ndarray) -> None:
        """Continue from the propensities that were learned before, for the positions that they cover."""
        if self.objective.propensities is None:
            for propensities, earlier in zip(self.propensities, (clicked, unclicked), strict=True):
                n = min(len(propensities), len(earlier))
                propensities[:n] = earlier[:n]

    def _learn(self, propensities: np.ndarray, sums: np.ndarray) -> None:
        known = np.flatnonzero(sums)
        if len(known):
            logs = [losses.natural_log(share) for share in sums[known] / sums[known[0]]]
            ratios = np.empty(len(known))
            losses.exponentials(np.array(logs) / (1.0 + self.objective.bias_norm), ratios)
            propensities[known] = ratios


def sums_in_any_order(groups: np.ndarray, values: np.ndarray, n_groups: int) -> np.ndarray:
    """Return the sums of values >= 0 by group, with the same bits whatever the order of the values.

    Values are rounded to steps. All values together have fewer than 2^53 steps, so every sum is exact.
    """
    bits = math.frexp(values.max(initial=0.0) * len(values))[1]
    step = math.ldexp(1.0, max(bits - 52, -1022))
    return step * np.bincount(groups, np.rint(values / step), n_groups)


def checked_propensities(propensities: ArrayLike) -> tuple[float, ...]:
    expected = "expected how often users examine each position, from the first on: finite numbers > 0"
    propensities = in_order(propensities, "propensities", first=1)
    try:
        values = np.asarray(propensities, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"propensities could not be turned into numbers ({error}); {expected}") from error
    if values.ndim == 1 and (unknown := np.isnan(values)).any():
        raise ValueError(
            f"propensities has NaN for position {int(unknown.argmax()) + 1}; {expected}. The propensities_ "
            "that a fit has estimated are NaN where no row was clicked: raise them and low ones to a floor, "
            "as in np.fmax(propensities_, 0.05)."
        )
    if values.ndim != 1 or not len(values) or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError(f"propensities={propensities!r}; {expected}")
    return tuple(values.tolist())
