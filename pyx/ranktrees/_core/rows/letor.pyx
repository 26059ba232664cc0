"""Blocks of lines of LETOR files, read to arrays and written from them."""
import numpy as np

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcmp, memmove

cdef extern from "rows/letor.h" nogil:
    enum:
        LEAST_POWER
        MOST_POWER
        PAIR_BYTES
        HEAD_BYTES

    ctypedef struct LetorRow:
        double label
        int64_t n_pairs, n_stored
        const char* query
        const char* id
        int64_t query_bytes, id_bytes

    ctypedef struct LetorStretch:
        const char* begin
        const char* end
        LetorRow* rows
        int32_t* features
        double* values
        int64_t n_rows, n_pairs, n_stored, largest
        const char* line_of_largest
        const char* problem

    ctypedef struct LetorOptions:
        int64_t most_features
        bint is_single
        const char* missing

    bint open_plain_locale()
    void cut_block(const char* begin, int64_t n_bytes, int64_t n, LetorStretch* stretches) noexcept
    void read_stretch(LetorStretch* s, const LetorOptions* options, const char* end) noexcept
    void scan_stretch(LetorStretch* s) noexcept
    bint read_query(const char* p, int64_t n_bytes, int64_t* integer) noexcept
    char* write_text(char* p, const char* text, int64_t n_bytes) noexcept
    char* write_number(char* p, const uint64_t* powers, double value, bint is_single) noexcept
    char* write_pairs(
        char* p, const uint64_t* powers, const char* values, int64_t stride, const int64_t* features,
        int64_t n, bint is_single, bint keep_zeros, int64_t last, double value_of_last,
    ) noexcept

ctypedef char* Place

cdef packed struct LineParts:
    uint64_t query, ending   # addresses of the texts, which lists keep alive
    int64_t[2] sizes

cdef enum:
    MOST_STRETCHES = 256

if not open_plain_locale():
    raise MemoryError("no room for the locale by which numbers are read")


cdef int64_t cut(bytes block, int n_threads, LetorStretch* stretches):
    """Cut a block for so many threads. Return into how many stretches."""
    cdef int64_t n = min(n_threads, MOST_STRETCHES)
    cut_block(PyBytes_AS_STRING(block), PyBytes_GET_SIZE(block), n, stretches)
    return n


def scan(bytes block, int n_threads):
    """Look at the last pair of each line of a block, well-formed or not.

    Return the numbers of rows and of pairs, the largest feature, and where the first line is that names it.
    """
    cdef LetorStretch[MOST_STRETCHES] stretches
    cdef int64_t n = cut(block, n_threads, stretches), s, n_rows = 0, n_pairs = 0, largest = 0, place = 0
    for s in prange(n, nogil=True, num_threads=n, use_threads_if=n > 1, schedule="static", chunksize=1):
        scan_stretch(&stretches[s])
    for s in range(n):
        n_rows += stretches[s].n_rows
        n_pairs += stretches[s].n_pairs
        if stretches[s].largest > largest:
            largest = stretches[s].largest
            place = stretches[s].line_of_largest - PyBytes_AS_STRING(block)
    return n_rows, n_pairs, largest, place


