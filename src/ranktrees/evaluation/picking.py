"""Choose on validation queries when rows leave early, to save as much work as a tolerated loss allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ranktrees.evaluation.comparing import mean_interval
from ranktrees.evaluation.early_exit import EarlyExit, drop_rows, exit_points
from ranktrees.evaluation.own_models import fitted_trees
from ranktrees.evaluation.predictions import scores_by, staged_scores_by
from ranktrees.measures import as_measure
from ranktrees.rows import check_score
from ranktrees.support.numeric import is_real
from ranktrees.support.parallel import effective_n_threads

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ranktrees.measures.base import Measure
    from ranktrees.measures.named import AnyMeasure
    from ranktrees.rows.data import FitData
    from ranktrees.support.annotations import IdsLike, RowsLike

__all__ = ["Candidate", "PickedEarlyExit", "pick_early_exit"]

SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


class Candidate(NamedTuple):
    """An early exit that `pick_early_exit` has tried, with its results on the validation queries.

    Attributes
    ----------
    early_exit : EarlyExit or None
        The early exit. None drops no row.
    share_saved : float
        The share of the work that it saves.
    score : float
        The mean of the measure.
    loss : float
        The amount by which that mean is worse than without early exit. It is negative if the mean is better.
    highest_loss : float
        The upper end of the interval of ``loss``. If ``confidence`` is None, ``loss`` itself.
    """

    early_exit: EarlyExit | None
    share_saved: float
    score: float
    loss: float
    highest_loss: float


@dataclass(frozen=True, eq=False)
class PickedEarlyExit:
    """The early exit that `pick_early_exit` has chosen.

    Attributes
    ----------
    early_exit : EarlyExit or None
        The early exit, to be passed to ``predict`` and ``rank``. None if no early exit saves work within the
        tolerated loss.
    share_saved : float
        The share of the work that it saves on the validation rows.
    score, full_score : float
        The mean of the measure over the validation queries, with and without early exit.
    candidates : list of Candidate
        All candidates that were tried. The first is the one without early exit.
        ``pandas.DataFrame(candidates)`` is a table of them.
    """

    early_exit: EarlyExit | None
    share_saved: float
    score: float
    full_score: float
    candidates: list[Candidate] = field(repr=False)


def pick_early_exit(
    model: Any,
    X: RowsLike,
    y: ArrayLike,
    *,
    qid: IdsLike | None = None,
    measure: AnyMeasure = "ndcg@10",
    tolerated_loss: float = 0.001,
    confidence: float | None = 0.9,
    by: Literal["share", "score"] = "share",
    at: Sequence[int] | None = None,
    keep_at_least: int | None = None,
) -> PickedEarlyExit:
    r"""Choose how many rows to drop at which points, so that a measure loses no more than is tolerated.

    The search starts without early exit, and raises the share that is dropped at one of the points step by
    step, through 0.1, 0.2, ..., 0.9. It considers the raises that save work and after which the loss is
    tolerated. Each step takes the one that saves most work for the loss it adds: one that adds no loss comes
    first, and among equals the one at the earliest point. The search ends when no such raise is left. The
    loss of a candidate is

    .. math:: \frac{1}{n} \sum_q \big(m_q - m'_q\big),

    with :math:`m_q` and :math:`m'_q` the measure of query q without and with early exit, where rows that are
    dropped rank behind those that stay (`WorkSaved.dropped_last`). The best of many candidates looks better
    than it is. So by default it is the upper end of the interval of this mean (`mean_interval`) that has to
    be tolerated, not just the mean. The trees are walked once. The search itself only sorts.

    Parameters
    ----------
    model : estimator or Ensemble
        A fitted estimator of this library that is made of trees, or its ensemble. A classifier ranks by
        ``decision_function``.
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        Validation rows, of other queries than those of training.
    y : array-like of shape (n_rows,)
        The labels. A pandas Series whose index has a level named "qid" supplies the query ids as well.
    qid : array-like of shape (n_rows,), default=None
        The query ids, in any order.
    measure : str, Measure or callable, default="ndcg@10"
        A measure that depends only on the order of the rows.
    tolerated_loss : float, default=0.001
        The amount by which the mean of the measure may get worse, at least 0.
    confidence : float in (0, 1) or None, default=0.9
        The confidence of the interval of the loss, see `mean_interval`. If None, only the mean loss has to be
        tolerated.
    by : {"share", "score"}, default="share"
        Whether to drop a share of each query, or all rows below a score. An early exit by score needs no
        query ids. The scores that are tried are those below which 0.1, 0.2, ..., 0.9 of all rows lie.
    at : sequence of int, default=None
        The exit points to choose among. If None, 1/64, 1/32, ..., 1/2 of the trees.
    keep_at_least : int, default=None
        The minimum number of rows of each query that stay in. If None, 0 by score, and by share the cutoff of
        ``measure`` (k for "ndcg@k"), or 1 if it has none.

    Returns
    -------
    PickedEarlyExit
        The chosen ``early_exit`` with its ``share_saved``, ``score``, ``full_score`` and all ``candidates``.
        The result does not depend on the number of threads or on the order of the queries.

    Raises
    ------
    TypeError
        If the model is not one of this library that is made of trees.
    ValueError
        If an argument is out of its range, if there are no query ids, or if there are fewer than two queries
        on which the measure is defined.

    Examples
    --------
    >>> from ranktrees import LambdaMARTRanker, make_ranking, pick_early_exit
    >>> X, y, qid = make_ranking(200, random_state=0, return_X_y_qid=True)
    >>> train, validation = qid < 100, qid >= 100
    >>> ranker = LambdaMARTRanker(random_state=0).fit(X[train], y[train], qid=qid[train])
    >>> picked = pick_early_exit(
    ...     ranker, X[validation], y[validation], qid=qid[validation], tolerated_loss=0.01
    ... )
    >>> picked.share_saved > 0.3
    True
    >>> picked.full_score - picked.score < 0.01
    True
    """
    model, measure = fitted_trees(model), as_measure(measure)
    if not (measure.by_order and measure.by_query):
        raise ValueError(
            f"measure={measure}; expected a measure of the order of rows of a query, such as 'ndcg@10'."
        )
    if not (is_real(tolerated_loss) and tolerated_loss >= 0):
        raise ValueError(f"tolerated_loss={tolerated_loss!r}; expected a number of at least 0.")
    if by not in ("share", "score"):
        raise ValueError(f"by={by!r}; expected 'share' or 'score'.")
    n_trees = model._n_counted
    at = tuple(n_trees >> j for j in range(6, 0, -1) if n_trees >> j) if at is None else exit_points(at)
    at = tuple(sorted({point for point in at if point < n_trees}))
    if keep_at_least is None:
        cutoff: Any = measure.parameters.get("at")
        keep_at_least = 0 if by == "score" else int(cutoff) if isinstance(cutoff, Integral) else 1
    data = check_score(model, X, y, qid=qid, method="pick_early_exit")
    if not data.qid_given:
        raise ValueError(
            "pick_early_exit needs qid=: the tolerated loss is a mean over queries. Pass qid= (one id per "
            "row), or a y whose index has a level named 'qid'."
        )
    measure.check_labels(data.labels)
    trial = _Trial(model, data, measure, confidence, X, at)
    name = "drop" if by == "share" else "threshold"
    values = [SHARES] * len(at) if by == "share" else [trial.quantiles(point) for point in at]

    def candidate(steps: tuple[int, ...]) -> Candidate:
        """The result of dropping by ``values[i][steps[i] - 1]`` at point i; step 0 drops nothing."""
        raised = [i for i, step in enumerate(steps) if step]
        if not raised:
            return trial(None)
        drops: dict[str, Any] = {
            "at": [at[i] for i in raised],
            name: [values[i][steps[i] - 1] for i in raised],
        }
        return trial(EarlyExit(**drops, keep_at_least=keep_at_least))

    best = _climb(candidate, len(at), len(SHARES), tolerated_loss)
    candidates = list(trial.tried.values())
    return PickedEarlyExit(best.early_exit, best.share_saved, best.score, candidates[0].score, candidates)


def _climb(
    candidate: Callable[[tuple[int, ...]], Candidate], n_points: int, n_steps: int, tolerated_loss: float
) -> Candidate:
    """The candidate from which no step up is tolerated; each step taken is the one that is worth most."""

    def worth(steps: tuple[int, ...]) -> tuple[int, float]:
        saved = candidate(steps).share_saved - best.share_saved
        lost = candidate(steps).highest_loss - best.highest_loss
        return (1, saved) if lost <= 0 else (0, saved / lost)

    steps, best = (0,) * n_points, candidate((0,) * n_points)
    while True:
        ups: list[Any] = []
        for i, step in enumerate(steps):
            higher = ((*steps[:i], up, *steps[i + 1 :]) for up in range(step + 1, n_steps + 1))
            ups += islice((up for up in higher if candidate(up).share_saved > best.share_saved), 1)
        ups = [up for up in ups if candidate(up).highest_loss <= tolerated_loss]
        if not ups:
            return best
        steps = max(ups, key=worth)
        best = candidate(steps)


class _Trial:
    """Tries early exits on validation rows whose scores after every exit point are known."""

    def __init__(
        self,
        model: Any,
        data: FitData,
        measure: Measure,
        confidence: float | None,
        X: RowsLike,
        at: tuple[int, ...],
    ) -> None:
        self.data, self.measure, self.confidence = data, measure, confidence
        self.queries = None, data.offsets
        self.n_threads = effective_n_threads(model.n_jobs)
        self.prepared = measure.prepare(data.labels, data.offsets, data.weights, self.n_threads)
        self.n_init_trees, self.n_trees = model.n_init_trees_, model._n_counted
        self.after = {self.n_trees: data.internal(scores_by(model, X))}
        stages = zip(range(1, max(at, default=0) + 1), staged_scores_by(model, X), strict=False)
        for n_trees, scores in stages:
            if n_trees in at:
                self.after[n_trees] = data.internal(scores)
        self.full_values = self.prepared.per_query(self.after[self.n_trees])
        if np.isnan(self.full_values).all():
            raise ValueError(
                f"{measure} is not defined on any of the queries: pass others, or set empty_query."
            )
        self.tried: dict[EarlyExit | None, Candidate] = {}

    def quantiles(self, n_trees: int) -> list[float]:
        """The scores after ``n_trees`` trees below which the shares of all rows lie."""
        return np.quantile(self.after[n_trees], SHARES, method="lower").tolist()

    def __call__(self, early_exit: EarlyExit | None) -> Candidate:
        if early_exit not in self.tried:
            self.tried[early_exit] = self._try(early_exit)
        return self.tried[early_exit]

    def _try(self, early_exit: EarlyExit | None) -> Candidate:
        scores, saved = drop_rows(
            early_exit,
            self.n_init_trees,
            self.n_trees,
            self.data.n_rows,
            self.queries,
            lambda rows, first, stop: self.after[stop][rows],
            self.n_threads,
        )
        values = self.prepared.per_query(saved.dropped_last(scores))
        losses = self.full_values - values if self.measure.greater_is_better else values - self.full_values
        highest_loss = (
            _mean(losses) if self.confidence is None else mean_interval(losses, self.confidence).high
        )
        return Candidate(early_exit, saved.share, _mean(values), _mean(losses), highest_loss)


def _mean(values: np.ndarray) -> float:
    counted = values[~np.isnan(values)]
    return math.fsum(counted) / len(counted)
