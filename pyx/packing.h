/* Codes to what they add to a byte: a stair whose steps are all as high as the feature's stride. */
#ifndef RANKTREES_PACKING_H
#define RANKTREES_PACKING_H

#include <stdint.h>

#include "simd.h"

enum { PACKED = 256, MOST_STEPS = 255 }; /* rows packed together, while their codes stay in the cache */

#if defined(__GNUC__)
enum { LANES = 64 };
typedef uint8_t lanes __attribute__((vector_size(LANES), aligned(1), may_alias));
#endif

typedef struct {
    int32_t n_steps, each; /* whether each code up to n_steps is a step */
    uint8_t stride, firsts[MOST_STEPS]; /* the first code of each step */
} stair;

static inline void build_stair(const uint8_t *share, int stride, stair *own) {
    own->n_steps = 0;
    own->each = 1;
    own->stride = (uint8_t)stride;
    for (int code = 1; code < 256; code++)
        if (share[code] == share[code - 1] + stride) {
            own->each &= code == own->n_steps + 1;
            own->firsts[own->n_steps++] = (uint8_t)code;
        } else if (share[code] != 0) /* 0 is also behind the last code */
            own->each = 0;
    own->each &= own->n_steps > 0;
}

/* Of PACKED codes. */
EACH_WIDTH(void, add_steps, (const uint8_t *RESTRICT codes, const stair *own, uint8_t *RESTRICT bytes),
           (codes, own, bytes)) {
    if (own->each) {
        for (int i = 0; i < PACKED; i++)
            bytes[i] = (uint8_t)(bytes[i] + own->stride * codes[i]);
        return;
    }
#if defined(__GNUC__)
    for (int i = 0; i < PACKED; i += LANES) {
        const lanes own_codes = *(const lanes *)(codes + i);
        lanes sum = *(const lanes *)(bytes + i);
        for (int s = 0; s < own->n_steps; s++)
            sum += (lanes)(own_codes >= own->firsts[s]) & own->stride;
        *(lanes *)(bytes + i) = sum;
    }
#else
    for (int s = 0; s < own->n_steps; s++)
        for (int i = 0; i < PACKED; i++)
            bytes[i] = (uint8_t)(bytes[i] + (codes[i] >= own->firsts[s] ? own->stride : 0));
#endif
}

#endif
