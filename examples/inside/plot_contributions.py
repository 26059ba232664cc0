"""
Why does one row rank above another?
====================================

The score of a row is a sum of what its features add. The contributions of two rows differ by what tells the
rows apart, and over many rows they show what a feature is worth, and to which values.
"""

# %%
# The data are shaped like a shop's: some columns matter, and one is a category.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ranktrees import LambdaMARTRanker, contributions, interactions, make_ranking

X, y, qid = make_ranking(200, rows_per_query=20, n_features=7, random_state=0, return_X_y_qid=True)
frame = pd.DataFrame(X, columns=["title", "body", "clicks", "age", "price", "stock", "rating"])
frame["country"] = pd.Categorical(np.where(X[:, 0] + X[:, 1] > 0, "uk", "fr"))
train, test = qid < 150, qid >= 150
ranker = LambdaMARTRanker(max_iter=100, random_state=0).fit(frame[train], y[train], qid=qid[train])

# %%
# There is a dot for each row of the test queries. To the right of the line a feature adds to the score, to
# the left it takes from it; red dots are rows in which its value is high.

found = contributions(ranker, frame[test])
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
found.plot(ax=axes)
plt.show()

# %%
# Of one query, this is why the best row is above the second one: bars lead from the score of the lower row to
# that of the upper one. A feature that has nearly the same value in both can still tell them apart, where its
# worth depends on the others.

query = frame[qid == 150]
explained = contributions(ranker, query)
first, second = np.argsort(-ranker.predict(query))[:2]
why = explained.difference(first, second)
print(why)
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
why.plot(ax=axes)
plt.show()

# %%
# Which features depend on each other? Each contribution is the sum of what a feature adds with each of the
# others and by itself. This is the mean over the test rows of how much pairs add or take.

pairs = abs(interactions(ranker, frame[test])).mean(axis=0)
pairs[np.diag_indices(len(pairs))] = 0
figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
image = axes.imshow(pairs, cmap="Reds")
axes.set_xticks(range(len(pairs)), frame.columns, rotation=90)
axes.set_yticks(range(len(pairs)), frame.columns)
figure.colorbar(image, label="mean of what a pair adds or takes")
plt.show()
