"""
How closely should splits be searched?
======================================

The exact choice is a split between any two distinct values. It takes one pass over the values, which are
sorted once. Histograms consider only a few cuts of each feature. A coarse search considers even fewer before
it searches the best features closely. Streaming histograms make their cuts from the rows of each leaf as
these pass.
"""

# %%
# The labels of `make_friedman1` follow a smooth function of five of ten features, so it matters where a cut
# lies. All five searches grow the same number of trees of the same size.

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split

from ranktrees import HistGBRTRegressor

X, y = make_friedman1(6000, n_features=10, noise=0.5, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
plain = {"max_iter": 150, "max_leaf_nodes": 16, "gradient_sampling": None, "early_stopping": False}


def fitted(**parameters):
    """Return the RMSE on the test rows and the seconds that the fit took."""
    started = time.perf_counter()
    model = HistGBRTRegressor(**plain, **parameters, random_state=0).fit(X_train, y_train)
    seconds = time.perf_counter() - started
    return np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)), seconds


searches = {
    "exact": {"split_search": "exact"},
    "full, 255 bins": {"split_search": "full"},
    "full, 15 bins": {"split_search": "full", "max_bins": 15},
    "coarse to fine": {"split_search": "coarse_to_fine"},
    "streaming, 25 bins": {"split_search": "streaming", "max_bins": 25},
}
for name, parameters in searches.items():
    error, seconds = fitted(**parameters)
    print(f"{name:18s}  RMSE {error:.3f}  {seconds:.1f} s")

# %%
# How many bins are enough? Beyond a few dozen nothing is gained: where exactly a cut lies between two rows
# that are close to each other is mostly chance.

numbers = (3, 5, 8, 15, 30, 60, 120, 255)
errors = [fitted(split_search="full", max_bins=n)[0] for n in numbers]
exact, _ = fitted(split_search="exact")

figure, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
axis.semilogx(numbers, errors, "o-", label="histograms of all bins")
axis.axhline(exact, color="grey", linestyle="--", label="exact")
axis.set(xlabel="max_bins", ylabel="RMSE, test rows")
axis.set_xticks(numbers, [str(n) for n in numbers])
axis.minorticks_off()
axis.legend()
plt.show()
