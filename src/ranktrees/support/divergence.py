"""What is said when scores have diverged."""

from __future__ import annotations

from typing import Any

import numpy as np

DIVERGED = (
    "The gradients of the loss have left the range of floating point: the scores have diverged. Scale "
    "y and sample_weight to a smaller range, or, in boosting, lower learning_rate."
)


def refuse_infinite(*numbers: Any) -> None:
    """Raise a ValueError which says that the scores have diverged, unless all numbers are finite."""
    if not all(np.isfinite(each).all() for each in numbers):
        raise ValueError(DIVERGED)
