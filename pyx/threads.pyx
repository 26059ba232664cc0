"""How many threads OpenMP would start here: what OMP_NUM_THREADS and threadpoolctl allow."""

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


def max_threads():
    """The size of the team that a parallel region would get; 1 in a build without OpenMP."""
    return openmp_threads()
