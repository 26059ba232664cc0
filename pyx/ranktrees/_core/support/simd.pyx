"""The width of the registers that the kernels use; see simd.h."""

cdef extern from "support/simd.h":
    int simd_of_processor()
    int simd_level()

LEVELS = ("portable", "avx2", "avx512")


def of_processor():
    """The widest level that this processor supports, one of ``LEVELS``."""
    return LEVELS[simd_of_processor()]


def level():
    """The level in use: that of the processor, unless RANKTREES_SIMD limits it."""
    return LEVELS[simd_level()]
