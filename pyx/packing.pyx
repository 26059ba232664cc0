"""Codes to cells, and the cells of several features to one byte; see joint.h."""
from cython.parallel cimport prange
from libc.stdint cimport int64_t, uint8_t
from libc.string cimport memset

from records cimport Digit

cdef enum:
    CODES = 256
    ROWS = 256  # packed together, while their codes stay in the cache


def count_codes(const uint8_t[:, :] codes, int64_t[:, ::1] counts, int n_threads):
    """counts[f, c]: how many rows have code c of feature f; ``codes`` feature by feature."""
    cdef int64_t n_rows = codes.shape[0], f
    if n_rows == 0:
        return
    for f in prange(
        codes.shape[1], nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
    ):
        count_column(&codes[0, f], n_rows, &counts[f, 0])


cdef void count_column(const uint8_t* column, int64_t n_rows, int64_t* counts) noexcept nogil:
    cdef int64_t[CODES] odd
    cdef int64_t i
    memset(odd, 0, sizeof(odd))
    memset(counts, 0, sizeof(odd))
    for i in range(0, n_rows - 1, 2):  # two tables, so that a run of one code does not wait for itself
        counts[column[i]] += 1
        odd[column[i + 1]] += 1
    if n_rows & 1:
        counts[column[n_rows - 1]] += 1
    for i in range(CODES):
        counts[i] += odd[i]


def pack(
    const uint8_t[:, :] codes,       # IN   feature by feature
    const Digit[::1] digits,         # IN   byte by byte
    const uint8_t[:, ::1] shares,    # IN   one line per digit: what each code adds to its byte
    uint8_t[:, ::1] bytes,           # OUT
    int n_threads,
):
    """Set each row's bytes."""
    cdef int64_t n_rows = codes.shape[0], block
    for block in prange(
        (n_rows + ROWS - 1) // ROWS, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
        schedule="static",
    ):
        pack_block(codes, digits, shares, block * ROWS, min(n_rows, (block + 1) * ROWS), bytes)


cdef void pack_block(
    const uint8_t[:, :] codes, const Digit[::1] digits, const uint8_t[:, ::1] shares,
    int64_t first, int64_t last, uint8_t[:, ::1] bytes,
) noexcept nogil:
    cdef uint8_t[ROWS] own
    cdef const uint8_t* column
    cdef const uint8_t* share
    cdef int64_t d, i, n = last - first
    memset(own, 0, sizeof(own))
    for d in range(digits.shape[0]):
        column = &codes[first, digits[d].feature]
        share = &shares[d, 0]
        for i in range(n):
            own[i] += share[column[i]]
        if d + 1 == digits.shape[0] or digits[d + 1].byte != digits[d].byte:
            for i in range(n):
                bytes[first + i, digits[d].byte] = own[i]
            memset(own, 0, sizeof(own))
