"""Score with a compiled ensemble, block by block: values become codes, and codes lead to leaves.

    X        128 rows at a time
      | encode     per feature: how many of its cuts are below each value
      v
    codes    [block][plane][row], a byte each
      | units, or walks      per tree: the leaf of each row
      v
    sums     += the values of the leaves, tree after tree

units.h and walking.h describe the two ways from codes to leaves.
"""
import numpy as np

from ranktrees._core.support.threads import aligned

from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from ranktrees._core.binning.coding cimport encode, make_coder
from ranktrees._core.support.records cimport Column, Group, Node, Plan, Plane
from ranktrees._core.support.views cimport block_in, line_in, run_in

cdef extern from "model/units.h" nogil:
    enum:
        BLOCK_ROWS
        MOST_LEAVES
        MOST_QUESTIONS
        MOST_BELOW
        MOST_SHAPES
        TO_LOW
        TO_HIGH
    ctypedef struct unit:
        uint8_t codes[4]
        uint8_t shape
        uint8_t tree
        uint8_t table[16]
    int SHAPE(int n_questions, int n_below)
    uint64_t plane_of_question(const unit* u, int question)
    void set_plane(unit* u, int question, uint64_t plane)
    void set_slots(unit* u, uint64_t to, uint64_t high, uint64_t low)
    int64_t table_size(int n_leaves)
    void set_value(double* table, int n_leaves, int leaf, double value)
    void do_units(int n_rows, const unit* units, int64_t n, const uint8_t* planes, uint8_t* bench)
    void add_values(int n_rows, int n_leaves, const uint8_t* found, const double* table, double* sums)

cdef extern from "model/walking.h" nogil:
    enum:
        WALKS
        CODE_OF_SET
    ctypedef struct walk_node:
        pass
    ctypedef struct category_sets:
        const uint32_t* plane
        const uint32_t* bits
    walk_node make_walk_node(uint32_t child, uint32_t plane, uint32_t code)
    void walk(
        const walk_node* nodes, const category_sets* sets, int64_t depth, const uint8_t* planes,
        const uint32_t* row, uint32_t* at,
    )

ctypedef fused integer:
    int32_t
    int64_t

cdef enum:
    GROUP_COLUMNS = 16         # columns that are laid out together: one cache line of float32
    TREES_TOGETHER = 64        # in a group, at most
    NODES_TOGETHER = 1024      # in a group, at most: units do not wait for one another, and shapes recur
    BLOCKS_TOGETHER = 8        # the codes of this many blocks stay in the L2 cache ...
    UNITS_PASSED = 1 << 12     # ... while this many units pass over them
    MISSING = 255
    MARK_BITS = 8
    FEW_VALUES = 8             # encoding a value by itself takes as long as encoding this many together
    NEVER = 1 << 12

ROWS_PER_BLOCK = BLOCK_ROWS
MISSING_CODE = MISSING
SET_CODE = CODE_OF_SET
WALKS_TOGETHER = WALKS
MOST_PLANES_IN_UNITS = 1 << 16
MOST_PLANES_IN_WALKS = 1 << 24  # a node keeps the number of its plane beside a code of 8 bits
MOST_LEAVES_IN_UNITS = MOST_LEAVES
WORDS_OF_UNIT = sizeof(unit) // sizeof(uint64_t)


cdef inline Py_ssize_t blocks_of(Py_ssize_t n_rows) noexcept nogil:
    return (n_rows + BLOCK_ROWS - 1) // BLOCK_ROWS


# -------------------------------------------------------------------------------------------------- compiling

def measure_trees(
    const Node[::1] nodes,               # IN
    const int64_t[::1] tree_offsets,     # IN
    Plan[::1] plans,                     # OUT depth, n_leaves, root
):
    """Find the depth and the number of leaves of each tree."""
    cdef Py_ssize_t t
    cdef int64_t i, begin, size
    cdef int32_t[::1] depth = np.zeros(nodes.shape[0], np.int32)
    with nogil:
        for t in range(plans.shape[0]):
            begin = tree_offsets[t]
            size = tree_offsets[t + 1] - begin
            plans[t].root = begin
            plans[t].depth = plans[t].n_leaves = 0
            for i in range(begin, begin + size):
                if nodes[i].feature < 0:
                    plans[t].n_leaves += 1
                    plans[t].depth = max(plans[t].depth, depth[i])
                else:
                    depth[begin + nodes[i].left] = depth[begin + nodes[i].right] = depth[i] + 1


def lay_out_walks(
    const Node[::1] nodes,               # IN
    const int64_t[::1] tree_offsets,     # IN
    const uint32_t[::1] planes,          # IN  the plane of each inner node
    const uint8_t[::1] codes,            # IN
    uint64_t[::1] walk_nodes,            # OUT layer by layer
    double[::1] values,                  # OUT the values of the leaves among them
):
    """Write each tree layer by layer, so that siblings and the nodes that most rows visit lie together."""
    cdef Py_ssize_t t
    cdef int64_t i, k, begin, end
    cdef walk_node* to = <walk_node*> run_in(walk_nodes, 0)
    cdef int64_t[::1] source = np.empty(nodes.shape[0], np.int64)
    with nogil:
        for t in range(tree_offsets.shape[0] - 1):
            begin = tree_offsets[t]
            end = begin + 1
            source[begin] = begin
            for i in range(begin, tree_offsets[t + 1]):
                k = source[i]
                if nodes[k].feature < 0:
                    to[i] = make_walk_node(<uint32_t> i, 0, MISSING)
                    values[i] = nodes[k].value
                else:
                    to[i] = make_walk_node(<uint32_t> end, planes[k], codes[k])
                    values[i] = 0.0
                    source[end] = begin + nodes[k].left
                    source[end + 1] = begin + nodes[k].right
                    end += 2


