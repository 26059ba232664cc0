"""X, y, qid and weights -> checked arrays and query offsets: the only place that sees a qid.

Above this module a user passes whatever holds rows, labels, weights and query ids. Below it there are arrays
only: rows as they came, labels and weights sorted by query, and the offsets at which each query starts. Every
refusal names the argument, says what was seen and what is expected, and tells what to do.
"""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn.base import is_classifier
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from ranktrees.batches import Batches
from ranktrees.binning import no_codes
from ranktrees.communicator import ALONE, Communicator
from ranktrees.feedback import NOTHING, Feedback, Preferences
from ranktrees.sharing import ALL, Share
from ranktrees.spool import Spool

__all__ = [
    "FitData",
    "MissingQueryWarning",
    "category_columns",
    "check_columns",
    "check_fit",
    "check_rows",
    "check_score",
    "check_validation",
    "find_queries",
    "hand_queries",
    "ids_of_queries",
    "is_fitted",
    "qid_of",
    "query_of_rows",
    "query_offsets",
    "sizes_to_qid",
    "unchanged_on_failure",
]

SKLEARN_VERSION = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
LARGEST_EXACT_FLOAT32 = 2**24
LARGEST_EXACT_FLOAT64 = 2**53


class MissingQueryWarning(UserWarning):
    """A ranker was fitted without query ids, so all rows were taken for one query.

    Examples
    --------
    >>> import warnings
    >>> from ranktrees.validation import MissingQueryWarning
    >>> warnings.simplefilter("error", MissingQueryWarning)  # refuse instead of warn
    >>> warnings.simplefilter("default", MissingQueryWarning)
    """


@dataclass(frozen=True, slots=True, eq=False)
class FitData:
    """Checked training (or validation, or test) data.

    Labels and weights are in *internal order*: sorted by query, stably, queries in order of first appearance;
    where ranks train together, in the order of their ids. `X` is never permuted: internal row `i` is row
    `order[i]` of `X`. Arrays may share memory with the user's, so they are only to be read.

    Attributes
    ----------
    X : ndarray, scipy sparse CSR or Spool of shape (n_rows, n_features), float32 or float64
        The rows as `check_rows` returns them; those of a meta-estimator as they came; those of batches on
        disk.
    labels : ndarray of shape (n_rows,), float64, or None
        Finite labels in internal order, contiguous; for a classifier 0 and 1, the places of `classes`. None
        where there are `preferences` only.
    weights : ndarray of shape (n_rows,), float64, or None
        Finite weights >= 0, at least one of them positive, in internal order; None when none were given.
    order : ndarray of shape (n_rows,), intp, or None
        The input row of every internal row; None when the rows are grouped already.
    offsets : ndarray of shape (n_queries + 1,), int64
        Query `q` holds the internal rows `offsets[q]` to `offsets[q + 1]`, the latter excluded.
    qid_given : bool
        Whether the query ids came from the user; False when all rows were taken for one query.
    classes : ndarray of shape (2,), or None
        What the labels of a classifier are called, sorted.
    share : Share
        What part these rows are of those of all ranks.
    preferences : Preferences, or None
        What was said about pairs of rows.
    positions : ndarray of shape (n_rows,), int64, or None
        The rank at which each row was shown, from 1, in internal order.
    """

    X: Any
    labels: np.ndarray | None
    weights: np.ndarray | None
    order: np.ndarray | None
    offsets: np.ndarray
    qid_given: bool
    classes: np.ndarray | None = None
    share: Share = ALL
    preferences: Preferences | None = None
    positions: np.ndarray | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.offsets[-1])

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return len(self.offsets) - 1

    @property
    def y(self) -> np.ndarray | None:
        """The labels in the order of the rows of `X`, classes by their names."""
        if self.labels is None:
            return None
        labels = self.as_given(self.labels)
        return labels if self.classes is None else self.classes[labels.astype(np.intp)]

    @property
    def query_of_row(self) -> np.ndarray:
        """The number of the query of every internal row, among those of all ranks."""
        numbers = self.share.query_numbers
        numbers = np.arange(self.n_queries) if numbers is None else numbers
        return np.repeat(numbers, np.diff(self.offsets))

    def gathered(self, codes: np.ndarray) -> tuple[FitData, np.ndarray]:
        """The labels, weights, queries and codes of all ranks, in their common order, on each of them."""
        share = self.share
        if share.communicator.alone:
            return self, codes
        own = (share.row_numbers, share.query_numbers, np.diff(self.offsets))
        heard = share.communicator.allgather((*own, self.labels, self.weights, np.asarray(codes.T)))
        numbers, queries, sizes, labels, weights, columns = zip(*heard, strict=True)
        rows, order = (np.argsort(np.concatenate(parts), kind="stable") for parts in (numbers, queries))
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes)[order])]).astype(np.int64)
        whole = FitData(
            X=None,
            labels=np.concatenate(labels)[rows],
            weights=None if self.weights is None else np.concatenate(weights)[rows],
            order=None,
            offsets=offsets,
            qid_given=self.qid_given,
            classes=self.classes,
            share=Share.alone(offsets),
        )
        every = no_codes(len(rows), codes.shape[1], codes.dtype)
        np.take(np.concatenate(columns, axis=1), rows, axis=1, out=every.T)
        return whole, every

    @property
    def feedback(self) -> dict[str, Any]:
        """What there is beside labels."""
        both = {"preferences": self.preferences, "positions": self.positions}
        return {name: values for name, values in both.items() if values is not None}

    def as_given(self, values: np.ndarray) -> np.ndarray:
        """Values in internal order, brought into the order of the rows of `X`."""
        if self.order is None:
            return values
        given = np.empty_like(values)
        given[self.order] = values
        return given


# -------------------------------------------------------------------------------------------------- query ids


def query_offsets(
    qid, n_rows: int, name: str = "qid", *, by_id: bool = False
) -> tuple[np.ndarray | None, np.ndarray]:
    """Turn query ids into a row order and offsets.

    Parameters
    ----------
    qid : array-like of shape (n_rows,)
        One id per row, of any hashable kind, in any order. Ids are compared exactly: integers of 64 bits are
        never rounded, floats are ids as they are. NumPy arrays, pandas, polars and Arrow columns and
        sequences are taken.
    n_rows : int
        The number of rows the ids belong to.
    name : str, default="qid"
        What error messages call the ids.
    by_id : bool, default=False
        Whether queries are put in the order of their ids: then what follows does not depend on the order in
        which they came. Ids that cannot be compared stay in order of first appearance.

    Returns
    -------
    order : ndarray of shape (n_rows,), intp, or None
        The rows sorted by query: stable, queries in order of first appearance or of their ids. None if they
        are so already.
    offsets : ndarray of shape (n_queries + 1,), int64
        Query `q` holds the rows `order[offsets[q]:offsets[q + 1]]`.

    Raises
    ------
    ValueError
        If an id is missing (NaN, None, NaT, NA), if the ids are not one-dimensional, not hashable or empty,
        or if there are not `n_rows` of them.

    Examples
    --------
    >>> from ranktrees.validation import query_offsets
    >>> query_offsets(["b", "b", "a"], 3)
    (None, array([0, 2, 3]))
    >>> query_offsets([7, 3, 7, 3, 3], 5)
    (array([0, 2, 1, 3, 4]), array([0, 2, 5]))
    >>> query_offsets([7, 3, 7, 3, 3], 5, by_id=True)
    (array([1, 3, 4, 0, 2]), array([0, 3, 5]))
    """
    heads, lengths = _runs(_ids(qid, n_rows, name))
    codes = _codes_of(heads, name, by_id)
    n_queries = int(codes.max(initial=-1)) + 1
    sizes = np.zeros(n_queries, np.int64)
    np.add.at(sizes, codes, lengths)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    if (codes[1:] >= codes[:-1]).all():
        return None, offsets
    return np.argsort(np.repeat(codes, lengths), kind="stable"), offsets


