"""Which models are trees of this library, whether an estimator or an ensemble is passed."""

from __future__ import annotations

from functools import singledispatch
from os import PathLike
from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

__all__ = ["fitted_trees", "own_model", "where_trees_may_be"]


@singledispatch
def own_model(model: Any) -> Any:
    """Return the estimator of trees that a model is, frozen or not; None for another kind of model.

    The classes of such models, which are of a layer above, register themselves.

    Parameters
    ----------
    model : object
        An estimator of any kind, or an `Ensemble`.

    Returns
    -------
    FittedTrees or None

    Examples
    --------
    >>> from sklearn.frozen import FrozenEstimator
    >>> from sklearn.linear_model import Ridge
    >>> from ranktrees import RandomForestRanker
    >>> own_model(FrozenEstimator(RandomForestRanker())), own_model(Ridge())
    (RandomForestRanker(), None)
    """
    return None


@own_model.register
def _(model: FrozenEstimator) -> Any:
    return own_model(model.estimator)


def fitted_trees(model: Any) -> Any:
    """Return the fitted estimator of trees that a model is.

    Parameters
    ----------
    model : estimator or Ensemble

    Returns
    -------
    FittedTrees

    Raises
    ------
    TypeError
        If it is another kind of model.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Examples
    --------
    >>> from ranktrees import Ensemble
    >>> fitted_trees(Ensemble.from_trees([], n_features=2))
    EnsembleRanker(ensemble=Ensemble(n_trees=0, n_nodes=0, depth=0, n_features=2, base=0.0, average=False))
    """
    estimator = own_model(model)
    if estimator is None:
        raise TypeError(
            f"model is a {type(model).__name__}; expected a tree estimator of ranktrees, or an Ensemble."
            + where_trees_may_be(model)
        )
    check_is_fitted(estimator)
    return estimator


def where_trees_may_be(model: Any) -> str:
    """Return what to pass instead of a pipeline, a search or a path, as the end of a message."""
    if isinstance(model, str | PathLike):
        return " If it is the path of a file, pass Ensemble.load(path)."
    if hasattr(model, "best_estimator_"):
        return " Pass its best_estimator_."
    if hasattr(model, "named_steps"):
        return " Pass its last step, pipeline[-1], to which rows come as the steps before it transform them."
    library = type(model).__module__.partition(".")[0]
    if library in ("lightgbm", "xgboost", "catboost"):
        return f" Pass ranktrees.load_{library}(model)."
    return ""
