"""
Several processes, the same model
=================================

One setting of joblib lets ``fit`` run on several processes, here on this machine, and deals the candidates of
a search to them, over MPI or on a Dask cluster. The model does not change by a single bit.
"""

import joblib
import matplotlib.pyplot as plt
import pandas as pd
from dask.distributed import Client
from sklearn.model_selection import GridSearchCV

import ranktrees.mpi  # registers the backend "mpi"
from ranktrees import LambdaMARTRanker, QueryKFold, make_ranking

X, y, qid = make_ranking(90, rows_per_query=20, n_features=20, random_state=0, return_X_y_qid=True)
labels = pd.Series(y, index=pd.Index(qid, name="qid"))
alone = LambdaMARTRanker(max_iter=30, random_state=0).fit(X, labels)

# %%
# Two ranks are started, and each gets half of the queries. They add up their histograms, and find the same
# trees.

with joblib.parallel_config("mpi", n_ranks=2):
    together = LambdaMARTRanker(max_iter=30, random_state=0).fit(X, labels)
print("the same model:", together.ensemble_ == alone.ensemble_)

# %%
# A search deals its candidates to the ranks, and each candidate is fitted by one of them. The ranks wait for
# more work until the program ends or they are shut down.

search = GridSearchCV(
    LambdaMARTRanker(max_iter=30, random_state=0),
    {"learning_rate": [0.03, 0.1, 0.3]},
    cv=list(QueryKFold(3).split(X, y, groups=qid)),
)
with joblib.parallel_config("mpi", n_ranks=2):
    over_mpi = search.fit(X, labels).cv_results_
ranktrees.mpi.shutdown()

# %%
# Dask's own backend does the same on the workers of a cluster, which here are two threads of this process.

cluster = Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None)
with cluster, joblib.parallel_config("dask"):
    over_dask = search.fit(X, labels).cv_results_
print("the same scores:", (over_mpi["mean_test_score"] == over_dask["mean_test_score"]).all())

plt.plot(over_mpi["param_learning_rate"], over_mpi["mean_test_score"], "o-", label="on ranks of MPI")
plt.plot(over_dask["param_learning_rate"], over_dask["mean_test_score"], "x", label="on workers of Dask")
plt.xlabel("learning_rate")
plt.ylabel("mean NDCG @ 10 over the folds")
plt.legend()
plt.show()
