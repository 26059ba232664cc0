"""Turn query ids into a row order and offsets. No other module sees a qid."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import sklearn
from sklearn.utils.metadata_routing import get_routing_for_object

from ranktrees.rows.frames import missing_mask, warn_of_order
from ranktrees.rows.labels import column_array
from ranktrees.rows.values import array_of, as_seen, is_missing

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ranktrees.support.annotations import IdsLike

# The rows in the order of their queries (None: as they are), and where each query begins.
Queries: TypeAlias = tuple[np.ndarray | None, np.ndarray]


def query_offsets(
    qid: IdsLike, n_rows: int, name: str = "qid", *, by_id: bool = False
) -> tuple[np.ndarray | None, np.ndarray]:
    """Turn query ids into a row order and offsets.

    Parameters
    ----------
    qid : array-like of shape (n_rows,)
        One id per row, of any hashable kind, in any order. Ids are compared exactly: 64-bit integers are
        never rounded, and floats are taken as they are. NumPy arrays, pandas, polars and Arrow columns and
        sequences are accepted. The ids of a pandas MultiIndex are tuples.
    n_rows : int
        The number of rows to which the ids belong.
    name : str, default="qid"
        The name of the ids in error messages.
    by_id : bool, default=False
        Whether to put queries in the order of their ids, so that the result does not depend on the order in
        which they were passed. Ids that cannot be compared remain in order of first appearance.

    Returns
    -------
    order : ndarray of shape (n_rows,), intp, or None
        The rows sorted by query, stably, with queries in order of first appearance or of their ids. None if
        they are in this order already.
    offsets : ndarray of shape (n_queries + 1,), int64
        Query `q` holds the rows `order[offsets[q]:offsets[q + 1]]`.

    Raises
    ------
    ValueError
        If an id is missing (NaN, None, NaT, NA); if the ids are not one-dimensional, not hashable or empty;
        if there are not `n_rows` of them; or if they are floats so large that different integers may have
        been rounded to the same float: 2**24 in float32, 2**53 in float64.

    Examples
    --------
    >>> from ranktrees.rows import query_offsets
    >>> query_offsets(["b", "b", "a"], 3)
    (None, array([0, 2, 3]))
    >>> query_offsets([7, 3, 7, 3, 3], 5)
    (array([0, 2, 1, 3, 4]), array([0, 2, 5]))
    >>> query_offsets([7, 3, 7, 3, 3], 5, by_id=True)
    (array([1, 3, 4, 0, 2]), array([0, 3, 5]))
    """
    heads, lengths = runs_in(ids_in(qid, n_rows, name))
    codes = _codes_of(heads, name, by_id)
    n_queries = int(codes.max(initial=-1)) + 1
    sizes = np.zeros(n_queries, np.int64)
    np.add.at(sizes, codes, lengths)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    if (codes[1:] >= codes[:-1]).all():
        return None, offsets
    return np.argsort(np.repeat(codes, lengths), kind="stable"), offsets


def ids_in(qid: IdsLike, n_rows: int, name: str, of: str = "query") -> np.ndarray:
    """Return `qid` as a vector of `n_rows` ids, none missing; as objects unless NumPy holds them exactly.

    Messages say what the ids are ``of``.
    """
    expected = f"expected one {of} id per row, {n_rows} in all"
    is_column = hasattr(qid, "__array__") or (isinstance(qid, Sequence) and not isinstance(qid, (str, bytes)))
    if not is_column:
        raise ValueError(f"{name} is {as_seen(qid)}; {expected}, as an array, a column or a list.")
    if isinstance(qid, Sequence) and not isinstance(qid, range):
        ids = np.empty(len(qid), object)  # np.array([1, "1"]) and np.array([2**63, -1]) would merge ids
        for i, value in enumerate(qid):
            ids[i] = value
    else:
        missing = missing_mask(qid)
        if missing is not None and missing.ndim == 1 and missing.any():
            raise _missing_id(name, of, int(missing.argmax()))
        ids = array_of(qid)  # tuples for a MultiIndex
    if ids.ndim != 1:
        raise ValueError(
            f"{name} has shape {ids.shape}; {expected}, in one dimension: pass the one column that holds the "
            "ids."
        )
    if len(ids) == 0:
        raise ValueError(f"{name} is empty; {expected}.")
    if len(ids) != n_rows:
        hint = _hint_sizes(ids, n_rows, name) if of == "query" else ""
        raise ValueError(f"{name} has length {len(ids)}; {expected}.{hint}")
    if ids.dtype.kind in "fcmM":
        missing = np.isnat(ids) if ids.dtype.kind in "mM" else np.isnan(ids)
        if missing.any():
            raise _missing_id(name, of, int(missing.argmax()))
    if ids.dtype.kind == "f" and (rounded := np.abs(ids) >= _rounded_from(ids.dtype)).any():
        raise _rounded_id(name, ids, int(rounded.argmax()))
    return ids if ids.dtype.kind in "biufcmMSU" else ids.astype(object)


def document_ids(ids: IdsLike, n_rows: int, name: str = "ids") -> np.ndarray:
    """Return the id of the document of each row, as `ids_in` does.

    Parameters
    ----------
    ids : array-like of shape (n_rows,)
        One id per row, of any kind. Documents of different rows may have the same id.
    n_rows : int
    name : str, default="ids"
        The name of the ids in error messages.

    Returns
    -------
    ndarray of shape (n_rows,)

    Raises
    ------
    ValueError
        If an id is missing (NaN, None, NaT, NA), if there are not `n_rows` ids in one dimension, or if they
        are floats so large that different integers may have been rounded to the same float.

    Examples
    --------
    >>> from ranktrees.rows import document_ids
    >>> document_ids(["GX-1", "GX-2"], 2)
    array(['GX-1', 'GX-2'], dtype=object)
    """
    found = ids_in(ids, n_rows, name, "document")
    if found.dtype == object:
        for row, value in enumerate(found):
            if is_missing(value):
                raise _missing_id(name, "document", row)
    return found


def _missing_id(name: str, of: str, row: int) -> ValueError:
    return ValueError(
        f"{name} is missing (NaN, None, NaT or NA) in row {row}; expected an id in every row: drop the rows "
        f"without a {of} or give them one."
    )


def _hint_sizes(ids: np.ndarray, n_rows: int, name: str) -> str:
    try:
        is_sizes = sum(int(size) for size in ids[: n_rows + 1]) == n_rows and len(ids) < n_rows
    except (TypeError, ValueError, OverflowError):
        is_sizes = False
    if not is_sizes:
        return ""
    return (
        f" The values of {name} sum to {n_rows}, as sizes of queries do: pass the id of each row, "
        "np.repeat(np.arange(len(sizes)), sizes)."
    )


def runs_in(ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the id and the length of every block of equal neighbours (of every row, for objects)."""
    if ids.dtype == object:
        return ids, np.ones(len(ids), np.int64)
    starts = np.concatenate([[0], np.flatnonzero(ids[1:] != ids[:-1]) + 1])
    return ids[starts], np.diff(starts, append=len(ids))


