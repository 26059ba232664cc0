"""Sums over the rows of leaves to words, which ranks add up, and back; see words.h.

    lines    [ | cells of leaf 3 | . | cells of leaf 7 | ]     leaves ids[i], lines places[i]
    words    [ leaf 3 | leaf 7 ][ leaf 3 | leaf 7 ]            a part for each rank, or one for all

How many bits a sum needs follows from what all ranks know of its leaf: its number of rows and its hessian.
"""
import numpy as np

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint64_t

from records cimport Leaf

cdef extern from "words.h" nogil:
    enum: WORD
    Field field_of(bint sign, int bits, int low, int width, int spare)
    int64_t n_words_of(int64_t n_cells, const Field* field)
    void cells_to_words(int stride, int64_t n, const int64_t* cells, Field field, int64_t* words) noexcept
    void words_to_cells(
        int stride, int64_t n, const int64_t* words, Field field, int64_t* rest, int64_t* cells
    ) noexcept

cdef enum:
    HALF = 32  # bits of a hessian beside a count


cdef inline int bit_length(uint64_t number) noexcept nogil:
    cdef int length = 0
    while number:
        number >>= 1
        length += 1
    return length


cpdef tuple bins_in_use(const int32_t[::1] ids, const int32_t[:, ::1] features):
    """Of the features of some leaves, one line for each or for all, those that are not -1: (leaves, places).

    The place of feature j of leaf i is i times the width of a line, plus j.
    """
    cdef int64_t width = features.shape[1], i, j, n = 0
    cdef int32_t[::1] leaves = np.empty(ids.shape[0] * width, np.int32)
    cdef int32_t[::1] places = np.empty(ids.shape[0] * width, np.int32)
    for i in range(ids.shape[0]):
        for j in range(width):
            if features[i if features.shape[0] > 1 else 0, j] >= 0:
                leaves[n], places[n] = ids[i], <int32_t>(width * i + j)
                n += 1
    return leaves.base[:n], places.base[:n]


cdef class Words:
    """Lines of leaves as words and back; the views of a fit are taken once.

    Parameters
    ----------
    communicator : Communicator
        The ranks whose words are added up.
    """

    def __init__(self, communicator):
        self.communicator = communicator
        self.rest, self.all_cells = np.empty(0, np.int64), np.zeros(2, np.int64)
        self.spare = bit_length(communicator.size - 1)

    def look_at(self, leaves):
        """The leaves."""
        self.leaves = leaves

    def begin(self, int bits, int room, int64_t most_steps):
        """How sums are to be read, the bits of the largest sum of |gradients|, and the largest of a row."""
        self.bits, self.room, self.most_steps = bits, room, most_steps

    cdef int bits_of_steps(self, int64_t n_rows) noexcept nogil:
        if self.most_steps and n_rows > INT64_MAX // self.most_steps:
            return self.room
        return min(bit_length(n_rows * self.most_steps), self.room)

    cdef Field field(self, const Leaf* leaf, int lanes, int lane) noexcept nogil:
        """How the sums of a leaf lie in words: gradient and hessian, or the one and count and hessian."""
        cdef int high = bit_length(leaf.total.count) if lane else self.bits_of_steps(leaf.total.count)
        cdef int bits = self.bits if lanes == 1 else HALF * lane
        cdef int low = bit_length(leaf.total.hessian) if bits else 0
        cdef bint sign = high > 0 and not lane
        return field_of(sign, bits, low, min(max(sign + high + low, 1), WORD), self.spare)

    cpdef int32_t[::1] places_of(self, const int32_t[::1] ids):
        """The lines of some leaves."""
        cdef int32_t[::1] places = np.empty(ids.shape[0], np.int32)
        cdef int64_t i
        for i in range(ids.shape[0]):
            places[i] = self.leaves[ids[i]].histogram
        return places

    cpdef void add_up(
        self, const int32_t[::1] ids, int64_t[:, ::1] lines, const int32_t[::1] places, int lanes
    ):
        """Some lines of leaves become the sums of those of all ranks."""
        self.all_cells[1] = lines.shape[1] // lanes
        sums, _ = self.pack(ids, lines, places, lanes, self.all_cells)
        self.unpack(self.communicator.allreduce(sums), 0, self.all_cells[1])

    cpdef void add_up_bins(
        self, const int32_t[::1] ids, const int32_t[:, ::1] features, int64_t[:, ::1] bins, int lanes
    ):
        """Bins of some features, which end at -1, become the sums of those of all ranks.

        Those of feature j of leaf i are in line i times the width of ``features``, plus j.
        """
        leaves, places = bins_in_use(ids, features)
        self.add_up(leaves, bins, places, lanes)

    cpdef tuple pack(
        self, const int32_t[::1] ids, int64_t[:, ::1] lines, const int32_t[::1] places, int lanes,
        const int64_t[::1] ends,
    ):
        """Some lines of leaves as words, in parts that lie between two ``ends``: cells of all features.

        Returns
        -------
        words : ndarray of int64
            Part by part, and leaf by leaf in each.
        n_words : list of int
            Of each part.
        """
        cdef int64_t part, i, n = 0, first, n_cells
        cdef int lane
        cdef Field field
        cdef int64_t[::1] words
        self.ids, self.lines, self.places, self.lanes = ids, lines, places, lanes
        n_words = [self.n_words(ends[part + 1] - ends[part]) for part in range(ends.shape[0] - 1)]
        words = np.empty(sum(n_words), np.int64)
        for part in range(ends.shape[0] - 1):
            first, n_cells = ends[part], ends[part + 1] - ends[part]
            for i in range(ids.shape[0] if n_cells else 0):
                for lane in range(lanes):
                    field = self.field(&self.leaves[ids[i]], lanes, lane)
                    cells_to_words(
                        lanes, n_cells, &lines[places[i], lanes * first + lane], field, &words[n]
                    )
                    n += n_words_of(n_cells, &field)
        return words.base, n_words

    cdef int64_t n_words(self, int64_t n_cells) noexcept:
        """How many words so many cells of each line take."""
        cdef int64_t i, n = 0
        cdef int lane
        cdef Field field
        for i in range(self.ids.shape[0]):
            for lane in range(self.lanes):
                field = self.field(&self.leaves[self.ids[i]], self.lanes, lane)
                n += n_words_of(n_cells, &field)
        return n

    cpdef void unpack(self, const int64_t[::1] words, int64_t first, int64_t last):
        """Put one part of what was packed last back to its lines: the cells first to last - 1 of each."""
        cdef int64_t i, n = 0
        cdef int lane
        cdef Field field
        if self.rest.shape[0] < last - first:
            self.rest = np.empty(last - first, np.int64)
        for i in range(self.ids.shape[0] if last > first else 0):
            for lane in range(self.lanes):
                field = self.field(&self.leaves[self.ids[i]], self.lanes, lane)
                words_to_cells(
                    self.lanes, last - first, &words[n], field, &self.rest[0],
                    &self.lines[self.places[i], self.lanes * first + lane],
                )
                n += n_words_of(last - first, &field)
