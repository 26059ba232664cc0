"""Queues of leaves that wait for their split: the best leaves first, or one layer after the other."""
import numpy as np

from libc.math cimport INFINITY
from libc.stdint cimport int32_t, int64_t
from libc.string cimport memcpy, memmove


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
        self.put_back(ids)

    cpdef void push(self, const int32_t[::1] ids, const int32_t[::1] parents=None):
        """Add the root, or the children of these leaves, which were split: two of each, in the same order."""
        raise NotImplementedError

    cpdef void put_back(self, const int32_t[::1] ids):
        """Add leaves that were handed out and not split."""
        self.push(ids)

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

    cpdef void push(self, const int32_t[::1] ids, const int32_t[::1] parents=None):
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

    Several leaves are handed out together if each of them would have its turn even if descendants of the
    others that promise more came first. What descendants promise is judged by the splits of the tree so far:
    if leaves that were split promised r times what their parents did, on average, children of a leaf that
    promises p promise at most r p, their children r^2 p, and so on. The leaf that comes after n others then
    waits for at most n (1 + 2 + ... + 2^g) splits, where g generations of the best leaf promise more than it.
    Splits by rare values part few rows from a large leaf, whose other rows promise nearly as much again: r is
    near 1, and leaves are handed out almost one by one.
    """

    cdef void make_room(self, int64_t n):
        promised = np.empty(n)
        if self.n:
            promised[: self.n] = self.promised[: self.n]
        self.promised = promised
        Queue.make_room(self, n)

    def __cinit__(self, promises):
        self.above = np.empty(0)

    def attach(self, promises):
        Queue.attach(self, promises)
        self.above = np.append(self.above, np.empty(len(promises) - len(self.above)))

    cpdef void begin(self, bint one_by_one):
        Queue.begin(self, one_by_one)
        self.sum_of_ratios, self.n_ratios = 0, 0
        if self.above.shape[0]:
            self.above[0] = INFINITY

    cpdef void push(self, const int32_t[::1] ids, const int32_t[::1] parents=None):
        cdef int64_t i, n_parents = 0 if parents is None else parents.shape[0]
        cdef double promise
        for i in range(n_parents):
            promise = self.promises[parents[i]]
            if promise < INFINITY and self.above[parents[i]] < INFINITY:
                self.sum_of_ratios += promise / self.above[parents[i]]
                self.n_ratios += 1
            self.above[ids[2 * i]] = self.above[ids[2 * i + 1]] = promise
        self.put_back(ids)

    cpdef void put_back(self, const int32_t[::1] ids):
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
        cdef int64_t most = min(self.n, limit, 1) if self.one_by_one else min(self.n, limit)
        cdef int64_t n = min(1, most), n_before = 1
        cdef double ratio = self.sum_of_ratios / self.n_ratios if self.n_ratios else 1.0
        cdef double promise = ratio * self.promised[0] if n else 0.0  # of the generation that comes next
        while n < most:
            while self.promised[n] < promise and n * n_before < limit:
                n_before, promise = 1 + 2 * n_before, ratio * promise
            if n * n_before >= limit:
                break
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