def _codes_of(ids: np.ndarray, name: str, by_id: bool) -> np.ndarray:
    """Number the distinct ids 0, 1, ... in order of first appearance, or in the order of the ids."""
    if ids.dtype.kind not in "SUO":  # strings are hashed faster than sorted
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
            f"{name} holds {as_seen(ids[row])} in row {row}; expected one hashable id per row, such as a "
            "number or a string, in one dimension: pass the one column that holds the ids."
        ) from error
    for value, code in code_of.items():
        if is_missing(value):
            raise _missing_id(name, "query", int(np.argmax(codes == code)))
        if isinstance(value, (float, np.floating)) and abs(float(value)) >= _rounded_from(type(value)):
            raise _rounded_id(name, ids, int(np.argmax(codes == code)))
    if by_id:
        try:
            place_of = {value: place for place, value in enumerate(sorted(code_of))}  # type: ignore[type-var]
        except TypeError:
            return codes
        return np.array([place_of[value] for value in code_of], np.intp)[codes]
    return codes


def _rounded_from(dtype: Any) -> float:
    """The least number from which on floats of this type cannot tell all integers apart."""
    return 2.0 ** (int(np.finfo(dtype).nmant) + 1)


def _rounded_id(name: str, ids: np.ndarray, row: int) -> ValueError:
    kind = np.dtype(type(ids[row]))
    return ValueError(
        f"{name} holds the {kind} {ids[row]} in row {row}; from 2**{np.finfo(kind).nmant + 1} on, that type "
        "cannot tell all integers apart, and several ids may have become one. Pass the ids as integers "
        "or strings, as they were before they became floats."
    )


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def sizes_to_qid(group: ArrayLike, n_rows: int, name: str = "group") -> np.ndarray:
    """Turn query sizes, as LightGBM takes them, into one id per row.

    Parameters
    ----------
    group : array-like of shape (n_queries,)
        The number of rows of every query, for rows that are grouped by query: positive whole numbers whose
        sum is `n_rows`.
    n_rows : int
        The number of rows.
    name : str, default="group"
        The name of the sizes in error messages.

    Returns
    -------
    qid : ndarray of shape (n_rows,), int64
        0 for the rows of the first query, 1 for those of the second, ...

    Raises
    ------
    ValueError
        If a size is not a positive whole number, or if their sum is not `n_rows`.

    Examples
    --------
    >>> from ranktrees.rows import sizes_to_qid
    >>> sizes_to_qid([2, 3], 5)
    array([0, 0, 1, 1, 1])
    """
    expected = (
        f"expected the sizes of the queries, positive whole numbers that sum to the {n_rows} rows: pass the "
        "rows of each query one after the other and their numbers here, or one id per row as qid=."
    )
    sizes = column_array(group, name)
    if sizes.ndim != 1 or len(sizes) == 0:
        raise ValueError(f"{name} has shape {sizes.shape}; {expected}")
    if sizes.dtype.kind == "O" and all(isinstance(size, numbers.Integral) for size in sizes):
        # a size that int64 cannot hold is clipped to one that is refused as well
        sizes = np.array([min(max(int(size), -1), n_rows + 1) for size in sizes])
    if sizes.dtype.kind not in "iuf":
        raise ValueError(f"{name} holds {as_seen(sizes[0])}; {expected}")
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


