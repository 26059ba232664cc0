"""Actors of Ray that train together, and tasks that score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees.estimators.on_tables import Outcome, TableFit, columns_to_score, require_rows, with_scores
from ranktrees.processes.communicator import RankError
from ranktrees.processes.sockets import listen_at

if TYPE_CHECKING:
    import socket

    from ray.data import Dataset


def fit(
    model: Any,
    rows: Dataset,
    *,
    label: str,
    n_ranks: int,
    qid: str | None = None,
    features: Sequence[str] | None = None,
    sample_weight: str | None = None,
    validation: str | None = None,
    timeout: float = 300.0,
    num_cpus: float = 1,
) -> Any:
    """Fit a model to the rows of a data set, which are never collected in one place.

    Parameters
    ----------
    model : estimator
        The ranker, regressor or classifier. It is fitted, and stays as it was if that fails.
    rows : ray.data.Dataset
        The rows. Only the columns that are named or features are read. Nulls are missing values. Rows in
        other forms become a data set by `ray.data.from_pandas_refs` and functions like it.
    label : str
        The name of the column with the labels.
    n_ranks : int
        The number of ranks, each an actor. One for each node is a good start.
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
        The number of seconds that a rank waits for the others, and that Ray may take to place all of them.
    num_cpus : float, default=1
        The number of processors of each rank. Ray spreads the ranks over the nodes.

    Returns
    -------
    model : estimator
        The same estimator, fitted.

    Raises
    ------
    ImportError
        If Ray is not installed.
    TypeError, ValueError
        If an argument is invalid, before rows are read, or as ``fit`` of the estimator does.
    RankError
        If Ray has no room for the ranks, or if one of them is gone or does not answer within ``timeout``.

    Notes
    -----
    With query ids the model is the one that a single process trains on all rows, sorted by query id and then
    by the features and the other columns, in their order. It has the same bytes for any number of ranks and
    any blocks. Without ids, rows are numbered as they are in the data set.

    A rank that is lost ends the fit with a `RankError`. With ``checkpoint`` on a file system that the nodes
    share, the next fit goes on from there. Callbacks are refused. What ``verbose`` prints, and warnings but
    those of the first rank, are in the logs of Ray. ``oob_prediction_`` of a forest is not kept.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, ray
    >>> rows = data.read_parquet("rows")  # by ray.data  # doctest: +SKIP
    >>> ranker = ray.fit(LambdaMARTRanker(), rows, label="grade", qid="query", n_ranks=4)  # doctest: +SKIP
    >>> ranker.save("ranker.rkt")  # doctest: +SKIP
    """
    ray = _ray_for(rows)
    job = TableFit.of(
        model,
        rows.columns() or [],
        n_ranks,
        timeout,
        label=label,
        qid=qid,
        features=features,
        sample_weight=sample_weight,
        validation=validation,
    )
    shards = _dealt(rows.select_columns(job.columns.names), qid, n_ranks)
    with _placed(n_ranks, num_cpus, job.timeout) as ranks:
        address = ray.get(ranks[0].listen.remote())
        running = [
            rank.run.remote(job, number, address, shards[number], num_cpus)
            for number, rank in enumerate(ranks)
        ]
        outcomes = []
        for number, result in enumerate(running):
            try:
                outcomes.append(ray.get(result))
            except ray.exceptions.RayError as error:
                outcomes.append(Outcome(number, error=RankError(f"rank {number} is gone: {error}")))
    return job.finish(outcomes)


def score(
    model: Any,
    rows: Dataset,
    *,
    features: Sequence[str] | None = None,
    column: str = "score",
    **options: Any,
) -> Dataset:
    """Add a column with the scores of a model to a data set.

    Parameters
    ----------
    model : estimator or Ensemble
        The fitted model.
    rows : ray.data.Dataset
        The rows.
    features : sequence of str, default=None
        The names of the columns of features, in the order of fit. If None, the names that the model knows.
    column : str, default="score"
        The name of the new column.
    **options
        Options of ``map_batches`` of the data set, such as ``batch_size`` and ``num_cpus``.

    Returns
    -------
    ray.data.Dataset
        The rows with the column of scores. As anywhere in Ray Data, they are computed when they are needed.

    Raises
    ------
    ImportError
        If Ray is not installed.
    ValueError
        If a column is missing, or the new one exists.

    Examples
    --------
    >>> from ranktrees import ray
    >>> ray.score(ranker, rows, num_cpus=4).write_parquet("scored")  # doctest: +SKIP
    """
    _ray_for(rows)
    chosen = columns_to_score(model, rows.columns() or [], features, column)
    scored = partial(with_scores, model=model, features=chosen, column=column)
    return rows.map_batches(scored, batch_format="pyarrow", **options)


class Rank:
    """An actor that is a rank. Ray places it, and ends it with the fit."""

    server: socket.socket | None = None

    def listen(self) -> tuple[str, int]:
        """On the first rank: return the address at which it listens."""
        host = _ray().util.get_node_ip_address()
        self.server = listen_at(host)
        return host, self.server.getsockname()[1]

    def run(
        self, job: TableFit, rank: int, address: tuple[str, int], shard: Sequence[Any], num_cpus: float
    ) -> Outcome:
        """Fit to rows of some blocks, with the other ranks."""
        tables = [_ray().get(block).slice(first, n_rows) for block, first, n_rows in shard]
        return job.run(rank, address, self.server, num_cpus, tables)


@contextmanager
def _placed(n_ranks: int, num_cpus: float, timeout: float) -> Iterator[list[Any]]:
    """Yield actors that Ray has placed all together, spread over the nodes."""
    ray = _ray()
    from ray.util.placement_group import placement_group, remove_placement_group
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    group = placement_group([{"CPU": num_cpus}] * n_ranks, strategy="SPREAD")
    try:
        if not group.wait(timeout):
            raise RankError(
                f"Ray has not placed {n_ranks} ranks of {num_cpus} processors within {timeout:g} s; expected "
                f"room in the cluster, which has {ray.cluster_resources().get('CPU', 0):g} processors: take "
                "fewer ranks, or a smaller num_cpus."
            )
        actor = ray.remote(Rank)
        yield [
            actor.options(
                num_cpus=num_cpus,
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    group, placement_group_bundle_index=number
                ),
            ).remote()
            for number in range(n_ranks)
        ]
    finally:
        remove_placement_group(group)  # which ends the actors


def _dealt(rows: Dataset, qid: str | None, n_ranks: int) -> list[list[tuple[Any, int, int]]]:
    """Divide rows among ranks, about as many for each: whole queries, if there are any.

    Returns, for each rank, the blocks that it has rows of, and the first of these and their number in each.
    """
    ray = _ray()
    blocks = (rows if qid is None else rows.sort(qid)).materialize().to_arrow_refs()
    queries_of = ray.remote(_queries_of)
    ends: list[int] = []
    firsts, last = [0], None
    for n_rows, ids, ends_here in ray.get([queries_of.remote(block, qid) for block in blocks]):
        if ids and ends and ids[0] == last:  # the last query of the block before goes on
            ends.pop()
        ends += [firsts[-1] + end for end in ends_here]
        last = ids[-1] if ids else last
        firsts.append(firsts[-1] + n_rows)
    if not firsts[-1]:
        raise ValueError("rows is empty; expected at least one row.")
    cuts = np.arange(1, n_ranks) * firsts[-1] // n_ranks
    if qid is not None:
        cuts = np.array(ends)[np.searchsorted(ends, cuts)]
    return [
        [
            (block, max(start - first, 0), min(stop, end) - max(start, first))
            for block, (first, end) in zip(blocks, pairwise(firsts), strict=True)
            if max(start, first) < min(stop, end)
        ]
        for start, stop in pairwise([0, *cuts.tolist(), firsts[-1]])
    ]


def _queries_of(table: Any, qid: str | None) -> tuple[int, list[Any], list[int]]:
    """Return the number of rows of a sorted block, and the ids of its queries and where these end."""
    import pyarrow.compute as pc

    if qid is None or not len(table):
        return len(table), [], []
    runs = pc.run_end_encode(table[qid].combine_chunks())
    return len(table), runs.values.to_pylist(), runs.run_ends.to_pylist()


def _ray_for(rows: Any) -> Any:
    ray = _ray()
    require_rows(
        rows, "map_batches", "a data set of Ray: make one by ray.data, as by from_pandas or read_parquet"
    )
    return ray


def _ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise ImportError('ranktrees.ray needs Ray: pip install "ranktrees[ray]"') from error
    return ray
