"""A round's gradients as integers; see rounding.h."""
from cython.parallel cimport prange
from libc.stdint cimport int64_t, uint32_t, uint64_t

cdef extern from "rounding.h" nogil:
    uint64_t largest_bits(int64_t n, const double* values, uint64_t* different) noexcept
    int64_t total_steps(int64_t n, const double* values, double scale) noexcept
    void round_stretch(
        int64_t n, const uint32_t* order, const double* gradients, const double* hessians,
        double gradient_scale, double hessian_scale, int bits, int same, int64_t* sums,
    ) noexcept
    void round_stretch_at_random(
        int64_t n, int64_t first, const uint32_t* order, const int64_t* numbers, const double* gradients,
        const double* hessians, double gradient_scale, double hessian_scale, int bits, int sampled,
        uint64_t seed, uint64_t stream, int64_t* sums,
    ) noexcept
    double portable_from_bits(uint64_t bits)

cdef extern from "bins.h" nogil:
    int64_t total_of(int64_t n, const int64_t* sums) noexcept

cdef enum:
    MOST_STRETCHES = 256


def largest(const double[::1] values, int n_threads):
    """(the largest absolute value, NaN if any value is NaN; whether all values are the same)."""
    cdef int64_t n = values.shape[0], n_stretches = min(n_threads, MOST_STRETCHES), s, first
    cdef uint64_t[MOST_STRETCHES] most
    cdef uint64_t[MOST_STRETCHES] different
    cdef const double* start = &values[0] if n else NULL
    for s in prange(
        n_stretches, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        first = n * s // n_stretches
        most[s] = largest_bits(n * (s + 1) // n_stretches - first, start + first, &different[s])
    for s in range(1, n_stretches):
        most[0] = max(most[0], most[s])
        different[0] |= different[s]
        if n * (s + 1) // n_stretches > n * s // n_stretches:
            different[0] |= values[0] != values[n * s // n_stretches]
    return portable_from_bits(most[0]), different[0] == 0


def total(const double[::1] values, double scale, int n_threads):
    """The sum of ``rint(|value| * scale)``."""
    cdef int64_t n = values.shape[0], n_stretches = min(n_threads, MOST_STRETCHES), s, first
    cdef int64_t[MOST_STRETCHES] totals
    cdef const double* start = &values[0] if n else NULL
    for s in prange(
        n_stretches, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        first = n * s // n_stretches
        totals[s] = total_steps(n * (s + 1) // n_stretches - first, start + first, scale)
    for s in range(1, n_stretches):
        totals[0] += totals[s]
    return totals[0]


def round_rows(
    const uint32_t[::1] order,     # IN   the rows of the tree, or None for all
    const double[::1] gradients,   # IN
    const double[::1] hessians,    # IN
    double gradient_scale,
    double hessian_scale,
    int bits,
    bint same,
    bint at_random,                # up or down, by (seed, stream, number of the row)
    bint sampled,                  # both by one draw
    uint64_t seed,
    uint64_t stream,
    const int64_t[::1] numbers,    # IN   of the rows, or None: 0, 1, ...
    int64_t[::1] sums,             # OUT  one per row of the tree, in the order of ``order``
    int n_threads,
):
    """Each row's gradient and hessian in one integer; returns their total as (gradient, hessian)."""
    cdef int64_t n = sums.shape[0], n_stretches = min(n_threads, MOST_STRETCHES), s, first, all_rows = 0
    cdef int64_t[MOST_STRETCHES] totals
    cdef const uint32_t* rows
    cdef const int64_t* own_numbers = &numbers[0] if numbers is not None and numbers.shape[0] else NULL
    if n == 0:
        return 0, 0
    for s in prange(
        n_stretches, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        first = n * s // n_stretches
        rows = &order[first] if order is not None else NULL
        if at_random:
            round_stretch_at_random(
                n * (s + 1) // n_stretches - first, first, rows, own_numbers, &gradients[0], &hessians[0],
                gradient_scale, hessian_scale, bits, sampled, seed, stream, &sums[first],
            )
        else:
            round_stretch(
                n * (s + 1) // n_stretches - first, rows, &gradients[0 if order is not None else first],
                &hessians[0 if order is not None else first], gradient_scale, hessian_scale, bits, same,
                &sums[first],
            )
        totals[s] = total_of(n * (s + 1) // n_stretches - first, &sums[first])
    for s in range(n_stretches):
        all_rows += totals[s]
    return all_rows >> bits, all_rows & ((<int64_t>1 << bits) - 1)
