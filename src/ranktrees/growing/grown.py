"""A tree as it was grown: the values of its leaves, and what they add to the scores of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees._core.growing import leaf_rows, parting
from ranktrees._core.support.dtypes import NODE
from ranktrees.processes.communicator import ALONE
from ranktrees.support.parallel import threads_for

if TYPE_CHECKING:
    from ranktrees.binning.mapper import BinMapper
    from ranktrees.processes.communicator import Communicator

NO_BIT_SETS = np.empty((0, 8), np.uint32)


class Grown:
    """The records of a tree's nodes, and the training rows in their parting.

    Parameters
    ----------
    leaves : ndarray of LEAF
    order : ndarray of uint32
        The rows of a node are order[start:stop] and, if quiet rows are set apart,
        order[quiet_start:quiet_stop]. In a leaf, both are in ascending order.
    n_threads : int, default=1
        No result depends on it.
    """

    def __init__(self, leaves: np.ndarray, order: np.ndarray, n_threads: int = 1) -> None:
        self.leaves = leaves
        self.order = order
        self.n_threads = n_threads
        self._begins: Any = None

    @property
    def is_leaf(self) -> np.ndarray:
        """Whether each node is a leaf: bool[n_nodes]."""
        return self.leaves["left"] < 0

    @property
    def values(self) -> np.ndarray:
        """A copy of the best value of each node (a Newton step): float64[n_nodes]."""
        return self.leaves["value"].copy()

    def set_values(
        self,
        gradients: np.ndarray,
        hessians: np.ndarray,
        l2: float,
        same: float | None = None,
        communicator: Communicator = ALONE,
    ) -> None:
        """Set the values of the leaves from the gradients themselves: -G / (H + l2), within their bounds.

        Parameters
        ----------
        gradients, hessians : ndarray of float64, shape (n_rows,)
            Those of the rows of this rank.
        l2 : float
        same : float, default=None
            The hessian of every row, if all are the same. Then ``hessians`` is not read.
        communicator : Communicator
            The ranks that have rows of the leaves.
        """
        n_threads = threads_for(self.n_threads, 4 * len(self.order))
        leaves, order, begins = self.leaves, self.order, self._begins_of_stretches(len(gradients))
        read: Any = hessians if same is None else None
        hessian = 0.0 if same is None else same
        if communicator.alone:
            leaf_rows.set_values(leaves, order, begins, gradients, read, hessian, l2, n_threads)
            return
        sides = (gradients,) if read is None else (gradients, read)
        scales = np.empty((len(sides), len(leaves)))
        steps = np.empty(scales.shape, np.int64)
        for k, side in enumerate(sides):
            leaf_rows.steps_of_leaves(leaves, order, begins, side, scales[k], steps[k], n_threads)
        largest = communicator.allreduce(scales.copy(), "max")
        for k, side in enumerate(sides):
            leaf_rows.steps_among_ranks(
                leaves, order, begins, side, scales[k], largest[k], steps[k], n_threads
            )
        communicator.allreduce(steps)
        leaf_rows.set_values_by_steps(leaves, largest, steps, hessian, l2)

    def add(self, values: np.ndarray, scores: np.ndarray) -> None:
        """Add to scores[row] the value of the row's leaf, for the rows that the tree was grown from."""
        n_threads = threads_for(self.n_threads, 2 * len(self.order))
        begins = self._begins_of_stretches(len(scores))
        leaf_rows.add_values(self.leaves, values, self.order, begins, scores, n_threads)

    def _begins_of_stretches(self, n_rows: int) -> np.ndarray:
        """Find where, in the order of each leaf, each stretch of all rows begins."""
        if self._begins is None:
            n_threads = threads_for(self.n_threads, 4 * len(self.order))
            self._begins = leaf_rows.begins_of_stretches(self.leaves, self.order, n_rows, n_threads)
        return self._begins

    def leaf_by_leaf(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """List the rows of each leaf: those of leaf i are rows[starts[i]:stops[i]].

        Returns
        -------
        rows : ndarray of uint32, shape (n_rows,)
        starts, stops : ndarrays of int64, shape (n_leaves,)
        """
        ids, rows = np.flatnonzero(self.is_leaf), np.empty_like(self.order)
        leaves = self.leaves[ids]
        lengths = leaves["stop"] - leaves["start"] + leaves["quiet_stop"] - leaves["quiet_start"]
        stops = lengths.cumsum()
        starts = stops - lengths
        n_threads = threads_for(self.n_threads, len(rows))
        leaf_rows.leaf_by_leaf(self.leaves, self.order, ids, starts, rows, n_threads)
        return rows, starts, stops

    def walk(self, values: np.ndarray, mapper: Any, codes: Any, rows: np.ndarray, scores: np.ndarray) -> None:
        """Walk rows down the tree: add to scores[row] the value of the leaf that the row reaches.

        This is for rows that the tree was not grown from. ``rows`` is reordered.
        """
        if len(rows):
            n_threads = threads_for(self.n_threads, 32 * len(rows))
            follower = parting.Follower(self.leaves, values, codes, mapper.offsets)
            follower.follow(rows, scores, n_threads)

    def tree(
        self, values: np.ndarray, mapper: BinMapper, nodes: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the finished tree: (NODE records, uint32 bit sets of its categorical splits).

        The records are written to ``nodes``, if that is given.
        """
        nodes = np.empty(len(self.leaves), NODE) if nodes is None else nodes
        codes = np.empty(len(self.leaves), np.int64)
        n_categorical = parting.finish_nodes(self.leaves, values, nodes, codes)
        bitsets = NO_BIT_SETS
        if n_categorical:
            bitsets = self.leaves["split"]["categories"][nodes["categories"] >= 0]
        if mapper.levels:
            bitsets = mapper.as_sets(nodes, codes, bitsets)
        mapper.set_cuts(nodes, codes)
        return nodes, bitsets

    def with_codes_of(self, mapper: Any, nodes: np.ndarray) -> Grown:
        """Return the same tree for rows with the codes of another mapper, by the cuts in the finished one."""
        leaves, inner = self.leaves.copy(), ~self.is_leaf
        leaves["split"]["code"][inner] = mapper.codes_of(nodes["feature"][inner], nodes["cut"][inner])
        return Grown(leaves, self.order, self.n_threads)
