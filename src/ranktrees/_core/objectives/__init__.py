"""Kernels of `ranktrees.objectives`."""
