/* Trees too large for steps, and blocks of few rows: sixteen walks at a time from root to leaf.
 *
 *   node     the left child is ``child``, the right one comes after it; a leaf is its own left child
 *
 *            | child : 32 | plane : 24 | code : 8 |                  goes right where plane > code
 *
 * No walk waits for another, and no step is a branch; a walk that has arrived stays where it is. */
#ifndef RANKTREES_WALKING_H
#define RANKTREES_WALKING_H

#include <stdint.h>

#include "blend.h"

enum { WALKS = 16, WALKED_BLINDLY = 8 };

typedef struct {
    uint32_t child, plane_and_code;
} walk_node;

INLINE walk_node make_walk_node(uint32_t child, uint32_t plane, uint32_t code) {
    return (walk_node){child, plane << 8 | code};
}

/* From nodes[at[w]] walks the row row[w] of a block, at most ``depth`` steps. */
EACH_WIDTH(void, walk,
           (const walk_node *nodes, int64_t depth, const uint8_t *planes, const uint32_t *row, uint32_t *at),
           (nodes, depth, planes, row, at)) {
    uint32_t here[WALKS];
    memcpy(here, at, sizeof here);
    for (int64_t walked = 0; walked < depth; walked += WALKED_BLINDLY) {
        uint32_t before[WALKS], moved = 0;
        memcpy(before, here, sizeof here);
        for (int64_t i = walked; i < depth && i < walked + WALKED_BLINDLY; i++)
            for (int w = 0; w < WALKS; w++) {
                const walk_node node = nodes[here[w]];
                const uint8_t code = (uint8_t)node.plane_and_code;
                here[w] = node.child + (ROWS_OF(planes, node.plane_and_code >> 8)[row[w]] > code);
            }
        for (int w = 0; w < WALKS; w++)
            moved |= before[w] ^ here[w];
        if (!moved)
            break;
    }
    memcpy(at, here, sizeof here);
}

#endif
