/* Sum the rows of one leaf by long codes, and remember which cells they touch.
 *
 *     cells     a b . . c .   . . . . . .   . d . . . .        a word of touched for 64 cells,
 *     touched   1 1 0 0 1 0 | 0 0 0 0 0 0 | 0 1 0 0 0 0        a word of words for 64 of those
 *     words     1             0             1
 *
 * If there are so many rows that hardly a cell, or a word, remains untouched, all count as touched. */
#ifndef RANKTREES_TOUCHING_H
#define RANKTREES_TOUCHING_H

#include "support/bins.h"
#include "support/codes.h"

typedef struct {
    Bin *cells;
    uint64_t *touched, *words;
    int all_cells, all_words;
} touchable;

INLINE void touch(const touchable *line, uint32_t code) {
    if (!line->all_cells)
        line->touched[code >> 6] |= (uint64_t)1 << (code & 63);
    if (!line->all_words)
        line->words[code >> 12] |= (uint64_t)1 << (code >> 6 & 63);
}

INLINE void add_touching(const touchable *line, const codes_of_feature *of, const uint32_t *rows, const int64_t *sums,
                         int64_t n, int bits, int same) {
    fetch_first(of->column, of->step, rows, n);
    for (int64_t i = 0; i < n; i++) {
        fetch_coming(of->column, of->step, rows, i, n);
        const uint32_t code = code_of(1, of, rows[i]);
        const Bin sum = widened(sums[i], bits, same);
        Bin *cell = &line->cells[code];
        cell->gradient += sum.gradient;
        cell->hessian += sum.hessian;
        cell->count += sum.count;
        touch(line, code);
    }
}

/* Count rows that have no sums. */
INLINE void count_touching(const touchable *line, const codes_of_feature *of, const uint32_t *rows, int64_t n) {
    fetch_first(of->column, of->step, rows, n);
    for (int64_t i = 0; i < n; i++) {
        fetch_coming(of->column, of->step, rows, i, n);
        const uint32_t code = code_of(1, of, rows[i]);
        line->cells[code].count++;
        touch(line, code);
    }
}

#endif
