"""The model in memory, the same for all estimators: trees as arrays, checked once and never changed."""

from __future__ import annotations

import hashlib
import math
import mmap
import os
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from operator import add
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ranktrees._core.model.trees import FAULTS, find_fault, node_depths, tidy
from ranktrees._core.support.dtypes import NODE
from ranktrees.model import native, scoring
from ranktrees.model.costs import FeatureCosts
from ranktrees.model.scorer import Scorer
from ranktrees.support.cached import cached_property
from ranktrees.support.files import read_file, replace_file
from ranktrees.support.listed import are_in_order
from ranktrees.support.numeric import is_whole

if TYPE_CHECKING:
    from ranktrees.support.annotations import PathLike, RowsLike

__all__ = ["Ensemble", "Tree", "Trees"]

MAX_CATEGORIES = 65_535
MAX_IN_SETS = 256  # of up to this many categories, each has a bit of its own
WORDS = MAX_IN_SETS // 32

LINKS = ("logistic", "poisson")

NO_CATEGORIES = np.empty(0)  # shared by all, so that a feature without categories takes no memory
NO_CATEGORIES.flags.writeable = False

# Room for trees to come: SPARE times what all expected trees need at the mean size so far, but at most room
# for twice the nodes that there are plus AHEAD nodes, 470 MB.
SPARE, AHEAD = 1.25, 1 << 23

# Memory is touched for this many nodes ahead, 115 kB. Page by page it would take three times as long.
TOUCHED = 1 << 11

# A forked child must not see what its parent writes. Windows has no forks, and such memory for files only.
OWN = mmap.ACCESS_COPY if hasattr(os, "fork") else mmap.ACCESS_WRITE

RAW = np.dtype((np.void, NODE.itemsize))  # so that records are copied as a whole, not field by field

# What makes a value of a subclass, such as an enumeration of strings, a plain one.
PLAIN: dict[type, Callable[..., Any]] = {
    bool: bool,
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
}


class Tree:
    """One tree of an ensemble, as a view for inspection.

    Attributes
    ----------
    nodes : ndarray of shape (n_nodes,), `NODE` records
        The nodes of the tree, root first, as in `Ensemble`.
    bitsets : ndarray of shape (n_categorical_nodes, n_words), uint32
        The bit sets of the whole ensemble, into which ``nodes["categories"]`` points.

    Examples
    --------
    >>> leaf = np.zeros(1, NODE)
    >>> leaf["feature"] = -1
    >>> Ensemble.from_trees([leaf], n_features=1)[0]
    Tree(1 leaves, depth 0)
    """

    __slots__ = ("bitsets", "nodes")

    def __init__(self, nodes: np.ndarray, bitsets: np.ndarray) -> None:
        self.nodes = nodes
        self.bitsets = bitsets

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"Tree({self.n_leaves} leaves, depth {self.depth})"

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return int(np.count_nonzero(self.nodes["feature"] < 0))

    @property
    def depth(self) -> int:
        """The number of splits between the root and the deepest leaf."""
        return _depth(self.nodes, np.array([0, len(self.nodes)]))


class Trees(Sequence[Any]):
    """A growing sequence of trees, from which an ensemble is made.

    Each tree is copied to its place in one array, or written there in the first place, so that no tree is in
    memory twice when the trees become an ensemble. The array has room for the trees that are expected. Room
    that has not been written to takes no memory.

    ::

        nodes  | tree 0 | tree 1 | ... | room, by the mean size of those before |

    As a sequence it holds the pairs of nodes and bit sets that were appended, with one bit set per
    categorical node, in order.

    Parameters
    ----------
    n_expected : int
        The number of trees that are expected.
    n_words : int, default=8
        The number of words of a bit set.

    Examples
    --------
    >>> leaf = np.zeros(1, NODE)
    >>> leaf["feature"] = -1
    >>> trees = Trees(2)
    >>> trees.append(leaf)
    >>> trees.append(leaf)
    >>> trees.ensemble(n_features=1)
    Ensemble(n_trees=2, n_nodes=2, depth=0, n_features=1, base=0.0, average=False)
    """

    def __init__(self, n_expected: int, n_words: int = WORDS) -> None:
        self.n_expected = n_expected
        self._nodes, self._ends, self._n_touched = np.empty(0, NODE), [0], 0
        self._bitsets, self._set_ends = [np.zeros((0, n_words), np.uint32)], [0]

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, t: Any) -> Any:
        t = range(len(self))[t]
        nodes = self._nodes[self._ends[t] : self._ends[t + 1]].copy()
        nodes["categories"][_categorical(nodes)] -= self._set_ends[t]
        return nodes, self._bitsets[t + 1]

    def append(self, nodes: np.ndarray, bitsets: np.ndarray | None = None) -> None:
        """Append a tree.

        Parameters
        ----------
        nodes : ndarray of `NODE` records
            The nodes of the tree, root first.
        bitsets : ndarray of shape (n, n_words), uint32, or None
            The bit sets of the tree, which the ``categories`` of its nodes index, from 0 on.

        Raises
        ------
        ValueError
            If a node asks for a bit set that is not there.
        """
        used = none = self._bitsets[0]
        if (nodes["categories"] >= 0).any():
            used = self._used_bitsets(nodes, none if bitsets is None else bitsets)
        self.room(len(nodes)).view(RAW)[:] = nodes.view(RAW)
        self.keep(len(nodes), used)

    def room(self, n_nodes: int) -> np.ndarray:
        """Return the room for the next tree. Once it is written there, `keep` appends it.

        Parameters
        ----------
        n_nodes : int
            The number of nodes of the tree.

        Returns
        -------
        nodes : ndarray of `NODE` records
            The array to write the nodes to.
        """
        first, last = self._ends[-1], self._ends[-1] + n_nodes
        if last > len(self._nodes):
            expected = last * max(1.0, self.n_expected / (len(self) + 1))
            self._nodes = _in_room(self._nodes[:first], min(int(SPARE * expected), 2 * last + AHEAD))
            self._n_touched = first
        if last > self._n_touched:
            self._n_touched = last + TOUCHED
            self._nodes[first : self._n_touched].view(np.uint8)[:: mmap.PAGESIZE] = 0
        return self._nodes[first:last]

    def keep(self, n_nodes: int, bitsets: np.ndarray) -> None:
        """Append the tree that has been written to `room`.

        Parameters
        ----------
        n_nodes : int
            The number of nodes of the tree.
        bitsets : ndarray of shape (n, n_words), uint32
            One bit set for each categorical node, in order.
        """
        if len(bitsets):
            nodes = self.room(n_nodes)
            nodes["categories"][_categorical(nodes)] = self._set_ends[-1] + np.arange(len(bitsets))
        self._ends.append(self._ends[-1] + n_nodes)
        self._bitsets.append(bitsets)
        self._set_ends.append(self._set_ends[-1] + len(bitsets))

    def _used_bitsets(self, nodes: np.ndarray, bitsets: np.ndarray) -> np.ndarray:
        """A bit set for each categorical node of a tree."""
        used = nodes["categories"][_categorical(nodes)]
        if used.max(initial=-1) >= len(bitsets):
            raise ValueError(
                f"tree {len(self)}: categories must be below {len(bitsets)}, its number of bit sets"
            )
        return bitsets[used]

    def ensemble(self, **others: Any) -> Ensemble:
        """Make an ensemble of the trees so far. It shares their nodes, which never change.

        Parameters
        ----------
        n_features, categories, groups, base, average, link, feature_names, category_levels
            As for `Ensemble`.

        Returns
        -------
        Ensemble
        """
        nodes, bitsets = self._nodes[: self._ends[-1]], np.concatenate(self._bitsets)
        return Ensemble._of_arrays(nodes, np.array(self._ends, np.int64), bitsets=bitsets, **others)


