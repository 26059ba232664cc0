"""Random draws that depend only on (seed, stream, counter)."""
import numpy as np

from cython.parallel cimport prange
from libc.math cimport ceil
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from ranktrees._core.support.records cimport portable_key, portable_random, portable_shuffle, portable_uniform
from ranktrees._core.support.views cimport line_in, run_in

cdef extern from "support/drawing.h" nogil:
    void draw_uniforms(uint64_t key, int64_t first, const int64_t* numbers, int64_t n, double* out) noexcept
    int64_t mark_drawn(
        uint64_t key, int64_t limit, int64_t n, int64_t first, const int64_t* numbers, const uint8_t* among,
        uint64_t* marks,
    ) noexcept
    void draw_some(
        int32_t* line, int64_t first, int64_t last, int64_t n, uint64_t key, uint64_t leaf, uint64_t* marks,
        int64_t n_words,
    ) noexcept

cdef extern from "support/listing.h" nogil:
    void list_apart(
        int64_t n, int64_t first, const uint32_t* rows, const uint64_t* marks, uint32_t* marked,
        uint32_t* others,
    ) noexcept

cdef enum:
    MOST_STRETCHES = 256


def uniforms(uint64_t seed, uint64_t stream, double[::1] out, const int64_t[::1] numbers=None):
    """Draw out[i] from [0, 1) by (seed, stream, numbers[i]), or without numbers by (seed, stream, i)."""
    cdef const int64_t* given = run_in(numbers, 0) if numbers is not None and numbers.shape[0] else NULL
    if out.shape[0]:
        draw_uniforms(portable_key(seed, stream), 0, given, out.shape[0], run_in(out, 0))


def draw_below(
    uint64_t seed, uint64_t stream, double share,
    const int64_t[::1] numbers,         # IN   the numbers of the rows, or None: 0, 1, ...
    const uint8_t[::1] among,           # IN   which rows may be drawn, or None: all
    uint64_t[::1] marks,                # OUT  a bit for each row
    uint32_t[::1] drawn,                # OUT  the rows whose uniform number is below the share, ascending,
    uint32_t[::1] left_out,             # OUT  and the other rows; both have room for all
    int n_threads=1,
):
    """Draw the rows whose uniform number is below a share. Return how many there are."""
    cdef int64_t n = drawn.shape[0], limit = <int64_t>ceil(min(share, 1.0) * 2.0**53)
    cdef int64_t n_stretches = min(n_threads, MOST_STRETCHES), s, n_before = 0
    cdef int64_t[MOST_STRETCHES + 1] first, n_drawn
    cdef const int64_t* given = run_in(numbers, 0) if numbers is not None and n else NULL
    cdef const uint8_t* may = run_in(among, 0) if among is not None and n else NULL
    cdef uint64_t key = portable_key(seed, stream)
    if n == 0:
        return 0
    first[n_stretches] = n
    for s in range(n_stretches):
        first[s] = 64 * (marks.shape[0] * s // n_stretches)
    for s in prange(
        n_stretches, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        n_drawn[s] = mark_drawn(
            key, limit, first[s + 1] - first[s], first[s], given + first[s] if given != NULL else NULL,
            may + first[s] if may != NULL else NULL, run_in(marks, first[s] // 64),
        )
    for s in range(n_stretches):
        n_before, n_drawn[s] = n_before + n_drawn[s], n_before
    for s in prange(
        n_stretches, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        list_apart(
            first[s + 1] - first[s], first[s], NULL, run_in(marks, first[s] // 64), run_in(drawn, n_drawn[s]),
            run_in(left_out, first[s] - n_drawn[s]),
        )
    return n_before


def draws(uint64_t seed, uint64_t stream, uint32_t[::1] times, int64_t n_draws):
    """Draw ``n_draws`` times with replacement, and add 1 to times[i] whenever i is drawn."""
    cdef int64_t i, n = times.shape[0]
    with nogil:
        for i in range(n_draws):
            times[<int64_t>(portable_uniform(portable_random(seed, stream, i)) * n)] += 1


def draw_features(
    uint64_t seed, uint64_t stream,
    const int32_t[::1] ids,             # IN   the leaves that draw
    const int32_t[::1] usable,          # IN   the candidates, ascending
    int64_t first,                      # IN   how many features each leaf has drawn before
    int32_t[:, ::1] drawn,              # OUT  a row per leaf: the features drawn next, ascending
):
    """Draw what `features_of_leaves` shuffles to the places from ``first`` on, if leaves share candidates."""
    cdef int64_t i, n = drawn.shape[1], width = usable.shape[0], n_words = (usable[width - 1] >> 6) + 1
    cdef int32_t[::1] line = np.empty(width, np.int32)
    cdef uint64_t[::1] marks = np.zeros(n_words, np.uint64)
    cdef uint64_t key = portable_key(seed, stream)
    with nogil:
        for i in range(ids.shape[0]):
            memcpy(run_in(line, 0), run_in(usable, 0), width * sizeof(int32_t))
            portable_shuffle(run_in(line, 0), 0, first, width, key, <uint64_t>ids[i] * width)
            draw_some(
                run_in(line, 0), first, first + n, width, key, <uint64_t>ids[i], run_in(marks, 0), n_words
            )
            memcpy(line_in(drawn, i), run_in(line, first), n * sizeof(int32_t))


def features_of_leaves(
    uint64_t seed, uint64_t stream,
    const int32_t[::1] ids,             # IN   the leaves that draw
    int32_t[:, ::1] features,           # IN and OUT  the candidates, a row per leaf, ended by -1; shuffled
):
    """Shuffle each leaf's candidates, by (seed, stream, leaf), so that its first k are a sample of k."""
    cdef int64_t i, n, width = features.shape[1]
    cdef uint64_t key = portable_key(seed, stream)
    with nogil:
        for i in range(ids.shape[0]):
            n = width
            while n > 0 and features[i, n - 1] < 0:
                n = n - 1
            portable_shuffle(line_in(features, i), 0, n, n, key, <uint64_t>ids[i] * width)


# ---- sums of values that are resampled many times: of integers, so that every sum is exact -----------------


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
