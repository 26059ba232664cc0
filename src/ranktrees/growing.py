"""Grow one tree: one loop, two queues.

    pop leaves > partition > histogram > split > push leaves

A leaf enters the queue with its best split known. The queue is the policy: a whole layer at a time,
or the best leaf at a time.
"""

import math
from bisect import insort

import numpy as np

from ranktrees._core import histogram, partition, splitting
from ranktrees._core.dtypes import BIN, LEAF, NODE, SPLIT
from ranktrees.parallel import threads_for

# A leaf of fewer rows is searched from its rows: it touches fewer cells than a histogram has.
FEW_ROWS = 512

# Histograms are kept for this many bytes; a leaf that finds no room is searched from its rows.
HISTOGRAM_BYTES = 1 << 28

FEATURES_AT_ONCE = 128  # whose bins splitting.find_directly fills together
CELLS = 256  # bins of one feature, at most


# Below this many rows a gradient and a count fit in one integer, which is all that a bin needs to hold
# where all rows have the same hessian: they are added up that way, in half the space.
MOST_PACKED_ROWS = 1 << 24

DIVERGED = (
    "The gradients of the loss have left the range of floating point: the scores have diverged. Lower "
    "learning_rate, or scale y and sample_weight to a smaller range."
)


class WholeLayers:
    """Hands out all leaves of a layer together, the best of them where only a few more may split."""

    def __init__(self, gains):
        self.gains = gains
        self.layer = np.empty(0, np.int32)

    def push(self, ids):
        self.layer = ids

    def pop(self, limit):
        layer, self.layer = self.layer, self.layer[:0]
        if len(layer) > limit:
            best = np.argsort(-self.gains()[layer], kind="stable")[:limit]
            layer = np.sort(layer[best])
        return layer

    def give_up(self, limit):
        """A layer is handed out at once: all of it may still be."""
        return []


class BestLeaf:
    """Hands out the leaf whose split gains most; of equal ones the oldest."""

    def __init__(self, gains):
        self.gains = gains
        self.waiting = []  # (-gain, leaf), rising

    def push(self, ids):
        gains = self.gains()
        for leaf in ids.tolist():
            insort(self.waiting, (-gains[leaf], leaf))

    def pop(self, limit):
        return np.array([self.waiting.pop(0)[1]] if self.waiting and limit else [], np.int32)

    def give_up(self, limit):
        """The leaves that will never be handed out where only ``limit`` more may be."""
        late, self.waiting = self.waiting[limit:], self.waiting[:limit]
        return [leaf for _, leaf in late]


