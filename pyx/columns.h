/* Sums of the rows of one leaf by the codes of a few features, whose codes lie side by side. */
#ifndef RANKTREES_COLUMNS_H
#define RANKTREES_COLUMNS_H

#include "bins.h"

enum {
    CODES = 256,       /* cells of one feature */
    SHORTLIST = 4,     /* features that are refined together */
    COPIES = 2,        /* neighbouring rows go into different cells: runs of one code do not wait for themselves */
    ROWS_AT_ONCE = 256,
    COLUMNS_AHEAD = 32 /* rows to fetch ahead */
};

/* cells: n_columns x COPIES x CODES x lanes numbers */
INLINE void add_rows_of_columns(int lanes, int n_columns, const uint8_t *const *columns, const uint32_t *rows,
                                const int64_t *sums, int64_t n, int bits, int same, int sparse,
                                int64_t *cells) {
    two_lanes wide[ROWS_AT_ONCE];
    for (int64_t start = 0; start < n; start += ROWS_AT_ONCE) {
        const int64_t stop = n - start < ROWS_AT_ONCE ? n : start + ROWS_AT_ONCE;
        if (lanes == 2)
            widen(stop - start, sums + start, bits, same, wide);
        for (int64_t i = start; i < stop; i++) {
            if (sparse && i + COLUMNS_AHEAD < n)
                for (int k = 0; k < n_columns; k++)
                    prefetch_line(columns[k] + rows[i + COLUMNS_AHEAD]);
            for (int k = 0; k < n_columns; k++) {
                int64_t *cell = cells + ((k * COPIES + (i & 1)) * CODES + columns[k][rows[i]]) * lanes;
                if (lanes == 1)
                    *cell += sums[i];
                else
                    bin_add(cell, wide + (i - start));
            }
        }
    }
}

INLINE void fill_columns_of_lanes(int lanes, int n_columns, const uint8_t *const *columns, const uint32_t *rows,
                                  const int64_t *sums, int64_t n, int bits, int same, int sparse,
                                  int64_t *cells) {
    switch (n_columns) {
    case 1: add_rows_of_columns(lanes, 1, columns, rows, sums, n, bits, same, sparse, cells); break;
    case 2: add_rows_of_columns(lanes, 2, columns, rows, sums, n, bits, same, sparse, cells); break;
    case 3: add_rows_of_columns(lanes, 3, columns, rows, sums, n, bits, same, sparse, cells); break;
    default: add_rows_of_columns(lanes, SHORTLIST, columns, rows, sums, n, bits, same, sparse, cells);
    }
}

/* wide: n_columns x CODES bins; cells as above, scratch. Where all hessians are the same, one lane is enough. */
static void fill_columns(int n_columns, const uint8_t *const *columns, const uint32_t *rows, const int64_t *sums,
                         int64_t n, int bits, int same, int sparse, int64_t *cells, two_lanes *wide) {
    const int lanes = same ? 1 : 2;
    memset(cells, 0, n_columns * COPIES * CODES * lanes * sizeof(int64_t));
    if (same)
        fill_columns_of_lanes(1, n_columns, columns, rows, sums, n, bits, same, sparse, cells);
    else
        fill_columns_of_lanes(2, n_columns, columns, rows, sums, n, bits, same, sparse, cells);
    for (int k = 0; k < n_columns; k++) {
        int64_t *even = cells + k * COPIES * CODES * lanes, *odd = even + CODES * lanes;
        for (int c = 0; c < CODES * lanes; c++)
            even[c] += odd[c];
        if (same)
            widen(CODES, even, bits, same, wide + k * CODES);
        else
            memcpy(wide + k * CODES, even, CODES * sizeof(two_lanes));
    }
}

#endif
