"""Kernels of `ranktrees.measures`."""
