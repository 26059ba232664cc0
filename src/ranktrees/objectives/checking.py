"""Whether the gradients of an objective are the slope of its loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from ranktrees.objectives.base import Objective
from ranktrees.objectives.named import as_objective

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class GradientCheck(NamedTuple):
    """The errors of gradients and hessians against differences of the loss; see `check_gradients`."""

    scale: float
    gradient_error: float
    hessian_error: float


def check_gradients(
    objective: str | Objective | Callable[..., Any],
    labels: ArrayLike | None = None,
    offsets: ArrayLike | None = None,
    *,
    weights: ArrayLike | None = None,
    scores: ArrayLike | None = None,
    rtol: float = 1e-4,
    step: float = 1e-4,
    random_state: int | np.random.RandomState | None = 0,
) -> GradientCheck:
    """Check that the gradients of an objective are the slope of its loss.

    The loss is evaluated at ``scores``, with one row after another moved up and down by ``step``. Losses are
    means while gradients are those of sums, so a common factor is allowed. It is fitted first.

    Parameters
    ----------
    objective : str, Objective or callable
        Anything that `as_objective` takes, with a loss.
    labels : array-like of shape (n,), default=None
        The labels of rows that are grouped by query. If None, a few queries with labels from 0 to 4 are
        drawn.
    offsets : array-like of shape (n_queries + 1,), default=None
        Query q is the rows ``offsets[q]:offsets[q + 1]``. If None and ``labels`` are given, all rows are one
        query.
    weights : array-like of shape (n,), default=None
        The weights of the rows.
    scores : array-like of shape (n,), default=None
        The scores at which to check. If None, they are drawn.
    rtol : float, default=1e-4
        The largest error that passes, as a share of the largest gradient.
    step : float, default=1e-4
        The distance by which a score is moved.
    random_state : int, RandomState or None, default=0
        The seed of everything that is drawn.

    Returns
    -------
    GradientCheck
        The fitted factor, ``scale``, and the largest errors of the gradients and of the hessians,
        ``gradient_error`` and ``hessian_error``, as shares of the largest gradient and hessian. The error of
        the hessians is only reported. They may be bounds or leave something out, which makes steps shorter or
        longer and is not wrong.

    Raises
    ------
    ValueError
        If a gradient differs; the message names the row that differs most. Also if the loss does not change
        with the scores. This is so for `LambdaMART`, whose gradients are those of a cost while the ranks stay
        as they are. The gradients of `XENDCG` are drawn at random, so they differ from its loss as well.
        `RankNet` and `GBRank` pass without weights, or with one weight for all rows of a query.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.objectives import Custom, check_gradients
    >>> check_gradients("logistic", [0.0, 1.0, 1.0]).gradient_error < 1e-6
    True
    >>> def wrong(labels, scores, offsets):
    ...     return labels - scores, np.ones(len(scores))
    >>> def loss(labels, scores, offsets):
    ...     return ((scores - labels) ** 2).sum()
    >>> check_gradients(Custom(wrong, loss))
    Traceback (most recent call last):
        ...
    ValueError: the gradients of wrong have the opposite sign of the slope of the loss: change their sign
    """
    objective = as_objective(objective)
    name = getattr(objective, "function_name", objective.name)
    random = check_random_state(random_state)
    if labels is None:
        if offsets is not None:
            raise ValueError("offsets is given without labels: pass both, or neither")
        offsets = np.concatenate([[0], np.cumsum(random.randint(2, 9, 6))])
        labels = random.randint(0, 5, offsets[-1])
    labels = np.asarray(labels, dtype=np.float64)
    if labels.ndim != 1 or not len(labels) or not np.isfinite(labels).all():
        raise ValueError(f"labels has shape {labels.shape}; expected finite numbers, one per row")
    offsets = np.asarray([0, len(labels)] if offsets is None else offsets)
    whole = offsets.ndim == 1 and len(offsets) > 1 and offsets.dtype.kind in "iu"
    if not whole or offsets[0] != 0 or offsets[-1] != len(labels) or (np.diff(offsets) <= 0).any():
        raise ValueError(
            f"offsets is {offsets.tolist()}; expected whole numbers that rise from 0 to {len(labels)}, the "
            "number of labels: query q is the rows offsets[q]:offsets[q + 1]"
        )
    offsets = offsets.astype(np.int64)
    scores = np.array(random.normal(size=len(labels)) if scores is None else scores, dtype=np.float64)
    weights = None if weights is None else np.array(weights, dtype=np.float64)
    for argument, values, lowest in (("scores", scores, -np.inf), ("weights", weights, 0.0)):
        if values is None:
            continue
        if values.shape != labels.shape or not (np.isfinite(values) & (values >= lowest)).all():
            kind = "finite numbers" if argument == "scores" else "finite numbers >= 0"
            raise ValueError(
                f"{argument} has shape {values.shape}, or some entries that are not valid; expected {kind}, "
                f"one for each of the {len(labels)} labels"
            )
    objective.check_labels(labels)
    prepared = objective.prepare(labels, weights, offsets)
    gradients, hessians = np.empty(len(labels)), np.empty(len(labels))
    prepared.gradients(scores, gradients, hessians)
    here = prepared.loss(scores)
    moves = step * np.eye(len(labels))
    up, down = (np.array([prepared.loss(scores + sign * move) for move in moves]) for sign in (1, -1))
    slopes, bends = (up - down) / (2 * step), (up - 2 * here + down) / step**2
    if not slopes.any():
        raise ValueError(
            f"the loss of {name} does not change with the scores, so its gradients cannot be checked"
        )
    if not gradients.any():
        raise ValueError(f"the gradients of {name} are all 0, but the loss changes with the scores")
    scale = float(gradients @ slopes / (slopes @ slopes))
    if scale < 0:
        raise ValueError(
            f"the gradients of {name} have the opposite sign of the slope of the loss: change their sign"
        )
    errors = np.abs(gradients - scale * slopes) / np.abs(gradients).max()
    worst = int(np.argmax(errors))
    if not errors[worst] <= rtol:
        raise ValueError(
            f"the gradient of {name} in row {worst} is {gradients[worst]:.6g}, but the loss rises by "
            f"{scale * slopes[worst]:.6g} there (times {scale:.6g}, which fits best)"
        )
    largest = max(float(np.abs(hessians).max()), np.finfo(float).tiny)
    return GradientCheck(scale, float(errors[worst]), float(np.abs(hessians - scale * bends).max()) / largest)
