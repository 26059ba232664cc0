"""Estimators made of other estimators."""

from ranktrees.meta.blend_ranker import BlendRanker
from ranktrees.meta.forest_imputer import ForestImputer
from ranktrees.meta.model_features import ModelFeatures
from ranktrees.meta.ordinal import class_probabilities, least_squares_values, nearest_rising
from ranktrees.meta.ordinal_ranker import OrdinalRanker
from ranktrees.meta.source_rows import WithSourceRows, select_source_rows

__all__ = [
    "BlendRanker",
    "ForestImputer",
    "ModelFeatures",
    "OrdinalRanker",
    "WithSourceRows",
    "class_probabilities",
    "least_squares_values",
    "nearest_rising",
    "select_source_rows",
]
