/* Sum rows by the cells of their features, with one addition for several features at a time.
 *
 *   bytes    row-major: a byte is the joint cell of some features
 *            cell_0 + radix_0 * (cell_1 + radix_1 * (cell_2 ... ))
 *   table    the sums of the rows by the values of one byte
 *   line     the sums by the cells of every feature: the margins of the tables
 *
 * Where features share a column of codes, the byte is a value of that column, which stands for a combination of codes.
 * These bytes come last, and each value names the few cells that it adds to; the rest goes to the usual cells.
 *
 * Eight bytes are a block. The blocks of a chunk of rows are first copied side by side. The loops that follow then read
 * memory in order, and the eight tables of a block (16 or 32 KiB) stay in the L1 cache, from clearing them to taking
 * their margins if there is only one chunk. With fewer than about forty rows it takes less time to add their cells to
 * the line one by one than to clear tables, add to these, and take their margins. */
#ifndef RANKTREES_JOINT_H
#define RANKTREES_JOINT_H

#include "support/bins.h"
#include "support/codes.h"
#include "support/records.h"

enum {
    TABLE = 256,
    BLOCK_BYTES = 8,
    CHUNK = 512,        /* rows */
    PART = 64,          /* rows of a chunk; while they are added up, some rows of the next chunk are prefetched */
    STEP = CHUNK + 8,   /* not a power of two, as those compete for the same lines of the cache */
    FETCHED_AHEAD = 24, /* how many rows ahead to prefetch */
    ONE_BY_ONE = 3      /* adding a row to a single cell takes this many times the time for a cell of a table */
};

INLINE void add_bytes(int lanes, int n_bytes, int64_t n, const uint64_t *RESTRICT words, const void *sums,
                      int64_t *RESTRICT tables) {
    for (int64_t i = 0; i < n; i++) {
        const uint64_t word = words[i];
        for (int b = 0; b < n_bytes; b++) {
            int64_t *cell = tables + (b * TABLE + (uint8_t)(word >> (8 * b))) * lanes;
            if (lanes == 1)
                *cell += ((const int64_t *)sums)[i];
            else
                bin_add(cell, (const Bin *)sums + i);
        }
    }
}

/* Call add_bytes with a constant number of bytes, so that the compiler unrolls the loop over them. */
INLINE void add_block(int lanes, int64_t n_bytes, int64_t n, const uint64_t *words, const void *sums,
                      int64_t *tables) {
    switch (n_bytes) {
    case 1: add_bytes(lanes, 1, n, words, sums, tables); break;
    case 2: add_bytes(lanes, 2, n, words, sums, tables); break;
    case 3: add_bytes(lanes, 3, n, words, sums, tables); break;
    case 4: add_bytes(lanes, 4, n, words, sums, tables); break;
    case 5: add_bytes(lanes, 5, n, words, sums, tables); break;
    case 6: add_bytes(lanes, 6, n, words, sums, tables); break;
    case 7: add_bytes(lanes, 7, n, words, sums, tables); break;
    default: add_bytes(lanes, BLOCK_BYTES, n, words, sums, tables);
    }
}

/* Copy the sums of the cells of a digit to their places in the line. */
INLINE void put_cells(int lanes, int32_t radix, const int64_t *sums, const Digit *digit, int64_t *line) {
    const int32_t most = (radix - 1) * lanes;
    memcpy(line + digit->first * lanes, sums, most * sizeof *line);
    memcpy(line + digit->last * lanes, sums + most, lanes * sizeof *line);
}

/* Sum out the last digit of a table: its own sums go to the line, and the table then has the sums of the digits before
 * it where this digit is 0. */
INLINE void sum_out(int lanes, int32_t stride, int32_t radix, int64_t *RESTRICT table, const Digit *digit,
                    int64_t *RESTRICT line) {
    const int32_t width = stride * lanes;
    for (int32_t c = 0; c < radix; c++) {
        const int64_t *part = table + c * width;
        int64_t *cell = line + (c < radix - 1 ? digit->first + c : digit->last) * lanes;
        for (int lane = 0; lane < lanes; lane++) {
            int64_t sum = 0;
            for (int32_t i = lane; i < width; i += lanes)
                sum += part[i];
            cell[lane] = sum;
        }
        if (c > 0)
            for (int32_t i = 0; i < width; i++)
                table[i] += part[i];
    }
}

