"""Measures of a ranking: values that print as they are typed, score queries, and know what a swap changes.

A measure is a plain value. ``NDCG @ 10`` cuts it off at rank 10, ``NDCG(gain="linear") @ 10`` changes a
parameter, and ``(NDCG @ 10)(y_true, y_score, qid=qid)`` is its mean over the queries:

>>> from ranktrees.measures import NDCG, as_measure
>>> NDCG(gain="linear", ties="worst") @ 10
NDCG(gain="linear", ties="worst") @ 10
>>> as_measure("ndcg@10") == NDCG @ 10
True
>>> (NDCG @ 2)([0, 2, 1, 1, 0], [0.3, 0.9, 0.1, 0.2, 0.7], qid=["a", "a", "a", "b", "b"])
0.728...

The parameters, where a measure has them (its documentation lists them with their defaults):

``gain``
    What a label is worth. ``"exp2"`` is 2^label - 1, ``"linear"`` the label itself, a sequence is a table
    read at the (whole) label, and a function takes the array of labels and returns the array of gains.
``discount``
    What a rank is worth. ``"log2"`` is 1 / log2(1 + rank); ``"letor"`` is 1 at ranks 1 and 2, then
    1 / log2(rank), as in the LETOR scripts; a sequence is a table from rank 1 on, with 0 behind its end; a
    function takes the array of ranks 1, 2, ... and returns the array of discounts.
``ties``
    How rows with equal scores are ordered. ``"average"`` is the exact expectation over all their orders,
    ``"worst"`` the order that gives the lowest value, ``"input"`` the order of the rows, ``"reverse"`` the
    same from the last row to the first. The last two let the order of the file leak into the result: a
    constant score is perfect where the file is sorted by label. They exist to reproduce other programs.
``empty_query``
    What a query counts where the measure says nothing about the ranking, because no row is relevant (no gain
    is positive) or no two labels differ. ``"skip"`` leaves the query out, a number is its value.
``rel``
    The lowest label that is relevant, for measures of relevant and irrelevant rows.
``at``
    The cutoff, set by ``@``: only ranks 1, ..., ``at`` count.

Labels are finite numbers >= 0 of any number of grades, queries have any number of rows.
"""

from __future__ import annotations

import ast
import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from ranktrees import validation
from ranktrees._core import ranking
from ranktrees.communicator import ALONE
from ranktrees.warning import warn

__all__ = [
    "AP",
    "AUC",
    "DCG",
    "ERR",
    "NDCG",
    "PAUC",
    "RMSE",
    "RR",
    "BoundMeasure",
    "KendallTau",
    "Measure",
    "P",
    "PairAccuracy",
    "R",
    "as_measure",
    "dcg_score",
    "discounts",
    "err_score",
    "gains",
    "mean_auc_score",
    "mean_average_precision_score",
    "mean_reciprocal_rank_score",
    "ndcg_score",
    "pair_accuracy_score",
    "precision_at_k_score",
    "recall_at_k_score",
]


# ---- gains and discounts -----------------------------------------------------------------------------------


def gains(labels, gain="exp2"):
    """What labels are worth.

    Parameters
    ----------
    labels : array-like of shape (n,)
        Finite labels >= 0.
    gain : {"exp2", "linear"}, sequence or callable, default="exp2"
        ``"exp2"`` is 2^label - 1, exact for whole labels and the same bits on every machine for others;
        ``"linear"`` the label itself; a sequence a table indexed by whole labels; a function maps the array
        of labels to the array of gains.

    Returns
    -------
    ndarray of shape (n,), float64
        Finite gains >= 0.

    Raises
    ------
    ValueError
        If a label is negative or not finite, or has no finite gain >= 0: above 1000 with "exp2", outside the
        table, or not whole with one.

    Examples
    --------
    >>> gains([0, 1, 2, 4])
    array([ 0.,  1.,  3., 15.])
    >>> gains([0, 1, 2], gain=[0, 1, 10])
    array([ 0.,  1., 10.])
    """
    labels = np.ascontiguousarray(labels, dtype=np.float64)
    lowest, highest = labels.min(initial=0.0), labels.max(initial=0.0)
    if not (lowest >= 0 and highest < math.inf):
        raise ValueError(
            "labels have gains where they are finite and >= 0, but there is a label "
            f"{highest if lowest >= 0 else lowest:g}: shift all labels, or drop such rows"
        )
    if isinstance(gain, str) and gain == "exp2":
        return exp2_gains(labels)
    if isinstance(gain, str) and gain == "linear":
        return labels
    if callable(gain):
        out = np.ascontiguousarray(gain(labels), dtype=np.float64)
        if out.shape != labels.shape:
            raise ValueError(f"gain returned shape {out.shape} for labels of shape {labels.shape}")
        if not (np.isfinite(out) & (out >= 0)).all():
            raise ValueError(
                "gain returned a number that is negative or not finite: gains are finite and >= 0"
            )
        return out
    table = np.asarray(_gain(gain))
    index = labels.astype(np.intp)
    if (index != labels).any():
        raise ValueError(
            f"a gain table is indexed by whole labels, but label {labels[index != labels][0]:g} is not "
            "whole: use gain='exp2', 'linear' or a function"
        )
    if highest >= len(table):
        raise ValueError(
            f"the gain table has {len(table)} entries, for labels 0 to {len(table) - 1}, "
            f"but there is a label {highest:g}"
        )
    return table[index]


def exp2_gains(labels):
    """2^label - 1, of float64 labels of any sign."""
    highest = labels.max(initial=0.0)
    if highest > 1000:
        raise ValueError(
            f"gain='exp2' is 2^label - 1, which is too large for a float at label {highest:g}: "
            "use labels up to 1000, gain='linear' or a table"
        )
    out = np.empty_like(labels)
    ranking.exp2_gains(labels, out)
    return out


