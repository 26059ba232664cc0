"""A model: its trees as arrays, its bytes, its costs, and the scores that it gives to rows."""

from ranktrees.model.costs import FeatureCosts
from ranktrees.model.ensemble import Ensemble, Tree

__all__ = ["Ensemble", "FeatureCosts", "Tree"]
