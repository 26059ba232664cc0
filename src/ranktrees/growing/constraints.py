"""Restrict splits: the features that a leaf may use, the direction of predictions, and where NaN goes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees._core.rows import sampling
from ranktrees.processes.communicator import ALONE
from ranktrees.rows import OrderedLevels
from ranktrees.rows.features import by_feature, chosen_features, index_of, keys_of, names_of

if TYPE_CHECKING:
    from ranktrees.binning.mapper import BinMapper
    from ranktrees.processes.communicator import Communicator


class Constraints:
    """Candidate features per leaf and monotone signs, for one fit.

    Parameters
    ----------
    usable : ndarray of int32
        The features that splits may use, in ascending order.
    n_features : int
    monotone : ndarray of int8, shape (n_features,), or None
        1: predictions rise with the feature, -1: they fall with it, 0: no constraint.
    interactions : list of sets of int, or None
        If given, each branch uses features of a single set.
    missing : {"learned", "left", "right", "three_way"}
        Where a split may send rows without a value; see `ranktrees.HistGBRTRegressor`.
    max_features : int or None
        The number of features that each split considers. As long as none of them gives a split, it considers
        as many more, as in scikit-learn's forests.
    """

    def __init__(
        self,
        usable: np.ndarray,
        n_features: int,
        *,
        monotone: np.ndarray | None = None,
        interactions: Sequence[Collection[int]] | None = None,
        missing: str = "learned",
        max_features: int | None = None,
    ) -> None:
        self.usable = np.ascontiguousarray(usable, np.int32)
        self.n_features = n_features
        self.monotone = monotone
        self.missing = missing
        self.max_features: Any = max_features if max_features and max_features < len(self.usable) else None
        self.groups = self._bit_sets(interactions) if interactions is not None else None

    @property
    def draws_features(self) -> bool:
        """Whether leaves differ in the features they may use, so that lines of all bins do not pay."""
        return self.max_features is not None or self.groups is not None

    @property
    def n_drawn(self) -> int:
        """The number of features that each split considers."""
        return self.max_features or len(self.usable)

    def _bit_sets(self, interactions: Sequence[Collection[int]]) -> np.ndarray:
        """The groups that each feature belongs to, as bits: uint64[n_features, words]."""
        groups = np.zeros((self.n_features, -(-len(interactions) // 64)), np.uint64)
        for number, members in enumerate(interactions):
            groups[list(members), number // 64] |= np.uint64(1 << (number % 64))
        return groups

    def begin(self) -> None:
        """Begin a new tree, whose root may use every group."""
        if self.groups is not None:
            self.open_groups = np.full((64, self.groups.shape[1]), ~np.uint64(0))

    def inherit(self, leaves: np.ndarray, parents: np.ndarray, children: np.ndarray) -> None:
        """Let children use those groups of their parent that contain the feature of its split."""
        if self.groups is None:
            return
        if children[-1] >= len(self.open_groups):
            self.open_groups = np.concatenate([self.open_groups, np.empty_like(self.open_groups)])
            self.inherit(leaves, parents, children)
            return
        left_open = self.open_groups[parents] & self.groups[leaves["split"]["feature"][parents]]
        self.open_groups[children] = np.repeat(left_open, 2, axis=0)

    def candidates(
        self, leaves: np.ndarray, ids: np.ndarray, key: tuple[int, int]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield (leaves, their features) until every leaf has a split or has tried all its features.

        The features of a leaf are a row of int32 in ascending order. A row that is shorter than the others is
        filled up with -1. A single row is valid for all leaves.
        """
        if not len(ids) or not len(self.usable):
            return
        if not self.draws_features:
            yield ids, self.usable[None, :]
            return
        if self.groups is None:
            yield from self._drawn(leaves, ids, key)
            return
        features, groups = np.repeat(self.usable[None, :], len(ids), axis=0), self.groups[self.usable]
        for of_leaf, open_groups in zip(features, self.open_groups[ids], strict=True):
            of_leaf[~(groups & open_groups).any(axis=1)] = -1
        self._sort(features)
        if self.max_features is None:
            yield ids, features
            return
        sampling.features_of_leaves(*key, ids, features)
        for first in range(0, features.shape[1], self.max_features):
            drawn = features[:, first : first + self.max_features].copy()
            self._sort(drawn)
            yield ids, drawn
            again = (leaves["split"]["feature"][ids] < 0) & (drawn[:, -1] >= 0)
            ids, features = ids[again], features[again]
            if not len(ids):
                return

    def _sort(self, features: np.ndarray) -> None:
        """Sort each row in place, with -1 behind all features."""
        features[features < 0] = self.n_features
        features.sort(axis=1)
        features[features == self.n_features] = -1

    def _drawn(
        self, leaves: np.ndarray, ids: np.ndarray, key: tuple[int, int]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the same as `candidates`, with each leaf drawing from all features."""
        for first in range(0, len(self.usable), self.max_features):
            n_drawn = min(self.max_features, len(self.usable) - first)
            drawn = np.empty((len(ids), n_drawn), np.int32)
            sampling.draw_features(*key, ids, self.usable, first, drawn)
            yield ids, drawn
            ids = ids[leaves["split"]["feature"][ids] < 0]
            if not len(ids):
                return


def usable_features(counts: np.ndarray, min_samples_leaf: int = 1) -> np.ndarray:
    """Find the features that can part rows in two, ascending.

    These are the features of which enough rows have another code than the most frequent one.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_features, n_codes)
        The number of rows of all ranks that have each code; see `ranktrees.growing.packing.counts_of`.
    min_samples_leaf : int, default=1

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.growing.constraints import usable_features
    >>> usable_features(np.array([[10, 0], [7, 3], [8, 2]]), 3)
    array([1])
    """
    return np.flatnonzero(counts.sum(axis=1) - counts.max(axis=1) >= min_samples_leaf)


def varying_features(mapper: BinMapper, codes: np.ndarray, communicator: Communicator = ALONE) -> np.ndarray:
    """Find the features of which the rows of all ranks have more than one value, ascending.

    A missing value counts as one of them. Unlike `usable_features`, this needs no counts, for which long
    codes are too many.
    """
    one_value = np.flatnonzero(mapper.n_bins == 1)
    lacking = codes[:, one_value] == mapper.missing_codes[one_value]
    some = communicator.allreduce(np.array([lacking.any(axis=0), ~lacking.all(axis=0)], np.int64))
    constant = one_value[~some.all(axis=0)]
    return np.setdiff1d(np.arange(mapper.n_features), constant)


def number_of_features(max_features: Any, n_usable: int) -> int:
    """Return how many features a split considers: from a number, a share, "sqrt", "log2", or None for all."""
    if max_features is None:
        return n_usable
    if max_features == "sqrt":
        return max(1, int(np.sqrt(n_usable)))
    if max_features == "log2":
        return max(1, int(np.log2(max(n_usable, 1))))
    if isinstance(max_features, Integral):
        return min(int(max_features), n_usable)
    return max(1, round(max_features * n_usable))


def categorical_mask(categorical_features: Any, estimator: Any) -> np.ndarray | None:
    """Return bool[n_features] or None, given a mask, indices, names or "from_dtype".

    Columns of an ordered dtype have the codes of their levels as numbers, and are categorical only if named.
    """
    n_features = estimator.n_features_in_
    levels = estimator._category_levels
    mask = np.zeros(n_features, bool)
    mask[[feature for feature, known in levels.items() if not isinstance(known, OrderedLevels)]] = True
    if isinstance(categorical_features, str) and categorical_features == "from_dtype":
        return mask if mask.any() else None
    if categorical_features is None:
        _refuse_unnamed(mask, np.zeros(n_features, bool), estimator)
        return None
    chosen = chosen_features(categorical_features, keys_of(estimator), n_features, "categorical_features")
    _refuse_unnamed(mask, chosen, estimator)
    return chosen if chosen.any() else None


def _refuse_unnamed(by_dtype: np.ndarray, chosen: np.ndarray, estimator: Any) -> None:
    if (by_dtype & ~chosen).any():
        names = names_of(estimator) or range(len(chosen))
        raise ValueError(
            f"categorical_features leaves out column {names[np.argmax(by_dtype & ~chosen)]!r} of X, whose "
            'dtype is categorical; use "from_dtype", name the column, or turn it into numbers.'
        )


def monotone_signs(monotonic_cst: Any, estimator: Any, is_categorical: np.ndarray) -> np.ndarray | None:
    """Return int8[n_features] or None, given one sign per feature or a mapping from names or indices."""
    if monotonic_cst is None:
        return None
    n_features = estimator.n_features_in_
    given = by_feature(monotonic_cst, keys_of(estimator), n_features, "monotonic_cst")
    if isinstance(given, Mapping):
        signs = np.zeros(n_features, np.int8)
        for feature, sign in given.items():
            signs[feature] = _sign(sign)
    else:
        signs = np.array([_sign(sign) for sign in np.asarray(given).ravel().tolist()], np.int8)
    if signs.shape != (n_features,):
        raise ValueError(
            f"monotonic_cst has {len(signs)} signs, but X has {n_features} features; pass one of -1, 0, 1 "
            "for each, or a dict from names or indices to signs."
        )
    if (orders := (signs != 0) & is_categorical.astype(bool)).any():
        names = names_of(estimator) or range(n_features)
        raise ValueError(
            f"monotonic_cst has a sign for the categorical feature {names[np.argmax(orders)]!r}; expected 0, "
            "as categories have no order."
        )
    return signs if signs.any() else None


def _sign(sign: Any) -> int:
    if not isinstance(sign, Real) or sign not in (-1, 0, 1):
        raise ValueError(f"monotonic_cst has the sign {sign!r}; expected -1, 0 or 1.")
    return int(sign)  # type: ignore[call-overload]


def interaction_sets(
    interaction_cst: Any, n_features: int, names: Sequence[Any] = ()
) -> list[set[int]] | None:
    """Return a list of sets of features, or None. Features that are in no set form one more set."""
    if interaction_cst is None:
        return None
    if interaction_cst == "no_interactions":
        return [{feature} for feature in range(n_features)]
    if interaction_cst == "pairwise":
        return [set(pair) for pair in combinations(range(n_features), 2)] or [{0}]
    sets = []
    for members in interaction_cst:
        if isinstance(members, str) or not hasattr(members, "__iter__"):
            raise TypeError(
                f"interaction_cst has the entry {members!r}; expected sets of features that may interact, "
                "such as [[0, 1], [5, 7, 8]] or [['bm25', 'bm25_title']]."
            )
        sets.append({index_of(key, names, n_features, "interaction_cst") for key in members})
    rest = set(range(n_features)).difference(*sets)
    return [*sets, rest] if rest else sets
