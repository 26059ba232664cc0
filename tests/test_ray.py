"""Actors of Ray train one model, which is that of one process, and tasks score where the rows are."""

import os
import signal
import sys
from functools import partial

import pandas as pd
import pytest

from ranktrees import LambdaMARTRanker, make_ranking
from ranktrees import ray as ranks
from ranktrees.datasets import Batches
from ranktrees.processes import RankError
from ranktrees.ray import actors

ray = pytest.importorskip("ray")
data = pytest.importorskip("ray.data")

pytestmark = pytest.mark.filterwarnings("default")  # of Ray about what it will change


@pytest.fixture(scope="module", autouse=True)
def cluster():
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ray.init(num_cpus=3, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": path})
    yield
    ray.shutdown()


FEATURES = ["a", "b", "c", "d"]
NAMED = {"label": "grade", "qid": "query", "features": FEATURES}


@pytest.fixture(scope="module")
def frame():
    X, y, qid = make_ranking(24, rows_per_query=8, n_features=4, random_state=0, return_X_y_qid=True)
    return pd.DataFrame(X.astype(float).round(1), columns=FEATURES).assign(
        grade=y, query=qid, document=range(len(y))
    )


def ranker(**parameters):
    return LambdaMARTRanker(**{"max_iter": 5, "random_state": 0, "min_samples_leaf": 5} | parameters)


@pytest.fixture(scope="module")
def alone(frame):
    whole = frame.sort_values(["query", *FEATURES, "grade"])
    return ranker().fit(whole[FEATURES], whole["grade"], qid=whole["query"])


@pytest.fixture(scope="module")
def rows(frame):
    mixed = frame.sample(frac=1, random_state=0)
    return data.from_pandas([mixed[:50], mixed[50:70], mixed[70:]])


@pytest.mark.parametrize("n_ranks", [1, 2])
def test_the_model_is_that_of_one_process(rows, alone, n_ranks):
    there = ranks.fit(ranker(), rows, n_ranks=n_ranks, **NAMED)
    assert there.ensemble_.digest() == alone.ensemble_.digest()


def test_each_rank_has_whole_queries_and_about_as_many_rows(rows):
    def tables(qid):
        dealt = actors._dealt(rows, qid, 3)
        return [[ray.get(block)[first : first + n] for block, first, n in shard] for shard in dealt]

    queries = [
        [value for table in shard for value in table["query"].to_pylist()] for shard in tables("query")
    ]
    assert [len(some) for some in queries] == [64, 64, 64]
    in_order = [query for some in queries for query in some]
    assert in_order == sorted(in_order)
    assert [len(set(some)) for some in queries] == [8, 8, 8]
    assert [sum(map(len, shard)) for shard in tables(None)] == [64, 64, 64]


def test_scores_are_those_of_the_model(rows, frame, alone):
    scored = ranks.score(alone, rows, batch_size=40).to_pandas().sort_values("document")
    assert scored["score"].tolist() == alone.predict(frame[FEATURES]).tolist()


def test_an_error_of_a_rank_is_raised_as_it_is(frame):
    broken = frame.assign(grade=frame["grade"].where(frame["query"] != 3))
    with pytest.raises(ValueError, match="y") as caught:
        ranks.fit(ranker(), data.from_pandas(broken), n_ranks=2, **NAMED)
    assert "On rank" in caught.value.__notes__[0]


class Killed(actors.Rank):
    def run(self, job, rank, *args):
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(job, rank, *args)


def test_a_rank_that_is_killed_ends_the_fit_and_the_next_goes_well(rows, alone, monkeypatch):
    model = ranker()
    with monkeypatch.context() as patch:
        patch.setattr(actors, "Rank", Killed)
        with pytest.raises(RankError, match="rank 1 "):
            ranks.fit(model, rows, n_ranks=2, timeout=5, **NAMED)
    assert not hasattr(model, "ensemble_")
    assert ranks.fit(model, rows, n_ranks=2, **NAMED).ensemble_.digest() == alone.ensemble_.digest()


def test_ranks_for_which_there_is_no_room(rows):
    with pytest.raises(
        RankError, match="Ray has not placed 2 ranks of 5 processors within 1 s; expected room"
    ):
        ranks.fit(ranker(), rows, n_ranks=2, num_cpus=5, timeout=1, **NAMED)


def test_missing_ids_are_refused(frame):
    missing = frame.assign(query=frame["query"].where(frame["query"] != 3).astype("Int64"))
    with pytest.raises(ValueError, match=r"qid is missing .*; expected an id in every row"):
        ranks.fit(ranker(), data.from_pandas(missing), n_ranks=2, **NAMED)


def test_other_rows_are_refused(frame, alone):
    for call in (
        partial(ranks.fit, ranker(), Batches([]), n_ranks=2, **NAMED),
        partial(ranks.score, alone, frame),
    ):
        with pytest.raises(TypeError, match=r"rows is .*; expected a data set of Ray"):
            call()


def test_ray_is_asked_for_where_it_is_needed(monkeypatch, alone):
    monkeypatch.setitem(sys.modules, "ray.data", None)
    for call in (partial(ranks.fit, ranker(), None, n_ranks=2, **NAMED), partial(ranks.score, alone, None)):
        with pytest.raises(ImportError, match=r'pip install "ranktrees\[ray\]"'):
            call()
