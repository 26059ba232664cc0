"""Warnings about fits that do what was asked, but hardly what was meant. The fit goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees.support.spelling import spelt
from ranktrees.support.warning import FitWarning, warn

if TYPE_CHECKING:
    from ranktrees.binning.mapper import BinMapper
    from ranktrees.measures.base import Measure
    from ranktrees.model.ensemble import Ensemble
    from ranktrees.processes.sharing import Share

__all__ = [
    "NEVER_OUT_OF_BAG",
    "warn_of_grades",
    "warn_of_levels",
    "warn_of_no_more_trees",
    "warn_of_no_stopping",
    "warn_of_odds",
    "warn_of_samples",
    "warn_of_start",
    "warn_of_trees",
    "warn_of_weights",
]

NEVER_OUT_OF_BAG = "rows are in the samples of all trees"

HIGHEST_GRADE = 31  # about the highest that LightGBM and XGBoost accept

SUREST = 745.0  # e^-745 is the smallest probability that a float holds

LEAST = ("min_gain_to_split", "min_hessian_to_split")  # parameters of boosting only

STOPPING = ("scoring", "n_iter_no_change", "tol", "validation_fraction")  # used for early stopping only

RARE, FAR = 0.01, 50.0  # rows of which so few are drawn, beside weights so many times as high as the mean

LIGHT = 0.1  # with a mean weight below this, l2_regularization outweighs most of the loss


def warn_of_weights(
    weights: np.ndarray | None, l2_regularization: float, gradient_sampling: float | None
) -> None:
    """Warn if rows weigh so little that the trees hardly move, or that they are hardly ever drawn.

    ``l2_regularization`` is added to sums of weighted hessians, so it is on their scale.

    Parameters
    ----------
    weights : ndarray of float64, shape (n_rows,), or None
    l2_regularization : float
    gradient_sampling : float or None
    """
    if weights is None or not weights.any():
        return
    weights = weights[weights > 0]
    mean, highest = weights.mean(), weights.max()
    if gradient_sampling is not None:
        # rows are drawn by their hessians at least, which are about proportional to the weights
        share = np.minimum(1.0, gradient_sampling * (weights / max(highest, 8.0 * mean))).mean()
        if share < RARE and highest > FAR * mean:
            warn(
                f"sample_weight reaches {highest:.3g}, and is {mean:.3g} on average: gradient_sampling draws "
                f"rows by their weighted gradients, about {100 * share:.2g} % of them for each tree, so that "
                "hardly anything is learned from others. Set gradient_sampling=None, or clip the weights.",
                FitWarning,
            )
    if l2_regularization and mean < LIGHT:
        warn(
            f"sample_weight is {mean:.3g} on average, and l2_regularization={l2_regularization:g} is "
            "added to sums of weights: trees hardly learn. Divide the weights by their mean, or set "
            "l2_regularization=0.",
            FitWarning,
        )


def warn_of_levels(mapper: BinMapper, names: Sequence[str], unit: str) -> None:
    """Warn of categorical features that say nothing, as no two rows of different folds share a level.

    Parameters
    ----------
    mapper : BinMapper
    names : sequence of str
        The names of the columns of X, if they have names.
    unit : {"query", "row"}
        What is in a fold as a whole.
    """
    called = mapper.of_features(np.array(names or range(mapper.n_columns), object))
    for feature, levels in mapper.levels.items():
        if not len(levels.values):
            warn(
                f"each level of the categorical feature {called[feature]!r} is in a single {unit}, so that "
                "nothing can be learned from it about others: leave out the feature, which may be an "
                "identifier, or do not declare it categorical.",
                FitWarning,
            )


def warn_of_grades(measure: Measure | None, labels: np.ndarray | None, offsets: np.ndarray) -> None:
    """Warn of labels that can hardly be grades, if a measure takes them as such.

    Parameters
    ----------
    measure : Measure or None
    labels : ndarray of shape (n_rows,), or None
    offsets : ndarray of shape (n_queries + 1,)
        Query q is rows ``offsets[q]:offsets[q + 1]``.
    """
    if measure is None or labels is None:
        return
    measure.warn_of_labels(labels)
    if measure.by_query and _are_ranks(labels, offsets):
        warn(
            "the labels of each query are 1, 2, 3, ..., each once, as if they were ranks, and the highest is "
            "taken for the best. If 1 is the best rank, pass the number of rows of the query minus the rank, "
            "and otherwise labels from 0.",
            FitWarning,
        )
    highest = labels.max(initial=0)
    if highest > HIGHEST_GRADE and measure.parameters.get("gain") == "exp2":
        warn(
            f"labels reach {highest:g}, and with gain='exp2' (2^label - 1) the highest outweighs all others; "
            "for counts and the like pass ranks, or a measure with another gain: NDCG(gain='linear'), say.",
            FitWarning,
        )


def _are_ranks(labels: np.ndarray, offsets: np.ndarray) -> bool:
    """Whether the labels of each query are 1, ..., n, each once, in queries of which some have three rows."""
    sizes = np.diff(offsets)
    if sizes.max(initial=0) < 3 or labels.min() != 1 or labels.max() != sizes.max():
        return False
    if not ((labels <= np.repeat(sizes, sizes)) & (labels == np.floor(labels))).all():
        return False
    places = np.repeat(offsets[:-1], sizes) + labels.astype(np.int64) - 1
    return bool((np.bincount(places, minlength=len(labels)) == 1).all())


def warn_of_no_stopping(estimator: Any) -> None:
    """Warn of parameters of early stopping that have no effect, as there are no rows to stop by.

    Parameters
    ----------
    estimator : estimator
        One that boosts, and has no validation rows.
    """
    if estimator.early_stopping != "auto":
        return
    given = {name: getattr(estimator, name) for name in STOPPING}
    if given["scoring"] is None:  # which is the default
        given.pop("scoring")
    if idle := [name for name, one in given.items() if one != getattr(type(estimator), name)]:
        warn(
            f"{idle[0]}={given[idle[0]]!r} has no effect: it is about early stopping, for which "
            "there are no validation rows. Pass X_val, y_val and qid_val to fit, or set early_stopping=True, "
            "which holds out a share of the queries.",
            FitWarning,
        )


def warn_of_no_more_trees(n_earlier: int, n_asked: int, name: str) -> None:
    """Warn if a warm start adds no tree, since the number asked for was not raised.

    Parameters
    ----------
    n_earlier : int
        The number of trees that the model has.
    n_asked : int
    name : str
        The parameter that says how many trees there shall be.
    """
    if n_earlier == n_asked:
        warn(
            f"{name}={n_asked} is the number of trees that the model has already, so that warm_start=True "
            f"adds none, and nothing is learned from these rows: raise {name}.",
            FitWarning,
        )


def warn_of_samples(scores: np.ndarray, unit: str) -> None:
    """Warn if out-of-bag scores are of some rows of a query only, as the score is then of shorter queries.

    Parameters
    ----------
    scores : ndarray of float64, shape (n_rows,)
        The out-of-bag scores; NaN for rows that are in the samples of all trees.
    unit : {"row", "query"}
        What the bootstrap draws. If whole queries are drawn, no query is shortened.
    """
    if unit == "row" and (n_never := np.count_nonzero(np.isnan(scores))):
        warn(
            f"{n_never} of {len(scores)} {NEVER_OUT_OF_BAG}, and oob_score_ leaves them out: it is that of "
            "shorter queries, in which it is easier to rank well. Grow more trees, or draw whole queries "
            'with bootstrap_unit="query".',
            FitWarning,
        )


def warn_of_start(estimator: Any, monotonic_cst: Any, predicted: str) -> None:
    """Warn of a start that may violate the ``monotonic_cst`` that the trees obey.

    Parameters
    ----------
    estimator : estimator
        The estimator that is being fitted.
    monotonic_cst : str
        The constraints of the model that boosting starts from, as text (`ranktrees.support.spelling.spelt`).
    predicted : str
        What messages call its predictions, as in "... predicts".
    """
    asked = estimator.monotonic_cst
    if asked is not None and spelt(asked) != monotonic_cst:
        warn(
            "monotonic_cst holds for the trees that are added, but scores are the sum of these and of what "
            f"{predicted}, which does not have the same monotonic_cst: scores may still rise and fall.",
            FitWarning,
        )


def warn_of_trees(estimator: Any, ensemble: Ensemble, share: Share) -> None:
    """Warn of trees none of which has a split, so that they score all rows alike.

    Parameters
    ----------
    estimator : estimator
    ensemble : Ensemble
        The trees that were grown.
    share : Share
        The part of the rows of all ranks that were learned from.
    """
    if not len(ensemble) or np.any(ensemble.nodes["left"] >= 0):
        return
    least, n_rows = int(estimator.min_samples_leaf), share.n_rows
    if share.n_queries == n_rows > 1 and estimator._is_ranker and hasattr(estimator, "loss"):
        reason = (
            f"each of the {n_rows} rows is a query of its own, in which there is nothing to rank: pass ids "
            "that the rows of a query share"
        )
    elif n_rows < 2 * least:
        reason = (
            f"there are {n_rows} rows, and with min_samples_leaf={least} a split needs {2 * least}: lower it"
        )
    elif estimator.feature_costs is not None and estimator.cost_rule == "worth" and estimator.cost_weight > 0:
        reason = (
            f"no split gained what its feature costs, times cost_weight={estimator.cost_weight:g}: lower "
            "that, or pass cost_rule='rank', or look at the labels, the features and min_samples_leaf"
        )
    elif limits := [f"{name}={value:g}" for name in LEAST if (value := getattr(estimator, name, 0))]:
        reason = (
            f"no split satisfied {' and '.join(limits)}: lower that; gains and hessians scale with the loss "
            "and with sample_weight"
        )
    else:
        reason = (
            "no split of any feature gained anything; look at the labels, which must differ within queries "
            "where a ranking is learned, at the features, and at min_samples_leaf"
        )
    warn(
        f"{type(estimator).__name__} learned nothing: none of its {len(ensemble)} trees has a split, so that "
        f"they score all rows alike; {reason}.",
        FitWarning,
    )


def warn_of_odds(ensemble: Ensemble) -> None:
    """Warn of leaves that add so much to log odds that a probability is 0 or 1, whatever other trees add.

    Such a leaf holds rows for which the earlier trees were sure of the wrong class: their hessians, by which
    a step is divided, are almost 0.

    Parameters
    ----------
    ensemble : Ensemble
        The trees that were grown with the logistic loss.
    """
    largest = np.abs(ensemble.nodes["value"]).max(initial=0.0)
    if largest > SUREST:
        warn(
            f"a leaf adds {largest:.3g} to the log odds of its rows, of which the trees before were sure, "
            "and wrong: probabilities are 0 or 1 there, whatever other trees add. Lower learning_rate, or "
            "raise l2_regularization.",
            FitWarning,
        )