def qid_of(y_or_X: Any) -> Any:
    """Return the query ids in the index of a pandas object.

    If the index of a `y` Series or an `X` frame has a level named "qid", the object carries its query ids
    through everything that slices rows: scikit-learn's cross-validation, pipelines, permutation importance.

    Parameters
    ----------
    y_or_X : object
        Any object, but only a pandas Series or DataFrame can carry ids.

    Returns
    -------
    qid : pandas Index of length n_rows, or None
        The values of the index level named "qid"; None if there is no such level.

    Raises
    ------
    ValueError
        If there are several such levels.

    Examples
    --------
    >>> import pandas as pd
    >>> from ranktrees.rows import qid_of
    >>> y = pd.Series([2, 0, 1], index=pd.Index(["a", "a", "b"], name="qid"))
    >>> list(qid_of(y[1:]))
    ['a', 'b']
    >>> qid_of([2, 0, 1]) is None
    True
    """
    index: Any = getattr(y_or_X, "index", None)
    levels = list(getattr(index, "names", ())) if hasattr(y_or_X, "iloc") else []
    if levels.count("qid") > 1:
        raise ValueError(
            f"the index has {levels.count('qid')} levels named 'qid', of {levels}; expected one: rename the "
            "others, or pass the ids as qid=."
        )
    return index.get_level_values("qid") if "qid" in levels else None


def find_queries(
    n_rows: int, ids: dict[str, Any], holders: dict[str, Any], *, by_id: bool = False
) -> tuple[np.ndarray | None, np.ndarray] | None:
    """Return order and offsets from every source of query ids that was given. The sources must agree.

    Parameters
    ----------
    n_rows : int
        The number of rows.
    ids : dict of str to array-like or None
        Query ids by the names that messages use. None stands for ids that were not given.
    holders : dict of str to object
        Labels and rows by name, whose index may have a level named "qid" (`qid_of`).
    by_id : bool, default=False
        As in `query_offsets`. The ids are those of the first source.

    Returns
    -------
    order, offsets : as of `query_offsets`, or None if there is no source

    Raises
    ------
    ValueError
        If two sources disagree about which rows belong together, or if a source is not a list of ids.

    Examples
    --------
    >>> from ranktrees.rows import find_queries
    >>> find_queries(3, {"qid": [5, 5, 7], "groups": ["a", "a", "b"]}, {})
    (None, array([0, 2, 3]))
    >>> find_queries(3, {"qid": None}, {"y": [0, 1, 2]}) is None
    True
    """
    warn_of_order(holders | ids)
    sources = sources_of(ids, holders)
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


def sources_of(ids: dict[str, Any], holders: dict[str, Any]) -> dict[str, Any]:
    """Return the query ids that were given, by the names that messages use."""
    sources = {name: values for name, values in ids.items() if values is not None}
    for name, holder in holders.items():
        if (values := qid_of(holder)) is not None:
            sources[f"the index level 'qid' of {name}"] = values
    return sources