def _ids(qid, n_rows: int, name: str) -> np.ndarray:
    """`qid` as one dimension of `n_rows` ids, none missing; objects unless NumPy holds them exactly."""
    expected = f"expected one query id per row, {n_rows} in all"
    is_column = hasattr(qid, "__array__") or (isinstance(qid, Sequence) and not isinstance(qid, (str, bytes)))
    if not is_column:
        raise ValueError(f"{name} is {_seen(qid)}; {expected}, as an array, a column or a list.")
    if isinstance(qid, Sequence) and not isinstance(qid, range):
        ids = np.empty(len(qid), object)  # np.array([1, "1"]) and np.array([2**63, -1]) would merge ids
        for i, value in enumerate(qid):
            ids[i] = value
    else:
        missing = _missing_mask(qid)
        if missing is not None and missing.ndim == 1 and missing.any():
            raise _missing_id(name, int(missing.argmax()))
        ids = np.asarray(qid)
    if ids.ndim != 1:
        raise ValueError(
            f"{name} has shape {ids.shape}; {expected}, in one dimension: pass the one column that holds the "
            "ids."
        )
    if len(ids) == 0:
        raise ValueError(f"{name} is empty; {expected}.")
    if len(ids) != n_rows:
        raise ValueError(f"{name} has length {len(ids)}; {expected}.{_hint_sizes(ids, n_rows, name)}")
    if ids.dtype.kind in "fcmM":
        missing = np.isnat(ids) if ids.dtype.kind in "mM" else np.isnan(ids)
        if missing.any():
            raise _missing_id(name, int(missing.argmax()))
    return ids if ids.dtype.kind in "biufcmMSU" else ids.astype(object)


def _missing_id(name: str, row: int) -> ValueError:
    return ValueError(
        f"{name} is missing (NaN, None, NaT or NA) in row {row}; expected an id in every row: drop the rows "
        "without a query or give them one."
    )


def _hint_sizes(ids: np.ndarray, n_rows: int, name: str) -> str:
    try:
        is_sizes = sum(int(size) for size in ids[: n_rows + 1]) == n_rows and len(ids) < n_rows
    except (TypeError, ValueError, OverflowError):
        is_sizes = False
    return f" The values of {name} sum to {n_rows}: query sizes are passed as group=." if is_sizes else ""