def discounts(n, discount="log2"):
    """What ranks are worth.

    Parameters
    ----------
    n : int
        Number of ranks.
    discount : {"log2", "letor"}, sequence or callable, default="log2"
        ``"log2"`` is 1 / log2(1 + rank), the same bits on every machine; ``"letor"`` is 1 at ranks 1 and 2
        and 1 / log2(rank) from there, as in the evaluation scripts of LETOR; a sequence holds the discounts
        from rank 1 on, with 0 behind its end; a function maps the array 1, 2, ..., n to the discounts.

    Returns
    -------
    ndarray of shape (n,), float64
        The discount of ranks 1, ..., n: finite and >= 0.

    Raises
    ------
    ValueError
        If a function returns another shape, or numbers that are negative or not finite.

    References
    ----------
    Järvelin and Kekäläinen, *Cumulated Gain-based Evaluation of IR Techniques*, TOIS 2002.

    Examples
    --------
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
            raise ValueError(f"discount returned shape {values.shape} for {n} ranks")
        if not (np.isfinite(values) & (values >= 0)).all():
            raise ValueError(
                "discount returned a number that is negative or not finite: discounts are finite and >= 0"
            )
        out[:] = values
    else:
        table = _discount(discount)[:n]
        out[: len(table)] = table
    return out


# ---- parameters: what each may be --------------------------------------------------------------------------


def _table(name, names):
    """A check for a parameter that is a name, a table of finite numbers >= 0 or a function."""

    def check(value):
        if callable(value) or (isinstance(value, str) and value in names):
            return value
        try:
            table = tuple(map(float, value)) if not isinstance(value, str) else ()
        except TypeError:
            table = ()
        if not table or not all(math.isfinite(entry) and entry >= 0 for entry in table):
            raise ValueError(
                f"{name} must be one of {', '.join(map(repr, names))}, a sequence of finite numbers >= 0 "
                f"or a function, got {value!r}"
            )
        return table

    return check


_gain = _table("gain", ("exp2", "linear"))
_discount = _table("discount", ("log2", "letor"))


def _ties(value):
    names = [tie.name.lower() for tie in ranking.Ties]
    if value not in names:
        raise ValueError(f"ties must be one of {', '.join(map(repr, names))}, got {value!r}")
    return value


def _empty_query(value):
    if isinstance(value, str) and value == "skip":
        return value
    if isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value):
        return _plain(value)
    raise ValueError(
        f"empty_query must be 'skip' or the value of such a query, usually 0, 0.5 or 1, got {value!r}"
    )


def _rel(value):
    if isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value):
        return _plain(value)
    raise ValueError(f"rel must be the lowest relevant label, a finite number, got {value!r}")


def _max_grade(value):
    if isinstance(value, Real) and not isinstance(value, bool) and 0 < value <= 1000:
        return _plain(value)
    raise ValueError(f"max_grade must be the highest possible label, a number in (0, 1000], got {value!r}")


def _cutoff(value):
    if value is None:
        return None
    if isinstance(value, Integral) and not isinstance(value, bool) and value >= 1:
        return operator.index(value)
    raise ValueError(f"a measure is cut off at a whole number of ranks >= 1, got {value!r}")


def _stretch(value):
    if value is None:
        return None
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2:
        low, high = value
        if isinstance(low, Integral) and isinstance(high, Integral) and 0 <= low < high:
            return operator.index(low), operator.index(high)
    raise ValueError(
        f"PAUC is taken between two counts of irrelevant rows, PAUC @ [a, b] with 0 <= a < b, got {value!r}"
    )


def _plain(number):
    return int(number) if number == int(number) else float(number)


_CHECKS: dict[str, Callable] = {
    "gain": _gain,
    "discount": _discount,
    "ties": _ties,
    "empty_query": _empty_query,
    "rel": _rel,
    "max_grade": _max_grade,
    "at": _cutoff,
}


def _typed(value):
    """A parameter as it is typed."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return "[" + ", ".join(_typed(entry) for entry in value) + "]"
    if isinstance(value, float):
        return repr(_plain(value))
    return getattr(value, "__name__", repr(value)) if callable(value) else repr(value)


# ---- measures ----------------------------------------------------------------------------------------------


