/* Make sixteen walks at a time from root to leaf: for trees too large for units, and for blocks of few rows.
 *
 *   node     the left child is ``child``, the right child follows it; a leaf is its own left child
 *
 *            | child : 32 | plane : 24 | code : 8 |                  a row goes right if plane > code
 *            | child : 32 | set : 24 | 254 : 8 |                     a row goes left if the set has its category
 *
 * No walk waits for another, and no step is a branch. A walk that has arrived at a leaf stays there. */
#ifndef RANKTREES_WALKING_H
#define RANKTREES_WALKING_H

#include <stdint.h>

#include "model/units.h"

enum { WALKS = 16, WALKED_BLINDLY = 8, CODE_OF_SET = 254 };

/* Sets of categories: for each set, the plane that holds the categories, and eight words of bits. */
typedef struct {
    const uint32_t *plane, *bits;
} category_sets;

typedef struct {
    uint32_t child, plane_and_code;
} walk_node;

INLINE int lacks(const category_sets *sets, uint32_t set, const uint8_t *planes, uint32_t row) {
    const uint8_t category = ROWS_OF(planes, sets->plane[set])[row];
    return !(sets->bits[8 * (size_t)set + (category >> 5)] >> (category & 31) & 1);
}

INLINE walk_node make_walk_node(uint32_t child, uint32_t plane, uint32_t code) {
    return (walk_node){child, plane << 8 | code};
}

INLINE void walk_some(int with_sets, const walk_node *nodes, const category_sets *sets, int64_t depth,
                      const uint8_t *planes, const uint32_t *row, uint32_t *at) {
    uint32_t here[WALKS];
    memcpy(here, at, sizeof here);
    for (int64_t walked = 0; walked < depth; walked += WALKED_BLINDLY) {
        uint32_t before[WALKS], moved = 0;
        memcpy(before, here, sizeof here);
        for (int64_t i = walked; i < depth && i < walked + WALKED_BLINDLY; i++)
            for (int w = 0; w < WALKS; w++) {
                const walk_node node = nodes[here[w]];
                const uint8_t code = (uint8_t)node.plane_and_code;
                const uint32_t number = node.plane_and_code >> 8;
                if (with_sets && code == CODE_OF_SET)
                    here[w] = node.child + lacks(sets, number, planes, row[w]);
                else
                    here[w] = node.child + (ROWS_OF(planes, number)[row[w]] > code);
            }
        for (int w = 0; w < WALKS; w++)
            moved |= before[w] ^ here[w];
        if (!moved)
            break;
    }
    memcpy(at, here, sizeof here);
}

/* Walk the row row[w] of a block from nodes[at[w]], at most ``depth`` steps, for each w. ``sets`` is NULL if there are
 * none. */
EACH_WIDTH(void, walk,
           (const walk_node *nodes, const category_sets *sets, int64_t depth, const uint8_t *planes,
            const uint32_t *row, uint32_t *at),
           (nodes, sets, depth, planes, row, at)) {
    if (sets)
        walk_some(1, nodes, sets, depth, planes, row, at);
    else
        walk_some(0, nodes, sets, depth, planes, row, at);
}

#endif