def _runs(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The id and the length of every block of equal neighbours (of every row, for objects)."""
    if ids.dtype == object:
        return ids, np.ones(len(ids), np.int64)
    starts = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])
    return ids[starts], np.diff(starts, append=len(ids))


def _codes_of(ids: np.ndarray, name: str, by_id: bool) -> np.ndarray:
    """Number the distinct ids 0, 1, ... in order of first appearance, or in their own."""
    if ids.dtype.kind not in "SUO":  # words are hashed faster than sorted
        _, first, inverse = np.unique(ids, return_index=True, return_inverse=True)
        if by_id:
            return inverse
        rank = np.empty(len(first), np.intp)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[inverse]
    code_of: dict[Hashable, int] = {}
    try:
        codes = np.fromiter((code_of.setdefault(value, len(code_of)) for value in ids), np.intp, len(ids))
    except TypeError as error:
        row = next(i for i, value in enumerate(ids) if not _is_hashable(value))
        raise ValueError(
            f"{name} holds {_seen(ids[row])} in row {row}; expected one hashable id per row, such as a "
            "number or a string, in one dimension: pass the one column that holds the ids."
        ) from error
    for value, code in code_of.items():
        if _is_missing(value):
            raise _missing_id(name, int(np.argmax(codes == code)))
    if by_id:
        try:
            place_of = {value: place for place, value in enumerate(sorted(code_of))}  # type: ignore[type-var]
        except TypeError:
            return codes
        return np.array([place_of[value] for value in code_of], np.intp)[codes]
    return codes


def _is_hashable(value) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_missing(value) -> bool:
    """Whether a value is None, NaN, NaT or NA: those that do not equal themselves."""
    try:
        return value is None or not bool(value == value)
    except TypeError:  # pandas.NA has no truth value
        return True


def sizes_to_qid(group, n_rows: int, name: str = "group") -> np.ndarray:
    """Turn query sizes, as LightGBM takes them, into one id per row.

    Parameters
    ----------
    group : array-like of shape (n_queries,)
        The number of rows of every query, for rows that are grouped: positive whole numbers that sum to
        `n_rows`.
    n_rows : int
        The number of rows.
    name : str, default="group"
        What error messages call the sizes.

    Returns
    -------
    qid : ndarray of shape (n_rows,), int64
        0 for the rows of the first query, 1 for those of the second, ...

    Raises
    ------
    ValueError
        If a size is not a positive whole number or if they do not sum to `n_rows`.

    Examples
    --------
    >>> from ranktrees.validation import sizes_to_qid
    >>> sizes_to_qid([2, 3], 5)
    array([0, 0, 1, 1, 1])
    """
    expected = (
        f"expected the sizes of the queries, positive whole numbers that sum to the {n_rows} rows: pass the "
        "rows "
        "of each query one after the other and their numbers here, or one id per row as qid=."
    )
    sizes = _column_array(group)
    if sizes.ndim != 1 or len(sizes) == 0:
        raise ValueError(f"{name} has shape {sizes.shape}; {expected}")
    if sizes.dtype.kind == "O" and all(isinstance(size, numbers.Integral) for size in sizes):
        # what int64 cannot hold is cut to a size that is refused just the same
        sizes = np.array([min(max(int(size), -1), n_rows + 1) for size in sizes])
    if sizes.dtype.kind not in "iuf":
        raise ValueError(f"{name} holds {_seen(sizes[0])}; {expected}")
    for wrong, what in (
        (np.isnan(sizes) if sizes.dtype.kind == "f" else np.zeros(len(sizes), bool), "NaN"),
        (sizes < 0, "a negative size"),
        (sizes == 0, "a size of zero"),
        (sizes > n_rows, f"a size larger than the {n_rows} rows, so its sum is too large"),
        (sizes != np.floor(sizes), "a fraction"),
    ):
        if wrong.any():
            raise ValueError(f"{name} holds {what} at position {int(wrong.argmax())}; {expected}")
    sizes = sizes.astype(np.int64)
    if sizes.sum() != n_rows:
        hint = " One value per row looks like query ids." if len(sizes) == n_rows else ""
        raise ValueError(f"{name} sums to {sizes.sum()}; {expected}{hint}")
    return np.repeat(np.arange(len(sizes)), sizes)


def qid_of(y_or_X):
    """The query ids that ride in the index of a pandas object.

    A `y` Series or an `X` frame whose index has a level named "qid" carries its query ids through everything
    that slices rows: scikit-learn's cross-validation, pipelines, permutation importance.

    Parameters
    ----------
    y_or_X : object
        Anything; only a pandas Series or DataFrame can carry ids.

    Returns
    -------
    qid : pandas Index of length n_rows, or None
        The values of the index level named "qid"; None if there is no such level.

    Examples
    --------
    >>> import pandas as pd
    >>> from ranktrees.validation import qid_of
    >>> y = pd.Series([2, 0, 1], index=pd.Index(["a", "a", "b"], name="qid"))
    >>> list(qid_of(y[1:]))
    ['a', 'b']
    >>> qid_of([2, 0, 1]) is None
    True
    """
    index = getattr(y_or_X, "index", None)
    if hasattr(y_or_X, "iloc") and "qid" in getattr(index, "names", ()):
        return index.get_level_values("qid")
    return None


def find_queries(
    n_rows: int, ids: dict, holders: dict, *, by_id: bool = False
) -> tuple[np.ndarray | None, np.ndarray] | None:
    """Order and offsets from every source of query ids that was given; the sources must agree.

    Parameters
    ----------
    n_rows : int
        The number of rows.
    ids : dict of str to array-like or None
        Query ids under the names messages call them by; None stands for ids that were not given.
    holders : dict of str to object
        Labels and rows, under their names, whose index may have a level named "qid" (`qid_of`).
    by_id : bool, default=False
        As in `query_offsets`, by the first source.

    Returns
    -------
    order, offsets : as of `query_offsets`, or None if there is no source

    Raises
    ------
    ValueError
        If two sources disagree about which rows belong together, or if one is no list of ids.

    Examples
    --------
    >>> from ranktrees.validation import find_queries
    >>> find_queries(3, {"qid": [5, 5, 7], "groups": ["a", "a", "b"]}, {})
    (None, array([0, 2, 3]))
    >>> find_queries(3, {"qid": None}, {"y": [0, 1, 2]}) is None
    True
    """
    sources = _sources(ids, holders)
    if not sources:
        return None
    (first, values), *others = sources.items()
    queries = query_offsets(values, n_rows, first, by_id=by_id)
    for name, other in others:
        if not _same_queries(query_offsets(values, n_rows, first), query_offsets(other, n_rows, name)):
            raise ValueError(
                f"{first} and {name} disagree about which rows belong to one query; expected one source of "
                "query ids: leave one of them out."
            )
    return queries


def _sources(ids: dict, holders: dict) -> dict:
    """Query ids that were given, under the names that messages call them by."""
    sources = {name: values for name, values in ids.items() if values is not None}
    for name, holder in holders.items():
        if (values := qid_of(holder)) is not None:
            sources[f"the index level 'qid' of {name}"] = values
    return sources


def ids_of_queries(qid, order: np.ndarray | None, offsets: np.ndarray) -> list:
    """The id of each query, as it was given.

    Parameters
    ----------
    qid : array-like of shape (n_rows,)
        Query ids, as for `query_offsets`.
    order, offsets : as of `query_offsets`

    Returns
    -------
    list of length n_queries

    Examples
    --------
    >>> from ranktrees.validation import ids_of_queries, query_offsets
    >>> ids_of_queries(["b", "a", "b"], *query_offsets(["b", "a", "b"], 3))
    ['b', 'a']
    """
    ids = qid if isinstance(qid, Sequence) else np.asarray(qid)
    first_rows = offsets[:-1] if order is None else order[offsets[:-1]]
    return [ids[row] for row in first_rows]


def query_of_rows(order: np.ndarray | None, offsets: np.ndarray) -> np.ndarray:
    """The number of the query of every row.

    Parameters
    ----------
    order, offsets : as of `query_offsets`

    Returns
    -------
    ndarray of shape (n_rows,), int64
        0 for the rows of the query that appears first, and so on.

    Examples
    --------
    >>> from ranktrees.validation import query_of_rows, query_offsets
    >>> query_of_rows(*query_offsets(["b", "a", "b"], 3))
    array([0, 1, 0])
    """
    grouped = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    if order is None:
        return grouped
    query_of_row = np.empty_like(grouped)
    query_of_row[order] = grouped
    return query_of_row


def hand_queries(estimator, method: str, y, queries: np.ndarray | None) -> tuple[Any, dict]:
    """Labels and query ids in the form in which a method of any estimator takes them.

    With scikit-learn's metadata routing enabled, ids go to who asks for them, under the names asked for.
    Without it they go as ``qid=`` to a method with such a parameter. Others, such as a `Pipeline`, find them
    in the index of `y`, in a level named "qid", if pandas is there.

    Parameters
    ----------
    estimator : estimator
        Who takes them.
    method : str
        The name of one of its methods, such as "fit".
    y : array-like of shape (n_rows,)
        Labels.
    queries : ndarray of shape (n_rows,) or None
        The query of each row; None where there are no queries.

    Returns
    -------
    y : array-like of shape (n_rows,)
        To be passed as labels.
    ids : dict
        To be passed by name.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from ranktrees import LambdaMARTRanker
    >>> from ranktrees.validation import hand_queries
    >>> hand_queries(LambdaMARTRanker(), "fit", [2, 0, 1], np.array([0, 0, 1]))
    ([2, 0, 1], {'qid': array([0, 0, 1])})
    >>> hand_queries(make_pipeline(LambdaMARTRanker()), "fit", [2, 0, 1], np.array([0, 0, 1]))
    (qid
    0    2
    0    0
    1    1
    dtype: int64, {})
    """
    if queries is None:
        return y, {}
    if sklearn.get_config()["enable_metadata_routing"]:
        names = get_routing_for_object(estimator).consumes(method, {"qid", "groups"})
        return y, dict.fromkeys(sorted(names), queries)
    if "qid" in signature(getattr(estimator, method)).parameters:
        return y, {"qid": queries}
    try:
        import pandas as pd
    except ImportError:
        return y, {}  # a ranker that finds no ids says so
    return pd.Series(np.asarray(y), index=pd.Index(queries, name="qid")), {}


def _same_queries(a: tuple[np.ndarray | None, np.ndarray], b: tuple[np.ndarray | None, np.ndarray]) -> bool:
    (order_a, offsets_a), (order_b, offsets_b) = a, b
    if not np.array_equal(offsets_a, offsets_b):
        return False
    return order_a is order_b if order_a is None or order_b is None else np.array_equal(order_a, order_b)


# ------------------------------------------------------------------------------------------------------- rows


def check_rows(estimator, X, *, reset: bool, name: str = "X"):
    """Check the rows and bring them into one of the few forms the kernels read.

    Float32 and float64 values stay as they are. Integers, booleans and half floats become float32 where that
    is exact and float64 otherwise. NaN, masked entries and the nulls of data frames are missing values;
    infinities are ordinary large values. Category columns of data frames become the codes 0, 1, ... of the
    levels seen in fit, in sorted order; a level that was not seen is a missing value.

    Parameters
    ----------
    estimator : estimator
        Its `n_features_in_`, `feature_names_in_` and `_category_levels` (``{column index: levels}``) are set
        when `reset`, and compared otherwise.
    X : array-like, scipy sparse or data frame of shape (n_rows, n_features)
        The rows, which are never changed. Frames of pandas, polars and Arrow are taken.
    reset : bool
        True in fit, False in predict and score.
    name : str, default="X"
        What error messages call the rows.

    Returns
    -------
    X : ndarray or scipy sparse CSR of shape (n_rows, n_features), float32 or float64, native byte order
        The very same memory for float32 and float64 arrays of any layout (C, Fortran, strided, read-only,
        memory mapped) and for canonical CSR; otherwise a new array. CSR has sorted indices without
        duplicates.

    Raises
    ------
    TypeError
        For `numpy.matrix` and for objects that are no numbers.
    ValueError
        For rows that are not two-dimensional, empty, complex, dates or words, for integers that float64
        cannot hold, for sparse structure that points outside the matrix, for duplicate column names, and,
        unless `reset`, for columns other than those of fit.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator
    >>> from ranktrees.validation import check_rows
    >>> ranker = BaseEstimator()
    >>> check_rows(ranker, [[1, 2], [3, 4]], reset=True).dtype
    dtype('float32')
    >>> ranker.n_features_in_
    2
    >>> check_rows(ranker, [[1.0, 2.0, 3.0]], reset=False)
    Traceback (most recent call last):
        ...
    ValueError: X has 3 features, but BaseEstimator is expecting 2 features as input.
    """
    if reset:
        rows, levels = _read_rows(X, None, estimator, name)
        _set_columns(estimator, X, rows, levels)
        return rows
    check_columns(estimator, X, reset=False, name=name)
    rows, _ = _read_rows(X, getattr(estimator, "_category_levels", {}), estimator, name)
    return rows


def check_columns(estimator, X, *, reset: bool, name: str = "X") -> None:
    """Check the number and the names of the columns of rows whose values another estimator reads.

    Parameters
    ----------
    estimator : estimator
        Its `n_features_in_` and `feature_names_in_` are set when `reset`, and compared otherwise.
    X : array-like, scipy sparse or data frame of shape (n_rows, n_features)
        The rows.
    reset : bool
        True in fit.
    name : str, default="X"
        What error messages call the rows.

    Raises
    ------
    ValueError
        For rows that are not two-dimensional or empty, and, unless `reset`, for columns other than those of
        fit.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from ranktrees.validation import check_columns
    >>> transformer = BaseEstimator()
    >>> check_columns(transformer, [["a", 2], ["b", 4]], reset=True)
    >>> transformer.n_features_in_
    2
    """
    _require_two_dimensions(X, estimator, name)
    if not reset and type(X) is np.ndarray and not hasattr(estimator, "feature_names_in_"):
        expected = X.shape[1:] == (estimator.n_features_in_,)
        if expected:  # scikit-learn would say so, too, but takes longer than scoring a row does
            return
    try:
        validate_data(estimator, _named(X), reset=reset, skip_check_array=True)
    except ValueError as error:
        if name == "X":
            raise
        raise ValueError(f"{name} does not match the X of fit: {error}") from error


def category_columns(X) -> dict[int, tuple]:
    """The columns that are categorical by their dtype, and their levels.

    Parameters
    ----------
    X : object
        Anything; only data frames (pandas, polars, Arrow) have category columns.

    Returns
    -------
    levels : dict of int to tuple
        For every category column its index and the levels that occur in it, sorted.

    Examples
    --------
    >>> import pandas as pd
    >>> from ranktrees.validation import category_columns
    >>> X = pd.DataFrame({"clicks": [1, 2], "site": pd.Categorical(["uk", "fr"])})
    >>> category_columns(X)
    {1: ('fr', 'uk')}
    """
    columns = _frame_columns(X) or []
    return {j: _levels(column) for j, (_, column) in enumerate(columns) if _is_category(column)}


def _set_columns(estimator, X, rows, levels: dict[int, tuple]) -> None:
    validate_data(estimator, _named(X), reset=True, skip_check_array=True)
    estimator.n_features_in_ = rows.shape[1]
    estimator._category_levels = levels


def _named(X):
    """What shows the column names of `X` to scikit-learn, which before 1.9 cannot read those of polars 2."""
    X = X.head if isinstance(X, Spool) else X
    if SKLEARN_VERSION < (1, 9) and hasattr(X, "get_columns") and not hasattr(X, "__dataframe__"):
        return _Named(X)
    return X


class _Named:
    """The dataframe interchange protocol, as far as scikit-learn follows it."""

    def __init__(self, X):
        self.shape = X.shape
        self.column_names = lambda: X.columns

    def __dataframe__(self):
        return self


def _read_rows(X, levels: dict[int, tuple] | None, estimator, name: str) -> tuple[Any, dict[int, tuple]]:
    """The rows as the kernels read them and the category levels; `levels` None says that this is a fit."""
    if isinstance(X, Spool):
        return X, {}
    _require_two_dimensions(X, estimator, name)
    if sp.issparse(X):
        rows = _read_sparse(X, name)
    elif not levels and _is_one_array(X):
        _require_distinct(list(X.columns), name)
        rows = X.to_numpy()
    elif (columns := _frame_columns(X)) is not None:
        _require_distinct([column_name for column_name, _ in columns], name)
        if levels is None:
            levels = category_columns(X)
        return _read_frame(X, columns, levels, name), levels
    else:
        rows = _read_array(X, name)
        _require_size(rows.shape, estimator, name, X)
    if levels:
        raise ValueError(
            f"{name} is {_seen(X)}; expected a data frame, since column {min(levels)} was a category column "
            "in fit: pass a frame with the columns of fit."
        )
    return rows, {}


def _require_two_dimensions(X, estimator, name: str) -> None:
    """Refuse what is no matrix of at least one row and one column; lists are looked at once converted."""
    _refuse_batches(X, name)
    if isinstance(X, np.matrix):
        raise TypeError(
            f"{name} is a numpy.matrix, which is not supported; expected a 2D array: convert it with "
            f"np.asarray({name})."
        )
    if hasattr(X, "collect"):
        raise TypeError(
            f"{name} is {_seen(X)}, which has no rows yet; expected a data frame: pass {name}.collect()."
        )
    if X is None or np.isscalar(X):
        raise ValueError(
            f"Expected 2D array, got scalar array instead: {name} is {_seen(X)}; expected rows and "
            f"columns.\n{_RESHAPE}"
        )
    shape = getattr(X, "shape", None)
    if isinstance(X, (list, tuple)) and (len(X) == 0 or np.isscalar(X[0])):
        shape = (len(X),)
    if isinstance(shape, tuple):
        _require_size(shape, estimator, name, X)


def _refuse_batches(X, name: str) -> None:
    if isinstance(X, Batches):
        raise TypeError(
            f"{name} is in batches, which only the fit of an estimator of trees reads; expected rows: go "
            "through them, as in [model.predict(batch.X) for batch in batches]."
        )


_RESHAPE = (
    "Reshape your data either using array.reshape(-1, 1) if your data has a single feature or "
    "array.reshape(1, -1) if it contains a single sample."
)


def _require_size(shape: tuple, estimator, name: str, X) -> None:
    by = f" by {type(estimator).__name__}"
    if len(shape) < 2:
        seen = f"{len(shape)}D array" if len(shape) else "scalar array"
        raise ValueError(f"Expected 2D array, got {seen} instead: {name} is {_seen(X)}.\n{_RESHAPE}")
    if len(shape) > 2:
        raise ValueError(
            f"Found array with dim {len(shape)}, while dim <= 2 is required{by}: {name} has shape {shape}; "
            "expected one row per document and one column per feature: reshape it to (n_rows, n_features)."
        )
    for count, kind in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {kind} (shape={shape}) while a minimum of 1 is required{by}: {name} is "
                "empty."
            )


def _require_distinct(names: list, name: str) -> None:
    if len(set(names)) < len(names):
        twice = next(column for j, column in enumerate(names) if column in names[:j])
        raise ValueError(
            f"{name} has duplicate column names: {twice!r} occurs more than once; expected a unique name for "
            "every column: rename or drop the others."
        )


def _read_array(X, name: str) -> np.ndarray:
    masked = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X) else None
    try:
        values = np.asarray(X)
    except ValueError as error:
        raise ValueError(
            f"{name} could not be turned into an array ({error}); expected rows of equal length: pad or drop "
            "the others."
        ) from error
    if values.ndim != 2:
        return values  # the caller refuses it by its shape
    rows = _as_float(values, lambda j: f"column {j} of {name}", masked)
    if masked is not None:
        rows = np.where(masked, rows.dtype.type(np.nan), rows)
    return rows


def _as_float(values: np.ndarray, named, masked: np.ndarray | None = None) -> np.ndarray:
    """Numbers as float32 or float64, not copied if they are; `named(j)` is how a message calls column `j`."""
    dtype = values.dtype
    if dtype.kind == "f":
        target = np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
        if dtype == target and values.flags.aligned:
            return values
        with np.errstate(over="ignore"):
            return values.astype(target)
    if dtype.kind in "biu":
        return values.astype(_float_for_integers(values if masked is None else values[~masked], named))
    if dtype.kind == "O":
        return _objects_as_float(values if masked is None else _without(values, masked), named)
    if dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {named(0)} holds {dtype}; expected real numbers: pass the real and "
            "the imaginary part as columns of their own."
        )
    if dtype.kind in "mM":
        raise ValueError(
            f"{named(0)} holds dates or durations (dtype {dtype}); expected numbers: convert it yourself, "
            "for instance to days since a date."
        )
    raise _words(named(0), values.flat[0] if dtype.kind in "USTV" else dtype)


def _without(values: np.ndarray, masked: np.ndarray) -> np.ndarray:
    values = values.copy()
    values[masked] = None
    return values


def _words(column: str, value) -> ValueError:
    return ValueError(
        f"{column} holds {_seen(value)}, which could not be converted to float; expected numbers: replace "
        "strings by numbers, or make it a category column of a data frame: .astype('category') in pandas, "
        ".cast(pl.Categorical) in polars."
    )


def _float_for_integers(values: np.ndarray, named) -> type:
    if values.dtype.kind == "b" or values.dtype.itemsize <= 2 or values.size == 0:
        return np.float32
    largest = max(abs(int(values.min())), abs(int(values.max())))
    if largest > LARGEST_EXACT_FLOAT64:
        beyond = (values > LARGEST_EXACT_FLOAT64) | (values < -LARGEST_EXACT_FLOAT64)
        column = int(beyond.any(axis=0).argmax()) if values.ndim > 1 else 0
        raise _imprecise(named(column), values.dtype, values[beyond][0])
    return np.float32 if largest <= LARGEST_EXACT_FLOAT32 else np.float64


def _imprecise(column: str, dtype, value) -> ValueError:
    return ValueError(
        f"{column} holds the integer {value} (dtype {dtype}), too large for the full precision of float64; "
        "expected integers up to 2**53: subtract an offset, or pass identifiers as categories."
    )


def _objects_as_float(values: np.ndarray, named) -> np.ndarray:
    columns = values.reshape(-1, values.shape[-1] if values.ndim > 1 else 1)
    numbers_ = np.empty(columns.shape)
    for j in range(columns.shape[1]):
        word = next((value for value in columns[:, j] if isinstance(value, (str, bytes))), None)
        if word is not None:
            raise _words(named(j), word)
        try:
            numbers_[:, j] = columns[:, j]  # None becomes NaN
        except (TypeError, ValueError, OverflowError) as error:
            wrong = next(value for value in columns[:, j] if not _is_number(value))
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(
                f"{named(j)} holds {_seen(wrong)}; expected numbers: {str(error).rstrip('.')}."
            ) from error
        for i in np.flatnonzero(np.abs(numbers_[:, j]) >= LARGEST_EXACT_FLOAT64):
            value = columns[i, j]
            if isinstance(value, numbers.Integral) and abs(int(value)) > LARGEST_EXACT_FLOAT64:
                raise _imprecise(named(j), "object", value)
    return numbers_.reshape(values.shape)


def _is_number(value) -> bool:
    if isinstance(value, (str, bytes)):
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return value is None
    return True


# ------------------------------------------------------------------------------------------------ data frames


def _is_one_array(X) -> bool:
    """Whether it is a pandas frame of one float dtype, whose columns take longer to look at than to score."""
    return hasattr(X, "iloc") and set(X.dtypes) in ({np.dtype(np.float32)}, {np.dtype(np.float64)})


def _frame_columns(X) -> list[tuple[Any, Any]] | None:
    """The (name, column) pairs of a pandas, polars or Arrow frame; None for anything else."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return list(X.items())
    if hasattr(X, "get_columns"):
        return [(column.name, column) for column in X.get_columns()]
    if hasattr(X, "column_names") and hasattr(X, "column"):
        return [(name, X.column(j)) for j, name in enumerate(X.column_names)]
    return None


def _read_frame(X, columns: list[tuple[Any, Any]], levels: dict[int, tuple], name: str):
    dtypes = {getattr(column, "dtype", None) for _, column in columns}
    if hasattr(X, "iloc") and not levels and all(getattr(dtype, "fill_value", None) == 0 for dtype in dtypes):
        return _read_sparse(X.sparse.to_coo(), name)
    values = [
        _read_column(column, levels.get(j), f"column {column_name!r} of {name}")
        for j, (column_name, column) in enumerate(columns)
    ]
    rows = np.empty((len(values[0]), len(values)), np.result_type(*values), order="F")
    for j, column in enumerate(values):
        rows[:, j] = column
    return rows


def _read_column(column, levels: tuple | None, named: str) -> np.ndarray:
    if levels is not None:
        code_of = {level: code for code, level in enumerate(levels)}
        codes = [code_of.get(value, np.nan) for value in _values(column)]
        return np.array(codes, np.float32)
    if _is_category(column):
        raise ValueError(
            f"{named} is a category column; expected numbers, as in fit: fit with the category column, or "
            "pass numbers."
        )
    missing = _missing_mask(column)
    if missing is None or not missing.any():
        return _as_float(np.asarray(column), lambda _: named)
    known = _as_float(_without_missing(column), lambda _: named)
    values = np.full(len(missing), np.nan, known.dtype)
    values[~missing] = known
    return values


def _without_missing(column) -> np.ndarray:
    drop = getattr(column, "dropna", None) or getattr(column, "drop_nulls", None) or column.drop_null
    return np.asarray(drop())


def _missing_mask(column) -> np.ndarray | None:
    """Where a column of a data frame library (or a masked array) has nulls; None if it cannot have any."""
    if isinstance(column, np.ma.MaskedArray):
        return np.ma.getmaskarray(column)
    if isinstance(getattr(column, "dtype", None), np.dtype) and column.dtype != object:
        return None
    for method in ("isna", "is_null"):  # pandas; polars and Arrow
        if hasattr(column, method):
            return np.asarray(getattr(column, method)())
    return None


def _is_category(column) -> bool:
    dtype = getattr(column, "dtype", getattr(column, "type", None))
    return type(dtype).__name__ in ("CategoricalDtype", "Categorical", "Enum", "DictionaryType")


def _values(column) -> list:
    if hasattr(column, "to_pylist"):  # np.asarray gives the nulls of an Arrow dictionary some level
        return column.to_pylist()
    return np.asarray(column, dtype=object).tolist()


def _levels(column) -> tuple:
    """The distinct values of a column without the missing ones, sorted."""
    return sorted_levels(value for value in set(_values(column)) if not _is_missing(value))


def sorted_levels(values) -> tuple:
    """The distinct values in their order, which for mixed types is by the name of the type first.

    Parameters
    ----------
    values : iterable of hashable values

    Returns
    -------
    tuple

    Examples
    --------
    >>> sorted_levels(["uk", "fr", "uk"])
    ('fr', 'uk')
    """
    distinct = list(set(values))
    try:
        return tuple(sorted(distinct))
    except TypeError:
        return tuple(sorted(distinct, key=lambda value: (type(value).__name__, str(value))))


# -------------------------------------------------------------------------------------------- sparse matrices


def _read_sparse(X, name: str):
    if X.dtype.kind not in "biufc":
        raise ValueError(f"{name} is sparse with dtype {X.dtype}; expected numbers: convert its data first.")
    _require_structure(X, name)
    if X.format != "csr":
        X = (X.astype(np.int64) if X.dtype.kind in "biu" and X.dtype.itemsize < 8 else X).tocsr()  # sums fit
        _require_structure(X, name)
    n_entries = int(X.indptr[-1])
    data = np.ascontiguousarray(_as_float(X.data[:n_entries], lambda _: f"the data of {name}"))
    indices = X.indices[:n_entries]
    is_canonical = _is_canonical(indices, X.indptr)
    is_as_it_came = np.may_share_memory(data, X.data) and n_entries == len(X.data) == len(X.indices)
    if is_canonical and is_as_it_came and _has_plain_indices(X):
        return X
    csr = sp.csr_array if isinstance(X, sp.sparray) else sp.csr_matrix
    rows = csr((data, indices, X.indptr), shape=X.shape, copy=not is_canonical)
    if not is_canonical:
        rows.sum_duplicates()
    return rows


def _has_plain_indices(X) -> bool:
    both = (X.indices, X.indptr)
    return len({part.dtype for part in both}) == 1 and all(
        part.dtype in (np.dtype(np.int32), np.dtype(np.int64)) and part.flags.c_contiguous for part in both
    )


def _is_canonical(indices: np.ndarray, indptr: np.ndarray) -> bool:
    """Whether the column indices rise strictly within every row."""
    if len(indices) < 2:
        return True
    rises = indices[1:] > indices[:-1]
    starts = indptr[1:-1]
    rises[starts[(starts > 0) & (starts < len(indices))] - 1] = True
    return bool(rises.all())


def _require_structure(X, name: str) -> None:
    """Refuse index arrays that point outside the matrix, before anything follows them."""
    n_rows, n_columns = X.shape
    if X.format == "coo":
        for indices, bound, kind in ((X.row, n_rows, "row"), (X.col, n_columns, "column")):
            _require_indices(indices, bound, kind, name)
        if not len(X.row) == len(X.col) == len(X.data):
            raise ValueError(f"{name} is sparse COO with row, col and data of different lengths; {_REBUILD}")
    elif X.format in ("csr", "csc", "bsr"):
        block = X.blocksize if X.format == "bsr" else (1, 1)
        n_lines, n_cells = n_rows // block[0], n_columns // block[1]
        if X.format == "csc":
            n_lines, n_cells = n_cells, n_lines
        indptr = X.indptr
        if indptr.ndim != 1 or indptr.dtype.kind not in "iu" or len(indptr) != n_lines + 1 or indptr[0] != 0:
            raise ValueError(
                f"{name} is sparse with an indptr of shape {indptr.shape} and dtype {indptr.dtype}; expected "
                f"{n_lines + 1} integers that start at 0: {_REBUILD}"
            )
        if (indptr[1:] < indptr[:-1]).any():
            line = int(np.argmax(indptr[1:] < indptr[:-1]))
            raise ValueError(
                f"{name} is sparse with an indptr that falls from {indptr[line]} to {indptr[line + 1]} at "
                f"{line}; {_REBUILD}"
            )
        if indptr[-1] > min(len(X.indices), len(X.data)):
            raise ValueError(
                f"{name} is sparse with an indptr that ends at {indptr[-1]}, beyond its {len(X.indices)} "
                f"indices and {len(X.data)} data: {_REBUILD}"
            )
        _require_indices(
            X.indices[: int(indptr[-1])], n_cells, "row" if X.format == "csc" else "column", name
        )


_REBUILD = (
    "expected a consistent matrix: build it anew, for instance with scipy.sparse.csr_array((data, (row, "
    "column)))."
)


def _require_indices(indices: np.ndarray, bound: int, kind: str, name: str) -> None:
    if indices.dtype.kind not in "iu":
        raise ValueError(f"{name} is sparse with {kind} indices of dtype {indices.dtype}; {_REBUILD}")
    for wrong in (indices.min(), indices.max()) if len(indices) else ():
        if not 0 <= wrong < bound:
            what = "negative" if wrong < 0 else f"not below the {bound} {kind}s"
            raise ValueError(
                f"{name} is sparse with the {kind} index {wrong} among its indices, {what}: {_REBUILD}"
            )


# ----------------------------------------------------------------------------------------- labels and weights


def _check_labels(y, n_rows: int, name: str, rows_name: str, estimator) -> np.ndarray:
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None: "
            f"{name} is None; expected one label per row."
        )
    labels = _class_names(y, name) if is_classifier(estimator) else _numbers(y, name, "label")
    if labels.ndim == 2 and labels.shape[1] == 1:
        warnings.warn(
            f"A column-vector y was passed when a 1d array was expected. Please change the shape of {name} "
            "to (n_rows,), for example using ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        labels = labels.ravel()
    if labels.ndim != 1:
        raise ValueError(
            f"{name} should be a 1d array, got an array of shape {labels.shape} instead; expected one label "
            "per row: fit one model per column of labels."
        )
    if len(labels) != n_rows:
        raise ValueError(
            f"{name} has length {len(labels)} but {rows_name} has {n_rows} rows: inconsistent numbers of "
            "rows; expected one label per row: drop or add the others."
        )
    if labels.dtype.kind in "fc":
        _require_finite(labels, name, "label")
    return labels


def _class_names(y, name: str) -> np.ndarray:
    """The labels of a classifier as they are, of whatever shape."""
    missing = _missing_mask(y)
    names = _column_array(y, name)
    if missing is None and names.dtype.kind in "OmM" and names.ndim:
        missing = np.array([_is_missing(value) for value in names.flat])
    if missing is not None and missing.any():
        raise _not_finite("NaN (missing)", name, "label", int(np.argmax(missing)))
    return names


def _class_numbers(names: np.ndarray, classes: np.ndarray | None, name: str):
    """The classes, sorted, and the place of each label among them; with `classes` None they are found."""
    if names.dtype.kind == "f" and (names != np.floor(names)).any():
        raise ValueError(
            f"Unknown label type: {name} holds the fraction {names[names != np.floor(names)][0]:g}; "
            "expected two classes: pass a condition such as y >= 2, or learn the numbers with "
            "HistGBRTRegressor."
        )
    try:
        seen, place = np.unique(names, return_inverse=True)
    except TypeError as error:
        raise ValueError(
            f"{name} holds labels that cannot be sorted ({error}); expected two classes of one kind: map "
            "them to words or numbers first."
        ) from error
    if classes is None:
        if len(seen) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"{name} holds {len(seen)} classes, such as {', '.join(_seen(value) for value in seen[:3])}; "
                "expected two: use OrdinalRanker(HistGBRTClassifier()) for grades, which have an order, or "
                "scikit-learn's OneVsRestClassifier for other classes."
            )
        if len(seen) < 2:
            raise ValueError(
                f"{name} holds one class, {_seen(seen[0])}; expected two classes: add rows of the other one."
            )
        return seen, place.astype(np.float64)
    number_of = {value: float(number) for number, value in enumerate(classes.tolist())}
    unknown = [value for value in seen.tolist() if value not in number_of]
    if unknown:
        raise ValueError(
            f"{name} holds the label {_seen(unknown[0])}; expected the classes of fit, "
            f"{' and '.join(_seen(value) for value in classes)}: drop the other rows."
        )
    return classes, np.array([number_of[value] for value in seen.tolist()])[place]


