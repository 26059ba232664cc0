"""What a model has learned: its nodes, what features add to scores, whether other leaves rank better."""

from ranktrees.inspection.contributing import contributions
from ranktrees.inspection.moving import LocalOptimum, local_optimum
from ranktrees.inspection.nodes import tree_table

__all__ = ["LocalOptimum", "contributions", "local_optimum", "tree_table"]
