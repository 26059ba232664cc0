"""Objectives, which training minimises: start values, gradients and hessians.

Pointwise objectives compare the score of a row with its own label (`SquaredError`, `AbsoluteError`,
`Quantile`, `Poisson`, `Gamma`, `Logistic`). Pairwise objectives compare the rows of a query with each other
(`RankNet`, `GBRank`, `LambdaMART`, `LambdaLoss`). Listwise objectives consider all rows of a query at once
(`ListNet`, `XENDCG`, `QueryRMSE`). An objective of your own is a function (`Custom`) or a class
(`Objective`). An objective is a plain value:

>>> from ranktrees.objectives import as_objective
>>> as_objective("quantile", quantile=0.9)
Quantile(quantile=0.9)
>>> as_objective("lambdamart", measure="ndcg@5").truncation_level
30

The gradients and hessians come from kernels (``losses.pyx``, ``lambdas.pyx``, ``lists.pyx``) whose results
do not depend on the number of threads or on the processor.
"""

from ranktrees.objectives.base import Objective, PreparedObjective
from ranktrees.objectives.by_measure import LambdaLoss, LambdaMART
from ranktrees.objectives.checking import GradientCheck, check_gradients
from ranktrees.objectives.custom import Custom
from ranktrees.objectives.listwise import XENDCG, ListNet, QueryRMSE
from ranktrees.objectives.named import as_objective
from ranktrees.objectives.pairwise import GBRank, RankNet
from ranktrees.objectives.pointwise import AbsoluteError, Gamma, Logistic, Poisson, Quantile, SquaredError

__all__ = [
    "XENDCG",
    "AbsoluteError",
    "Custom",
    "GBRank",
    "Gamma",
    "GradientCheck",
    "LambdaLoss",
    "LambdaMART",
    "ListNet",
    "Logistic",
    "Objective",
    "Poisson",
    "PreparedObjective",
    "Quantile",
    "QueryRMSE",
    "RankNet",
    "SquaredError",
    "as_objective",
    "check_gradients",
]
