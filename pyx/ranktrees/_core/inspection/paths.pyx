"""What each feature adds to the values of trees: see paths.h and `ranktrees.inspection.contributions`."""
import numpy as np

from cython.parallel cimport prange, threadid
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uintptr_t
from libc.string cimport memcpy

from ranktrees._core.support.records cimport Node

cdef extern from "inspection/paths.h" nogil:
    ctypedef struct Fork:
        double cut
        const uint32_t* bits
        int32_t place, column, depth, above
        uint8_t missing_left, has_leaf
    ctypedef struct Paths:
        int64_t n_forks, n_points, n_levels, n_places, n_columns
        const Fork* forks
        const int64_t* tables
        const double* weights
    enum: THROUGH, LEAVES, LEAVES_ADD, ADDS, IN_TABLES
    int n_lanes()
    int64_t room_needed(const Paths* paths)
    void contribute(
        const Paths* paths, int64_t n_blocks, int in_pairs, double* room, const double* values, double* out
    )

cdef enum: IN_CACHE = 32768  # values and sums that a thread works on
cdef enum: ALIGNED = 8  # values in a line of the cache


# A child of a split. ``share``: of the rows that take all ways above that ask for the same feature, how many
# take this one, too.
cdef struct Side:
    double share, value
    bint is_leaf


cdef struct Split:
    double share_above
    int64_t parent, side
    Side[2] sides


# Of a walk: a node that is still to come, and by depth, the split that the way goes through.
cdef struct Coming:
    int64_t node, depth, side
    double reached


cdef struct Taken:
    int64_t split, side, n_features
    int32_t feature