def _check_weights(sample_weight, n_rows: int, n_queries: int, name: str) -> np.ndarray | None:
    if sample_weight is None:
        return None
    weights = _numbers(sample_weight, name, "weight")
    if weights.shape != (n_rows,):
        hint = "drop or add the others."
        if weights.shape == (n_queries,):
            hint = (
                f"one weight for each of the {n_queries} queries is spelt {name}=np.repeat(weights, sizes), "
                "where sizes are the numbers of rows of the queries."
            )
        raise ValueError(
            f"{name} has shape {weights.shape}; expected one weight per row, shape ({n_rows},): {hint}"
        )
    _require_finite(weights, name, "weight")
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise ValueError(
            f"{name} holds the negative weight {weights[row]:g} in row {row}; expected weights >= 0: drop "
            "such rows or give them weight 0."
        )
    return weights


def _numbers(values, name: str, kind: str) -> np.ndarray:
    """Labels or weights as float64, of whatever shape."""
    missing = _missing_mask(values)
    if missing is not None and missing.any():
        raise _not_finite(
            "NaN (missing)", name, kind, int(np.argmax(missing.reshape(len(missing), -1).any(1)))
        )
    if sp.issparse(values):
        raise ValueError(
            f"{name} is sparse; expected a dense array of one {kind} per row: pass {name}.toarray()."
        )
    array = _column_array(values, name)
    if array.dtype.kind in "USTVO" and array.size and not all(map(_is_number, array.flat)):
        wrong = next(value for value in array.flat if not _is_number(value))
        raise ValueError(
            f"{name} holds {_seen(wrong)}, which could not be converted to float; expected one number per "
            f"row as {kind}: "
            + (
                "query ids are passed by name, as qid=."
                if kind == "weight"
                else "map words to numbers first."
            )
        )
    return _as_float(array, lambda _: name).astype(np.float64, copy=False)


