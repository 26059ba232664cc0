"""Turn labels and weights into one finite number per row, or per query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.exceptions import DataConversionWarning

from ranktrees.rows.frames import missing_mask
from ranktrees.rows.values import (
    array_of,
    as_float,
    as_seen,
    dates_in,
    is_date,
    is_missing,
    is_number,
    refuse_lazy,
)
from ranktrees.support.warning import warn

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def check_labels(y: ArrayLike, n_rows: int, name: str, rows_name: str, estimator: Any) -> np.ndarray:
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None: "
            f"{name} is None; expected one label per row."
        )
    labels = _class_names(y, name) if is_classifier(estimator) else _numbers(y, name, "label")
    if labels.ndim == 2 and labels.shape[1] == 1:
        warn(
            f"A column-vector y was passed when a 1d array was expected. Please change the shape of {name} "
            "to (n_rows,), for example using ravel().",
            DataConversionWarning,
        )
        labels = labels.ravel()
    if labels.ndim != 1:
        raise ValueError(
            f"{name} should be a 1d array, got an array of shape {labels.shape} instead; expected one label "
            "per row: fit one model per column of labels."
        )
    if len(labels) != n_rows:
        raise ValueError(
            f"{name} has length {len(labels)} but {rows_name} has {n_rows} rows: inconsistent numbers of "
            "rows; expected one label per row: drop or add the others."
        )
    if labels.dtype.kind in "fc":
        _require_finite(labels, name, "label")
    return labels


def _class_names(y: ArrayLike, name: str) -> np.ndarray:
    """Return the labels of a classifier as they are, of whatever shape."""
    missing = missing_mask(y)
    names = column_array(y, name)
    if names.dtype.kind in "US" and not hasattr(y, "dtype"):  # NumPy turns mixed values into strings
        others = [value for value in np.array(y, object).flat if not isinstance(value, str | bytes)]
        if others:
            raise ValueError(
                f"{name} holds {as_seen(others[0])} beside strings; expected classes of one kind: map "
                "them to strings or numbers first."
            )
    if missing is None and names.dtype.kind in "OmM" and names.ndim:
        missing = np.array([is_missing(value) for value in names.flat])
    if missing is not None and missing.any():
        raise _not_finite("NaN (missing)", name, "label", int(np.argmax(missing)))
    return names


def names_in(labels: np.ndarray, name: str) -> np.ndarray:
    """Return the distinct labels of a classifier, sorted."""
    if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
        raise ValueError(
            f"Unknown label type: {name} holds the fraction {labels[labels != np.floor(labels)][0]:g}; "
            "expected classes: pass a condition such as y >= 2, or learn the numbers with "
            "HistGBRTRegressor."
        )
    try:
        return np.unique(labels)
    except TypeError as error:
        raise ValueError(
            f"{name} holds labels that cannot be sorted ({error}); expected classes of one kind: map "
            "them to strings or numbers first."
        ) from error


def require_several(classes: np.ndarray, name: str) -> None:
    if len(classes) < 2:
        raise ValueError(
            f"{name} holds one class, {as_seen(classes[0])}; expected two or more: add rows of another one."
        )


def class_numbers(labels: np.ndarray, classes: np.ndarray, name: str) -> np.ndarray:
    """Return the place of each label among the classes."""
    seen, place = np.unique(labels, return_inverse=True)
    known, given = _comparable(classes, seen)
    number_of = {value: float(number) for number, value in enumerate(known)}
    unknown = [value for value in given if value not in number_of]
    if unknown:
        raise ValueError(
            f"{name} holds the label {as_seen(unknown[0])}; expected the classes of fit, "
            f"{' and '.join(as_seen(value) for value in classes)}: drop the other rows."
        )
    return np.array([number_of[value] for value in given])[place]


def _comparable(classes: np.ndarray, seen: np.ndarray) -> tuple[list[Any], list[Any]]:
    """Return the values of both; dates and durations in one unit, since libraries use different ones."""
    if classes.dtype.kind == seen.dtype.kind and seen.dtype.kind in "mM":
        unit = np.promote_types(classes.dtype, seen.dtype)
        classes, seen = classes.astype(unit), seen.astype(unit)
    return classes.tolist(), seen.tolist()


def check_weights(
    sample_weight: ArrayLike | None, n_rows: int, n_queries: int, name: str
) -> np.ndarray | None:
    if sample_weight is None:
        return None
    weights = _numbers(sample_weight, name, "weight")
    if weights.shape != (n_rows,):
        hint = "drop or add the others."
        if weights.shape == (n_queries,):
            hint = (
                f"to pass one weight for each of the {n_queries} queries, by their ids, write "
                f"{name}=pd.Series(qid).map(weight_of_id)."
            )
        raise ValueError(
            f"{name} has shape {weights.shape}; expected one weight per row, shape ({n_rows},): {hint}"
        )
    _require_finite(weights, name, "weight")
    if (weights < 0).any():
        row = int(np.argmax(weights < 0))
        raise ValueError(
            f"{name} holds the negative weight {weights[row]:g} in row {row}; expected weights >= 0: drop "
            "such rows or give them weight 0."
        )
    require_finite_sum(weights, name)
    return weights


def require_finite_sum(weights: ArrayLike, name: str) -> None:
    """Refuse weights whose sum, by which means are divided, is too large for a float.

    Parameters
    ----------
    weights : array-like of float64
        The weights, or their sum.
    name : str
        The name of the weights in the message.

    Raises
    ------
    ValueError
    """
    with np.errstate(over="ignore"):
        total = np.sum(weights)
    if np.isinf(total):
        raise ValueError(
            f"{name} adds up to more than a float can hold; expected a finite sum: scale it to a smaller "
            "range."
        )


def _numbers(values: Any, name: str, kind: str) -> np.ndarray:
    """Return labels or weights as float64, of whatever shape."""
    missing = missing_mask(values)
    if missing is not None and missing.any():
        raise _not_finite(
            "NaN (missing)", name, kind, int(np.argmax(missing.reshape(len(missing), -1).any(1)))
        )
    if sp.issparse(values):
        raise ValueError(
            f"{name} is sparse; expected a dense array of one {kind} per row: pass {name}.toarray()."
        )
    array = column_array(values, name)
    if array.dtype.kind in "USTVO" and array.size and not all(map(is_number, array.flat)):
        wrong = next(value for value in array.flat if not is_number(value))
        if is_date(wrong):
            raise dates_in(name, as_seen(wrong))
        raise ValueError(
            f"{name} holds {as_seen(wrong)}, which is not a number; expected one for each row as {kind}: "
            + (
                f"to pass one weight for each query, by their ids, write {name}=pd.Series(qid).map({name})."
                if isinstance(values, Mapping)
                else "query ids are passed by name, as qid=."
                if kind == "weight"
                else "map strings to numbers first, and convert digits with .astype(float)."
            )
        )
    return as_float(array, lambda _: name).astype(np.float64, copy=False)


def column_array(values: Any, name: str) -> np.ndarray:
    refuse_lazy(values, name, "an array or a column")
    try:
        return array_of(values)
    except ValueError as error:
        raise ValueError(
            f"{name} could not be turned into an array ({error}); expected one number per entry."
        ) from error


def _require_finite(values: np.ndarray, name: str, kind: str) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        row = int(np.argmin(finite))
        raise _not_finite("NaN" if np.isnan(values[row]) else "infinity (inf)", name, kind, row)


def _not_finite(what: str, name: str, kind: str, row: int) -> ValueError:
    return ValueError(
        f"Input {name} contains {what} in row {row}; expected a finite {kind} in every row: drop such rows."
    )
