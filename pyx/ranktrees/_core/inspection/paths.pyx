"""What each feature adds to the values of a tree: see paths.h and `ranktrees.inspection.contributions`."""
import numpy as np

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.math cimport isnan
from libc.stdint cimport int32_t, int64_t, uint8_t

from ranktrees._core.support.records cimport Node
from ranktrees._core.support.views cimport block_in, run_in

cdef extern from "inspection/paths.h" nogil:
    ctypedef struct Paths:
        int64_t n, n_lanes, n_features
        const int32_t* parent
        const int32_t* above
        const int32_t* place
        const double* through
        const double* adds
        const double* value
    enum: LANES
    ctypedef double Lanes
    void contribute(
        const Paths* paths, uint8_t* goes, Lanes* products, Lanes* below, Lanes* sums, double* out
    )


cdef class TreePaths:
    """The edges of a tree, and the shares of the training rows that took them.

    Parameters
    ----------
    nodes : ndarray of NODE, shape (n_nodes,)
        Every node has seen some training rows.

    Attributes
    ----------
    features : ndarray of int64
        Those that the tree asks for, ascending.
    most_features : int
        The most of them that are on one path.
    expected : float
        The value of a row of which nothing is known.
    """

    cdef const Node[::1] nodes
    cdef int32_t[::1] parent, above, place
    cdef double[::1] share, value
    cdef double[:, :, ::1] through, adds
    cdef readonly int64_t[::1] features
    cdef readonly int64_t most_features
    cdef readonly double expected

    def __init__(self, nodes):
        cdef int64_t n = len(nodes), i
        cdef int32_t edge, other
        self.nodes = nodes
        self.parent, self.above = np.zeros((2, n), np.int32)
        self.share, self.value = np.ones(n), np.where(nodes["feature"] < 0, nodes["value"], 0.0)
        features = np.unique(nodes["feature"])
        self.features = features[features >= 0].astype(np.int64)
        cdef double[::1] reached = np.ones(n)
        cdef int64_t[::1] n_features = np.zeros(n, np.int64)
        cdef double both
        for i in range(n):
            if self.nodes[i].feature >= 0:
                both = self.nodes[self.nodes[i].left].count + self.nodes[self.nodes[i].right].count
                for edge in (self.nodes[i].left, self.nodes[i].right):
                    self.parent[edge] = <int32_t>i
                    self.share[edge] = self.nodes[edge].count / both
                    reached[edge] = reached[i] * self.share[edge]
                    other = <int32_t>i
                    while other and self.nodes[self.parent[other]].feature != self.nodes[i].feature:
                        other = self.parent[other]
                    self.above[edge] = other
                    self.share[edge] *= self.share[other]
                    n_features[edge] = n_features[i] + (other == 0)
        asked = nodes["feature"][np.asarray(self.parent)]
        self.place = np.searchsorted(self.features, asked).astype(np.int32)
        self.most_features = np.max(n_features)
        self.expected = np.asarray(reached) @ np.asarray(self.value)

    def weigh(self, const double[::1] points, const double[::1] weights):
        """Set the points, and their weights: the integral over [0, 1] is the weighted sum of values."""
        cdef int64_t n = self.parent.shape[0], n_points = points.shape[0], p
        cdef int32_t edge, other
        cdef int way
        cdef double factor, factor_above, t
        cdef bint goes, goes_above
        self.through, self.adds = np.zeros((2, n, 3, (n_points + LANES - 1) // LANES * LANES))
        for edge in range(1, <int32_t>n):
            other = self.above[edge]
            for way in range(3):
                goes, goes_above = way == 2, way > 0
                for p in range(n_points):
                    t = points[p]
                    factor = (1 - t) * self.share[edge] + t * goes
                    factor_above = (1 - t) * self.share[other] + t * goes_above
                    self.through[edge, way, p] = factor / factor_above
                    self.adds[edge, way, p] = weights[p] * (
                        (goes - self.share[edge]) / factor - (goes_above - self.share[other]) / factor_above
                    )

    def add(
        self,
        const floating[:, :] values,        # IN  a row each
        const int64_t[::1] places,          # IN  the column of each feature, of values and parts
        const uint8_t[:, ::1] categories,   # IN  for each split on a category, whether each row goes left
        double[:, ::1] parts,               # OUT added to, a row each
        int n_threads,
    ):
        """Add what each feature contributes to the value of each row."""
        cdef int64_t n = self.parent.shape[0], n_points = self.through.shape[2], row
        cdef int64_t n_features = self.features.shape[0]
        cdef uint8_t[:, ::1] goes = np.empty((n_threads, n), np.uint8)
        cdef double[:, :, ::1] room = np.empty((n_threads, 2 * n + 2 * n_features, n_points))
        cdef Paths paths = Paths(
            n, n_points // LANES, n_features, run_in(self.parent, 0), run_in(self.above, 0),
            run_in(self.place, 0),
            block_in(self.through, 0), block_in(self.adds, 0), run_in(self.value, 0),
        )
        for row in prange(
            values.shape[0], nogil=True, num_threads=n_threads, use_threads_if=n_threads > 1,
            schedule="static",
        ):
            self.add_row(
                &paths, values, row, places, categories, &goes[threadid(), 0], &room[threadid(), 0, 0],
                parts,
            )

    cdef void add_row(
        self, const Paths* paths, const floating[:, :] values, int64_t row, const int64_t[::1] places,
        const uint8_t[:, ::1] categories, uint8_t* goes, double* room, double[:, ::1] parts,
    ) noexcept nogil:
        cdef int64_t i, n_by_category = 0
        cdef const Node* node
        cdef double x
        cdef double* below = room + paths.n * paths.n_lanes * LANES
        cdef double* sums = below + paths.n * paths.n_lanes * LANES
        cdef double* out = sums + paths.n_features * paths.n_lanes * LANES
        cdef bint left
        for i in range(paths.n):
            node = &self.nodes[i]
            if node.feature < 0:
                continue
            if node.categories >= 0:
                left = categories[n_by_category, row]
                n_by_category = n_by_category + 1
            else:
                x = values[row, places[node.feature]]
                left = (x <= node.cut) | (isnan(x) & node.missing_left)
            goes[node.left], goes[node.right] = left, not left
        contribute(paths, goes, <Lanes*>room, <Lanes*>below, <Lanes*>sums, out)
        for i in range(paths.n_features):
            parts[row, places[self.features[i]]] += out[i]