cdef class LetorLines:
    """The rows of one block of lines after another.

    Parameters
    ----------
    most_features : int
        The largest feature that a line may name.
    is_single : bool
        Whether values are rounded to float32.
    missing : bytes
        The texts that stand for NaN, with a zero byte after each; may be empty.

    Attributes
    ----------
    n_threads : int
        Of the block, as the others: by how many it was read.
    n_rows, n_pairs, n_stored : int
        Rows, pairs, and pairs whose value is not zero.
    largest : int
        The largest feature of the block, or 0.
    line_of_largest : int
        Where the first line begins that names it.
    problem : int
        Where the first malformed line begins, or -1. If there is one, the rest is not to be used.
    """

    cdef LetorStretch[MOST_STRETCHES] stretches
    cdef LetorOptions options
    cdef object room, missing, block
    cdef int64_t n
    cdef readonly int n_threads
    cdef readonly int64_t n_rows, n_pairs, n_stored, largest, line_of_largest, problem

    def __init__(self, int64_t most_features, bint is_single, bytes missing):
        self.missing = missing
        self.options = LetorOptions(most_features, is_single, PyBytes_AS_STRING(missing))

    cdef make_room(self, int64_t n_bytes):
        """Give each stretch room for what its bytes may hold: a row takes 8 of them, and a pair 4."""
        cdef int64_t most_rows = n_bytes // 8 + MOST_STRETCHES, most_pairs = n_bytes // 4 + MOST_STRETCHES, s
        cdef int64_t place
        if self.room is None or len(self.room[2]) < most_pairs:
            self.room = None
            self.room = (
                np.empty(most_rows * sizeof(LetorRow), np.uint8), np.empty(most_pairs, np.int32),
                np.empty(most_pairs),
            )
        cdef unsigned char[::1] rows = self.room[0]
        cdef int32_t[::1] features = self.room[1]
        cdef double[::1] values = self.room[2]
        for s in range(self.n):
            place = self.stretches[s].begin - self.stretches[0].begin
            self.stretches[s].rows = <LetorRow*>&rows[0] + place // 8 + s
            self.stretches[s].features = &features[0] + place // 4 + s
            self.stretches[s].values = &values[0] + place // 4 + s

    def read(self, bytes block, int n_threads):
        """Read a block of whole lines, of which the last may lack its line feed."""
        cdef const char* begin = PyBytes_AS_STRING(block)
        cdef const char* end = begin + PyBytes_GET_SIZE(block)
        cdef int64_t s
        cdef LetorStretch* found
        self.block = block
        self.n_threads = n_threads
        self.n = cut(block, self.n_threads, self.stretches)
        self.make_room(len(block))
        for s in prange(
            self.n, nogil=True, num_threads=self.n, use_threads_if=self.n > 1, schedule="static", chunksize=1
        ):
            read_stretch(&self.stretches[s], &self.options, end)
        self.n_rows = self.n_pairs = self.n_stored = self.largest = 0
        self.line_of_largest = self.problem = -1
        for s in range(self.n):
            found = &self.stretches[s]
            self.n_rows += found.n_rows
            self.n_pairs += found.n_pairs
            self.n_stored += found.n_stored
            if found.largest > self.largest:
                self.largest = found.largest
                self.line_of_largest = found.line_of_largest - begin
            if found.problem != NULL:
                self.problem = found.problem - begin
                break

    def labels(self, double[::1] out):
        """Copy the labels: OUT float64[n_rows]."""
        cdef int64_t s, i, row = 0
        for s in range(self.n):
            for i in range(self.stretches[s].n_rows):
                out[row] = self.stretches[s].rows[i].label
                row += 1

    def queries(self):
        """Return each run of equal queries: texts with line feeds between, as integers, and the lengths.

        The integers are None if one of the texts is not an integer of 64 bits.
        """
        cdef int64_t s, i, n = 0, n_bytes = 0
        cdef bint are_integers = True
        cdef const LetorRow* row
        cdef const LetorRow* before = NULL
        found = np.empty(self.n_rows, np.int64)
        run_lengths = np.empty(self.n_rows, np.int64)
        cdef int64_t[::1] integers = found, lengths = run_lengths
        cdef bytes texts = PyBytes_FromStringAndSize(NULL, PyBytes_GET_SIZE(self.block))
        cdef char* p = PyBytes_AS_STRING(texts)
        for s in range(self.n):
            for i in range(self.stretches[s].n_rows):
                row = &self.stretches[s].rows[i]
                if before != NULL and row.query_bytes == before.query_bytes and memcmp(
                    row.query, before.query, row.query_bytes
                ) == 0:
                    lengths[n - 1] += 1
                    continue
                before = row
                if are_integers:
                    are_integers = read_query(row.query, row.query_bytes, &integers[n])
                lengths[n] = 1
                n += 1
                p = write_text(p, row.query, row.query_bytes)
                p[0] = c"\n"
                p += 1
        n_bytes = p - PyBytes_AS_STRING(texts)
        return texts[: n_bytes - 1], found[:n].copy() if are_integers else None, run_lengths[:n].copy()

    def ids(self):
        """Return the texts after #, without white space around them."""
        cdef int64_t s, i
        cdef list texts = []
        cdef const LetorRow* row
        for s in range(self.n):
            for i in range(self.stretches[s].n_rows):
                row = &self.stretches[s].rows[i]
                texts.append(PyBytes_FromStringAndSize(row.id, row.id_bytes))
        return texts

    def dense(self, cython.floating[:, ::1] out, double absent):
        """Write the values to a dense array: OUT [n_rows, n_features]."""
        cdef int64_t[MOST_STRETCHES] first
        cdef int64_t s, row = 0
        for s in range(self.n):
            first[s] = row
            row += self.stretches[s].n_rows
        for s in prange(
            self.n, nogil=True, num_threads=self.n, use_threads_if=self.n > 1, schedule="static", chunksize=1
        ):
            fill_rows(&self.stretches[s], &out[0, 0] + first[s] * out.shape[1], out.shape[1], absent)

    def sparse(self, cython.floating[::1] values, int32_t[::1] features, int64_t[::1] lengths):
        """Copy the values that are not zero: OUT [n_stored], int32[n_stored], and how many: int64[n_rows]."""
        cdef int64_t[MOST_STRETCHES] first, first_row
        cdef int64_t s, n_stored = 0, row = 0
        cdef cython.floating* to = &values[0] if values.shape[0] else NULL
        cdef int32_t* to_features = &features[0] if features.shape[0] else NULL
        for s in range(self.n):
            first[s], first_row[s] = n_stored, row
            n_stored += self.stretches[s].n_stored
            row += self.stretches[s].n_rows
        for s in prange(
            self.n, nogil=True, num_threads=self.n, use_threads_if=self.n > 1, schedule="static", chunksize=1
        ):
            list_stored(&self.stretches[s], to + first[s], to_features + first[s], &lengths[0] + first_row[s])