def group_trees(Plan[::1] plans, const uint8_t[::1] in_units, Group[::1] groups):
    """Group trees that are scored together, and place their tables.

    Returns the number of groups, that of inner nodes in units, and that of doubles in tables.
    """
    cdef Py_ssize_t t, n = 0
    cdef int64_t together = 0, n_nodes = 0, n_values = 0
    cdef Group* group = NULL
    for t in range(plans.shape[0]):
        plans[t].table = n_values
        if in_units[t]:
            together += plans[t].n_leaves - 1
            if group == NULL or group.n_trees == TREES_TOGETHER or together > NODES_TOGETHER:
                group = &groups[n]
                group[0] = Group(0, 0, t, 0)
                together = plans[t].n_leaves - 1
                n += 1
            group.n_trees += 1
            n_nodes += plans[t].n_leaves - 1
            n_values += table_size(plans[t].n_leaves)
            plans[t].result = 0
        else:
            groups[n] = Group(0, 0, t, 1)
            n += 1
            group = NULL
            plans[t].result = -1
    return n, n_nodes, n_values


# fewest[q][s] is the fewest units that a subtree takes if q of its nodes belong to the unit above and s
# subtrees hang below those. [0][0] is for a leaf, [0][1] for a subtree that hangs below the unit itself.
cdef struct Cut:
    int16_t fewest[MOST_QUESTIONS + 1][MOST_BELOW + 1]
    int32_t n_leaves


cdef struct Draft:
    unit made
    int64_t top                        # the node where the unit begins
    int32_t first_leaf                 # the number of the first leaf below it
    int32_t high, low                  # drafts of the subtrees below, or -1
    int32_t height                     # one more than that of the higher of these two; 0 without them
    int32_t slot


def write_units(
    const Node[::1] nodes,               # IN
    const int64_t[::1] tree_offsets,     # IN
    const uint32_t[::1] planes,          # IN  the plane of each inner node
    const uint8_t[::1] codes,            # IN
    int most_questions,                  # that a unit may have
    Group[::1] groups,                   # IN and OUT first_unit, n_units
    Plan[::1] plans,                     # IN and OUT result
    uint64_t[:, ::1] units,              # OUT
    double[::1] tables,                  # OUT
):
    """Cut trees into as few units as possible, and write the units of a group from the lowest height up.

    Units of the same height do not depend on each other. Returns the number of units, the most units that a
    group has, and the length that the bench must have.
    """
    cdef Py_ssize_t g
    cdef Source tree
    cdef int64_t t, n, begin, first, stop, n_units = 0, most = 1, size = 1, bench_size = 1
    for g in range(groups.shape[0]):
        first, stop = groups[g].first_tree, groups[g].first_tree + groups[g].n_trees
        size = max(size, tree_offsets[stop] - tree_offsets[first])
    cdef uint8_t[::1] cut_bytes = np.empty(size * sizeof(Cut), np.uint8)
    cdef uint8_t[::1] draft_bytes = np.empty(size * sizeof(Draft), np.uint8)
    cdef Cut* cuts = <Cut*> run_in(cut_bytes, 0)
    cdef Draft* drafts = <Draft*> run_in(draft_bytes, 0)
    cdef int32_t[:, ::1] scratch = np.empty((3, (size + 1) * MOST_SHAPES), np.int32)
    cdef unit* to = <unit*> line_in(units, 0)
    with nogil:
        for g in range(groups.shape[0]):
            first, stop = groups[g].first_tree, groups[g].first_tree + groups[g].n_trees
            groups[g].first_unit = n_units
            if plans[first].result < 0:
                continue
            n = 0
            for t in range(first, stop):
                begin = tree_offsets[t]
                plans[t].result = <int32_t> n
                count_units(&nodes[begin], tree_offsets[t + 1] - begin, most_questions, cuts)
                tree = Source(
                    &nodes[begin], &planes[begin], &codes[begin], cuts, plans[t].n_leaves,
                    &tables[plans[t].table],
                )
                n = draft_tree(&tree, <uint8_t> (t - first), drafts, n)
            bench_size = max(bench_size, write_group(
                drafts, n, to + n_units, line_in(scratch, 0), line_in(scratch, 1), line_in(scratch, 2)
            ))
            for t in range(first, stop):
                plans[t].result = drafts[plans[t].result].slot if plans[t].n_leaves > 1 else 0
            groups[g].n_units = n
            n_units += n
            most = max(most, n)
    return n_units, most, bench_size


cdef void count_units(const Node* nodes, int64_t n_nodes, int most_questions, Cut* cuts) noexcept nogil:
    cdef int64_t i
    cdef int q, r, s, t, units
    cdef int fewest
    cdef Cut* cut
    cdef const Cut* left
    cdef const Cut* right
    for i in range(n_nodes - 1, -1, -1):
        cut = &cuts[i]
        for q in range(MOST_QUESTIONS + 1):
            for s in range(MOST_BELOW + 1):
                cut.fewest[q][s] = NEVER
        if nodes[i].feature < 0:
            cut.n_leaves = 1
            cut.fewest[0][0] = 0
            continue
        left = &cuts[nodes[i].left]
        right = &cuts[nodes[i].right]
        cut.n_leaves = left.n_leaves + right.n_leaves
        fewest = NEVER
        for q in range(most_questions):
            for r in range(most_questions - q):
                for s in range(MOST_BELOW + 1):
                    for t in range(MOST_BELOW + 1 - s):
                        units = left.fewest[q][s] + right.fewest[r][t]
                        if units < cut.fewest[q + r + 1][s + t]:
                            cut.fewest[q + r + 1][s + t] = <int16_t> units
                        fewest = min(fewest, units)
        cut.fewest[0][1] = <int16_t> (fewest + 1)