def _column_array(values, name: str = "group") -> np.ndarray:
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{name} could not be turned into an array ({error}); expected one number per entry."
        ) from error


def _require_finite(values: np.ndarray, name: str, kind: str) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise _not_finite("NaN" if np.isnan(values[row]) else "infinity (inf)", name, kind, row)


def _not_finite(what: str, name: str, kind: str, row: int) -> ValueError:
    return ValueError(
        f"Input {name} contains {what} in row {row}; expected a finite {kind} in every row: drop such rows."
    )


# --------------------------------------------------------------------------------------- fit, validate, score


class _QueryNumbers:
    """One number for each query of all batches."""

    def __init__(self):
        self.number_of: dict[Hashable, int] = {}

    def of(self, batch, n_rows: int, of_batch: str) -> np.ndarray | None:
        """The numbers of the queries of a batch's rows; None if it brings no ids."""
        ids = {f"qid{of_batch}": batch.qid}
        holders = {f"y{of_batch}": batch.y, f"X{of_batch}": batch.X}
        if find_queries(n_rows, ids, holders) is None:
            return None
        given = (values for values in (batch.qid, qid_of(batch.y), qid_of(batch.X)) if values is not None)
        heads, lengths = _runs(_ids(next(given), n_rows, "qid"))
        numbers = [self.number_of.setdefault(value, len(self.number_of)) for value in heads.tolist()]
        return np.repeat(numbers, lengths)


