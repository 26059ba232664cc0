"""
Losses side by side
===================

A ranker can learn from pairs of rows, which are weighed by what a measure gains when they swap places or not
weighed at all, or from whole queries at once. The ranking by which pairs are weighed can also be drawn with
noise.
"""

# %%
# Labels are noisy, and only few rows are good. Half of the queries train, half test. All losses get the same
# trees.

import matplotlib.pyplot as plt

from ranktrees import LambdaMARTRanker, compare, make_ranking, train_test_split_by_query

X, y, qid = make_ranking(
    400, rows_per_query=25, n_features=20, noise=1.0, random_state=0, return_X_y_qid=True
)
X_train, X_test, y_train, y_test, qid_train, qid_test = train_test_split_by_query(
    X, y, qid, qid=qid, test_size=0.5, random_state=0
)
losses = {
    "lambdamart, ndcg@10": {},
    "lambdamart, err@10": {"measure": "err@10"},
    "lambdamart, map": {"measure": "map(rel=3)"},
    "lambdamart, auc": {"measure": "auc(rel=3)"},
    "lambdamart, noisy ranks": {"noise": 1.0},
    "lambdaloss": {"loss": "lambdaloss"},
    "ranknet": {"loss": "ranknet"},
    "gbrank": {"loss": "gbrank"},
    "listnet": {"loss": "listnet"},
    "xendcg": {"loss": "xendcg"},
    "query_rmse": {"loss": "query_rmse"},
}
scores = {
    name: LambdaMARTRanker(**settings, max_iter=100, random_state=0)
    .fit(X_train, y_train, qid=qid_train)
    .predict(X_test)
    for name, settings in losses.items()
}

# %%
# The plots compare each loss with LambdaMART by two measures, query by query. The bars are 95 %
# intervals of the mean difference. Most of these losses are within each other's reach, and a loss made for
# one measure need not be the best by it. Sampling, more trees and averages of models matter more than the
# choice of the loss.

figure, plots = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for axes, measure in zip(plots, ("ndcg@10", "map(rel=3)"), strict=True):
    axes.axvline(0, color="grey", linewidth=0.8)
    for place, name in enumerate(losses):
        if place > 0:
            found = compare(
                y_test, scores[name], scores["lambdamart, ndcg@10"], qid=qid_test, measure=measure
            )
            axes.plot(found.interval, [place, place], "|-", found.difference, place, "o", color="C0")
    axes.set(title=measure, xlabel="above LambdaMART on NDCG@10")
    axes.locator_params(axis="x", nbins=5)
plots[0].set_yticks(range(1, len(losses)), list(losses)[1:])
plt.show()