# A tree that is cut into units.
cdef struct Source:
    const Node* nodes
    const uint32_t* planes             # the plane of each inner node
    const uint8_t* codes
    const Cut* cuts
    int32_t n_leaves
    double* table                      # OUT


cdef int64_t draft_tree(const Source* tree, uint8_t number, Draft* drafts, int64_t n) noexcept nogil:
    """Write the drafts of a tree, from the root down, after n others. Return how many there are then."""
    cdef int64_t at = n
    if tree.nodes[0].feature < 0:
        set_value(tree.table, 1, 0, tree.nodes[0].value)
        return n
    drafts[n].top = drafts[n].first_leaf = 0
    n += 1
    while at < n:
        memset(&drafts[at].made, 0, sizeof(unit))
        drafts[at].made.tree = number
        n = draft_unit(tree, drafts, at, n)
        at += 1
    return n


# A node of a unit, with the number of the unit's questions that are asked at this node or below it, and the
# number of the subtrees below the unit that hang below this node.
cdef struct Part:
    int64_t node
    int n_questions, n_below


cdef Part first_part(const Cut* cuts, int64_t node) noexcept nogil:
    """The part of the first node of a unit: all of the unit."""
    cdef int q, s
    for q in range(1, MOST_QUESTIONS + 1):
        for s in range(MOST_BELOW + 1):
            if cuts[node].fewest[q][s] + 1 == cuts[node].fewest[0][1]:
                return Part(node, q, s)
    return Part(node, 0, 0)


cdef Part left_part(const Cut* cuts, Part part, int64_t left, int64_t right) noexcept nogil:
    """The part of the left child. The right child has the rest."""
    cdef int q, s, rest = part.n_questions - 1
    for q in range(rest + 1):
        for s in range(part.n_below + 1):
            if (
                cuts[left].fewest[q][s] + cuts[right].fewest[rest - q][part.n_below - s]
                == cuts[part.node].fewest[part.n_questions][part.n_below]
            ):
                return Part(left, q, s)
    return Part(left, 0, 0)


cdef int64_t draft_unit(const Source* tree, Draft* drafts, int64_t at, int64_t n) noexcept nogil:
    """Write the questions and the table of a unit. Drafts of its subtrees go behind the n that exist."""
    cdef const Node* nodes = tree.nodes
    cdef Draft* draft = &drafts[at]
    cdef Part parts[MOST_QUESTIONS]
    cdef Part children[2]                              # the right and the left one: the index is the answer
    cdef int64_t child[MOST_QUESTIONS][2]
    cdef int next_part[MOST_QUESTIONS][2]              # which of the parts the child is, or -1
    cdef uint8_t found[MOST_QUESTIONS][2]              # the entry of the table if the child is no part
    cdef int64_t below[MOST_BELOW]
    cdef int n_parts = 1, n_below = 0, p = 0, side, answers
    cdef int32_t leaf = draft.first_leaf
    parts[0] = first_part(tree.cuts, draft.top)
    draft.made.shape = <uint8_t> SHAPE(parts[0].n_questions, parts[0].n_below)
    while p < n_parts:
        child[p][0] = nodes[parts[p].node].right
        child[p][1] = nodes[parts[p].node].left
        children[1] = left_part(tree.cuts, parts[p], child[p][1], child[p][0])
        children[0] = Part(
            child[p][0], parts[p].n_questions - 1 - children[1].n_questions,
            parts[p].n_below - children[1].n_below,
        )
        for side in range(2):
            next_part[p][side] = -1
            if children[side].n_questions > 0:
                next_part[p][side] = n_parts
                parts[n_parts] = children[side]
                n_parts += 1
            elif nodes[child[p][side]].feature >= 0:
                found[p][side] = TO_LOW if n_below else TO_HIGH
                below[n_below] = child[p][side]
                n_below += 1
        p += 1

    draft.high = draft.low = -1
    if n_below > 1:
        draft.low = <int32_t> n
        drafts[n].top, drafts[n].first_leaf = below[1], leaf
        leaf += tree.cuts[below[1]].n_leaves
        n += 1
    for p in range(n_parts):
        draft.made.codes[p] = tree.codes[parts[p].node]
        set_plane(&draft.made, p, tree.planes[parts[p].node])
        for side in range(2):
            if nodes[child[p][side]].feature < 0:
                set_value(tree.table, tree.n_leaves, leaf, nodes[child[p][side]].value)
                found[p][side] = <uint8_t> leaf
                leaf += 1
    if n_below > 0:
        draft.high = <int32_t> n
        drafts[n].top, drafts[n].first_leaf = below[0], leaf
        n += 1

    for answers in range(1 << n_parts):
        p = 0
        while next_part[p][answers >> p & 1] >= 0:
            p = next_part[p][answers >> p & 1]
        draft.made.table[answers] = found[p][answers >> p & 1]
    return n


