"""What a ranker learns from besides labels: preferences between rows, and positions at which rows were shown.

Pairs are given as numbers of rows of ``X``, and positions as one number per row. Both are checked here, once
the queries are known, and brought into internal order (see `ranktrees.rows`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from ranktrees.processes.communicator import ALONE
from ranktrees.rows.values import array_of, refuse_lazy
from ranktrees.support.numeric import unmasked

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["Feedback", "Preferences", "pairs_among", "preference_accuracy_score"]

HIGHEST_POSITION = 1 << 20


class GroupedRows(Protocol):
    """What is read of a `~ranktrees.rows.FitData`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def n_rows(self) -> int: ...

    @property
    def order(self) -> np.ndarray | None: ...

    @property
    def query_of_row(self) -> np.ndarray: ...

    def internal(self, values: np.ndarray) -> np.ndarray: ...


Data = TypeVar("Data", bound=GroupedRows)


@dataclass(frozen=True, slots=True, eq=False)
class Preferences:
    """Preferences between rows. Each pair of rows has one entry, which sums up all judgements of it.

    A judgement of weight w that the first of two rows is better with probability P costs P times what "the
    first is better" costs, and 1 - P times what "the second is better" costs. So two sums say everything
    about a pair. Neither the order of the judgements matters, nor which of the two rows comes first in them.

    Attributes
    ----------
    first, second : ndarray of shape (n_entries,), int64
        Numbers of rows in internal order, ``first < second``, sorted by both.
    for_first, for_second : ndarray of shape (n_entries,), float64
        The sum of ``w P`` and the sum of ``w (1 - P)`` over the judgements that put `first` first. Judgements
        that put `second` first are added the other way round.
    """

    first: np.ndarray
    second: np.ndarray
    for_first: np.ndarray
    for_second: np.ndarray

    def surplus(self, n_rows: int) -> np.ndarray:
        """Return what is said for each row less what is said against it: float64[n_rows]."""
        surplus = np.zeros(n_rows)
        for_first = self.for_first - self.for_second
        np.add.at(surplus, self.first, for_first)
        np.subtract.at(surplus, self.second, for_first)
        return surplus

    @classmethod
    def of(cls, pairs: np.ndarray, weights: np.ndarray, targets: np.ndarray) -> Self:
        """Sum up judgements, which have been checked already.

        Parameters
        ----------
        pairs : ndarray of shape (n_pairs, 2), int64
        weights, targets : ndarray of shape (n_pairs,), float64

        Returns
        -------
        Preferences

        Examples
        --------
        >>> import numpy as np
        >>> from ranktrees.rows import Preferences
        >>> judged = Preferences.of(np.array([[0, 1], [1, 0], [0, 1]]), np.ones(3), np.ones(3))
        >>> judged.first, judged.second, judged.for_first, judged.for_second
        (array([0]), array([1]), array([2.]), array([1.]))
        """
        reversed_pairs = pairs[:, 0] > pairs[:, 1]
        first, second = pairs.min(1), pairs.max(1)
        judged = weights * targets, weights * (1.0 - targets)
        for_first, for_second = np.where(reversed_pairs, judged[::-1], judged)
        order = np.lexsort((for_second, for_first, second, first))  # in a pair by value: one order of sums
        first, second = first[order], second[order]
        starts = np.flatnonzero(np.diff(first, prepend=-1) | np.diff(second, prepend=-1))
        sums = (np.add.reduceat(values[order], starts) for values in (for_first, for_second))
        return cls(first[starts], second[starts], *sums)

    def among(self, rows: np.ndarray, n_rows: int) -> Preferences:
        """Return the entries whose two rows are both among some rows.

        Parameters
        ----------
        rows : ndarray of int64
            Numbers of rows in internal order, ascending. Row ``rows[i]`` becomes row i.
        n_rows : int
            The number of rows before.

        Returns
        -------
        Preferences
        """
        number = np.full(n_rows, -1)
        number[rows] = np.arange(len(rows))
        first, second = number[self.first], number[self.second]
        kept = (first >= 0) & (second >= 0)
        return Preferences(first[kept], second[kept], self.for_first[kept], self.for_second[kept])

    @property
    def weight(self) -> float:
        """The sum of the weights of all judgements."""
        return math.fsum(self.for_first.tolist()) + math.fsum(self.for_second.tolist())

    def by_row(self, n_rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return each entry twice, from the side of either row, row by row (see preferences.pyx).

        Parameters
        ----------
        n_rows : int

        Returns
        -------
        starts : ndarray of shape (n_rows + 1,), int64
            The entries of row i are ``starts[i]:starts[i + 1]``.
        others : ndarray of shape (2 * n_entries,), int64
            The other row of each entry, ascending within a row.
        won, lost : ndarray of shape (2 * n_entries,), float64
            The sum that says that the row is the better one, and the sum that says that the other one is.
        """
        rows = np.concatenate([self.first, self.second])
        others = np.concatenate([self.second, self.first])
        order = np.lexsort((others, rows))
        starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_rows))]).astype(np.int64)
        won = np.concatenate([self.for_first, self.for_second])
        lost = np.concatenate([self.for_second, self.for_first])
        return starts, others[order], won[order], lost[order]

    def agreement(self, scores: np.ndarray) -> float:
        """Return the weighted share of judgements that scores agree with; see `preference_accuracy_score`."""
        above = np.sign(scores[self.first] - scores[self.second])
        right = self.for_first * (0.5 + 0.5 * above) + self.for_second * (0.5 - 0.5 * above)
        return math.fsum(right.tolist()) / self.weight


@dataclass(frozen=True, eq=False)
class Feedback:
    """What fit or score was given besides labels, as it was passed. ``suffix`` ends the arguments' names."""

    pairs: Any = None
    pair_weight: Any = None
    pair_target: Any = None
    position: Any = None
    suffix: str = ""

    def __post_init__(self) -> None:
        for name in ("pair_weight", "pair_target"):
            if self.pairs is None and getattr(self, name) is not None:
                raise ValueError(
                    f"{name}{self.suffix} is given, but no pairs{self.suffix}; expected one number per pair: "
                    f"pass pairs{self.suffix}, too."
                )

    @property
    def given(self) -> list[Any]:
        """The names of the arguments that were given."""
        names = ("pairs", "pair_weight", "pair_target", "position")
        return [name + self.suffix for name in names if getattr(self, name) is not None]

    def joined(self, data: Data) -> Data:
        """Check pairs and positions, and return the data with these added.

        Parameters
        ----------
        data : FitData

        Returns
        -------
        FitData

        Raises
        ------
        ValueError, TypeError
            If an argument is invalid. The message names it.
        """
        if self.pairs is not None:
            data = replace(data, preferences=self._preferences(data))
        if self.position is not None:
            data = replace(data, positions=self._positions(data))
        return data

    def _preferences(self, data: GroupedRows) -> Preferences:
        pairs, weights, targets = checked_pairs(
            self.pairs, self.pair_weight, self.pair_target, data.n_rows, self.suffix
        )
        number = np.arange(data.n_rows)
        if data.order is not None:
            number[data.order] = np.arange(data.n_rows)
        internal = number[pairs]
        query = data.query_of_row[internal]
        if (query[:, 0] != query[:, 1]).any():
            k = int(np.argmax(query[:, 0] != query[:, 1]))
            raise ValueError(
                f"pairs{self.suffix}[{k}] compares row {pairs[k, 0]} with row {pairs[k, 1]}, which belong to "
                "different queries; expected two rows of one query: drop such pairs, or leave the query ids "
                "out if all rows can be compared. (Pairs count the rows of the X with which they are "
                "passed: see pairs_among if that X is a part of another.)"
            )
        return Preferences.of(internal, weights, targets)

    def _positions(self, data: GroupedRows) -> np.ndarray | None:
        name = f"position{self.suffix}"
        expected = "expected the rank at which each row was shown, whole numbers from 1"
        refuse_lazy(self.position, name, "an array or a column")
        try:
            positions = array_of(unmasked(self.position))
        except ValueError as error:
            raise ValueError(f"{name} could not be turned into an array ({error}); {expected}.") from error
        if positions.shape != (data.n_rows,):
            raise ValueError(
                f"{name} has shape {positions.shape}; {expected}, one for each of the {data.n_rows} rows."
            )
        if positions.dtype.kind == "O":
            positions = np.array([np.nan if value is None else value for value in positions])
        if positions.dtype.kind not in "iuf":
            raise ValueError(f"{name} holds values of dtype {positions.dtype}; {expected}.")
        whole = (positions >= 1) & (positions <= HIGHEST_POSITION) & (positions == np.floor(positions))
        if not whole.all():
            row = int(np.argmin(whole))
            raise ValueError(
                f"{name} holds {positions[row]} in row {row}; {expected}, to {HIGHEST_POSITION} at most: "
                "drop rows that were not shown."
            )
        return data.internal(positions.astype(np.int64))


NOTHING = Feedback()


def checked_pairs(
    pairs: ArrayLike,
    pair_weight: ArrayLike | None,
    pair_target: ArrayLike | None,
    n_rows: int,
    suffix: str = "",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Check pairs of rows, their weights and their targets.

    Parameters
    ----------
    pairs : array-like of shape (n_pairs, 2)
    pair_weight, pair_target : array-like of shape (n_pairs,), or None
    n_rows : int
    suffix : str, default=""
        The end of the arguments' names.

    Returns
    -------
    pairs : ndarray of shape (n_pairs, 2), int64
    weights, targets : ndarray of shape (n_pairs,), float64

    Raises
    ------
    ValueError
        If anything is out of its range. The message names the argument.
    """
    name, expected = f"pairs{suffix}", "expected two rows of X in each line, the better one first"
    try:
        pairs = np.asarray(unmasked(pairs))
    except ValueError as error:
        raise ValueError(f"{name} could not be turned into an array ({error}); {expected}.") from error
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"{name} has shape {pairs.shape}; {expected}: shape (n_pairs, 2).")
    if len(pairs) == 0:
        raise ValueError(f"{name} is empty; {expected}, one pair at least.")
    if pairs.dtype.kind not in "iu":
        raise ValueError(f"{name} holds values of dtype {pairs.dtype}; {expected}, as whole numbers.")
    if (wrong := (pairs < 0) | (pairs >= n_rows)).any():
        k, side = np.unravel_index(np.argmax(wrong), pairs.shape)
        raise ValueError(
            f"{name}[{k}] names row {pairs[k, side]}, but X has the rows 0 to {n_rows - 1}; {expected}. "
            "scikit-learn's splitters cannot slice pairs: see pairs_among."
        )
    pairs = pairs.astype(np.int64)
    if (same := pairs[:, 0] == pairs[:, 1]).any():
        first = int(np.argmax(same))
        raise ValueError(
            f"{name}[{first}] compares row {pairs[first, 0]} with itself; {expected}: drop such pairs."
        )
    weights = _of_pairs(pair_weight, len(pairs), f"pair_weight{suffix}", "a finite weight >= 0", math.inf)
    targets = _of_pairs(
        pair_target,
        len(pairs),
        f"pair_target{suffix}",
        "the probability that the first row is better, from 0 to 1",
        1.0,
    )
    if not weights.any():
        raise ValueError(
            f"pair_weight{suffix}: every weight is zero; expected at least one above zero: leave it out."
        )
    if math.isinf(ALONE.exact_sum(weights)):
        raise ValueError(
            f"pair_weight{suffix} adds up to more than a float can hold; expected a finite sum: scale it to "
            "a smaller range."
        )
    return pairs, weights, targets


def _of_pairs(values: Any, n_pairs: int, name: str, what: str, high: float) -> np.ndarray:
    expected = f"expected {what}, for each of the {n_pairs} pairs"
    if values is None:
        return np.ones(n_pairs)
    try:
        numbers = np.asarray(unmasked(values), np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} could not be turned into numbers ({error}); {expected}.") from error
    if numbers.shape != (n_pairs,):
        raise ValueError(f"{name} has shape {numbers.shape}; {expected}: shape ({n_pairs},).")
    if not (good := (numbers >= 0) & (numbers <= high) & np.isfinite(numbers)).all():
        k = int(np.argmin(good))
        raise ValueError(f"{name} holds {numbers[k]:g} at pair {k}; {expected}.")
    return numbers


def pairs_among(pairs: ArrayLike, rows: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs whose two rows are both among some rows, by their numbers among those.

    Pairs refer to rows by their numbers in the ``X`` that they are passed with. If some of the rows are
    chosen, by a splitter or by hand, the pairs have to be adapted. scikit-learn's tools cannot do that, since
    they slice arrays with one value per row.

    Parameters
    ----------
    pairs : array-like of shape (n_pairs, 2), int
        Pairs of numbers of rows of the whole ``X``.
    rows : array-like of int, or of bool of shape (n_rows,)
        The rows that are chosen, none of them twice: ``X[rows]`` is what is left.

    Returns
    -------
    among : ndarray of shape (n_kept, 2), int64
        Pairs of numbers of rows of ``X[rows]``.
    kept : ndarray of shape (n_kept,), intp
        Which of the pairs these are. The weights that belong to them are ``pair_weight[kept]``.

    Raises
    ------
    ValueError
        If ``pairs`` has another shape, if a row is chosen twice, or if a number is below 0.

    Examples
    --------
    >>> from ranktrees.rows import pairs_among
    >>> pairs_among([[0, 1], [3, 2], [2, 0]], [2, 3, 5])
    (array([[1, 0]]), array([1]))
    """
    pairs, rows = np.asarray(pairs), np.asarray(rows)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            f"pairs has shape {pairs.shape} and dtype {pairs.dtype}; expected two rows of X in each line, as "
            "whole numbers."
        )
    if rows.dtype == bool:
        if len(pairs) and len(rows) <= pairs.max():
            raise ValueError(
                f"rows is a mask of {len(rows)} rows, but pairs names row {pairs.max()}; expected a mask of "
                "all rows of the X that the pairs belong to."
            )
        rows = np.flatnonzero(rows)
    if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in "iu") or len(np.unique(rows)) < len(rows):
        raise ValueError(
            f"rows has shape {rows.shape} and dtype {rows.dtype}; expected the chosen rows, each once, or a "
            "mask."
        )
    rows = rows.astype(np.intp)
    for name, numbers in (("pairs", pairs), ("rows", rows)):
        if numbers.min(initial=0) < 0:
            raise ValueError(f"{name} names row {numbers.min()}; expected rows counted from 0.")
    order = np.argsort(rows)
    places = np.searchsorted(rows, pairs, sorter=order)
    found = (
        rows[order[np.minimum(places, len(rows) - 1)]] == pairs if len(rows) else np.zeros(pairs.shape, bool)
    )
    kept = np.flatnonzero(found.all(1))
    return order[places[kept]], kept


