r"""Early exit: rows that will not reach the top of their query are dropped before they have seen all trees.

::

    trees      0 ......... at[0] ......... at[1] ......... n_trees
    rows in    all           |  the better   |  the better of those
    dropped                  v               v
                         score frozen    score frozen

At each exit point the rows of a query that are still in are ordered by their score so far, which is the one
that ``predict(X, n_trees=...)`` returns. The lowest rows leave and keep that score. The remaining trees are
not walked for them. Which rows stay in does not depend on other queries, on their order, or on the number of
threads. With ``among="all"`` all rows that are scored together are treated as those of one query.

By query: Cambazoglu, Zaragoza, Chapelle, Chen, Liao, Zheng, Degenhardt, *Early exit optimizations for
additive machine learned ranking systems*, WSDM 2010. Among all rows: Mohan, *An empirical analysis on
point-wise machine learning techniques using regression trees for web-search ranking*, 2010, section 6.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ranktrees.evaluation.best import places
from ranktrees.model import scoring
from ranktrees.support.numeric import is_real, is_whole
from ranktrees.support.parallel import effective_n_threads

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from ranktrees.model.ensemble import Ensemble
    from ranktrees.rows.queries import Queries
    from ranktrees.support.annotations import RowsLike

__all__ = ["EarlyExit", "WorkSaved"]

# A share is read as the nearest fraction with a denominator up to this number, so 0.29 of 100 rows are 29.
FINEST_SHARE = 10**6


# ---- what leaves, and when ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, repr=False)
class EarlyExit:
    r"""The rule by which rows are dropped before they have seen all trees.

    With a share :math:`p`, ``drop``, the number of rows that leave at each exit point is, of the :math:`m`
    rows of a query that are still in,

    .. math:: \min\big(\lfloor p\,m \rfloor,\ m - \max(1, \mathit{keep\_at\_least})\big)
              \qquad\text{or, where that is negative, none}

    and those with the lowest score so far leave. Of rows with equal scores the later one leaves first. With a
    ``threshold``, the rows leave whose score so far is below it, except the ``keep_at_least`` best of the
    query. A row that has left keeps the score that it had. An early exit is an immutable value and prints as
    it is typed.

    Parameters
    ----------
    every : int, default=None
        Drop rows after ``every``, ``2 * every``, ... trees. The trees that boosting started from (``init``)
        are not counted, here and below, and all rows see them.
    at : sequence of int, default=None
        Drop rows after these numbers of trees, in rising order. Exactly one of ``every`` and ``at`` must be
        given. A point that is not below the number of trees of the model has no effect.
    drop : float or sequence of float, default=None
        The share of rows that leave, from 0 to 1, of the rows of a query that are still in: one number, or
        one for each point of ``at``. With 1 only the ``keep_at_least`` best rows stay. The share is read as
        the nearest fraction with a denominator up to a million, so 0.29 of 100 rows are 29.
    threshold : float or sequence of float, default=None
        The score below which a row leaves: one number, or one for each point of ``at``. It may be infinite.
        Exactly one of ``drop`` and ``threshold`` must be given.
    keep_at_least : int, default=0
        The minimum number of rows of each query that stay in, if the query has that many. If only the first k
        ranks matter, set it to k. With ``drop`` at least one row stays in any case.
    among : {"query", "all"}, default="query"
        The rows among which the lowest leave: those of a query, or all rows of the call of `predict`,
        `score`, ... With "all", query ids are not needed, ``keep_at_least`` counts rows of all queries, and
        how many rows of a query stay depends on the rows that are scored with it. Mohan's survey weeds out
        rows in this way, as in ``EarlyExit(every=100, drop=0.2, among="all")``. It does not say of which
        number its share is taken; here it is that of the rows still in.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or if not exactly one parameter of each pair is given.

    See Also
    --------
    pick_early_exit : choose one on validation data.

    Examples
    --------
    >>> from ranktrees import EarlyExit, LambdaMARTRanker, make_ranking
    >>> X, y, qid = make_ranking(60, random_state=0, return_X_y_qid=True)
    >>> ranker = LambdaMARTRanker(max_iter=100, random_state=0).fit(X, y, qid=qid)
    >>> early_exit = EarlyExit(every=20, drop=0.3, keep_at_least=10)
    >>> scores, saved = ranker.predict(X, qid=qid, early_exit=early_exit, return_saved=True)
    >>> saved
    WorkSaved(share=0.436, stages=(0, 20, 40, 60, 80), rows=(3000, 2100, 1500, 1080, 780))
    >>> early_exit
    EarlyExit(every=20, drop=0.3, keep_at_least=10)
    """

    every: int | None = None
    at: Sequence[int] | None = None
    drop: float | Sequence[float] | None = None
    threshold: float | Sequence[float] | None = None
    keep_at_least: int = 0
    among: Literal["query", "all"] = "query"

    def __post_init__(self) -> None:
        _exactly_one(every=self.every, at=self.at)
        _exactly_one(drop=self.drop, threshold=self.threshold)
        checked: dict[str, Any] = {"keep_at_least": _whole("keep_at_least", self.keep_at_least, 0)}
        if self.every is not None:
            checked["every"] = _whole("every", self.every, 1)
        else:
            checked["at"] = exit_points(self.at)
        if self.drop is not None:
            checked["drop"] = _per_point(
                "drop", self.drop, checked.get("at"), "a share from 0 to 1", _is_share
            )
        else:
            checked["threshold"] = _per_point(
                "threshold", self.threshold, checked.get("at"), "a score, which may be infinite", _is_score
            )
        if self.among not in ("query", "all"):
            raise ValueError(f"among={self.among!r}; expected 'query' or 'all'.")
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        defaults = {each.name: each.default for each in fields(self)}
        given = {name: value for name, value in vars(self).items() if value != defaults[name]}
        return f"EarlyExit({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    @property
    def needs_queries(self) -> bool:
        """Whether the early exit has to know which rows belong to the same query."""
        return self.among == "query" and (self.drop is not None or self.keep_at_least > 0)

    def points(self, n_trees: int) -> tuple[int, ...]:
        """Return the numbers of trees after which rows leave, for a model of ``n_trees`` trees."""
        if self.every is not None:
            return tuple(range(self.every, n_trees, self.every))
        return tuple(point for point in self.at or () if point < n_trees)

    def stays(
        self, stage: int, scores: np.ndarray, offsets: np.ndarray, *, n_jobs: int | None = None
    ) -> NDArray[np.bool_]:
        """Return which rows stay in at an exit point.

        Parameters
        ----------
        stage : int
            The number of the exit point, from 0 on.
        scores : ndarray of shape (n,), float64
            The scores so far of the rows that are still in, grouped by query.
        offsets : ndarray of shape (n_queries + 1,), int64
            Query q is rows ``offsets[q]:offsets[q + 1]``.
        n_jobs : int, default=None
            The number of threads; see `ranktrees.support.parallel.effective_n_threads`.

        Returns
        -------
        ndarray of shape (n,), bool
            True for rows that stay in.
        """
        if self.drop is None:
            high_enough = scores >= _of_stage(self.threshold, stage)
            if self.keep_at_least == 0:
                return high_enough
            return high_enough | (places(scores, offsets, effective_n_threads(n_jobs)) < self.keep_at_least)
        share = Fraction(_of_stage(self.drop, stage)).limit_denominator(FINEST_SHARE)
        sizes = np.diff(offsets)
        stay = np.maximum(sizes - sizes * share.numerator // share.denominator, max(1, self.keep_at_least))
        return places(scores, offsets, effective_n_threads(n_jobs)) < np.repeat(stay, sizes)


def check_early_exit(early_exit: object) -> None:
    """Raise unless the argument is an EarlyExit or None."""
    if not isinstance(early_exit, EarlyExit | None):
        raise TypeError(
            f"early_exit is a {type(early_exit).__name__}; expected an EarlyExit, such as "
            "EarlyExit(every=50, drop=0.3), or None."
        )


def _of_stage(values: Any, stage: int) -> float:
    return values[stage] if isinstance(values, tuple) else values


def _exactly_one(**given: Any) -> None:
    (one, first), (other, second) = given.items()
    if (first is None) == (second is None):
        seen = "neither" if first is None else "both"
        raise ValueError(
            f"EarlyExit got {seen} of {one} and {other}; expected one of them: pass {one} or {other}."
        )


def _whole(name: str, value: Any, least: int) -> int:
    if not is_whole(value, least):
        raise ValueError(f"{name}={value!r}; expected a whole number of at least {least}.")
    return int(value)


def exit_points(at: Any) -> tuple[int, ...]:
    """Return the numbers of trees that a user has passed as a tuple, checked."""
    try:
        points = tuple(_whole("at", point, 1) for point in at)
    except TypeError as error:
        raise ValueError(
            f"at={at!r}; expected numbers of trees, such as [10, 50]: for equal steps, pass every."
        ) from error
    if not points or any(later <= sooner for sooner, later in pairwise(points)):
        raise ValueError(
            f"at={at!r}; expected one or more numbers of trees, each larger than the one before."
        )
    return points


def _is_share(value: float) -> bool:
    return 0 <= value <= 1


def _is_score(value: float) -> bool:
    return not math.isnan(value)


def _per_point(
    name: str, value: Any, at: tuple[int, ...] | None, expected: str, is_meant: Callable[[float], bool]
) -> float | tuple[float, ...]:
    """A number, or a tuple of one number for each exit point."""
    several = isinstance(value, list | tuple | np.ndarray) and np.ndim(value) == 1
    numbers = tuple(value) if several else (value,)
    if several and (at is None or len(numbers) != len(at)):
        seen = "at is None" if at is None else f"at has {len(at)}"
        raise ValueError(
            f"{name} has {len(numbers)} entries, but {seen}; expected a number, or one for each point of at."
        )
    for number in numbers:
        if not is_real(number) or not is_meant(number):
            raise ValueError(f"{name}={value!r}; expected {expected}, or one for each point of at.")
    return tuple(map(float, numbers)) if several else float(value)


# ---- what it saves -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WorkSaved:
    """The work that an early exit has saved. ``predict(..., return_saved=True)`` returns it with the scores.

    Attributes
    ----------
    share : float
        The share of the work that was saved, from 0 to 1. The work is counted in walks of a row down a tree.
    stages : tuple of int
        The numbers of trees at which stages begin: 0, then the exit points.
    rows : tuple of int
        The number of rows that were still in, for each stage.
    trees : ndarray of shape (n_rows,), int64
        The number of trees that each row has seen. Its score is that of ``predict(X, n_trees=...)`` with this
        number.
    """

    share: float
    stages: tuple[int, ...]
    rows: tuple[int, ...]
    trees: np.ndarray = field(repr=False)

    def dropped_last(self, scores: np.ndarray) -> NDArray[np.float64]:
        """Return scores by which no row ranks above one that stayed in longer.

        The score of a dropped row lacks what later trees would have added. So it may be above the final score
        of a row that was better at the exit point. Measures of a ranking, and anything else that sorts by
        score, should be given these numbers instead. They order rows by how long they stayed in, then by
        score.

        Parameters
        ----------
        scores : ndarray of shape (n_rows,), float64
            The scores that `predict` returned.

        Returns
        -------
        ndarray of shape (n_rows,), float64
            Whole numbers from 0 on, equal for rows that stayed in equally long and have equal scores. If no
            row was dropped, ``scores`` themselves.

        Examples
        --------
        >>> import numpy as np
        >>> from ranktrees.evaluation import WorkSaved
        >>> saved = WorkSaved(0.25, (0, 5), (3, 2), np.array([10, 5, 10]))
        >>> saved.dropped_last(np.array([0.2, 0.9, 0.7]))
        array([1., 0., 2.])
        """
        if np.shape(scores) != self.trees.shape:
            raise ValueError(
                f"scores has shape {np.shape(scores)}, expected {self.trees.shape}: pass the scores that "
                "predict returned along with this WorkSaved."
            )
        return rows_dropped_last(np.asarray(scores, np.float64), self.trees)


def rows_dropped_last(scores: np.ndarray, trees: np.ndarray) -> np.ndarray:
    """See `WorkSaved.dropped_last`; ``trees`` holds the number of trees that each row has seen."""
    if (trees == trees[:1]).all():
        return scores
    keys = np.empty(len(trees), np.complex128)  # NumPy sorts these by the real part first
    keys.real, keys.imag = trees, scores
    return np.unique(keys, return_inverse=True)[1].astype(np.float64)


# ---- scoring, stage by stage -------------------------------------------------------------------------------


def predict(
    early_exit: EarlyExit | None,
    ensemble: Ensemble,
    X: RowsLike,
    queries: Queries | None,
    *,
    start: ArrayLike | None = None,
    dropped_by: Callable[[np.ndarray], np.ndarray] = np.asarray,
    n_init_trees: int = 0,
    n_trees: int | None = None,
    n_threads: int = 1,
) -> tuple[np.ndarray, WorkSaved]:
    """Score rows, and drop some of them on the way.

    Parameters
    ----------
    early_exit : EarlyExit or None
        The rule by which rows are dropped. If None, no row is dropped.
    ensemble : Ensemble
    X : ndarray or CSR matrix of shape (n_rows, n_features)
    queries : tuple of order and offsets, or None
        As returned by `ranktrees.rows.query_offsets`. None if there are no query ids.
    start : array-like of shape (n_rows,), default=None
        The scores that the trees are added to, instead of the ensemble's ``base``.
    dropped_by : callable, default=numpy.asarray
        Turns scores into what rows are dropped by, such as predictions, which thresholds are compared with.
    n_init_trees : int, default=0
        The number of trees at the beginning that every row sees. The trees after them are counted from 0 on.
    n_trees : int, default=None
        If given, only the first ``n_trees`` trees are used.
    n_threads : int, default=1

    Returns
    -------
    scores : ndarray of shape (n_rows,), float64
    saved : WorkSaved

    Raises
    ------
    ValueError
        If the early exit needs query ids and there are none.
    """
    start = scoring.start_of(ensemble, X, start)
    sums = scoring.sums_before_trees(ensemble, start)
    codes = ensemble.scorer.encode(X, n_threads)

    def scores_after(rows: Any, first: int, stop: int) -> np.ndarray:
        first, stop = first + n_init_trees if first else 0, stop + n_init_trees
        ensemble.scorer.add(codes, sums, first, stop, None if len(rows) == len(sums) else rows, n_threads)
        return scoring.scores_of(ensemble, start[rows], sums[rows], stop)

    n_trees = len(ensemble) - n_init_trees if n_trees is None else n_trees
    return drop_rows(
        early_exit, n_init_trees, n_trees, X.shape[0], queries, scores_after, n_threads, dropped_by
    )


def drop_rows(
    early_exit: EarlyExit | None,
    n_init_trees: int,
    n_trees: int,
    n_rows: int,
    queries: Queries | None,
    scores_after: Callable[[Any, int, int], np.ndarray],
    n_threads: int,
    dropped_by: Callable[[np.ndarray], np.ndarray] = np.asarray,
) -> tuple[np.ndarray, WorkSaved]:
    """Return scores and the work saved; ``scores_after(rows, first, stop)`` takes rows through some trees."""
    if early_exit is not None and early_exit.needs_queries and queries is None:
        raise ValueError(
            f"early_exit={early_exit} drops rows query by query, but there are no query ids: pass qid= (one "
            "id per row), or rows whose index has a level named 'qid'. Only a threshold without "
            "keep_at_least, and among='all', work without query ids."
        )
    if queries is None or (early_exit is not None and early_exit.among == "all"):
        queries = None, np.array([0, n_rows])
    order, offsets = queries
    rows = np.arange(n_rows) if order is None else order
    points = () if early_exit is None else early_exit.points(n_trees)
    scores, trees, rows_in = np.empty(n_rows), np.full(n_rows, n_trees), []
    for stage, (first, stop) in enumerate(pairwise((0, *points, n_trees))):
        rows_in.append(len(rows))
        scores[rows] = scores_after(rows, first, stop)
        if early_exit is not None and stop < n_trees:
            stays = early_exit.stays(stage, dropped_by(scores[rows]), offsets, n_jobs=n_threads)
            trees[rows[~stays]] = stop
            rows, offsets = rows[stays], np.concatenate([[0], np.cumsum(stays)])[offsets]
    n_walks = n_rows * (n_init_trees + n_trees)
    share = (n_rows * n_trees - int(trees.sum())) / n_walks if n_walks else 0.0
    return scores, WorkSaved(share, (0, *points), tuple(rows_in), trees)
