/* Whether this thread rounds and treats subnormal numbers by IEEE 754: a library may have changed the mode. */
#ifndef RANKTREES_FLOATS_H
#define RANKTREES_FLOATS_H
#include <fenv.h>
#include <float.h>

/* Whether rounding is to nearest, and subnormal numbers are not taken for zeros, neither as results nor as operands. */
static inline int are_floats_by_standard(void) {
    volatile double one = 1, little = DBL_EPSILON / 8, least = DBL_MIN, half = least / 2;
    return one + little == 1 && one - little == 1 && half * 2 == DBL_MIN;
}

#endif
