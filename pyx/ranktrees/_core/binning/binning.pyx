"""Loops over the values of columns: gather and sort the values, choose cuts, and encode the values.

A column is described by its values that are neither missing nor zero, and by the mass (the total weight) of
its zeros. Sparse rows hold nothing more, and dense rows of web search data seldom do. Masses are integers, so
sums do not depend on the order of the rows. A row of weight 0 is left out.
"""
from ranktrees._core.support.threads import room_for_each

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.limits cimport INT_MAX
from libc.math cimport fabs
from libc.stdint cimport UINT32_MAX, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memmove, memset

from ranktrees._core.binning.coding cimport coder_double, coder_float, encode, make_coder
from ranktrees._core.support.records cimport Node, nodes_in
from ranktrees._core.support.views cimport line_in, run_in

cdef extern from "support/bins.h" nogil:
    void prefetch_line(const void* address)

cdef extern from "binning/keys.h" nogil:
    enum:
        LAID_OUT
        CODING_BITS

    ctypedef struct key_ruler:
        int32_t zero

    int32_t divide_ruler(key_ruler* ruler, int bits)
    void make_keys_float(int64_t n, uint32_t* keys, key_ruler* ruler)
    void make_keys_double(int64_t n, uint64_t* keys, key_ruler* ruler)
    float number_of_float(uint32_t key)
    double number_of_double(uint64_t key)
    int32_t mark_of_float(const key_ruler* ruler, uint32_t key)
    int32_t mark_of_double(const key_ruler* ruler, uint64_t key)
    int64_t append_double(int64_t n, const double* numbers, double* kept, int64_t* zeros)
    void make_and_mark_keys_float(int64_t n, uint32_t* keys, const key_ruler* ruler, uint32_t* marks)
    void make_and_mark_keys_double(int64_t n, uint64_t* keys, const key_ruler* ruler, uint32_t* marks)

    void count_edges_below(
        int64_t n, const double* numbers, const double* edges, int64_t n_edges, uint32_t* found
    )

cdef extern from "binning/taking.h" nogil:
    enum:
        TRANSPOSED

    void transpose_floats(const float** rows, int64_t n_columns, float* columns)
    void transpose_doubles(const double** rows, int64_t n_columns, double* columns)
    int64_t append_floats(int64_t n, const float* numbers, float* kept, int64_t* zeros)
    int64_t take_keys_float(
        int64_t n, uint32_t* keys, uint32_t* weights, const key_ruler* ruler, const uint32_t* wanted,
        uint32_t* taken, uint32_t* taken_weights,
    )
    int64_t take_keys_double(
        int64_t n, uint64_t* keys, uint32_t* weights, const key_ruler* ruler, const uint32_t* wanted,
        uint64_t* taken, uint32_t* taken_weights,
    )

ctypedef fused key_t:
    uint32_t
    uint64_t

ctypedef fused index_t:
    int32_t
    int64_t

ctypedef fused code_t:
    uint8_t
    uint32_t

cdef enum:
    MAX_BINS = 255
    MAX_PARTS = 2 * MAX_BINS + 1
    DIGIT_BITS = 11
    N_DIGIT_VALUES = 1 << DIGIT_BITS
    MAX_DIGITS = 6
    SHORT = 48           # at most this many values are sorted by insertion
    GATHERED = 32        # columns that are laid out together for cutting: two cache lines of float32
    ENCODED = 16         # columns that are laid out together for encoding: one cache line
    AHEAD = 32           # how many rows ahead to prefetch, as processors do not predict such strides
    CUTTING_BITS = 14    # a column is first divided at no more than 2^14 marks on either side of zero
    SAMPLE = 2048        # numbers that determine where the marks of a column begin and end
    MARK_WORDS = (2 << CUTTING_BITS >> 5) + 1

# A column has at most this many pieces, plus one for each of its values.
MOST_PIECES = (2 << CUTTING_BITS) + 1

# A piece: a run of the sorted values of a column, with its mass and the keys of its least and greatest value.
cdef struct PieceFloat:
    int64_t mass
    uint32_t low
    uint32_t high

cdef struct PieceDouble:
    int64_t mass
    uint64_t low
    uint64_t high

ctypedef fused piece_t:
    PieceFloat
    PieceDouble


def piece_words(int itemsize):
    """The number of uint64 that a piece takes up, for values of `itemsize` bytes."""
    return (sizeof(PieceFloat) if itemsize == 4 else sizeof(PieceDouble)) // 8


cdef inline int bits_for(Py_ssize_t n, int most) noexcept nogil:
    """The number of bits, up to `most`, that divide n keys into runs of a few."""
    cdef int bits = 0
    while bits < most and n >> bits > 4:
        bits += 1
    return bits


# -------------------------------------------------------------------------------------------------- gathering

# Where a thread puts the values of some columns; a member for each argument of gather_dense.
cdef struct Gathered:
    Py_ssize_t n_columns
    const int64_t* starts
    void* values
    uint32_t* weights      # or NULL
    int64_t* sizes
    int64_t* zero_mass