class Measure:
    """A number that says how good the ranking of a query is: the base of all measures.

    A measure is an immutable value: it prints as it is typed, equals and hashes by that, can be a
    dictionary key, and is pickled and cloned like a number. The names ``NDCG``, ``ERR``, ``AP`` ... are such
    values, with their default parameters. Three things make numbers and further measures of one:

    - ``measure @ 10`` is the same measure, cut off at rank 10;
    - ``measure(gain="linear")``, with parameters only, is the same measure with other parameters;
    - ``measure(y_true, y_score, qid=qid)`` is its mean over the queries.

    To write your own, derive a class, give it a ``name`` and define `of_query`; see the example.

    Parameters
    ----------
    **parameters
        The parameters of `defaults`, each by name.

    Attributes
    ----------
    name : str
        How it is typed.
    defaults : dict
        Its parameters with their defaults, in the order in which they print.
    greater_is_better : bool
        False for errors.
    by_order : bool
        True if only the order of the scores matters, not how far they are apart.
    lowest_label : float
        The lowest label it accepts.

    Examples
    --------
    >>> class TopIsBest(Measure):
    ...     "1 if the row ranked first has the highest label, else 0."
    ...
    ...     name = "TopIsBest"
    ...
    ...     def of_query(self, labels, scores):
    ...         return float(labels[np.argmax(scores)] == labels.max())
    >>> top_is_best = TopIsBest()
    >>> top_is_best([0, 2, 1, 1, 0], [0.3, 0.9, 0.1, 0.2, 0.7], qid=[1, 1, 1, 2, 2])
    0.5
    """

    name: ClassVar[str] = "Measure"
    defaults: ClassVar[Mapping[str, Any]] = {}
    greater_is_better: ClassVar[bool] = True
    by_order: ClassVar[bool] = True
    lowest_label: ClassVar[float] = 0.0

    def __init__(self, **parameters):
        unknown = sorted(set(parameters) - set(self.defaults))
        if unknown:
            raise TypeError(
                f"{self.name} has no parameter {', '.join(map(repr, unknown))}: "
                f"it has {', '.join(self.defaults) or 'none'}"
                + f"; a cutoff is written {self.name} @ k"
                * ("k" in unknown and "at" in self.defaults)
            )
        for name, default in self.defaults.items():
            self.__dict__[name] = self._checked(name, parameters.get(name, default))

    def _checked(self, name, value):
        return _CHECKS[name](value) if name in _CHECKS else value

    # ---- a value ----

    def __call__(self, y_true=None, y_score=None, *, qid=None, sample_weight=None, **parameters):
        """The mean over queries or, called with parameters only, the measure with these parameters.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_score : array-like of shape (n,)
            Scores; higher is ranked above.
        qid : array-like of shape (n,), default=None
            Query ids of any hashable type, in any order. None takes the level ``qid`` of the index of a
            pandas ``y_true`` if there is one, else all rows are one query.
        sample_weight : array-like of shape (n,), default=None
            Weights >= 0 of rows. A query weighs the mean of its rows' weights.
        **parameters
            Parameters to change.

        Returns
        -------
        float or Measure
            The mean; NaN, with an `UndefinedMetricWarning`, where no query counts. Without ``y_true`` and
            ``y_score``: a measure.

        Raises
        ------
        ValueError
            For labels, scores or weights that the measure cannot read; it names them.
        """
        measure = type(self)(**{**self.parameters, **parameters}) if parameters else self
        if y_true is None and y_score is None and qid is None and sample_weight is None:
            return measure
        if y_true is None or y_score is None:
            raise TypeError(
                f"{self.name}(y_true, y_score) needs both labels and scores"
                + f"; a cutoff is written {self.name} @ {y_true}" * isinstance(y_true, Integral)
            )
        labels, scores, offsets, weights = _grouped(measure, y_true, y_score, qid, sample_weight)
        value = measure.mean(labels, scores, offsets, weights)
        measure._warn_if_undefined(value)
        return value

    def _warn_if_undefined(self, value):
        if math.isnan(value):
            warn(
                f"{self} is not defined on any query of positive weight (see empty_query): it is nan",
                UndefinedMetricWarning,
            )

    def __matmul__(self, at):
        """The measure cut off at rank ``at``."""
        if "at" not in self.defaults:
            raise TypeError(f"{self.name} has no cutoff")
        return self(at=at)

    @property
    def parameters(self):
        """The parameters by name, as a new dict."""
        return dict(self.__dict__)

    def __repr__(self):
        changed = [
            f"{name}={_typed(value)}"
            for name, value in self.__dict__.items()
            if name != "at" and value != self.defaults[name]
        ]
        call = f"({', '.join(changed)})" if changed else ""
        at = self.__dict__.get("at")
        return self.name + call + ("" if at is None else f" @ {_typed(at)}")

    def __eq__(self, other):
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self):
        return hash((type(self), tuple(self.__dict__.values())))

    def __setattr__(self, name, value):
        raise AttributeError(f"a measure cannot be changed: use {self.name}({name}=...)")

    # ---- evaluation; arrays are checked and rows grouped by query ----

    def check_labels(self, labels, name="y"):
        """Raise if there are labels that the measure does not accept.

        Parameters
        ----------
        labels : ndarray of shape (n,), float64
            Finite labels.
        name : str, default="y"
            What the message calls them.

        Raises
        ------
        ValueError
            If one is below ``lowest_label``.

        Examples
        --------
        >>> KendallTau.check_labels(np.array([-1.0, 2.0]))
        >>> NDCG.check_labels(np.array([-1.0, 2.0]), "y_val")
        Traceback (most recent call last):
            ...
        ValueError: NDCG takes labels >= 0, but y_val has label -1
        """
        lowest = labels.min(initial=math.inf)
        if lowest < self.lowest_label:
            raise ValueError(
                f"{self.name} takes labels >= {self.lowest_label:g}, but {name} has label {lowest:g}"
            )

    def of_query(self, labels, scores):
        """The value of one query, NaN where it is not defined; what a new measure has to define.

        Parameters
        ----------
        labels, scores : ndarray of shape (n,), float64
            The rows of the query.

        Returns
        -------
        float
        """
        raise NotImplementedError(f"{type(self).__name__} must define of_query(labels, scores)")

    def per_query(self, labels, scores, offsets, weights=None, n_threads=1):
        """The value of each query.

        Parameters
        ----------
        labels, scores : ndarray of shape (n,), float64
            Rows grouped by query. Not checked; see `check_labels`.
        offsets : ndarray of shape (n_queries + 1,), int64
            Query q is rows ``offsets[q]:offsets[q + 1]``.
        weights : ndarray of shape (n,), float64, default=None
            Weights of rows; only measures of rows (RMSE) read them here.
        n_threads : int, default=1
            Number of threads over queries; the values do not depend on it.

        Returns
        -------
        ndarray of shape (n_queries,), float64
            NaN for queries that are skipped.

        Examples
        --------
        >>> NDCG.per_query(np.array([1.0, 0, 0, 0]), np.array([1.0, 2, 3, 4]), np.array([0, 2, 4]))
        array([0.63092975,        nan])
        """
        queries = itertools.starmap(slice, itertools.pairwise(offsets))
        return np.array([self.of_query(labels[rows], scores[rows]) for rows in queries], dtype=np.float64)

    def mean(self, labels, scores, offsets, weights=None, n_threads=1, communicator=ALONE):
        """The mean over the queries that count, a query weighing the mean of its rows' weights.

        The sum is exact, so the order of the queries does not matter.

        Parameters
        ----------
        labels, scores, offsets, weights, n_threads
            As in `per_query`.
        communicator : Communicator, default=ALONE
            The ranks over whose queries the mean is.

        Returns
        -------
        float
            NaN if no query counts.

        Raises
        ------
        ValueError
            For labels below ``lowest_label``.
        """
        self.check_labels(labels)
        values = self.per_query(labels, scores, offsets, weights, n_threads)
        weights = None if weights is None else _query_weights(weights, offsets)
        return _weighted_mean(values, weights, communicator)

    def signed_mean(self, labels, scores, offsets, weights=None, n_threads=1, communicator=ALONE):
        """The mean, negated where smaller is better: what is compared to choose between models.

        Parameters
        ----------
        labels, scores, offsets, weights, n_threads
            As in `per_query`.
        communicator : Communicator, default=ALONE
            The ranks over whose queries the mean is.

        Returns
        -------
        float
            NaN, with an `UndefinedMetricWarning`, if no query counts.

        Raises
        ------
        ValueError
            For labels below ``lowest_label``.
        """
        return self.bind(labels, offsets, weights, n_threads, communicator).signed_mean(scores)

    def bind(self, labels, offsets, weights=None, n_threads=1, communicator=ALONE):
        """Join the measure with rows whose scores change: what does not change with them is computed once.

        Parameters
        ----------
        labels, offsets, weights, n_threads
            As in `per_query`.
        communicator : Communicator, default=ALONE
            The ranks over whose queries means are.

        Returns
        -------
        BoundMeasure
            Its ``per_query``, ``mean`` and ``signed_mean`` take scores and give what those of the measure do.

        Raises
        ------
        ValueError
            For labels below ``lowest_label``.

        Examples
        --------
        >>> bound = NDCG.bind(np.array([1.0, 0, 1, 0]), np.array([0, 2, 4]))
        >>> bound.mean(np.array([1.0, 2, 3, 4])), bound.mean(np.array([2.0, 1, 4, 3]))
        (0.6309297535714574, 1.0)
        """
        self.check_labels(labels)
        return BoundMeasure(self, labels, offsets, weights, n_threads, communicator)

    def deltas(self, labels, scores):
        """What the measure gains when two rows of a query swap places in the ranking.

        The ranking is by descending score, equal scores in the order of the rows; ``ties`` plays no part.

        Parameters
        ----------
        labels, scores : ndarray of shape (n,), float64
            The rows of one query.

        Returns
        -------
        ndarray of shape (n, n), float64
            Entry (i, j) is the measure after rows i and j have swapped places, minus the measure before. It
            is symmetric, and zero throughout where the measure is not defined.

        Examples
        --------
        >>> (P @ 1).deltas([0, 1, 0], [0.9, 0.5, 0.1])
        array([[0., 1., 0.],
               [1., 0., 0.],
               [0., 0., 0.]])
        """
        labels = np.ascontiguousarray(labels, dtype=np.float64)
        scores = np.ascontiguousarray(scores, dtype=np.float64)
        order = np.argsort(-scores, kind="stable")
        ranked = np.arange(len(scores), 0.0, -1.0) if self.by_order else scores[order]
        out = np.empty((len(labels), len(labels)))
        out[np.ix_(order, order)] = np.nan_to_num(self._swap_deltas(labels[order], ranked), nan=0.0) + 0.0
        return out

    def _swap_deltas(self, labels, scores):
        """Deltas of rows that stand in rank order: by swapping every pair, evaluating, and swapping back."""
        n = len(labels)
        deltas = np.zeros((n, n))
        offsets = np.array([0, n], dtype=np.int64)
        before = self.per_query(labels, scores, offsets)[0]
        for i in range(n):
            for j in range(i + 1, n):
                swapped = labels.copy()
                swapped[[i, j]] = labels[[j, i]]
                deltas[i, j] = deltas[j, i] = self.per_query(swapped, scores, offsets)[0] - before
        return deltas


def _weighted_mean(values, weights=None, communicator=ALONE):
    counts = ~np.isnan(values)
    weights = np.ones(len(values)) if weights is None else weights
    total = communicator.exact_sum(weights[counts])
    value = communicator.exact_sum(weights[counts] * values[counts])
    return _quotient(value, total)


def _quotient(value, total_weight):
    validation.require_finite_sum(total_weight, "sample_weight")
    return value / total_weight if total_weight > 0 else math.nan


def _query_sums(values, offsets):
    out = np.empty(len(offsets) - 1)
    ranking.query_sums(values, offsets, out)
    return out


def _query_weights(weights, offsets):
    return _query_sums(weights, offsets) / np.maximum(np.diff(offsets), 1)


class BoundMeasure:
    """A measure joined with rows whose scores change, see `Measure.bind`.

    Parameters
    ----------
    measure : Measure
    labels, offsets, weights, n_threads, communicator
        As in `Measure.bind`.

    Examples
    --------
    >>> bound = BoundMeasure(RMSE, np.array([0.0, 1, 2]), np.array([0, 2, 3]))
    >>> bound.per_query(np.array([0.0, 1, 5])), bound.signed_mean(np.array([0.0, 1, 2]))
    (array([0., 3.]), -0.0)
    """

    def __init__(self, measure, labels, offsets, weights=None, n_threads=1, communicator=ALONE):
        self.measure = measure
        self.labels, self.offsets, self.weights = labels, offsets, weights
        self.n_threads, self.communicator = n_threads, communicator

    def per_query(self, scores):
        """The value of each query, as `Measure.per_query` gives it."""
        return self.measure.per_query(self.labels, scores, self.offsets, self.weights, self.n_threads)

    def mean(self, scores):
        """The mean over the queries that count, as `Measure.mean` gives it."""
        rows = self.labels, scores, self.offsets, self.weights
        return self.measure.mean(*rows, self.n_threads, self.communicator)

    def signed_mean(self, scores):
        """The mean, negated where smaller is better, as `Measure.signed_mean` gives it."""
        value = self.mean(scores)
        self.measure._warn_if_undefined(value)
        return value if self.measure.greater_is_better else -value


