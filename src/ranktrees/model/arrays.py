"""What files, scorers and costs read of a model: the arrays of an `~ranktrees.model.ensemble.Ensemble`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray


class ModelArrays(Protocol):
    """Trees as arrays, and what is known of the columns. `Ensemble` has all of it, and says what it means."""

    n_features: int
    base: float
    average: bool
    link: str | None

    @property
    def nodes(self) -> NDArray[Any]: ...

    @property
    def tree_offsets(self) -> NDArray[Any]: ...

    @property
    def bitsets(self) -> NDArray[Any]: ...

    @property
    def categories(self) -> Sequence[Any]: ...

    @property
    def category_table(self) -> tuple[NDArray[Any], NDArray[Any]]: ...

    @property
    def category_codes(self) -> NDArray[Any]: ...

    @property
    def n_codes(self) -> NDArray[Any]: ...

    @property
    def feature_names(self) -> tuple[str, ...] | None: ...

    @property
    def category_levels(self) -> Mapping[int, tuple[Any, ...]]: ...

    @property
    def n_trees(self) -> int: ...

    @property
    def scorer(self) -> Any: ...

    @property
    def leaf_scorer(self) -> Any: ...
