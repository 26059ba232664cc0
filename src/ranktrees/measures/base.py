"""The base of all measures: they are values, take rows in any order, and know what a swap changes."""

from __future__ import annotations

import itertools
import math
import reprlib
from collections.abc import Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, overload

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from ranktrees._core.measures import ranking
from ranktrees.measures.checks import CHECKS, typed
from ranktrees.measures.rows import arranged, checked_rows, column, read_only
from ranktrees.processes.communicator import ALONE
from ranktrees.rows import MissingQueryWarning, qid_of, require_finite_sum, warn_of_order
from ranktrees.support.warning import FitWarning, warn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.processes.communicator import Communicator
    from ranktrees.support.annotations import IdsLike


class Measure:
    """Base class of all measures. A measure is a number that says how good the ranking of a query is.

    A measure is an immutable value. It prints as it is typed, is compared and hashed accordingly, can be a
    dictionary key, and is pickled and cloned like a number. The names ``NDCG``, ``ERR``, ``AP`` ... are such
    values, with their default parameters. There are three ways to get a number or another measure from one:

    - ``measure @ 10`` is the same measure, cut off at rank 10;
    - ``measure(gain="linear")``, with parameters only, is the same measure with other parameters;
    - ``measure(y_true, y_score, qid=qid)`` is its mean over the queries.

    To write your own measure, derive a class from this one, give it a ``name`` and define `of_query`, as in
    the example.

    Parameters
    ----------
    **parameters
        The parameters to set, by name. Those not given have the values in `defaults`.

    Attributes
    ----------
    name : str
        The name under which the measure is typed and printed.
    defaults : dict
        The parameters of the measure with their defaults, in the order in which they print.
    greater_is_better : bool
        Whether a higher value is better. False for errors.
    by_order : bool
        Whether only the order of the scores matters, not how far they are apart.
    by_query : bool
        Whether it is a mean over queries. False for measures of the rows of all queries together.
    lowest_label : float
        The lowest label that the measure accepts.

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
    by_query: ClassVar[bool] = True
    lowest_label: ClassVar[float] = 0.0
    undefined: ClassVar[str] = "on any query of positive weight (see empty_query)"

    def __init__(self, **parameters: Any) -> None:
        unknown = sorted(set(parameters) - set(self.defaults))
        if unknown:
            how = f"; a cutoff is written {self.name} @ k" if "k" in unknown and "at" in self.defaults else ""
            if set(unknown) & {"group", "groups", "group_id", "sizes"}:
                how = "; queries are told by qid=, one id per row: np.repeat(np.arange(len(sizes)), sizes)"
            raise TypeError(
                f"{self.name} has no parameter {', '.join(map(repr, unknown))}: "
                f"it has {', '.join(self.defaults) or 'none'}{how}"
            )
        for name, default in self.defaults.items():
            self.__dict__[name] = self._checked(name, parameters.get(name, default))

    @property
    def __name__(self) -> str:
        """The measure as it is typed: scikit-learn calls functions by this name."""
        return repr(self)

    def _checked(self, name: str, value: Any) -> Any:
        if name in CHECKS:
            return CHECKS[name](value)
        try:
            hash(value)
        except TypeError as error:
            raise TypeError(
                f"measures can be hashed, but the parameter {name}={value!r} of {self.name} cannot; "
                "expected numbers, strings, functions or tuples of these: pass tuple(values) for an array "
                "or a list"
            ) from error
        return value

    # ---- a value ----

    @overload
    def __call__(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        qid: IdsLike | None = None,
        sample_weight: ArrayLike | None = None,
        **parameters: Any,
    ) -> float: ...

    @overload
    def __call__(self, **parameters: Any) -> Measure: ...

    def __call__(
        self,
        y_true: Any = None,
        y_score: ArrayLike | None = None,
        *others: Any,
        qid: IdsLike | None = None,
        sample_weight: ArrayLike | None = None,
        **parameters: Any,
    ) -> Any:
        """Return the mean over the queries or, if called with parameters only, the measure with those.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Labels.
        y_score : array-like of shape (n,)
            Scores. Rows with higher scores rank first. A row with score -inf was not retrieved: it is one of
            the rows of its query, but has no rank.
        qid : array-like of shape (n,), default=None
            Query ids of any hashable type, in any order. If None, they are taken from the level ``qid`` of
            the index of a pandas ``y_true`` if there is one. Otherwise all rows are one query, and measures
            that are means over queries issue a `MissingQueryWarning`.
        sample_weight : array-like of shape (n,), default=None
            Weights >= 0 of the rows. The weight of a query is the mean of the weights of its rows.
        **parameters
            The parameters to change.

        Returns
        -------
        float or Measure
            The mean. It is NaN, with an `UndefinedMetricWarning`, if no query counts. Without ``y_true`` and
            ``y_score``, a measure is returned instead.

        Raises
        ------
        ValueError
            If the measure cannot read some labels, scores or weights; the message names them.
        """
        if others:
            raise TypeError(
                f"{self.name}(y_true, y_score) takes labels and scores, and everything else by name, as "
                "qid=; for scoring= of scikit-learn, which is called with an estimator, rows and labels, "
                "pass query_scorer(measure)"
            )
        measure = type(self)(**{**self.parameters, **parameters}) if parameters else self
        if y_true is None and y_score is None and qid is None and sample_weight is None:
            return measure
        if y_true is None or y_score is None:
            how = f"; a cutoff is written {self.name} @ {y_true}" if isinstance(y_true, Integral) else ""
            raise TypeError(f"{self.name}(y_true, y_score) needs both labels and scores{how}")
        labels, scores, offsets, weights = _grouped(measure, y_true, y_score, qid, sample_weight)
        value = measure.mean(labels, scores, offsets, weights)
        measure.warn_if_undefined(value)
        return value

    def warn_of_labels(self, labels: np.ndarray, name: str = "y") -> None:
        """Warn if all labels are relevant, though they are grades that differ.

        Parameters
        ----------
        labels : ndarray of shape (n,), float64
            Finite labels.
        name : str, default="y"
            What the message calls the labels.

        Examples
        --------
        >>> import numpy as np
        >>> from ranktrees.measures import AP
        >>> AP(rel=4).warn_of_labels(np.array([1.0, 5.0, 3.0]))
        """
        rel = self.parameters.get("rel")
        if rel is None or labels.min(initial=math.inf) < rel or (highest := labels.max(initial=rel)) == rel:
            return
        warn(
            f"{name} has no label below rel={rel:g}, so that {self} takes every row for relevant; pass the "
            f"lowest grade that is relevant, as in {self(rel=highest)}.",
            FitWarning,
        )

    def warn_if_undefined(self, value: float) -> None:
        if math.isnan(value):
            warn(f"{self} is not defined {self.undefined}: its value is nan", UndefinedMetricWarning)

    def __matmul__(self, at: Any) -> Measure:
        """Return the measure cut off at rank ``at``."""
        if "at" not in self.defaults:
            raise TypeError(
                f"{self.name} has no cutoff, but {at!r} is given; expected {self.name} alone, or a measure "
                "that has one, such as NDCG @ 10"
            )
        return self(at=at)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters by name, as a new dict."""
        return dict(self.__dict__)

    def __repr__(self) -> str:
        changed = [
            f"{name}={typed(value)}"
            for name, value in self.__dict__.items()
            if name != "at" and value != self.defaults[name]
        ]
        call = f"({', '.join(changed)})" if changed else ""
        at = self.__dict__.get("at")
        return self.name + call + ("" if at is None else f" @ {typed(at)}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.__dict__.values())))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a measure cannot be changed: use {self.name}({name}=...)")

    # ---- evaluation; arrays are checked and rows grouped by query ----

    def check_labels(self, labels: np.ndarray, name: str = "y") -> None:
        """Raise if there are labels that the measure does not accept.

        Parameters
        ----------
        labels : ndarray of shape (n,), float64
            Finite labels.
        name : str, default="y"
            What the message calls the labels.

        Raises
        ------
        ValueError
            If a label is below ``lowest_label``.

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

    def of_query(self, labels: np.ndarray, scores: np.ndarray) -> float:
        """Return the value of one query. This is what a new measure has to define.

        Parameters
        ----------
        labels, scores : ndarray of shape (n,), float64
            The labels and scores of the rows of the query. They must not be written to.

        Returns
        -------
        float
            The value, or NaN if the measure is not defined on the query.
        """
        raise NotImplementedError(f"{type(self).__name__} must define of_query(labels, scores)")

    def per_query(
        self,
        labels: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        weights: np.ndarray | None = None,
        n_threads: int = 1,
    ) -> NDArray[np.float64]:
        """Return the value of each query.

        Parameters
        ----------
        labels, scores : ndarray of shape (n,), float64
            The labels and scores of rows that are grouped by query. The labels are not checked here; see
            `check_labels`.
        offsets : ndarray of shape (n_queries + 1,), int64
            Query q is rows ``offsets[q]:offsets[q + 1]``.
        weights : ndarray of shape (n,), float64, default=None
            Weights of the rows. Only measures of rows (RMSE) use them here.
        n_threads : int, default=1
            The number of threads, which share the queries. The values do not depend on it.

        Returns
        -------
        ndarray of shape (n_queries,), float64
            The values, NaN for queries that are skipped.

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

    def _number(self, value: Any) -> float:
        """The value that `of_query`, which users write, has returned, as a checked float."""
        try:
            number = float(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise self._no_number(value) from error
        if math.isinf(number):
            raise self._no_number(value)
        return number

    def _no_number(self, value: object) -> ValueError:
        direction = "higher" if self.greater_is_better else "lower"
        return ValueError(
            f"the measure {self} returned {reprlib.repr(value)} for a query; expected one finite number, "
            f"{direction} is better, or NaN if the query has no value"
        )

    def mean(
        self,
        labels: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        weights: np.ndarray | None = None,
        n_threads: int = 1,
        communicator: Communicator = ALONE,
    ) -> float:
        """Return the mean over the queries that count.

        The weight of a query is the mean of the weights of its rows. The sum is exact, so the order of the
        queries does not matter.

        Parameters
        ----------
        labels, scores, offsets, weights, n_threads
            As in `per_query`.
        communicator : Communicator, default=ALONE
            The ranks over whose queries the mean is taken.

        Returns
        -------
        float
            The mean, or NaN if no query counts.

        Raises
        ------
        ValueError
            If a label is below ``lowest_label``.
        """
        self.check_labels(labels)
        values = self.per_query(labels, scores, offsets, weights, n_threads)
        weights = None if weights is None else query_weights(weights, offsets)
        return weighted_mean(values, weights, communicator)

    def signed_mean(
        self,
        labels: np.ndarray,
        scores: np.ndarray,
        offsets: np.ndarray,
        weights: np.ndarray | None = None,
        n_threads: int = 1,
        communicator: Communicator = ALONE,
    ) -> float:
        """Return the mean, negated if smaller is better, as it is compared to choose between models.

        Parameters
        ----------
        labels, scores, offsets, weights, n_threads
            As in `per_query`.
        communicator : Communicator, default=ALONE
            The ranks over whose queries the mean is.

        Returns
        -------
        float
            The mean, or NaN, with an `UndefinedMetricWarning`, if no query counts.

        Raises
        ------
        ValueError
            If a label is below ``lowest_label``.
        """
        return self.prepare(labels, offsets, weights, n_threads, communicator).signed_mean(scores)

    def prepare(
        self,
        labels: np.ndarray,
        offsets: np.ndarray,
        weights: np.ndarray | None = None,
        n_threads: int = 1,
        communicator: Communicator = ALONE,
    ) -> PreparedMeasure:
        """Prepare the measure for rows whose scores change.

        Whatever does not depend on the scores is then computed only once.

        Parameters
        ----------
        labels, offsets, weights, n_threads
            As in `per_query`.
        communicator : Communicator, default=ALONE
            The ranks over whose queries means are taken.

        Returns
        -------
        PreparedMeasure
            The prepared measure. Its ``per_query``, ``mean`` and ``signed_mean`` take only scores and return
            the same as the methods of the measure.

        Raises
        ------
        ValueError
            If a label is below ``lowest_label``.

        Examples
        --------
        >>> import numpy as np
        >>> from ranktrees.measures import NDCG
        >>> prepared = NDCG.prepare(np.array([1.0, 0, 1, 0]), np.array([0, 2, 4]))
        >>> prepared.mean(np.array([1.0, 2, 3, 4])), prepared.mean(np.array([2.0, 1, 4, 3]))
        (0.6309297535714574, 1.0)
        """
        self.check_labels(labels)
        return PreparedMeasure(self, labels, offsets, weights, n_threads, communicator)

    def deltas(self, labels: ArrayLike, scores: ArrayLike) -> NDArray[np.float64]:
        """Return the deltas: the changes of the measure when two rows of a query swap places in the ranking.

        The ranking is by descending score, with rows of equal scores in their given order. ``ties`` plays no
        part.

        Parameters
        ----------
        labels, scores : ndarray of shape (n,), float64
            The labels and scores of the rows of one query, all of which have a rank: no score is -inf.

        Returns
        -------
        ndarray of shape (n, n), float64
            Entry (i, j) is the measure after rows i and j have swapped places, minus the measure before. The
            matrix is symmetric. It is zero throughout if the measure is not defined on the query.

        Raises
        ------
        ValueError
            If the measure cannot read some labels or scores; the message names them.

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
            raise ValueError(
                f"scores has {len(scores)} rows, but labels has {len(labels)}: pass those of one query"
            )
        self.check_labels(labels, "labels")
        if (hidden := np.isneginf(scores)).any():
            raise ValueError(
                f"scores has -inf in row {hidden.argmax()}, which was not retrieved and has no place to "
                "swap; expected scores of retrieved rows: leave the others out"
            )
        order = np.argsort(-scores, kind="stable")
        ranked = np.arange(len(scores), 0.0, -1.0) if self.by_order else scores[order]
        out = np.empty((len(labels), len(labels)))
        out[np.ix_(order, order)] = np.nan_to_num(self.swap_deltas(labels[order], ranked), nan=0.0) + 0.0
        return out

    def swap_deltas(self, labels: np.ndarray, scores: np.ndarray) -> NDArray[np.float64]:
        """Return the `deltas` of rows that are in rank order.

        Here every pair is swapped, evaluated and swapped back. A measure whose deltas have a closed form may
        override this method.

        Parameters
        ----------
        labels, scores : ndarray of shape (n,), float64
            The labels and scores of the rows of one query, by descending score. If only the order of the
            scores matters, no two of them are equal.

        Returns
        -------
        ndarray of shape (n, n), float64
            The deltas, NaN if the measure is not defined.

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


class Preset(property):
    """An attribute of a measure: this measure, or another, with the parameters of a program or a paper."""

    def __init__(self, doc: str, of: Measure | None = None, **parameters: Any) -> None:
        super().__init__(lambda measure: (of or measure)(**parameters), doc=doc)

    if TYPE_CHECKING:

        def __get__(  # type: ignore[override]
            self, instance: Any, owner: type | None = None, /
        ) -> Measure: ...


def _grouped(
    measure: Measure,
    y_true: ArrayLike,
    y_score: ArrayLike,
    qid: IdsLike | None,
    sample_weight: ArrayLike | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the arguments of `Measure.mean`, from what users pass."""
    warn_of_order({"y_true": y_true, "y_score": y_score, "qid": qid, "sample_weight": sample_weight})
    scores = column("y_score", y_score, finite=False)
    labels, order, offsets, weights = checked_rows(y_true, {"y_score": scores}, qid, sample_weight)
    measure.check_labels(labels, "y_true")
    measure.warn_of_labels(labels, "y_true")
    if measure.by_query and len(labels) > 1 and qid is None and qid_of(y_true) is None:
        warn(
            f"{measure} was taken without query ids, so all {len(labels)} rows were treated as one query. "
            "Pass qid= (one id per row), or a y_true whose index has a level named 'qid'; if all rows belong "
            "to one query, pass zeros.",
            MissingQueryWarning,
        )
    return labels, arranged(order, scores), offsets, weights


def weighted_mean(
    values: np.ndarray, weights: np.ndarray | None = None, communicator: Communicator = ALONE
) -> float:
    counts = ~np.isnan(values)
    weights = np.ones(len(values)) if weights is None else weights
    total = communicator.exact_sum(weights[counts])
    value = communicator.exact_sum(weights[counts] * values[counts])
    return quotient(value, total)


def quotient(value: float, total_weight: float) -> float:
    require_finite_sum(total_weight, "sample_weight")
    return value / total_weight if total_weight > 0 else math.nan


def query_sums(values: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    out = np.empty(len(offsets) - 1)
    ranking.query_sums(values, offsets, out)
    return out


def query_weights(weights: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    return query_sums(weights, offsets) / np.maximum(np.diff(offsets), 1)


class PreparedMeasure:
    """A measure prepared for rows whose scores change; see `Measure.prepare`.

    Parameters
    ----------
    measure : Measure
        The measure.
    labels, offsets, weights, n_threads, communicator
        As in `Measure.prepare`.

    Examples
    --------
    >>> import numpy as np
    >>> from ranktrees.measures import RMSE, PreparedMeasure
    >>> prepared = PreparedMeasure(RMSE, np.array([0.0, 1, 2]), np.array([0, 2, 3]))
    >>> prepared.per_query(np.array([0.0, 1, 5])), prepared.signed_mean(np.array([0.0, 1, 2]))
    (array([0., 3.]), -0.0)
    """

    def __init__(
        self,
        measure: Measure,
        labels: np.ndarray,
        offsets: np.ndarray,
        weights: np.ndarray | None = None,
        n_threads: int = 1,
        communicator: Communicator = ALONE,
    ) -> None:
        self.measure = measure
        self.labels, self.offsets, self.weights = labels, offsets, weights
        self.n_threads, self.communicator = n_threads, communicator

    def per_query(self, scores: np.ndarray) -> np.ndarray:
        """Return the value of each query, as `Measure.per_query` does."""
        return self.measure.per_query(self.labels, scores, self.offsets, self.weights, self.n_threads)

    def mean(self, scores: np.ndarray) -> float:
        """Return the mean over the queries that count, as `Measure.mean` does."""
        rows = self.labels, scores, self.offsets, self.weights
        return self.measure.mean(*rows, self.n_threads, self.communicator)

    def signed_mean(self, scores: np.ndarray) -> float:
        """Return the mean, negated if smaller is better, as `Measure.signed_mean` does."""
        value = self.mean(scores)
        self.measure.warn_if_undefined(value)
        return value if self.measure.greater_is_better else -value
