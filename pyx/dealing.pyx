"""Queries dealt to threads, round by round: who has a query changes no result, but the time that it takes.

    rows       0             n/3            2n/3             n
    thread 0   own: ------->  then: ------>  then: ------->       as far as others have left something
    thread 1   then: ------>  own: ------->  then: ------->
    thread 2   then: ------>  then: ------>  own: -------->

What a thread does to rows elsewhere it does by the same stretches: gradients and scores stay in its caches.
"""
import cython
import numpy as np

from ranktrees._core.threads import room_for_each

from libc.stdint cimport int64_t

cdef extern from "threads.h" nogil:
    int64_t count_up(int64_t* number) noexcept
    int64_t seen(const int64_t* number) noexcept


@cython.final
cdef class Deal:
    """Queries dealt to threads, to each those first that begin in its own stretch of the rows.

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
        order = np.lexsort((-(lengths // long), stretches))  # long ones first: no thread shall end with those
        self.queries = order.astype(np.int64)
        self.begins = np.searchsorted(stretches, np.arange(n_threads + 1)).astype(np.int64)
        self.taken = room_for_each(n_threads, 1, np.int64)
        self.n_stretches = n_threads

    cpdef void begin(self) noexcept nogil:
        """Deal all of them anew."""
        cdef int64_t s
        for s in range(self.n_stretches):
            self.taken[s, 0] = self.begins[s]

    cpdef int64_t take(self, int thread) noexcept nogil:
        """A query that no other thread gets; -1 where none is left."""
        cdef int64_t i, k, s
        for i in range(self.n_stretches):
            s = (thread + i) % self.n_stretches
            if seen(&self.taken[s, 0]) < self.begins[s + 1]:
                k = count_up(&self.taken[s, 0])
                if k < self.begins[s + 1]:
                    return self.queries[k]
        return -1
