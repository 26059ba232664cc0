"""Rows of a few queries in no order, to test folds and clones of estimators on."""

import numpy as np

N_QUERIES, N_DOCUMENTS = 12, 6


def data(seed=0):
    """Interleaved queries: rows, labels and ids."""
    generator = np.random.default_rng(seed)
    qid = generator.permutation(np.repeat([f"query {i}" for i in range(N_QUERIES)], N_DOCUMENTS))
    X = generator.normal(size=(len(qid), 3))
    y = np.clip(np.round(X[:, 0] + generator.normal(size=len(qid)) + 1), 0, 4)
    return X, y, qid
