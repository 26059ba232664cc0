"""Cuts from quantiles, and values turned into codes of one byte.

Every feature is cut into at most 255 bins once, before the first tree; from then on training sees codes only.
A cut is the upper edge of its bin, so ``x <= cuts[c]`` and ``code <= c`` say the same, for any row.

For an exact search each distinct value is a bin of its own. Then a code is the rank of a value, and all codes
have four bytes ("long" codes) where a feature has more than 255 values.

Where rows are dealt to ranks, each column is put together again by one of them, from what each has of it:

    rank 0   columns 0 1 2 3 ..   distinct values, masses --.--> 0 cuts columns 0 2 .. --.--> all cuts
                                                            X                            X
    rank 1   columns 0 1 2 3 ..   distinct values, masses --'--> 1 cuts columns 1 3 .. --'--> all cuts
"""

from functools import partial

import numpy as np
from scipy import sparse

from ranktrees._core import binning as _kernels
from ranktrees.communicator import ALONE
from ranktrees.cuts import round_down
from ranktrees.spool import Spool

__all__ = ["BinMapper"]

MOST_BINS = 255
_NO_LIMIT = 1 << 30
_WEIGHT_BITS = 30
_EXACT_BITS = 53

# Ctrl-C is answered between two calls of a kernel, so a call handles about so many values.
_VALUES_TO_CUT = 1 << 22
_VALUES_TO_ENCODE = 1 << 25
_FEWEST_COLUMNS = 8
_BYTES_TOGETHER = 96  # of each row of a dense X, nearly always in two cache lines; at most a fifth of the row
_MOST_COLUMNS = 4096

# What finds values among the edges of so many features stays in the second cache.
_FEATURES_TO_ENCODE = 256

# Kernels that read codes some at a time may read on after the last.
_SPARE_BYTES = 64


def no_codes(n_rows, n_features, dtype):
    """Room for codes, feature by feature."""
    base = np.empty(n_rows * n_features + _SPARE_BYTES, dtype)
    return base[:-_SPARE_BYTES].reshape(n_features, n_rows).T


