"""
Pictures of a model
===================

What does a model look at, how does it use it, how far down are its rankings good, and on which queries is it
better than another? There is a display for each question in `ranktrees.displays`. All follow the convention
of scikit-learn: ``from_estimator`` or ``from_predictions`` computes and draws, on new axes or on ``ax=``.
"""

# %%
# The columns of the data are numbers, some of them missing, a whole number and a category. Half of the
# queries train a ranker and, to compare with it, a regression.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from ranktrees import HistGBRTRegressor, LambdaMARTRanker, make_clicks, make_ranking
from ranktrees.displays import (
    CutoffDisplay,
    ImportanceDisplay,
    LearningCurvesDisplay,
    PairedDifferenceDisplay,
    PartialDependenceDisplay,
    PositionBiasDisplay,
    RelevanceCalibrationDisplay,
    TreeDisplay,
)

random = np.random.default_rng(0)
X, y, qid = make_ranking(200, rows_per_query=20, n_features=5, noise=0.5, random_state=0, return_X_y_qid=True)
frame = pd.DataFrame(X, columns=["title", "body", "links", "age", "length"])
frame["site"] = pd.Categorical(random.choice(["shop", "wiki", "news", "blog"], len(frame)))
frame["clicks"] = random.poisson(1 + 2 * (y > 1))
frame["links"] = frame["links"].mask(random.random(len(frame)) < 0.3)
y = np.minimum(y + (frame["site"] == "wiki").to_numpy(), 4)
train, test = qid < 100, qid >= 100
ranker = LambdaMARTRanker(max_iter=100, n_iter_no_change=50, random_state=0).fit(
    frame[train], y[train], qid=qid[train], X_val=frame[test], y_val=y[test], qid_val=qid[test]
)
regressor = HistGBRTRegressor(max_iter=30, random_state=0).fit(frame[train], y[train])
test_rows = {"X": frame[test], "y": y[test], "qid": qid[test]}

# %%
# Left: how much NDCG falls on the test queries if a column is shuffled, with intervals over the queries.
# Right: the same measure after each tree of the fit.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
importance = ImportanceDisplay.from_estimator(ranker, **test_rows, ax=left)
LearningCurvesDisplay.from_estimator(ranker, ax=right)
plt.show()
print(importance.result)

# %%
# How the score depends on three of the columns. Accumulated local effects only move rows to values near their
# own. The dashed line, like the last point of a category that lacks values, is for missing values, and the
# ticks at the bottom are the deciles of the rows.

PartialDependenceDisplay.from_estimator(ranker, frame[test], ["links", "clicks", "site"], kind="ale")
plt.show()

# %%
# The first three levels of the first tree. `~ranktrees.inspection.tree_graph` also writes trees for Graphviz.

TreeDisplay.from_estimator(ranker, max_depth=2)
plt.show()

# %%
# Left: NDCG at each cutoff, with intervals. Right: the difference between both models on each query.

scores = {"LambdaMART": ranker.predict(frame[test]), "regression": regressor.predict(frame[test])}
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
CutoffDisplay.from_predictions(y[test], scores, qid=qid[test], ax=left)
PairedDifferenceDisplay.from_predictions(
    y[test], *scores.values(), qid=qid[test], names=tuple(scores), ax=right
)
plt.show()

# %%
# Left: the mean label of rows by their score, which for a regression is to be the score. Right: how much less
# rows are clicked the lower they are shown, as a ranker has found it in simulated clicks.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
RelevanceCalibrationDisplay.from_estimator(regressor, **test_rows, ref_line=True, ax=left)
log = make_clicks(y[train], qid=qid[train], n_sessions=10, random_state=0)
of_clicks = LambdaMARTRanker(max_iter=30, random_state=0).fit(
    X[train][log.rows], log.target, qid=log.qid, position=log.position
)
PositionBiasDisplay.from_estimator(of_clicks, ax=right)
plt.show()
