"""The trees of a model as they are: find depths and faults, clear what is not read, and walk them plainly.

Scores are computed by scorer.pyx, which must agree with this walk.
"""
from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.math cimport isfinite, isnan
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.string cimport memset

from ranktrees._core.support.records cimport Node
from ranktrees._core.support.views cimport block_in, line_in, run_in


def node_depths(
    const Node[::1] nodes,                   # IN
    const int64_t[::1] tree_offsets,         # IN n_trees + 1
    int32_t[::1] depths,                     # OUT the depth of every node; 0 for a root
):
    """Find the depth of every node in its tree."""
    cdef:
        Py_ssize_t t
        int64_t i, start
    with nogil:
        for t in range(tree_offsets.shape[0] - 1):
            start = tree_offsets[t]
            depths[start] = 0
            for i in range(start, tree_offsets[t + 1]):
                if nodes[i].feature >= 0:
                    depths[start + nodes[i].left] = depths[i] + 1
                    depths[start + nodes[i].right] = depths[i] + 1


def tidy(Node[::1] nodes):
    """Set each field that is not read to a fixed value."""
    cdef int64_t i
    cdef Node* node
    with nogil:
        for i in range(nodes.shape[0]):
            node = &nodes[i]
            if node.feature == -1:
                node.cut = node.gain = 0.0
                node.left = node.right = node.categories = -1
                node.missing_left = 0
            if node.categories >= 0:
                node.cut = 0.0
            else:
                node.categories = -1
            memset(node.unused, 0, sizeof(node.unused))


# What can be wrong with a node, in the order in which it is checked.
FAULTS = (
    "feature must be -1 (a leaf) or below {n_features}",
    "a child must come after its parent, in the same tree",
    "categories must be below {n_bitsets}",
    "a categorical split on a feature without categories",
    "cut must not be NaN",
    "value must be finite",
    "gain must be finite",
    "count must not be negative",
    "missing_left must be 0 or 1",
    "cover must be finite and not negative",
    "every node but the root must be the child of exactly one node",
)

cdef enum:
    NO_FAULT = -1
    PARENTS = 10


cdef int fault_of(
    const Node* node, int64_t index, int64_t size, int64_t n_features, int64_t n_bitsets,
    const uint8_t* has_categories,
) noexcept nogil:
    cdef bint inner = node.feature != -1
    if node.feature < -1 or node.feature >= n_features:
        return 0
    if inner and not (index < node.left < size and index < node.right < size):
        return 1
    if inner and node.categories >= n_bitsets:
        return 2
    if inner and node.categories >= 0 and not has_categories[node.feature]:
        return 3
    if isnan(node.cut):
        return 4
    if not isfinite(node.value):
        return 5
    if not isfinite(node.gain):
        return 6
    if node.count < 0:
        return 7
    if node.missing_left > 1:
        return 8
    if not (isfinite(node.cover) and node.cover >= 0):
        return 9
    return NO_FAULT


def find_fault(
    const Node[::1] nodes,                   # IN
    const int64_t[::1] tree_offsets,         # IN  n_trees + 1, rising from 0 to the number of nodes
    int64_t n_bitsets,
    const uint8_t[::1] has_categories,       # IN  whether each feature has categories
    uint8_t[::1] n_parents,                  # scratch, zeros: one per node
):
    """The first tree with a fault, the node and the index in `FAULTS`; None if the nodes form valid trees."""
    cdef Py_ssize_t t
    cdef int64_t i, start, size
    cdef int fault
    for t in range(tree_offsets.shape[0] - 1):
        start = tree_offsets[t]
        size = tree_offsets[t + 1] - start
        for i in range(size):
            fault = fault_of(
                &nodes[start + i], i, size, has_categories.shape[0], n_bitsets, run_in(has_categories, 0)
            )
            if fault != NO_FAULT:
                return t, i, fault
            if nodes[start + i].feature >= 0:
                n_parents[start + nodes[start + i].left] += n_parents[start + nodes[start + i].left] < 2
                n_parents[start + nodes[start + i].right] += n_parents[start + nodes[start + i].right] < 2
        for i in range(size):
            if n_parents[start + i] != (i > 0):
                return t, i, <int>PARENTS
    return None


