"""What other modules use of growing a tree."""
from libc.stdint cimport int8_t, int32_t, int64_t, uint64_t

from ranktrees._core.growing.coarse_finding cimport CoarseFinder
from ranktrees._core.growing.finding cimport Finder
from ranktrees._core.growing.histogram cimport Builder
from ranktrees._core.growing.line_finding cimport LineFinder
from ranktrees._core.growing.parting cimport Parter
from ranktrees._core.growing.queues cimport Queue
from ranktrees._core.support.records cimport Leaf


cdef class Growth:
    cdef Parter parter
    cdef Builder builder
    cdef Finder finder
    cdef LineFinder line_finder      # the finder, if it is one of lines of all bins, else None
    cdef CoarseFinder coarse_finder  # the finder, if the search is coarse, else None
    cdef Queue queue
    cdef const int32_t[:, ::1] usable
    cdef int64_t n_drawn, n_leaves, n_parents, few_rows, values_per_thread
    cdef uint64_t key
    cdef bint is_coarse, same
    cdef int bits, n_threads, n_awake
    cdef Leaf* leaves
    cdef int32_t[::1] parents, children, picked
    cdef int64_t[::1] costs, turns
    cdef int8_t[::1] has_line

    cdef void make_room(self, int64_t n)
    cdef bint next_parents(self, int64_t limit)
    cdef int64_t n_to_weigh(self, int64_t n_tasks) noexcept
    cdef bint one_each(self, int64_t n_tasks) noexcept
    cdef void sort_turns(self, int64_t n_tasks, int64_t most) noexcept
    cdef bint split_and_search(self, int64_t limit, int32_t first_child)
    cdef void split_and_search_one(self, int64_t k, int32_t first_child, int thread) noexcept nogil
    cdef void build_and_search(self, int64_t k, int thread) noexcept nogil
    cdef void subtract_and_search(self, int64_t k, int thread) noexcept nogil
    cdef void move_children(self, Leaf* leaf, int32_t first_child) noexcept
    cdef void search_lacking(self)
    cdef int64_t cost_of_split(self, const Leaf* leaf) noexcept
    cdef int64_t cost_of_cells(self) noexcept
    cdef void split(self, int64_t limit, int32_t first_child)
    cdef void split_one(self, int64_t k, int32_t first_child, bint refine, int thread) noexcept nogil
    cdef void look_further(self, int32_t k, int thread) noexcept nogil
    cdef void split_lacking(self, int32_t first_child)
    cdef bint keep_promise(self, int64_t k)
    cdef void make_children_of(self, Leaf* leaf, int32_t first_child) noexcept nogil
    cdef void split_together(self, int32_t first_child)
    cdef bint keep_split(self, int32_t first_child)
    cdef void drop_unsplit(self) noexcept
    cdef void search_root(self)
    cdef void search_children(self)
    cdef void put_together(self, const int32_t[::1] ids)
    cdef int64_t pick(self, const int32_t[::1] children, bint with_line) noexcept
    cdef int64_t pick_unsplit(self, int64_t n_picked) noexcept
    cdef int64_t cost_of_lines(self, int64_t k) noexcept
    cdef int64_t cost_of_rows(self, int32_t child) noexcept
    cdef void search_some(self, int64_t task, int64_t n_built, int thread) noexcept nogil
    cdef bint draws(self) noexcept nogil
    cdef void draw_from_line(self, int32_t k, int thread) noexcept nogil
    cdef void search_line(self, int32_t k, int thread) noexcept nogil
    cdef void search_together(self, int64_t n, bint by_line)
    cdef const int32_t[:, ::1] drawn(self, int64_t n, int64_t first)
    cdef void search_lent(self, int64_t n)
    cdef int worth(self, int64_t n_values) noexcept
