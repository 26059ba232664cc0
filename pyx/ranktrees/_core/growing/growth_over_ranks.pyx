"""Grow a tree in one call over ranks, each of which has some of the rows, by a coarse search.

    bins      of the shortlists of leaves whose turn it is; their sums over ranks give the splits
    numbers   of rows that go left; their sums over ranks say whether both children get enough rows
    lines     of the smaller children; from their sums over ranks, all children get their shortlists

So there are three exchanges for each batch of leaves, and the decisions are the same on all ranks. Ranks meet
only for the second. For the other two, they know from lines that all of them have how large the sums may be.
If there is no such line, as for the root, they meet for each exchange.
"""
import numpy as np

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t

from ranktrees._core.growing.coarse_finding cimport CoarseFinder
from ranktrees._core.growing.growth cimport Growth
from ranktrees._core.growing.words cimport Words, bins_in_use
from ranktrees._core.support.records cimport SHORTLIST, Leaf, PartedLeaf, chunk_of

cdef extern from "support/bins.h" nogil:
    enum: COARSE_CELLS

cdef enum:
    SUMS_OF_A_STEP = 2  # the sums that follow a meeting without another: of lines, then of bins


cpdef void refine(
    CoarseFinder finder, Words words, const int32_t[::1] ids, int n_threads, int64_t values_per_thread
):
    """Find the best split of each leaf by the features of its shortlist, over all bins of all ranks."""
    cdef int64_t[:, ::1] bins = finder.sums_of_shortlists(ids, n_threads, values_per_thread)
    words.add_up(bins, bins_in_use(finder.shortlists_of(ids), ids.shape[0]), 1)
    finder.scan_shortlists(ids, bins)


cdef class GrowthOverRanks(Growth):
    """`Growth` from the rows of all ranks.

    Parameters
    ----------
    communicator : Communicator
    words : Words
        Adds up sums over ranks.
    look_further, search_again : callable
        Take an array of int32: leaves that have been refined, of which those that fall short look further;
        and leaves whose splits turn out to leave a child with too few rows, which are searched again.
    *rest
        As for `Growth`.
    """

    cdef object communicator, look_further_of, search_again
    cdef Words words
    cdef int32_t[::1] places      # what to add up, and how large it may be: see `Words.add_up_within`
    cdef int64_t[:, ::1] within
    cdef int64_t[::1] gradients

    def __init__(self, communicator, Words words, look_further, search_again, *rest):
        super().__init__(*rest)
        self.communicator, self.words = communicator, words
        self.look_further_of, self.search_again = look_further, search_again
        self.places = np.empty(0, np.int32)

    cdef void search_root(self):
        self.words.n_sums = SUMS_OF_A_STEP
        Growth.search_root(self)

    cdef bint split_and_search(self, int64_t limit, int32_t first_child):
        return False  # ranks exchange sums between splitting and searching

    cdef void split(self, int64_t limit, int32_t first_child):
        cdef const int32_t[::1] ids
        cdef PartedLeaf[::1] parted
        cdef int32_t[::1] refused
        self.refine_parents()
        self.look_further_of(np.asarray(self.parents[: self.n_parents]))
        self.drop_unsplit()
        if not self.n_parents:  # monotone bounds may rule out all these splits; bins of other leaves follow
            self.communicator.stack(np.zeros(1, np.int64), SUMS_OF_A_STEP)
        while self.n_parents:
            ids = self.parents[: self.n_parents]
            parted = self.parter.part(ids, self.n_threads, self.values_per_thread)
            told = self.communicator.stack(parted.base, SUMS_OF_A_STEP if self.n_parents < limit else 0)
            refused = self.parter.split_parted(ids, first_child, told)
            if not refused.shape[0]:
                return
            self.search_again(refused.base)
            self.drop_unsplit()

    cdef void make_room_to_tell(self, int64_t n):
        """Make room for n lines, or for the bins of n features of leaves."""
        if n > self.places.shape[0]:
            self.places, self.gradients = np.empty(2 * n, np.int32), np.empty(2 * n, np.int64)
            self.within = np.empty((2 * n, 2), np.int64)

    cdef void refine_parents(self):
        """`refine` the parents, whose lines say how large the sums of their bins may be."""
        cdef const int32_t[::1] ids = self.parents[: self.n_parents]
        cdef int64_t[:, ::1] bins
        cdef const Leaf* leaf
        cdef int64_t i, n = 0
        cdef int j
        self.make_room_to_tell(SHORTLIST * self.n_parents)
        for i in range(self.n_parents):
            leaf = &self.leaves[ids[i]]
            if leaf.line < 0:
                refine(self.coarse_finder, self.words, ids, self.n_threads, self.values_per_thread)
                return
            for j in range(SHORTLIST):
                if leaf.shortlist[j] < 0:
                    break
                self.places[n], self.gradients[n] = <int32_t>(SHORTLIST * i + j), 0
                self.within[n, 0], self.within[n, 1] = leaf.line, self.coarse_finder.places[leaf.shortlist[j]]
                n += 1
        bins = self.coarse_finder.sums_of_shortlists(ids, self.n_threads, self.values_per_thread)
        self.words.add_up_within(
            bins, self.places[:n], self.builder.lines, self.within[:n], COARSE_CELLS, self.gradients[:n]
        )
        self.coarse_finder.scan_shortlists(ids, bins)

    cdef void search_children(self):
        cdef const int32_t[::1] children = self.children[: 2 * self.n_parents]
        cdef int64_t k, n_built = self.builder.hand_lines_over(
            self.parents[: self.n_parents], children, self.few_rows, False
        )
        self.builder.build_smaller(n_built, self.bits, self.same, self.n_threads, self.values_per_thread)
        self.put_children_together(n_built)
        self.n_awake = self.worth(n_built * self.cost_of_cells())
        for k in prange(
            n_built, nogil=True, num_threads=self.n_awake, use_threads_if=self.n_awake > 1,
            schedule="dynamic", chunksize=chunk_of(n_built, self.n_awake),
        ):
            self.subtract_and_search(k, threadid())
        self.search_lacking()

    cdef void put_children_together(self, int64_t n_built):
        """`put_together` for the smaller children, whose siblings still have the lines of both."""
        cdef const Leaf* leaf
        cdef int64_t i
        self.make_room_to_tell(n_built)
        for i in range(n_built):
            leaf = &self.leaves[self.builder.built[i]]
            self.places[i] = leaf.line
            self.gradients[i] = leaf.total.gradient  # in case those of the two sides cancel out
            self.within[i, 0], self.within[i, 1] = self.leaves[self.builder.siblings[i]].line, 0
        if n_built:
            self.words.add_up_within(
                self.builder.lines, self.places[:n_built], self.builder.lines, self.within[:n_built],
                self.builder.lines.shape[1], self.gradients[:n_built],
            )

    cdef void put_together(self, const int32_t[::1] ids):
        if ids.shape[0]:
            self.words.add_up(self.builder.lines, self.builder.lines_of(ids), 1)
