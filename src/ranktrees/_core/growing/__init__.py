"""Kernels of `ranktrees.growing`."""
