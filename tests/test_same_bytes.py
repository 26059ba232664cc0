"""Models have the bytes that they had when the digests below were written, on another machine.

Other tests compare threads, ranks and widths of registers on one machine. These compare machines,
compilers, and releases of Python and NumPy. If a model is meant to change, run this file as a program and
replace the table by what it prints.
"""

import hashlib
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone

from ranktrees import (
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    OrdinalRanker,
    RandomForestRanker,
)
from reference.sampling import random

N_QUERIES, N_FEATURES = 40, 12
COMMON = {"random_state": 1, "n_jobs": 2}


@cache
def rows():
    """(X, y, qid) by sums and products that are exact, so that they are the same everywhere."""
    sizes = [1 + random(0, 0, query) % 50 for query in range(N_QUERIES)]
    n = sum(sizes)
    drawn = [[random(1, column, row) >> 40 for column in range(N_FEATURES)] for row in range(n)]
    X = np.array(drawn, np.float32) / np.float32(2**24)
    X[:, 1] = np.floor(X[:, 1] * 6)  # levels of a category
    X[:, 2] = np.floor(X[:, 2] * 40) / 4
    X[X[:, 3] < 0.4, 3] = 0
    X[X[:, 4] > 0.7, 4] = np.nan
    noise = np.array([random(2, 0, row) >> 40 for row in range(n)]) / 2**24
    worth = X[:, 0] + X[:, 3] + X[:, 2] / 10 + np.isnan(X[:, 4]) + (X[:, 1] == 4) + 2 * noise
    return X, np.digitize(worth, [2.0, 2.75, 3.5, 4.25]), np.repeat(np.arange(N_QUERIES), sizes)


def ranker(loss="lambdamart", **parameters):
    return LambdaMARTRanker(loss, **{"max_iter": 5, "max_leaf_nodes": 12, **COMMON, **parameters})


def regressor(loss="squared_error", **parameters):
    return HistGBRTRegressor(loss, **{"max_iter": 5, "max_leaf_nodes": 12, **COMMON, **parameters})


def forest(**parameters):
    return RandomForestRanker(5, **COMMON, **parameters)


