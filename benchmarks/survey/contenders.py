"""The thesis' learners, with its settings; where they are smaller here, the page says so.

GBRT boosts trees of eight leaves; SGBRT draws a share of the rows for each tree; kSGBRT draws features for
each split, of all rows; NkSGBRT is the mean of runs of kSGBRT; RF is a forest of full trees; IGBRT boosts
from what a forest says of its own rows.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.preprocessing import QuantileTransformer
from sklearn.svm import LinearSVC

from ranktrees import HistGBRTRegressor, RandomForestRanker

from .lab import Contender

SHARE = 0.1  # of the features, among which a split of a forest or of kSGBRT chooses
N_TREES = 500  # that are boosted
N_FOREST_TREES = 300
N_RUNS = 5
CART = {"split_search": "exact", "min_samples_leaf": 1, "random_state": 0, "n_jobs": 1}


def boosted(**parameters):
    """Algorithm 3; the thesis counts levels of nodes, and has four of them."""
    plain = {"max_iter": N_TREES, "learning_rate": 0.1, "max_depth": 3, "max_leaf_nodes": None, "init": 0.0}
    plain |= {"max_features": 1.0, "gradient_sampling": None, "exact_subsample": True}
    return HistGBRTRegressor(**(plain | CART | parameters))


def forest(n_trees=N_FOREST_TREES, **parameters):
    """Algorithm 1."""
    return RandomForestRanker(n_trees, max_features=SHARE, **(CART | parameters))


def initialised(**parameters):
    """Algorithm 4, with half as many boosted trees, as in the thesis."""
    return boosted(max_iter=N_TREES // 2, init=forest(), **parameters)


class LinearSVMRank(RegressorMixin, BaseEstimator):
    """A linear SVM over differences of two rows of a query with different labels, as SVMrank learns.

    Features are first replaced by their ranks among the training rows.
    """

    def __init__(self, C=1.0, n_pairs=60_000, random_state=None):
        self.C = C
        self.n_pairs = n_pairs
        self.random_state = random_state

    def fit(self, X, y):
        random = np.random.default_rng(self.random_state)
        self.ranks_ = QuantileTransformer(n_quantiles=200, random_state=0).fit(X)
        qid, y = y.index.to_numpy(), y.to_numpy()
        starts = np.flatnonzero(np.r_[True, qid[1:] != qid[:-1], True])
        pairs = np.concatenate(
            [np.argwhere(y[start:stop, None] > y[start:stop]) + start for start, stop in pairwise(starts)]
        )
        if len(pairs) > self.n_pairs:
            pairs = pairs[random.choice(len(pairs), self.n_pairs, replace=False)]
        rows = self.ranks_.transform(X)
        sign = random.choice([-1.0, 1.0], len(pairs))
        differences = sign[:, None] * (rows[pairs[:, 0]] - rows[pairs[:, 1]])
        svm = LinearSVC(C=self.C, fit_intercept=False, dual=False, tol=1e-3)
        self.coef_ = svm.fit(differences, sign).coef_[0]
        return self

    def predict(self, X):
        return self.ranks_.transform(X) @ self.coef_


GBRT = Contender("GBRT", boosted())
SGBRT = Contender("SGBRT", boosted(subsample=0.2))
KSGBRT = Contender("kSGBRT", boosted(max_features=SHARE))
NKSGBRT = Contender("NkSGBRT", boosted(max_features=SHARE, learning_rate=0.2), n_runs=N_RUNS)
RF = Contender("RF", initialised(), stages=(0, 1))  # what IGBRT starts from
IGBRT = Contender("IGBRT", initialised())
SVM = Contender("SVMrank", LinearSVMRank())

LEARNERS = (GBRT, SGBRT, KSGBRT, NKSGBRT, RF, IGBRT)
CLASSIFIERS = tuple(replace(one, name=f"{one.name}(C)", classes=True) for one in LEARNERS)
