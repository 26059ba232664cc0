"""joblib gives the same results on Dask's workers as here; and fits on rows that all workers have."""

import socket
import threading
import time
from types import SimpleNamespace

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from ranktrees import LambdaMARTRanker, QueryKFold, RandomForestRanker, make_ranking
from ranktrees.processes.communicator import RankError, active_driver

pytest.importorskip("distributed")

import distributed

from ranktrees.dask import DaskRows
from ranktrees.dask import backend as dask


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=3, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def rows():
    X, y, qid = make_ranking(30, rows_per_query=10, n_features=8, random_state=0, return_X_y_qid=True)
    return X, pd.Series(y, index=pd.Index(qid, name="qid"))


def test_a_search(client, rows):
    grid = {"max_leaf_nodes": [3, 8]}

    def search():
        return GridSearchCV(LambdaMARTRanker(max_iter=5, random_state=0), grid, cv=QueryKFold(3)).fit(*rows)

    alone = search()
    with joblib.parallel_config("dask", client=client):
        there = search()
    assert np.array_equal(there.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
    assert there.best_estimator_.ensemble_.digest() == alone.best_estimator_.ensemble_.digest()


def test_every_door_of_joblib(client):
    tasks = [joblib.delayed(abs)(-i) for i in range(5)]
    with client.as_current():
        assert joblib.Parallel(2, backend="dask_rows")(tasks) == [0, 1, 2, 3, 4]
        with joblib.parallel_backend("dask_rows"):
            assert joblib.Parallel()(tasks) == [0, 1, 2, 3, 4]
    assert joblib.Parallel(2, backend=DaskRows(client=client))(tasks) == [0, 1, 2, 3, 4]


def test_a_forest(client, rows):
    forest = RandomForestRanker(n_estimators=8, n_jobs=2, random_state=0)
    alone = forest.fit(*rows).ensemble_.digest()
    with joblib.parallel_config("dask", client=client):
        assert forest.fit(*rows).ensemble_.digest() == alone


@pytest.fixture
def backend(client):
    with joblib.parallel_config("dask_rows", client=client, timeout=1):
        yield active_driver()


def put_together(ranks, shard, n):
    own = np.arange(n) + shard
    return (
        ranks.allreduce(own.copy()).tolist(),
        ranks.allreduce(own.astype(float), "max").tolist(),
        ranks.reduce_scatter(own, [1, 0, n - 1]).tolist(),
        ranks.alltoall([(ranks.rank, other) for other in range(ranks.size)]),
        ranks.bcast(ranks.rank, root=2),
    )


def test_rows_on_all_workers(backend):
    numbers = np.arange(5)
    total = (3 * numbers + 30).tolist()
    assert isinstance(backend, DaskRows)
    assert backend.n_ranks == 3
    for rank, got in enumerate(backend.run_rows(put_together, [0, 10, 20], 5)):
        everyone = [(other, rank) for other in range(3)]
        part = [total[:1], [], total[1:]][rank]
        assert got == (total, (numbers + 20).tolist(), part, everyone, 2)
    with pytest.raises(ValueError, match="2 shards for 3 workers"):
        backend.run_rows(print, [1, 2])


def test_gangs_do_not_mix(client, backend):
    sums = {}

    def train(k):
        with joblib.parallel_config("dask_rows", client=client):
            sums[k] = active_driver().run_rows(
                lambda ranks, _: int(ranks.allreduce(np.array([k]))[0]), [0] * 3
            )

    threads = [threading.Thread(target=train, args=[k]) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == {k: [3 * k] * 3 for k in range(3)}


def go_wrong(ranks, _, rank, how):
    ranks.at("tree 3")
    ranks.allgather(0)
    if ranks.rank == rank:
        if how == "error":
            raise KeyError("boom")
        if how == "step":
            ranks.at("tree 4")
        if how == "gone":
            ranks.close()
        if how == "late":
            time.sleep(1.5)
    ranks.allgather(0)


@pytest.mark.parametrize(
    ("rank", "how", "said"),
    [
        (0, "error", "boom"),
        (2, "error", "boom"),
        (0, "step", "rank 0 is at 'tree 4' .*, rank 1 is at 'tree 3'"),
        (2, "step", "rank 0 is at 'tree 3' .*, rank 2 is at 'tree 4'"),
        (1, "late", "rank 1 did not reach 'tree 3' within 1 s"),
    ],
)
def test_a_fault_is_an_error_on_all_and_the_next_fit_goes_well(backend, rank, how, said):
    with pytest.raises((KeyError, RankError), match=said) as caught:
        backend.run_rows(go_wrong, [0] * 3, rank, how)
    assert isinstance(caught.value, KeyError) == (how == "error")
    assert backend.run_rows(lambda ranks, _: ranks.allgather(ranks.rank), [0] * 3) == [[0, 1, 2]] * 3


@pytest.mark.parametrize("rank", [0, 2])
def test_a_rank_that_is_gone(backend, rank):
    with pytest.raises((RankError, OSError)):
        backend.run_rows(go_wrong, [0] * 3, rank, "gone")


def test_nobody_listens_any_more_where_rank_0_has_not_begun(client, backend, monkeypatch):
    def fail(*_, **__):
        raise OSError("the network is down")

    monkeypatch.setattr(client, "submit", fail)
    with pytest.raises(OSError, match="the network is down"):
        backend.run_rows(print, [0] * 3)
    assert dask._servers == {}  # the workers are threads of this process


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("inproc://192.0.2.1/123/1", "127.0.0.1"),
        ("tcp://127.0.0.1:4000", "127.0.0.1"),
        ("tls://localhost:4000", "localhost"),
        ("tcp://[::1]:4000", "::1"),
    ],
)
def test_rank_0_is_where_others_know_the_worker(address, host):
    found, port = dask.listen("key", SimpleNamespace(address=address))
    try:
        assert found == host
        socket.create_connection((found, port), timeout=10).close()
    finally:
        dask.listen_no_more("key")
