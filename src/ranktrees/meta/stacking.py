"""Rows of two sets, stacked one above the other: which kinds of rows there are, and which go together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, indexable

from ranktrees.rows import check_columns
from ranktrees.rows.frames import frame_columns, is_category, is_ordered, kind_of, levels_of
from ranktrees.support.numeric import unmasked

if TYPE_CHECKING:
    from ranktrees.support.annotations import RowsLike


def indexed(X: RowsLike) -> Any:
    """Return rows in a form from which rows can be taken by number; masked entries are missing values."""
    X = unmasked(X)
    return np.asarray(X) if isinstance(X, list | tuple) else indexable(X)[0]


def kind_of_rows(X: RowsLike) -> str:
    """Return the kind of rows: "sparse", "pandas", "polars", "Arrow", or else "array"."""
    if sp.issparse(X):
        return "sparse"
    if hasattr(X, "iloc"):
        return "pandas"
    if hasattr(X, "get_columns"):
        return "polars"
    return "Arrow" if hasattr(X, "column_names") else "array"


def require_same_columns(X_source: RowsLike, X: RowsLike, name: str) -> None:
    """Raise if rows cannot be stacked under those that the argument `name` holds."""
    theirs, ours = kind_of_rows(X_source), kind_of_rows(X)
    if theirs != ours:
        raise ValueError(
            f"X_source is of kind {theirs}, {name} of kind {ours}; expected the same kind of rows: convert "
            "one of them."
        )
    columns = type(name, (BaseEstimator,), {})()  # messages name this class as what has the columns
    check_columns(columns, X, reset=True)
    width = X_source.shape[1] if len(X_source.shape) == 2 else None
    if width not in (columns.n_features_in_, None):
        raise ValueError(
            f"X_source has {width} features, but {name} has {columns.n_features_in_}; expected the same "
            "columns in both: drop or add the others."
        )
    try:
        check_columns(columns, X_source, reset=False)
    except ValueError as error:
        raise ValueError(f"X_source does not match {name}: {error}") from error
    pairs = zip(frame_columns(X_source) or [], frame_columns(X) or [], strict=True)
    for (column, theirs), (_, ours) in pairs:
        if not (is_category(theirs) or is_category(ours)):
            continue
        kinds_source, kinds = _kinds(theirs), _kinds(ours)
        if not (set(kinds_source) <= set(kinds) or set(kinds) <= set(kinds_source)):
            raise ValueError(
                f"column {column!r} is {' '.join(kinds_source)} in X_source, {' '.join(kinds)} in {name}; "
                f"expected a category column in both or in neither, with levels of one kind: {_CONVERT}"
            )
    try:
        stacked(*(_safe_indexing(rows, np.arange(0)) for rows in (X_source, X)))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"X_source and {name} have columns that cannot be stacked: {error}; expected the same types in "
            f"both: {_CONVERT}"
        ) from error


_CONVERT = "convert one of them, by .astype in pandas or .cast in polars and Arrow."


def _kinds(column: Any) -> list[str]:
    """What a column must be in both sets or in neither; a column without a dtype goes with any."""
    if is_category(column):
        kinds = {kind_of(level) for level in levels_of(column)}
        is_a = f"an ordered category {tuple(column.cat.categories)}" if is_ordered(column) else "a category"
        return [is_a, *(f"of {kind}" for kind in sorted(kinds))]
    dtype = str(getattr(column, "dtype", getattr(column, "type", None)))
    return [] if dtype.lower() == "null" else [f"of dtype {dtype}"]


def stacked(above: Any, below: Any) -> Any:
    """Stack the rows of two sets of one kind; an index is dropped, with the query ids that may be in it."""
    kind = kind_of_rows(above)
    if kind == "sparse":
        return sp.vstack([above, below], format="csr")
    if kind == "pandas":
        import pandas as pd

        levels = {
            name: pd.CategoricalDtype(
                _joined(above[name].cat.categories, below[name].cat.categories), is_ordered(above[name])
            )
            for name in above.columns
            if is_category(above[name]) and is_category(below[name])
        }
        return pd.concat([above.astype(levels), below.astype(levels)], ignore_index=True)
    if kind == "polars":
        import polars as pl

        levels = {
            name: _polars_category(dtype, below.schema[name])
            for name, dtype in above.schema.items()
            if is_category(above[name]) and is_category(below[name]) and dtype != below.schema[name]
        }
        return pl.concat([above.cast(levels), below.cast(levels)], how="vertical_relaxed")
    if kind == "Arrow":
        import pyarrow as pa

        return pa.concat_tables([above, below], promote_options="permissive")
    return np.concatenate([np.asarray(above), np.asarray(below)])


def _polars_category(above: Any, below: Any) -> Any:
    """The common dtype of two columns of categories."""
    import polars as pl

    if isinstance(above, pl.Enum) and isinstance(below, pl.Enum):
        return pl.Enum(_joined(above.categories, below.categories))
    return pl.Categorical


def _joined(above: Any, below: Any) -> list[Any]:
    """The levels of both, each once; levels are equal here if they are when rows are read."""
    return list(dict.fromkeys([*above, *below]))
