"""Threads of OpenMP: how many it would start here, and room of their own to work in."""
import numpy as np

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #define openmp_threads() omp_get_max_threads()
    #else
    #define openmp_threads() 1
    #endif
    """
    int openmp_threads() nogil

cdef enum:
    APART = 1 << 16  # bytes: processors fetch up to 40 KB beyond what they go through in order


def max_threads():
    """The size of the team that a parallel region would get; 1 in a build without OpenMP.

    OMP_NUM_THREADS and threadpoolctl say how many that may be.
    """
    return openmp_threads()


def room_for_each(n_threads, n, dtype):
    """Zeros, shape (n_threads, n or more): a row for each thread to write to.

    Rows are so far apart, and from what lies before them, that a processor which fetches ahead takes no lines
    of the cache from one that writes to them. What lies between is never touched.
    """
    gap = -(-APART // np.dtype(dtype).itemsize)
    return np.zeros(gap + n_threads * (n + gap), dtype)[gap:].reshape(n_threads, n + gap)
