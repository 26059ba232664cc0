"""Objectives by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from ranktrees.objectives.base import Objective
from ranktrees.objectives.by_measure import LambdaLoss, LambdaMART
from ranktrees.objectives.custom import Custom
from ranktrees.objectives.listwise import XENDCG, ListNet, QueryRMSE
from ranktrees.objectives.pairwise import GBRank, RankNet
from ranktrees.objectives.pointwise import AbsoluteError, Gamma, Logistic, Poisson, Quantile, SquaredError


def as_objective(objective: str | Objective | Callable[..., Any], **parameters: Any) -> Objective:
    """Return the objective of a name, or the objective that a function stands for.

    Parameters
    ----------
    objective : str, Objective or callable
        One of ``"squared_error"``, ``"absolute_error"``, ``"quantile"``, ``"poisson"``, ``"gamma"``,
        ``"logistic"``, ``"ranknet"``, ``"gbrank"``, ``"lambdamart"``, ``"lambdaloss"``, ``"listnet"``,
        ``"xendcg"`` and ``"query_rmse"``, an objective, which is returned with the given parameters changed,
        or a function of (labels, scores, offsets), see `Custom`.
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
    >>> as_objective("gbrank", margin=2.0)
    GBRank(margin=2.0, truncation_level=None)
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
        Gamma,
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