def ids_of_queries(qid: IdsLike, order: np.ndarray | None, offsets: np.ndarray) -> list[Any]:
    """Return the id of each query, as it was given.

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
    >>> from ranktrees.rows import ids_of_queries, query_offsets
    >>> ids_of_queries(["b", "a", "b"], *query_offsets(["b", "a", "b"], 3))
    ['b', 'a']
    """
    ids = qid if isinstance(qid, Sequence) else np.asarray(qid)
    if isinstance(ids, np.ndarray) and ids.dtype == np.float16:  # pandas has no index of this type
        ids = ids.astype(np.float32)
    first_rows = offsets[:-1] if order is None else order[offsets[:-1]]
    return [ids[row] for row in first_rows]


def query_of_rows(order: np.ndarray | None, offsets: np.ndarray) -> np.ndarray:
    """Return the number of the query of every row.

    Parameters
    ----------
    order, offsets : as of `query_offsets`

    Returns
    -------
    ndarray of shape (n_rows,), int64
        0 for the rows of the query that appears first, and so on.

    Examples
    --------
    >>> from ranktrees.rows import query_of_rows, query_offsets
    >>> query_of_rows(*query_offsets(["b", "a", "b"], 3))
    array([0, 1, 0])
    """
    grouped = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    if order is None:
        return grouped
    query_of_row = np.empty_like(grouped)
    query_of_row[order] = grouped
    return query_of_row


def find_query_of_rows(
    n_rows: int, ids: dict[str, Any], holders: dict[str, Any], group: ArrayLike | None = None
) -> np.ndarray | None:
    """Return the number of the query of each row; None if there are neither ids nor sizes, ``group``."""
    if group is not None:
        ids = ids | {"group": sizes_to_qid(group, n_rows)}
    queries = find_queries(n_rows, ids, holders)
    return None if queries is None else query_of_rows(*queries)


def hand_queries(
    estimator: Any, method: str, y: ArrayLike, queries: np.ndarray | None
) -> tuple[Any, dict[str, Any]]:
    """Return labels and query ids in the form in which a method of any estimator takes them.

    If scikit-learn's metadata routing is enabled, the ids are passed to those that request them, by the names
    requested. Otherwise, they are passed as ``qid=`` to a method with this parameter. Other estimators, such
    as a `Pipeline`, find them in the index of `y`, in a level named "qid", if pandas is installed.

    Parameters
    ----------
    estimator : estimator
        The estimator that takes them.
    method : str
        The name of one of its methods, such as "fit".
    y : array-like of shape (n_rows,)
        Labels.
    queries : ndarray of shape (n_rows,) or None
        The query of each row. None if there are no queries.

    Returns
    -------
    y : array-like of shape (n_rows,)
        The labels to pass.
    ids : dict
        The arguments to pass by name.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from ranktrees import LambdaMARTRanker
    >>> from ranktrees.rows import hand_queries
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
    return carry_queries(y, queries), {}


def wants_queries_together(estimator: Any) -> bool:
    """Whether an estimator is a ranker like those of other libraries, by the parameters of its ``fit``.

    Such a ranker has ``group`` or ``group_id``, which belong to rows that are sorted by query, and so does a
    ``qid`` besides. Estimators of this library, which also have ``groups``, take rows in any order.

    Parameters
    ----------
    estimator : estimator

    Returns
    -------
    bool

    Examples
    --------
    >>> from lightgbm import LGBMRanker, LGBMRegressor
    >>> from ranktrees import RandomForestRanker
    >>> from ranktrees.rows import wants_queries_together
    >>> [wants_queries_together(one) for one in (LGBMRanker(), LGBMRegressor(), RandomForestRanker())]
    [True, False, False]
    """
    names = signature(estimator.fit).parameters.keys() if hasattr(estimator, "fit") else set()
    return bool(names & {"group", "group_id"}) and "groups" not in names


def carry_queries(y: Any, queries: np.ndarray | None) -> Any:
    """Return labels whose index has a level named "qid" with the query of each row, if pandas is installed.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
    queries : ndarray of shape (n_rows,)

    Returns
    -------
    y : pandas Series, or as it was

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.rows import carry_queries
    >>> carry_queries([2, 0, 1], np.array([0, 0, 1])).index.to_list()
    [0, 0, 1]
    """
    try:
        import pandas as pd
    except ImportError:
        return y  # an estimator that needs ids and finds none says so
    return pd.Series(np.asarray(y), index=pd.Index(queries, name="qid"))


def _same_queries(a: tuple[np.ndarray | None, np.ndarray], b: tuple[np.ndarray | None, np.ndarray]) -> bool:
    (order_a, offsets_a), (order_b, offsets_b) = a, b
    if not np.array_equal(offsets_a, offsets_b):
        return False
    return order_a is order_b if order_a is None or order_b is None else np.array_equal(order_a, order_b)
