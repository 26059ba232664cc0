"""
From a search log to a served model, 2: tuning and comparing
============================================================

How many trees, and which parameters? And is the ranker really better than production, for all kinds of
searches?
"""

# %%
# The log of :doc:`the first part <plot_1a_log>` is split three ways by date: the searches of the last days
# are the test, which plays no part in any choice. Those before them tell when to stop, and the rest is
# learned from.

import matplotlib.pyplot as plt
import pandas as pd
from scipy.stats import loguniform, randint
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_score,
)

from ranktrees import (
    LambdaMARTRanker,
    QueryKFold,
    QueryTimeSeriesSplit,
    compare_to_baseline,
)
from ranktrees.displays import CutoffDisplay, LearningCurvesDisplay
from ranktrees.evaluation import mean_interval, per_query_table
from shop import make_log, to_rows

log = make_log("2025-03-01", n_days=56)
X, y, qid = to_rows(log)
train = log["date"] < "2025-04-05"
validation = (log["date"] >= "2025-04-05") & (log["date"] < "2025-04-12")
test = log["date"] >= "2025-04-12"
parts = {"training": train, "validation": validation, "test": test}
sizes = {name: [rows.sum(), qid[rows].nunique()] for name, rows in parts.items()}
pd.DataFrame(sizes, index=["rows", "searches"])

# %%
# How many trees
# --------------
#
# Let the validation searches decide: pass them to ``fit``, and allow more trees than will be needed.

stopped = LambdaMARTRanker(max_iter=1000, n_iter_no_change=50, random_state=0)
held_out = {
    "X_val": X[validation],
    "y_val": y[validation],
    "qid_val": qid[validation],
}
stopped.fit(X[train], y[train], qid=qid[train], **held_out)
print(f"{stopped.n_iter_} trees were grown, {stopped.best_iteration_} are kept")
print(
    f"NDCG@10 of the validation searches: {stopped.validation_score_.max():.4f}"
)
LearningCurvesDisplay.from_estimator(stopped)
plt.show()

# %%
# The curve of the training searches goes on rising, that of the others does not. The best round is the best
# for these validation searches, so that its value is a little too high. Expect less of new ones.
#
# Folds must not cut searches
# ---------------------------
#
# For parameters, cross-validation uses the data better than one split. Put the ids into the index of the
# labels, in a level named ``"qid"``: whatever takes rows of a Series takes them along, and nothing else needs
# to be set. But the choice of ``cv=`` is yours, and a wrong one is silent:

labels = pd.Series(y[train].to_numpy(), index=pd.Index(qid[train], name="qid"))
quick = LambdaMARTRanker(max_iter=40, random_state=0)
found = {}
for cv in (QueryKFold(3), KFold(3, shuffle=True, random_state=0)):
    found[type(cv).__name__] = cross_val_score(quick, X[train], labels, cv=cv)
table = pd.DataFrame(found, index=["fold 1", "fold 2", "fold 3"]).T
table.assign(mean=table.mean(axis=1)).round(4)

# %%
# The model is the same. ``KFold`` leaves a third of each search in the test, and short lists are easier to
# rank.
#
# A grid, and a random search
# ---------------------------
#
# Few trees at a high rate are enough to compare parameters. Begin with those that matter most, the size of
# the trees and of their leaves:

quick = LambdaMARTRanker(max_iter=30, learning_rate=0.15, random_state=0)
sizes = {"max_leaf_nodes": [4, 8, 31], "min_samples_leaf": [20, 80]}
grid = GridSearchCV(quick, sizes, cv=QueryKFold(3))
grid.fit(X[train], labels)
pd.DataFrame(grid.cv_results_).pivot(
    index="param_max_leaf_nodes",
    columns="param_min_samples_leaf",
    values="mean_test_score",
).round(4)

# %%
# How much of that is chance? The folds are the same for all candidates, so look at the spread of a
# difference, not of a mean. Then draw at random from more parameters. With
# :class:`~ranktrees.QueryTimeSeriesSplit` each part is tested by a model of earlier ones, as in production.
# It finds the times in the index, too.

