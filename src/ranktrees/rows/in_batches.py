"""Read rows batch by batch. Each batch is checked and then written to disk."""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ranktrees.rows.batches import Batches
from ranktrees.rows.frames import frame_columns, holds_texts, is_category, kind_of
from ranktrees.rows.labels import check_labels, check_weights
from ranktrees.rows.matrix import check_columns, rows_of
from ranktrees.rows.queries import find_queries, ids_in, qid_of, runs_in
from ranktrees.rows.values import as_seen, shape_of
from ranktrees.support.progress import counted
from ranktrees.support.spool import SparseSpool, Spool

if TYPE_CHECKING:
    from ranktrees.processes.communicator import Communicator
    from ranktrees.rows.batches import Batch
    from ranktrees.support.annotations import RowsLike

_KINDS_OF_COLUMNS = {"number", "str", "bytes", "date", "datetime", "timedelta"}


def read_batches(
    estimator: Any,
    batches: Batches,
    others: dict[Any, Any],
    name: str,
    reset: bool,
    communicator: Communicator,
) -> tuple[Any, np.ndarray | None, np.ndarray | None, Any, np.ndarray]:
    """Read batches and check them one by one.

    Returns (rows on disk, labels, weights, query ids, the id of each query). The rows are a CSR matrix if the
    first batch is sparse. If there is a single rank, the query ids are replaced by the numbers of queries.

    Parameters
    ----------
    estimator : estimator
        It is not changed.
    batches : Batches
    others : dict
        The other arguments by name. With batches, none of them may be given.
    name : str
        The name of the batches in error messages.
    reset : bool
        If True, the columns are those of the first batch; otherwise those of fit.
    communicator : Communicator
        If there are several ranks, they exchange the ids that were given. A single one needs only numbers.
    """
    for argument, value in others.items():
        if value is not None:
            raise ValueError(
                f"{argument} is given, but {name} is in batches, which contain their labels, queries and "
                f"weights; leave out {argument}."
            )
    columns = copy(estimator)
    queries = _QueryNumbers()
    rows: Spool | SparseSpool = Spool(batches.folder)
    labels, weights, qid = [], [], []
    shown = "bar" if communicator.rank == 0 and getattr(estimator, "verbose", 0) == "bar" else 0
    for number, batch in enumerate(counted(batches, lambda batch: shape_of(batch.X)[0], name, shown)):
        of_batch = f" of batch {number}"
        own_name = name + of_batch
        _require_some_rows(batch.X, own_name)
        check_columns(columns, batch.X, reset=reset and number == 0, name=own_name)
        for column_name, column in frame_columns(batch.X) or []:
            if is_category(column) or holds_texts(column):
                kind = "is a category column" if is_category(column) else "holds strings"
                raise ValueError(
                    f"column {column_name!r} of {own_name} {kind}, and one batch may lack some of its "
                    "levels; expected numbers: pass codes that all batches share, and name the column in "
                    "categorical_features."
                )
        part, _ = rows_of(batch.X, {}, estimator, own_name)
        n_rows = part.shape[0]
        if number == 0 and sparse.issparse(batch.X):
            rows = SparseSpool(batches.folder)
        elif number == 0 and isinstance(rows, Spool):
            rows.head = batch.X[:0] if frame_columns(batch.X) is not None else np.empty((0, part.shape[1]))
        rows.append(part)
        labels.append(check_labels(batch.y, n_rows, "y" + of_batch, own_name, estimator))
        weights.append(check_weights(batch.sample_weight, n_rows, -1, "sample_weight" + of_batch))
        qid.append(queries.of(batch, n_rows, of_batch))
    if not labels:
        raise ValueError(
            f"{name} has no batches; expected at least one: if the source is a generator, which can be "
            "iterated over only once, pass the function that makes it."
        )
    numbers, ids = _joined(qid, "qid"), queries.ids()
    return (
        rows if isinstance(rows, Spool) else rows.matrix(),
        _joined(labels, "labels"),
        _joined(weights, "sample_weight"),
        numbers if numbers is None or communicator.alone else ids[numbers],
        ids,
    )


class _QueryNumbers:
    """Numbers the queries of all batches."""

    def __init__(self) -> None:
        self.number_of: dict[Hashable, int] = {}
        self.first_of_kind: dict[str, str] = {}

    def of(self, batch: Batch, n_rows: int, of_batch: str) -> np.ndarray | None:
        """Return the number of the query of each row of a batch; None if it has no ids."""
        ids = {f"qid{of_batch}": batch.qid}
        holders = {f"y{of_batch}": batch.y, f"X{of_batch}": batch.X}
        if find_queries(n_rows, ids, holders) is None:
            return None
        given = (values for values in (batch.qid, qid_of(batch.y), qid_of(batch.X)) if values is not None)
        heads, lengths = runs_in(ids_in(next(given), n_rows, "qid"))
        values = heads.tolist()
        self._require_one_kind(values, of_batch)
        numbers = [self.number_of.setdefault(value, len(self.number_of)) for value in values]
        return np.repeat(numbers, lengths)

    def _require_one_kind(self, values: list[Any], of_batch: str) -> None:
        """Refuse numbers in one batch and strings in another: a reader may guess types batch by batch."""
        kinds = {kind_of(value) for value in {type(value): value for value in values}.values()}
        if len(kinds) > 1 or not kinds <= _KINDS_OF_COLUMNS:
            return
        [kind] = kinds
        seen = f"qid{of_batch} holds {as_seen(values[0])}, a {kind}"
        if others := self.first_of_kind.keys() - kinds:
            raise ValueError(
                f"{seen}, but {self.first_of_kind[min(others)]}; expected ids of one kind in all batches, "
                "because a query that continues in the next batch would become two: convert them, or set "
                "their type where they are read, as by pandas.read_csv(..., dtype={'qid': str})."
            )
        self.first_of_kind.setdefault(kind, seen)

    def ids(self) -> np.ndarray:
        """Return the id of each query, by its number."""
        return np.fromiter(self.number_of, object, len(self.number_of))


def _require_some_rows(X: RowsLike, name: str) -> None:
    """Refuse a batch without rows. What is not a matrix is refused when columns are checked."""
    if shape_of(X)[0] == 0:
        raise ValueError(
            f"{name} is empty: {as_seen(X)}; expected at least one row in each batch: leave out empty "
            "batches, as by an `if len(y)` where they are made."
        )


def _joined(parts: list[Any], what: str) -> np.ndarray | None:
    """Join the labels, weights or queries of all batches; None if no batch has any."""
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