def _in_room(nodes: np.ndarray, n: int) -> np.ndarray:
    """Copy the nodes to an array with room for ``n``, whose pages are allocated when they are written to.

    An array of NumPy's would ask for huge pages, which virtual machines may take longer to provide than a
    tree takes to grow.
    """
    try:
        pages = mmap.mmap(-1, n * NODE.itemsize, access=OWN)
    except OSError as error:
        raise MemoryError(f"no room for {n} nodes of trees") from error
    room = np.frombuffer(pages, NODE)
    room[: len(nodes)].view(RAW)[:] = nodes.view(RAW)
    return room


def _categorical(nodes: np.ndarray) -> np.ndarray:
    return np.flatnonzero((nodes["categories"] >= 0) & (nodes["feature"] >= 0))


class Ensemble:
    r"""A model made of trees, as arrays. Training makes it, and formats and scorers read it.

    A row starts at the root of each tree. At a node it goes left if its value ``x`` of ``feature`` is
    ``x <= cut``, compared in double precision. If the value is missing (NaN), it goes left if
    ``missing_left`` is 1. A categorical node (``categories >= 0``) looks the value up in the feature's
    ``categories``: a category goes left if the bit of its code is set in row ``categories`` of ``bitsets``,
    and a value that is not listed counts as missing. The values of the leaves that are reached are added up,
    see `predict`.

    Every ensemble is valid. The constructor refuses arrays in which a walk could leave the tree or go round
    in circles, whoever made them. It copies its arguments, brings them into the one form in which equal
    models are equal arrays (unused fields zero, one bit set per categorical node, in order), and makes them
    read-only.

    Parameters
    ----------
    nodes : array-like of shape (n_nodes,), `NODE` records
        The nodes of all trees, one tree after another, each root first. The fields are ``cut``, the ``value``
        of the node (in a leaf: what it adds), the ``gain`` of its split, the ``count`` of rows seen in
        training, ``feature`` (-1 in a leaf), ``left`` and ``right`` (indices within the tree, above the
        node's own), ``categories`` (-1 unless categorical), ``missing_left`` (0 or 1) and ``cover``: for
        trees of XGBoost, which do not know the ``count``, the hessian of the rows, otherwise 0.
    tree_offsets : array-like of shape (n_trees + 1,), int64
        Tree ``t`` is ``nodes[tree_offsets[t]:tree_offsets[t + 1]]``.
    n_features : int
        The number of features of a row, at least 1.
    bitsets : array-like of shape (n, n_words), uint32, default=None
        One set of category codes per categorical node: code ``c`` is bit ``c % 32`` of word ``c // 32``.
        There are 8 words, or as many more as the codes need.
    categories : sequence of length n_features, default=None
        For each feature None, or up to 65,535 rising finite float64 values. The code of a category is its
        index, unless ``groups`` says otherwise. Features with categorical nodes must have them.
    groups : sequence of length n_features, default=None
        For each feature None, or the code of each category: whole numbers from 0 on, each of them at least
        once. Categories of the same code go the same way in all trees.
    base : float, default=0.0
        The number that every score starts from.
    average : bool, default=False
        Whether the mean of the trees is added to ``base`` (a forest) rather than their sum (boosting).
    link : {"logistic", "poisson"} or None, default=None
        What turns a score :math:`s` into a prediction: the :math:`1/(1+e^{-s})` of a logistic loss, the
        :math:`e^s` of a Poisson or gamma loss, or nothing. It is kept, and written to files, but does not
        change what an ensemble computes, which are scores. `EnsembleRanker` predicts by it.
    feature_names : sequence of str, length n_features, default=None
        The names of the columns of a data frame, in their order, each name once. None if they are not known.
    category_levels : mapping of int to tuple, default=None
        For each category column of a data frame, by the number of the feature, the levels that the values
        0, 1, ... stand for: strings, booleans or finite numbers, each once.

    Attributes
    ----------
    nodes, tree_offsets, bitsets, categories, groups, base, average, link, n_features
    feature_names, category_levels
        The parameters above, in canonical form and read-only: of up to 256 categories each has a code of its
        own, and codes of more begin from 0 in the order of the categories.

    Raises
    ------
    ValueError
        If the arrays are not a model; the message names the first tree and node at fault.

    See Also
    --------
    Ensemble.from_trees : build from one array of nodes per tree.

    Examples
    --------
    One split: rows with ``x <= 0.5`` score 1 and others 2. Rows without a value score like the former.

    >>> import numpy as np
    >>> from ranktrees._core.support.dtypes import NODE
    >>> from ranktrees.model import Ensemble
    >>> stump = np.zeros(3, NODE)
    >>> stump["feature"] = [0, -1, -1]
    >>> stump["left"][0], stump["right"][0], stump["cut"][0] = 1, 2, 0.5
    >>> stump["missing_left"][0] = 1
    >>> stump["categories"] = -1
    >>> stump["value"] = [0, 1, 2]
    >>> ensemble = Ensemble.from_trees([stump, stump], n_features=1)
    >>> ensemble
    Ensemble(n_trees=2, n_nodes=6, depth=1, n_features=1, base=0.0, average=False)
    >>> ensemble.predict(np.array([[0.5], [0.6], [np.nan]]))
    array([2., 4., 2.])
    >>> ensemble.leaves(np.array([[0.5], [0.6]]))
    array([[1, 1],
           [2, 2]], dtype=int32)
    >>> Ensemble.from_bytes(ensemble.to_bytes()) == ensemble
    True
    >>> named = Ensemble.from_trees([stump], n_features=1, feature_names=["clicks"])
    >>> Ensemble.from_bytes(named.to_bytes()).feature_names
    ('clicks',)
    """

    def __init__(
        self,
        nodes: ArrayLike,
        tree_offsets: ArrayLike,
        *,
        n_features: int,
        bitsets: ArrayLike | None = None,
        categories: Sequence[Any] | None = None,
        groups: Sequence[Any] | None = None,
        base: float = 0.0,
        average: bool = False,
        link: str | None = None,
        feature_names: Sequence[str] | None = None,
        category_levels: Mapping[int, Sequence[Any]] | None = None,
    ) -> None:
        bitsets = np.zeros((0, WORDS), np.uint32) if bitsets is None else np.asarray(bitsets, np.uint32)
        nodes, tree_offsets = np.array(nodes, NODE), np.array(tree_offsets, np.int64)
        self._set_arrays(nodes, tree_offsets, bitsets, n_features, categories, groups, base, average, link)
        self._name_columns(feature_names, category_levels)

    @classmethod
    def _of_arrays(
        cls,
        nodes: np.ndarray,
        tree_offsets: np.ndarray,
        *,
        n_features: int,
        bitsets: np.ndarray,
        categories: Sequence[Any] | None = None,
        groups: Sequence[Any] | None = None,
        base: float = 0.0,
        average: bool = False,
        link: str | None = None,
        feature_names: Sequence[str] | None = None,
        category_levels: Mapping[int, Sequence[Any]] | None = None,
    ) -> Self:
        """Make an ensemble of arrays that it may own, without copying them."""
        ensemble = cls.__new__(cls)
        ensemble._set_arrays(
            nodes, tree_offsets, bitsets, n_features, categories, groups, base, average, link
        )
        ensemble._name_columns(feature_names, category_levels)
        return ensemble

    def _name_columns(
        self, feature_names: Sequence[str] | None, category_levels: Mapping[int, Sequence[Any]] | None
    ) -> None:
        self.feature_names = checked_names(feature_names, self.n_features)
        self.category_levels = MappingProxyType(_checked_levels(category_levels or {}, self.n_features))

    def _set_arrays(
        self,
        nodes: np.ndarray,
        tree_offsets: np.ndarray,
        bitsets: np.ndarray,
        n_features: int,
        categories: Sequence[Any] | None,
        groups: Sequence[Any] | None,
        base: float,
        average: bool,
        link: str | None,
    ) -> None:
        """Check the arrays and keep them."""
        self.n_features = int(n_features)
        self.base = float(base)
        self.average = bool(average)
        self.link = _checked_link(link)
        if not 1 <= self.n_features < 2**31:
            raise ValueError(f"n_features must be between 1 and 2**31 - 1, got {n_features}")
        if not np.isfinite(self.base):
            raise ValueError(f"base must be finite, got {self.base}")
        self.categories = _checked_categories(categories, self.n_features)
        groups = _checked_groups(groups, self.categories)
        self.nodes, self.tree_offsets = nodes, tree_offsets
        _check_nodes(self.nodes, self.tree_offsets, bitsets, self.categories, self.n_features)
        self.groups, codes = _canonical_groups(groups)
        self.bitsets = _tidy_bitsets(self.nodes, bitsets, self.categories, self.groups, codes)
        for array in (self.nodes, self.tree_offsets, self.bitsets):
            array.flags.writeable = False

    @classmethod
    def from_trees(
        cls,
        trees: Sequence[NDArray[Any]],
        bitsets: Sequence[NDArray[Any] | None] | None = None,
        *,
        n_features: int,
        categories: Sequence[Any] | None = None,
        groups: Sequence[Any] | None = None,
        base: float = 0.0,
        average: bool = False,
        link: str | None = None,
        feature_names: Sequence[str] | None = None,
        category_levels: Mapping[int, Sequence[Any]] | None = None,
    ) -> Ensemble:
        """Build from one array of nodes per tree.

        Parameters
        ----------
        trees : sequence of ndarrays of `NODE` records
            The trees, in the order in which they are added up.
        bitsets : sequence of (ndarrays of shape (n, n_words), uint32, or None), default=None
            For each tree, the bit sets that the ``categories`` of its nodes index, from 0 on.
        n_features, categories, groups, base, average, link, feature_names, category_levels
            As for `Ensemble`.

        Returns
        -------
        Ensemble

        Raises
        ------
        ValueError
            If a tree is not valid, or if ``bitsets`` has another length than ``trees``.
        """
        bitsets = [None] * len(trees) if bitsets is None else bitsets
        if len(bitsets) != len(trees):
            raise ValueError(f"bitsets has {len(bitsets)} entries, expected {len(trees)}, one per tree")
        widths = [sets.shape[1] for sets in bitsets if sets is not None]
        joined = Trees(len(trees), max(widths, default=WORDS))
        for nodes, sets in zip(trees, bitsets, strict=True):
            joined.append(np.asarray(nodes, NODE), sets)
        return joined.ensemble(
            n_features=n_features,
            categories=categories,
            groups=groups,
            base=base,
            average=average,
            link=link,
            feature_names=feature_names,
            category_levels=category_levels,
        )

    def _replace(self, **changes: Any) -> Ensemble:
        arrays = ("nodes", "tree_offsets", "bitsets", "categories", "groups")
        names = (*arrays, "n_features", "base", "average", "link", "feature_names", "category_levels")
        return Ensemble(**{name: getattr(self, name) for name in names} | changes)

    def _with_columns(
        self, feature_names: Sequence[str] | None, category_levels: Mapping[int, Sequence[Any]]
    ) -> Ensemble:
        """The same trees, shared, with other column names; levels that cannot be written are left out."""
        ensemble = Ensemble.__new__(Ensemble)
        vars(ensemble).update(vars(self))
        plain = {feature: tuple(map(plain_level, levels)) for feature, levels in category_levels.items()}
        category_levels = {j: each for j, each in plain.items() if all(map(_can_be_written, each))}
        ensemble._name_columns(feature_names, category_levels)
        return ensemble

    def with_link(self, link: str | None) -> Ensemble:
        """Return the same trees with another link, or without one.

        Parameters
        ----------
        link : {"logistic", "poisson"} or None
            What turns scores into predictions, as for `Ensemble`. None: predictions are the scores.

        Returns
        -------
        Ensemble
            It shares the arrays. Its scores are the same.

        Raises
        ------
        ValueError
            If ``link`` is another value.

        Examples
        --------
        >>> from ranktrees import EnsembleRanker
        >>> odds = Ensemble.from_trees([], n_features=1, base=0.0, link="logistic")
        >>> [EnsembleRanker(each).predict([[1.0]]) for each in (odds, odds.with_link(None))]
        [array([0.5]), array([0.])]
        """
        ensemble = Ensemble.__new__(Ensemble)
        vars(ensemble).update(vars(self))
        ensemble.link = _checked_link(link)
        return ensemble

    @property
    def n_trees(self) -> int:
        """The number of trees."""
        return len(self.tree_offsets) - 1

    @cached_property
    def depth(self) -> int:
        """The number of splits between a root and the deepest leaf of all trees."""
        return _depth(self.nodes, self.tree_offsets)

    @cached_property
    def category_table(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The categories of all features one after another, and the offsets between those of each feature."""
        offsets = np.zeros(self.n_features + 1, np.int64)
        if self.categories is _no_categories(self.n_features):
            return NO_CATEGORIES, offsets
        values = [each for each in self.categories if each is not None and len(each)]
        sizes = (0 if each is None else len(each) for each in self.categories)
        np.cumsum(np.fromiter(sizes, np.int64, self.n_features), out=offsets[1:])
        return np.concatenate([NO_CATEGORIES, *values]), offsets

    @cached_property
    def category_codes(self) -> NDArray[np.uint16]:
        """The codes of the categories of all features, in the order of `category_table`."""
        if self.categories is _no_categories(self.n_features):
            return np.empty(0, np.uint16)
        codes = [
            np.arange(len(values)) if group is None else group
            for values, group in zip(self.categories, self.groups, strict=True)
            if values is not None and len(values)
        ]
        return np.concatenate([np.empty(0, np.uint16), *codes]).astype(np.uint16)

    @property
    def n_codes(self) -> NDArray[np.int64]:
        """The number of codes of the categories of each feature."""
        if self.categories is _no_categories(self.n_features):
            return np.zeros(self.n_features, np.int64)
        return np.array(
            [_n_codes(*each) for each in zip(self.categories, self.groups, strict=True)], np.int64
        )

    def goes_left(self, i: int) -> NDArray[np.bool_]:
        """Return whether each category of its feature goes left at a categorical node.

        Parameters
        ----------
        i : int
            The number of the node among those of all trees.

        Returns
        -------
        ndarray of bool
            In the order of ``categories``.

        Examples
        --------
        >>> from ranktrees import HistGBRTRegressor
        >>> X = np.repeat(np.arange(4.0), 30)[:, None]
        >>> model = HistGBRTRegressor(max_iter=1, max_leaf_nodes=2, categorical_features=[0])
        >>> model.fit(X, X[:, 0] % 2).ensemble_.goes_left(0)
        array([False,  True, False,  True])
        """
        return self._goes_left(self.nodes[i])

    def _goes_left(self, node: np.void) -> NDArray[np.bool_]:
        feature = node["feature"]
        left, values, codes = (
            unpack(self.bitsets[node["categories"]][None])[0],
            *(of[feature] for of in (self.categories, self.groups)),
        )
        return left[: len(values)] if codes is None else left[codes]

    @cached_property
    def scorer(self) -> Scorer:
        """The ensemble compiled for scoring, on first use. It is neither copied nor pickled."""
        return Scorer(self)

    @cached_property
    def leaf_scorer(self) -> Scorer:
        """The same for trees whose values are the numbers of their leaves."""
        nodes = self.nodes.copy()
        nodes["value"] = np.arange(len(nodes)) - np.repeat(self.tree_offsets[:-1], np.diff(self.tree_offsets))
        return Scorer(self._replace(nodes=nodes))

    def __len__(self) -> int:
        return self.n_trees

    if TYPE_CHECKING:  # which do not know that __getitem__ is enough

        def __iter__(self) -> Iterator[Tree]: ...

    def __getitem__(self, t: int) -> Tree:
        if isinstance(t, slice):
            raise TypeError(
                "an ensemble is indexed by the number of a tree, not by a slice; use first(n) or after(n) "
                "for several trees"
            )
        if not -self.n_trees <= t < self.n_trees:
            raise IndexError(f"there is no tree {t} in an ensemble of {self.n_trees} trees")
        t %= self.n_trees
        return Tree(self.nodes[self.tree_offsets[t] : self.tree_offsets[t + 1]], self.bitsets)

    def __repr__(self) -> str:
        return (
            f"Ensemble(n_trees={self.n_trees}, n_nodes={len(self.nodes)}, depth={self.depth}, "
            f"n_features={self.n_features}, base={self.base!r}, average={self.average}"
            + ("" if self.link is None else f", link={self.link!r}")
            + ")"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ensemble):
            return NotImplemented
        return self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def __getstate__(self) -> bytes:  # rather than __reduce__, which skops does not call
        return self.to_bytes()

    def __setstate__(self, file: bytes) -> None:
        vars(self).update(vars(Ensemble.from_bytes(file)))

    def __sklearn_clone__(self) -> Self:
        return self  # it never changes

    def first(self, n: int) -> Ensemble:
        """Return an ensemble of the first trees.

        Parameters
        ----------
        n : int
            The number of trees to keep, from 0 to ``n_trees``.

        Returns
        -------
        Ensemble
            The model as it was after ``n`` trees.

        Raises
        ------
        ValueError
            If ``n`` is not a whole number, or is out of range.
        """
        self._check_number(n)
        tree_offsets = self.tree_offsets[: n + 1]
        first = self._replace(nodes=self.nodes[: tree_offsets[-1]], tree_offsets=tree_offsets)
        if "scorer" in vars(self):  # it can stop after any tree
            vars(first)["scorer"] = self.scorer
        return first

    def after(self, n: int) -> Ensemble:
        """Return an ensemble without the first trees.

        Parameters
        ----------
        n : int
            The number of trees to leave out, from 0 to ``n_trees``.

        Returns
        -------
        Ensemble
            The remaining trees. ``first(n).extend(after(n))`` is the whole ensemble.

        Raises
        ------
        ValueError
            If ``n`` is not a whole number, or is out of range.
        """
        self._check_number(n)
        start = self.tree_offsets[n]
        return self._replace(nodes=self.nodes[start:], tree_offsets=self.tree_offsets[n:] - start)

    def _of_trees(self, trees: Any, base: float) -> Ensemble:
        """The ensemble of some of the trees, in the order of their numbers."""
        picked = [slice(*self.tree_offsets[t : t + 2]) for t in trees]
        nodes = self.nodes.view(RAW)
        nodes = np.concatenate([nodes[:0], *(nodes[tree] for tree in picked)]).view(NODE)
        tree_offsets = np.cumsum([0, *(tree.stop - tree.start for tree in picked)])
        return self._replace(nodes=nodes, tree_offsets=tree_offsets, base=base)

    def _of_classes(self, bases: np.ndarray) -> tuple[Ensemble, ...]:
        """The trees of each class, if they take turns, added to the base of the class."""
        n = len(bases)
        return tuple(self._of_trees(range(k, len(self), n), base) for k, base in enumerate(bases))

    @staticmethod
    def _in_turn(ensembles: Sequence[Ensemble]) -> Ensemble:
        """The trees of all classes, which take turns."""
        joined, n_rounds = Ensemble.joined(ensembles), len(ensembles[0])
        return joined._of_trees(np.arange(len(joined)).reshape(-1, n_rounds).T.flat, 0.0)

    def _check_number(self, n: int) -> None:
        if not is_whole(n, 0, self.n_trees):
            raise ValueError(
                f"n must be between 0 and the number of trees, {self.n_trees}, got {n!r}; expected a whole "
                "number"
            )

    def extend(self, other: Ensemble) -> Ensemble:
        """Return an ensemble with the trees of another one after these.

        Parameters
        ----------
        other : Ensemble
            Trees over the same features, added to the same ``base``. If the two list different categories of
            a feature, the result lists the categories of both, and the trees of each still treat those that
            they did not list as missing. Column names and levels that only one of the two knows are taken
            over.

        Returns
        -------
        Ensemble
            A new ensemble. Neither of the two changes.

        Raises
        ------
        TypeError
            If ``other`` is not an ensemble.
        ValueError
            If ``n_features``, ``base``, ``average`` or ``link`` differ, if both know the names of the columns
            or the levels of one and these differ, or if a feature would get more than 65,535 categories.

        Examples
        --------
        >>> ensemble = Ensemble.from_trees([], n_features=3, base=0.25)
        >>> ensemble.extend(ensemble) == ensemble
        True
        """
        _require_ensemble(other, "other is")
        for name in ("n_features", "base", "average", "link"):
            mine, its = getattr(self, name), getattr(other, name)
            if mine != its:
                raise ValueError(f"other has {name}={its!r}, expected {mine!r} as in the ensemble it extends")
        return _one_after_another([self, other], self.base)

    @staticmethod
    def joined(ensembles: Sequence[Ensemble], weights: ArrayLike | None = None) -> Ensemble:
        r"""Join several ensembles into one, whose score is the weighted sum of their scores.

        The result has the trees of all ensembles, one ensemble after another, and sums them up rather than
        averaging them. The weights go into the leaves: with :math:`w_i` the weight of ensemble :math:`i`,
        :math:`b_i` its ``base``, and :math:`T_i` its number of trees if it has ``average`` set, else 1,

        .. math:: b = \big(w_1 b_1 + w_2 b_2\big) + \dots \qquad\text{and}\qquad
                  v \to \frac{w_i\, v}{T_i}

        for each value :math:`v` of a node of ensemble :math:`i`. So the score is the weighted sum of the
        scores up to rounding, and `ranktrees.model.scoring.predict` defines it to the last bit. Gains become
        :math:`|w_i|\, g / T_i`, so that `feature_importances` are a weighted sum as well: a forest counts as
        much as one tree, not as many. A single ensemble of weight 1 without ``average`` stays as it is.

        Scores are summed, not predictions. A ``link`` that all ensembles have is kept: a mean of log odds is
        again read as log odds, and a mean of logarithms of counts as a logarithm, so that the prediction is
        the geometric mean of the counts.

        Parameters
        ----------
        ensembles : sequence of Ensemble
            At least one ensemble, all over the same features. If they list different categories of a feature,
            the result lists the categories of all, and the trees of each still treat those that they did not
            list as missing. Column names and levels that only some of them know are taken over.
        weights : array-like of shape (n_ensembles,), default=None
            Finite numbers. If None, each ensemble has weight 1. With 1 / n for each of n ensembles, the sum
            is their mean.

        Returns
        -------
        Ensemble
            A new ensemble, without ``average``. Those given do not change.

        Raises
        ------
        TypeError
            If one of them is not an ensemble, or if a single ensemble is not passed in a list.
        ValueError
            If there are no ensembles, if ``n_features``, ``link``, the names of the columns or the levels of
            one differ, if ``weights`` is not one finite number for each ensemble, or if a feature would get
            more than 65,535 categories.

        Examples
        --------
        >>> forest = Ensemble.from_trees([], n_features=3, base=0.25, average=True)
        >>> boosted = Ensemble.from_trees([], n_features=3, base=0.5)
        >>> Ensemble.joined([forest, boosted], weights=[1.0, 3.0]).base
        1.75
        """
        if isinstance(ensembles, Ensemble) or not isinstance(ensembles, Iterable):
            raise TypeError(
                f"ensembles is a {type(ensembles).__name__}; expected several: pass a list of them."
            )
        ensembles = list(ensembles)
        if not ensembles:
            raise ValueError("ensembles is empty, expected at least one ensemble")
        for each in ensembles:
            _require_ensemble(each, "ensembles has")
        weights = np.ones(len(ensembles)) if weights is None else np.asarray(weights, np.float64)
        if weights.shape != (len(ensembles),) or not np.isfinite(weights).all():
            raise ValueError(
                f"weights={weights.tolist()}, expected {len(ensembles)} finite numbers, one per ensemble"
            )
        n_features = sorted({each.n_features for each in ensembles})
        if len(n_features) > 1:
            raise ValueError(f"ensembles have {n_features} features, expected the same number in all")
        links = list(dict.fromkeys(each.link for each in ensembles))
        if len(links) > 1:
            raise ValueError(
                f"ensembles have the links {links}, so that their scores are on different scales; expected "
                "the same in all: to add up scores whatever they mean, pass each.with_link(None)."
            )
        weighted = [each._weighted(weight) for each, weight in zip(ensembles, weights.tolist(), strict=True)]
        return _one_after_another(weighted, reduce(add, (each.base for each in weighted)))

    def _weighted(self, weight: float) -> Ensemble:
        """The ensemble that sums its trees and whose score is ``weight`` times the score of this one."""
        nodes, share = self.nodes.copy(), max(self.n_trees, 1) if self.average else 1
        nodes["value"] = weight * nodes["value"] / share
        nodes["gain"] = abs(weight) * nodes["gain"] / share
        return self._replace(nodes=nodes, base=weight * self.base, average=False)

    def _with_categories(
        self, categories: Sequence[Any], groups: Sequence[Any], spelt: Any = None
    ) -> Ensemble:
        """The same ensemble with other categories listed; those new to a split go where missing values go.

        Categories that share a code must have shared one before. ``spelt[feature]`` are the present
        categories of a feature, in their order, as ``categories`` spells them.
        """
        listed = (categories, self.categories), (groups, self.groups)
        if spelt is None and all(one is two or all(map(_is_same, one, two)) for one, two in listed):
            return self  # mostly known at sight
        spelt = self.categories if spelt is None else spelt
        split, before = self.nodes[self.nodes["categories"] >= 0], unpack(self.bitsets)
        after = np.zeros((len(before), 32 * _n_words(categories, groups)), bool)
        for feature in np.unique(split["feature"]):
            here = split["feature"] == feature
            codes = _codes_among(categories[feature], spelt[feature], self.groups[feature])
            if groups[feature] is not None:
                codes = codes[np.unique(groups[feature], return_index=True)[1]]  # of the first of each group
            known = codes >= 0
            goes_left = np.tile(split["missing_left"][here, None] > 0, len(codes))
            goes_left[:, known] = before[here][:, codes[known]]
            after[here, : len(codes)] = goes_left
        return self._replace(bitsets=pack(after), categories=categories, groups=groups)

    def predict(
        self, X: RowsLike, *, n_jobs: int | None = None, start: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """Score rows; see `ranktrees.model.scoring.predict`.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_features)
            Rows. NaN is a missing value, and an entry that is absent from a sparse matrix is 0. The columns
            of a data frame must have the feature names of the ensemble, if it has any. Columns with
            ``category_levels`` hold the levels themselves in a data frame, and their numbers in an array.
        n_jobs : int, default=None
            The number of threads; see `ranktrees.support.parallel.effective_n_threads`. If None, as many as
            pay for the work. Scores do not depend on it.
        start : array-like of shape (n_rows,), default=None
            The scores that the trees are added to, instead of ``base``.

        Returns
        -------
        ndarray of shape (n_rows,), float64
            The scores, whatever the ``link``.
        """
        return scoring.predict(self, X, n_jobs=n_jobs, start=start)

    def staged_predict(
        self, X: RowsLike, *, n_jobs: int | None = None, start: ArrayLike | None = None
    ) -> Iterator[NDArray[np.float64]]:
        """Score rows after each tree; see `ranktrees.model.scoring.staged_predict`.

        Parameters
        ----------
        X, n_jobs, start
            As for `predict`.

        Yields
        ------
        ndarray of shape (n_rows,), float64
            The scores with the first 1, 2, ... trees.
        """
        return scoring.staged_predict(self, X, n_jobs=n_jobs, start=start)

    def leaves(self, X: RowsLike, *, n_jobs: int | None = None) -> NDArray[np.int32]:
        """Find the leaf that each row reaches in each tree; see `ranktrees.model.scoring.leaves`.

        Parameters
        ----------
        X, n_jobs
            As for `predict`.

        Returns
        -------
        ndarray of shape (n_rows, n_trees), int32
            The indices of the leaves among the nodes of their tree.
        """
        return scoring.leaves(self, X, n_jobs=n_jobs)

    def feature_importances(self, kind: Literal["gain", "split"] = "gain") -> NDArray[np.float64]:
        """Return how much the trees use each feature.

        Parameters
        ----------
        kind : {"gain", "split"}, default="gain"
            Whether to sum the gains of the splits of a feature, or to count them.

        Returns
        -------
        ndarray of shape (n_features,), float64
            The sums or counts, not normalised.

        Raises
        ------
        ValueError
            If ``kind`` is neither, or if a tree has splits but none of them has a gain. The files of CatBoost
            do not contain gains.
        """
        if kind not in ("gain", "split"):
            raise ValueError(
                f"kind must be 'gain' or 'split' (XGBoost's total_gain and weight), got {kind!r}"
            )
        splits = self.nodes[self.nodes["feature"] >= 0]
        if kind == "gain" and len(splits):
            starts, has_splits = self.tree_offsets[:-1], np.diff(self.tree_offsets) > 1
            gains = np.add.reduceat(self.nodes["gain"], starts)
            counts = np.logical_or.reduceat(self.nodes["value"] != 0, starts)  # not joined with a weight of 0
            if ((gains == 0) & has_splits & counts).any():
                raise ValueError(
                    "all splits of some trees have a gain of 0; expected the gain of each split, which "
                    "CatBoost's files do not contain: use feature_importances('split'), which counts splits."
                )
        sums = np.zeros(self.n_features)
        np.add.at(sums, splits["feature"], splits["gain"] if kind == "gain" else 1.0)
        return sums

    def costs_of_trees(
        self,
        feature_costs: ArrayLike | Mapping[Any, float],
        feature_groups: Sequence[Any] | None = None,
        tree_cost: float = 0.0,
    ) -> NDArray[np.float64]:
        """Return the cost of the features of the first trees, with each feature paid for once.

        Parameters
        ----------
        feature_costs : array-like of shape (n_features,) or mapping of indices to costs
            The costs of the features, at least 0. A mapping may leave out features that cost nothing.
        feature_groups : sequence of sets of indices, default=None
            Groups of features of the same cost that are paid for together.
        tree_cost : float, default=0.0
            What each tree costs besides, at least 0.

        Returns
        -------
        ndarray of shape (n_trees + 1,), float64
            The cost with no trees, with the first, with the first two, and so on.

        Raises
        ------
        ValueError, TypeError
            If costs or groups are not valid; the message names them.

        Examples
        --------
        The cost of rows that leave early:

        >>> from ranktrees import EarlyExit, LambdaMARTRanker, make_ranking
        >>> X, y, qid = make_ranking(60, n_features=5, random_state=0, return_X_y_qid=True)
        >>> costs = [1, 1, 5, 5, 20]
        >>> ranker = LambdaMARTRanker(max_iter=40, feature_costs=costs, random_state=0)
        >>> ranker = ranker.fit(X, y, qid=qid)
        >>> early_exit = EarlyExit(at=[1], drop=0.5)
        >>> _, saved = ranker.predict(X, qid=qid, early_exit=early_exit, return_saved=True)
        >>> of_trees = ranker.ensemble_.costs_of_trees(costs)
        >>> of_rows = of_trees[saved.trees]
        >>> bool(of_rows.mean() < of_trees[-1])
        True
        """
        return FeatureCosts.of(feature_costs, feature_groups, self.n_features).after_trees(self, tree_cost)

    def to_bytes(self) -> bytes:
        """Write the native format; see `ranktrees.model.native`.

        Returns
        -------
        bytes
            The model. Equal models give the same bytes on every machine.
        """
        return native.dumps(self)

    @staticmethod
    def from_bytes(data: bytes | bytearray | memoryview) -> Ensemble:
        """Read the native format; see `ranktrees.model.native`.

        Parameters
        ----------
        data : bytes-like
            The bytes that `to_bytes` returned.

        Returns
        -------
        Ensemble

        Raises
        ------
        TypeError
            If ``data`` is not bytes-like.
        ValueError
            If ``data`` is anything else than what `to_bytes` writes.
        """
        ensemble = Ensemble(**native.loads(data))
        if ensemble.to_bytes() != bytes(data):
            raise ValueError(
                "not written by ranktrees: a field that is not used here is not zero, or the columns are "
                "encoded differently"
            )
        return ensemble

    def digest(self) -> str:
        """Return a digest that identifies the model by its content.

        Returns
        -------
        str
            The SHA-256 of `to_bytes` in hexadecimal, as ``sha256sum`` prints it for a saved file. It is the
            same for identical models, names of columns included, and only for them.
        """
        return hashlib.sha256(self.to_bytes()).hexdigest()

    def save(self, path: PathLike) -> None:
        """Write the model to a file.

        A program that reads the file meanwhile sees the old file or the new one, never half of one.

        Parameters
        ----------
        path : path-like
            The path of the file.
        """
        replace_file(path, self.to_bytes(), "the model")

    @staticmethod
    def load(path: PathLike) -> Ensemble:
        """Read a model from a file that `save` wrote.

        Parameters
        ----------
        path : path-like
            The path of the file.

        Returns
        -------
        Ensemble

        Raises
        ------
        ValueError
            If the file is not a model or is damaged.
        """
        return read_file(path, Ensemble.from_bytes)


def _require_ensemble(value: object, seen: str) -> None:
    if not isinstance(value, Ensemble):
        raise TypeError(
            f"{seen} a {type(value).__name__}; expected an Ensemble: for a fitted estimator of trees, pass "
            "its ensemble_."
        )


def _one_after_another(ensembles: Sequence[Ensemble], base: float) -> Ensemble:
    called = _names_of_any(ensembles)
    categories: Sequence[Any] = ensembles[0].categories
    groups: Sequence[Any] = ensembles[0].groups
    if any(one.categories is not categories or one.groups is not groups for one in ensembles):
        every = zip(*(one.categories for one in ensembles), strict=True)
        categories = _checked_categories([reduce(_union, each) for each in every], ensembles[0].n_features)
        groups = _joined_groups(ensembles, categories)
    ensembles = [one._with_categories(categories, groups) for one in ensembles]
    grown = [one for one in ensembles if one.n_trees]
    if len(grown) == 1 and grown[0].base == base:
        return grown[0]._with_columns(*called)
    nodes, offsets, n_nodes, n_bitsets = [], [np.zeros(1, np.int64)], 0, 0
    for one in ensembles:
        copied = one.nodes.copy()
        copied["categories"][copied["categories"] >= 0] += n_bitsets
        nodes.append(copied)
        offsets.append(n_nodes + one.tree_offsets[1:])
        n_nodes, n_bitsets = n_nodes + len(one.nodes), n_bitsets + len(one.bitsets)
    joined = ensembles[0]._replace(
        nodes=np.concatenate(nodes),
        tree_offsets=np.concatenate(offsets),
        bitsets=np.concatenate([one.bitsets for one in ensembles]),
        categories=categories,
        groups=groups,
        base=base,
    )
    return joined._with_columns(*called)


def _names_of_any(ensembles: Sequence[Ensemble]) -> tuple[Any, Any]:
    """The names and levels of columns that any of the ensembles knows; raises if they do not agree."""
    names: Any = None
    levels: dict[int, Any] = {}
    for one in ensembles:
        names = one.feature_names if names is None else names
        if one.feature_names not in (None, names):
            raise ValueError(
                f"ensembles have the columns {list(names)} and {list(one.feature_names)}; expected the same, "
                "in the same order: fit them to the same columns."
            )
        for feature, known in one.category_levels.items():
            if levels.setdefault(feature, known) != known:
                raise ValueError(
                    f"ensembles have the levels {levels[feature]} and {known} of feature {feature}; expected "
                    "the same: EnsembleRanker.average joins models with different levels."
                )
    return names, levels


def depths_of(nodes: np.ndarray, tree_offsets: np.ndarray) -> np.ndarray:
    """int32[n_nodes]: the number of splits above each node."""
    depths = np.empty(len(nodes), np.int32)
    node_depths(nodes, tree_offsets, depths)
    return depths


def covers_of(nodes: np.ndarray) -> np.ndarray:
    """float64[n_nodes]: what the training rows of each node weigh; 0 where that is not known."""
    return np.where(nodes["count"] > 0, nodes["count"], nodes["cover"]).astype(np.float64)


def _depth(nodes: np.ndarray, tree_offsets: np.ndarray) -> int:
    return int(depths_of(nodes, tree_offsets).max(initial=0))


def _tidy_bitsets(
    nodes: np.ndarray,
    bitsets: np.ndarray,
    categories: Sequence[Any],
    groups: Sequence[Any],
    codes: Mapping[int, np.ndarray],
) -> np.ndarray:
    """One bit set per categorical node, in their order, without bits that stand for no category.

    ``codes[feature]``, if there is one, is the code in ``bitsets`` for each code.
    """
    split = np.flatnonzero(nodes["categories"] >= 0)
    bitsets = bitsets[nodes["categories"][split]]
    nodes["categories"][split] = np.arange(len(split))
    features, n_words = nodes["feature"][split], _n_words(categories, groups)
    if bitsets.shape[1] != n_words or any(feature in codes for feature in np.unique(features).tolist()):
        bits, tidied = unpack(bitsets), np.zeros((len(bitsets), 32 * n_words), bool)
        for feature in np.unique(features).tolist():
            of_feature = codes.get(feature, np.arange(_n_codes(categories[feature], groups[feature])))
            of_feature = of_feature[of_feature < bits.shape[1]]
            tidied[features == feature, : len(of_feature)] = bits[features == feature][:, of_feature]
        return pack(tidied)
    n_codes = np.array([_n_codes(categories[feature], groups[feature]) for feature in features], int)
    return bitsets & pack(np.arange(32 * n_words) < n_codes[:, None])


def pack(bits: np.ndarray) -> np.ndarray:
    """Return rows of bits as rows of 32-bit words, at least eight."""
    full = np.zeros((len(bits), max(MAX_IN_SETS, bits.shape[1] + -bits.shape[1] % 32)), bool)
    full[:, : bits.shape[1]] = bits
    return np.packbits(full, axis=1, bitorder="little").view("<u4").astype(np.uint32)


def unpack(bitsets: np.ndarray) -> np.ndarray:
    return np.unpackbits(bitsets.astype("<u4").view(np.uint8), axis=1, bitorder="little").astype(bool)


def _n_codes(categories: np.ndarray | None, groups: np.ndarray | None) -> int:
    if groups is not None:
        return int(groups.max()) + 1
    return 0 if categories is None else len(categories)


def _n_words(categories: Sequence[Any], groups: Sequence[Any]) -> int:
    """The number of words of a bit set."""
    if categories is _no_categories(len(categories)):
        return WORDS
    n_codes = (_n_codes(*each) for each in zip(categories, groups, strict=True))
    return max(WORDS, -(-max(n_codes, default=0) // 32))


def _codes_among(values: np.ndarray, categories: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """The code of each value among categories, in any order; -1 for a value that is not among them."""
    order = np.argsort(categories)
    place = np.searchsorted(categories, values, sorter=order)
    place = order[np.minimum(place, len(order) - 1)] if len(order) else np.zeros(len(values), np.intp)
    known = categories[place] == values if len(order) else np.zeros(len(values), bool)
    return np.where(known, place if groups is None else groups[place].astype(np.intp), -1)


def _is_same(one: np.ndarray | None, two: np.ndarray | None) -> bool:
    return one is two or (one is not None and two is not None and np.array_equal(one, two))


def _union(one: np.ndarray | None, two: np.ndarray | None) -> np.ndarray | None:
    if one is None or two is None:
        return two if one is None else one
    return one if _is_same(one, two) else np.union1d(one, two)


def _joined_groups(ensembles: Sequence[Ensemble], categories: Sequence[Any]) -> Sequence[Any]:
    """Groups of the categories that all ensembles list: those that go the same way in the trees of all."""
    if categories is _no_categories(len(categories)):
        return categories
    joined: list[Any] = [None] * len(categories)
    for feature, values in enumerate(categories):
        if values is None or len(values) <= MAX_IN_SETS:
            continue
        codes = [
            _codes_among(values, one.categories[feature], one.groups[feature])
            for one in ensembles
            if one.categories[feature] is not None
        ]
        _, places = np.unique(np.stack(codes), axis=1, return_inverse=True)
        joined[feature] = places.ravel()  # NumPy 2.0 makes two dimensions of them
    groups, _ = _canonical_groups(joined)
    return groups


def _checked_groups(groups: Sequence[Any] | None, categories: Sequence[Any]) -> Sequence[Any]:
    if groups is None or groups is _no_categories(len(categories)):
        return _no_categories(len(categories))
    if len(groups) != len(categories):
        raise ValueError(f"groups has {len(groups)} entries, expected {len(categories)}, one per feature")
    checked: list[Any] = [None] * len(categories)
    for feature, (group, values) in enumerate(zip(groups, categories, strict=True)):
        if group is None:
            continue
        group = np.asarray(group)
        n = 0 if values is None else len(values)
        are_codes = group.shape == (n,) and group.dtype.kind in "iu" and n > 0
        if not are_codes or group.min() < 0 or group.max() >= n or not np.bincount(group, minlength=1).all():
            raise ValueError(
                f"groups[{feature}] must be a code for each of its {n} categories, and have all from 0 on"
            )
        checked[feature] = group
    return checked


def _canonical_groups(groups: Sequence[Any]) -> tuple[Sequence[Any], dict[int, np.ndarray]]:
    """The groups as an ensemble keeps them and, where codes change, the former code for each."""
    if groups is _no_categories(len(groups)):
        return groups, {}
    kept: list[Any] = [None] * len(groups)
    codes = {}
    for feature, group in enumerate(groups):
        if group is None:
            continue
        former, first, inverse = np.unique(group, return_index=True, return_inverse=True)
        order = np.argsort(first)
        codes[feature] = group if len(group) <= MAX_IN_SETS else former[order]
        if MAX_IN_SETS < len(group) > len(former):
            kept[feature] = np.argsort(order)[inverse].astype(np.uint16)
            kept[feature].flags.writeable = False
        elif len(group) > MAX_IN_SETS:
            codes[feature] = group
    codes = {f: group for f, group in codes.items() if not np.array_equal(group, np.arange(len(group)))}
    nothing = all(group is None for group in kept)
    return _no_categories(len(groups)) if nothing else tuple(kept), codes


def plain_level(level: Any) -> Any:
    """Return a level of a category column as the equal value of Python's own type, if there is one."""
    if isinstance(level, np.generic) and level.dtype.kind in "biufU":
        return level.item()
    return next((plain(level) for kind, plain in PLAIN.items() if isinstance(level, kind)), level)


