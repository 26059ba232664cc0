"""Grow a tree in one call, if the split of a leaf depends only on the rows of the leaf.

    waiting     [ 7 | 3 | 12 | ... ]      leaves whose split is known, or at least the features it may be by
    parents     [ 7 | 3 ]                 the leaves whose turn it is
    children    [ 15 16 | 17 18 ]         the next nodes, two for each parent

If there are a few large leaves, threads share each of them. Otherwise each thread takes a leaf, and does all
that can be done while its rows are in the cache. For a parent, it finds the split and parts the rows. For two
children, it builds the line of the smaller, subtracts it from that of the larger, and searches both. A coarse
search does all of this in one step; in other searches a parent may have to wait for another turn. The same
algorithm, step by step and with all its decisions, is in `ranktrees.growing.grower`.
"""
import numpy as np

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.string cimport memcpy, memset

from ranktrees._core.growing.coarse_finding cimport ROW_REFINED, CoarseFinder
from ranktrees._core.growing.finding cimport Finder
from ranktrees._core.growing.histogram cimport Builder
from ranktrees._core.growing.line_finding cimport LineFinder
from ranktrees._core.growing.parting cimport ROW_PARTED, Parter
from ranktrees._core.growing.queues cimport Queue
from ranktrees._core.support.records cimport SHORTLIST, Leaf, chunk_of, n_rows_of, portable_key, worth_threads
from ranktrees._core.support.views cimport line_in

cdef enum:
    CELL_SEARCHED = 4  # the cost of searching a cell of a line, in steps of about a nanosecond
    SHARING = 8        # the cost of sharing leaves, in units of the least work that is worth a thread
    MANY = 64          # with this many tasks for each thread, it does not matter which of them come last
    LEVELS = 65        # of costs: from the largest down to less than a 64th of it


cdef inline int64_t level_of(int64_t cost, int64_t most) noexcept nogil:
    """The level of a cost: 0 for the largest."""
    return LEVELS - 1 - cost * (LEVELS - 1) // most