class _BoundRanked(BoundMeasure):
    """What rows and ranks give to the formula, and what it divides by."""

    def __init__(self, measure, labels, offsets, *rest):
        super().__init__(measure, labels, offsets, *rest)
        longest = int(np.diff(offsets).max(initial=0))
        self.low, self.at = measure._limits()
        self.gains = measure._gains(labels)
        self.discounts = measure._discounts(min(self.at or longest, longest))
        self.divisors, self.divisors_known = np.empty(len(offsets) - 1), False
        self.query_weights = None if self.weights is None else _query_weights(self.weights, offsets)

    def per_query(self, scores):
        measure, out = self.measure, np.empty(len(self.offsets) - 1)
        ranking.evaluate(
            measure.formula,
            self.gains,
            scores,
            self.offsets,
            self.discounts,
            ranking.Ties[measure.parameters.get("ties", "average").upper()],
            self.low,
            self.at,
            self.divisors_known,
            self.divisors,
            out,
            self.n_threads,
        )
        self.divisors_known = True
        if measure.empty_query != "skip":
            out[np.isnan(out)] = measure.empty_query
        return out

    def mean(self, scores):
        return _weighted_mean(self.per_query(scores), self.query_weights, self.communicator)


class _Ranked(Measure):
    """A measure whose formula is compiled: it says what the rows give, and which formula to use."""

    formula: ClassVar[ranking.Formula]

    def _gains(self, labels):
        """What the formula reads of each row."""
        return labels

    def _discounts(self, longest):
        """What the formula reads of each rank."""
        return np.empty(0)

    def _limits(self):
        """The two counts the formula is limited to, 0 for none."""
        return 0, self.parameters.get("at") or 0

    def per_query(self, labels, scores, offsets, weights=None, n_threads=1):
        return _BoundRanked(self, labels, offsets, None, n_threads).per_query(scores)

    def mean(self, labels, scores, offsets, weights=None, n_threads=1, communicator=ALONE):
        return self.bind(labels, offsets, weights, n_threads, communicator).mean(scores)

    def bind(self, labels, offsets, weights=None, n_threads=1, communicator=ALONE):
        self.check_labels(labels)
        return _BoundRanked(self, labels, offsets, weights, n_threads, communicator)

    def of_query(self, labels, scores):
        return float(self.per_query(labels, scores, np.array([0, len(labels)], dtype=np.int64))[0])

    def _until_cutoff(self, weights):
        """Weights of ranks, zero behind the cutoff."""
        weights[self.at or len(weights) :] = 0.0
        return weights


# ---- gains discounted by rank ------------------------------------------------------------------------------


class _DCG(_Ranked):
    """Discounted cumulative gain.

    DCG @ k = sum over ranks r = 1 ... k of gain(label of the row at rank r) * discount(r).

    Parameters
    ----------
    gain : {"exp2", "linear"}, sequence or callable, default="exp2"
        What a label is worth.
    discount : {"log2", "letor"}, sequence or callable, default="log2"
        What a rank is worth.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. The average is exact: the mean gain of the tied rows at each of
        their ranks (McSherry and Najork, ECIR 2008).
    empty_query : "skip" or float, default=0
        What a query without a positive gain counts.
    at : int, default=None
        The cutoff.

    References
    ----------
    Järvelin and Kekäläinen, *Cumulated Gain-based Evaluation of IR Techniques*, TOIS 2002; with the gain
    2^label - 1, Burges et al., *Learning to Rank using Gradient Descent*, ICML 2005.

    Examples
    --------
    >>> DCG([2, 0, 1], [0.3, 0.2, 0.1])  # 3 / log2(2) + 0 / log2(3) + 1 / log2(4)
    3.5
    >>> (DCG(gain="linear") @ 2)([2, 0, 1], [0.3, 0.2, 0.1])
    2.0
    """

    name = "DCG"
    defaults: ClassVar = {"gain": "exp2", "discount": "log2", "ties": "average", "empty_query": 0, "at": None}
    formula = ranking.Formula.DCG

    def _gains(self, labels):
        return gains(labels, self.gain)

    def _discounts(self, longest):
        return discounts(longest, self.discount)

    def _swap_deltas(self, labels, scores):
        gain = self._gains(labels)
        discount = self._until_cutoff(discounts(len(labels), self.discount))
        deltas = (gain[:, None] - gain) * (discount - discount[:, None])
        if self.formula == ranking.Formula.DCG:
            return deltas
        best = np.sort(gain)[::-1] @ discount
        return deltas / best if best > 0 else np.zeros_like(deltas)


class _Preset(property):
    """The measure with another program's parameters, as an attribute of the measure."""

    def __init__(self, doc, **parameters):
        super().__init__(lambda measure: measure(**parameters), doc=doc)


class _NDCG(_DCG):
    """Normalised discounted cumulative gain: DCG over the DCG of the best order.

    NDCG @ k = DCG @ k / max over all orders of DCG @ k, a number in [0, 1].

    It is not one number: programs differ in the gain, in what a query without relevant rows counts and in
    the order of tied scores. Say which by parameters, or take another program's choice as a preset:
    ``NDCG.letor``, ``NDCG.lightgbm``, ``NDCG.xgboost``, ``NDCG.catboost``, ``NDCG.sklearn``,
    ``NDCG.trec_eval``, ``NDCG.survey``.

    Parameters
    ----------
    gain : {"exp2", "linear"}, sequence or callable, default="exp2"
        What a label is worth.
    discount : {"log2", "letor"}, sequence or callable, default="log2"
        What a rank is worth.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. The average is exact: the mean gain of the tied rows at each of
        their ranks (McSherry and Najork, ECIR 2008).
    empty_query : "skip" or float, default="skip"
        What a query without a positive gain counts.
    at : int, default=None
        The cutoff.

    References
    ----------
    Järvelin and Kekäläinen, *Cumulated Gain-based Evaluation of IR Techniques*, TOIS 2002; with the gain
    2^label - 1, Burges et al., *Learning to Rank using Gradient Descent*, ICML 2005.

    Examples
    --------
    >>> NDCG([2, 0, 1], [0.3, 0.2, 0.1])  # 3.5 / (3 + 1 / log2(3))
    0.963...
    >>> NDCG.lightgbm @ 5
    NDCG(ties="input", empty_query=1) @ 5
    >>> NDCG([0, 0, 3], [1, 1, 1]), NDCG.lightgbm([3, 0, 0], [1, 1, 1]), NDCG.catboost([3, 0, 0], [1, 1, 1])
    (0.710..., 1.0, 0.5)
    """

    name = "NDCG"
    defaults: ClassVar = {**_DCG.defaults, "empty_query": "skip"}
    formula = ranking.Formula.NDCG

    letor = _Preset(
        "As the scripts of LETOR 3.0 and 4.0: rank 2 undiscounted, 0 for empty queries, file order.",
        discount="letor",
        ties="input",
        empty_query=0,
    )
    lightgbm = _Preset(
        "As LightGBM's ``ndcg``: 2^label - 1, 1 for empty queries, file order.", ties="input", empty_query=1
    )
    xgboost = _Preset(
        "As XGBoost's ``ndcg``: 2^label - 1, 1 for empty queries (``ndcg-``: ``empty_query=0``), file order.",
        ties="input",
        empty_query=1,
    )
    catboost = _Preset(
        "As CatBoost's ``NDCG`` of type Base (Exp: ``gain='exp2'``): linear, worst order, 1 if empty.",
        gain="linear",
        ties="worst",
        empty_query=1,
    )
    sklearn = _Preset(
        "As scikit-learn's ``ndcg_score``: linear, the average over ties, 0 for empty queries.",
        gain="linear",
        ties="average",
        empty_query=0,
    )
    trec_eval = _Preset(
        "As trec_eval and ir_measures: linear, 0 for empty queries, equal scores by descending document id "
        "(so last row first, where ids ascend with the rows).",
        gain="linear",
        ties="reverse",
        empty_query=0,
    )
    survey = _Preset("As Mohan 2010: 2^label - 1 and 1/2 for queries without relevant rows.", empty_query=0.5)


