/* Floating-point numbers as unsigned keys in the same order, and rulers that tell roughly where a key is.
 *
 *             | low ... high of the negative | zero | low ... high of the positive |
 *   marks       0     1     2    ...           zero   zero + 1   ...     n_marks - 1
 *
 * Each side of a ruler is divided evenly, with 2^shift keys per mark. Keys grow with the logarithm of a number, so a
 * mark spans about the same ratio everywhere. This suits counts and heavy tails as well as scores. */
#ifndef RANKTREES_KEYS_H
#define RANKTREES_KEYS_H

#include <stdint.h>
#include <string.h>

#include "support/simd.h"

enum {
    LAID_OUT = 1024, /* rows that are laid out feature by feature together, to share the finder of a feature */
    MOST_EDGES = 255,
    CODING_BITS = 11
};

/* The most marks of a ruler, each of whose sides has at most 2^bits. */
#define MOST_MARKS(bits) ((2 << (bits)) + 1)

/* The keys low ... high; none if low > high. */
typedef struct {
    uint64_t low, high;
    int32_t shift;
} key_side;

/* The sides of the negative and of the positive numbers; `zero` is the mark between them. */
typedef struct {
    key_side sides[2];
    int32_t zero;
} key_ruler;

/* Divide each side into at most 2^bits marks, with one for zero between them. Return the number of marks. A side
 * without keys has one mark, at which any key may be looked up. */
static inline int32_t divide_ruler(key_ruler *ruler, int bits) {
    int32_t lasts[2];
    for (int s = 0; s < 2; s++) {
        key_side *side = &ruler->sides[s];
        if (side->low > side->high)
            side->low = side->high = 0;
        side->shift = 0;
        while ((side->high - side->low) >> side->shift >> bits)
            side->shift++;
        lasts[s] = (int32_t)((side->high - side->low) >> side->shift);
    }
    ruler->zero = lasts[0] + 1;
    return ruler->zero + 1 + lasts[1] + 1;
}

/* Count the edges, of which there may be any number, below each of some numbers; none are below NaN. All numbers
 * take each step of the search together, so that their reads of memory overlap. */
EACH_WIDTH(void, count_edges_below,
           (int64_t n, const double *RESTRICT numbers, const double *RESTRICT edges, int64_t n_edges,
            uint32_t *RESTRICT found),
           (n, numbers, edges, n_edges, found)) {
    memset(found, 0, (size_t)n * sizeof *found);
    for (int64_t left = n_edges; left > 0; left -= (left + 1) / 2) {
        const uint32_t half = (uint32_t)((left + 1) / 2);
        for (int64_t i = 0; i < n; i++)
            found[i] += edges[found[i] + half - 1] < numbers[i] ? half : 0;
    }
}

/* EACH_WIDTH, for a name that is itself a macro. */
#define EACH_WIDTH_OF_TYPE(returns, name, parameters, arguments) \
    EACH_WIDTH(returns, name, parameters, arguments)

#define REAL float
#define KEY uint32_t
#define OF(name) name##_float
#include "binning/keys_of_type.h"
#undef REAL
#undef KEY
#undef OF

#define REAL double
#define KEY uint64_t
#define OF(name) name##_double
#include "binning/keys_of_type.h"
#undef REAL
#undef KEY
#undef OF

#endif
