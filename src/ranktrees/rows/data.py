"""Turn what is passed to fit, eval_set and score into `FitData`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import _num_samples

from ranktrees.processes.communicator import ALONE, Communicator
from ranktrees.processes.sharing import ALL_ROWS, Share
from ranktrees.rows.batches import Batches
from ranktrees.rows.feedback import NOTHING, Feedback, Preferences
from ranktrees.rows.frames import OrderedLevels, frame_columns, warn_of_order
from ranktrees.rows.in_batches import read_batches
from ranktrees.rows.labels import check_labels, check_weights, class_numbers, names_in, require_several
from ranktrees.rows.leaks import warn_of_ids_among_columns, warn_of_labels_among_columns
from ranktrees.rows.matrix import (
    category_columns,
    check_columns,
    check_rows,
    joined_levels,
    refuse_batches,
    rows_of,
    set_columns,
)
from ranktrees.rows.queries import (
    find_queries,
    ids_of_queries,
    sizes_to_qid,
    sources_of,
)
from ranktrees.rows.values import as_seen, narrowed, shape_of
from ranktrees.support.numeric import is_real
from ranktrees.support.warning import FitWarning, warn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ranktrees.support.annotations import IdsLike, RowsLike

MOST_ROWS = 2**31 - 1  # kernels number rows in four bytes, which some registers take as signed


class MissingQueryWarning(UserWarning):
    """Warns that a ranker was fitted, or a measure taken, without query ids: all rows are then one query.

    Examples
    --------
    >>> import warnings
    >>> from ranktrees.rows import MissingQueryWarning
    >>> warnings.simplefilter("error", MissingQueryWarning)  # refuse instead of warn
    >>> warnings.simplefilter("default", MissingQueryWarning)
    """


@dataclass(frozen=True, slots=True, eq=False)
class FitData:
    """Checked training (or validation, or test) data.

    Labels and weights are in *internal order*: sorted by query, stably, with queries in order of first
    appearance, or in the order of their ids if ranks train together. `X` is never permuted: internal row `i`
    is row `order[i]` of `X`. Arrays may share memory with the user's, so they must only be read.

    Attributes
    ----------
    X : ndarray, scipy sparse CSR or Spool of shape (n_rows, n_features), float32 or float64
        The rows as `check_rows` returns them. For a meta-estimator, the rows as they were passed; for
        batches, the rows on disk.
    narrow_labels : ndarray of shape (n_rows,), or None
        The `labels` as they are stored, in as few bytes as can hold them.
    weights : ndarray of shape (n_rows,), float64, or None
        Finite weights >= 0, at least one of them positive, in internal order. None if none were given.
    order : ndarray of shape (n_rows,), intp, or None
        The number in `X` of every internal row. None if the rows are grouped by query already.
    offsets : ndarray of shape (n_queries + 1,), int64
        Query `q` holds the internal rows `offsets[q]` to `offsets[q + 1]`, the latter excluded.
    qid_given : bool
        Whether the user passed query ids. False if all rows were taken for one query.
    classes : ndarray of shape (n_classes,), or None
        The names of a classifier's classes, sorted.
    share : Share
        The part of the rows of all ranks that these rows are.
    preferences : Preferences, or None
        The preferences between rows that were given.
    positions : ndarray of shape (n_rows,), int64, or None
        The rank at which each row was shown, from 1, in internal order.
    y_name : str
        The name of the labels in error messages.
    query_ids : list of length n_queries, or None
        The id of each query, unless none were passed, or sizes of queries.
    """

    X: Any
    narrow_labels: np.ndarray | None
    weights: Any
    order: np.ndarray | None
    offsets: np.ndarray
    qid_given: bool
    classes: np.ndarray | None = None
    share: Share = ALL_ROWS
    preferences: Preferences | None = None
    positions: np.ndarray | None = None
    y_name: str = "y"
    query_ids: list[Any] | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.offsets[-1])

    @property
    def n_queries(self) -> int:
        """The number of queries."""
        return len(self.offsets) - 1

    @property
    def labels(self) -> Any:
        """Finite labels in internal order, float64; for a classifier, their places in `classes`.

        None if there are only `preferences`.
        """
        return None if self.narrow_labels is None else self.narrow_labels.astype(np.float64, copy=False)

    @property
    def y(self) -> np.ndarray | None:
        """The labels in the order of the rows of `X`, as names of classes for a classifier."""
        if (labels := self.labels) is None:
            return None
        labels = self.as_given(labels)
        return labels if self.classes is None else self.classes[labels.astype(np.intp)]

    @property
    def query_of_row(self) -> np.ndarray:
        """The number of the query of every internal row, among those of all ranks."""
        numbers = self.share.query_numbers
        numbers = np.arange(self.n_queries) if numbers is None else numbers
        return np.repeat(numbers, np.diff(self.offsets))

    @property
    def feedback(self) -> dict[str, Any]:
        """What was given besides labels."""
        both = {"preferences": self.preferences, "positions": self.positions}
        return {name: values for name, values in both.items() if values is not None}

    def internal(self, values: np.ndarray) -> np.ndarray:
        """Bring values from the order of the rows of `X` into internal order."""
        return values if self.order is None else values[self.order]

    def as_given(self, values: np.ndarray) -> np.ndarray:
        """Bring values from internal order into that of the rows of `X`, which must all be in these data."""
        if self.order is None:
            return values
        given = np.empty_like(values)
        given[self.order] = values
        return given


def check_fit(
    estimator: Any,
    X: RowsLike,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    qid: IdsLike | None = None,
    groups: IdsLike | None = None,
    group: ArrayLike | None = None,
    ranker: bool = True,
    read_rows: bool = True,
    communicator: Communicator | None = None,
    feedback: Feedback = NOTHING,
    known_levels: dict[int, tuple[Any, ...]] | None = None,
) -> FitData:
    """Check everything that fit was given.

    Query ids come from one of four sources: `qid`, its synonym `groups`, the sizes `group`, or an index level
    named "qid" of `y` or `X` (`qid_of`). More than one may be given as long as they agree.

    Attributes of the estimator are set only when every check has passed: `n_features_in_`,
    `feature_names_in_`, `_category_levels` (columns that are categorical by dtype,
    ``{column index: levels}``), `_qid_given` and, for a classifier, `classes_`. With `warm_start` the columns
    must be those of the fit before, and a classifier keeps its classes.

    Parameters
    ----------
    estimator : estimator
        The estimator that is being fitted.
    X : array-like, sparse or data frame of shape (n_rows, n_features), or Batches
        The rows, see `check_rows`. Batches contain all the others, and are read to disk.
    y : array-like of shape (n_rows,)
        Finite labels.
    sample_weight : array-like of shape (n_rows,), default=None
        Finite weights >= 0, one per row.
    qid, groups : array-like of shape (n_rows,), default=None
        Query ids, see `query_offsets`.
    group : array-like of shape (n_queries,), default=None
        Query sizes, see `sizes_to_qid`.
    ranker : bool, default=True
        Whether to issue a `MissingQueryWarning` if there are no query ids.
    read_rows : bool, default=True
        False for a meta-estimator, which leaves the reading of rows to the estimator inside.
    communicator : Communicator, default=None
        The ranks that train together. If None, a single one. Each rank passes whole queries of its own, or no
        rows.
    feedback : Feedback, default=NOTHING
        What was given besides labels. With pairs, `y` may be None, and there is no warning about missing
        query ids.
    known_levels : dict of int to tuple, default=None
        Levels of category columns that are to be known besides those that occur in the rows of all ranks.

    Returns
    -------
    data : FitData
        The rows untouched, labels and weights in internal order, and the offsets of the queries.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid. The message names it.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from ranktrees.rows import check_fit
    >>> data = check_fit(BaseEstimator(), [[1.0], [2.0], [3.0]], [0, 1, 2], qid=["b", "a", "b"])
    >>> data.labels
    array([0., 2., 1.])
    >>> data.order, data.offsets
    (array([0, 2, 1]), array([0, 2, 3]))
    """
    communicator, called = communicator or ALONE, None
    if not read_rows:
        refuse_batches(X, "X")
    elif isinstance(X, Batches):
        others = {"y": y, "sample_weight": sample_weight, "qid": qid, "groups": groups, "group": group}
        X, y, sample_weight, qid, called = read_batches(
            estimator, X, others, "X", reset=True, communicator=communicator
        )
    before = vars(estimator) if getattr(estimator, "warm_start", False) else {}
    classes = before.get("classes_")

    def of_all(levels: dict[int, tuple[Any, ...]]) -> dict[int, tuple[Any, ...]]:
        gathered = communicator.allgather(levels)
        of_ranks = joined_levels(gathered)
        _refuse_other_orders(X, of_ranks, gathered)
        known = known_levels or {}
        nominal = {column for column, one in of_ranks.items() if not isinstance(one, OrderedLevels)}
        return joined_levels([{column: tuple(known[column]) for column in nominal & known.keys()}, of_ranks])

    if _lacks_rows(X, "X", communicator):
        rows, levels = _no_rows(X, getattr(estimator, "categorical_features", None), of_all)
        data = _without_rows(rows, classes, communicator, is_classifier(estimator))
    else:
        rows, levels = rows_of(X, None, estimator, "X", of_all) if read_rows else (X, {})
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
        data = _with_ids(data, called)
    if read_rows:
        set_columns(estimator, X, rows, levels, goes_on="n_features_in_" in before)
    else:
        check_columns(estimator, X, reset=True)
    if data.classes is not None:
        estimator.classes_ = data.classes
    estimator._qid_given = data.qid_given
    if read_rows and data.n_rows:
        own_ids = [*sources_of({"qid": qid, "groups": groups}, {"y": y, "X": X}).values()]
        if own_ids and called is not None and data.query_ids is not None:
            kind = np.float64 if all(map(is_real, data.query_ids)) else object
            ids_of_all = np.fromiter(data.query_ids, kind, data.n_queries)
            own_ids = [data.as_given(np.repeat(ids_of_all, np.diff(data.offsets)))]
        if own_ids or data.qid_given:
            warn_of_ids_among_columns(X, rows, levels, own_ids, (data.order, data.offsets))
        warn_of_labels_among_columns(X, y, rows, data.labels, data.order)
    if ranker and not data.qid_given and data.preferences is None and data.n_rows:
        warn(
            f"{type(estimator).__name__} was fitted without query ids, so all {data.n_rows} rows were "
            f"treated as one query. {_PASS_IDS}; {_ONE_QUERY}." + _where_ids_may_be(X, sample_weight),
            MissingQueryWarning,
        )
    return data


_PASS_IDS = (
    "Pass qid= (one id per row), or a y whose index has a level named 'qid', which passes through "
    "scikit-learn's pipelines, searches and cross-validation: they do not pass qid= on unless "
    "sklearn.set_config(enable_metadata_routing=True)"
)
_ONE_QUERY = "if all rows belong to one query, pass zeros"


def _where_ids_may_be(X: RowsLike, sample_weight: ArrayLike | None, method: str = "fit") -> str:
    """Return a hint if a method without query ids was given something that looks like them."""
    hint = ""
    if sample_weight is not None:
        hint += (
            f" The argument after y is sample_weight: ids are accepted only by name, as in {method}(X, y, "
            "qid=ids)."
        )
    columns = [column for column, _ in frame_columns(X) or []]
    if "qid" in columns:
        hint += " The column 'qid' of X is a feature like the others: pass qid=X['qid'], and X without it."
    return hint


class ValidationRows(NamedTuple):
    """The validation rows that `fit` is given, in the spelling of this library or of LightGBM and XGBoost.

    An index level named "qid" of `y_val` or `X_val` supplies the query ids as well.
    """

    X_val: Any = None
    y_val: Any = None
    sample_weight_val: Any = None
    qid_val: Any = None
    eval_set: Any = None  # one pair (X, y), in a list or on its own
    eval_group: Any = None  # a list of one array: the number of rows of each query
    eval_qid: Any = None  # a list of one array: the query of each row

    @property
    def given(self) -> bool:
        """Whether any argument was given."""
        return any(argument is not None for argument in self)

    @property
    def pair(self) -> tuple[Any, ...]:
        """Rows and labels, from either spelling."""
        return (self.X_val, self.y_val) if self.eval_set is None else _only_pair(self.eval_set)


def check_validation(
    estimator: Any, validation: ValidationRows, train: FitData, feedback: Feedback = NOTHING
) -> FitData | None:
    """Check the validation data of fit, in either spelling.

    Call this after `check_fit`, since the validation rows must have the same columns.

    Parameters
    ----------
    estimator : estimator
        The estimator that is being fitted.
    validation : ValidationRows
        If there were query ids for training, the validation rows need ids, too.
    train : FitData
        The data that `check_fit` returned.
    feedback : Feedback, default=NOTHING
        What was given besides labels. With pairs, `y_val` may be None.

    Returns
    -------
    data : FitData or None
        None if no validation data were given.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid. The message names it.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from ranktrees.rows import ValidationRows, check_fit, check_validation
    >>> ranker = BaseEstimator()
    >>> train = check_fit(ranker, [[1.0], [2.0]], [0, 1], qid=[1, 1])
    >>> check_validation(ranker, ValidationRows([[3.0]], [1], qid_val=[2]), train).n_queries
    1
    """
    named = [name for name, value in validation._asdict().items() if value is not None]
    given = [name for name in named if name.endswith("_val")] + feedback.given
    eval_given = [name for name in named if name.startswith("eval_")]
    communicator = train.share.communicator
    communicator.agree(**{"whether there are validation rows": bool(given or eval_given)})
    if not given and not eval_given:
        return None
    given = given if not eval_given else [name for name in given if name != "sample_weight_val"]
    if given and eval_given:
        raise ValueError(
            f"{given[0]} and {eval_given[0]} are both given; expected one validation set: pass X_val, y_val "
            "and qid_val, or eval_set with eval_group or eval_qid."
        )
    if eval_given and validation.eval_set is None:
        raise ValueError(f"{eval_given[0]} is given without rows; pass eval_set=[(X, y)], too.")
    X_val, y_val = validation.pair
    sample_weight_val, ids, sizes = validation.sample_weight_val, {"qid_val": validation.qid_val}, {}
    names = ("X_val", "y_val", "sample_weight_val")
    if eval_given:
        ids = {"eval_qid": _only_entry(validation.eval_qid, "eval_qid", "query ids")}
        sizes = {"eval_group": _only_entry(validation.eval_group, "eval_group", "query sizes")}
        names = ("X of eval_set", "y of eval_set", "sample_weight_val")
    elif X_val is None or (y_val is None and feedback.pairs is None and not isinstance(X_val, Batches)):
        absent = "X_val" if X_val is None else "y_val"
        raise ValueError(
            f"{absent} is None but {given[0]} is given; expected both X_val and y_val: pass {absent}."
        )
    elif isinstance(X_val, list | tuple) and len(X_val) == 1 and len(getattr(X_val[0], "shape", ())) == 2:
        raise ValueError(
            f"X_val holds {as_seen(X_val[0])}; expected the rows themselves: pass X_val=X, y_val=y and "
            "qid_val=qid, or, in lists, eval_set=[(X, y)] and eval_qid=[qid]."
        )
    called = None
    if isinstance(X_val, Batches):
        others = {names[1]: y_val, names[2]: sample_weight_val, **ids, **sizes}
        X_val, y_val, sample_weight_val, qid_val, called = read_batches(
            estimator, X_val, others, names[0], reset=False, communicator=communicator
        )
        ids = dict.fromkeys(ids, qid_val)
    if _lacks_rows(X_val, names[0], communicator):
        data = _without_rows(_no_rows(X_val, None)[0], train.classes, communicator, train.classes is not None)
        return replace(data, y_name=names[1])
    rows = check_rows(estimator, X_val, reset=False, name=names[0])
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
    data, known = _with_ids(data, called), set(train.query_ids or ())
    if shared := [one for one in data.query_ids or () if one in known]:
        warn(
            f"{len(shared)} of {data.n_queries} validation queries are training queries by their ids, such "
            f"as {as_seen(shared[0])}: early stopping would follow what is known already. Split by whole "
            "queries, as train_test_split_by_query does; if they are other queries, give them other ids.",
            FitWarning,
        )
    return data


def check_score(
    estimator: Any,
    X: RowsLike,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    qid: IdsLike | None = None,
    groups: IdsLike | None = None,
    ranker: bool = True,
    read_rows: bool = True,
    method: str = "score",
    feedback: Feedback = NOTHING,
) -> FitData:
    """Check everything that score, or another method that compares scores with labels, was given.

    Parameters
    ----------
    estimator : estimator
        The fitted estimator.
    X, y, sample_weight, qid, groups
        As in `check_fit`.
    ranker : bool, default=True
        Whether the score is a mean over queries, so that query ids are needed if fit had some.
    read_rows : bool, default=True
        False for a meta-estimator, which leaves the reading of rows to the estimator inside.
    method : str, default="score"
        The name of the method in error messages.
    feedback : Feedback, default=NOTHING
        What was given besides labels. With pairs, `y` may be None.

    Returns
    -------
    data : FitData
        `data.X` holds the rows in the order in which they were passed, ready for prediction. Labels, weights
        and offsets are in internal order, so scores must be taken as ``data.internal(scores)``.

    Raises
    ------
    ValueError, TypeError
        As in `check_fit`, and if a ranker was fitted with query ids but is scored without.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from ranktrees.rows import check_fit, check_score
    >>> ranker = BaseEstimator()
    >>> train = check_fit(ranker, [[1.0], [2.0]], [0, 1], qid=[1, 1])
    >>> check_score(ranker, [[1.0], [2.0]], [0, 1])
    Traceback (most recent call last):
        ...
    ValueError: score needs qid=: BaseEstimator ranks the rows of queries, ...
    """
    rows = check_rows(estimator, X, reset=False) if read_rows else X
    ids = {"qid": qid, "groups": groups}
    classes = getattr(estimator, "classes_", None)
    data = _join(estimator, X, rows, y, sample_weight, ids, {}, classes=classes, feedback=feedback)
    if ranker and not data.qid_given and getattr(estimator, "_qid_given", False):
        raise ValueError(
            f"{method} needs qid=: {type(estimator).__name__} ranks the rows of queries, but without ids all "
            f"{data.n_rows} rows would be treated as one query. {_PASS_IDS}; {_ONE_QUERY}."
            + _where_ids_may_be(X, sample_weight, method)
        )
    return data


def _join(
    estimator: Any,
    X: RowsLike,
    rows: Any,
    y: Any,
    sample_weight: ArrayLike | None,
    ids: dict[str, Any],
    sizes: dict[str, Any],
    names: Sequence[str] = ("X", "y", "sample_weight"),
    classes: np.ndarray | None = None,
    communicator: Communicator | None = None,
    feedback: Feedback = NOTHING,
) -> FitData:
    """Join the `rows` read from `X` with labels, weights and queries; `classes` are a fitted classifier's.

    With a communicator, queries and rows are numbered among those of all ranks; if there are other ranks, in
    the order of the query ids.
    """
    X_name, y_name, weight_name = names
    warn_of_order({X_name: X, weight_name: sample_weight, f"position{feedback.suffix}": feedback.position})
    n_rows = _num_samples(rows)
    if n_rows > MOST_ROWS:
        raise ValueError(
            f"{X_name} has {n_rows} rows; expected at most {MOST_ROWS}: to predict, pass them in parts; to "
            "learn, pass a sample of the queries."
        )
    labels = None
    if y is not None or feedback.pairs is None:
        labels = check_labels(y, n_rows, y_name, X_name, estimator)
    if labels is not None and is_classifier(estimator):
        names_here = names_in(labels, y_name)
        if classes is None:
            classes = _classes_of_all(names_here, communicator or ALONE, y_name)
        labels = class_numbers(labels, classes, y_name)
    else:
        classes = None
    given = {name: values for name, values in sizes.items() if values is not None}
    ids = ids | {name: sizes_to_qid(values, n_rows, name) for name, values in given.items()}
    holders, by_id = {y_name: y, X_name: X}, communicator is not None and not communicator.alone
    queries = find_queries(n_rows, ids, holders, by_id=by_id)
    order, offsets = queries or (None, np.array([0, n_rows], np.int64))
    share, own_ids = ALL_ROWS, None
    if communicator is not None:
        (name, source), *_ = [*sources_of(ids, holders).items(), ("qid", None)]
        if source is not None and name not in sizes:  # sizes have no ids
            own_ids = ids_of_queries(source, order, offsets)
        share = Share.among(communicator, offsets, own_ids if by_id else None, name)
    weights = check_weights(sample_weight, n_rows, len(offsets) - 1, weight_name)
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
        narrow_labels=None if labels is None else narrowed(labels),
        weights=None if weights is None else np.ascontiguousarray(weights),
        order=order,
        offsets=offsets,
        qid_given=queries is not None,
        classes=classes,
        share=share,
        y_name=y_name,
        query_ids=own_ids,
    )
    return feedback.joined(data)


def _with_ids(data: FitData, ids: np.ndarray | None) -> FitData:
    """Return the data of batches, whose queries are numbered while they are read, with the ids themselves."""
    if ids is None or data.query_ids is None or not data.share.communicator.alone:
        return data
    return replace(data, query_ids=[ids[number] for number in data.query_ids])


def _lacks_rows(X: RowsLike, name: str, communicator: Communicator) -> bool:
    """Whether this rank has no rows, while others may have some."""
    shape = shape_of(X)
    if communicator.alone or shape[0] != 0:
        return False
    if len(shape) != 2:
        raise ValueError(
            f"{name} is {as_seen(X)}, whose number of features is unknown; expected as many as on the other "
            "ranks: on a rank without rows, pass an array of shape (0, n_features)."
        )
    return True


def _no_rows(
    X: RowsLike, named: Any, of_all: Callable[..., Any] = dict
) -> tuple[np.ndarray, dict[int, tuple[Any, ...]]]:
    """Return rows and category levels of a rank that has no rows."""
    return np.empty((0, X.shape[1])), of_all(category_columns(X, named))


def _refuse_other_orders(X: RowsLike, levels: dict[int, Any], gathered: list[dict[int, Any]]) -> None:
    """Refuse, on all ranks, a column that is ordered on one, and not or in another way on another."""
    for column, one in levels.items():
        for other in (each[column] for each in gathered if column in each):
            if isinstance(one, OrderedLevels) and not (isinstance(other, OrderedLevels) and other == one):
                columns = frame_columns(X)
                name = column if columns is None else columns[column][0]
                how = "" if isinstance(other, OrderedLevels) else ", in no order,"
                raise ValueError(
                    f"column {name!r} of X has the ordered levels {one} on one rank, and {other}{how} on "
                    "another; expected one order: convert the column by .astype to one CategoricalDtype on "
                    "all ranks."
                )


def _without_rows(
    rows: Any, classes: np.ndarray | None, communicator: Communicator, of_classes: bool
) -> FitData:
    """Return the data of a rank without rows. It makes the same collective calls as ranks with rows."""
    if of_classes and classes is None:
        classes = _classes_of_all(np.empty(0), communicator, "y")
    offsets = np.zeros(1, np.int64)
    share = Share.among(communicator, offsets, [])
    return FitData(rows, np.empty(0), _no_weights(communicator), None, offsets, share.named, classes, share)


def _no_weights(communicator: Communicator) -> np.ndarray | None:
    """Return the weights of a rank without rows, if other ranks pass some; None if no rank does."""
    return np.empty(0) if any(communicator.allgather(False)) else None


def _classes_of_all(labels: np.ndarray, communicator: Communicator, name: str) -> np.ndarray:
    """Return the classes to which the labels of all ranks belong."""
    of_ranks = [theirs for theirs in communicator.allgather(labels) if len(theirs)]
    words = {isinstance(theirs[0], str) for theirs in of_ranks}
    if len(words) > 1:  # numbers would become strings
        seen = " and ".join(sorted(as_seen(theirs[0]) for theirs in of_ranks))
        raise ValueError(f"{name} holds {seen} on different ranks; expected classes of one kind on all.")
    classes = names_in(np.concatenate(of_ranks or [labels]), name)
    require_several(classes, name)
    return classes


def _only_pair(eval_set: Any) -> Any:
    """Return the (X, y) pair of `eval_set`, which may be in a list or on its own."""
    pairs = eval_set if isinstance(eval_set, list) else [eval_set]
    if len(pairs) > 1:
        raise ValueError(
            f"eval_set has {len(pairs)} entries; expected one (X, y) pair: pass the one that early stopping "
            "should watch. train_score_ follows the training rows, and score_curves(model, X, y) any others."
        )
    if len(pairs) == 0 or not isinstance(pairs[0], (tuple, list)) or len(pairs[0]) != 2:
        seen = as_seen(eval_set if len(pairs) == 0 else pairs[0])
        raise ValueError(f"eval_set holds {seen}; expected one (X, y) pair: pass eval_set=[(X, y)].")
    return pairs[0]


def _only_entry(entries: Any, name: str, what: str) -> Any:
    if entries is None:
        return None
    if not isinstance(entries, (list, tuple)) or len(entries) != 1 or not hasattr(entries[0], "__len__"):
        raise ValueError(
            f"{name} is {as_seen(entries)}; expected a list of one array of {what}, as eval_set is a list of "
            f"one pair: pass {name}=[...]."
        )
    return entries[0]
