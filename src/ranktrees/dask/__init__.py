"""Training on the workers of a Dask cluster. Importing this registers the joblib backend "dask_rows".

It is joblib's own backend for Dask, which deals tasks to workers, and lets a fit distribute its rows over all
workers as well: each worker then runs one rank, and the ranks communicate through sockets.

>>> with joblib.parallel_config("dask_rows", client=client):  # doctest: +SKIP
...     ranker = LambdaMARTRanker().fit(X, y, qid=qid)
"""

from ranktrees.dask.backend import DaskRows

__all__ = ["DaskRows"]
