"""Gains and discounts: how much labels and ranks are worth."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ranktrees._core.measures import ranking
from ranktrees.measures.checks import CHECKS, refuse_rises
from ranktrees.measures.rows import read_only

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.support.annotations import Worth


def gains(labels: ArrayLike, gain: Worth = "exp2") -> NDArray[np.float64]:
    """Return the gains of labels, that is, how much they are worth.

    Parameters
    ----------
    labels : array-like of shape (n,)
        Finite labels >= 0.
    gain : {"exp2", "linear"}, sequence or callable, default="exp2"
        ``"exp2"`` is 2^label - 1, which is exact for whole labels and has the same bits on every machine for
        others. ``"linear"`` is the label itself. A sequence is a table that is indexed by whole labels. A
        mapping of all whole labels from 0 on is such a table, too. A function maps the array of labels to the
        array of gains.

    Returns
    -------
    ndarray of shape (n,), float64
        Finite gains >= 0.

    Raises
    ------
    ValueError
        If a label is negative or not finite, or if it has no finite gain >= 0: it is above 1000 with "exp2",
        or it is outside the table or not whole with a table.

    Examples
    --------
    >>> from ranktrees.measures import gains
    >>> gains([0, 1, 2, 4])
    array([ 0.,  1.,  3., 15.])
    >>> gains([0, 1, 2], gain=[0, 1, 10])
    array([ 0.,  1., 10.])
    """
    labels = np.ascontiguousarray(labels, dtype=np.float64)
    lowest, highest = labels.min(initial=0.0), labels.max(initial=0.0)
    if not (lowest >= 0 and highest < math.inf):
        raise ValueError(
            "only labels that are finite and >= 0 have gains, but there is a label "
            f"{highest if lowest >= 0 else lowest:g}: shift all labels, or drop such rows"
        )
    if isinstance(gain, str) and gain == "exp2":
        return exp2_gains(labels)
    if isinstance(gain, str) and gain == "linear":
        return labels.copy()
    if callable(gain):
        out = np.ascontiguousarray(gain(read_only(labels)), dtype=np.float64)
        if out.shape != labels.shape:
            raise ValueError(
                f"gain returned shape {out.shape} for labels of shape {labels.shape}; expected a gain for "
                "each label"
            )
        if not (np.isfinite(out) & (out >= 0)).all():
            raise ValueError(
                "gain returned a number that is negative or not finite: gains must be finite and >= 0"
            )
        return out
    table = np.asarray(CHECKS["gain"](gain))
    index = labels.astype(np.intp)
    if (index != labels).any():
        raise ValueError(
            f"a gain table is indexed by whole labels, but label {labels[index != labels][0]:g} is not "
            "whole: use gain='exp2', 'linear' or a function"
        )
    if highest >= len(table):
        raise ValueError(
            f"the gain table has {len(table)} entries, for labels 0 to {len(table) - 1}, "
            f"but there is a label {highest:g}: add entries, or use gain='exp2', 'linear' or a function"
        )
    return table[index]


def exp2_gains(labels: np.ndarray) -> np.ndarray:
    """Return 2^label - 1 for float64 labels of any sign."""
    highest = labels.max(initial=0.0)
    if highest > 1000:
        raise ValueError(
            f"gain='exp2' is 2^label - 1, which is too large for a float at label {highest:g}: "
            "use labels up to 1000, gain='linear' or a table"
        )
    out = np.empty_like(labels)
    ranking.exp2_gains(labels, out)
    return out


def discounts(n: int, discount: Worth = "log2") -> NDArray[np.float64]:
    """Return the discounts of ranks, that is, how much they are worth.

    Parameters
    ----------
    n : int
        The number of ranks.
    discount : {"log2", "letor"}, sequence or callable, default="log2"
        ``"log2"`` is 1 / log2(1 + rank), with the same bits on every machine. ``"letor"`` is 1 at ranks 1 and
        2 and 1 / log2(rank) from there on, as in the evaluation scripts of LETOR. A sequence holds the
        discounts from rank 1 on, none above the one before, with 0 behind its end. A function maps the array
        of ranks to the discounts.

    Returns
    -------
    ndarray of shape (n,), float64
        The discounts of ranks 1, ..., n. They are finite and >= 0, and none is above that of the rank before.

    Raises
    ------
    ValueError
        If a function returns another shape, or numbers that are negative or not finite, or if a rank is worth
        more than the one above it. In that case the best order, by whose DCG the NDCG divides, would not be
        that of the gains.

    References
    ----------
    Järvelin and Kekäläinen, *Cumulated Gain-based Evaluation of IR Techniques*, TOIS 2002.

    Examples
    --------
    >>> from ranktrees.measures import discounts
    >>> discounts(3).round(3)
    array([1.   , 0.631, 0.5  ])
    >>> discounts(3, "letor").round(3)
    array([1.   , 1.   , 0.631])
    """
    out = np.zeros(n)
    if isinstance(discount, str) and discount == "log2":
        ranking.log2_discounts(out)
    elif isinstance(discount, str) and discount == "letor":
        out[:1] = 1.0
        ranking.log2_discounts(out[1:])
    elif callable(discount):
        values = np.asarray(discount(np.arange(1.0, n + 1.0)), dtype=np.float64)
        if values.shape != (n,):
            raise ValueError(
                f"discount returned shape {values.shape} for {n} ranks; expected a discount for each rank"
            )
        if not (np.isfinite(values) & (values >= 0)).all():
            raise ValueError(
                "discount returned a number that is negative or not finite: discounts must be finite and >= 0"
            )
        refuse_rises(values)
        out[:] = values
    else:
        table = CHECKS["discount"](discount)[:n]
        out[: len(table)] = table
    return out