/* Take the margins of one table: sum out its digits, from the last to the first. */
INLINE void margins_of_lanes(int lanes, int64_t *RESTRICT table, const Digit *digits, int64_t n_digits,
                             int64_t *RESTRICT line) {
    for (int64_t d = n_digits - 1; d > 0; d--)
        sum_out(lanes, digits[d].stride, digits[d].radix, table, digits + d, line);
    put_cells(lanes, digits->radix, table, digits, line);
}

/* For each of 16 consecutive parts, add its first half to its second half. */
INLINE void add_halves(int half, const int64_t *RESTRICT parts, int64_t *RESTRICT sums) {
    for (int c = 0; c < COARSE_CELLS; c++)
        for (int i = 0; i < half; i++)
            sums[c * half + i] = parts[2 * c * half + i] + parts[(2 * c + 1) * half + i];
}

/* Take the margins of a table of two features with 16 cells each, as most are in a coarse search. All cells are summed
 * side by side, so that no sum waits for the one before. */
INLINE void margins_of_sixteen(const int64_t *RESTRICT table, const Digit *digits, int64_t *RESTRICT line) {
    int64_t low[COARSE_CELLS] = {0}, high[COARSE_CELLS];
    int64_t eight[8 * COARSE_CELLS], four[4 * COARSE_CELLS], two[2 * COARSE_CELLS];
    for (int c = 0; c < COARSE_CELLS; c++)
        for (int i = 0; i < COARSE_CELLS; i++)
            low[i] += table[c * COARSE_CELLS + i];
    add_halves(8, table, eight);
    add_halves(4, eight, four);
    add_halves(2, four, two);
    add_halves(1, two, high);
    put_cells(1, COARSE_CELLS, low, digits, line);
    put_cells(1, COARSE_CELLS, high, digits + 1, line);
}

/* Spread the sums by the values of a joint byte to the cells of its features. */
INLINE void spread_byte(int lanes, const JointBytes *joint, int64_t byte, const int64_t *table, int64_t *line) {
    int64_t total[2] = {0, 0};
    for (int v = 0; v < TABLE; v++)
        for (int lane = 0; lane < lanes; lane++)
            total[lane] += table[v * lanes + lane];
    for (int64_t m = joint->first_member[byte - joint->first_byte];
         m < joint->first_member[byte - joint->first_byte + 1]; m++) {
        const Member *member = joint->members + m;
        int64_t rest[2] = {total[0], total[1]};
        memset(line + member->first * lanes, 0, (size_t)member->n_cells * lanes * sizeof *line);
        memset(line + member->last * lanes, 0, lanes * sizeof *line);
        for (int64_t k = member->first_pair; k < member->stop_pair;) { /* pairs of one cell after those of another */
            const int32_t cell = joint->cells[k];
            int64_t sums[2] = {0, 0};
            for (; k < member->stop_pair && joint->cells[k] == cell; k++)
                for (int lane = 0; lane < lanes; lane++)
                    sums[lane] += table[joint->values[k] * lanes + lane];
            for (int lane = 0; lane < lanes; lane++) {
                line[cell * lanes + lane] = sums[lane];
                rest[lane] -= sums[lane];
            }
        }
        for (int lane = 0; lane < lanes; lane++)
            line[(member->first + member->usual) * lanes + lane] += rest[lane];
    }
}

EACH_WIDTH(void, take_margins,
           (int lanes, int64_t *RESTRICT table, const Digit *digits, int64_t n_digits, int64_t *RESTRICT line),
           (lanes, table, digits, n_digits, line)) {
    if (lanes == 1 && n_digits == 2 && digits->radix == COARSE_CELLS && digits[1].radix == COARSE_CELLS)
        margins_of_sixteen(table, digits, line);
    else if (lanes == 1)
        margins_of_lanes(1, table, digits, n_digits, line);
    else
        margins_of_lanes(2, table, digits, n_digits, line);
}

/* Fill the cells of some digits from n rows, one by one. cells[TABLE * d + v] is the cell of digit d, counted from its
 * first one, if its byte has the value v. */