def gather_dense(
    const floating[:, :] X,             # IN
    const Py_ssize_t[::1] order,        # IN, or None: row i is X[order[i]]
    const uint32_t[::1] weights,        # IN, or None: all one
    const int64_t[::1] starts,          # IN  where the values of each column begin; room for all rows
    floating[::1] values,               # OUT values that are neither missing nor zero
    uint32_t[::1] value_weights,        # OUT their weights, or None
    int64_t[:, ::1] sizes,              # OUT [n_threads, n_columns] how many of them each thread has found
    int64_t[:, ::1] zero_mass,          # OUT the same shape: the mass of the zeros that each thread has found
):
    """Gather the columns of a dense X of any strides.

    Each thread gathers its own stretch of the rows. Then the gaps between the stretches are closed.
    """
    cdef Py_ssize_t n_rows = X.shape[0] if order is None else order.shape[0]
    cdef Py_ssize_t n_columns = sizes.shape[1], n_threads = sizes.shape[0], width = 1
    cdef Py_ssize_t stretch, thread, j
    cdef const Py_ssize_t* rows = NULL
    cdef const uint32_t* row_weights = NULL
    cdef uint32_t* into_weights = NULL
    sizes[:] = 0
    zero_mass[:] = 0
    if n_rows == 0 or n_columns == 0:
        return
    if order is not None:
        rows = &order[0]
    if weights is not None:
        row_weights = &weights[0]
        into_weights = &value_weights[0]
    if abs(X.strides[1]) < abs(X.strides[0]):
        width = GATHERED
    cdef floating[:, ::1] blocks = room_for_each(n_threads, width * LAID_OUT, f"f{sizeof(floating)}")
    stretch = (n_rows + n_threads * TRANSPOSED - 1) // (n_threads * TRANSPOSED) * TRANSPOSED
    for thread in prange(
        n_threads, nogil=True, schedule="static", num_threads=n_threads, use_threads_if=n_threads > 1,
    ):
        gather_stretch(
            X, rows, thread * stretch, min((thread + 1) * stretch, n_rows), row_weights,
            Gathered(
                n_columns, &starts[0], &values[0], into_weights, &sizes[thread, 0], &zero_mass[thread, 0]
            ),
            width, &blocks[thread, 0],
        )
    if n_threads > 1:
        for j in prange(n_columns, nogil=True, num_threads=n_threads):
            close_up(
                run_in(values, starts[j]), into_weights + starts[j] if into_weights != NULL else NULL,
                stretch, sizes, j,
            )


cdef void close_up(
    floating* values, uint32_t* weights, Py_ssize_t stretch, const int64_t[:, ::1] sizes, Py_ssize_t column,
) noexcept nogil:
    """Close the gaps between what the stretches of rows have written of one column."""
    cdef Py_ssize_t i, to = sizes[0, column]
    for i in range(1, sizes.shape[0]):
        memmove(values + to, values + i * stretch, sizes[i, column] * sizeof(floating))
        if weights != NULL:
            memmove(weights + to, weights + i * stretch, sizes[i, column] * sizeof(uint32_t))
        to += sizes[i, column]


