"""
From a search log to a served model, 3: asking for reasons
==========================================================

Which columns matter, and in what way? And why is this product above that one? Whoever has a shop will ask,
and you want to know before the model goes live.
"""

# %%
# The log and the split are those of :doc:`the part before <plot_1b_tuning>`.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ranktrees import LambdaMARTRanker, compare, contributions
from ranktrees.displays import ImportanceDisplay, PartialDependenceDisplay
from ranktrees.inspection import permutation_importance
from shop import make_log, to_rows

log = make_log("2025-03-01", n_days=56)
X, y, qid = to_rows(log)
train, test = log["date"] < "2025-04-12", log["date"] >= "2025-04-12"
ranker = LambdaMARTRanker(max_iter=150, random_state=0)
ranker.fit(X[train], y[train], qid=qid[train])
test_rows = {"X": X[test], "y": y[test], "qid": qid[test]}
print(f"NDCG@10 of the test searches: {ranker.score(**test_rows):.4f}")

# %%
# Which columns matter
# --------------------
#
# Left: what the splits of a column gained in training, which costs nothing to look at. Right: how much NDCG
# falls on the test searches if the values of a column are shuffled. The interval is over searches.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 3.6), layout="constrained"
)
ImportanceDisplay.from_estimator(ranker, kind="gain", ax=left)
ImportanceDisplay.from_estimator(ranker, **test_rows, ax=right)
plt.show()

# %%
# Left, ``brand`` seems to matter more than it does: a column with many levels finds something to split by in
# any data. Trust the right one. For ``n_words`` even that one needs care. It is the same for all products of
# a search, so it can change an order only by what it does to other columns. Shuffled within each search,
# nothing happens to it:

among_all = permutation_importance(ranker, **test_rows, n_repeats=2)
within = permutation_importance(ranker, **test_rows, n_repeats=2, among="query")
both = {"among all": among_all, "within searches": within}
table = {name: found.to_frame()["importance"] for name, found in both.items()}
pd.DataFrame(table).round(4)

# %%
# Columns that say nearly the same seem to be worth little one by one, as the other one is still there.
# Shuffle them together:

groups = {
    "past sales": ["sales_30d", "ctr_30d"],
    "reviews": ["rating", "n_reviews"],
}
permutation_importance(ranker, **test_rows, n_repeats=2, feature_groups=groups)

# %%
# The real question is often whether a column is worth its upkeep. Then fit without it, and compare:

without = LambdaMARTRanker(max_iter=150, random_state=0)
without.fit(X[train].drop(columns="brand"), y[train], qid=qid[train])
scores = ranker.predict(X[test])
scores_without = without.predict(X[test].drop(columns="brand"))
print(compare(y[test], scores, scores_without, qid=qid[test]))

# %%
# In what way
# -----------
#
# Accumulated local effects show how the score changes with a column, all else being as it is. The dashed line
# is for missing values, the ticks are the deciles. Is this what you would tell a new colleague?

columns = ["price", "rating", "sales_30d", "discount", "text_score", "stock"]
PartialDependenceDisplay.from_estimator(ranker, X[test], columns, kind="ale")
plt.show()

# %%
# If a curve must never go the wrong way, say so: a product should not fall because its text matches better,
# nor rise because it is dearer. A constraint is a promise for every row, and costs little:

signs = {"text_score": 1, "price": -1}
promised = LambdaMARTRanker(max_iter=150, monotonic_cst=signs, random_state=0)
promised.fit(X[train], y[train], qid=qid[train])
PartialDependenceDisplay.from_estimator(
    promised, X[test], ["text_score", "price"], kind="ale", n_cols=2
)
plt.show()
print(compare(y[test], promised.predict(X[test]), scores, qid=qid[test]))

# %%
# Why A is above B
# ----------------
#
# Take one search, and its first two products in the order of the model:

search = X[test][qid[test] == "250421-02078"]
scores = ranker.predict(search)
first, second = np.argsort(-scores)[:2]
columns = [
    "product",
    "text_score",
    "price",
    "rating",
    "sales_30d",
    "stock",
    "brand",
]
shown = log.loc[search.index, columns]
shown.iloc[[first, second]].assign(score=scores[[first, second]]).T

# %%
# :func:`~ranktrees.contributions` parts each score among the columns, exactly: their sum is the score. What
# decides between two products is the difference.

explained = contributions(ranker, search)
why = explained.difference(first, second)
why.plot()
plt.show()

# %%
# The same as numbers. ``above`` and ``below`` are the values of both products, and ``adds`` sums to the
# difference of the scores:

print(f"difference of the scores {scores[first] - scores[second]:.3f}")
print(f"sum of what is added     {why.values.sum():.3f}")
why.to_frame().round(3)

# %%
# One dot for each product of 40 searches shows what pushes products up and down, and how differently:

some = X[test][qid[test].isin(qid[test].unique()[:40])]
contributions(ranker, some).plot()
plt.show()

# %%
# A picture like this is a good thing to show to those who know the products. If they find it odd, something
# in the data is often wrong. :doc:`The last part <plot_1d_serving>` puts the model into service.
