"""
How much of each ranker?
========================

Two rankers that err in different places are better together. Every possible weight can be examined, because
the measure changes only where the scores of two rows cross. The weight is found on queries that neither
ranker has seen, and tested on others.
"""

# %%
# Boosted trees and a linear model use the same features. A third of the queries trains both, a third finds
# the weight, and a third tests. The scores are scaled to the same spread, so that the weight can be read as a
# share.

import matplotlib.pyplot as plt
from sklearn.linear_model import Ridge

from ranktrees import BlendRanker, LambdaMARTRanker, make_ranking, optimal_weight, train_test_split_by_query

X, y, qid = make_ranking(
    300, rows_per_query=40, n_features=20, noise=1.0, random_state=0, return_X_y_qid=True
)
X_train, X_rest, y_train, y_rest, qid_train, qid_rest = train_test_split_by_query(
    X, y, qid, qid=qid, test_size=2 / 3, random_state=0
)
X_find, X_test, y_find, y_test, qid_find, qid_test = train_test_split_by_query(
    X_rest, y_rest, qid_rest, qid=qid_rest, test_size=0.5, random_state=0
)
trees = LambdaMARTRanker(max_iter=50, random_state=0).fit(X_train, y_train, qid=qid_train)
linear = Ridge().fit(X_train, y_train)

spreads = [model.predict(X_find).std() for model in (trees, linear)]


def scores(X):
    return [model.predict(X) / spread for model, spread in zip((trees, linear), spreads, strict=True)]


# %%
# The curve has a step at each weight at which the ranking of some query changes within the first ten rows.
# Where the curve is high on the queries that find the weight, it is high on the others as well.

found = optimal_weight(y_find, *scores(X_find), qid=qid_find)
tested = optimal_weight(y_test, *scores(X_test), qid=qid_test)

figure, axis = plt.subplots(figsize=(6, 3.2), layout="constrained")
found.plot(axis, label="queries that find it")
tested.plot(axis, label="test queries")
axis.axvline(found.weight, color="grey", linewidth=0.8)
axis.set(xlabel="share of the linear model")
axis.legend()
print(f"test: trees {tested(0.0):.4f}, linear {tested(1.0):.4f}, blend {tested(found.weight):.4f}")
plt.show()

# %%
# A `~ranktrees.BlendRanker` does this as an estimator, with any number of rankers.

blend = BlendRanker([("trees", trees), ("linear", linear)], cv="prefit").fit(X_find, y_find, qid=qid_find)
print(f"weights {blend.weights_.round(3)}, test {blend.score(X_test, y_test, qid=qid_test):.4f}")
