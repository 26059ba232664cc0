"""Pack sums over the rows of leaves into words, which ranks add up, and unpack them; see words.h.

    lines    [ | cells of leaf 3 | . | cells of leaf 7 | ]     lines places[i]
    words    [ leaf 3 | leaf 7 ][ leaf 3 | leaf 7 ]            a part for each rank, or one for all

Before that, ranks tell each other the largest numbers of each line, so that all know how many bits the sums
need. If all ranks already know a line that covers these rows and more, the number of bits is estimated from
that line instead, and one more word tells whether it was enough.
"""
import numpy as np

from libc.stdint cimport int32_t, int64_t, uint64_t

from ranktrees._core.support.views cimport line_in, run_in

cdef extern from "growing/words.h" nogil:
    enum: WORD
    Field field_of(bint sign, int bits, int low, int width, int spare)
    int64_t n_words_of(int64_t n_cells, const Field* field)
    void largest_of_cells(int stride, int64_t n, const int64_t* cells, int bits, int64_t* largest) noexcept
    void cells_to_words(int stride, int64_t n, const int64_t* cells, Field field, int64_t* words) noexcept
    void words_to_cells(
        int stride, int64_t n, const int64_t* words, Field field, int64_t* rest, int64_t* cells
    ) noexcept

cdef enum:
    HALF = 32  # bits of a hessian beside a count
    MOST_REPEATED = 2  # repeated sums of a tree; after these, its sizes are always exchanged first


cdef inline int bit_length(uint64_t number) noexcept nogil:
    cdef int length = 0
    while number:
        number >>= 1
        length += 1
    return length


cpdef int32_t[::1] bins_in_use(const int32_t[:, ::1] features, int64_t n_leaves):
    """The places of the features that are not -1, for some leaves: one line per leaf, or one for all.

    The place of feature j of leaf i is i times the width of a line, plus j.
    """
    cdef int64_t width = features.shape[1], i, j, n = 0
    cdef int32_t[::1] places = np.empty(n_leaves * width, np.int32)
    for i in range(n_leaves):
        for j in range(width):
            if features[i if features.shape[0] > 1 else 0, j] >= 0:
                places[n] = <int32_t>(width * i + j)
                n += 1
    return places[:n]