ON_OTHER_QUERIES = {"step": "optimal", "step_rows": "validation", "step_interval": (0.1, 100.0)}
OF_MEANS = {"step": "optimal", "split_criterion": "squared_error", "leaf_values": "mean"}
MEASURES = ("ndcg", "err@10", "map", "mrr", "auc", "p@5", "top_auc@[0,5]", "kendall_tau", "recall@10")
KINDS = {
    "lambdamart": ranker(),
    **{f"by {measure}": ranker(measure=measure) for measure in MEASURES},
    **{loss: ranker(loss) for loss in ("lambdaloss", "gbrank", "listnet", "xendcg", "query_rmse")},
    "ranknet": ranker("ranknet", query_norm="none", score_gap_norm=None),
    "ranknet, normed": ranker("ranknet"),
    "clicks": ranker(),
    "clicks, ranknet": ranker("ranknet"),
    "all pairs": ranker(truncation_level=None),
    "noise": ranker(noise=1.0, n_orders=3),
    "gaps of scores": ranker(score_gap_norm=0.01, query_norm="log"),
    "all rows": ranker(gradient_sampling=None, subsample=1.0),
    "some queries": ranker(query_subsample=0.5, subsample=0.6),
    "stopped early": ranker(max_iter=40, learning_rate=0.5, early_stopping=True, n_iter_no_change=3),
    "optimal steps": ranker(step="optimal"),
    "optimal steps on other queries": ranker(**ON_OTHER_QUERIES, max_iter=10, early_stopping=True),
    "optimal, shrunk steps of means": ranker(**OF_MEANS, learning_rate=0.5, subsample=0.7),
    "least squares": ranker(split_criterion="squared_error"),
    "least squares, all rows": ranker(split_criterion="squared_error", gradient_sampling=None),
    "logistic, least squares": HistGBRTClassifier(max_iter=5, split_criterion="squared_error", **COMMON),
    "least gain and hessian": ranker(min_gain_to_split=0.5, min_hessian_to_split=1.0),
    "few bins": ranker(max_bins=7),
    "coarse": ranker(split_search="coarse_to_fine"),
    "coarse, all rows": ranker(split_search="coarse_to_fine", gradient_sampling=None, max_features=1.0),
    "squared error": regressor(),
    **{loss: regressor(loss) for loss in ("absolute_error", "poisson")},
    "absolute error, some rows": regressor("absolute_error", subsample=0.5),
    "quantile": regressor("quantile", quantile=0.8),
    "logistic": HistGBRTClassifier(max_iter=5, **COMMON),
    **{search: regressor(split_search=search) for search in ("exact", "coarse_to_fine")},
    "streaming": regressor(split_search="streaming", max_bins=15),
    "pgbrt": regressor(split_search="pgbrt", max_bins=15),
    **{f"missing values {how}": regressor(handle_missing=how) for how in ("left", "right", "three_way")},
    "layer by layer": regressor(max_leaf_nodes=None, max_depth=4),
    "categories": regressor(categorical_features=[1]),
    "categories, exact": regressor(categorical_features=[1], split_search="exact"),
    "monotonic": regressor(monotonic_cst=[1, 0, 1] + [0] * (N_FEATURES - 3)),
    "interactions": regressor(interaction_cst=[{0, 1, 2, 3}, set(range(4, N_FEATURES))]),
    "costs": regressor(feature_costs=range(N_FEATURES), cost_rule="worth", cost_weight=0.01),
    "costs by rank": regressor(feature_costs=range(N_FEATURES), cost_weight=0.1),
    "from a forest": regressor(init=forest()),
    "forest": forest(),
    "forest of full depth": forest(min_samples_leaf=1, max_features=None),
    "forest, exact": forest(split_search="exact", max_samples=0.5),
    "forest of queries": forest(bootstrap_unit="query", oob_score=True),
    "ordinal": OrdinalRanker(regressor()),
    "classes": HistGBRTClassifier(max_iter=5, max_leaf_nodes=12, **COMMON),
    "classes of grades": OrdinalRanker(
        HistGBRTClassifier(balanced=True, max_iter=5, max_leaf_nodes=12, **COMMON), method="multiclass"
    ),
}


WEIGHTED = {
    "ranknet",
    "logistic",
    "classes",
    "logistic, least squares",
    "least squares, all rows",
    "poisson",
    "forest, exact",
    "coarse",
}


def with_threads(model, n_jobs):
    """Let a model, or the one in it, fit on some threads."""
    names = [name for name in ("n_jobs", "estimator__n_jobs") if name in model.get_params()]
    return clone(model).set_params(**dict.fromkeys(names, n_jobs))


def positions_of(qid):
    """Each row's place in its query, from 1."""
    return 1 + np.arange(len(qid)) - np.searchsorted(qid, qid)


def digest(kind, n_jobs=2, times=1):
    """Of the trees of a kind of model, and of what they predict; the rows come some times over."""
    X, y, qid = (np.concatenate(times * [part]) for part in rows())
    qid = np.cumsum(np.diff(qid, prepend=0) != 0)
    weight = 1 + np.arange(len(y)) % 3 if kind in WEIGHTED else None
    labels = y > 1 if kind.startswith(("logistic", "clicks")) else y
    beside = {"position": positions_of(qid)} if kind.startswith("clicks") else {}
    model = with_threads(KINDS[kind], n_jobs).fit(X, labels, qid=qid, sample_weight=weight, **beside)
    seen = hashlib.sha256(model.predict(X).tobytes())
    for each in getattr(model, "estimators_", [model]):
        for ensemble in each._ensembles:
            seen.update(ensemble.to_bytes())
    return seen.hexdigest()[:16]


