"""Where the compiled kernels land (their sources are in ``pyx/``)."""