class BinMapper:
    """The cuts of every feature, and how they turn values into codes.

    Use `fit` to find the cuts in data. The constructor takes them as they are, for example from a file.

    Parameters
    ----------
    cuts : sequence of F arrays of float64
        The cuts of each feature, strictly increasing. Empty for a categorical feature.
    categories : sequence of F arrays of float64 or None, default=None
        The sorted values of each categorical feature, at most 255; None for the other features.

    Attributes
    ----------
    cuts : tuple of F arrays of float64
        Upper edges of the bins, ``n_bins[f] - 1`` of them for a feature that is not categorical.
    categories : tuple of F arrays of float64 or None
        The category of each code, None for a feature that is not categorical.
    is_categorical : ndarray of shape (F,), uint8
        1 where a feature is categorical.
    n_bins : ndarray of shape (F,), int32
        Bins for values, at least 1.
    missing_codes : ndarray of shape (F,), int32
        The code of a row without a value: the one after the bins for values.
    offsets : ndarray of shape (F + 1,), int64
        Where the cells of each feature begin when a leaf lays out all its bins, missing ones included, in one
        row: ``offsets[f + 1] - offsets[f] == n_bins[f] + 1``.
    values : ndarray of float64, shape (n_cells,), or None
        The value of each code, as such a row of cells, where each has one and it was asked for; see
        `ranktrees.streaming.values_of_codes`.

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

    values = None

    def __init__(self, cuts, categories=None):
        if categories is None:
            categories = [None] * len(cuts)
        edges = [
            np.asarray(own_cuts if values is None else values, dtype=np.float64)
            for own_cuts, values in zip(cuts, categories, strict=True)
        ]
        sizes = np.array([len(own) for own in edges], dtype=np.int64)
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
        self.cuts = tuple(
            np.empty(0) if known else view for view, known in zip(views, self.is_categorical, strict=True)
        )
        self.categories = tuple(
            view if known else None for view, known in zip(views, self.is_categorical, strict=True)
        )

    def __repr__(self):
        return f"<BinMapper of {self.n_features} features, {self.n_bins.sum()} bins>"

    def __reduce__(self):
        return type(self), (self.cuts, self.categories)

    @property
    def n_features(self):
        """Number of features F."""
        return len(self.n_bins)

    @classmethod
    def fit(
        cls,
        X,
        *,
        max_bins=255,
        weights=None,
        order=None,
        drawn=None,
        categorical=None,
        n_threads=1,
        communicator=ALONE,
        names=(),
    ):
        r"""Find the cuts of every feature.

        Cuts are exact quantiles of the rows, or of those that were `drawn`. A feature with at most
        `max_bins` distinct values among them gets a bin for each. Otherwise it gets `max_bins` bins of about
        equal mass (rows, or their weights). A value at least as heavy as a fair share of what the heavier
        ones leave has a bin of its own. The runs of lighter values between those share the other bins, one
        at a time to the run whose bins are the fullest, and inside a run a bin ends where its mass comes
        nearest to a fair share of what is left. If heavy values and runs outnumber the bins, neighbours are
        joined first, the lightest pair before others.

        A cut is the middle of the two values it separates (computed in double precision), or the lower one
        where they are neighbours or infinite. -0.0 is 0.0, infinities are ordinary values, NaN is missing and
        has no influence.

        The cuts depend neither on the order of the rows nor on `n_threads`: weights become integers once, by
        a power-of-two scale from the largest, and integer sums are exact. Rows of weight zero do not count.

        Nor do they depend on which rank has which rows: every rank gets the cuts of the rows of all. A rank
        sends each column once (twice, if the rows drawn do not tell its cuts), as its distinct values with
        their masses, to the one that cuts it. On P ranks,
        with s bytes a value and :math:`d_f` distinct values other than zero in feature f, these are

        .. math:: \frac{P - 1}{P} \sum_f (16 + (s + 4)\, d_f)

        bytes. Then every rank gets the cuts.

        Parameters
        ----------
        X : ndarray of shape (n, F), canonical scipy.sparse CSR or Spool, float32 or float64
            The rows. A dense X may have any strides; entries absent from a sparse X are 0.0. X is never
            copied, only gathered some columns at a time.
        max_bins : int or None, default=255
            Most bins for values per feature, 2 to 255; None gives each distinct value its own. One more is
            always there for missing values.
        weights : ndarray of shape (n_rows,), default=None
            Finite weights >= 0. None is all ones, and so is any other constant above 0.
        order : ndarray of shape (n_rows,), intp, default=None
            Row i is ``X[order[i]]``; `weights` are in that order. None is the order of X.
        drawn : ndarray of shape (n_drawn,), intp, default=None
            Which of those rows are looked at, on all ranks or on none; None is all. All rows still tell the
            categories, and the cuts of a feature that has one value in the rows drawn, or none.
        categorical : ndarray of shape (F,), bool, default=None
            Which features are categorical. Their values are listed rather than cut.
        n_threads : int, default=1
            Number of threads.
        communicator : Communicator, default=ALONE
            The ranks whose rows these are together. Each passes its own `X`, `weights` and `order`: dense or
            sparse, of no rows too, float32 or float64 (values are compared as they are, in double precision).
            Where some pass weights, the rows of others weigh 1.
        names : sequence of str, default=()
            What messages call the features; without names they are counted.

        Returns
        -------
        BinMapper
            The cuts.

        Raises
        ------
        ValueError
            If a categorical feature has more than 255 distinct values or an infinite one, or an argument is
            out of its range.
            What all ranks say together, such as the former, is refused on each.

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
        n_rows = X.shape[0] if order is None else len(order)
        drawn = None if drawn is None else _check_rows(drawn, n_rows, "drawn")
        weights = None if weights is None else _check_weights(weights, n_rows)

        find = partial(_find_edges, X, categorical.view(np.uint8), max_bins, n_threads, communicator)
        if drawn is None:
            found = find(order, weights, np.ones(n_features, dtype=bool))
        else:
            found = find(
                drawn if order is None else order[drawn],
                None if weights is None else weights[drawn],
                ~categorical,
            )
            told = np.zeros(n_features, dtype=bool)
            told[[f for f, (n_edges, _) in found.items() if n_edges]] = True
            if not told.all():
                found |= find(order, weights, ~told)
        names = names or range(n_features)
        cuts, categories = [], []
        for feature in range(n_features):
            n_edges, edges = found[feature]
            known = categorical[feature]
            if known and n_edges > MOST_BINS:
                raise ValueError(
                    f"categorical feature {names[feature]!r} has {n_edges} distinct values; at most "
                    f"{MOST_BINS} can be told apart. Merge rare categories, or do not declare it "
                    "categorical."
                )
            if known and not np.isfinite(edges).all():
                raise ValueError(
                    f"categorical feature {names[feature]!r} of X holds {edges[~np.isfinite(edges)][0]:g}; "
                    "expected finite numbers: give that category one, make it NaN where it is missing, or "
                    "leave the feature out of categorical_features."
                )
            cuts.append(edges[:0] if known else edges)
            categories.append(edges if known else None)
        return cls(cuts, categories)

    def set_cuts(self, nodes, codes):
        """Set the cuts of some nodes: rows with ``x <= cut`` have that code or a lower one.

        Parameters
        ----------
        nodes : ndarray of NODE
        codes : ndarray of int64, shape (n_nodes,)
            Below the ``n_bins`` of the node's feature, whose cut is infinite above the last; -1 where a node
            has no cut.
        """
        _kernels.set_cuts(nodes, codes, self._edges, self._edge_offsets)

    def for_others(self, X, order, n_threads):
        """A mapper that tells other rows apart where splits do, and their codes: this one does."""
        return self, self.encode(X, order, n_threads)

    def encode(self, X, order=None, n_threads=1):
        """Turn values into codes.

        The code of x is the number of cuts below x, so ``code <= c`` exactly if ``x <= cuts[c]``, in double
        precision whatever the type of X. The code of a category is its place among `categories`. Missing
        values and categories not seen by `fit` get `missing_codes`.

        Parameters
        ----------
        X : ndarray of shape (n, F), canonical scipy.sparse CSR or Spool, float32 or float64
            The rows, as for `fit`.
        order : ndarray of shape (n_rows,), intp, default=None
            Row i of the codes is ``X[order[i]]``. None is the order of X.
        n_threads : int, default=1
            Number of threads.

        Returns
        -------
        ndarray of shape (n_rows, F), uint8 or uint32
            The codes, each at most ``n_bins[f]``, in Fortran order: those of one feature lie side by side.
            They are uint32 if a feature has more than 255 bins. At least 64 more bytes after the last code
            may be read (their values mean nothing).

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
        order = _check_order(order, X)
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features, but the cuts are of {self.n_features}.")
        n_rows = X.shape[0] if order is None else len(order)
        is_long = self.n_bins.max(initial=0) > MOST_BINS
        codes = no_codes(n_rows, self.n_features, np.uint32 if is_long else np.uint8).T
        if isinstance(X, Spool):
            encode = self._encode_parts
        elif sparse.issparse(X):
            encode = self._encode_sparse
        else:
            encode = self._encode_dense_long if is_long else self._encode_dense
        encode(X, order, codes, n_threads)
        return codes.T

    def _encode_parts(self, X, order, codes, n_threads):
        for part, (places, own) in zip(X.parts(), X.places(order), strict=True):
            codes[:, places] = self.encode(part, own, n_threads).T

    def _encode_dense_long(self, X, order, codes, n_threads):
        n_features, n_rows = codes.shape
        step = max(_VALUES_TO_ENCODE // max(n_features, 1), 1)
        for first in range(0, n_rows, step):
            _kernels.encode_dense_long(
                X,
                order,
                self._edges,
                self._edge_offsets,
                self.is_categorical,
                self.missing_codes,
                first,
                min(first + step, n_rows),
                codes,
                n_threads,
            )

    def _encode_dense(self, X, order, codes, n_threads):
        n_features, n_rows = codes.shape
        edges = round_down(self._edges) if X.dtype == np.float32 else self._edges
        width = min(_FEATURES_TO_ENCODE, n_features)
        coders = np.empty((width, _kernels.coder_words(X.dtype.itemsize)), dtype=np.uint64)
        for feature in range(0, n_features, max(width, 1)):
            known = coders[: n_features - feature]
            _kernels.make_coders(edges, self._edge_offsets, self.missing_codes, feature, n_rows, known)
            step = max(_VALUES_TO_ENCODE // len(known), 1)
            for first in range(0, n_rows, step):
                _kernels.encode_dense(
                    X,
                    order,
                    known,
                    self._edges,
                    self._edge_offsets,
                    self.is_categorical,
                    self.missing_codes,
                    feature,
                    first,
                    min(first + step, n_rows),
                    codes,
                    n_threads,
                )

    def _encode_sparse(self, X, order, codes, n_threads):
        n_features, n_rows = codes.shape
        zero_codes = np.ascontiguousarray(self.encode(np.zeros((1, n_features), dtype=X.dtype))[0])
        step = max(_VALUES_TO_ENCODE // max(n_features, 1), 1)
        begins, ends = _row_limits(X, order)
        for first in range(0, n_rows, step):
            _kernels.encode_sparse(
                X.data,
                X.indices,
                begins,
                ends,
                self._edges,
                self._edge_offsets,
                self.is_categorical,
                self.missing_codes,
                zero_codes,
                first,
                min(first + step, n_rows),
                codes,
                n_threads,
            )


class _Columns:
    """Some columns, gathered: the values of column j are values[starts[j] : starts[j] + sizes[j]].

    Only those that are neither missing nor zero. A value may come several times, with a weight each.
    """

    def __init__(self, dtype, most_values, weighted, n_threads):
        n_values, longest = int(most_values.sum()) + 1, int(most_values.max(initial=0)) + 1
        self.values = np.empty(n_values, dtype=dtype)
        self.weights = np.empty(n_values, dtype=np.uint32) if weighted else None
        self.spare = np.empty((n_threads, longest), dtype=dtype)
        self.spare_weights = np.empty((n_threads, longest), dtype=np.uint32) if weighted else None
        n_pieces = longest + _kernels.MOST_PIECES
        self.pieces = np.empty((n_threads, _kernels.piece_words(self.values.itemsize) * n_pieces), np.uint64)
        self.doubtful = np.empty((n_threads, n_pieces), dtype=np.uint8)
        self.places = np.cumsum(most_values) - most_values
        self.begin(len(most_values))

    def begin(self, n_columns):
        """So many columns, of which nothing is known yet."""
        self.starts = self.places[:n_columns]
        self.sizes, self.zero_mass = np.zeros((2, n_columns), dtype=np.int64)

    def find_edges(self, is_categorical, max_bins, n_threads):
        """For each column how many cuts (or categories) it has, and the first of them; the values are lost.

        All of them, but of categories 255 at most.
        """
        room = len(self.spare[0]) if max_bins is None else 0
        edges = np.empty((len(self.sizes), max(MOST_BINS, room)))
        n_edges = np.empty(len(self.sizes), dtype=np.int64)
        _kernels.find_edges(
            self.values,
            self.weights,
            self.starts,
            self.sizes,
            self.zero_mass,
            is_categorical,
            _NO_LIMIT if max_bins is None else max_bins,
            self.pieces,
            self.doubtful,
            self.spare,
            self.spare_weights,
            edges,
            n_edges,
            n_threads,
        )
        return [(n, own[:n].copy()) for n, own in zip(n_edges.tolist(), edges, strict=True)]

    def distinct(self, n_threads):
        """Make each value of a column come once, and return what they weigh, side by side with them.

        More than 32 bits of weight are told by more entries.
        """
        masses = np.empty(len(self.values), dtype=np.uint32) if self.weights is None else self.weights
        _kernels.join_equal(
            self.values,
            self.weights,
            self.starts,
            self.sizes,
            self.spare,
            self.spare_weights,
            masses,
            n_threads,
        )
        return masses

    @classmethod
    def joined(cls, parts, n_threads):
        """The columns of all ranks, of what each has said of them."""
        sizes = np.array([sizes for sizes, _, _, _ in parts])
        dtype = np.result_type(*(values for _, _, values, _ in parts))
        columns = cls(dtype, sizes.sum(axis=0), True, n_threads)
        columns.zero_mass[:] = sum(zero_mass for _, zero_mass, _, _ in parts)
        for part_sizes, _, values, masses in parts:
            begins = np.cumsum(part_sizes) - part_sizes
            for j, (begin, size) in enumerate(zip(begins.tolist(), part_sizes.tolist(), strict=True)):
                at = columns.starts[j] + columns.sizes[j]
                columns.values[at : at + size] = values[begin : begin + size]
                columns.weights[at : at + size] = masses[begin : begin + size]
            columns.sizes += part_sizes
        return columns


def _find_edges(X, categorical, max_bins, n_threads, communicator, order, weights, wanted):
    """Of each feature that is wanted how many edges it has, and the edges, by the rows of all ranks."""
    rows = (_SparseRows if sparse.issparse(X) else _DenseRows)(X, order)
    blocks, weights = _agree(rows, weights, wanted, n_threads, communicator)
    found = {}
    for (first, last), columns in zip(blocks, rows.columns(blocks, weights, n_threads), strict=True):
        columns.sizes[~wanted[first:last]] = 0
        own = first + _dealt_to(communicator.rank, communicator.size, first, last)
        columns = _deal(columns, first, n_threads, communicator)
        found |= zip(own.tolist(), columns.find_edges(categorical[own], max_bins, n_threads), strict=True)
    said = communicator.allgather({f: edges for f, edges in found.items() if wanted[f]})
    return {f: edges for part in said for f, edges in part.items()}


def _agree(rows, weights, wanted, n_threads, communicator):
    """On which columns are taken at a time, and on the scale of weights: (blocks, weights)."""
    least_room = rows.n * max(rows.fewest_columns(weights is not None), n_threads)
    largest_weight = None if weights is None else float(weights.max(initial=0.0))
    said = communicator.allgather((len(wanted), rows.n, least_room, largest_weight))
    widths, sizes, rooms, largest_weights = zip(*said, strict=True)
    for rank, width in enumerate(widths):
        if width != widths[0]:
            raise ValueError(
                f"X has {widths[0]} features on rank 0, but {width} on rank {rank}; expected the same ones "
                "on all ranks."
            )
    most_values = communicator.allreduce(rows.most_values(), "max")
    blocks = _blocks(most_values, max(_VALUES_TO_CUT, *rooms), wanted)
    if all(largest is None for largest in largest_weights):
        return blocks, None
    weights = np.ones(rows.n) if weights is None else weights
    largest_weight = max(1.0 if largest is None else largest for largest in largest_weights)
    return blocks, _integer_weights(weights, largest_weight, sum(sizes))


def _blocks(most_values, room, wanted):
    """(first, last) of each block: together they hold all wanted columns, as many at a time as have room.

    What lies between two wanted columns is gathered with them, if it is not much.
    """
    ends = np.cumsum(most_values)
    columns = np.flatnonzero(wanted)
    blocks = []
    while len(columns):
        first = columns[0]
        last = int(np.searchsorted(ends, ends[first] - most_values[first] + room, side="right"))
        last = min(max(last, first + 1), first + _MOST_COLUMNS)
        if len(wanted) > last > first + _FEWEST_COLUMNS:
            last -= (last - first) % _FEWEST_COLUMNS
        inside = int(np.searchsorted(columns, last))
        gaps = np.flatnonzero(np.diff(columns[:inside]) > _FEWEST_COLUMNS)
        inside = int(gaps[0]) + 1 if len(gaps) else inside
        blocks.append((int(first), int(columns[inside - 1]) + 1))
        columns = columns[inside:]
    return blocks


def _dealt_to(rank, size, first, last):
    """Which columns, counted from the first, a rank cuts: column f is that of rank f % size."""
    return np.arange((rank - first) % size, last - first, size)


def _deal(columns, first, n_threads, communicator):
    """Of some columns, from ``first`` on, those that this rank cuts, with the values of all ranks."""
    if communicator.alone:
        return columns
    masses = columns.distinct(n_threads)
    limits = zip(columns.starts.tolist(), columns.sizes.tolist(), strict=True)
    stretches = [slice(start, start + size) for start, size in limits]
    messages = []
    for rank in range(communicator.size):
        dealt = _dealt_to(rank, communicator.size, first, first + len(stretches))
        values, weights = (
            np.concatenate([array[:0], *(array[stretches[j]] for j in dealt)])
            for array in (columns.values, masses)
        )
        messages.append((columns.sizes[dealt], columns.zero_mass[dealt], values, weights))
    return _Columns.joined(communicator.alltoall(messages), n_threads)


class _DenseRows:
    """How the columns of a dense X, or of one on disk, are gathered, in arrays that are used again."""

    def __init__(self, X, order):
        self.X = X
        self.n = X.shape[0] if order is None else len(order)
        self.on_disk = isinstance(X, Spool)
        self.places = list(X.places(order)) if self.on_disk else [(slice(None), order)]

    def fewest_columns(self, weighted):
        """How many columns are taken at a time, at least."""
        if self.on_disk:
            return 1
        most = min(_BYTES_TOGETHER // (self.X.dtype.itemsize + 4 * weighted), self.X.shape[1] // 5)
        return max(_FEWEST_COLUMNS, most - most % _FEWEST_COLUMNS)

    def most_values(self):
        """How many values each column may have."""
        return np.full(self.X.shape[1], self.n, dtype=np.int64)

    def columns(self, blocks, weights, n_threads):
        """Yield the columns of each block."""
        width = max((last - first for first, last in blocks), default=0)
        columns = _Columns(self.X.dtype, np.full(width, self.n), weights is not None, n_threads)
        for first, last in blocks:
            columns.begin(last - first)
            parts = self.X.parts(first, last) if self.on_disk else [self.X[:, first:last]]
            for part, (places, own) in zip(parts, self.places, strict=True):
                sizes, zero_mass = np.empty((2, n_threads, last - first), dtype=np.int64)
                _kernels.gather_dense(
                    part.astype(self.X.dtype, copy=False),
                    own,
                    None if weights is None else weights[places],
                    0,
                    columns.starts + columns.sizes,
                    columns.values,
                    columns.weights,
                    sizes,
                    zero_mass,
                )
                columns.sizes += sizes.sum(axis=0)
                columns.zero_mass += zero_mass.sum(axis=0)
            yield columns


class _SparseRows:
    """How the columns of a sparse X are gathered, reading each row from where the last ones ended."""

    def __init__(self, X, order):
        self.X = X
        self.cursors, self.ends = _row_limits(X, order)
        self.n = len(self.ends)
        self.counts = np.zeros(X.shape[1], dtype=np.int64)
        if not _kernels.count_sparse(X.indices, self.cursors, self.ends, self.counts):
            raise ValueError(
                f"X has column indices outside 0 to {X.shape[1] - 1}; rebuild the sparse matrix."
            )

    def fewest_columns(self, weighted):
        """How many columns are taken at a time, at least."""
        return _FEWEST_COLUMNS

    def most_values(self):
        """How many values each column may have."""
        return self.counts.copy()

    def columns(self, blocks, weights, n_threads):
        """Yield the columns of each block."""
        mass = self.n if weights is None else weights.sum(dtype=np.int64)
        for first, last in blocks:
            columns = _Columns(self.X.dtype, self.counts[first:last], weights is not None, n_threads)
            columns.zero_mass[:] = mass
            _kernels.gather_sparse(
                self.X.data,
                self.X.indices,
                self.cursors,
                self.ends,
                weights,
                first,
                columns.starts,
                columns.values,
                columns.weights,
                columns.sizes,
                columns.zero_mass,
            )
            yield columns


def _row_limits(X, order):
    """Where each row of a CSR matrix begins and ends, in writable arrays."""
    if not X.has_canonical_format:
        raise ValueError("X is sparse but not canonical; call X.sum_duplicates() first.")
    rows = slice(None) if order is None else order
    return X.indptr[:-1][rows].astype(np.int64), X.indptr[1:][rows].astype(np.int64)


def _check_order(order, X):
    """The order as an intp array of rows of X; also refuse an X that the kernels cannot read."""
    if sparse.issparse(X) and X.format != "csr":
        raise TypeError(f"X is a sparse {X.format} matrix; expected csr, as X.tocsr() gives it.")
    if X.ndim != 2 or X.dtype not in (np.float32, np.float64):
        raise TypeError(f"X is {X.ndim}-dimensional {X.dtype}; expected 2-dimensional float32 or float64.")
    if order is None:
        return None
    return _check_rows(order, X.shape[0], "order")


def _check_rows(rows, n_rows, name):
    """The rows as an intp array; of 0 to n_rows - 1."""
    rows = np.ascontiguousarray(rows, dtype=np.intp)
    if len(rows) and (rows.min() < 0 or rows.max() >= n_rows):
        raise ValueError(f"{name} has rows {rows.min()} to {rows.max()}, but X has rows 0 to {n_rows - 1}.")
    return rows


def _check_weights(weights, n_rows):
    """The weights as float64, finite and >= 0."""
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (n_rows,):
        raise ValueError(f"weights has shape {weights.shape}, but there are {n_rows} rows.")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("weights has negative, infinite or missing values; expected finite weights >= 0.")
    return weights


def _integer_weights(weights, largest, n_rows):
    """The weights as uint32 by one power-of-two scale, so that sums are exact; above 0 stays above 0."""
    _, exponent = np.frexp(largest)
    bits = min(_WEIGHT_BITS, _EXACT_BITS - n_rows.bit_length())
    scaled = np.rint(np.ldexp(weights, bits - exponent))
    return np.where(weights > 0, np.maximum(scaled, 1), 0).astype(np.uint32)
