"""Round the gradients of a round to integers; see rounding.h."""
import numpy as np

from cython.parallel cimport prange
from libc.float cimport DBL_MIN
from libc.math cimport NAN, frexp, ldexp
from libc.stdint cimport int64_t, uint32_t, uint64_t

from ranktrees._core.support.views cimport run_in

cdef extern from "growing/rounding.h" nogil:
    uint64_t largest_bits(int64_t n, const double* values, uint64_t* different) noexcept
    int64_t total_steps(int64_t n, const double* values, double scale) noexcept
    enum: ROWS_TOGETHER
    ctypedef struct Unrounded "unrounded":
        const double* gradients
        const double* hessians
        double hessian
        double gradient_scale
        double hessian_scale
        int bits
        int sampled
        double sure_gradient
        double sure_hessian
        uint64_t key
        const int64_t* numbers
    void round_stretch(
        int64_t n, int64_t first, const uint32_t* rows, const Unrounded* of, int64_t* sums
    ) noexcept
    int64_t find_loud(
        int64_t n, int64_t first, const uint32_t* rows, const Unrounded* of, uint64_t* loud
    ) noexcept
    uint64_t portable_key(uint64_t seed, uint64_t stream)
    double portable_from_bits(uint64_t bits)
    uint64_t portable_to_bits(double x)

cdef extern from "support/listing.h" nogil:
    void list_apart(
        int64_t n, int64_t first, const uint32_t* rows, const uint64_t* marks, uint32_t* marked,
        uint32_t* others,
    ) noexcept

cdef extern from "support/bins.h" nogil:
    int64_t total_of(int64_t n, const int64_t* sums) noexcept

cdef enum:
    MOST_STRETCHES = 256
    TOGETHER = 2048  # values that are looked over at a time
    FIRST_BITS = 30  # bits of the largest value in the sum from which the scale is found
    MOST_BITS = 50   # bits of the largest value; more do not survive the rounding
    STEPS = 8        # the steps of a value that is just large enough for its row to be in every sample


cdef inline int64_t chunks_of(int64_t n_rows) noexcept nogil:
    """The number of blocks of ROWS_TOGETHER rows."""
    return (n_rows + ROWS_TOGETHER - 1) // ROWS_TOGETHER


def look_over(
    const double[::1] gradients,   # IN
    double gradient_scale,
    const double[::1] hessians,    # IN   of all rows, or a single one that all rows have
    double hessian_scale,
    int n_threads,
):
    """(the largest |gradient|, the largest hessian, whether all hessians are the same, the two totals).

    The totals are the sum of ``rint(|gradient| * gradient_scale)`` and that of the hessians on their scale.
    They are arbitrary if the largest value on its scale is 2^51 or more. NaN counts as larger than infinity.
    """
    cdef int64_t n_stretches = min(n_threads, MOST_STRETCHES), s
    cdef Seen[MOST_STRETCHES] gradient, hessian
    for s in prange(
        n_stretches, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
    ):
        gradient[s] = look_over_stretch(gradients, s, n_stretches, gradient_scale)
        hessian[s] = look_over_stretch(hessians, s, n_stretches, hessian_scale)
    for s in range(1, n_stretches):
        add_seen(&gradient[0], gradient[s])
        add_seen(&hessian[0], hessian[s])
    return (
        portable_from_bits(gradient[0].largest), portable_from_bits(hessian[0].largest),
        hessian[0].different == 0, <int64_t>gradient[0].total, <int64_t>hessian[0].total,
    )


cdef struct Seen:
    uint64_t largest    # as bits
    uint64_t different  # not 0 if some value differs from the first of all
    uint64_t total      # wraps round if it is too large


cdef inline Seen look_over_stretch(
    const double[::1] values, int64_t s, int64_t n_stretches, double scale
) noexcept nogil:
    """Look over one stretch of values, some at a time, so that they stay in the cache."""
    cdef int64_t i = bound(values, s, n_stretches), stop = bound(values, s + 1, n_stretches), n
    cdef uint64_t different
    cdef Seen seen, here
    seen.largest = seen.different = 0
    seen.total = 0
    while i < stop:
        n = min(<int64_t>TOGETHER, stop - i)
        here.largest = largest_bits(n, run_in(values, i), &different)
        here.different = different | (portable_to_bits(values[i]) ^ portable_to_bits(values[0]))
        here.total = <uint64_t>total_steps(n, run_in(values, i), scale)
        add_seen(&seen, here)
        i += n
    return seen


cdef inline void add_seen(Seen* seen, Seen other) noexcept nogil:
    seen.largest = max(seen.largest, other.largest)
    seen.different |= other.different
    seen.total += other.total


cdef inline int64_t bound(const double[::1] values, int64_t s, int64_t n_stretches) noexcept nogil:
    """Where a stretch of values begins."""
    return values.shape[0] * s // n_stretches


cdef inline int places_of(double largest) noexcept nogil:
    cdef int exponent
    frexp(largest, &exponent)
    return min(FIRST_BITS - exponent, 1000)


def first_scale(double largest):
    """The number of steps of 1.0, a power of two, if the largest value has about 2^30."""
    return ldexp(1.0, places_of(largest))


