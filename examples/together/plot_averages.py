"""
Averages of runs that differ by chance
======================================

Boosting that draws features for each split, or rows for each tree, gives another model with another seed. The
mean of such runs is mostly better than each, because what one run has learned by chance the others have not.
Mohan averages runs of what he calls kSGBRT, which draws features only, as here. The mean of sums over trees
is again a sum over trees, so all runs become one ensemble.
"""

# %%
# scikit-learn's `BaggingRegressor` fits the runs, each with a seed of its own. Here it draws no rows itself,
# and leaves chance to the trees. Query ids reach the runs through metadata routing.

import matplotlib.pyplot as plt
import numpy as np
import sklearn
from sklearn.ensemble import BaggingRegressor

from ranktrees import EnsembleRanker, HistGBRTRegressor, make_ranking, train_test_split_by_query

X, y, qid = make_ranking(
    300, rows_per_query=30, n_features=20, noise=1.0, random_state=0, return_X_y_qid=True
)
X_train, X_test, y_train, y_test, qid_train, qid_test = train_test_split_by_query(
    X, y, qid, qid=qid, test_size=0.5, random_state=0
)

run = HistGBRTRegressor(max_features=0.3, gradient_sampling=None, learning_rate=0.1, max_iter=100)
sklearn.set_config(enable_metadata_routing=True)
bagging = BaggingRegressor(run, n_estimators=16, bootstrap=False, random_state=0)
bagging.fit(X_train, y_train, qid=qid_train)
sklearn.set_config(enable_metadata_routing=False)

# %%
# `EnsembleRanker.average` joins the runs. It predicts what the bagging predicts, up to rounding, in one pass
# over all trees.

average = EnsembleRanker.average(bagging)
largest = np.abs(average.predict(X_test) - bagging.predict(X_test)).max()
print(f"{len(average.ensemble_)} trees, largest difference {largest:.1e}")

runs = bagging.estimators_
alone = [EnsembleRanker.average([run]).score(X_test, y_test, qid=qid_test) for run in runs]
numbers = range(1, len(runs) + 1)
together = [EnsembleRanker.average(runs[:n]).score(X_test, y_test, qid=qid_test) for n in numbers]
print(f"NDCG@10: runs {np.mean(alone):.3f} on average, their mean {together[-1]:.3f}")

figure, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
axis.plot(numbers, alone, "o", color="grey", label="run by itself")
axis.plot(numbers, together, label="mean of the runs so far")
axis.set(xlabel="run", ylabel="NDCG@10, test queries")
axis.legend()
plt.show()
