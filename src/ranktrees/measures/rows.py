"""From what users pass, rows in any order, to labels, scores and weights by query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ranktrees.rows import (
    qid_of,
    query_offsets,
    require_finite_sum,
)
from ranktrees.rows.values import array_of, as_seen, is_date, refuse_lazy
from ranktrees.support.warning import FitWarning, warn

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from ranktrees.support.annotations import IdsLike


def numbers_in(name: str, values: Any, of: str = "row") -> np.ndarray:
    """Return numbers of any shape as float64; masked ones become NaN."""
    refuse_lazy(values, name, "an array or a column")
    if hasattr(values, "predict"):
        raise ValueError(
            f"{name} is a model, {as_seen(values)}; expected numbers, one per {of}: pass what its predict(X) "
            "returns."
        )
    if isinstance(values, Mapping) or {"query", "id"} <= {*getattr(values, "columns", ())}:
        raise ValueError(
            f"{name} must be numbers, one per {of}, not {as_seen(values)}: runs and judgements are joined "
            "by judged_rows(run, qrels), whose columns label, score and query are what measures take"
        )
    try:
        given = array_of(values, np.asanyarray)
        if given.dtype.kind == "c":
            raise TypeError("complex numbers have no order")
        if given.dtype.kind in "mM" or _has(given, is_date):
            # NaT would be the lowest of them, and those of an object array have units of their own
            raise TypeError(
                "dates and durations are not numbers; convert them, for instance to days since a date"
            )
        numbers = given.astype(np.float64, copy=False)
        if given.dtype.kind in "SU" or _has(given, lambda value: isinstance(value, str | bytes)):
            # fit refuses them, too
            raise TypeError("strings are not numbers, even if they spell one; convert them")
        if isinstance(numbers, np.ma.MaskedArray):
            numbers = numbers.filled(np.nan)
        if given.dtype.kind in "iu" and _are_rounded_to_ties(given, numbers):
            raise ValueError("different integers above 2**53 would become equal; subtract an offset")
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be numbers, one per {of}: {error}") from error
    return numbers


def _has(array: np.ndarray, is_wrong: Callable[[Any], bool]) -> bool:
    """Whether an array of objects holds such a value."""
    return array.dtype.kind == "O" and any(map(is_wrong, array.flat))


def _are_rounded_to_ties(integers: np.ndarray, floats: np.ndarray) -> bool:
    large = (floats >= 2.0**53) | (floats <= -(2.0**53))
    return bool(large.any()) and len(np.unique(floats[large])) < len(np.unique(integers[large]))


def column(name: str, values: Any, finite: bool = True) -> np.ndarray:
    """Return one number per row, as float64."""
    numbers = np.ascontiguousarray(numbers_in(name, values))
    if np.ndim(values) != 1:
        raise ValueError(
            f"{name} must have one dimension, got shape {np.shape(values)}: pass a column, or ravel it"
        )
    if name == "y_score" and getattr(values, "name", None) == "rank":
        warn(
            'y_score is a column "rank", of which the lowest is the best, but the highest score ranks first: '
            "pass the scores, or minus the ranks.",
            FitWarning,
        )
    wrong = ~np.isfinite(numbers) if finite else np.isnan(numbers)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name} must not be NaN{' or infinite' * finite}, got {numbers[row]} in row {row}")
    return numbers


def checked_rows(
    y_true: ArrayLike, n_rows_of: dict[str, np.ndarray], qid: IdsLike | None, sample_weight: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray, np.ndarray | None]:
    """Return labels, order, offsets and weights; the labels and the weights are grouped by query."""
    labels = column("y_true", y_true)
    n = len(labels)
    if n == 0:
        raise ValueError("y_true is empty: a measure needs at least one row")
    for name, values in n_rows_of.items():
        if len(values) != n:
            raise ValueError(f"{name} has {len(values)} rows, but y_true has {n}: pass one score per label")
        if name != "X" and n >= 10 and not _are_whole(labels).any() and _are_grades(values):
            warn(
                f"y_true holds fractions only, and {name} grades only: labels come first, and scores second.",
                FitWarning,
            )
    if qid is None:
        qid = qid_of(y_true)
    order, offsets = (None, np.array([0, n])) if qid is None else query_offsets(qid, n)
    weights = None
    if sample_weight is not None:
        weights = column("sample_weight", sample_weight)
        if len(weights) != n:
            raise ValueError(
                f"sample_weight has {len(weights)} rows, but y_true has {n}: pass one weight per row"
            )
        if (weights < 0).any():
            raise ValueError(f"sample_weight must be >= 0, got {weights.min():g}")
        require_finite_sum(weights, "sample_weight")
        weights = arranged(order, weights)
    return arranged(order, labels), order, offsets, weights


def _are_whole(numbers: np.ndarray) -> np.ndarray:
    return numbers == np.rint(numbers)


def _are_grades(numbers: np.ndarray) -> bool:
    """Whether these are what labels usually are: a few whole numbers from 0 on, and not all the same."""
    return bool((numbers >= 0).all() and _are_whole(numbers).all()) and 1 < len(np.unique(numbers)) <= 32


def arranged(order: np.ndarray | None, values: np.ndarray) -> np.ndarray:
    return values if order is None else values[order]


def read_only(array: np.ndarray) -> np.ndarray:
    """Return a view of an array that a user's function cannot write to."""
    view = array.view()
    view.flags.writeable = False
    return view
