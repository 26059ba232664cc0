"""What all measures have: they are values, take rows of any order, and know what a swap changes."""

from __future__ import annotations

import itertools
import math
import reprlib
from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from ranktrees import validation
from ranktrees._core import ranking
from ranktrees.communicator import ALONE
from ranktrees.measures.parameters import CHECKS, typed
from ranktrees.measures.rows import column, grouped, read_only
from ranktrees.warning import warn


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
    >>> import numpy as np
    >>> from ranktrees.measures import Measure
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
        if name in CHECKS:
            return CHECKS[name](value)
        try:
            hash(value)
        except TypeError as error:
            raise TypeError(
                f"{self.name} is a value, but its parameter {name}={value!r} cannot be hashed; expected "
                "numbers, strings, functions or tuples of such: tuple(values) of an array or a list"
            ) from error
        return value

    # ---- a value ----

    def __call__(self, y_true=None, y_score=None, *others, qid=None, sample_weight=None, **parameters):
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
        if others:
            raise TypeError(
                f"{self.name}(y_true, y_score) takes labels and scores, and more by name, as qid=; as "
                "scoring= of scikit-learn, which calls it with an estimator, rows and labels, pass "
                "query_scorer of it"
            )
        measure = type(self)(**{**self.parameters, **parameters}) if parameters else self
        if y_true is None and y_score is None and qid is None and sample_weight is None:
            return measure
        if y_true is None or y_score is None:
            raise TypeError(
                f"{self.name}(y_true, y_score) needs both labels and scores"
                + f"; a cutoff is written {self.name} @ {y_true}" * isinstance(y_true, Integral)
            )
        labels, scores, offsets, weights = grouped(measure, y_true, y_score, qid, sample_weight)
        value = measure.mean(labels, scores, offsets, weights)
        measure.warn_if_undefined(value)
        return value

    def warn_if_undefined(self, value):
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
            f"{name}={typed(value)}"
            for name, value in self.__dict__.items()
            if name != "at" and value != self.defaults[name]
        ]
        call = f"({', '.join(changed)})" if changed else ""
        at = self.__dict__.get("at")
        return self.name + call + ("" if at is None else f" @ {typed(at)}")

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
        >>> import numpy as np
        >>> from ranktrees.measures import NDCG, KendallTau
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
            The rows of the query; not to be written to.

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
        >>> import numpy as np
        >>> from ranktrees.measures import NDCG
        >>> NDCG.per_query(np.array([1.0, 0, 0, 0]), np.array([1.0, 2, 3, 4]), np.array([0, 2, 4]))
        array([0.63092975,        nan])
        """
        labels, scores = read_only(labels), read_only(scores)
        queries = itertools.starmap(slice, itertools.pairwise(offsets))
        return np.array([self._number(self.of_query(labels[rows], scores[rows])) for rows in queries])

    def _number(self, value):
        """What `of_query` returned, which users write."""
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._no_number(value) from error
        if math.isinf(number):
            raise self._no_number(value)
        return number

    def _no_number(self, value):
        direction = "higher" if self.greater_is_better else "lower"
        return ValueError(
            f"the measure {self} returned {reprlib.repr(value)} for a query; expected one finite number, "
            f"{direction} is better, or NaN where the query has none"
        )

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
        weights = None if weights is None else query_weights(weights, offsets)
        return weighted_mean(values, weights, communicator)

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
        >>> import numpy as np
        >>> from ranktrees.measures import NDCG
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

        Raises
        ------
        ValueError
            For labels or scores that the measure cannot read; it names them.

        Examples
        --------
        >>> from ranktrees.measures import P
        >>> (P @ 1).deltas([0, 1, 0], [0.9, 0.5, 0.1])
        array([[0., 1., 0.],
               [1., 0., 0.],
               [0., 0., 0.]])
        """
        labels, scores = column("labels", labels), column("scores", scores, finite=False)
        if len(labels) != len(scores):
            raise ValueError(f"scores has {len(scores)} rows, but labels has {len(labels)}: pass one query's")
        self.check_labels(labels, "labels")
        order = np.argsort(-scores, kind="stable")
        ranked = np.arange(len(scores), 0.0, -1.0) if self.by_order else scores[order]
        out = np.empty((len(labels), len(labels)))
        out[np.ix_(order, order)] = np.nan_to_num(self.swap_deltas(labels[order], ranked), nan=0.0) + 0.0
        return out

    def swap_deltas(self, labels, scores):
        """`deltas` of rows that stand in rank order: a measure may have them in closed form.

        Here every pair is swapped, evaluated and swapped back.

        Parameters
        ----------
        labels, scores : ndarray of shape (n,), float64
            The rows of one query by descending score; no two scores are equal where only their order matters.

        Returns
        -------
        ndarray of shape (n, n), float64
            NaN where the measure is not defined.

        Examples
        --------
        >>> import numpy as np
        >>> from ranktrees.measures import RR
        >>> RR.swap_deltas(np.array([0.0, 1, 0]), np.array([3.0, 2, 1]))
        array([[ 0.        ,  0.5       ,  0.        ],
               [ 0.5       ,  0.        , -0.16666667],
               [ 0.        , -0.16666667,  0.        ]])
        """
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


def weighted_mean(values, weights=None, communicator=ALONE):
    counts = ~np.isnan(values)
    weights = np.ones(len(values)) if weights is None else weights
    total = communicator.exact_sum(weights[counts])
    value = communicator.exact_sum(weights[counts] * values[counts])
    return quotient(value, total)


def quotient(value, total_weight):
    validation.require_finite_sum(total_weight, "sample_weight")
    return value / total_weight if total_weight > 0 else math.nan


def query_sums(values, offsets):
    out = np.empty(len(offsets) - 1)
    ranking.query_sums(values, offsets, out)
    return out


def query_weights(weights, offsets):
    return query_sums(weights, offsets) / np.maximum(np.diff(offsets), 1)


class BoundMeasure:
    """A measure joined with rows whose scores change, see `Measure.bind`.

    Parameters
    ----------
    measure : Measure
    labels, offsets, weights, n_threads, communicator
        As in `Measure.bind`.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.measures import RMSE, BoundMeasure
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
        self.measure.warn_if_undefined(value)
        return value if self.measure.greater_is_better else -value
