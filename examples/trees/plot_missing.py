"""
Where should rows without a value go?
=====================================

In each split, a tree can learn on which side rows without a value are better off, or keep them to one side.
It can also part them from the others before it asks for the value. Or the gaps can be filled beforehand.
Mohan's survey compares all of these but the first. Which one is best depends on why values are missing.
"""

# %%
# From complete rows, values are removed in two ways: three in ten by chance, or three in four of those that
# are large. In the second case a gap carries information about the value. Half of the queries train, half
# test.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.impute import SimpleImputer

from ranktrees import HistGBRTRegressor, compare, make_ranking, train_test_split_by_query

X, y, qid = make_ranking(500, rows_per_query=30, n_features=10, random_state=0, return_X_y_qid=True)
rng = np.random.default_rng(0)
gaps = {
    "by chance": rng.random(X.shape) < 0.3,
    "large": (X > 0.3) & (rng.random(X.shape) < 0.75),
}

model = HistGBRTRegressor(learning_rate=0.1, max_iter=100, random_state=0)
mean = SimpleImputer()
comparisons = {}
for why, missing in gaps.items():
    lacking = np.where(missing, np.nan, X)
    parts = train_test_split_by_query(lacking, y, qid, qid=qid, test_size=0.5, random_state=0)
    X_train, X_test, y_train, y_test, qid_train, qid_test = parts
    scores = {
        treatment: model.set_params(handle_missing=treatment)
        .fit(X_train, y_train, qid=qid_train)
        .predict(X_test)
        for treatment in ("learned", "left", "right", "three_way")
    }
    model.set_params(handle_missing="learned").fit(mean.fit_transform(X_train), y_train, qid=qid_train)
    scores["filled with the mean"] = model.predict(mean.transform(X_test))
    learned = scores.pop("learned")
    for treatment, others in scores.items():
        comparisons[why, treatment] = compare(y_test, others, learned, qid=qid_test)

# %%
# The bars are 95 % intervals of the mean difference from learned sides over the test queries. If values are
# missing by chance, only the mean may do as well: a row whose value is unknown is best treated as one in the
# middle. If large values are missing, their place is on the right, and whoever knows this beforehand may say
# so. Learned sides nearly find it by themselves, and the mean is nearly as wrong as the left. To part such
# rows from all others first costs leaves and rows that the values could have used, and does not pay here.

figure, axes = plt.subplots(1, 2, figsize=(8, 2.6), sharex=True, sharey=True, layout="constrained")
for axis, why in zip(axes, gaps, strict=True):
    axis.axvline(0, color="grey", linewidth=0.8)
    axis.set(title=f"missing {why}")
    for (other, treatment), found in comparisons.items():
        if other == why:
            axis.plot(found.interval, [treatment] * 2, "|-", found.difference, treatment, "o", color="C0")
axes[0].invert_yaxis()
figure.supxlabel("NDCG@10: treatment - learned sides")
plt.show()
