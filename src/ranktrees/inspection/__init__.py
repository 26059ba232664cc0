"""What a model has learned: its nodes, what features add and are worth, what other rows it meets."""

from ranktrees.inspection.contributed import Contributions, ScoreDifference
from ranktrees.inspection.contributing import contributions, interactions
from ranktrees.inspection.drifting import drift
from ranktrees.inspection.effects import FeatureEffect, accumulated_local_effects, partial_dependence
from ranktrees.inspection.graph import TreeGraph, tree_graph
from ranktrees.inspection.importance import Importances, importances, permutation_importance
from ranktrees.inspection.moving import LocalOptimum, local_optimum
from ranktrees.inspection.nodes import tree_table
from ranktrees.inspection.positions import PositionBias, position_bias

__all__ = [
    "Contributions",
    "FeatureEffect",
    "Importances",
    "LocalOptimum",
    "PositionBias",
    "ScoreDifference",
    "TreeGraph",
    "accumulated_local_effects",
    "contributions",
    "drift",
    "importances",
    "interactions",
    "local_optimum",
    "partial_dependence",
    "permutation_importance",
    "position_bias",
    "tree_graph",
    "tree_table",
]
