"""Sums of values that are resampled many times. Values are integers, so that every sum is exact."""
from cython.parallel cimport prange
from libc.stdint cimport int64_t, uint64_t

from records cimport portable_random, portable_uniform


def drawn_sums(
    uint64_t seed, uint64_t stream,
    const int64_t[::1] values,          # IN
    int64_t[::1] sums,                  # OUT  one per resample
    int n_threads,
):
    """Sum n values drawn with replacement from n, for each r; draw i is by (seed, stream, r n + i)."""
    cdef int64_t n = values.shape[0], r, i, sum
    for r in prange(
        sums.shape[0], nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        sum = 0
        for i in range(n):
            sum = sum + values[<int64_t>(portable_uniform(portable_random(seed, stream, r * n + i)) * n)]
        sums[r] = sum


def flipped_sums(
    uint64_t seed, uint64_t stream,
    const int64_t[::1] values,          # IN
    bint every,                         # whether resample r flips the values whose bits are set in r
    int64_t[::1] sums,                  # OUT  one per resample
    int n_threads,
):
    """Sum all values with signs that are drawn, for each r: 64 signs per word, by (seed, stream, word)."""
    cdef int64_t n = values.shape[0], n_words = (n + 63) // 64, r, i, sum
    cdef uint64_t flips
    for r in prange(
        sums.shape[0], nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        sum = 0
        flips = 0
        for i in range(n):
            if i % 64 == 0:
                flips = <uint64_t>r if every else portable_random(seed, stream, r * n_words + i // 64)
            sum = sum + (-values[i] if flips >> (i % 64) & 1 else values[i])
        sums[r] = sum
