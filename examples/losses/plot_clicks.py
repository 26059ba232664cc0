"""
Learning from clicks
====================

Clicks cost nothing, but they depend as much on where a row was shown as on the row itself. A ranker that
takes them for labels learns to repeat the ranking on which they were made. Unbiased LambdaMART estimates how
often each position is looked at while it learns to rank.
"""

# %%
# A first ranker, trained on a few labelled queries, has shown its ten best rows twenty times for each query.
# The row at position :math:`k` was looked at with probability :math:`1/k`. Of the rows without any merit, one
# in ten was clicked when it was looked at.

import matplotlib.pyplot as plt
import numpy as np

from ranktrees import LambdaMARTRanker, compare, make_clicks, make_ranking

X, y, qid = make_ranking(400, rows_per_query=20, n_features=20, random_state=0, return_X_y_qid=True)
few, train, test = qid < 10, qid < 200, qid >= 200
first = LambdaMARTRanker(max_iter=20, random_state=0).fit(X[few], y[few], qid=qid[few])
log = make_clicks(
    y[train], first.predict(X[train]), qid=qid[train], n_sessions=20, n_shown=10, random_state=0
)
clicks = {"X": X[train][log.rows], "y": log.target, "qid": log.qid}

# %%
# The same ranker learns four times: from these clicks as they are, from clicks with their positions, from
# clicks with positions and the true propensities, and from the labels, which nobody has.

settings = {"learning_rate": 0.1, "max_iter": 60, "random_state": 0}
unbiased = LambdaMARTRanker(**settings).fit(**clicks, position=log.position)
models = {
    "first ranker": first,
    "clicks as they are": LambdaMARTRanker(**settings).fit(**clicks),
    "corrected": unbiased,
    "known propensities": LambdaMARTRanker(propensities=log.propensities, **settings).fit(
        **clicks, position=log.position
    ),
    "labels": LambdaMARTRanker(**settings).fit(X[train], y[train], qid=qid[train]),
}
scores = {name: model.predict(X[test]) for name, model in models.items()}

# %%
# The left plot shows the gain over the model of plain clicks on other queries, by their labels (bars are 95 %
# intervals). Positions bring a third of what labels would, and as much as if it were known how often they are
# looked at. The right plot shows the propensities that were found. The first rows of a ranking are better
# than its last, and are clicked more often for that reason as well, which makes lower positions seem less
# looked at than they are. ``bias_norm`` moves all propensities up towards 1. Here the two effects nearly
# cancel.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
left.axvline(0, color="grey", linewidth=0.8)
for name in ("first ranker", "corrected", "known propensities", "labels"):
    found = compare(y[test], scores[name], scores["clicks as they are"], qid=qid[test])
    left.plot(found.interval, [name, name], "|-", found.difference, name, "o", color="C0")
left.invert_yaxis()
left.set(xlabel="NDCG@10: over clicks as they are")
positions = np.arange(1, 11)
right.plot(positions, log.propensities, "o-", color="grey", label="looked at")
right.plot(positions, unbiased.propensities_, "o-", label="propensities_")
right.set(xlabel="position", ylabel="relative to the first", xticks=positions)
right.legend()
plt.show()
