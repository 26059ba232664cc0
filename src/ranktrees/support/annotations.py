"""Types of arguments that many functions take."""

import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

RowsLike: TypeAlias = Any  # an array-like, a scipy sparse matrix or a data frame of any library
IdsLike: TypeAlias = ArrayLike | Sequence[Hashable]  # one id per row
PathLike: TypeAlias = str | os.PathLike[str]
Worth: TypeAlias = ArrayLike | str | Callable[..., Any]  # a gain or a discount: a name, a table or a function
RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None
