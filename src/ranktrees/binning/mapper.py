"""Find the cuts of features at quantiles, and turn values into codes of one byte.

Each feature is cut into at most 255 bins once, before the first tree. From then on training sees codes only.
A cut is the upper edge of its bin, so ``x <= cuts[c]`` and ``code <= c`` mean the same, for any row.

For an exact search each distinct value has a bin of its own. Then a code is the rank of a value. If a feature
has more than 255 values, all codes have four bytes ("long" codes).

A categorical feature has a bin for each of up to 255 categories. More are put in order by labels, and then
binned like numbers; see `ranktrees.binning.levels`.

Columns of sparse rows that no split can use, as too few rows have an entry, are dropped before anything else:

    columns of X     0   1   2   3   4   5   6  ...      those with enough entries: 1, 4, 5
    features             0           1   2               what is cut, encoded, searched and split
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ranktrees._core.binning import binning as _kernels
from ranktrees.binning.codes import Codes, joined, no_codes
from ranktrees.binning.edges import (
    MOST_BINS,
    MOST_LEVELS,
    entries_of_columns,
    find_edges,
    row_limits,
)
from ranktrees.binning.levels import Levels
from ranktrees.processes.communicator import ALONE
from ranktrees.support.cuts import round_down
from ranktrees.support.spool import Spool

if TYPE_CHECKING:
    from ranktrees.binning.levels import Targets
    from ranktrees.processes.communicator import Communicator

__all__ = ["BinMapper"]

# The number of values per call of a kernel, since Ctrl-C takes effect only between two calls.
_VALUES_TO_ENCODE = 1 << 25

# The tables that find values among the edges of this many features stay in the second-level cache.
_FEATURES_TO_ENCODE = 256


class BinMapper:
    """The cuts of every feature, which turn values into codes.

    `fit` finds the cuts in data. The constructor takes given ones, for example from a file.

    Parameters
    ----------
    cuts : sequence of F arrays of float64
        The cuts of each feature, strictly increasing. Empty for a categorical feature.
    categories : sequence of F arrays of float64 or None, default=None
        The sorted values of each categorical feature, at most 255. None for the other features.
    columns : ndarray of int32, shape (F,), default=None
        The columns of X that the features are, ascending, if others have been dropped.
    n_columns : int, default=None
        The number of columns of X. If None, F.
    levels : mapping of int to Levels, default=None
        The bins of the levels of each categorical feature that has more than 255. Its cuts are those between
        bins.

    Attributes
    ----------
    columns, n_columns, levels
        As given. ``columns`` is None if each column is a feature.
    cuts : tuple of F arrays of float64
        The upper edges of the bins, ``n_bins[f] - 1`` of them for a feature that is not categorical.
    categories : tuple of F arrays of float64 or None
        The category of each code. None for a feature that is not categorical.
    is_categorical : ndarray of shape (F,), uint8
        1 if a feature is categorical, and each category has a bin: bins have no order.
    n_bins : ndarray of shape (F,), int32
        The number of bins for values, at least 1.
    missing_codes : ndarray of shape (F,), int32
        The code of a row without a value, which is the one after the bins for values.
    offsets : ndarray of shape (F + 1,), int64
        Where the bins of each feature begin if those of all features, the bins of missing values included,
        are laid out in one line: ``offsets[f + 1] - offsets[f] == n_bins[f] + 1``.
    values : ndarray of float64, shape (n_cells,), or None
        The value of each code, laid out in the same way, if each code has a single value and the values were
        asked for; see `ranktrees.growing.streaming.values_of_codes`.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.binning import BinMapper
    >>> X = np.array([[0.0, 3.0], [1.0, np.nan], [2.0, 7.0], [9.0, 3.0]])
    >>> mapper = BinMapper.fit(X)
    >>> [cuts.tolist() for cuts in mapper.cuts]
    [[0.5, 1.5, 5.5], [5.0]]
    >>> mapper.encode(X)
    array([[0, 0],
           [1, 2],
           [2, 1],
           [3, 0]], dtype=uint8)
    """

    values: Any = None

    def __init__(
        self,
        cuts: Sequence[np.ndarray],
        categories: Sequence[np.ndarray | None] | None = None,
        columns: np.ndarray | None = None,
        n_columns: int | None = None,
        levels: Mapping[int, Levels] | None = None,
    ) -> None:
        self.levels = levels or {}
        self.columns, self.n_columns = columns, len(cuts) if n_columns is None else n_columns
        if categories is None:
            categories = [None] * len(cuts)
        edges = [
            np.asarray(own_cuts if values is None else values, dtype=np.float64)
            for own_cuts, values in zip(cuts, categories, strict=True)
        ]
        sizes = np.array([len(of_feature) for of_feature in edges], dtype=np.int64)
        self._edge_offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._edges = np.append(np.concatenate([*edges, np.empty(0)]), np.inf)  # the last is above all bins

        self.is_categorical = np.array([values is not None for values in categories], dtype=np.uint8)
        self.n_bins = np.where(self.is_categorical, np.maximum(sizes, 1), sizes + 1).astype(np.int32)
        self.missing_codes = self.n_bins.copy()
        self.offsets = np.concatenate([[0], np.cumsum(self.n_bins + 1, dtype=np.int64)]).astype(np.int64)
        views = [
            self._edges[begin:end]
            for begin, end in zip(self._edge_offsets[:-1], self._edge_offsets[1:], strict=True)
        ]
        self._feature_edges = _kernels.FeatureEdges(
            self._edges, self._edge_offsets, self.is_categorical, self.missing_codes
        )
        self.cuts = tuple(
            np.empty(0) if known else view for view, known in zip(views, self.is_categorical, strict=True)
        )
        self.categories = tuple(
            view if known else None for view, known in zip(views, self.is_categorical, strict=True)
        )

    def __repr__(self) -> str:
        return f"<BinMapper of {self.n_features} features, {self.n_bins.sum()} bins>"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.cuts, self.categories, self.columns, self.n_columns, self.levels)

    @property
    def n_features(self) -> int:
        """The number of features F."""
        return len(self.n_bins)

    @property
    def is_unordered(self) -> np.ndarray:
        """Whether each feature is categorical, with any number of levels: bool[F]."""
        unordered = self.is_categorical.astype(bool)
        unordered[list(self.levels)] = True
        return unordered

    @property
    def known_categories(self) -> list[Any]:
        """The values of each categorical feature, ascending; None for the other features."""
        return [
            self.levels[f].values if f in self.levels else known for f, known in enumerate(self.categories)
        ]

    @property
    def category_groups(self) -> list[Any]:
        """For each feature None, or the bin of each of its many categories."""
        groups: list[Any] = [None] * self.n_features
        for feature, levels in self.levels.items():
            groups[feature] = levels.codes[-1] if len(levels.values) else None
        return groups

    @classmethod
    def fit(
        cls,
        X: Any,
        *,
        max_bins: int | None = 255,
        weights: np.ndarray | None = None,
        order: np.ndarray | None = None,
        drawn: np.ndarray | None = None,
        categorical: np.ndarray | None = None,
        least_entries: int = 0,
        n_threads: int = 1,
        communicator: Communicator = ALONE,
        names: Sequence[str] = (),
        targets: Targets | None = None,
    ) -> BinMapper:
        r"""Find the cuts of every feature.

        Cuts are exact quantiles of the rows, or of those that are `drawn`. If a feature has at most
        `max_bins` distinct values among these rows, each value gets a bin. Otherwise there are `max_bins`
        bins of about equal mass, which is the number of rows or the sum of their weights. A value has a bin
        of its own if it is at least as heavy as a fair share of what the heavier values leave. The runs of
        lighter values between those share the other bins. These are given, one at a time, to the run whose
        bins are the fullest. Inside a run, a bin ends where its mass comes nearest to a fair share of what is
        left. If heavy values and runs outnumber the bins, neighbours are joined first, beginning with the
        lightest pair.

        A cut is the middle of the two values that it separates, computed in double precision, or the lower
        one if they are neighbouring floats or one is infinite. -0.0 is 0.0, infinities are ordinary values,
        and NaN is a missing value, which has no influence.

        The cuts depend neither on the order of the rows nor on `n_threads`: weights are turned into integers
        once, scaled by a power of two that depends on the largest weight, and integer sums are exact. Rows of
        weight zero do not count.

        The cuts do not depend on which rank has which rows either: every rank gets the cuts of the rows of
        all ranks. A rank sends each column once, as its distinct values with their masses, to the rank that
        cuts it. If the rows drawn do not determine the cuts of a column, it is sent twice. On P ranks, with s
        bytes a value and :math:`d_f` distinct values other than zero in feature f, a rank sends

        .. math:: \frac{P - 1}{P} \sum_f (16 + (s + 4)\, d_f)

        bytes. Then every rank gets the cuts.

        Parameters
        ----------
        X : ndarray of shape (n, F), canonical scipy.sparse CSR or Spool, float32 or float64
            The rows. A dense X may have any strides. Entries that are absent from a sparse X are 0.0. X is
            never copied as a whole; some columns at a time are gathered.
        max_bins : int or None, default=255
            The maximum number of bins for values per feature, 2 to 255. If None, each distinct value gets a
            bin. Missing values always have one more bin.
        weights : ndarray of shape (n_rows,), default=None
            Finite weights >= 0. If None, all weights are 1, and so they are if all are the same number above
            0.
        order : ndarray of shape (n_rows,), intp, default=None
            Row i is ``X[order[i]]``, and `weights` are in that order. If None, rows are in the order of X.
        drawn : ndarray of shape (n_drawn,), intp, default=None
            The rows from which cuts are found, either on all ranks or on none. If None, all rows. Categories
            are found in all rows in any case, and so are the cuts of a feature that has at most one value in
            the rows drawn.
        categorical : ndarray of shape (F,), bool, default=None
            Which features are categorical. Their values are listed rather than cut.
        least_entries : int, default=0
            Columns of a sparse X in which fewer rows have an entry are dropped, if these are at least half of
            the columns, as the others are copied. Categorical columns are kept.
        n_threads : int, default=1
            The number of threads.
        communicator : Communicator, default=ALONE
            The ranks that have the rows together. Each passes its own `X`, `weights` and `order`. X may be
            dense or sparse, may have no rows, and may be float32 or float64 (values are compared as they are,
            in double precision). If some ranks pass weights, the rows of the others weigh 1.
        names : sequence of str, default=()
            The names of the features, for messages. Without names they are counted.
        targets : Targets, default=None
            By what the levels of categorical features are put in order if they are more than 255.

        Returns
        -------
        BinMapper
            The mapper with these cuts.

        Raises
        ------
        ValueError
            If a categorical feature has more than 65,535 distinct values (without ``targets``, more than 255)
            or an infinite one, or if an argument is out of its range. An error that only shows in the rows of
            all ranks together, such as the former, is raised on each rank.

        Examples
        --------
        >>> import numpy as np
        >>> from ranktrees.binning import BinMapper
        >>> X = np.array([0, 0, 0, 0, 1, 2, 3, 4], dtype=np.float32)[:, np.newaxis]
        >>> BinMapper.fit(X, max_bins=3).cuts
        (array([0.5, 2.5]),)
        >>> BinMapper.fit(X, max_bins=None).cuts
        (array([0.5, 1.5, 2.5, 3.5]),)
        >>> BinMapper.fit(X, max_bins=3, weights=np.array([1, 1, 1, 1, 6, 1, 1, 0])).cuts
        (array([0.5, 1.5]),)
        >>> BinMapper.fit(X, categorical=np.array([True])).categories
        (array([0., 1., 2., 3., 4.]),)
        """
        if max_bins is not None and not 2 <= max_bins <= MOST_BINS:
            raise ValueError(f"max_bins is {max_bins!r}; expected an integer from 2 to {MOST_BINS}, or None.")
        order = _check_order(order, X)
        n_features = X.shape[1]
        if categorical is None:
            categorical = np.zeros(n_features, dtype=bool)
        categorical = np.asarray(categorical, dtype=bool)
        if categorical.shape != (n_features,):
            raise ValueError(
                f"categorical has shape {categorical.shape}; expected ({n_features},), one bool for each "
                "feature of X."
            )
        n_columns, columns = n_features, _columns_with(least_entries, X, order, categorical, communicator)
        if columns is not None:
            X, categorical, n_features = X[:, columns], categorical[columns], len(columns)
        n_rows = X.shape[0] if order is None else len(order)
        drawn = None if drawn is None else _check_rows(drawn, n_rows, "drawn")
        weights = None if weights is None else _check_weights(weights, n_rows)

        find = partial(find_edges, X, categorical.view(np.uint8), max_bins, n_threads, communicator)
        if drawn is None:
            found = find(order, weights, np.ones(n_features, dtype=bool))
        else:
            found = find(
                drawn if order is None else order[drawn],
                None if weights is None else weights[drawn],
                ~categorical,
            )
            has_cuts = np.zeros(n_features, dtype=bool)
            has_cuts[[f for f, (n_edges, _) in found.items() if n_edges]] = True
            if not has_cuts.all():
                found |= find(order, weights, ~has_cuts)
        called = names or range(n_columns)
        called = called if columns is None else [called[column] for column in columns]
        cuts: list[Any] = []
        categories: list[Any] = []
        levels: dict[int, Levels] = {}
        for feature in range(n_features):
            n_edges, edges = found[feature]
            if not categorical[feature]:
                cuts.append(edges)
                categories.append(None)
                continue
            _check_categories(n_edges, edges, called[feature], targets)
            if targets is None or n_edges <= MOST_BINS:
                cuts.append(edges[:0])
                categories.append(edges)
                continue
            levels[feature], edges = Levels.fit(
                edges, _column(X, feature, order), targets, max_bins or MOST_BINS, communicator
            )
            cuts.append(edges)
            categories.append(None)
        return cls(cuts, categories, columns, n_columns, levels)

    def of_columns(self, values: Iterable[Any], fill: Any = None) -> list[Any]:
        """Return a list of one entry for each column of X, given one for each feature."""
        if self.columns is None:
            return list(values)
        every = [fill] * self.n_columns
        for column, value in zip(self.columns.tolist(), values, strict=True):
            every[column] = value
        return every

    def of_features(self, values: np.ndarray) -> np.ndarray:
        """Return one entry for each feature, given one for each column of X."""
        return values if self.columns is None else values[self.columns]

    def features_among(self, columns: Iterable[int]) -> set[int]:
        """Return the features among some columns of X."""
        if self.columns is None:
            return set(columns)
        return set(np.flatnonzero(np.isin(self.columns, list(columns))).tolist())

    def set_cuts(self, nodes: np.ndarray, codes: np.ndarray) -> None:
        """Set the cuts of some nodes, and let their features be columns of X.

        Rows with ``x <= cut`` have the given code or a lower one.

        Parameters
        ----------
        nodes : ndarray of NODE
        codes : ndarray of int64, shape (n_nodes,)
            Below the ``n_bins`` of the feature of the node. Above the last cut, the cut is infinite. -1 for a
            node that has no cut.
        """
        _kernels.set_cuts(nodes, codes, self._edges, self._edge_offsets)
        if self.columns is not None:
            inner = nodes["feature"] >= 0
            nodes["feature"][inner] = self.columns[nodes["feature"][inner]]

    def as_sets(self, nodes: np.ndarray, codes: np.ndarray, bitsets: np.ndarray) -> np.ndarray:
        """Let nodes with a cut between bins of levels be categorical; return all bit sets.

        Parameters
        ----------
        nodes : ndarray of NODE
            With the features of the mapper. Categorical nodes are numbered anew.
        codes : ndarray of int64, shape (n_nodes,)
            As for `set_cuts`. -1 from here on for these nodes.
        bitsets : ndarray of uint32, shape (n, 8)
            Those of the nodes that are categorical already.
        """
        by_cut = np.isin(nodes["feature"], list(self.levels))
        sets = np.empty((len(nodes), 8), np.uint32)
        sets[nodes["categories"] >= 0] = bitsets
        left = np.arange(MOST_BINS + 1) <= codes[by_cut, None]
        sets[by_cut] = np.packbits(left, axis=1, bitorder="little").view("<u4")
        codes[by_cut] = -1
        categorical = by_cut | (nodes["categories"] >= 0)
        nodes["categories"][categorical] = np.arange(np.count_nonzero(categorical))
        return sets[categorical]

    def with_stand_ins(self, X: Any, order: np.ndarray | None, codes: Any) -> Any:
        """Return rows in which a level stands for others of its bin, such that `encode` gives these codes."""
        X, rows = X.copy(), slice(None) if order is None else order
        columns = range(self.n_features) if self.columns is None else self.columns.tolist()
        for feature, levels in self.levels.items():
            stand_ins = levels.stand_ins(self.n_bins[feature])
            at, values = columns[feature], stand_ins[Codes.of(codes).of_feature(feature)]
            if sparse.issparse(X):
                column = X[:, [at]].toarray()
                column[rows, 0] = values
                parts = [X[:, :at], sparse.csr_array(column), X[:, at + 1 :]]
                X = sparse.csr_array(sparse.hstack(parts, format="csr"))
            else:
                X[rows, at] = values
        return X

    def for_others(self, X: Any, order: np.ndarray | None, n_threads: int) -> tuple[BinMapper, Any]:
        """Return a mapper that parts other rows as splits do, and their codes. It is this one."""
        return self, self.codes(X, order, n_threads)

    def codes(
        self,
        X: Any,
        order: np.ndarray | None = None,
        n_threads: int = 1,
        folds: np.ndarray | None = None,
    ) -> Any:
        """Return the codes of rows, as `encode` does; of sparse rows as `Codes`, with joint columns."""
        if not sparse.issparse(X) or self.n_bins.max(initial=0) > MOST_BINS:
            return self.encode(X, order, n_threads, folds)
        order = self._check(X, order)
        X = X if self.columns is None else X[:, self.columns]
        begins, ends = row_limits(X, order)
        first = np.concatenate([[0], np.cumsum(entries_of_columns(X, order))]).astype(np.int64)
        rows, codes = np.empty(first[-1], np.uint32), np.empty(first[-1], np.uint8)
        _kernels.entries_of_features(
            X.data,
            X.indices,
            begins,
            ends,
            self._feature_edges,
            first[:-1].copy(),
            rows,
            codes,
        )
        usual = self._encode(np.zeros((1, self.n_features), X.dtype), None, 1)[0]
        lone = np.where(self.is_unordered, -1, self.missing_codes).astype(np.int32)
        found = joined(len(begins), (first, rows, codes), np.ascontiguousarray(usual), lone)
        for feature, levels in self.levels.items():
            column = found.columns[:, found.column_of[feature]]
            column[:] = levels.of(_column(X, feature, order), self.missing_codes[feature], folds)
        return found

    def encode(
        self,
        X: Any,
        order: np.ndarray | None = None,
        n_threads: int = 1,
        folds: np.ndarray | None = None,
    ) -> np.ndarray:
        """Turn values into codes.

        The code of x is the number of cuts below x. So ``code <= c`` exactly if ``x <= cuts[c]``, in double
        precision for any type of X. The code of a category is its place among `categories`. Missing values,
        and categories that `fit` has not seen, get `missing_codes`.

        Parameters
        ----------
        X : ndarray of shape (n, F), canonical scipy.sparse CSR or Spool, float32 or float64
            The rows, as for `fit`.
        order : ndarray of shape (n_rows,), intp, default=None
            Row i of the codes is ``X[order[i]]``. If None, rows are in the order of X.
        n_threads : int, default=1
            The number of threads.
        folds : ndarray of uint8, shape (n_rows,), default=None
            Of training rows, the folds of the targets that the mapper was fitted with. Levels are then coded
            by the rows of other folds.

        Returns
        -------
        ndarray of shape (n_rows, F), uint8 or uint32
            The codes, each at most ``n_bins[f]``, in Fortran order, so that those of one feature are next to
            each other. They are uint32 if a feature has more than 255 bins.

        Raises
        ------
        ValueError
            If X does not have the F features of the mapper.

        Examples
        --------
        >>> import numpy as np
        >>> from ranktrees.binning import BinMapper
        >>> mapper = BinMapper([[0.5, 1.5]])
        >>> mapper.encode(np.array([[0.5], [0.6], [np.inf], [np.nan]])).ravel()
        array([0, 1, 2, 3], dtype=uint8)
        """
        order = self._check(X, order)
        if self.columns is not None and not isinstance(X, Spool):
            X = X[:, self.columns]
        return self._encode(X, order, n_threads, folds)

    def _check(self, X: Any, order: np.ndarray | None) -> np.ndarray | None:
        if X.shape[1] != self.n_columns:
            raise ValueError(f"X has {X.shape[1]} features, but the cuts are for {self.n_columns}.")
        return _check_order(order, X)

    def _encode(
        self, X: Any, order: np.ndarray | None, n_threads: int, folds: np.ndarray | None = None
    ) -> np.ndarray:
        n_rows = X.shape[0] if order is None else len(order)
        is_long = self.n_bins.max(initial=0) > MOST_BINS
        codes = no_codes(n_rows, self.n_features, np.uint32 if is_long else np.uint8).T
        if isinstance(X, Spool):
            self._encode_parts(X, order, codes, n_threads, folds)
            return codes.T
        encode: Callable[..., None]
        if sparse.issparse(X):
            encode = self._encode_sparse
        else:
            encode = self._encode_dense_long if is_long else self._encode_dense
        encode(X, order, codes, n_threads)
        for feature, levels in self.levels.items():
            codes[feature] = levels.of(_column(X, feature, order), self.missing_codes[feature], folds)
        return codes.T

    def _encode_parts(
        self,
        X: Any,
        order: np.ndarray | None,
        codes: np.ndarray,
        n_threads: int,
        folds: np.ndarray | None,
    ) -> None:
        for part, (places, positions) in zip(X.parts(), X.places(order), strict=True):
            codes[:, places] = self.encode(
                part, positions, n_threads, None if folds is None else folds[places]
            ).T

    def _encode_dense_long(self, X: Any, order: np.ndarray | None, codes: np.ndarray, n_threads: int) -> None:
        n_features, n_rows = codes.shape
        step = max(_VALUES_TO_ENCODE // max(n_features, 1), 1)
        for first in range(0, n_rows, step):
            _kernels.encode_dense_long(
                X,
                order,
                self._feature_edges,
                first,
                min(first + step, n_rows),
                codes,
                n_threads,
            )

    def _encode_dense(self, X: Any, order: np.ndarray | None, codes: np.ndarray, n_threads: int) -> None:
        n_features, n_rows = codes.shape
        edges = round_down(self._edges) if X.dtype == np.float32 else self._edges
        width = min(_FEATURES_TO_ENCODE, n_features)
        coders = np.empty((width, _kernels.coder_words(X.dtype.itemsize)), dtype=np.uint64)
        for feature in range(0, n_features, max(width, 1)):
            known = coders[: n_features - feature]
            _kernels.make_coders(edges, self._edge_offsets, self.missing_codes, feature, n_rows, known)
            some = _kernels.Coders(self._feature_edges, feature, known)
            step = max(_VALUES_TO_ENCODE // len(known), 1)
            for first in range(0, n_rows, step):
                _kernels.encode_dense(
                    X,
                    order,
                    some,
                    first,
                    min(first + step, n_rows),
                    codes,
                    n_threads,
                )

    def _encode_sparse(self, X: Any, order: np.ndarray | None, codes: np.ndarray, n_threads: int) -> None:
        n_features, n_rows = codes.shape
        step = max(_VALUES_TO_ENCODE // max(n_features, 1), 1)
        begins, ends = row_limits(X, order)
        for first in range(0, n_rows, step):
            _kernels.encode_sparse(
                X.data,
                X.indices,
                begins[first : first + step],
                ends[first : first + step],
                self._feature_edges,
                first,
                codes,
                n_threads,
            )


def _check_categories(n: int, values: np.ndarray, name: Any, targets: Targets | None) -> None:
    """Refuse more categories of a feature than there can be, and infinite ones."""
    most = MOST_BINS if targets is None else MOST_LEVELS
    if n > most:
        raise ValueError(
            f"categorical feature {name!r} has {n} distinct values; expected at most {most}: merge rare "
            "categories, leave out what is different in every row, such as an identifier, or do not declare "
            "the feature categorical."
        )
    if not np.isfinite(values).all():
        raise ValueError(
            f"categorical feature {name!r} of X holds {values[~np.isfinite(values)][0]:g}; expected finite "
            "numbers: give that category a finite number, make it NaN if it means missing, or leave the "
            "feature out of categorical_features."
        )


def _column(X: Any, feature: int, order: np.ndarray | None) -> np.ndarray:
    """The values of a feature in some rows, in their order."""
    if isinstance(X, Spool):
        n_rows = X.shape[0] if order is None else len(order)
        values = np.empty(n_rows, X.dtype)
        for part, (places, positions) in zip(X.parts(feature, feature + 1), X.places(order), strict=True):
            values[places] = _column(part, 0, positions)
        return values
    column = X[:, [feature]].toarray()[:, 0] if sparse.issparse(X) else X[:, feature]
    return column if order is None else column[order]


def _columns_with(
    least_entries: int,
    X: Any,
    order: np.ndarray | None,
    categorical: np.ndarray,
    communicator: Communicator,
) -> np.ndarray | None:
    """Return the columns in which enough rows of all ranks have an entry; None if these are most."""
    if not least_entries or not all(communicator.allgather(sparse.issparse(X))):
        return None
    wanted = (communicator.allreduce(entries_of_columns(X, order)) >= least_entries) | categorical
    return None if 2 * wanted.sum() > len(wanted) else np.flatnonzero(wanted).astype(np.int32)


def _check_order(order: np.ndarray | None, X: Any) -> np.ndarray | None:
    """Return the order as an intp array of rows of X. Refuse an X that the kernels cannot read."""
    if sparse.issparse(X) and X.format != "csr":
        raise TypeError(f"X is a sparse {X.format} matrix; expected csr, as X.tocsr() gives it.")
    if X.ndim != 2 or X.dtype not in (np.float32, np.float64):
        raise TypeError(f"X is {X.ndim}-dimensional {X.dtype}; expected 2-dimensional float32 or float64.")
    if order is None:
        return None
    return _check_rows(order, X.shape[0], "order")


def _check_rows(rows: np.ndarray, n_rows: int, name: str) -> np.ndarray:
    """Return the rows as an intp array, with numbers from 0 to n_rows - 1."""
    rows = np.ascontiguousarray(rows, dtype=np.intp)
    if len(rows) and (rows.min() < 0 or rows.max() >= n_rows):
        raise ValueError(f"{name} has rows {rows.min()} to {rows.max()}, but X has rows 0 to {n_rows - 1}.")
    return rows


def _check_weights(weights: np.ndarray, n_rows: int) -> np.ndarray:
    """Return the weights as float64, finite and >= 0."""
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"weights has shape {weights.shape}, but there are {n_rows} rows.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("weights has negative, infinite or missing values; expected finite weights >= 0.")
    return weights
