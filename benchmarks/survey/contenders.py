"""What is compared: the survey's learners, by this package, and what other packages have beside them.

Its names: GBRT boosts regression trees of limited depth; SGBRT draws half of the rows for each tree; kSGBRT
looks at a fifth of the features in each split, and at all rows; RF is a forest of deep trees; IGBRT boosts
from the predictions of a forest. Here each may choose its depth and number of trees on validation queries.
"""

from itertools import pairwise

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.preprocessing import QuantileTransformer
from sklearn.svm import LinearSVC

from ranktrees import HistGBRTClassifier, HistGBRTRegressor, OrdinalRanker, RandomForestRanker

from .lab import Contender, averaged

ROUNDS = (10, 25, 50, 75, 100, 150, 200, 300)
RATE = 0.1
DEPTHS = (3, 5)
LEAVES = (1, 10)
N_FOREST_TREES = 100
N_FIRST_TREES = 50  # of a forest that boosting starts from


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


def boosted(depth, kind=HistGBRTRegressor, **parameters):
    """Boosting as the survey describes it: whole layers, all rows."""
    plain = {"learning_rate": RATE, "max_leaf_nodes": None, "max_features": 1.0, "gradient_sampling": None}
    plain |= {"max_iter": ROUNDS[-1], "max_depth": depth, "random_state": 0, "n_jobs": 1}
    plain["exact_subsample"] = True
    return kind(**(plain | parameters))


def forest(leaf, share, n_trees=N_FOREST_TREES):
    return RandomForestRanker(n_trees, min_samples_leaf=leaf, max_features=share, random_state=0, n_jobs=1)


def contender(name, models, parameter="max_iter", rounds=ROUNDS):
    return Contender(name, tuple(models), rounds, parameter)


def ordinal(of, name):
    """Ordinal classification by what another one takes for regression."""
    return Contender(
        name,
        tuple(OrdinalRanker(model) for model in of.candidates),
        of.rounds,
        f"estimator__{of.parameter}",
    )


STOCHASTIC = {"subsample": 0.5}
SAMPLED = {"max_features": 0.2}

SVM = Contender("SVMrank", tuple(LinearSVMRank(C) for C in (0.001, 0.01, 0.1, 1.0)))
GBRT = contender("GBRT", [boosted(depth) for depth in DEPTHS])
SGBRT = contender("SGBRT", [boosted(depth, **STOCHASTIC) for depth in DEPTHS])
KSGBRT = contender("kSGBRT", [boosted(depth, **SAMPLED) for depth in DEPTHS])
AVERAGED = averaged(KSGBRT, "kSGBRT, average of 5")
RF = Contender("RF", tuple(forest(leaf, 0.1) for leaf in LEAVES))


def initialised(name, leaves=LEAVES, starts=("oob",), **parameters):
    """Boosting from a forest: from its out-of-bag scores, or (None) from what it says of its rows."""
    return contender(
        name,
        [
            boosted(4, init=forest(leaf, 0.1, N_FIRST_TREES), init_cv=start, **parameters)
            for leaf in leaves
            for start in starts
        ],
    )


IGBRT = initialised("IGBRT")
IKSGBRT = initialised("IGBRT, sampled", **SAMPLED)
IAVERAGED = averaged(IKSGBRT, "IGBRT, sampled, average of 5")

LOGISTIC = Contender(
    "kSGBRT, logistic",
    tuple(OrdinalRanker(boosted(depth, HistGBRTClassifier, **SAMPLED)) for depth in DEPTHS),
    ROUNDS,
    "estimator__max_iter",
)


def peers():
    """Regression by other packages, tuned in the same way."""
    found = [
        Contender(
            "scikit-learn forest",
            tuple(
                RandomForestRegressor(
                    N_FOREST_TREES, min_samples_leaf=leaf, max_features=0.1, random_state=0, n_jobs=1
                )
                for leaf in LEAVES
            ),
        ),
        contender(
            "scikit-learn GradientBoosting",
            [
                GradientBoostingRegressor(
                    n_estimators=ROUNDS[-1],
                    learning_rate=RATE,
                    max_depth=depth,
                    random_state=0,
                    **STOCHASTIC,
                    max_features=0.2,
                )
                for depth in DEPTHS
            ],
            "n_estimators",
        ),
    ]
    try:
        from lightgbm import LGBMRegressor

        found.append(
            contender(
                "LightGBM L2",
                [
                    LGBMRegressor(
                        n_estimators=ROUNDS[-1],
                        learning_rate=RATE,
                        num_leaves=leaves,
                        n_jobs=1,
                        verbose=-1,
                        random_state=0,
                        **sampling,
                    )
                    for leaves in (7, 15)
                    for sampling in (
                        {},
                        {"subsample": 0.7, "subsample_freq": 1, "feature_fraction_bynode": 0.3},
                    )
                ],
                "n_estimators",
            )
        )
    except ImportError:
        pass
    try:
        from xgboost import XGBRegressor

        found.append(
            contender(
                "XGBoost squared error",
                [
                    XGBRegressor(
                        n_estimators=ROUNDS[-1],
                        learning_rate=RATE,
                        max_depth=depth,
                        n_jobs=1,
                        random_state=0,
                        **sampling,
                    )
                    for depth in DEPTHS
                    for sampling in ({}, {"subsample": 0.7, "colsample_bynode": 0.3})
                ],
                "n_estimators",
            )
        )
    except ImportError:
        pass
    try:
        from catboost import CatBoostRegressor

        plain = {"thread_count": 1, "verbose": False, "allow_writing_files": False, "random_state": 0}
        found.append(
            contender(
                "CatBoost RMSE",
                [
                    CatBoostRegressor(iterations=ROUNDS[-1], learning_rate=rate, depth=depth, **plain)
                    for depth in DEPTHS
                    for rate in (0.05, RATE)
                ],
                "iterations",
            )
        )
        found.append(
            contender(
                "CatBoost RMSE, slower",
                [
                    CatBoostRegressor(iterations=600, learning_rate=0.03, depth=depth, rsm=share, **plain)
                    for depth in (4, 6)
                    for share in (0.3, 1.0)
                ],
                "iterations",
                (100, 200, 300, 400, 500, 600),
            )
        )
    except ImportError:
        pass
    return found
