"""What a model has learned: its nodes, what features add to scores, whether other leaves rank better."""

from ranktrees.inspection.contributed import Contributions, ScoreDifference
from ranktrees.inspection.contributing import contributions, interactions
from ranktrees.inspection.moving import LocalOptimum, local_optimum
from ranktrees.inspection.nodes import tree_table

__all__ = [
    "Contributions",
    "LocalOptimum",
    "ScoreDifference",
    "contributions",
    "interactions",
    "local_optimum",
    "tree_table",
]