class _ERR(_Ranked):
    """Expected reciprocal rank of the row that satisfies a user who reads from the top.

    ERR @ k = sum over ranks r = 1 ... k of 1/r * p_r * product over s < r of (1 - p_s), where a row of label
    y stops the user with probability p = (2^y - 1) / 2^max_grade.

    Parameters
    ----------
    max_grade : float, default=4
        The highest label there can be; 4 makes the divisor 16.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. The average is exact, by symmetric polynomials of the passing
        probabilities of the tied rows. It takes m * k steps for m relevant rows in a tie that reaches down to
        rank k or to where nobody is left.
    empty_query : "skip" or float, default=0
        What a query without a positive label counts.
    at : int, default=None
        The cutoff.

    References
    ----------
    Chapelle, Metzler, Zhang and Grinspan, *Expected Reciprocal Rank for Graded Relevance*, CIKM 2009.

    Examples
    --------
    >>> ERR([4, 0, 3], [0.3, 0.2, 0.1])  # 15/16 + 1/3 * (1 - 15/16) * 7/16
    0.946...
    >>> ERR(max_grade=1)([0, 1], [2, 1])
    0.25
    """

    name = "ERR"
    defaults: ClassVar = {"max_grade": 4, "ties": "average", "empty_query": 0, "at": None}
    formula = ranking.Formula.ERR

    def _gains(self, labels):
        highest = labels.max(initial=0.0)
        if highest > self.max_grade:
            raise ValueError(
                f"ERR takes labels up to max_grade={self.max_grade}, but there is a label {highest:g}: "
                f"use ERR(max_grade={highest:g})"
            )
        return gains(labels) / 2.0**self.max_grade

    def _swap_deltas(self, labels, scores):
        n = len(labels)
        stop = self._gains(labels)
        reach = np.concatenate(([1.0], np.cumprod(1.0 - stop)[:-1]))  # the chance to get to a rank
        weight = self._until_cutoff(1.0 / np.arange(1.0, n + 1.0))
        total = np.concatenate(([0.0], np.cumsum(reach * stop * weight)))  # the value of the ranks above
        upper, lower = np.triu_indices(n, 1)
        factor = (1.0 - stop[lower]) / (1.0 - stop[upper])  # how much more often a rank between is reached
        changes = reach[upper] * (stop[lower] - stop[upper]) * weight[upper]
        changes += (total[lower] - total[upper + 1]) * (factor - 1.0)
        changes += reach[lower] * (factor * stop[upper] - stop[lower]) * weight[lower]
        return _symmetric(n, changes)


# ---- relevant or not ---------------------------------------------------------------------------------------


class _Binary(_Ranked):
    """A measure that sees a row as relevant (label >= rel) or not."""

    defaults: ClassVar = {"rel": 1, "ties": "average", "empty_query": 0, "at": None}

    def _gains(self, labels):
        return (labels >= self.rel).astype(np.float64)


class _AP(_Binary):
    """Average precision; its mean over queries is MAP.

    AP @ k = 1/R * sum over the ranks r <= k of relevant rows of (relevant rows at ranks 1 ... r) / r, where R
    is the number of relevant rows of the query, as in trec_eval (LightGBM divides by min(R, k)).

    Parameters
    ----------
    rel : float, default=1
        The lowest relevant label.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. The average is exact (McSherry and Najork, ECIR 2008).
    empty_query : "skip" or float, default="skip"
        What a query without relevant rows counts.
    at : int, default=None
        The cutoff.

    References
    ----------
    Buckley and Voorhees, *Evaluating Evaluation Measure Stability*, SIGIR 2000.

    Examples
    --------
    >>> AP([1, 0, 1], [0.3, 0.2, 0.1])  # (1/1 + 2/3) / 2
    0.833...
    >>> as_measure("map@10")
    AP @ 10
    """

    name = "AP"
    defaults: ClassVar = {**_Binary.defaults, "empty_query": "skip"}
    formula = ranking.Formula.AP

    def _swap_deltas(self, labels, scores):
        n = len(labels)
        hits = self._gains(labels)
        if not hits.any():
            return np.zeros((n, n))
        found = np.cumsum(hits)
        weight = self._until_cutoff(1.0 / np.arange(1.0, n + 1.0))
        total = np.concatenate(([0.0], np.cumsum(hits * weight)))
        upper, lower = np.triu_indices(n, 1)
        rises = hits[lower] - hits[upper]  # 1: the relevant row of the two comes up
        changes = (found[upper] + (rises > 0)) * weight[upper]
        changes += total[lower] - total[upper + 1]
        changes -= found[lower] * weight[lower]
        return _symmetric(n, rises * changes / found[-1])


class _RR(_Binary):
    """Reciprocal rank of the first relevant row; its mean over queries is MRR.

    RR @ k = 1 / (rank of the first relevant row), 0 if that is below rank k.

    Parameters
    ----------
    rel : float, default=1
        The lowest relevant label.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. The average is exact (McSherry and Najork, ECIR 2008).
    empty_query : "skip" or float, default=0
        What a query without relevant rows counts.
    at : int, default=None
        The cutoff.

    References
    ----------
    Voorhees, *The TREC-8 Question Answering Track Report*, TREC 1999.

    Examples
    --------
    >>> RR([0, 1, 1], [0.3, 0.2, 0.1])
    0.5
    >>> RR([0, 1], [1, 1])  # first or second, by chance
    0.75
    """

    name = "RR"
    formula = ranking.Formula.RR

    def _swap_deltas(self, labels, scores):
        n = len(labels)
        hits = self._gains(labels)
        weight = np.append(self._until_cutoff(1.0 / np.arange(1.0, n + 1.0)), 0.0)
        first, second = np.append(np.flatnonzero(hits), [n, n])[:2]
        upper, lower = np.triu_indices(n, 1)
        rises = hits[lower] > hits[upper]
        falls = hits[lower] < hits[upper]
        new = np.full(len(upper), first)
        new[rises] = np.minimum(first, upper[rises])
        fallen = falls & (upper == first)
        new[fallen] = np.minimum(second, lower[fallen])
        return _symmetric(n, weight[new] - weight[first])


class _P(_Binary):
    """Precision: the share of relevant rows among those above the cutoff.

    P @ k = (relevant rows at ranks 1 ... k) / k, also for queries of fewer than k rows, as in trec_eval.
    Without a cutoff: the share of relevant rows of the query.

    Parameters
    ----------
    rel : float, default=1
        The lowest relevant label.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. The average is exact.
    empty_query : "skip" or float, default=0
        What a query without relevant rows counts.
    at : int, default=None
        The cutoff.

    Examples
    --------
    >>> (P @ 2)([1, 0, 1], [0.3, 0.2, 0.1])
    0.5
    """

    name = "P"
    formula = ranking.Formula.P

    def _swap_deltas(self, labels, scores):
        n = len(labels)
        hits = self._gains(labels)
        above = self._until_cutoff(np.ones(n))
        changes = (hits[:, None] - hits) * (above - above[:, None])
        return changes / (self.at or n if self.formula == ranking.Formula.P else max(hits.sum(), 1.0))


