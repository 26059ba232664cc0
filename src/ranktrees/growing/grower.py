"""Grow one tree: one loop, two queues.

    pop leaves > settle their splits > partition > lines of cells > search > push leaves

A leaf enters the queue with its best split known, if it has one, and promises what that gains: else 0, and
it stays a leaf. If it turns out, when its rows are parted, that a child gets too few, it is searched again.
The queue is the policy: a whole layer at a time, or the best leaves. Where two splits were judged together,
the first promises what both gain, and the child that the second is for promises infinity: its turn is next.
Where a split makes features cheaper that others could use, all leaves are searched again: splits are always
the best at the prices of the moment.

Where nothing but its rows says how to split a leaf, all of this is one compiled call: ``pyx/growing.pyx``.
"""

from functools import partial

import numpy as np

from ranktrees import parallel
from ranktrees._core import partition
from ranktrees._core.dtypes import LEAF
from ranktrees._core.queues import BestLeaves, WholeLayers, most_together
from ranktrees.growing.grown import Grown
from ranktrees.growing.over_ranks import ParterOverRanks
from ranktrees.growing.rounding import RoundedRows
from ranktrees.growing.searching import Sizes
from ranktrees.sampling import FEATURES, ROUNDING, stream
from ranktrees.sharing import ALL

ONE_BY_ONE = 16  # leaves: trees of no more are grown a split at a time


