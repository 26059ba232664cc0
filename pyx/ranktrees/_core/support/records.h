/* Records that both the C headers and the kernels use. Like all others, they are declared in records.pxd. */
#ifndef RANKTREES_RECORDS_H
#define RANKTREES_RECORDS_H

#include <stdint.h>

enum { SHORTLIST = 4 }; /* the most features of a leaf that are refined together */

typedef struct {
    int64_t gradient;
    uint32_t hessian, count;
} Bin;

typedef struct {
    int32_t byte, stride, radix, feature, first, last;
} Digit;

typedef struct {
    int64_t first_pair, stop_pair;
    int32_t feature, first, n_cells, last, usual, unused;
} Member;

typedef struct {
    int64_t first_byte;
    const int64_t *first_member;
    const Member *members;
    const uint8_t *values;
    const int32_t *cells;
} JointBytes;

typedef struct {
    double value, mass, gradient, hessian;
} Centroid;

#endif
