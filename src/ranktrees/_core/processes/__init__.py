"""Kernels of `ranktrees.processes`."""