cdef class TreePaths:
    """The splits of trees, and what the training rows that took their sides weigh.

    Parameters
    ----------
    nodes : ndarray of NODE, shape (n_nodes,)
    tree_offsets : ndarray of int64, shape (n_trees + 1,)
    covers : ndarray of float64, shape (n_nodes,)
        The weight of the training rows at each node, above 0.
    bitsets : ndarray of uint32, shape (n, n_words)
    places, code_columns : ndarray of int64, shape (n_features,)
        For each feature, its number among those that the trees ask for, and the column of its codes.
    n_places, n_columns : int
    rule : callable
        Maps a number of points to points, and to weights whose weighted sum is the integral over [0, 1].
    scale : float
        What the value of a tree counts.

    Attributes
    ----------
    expected : float
        The value of a row of which nothing is known.
    """

    cdef readonly double expected
    cdef int64_t n_places, n_columns, n_trees, most_room
    cdef uint8_t[::1] all_forks, all_paths  # records
    cdef int64_t[::1] tables
    cdef double[::1] weights
    cdef const uint32_t[:, ::1] bitsets

    def __init__(
        self, const Node[::1] nodes, const int64_t[::1] tree_offsets, const double[::1] covers,
        const uint32_t[:, ::1] bitsets, const int64_t[::1] places, const int64_t[::1] code_columns,
        int64_t n_places, int64_t n_columns, rule, double scale,
    ):
        cdef int64_t n_trees = tree_offsets.shape[0] - 1, t, n_points, n_tables = 0, n_weights = 0
        cdef int64_t n_splits = (nodes.shape[0] - n_trees) // 2, n_most = np.max(np.diff(tree_offsets))
        self.n_places, self.n_columns, self.n_trees, self.bitsets = n_places, n_columns, n_trees, bitsets
        self.all_forks = np.empty((n_splits + 1) * sizeof(Fork), np.uint8)
        self.all_paths = np.empty(n_trees * sizeof(Paths), np.uint8)
        cdef uint8_t[::1] all_splits = np.empty((n_splits + 1) * sizeof(Split), np.uint8)
        cdef uint8_t[::1] coming = np.empty(n_most * sizeof(Coming), np.uint8)
        cdef uint8_t[::1] taken = np.empty((n_most + 1) * sizeof(Taken), np.uint8)
        cdef Fork* forks = <Fork*>&self.all_forks[0]
        cdef Split* splits = <Split*>&all_splits[0]
        cdef Paths* paths = <Paths*>&self.all_paths[0]
        rules = []
        for t in range(n_trees):
            paths[t] = Paths(0, 1, 1, n_places, n_columns, forks, NULL, NULL)
            n_points = self.lay_out(
                &nodes[tree_offsets[t]], &covers[tree_offsets[t]], places, code_columns, scale, &paths[t],
                forks, splits, <Coming*>&coming[0], <Taken*>&taken[0],
            )
            forks, splits = forks + paths[t].n_forks, splits + paths[t].n_forks
            paths[t].n_points = n_points
            rules.append(rule(n_points))
            n_tables += IN_TABLES * paths[t].n_forks * n_points
            self.most_room = max(self.most_room, room_needed(&paths[t]))
        self.tables = np.empty(n_tables + 1, np.int64)
        self.weights = scale * np.concatenate([weights for _, weights in rules])
        cdef int64_t* tables = &self.tables[0]
        cdef const double[::1] points
        splits = <Split*>&all_splits[0]
        for t in range(n_trees):
            points = rules[t][0]
            paths[t].weights, paths[t].tables = &self.weights[n_weights], tables
            fill(&paths[t], splits, &points[0], tables)
            splits = splits + paths[t].n_forks
            tables = tables + IN_TABLES * paths[t].n_forks * paths[t].n_points
            n_weights += paths[t].n_points

    cdef int64_t lay_out(
        self, const Node* nodes, const double* covers, const int64_t[::1] places,
        const int64_t[::1] code_columns, double scale, Paths* paths, Fork* forks, Split* splits,
        Coming* coming, Taken* taken,
    ):
        """Set the forks and splits of a tree in the order of a walk. Return the number of points it needs."""
        cdef int64_t n_coming = 1, most = 0, above, side, child, depth
        cdef double both
        cdef Coming now
        cdef const Node* node
        cdef Fork* fork
        cdef Split* split
        coming[0] = Coming(0, 0, 0, scale)
        taken[0].n_features = 0
        while n_coming:
            n_coming -= 1
            now = coming[n_coming]
            node, depth = &nodes[now.node], now.depth
            if depth:
                taken[depth - 1].side = now.side
            if node.feature < 0:
                self.expected += now.reached * node.value
                most = max(most, taken[depth].n_features)
                continue
            fork, split = &forks[paths.n_forks], &splits[paths.n_forks]
            fork.place, fork.depth = <int32_t>places[node.feature], <int32_t>depth
            fork.column, fork.cut, fork.missing_left = fork.place, node.cut, node.missing_left
            fork.bits, fork.has_leaf = NULL, False
            if node.categories >= 0:
                fork.column = <int32_t>code_columns[node.feature]
                fork.bits = &self.bitsets[node.categories, 0]
            if depth:
                split.parent, split.side = taken[depth - 1].split, now.side
            above = depth - 1
            while above >= 0 and taken[above].feature != node.feature:
                above -= 1
            fork.above, split.share_above = -1, 1.0
            if above >= 0:
                fork.above = <int32_t>(2 * above + taken[above].side)
                split.share_above = splits[taken[above].split].sides[taken[above].side].share
            taken[depth].split, taken[depth].feature = paths.n_forks, node.feature
            taken[depth + 1].n_features = taken[depth].n_features + (above < 0)
            paths.n_levels = max(paths.n_levels, depth + 1)
            both = covers[node.left] + covers[node.right]
            for side in range(1, -1, -1):
                child = node.right if side else node.left
                split.sides[side] = Side(
                    split.share_above * covers[child] / both, nodes[child].value, nodes[child].feature < 0
                )
                fork.has_leaf |= split.sides[side].is_leaf
                coming[n_coming] = Coming(child, depth + 1, side, now.reached * covers[child] / both)
                n_coming += 1
            paths.n_forks += 1
        return max(1, (most + 1) // 2)

    def add(self, const double[:, ::1] values, double[:, ::1] parts, bint in_pairs, int n_threads):
        """Add what each feature contributes to the value of each row.

        Parameters
        ----------
        values : ndarray of float64, shape (n_rows, n_columns)
            The values of the features, and the codes of categories; NaN for categories that are not known.
        parts : ndarray of float64, shape (n_rows, n_places) or (n_rows, n_places * (n_places + 1) / 2)
        in_pairs : bool
            Whether to add what pairs of features contribute, in the order of a lower triangle.
        n_threads : int
        """
        cdef int64_t n_rows = values.shape[0], lanes = n_lanes(), width = self.n_columns + parts.shape[1]
        cdef int64_t at_once = IN_CACHE // max(1, width), chunk  # trees without splits ask for nothing
        at_once = min(at_once, (n_rows + n_threads - 1) // n_threads)
        at_once = max(1, at_once // lanes) * lanes
        cdef double[:, ::1] room = np.empty((n_threads, at_once * width + self.most_room + ALIGNED))
        for chunk in prange(
            (n_rows + at_once - 1) // at_once, nogil=True, num_threads=n_threads,
            use_threads_if=n_threads > 1, schedule="dynamic",
        ):
            self.add_to_rows(
                values, parts, chunk * at_once, min(n_rows, (chunk + 1) * at_once), lanes, in_pairs,
                &room[threadid(), 0],
            )

    cdef void add_to_rows(
        self, const double[:, ::1] values, double[:, ::1] parts, int64_t first, int64_t stop, int64_t lanes,
        bint in_pairs, double* room,
    ) noexcept nogil:
        cdef int64_t n_columns = self.n_columns, n_out = parts.shape[1], b, f, lane, row, t
        cdef int64_t n_blocks = (stop - first + lanes - 1) // lanes
        cdef double* taken = room + (-<uintptr_t>room // sizeof(double)) % ALIGNED
        cdef double* added = taken + n_blocks * n_columns * lanes
        cdef double* free = added + n_blocks * n_out * lanes
        cdef const Paths* paths = <const Paths*>&self.all_paths[0]
        for b in range(n_blocks):
            for lane in range(lanes):
                row = min(first + b * lanes + lane, stop - 1)
                for f in range(n_columns):
                    taken[(b * n_columns + f) * lanes + lane] = values[row, f]
                for f in range(n_out):
                    added[(b * n_out + f) * lanes + lane] = parts[row, f]
        for t in range(self.n_trees):
            contribute(&paths[t], n_blocks, in_pairs, free, taken, added)
        for row in range(stop - first):
            b, lane = row // lanes, row % lanes
            for f in range(n_out):
                parts[first + row, f] = added[(b * n_out + f) * lanes + lane]


cdef void fill(const Paths* paths, const Split* splits, const double* points, int64_t* tables) noexcept nogil:
    """Fill the tables of a tree."""
    cdef int64_t n = paths.n_points, i, p, side
    cdef const Split* split
    cdef double[3] through, adds, leaves, leaves_add
    cdef bint has_above
    cdef int way
    for i in range(paths.n_forks):
        if i:
            split = &splits[splits[i].parent]
            has_above = paths.forks[splits[i].parent].above >= 0
            for p in range(n):
                find_factors(split, splits[i].side, points[p], has_above, through, adds)
                set_bits(tables + THROUGH * n + 3 * p, through, has_above)
                set_bits(tables + ADDS * n + 3 * p, adds, has_above)
        if paths.forks[i].has_leaf:
            split, has_above = &splits[i], paths.forks[i].above >= 0
            for p in range(n):
                for way in range(3):
                    leaves[way] = leaves_add[way] = 0
                for side in range(2):
                    if split.sides[side].is_leaf:
                        find_factors(split, side, points[p], has_above, through, adds)
                        for way in range(3):
                            through[way] *= split.sides[side].value
                            leaves[way] += through[way]
                            leaves_add[way] += through[way] * adds[way]
                set_bits(tables + LEAVES * n + 3 * p, leaves, has_above)
                set_bits(tables + LEAVES_ADD * n + 3 * p, leaves_add, has_above)
        tables += IN_TABLES * n


cdef inline void find_factors(
    const Split* split, int64_t side, double t, bint has_above, double* through, double* adds
) noexcept nogil:
    cdef double share = split.sides[side].share, factor, above = 1, adds_above = 0
    cdef int way
    if has_above:
        above = (1 - t) * split.share_above + t
        adds_above = (1 - split.share_above) / above
    through[0], adds[0] = share / split.share_above, 0
    for way in range(1, 3):
        factor = (1 - t) * share + t * (way == side + 1)
        through[way] = factor / above if has_above else factor
        adds[way] = ((way == side + 1) - share) / factor - adds_above


cdef inline void set_bits(int64_t* table, const double* by_way, bint has_above) noexcept nogil:
    """Without a way above that asks for the same feature, a row always goes left or right."""
    cdef int64_t[3] bits
    memcpy(bits, by_way, sizeof(bits))
    table[0] = bits[0] if has_above else bits[2]
    table[1], table[2] = table[0] ^ bits[1], table[0] ^ bits[2]
