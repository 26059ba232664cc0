"""Fit on tables that an engine, such as Spark or Ray, has dealt to ranks, and score such tables.

    engine    deals whole queries -> a table for each rank, and places the ranks
    a rank    puts its rows in order: fit, with the ranks that have called the first one
    caller    takes over what the first rank has learned

The engine only carries: a `TableFit` to the ranks, and an `Outcome` back from each of them.
"""

from __future__ import annotations

import inspect
import pickle
import secrets
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ranktrees.estimators.averaged import AveragedRanker
from ranktrees.estimators.fitting import TreeEnsembleEstimator
from ranktrees.evaluation.predictions import scores_by
from ranktrees.processes.communicator import RankError, cause_of, checked_timeout
from ranktrees.processes.sockets import run_rank
from ranktrees.rows.features import names_of
from ranktrees.rows.tables import Columns
from ranktrees.rows.values import as_seen
from ranktrees.support.numeric import is_whole
from ranktrees.training.ranks import OF_ITS_ROWS, fit_shard, take_over

if TYPE_CHECKING:
    import socket

    from ranktrees.processes.communicator import Communicator


@dataclass(frozen=True)
class Outcome:
    """What has become of a rank.

    Attributes
    ----------
    rank : int
    state : dict, default=None
        The fitted attributes; of the first rank only.
    error : Exception, default=None
        What it has raised.
    warned : list of Warning
        The warnings of the first rank.
    """

    rank: int
    state: Any = None
    error: Exception | None = None
    warned: Sequence[Any] = ()


@dataclass(frozen=True)
class TableFit:
    """A fit that an engine carries to the ranks.

    Attributes
    ----------
    estimator : estimator
    columns : Columns
        What is which of the arguments of fit. A column for "validation" is true in validation rows.
    n_ranks : int
    timeout : float
    key : bytes
        The secret by which the ranks know each other.
    """

    estimator: Any
    columns: Columns
    n_ranks: int
    timeout: float
    key: bytes

    @classmethod
    def of(
        cls,
        model: Any,
        there: Sequence[str],
        n_ranks: int,
        timeout: float,
        *,
        label: str,
        qid: str | None,
        features: Sequence[str] | None,
        sample_weight: str | None,
        validation: str | None,
    ) -> Self:
        """Check what can be checked before any rows are read.

        Parameters
        ----------
        model : estimator
        there : sequence of str
            The names of the columns of the table.
        n_ranks, timeout, label, qid, features, sample_weight, validation
            See `ranktrees.spark.fit`.

        Raises
        ------
        TypeError, ValueError
            If the model does not train on ranks, or not from what is given.
        """
        if not isinstance(model, TreeEnsembleEstimator | AveragedRanker):
            raise TypeError(
                f"model is a {type(model).__name__}, which does not train on ranks; expected a "
                "LambdaMARTRanker, AveragedRanker, RandomForestRanker, HistGBRTRegressor or "
                "HistGBRTClassifier: collect the rows to fit another estimator."
            )
        if not is_whole(n_ranks, 1):
            raise ValueError(f"n_ranks={n_ranks!r}; expected a whole number of ranks >= 1.")
        if qid is None and model._wants_queries:
            raise ValueError(
                f"qid is not given, but {type(model).__name__} ranks rows within queries; expected the name "
                "of the column with the query ids."
            )
        if validation is not None and "X_val" not in inspect.signature(model.fit).parameters:
            raise ValueError(
                f"validation={validation!r} is given, but {type(model).__name__} has no early stopping; "
                "expected None: filter these rows out."
            )
        if getattr(model, "_skl_callbacks", None):
            raise ValueError(
                "model has callbacks, which would be called on another machine; expected none: remove them "
                "by set_callbacks(), and print progress to the log of the first rank by verbose."
            )
        columns = Columns.among(
            there, "rows", features, y=label, qid=qid, sample_weight=sample_weight, validation=validation
        )
        return cls(model, columns, int(n_ranks), checked_timeout(timeout), secrets.token_bytes(32))

    def run(
        self,
        rank: int,
        address: tuple[str, int],
        server: socket.socket | None,
        n_threads: float | None,
        tables: Sequence[Any],
    ) -> Outcome:
        """On a rank: fit with the others.

        An error is returned rather than raised, because to an engine one that is raised is a fault of the
        machine, after which it tries again.

        Parameters
        ----------
        rank, address, server, n_threads
            As for `run_rank`.
        tables : sequence of pyarrow.Table
            The rows of the rank in parts, if it has any.
        """
        try:
            return run_rank(
                rank, self.n_ranks, self.key, address, server, self.timeout, n_threads, self._fit, tables
            )
        except Exception as error:
            error.add_note(f"On rank {rank}:\n{traceback.format_exc()}")
            return Outcome(rank, error=_that_travels(error))

    def finish(self, outcomes: Sequence[Outcome]) -> Any:
        """Return the estimator with what the ranks have learned, or raise what one of them has raised."""
        outcomes = sorted(outcomes, key=lambda outcome: outcome.rank)
        if errors := [outcome.error for outcome in outcomes if outcome.error is not None]:
            raise cause_of(errors)
        for warning in outcomes[0].warned:
            warnings.warn(warning, stacklevel=3)
        take_over(self.estimator, outcomes[0].state)
        return self.estimator

    def _fit(self, ranks: Communicator, tables: Sequence[Any]) -> Outcome:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            state = fit_shard(ranks, self._arguments(tables), self.estimator)
        if ranks.rank > 0:
            return Outcome(ranks.rank)
        known = {name: value for name, value in state.items() if name not in OF_ITS_ROWS}
        return Outcome(0, known, warned=[one.message for one in caught])

    def _arguments(self, tables: Sequence[Any]) -> dict[str, Any]:
        """Return the arguments of fit: the rows of a rank in order, those for validation apart."""
        import pyarrow as pa

        if tables:
            table = _in_order(pa.concat_tables(tables), self.columns)
        else:  # of which nothing tells the types, and a rank without rows has no values either
            table = pa.table({name: pa.array([], pa.float64()) for name in self.columns.names})
        arguments = self.columns.arguments(table)
        mark = arguments.pop("validation", None)
        if mark is None:
            return arguments
        mark = mark.cast(pa.bool_()) if not tables else mark
        name = self.columns.named["validation"]
        if not pa.types.is_boolean(mark.type) or mark.null_count:
            raise ValueError(
                f"column {name!r} says which rows are for validation, but is a {mark.type} with "
                f"{mark.null_count} nulls; expected True or False in each row."
            )
        held_out = mark.to_numpy()
        parts = {"": ~held_out, "_val": held_out}
        return {
            f"{argument}{suffix}": values.filter(pa.array(some))
            for argument, values in arguments.items()
            for suffix, some in parts.items()
        }