cdef int64_t write_group(
    Draft* drafts, int64_t n, unit* to, int32_t* begins, int32_t* order, int32_t* free_slots
) noexcept nogil:
    """Write units by height, then by shape, so that those of one shape are consecutive.

    Return the length that the bench must have.
    """
    cdef int64_t i, k, n_keys, n_free = 0, n_slots = 1
    cdef int32_t place, count
    cdef Draft* draft
    cdef int32_t highest = 0
    for i in range(n - 1, -1, -1):
        draft = &drafts[i]
        draft.height = 0
        if draft.high >= 0:
            draft.height = drafts[draft.high].height + 1
        if draft.low >= 0:
            draft.height = max(draft.height, drafts[draft.low].height + 1)
        highest = max(highest, draft.height)
    n_keys = (highest + 1) * MOST_SHAPES
    for k in range(n_keys):
        begins[k] = 0
    for i in range(n):
        begins[drafts[i].height * MOST_SHAPES + drafts[i].made.shape] += 1
    place = 0
    for k in range(n_keys):
        count = begins[k]
        begins[k] = place
        place += count
    for i in range(n):
        k = drafts[i].height * MOST_SHAPES + drafts[i].made.shape
        order[begins[k]] = <int32_t> i
        begins[k] += 1
    for i in range(n):
        draft = &drafts[order[i]]
        if n_free:
            n_free -= 1
            draft.slot = free_slots[n_free]
        else:
            draft.slot = <int32_t> n_slots
            n_slots += 1
        set_slots(
            &draft.made, draft.slot, drafts[draft.high].slot if draft.high >= 0 else 0,
            drafts[draft.low].slot if draft.low >= 0 else 0,
        )
        to[i] = draft.made
        if draft.high >= 0:
            free_slots[n_free] = drafts[draft.high].slot
            n_free += 1
        if draft.low >= 0:
            free_slots[n_free] = drafts[draft.low].slot
            n_free += 1
    return n_slots


def with_planes(const uint64_t[:, ::1] units, const uint32_t[::1] planes):
    """A copy of the units in which each plane ``p`` is replaced by ``planes[p]``."""
    cdef Py_ssize_t i
    cdef int q
    cdef uint64_t[:, ::1] found = np.array(units)
    cdef unit* to
    for i in range(units.shape[0]):
        to = <unit*> &found[i, 0]
        for q in range(MOST_QUESTIONS):
            set_plane(to, q, planes[plane_of_question(to, q)])
    return np.asarray(found)


# --------------------------------------------------------------------------------------------------- encoding

def make_coders(
    const floating[::1] cuts,            # IN  the cuts of all planes, rounded down to this type
    const int64_t[::1] offsets,          # IN  where those of a plane begin
    uint64_t[:, ::1] coders,            # OUT
):
    """Prepare the search for values among the cuts of planes."""
    cdef Py_ssize_t i
    for i in range(coders.shape[0]):
        make_coder(&cuts[offsets[i]], offsets[i + 1] - offsets[i], MISSING, MARK_BITS, line_in(coders, i))


cdef struct Questions:
    const Column* columns
    Py_ssize_t n_columns
    const Plane* planes
    Py_ssize_t n_planes
    const uint8_t* answers
    int64_t n_answers          # of each plane: for each code of a category, and for a value that is none
    const double* categories
    const uint16_t* category_codes
    const int32_t* column_of_feature
    int64_t n_features
    const uint64_t* coders
    Py_ssize_t coder_words


cdef inline int64_t place_of(const double* categories, int64_t n, double x) noexcept nogil:
    """The place of x among the categories, or -1 if it is none."""
    cdef int64_t low = 0, high = n, middle
    while low < high:
        middle = low + (high - low) // 2
        if categories[middle] < x:
            low = middle + 1
        else:
            high = middle
    return low if low < n and categories[low] == x else -1


cdef bint encode_column(
    const Questions* asked, const Column* column, const floating* values, Py_ssize_t n_rows, uint8_t* codes
) noexcept nogil:
    """Write the planes of a column. Return whether a missing value goes left in one: two may differ by it."""
    cdef Py_ssize_t i
    cdef int32_t p
    cdef uint8_t missing = 0
    cdef uint8_t* to
    cdef const uint8_t* counts = NULL
    cdef const uint8_t* answers
    cdef const uint64_t* found_by
    cdef uint32_t category[BLOCK_ROWS]
    cdef int64_t place
    category[0] = 0  # for compilers, which do not see that only categories have answers
    if column.first_category >= 0:
        for i in range(n_rows):
            place = place_of(asked.categories + column.first_category, column.n_categories, values[i])
            category[i] = <uint32_t> (
                asked.n_answers - 1 if place < 0 else asked.category_codes[column.first_category + place]
            )
    for p in range(column.first_plane, column.first_plane + column.n_planes):
        to = codes + asked.planes[p].place * BLOCK_ROWS
        if asked.planes[p].answers >= 0:
            answers = asked.answers + asked.planes[p].answers * asked.n_answers
            for i in range(n_rows):
                to[i] = answers[category[i]]
            continue
        if asked.planes[p].cuts >= 0:
            counts = to
            found_by = asked.coders + asked.planes[p].cuts * asked.coder_words
            encode(n_rows, values, found_by, to)
        if asked.planes[p].missing_left:
            for i in range(n_rows):
                missing |= (asked.planes[p].cuts < 0) & (counts[i] == MISSING)  # others say nothing by it
                to[i] = 0 if counts[i] == MISSING else counts[i]
    return missing