class _R(_P):
    """Recall: the share of the relevant rows that are above the cutoff.

    R @ k = (relevant rows at ranks 1 ... k) / (relevant rows of the query).

    Parameters
    ----------
    rel : float, default=1
        The lowest relevant label.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. The average is exact.
    empty_query : "skip" or float, default="skip"
        What a query without relevant rows counts.
    at : int, default=None
        The cutoff.

    Examples
    --------
    >>> (R @ 1)([1, 0, 1], [0.3, 0.2, 0.1])
    0.5
    """

    name = "R"
    defaults: ClassVar = {**_Binary.defaults, "empty_query": "skip"}
    formula = ranking.Formula.R


class _PAUC(_Binary):
    """Partial area under the ROC curve of a query, between two counts of irrelevant rows.

    PAUC @ [a, b] = the mean, over the irrelevant rows number a + 1, ..., b from the top, of the share of
    relevant rows that are ranked above. If a query has fewer than b irrelevant rows, the mean is over those
    there are. It is the area under the ROC curve from the a-th to the b-th false positive, as a share of the
    largest possible; PAUC @ [0, n] with all n irrelevant rows is AUC.

    Parameters
    ----------
    rel : float, default=1
        The lowest relevant label.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores. The average is exact: in a tie of m irrelevant rows, the relevant
        ones fall with equal chances into the m + 1 places before, between and after them.
    empty_query : "skip" or float, default="skip"
        What a query without relevant rows, or with no more than a irrelevant rows, counts.
    at : pair of int, default=None
        The counts [a, b]; None is [0, all].

    References
    ----------
    McClish, *Analyzing a Portion of the ROC Curve*, Medical Decision Making 1989. PAUC @ [0, 5] is one of the
    measures of Mohan, *An Empirical Analysis on Pointwise Machine Learning Techniques using Regression Trees
    for Web-search Ranking*, 2010.

    Examples
    --------
    >>> (PAUC @ [0, 2])([1, 0, 1, 0, 0], [0.5, 0.4, 0.3, 0.2, 0.1])  # (1/2 + 2/2) / 2
    0.75
    >>> PAUC @ [0, 5]
    PAUC @ [0, 5]
    """

    name = "PAUC"
    defaults: ClassVar = {**_Binary.defaults, "empty_query": "skip"}
    formula = ranking.Formula.PAUC

    def _checked(self, name, value):
        return _stretch(value) if name == "at" else super()._checked(name, value)

    def _limits(self):
        return self.at or (0, 0)


class _AUC(_Binary):
    """Area under the ROC curve of a query.

    AUC = (pairs with the relevant row above + 1/2 pairs with equal scores) / (all pairs of a relevant and an
    irrelevant row).

    Parameters
    ----------
    rel : float, default=1
        The lowest relevant label.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores; the average counts a tied pair 1/2, the worst 0.
    empty_query : "skip" or float, default="skip"
        What a query without both relevant and irrelevant rows counts.

    References
    ----------
    Hanley and McNeil, *The Meaning and Use of the Area under a ROC Curve*, Radiology 1982.

    Examples
    --------
    >>> AUC([1, 0, 1], [0.3, 0.2, 0.1])
    0.5
    """

    name = "AUC"
    defaults: ClassVar = {"rel": 1, "ties": "average", "empty_query": "skip"}
    formula = ranking.Formula.PAUC

    def _swap_deltas(self, labels, scores):
        hits = self._gains(labels)
        rank = np.arange(float(len(labels)))
        pairs = hits.sum() * (len(hits) - hits.sum())
        return (hits[:, None] - hits) * (rank[:, None] - rank) / max(pairs, 1.0)


# ---- pairs and rows ----------------------------------------------------------------------------------------


