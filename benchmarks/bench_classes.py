"""Several classes: accuracy, log loss and time, beside LightGBM and scikit-learn.

    python benchmarks/bench_classes.py [--rounds 300] [--rate 0.05] [--repeats 3]

The digits of scikit-learn (1,797 rows, 64 features, 10 classes), and two synthetic sets of covtype's shape:
20,000 rows, 54 features, 7 uneven classes. All models have 31 leaves, the same rate and rounds, one thread,
and the other settings of their library. Figures are means over the repeats, each with another split into
training rows (three fifths) and test rows; of milliseconds, the least.
"""

import argparse
import os
import time

os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from lightgbm import LGBMClassifier
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import accuracy_score, log_loss
from sklearn.model_selection import train_test_split

from ranktrees import HistGBRTClassifier

SHARES = np.array([0.36, 0.48, 0.06, 0.01, 0.02, 0.03, 0.04])


def corners():
    """Three clouds of rows for each class, at the corners of a cube, with noise and wrong labels."""
    kinds = {"n_informative": 12, "n_redundant": 6, "n_classes": 7, "n_clusters_per_class": 3}
    return make_classification(20_000, 54, **kinds, flip_y=0.05, weights=SHARES, random_state=0)


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
    return np.hstack(columns), y


SETS = {"digits": lambda: load_digits(return_X_y=True), "corners": corners, "flags": flags}


def models(rounds, rate, seed):
    """By name: a classifier."""
    same = {"learning_rate": rate, "random_state": seed}
    return {
        "ranktrees": HistGBRTClassifier(max_iter=rounds, n_jobs=1, **same),
        "LightGBM": LGBMClassifier(n_estimators=rounds, n_jobs=1, verbose=-1, force_col_wise=True, **same),
        "scikit-learn": HistGradientBoostingClassifier(max_iter=rounds, early_stopping=False, **same),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    options = parser.parse_args()
    print("| rows | library | accuracy | log loss | ms per round |\n|---|---|---|---|---|")
    for kind in options.sets:
        X, y = SETS[kind]()
        figures = {}
        for seed in range(options.repeats):
            X_train, X_test, y_train, y_test = train_test_split(
                X, y, test_size=0.4, stratify=y, random_state=seed
            )
            for name, model in models(options.rounds, options.rate, seed).items():
                started = time.process_time()
                model.fit(X_train, y_train)
                taken = 1e3 * (time.process_time() - started) / options.rounds
                p = model.predict_proba(X_test)
                said = accuracy_score(y_test, model.classes_[p.argmax(axis=1)]), log_loss(y_test, p), taken
                figures.setdefault(name, []).append(said)
        for name, found in figures.items():
            (accuracy, loss, _), fastest = np.mean(found, axis=0), np.min(found, axis=0)[2]
            print(f"| {kind} | {name} | {accuracy:.4f} | {loss:.4f} | {fastest:.2f} |", flush=True)


if __name__ == "__main__":
    main()