def scale_of(double largest, int64_t total, int64_t n_rows, int room, sampling=None, double means=0):
    """The number of steps of 1.0, and the size that is sure to be drawn.

    1.0 has as many steps as keep the sum of all values below 2^room. With sampling, it also has no more than
    give the size that is sure to be drawn `STEPS` steps.

    Parameters
    ----------
    largest : float
        The largest size of a value.
    total : int
        The sum of all sizes, on the scale of `first_scale`.
    n_rows : int
    room : int
        The bits that the sum may have.
    sampling : float or None
        The size that is sure to be drawn is the larger of ``largest`` and ``means`` mean sizes, divided by
        this. None without sampling.
    means : float

    Returns
    -------
    scale : float
        The number of steps of 1.0.
    sure : float
        The size that is sure to be drawn; NaN without sampling.
    """
    cdef int places = places_of(largest), bits
    cdef double sure = NAN, most = total + n_rows, scale  # a row may be rounded up by one step
    if sampling is not None:
        sure = max(largest, means * ldexp(<double>total / n_rows, -places)) / <double>sampling
        sure = max(sure if largest > 0 else 1.0, DBL_MIN)
        most += n_rows * ldexp(sure, places)  # or stand for other rows
    frexp((((<int64_t>1) << room) - 1 - n_rows) / most, &bits)
    scale = ldexp(1.0, min(places + min(bits - 1, MOST_BITS - FIRST_BITS), 1000))
    return scale if sampling is None else min(scale, STEPS / sure), sure


cdef class Rounder:
    """Rounds the gradient and hessian of each row into one integer.

    Parameters
    ----------
    order : ndarray of uint32, shape (n_rows,)
        Receives the rows of the tree, quiet rows that are set apart after the others.
    sums : ndarray of int64, shape (n_rows,)
        Receives the sums of the others, in the same order.
    numbers : ndarray of int64, shape (n_rows,), default=None
        The numbers of the rows, on which draws depend. If None, 0, 1, ...
    """

    cdef uint32_t[::1] order
    cdef int64_t[::1] sums
    cdef const int64_t[::1] numbers
    cdef uint64_t[::1] loud  # a bit for each row of the tree, for rows in whole blocks of ROWS_TOGETHER
    cdef Unrounded of

    def __init__(self, order, sums, numbers=None):
        self.order, self.sums, self.numbers = order, sums, numbers
        self.loud = np.empty(chunks_of(len(order)) * (ROWS_TOGETHER // 64), np.uint64)

    def begin(self, double gradient_scale, double hessian_scale, int bits):
        """Begin a round: the steps of 1.0, and the bits that a hessian has. No row is left out."""
        self.of.gradient_scale, self.of.hessian_scale, self.of.bits = gradient_scale, hessian_scale, bits
        self.of.sampled = False

    def sample(self, double sure_gradient, double sure_hessian, uint64_t seed, uint64_t stream):
        """Take a sample in this round: rows as large as this for sure, others by the draws of a key."""
        self.of.sampled, self.of.key = True, portable_key(seed, stream)
        self.of.sure_gradient, self.of.sure_hessian = sure_gradient, sure_hessian

    def round(
        self,
        const double[::1] gradients,   # IN   of all rows
        const double[::1] hessians,    # IN   of all rows, or a single one that all rows have
        const uint32_t[::1] drawn,     # IN   the rows of the tree, or None for all
        bint apart,                    # whether quiet rows, which are rounded to nothing, are set apart
        int n_threads,
    ):
        """Round the rows of the tree. Quiet rows are not set apart if they are few. Both parts stay in order.

        Returns
        -------
        gradient, hessian : int
            The total of each.
        n_loud : int
            The number of rows without the quiet rows that are set apart.
        """
        cdef int64_t n = gradients.shape[0] if drawn is None else drawn.shape[0]
        cdef int64_t n_chunks = chunks_of(n)
        cdef int64_t n_stretches = min(n_threads, MOST_STRETCHES), s, total = 0, all_rows = 0
        cdef int64_t[MOST_STRETCHES] first, size, n_loud, totals
        cdef int64_t[MOST_STRETCHES + 1] front
        cdef const uint32_t* rows = run_in(drawn, 0) if drawn is not None and n else NULL
        cdef uint32_t* order
        cdef int64_t* sums
        cdef uint64_t* loud
        cdef Unrounded of = self.of
        if n == 0:
            return 0, 0, 0
        order, sums, loud = run_in(self.order, 0), run_in(self.sums, 0), run_in(self.loud, 0)
        of.gradients, of.hessians = run_in(gradients, 0), &hessians[0] if hessians.shape[0] > 1 else NULL
        of.hessian = hessians[0]
        of.numbers = run_in(self.numbers, 0) if self.numbers is not None else NULL
        for s in range(n_stretches):
            first[s] = n_chunks * s // n_stretches * ROWS_TOGETHER
            size[s] = min(n_chunks * (s + 1) // n_stretches * ROWS_TOGETHER, n) - first[s]
        if apart:
            for s in prange(
                n_stretches, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
                schedule="static",
            ):
                n_loud[s] = find_loud(
                    size[s], first[s], rows + first[s] if rows else NULL, &of, loud + first[s] // 64
                )
                total += n_loud[s]
        apart = apart and total <= n - n // 8
        total = total if apart else n
        front[0] = 0
        for s in range(n_stretches):
            n_loud[s] = n_loud[s] if apart else size[s]
            front[s + 1] = front[s] + n_loud[s]
        for s in prange(
            n_stretches, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="static"
        ):
            list_apart(
                size[s], first[s], rows + first[s] if rows else NULL,
                loud + first[s] // 64 if apart else NULL, order + front[s],
                order + total + first[s] - front[s],
            )
            if apart:
                round_stretch(n_loud[s], 0, order + front[s], &of, sums + front[s])
            else:
                round_stretch(size[s], first[s], rows + first[s] if rows else NULL, &of, sums + first[s])
            totals[s] = total_of(n_loud[s], sums + front[s])
        for s in range(n_stretches):
            all_rows += totals[s]
        return all_rows >> of.bits, all_rows & ((<int64_t>1 << of.bits) - 1), total
