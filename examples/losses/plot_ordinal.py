"""
Regression or ordinal classification?
=====================================

A grade can be learned as a number, or as one of a few ordered classes: how likely is it at most 0, at most 1,
and so on? A row's score is then an expected value over its grades, and what a grade is worth can be chosen
afterwards: the grade itself, its square, a power of two. Mohan's survey found the plain expected relevance to
be best on web search, and classification to be better than regression in most cases.
"""

# %%
# The rule of relevance can be learned, with noise as strong as what there is to learn. Half of the queries
# train, half test. Each kind of trees learns the labels themselves and, in an `~ranktrees.OrdinalRanker`, the
# four events "at most this grade". One fit serves all scorings, since they only change the values by which
# probabilities are weighed. For comparison, the likeliest grade is what a classifier would predict by itself.

import matplotlib.pyplot as plt
import numpy as np

from ranktrees import (
    HistGBRTClassifier,
    HistGBRTRegressor,
    OrdinalRanker,
    RandomForestRanker,
    compare,
    make_ranking,
    train_test_split_by_query,
)

X, y, qid = make_ranking(
    600, rows_per_query=30, n_features=20, noise=1.0, random_state=0, return_X_y_qid=True
)
X_train, X_test, y_train, y_test, qid_train, qid_test = train_test_split_by_query(
    X, y, qid, qid=qid, test_size=0.5, random_state=0
)

trees = {"learning_rate": 0.1, "max_iter": 100, "random_state": 0}
forest = RandomForestRanker(random_state=0)
regressors = {
    "boosting": HistGBRTRegressor(**trees),
    "forest": forest,
    "boosting from a forest": HistGBRTRegressor(init=forest, **trees),
}
classifiers = regressors | {"boosting": HistGBRTClassifier(**trees)}


def scores_by(probabilities):
    grades = np.arange(5)
    return {
        "expected relevance": probabilities @ grades,
        "expected square": probabilities @ grades**2,
        "expected gain": probabilities @ (2.0**grades - 1),
        "likeliest grade": probabilities.argmax(axis=1),
    }


comparisons = {}
for kind, regressor in regressors.items():
    regression = regressor.fit(X_train, y_train, qid=qid_train).predict(X_test)
    ranker = OrdinalRanker(classifiers[kind]).fit(X_train, y_train, qid=qid_train)
    for scoring, scores in scores_by(ranker.predict_proba(X_test)).items():
        comparisons[kind, scoring] = compare(y_test, scores, regression, qid=qid_test)
print(comparisons["boosting", "expected relevance"])

# %%
# Right of the line classification is better than regression by the same trees; the bars are 95 % intervals of
# the mean difference over the test queries. The scorings that weigh the probabilities differ little from each
# other. The likeliest grade is far behind: it has only five different scores, and does not express how sure
# it is.

figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), sharex=True, sharey=True, layout="constrained")
for axis, kind in zip(axes, regressors, strict=True):
    axis.axvline(0, color="grey", linewidth=0.8)
    axis.set(title=kind)
    for (other, scoring), found in comparisons.items():
        if other == kind:
            axis.plot(found.interval, [scoring] * 2, "|-", found.difference, scoring, "o", color="C0")
axes[0].invert_yaxis()
figure.supxlabel("NDCG@10: classification - regression")
plt.show()