class TreeGrower:
    """Grows trees on the same codes; the buffers are made once.

    Parameters
    ----------
    codes : ndarray of uint8 or uint32, shape (n_rows, n_features)
    mapper : BinMapper
        What made the codes.
    constraints : Constraints
        Which features a leaf may use, and the monotone signs.
    prices : Prices
        What features cost; those that a tree has used are free in the next ones.
    make_search : callable
        What finds the best splits; see `ranktrees.growing.split_search.searches`.
    max_leaf_nodes, max_depth : int or None
    min_samples_leaf : int
    l2_regularization, min_gain, min_hessian : float
        ``min_hessian`` is the least sum of hessians in a leaf.
    gradient_sampling : float or None
        Of which rows splits are searched; see `RoundedRows.round`.
    n_threads : int
    share : Share
        What part of all rows these are.
    """

    def __init__(
        self,
        codes,
        mapper,
        constraints,
        prices,
        make_search,
        *,
        max_leaf_nodes=None,
        max_depth=None,
        min_samples_leaf=1,
        l2_regularization=0.0,
        min_gain=0.0,
        min_hessian=0.0,
        gradient_sampling=None,
        n_threads=1,
        share=ALL,
    ):
        self.codes = codes
        self.mapper = mapper
        self.constraints = constraints
        self.prices = prices
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.communicator = share.communicator
        self.rows = RoundedRows(len(codes), share)
        n_rows = self.rows.n_rows_of_all
        min_samples_leaf = min(min_samples_leaf, n_rows + 1)
        self.rules = (l2_regularization, min_gain, min_samples_leaf, min_hessian)
        self.gradient_sampling = gradient_sampling
        self.n_threads = n_threads
        most_leaves = max(1, n_rows // max(1, min_samples_leaf))
        self.n_leaves_allowed = min(most_leaves, max_leaf_nodes or most_leaves)
        max_depth = min(self.n_leaves_allowed - 1, max_depth or self.n_leaves_allowed)
        buffers = self.rows.order, self.rows.sums
        alone = self.communicator.alone
        make_parter = partition.Parter if alone else partial(ParterOverRanks, self.communicator)
        self.parter = make_parter(
            codes,
            mapper.offsets,
            constraints.monotone,
            *buffers,
            min_samples_leaf,
            max_depth,
            constraints.missing,
        )
        sizes = Sizes(
            n_threads,
            n_rows,
            self.n_leaves_allowed if max_leaf_nodes else None,
            most_together(self.n_leaves_allowed - 1),
        )
        self.search = make_search(constraints, prices, *buffers, sizes)
        self.queue = (BestLeaves if max_leaf_nodes else WholeLayers)(np.empty(0))
        self._look_at(np.empty(2 * min(self.n_leaves_allowed, 1024) + 1, LEAF))
        self.growth = self._in_one_call() if self.search.in_one_call else None

    def _in_one_call(self):
        """What grows a tree in one call, where nothing but rows, lines and draws has a say."""
        search, constraints = self.search, self.constraints
        return search.make_growth(
            self.parter,
            search.builder if search.has_lines else None,
            search.finder,
            self.queue,
            constraints.usable,
            constraints.n_drawn,
            self.n_leaves_allowed,
            search.few_rows if search.has_lines else 0,
            search.is_coarse,
            self.n_threads,
        )

    def _look_at(self, leaves):
        self.leaves, self.may_split = leaves, leaves["may_split"]
        self.queue.look_at(leaves["promise"])
        self.parter.look_at(leaves)
        self.search.look_at(leaves)

    def grow(self, gradients, hessians, drawn=None, *, seed=0, tree=0):
        """Grow one tree.

        Parameters
        ----------
        gradients, hessians : ndarray of float64, shape (n_rows,)
            There may be one hessian only, that of all rows.
        drawn : ndarray of uint32, default=None
            The rows to grow from, rising; None is all.
        seed, tree : int
            Key of the random draws: the fit's seed, the tree's number.

        Returns
        -------
        grown : Grown
            Views that the next tree overwrites.
        """
        rows, n_rows = self.rows, len(gradients) if drawn is None else len(drawn)
        key = seed, stream(tree, ROUNDING)
        rows.round(
            gradients, hessians, self.n_threads, drawn, self.gradient_sampling, key, self.search.sets_apart
        )
        self.search.begin(rows, self.rules, (seed, stream(tree, FEATURES)), rows.n_loud < n_rows)
        self.parter.plant(
            rows.n_loud,
            n_rows,
            *rows.total,
            rows.count,
            self.l2_regularization,
            rows.gradient_unit,
            rows.hessian_unit,
            gradients,
            hessians,
            self.search.counts_later and not rows.same,
        )
        self.constraints.plant()
        self.prices.plant(rows.total[1] * rows.hessian_unit)
        if self.growth is not None and self.prices.all_free:
            threads = parallel.VALUES_PER_THREAD, self._make_room
            n_nodes = self.growth.grow(self._one_by_one, rows.bits, rows.same, *self.search.key, *threads)
        else:
            n_nodes = self._grow_leaves()
        grown = Grown(self.leaves[:n_nodes], rows.order[:n_rows], self.n_threads)
        same = rows.largest_hessian if rows.same or rows.sampled else None
        grown.set_values(gradients, hessians, self.l2_regularization, same, self.communicator)
        return grown

    @property
    def _one_by_one(self):
        return self.n_leaves_allowed <= ONE_BY_ONE or not self.prices.all_free

    def _grow_leaves(self):
        """Grow from the root as the queue hands out leaves; the number of nodes."""
        search, queue = self.search, self.queue
        queue.begin(self._one_by_one)
        n_nodes, n_leaves = 1, 1
        root = np.zeros(1, np.int32)
        if n_leaves < self.n_leaves_allowed and self.may_split[0]:
            search.root(root)
            queue.push(root)
        while len(parents := queue.pop(self.n_leaves_allowed - n_leaves)):
            parents = search.settle(parents)
            while len(refused := self._split(parents, n_nodes)):
                search.search_again(refused)
                if search.is_sure:  # they promise less now, and others may come first
                    queue.push(parents)
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
                    others = self._may_split(n_nodes - len(children))
                    search.again(others)
                    queue.renew(np.concatenate([others, children]))
                else:
                    queue.push(children)
                if search.is_sure:
                    search.forget(queue.give_up(self.n_leaves_allowed - n_leaves))
        return n_nodes

    def _make_room(self, n_nodes):
        if n_nodes > len(self.leaves):
            self._look_at(np.concatenate([self.leaves, np.empty(n_nodes, LEAF)]))

    def _may_split(self, n_nodes):
        """Of the first nodes, the leaves that are large enough."""
        is_leaf = self.leaves["left"][:n_nodes] < 0
        return np.flatnonzero(is_leaf & (self.may_split[:n_nodes] > 0)).astype(np.int32)

    def _split(self, parents, n_nodes):
        """Split leaves, whose children are the next nodes.

        Those are returned of which a child would get too few rows; then all may be split once more.
        """
        self._make_room(n_nodes + 2 * len(parents))
        return self.parter.split(parents, n_nodes, self.n_threads, parallel.VALUES_PER_THREAD)
