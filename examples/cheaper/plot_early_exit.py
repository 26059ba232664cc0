"""
How many trees does a row need?
===============================

Few, if it is clear that the row will not reach the top. :class:`~ranktrees.EarlyExit` drops the lowest rows
of each query on the way, and :func:`~ranktrees.pick_early_exit` finds out on validation queries how early it
may do so.
"""

# %%
# The data are shaped like web search: some queries have hundreds of rows, of which ten are looked at.

import matplotlib.pyplot as plt

from ranktrees import LambdaMARTRanker, make_ranking, pick_early_exit

X, y, qid = make_ranking(360, "web", n_features=30, noise=0.5, random_state=0, return_X_y_qid=True)
train, validation, test = qid < 120, (qid >= 120) & (qid < 240), qid >= 240
ranker = LambdaMARTRanker(max_iter=150, random_state=0).fit(X[train], y[train], qid=qid[train])
picked = pick_early_exit(
    ranker, X[validation], y[validation], qid=qid[validation], measure="ndcg@10", tolerated_loss=0.005
)
print(picked)

# %%
# Each point is a candidate that was tried. Those that cost little are near the left edge. Of those whose loss
# is tolerated even at the upper end of its interval, the chosen one saves the most.

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.scatter(
    [each.loss for each in picked.candidates], [each.share_saved for each in picked.candidates], s=12
)
axes.scatter(picked.full_score - picked.score, picked.share_saved, s=60, facecolors="none", edgecolors="red")
axes.axvline(0.005, color="grey", linewidth=0.8)
axes.set(xlabel="loss of NDCG@10 on the validation queries", ylabel="share of the work saved")
plt.show()

# %%
# The plot shows how many rows are still in, on queries by which nothing was chosen. The printed lines tell
# how much work is saved, and what the ranking has lost.

scores, saved = ranker.predict(X[test], qid=qid[test], early_exit=picked.early_exit, return_saved=True)
print(f"{saved.share:.0%} of the work saved")
full = ranker.score(X[test], y[test], qid=qid[test])
with_exit = ranker.score(X[test], y[test], qid=qid[test], early_exit=picked.early_exit)
print(f"NDCG@10 without early exit {full:.4f}, with it {with_exit:.4f}")

figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
axes.stairs(saved.rows, [*saved.stages, len(ranker.ensemble_)], fill=True)
axes.set(xlabel="trees", ylabel="rows still in")
plt.show()

# %%
# The score of a row that was dropped is that of the trees it has seen. ``rank`` puts such rows behind those
# that stayed in longer.

print(ranker.rank(X[test], qid=qid[test], k=3, early_exit=picked.early_exit).head(6).round(2))
