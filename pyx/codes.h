/* The code of a row in the column of a feature: a byte, or four ("long") where a feature has more than 255 bins.
 * Columns are passed as bytes. Loops over rows are INLINE with a constant is_long: there is one for each. */
#ifndef RANKTREES_CODES_H
#define RANKTREES_CODES_H

#include <stdint.h>

#include "simd.h"

INLINE uint32_t code_at(int is_long, const uint8_t *column, int64_t row) {
    return is_long ? ((const uint32_t *)(const void *)column)[row] : column[row];
}

INLINE const uint8_t *code_address(int is_long, const uint8_t *column, int64_t row) {
    return column + (is_long ? 4 * row : row);
}

#endif