def _can_be_written(level: object) -> bool:
    return type(level) in (str, bool, int) or (type(level) is float and math.isfinite(level))


def checked_names(names: Any, n_features: int) -> tuple[str, ...] | None:
    """Return the checked names of the features, as a tuple of str, or None."""
    if names is None:
        return None
    if not are_in_order(names):
        raise ValueError(
            f"feature_names={names!r}; expected a name for each column, in their order: pass a list of them."
        )
    names = tuple(names)
    if len(names) != n_features:
        raise ValueError(f"feature_names has {len(names)} entries, expected {n_features}, one per feature")
    require_distinct(names, "feature_names", lambda name: isinstance(name, str), "strings")
    return tuple(map(str, names))


def checked_renames(names: Any, called: Sequence[str] | None, n_features: int) -> tuple[str, ...]:
    """Return checked names for columns that trees call ``called``, or by no name; none of another column."""
    names = checked_names(names, n_features)
    if called is None or names == called:
        return names
    known = set(called)
    if moved := [name for name, old in zip(names, called, strict=True) if name != old and name in known]:
        raise ValueError(
            f"feature_names={list(names)}, but the columns of the trees are called {list(called)}, in which "
            f"{moved[0]!r} has another place; expected names in that order, or None to keep them."
        )
    return names


