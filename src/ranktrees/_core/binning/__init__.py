"""Kernels of `ranktrees.binning`."""