APART void fill_cells(int lanes, const uint8_t *bytes, int64_t step, int64_t n_bytes, const Digit *digits,
                      int64_t n_digits, const uint8_t *cells, const uint32_t *rows, const int64_t *sums, int64_t n,
                      int bits, int same, int64_t *line) {
    for (int64_t d = 0; d < n_digits; d++) {
        memset(line + digits[d].first * lanes, 0, (size_t)(digits[d].radix - 1) * lanes * sizeof *line);
        memset(line + digits[d].last * lanes, 0, lanes * sizeof *line);
    }
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *row_bytes = bytes + rows[i] * step;
        const Bin wide = widened(sums[i], bits, same);
        if (i + FETCHED_AHEAD < n)
            fetch_rows(bytes, step, 0, n_bytes, rows + i + FETCHED_AHEAD, 1);
        for (int64_t d = 0; d < n_digits; d++) {
            int64_t *cell = line + (digits[d].first + cells[TABLE * d + row_bytes[digits[d].byte]]) * lanes;
            if (lanes == 1)
                *cell += sums[i];
            else
                bin_add(cell, &wide);
        }
    }
}

/* Fill the cells of the blocks first..last-1 from n rows. Up to eight bytes behind the last row are read, too.
 * scratch: (last - first) * STEP words, and 2 * CHUNK more; tables: one for each byte. */
static void fill_line(int lanes, const uint8_t *bytes, int64_t step, int64_t n_bytes, const Digit *digits,
                      const int64_t *first_digit, const uint8_t *cells, const uint32_t *rows, const int64_t *sums,
                      int64_t n, int bits, int same, int64_t first, int64_t last, uint64_t *scratch, int64_t *tables,
                      const JointBytes *joint, int64_t *line) {
    const int64_t from = first * BLOCK_BYTES, to = last * BLOCK_BYTES, n_parts = (last - first) * (CHUNK / PART);
    const int64_t some = first_digit[from], n_digits = first_digit[to < n_bytes ? to : n_bytes] - some;
    const int64_t stop = to < n_bytes ? to : n_bytes;
    if (stop <= joint->first_byte && ONE_BY_ONE * n * n_digits <= TABLE * (stop - from)) {
        fill_cells(lanes, bytes, step, n_bytes, digits + some, n_digits, cells + TABLE * some, rows, sums, n, bits,
                   same, line);
        return;
    }
    Bin *wide = (Bin *)(scratch + (last - first) * STEP);
    for (int64_t chunk = 0; chunk == 0 || chunk < n; chunk += CHUNK) {
        const int64_t m = n - chunk < CHUNK ? n - chunk : CHUNK;
        const int64_t coming = n - chunk - m < CHUNK ? n - chunk - m : CHUNK;
        const uint32_t *row = rows + chunk;
        int64_t part = 0;
        for (int64_t i = 0; i < m; i++) {
            if (i + FETCHED_AHEAD < m)
                fetch_rows(bytes, step, from, to, row + i + FETCHED_AHEAD, 1);
            const uint8_t *row_bytes = bytes + row[i] * step;
            for (int64_t b = first; b < last; b++)
                scratch[(b - first) * STEP + i] = eight_bytes(row_bytes + b * BLOCK_BYTES);
        }
        if (lanes == 2)
            widen(m, sums + chunk, bits, same, wide);
        for (int64_t b = first; b < last; b++) {
            const uint64_t *block = scratch + (b - first) * STEP;
            int64_t *table = tables + b * BLOCK_BYTES * TABLE * lanes;
            const int64_t used = n_bytes - b * BLOCK_BYTES < BLOCK_BYTES ? n_bytes - b * BLOCK_BYTES : BLOCK_BYTES;
            if (chunk == 0)
                memset(table, 0, used * TABLE * lanes * sizeof *table);
            for (int64_t i = 0; i < m; i += PART, part++) {
                const int64_t k = m - i < PART ? m - i : PART, fetched = coming * part / n_parts;
                fetch_rows(bytes, step, from, to, row + m + fetched, coming * (part + 1) / n_parts - fetched);
                if (lanes == 1)
                    add_block(1, used, k, block + i, sums + chunk + i, table);
                else
                    add_block(2, used, k, block + i, wide + i, table);
            }
            if (chunk + m == n)
                for (int64_t byte = b * BLOCK_BYTES; byte < b * BLOCK_BYTES + used; byte++) {
                    if (byte < joint->first_byte)
                        take_margins(lanes, tables + byte * TABLE * lanes, digits + first_digit[byte],
                                     first_digit[byte + 1] - first_digit[byte], line);
                    else if (lanes == 1)
                        spread_byte(1, joint, byte, tables + byte * TABLE, line);
                    else
                        spread_byte(2, joint, byte, tables + byte * TABLE * 2, line);
                }
        }
    }
}

#endif
