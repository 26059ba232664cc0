/* What each feature adds to the value of a tree, and what pairs of features do, for several rows together.
 *
 * A walk enters the splits of a tree, each before those below it, and leaves each after these. What a split does to a
 * row depends on whether the row is on its way (it takes all ways above that ask for the same feature), and on where it
 * goes:
 *
 *   way       | 0: not on its way | 1: left | 2: right
 *   through   | what the product over features is multiplied by, for the splits below, at each point
 *   adds      | what a child adds to the contribution of the feature for each unit of value below it, at each point
 *
 * Children that are leaves are one part of their parent's table: their values times ``through``, and that times
 * ``adds``. Tables hold the bits for way 0 and what has to be flipped in them for the other two, so that a choice is
 * made by masks. Each row keeps to its own lane, so that neither the width of registers nor the other rows change a bit
 * of its result. All that is written by the walk is as deep as the tree, and stays in the nearest cache. */
#ifndef RANKTREES_PATHS_H
#define RANKTREES_PATHS_H

#include <stdint.h>

#include "support/simd.h"

typedef struct {
    double cut;
    const uint32_t *bits; /* the codes that go left, if the feature is categorical, else NULL */
    int32_t place;        /* of the feature, among those that the trees ask for */
    int32_t column;       /* of its values, or of their codes */
    int32_t depth;        /* 0 for the root */
    int32_t above;        /* 2 depth + side of the nearest way above for the same feature; -1 if there is none */
    uint8_t missing_left, has_leaf;
} Fork;

typedef struct {
    int64_t n_forks, n_points, n_levels; /* levels: the depth of the deepest fork, plus 1 */
    int64_t n_places, n_columns;         /* of all trees */
    const Fork *forks;                   /* in the order of the walk */
    const int64_t *tables;               /* by fork: ``through``, the two of its leaves, and ``adds`` */
    const double *weights;               /* of the points */
} Paths;

enum { THROUGH = 0, LEAVES = 3, LEAVES_ADD = 6, ADDS = 9, IN_TABLES = 12 }; /* in units of n_points */

/* Each pair has one number, in whatever order its features are, and a feature by itself counts as a pair. */
INLINE int64_t number_of_pair(int64_t i, int64_t j) { return i < j ? j * (j + 1) / 2 + i : i * (i + 1) / 2 + j; }

#define OF(name) name##_by_two
#define TARGET
#define N_LANES 2
#include "inspection/paths_of_width.h"

#if HAS_X86
#define OF(name) name##_by_four
#define TARGET FOR_AVX2
#define N_LANES 4
#include "inspection/paths_of_width.h"

#define OF(name) name##_by_eight
#define TARGET FOR_AVX512
#define N_LANES 8
#include "inspection/paths_of_width.h"
#endif

/* The number of rows in a block. */
static inline int n_lanes(void) { return simd_level() == AVX512 ? 8 : simd_level() == AVX2 ? 4 : 2; }

/* The number of doubles that a walk needs. */
static inline int64_t room_needed(const Paths *paths) {
    return paths->n_levels * ((2 + 4 * paths->n_points) * n_lanes() + 1);
}

/* Add what the features of a tree add. values and out: by block, feature or pair of features,
 * and lane. */
static inline void contribute(const Paths *paths, int64_t n_blocks, int in_pairs, double *room, const double *values,
                              double *out) {
#if HAS_X86
    if (simd_level() == AVX512)
        contribute_by_eight(paths, n_blocks, in_pairs, room, values, out);
    else if (simd_level() == AVX2)
        contribute_by_four(paths, n_blocks, in_pairs, room, values, out);
    else
#endif
        contribute_by_two(paths, n_blocks, in_pairs, room, values, out);
}

#endif
