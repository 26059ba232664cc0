"""Tell whether an estimator is fitted, and restore it if a fit fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Restore the attributes of an estimator if the code inside fails.

    A refit that is refused, interrupted or out of memory then leaves the model that was there before.

    Parameters
    ----------
    estimator : object
        Any object with a ``__dict__``. Attributes that are changed in place, rather than set anew, are not
        restored.

    Examples
    --------
    >>> from sklearn.base import BaseEstimator
    >>> from ranktrees.rows import unchanged_on_failure
    >>> ranker = BaseEstimator()
    >>> ranker.n_features_in_ = 3
    >>> try:
    ...     with unchanged_on_failure(ranker):
    ...         ranker.n_features_in_ = 5
    ...         raise ValueError
    ... except ValueError:
    ...     print(ranker.n_features_in_)
    3
    """
    attributes = vars(estimator)
    before = dict(attributes)
    try:
        yield
    except GeneratorExit:  # an interrupt after the code inside has ended; another fit may have followed
        raise
    except BaseException:
        attributes.clear()
        attributes.update(before)
        raise


def is_fitted(estimator: Any) -> bool:
    """Whether an estimator can predict as it is. An object without `fit` always can.

    If an object has `fit` but is not an estimator of scikit-learn, this cannot be known, and it counts as not
    fitted.

    Parameters
    ----------
    estimator : object

    Returns
    -------
    bool

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from ranktrees.rows import is_fitted
    >>> is_fitted(Ridge()), is_fitted(Ridge().fit([[0.0], [1.0]], [0, 1]))
    (False, True)
    """
    if not hasattr(estimator, "fit"):
        return True
    if not hasattr(estimator, "__sklearn_tags__"):
        return False
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True
