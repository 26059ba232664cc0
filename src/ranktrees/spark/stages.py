"""Stages of Spark in which tasks train together, or score."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ranktrees.estimators.on_tables import TableFit, columns_to_score, require_rows, with_scores
from ranktrees.processes.sockets import listen_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def fit(
    model: Any,
    rows: DataFrame,
    *,
    label: str,
    n_ranks: int,
    qid: str | None = None,
    features: Sequence[str] | None = None,
    sample_weight: str | None = None,
    validation: str | None = None,
    timeout: float = 300.0,
) -> Any:
    """Fit a model to the rows of a DataFrame, which are never collected in one place.

    Parameters
    ----------
    model : estimator
        The ranker, regressor or classifier. It is fitted, and stays as it was if that fails.
    rows : pyspark.sql.DataFrame
        The rows. Only the columns that are named or features are read. NULL is a missing value.
    label : str
        The name of the column with the labels.
    n_ranks : int
        The number of ranks, each a task of the stage. All of them run at the same time, on as many processors
        as ``spark.task.cpus`` says. One for each executor is a good start.
    qid : str, default=None
        The name of the column with the query ids, without which only regressors and classifiers train. All
        rows of a query go to the same rank.
    features : sequence of str, default=None
        The names of the columns of features. If None, all columns without another meaning.
    sample_weight : str, default=None
        The name of the column with the weights of rows.
    validation : str, default=None
        The name of a column of truth values: True in rows for early stopping, which are not trained on.
    timeout : float, default=300.0
        The number of seconds that a rank waits for the others.

    Returns
    -------
    model : estimator
        The same estimator, fitted.

    Raises
    ------
    ImportError
        If Spark is not installed.
    TypeError, ValueError
        If an argument is invalid, before rows are read, or as ``fit`` of the estimator does.
    RankError
        If a rank does not answer within ``timeout``.

    Notes
    -----
    With query ids the model is the one that a single process trains on all rows, sorted by query id and then
    by the features and the other columns, in their order. It has the same bytes for any number of ranks and
    any partitions. Without ids, rows are numbered as Spark deals them.

    If Spark loses a task, it starts all of them again, as often as its settings allow. With ``checkpoint`` on
    a file system that the executors share, they go on from there. Callbacks are refused. What ``verbose``
    prints, and warnings but those of the first rank, are in the logs of the executors. ``oob_prediction_`` of
    a forest is not kept.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, spark
    >>> rows = session.read.parquet("rows")  # doctest: +SKIP
    >>> ranker = spark.fit(LambdaMARTRanker(), rows, label="grade", qid="query", n_ranks=4)  # doctest: +SKIP
    >>> ranker.save("ranker.rkt")  # doctest: +SKIP
    """
    _require_spark(rows)
    job = TableFit.of(
        model,
        rows.columns,
        n_ranks,
        timeout,
        label=label,
        qid=qid,
        features=features,
        sample_weight=sample_weight,
        validation=validation,
    )
    names = job.columns.names
    numbered = _numbered(rows.select(*map(_quoted, names)))
    by_query = [] if qid is None else [str(names.index(qid))]
    stage = numbered.repartition(n_ranks, *by_query).mapInArrow(
        partial(_run_rank, job), "outcome binary", barrier=True
    )
    # Spark starts a barrier stage again only if another stage follows.
    return job.finish([pickle.loads(row.outcome) for row in stage.repartition(1).collect()])


def score(
    model: Any, rows: DataFrame, *, features: Sequence[str] | None = None, column: str = "score"
) -> DataFrame:
    """Add a column with the scores of a model to a DataFrame.

    Parameters
    ----------
    model : estimator or Ensemble
        The fitted model. Its ``n_jobs`` asks for at most ``spark.task.cpus`` threads.
    rows : pyspark.sql.DataFrame
        The rows.
    features : sequence of str, default=None
        The names of the columns of features, in the order of fit. If None, the names that the model knows.
    column : str, default="score"
        The name of the new column.

    Returns
    -------
    pyspark.sql.DataFrame
        The rows with the column of scores. As anywhere in Spark, they are computed when they are needed.

    Raises
    ------
    ImportError
        If Spark is not installed.
    ValueError
        If a column is missing, or the new one exists.

    Examples
    --------
    >>> from ranktrees import spark
    >>> spark.score(ranker, rows.select("query", "document", *features))  # doctest: +SKIP
    """
    _require_spark(rows)
    from pyspark.sql.types import DoubleType, StructField, StructType

    chosen = columns_to_score(model, rows.columns, features, column)
    schema = StructType([*rows.schema.fields, StructField(column, DoubleType())])
    return _numbered(rows).mapInArrow(partial(_score, model, chosen, column, rows.columns), schema)


def _require_spark(rows: Any) -> None:
    try:
        import pyspark.sql  # noqa: F401
    except ImportError as error:
        raise ImportError('ranktrees.spark needs Spark: pip install "ranktrees[spark]"') from error
    require_rows(
        rows, "mapInArrow", "a DataFrame of Spark: read files by spark.read, or pass frame.to_spark()"
    )


def _quoted(name: str) -> str:
    """Return the name of a column, which may have dots in it."""
    return f"`{name.replace('`', '``')}`"


def _numbered(rows: DataFrame) -> DataFrame:
    """Call columns by their numbers, as mapInArrow takes a dot in a name for a field of a column."""
    return rows.toDF(*map(str, range(len(rows.columns))))


def _named(batch: Any, names: Sequence[str]) -> Any:
    """Return a table of the rows with the names of the columns."""
    import pyarrow as pa

    return pa.Table.from_batches([batch]).rename_columns(list(names))


def _run_rank(job: TableFit, batches: Iterable[Any]) -> Iterator[Any]:
    """In a task: run a rank with the rows of a partition."""
    import pyarrow as pa
    from pyspark import BarrierTaskContext, cloudpickle

    task = BarrierTaskContext.get()
    rank = task.partitionId()
    tables = [_named(batch, job.columns.names) for batch in batches if len(batch)]
    host = task.getTaskInfos()[0].address.rsplit(":", 1)[0].strip("[]")
    server = listen_at(host) if rank == 0 else None
    ports = task.allGather("" if server is None else str(server.getsockname()[1]))
    outcome = job.run(rank, (host, int(ports[0])), server, task.cpus(), tables)
    task.barrier()  # Spark does not start a task again that has ended before another one was lost
    yield pa.RecordBatch.from_pydict({"outcome": pa.array([cloudpickle.dumps(outcome)], pa.binary())})


def _score(
    model: Any, features: Sequence[str], column: str, names: Sequence[str], batches: Iterable[Any]
) -> Iterator[Any]:
    """In a task: score the rows of a partition."""
    from pyspark import TaskContext
    from threadpoolctl import threadpool_limits

    task: Any = TaskContext.get()
    with threadpool_limits(task.cpus()):
        for batch in batches:
            yield from with_scores(_named(batch, names), model, features, column).to_batches()