class _PairAccuracy(_Ranked):
    """The share of pairs of rows with different labels that are in the right order.

    PairAccuracy = (pairs with the higher label above + 1/2 pairs with equal scores) / (all pairs), pairs of
    different labels being meant. For labels 0 and 1 it is AUC.

    Parameters
    ----------
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores; the average counts a tied pair 1/2, the worst 0.
    empty_query : "skip" or float, default="skip"
        What a query counts whose labels are all equal.

    Examples
    --------
    >>> PairAccuracy([2, 0, 1], [0.3, 0.2, 0.1])  # 2 > 0 and 2 > 1, but not 1 > 0
    0.666...
    """

    name = "PairAccuracy"
    defaults: ClassVar = {"ties": "average", "empty_query": "skip"}
    formula = ranking.Formula.PAIR_ACCURACY
    lowest_label = -math.inf

    def _swap_deltas(self, labels, scores):
        n = len(labels)
        order = np.sign(labels[:, None] - labels)
        before = np.cumsum(order, axis=1)  # over the rows down to a rank, row by row
        upper, lower = np.triu_indices(n, 1)
        changes = before[lower, lower] - before[lower, upper]
        changes -= before[upper, lower] - before[upper, upper]
        return _symmetric(n, changes / max(np.count_nonzero(order) // 2, 1))


class _KendallTau(_PairAccuracy):
    """Kendall's tau-b between labels and scores.

    tau = (right pairs - wrong pairs) / sqrt((pairs with different labels) * (pairs with different scores)), a
    number from -1 to 1. Pairs with equal labels or equal scores are neither right nor wrong. If all scores
    are equal there is no order and tau is 0.

    Parameters
    ----------
    empty_query : "skip" or float, default="skip"
        What a query counts whose labels are all equal.

    References
    ----------
    Kendall, *The Treatment of Ties in Ranking Problems*, Biometrika 1945.

    Examples
    --------
    >>> KendallTau([2, 0, 1], [0.3, 0.2, 0.1])  # (2 - 1) / 3
    0.333...
    """

    name = "KendallTau"
    defaults: ClassVar = {"empty_query": "skip"}
    formula = ranking.Formula.KENDALL_TAU

    def _swap_deltas(self, labels, scores):
        n = len(labels)
        different = np.count_nonzero(labels[:, None] - labels) / 2
        scale = 2.0 * math.sqrt(different) / math.sqrt(max(n * (n - 1) / 2, 1.0))
        return super()._swap_deltas(labels, scores) * scale


class _OfFunction(Measure):
    """What a function says about each query; it prints as the function's name."""

    name = "OfFunction"
    defaults: ClassVar = {"function": None}
    lowest_label = -math.inf

    def of_query(self, labels, scores):
        value = self.function(labels, scores)
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"the measure {self} returned {value!r} for a query; expected one number, higher is better, "
                "or NaN where the query has none"
            ) from error

    def __repr__(self):
        return _typed(self.function)


class _RMSE(Measure):
    """Root mean squared error, of scores taken as predictions of the labels.

    RMSE = sqrt(sum of w (label - score)^2 / sum of w). Its mean is over all rows of all queries, not over
    queries: the root of one global mean. The value of one query is the same over its rows. Smaller is better.

    Examples
    --------
    >>> RMSE([0, 1, 2], [0, 1, 5], qid=["a", "a", "b"])  # sqrt((0 + 0 + 9) / 3)
    1.732...
    >>> RMSE.greater_is_better
    False
    """

    name = "RMSE"
    greater_is_better = False
    by_order = False
    lowest_label = -math.inf

    def per_query(self, labels, scores, offsets, weights=None, n_threads=1):
        squares, weights = self._sums(labels, scores, offsets, weights)
        return np.sqrt(np.divide(squares, weights, out=np.full(len(squares), np.nan), where=weights > 0))

    def mean(self, labels, scores, offsets, weights=None, n_threads=1, communicator=ALONE):
        sums = self._sums(labels, scores, offsets, weights)
        squares, weights = (communicator.exact_sum(numbers) for numbers in sums)
        return math.sqrt(_quotient(squares, weights))

    def _sums(self, labels, scores, offsets, weights):
        weights = np.ones(len(labels)) if weights is None else weights
        return _query_sums(weights * (labels - scores) ** 2, offsets), _query_sums(weights, offsets)


def _symmetric(n, changes):
    """The (n, n) matrix of what stands above its diagonal."""
    deltas = np.zeros((n, n))
    deltas[np.triu_indices(n, 1)] = changes
    return deltas + deltas.T


DCG, NDCG, ERR = _DCG(), _NDCG(), _ERR()
AP, RR, P, R = _AP(), _RR(), _P(), _R()
AUC, PAUC = _AUC(), _PAUC()
PairAccuracy, KendallTau = _PairAccuracy(), _KendallTau()
RMSE = _RMSE()

# As they may be spelt in a string, apart from case and underscores.
_NAMES = {
    "ndcg": NDCG,
    "dcg": DCG,
    "err": ERR,
    "map": AP,
    "ap": AP,
    "mrr": RR,
    "rr": RR,
    "p": P,
    "prec": P,
    "precision": P,
    "r": R,
    "recall": R,
    "auc": AUC,
    "pauc": PAUC,
    "pair_accuracy": PairAccuracy,
    "kendall_tau": KendallTau,
    "rmse": RMSE,
}


def as_measure(measure):
    """The measure that a string names; a measure is returned as it is.

    Parameters
    ----------
    measure : str, Measure or callable
        ``"ndcg@10"``, ``"map"``, ``"mrr"``, ``"err@10"``, ``"p@5"``, ``"recall@10"``, ``"auc"``,
        ``"pauc@[0,5]"``, ``"pair_accuracy"``, ``"kendall_tau"``, ``"rmse"``; also with parameters or a
        preset, ``'ndcg(gain="linear")@10'``, ``"ndcg.lightgbm@10"``: whatever a measure prints as. Case does
        not matter. Gains and discounts that are functions cannot be named in a string. A function of
        (labels, scores) gives the value of one query, NaN where it has none; higher is better.

    Returns
    -------
    Measure

    Raises
    ------
    ValueError
        If there is no such measure; the message lists those there are.

    Examples
    --------
    >>> as_measure("ndcg@10")
    NDCG @ 10
    >>> as_measure('NDCG(gain="linear", ties="worst") @ 10')
    NDCG(gain="linear", ties="worst") @ 10
    >>> as_measure("precise@3")
    Traceback (most recent call last):
        ...
    ValueError: unknown measure 'precise@3': write a name, one of ndcg, dcg, err, map, ...
    """
    if isinstance(measure, Measure):
        return measure
    if callable(measure) and not isinstance(measure, type):
        if not takes(measure, 2):
            raise ValueError(
                "a measure that is a function is called with the labels and the scores of a query, got "
                f"{_typed(measure)}{signature(measure)}; instead of a scorer pass the measure itself"
            )
        return _OfFunction(function=measure)
    if not isinstance(measure, str):
        raise ValueError(
            "a measure is a string such as 'ndcg@10', a value such as NDCG @ 10, or a function of the labels "
            f"and scores of a query, got {measure!r}"
        )
    try:
        return _parsed(ast.parse(measure.strip(), mode="eval").body)
    except TypeError as error:
        raise ValueError(f"{measure!r}: {error}") from error
    except (SyntaxError, LookupError) as error:
        raise ValueError(
            f"unknown measure {measure!r}: write a name, one of {', '.join(_NAMES)}, "
            "with a cutoff if you like, as in 'ndcg@10'"
        ) from error


def takes(function, n):
    """Whether a function can be called with ``n`` arguments; some do not tell, and may be tried.

    Parameters
    ----------
    function : callable
    n : int

    Returns
    -------
    bool

    Examples
    --------
    >>> takes(lambda labels, scores: 0.0, 2), takes(lambda labels, scores: 0.0, 3), takes(max, 2)
    (True, False, True)
    """
    try:
        signature(function).bind(*range(n))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _parsed(tree):
    """The measure an expression stands for; LookupError if it is none."""
    match tree:
        case ast.Name(id=name):
            return {known.replace("_", ""): value for known, value in _NAMES.items()}[
                name.lower().replace("_", "")
            ]
        case ast.BinOp(left=left, op=ast.MatMult(), right=at):
            return _parsed(left) @ _literal(at)
        case ast.Call(func=function, args=[], keywords=keywords):
            return _parsed(function)(**{keyword.arg: _literal(keyword.value) for keyword in keywords})
        case ast.Attribute(value=name, attr=preset):
            measure = _parsed(name)
            if isinstance(vars(type(measure)).get(preset.lower()), _Preset):
                return getattr(measure, preset.lower())
    raise LookupError


def _literal(tree):
    try:
        return ast.literal_eval(tree)
    except ValueError as error:
        raise LookupError from error


# ---- what users pass: rows in any order --------------------------------------------------------------------


def _column(name, values, finite=True):
    """One number per row, as float64."""
    try:
        column = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numbers, one per row: {error}") from error
    if np.ndim(values) != 1:
        raise ValueError(
            f"{name} must have one dimension, got shape {np.shape(values)}: pass a column, or ravel it"
        )
    wrong = ~np.isfinite(column) if finite else np.isnan(column)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name} must not be NaN{' or infinite' * finite}, got {column[row]} in row {row}")
    return column


def _checked_rows(y_true, n_rows_of, qid, sample_weight):
    """Labels, order, offsets and weights, the last two grouped by query."""
    labels = _column("y_true", y_true)
    n = len(labels)
    if n == 0:
        raise ValueError("y_true is empty: a measure needs at least one row")
    for name, values in n_rows_of.items():
        if len(values) != n:
            raise ValueError(f"{name} has {len(values)} rows, but y_true has {n}: pass one score per label")
    if qid is None:
        qid = validation.qid_of(y_true)
    order, offsets = (None, np.array([0, n])) if qid is None else validation.query_offsets(qid, n)
    weights = None
    if sample_weight is not None:
        weights = _column("sample_weight", sample_weight)
        if len(weights) != n:
            raise ValueError(
                f"sample_weight has {len(weights)} rows, but y_true has {n}: weights are of rows"
            )
        if (weights < 0).any():
            raise ValueError(f"sample_weight must be >= 0, got {weights.min():g}")
        validation.require_finite_sum(weights, "sample_weight")
        weights = _in(order, weights)
    return _in(order, labels), order, offsets, weights


def _in(order, values):
    return values if order is None else values[order]


def _grouped(measure, y_true, y_score, qid, sample_weight):
    """What `Measure.mean` takes, from what users pass."""
    scores = _column("y_score", y_score, finite=False)
    labels, order, offsets, weights = _checked_rows(y_true, {"y_score": scores}, qid, sample_weight)
    measure.check_labels(labels, "y_true")
    return labels, _in(order, scores), offsets, weights


