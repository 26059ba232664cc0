"""Leaves that wait for their split: the best first, or one layer after the other."""
import numpy as np

from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memmove


cdef enum:
    LAST = 8  # splits of a tree: for so few nobody waits, or searches children that may not split


cpdef int64_t most_together(int64_t n_splits) noexcept:
    """How many of the best leaves are split together, where a tree may have so many splits more.

    Where these are many the last of them, too, would have its turn if it promised less than all children
    of the others: with 2 of each of n - 1 others, and those themselves, it is the split number 3 n - 2. The
    last 8 splits of a tree are those of the leaves that promise most then.
    """
    return max((n_splits + 2) // 3, min(n_splits, LAST))


cdef class Queue:
    """Leaves that wait. Which of them have their turn is said by `WholeLayers` and `BestLeaves`.

    Parameters
    ----------
    promises : ndarray of float64
        Of all leaves, now and whenever some are pushed; 0 keeps a leaf out.
    """

    def __init__(self, promises):
        self.look_at(promises)
        self.make_room(64)

    cdef void make_room(self, int64_t n):
        leaves = np.empty(n, np.int32)
        if self.n:
            leaves[: self.n] = self.leaves[: self.n]
        self.leaves = leaves

    def look_at(self, promises):
        """The leaves have moved."""
        self.promises = promises

    cpdef void begin(self, bint one_by_one):
        """A new tree: no leaf waits.

        ``one_by_one``: whether a split may change what others promise, or leaves are so few that each counts.
        """
        self.n, self.one_by_one = 0, one_by_one

    def renew(self, const int32_t[::1] ids):
        """These leaves are all that may be split, with other gains than before."""
        self.n = 0
        self.push(ids)

    cpdef void push(self, const int32_t[::1] ids):
        """These may be split, too."""
        raise NotImplementedError

    def pop(self, int64_t limit):
        """int32[n]: the leaves whose turn it is, ``limit`` at most."""
        cdef int32_t[::1] ids = np.empty(self.n_next(limit), np.int32)
        self.take(ids)
        return ids.base

    cdef int64_t n_next(self, int64_t limit) noexcept:
        """How many these are."""
        return 0

    cdef void take(self, int32_t[::1] ids):
        """So many of them, which wait no more."""

    def give_up(self, int64_t limit):
        """int32[n]: those whose turn never comes where only ``limit`` may be split, if promises are kept."""
        return np.array(self.hopeless(limit))

    cdef const int32_t[::1] hopeless(self, int64_t limit):
        """A view of those."""
        return self.leaves[:0]


cdef class WholeLayers(Queue):
    """Hands out all leaves of a layer together, the best of them where only a few more may split."""

    cpdef void push(self, const int32_t[::1] ids):
        """These are the layer."""
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
    """Hands out the leaves that promise most; of equal ones the oldest.

    ::

        leaves     | 7 | 3 | 12 | ...      by falling promise, of equal ones the oldest first
        promised   | 9 | 4 |  4 | ...      as it was when they came

    Several together, where many may still be split: these would be split anyway, one after the other, but for
    grandchildren of the first of them that promise more; and the last few of a tree (see `most_together`).
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
        return min(self.n, limit, 1 if self.one_by_one else most_together(limit))

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
