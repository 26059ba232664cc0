"""Training and scoring where the rows are: on the nodes of a Ray cluster.

Ray deals whole queries to actors, which it places all together, and each actor is a rank. The ranks
communicate through sockets.

>>> from ranktrees import LambdaMARTRanker, ray
>>> rows = data.read_parquet("rows")  # by ray.data  # doctest: +SKIP
>>> ranker = ray.fit(LambdaMARTRanker(), rows, label="grade", qid="query", n_ranks=4)  # doctest: +SKIP
>>> ray.score(ranker, rows).write_parquet("scored")  # doctest: +SKIP
"""

from ranktrees.ray.actors import fit, score

__all__ = ["fit", "score"]