def _read_batches(estimator, batches: Batches, others: dict, name: str, reset: bool):
    """Batches, checked one by one, as (rows on disk, labels, weights, numbers of queries).

    Parameters
    ----------
    estimator : estimator
        It stays as it is.
    batches : Batches
    others : dict
        Other arguments, by their names: with batches none of them may be given.
    name : str
        What error messages call the batches.
    reset : bool
        Whether the columns are those of the first batch, or those of fit.
    """
    for argument, value in others.items():
        if value is not None:
            raise ValueError(
                f"{argument} is given, but {name} is in batches, which bring their labels, queries and "
                f"weights; leave out {argument}."
            )
    columns = copy(estimator)
    queries = _QueryNumbers()
    rows, labels, weights, qid = Spool(batches.folder), [], [], []
    for number, batch in enumerate(batches):
        of_batch = f" of batch {number}"
        own_name = name + of_batch
        check_columns(columns, batch.X, reset=reset and number == 0, name=own_name)
        if levels := category_columns(batch.X):
            raise ValueError(
                f"column {min(levels)} of {own_name} is a category column, of which batches cannot tell all "
                "levels; expected numbers: pass codes that all batches share, and name the column in "
                "categorical_features."
            )
        part, _ = _read_rows(batch.X, {}, estimator, own_name)
        n_rows = part.shape[0]
        if number == 0:
            rows.head = batch.X[:0] if _frame_columns(batch.X) is not None else np.empty((0, part.shape[1]))
        rows.append(part)
        labels.append(_check_labels(batch.y, n_rows, "y" + of_batch, own_name, estimator))
        weights.append(_check_weights(batch.sample_weight, n_rows, -1, "sample_weight" + of_batch))
        qid.append(queries.of(batch, n_rows, of_batch))
    if not labels:
        raise ValueError(
            f"{name} is in no batches; expected at least one: where the source is a generator, which can be "
            "gone through only once, pass the function that makes it."
        )
    return (
        rows,
        _joined(labels, "labels"),
        _joined(weights, "sample_weight"),
        _joined(qid, "qid"),
    )


def _joined(parts: list, what: str) -> np.ndarray | None:
    """What all batches have of labels, weights or queries; None where they have none."""
    lacking = [part is None for part in parts]
    if all(lacking):
        return None
    if any(lacking):
        raise ValueError(
            f"batch {lacking.index(True)} has no {what}, but batch {lacking.index(False)} has; expected "
            f"{what} in all batches, or in none."
        )
    kinds = {part.dtype.kind in "biufc" for part in parts}
    return np.concatenate(parts if len(kinds) == 1 else [part.astype(object) for part in parts])


