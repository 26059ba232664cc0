"""Grow one tree, with one loop and a choice of two queues.

    pop leaves > settle their splits > partition > lines of cells > search > push leaves

A leaf enters the queue when its best split is known, and its promise is the gain of that split. Without a
split, the promise is 0, and the leaf stays one. If parting the rows of a leaf shows that a child would get
too few of them, the leaf is searched again. The queue decides the order: a whole layer at a time, or the best
leaves first. If two splits were judged together, the promise for the first is the gain of both, and the child
that the second belongs to has the promise infinity, so that it is next. If a split makes features cheaper
that other leaves could use, all leaves are searched again. Splits are therefore always the best at current
prices.

If the split of a leaf depends on nothing but its rows, all of this is one compiled call, of ``growth.pyx``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees._core.growing import parting
from ranktrees._core.growing.queues import BestLeaves, WholeLayers
from ranktrees._core.support.dtypes import LEAF
from ranktrees.growing.grown import Grown
from ranktrees.growing.over_ranks import ParterOverRanks
from ranktrees.growing.rounding import RoundedRows
from ranktrees.growing.searching import Sizes
from ranktrees.processes.sharing import ALL_ROWS
from ranktrees.rows.sampling import FEATURES, ROUNDING, stream
from ranktrees.support import parallel

if TYPE_CHECKING:
    from ranktrees.binning.mapper import BinMapper
    from ranktrees.growing.constraints import Constraints
    from ranktrees.model.costs import Prices
    from ranktrees.processes.sharing import Share

ONE_BY_ONE = 16  # trees of at most this many leaves are grown one split at a time


class TreeGrower:
    """Grows trees on the same codes, with buffers that are allocated once.

    Parameters
    ----------
    codes : ndarray of uint8 or uint32, shape (n_rows, n_features)
    mapper : BinMapper
        The mapper that made the codes.
    constraints : Constraints
        The features that a leaf may use, and the monotone signs.
    prices : Prices
        What features cost. Those that a tree has used are free in later trees.
    make_search : callable
        Makes the search for splits; see `ranktrees.growing.split_search.searches`.
    max_leaf_nodes, max_depth : int or None
    min_samples_leaf : int
    l2_regularization, min_gain, min_hessian : float
        ``min_hessian`` is the least sum of hessians in a leaf.
    gradient_sampling : float or None
        Determines the rows on which splits are searched; see `RoundedRows.round`.
    n_threads : int
    share : Share
        The part of all rows that these rows are.
    """

    def __init__(
        self,
        codes: Any,
        mapper: BinMapper,
        constraints: Constraints,
        prices: Prices,
        make_search: Callable[..., Any],
        *,
        max_leaf_nodes: int | None = None,
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        l2_regularization: float = 0.0,
        min_gain: float = 0.0,
        min_hessian: float = 0.0,
        gradient_sampling: float | None = None,
        n_threads: int = 1,
        share: Share = ALL_ROWS,
    ) -> None:
        self.codes = codes
        self.mapper = mapper
        self.constraints = constraints
        self.prices = prices
        self.l2_regularization = l2_regularization
        self.communicator = share.communicator
        self.rows = RoundedRows(len(codes), share)
        n_rows = self.rows.n_rows_of_all
        min_samples_leaf = min(min_samples_leaf, n_rows + 1)
        self.rules = (l2_regularization, min_gain, min_samples_leaf, min_hessian)
        self.gradient_sampling = gradient_sampling
        self.n_threads = n_threads
        most_leaves = max(1, n_rows // max(1, min_samples_leaf))
        # An integer of Python, since NumPy's may be too narrow for the sizes that follow from it.
        self.n_leaves_allowed = int(min(most_leaves, max_leaf_nodes or most_leaves))
        max_depth = min(self.n_leaves_allowed - 1, max_depth or self.n_leaves_allowed)
        buffers = self.rows.order, self.rows.sums
        alone = self.communicator.alone
        make_parter = parting.Parter if alone else partial(ParterOverRanks, self.communicator)
        self.parter = make_parter(
            codes,
            mapper.offsets,
            constraints.monotone,
            *buffers,
            min_samples_leaf,
            max_depth,
            constraints.missing,
        )
        sizes = Sizes(n_threads, n_rows, self.n_leaves_allowed if max_leaf_nodes else None)
        self.search = make_search(constraints, prices, *buffers, sizes)
        self.queue = (BestLeaves if max_leaf_nodes else WholeLayers)(np.empty(0))
        self._attach(np.empty(2 * min(self.n_leaves_allowed, 1024) + 1, LEAF))
        self.growth = self._in_one_call() if self.search.in_one_call else None

    def _in_one_call(self) -> Any:
        """Make what grows a tree in one call, if splits depend only on rows, lines and draws."""
        search, constraints = self.search, self.constraints
        return search.make_growth(
            self.parter,
            search.builder if search.has_lines else None,
            search.finder,
            self.queue,
            constraints,
            self.n_leaves_allowed,
            search.few_rows if search.has_lines else 0,
            self.n_threads,
        )

    def _attach(self, leaves: np.ndarray) -> None:
        self.leaves, self.splits_below = leaves, leaves["splits_below"]
        self.queue.attach(leaves["promise"])
        self.parter.attach(leaves)
        self.search.attach(leaves)

    def grow(
        self,
        gradients: np.ndarray,
        hessians: np.ndarray,
        drawn: np.ndarray | None = None,
        *,
        leaf_hessians: np.ndarray | None = None,
        seed: int = 0,
        tree: int = 0,
    ) -> Grown:
        """Grow one tree.

        Parameters
        ----------
        gradients, hessians : ndarray of float64, shape (n_rows,)
            A single hessian is that of all rows.
        drawn : ndarray of uint32, default=None
            The rows to grow from, in ascending order. If None, all rows.
        leaf_hessians : ndarray of float64, default=None
            The hessians of all rows by which the values of leaves are set, or a single one. If None, they are
            those by which splits are searched.
        seed, tree : int
            The key of the random draws: the seed of the fit and the number of the tree.

        Returns
        -------
        grown : Grown
            Views of buffers that the next tree overwrites.
        """
        rows, key = self.rows, (seed, stream(tree, ROUNDING))
        rows.round(
            gradients, hessians, self.n_threads, drawn, self.gradient_sampling, key, self.search.sets_apart
        )
        self.search.begin(rows, self.rules, (seed, stream(tree, FEATURES)), rows.n_loud < rows.n_rows)
        counts_later = self.search.counts_later and not rows.same
        self.parter.begin(rows, self.l2_regularization, gradients, hessians, counts_later)
        self.constraints.begin()
        self.prices.begin(rows.total[1] * rows.hessian_unit)
        if self.growth is not None and self.prices.all_free:
            threads = parallel.VALUES_PER_THREAD, self._make_room
            n_nodes = self.growth.grow(self._one_by_one, rows.bits, rows.same, *self.search.key, *threads)
        else:
            n_nodes = self._grow_leaves()
        grown = Grown(self.leaves[:n_nodes], rows.order[: rows.n_rows], self.n_threads)
        same = rows.largest_hessian if rows.same or rows.sampled else None
        if leaf_hessians is not None:
            hessians, same = leaf_hessians, leaf_hessians[0] if len(leaf_hessians) == 1 else None
        grown.set_values(gradients, hessians, self.l2_regularization, same, self.communicator)
        return grown

    @property
    def _one_by_one(self) -> bool:
        return self.n_leaves_allowed <= ONE_BY_ONE or not self.prices.all_free

    def _grow_leaves(self) -> int:
        """Grow from the root as the queue hands out leaves. Return the number of nodes."""
        search, queue = self.search, self.queue
        queue.begin(self._one_by_one)
        n_nodes, n_leaves = 1, 1
        root = np.zeros(1, np.int32)
        if n_leaves < self.n_leaves_allowed and self.splits_below[0]:
            search.root(root)
            queue.push(root)
        while len(parents := queue.pop(self.n_leaves_allowed - n_leaves)):
            parents = search.settle(parents)
            while len(refused := self._split(parents, n_nodes)):
                search.search_again(refused)
                if search.is_sure:  # their promises are lower now, and other leaves may come first
                    queue.put_back(parents)
                    parents = queue.pop(self.n_leaves_allowed - n_leaves)
                else:
                    parents = search.with_split(parents)
            if not len(parents):
                continue
            cheaper = self.prices.pay(self.leaves, parents)
            children = np.arange(n_nodes, n_nodes + 2 * len(parents), dtype=np.int32)
            self.constraints.inherit(self.leaves, parents, children)
            n_nodes += len(children)
            n_leaves += len(parents)
            if n_leaves < self.n_leaves_allowed:
                search.children(parents, children)
                if cheaper:
                    others = self._open_leaves(n_nodes - len(children))
                    search.again(others)
                    queue.renew(np.concatenate([others, children]))
                else:
                    queue.push(children, parents)
                if search.is_sure:
                    search.forget(queue.give_up(self.n_leaves_allowed - n_leaves))
        return n_nodes

    def _make_room(self, n_nodes: int) -> None:
        if n_nodes > len(self.leaves):
            self._attach(np.concatenate([self.leaves, np.empty(n_nodes, LEAF)]))

    def _open_leaves(self, n_nodes: int) -> np.ndarray:
        """Among the first ``n_nodes`` nodes, find the leaves that are large enough to be split."""
        is_leaf = self.leaves["left"][:n_nodes] < 0
        return np.flatnonzero(is_leaf & (self.splits_below[:n_nodes] > 0)).astype(np.int32)

    def _split(self, parents: np.ndarray, n_nodes: int) -> np.ndarray:
        """Split leaves. Their children become the next nodes.

        If a child of any leaf would get too few rows, those leaves are returned, and all leaves may be split
        once more.
        """
        self._make_room(n_nodes + 2 * len(parents))
        return self.parter.split(parents, n_nodes, self.n_threads, parallel.VALUES_PER_THREAD)
