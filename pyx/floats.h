/* How this thread's processor rounds, and whether it keeps the least numbers: libraries may have changed it. */
#ifndef RANKTREES_FLOATS_H
#define RANKTREES_FLOATS_H
#include <fenv.h>
#include <float.h>

/* To the nearest, and the least are no zeros, neither as results nor where they are read. */
static inline int are_floats_by_standard(void) {
    volatile double one = 1, little = DBL_EPSILON / 8, least = DBL_MIN, half = least / 2;
    return one + little == 1 && one - little == 1 && half * 2 == DBL_MIN;
}

#endif
