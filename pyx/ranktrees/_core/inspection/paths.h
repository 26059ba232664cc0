/* What each feature adds to the value of a tree, for one row after the other.
 *
 * An edge has the number of the node that it leads to. What it does to a row depends on whether the row goes that way
 * (and all ways above that ask for the same feature), and whether it goes the nearest such way above:
 *
 *   way       | 0: neither | 1: above, but not here | 2: both
 *   through   | what the product over features is multiplied by, at each point
 *   adds      | what is added to the contribution of the feature for each unit of value below, at each point
 *
 * Points are filled up to a multiple of LANES with weights of 0, so that registers of any width hold whole parts of
 * them. Products and sums stay apart by point until the end, so the width does not change a bit of the result. */
#ifndef RANKTREES_PATHS_H
#define RANKTREES_PATHS_H

#include <stdint.h>
#include <string.h>

#include "support/records.h"
#include "support/simd.h"

enum { LANES = 4 }; /* the number of points is a multiple */
typedef double Lanes __attribute__((vector_size(8 * LANES), aligned(8), may_alias));

typedef struct {
    int64_t n, n_lanes, n_features; /* of nodes, of LANES points each, and of features that the tree asks for */
    const int32_t *parent, *above;  /* by edge */
    const int32_t *place;           /* by edge: the number of its feature among those of the tree */
    const double *through, *adds;   /* by edge, way and point */
    const double *value;            /* by node; 0 for nodes that are split */
} Paths;

/* goes: by edge, whether the row takes it, were it there. out: by feature of the tree. The rest is room. */
INLINE void contribute_at(const int64_t n_lanes, const Paths *RESTRICT paths, uint8_t *RESTRICT goes,
                          Lanes *RESTRICT products, Lanes *RESTRICT below, Lanes *RESTRICT sums,
                          double *RESTRICT out) {
    const Lanes *through = (const Lanes *)paths->through, *adds = (const Lanes *)paths->adds;
    goes[0] = 1;
    for (int64_t p = 0; p < n_lanes; p++)
        products[p] = (Lanes){1.0, 1.0, 1.0, 1.0};
    for (int64_t edge = 1; edge < paths->n; edge++) {
        const uint8_t goes_above = goes[paths->above[edge]];
        goes[edge] &= goes_above;
        const int64_t way = 3 * edge + goes[edge] + goes_above, parent = paths->parent[edge];
        for (int64_t p = 0; p < n_lanes; p++) {
            const Lanes product = products[parent * n_lanes + p] * through[way * n_lanes + p];
            products[edge * n_lanes + p] = product;
            below[edge * n_lanes + p] = paths->value[edge] * product;
        }
    }
    memset(sums, 0, sizeof(Lanes) * (size_t)(paths->n_features * n_lanes));
    for (int64_t edge = paths->n - 1; edge > 0; edge--) {
        const int64_t way = 3 * edge + goes[edge] + goes[paths->above[edge]];
        const int64_t parent = paths->parent[edge], place = paths->place[edge];
        for (int64_t p = 0; p < n_lanes; p++) {
            const Lanes total = below[edge * n_lanes + p];
            below[parent * n_lanes + p] += total;
            sums[place * n_lanes + p] += total * adds[way * n_lanes + p];
        }
    }
    for (int64_t feature = 0; feature < paths->n_features; feature++) {
        Lanes sum = sums[feature * n_lanes];
        for (int64_t p = 1; p < n_lanes; p++)
            sum += sums[feature * n_lanes + p];
        out[feature] = (sum[0] + sum[2]) + (sum[1] + sum[3]);
    }
}

EACH_WIDTH(void, contribute,
           (const Paths *paths, uint8_t *goes, Lanes *products, Lanes *below, Lanes *sums, double *out),
           (paths, goes, products, below, sums, out)) {
    (void)width;
    if (paths->n_lanes == 1)
        contribute_at(1, paths, goes, products, below, sums, out);
    else if (paths->n_lanes == 2)
        contribute_at(2, paths, goes, products, below, sums, out);
    else
        contribute_at(paths->n_lanes, paths, goes, products, below, sums, out);
}

#endif