def require_rows(rows: Any, method: str, expected: str) -> None:
    """Raise if rows have no such method, as they are not those of the engine."""
    if not hasattr(rows, method):
        raise TypeError(f"rows is {as_seen(rows)}; expected {expected}.")


def with_scores(table: Any, model: Any, features: Sequence[str], column: str) -> Any:
    """Return an Arrow table with a further column, the scores that a model gives to its rows."""
    import pyarrow as pa

    scores = scores_by(model, table.select(features)) if len(table) else np.empty(0)
    return table.append_column(column, pa.array(scores, pa.float64()))


def columns_to_score(
    model: Any, there: Sequence[str], features: Sequence[str] | None, column: str
) -> list[str]:
    """Return the names of the features in a table, or raise if it cannot be scored.

    Parameters
    ----------
    model : estimator or Ensemble
    there : sequence of str
        The names of the columns of the table.
    features : sequence of str or None
    column : str
        The column that the scores shall have.
    """
    if column in there:
        raise ValueError(f"column={column!r} is in rows already; expected a new name.")
    known = features if features is not None else names_of(model) or getattr(model, "feature_names", None)
    if not known:
        raise ValueError(
            f"features is not given, and the {type(model).__name__} does not know the names of its columns; "
            "expected the names of the columns of rows, in the order of fit."
        )
    return Columns.among(there, "rows", list(known)).features


def _in_order(table: Any, columns: Columns) -> Any:
    """Put rows in an order in which it does not matter how an engine has dealt them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    first = [columns.named["qid"]] if "qid" in columns.named else []
    names = list(dict.fromkeys([*first, *columns.names]))
    keys = []
    for name in names:
        key = table[name]
        if pa.types.is_dictionary(key.type):
            key = key.cast(key.type.value_type)
        if pa.types.is_nested(key.type):
            raise ValueError(
                f"column {name!r} is a {key.type}; expected a number, a truth value or a text in each row: "
                "make a column of each entry."
            )
        keys.append(key)
    in_order = [(str(j), "ascending") for j in range(len(keys))]
    numbered = pa.table(dict(zip(map(str, range(len(keys))), keys, strict=True)))
    return table.unify_dictionaries().combine_chunks().take(pc.sort_indices(numbered, sort_keys=in_order))


def _that_travels(error: Exception) -> Exception:
    """Return an error, or a `RankError` about it if it cannot be sent to another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RankError(f"{type(error).__name__}: {error}")
    return error
