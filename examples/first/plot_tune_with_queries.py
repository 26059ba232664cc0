"""
How do I tune with queries?
===========================

scikit-learn's search tools cut rows into folds. For ranking they must not cut through a query, and the score
of a fold is a mean over its queries. Both need the query ids, and there are two ways to pass them.
"""

# %%
# The first way is metadata routing. Splitters, estimators and scorers each request what they need, and take
# the query ids under the name that scikit-learn's splitters know, ``groups``.

import matplotlib.pyplot as plt
import pandas as pd
import sklearn
from sklearn.model_selection import GridSearchCV

from ranktrees import LambdaMARTRanker, QueryKFold, make_ranking

X, y, qid = make_ranking(90, rows_per_query=20, n_features=20, random_state=0, return_X_y_qid=True)
search = GridSearchCV(
    LambdaMARTRanker(max_iter=50, random_state=0),
    {"max_leaf_nodes": [4, 8, 16, 32], "learning_rate": [0.05, 0.2]},
    cv=QueryKFold(3),
)
with sklearn.config_context(enable_metadata_routing=True):
    search.fit(X, y, groups=qid)
print(search.best_params_, round(search.best_score_, 3))

# %%
# The second way is to put the ids in the index of ``y``. Whatever takes rows out of ``y`` takes their ids
# along, and nothing needs to be enabled.

labels = pd.Series(y, index=pd.Index(qid, name="qid"))
by_index = sklearn.clone(search).fit(X, labels)
print(by_index.best_params_, round(by_index.best_score_, 3))

# %%
# Both searches saw the same folds and the same queries.

results = pd.DataFrame(search.cv_results_)
figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
for rate, rows in results.groupby("param_learning_rate"):
    axes.errorbar(
        rows["param_max_leaf_nodes"],
        rows["mean_test_score"],
        yerr=rows["std_test_score"] / 3**0.5,
        marker="o",
        capsize=4,
        label=f"learning_rate={rate}",
    )
axes.set(xlabel="max_leaf_nodes", ylabel="NDCG@10, mean of 3 folds", xscale="log", xticks=[4, 8, 16, 32])
axes.get_xaxis().set_major_formatter("{x:g}")
axes.minorticks_off()
axes.legend()
plt.show()
