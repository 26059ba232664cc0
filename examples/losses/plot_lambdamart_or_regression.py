"""
When does LambdaMART beat regression?
=====================================

A regressor learns the labels themselves; LambdaMART learns only which rows of a query belong above which.
That costs it information if a label means the same in every query. It saves it from noise if a label does
not: if queries are judged by different people, say, or if some topics have good answers and others have none.

Here is a rule of relevance that both can learn. Then each query gets a bar of its own: its labels are all
moved up or down by a whole number that no feature reveals. The order within a query stays the same.
"""

# %%
# The bars are drawn from ``-spread, ..., spread``. Of each data set, half of the queries train and half test.
# Both models grow the same kind of trees, so that they differ only in what they learn; with other trees, the
# line below is crossed elsewhere.

import matplotlib.pyplot as plt
import numpy as np

from ranktrees import HistGBRTRegressor, LambdaMARTRanker, compare, make_ranking, train_test_split_by_query

n_queries = 300
X, y, qid = make_ranking(n_queries, rows_per_query=30, n_features=20, random_state=0, return_X_y_qid=True)
trees = {
    "learning_rate": 0.1,
    "max_iter": 100,
    "max_features": 1.0,
    "subsample": 1.0,
    "l2_regularization": 0.0,
    "random_state": 0,
}


def both_models(spread):
    bars = np.random.default_rng(0).integers(-spread, spread + 1, n_queries)
    moved = np.clip(y + bars[qid], 0, 4)
    X_train, X_test, y_train, y_test, qid_train, qid_test = train_test_split_by_query(
        X, moved, qid, qid=qid, test_size=0.5, random_state=0
    )
    regressor = HistGBRTRegressor(**trees).fit(X_train, y_train)
    ranker = LambdaMARTRanker(measure="ndcg@10", **trees).fit(X_train, y_train, qid=qid_train)
    return compare(y_test, ranker.predict(X_test), regressor.predict(X_test), qid=qid_test)


spreads = [0, 1, 2, 3]
comparisons = [both_models(spread) for spread in spreads]
print(comparisons[-1])

# %%
# Above the line LambdaMART is better. The bars of the plot are 95 % intervals of the mean difference over the
# test queries. This difference is what counts: the same queries are easy for both models, so their difference
# varies far less than either value.

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.axhline(0, color="grey", linewidth=0.8)
for spread, found in zip(spreads, comparisons, strict=True):
    axes.plot([spread, spread], found.interval, "_-", spread, found.difference, "o", color="C0")
axes.set(xlabel="spread of the queries' bars", ylabel="NDCG@10: LambdaMART - regression", xticks=spreads)
plt.show()
