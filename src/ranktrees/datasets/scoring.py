"""Score rows that do not fit in memory."""

from __future__ import annotations

from contextlib import ExitStack
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

from ranktrees.evaluation.predictions import scores_by
from ranktrees.rows import Batches, qid_of
from ranktrees.rows.tables import pyarrow_with
from ranktrees.rows.values import as_seen, shape_of
from ranktrees.support.files import replacing
from ranktrees.support.progress import counted, kind_of_bar

if TYPE_CHECKING:
    from ranktrees.support.annotations import PathLike

__all__ = ["score_batches"]


def score_batches(model: Any, batches: Batches, path: PathLike, *, verbose: int | Literal["bar"] = 0) -> None:
    """Score rows batch by batch, and write the scores to a Parquet file.

    Parameters
    ----------
    model : estimator or Ensemble
        The fitted model, of this library or of another one.
    batches : Batches
        The rows, at least one. Labels and weights are not needed, and are not used.
    path : path-like
        The file. It is complete at any moment: until all rows are scored, an earlier file stays as it is.
    verbose : int or "bar", default=0
        If above 0, print a line every ``verbose`` batches. If "bar", draw a progress bar (needs tqdm).

    Raises
    ------
    ImportError
        If pyarrow, or tqdm for a bar, is not installed.
    TypeError, ValueError
        If an argument is invalid, if a batch cannot be scored, or if query ids or ids of rows are of another
        type than those of the first batch.
    OSError
        If the file cannot be written.

    See Also
    --------
    Batches : Rows in batches.

    Notes
    -----
    The file has a row for each row of the batches, in their order, with the columns "qid" and "ids", if the
    batches have them, and "score", a float64.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> from pyarrow import parquet
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> from ranktrees.datasets import Batches, score_batches
    >>> X, y, qid = make_ranking(30, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=5, random_state=0).fit(X, y, qid=qid)
    >>> batches = Batches([{"X": X[:600], "qid": qid[:600]}, {"X": X[600:], "qid": qid[600:]}])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     score_batches(ranker, batches, f"{folder}/scores.parquet")
    ...     scores = parquet.read_table(f"{folder}/scores.parquet")
    >>> scores.column_names, scores["score"].to_numpy().tolist() == ranker.predict(X).tolist()
    (['qid', 'score'], True)
    """
    pa = pyarrow_with("parquet", "score_batches")
    if not isinstance(batches, Batches):
        raise TypeError(f"batches is {as_seen(batches)}; expected Batches: pass Batches of it.")
    if verbose == "bar":
        kind_of_bar()  # refused here if there is none, rather than once a file has been begun
    elif not isinstance(verbose, Integral) or verbose < 0:
        raise ValueError(f"verbose={verbose!r}; expected a number of batches, at least 0, or 'bar'.")
    writer: Any = None
    with replacing(path, "the scores") as file, ExitStack() as written:
        for number, batch in enumerate(
            counted(batches, lambda batch: shape_of(batch.X)[0], "scores", verbose)
        ):
            queries = (
                values for values in (batch.qid, qid_of(batch.y), qid_of(batch.X)) if values is not None
            )
            given = {"qid": next(queries, None), "ids": batch.ids}
            try:
                table = pa.table(
                    {
                        **{name: _column(values) for name, values in given.items() if values is not None},
                        "score": scores_by(model, batch.X),
                    }
                )
                if writer is None:
                    writer = written.enter_context(pa.parquet.ParquetWriter(file, table.schema))
                elif table.schema.names != writer.schema.names:
                    raise ValueError(f"it has {table.schema.names}, and batch 0 has {writer.schema.names}")
                writer.write_table(table.cast(writer.schema))
            except (ValueError, TypeError) as error:
                raise ValueError(f"batch {number} cannot be scored: {error}") from error
        if writer is None:
            raise ValueError(
                "batches is empty; expected at least one batch: if the source is a generator, which can be "
                "iterated over only once, pass the function that makes it."
            )


def _column(values: Any) -> Any:
    """Return a column as Arrow takes it, such as one of polars."""
    return values.to_arrow() if hasattr(values, "to_arrow") else values
