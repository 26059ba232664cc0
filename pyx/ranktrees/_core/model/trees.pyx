"""The trees of a model as they are: find depths and faults, and clear what is not read."""
from libc.math cimport isfinite, isnan
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memset

from ranktrees._core.support.records cimport Node
from ranktrees._core.support.views cimport run_in


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
