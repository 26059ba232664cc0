"""What joblib deals to Dask's workers is what it is here."""

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from ranktrees import LambdaMARTRanker, QueryKFold, RandomForestRanker, make_ranking

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
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


def test_a_forest(client, rows):
    forest = RandomForestRanker(n_estimators=8, n_jobs=2, random_state=0)
    alone = forest.fit(*rows).ensemble_.digest()
    with joblib.parallel_config("dask", client=client):
        assert forest.fit(*rows).ensemble_.digest() == alone
