r"""The exact optimal combination of two rankers: the weight that makes a measure as high as possible.

As the weight of one score grows, the ranking of a query changes only where the scores of two rows cross. A
measure of the ranking can change only there as well, and is constant in between. ::

    score
      |  row 1 \     / row 2              measure
      |         \   /                        |        _____
      |  row 3 --\-/---                      |   ____|     |___
      |           X                          |  |              |__
      +----------------- weight              +-------------------- weight

`optimal_weight` visits all crossings of all queries and adds up the changes, so it sees every value that the
measure takes. `refine_weights` does the same for each tree of an ensemble, with all other trees held fixed.

*Exact* means that, for every floating-point number the weight can be, the result is the one that arithmetic
without rounding would give. Which of two crossings comes first, and whether rows are tied at a weight, is
decided without rounding. The contributions of the queries are added up as integers. Nothing depends on the
number of threads or on the order of the queries.

Wu, Burges, Svore and Gao, *Adapting boosting for information retrieval measures*, Information Retrieval 13,
2010, section 4.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ranktrees._core.evaluation import combining
from ranktrees._core.measures import ranking
from ranktrees.evaluation.own_models import fitted_trees
from ranktrees.measures import Measure, as_measure
from ranktrees.measures.base import query_weights
from ranktrees.measures.compiled import CompiledMeasure
from ranktrees.measures.rows import arranged, checked_rows, column
from ranktrees.model.ensemble import Ensemble
from ranktrees.rows import check_rows, find_query_of_rows, warn_of_order
from ranktrees.support.listed import in_order
from ranktrees.support.numeric import is_real, is_whole
from ranktrees.support.parallel import effective_n_threads
from ranktrees.support.plotting import axes_or_new
from ranktrees.support.tables import Tabular, pandas_for

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.measures.named import AnyMeasure
    from ranktrees.support.annotations import IdsLike, RowsLike

__all__ = ["WeightCurve", "optimal_weight", "refine_weights"]

FORMS = {"convex": (0.0, 1.0), "additive": (0.1, 5.0)}  # each form with its default interval

# Scores are scaled so that the largest is about 2^900, and scores 2^900 times smaller than that count as 0.
# Then no product of a weight and a difference leaves the range of floats.
EXPONENT = 900
HIGHEST_WEIGHT = 1e30

WEIGHTS_OF_TREES = "the weights that a tree may get"  # what messages call the numbers of an interval

# The number of steps by which sums of rounded changes may be off: 1e-15 of the highest value. Smaller
# differences do not count.
ROUNDED = 1 << 11

# A weight that is chosen for being near another one stays this part of its stretch away from crossings.
APART = 1000

# Weights are swept in strips that have about this many changes.
AT_ONCE = 1 << 21


@dataclass(frozen=True, eq=False)
class WeightCurve(Tabular):
    """A measure as a function of the weight, and its highest point; see `optimal_weight`.

    ::

        weights    w_0        w_1     w_2            w_3
        values      |  v_0    |  v_1  |     v_2      |          between two weights
        values_at  at_0      at_1    at_2           at_3        at a weight, where rows may be tied

    Attributes
    ----------
    weight : float
        The best weight.
    value : float
        The value of the measure at the best weight.
    weights : ndarray of float64, shape (n + 1,)
        The weights at which the measure changes, in rising order. The first and the last are the ends of the
        interval.
    values : ndarray of float64, shape (n,)
        The value of the measure between each weight and the next.
    values_at : ndarray of float64, shape (n + 1,)
        The value of the measure at each weight.
    form : {"convex", "additive"}
        How the scores are combined.
    measure : Measure
        The measure.
    """

    weight: float
    value: float
    weights: NDArray[np.float64]
    values: NDArray[np.float64]
    values_at: NDArray[np.float64]
    form: str
    measure: Measure

    def __repr__(self) -> str:
        return f"WeightCurve(weight={self.weight:.6g}, value={self.value:.6g}, {len(self.values)} pieces)"

    def __call__(self, weight: ArrayLike) -> Any:
        """Return the value of the measure at any weights of the interval.

        Parameters
        ----------
        weight : float or array-like of float
            One weight or several.

        Returns
        -------
        float or ndarray of float64
            The value at each weight.

        Raises
        ------
        ValueError
            If a weight lies outside the interval.
        """
        weight = np.asarray(weight, np.float64)
        low, high = self.weights[[0, -1]]
        if not ((weight >= low) & (weight <= high)).all():
            raise ValueError(f"weight must be from {low:g} to {high:g}, the interval of the curve")
        behind = np.searchsorted(self.weights, weight, side="right")
        at = self.weights[behind - 1] == weight
        values = np.append(self.values, np.nan)
        return np.where(at, self.values_at[behind - 1], values[behind - 1])[()]

    def to_frame(self) -> pd.DataFrame:
        """Return the curve as a table with a row for each weight at which the measure changes.

        Returns
        -------
        DataFrame
            The columns are ``weight``, ``at`` (the value of the measure at the weight) and ``behind`` (its
            value from there to the next weight, missing for the last).

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        behind = np.append(self.values, np.nan)
        columns = {"weight": self.weights, "at": self.values_at, "behind": behind}
        return pandas_for("to_frame").DataFrame(columns)

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Plot the curve, with a dot at the best weight.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to plot on. If None, a new figure is created.
        **style
            Keyword arguments passed to `matplotlib.axes.Axes.stairs`, which draws the line.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        """
        ax = axes_or_new(ax)
        lines = ax.stairs(self.values, self.weights, baseline=None, **style)
        ax.plot([self.weight], [self.value], "o", color=lines.get_edgecolor())
        ax.set_xlabel("weight of b" + (" in (1 - w) a + w b" if self.form == "convex" else " in a + w b"))
        ax.set_ylabel(repr(self.measure))
        return ax


def optimal_weight(
    y_true: ArrayLike,
    scores_a: ArrayLike,
    scores_b: ArrayLike,
    *,
    qid: IdsLike | None = None,
    measure: AnyMeasure = "ndcg@10",
    form: Literal["convex", "additive"] = "convex",
    interval: Sequence[float] | None = None,
    near: float | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> WeightCurve:
    r"""Find the weight of b in a combination with a at which a measure is highest, by following all weights.

    The scores of the combination are

    .. math:: s(w) = (1 - w)\,a + w\,b \quad\text{(convex)} \qquad\text{or}\qquad
              s(w) = a + w\,b \quad\text{(additive)}.

    The best weight is the middle of the widest stretch on which the measure is highest (to 1e-15, since sums
    are rounded). Of equally wide stretches the lowest is taken. With ``near``, the best weight is the one
    nearest to that number instead, a thousandth of its stretch away from any crossing. If the measure is
    highest only at a single weight, where rows are tied or at an end of the interval, then that weight is the
    best one.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        Labels. A pandas Series whose index has a level named "qid" supplies the query ids as well.
    scores_a, scores_b : array-like of shape (n,)
        Finite scores of the two rankers; rows with higher scores rank first. Scores :math:`2^{900}` times
        smaller than the largest count as 0.
    qid : array-like of shape (n,), default=None
        Query ids of any hashable type, in any order. If None and `y_true` has no ids either, all rows are one
        query.
    measure : str or Measure, default="ndcg@10"
        Any measure that depends only on the order of the rows. The measures of `ranktrees.measures` are
        compiled. A measure of your own is called for each order of each query, and its values are kept for
        the whole interval.
    form : {"convex", "additive"}, default="convex"
        How the scores are combined.
    interval : pair of float, default=None
        The lowest and the highest weight. If None, (0, 1) in the convex form, where no weight outside is
        allowed, and (0.1, 5) in the additive form, as in the paper on web data.
    near : float, default=None
        Which of all weights with the highest value is the best. If None, it is the middle of the widest
        stretch, which is far from other rankings. A number is a weight to keep unless another one is better,
        such as 0 for a alone. If all rows tie in a, every weight above 0 ranks them as b does, and the middle
        of the interval says nothing about b.
    sample_weight : array-like of shape (n,), default=None
        Weights >= 0 of the rows. The weight of a query is the mean of the weights of its rows.
    n_jobs : int, default=None
        The number of threads, which share the queries; see
        `ranktrees.support.parallel.effective_n_threads`. The
        result does not depend on it.

    Returns
    -------
    WeightCurve
        Its ``weight``, ``value``, ``weights``, ``values`` and ``values_at`` are exact up to a final rounding,
        the values to about 1e-15. Scores that a program adds up are rounded, so rows whose scores differ by
        no more than that rounding may come in another order.

    Raises
    ------
    ValueError
        If the arrays do not hold equally many numbers, if the interval is not one, if ``near`` is not a
        finite number, if the measure depends on how far the scores are apart (RMSE), or if it is not defined
        on any query of positive weight.

    Notes
    -----
    A query of n rows takes O(n) memory and O(n^2 log n) time in the worst case, whether the measure takes the
    expectation over ties or orders tied rows in any other way: each crossing of two rows that have different
    labels and lie above the cutoff changes the measure by the difference between them. Weights are swept in
    strips, so that about two million changes are held at a time. The curve itself takes 24 bytes for each
    weight at which the measure changes.

    References
    ----------
    Wu, Burges, Svore and Gao, *Adapting boosting for information retrieval measures*, Information Retrieval
    13, 2010, section 4.

    Examples
    --------
    >>> from ranktrees.evaluation import optimal_weight
    >>> y_true, a, b = [1, 0, 2], [3.0, 2.0, 1.0], [0.0, 1.0, 3.0]
    >>> curve = optimal_weight(y_true, a, b)
    >>> curve.weights.round(3)
    array([0.   , 0.333, 0.4  , 0.5  , 1.   ])
    >>> curve.values.round(3)
    array([0.689, 0.797, 1.   , 0.964])
    >>> round(curve.weight, 3), curve.value
    (0.45, 1.0)
    >>> optimal_weight([1, 0], [0.0, 0.0], [1.0, 0.0], form="additive", near=1).weight
    1.0
    """
    measure = as_measure(measure)
    interval = checked_interval(form, interval)
    if not (near is None or (is_real(near) and math.isfinite(near))):
        raise ValueError(f"near={near!r}; expected the weight to stay near, a finite number, or None.")
    warn_of_order(
        {
            "y_true": y_true,
            "scores_a": scores_a,
            "scores_b": scores_b,
            "qid": qid,
            "sample_weight": sample_weight,
        }
    )
    a, b = column("scores_a", scores_a), column("scores_b", scores_b)
    given = {"scores_a": a, "scores_b": b}
    labels, order, offsets, row_weights = checked_rows(y_true, given, qid, sample_weight)
    measure.check_labels(labels, "y_true")
    rows = labels, arranged(order, a), arranged(order, b), offsets, row_weights
    return weight_curve_of(measure, *rows, form, interval, effective_n_threads(n_jobs), near)


def checked_interval(
    form: str, interval: Any, name: str = "interval", weights: Any = None
) -> tuple[float, float]:
    """Return the checked ends of an interval of `weights`, which messages call `name`."""
    if not isinstance(form, str) or form not in FORMS:
        raise ValueError(f"form must be 'convex' or 'additive', got {form!r}")
    least, most = (0.0, 1.0) if form == "convex" else (-HIGHEST_WEIGHT, HIGHEST_WEIGHT)
    weights = weights or f"the weights in the {form} form"
    refusal = ValueError(
        f"{name}={interval!r}; expected the lowest and the highest of {weights}, "
        f"{least:g} <= lowest < highest <= {most:g}: pass a pair, such as {FORMS[form]}."
    )
    try:
        low, high = FORMS[form] if interval is None else map(float, in_order(interval, name))
    except (TypeError, ValueError) as error:
        raise refusal from error
    if not least <= low < high <= most:
        raise refusal
    return low, high


def weight_curve_of(
    measure: Measure,
    labels: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    offsets: np.ndarray,
    row_weights: np.ndarray | None,
    form: str,
    interval: tuple[float, float],
    n_threads: int,
    near: float | None = None,
) -> WeightCurve:
    """Return the curve of rows that are grouped by query."""
    shares = shares_of_queries(measure, labels, a, offsets, row_weights, n_threads)
    largest = max(np.abs(a).max(), np.abs(b).max())
    a, b = (_scaled(scores, EXPONENT - math.frexp(largest)[1]) for scores in (a, b))
    kind = _CompiledSweep if type(measure).per_query is CompiledMeasure.per_query else _PythonSweep
    sweep = kind(measure, labels, a, b, offsets, shares, form == "convex", n_threads)
    weights, at, behind = _all_strips(sweep, *interval)
    between = behind[:-1]
    sign = 1 if measure.greater_is_better else -1
    weight, best = _highest(weights, sign * between, sign * at, near)
    unit = sweep.unit
    return WeightCurve(weight, sign * best * unit, weights, between * unit, at * unit, form, measure)


def shares_of_queries(
    measure: Measure,
    labels: np.ndarray,
    scores: np.ndarray,
    offsets: np.ndarray,
    row_weights: np.ndarray | None,
    n_threads: int,
) -> np.ndarray:
    """float64[n_queries]: the share of each query in the mean; refuses a measure that has no curve."""
    if not measure.by_order:
        raise ValueError(
            f"measure is {measure!r}, which depends on the distances between scores; expected a measure of "
            "their order, such as 'ndcg@10'"
        )
    weights = np.ones(len(offsets) - 1) if row_weights is None else query_weights(row_weights, offsets)
    weights[np.isnan(measure.per_query(labels, scores, offsets, n_threads=n_threads))] = 0.0
    total = math.fsum(weights)
    if total == 0:
        raise ValueError(
            f"measure {measure!r} is not defined on any query of positive weight (see empty_query); expected "
            "queries with relevant rows"
        )
    return weights / total


def _highest(
    weights: np.ndarray, between: np.ndarray, at: np.ndarray, near: float | None = None
) -> tuple[float, int]:
    """The best weight, mid in the widest best stretch or nearest to `near`; its value in steps."""
    wide = np.nextafter(weights[:-1], np.inf) < weights[1:]  # some weight is between the two
    enough = max(int(at.max()), int(between[wide].max(initial=at.max()))) - ROUNDED
    good, joined = ~wide | (between >= enough), at[1:-1] >= enough
    lows = weights[:-1][good & ~np.append(False, good[:-1] & joined)]
    highs = weights[1:][good & ~np.append(good[1:] & joined, False)]
    stretches = np.nextafter(lows, np.inf) < highs
    lows, highs = lows[stretches], highs[stretches]
    if not len(lows):
        points = weights[at >= enough]
        best = float(points[0 if near is None else np.argmin(np.abs(points - near))])
    elif near is None:
        widest = int(np.argmax(highs - lows))
        low, high = float(lows[widest]), float(highs[widest])
        middle = low + (high - low) / 2
        best = middle if low < middle < high else math.nextafter(low, high)
    else:
        room = (highs - lows) / APART
        may_end = at[[0, -1]] >= enough  # at the ends of the interval, where no rows need cross
        first = np.maximum(lows + room, np.nextafter(lows, np.inf))
        last = np.minimum(highs - room, np.nextafter(highs, -np.inf))
        first = np.where(may_end[0] & (lows == weights[0]), lows, first)
        last = np.where(may_end[1] & (highs == weights[-1]), highs, last)
        nearest = np.clip(near, first, last)
        best = float(nearest[np.argmin(np.abs(nearest - near))])
    behind = int(np.searchsorted(weights, best, side="right")) - 1
    return best, int(at[behind] if weights[behind] == best else between[behind])


def _scaled(scores: np.ndarray, exponent: int) -> np.ndarray:
    scores = np.ldexp(scores, exponent)
    return np.where(np.abs(scores) < 1.0, 0.0, scores)


# ---- the weights of trees ----------------------------------------------------------------------------------


def refine_weights(
    model: Any,
    X: RowsLike,
    y: ArrayLike,
    *,
    qid: IdsLike | None = None,
    measure: AnyMeasure = "ndcg@10",
    interval: Sequence[float] | None = None,
    n_repeats: int = 1,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
) -> Ensemble:
    r"""Return an ensemble whose trees are weighted anew, so that a measure is higher on these rows.

    The trees are visited from the first to the last. For each tree the best weight, with all other trees held
    fixed, is found as in `optimal_weight`, in the form :math:`a + w\,b`: :math:`a` is the score without the
    tree and :math:`b` what the tree adds to it. Of equally good weights, the one nearest to 1, the present
    weight, is taken. It is kept if the measure rises. So the measure never falls on these rows, and each pass
    over the trees can only raise it.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble. It stays as it is.
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        Rows, as for the ``predict`` of the model.
    y : array-like of shape (n_rows,)
        Labels. A pandas Series whose index has a level named "qid" supplies the query ids as well.
    qid, measure, sample_weight, n_jobs
        As for `optimal_weight`.
    interval : pair of float, default=None
        The lowest and the highest weight that a tree may get in a pass, relative to the weight it has at that
        point, which is 1. If None, (0.1, 5).
    n_repeats : int, default=1
        The maximum number of passes over the trees. A pass that changes nothing is the last.

    Returns
    -------
    Ensemble
        The same trees with other values, also of an estimator: ``EnsembleRanker(refined)`` predicts, ranks
        and scores by them. Finding them takes 8 bytes of memory per row and tree, or 12 if the rows of a
        query are not together.

    Raises
    ------
    TypeError
        If the model is not one of this library that is made of trees.
    ValueError
        As for `optimal_weight`; if ``n_repeats`` is below 1; or if the trees are not the whole model, because
        boosting started from a model of another kind.

    References
    ----------
    Wu, Burges, Svore and Gao, *Adapting boosting for information retrieval measures*, Information Retrieval
    13, 2010, section 4.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> from ranktrees.evaluation import refine_weights
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(X, y, qid=qid)
    >>> refined = refine_weights(ranker, X, y, qid=qid)
    >>> before, after = (as_measure("ndcg@10")(y, model.predict(X), qid=qid) for model in (ranker, refined))
    >>> after >= before
    True
    """
    model = fitted_trees(model)
    if not is_whole(n_repeats, 1):
        raise ValueError(f"n_repeats must be a whole number >= 1, got {n_repeats!r}")
    measure, n_threads = as_measure(measure), effective_n_threads(n_jobs)
    interval = checked_interval("additive", interval, weights=WEIGHTS_OF_TREES)
    ensemble = Ensemble.joined([model._whole_ensemble("find the weight of the whole model")])
    leaves = ensemble.leaves(check_rows(model, X, reset=False), n_jobs=n_threads)
    warn_of_order({"X": X, "y": y, "qid": qid, "sample_weight": sample_weight})
    qid = find_query_of_rows(len(leaves), {"qid": qid}, {"y": y, "X": X})
    labels, order, offsets, weights = checked_rows(y, {"X": leaves}, qid, sample_weight)
    leaves = np.asfortranarray(arranged(order, leaves))
    if not len(ensemble):
        return ensemble
    values = np.split(ensemble.nodes["value"].copy(), ensemble.tree_offsets[1:-1])

    def scores_by(values: list[np.ndarray]) -> np.ndarray:
        """Scores, summed up in the order in which `Ensemble.predict` adds."""
        scores = np.full(len(labels), ensemble.base)
        for of_tree, leaf in zip(values, leaves.T, strict=True):
            scores += of_tree[leaf]
        return scores

    scores = scores_by(values)
    prepared = measure.prepare(labels, offsets, weights, n_threads)
    value = prepared.signed_mean(scores)
    for _ in range(n_repeats):
        before = value
        for tree, leaf in enumerate(leaves.T):
            tree_scores = values[tree][leaf]
            others = scores - tree_scores
            curve = weight_curve_of(
                measure,
                labels,
                others,
                tree_scores,
                offsets,
                weights,
                "additive",
                interval,
                n_threads,
                near=1.0,
            )
            found = [*values[:tree], curve.weight * values[tree], *values[tree + 1 :]]
            found_scores = scores_by(found)
            new = prepared.signed_mean(found_scores)
            if new > value:
                values, scores, value = found, found_scores, new
        if value == before:
            break
    nodes = ensemble.nodes.copy()
    nodes["value"] = np.concatenate(values)
    return ensemble._replace(nodes=nodes)


# ---- what changes where, in whole steps --------------------------------------------------------------------


class _CompiledSweep:
    """How a compiled measure of all queries changes, strip by strip of the weights."""

    def __init__(
        self,
        measure: Any,
        labels: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        offsets: np.ndarray,
        shares: np.ndarray,
        convex: bool,
        n_threads: int,
    ) -> None:
        prepared, sizes = measure.prepare(labels, offsets, None, n_threads), np.diff(offsets)
        self.n_pairs = int((sizes * (sizes - 1)).sum()) // 2
        self.empty = 0.0 if isinstance(measure.empty_query, str) else measure.empty_query
        highest = max(1.0, abs(self.empty))
        if measure.formula == ranking.Formula.DCG:
            with np.errstate(over="ignore"):
                best = np.add.reduceat(prepared.gains, offsets[:-1]).max() * prepared.discounts.max()
            highest = max(highest, best)
        self.unit = _step(highest, measure)
        self.scales = shares / self.unit
        self.sweeper = combining.Sweeper(
            combining.Combined(a, b, offsets, convex), self.scales, n_threads, prepared
        )

    def changes(self, start: float, last: float, opening: bool) -> tuple[np.ndarray, int]:
        """Return the changes from `start` to `last`, and the value in steps before the first change."""
        firsts = np.empty(len(self.scales), np.int64)
        changes = self.sweeper.sweep(start, last, opening, firsts)
        undefined = firsts == combining.UNDEFINED
        firsts[undefined] = np.floor(self.empty * self.scales[undefined] + 0.5)
        return changes, int(firsts.sum())


class _PythonSweep:
    """How a measure written in Python changes, which is called for each order of each query."""

    n_pairs = 0  # so that one strip covers all orders: they are known anyway

    def __init__(
        self,
        measure: Measure,
        labels: np.ndarray,
        a: np.ndarray,
        b: np.ndarray,
        offsets: np.ndarray,
        shares: np.ndarray,
        convex: bool,
        n_threads: int,
    ) -> None:
        self.measure, self.labels = measure, labels
        self.queries = []
        for (first, stop), share in zip(itertools.pairwise(offsets), shares, strict=True):
            rows = slice(first, stop)
            if share > 0:
                combined = combining.Combined(a[rows], b[rows], np.array([0, stop - first]), convex)
                self.queries.append((rows, share, combined))
        self.unit: Any = None

    def changes(self, start: float, last: float, opening: bool) -> tuple[np.ndarray, int]:
        """As in `_CompiledSweep`, for all weights at once."""
        queries = []
        for rows, share, combined in self.queries:
            every = combining.Sweeper(combined, np.ones(1), n_threads=1)
            weights = np.unique(every.sweep(start, last, True, np.empty(1, np.int64))["weight"]).tolist()
            values = [self._value(rows, combined, start, True)]
            for weight in weights:
                values += [self._value(rows, combined, weight, behind) for behind in (False, True)]
            queries.append((weights, np.array(values), share))
        self.unit = _step(max(np.abs(values).max() for _, values, _ in queries) or 1.0, self.measure)
        steps = [
            np.floor(values * (share / self.unit) + 0.5).astype(np.int64) for _, values, share in queries
        ]
        changes = np.empty(sum(len(weights) for weights, _, _ in queries), combining.CHANGE)
        changes["weight"] = np.concatenate([weights for weights, _, _ in queries])
        changes["here"] = np.concatenate([values[1::2] - values[:-1:2] for values in steps])
        changes["behind"] = np.concatenate([values[2::2] - values[:-1:2] for values in steps])
        return changes, sum(int(values[0]) for values in steps)

    def _value(self, rows: slice, combined: Any, weight: float, behind: bool) -> float:
        places = np.empty(rows.stop - rows.start, np.int64)
        combined.order_at(0, weight, behind, places)
        offsets = np.array([0, len(places)])
        value = float(self.measure.per_query(self.labels[rows], places.astype(np.float64), offsets)[0])
        if math.isnan(value):
            raise ValueError(
                f"measure {self.measure!r} is not defined for a query at weight {weight:g}, but is at "
                "another weight; expected NaN to depend on the labels only"
            )
        return value


def _step(highest: float, measure: Measure) -> float:
    """The value of one step, chosen so that means of values up to `highest` fit into 62 bits."""
    if not math.isfinite(highest):
        raise ValueError(f"measure {measure!r} is infinite for a query; expected finite values")
    return 2.0 ** max(math.ceil(math.log2(highest)) - 61, -1074)


def _all_strips(
    sweep: _CompiledSweep | _PythonSweep, low: float, high: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points in rising order, the value in steps at each point, and the value in steps behind it."""
    start = low
    strips: list[tuple[np.ndarray, ...]] = []
    width = (high - low) * min(1.0, AT_ONCE / max(sweep.n_pairs, 1))
    while start < high:
        last = high if width >= high - start else max(start + width, math.nextafter(start, math.inf))
        changes, before = sweep.changes(start, last, not strips)
        strips.append(_added_up(changes, before))
        if len(changes) < AT_ONCE // 2:
            width *= 2
        elif len(changes) > AT_ONCE:
            width /= 2
        if start == low and (len(strips[0][0]) == 0 or strips[0][0][0] > low):
            strips.insert(0, tuple(np.array([value]) for value in (low, before, before)))
        start = last
    weights, at, behind = (np.concatenate(columns) for columns in zip(*strips, strict=True))
    if weights[-1] < high:
        weights, at, behind = np.append(weights, high), np.append(at, behind[-1]), np.append(behind, 0)
    return weights, at, behind


def _added_up(changes: np.ndarray, before: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The changes of a strip: each weight once, rising, with the values in steps at it and behind it."""
    changes = changes[np.argsort(changes["weight"], kind="stable")]
    starts = np.flatnonzero(np.diff(changes["weight"], prepend=-np.inf))
    if len(starts) == 0:
        return changes["weight"], changes["here"], changes["behind"]
    behind = before + np.cumsum(np.add.reduceat(changes["behind"], starts))
    sooner = np.append(before, behind[:-1])
    at = sooner + np.add.reduceat(changes["here"], starts)
    changed = (at != sooner) | (behind != sooner)
    return changes["weight"][starts][changed], at[changed], behind[changed]
