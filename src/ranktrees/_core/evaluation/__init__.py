"""Kernels of `ranktrees.evaluation`."""
