/* Sum the rows of one leaf by their codes, for a few features together, each of which has a column of codes. */
#ifndef RANKTREES_COLUMNS_H
#define RANKTREES_COLUMNS_H

#include "support/bins.h"
#include "support/codes.h"

enum { COPIES = 2 }; /* neighbouring rows add to different cells: a run of one code does not wait for itself */

/* cells: n_columns x COPIES x CODES numbers */
INLINE void add_rows_of_columns(int n_columns, const uint8_t *const *columns, const uint32_t *rows,
                                const int64_t *sums, int64_t n, int apart, int64_t *cells) {
    const int64_t ahead = CODES_AHEAD / n_columns;
    if (apart)
        for (int k = 0; k < n_columns; k++)
            fetch_each(columns[k], 1, rows, n < ahead ? n : ahead);
    for (int64_t i = 0; i < n; i++) {
        if (apart && i + ahead < n)
            for (int k = 0; k < n_columns; k++)
                fetch_each(columns[k], 1, rows + i + ahead, 1);
        for (int k = 0; k < n_columns; k++)
            cells[(k * COPIES + (i & 1)) * CODES + columns[k][rows[i]]] += sums[i];
    }
}

/* cells: n_columns x COPIES x CODES numbers. In the end the first CODES numbers of each feature are its sums. */
static void sum_columns(int n_columns, const uint8_t *const *columns, const uint32_t *rows, const int64_t *sums,
                        int64_t n, int64_t *cells) {
    const int apart = lie_apart(rows, n);
    memset(cells, 0, n_columns * COPIES * CODES * sizeof(int64_t));
    switch (n_columns) {
    case 1: add_rows_of_columns(1, columns, rows, sums, n, apart, cells); break;
    case 2: add_rows_of_columns(2, columns, rows, sums, n, apart, cells); break;
    case 3: add_rows_of_columns(3, columns, rows, sums, n, apart, cells); break;
    default: add_rows_of_columns(SHORTLIST, columns, rows, sums, n, apart, cells);
    }
    for (int k = 0; k < n_columns; k++) {
        int64_t *even = cells + k * COPIES * CODES, *odd = even + CODES;
        for (int c = 0; c < CODES; c++)
            even[c] += odd[c];
    }
}

#endif
