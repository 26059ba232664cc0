r"""Is one ranker better than another, or was it only lucky with these queries?

The queries of a test set are a sample of those to come. Two rankers are compared on the same queries, by the
differences :math:`d_q = a_q - b_q` between the values of a measure for the two. A query that is hard for both
rankers says little about either, and cancels out in the difference.

Student's t test
    The mean difference divided by its standard error, :math:`t = \bar d \big/ \sqrt{s^2 / n}`, is looked up
    in the t distribution with :math:`n - 1` degrees of freedom. The test assumes that mean differences are
    normally distributed. Over some dozens of queries they nearly are.
Bootstrap
    As many queries as there are, are drawn with replacement, many times. The interval holds the middle of the
    means of these resamples. The p-value is the share of resamples whose mean is at least as far from
    :math:`\bar d` as :math:`\bar d` is from 0. With few queries the interval is too narrow and the p-value
    too small, because the bootstrap ignores that :math:`s` is itself an estimate.
Randomization test
    If it made no difference which ranker gave which value, each :math:`d_q` could equally well have the other
    sign. The p-value is the share of all :math:`2^n` choices of signs whose mean is at least as far from 0
    as :math:`\bar d`. The test does not assume a normal distribution.

Smucker, Allan and Carterette, *A comparison of statistical significance tests for information retrieval
evaluation*, CIKM 2007, found that the three agree on real rankers, and that sign and rank tests do not.

A query on which the measure says nothing about the ranking is *left out* if ``empty_query`` is "skip". For
some measures (NDCG, AP ...) these are the queries without a relevant row, for others (AUC ...) those without
two different labels. If ``empty_query`` is a number, such a query *counts*, as a tie. So does a query whose
labels are all the same but relevant: its NDCG is 1 in any order. Ties make the mean difference and its
interval smaller in equal measure, and matter little to a p-value.

Nothing depends on the order of the queries. Resamples are drawn by (seed, number), as everywhere in this
library, and summed as integers, so the results are the same on every machine.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, overload

import numpy as np
from scipy.special import stdtr, stdtrit
from sklearn.utils import check_random_state

from ranktrees._core.rows import sampling
from ranktrees.measures import Measure, as_measure
from ranktrees.measures.rows import arranged, checked_rows, column, numbers_in
from ranktrees.rows import column_of, ids_of_queries, qid_of, warn_of_order
from ranktrees.rows.values import as_seen
from ranktrees.support.numeric import is_whole
from ranktrees.support.parallel import effective_n_threads
from ranktrees.support.plotting import axes_or_new
from ranktrees.support.tables import Tabular, aligned, pandas_for

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.measures.named import AnyMeasure
    from ranktrees.support.annotations import IdsLike

__all__ = [
    "Comparison",
    "Comparisons",
    "MeanInterval",
    "Report",
    "compare",
    "compare_to_baseline",
    "compare_values",
    "holm",
    "mean_interval",
    "per_query_table",
]

Test: TypeAlias = Literal["t", "bootstrap", "randomization"]

# Differences of values are kept to this many bits below the largest value. Anything smaller is rounding.
BITS = 40


# ---- values of queries -------------------------------------------------------------------------------------


def per_query_table(
    y_true: ArrayLike,
    y_score: Mapping[str, ArrayLike],
    *,
    qid: IdsLike | None = None,
    measure: AnyMeasure | Sequence[AnyMeasure] = "ndcg@10",
) -> pd.DataFrame:
    """Return a table with the value of every measure for every query and every ranker.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    y_score : dict of str to array-like of shape (n,)
        The scores of each ranker, by the name of the ranker.
    qid : array-like of shape (n,), default=None
        Query ids, as in `ndcg_score`.
    measure : str, Measure, callable or sequence of them, default="ndcg@10"
        The measure, or several.

    Returns
    -------
    DataFrame
        One row per query, indexed by the query id, in the order in which the queries first appear, and one
        column per (ranker, measure). Values are NaN where a measure skips the query.

    Raises
    ------
    ImportError
        If pandas is not installed.
    ValueError
        If labels, scores or ids cannot be read, or if different measures print alike.

    Examples
    --------
    >>> y_true, qid = [0, 2, 1, 1, 0], ["a", "a", "a", "b", "b"]
    >>> table = per_query_table(
    ...     y_true, {"ours": [0.3, 0.9, 0.1, 0.2, 0.7], "none": [0] * 5}, qid=qid, measure=["mrr", "p@1"]
    ... )
    >>> print(table)
    ranker  ours              none
    measure   RR P @ 1          RR     P @ 1
    qid
    a        1.0   1.0    0.833333  0.666667
    b        0.5   0.0    0.750000  0.500000
    >>> mean_interval(table["ours"]["RR"]).mean
    0.75
    """
    pd = pandas_for("per_query_table")
    chosen = _measures_of(measure)
    if not isinstance(y_score, Mapping):
        raise TypeError(
            f"y_score is {as_seen(y_score)}; expected a dict of the scores of each ranker by its name: "
            "pass {'name': scores}."
        )
    named = {f"y_score[{name!r}]": values for name, values in y_score.items()}
    values, order, offsets = values_of_queries(y_true, named, qid, chosen)
    columns = {
        (name, repr(measure)): values[of_ranker, measure]
        for name, of_ranker in zip(y_score, named, strict=True)
        for measure in chosen
    }
    qid = qid_of(y_true) if qid is None else qid
    qid = [0] * int(offsets[-1]) if qid is None else qid
    ids = ids_of_queries(qid, order, offsets)
    index = pd.Index(column_of(ids), name="qid", tupleize_cols=False)
    table = pd.DataFrame(columns, index=index)
    table.columns = pd.MultiIndex.from_tuples(table.columns, names=["ranker", "measure"])
    return table


def _measures_of(measure: AnyMeasure | Sequence[AnyMeasure]) -> list[Measure]:
    """The measures, one or several, each of another name."""
    one = isinstance(measure, str) or callable(measure)
    given: Any = [measure] if one else measure
    chosen = [as_measure(each) for each in given]
    for name, times in Counter(map(repr, dict.fromkeys(chosen))).items():
        if times > 1:
            raise ValueError(
                f"measure has {times} that print as {name}, which is to name one column; expected a "
                "different name for each: give the functions different names."
            )
    return chosen


def values_of_queries(
    y_true: ArrayLike, scores: Mapping[str, ArrayLike], qid: IdsLike | None, measures: Sequence[Measure]
) -> tuple[dict[tuple[str, Measure], np.ndarray], np.ndarray | None, np.ndarray]:
    """The values of the queries, as they first appear, for each (name, measure); their order and offsets."""
    warn_of_order({"y_true": y_true, "qid": qid, **scores})
    numbers = {name: column(name, values, finite=False) for name, values in scores.items()}
    labels, order, offsets, _ = checked_rows(y_true, numbers, qid, None)
    values = {}
    for measure in measures:
        measure.check_labels(labels, "y_true")
        measure.warn_of_labels(labels, "y_true")
        for name, of_rows in numbers.items():
            values[name, measure] = measure.per_query(labels, arranged(order, of_rows), offsets)
    return values, order, offsets


# ---- one ranker: the interval of its mean ------------------------------------------------------------------


class MeanInterval(NamedTuple):
    """A mean over queries with its confidence interval; see `mean_interval`.

    It prints as tables in papers show it, as ``mean ± half the interval``.
    """

    mean: float
    low: float
    high: float
    n_queries: int

    def __str__(self) -> str:
        return f"{self.mean:.4f} ± {(self.high - self.low) / 2:.4f}"


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> MeanInterval:
    """Return the mean of per-query values and its t interval.

    The interval is mean -+ t * s / sqrt(n), with s the standard deviation of the n values and t the quantile
    of Student's distribution with n - 1 degrees of freedom. It is the range in which the mean over queries
    like these is expected.

    Parameters
    ----------
    values : array-like of shape (n_queries,)
        One value per query. Values that are NaN, NA or masked are left out.
    confidence : float in (0, 1), default=0.95
        The probability with which the interval covers the mean.

    Returns
    -------
    MeanInterval
        ``mean``, ``low``, ``high`` and ``n_queries``.

    Raises
    ------
    ValueError
        If fewer than two queries have a value.

    Examples
    --------
    >>> interval = mean_interval([0.5, 0.7, float("nan"), 0.6])
    >>> print(interval)
    0.6000 ± 0.2484
    >>> interval.low < 0.36, interval.n_queries
    (True, 3)
    """
    given = _query_values("values", values)
    numbers = given[~np.isnan(given)]
    if len(numbers) < 2:
        raise ValueError(
            f"a confidence interval needs at least two queries with a value, got {len(numbers)}"
            + ": without qid= all rows are one query" * (len(given) == 1)
        )
    student = _student(numbers, confidence)
    return MeanInterval(student.mean, student.low, student.high, len(numbers))


# ---- two rankers -------------------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False, kw_only=True)
class Comparison(Tabular):
    """The result of `compare`. It prints as a few lines of text.

    Attributes
    ----------
    mean_a, mean_b : float
        The means of a and b over the queries that count.
    difference : float
        The mean of a - b.
    interval : tuple of two float
        The confidence interval of the mean difference. It covers the difference with probability
        ``confidence``.
    p_value : float
        The probability of a difference at least this large, in either direction, if there is none in truth.
    statistic : float
        The mean difference divided by its standard error, Student's t.
    wins, ties, losses : int
        The numbers of queries on which a is better than b, as good, and worse.
    n_queries : int
        The number of queries that count.
    n_skipped : int
        The number of queries that are left out because a or b has no value.
    test : {"t", "bootstrap", "randomization"}
        The test that gave the p-value.
    confidence : float
        The confidence of the interval.
    measure : Measure or None
        The measure. None if values were compared.
    values_a, values_b : ndarray of float64, shape (n_queries + n_skipped,)
        The values, with the queries in order of first appearance. NaN for queries that were left out.
    greater_is_better : bool
        Whether a higher value is a win.
    names : tuple of two str
        What a and b are called: "a" and "b", unless several rankers were compared by their names.
    """

    mean_a: float
    mean_b: float
    difference: float
    interval: tuple[float, float]
    p_value: float
    statistic: float
    wins: int
    ties: int
    losses: int
    n_queries: int
    n_skipped: int
    test: str
    confidence: float
    measure: Measure | None
    values_a: NDArray[np.float64] = field(compare=False)
    values_b: NDArray[np.float64] = field(compare=False)
    greater_is_better: bool = True
    names: tuple[str, str] = field(default=("a", "b"), compare=False)

    def __repr__(self) -> str:
        a, b = self.names
        both = f"{a} - {b}"
        return (
            f"{self._what} of {_typed_queries(self)}\n"
            f"{str(a).ljust(len(both))}  {self.mean_a:8.4f}\n"
            f"{str(b).ljust(len(both))}  {self.mean_b:8.4f}\n"
            f"{both}  {self.difference:+8.4f}, {_typed_interval(self)}, p = {_typed(self.p_value)}"
            f" by {_TESTS[self.test][0]}\n"
            f"{a} is better in {self.wins}, as good in {self.ties}, worse in {self.losses}"
        )

    @property
    def _what(self) -> str:
        return "values" if self.measure is None else repr(self.measure)

    @property
    def _is_better(self) -> bool:
        """Whether a is better than b on average."""
        return self.difference > 0 if self.greater_is_better else self.difference < 0

    def to_frame(self) -> pd.DataFrame:
        """Return the comparison as a table with a row for each ranker.

        Returns
        -------
        DataFrame
            Indexed by the name of the ranker, a first, with the columns ``mean``, ``difference``, ``low`` and
            ``high`` (the ends of the interval), ``p_value``, ``wins``, ``ties`` and ``losses``. All but
            ``mean`` are missing for b.

        Raises
        ------
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> from ranktrees.evaluation import compare_values
        >>> found = compare_values([0.9, 0.8, 0.7, 0.9, 0.6], [0.7, 0.7, 0.6, 0.5, 0.6])
        >>> print(found.to_frame()[["mean", "difference", "wins", "ties"]])
                mean  difference  wins  ties
        ranker
        a       0.78        0.16     4     1
        b       0.62         NaN  <NA>  <NA>
        """
        a, b = self.names
        return _frame_of([(a, self.mean_a, self, self.p_value), (b, self.mean_b, None, None)])

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Plot the difference on each query, from the clearest win of a to its clearest loss.

        The line and the band are the mean difference and its interval.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to plot on. If None, a new figure is created.
        **style
            Keyword arguments passed to `matplotlib.axes.Axes.stairs`, which draws the differences.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = axes_or_new(ax)
        a, b = self.names
        sign = 1 if self.greater_is_better else -1
        wins = sign * (self.values_a - self.values_b)
        wins = -np.sort(-wins[~np.isnan(wins)])
        edges = np.arange(len(wins) + 1)
        for color, side, better, n in (("C0", wins > 0, a, self.wins), ("C1", wins < 0, b, self.losses)):
            label = f"{better} is better: {n}"
            drawn: dict[str, Any] = {"fill": True, "color": color, "label": label} | style
            ax.stairs(np.where(side, sign * wins, 0.0), edges, **drawn)
        ax.axhline(0, color="black", linewidth=0.8)
        ax.axhspan(*self.interval, color="grey", alpha=0.3, linewidth=0)
        interval = f"mean, {100 * self.confidence:g} % interval"
        ax.axhline(self.difference, color="grey", linestyle="--", linewidth=1, label=interval)
        left_out = f", {self.ties} as good" if self.ties else ""
        ax.set(xlabel=f"{_typed_queries(self)}{left_out}", ylabel=f"{self._what}: {a} - {b}")
        ax.set_xlim(0, len(wins))
        ax.legend()
        return ax


def _typed_queries(comparison: Comparison) -> str:
    left_out = f", {comparison.n_skipped} left out" if comparison.n_skipped else ""
    return f"{comparison.n_queries} queries{left_out}"


def _frame_of(lines: list[tuple[str, float, Comparison | None, float | None]]) -> pd.DataFrame:
    """A table of rankers: the name, mean, comparison and p-value of each."""
    pd = pandas_for("to_frame")
    rows = [
        (mean, *[math.nan] * 4, *[None] * 3)
        if found is None
        else (mean, found.difference, *found.interval, p_value, found.wins, found.ties, found.losses)
        for _, mean, found, p_value in lines
    ]
    counts = ["wins", "ties", "losses"]
    columns = ["mean", "difference", "low", "high", "p_value", *counts]
    index = pd.Index([name for name, *_ in lines], name="ranker")
    return pd.DataFrame(rows, index, columns).astype(dict.fromkeys(counts, "Int64"))


def _typed(p_value: float) -> str:
    return f"{p_value:.3f}" if p_value >= 0.001 else f"{p_value:.1g}"


def _typed_interval(comparison: Comparison) -> str:
    low, high = comparison.interval
    return f"{100 * comparison.confidence:g} % interval {low:+.4f} to {high:+.4f}"


@overload
def compare(
    y_true: ArrayLike,
    scores_a: Mapping[str, ArrayLike],
    scores_b: None = None,
    *,
    qid: IdsLike | None = None,
    measure: AnyMeasure | Sequence[AnyMeasure] = "ndcg@10",
    test: Test = "t",
    confidence: float = 0.95,
    n_resamples: int = 9999,
    random_state: int | np.random.RandomState | None = 0,
) -> Report: ...


@overload
def compare(
    y_true: ArrayLike,
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    *,
    qid: IdsLike | None = None,
    measure: AnyMeasure = "ndcg@10",
    test: Test = "t",
    confidence: float = 0.95,
    n_resamples: int = 9999,
    random_state: int | np.random.RandomState | None = 0,
) -> Comparison: ...


def compare(
    y_true: ArrayLike,
    scores_a: Any,
    scores_b: ArrayLike | None = None,
    *,
    qid: IdsLike | None = None,
    measure: Any = "ndcg@10",
    test: Test = "t",
    confidence: float = 0.95,
    n_resamples: int = 9999,
    random_state: int | np.random.RandomState | None = 0,
) -> Comparison | Report:
    """Compare two rankers on the same queries, or each of several with each other.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    scores_a : array-like of shape (n,), or dict of str to array-like of shape (n,)
        The scores of the first ranker, or those of two or more rankers by their names. Rows with higher
        scores rank first.
    scores_b : array-like of shape (n,), default=None
        The scores of the second ranker, unless ``scores_a`` has those of all.
    qid : array-like of shape (n,), default=None
        Query ids, as in `ndcg_score`.
    measure : str, Measure or callable, default="ndcg@10"
        The measure to compare by. For a dict of rankers, also a sequence of measures. Its ``empty_query``
        determines whether queries without a relevant row are left out, which is the default, or count as
        ties.
    test, confidence, n_resamples, random_state
        As in `compare_values`.

    Returns
    -------
    Comparison or Report
        Both means, the mean difference, its interval and its p-value. For a dict of rankers, a `Report` with
        the means of all by all measures, and a `Comparison` of each two.

    Raises
    ------
    TypeError
        If there is only one ranker, or if ``scores_b`` is given beside a dict.
    ValueError
        If labels, scores, ids or parameters cannot be read, or if fewer than two queries count.

    See Also
    --------
    compare_to_baseline : several rankers against one.

    Examples
    --------
    >>> from ranktrees import HistGBRTRegressor, LambdaMARTRanker, compare, make_ranking
    >>> X, y, qid = make_ranking(100, rows_per_query=20, noise=0.5, random_state=0, return_X_y_qid=True)
    >>> train, test = qid < 50, qid >= 50
    >>> large = LambdaMARTRanker(max_iter=50, random_state=0).fit(X[train], y[train], qid=qid[train])
    >>> small = LambdaMARTRanker(max_iter=5, random_state=0).fit(X[train], y[train], qid=qid[train])
    >>> found = compare(y[test], large.predict(X[test]), small.predict(X[test]), qid=qid[test])
    >>> found.p_value < 0.01
    True

    Several rankers by several measures:

    >>> scores = {"large": large.predict(X[test]), "small": small.predict(X[test])}
    >>> compare(y[test], scores, qid=qid[test], measure=["ndcg@10", "err"])
    50 queries
       ranker  NDCG @ 10  ERR
    a  large   0.6...ᵇ    0.7...ᵇ
    b  small   0.5...     0.6...
    a letter: better than that ranker, p < 0.05 by Student's t test, adjusted by Holm
    """
    options: dict[str, Any] = {
        "test": test,
        "confidence": confidence,
        "n_resamples": n_resamples,
        "random_state": random_state,
    }
    if isinstance(scores_a, Mapping):
        if scores_b is not None:
            raise TypeError(
                f"scores_b is {as_seen(scores_b)}, and scores_a a dict; expected the scores of all rankers "
                "in the dict: add those of scores_b to it, under a name."
            )
        return _report(y_true, scores_a, qid, _measures_of(measure), options)
    if scores_b is None:
        raise TypeError(
            "compare needs the scores of at least two rankers; expected scores_b, or a dict of scores by "
            "name: pass compare(y, {'ours': scores, 'theirs': others})."
        )
    measure = as_measure(measure)
    named = {"scores_a": scores_a, "scores_b": scores_b}
    values, _, _ = values_of_queries(y_true, named, qid, [measure])
    for (name, _), of_queries in values.items():
        _query_values(f"{measure!r} of {name}", of_queries)
    a, b = values["scores_a", measure], values["scores_b", measure]
    return _compare(a, b, measure, measure.greater_is_better, **options)


def compare_values(
    values_a: ArrayLike,
    values_b: ArrayLike,
    *,
    test: Test = "t",
    confidence: float = 0.95,
    n_resamples: int = 9999,
    random_state: int | np.random.RandomState | None = 0,
    greater_is_better: bool = True,
) -> Comparison:
    """Compare two rankers by per-query values that are known already, such as columns of `per_query_table`.

    Parameters
    ----------
    values_a, values_b : array-like of shape (n_queries,)
        One value per query for each ranker. A query whose value is NaN, NA or masked in either is left out.
    test : {"t", "bootstrap", "randomization"}, default="t"
        Student's paired t test, the paired bootstrap, or the randomization test, which flips the signs of
        differences. The interval of the last is Student's.
    confidence : float in (0, 1), default=0.95
        The probability with which the interval covers the mean difference.
    n_resamples : int, default=9999
        The number of resamples that are drawn. If there are no more ways than that to flip the signs, all of
        them are tried, and the p-value is exact.
    random_state : int, RandomState or None, default=0
        The seed of the resamples.
    greater_is_better : bool, default=True
        Whether a higher value is a win. False for errors.

    Returns
    -------
    Comparison
        Both means, the mean difference, its interval and its p-value.

    Raises
    ------
    ValueError
        If a parameter is out of its range, if the values do not belong to the same queries, or if fewer than
        two queries have both values.

    References
    ----------
    Smucker, Allan and Carterette, *A Comparison of Statistical Significance Tests for Information Retrieval
    Evaluation*, CIKM 2007. Efron and Tibshirani, *An Introduction to the Bootstrap*, 1993; Sakai, *Evaluating
    Evaluation Metrics based on the Bootstrap*, SIGIR 2006. Fisher, *The Design of Experiments*, 1935.

    Examples
    --------
    >>> a, b = [0.9, 0.8, 0.7, 0.9, 0.6], [0.7, 0.7, 0.6, 0.5, 0.6]
    >>> compare_values(a, b)
    values of 5 queries
    a        0.7800
    b        0.6200
    a - b   +0.1600, 95 % interval -0.0283 to +0.3483, p = 0.078 by Student's t test
    a is better in 4, as good in 1, worse in 0
    >>> compare_values(a, b, test="randomization").p_value  # 2 of the 16 ways to flip four signs
    0.125
    """
    a, b = _query_values("values_a", values_a), _query_values("values_b", values_b)
    if len(a) != len(b):
        raise ValueError(
            f"values_a has {len(a)} queries and values_b {len(b)}: a paired comparison needs the same "
            "queries in both"
        )
    indexes: list[Any] = [
        getattr(values, "index", None) for values in (values_a, values_b) if hasattr(values, "iloc")
    ]
    if len(indexes) == 2 and not indexes[0].equals(indexes[1]):
        raise ValueError(
            "the indexes of values_a and values_b differ; expected the same queries in the same order: pass "
            "values_b.loc[values_a.index], or arrays, which are matched by position."
        )
    resampled: dict[str, Any] = {"n_resamples": n_resamples, "random_state": random_state}
    return _compare(a, b, None, greater_is_better, test=test, confidence=confidence, **resampled)


def _compare(
    values_a: np.ndarray,
    values_b: np.ndarray,
    measure: Measure | None,
    greater_is_better: bool,
    *,
    test: str,
    confidence: float,
    n_resamples: int,
    random_state: int | np.random.RandomState | None,
    names: tuple[str, str] = ("a", "b"),
) -> Comparison:
    if not isinstance(test, str) or test not in _TESTS:
        raise ValueError(f"test must be one of {', '.join(map(repr, _TESTS))}, got {test!r}")
    if not is_whole(n_resamples, 1):
        raise ValueError(f"n_resamples must be a whole number >= 1, got {n_resamples!r}")
    with np.errstate(over="ignore"):
        differences = values_a - values_b
    if np.isinf(differences).any():
        raise ValueError(
            "the values differ by more than a float can hold; expected values on a smaller scale"
        )
    counts = ~np.isnan(differences)
    n_queries = int(np.count_nonzero(counts))
    if n_queries < 2:
        why = ": without qid= all rows are one query" if len(counts) == 1 and measure is not None else ""
        raise ValueError(
            f"a comparison needs at least two queries where both rankers have a value, got {n_queries}{why}"
        )
    a, b = values_a[counts], values_b[counts]
    steps, step = _in_steps(a, b)
    student = _student(np.where(steps == 0, 0.0, a - b), confidence)
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    low, high, p_value = _TESTS[test][1](student, np.sort(steps), step, confidence, n_resamples, seed)
    n_above, n_below = int(np.count_nonzero(steps > 0)), int(np.count_nonzero(steps < 0))
    return Comparison(
        mean_a=math.fsum(a) / n_queries,
        mean_b=math.fsum(b) / n_queries,
        difference=student.mean,
        interval=(low, high),
        p_value=p_value,
        statistic=student.statistic,
        wins=n_above if greater_is_better else n_below,
        ties=n_queries - n_above - n_below,
        losses=n_below if greater_is_better else n_above,
        n_queries=n_queries,
        n_skipped=len(counts) - n_queries,
        test=test,
        confidence=confidence,
        measure=measure,
        values_a=np.where(counts, values_a, np.nan),
        values_b=np.where(counts, values_b, np.nan),
        greater_is_better=greater_is_better,
        names=names,
    )


def _in_steps(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, float]:
    """a - b in integer steps, and the size of a step: sums are exact, and rounding differences become 0."""
    exponent = math.frexp(max(np.abs(a).max(), np.abs(b).max()))[1]
    bits = min(BITS, 61 - len(a).bit_length())
    return np.rint(np.ldexp(a - b, bits - exponent)).astype(np.int64), math.ldexp(1.0, exponent - bits)


class _Student(NamedTuple):
    mean: float
    low: float
    high: float
    statistic: float
    p_value: float


def _student(values: np.ndarray, confidence: float) -> _Student:
    """The mean of at least two values, its t interval, and the test of mean zero."""
    if not (isinstance(confidence, Real) and 0 < confidence < 1):
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}")
    n = len(values)
    unit = int(np.frexp(np.abs(values).max())[1]) + n.bit_length()  # no sum or square overflows
    values = np.ldexp(values, -unit)
    mean = min(max(math.fsum(values) / n, values.min()), values.max())  # the quotient is rounded
    error = math.sqrt(math.fsum((values - mean) ** 2) / (n - 1) / n)
    half = float(stdtrit(n - 1, (1 + confidence) / 2)) * error
    statistic = mean / error if error else math.copysign(math.inf, mean) if mean else 0.0
    p_value = float(2 * stdtr(n - 1, -abs(statistic)))
    low, mean, high = (float(np.ldexp(value, unit)) for value in (mean - half, mean, mean + half))
    return _Student(mean, low, high, statistic, p_value)


def _t_test(
    student: _Student, steps: np.ndarray, step: float, confidence: float, n_resamples: int, seed: int
) -> tuple[float, float, float]:
    return student.low, student.high, student.p_value


def _bootstrap(
    student: _Student, steps: np.ndarray, step: float, confidence: float, n_resamples: int, seed: int
) -> tuple[float, float, float]:
    negated = np.sort(-steps)
    sign = (
        -1 if negated.tolist() > steps.tolist() else 1
    )  # a and b may change places: the draws stay the same
    steps = negated if sign < 0 else steps
    sums = np.empty(n_resamples, np.int64)
    sampling.drawn_sums(seed, 0, steps, sums, effective_n_threads(None, n_resamples * len(steps)))
    sums -= steps.sum()
    ends = np.quantile(sums, [(1 - confidence) / 2, (1 + confidence) / 2]) * (step / len(steps))
    low, high = student.mean + np.sort(sign * ends)
    return float(low), float(high), (1 + _as_far(sums, steps, 3)) / (1 + n_resamples)


def _randomization(
    student: _Student, steps: np.ndarray, step: float, confidence: float, n_resamples: int, seed: int
) -> tuple[float, float, float]:
    sizes = np.sort(np.abs(steps[steps != 0]))
    every = 2 ** len(sizes) <= n_resamples + 1
    sums = np.empty(2 ** len(sizes) if every else n_resamples, np.int64)
    n_threads = effective_n_threads(None, len(sums) * len(sizes))
    sampling.flipped_sums(seed, 0, sizes, every, sums, n_threads)
    as_far = _as_far(sums, steps, 2)
    p_value = as_far / len(sums) if every else (1 + as_far) / (1 + n_resamples)
    return student.low, student.high, p_value


def _as_far(sums: np.ndarray, steps: np.ndarray, n_sums: int) -> int:
    """The number of sums that are at least as far from 0 as the sum of all steps.

    Sums that tie exactly without rounding count as ties here, too. Each step is rounded by up to a half, and
    ``n_sums`` sums of steps enter a comparison.
    """
    return int(np.count_nonzero(np.abs(sums) >= abs(steps.sum()) - n_sums * len(steps) // 2))


_TESTS: dict[str, tuple[str, Any]] = {
    "t": ("Student's t test", _t_test),
    "bootstrap": ("the bootstrap", _bootstrap),
    "randomization": ("the randomization test", _randomization),
}


def _query_values(name: str, values: Any) -> np.ndarray:
    if hasattr(values, "iloc") and values.isna().to_numpy().any():  # of pandas, whose NA is no float
        values = values.to_numpy(na_value=np.nan)
    values = numbers_in(name, values, "query")
    if values.ndim != 1 or np.isinf(values).any():
        what = f"shape {values.shape}" if values.ndim != 1 else "an infinite one"
        raise ValueError(f"{name} must hold one finite value per query, or NaN, got {what}")
    return values


# ---- several rankers against one ---------------------------------------------------------------------------


def holm(p_values: ArrayLike) -> NDArray[np.float64]:
    r"""Adjust p-values for multiple comparisons, by Holm's method.

    The i-th smallest of m p-values becomes :math:`\max_{j \le i} \min(1, (m - j + 1)\, p_{(j)})`. If all
    differences whose adjusted p-value is below 0.05 are taken to be real, the probability that even one of
    them is not is below 0.05, however the p-values depend on each other.

    Parameters
    ----------
    p_values : array-like of shape (m,)
        The p-values, from 0 to 1.

    Returns
    -------
    ndarray of float64, shape (m,)
        The adjusted p-values, in the same order.

    References
    ----------
    Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of Statistics 1979.

    Examples
    --------
    >>> holm([0.04, 0.01, 0.03])
    array([0.06, 0.03, 0.06])
    """
    p_values = column("p_values", p_values)
    if ((p_values < 0) | (p_values > 1)).any():
        raise ValueError(f"p_values must be between 0 and 1, got {p_values.min():g} to {p_values.max():g}")
    order = np.argsort(p_values, kind="stable")
    adjusted = np.empty(len(p_values))
    scaled = p_values[order] * np.arange(len(p_values), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


@dataclass(frozen=True, repr=False, kw_only=True)
class Comparisons(Tabular, Mapping[str, Comparison]):
    """The result of `compare_to_baseline`: a `Comparison` for each ranker, by its name. It prints as a table.

    Attributes
    ----------
    baseline : str
        The name of the ranker that the others are compared with.
    comparisons : dict of str to Comparison
        The comparison of each other ranker, a, with the baseline, b.
    p_values : dict of str to float
        The p-values of the comparisons, adjusted by `holm`.
    """

    baseline: str
    comparisons: dict[str, Comparison]
    p_values: dict[str, float]

    def __getitem__(self, name: str) -> Comparison:
        return self.comparisons[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.comparisons)

    def __len__(self) -> int:
        return len(self.comparisons)

    def __repr__(self) -> str:
        any_one = next(iter(self.values()))
        lines: list[tuple[str, ...]] = [("", "mean", "difference", "interval", "p", "wins", "ties", "losses")]
        lines.append((self.baseline, f"{any_one.mean_b:.4f}", *[""] * 6))
        for name, found in self.items():
            low, high = found.interval
            values = f"{found.mean_a:.4f}", f"{found.difference:+.4f}", f"{low:+.4f} to {high:+.4f}"
            queries = map(str, (found.wins, found.ties, found.losses))
            lines.append((name, *values, _typed(self.p_values[name]), *queries))
        return (
            f"{any_one.measure} of {_typed_queries(any_one)}, against {self.baseline}\n"
            f"{aligned(lines)}\n"
            f"{100 * any_one.confidence:g} % intervals; p by {_TESTS[any_one.test][0]}, adjusted by Holm"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return the comparisons as a table with a row for each ranker.

        Returns
        -------
        DataFrame
            As `Comparison.to_frame`, with the baseline first. The ``p_value`` is adjusted.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        any_one = next(iter(self.values()))
        others: Any = [(name, found.mean_a, found, self.p_values[name]) for name, found in self.items()]
        return _frame_of([(self.baseline, any_one.mean_b, None, None), *others])

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Plot the mean difference of each ranker from the baseline, with its interval.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to plot on. If None, a new figure is created.
        **style
            Keyword arguments passed to `matplotlib.axes.Axes.errorbar`, which draws the intervals.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = axes_or_new(ax)
        places = np.arange(len(self))
        differences = np.array([found.difference for found in self.values()])
        intervals = np.array([found.interval for found in self.values()])
        ends = np.abs(intervals.T - differences)
        drawn: dict[str, Any] = {"fmt": "o", "color": "C0", "capsize": 3} | style
        ax.axvline(0, color="grey", linewidth=0.8)
        ax.errorbar(differences, places, xerr=ends, **drawn)
        ax.set_yticks(places, list(self))
        ax.set_ylim(len(self) - 0.5, -0.5)
        any_one = next(iter(self.values()))
        interval = f"{100 * any_one.confidence:g} % interval"
        ax.set_xlabel(f"{any_one.measure}: over {self.baseline}, {interval}")
        return ax


def compare_to_baseline(
    y_true: ArrayLike,
    scores: Mapping[str, ArrayLike],
    baseline: str,
    *,
    qid: IdsLike | None = None,
    measure: AnyMeasure = "ndcg@10",
    test: Test = "t",
    confidence: float = 0.95,
    n_resamples: int = 9999,
    random_state: int | np.random.RandomState | None = 0,
) -> Comparisons:
    """Compare several rankers with a baseline, on the same queries.

    Among many differences, a large one is likely to be found by chance. So the p-values are adjusted, see
    `holm`. The intervals are not.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels.
    scores : dict of str to array-like of shape (n,)
        The scores of each ranker, the baseline included, by the name of the ranker.
    baseline : str
        The name of the ranker that the others are compared with.
    qid, measure
        As in `compare`.
    test, confidence, n_resamples, random_state
        As in `compare_values`.

    Returns
    -------
    Comparisons
        A `Comparison` of each ranker with the baseline.

    Raises
    ------
    ValueError
        If ``scores`` does not hold the baseline and at least one other ranker, and in the same cases as
        `compare`.

    Examples
    --------
    >>> from ranktrees import HistGBRTRegressor, LambdaMARTRanker, compare_to_baseline, make_ranking
    >>> X, y, qid = make_ranking(100, rows_per_query=20, noise=0.5, random_state=0, return_X_y_qid=True)
    >>> train, test = qid < 50, qid >= 50
    >>> models = {
    ...     "regression": HistGBRTRegressor(max_iter=50, random_state=0),
    ...     "five trees": LambdaMARTRanker(max_iter=5, random_state=0),
    ...     "fifty trees": LambdaMARTRanker(max_iter=50, random_state=0),
    ... }
    >>> for model in models.values():
    ...     model = model.fit(X[train], y[train], qid=qid[train])
    >>> scores = {name: model.predict(X[test]) for name, model in models.items()}
    >>> found = compare_to_baseline(y[test], scores, "five trees", qid=qid[test])
    >>> found["fifty trees"].difference > 0
    True
    """
    if not isinstance(scores, Mapping) or baseline not in list(scores) or len(scores) < 2:
        seen = ", ".join(map(repr, scores)) if isinstance(scores, Mapping) else type(scores).__name__
        raise ValueError(
            f"scores must be a dict with the scores of the baseline, {baseline!r}, and of at least one other "
            f"ranker, got {seen}"
        )
    options: dict[str, Any] = {
        "test": test,
        "confidence": confidence,
        "n_resamples": n_resamples,
        "random_state": random_state,
    }
    measure = as_measure(measure)
    against = scores[baseline]
    comparisons = {
        name: compare(y_true, of_rows, against, qid=qid, measure=measure, **options)
        for name, of_rows in scores.items()
        if name != baseline
    }
    comparisons = {name: replace(found, names=(name, baseline)) for name, found in comparisons.items()}
    adjusted = holm([found.p_value for found in comparisons.values()])
    p_values = dict(zip(comparisons, adjusted.tolist(), strict=True))
    return Comparisons(baseline=baseline, comparisons=comparisons, p_values=p_values)


# ---- each of several rankers against each other ------------------------------------------------------------

# Rankers are called by letters. There is no raised q.
LETTERS = dict(zip("abcdefghijklmnoprstuvwxyz", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ", strict=True))


@dataclass(frozen=True, repr=False, kw_only=True)
class Report(Tabular):
    """The result of `compare` for several rankers: their means, and which differences are beyond chance.

    It prints as tables in papers do. Each ranker has a letter, and a letter behind a mean says that the mean
    is better than that of the ranker with this letter, with a p-value below 0.05. A query counts if all
    rankers have a value for it.

    Attributes
    ----------
    names : tuple of str
        The rankers.
    measures : tuple of Measure
        The measures.
    means : ndarray of float64, shape (n_rankers, n_measures)
        The means.
    comparisons : dict of (Measure, str, str) to Comparison
        For each measure, the comparison of each ranker with each later one.
    p_values : dict of (Measure, str, str) to float
        Their p-values, adjusted by `holm` among those of the same measure.

    Examples
    --------
    >>> from ranktrees import compare
    >>> y, qid = [1, 0, 0, 1, 1, 0, 0, 1], [1, 1, 2, 2, 3, 3, 4, 4]
    >>> scores = {"good": y, "constant": [0] * 8, "bad": [-label for label in y]}
    >>> report = compare(y, scores, qid=qid, measure=["p@1", "rr"])
    >>> report
    4 queries
       ranker    P @ 1     RR
    a  good      1.0000ᵇᶜ  1.0000ᵇᶜ
    b  constant  0.5000ᶜ   0.7500ᶜ
    c  bad       0.0000    0.5000
    a letter: better than that ranker, p < 0.05 by Student's t test, adjusted by Holm
    >>> report.comparisons[as_measure("rr"), "good", "bad"].difference
    0.5
    """

    names: tuple[str, ...]
    measures: tuple[Measure, ...]
    means: NDArray[np.float64] = field(compare=False)
    comparisons: dict[tuple[Measure, str, str], Comparison]
    p_values: dict[tuple[Measure, str, str], float]

    def better_than(self, name: str, measure: AnyMeasure | None = None, max_p: float = 0.05) -> list[str]:
        """Return the rankers than which one is better beyond chance.

        Parameters
        ----------
        name : str
            The ranker.
        measure : str or Measure, default=None
            The measure. If None, the first of the report.
        max_p : float, default=0.05
            The p-value below which a difference counts.

        Returns
        -------
        list of str
            In the order of the report.
        """
        measure = self.measures[0] if measure is None else as_measure(measure)
        found = []
        for other in self.names:
            for key, is_first in (((measure, name, other), True), ((measure, other, name), False)):
                if key in self.comparisons and self.p_values[key] < max_p:
                    comparison = self.comparisons[key]
                    found += [other] * (comparison.difference != 0 and comparison._is_better == is_first)
        return found

    def to_frame(self, max_p: float = 0.05) -> pd.DataFrame:
        """Return the report as a table, as it prints.

        Its ``to_markdown`` and ``to_html`` are those of pandas; for LaTeX, see `to_latex`. The numbers
        themselves are in ``means``.

        Parameters
        ----------
        max_p : float, default=0.05
            The p-value below which a difference is marked.

        Returns
        -------
        DataFrame of str
            Indexed by the letter, with the columns ``ranker`` and one for each measure.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        columns = ["ranker", *map(repr, self.measures)]
        return pandas_for("to_frame").DataFrame(self._cells(max_p), list(LETTERS)[: len(self.names)], columns)

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Plot the mean of each ranker by each measure, with its t interval over the queries.

        Intervals may overlap where `better_than` finds a difference beyond chance: the rankers are compared
        on the same queries, and what these have in common widens each interval, but not that of a difference.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to plot on. If None, a new figure is created.
        **style
            Keyword arguments passed to `matplotlib.axes.Axes.errorbar`, which draws the intervals.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = axes_or_new(ax)
        confidence = next(iter(self.comparisons.values())).confidence
        places = np.arange(len(self.names))
        n_measures = len(self.measures)
        for number, measure in enumerate(self.measures):
            found = [mean_interval(values, confidence) for values in self._values(measure)]
            means, low, high = (
                np.array([getattr(each, end) for each in found]) for end in ("mean", "low", "high")
            )
            drawn: dict[str, Any] = {"fmt": "o", "color": f"C{number}", "capsize": 3, "label": repr(measure)}
            apart = (number - (n_measures - 1) / 2) * 0.6 / n_measures
            ax.errorbar(means, places + apart, xerr=[means - low, high - means], **(drawn | style))
        ax.set_yticks(places, self.names)
        ax.set_ylim(len(places) - 0.5, -0.5)
        what = f"{100 * confidence:g} % interval"
        if n_measures == 1:
            ax.set_xlabel(f"{self.measures[0]!r}, {what}")
        else:
            ax.set_xlabel(f"mean, {what}")
            ax.legend()
        return ax

    def _values(self, measure: Measure) -> list[NDArray[np.float64]]:
        """The values of the queries for each ranker."""
        first, *others = self.names
        found = [self.comparisons[measure, first, other] for other in others]
        return [found[0].values_a, *(each.values_b for each in found)]

    def to_latex(self, max_p: float = 0.05, **options: Any) -> str:
        r"""Return the report as a table of LaTeX.

        Parameters
        ----------
        max_p : float, default=0.05
            The p-value below which a difference is marked.
        **options
            Keyword arguments passed to `pandas.io.formats.style.Styler.to_latex`, such as ``caption`` and
            ``label``. Rules are those of booktabs (``hrules=True``), unless they are given.

        Returns
        -------
        str

        Raises
        ------
        ImportError
            If pandas or jinja2, which it needs for this, is not installed.
        """
        frame = self.to_frame(max_p)
        frame.iloc[:, 1:] = [line[1:] for line in self._cells(max_p, "$^{{{}}}$".format)]
        names = frame.columns[:1].tolist()
        styled = frame.style.format_index(escape="latex", axis="columns").format(escape="latex", subset=names)
        return str(styled.to_latex(**({"hrules": True} | options)))

    def __repr__(self) -> str:
        lines = [("", "ranker", *map(repr, self.measures))]
        lines += [(letter, *cells) for letter, cells in zip(LETTERS, self._cells(0.05), strict=False)]
        of_measures = {measure: _typed_queries(found) for (measure, *_), found in self.comparisons.items()}
        queries = "; ".join(f"{measure}: {text}" for measure, text in of_measures.items())
        if len(set(of_measures.values())) == 1:
            queries = next(iter(of_measures.values()))
        test = _TESTS[next(iter(self.comparisons.values())).test][0]
        table = aligned(lines, len(lines[0]))
        return f"{queries}\n{table}\na letter: better than that ranker, p < 0.05 by {test}, adjusted by Holm"

    def _cells(self, max_p: float, raised: Any = None) -> list[tuple[str, ...]]:
        """For each ranker, its name and its means, with the letters of those it is better than."""
        letter_of = dict(zip(self.names, LETTERS, strict=False))
        raised = raised or (lambda letters: "".join(LETTERS[letter] for letter in letters))

        def cell(name: str, measure: Measure, mean: float) -> str:
            letters = "".join(letter_of[other] for other in self.better_than(name, measure, max_p))
            return f"{mean:.4f}" + (raised(letters) if letters else "")

        return [
            (name, *map(cell, [name] * len(means), self.measures, means))
            for name, means in zip(self.names, self.means, strict=True)
        ]


