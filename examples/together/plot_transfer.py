"""
What can a small set learn from a large one?
============================================

Few queries of ours are labelled, and many of somebody else's: another market, or another year. A model of
theirs can pass its score to ours, and some of their rows can join ours.
"""

# %%
# We have a set of 15 labelled queries, and a *source* set of 200. One half of the source is like ours. The
# other half was labelled the other way round, and comes from a crawler whose counts are half as much again.
# The halves are mixed, and nothing says which is which.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from ranktrees import LambdaMARTRanker, ModelFeatures, WithSourceRows, compare_to_baseline, make_ranking

web = {"kind": "web", "rows_per_query": 25, "n_features": 30, "noise": 0.5, "return_X_y_qid": True}
X, y, qid = make_ranking(300, random_state=0, **web)
train, test = qid < 15, qid >= 100
X_source, y_source, qid_source = make_ranking(200, random_state=1, **web)
unlike = qid_source % 2 == 1
X_source[unlike] *= 1.5
y_source[unlike] = 4 - y_source[unlike]

# %%
# The query ids are in the index of the labels, so that they get through pipelines. Both sets number their
# queries from 0; the queries of one are not those of the other, and are never joined.

labels = pd.Series(y, index=pd.Index(qid, name="qid"))
labels_source = pd.Series(y_source, index=pd.Index(qid_source, name="qid"))
ranker = LambdaMARTRanker(max_iter=60, max_leaf_nodes=8, random_state=0)
theirs = clone(ranker).fit(X_source, labels_source)
both = WithSourceRows(clone(ranker), X_source, labels_source, source_size=0.5, random_state=0)
both.fit(X[train], labels[train])
chosen = both.source_rows_
like_ours = clone(ranker).fit(X_source[chosen], labels_source.iloc[chosen])

models = {
    "our rows": clone(ranker),
    "our rows and all of theirs": clone(both).set_params(source_size=1.0),
    "our rows and the half of theirs\nmost like ours": both,
    "our rows, with the score\nof a model of all of theirs": make_pipeline(
        ModelFeatures(theirs, cv="prefit"), clone(ranker)
    ),
    "our rows, with the score\nof a model of that half": make_pipeline(
        ModelFeatures(like_ours, cv="prefit"), clone(ranker)
    ),
}
for model in models.values():
    model.fit(X[train], labels[train])
scores = {name: model.predict(X[test]) for name, model in models.items()}
comparisons = compare_to_baseline(y[test], scores, "our rows", qid=qid[test])

# %%
# A classifier that tells our rows from theirs found which of theirs are like ours. All of their rows together
# teach the wrong thing, and a model of them adds nothing new. The half that was chosen helps in both ways.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.2), layout="constrained")
likeness = both.source_probabilities_
for name, rows in {"like ours": ~unlike, "not like ours": unlike}.items():
    left.hist(likeness[rows], np.linspace(0, 1, 31), histtype="step", label=name)
left.set(xlabel="how probably a source row is one of ours", ylabel="rows")
left.legend()
for name, found in comparisons.items():
    right.plot(found.interval, [name, name], "|-", found.difference, name, "o", color="C0")
right.axvline(0, color="gray", linewidth=1)
right.set(xlabel="gain in NDCG@10 over our rows alone (95%)")
right.invert_yaxis()
plt.show()