def check_fit(
    estimator,
    X,
    y,
    sample_weight=None,
    *,
    qid=None,
    groups=None,
    group=None,
    ranker: bool = True,
    read_rows: bool = True,
    communicator: Communicator | None = None,
    feedback: Feedback = NOTHING,
) -> FitData:
    """Check everything that fit was given.

    Query ids come from one of four places: `qid`, its synonym `groups`, the sizes `group`, or an index level
    named "qid" of `y` or `X` (`qid_of`). More than one may be given as long as they agree.

    Only when every check has passed are `n_features_in_`, `feature_names_in_`, `_category_levels` (columns
    that are categorical by dtype, ``{column index: levels}``), `_qid_given` and, of a classifier, `classes_`
    of the estimator set. With `warm_start` a classifier keeps the classes it has.

    Parameters
    ----------
    estimator : estimator
        The estimator that is being fitted.
    X : array-like, sparse or data frame of shape (n_rows, n_features), or Batches
        The rows, see `check_rows`. Batches bring all the others, and are read to disk.
    y : array-like of shape (n_rows,)
        Finite labels.
    sample_weight : array-like of shape (n_rows,), default=None
        Finite weights >= 0, one per row.
    qid, groups : array-like of shape (n_rows,), default=None
        Query ids, see `query_offsets`.
    group : array-like of shape (n_queries,), default=None
        Query sizes, see `sizes_to_qid`.
    ranker : bool, default=True
        Whether missing query ids deserve a `MissingQueryWarning`.
    read_rows : bool, default=True
        False for a meta-estimator, which leaves the rows to the estimator inside.
    communicator : Communicator, default=None
        The ranks that train together; None is a rank alone. Each passes whole queries of its own, or no rows.
    feedback : Feedback, default=NOTHING
        What was given beside labels. With pairs, `y` may be None, and nothing is said of missing query ids.

    Returns
    -------
    data : FitData
        The rows untouched, labels and weights in internal order, and the offsets of the queries.

    Raises
    ------
    ValueError, TypeError
        For every input that cannot be meant; the message names the argument.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from ranktrees.validation import check_fit
    >>> data = check_fit(BaseEstimator(), [[1.0], [2.0], [3.0]], [0, 1, 2], qid=["b", "a", "b"])
    >>> data.labels
    array([0., 2., 1.])
    >>> data.order, data.offsets
    (array([0, 2, 1]), array([0, 2, 3]))
    """
    communicator = communicator or ALONE
    if not read_rows:
        _refuse_batches(X, "X")
    elif isinstance(X, Batches):
        others = {"y": y, "sample_weight": sample_weight, "qid": qid, "groups": groups, "group": group}
        X, y, sample_weight, qid = _read_batches(estimator, X, others, "X", reset=True)
    classes = getattr(estimator, "classes_", None) if getattr(estimator, "warm_start", False) else None
    if not communicator.alone and _n_rows_of(X) == 0:
        rows, levels = _no_rows(X)
        data = _without_rows(rows, classes, communicator, is_classifier(estimator))
    else:
        rows, levels = _read_rows(X, None, estimator, "X") if read_rows else (X, {})
        ids = {"qid": qid, "groups": groups}
        data = _join(
            estimator,
            X,
            rows,
            y,
            sample_weight,
            ids,
            {"group": group},
            classes=classes,
            communicator=communicator,
            feedback=feedback,
        )
    if read_rows:
        _set_columns(estimator, X, rows, levels)
    else:
        check_columns(estimator, X, reset=True)
    if data.classes is not None:
        estimator.classes_ = data.classes
    estimator._qid_given = data.qid_given
    if ranker and not data.qid_given and data.preferences is None:
        warnings.warn(
            f"{type(estimator).__name__} was fitted without query ids, so all {data.n_rows} rows were taken "
            f"for one query. {_PASS_IDS}; a qid of all zeros says that one query is meant."
            + _where_ids_may_be(X, sample_weight),
            MissingQueryWarning,
            stacklevel=3,
        )
    return data


_PASS_IDS = (
    "Pass qid= (one id per row), or a y whose index has a level named 'qid', which is the way through "
    "scikit-learn's searches and cross-validation unless sklearn.set_config(enable_metadata_routing=True)"
)


def _where_ids_may_be(X, sample_weight) -> str:
    """What a fit without query ids was given that looks as if it were them."""
    hint = ""
    if sample_weight is not None:
        hint += " What comes after y is sample_weight: ids are only taken by name, as in fit(X, y, qid=ids)."
    columns = [column for column, _ in _frame_columns(X) or []]
    if "qid" in columns:
        hint += " The column 'qid' of X is a feature like the others: pass qid=X['qid'], and X without it."
    return hint


def check_validation(
    estimator,
    X_val,
    y_val,
    sample_weight_val,
    qid_val,
    eval_set,
    eval_group,
    eval_qid,
    train: FitData,
    ranker: bool = True,
    feedback: Feedback = NOTHING,
) -> FitData | None:
    """Check the validation data of fit, in our spelling or in LightGBM's.

    Call it after `check_fit`, whose columns the validation rows must have.

    Parameters
    ----------
    estimator : estimator
        The estimator that is being fitted.
    X_val, y_val, sample_weight_val, qid_val : array-like or None
        Rows, labels, weights and query ids. An index level named "qid" of `y_val` or `X_val` gives the ids,
        too.
    eval_set : list of one (X, y) pair, or None
        The same rows and labels as LightGBM and XGBoost take them.
    eval_group : list of one array-like of shape (n_queries,), or None
        The query sizes that go with `eval_set`.
    eval_qid : list of one array-like of shape (n_rows,), or None
        The query ids that go with `eval_set`.
    train : FitData
        What `check_fit` returned.
    ranker : bool, default=True
        Whether the estimator is a ranker. Both kinds need query ids for validation when they had some for
        training.
    feedback : Feedback, default=NOTHING
        What was given beside labels. With pairs, `y_val` may be None.

    Returns
    -------
    data : FitData or None
        None when no validation data were given.

    Raises
    ------
    ValueError, TypeError
        For every input that cannot be meant; the message names the argument.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from ranktrees.validation import check_fit, check_validation
    >>> ranker = BaseEstimator()
    >>> train = check_fit(ranker, [[1.0], [2.0]], [0, 1], qid=[1, 1])
    >>> check_validation(ranker, [[3.0]], [1], None, [2], None, None, None, train).n_queries
    1
    """
    ours = {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val, "qid_val": qid_val}
    theirs = {"eval_set": eval_set, "eval_group": eval_group, "eval_qid": eval_qid}
    given = [name for name, value in ours.items() if value is not None] + feedback.given
    eval_given = [name for name, value in theirs.items() if value is not None]
    if not given and not eval_given:
        return None
    if given and eval_given:
        raise ValueError(
            f"{given[0]} and {eval_given[0]} are both given; expected one validation set: pass X_val, y_val "
            "and qid_val, or eval_set with eval_group or eval_qid."
        )
    names = ("X_val", "y_val", "sample_weight_val")
    qid_name, size_name, sizes = "qid_val", "group_val", None
    if eval_given:
        X_val, y_val = only_pair(eval_set)
        qid_val = _only_entry(eval_qid, "eval_qid", "query ids")
        sizes = _only_entry(eval_group, "eval_group", "query sizes")
        names = ("X of eval_set", "y of eval_set", "sample_weight_val")
        qid_name, size_name = "eval_qid", "eval_group"
    elif X_val is None or (y_val is None and feedback.pairs is None and not isinstance(X_val, Batches)):
        absent = "X_val" if X_val is None else "y_val"
        raise ValueError(
            f"{absent} is None but {given[0]} is given; expected both X_val and y_val: pass {absent}."
        )
    if isinstance(X_val, Batches):
        others = dict(zip((*names[1:], qid_name), (y_val, sample_weight_val, qid_val), strict=True))
        X_val, y_val, sample_weight_val, qid_val = _read_batches(
            estimator, X_val, others | {size_name: sizes}, names[0], reset=False
        )
    communicator = train.share.communicator
    if not communicator.alone and _n_rows_of(X_val) == 0:
        return _without_rows(_no_rows(X_val)[0], train.classes, communicator, train.classes is not None)
    rows = check_rows(estimator, X_val, reset=False, name=names[0])
    ids = {qid_name: qid_val}
    sizes = {size_name: sizes}
    data = _join(
        estimator,
        X_val,
        rows,
        y_val,
        sample_weight_val,
        ids,
        sizes,
        names,
        train.classes,
        communicator,
        feedback,
    )
    if train.qid_given and not data.qid_given:
        wanted = "eval_qid=[qid] or eval_group=[sizes]" if eval_given else "qid_val="
        raise ValueError(
            "The validation set has no query ids but fit was given qid; expected one id per validation row: "
            f"pass {wanted}, or labels whose index has a level named 'qid'."
        )
    return data


