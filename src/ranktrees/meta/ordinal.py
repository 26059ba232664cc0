"""Ordinal classification: a model for each event "the grade is at most c", and scores from probabilities.

::

    models            P(y <= 0)  P(y <= 1)  P(y <= 2)            any models of probabilities
      | clip to [0, 1], nearest rising sequence
      v
    cumulative   0 <=    q_0   <=   q_1   <=   q_2   <= 1
      | differences
      v
    classes           p_0 | p_1 | p_2 | p_3                      their sum is 1
      | sum of p_c v_c                                           v: the values of the grades, from ``scoring``
      v
    score
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["class_probabilities", "least_squares_values", "nearest_rising"]


def class_probabilities(cumulative: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities of the grades, given what models predict for "at most this grade".

    Parameters
    ----------
    cumulative : ndarray of shape (n_rows, n_grades - 1)
        For each grade but the highest, the probability that a row has at most that grade. Values below 0 or
        above 1 are clipped. Rows whose values fall somewhere are replaced by the nearest that never fall
        (`nearest_rising`).

    Returns
    -------
    ndarray of float64, shape (n_rows, n_grades)
        At least 0. The sum of each row is 1.

    Examples
    --------
    >>> class_probabilities(np.array([[0.25, 0.5], [0.5, 0.25], [-0.1, 1.2]]))
    array([[0.25 , 0.25 , 0.5  ],
           [0.375, 0.   , 0.625],
           [0.   , 1.   , 0.   ]])
    """
    cumulative = np.clip(cumulative, 0.0, 1.0)
    falls = (np.diff(cumulative, axis=1) < 0).any(axis=1)
    cumulative[falls] = nearest_rising(cumulative[falls])
    return np.diff(cumulative, axis=1, prepend=0.0, append=1.0)


def nearest_rising(values: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Return the sequence nearest to each row, by squared distance, that never falls.

    This is isotonic regression in closed form:

    .. math:: r_j = \max_{i \le j}\; \min_{k \ge j}\; \frac{v_i + \ldots + v_k}{k - i + 1}.

    The sum of the sequence is that of the row. So if grades are equally far apart, the expected relevance
    remains the one that the models give. A running maximum, for example, would lower it.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n)

    Returns
    -------
    ndarray of float64, shape (n_rows, n)

    References
    ----------
    Robertson, Wright, Dykstra, *Order restricted statistical inference*, 1988, section 1.4.

    Examples
    --------
    >>> nearest_rising(np.array([[0.1, 0.5, 0.3, 0.9]]))
    array([[0.1, 0.4, 0.4, 0.9]])
    """
    rising = np.full(values.shape, -np.inf)
    for first in range(values.shape[1]):
        means = np.cumsum(values[:, first:], axis=1) / np.arange(1, values.shape[1] - first + 1)
        lowest = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
        np.maximum(rising[:, first:], lowest, out=rising[:, first:])
    return rising


def least_squares_values(
    probabilities: NDArray[np.float64],
    labels: NDArray[np.float64],
    grades: NDArray[np.float64],
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    r"""Return the values of the grades that bring the expected value of a row closest to its label.

    They minimise

    .. math:: \sum_i w_i \Big(\sum_c P_i(c)\, v_c - y_i\Big)^2 + \bar w \sum_c (v_c - c)^2,

    as if there were one more row of each grade, whose grade is certain, with the mean of the weights above 0.
    So a grade that no model ever expects has itself as its value.

    Parameters
    ----------
    probabilities : ndarray of shape (n_rows, n_grades)
    labels : ndarray of shape (n_rows,)
    grades : ndarray of shape (n_grades,)
    weights : ndarray of shape (n_rows,), default=None
        At least one of them is above 0.

    Returns
    -------
    ndarray of float64, shape (n_grades,)
        The same bits for any order of the rows.

    References
    ----------
    Mohan, *An empirical analysis on point-wise machine learning techniques using regression trees for
    web-search ranking*, 2010, section 3.2, equation 3.8.

    Examples
    --------
    >>> grades = np.array([0.0, 1.0])
    >>> timid = np.array([[0.75, 0.25], [0.25, 0.75]] * 1000)
    >>> least_squares_values(timid, np.array([0.0, 1.0] * 1000), grades).round(2)
    array([-0.5,  1.5])
    """
    weights = np.ones(len(labels)) if weights is None else weights
    mean_weight = math.fsum(weights) / np.count_nonzero(weights)
    expected = np.vstack([probabilities, np.eye(len(grades))])
    targets = np.append(labels, grades)
    weighted = np.append(weights, np.full(len(grades), mean_weight))[:, None] * expected
    sums = [[math.fsum(one * other) for other in (*expected.T, targets)] for one in weighted.T]
    return _solve(np.array(sums))


def _solve(equations: np.ndarray) -> np.ndarray:
    """Solve equations by Gauss-Jordan elimination, whose rounding depends on nothing but the numbers."""
    for pivot in range(len(equations)):
        equations[pivot] /= equations[pivot, pivot]
        others = np.arange(len(equations)) != pivot
        equations[others] -= equations[others, pivot, None] * equations[pivot]
    return equations[:, -1]
