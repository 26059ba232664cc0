"""Kernels of `ranktrees.model`."""