def _checked_link(link: Any) -> str | None:
    if link is not None and link not in LINKS:
        raise ValueError(
            f"link={link!r}; expected one of {LINKS}, or None: if it comes from a file, a later release may "
            "have written it, so use a newer one."
        )
    return None if link is None else str(link)


def _checked_levels(category_levels: Any, n_features: int) -> dict[int, tuple[Any, ...]]:
    checked = {}
    for feature, levels in category_levels.items():
        if not is_whole(feature, 0, n_features - 1):
            raise ValueError(f"category_levels has a feature {feature!r}, expected 0 to {n_features - 1}")
        levels = tuple(levels)
        kinds = "strings, booleans and finite numbers"
        require_distinct(levels, f"category_levels[{feature}]", _can_be_written, kinds)
        checked[int(feature)] = levels
    return dict(sorted(checked.items()))


def require_distinct(
    values: Sequence[Any], called: str, is_right: Callable[[Any], bool], expected: str
) -> None:
    """Raise unless all values are right and distinct."""
    seen = set()
    for value in values:
        if not is_right(value):
            raise ValueError(f"{called} has {reprlib.repr(value)}, expected {expected}")
        if value in seen:
            raise ValueError(f"{called} has {reprlib.repr(value)} twice, expected each once")
        seen.add(value)