index = pd.MultiIndex.from_arrays(
    [qid[train], log["date"][train]], names=["qid", "time"]
)
dated = labels.set_axis(index)
search = RandomizedSearchCV(
    quick,
    {
        "max_leaf_nodes": randint(4, 32),
        "min_samples_leaf": randint(10, 100),
        "l2_regularization": loguniform(0.1, 30),
        "max_features": [0.3, 0.6, 1.0],
    },
    n_iter=5,
    cv=QueryTimeSeriesSplit(3, test_size=pd.Timedelta(days=5)),
    random_state=0,
)
search.fit(X[train], dated)
table = pd.DataFrame(search.cv_results_).sort_values("rank_test_score")
table = table.filter(regex="param_|split|mean_test").round(3)
table.rename(
    columns=lambda name: name.replace("param_", "").replace("_test_score", "")
)

# %%
# The best and the worst row differ by no more than the parts of one row do. So parameters matter little here,
# and the defaults are fine. That is worth knowing before you spend a night on a search. Now fit the winner
# with a lower rate, stopped by the validation searches:

tuned = LambdaMARTRanker(**search.best_params_, max_iter=1000, random_state=0)
tuned.fit(X[train], y[train], qid=qid[train], **held_out)
print(
    f"{len(tuned.ensemble_)} trees, NDCG@10 {tuned.validation_score_.max():.4f}"
)

# %%
# Against production
# ------------------
#
# Only now the test searches. Several candidates are compared with production at once, and the p-values are
# adjusted for that.

y_test, qid_test = y[test], qid[test]
scores = {
    "production": log["production_score"][test],
    "30 trees": quick.fit(X[train], y[train], qid=qid[train]).predict(X[test]),
    "stopped": stopped.predict(X[test]),
    "tuned": tuned.predict(X[test]),
}
result = compare_to_baseline(y_test, scores, "production", qid=qid_test)
print(result)

# %%
# The intervals as a picture, and NDCG at other cutoffs: is the gain at the very top, or further down?

figure, (left, right) = plt.subplots(
    1, 2, figsize=(9.5, 3.2), layout="constrained"
)
result.plot(ax=left)
two = {name: scores[name] for name in ("production", "tuned")}
CutoffDisplay.from_predictions(
    y_test, two, qid=qid_test, cutoffs=[1, 2, 3, 5, 10, 20], ax=right
)
plt.show()

# %%
# Head and tail
# -------------
#
# Most people ask the same few things, so a mean over searches is mostly about these. Take the value of each
# search, join what you know of it, and look at each segment. Here a text of the tail was asked once or twice
# in eight weeks.

frequency = log.drop_duplicates("session")["query"].value_counts()
text = log[test].drop_duplicates("session").set_index("session")["query"]
values = per_query_table(y_test, two, qid=qid_test)
values = values.droplevel(1, axis=1).rename_axis(columns=None).dropna()
values["gain"] = values["tuned"] - values["production"]
times = text.map(frequency)
values["segment"] = pd.cut(
    times, [0, 2, 25, 10**6], labels=["tail", "torso", "head"]
)
by_segment = values.groupby("segment", observed=True)
table = by_segment[["production", "tuned"]].mean().round(3)
table["gain, 95 % interval"] = by_segment["gain"].apply(
    lambda gain: str(mean_interval(gain))
)
table["searches"] = by_segment.size()
table

# %%
# The smaller a segment, the wider its interval: one that includes 0 does not say that nothing is gained. The
# searches that lose most are worth reading, one by one, before anybody else does it:

worst = values.nsmallest(5, "gain").join(text)
worst[["query", "production", "tuned", "gain"]].round(3)

# %%
rows = log["session"] == worst.index[0]
shown = log[rows].assign(grade=y)
order = pd.Series(tuned.predict(X[rows]), shown.index).rank(ascending=False)
shown["rank now"] = order.astype(int)
columns = [
    "position",
    "rank now",
    "grade",
    "text_score",
    "price",
    "rating",
    "stock",
    "brand",
]
shown.sort_values("rank now")[columns].head(8).set_index("rank now")

# %%
# Somebody chose what the model puts further down. Is it a mistake, or taste? :doc:`The next part
# <plot_1c_explaining>` asks the model for its reasons.
