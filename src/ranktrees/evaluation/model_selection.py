"""Cross-validation that keeps queries whole, and scorers that know which rows belong to the same query.

The query ids reach splitters and scorers in one of two ways. With scikit-learn's metadata routing enabled,
pass them as ``groups=`` (or ``qid=``) to `GridSearchCV.fit`, `cross_validate` and the like. Without it, put
them in the index of `y` (or of a data frame `X`), in a level named "qid".
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator
from datetime import timedelta
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import sklearn
from sklearn.base import is_classifier
from sklearn.metrics import make_scorer
from sklearn.model_selection import BaseCrossValidator, GroupShuffleSplit
from sklearn.utils import _safe_indexing, check_random_state, indexable
from sklearn.utils._param_validation import (
    Interval,
    RealNotInt,
    validate_parameter_constraints,
)
from sklearn.utils.validation import _num_samples

from ranktrees.evaluation.predictions import score_method
from ranktrees.measures import as_measure
from ranktrees.rows import class_numbers, find_queries, find_query_of_rows, qid_of, query_of_rows
from ranktrees.rows.times import find_times, times_in
from ranktrees.rows.values import as_seen
from ranktrees.support.scikit_learn import validate_params
from ranktrees.support.warning import FitWarning, warn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.measures.base import Measure
    from ranktrees.measures.named import AnyMeasure
from ranktrees.support.annotations import IdsLike, RowsLike

__all__ = [
    "QueryKFold",
    "QueryShuffleSplit",
    "QueryTimeSeriesSplit",
    "query_scorer",
    "train_test_split_by_query",
]

ROUTED = {"groups": True, "qid": True}
SIZE = [Interval(RealNotInt, 0, 1, closed="neither"), Interval(Integral, 1, None, closed="left"), None]
DURATION = [timedelta, np.timedelta64]  # comes first: a timedelta64 is an integer, but no number of rows
SPLIT_AT_RANDOM = {"test_size": SIZE, "train_size": SIZE, "random_state": ["random_state"]}


class QueryKFold(BaseCrossValidator):
    """K-fold cross-validator that keeps queries whole, with about the same number of rows in each fold.

    Every query is in exactly one test fold. Each query goes to the fold that has the fewest rows so far. The
    largest queries come first or, with `shuffle`, the queries come in random order.

    Parameters
    ----------
    n_splits : int, default=5
        The number of folds, at least 2 and at most the number of queries.
    shuffle : bool, default=False
        Whether queries are assigned to folds in random order.
    random_state : int, RandomState instance or None, default=None
        The source of randomness. It must be None without `shuffle`.

    Raises
    ------
    ValueError
        If there is a `random_state` without `shuffle`.

    See Also
    --------
    sklearn.model_selection.GroupKFold : The same idea; it does not see an index level named "qid".

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.evaluation import QueryKFold
    >>> X, qid = np.zeros((6, 1)), ["a", "b", "b", "a", "c", "c"]
    >>> for train, test in QueryKFold(n_splits=3).split(X, groups=qid):
    ...     print(train, test)
    [1 2 4 5] [0 3]
    [0 3 4 5] [1 2]
    [0 1 2 3] [4 5]
    """

    __metadata_request__split = ROUTED
    _parameter_constraints = {  # noqa: RUF012
        "n_splits": [Interval(Integral, 2, None, closed="left")],
        "shuffle": ["boolean"],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_splits: int = 5,
        *,
        shuffle: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        if random_state is not None and not shuffle:  # not in `split`: stacking sets one on any splitter
            raise ValueError(
                f"random_state={random_state!r}, but shuffle=False leaves nothing to chance; expected both "
                "or neither: pass shuffle=True, or leave random_state out."
            )
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def split(
        self, X: RowsLike, y: object = None, groups: IdsLike | None = None, *, qid: IdsLike | None = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the training rows and the test rows of every fold.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows. Only their number and their index are used.
        y : array-like of shape (n_rows,), default=None
            The labels. Only their index is used.
        groups, qid : array-like of shape (n_rows,), default=None
            Query ids of any hashable kind, in any order, under either name. If both are None, they are taken
            from the index level named "qid" of `y` or `X`.

        Yields
        ------
        train, test : ndarray of int
            The row numbers of the training rows and of the test rows, in rising order.

        Raises
        ------
        ValueError
            If there are no query ids, if there are fewer queries than folds, or if a parameter is not valid.
        """
        _validate(self)
        query_of_row, sizes = _queries(self, X, y, groups, qid)
        if self.n_splits > len(sizes):
            raise ValueError(
                f"n_splits={self.n_splits} is larger than the number of queries, {len(sizes)}; expected at "
                "least one query in each fold: pass fewer splits."
            )
        if self.shuffle:
            queries = check_random_state(self.random_state).permutation(len(sizes))
        else:
            queries = np.argsort(-sizes, kind="stable")
        fold_of_query = np.empty(len(sizes), np.intp)
        folds = [(0, fold) for fold in range(self.n_splits)]
        for query in queries:
            n_rows, fold = folds[0]
            fold_of_query[query] = fold
            heapq.heapreplace(folds, (n_rows + int(sizes[query]), fold))
        fold_of_row = fold_of_query[query_of_row]
        for fold in range(self.n_splits):
            yield np.flatnonzero(fold_of_row != fold), np.flatnonzero(fold_of_row == fold)

    def get_n_splits(
        self, X: object = None, y: object = None, groups: object = None, *, qid: object = None
    ) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups, qid : object, default=None
            Ignored.

        Returns
        -------
        int
            `n_splits`.
        """
        return self.n_splits


class QueryShuffleSplit(BaseCrossValidator):
    """Cross-validator that splits the queries at random into training and test queries.

    Parameters
    ----------
    n_splits : int, default=10
        The number of splits.
    test_size : float in (0, 1), int or None, default=None
        The share or the number of *queries* to test on. If None, all queries that `train_size` leaves, or 0.2
        if `train_size` is None as well.
    train_size : float in (0, 1), int or None, default=None
        The share or the number of queries to train on. If None, all queries that `test_size` leaves.
    random_state : int, RandomState instance or None, default=None
        The source of randomness.

    See Also
    --------
    sklearn.model_selection.GroupShuffleSplit : The same idea; it does not see an index level named "qid".

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.evaluation import QueryShuffleSplit
    >>> X, qid = np.zeros((6, 1)), ["a", "b", "b", "a", "c", "c"]
    >>> splitter = QueryShuffleSplit(n_splits=2, test_size=1, random_state=0)
    >>> for train, test in splitter.split(X, groups=qid):
    ...     print(train, test)
    [0 1 2 3] [4 5]
    [0 1 2 3] [4 5]
    """

    __metadata_request__split = ROUTED
    _parameter_constraints = {"n_splits": [Interval(Integral, 1, None, closed="left")]} | SPLIT_AT_RANDOM

    def __init__(
        self,
        n_splits: int = 10,
        *,
        test_size: float | None = None,
        train_size: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_splits = n_splits
        self.test_size = test_size
        self.train_size = train_size
        self.random_state = random_state

    def split(
        self, X: RowsLike, y: object = None, groups: IdsLike | None = None, *, qid: IdsLike | None = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the training rows and the test rows of every split.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows. Only their number and their index are used.
        y : array-like of shape (n_rows,), default=None
            The labels. Only their index is used.
        groups, qid : array-like of shape (n_rows,), default=None
            Query ids of any hashable kind, in any order, under either name. If both are None, they are taken
            from the index level named "qid" of `y` or `X`.

        Yields
        ------
        train, test : ndarray of int
            The row numbers of the training rows and of the test rows, in rising order.

        Raises
        ------
        ValueError
            If there are no query ids, if there is only one query, if a parameter is not valid, or if the
            sizes leave nothing to train or to test on.
        """
        _validate(self)
        query_of_row, sizes = _queries(self, X, y, groups, qid)
        if len(sizes) < 2:
            raise ValueError(
                f"{type(self).__name__} saw 1 query; expected at least one to train and one to test on: pass "
                "the ids of more queries."
            )
        test_size, train_size = (  # GroupShuffleSplit does not take all kinds of whole numbers
            int(size) if isinstance(size, np.integer) else size for size in (self.test_size, self.train_size)
        )
        splitter = GroupShuffleSplit(
            self.n_splits,
            test_size=test_size,
            train_size=train_size,
            random_state=self.random_state,
        )
        try:
            for train, test in splitter.split(query_of_row, groups=query_of_row):
                yield np.sort(train), np.sort(test)
        except ValueError as error:
            raise ValueError(
                f"test_size={self.test_size!r} and train_size={self.train_size!r} of {len(sizes)} queries; "
                "expected at least one to train and one to test on, and no more in total than there are: "
                "pass other sizes."
            ) from error

    def get_n_splits(
        self, X: object = None, y: object = None, groups: object = None, *, qid: object = None
    ) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups, qid : object, default=None
            Ignored.

        Returns
        -------
        int
            `n_splits`.
        """
        return self.n_splits


class QueryTimeSeriesSplit(BaseCrossValidator):
    """Cross-validator that trains on earlier queries and tests on later ones, keeping queries whole.

    Queries are put in the order of the first time of their rows, and the last of them are parted into
    `n_splits` test parts of about the same number of queries. Each is tested by a model of earlier queries:
    every row of theirs is earlier than any row of the test part, by at least `gap`. Queries that go on from
    before a test part into it are in neither. Queries that begin at the same time are in the same part.

    Parameters
    ----------
    n_splits : int, default=5
        The number of splits, at least 1.
    test_size : float in (0, 1), int, timedelta or None, default=None
        The share or the number of queries in each test part, or how long it is if times are dates: the last
        part has the queries that begin less than this before the last one does. If None,
        ``n_queries // (n_splits + 1)``.
    max_train_size : int or None, default=None
        The most queries to train on: the last ones before the test part. If None, all earlier ones.
    gap : float or timedelta, default=0
        How much time lies between the training rows and the test rows at least, such as the time that it
        takes until labels are known: a duration if times are dates, and otherwise a number.
    time : str, default="time"
        The name of an index level of `y` or `X`, or else of a column of `X`, that has the time of each row,
        unless times are passed to `split`.

    See Also
    --------
    sklearn.model_selection.TimeSeriesSplit : The same idea for rows that are in order, with a gap in rows.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.evaluation import QueryTimeSeriesSplit
    >>> X, qid = np.zeros((6, 1)), ["a", "b", "b", "a", "c", "d"]
    >>> days = ["2024-03-01", "2024-03-02", "2024-03-02", "2024-03-01", "2024-03-08", "2024-03-09"]
    >>> splitter = QueryTimeSeriesSplit(n_splits=2, test_size=1)
    >>> for train, test in splitter.split(X, groups=qid, time=days):
    ...     print(train, test)
    [0 1 2 3] [4]
    [0 1 2 3 4] [5]
    >>> from datetime import timedelta
    >>> splitter = QueryTimeSeriesSplit(n_splits=2, test_size=1, gap=timedelta(days=2))
    >>> for train, test in splitter.split(X, groups=qid, time=days):
    ...     print(train, test)
    [0 1 2 3] [4]
    [0 1 2 3] [5]
    """

    __metadata_request__split = ROUTED | {"time": True}
    _parameter_constraints = {  # noqa: RUF012
        "n_splits": [Interval(Integral, 1, None, closed="left")],
        "test_size": [*DURATION, *SIZE],
        "max_train_size": [Interval(Integral, 1, None, closed="left"), None],
        "gap": [*DURATION, Interval(Real, 0, None, closed="left")],
        "time": [str],
    }

    def __init__(
        self,
        n_splits: int = 5,
        *,
        test_size: float | timedelta | np.timedelta64 | None = None,
        max_train_size: int | None = None,
        gap: float | timedelta | np.timedelta64 = 0,
        time: str = "time",
    ) -> None:
        self.n_splits = n_splits
        self.test_size = test_size
        self.max_train_size = max_train_size
        self.gap = gap
        self.time = time

    def split(
        self,
        X: RowsLike,
        y: object = None,
        groups: IdsLike | None = None,
        *,
        qid: IdsLike | None = None,
        time: ArrayLike | None = None,
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the training rows and the test rows of every split, the earliest first.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            The rows. Only their number, their index and their column of times are used.
        y : array-like of shape (n_rows,), default=None
            The labels. Only their index is used.
        groups, qid : array-like of shape (n_rows,), default=None
            Query ids of any hashable kind, in any order, under either name. If both are None, they are taken
            from the index level named "qid" of `y` or `X`.
        time : array-like of shape (n_rows,), default=None
            The time of each row: numbers, dates, or strings as ISO 8601 writes them. If None, they are taken
            from the index level or column that the parameter `time` names.

        Yields
        ------
        train, test : ndarray of int
            The row numbers of the training rows and of the test rows, in rising order.

        Raises
        ------
        ValueError
            If there are no query ids or no times, if there are too few queries or times to split, if nothing
            is left to train on, or if a parameter is not valid.
        """
        _validate(self)
        query_of_row, sizes = _queries(self, X, y, groups, qid)
        n_queries, n_rows = len(sizes), len(query_of_row)
        name = "time" if time is not None else f"the level or column {self.time!r}"
        time = find_times(self.time, y, X) if time is None else time
        if time is None:
            raise ValueError(
                f"{type(self).__name__} found no times; expected one per row: pass time=, which needs "
                "scikit-learn's metadata routing, or a pandas y (or X) whose index has a level named "
                f"{self.time!r}, or an X with such a column."
            )
        times = times_in(time, n_rows, name)
        gap = self._gap_between(times)
        by_query = np.argsort(query_of_row, kind="stable")
        begins = np.append(0, np.cumsum(sizes)[:-1])
        first, last = (bound.reduceat(times[by_query], begins) for bound in (np.minimum, np.maximum))
        in_order = np.argsort(first, kind="stable")
        starts = first[in_order][self._where_parts_begin(first[in_order])]
        if (starts[1:] == starts[:-1]).any() or starts[0] == first[in_order[0]]:
            raise ValueError(
                f"n_splits={self.n_splits} and test_size={self.test_size!r} of {n_queries} queries; expected "
                "test parts that begin at different times, after the first query, but queries that begin at "
                "the same time are in the same part: pass fewer splits, or another size."
            )
        for part, start in enumerate(starts):
            # the difference of unsigned numbers is right where it is asked for
            trained = in_order[((last < start) & (start - last >= gap))[in_order]][
                -(self.max_train_size or 0) :
            ]
            if not len(trained):
                raise ValueError(
                    f"no query ends before {start}, where test part {part} begins, less gap={self.gap!r}; "
                    "expected one at least, all of whose rows are earlier: pass a larger test_size, fewer "
                    "splits or a smaller gap, or ids that differ for what is asked again."
                )
            if sizes[(first < start) & (last >= start)].sum() > sizes[last < start].sum():
                warn(
                    f"most of what begins before {start}, where test part {part} begins, goes on after it, "
                    "and is neither trained on nor tested: query ids seem to stand for what is asked "
                    "again and again. Pass ids of sessions, which differ whenever it is asked.",
                    FitWarning,
                )
            tested = first >= start
            if part + 1 < len(starts):
                tested &= first < starts[part + 1]
            is_trained = np.zeros(n_queries, bool)
            is_trained[trained] = True
            yield np.flatnonzero(is_trained[query_of_row]), np.flatnonzero(tested[query_of_row])

    def _gap_between(self, times: np.ndarray) -> Any:
        is_duration = isinstance(self.gap, (timedelta, np.timedelta64))
        are_dates = times.dtype.kind == "M"
        if is_duration != are_dates and (is_duration or self.gap != 0):
            raise ValueError(
                f"gap={self.gap!r}, but times are {'dates' if are_dates else 'numbers'}; expected "
                + ("a duration: pass datetime.timedelta(days=7), say." if are_dates else "a number as well.")
            )
        gap: Any = np.timedelta64(self.gap if is_duration else timedelta(0)) if are_dates else self.gap
        if gap < gap * 0:
            raise ValueError(f"gap={self.gap!r}; expected a duration of at least 0.")
        return gap

    def _where_parts_begin(self, times: np.ndarray) -> np.ndarray:
        """Return the number of the first query of each part; queries begin at these times, in order."""
        if isinstance(self.test_size, timedelta | np.timedelta64):
            return self._where_durations_begin(times, np.timedelta64(self.test_size))
        n_queries = len(times)
        size = n_queries // (self.n_splits + 1) if self.test_size is None else self.test_size
        size = math.ceil(size * n_queries) if 0 < size < 1 else int(size)
        if not 0 < size * self.n_splits < n_queries:
            raise ValueError(
                f"n_splits={self.n_splits} test parts of {size} queries each, but there are {n_queries} "
                "queries; expected one at least in each part, and one before the first: pass fewer splits or "
                "another test_size."
            )
        return n_queries - size * np.arange(self.n_splits, 0, -1)

    def _where_durations_begin(self, times: np.ndarray, duration: np.timedelta64) -> np.ndarray:
        if times.dtype.kind != "M" or duration <= duration * 0:
            raise ValueError(
                f"test_size={self.test_size!r}, and the first time is {times[0]}; expected a duration above "
                "0, and only if times are dates: pass dates, or a share or a number of queries."
            )
        before = times[-1] - duration * np.arange(self.n_splits, 0, -1)
        begins = np.searchsorted(times, before, side="right")
        if begins[0] == 0:
            raise ValueError(
                f"n_splits={self.n_splits} test parts of test_size={self.test_size!r}, but times are from "
                f"{times[0]} to {times[-1]}; expected a query before the first part: pass fewer splits or "
                "another test_size."
            )
        return begins

    def get_n_splits(
        self,
        X: object = None,
        y: object = None,
        groups: object = None,
        *,
        qid: object = None,
        time: object = None,
    ) -> int:
        """Return the number of splits.

        Parameters
        ----------
        X, y, groups, qid, time : object, default=None
            Ignored.

        Returns
        -------
        int
            `n_splits`.
        """
        return self.n_splits


