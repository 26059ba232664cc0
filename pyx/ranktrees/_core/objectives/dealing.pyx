"""Deal queries to threads in each round: which thread has a query changes no result, only the time it takes.

    rows       0             n/3            2n/3             n
    thread 0   own: ------->  then: ------>  then: ------->       then: what the other threads have left
    thread 1   then: ------>  own: ------->  then: ------->
    thread 2   then: ------>  then: ------>  own: -------->

Other work on rows is divided into the same stretches, so gradients and scores stay in the caches of a thread.
"""
import cython
import numpy as np

from ranktrees._core.support.threads import room_for_each

from libc.stdint cimport int64_t

cdef extern from "support/threads.h" nogil:
    int64_t count_up(int64_t* number) noexcept
    int64_t seen(const int64_t* number) noexcept


@cython.final
cdef class Deal:
    """Deals queries to threads: each thread first gets those that begin in its own stretch of the rows.

    Parameters
    ----------
    offsets : ndarray of int64
        Query q is the rows offsets[q]:offsets[q + 1].
    n_threads : int
    """

    def __init__(self, offsets, int n_threads):
        n_queries = len(offsets) - 1
        lengths, n_rows = np.diff(offsets), max(int(offsets[n_queries]), 1)
        stretches = offsets[: n_queries] * n_threads // n_rows
        long = 1 + 4 * n_rows // max(n_queries, 1)
        order = np.lexsort((-(lengths // long), stretches))  # long ones first: no thread should end with one
        self.queries = order.astype(np.int64)
        self.begins = np.searchsorted(stretches, np.arange(n_threads + 1)).astype(np.int64)
        self.taken = room_for_each(n_threads, 1, np.int64)
        self.n_stretches = n_threads

    cpdef void begin(self) noexcept nogil:
        """Start to deal all queries anew."""
        cdef int64_t s
        for s in range(self.n_stretches):
            self.taken[s, 0] = self.begins[s]

    cpdef int64_t take(self, int thread) noexcept nogil:
        """Take a query that no other thread gets; -1 if none is left."""
        cdef int64_t i, k, s
        for i in range(self.n_stretches):
            s = (thread + i) % self.n_stretches
            if seen(&self.taken[s, 0]) < self.begins[s + 1]:
                k = count_up(&self.taken[s, 0])
                if k < self.begins[s + 1]:
                    return self.queries[k]
        return -1
