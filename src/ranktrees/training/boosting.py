"""The boosting loop: from a constant, from a forest, or from any fitted model.

Friedman, *Greedy function approximation: a gradient boosting machine*, 2001; with rows drawn anew for each
tree, *Stochastic gradient boosting*, 2002.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees._core.growing import leaf_rows
from ranktrees._core.objectives import losses
from ranktrees.measures.compiled import CompiledMeasure
from ranktrees.model.ensemble import Trees
from ranktrees.support.cached import cached_property
from ranktrees.support.divergence import refuse_infinite
from ranktrees.support.parallel import threads_for
from ranktrees.training.callbacks import Progress
from ranktrees.training.rates import rate_by

if TYPE_CHECKING:
    from ranktrees.binning.mapper import BinMapper
    from ranktrees.growing.grower import TreeGrower
    from ranktrees.growing.grown import Grown
    from ranktrees.measures.base import Measure
    from ranktrees.model.ensemble import Ensemble
    from ranktrees.objectives.base import Link, PreparedObjective
    from ranktrees.processes.communicator import Communicator
    from ranktrees.rows.data import FitData
    from ranktrees.rows.sampling import RowSampler


class FollowedRows:
    """Rows whose score is followed while trees are added, with labels, weights, queries and current scores.

    Scores have the shape (n_rows,) or, if each class has its own, (n_classes, n_rows). Rows that are not
    trained on have ``codes`` and the ``mapper`` that made these. ``link`` turns scores into predictions, on
    which the measure is computed. Compiled measures need only the order of the rows, which both have in
    common.
    """

    def __init__(
        self,
        measure: Measure | None,
        prepared: PreparedObjective | None,
        data: FitData,
        scores: np.ndarray,
        n_threads: int = 1,
        codes: Any = None,
        mapper: BinMapper | None = None,
        link: Link | None = None,
    ) -> None:
        self.measure: Any = measure
        self.link = None if isinstance(measure, CompiledMeasure) and scores.ndim == 1 else link
        self.prepared: Any = prepared
        self.data = data
        self.scores = scores
        self.codes: Any = codes
        self.mapper: Any = mapper
        self.n_threads = threads_for(n_threads, 16 * scores.size)

    @cached_property
    def prepared_measure(self) -> Any:
        """The measure, prepared for these rows."""
        data = self.data
        rows = data.labels, data.offsets, data.weights
        return self.measure.prepare(*rows, self.n_threads, data.share.communicator)

    def score(self) -> float:
        """Return the measure of the current scores, or minus the loss. Higher is better."""
        return self.score_of(self.scores)

    def score_of(self, scores: np.ndarray) -> float:
        """Return the same for any scores of these rows."""
        if self.measure is None:
            return -self.prepared.loss(scores)
        return self.prepared_measure.signed_mean(scores if self.link is None else self.link(scores))

    def add(
        self, scores: np.ndarray, grown: Grown, values: np.ndarray, mapper: BinMapper, nodes: np.ndarray
    ) -> None:
        """Add to scores of these rows what a tree adds that was grown with a mapper, and has these nodes."""
        if self.codes is None:
            grown.add(values, scores)
            return
        if self.mapper is not mapper:
            grown = grown.with_codes_of(self.mapper, nodes)
        grown.walk(values, self.mapper, self.codes, np.arange(len(scores), dtype=np.uint32), scores)


def boost(
    make_grower: Callable[[], TreeGrower],
    prepared: PreparedObjective,
    train: FollowedRows,
    *,
    learning_rate: Any,
    rounds: range,
    sampler: RowSampler,
    seed: int,
    step: Callable[..., float] | None = None,
    step_rows: Any = None,
    least_squares: bool = False,
    mean_leaves: bool = False,
    leaf_quantile: float | None = None,
    validation: FollowedRows | None = None,
    follow_train: bool = False,
    callbacks: Sequence[Callable[[Progress], Any]] = (),
    ensemble_of: Callable[[Trees], Ensemble],
) -> tuple[Trees, list[float], list[float]]:
    """Add one tree per round, or one for each class, each grown on the gradients at the current scores.

    Parameters
    ----------
    make_grower : callable
        Makes the TreeGrower.
    prepared : prepared objective
        Has ``gradients(scores, gradients, hessians, iteration)``.
    train : FollowedRows
        Boosting starts from its ``scores``, and updates them in place.
    learning_rate : float, or those of the rounds, see `ranktrees.training.rates.rate_by`
    rounds : range
        The numbers of the rounds to add, from 0 for a new model.
    sampler : RowSampler
    seed : int
    step : callable or None
        Computes a weight of each new tree, which is multiplied by ``learning_rate``, from the scores of some
        rows, the values that the tree adds to them, and the weight that is a Newton step.
    step_rows : FollowedRows or None
        These rows: ``train`` or ``validation``.
    least_squares : bool
        Whether splits are searched with the weights of rows as their hessians, which fits the gradients by
        least squares.
    mean_leaves : bool
        Whether the values of leaves are, in the same way, the means of the negative gradients.
    leaf_quantile : float or None
        For losses whose best leaf value is a quantile of the residuals rather than a Newton step.
    validation : FollowedRows or None
    follow_train : bool
        Whether each Progress has the score on the training rows.
    callbacks : sequence of callables
        Each is called with every Progress. Any may ask to stop by returning True.
    ensemble_of : callable
        Makes an Ensemble of the new trees, `Trees`.

    Returns
    -------
    trees : Trees
        Those of a round are in the order of the classes.
    train_scores, validation_scores : lists of float
        After each round.
    """
    scores, rate = train.scores, rate_by(learning_rate)
    one_hessian = prepared.one_hessian and sampler.takes_all
    gradients, hessians = np.empty(scores.shape), np.empty(1 if one_hessian else scores.shape)
    of_classes = [np.atleast_2d(each) for each in (scores, gradients, hessians)]
    n_classes = len(of_classes[0])
    weights, by_weight = train.data.weights, least_squares or mean_leaves
    one_weight = not by_weight or (weights is None and sampler.takes_all)
    row_weights = np.empty(1 if one_weight else scores.shape[-1])
    grower = make_grower()  # after these, since its smaller buffers would fragment the free memory
    n_threads, mapper = grower.n_threads, grower.mapper
    trees, train_scores, validation_scores = Trees(len(rounds) * n_classes), [], []
    for iteration in rounds:
        grower.communicator.at(f"tree {iteration + 1}")
        prepared.gradients(scores, gradients, hessians, iteration)
        _, left_out = sampler.draw(iteration)
        if by_weight:
            row_weights[:] = 1.0 if weights is None else weights
        for k, (own_scores, own_gradients, own_hessians) in enumerate(zip(*of_classes, strict=True)):
            leaf_rows.silence(left_out, own_gradients, own_hessians)  # parted and counted, but weigh nothing
            if by_weight:
                leaf_rows.silence(left_out, own_gradients, row_weights)
            grown = grower.grow(
                own_gradients,
                row_weights if least_squares else own_hessians,
                leaf_hessians=row_weights if mean_leaves else own_hessians,
                seed=seed,
                tree=iteration * n_classes + k,
            )
            values = grown.values
            if leaf_quantile is not None:
                monotone = grower.constraints.monotone
                values = quantile_values(grown, train, leaf_quantile, n_threads, monotone, left_out)
            nodes, bitsets = grown.tree(values, mapper, trees.room(len(values)))
            weight = rate(iteration)
            if step is not None:
                tree_scores = np.zeros(len(step_rows.scores))
                step_rows.add(tree_scores, grown, values, mapper, nodes)
                newton = newton_step(grown, values, gradients, hessians) if mean_leaves else 1.0
                weight *= step(step_rows.scores, tree_scores, newton)
            leaf_rows.scale(values, weight)
            refuse_infinite(values)  # after the last tree, no gradients would show it
            nodes["value"] = values
            grown.add(values, own_scores)
            trees.keep(len(nodes), bitsets)
            if validation is not None:
                validation.add(np.atleast_2d(validation.scores)[k], grown, values, mapper, nodes)
        if follow_train:
            train_scores.append(train.score())
        if validation is not None:
            validation_scores.append(validation.score())
        if callbacks:
            progress = Progress(
                iteration + 1,
                rounds.stop,
                train_scores[-1] if follow_train else None,
                validation_scores[-1] if validation is not None else None,
                lambda: ensemble_of(trees),
            )
            stops = [callback(progress) for callback in callbacks]
            if any(stops):
                break
    return trees, train_scores, validation_scores


def newton_step(grown: Grown, values: np.ndarray, gradients: np.ndarray, hessians: np.ndarray) -> float:
    r"""Return the Newton step along a tree, :math:`-\sum g_i f_i / \sum h_i f_i^2`; 1 if there is none.

    Both sums are rounded once, so that they do not depend on the order of the rows.
    """
    added = np.zeros(len(gradients))
    grown.add(values, added)
    slope, curvature = math.fsum(gradients * added), math.fsum(hessians * added**2)
    return -slope / curvature if curvature > 0 else 1.0


def quantile_values(
    grown: Grown,
    train: FollowedRows,
    quantile: float,
    n_threads: int,
    monotone: np.ndarray | None = None,
    left_out: np.ndarray | Sequence[int] = (),
) -> np.ndarray:
    """Return the quantile of the residuals in each leaf, without rows left out: float64[n_nodes].

    If features are monotone (their signs are ``monotone``), a split by one bounds the quantiles below it by
    the middle between those of its sides. The bounds of ``grown`` are not used: they are Newton steps, which
    for these losses say nothing about the scale of the labels.
    """
    values = grown.values
    residuals, weights = train.data.labels - train.scores, train.data.weights
    if len(left_out):
        weights = np.ones(len(residuals)) if weights is None else weights.copy()
        weights[left_out] = 0.0
    rows = residuals, weights, *grown.leaf_by_leaf()
    if not train.data.share.communicator.alone:
        rows = _rows_of_all(train.data.share.communicator, *rows)
    if monotone is not None:
        return _bounded_quantiles(grown, monotone, *rows, quantile, n_threads)
    quantiles = np.empty(np.count_nonzero(grown.is_leaf))
    losses.leaf_quantiles(*rows, quantile, quantiles, n_threads)
    values[grown.is_leaf] = quantiles
    return values


def _bounded_quantiles(
    grown: Grown,
    monotone: np.ndarray,
    residuals: np.ndarray,
    weights: np.ndarray,
    order: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    quantile: float,
    n_threads: int,
) -> np.ndarray:
    values, leaves, is_leaf = grown.values, grown.leaves, grown.is_leaf
    inner = np.flatnonzero(~is_leaf)
    children = list(zip(inner, leaves["left"][inner], leaves["right"][inner], strict=True))
    signs = np.where(is_leaf, 0, monotone[leaves["split"]["feature"]] * leaves["split"]["direction"])
    # Deal the rows so that each node has a single stretch of them.
    sizes, begins = np.zeros((2, len(leaves)), np.int64)
    sizes[is_leaf] = stops - starts
    for node, left, right in reversed(children):
        sizes[node] = sizes[left] + sizes[right]
    for node, left, right in children:
        begins[left], begins[right] = begins[node], begins[node] + sizes[left]
    walk = np.argsort(begins[is_leaf], kind="stable")
    order = np.concatenate([order[starts[leaf] : stops[leaf]] for leaf in walk])
    for depth in np.unique(leaves["depth"]):  # whose nodes do not overlap
        nodes = np.flatnonzero(leaves["depth"] == depth)
        ends, quantiles = begins[nodes] + sizes[nodes], np.empty(len(nodes))
        losses.leaf_quantiles(residuals, weights, order, begins[nodes], ends, quantile, quantiles, n_threads)
        values[nodes] = quantiles
    lower, upper = np.full(len(leaves), -np.inf), np.full(len(leaves), np.inf)
    for node, left, right in children:
        sides = [left, right]
        lower[sides], upper[sides] = lower[node], upper[node]
        values[sides] = np.clip(values[sides], lower[node], upper[node])
        wall = 0.5 * values[left] + 0.5 * values[right]
        if signs[node] > 0:
            upper[left] = lower[right] = wall
        elif signs[node] < 0:
            lower[left] = upper[right] = wall
    return np.clip(values, lower, upper)


def _rows_of_all(
    communicator: Communicator,
    residuals: np.ndarray,
    weights: np.ndarray,
    order: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Collect the rows of all ranks in each leaf, since a quantile needs every row."""
    order = np.concatenate([order[rows] for rows in map(slice, starts.tolist(), stops.tolist())])
    leaf_of = np.repeat(np.arange(len(starts)), stops - starts)
    of_rank = residuals[order], None if weights is None else weights[order], leaf_of
    gathered = communicator.allgather(of_rank)
    residuals = np.concatenate([theirs for theirs, _, _ in gathered])
    weights = None if weights is None else np.concatenate([theirs for _, theirs, _ in gathered])
    leaf_of = np.concatenate([theirs for _, _, theirs in gathered])
    ends = np.cumsum(np.bincount(leaf_of, minlength=len(starts)))
    order = np.argsort(leaf_of, kind="stable").astype(np.uint32)
    return residuals, weights, order, np.concatenate([[0], ends[:-1]]).astype(np.int64), ends.astype(np.int64)
