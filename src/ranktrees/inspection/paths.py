"""The kernel that says what features add, and what it has to know of an ensemble."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ranktrees._core.inspection.paths import TreePaths
from ranktrees.model.ensemble import covers_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ranktrees.model.ensemble import Ensemble

__all__ = ["EnsemblePaths"]

VALUES_AT_ONCE = 2**20  # of rows that are unpacked, and of what features add to them
NODES_AT_ONCE = 2**17  # whose tables are in memory together, some 50 MB


class EnsemblePaths:
    """The paths of an ensemble from its roots to its leaves.

    Parameters
    ----------
    ensemble : Ensemble

    Attributes
    ----------
    used : ndarray of int32
        The features that the trees ask for, ascending. No others add anything.

    Raises
    ------
    ValueError
        If the trees do not know how many training rows their nodes have seen.
    """

    def __init__(self, ensemble: Ensemble) -> None:
        self._ensemble, self._covers = ensemble, covers_of(ensemble.nodes)
        if not (self._covers > 0).all():
            number = np.searchsorted(ensemble.tree_offsets, np.argmin(self._covers), side="right") - 1
            raise ValueError(
                f"tree {number} has nodes with a count of 0; expected the number of training rows in each, "
                "or for a model of XGBoost their hessian: these weigh the two sides of a split on a feature "
                "whose value is unknown."
            )
        features = ensemble.nodes["feature"]
        self.used = np.unique(features[features >= 0])
        self._coded = np.unique(features[(features >= 0) & (ensemble.nodes["categories"] >= 0)])
        self._of_trees = lru_cache(maxsize=1)(self._paths_of_trees)  # most ensembles are read in one go

    def added(
        self, rows: Any, n_threads: int, *, in_pairs: bool = False
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield (rows, what each feature adds to them), some rows after the other.

        Parameters
        ----------
        rows : ndarray or CSR array of shape (n_rows, n_features)
        n_threads : int
        in_pairs : bool, default=False
            Whether to say what pairs of features add together, in the order of ``np.tril_indices``; a pair of
            the same feature is its contribution.

        Yields
        ------
        rows : slice
        added : ndarray of float64, shape (n, n_used) or (n, n_used * (n_used + 1) / 2)
        """
        n_used = len(self.used)
        width = n_used * (n_used + 1) // 2 if in_pairs else n_used
        at_once = max(1, VALUES_AT_ONCE // max(1, width))
        for first in range(0, rows.shape[0], at_once):
            stretch = slice(first, min(first + at_once, rows.shape[0]))
            values = self._values(rows[stretch])
            added = np.zeros((len(values), width))
            for paths in self._groups():
                paths.add(values, added, in_pairs, n_threads)
            yield stretch, added

    def expected(self) -> float:
        """Return the value of the trees for a row of which nothing is known."""
        return sum(paths.expected for paths in self._groups())

    def _groups(self) -> Iterator[TreePaths]:
        offsets, first = self._ensemble.tree_offsets, 0
        while first < len(self._ensemble):
            stop = np.searchsorted(offsets, offsets[first] + NODES_AT_ONCE, side="right") - 1
            stop = max(first + 1, int(stop))
            yield self._of_trees(first, stop)
            first = stop

    def _paths_of_trees(self, first: int, stop: int) -> TreePaths:
        ensemble, offsets = self._ensemble, self._ensemble.tree_offsets[first : stop + 1]
        nodes = slice(offsets[0], offsets[-1])
        numbers = np.arange(ensemble.n_features)
        return TreePaths(
            ensemble.nodes[nodes],
            offsets - offsets[0],
            self._covers[nodes],
            ensemble.bitsets,
            np.searchsorted(self.used, numbers),
            len(self.used) + np.searchsorted(self._coded, numbers),
            len(self.used),
            len(self.used) + len(self._coded),
            _gauss_legendre,
            1 / len(ensemble) if ensemble.average else 1.0,
        )

    def _values(self, rows: Any) -> np.ndarray:
        """The values of the used features, and the codes of their categories; NaN for unknown ones."""
        values = rows[:, self.used]
        values = values.toarray() if sparse.issparse(values) else values
        columns = np.empty((len(values), len(self.used) + len(self._coded)))
        columns[:, : len(self.used)] = values
        for place, feature in enumerate(self._coded, start=len(self.used)):
            own, known = columns[:, np.searchsorted(self.used, feature)], self._ensemble.categories[feature]
            places, is_known = np.searchsorted(known, own), np.isin(own, known)
            groups = self._ensemble.groups[feature]
            columns[:, place] = np.nan
            columns[is_known, place] = places[is_known] if groups is None else groups[places[is_known]]
        return columns


@cache
def _gauss_legendre(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return points in [0, 1] and weights that integrate polynomials of a degree below 2 n exactly."""
    points, weights = np.polynomial.legendre.leggauss(n)
    return (points + 1) / 2, weights / 2