def preference_accuracy_score(
    pairs: ArrayLike,
    y_score: ArrayLike,
    *,
    pair_weight: ArrayLike | None = None,
    pair_target: ArrayLike | None = None,
) -> float:
    r"""Return the share of judgements about pairs of rows with which scores agree.

    .. math:: \frac{\sum_k w_k \left(P_k\, [s_{i_k} > s_{j_k}] + (1 - P_k)\, [s_{i_k} < s_{j_k}]
              + \tfrac12 [s_{i_k} = s_{j_k}]\right)}{\sum_k w_k}

    Parameters
    ----------
    pairs : array-like of shape (n_pairs, 2), int
        Pairs of numbers of rows, the first preferred to the second.
    y_score : array-like of shape (n_rows,)
        The score of each row. Rows with higher scores rank first.
    pair_weight : array-like of shape (n_pairs,), default=None
        Weights :math:`w_k \ge 0` of the pairs. If None, it is 1 for each.
    pair_target : array-like of shape (n_pairs,), default=None
        The probabilities :math:`P_k` that the first row is better. If None, it is 1 for each.

    Returns
    -------
    float
        A number from 0 to 1; higher is better. If judgements contradict each other, or are less than certain,
        no scores reach 1.

    Raises
    ------
    ValueError
        For the same reasons as in `LambdaMARTRanker.fit`, as far as pairs are concerned.

    Examples
    --------
    >>> from ranktrees.rows import preference_accuracy_score
    >>> preference_accuracy_score([[1, 0], [1, 2]], [0.1, 0.5, 0.5])
    0.75
    """
    scores = np.asarray(unmasked(y_score), np.float64)
    if scores.ndim != 1 or not np.isfinite(scores).all():
        raise ValueError(
            f"y_score has shape {scores.shape}, or is not finite; expected one finite score per row."
        )
    return Preferences.of(*checked_pairs(pairs, pair_weight, pair_target, len(scores))).agreement(scores)
