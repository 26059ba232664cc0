"""Synthetic clicks of users who examine some positions more often than others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import Bunch

from ranktrees.datasets.synthetic import check_integer, generator_of
from ranktrees.measures.rows import numbers_in
from ranktrees.rows import query_offsets
from ranktrees.support.listed import in_order
from ranktrees.support.numeric import is_real

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ranktrees.support.annotations import IdsLike, RandomState


def make_clicks(
    y: ArrayLike,
    y_score: ArrayLike | None = None,
    *,
    qid: IdsLike,
    n_sessions: int = 1,
    n_shown: int = 10,
    propensities: ArrayLike | None = None,
    noise: float = 0.1,
    random_state: RandomState = None,
) -> Bunch:
    r"""Draw clicks on rankings by the position-based model.

    In a session the first ``n_shown`` rows of a query, by falling score, are shown. A row at position
    :math:`k` is examined with probability :math:`p_k` and, if it is examined, clicked with probability

    .. math:: \varepsilon + (1 - \varepsilon) \frac{2^y - 1}{2^{y_{max}} - 1}.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels >= 0.
    y_score : array-like of shape (n_rows,), default=None
        The scores by which rows are shown. Rows with equal scores are shown in their given order. If None,
        each session shows its query in a random order of its own.
    qid : array-like of shape (n_rows,)
        The query of each row, in any order.
    n_sessions : int, default=1
        The number of sessions of each query.
    n_shown : int, default=10
        The number of rows that are shown, if the query has that many.
    propensities : array-like of shape (n_shown,), default=None
        The probability that each position is examined, :math:`p_k`, from 0 to 1. If None, :math:`1 / k`.
    noise : float, default=0.1
        The probability of a click on a row of label 0 that is examined, :math:`\varepsilon`, from 0 to 1.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None, default=None
        The source of randomness, as for `make_ranking`.

    Returns
    -------
    clicks : :class:`~sklearn.utils.Bunch`
        rows : int64 ndarray of shape (n_clicks,)
            The rows that were shown, session by session. Fit a ranker to ``X[rows]``.
        target : int64 ndarray of shape (n_clicks,)
            1 if the row was clicked, else 0.
        qid : int64 ndarray of shape (n_clicks,)
            The number of the session, from 0 on.
        position : int64 ndarray of shape (n_clicks,)
            The position at which the row was shown, from 1 on.
        propensities : float64 ndarray of shape (n_shown,)
            The probability that each position is examined.

    Raises
    ------
    ValueError
        If an argument is out of its range; the message names it.

    References
    ----------
    Joachims, Swaminathan and Schnabel, *Unbiased Learning-to-Rank with Biased Feedback*, WSDM 2017, for this
    simulation. Hu, Wang, Peng and Li, *Unbiased LambdaMART*, WWW 2019, for more than two grades.

    Examples
    --------
    >>> from ranktrees.datasets import make_clicks
    >>> log = make_clicks([0, 2, 1], [0.9, 0.5, 0.7], qid=[7, 7, 7], n_sessions=2, n_shown=2, random_state=0)
    >>> log.rows, log.qid, log.position
    (array([0, 2, 0, 2]), array([0, 0, 1, 1]), array([1, 2, 1, 2]))
    >>> log.target, log.propensities
    (array([0, 0, 1, 1]), array([1. , 0.5]))
    """
    labels = _column(y, "y", "labels >= 0")
    if labels.min(initial=0.0) < 0:
        raise ValueError(f"y holds {labels.min():g}; expected labels >= 0.")
    order, offsets = query_offsets(qid, len(labels))
    for name, value in (("n_sessions", n_sessions), ("n_shown", n_shown)):
        check_integer(name, value, 1)
    if not (is_real(noise) and 0 <= noise <= 1):
        raise ValueError(f"noise={noise!r}; expected a probability, from 0 to 1.")
    if propensities is None:
        propensities = 1.0 / np.arange(1, n_shown + 1)
    propensities = in_order(propensities, "propensities", first=1)
    what = f"the {n_shown} probabilities of being examined"
    propensities = _column(propensities, "propensities", what, of="position")
    if propensities.shape != (n_shown,) or not ((propensities >= 0) & (propensities <= 1)).all():
        raise ValueError(
            f"propensities={propensities!r}; expected {n_shown} probabilities, one for each position shown."
        )
    if y_score is not None:
        y_score = _column(y_score, "y_score", "one score per row")
        if y_score.shape != labels.shape:
            raise ValueError(
                f"y_score has length {len(y_score)}; expected one for each of the {len(labels)} rows."
            )
    rng = generator_of(random_state)
    order = np.arange(len(labels)) if order is None else order
    best = labels.max()
    gains = 2.0 ** (labels - best) - 2.0**-best  # all divided by 2^best, which may be too large for a float
    relevance = noise + (1.0 - noise) * (gains / gains.max() if best > 0 else gains)

    sizes = np.tile(np.diff(offsets), n_sessions)
    session = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.tile(order, n_sessions)
    shown_by = rng.random(len(rows)) if y_score is None else -y_score[rows]
    rows = rows[np.lexsort((shown_by, session))]
    position = 1 + np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    shown = position <= n_shown
    rows, session, position = rows[shown], session[shown], position[shown]
    clicked = rng.random(len(rows)) < propensities[position - 1] * relevance[rows]
    return Bunch(
        rows=rows,
        target=clicked.astype(np.int64),
        qid=session,
        position=position,
        propensities=propensities,
    )


def _column(values: Any, name: str, what: str, of: str = "row") -> np.ndarray:
    try:
        numbers = numbers_in(name, values, of)
    except ValueError as error:
        raise ValueError(f"{error}; expected {what}.") from error
    if numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers).all():
        raise ValueError(f"{name} has shape {numbers.shape}, or is not finite; expected {what}.")
    return numbers
