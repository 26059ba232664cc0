"""OpenMP threads: how many there would be, how they compute, and memory for each of them to work in."""
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

cdef extern from "support/floats.h" nogil:
    ctypedef struct fenv_t:
        pass
    const fenv_t* FE_DFL_ENV
    int fegetenv(fenv_t*)
    int fesetenv(const fenv_t*)
    bint are_floats_by_standard()

cdef enum:
    LINE_BYTES = 64

LINE = LINE_BYTES  # a cache line: what processors fetch from memory at once
LINES = 2 * LINE   # processors fetch two lines together
AHEAD = 1 << 16  # bytes: in sequential reads, processors prefetch up to 40 KB ahead


def max_threads():
    """The number of threads that a parallel region would get; 1 in a build without OpenMP.

    OMP_NUM_THREADS and threadpoolctl set this number.
    """
    return openmp_threads()


cdef class StandardFloats:
    """Within a ``with`` statement, threads compute by IEEE 754, whatever mode a library has set.

    Libraries compiled with ``-ffast-math`` make the processor treat subnormal numbers as zeros, and so does
    ``set_flush_denormal`` of PyTorch. This holds for the thread that loads or calls them, and for the threads
    that it starts from then on.

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
        for _ in prange(  # threads keep the mode of the one that first needed them
            self.n_threads, nogil=True, num_threads=self.n_threads, schedule="static", chunksize=1,
        ):
            if not are_floats_by_standard():
                fesetenv(FE_DFL_ENV)

    def __exit__(self, *_):
        if self.are_others:
            fesetenv(&self.before)


def aligned(Py_ssize_t n_bytes):
    """Allocate uint8[n_bytes], not initialised, that begins at a cache line."""
    memory = np.empty(n_bytes + LINE_BYTES, np.uint8)
    cdef uint8_t[::1] view = memory
    cdef Py_ssize_t first = LINE_BYTES - <Py_ssize_t>(<size_t>&view[0] % LINE_BYTES)
    return memory[first : first + n_bytes]


def room_for_each(n_threads, n, dtype, apart=LINES):
    """Allocate zeros of shape (n_threads, n or more): a row for each thread to write to.

    Each row begins at a cache line. There are at least ``apart`` bytes between the rows, and before the first
    one. Threads that write to the same cache line wait for each other, even if they write to different places
    in it. A thread that goes through much memory in order likewise waits for a thread that writes less than
    `AHEAD` beyond. The bytes between the rows are never touched.
    """
    dtype = np.dtype(dtype)
    whole = math.lcm(LINES, dtype.itemsize)
    length = -(-(n * dtype.itemsize + apart) // whole) * whole
    memory = np.zeros(LINES + apart + n_threads * length, np.uint8)
    first = apart - (memory.ctypes.data + apart) % -LINES
    return memory[first : first + n_threads * length].view(dtype).reshape(n_threads, length // dtype.itemsize)