cdef void fill_rows(
    const LetorStretch* s, cython.floating* out, int64_t n_features, double absent
) noexcept nogil:
    cdef int64_t i, j, k, pair = 0
    for i in range(s.n_rows):
        if s.rows[i].n_pairs < n_features:
            for j in range(n_features):
                out[j] = <cython.floating>absent
        for k in range(pair, pair + s.rows[i].n_pairs):
            out[s.features[k]] = <cython.floating>s.values[k]
        pair += s.rows[i].n_pairs
        out += n_features


cdef void list_stored(
    const LetorStretch* s, cython.floating* values, int32_t* features, int64_t* lengths
) noexcept nogil:
    cdef int64_t i, k, n = 0
    for k in range(s.n_pairs):
        if s.values[k] != 0:
            values[n] = <cython.floating>s.values[k]
            features[n] = s.features[k]
            n += 1
    for i in range(s.n_rows):
        lengths[i] = s.rows[i].n_stored


def widen(
    cython.floating[::1] rows,          # IN and OUT  as many rows as fit, one after the other
    int64_t n_rows, int64_t width,      # the rows that there are, and how long they are
    int64_t wider,                      # how long they shall be; the memory has room for that
    double absent,                      # the value of the features that are new
):
    """Make rows longer in place."""
    cdef int64_t row, j
    with nogil:
        for row in range(n_rows - 1, -1, -1):
            memmove(&rows[row * wider], &rows[0] + row * width, width * sizeof(rows[0]))
            for j in range(width, wider):
                rows[row * wider + j] = <cython.floating>absent


# ---- writing -----------------------------------------------------------------------------------------------


