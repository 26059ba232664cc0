"""Pictures of models and rankings, by the convention of scikit-learn's displays.

``from_estimator`` and ``from_predictions`` compute and draw. What they have computed is an attribute, a
result as the function for it returns. `plot` draws it again, and sets ``ax_`` and ``figure_``.
"""

from ranktrees.displays.of_models import (
    CostCurveDisplay,
    ImportanceDisplay,
    LearningCurvesDisplay,
    PartialDependenceDisplay,
    PositionBiasDisplay,
    TreeDisplay,
)
from ranktrees.displays.of_rankings import (
    CutoffDisplay,
    PairedDifferenceDisplay,
    RelevanceCalibrationDisplay,
)

__all__ = [
    "CostCurveDisplay",
    "CutoffDisplay",
    "ImportanceDisplay",
    "LearningCurvesDisplay",
    "PairedDifferenceDisplay",
    "PartialDependenceDisplay",
    "PositionBiasDisplay",
    "RelevanceCalibrationDisplay",
    "TreeDisplay",
]
