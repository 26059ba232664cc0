"""An ensemble compiled for scoring: values become codes once, and then a tree costs a compare per inner node."""

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ranktrees._core import scorer as _kernels
from ranktrees._core import simd
from ranktrees._core.dtypes import COLUMN, GROUP, PLAN, PLANE
from ranktrees.rounding import round_down

__all__ = ["Scorer"]

ROWS_PER_BLOCK = _kernels.ROWS_PER_BLOCK
CUTS_PER_PLANE = _kernels.MISSING_CODE - 1

# Of a step for a whole block, of a step for a block that is mostly empty, and of a step of one walk.
NANOSECONDS = {"avx512": (1.5, 1.0, 0.8), "avx2": (3.0, 1.2, 0.8), "portable": (7.0, 2.0, 0.8)}


class Scorer:
    def __init__(self, ensemble):
        questions = _Questions(ensemble)
        self.n_trees = ensemble.n_trees
        self.n_planes = len(questions.planes)
        self._n_columns = len(questions.columns)
        self._cuts = questions.cuts
        self._finders = {}
        self._program = _program(ensemble, questions)

    def encode(self, X, n_threads: int = 1) -> NDArray[np.uint8]:
        n_blocks = -(-X.shape[0] // ROWS_PER_BLOCK)
        codes = _kernels.aligned(n_blocks * self.n_planes * ROWS_PER_BLOCK)
        codes = codes.reshape(n_blocks, self.n_planes, ROWS_PER_BLOCK)
        if sparse.issparse(X):
            self._encode_sparse(X, codes, n_threads)
        else:
            self._program.encode_dense(X, self._finders_of(X.dtype), codes, n_threads)
        return codes

    def _encode_sparse(self, X, codes, n_threads):
        data = np.ascontiguousarray(X.data, None if X.data.dtype in (np.float32, np.float64) else np.float64)
        wide = np.int32 if X.indices.dtype == X.indptr.dtype == np.int32 else np.int64
        indices, row_offsets = np.ascontiguousarray(X.indices, wide), np.ascontiguousarray(X.indptr, wide)
        dense = np.zeros((n_threads, self._n_columns, ROWS_PER_BLOCK))
        finders = self._finders_of(np.dtype(np.float64))
        if len(row_offsets) != X.shape[0] + 1 or self._program.encode_sparse(
            data, indices, row_offsets, finders, dense, codes, n_threads
        ):
            raise ValueError("X is a damaged sparse matrix: its indptr or indices point outside it")

    def add(self, codes, sums, first_tree, stop_tree, rows=None, n_threads: int = 1) -> None:
        self._program.add(codes, sums, first_tree, stop_tree, rows, n_threads)

    def _finders_of(self, dtype):
        if dtype not in self._finders:
            cuts = np.concatenate([np.zeros(0), *self._cuts])
            offsets = np.cumsum([0, *map(len, self._cuts)])
            finders = np.empty((len(self._cuts), _kernels.finder_words(dtype.itemsize)), np.uint64)
            _kernels.make_finders(round_down(cuts) if dtype == np.float32 else cuts, offsets, finders)
            self._finders[dtype] = finders
        return self._finders[dtype]


class _Questions:
    """What an ensemble asks of rows: columns, their planes of codes, and the plane and code of every inner node."""

    def __init__(self, ensemble):
        nodes = ensemble.nodes
        self.columns, self.planes = [], []
        self.cuts, self.answers = [], []
        self.plane_of_node = np.zeros(len(nodes), np.uint32)
        self.code_of_node = np.zeros(len(nodes), np.uint8)
        features = nodes["feature"]
        order = np.argsort(features.astype(np.min_scalar_type(-ensemble.n_features)), kind="stable")
        order = order[np.count_nonzero(features < 0) :]
        begins = np.flatnonzero(np.diff(features[order], prepend=-1))
        _, category_offsets = ensemble.category_table
        for own in np.split(order, begins)[1:]:
            feature, first_plane = features[own[0]], len(self.planes)
            categorical = nodes["categories"][own] >= 0
            self._ask_cuts(nodes, own[~categorical])
            first, n = -1, 0
            if categorical.any():
                first, stop = category_offsets[feature : feature + 2]
                n = stop - first
                self._ask_categories(ensemble, own[categorical], n)
            self.columns.append((feature, first_plane, len(self.planes) - first_plane, 0, first, n))

    def _ask_cuts(self, nodes, own):
        cuts = np.sort(nodes["cut"][own])
        cuts = cuts[np.append(True, cuts[1:] != cuts[:-1])[: len(cuts)]]
        part, code = np.divmod(np.searchsorted(cuts, nodes["cut"][own]), CUTS_PER_PLANE)
        question = 2 * part + nodes["missing_left"][own]
        plane_of_question = np.zeros(question.max(initial=-1) + 1, np.uint32)
        last_part = None
        for asked in np.flatnonzero(np.bincount(question)).tolist():
            plane_of_question[asked] = len(self.planes)
            part, missing_left = divmod(asked, 2)
            self.planes.append((-1 if part == last_part else len(self.cuts), -1, missing_left))
            if part != last_part:
                self.cuts.append(cuts[part * CUTS_PER_PLANE : (part + 1) * CUTS_PER_PLANE])
            last_part = part
        self.plane_of_node[own], self.code_of_node[own] = plane_of_question[question], code

    def _ask_categories(self, ensemble, own, n_categories):
        nodes = ensemble.nodes[own]
        goes_right = np.empty((len(own), _kernels.N_ANSWERS), np.uint8)
        bits = np.unpackbits(ensemble.bitsets[nodes["categories"]].astype("<u4").view(np.uint8), axis=1, bitorder="little")
        goes_right[:, :-1] = 1 - bits
        goes_right[:, -1] = 1 - nodes["missing_left"]
        answers, which = np.unique(goes_right, axis=0, return_inverse=True)
        self.plane_of_node[own] = len(self.planes) + which
        self.planes += [(-1, len(self.answers) + i, 0) for i in range(len(answers))]
        self.answers += list(answers)


def _program(ensemble, questions):
    nodes, tree_offsets, n_trees = ensemble.nodes, ensemble.tree_offsets, ensemble.n_trees
    plane_of_node, code_of_node = questions.plane_of_node, questions.code_of_node
    plans = np.zeros(n_trees, PLAN)
    _kernels.measure_trees(nodes, tree_offsets, plans)

    block_step, few_step, walk_step = NANOSECONDS[simd.level()]
    n_steps = plans["n_leaves"] - 1.0
    in_steps = plans["n_leaves"] <= _kernels.MOST_LEAVES_IN_STEPS
    in_steps &= n_steps * block_step <= plans["depth"] * walk_step * ROWS_PER_BLOCK
    in_steps &= len(questions.planes) <= _kernels.MOST_PLANES_IN_STEPS

    groups = np.zeros(n_trees, GROUP)
    n_groups, n_steps_in_all, n_values = _kernels.group_trees(plans, in_steps.view(np.uint8), groups)
    groups = groups[:n_groups]
    steps, tables = np.zeros(n_steps_in_all, np.uint64), np.zeros(n_values)
    questions_of_nodes = plane_of_node, code_of_node
    bench_size = _kernels.write_steps(nodes, tree_offsets, *questions_of_nodes, groups, plans, steps, tables)
    walk_nodes, values = np.zeros(len(nodes), np.uint64), np.zeros(len(nodes))
    _kernels.lay_out_walks(nodes, tree_offsets, *questions_of_nodes, walk_nodes, values)
    few_rows = int(few_step * n_steps_in_all // max(1.0, walk_step * plans["depth"][in_steps].sum()))

    column_of_feature = np.full(ensemble.n_features, -1, np.int32)
    columns = np.array(questions.columns, COLUMN)
    column_of_feature[columns["feature"]] = np.arange(len(columns))
    return _kernels.Program(
        columns,
        np.array(questions.planes, PLANE),
        np.array(questions.answers, np.uint8).reshape(-1, _kernels.N_ANSWERS),
        ensemble.category_table[0],
        column_of_feature,
        steps,
        groups,
        plans,
        tables,
        walk_nodes,
        values,
        bench_size,
        few_rows,
    )
