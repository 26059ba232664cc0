"""How much each feature matters: to the trees of a model, and to the ranking of queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from ranktrees.evaluation.comparing import mean_interval
from ranktrees.evaluation.own_models import fitted_trees
from ranktrees.inspection.changing import ChangedRows, require_trees_only
from ranktrees.measures import as_measure
from ranktrees.model.costs import used_features
from ranktrees.rows import check_score, query_of_rows
from ranktrees.rows.features import index_of, keys_of, names_of, refuse_repeated
from ranktrees.support.numeric import is_whole
from ranktrees.support.plotting import axes_or_new
from ranktrees.support.tables import Tabular, pandas_for

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.measures.named import AnyMeasure
    from ranktrees.support.annotations import IdsLike, RowsLike

__all__ = ["Importances", "importances", "permutation_importance"]


@dataclass(frozen=True, eq=False, repr=False)
class Importances(Tabular):
    """How much each feature matters; see `importances` and `permutation_importance`.

    Attributes
    ----------
    names : tuple of str
        The features, or groups of them. Features without a name are called by their number.
    values : ndarray of float64, shape (n,)
        Their importances.
    what : str
        What the importances are.
    low, high : ndarray of float64, shape (n,), or None
        The ends of their intervals. None if there are none.
    by_query : ndarray of float64, shape (n, n_queries), or None
        By how much the measure of each query got worse, with the queries in order of first appearance. NaN
        for queries without a value. None for importances to trees.
    """

    names: tuple[str, ...]
    values: NDArray[np.float64]
    what: str
    low: NDArray[np.float64] | None = None
    high: NDArray[np.float64] | None = None
    by_query: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        order = self._best(10)
        width = max(len(self.names[i]) for i in order)
        lines = [f"{self.names[i]:{width}}  {self.values[i]:.4f}{self._typed_interval(i)}" for i in order]
        left_out = f", the {len(order)} highest of {len(self.names)}" * (len(order) < len(self.names))
        return "\n".join([self.what + left_out, *lines])

    def _typed_interval(self, i: int) -> str:
        if self.low is None or self.high is None:
            return ""
        return f", {self.low[i]:+.4f} to {self.high[i]:+.4f}"

    def _best(self, most: int | None) -> list[int]:
        return np.argsort(-self.values, kind="stable")[:most].tolist()

    def to_frame(self) -> pd.DataFrame:
        """Return the importances as a table, the highest first.

        Returns
        -------
        DataFrame
            Indexed by the name of the feature, with the column ``importance`` and, if there are intervals,
            ``low`` and ``high``.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        pd = pandas_for("to_frame")
        columns = {"importance": self.values, "low": self.low, "high": self.high}
        known = {name: values for name, values in columns.items() if values is not None}
        order = self._best(None)
        return pd.DataFrame(known, pd.Index(self.names, name="feature")).iloc[order]

    def plot(self, ax: Axes | None = None, *, max_features: int = 20, **style: Any) -> Axes:
        """Plot the importances as bars, the highest on top, with their intervals.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            The axes to plot on. If None, a new figure is created.
        max_features : int, default=20
            The number of features to show. If there are more, the axis says of how many these are the first.
        **style
            Keyword arguments passed to `matplotlib.axes.Axes.barh`, which draws the bars.

        Returns
        -------
        matplotlib Axes

        Raises
        ------
        ImportError
            If matplotlib is not installed.
        ValueError
            If ``max_features`` is not a whole number of at least 1.
        """
        if not is_whole(max_features, 1):
            raise ValueError(
                f"max_features={max_features!r}; expected the number of features to show, at least 1."
            )
        ax = axes_or_new(ax)
        order = self._best(max_features)
        places, values = np.arange(len(order)), self.values[order]
        ends: Any = None
        if self.low is not None and self.high is not None:
            ends = np.array([values - self.low[order], self.high[order] - values])
        drawn: dict[str, Any] = {"color": "C0", "ecolor": "grey", "capsize": 2} | style
        ax.barh(places, values, xerr=ends, **drawn)
        ax.axvline(0, color="black", linewidth=0.8)
        ax.set_yticks(places, [self.names[i] for i in order])
        ax.set_ylim(len(order) - 0.4, -0.6)
        ax.set_xlabel(self.what)
        if len(order) < len(self.names):
            ax.set_ylabel(f"the first {len(order)} of {len(self.names)} features")
        return ax