cdef void encode_dense_block(
    const Questions* asked, const floating* first_row, Py_ssize_t row_stride, Py_ssize_t feature_stride,
    Py_ssize_t n_rows, uint8_t* codes,
) noexcept nogil:
    cdef floating values[GROUP_COLUMNS * BLOCK_ROWS]
    cdef Py_ssize_t g, i, j, n, first
    cdef bint missing = False
    cdef const char* row
    for g in range((asked.n_columns + GROUP_COLUMNS - 1) // GROUP_COLUMNS):
        first = g * GROUP_COLUMNS
        n = min(<Py_ssize_t> GROUP_COLUMNS, asked.n_columns - first)
        for i in range(n_rows):
            row = <const char*> first_row + i * row_stride
            for j in range(n):
                values[j * BLOCK_ROWS + i] = (
                    <const floating*> (row + asked.columns[first + j].feature * feature_stride)
                )[0]
        for j in range(n):
            missing |= encode_column(asked, &asked.columns[first + j], values + j * BLOCK_ROWS, n_rows, codes)
    codes[asked.n_planes * BLOCK_ROWS] = missing


cdef inline bint scatter(
    const Questions* asked, const floating* values, const integer* features, int64_t start, int64_t stop,
    double* to, uint8_t* codes, bint* missing,
) noexcept nogil:
    """Add a sparse row to its places in the columns of a block, and encode these.

    Return whether an index of the row is out of bounds.
    """
    cdef int64_t i, feature
    cdef int32_t column
    cdef bint outside = False
    for i in range(start, stop):
        feature = features[i]
        if feature < 0 or feature >= asked.n_features:
            outside = True
            continue
        column = asked.column_of_feature[feature]
        if column >= 0:
            to[column * BLOCK_ROWS] += values[i]
            if codes != NULL:
                missing[0] |= encode_column(
                    asked, &asked.columns[column], to + column * BLOCK_ROWS, 1, codes
                )
    return outside


cdef inline void clear(
    const Questions* asked, const integer* features, int64_t start, int64_t stop, double* to
) noexcept nogil:
    """Clear the places of a sparse row."""
    cdef int64_t i
    cdef int32_t column
    for i in range(start, stop):
        if 0 <= features[i] < asked.n_features:
            column = asked.column_of_feature[features[i]]
            if column >= 0:
                to[column * BLOCK_ROWS] = 0.0


cdef int encode_sparse_block(
    const Questions* asked, const floating* values, const integer* features, const integer* row_offsets,
    Py_ssize_t n_rows, int64_t n_values, double* dense, const uint8_t* of_zeros, uint8_t* codes,
) noexcept nogil:
    """Encode each value of the block; or, if few are there, those, in a copy of the codes of zeros."""
    cdef Py_ssize_t i
    cdef bint missing = False
    cdef int outside = 0
    cdef bint few
    for i in range(n_rows):
        if row_offsets[i] < 0 or row_offsets[i + 1] < row_offsets[i] or row_offsets[i + 1] > n_values:
            return True
    few = FEW_VALUES * (row_offsets[n_rows] - row_offsets[0]) < asked.n_columns * n_rows
    if few:
        memcpy(codes, of_zeros, asked.n_planes * BLOCK_ROWS)
    for i in range(n_rows):
        outside |= scatter(
            asked, values, features, row_offsets[i], row_offsets[i + 1], dense + i,
            codes + i if few else NULL, &missing,
        )
    if not few:
        for i in range(asked.n_columns):
            missing |= encode_column(asked, &asked.columns[i], dense + i * BLOCK_ROWS, n_rows, codes)
    codes[asked.n_planes * BLOCK_ROWS] = missing
    for i in range(n_rows):
        clear(asked, features, row_offsets[i], row_offsets[i + 1], dense + i)
    return outside


cdef class Encoder:
    """What the trees ask of rows, which become codes by it.

    Parameters
    ----------
    columns : ndarray of COLUMN
    planes : ndarray of PLANE
    answers : ndarray of uint8, shape (n_planes, n_answers)
        For each plane of answers, whether a code of a category goes right; last, whether other values do.
    categories : ndarray of float64
        The categories of all features, those of each in ascending order.
    category_codes : ndarray of uint16
        The code of each.
    column_of_feature : ndarray of int32
        -1 for a feature that is not used.
    """

    cdef const Column[::1] columns
    cdef const Plane[::1] planes
    cdef const uint8_t[:, ::1] answers
    cdef const double[::1] categories
    cdef const uint16_t[::1] category_codes
    cdef const int32_t[::1] column_of_feature

    def __init__(self, columns, planes, answers, categories, category_codes, column_of_feature):
        self.columns, self.planes, self.answers, self.categories = columns, planes, answers, categories
        self.category_codes, self.column_of_feature = category_codes, column_of_feature

    cdef Questions questions(self, const uint64_t[:, ::1] coders) noexcept:
        return Questions(
            run_in(self.columns, 0), self.columns.shape[0], run_in(self.planes, 0), self.planes.shape[0],
            line_in(self.answers, 0), self.answers.shape[1], run_in(self.categories, 0),
            run_in(self.category_codes, 0), run_in(self.column_of_feature, 0),
            self.column_of_feature.shape[0], line_in(coders, 0), coders.shape[1],
        )

    def encode_dense(
        self,
        const floating[:, :] X,              # IN  any strides
        const uint64_t[:, ::1] coders,      # IN  for the type of X
        uint8_t[:, :, ::1] codes,            # OUT n_blocks x n_planes x BLOCK_ROWS; not set past the last row
        int n_threads,
    ):
        """Encode the values of the features that the trees use."""
        cdef Questions asked = self.questions(coders)
        cdef Py_ssize_t block, start, n_rows = X.shape[0]
        for block in prange(
            codes.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads,
            use_threads_if=n_threads > 1,
        ):
            start = block * BLOCK_ROWS
            encode_dense_block(
                &asked, &X[start, 0], X.strides[0], X.strides[1],
                min(<Py_ssize_t> BLOCK_ROWS, n_rows - start), block_in(codes, block),
            )

    def encode_sparse(
        self,
        const floating[::1] data,            # IN
        const integer[::1] indices,          # IN
        const integer[::1] row_offsets,      # IN  n_rows + 1
        const uint64_t[:, ::1] coders,      # IN  for float64
        double[:, :, ::1] dense,             # scratch, zeros: n_threads x n_columns x BLOCK_ROWS
        uint8_t[:, :, ::1] codes,            # OUT as in encode_dense
        int n_threads,
    ):
        """Encode rows of a CSR matrix; an absent value is 0. Return whether an index is out of bounds."""
        cdef Questions asked = self.questions(coders)
        cdef Py_ssize_t block, start, n_rows = row_offsets.shape[0] - 1
        cdef int64_t n_values = min(data.shape[0], indices.shape[0]), i
        cdef int n_outside = 0
        cdef uint8_t[:, ::1] of_zeros = np.empty((self.planes.shape[0], BLOCK_ROWS), np.uint8)
        for i in range(self.columns.shape[0]):
            encode_column(
                &asked, run_in(self.columns, i), block_in(dense, 0) + i * BLOCK_ROWS, BLOCK_ROWS,
                line_in(of_zeros, 0)
            )
        for block in prange(
            codes.shape[0], nogil=True, schedule="dynamic", num_threads=n_threads,
            use_threads_if=n_threads > 1,
        ):
            start = block * BLOCK_ROWS
            n_outside += encode_sparse_block(
                &asked, run_in(data, 0), run_in(indices, 0), run_in(row_offsets, start),
                min(<Py_ssize_t> BLOCK_ROWS, n_rows - start), n_values, block_in(dense, threadid()),
                line_in(of_zeros, 0), block_in(codes, block),
            )
        return n_outside > 0


# ---------------------------------------------------------------------------------------------------- scoring

cdef struct Machine:
    const unit* units[2]
    const Group* groups
    const Plan* plans
    const double* tables
    const walk_node* nodes
    const category_sets* sets
    const double* values
    Py_ssize_t few_rows


cdef void walk_rows(
    const Machine* machine, const Plan* plan, const uint8_t* codes, Py_ssize_t n_rows, double* sums
) noexcept nogil:
    """Walk many rows down one tree."""
    cdef uint32_t at[WALKS]
    cdef uint32_t row[WALKS]
    cdef Py_ssize_t b, i, w
    for b in range((n_rows + WALKS - 1) // WALKS):
        i = b * WALKS
        for w in range(WALKS):
            at[w] = <uint32_t> plan.root
            row[w] = <uint32_t> min(i + w, n_rows - 1)
        walk(machine.nodes, machine.sets, plan.depth, codes, row, at)
        for w in range(min(<Py_ssize_t> WALKS, n_rows - i)):
            sums[i + w] += machine.values[at[w]]


cdef void walk_trees(
    const Machine* machine, int64_t first_tree, int64_t stop_tree, const uint8_t* codes, Py_ssize_t i,
    double* sums,
) noexcept nogil:
    """Walk one row down many trees."""
    cdef uint32_t at[WALKS]
    cdef uint32_t row[WALKS]
    cdef int64_t b, t, w, n
    cdef int64_t depth
    for w in range(WALKS):
        row[w] = <uint32_t> i
    for b in range((stop_tree - first_tree + WALKS - 1) // WALKS):
        t = first_tree + b * WALKS
        n = min(<int64_t> WALKS, stop_tree - t)
        depth = 0
        for w in range(WALKS):
            at[w] = <uint32_t> machine.plans[t + min(w, n - 1)].root
            depth = max(depth, <int64_t> machine.plans[t + min(w, n - 1)].depth)
        walk(machine.nodes, machine.sets, depth, codes, row, at)
        for w in range(n):
            sums[i] += machine.values[at[w]]


cdef void score_group(
    const Machine* machine, const Group* group, const unit* units, const uint8_t* codes,
    Py_ssize_t n_rows, uint8_t* bench, double* sums,
) noexcept nogil:
    cdef const Plan* plan
    cdef int64_t t
    do_units(<int> n_rows, units + group.first_unit, group.n_units, codes, bench)
    for t in range(group.first_tree, group.first_tree + group.n_trees):
        plan = &machine.plans[t]
        if plan.result < 0:
            walk_rows(machine, plan, codes, n_rows, sums)
        else:
            add_values(
                <int> n_rows, plan.n_leaves, bench + plan.result * BLOCK_ROWS,
                machine.tables + plan.table, sums,
            )


# Consecutive groups whose units are in the same array.
cdef struct Run:
    const Group* groups
    Py_ssize_t n_groups
    const unit* units[2]


cdef int plan_runs(
    const Machine* machine, Py_ssize_t n_groups, int64_t first_tree, int64_t stop_tree,
    Group* cut, unit* cut_units, Py_ssize_t most_units, Run* runs,
) noexcept nogil:
    """Find the groups of some trees. Of the first and the last group only some units may be needed."""
    cdef Py_ssize_t g = group_of(machine, n_groups, first_tree), begin = g
    cdef Py_ssize_t last = group_of(machine, n_groups, stop_tree - 1)
    cdef int n_runs = 0, n_cut = 0
    cdef const Group* group
    while g <= last:
        group = &machine.groups[g]
        if group.first_tree < first_tree or group.first_tree + group.n_trees > stop_tree:
            if g > begin:
                runs[n_runs] = Run(machine.groups + begin, g - begin, [machine.units[0], machine.units[1]])
                n_runs += 1
            cut_group(machine.units[0], group, first_tree, stop_tree, &cut[n_cut], cut_units)
            cut_group(machine.units[1], group, first_tree, stop_tree, &cut[n_cut], cut_units + most_units)
            runs[n_runs] = Run(&cut[n_cut], 1, [cut_units, cut_units + most_units])
            cut_units += 2 * most_units
            n_runs += 1
            n_cut += 1
            begin = g + 1
        g += 1
    if g > begin:
        runs[n_runs] = Run(machine.groups + begin, g - begin, [machine.units[0], machine.units[1]])
        n_runs += 1
    return n_runs


cdef Py_ssize_t group_of(const Machine* machine, Py_ssize_t n_groups, int64_t tree) noexcept nogil:
    cdef Py_ssize_t low = 0, high = n_groups, middle
    while high - low > 1:
        middle = low + (high - low) // 2
        if machine.groups[middle].first_tree <= tree:
            low = middle
        else:
            high = middle
    return low


cdef void cut_group(
    const unit* units, const Group* group, int64_t first_tree, int64_t stop_tree, Group* cut, unit* kept,
) noexcept nogil:
    cdef int64_t i, tree
    cut[0] = Group(0, 0, max(first_tree, group.first_tree), 0)
    cut.n_trees = min(stop_tree, group.first_tree + group.n_trees) - cut.first_tree
    for i in range(group.first_unit, group.first_unit + group.n_units):
        tree = group.first_tree + units[i].tree
        if cut.first_tree <= tree < cut.first_tree + cut.n_trees:
            kept[cut.n_units] = units[i]
            cut.n_units += 1


# The trees that are added to the sums of rows, and where a thread has the sums and codes of its rows in its
# scratch, which begins with the bench.
cdef struct Job:
    const Run* runs
    int n_runs
    const uint8_t* codes
    Py_ssize_t n_planes
    const int64_t* rows          # or NULL: all rows
    double* sums
    Py_ssize_t sums_at
    Py_ssize_t codes_at


cdef void score_blocks(
    const Machine* machine, const Job* job, Py_ssize_t first, Py_ssize_t stop, uint8_t* scratch
) noexcept nogil:
    """Score the rows first:stop, or rows[first:stop], with as many groups at a time as stay in the cache."""
    cdef uint8_t* bench = scratch
    cdef double* own_sums = <double*> (scratch + job.sums_at)
    cdef const uint8_t* own_codes = job.codes + first * job.n_planes
    cdef const Run* run
    cdef const uint8_t* block_codes
    cdef uint8_t missing
    cdef Py_ssize_t i, block, start, n, g, end, k, n_rows = stop - first
    cdef int64_t n_units
    cdef int r
    if job.rows != NULL:
        take_rows(job.codes, job.n_planes, job.rows + first, n_rows, scratch + job.codes_at)
        own_codes = scratch + job.codes_at
        for i in range(n_rows):
            own_sums[i] = job.sums[job.rows[first + i]]
    else:
        memcpy(own_sums, job.sums + first, n_rows * sizeof(double))
    for r in range(job.n_runs):
        run = &job.runs[r]
        g = 0
        while g < run.n_groups:
            end = g
            n_units = 0
            while end < run.n_groups and (end == g or n_units < UNITS_PASSED):
                n_units += max(run.groups[end].n_units, <int64_t> 1)
                end += 1
            for block in range(blocks_of(n_rows)):
                start = block * BLOCK_ROWS
                n = min(<Py_ssize_t> BLOCK_ROWS, n_rows - start)
                block_codes = own_codes + start * job.n_planes
                missing = block_codes[(job.n_planes - 1) * BLOCK_ROWS] != 0
                if n <= machine.few_rows:
                    for i in range(n):
                        walk_trees(
                            machine, run.groups[g].first_tree,
                            run.groups[end - 1].first_tree + run.groups[end - 1].n_trees, block_codes, i,
                            own_sums + start,
                        )
                else:
                    for k in range(g, end):
                        score_group(
                            machine, &run.groups[k], run.units[missing], block_codes, n, bench,
                            own_sums + start,
                        )
            g = end
    if job.rows != NULL:
        for i in range(n_rows):
            job.sums[job.rows[first + i]] = own_sums[i]
    else:
        memcpy(job.sums + first, own_sums, n_rows * sizeof(double))


cdef void take_rows(
    const uint8_t* codes, Py_ssize_t n_planes, const int64_t* rows, Py_ssize_t n_rows, uint8_t* to
) noexcept nogil:
    cdef Py_ssize_t block, i, p, n
    cdef const uint8_t* block_of_row
    cdef const uint8_t* sources[BLOCK_ROWS]
    cdef uint8_t missing
    for block in range(blocks_of(n_rows)):
        n = min(<Py_ssize_t> BLOCK_ROWS, n_rows - block * BLOCK_ROWS)
        missing = 0
        for i in range(n):
            block_of_row = codes + rows[i] // BLOCK_ROWS * n_planes * BLOCK_ROWS
            sources[i] = block_of_row + rows[i] % BLOCK_ROWS
            missing |= block_of_row[(n_planes - 1) * BLOCK_ROWS]
        for p in range(n_planes - 1):
            for i in range(n):
                to[p * BLOCK_ROWS + i] = sources[i][p * BLOCK_ROWS]
        to[(n_planes - 1) * BLOCK_ROWS] = missing
        to += n_planes * BLOCK_ROWS
        rows += n


cdef class Units:
    """Trees as `write_units` has written them.

    Parameters
    ----------
    groups : ndarray of GROUP
    units : ndarray of uint64, shape (2, n_units, WORDS_OF_UNIT)
        For blocks in which missing values make no difference, and for others.
    tables : ndarray of float64
    most_units : int
        The most units that a group has.
    bench_size : int
        The vectors on the bench.
    """

    cdef const Group[::1] groups
    cdef const uint64_t[:, :, ::1] units
    cdef const double[::1] tables
    cdef Py_ssize_t most_units, bench_size

    def __init__(self, groups, units, tables, most_units, bench_size):
        self.groups, self.units, self.tables = groups, units, tables
        self.most_units, self.bench_size = most_units, bench_size


cdef class Walks:
    """Trees as `lay_out_walks` has laid them out.

    Parameters
    ----------
    nodes : ndarray of uint64
    values : ndarray of float64
    set_planes : ndarray of uint32, shape (n_sets,)
        The plane that has the categories of each set.
    bitsets : ndarray of uint32, shape (n_sets, 8)
    """

    cdef const uint64_t[::1] nodes
    cdef const double[::1] values
    cdef const uint32_t[::1] set_planes
    cdef const uint32_t[:, ::1] bitsets

    def __init__(self, nodes, values, set_planes, bitsets):
        self.nodes, self.values, self.set_planes, self.bitsets = nodes, values, set_planes, bitsets


cdef class Program:
    """An ensemble in the form that the kernels score. Nothing is checked here: the caller has checked it.

    Parameters
    ----------
    plans : ndarray of PLAN
        Of each tree, in units or walked.
    units : Units
    walks : Walks
    few_rows : int
        A block of no more rows is walked.
    """

    cdef const Plan[::1] plans
    cdef Units units
    cdef Walks walks
    cdef category_sets sets
    cdef Machine machine

    def __init__(self, plans, Units units, Walks walks, few_rows):
        self.plans, self.units, self.walks = plans, units, walks
        self.sets = category_sets(run_in(walks.set_planes, 0), line_in(walks.bitsets, 0))
        self.machine = Machine(
            [<const unit*> block_in(units.units, 0), <const unit*> block_in(units.units, 1)],
            run_in(units.groups, 0),
            run_in(self.plans, 0), run_in(units.tables, 0), <const walk_node*> run_in(walks.nodes, 0),
            NULL, run_in(walks.values, 0), few_rows,
        )
        if walks.set_planes.shape[0]:
            self.machine.sets = &self.sets

    def add(
        self,
        const uint8_t[:, :, ::1] codes,      # IN
        double[::1] sums,                    # IN and OUT
        int64_t first_tree,
        int64_t stop_tree,
        const int64_t[::1] rows,             # IN, or None: all rows
        int n_threads,
    ):
        """Add to sums[row] the values of the leaves that the row reaches, tree after tree."""
        cdef Run runs[3]
        cdef uint64_t[:, ::1] cut_units = np.empty((4 * self.units.most_units, WORDS_OF_UNIT), np.uint64)
        cdef Group cut[2]
        cdef Py_ssize_t n_rows = sums.shape[0] if rows is None else rows.shape[0]
        cdef Py_ssize_t n_planes = codes.shape[1]
        cdef Py_ssize_t n_blocks = blocks_of(n_rows)
        cdef Py_ssize_t together = max(1, min(<Py_ssize_t> BLOCKS_TOGETHER, n_blocks // n_threads))
        cdef Py_ssize_t n_tasks = (n_blocks + together - 1) // together
        cdef Py_ssize_t bench_bytes = self.units.bench_size * BLOCK_ROWS
        cdef Py_ssize_t sums_bytes = together * BLOCK_ROWS * sizeof(double)
        cdef Py_ssize_t codes_bytes = 0 if rows is None else together * n_planes * BLOCK_ROWS
        cdef Py_ssize_t per_thread = bench_bytes + sums_bytes + codes_bytes, task, i
        cdef uint8_t[::1] scratch = aligned(n_threads * per_thread)
        cdef Job job
        if first_tree >= stop_tree or n_rows == 0:
            return
        job.codes, job.n_planes, job.sums = block_in(codes, 0), n_planes, run_in(sums, 0)
        job.rows = run_in(rows, 0) if rows is not None else NULL
        job.sums_at, job.codes_at = bench_bytes, bench_bytes + sums_bytes
        job.runs = runs
        job.n_runs = plan_runs(
            &self.machine, self.units.groups.shape[0], first_tree, stop_tree, cut,
            <unit*> line_in(cut_units, 0), self.units.most_units, runs,
        )
        for i in range(n_threads):
            memset(run_in(scratch, i * per_thread), 0, BLOCK_ROWS)
        for task in prange(
            n_tasks, nogil=True, schedule="dynamic", num_threads=n_threads, use_threads_if=n_threads > 1
        ):
            score_blocks(
                &self.machine, &job, task * together * BLOCK_ROWS,
                min(n_rows, (task + 1) * together * BLOCK_ROWS), run_in(scratch, threadid() * per_thread),
            )
