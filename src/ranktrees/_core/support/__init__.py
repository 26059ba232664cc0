"""Kernels of `ranktrees.support`."""
