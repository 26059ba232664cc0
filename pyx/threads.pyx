"""Threads of OpenMP: how many it would start here, how they compute, and room of their own to work in."""
import math

import numpy as np

from cython.parallel cimport prange
from libc.stdint cimport uint8_t

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

cdef extern from "floats.h" nogil:
    ctypedef struct fenv_t:
        pass
    const fenv_t* FE_DFL_ENV
    int fegetenv(fenv_t*)
    int fesetenv(const fenv_t*)
    bint are_floats_by_standard()

cdef enum:
    LINE_BYTES = 64

LINE = LINE_BYTES  # what processors fetch from memory at once
LINES = 2 * LINE   # of which they fetch two together
AHEAD = 1 << 16  # bytes: they fetch up to 40 KB beyond what they go through in order


def max_threads():
    """The size of the team that a parallel region would get; 1 in a build without OpenMP.

    OMP_NUM_THREADS and threadpoolctl say how many that may be.
    """
    return openmp_threads()


cdef class StandardFloats:
    """Within a ``with`` statement threads compute by IEEE 754, whatever a library has told the processor.

    Those compiled with ``-ffast-math`` make it take the least numbers for zeros, as ``set_flush_denormal`` of
    PyTorch does: of the thread that loads or calls them, and of those that it starts from then on.

    Parameters
    ----------
    n_threads : int
    """

    cdef int n_threads
    cdef bint are_others
    cdef fenv_t before

    def __init__(self, int n_threads):
        self.n_threads = n_threads

    def __enter__(self):
        cdef int _
        self.are_others = not are_floats_by_standard()
        if self.are_others:
            fegetenv(&self.before)
            for _ in prange(
                self.n_threads, nogil=True, num_threads=self.n_threads, schedule="static", chunksize=1,
            ):
                fesetenv(FE_DFL_ENV)

    def __exit__(self, *_):
        if self.are_others:
            fesetenv(&self.before)


def aligned(Py_ssize_t n_bytes):
    """uint8[n_bytes], not set, beginning at a line of the cache."""
    memory = np.empty(n_bytes + LINE_BYTES, np.uint8)
    cdef uint8_t[::1] view = memory
    cdef Py_ssize_t first = LINE_BYTES - <Py_ssize_t>(<size_t>&view[0] % LINE_BYTES)
    return memory[first : first + n_bytes]


def room_for_each(n_threads, n, dtype, apart=LINES):
    """Zeros, shape (n_threads, n or more): a row for each thread to write to, which begins where a line does.

    Rows are so many bytes apart, and from what lies before them: threads that write to one line of the cache
    wait for each other, if to other places of it. So do those that go through much memory in order with
    whoever writes to less than `AHEAD` beyond. What lies between is never touched.
    """
    dtype = np.dtype(dtype)
    whole = math.lcm(LINES, dtype.itemsize)
    length = -(-(n * dtype.itemsize + apart) // whole) * whole
    memory = np.zeros(LINES + apart + n_threads * length, np.uint8)
    first = apart - (memory.ctypes.data + apart) % -LINES
    return memory[first : first + n_threads * length].view(dtype).reshape(n_threads, length // dtype.itemsize)