# ---- from rows of values, dense or sparse, to leaves -------------------------------------------------------

ctypedef fused integer:
    int32_t
    int64_t

# A block of rows stays in the cache while all trees pass over it.
cdef enum:
    ROWS_PER_BLOCK = 64

cdef struct Model:
    const Node* nodes
    const int64_t* tree_offsets
    Py_ssize_t n_trees
    const uint32_t* bitsets
    int64_t n_words
    const double* category_values
    const uint16_t* category_codes
    const int64_t* category_offsets
    int64_t n_features


cdef inline bint category_goes_left(const Model* model, const Node* node, double x) noexcept nogil:
    cdef:
        int64_t start = model.category_offsets[node.feature]
        int64_t stop = model.category_offsets[node.feature + 1]
        int64_t low = start
        int64_t high = stop
        int64_t middle
        int64_t code
    while low < high:
        middle = low + (high - low) // 2
        if model.category_values[middle] < x:
            low = middle + 1
        else:
            high = middle
    if low == stop or model.category_values[low] != x:
        return node.missing_left
    code = model.category_codes[low]
    return model.bitsets[model.n_words * node.categories + (code >> 5)] >> (code & 31) & 1


cdef inline int32_t leaf_of_row(
    const Model* model, const Node* tree, const floating* row, Py_ssize_t feature_stride
) noexcept nogil:
    cdef:
        const Node* node
        int32_t i = 0
        double x
        bint goes_left
    while tree[i].feature >= 0:
        node = &tree[i]
        x = (<const floating*> (<const char*> row + node.feature * feature_stride))[0]
        if x != x:
            goes_left = node.missing_left
        elif node.categories < 0:
            goes_left = x <= node.cut
        else:
            goes_left = category_goes_left(model, node, x)
        i = node.left if goes_left else node.right
    return i


cdef inline void walk_block(
    const Model* model,
    const floating* first_row,
    Py_ssize_t row_stride,
    Py_ssize_t feature_stride,
    Py_ssize_t n_rows,
    int32_t* leaves,
) noexcept nogil:
    cdef:
        Py_ssize_t t, i
        const Node* tree
        const floating* row
    for t in range(model.n_trees):
        tree = model.nodes + model.tree_offsets[t]
        for i in range(n_rows):
            row = <const floating*> (<const char*> first_row + i * row_stride)
            leaves[i * model.n_trees + t] = leaf_of_row(model, tree, row, feature_stride)


cdef inline bint scatter(
    const floating* values,
    const integer* columns,
    int64_t start,
    int64_t stop,
    int64_t n_values,
    double* row,
    int64_t n_features,
    bint clear,
) noexcept nogil:
    """Add a sparse row to a dense one, or clear it again. Return whether an index is out of bounds."""
    cdef:
        int64_t i, column
        bint outside = False
    if start < 0 or stop < start or stop > n_values:
        return True
    for i in range(start, stop):
        column = columns[i]
        if column < 0 or column >= n_features:
            outside = True
        elif clear:
            row[column] = 0.0
        else:
            row[column] += values[i]
    return outside


cdef inline int walk_sparse_block(
    const Model* model,
    const floating* values,
    const integer* columns,
    const integer* row_offsets,
    Py_ssize_t n_rows,
    int64_t n_values,
    double* dense,
    int32_t* leaves,
) noexcept nogil:
    cdef:
        Py_ssize_t i
        int64_t n_features = model.n_features
        int outside = 0
    for i in range(n_rows):
        outside |= scatter(
            values, columns, row_offsets[i], row_offsets[i + 1], n_values,
            dense + i * n_features, n_features, False,
        )
    walk_block(model, dense, n_features * sizeof(double), sizeof(double), n_rows, leaves)
    for i in range(n_rows):
        scatter(
            values, columns, row_offsets[i], row_offsets[i + 1], n_values,
            dense + i * n_features, n_features, True,
        )
    return outside


