"""Synthetic clicks: what people would have clicked who look at some positions more often than at others."""

from numbers import Real

import numpy as np
from sklearn.utils import Bunch

from ranktrees.datasets.synthetic import _check_integer, _generator, _is
from ranktrees.listed import in_order
from ranktrees.validation import query_offsets


def make_clicks(
    y, qid, scores=None, *, n_sessions=1, n_shown=10, propensities=None, noise=0.1, random_state=None
):
    r"""Draw clicks on rankings by the position-based model.

    In a session the rows of a query are shown by falling score, the first ``n_shown`` of them. A row at
    position :math:`k` is looked at with probability :math:`p_k`, and clicked, if looked at, with probability

    .. math:: \varepsilon + (1 - \varepsilon) \frac{2^y - 1}{2^{y_{max}} - 1}.

    Parameters
    ----------
    y : array-like of shape (n_rows,)
        Labels >= 0.
    qid : array-like of shape (n_rows,)
        The query of each row, in any order.
    scores : array-like of shape (n_rows,), default=None
        By which rows are shown, those of equal score in the order they came. None: each session shows its
        query in an order of its own, drawn at random.
    n_sessions : int, default=1
        How often each query is asked.
    n_shown : int, default=10
        How many rows are shown, if the query has so many.
    propensities : array-like of shape (n_shown,), default=None
        How often each position is looked at, :math:`p_k` from 0 to 1. None: :math:`1 / k`.
    noise : float, default=0.1
        :math:`\varepsilon`, the probability of a click on a row of label 0 that is looked at, from 0 to 1.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None, default=None
        As for `make_ranking`.

    Returns
    -------
    clicks : :class:`~sklearn.utils.Bunch`
        rows : int64 ndarray of shape (n_clicks,)
            The rows that were shown, session by session: ``X[rows]`` is what a ranker is fitted to.
        target : int64 ndarray of shape (n_clicks,)
            1 where the row was clicked, else 0.
        qid : int64 ndarray of shape (n_clicks,)
            The session, from 0.
        position : int64 ndarray of shape (n_clicks,)
            Where the row was shown, from 1.
        propensities : float64 ndarray of shape (n_shown,)
            How often each position is looked at.

    Raises
    ------
    ValueError
        If an argument is out of its range; the message names it.

    References
    ----------
    Joachims, Swaminathan and Schnabel, *Unbiased Learning-to-Rank with Biased Feedback*, WSDM 2017, has this
    simulation, Hu, Wang, Peng and Li, *Unbiased LambdaMART*, WWW 2019, with more than two grades.

    Examples
    --------
    >>> from ranktrees.datasets import make_clicks
    >>> log = make_clicks([0, 2, 1], [7, 7, 7], [0.9, 0.5, 0.7], n_sessions=2, n_shown=2, random_state=0)
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
        _check_integer(name, value, 1)
    if not (_is(Real, noise) and 0 <= noise <= 1):
        raise ValueError(f"noise={noise!r}; expected a probability, from 0 to 1.")
    if propensities is None:
        propensities = 1.0 / np.arange(1, n_shown + 1)
    propensities = in_order(propensities, "propensities", first=1)
    propensities = _column(propensities, "propensities", f"the {n_shown} probabilities of being looked at")
    if propensities.shape != (n_shown,) or not ((propensities >= 0) & (propensities <= 1)).all():
        raise ValueError(
            f"propensities={propensities!r}; expected {n_shown} probabilities, one for each position shown."
        )
    if scores is not None:
        scores = _column(scores, "scores", "one score per row")
        if scores.shape != labels.shape:
            raise ValueError(
                f"scores has length {len(scores)}; expected one for each of the {len(labels)} rows."
            )
    rng = _generator(random_state)
    order = np.arange(len(labels)) if order is None else order
    best = labels.max()
    gains = 2.0 ** (labels - best) - 2.0**-best  # over 2^best, as the largest is: that may be too large
    relevance = noise + (1.0 - noise) * (gains / gains.max() if best > 0 else gains)

    sizes = np.tile(np.diff(offsets), n_sessions)
    session = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.tile(order, n_sessions)
    shown_by = rng.random(len(rows)) if scores is None else -scores[rows]
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


def _column(values, name, what):
    try:
        numbers = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} could not be turned into numbers ({error}); expected {what}.") from error
    if numbers.ndim != 1 or not len(numbers) or not np.isfinite(numbers).all():
        raise ValueError(f"{name} has shape {numbers.shape}, or is not finite; expected {what}.")
    return numbers
