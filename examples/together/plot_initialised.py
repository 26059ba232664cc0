"""
Boosting from a forest
======================

A forest of full depth hardly overfits, but leaves bias behind; boosting removes bias. So start boosting where
the forest ends (IGBRT; Mohan, Chen and Weinberger). But what does the forest leave to learn from its own
training rows? Little, because its trees have seen their labels. The predictions of those trees that have not
seen a row are a better start.
"""

# %%
# The rule of relevance can be learned, with noise. Half of the queries train, half test. Boosting starts from
# the mean label, from the forest's predictions for the training rows or, with ``init_cv="oob"``, from the
# predictions of those of its trees that have a row out of bag. New rows start from the whole forest in any
# case. A fitted ``init`` is used as it is; to start from out-of-bag scores, the forest has to be fitted
# within.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import clone

from ranktrees import (
    HistGBRTRegressor,
    RandomForestRanker,
    as_measure,
    make_ranking,
    train_test_split_by_query,
)

X, y, qid = make_ranking(
    600, rows_per_query=30, n_features=20, noise=0.5, random_state=0, return_X_y_qid=True
)
X_train, X_test, y_train, y_test, qid_train, qid_test = train_test_split_by_query(
    X, y, qid, qid=qid, test_size=0.5, random_state=0
)

forest = RandomForestRanker(50, min_samples_leaf=1, random_state=0).fit(X_train, y_train, qid=qid_train)
booster = HistGBRTRegressor(learning_rate=0.1, max_iter=100, random_state=0)
starts = {
    "the mean label": {},
    "the forest": {"init": forest},
    "the forest, out of bag": {"init": clone(forest), "init_cv": "oob"},
}

ndcg = as_measure("ndcg@10")
curves = {}
for start, parameters in starts.items():
    model = clone(booster).set_params(**parameters).fit(X_train, y_train, qid=qid_train)
    curves[start] = [ndcg(y_test, scores, qid=qid_test) for scores in model.staged_predict(X_test)]
    shown = ", ".join(f"{curves[start][n - 1]:.3f} after {n}" for n in (10, 50, 100))
    print(f"from {start}: NDCG@10 {shown} trees, {len(model.ensemble_)} in all")

of_forest = forest.set_params(measure=ndcg).score(X_test, y_test, qid=qid_test)
in_training = np.sqrt(np.mean((y_train - forest.predict(X_train)) ** 2))
out_of_bag = np.sqrt(np.mean((y_train - model.init_scores_) ** 2))
print(f"what the forest leaves: {in_training:.2f} of rows seen, {out_of_bag:.2f} out of bag")

# %%
# The error that the forest leaves for rows that its trees have seen is less than half of what it leaves for
# others. If boosting learns from that, it adds little to the forest. If it learns from out-of-bag scores, it
# is ahead from the first tree on, until boosting from the mean has caught up. The trees of forest and
# boosting are one ensemble, ``ensemble_``: they are scored, saved and explained as one.

figure, axis = plt.subplots(figsize=(6, 3.5), layout="constrained")
axis.axhline(of_forest, color="grey", linewidth=0.8, label="the forest itself")
for start, curve in curves.items():
    axis.plot(range(1, len(curve) + 1), curve, label=f"from {start}")
axis.set(xlabel="trees of boosting", ylabel="NDCG@10, test queries")
axis.legend()
plt.show()
