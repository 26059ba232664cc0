"""Sums over the rows of leaves to words, which ranks add up, and back; see words.h.

How many bits a sum needs follows from what all ranks know of its leaf: its number of rows and its hessian.
"""
import numpy as np

from libc.stdint cimport INT64_MAX, int32_t, int64_t, uint64_t

from records cimport Leaf

cdef extern from "words.h" nogil:
    enum: WORD
    ctypedef struct Field "sum_field":
        pass

    Field field_of(bint sign, int bits, int low, int width, int spare)
    int64_t n_words_of(int64_t n_cells, const Field* field)
    void cells_to_words(int stride, int64_t n, const int64_t* cells, Field field, int64_t* words) noexcept
    void words_to_cells(int stride, int64_t n, int64_t* words, Field field, int64_t* cells) noexcept

cdef enum:
    HALF = 32  # bits of a hessian beside a count


cdef inline int bit_length(uint64_t number) noexcept nogil:
    cdef int length = 0
    while number:
        number >>= 1
        length += 1
    return length


cdef class Words:
    """Lines of leaves as words and back; the views of a fit are taken once.

    Parameters
    ----------
    n_ranks : int
        Those whose words are added up.
    """

    cdef Leaf[::1] leaves
    cdef int64_t most_steps
    cdef int bits, room, spare

    def __init__(self, int n_ranks):
        self.spare = bit_length(n_ranks - 1)

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

    def pack(
        self, const int32_t[::1] ids, const int64_t[:, ::1] lines, const int32_t[::1] places, int lanes,
        const int64_t[::1] ends,
    ):
        """Some lines of leaves as words, in parts that lie between two ``ends``: cells of all features.

        Returns
        -------
        words : ndarray of int64
            Part by part, and leaf by leaf in each.
        n_words : ndarray of int64
            Of each part.
        """
        cdef int64_t n_parts = ends.shape[0] - 1, part, i, n = 0
        cdef int64_t[::1] n_words = np.zeros(n_parts, np.int64)
        cdef int64_t[::1] words
        cdef int lane
        cdef Field field
        for part in range(n_parts):
            for i in range(ids.shape[0]):
                for lane in range(lanes):
                    field = self.field(&self.leaves[ids[i]], lanes, lane)
                    n_words[part] += n_words_of(ends[part + 1] - ends[part], &field)
            n += n_words[part]
        words = np.empty(n, np.int64)
        n = 0
        for part in range(n_parts):
            for i in range(ids.shape[0]):
                for lane in range(lanes):
                    field = self.field(&self.leaves[ids[i]], lanes, lane)
                    if ends[part + 1] > ends[part]:
                        cells_to_words(
                            lanes, ends[part + 1] - ends[part], &lines[places[i], lanes * ends[part] + lane],
                            field, &words[n],
                        )
                    n += n_words_of(ends[part + 1] - ends[part], &field)
        return words.base, n_words.base

    def unpack(
        self, int64_t[::1] words, const int32_t[::1] ids, int64_t[:, ::1] lines, const int32_t[::1] places,
        int lanes, int64_t first, int64_t last,
    ):
        """Put one part back, the cells first to last - 1 of each line. The words are used up."""
        cdef int64_t i, n = 0
        cdef int lane
        cdef Field field
        if first == last:
            return
        for i in range(ids.shape[0]):
            for lane in range(lanes):
                field = self.field(&self.leaves[ids[i]], lanes, lane)
                words_to_cells(
                    lanes, last - first, &words[n], field, &lines[places[i], lanes * first + lane]
                )
                n += n_words_of(last - first, &field)