@lru_cache(maxsize=4)
def _no_categories(n_features: int) -> tuple[None, ...]:
    """Return the categories of so many features, if none has any: mostly the same tuple, known at sight."""
    return (None,) * n_features


def _checked_categories(categories: Sequence[Any] | None, n_features: int) -> tuple[Any, ...]:
    if categories is None or categories is _no_categories(n_features):
        return _no_categories(n_features)
    if len(categories) != n_features:
        raise ValueError(f"categories has {len(categories)} entries, expected {n_features}, one per feature")
    if all(each is None for each in categories):
        return _no_categories(n_features)
    return tuple(
        None if each is None else _checked_category_values(f, each) for f, each in enumerate(categories)
    )


def _checked_category_values(feature: int, values: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # of NaN that signal, which are refused like others
        values = np.array(values, np.float64) + 0.0  # -0.0 and 0.0 are one category
    if values.ndim != 1 or len(values) > MAX_CATEGORIES:
        raise ValueError(f"categories[{feature}] must be a list of at most {MAX_CATEGORIES} values")
    if not np.isfinite(values).all() or not (values[1:] > values[:-1]).all():
        raise ValueError(f"categories[{feature}] must be finite and rising, each value once")
    values.flags.writeable = False
    return values if len(values) else NO_CATEGORIES


def _check_nodes(
    nodes: np.ndarray,
    tree_offsets: np.ndarray,
    bitsets: np.ndarray,
    categories: Sequence[Any],
    n_features: int,
) -> None:
    """Tidy the nodes, and raise if a walk could read outside the arrays, never end, or score NaN."""
    if nodes.ndim != 1 or tree_offsets.ndim != 1 or len(tree_offsets) == 0:
        raise ValueError("nodes and tree_offsets must be one-dimensional, tree_offsets not empty")
    rising = (tree_offsets[1:] > tree_offsets[:-1]).all()  # a tree has at least one node
    if tree_offsets[0] != 0 or not rising or tree_offsets[-1] != len(nodes):
        raise ValueError(f"tree_offsets must rise from 0 to the number of nodes, {len(nodes)}")
    if bitsets.ndim != 2 or bitsets.shape[1] < WORDS:
        raise ValueError(f"bitsets must have shape (n, {WORDS}), or more words, got {bitsets.shape}")

    tidy(nodes)
    has_categories = np.zeros(n_features, np.uint8)
    if categories is not _no_categories(n_features):
        has_categories[:] = [each is not None for each in categories]
    scratch = np.zeros(len(nodes), np.uint8)
    fault = find_fault(nodes, tree_offsets, len(bitsets), has_categories, scratch)
    if fault is not None:
        t, node, number = fault
        message = FAULTS[number].format(n_features=n_features, n_bitsets=len(bitsets))
        raise ValueError(f"tree {t}, node {node}: {message}")
