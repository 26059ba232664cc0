"""Join codes to cells, and pack the cells of several features into one byte; see joint.h."""
from cython.parallel cimport prange
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from ranktrees._core.support.records cimport Digit

cdef extern from "support/bins.h" nogil:
    void prefetch_line(const void* address)

cdef extern from "support/codes.h" nogil:
    enum: CODES

cdef extern from "growing/packing.h" nogil:
    enum:
        PACKED
        BYTES_TOGETHER

    ctypedef struct stair:
        pass

    void build_stair(const uint8_t* share, int stride, stair* its)
    void add_shares(const uint8_t* codes, const stair* its, uint8_t* bytes)
    void transpose_bytes(const uint8_t* columns, int64_t n, int64_t n_bytes, uint8_t* rows, int64_t step)

cdef enum:
    TABLES = 8
    LINE = 64
    LEAST_CELLS = 4  # the least cells of a feature for the values other than its most frequent ones


def count_codes(const uint8_t[:, :] codes, int64_t[:, ::1] counts, int n_threads):
    """Set counts[f, c] to the number of rows with code c of feature f; ``codes`` is feature by feature."""
    cdef int64_t n_rows = codes.shape[0], f
    if n_rows == 0:
        return
    for f in prange(
        codes.shape[1], nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1, schedule="dynamic"
    ):
        count_column(&codes[0, f], n_rows, &counts[f, 0])


cdef void count_column(const uint8_t* column, int64_t n_rows, int64_t* counts) noexcept nogil:
    cdef uint32_t[TABLES][CODES] tables  # several tables, so that a run of one code does not wait for itself
    cdef int64_t i, k
    memset(tables, 0, sizeof(tables))
    for i in range(n_rows // TABLES):
        for k in range(TABLES):
            tables[k][column[i * TABLES + k]] += 1
    for i in range(n_rows // TABLES * TABLES, n_rows):
        tables[0][column[i]] += 1
    for i in range(CODES):
        counts[i] = 0
        for k in range(TABLES):
            counts[i] += tables[k][i]


def join_bins(const int64_t[::1] counts, int64_t n_rows, int most, int64_t[::1] cells):
    """Set the cell of each bin, of ``most`` cells at most; see `ranktrees.growing.packing.coarse_cells`."""
    cdef int64_t n_bins = counts.shape[0], light = 0, held = 0, b
    cdef int64_t last = n_bins  # cell
    cdef double share = <double> n_rows / most
    if n_bins <= most:
        for b in range(n_bins):
            cells[b] = b
        return
    for b in range(n_bins):
        light += counts[b] if counts[b] <= share else 0
    if light > 0:
        share = min(share, <double> light / LEAST_CELLS)
    while last >= most:
        last = -1
        for b in range(n_bins):
            if last < 0 or held + counts[b] > <int64_t> share:
                last += 1
                held = 0
            held += counts[b]
            cells[b] = last
        share *= 1.05


def pack(
    const uint8_t[:, :] codes,       # IN   feature by feature
    const Digit[::1] digits,         # IN   byte by byte
    const uint8_t[:, ::1] shares,    # IN   for each digit, what each code adds to its byte
    uint8_t[:, ::1] bytes,           # OUT  bytes without a digit become 0
    int n_threads,
):
    """Set the bytes of each row."""
    cdef int64_t n_rows = codes.shape[0], block, d
    cdef stair* stairs = <stair*> malloc(digits.shape[0] * sizeof(stair))
    if stairs == NULL:
        raise MemoryError
    for d in range(digits.shape[0]):
        build_stair(&shares[d, 0], digits[d].stride, &stairs[d])
    for block in prange(
        (n_rows + PACKED - 1) // PACKED, nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
        schedule="static",
    ):
        pack_block(codes, digits, stairs, block * PACKED, min(n_rows, (block + 1) * PACKED), bytes)
    free(stairs)


cdef void pack_block(
    const uint8_t[:, :] codes, const Digit[::1] digits, const stair* stairs, int64_t first, int64_t last,
    uint8_t[:, ::1] bytes,
) noexcept nogil:
    cdef uint8_t[BYTES_TOGETHER * PACKED] columns
    cdef uint8_t[PACKED] rest
    cdef const uint8_t* column
    cdef int64_t group, byte, i, n = last - first, d = 0
    memset(rest, 0, sizeof(rest))
    for group in range((bytes.shape[1] + BYTES_TOGETHER - 1) // BYTES_TOGETHER):
        byte = group * BYTES_TOGETHER
        memset(columns, 0, sizeof(columns))
        while d < digits.shape[0] and digits[d].byte < byte + BYTES_TOGETHER:
            column = &codes[first, digits[d].feature]
            if n < PACKED:
                memcpy(rest, column, n)
                column = rest
            else:
                for i in range(PACKED // LINE):  # the next block: processors do not predict so many columns
                    prefetch_line(column + PACKED + i * LINE)
            add_shares(column, &stairs[d], columns + (digits[d].byte - byte) * PACKED)
            d += 1
        transpose_bytes(
            columns, n, min(bytes.shape[1] - byte, <int64_t> BYTES_TOGETHER), &bytes[first, byte],
            bytes.shape[1],
        )