cdef class Words:
    """Pack lines of leaves into words, and unpack them.

    Parameters
    ----------
    communicator : Communicator
        The ranks whose words are added up.
    """

    def __init__(self, communicator):
        self.communicator = communicator
        self.rest, self.all_cells = np.empty(0, np.int64), np.zeros(2, np.int64)
        self.expected = np.empty((0, 1, 2), np.int64)
        self.size, self.spare = communicator.size, bit_length(communicator.size - 1)
        # Bits by which the numbers of a rank may exceed its share of the known ones: a factor of 2, and one
        # of sqrt(size), because the sum of random parts grows only with the square root of their number.
        self.more = 1 + (self.spare + 1) // 2

    def begin(self, int bits):
        """Begin a new tree. In cells of one number, the hessian has ``bits`` bits."""
        self.bits, self.n_repeated = bits, 0
        self.n_sums = 1  # how many sums follow once all ranks know how large the numbers are

    cpdef void add_up(self, int64_t[:, ::1] lines, const int32_t[::1] places, int lanes):
        """Replace some lines by their sums over all ranks."""
        self.all_cells[1] = lines.shape[1] // lanes
        sums, _ = self.pack(lines, places, lanes, self.all_cells)
        self.unpack(self.communicator.allreduce(sums, met=True), 0, self.all_cells[1])

    cpdef void add_up_within(
        self, int64_t[:, ::1] lines, const int32_t[::1] places, const int64_t[:, ::1] known,
        const int64_t[:, ::1] within, int64_t width, const int64_t[::1] gradients,
    ):
        """`add_up` for lines of one number per cell, if all ranks know cells that cover these rows and more.

        With ``k, first = within[i]``, the known cells of line i are ``known[k, first : first + width]``.
        Hessians are at most as large as in these cells, and gradients hardly larger than there or than
        ``gradients[i]``. Therefore ranks need not exchange sizes before. If the numbers of a rank are larger
        after all, it says so together with the sums, and these are added up once more.
        """
        cdef int64_t n_cells = lines.shape[1]
        cdef int64_t[::1] words
        if self.n_repeated == MOST_REPEATED:
            self.add_up(lines, places, 1)
            return
        self.lines, self.places, self.lanes = lines, places, 1
        self.all_cells[1] = n_cells
        cdef bint fits = self.expect_largest(known, within, width, gradients)
        sums, _ = self.packed(self.all_cells, 1)
        words = sums
        words[words.shape[0] - 1] = not fits
        self.communicator.allreduce(sums, met=True)
        if words[words.shape[0] - 1]:
            self.n_repeated += 1
            self.add_up(lines, places, 1)
        else:
            self.unpack(words, 0, n_cells)

    cpdef tuple pack(
        self, int64_t[:, ::1] lines, const int32_t[::1] places, int lanes, const int64_t[::1] ends
    ):
        """Pack some lines into words, in parts that lie between two ``ends``: cells of all features.

        The ranks exchange how large their numbers are, and must add the words up next.

        Returns
        -------
        words : ndarray of int64
            The words, part by part, and line by line in each part.
        n_words : list of int
            The number of words of each part.
        """
        self.lines, self.places, self.lanes = lines, places, lanes
        self.hear_largest()
        return self.packed(ends, 0)

    cdef tuple packed(self, const int64_t[::1] ends, int64_t n_more):
        """`pack`, once it is known how large the sums are; ``n_more`` more words come last."""
        cdef int64_t part, i, n = 0, first, n_cells
        cdef int lane
        cdef Field field
        cdef int64_t[::1] words
        n_words = [self.n_words(ends[part + 1] - ends[part]) for part in range(ends.shape[0] - 1)]
        words = np.empty(sum(n_words) + n_more, np.int64)
        for part in range(ends.shape[0] - 1):
            first, n_cells = ends[part], ends[part + 1] - ends[part]
            for i in range(self.places.shape[0] if n_cells else 0):
                for lane in range(self.lanes):
                    field = self.field(i, lane)
                    cells_to_words(
                        self.lanes, n_cells, line_in(self.lines, self.places[i]) + self.lanes * first + lane,
                        field,
                        run_in(words, n),
                    )
                    n += n_words_of(n_cells, &field)
        return words.base, n_words

    cdef void hear_largest(self):
        """Bound the sums over all ranks: none is larger than the largest numbers of the ranks together."""
        cdef int64_t[:, :, ::1] largest = np.empty((self.places.shape[0], self.lanes, 2), np.int64)
        cdef int64_t[:, :, :, ::1] told
        cdef int64_t n_cells = self.lines.shape[1] // self.lanes, i, rank
        cdef int lane
        for i in range(largest.shape[0]):
            for lane in range(self.lanes):
                largest_of_cells(
                    self.lanes, n_cells, line_in(self.lines, self.places[i]) + lane, self.bits_below(lane),
                    &largest[i, lane, 0],
                )
        told = self.communicator.stack(largest.base, self.n_sums)
        self.largest = np.zeros((self.places.shape[0], self.lanes, 2), np.int64)
        for rank in range(told.shape[0]):
            for i in range(largest.shape[0]):
                for lane in range(self.lanes):
                    self.largest[i, lane, 0] += told[rank, i, lane, 0]
                    self.largest[i, lane, 1] += told[rank, i, lane, 1]

    cdef bint expect_largest(
        self, const int64_t[:, ::1] known, const int64_t[:, ::1] within, int64_t width,
        const int64_t[::1] gradients,
    ):
        """Estimate the sums from what all ranks know. Return whether the numbers of this rank fit."""
        cdef int64_t[:, :, ::1] largest = self.expected
        cdef int64_t[2] own
        cdef int64_t i
        cdef bint fits = True
        if self.places.shape[0] > largest.shape[0]:
            largest = self.expected = np.empty((2 * self.places.shape[0], 1, 2), np.int64)
        for i in range(self.places.shape[0]):
            largest_of_cells(1, width, &known[within[i, 0], within[i, 1]], self.bits, &largest[i, 0, 0])
            largest[i, 0, 0] = (max(largest[i, 0, 0], gradients[i], -gradients[i]) + 1) << self.more
            largest_of_cells(1, self.lines.shape[1], line_in(self.lines, self.places[i]), self.bits, own)
            fits = fits and own[0] <= largest[i, 0, 0] // self.size and own[1] <= largest[i, 0, 1]
        self.largest = largest
        return fits

    cdef int bits_below(self, int lane) noexcept nogil:
        """The bits of the lower number. A cell is gradient|hessian, or gradient and then count|hessian."""
        return self.bits if self.lanes == 1 else HALF * lane

    cdef Field field(self, int64_t i, int lane) noexcept nogil:
        """The layout of the sums of a line in words."""
        cdef int high = bit_length(self.largest[i, lane, 0]), low = bit_length(self.largest[i, lane, 1])
        cdef bint sign = high > 0 and not lane
        return field_of(sign, self.bits_below(lane), low, min(max(sign + high + low, 1), WORD), self.spare)

    cdef int64_t n_words(self, int64_t n_cells) noexcept:
        """The number of words that ``n_cells`` cells of each line take."""
        cdef int64_t i, n = 0
        cdef int lane
        cdef Field field
        for i in range(self.places.shape[0]):
            for lane in range(self.lanes):
                field = self.field(i, lane)
                n += n_words_of(n_cells, &field)
        return n

    cpdef void unpack(self, const int64_t[::1] words, int64_t first, int64_t last):
        """Write one part of what was packed last back to its lines: the cells first to last - 1 of each."""
        cdef int64_t i, n = 0
        cdef int lane
        cdef Field field
        if self.rest.shape[0] < last - first:
            self.rest = np.empty(last - first, np.int64)
        for i in range(self.places.shape[0] if last > first else 0):
            for lane in range(self.lanes):
                field = self.field(i, lane)
                words_to_cells(
                    self.lanes, last - first, run_in(words, n), field, run_in(self.rest, 0),
                    line_in(self.lines, self.places[i]) + self.lanes * first + lane,
                )
                n += n_words_of(last - first, &field)
