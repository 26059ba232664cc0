"""How new rows differ from those that a model was fitted to, column by column."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse, special
from sklearn.base import BaseEstimator

from ranktrees.evaluation.own_models import fitted_trees
from ranktrees.rows import check_rows
from ranktrees.rows.features import keys_of
from ranktrees.rows.frames import frame_columns, holds_texts, values_of
from ranktrees.rows.values import as_seen, is_missing
from ranktrees.support.tables import pandas_for

if TYPE_CHECKING:
    import pandas as pd

    from ranktrees.support.annotations import RowsLike

TENTHS = np.arange(1, 10) / 10


def drift(reference: Any, X: RowsLike) -> pd.DataFrame:
    r"""Compare new rows with those of training, column by column.

    Parameters
    ----------
    reference : {array-like, sparse matrix, data frame} of shape (n_earlier_rows, n_features), or a model
        The rows that the model was fitted to, or a sample of them. Columns of strings are taken for category
        columns. A fitted estimator of trees, or an ensemble, knows the categories of training, but nothing
        of its numbers: what would need them is NaN.
    X : {array-like, sparse matrix, data frame} of shape (n_rows, n_features)
        The new rows, with the same columns in the same order.

    Returns
    -------
    DataFrame
        A row for each column of `X`, by its name, or its number if there are no names:

        - ``missing_before`` and ``missing``: the shares of the earlier and of the new rows without a value.
        - ``unseen``: the share of the new rows with a category that is not among the earlier ones, and that
          trees therefore treat as missing; 0 for numbers. ``unseen_categories`` has these as a tuple, the
          most frequent ones first.
        - ``outside``: the share of the new rows with a number below the least or above the largest earlier
          one; NaN for categories.
        - ``psi``: the population stability index, :math:`\sum_b (q_b - p_b) \ln(q_b / p_b)`, where
          :math:`p_b` and :math:`q_b` are the shares of the earlier and the new rows in bin :math:`b`, half a
          row being added to each bin. The bins of numbers end at the earlier deciles; each earlier category
          is a bin, and so are all others together, and missing values. By custom, less than 0.1 is little,
          and more than 0.25 is much; in few rows, or many bins, chance alone may reach these.
        - ``ks``: the largest distance between the two cumulative distributions of the values that are not
          missing (Kolmogorov and Smirnov), from 0 to 1; NaN for categories.

    Raises
    ------
    ImportError
        If pandas is not installed.
    TypeError
        If `reference` is a model of another kind.
    ValueError
        If `X` has other columns than the reference, or category columns are in no data frame.

    See Also
    --------
    ranktrees.compare_to_baseline : Whether a new model ranks new queries better.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from ranktrees.inspection import drift
    >>> earlier = pd.DataFrame({"price": np.arange(100.0), "site": ["uk", "fr"] * 50})
    >>> new = pd.DataFrame({"price": [5.0, 500.0, np.nan, 7.0], "site": ["uk", "de", "fr", "de"]})
    >>> drift(earlier, new)[["missing", "unseen", "unseen_categories", "outside"]]
           missing  unseen unseen_categories  outside
    price     0.25     0.0                ()     0.25
    site      0.00     0.5             (de,)      NaN
    """
    pd = pandas_for("drift")
    before = None
    if hasattr(reference, "predict"):
        known: Any = fitted_trees(reference)
    else:
        known = EarlierRows(reference)
        before = _Rows(known, reference, "reference")
    after = _Rows(known, X, "X")
    levels_of, found = getattr(known, "_category_levels", {}), []
    for j in range(known.n_features_in_):
        if (levels := levels_of.get(j)) is not None:
            old = None if before is None else before.categories(j)
            found.append(_of_categories(levels, old, after.categories(j)))
        else:
            numbers = None if before is None else before.numbers(j)
            found.append(_of_numbers(numbers, after.numbers(j)))
    return pd.DataFrame(found, index=pd.Index(keys_of(known) or range(len(found))))


class EarlierRows(BaseEstimator):
    """What is known of the columns of earlier rows; strings are categories."""

    def __init__(self, X: RowsLike) -> None:
        columns = frame_columns(X) or []
        self.categorical_features = [name for name, column in columns if holds_texts(column)] or None
        check_rows(self, X, reset=True, name="reference")


class _Rows:
    """The columns of rows, one at a time."""

    def __init__(self, known: Any, X: RowsLike, name: str) -> None:
        self._columns = frame_columns(X)
        if getattr(known, "_category_levels", None) and self._columns is None:
            raise ValueError(
                f"{name} is {as_seen(X)}; expected a data frame, since the reference has category columns: "
                "pass one."
            )
        rows = check_rows(known, X, reset=False, name=name)
        self._rows = rows.tocsc() if sparse.issparse(rows) else rows

    def numbers(self, j: int) -> np.ndarray:
        column = self._rows[:, [j]].toarray() if sparse.issparse(self._rows) else self._rows[:, j]
        return column.ravel().astype(np.float64)

    def categories(self, j: int) -> list[Any]:
        return values_of(self._columns[j][1])  # type: ignore[index]


def _of_categories(levels: tuple[Any, ...], before: list[Any] | None, after: list[Any]) -> dict[str, Any]:
    bin_of = {level: place for place, level in enumerate(levels)}
    unseen = Counter(value for value in after if not is_missing(value) and value not in bin_of)

    def counts(values: list[Any]) -> np.ndarray:
        other, missing = len(levels), len(levels) + 1
        bins = [missing if is_missing(value) else bin_of.get(value, other) for value in values]
        return np.bincount(bins, minlength=len(levels) + 2)

    old, new = None if before is None else counts(before), counts(after)
    return _line(
        old,
        new,
        unseen=sum(unseen.values()) / len(after),
        categories=[one for one, _ in unseen.most_common()],
    )


def _of_numbers(before: np.ndarray | None, after: np.ndarray) -> dict[str, Any]:
    from scipy import stats

    known = after[~np.isnan(after)]
    cuts, outside, distance = np.empty(0), np.nan, np.nan
    earlier = np.empty(0) if before is None else before[~np.isnan(before)]
    if len(earlier):
        cuts = np.unique(np.quantile(earlier, TENTHS, method="inverted_cdf"))
        outside = np.count_nonzero((known < earlier.min()) | (known > earlier.max())) / len(after)
        if len(known):
            distance = stats.ks_2samp(earlier, known, method="asymp").statistic

    def counts(x: np.ndarray) -> np.ndarray:
        bins = np.where(np.isnan(x), len(cuts) + 1, np.searchsorted(cuts, x))
        return np.bincount(bins, minlength=len(cuts) + 2)

    old = None if before is None else counts(before)
    return _line(old, counts(after), outside=outside, distance=distance)


def _line(
    before: np.ndarray | None,
    after: np.ndarray,
    *,
    unseen: float = 0.0,
    categories: list[Any] | tuple[()] = (),
    outside: float = np.nan,
    distance: float = np.nan,
) -> dict[str, Any]:
    """A line of the table, from the numbers of rows in each bin; those without a value are in the last."""
    index = np.nan
    if before is not None:
        p, q = ((counts + 0.5) / (counts + 0.5).sum() for counts in (before, after))
        index = float((special.rel_entr(p, q) + special.rel_entr(q, p)).sum())
    return {
        "missing_before": np.nan if before is None else before[-1] / before.sum(),
        "missing": after[-1] / after.sum(),
        "unseen": unseen,
        "unseen_categories": tuple(categories),
        "outside": outside,
        "psi": index,
        "ks": distance,
    }