def _report(
    y_true: ArrayLike,
    scores: Mapping[str, ArrayLike],
    qid: IdsLike | None,
    measures: Sequence[Measure],
    options: Mapping[str, Any],
) -> Report:
    if not 2 <= len(scores) <= len(LETTERS):
        raise ValueError(
            f"scores_a has {len(scores)} rankers; expected from 2 to {len(LETTERS)}: to compare "
            "more, choose a baseline, and call compare_to_baseline."
        )
    if not measures:
        raise ValueError("measure is empty; expected one or more, such as 'ndcg@10'.")
    named = {f"scores_a[{name!r}]": of_rows for name, of_rows in scores.items()}
    values, _, _ = values_of_queries(y_true, named, qid, measures)
    comparisons: dict[tuple[Measure, str, str], Comparison] = {}
    p_values: dict[tuple[Measure, str, str], float] = {}
    means = []
    for measure in measures:
        table = np.array([_query_values(f"{measure!r} of {name}", values[name, measure]) for name in named])
        table[:, np.isnan(table).any(axis=0)] = np.nan
        found = {
            (measure, a, b): _compare(
                values_a, values_b, measure, measure.greater_is_better, names=(a, b), **options
            )
            for (a, values_a), (b, values_b) in combinations(zip(scores, table, strict=True), 2)
        }
        comparisons |= found
        adjusted = holm([each.p_value for each in found.values()])
        p_values |= dict(zip(found, adjusted.tolist(), strict=True))
        of_first = list(found.values())[: len(scores) - 1]
        means.append([of_first[0].mean_a, *(each.mean_b for each in of_first)])
    return Report(
        names=tuple(scores),
        measures=tuple(measures),
        means=np.array(means).T,
        comparisons=comparisons,
        p_values=p_values,
    )
