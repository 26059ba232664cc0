"""
How many trees?
===============

As many as help queries that were not trained on. Give :class:`~ranktrees.LambdaMARTRanker` validation rows,
and it follows its measure on them, stops when the measure has not risen for ``n_iter_no_change`` rounds, and
keeps the trees up to the best round.
"""

# %%
# The data are shaped like web search: few grades, much noise, so that it does not take long to learn too
# much.

import matplotlib.pyplot as plt
import numpy as np

from ranktrees import LambdaMARTRanker, make_ranking, train_test_split_by_query

X, y, qid = make_ranking(120, "web", rows_per_query=40, n_features=30, random_state=0, return_X_y_qid=True)
X_train, X_val, y_train, y_val, qid_train, qid_val = train_test_split_by_query(
    X, y, qid, qid=qid, test_size=0.5, random_state=0
)
ranker = LambdaMARTRanker(
    measure="ndcg@10",
    learning_rate=0.05,
    max_leaf_nodes=15,
    max_iter=500,
    n_iter_no_change=60,
    random_state=0,
)
ranker.fit(X_train, y_train, qid=qid_train, X_val=X_val, y_val=y_val, qid_val=qid_val)
print(f"{ranker.n_iter_} trees grown of {ranker.max_iter}, the first {ranker.best_iteration_} kept")

# %%
# On the rows it trains on the measure rises to the end; on the others it does not.

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
rounds = np.arange(1, ranker.n_iter_ + 1)
axes.plot(rounds, ranker.train_score_, label="training queries")
axes.plot(rounds, ranker.validation_score_, label="validation queries")
axes.axvline(ranker.best_iteration_, color="grey", linewidth=0.8, label="trees kept")
axes.set(xlabel="trees", ylabel="NDCG@10")
axes.legend()
plt.show()

# %%
# Without validation rows of your own, ``early_stopping=True`` holds out a tenth of the queries, whole. The
# best of many validation scores is a little too good to be true: to report a score, keep test queries that
# nothing was chosen by.
