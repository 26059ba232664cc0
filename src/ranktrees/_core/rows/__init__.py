"""Kernels of `ranktrees.rows`."""