def importances(model: Any, kind: Literal["gain", "split"] = "gain") -> Importances:
    """Return how much each feature matters to the trees of a model.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble.
    kind : {"gain", "split"}, default="gain"
        Whether to sum the gains of the splits of a feature, or to count them.

    Returns
    -------
    Importances
        They sum to 1, or are all 0 if no tree has a split.

    Raises
    ------
    TypeError
        If the model is not one of this library that is made of trees.
    ValueError
        If ``kind`` is neither of these, or if the gains are not known.

    See Also
    --------
    permutation_importance : what features are worth to a measure on other queries.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> from ranktrees.inspection import importances
    >>> X, y, qid = make_ranking(60, n_features=4, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(X, y, qid=qid)
    >>> found = importances(ranker)
    >>> bool((found.values == ranker.feature_importances_).all())
    True
    >>> found.to_frame().shape
    (4, 1)
    """
    model = fitted_trees(model)
    values = model.feature_importances(kind)
    return Importances(_names(model), values, f"share of the {'gain' if kind == 'gain' else 'splits'}")


def permutation_importance(
    model: Any,
    X: RowsLike,
    y: ArrayLike,
    *,
    qid: IdsLike | None = None,
    measure: AnyMeasure = "ndcg@10",
    among: Literal["all", "query"] = "all",
    feature_groups: Mapping[str, Sequence[Any]] | None = None,
    n_repeats: int = 5,
    confidence: float = 0.95,
    random_state: int | np.random.RandomState | None = 0,
) -> Importances:
    r"""Return how much worse a measure gets if the values of a feature are shuffled, with intervals.

    Let :math:`m_q` be the measure of query q, and :math:`m'_{qr}` the same after the values of a feature were
    shuffled for the r-th time:

    .. math:: d_q = \frac 1 R \sum_{r = 1}^{R} (m_q - m'_{qr}), \qquad
              \text{importance} = \frac 1 n \sum_q d_q.

    The queries are a sample, so the interval of the importance is Student's, of the :math:`d_q`, as in
    `mean_interval`. It covers what shuffles add by chance, too, which is another amount in each query.

    With ``among="all"`` a row gets the value of any row, as in scikit-learn. A feature that is the same for
    all rows of a query, such as the length of its text, then differs within queries, which it never does. It
    seems to matter, although by itself it cannot change a ranking. With ``among="query"`` a row gets the
    value of a row of its own query. What is the same within queries stays so, and has importance 0.

    Scores come from the compiled trees, without a new reading of the rows, and a feature that no tree uses
    costs nothing. The same shuffles serve all features.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble.
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        Rows, best of queries that the model was not trained on.
    y : array-like of shape (n_rows,)
        The labels. A pandas Series whose index has a level named "qid" supplies the query ids as well.
    qid : array-like of shape (n_rows,), default=None
        The query id of each row, in any order.
    measure : str, Measure or callable, default="ndcg@10"
        The measure, which must have a value for each query.
    among : {"all", "query"}, default="all"
        The rows whose values a row may get: all rows, or those of its query.
    feature_groups : dict of str to sequence of names or indices, default=None
        Features that are shuffled together, by the name of the group. Of two features that say the same, each
        alone seems to be worth little. A feature in no group is shuffled by itself.
    n_repeats : int, default=5
        The number of shuffles.
    confidence : float in (0, 1), default=0.95
        The confidence of the intervals.
    random_state : int, RandomState or None, default=0
        The seed of the shuffles.

    Returns
    -------
    Importances
        A positive number says that the measure gets worse without the feature, also for errors.

    Raises
    ------
    TypeError
        If the model is not one of this library that is made of trees.
    ValueError
        If an argument is out of its range or names an unknown feature, if a feature is in two groups, if the
        model starts from a model of another kind, or if fewer than two queries have a value.

    References
    ----------
    Breiman, *Random forests*, Machine Learning 45, 2001. Fisher, Rudin and Dominici, *All models are wrong,
    but many are useful*, JMLR 20, 2019.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking
    >>> from ranktrees.inspection import permutation_importance
    >>> X, y, qid = make_ranking(80, n_features=6, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=20, random_state=0).fit(
    ...     X[qid < 40], y[qid < 40], qid=qid[qid < 40]
    ... )
    >>> found = permutation_importance(ranker, X[qid >= 40], y[qid >= 40], qid=qid[qid >= 40])
    >>> found.by_query.shape
    (6, 40)
    >>> best = found.values.argmax()
    >>> bool(found.low[best] > 0)
    True
    """
    if among not in ("all", "query"):
        raise ValueError(f"among={among!r}; expected 'all' or 'query'.")
    if not is_whole(n_repeats, 1):
        raise ValueError(f"n_repeats={n_repeats!r}; expected a whole number of at least 1.")
    model, measure = fitted_trees(model), as_measure(measure)
    require_trees_only(model, measure)
    groups = _groups(model, feature_groups)
    data = check_score(model, X, y, qid=qid, method="permutation_importance")
    measure.check_labels(data.labels)
    measure.warn_of_labels(data.labels)
    changed = ChangedRows(model, data.X)
    prepared = measure.prepare(data.labels, data.offsets, None, changed.n_threads)

    def values_with(*change: Any) -> np.ndarray:
        values: np.ndarray = prepared.per_query(data.internal(changed.scores(*change)))
        return values if measure.greater_is_better else -values

    before = values_with()
    query = query_of_rows(data.order, data.offsets)
    used = used_features(model.ensemble_.nodes, data.X.shape[1])
    random = check_random_state(random_state)
    worse = np.tile(0.0 * before, (len(groups), 1))
    for _ in range(n_repeats):
        others = random.permutation(data.n_rows)
        if among == "query":
            within = np.empty_like(others)
            within[np.argsort(query, kind="stable")] = others[np.argsort(query[others], kind="stable")]
            others = within
        for of_group, columns in zip(worse, groups.values(), strict=True):
            if used[columns].any():
                of_group += before - values_with(columns, changed.values(columns)[others])
    worse /= n_repeats
    means, lows, highs, _ = map(
        np.array, zip(*(mean_interval(row, confidence) for row in worse), strict=True)
    )
    where = "" if among == "all" else " within queries"
    what = f"loss of {measure} if shuffled{where}, {100 * confidence:g} % interval"
    return Importances(tuple(groups), means, what, lows, highs, worse)


