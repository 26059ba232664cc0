"""An ensemble compiled for scoring: values become codes once, then a tree costs a comparison per inner node.

    cuts of a feature in all trees      -8.5      0      2.5      7
    code: how many are below x        0   |   1   |   2   |   3   |   4         x <= 2.5  is  code <= 2

Comparing codes is equivalent to comparing values, so scores are those of a plain walk from the root, bit for
bit. How codes are compared is described beside the kernel in ``units.h``
(up to four inner nodes at a time, for all rows of a block) and in ``walking.h`` (from root to leaf, sixteen
walks at a time).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ranktrees._core.binning.binning import coder_words
from ranktrees._core.model import scorer as _kernels
from ranktrees._core.support import simd
from ranktrees._core.support.dtypes import COLUMN, GROUP, PLAN, PLANE
from ranktrees._core.support.threads import aligned
from ranktrees.rows.values import as_float, as_seen
from ranktrees.support.cuts import round_down
from ranktrees.support.numeric import is_whole
from ranktrees.support.parallel import effective_n_threads

if TYPE_CHECKING:
    from ranktrees.model.arrays import ModelArrays
    from ranktrees.support.annotations import RowsLike

__all__ = ["Scorer"]

DAMAGED = "X is a damaged sparse matrix: its indptr or indices point outside it"
ROWS_PER_BLOCK = _kernels.ROWS_PER_BLOCK
CUTS_PER_PLANE = _kernels.MISSING_CODE - 1
WORDS_OF_WALKS = 8  # of a bit set

# How many inner nodes a unit may have. If bytes cannot be looked up in registers, more than one does not pay.
MOST_QUESTIONS = {"avx512": 4, "avx2": 4, "neon": 4, "portable": 1}

# Nanoseconds, as measured. NODE: for an inner node over a whole block, and over a block of few rows, such
# that units break even with walks about where they should. WALK: for a walk, and for each of its steps.
# ANSWER: for the answer of a row to a categorical split. Those of NEON are estimated from a count of its
# instructions.
NODE = {"avx512": (1.15, 0.6), "avx2": (2.3, 0.65), "neon": (4.9, 1.2), "portable": (5.9, 1.4)}
WALK = 4.0, 0.45
ANSWER = 0.4


class Scorer:
    """What `ranktrees.model.scoring` scores with. ``Ensemble.scorer`` makes it at first use and keeps it.

    Encoding rows and adding trees are separate, so that rows are encoded once, however often trees are added.

    Parameters
    ----------
    ensemble : Ensemble

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> X, y, qid = make_ranking(20, random_state=0, return_X_y_qid=True)
    >>> ensemble = LambdaMARTRanker(max_iter=10, random_state=0).fit(X, y, qid=qid).ensemble_
    >>> sums = np.full(len(X), ensemble.base)
    >>> codes = ensemble.scorer.encode(X)
    >>> ensemble.scorer.add(codes, sums, 0, 4)
    >>> best = np.flatnonzero(sums > np.median(sums))
    >>> ensemble.scorer.add(codes, sums, 4, 10, rows=best)
    >>> bool((sums[best] == ensemble.predict(X)[best]).all())
    True
    """

    def __init__(self, ensemble: ModelArrays) -> None:
        plans = np.zeros(ensemble.n_trees, PLAN)
        _kernels.measure_trees(ensemble.nodes, ensemble.tree_offsets, plans)
        in_units = _in_units(ensemble, plans)
        questions = _Questions(ensemble, in_units)
        self.n_trees, self.n_features = ensemble.n_trees, ensemble.n_features
        self._n_planes, self._n_columns = len(questions.planes), len(questions.columns)
        self._cuts = questions.cuts
        self._coders: dict[Any, Any] = {}
        self._encoder = questions.encoder(ensemble)
        self._program = _program(ensemble, questions, plans, in_units)

    def encode(self, X: RowsLike, n_threads: int = 1) -> NDArray[np.uint8]:
        """Turn values into codes.

        Parameters
        ----------
        X : ndarray of float32 or float64, or CSR matrix, of shape (n_rows, n_features)
            In any layout.
        n_threads : int, default=1

        Returns
        -------
        codes : ndarray of uint8, shape (n_blocks, n_planes + 1, 128)
            Row ``i`` is ``codes[i // 128, :, i % 128]``: a byte for each plane. Bytes behind the last row are
            not set. The first byte of the last plane says whether missing values in the block make a
            difference.

        Raises
        ------
        ValueError
            If X does not have as many features as the ensemble, or if the indices of a sparse matrix are out
            of bounds.
        """
        if np.ndim(X) != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X has shape {np.shape(X)}, expected (n_rows, {self.n_features})")
        n_threads = checked_threads(n_threads)
        if sparse.issparse(X):
            return self.encode_csr(*parts_of_csr(X), n_threads)
        codes = self._room_for_codes(X.shape[0])
        if len(codes):
            self._encoder.encode_dense(X, self._coders_for(X.dtype), codes, n_threads)
        return codes

    def encode_csr(
        self, values: np.ndarray, indices: np.ndarray, row_offsets: np.ndarray, n_threads: int
    ) -> NDArray[np.uint8]:
        """Turn the values of some rows into codes: of those whose offsets are given, in `parts_of_csr`."""
        codes = self._room_for_codes(len(row_offsets) - 1)
        dense = np.zeros((n_threads, self._n_columns, ROWS_PER_BLOCK))
        coders = self._coders_for(dense.dtype)
        if len(codes) and self._encoder.encode_sparse(
            values, indices, row_offsets, coders, dense, codes, n_threads
        ):
            raise ValueError(DAMAGED)
        return codes

    def _room_for_codes(self, n_rows: int) -> NDArray[np.uint8]:
        n_blocks = -(-n_rows // ROWS_PER_BLOCK)
        codes = aligned(n_blocks * (self._n_planes + 1) * ROWS_PER_BLOCK)
        return codes.reshape(n_blocks, self._n_planes + 1, ROWS_PER_BLOCK)

    def add(
        self,
        codes: np.ndarray,
        sums: np.ndarray,
        first_tree: int,
        stop_tree: int,
        rows: np.ndarray | None = None,
        n_threads: int = 1,
    ) -> None:
        """Add the values of some trees, in their order, to ``sums``.

        Parameters
        ----------
        codes : ndarray of uint8
            What `encode` returned.
        sums : ndarray of float64, shape (n_rows,)
            The sums, which are changed in place.
        first_tree, stop_tree : int
            The trees ``first_tree``, ..., ``stop_tree - 1``. If they are added in several calls, the sums
            have the same bits.
        rows : ndarray of int, default=None
            The rows to add the trees to, each at most once. If None, all rows.
        n_threads : int, default=1

        Raises
        ------
        ValueError
            If there are no such trees or rows, or if the codes are those of another scorer.
        """
        n_threads = checked_threads(n_threads)
        if not 0 <= first_tree <= stop_tree <= self.n_trees:
            raise ValueError(
                f"first_tree={first_tree}, stop_tree={stop_tree}: expected 0 <= first_tree <= stop_tree <= "
                f"{self.n_trees}, the number of trees"
            )
        if len(codes) != -(-len(sums) // ROWS_PER_BLOCK):
            raise ValueError(f"codes has {len(codes)} blocks of rows, which do not match {len(sums)} sums")
        if codes.shape[1:] != (self._n_planes + 1, ROWS_PER_BLOCK):
            raise ValueError(
                f"codes has shape {codes.shape}, expected (n_blocks, {self._n_planes + 1}, "
                f"{ROWS_PER_BLOCK}): pass what encode of this scorer returned"
            )
        rows = None if rows is None else np.ascontiguousarray(rows, np.int64)
        if rows is not None and len(rows) and not 0 <= rows.min() <= rows.max() < len(sums):
            raise ValueError(f"rows must be from 0 to {len(sums) - 1}, got {rows.min()} to {rows.max()}")
        if rows is not None and np.count_nonzero(_marked(rows, len(sums))) < len(rows):
            raise ValueError(
                "rows has a row twice; expected each once: the trees would be added to its sum only once"
            )
        self._program.add(codes, sums, first_tree, stop_tree, rows, n_threads)

    def _coders_for(self, dtype: Any) -> np.ndarray:
        """Return what finds values of a type among the cuts; for float32 values, these are float32, too."""
        if dtype not in self._coders:
            cuts = np.concatenate([np.zeros(0), *self._cuts])
            offsets = np.cumsum([0, *map(len, self._cuts)])
            coders = np.empty((len(self._cuts), coder_words(dtype.itemsize)), np.uint64)
            _kernels.make_coders(round_down(cuts) if dtype == np.float32 else cuts, offsets, coders)
            self._coders[dtype] = coders
        return self._coders[dtype]


def _marked(rows: np.ndarray, n: int) -> np.ndarray:
    marks = np.zeros(n, bool)
    marks[rows] = True
    return marks


def checked_threads(n_threads: int) -> int:
    """Return how many of the requested threads may be started, or raise if the number is not valid."""
    if not is_whole(n_threads, 1):
        raise ValueError(f"n_threads must be at least 1, got {as_seen(n_threads)}; expected a whole number.")
    return effective_n_threads(n_threads)


def parts_of_csr(X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the values, columns and row offsets of a CSR matrix, in the types that the kernels read."""
    if X.indptr[0] != 0 or len(X.indptr) != X.shape[0] + 1:
        raise ValueError(DAMAGED)
    values = np.ascontiguousarray(as_float(X.data, lambda _: "the data of X"))
    wide = np.int32 if X.indices.dtype == X.indptr.dtype == np.int32 else np.int64
    return values, np.ascontiguousarray(X.indices, wide), np.ascontiguousarray(X.indptr, wide)


class _Questions:
    """What an ensemble asks of rows: columns, their planes of codes, and each inner node's plane and code.

    A plane has at most 254 cuts, for 255 codes and one for missing values. More cuts of a feature have
    further planes. If missing values go left in some nodes and right in others, there are two planes, of
    which rows without missing values need only one. The others come last in a block, out of the way.

    Walks look a category up in the set of its node. In units, a categorical split has a plane of answers: 0
    goes left, 1 goes right. Splits with equal answers share a plane.
    """

    def __init__(self, ensemble: ModelArrays, in_units: np.ndarray) -> None:
        nodes, (_, category_offsets) = ensemble.nodes, ensemble.category_table
        self.columns: list[Any] = []
        self.planes: Any = []  # a list, and in the end an array
        self.cuts: list[np.ndarray] = []
        self.answers: list[np.ndarray] = []
        self.plane_of_node = np.zeros(len(nodes), np.uint32)
        self.code_of_node = np.zeros(len(nodes), np.uint8)
        self.set_planes = np.zeros(len(ensemble.bitsets), np.uint32)
        self.bitsets = ensemble.bitsets[:, :WORDS_OF_WALKS].copy()
        self.n_codes, self.n_answers = ensemble.n_codes, 32 * ensemble.bitsets.shape[1] + 1
        in_units = np.repeat(in_units, np.diff(ensemble.tree_offsets))
        features = nodes["feature"]
        order = np.argsort(features.astype(np.min_scalar_type(-ensemble.n_features)), kind="stable")
        order = order[np.count_nonzero(features < 0) :]
        for asking in np.split(order, np.flatnonzero(np.diff(features[order], prepend=-1)))[1:]:
            feature, first_plane = features[asking[0]], len(self.planes)
            categorical = nodes["categories"][asking] >= 0
            self._ask_cuts(nodes, asking[~categorical])
            first, stop = category_offsets[feature : feature + 2] if categorical.any() else (-1, -1)
            if categorical.any():
                self._ask_categories(ensemble, asking[categorical], in_units)
            self.columns.append(
                (feature, first_plane, len(self.planes) - first_plane, 0, first, stop - first)
            )
        self._find_places()

    def _find_places(self) -> None:
        """Give each plane its place in a block, by which it is known from here on."""
        self.planes = np.array([(*plane, 0) for plane in self.planes], PLANE)
        again = (self.planes["cuts"] < 0) & (self.planes["answers"] < 0)
        place = np.zeros(len(again) + 1, np.uint32)
        place[np.argsort(again, kind="stable")] = np.arange(len(again))
        self.planes["place"] = place[:-1]
        self.plane_of_node, self.set_planes = place[self.plane_of_node], place[self.set_planes]
        self.without_missing = np.arange(len(place), dtype=np.uint32)
        self.without_missing[place[:-1][again]] = place[np.flatnonzero(again) - 1]

    def _ask_cuts(self, nodes: np.ndarray, asking: np.ndarray) -> None:
        cuts = np.sort(nodes["cut"][asking])
        cuts = np.concatenate([cuts[:1], cuts[1:][cuts[1:] > cuts[:-1]]])
        part, code = np.divmod(np.searchsorted(cuts, nodes["cut"][asking]), CUTS_PER_PLANE)
        question = 2 * part + nodes["missing_left"][asking]
        plane_of_question = np.zeros(question.max(initial=-1) + 1, np.uint32)
        part_before = -1
        for kind in np.flatnonzero(np.bincount(question)).tolist():
            plane_of_question[kind] = len(self.planes)
            part, missing_left = divmod(kind, 2)
            if part > part_before:
                self.planes.append((len(self.cuts), -1, missing_left))
                self.cuts.append(cuts[part * CUTS_PER_PLANE : (part + 1) * CUTS_PER_PLANE])
            else:
                self.planes.append((-1, -1, missing_left))
            part_before = part
        self.plane_of_node[asking], self.code_of_node[asking] = plane_of_question[question], code

    def _ask_categories(self, ensemble: ModelArrays, asking: np.ndarray, in_units: np.ndarray) -> None:
        fits = self._fits_walks(ensemble.nodes["feature"][asking[0]])
        if fits:
            sets = ensemble.nodes["categories"][asking]
            self.set_planes[sets] = len(self.planes)
            self.bitsets[sets, -1] |= ensemble.nodes["missing_left"][asking].astype(np.uint32) << 31
            self._answer(np.minimum(np.arange(self.n_answers), _kernels.MISSING_CODE)[None])
        asking = asking[in_units[asking]] if fits else asking
        nodes = ensemble.nodes[asking]
        sets = np.column_stack([ensemble.bitsets[nodes["categories"]], nodes["missing_left"]]).astype("<u4")
        number_of: dict[bytes, int] = {}
        which = [number_of.setdefault(one.tobytes(), len(number_of)) for one in sets]
        self.plane_of_node[asking] = len(self.planes) + np.array(which, np.uint32)
        distinct = np.frombuffer(b"".join(number_of), np.uint8).reshape(-1, 4 * sets.shape[1])
        self._answer(1 - np.unpackbits(distinct, axis=1, bitorder="little")[:, : self.n_answers])

    def _fits_walks(self, features: Any) -> Any:
        """Whether the codes of the categories of features fit a byte, with one for values that are none."""
        return self.n_codes[features] <= _kernels.MISSING_CODE

    def _answer(self, answers: np.ndarray) -> None:
        self.planes += [(-1, len(self.answers) + i, 0) for i in range(len(answers))]
        self.answers += list(answers)

    def encoder(self, ensemble: ModelArrays) -> Any:
        """Make what turns values into codes."""
        columns = np.array(self.columns, COLUMN)
        column_of_feature = np.full(ensemble.n_features, -1, np.int32)
        column_of_feature[columns["feature"]] = np.arange(len(columns))
        answers = np.array(self.answers, np.uint8).reshape(-1, self.n_answers)
        categories, _ = ensemble.category_table
        return _kernels.Encoder(
            columns, self.planes, answers, categories, ensemble.category_codes, column_of_feature
        )

    def of_walks(self, ensemble: ModelArrays) -> tuple[np.ndarray, np.ndarray]:
        """Return the plane or the set of each inner node, and its code."""
        planes, codes = self.plane_of_node.copy(), self.code_of_node.copy()
        nodes = ensemble.nodes
        by_set = (nodes["categories"] >= 0) & self._fits_walks(nodes["feature"])
        planes[by_set], codes[by_set] = nodes["categories"][by_set], _kernels.SET_CODE
        return planes, codes


def _in_units(ensemble: ModelArrays, plans: np.ndarray) -> np.ndarray:
    """Per tree, whether all inner nodes for all rows of a block cost less than a walk for each row."""
    node, _ = NODE[simd.level()]
    n_categorical = np.diff(
        np.cumsum(ensemble.nodes["categories"] >= 0)[ensemble.tree_offsets[1:] - 1], prepend=0
    )
    price = node * (plans["n_leaves"] - 1) + ANSWER * ROWS_PER_BLOCK * n_categorical
    return (price <= ROWS_PER_BLOCK * _walk(plans)) & (plans["n_leaves"] <= _kernels.MOST_LEAVES_IN_UNITS)


def _walk(plans: np.ndarray) -> np.ndarray:
    return WALK[0] + WALK[1] * plans["depth"]


def _program(ensemble: ModelArrays, questions: _Questions, plans: np.ndarray, in_units: np.ndarray) -> Any:
    """Make what the kernels run.

    A block with so few rows that this costs less is walked, sixteen trees at a time.
    """
    in_units = in_units & (len(questions.planes) <= _kernels.MOST_PLANES_IN_UNITS)
    units, walks = _units(ensemble, questions, plans, in_units), _walks(ensemble, questions)
    (_, node), walk = NODE[simd.level()], _walk(plans)
    price = node * (plans["n_leaves"][in_units] - 1).sum()
    price += _kernels.WALKS_TOGETHER * walk[~in_units].sum()
    return _kernels.Program(plans, units, walks, int(price / max(1.0, walk.sum())))


def _units(ensemble: ModelArrays, questions: _Questions, plans: np.ndarray, in_units: np.ndarray) -> Any:
    """Group the trees, write units of those that are done so, and complete the plans."""
    groups = np.zeros(ensemble.n_trees, GROUP)
    n_groups, n_nodes, n_values = _kernels.group_trees(plans, in_units.view(np.uint8), groups)
    groups, tables = groups[:n_groups], np.zeros(n_values)
    units = np.zeros((n_nodes, _kernels.WORDS_OF_UNIT), np.uint64)
    n_units, most_units, bench_size = _kernels.write_units(
        ensemble.nodes,
        ensemble.tree_offsets,
        questions.plane_of_node,
        questions.code_of_node,
        MOST_QUESTIONS[simd.level()],
        groups,
        plans,
        units,
        tables,
    )
    units = units[:n_units]
    units = np.stack([_kernels.with_planes(units, questions.without_missing), units])
    return _kernels.Units(groups, units, tables, most_units, bench_size)


def _walks(ensemble: ModelArrays, questions: _Questions) -> Any:
    """Lay the trees out for walks."""
    nodes, values = np.zeros(len(ensemble.nodes), np.uint64), np.zeros(len(ensemble.nodes))
    planes, codes = questions.of_walks(ensemble)
    if planes.max(initial=0) >= _kernels.MOST_PLANES_IN_WALKS:
        raise ValueError(
            f"the trees split by {planes.max() + 1} sets of categories; expected at most "
            f"{_kernels.MOST_PLANES_IN_WALKS}: train fewer or smaller trees."
        )
    _kernels.lay_out_walks(ensemble.nodes, ensemble.tree_offsets, planes, codes, nodes, values)
    return _kernels.Walks(nodes, values, questions.set_planes, questions.bitsets)
