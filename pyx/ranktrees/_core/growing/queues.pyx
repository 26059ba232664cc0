"""Queues of leaves that wait for their split: the best leaves first, or one layer after the other."""
import numpy as np

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memmove


cdef enum:
    LAST = 8  # the last splits of a tree, which are made together: no waiting, no search of their children

cdef double SHARE = 0.5  # of the best promise that the others of a batch have at least


cpdef int64_t most_together(int64_t n_splits) noexcept:
    """The number of the best leaves that are split together if a tree may have ``n_splits`` more splits.

    A batch of n leaves is chosen so that each would be split in any case, even if all children of the others
    came before it: after n - 1 leaves and 2 (n - 1) children, the last of the batch is split number 3 n - 2.
    The last 8 splits of a tree are exempt: they go to the leaves that promise most at that time.
    """
    return max((n_splits + 2) // 3, min(n_splits, LAST))


cdef class Queue:
    """Leaves that wait. The subclasses `WholeLayers` and `BestLeaves` decide whose turn it is.

    Parameters
    ----------
    promises : ndarray of float64
        The promised gains of all leaves, which are read whenever leaves are pushed. A leaf whose promise is 0
        stays out of the queue.
    """

    def __init__(self, promises):
        self.attach(promises)
        self.make_room(64)

    cdef void make_room(self, int64_t n):
        leaves = np.empty(n, np.int32)
        if self.n:
            leaves[: self.n] = self.leaves[: self.n]
        self.leaves = leaves

    def attach(self, promises):
        """Use these promises, as the leaves have moved in memory."""
        self.promises = promises

    cpdef void begin(self, bint one_by_one):
        """Begin a new tree: no leaf waits.

        ``one_by_one`` has one leaf split at a time, because a split may change the promises of others, or
        because the tree has so few leaves that each counts.
        """
        self.n, self.one_by_one = 0, one_by_one

    def renew(self, const int32_t[::1] ids):
        """Replace the leaves that wait by these, whose promises have changed."""
        self.n = 0
        self.push(ids)

    cpdef void push(self, const int32_t[::1] ids):
        """Add leaves that may be split."""
        raise NotImplementedError

    def pop(self, int64_t limit):
        """int32[n]: the leaves whose turn it is, at most ``limit``."""
        cdef int32_t[::1] ids = np.empty(self.n_next(limit), np.int32)
        self.take(ids)
        return ids.base

    cdef int64_t n_next(self, int64_t limit) noexcept:
        """The number of leaves whose turn it is."""
        return 0

    cdef void take(self, int32_t[::1] ids):
        """Take as many leaves as ``ids`` has places out of the queue."""

    def give_up(self, int64_t limit):
        """int32[n]: leaves whose turn never comes if only ``limit`` more are split and promises are kept."""
        return np.array(self.hopeless(limit))

    cdef const int32_t[::1] hopeless(self, int64_t limit):
        """`give_up` as a view."""
        return self.leaves[:0]


cdef class WholeLayers(Queue):
    """Hands out all leaves of a layer together, or only the best of them if few splits are left."""

    cpdef void push(self, const int32_t[::1] ids):
        """Set the layer."""
        cdef int64_t i
        if ids.shape[0] > self.leaves.shape[0]:
            self.make_room(2 * ids.shape[0])
        self.n = 0
        for i in range(ids.shape[0]):
            if self.promises[ids[i]] != 0:
                self.leaves[self.n] = ids[i]
                self.n += 1

    cdef int64_t n_next(self, int64_t limit) noexcept:
        return min(self.n, limit)

    cdef void take(self, int32_t[::1] ids):
        layer = np.asarray(self.leaves[: self.n])
        if ids.shape[0] < self.n:
            best = np.argsort(-np.asarray(self.promises)[layer], kind="stable")[: ids.shape[0]]
            layer = np.sort(layer[best])
        np.asarray(ids)[:] = layer
        self.n = 0


cdef class BestLeaves(Queue):
    """Hands out the leaves that promise most; of equal ones, the oldest.

    ::

        leaves     | 7 | 3 | 12 | ...      by descending promise, of equal ones the oldest first
        promised   | 9 | 4 |  4 | ...      their promises when they were pushed

    If many splits are left, several leaves are handed out together. They would be split in any case, one
    after the other, unless grandchildren of the first of them promise more. The last few leaves of a tree are
    also handed out together (see `most_together`). Where single splits gain little of what there is to gain,
    as those by rare values, the best splits are those of descendants of the best leaf. So a leaf that
    promises less than half of what the best one does has to wait.
    """

    cdef void make_room(self, int64_t n):
        promised = np.empty(n)
        if self.n:
            promised[: self.n] = self.promised[: self.n]
        self.promised = promised
        Queue.make_room(self, n)

    cpdef void push(self, const int32_t[::1] ids):
        cdef int64_t i
        if self.n + ids.shape[0] > self.leaves.shape[0]:
            self.make_room(2 * (self.n + ids.shape[0]))
        for i in range(ids.shape[0]):
            if self.promises[ids[i]] != 0:
                self.insert(ids[i], self.promises[ids[i]])

    cdef void insert(self, int32_t leaf, double promise) noexcept:
        cdef int64_t low = 0, high = self.n, middle
        while low < high:
            middle = (low + high) // 2
            if self.promised[middle] > promise or (
                self.promised[middle] == promise and self.leaves[middle] < leaf
            ):
                low = middle + 1
            else:
                high = middle
        memmove(&self.leaves[0] + low + 1, &self.leaves[0] + low, (self.n - low) * sizeof(int32_t))
        memmove(&self.promised[0] + low + 1, &self.promised[0] + low, (self.n - low) * sizeof(double))
        self.leaves[low], self.promised[low] = leaf, promise
        self.n += 1

    cdef int64_t n_next(self, int64_t limit) noexcept:
        cdef int64_t most = min(self.n, limit, 1 if self.one_by_one else most_together(limit))
        cdef int64_t n = min(1, most)
        while n < most and self.promised[n] >= SHARE * self.promised[0]:
            n += 1
        return n

    cdef void take(self, int32_t[::1] ids):
        cdef int64_t n = ids.shape[0]
        if n == 0:
            return
        self.n -= n
        memcpy(&ids[0], &self.leaves[0], n * sizeof(int32_t))
        memmove(&self.leaves[0], &self.leaves[0] + n, self.n * sizeof(int32_t))
        memmove(&self.promised[0], &self.promised[0] + n, self.n * sizeof(double))

    cdef const int32_t[::1] hopeless(self, int64_t limit):
        return self.leaves[min(limit, self.n) : self.n]
