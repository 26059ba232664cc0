"""Kernels of `ranktrees.inspection`."""