def ndcg_score(
    y_true,
    y_score,
    *,
    qid=None,
    k=None,
    gain="exp2",
    discount="log2",
    ties="average",
    empty_query="skip",
    sample_weight=None,
):
    """Mean over queries of the normalised discounted cumulative gain.

    NDCG @ k = DCG @ k / max over all orders of DCG @ k; see `DCG`.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels, finite and >= 0.
    y_score : array-like of shape (n,)
        Scores; higher is ranked above.
    qid : array-like of shape (n,), default=None
        Query ids of any hashable type, in any order. None takes the index level ``qid`` of a pandas
        ``y_true`` if there is one, else all rows are one query.
    k : int, default=None
        The cutoff.
    gain : {"exp2", "linear"}, sequence or callable, default="exp2"
        What a label is worth; scikit-learn's `ndcg_score` is linear.
    discount : {"log2", "letor"}, sequence or callable, default="log2"
        What a rank is worth.
    ties : {"average", "worst", "input", "reverse"}, default="average"
        The order of rows with equal scores.
    empty_query : "skip" or float, default="skip"
        What a query without a positive gain counts.
    sample_weight : array-like of shape (n,), default=None
        Weights >= 0 of rows. A query weighs the mean of its rows' weights.

    Returns
    -------
    float
        In [0, 1]; NaN with a warning if no query counts.

    Raises
    ------
    ValueError
        For labels, scores, ids or weights that cannot be read.

    References
    ----------
    Järvelin and Kekäläinen, *Cumulated Gain-based Evaluation of IR Techniques*, TOIS 2002.

    Examples
    --------
    >>> ndcg_score([0, 2, 1, 1, 0], [0.3, 0.9, 0.1, 0.2, 0.7], qid=["a", "a", "a", "b", "b"], k=2)
    0.728...
    """
    measure = NDCG(at=k, gain=gain, discount=discount, ties=ties, empty_query=empty_query)
    return measure(y_true, y_score, qid=qid, sample_weight=sample_weight)


def dcg_score(
    y_true,
    y_score,
    *,
    qid=None,
    k=None,
    gain="exp2",
    discount="log2",
    ties="average",
    empty_query=0,
    sample_weight=None,
):
    """Mean over queries of the discounted cumulative gain.

    DCG @ k = sum over ranks r <= k of gain(label at rank r) * discount(r).

    Parameters
    ----------
    y_true, y_score, qid, k, gain, discount, ties, empty_query, sample_weight
        As in `ndcg_score`.

    Returns
    -------
    float

    References
    ----------
    Järvelin and Kekäläinen, *Cumulated Gain-based Evaluation of IR Techniques*, TOIS 2002.

    Examples
    --------
    >>> dcg_score([2, 0, 1], [0.3, 0.2, 0.1])
    3.5
    """
    measure = DCG(at=k, gain=gain, discount=discount, ties=ties, empty_query=empty_query)
    return measure(y_true, y_score, qid=qid, sample_weight=sample_weight)


def err_score(
    y_true, y_score, *, qid=None, k=None, max_grade=4, ties="average", empty_query=0, sample_weight=None
):
    """Mean over queries of the expected reciprocal rank; see `ERR`.

    Parameters
    ----------
    y_true, y_score, qid, k, ties, empty_query, sample_weight
        As in `ndcg_score`.
    max_grade : float, default=4
        The highest label there can be.

    Returns
    -------
    float
        In [0, 1).

    References
    ----------
    Chapelle, Metzler, Zhang and Grinspan, *Expected Reciprocal Rank for Graded Relevance*, CIKM 2009.

    Examples
    --------
    >>> err_score([0, 4], [0.2, 0.1])  # 15/16 at rank 2
    0.46875
    """
    measure = ERR(at=k, max_grade=max_grade, ties=ties, empty_query=empty_query)
    return measure(y_true, y_score, qid=qid, sample_weight=sample_weight)


def mean_average_precision_score(
    y_true, y_score, *, qid=None, k=None, rel=1, ties="average", empty_query="skip", sample_weight=None
):
    """Mean over queries of the average precision (MAP); see `AP`.

    Parameters
    ----------
    y_true, y_score, qid, k, ties, empty_query, sample_weight
        As in `ndcg_score`.
    rel : float, default=1
        The lowest relevant label.

    Returns
    -------
    float
        In [0, 1]; NaN with a warning if no query counts.

    References
    ----------
    Buckley and Voorhees, *Evaluating Evaluation Measure Stability*, SIGIR 2000.

    Examples
    --------
    >>> mean_average_precision_score([1, 0, 1, 1], [0.3, 0.2, 0.1, 0.5], qid=["a", "a", "a", "b"])
    0.916...
    """
    return AP(at=k, rel=rel, ties=ties, empty_query=empty_query)(
        y_true, y_score, qid=qid, sample_weight=sample_weight
    )


def mean_reciprocal_rank_score(
    y_true, y_score, *, qid=None, k=None, rel=1, ties="average", empty_query=0, sample_weight=None
):
    """Mean over queries of the reciprocal rank of the first relevant row (MRR); see `RR`.

    Parameters
    ----------
    y_true, y_score, qid, k, ties, empty_query, sample_weight
        As in `ndcg_score`.
    rel : float, default=1
        The lowest relevant label.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> mean_reciprocal_rank_score([0, 1, 1], [0.3, 0.2, 0.1])
    0.5
    """
    return RR(at=k, rel=rel, ties=ties, empty_query=empty_query)(
        y_true, y_score, qid=qid, sample_weight=sample_weight
    )


def precision_at_k_score(
    y_true, y_score, *, qid=None, k=None, rel=1, ties="average", empty_query=0, sample_weight=None
):
    """Mean over queries of the share of relevant rows among the first k; see `P`.

    Parameters
    ----------
    y_true, y_score, qid, k, ties, empty_query, sample_weight
        As in `ndcg_score`.
    rel : float, default=1
        The lowest relevant label.

    Returns
    -------
    float
        In [0, 1].

    Examples
    --------
    >>> precision_at_k_score([1, 0, 1], [0.3, 0.2, 0.1], k=2)
    0.5
    """
    return P(at=k, rel=rel, ties=ties, empty_query=empty_query)(
        y_true, y_score, qid=qid, sample_weight=sample_weight
    )


def recall_at_k_score(
    y_true, y_score, *, qid=None, k=None, rel=1, ties="average", empty_query="skip", sample_weight=None
):
    """Mean over queries of the share of the relevant rows that are among the first k; see `R`.

    Parameters
    ----------
    y_true, y_score, qid, k, ties, empty_query, sample_weight
        As in `ndcg_score`.
    rel : float, default=1
        The lowest relevant label.

    Returns
    -------
    float
        In [0, 1]; NaN with a warning if no query counts.

    Examples
    --------
    >>> recall_at_k_score([1, 0, 1], [0.3, 0.2, 0.1], k=1)
    0.5
    """
    return R(at=k, rel=rel, ties=ties, empty_query=empty_query)(
        y_true, y_score, qid=qid, sample_weight=sample_weight
    )


def mean_auc_score(
    y_true, y_score, *, qid=None, rel=1, ties="average", empty_query="skip", sample_weight=None
):
    """Mean over queries of the area under the ROC curve; see `AUC`.

    Parameters
    ----------
    y_true, y_score, qid, ties, empty_query, sample_weight
        As in `ndcg_score`.
    rel : float, default=1
        The lowest relevant label.

    Returns
    -------
    float
        In [0, 1]; NaN with a warning if no query counts.

    Examples
    --------
    >>> mean_auc_score([1, 0, 1], [0.3, 0.2, 0.1])
    0.5
    """
    return AUC(rel=rel, ties=ties, empty_query=empty_query)(
        y_true, y_score, qid=qid, sample_weight=sample_weight
    )


def pair_accuracy_score(y_true, y_score, *, qid=None, ties="average", empty_query="skip", sample_weight=None):
    """Mean over queries of the share of pairs with different labels in the right order; see `PairAccuracy`.

    Parameters
    ----------
    y_true, y_score, qid, ties, empty_query, sample_weight
        As in `ndcg_score`.

    Returns
    -------
    float
        In [0, 1]; NaN with a warning if no query counts.

    Examples
    --------
    >>> pair_accuracy_score([2, 0, 1], [0.3, 0.2, 0.1])
    0.666...
    """
    return PairAccuracy(ties=ties, empty_query=empty_query)(
        y_true, y_score, qid=qid, sample_weight=sample_weight
    )
