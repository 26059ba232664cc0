"""Tasks of Spark train one model, which is that of one process, and score where the rows are."""

import os
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from functools import partial

import pandas as pd
import pytest
from sklearn.base import clone

from ranktrees import LambdaMARTRanker, make_ranking, spark
from ranktrees.datasets import Batches
from ranktrees.spark import stages

pyspark = pytest.importorskip("pyspark")

pytestmark = pytest.mark.filterwarnings("default")  # of Spark about pandas and Python


@pytest.fixture(scope="module")
def session():
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master("local[2, 4]").config("spark.ui.enabled", "false")
        with builder.config("spark.sql.shuffle.partitions", 2).getOrCreate() as session:
            yield session


@pytest.fixture(scope="module")
def frame():
    X, y, qid = make_ranking(24, rows_per_query=8, n_features=4, random_state=0, return_X_y_qid=True)
    columns = ["a", "b", "c", "d.e"]
    return pd.DataFrame(X.astype(float).round(1), columns=columns).assign(
        grade=y, query=qid, document=range(len(y))
    )


FEATURES = ["a", "b", "c", "d.e"]
NAMED = {"label": "grade", "qid": "query", "features": FEATURES}


def ranker(**parameters):
    return LambdaMARTRanker(**{"max_iter": 5, "random_state": 0, "min_samples_leaf": 5} | parameters)


@pytest.fixture(scope="module")
def alone(frame):
    whole = frame.sort_values(["query", *FEATURES, "grade"])
    return ranker().fit(whole[FEATURES], whole["grade"], qid=whole["query"])


@pytest.fixture(scope="module")
def rows(session, frame):
    return session.createDataFrame(frame.sample(frac=1, random_state=0)).repartition(3)


@pytest.mark.parametrize("n_ranks", [1, 2])
def test_the_model_is_that_of_one_process(rows, alone, n_ranks):
    there = spark.fit(ranker(), rows, n_ranks=n_ranks, **NAMED)
    assert there.ensemble_.digest() == alone.ensemble_.digest()


def test_scores_are_those_of_the_model(rows, frame, alone):
    scored = spark.score(alone, rows.select("document", "`d.e`", "c", "b", "a", "query"))
    assert scored.columns == ["document", "d.e", "c", "b", "a", "query", "score"]
    found = scored.toPandas().sort_values("document")["score"]
    assert found.tolist() == alone.predict(frame[FEATURES]).tolist()


def test_an_error_of_a_rank_is_raised_as_it_is(rows):
    from pyspark.sql import functions

    broken = rows.withColumn("grade", functions.when(rows.query == 3, None).otherwise(rows.grade))
    with pytest.raises(ValueError, match="y") as caught:
        spark.fit(ranker(), broken, n_ranks=2, **NAMED)
    assert "On rank" in caught.value.__notes__[0]


def kill_once(marker):
    """Kill this process, unless one has been killed before."""
    with suppress(FileExistsError):
        marker.touch(exist_ok=False)
        os.kill(os.getpid(), signal.SIGKILL)


class KilledFirst(stages.TableFit):
    """A fit whose last rank is killed before it begins, the first time."""

    def run(self, rank, *args):
        if rank == 1:
            kill_once(self.estimator.checkpoint.with_suffix(".killed"))
        return super().run(rank, *args)


class KilledInBetween(stages.TableFit):
    """A fit whose last rank is killed once there is a checkpoint, the first time."""

    def run(self, rank, *args):
        checkpoint = self.estimator.checkpoint
        if rank == 1 and checkpoint.exists():
            shutil.copy(checkpoint, checkpoint.with_suffix(".found"))

        def wait_and_kill():
            while not checkpoint.exists():
                time.sleep(0.001)
            kill_once(checkpoint.with_suffix(".killed"))

        if rank == 1:
            threading.Thread(target=wait_and_kill, daemon=True).start()
        return super().run(rank, *args)


@pytest.mark.parametrize("fit", [KilledFirst, KilledInBetween])
def test_spark_starts_all_ranks_again_if_one_is_killed(rows, frame, tmp_path, monkeypatch, fit):
    monkeypatch.setattr(stages, "TableFit", fit)
    checkpoint, many = tmp_path / "ranker.checkpoint", ranker(max_iter=60, min_samples_leaf=1)
    there = clone(many).set_params(checkpoint=checkpoint, checkpoint_every=1)
    there = spark.fit(there, rows, n_ranks=2, **NAMED)
    assert checkpoint.with_suffix(".killed").exists()
    assert checkpoint.with_suffix(".found").exists() == (fit is KilledInBetween)
    whole = frame.sort_values(["query", *FEATURES, "grade"])
    alone = many.fit(whole[FEATURES], whole["grade"], qid=whole["query"])
    assert there.ensemble_.digest() == alone.ensemble_.digest()


def test_other_rows_are_refused(frame, alone):
    for call in (
        partial(spark.fit, ranker(), Batches([]), n_ranks=2, **NAMED),
        partial(spark.score, alone, frame),
    ):
        with pytest.raises(TypeError, match=r"rows is .*; expected a DataFrame of Spark"):
            call()


def test_spark_is_asked_for_where_it_is_needed(monkeypatch, alone):
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    for call in (partial(spark.fit, ranker(), None, n_ranks=2, **NAMED), partial(spark.score, alone, None)):
        with pytest.raises(ImportError, match=r'pip install "ranktrees\[spark\]"'):
            call()
