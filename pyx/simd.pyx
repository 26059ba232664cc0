"""Which registers the kernels use; see simd.h."""

cdef extern from "simd.h":
    int simd_of_processor()
    int simd_level()

LEVELS = ("portable", "avx2", "avx512")


def of_processor():
    """The widest that this processor has, one of ``LEVELS``."""
    return LEVELS[simd_of_processor()]


def level():
    """The one in use: that of the processor, or what RANKTREES_SIMD holds it down to."""
    return LEVELS[simd_level()]
