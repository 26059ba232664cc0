"""What a model has learned: its nodes, what features add to scores, what other rows it meets."""

from ranktrees.inspection.contributing import contributions
from ranktrees.inspection.drifting import drift
from ranktrees.inspection.moving import LocalOptimum, local_optimum
from ranktrees.inspection.nodes import tree_table

__all__ = ["LocalOptimum", "contributions", "drift", "local_optimum", "tree_table"]
