"""Links: the functions that turn scores into predictions, and the names by which ensembles know them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ranktrees.objectives import Logistic, Poisson
from ranktrees.objectives.base import Objective
from ranktrees.support.warning import FitWarning, warn

if TYPE_CHECKING:
    from ranktrees.objectives.base import Link


class HasLink(Protocol):
    """A fitted estimator, as far as its link goes."""

    _link: Any
    _is_ranker: bool


LINKS: dict[str, Link] = {loss.name: loss().inverse_link for loss in (Logistic, Poisson)}


def link_of(objective: Objective) -> Link | None:
    """Return the function that turns scores into predictions; None if they are the same."""
    return None if type(objective).inverse_link is Objective.inverse_link else objective.inverse_link


def is_same_link(link: Link | None, other: Link | None) -> bool:
    return getattr(link, "__func__", link) is getattr(other, "__func__", other)


def name_of(link: Link | None) -> str | None:
    """Return the name of a link in an `Ensemble`; None if there is none, or if it is a user's own."""
    return next((name for name, known in LINKS.items() if is_same_link(known, link)), None)


def warn_of_lost_link(model: HasLink) -> None:
    """Warn if predictions are made of scores by a function that a file of the trees will not have."""
    if model._link is not None and not model._is_ranker and name_of(model._link) is None:
        warn(
            f"{getattr(model._link, '__qualname__', model._link)}, by which the loss turns scores into "
            "predictions, is not written: files hold the link of the logistic and the Poisson loss. What is "
            "read predicts scores.",
            FitWarning,
        )
