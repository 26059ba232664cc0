r"""Streaming histograms: a few centroids that stand for all rows seen so far, and can be merged.

A histogram is a list of at most :math:`b` centroids :math:`(p_i, m_i, G_i, H_i)`: a value, the number of rows
for which it stands (their mass), and the sums of their gradients and hessians. It takes one row after
another, and never needs more memory. Histograms of different rows can be merged. So workers that have some of
the rows each need to send no more than :math:`b` centroids per feature.

``split_search="pgbrt"`` and ``split_search="streaming"`` find splits by such histograms: see the guide,
"Streaming histograms".

Ben-Haim and Yom-Tov, *A streaming parallel decision tree algorithm*, JMLR 11, 2010, have :math:`(p_i, m_i)`.
Tyree, Weinberger, Agrawal and Paykin, *Parallel boosted regression trees for web search ranking*, WWW 2011,
section 4, add the sums of labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from ranktrees._core.growing import streaming as _kernels
from ranktrees._core.support.dtypes import CENTROID
from ranktrees.binning.edges import MOST_BINS
from ranktrees.binning.mapper import BinMapper
from ranktrees.processes.communicator import ALONE
from ranktrees.support.cuts import cuts_between
from ranktrees.support.spool import Spool

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.processes.communicator import Communicator

__all__ = ["StreamingHistogram", "merge_histograms"]


def merge_histograms(
    histograms: Sequence[np.ndarray], max_bins: int, *, one_by_one: bool = False
) -> NDArray[Any]:
    """Merge several histograms: the first two, then the third with the result, and so on.

    Parameters
    ----------
    histograms : sequence of ndarray of CENTROID records
        The centroids of each histogram, by ascending value. The result depends on which comes first.
    max_bins : int
        The maximum number of centroids that are left, 2 to 255. None of the histograms may have more.
    one_by_one : bool, default=False
        How two histograms are merged; see `StreamingHistogram.merge`.

    Returns
    -------
    centroids : ndarray of CENTROID records
        At most ``max_bins`` centroids. Their masses, gradients and hessians add up to those of all.

    Raises
    ------
    ValueError
        If ``max_bins`` is out of its range, or if a histogram has more centroids.

    Examples
    --------
    >>> from ranktrees.growing import StreamingHistogram, merge_histograms
    >>> workers = [StreamingHistogram(3).update(values) for values in ([1, 2, 9], [4, 8], [5])]
    >>> merge_histograms([worker.centroids for worker in workers], 3)["value"]
    array([1.5, 4.5, 8.5])
    """
    _check_max_bins(max_bins)
    for number, centroids in enumerate(histograms):
        if len(centroids) > max_bins:
            raise ValueError(
                f"histograms[{number}] has {len(centroids)} centroids, but max_bins={max_bins}; expected at "
                "most as many centroids in each histogram."
            )

    def merged(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
        out = np.empty(max_bins, CENTROID)
        return out[: _kernels.merge(ours, theirs, one_by_one, out)]

    return reduce(merged, histograms, np.empty(0, CENTROID))


class StreamingHistogram:
    r"""A histogram that takes rows one after another and keeps at most ``max_bins`` centroids of them.

    Parameters
    ----------
    max_bins : int, default=25
        The maximum number of centroids, 2 to 255.

    Attributes
    ----------
    centroids : ndarray of records
        By ascending ``value``, with the ``mass``, ``gradient`` and ``hessian`` of the rows that each stands
        for.

    References
    ----------
    Ben-Haim and Yom-Tov, *A streaming parallel decision tree algorithm*, JMLR 11, 2010, algorithms 1 to 4.
    Tyree, Weinberger, Agrawal and Paykin, *Parallel boosted regression trees for web search ranking*, WWW
    2011.

    Examples
    --------
    This is the example in appendix A of Ben-Haim and Yom-Tov: seven numbers in five centroids, then three
    more. (They round intermediate results, and arrive at 15.21 and 28.98.)

    >>> from ranktrees.growing import StreamingHistogram
    >>> histogram = StreamingHistogram(5).update([23, 19, 10, 16, 36, 2, 9])
    >>> histogram.centroids["value"], histogram.centroids["mass"]
    (array([ 2. ,  9.5, 17.5, 23. , 36. ]), array([1., 2., 2., 1., 1.]))
    >>> other = StreamingHistogram(5).update([32, 30, 45])
    >>> merged = histogram.merge(other)
    >>> merged.centroids["value"].round(2), merged.centroids["mass"]
    (array([ 2.  ,  9.5 , 19.33, 32.67, 45.  ]), array([1., 2., 3., 3., 1.]))
    >>> merged.sum([15])[0].round(2)
    array([3.28])
    >>> merged.uniform(3).round(2)
    array([15.22, 28.96])
    """

    def __init__(self, max_bins: int = 25) -> None:
        _check_max_bins(max_bins)
        self.max_bins = max_bins
        self.centroids = np.empty(0, CENTROID)

    def __repr__(self) -> str:
        return f"<StreamingHistogram of {len(self.centroids)} of {self.max_bins} centroids>"

    def update(
        self,
        values: ArrayLike,
        gradients: ArrayLike = 0.0,
        hessians: ArrayLike = 0.0,
        masses: ArrayLike = 1.0,
    ) -> Self:
        r"""Add rows in their order.

        Each row becomes a centroid of its own, or part of one that has the same value. If there are now too
        many centroids, the two nearest neighbours, or the lowest of several equally near pairs, become one at

        .. math:: p = \frac{m_i\, p_i + m_{i+1}\, p_{i+1}}{m_i + m_{i+1}},

        whose sums are those of both.

        Parameters
        ----------
        values : array-like of shape (n_rows,)
            Finite values, whose differences must be finite, too.
        gradients, hessians, masses : float or array-like of shape (n_rows,)
            Masses must be above 0.

        Returns
        -------
        self : StreamingHistogram

        Raises
        ------
        ValueError
            If the shapes differ, if a mass is not above 0, or if values are not finite or too far apart.
        """
        values = np.ascontiguousarray(values, np.float64)
        sums = np.empty((*values.shape, 3))
        for k, part in enumerate((masses, gradients, hessians)):
            part = np.asarray(part, np.float64)
            if values.ndim != 1 or part.shape not in ((), values.shape):
                raise ValueError(
                    f"values have shape {values.shape}, but their masses, gradients or hessians have shape "
                    f"{part.shape}; expected one value for each row, and one number for each value or one "
                    "for all."
                )
            sums[:, k] = part
        if not (sums[:, 0] > 0).all():
            raise ValueError("masses has an entry that is not above 0; leave such rows out.")
        check_spread("values", np.append(values, self.centroids["value"]))
        out = np.empty(self.max_bins, CENTROID)
        self.centroids = out[: _kernels.update(self.centroids, values, sums, out)]
        return self

    def merge(self, other: StreamingHistogram, *, one_by_one: bool = False) -> StreamingHistogram:
        """Return the histogram of the rows of both.

        Parameters
        ----------
        other : StreamingHistogram
            A histogram of at most as many centroids.
        one_by_one : bool, default=False
            If False, it begins with all centroids of both, and the two nearest become one until they are few
            enough, as in Ben-Haim and Yom-Tov. If True, the centroids of the other histogram are added one
            after another, by ascending value, as rows are by `update`. That is how pGBRT merges.

        Returns
        -------
        merged : StreamingHistogram
            A new histogram.
        """
        merged = type(self)(self.max_bins)
        merged.centroids = merge_histograms(
            [self.centroids, other.centroids], self.max_bins, one_by_one=one_by_one
        )
        return merged

    def sum(self, values: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        r"""Estimate the sums over all rows up to some values.

        Between two centroids, at :math:`x = p_i + t\,(p_{i+1} - p_i)`, the mass is a trapezoid,

        .. math:: \sum_{j<i} m_j + \frac{m_i}{2} + t\,m_i + \frac{t^2}{2} (m_{i+1} - m_i),

        and so are the gradients and hessians. Below the first centroid the sums are 0, and from the last one
        on they include all rows. A histogram of fewer than ``max_bins`` centroids knows each value. Running
        sums of ``centroids`` are then exact, but this method still counts half of a centroid.

        Parameters
        ----------
        values : array-like of shape (n_values,)

        Returns
        -------
        masses, gradients, hessians : ndarray of float64, shape (n_values,)
        """
        values = np.ascontiguousarray(values, np.float64)
        sums = np.empty((len(values), 3))
        _kernels.sums_up_to(self.centroids, values, sums)
        masses, gradients, hessians = sums.T
        return masses, gradients, hessians

    def uniform(self, n_parts: int) -> NDArray[np.float64]:
        """Return the values that divide the mass into equal parts, by the inverse of `sum`.

        Parameters
        ----------
        n_parts : int

        Returns
        -------
        values : ndarray of float64, shape (n_parts - 1,)
            Never below the first centroid nor above the last. If half of one of these is more than a part, it
            occurs several times.

        Raises
        ------
        ValueError
            If the histogram is empty.
        """
        if not len(self.centroids):
            raise ValueError(
                "the histogram is empty, and has no values to divide into parts; call update first."
            )
        values = np.empty(n_parts - 1)
        _kernels.uniform(self.centroids, values)
        return values


def mapper_of_values(
    X: Any,
    order: np.ndarray | None,
    weights: np.ndarray | None,
    categorical: np.ndarray | None,
    n_threads: int,
    communicator: Communicator = ALONE,
    names: Sequence[str] = (),
) -> tuple[BinMapper, np.ndarray]:
    """Give each distinct value of a feature a code.

    Parameters
    ----------
    X, order, weights, categorical, n_threads, communicator, names
        As for `BinMapper.fit`.

    Returns
    -------
    mapper : BinMapper
        Its ``values`` are the values of the codes. If there are other ranks, it is a `RankMapper`.
    codes : ndarray of uint8 or uint32, shape (n_rows, n_features)

    Raises
    ------
    ValueError
        If a feature has infinite values, or values whose difference is infinite.
    """
    mapper, codes = _own_values(X, order, weights, categorical, n_threads, names)
    if not communicator.alone:
        mapper = RankMapper.among(communicator, mapper)
        codes = mapper.encode(X, order, n_threads)
    for name, values in zip(names or range(X.shape[1]), known_values(mapper), strict=True):
        check_spread(f"feature {name!r} of X", values)
    return mapper, codes


def _own_values(
    X: Any,
    order: np.ndarray | None,
    weights: np.ndarray | None,
    categorical: np.ndarray | None,
    n_threads: int,
    names: Sequence[str] = (),
) -> tuple[BinMapper, np.ndarray]:
    mapper = BinMapper.fit(
        X,
        max_bins=None,
        weights=weights,
        order=order,
        categorical=categorical,
        n_threads=n_threads,
        names=names,
    )
    codes = mapper.encode(X, order, n_threads)
    mapper.values = values_of_codes(X, order, weights, codes, mapper)
    return mapper, codes


class RankMapper(BinMapper):
    """Gives a code to each value of a rank's rows, and to the lowest and the highest value of all ranks.

        rank 0   | 1.0 | 2.5 |     | 4.0 |     |     | 9.0 |      codes 0 1 2 3; 9.0 is a value of rank 1
        rank 1   | 1.0 |     | 3.5 |     | 6.0 | 8.0 | 9.0 |      codes 0 1 2 3 4; 1.0 is a value of rank 0
                                   ^
                                   a cut at 3.7 becomes one half-way between 3.5 and 4.0

    Ranks have different codes, and identify a cut by its value. Each rank translates the cut into the code of
    its highest value up to the cut. There always is one, since no cut is below the lowest value of all ranks.

    Attributes
    ----------
    communicator : Communicator
    ends : ndarray of float64, shape (2, n_features)
        Minus the lowest value of all ranks, and the highest value. -inf if there are no values.
    """

    values: Any
    communicator: Communicator
    ends: np.ndarray

    @classmethod
    def among(cls, communicator: Communicator, mapper: BinMapper) -> Self:
        """Return the mapper of a rank, from the mapper of its own values."""
        ends = np.full((2, mapper.n_features), -np.inf)
        for feature, values in enumerate(known_values(mapper)):
            if len(values):
                ends[:, feature] = -values[0], values[-1]
        return cls._with_ends(communicator, mapper, communicator.allreduce(ends, "max"))

    @classmethod
    def _with_ends(cls, communicator: Communicator, mapper: BinMapper, ends: np.ndarray) -> Self:
        values = [
            np.union1d(of_feature, [-low + 0.0, high] if high > -np.inf else [])
            for of_feature, low, high in zip(known_values(mapper), *ends, strict=True)
        ]
        categorical = mapper.is_categorical.astype(bool)
        mapper_of_all = cls(
            [cuts_between(of_feature[:-1], of_feature[1:]) for of_feature in values],
            [of_feature if known else None for of_feature, known in zip(values, categorical, strict=True)],
        )
        mapper_of_all.values = np.concatenate(
            [np.append(of_feature, [np.nan] * (1 + (not len(of_feature)))) for of_feature in values]
        )
        mapper_of_all.communicator, mapper_of_all.ends = communicator, ends
        return mapper_of_all

    def set_cuts(self, nodes: np.ndarray, codes: np.ndarray) -> None:
        """Set the cuts of some nodes, half-way between two values of all ranks. All ranks call this."""
        some = np.flatnonzero(codes >= 0)
        nodes["cut"][some] = self.cut_values(nodes["feature"][some], codes[some])

    def cut_values(self, features: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the cut above each code."""
        places = self.offsets[features] + codes
        around = np.array([self.values[places], -self.values[places + 1]])
        lower, upper = self.communicator.allreduce(np.nan_to_num(around, nan=-np.inf), "max")
        return np.where(np.isinf(upper), np.inf, cuts_between(lower, -upper))

    def codes_of(self, features: np.ndarray, cuts: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the code of the highest value up to each cut."""
        lines = [self.values[self.offsets[feature] : self.offsets[feature + 1]] for feature in features]
        return [
            np.searchsorted(values, cut, side="right") - 1 for values, cut in zip(lines, cuts, strict=True)
        ]

    def for_others(self, X: Any, order: np.ndarray | None, n_threads: int) -> tuple[BinMapper, np.ndarray]:
        """Return a mapper of other rows of this rank, which knows their values, and their codes."""
        mapper, _ = _own_values(X, order, None, None, n_threads)
        mapper = self._with_ends(self.communicator, mapper, self.ends)
        return mapper, mapper.encode(X, order, n_threads)


def known_values(mapper: BinMapper) -> list[np.ndarray]:
    """Return the values of each feature of a mapper that knows them."""
    values = [mapper.values[first : last - 1] for first, last in pairwise(mapper.offsets.tolist())]
    return [of_feature[~np.isnan(of_feature)] for of_feature in values]


def values_of_codes(
    X: Any, order: np.ndarray | None, weights: np.ndarray | None, codes: np.ndarray, mapper: BinMapper
) -> NDArray[np.float64]:
    """Return the value of each code, if each distinct value of a feature has a code.

    Parameters
    ----------
    X, order, weights
        As for `BinMapper.fit`, which made the mapper with ``max_bins=None``.
    codes : ndarray of uint8 or uint32, shape (n_rows, n_features)
        The codes of these rows.
    mapper : BinMapper

    Returns
    -------
    values : ndarray of float64, shape (n_cells,)
        Laid out as a line of all bins: those of feature f begin at ``mapper.offsets[f]``, and NaN ends them.
    """
    rows = np.arange(len(codes)) if weights is None else np.flatnonzero(weights)  # weight 0 makes no bin
    places = rows if order is None else order[rows]
    if isinstance(X, Spool):
        parts: Any = zip(X.parts(), X.places(places), strict=True)
    else:
        parts = [(X.tocsc() if sparse.issparse(X) else X, (slice(None), places))]
    values = np.full(mapper.offsets[-1], np.nan)
    for part, (some, rows_of_part) in parts:
        for feature in range(mapper.n_features):
            column = part[:, [feature]].toarray()[:, 0] if sparse.issparse(X) else part[:, feature]
            line = values[mapper.offsets[feature] : mapper.offsets[feature + 1]]
            # -0.0 becomes 0.0, which has the same code
            line[codes[rows[some], feature]] = column[rows_of_part] + 0.0
    return values


def check_spread(name: str, values: np.ndarray) -> None:
    """Refuse values that have no finite mean."""
    with np.errstate(over="ignore", invalid="ignore"):
        spread = np.ptp(values) if len(values) else 0.0
    if not np.isfinite(spread):
        seen = (
            "some are missing" if np.isnan(values).any() else "some are infinite, or they lie too far apart"
        )
        raise ValueError(
            f"{name}: streaming histograms compute means of values, but {seen}; expected values whose "
            "differences are finite."
        )


def _check_max_bins(max_bins: int) -> None:
    if not 2 <= max_bins <= MOST_BINS:
        raise ValueError(f"max_bins is {max_bins!r}; expected an integer from 2 to {MOST_BINS}.")