class RoundedRows:
    """The gradients of one round as integers: one bin per row, and what one integer step is worth.

    Every sum of these bins is exact, hence the same in any order: over threads, over shards, and
    for ``parent - child``. Gradients keep 30 bits below the largest one, or, where all hessians are the
    same and gradients are packed, 38 bits less those of the number of rows, if that is fewer. Hessians
    and counts share a 64-bit lane, so all hessians together stay below 2^32, and each keeps what that
    leaves it: enough to find splits by. The values of the leaves are computed from the gradients
    themselves.
    """

    def __init__(self, n_rows):
        if n_rows >= 1 << 30:
            raise ValueError(f"X has {n_rows} rows; at most 2**30 - 1 can be trained on in one process.")
        self.bins = np.empty(n_rows, BIN)
        self._packed = np.empty(n_rows if n_rows < MOST_PACKED_ROWS else 0, np.int64)
        self._partial = np.empty(n_rows // 16384 + 1, np.float64)

    def round(self, gradients, hessians, n_threads):
        """Set ``bins`` and both units from float64 gradients and hessians (hessians >= 0)."""
        n_threads = threads_for(n_threads, 4 * len(gradients))
        self.gradients, self.hessians = gradients, hessians
        largest_gradient = histogram.largest(gradients, self._partial, n_threads)
        largest_hessian = histogram.largest(hessians, self._partial, n_threads)
        if not (math.isfinite(largest_gradient) and math.isfinite(largest_hessian)):
            raise ValueError(DIVERGED)
        n_rows = len(gradients)
        packs = n_rows < MOST_PACKED_ROWS and hessians.min() == largest_hessian
        bits = min(30, 38 - n_rows.bit_length()) if packs else 30
        gradient_bits = min(bits - math.frexp(largest_gradient)[1], 1000)
        hessian_bits = min(30 - math.frexp(largest_hessian)[1], 1000)
        partial = self._partial.view(np.int64)
        steps = histogram.total(hessians, math.ldexp(1.0, hessian_bits), partial, n_threads)
        room = (2**32 - 1 - n_rows) / (steps + n_rows)
        hessian_bits = min(hessian_bits + math.frexp(room)[1] - 1, 1000)
        self.gradient_unit = math.ldexp(1.0, -gradient_bits)
        self.hessian_unit = math.ldexp(1.0, -hessian_bits)
        largest_sum = n_rows * largest_gradient
        if not math.isfinite(largest_sum * (largest_sum / self.hessian_unit)):
            raise ValueError(DIVERGED)
        histogram.round_rows(
            gradients,
            hessians,
            math.ldexp(1.0, gradient_bits),
            math.ldexp(1.0, hessian_bits),
            self.bins,
            n_threads,
        )
        self.packed = self._packed if packs else None
        if packs:
            histogram.pack(self.bins, self.packed, n_threads)
        return self


class Grown:
    """A tree as it was grown: records of its nodes, and the training rows in the order of its leaves."""

    def __init__(self, leaves, order):
        self.leaves = leaves
        self.order = order
        self.is_leaf = leaves["left"] < 0

    @property
    def values(self):
        """float64[n_nodes], the best value of each node (a Newton step)."""
        return self.leaves["value"]

    def tree(self, values, mapper):
        """The finished tree: (NODE records, uint32 bit sets of its categorical splits)."""
        leaves, inner = self.leaves, ~self.is_leaf
        split = leaves["split"]
        nodes = np.zeros(len(leaves), NODE)
        nodes["value"] = values
        nodes["count"] = leaves["total"]["count"]
        nodes["feature"] = np.where(inner, split["feature"], -1)
        nodes["left"], nodes["right"] = leaves["left"], leaves["right"]
        nodes["gain"] = np.where(inner, split["gain"], 0.0)
        nodes["missing_left"] = np.where(inner, split["missing_left"], 0)
        nodes["categories"] = -1
        categorical = inner & (split["categorical"] == 1)
        nodes["categories"][categorical] = np.arange(categorical.sum())
        numeric = inner & ~categorical
        nodes["cut"][numeric] = mapper.cut_values(split["feature"][numeric], split["code"][numeric])
        return nodes, np.ascontiguousarray(split["categories"][categorical])


class TreeGrower:
    """Grows trees on the same codes; the buffers are made once.

    Parameters
    ----------
    codes : ndarray of uint8, shape (n_rows, n_features)
    mapper : BinMapper
        What made the codes.
    constraints : Constraints
        Which features a leaf may use, and the monotone signs.
    max_leaf_nodes, max_depth : int or None
    min_samples_leaf : int
    l2_regularization, min_gain, min_hessian : float
        ``min_hessian`` is the least sum of hessians in a leaf.
    n_threads : int
    """

    def __init__(
        self,
        codes,
        mapper,
        constraints,
        *,
        max_leaf_nodes=None,
        max_depth=None,
        min_samples_leaf=1,
        l2_regularization=0.0,
        min_gain=0.0,
        min_hessian=0.0,
        n_threads=1,
    ):
        self.codes = codes
        self.mapper = mapper
        self.constraints = constraints
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.min_gain = min_gain
        self.min_hessian = min_hessian
        self.n_threads = n_threads
        n_rows = len(codes)
        most_leaves = max(1, n_rows // max(1, min_samples_leaf))
        self.n_leaves_allowed = min(most_leaves, max_leaf_nodes or most_leaves)
        self.leaves = np.empty(2 * min(self.n_leaves_allowed, 1024) + 1, LEAF)
        self.scratch = np.empty(n_rows, np.uint32)
        self.cells = np.zeros((n_threads, min(len(mapper.n_bins), FEATURES_AT_ONCE) * CELLS), BIN)
        self.histograms = self._room_for_histograms()
        self.packed_cells = np.empty((n_threads, self.histograms.shape[1]), np.int64)

    def _room_for_histograms(self):
        if self.constraints.draws_features:
            return np.empty((0, 0), BIN)
        n_cells = int(self.mapper.offsets[-1])
        fitting = HISTOGRAM_BYTES // (n_cells * BIN.itemsize)
        # of k leaves no more than those still to be split are kept, and with them one being built
        most = self.n_leaves_allowed // 2 + 2 if self.max_leaf_nodes else self.n_leaves_allowed
        lines = min(most, len(self.codes) // FEW_ROWS + 1, fitting)
        return np.empty((max(lines, 0), n_cells), BIN)

    def grow(self, rows, order, *, seed=0, stream=0):
        """Grow one tree.

        Parameters
        ----------
        rows : RoundedRows
        order : ndarray of uint32
            The rows to grow from, rising; reordered in place.
        seed, stream : int
            Key of the random draws of features: the fit's seed, the tree's number.

        Returns
        -------
        grown : Grown
        """
        self.rows, self.order, self.key = rows, order, (seed, stream)
        self.free_lines = list(range(len(self.histograms)))[::-1]
        queue = (BestLeaf if self.max_leaf_nodes else WholeLayers)(lambda: self.leaves["split"]["gain"])
        total = np.empty(1, BIN)
        histogram.sum_rows(rows.bins, order, total)
        partition.plant(
            self.leaves, total, len(order), self.l2_regularization, rows.gradient_unit, rows.hessian_unit
        )
        self.constraints.plant()
        n_nodes, n_leaves = 1, 1
        root = np.zeros(1, np.int32)
        if n_leaves < self.n_leaves_allowed:
            self._search_root(root)
            queue.push(root[self.leaves["split"]["feature"][root] >= 0])
        while len(parents := queue.pop(self.n_leaves_allowed - n_leaves)):
            children = self._split(parents, n_nodes)
            n_nodes += len(children)
            n_leaves += len(parents)
            if n_leaves < self.n_leaves_allowed:
                self._search(parents, children)
                queue.push(children[self.leaves["split"]["feature"][children] >= 0])
                self._free(queue.give_up(self.n_leaves_allowed - n_leaves))
        leaves = self.leaves[:n_nodes].copy()
        n_threads = threads_for(self.n_threads, 8 * len(order))
        partition.settle_leaves(
            leaves, order, rows.gradients, rows.hessians, self.l2_regularization, n_threads
        )
        return Grown(leaves, order)

    def _split(self, parents, n_nodes):
        if n_nodes + 2 * len(parents) > len(self.leaves):
            self.leaves = np.concatenate([self.leaves, np.empty(len(self.leaves) + 2 * len(parents), LEAF)])
        partition.split_leaves(
            self.leaves,
            parents,
            n_nodes,
            self.codes,
            self.mapper.offsets,
            self.constraints.monotone,
            self.order,
            self.scratch,
            self.l2_regularization,
            self.rows.gradient_unit,
            self.rows.hessian_unit,
            threads_for(self.n_threads, 8 * self._n_rows(parents)),
        )
        children = np.arange(n_nodes, n_nodes + 2 * len(parents), dtype=np.int32)
        self.constraints.inherit(self.leaves, parents, children)
        return children

    def _n_rows(self, ids):
        leaves = self.leaves[ids]
        return int((leaves["stop"] - leaves["start"]).sum())

    def _worth_searching(self, ids):
        leaves = self.leaves[ids]
        large_enough = leaves["stop"] - leaves["start"] >= 2 * self.min_samples_leaf
        return large_enough if self.max_depth is None else large_enough & (leaves["depth"] < self.max_depth)

    def _search_root(self, root):
        if not self._worth_searching(root)[0]:
            return
        if self.free_lines and len(self.order) >= FEW_ROWS:
            self.leaves["histogram"][0] = self.free_lines.pop()
            self._build(root)
            self._find(root)
        else:
            self._find_directly(root)

    def _search(self, parents, children):
        """Find the best split of each child: from histograms where those are kept, else from its rows."""
        leaves, lines = self.leaves, self.leaves["histogram"]
        worth = self._worth_searching(children)
        kept = lines[parents] >= 0
        if not kept.any():
            self._find_directly(children[worth])
            return
        sizes = (leaves["stop"] - leaves["start"])[children].reshape(-1, 2)
        larger_is_right = sizes[:, 1] >= sizes[:, 0]
        larger = np.where(larger_is_right, children[1::2], children[::2])
        smaller = np.where(larger_is_right, children[::2], children[1::2])
        worth = worth.reshape(-1, 2)
        kept &= (sizes.max(axis=1) >= FEW_ROWS) & worth.any(axis=1)
        self._free(parents[~kept].tolist())
        lines[larger[kept]] = lines[parents[kept]]
        lines[parents] = -1
        build = kept & (sizes.min(axis=1) >= FEW_ROWS)
        build[np.flatnonzero(build)[len(self.free_lines) :]] = False
        remove = kept & ~build
        for leaf in smaller[build].tolist():
            lines[leaf] = self.free_lines.pop()
        self._build(smaller[build])
        n_threads = threads_for(self.n_threads, 8 * build.sum() * self.histograms.shape[1])
        histogram.subtract(lines[larger[build]], lines[smaller[build]], self.histograms, n_threads)
        histogram.remove_rows(
            leaves,
            smaller[remove],
            lines[larger[remove]],
            self.codes,
            self.order,
            self.rows.bins,
            self.mapper.offsets,
            self.histograms,
        )
        worth = children[worth.ravel()]
        from_histogram = lines[worth] >= 0
        self._find(worth[from_histogram])
        self._find_directly(worth[~from_histogram])
        self._free(children[leaves["split"]["feature"][children] < 0].tolist())

    def _free(self, ids):
        """These leaves need their histograms no more."""
        lines = self.leaves["histogram"]
        for leaf in ids:
            if lines[leaf] >= 0:
                self.free_lines.append(int(lines[leaf]))
                lines[leaf] = -1

    def _build(self, ids):
        histogram.build(
            self.leaves,
            ids,
            self.codes,
            self.order,
            self.rows.bins,
            self.rows.packed,
            self.mapper.offsets,
            self.packed_cells,
            self.histograms,
            threads_for(self.n_threads, self._n_rows(ids) * self.codes.shape[1]),
        )

    def _rules(self):
        rows = self.rows
        return (
            self.l2_regularization,
            self.min_gain,
            rows.gradient_unit,
            rows.hessian_unit,
            self.min_samples_leaf,
            max(1, min(math.ceil(self.min_hessian / rows.hessian_unit), 2**32 - 1)),
        )

    def _find(self, ids):
        if len(ids):
            n_threads = threads_for(self.n_threads, 8 * len(ids) * self.histograms.shape[1])
            splitting.find(
                self.leaves,
                ids,
                self.histograms,
                self.mapper.offsets,
                self.mapper.is_categorical,
                self.constraints.monotone,
                np.empty((len(ids), n_threads), SPLIT),
                *self._rules(),
                n_threads,
            )

    def _find_directly(self, ids):
        for some, features in self.constraints.candidates(self.leaves, ids, self.key):
            n_threads = threads_for(self.n_threads, self._n_rows(some) * features.shape[1])
            splitting.find_directly(
                self.leaves,
                some,
                features,
                self.codes,
                self.order,
                self.rows.bins,
                self.mapper.offsets,
                self.mapper.is_categorical,
                self.constraints.monotone,
                self.cells,
                np.empty((len(some), n_threads if len(some) < n_threads else 1), SPLIT),
                *self._rules(),
                n_threads,
            )