@validate_params(SPLIT_AT_RANDOM, prefer_skip_nested_validation=True)
def train_test_split_by_query(
    *arrays: Any,
    qid: IdsLike | None = None,
    test_size: float | None = None,
    train_size: float | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> list[Any]:
    """Split arrays into training and test rows, keeping queries whole.

    Parameters
    ----------
    *arrays : sequence of array-likes of shape (n_rows, ...)
        Rows, labels, weights, ids, and anything else with one entry per row. Arrays keep their type, and None
        stays None.
    qid : array-like of shape (n_rows,), default=None
        Query ids of any hashable kind, in any order. If None, they are taken from the index level named "qid"
        of those arrays that have one.
    test_size : float in (0, 1), int or None, default=None
        The share or the number of *queries* to test on. If None, all queries that `train_size` leaves, or 0.2
        if `train_size` is None as well.
    train_size : float in (0, 1), int or None, default=None
        The share or the number of queries to train on. If None, all queries that `test_size` leaves.
    random_state : int, RandomState instance or None, default=None
        The source of randomness.

    Returns
    -------
    list of length 2 * len(arrays)
        The training part and the test part of the first array, then those of the second, and so on.

    Raises
    ------
    ValueError
        If there are no query ids or only one query, if ids from different sources disagree, or if the sizes
        leave nothing to train or to test on.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.evaluation import train_test_split_by_query
    >>> X, y, qid = np.arange(5.0)[:, None], np.array([0, 1, 1, 0, 2]), np.array([7, 7, 3, 3, 5])
    >>> X_train, X_test, y_train, y_test, qid_train, qid_test = train_test_split_by_query(
    ...     X, y, qid, qid=qid, test_size=1, random_state=0
    ... )
    >>> qid_train, qid_test
    (array([7, 7, 3, 3]), array([5]))
    """
    given = [array for array in arrays if array is not None]
    if not given:
        raise ValueError("train_test_split_by_query got no arrays; expected at least one: pass X, y, qid.")
    arrays = indexable(*arrays)
    n_rows = _num_samples(given[0])
    holders = {f"arrays[{place}]": array for place, array in enumerate(arrays)}
    queries = find_query_of_rows(n_rows, {"qid": qid}, holders)
    if queries is None:
        raise ValueError(_no_ids("train_test_split_by_query", "qid="))
    splitter = QueryShuffleSplit(1, test_size=test_size, train_size=train_size, random_state=random_state)
    parts = next(splitter.split(np.empty(n_rows), qid=queries))
    return [None if array is None else _taken(array, part) for array in arrays for part in parts]


def _taken(array: Any, rows: np.ndarray) -> Any:
    if hasattr(array, "get_level_values"):  # a pandas Index, which scikit-learn would turn into an array
        return array.take(rows)
    return _safe_indexing(array, rows)


def query_scorer(measure: AnyMeasure = "ndcg@10") -> Callable[..., float]:
    """Make a scorer that returns a ranking measure: its mean over the queries, or its value over all rows.

    The scorer requests the query ids as `groups` and `qid`, so that with metadata routing enabled
    ``GridSearchCV(..., scoring=query_scorer()).fit(X, y, groups=qid)`` scores every query of a test fold.
    Without routing, the scorer takes them from an index level named "qid" of `y` or `X`. It never treats a
    whole test fold as one query: without ids it raises, unless the measure does not depend on them, such as
    "pooled_auc" or "rmse".

    Parameters
    ----------
    measure : str, Measure or callable, default="ndcg@10"
        A measure, as for `ranktrees.measures.as_measure`. If lower values of it are better, the scorer
        returns the negated mean.

    Returns
    -------
    scorer : callable with the signature ``scorer(estimator, X, y, sample_weight=None, **ids)``
        A scorer like those of `sklearn.metrics.make_scorer`. It can be pickled, and used wherever
        scikit-learn takes `scoring`, for any estimator that predicts scores. A classifier of two classes
        ranks by its ``decision_function`` if it has one, otherwise by its probability of the second class,
        which has the label 1. A classifier of more classes ranks by the predicted class.

    Raises
    ------
    ValueError
        If there is no such measure.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.linear_model import LinearRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from ranktrees.evaluation import QueryKFold, query_scorer
    >>> qid = pd.Index(np.repeat(["a", "b", "c", "d"], 5), name="qid")
    >>> X = np.arange(20.0)[:, None]
    >>> y = pd.Series(np.tile([0, 0, 1, 2, 3], 4), index=qid)
    >>> cross_val_score(LinearRegression(), X, y, cv=QueryKFold(2), scoring=query_scorer("ndcg@3"))
    array([1., 1.])
    """
    measure = as_measure(measure)
    scorer = _QueryScorer(
        _mean_over_queries, 1 if measure.greater_is_better else -1, {"measure": measure}, "predict"
    )
    with sklearn.config_context(enable_metadata_routing=True):  # requests can only be set within
        return scorer.set_score_request()


class _QueryScorer(type(make_scorer(as_measure))):  # type: ignore[misc]
    """A scorer like those of `make_scorer`, which also finds ids in the index of `X`, and what ranks rows."""

    def set_score_request(self, **requests: Any) -> Self:
        """Set which metadata the scorer requests. By default it requests the query ids."""
        return super().set_score_request(**(ROUTED | requests))

    def __call__(
        self,
        estimator: Any,
        X: RowsLike,
        y_true: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
        **ids: Any,
    ) -> float:
        """Return the score of a fitted estimator on some rows."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        routing = sklearn.get_config()["enable_metadata_routing"] or bool(ids)  # else ids would be refused
        with sklearn.config_context(enable_metadata_routing=routing):
            return super().__call__(estimator, X, y_true, **weights, **ids)

    def _score(
        self, method_caller: Callable[..., Any], estimator: Any, X: RowsLike, y_true: Any, **metadata: Any
    ) -> float:
        method = score_method(estimator, self._kwargs["measure"])
        metadata["qid_of_X"] = qid_of(X)
        metadata["classes"] = None
        if method != "predict" and is_classifier(estimator):
            metadata["classes"] = estimator.classes_

        def scores_of(estimator: Any, _: object, X: RowsLike, **kwargs: Any) -> Any:
            return method_caller(estimator, method, X, **kwargs)

        return super()._score(scores_of, estimator, X, y_true, **metadata)


_BY_THRESHOLD = "scikit-learn's search for a threshold, which does not come by `_score`"


def _mean_over_queries(
    y_true: Any,
    y_score: Any,
    *,
    measure: Measure,
    sample_weight: ArrayLike | None = None,
    qid: IdsLike | None = None,
    groups: IdsLike | None = None,
    qid_of_X: Any = None,
    classes: Any = _BY_THRESHOLD,
) -> float:
    n_rows = _num_samples(y_true)
    ids = {"qid": qid, "groups": groups, "the index level 'qid' of X": qid_of_X}
    queries = find_queries(n_rows, ids, {"y": y_true})
    if queries is None and n_rows > 1 and measure.by_query:
        raise ValueError(
            _no_ids(f"The scorer of {measure}", "groups= with scikit-learn's metadata routing enabled")
            + f" All {n_rows} rows would be scored as one query."
        )
    query_of_row = np.zeros(n_rows, np.intp) if queries is None else query_of_rows(*queries)
    labels = np.asanyarray(y_true)  # with its mask, for the measure to see
    if isinstance(classes, str):
        _require_zero_and_one(labels)
    elif classes is not None:
        labels = class_numbers(labels, classes, "y")
    return measure(labels, y_score, qid=query_of_row, sample_weight=sample_weight)


def _require_zero_and_one(labels: np.ndarray) -> None:
    """Raise if a label is neither 0 nor 1, for rows that are scored by the class that they are given."""
    others = [label for label in np.unique(labels) if label not in (0, 1)]
    if others:
        raise ValueError(
            f"y holds the class {as_seen(others[0])}, but a threshold is measured by the classes that it "
            "assigns to the rows; expected 0 and 1, or False and True: pass y as a condition, such as y >= "
            "2."
        )


def _validate(splitter: QueryKFold | QueryShuffleSplit | QueryTimeSeriesSplit) -> None:
    validate_parameter_constraints(
        splitter._parameter_constraints, vars(splitter), caller_name=type(splitter).__name__
    )


def _queries(
    splitter: QueryKFold | QueryShuffleSplit | QueryTimeSeriesSplit,
    X: RowsLike,
    y: Any,
    groups: IdsLike | None,
    qid: IdsLike | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of the query of every row, and the number of rows of every query."""
    n_rows = _num_samples(X if X is not None else y)
    queries = find_queries(n_rows, {"groups": groups, "qid": qid}, {"y": y, "X": X})
    if queries is None:
        raise ValueError(
            _no_ids(type(splitter).__name__, "groups=")
            + " Tools that convert y to an array, such as StackingRegressor, lose the index: pass them "
            f"the folds, cv=list({type(splitter).__name__}(...).split(X, y))."
        )
    return query_of_rows(*queries), np.diff(queries[1])


def _no_ids(who: str, argument: str) -> str:
    return (
        f"{who} found no query ids; expected one id per row: pass {argument}, or a pandas y (or X) whose "
        "index has a level named 'qid', which also reaches the models that are fitted to folds."
    )
