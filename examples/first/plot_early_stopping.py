"""
How many trees?
===============

As many as improve the ranking of queries that were not trained on. Given validation rows,
:class:`~ranktrees.LambdaMARTRanker` follows its measure on them, stops when the measure has not improved for
``n_iter_no_change`` rounds, and keeps the trees up to the best round.
"""

# %%
# The data are shaped like web search, with few grades and much noise, so that it does not take long to
# overfit.

import matplotlib.pyplot as plt

from ranktrees import LambdaMARTRanker, make_ranking, score_curves, train_test_split_by_query

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
# On the training rows the measure rises to the end; on the validation rows it does not.
# `~ranktrees.score_curves` draws what was recorded during the fit.

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
score_curves(ranker).plot(ax=axes)
plt.show()

# %%
# Do other measures agree? They can be computed afterwards, for any rows. Here the model is trained without
# stopping. The measures of the top agree; average precision, which considers for all rows whether they are
# relevant at all, keeps rising for a while.

ranker.set_params(early_stopping=False).fit(X_train, y_train, qid=qid_train)
measures = ["ndcg@10", "ndcg@1", "err", "map"]
curves = score_curves(ranker, X_val, y_val, qid=qid_val, measure=measures, every=5)
figure, all_axes = plt.subplots(2, 2, figsize=(7, 5), sharex=True, layout="constrained")
for axes, measure in zip(all_axes.flat, measures, strict=True):
    curves.plot(measure, axes)
plt.show()
print(curves)

# %%
# Without validation rows of your own, ``early_stopping=True`` holds out a tenth of the queries, whole. The
# best of many validation scores is a little too good to be true: to report a score, keep test queries by
# which nothing was chosen.
