"""Slow, obvious NumPy twins of the compiled kernels: the specification they are tested against."""
