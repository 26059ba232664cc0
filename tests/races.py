"""Trains and scores on several threads, in all ways that have kernels of their own (`scripts/test-races`)."""

import warnings

import numpy as np
import scipy.sparse as sp

from ranktrees import (
    HistGBRTClassifier,
    HistGBRTRegressor,
    LambdaMARTRanker,
    RandomForestRanker,
    make_ranking,
)

MODELS = [
    LambdaMARTRanker(max_iter=4),
    LambdaMARTRanker("ranknet", max_iter=3),
    LambdaMARTRanker("listnet", max_iter=3),
    LambdaMARTRanker(max_iter=4, early_stopping=True, query_subsample=0.5, noise=1.0),
    LambdaMARTRanker(max_iter=4, step="optimal"),
    HistGBRTRegressor(max_iter=4, split_search="full", subsample=0.5, categorical_features=[0]),
    HistGBRTRegressor(max_iter=4, split_search="coarse_to_fine"),
    HistGBRTRegressor(max_iter=2, split_search="exact"),
    HistGBRTRegressor(max_iter=2, split_search="streaming"),
    HistGBRTRegressor("absolute_error", max_iter=3),
    HistGBRTClassifier(max_iter=2),
    RandomForestRanker(4, oob_score=True),
]


def main():
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    X, y, qid = make_ranking(120, rows_per_query=60, n_features=70, random_state=0, return_X_y_qid=True)
    X[:, 0] = rng.integers(0, 40, len(X))
    sparse = sp.csr_array(np.where(rng.random(X.shape) < 0.8, 0, X))
    X[rng.random(X.shape) < 0.05] = np.nan
    for model in MODELS:
        for rows in (X, sparse):
            if rows is sparse and model.get_params().get("categorical_features"):
                continue
            for n_jobs in (2, 3):
                model.set_params(n_jobs=n_jobs, random_state=0).fit(rows, y, qid=qid)
                model.predict(rows)
                model._ensembles[0].leaves(rows)
        print(model, flush=True)


if __name__ == "__main__":
    main()
