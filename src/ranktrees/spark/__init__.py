"""Training and scoring where the rows are: on the executors of a Spark cluster.

A fit is one barrier stage. Spark deals whole queries to its tasks, and each task is a rank. The ranks
communicate through sockets.

>>> from ranktrees import LambdaMARTRanker, spark
>>> rows = session.read.parquet("rows")  # doctest: +SKIP
>>> ranker = spark.fit(LambdaMARTRanker(), rows, label="grade", qid="query", n_ranks=4)  # doctest: +SKIP
>>> spark.score(ranker, rows).write.parquet("scored")  # doctest: +SKIP
"""

from ranktrees.spark.stages import fit, score

__all__ = ["fit", "score"]