cdef class Growth:
    """Grows one tree after another.

    Parameters
    ----------
    parter : Parter
    builder : Builder or None
        Builds the lines of leaves. None if leaves have no lines.
    finder : Finder, LineFinder or CoarseFinder
        From rows if there is no builder. If the search is coarse, cells pick a few features, and the split is
        found in all bins of these when the leaf has its turn.
    queue : Queue
    constraints : Constraints
        The features that splits may use, and the number of them that each leaf draws. While none gives a
        split, it draws as many more again.
    n_leaves : int
        The maximum number of leaves of a tree.
    few_rows : int
        Leaves with fewer rows have no line, unless their sibling has at least that many.
    n_threads : int
    """

    def __init__(
        self, Parter parter, Builder builder, Finder finder, Queue queue, constraints, n_leaves, few_rows,
        n_threads,
    ):
        self.parter, self.builder, self.finder, self.queue = parter, builder, finder, queue
        self.line_finder = finder if isinstance(finder, LineFinder) else None
        self.coarse_finder = finder if isinstance(finder, CoarseFinder) else None
        self.is_coarse = self.coarse_finder is not None
        self.usable, self.n_drawn = constraints.usable[None, :], constraints.n_drawn
        self.n_leaves, self.few_rows, self.n_threads = n_leaves, few_rows, n_threads
        self.make_room(64)

    cdef void make_room(self, int64_t n):
        """Make room for n parents."""
        self.parents = np.empty(n, np.int32)
        self.children, self.picked = np.empty(2 * n, np.int32), np.empty(2 * n, np.int32)
        self.costs, self.turns = np.empty(2 * n, np.int64), np.empty(2 * n, np.int64)
        self.has_line = np.empty(n, np.int8)

    def grow(
        self, bint one_by_one, int bits, bint same, uint64_t seed, uint64_t stream, int64_t values_per_thread,
        make_room,
    ):
        """Grow a tree whose root is ready, and return the number of its nodes.

        Parameters
        ----------
        one_by_one : bool
            See `Queue.begin`.
        bits, same
            How the sums are to be read; see rounding.h.
        seed, stream : int
            The draws of features depend on these.
        values_per_thread : int
            The least work that is worth a thread, in steps of about a nanosecond.
        make_room : callable
            Takes a number of nodes, and makes room for them in the leaves that all kernels use.
        """
        cdef int64_t n_left = self.n_leaves - 1, k
        cdef int32_t n_nodes = 1
        cdef bint searched
        self.bits, self.same, self.values_per_thread = bits, same, values_per_thread
        self.key = portable_key(seed, stream)
        self.leaves = &self.parter.leaves[0]
        self.queue.begin(one_by_one)
        if n_left and self.leaves[0].splits_below:
            self.search_root()
        while self.next_parents(n_left):
            if n_nodes + 2 * self.n_parents > self.parter.leaves.shape[0]:
                make_room(n_nodes + 2 * self.n_parents)
                self.leaves = &self.parter.leaves[0]
            searched = self.split_and_search(n_left, n_nodes)
            if not searched:
                self.split(n_left, n_nodes)
            for k in range(2 * self.n_parents):
                self.children[k] = n_nodes
                n_nodes += 1
            n_left -= self.n_parents
            if n_left and self.n_parents:
                if searched:
                    self.search_lacking()
                else:
                    self.search_children()
                self.queue.push(self.children[: 2 * self.n_parents], self.parents[: self.n_parents])
                if self.builder is not None and not self.is_coarse:
                    self.builder.forget(self.queue.hopeless(n_left))
        return n_nodes

    cdef bint next_parents(self, int64_t limit):
        """Make the leaves whose turn it is the parents. Return False if there are none."""
        self.n_parents = self.queue.n_next(limit)
        if self.n_parents > self.parents.shape[0]:
            self.make_room(2 * self.n_parents)
        self.queue.take(self.parents[: self.n_parents])
        return self.n_parents > 0

    cdef int64_t n_to_weigh(self, int64_t n_tasks) noexcept:
        """The number of tasks whose costs are needed: none if a single thread does them all."""
        return n_tasks if self.n_threads > 1 else 0

    cdef bint one_each(self, int64_t n_tasks) noexcept:
        """Whether threads take one task each, starting with those that cost most.

        They do so unless they would wait for the most expensive task longer than sharing every task takes.
        """
        cdef int64_t i, total = 0, most = 0
        for i in range(self.n_to_weigh(n_tasks)):
            total += self.costs[i]
            most = max(most, self.costs[i])
        self.n_awake = self.worth(total)
        if total < self.n_awake * (most - SHARING * self.values_per_thread):
            return False
        self.n_awake = <int>max(1, min(self.n_awake, n_tasks))
        if self.n_awake > 1 and n_tasks < MANY * self.n_awake:
            self.sort_turns(n_tasks, most)
        else:
            for i in range(n_tasks):
                self.turns[i] = i
        return True

    cdef void sort_turns(self, int64_t n_tasks, int64_t most) noexcept:
        """Let tasks that cost more come first, and of equal ones the first, in time linear in their number.

        Costs that differ by less than a 64th of the largest may count as equal. So at the end a thread waits
        at most about that much longer than if they were sorted.
        """
        cdef int64_t[LEVELS] places  # the next free place for each level
        cdef int64_t i, level, size, n_before = 0
        memset(places, 0, sizeof(places))
        for i in range(n_tasks):
            places[level_of(self.costs[i], most)] += 1
        for level in range(LEVELS):
            size = places[level]
            places[level] = n_before
            n_before += size
        for i in range(n_tasks):
            level = level_of(self.costs[i], most)
            self.turns[places[level]] = i
            places[level] += 1

    # ----------------------------------------------------------------------------------- parents and children

    cdef bint split_and_search(self, int64_t limit, int32_t first_child):
        """Have a single thread split each leaf and search its children by their lines.

        Returns False, and does nothing, if threads have to share leaves, if lines are lacking, if leaves may
        have to wait for another turn, or if no more splits are to be found.
        """
        cdef int64_t n = self.n_parents, k
        cdef int32_t child
        cdef Leaf* leaf
        if not self.is_coarse or n >= limit:
            return False
        for k in range(self.n_to_weigh(n)):
            leaf = &self.leaves[self.parents[k]]
            self.costs[k] = self.cost_of_split(leaf) + self.cost_of_cells() + (
                self.builder.steps_to_build(leaf) // 3  # an estimate for the smaller child, not known yet
            )
        if not self.one_each(n) or not self.builder.set_aside(n):
            return False
        for k in prange(
            n, nogil=True, num_threads=self.n_awake, use_threads_if=self.n_awake > 1, schedule="dynamic",
            chunksize=chunk_of(n, self.n_awake),
        ):
            self.split_and_search_one(self.turns[k], first_child, threadid())
        self.split_lacking(first_child)
        for k in range(n):
            leaf = &self.leaves[self.parents[k]]
            if not self.has_line[k]:
                self.builder.give_back(k)
            if leaf.left >= 0 and leaf.line >= 0:  # neither child may split
                self.builder.drop_line(leaf)
        self.drop_unsplit()
        for k in range(self.n_parents):
            leaf, child = &self.leaves[self.parents[k]], <int32_t>(first_child + 2 * k)
            if leaf.left != child:
                self.move_children(leaf, child)
        return True

    cdef void split_and_search_one(self, int64_t k, int32_t first_child, int thread) noexcept nogil:
        cdef Leaf* leaf = &self.leaves[self.parents[k]]
        self.split_one(k, first_child, True, thread)
        self.has_line[k] = leaf.left >= 0 and leaf.line >= 0 and self.builder.hand_line_over(
            leaf, &self.leaves[leaf.left], &self.leaves[leaf.right], self.few_rows, True,
            self.builder.spares[k], k,
        )
        if self.has_line[k]:
            self.build_and_search(k, thread)

    cdef void build_and_search(self, int64_t k, int thread) noexcept nogil:
        """Search two children by their lines: the k-th line to build, and the one it is subtracted from."""
        self.builder.build_one(k, self.bits, self.same, thread)
        self.subtract_and_search(k, thread)

    cdef void subtract_and_search(self, int64_t k, int thread) noexcept nogil:
        """The same once the k-th line is built."""
        self.builder.subtract_cells(k, 0, self.builder.lines.shape[1])
        self.search_line(self.builder.built[k], thread)
        self.search_line(self.builder.siblings[k], thread)

    cdef void move_children(self, Leaf* leaf, int32_t first_child) noexcept:
        """Move the children of a leaf to close gaps; search them again, as draws depend on their numbers."""
        cdef int32_t k
        self.leaves[first_child] = self.leaves[leaf.left]
        self.leaves[first_child + 1] = self.leaves[leaf.right]
        leaf.left, leaf.right = first_child, first_child + 1
        for k in range(first_child, first_child + 2):
            if self.leaves[k].line >= 0:
                self.search_line(k, 0)

    cdef void search_lacking(self):
        """Search the children that may split and have no line; free the lines of those without a split."""
        cdef int32_t[::1] children = self.children[: 2 * self.n_parents]
        cdef int64_t n_lacking = self.pick(children, False)
        if n_lacking:
            self.search_lent(n_lacking)
        self.builder.forget(children, False)

    # ------------------------------------------------------------------------------------------------ parents

    cdef void split(self, int64_t limit, int32_t first_child):
        """Split the leaves whose turn it is. Those that turn out to have no split are no longer parents.

        If a leaf turns out to gain less than it promised, the turn may pass to another leaf.
        """
        cdef int64_t k
        while self.n_parents:
            for k in range(self.n_to_weigh(self.n_parents)):
                self.costs[k] = self.cost_of_split(&self.leaves[self.parents[k]])
            if self.one_each(self.n_parents):
                for k in prange(
                    self.n_parents, nogil=True, num_threads=self.n_awake, use_threads_if=self.n_awake > 1,
                    schedule="dynamic", chunksize=chunk_of(self.n_parents, self.n_awake),
                ):
                    self.split_one(self.turns[k], first_child, self.is_coarse, threadid())
            else:
                self.split_together(first_child)
            if self.is_coarse:
                self.split_lacking(first_child)
            if self.keep_split(first_child):
                break
            if self.builder is not None:
                self.builder.forget(self.parents[: self.n_parents], False)
            self.queue.put_back(self.parents[: self.n_parents])
            self.next_parents(limit)

    cdef int64_t cost_of_split(self, const Leaf* leaf) noexcept:
        """The cost of parting the rows of a leaf, and of finding its split if only its shortlist is known."""
        cdef int64_t n_refined = leaf.stop - leaf.start if self.is_coarse else 0
        return ROW_PARTED * n_rows_of(leaf) + ROW_REFINED * n_refined

    cdef void split_one(self, int64_t k, int32_t first_child, bint refine, int thread) noexcept nogil:
        """Part the rows of a leaf that is not yet parted, and found its children, that is, set their records.

        If a child gets too few rows, the leaf is searched again. In a coarse search it keeps its turn, but
        looks further if its shortlist falls short of its promise; without a line, it is left to
        `split_lacking`. In other searches it now promises less, and has to wait.
        """
        cdef Leaf* leaf = &self.leaves[self.parents[k]]
        if refine and leaf.left < 0:
            self.coarse_finder.refine_alone(leaf, thread)
        while leaf.left < 0:
            if self.is_coarse and self.coarse_finder.falls_short(leaf):
                if leaf.line < 0:
                    return
                self.look_further(self.parents[k], thread)
            if leaf.split.feature < 0 or self.parter.part_one(leaf):
                break
            if self.is_coarse:
                self.finder.find_in_all_rows(leaf, leaf.shortlist, SHORTLIST, thread)
                continue
            if leaf.line >= 0:
                self.line_finder.find_one(
                    leaf, line_in(self.usable, 0), self.usable.shape[1], self.builder.count(leaf, thread)
                )
            else:
                self.finder.find_in_all_rows(leaf, line_in(self.usable, 0), self.usable.shape[1], thread)
            return
        self.make_children_of(leaf, <int32_t>(first_child + 2 * k))

    cdef void look_further(self, int32_t k, int thread) noexcept nogil:
        """Search a leaf, which has a line, by features whose cuts are allowed."""
        self.coarse_finder.draw_and_look_further(
            k, line_in(self.usable, 0), self.usable.shape[1], self.n_drawn, self.key,
            self.builder.count(&self.leaves[k], thread), thread,
        )

    cdef void split_lacking(self, int32_t first_child):
        """Split the leaves that have to look further and have no line: each is lent one in turn."""
        cdef int64_t k
        for k in range(self.n_parents):
            if self.leaves[self.parents[k]].left < 0 and self.keep_promise(k):
                self.split_one(k, first_child, False, 0)

    cdef bint keep_promise(self, int64_t k):
        """Have the k-th parent look further if it falls short. Return whether it has."""
        cdef Leaf* leaf = &self.leaves[self.parents[k]]
        cdef const int32_t[::1] one = self.parents[k : k + 1]
        if not self.coarse_finder.falls_short(leaf):
            return False
        if leaf.line >= 0:
            self.look_further(one[0], 0)
        else:
            self.builder.lend(one, self.bits, self.same, self.worth(self.builder.steps_to_build(leaf)))
            self.look_further(one[0], 0)
            self.builder.take_back(one)
        return True

    cdef void make_children_of(self, Leaf* leaf, int32_t first_child) noexcept nogil:
        """Make the children of a parted leaf at ``first_child``, unless they are there."""
        if leaf.left >= 0 and leaf.left != first_child:
            self.parter.make_children_of(leaf, first_child)

    cdef void split_together(self, int32_t first_child):
        """Split the leaves with all threads sharing each of them."""
        cdef int64_t k
        cdef bint all_split = True
        if self.is_coarse:
            self.coarse_finder.refine(self.parents[: self.n_parents], self.n_threads, self.values_per_thread)
            for k in range(self.n_parents):
                self.keep_promise(k)
            self.drop_unsplit()
        self.parter.split_all(
            self.parents[: self.n_parents], first_child, self.n_threads, self.values_per_thread
        )
        for k in range(self.n_parents):
            all_split = all_split and self.leaves[self.parents[k]].left >= 0
        if all_split:
            return
        for k in prange(
            self.n_parents, nogil=True, num_threads=self.n_awake, use_threads_if=self.n_awake > 1,
            schedule="dynamic",
        ):
            self.split_one(k, first_child, False, threadid())

    cdef bint keep_split(self, int32_t first_child):
        """Number the children without gaps. Return False if some leaves are still to be split."""
        cdef int64_t k
        if self.is_coarse:
            self.drop_unsplit()
        for k in range(self.n_parents):
            if self.leaves[self.parents[k]].left < 0:
                return False
            self.make_children_of(&self.leaves[self.parents[k]], <int32_t>(first_child + 2 * k))
        return True

    cdef void drop_unsplit(self) noexcept:
        """Drop the parents that have no split, and their lines."""
        cdef int64_t k, n = 0
        cdef Leaf* leaf
        for k in range(self.n_parents):
            leaf = &self.leaves[self.parents[k]]
            if leaf.split.feature >= 0:
                self.parents[n] = self.parents[k]
                n += 1
            elif leaf.line >= 0:
                self.builder.drop_line(leaf)
        self.n_parents = n

    # ----------------------------------------------------------------------------------------------- children

    cdef void search_root(self):
        cdef const Leaf* root = &self.leaves[0]
        self.children[0] = self.picked[0] = 0
        if self.builder is not None and self.builder.root(
            self.few_rows, self.bits, self.same, self.worth(self.builder.steps_to_build(root))
        ):
            self.put_together(self.children[:1])
            self.search_together(1, True)
        elif self.is_coarse:
            self.search_lent(1)
        else:
            self.search_together(1, False)
        self.queue.push(self.children[:1])

    cdef void search_children(self):
        """Search the children that may split, by their lines or, if they have none, by their rows."""
        cdef int32_t[::1] children = self.children[: 2 * self.n_parents]
        cdef int64_t n_built = 0, n_lacking, n_tasks, k
        if self.builder is not None:
            n_built = self.builder.hand_lines_over(
                self.parents[: self.n_parents], children, self.few_rows, True
            )
        n_lacking = self.pick(children, False)
        n_tasks = n_built if self.is_coarse else n_built + n_lacking
        for k in range(self.n_to_weigh(n_tasks)):
            if k < n_built:
                self.costs[k] = self.cost_of_lines(k)
            else:
                self.costs[k] = self.cost_of_rows(self.picked[k - n_built])
        if self.one_each(n_tasks):
            for k in prange(
                n_tasks, nogil=True, num_threads=self.n_awake, use_threads_if=self.n_awake > 1,
                schedule="dynamic", chunksize=chunk_of(n_tasks, self.n_awake),
            ):
                self.search_some(self.turns[k], n_built, threadid())
        else:
            if n_built:
                self.builder.build_and_subtract(
                    n_built, self.bits, self.same, self.n_threads, self.values_per_thread
                )
                self.search_together(self.pick(children, True), True)
            if not self.is_coarse:
                self.search_together(self.pick(children, False), False)
        if self.is_coarse:
            self.search_lacking()
        elif self.builder is not None:
            self.builder.forget(children, False)

    cdef void put_together(self, const int32_t[::1] ids):
        """Add up lines over ranks, if there are several, after each has built them from its rows."""

    cdef int64_t pick(self, const int32_t[::1] children, bint with_line) noexcept:
        """Pick the children that may split and have a line (or have none). Return how many."""
        cdef int64_t k, n = 0
        cdef const Leaf* leaf
        for k in range(children.shape[0]):
            leaf = &self.leaves[children[k]]
            if leaf.splits_below and (leaf.line >= 0) == with_line:
                self.picked[n] = children[k]
                n += 1
        return n

    cdef int64_t pick_unsplit(self, int64_t n_picked) noexcept:
        """Keep those of the picked leaves that have found no split. Return how many."""
        cdef int64_t k, n = 0
        for k in range(n_picked):
            if self.leaves[self.picked[k]].split.feature < 0:
                self.picked[n] = self.picked[k]
                n += 1
        return n

    cdef int64_t cost_of_lines(self, int64_t k) noexcept:
        """The cost of building the k-th line, of subtracting it from its sibling's, and of searching both."""
        return self.builder.steps_to_build(&self.leaves[self.builder.built[k]]) + self.cost_of_cells()

    cdef int64_t cost_of_cells(self) noexcept:
        """The cost of searching two lines."""
        return 2 * CELL_SEARCHED * self.builder.lines.shape[1] * self.n_drawn // self.usable.shape[1]

    cdef int64_t cost_of_rows(self, int32_t child) noexcept:
        return (self.leaves[child].stop - self.leaves[child].start) * self.n_drawn

    cdef void search_some(self, int64_t task, int64_t n_built, int thread) noexcept nogil:
        """Search two children by their lines or, after the last such task, one child by its rows."""
        if task < n_built:
            self.build_and_search(task, thread)
        elif self.builder is None or self.draws():
            self.finder.draw_and_find(
                self.picked[task - n_built], line_in(self.usable, 0), self.usable.shape[1], self.n_drawn,
                self.key,
                thread,
            )
        else:
            self.finder.find_one_directly(
                &self.leaves[self.picked[task - n_built]], line_in(self.usable, 0), self.usable.shape[1],
                thread
            )

    cdef void search_line(self, int32_t k, int thread) noexcept nogil:
        if not self.leaves[k].splits_below:
            return
        if self.is_coarse:
            self.coarse_finder.draw_and_shortlist(
                k, line_in(self.usable, 0), self.usable.shape[1], self.n_drawn, self.key, thread
            )
        elif self.draws():
            self.draw_from_line(k, thread)
        else:
            self.line_finder.find_one(&self.leaves[k], line_in(self.usable, 0), self.usable.shape[1], NULL)

    cdef bint draws(self) noexcept nogil:
        """Whether leaves draw some of the features."""
        return self.n_drawn < self.usable.shape[1]

    cdef void draw_from_line(self, int32_t k, int thread) noexcept nogil:
        """Search a leaf by its line, with features that it draws as in `Finder.draw_and_find`."""
        cdef Leaf* leaf = &self.leaves[k]
        cdef int64_t first = 0, n, width = self.usable.shape[1]
        cdef const int32_t* features
        while first < width:
            n = min(self.n_drawn, width - first)
            features = self.finder.draw(k, line_in(self.usable, 0), width, first, n, self.key, thread)
            self.line_finder.find_one(leaf, features, n, NULL)
            if self.finder.apart and leaf.split.feature >= 0 and not self.finder.is_confirmed(leaf):
                self.line_finder.find_one(leaf, features, n, self.builder.count(leaf, thread))
            if leaf.split.feature >= 0:
                return
            first += n

    cdef void search_together(self, int64_t n, bint by_line):
        """Search the picked leaves. If there are few, threads share each of them."""
        cdef int64_t first = 0, width = self.usable.shape[1], k, n_values
        cdef const int32_t[:, ::1] features
        cdef const int32_t[::1] ids
        while n:
            ids, features = self.picked[:n], self.drawn(n, first)
            if self.is_coarse:
                self.coarse_finder.shortlist(ids, features, self.n_threads, self.values_per_thread)
            elif by_line and self.draws():
                for k in range(n):
                    self.draw_from_line(ids[k], 0)
                return
            elif by_line:
                self.line_finder.find(ids, self.worth(CELL_SEARCHED * n * self.builder.lines.shape[1]))
            else:
                n_values = 0
                for k in range(n):
                    n_values += self.cost_of_rows(ids[k])
                self.finder.find_directly(ids, features, self.worth(n_values))
                if (self.builder is None or self.draws()) and self.finder.apart:
                    self.finder.verify(ids, features, self.worth(n_values))
            first += self.n_drawn
            n = self.pick_unsplit(n) if first < width else 0

    cdef const int32_t[:, ::1] drawn(self, int64_t n, int64_t first):
        """The features that the picked leaves draw after their ``first`` ones, one list per leaf."""
        cdef int64_t width = self.usable.shape[1], n_drawn = min(self.n_drawn, width - first), k
        cdef int32_t[:, ::1] drawn
        if self.n_drawn == width:
            return self.usable
        drawn = np.empty((n, n_drawn), np.int32)
        for k in range(n):
            if first:
                self.finder.draw(self.picked[k], line_in(self.usable, 0), width, 0, first, self.key, 0)
            memcpy(
                &drawn[k, 0],
                self.finder.draw(self.picked[k], line_in(self.usable, 0), width, first, n_drawn, self.key, 0),
                n_drawn * sizeof(int32_t),
            )
        return drawn

    cdef void search_lent(self, int64_t n):
        """Search the picked leaves, which have no lines: each of them is lent one in turn."""
        cdef int32_t[::1] ids = np.array(self.picked[:n])
        cdef int64_t k
        for k in range(n):
            self.builder.lend(
                ids[k : k + 1], self.bits, self.same,
                self.worth(self.builder.steps_to_build(&self.leaves[ids[k]])),
            )
            self.put_together(ids[k : k + 1])
            self.picked[0] = ids[k]
            self.search_together(1, True)
            self.builder.take_back(ids[k : k + 1])

    cdef int worth(self, int64_t n_values) noexcept:
        return worth_threads(self.n_threads, n_values, self.values_per_thread)
