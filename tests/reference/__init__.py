"""Slow, obvious NumPy twins of the compiled kernels: the specification that these are tested against."""