cdef void gather_stretch(
    const floating[:, :] X, const Py_ssize_t* rows, Py_ssize_t first_row, Py_ssize_t end,
    const uint32_t* weights, Gathered columns, Py_ssize_t width, floating* block,
) noexcept nogil:
    """Gather the columns of the rows first_row:end, `width` columns at a time.

    The values of a column go to its place for the row `first_row`, where there is room for all of these rows.
    """
    cdef floating* values = <floating*> columns.values
    cdef const floating* column
    cdef Py_ssize_t n_columns = columns.n_columns, group, begin, task, row, n, i, j, to
    cdef int64_t zeros
    for group in range((n_columns + width - 1) // width):
        begin = group * width
        for task in range((end - first_row + LAID_OUT - 1) // LAID_OUT):
            row = first_row + task * LAID_OUT
            n = min(<Py_ssize_t> LAID_OUT, end - row)
            lay_out(X, rows, row, n, end, begin, min(width, n_columns - begin), block)
            for j in range(begin, min(begin + width, n_columns)):
                column = block + (j - begin) * LAID_OUT
                to = columns.starts[j] + first_row + columns.sizes[j]
                zeros = 0
                if weights == NULL:
                    if floating is float:
                        to += append_floats(n, column, values + to, &zeros)
                    else:
                        to += append_double(n, column, values + to, &zeros)
                else:
                    for i in range(n):
                        values[to] = column[i]
                        columns.weights[to] = weights[row + i]
                        to += (fabs(column[i]) > 0) & (weights[row + i] > 0)
                        zeros += weights[row + i] * <int64_t> (column[i] == 0)
                columns.sizes[j] = to - columns.starts[j] - first_row
                columns.zero_mass[j] += zeros


cdef inline void lay_out(
    const floating[:, :] X, const Py_ssize_t* rows, Py_ssize_t first_row, Py_ssize_t n_rows, Py_ssize_t end,
    Py_ssize_t first_column, Py_ssize_t n_columns, floating* block,
) noexcept nogil:
    """Copy some columns of at most LAID_OUT rows to block[column * LAID_OUT + row]; prefetch up to `end`."""
    cdef Py_ssize_t i, j, row, ahead
    cdef const floating* held[TRANSPOSED]
    if X.strides[1] != sizeof(floating):
        for j in range(n_columns):
            for i in range(n_rows):
                row = first_row + i if rows == NULL else rows[first_row + i]
                block[j * LAID_OUT + i] = X[row, first_column + j]
        return
    for i in range(n_rows):
        row = first_row + i
        ahead = min(row + AHEAD, end - 1)
        if rows != NULL:
            ahead, row = rows[ahead], rows[row]
        prefetch_line(&X[ahead, first_column])
        prefetch_line(&X[ahead, first_column + n_columns - 1])
        held[i % TRANSPOSED] = &X[row, first_column]
        if i % TRANSPOSED == TRANSPOSED - 1:
            if floating is float:
                transpose_floats(held, n_columns, block + i - (TRANSPOSED - 1))
            else:
                transpose_doubles(held, n_columns, block + i - (TRANSPOSED - 1))
    for i in range(n_rows - n_rows % TRANSPOSED, n_rows):
        for j in range(n_columns):
            block[j * LAID_OUT + i] = held[i % TRANSPOSED][j]


def count_sparse(
    const index_t[::1] indices,         # IN
    const int64_t[::1] begins,          # IN  row i has the entries begins[i]:ends[i]
    const int64_t[::1] ends,            # IN
    int64_t[::1] counts,                # OUT entries per column
):
    """Count the entries of every column. Return False if an index is no column; such entries do not count."""
    cdef Py_ssize_t i, at
    cdef index_t column
    cdef bint sound = True
    with nogil:
        for i in range(begins.shape[0]):
            for at in range(begins[i], ends[i]):
                column = indices[at]
                if 0 <= column < counts.shape[0]:
                    counts[column] += 1
                else:
                    sound = False
    return sound


def gather_sparse(
    const floating[::1] data,           # IN
    const index_t[::1] indices,         # IN  ascending in a row
    int64_t[::1] cursors,               # IN/OUT an entry of row i; all before it are below column `first`
    const int64_t[::1] ends,            # IN  where row i ends
    const uint32_t[::1] weights,        # IN, or None: all one
    Py_ssize_t first,
    columns,                            # OUT their values; IN the mass of all rows, OUT that of the zeros
):
    """Gather the columns first, first + 1, ... (one per size) of sparse rows; move the cursors past them."""
    cdef const int64_t[::1] starts = columns.starts
    cdef floating[::1] values = columns.values
    cdef uint32_t[::1] value_weights = columns.weights
    cdef int64_t[::1] sizes = columns.sizes, zero_mass = columns.zero_mass
    cdef Py_ssize_t i, at, j, to, n_columns = sizes.shape[0]
    cdef bint weighted = weights is not None
    cdef uint32_t weight = 1
    cdef floating x
    with nogil:
        for j in range(n_columns):
            sizes[j] = 0
        for i in range(cursors.shape[0]):
            if weighted:
                weight = weights[i]
            at = cursors[i]
            while at < ends[i] and indices[at] < first:
                at = at + 1
            while at < ends[i] and indices[at] < first + n_columns:
                x = data[at]
                if weight != 0 and x != 0:
                    j = indices[at] - first
                    zero_mass[j] -= weight
                    if x == x:
                        to = starts[j] + sizes[j]
                        values[to] = x
                        if weighted:
                            value_weights[to] = weight
                        sizes[j] += 1
                at = at + 1
            cursors[i] = at


# ---------------------------------------------------------------------------------------------------- cutting

def find_edges(
    floating[::1] values,               # IN, destroyed: those of the columns
    columns,                            # IN  with scratch
    const int64_t[::1] numbers,         # IN  which of the columns
    bint are_categorical,
    int max_bins,                       # any number, provided that there is room for the cuts
    double[:, ::1] edges,               # OUT [len(numbers), 255 or more] cuts, or categories
    int64_t[::1] n_edges,               # OUT how many; of categories all are counted, even those without room
    int n_threads,
):
    """Choose the cuts of each column, or list its categories."""
    cdef uint32_t[::1] value_weights = columns.weights
    cdef const int64_t[::1] starts = columns.starts, sizes = columns.sizes, zero_mass = columns.zero_mass
    cdef uint64_t[:, ::1] spare_pieces = columns.pieces
    cdef uint8_t[:, ::1] doubtful = columns.doubtful
    cdef floating[:, ::1] spare = columns.spare
    cdef uint32_t[:, ::1] spare_weights = columns.spare_weights
    cdef Py_ssize_t i, j
    cdef bint weighted = value_weights is not None
    for i in prange(
        numbers.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads, use_threads_if=n_threads > 1,
    ):
        j = numbers[i]
        n_edges[i] = find_column_edges(
            run_in(values, starts[j]),
            run_in(value_weights, starts[j]) if weighted else NULL,
            sizes[j], zero_mass[j], are_categorical, max_bins,
            &spare_pieces[threadid(), 0],
            &doubtful[threadid(), 0],
            &spare[threadid(), 0],
            &spare_weights[threadid(), 0] if weighted else NULL,
            &edges[i, 0], edges.shape[1],
        )


cdef Py_ssize_t find_column_edges(
    floating* values, uint32_t* weights, Py_ssize_t n, int64_t zero_mass, bint is_categorical, int max_bins,
    uint64_t* pieces, uint8_t* doubtful, floating* spare, uint32_t* spare_weights, double* edges,
    Py_ssize_t room,
) noexcept nogil:
    if floating is float:
        return find_edges_of_keys[uint32_t, PieceFloat](
            <uint32_t*> values, weights, n, zero_mass, is_categorical, max_bins, <PieceFloat*> pieces,
            doubtful, <uint32_t*> spare, spare_weights, edges, room,
        )
    else:
        return find_edges_of_keys[uint64_t, PieceDouble](
            <uint64_t*> values, weights, n, zero_mass, is_categorical, max_bins, <PieceDouble*> pieces,
            doubtful, <uint64_t*> spare, spare_weights, edges, room,
        )


cdef Py_ssize_t find_edges_of_keys(
    key_t* keys, uint32_t* weights, Py_ssize_t n, int64_t zero_mass, bint is_categorical, int max_bins,
    piece_t* pieces, uint8_t* doubtful, key_t* spare, uint32_t* spare_weights, double* edges,
    Py_ssize_t room,
) noexcept nogil:
    cdef Py_ssize_t lasts[MAX_BINS]
    cdef Py_ssize_t i, last, n_pieces = share_keys[key_t, piece_t](
        keys, weights, n, zero_mass, INT_MAX if is_categorical else max_bins, pieces, doubtful,
        spare, spare_weights, lasts,
    )
    if is_categorical:
        for i in range(min(n_pieces, room)):
            edges[i] = number_of[key_t](pieces[i].low)
        return n_pieces
    n = min(n_pieces, max_bins) - 1
    for i in range(n):
        last = lasts[i] if n_pieces > max_bins else i
        edges[i] = cut_between(number_of[key_t](pieces[last].high), number_of[key_t](pieces[last + 1].low))
    return max(n, 0)


cdef inline double number_of(key_t key) noexcept nogil:
    if key_t is uint32_t:
        return number_of_float(key)
    else:
        return number_of_double(key)


cdef inline void make_keys(key_t* keys, Py_ssize_t n, key_ruler* ruler) noexcept nogil:
    if key_t is uint32_t:
        make_keys_float(n, keys, ruler)
    else:
        make_keys_double(n, keys, ruler)


cdef inline void make_and_mark_keys(
    key_t* keys, Py_ssize_t n, const key_ruler* ruler, uint32_t* marks,
) noexcept nogil:
    if key_t is uint32_t:
        make_and_mark_keys_float(n, keys, ruler, marks)
    else:
        make_and_mark_keys_double(n, keys, ruler, marks)


cdef inline int64_t take_keys(
    int64_t n, key_t* keys, uint32_t* weights, const key_ruler* ruler, const uint32_t* wanted, key_t* taken,
    uint32_t* taken_weights,
) noexcept nogil:
    if key_t is uint32_t:
        return take_keys_float(n, keys, weights, ruler, wanted, taken, taken_weights)
    else:
        return take_keys_double(n, keys, weights, ruler, wanted, taken, taken_weights)


cdef inline int32_t mark_of(const key_ruler* ruler, key_t key) noexcept nogil:
    if key_t is uint32_t:
        return mark_of_float(ruler, key)
    else:
        return mark_of_double(ruler, key)


cdef inline double cut_between(double a, double b) noexcept nogil:
    cdef double middle = a / 2 + b / 2
    return middle if a <= middle < b else a


cdef inline Py_ssize_t share_keys(
    key_t* keys, uint32_t* weights, Py_ssize_t n, int64_t zero_mass, int max_bins,
    piece_t* pieces, uint8_t* doubtful, key_t* spare, uint32_t* spare_weights, Py_ssize_t* lasts,
) noexcept nogil:
    """Turn the numbers into keys, divide these into pieces, and distribute max_bins bins over the pieces.

    If there are enough bins, each piece gets one. Most values never need to be told apart: a piece is taken
    apart, into its single values, only if it may hold a heavy value or the end of a bin. This may move the
    ends of other bins and so put other pieces in doubt. In every pass more neighbours are therefore doubted.
    """
    cdef Py_ssize_t n_pieces, reach = 1
    cdef key_ruler ruler
    cdef int32_t n_marks
    rule_for(keys, n, &ruler)
    n_marks = divide_ruler(&ruler, bits_for(n, CUTTING_BITS))
    n_pieces = count_pieces(keys, weights, n, zero_mass, &ruler, n_marks, pieces)
    while True:
        memset(doubtful, 0, n_pieces)
        if not (
            doubt(pieces, 0, n_pieces, doubtful) if n_pieces <= max_bins
            else share_bins(pieces, n_pieces, max_bins, reach, doubtful, lasts)
        ):
            break
        n = take_apart(keys, weights, n, &ruler, pieces, &n_pieces, doubtful, spare, spare_weights)
        reach = min(4 * reach, n_pieces)
    return n_pieces


cdef void rule_for(const key_t* numbers, Py_ssize_t n, key_ruler* ruler) noexcept nogil:
    """Make a ruler that spans a sample of the numbers. Numbers beyond it get its first or last mark."""
    cdef key_t some[SAMPLE]
    cdef Py_ssize_t i, n_some = min(n, <Py_ssize_t> SAMPLE)
    for i in range(n_some):
        some[i] = numbers[i * n // n_some]
    make_keys(some, n_some, ruler)


cdef Py_ssize_t count_pieces(
    key_t* keys, const uint32_t* weights, Py_ssize_t n, int64_t zero_mass, const key_ruler* ruler,
    Py_ssize_t n_marks, piece_t* pieces,
) noexcept nogil:
    """Turn the numbers into keys, and write a piece for each mark that has any, in order. Return how many."""
    cdef uint32_t marks[LAID_OUT]
    cdef Py_ssize_t i, block, begin, end, n_pieces = 0
    cdef piece_t* piece
    cdef key_t key, greatest = <key_t> -1
    for i in range(n_marks):
        pieces[i].mass = 0
        pieces[i].low = greatest
        pieces[i].high = 0
    for block in range((n + LAID_OUT - 1) // LAID_OUT):
        begin = block * LAID_OUT
        end = min(begin + LAID_OUT, n)
        make_and_mark_keys(keys + begin, end - begin, ruler, marks)
        for i in range(begin, end):
            key = keys[i]
            piece = &pieces[marks[i - begin]]
            piece.mass += 1 if weights == NULL else weights[i]
            piece.low = min(piece.low, key)
            piece.high = max(piece.high, key)
    piece = &pieces[ruler.zero]
    piece.mass = zero_mass
    piece.low = piece.high = <key_t> 1 << (8 * sizeof(key_t) - 1)
    for i in range(n_marks):
        if pieces[i].mass > 0:
            pieces[n_pieces] = pieces[i]
            n_pieces += 1
    return n_pieces


cdef bint doubt(const piece_t* pieces, Py_ssize_t begin, Py_ssize_t end, uint8_t* doubtful) noexcept nogil:
    """Mark those of some pieces as doubtful that hold more than one value. Return whether there are any."""
    cdef Py_ssize_t i
    cdef bint found = False
    for i in range(begin, end):
        if pieces[i].low < pieces[i].high:
            doubtful[i] = True
            found = True
    return found


cdef Py_ssize_t take_apart(
    key_t* keys, uint32_t* weights, Py_ssize_t n, const key_ruler* ruler,
    piece_t* pieces, Py_ssize_t* n_pieces, const uint8_t* doubtful, key_t* spare, uint32_t* spare_weights,
) noexcept nogil:
    """Replace each doubtful piece by one piece per value. Return how many keys the other pieces have."""
    cdef uint32_t wanted[MARK_WORDS]
    cdef uint32_t mark
    cdef Py_ssize_t i, at, to, n_kept, n_taken, n_new = n_pieces[0]
    cdef key_t key
    memset(wanted, 0, sizeof(wanted))
    for i in range(n_pieces[0]):
        if doubtful[i]:
            mark = mark_of(ruler, <key_t> pieces[i].low)
            wanted[mark >> 5] |= <uint32_t> 1 << (mark & 31)
            n_new -= 1
    n_taken = take_keys(n, keys, weights, ruler, wanted, spare, spare_weights)
    n_kept = n - n_taken
    sort_keys(spare, spare_weights, n_taken, keys + n_kept, weights + n_kept if weights != NULL else NULL)
    for i in range(n_taken):
        n_new += i == 0 or spare[i] != spare[i - 1]

    # Go from the last piece to the first, so that none is overwritten before it has moved.
    at = n_taken
    to = n_new
    for i in range(n_pieces[0] - 1, -1, -1):
        if not doubtful[i]:
            to -= 1
            pieces[to] = pieces[i]
            continue
        key = <key_t> pieces[i].low
        while at > 0 and spare[at - 1] >= key:
            at -= 1
            if at == n_taken - 1 or spare[at] != spare[at + 1]:
                to -= 1
                pieces[to].mass = 0
                pieces[to].low = pieces[to].high = spare[at]
            pieces[to].mass += 1 if weights == NULL else spare_weights[at]
    n_pieces[0] = n_new
    return n_kept


# The runs of pieces among which bins are distributed: each heavy value is a part, and so is each run of other
# pieces between two of them.
#
#     pieces    a b c | D | e f | G | H | i j         heavy values in capitals
#     ends            3   4     6   7   8     10
cdef struct Parts:
    Py_ssize_t n
    Py_ssize_t ends[MAX_PARTS]
    int64_t masses[MAX_PARTS]
    int64_t bins[MAX_BINS]


cdef inline Py_ssize_t begin_of(const Parts* parts, Py_ssize_t p) noexcept nogil:
    return parts.ends[p - 1] if p > 0 else 0


cdef bint share_bins(
    const piece_t* pieces, Py_ssize_t n, int max_bins, Py_ssize_t reach, uint8_t* doubtful, Py_ssize_t* lasts,
) noexcept nogil:
    """Distribute exactly max_bins bins over n > max_bins pieces; lasts[b] is the last piece of bin b.

    Returns whether any pieces of several values are in doubt, because the bins may depend on the values
    inside. If so, the bins are only a guess, and `reach` pieces on either side of a bin's end are doubted as
    well. If not, the bins are those that the single values would have.

    Products stay below 2^63 as long as the total mass stays below 2^53.
    """
    cdef Parts parts
    cdef bint in_doubt = divide_at_heavy(pieces, n, max_bins, doubtful, &parts)
    join_lightest(&parts, max_bins)
    give_bins(&parts, max_bins)
    in_doubt |= close_bins(pieces, &parts, reach, doubtful, lasts)
    return in_doubt


cdef bint divide_at_heavy(
    const piece_t* pieces, Py_ssize_t n, int max_bins, uint8_t* doubtful, Parts* parts
) noexcept nogil:
    """Divide the pieces into parts. Return whether some that may hold a heavy value are in doubt.

    A value is heavy if its mass is at least a fair share of what is left without the heavy values.
    """
    cdef Py_ssize_t heavy[MAX_BINS]
    cdef int64_t total = 0, rest, fair, heavy_mass
    cdef Py_ssize_t i, h, start = 0, stop, n_heavy = 0, n_heavier
    cdef bint in_doubt = False
    for i in range(n):
        total += pieces[i].mass
    rest = total
    while True:
        heavy_mass = 0
        n_heavier = 0
        fair = (rest + max_bins - n_heavy - 1) // (max_bins - n_heavy)
        for i in range(n):
            if pieces[i].mass >= fair:
                if pieces[i].low < pieces[i].high:
                    doubtful[i] = in_doubt = True
                else:
                    heavy[n_heavier] = i
                    n_heavier += 1
                    heavy_mass += pieces[i].mass
        if n_heavier == n_heavy:
            break
        n_heavy = n_heavier
        rest = total - heavy_mass
    parts.n = 0
    for h in range(n_heavy + 1):
        stop = heavy[h] if h < n_heavy else n
        if stop > start:
            add_part(pieces, start, stop, parts)
        if h < n_heavy:
            add_part(pieces, stop, stop + 1, parts)
        start = stop + 1
    return in_doubt


cdef void add_part(const piece_t* pieces, Py_ssize_t start, Py_ssize_t stop, Parts* parts) noexcept nogil:
    cdef int64_t mass = 0
    cdef Py_ssize_t i
    for i in range(start, stop):
        mass += pieces[i].mass
    parts.ends[parts.n] = stop
    parts.masses[parts.n] = mass
    parts.n += 1


cdef void join_lightest(Parts* parts, int max_bins) noexcept nogil:
    """While there are more parts than bins, join the two neighbours that are the lightest together."""
    cdef Py_ssize_t p, best
    while parts.n > max_bins:
        best = 0
        for p in range(1, parts.n - 1):
            if parts.masses[p] + parts.masses[p + 1] < parts.masses[best] + parts.masses[best + 1]:
                best = p
        parts.masses[best + 1] += parts.masses[best]
        parts.n -= 1
        for p in range(best, parts.n):
            parts.masses[p] = parts.masses[p + 1]
            parts.ends[p] = parts.ends[p + 1]


cdef void give_bins(Parts* parts, int max_bins) noexcept nogil:
    """Give one bin at a time to the part whose bins are the fullest, if it has a piece for another bin."""
    cdef Py_ssize_t p, best, _
    for p in range(parts.n):
        parts.bins[p] = 1
    for _ in range(max_bins - parts.n):
        best = -1
        for p in range(parts.n):
            if parts.bins[p] < parts.ends[p] - begin_of(parts, p) and (
                best < 0 or parts.masses[p] * parts.bins[best] > parts.masses[best] * parts.bins[p]
            ):
                best = p
        parts.bins[best] += 1


cdef bint close_bins(
    const piece_t* pieces, const Parts* parts, Py_ssize_t reach, uint8_t* doubtful, Py_ssize_t* lasts
) noexcept nogil:
    """In each part, close a bin where its mass comes nearest to a fair share of what is left."""
    cdef int64_t rest, fair, filled, left
    cdef Py_ssize_t i, p, start, stop, b = 0
    cdef bint in_doubt = False
    for p in range(parts.n):
        start, stop = begin_of(parts, p), parts.ends[p]
        rest = parts.masses[p]
        left = parts.bins[p]
        if left == stop - start:  # another value inside a piece would need a bin of its own
            in_doubt |= doubt(pieces, start, stop, doubtful)
        fair = rest // left
        filled = 0
        for i in range(start, stop):
            if left > 1 and (filled + pieces[i].mass > fair or stop - i < left):
                if pieces[i].low < pieces[i].high:
                    # One or more bins end in this piece: go on as if each of its values had the mass 1.
                    in_doubt |= doubt(pieces, max(i - reach, start), min(i + reach + 1, stop), doubtful)
                    while left > 1 and filled + pieces[i].mass > fair:
                        fair = max((2 * rest + left - 1) // (2 * left), 1)
                        lasts[b] = i
                        b += 1
                        rest -= fair
                        filled -= fair
                        left -= 1
                        fair = rest // left
                elif filled > 0 and ((2 * filled + pieces[i].mass) * left >= 2 * rest or stop - i < left):
                    lasts[b] = i - 1
                    b += 1
                    rest -= filled
                    left -= 1
                    fair = rest // left
                    filled = 0
            filled += pieces[i].mass
        lasts[b] = stop - 1
        b += 1
    return in_doubt


# ---------------------------------------------------------------------------------------------------- joining

def join_equal(
    floating[::1] values,               # IN/OUT ascending; repeated only if a mass does not fit in 32 bits
    columns,                            # IN     their places and weights, with scratch; IN/OUT sizes
    uint32_t[::1] masses,               # OUT the mass of each value; may be the array of weights
    int n_threads,
):
    """Join the equal values of each column."""
    cdef uint32_t[::1] value_weights = columns.weights
    cdef const int64_t[::1] starts = columns.starts
    cdef int64_t[::1] sizes = columns.sizes
    cdef floating[:, ::1] spare = columns.spare
    cdef uint32_t[:, ::1] spare_weights = columns.spare_weights
    cdef Py_ssize_t j
    cdef bint weighted = value_weights is not None
    for j in prange(
        sizes.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads, use_threads_if=n_threads > 1,
    ):
        sizes[j] = join_values(
            run_in(values, starts[j]),
            run_in(value_weights, starts[j]) if weighted else NULL,
            sizes[j],
            &spare[threadid(), 0],
            &spare_weights[threadid(), 0] if weighted else NULL,
            run_in(masses, starts[j]),
        )


cdef Py_ssize_t join_values(
    floating* values, uint32_t* weights, Py_ssize_t n, floating* spare, uint32_t* spare_weights,
    uint32_t* masses,
) noexcept nogil:
    cdef key_ruler ruler
    cdef Py_ssize_t n_joined, i
    if floating is float:
        make_keys_float(n, <uint32_t*> values, &ruler)
        n_joined = join_keys[uint32_t](
            <uint32_t*> values, weights, n, <uint32_t*> spare, spare_weights, masses
        )
        for i in range(n_joined):
            values[i] = number_of_float((<uint32_t*> values)[i])
    else:
        make_keys_double(n, <uint64_t*> values, &ruler)
        n_joined = join_keys[uint64_t](
            <uint64_t*> values, weights, n, <uint64_t*> spare, spare_weights, masses
        )
        for i in range(n_joined):
            values[i] = number_of_double((<uint64_t*> values)[i])
    return n_joined


cdef Py_ssize_t join_keys(
    key_t* keys, uint32_t* weights, Py_ssize_t n, key_t* spare, uint32_t* spare_weights, uint32_t* masses,
) noexcept nogil:
    cdef Py_ssize_t i, to = -1
    cdef uint64_t mass = 0
    cdef key_t key
    sort_keys(keys, weights, n, spare, spare_weights)
    for i in range(n):
        key = keys[i]
        mass += 1 if weights == NULL else weights[i]
        if to < 0 or key != keys[to] or mass > UINT32_MAX:
            to += 1
            keys[to] = key
            mass = 1 if weights == NULL else weights[i]
        masses[to] = <uint32_t> mass
    return to + 1


# ---------------------------------------------------------------------------------------------------- sorting

cdef void sort_keys(
    key_t* keys, uint32_t* weights, Py_ssize_t n, key_t* spare, uint32_t* spare_weights,
) noexcept nogil:
    """Radix sort by digits of 11 bits, the lowest first. A digit that all keys share takes no pass."""
    cdef Py_ssize_t places[MAX_DIGITS][N_DIGIT_VALUES]
    cdef int n_digits = (8 * <int> sizeof(key_t) + DIGIT_BITS - 1) // DIGIT_BITS, d, shift
    cdef Py_ssize_t i, to, size
    cdef key_t key
    cdef key_t* home = keys
    cdef key_t* swap_keys
    cdef uint32_t* home_weights = weights
    cdef uint32_t* swap_weights
    cdef uint32_t weight = 0
    if n <= SHORT:
        for i in range(1, n):
            key = keys[i]
            if weights != NULL:
                weight = weights[i]
            to = i
            while to > 0 and keys[to - 1] > key:
                keys[to] = keys[to - 1]
                if weights != NULL:
                    weights[to] = weights[to - 1]
                to -= 1
            keys[to] = key
            if weights != NULL:
                weights[to] = weight
        return
    memset(places, 0, n_digits * sizeof(places[0]))
    for i in range(n):
        key = keys[i]
        for d in range(n_digits):
            places[d][(key >> (d * DIGIT_BITS)) & (N_DIGIT_VALUES - 1)] += 1
    for d in range(n_digits):
        shift = d * DIGIT_BITS
        if places[d][(keys[0] >> shift) & (N_DIGIT_VALUES - 1)] == n:
            continue
        to = 0
        for i in range(N_DIGIT_VALUES):
            size = places[d][i]
            places[d][i] = to
            to += size
        for i in range(n):
            key = keys[i]
            to = places[d][(key >> shift) & (N_DIGIT_VALUES - 1)]
            places[d][(key >> shift) & (N_DIGIT_VALUES - 1)] = to + 1
            spare[to] = key
            if weights != NULL:
                spare_weights[to] = weights[i]
        swap_keys, swap_weights = keys, weights
        keys, weights = spare, spare_weights
        spare, spare_weights = swap_keys, swap_weights
    if keys != home:
        memcpy(home, keys, n * sizeof(key_t))
        if home_weights != NULL:
            memcpy(home_weights, weights, n * sizeof(uint32_t))


# --------------------------------------------------------------------------------------------------- encoding

cdef inline Py_ssize_t count_below(const double* edges, Py_ssize_t n_edges, double x) noexcept nogil:
    """Count those of the ascending edges that are < x."""
    cdef Py_ssize_t count = 0, half
    while n_edges > 0:
        half = (n_edges + 1) >> 1
        count += half * (edges[count + half - 1] < x)
        n_edges -= half
    return count


cdef inline Py_ssize_t code_of(
    double x, Py_ssize_t n_below, const double* categories, Py_ssize_t n_categories, Py_ssize_t missing,
) noexcept nogil:
    """The code of x, which has n_below edges below it; categories are NULL unless x must be one of them."""
    if x != x or (categories != NULL and (n_below == n_categories or categories[n_below] != x)):
        return missing
    return n_below


# The cuts or categories of features, as the arrays of FeatureEdges hold them.
cdef struct Edges:
    const double* all
    const int64_t* offsets
    const uint8_t* is_categorical
    const int32_t* missing_codes


cdef class FeatureEdges:
    """Holds what a value of each feature is coded by.

    Parameters
    ----------
    edges : ndarray of float64, shape (n_edges,)
        The cuts or categories of all features, and infinity.
    offsets : ndarray of int64, shape (n_features + 1,)
        Where those of each feature begin.
    is_categorical : ndarray of uint8, shape (n_features,)
    missing_codes : ndarray of int32, shape (n_features,)
    """

    cdef const double[::1] edges
    cdef const int64_t[::1] offsets
    cdef const uint8_t[::1] is_categorical
    cdef const int32_t[::1] missing_codes
    cdef Edges of

    def __init__(self, edges, offsets, is_categorical, missing_codes):
        self.edges, self.offsets = edges, offsets
        self.is_categorical, self.missing_codes = is_categorical, missing_codes
        self.of = Edges(
            run_in(self.edges, 0), run_in(self.offsets, 0), run_in(self.is_categorical, 0),
            run_in(self.missing_codes, 0),
        )


cdef inline Py_ssize_t n_edges_of(const Edges* of, Py_ssize_t f) noexcept nogil:
    return of.offsets[f + 1] - of.offsets[f]


cdef inline const double* categories_of(const Edges* of, Py_ssize_t f) noexcept nogil:
    """The categories of a feature, or NULL."""
    return of.all + of.offsets[f] if of.is_categorical[f] else NULL


cdef inline Py_ssize_t search_code(double x, const Edges* of, Py_ssize_t f) noexcept nogil:
    """The code of x among the edges of its feature."""
    cdef Py_ssize_t n_below = count_below(of.all + of.offsets[f], n_edges_of(of, f), x)
    return code_of(x, n_below, categories_of(of, f), n_edges_of(of, f), of.missing_codes[f])


def coder_words(int itemsize):
    """The number of uint64 that a coder takes up, for values of `itemsize` bytes."""
    return ((sizeof(coder_float) if itemsize == 4 else sizeof(coder_double)) + 7) // 8


def make_coders(
    const floating[::1] edges,          # IN  cuts or categories of all features, rounded down to this type
    const int64_t[::1] edge_offsets,    # IN  where those of a feature begin
    const int32_t[::1] missing_codes,   # IN
    Py_ssize_t first,
    Py_ssize_t n_rows,                  # the number of rows that will be encoded
    uint64_t[:, ::1] coders,           # OUT for the features first, first + 1, ...; see coder_words
):
    """Prepare the search for values among the edges of some features."""
    cdef Py_ssize_t j, f, begin
    cdef int bits = bits_for(n_rows, CODING_BITS)
    for j in range(coders.shape[0]):
        f = first + j
        begin = edge_offsets[f]
        make_coder(
            run_in(edges, begin), edge_offsets[f + 1] - begin, <uint8_t> missing_codes[f], bits, &coders[j, 0]
        )


cdef class Coders:
    """Finds the codes of the values of some features, each at most 255.

    Parameters
    ----------
    edges : FeatureEdges
        Those of all features.
    first : int
    tables : ndarray of uint64, shape (n_some, coder_words)
        Those of the features first, first + 1, ..., by `make_coders`.
    """

    cdef FeatureEdges edges
    cdef Py_ssize_t first
    cdef const uint64_t[:, ::1] tables

    def __init__(self, FeatureEdges edges, first, tables):
        self.edges, self.first, self.tables = edges, first, tables


def encode_dense(
    const floating[:, :] X,             # IN
    const Py_ssize_t[::1] order,        # IN, or None: row i is X[order[i]]
    Coders coders,                      # IN  of some features, for values of this type
    Py_ssize_t first,
    Py_ssize_t last,
    uint8_t[:, ::1] codes,              # OUT [n_features, n_rows], the rows first:last of these features
    int n_threads,
):
    """Encode some features of the rows first:last of a dense X of any strides."""
    cdef const Py_ssize_t* rows = NULL
    cdef Py_ssize_t block
    if first == last:
        return
    if order is not None:
        rows = &order[0]
    cdef floating[:, ::1] blocks = room_for_each(n_threads, ENCODED * LAID_OUT, f"f{sizeof(floating)}")
    for block in prange(
        (last - first + LAID_OUT - 1) // LAID_OUT, nogil=True, schedule="dynamic", num_threads=n_threads,
        use_threads_if=n_threads > 1,
    ):
        encode_block(X, rows, coders, first + block * LAID_OUT, last, &blocks[threadid(), 0], codes)


cdef void encode_block(
    const floating[:, :] X, const Py_ssize_t* rows, Coders coders, Py_ssize_t first, Py_ssize_t end,
    floating* block, uint8_t[:, ::1] codes,
) noexcept nogil:
    cdef const Edges* of = &coders.edges.of
    cdef const floating* values
    cdef Py_ssize_t n_features = coders.tables.shape[0], n_rows = min(<Py_ssize_t> LAID_OUT, end - first)
    cdef Py_ssize_t i, j, f, group, begin, width
    cdef uint8_t* found
    for group in range((n_features + ENCODED - 1) // ENCODED):
        begin = group * ENCODED
        width = min(<Py_ssize_t> ENCODED, n_features - begin)
        lay_out(X, rows, first, n_rows, end, coders.first + begin, width, block)
        for j in range(width):
            f = coders.first + begin + j
            values = block + j * LAID_OUT
            found = &codes[f, first]
            encode(n_rows, values, line_in(coders.tables, begin + j), found)
            if of.is_categorical[f]:
                for i in range(n_rows):
                    found[i] = <uint8_t> code_of(
                        values[i], found[i], categories_of(of, f), n_edges_of(of, f), of.missing_codes[f]
                    )


def encode_dense_long(
    const floating[:, :] X,             # IN
    const Py_ssize_t[::1] order,        # IN, or None: row i is X[order[i]]
    FeatureEdges edges,                 # IN
    Py_ssize_t first,
    Py_ssize_t last,
    uint32_t[:, ::1] codes,             # OUT [n_features, n_rows], the rows first:last
    int n_threads,
):
    """Encode the rows first:last of a dense X of any strides; a feature may have any number of cuts."""
    cdef const Py_ssize_t* rows = NULL
    cdef Py_ssize_t n_groups = (codes.shape[0] + ENCODED - 1) // ENCODED
    cdef Py_ssize_t n_blocks = (last - first + LAID_OUT - 1) // LAID_OUT, task
    if first == last or codes.shape[0] == 0:
        return
    if order is not None:
        rows = &order[0]
    cdef floating[:, ::1] blocks = room_for_each(n_threads, ENCODED * LAID_OUT, f"f{sizeof(floating)}")
    for task in prange(
        n_groups * n_blocks, nogil=True, schedule="dynamic", num_threads=n_threads,
        use_threads_if=n_threads > 1,
    ):
        encode_block_long(
            X, rows, &edges.of, task // n_blocks * ENCODED, first + task % n_blocks * LAID_OUT, last,
            &blocks[threadid(), 0], codes,
        )


cdef void encode_block_long(
    const floating[:, :] X, const Py_ssize_t* rows, const Edges* of, Py_ssize_t first_feature,
    Py_ssize_t first, Py_ssize_t end, floating* block, uint32_t[:, ::1] codes,
) noexcept nogil:
    cdef double numbers[LAID_OUT]
    cdef Py_ssize_t width = min(<Py_ssize_t> ENCODED, codes.shape[0] - first_feature), i, j, f
    cdef Py_ssize_t n_rows = min(<Py_ssize_t> LAID_OUT, end - first)
    cdef uint32_t* found
    lay_out(X, rows, first, n_rows, end, first_feature, width, block)
    for j in range(width):
        f = first_feature + j
        found = &codes[f, first]
        for i in range(n_rows):
            numbers[i] = block[j * LAID_OUT + i]
        count_edges_below(n_rows, numbers, of.all + of.offsets[f], n_edges_of(of, f), found)
        for i in range(n_rows):
            found[i] = <uint32_t> code_of(
                numbers[i], found[i], categories_of(of, f), n_edges_of(of, f), of.missing_codes[f]
            )


def set_cuts(
    nodes,                              # IN and OUT  NODE records; those with a code split a numeric feature
    const int64_t[::1] codes,           # IN   rows up to this code go left; -1: the node has no cut
    const double[::1] edges,            # IN   cuts or categories of all features, and infinity
    const int64_t[::1] edge_offsets,    # IN   where those of a feature begin
):
    """Set the cut of each node to the upper edge of its code: x <= cut means that code or a lower one."""
    cdef int64_t k, place
    cdef Node* node = nodes_in(nodes)
    for k in range(codes.shape[0]):
        if codes[k] >= 0:
            place = edge_offsets[node[k].feature] + codes[k]
            node[k].cut = edges[
                place if place < edge_offsets[node[k].feature + 1] else edges.shape[0] - 1
            ]


def entries_of_features(
    const floating[::1] data,           # IN
    const index_t[::1] indices,         # IN
    const int64_t[::1] begins,          # IN  row i has the entries begins[i]:ends[i]
    const int64_t[::1] ends,            # IN
    FeatureEdges edges,                 # IN
    int64_t[::1] cursors,               # IN  where the entries of each feature begin; OUT where they end
    uint32_t[::1] rows,                 # OUT the row of each entry, ascending in a feature
    uint8_t[::1] codes,                 # OUT
):
    """Encode the entries of sparse rows, feature by feature."""
    cdef Py_ssize_t i, at
    cdef index_t f
    cdef int64_t k
    with nogil:
        for i in range(begins.shape[0]):
            for at in range(begins[i], ends[i]):
                f = indices[at]
                k = cursors[f]
                cursors[f] = k + 1
                rows[k] = <uint32_t>i
                codes[k] = <uint8_t>search_code(data[at], &edges.of, f)


def encode_sparse(
    const floating[::1] data,           # IN
    const index_t[::1] indices,         # IN
    const int64_t[::1] begins,          # IN  row first + i has the entries begins[i]:ends[i]
    const int64_t[::1] ends,            # IN
    FeatureEdges edges,                 # IN
    Py_ssize_t first,
    code_t[:, ::1] codes,               # OUT [n_features, n_rows], from the row first on
    int n_threads,
):
    """Encode sparse rows. Entries whose column does not exist are ignored."""
    cdef Py_ssize_t block, n_rows = begins.shape[0]
    for block in prange(
        (n_rows + LAID_OUT - 1) // LAID_OUT, nogil=True, schedule="dynamic", num_threads=n_threads,
        use_threads_if=n_threads > 1,
    ):
        encode_entries(
            data, indices, &begins[block * LAID_OUT], &ends[block * LAID_OUT], &edges.of,
            first + block * LAID_OUT, min(<Py_ssize_t> LAID_OUT, n_rows - block * LAID_OUT), codes,
        )


cdef void encode_entries(
    const floating[::1] data, const index_t[::1] indices, const int64_t* begins, const int64_t* ends,
    const Edges* of, Py_ssize_t first, Py_ssize_t n_rows, code_t[:, ::1] codes,
) noexcept nogil:
    cdef Py_ssize_t i, at
    cdef index_t f
    cdef code_t of_zero
    for f in range(<index_t> codes.shape[0]):
        of_zero = <code_t> search_code(0.0, of, f)
        for i in range(n_rows):
            codes[f, first + i] = of_zero
    for i in range(n_rows):
        for at in range(begins[i], ends[i]):
            f = indices[at]
            if 0 <= f < codes.shape[0]:
                codes[f, first + i] = <code_t> search_code(data[at], of, f)
