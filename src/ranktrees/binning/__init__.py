"""From values to codes: where bins end, and which bin a value is in."""

from ranktrees.binning.mapper import BinMapper

__all__ = ["BinMapper"]
