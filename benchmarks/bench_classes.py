"""Several classes: accuracy, log loss and time, beside LightGBM and scikit-learn.

    python benchmarks/bench_classes.py [--rounds 300] [--rate 0.05] [--sets digits corners flags grades]

Five folds: the digits of scikit-learn (1,797 rows, 64 features, 10 classes), two synthetic sets of covtype's
shape (20,000 rows, 54 features, 7 uneven classes), and the three grades of MQ2008, whose folds keep queries
together. All models have 31 leaves, the same rate and rounds, one thread, and the other settings of their
library. Accuracy and log loss are means over all rows, each said of by models that have not seen it, and are
followed by what ours has more, with t of the paired test: over rows, or over the mean rows of queries.
Milliseconds are those of a processor in the fastest of the five fits.
"""

import argparse
import os
import time

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from data import folder
from lightgbm import LGBMClassifier
from scipy.stats import ttest_1samp
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import PredefinedSplit, StratifiedKFold

from ranktrees import HistGBRTClassifier

SHARES = np.array([0.36, 0.48, 0.06, 0.01, 0.02, 0.03, 0.04])
OURS = "ranktrees"


def digits():
    return _split_by_class(*load_digits(return_X_y=True))


def corners():
    """Three clouds of rows for each class, at the corners of a cube, with noise and wrong labels."""
    kinds = {"n_informative": 12, "n_redundant": 6, "n_classes": 7, "n_clusters_per_class": 3}
    return _split_by_class(
        *make_classification(20_000, 54, **kinds, flip_y=0.05, weights=SHARES, random_state=0)
    )


def flags(n_rows=20_000):
    """Ten numbers, four areas and forty soils, whose distributions differ between the classes."""
    rng = np.random.default_rng(0)
    y = rng.choice(7, n_rows, p=SHARES / SHARES.sum())
    numbers = rng.normal(size=(7, 10))[y] + rng.uniform(0.6, 1.4, (7, 10))[y] * rng.normal(size=(n_rows, 10))
    columns = [numbers.round(2)]
    for n_levels, concentration in ((4, 1.0), (40, 0.5)):
        below = rng.dirichlet(np.full(n_levels, concentration), 7).cumsum(axis=1)
        level = (rng.random((n_rows, 1)) > below[y]).sum(axis=1).clip(0, n_levels - 1)
        columns.append(np.eye(n_levels)[level])
    return _split_by_class(np.hstack(columns), y)


def grades():
    with np.load(folder() / "mq2008.npz") as data:
        return data["X"], data["y"].astype(int), PredefinedSplit(data["part"]), data["qid"]


def _split_by_class(X, y):
    return X, y, StratifiedKFold(5, shuffle=True, random_state=0), np.arange(len(y))


SETS = {make.__name__: make for make in (digits, corners, flags, grades)}


def models(rounds, rate):
    """By name: a classifier."""
    same = {"learning_rate": rate, "random_state": 0}
    return {
        OURS: HistGBRTClassifier(max_iter=rounds, n_jobs=1, **same),
        "LightGBM": LGBMClassifier(n_estimators=rounds, n_jobs=1, verbose=-1, force_col_wise=True, **same),
        "scikit-learn": HistGradientBoostingClassifier(max_iter=rounds, early_stopping=False, **same),
    }


def judged(model, X, y, splits):
    """float64[2, n_rows]: whether the class of each row was the likeliest, and its log loss; and ms a fit."""
    values, taken = np.zeros((2, len(y))), []
    for train, test in splits.split(X, y):
        started = time.process_time()
        model.fit(X[train], y[train])
        taken.append(1e3 * (time.process_time() - started))
        p = model.predict_proba(X[test])
        place = np.searchsorted(model.classes_, y[test])
        values[:, test] = p.argmax(axis=1) == place, -np.log(p[np.arange(len(test)), place].clip(1e-15))
    return values, min(taken)


def paired(differences, groups):
    """What a mean difference is, and t over the means of groups."""
    _, group = np.unique(groups, return_inverse=True)
    means = np.bincount(group, differences) / np.bincount(group)
    return f"{differences.mean():+.4f} ({ttest_1samp(means, 0).statistic:+.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    options = parser.parse_args()
    head = ("rows", "library", "accuracy", "ours more (t)", "log loss", "ours more (t)", "ms a round")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for kind in options.sets:
        X, y, splits, groups = SETS[kind]()
        ours = None
        for name, model in models(options.rounds, options.rate).items():
            values, ms = judged(model, X, y, splits)
            ours = values if ours is None else ours
            more = ["", ""] if name == OURS else [paired(one, groups) for one in ours - values]
            accuracy, loss = (f"{one.mean():.4f}" for one in values)
            cells = (kind, name, accuracy, more[0], loss, more[1], f"{ms / options.rounds:.2f}")
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
