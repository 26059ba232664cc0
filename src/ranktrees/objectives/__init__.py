"""Objectives, which training minimises: start values, gradients and hessians.

Pointwise objectives compare the score of a row with its own label (`SquaredError`, `AbsoluteError`,
`Quantile`, `Poisson`, `Logistic`). Pairwise objectives compare the rows of a query with each other
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

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ranktrees.objectives.base import Objective, PreparedObjective
from ranktrees.objectives.by_measure import LambdaLoss, LambdaMART
from ranktrees.objectives.custom import Custom, GradientCheck, check_gradients
from ranktrees.objectives.listwise import XENDCG, ListNet, QueryRMSE
from ranktrees.objectives.pairwise import GBRank, RankNet
from ranktrees.objectives.pointwise import AbsoluteError, Logistic, Poisson, Quantile, SquaredError

__all__ = [
    "XENDCG",
    "AbsoluteError",
    "Custom",
    "GBRank",
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


def as_objective(objective: str | Objective | Callable[..., Any], **parameters: Any) -> Objective:
    """Return the objective of a name, or the objective that a function stands for.

    Parameters
    ----------
    objective : str, Objective or callable
        One of ``"squared_error"``, ``"absolute_error"``, ``"quantile"``, ``"poisson"``, ``"logistic"``,
        ``"ranknet"``, ``"gbrank"``, ``"lambdamart"``, ``"lambdaloss"``, ``"listnet"``, ``"xendcg"`` and
        ``"query_rmse"``, an objective, which is returned with the given parameters changed, or a function of
        (labels, scores, offsets), see `Custom`.
    **parameters
        The parameters of the objective.

    Returns
    -------
    Objective
        The objective.

    Raises
    ------
    ValueError
        If there is no such objective (the message lists those that exist), or if a parameter is out of its
        range.
    TypeError
        If the objective has no such parameter (the message lists those that it has).

    Examples
    --------
    >>> as_objective("squared_error")
    SquaredError()
    >>> as_objective("ranknet", sigma=2.0)
    RankNet(sigma=2.0, truncation_level=None)
    """
    kind: Any
    known: dict[str, Any]
    if isinstance(objective, Objective):
        kind = type(objective)
        known = {f.name: getattr(objective, f.name) for f in dataclasses.fields(kind)}
    elif isinstance(objective, str) and objective in BY_NAME:
        kind, known = BY_NAME[objective], {}
    elif callable(objective) and not isinstance(objective, type):
        kind, known = Custom, {"function": objective}
    else:
        raise ValueError(
            f"objective must be one of {', '.join(map(repr, BY_NAME))}, an Objective or a function of "
            f"(labels, scores, offsets), got {objective!r}"
        )
    names = [f.name for f in dataclasses.fields(kind)]
    unknown = sorted(set(parameters) - set(names))
    if unknown:
        raise TypeError(
            f"objective {kind.name!r} has no parameter {', '.join(map(repr, unknown))}: "
            f"it has {', '.join(names) or 'none'}"
        )
    return kind(**{**known, **parameters})


BY_NAME = {
    kind.name: kind
    for kind in (
        SquaredError,
        AbsoluteError,
        Quantile,
        Poisson,
        Logistic,
        RankNet,
        GBRank,
        LambdaMART,
        LambdaLoss,
        ListNet,
        XENDCG,
        QueryRMSE,
    )
}
