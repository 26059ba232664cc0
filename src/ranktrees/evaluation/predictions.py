"""Get scores for rows from a fitted model of any library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import _num_samples

from ranktrees.evaluation.own_models import own_model
from ranktrees.rows.values import as_seen, is_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ranktrees.measures.base import Measure
    from ranktrees.support.annotations import RowsLike


def score_method(model: Any, measure: Measure | None = None) -> str:
    """Return the name of the method whose numbers rank rows, for a fitted model of any library.

    It is ``predict``, except for a classifier of two classes. For this it is ``decision_function``, if there
    is one, or else ``predict_proba``, whose second column ranks. If there are more classes, ``predict``
    returns the class, which must be a number.

    Parameters
    ----------
    model : object
    measure : Measure, default=None
        What the numbers are for. An error, such as RMSE, takes probabilities rather than what
        ``decision_function`` returns, which is on a scale of its own.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If the method would be ``predict``, and the classes that it returns are not numbers.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression, Ridge
    >>> X = [[0.0], [1.0], [2.0]]
    >>> [score_method(model.fit(X, [0, 0, 1])) for model in (Ridge(), LogisticRegression())]
    ['predict', 'decision_function']
    """
    classes: Any = getattr(model, "classes_", ())
    n_classes = len(classes)
    by_order = measure is None or measure.by_order
    if (
        n_classes <= 2
        and (by_order or not hasattr(model, "predict_proba"))
        and hasattr(model, "decision_function")
    ):
        return "decision_function"
    if n_classes == 2 and hasattr(model, "predict_proba") and is_classifier(model):
        return "predict_proba"
    if not all(map(is_number, classes)) and is_classifier(model):
        raise ValueError(
            f"{type(model).__name__} predicts classes such as {as_seen(classes[0])}, by which rows cannot be "
            "ranked; expected classes that are numbers, or two with decision_function or predict_proba: map "
            "them to grades in y."
        )
    return "predict"


def scored_like(model: Any) -> dict[str, Any]:
    """Return the keywords by which `scores_by` treats models of folds like this model of all rows."""
    return {"method": score_method(model), "classes": getattr(model, "classes_", None)}


def scores_by(model: Any, X: RowsLike, method: str | None = None, classes: Any = None) -> NDArray[np.float64]:
    """Return the scores that a fitted model of any library gives to some rows.

    Parameters
    ----------
    model : object
        An estimator, or an `Ensemble`.
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
    method : str, default=None
        The method to call. If None, it is that of `score_method`. A model of a fold, which may lack a class,
        is called by the method of the model of all rows.
    classes : array-like, default=None
        The classes of all rows, if the model is of a fold. If None, they are the model's own. The probability
        of a class that the model has not seen is 0.

    Returns
    -------
    ndarray of float64, shape (n_rows,)

    Raises
    ------
    ValueError
        If the result is not one finite number per row, or if it is odds, and the model has not seen both
        classes.
    """
    model = own_model(model) or model
    method = score_method(model) if method is None else method
    name = type(model).__name__
    if method == "decision_function" and classes is not None and len(model.classes_) < len(classes):
        raise ValueError(
            f"{name} was fitted to a fold whose rows are all of class {model.classes_[0]}, so that its "
            f"decision_function does not distinguish {classes[0]} from {classes[1]}; expected both classes "
            "in the rows of every fold: use other folds, or a classifier that has only predict_proba."
        )
    if method == "predict_proba":
        predicted = probabilities_by(model, X, model.classes_ if classes is None else classes)
    else:
        predicted = getattr(model, method)(X)
    return _numbers(predicted, name, method, _num_samples(X))


def probabilities_by(model: Any, X: RowsLike, classes: Any) -> np.ndarray:
    """Return a model's probabilities, 0 for classes that its fold lacks: float64[n_rows, n_classes]."""
    predicted = np.asarray(model.predict_proba(X))
    if predicted.shape[1] != len(model.classes_):
        raise ValueError(
            f"{type(model).__name__}.predict_proba returned {predicted.shape[1]} columns, but classes_ has "
            f"{len(model.classes_)} entries; expected one column for each class: if a fold lacks a class, "
            "use other folds, or another classifier."
        )
    probabilities = np.zeros((len(predicted), len(classes)))
    probabilities[:, np.searchsorted(classes, model.classes_)] = predicted
    return probabilities


def staged_scores_by(model: Any, X: RowsLike, measure: Measure | None = None) -> Iterator[np.ndarray]:
    """Yield the same after each tree, for a model that has `score_method` in stages."""
    method = f"staged_{score_method(model, measure)}"
    for predicted in getattr(model, method)(X):
        yield _numbers(predicted, type(model).__name__, method, _num_samples(X))


def _numbers(predicted: Any, name: str, method: str, n_rows: int) -> np.ndarray:
    scores = np.asarray(predicted)
    if method.endswith("predict_proba"):
        scores = scores[:, 1]
    if scores.shape != (n_rows,) or scores.dtype.kind not in "fiub" or not np.isfinite(scores).all():
        raise ValueError(
            f"{name}.{method} returned values of shape {scores.shape} and dtype {scores.dtype}, some of them "
            "perhaps not finite; expected one finite number per row: use a model that scores rows."
        )
    return scores.astype(np.float64)
