/* Pack sums over rows into words, which ranks add up. Sums of few bits lie side by side, some of them in slices.
 *
 *   cell    | gradient | hessian : bits |                 the sum over some rows, as in rounding.h
 *   sum     | gradient | hessian : low |                  the same in bits that suffice for each rank and for all
 *   word    | slice of a sum | ... | sum n + i : width | sum i : width |      word i of n; as many sums as fit
 *   slice   | 0 : spare | some bits of one of the last sums |                 in the bits that are left of a word
 *
 * Words are added as numbers. A negative sum borrows from the sums above it in the word. This is undone when the
 * word is read, from the lowest sum up. Slices are not negative; their spare bits take the carries of all ranks. */
#ifndef RANKTREES_WORDS_H
#define RANKTREES_WORDS_H

#include <stdint.h>

#include "support/simd.h"

enum { WORD = 64 };

typedef struct {
    int sign;     /* whether sums may be negative */
    int bits;     /* bits of the hessian in a cell */
    int low;      /* bits of the hessian in a sum */
    int width;    /* bits of a sum */
    int whole;    /* whole sums in a word */
    int slice;    /* bits of a slice */
    int n_slices; /* slices of a sum that is cut; 0 if no sum is cut */
} sum_field;

INLINE sum_field field_of(int sign, int bits, int low, int width, int spare) {
    const int whole = WORD / width, slice = WORD - whole * width - spare;
    return (sum_field){sign, bits, low, width, whole, slice, slice > 0 ? (width + slice - 1) / slice : 0};
}

INLINE int64_t n_words_of(int64_t n_cells, const sum_field *field) {
    const int64_t whole = field->whole, n_slices = field->n_slices;
    const int64_t in_slices = n_slices ? n_cells / (whole * n_slices + 1) : 0;
    return (n_cells - in_slices + whole - 1) / whole;
}

INLINE uint64_t sum_of(int64_t cell, const sum_field *field) {
    const int64_t mask = ((int64_t)1 << field->bits) - 1;
    return ((uint64_t)(cell >> field->bits) << field->low) + (uint64_t)(cell & mask);
}

INLINE int64_t lowest_of(uint64_t word, const sum_field *field) {
    const int rest = WORD - field->width;
    return field->sign ? (int64_t)(word << rest) >> rest : (int64_t)(word << rest >> rest);
}

INLINE int64_t cell_of(int64_t sum, const sum_field *field) {
    const int64_t mask = ((int64_t)1 << field->low) - 1;
    return (int64_t)((uint64_t)(sum >> field->low) << field->bits) + (sum & mask);
}

INLINE void put_side_by_side(int stride, int64_t n, const int64_t *RESTRICT cells, sum_field field,
                             int64_t *RESTRICT words) {
    const int64_t n_words = n_words_of(n, &field), first_cut = n_words * field.whole;
    for (int64_t first = 0, shift = 0; first < n && first < first_cut; first += n_words, shift += field.width) {
        const int64_t n_here = n - first < n_words ? n - first : n_words, *here = cells + stride * first;
        if (n_words == n)
            for (int64_t i = 0; i < n; i++)
                words[i] = here[stride * i];
        else if (!shift)
            for (int64_t i = 0; i < n_words; i++)
                words[i] = (int64_t)sum_of(here[stride * i], &field);
        else
            for (int64_t i = 0; i < n_here; i++)
                words[i] += (int64_t)(sum_of(here[stride * i], &field) << shift);
    }
    const int64_t n_cut = n - first_cut;
    if (n_cut <= 0)
        return;
    const int64_t *cut = cells + stride * first_cut;
    const uint64_t mask = ((uint64_t)1 << field.slice) - 1, all = ~(uint64_t)0 >> (WORD - field.width);
    for (int k = 0; k < field.n_slices; k++)
        for (int64_t i = 0; i < n_cut; i++) {
            const uint64_t slice = (sum_of(cut[stride * i], &field) & all) >> (k * field.slice) & mask;
            words[k * n_cut + i] += (int64_t)(slice << (field.whole * field.width));
        }
}

INLINE void take_from_words(int stride, int64_t n, const int64_t *RESTRICT words, sum_field field,
                            int64_t *RESTRICT rest, int64_t *RESTRICT cells) {
    const int64_t n_words = n_words_of(n, &field), first_cut = n_words * field.whole;
    for (int64_t first = 0; first < n && first < first_cut; first += n_words) {
        const int64_t n_here = n - first < n_words ? n - first : n_words;
        int64_t *here = cells + stride * first;
        if (n_words == n)
            for (int64_t i = 0; i < n; i++)
                here[stride * i] = words[i];
        else
            for (int64_t i = 0; i < n_here; i++) {
                const uint64_t word = (uint64_t)(first ? rest[i] : words[i]);
                const int64_t sum = lowest_of(word, &field);
                here[stride * i] = cell_of(sum, &field);
                rest[i] = (int64_t)((word - (uint64_t)sum) >> field.width);
            }
    }
    const int64_t n_cut = n - first_cut;
    if (n_cut <= 0)
        return;
    const uint64_t mask = ((uint64_t)1 << (WORD - field.whole * field.width)) - 1;
    int64_t *cut = cells + stride * first_cut;
    for (int k = 0; k < field.n_slices; k++)
        for (int64_t i = 0; i < n_cut; i++) {
            const uint64_t slice = ((uint64_t)rest[k * n_cut + i] & mask) << (k * field.slice);
            cut[stride * i] = (int64_t)(slice + (k ? (uint64_t)cut[stride * i] : 0));
        }
    for (int64_t i = 0; i < n_cut; i++)
        cut[stride * i] = cell_of(lowest_of((uint64_t)cut[stride * i], &field), &field);
}

INLINE void find_largest(int stride, int64_t n, const int64_t *RESTRICT cells, int bits, int64_t *largest) {
    const int64_t mask = ((int64_t)1 << bits) - 1;
    int64_t above = 0, below = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t high = cells[stride * i] >> bits, size = high < 0 ? -high : high;
        const int64_t low = cells[stride * i] & mask;
        above = size > above ? size : above;
        below = low > below ? low : below;
    }
    largest[0] = above;
    largest[1] = below;
}

/* Find the largest magnitudes of the upper and of the lower numbers in cells that are one or two numbers apart. */
EACH_WIDTH(void, largest_of_cells,
           (int stride, int64_t n, const int64_t *RESTRICT cells, int bits, int64_t *largest),
           (stride, n, cells, bits, largest)) {
    if (stride == 1)
        find_largest(1, n, cells, bits, largest);
    else
        find_largest(2, n, cells, bits, largest);
}

EACH_WIDTH(void, cells_to_words,
           (int stride, int64_t n, const int64_t *RESTRICT cells, sum_field field, int64_t *RESTRICT words),
           (stride, n, cells, field, words)) {
    if (stride == 1)
        put_side_by_side(1, n, cells, field, words);
    else
        put_side_by_side(2, n, cells, field, words);
}

/* ``rest`` has room for what is left of the words. The words themselves are only read: other ranks may read them too,
 * and writes to them would be slow. */
EACH_WIDTH(void, words_to_cells,
           (int stride, int64_t n, const int64_t *RESTRICT words, sum_field field, int64_t *RESTRICT rest,
            int64_t *RESTRICT cells),
           (stride, n, words, field, rest, cells)) {
    if (stride == 1)
        take_from_words(1, n, words, field, rest, cells);
    else
        take_from_words(2, n, words, field, rest, cells);
}

#endif
