"""Asking a fitted model, whoever made it, what it says of rows."""

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import _num_samples

from ranktrees.validation.values import as_seen, is_number


def score_method(model):
    """The name of the method whose numbers rank rows, of a fitted model, whoever made it.

    It is ``predict``; but of a classifier of two classes ``decision_function``, where it has one, or else
    ``predict_proba``, of which the second column ranks. Where there are more classes, ``predict`` gives the
    class, which must be a number.

    Parameters
    ----------
    model : object

    Returns
    -------
    str

    Raises
    ------
    ValueError
        If it would be predict, which gives classes, and these are no numbers.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression, Ridge
    >>> X = [[0.0], [1.0], [2.0]]
    >>> [score_method(model.fit(X, [0, 0, 1])) for model in (Ridge(), LogisticRegression())]
    ['predict', 'decision_function']
    """
    classes = getattr(model, "classes_", ())
    n_classes = len(classes)
    if n_classes <= 2 and hasattr(model, "decision_function"):
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


def asked_of_folds(model):
    """How `scores_by` asks models of folds what it asks that of all rows: its keywords, by the latter."""
    return {"method": score_method(model), "classes": getattr(model, "classes_", None)}


def scores_by(model, X, method=None, classes=None):
    """What a fitted model, whoever made it, says of some rows.

    Parameters
    ----------
    model : object
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
    method : str, default=None
        By which method; None is `score_method`. A model of a fold, which may lack a class, is asked as that
        of all rows is.
    classes : array-like, default=None
        Those of all rows, where the model is of a fold; None are its own. The probability of one that it has
        not seen is 0.

    Returns
    -------
    ndarray of float64, shape (n_rows,)

    Raises
    ------
    ValueError
        If it is not one finite number per row, or odds of classes that the model has not seen.
    """
    method = score_method(model) if method is None else method
    name = type(model).__name__
    if method == "decision_function" and classes is not None and len(model.classes_) < len(classes):
        raise ValueError(
            f"{name} was fitted to a fold whose rows are all of class {model.classes_[0]}, so that its "
            f"decision_function does not tell {classes[0]} from {classes[1]}; expected both classes in the "
            "rows of every fold: take other folds, or a classifier that has predict_proba only."
        )
    if method == "predict_proba":
        said = probabilities_by(model, X, model.classes_ if classes is None else classes)
    else:
        said = getattr(model, method)(X)
    return _numbers(said, name, method, _num_samples(X))


def probabilities_by(model, X, classes):
    """float64[n_rows, n_classes]: what a model says of classes; 0 of those that its fold lacks."""
    said = np.asarray(model.predict_proba(X))
    if said.shape[1] != len(model.classes_):
        raise ValueError(
            f"{type(model).__name__}.predict_proba gave {said.shape[1]} columns, and its classes_ are "
            f"{len(model.classes_)}; expected one column for each: if a fold lacks a class, take other "
            "folds, or another classifier."
        )
    probabilities = np.zeros((len(said), len(classes)))
    probabilities[:, np.searchsorted(classes, model.classes_)] = said
    return probabilities


def staged_scores_by(model, X):
    """The same after each tree, of a model that has `score_method` in stages."""
    method = f"staged_{score_method(model)}"
    for said in getattr(model, method)(X):
        yield _numbers(said, type(model).__name__, method, _num_samples(X))


def _numbers(said, name, method, n_rows):
    scores = np.asarray(said)
    if method.endswith("predict_proba"):
        scores = scores[:, 1]
    if scores.shape != (n_rows,) or scores.dtype.kind not in "fiub" or not np.isfinite(scores).all():
        raise ValueError(
            f"{name}.{method} gave values of shape {scores.shape} and dtype {scores.dtype}, some of them "
            "perhaps not finite; expected one finite number per row: take a model that scores rows."
        )
    return scores.astype(np.float64)
