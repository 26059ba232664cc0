"""The width of the registers that the kernels use; see simd.h."""

cdef extern from "support/simd.h":
    int simd_supports(int level)
    int simd_level()

LEVELS = ("portable", "neon", "avx2", "avx512")


def supported():
    """The levels that this processor supports, the widest last."""
    return [level for number, level in enumerate(LEVELS) if simd_supports(number)]


def level():
    """The level in use: the widest, unless RANKTREES_SIMD names another one."""
    return LEVELS[simd_level()]