def _names(model: Any) -> tuple[str, ...]:
    return tuple(map(str, names_of(model) or range(model.n_features_in_)))


def _groups(model: Any, feature_groups: Mapping[str, Sequence[Any]] | None) -> dict[str, list[int]]:
    """The columns of each group, and of each feature that is in none."""
    if feature_groups is not None and not isinstance(feature_groups, Mapping):
        raise ValueError(
            f"feature_groups is a {type(feature_groups).__name__}; expected a dict of lists of features by "
            'the name of the group, such as {"title": [0, 1]}.'
        )
    names, keys, n_features = _names(model), keys_of(model), model.n_features_in_
    entries = [
        (index_of(key, keys, n_features, "feature_groups"), key, name)
        for name, of_group in (feature_groups or {}).items()
        for key in of_group
    ]
    refuse_repeated([entry[:2] for entry in entries], "feature_groups")
    groups: dict[str, list[int]] = {name: [] for name in feature_groups or {}}
    for column, _, name in entries:
        groups[name].append(column)
    for name, columns in groups.items():
        if not columns:
            raise ValueError(f"feature_groups[{name!r}] is empty; expected one or more features.")
    grouped = {column for column, *_ in entries}
    alone = {names[column]: [column] for column in range(n_features) if column not in grouped}
    if both := alone.keys() & groups.keys():
        raise ValueError(
            f"feature_groups has a group called {min(both)!r}, which is also a feature outside of it; "
            "expected another name: call the group something else."
        )
    return groups | alone
