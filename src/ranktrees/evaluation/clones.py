"""Fit clones of any estimator, with queries and weights in the form it takes, and predict other rows."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Callable, Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import sklearn
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples

from ranktrees.evaluation.model_selection import QueryKFold
from ranktrees.measures.base import query_weights
from ranktrees.rows import carry_queries, hand_queries, query_offsets, wants_queries_together

if TYPE_CHECKING:
    from ranktrees.support.annotations import RowsLike

Fold: TypeAlias = tuple[Any, Any]  # the rows to train on, and those to predict, by number


def clone_except(estimator: Any, kept: Sequence[str]) -> Any:
    """Return a clone with some parameters that are neither cloned nor copied: both estimators share them.

    Parameters
    ----------
    estimator : BaseEstimator
    kept : list of str
        The names of parameters that are never written to, such as a fitted model. It may be one that cannot
        be copied.

    Returns
    -------
    estimator

    Examples
    --------
    >>> from sklearn.ensemble import BaggingRegressor
    >>> from sklearn.linear_model import Ridge
    >>> bagging = BaggingRegressor(Ridge())
    >>> clone_except(bagging, ["estimator"]).estimator is bagging.estimator
    True
    """
    without = copy.copy(estimator)
    vars(without).update(dict.fromkeys(kept))
    twin = BaseEstimator.__sklearn_clone__(without)
    vars(twin).update({name: getattr(estimator, name) for name in kept})
    return twin


def folds_of_rows(
    cv: Any, X: RowsLike, y: Any, queries: np.ndarray | None, stratify: bool, name: str = "cv"
) -> list[Fold]:
    """Return folds such that each row is tested in one of them. If there are queries, they are kept whole.

    Parameters
    ----------
    cv : int, splitter, iterable or None
        An int is the number of folds. If None, there are 5.
    X, y : array-like of shape (n_rows, ...)
    queries : ndarray of shape (n_rows,) or None
        The query of each row.
    stratify : bool
        Whether folds of rows have the same share of each class of ``y``.
    name : str, default="cv"
        The name of ``cv`` in error messages.

    Returns
    -------
    folds : list of (train, test)
        Arrays of row numbers.

    Raises
    ------
    ValueError
        If a row is not in exactly one test fold.

    Examples
    --------
    >>> for train, test in folds_of_rows(2, np.zeros((4, 1)), None, np.array([0, 1, 0, 1]), False):
    ...     print(train, test)
    [1 3] [0 2]
    [0 2] [1 3]
    """
    if queries is not None and (cv is None or isinstance(cv, numbers.Integral)):
        cv = QueryKFold(5 if cv is None else int(cv))
    folds = list(check_cv(cv, y, classifier=stratify).split(X, y, queries))
    n_rows = _num_samples(X)
    if not np.array_equal(np.sort(np.concatenate([test for _, test in folds])), np.arange(n_rows)):
        raise ValueError(
            f"{name}={cv!r} does not have each row in exactly one test fold; expected folds, such as "
            "QueryKFold(5): every row needs a model that has not seen it."
        )
    return folds


def fitted_clone(
    estimator: Any,
    X: RowsLike,
    y: Any,
    sample_weight: Any,
    queries: np.ndarray | None,
    **params: Any,
) -> Any:
    """Return a clone of any estimator, fitted to rows with their weights and query ids, if there are any.

    Parameters
    ----------
    estimator : estimator
    X, y : array-like of shape (n_rows, ...)
    sample_weight : array-like of shape (n_rows,) or None
    queries : ndarray of shape (n_rows,) or None
        The query of each row; see `ranktrees.rows.hand_queries`. A ranker of another library, even as
        the last step of a pipeline, gets the rows sorted by query, and with them the ids as ``group_id`` or
        ``qid``, or the number of rows of each query as ``group``. A ranker of XGBoost, which weights queries,
        gets the mean weight of each.
    **params : dict
        Further arguments of its ``fit``.

    Returns
    -------
    estimator

    Raises
    ------
    ValueError
        If there are weights, and its ``fit`` takes none; or if there are queries, and it does not pass them
        on to a ranker of another library inside it.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> fitted_clone(Ridge(), [[0.0], [1.0]], [0, 1], None, None)
    Ridge()
    """
    if sample_weight is not None:
        require_weights_taken(estimator)
    model = clone(estimator)
    step, ranker = _last_step(model)
    if queries is not None and wants_queries_together(ranker):
        order, offsets = query_offsets(queries, len(queries), by_id=True)
        if order is not None:
            rows = X, y, sample_weight, queries
            X, y, sample_weight, queries = (None if of is None else _safe_indexing(of, order) for of in rows)
        names = signature(ranker.fit).parameters
        name = next(name for name in ("group_id", "qid", "group") if name in names)
        ids = {name: np.diff(offsets) if name == "group" else queries}
        if ranker is not model:
            y, ids = _ids_for_steps(model, y, queries, step, ranker, ids)
        of_xgboost = any(kind.__module__.startswith("xgboost.") for kind in type(ranker).__mro__)
        if of_xgboost and sample_weight is not None:
            sample_weight = query_weights(np.asarray(sample_weight, np.float64), offsets)
    else:
        y, ids = hand_queries(model, "fit", y, queries)
        if queries is not None and not ids:
            _require_queries_in_reach(model)
    weights = {} if sample_weight is None else {"sample_weight": sample_weight}
    return model.fit(X, y, **weights, **ids, **params)


def _is_pipeline(model: Any) -> bool:
    from sklearn.pipeline import Pipeline

    return isinstance(model, Pipeline)


def _last_step(model: Any) -> tuple[str, Any]:
    """Return the last step of a pipeline, even of nested ones, with its path; of other models themselves."""
    path = ""
    while _is_pipeline(model):
        name, model = model.steps[-1]
        path += f"{name}__"
    return path, model


def _ids_for_steps(
    pipeline: Any, y: ArrayLike, queries: np.ndarray | None, path: str, ranker: Any, ids: dict[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """Return labels and ids for a pipeline whose last step is a ranker that takes ``ids``."""
    if not sklearn.get_config()["enable_metadata_routing"]:
        return carry_queries(y, queries), {f"{path}{name}": values for name, values in ids.items()}
    if not hasattr(ranker, "set_fit_request"):
        raise _queries_out_of_reach(pipeline, ranker)
    names = {name: f"{name}_of_last_step" for name in ids}  # earlier steps may use this name
    ranker.set_fit_request(**names)
    y, ids_of_steps = hand_queries(pipeline, "fit", y, queries)
    return y, ids_of_steps | {names[name]: values for name, values in ids.items()}


def _require_queries_in_reach(model: Any) -> None:
    """Refuse a model that contains a ranker of another library which does not get the queries."""
    inside = estimators_inside(model)
    while inside:
        one = inside.pop()
        if wants_queries_together(one):
            raise _queries_out_of_reach(model, one)
        if not {"qid", "groups"} & signature(one.fit).parameters.keys():
            inside += estimators_inside(one)


def _queries_out_of_reach(model: Any, ranker: Any) -> ValueError:
    return ValueError(
        f"{type(model).__name__} does not pass query ids on to the {type(ranker).__name__} inside it; "
        "expected this ranker itself, or a pipeline whose last step it is (if scikit-learn's metadata "
        "routing is enabled, it needs set_fit_request): pass one of these, or a ranker of this library."
    )


def estimators_inside(model: Any) -> list[Any]:
    """Return the estimators to which a search, a mean or a subset of features passes rows and labels."""
    if _is_pipeline(model):
        inside = [model.steps[-1][1]]
    elif isinstance(model, FrozenEstimator):
        inside = []
    elif isinstance(getattr(model, "estimators", None), list) and not hasattr(model, "final_estimator"):
        inside = [pair[-1] for pair in model.estimators]
    else:
        inside = [getattr(model, name, None) for name in ("estimator", "regressor")]
    return [one for one in inside if hasattr(one, "fit")]


def require_weights_taken(estimator: Any, name: str = "sample_weight") -> None:
    """Refuse weights, passed as the argument `name`, for an estimator whose ``fit`` takes none.

    This is judged by signatures. For an estimator that passes on its arguments, those inside are checked, but
    a pipeline passes weights on only by metadata routing.
    """
    parameters = signature(estimator.fit).parameters
    if "sample_weight" in parameters:
        return
    passes_on = any(of.kind == of.VAR_KEYWORD for of in parameters.values())
    if _is_pipeline(estimator):
        passes_on = sklearn.get_config()["enable_metadata_routing"]
        inside = []  # any of its steps may ask for them
    else:
        inside = estimators_inside(estimator)
    if not passes_on:
        raise weights_not_taken(estimator, name)
    for one in inside:
        require_weights_taken(one, name)


def weights_not_taken(estimator: Any, name: str = "sample_weight") -> ValueError:
    """Return the error that says so, for weights passed as the argument `name`."""
    return ValueError(
        f"{name} is given, but the fit of {type(estimator).__name__} takes no weights; expected an estimator "
        "that takes them: pass another one, or leave the weights out. A step of a pipeline gets them by "
        "metadata routing."
    )


def predict_out_of_fold(
    estimators: Sequence[tuple[Any, Callable[..., Any], Any]],
    X: RowsLike,
    y: Any,
    queries: np.ndarray | None,
    folds: Sequence[Fold],
    n_jobs: int | None = 1,
) -> list[np.ndarray]:
    """Predict each row by a model that has not seen it: a clone fitted to the other folds.

    Parameters
    ----------
    estimators : list of (estimator, callable, array-like of shape (n_rows,) or None)
        ``predict(model, rows)`` returns the predictions of a clone, an array of shape (n_rows, ...), which
        was fitted with the weights that follow.
    X, y : array-like of shape (n_rows, ...)
    queries : ndarray of shape (n_rows,) or None
        The query of each row; see `fitted_clone`.
    folds : list of (train, test)
        As returned by `folds_of_rows`.
    n_jobs : int or None, default=1
        The number of clones, of all estimators and folds, that joblib fits at the same time.

    Returns
    -------
    list of ndarray of shape (n_rows, ...)
        One array for each estimator.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> means = [(DummyRegressor(), lambda model, rows: model.predict(rows), None)]
    >>> folds = [([0, 1], [2, 3]), ([2, 3], [0, 1])]
    >>> predict_out_of_fold(means, np.zeros((4, 1)), np.array([0.0, 1.0, 2.0, 3.0]), None, folds)
    [array([2.5, 2.5, 0.5, 0.5])]
    """
    predicted = iter(
        Parallel(n_jobs=n_jobs)(
            delayed(_predict_fold)(estimator, predict, (X, y, weights, queries), *fold)
            for estimator, predict, weights in estimators
            for fold in folds
        )
    )
    places = np.argsort(np.concatenate([test for _, test in folds]))
    return [np.concatenate([next(predicted) for _ in folds])[places] for _ in estimators]


def _predict_fold(
    estimator: Any, predict: Callable[..., Any], rows: tuple[Any, ...], train: Any, test: Any
) -> np.ndarray:
    model = fitted_clone(estimator, *(None if of is None else _safe_indexing(of, train) for of in rows))
    return predict(model, _safe_indexing(rows[0], test))