DIGESTS = {
    "lambdamart": "6bde8825fe425c9c",
    "by ndcg": "299d377372cb71c3",
    "by err@10": "0ed19f3aaa5053b0",
    "by map": "7bc011e8c65044f7",
    "by mrr": "029fec4a0244dde1",
    "by auc": "9c3a1d49ece50690",
    "by p@5": "6a50e79f646a9e0f",
    "by top_auc@[0,5]": "980877b65b63fb01",
    "by kendall_tau": "26c0da3c2dedbcf3",
    "by recall@10": "63f90c627b2e23d8",
    "lambdaloss": "3ceed8a7720b1d25",
    "gbrank": "f2670e638379f6c7",
    "listnet": "8a2772060e78c9cd",
    "xendcg": "a1b01193fb763585",
    "query_rmse": "5d8fb448e2c5ad78",
    "ranknet": "715c9d66d7e6295b",
    "ranknet, normed": "1e33011340683230",
    "clicks": "d14a25e3051019c9",
    "clicks, ranknet": "77e69ae5040aec07",
    "all pairs": "a873b7bde3db7709",
    "noise": "8d7b53183da7aab1",
    "gaps of scores": "3f7f9358af83e2c5",
    "all rows": "2a90d609ccf5d0e7",
    "some queries": "c3257786b7fb712e",
    "stopped early": "2865ac56a9aea371",
    "optimal steps": "e4ce7942ce5a0892",
    "optimal steps on other queries": "4c903f9b22d05a63",
    "optimal, shrunk steps of means": "cbf731981a34aef2",
    "least squares": "1495fd8991d3e0eb",
    "least squares, all rows": "cc1a8bb507093041",
    "logistic, least squares": "96290221acea588c",
    "least gain and hessian": "6bde8825fe425c9c",
    "few bins": "9c0105ddb3e542c9",
    "coarse": "424013ec445a10a9",
    "coarse, all rows": "8bc184a00bda95ad",
    "squared error": "dba54b5f5ce64fc8",
    "absolute_error": "19a2bfcd465f4d6f",
    "poisson": "fdd0a53c54d85ebc",
    "absolute error, some rows": "f81b7d148ee249e9",
    "quantile": "920e14d7b561442b",
    "logistic": "a2dd446770956a62",
    "exact": "8a83c9e359bc1cb8",
    "coarse_to_fine": "caf732ae1f0b8864",
    "streaming": "f752bc6a63221c40",
    "pgbrt": "6fab50fbedc2c2be",
    "missing values left": "2cbfcf72ed5bdb07",
    "missing values right": "bd2de4eca726f1af",
    "missing values three_way": "93ad63414e4321e5",
    "layer by layer": "888d12307a935609",
    "categories": "ee366770f3432880",
    "categories, exact": "f2e908888296c1ec",
    "monotonic": "e1bf3fe8e9f0e37a",
    "interactions": "dfcffebb7c14e122",
    "costs": "406dcb1785032623",
    "costs by rank": "d193f5cf6f5aab0f",
    "from a forest": "2594db577544d802",
    "forest": "5a49387db706daef",
    "forest of full depth": "11127750ad8ba2fa",
    "forest, exact": "539493e9ee9437ed",
    "forest of queries": "c538abd764bab4a4",
    "ordinal": "1556660d2e91b534",
    "classes": "6c7c157c265455fe",
    "classes of grades": "f0f5fa8cf727ab38",
}


@pytest.mark.parametrize("kind", KINDS)
def test_models_have_the_bytes_that_they_had(kind):
    assert digest(kind) == DIGESTS[kind]


@pytest.fixture(scope="module")
def busy():
    """Processes that take the processors from threads in the middle of their work."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    yield
    for other in others:
        other.kill()
        other.wait()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_models_have_the_same_bytes_while_others_compute(kind, busy):
    assert len({digest(kind, n_jobs, times=5) for n_jobs in (1, 2, 3, 4, 3, 2)}) == 1


if __name__ == "__main__":
    for kind in KINDS:
        print(f"    {kind!r}: {digest(kind)!r},".replace("'", '"'))
