"""
One ranking, many measures
==========================

Measures differ in what they consider: the first few rows or all of them, grades or only whether a row is
relevant, one relevant row or each. Moreover, one name stands for several conventions, such as what a query
without relevant rows counts, or by what ERR divides grades. Here a measure is a value, and its parameters are
in its name.
"""

# %%
# Three rankers of the same kind are made for different things: a regression of the grades, LambdaMART for
# NDCG at 10, and LambdaMART for the first relevant row.

import matplotlib.pyplot as plt
import numpy as np

from ranktrees import HistGBRTRegressor, LambdaMARTRanker, as_measure, make_ranking, train_test_split_by_query

X, y, qid = make_ranking(300, "web", rows_per_query=40, n_features=20, random_state=0, return_X_y_qid=True)
X_train, X_test, y_train, y_test, qid_train, qid_test = train_test_split_by_query(
    X, y, qid, qid=qid, test_size=0.5, random_state=0
)
rankers = {
    "regression": HistGBRTRegressor(learning_rate=0.1, max_iter=100, random_state=0),
    "for NDCG@10": LambdaMARTRanker(measure="ndcg@10", max_iter=100, random_state=0),
    "for RR": LambdaMARTRanker(measure="rr(rel=3)", max_iter=100, random_state=0),
}
scores = {
    name: ranker.fit(X_train, y_train, qid=qid_train).predict(X_test) for name, ranker in rankers.items()
}

# %%
# Most of the measures are means over queries: precision of the first five rows, the area under the ROC curve,
# whole and down to the fifth irrelevant row, NDCG, also with 1/2 for a query without relevant rows, ERR with
# grades up to 4, whose probabilities are (2^grade - 1) / 16, and the rank of the first row of a high grade.
# One, of Mohan's survey, is not: "auc.survey" is the area over all pairs of rows of any queries, although
# LambdaMART learns only from pairs of one query. The error of the grades is for regressions only, because
# LambdaMART does not predict grades.

measures = [
    "prec(rel=2)@5",
    "auc(rel=2)",
    "top_auc(rel=2)@[0,5]",
    "ndcg@10",
    "ndcg(empty_query=0.5)@10",
    "err(max_grade=4)",
    "rr(rel=3)",
    "auc.survey",
]
values = {
    name: [as_measure(measure)(y_test, score, qid=qid_test) for measure in measures]
    for name, score in scores.items()
}
for measure, line in zip(measures, zip(*values.values(), strict=True), strict=True):
    print(f"{measure:26s}", *(f"{name} {value:.3f}  " for name, value in zip(values, line, strict=True)))
print(f"{'rmse':26s} regression {as_measure('rmse')(y_test, scores['regression']):.3f}")

# %%
# The bars show what each ranker gains over the regression. The ranker for NDCG is ahead by nearly every
# measure, even by the one for which the other was made: the first relevant row of each query tells training
# little.

figure, axis = plt.subplots(figsize=(7, 3.5), layout="constrained")
places = np.arange(len(measures))
for shift, name in ((-0.2, "for NDCG@10"), (0.2, "for RR")):
    axis.bar(places + shift, np.subtract(values[name], values["regression"]), 0.4, label=name)
axis.axhline(0, color="black", linewidth=0.8)
axis.set_xticks(places, measures, rotation=30, ha="right")
axis.set_ylabel("above regression")
axis.legend()
plt.show()