def powers_of_ten():
    """10^k for LEAST_POWER <= k <= MOST_POWER, each rounded up to 128 bits: upper half, lower half."""
    words = []
    for k in range(LEAST_POWER, MOST_POWER + 1):
        above, below = 10 ** max(k, 0), 10 ** max(-k, 0)
        shift = 128 - (above.bit_length() - below.bit_length() + 1)
        power = -(-(above << max(shift, 0)) // (below << max(-shift, 0)))
        if power < 1 << 127:
            power = -(-(above << max(shift + 1, 0)) // (below << max(-shift - 1, 0)))
        words += divmod(power, 1 << 64)
    return np.array(words, np.uint64)


cdef const uint64_t[::1] POWERS = powers_of_ten()


def write_rows(
    const double[::1] labels,           # IN   [n_rows]
    bint are_labels_single,             # whether they are float32
    list queries,                       # IN   bytes, one per row
    list endings,                       # IN   bytes, one per row, or None: what is before line feeds
    const cython.floating[:, :] X,      # IN   [n_rows, n_features]; or the values of a sparse matrix: [1, n],
    const int64_t[::1] features,        # IN   their columns, and where those of a row begin: [n_rows + 1].
    const int64_t[::1] offsets,         # IN   Both are None for a dense array
    bint keep_zeros,                    # whether zeros are written
    int64_t last,                       # the feature that the first row names in any case, from 1, or 0
    double value_of_last,               # its value if the first row does not name it anyway
    int n_threads,
):
    """Write lines, and return a list of arrays of bytes. Of a dense array, NaN are left out."""
    cdef int64_t n_rows = labels.shape[0], i, s, n = max(1, min(n_threads, MOST_STRETCHES, n_rows))
    cdef int64_t n_bytes = PAIR_BYTES
    cdef int64_t[MOST_STRETCHES + 1] first
    cdef Place[MOST_STRETCHES] begin, end
    cdef bytes text
    cdef const char* values = <const char*>&X[0, 0] if X.shape[0] and X.shape[1] else NULL
    cdef Py_ssize_t row_stride = X.strides[0], stride = X.strides[1]
    cdef const int64_t* columns = NULL
    cdef bint is_single = cython.floating is float
    if features is not None and features.shape[0]:
        columns = &features[0]
    place_of_row = np.empty(n_rows + 1, np.int64)
    line_parts = np.zeros(n_rows, [("query", np.uint64), ("ending", np.uint64), ("sizes", np.int64, 2)])
    cdef int64_t[::1] places = place_of_row
    cdef LineParts[::1] parts = line_parts
    for i in range(n_rows):
        text = queries[i]
        parts[i].query, parts[i].sizes[0] = <uint64_t>PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)
        if endings is not None:
            text = endings[i]
            parts[i].ending, parts[i].sizes[1] = <uint64_t>PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text)
        places[i] = n_bytes
        n_bytes += HEAD_BYTES + parts[i].sizes[0] + parts[i].sizes[1]
        n_bytes += PAIR_BYTES * (X.shape[1] if offsets is None else offsets[i + 1] - offsets[i])
    memory = np.empty(n_bytes, np.uint8)
    cdef unsigned char[::1] room = memory
    for s in range(n + 1):
        first[s] = n_rows * s // n
    for s in range(n):
        begin[s] = <char*>&room[0] + (places[first[s]] if s else 0)
    for s in prange(n, nogil=True, num_threads=n, use_threads_if=n > 1, schedule="static", chunksize=1):
        end[s] = begin[s]
        for i in range(first[s], first[s + 1]):
            end[s] = write_number(end[s], &POWERS[0], labels[i], are_labels_single)
            end[s] = write_text(end[s], " qid:", 5)
            end[s] = write_text(end[s], <const char*>parts[i].query, parts[i].sizes[0])
            if offsets is None:
                end[s] = write_pairs(
                    end[s], &POWERS[0], values + i * row_stride, stride, NULL, X.shape[1], is_single,
                    keep_zeros, 0 if i else last, value_of_last,
                )
            else:
                end[s] = write_pairs(
                    end[s], &POWERS[0], values + offsets[i] * stride, stride, columns + offsets[i],
                    offsets[i + 1] - offsets[i], is_single, keep_zeros, 0 if i else last, value_of_last,
                )
            end[s] = write_text(end[s], <const char*>parts[i].ending, parts[i].sizes[1])
            end[s] = write_text(end[s], "\n", 1)
    return [memory[begin[s] - <char*>&room[0] : end[s] - <char*>&room[0]] for s in range(n)]