def check_score(
    estimator,
    X,
    y,
    sample_weight=None,
    *,
    qid=None,
    groups=None,
    ranker: bool = True,
    read_rows: bool = True,
    method: str = "score",
) -> FitData:
    """Check everything that score, or another method that compares with labels, was given.

    Parameters
    ----------
    estimator : estimator
        The fitted estimator.
    X, y, sample_weight, qid, groups
        As in `check_fit`.
    ranker : bool, default=True
        Whether the score is a mean over queries, so that query ids are needed if fit had some.
    read_rows : bool, default=True
        False for a meta-estimator, which leaves the rows to the estimator inside.
    method : str, default="score"
        What error messages call it.

    Returns
    -------
    data : FitData
        `data.X` holds the rows in the order they came, ready for prediction; labels, weights and offsets are
        in internal order, so scores must be taken as ``scores[data.order]`` unless `data.order` is None.

    Raises
    ------
    ValueError, TypeError
        As in `check_fit`, and when a ranker was fitted with query ids but is scored without.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from ranktrees.validation import check_fit, check_score
    >>> ranker = BaseEstimator()
    >>> train = check_fit(ranker, [[1.0], [2.0]], [0, 1], qid=[1, 1])
    >>> check_score(ranker, [[1.0], [2.0]], [0, 1])
    Traceback (most recent call last):
        ...
    ValueError: score needs qid=: BaseEstimator was fitted with query ids, ...
    """
    rows = check_rows(estimator, X, reset=False) if read_rows else X
    ids = {"qid": qid, "groups": groups}
    data = _join(estimator, X, rows, y, sample_weight, ids, {}, classes=getattr(estimator, "classes_", None))
    if ranker and not data.qid_given and getattr(estimator, "_qid_given", False):
        raise ValueError(
            f"{method} needs qid=: {type(estimator).__name__} was fitted with query ids, and without them "
            f"all {data.n_rows} rows would be taken for one query. {_PASS_IDS}."
        )
    return data


@contextmanager
def unchanged_on_failure(estimator) -> Iterator[None]:
    """Give an estimator back its attributes if what is done inside fails.

    A refit that is refused, interrupted or out of memory then leaves the model that was there before.

    Parameters
    ----------
    estimator : object
        Anything with a ``__dict__``. Attributes that are changed in place, rather than set anew, are not
        restored.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from ranktrees.validation import unchanged_on_failure
    >>> ranker = BaseEstimator()
    >>> ranker.n_features_in_ = 3
    >>> try:
    ...     with unchanged_on_failure(ranker):
    ...         ranker.n_features_in_ = 5
    ...         raise ValueError
    ... except ValueError:
    ...     print(ranker.n_features_in_)
    3
    """
    attributes = vars(estimator)
    before = dict(attributes)
    try:
        yield
    except BaseException:
        attributes.clear()
        attributes.update(before)
        raise


def is_fitted(estimator) -> bool:
    """Whether an estimator can predict as it is; what has no `fit` can.

    Parameters
    ----------
    estimator : object

    Returns
    -------
    bool

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ranktrees.validation import is_fitted
    >>> is_fitted(Ridge()), is_fitted(Ridge().fit([[0.0], [1.0]], [0, 1]))
    (False, True)
    """
    if not hasattr(estimator, "fit"):
        return True
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def _join(
    estimator,
    X,
    rows,
    y,
    sample_weight,
    ids: dict,
    sizes: dict,
    names=("X", "y", "sample_weight"),
    classes: np.ndarray | None = None,
    communicator: Communicator | None = None,
    feedback: Feedback = NOTHING,
) -> FitData:
    """Labels, weights and queries of the `rows` read from `X`; `classes` are those of a fitted classifier.

    With a communicator they are numbered among those of all ranks: where there are others, by their ids.
    """
    X_name, y_name, weight_name = names
    n_rows = _num_samples(rows)
    labels = None
    if y is not None or feedback.pairs is None:
        labels = _check_labels(y, n_rows, y_name, X_name, estimator)
    if labels is not None and is_classifier(estimator):
        if communicator is not None:
            classes = _classes_of_all(np.unique(labels), classes, communicator)
        classes, labels = _class_numbers(labels, classes, y_name)
    else:
        classes = None
    given = {name: values for name, values in sizes.items() if values is not None}
    ids = ids | {name: sizes_to_qid(values, n_rows, name) for name, values in given.items()}
    holders, by_id = {y_name: y, X_name: X}, communicator is not None and not communicator.alone
    queries = find_queries(n_rows, ids, holders, by_id=by_id)
    order, offsets = queries or (None, np.array([0, n_rows], np.int64))
    share = ALL
    if communicator is not None:
        (name, source), *_ = [*_sources(ids, holders).items(), ("qid", None)]
        called = by_id and source is not None and name not in sizes  # sizes do not tell what they are called
        names = ids_of_queries(source, order, offsets) if called else None
        share = Share.among(communicator, offsets, names, name)
    weights = _check_weights(sample_weight, n_rows, len(offsets) - 1, weight_name)
    if communicator is not None and any(communicator.allgather(weights is not None)) and weights is None:
        weights = np.ones(n_rows)
    if weights is not None and (communicator is None or communicator.alone) and not weights.any():
        raise ValueError(
            f"{weight_name}: every weight is zero; expected at least one weight above zero: leave it out."
        )
    if order is not None:
        labels = None if labels is None else labels[order]
        weights = None if weights is None else weights[order]
    data = FitData(
        X=rows,
        labels=None if labels is None else np.ascontiguousarray(labels),
        weights=None if weights is None else np.ascontiguousarray(weights),
        order=order,
        offsets=offsets,
        qid_given=queries is not None,
        classes=classes,
        share=share,
    )
    return feedback.joined(data)


def _n_rows_of(X) -> int | None:
    shape = getattr(X, "shape", None)
    return shape[0] if shape else None


def _no_rows(X):
    """(rows, category levels) of a rank that has none."""
    return np.empty((0, X.shape[1])), category_columns(X) if _frame_columns(X) is not None else {}


def _without_rows(rows, classes, communicator, of_classes: bool) -> FitData:
    """What a rank has that has no rows; it makes the same calls as those that do."""
    if of_classes:
        classes = _classes_of_all(np.empty(0), classes, communicator)
    offsets = np.zeros(1, np.int64)
    share = Share.among(communicator, offsets, [])
    return FitData(rows, np.empty(0), _no_weights(communicator), None, offsets, share.named, classes, share)


def _no_weights(communicator):
    """The weights of no rows, where other ranks pass some; None where none does."""
    return np.empty(0) if any(communicator.allgather(False)) else None


def _classes_of_all(own: np.ndarray, classes: np.ndarray | None, communicator) -> np.ndarray | None:
    """The classes that the labels of all ranks are of, if there are other ranks and they are not known."""
    if communicator.alone or classes is not None:
        return classes
    return np.unique(np.concatenate([theirs for theirs in communicator.allgather(own) if len(theirs)]))


def only_pair(eval_set):
    """The (X, y) pair of `eval_set`, in a list or on its own."""
    pairs = eval_set if isinstance(eval_set, list) else [eval_set]
    if eval_set is not None and len(pairs) > 1:
        raise ValueError(
            f"eval_set has {len(pairs)} entries; expected one (X, y) pair: pass the one that early stopping "
            "should watch."
        )
    if eval_set is None or len(pairs) == 0 or not isinstance(pairs[0], (tuple, list)) or len(pairs[0]) != 2:
        seen = _seen(eval_set if eval_set is None or len(pairs) == 0 else pairs[0])
        raise ValueError(f"eval_set holds {seen}; expected one (X, y) pair: pass eval_set=[(X, y)].")
    return pairs[0]


def _only_entry(entries, name: str, what: str):
    if entries is None:
        return None
    if not isinstance(entries, (list, tuple)) or len(entries) != 1 or not hasattr(entries[0], "__len__"):
        raise ValueError(
            f"{name} is {_seen(entries)}; expected a list of one array of {what}, as eval_set is a list of "
            f"one pair: pass {name}=[...]."
        )
    return entries[0]


def _seen(value) -> str:
    """How a message shows a value: short."""
    if isinstance(value, (str, bytes, numbers.Number, np.generic, np.dtype, type(None))):
        return repr(value.item() if isinstance(value, np.generic) else value)[:60]
    shape = getattr(value, "shape", None)
    kind = type(value).__name__
    if isinstance(shape, tuple):
        return f"<{kind} of shape {shape}>"
    return f"<{kind} of length {len(value)}>" if hasattr(value, "__len__") else f"<{kind}>"