cdef class Walker:
    """The trees of a model, which rows walk down.

    Parameters
    ----------
    nodes : ndarray of NODE
    tree_offsets : ndarray of int64, shape (n_trees + 1,)
    bitsets : ndarray of uint32, shape (n_sets, n_words)
    category_values : ndarray of float64
        The categories of all features, one after another.
    category_codes : ndarray of uint16
        The code of each, by which bit sets know it.
    category_offsets : ndarray of int64, shape (n_features + 1,)
    """

    cdef const Node[::1] nodes
    cdef const int64_t[::1] tree_offsets, category_offsets
    cdef const uint32_t[:, ::1] bitsets
    cdef const double[::1] category_values
    cdef const uint16_t[::1] category_codes
    cdef Model model

    def __init__(self, nodes, tree_offsets, bitsets, category_values, category_codes, category_offsets):
        self.nodes, self.tree_offsets, self.bitsets = nodes, tree_offsets, bitsets
        self.category_values, self.category_codes = category_values, category_codes
        self.category_offsets = category_offsets
        self.model = Model(
            run_in(self.nodes, 0), run_in(self.tree_offsets, 0), self.tree_offsets.shape[0] - 1,
            line_in(self.bitsets, 0), self.bitsets.shape[1], run_in(self.category_values, 0),
            run_in(self.category_codes, 0), run_in(self.category_offsets, 0),
            self.category_offsets.shape[0] - 1,
        )

    def walk_rows(
        self,
        const floating[:, :] X,                  # IN any strides, as many columns as the model has features
        int32_t[:, ::1] leaves,                  # OUT the leaf of every row in every tree
        int n_threads,
    ):
        """Find the leaf that each row reaches in each tree."""
        cdef:
            Py_ssize_t n_rows = X.shape[0]
            Py_ssize_t n_blocks = (n_rows + ROWS_PER_BLOCK - 1) // ROWS_PER_BLOCK
            Py_ssize_t block, start
        if self.model.n_trees == 0:
            return
        for block in prange(
            n_blocks, nogil=True, schedule="dynamic", num_threads=n_threads,
            use_threads_if=n_threads > 1 and n_blocks > 1,
        ):
            start = block * ROWS_PER_BLOCK
            walk_block(
                &self.model, &X[start, 0], X.strides[0], X.strides[1], min(ROWS_PER_BLOCK, n_rows - start),
                line_in(leaves, start),
            )

    def walk_csr(
        self,
        const floating[::1] values,              # IN data of a CSR matrix
        const integer[::1] columns,              # IN indices
        const integer[::1] row_offsets,          # IN indptr, n_rows + 1
        double[:, :, ::1] dense,                 # scratch, zeros: n_threads x rows of a block x n_features
        int32_t[:, ::1] leaves,                  # OUT as in walk_rows
        int n_threads,
    ):
        """Walk sparse rows, in which an absent value is 0. Return whether an index is out of bounds."""
        cdef:
            Py_ssize_t n_rows = leaves.shape[0]
            Py_ssize_t rows_per_block = dense.shape[1]
            Py_ssize_t n_blocks = (n_rows + rows_per_block - 1) // rows_per_block
            int64_t n_values = min(values.shape[0], columns.shape[0])
            Py_ssize_t block, start
            int n_outside = 0
        if row_offsets.shape[0] != n_rows + 1:
            return True
        for block in prange(
            n_blocks, nogil=True, schedule="dynamic", num_threads=n_threads,
            use_threads_if=n_threads > 1 and n_blocks > 1,
        ):
            start = block * rows_per_block
            n_outside += walk_sparse_block(
                &self.model, run_in(values, 0), run_in(columns, 0), run_in(row_offsets, start),
                min(rows_per_block, n_rows - start), n_values, block_in(dense, threadid()),
                line_in(leaves, start),
            )
        return n_outside > 0
