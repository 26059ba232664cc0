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
    APART = 128  # bytes: two lines of 64, which processors fetch together


def max_threads():
    """The size of the team that a parallel region would get; 1 in a build without OpenMP.

    OMP_NUM_THREADS and threadpoolctl say how many that may be.
    """
    return openmp_threads()


def room_for_each(n_threads, n, dtype):
    """Zeros, shape (n_threads, n or more): a row for each thread to write to.

    No two rows share a line of the cache: threads that write to the same one, if to other places of it, wait
    for each other.
    """
    return np.zeros((n_threads, n - -APART // np.dtype(dtype).itemsize), dtype)
