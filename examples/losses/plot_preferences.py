"""
Learning from preferences
=========================

It is easier to say which of two results is better than to give each of them a grade. How many such judgements
does a ranker need if judges err now and then?
"""

# %%
# Two rows of a query are drawn, and somebody says which is better. The larger the difference of their labels,
# the more likely the judge is to see it: the probability is :math:`1 / (1 + e^{y_j - y_i})`. Between rows
# with the same label judges choose blindly. So judgements contradict each other, which they may.

import matplotlib.pyplot as plt
import numpy as np

from ranktrees import LambdaMARTRanker, make_ranking, train_test_split_by_query

X, y, qid = make_ranking(400, rows_per_query=20, n_features=20, random_state=0, return_X_y_qid=True)
X, X_test, y, y_test, qid, qid_test = train_test_split_by_query(
    X, y, qid, qid=qid, test_size=0.5, random_state=0
)


def judge(n_per_query, rng):
    """Return pairs of rows, in each of which the preferred row comes first."""
    queries = np.unique(qid, return_index=True)[1].repeat(n_per_query)
    i = rng.integers(20, size=len(queries))
    j = (i + rng.integers(1, 20, size=len(queries))) % 20  # another row of the query
    pairs = np.column_stack([queries + i, queries + j])
    better, worse = y[pairs].T
    agrees = rng.random(len(pairs)) < 1 / (1 + np.exp(worse - better))
    return np.where(agrees[:, None], pairs, pairs[:, ::-1])


numbers = [3, 10, 30, 100, 300]
curves = {"ranknet": [], "gbrank": []}
for number in numbers:
    pairs = judge(number, np.random.default_rng(number))
    for loss, values in curves.items():
        ranker = LambdaMARTRanker(loss, max_iter=100, random_state=0).fit(X, pairs=pairs, qid=qid)
        values.append(ranker.score(X_test, y_test, qid=qid_test))
labelled = LambdaMARTRanker("ranknet", truncation_level=None, max_iter=100, random_state=0)
labelled.fit(X, y, qid=qid)

# %%
# A query of 20 rows has 190 pairs. With as many judgements as rows there is already something to learn. With
# some hundreds, errors average out, and the ranker is nearly as good as one that knows all labels. If several
# people judge the same pair, you can pass each judgement, or pass the pair once, with the share of them who
# prefer its first row as ``pair_target`` and their number as ``pair_weight``. The result is the same.

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for loss, values in curves.items():
    axes.plot(numbers, values, "o-", label=loss)
axes.axhline(labelled.score(X_test, y_test, qid=qid_test), color="grey", linewidth=0.8, label="all labels")
axes.set(xscale="log", xlabel="judgements per query", ylabel="NDCG@10 of other queries")
axes.set_xticks(numbers, [str(number) for number in numbers])
axes.legend(loc="lower right")
plt.show()

# %%
# The most that a ranker can learn from judgements is what they agree upon. ``score`` with pairs is the share
# of them with which the ranking agrees, here for new judgements by the same people:

fresh = judge(50, np.random.default_rng(0))
ranker = LambdaMARTRanker("ranknet", max_iter=100, random_state=0).fit(X, pairs=pairs, qid=qid)
print(f"agrees with {ranker.score(X, pairs=fresh):.1%} of new judgements of these queries,")
best = np.mean(y[fresh[:, 0]] > y[fresh[:, 1]]) + np.mean(y[fresh[:, 0]] == y[fresh[:, 1]]) / 2
print(f"and the labels themselves would with {best:.1%}")
